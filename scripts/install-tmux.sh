#!/bin/sh
# Installs the terminal that the tests of the terminal interface drive: tmux from the packages of Debian or Ubuntu.
# Prints one line: the name and the program. Quick when it is there.
set -eu

if ! command -v tmux >/dev/null; then
    command -v apt-get >/dev/null || { echo "error: install tmux for the tests of the terminal interface" >&2 && exit 1; }
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tmux >&2
fi
echo "tmux $(command -v tmux)"
