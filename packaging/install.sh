#!/bin/sh
# Install calve from a release. See --help.
set -eu

repository='@REPOSITORY@'

usage() {
    cat <<EOF
Install calve from a release, for this user.

usage: install.sh [--help] [--version X.Y.Z] [--target NAME]

  --version X.Y.Z   that version instead of the latest
  --target NAME     that build instead of the one for this machine, such as x86_64-unknown-linux-musl

environment:
  CALVE_INSTALL_DIR    where the program goes; default: ~/.local/bin
  CALVE_DOWNLOAD_URL   where the release's files are, for mirrors; default: those of
                       $repository

Needs curl or wget, tar, and sha256sum, shasum or openssl. Changes nothing but the program in that directory.
EOF
}

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# The glibc of this machine is 2.17 or later.
has_glibc() {
    found=$(getconf GNU_LIBC_VERSION 2>/dev/null) || return 1
    found=${found#glibc }
    major=${found%%.*} minor=${found#*.}
    minor=${minor%%.*}
    case $major$minor in *[!0-9]* | '') return 1 ;; esac
    [ "$major" -gt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -ge 17 ]; }
}

# Prints the name of the build for this machine.
detect() {
    system=$(uname -s) machine=$(uname -m)
    case $machine in
        x86_64 | amd64) processor=x86_64 ;;
        aarch64 | arm64) processor=aarch64 ;;
        *) fail "there is no build for the processor \`$machine\`" "build it from source: cargo install --path crates/calve" ;;
    esac
    case $system in
        Linux)
            if [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" != 64 ]; then
                fail 'there is no build for a 32-bit system' 'build it from source: cargo install --path crates/calve'
            fi
            if has_glibc; then libc=gnu; else libc=musl; fi
            echo "$processor-unknown-linux-$libc"
            ;;
        Darwin)
            # A shell that Rosetta translates is told of another processor than there is.
            if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || echo 0)" = 1 ]; then processor=aarch64; fi
            echo "$processor-apple-darwin"
            ;;
        MINGW* | MSYS* | CYGWIN*)
            fail 'this script does not install on Windows' 'run it in WSL2' ;;
        *) fail "there is no build for \`$system\`" 'build it from source: cargo install --path crates/calve' ;;
    esac
}

# download URL FILE
download() {
    if has curl; then
        case $1 in
            https:*) curl --proto '=https' --proto-redir '=https' --tlsv1.2 -fsSL "$1" -o "$2" ;;
            *) curl -fsSL "$1" -o "$2" ;;
        esac
    elif has wget; then
        wget -q -O "$2" "$1"
    else
        fail 'neither curl nor wget is installed' 'install one of them'
    fi || fail "download \`$1\`" 'check the network, --version, and CALVE_DOWNLOAD_URL'
}

# Prints the SHA-256 of a file.
digest() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail 'nothing here computes a SHA-256' 'install sha256sum, shasum or openssl'
    fi
}

main() {
    version='' target=''
    while [ $# -gt 0 ]; do
        case $1 in
            -h | --help) usage; exit 0 ;;
            --version | --target)
                if [ -z "${2:-}" ]; then fail "$1 needs a value" 'see --help'; fi
                if [ "$1" = --version ]; then version=${2#v}; else target=$2; fi
                shift 2
                ;;
            *) fail "\`$1\` is no option" 'see --help' ;;
        esac
    done
    directory=${CALVE_INSTALL_DIR:-${HOME:?}/.local/bin}
    base=${CALVE_DOWNLOAD_URL:-}
    if [ -z "$base" ]; then
        case $repository in
            *.invalid/* | @*) fail 'this installer was made without an address' 'set CALVE_DOWNLOAD_URL; see --help' ;;
        esac
        if [ -n "$version" ]; then base=$repository/releases/download/v$version; else base=$repository/releases/latest/download; fi
    fi
    [ -n "$target" ] || target=$(detect)
    archive=calve-$target.tar.gz

    staging=$(mktemp -d)
    placed=''
    trap 'rm -rf "$staging" ${placed:+"$placed"}' EXIT
    trap 'exit 1' HUP INT TERM
    download "$base/SHA256SUMS" "$staging/SHA256SUMS"
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$staging/SHA256SUMS")
    [ -n "$expected" ] || fail "the release has no \`$archive\`" 'choose another with --target; SHA256SUMS lists them'
    download "$base/$archive" "$staging/$archive"
    if [ "$(digest "$staging/$archive")" != "$expected" ]; then
        fail "the checksum of \`$archive\` is wrong, so nothing was installed" 'try again; tell the maintainers if it stays wrong'
    fi
    tar -xzf "$staging/$archive" -C "$staging"
    "$staging/calve-$target/calve" --version >/dev/null ||
        fail "\`$target\` does not run on this machine" 'choose another with --target'

    mkdir -p "$directory"
    # Beside its place first, then renamed: a calve that is running is not disturbed, and half a file never has the name.
    placed=$directory/.calve-install.$$
    cp "$staging/calve-$target/calve" "$placed"
    chmod 755 "$placed"
    mv -f "$placed" "$directory/calve"
    placed=''
    echo "installed $("$directory/calve" --version) ($target) as $directory/calve"
    case :${PATH:-}: in
        *:"$directory":*) ;;
        *) echo "hint: $directory is not on your PATH" ;;
    esac
    echo "hint: completions: calve completions --help"
}

# On the last line, so that half a download does nothing.
main "$@"
