#!/usr/bin/env python3
"""Runs a command and prints its processor seconds and peak memory to stderr; for each rank under mpirun:

  mpirun -n 4 --bind-to none benchmarks/scaling/rank_usage.py build/release/clustergcn evaluate RUN --threads 1 --quiet
"""
import os
import resource
import subprocess
import sys

status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
print(f"rank {rank}: {used.ru_utime + used.ru_stime:.1f} s of processor time, {used.ru_maxrss / 1e3:.0f} MB", file=sys.stderr, flush=True)
sys.exit(status)
