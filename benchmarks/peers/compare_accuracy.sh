#!/usr/bin/env bash
# Scores of clustergcn and of its PyTorch peer: the same store, partition, model and number of epochs, several seeds.
#
#   benchmarks/peers/compare_accuracy.sh STORE PARTS [MODEL OPTIONS …]
#   e.g. compare_accuracy.sh wordnet 100 --layers 3 --hidden 128 --per-batch 3 --epochs 30 --dropout 0.2
#
# Prints the test score (F1 micro) of the epoch that was best on validation, for SEEDS (default "1 2 3 4 5"), and the means.
# PARTITION="--transductive" trains on the graph of all nodes.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"
[ $# -ge 2 ] || fail "a store and a number of clusters are needed" "try: $0 STORE PARTS [MODEL OPTIONS …]"
store=$1 parts=$2
shift 2
program=${CLUSTERGCN:-$root/build/release/clustergcn}
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
if grep -qm 1 avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
for seed in ${SEEDS:-1 2 3 4 5}; do
  # shellcheck disable=SC2086
  "$program" train "$store" --recipe none --run "$run/$seed" --parts "$parts" --partition-name peers ${PARTITION:-} "$@" --seed "$seed" --eval-every 5 \
    --json >"$run/ours.json"
  /usr/bin/python3 "$root/benchmarks/peers/cluster_gcn_torch.py" "$store/partitions/peers" --store "$store" "$@" \
    --seed "$seed" --eval-every 5 >"$run/peer.json"
  /usr/bin/python3 - "$seed" "$run/ours.json" "$run/peer.json" "$run/scores" <<'END'
import json, sys
seed, ours, peer, scores = sys.argv[1:]
pair = [100 * json.load(open(ours))["test"]["micro_f1"], 100 * json.load(open(peer))["best"]["test"]]
open(scores, "a").write("%f %f\n" % tuple(pair))
print("seed %s: clustergcn %.2f %%, PyTorch %.2f %%" % (seed, *pair), flush=True)
END
done
/usr/bin/python3 - "$run/scores" <<'END'
import statistics, sys
for name, values in zip(("clustergcn", "PyTorch"), zip(*(map(float, line.split()) for line in open(sys.argv[1])))):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    print(f"{name}: {statistics.mean(values):.2f} ± {deviation:.2f} %")
END
