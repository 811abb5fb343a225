#!/usr/bin/env python3
"""Training on METIS's clusters and on the multilevel partitioner's: test scores of five seeds, of the partition and of the training.

    benchmarks/partition/compare_training.py PROGRAM STORE [options of train …]
"""
import json
import statistics
import subprocess
import sys
import tempfile

if len(sys.argv) < 3:
    sys.exit(__doc__)
program, store, options = sys.argv[1], sys.argv[2], sys.argv[3:]
for method in ("metis", "multilevel"):
    scores = []
    for seed in ("1", "2", "3", "4", "5"):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([program, "train", store, "--recipe", "none", "--run", folder + "/run", "--partitioner", method, "--seed", seed,
                                  "--partition-seed", seed, "--json", *options], capture_output=True, text=True, check=False)
            if run.returncode != 0:
                sys.exit(run.stderr)
            scores.append(100 * json.loads(run.stdout)["test"]["micro_f1"])
    print(f"{method}: {statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} ({', '.join(f'{score:.2f}' for score in scores)})",
          flush=True)
