# What run.sh and test.sh share: where to build, whether the machine is large enough, and the build itself.
# Sourced, with `root` set to the source folder and `build` to build_root's answer.
# shellcheck shell=bash disable=SC2154

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# The build lives in the source folder, or in the user's cache if that cannot be written.
build_root() {
  if [ -w "$root" ] || { [ -d "$root/build" ] && [ -w "$root/build" ]; }; then
    echo "$root/build"
  else
    echo "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/clustergcn/build-$(printf %s "$root" | cksum | cut -d' ' -f1)"
  fi
}

memory_mb() { awk -v key="$1:" '$1 == key {print int($2 / 1024)}' /proc/meminfo; }

# Jobs that the memory carries: the largest source takes about 1 GiB to compile.
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(($(memory_mb MemAvailable) / 1000))
  [ "$memory" -ge 1 ] || memory=1
  echo $((memory < cores ? memory : cores))
}

# check_machine NEEDED_DISK_MB: tells early what would otherwise be a full disk or a killed compiler.
check_machine() {
  local free memory
  mkdir -p "$build" 2>/dev/null || fail "cannot write to $build" "hint: a folder of your own, or free some space"
  free=$(df -Pm "$build" | awk 'NR == 2 {print $4}')
  if [ "$free" -lt "$1" ] && [ ! -f "$build/release/CMakeCache.txt" ]; then
    fail "only $free MiB are free in $build; the build takes about $1 MiB" "hint: free some space"
  fi
  memory=$(($(memory_mb MemAvailable) + $(memory_mb SwapFree)))
  if [ "$memory" -lt 1000 ]; then
    echo "warning: only $memory MiB of memory are free; compiling may take 1 GiB" >&2
  fi
}

# configure_preset PRESET [cmake options]: quiet unless it fails.
configure_preset() {
  local preset=$1 folder=$build/$1 log=$build/$1.log
  shift
  (cd "$root" && cmake --preset "$preset" -B "$folder" "$@") >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    fail "the $preset build could not be configured (whole log: $log)" \
      "hint: remove $folder and start again"
  }
}

# build_preset PRESET TARGETS [cmake options]: likewise; on a terminal ninja shows one moving line.
build_preset() {
  local preset=$1 targets=$2 folder=$build/$1 log=$build/$1.log
  shift 2
  configure_preset "$preset" "$@"
  if [ -t 1 ]; then
    # shellcheck disable=SC2086
    NINJA_STATUS="building $preset [%f/%t, %e s] " ninja -C "$folder" -j "$(job_count)" $targets ||
      fail "the $preset build failed"
  else
    # shellcheck disable=SC2086
    ninja -C "$folder" -j "$(job_count)" $targets >"$log" 2>&1 || {
      grep -A 25 -m 3 'FAILED' "$log" >&2 || tail -n 30 "$log" >&2
      fail "the $preset build failed (whole log: $log)"
    }
  fi
}
