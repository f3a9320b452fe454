/* Activations of one column to codes, and the table of one instruction set. */

#include <math.h>
#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "codes.h"
#include "quant.h"
#include "quant_isa.h"

enum { GROUPS = 8 };    /* at a time: of one block of 256 or of four blocks of 32 */

/* Of eight groups, each with the greatest |x| of its own and of its block: the fine scales, and what x is to be multiplied by,
 * 0 for zeros; *d is that of each one's block. */
static void fine_scales(const uint32_t gmax[GROUPS], const uint32_t amax[GROUPS], float *d, float *id, int32_t *fine) {
    for (int g = 0; g < GROUPS; g++) {          /* no branch, so that all are computed side by side */
        d[g] = bits_f32(amax[g])/(FINE_MOST*127.0f);
        const bool usable = (d[g] >= 0x1p-126f) & (amax[g] < 0x7f800000);
        const float   v = bits_f32(usable ? gmax[g] : 0)*(FINE_MOST/bits_f32(usable ? amax[g] : 0x3f800000));
        const int32_t below = (int32_t) v, f = below + ((float) below < v);
        fine[g] = f < 1 ? 1 : f > FINE_MOST ? FINE_MOST : f;
        const float inverse = 1.0f/(d[g]*(float) fine[g]);
        id[g] = bits_f32(usable ? f32_bits(inverse) : 0);
        d[g]  = bits_f32(d[g] < 0x1p-126f ? 0 : f32_bits(d[g]));
    }
}

static void code_block(int block, const float *x, const float *id, const int32_t *fine, int8_t *q, int16_t *sums) {
    for (int i = 0, g = 0; i < block; i += 32, g += block == 32 ? 2 : 1) {
        const int g2 = block == 32 ? g + 1 : g;
        int first, last;
        if (id[g] == 0.0f) {                    /* of the whole block: x may be anything */
            memset(q + i, 0, 32);
            first = last = 0;
        } else {
            const vb codes = round_codes(x + i, id[g], id[g2]);
            vb_store(q + i, codes);
            vb_sums(codes, &first, &last);
        }
        first *= fine[g], last *= fine[g2];
        if (block == 32) sums[0]    = (int16_t) (first + last);
        else             sums[i/32] = (int16_t) first, sums[8 + i/32] = (int16_t) last;
    }
}

void K(quant_blocks)(int block, int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16], int16_t (*fine)[8]) {
    const int group = fine_group(block), groups = block/group, most = GROUPS/groups;
    for (int b = 0; b < n; b += most) {
        const int m = n - b < most ? n - b : most;
        const float *at[GROUPS];
        uint32_t gmax[GROUPS], amax[GROUPS];
        float d[GROUPS], id[GROUPS];
        int32_t f[GROUPS];
        for (int g = 0; g < GROUPS; g++) at[g] = x[b + g/groups%m] + g%groups*group;
        greatest_eight(at, group, gmax);
        for (int g = 0; g < GROUPS; g += groups) {
            uint32_t top = 0;
            for (int i = g; i < g + groups; i++) top = top < gmax[i] ? gmax[i] : top;
            for (int i = g; i < g + groups; i++) amax[i] = top;
        }
        fine_scales(gmax, amax, d, id, f);
        for (int i = 0; i < m; i++) {
            const int g = i*groups;
            d_a[b + i] = d[g];
            for (int j = 0; j < groups; j++) fine[b + i][j] = (int16_t) f[g + j];
            code_block(block, x[b + i], id + g, f + g, q + (b + i)*block, sums[b + i]);
        }
    }
}

/* n <= QUANT_BLOCKS_MAX neighbouring blocks of 32 to their places in a column. */
static void place_32(int n, const float *x, int8_t *q, float *d, int16_t *sums, int16_t *fine) {
    int8_t  codes[QUANT_BLOCKS_MAX][32] = { 0 };
    int16_t each[QUANT_BLOCKS_MAX][16], scales[QUANT_BLOCKS_MAX][8] = { 0 };
    const float *blocks[QUANT_BLOCKS_MAX] = { NULL };
    for (int i = 0; i < n; i++) blocks[i] = x + 32*i;
    K(quant_blocks)(32, n, blocks, codes[0], d, each, scales);
    for (int i = 0; i < n; i++) sums[i] = each[i][0];
    for (int i = 0; i < n; i += 2) {
        for (int half = 0; half < 2; half++, q += 32, fine += 16) {
            memcpy(q,      codes[i]     + 16*half, 16);
            memcpy(q + 16, codes[i + 1] + 16*half, 16);
            for (int j = 0; j < 8; j++) fine[j] = scales[i][half], fine[8 + j] = scales[i + 1][half];
        }
    }
}

static void quantize(int block, int64_t k, const float *x, void *column) {
    int8_t  *q    = column;
    float   *d    = (float *) (void *) ((char *) column + column_d(k));
    int16_t *sums = (int16_t *) (void *) ((char *) column + column_sums(block, k));
    int16_t *fine = (int16_t *) (void *) ((char *) column + column_fine(block, k));
    for (int64_t b = 0; block == 32 && b < k/32; b += QUANT_BLOCKS_MAX) {
        const int64_t left = k/32 - b;
        place_32(left < QUANT_BLOCKS_MAX ? (int) left : QUANT_BLOCKS_MAX, x + 32*b, q + 32*b, d + b, sums + b, fine + 16*b);
    }
    for (int64_t b = 0; block == 256 && b < k/256; b++) {
        const float *one = x + 256*b;
        K(quant_blocks)(256, 1, &one, q + 256*b, d + b, (int16_t (*)[16]) (sums + 16*b), (int16_t (*)[8]) (fine + 8*b));
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
