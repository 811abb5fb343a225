#!/usr/bin/env python3
"""clustergcn under mpirun: the files of one process, whatever the number of ranks; kills, stops and resumes.

  train_test.py CLUSTERGCN [KILLS]       KILLS: how often a rank is killed at a random moment (default: 3)
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from mpirun_test import ENVIRONMENT, errors_of, is_there

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
MODEL = ["--recipe", "none", "--hidden", "24", "--parts", "14", "--per-batch", "1", "--layers", "3"]
OPTIONS = MODEL + ["--epochs", "4"]


def start(ranks, arguments, contexts=None, **variables):
    command = ["mpirun", "-n", str(ranks), PROGRAM] + arguments if contexts is None else ["mpirun"] + contexts
    if ranks == 1 and contexts is None:
        command = [PROGRAM] + arguments
    return subprocess.Popen(command, env={**ENVIRONMENT, **variables}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(ranks, arguments, status=0, **others):
    process = start(ranks, arguments, **others)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode == 0) == (status == 0), (arguments, process.returncode, output, errors)
    return output, errors


def numbers(file):
    """Names and bytes of the arrays of a safetensors file."""
    raw = file.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return hashlib.sha256(raw[8 + length:]).hexdigest()


def outcome(folder):
    """What must not depend on the number of ranks."""
    folder = pathlib.Path(folder)
    curves = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    result = json.loads((folder / "result.json").read_text())
    return [numbers(folder / "last.safetensors"), numbers(folder / "best.safetensors"),
            [(c["epoch"], c["loss"], c["validation"]) for c in curves], [result[k] for k in ("train", "validation", "test", "kept_epoch")],
            (folder / "embeddings.json").read_text()]


def check_same_bits(work):
    for kind in "dense", "identity":
        store = f"{work}/{kind}"
        if kind == "identity":
            make_graph_without_features(store)
        else:
            run(1, ["generate", store, "--nodes", "3000", "--quiet"])
        for slots in 4, 6:
            one = f"{work}/one-{kind}-{slots}"
            run(1, ["train", store, "--run", one, "--batches-per-step", str(slots), "--quiet"] + OPTIONS)
            for ranks in (2, 3, 4) if slots == 6 else (4,):
                several = f"{work}/several-{kind}-{slots}-{ranks}"
                # S = R needs no option; it is in the run's configuration.
                said = [] if slots == ranks else ["--batches-per-step", str(slots)]
                output, errors = run(ranks, ["train", store, "--run", several] + said + OPTIONS)
                assert outcome(several) == outcome(one), (kind, slots, ranks)
                assert f"batches-per-step = {slots}" in pathlib.Path(several, "config.toml").read_text()
                assert output.count("Test F1") == 1 and output.count("Ranks  ") == 1, output
                assert not errors_of(errors), errors
                result = json.loads(pathlib.Path(several, "result.json").read_text())
                assert len(result["ranks"]) == ranks and all(r["bytes_sent"] > 0 and r["peak_memory_bytes"] > 0 for r in result["ranks"])
    return f"{work}/dense", f"{work}/one-dense-6"


def make_graph_without_features(store):
    rng = random.Random(3)
    folder = pathlib.Path(store + "-source")
    folder.mkdir()
    n = 900
    labels = [rng.randrange(4) for _ in range(n)]
    members = [[v for v in range(n) if labels[v] == c] for c in range(4)]
    edges = {(v, rng.choice(members[labels[v]]) if rng.random() < 0.8 else rng.randrange(n)) for v in range(n) for _ in range(4)}
    (folder / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in sorted(edges) if a != b))
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{v},{labels[v]}\n" for v in range(n)))
    run(1, ["import", str(folder / "edges.csv"), store, "--labels", str(folder / "labels.csv"), "--split", "60/20/20", "--quiet"])


def check_inference(work, store, model):
    alone, _ = run(1, ["evaluate", model, "--json"])
    expected = json.loads(alone)
    for ranks in 2, 3:
        output, _ = run(ranks, ["evaluate", model, "--json"])
        found = json.loads(output)
        for part in "train", "validation", "test":
            assert found[part] == expected[part], (ranks, part)
    for what in ["--what", "probabilities"], ["--what", "embeddings", "--layer", "2"], ["--what", "classes"]:
        files = []
        for ranks in 1, 2, 4:
            files.append(f"{work}/predicted-{len(what)}-{what[1]}-{ranks}.npy")
            run(ranks, ["predict", model, "--output", files[-1], "--quiet"] + what)
        assert all(open(f, "rb").read() == open(files[0], "rb").read() for f in files), what


def processes_of(job):
    """The ranks that an mpirun started here, in their order."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == job.pid:
                variables = dict(v.split("=", 1) for v in (entry / "environ").read_bytes().decode(errors="replace").split("\0") if "=" in v)
                found[int(variables["OMPI_COMM_WORLD_RANK"])] = int(entry.name)
        except (FileNotFoundError, ProcessLookupError, KeyError, PermissionError):
            pass
    return [found[rank] for rank in sorted(found)]


def wait_for_ranks(job, ranks):
    deadline = time.monotonic() + 30
    while len(found := processes_of(job)) < ranks:
        assert time.monotonic() < deadline and job.poll() is None, job.communicate()
        time.sleep(0.02)
    return found


def check_end(job, processes, within):
    begun = time.monotonic()
    output, errors = job.communicate(timeout=within + 30)
    assert time.monotonic() - begun < within, errors
    time.sleep(0.1)
    assert not any(is_there(process) for process in processes)
    return output, errors


def check_killed(work, store):
    """A rank is killed at a random moment; the run continues with another number of ranks, to the same result."""
    rng = random.Random(5)
    long = ["--epochs", "25", "--checkpoint-seconds", "0"]
    one = f"{work}/undisturbed"
    run(1, ["train", store, "--run", one, "--batches-per-step", "4", "--quiet"] + MODEL + long)
    for kill in range(KILLS):
        ranks = rng.choice([2, 3, 4])
        folder = pathlib.Path(f"{work}/killed-{kill}")
        job = start(ranks, ["train", store, "--run", str(folder), "--batches-per-step", "4", "--quiet"] + MODEL + long)
        processes = wait_for_ranks(job, ranks)
        victim = kill % ranks
        time.sleep(rng.uniform(0, 2))
        try:
            os.kill(processes[victim], signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, errors = check_end(job, processes, within=10)
        if not (folder / "last.safetensors").exists():
            shutil.rmtree(folder, ignore_errors=True)  # before its first checkpoint
            continue
        run(rng.choice([1, 2, 3]), ["train", "--run", str(folder), "--resume", "--quiet"])
        assert outcome(folder) == outcome(one), (kill, ranks, victim, errors)
        shutil.rmtree(folder)


def check_stopped(work, store):
    job = start(3, ["train", store, "--run", f"{work}/stopped", "--epochs", "100000", "--peer-timeout", "2", "--quiet"])
    processes = wait_for_ranks(job, 3)
    while not pathlib.Path(f"{work}/stopped/last.safetensors").exists():
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)
    os.kill(processes[2], signal.SIGSTOP)
    _, errors = check_end(job, processes, within=10)
    assert len(errors_of(errors)) == 1 and "rank 2 on" in errors_of(errors)[0], errors


def check_interrupted(work, store):
    """Ctrl-C at mpirun: saved, says how to continue, and the same result."""
    options = MODEL + ["--epochs", "1500", "--batches-per-step", "2"]  # mpirun passes the signal on after a second
    one, folder = f"{work}/whole", pathlib.Path(f"{work}/interrupted")
    run(1, ["train", store, "--run", one, "--quiet"] + options)
    job = start(2, ["train", store, "--run", str(folder)] + options)
    while not (folder / "metrics.jsonl").exists():
        assert job.poll() is None, job.communicate()
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    _, errors = check_end(job, [], within=10)
    assert "everything is saved" in errors and "--resume" in errors, errors
    run(1, ["train", "--run", str(folder), "--resume", "--quiet"])
    assert outcome(folder) == outcome(one)


def check_refusals(work, store):
    other = f"{work}/other"
    run(1, ["generate", other, "--nodes", "2000", "--quiet"])
    for arguments, said in ((["info", store], "runs in one process"), (["train", f"{work}/nothing"], "nothing"),
                            (["train", store, "--method", "vrgcn"], "history"), (["train", store, "--run", f"{work}/whole"], "already exists")):
        _, errors = run(2, arguments, status=1)
        assert len(errors_of(errors)) == 1 and said in errors_of(errors)[0], errors
    # The store differs between the ranks.
    contexts = ["-n", "1", PROGRAM, "train", store, "--run", f"{work}/refused", ":", "-n", "1", "--wdir", work, "/bin/sh", "-c",
                f"mkdir -p own && cd own && ln -sfn {other} graph && exec {PROGRAM} train graph"]
    link = pathlib.Path(work, "first")
    link.mkdir()
    (link / "graph").symlink_to(store)
    contexts = ["-n", "1", "--wdir", str(link), PROGRAM, "train", "graph", "--run", f"{work}/refused"] + contexts[contexts.index(":"):]
    process = start(2, [], contexts=contexts)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and len(errors_of(errors)) == 1 and "content of the graph store" in errors_of(errors)[0], errors
    assert not pathlib.Path(work, "refused").exists()
    _, errors = run(2, ["train", store], status=1, CLUSTERGCN_MPI_PLUGIN="/nowhere.so")
    assert len(errors_of(errors)) == 1 and "cannot be loaded" in errors, errors


def check_other_processor(work, store):
    """A rank whose OpenBLAS has other kernels: both take the same, and so can one process."""
    options = ["train", store, "--batches-per-step", "2", "--quiet"] + OPTIONS
    contexts = ["-n", "1", PROGRAM] + options + ["--run", f"{work}/mixed", ":", "-n", "1", "-x", "OPENBLAS_CORETYPE=Nehalem", PROGRAM] + options
    process = start(2, [], contexts=contexts)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (output, errors)
    run(1, options + ["--run", f"{work}/old"], OPENBLAS_CORETYPE="Haswell")
    assert outcome(f"{work}/mixed") == outcome(f"{work}/old")


def main():
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        sys.exit(77)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as work:
        begun = time.monotonic()
        store, model = check_same_bits(work)
        for check in (lambda: check_inference(work, store, model), lambda: check_interrupted(work, store), lambda: check_refusals(work, store),
                      lambda: check_other_processor(work, store), lambda: check_stopped(work, store), lambda: check_killed(work, store)):
            print(f"{time.monotonic() - begun:.1f} s", flush=True)
            check()
        print(f"{time.monotonic() - begun:.1f} s: all is as it should be")


if __name__ == "__main__":
    main()
