#!/usr/bin/env bash
# Makes the Debian packages of a build, installs them on this machine, uses each, removes them, and looks for what is left.
# For a machine that may be changed: a container, or the root that tools/check-fresh-machine.sh --packages makes.
#
#   tools/check-packages.sh [BUILD]       (default: build/release)
#   tools/check-packages.sh --made DIR    packages that were made before
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
made=
if [ "${1:-}" = --made ]; then made=1 && shift; fi
build=$(cd "${1:-$root/build/release}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
[ -n "$made" ] || (cd "$build" && rm -f ./*.deb && cpack -G DEB >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }
names=()
for package in "$build"/*.deb; do names+=("$(dpkg-deb --field "$package" Package)"); done
for name in "${names[@]}"; do
  if dpkg-query -W "$name" 2>/dev/null | grep -q '[0-9]'; then echo "error: $name is installed already" >&2; exit 1; fi
done

$sudo apt-get install -y --no-install-recommends "$build"/*.deb >>"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
files=$(dpkg-query -L "${names[@]}" | sort -u)

cd "$work"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
[ "$(command -v clustergcn)" = /usr/bin/clustergcn ]
clustergcn generate graph --nodes 2000 --quiet >/dev/null
clustergcn train graph --layers 2 --hidden 16 --epochs 2 --run run --quiet | grep -q 'Test F1'
g++ -std=c++20 "$root/examples/embed/main.cc" -lclustergcn -o embed && ./embed | grep -q 'test F1'
/usr/bin/python3 -c 'import clustergcn as cg; g = cg.Graph.open("graph"); m = cg.ClusterGCNClassifier(layers=2, hidden=16, epochs=2, verbose=0).fit(g); print(m.scores_["test"]["micro_f1"])'
[ -f /usr/share/man/man1/clustergcn-train.1.gz ] || [ -f /usr/share/man/man1/clustergcn-train.1 ]
bash -c 'source /usr/share/bash-completion/completions/clustergcn; COMP_WORDS=(clustergcn tr); COMP_CWORD=1; _clustergcn; [ "${COMPREPLY[0]}" = train ]'

$sudo dpkg --purge "${names[@]}" >>"$work/log" 2>&1
left=$(for file in $files; do case $file in *clustergcn*) [ ! -e "$file" ] || echo "$file" ;; esac; done)
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left"; exit 1; }
echo "packages install, work and go without a trace"
