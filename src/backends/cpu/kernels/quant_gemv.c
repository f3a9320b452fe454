/* One column times rows of quantised weights: the loop of quant_gemv.h for every type. */

#include "kernels.h"
#include SIMD_INT
#include "quant_types.h"
#include "quant_isa.h"

#if defined(GEMV_OF_ALL) || defined(GEMV_OF_SOME)

enum { AHEAD = 4096 };       /* bytes ahead of the block that is read */

/* The integer sums of GEMV_ROWS rows, lanes not yet added, and their float scales: what is read is kept, not used, so that
 * rows missing at the end may hold anything. Blocks of 32 stand in pairs, with d and m in one word. */
struct piece {
    _Alignas(64) int32_t isum[32][GEMV_ROWS][GEMV_LANES];
    int32_t  msum[16][GEMV_ROWS][GEMV_LANES];
    union { uint32_t dm[64][GEMV_ROWS]; float f[64][GEMV_ROWS]; };
    uint16_t d[64][GEMV_ROWS], dmin[16][GEMV_ROWS];
};

#define VI_DOT_PAIR_0 vi_dot_pair
#define VI_DOT_PAIR_1 vi_dot_pair_signed

/* How the scale of a block, or of two, comes into the buffer and out of it: a half, as a word with m, or a float. */
#define PUT_HALVES(out, b, row, w, last) (out)->d[b][row] = (w)->d, (out)->d[(b) + 1][row] = (last)->d
#define PUT_HALF(out, b, row, w, last)   (out)->d[b][row] = (w)->d
#define PUT_PAIRS(out, b, row, w, last)  memcpy(&(out)->dm[b][row], w, 4), memcpy(&(out)->dm[(b) + 1][row], (last), 4)
#define GET_HALF(in, b)                  vf_from_halves((in)->d[b])
#define PUT_q4_0    PUT_HALVES
#define GET_q4_0    GET_HALF
#define PUT_q5_0    PUT_HALVES
#define GET_q5_0    GET_HALF
#define PUT_q8_0    PUT_HALVES
#define GET_q8_0    GET_HALF
#define PUT_iq4_nl  PUT_HALVES
#define GET_iq4_nl  GET_HALF
#define PUT_q1_0    PUT_HALVES
#define GET_q1_0    GET_HALF
#define PUT_q2_0    PUT_HALVES
#define GET_q2_0    GET_HALF
#define PUT_q4_1    PUT_PAIRS
#define PUT_q5_1    PUT_PAIRS
#define PUT_q2_K    PUT_HALF
#define PUT_q3_K    PUT_HALF
#define PUT_q4_K    PUT_HALF
#define PUT_q5_K    PUT_HALF
#define PUT_q6_K    PUT_HALF
#define PUT_tq1_0   PUT_HALF
#define PUT_tq2_0   PUT_HALF
#define PUT_iq4_xs  PUT_HALF
#define PUT_iq1_s   PUT_HALF
#define PUT_iq2_xxs PUT_HALF
#define PUT_iq2_xs  PUT_HALF
#define PUT_iq2_s   PUT_HALF
#define PUT_iq3_xxs PUT_HALF
#define PUT_iq3_s   PUT_HALF
#define PUT_iq1_m(out, b, row, w, last)  (out)->d[b][row] = half_iq1_m(w)
#define PUT_mxfp4(out, b, row, w, last)  (out)->f[b][row] = power_of_2((w)->e - 128), (out)->f[(b) + 1][row] = power_of_2((last)->e - 128)
#define GET_mxfp4(in, b)                 vf_load((in)->f[b])

#define T q4_0
#define BLOCK  32
#define OFFSET 8
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#define T q4_1
#define BLOCK  32
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#include "quant_gemv.h"

#define T q5_0
#define BLOCK  32
#define OFFSET 16
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#define T q5_1
#define BLOCK  32
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#include "quant_gemv.h"

#define T q8_0
#define BLOCK  32
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#include "quant_gemv.h"

#define T q2_K
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#include "quant_gemv.h"

#define T q3_K
#define BLOCK  256
#define OFFSET 4
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#define T q4_K
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#include "quant_gemv.h"

#define T q5_K
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#include "quant_gemv.h"

#define T q6_K
#define BLOCK  256
#define OFFSET 32
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#ifdef GEMV_OF_ALL
#define T iq4_nl
#define BLOCK  32
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#include "quant_gemv.h"

#define T mxfp4
#define BLOCK  32
#define OFFSET 12
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#define T nvfp4
#define BLOCK  32
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#define PARTS  2
#define HALVES 1
#include "quant_gemv.h"

#define T q1_0
#define BLOCK  32
#define OFFSET 1
#define MIN    0
#define SIGNED 0
#define PARTS  4
#include "quant_gemv.h"

#define T q2_0
#define BLOCK  32
#define OFFSET 1
#define MIN    0
#define SIGNED 0
#define PARTS  2
#include "quant_gemv.h"

#define T tq1_0
#define BLOCK  256
#define OFFSET 1
#define MIN    0
#define SIGNED 0
#define SMALL  1
#include "quant_gemv.h"

#define T tq2_0
#define BLOCK  256
#define OFFSET 1
#define MIN    0
#define SIGNED 0
#define SMALL  1
#include "quant_gemv.h"

#define T iq4_xs
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#include "quant_gemv.h"

#define T iq1_s
#define BLOCK  256
#define OFFSET 9
#define MIN    0
#define SIGNED 0
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq1_m
#define BLOCK  256
#define OFFSET 9
#define MIN    0
#define SIGNED 0
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq2_xxs
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 2
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq2_xs
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 2
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq2_s
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 2
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq3_xxs
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 2
#define UNIT   0.25f
#include "quant_gemv.h"

#define T iq3_s
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 2
#include "quant_gemv.h"

#endif

#define SET(NAME, tag) k->product[GGML_TYPE_##NAME].gemv = gemv_##tag
void K(quant_gemv)(struct quant_kernels *k) {
    SET(Q4_0, q4_0); SET(Q4_1, q4_1); SET(Q5_0, q5_0); SET(Q5_1, q5_1); SET(Q8_0, q8_0);
    SET(Q2_K, q2_K); SET(Q3_K, q3_K); SET(Q4_K, q4_K); SET(Q5_K, q5_K); SET(Q6_K, q6_K);
#ifdef GEMV_OF_ALL
    SET(IQ4_NL, iq4_nl); SET(IQ4_XS, iq4_xs); SET(MXFP4, mxfp4); SET(NVFP4, nvfp4); SET(Q1_0, q1_0); SET(Q2_0, q2_0);
    SET(TQ1_0, tq1_0); SET(TQ2_0, tq2_0); SET(IQ1_S, iq1_s); SET(IQ1_M, iq1_m); SET(IQ2_XXS, iq2_xxs); SET(IQ2_XS, iq2_xs);
    SET(IQ2_S, iq2_s); SET(IQ3_XXS, iq3_xxs); SET(IQ3_S, iq3_s);
#endif
}
#undef SET

#else
void K(quant_gemv)(struct quant_kernels *k) { (void) k; }       /* those below stay */
#endif
