#!/usr/bin/env bash
# Seconds per training epoch, clustergcn and its PyTorch peer on the same batches of the same graph, taken alternately.
#
#   benchmarks/peers/compare_speed.sh [SHAPE …]      ppi-3x512 (default), ppi-5x512, reddit-4x128, amazon2m-3x400, …
#
# Generates the graph of that shape and its partition under WORK (default: build/peers) unless they are there.
# ROUNDS (default 3) pairs are measured; each program trains EPOCHS epochs (default 4); the first counts only if it is the
# only one.
# DROPOUT_PLACE (default: "before after"): dropout before aggregation and none on the features, where PyTorch is fastest,
# or on the aggregated input, which is clustergcn's default.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"
work=${WORK:-$root/build/peers}
rounds=${ROUNDS:-3}
epochs=${EPOCHS:-4}
program=${CLUSTERGCN:-$root/build/release/clustergcn}
libraries=/usr/lib/$(uname -m)-linux-gnu
[ -x "$program" ] || fail "$program is not there" "try: ./run.sh --version builds it"
/usr/bin/python3 -c 'import torch' 2>/dev/null || fail "PyTorch is missing" "try: tools/install-packages.sh extras"
for file in "$libraries/openblas-openmp/libopenblas.so.0" "$libraries/libtcmalloc_minimal.so.4"; do
  [ -e "$file" ] || fail "$file is missing" "try: tools/install-packages.sh extras"
done
# Debian 12's OpenBLAS takes its slowest kernels on processors it does not know; clustergcn corrects that by itself.
if grep -qm 1 avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
mkdir -p "$work"

# The fastest that PyTorch can be started: OpenBLAS's pthread build would fight with PyTorch's own threads.
start_peer() {
  OMP_PROC_BIND=true LD_LIBRARY_PATH=$libraries/openblas-openmp LD_PRELOAD=$libraries/libtcmalloc_minimal.so.4 \
    /usr/bin/python3 "$root/benchmarks/peers/cluster_gcn_torch.py" "$@"
}

compare() {
  local shape=$1 place=$2 data layers hidden parts per_batch round
  [[ $shape =~ ^(ppi|reddit|amazon2m)-([0-9]+)x([0-9]+)$ ]] || fail "unknown shape '$shape'" "try: ppi-3x512, reddit-4x128, amazon2m-3x400"
  data=${BASH_REMATCH[1]} layers=${BASH_REMATCH[2]} hidden=${BASH_REMATCH[3]}
  case $data in
    ppi) parts=50 per_batch=1 ;;
    reddit) parts=1500 per_batch=20 ;;
    amazon2m) parts=15000 per_batch=10 ;;
  esac
  local store=$work/$data partition=(--parts "$parts" --partitioner metis --partition-name peers)
  local model=(--layers "$layers" --hidden "$hidden" --per-batch "$per_batch" --dropout 0.2 --dropout-place "$place")
  if [ "$place" = before ]; then model+=(--input-dropout 0); fi
  [ -d "$store" ] || "$program" generate "$store" --like "$data" --quiet >/dev/null
  [ -d "$store/partitions/peers" ] || "$program" partition "$store" "${partition[@]}" --quiet >/dev/null
  : >"$work/ours"
  : >"$work/peer"
  for ((round = 0; round < rounds; ++round)); do
    rm -rf "$work/run"
    "$program" train "$store" --recipe none --run "$work/run" "${partition[@]}" "${model[@]}" --epochs "$epochs" --eval-every 1000000 --quiet >/dev/null
    cat "$work/run/metrics.jsonl" >>"$work/ours"
    start_peer "$store/partitions/peers" "${model[@]}" --epochs "$epochs" >>"$work/peer"
  done
  /usr/bin/python3 - "$shape" "$place" "$work/ours" "$work/peer" <<'END'
import json, statistics, sys
shape, place, ours, peer = sys.argv[1:]
lines = [json.loads(line) for line in open(ours)]
first = 1 if max(line["epoch"] for line in lines) > 1 else 0
ours = [line["seconds"] for line in lines if line["epoch"] > first]
peer = [seconds for line in open(peer) for seconds in json.loads(line)["epoch_seconds"][first:]]
print("%-16s dropout %-7s" % (shape, place), end="")
for name, of in (("best", min), ("median", statistics.median)):
    print("%s: clustergcn %.3f s, PyTorch %.3f s, ratio %.2f   " % (name, of(ours), of(peer), of(peer) / of(ours)), end="")
print(flush=True)
END
}

[ $# -gt 0 ] || set -- ppi-3x512
for shape in "$@"; do
  for place in ${DROPOUT_PLACE:-before after}; do compare "$shape" "$place"; done
done
