#!/usr/bin/env bash
# Builds clustergcn, after installing what that needs, and runs it.
#
#   ./run.sh                 train on a small built-in graph and show the result
#   ./run.sh ARGUMENTS …     the same as: clustergcn ARGUMENTS …
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/setup.sh
source "$root/tools/setup.sh"

"$root/tools/install-packages.sh" build
build=$(build_root)
program=$build/release/clustergcn
check_machine 1500
if [ -f "$build/release/build.ninja" ]; then
  build_preset release clustergcn
else
  echo "Building clustergcn (once; a few minutes) …" >&2
  build_preset release clustergcn -DCGCN_TESTS=OFF -DCGCN_BENCHMARKS=OFF
fi
if [ $# -gt 0 ]; then exec "$program" "$@"; fi

# The built-in graph: a generated one of 10,000 nodes, made once.
demo=$build/demo
[ "$demo/graph/meta.json" -nt "$program" ] || "$program" generate "$demo/graph" --like small --force
rm -rf "$demo/run"
"$program" train "$demo/graph" --run "$demo/run" --epochs 30
cat <<END

Next: bring in your own graph
  ./run.sh import SOURCE STORE      (./run.sh import --help names the formats)
  ./run.sh train STORE
END
