#!/usr/bin/env bash
# Installs the build into a folder, builds examples/embed against it with CMake and with pkg-config, and runs both.
#
#   tests/package/embed.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'status=$?; [ $status = 0 ] || tail -n 20 "$work/log"; rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
library=$(find "$work/prefix" -name 'libclustergcn.so' -printf '%h')

cmake -G Ninja -S "$source/examples/embed" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" >>"$work/log"
cmake --build "$work/cmake" >>"$work/log"
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
g++ -std=c++20 "$source/examples/embed/main.cc" $(pkg-config --cflags --libs clustergcn) -o "$work/plain"

for program in "$work/cmake/embed" "$work/plain"; do
  LD_LIBRARY_PATH=$library "$program" >"$work/output"
  grep -q '^test F1 [0-9.]* %$' "$work/output" || { echo "no score"; cat "$work/output"; exit 1; }
  [ "$(grep -c '^node 15[01]: ' "$work/output")" = 2 ] || { echo "no predictions"; cat "$work/output"; exit 1; }
done

# Nothing but the facade is visible, and no third-party header is in the public one.
visible=$(nm -DC --defined-only "$library/libclustergcn.so" | grep -c ' [TW] ' || true)
foreign=$(nm -DC --defined-only "$library/libclustergcn.so" | grep ' [TW] ' | grep -vc 'clustergcn::\|std::' || true)
[ "$visible" -gt 20 ] && [ "$foreign" = 0 ] || { echo "$foreign of $visible visible symbols are not the facade's"; exit 1; }
if grep -hoE '#include [<"][^>"]*' "$work"/prefix/include/clustergcn/*.h | grep '/'; then echo "a public header includes another library's"; exit 1; fi
ldd "$library/libclustergcn.so" | grep -E 'curl|gomp|mpi|openblas' && { echo "the library links what it does not need"; exit 1; }
if nm -D --undefined-only "$library/libclustergcn.so" | grep -E ' (sigaction|signal|_?exit|_Exit|quick_exit|fork|exec[a-z]*|freopen|atexit)(@|$)'; then
  echo "the library does to the process what only a program may"; exit 1
fi
echo "fine: $visible visible symbols"
