#!/usr/bin/env bash
# Seconds per training epoch, clustergcn and its PyTorch peer on the same batches of the same graph, taken alternately.
#
#   benchmarks/peers/compare_speed.sh [ppi] [reddit] [amazon2m]      default: ppi
#
# Generates the graph of that shape and its partition under WORK (default: build/peers) unless they are there.
# ROUNDS (default 3) pairs are measured; each program trains EPOCHS epochs (default 4), the first does not count.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"
work=${WORK:-$root/build/peers}
rounds=${ROUNDS:-3}
epochs=${EPOCHS:-4}
program=${CLUSTERGCN:-$root/build/release/clustergcn}
peer=$root/benchmarks/peers/cluster_gcn_torch.py
[ -x "$program" ] || fail "$program is not there" "try: ./run.sh --version builds it"
/usr/bin/python3 -c 'import torch' 2>/dev/null || fail "PyTorch is missing" "try: tools/install-packages.sh extras"
# Debian 12's OpenBLAS takes its slowest kernels on processors it does not know; clustergcn corrects that by itself.
if grep -qm 1 avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
mkdir -p "$work"

median() { sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }

compare() {
  local shape=$1 model=$2 parts=$3 store=$work/$1 partition=$work/$1/partitions/peers round
  [ -d "$store" ] || "$program" generate "$store" --like "$shape"
  [ -d "$partition" ] || "$program" partition "$store" --parts "$parts" --partitioner metis --partition-name peers
  : >"$work/$shape.ours"
  : >"$work/$shape.peer"
  for ((round = 0; round < rounds; ++round)); do
    rm -rf "$work/run"
    # shellcheck disable=SC2086
    "$program" train "$store" --recipe none --run "$work/run" --parts "$parts" --partitioner metis --partition-name peers $model --epochs "$epochs" \
      --eval-every 1000000 --quiet >/dev/null
    /usr/bin/python3 -c 'import json, sys
for line in list(open(sys.argv[1]))[1:]: print(json.loads(line)["seconds"])' "$work/run/metrics.jsonl" >>"$work/$shape.ours"
    # shellcheck disable=SC2086
    /usr/bin/python3 "$peer" "$partition" $model --epochs "$epochs" |
      /usr/bin/python3 -c 'import json, sys
for seconds in json.load(sys.stdin)["epoch_seconds"][1:]: print(seconds)' >>"$work/$shape.peer"
  done
  awk -v shape="$shape" -v model="$model" -v ours="$(median <"$work/$shape.ours")" -v peer="$(median <"$work/$shape.peer")" \
    'BEGIN {printf "%-9s %s\n          clustergcn %.3f s per epoch, PyTorch %.3f s: %.1f times\n", shape, model, ours, peer, peer / ours}'
}

[ $# -gt 0 ] || set -- ppi
for shape in "$@"; do
  case $shape in
    ppi) compare ppi "--layers 3 --hidden 512 --per-batch 1 --dropout 0.2" 50 ;;
    reddit) compare reddit "--layers 4 --hidden 128 --per-batch 20 --dropout 0.2" 1500 ;;
    amazon2m) compare amazon2m "--layers 3 --hidden 400 --per-batch 10 --dropout 0.2" 15000 ;;
    *) fail "unknown shape '$shape'" "try: ppi, reddit, amazon2m" ;;
  esac
done
