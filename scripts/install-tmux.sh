#!/bin/sh
# Installs the terminals that the tests of the terminal interface drive: tmux and GNU screen from the packages of Debian
# or Ubuntu. Prints one line for each: the name and the program. Quick when they are there.
set -eu

for terminal in tmux screen; do
    if ! command -v "$terminal" >/dev/null; then
        command -v apt-get >/dev/null || { echo "error: install $terminal for the tests of the terminal interface" >&2 && exit 1; }
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$terminal" >&2
    fi
    echo "$terminal $(command -v "$terminal")"
done
