/* One column times rows of quantised weights: the loop of quant_gemv.h for every type. */

#include "kernels.h"
#include SIMD_INT
#include "quant_types.h"
#include "quant_isa.h"

enum { AHEAD = 4096 };       /* bytes ahead of the block that is read */

/* The integer sums of GEMV_ROWS rows, lanes not yet added, and their float scales: what is read is kept, not used, so that
 * rows missing at the end may hold anything. Blocks of 32 stand in pairs, with d and m in one word. */
struct piece {
    _Alignas(64) int32_t isum[32][GEMV_ROWS][GEMV_LANES];
    int32_t  msum[16][GEMV_ROWS][GEMV_LANES];
    uint32_t dm[64][GEMV_ROWS];
    uint16_t d[64][GEMV_ROWS], dmin[16][GEMV_ROWS];
};

#define VI_DOT_PAIR_0 vi_dot_pair
#define VI_DOT_PAIR_1 vi_dot_pair_signed

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

#define SET(NAME, tag) k->product[GGML_TYPE_##NAME].gemv = gemv_##tag
void K(quant_gemv)(struct quant_kernels *k) {
    SET(Q4_0, q4_0); SET(Q4_1, q4_1); SET(Q5_0, q5_0); SET(Q5_1, q5_1); SET(Q8_0, q8_0);
    SET(Q2_K, q2_K); SET(Q3_K, q3_K); SET(Q4_K, q4_K); SET(Q5_K, q5_K); SET(Q6_K, q6_K);
}
