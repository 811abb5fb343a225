"""What the fault tests share: a folder with inputs, the commands of the program, and what each of them must leave.

Every command is run undisturbed once; whatever happens to it later, a second run must end with the same files.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Long enough to be killed in the middle, short enough for hundreds of runs.
TRAIN = ["--recipe", "none", "--hidden", "16", "--parts", "4", "--per-batch", "2", "--epochs", "6", "--checkpoint-seconds", "0", "--threads", "2", "--quiet"]


def parse_arguments(description, **counts):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("program", type=Path)
    for name, value in counts.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    return arguments


class Command:
    """One command: its arguments, what it needs to be there (made by `before`), and the files that it leaves."""

    def __init__(self, name, words, leaves, before=(), again=None):
        self.name, self.words, self.leaves, self.before = name, words, leaves, before
        self.again = again or (lambda folder: words)  # how to start it once more after it was stopped


def resume_or_train(folder):
    run = folder / "r"
    started = (run / "config.toml").exists()
    return ["train", "--run", "r", "--resume", "--threads", "2", "--quiet"] if started else ["train", "g", "--run", "r", *TRAIN]


COMMANDS = [
    Command("generate", ["generate", "new", "--nodes", "3000", "--quiet"], ["new"]),
    Command("generate --force", ["generate", "old", "--nodes", "3000", "--force", "--quiet"], ["old"]),
    Command("import", ["import", "edges.csv", "imported", "--features", "features.csv", "--quiet"], ["imported"]),
    Command("partition", ["partition", "g", "--parts", "5", "--quiet"], ["g/partitions"]),
    Command("train", ["train", "g", "--run", "r", *TRAIN], ["r"], again=resume_or_train),
    Command("evaluate", ["evaluate", "done", "--quiet"], []),
    Command("predict", ["predict", "done", "--output", "p.npy", "--quiet"], ["p.npy"]),
    Command("report", ["report", "done", "-o", "page.html", "--quiet"], []),
]


class Workspace:
    def __init__(self, program, seed):
        self.program = program
        self.random = random.Random(seed)
        place = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.root = Path(tempfile.mkdtemp(prefix="cgcn-faults-", dir=place))
        self.ready = self.root / "ready"  # the inputs, as they are copied for every run
        self.ready.mkdir()
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("CGCN_")}
        self.failures = []
        self.make_inputs()

    def make_inputs(self):
        draw = random.Random(1)
        edges = "".join(f"{draw.randrange(2000)},{draw.randrange(2000)}\n" for _ in range(20000))
        (self.ready / "edges.csv").write_text(edges)
        (self.ready / "features.csv").write_text("".join(f"{v},{v % 7},{v % 5}\n" for v in range(2000)))
        for words in (["generate", "g", "--nodes", "1500", "--quiet"], ["generate", "old", "--nodes", "500", "--quiet"],
                      ["train", "g", "--run", "done", *TRAIN]):
            outcome = self.run(words, self.ready)
            assert outcome.returncode == 0, outcome.stderr
        self.expected = {}
        for command in COMMANDS:
            folder = self.fresh()
            begin = time.monotonic()
            outcome = self.run(command.words, folder)
            command.seconds = time.monotonic() - begin
            assert outcome.returncode == 0, (command.name, outcome.stderr)
            self.expected[command.name] = self.contents(folder, command)

    def fresh(self):
        folder = Path(tempfile.mkdtemp(dir=self.root))
        shutil.copytree(self.ready, folder, dirs_exist_ok=True, symlinks=True)
        return folder

    def start(self, words, folder, **more):
        environment = {**self.environment, "TMPDIR": str(folder), **more}
        return subprocess.Popen([self.program, *words], cwd=folder, env=environment, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, words, folder, **more):
        process = self.start(words, folder, **more)
        try:
            out, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return subprocess.CompletedProcess(words, -999, "", "hangs")
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def contents(self, folder, command):
        """The hashes of what a command leaves, by name: arrays and models, not what holds times."""
        found = {}
        for name in command.leaves:
            path = folder / name
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.suffix == ".npy" or file.name == "meta.json":
                    found[str(file.relative_to(folder))] = hashlib.sha256(file.read_bytes()).hexdigest()
                if file.name in ("last.safetensors", "best.safetensors"):
                    found[str(file.relative_to(folder))] = hashlib.sha256(tensors(file)).hexdigest()
        return found

    def fail(self, what, *details):
        self.failures.append(what)
        print("FAILED:", what, *details, sep="\n  ", file=sys.stderr)

    def check_outcome(self, what, outcome, allowed=(0, 1)):
        """An error is one message; never a crash, a hang or a bug of ours."""
        fine = outcome.returncode in allowed and "Success" not in outcome.stderr
        if outcome.returncode == 1:
            fine = fine and outcome.stderr.count("error: ") == 1
        if not fine:
            self.fail(what, f"exit {outcome.returncode}", outcome.stderr[-1000:])
        return fine

    def check_again(self, what, command, folder):
        """A second run ends well, with the same files as if nothing had happened, and leaves nothing else."""
        outcome = self.run(self.words_again(command, folder), folder)
        if outcome.returncode != 0:
            self.fail(f"{what}, then again", f"exit {outcome.returncode}", outcome.stderr[-1000:])
            return
        found, expected = self.contents(folder, command), self.expected[command.name]
        if found != expected:
            names = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
            self.fail(f"{what}: the files are not the same as undisturbed", *names)
        left = [str(path.relative_to(folder)) for path in folder.rglob("*.tmp")]
        if left:
            self.fail(f"{what}: leaves temporaries", *left)

    def words_again(self, command, folder):
        if command.name in ("generate", "import") and (folder / command.leaves[0]).exists():
            return [*command.words, "--force"]
        return command.again(folder)

    def finish(self, summary):
        shutil.rmtree(self.root)
        print(f"{summary}; {len(self.failures)} failures")
        sys.exit(1 if self.failures else 0)


def tensors(file):
    """The bytes of a safetensors file behind its header, which holds times."""
    data = file.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def header(file):
    data = file.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
