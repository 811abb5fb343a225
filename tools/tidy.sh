#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy.
#
#   tools/tidy.sh             on the sources that differ from the main branch
#   tools/tidy.sh FILE …      on these
#   tools/tidy.sh --all       on all of src/
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"

tidy=$(command -v clang-tidy || command -v clang-tidy-14) ||
  fail "clang-tidy is missing" "hint: tools/install-packages.sh extras"
build=$(build_root)
(cd "$root" && cmake --preset debug -B "$build/debug") >/dev/null  # the one that compiles each file on its own

if [ "${1:-}" = --all ]; then
  mapfile -t files < <(find "$root/src" -name '*.cc' | sort)
elif [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(cd "$root" && git diff --name-only --diff-filter=d --merge-base main -- 'src/*.cc' | sed "s|^|$root/|")
fi
[ ${#files[@]} -gt 0 ] || { echo "nothing changed" && exit 0; }
# GCC's own warning options are unknown to clang.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(job_count)" "$tidy" -p "$build/debug" --quiet \
  --extra-arg=-Wno-unknown-warning-option
