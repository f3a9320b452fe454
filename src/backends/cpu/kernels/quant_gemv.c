/* One column times rows of quantised weights. GEMV_ROWS rows at a time, in pieces of some blocks: first each row's piece is read
 * in one go, since one long stream is what memory is fastest at, and the lanes of its integer sums are kept in a buffer; then
 * the sums of all rows are reduced together, and the floats follow with a lane for each row. A type has a function of its own
 * for the first step (quant_gemv.h); the second is shared by all whose scales have one form. */

#include "compiler.h"
#include "kernels.h"
#include SIMD_INT
#include "quant_types.h"
#include "quant_isa.h"

#if defined(GEMV_OF_ALL) || defined(GEMV_OF_SOME)

enum {
    AHEAD = 4096,               /* bytes ahead of the block that is read */
    PAGE  = 4096,
    PAGES = 4*PAGE,             /* bytes further ahead, where a line of each page is asked for */
    SHORT = 512,                /* bytes of a row up to which two at once gain, 7 % with two threads; of longer ones they take half as long again */
    SUMS  = 128,                /* vectors of sums of a row in a piece: that whole rows of most models are one piece gains up to half */
};

/* The integer sums of GEMV_ROWS rows, lanes not yet added, and their float scales: what is read is kept, not used, so that
 * rows missing at the end may hold anything. Blocks of 32 stand in pairs, with d and m in one word. */
struct piece {
    union {
        _Alignas(64) int32_t isum[SUMS][GEMV_ROWS][GEMV_LANES];
        struct { int32_t isums[SUMS/2][GEMV_ROWS][GEMV_LANES], msum[SUMS/2][GEMV_ROWS][GEMV_LANES]; };      /* blocks of 256 */
    };
    union {
        uint32_t dm[2*SUMS][GEMV_ROWS];
        float    f [2*SUMS][GEMV_ROWS];
        struct { uint16_t d[2*SUMS][GEMV_ROWS], dmin[2*SUMS][GEMV_ROWS]; };
    };
};

/* A piece of some rows, and how far from the block that is read the one lies that will be read some time later. Loops keep
 * copies: for all the compiler knows, stores to a piece change this. */
struct walk {
    int       n, rows;          /* blocks, rows */
    size_t    stride;
    ptrdiff_t ahead, ahead_last;/* of all rows but the last two, and of these */
};

struct reader {
    int    block, parts;        /* elements that share a scale of activations; how many of these a block of weights has */
    int    piece;               /* most blocks of a piece */
    int    offset;              /* of codes in blocks of 32; in longer ones `rows` has taken it away */
    size_t size;                /* of a block of weights */
    float  unit;                /* what d is to be multiplied by */
    void (*rows)(const struct walk *p, const char *from, const int8_t *q, const int16_t *sums, const int16_t *fine, struct piece *out);
    vf   (*floats)(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc);
};

/* Finding a page takes as long as reading several lines of it, and what is asked for there meanwhile waits, so pages are found
 * well before (a fifth to a third faster where pages are small). */
static inline void find_pages(const char *ahead, size_t size) {
    for (size_t at = 0; at < size; at += PAGE) prefetch(ahead + PAGES + at);
}

/* ---- floats -------------------------------------------------------------------------------------------------------- */

static inline vf scaled(vf d, float d_a, vi isum, vf acc) { return vf_fma(vf_mul(d, vf_set(d_a)), vf_from_ints(isum), acc); }

static vf floats_32(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    for (int b = 0; b < n; b += 2) {
        vi first, last;
        vi_reduce_pair(in->isum[b/2][0], &first, &last);
        acc = scaled(vf_from_halves(in->d[b]), d_a[b], vi_sub(first, vi_set(t->offset*sums[b])), acc);
        if (b + 1 < n) acc = scaled(vf_from_halves(in->d[b + 1]), d_a[b + 1], vi_sub(last, vi_set(t->offset*sums[b + 1])), acc);
    }
    return acc;
}

static inline vf with_minimum(const uint32_t *dm, float d_a, float d_sum, vi isum, vf acc) {
    vf d, m;
    vf_from_pairs(dm, &d, &m);
    return vf_fma(m, vf_set(d_sum), scaled(d, d_a, isum, acc));
}
static vf floats_32_min(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    (void) t;
    for (int b = 0; b < n; b += 2) {
        vi first, last;
        vi_reduce_pair(in->isum[b/2][0], &first, &last);
        acc = with_minimum(in->dm[b], d_a[b], d_a[b]*(float) sums[b], first, acc);
        if (b + 1 < n) acc = with_minimum(in->dm[b + 1], d_a[b + 1], d_a[b + 1]*(float) sums[b + 1], last, acc);
    }
    return acc;
}

static vf floats_256(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    (void) sums;
    for (int b = 0; b < n; b++) {
        acc = scaled(vf_mul(vf_from_halves(in->d[b]), vf_set(t->unit)), d_a[b], vi_reduce(in->isum[b][0]), acc);
    }
    return acc;
}
static vf floats_256_min(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    (void) t, (void) sums;
    for (int b = 0; b < n; b++) {
        acc = scaled(vf_from_halves(in->d[b]), d_a[b], vi_reduce(in->isum[b][0]), acc);
        acc = vf_fnma(vf_mul(vf_from_halves(in->dmin[b]), vf_set(d_a[b])), vf_from_ints(vi_reduce(in->msum[b][0])), acc);
    }
    return acc;
}

#ifdef GEMV_OF_ALL
static vf floats_mxfp4(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    for (int b = 0; b < n; b += 2) {
        vi first, last;
        vi_reduce_pair(in->isum[b/2][0], &first, &last);
        acc = scaled(vf_load(in->f[b]), d_a[b], vi_sub(first, vi_set(t->offset*sums[b])), acc);
        if (b + 1 < n) acc = scaled(vf_load(in->f[b + 1]), d_a[b + 1], vi_sub(last, vi_set(t->offset*sums[b + 1])), acc);
    }
    return acc;
}
static vf floats_nvfp4(const struct reader *t, int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    (void) t, (void) sums;
    for (int b = 0; b < n; b += 2) {
        vi sum[4];                              /* of the halves of both blocks */
        vi_reduce_pair(in->isum[b][0], &sum[0], &sum[2]), vi_reduce_pair(in->isum[b + 1][0], &sum[1], &sum[3]);
        for (int h = 0; h < 4; h++) acc = scaled(vf_load(in->f[2*b + h]), d_a[b + h/2], sum[h], acc);
    }
    return acc;
}
#endif

/* ---- the loop ------------------------------------------------------------------------------------------------------ */

/* Rows in one piece follow each other in memory. Else what will be read two pieces later is of the next rows, or the next
 * piece of the first rows, or the first piece of the rows after these. */
static struct walk walk_at(const struct reader *t, int64_t blocks, int64_t b, int n, int rows, size_t stride) {
    struct walk p = { n, rows, stride, AHEAD, AHEAD };
    if (n == blocks) return p;
    const ptrdiff_t step = (ptrdiff_t) stride, block = (ptrdiff_t) t->size;
    p.ahead = 2*step;
    p.ahead_last = b + n < blocks ? (2 - rows)*step + n/t->parts*block : 2*step - b/t->parts*block;
    return p;
}

static void gemv(const struct reader *t, int64_t k, int64_t rows, const void *weights, size_t stride, const void *column, float *y) {
    const int64_t blocks = k/t->block, pieces = (blocks + t->piece - 1)/t->piece;
    const int64_t most = pieces ? ((blocks + pieces - 1)/pieces + 3)/4*4 : 4;                      /* whole blocks, in pairs */
    const int8_t  *q    = column;
    const float   *d_a  = (const float *) (const void *) ((const char *) column + column_d(k));
    const int16_t *sums = (const int16_t *) (const void *) ((const char *) column + column_sums(t->block, k));
    const int16_t *fine = (const int16_t *) (const void *) ((const char *) column + column_fine(t->block, k));
    const int run = t->block/column_run(t->block), fines = t->block == 32 ? 16 : 8;
    struct piece piece;
    for (int64_t i = 0; i < rows; i += GEMV_ROWS) {
        const int n_rows = rows - i < GEMV_ROWS ? (int) (rows - i) : GEMV_ROWS;
        vf acc = vf_zero();
        for (int64_t b = 0; b < blocks; b += most) {
            const int n = (int) (blocks - b < most ? blocks - b : most);
            const struct walk p = walk_at(t, blocks, b, n, n_rows, stride);
            t->rows(&p, (const char *) weights + (size_t) i*stride + (size_t) (b/t->parts)*t->size, q + b*t->block, sums + b*run,
                    fine + b*fines, &piece);
            acc = t->floats(t, n, &piece, d_a + b, sums + b*run, acc);
        }
        if (n_rows == GEMV_ROWS) {
            vf_store(y + i, acc);
        } else {
            float last[GEMV_ROWS];
            vf_store(last, acc);
            memcpy(y + i, last, sizeof *y*(size_t) n_rows);
        }
    }
}

/* ---- the types ----------------------------------------------------------------------------------------------------- */

#define VI_DOT_PAIR_0 vi_dot_pair
#define VI_DOT_PAIR_1 vi_dot_pair_signed

#define T q4_0
#define BLOCK  32
#define OFFSET 8
#define MIN    0
#define SIGNED 0
#define PAIRS  1
#include "quant_gemv.h"

#define T q4_1
#define BLOCK  32
#define OFFSET 0
#define MIN    1
#define SIGNED 0
#define PAIRS  1
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
#define PLACE    f
#define PLACE_T  float
#define SCALE(w) power_of_2((w)->e - 128)
#define FLOATS   floats_mxfp4
#include "quant_gemv.h"

#define T nvfp4
#define BLOCK  32
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#define PARTS  2
#define HALVES 1
#define FLOATS floats_nvfp4
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
#include "quant_gemv.h"

#define T tq2_0
#define BLOCK  256
#define OFFSET 1
#define MIN    0
#define SIGNED 0
#include "quant_gemv.h"

#define T iq4_xs
#define BLOCK  256
#define OFFSET 0
#define MIN    0
#define SIGNED 1
#include "quant_gemv.h"

#define T iq1_s
#define BLOCK  256
#define OFFSET 0
#define OFFSETS 1
#define NUMBERED 1
#define MIN    0
#define SIGNED 0
#define UNIT   0.125f
#include "quant_gemv.h"

#define T iq1_m
#define BLOCK  256
#define NUMBERED 1
#define OFFSET 9
#define MIN    0
#define SIGNED 0
#define UNIT   0.125f
#define PLACE    d
#define PLACE_T  uint16_t
#define SCALE(w) half_iq1_m(w)
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
#define NUMBERED 1
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
