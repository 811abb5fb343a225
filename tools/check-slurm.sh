#!/usr/bin/env bash
# Trains under Slurm on three nodes that are slurmd processes of this machine, and compares with one process: the same bits; a rank that is
# killed, one that is stopped, and a run that is interrupted and resumed. As root, with Debian's slurmd, slurmctld, slurm-client and munge.
#
#   tools/check-slurm.sh [BUILD]      (default: build/release; its plugin is built for Open MPI)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(cd "${1:-$root/build/release}" && pwd)/clustergcn
fail() { echo "error: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "Slurm's daemons need root"
for tool in munged slurmctld slurmd srun; do command -v $tool >/dev/null || fail "$tool is missing: apt-get install slurmd slurmctld slurm-client munge"; done
[ -f "$(dirname "$program")/libclustergcn-mpi.so" ] || fail "the build has no libclustergcn-mpi.so"
work=$(mktemp -d)
chmod 755 "$work"
nodes=(1 2 3)

clean_up() {
  for file in "$work"/*.pid; do [ ! -f "$file" ] || kill "$(cat "$file")" 2>/dev/null || true; done
  sleep 1
  rm -rf "$work"
}
trap clean_up EXIT

mkdir "$work/state" "$work/spool" "$work/munge"
for n in "${nodes[@]}"; do mkdir "$work/tmp-node$n"; done  # PMIx of several nodes in one folder is in its own way
cat >"$work/slurm.conf" <<CONF
ClusterName=check
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
TmpFS=$work/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
KillWait=3
NodeName=node[1-3] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[27001-27003] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
export SLURM_CONF=$work/slurm.conf
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
chmod 400 "$work/munge/key"
munged --force --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munged.pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed"
slurmctld
for n in "${nodes[@]}"; do unshare --uts sh -c "hostname node$n; exec slurmd -N node$n"; done
for _ in $(seq 30); do [ "$(sinfo -h -t idle -o %D)" = 3 ] && break; sleep 1; done
[ "$(sinfo -h -t idle -o %D)" = 3 ] || { sinfo; fail "the nodes are not there"; }

step() { srun --kill-on-bad-exit=1 --nodes "$1" --ntasks-per-node 1 --mpi=pmix "$program" "${@:2}"; }
numbers() { python3 -c 'import hashlib, struct, sys
raw = open(sys.argv[1], "rb").read()
print(hashlib.sha256(raw[8 + struct.unpack("<Q", raw[:8])[0]:]).hexdigest())' "$1/last.safetensors"; }
same() { [ "$(numbers "$work/one")" = "$(numbers "$work/$1")" ] || fail "$1 has other weights than one process"; }

"$program" generate "$work/graph" --nodes 3000 --quiet >/dev/null
options=(--hidden 24 --parts 14 --per-batch 1 --layers 3 --epochs 400 --batches-per-step 6 --checkpoint-seconds 0 --keep last --quiet)
"$program" train "$work/graph" --run "$work/one" "${options[@]}" >/dev/null
echo "three nodes"
step 3 train "$work/graph" --run "$work/three" "${options[@]}" >"$work/log" 2>&1 || { cat "$work/log"; fail "training on three nodes"; }
same three

# disturb RUN SIGNAL: rank 2 gets it in the middle; the time until the job has ended.
rank_of() { tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n 's/^SLURM_PROCID=//p'; }
disturb() {
  step 3 train "$work/graph" --run "$work/$1" "${options[@]}" --peer-timeout 5 >"$work/log" 2>&1 &
  local job=$! process begun
  until [ -f "$work/$1/metrics.jsonl" ]; do kill -0 "$job" || { cat "$work/log"; fail "the job ended early"; }; sleep 0.05; done
  if [ "$2" = INT ]; then
    scancel --signal=INT "$(squeue -h -o %i)"
  else
    for process in $(pgrep -x clustergcn); do
      [ "$(rank_of "$process")" != 2 ] || [ "$(readlink "/proc/$process/exe")" != "$program" ] || kill "-$2" "$process"
    done
  fi
  begun=$(date +%s)
  wait "$job" && fail "the job ended well after $2"
  echo "ended $(($(date +%s) - begun)) s after $2"
  [ $(($(date +%s) - begun)) -le 15 ] || fail "that is too long"
  sleep 2
  ! pgrep -f "$work/$1" >/dev/null || fail "processes are left"
}
disturb killed KILL
disturb stopped STOP
[ "$(grep -c '^error: rank 2 on node3' "$work/log")" = 1 ] || { cat "$work/log"; fail "not one message"; }
disturb interrupted INT
grep -q 'everything is saved' "$work/log" || { cat "$work/log"; fail "it does not say that it is saved"; }
for run in killed stopped interrupted; do
  step 2 train --run "$work/$run" --resume --quiet >"$work/log" 2>&1 || { cat "$work/log"; fail "resuming $run on two nodes"; }
  same "$run"
done
echo "three nodes train as one process does; killed, stopped and interrupted runs end, and continue to the same weights"
