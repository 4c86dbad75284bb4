#!/bin/sh
# Runs a command in a network namespace that has loopback and nothing else: some agents try to reach
# the outside world whatever they are configured to do.
#
#   scripts/without-network.sh cargo nextest run --offline …
set -eu

[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT]..." >&2 && exit 2; }
flags=-n
# Other users than root need a user namespace for that.
[ "$(id -u)" = 0 ] || flags=-rn
exec unshare "$flags" sh -c 'ip link set lo up && exec "$@"' sh "$@"
