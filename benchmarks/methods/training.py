"""One training of a method, as both scripts here run it."""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ["cluster", "full-batch", "sgd", "graphsage", "fastgcn", "vrgcn"]


def train(program, store, method, options):
    """What `train --json` prints; the run's folder is temporary."""
    run = Path(tempfile.mkdtemp()) / "run"
    command = [program, "train", store, "--method", method, "--run", run, "--json", *options]
    if "--recipe" not in options:
        command += ["--recipe", "none"]
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout)
    finally:
        shutil.rmtree(run.parent)


def options_after_dashes():
    """The script's own arguments, and those behind `--`, which are for train."""
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    return sys.argv[1:cut], sys.argv[cut + 1:]
