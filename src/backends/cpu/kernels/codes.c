/* How each type reads itself into codes, in the steps of the instruction set. Compiled where registers are 256 bits wide, or
 * pairs of 128: wider sets use what is there. */

#include <string.h>

#include "compiler.h"
#include "kernels.h"
#include SIMD_INT
#include "codes.h"
#include "quant_isa.h"
#include "quant_types.h"

#ifdef READS_CODES

/* bytes: the codes of block w; factor: a float of it; minimum: puts the other one where it belongs. */
#define READ_32(tag, bytes, factor, minimum)                                                             \
    static void read_##tag(const void *row, int64_t first, int n, struct codes *c) {                    \
        const block_##tag *w = (const block_##tag *) row + first;                                       \
        for (int i = 0; i < n; i++, w++) {                                                              \
            vb_store(c->q + 32*i, bytes);                                                               \
            c->d[i*c->step] = factor;                                                                   \
            minimum;                                                                                    \
        }                                                                                               \
    }
#define LESS(n, bytes) vb_sub(bytes, vb_set(n))
#define HALF(h)        float_of_half(h)
#define NONE           (void) 0
#define MINIMUM(h, i)  c->dmin[(i)*c->step] = HALF(h)
READ_32(q4_0,   LESS( 8, codes_q4_0(w)),  HALF(w->d), NONE)
READ_32(q4_1,   codes_q4_1(w),            HALF(w->d), MINIMUM(w->m, i))
READ_32(q5_0,   LESS(16, codes_q5_0(w)),  HALF(w->d), NONE)
READ_32(q5_1,   codes_q5_1(w),            HALF(w->d), MINIMUM(w->m, i))
READ_32(q8_0,   codes_q8_0(w),            HALF(w->d), NONE)
READ_32(iq4_nl, codes_iq4_nl(w),          HALF(w->d), NONE)
READ_32(mxfp4,  LESS(12, codes_mxfp4(w)), power_of_2(w->e - 128), NONE)

/* Parts of longer blocks. */
#define READ_PARTS(tag, parts, less)                                                                    \
    static void read_##tag(const void *row, int64_t first, int n, struct codes *c) {                    \
        for (int i = 0; i < n; i++) {                                                                   \
            const block_##tag *w = (const block_##tag *) row + (first + i)/parts;                       \
            vb_store(c->q + 32*i, LESS(less, codes_##tag(w, (int) ((first + i)%parts))));               \
            c->d[i*c->step] = HALF(w->d);                                                               \
        }                                                                                               \
    }
READ_PARTS(q1_0, 4, 1)
READ_PARTS(q2_0, 2, 1)

static void read_nvfp4(const void *row, int64_t first, int n, struct codes *c) {
    for (int i = 0; i < n; i++) {
        const block_nvfp4 *w = (const block_nvfp4 *) row + (first + i)/2;
        const int part = (int) ((first + i)%2);
        vb_store(c->q + 32*i, codes_nvfp4(w, part));
        for (int h = 0; h < 2; h++) c->d[i*c->step + h*c->half] = book_e4m3[w->d[2*part + h]];
    }
}

/* bytes: the codes of elements 32j .. 32j+31; before: what they need for the whole block; unroll: UNROLL where j says how far
 * they are shifted. */
#define READ_BLOCK(unroll, tag, before, bytes, factor, minimum)                                         \
    static void read_##tag(const void *row, int64_t first, int n, struct codes *c) {                    \
        const block_##tag *w = (const block_##tag *) row + first;                                       \
        vs s, m;                                                                                        \
        (void) n;                                                                                       \
        scales_##tag(w, &s, &m);                                                                        \
        vs_store(c->scale, s), vs_store(c->min, m);                                                     \
        c->d[0] = factor;                                                                               \
        minimum;                                                                                        \
        before;                                                                                         \
        unroll for (int j = 0; j < 8; j++) vb_store(c->q + 32*j, bytes);                                \
    }
#define READ_256(unroll, tag, bytes, factor, minimum) READ_BLOCK(unroll, tag, NONE, bytes, factor, minimum)
#define READ_NUMBERED(tag, bytes, factor)             READ_BLOCK(, tag, uint16_t at[32]; numbers_##tag(w, at), bytes, factor, NONE)
#define SIGNED(tag) vb_signed(codes_##tag(w, j), signs_##tag(w, j))
READ_256(UNROLL, q2_K,    codes_q2_K(w, j),              HALF(w->d), MINIMUM(w->dmin, 0))
READ_256(UNROLL, q3_K,    LESS( 4, codes_q3_K(w, j)),    HALF(w->d), NONE)
READ_256(UNROLL, q4_K,    codes_q4_K(w, j),              HALF(w->d), MINIMUM(w->dmin, 0))
READ_256(UNROLL, q5_K,    codes_q5_K(w, j),              HALF(w->d), MINIMUM(w->dmin, 0))
READ_256(UNROLL, q6_K,    LESS(32, codes_q6_K(w, j)),    HALF(w->d), NONE)
READ_256(,       tq1_0,   LESS( 1, codes_tq1_0(w, j)),   HALF(w->d), NONE)
READ_256(,       tq2_0,   LESS( 1, codes_tq2_0(w, j)),   HALF(w->d), NONE)
READ_256(,       iq4_xs,  codes_iq4_xs(w, j),            HALF(w->d), NONE)
READ_256(,       iq2_xxs, SIGNED(iq2_xxs),               HALF(w->d)*0.125f, NONE)
READ_256(,       iq2_xs,  SIGNED(iq2_xs),                HALF(w->d)*0.125f, NONE)
READ_256(,       iq3_xxs, SIGNED(iq3_xxs),               HALF(w->d)*0.25f, NONE)
READ_256(,       iq3_s,   SIGNED(iq3_s),                 HALF(w->d), NONE)
READ_NUMBERED(iq2_s, vb_signed(codes_iq2_s(w, at, j), signs_iq2_s(w, j)), HALF(w->d)*0.125f)
READ_NUMBERED(iq1_s, LESS(less_iq1_s(w, j), codes_iq1_s(w, at, j)),       HALF(w->d)*0.125f)
READ_NUMBERED(iq1_m, LESS(9, codes_iq1_m(w, at, j)),                      HALF(half_iq1_m(w))*0.125f)

/* ---- rows of floats ---- */

/* What src/quant unpacks: d*scale is exact, so is its product with the code, or rounded once. */
static void floats_256(read_codes_t *read, bool min, const void *x, float *y, int64_t n) {
    float factor, minimum;
    struct codes c = { .d = &factor, .dmin = &minimum };
    for (int64_t b = 0; b < n/256; b++) {
        read(x, b, 1, &c);
        for (int g = 0; g < 16; g++, y += 16) {
            const float d = factor*(float) c.scale[g%2*8 + g/2], m = min ? minimum*(float) c.min[g%2*8 + g/2] : 0.0f;
            for (int i = 0; i < 16; i++) y[i] = d*(float) c.q[16*g + i] - m;
        }
    }
}
static void floats_32(read_codes_t *read, int halves, const void *x, float *y, int64_t n) {
    float factors[16];
    struct codes c = { .d = factors, .step = 2, .half = 1 };
    for (int64_t b = 0; b < n/32; b += 8) {
        const int blocks = n/32 - b < 8 ? (int) (n/32 - b) : 8;
        read(x, b, blocks, &c);
        for (int h = 0; h < 2*blocks; h++, y += 16) {
            const float d = factors[halves ? h : h/2*2];
            for (int i = 0; i < 16; i++) y[i] = d*(float) c.q[16*h + i];
        }
    }
}

#define ROWS(tag, of, with) \
    static void floats_##tag(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t n) { of(read_##tag, with, x, y, n); }
ROWS(q2_K,    floats_256, true)
ROWS(q3_K,    floats_256, false)
ROWS(q4_K,    floats_256, true)
ROWS(q5_K,    floats_256, true)
ROWS(q6_K,    floats_256, false)
ROWS(tq1_0,   floats_256, false)
ROWS(tq2_0,   floats_256, false)
ROWS(iq4_xs,  floats_256, false)
ROWS(iq1_s,   floats_256, false)
ROWS(iq1_m,   floats_256, false)
ROWS(iq2_xxs, floats_256, false)
ROWS(iq2_xs,  floats_256, false)
ROWS(iq2_s,   floats_256, false)
ROWS(iq3_xxs, floats_256, false)
ROWS(iq3_s,   floats_256, false)
ROWS(iq4_nl,  floats_32,  0)
ROWS(mxfp4,   floats_32,  0)
ROWS(nvfp4,   floats_32,  1)
ROWS(q1_0,    floats_32,  0)
ROWS(q2_0,    floats_32,  0)

#define SET(NAME, tag) k->unpack[GGML_TYPE_##NAME] = floats_##tag
void K(codes_rows)(struct quant_kernels *k) {
    SET(Q2_K, q2_K); SET(Q3_K, q3_K); SET(Q4_K, q4_K); SET(Q5_K, q5_K); SET(Q6_K, q6_K);
    SET(TQ1_0, tq1_0); SET(TQ2_0, tq2_0); SET(IQ4_XS, iq4_xs); SET(IQ1_S, iq1_s); SET(IQ1_M, iq1_m);
    SET(IQ2_XXS, iq2_xxs); SET(IQ2_XS, iq2_xs); SET(IQ2_S, iq2_s); SET(IQ3_XXS, iq3_xxs); SET(IQ3_S, iq3_s);
    SET(IQ4_NL, iq4_nl); SET(MXFP4, mxfp4); SET(NVFP4, nvfp4); SET(Q1_0, q1_0); SET(Q2_0, q2_0);
}

#define FLOATS(NAME, tag, block)
#define QUANTISED(NAME, tag, block, tile) [GGML_TYPE_##NAME] = read_##tag,
read_codes_t *const K(read_codes)[GGML_TYPE_COUNT] = {
#include "products.def"
};

#endif
