/* Four-bit floats (E2M1) with a common scale.
 *   MXFP4: 32 elements and a power of two (E8M0), of the OCP Microscaling Formats specification 1.0;
 *   NVFP4: 4 sub-blocks of 16, each with an unsigned E4M3 scale.
 * fp4_values holds the sixteen values doubled, so scales here are half of what their bits say. */

#include "quant.h"

#include <string.h>

const int8_t fp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* The code whose value is nearest to x; the first of equals. */
static int nearest(float x, float scale) {
    int best = 0;
    float error = INFINITY;
    for (int i = 0; i < 16; i++) {
        const float e = fabsf((float) fp4_values[i]*scale - x);
        if (e < error) error = e, best = i;
    }
    return best;
}

/* The floor of log2 x rounded to a float first, as the format's encoders have it: just below a power of two that is the power
 * itself. x > 0 and finite. */
static int floor_log2(float x) {
    int e;
    const float m = frexpf(x, &e);                              /* x = m*2^e, 0.5 <= m < 1 */
    const float log = (float) ((double) e - (1.0 - (double) m)*1.4426950408889634);     /* good near m = 1, where it matters */
    return log == (float) e ? e : e - 1;
}

void unpack_mxfp4(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_mxfp4 *b = x; k > 0; k -= 32, b++, y += 32) {
        const float d = power_of_2(b->e - 128);
        for (int j = 0; j < 16; j++) {
            y[j]      = (float) fp4_values[b->qs[j] & 15]*d;
            y[j + 16] = (float) fp4_values[b->qs[j] >> 4]*d;
        }
    }
}

void pack_mxfp4(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_mxfp4 *b = y; k > 0; k -= 32, b++, x += 32) {
        const float amax = fabsf(signed_max(x, 32));
        b->e = (uint8_t) (amax == 0.0f ? 0 : amax < INFINITY ? clamp_int(floor_log2(amax) - 2 + 127, 0, 254) : 254);
        const float d = power_of_2(b->e - 128);
        for (int j = 0; j < 16; j++) b->qs[j] = (uint8_t) (nearest(x[j], d) | nearest(x[j + 16], d) << 4);
    }
}

/* The nearest E4M3 number, halves away from zero, at most 448. */
static uint8_t e4m3_from(float v) {
    if (!(v > 0.0f)) return 0;
    if (v > 448.0f) v = 448.0f;
    const uint32_t u = f32_bits(v);
    int e = (int) (u >> 23) - 127 + 7;
    if (e <= 0) return (uint8_t) trunc_within(v*512.0f + 0.5f, 0, 7);
    if (e >= 15) return 0x7e;
    const int m = (int) (u >> 20 & 7) + (int) (u >> 19 & 1);
    e += m >> 3;
    return (uint8_t) (e >= 15 ? 0x7e : e << 3 | (m & 7));
}

void unpack_nvfp4(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_nvfp4 *b = x; k > 0; k -= 64, b++) {
        for (int s = 0; s < 4; s++, y += 16) {
            const float d = e4m3_half(b->d[s]);
            for (int j = 0; j < 8; j++) {
                y[j]     = (float) fp4_values[b->qs[8*s + j] & 15]*d;
                y[j + 8] = (float) fp4_values[b->qs[8*s + j] >> 4]*d;
            }
        }
    }
}

void pack_nvfp4(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_nvfp4 *b = y; k > 0; k -= 64, b++) {
        for (int s = 0; s < 4; s++, x += 16) {
            b->d[s] = e4m3_from(fabsf(signed_max(x, 16))/6.0f);
            const float d = e4m3_half(b->d[s]);
            for (int j = 0; j < 8; j++) b->qs[8*s + j] = (uint8_t) (nearest(x[j], d) | nearest(x[j + 8], d) << 4);
        }
    }
}
