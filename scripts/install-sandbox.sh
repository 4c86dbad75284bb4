#!/bin/sh
# Installs the program that the tests of the sandbox run: bubblewrap from the packages of Debian or Ubuntu. Prints one
# line: the name and the program. Quick when it is there.
set -eu

if ! command -v bwrap >/dev/null; then
    command -v apt-get >/dev/null || { echo "error: install bubblewrap for the tests of the sandbox" >&2 && exit 1; }
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends bubblewrap >&2
fi
# Ubuntu forbids user namespaces to programs without a profile.
restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -w "$restriction" ] && [ "$(cat "$restriction")" = 1 ]; then
    echo 0 >"$restriction"
fi
echo "bwrap $(command -v bwrap)"
