/* IQ4_NL and IQ4_XS: nibbles that stand for the 16 unevenly spaced values of iq4_values.
 *   IQ4_NL: 32 elements, y = d*value;   IQ4_XS: 8 groups of 32, y = d*(scale - 32)*value with scales of 6 bits.
 * A scale is fitted by weighted squares among several starts; the weights are the squares of x or come from importance data. */

#include "quant.h"

#include <string.h>

const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

#define TINY 1e-15f

/* The nearest of the values; halfway the upper one. Counted, not searched: no branch depends on x. */
static int nearest(float x) {
    int lo = 0;
    for (int i = 1; i < 15; i++) lo += !(x < (float) iq4_values[i]);
    return x - (float) iq4_values[lo] < (float) iq4_values[lo + 1] - x ? lo : lo + 1;
}

static void sums(const float *x, const float *w, float inverse_scale, float *A, float *B) {
    *A = *B = 0.0f;
    for (int i = 0; i < 32; i++) {
        const float q = (float) iq4_values[nearest(inverse_scale*x[i])];
        *A += w[i]*q*x[i];
        *B += w[i]*q*q;
    }
}

/* The scale of 32 elements: the best of 15 starts around the one that maps the largest element to an end of the table. */
static float search(const float *x, const float *w) {
    const float max = signed_max(x, 32);
    if (!(fabsf(max) >= TINY)) return 0.0f;
    float A, B;
    sums(x, w, 1.0f/(-max/(float) iq4_values[0]), &A, &B);
    float scale = A/B, best = scale*A;
    for (int t = -7; t <= 7; t++) {
        sums(x, w, ((float) t + (float) iq4_values[0])/max, &A, &B);
        if (B > 0.0f && A*A > best*B) {
            scale = A/B;
            best = scale*A;
        }
    }
    return scale;
}

/* importance*sqrt(energy + x^2); the squares of x where that is all zeros or there is none */
static void costs(float *w, const float *x, const float *importance, float energy) {
    float sum = 0.0f;
    for (int i = 0; importance && i < 32; i++) sum += w[i] = importance[i]*sqrtf(energy + x[i]*x[i]);
    for (int i = 0; !(sum > 0.0f) && i < 32; i++) w[i] = x[i]*x[i];
}

static float sum_squares(const float *x, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += x[i]*x[i];
    return sum;
}

static void codes_set(uint8_t *qs, const float *x, float inverse_scale) {
    for (int j = 0; j < 16; j++) qs[j] = (uint8_t) (nearest(inverse_scale*x[j]) | nearest(inverse_scale*x[j + 16]) << 4);
}

void unpack_iq4_nl(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq4_nl *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) {
            y[j]      = d*(float) iq4_values[b->qs[j] & 15];
            y[j + 16] = d*(float) iq4_values[b->qs[j] >> 4];
        }
    }
}

void pack_iq4_nl(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    float w[32], A, B;
    for (block_iq4_nl *b = y; k > 0; k -= 32, b++, x += 32) {
        const float max = signed_max(x, 32);
        memset(b, 0, sizeof *b);
        if (!(fabsf(max) >= TINY)) continue;
        const float inverse_scale = 1.0f/(max/(float) iq4_values[0]);
        costs(w, x, NULL, 0.0f);
        sums(x, w, inverse_scale, &A, &B);
        b->d = f32_to_f16(A/B);
        codes_set(b->qs, x, inverse_scale);
    }
}

void pack_weighted_iq4_nl(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_iq4_nl *b = y;
    float w[32];
    (void) energy;
    costs(w, x, weights, 2.0f*sum_squares(x, 32)/32.0f);
    const float d = search(x, w);
    b->d = f32_to_f16(d);
    codes_set(b->qs, x, inverse(d));
}

void pack_file_iq4_nl(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_iq4_nl *b = y; k > 0; k -= 32, b++, x += 32) pack_weighted_iq4_nl(x, b, NULL, 0.0f);
}

void unpack_iq4_xs(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq4_xs *b = x; k > 0; k -= QK_K, b++) {
        for (int g = 0; g < 8; g++, y += 32) {
            const int scale = (b->scales_l[g/2] >> g%2*4 & 15) | (b->scales_h >> 2*g & 3) << 4;
            const float d = f16_to_f32(b->d)*(float) (scale - 32);
            for (int j = 0; j < 16; j++) {
                y[j]      = d*(float) iq4_values[b->qs[16*g + j] & 15];
                y[j + 16] = d*(float) iq4_values[b->qs[16*g + j] >> 4];
            }
        }
    }
}

void pack_weighted_iq4_xs(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) {
    block_iq4_xs *b = y;
    float scales[8], w[32];
    energy = 2.0f*sum_squares(x, QK_K)/(float) QK_K;
    for (int g = 0; g < 8; g++) {
        costs(w, x + 32*g, weights ? weights + 32*g : NULL, energy);
        scales[g] = search(x + 32*g, w);
    }
    const float d = -signed_max(scales, 8)/32.0f, id = inverse(d);
    memset(b, 0, sizeof *b);
    b->d = f32_to_f16(d);
    for (int g = 0; g < 8; g++) {
        const int scale = clamp_int(round_even(id*scales[g]), -32, 31);
        codes_set(b->qs + 16*g, x + 32*g, inverse(d*(float) scale));
        b->scales_l[g/2] |= (uint8_t) ((scale + 32) % 16 << g%2*4);
        b->scales_h      |= (uint16_t) ((scale + 32)/16 << 2*g);
    }
}

void pack_iq4_xs(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_iq4_xs *b = y; k > 0; k -= QK_K, b++, x += QK_K) pack_weighted_iq4_xs(x, b, NULL, 0.0f);
}
