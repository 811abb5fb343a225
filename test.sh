#!/usr/bin/env bash
# Builds clustergcn, after installing what that needs, and runs its tests.
#
#   ./test.sh                everything but alone, in less than 25 minutes on two cores
#   ./test.sh PART …         only these parts:
#     unit     the tests of every module (release build)
#     asan     the same with AddressSanitizer and UndefinedBehaviorSanitizer, without the slow ones and the commands
#     tsan     the threaded parts with ThreadSanitizer
#     fuzz     each parser's fuzzer, for a bounded time
#     format   clang-format
#     alone    every source parsed by itself, so that a missing include is seen (8 minutes on two cores)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"

default_parts=(format unit asan tsan fuzz)
all_parts=("${default_parts[@]}" alone)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${default_parts[@]}")
for part in "${parts[@]}"; do
  [[ " ${all_parts[*]} " == *" $part "* ]] || fail "unknown part '$part'" "hint: ${all_parts[*]}"
done

"$root/tools/install-packages.sh" build tests python mpi
build=$(build_root)
check_machine 5000
passed=0
failed=0
skipped=0
jobs=$(nproc)

note() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }

# run_ctest PRESET ARGUMENTS …: runs, shows what failed, adds to the counts.
run_ctest() {
  local log=$build/$1-tests.log folder=$build/$1 total bad
  shift
  # shellcheck disable=SC2086
  ${ctest_wrapper:-} ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error "$@" >"$log" 2>&1 || {
    grep -q 'tests failed out of' "$log" || failed=$((failed + 1))  # ctest itself could not run
    sed -n '/\*\*\*Failed\|\*\*\*Exception\|\*\*\*Timeout/,$p' "$log" | tail -n 200
  }
  total=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p; s/.*tests passed, 0 tests failed out of \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  bad=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of.*/\1/p' "$log" | tail -n 1)
  local jumped
  jumped=$(grep -c '\*\*\*Skipped' "$log" || true)
  passed=$((passed + ${total:-0} - ${bad:-0} - jumped))
  failed=$((failed + ${bad:-0}))
  skipped=$((skipped + jumped))
  tail -n 1000 "$log" | grep 'tests passed' || tail -n 5 "$log"
}

count() { if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

build_unit() { build_preset release all -DCGCN_TESTS=ON -DCGCN_BENCHMARKS=ON; }

run_unit() {
  build_unit
  run_ctest release
}

# The other builds compile several sources of a module as one.
run_alone() {
  configure_preset debug -DCGCN_TESTS=OFF -DCGCN_BENCHMARKS=OFF
  local status=0
  "$root/tools/check-alone.py" "$build/debug" || status=$?
  count $status
}

# Whole choices of settings: trainings of which other tests have the parts.
long_trials='SettingsTest.(Neighbours|ANodesOwn|WhatIsGiven)'

# Bits that do not depend on threads: ThreadSanitizer runs that.
run_asan() {
  build_preset asan unit_tests
  run_ctest asan -LE 'slow|cli|faults|mpi' -E "^test_cli_NOT_BUILT\$|^Likeness.Depth|InBFloat16IsNearFiniteDifferences|ToTheSameBitsForAnyNumberOfThreads|$long_trials"
}

# Modules whose code runs on several threads.
run_tsan() {
  local modules=(common kernels graph batch nn partition engine) targets=() name
  for name in "${modules[@]}"; do targets+=("test_$name"); done
  build_preset tsan "${targets[*]}"
  # Products are calls of one thread; training has them on several.
  # Kernels that spread addresses more widely than ThreadSanitizer expects make it stop; without spreading it runs.
  local fixed=()
  setarch -R true 2>/dev/null && fixed=(setarch -R)
  ctest_wrapper="${fixed[*]}" run_ctest tsan -LE slow -L "^($(IFS='|' && echo "${modules[*]}"))$" -E '^Likeness|DeathTest|MemoryIs|AHubOfAMillion|FuzzedGraphs|RealGraphs|AwkwardGraphs|AFailureBesideIt|LayoutsOfRandom|InBFloat16IsNearFiniteDifferences|BFloat16Products|TileProduct|'"$long_trials"
}

run_fuzz() {
  [ -x "$root/tools/fuzz.sh" ] || { note "no fuzzers there"; return; }
  local status=0
  "$root/tools/fuzz.sh" || status=$?
  count $status
}

# Other versions of clang-format break lines elsewhere; the code follows version 14's.
run_format() {
  if ! clang-format --version | grep -q 'version 14\.'; then
    skipped=$((skipped + 1))
    note "skipped: clang-format 14 is wanted, this is $(clang-format --version | grep -o 'version [0-9.]*')"
    return
  fi
  local unformatted
  unformatted=$(cd "$root" && find src tests benchmarks -name '*.h' -o -name '*.cc' | sort | tr '\n' '\0' |
    xargs -0 clang-format --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort -u)
  [ -z "$unformatted" ] || printf 'clang-format would change these:\n%s\n' "$unformatted"
  count "${#unformatted}"
}

started=$(date +%s)
for part in "${parts[@]}"; do
  note "$part"
  "run_$part"
done
note "took $(($(date +%s) - started)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
