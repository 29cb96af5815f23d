#!/usr/bin/env bash
# Runs a Windows test executable under Wine, without the tests that `left-out` names: cargo's runner, see `just wine`.
# WINEPREFIX names the folder that Wine keeps its drive in; without it, that is target/wine.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$1
shift

export WINEPREFIX=${WINEPREFIX:-$here/../../target/wine} WINEDEBUG=${WINEDEBUG:--all}
mkdir -p "$WINEPREFIX"
[[ -e $WINEPREFIX/system.reg ]] || wineboot --init

# Versions of Wine before 9 lack the library from which Rust takes random numbers.
random=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
[[ -e $random ]] || x86_64-w64-mingw32-gcc -shared -o "$random" "$here/random.c" -ladvapi32

left_out=()
while read -r test _; do
  [[ -z $test || $test == "#"* ]] || left_out+=(--skip "$test")
done <"$here/left-out"
exec wine "$program" "${left_out[@]}" "$@"
