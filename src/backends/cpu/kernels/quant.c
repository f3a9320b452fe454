/* Activations of one column to codes, and the table of one instruction set. */

#include <math.h>
#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "codes.h"
#include "quant.h"
#include "quant_isa.h"

/* The codes of one block times id, which is 0 for a block of zeros. */
static void code_block(int block, const float *x, float id, int8_t *q, int16_t *sums) {
    for (int i = 0; i < block; i += 32) {
        int first = 0, last = 0;
        if (id == 0.0f) {
            memset(q + i, 0, 32);
        } else {
            const vb codes = round_codes(x + i, id);
            vb_store(q + i, codes);
            vb_sums(codes, &first, &last);
        }
        if (block == 32) sums[0]    = (int16_t) (first + last);
        else             sums[i/32] = (int16_t) first, sums[8 + i/32] = (int16_t) last;
    }
}

void K(quant_blocks)(int block, int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16]) {
    float d[QUANT_BLOCKS_MAX] = { 0 }, id[QUANT_BLOCKS_MAX];
    for (int i = 0; i < n; i++) d[i] = bits_f32(greatest_bits(block, x[i]));
    for (int i = 0; i < QUANT_BLOCKS_MAX; i++) {            /* the divisions side by side: one alone takes longer than the rest */
        d[i] /= 127.0f;
        id[i] = 1.0f/d[i];
    }
    for (int i = 0; i < n; i++) {
        const bool zeros = d[i] < 0x1p-126f || !(d[i] < INFINITY);
        d_a[i] = d[i] < 0x1p-126f ? 0.0f : d[i];
        code_block(block, x[i], zeros ? 0.0f : id[i], q + i*block, sums[i]);
    }
}

/* n <= QUANT_BLOCKS_MAX neighbouring blocks of 32 to their places in a column. */
static void place_32(int n, const float *x, int8_t *q, float *d, int16_t *sums) {
    int8_t  codes[QUANT_BLOCKS_MAX][32] = { 0 };
    int16_t each[QUANT_BLOCKS_MAX][16];
    const float *blocks[QUANT_BLOCKS_MAX] = { NULL };
    for (int i = 0; i < n; i++) blocks[i] = x + 32*i;
    K(quant_blocks)(32, n, blocks, codes[0], d, each);
    for (int i = 0; i < n; i++) sums[i] = each[i][0];
    for (int i = 0; i < n; i += 2) {
        for (int half = 0; half < 2; half++, q += 32) {
            memcpy(q,      codes[i]     + 16*half, 16);
            memcpy(q + 16, codes[i + 1] + 16*half, 16);
        }
    }
}

static void quantize(int block, int64_t k, const float *x, void *column) {
    int8_t  *q    = column;
    float   *d    = (float *) (void *) ((char *) column + column_d(k));
    int16_t *sums = (int16_t *) (void *) ((char *) column + column_sums(block, k));
    for (int64_t b = 0; block == 32 && b < k/32; b += QUANT_BLOCKS_MAX) {
        const int64_t left = k/32 - b;
        place_32(left < QUANT_BLOCKS_MAX ? (int) left : QUANT_BLOCKS_MAX, x + 32*b, q + 32*b, d + b, sums + b);
    }
    for (int64_t b = 0; block == 256 && b < k/256; b++) {
        const float *one = x + 256*b;
        K(quant_blocks)(256, 1, &one, q + 256*b, d + b, (int16_t (*)[16]) (sums + 16*b));
    }
}

void K(quant_kernels)(struct quant_kernels *k) {
    k->quantize = quantize;
#ifdef READS_CODES
    books_fill();
    K(codes_rows)(k);
#endif
    K(quant_gemv)(k);
    K(quant_gemm)(k);
    K(float_gemm)(k);
    K(quant_rows)(k);
}
