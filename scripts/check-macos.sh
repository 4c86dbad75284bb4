#!/bin/sh
# Type-checks the workspace with all its tests for macOS on a Debian machine: `check-macos.sh [TARGET]... [-- CARGO OPTION...]`.
#
# Needs Rust's standard library for macOS, which the installed toolchain does not have. Debian has packages with a
# compiler and the sources of its standard library (rustc-web, rust-web-src); they are unpacked into `target/darwin`
# and not installed, so no other build sees them. Build scripts that compile C get a compiler that does nothing:
# a type-check links nothing.
set -eu

cd "$(dirname "$0")/.."
root=$PWD/target/darwin
unpacked=$root/debian

fail() {
    echo "error: $1" >&2
    exit 1
}

# Downloads the packages and those that they need and that this machine lacks, without installing any.
unpack_compiler() {
    [ -x "$unpacked/usr/bin/rustc" ] && return
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        fail "this check needs apt-get and dpkg-deb, to get the sources of Rust's standard library from Debian"
    mkdir -p "$root/packages"
    apt-get update -qq >&2 || echo "warning: failed to update the list of packages" >&2
    names=$(apt-get install --simulate --no-install-recommends rustc-web rust-web-src 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    [ -n "$names" ] || fail "Debian's packages rustc-web and rust-web-src are not available"
    # shellcheck disable=SC2086 # one word per package
    (cd "$root/packages" && apt-get download -qq $names >&2) || fail "failed to download: $names"
    rm -rf "$unpacked.new"
    for package in "$root"/packages/*.deb; do
        dpkg-deb --extract "$package" "$unpacked.new"
    done
    rm -rf "$root/packages" "$unpacked"
    mv "$unpacked.new" "$unpacked"
}

# A compiler that finds its libraries, and tools for C that only create the files that they are asked for.
write_tools() {
    mkdir -p "$root/bin"
    driver=$(find "$unpacked/usr/lib/" -name 'librustc_driver-*.so' | head -n 1)
    [ -n "$driver" ] || fail "the packages in $unpacked are incomplete: remove that directory and try again"
    # Bash, because dash drops variables with a hyphen in their name, such as CARGO_BIN_EXE_fake-agent.
    cat >"$root/bin/rustc" <<END
#!/bin/bash
LD_LIBRARY_PATH=$(dirname "$driver") exec $unpacked/usr/bin/rustc "\$@"
END
    cat >"$root/bin/cc" <<'END'
#!/bin/sh
# With -E, `cc` asks which compiler this is.
before=
for it in "$@"; do
    [ "$before" = -o ] && : >"$it"
    [ "$it" = -E ] && echo clang
    before=$it
done
exit 0
END
    cat >"$root/bin/ar" <<'END'
#!/bin/sh
for it in "$@"; do
    case $it in *.a) : >"$it" ;; esac
done
END
    chmod +x "$root/bin/rustc" "$root/bin/cc" "$root/bin/ar"
}

targets=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    targets="$targets $1"
    shift
done
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- --workspace --all-targets

unpack_compiler
write_tools
unset RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER
for target in ${targets:-aarch64-apple-darwin x86_64-apple-darwin}; do
    variable=$(echo "$target" | tr - _)
    echo "checking $target" >&2
    # `build-std` is unstable, and the compiler is a stable one.
    env RUSTC="$root/bin/rustc" RUSTC_BOOTSTRAP=1 RUSTFLAGS= CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 \
        CARGO_BUILD_WARNINGS=deny "CC_$variable=$root/bin/cc" "CXX_$variable=$root/bin/cc" "AR_$variable=$root/bin/ar" \
        cargo check -Zwarnings -Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test \
        --locked --target "$target" --target-dir "$root" "$@"
done
