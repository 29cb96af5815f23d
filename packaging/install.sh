#!/bin/sh
# Installs sidenote for one user, without root: downloads the archive for this system, checks its SHA-256, and puts the
# program into ~/.local/bin. `install.sh --uninstall` removes the program.
#
# SIDENOTE_DOWNLOADS   address of the folder with the archives and SHA256SUMS; https, http or file
# SIDENOTE_BIN         folder for the program
set -eu

version="@VERSION@"
downloads="${SIDENOTE_DOWNLOADS:-@DOWNLOADS@}"
bin="${SIDENOTE_BIN:-$HOME/.local/bin}"

fail() {
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

usage() {
  sed -n 's/^# \{0,1\}//p' "$0" 2>/dev/null | sed -n '2,6p'
}

# Prints the targets that run here, best first.
targets() {
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) cpu=x86_64 ;;
    aarch64 | arm64) cpu=aarch64 ;;
    *) fail "there is no archive for the processor $machine" "build sidenote from source" ;;
  esac
  case $(uname -s) in
    Darwin) echo "$cpu-apple-darwin" ;;
    Linux)
      # The program for musl is static and runs on each Linux; the one for glibc is faster.
      if [ -n "$(getconf GNU_LIBC_VERSION 2>/dev/null)" ]; then echo "$cpu-unknown-linux-gnu"; fi
      echo "$cpu-unknown-linux-musl"
      ;;
    *) fail "there is no archive for $(uname -s)" "on Windows, use install.ps1; elsewhere, build sidenote from source" ;;
  esac
}

# Downloads $1 from the folder of archives to the file $2.
fetch() {
  case $downloads in
    file://*) cp "${downloads#file://}/$1" "$2" ;;
    *)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --output "$2" "$downloads/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$downloads/$1"
      else
        fail "neither curl nor wget is installed" "install one of them"
      fi
      ;;
  esac
}

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  else
    fail "neither sha256sum nor shasum is installed" "install one of them"
  fi
}

install() {
  temporary=$(mktemp -d)
  trap 'rm -rf "$temporary"' EXIT
  trap 'exit 130' INT TERM
  fetch SHA256SUMS "$temporary/SHA256SUMS" || fail "cannot download $downloads/SHA256SUMS" "check the network, or set SIDENOTE_DOWNLOADS"
  found=""
  candidates=$(targets)
  for target in $candidates; do
    archive="sidenote-$version-$target.tar.gz"
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$temporary/SHA256SUMS")
    if [ -n "$expected" ]; then
      fetch "$archive" "$temporary/$archive" || fail "cannot download $downloads/$archive"
      actual=$(checksum "$temporary/$archive")
      [ "$actual" = "$expected" ] || fail "the SHA-256 of $archive is $actual, but SHA256SUMS says $expected" "nothing was installed; download again"
      tar -xzf "$temporary/$archive" -C "$temporary"
      # A program for a newer glibc does not start here; the next archive may.
      if "$temporary/sidenote-$version-$target/sidenote" --version >/dev/null 2>&1; then
        found="$temporary/sidenote-$version-$target/sidenote"
        break
      fi
    fi
  done
  [ -n "$found" ] || fail "$downloads has no archive that runs here" "build sidenote from source"
  mkdir -p "$bin"
  # The new program replaces the old one at once, also while the old one runs.
  cp "$found" "$bin/.sidenote.new"
  chmod 755 "$bin/.sidenote.new"
  mv -f "$bin/.sidenote.new" "$bin/sidenote"
  printf 'installed %s as %s\n' "$("$bin/sidenote" --version)" "$bin/sidenote"
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) printf 'hint: %s is not in PATH; add it in the settings of your shell\n' "$bin" ;;
  esac
}

uninstall() {
  [ -e "$bin/sidenote" ] || fail "there is no $bin/sidenote" "set SIDENOTE_BIN to the folder with the program"
  rm -f "$bin/sidenote"
  printf 'removed %s; indexes (.sidenote in each vault) and settings (~/.config/sidenote) are kept\n' "$bin/sidenote"
}

case "${1:-}" in
  "") install ;;
  --uninstall) uninstall ;;
  --help | -h) usage ;;
  *) fail "unknown argument $1" "use no argument, --uninstall or --help" ;;
esac
