#!/usr/bin/env bash
# Installs the distribution's packages that clustergcn is built from, with apt. Nothing is done if all are installed
# already, so that a second start needs neither network nor rights.
#
#   tools/install-packages.sh [build] [tests] [python] [mpi] [extras]     install what is missing of these sets (default: build)
#   tools/install-packages.sh --list [build] [tests] …     only name the packages
set -euo pipefail

# A name that ends in "?" is wanted only if the release has it: newer ones split it from another package.
declare -A packages
packages[build]="g++ cmake ninja-build ccache libtbb-dev libopenblas-pthread-dev libmetis-dev libhwy-dev libcli11-dev libfmt-dev
  libsimdjson-dev nlohmann-json3-dev libtomlplusplus-dev zlib1g-dev libcurl4-openssl-dev libxxhash-dev libjs-chart.js"
packages[tests]="pkgconf libgtest-dev libgmock-dev libbenchmark-dev libsimde-dev clang libclang-rt-dev? clang-format
  python3 python3-numpy python3-scipy python3-pytest chromium? mkdocs?"
# The Python module, and what its tests use.
packages[python]="python3 python3-dev python3-numpy python3-setuptools python3-wheel python3-pip pybind11-dev python3-scipy python3-pytest python3-pandas
  python3-networkx python3-sklearn mypy?"
# Training on many machines: libclustergcn-mpi.so is built if this is installed.
packages[mpi]="libopenmpi-dev openmpi-bin"
# Peers to compare with, the linter, and what tools/check-fresh-machine.sh needs.
packages[extras]="dpkg-dev python3-torch libopenblas0-openmp libtcmalloc-minimal4? libtcmalloc-minimal4t64? clang-tidy debootstrap shellcheck"

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

list_only=
sets=()
for argument in "$@"; do
  case $argument in
    --list) list_only=1 ;;
    build | tests | python | mpi | extras) sets+=("$argument") ;;
    *) fail "unknown set '$argument'" "hint: build, tests, python, mpi, extras" ;;
  esac
done
[ ${#sets[@]} -gt 0 ] || sets=(build)

wanted=()
for set in "${sets[@]}"; do
  read -r -d '' -a names <<<"${packages[$set]}" || true
  wanted+=("${names[@]}")
done
if [ -n "$list_only" ]; then
  printf '%s\n' "${wanted[@]%\?}"
  exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "packages can be installed automatically only on Debian, Ubuntu and their kin" \
    "hint: install what these Debian packages hold, then run: cmake --preset release && cmake --build build/release" \
    "${wanted[*]%\?}"
fi

is_installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == *" ok installed" ]]; }

missing=()
for package in "${wanted[@]}"; do
  if [[ $package == *\? ]]; then
    # Cheap on every start: the lists that say whether it exists are there once the first set has been installed.
    is_installed "${package%\?}" || ! apt-cache show "${package%\?}" >/dev/null 2>&1 || missing+=("$package")
  else
    is_installed "$package" || missing+=("$package")
  fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "${#missing[@]} packages are missing, and there is no sudo to install them with" \
      "hint: as root: apt-get install --no-install-recommends ${missing[*]%\?}"
  as_root=(sudo)
fi
printf 'Installing %d packages: %s\n' ${#missing[@]} "${missing[*]%\?}"
if [ ${#as_root[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; then
  echo "(sudo asks for your password; only apt-get runs as root)"
  sudo -v || fail "sudo refused" "hint: as root: apt-get install --no-install-recommends ${missing[*]%\?}"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=600 "$@" </dev/null >"$log" 2>&1
}
# apt-get waits for dpkg's lock by itself, for the lock of the package lists it does not.
apt_waiting_for_locks() {
  local waited=0
  until apt "$@"; do
    grep -q 'Could not get lock\|Unable to acquire' "$log" && [ $waited -lt 600 ] || return 1
    [ $waited -gt 0 ] || echo "Another package manager is running; waiting for it."
    sleep 5
    waited=$((waited + 5))
  done
}

# An update that fails in part (one of several sources is away) may still be enough: the install decides.
updated=1
apt_waiting_for_locks update -o APT::Update::Error-Mode=any || updated=
now=()
for package in "${missing[@]}"; do
  if [[ $package != *\? ]] || apt-cache show "${package%\?}" >/dev/null 2>&1; then now+=("${package%\?}"); fi
done
if [ ${#now[@]} -gt 0 ] && ! apt_waiting_for_locks install --no-install-recommends "${now[@]}"; then
  tail -n 15 "$log" >&2
  if grep -q 'Unable to locate package' "$log" && [ -n "$updated" ]; then
    fail "this release does not have all packages" \
      "hint: Debian 12 or newer, Ubuntu 22.04 or newer; on Ubuntu the 'universe' component must be enabled"
  elif grep -q 'No space left\|enough free space' "$log"; then
    fail "the disk is full" "hint: free 2 GB and start again"
  elif [ -z "$updated" ] || grep -q 'Could not resolve\|Failed to fetch\|Could not connect\|Unable to locate' "$log"; then
    fail "the packages could not be fetched" \
      "hint: check the network (or the proxy that apt uses) and start again; what has been fetched is kept"
  fi
  fail "apt-get could not install the packages (its last lines are above)" "hint: apt-get -f install, then start again"
fi
