#!/bin/sh
# Installs the pinned S3 server that the tests of the archive start, as target/tools/s3/bin/python -m moto.server.
#
# It is moto: it speaks the HTTP API of S3 and keeps everything in memory.
# The wheels come from wherever pip is configured to look, and are taken only with the checksums in s3.lock.
# To change a version, change it there; the checksums are those that the package index shows.
# Idempotent, and quick when it is there: a stamp says which lock was installed.
# Prints one line: the name and the program.
set -eu

cd "$(dirname "$0")/.."
tools=target/tools
s3=$tools/s3
stamp=$(cksum <scripts/s3.lock)

fail() {
    echo "error: $1" >&2
    exit 1
}

is_installed() {
    [ -x "$s3/bin/python" ] && [ "$(cat "$s3/installed" 2>/dev/null)" = "$stamp" ]
}

# An environment knows its own place and cannot be moved: it counts only when the stamp is there.
install() {
    mkdir -p "$tools"
    rm -rf "$s3"
    python3 -m venv "$s3" || fail "Python 3 has no module venv: install it"
    "$s3/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r scripts/s3.lock >&2 ||
        fail "the wheels of the S3 server could not be had: see what pip says above"
    "$s3/bin/python" -c 'import moto.server' || fail "the S3 server does not run on this machine"
    echo "$stamp" >"$s3/installed"
}

command -v python3 >/dev/null || fail "Python 3 with pip is needed to install the S3 server"
is_installed || install
echo "s3 $(pwd)/$s3/bin/python -m moto.server"
