#!/usr/bin/env bash
# Runs a program for Linux on ARM under qemu's user mode: run.sh PROGRAM [ARGUMENTS].
# SIDENOTE_QEMU_ROOT names the folder with the libraries of that system; a static program needs none.
set -euo pipefail
exec qemu-aarch64 -L "${SIDENOTE_QEMU_ROOT:-/usr/aarch64-linux-gnu}" "$@"
