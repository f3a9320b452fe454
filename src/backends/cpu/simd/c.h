#ifndef SIMD_C_H
#define SIMD_C_H
/* The float steps on one lane, in plain C: with these, the formulas of kernels/elementary.h are the portable definitions.
 * simd/avx2.h, avx512.h and neon.h say the same on 16 lanes.
 *     vf  floats    vu  32-bit words of floats    vm  one truth value a lane    vd  doubles */

#include <math.h>
#include "compiler.h"
#include "quant.h"

typedef float    vf;
typedef uint32_t vu;
typedef bool     vm;
typedef double   vd;

#define LANES 1

INLINE vf vf_load(const float *p)    { return *p; }
INLINE void vf_store(float *p, vf a) { *p = a; }
INLINE vf vf_set1(float a)           { return a; }
INLINE vf vf_add(vf a, vf b)         { return a + b; }
INLINE vf vf_sub(vf a, vf b)         { return a - b; }
INLINE vf vf_mul(vf a, vf b)         { return a*b; }
INLINE vf vf_div(vf a, vf b)         { return a/b; }
INLINE vf vf_fma(vf a, vf b, vf c)   { return fmaf(a, b, c); }         /* a*b + c, rounded once */
INLINE vf vf_fnma(vf a, vf b, vf c)  { return fmaf(-a, b, c); }        /* c - a*b, rounded once */
INLINE vf vf_min(vf a, vf b)         { return a < b ? a : b; }         /* b when either is a NaN */
INLINE vf vf_max(vf a, vf b)         { return a > b ? a : b; }
INLINE vf vf_sqrt(vf a)              { return sqrtf(a); }
INLINE vf vf_floor(vf a)             { return floorf(a); }
INLINE vf vf_ceil(vf a)              { return ceilf(a); }
INLINE vf vf_trunc(vf a)             { return truncf(a); }
INLINE vm vf_lt(vf a, vf b)          { return a < b; }
INLINE vm vf_eq(vf a, vf b)          { return a == b; }
INLINE vf vf_select(vm m, vf a, vf b) { return m ? a : b; }

INLINE vu vu_set1(uint32_t a)        { return a; }
INLINE vu vu_of(vf a)                { return f32_bits(a); }           /* the word that holds a */
INLINE vf vf_of(vu a)                { return bits_f32(a); }
INLINE vu vu_add(vu a, vu b)         { return a + b; }
INLINE vu vu_sub(vu a, vu b)         { return a - b; }
INLINE vu vu_and(vu a, vu b)         { return a & b; }
INLINE vu vu_or(vu a, vu b)          { return a | b; }
#define vu_shl(a, n) ((vu) (a) << (n))
#define vu_shr(a, n) ((vu) (a) >> (n))
INLINE vu vu_sar_(vu a, int n)       { return a >> n | (a >> 31 ? ~(~(vu) 0 >> n) : 0); }
#define vu_sar(a, n) vu_sar_(a, n)                                     /* copies of the sign come in */
INLINE vf vf_from_int(vu a)          { return (float) (a >> 31 ? -(int64_t) (0u - a) : (int64_t) a); }

INLINE vd vd_load(const double *p)   { return *p; }
INLINE vd vd_set1(double a)          { return a; }
INLINE vd vd_from(vf a)              { return a; }
INLINE vf vf_from(vd a)              { return (float) a; }
INLINE vd vd_add(vd a, vd b)         { return a + b; }
INLINE vd vd_sub(vd a, vd b)         { return a - b; }
INLINE vd vd_mul(vd a, vd b)         { return a*b; }
INLINE vd vd_fma(vd a, vd b, vd c)   { return fma(a, b, c); }
INLINE uint64_t vd_word(vd a)        { union { double d; uint64_t u; } w = { .d = a }; return w.u; }
/* Bit n of the word of m decides: a where it is set, else b; and a with its sign flipped where it is set. */
#define vd_pick(m, n, a, b) (vd_word(m) >> (n) & 1 ? (a) : (b))
#define vd_flip(m, n, a)    (vd_word(m) >> (n) & 1 ? -(a) : (a))

#endif
