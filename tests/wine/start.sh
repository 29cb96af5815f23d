#!/usr/bin/env bash
# Runs a Windows program under Wine: start.sh PROGRAM [ARGUMENTS].
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/prefix.sh"
exec wine "$@"
