#!/usr/bin/env bash
# Scores of clustergcn and of its PyTorch peer: the same store, partition, model and number of epochs, several seeds.
#
#   benchmarks/peers/compare_accuracy.sh STORE PARTS [MODEL OPTIONS …]
#   e.g. compare_accuracy.sh wordnet 100 --layers 3 --hidden 128 --per-batch 3 --epochs 30 --dropout 0.2
#
# Prints the test score (F1 micro) of the epoch that was best on validation, for SEEDS (default "1 2 3"). Dense features only.
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
for seed in ${SEEDS:-1 2 3}; do
  "$program" train "$store" --run "$run/$seed" --parts "$parts" --partition-name peers "$@" --seed "$seed" --eval-every 5 \
    --json >"$run/ours.json"
  /usr/bin/python3 "$root/benchmarks/peers/cluster_gcn_torch.py" "$store/partitions/peers" --store "$store" "$@" \
    --seed "$seed" --eval-every 5 >"$run/peer.json"
  /usr/bin/python3 - "$seed" "$run/ours.json" "$run/peer.json" <<'END'
import json, sys
ours, peer = (json.load(open(path)) for path in sys.argv[2:])
print(f"seed {sys.argv[1]}: clustergcn {100 * ours['test']['micro_f1']:.2f} %, PyTorch {100 * peer['best']['test']:.2f} %")
END
done
