#!/bin/sh
# Installs what the tests of `jackfield setup` read settings with: Neovim, and the parser of VS Code into
# target/tools/editors.
#
#   scripts/install-editors.sh          for every merge
#   scripts/install-editors.sh --all    and Emacs, for a nightly run
#
# Neovim and Emacs are the packages of Debian or Ubuntu. Quick when everything is there.
# Prints one line for each: its name and its program.
set -eu

cd "$(dirname "$0")/.."
editors=target/tools/editors
lock=scripts/editors/package-lock.json

fail() {
    echo "error: $1" >&2
    exit 1
}

debian_package() { # program package
    if ! command -v "$1" >/dev/null; then
        command -v apt-get >/dev/null || fail "install $1 for the tests of jackfield setup"
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >&2
    fi
    echo "$1 $(command -v "$1")"
}

debian_package nvim neovim
if [ "${1-}" = --all ]; then
    debian_package emacs emacs-nox
fi
if [ "$(cat "$editors/installed" 2>/dev/null)" != "$(cksum <"$lock")" ]; then
    command -v npm >/dev/null || fail "npm is needed to install the parser of VS Code"
    rm -rf "$editors"
    mkdir -p "$editors"
    cp scripts/editors/package.json "$lock" "$editors/"
    (cd "$editors" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    cksum <"$lock" >"$editors/installed"
fi
echo "jsonc-parser $(pwd)/$editors/node_modules/jsonc-parser"
