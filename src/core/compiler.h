#ifndef COMPILER_H
#define COMPILER_H
/* What not every C compiler has, behind a name. */

/* Steps of kernels must vanish into the loops that use them. */
#if defined __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* Before a loop of at most 16 rounds whose counter must be a constant in its body. */
#if defined __GNUC__
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

/* Asks for a line of memory that will be read soon; any address is allowed. */
#if defined __GNUC__
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void) (p))
#endif

#endif
