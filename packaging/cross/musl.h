/* Included in front of each source in C++ for x86-64 with musl. numkong declares `syscall` as glibc does, with `noexcept`;
   musl's headers declare it without, which a compiler refuses. Here numkong declares another name of the same function. */
#if defined(__cplusplus) && !defined(SIDENOTE_MUSL_H)
#define SIDENOTE_MUSL_H
#include <unistd.h>
extern "C" long numkong_syscall(long, ...) noexcept __asm__("syscall");
#define syscall numkong_syscall
#endif
