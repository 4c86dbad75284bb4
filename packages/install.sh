#!/bin/sh
# Installs Jackfield for the current user, into ~/.local: the program, manual pages, completions and, on Linux, the
# systemd units of the user. Needs no root, and changes no startup file of a shell.
#
#   install.sh                      install the newest version, or update to it
#   install.sh --version VERSION    install this version
#   install.sh --uninstall          remove what was installed; sessions and settings stay
#
# JACKFIELD_BASE_URL is a folder with the files of one release (SHA256SUMS and archives), for a mirror.
# Needs curl or wget, sha256sum or shasum, and tar. `cargo xtask dist` inserts the address of the releases.
set -eu

releases='@RELEASES@'

main() {
    version=
    action=install
    while [ $# -gt 0 ]; do
        case $1 in
        --version)
            [ $# -gt 1 ] || fail "--version needs a value, for example 0.1.0"
            version=${2#v}
            shift
            ;;
        --version=*)
            version=${1#--version=}
            version=${version#v}
            ;;
        --uninstall) action=uninstall ;;
        -h | --help) action=print_usage ;;
        *) fail "unknown argument \`$1\`; --help lists them" ;;
        esac
        shift
    done
    [ -n "${HOME:-}" ] || fail "HOME is not set"
    prefix=$HOME/.local
    # The files and the directories that this script created, one per line, relative to the prefix.
    record=share/jackfield/installed-files
    "$action"
}

print_usage() {
    echo "usage: install.sh [--version VERSION | --uninstall]"
    echo "Installs Jackfield into ~/.local. JACKFIELD_BASE_URL names a mirror: a folder with SHA256SUMS and archives."
}

install() {
    platform=$(find_platform)
    name=jackfield-$platform
    if [ -n "${JACKFIELD_BASE_URL:-}" ]; then
        folder=${JACKFIELD_BASE_URL%/}
    elif [ -n "$version" ]; then
        folder=$releases/download/v$version
    else
        folder=$releases/latest/download
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    download "$folder/SHA256SUMS" "$work/SHA256SUMS"
    download "$folder/$name.tar.gz" "$work/$name.tar.gz"
    verify
    tar -xzf "$work/$name.tar.gz" -C "$work" || fail "failed to unpack $name.tar.gz"
    installed=$("$work/$name/bin/jackfield" --version) ||
        fail "the program does not run on this system; it needs glibc 2.17 or newer, or macOS"
    installed=${installed#jackfield }
    [ -z "$version" ] || [ "$version" = "$installed" ] ||
        fail "$folder has version $installed, not $version"

    place_files
    echo "installed jackfield $installed: $prefix/bin/jackfield"
    print_next_steps
}

find_platform() {
    case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no package for $(uname -s); on Windows, use WSL 2" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no package for the processor $(uname -m); build it with cargo" ;;
    esac
    echo "$system-$machine"
}

download() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --retry 2 -o "$2" "$1" || fail "failed to download $1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1" || fail "failed to download $1"
    else
        fail "install curl or wget first"
    fi
}

verify() {
    expected=
    while read -r sum file; do
        [ "${file#\*}" != "$name.tar.gz" ] || expected=$sum
    done <"$work/SHA256SUMS"
    [ -n "$expected" ] || fail "$folder has no package for $platform"
    if command -v sha256sum >/dev/null 2>&1; then
        actual=$(sha256sum "$work/$name.tar.gz")
    elif command -v shasum >/dev/null 2>&1; then
        actual=$(shasum -a 256 "$work/$name.tar.gz")
    else
        fail "install sha256sum or shasum first: the download cannot be verified"
    fi
    actual=${actual%% *}
    [ "$actual" = "$expected" ] ||
        fail "checksum of $name.tar.gz is $actual, but SHA256SUMS says $expected; nothing was installed"
}

# Copies the files into the prefix. A file is complete before it has its name, so an update may replace a running
# program; files of the older version that the new one lacks are removed.
place_files() {
    if [ -e "$prefix/bin/jackfield" ] && [ ! -e "$prefix/$record" ]; then
        fail "$prefix/bin/jackfield exists, and this script did not install it; remove it first"
    fi
    (cd "$work/$name" && find bin share -type f | LC_ALL=C sort) >"$work/files"
    touch "$work/old" "$work/directories"
    if [ -e "$prefix/$record" ]; then
        cp "$prefix/$record" "$work/old"
        grep '/$' "$work/old" >"$work/directories" || true
    fi
    while read -r file; do
        create_directory "$(dirname "$file")"
        cp "$work/$name/$file" "$prefix/$file.new"
        case $file in
        bin/*) chmod 755 "$prefix/$file.new" ;;
        *) chmod 644 "$prefix/$file.new" ;;
        esac
        mv -f "$prefix/$file.new" "$prefix/$file"
    done <"$work/files"
    unit=$prefix/share/systemd/user/jackfield.service
    if [ -e "$unit" ]; then
        sed "s|^ExecStart=[^ ]*|ExecStart=\"%h/.local/bin/jackfield\"|" "$unit" >"$unit.new"
        mv -f "$unit.new" "$unit"
    fi
    create_directory "$(dirname "$record")"
    cat "$work/directories" "$work/files" >"$work/record"
    echo "$record" >>"$work/record"
    cp "$work/record" "$prefix/$record"
    while read -r file; do
        grep -qxF -e "$file" "$work/record" || rm -f "${prefix:?}/$file"
    done <"$work/old"
}

# Creates a directory of the prefix with its parents, and lists the created ones, parents first.
create_directory() {
    [ ! -d "$prefix/$1" ] || return 0
    if [ "$1" = . ]; then
        mkdir -p "$prefix"
    else
        create_directory "$(dirname "$1")"
        mkdir "$prefix/$1"
    fi
    echo "$1/" >>"$work/directories"
}

print_next_steps() {
    case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *)
        echo "note: $prefix/bin is not in PATH. Add this line to the startup file of your shell:"
        echo "    export PATH=\"\$HOME/.local/bin:\$PATH\""
        ;;
    esac
    case ${SHELL:-} in
    */zsh)
        echo "note: for completions, add this line to ~/.zshrc before compinit:"
        # shellcheck disable=SC2016
        echo '    fpath=(~/.local/share/zsh/site-functions $fpath)'
        ;;
    esac
    echo "next: jackfield doctor"
}

uninstall() {
    [ -e "$prefix/$record" ] || fail "$prefix/$record does not exist: nothing was installed by this script"
    # Sessions in the log stay; a daemon without its program could not start agents.
    "$prefix/bin/jackfield" daemon stop >/dev/null 2>&1 || true
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cp "$prefix/$record" "$work/record"
    grep -v '/$' "$work/record" >"$work/files"
    while read -r file; do
        rm -f "${prefix:?}/$file"
    done <"$work/files"
    # Children before parents. A directory that has got other files stays.
    { grep '/$' "$work/record" || true; } | LC_ALL=C sort -r >"$work/directories"
    while read -r directory; do
        rmdir "$prefix/${directory#./}" 2>/dev/null || true
    done <"$work/directories"
    echo "removed jackfield from $prefix; sessions and settings are kept:"
    echo "    ${XDG_STATE_HOME:-$HOME/.local/state}/jackfield, ${XDG_CONFIG_HOME:-$HOME/.config}/jackfield"
}

fail() {
    echo "error: $1" >&2
    exit 1
}

# The last line: an incomplete download of this script does nothing.
main "$@"
