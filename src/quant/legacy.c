/* Types of 32 elements with one scale (_0) or a scale and a minimum (_1). In all of them byte k of qs holds elements k (low
 * nibble) and k + 16 (high nibble); a fifth bit, element by element, lies in qh. Layouts are drawn in quant.h.
 *   _0: y = (q - zero)*d, zero in the middle of the codes;   _1: y = q*d + m.
 * Codes are computed with the scale before it is rounded to half. */

#include "quant.h"

#include <string.h>

static void minmax(const float *x, int n, float *min, float *max) {
    *min = INFINITY, *max = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (x[i] < *min) *min = x[i];
        if (x[i] > *max) *max = x[i];
    }
    if (*min > *max) *min = *max = 0.0f;                        /* nothing but NaN */
}

/* The codes of a block, one a byte, and back; qh NULL: four bits are all. */
static void codes_get(const uint8_t *qs, const uint8_t *qh, uint8_t *q) {
    for (int j = 0; j < 16; j++) q[j] = qs[j] & 15, q[j + 16] = qs[j] >> 4;
    for (int j = 0; qh && j < 32; j++) q[j] |= (uint8_t) ((qh[j/8] >> j%8 & 1) << 4);
}
static void codes_set(uint8_t *qs, uint8_t *qh, const uint8_t *q) {
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t) ((q[j] & 15) | q[j + 16] << 4);
    if (qh) memset(qh, 0, 4);
    for (int j = 0; qh && j < 32; j++) qh[j/8] |= (uint8_t) ((q[j] >> 4 & 1) << j%8);
}

/* Codes 0 .. 2*zero-1 of the types without a minimum, and their scale. */
static float codes_symmetric(const float *x, uint8_t *q, int zero) {
    const float d = signed_max(x, 32)/(float) -zero, id = inverse(d);
    for (int j = 0; j < 32; j++) q[j] = (uint8_t) trunc_within(x[j]*id + ((float) zero + 0.5f), 0, 2*zero - 1);
    return d;
}

/* Codes 0 .. top of the types with one. */
static float codes_offset(const float *x, uint8_t *q, int top, float *min) {
    float max;
    minmax(x, 32, min, &max);
    const float d = (max - *min)/(float) top, id = inverse(d);
    for (int j = 0; j < 32; j++) q[j] = (uint8_t) trunc_within((x[j] - *min)*id + 0.5f, 0, top);
    return d;
}

/* With weights: an error in x costs weight*sqrt(energy + x^2). The same fits as in k.c. */
static float codes_symmetric_weighted(const float *x, uint8_t *q, int zero, const float *weights, float energy) {
    float w[32];
    for (int i = 0; i < 32; i++) w[i] = weights[i]*sqrtf(energy + x[i]*x[i]);
    return fit_symmetric(32, zero, x, q, w);
}
static float codes_offset_weighted(const float *x, uint8_t *q, int top, float *min, const float *weights, float energy) {
    float w[32];
    for (int i = 0; i < 32; i++) w[i] = weights[i]*sqrtf(energy + x[i]*x[i]);
    return fit_offset(&fit_weighted, 32, top, x, w, q, min);
}

void unpack_q4_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (const block_q4_0 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d);
        codes_get(b->qs, NULL, q);
        for (int j = 0; j < 32; j++) y[j] = (float) (q[j] - 8)*d;
    }
}

void pack_q4_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (block_q4_0 *b = y; k > 0; k -= 32, b++, x += 32) {
        b->d = f32_to_f16(codes_symmetric(x, q, 8));
        codes_set(b->qs, NULL, q);
    }
}

void pack_weighted_q4_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_q4_0 *b = y;
    uint8_t q[32];
    b->d = f32_to_f16(codes_symmetric_weighted(x, q, 8, weights, energy));
    codes_set(b->qs, NULL, q);
}

void unpack_q5_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (const block_q5_0 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d);
        codes_get(b->qs, b->qh, q);
        for (int j = 0; j < 32; j++) y[j] = (float) (q[j] - 16)*d;
    }
}

void pack_q5_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (block_q5_0 *b = y; k > 0; k -= 32, b++, x += 32) {
        b->d = f32_to_f16(codes_symmetric(x, q, 16));
        codes_set(b->qs, b->qh, q);
    }
}

void pack_weighted_q5_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_q5_0 *b = y;
    uint8_t q[32];
    b->d = f32_to_f16(codes_symmetric_weighted(x, q, 16, weights, energy));
    codes_set(b->qs, b->qh, q);
}

void unpack_q4_1(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (const block_q4_1 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d), m = f16_to_f32(b->m);
        codes_get(b->qs, NULL, q);
        for (int j = 0; j < 32; j++) y[j] = (float) q[j]*d + m;
    }
}

void pack_q4_1(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    float min;
    for (block_q4_1 *b = y; k > 0; k -= 32, b++, x += 32) {
        b->d = f32_to_f16(codes_offset(x, q, 15, &min));
        b->m = f32_to_f16(min);
        codes_set(b->qs, NULL, q);
    }
}

void pack_weighted_q4_1(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_q4_1 *b = y;
    uint8_t q[32];
    float min;
    b->d = f32_to_f16(codes_offset_weighted(x, q, 15, &min, weights, energy));
    b->m = f32_to_f16(min);
    codes_set(b->qs, NULL, q);
}

void unpack_q5_1(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    for (const block_q5_1 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d), m = f16_to_f32(b->m);
        codes_get(b->qs, b->qh, q);
        for (int j = 0; j < 32; j++) y[j] = (float) q[j]*d + m;
    }
}

void pack_q5_1(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint8_t q[32];
    float min;
    for (block_q5_1 *b = y; k > 0; k -= 32, b++, x += 32) {
        b->d = f32_to_f16(codes_offset(x, q, 31, &min));
        b->m = f32_to_f16(min);
        codes_set(b->qs, b->qh, q);
    }
}

void pack_weighted_q5_1(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_q5_1 *b = y;
    uint8_t q[32];
    float min;
    b->d = f32_to_f16(codes_offset_weighted(x, q, 31, &min, weights, energy));
    b->m = f32_to_f16(min);
    codes_set(b->qs, b->qh, q);
}

/* Codes -127 .. 127 and the scale. */
static float codes_q8(const float *x, int8_t *q) {
    const float d = fabsf(signed_max(x, 32))/127.0f, id = inverse(d);
    for (int j = 0; j < 32; j++) q[j] = (int8_t) round_within(x[j]*id, -127, 127);
    return d;
}

void unpack_q8_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q8_0 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d);
        for (int j = 0; j < 32; j++) y[j] = (float) b->qs[j]*d;
    }
}

void pack_q8_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_q8_0 *b = y; k > 0; k -= 32, b++, x += 32) b->d = f32_to_f16(codes_q8(x, b->qs));
}

void unpack_q8_1(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q8_1 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d);
        for (int j = 0; j < 32; j++) y[j] = (float) b->qs[j]*d;
    }
}

void pack_q8_1(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_q8_1 *b = y; k > 0; k -= 32, b++, x += 32) {
        const float d = codes_q8(x, b->qs);
        int sum = 0;
        for (int j = 0; j < 32; j++) sum += b->qs[j];
        b->d = f32_to_f16(d);
        b->s = f32_to_f16((float) sum*d);
    }
}
