#!/usr/bin/env bash
# Fuzzes every parser for a bounded time on the kept corpus.
#   tools/fuzz.sh                         5 seconds each, all parsers, the same inputs in the same order every time
#   tools/fuzz.sh SECONDS [PARSER…]       new inputs, to search for what is not known yet; a long run: tools/fuzz.sh 600
# A failing input is left in build/fuzz/crashes; once mended, keep it in tests/fuzz/corpus/<parser>/.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
seed=$([ $# -eq 0 ] && echo 1 || echo 0)  # 0: another every time
shift || true
for compiler in clang++ clang++-14 clang++-15 clang++-16 clang++-19; do
  command -v "$compiler" >/dev/null && break
done
command -v "$compiler" >/dev/null || { echo "fuzzing needs clang (apt-get install clang)" >&2; exit 1; }
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
cmake --build build/fuzz --target fuzzers -- -k 0
mkdir -p build/fuzz/crashes
parsers=("$@")
if [ ${#parsers[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cc; do
    parser=$(basename "$source" .cc)
    parsers+=("${parser#fuzz_}")
  done
fi
for parser in "${parsers[@]}"; do
  found=build/fuzz/found/$parser log=build/fuzz/$parser.log
  if [ "$seed" -ne 0 ]; then found=build/fuzz/fixed/$parser && rm -rf "$found"; fi  # what earlier runs found would lead elsewhere
  mkdir -p "$found" "tests/fuzz/corpus/$parser"
  # Every kept input once, then new ones until the time is up.
  if ! "build/fuzz/tests/fuzz/fuzz_$parser" -seed="$seed" -max_total_time="$seconds" -max_len=8192 -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -artifact_prefix="build/fuzz/crashes/$parser-" -print_final_stats=1 \
    "$found" "tests/fuzz/corpus/$parser" >"$log" 2>&1; then
    tail -40 "$log" >&2
    echo "error: $parser failed; the input is in build/fuzz/crashes" >&2
    exit 1
  fi
  printf '%-12s %s inputs tried in %s s, no failure\n' "$parser" \
    "$(sed -n 's/stat::number_of_executed_units: *//p' "$log")" "$seconds"
done
