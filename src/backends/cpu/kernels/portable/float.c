/* The definition of the float kernels, in plain C: formulas from elementary.h on one lane, reductions on 16 lanes in arrays. */

#include "float_kernels.h"
#include "../../simd/c.h"
#include "../float_maps.h"

/* ---- sums over 16 lanes -------------------------------------------------------------------------------------------- */

static float fold(float s[16]) {
    for (int w = 8; w > 0; w /= 2) for (int i = 0; i < w; i++) s[i] += s[i + w];
    return s[0];
}
static double fold_double(double s[16]) {
    for (int w = 8; w > 0; w /= 2) for (int i = 0; i < w; i++) s[i] += s[i + w];
    return s[0];
}

static double sum(int64_t n, const float *x) {
    double s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] += x[i];
    return fold_double(s);
}
static double sum_mul(int64_t n, const float *a, const float *b) {
    double s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] += (double) a[i]*b[i];            /* the product is exact */
    return fold_double(s);
}
static double sum_sq(int64_t n, const float *x) { return sum_mul(n, x, x); }
static double sum_sq_from(int64_t n, const float *x, double m) {
    double s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] = fma(x[i] - m, x[i] - m, s[i % 16]);
    return fold_double(s);
}
static float max(int64_t n, const float *x) {
    float s[16];
    for (int i = 0; i < 16; i++) s[i] = -INFINITY;
    for (int64_t i = 0; i < n; i++) s[i % 16] = vf_max(x[i], s[i % 16]);
    for (int w = 8; w > 0; w /= 2) for (int i = 0; i < w; i++) s[i] = vf_max(s[i + w], s[i]);
    return s[0];
}
static double exp_sum(int64_t n, float *y, const float *x, float max) {
    double s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] += y[i] = v_exp(x[i] - max);
    return fold_double(s);
}

/* ---- rotations ----------------------------------------------------------------------------------------------------- */

static void rotate_halves(int64_t h, float *y, const float *x, const float *c, const float *s) {
    for (int64_t i = 0; i < h; i++) {
        const float x0 = x[i], x1 = x[i + h];
        y[i]     = fmaf(x0, c[i], x1*-s[i]);
        y[i + h] = fmaf(x1, c[i], x0*s[i]);
    }
}
static void rotate_pairs(int64_t h, float *y, const float *x, const float *c, const float *s) {
    for (int64_t i = 0; i < 2*h; i += 2) {
        const float x0 = x[i], x1 = x[i + 1];
        y[i]     = fmaf(x0, c[i], x1*s[i]);
        y[i + 1] = fmaf(x1, c[i + 1], x0*s[i + 1]);
    }
}

/* ---- dot products -------------------------------------------------------------------------------------------------- */

static float dot_f32(int64_t n, const float *a, const float *b) {
    float s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] = fmaf(a[i], b[i], s[i % 16]);
    return fold(s);
}
static float dot_f16(int64_t n, const uint16_t *a, const float *b) {
    float s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] = fmaf(f16_to_f32(a[i]), b[i], s[i % 16]);
    return fold(s);
}
static float dot_bf16(int64_t n, const uint16_t *a, const float *b) {
    float s[16] = { 0 };
    for (int64_t i = 0; i < n; i++) s[i % 16] = fmaf(bf16_to_f32(a[i]), b[i], s[i % 16]);
    return fold(s);
}

/* ---- halves -------------------------------------------------------------------------------------------------------- */

static void from_f16 (int64_t n, float *y, const uint16_t *x) { for (int64_t i = 0; i < n; i++) y[i] = f16_to_f32(x[i]); }
static void to_f16   (int64_t n, uint16_t *y, const float *x) { for (int64_t i = 0; i < n; i++) y[i] = f32_to_f16(x[i]); }
static void from_bf16(int64_t n, float *y, const uint16_t *x) { for (int64_t i = 0; i < n; i++) y[i] = bf16_to_f32(x[i]); }
static void to_bf16  (int64_t n, uint16_t *y, const float *x) { for (int64_t i = 0; i < n; i++) y[i] = f32_to_bf16(x[i]); }


/* ---- angles too large for doubles ---------------------------------------------------------------------------------- */

/* Payne and Hanek 1983. |x| = m 2^e with 24-bit m and e >= 8; x 2/pi modulo 4 needs only the bits of 2/pi from 2^(1-e) down:
 * 64 of them times m, modulo 2^64, are two bits of quadrant and 62 of fraction; 32 more make the last of these right. */
float sin_large(float x, int quarter) {
    static const uint32_t two_over_pi[] = { 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab };
    const uint32_t word = f32_bits(x) & 0x7fffffff;
    if (word >= 0x7f800000) return NAN;
    const int e = (int) (word >> 23) - 150, skip = e - 2, shift = skip % 32;
    const uint64_t m = (word & 0x7fffff) | 0x800000;
    const uint32_t *w = two_over_pi + skip/32;
    uint32_t bits[3];
    for (int i = 0; i < 3; i++) bits[i] = shift ? w[i] << shift | w[i + 1] >> (32 - shift) : w[i];
    const uint64_t turns = m*((uint64_t) bits[0] << 32 | bits[1]) + (m*bits[2] >> 32);
    const uint64_t nearest = (turns + (UINT64_C(1) << 61)) >> 62;
    const uint64_t rest = turns - (nearest << 62);
    const double fraction = rest >> 63 ? -(double) (0 - rest) : (double) rest;
    double s, c;
    v_sin_cos(fraction*(0x1.921fb54442d18p+0*0x1p-62), &s, &c);
    const bool negative = signbit(x);
    const unsigned q = (unsigned) nearest + (unsigned) (quarter && !negative) - (unsigned) (quarter && negative);
    const double y = q & 1 ? c : s, z = q & 2 ? -y : y;
    return (float) (negative ? -z : z);
}

#define K(name) name##_portable
const struct float_kernels float_kernels_portable = {
#include "../float_table.h"
};
