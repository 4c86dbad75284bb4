#!/bin/sh
# Installs the file system of Windows that a nightly test mounts: ntfs-3g from the packages of Debian or Ubuntu.
# Prints one line: the name and the program. Quick when it is there.
set -eu

if ! command -v lowntfs-3g >/dev/null; then
    command -v apt-get >/dev/null || { echo "error: install ntfs-3g for the tests of drives of Windows" >&2 && exit 1; }
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ntfs-3g >&2
fi
echo "ntfs-3g $(command -v lowntfs-3g)"
