/* The element-wise kernels: included by the portable definition with one lane and by kernels/float.c with 16. What is left
 * after whole vectors is computed on a zero-padded copy, so that no lane sees memory outside the row. */

#include <string.h>
#include "compiler.h"
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

/* What a kernel does with whole vectors, n a multiple of LANES: a and b may be the same row, y may be one of them, c holds
 * constants. There is one body each, so the last elements of a row go through it once more, on their own. */
typedef void whole(int64_t n, float *y, const float *a, const float *b, const float *c);

static void over(whole *f, int64_t n, float *y, const float *a, const float *b, const float *c) {
    const int64_t m = n/LANES*LANES;
    if (m > 0) f(m, y, a, b, c);
    if (m == n) return;
    float t[3][LANES];
    vf_store(t[0], vf_load_n(a + m, n - m)), vf_store(t[1], vf_load_n(b + m, n - m));
    f(LANES, t[2], t[0], t[1], c);
    memcpy(y + m, t[2], (size_t) (n - m)*sizeof *y);
}

/* whole_<name>, with A and B standing for lanes of a and b */
#define A vf_load(a + i)
#define B vf_load(b + i)
#define WHOLE(name, value) static void whole_##name(int64_t n, float *y, const float *a, const float *b, const float *c) { \
    (void) b, (void) c; \
    for (int64_t i = 0; i < n; i += LANES) vf_store(y + i, value); }

#define UNARY(NAME, f)  WHOLE(unary_##NAME, f(A)) \
    static void unary_##NAME(int64_t n, float *y, const float *x) { over(whole_unary_##NAME, n, y, x, x, NULL); }
#define MAP(name, f)    WHOLE(name, f(A)) \
    static void map_##name(int64_t n, float *y, const float *x) { over(whole_##name, n, y, x, x, NULL); }
#define BINARY(name, f) WHOLE(name, f(A, B)) \
    static void map_##name(int64_t n, float *y, const float *a, const float *b) { over(whole_##name, n, y, a, b, NULL); }
#define GLU(NAME, f)    static void glu_##NAME(int64_t n, float *y, const float *x, const float *g) { gate(unary_##f, n, y, x, g); }

static void gate(void (*f)(int64_t n, float *y, const float *x), int64_t n, float *y, const float *x, const float *g);
#include "float.def"

static void gate(void (*f)(int64_t n, float *y, const float *x), int64_t n, float *y, const float *x, const float *g) {
    float t[512];
    for (int64_t m; n > 0; n -= m, y += m, x += m, g += m) {
        m = n < 512 ? n : 512;
        f(m, t, x);
        map_mul(m, y, t, g);
    }
}

WHOLE(add1,         vf_add(A, vf_set1(c[0])))
WHOLE(mul1,         vf_mul(A, vf_set1(c[0])))
WHOLE(axpy,         vf_fma(vf_set1(c[0]), A, B))
WHOLE(scale_bias,   vf_fma(vf_set1(c[0]), A, vf_set1(c[1])))
WHOLE(xielu,        v_xielu(A, vf_set1(c[0]), vf_set1(c[1]), vf_set1(c[2]), vf_set1(c[3])))
WHOLE(swiglu_oai,   v_swiglu_oai(A, B, vf_set1(c[0]), vf_set1(c[1])))
WHOLE(swiglu_clamp, v_swiglu_clamp(A, B, vf_set1(c[0])))
static void map_add1(int64_t n, float *y, const float *a, float b) { over(whole_add1, n, y, a, a, &b); }
static void map_mul1(int64_t n, float *y, const float *a, float b) { over(whole_mul1, n, y, a, a, &b); }
static void map_axpy(int64_t n, float *y, const float *x, float a) { over(whole_axpy, n, y, x, y, &a); }
static void map_scale_bias(int64_t n, float *y, const float *x, float s, float b) {
    over(whole_scale_bias, n, y, x, x, (const float[]) { s, b });
}
static void map_xielu(int64_t n, float *y, const float *x, float a_neg, float a_pos, float b, float eps) {
    over(whole_xielu, n, y, x, x, (const float[]) { a_neg, a_pos, b, eps });
}
static void map_swiglu_oai(int64_t n, float *y, const float *x, const float *g, float alpha, float limit) {
    over(whole_swiglu_oai, n, y, x, g, (const float[]) { alpha, limit });
}
static void map_swiglu_clamp(int64_t n, float *y, const float *x, const float *g, float limit) {
    over(whole_swiglu_clamp, n, y, x, g, &limit);
}
#undef A
#undef B

/* The sums stay in registers over all terms. */
static void outer(int64_t n, float *y, int64_t y_step, const float *const *x, const float *s, int terms) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf sum[OUTER_ROWS];
        UNROLL for (int r = 0; r < OUTER_ROWS; r++) sum[r] = vf_load(y + r*y_step + i);
        for (int t = 0; t < terms; t++) {
            const vf v = vf_load(x[t] + i);
            UNROLL for (int r = 0; r < OUTER_ROWS; r++) sum[r] = vf_fma(vf_set1(s[OUTER_ROWS*t + r]), v, sum[r]);
        }
        UNROLL for (int r = 0; r < OUTER_ROWS; r++) vf_store(y + r*y_step + i, sum[r]);
    }
}

/* Lanes whose angle the fast reduction cannot take are computed one by one. */
static void sine_of(int64_t n, float *y, const float *x, int quarter) {
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
