#!/usr/bin/env bash
# Proves the two commands on a machine where nothing but the base system is installed: ./run.sh and ./test.sh in a
# minimal Debian or Ubuntu root made with debootstrap, as root and as a user with sudo, from another folder, in a path with a
# space, without git; then ./run.sh once more without network.
#
#   sudo tools/check-fresh-machine.sh [--release NAME] [--mirror URL] [--as root|user] [--command run|test] [--keep]
#   sudo tools/check-fresh-machine.sh --packages BUILD    instead: the Debian packages of a build (build/release), installed in such a root,
#                                                         used by tools/check-packages.sh and removed; every file that is left is shown
#     --release   a release that the mirror has; default: this machine's
#     --mirror    where it comes from; default: where this machine's packages come from
#     --as        only one of the two; default: both, each in a root of its own
#     --command   only one of the two commands; default: both
#     --keep      leave the root behind, to look into it (its path is printed)
#     --work DIR  where the roots go (about 6 GB each); default: a new folder under /tmp
#
#   e.g. --release noble --mirror http://archive.ubuntu.com/ubuntu (signatures are checked if its keyring is installed)
#
# The proxy is the one that apt uses on this machine. Needs root, debootstrap and network.
set -euo pipefail
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
host_release=$release
identities=(root user)
commands=(run test)
packages=
keep=
work=
mirror=
while [ $# -gt 0 ]; do
  case $1 in
    --release) release=$2 && shift ;;
    --mirror) mirror=$2 && shift ;;
    --as) identities=("$2") && shift ;;
    --command) commands=("$2") && shift ;;
    --packages) packages=$(cd "$2" && pwd) && shift ;;
    --work) work=$2 && shift ;;
    --keep) keep=1 ;;
    *) fail "unknown argument '$1'" ;;
  esac
  shift
done
[ "$(id -u)" -eq 0 ] || fail "must be root: it makes a root file system"
command -v debootstrap >/dev/null || fail "debootstrap is missing; try: tools/install-packages.sh extras"

mirror_of() {  # mirror_of SUITE: where this machine's apt gets it from
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk -v suite="$1" '$1 == suite {print $2; exit}'
}
[ -n "$mirror" ] || mirror=$(mirror_of "$host_release")
[ -n "$mirror" ] || fail "apt on this machine has no source for $host_release"

if [ -z "$work" ]; then work=$(mktemp -d /tmp/fresh-machine-XXXXXX); else mkdir -p "$work"; fi
cleanup() { [ -n "$keep" ] || rm -rf --one-file-system "$work"; }
trap cleanup EXIT

seconds() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(seconds)" 'BEGIN {printf "%.0f s", to - from}'; }

make_base() {
  local base=$work/base start components=main script=sid
  [ -d "$base" ] && return
  start=$(seconds)
  if [[ $mirror == *ubuntu* ]]; then components=main,universe script=gutsy; fi
  [ ! -e "/usr/share/debootstrap/scripts/$release" ] || script=$release  # else the release is newer than debootstrap
  debootstrap --variant=minbase --components="$components" "$release" "$base.part" "$mirror" "$script" >"$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2 && fail "debootstrap failed"; }
  echo "deb $mirror $release ${components/,/ }" >"$base.part/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(http|https)::' >"$base.part/etc/apt/apt.conf.d/00host" || true
  cp -L /etc/resolv.conf "$base.part/etc/resolv.conf"
  mv "$base.part" "$base"
  echo "made a minimal $release root in $(since "$start") ($(find "$base/var/lib/dpkg/info" -name '*.list' | wc -l) packages)"
}

# inside ROOT COMMAND …: runs it in the root, in namespaces of its own, so that mounts and processes end with it.
# `network` decides whether there is one.
inside() {
  local root=$1 spaces=(--mount --pid --fork --kill-child)
  shift
  [ -n "${network:-1}" ] || spaces+=(--net)
  # shellcheck disable=SC2016
  unshare "${spaces[@]}" bash -c '
    mount -t proc proc "$0/proc" && mount -t sysfs sys "$0/sys" && mount --rbind /dev "$0/dev" &&
    mount -t tmpfs shm "$0/dev/shm" && exec chroot "$0" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$root" "$@"
}

check_as() {
  local identity=$1 root=$work/$1 home=/root run=() start folder command
  rm -rf --one-file-system "$root"
  cp -a "$work/base" "$root"
  if [ "$identity" = user ]; then
    inside "$root" sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends sudo &&
      useradd -m -s /bin/bash tester && echo "tester ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/tester' >"$work/user.log" 2>&1 ||
      { tail "$work/user.log" >&2 && fail "could not make a user with sudo"; }
    home=/home/tester
    run=(runuser -u tester -- env "HOME=$home")
  fi
  folder="$home/cluster gcn"
  mkdir -p "$root$folder"
  (cd "$source_root" && { git ls-files -z 2>/dev/null || find . -path ./build -prune -o -path ./runs -prune -o -type f -print0; } |
    tar --null -T - -cf -) | tar -C "$root$folder" -xf -
  [ "$identity" = root ] || inside "$root" chown -R tester: "$folder"
  for command in "${commands[@]}"; do
    start=$(seconds)
    inside "$root" "${run[@]}" sh -c "cd / && \"$folder/$command.sh\"" >"$work/$identity-$command.log" 2>&1 ||
      { tail -n 40 "$work/$identity-$command.log" >&2 && fail "$release, as $identity: ./$command.sh failed"; }
    echo "$release, as $identity: ./$command.sh took $(since "$start"); its last lines:"
    tail -n 3 "$work/$identity-$command.log" | sed 's/^/    /'
  done
  start=$(seconds)
  network='' inside "$root" "${run[@]}" sh -c "cd / && \"$folder/run.sh\" --version" >"$work/$identity-offline.log" 2>&1 ||
    { tail -n 40 "$work/$identity-offline.log" >&2 && fail "$release, as $identity: ./run.sh failed without network"; }
  echo "$release, as $identity: ./run.sh --version without network took $(since "$start")"
  if [ -n "$keep" ]; then echo "kept: $root"; else rm -rf --one-file-system "$root"; fi
}

# Files of the root but those in which apt and dpkg keep their own accounts, and what a package that ours need leaves by making a group
# (libibverbs1, by way of Open MPI): the copy of the accounts before it, and a lock in /run, which a start of the machine empties.
files_of() {
  (cd "$1" && find . -path './etc/*shadow-' -prune -o -path './etc/group-' -prune -o -path ./run -prune -o -path ./proc -prune -o -path ./sys -prune -o -path ./dev -prune -o -path ./tmp -prune -o -path ./var/cache -prune -o \
    -path ./var/lib/apt -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort)
}

check_packages() {
  local root=$work/packages start left
  start=$(seconds)
  (cd "$packages" && rm -f ./*.deb && cpack -G DEB >"$work/cpack.log" 2>&1) || { tail "$work/cpack.log" >&2 && fail "cpack failed"; }
  rm -rf --one-file-system "$root"
  cp -a "$work/base" "$root"
  # A compiler for the example that uses the library; Python is brought by the package.
  inside "$root" sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends g++ libc6-dev' >"$work/packages.log" 2>&1 ||
    { tail "$work/packages.log" >&2 && fail "could not install a compiler"; }
  files_of "$root" >"$work/before"
  mkdir -p "$root/tmp/check/tools" "$root/tmp/check/examples/embed" "$root/tmp/check/debs"
  cp "$source_root/tools/check-packages.sh" "$root/tmp/check/tools/"
  cp "$source_root/examples/embed/main.cc" "$root/tmp/check/examples/embed/"
  cp "$packages"/*.deb "$root/tmp/check/debs/"
  inside "$root" bash /tmp/check/tools/check-packages.sh --made /tmp/check/debs >>"$work/packages.log" 2>&1 ||
    { tail -n 20 "$work/packages.log" >&2 && fail "$release: the packages do not work"; }
  inside "$root" apt-get -q -y autoremove --purge >>"$work/packages.log" 2>&1
  files_of "$root" >"$work/after"
  left=$(comm -13 "$work/before" "$work/after")
  [ -z "$left" ] || { echo "$left" >&2 && fail "$release: left behind when the packages are removed"; }
  echo "$release: packages install, work and go without a trace ($(since "$start"))"
  [ -n "$keep" ] || rm -rf --one-file-system "$root"
}

make_base
if [ -n "$packages" ]; then check_packages && exit; fi
for identity in "${identities[@]}"; do check_as "$identity"; done
