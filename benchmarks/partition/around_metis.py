#!/usr/bin/env python3
"""What surrounds METIS in `clustergcn partition`, as a share of METIS's own time in the same run.

    benchmarks/partition/around_metis.py PROGRAM STORE PARTS [Q]

Prints seconds and peak memory of each stage, and the ratio. The partition and A·X are made again each time. A·X of all nodes is
computed on the other cores while METIS has one, and METIS is a little slower for it; METIS alone is timed as well, and the ratio given
against that too.
"""
import json
import subprocess
import sys

if len(sys.argv) < 4:
    sys.exit(__doc__)
program, store, parts = sys.argv[1:4]
q = sys.argv[4] if len(sys.argv) > 4 else "1"


def partition(*options):
    run = subprocess.run([program, "partition", store, "--parts", parts, "--per-batch", q, "--partitioner", "metis", "--force", "--json", *options],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


alone = next(stage["seconds"] for stage in partition("--aggregate", "none")["stages"] if stage["stage"] == "METIS")
report = partition()
around = report["preprocessing_seconds"]
for stage in report["stages"]:
    print(f"{stage['stage']:30} {stage['seconds']:8.2f} s {stage['peak_rss'] / 2**20:10.0f} MiB")
metis = next(stage["seconds"] for stage in report["stages"] if stage["stage"] == "METIS")
quality = report["quality"]
print(f"around METIS: {around:.2f} s, {around / metis:.3f} of its {metis:.2f} s")
print(f"METIS alone: {alone:.2f} s; all but METIS alone: {metis + around - alone:.2f} s, {(metis + around - alone) / alone:.3f} of it")
print(f"on disk: {report['bytes'] / report['store_bytes']:.3f} x the store")
print(f"edges kept {100 * quality['links_kept_share']:.1f} %, balance {quality['balance']:.3f}, "
      f"entropy {quality['label_entropy']['mean']:.2f} bits (random {quality['label_entropy']['random_mean']:.2f})")
