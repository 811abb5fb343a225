#!/usr/bin/env python3
"""Flips single bits in what the program wrote: never a crash, and never another result than before without a word.

    tests/faults/flip_bits.py build/release/clustergcn --flips 1000
"""
import hashlib

from support import Workspace, parse_arguments, tensors

PREDICT = ["predict", "done", "--what", "probabilities", "--output", "p.npy", "--quiet"]
# A file, the command that reads it, and the file whose bytes tell the result. Where checksums cover all of a file, every
# flip in it is an error; elsewhere one may land where it changes nothing, or a figure that is only shown.
CASES = [
    ("g/*.npy", ["info", "g"], None, "refused"),
    ("g/meta.json", ["info", "g"], None, "refused"),
    ("g/partitions/*/*.npy", ["partition", "g", "--parts", "4", "--quiet"], None, "refused"),
    ("g/partitions/*/meta.json", ["partition", "g", "--parts", "4", "--quiet"], None, "refused"),
    ("done/best.safetensors", PREDICT, "p.npy", "no crash"),
    ("done/last.safetensors", ["train", "--run", "done", "--resume", "--epochs", "7", "--quiet"], "done/last.safetensors",
     "no crash"),
    ("done/optimiser-*.safetensors", ["train", "--run", "done", "--resume", "--epochs", "7", "--quiet"],
     "done/last.safetensors", "no crash"),
    ("done/config.toml", ["train", "--run", "done", "--resume", "--epochs", "7", "--quiet"], "done/last.safetensors",
     "no crash"),
    ("done/*.json*", ["report", "done", "-o", "page.html", "--quiet"], None, "no crash"),
    ("edges.csv", ["import", "edges.csv", "imported", "--quiet"], None, "no crash"),
]


def result(path):
    if not path.exists():
        return None
    data = tensors(path) if path.suffix == ".safetensors" else path.read_bytes()
    return hashlib.sha256(data).hexdigest()


def main():
    arguments = parse_arguments(__doc__, flips=40)
    work = Workspace(arguments.program, arguments.seed)
    expected = []
    for _, words, tells, _ in CASES:
        folder = work.fresh()
        outcome = work.run(words, folder)
        assert outcome.returncode == 0, (words, outcome.stderr)
        expected.append(result(folder / tells) if tells else None)
    refused = 0
    for number in range(arguments.flips):
        case = number % len(CASES)
        pattern, words, tells, promise = CASES[case]
        folder = work.fresh()
        file = work.random.choice(sorted(folder.glob(pattern)))
        data = bytearray(file.read_bytes())
        bit = work.random.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        what = f"bit {bit} of {file.relative_to(folder)} flipped (seed {arguments.seed}, number {number})"
        outcome = work.run(words, folder)
        refused += outcome.returncode == 1
        if not work.check_outcome(what, outcome, (1,) if promise == "refused" else (0, 1)):
            continue
        if promise == "same or refused" and outcome.returncode == 0 and result(folder / tells) != expected[case]:
            work.fail(f"{what}: another result without a word")
    work.finish(f"{arguments.flips} flipped bits, {refused} of them refused")


main()
