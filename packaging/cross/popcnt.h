/* Included in front of each source for x86-64 that zig compiles. Clang refuses `_mm_popcnt_u64` in numkong's kernels for
   Skylake, which do not name the processor feature `popcnt`; its built-in function needs no such feature. */
#if !defined(SIDENOTE_POPCNT_H) && !defined(__ASSEMBLER__)
#define SIDENOTE_POPCNT_H
#include <popcntintrin.h>
#undef _mm_popcnt_u32
#undef _mm_popcnt_u64
#define _mm_popcnt_u32(value) __builtin_popcount((unsigned int)(value))
#define _mm_popcnt_u64(value) __builtin_popcountll((unsigned long long)(value))
#endif
