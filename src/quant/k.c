/* The K family: super-blocks of 256 elements in groups of 16 or 32, each group with a scale (and a minimum) of 4 to 8 bits that
 * is a multiple of the super-block's half d (and dmin).
 *   Q2_K, Q4_K, Q5_K: y = d*scale*code - dmin*min;   Q3_K, Q6_K: y = d*scale*(code - zero).
 * Packing fits each group, rounds the group scales, and codes the elements again with the rounded scales; where a rounded
 * scale is 0 the codes of the fit stay. Q8_K holds activations: an F32 scale, no groups, and sums of 16 codes. */

#include "quant.h"

#include <string.h>

/* ---- fits ---------------------------------------------------------------------------------------------------------- */

#define TINY 1e-15f                                             /* groups below are taken as zero */

/* Scales are tried four at a time, side by side: each keeps its sums in the order of the elements, and the four run in step. */
enum { TRIES = 4, SCALES = 19 };

/* Codes for each inverse scale; A = sum w*x*q and B = sum w*q*q, from which the best scale for these codes is A/B. */
static void symmetric_sums(int n, int zero, const float *x, const float *w, const float *inverse_scale, float *A, float *B) {
    float a[TRIES] = { 0.0f }, b[TRIES] = { 0.0f };
    for (int i = 0; i < n; i++) {
        const float wx = w[i]*x[i];
        for (int t = 0; t < TRIES; t++) {
            const float q = (float) clamp_int(round_even(inverse_scale[t]*x[i]), -zero, zero - 1);
            a[t] += wx*q;
            b[t] += w[i]*q*q;
        }
    }
    memcpy(A, a, sizeof a), memcpy(B, b, sizeof b);
}

/* The plain scale is tried first, then those beside it: -0.9 .. -0.1, 0.1 .. 0.9. */
static float tenths(int t) { return t ? 0.1f*(float) (t < 10 ? t - 10 : t - 9) : 0.0f; }

float fit_symmetric(int n, int zero, const float *x, uint8_t *codes, const float *weights) {
    const float max = signed_max(x, n);
    if (!(fabsf(max) >= TINY)) {
        for (int i = 0; i < n; i++) codes[i] = 0;
        return 0.0f;
    }
    float scale = 0.0f, best = 0.0f, best_inverse = 0.0f, w[32];
    for (int i = 0; i < n; i++) w[i] = weights ? weights[i] : x[i]*x[i];
    for (int first = 0; first < SCALES; first += TRIES) {
        float inverse_scale[TRIES], A[TRIES], B[TRIES];
        for (int t = 0; t < TRIES; t++) inverse_scale[t] = -((float) zero + tenths(first + t))/max;
        symmetric_sums(n, zero, x, w, inverse_scale, A, B);
        for (int t = 0; t < TRIES && first + t < SCALES; t++) {
            if (first + t && !(B[t] > 0.0f && A[t]*A[t] > best*B[t])) continue;
            scale = B[t] != 0.0f ? A[t]/B[t] : 0.0f;
            best = scale*A[t];
            best_inverse = inverse_scale[t];
        }
    }
    for (int i = 0; i < n; i++) codes[i] = (uint8_t) (clamp_int(round_even(best_inverse*x[i]), -zero, zero - 1) + zero);
    return scale;
}

const struct fit_plan fit_weighted = { -0.9f, 0.05f, 36, false };

float fit_offset(const struct fit_plan *plan, int n, int top, const float *x, const float *w, uint8_t *codes, float *min) {
    float lo = x[0], hi = x[0], sum_w = w[0], sum_x = w[0]*x[0];
    for (int i = 1; i < n; i++) {
        if (x[i] < lo) lo = x[i];
        if (x[i] > hi) hi = x[i];
        sum_w += w[i];
        sum_x += w[i]*x[i];
    }
    if (lo > 0.0f) lo = 0.0f;
    *min = lo;
    for (int i = 0; i < n; i++) codes[i] = 0;
    if (hi == lo) return 0.0f;

    float inverse_scale = (float) top/(hi - lo), scale = 1.0f/inverse_scale, best = 0.0f;
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t) clamp_int(round_even(inverse_scale*(x[i] - lo)), 0, top);
        const float e = scale*(float) codes[i] + lo - x[i];
        best += w[i]*(plan->absolute ? fabsf(e) : e*e);
    }
    for (int t = 0; t <= plan->steps; t++) {
        uint8_t q[32];
        float sum_q = 0.0f, sum_qq = 0.0f, sum_qx = 0.0f;
        inverse_scale = (plan->from + plan->step*(float) t + (float) top)/(hi - lo);
        for (int i = 0; i < n; i++) {
            q[i] = (uint8_t) clamp_int(round_even(inverse_scale*(x[i] - lo)), 0, top);
            sum_q  += w[i]*(float) q[i];
            sum_qq += w[i]*(float) q[i]*(float) q[i];
            sum_qx += w[i]*(float) q[i]*x[i];
        }
        const float D = sum_w*sum_qq - sum_q*sum_q;             /* of the normal equations for scale and minimum */
        if (!(D > 0.0f)) continue;
        float s = (sum_w*sum_qx - sum_x*sum_q)/D, m = (sum_qq*sum_x - sum_q*sum_qx)/D, error = 0.0f;
        if (m > 0.0f) {
            m = 0.0f;
            s = sum_qx/sum_qq;
        }
        for (int i = 0; i < n; i++) {
            const float e = s*(float) q[i] + m - x[i];
            error += w[i]*(plan->absolute ? fabsf(e) : e*e);
        }
        if (error < best) {
            memcpy(codes, q, (size_t) n);
            best = error;
            scale = s;
            lo = m;
        }
    }
    *min = lo;
    return scale;
}

/* Sweeps over the elements, each moved to the code that is best for the current scale, while the fit improves. Codes are
 * within lo .. hi; A and B are the sums of all w*x*q and w*q*q. */
static void sweep(int n, int lo, int hi, const float *x, const float *w, int *q, float *A, float *B) {
    for (int pass = 0, changed = 1; pass < 5 && changed; pass++) {
        changed = 0;
        for (int i = 0; i < n; i++) {
            const float wi = w ? w[i] : x[i]*x[i];
            float a = *A - wi*x[i]*(float) q[i], b = *B - wi*(float) q[i]*(float) q[i];
            if (!(a > 0.0f)) continue;
            const int moved = clamp_int(round_even(x[i]*b/a), lo, hi);
            if (moved == q[i]) continue;
            a += wi*x[i]*(float) moved;
            b += wi*(float) moved*(float) moved;
            if (b > 0.0f && a*a**B > *A**A*b) {
                q[i] = moved;
                *A = a;
                *B = b;
                changed = 1;
            }
        }
    }
}

/* Q3_K's own fit: one start, then sweeps. */
static float fit_swept(int n, int zero, const float *x, uint8_t *codes) {
    const float max = signed_max(x, n);
    int q[16];
    if (!(fabsf(max) >= TINY)) {
        for (int i = 0; i < n; i++) codes[i] = 0;
        return 0.0f;
    }
    float A = 0.0f, B = 0.0f;
    const float inverse_scale = (float) -zero/max;
    for (int i = 0; i < n; i++) {
        const float w = x[i]*x[i];
        q[i] = clamp_int(round_even(inverse_scale*x[i]), -zero, zero - 1);
        A += w*x[i]*(float) q[i];
        B += w*(float) q[i]*(float) q[i];
    }
    sweep(n, -zero, zero - 1, x, NULL, q, &A, &B);
    for (int i = 0; i < n; i++) codes[i] = (uint8_t) (q[i] + zero);
    return A/B;
}

/* ---- weights and group scales ---------------------------------------------------------------------------------------- */

static float mean_square(const float *x) {
    float sum = 0.0f;
    for (int i = 0; i < QK_K; i++) sum += x[i]*x[i];
    return sum/(float) QK_K;
}

/* What an error costs in a group of n: importance*sqrt(energy + x^2), or, when the importance is all zeros, as without it. */
static bool costs(float *w, int n, const float *x, const float *importance, float energy) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        w[i] = importance[i]*sqrtf(energy + x[i]*x[i]);
        sum += w[i];
    }
    return sum > 0.0f;
}

/* Scale for n values >= 0 as codes 0 .. top, by weighted squares: nine starts, then sweeps. */
static float fit_positive(int n, int top, const float *x, const float *w, uint8_t *codes) {
    float max = 0.0f;
    int q[16];
    for (int i = 0; i < n; i++) if (x[i] > max) max = x[i];
    for (int i = 0; i < n; i++) codes[i] = 0;
    if (max < TINY) return 0.0f;
    float best = 0.0f, best_inverse = 0.0f;
    for (int k = 0; k < 9; k++) {
        const int t = k == 0 ? 0 : k <= 4 ? k - 5 : k - 4;      /* the plain start first, then -4 .. -1, 1 .. 4 */
        const float inverse_scale = (0.1f*(float) t + (float) top)/max, scale = 1.0f/inverse_scale;
        float error = 0.0f;
        for (int i = 0; i < n; i++) {
            const float e = x[i] - scale*(float) clamp_int(round_even(inverse_scale*x[i]), 0, top);
            error += w[i]*e*e;
        }
        if (k == 0 || error < best) best = error, best_inverse = inverse_scale;
    }
    float A = 0.0f, B = 0.0f;
    for (int i = 0; i < n; i++) {
        q[i] = clamp_int(round_even(best_inverse*x[i]), 0, top);
        A += w[i]*x[i]*(float) q[i];
        B += w[i]*(float) q[i]*(float) q[i];
    }
    sweep(n, 0, top, x, w, q, &A, &B);
    for (int i = 0; i < n; i++) codes[i] = (uint8_t) q[i];
    return B > 0.0f ? A/B : 0.0f;
}

/* n group values >= 0 as codes 0 .. top times the half that is returned; weights NULL: the largest becomes `top`. */
static uint16_t round_groups(int n, int top, const float *values, const float *weights, uint8_t *codes) {
    if (weights) return f32_to_f16(fit_positive(n, top, values, weights, codes));
    float max = 0.0f;
    for (int i = 0; i < n; i++) if (values[i] > max) max = values[i];
    const float inverse_scale = max > 0.0f ? (float) top/max : 0.0f;
    for (int i = 0; i < n; i++) {
        const uint8_t code = (uint8_t) round_even(inverse_scale*values[i]);
        codes[i] = code < top ? code : (uint8_t) top;
    }
    return f32_to_f16(max/(float) top);
}

/* The codes of one group again, with its rounded scale and minimum. */
static void recode_offset(int n, int top, const float *x, float d, float m, uint8_t *codes) {
    if (d == 0.0f) return;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t) clamp_int(round_even((x[i] + m)/d), 0, top);
}
static void recode_symmetric(int n, int zero, const float *x, float d, uint8_t *codes) {
    if (d == 0.0f) return;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t) (clamp_int(round_even(x[i]/d), -zero, zero - 1) + zero);
}

/* ---- Q2_K: 16 groups of 16, scale and minimum a nibble each ------------------------------------------------------------ */

void unpack_q2_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q2_K *b = x; k > 0; k -= QK_K, b++, y += QK_K) {
        const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
        for (int i = 0; i < QK_K; i++) {
            const uint8_t s = b->scales[i/16];
            const int q = b->qs[i/128*32 + i%32] >> i%128/32*2 & 3;
            y[i] = d*(float) (s & 15)*(float) q - dmin*(float) (s >> 4);
        }
    }
}

static void pack_one_q2_K(const float *x, block_q2_K *b, const float *importance) {
    static const struct fit_plan plain = { -0.5f, 0.1f, 15, true };
    uint8_t q[QK_K], scales[16], mins[16];
    float scale[16], min[16], group[16];
    const float energy = mean_square(x);
    for (int g = 0; g < 16; g++) {
        const float *xg = x + 16*g;
        float w[16];
        const bool weighted = importance && costs(w, 16, xg, importance + 16*g, energy);
        if (!weighted) for (int i = 0; i < 16; i++) w[i] = fabsf(xg[i]);
        scale[g] = fit_offset(weighted ? &fit_weighted : &plain, 16, 3, xg, w, q + 16*g, &min[g]);
        min[g] = -min[g];
        group[g] = 0.0f;
        for (int i = 0; i < 16; i++) group[g] += w[i];
    }
    b->d    = round_groups(16, 15, scale, importance ? group : NULL, scales);
    b->dmin = round_groups(16, 15, min,   importance ? group : NULL, mins);
    memset(b->qs, 0, sizeof b->qs);
    for (int g = 0; g < 16; g++) {
        b->scales[g] = (uint8_t) (scales[g] | mins[g] << 4);
        recode_offset(16, 3, x + 16*g, f16_to_f32(b->d)*(float) scales[g], f16_to_f32(b->dmin)*(float) mins[g], q + 16*g);
    }
    for (int i = 0; i < QK_K; i++) b->qs[i/128*32 + i%32] |= (uint8_t) (q[i] << i%128/32*2);
}

/* ---- Q3_K: 16 groups of 16, scale 6 bits, the codes' third bit in hmask --------------------------------------------------- */

static int q3_K_scale(const uint8_t *s, int g) {
    return (g < 8 ? s[g] & 15 : s[g - 8] >> 4) | (s[8 + g%4] >> g/4*2 & 3) << 4;
}

void unpack_q3_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q3_K *b = x; k > 0; k -= QK_K, b++, y += QK_K) {
        const float d = f16_to_f32(b->d);
        for (int i = 0; i < QK_K; i++) {
            const int q = b->qs[i/128*32 + i%32] >> i%128/32*2 & 3, high = b->hmask[i%32] >> i/32 & 1;
            y[i] = d*(float) (q3_K_scale(b->scales, i/16) - 32)*(float) (q - (high ? 0 : 4));
        }
    }
}

static void pack_one_q3_K(const float *x, block_q3_K *b, const float *importance) {
    uint8_t q[QK_K], codes[16];
    float scale[16], group[16], d;
    const float energy = importance ? 2.0f*mean_square(x) : 0.0f;
    for (int g = 0; g < 16; g++) {
        float w[16];
        const bool weighted = importance && costs(w, 16, x + 16*g, importance + 16*g, energy);
        scale[g] = weighted ? fit_symmetric(16, 4, x + 16*g, q + 16*g, w) : fit_swept(16, 4, x + 16*g, q + 16*g);
        group[g] = 0.0f;
        for (int i = 0; i < 16; i++) group[g] += weighted ? w[i] : x[16*g + i]*x[16*g + i];
    }
    if (importance) {
        d = fit_symmetric(16, 32, scale, codes, group);
    } else {
        const float max = signed_max(scale, 16), inverse_scale = max != 0.0f ? -32.0f/max : 0.0f;
        for (int g = 0; g < 16; g++)
            codes[g] = (uint8_t) (max == 0.0f ? 0 : clamp_int((int8_t) round_even(inverse_scale*scale[g]), -32, 31) + 32);
        d = inverse(inverse_scale);
    }
    memset(b, 0, sizeof *b);
    b->d = f32_to_f16(d);
    for (int g = 0; g < 16; g++) {
        b->scales[g%8]     |= (uint8_t) ((codes[g] & 15) << g/8*4);
        b->scales[8 + g%4] |= (uint8_t) (codes[g] >> 4 << g/4*2);
        recode_symmetric(16, 4, x + 16*g, f16_to_f32(b->d)*(float) (codes[g] - 32), q + 16*g);
    }
    for (int i = 0; i < QK_K; i++) {
        b->qs[i/128*32 + i%32] |= (uint8_t) ((q[i] & 3) << i%128/32*2);
        b->hmask[i%32]         |= (uint8_t) (q[i] >> 2 << i/32);
    }
}

/* ---- Q4_K, Q5_K: 8 groups of 32, scale and minimum 6 bits each in 12 bytes ------------------------------------------------- */

static void six_bits_get(const uint8_t *s, int g, int *scale, int *min) {
    if (g < 4) {
        *scale = s[g] & 63;
        *min   = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
        *min   = s[g + 4] >> 4   | s[g] >> 6 << 4;
    }
}

static void six_bits_set(uint8_t *s, int g, int scale, int min) {       /* g in increasing order */
    if (g < 4) {
        s[g]     = (uint8_t) scale;
        s[g + 4] = (uint8_t) min;
    } else {
        s[g + 4]  = (uint8_t) ((scale & 15) | (min & 15) << 4);
        s[g - 4] |= (uint8_t) (scale >> 4 << 6);
        s[g]     |= (uint8_t) (min >> 4 << 6);
    }
}

/* Codes, scales and minimums of a super-block; Q4_K and Q5_K differ in the number of codes and in the plain search. */
static void pack_groups32(const struct fit_plan *plain, int top, const float *x, const float *importance,
                          uint8_t *q, uint8_t *packed, uint16_t *d, uint16_t *dmin) {
    float scale[8], min[8], group[8];
    uint8_t scales[8], mins[8];
    const float energy = importance ? 2.0f*mean_square(x) : 0.0f;
    for (int g = 0; g < 8; g++) {
        const float *xg = x + 32*g;
        float w[32], square = 0.0f;
        const bool weighted = importance && costs(w, 32, xg, importance + 32*g, energy);
        for (int i = 0; i < 32; i++) square += xg[i]*xg[i];
        if (!weighted) for (int i = 0; i < 32; i++) w[i] = sqrtf(square/32.0f) + fabsf(xg[i]);
        scale[g] = fit_offset(weighted ? &fit_weighted : plain, 32, top, xg, w, q + 32*g, &min[g]);
        min[g] = -min[g];
        group[g] = 0.0f;
        for (int i = 0; i < 32; i++) group[g] += w[i];
    }
    *d    = round_groups(8, 63, scale, importance ? group : NULL, scales);
    *dmin = round_groups(8, 63, min,   importance ? group : NULL, mins);
    for (int g = 0; g < 8; g++) {
        six_bits_set(packed, g, scales[g], mins[g]);
        recode_offset(32, top, x + 32*g, f16_to_f32(*d)*(float) scales[g], f16_to_f32(*dmin)*(float) mins[g], q + 32*g);
    }
}

void unpack_q4_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q4_K *b = x; k > 0; k -= QK_K, b++) {
        const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
        for (int g = 0; g < 8; g++, y += 32) {
            int scale, min;
            six_bits_get(b->scales, g, &scale, &min);
            const float dg = d*(float) scale, mg = dmin*(float) min;
            for (int j = 0; j < 32; j++) y[j] = dg*(float) (b->qs[g/2*32 + j] >> g%2*4 & 15) - mg;
        }
    }
}

static void pack_one_q4_K(const float *x, block_q4_K *b, const float *importance) {
    static const struct fit_plan plain = { -1.0f, 0.1f, 20, false };
    uint8_t q[QK_K];
    pack_groups32(&plain, 15, x, importance, q, b->scales, &b->d, &b->dmin);
    for (int i = 0; i < 128; i++) b->qs[i] = (uint8_t) (q[i/32*64 + i%32] | q[i/32*64 + 32 + i%32] << 4);
}

void unpack_q5_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q5_K *b = x; k > 0; k -= QK_K, b++) {
        const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
        for (int g = 0; g < 8; g++, y += 32) {
            int scale, min;
            six_bits_get(b->scales, g, &scale, &min);
            const float dg = d*(float) scale, mg = dmin*(float) min;
            for (int j = 0; j < 32; j++) {
                const int q = (b->qs[g/2*32 + j] >> g%2*4 & 15) | (b->qh[j] >> g & 1) << 4;
                y[j] = dg*(float) q - mg;
            }
        }
    }
}

static void pack_one_q5_K(const float *x, block_q5_K *b, const float *importance) {
    static const struct fit_plan plain = { -0.5f, 0.1f, 15, false };
    uint8_t q[QK_K];
    pack_groups32(&plain, 31, x, importance, q, b->scales, &b->d, &b->dmin);
    for (int i = 0; i < 128; i++) b->qs[i] = (uint8_t) ((q[i/32*64 + i%32] & 15) | (q[i/32*64 + 32 + i%32] & 15) << 4);
    memset(b->qh, 0, sizeof b->qh);
    for (int i = 0; i < QK_K; i++) b->qh[i%32] |= (uint8_t) (q[i] >> 4 << i/32);
}

/* ---- Q6_K: 16 groups of 16, scale 8 bits ------------------------------------------------------------------------------------ */

void unpack_q6_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q6_K *b = x; k > 0; k -= QK_K, b++, y += QK_K) {
        const float d = f16_to_f32(b->d);
        for (int i = 0; i < QK_K; i++) {
            const int n = i/128, r = i%128/32, l = i%32;
            const int q = (b->ql[64*n + 32*(r%2) + l] >> r/2*4 & 15) | (b->qh[32*n + l] >> 2*r & 3) << 4;
            y[i] = d*(float) b->scales[i/16]*(float) (q - 32);
        }
    }
}

static void pack_one_q6_K(const float *x, block_q6_K *b, const float *importance) {
    uint8_t q[QK_K];
    float scale[16];
    for (int g = 0; g < 16; g++) {
        float sum = 0.0f;
        for (int i = 0; importance && i < 16; i++) sum += importance[16*g + i];
        scale[g] = fit_symmetric(16, 32, x + 16*g, q + 16*g, sum > 0.0f ? importance + 16*g : NULL);
    }
    const float max = signed_max(scale, 16), inverse_scale = -128.0f/max;
    memset(b, 0, sizeof *b);
    if (!(fabsf(max) >= TINY)) return;
    b->d = f32_to_f16(1.0f/inverse_scale);
    for (int g = 0; g < 16; g++) {
        b->scales[g] = (int8_t) clamp_int(round_even(inverse_scale*scale[g]), -128, 127);
        recode_symmetric(16, 32, x + 16*g, f16_to_f32(b->d)*(float) b->scales[g], q + 16*g);
    }
    for (int i = 0; i < QK_K; i++) {
        const int n = i/128, r = i%128/32, l = i%32;
        b->ql[64*n + 32*(r%2) + l] |= (uint8_t) ((q[i] & 15) << r/2*4);
        b->qh[32*n + l]            |= (uint8_t) (q[i] >> 4 << 2*r);
    }
}

/* ---- entry points ------------------------------------------------------------------------------------------------------------- */

#define K_PACK(tag) \
    void pack_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) { \
        for (block_##tag *b = y; k > 0; k -= QK_K, b++, x += QK_K) pack_one_##tag(x, b, NULL); \
    } \
    void pack_weighted_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) { \
        (void) energy; \
        pack_one_##tag(x, y, weights); \
    }
K_PACK(q2_K)
K_PACK(q3_K)
K_PACK(q4_K)
K_PACK(q5_K)
K_PACK(q6_K)

void unpack_q8_K(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q8_K *b = x; k > 0; k -= QK_K, b++, y += QK_K)
        for (int i = 0; i < QK_K; i++) y[i] = b->d*(float) b->qs[i];
}

void pack_q8_K(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_q8_K *b = y; k > 0; k -= QK_K, b++, x += QK_K) {
        const float max = signed_max(x, QK_K), inverse_scale = -127.0f/max;
        memset(b, 0, sizeof *b);
        if (max == 0.0f) continue;
        b->d = 1.0f/inverse_scale;
        for (int i = 0; i < QK_K; i++) {
            const int q = round_even(inverse_scale*x[i]);
            b->qs[i] = (int8_t) clamp_int(q, -128, 127);
            b->bsums[i/16] = (int16_t) (b->bsums[i/16] + b->qs[i]);
        }
    }
}
