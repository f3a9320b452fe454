/* The definition of every product of weights with activations, in plain scalar code. A type says how to read one block
 * (read_<tag>: codes with their offset already taken away, integer scales and minimums, float scales); the sums are written
 * once. Slow and simple on purpose: each instruction set is tested against this file bit for bit. */

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "quant.h"

#define SMALLEST_NORMAL 0x1p-126f

/* One block of weights, as long as a block of activations. Groups of 256/16 = 16 elements have a scale and a minimum in blocks
 * of 256; a block of 32 has none. */
struct block {
    float  d, dmin;             /* dmin is added for blocks of 32 (m), taken away for blocks of 256 */
    float  d_last;              /* of elements 16 .. 31 where d is that of 0 .. 15 alone */
    int8_t q[QK_K];
    int16_t scale[QK_K/16], min[QK_K/16];
};

/* ---- how types read themselves ---- */

static int nibble(const uint8_t *qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

static int fifth_bit(const uint8_t qh[4], int i) { return (qh[i/8] >> i%8 & 1) << 4; }

static void read_q4_0(const void *data, int part, struct block *b) {
    (void) part;
    const block_q4_0 *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t) (nibble(w->qs, i) - 8);
}

static void read_q4_1(const void *data, int part, struct block *b) {
    (void) part;
    const block_q4_1 *w = data;
    b->d = f16_to_f32(w->d), b->dmin = f16_to_f32(w->m);
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t) nibble(w->qs, i);
}

static void read_q5_0(const void *data, int part, struct block *b) {
    (void) part;
    const block_q5_0 *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t) ((nibble(w->qs, i) | fifth_bit(w->qh, i)) - 16);
}

static void read_q5_1(const void *data, int part, struct block *b) {
    (void) part;
    const block_q5_1 *w = data;
    b->d = f16_to_f32(w->d), b->dmin = f16_to_f32(w->m);
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t) (nibble(w->qs, i) | fifth_bit(w->qh, i));
}

static void read_q8_0(const void *data, int part, struct block *b) {
    (void) part;
    const block_q8_0 *w = data;
    b->d = f16_to_f32(w->d);
    memcpy(b->q, w->qs, 32);
}

/* Two bits of element i where 64 bytes hold a block of 256: halves of 128, in each four planes of 32. */
static int two_bits(const uint8_t *qs, int i) { return qs[i/128*32 + i%32] >> i%128/32*2 & 3; }

static void read_q2_K(const void *data, int part, struct block *b) {
    (void) part;
    const block_q2_K *w = data;
    b->d = f16_to_f32(w->d), b->dmin = f16_to_f32(w->dmin);
    for (int i = 0; i < QK_K; i++) b->q[i] = (int8_t) two_bits(w->qs, i);
    for (int g = 0; g < 16; g++) b->scale[g] = w->scales[g] & 15, b->min[g] = w->scales[g] >> 4;
}

static void read_q3_K(const void *data, int part, struct block *b) {
    (void) part;
    const block_q3_K *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < QK_K; i++) b->q[i] = (int8_t) (two_bits(w->qs, i) + (w->hmask[i%32] >> i/32 & 1)*4 - 4);
    for (int g = 0; g < 16; g++) {
        const int low = w->scales[g%8] >> g/8*4 & 15, high = w->scales[8 + g%4] >> g/4*2 & 3;
        b->scale[g] = (int16_t) (low + high*16 - 32);
    }
}

/* The six-bit scales and minimums of eight groups of 32 (Q4_K and Q5_K). */
static void six_bits(const uint8_t s[12], struct block *b) {
    for (int g = 0; g < 16; g++) {
        const int h = g/2;
        b->scale[g] = h < 4 ? s[h] & 63     : (s[h + 4] & 15) + (s[h - 4] >> 6)*16;
        b->min[g]   = h < 4 ? s[h + 4] & 63 : (s[h + 4] >> 4) + (s[h] >> 6)*16;
    }
}

static void read_q4_K(const void *data, int part, struct block *b) {
    (void) part;
    const block_q4_K *w = data;
    b->d = f16_to_f32(w->d), b->dmin = f16_to_f32(w->dmin);
    for (int i = 0; i < QK_K; i++) b->q[i] = w->qs[i/64*32 + i%32] >> i%64/32*4 & 15;
    six_bits(w->scales, b);
}

static void read_q5_K(const void *data, int part, struct block *b) {
    (void) part;
    const block_q5_K *w = data;
    b->d = f16_to_f32(w->d), b->dmin = f16_to_f32(w->dmin);
    for (int i = 0; i < QK_K; i++) {
        const int low = w->qs[i/64*32 + i%32] >> i%64/32*4 & 15;
        b->q[i] = (int8_t) (low + (w->qh[i%32] >> i/32 & 1)*16);
    }
    six_bits(w->scales, b);
}

static void read_q6_K(const void *data, int part, struct block *b) {
    (void) part;
    const block_q6_K *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < QK_K; i++) {
        const int low = w->ql[i/128*64 + i%64] >> i%128/64*4 & 15, high = w->qh[i/128*32 + i%32] >> i%128/32*2 & 3;
        b->q[i] = (int8_t) (low + high*16 - 32);
    }
    for (int g = 0; g < 16; g++) b->scale[g] = w->scales[g];
}

/* ---- values from a table ---- */

static void read_iq4_nl(const void *data, int part, struct block *b) {
    const block_iq4_nl *w = data;
    (void) part;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < 32; i++) b->q[i] = iq4_values[nibble(w->qs, i)];
}

static void read_iq4_xs(const void *data, int part, struct block *b) {
    const block_iq4_xs *w = data;
    (void) part;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < QK_K; i++) b->q[i] = iq4_values[nibble(w->qs + i/32*16, i%32)];
    for (int g = 0; g < 16; g++) {
        const int k = g/2;
        b->scale[g] = (int16_t) ((w->scales_l[k/2] >> k%2*4 & 15) + (w->scales_h >> 2*k & 3)*16 - 32);
    }
}

static void read_mxfp4(const void *data, int part, struct block *b) {
    const block_mxfp4 *w = data;
    (void) part;
    b->d = power_of_2(w->e - 128);
    for (int i = 0; i < 32; i++) b->q[i] = fp4_values[nibble(w->qs, i)];
}

/* ---- 64 or 128 weights, of which a part meets a block of activations ---- */

static void read_nvfp4(const void *data, int part, struct block *b) {
    const block_nvfp4 *w = data;
    b->d = e4m3_half(w->d[2*part]), b->d_last = e4m3_half(w->d[2*part + 1]);
    for (int i = 0; i < 32; i++) b->q[i] = fp4_values[w->qs[16*part + i/16*8 + i%8] >> i%16/8*4 & 15];
}

static void read_q1_0(const void *data, int part, struct block *b) {
    const block_q1_0 *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < 32; i++) b->q[i] = w->qs[4*part + i/8] >> i%8 & 1 ? 1 : -1;
}

static void read_q2_0(const void *data, int part, struct block *b) {
    const block_q2_0 *w = data;
    b->d = f16_to_f32(w->d);
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t) ((w->qs[8*part + i/4] >> i%4*2 & 3) - 1);
}

/* ---- three values ---- */

static void ones(struct block *b) { for (int g = 0; g < 16; g++) b->scale[g] = 1; }

static void read_tq1_0(const void *data, int part, struct block *b) {
    const block_tq1_0 *w = data;
    static const uint8_t powers[5] = { 1, 3, 9, 27, 81 };
    (void) part;
    b->d = f16_to_f32(w->d);
    ones(b);
    for (int i = 0; i < QK_K; i++) {
        const uint8_t five = i < 160 ? w->qs[i%32] : i < 240 ? w->qs[32 + i%16] : w->qh[i%4];
        const int digit = i < 160 ? i/32 : i < 240 ? (i - 160)/16 : (i - 240)/4;
        b->q[i] = (int8_t) (((uint8_t) (five*powers[digit])*3 >> 8) - 1);
    }
}

static void read_tq2_0(const void *data, int part, struct block *b) {
    const block_tq2_0 *w = data;
    (void) part;
    b->d = f16_to_f32(w->d);
    ones(b);
    for (int i = 0; i < QK_K; i++) b->q[i] = (int8_t) (two_bits(w->qs, i) - 1);
}

/* ---- codebooks: scales are odd, 2s + 1, and what is left of the formulas of iq.c is a power of two in d ---- */

static void put_8(const int8_t value[4], unsigned entry, unsigned signs, int8_t *q) {
    for (int j = 0; j < 8; j++) q[j] = (int8_t) (value[entry >> 2*j & 3]*(signs >> j & 1 ? -1 : 1));
}
static void put_4(const int8_t value[8], unsigned entry, unsigned signs, int8_t *q) {
    for (int j = 0; j < 4; j++) q[j] = (int8_t) (value[entry >> 4*j & 7]*(signs >> j & 1 ? -1 : 1));
}

static const int8_t iq2_values[4] = { 8, 25, 43 }, iq1_values[4] = { -8, 0, 8 };        /* IQ1: in eighths */
static const int8_t iq3_xxs_values[8] = { 4, 12, 20, 28, 36, 44, 52, 62 }, iq3_s_values[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };

static uint32_t word_at(const uint8_t *p) { return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24; }

static void read_iq2_xxs(const void *data, int part, struct block *b) {
    const block_iq2_xxs *w = data;
    (void) part;
    b->d = f16_to_f32(w->d)*0.125f;
    for (int n = 0; n < 32; n++) {
        const uint16_t *record = w->qs + n/4*4;
        const uint32_t rest = record[2] | (uint32_t) record[3] << 16;
        b->scale[n/2] = (int16_t) (2*(rest >> 28) + 1);
        put_8(iq2_values, grid_iq2_xxs[record[n%4/2] >> n%2*8 & 255], even_signs(rest >> n%4*7 & 127), b->q + 8*n);
    }
}

static void read_iq2_xs(const void *data, int part, struct block *b) {
    const block_iq2_xs *w = data;
    (void) part;
    b->d = f16_to_f32(w->d)*0.125f;
    for (int n = 0; n < 32; n++) {
        b->scale[n/2] = 2*(w->scales[n/4] >> n/2%2*4 & 15) + 1;
        put_8(iq2_values, grid_iq2_xs[w->qs[n] & 511], even_signs(w->qs[n] >> 9), b->q + 8*n);
    }
}

static void read_iq2_s(const void *data, int part, struct block *b) {
    const block_iq2_s *w = data;
    (void) part;
    b->d = f16_to_f32(w->d)*0.125f;
    for (int n = 0; n < 32; n++) {
        b->scale[n/2] = 2*(w->scales[n/4] >> n/2%2*4 & 15) + 1;
        put_8(iq2_values, grid_iq2_s[w->qs[n] | (w->qh[n/4] >> n%4*2 & 3) << 8], w->qs[32 + n], b->q + 8*n);
    }
}

static void read_iq3_xxs(const void *data, int part, struct block *b) {
    const block_iq3_xxs *w = data;
    (void) part;
    b->d = f16_to_f32(w->d)*0.25f;
    for (int n = 0; n < 64; n++) {
        const uint32_t rest = word_at(w->qs + 64 + n/8*4);
        b->scale[n/4] = (int16_t) (2*(rest >> 28) + 1);
        put_4(iq3_xxs_values, grid_iq3_xxs[w->qs[n]], even_signs(rest >> n%8/2*7 & 127) >> n%2*4, b->q + 4*n);
    }
}

static void read_iq3_s(const void *data, int part, struct block *b) {
    const block_iq3_s *w = data;
    (void) part;
    b->d = f16_to_f32(w->d);
    for (int n = 0; n < 64; n++) {
        b->scale[n/4] = 2*(w->scales[n/16] >> n/8%2*4 & 15) + 1;
        put_4(iq3_s_values, grid_iq3_s[w->qs[n] | (w->qh[n/8] >> n%8 & 1) << 8], w->signs[n/2] >> n%2*4, b->q + 4*n);
    }
}

static void put_delta(unsigned entry, bool minus, int8_t *q) {
    put_8(iq1_values, entry, 0, q);
    for (int j = 0; j < 8; j++) q[j] = (int8_t) (q[j] + (minus ? -1 : 1));
}

static void read_iq1_s(const void *data, int part, struct block *b) {
    const block_iq1_s *w = data;
    (void) part;
    b->d = f16_to_f32(w->d)*0.125f;
    for (int n = 0; n < 32; n++) {
        const unsigned high = w->qh[n/4];
        b->scale[n/2] = (int16_t) (2*(high >> 12 & 7) + 1);
        put_delta(grid_iq1_s[w->qs[n] | (high >> n%4*3 & 7) << 8], high >> 15, b->q + 8*n);
    }
}

static void read_iq1_m(const void *data, int part, struct block *b) {
    const block_iq1_m *w = data;
    uint16_t words[4], half = 0;
    (void) part;
    memcpy(words, w->scales, sizeof words);
    for (int i = 0; i < 4; i++) half |= (uint16_t) (words[i] >> 12 << 4*i);
    b->d = f16_to_f32(half)*0.125f;
    for (int n = 0; n < 32; n++) {
        const unsigned high = w->qh[n/2] >> n%2*4 & 15;
        b->scale[n/2] = 2*(words[n/8] >> n/2%4*3 & 7) + 1;
        put_delta(grid_iq1_s[w->qs[n] | (high & 7) << 8], high >> 3, b->q + 8*n);
    }
}

/* ---- the sums ---- */

struct reader {
    void (*read)(const void *data, int part, struct block *b);      /* part: counts the blocks of activations it meets */
    int  block;                 /* elements that share a scale of activations */
    bool min;                   /* has minimums */
    bool halves;                /* the halves of a block of 32 have a scale each */
};

#define READER(NAME, tag, n, ...) [GGML_TYPE_##NAME] = { read_##tag, n, __VA_ARGS__ }
static const struct reader readers[GGML_TYPE_COUNT] = {
    READER(Q4_0, q4_0,  32, false), READER(Q4_1, q4_1,  32, true),  READER(Q5_0, q5_0, 32, false),
    READER(Q5_1, q5_1,  32, true),  READER(Q8_0, q8_0,  32, false), READER(Q2_K, q2_K, 256, true),
    READER(Q3_K, q3_K, 256, false), READER(Q4_K, q4_K, 256, true),  READER(Q5_K, q5_K, 256, true),
    READER(Q6_K, q6_K, 256, false),
    READER(IQ4_NL,  iq4_nl,   32, false), READER(MXFP4,   mxfp4,    32, false), READER(NVFP4, nvfp4, 32, false, true),
    READER(Q1_0,    q1_0,     32, false), READER(Q2_0,    q2_0,     32, false), READER(TQ1_0, tq1_0, 256, false),
    READER(TQ2_0,   tq2_0,   256, false), READER(IQ4_XS,  iq4_xs,  256, false), READER(IQ1_S, iq1_s, 256, false),
    READER(IQ1_M,   iq1_m,   256, false), READER(IQ2_XXS, iq2_xxs, 256, false), READER(IQ2_XS, iq2_xs, 256, false),
    READER(IQ2_S,   iq2_s,   256, false), READER(IQ3_XXS, iq3_xxs, 256, false), READER(IQ3_S, iq3_s, 256, false),
};

#define TYPE(id, NAME, name, n, bytes, partner) [GGML_TYPE_##NAME] = GGML_TYPE_##partner,
const enum ggml_type quant_partners[GGML_TYPE_COUNT] = {
#include "types.def"
};
#undef TYPE

static float block_32(const struct reader *t, const struct block *w, const int16_t *q, float d, float acc) {
    int32_t isum[2] = { 0 }, qsum = 0;
    for (int i = 0; i < 32; i++) isum[i/16] += w->q[i]*q[i], qsum += q[i];
    if (t->halves) return fmaf(w->d_last*d, (float) isum[1], fmaf(w->d*d, (float) isum[0], acc));
    acc = fmaf(w->d*d, (float) (isum[0] + isum[1]), acc);
    return t->min ? fmaf(w->dmin, d*(float) qsum, acc) : acc;
}

static float block_256(const struct reader *t, const struct block *w, const int16_t *q, float d, float acc) {
    int32_t isum = 0, msum = 0;
    for (int g = 0; g < 16; g++, q += 16) {
        int32_t dot = 0, qsum = 0;
        for (int i = 0; i < 16; i++) dot += w->q[16*g + i]*q[i], qsum += q[i];
        isum += w->scale[g]*dot, msum += w->min[g]*qsum;
    }
    acc = fmaf(w->d*d, (float) isum, acc);
    return t->min ? fmaf(-(w->dmin*d), (float) msum, acc) : acc;
}

/* acc plus a part of one block of weights times integers q (codes with their fine scales) of scale d */
static float block_add(const struct reader *t, const void *w, int part, const int16_t *q, float d, float acc) {
    struct block b = { 0 };
    t->read(w, part, &b);
    return t->block == 32 ? block_32(t, &b, q, d, acc) : block_256(t, &b, q, d, acc);
}

static float row_dot(enum ggml_type type, int64_t k, const char *w, const void *column) {
    const struct reader *t = &readers[type];
    const size_t size = ggml_type_size(type);
    const int64_t parts = ggml_blck_size(type)/t->block;
    const int8_t *q = column;
    const float *d = (const float *) (const void *) ((const char *) column + column_d(k));
    const int16_t *fine = (const int16_t *) (const void *) ((const char *) column + column_fine(t->block, k));
    float acc = 0.0f;
    for (int64_t b = 0; b < k/t->block; b++) {
        int16_t codes[QK_K];
        for (int i = 0; i < t->block; i++) {
            const int64_t at = b*t->block + i;
            codes[i] = (int16_t) (fine[column_fine_place(t->block, at)]*q[column_place(t->block, at)]);
        }
        acc = block_add(t, w + (size_t) (b/parts)*size, (int) (b%parts), codes, d[b], acc);
    }
    return acc;
}

/* ---- floats ---- */

static float widen_f32 (const void *x, int64_t i) { return ((const float *) x)[i]; }
static float widen_f16 (const void *x, int64_t i) { return f16_to_f32(((const uint16_t *) x)[i]); }
static float widen_bf16(const void *x, int64_t i) { return bf16_to_f32(((const uint16_t *) x)[i]); }

typedef float widen_t(const void *x, int64_t i);

static float float_dot(int64_t k, const void *w, widen_t *widen, const float *x) {
    float lane[16] = { 0 };
    for (int64_t i = 0; i < k; i++) lane[i % 16] = fmaf(widen(w, i), x[i], lane[i % 16]);
    for (int n = 8; n > 0; n /= 2) {
        for (int i = 0; i < n; i++) lane[i] += lane[i + n];
    }
    return lane[0];
}

/* ---- the table ---- */

static void partner_block(enum ggml_type partner, const void *y, int64_t i, const int8_t **q, float *d) {
    if (partner == GGML_TYPE_Q8_K) {
        const block_q8_K *b = (const block_q8_K *) y + i;
        *q = b->qs, *d = b->d;
    } else if (partner == GGML_TYPE_Q8_1) {
        const block_q8_1 *b = (const block_q8_1 *) y + i;
        *q = b->qs, *d = f16_to_f32(b->d);
    } else {
        const block_q8_0 *b = (const block_q8_0 *) y + i;
        *q = b->qs, *d = f16_to_f32(b->d);
    }
}

/* Puts the codes of block b of a column in their places, their fine scales, and their sums. */
static void place_block(int block, int64_t k, int64_t b, const int8_t *codes, const int16_t *f, void *column) {
    int8_t  *q    = column;
    int16_t *sums = (int16_t *) (void *) ((char *) column + column_sums(block, k));
    int16_t *fine = (int16_t *) (void *) ((char *) column + column_fine(block, k));
    const int run = column_run(block), group = fine_group(block);
    const bool odd = block == 32 && b == k/32 - 1 && b%2 == 0;
    for (int i = 0; i < block*(1 + odd); i++) {
        q[column_place(block, b*block + i)]         = i < block ? codes[i]   : 0;
        fine[column_fine_place(block, b*block + i)] = i < block ? f[i/group] : 0;
    }
    for (int r = 0; r < block/run; r++) {
        int sum = 0;
        for (int i = r*run; i < (r + 1)*run; i++) sum += f[i/group]*codes[i];
        sums[block == 32 ? b : column_sum_place(b*16 + r)] = (int16_t) sum;
    }
}

bool column_from_partner(enum ggml_type type, int64_t n, const void *x, void *column) {
    if (type != GGML_TYPE_Q8_0 && type != GGML_TYPE_Q8_1 && type != GGML_TYPE_Q8_K) return false;
    const int block = type == GGML_TYPE_Q8_K ? 256 : 32;
    float *d = (float *) (void *) ((char *) column + column_d(n));
    const int16_t ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    for (int64_t b = 0; b < n/block; b++) {
        const int8_t *codes;
        partner_block(type, x, b, &codes, &d[b]);
        place_block(block, n, b, codes, ones, column);
    }
    return true;
}

#define QUANTISED(NAME, tag, n_block, tile) \
    static void gemv_##tag(int64_t k, int64_t rows, const void *w, size_t stride, const void *column, float *y) { \
        for (int64_t i = 0; i < rows; i++) y[i] = row_dot(GGML_TYPE_##NAME, k, (const char *) w + (size_t) i*stride, column); \
    }
#define FLOATS(NAME, tag, n_block) \
    static void gemv_##tag(int64_t k, int64_t rows, const void *w, size_t stride, const void *column, float *y) { \
        for (int64_t i = 0; i < rows; i++) \
            y[i] = float_dot(k, (const char *) w + (size_t) i*stride, widen_##tag, column); \
    }
#include "products.def"
#undef QUANTISED
#undef FLOATS

/* ---- activations ---- */

static uint32_t greatest(int n, const float *x) {
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t u = f32_bits(x[i]) & 0x7fffffff;
        if (u > most) most = u;
    }
    return most;
}

static int fine_scale(float gmax, float times) {
    const int f = (int) ceilf(gmax*times);
    return f < 1 ? 1 : f > FINE_MOST ? FINE_MOST : f;
}

static void quantize_block(int block, const float *x, int8_t *q, int16_t *fine, float *d_a) {
    const uint32_t amax = greatest(block, x);
    const int group = fine_group(block);
    const float d = bits_f32(amax)/(FINE_MOST*127.0f);
    for (int i = 0; i < block; i++) q[i] = 0, fine[i/group] = 1;
    *d_a = d < SMALLEST_NORMAL ? 0.0f : d;                              /* a NaN is not below */
    if (d < SMALLEST_NORMAL || amax >= 0x7f800000) return;
    const float times = FINE_MOST/bits_f32(amax);
    for (int g = 0; g < block; g += group) {
        const int f = fine_scale(bits_f32(greatest(group, x + g)), times);
        const float id = 1.0f/(d*(float) f);
        for (int i = g; i < g + group; i++) q[i] = (int8_t) roundf(x[i]*id);
        fine[g/group] = (int16_t) f;
    }
}

static void quantize(int block, int64_t k, const float *x, void *column) {
    float *d = (float *) (void *) ((char *) column + column_d(k));
    for (int64_t b = 0; b < k/block; b++) {
        int8_t codes[QK_K];
        int16_t fine[8];
        quantize_block(block, x + b*block, codes, fine, &d[b]);
        place_block(block, k, b, codes, fine, column);
    }
}

#define FLOATS(NAME, tag, n_block)          [GGML_TYPE_##NAME] = { .block = n_block, .gemv = gemv_##tag },
#define QUANTISED(NAME, tag, n_block, tile) FLOATS(NAME, tag, n_block)
const struct quant_kernels quant_kernels_portable = {
    .quantize = quantize,
    .product = {
#include "products.def"
    },
};
