/* The attention kernels on 16 lanes, compiled once per instruction set; kernels/portable/attention.c says what each means. */

#include "compiler.h"
#include "kernels.h"

#if !(defined __AVX512VNNI__ || defined __ARM_FEATURE_DOTPROD)

#include <math.h>
#include <string.h>
#include SIMD
#include "elementary.h"

/* Loops over the rows of a block have a constant bound and must unroll, so that their vectors are registers. */
#define EACH_ROW(r, n) UNROLL for (int r = 0; r < (n); r++)

/* Calls body(n, ...) with n as a constant, one of the numbers of rows that at_once() gives. */
#define CASE(n, body, ...)  case n: body(n, __VA_ARGS__); break;
#define CASES(body, ...)    CASE(1, body, __VA_ARGS__) CASE(2, body, __VA_ARGS__) CASE(3, body, __VA_ARGS__)
#if ROWS_AT_ONCE == 6
#define FOR_ROWS_OF(n, body, ...) switch (n) { CASES(body, __VA_ARGS__) CASE(4, body, __VA_ARGS__) CASE(6, body, __VA_ARGS__) }
#define FOR_HALF_OF(n, body, ...) switch (n) { CASES(body, __VA_ARGS__) }
#elif ROWS_AT_ONCE == 12
#define FOR_ROWS_OF(n, body, ...) switch (n) { CASES(body, __VA_ARGS__) CASE(4, body, __VA_ARGS__) CASE(6, body, __VA_ARGS__) \
                                               CASE(8, body, __VA_ARGS__) CASE(12, body, __VA_ARGS__) }
#define FOR_HALF_OF(n, body, ...) switch (n) { CASES(body, __VA_ARGS__) CASE(4, body, __VA_ARGS__) CASE(6, body, __VA_ARGS__) }
#endif
/* Of `rows` rows, at most `most`, how many are computed at once: not every number has code of its own. */
static int at_once(int rows, int most) {
    static const uint8_t part[] = { 0, 1, 2, 3, 4, 3, 6, 4, 8, 6, 6, 8, 12 };
    return part[rows < most ? rows : most];
}

static uint64_t mask_floats(int n, const uint16_t *f16, float *mask) {
    uint64_t live = 0;
    uint16_t t[ATTENTION_KEYS];
    if (f16 && n < ATTENTION_KEYS) memcpy(t, f16, (size_t) n*sizeof *t), memset(t + n, 0, (size_t) (ATTENTION_KEYS - n)*sizeof *t), f16 = t;
    for (int j = 0; j < ATTENTION_KEYS; j += LANES) {
        vf m = f16 ? vf_load_f16(f16 + j) : vf_set1(0.0f);
        if (j + LANES > n) {
            float end[LANES];
            vf_store(end, m);
            for (int l = 0; l < LANES; l++) if (j + l >= n) end[l] = -INFINITY;
            m = vf_load(end);
        }
        vf_store(mask + j, m);
        live |= (uint64_t) (0xffff & ~vm_bits(vf_eq(m, vf_set1(-INFINITY)))) << j;
    }
    return live;
}

/* The order of the lanes of dk in turned operands: sums of pairs that fold onto each other are neighbours. */
static const int pairs[8] = { 0, 4, 2, 6, 1, 5, 3, 7 };

static void turn(int64_t dk, int n, const void *k, size_t stride, float *kt) {
    static const float zeros[16];
    for (int g = 0; g < ATTENTION_KEYS/16; g++) for (int64_t i = 0; i < dk; i += 16) {
        vf rows[16];
        for (int j = 0; j < 16; j++) {
            const int key = 16*g + j;
            rows[j] = vf_load(key < n ? (const float *) (const void *) ((const char *) k + (size_t) key*stride) + i : zeros);
        }
        vf_transpose(rows);
        for (int p = 0; p < 8; p++) {
            float *const to = kt + (g*dk + 2*(p*(dk/16) + i/16))*16;
            vf_store(to,      rows[pairs[p]]);
            vf_store(to + 16, rows[pairs[p] + 8]);
        }
    }
}
static void turn_row(int64_t dk, const float *q, float *qt) {
    for (int64_t i = 0; i < dk; i += 16) for (int p = 0; p < 8; p++) {
        float *const to = qt + 2*(p*(dk/16) + i/16);
        to[0] = q[i + pairs[p]];
        to[1] = q[i + pairs[p] + 8];
    }
}

/* 16 keys at once, so a vector is one lane of their dot products, for half a block of rows: the two lanes of a pair together,
 * and the sum of a pair waits in held[] until that of its partner is done. */
enum { HALF_BLOCK = ROWS_AT_ONCE/2 };
INLINE void turned_rows(const int rows, int64_t dk, const float *q, const float *kt, float (*s)[ATTENTION_KEYS]) {
    const int64_t steps = dk/16;
    vf held[3][HALF_BLOCK];
    for (int p = 0; p < 8; p++, kt += 32*steps, q += 2*steps) {
        vf low[HALF_BLOCK], high[HALF_BLOCK];
        EACH_ROW(r, rows) low[r] = high[r] = vf_set1(0.0f);
        for (int64_t e = 0; e < steps; e++) {
            const vf a = vf_load(kt + 32*e), b = vf_load(kt + 32*e + 16);
            EACH_ROW(r, rows) low[r]  = vf_fma(vf_set1(q[r*dk + 2*e]),     a, low[r]);
            EACH_ROW(r, rows) high[r] = vf_fma(vf_set1(q[r*dk + 2*e + 1]), b, high[r]);
        }
        EACH_ROW(r, rows) low[r] = vf_add(low[r], high[r]);
        int level = 0;
        for (int b = p; b & 1; b >>= 1, level++) EACH_ROW(r, rows) low[r] = vf_add(held[level][r], low[r]);
        if (p < 7) { EACH_ROW(r, rows) held[level][r] = low[r]; }
        else       { EACH_ROW(r, rows) vf_store(s[r], low[r]); }
    }
}
INLINE void scores_turned_of(const int64_t dk, int rows, const float *qt, const float *kt, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int j = 0; j < ATTENTION_KEYS; j += 16, kt += 16*dk) {
        if (!(any >> j & 0xffff)) continue;
        for (int r = 0, n; r < rows; r += n) {
            float (*const to)[ATTENTION_KEYS] = (void *) &s[r][j];
            n = at_once(rows - r, HALF_BLOCK);
            FOR_HALF_OF(n, turned_rows, dk, qt + r*dk, kt, to)
        }
    }
}
/* A known length of the inner loop is worth 15 % where it is shortest. */
static void scores_turned(int64_t dk, int rows, const float *qt, const float *kt, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    if (dk == 64) scores_turned_of(64, rows, qt, kt, any, s);
    else          scores_turned_of(dk, rows, qt, kt, any, s);
}

#define T(name) name##_f32
#define ELEMENT float
#define LOAD    vf_load
#define AHEAD   0
#include "attention_rows.h"

#define T(name) name##_f16
#define ELEMENT uint16_t
#define LOAD    vf_load_f16
#define AHEAD   ATTENTION_AHEAD
#include "attention_rows.h"

INLINE float weights_of(const bool capped, float *s, const float *mask, float slope, float scale, float cap, float *max) {
    const vf none = vf_set1(-INFINITY), a = vf_set1(capped ? scale/cap : scale), b = vf_set1(slope), c = vf_set1(cap);
    vf top = none, sum = vf_set1(0.0f);
    for (int j = 0; j < ATTENTION_KEYS; j += LANES) {
        const vf m = vf_load(mask + j), bias = vf_mul(b, m), x = vf_load(s + j);
        const vf z = capped ? vf_fma(c, v_tanh(vf_mul(x, a)), bias) : vf_fma(x, a, bias);
        const vf masked = vf_select(vf_eq(m, none), none, z);
        vf_store(s + j, masked);
        top = vf_max(masked, top);
    }
    *max = vf_max_all(top);
    top = vf_set1(*max);
    for (int j = 0; j < ATTENTION_KEYS; j += LANES) {
        const vf p = v_exp(vf_sub(vf_load(s + j), top));
        vf_store(s + j, p);
        sum = vf_add(sum, p);
    }
    return vf_sum(sum);
}
static float weights(float *s, const float *mask, float slope, float scale, float cap, float *max) {
    return cap != 0.0f ? weights_of(true, s, mask, slope, scale, cap, max) : weights_of(false, s, mask, slope, scale, cap, max);
}

static void merge(int64_t dv, float *acc, float *max, float *sum, const float *a, float m, float l) {
    float t[LANES];
    vf_store(t, v_exp(vf_set1(-fabsf(*max - m))));
    const float f = m > *max ? t[0] : 1.0f, g = m > *max ? 1.0f : t[0];
    const vf old = vf_set1(f), new = vf_set1(g);
    for (int64_t d = 0; d < dv; d += LANES) vf_store(acc + d, vf_fma(vf_load(a + d), new, vf_mul(vf_load(acc + d), old)));
    *sum = fmaf(l, g, *sum*f);
    *max = m > *max ? m : *max;
}

extern const struct attention_kernels K(attention_kernels);                             /* for float.c */
const struct attention_kernels K(attention_kernels) = {
    ROWS_AT_ONCE, mask_floats, turn, turn_row, scores_turned, scores_f32, scores_f16, weights, weigh_f32, weigh_f16, merge
};
#endif
