/* The codebook types: 8 (IQ2, IQ1) or 4 (IQ3) elements at a time are a point of a codebook, with signs apart in IQ2 and IQ3.
 *   IQ2, IQ3: y = db*value*sign;   IQ1: y = dl*(value + delta), delta = +-1/8.
 * Scales: db = d*(0.5 + s)/4 (IQ2), d*(0.5 + s)/2 (IQ3_XXS), d*(1 + 2s) (IQ3_S); dl = d*(1 + 2s) (IQ1). Packing is in iq_pack.c. */

#include "quant.h"

#include <string.h>

#define GRID(name, n) const uint16_t grid_##name[n] = {
#define END           };
#include "codebooks.inc"
#undef GRID
#undef END

static const float iq2_values[4]     = { 8, 25, 43 };
static const float iq3_xxs_values[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
static const float iq3_s_values[8]   = { 1, 3, 5, 7, 9, 11, 13, 15 };

/* Eight elements of an entry of two bits each. */
static float *put8(float *y, uint16_t entry, float d, uint8_t signs) {
    for (int j = 0; j < 8; j++) *y++ = d*iq2_values[entry >> 2*j & 3]*(signs >> j & 1 ? -1.0f : 1.0f);
    return y;
}

/* Eight elements of two entries of four bits each. */
static float *put4_4(float *y, uint16_t a, uint16_t b, const float *values, float d, uint8_t signs) {
    for (int j = 0; j < 8; j++) *y++ = d*values[(j < 4 ? a : b) >> j%4*4 & 15]*(signs >> j & 1 ? -1.0f : 1.0f);
    return y;
}

static float *put8_delta(float *y, uint16_t entry, float dl, float delta) {
    for (int j = 0; j < 8; j++) *y++ = dl*((float) (entry >> 2*j & 3) - 1.0f + delta);
    return y;
}

static uint32_t u32_at(const uint8_t *p) { return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24; }

void unpack_iq2_xxs(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq2_xxs *b = x; k > 0; k -= QK_K, b++) {
        for (int g = 0; g < 8; g++) {
            const uint16_t *q = b->qs + 4*g;
            const uint32_t w = q[2] | (uint32_t) q[3] << 16;
            const float db = f16_to_f32(b->d)*(0.5f + (float) (w >> 28))*0.25f;
            for (int l = 0; l < 4; l++) y = put8(y, grid_iq2_xxs[q[l/2] >> l%2*8 & 255], db, even_signs(w >> 7*l & 127));
        }
    }
}

void unpack_iq2_xs(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq2_xs *b = x; k > 0; k -= QK_K, b++) {
        for (int n = 0; n < 32; n++) {
            const float db = f16_to_f32(b->d)*(0.5f + (float) (b->scales[n/4] >> n/2%2*4 & 15))*0.25f;
            y = put8(y, grid_iq2_xs[b->qs[n] & 511], db, even_signs(b->qs[n] >> 9));
        }
    }
}

void unpack_iq2_s(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq2_s *b = x; k > 0; k -= QK_K, b++) {
        for (int n = 0; n < 32; n++) {
            const float db = f16_to_f32(b->d)*(0.5f + (float) (b->scales[n/4] >> n/2%2*4 & 15))*0.25f;
            y = put8(y, grid_iq2_s[b->qs[n] | (b->qh[n/4] >> n%4*2 & 3) << 8], db, b->qs[32 + n]);
        }
    }
}

void unpack_iq3_xxs(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq3_xxs *b = x; k > 0; k -= QK_K, b++) {
        for (int g = 0; g < 8; g++) {
            const uint8_t *q = b->qs + 8*g;
            const uint32_t w = u32_at(b->qs + 64 + 4*g);
            const float db = f16_to_f32(b->d)*(0.5f + (float) (w >> 28))*0.5f;
            for (int l = 0; l < 4; l++)
                y = put4_4(y, grid_iq3_xxs[q[2*l]], grid_iq3_xxs[q[2*l + 1]], iq3_xxs_values, db, even_signs(w >> 7*l & 127));
        }
    }
}

void unpack_iq3_s(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq3_s *b = x; k > 0; k -= QK_K, b++) {
        for (int g = 0; g < 8; g++) {
            const float db = f16_to_f32(b->d)*(1.0f + 2.0f*(float) (b->scales[g/2] >> g%2*4 & 15));
            uint16_t entries[8];
            for (int c = 0; c < 8; c++) entries[c] = grid_iq3_s[b->qs[8*g + c] | (b->qh[g] >> c & 1) << 8];
            for (int l = 0; l < 4; l++) y = put4_4(y, entries[2*l], entries[2*l + 1], iq3_s_values, db, b->signs[4*g + l]);
        }
    }
}

void unpack_iq1_s(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq1_s *b = x; k > 0; k -= QK_K, b++) {
        for (int g = 0; g < 8; g++) {
            const uint16_t h = b->qh[g];
            const float dl = f16_to_f32(b->d)*(float) (2*(h >> 12 & 7) + 1), delta = h & 0x8000 ? -0.125f : 0.125f;
            for (int l = 0; l < 4; l++) y = put8_delta(y, grid_iq1_s[b->qs[4*g + l] | (h >> 3*l & 7) << 8], dl, delta);
        }
    }
}

void unpack_iq1_m(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_iq1_m *b = x; k > 0; k -= QK_K, b++) {
        uint16_t words[4], half = 0;
        memcpy(words, b->scales, sizeof words);
        for (int i = 0; i < 4; i++) half |= (uint16_t) (words[i] >> 12 << 4*i);
        for (int n = 0; n < 32; n++) {                          /* entry n: half a group of 16 */
            const int s = words[n/8] >> n/2%4*3 & 7, high = b->qh[n/2] >> n%2*4 & 15;
            const float dl = f16_to_f32(half)*(float) (2*s + 1);
            y = put8_delta(y, grid_iq1_s[b->qs[n] | (high & 7) << 8], dl, high & 8 ? -0.125f : 0.125f);
        }
    }
}
