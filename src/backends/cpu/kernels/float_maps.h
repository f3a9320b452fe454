/* The element-wise kernels: included by the portable definition with one lane and by kernels/float.c with 16. A tail is
 * computed on a zero-padded copy, so that no lane sees memory outside the row. */

#include <string.h>
#include "elementary.h"

INLINE vf vf_load_n(const float *p, int64_t n) {
    float t[LANES] = { 0 };
    memcpy(t, p, (size_t) n*sizeof *t);
    return vf_load(t);
}
INLINE void vf_store_n(float *p, vf x, int64_t n) {
    float t[LANES];
    vf_store(t, x);
    memcpy(p, t, (size_t) n*sizeof *t);
}

/* Runs y[i ..] = expression with LOAD(p) standing for the lanes of p. */
#define FULL(p) vf_load((p) + i)
#define PART(p) vf_load_n((p) + i, n - i)
#define EACH(full, part) do { \
    int64_t i = 0; \
    for (; i + LANES <= n; i += LANES) vf_store(y + i, full); \
    if (i < n) vf_store_n(y + i, part, n - i); \
} while (0)

#define UNARY(NAME, f)  static void unary_##NAME(int64_t n, float *y, const float *x) { EACH(f(FULL(x)), f(PART(x))); }
#define MAP(name, f)    static void map_##name(int64_t n, float *y, const float *x)   { EACH(f(FULL(x)), f(PART(x))); }
#define BINARY(name, f) static void map_##name(int64_t n, float *y, const float *a, const float *b) { \
    EACH(f(FULL(a), FULL(b)), f(PART(a), PART(b))); }
#define GLU(NAME, f)    static void glu_##NAME(int64_t n, float *y, const float *x, const float *g) { \
    EACH(vf_mul(f(FULL(x)), FULL(g)), vf_mul(f(PART(x)), PART(g))); }
#include "float.def"

static void map_add1(int64_t n, float *y, const float *a, float b) {
    const vf c = vf_set1(b);
    EACH(vf_add(FULL(a), c), vf_add(PART(a), c));
}
static void map_mul1(int64_t n, float *y, const float *a, float b) {
    const vf c = vf_set1(b);
    EACH(vf_mul(FULL(a), c), vf_mul(PART(a), c));
}
static void map_axpy(int64_t n, float *y, const float *x, float a) {
    const vf c = vf_set1(a);
    EACH(vf_fma(c, FULL(x), FULL(y)), vf_fma(c, PART(x), PART(y)));
}
static void map_scale_bias(int64_t n, float *y, const float *x, float s, float b) {
    const vf c = vf_set1(s), d = vf_set1(b);
    EACH(vf_fma(c, FULL(x), d), vf_fma(c, PART(x), d));
}
static void map_xielu(int64_t n, float *y, const float *x, float a_neg, float a_pos, float b, float eps) {
    const vf an = vf_set1(a_neg), ap = vf_set1(a_pos), c = vf_set1(b), e = vf_set1(eps);
    EACH(v_xielu(FULL(x), an, ap, c, e), v_xielu(PART(x), an, ap, c, e));
}
static void map_swiglu_oai(int64_t n, float *y, const float *x, const float *g, float alpha, float limit) {
    const vf a = vf_set1(alpha), l = vf_set1(limit);
    EACH(v_swiglu_oai(FULL(x), FULL(g), a, l), v_swiglu_oai(PART(x), PART(g), a, l));
}
static void map_swiglu_clamp(int64_t n, float *y, const float *x, const float *g, float limit) {
    const vf l = vf_set1(limit);
    EACH(v_swiglu_clamp(FULL(x), FULL(g), l), v_swiglu_clamp(PART(x), PART(g), l));
}

/* Lanes whose angle the fast reduction cannot take are computed one by one. */
INLINE void sine_of(int64_t n, float *y, const float *x, int quarter) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i < LANES ? n - i : LANES;
        float in[LANES] = { 0 };
        bool large = false;
        memcpy(in, x + i, (size_t) m*sizeof *in);
        for (int64_t j = 0; j < m; j++) large |= !(fabsf(in[j]) < 0x1p31f);
        vd s, c;
        v_sin_cos(vd_from(vf_load(in)), &s, &c);
        vf_store_n(y + i, vf_from(quarter ? c : s), m);
        for (int64_t j = 0; large && j < m; j++)
            if (!(fabsf(in[j]) < 0x1p31f)) y[i + j] = sin_large(in[j], quarter);
    }
}
static void map_sin(int64_t n, float *y, const float *x) { sine_of(n, y, x, 0); }
static void map_cos(int64_t n, float *y, const float *x) { sine_of(n, y, x, 1); }

static void map_sin_cos(int64_t n, float *s, float *c, const double *x) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t m = n - i < LANES ? n - i : LANES;
        double in[LANES] = { 0 };
        memcpy(in, x + i, (size_t) m*sizeof *in);
        vd sine, cosine;
        v_sin_cos(vd_load(in), &sine, &cosine);
        vf_store_n(s + i, vf_from(sine), m);
        vf_store_n(c + i, vf_from(cosine), m);
    }
}
