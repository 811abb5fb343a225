#!/usr/bin/env bash
# Fuzzes every parser for a bounded time, from the inputs kept in tests/fuzz/corpus. As many at once as there are processors.
#   tools/fuzz.sh                         5 seconds per parser, the same inputs in the same order every time
#   tools/fuzz.sh SECONDS [PARSER…]       new inputs, to search for unknown bugs
#   tools/fuzz.sh nightly [PARSER…]       the same for an hour in all
#   tools/fuzz.sh keep [PARSER…]          adds what was found to the kept inputs, as few and small ones as reach the same code
# A failing input is left in build/fuzz/crashes; once fixed, keep it in tests/fuzz/corpus/PARSER/ under a name that says what it is.
# tests/fuzz/corpus/PARSER.tar.gz holds what fuzzing found.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-5}
seed=$([ $# -eq 0 ] && echo 1 || echo 0)  # 0: another every time
shift || true
for compiler in clang++ clang++-14 clang++-15 clang++-16 clang++-19; do
  command -v "$compiler" >/dev/null && break
done
command -v "$compiler" >/dev/null || { echo "fuzzing needs clang (apt-get install clang)" >&2; exit 1; }
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
parsers=("$@")
if [ ${#parsers[@]} -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cc; do
    parser=$(basename "$source" .cc)
    parsers+=("${parser#fuzz_}")
  done
fi
cmake --build build/fuzz --target "${parsers[@]/#/fuzz_}" -- -k 0
mkdir -p build/fuzz/crashes
jobs=$(nproc)
seconds=$mode
if [ "$mode" = nightly ]; then seconds=$((3600 * jobs / ${#parsers[@]})); fi
limits=(-max_len=8192 -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=1024)

# The kept inputs of a parser, unpacked: build/fuzz/kept/PARSER.
unpack() {
  rm -rf "build/fuzz/kept/$1"
  mkdir -p "build/fuzz/kept/$1" "tests/fuzz/corpus/$1"
  if [ -f "tests/fuzz/corpus/$1.tar.gz" ]; then tar -xzf "tests/fuzz/corpus/$1.tar.gz" -C "build/fuzz/kept/$1"; fi
}

fuzz() {
  local parser=$1 found=build/fuzz/found/$1 log=build/fuzz/$1.log
  if [ "$seed" -ne 0 ]; then found=build/fuzz/fixed/$parser && rm -rf "$found"; fi  # what earlier runs found would lead elsewhere
  mkdir -p "$found"
  unpack "$parser"
  # Every kept input once, then new ones until the time is up.
  if ! "build/fuzz/tests/fuzz/fuzz_$parser" -seed="$seed" -max_total_time="$seconds" "${limits[@]}" \
    -artifact_prefix="build/fuzz/crashes/$parser-" -print_final_stats=1 \
    "$found" "build/fuzz/kept/$parser" "tests/fuzz/corpus/$parser" >"$log" 2>&1; then
    tail -40 "$log" >&2
    echo "error: $parser failed; the input is in build/fuzz/crashes" >&2
    return 1
  fi
  printf '%-12s %s inputs tried in %s s, no failure; coverage %s, %s of it by the kept inputs\n' "$parser" \
    "$(sed -n 's/stat::number_of_executed_units: *//p' "$log")" "$seconds" \
    "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" "$(sed -n 's/.*INITED cov: \([0-9]*\) .*/\1/p' "$log")"
}

keep() {
  local parser=$1 merged=build/fuzz/merged/$1
  unpack "$parser"
  rm -rf "$merged" && mkdir -p "$merged" "build/fuzz/found/$parser"
  "build/fuzz/tests/fuzz/fuzz_$parser" -set_cover_merge=1 "${limits[@]}" "$merged" "tests/fuzz/corpus/$parser" \
    "build/fuzz/kept/$parser" "build/fuzz/found/$parser" >"build/fuzz/$parser.log" 2>&1
  for input in "tests/fuzz/corpus/$parser"/*; do
    [ -f "$input" ] || continue  # no inputs with names
    rm -f "$merged/$(sha1sum "$input" | cut -d' ' -f1)"
  done
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$merged" -cf - . | gzip -9n >"tests/fuzz/corpus/$parser.tar.gz"
  printf '%-12s %s inputs kept in %s bytes\n' "$parser" "$(find "$merged" -type f | wc -l)" "$(stat -c %s "tests/fuzz/corpus/$parser.tar.gz")"
}

action=fuzz
if [ "$mode" = keep ]; then action=keep; fi
failed=0 running=0
for parser in "${parsers[@]}"; do
  if [ "$running" -ge "$jobs" ]; then wait -n || failed=1; else running=$((running + 1)); fi
  "$action" "$parser" &
done
while [ "$running" -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
exit "$failed"
