#!/bin/sh
# Prepares the container in which the hosted workflows run the checks: an image of Rust on Debian, as root.
# Everything else is installed by the checks themselves.
set -eu

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    iproute2 nodejs npm procps python3-pip python3-venv
rustup component add clippy rustfmt
# The checkout belongs to the user of the machine, and git refuses directories of other users.
git config --global --add safe.directory "$PWD"
