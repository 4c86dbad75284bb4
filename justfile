# `just` lists what there is; `just ci` is exactly what CI runs.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Tools that cargo installed.
export PATH := env("PATH") + ":" + env("CARGO_HOME", env("HOME") / ".cargo") / "bin"

# list the recipes
default:
    @{{ just_executable() }} --list --unsorted

# everything that is checked without running the code: seconds when warm
check: fmt-check clippy tidy typos

# run the tests, all or some: `just test -p jackfield-protocol`
test *arguments:
    cargo nextest run --workspace {{ arguments }}

# run the simulator over this many seeds
sim seeds="2000":
    SIM_SEEDS={{ seeds }} cargo xtask sim

# run every fuzz target for this many seconds
fuzz seconds="15":
    cargo xtask fuzz {{ seconds }}

# measure, and print the tables of docs/performance.md
bench *arguments:
    cargo xtask bench {{ arguments }}

# exactly what CI runs: every check of a change, with times and time limits
ci:
    cargo xtask ci

# the checks that take too long for every change: hours
nightly *arguments:
    cargo xtask nightly {{ arguments }}

# format the code
fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# the rules that the compiler cannot check
tidy:
    cargo xtask tidy

# type-check everything for macOS, on Debian: downloads a compiler's sources
check-macos *arguments:
    scripts/check-macos.sh {{ arguments }}

# spelling
typos:
    cargo xtask typos

# workflows of the hosted CI
workflows:
    cargo xtask workflows

# bans, licenses and sources of dependencies
deny:
    cargo xtask deny

# the examples in doc comments
test-docs:
    cargo test --workspace --locked --doc --quiet

# API docs, with no broken link
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --locked --no-deps

# run `just pre-commit` at each commit
hooks:
    git config core.hooksPath .githooks

# what the hook runs: seconds, no network
pre-commit: fmt-check tidy typos

# drive the agents of every merge through the daemon, and write what they did into docs/agents.md
live: _live-build
    JACKFIELD_LIVE=write cargo nextest run -p jackfield-e2e --no-fail-fast -E '{{ live_tests }}'
    JACKFIELD_LIVE=write cargo nextest run -p jackfield-e2e live::table

# the same with all agents and what takes long, cut off from the outside world
live-all: _live-build
    scripts/install-agents.sh --all
    JACKFIELD_LIVE=write scripts/without-network.sh cargo nextest run --offline -p jackfield-e2e --no-fail-fast --run-ignored all -E '{{ live_tests }}'
    JACKFIELD_LIVE=write cargo nextest run -p jackfield-e2e live::table

live_tests := "test(/^live::/) - test(/^live::table::/)"

_live-build:
    rm -rf target/live
    cargo build --workspace --bins --examples
    cargo nextest run --no-run -p jackfield-e2e

# make the packages of this platform from a release build, in target/dist
dist *arguments:
    cargo xtask dist {{ arguments }}

# check and build the client packages, into target/clients
build-clients *arguments:
    scripts/build-clients.sh {{ arguments }}

# check, test and build the web console; `--write` also writes the files that the daemon serves
build-console *arguments:
    scripts/build-console.sh {{ arguments }}

# install the browser that the tests of the console drive
install-browser:
    scripts/install-browser.sh

# install tmux and GNU screen, in which the tests of the terminal interface run it
install-tmux:
    scripts/install-tmux.sh

# install bubblewrap, with which the tests of the sandbox run programs
install-sandbox:
    scripts/install-sandbox.sh

# install the package managers and the empty machine that the tests of the packages use
install-package-tools:
    scripts/install-package-tools.sh

# install the editors that read what `jackfield setup` writes
install-editors *arguments:
    scripts/install-editors.sh {{ arguments }}

# install what `just ci` needs and this machine lacks
install-tools:
    cargo xtask tools

# install the pinned real agents that the end-to-end tests drive
install-agents:
    scripts/install-agents.sh

# install the pinned NATS server that the tests of the fleet start
install-nats:
    scripts/install-nats.sh

# install the pinned S3 server that the tests of the archive start
install-s3:
    scripts/install-s3.sh
