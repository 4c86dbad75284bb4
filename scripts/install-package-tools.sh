#!/bin/sh
# Installs what the tests of the packages need, from the packages of Debian or Ubuntu: rpm, debootstrap, and
# target/tools/empty-machine, a minimal system of the same release. To it, wget is added, which install.sh needs.
# Needs root. Prints one line: the name and the folder. Quick when it is there.
set -eu

cd "$(dirname "$0")/.."
machine=target/tools/empty-machine

is_installed() {
    for program in rpm debootstrap; do
        command -v "$program" >/dev/null || return 1
    done
}

if ! is_installed; then
    command -v apt-get >/dev/null || { echo "error: install rpm and debootstrap for the tests of the packages" >&2 && exit 1; }
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends rpm debootstrap >&2
fi
if [ ! -e "$machine" ]; then
    # The release and the mirror of this machine: the program under test is built for its C library.
    # shellcheck source=/dev/null
    . /etc/os-release
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    rm -rf "$machine.new"
    mkdir -p "$machine.new"
    debootstrap --variant=minbase --include=wget "$VERSION_CODENAME" "$machine.new" "$mirror" >&2
    rm -rf "$machine.new/var/cache/apt/archives" "$machine.new/var/lib/apt/lists"
    mv "$machine.new" "$machine"
fi
echo "empty-machine $(pwd)/$machine"
