/* Rows of floats times columns of F32, in the 16 virtual lanes of the definition (quant_dot.h).
 *
 * One column: the lanes of a row's product are the lanes of a vector. Many columns: a vector holds one virtual lane of 16 rows,
 * so nothing is ever added across a vector; lane after lane runs down k, in an order in which those that are added together
 * come one after the other.
 *
 *     panel  [16 lanes][steps][16 rows]           lane l of step s is element 16s + l; steps = k/16 rounded up
 *     tile   [16 lanes][steps][TILE_COLUMNS] */

#include "compiler.h"
#include "kernels.h"
#include "quant_isa.h"

#if defined __AVX512VNNI__ || defined __ARM_FEATURE_DOTPROD
/* These sets add integer products only: the floats stay as the set below them has them. */
void K(float_gemm)(struct quant_kernels *k) { (void) k; }
#else

#include <math.h>
#include <string.h>

#include SIMD

enum { AHEAD = 2048, TILE_COLUMNS = ROWS_AT_ONCE };

/* One lane of 16 rows times TILE_COLUMNS columns. */
static inline void multiply_lane(int64_t steps, const float *w, const float *x, vf acc[TILE_COLUMNS]) {
    UNROLL for (int c = 0; c < TILE_COLUMNS; c++) acc[c] = vf_set1(0.0f);
    for (int64_t s = 0; s < steps; s++, w += 16, x += TILE_COLUMNS) {
        const vf ws = vf_load(w);
        UNROLL for (int c = 0; c < TILE_COLUMNS; c++) acc[c] = vf_fma(ws, vf_set1(x[c]), acc[c]);
    }
}

/* y[c][i .. i+n-1] for `columns` columns. */
static void multiply_tile(int64_t k, const float *panel, const float *tile, int n, int columns, float *const *y, int64_t i) {
    static const int order[16] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };
    const int64_t steps = (k + 15)/16, whole = k/16;
    vf sum[4][TILE_COLUMNS], acc[TILE_COLUMNS];
    for (int o = 0; o < 16; o++) {
        const int l = order[o];
        multiply_lane(whole + (l < k % 16), panel + l*steps*16, tile + l*steps*TILE_COLUMNS, acc);
        int depth = 0;
        for (; o >> depth & 1; depth++) {                   /* what was kept at this depth comes before acc */
            UNROLL for (int c = 0; c < TILE_COLUMNS; c++) acc[c] = vf_add(sum[depth][c], acc[c]);
        }
        if (depth < 4) memcpy(sum[depth], acc, sizeof acc);
    }
    for (int c = 0; c < columns; c++) {
        float out[16];
        vf_store(out, acc[c]);
        memcpy(y[c] + i, out, sizeof *out*(size_t) n);
    }
}

static size_t tile_size(int64_t k)    { return (size_t) ((k + 15)/16*16*TILE_COLUMNS)*sizeof(float); }
static size_t gemm_scratch(int64_t k) { return (size_t) ((k + 15)/16*256)*sizeof(float); }

static void prepare(int64_t k, int n, const float *const *x, void *tile) {
    const int64_t steps = (k + 15)/16;
    float *out = tile;
    memset(out, 0, tile_size(k));
    for (int c = 0; c < n; c++) {
        for (int64_t i = 0; i < k; i++) out[(i % 16*steps + i/16)*TILE_COLUMNS + c] = x[c][i];
    }
}

#define T       f32
#define ELEMENT float
#define LOAD    vf_load
#define WIDEN
#include "float_product.h"

#define T       f16
#define ELEMENT uint16_t
#define LOAD    vf_load_f16
#define WIDEN   f16_to_f32
#include "float_product.h"

#define T       bf16
#define ELEMENT uint16_t
#define LOAD    vf_load_bf16
#define WIDEN   bf16_to_f32
#include "float_product.h"

#define SET(NAME, tag) k->product[GGML_TYPE_##NAME] = (struct product) { 1, gemv_##tag, TILE_COLUMNS, tile_size, gemm_scratch, prepare, gemm_##tag }
void K(float_gemm)(struct quant_kernels *k) { SET(F32, f32); SET(F16, f16); SET(BF16, bf16); }

#endif
