#!/usr/bin/env bash
# Runs a Windows test executable under Wine, without the tests that `left-out` names: cargo's runner, see `just wine`.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/prefix.sh"
program=$1
shift

left_out=()
while read -r test _; do
  [[ -z $test || $test == "#"* ]] || left_out+=(--skip "$test")
done <"$wine_folder/left-out"
exec wine "$program" "${left_out[@]}" "$@"
