#ifndef FLOAT_KERNELS_H
#define FLOAT_KERNELS_H
/* Kernels over rows of floats. n counts elements; rows are dense; y may be x. Reductions use 16 virtual lanes: element i goes
 * to lane i mod 16, each lane adds in increasing i, then lanes 8..15 are added onto 0..7, 4..7 onto 0..3, 2..3 onto 0..1,
 * 1 onto 0. exp, log, tanh, erf, sin, cos are fmaf and integer operations only (kernels/elementary.h, with their largest errors), so
 * they too give one answer everywhere. Portable rows are the definition; every other level returns the same bits. */

#include "attention.h"
#include "ggml.h"

enum { OUTER_ROWS = 4 };        /* rows of `outer` */

struct float_kernels {
    /* y[i] = f(x[i]); f of enum ggml_unary_op without parameters (XIELU is NULL here) */
    void  (*unary[GGML_UNARY_OP_COUNT])(int64_t n, float *y, const float *x);
    void  (*sqr )(int64_t n, float *y, const float *x);
    void  (*sqrt)(int64_t n, float *y, const float *x);
    void  (*log )(int64_t n, float *y, const float *x);
    void  (*sin )(int64_t n, float *y, const float *x);
    void  (*cos )(int64_t n, float *y, const float *x);
    void  (*xielu)(int64_t n, float *y, const float *x, float a_neg, float a_pos, float b, float eps);
    void  (*silu_back)(int64_t n, float *y, const float *dy, const float *x);   /* dy times the derivative of silu at x */
    void  (*sin_cos)(int64_t n, float *s, float *c, const double *x);           /* of angles in doubles, |x| < 2^31 */
    /* rotation of pairs by angles whose cosines and sines are c, s: y0 = fmaf(x0, c, x1*-s), y1 = fmaf(x1, c, x0*s).
     * Pairs (x[i], x[i+h]), i < h, with h angles; pairs (x[2i], x[2i+1]), i < h, with each angle twice in c and in s, where s
     * has the sign of its term: -sin, sin */
    void  (*rotate_halves)(int64_t h, float *y, const float *x, const float *c, const float *s);
    void  (*rotate_pairs )(int64_t h, float *y, const float *x, const float *c, const float *s);

    /* y[i] = a[i] op b[i], and the same with one b for the row */
    void  (*add)(int64_t n, float *y, const float *a, const float *b);
    void  (*sub)(int64_t n, float *y, const float *a, const float *b);
    void  (*mul)(int64_t n, float *y, const float *a, const float *b);
    void  (*div)(int64_t n, float *y, const float *a, const float *b);
    void  (*add1)(int64_t n, float *y, const float *a, float b);
    void  (*mul1)(int64_t n, float *y, const float *a, float b);
    void  (*axpy)(int64_t n, float *y, const float *x, float a);        /* y[i] = fmaf(a, x[i], y[i]) */
    /* OUTER_ROWS rows y_step floats apart grow by sums over `terms` rows x: y[r][i] = fmaf(s[OUTER_ROWS*t + r], x[t][i], y[r][i]) in
     * increasing t; n a multiple of 16 */
    void  (*outer)(int64_t n, float *y, int64_t y_step, const float *const *x, const float *s, int terms);
    void  (*scale_bias)(int64_t n, float *y, const float *x, float s, float b);     /* fmaf(s, x[i], b) */

    /* y[i] = f(x[i])*g[i] for enum ggml_glu_op without parameters: REGLU, GEGLU, SWIGLU, GEGLU_ERF, GEGLU_QUICK */
    void  (*glu[GGML_GLU_OP_COUNT])(int64_t n, float *y, const float *x, const float *g);
    /* min(x, limit)*sigmoid(alpha*min(x, limit))*(clamp(g, -limit, limit) + 1), and silu(min(x, limit))*clamp(g, ..) */
    void  (*swiglu_oai  )(int64_t n, float *y, const float *x, const float *g, float alpha, float limit);
    void  (*swiglu_clamp)(int64_t n, float *y, const float *x, const float *g, float limit);

    double (*sum   )(int64_t n, const float *x);                        /* 16 double lanes */
    double (*sum_sq)(int64_t n, const float *x);                        /* of (double) x*x */
    double (*sum_mul)(int64_t n, const float *a, const float *b);       /* of (double) a*b */
    double (*sum_sq_from)(int64_t n, const float *x, double m);         /* of ((double) x - m)^2, fused */
    float  (*max   )(int64_t n, const float *x);                        /* -INFINITY for n = 0; NaN elements are passed over */
    double (*exp_sum)(int64_t n, float *y, const float *x, float max);  /* y[i] = exp(x[i] - max); their sum */

    /* dot product of two rows, 16 float lanes of fmaf; a in its own type (F32, F16, BF16), widened exactly */
    float (*dot_f32 )(int64_t n, const float    *a, const float *b);
    float (*dot_f16 )(int64_t n, const uint16_t *a, const float *b);
    float (*dot_bf16)(int64_t n, const uint16_t *a, const float *b);

    const struct attention_kernels *attention;

    void  (*from_f16 )(int64_t n, float *y, const uint16_t *x);
    void  (*to_f16   )(int64_t n, uint16_t *y, const float *x);
    void  (*from_bf16)(int64_t n, float *y, const uint16_t *x);
    void  (*to_bf16  )(int64_t n, uint16_t *y, const float *x);
};

extern const struct float_kernels float_kernels_portable;               /* the definition */
void float_kernels_avx2  (struct float_kernels *k);                     /* each lays its own over what is there */
void float_kernels_avx512(struct float_kernels *k);
void float_kernels_vnni  (struct float_kernels *k);
void float_kernels_neon  (struct float_kernels *k);
void float_kernels_dotprod(struct float_kernels *k);

/* sin(x + quarter*pi/2) for any finite x, by the integer reduction that large angles need; NaN for others. */
float sin_large(float x, int quarter);

#endif
