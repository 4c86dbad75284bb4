# `just` lists what there is; `just ci` is exactly what CI runs.

set shell := ["bash", "-euo", "pipefail", "-c"]

just := just_executable()

# What `just install-tools` fetched comes first, what cargo installed last.
export PATH := justfile_directory() / "target/tools/typos/bin:" + env("PATH") + ":" + env("CARGO_HOME", env("HOME") / ".cargo") / "bin"

# list the recipes
default:
    @{{ just }} --list --unsorted

# everything that is checked without running the code: seconds when warm
check: fmt-check clippy tidy typos

# run the tests, all or some: `just test -p jackfield-wire`
test *arguments:
    cargo nextest run --workspace {{ arguments }}

# run the simulator over so many seeds
sim seeds="2000":
    SIM_SEEDS={{ seeds }} cargo xtask sim

# run every fuzz target for so many seconds
fuzz seconds="15":
    cargo xtask fuzz {{ seconds }}

# measure, and print the tables of docs/performance.md
bench *arguments:
    cargo xtask bench {{ arguments }}

# exactly what CI runs, with the time of each step
ci: _ci-start (_step "install-tools") (_step "install-agents") (_step "install-nats") (_step "install-s3") (_step "build-clients") (_step "check") (_step "deny") (_step "build") (_step "test-docs") (_step "sim") (_step "test-ci") (_step "fuzz 6") (_step "docs")
    @echo "== times"; cat target/ci-times

# format the code
fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# the rules of the house that the compiler cannot check
tidy:
    cargo xtask tidy

# spelling
typos:
    typos

# bans, licences and sources of what we depend on
deny:
    cargo deny --locked check bans licenses sources

build:
    cargo build --workspace --all-targets --locked

test-ci:
    cargo nextest run --workspace --locked --profile ci

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
    unshare -rn sh -c "ip link set lo up && JACKFIELD_LIVE=write cargo nextest run --offline -p jackfield-e2e --no-fail-fast --run-ignored all -E '{{ live_tests }}'"
    JACKFIELD_LIVE=write cargo nextest run -p jackfield-e2e live::table

live_tests := "test(/^live::/) - test(/^live::table::/)"

_live-build:
    rm -rf target/live
    cargo build --workspace --bins --examples
    cargo nextest run --no-run -p jackfield-e2e

# check and build the client packages, into target/clients
build-clients *arguments:
    scripts/build-clients.sh {{ arguments }}

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

_ci-start:
    @mkdir -p target && : > target/ci-times

_step recipe:
    @echo "== {{ recipe }}"
    @start=$SECONDS; trap 'printf "%5d s  %s\n" $((SECONDS - start)) "{{ recipe }}" | tee -a target/ci-times' EXIT; {{ just }} {{ recipe }}
