/* Activations of one column to codes, and the table of one instruction set. */

#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "quant.h"
#include "quant_isa.h"

/* The codes of one block; its sums go to where `sums` says for blocks of 32 or of 256. */
void K(quant_block)(int n, const float *x, int8_t *q, float *d_a, int16_t *sums) {
    const uint32_t amax = greatest_bits(n, x);
    const float d = bits_f32(amax)/127.0f;
    const bool zeros = d < 0x1p-126f || amax >= 0x7f800000;
    const float id = zeros ? 0.0f : 1.0f/d;
    *d_a = d < 0x1p-126f ? 0.0f : d;
    for (int i = 0; i < n; i += 32) {
        int first = 0, last = 0;
        if (zeros) {
            memset(q + i, 0, 32);
        } else {
            const vb codes = round_codes(x + i, id);
            vb_store(q + i, codes);
            vb_sums(codes, &first, &last);
        }
        if (n == 32) sums[0]    = (int16_t) (first + last);
        else         sums[i/32] = (int16_t) first, sums[8 + i/32] = (int16_t) last;
    }
}

static void quantize_32(int64_t k, const float *x, int8_t *q, float *d, int16_t *sums) {
    const int64_t blocks = k/32;
    for (int64_t b = 0; b < blocks; b += 2) {
        int8_t codes[2][32] = { 0 };
        for (int i = 0; i < 2 && b + i < blocks; i++) K(quant_block)(32, x + 32*(b + i), codes[i], d + b + i, sums + b + i);
        for (int half = 0; half < 2; half++, q += 32) {
            memcpy(q,      codes[0] + 16*half, 16);
            memcpy(q + 16, codes[1] + 16*half, 16);
        }
    }
}

static void quantize(int block, int64_t k, const float *x, void *column) {
    int8_t  *q    = column;
    float   *d    = (float *) (void *) ((char *) column + column_d(k));
    int16_t *sums = (int16_t *) (void *) ((char *) column + column_sums(block, k));
    if (block == 32) {
        quantize_32(k, x, q, d, sums);
        return;
    }
    for (int64_t b = 0; b < k/256; b++) K(quant_block)(256, x + 256*b, q + 256*b, d + b, sums + 16*b);
}

void K(quant_kernels)(struct quant_kernels *k) {
    k->quantize = quantize;
    K(quant_gemv)(k);
    K(quant_gemm)(k);
}
