#!/bin/sh
# Checks and builds the client package in clients/typescript/, into target/clients/typescript/.
#
#   scripts/build-clients.sh             fails if src/schema.ts is not what docs/openapi.json gives
#   scripts/build-clients.sh --write     writes src/schema.ts first
#
# The tools and their checksums stand in the lock file of the package; they are installed there, not
# in the tree, from wherever npm is configured to look, and install scripts are not run.
# A stamp says which lock file was installed, so that the second time is quick.
set -eu

cd "$(dirname "$0")/.."
package=clients/typescript
built=target/clients/typescript

case "$*" in
"" | --write) ;;
*) echo "usage: $0 [--write]" >&2 && exit 2 ;;
esac

mkdir -p "$built"
cp "$package/package.json" "$package/package-lock.json" "$package/.npmrc" "$built/"
stamp=$(cksum <"$package/package-lock.json")
if [ "$(cat "$built/installed" 2>/dev/null)" != "$stamp" ]; then
    command -v npm >/dev/null || { echo "error: npm is needed to build $package" >&2 && exit 1; }
    rm -f "$built/installed"
    (cd "$built" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    echo "$stamp" >"$built/installed"
fi
export PATH="$PWD/$built/node_modules/.bin:$PATH"

check=--check
[ "$*" = --write ] && check=
(cd "$package" && npm run --silent schema -- $check >&2)

# A copy is checked and built, so that nothing appears in the tree.
rm -rf "$built/src" "$built/examples" "$built/tests" "$built/dist"
cp -R "$package/src" "$package/examples" "$package/tests" "$package"/tsconfig*.json "$built/"
(cd "$built" && npm run --silent check && npm run --silent build) >&2
echo "jackfield-client $PWD/$built"
