/* One scale and one to two bits for an element.
 *   Q1_0: y = d or -d;   Q2_0: y = (q - 1)*d, q of 2 bits;   TQ1_0, TQ2_0: y = (t - 1)*d, t of 0, 1, 2.
 * TQ1_0 keeps five trits in a byte: the number v in base 3, plane 0 the highest digit, stored as ceil(v*256/243), so that the
 * next digit is always the part above a byte when the rest is multiplied by 3. */

#include "quant.h"

#include <string.h>

void unpack_q1_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q1_0 *b = x; k > 0; k -= 128, b++, y += 128) {
        const float d = f16_to_f32(b->d);
        for (int j = 0; j < 128; j++) y[j] = b->qs[j/8] >> j%8 & 1 ? d : -d;
    }
}

void pack_q1_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_q1_0 *b = y; k > 0; k -= 128, b++, x += 128) {
        float sum = 0.0f;
        memset(b, 0, sizeof *b);
        for (int j = 0; j < 128; j++) {
            sum += fabsf(x[j]);
            b->qs[j/8] |= (uint8_t) ((x[j] >= 0.0f) << j%8);
        }
        b->d = f32_to_f16(sum/128.0f);
    }
}

void unpack_q2_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_q2_0 *b = x; k > 0; k -= 64, b++, y += 64) {
        const float d = f16_to_f32(b->d);
        for (int j = 0; j < 64; j++) y[j] = (float) ((b->qs[j/4] >> j%4*2 & 3) - 1)*d;
    }
}

void pack_q2_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_q2_0 *b = y; k > 0; k -= 64, b++, x += 64) {
        const float d = fabsf(signed_max(x, 64)), id = inverse(d);
        memset(b, 0, sizeof *b);
        b->d = f32_to_f16(d);
        for (int j = 0; j < 64; j++) b->qs[j/4] |= (uint8_t) ((round_within(x[j]*id, -1, 2) + 1) << j%4*2);
    }
}

/* The planes of TQ1_0: `bytes` bytes of `digits` trits; plane n of them holds the next `bytes` elements. */
static const struct { int at, bytes, digits; } planes[] = { { 0, 32, 5 }, { 32, 16, 5 }, { 48, 4, 4 } };

void unpack_tq1_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    static const uint8_t powers[5] = { 1, 3, 9, 27, 81 };
    for (const block_tq1_0 *b = x; k > 0; k -= QK_K, b++) {
        const float d = f16_to_f32(b->d);
        const uint8_t *codes = (const uint8_t *) b;             /* qs, then qh */
        for (int p = 0; p < 3; p++)
            for (int n = 0; n < planes[p].digits; n++)
                for (int j = 0; j < planes[p].bytes; j++) {
                    const uint8_t rest = (uint8_t) (codes[planes[p].at + j]*powers[n]);
                    *y++ = (float) ((rest*3 >> 8) - 1)*d;
                }
    }
}

void pack_tq1_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_tq1_0 *b = y; k > 0; k -= QK_K, b++) {
        const float d = fabsf(signed_max(x, QK_K)), id = inverse(d);
        uint8_t *codes = (uint8_t *) b;
        b->d = f32_to_f16(d);
        for (int p = 0; p < 3; x += planes[p].bytes*planes[p].digits, p++)
            for (int j = 0; j < planes[p].bytes; j++) {
                int v = 0;
                for (int n = 0; n < 5; n++)
                    v = 3*v + (n < planes[p].digits ? round_within(x[n*planes[p].bytes + j]*id, -1, 1) + 1 : 0);
                codes[planes[p].at + j] = (uint8_t) ((v*256 + 242)/243);
            }
    }
}

void unpack_tq2_0(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    for (const block_tq2_0 *b = x; k > 0; k -= QK_K, b++, y += QK_K) {
        const float d = f16_to_f32(b->d);
        for (int i = 0; i < QK_K; i++) y[i] = (float) ((b->qs[i/128*32 + i%32] >> i%128/32*2 & 3) - 1)*d;
    }
}

void pack_tq2_0(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    for (block_tq2_0 *b = y; k > 0; k -= QK_K, b++, x += QK_K) {
        const float d = fabsf(signed_max(x, QK_K)), id = inverse(d);
        memset(b, 0, sizeof *b);
        b->d = f32_to_f16(d);
        for (int i = 0; i < QK_K; i++)
            b->qs[i/128*32 + i%32] |= (uint8_t) ((round_within(x[i]*id, -1, 1) + 1) << i%128/32*2);
    }
}
