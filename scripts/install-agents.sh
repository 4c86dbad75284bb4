#!/bin/sh
# Installs the pinned real agents that the tests drive into target/agents/.
#
#   scripts/install-agents.sh            everything in the list below
#   scripts/install-agents.sh goose      only these
#
# Idempotent, and quick when everything is there: a stamp names the installed version.
# The packages come from wherever npm is configured to look; their install scripts are not run.
# Prints one line per agent: its name, version and program.
set -eu

cd "$(dirname "$0")/.."
agents=${JACKFIELD_AGENTS_DIR:-target/agents}

# name | npm package | version | program inside the package
list='
goose|@aaif/goose-binary-linux-x64|1.52.0|bin/goose
'

install_one() { # name package version program
    home="$agents/$1"
    program="$home/node_modules/$2/$4"
    if [ "$(cat "$home/installed" 2>/dev/null)" != "$2@$3" ] || [ ! -x "$program" ]; then
        command -v npm >/dev/null || { echo "error: npm is needed to install $1" >&2; exit 1; }
        rm -rf "$home"
        mkdir -p "$home"
        npm install --prefix "$home" --no-save --no-package-lock --ignore-scripts \
            --no-audit --no-fund --loglevel=error "$2@$3" >&2
        [ -f "$program" ] || { echo "error: $2@$3 has no $4" >&2; exit 1; }
        chmod +x "$program"
        echo "$2@$3" >"$home/installed"
    fi
    # A path that does not depend on how the package is laid out.
    mkdir -p "$agents/bin"
    ln -sfn "../$1/node_modules/$2/$4" "$agents/bin/$1"
    echo "$1 $3 $agents/bin/$1"
}

wanted=" $* "
known=" "
for row in $list; do
    known="$known${row%%|*} "
done
for name in "$@"; do
    case "$known" in
    *" $name "*) ;;
    *) echo "error: no agent called $name; there are:$known" >&2 && exit 2 ;;
    esac
done
for row in $list; do
    IFS='|' read -r name package version program <<ROW
$row
ROW
    case "$wanted" in
    "  " | *" $name "*) install_one "$name" "$package" "$version" "$program" ;;
    esac
done
