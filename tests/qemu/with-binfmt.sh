#!/usr/bin/env bash
# Runs a command for which the system starts programs for Linux on ARM under qemu: with-binfmt.sh COMMAND [ARGUMENTS].
# That is for a program that starts itself, as `self-check` does, and for the tests with SIDENOTE_TEST_PROGRAM. The rule is
# in a namespace of its own, which needs Linux 6.7 and user namespaces. The rest of the system does not see it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ ${1:-} != --inside ]]; then
  exec unshare --user --map-root-user --mount "$here/with-binfmt.sh" --inside "$@"
fi
shift

mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
# The first 20 bytes of an ELF file: 64 bits, little-endian, any system; an executable or a shared object, for ARM.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":sidenote-aarch64:M::$magic:$mask:$here/run.sh:" >/proc/sys/fs/binfmt_misc/register
exec "$@"
