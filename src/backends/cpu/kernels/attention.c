/* The attention kernels on 16 lanes, compiled once per instruction set; kernels/portable/attention.c says what each means. */

#include "kernels.h"

#if !(defined __AVX512VNNI__ || defined __ARM_FEATURE_DOTPROD)

#include <math.h>
#include <string.h>
#include SIMD
#include "elementary.h"

_Static_assert(ROWS_AT_ONCE <= 16, "callers keep a block's rows in arrays of 16");

/* Loops over the rows of a block have a constant bound and must unroll, so that their vectors are registers. */
#if defined __GNUC__
#define EACH_ROW(r, n) _Pragma("GCC unroll 16") for (int r = 0; r < (n); r++)
#else
#define EACH_ROW(r, n) for (int r = 0; r < (n); r++)
#endif

/* Calls body(n, ...) with n, at most ROWS_AT_ONCE, as a constant. */
#define CASE(n, body, ...) case n: body(n, __VA_ARGS__); break;
#if ROWS_AT_ONCE == 6
#define FOR_ROWS_OF(n, body, ...) switch (n) { \
    CASE(1, body, __VA_ARGS__) CASE(2, body, __VA_ARGS__) CASE(3, body, __VA_ARGS__) CASE(4, body, __VA_ARGS__) \
    CASE(5, body, __VA_ARGS__) default: body(6, __VA_ARGS__); }
#else
#define FOR_ROWS_OF(n, body, ...) switch (n) { \
    CASE(1, body, __VA_ARGS__) CASE(2, body, __VA_ARGS__) CASE(3, body, __VA_ARGS__) CASE(4, body, __VA_ARGS__) \
    CASE(5, body, __VA_ARGS__) CASE(6, body, __VA_ARGS__) CASE(7, body, __VA_ARGS__) CASE(8, body, __VA_ARGS__) \
    CASE(9, body, __VA_ARGS__) CASE(10, body, __VA_ARGS__) CASE(11, body, __VA_ARGS__) default: body(12, __VA_ARGS__); }
#endif

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

static void turn(int64_t dk, int n, const void *k, size_t stride, float *kt) {
    static const float zeros[16];
    for (int g = 0; g < ATTENTION_KEYS/16; g++) for (int64_t i = 0; i < dk; i += 16) {
        vf rows[16];
        for (int j = 0; j < 16; j++) {
            const int key = 16*g + j;
            rows[j] = vf_load(key < n ? (const float *) (const void *) ((const char *) k + (size_t) key*stride) + i : zeros);
        }
        vf_transpose(rows);
        for (int l = 0; l < 16; l++) vf_store(kt + (g*dk + l*(dk/16) + i/16)*16, rows[l]);
    }
}
static void turn_row(int64_t dk, const float *q, float *qt) {
    for (int64_t i = 0; i < dk; i++) qt[i%16*(dk/16) + i/16] = q[i];
}

/* 16 keys at once, so a vector is one lane of their dot products. The lanes of dk are taken in an order in which those that
 * fold onto each other are neighbours: sum l waits in held[] until its partner is done. */
INLINE void turned_rows(const int rows, int64_t dk, const float *q, const float *kt, float (*s)[ATTENTION_KEYS]) {
    static const int order[16] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };
    const int64_t steps = dk/16;
    vf held[4][ROWS_AT_ONCE];
    for (int i = 0; i < 16; i++) {
        const float *keys = kt + order[i]*dk, *query = q + order[i]*steps;
        vf acc[ROWS_AT_ONCE];
        EACH_ROW(r, rows) acc[r] = vf_set1(0.0f);
        for (int64_t e = 0; e < steps; e++) {
            const vf key = vf_load(keys + 16*e);
            EACH_ROW(r, rows) acc[r] = vf_fma(vf_set1(query[r*dk + e]), key, acc[r]);
        }
        int level = 0;
        for (int b = i; b & 1; b >>= 1, level++) EACH_ROW(r, rows) acc[r] = vf_add(held[level][r], acc[r]);
        if (i < 15) { EACH_ROW(r, rows) held[level][r] = acc[r]; }
        else        { EACH_ROW(r, rows) vf_store(s[r], acc[r]); }
    }
}
static void scores_turned(int64_t dk, int rows, const float *qt, const float *kt, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int j = 0; j < ATTENTION_KEYS; j += 16, kt += 16*dk) {
        float (*const to)[ATTENTION_KEYS] = (void *) &s[0][j];
        if (any >> j & 0xffff) FOR_ROWS_OF(rows, turned_rows, dk, qt, kt, to)
    }
}

/* One key at a time, its lanes in a vector. */
#define SCORES(name, type, load) \
    INLINE void name##_rows(const int rows, int64_t dk, const float *q, const type *k, float *s) { \
        vf acc[ROWS_AT_ONCE]; \
        EACH_ROW(r, rows) acc[r] = vf_set1(0.0f); \
        for (int64_t i = 0; i < dk; i += 16) { \
            const vf key = load(k + i); \
            EACH_ROW(r, rows) acc[r] = vf_fma(key, vf_load(q + r*dk + i), acc[r]); \
        } \
        EACH_ROW(r, rows) s[r*ATTENTION_KEYS] = vf_sum(acc[r]); \
    } \
    static void name(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]) { \
        for (int j = 0; j < ATTENTION_KEYS && any >> j; j++) { \
            const type *key = (const type *) (const void *) ((const char *) k + (size_t) j*stride); \
            if (any >> j & 1) FOR_ROWS_OF(rows, name##_rows, dk, q, key, s[0] + j) \
        } \
    }
SCORES(scores_f32, float,    vf_load)
SCORES(scores_f16, uint16_t, vf_load_f16)

static float weights(float *s, const float *mask, float slope, float scale, float cap, float *max) {
    const vf none = vf_set1(-INFINITY), a = vf_set1(scale), b = vf_set1(slope), c = vf_set1(cap), d = vf_set1(scale/cap);
    vf top = none, sum = vf_set1(0.0f);
    for (int j = 0; j < ATTENTION_KEYS; j += LANES) {
        const vf m = vf_load(mask + j), bias = vf_mul(b, m), x = vf_load(s + j);
        const vf z = cap != 0.0f ? vf_fma(c, v_tanh(vf_mul(x, d)), bias) : vf_fma(x, a, bias);
        const vf masked = vf_select(vf_eq(m, none), none, z);
        vf_store(s + j, masked);
        top = vf_max(masked, top);
    }
    float t[LANES];
    vf_store(t, top);
    for (int w = 8; w > 0; w /= 2) for (int l = 0; l < w; l++) t[l] = t[l + w] > t[l] ? t[l + w] : t[l];
    top = vf_set1(t[0]);
    for (int j = 0; j < ATTENTION_KEYS; j += LANES) {
        const vf p = v_exp(vf_sub(vf_load(s + j), top));
        vf_store(s + j, p);
        sum = vf_add(sum, p);
    }
    *max = t[0];
    return vf_sum(sum);
}

/* 16 values of each row at once; each value is read once for all rows. */
#define WEIGH(name, type, load) \
    INLINE void name##_rows(const int rows, int64_t dv, const float (*p)[ATTENTION_KEYS], int j0, int j1, const char *v, size_t stride, float *a) { \
        for (int64_t d = 0; d < dv; d += 16) { \
            vf acc[ROWS_AT_ONCE]; \
            EACH_ROW(r, rows) acc[r] = vf_load(a + r*dv + d); \
            for (int j = j0; j < j1; j++) { \
                const vf value = load((const type *) (const void *) (v + (size_t) j*stride) + d); \
                EACH_ROW(r, rows) acc[r] = vf_fma(vf_set1(p[r][j]), value, acc[r]); \
            } \
            EACH_ROW(r, rows) vf_store(a + r*dv + d, acc[r]); \
        } \
    } \
    static void name(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a) { \
        FOR_ROWS_OF(rows, name##_rows, dv, p, j0, j1, v, stride, a) \
    }
WEIGH(weigh_f32, float,    vf_load)
WEIGH(weigh_f16, uint16_t, vf_load_f16)

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
