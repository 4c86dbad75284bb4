#!/bin/sh
# Checks, tests and builds the web console in console/, and compares it with the files that the daemon serves.
#
#   scripts/build-console.sh             fails if crates/web/console is not what console/ builds
#   scripts/build-console.sh --write     writes crates/web/console first
#
# The packages and their checksums are in the lock file; they are installed into target/console, from wherever npm is
# configured to look, and install scripts are not run.
set -eu

cd "$(dirname "$0")/.."
built=target/console

case "$*" in
"" | --write) ;;
*) echo "usage: $0 [--write]" >&2 && exit 2 ;;
esac

mkdir -p "$built"
cp console/package.json console/package-lock.json console/.npmrc "$built/"
stamp=$(cksum <console/package-lock.json)
if [ "$(cat "$built/installed" 2>/dev/null)" != "$stamp" ]; then
    command -v npm >/dev/null || { echo "error: npm is needed to build the console" >&2 && exit 1; }
    rm -f "$built/installed"
    (cd "$built" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    echo "$stamp" >"$built/installed"
fi
export PATH="$PWD/$built/node_modules/.bin:$PATH"

# Git ignores this link; tests in console/tests find their packages by it.
ln -sfn ../target/console/node_modules console/node_modules
(cd console && npm run --silent check && npm run --silent test && npm run --silent build) >&2
node console/scripts/write-assets.mjs "$built/dist" crates/web "$@" >&2
echo "jackfield-console $PWD/$built"
