#!/bin/sh
# Builds the container image of deploy/Containerfile.
#
#   scripts/build-container.sh --prepare         only what has to be downloaded: what the image has of Debian, as
#                                                target/container/root.tar, and programs to build and run images
#   scripts/build-container.sh PROGRAM IMAGE     the image, from this program, which is a release for Linux
#
# The packages come from wherever apt is configured to look; no image is downloaded. Needs root on Debian or Ubuntu.
# Quick if root.tar is there: a stamp says what it was made of.
set -eu

cd "$(dirname "$0")/.."
built=target/container
# A shell with the tools that agents expect, git with https, and certificates.
packages=base-passwd,bash,ca-certificates,coreutils,dash,diffutils,findutils,git,grep,gzip,libgcc-s1,patch,sed,tar

install_tools() { # the programs of the same names
    for tool in "$@"; do
        command -v "$tool" >/dev/null && continue
        command -v apt-get >/dev/null || { echo "error: install $tool" >&2 && exit 1; }
        apt-get update -qq >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$tool" >&2
    done
}

# Packages are unpacked and their scripts are not run: what these would create is created here.
make_root() {
    system=$(. /etc/os-release && echo "$ID $VERSION_CODENAME")
    stamp=$(echo "$system $packages" | cat - "$0" | cksum)
    [ -e "$built/root.tar" ] && [ "$(cat "$built/installed" 2>/dev/null)" = "$stamp" ] && return
    install_tools mmdebstrap
    root=$built/root
    rm -rf "$built"
    mkdir -p "$built"
    mmdebstrap --quiet --variant=extract --include="$packages" "${system#* }" "$root" >&2
    cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
    # Programs of git that are written in Perl are rarely used, and Perl is a third of the image.
    rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/usr/share/info \
        "$root"/usr/bin/perl* "$root"/usr/share/perl* "$root"/usr/lib/*/perl* "$root"/usr/lib/*/libperl* \
        "$root"/var/cache/apt "$root"/var/lib/apt "$root"/dev "$root"/etc/apt
    mkdir -p "$root/srv/jackfield" "$root/dev"
    # Mode 1777 for all: nothing in the image is private.
    chmod 1777 "$root/tmp"
    echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
    echo 'jackfield:x:10001:10001::/srv/jackfield:/bin/sh' >>"$root/etc/passwd"
    printf 'root:x:0:\njackfield:x:10001:\n' >"$root/etc/group"
    chown -R 10001:10001 "$root/srv/jackfield"
    chmod 700 "$root/srv/jackfield"
    tar --sort=name --mtime=@0 --numeric-owner -C "$root" -cf "$built/root.tar" .
    rm -rf "$root"
    echo "$stamp" >"$built/installed"
}

case "$#:${1:-}" in
1:--prepare)
    make_root
    install_tools buildah podman runc
    echo "root $PWD/$built/root.tar"
    ;;
2:*)
    make_root
    install_tools buildah
    cp deploy/Containerfile "$built/"
    cp "$1" "$built/jackfield"
    # The form of Docker has a health check; no step of the build runs a program, so nothing has to be isolated.
    buildah build --quiet --format docker --isolation chroot --tag "$2" "$built" >&2
    rm "$built/jackfield"
    echo "image $2"
    ;;
*)
    echo "usage: $0 --prepare | PROGRAM IMAGE" >&2
    exit 2
    ;;
esac
