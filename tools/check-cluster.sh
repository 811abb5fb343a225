#!/usr/bin/env bash
# Trains on four hosts that are network namespaces of this machine, with mpirun (and its default settings) across them, and compares with one
# process: the same bits, also over links of 100 Mbit/s; a link that is cut in the middle, to a host and to the first one; resuming on the hosts that
# are left. As root, with MPI installed.
#
#   tools/check-cluster.sh [BUILD]      (default: build/release)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(cd "${1:-$root/build/release}" && pwd)/clustergcn
[ "$(id -u)" = 0 ] || { echo "error: network namespaces need root" >&2; exit 1; }
[ -f "$(dirname "$program")/libclustergcn-mpi.so" ] || { echo "error: the build has no libclustergcn-mpi.so" >&2; exit 1; }
work=$(mktemp -d)
prefix=cgcn$$
hosts=(0 1 2 3)
name() { echo "$prefix-$1"; }

clean_up() {
  for h in "${hosts[@]}"; do
    ip netns pids "$(name "$h")" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$(name "$h")" 2>/dev/null || true
    rm -rf "/etc/netns/$(name "$h")"
  done
  ip link del "$prefix-br" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

ip link add "$prefix-br" type bridge
ip link set "$prefix-br" up
for h in "${hosts[@]}"; do
  ip netns add "$(name "$h")"
  ip link add "$prefix-v$h" type veth peer name eth0 netns "$(name "$h")"
  ip link set "$prefix-v$h" master "$prefix-br" up
  ip -n "$(name "$h")" addr add "10.77.0.$((h + 1))/24" dev eth0
  ip -n "$(name "$h")" link set eth0 up
  ip -n "$(name "$h")" link set lo up
  mkdir -p "/etc/netns/$(name "$h")"
  { echo "127.0.0.1 localhost"; for other in "${hosts[@]}"; do echo "10.77.0.$((other + 1)) $(name "$other")"; done; } >"/etc/netns/$(name "$h")/hosts"
  echo "$(name "$h") slots=1" >>"$work/hosts"
done

# What mpirun starts its daemons with, in place of ssh.
cat >"$work/agent" <<'AGENT'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
AGENT
chmod +x "$work/agent"

# on_hosts N ARGUMENTS …: clustergcn on the first N hosts.
on_hosts() {
  local count=$1
  shift
  ip netns exec "$(name 0)" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$(name 0)" \
    env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    mpirun --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
    --bind-to none --hostfile "$work/hosts" -n "$count" "$program" "$@"
}
numbers() { python3 -c 'import hashlib, struct, sys
raw = open(sys.argv[1], "rb").read()
print(hashlib.sha256(raw[8 + struct.unpack("<Q", raw[:8])[0]:]).hexdigest())' "$1/last.safetensors"; }
fail() { echo "error: $*" >&2; exit 1; }

"$program" generate "$work/graph" --nodes 20000 --edges 200000 --quiet >/dev/null
options=(--recipe none --layers 3 --hidden 128 --epochs 60 --batches-per-step 4 --checkpoint-seconds 0 --keep last --quiet)
"$program" train "$work/graph" --run "$work/one" "${options[@]}" >/dev/null
echo "four hosts"
on_hosts 4 train "$work/graph" --run "$work/four" "${options[@]}" >"$work/log" 2>&1 || { cat "$work/log"; fail "training on four hosts"; }
[ "$(numbers "$work/one")" = "$(numbers "$work/four")" ] || fail "four hosts have other weights than one process"

echo "links of 100 Mbit/s"
shape() { for h in "${hosts[@]}"; do ip netns exec "$(name "$h")" tc qdisc "$@"; done; }
shape add dev eth0 root tbf rate 100mbit burst 64kb latency 50ms
on_hosts 4 train "$work/graph" --run "$work/slow" "${options[@]}" >"$work/log" 2>&1 || { cat "$work/log"; fail "training over slow links"; }
[ "$(numbers "$work/one")" = "$(numbers "$work/slow")" ] || fail "slow links change the weights"
shape del dev eth0 root

# cut HOST RUN: the job ends in time, with one message, and leaves no process. HOST is the one whose link is cut.
timeout=8
cut() {
  on_hosts 4 train "$work/graph" --run "$2" "${options[@]}" --peer-timeout $timeout >"$work/log" 2>&1 &
  local job=$! guard begun took
  until [ -f "$2/metrics.jsonl" ] && [ "$(wc -l <"$2/metrics.jsonl")" -ge 3 ]; do
    kill -0 "$job" || { cat "$work/log"; fail "the job ended early"; }
    sleep 0.1
  done
  ip link set "$prefix-v$1" down
  begun=$(date +%s)
  ( sleep 120; for h in "${hosts[@]}"; do ip netns pids "$(name "$h")" | xargs -r kill -9; done ) & guard=$!
  wait "$job" && fail "the job ended well without one of its hosts"
  took=$(($(date +%s) - begun))
  kill "$guard" 2>/dev/null || true
  [ "$(grep -c '^error: ' "$work/log")" = 1 ] || { cat "$work/log"; fail "not one message"; }
  grep '^error: ' "$work/log"
  echo "ended $took s after the cut"
  [ "$took" -le $((timeout + 10)) ] || fail "it took $took s"
  sleep 15  # the other side notices by itself, a little later
  for h in "${hosts[@]}"; do [ -z "$(ip netns pids "$(name "$h")")" ] || fail "processes are left on host $h"; done
  ip link set "$prefix-v$1" up
}
echo "a link that is cut: the first host"
cut 0 "$work/cut-first"
echo "a link that is cut: another host"
cut 2 "$work/cut"

echo "resuming on three hosts"
sed -i "/$(name 2)/d" "$work/hosts"
on_hosts 3 train --run "$work/cut" --resume --quiet >"$work/log" 2>&1 || { cat "$work/log"; fail "resuming on three hosts"; }
[ "$(numbers "$work/one")" = "$(numbers "$work/cut")" ] || fail "the resumed run has other weights than the undisturbed one"
echo "four hosts train as one process does; a cut link ends the job, and the run continues to the same weights"
