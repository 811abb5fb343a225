#!/usr/bin/env python3
"""Groups that mpirun starts: sums, failures, killed and stopped processes, and a program without the plugin.

  mpirun_test.py DIST_PROBE
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROBE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
# Ranks share the cores of this machine, and root may run them.
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                   OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_btl_vader_single_copy_mechanism="none")


def mpirun(ranks, command, **variables):
    return subprocess.Popen(["mpirun", "-n", str(ranks)] + command, env={**ENVIRONMENT, **variables}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(ranks, command, status=0, **variables):
    process = mpirun(ranks, command, **variables)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode == 0) == (status == 0), (process.returncode, output, errors)
    return output, errors


def errors_of(text):
    """Our own messages; mpirun has some of its own."""
    return [line for line in text.splitlines() if line.startswith("error: ")]


def check_sums():
    alone = subprocess.run([PROBE, "sums"], text=True, capture_output=True, check=True).stdout
    assert len(alone) == 33, alone
    for ranks in 2, 3, 4:
        output, _ = run(ranks, [PROBE, "sums"])
        assert output == alone, (ranks, output, alone)


def check_failures():
    for ranks, failing in (2, 0), (3, 2):
        for how in "fail", "fail-together", "version":
            if how == "version" and failing == 0:
                continue
            _, errors = run(ranks, [PROBE, how, str(failing)], status=1)
            found = errors_of(errors)
            assert len(found) == 1, (how, ranks, failing, errors)
            assert ("fails" in found[0] and f"rank {failing} on" in found[0]) if how != "version" else ("differs" in found[0]), found


def hold(folder, ranks, **variables):
    """A job that computes, and its processes by rank."""
    file = pathlib.Path(folder) / f"processes-{time.monotonic_ns()}"
    job = mpirun(ranks, [PROBE, "hold", str(file)], **variables)
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline and job.poll() is None, job.communicate()
        time.sleep(0.02)
    return job, [int(line) for line in file.read_text().split()]


def is_there(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def check_end(job, processes, within):
    begun = time.monotonic()
    _, errors = job.communicate(timeout=within + 20)
    took = time.monotonic() - begun
    assert job.returncode != 0 and took < within, (job.returncode, took, errors)
    time.sleep(0.1)
    assert not any(is_there(process) for process in processes), errors
    return errors


def check_killed(folder):
    for rank in 0, 2:
        job, processes = hold(folder, 3)
        os.kill(processes[rank], signal.SIGKILL)
        errors = check_end(job, processes, within=10)
        assert f"rank {rank}" in errors, errors


def check_stopped(folder):
    for rank in 0, 2:
        job, processes = hold(folder, 3, PROBE_TIMEOUT="2")
        os.kill(processes[rank], signal.SIGSTOP)
        errors = check_end(job, processes, within=10)
        found = errors_of(errors)
        assert len(found) == 1 and f"rank {rank} on" in found[0] and "no sign of life" in found[0], errors


def check_without_plugin():
    _, errors = run(2, [PROBE, "sums"], status=1, CLUSTERGCN_MPI_PLUGIN="/nowhere/libclustergcn-mpi.so")
    assert len(errors_of(errors)) == 1 and "cannot be loaded" in errors and "install-packages.sh mpi" in errors, errors


def main():
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for check in check_sums, check_failures, lambda: check_killed(folder), lambda: check_stopped(folder), check_without_plugin:
            begun = time.monotonic()
            check()
            print(f"{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
