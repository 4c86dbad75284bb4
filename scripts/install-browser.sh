#!/bin/sh
# Installs the browser that the tests of the console drive: Chromium from the packages of Debian or Ubuntu.
# Prints one line: the name and the program. Quick when it is there.
set -eu

if ! command -v chromium >/dev/null; then
    command -v apt-get >/dev/null || { echo "error: install Chromium as \`chromium\` for the tests of the console" >&2 && exit 1; }
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
fi
echo "chromium $(command -v chromium)"
