#!/bin/sh
# Installs the octoprox binary for the current user.
#
#   sh install.sh
#
# OCTOPROX_DOWNLOAD_URL  directory with the tarballs and SHA256SUMS; default: the release that this script belongs to
# OCTOPROX_INSTALL_DIR   default: ~/.local/bin
set -eu

release_url=

say() { printf 'octoprox: %s\n' "$*"; }
die() {
    say "$*" >&2
    exit 1
}

download() { # URL FILE
    if command -v curl >/dev/null; then
        curl -fsSL -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1"
    else
        die "curl or wget is needed to download."
    fi || die "cannot download $1"
}

# The tarballs that may run here, the preferred one first.
targets() {
    [ "$(uname -s)" = Linux ] || die "there is no binary for $(uname -s), only for Linux. Run octoprox in a container or a Linux machine."
    case $(uname -m) in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) die "there is no binary for $(uname -m), only for x86_64 and aarch64. Build octoprox from source." ;;
    esac
    if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then echo "$machine-unknown-linux-gnu"; fi
    echo "$machine-unknown-linux-musl"
}

main() {
    url=${OCTOPROX_DOWNLOAD_URL:-$release_url}
    [ -n "$url" ] || die "set OCTOPROX_DOWNLOAD_URL to the address of a release."
    url=${url%/}
    folder=${OCTOPROX_INSTALL_DIR:-$HOME/.local/bin}
    candidates=$(targets)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT

    download "$url/SHA256SUMS" "$work/SHA256SUMS"
    tarball=
    for target in $candidates; do
        tarball=$(awk -v target="$target" '$2 ~ "^octoprox-[^/]*-" target "[.]tar[.]gz$" { print $2; exit }' "$work/SHA256SUMS")
        [ -z "$tarball" ] || break
    done
    [ -n "$tarball" ] || die "$url has no tarball for this system (looked for: $(echo "$candidates" | tr '\n' ' '))."

    download "$url/$tarball" "$work/$tarball"
    (cd "$work" && grep "  $tarball\$" SHA256SUMS | sha256sum -c --status) ||
        die "$tarball does not match its checksum in SHA256SUMS. Nothing was installed; download it again."

    tar -xzf "$work/$tarball" -C "$work"
    binary=$work/${tarball%.tar.gz}/octoprox
    version=$("$binary" --version 2>"$work/error") ||
        die "the binary does not start on this system; nothing was installed: $(cat "$work/error")"

    mkdir -p "$folder"
    cp "$binary" "$folder/.octoprox.new"
    mv "$folder/.octoprox.new" "$folder/octoprox"
    say "installed $version as $folder/octoprox"
    case :$PATH: in
        *":$folder:"*) ;;
        *) say "$folder is not in your PATH. Add it: export PATH=\"$folder:\$PATH\"" ;;
    esac
}

main
