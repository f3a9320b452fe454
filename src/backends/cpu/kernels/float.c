/* The float kernels on 16 lanes, compiled once per instruction set; kernels/portable/float.c says what each of them means. */

#include "kernels.h"

#if defined __AVX512VNNI__ || defined __ARM_FEATURE_DOTPROD
/* These sets add integer products only: the floats stay as the set below them has them. */
void K(float_kernels)(struct float_kernels *k) { (void) k; }
#else

#include <math.h>
#include SIMD
#include "float_maps.h"

#define FULL(p) vf_load((p) + i)
#define PART(p) vf_load_n((p) + i, n - i)

/* Runs `full` for each 16 elements from i on, and `part` for the last n - i. */
#define OVER(full, part) do { \
    int64_t i = 0; \
    for (; i + LANES <= n; i += LANES) { full; } \
    if (i < n) { part; } \
} while (0)

INLINE vd add_mul(vd s, vf a, vf b) { return vd_fma(vd_from(a), vd_from(b), s); }          /* exact product: one rounding */
INLINE vd add_sq_from(vd s, vf x, vd m) { const vd d = vd_sub(vd_from(x), m); return vd_fma(d, d, s); }

static double sum(int64_t n, const float *x) {
    vd s = vd_set1(0);
    OVER(s = vd_add(s, vd_from(FULL(x))), s = vd_add(s, vd_from(PART(x))));
    return vd_sum(s);
}
static double sum_mul(int64_t n, const float *a, const float *b) {
    vd s = vd_set1(0);
    OVER(s = add_mul(s, FULL(a), FULL(b)), s = add_mul(s, PART(a), PART(b)));
    return vd_sum(s);
}
static double sum_sq(int64_t n, const float *x) { return sum_mul(n, x, x); }
static double sum_sq_from(int64_t n, const float *x, double m) {
    const vd mean = vd_set1(m);
    vd s = vd_set1(0);
    OVER(s = add_sq_from(s, FULL(x), mean), {
        /* lanes past the end hold the mean's own rounding to zero: they are done apart */
        float t[LANES];
        double add[LANES] = { 0 };
        memcpy(t, x + i, (size_t) (n - i)*sizeof *t);
        for (int64_t j = 0; j < n - i; j++) add[j] = t[j] - m;
        const vd d = vd_load(add);
        s = vd_fma(d, d, s);
    });
    return vd_sum(s);
}
static float max(int64_t n, const float *x) {
    float t[LANES];
    vf s = vf_set1(-INFINITY);
    OVER(s = vf_max(FULL(x), s), {
        for (int j = 0; j < LANES; j++) t[j] = i + j < n ? x[i + j] : -INFINITY;
        s = vf_max(vf_load(t), s);
    });
    return vf_max_all(s);
}
static double exp_sum(int64_t n, float *y, const float *x, float max) {
    const vf m = vf_set1(max);
    vd s = vd_set1(0);
    for (int64_t i = 0; i < n; i += LANES) {
        const bool full = i + LANES <= n;
        vf e = v_exp(vf_sub(full ? FULL(x) : PART(x), m));
        if (full) vf_store(y + i, e);
        else      vf_store_n(y + i, e, n - i), e = PART(y);
        s = vd_add(s, vd_from(e));
    }
    return vd_sum(s);
}

/* y is x, or apart from it: both of a pair are read before either is written. */
static void rotate_halves(int64_t n, float *y, const float *x, const float *c, const float *s) {
    const float *const x2 = x + n;
    float *const y2 = y + n;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf x0 = FULL(x), x1 = FULL(x2), cos = FULL(c), sin = FULL(s);
        vf_store(y  + i, vf_fma(x0, cos, vf_mul(x1, v_neg(sin))));
        vf_store(y2 + i, vf_fma(x1, cos, vf_mul(x0, sin)));
    }
    if (i < n) {
        const vf x0 = PART(x), x1 = PART(x2), cos = PART(c), sin = PART(s);
        vf_store_n(y  + i, vf_fma(x0, cos, vf_mul(x1, v_neg(sin))), n - i);
        vf_store_n(y2 + i, vf_fma(x1, cos, vf_mul(x0, sin)), n - i);
    }
}
static void rotate_pairs(int64_t h, float *y, const float *x, const float *c, const float *s) {
    const int64_t n = 2*h;
    for (int64_t i = 0; i < n; i += LANES) {
        const bool full = i + LANES <= n;
        const vf in = full ? FULL(x) : PART(x), cos = full ? FULL(c) : PART(c), sin = full ? FULL(s) : PART(s);
        const vf out = vf_fma(in, cos, vf_mul(vf_swap(in), sin));
        if (full) vf_store(y + i, out);
        else      vf_store_n(y + i, out, n - i);
    }
}

/* One chain a lane. */
INLINE vf load_half_n(const uint16_t *p, int64_t n, bool bf16) {
    uint16_t t[LANES] = { 0 };
    memcpy(t, p, (size_t) n*sizeof *t);
    return bf16 ? vf_load_bf16(t) : vf_load_f16(t);
}
static float dot_f32(int64_t n, const float *a, const float *b) {
    vf s = vf_set1(0);
    OVER(s = vf_fma(FULL(a), FULL(b), s), s = vf_fma(PART(a), PART(b), s));
    return vf_sum(s);
}
static float dot_f16(int64_t n, const uint16_t *a, const float *b) {
    vf s = vf_set1(0);
    OVER(s = vf_fma(vf_load_f16(a + i), FULL(b), s), s = vf_fma(load_half_n(a + i, n - i, false), PART(b), s));
    return vf_sum(s);
}
static float dot_bf16(int64_t n, const uint16_t *a, const float *b) {
    vf s = vf_set1(0);
    OVER(s = vf_fma(vf_load_bf16(a + i), FULL(b), s), s = vf_fma(load_half_n(a + i, n - i, true), PART(b), s));
    return vf_sum(s);
}

/* Round to nearest even on the words; a NaN becomes quiet. */
INLINE void vf_store_bf16(uint16_t *p, vf x) {
    const vu u = vu_of(x), even = vu_and(vu_shr(u, 16), vu_set1(1));
    const vu rounded = vu_shr(vu_add(vu_add(u, vu_set1(0x7fff)), even), 16), quiet = vu_or(vu_shr(u, 16), vu_set1(64));
    vu_store16(p, vu_of(vf_select(vf_eq(x, x), vf_of(rounded), vf_of(quiet))));
}

static void from_f16(int64_t n, float *y, const uint16_t *x) {
    OVER(vf_store(y + i, vf_load_f16(x + i)), vf_store_n(y + i, load_half_n(x + i, n - i, false), n - i));
}
static void from_bf16(int64_t n, float *y, const uint16_t *x) {
    OVER(vf_store(y + i, vf_load_bf16(x + i)), vf_store_n(y + i, load_half_n(x + i, n - i, true), n - i));
}
static void to_f16(int64_t n, uint16_t *y, const float *x) {
    uint16_t t[LANES];
    OVER(vf_store_f16(y + i, FULL(x)), vf_store_f16(t, PART(x)); memcpy(y + i, t, (size_t) (n - i)*sizeof *t));
}
static void to_bf16(int64_t n, uint16_t *y, const float *x) {
    uint16_t t[LANES];
    OVER(vf_store_bf16(y + i, FULL(x)), vf_store_bf16(t, PART(x)); memcpy(y + i, t, (size_t) (n - i)*sizeof *t));
}

extern const struct attention_kernels K(attention_kernels);                             /* attention.c */

void K(float_kernels)(struct float_kernels *k) {
    *k = (struct float_kernels) {
#include "float_table.h"
    };
}
#endif
