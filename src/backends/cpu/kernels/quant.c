/* Activations of one column to codes, and the table of one instruction set. */

#include <math.h>
#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "codes.h"
#include "quant.h"
#include "quant_isa.h"

enum { GROUPS = 8 };    /* at a time: of one block of 256 or of four blocks of 32 */

/* What is computed of each. Words compare as the floats do that they hold, and without a branch all groups go side by side. */
struct scales {
    int32_t gmax[GROUPS], amax[GROUPS];         /* greatest |x| of the group and of its block, as words */
    int32_t fine[GROUPS];
    float   d[GROUPS], id[GROUPS];              /* of its block; what x is to be multiplied by, 0 where all codes are 0 */
};

static void fine_scales(struct scales *s) {
    for (int g = 0; g < GROUPS; g++) {
        const float   d = bits_f32((uint32_t) s->amax[g])/(FINE_MOST*127.0f);
        const int32_t normal = -((int32_t) f32_bits(d) >= 0x00800000), usable = normal & -(s->amax[g] < 0x7f800000);
        const float   most = bits_f32((uint32_t) ((s->amax[g] & usable) | (0x3f800000 & ~usable)));
        const float   v = bits_f32((uint32_t) (s->gmax[g] & usable))*(FINE_MOST/most);
        int32_t       f = (int32_t) v;
        f += (int32_t) f32_bits((float) f) < (int32_t) f32_bits(v);
        f = f < 1 ? 1 : f;
        f = f > FINE_MOST ? FINE_MOST : f;
        s->fine[g] = f;
        s->id[g] = bits_f32(f32_bits(1.0f/(d*(float) f)) & (uint32_t) usable);
        s->d[g]  = bits_f32(f32_bits(d) & (uint32_t) normal);
    }
}

/* 32 codes of two groups, or of one that is given twice, with the sums of fine scale times code. */
static inline void code_32(const float *x, const struct scales *s, int g, int g2, int8_t *q, int *first, int *last) {
    if (s->id[g] == 0.0f) {                     /* x may be anything */
        memset(q, 0, 32);
        *first = *last = 0;
        return;
    }
    const vb codes = round_codes(x, s->id[g], s->id[g2]);
    vb_store(q, codes);
    vb_sums(codes, first, last);
    *first *= s->fine[g], *last *= s->fine[g2];
}

static void blocks_of_256(int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16], int16_t (*fine)[8]) {
    for (int b = 0; b < n; b++, q += 256) {
        struct scales s;
        const float *at[GROUPS];
        uint32_t top = 0, gmax[GROUPS];
        for (int g = 0; g < GROUPS; g++) at[g] = x[b] + 32*g;
        greatest_eight(at, 32, gmax);
        for (int g = 0; g < GROUPS; g++) top = top < gmax[g] ? gmax[g] : top;
        for (int g = 0; g < GROUPS; g++) s.gmax[g] = (int32_t) gmax[g], s.amax[g] = (int32_t) top;
        fine_scales(&s);
        d_a[b] = s.d[0];
        for (int g = 0; g < GROUPS; g++) {
            int first, last;
            code_32(at[g], &s, g, g, q + 32*g, &first, &last);
            sums[b][g] = (int16_t) first, sums[b][8 + g] = (int16_t) last, fine[b][g] = (int16_t) s.fine[g];
        }
    }
}

static void blocks_of_32(int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16], int16_t (*fine)[8]) {
    for (int b = 0; b < n; b += 4) {
        struct scales s;
        const float *at[GROUPS];
        uint32_t gmax[GROUPS];
        const int m = n - b < 4 ? n - b : 4;
        for (int i = 0; i < 4; i++) at[2*i] = x[b + (i < m ? i : 0)], at[2*i + 1] = at[2*i] + 16;
        greatest_eight(at, 16, gmax);
        for (int g = 0; g < GROUPS; g++) s.gmax[g] = (int32_t) gmax[g], s.amax[g] = (int32_t) (gmax[g] < gmax[g ^ 1] ? gmax[g ^ 1] : gmax[g]);
        fine_scales(&s);
        for (int i = 0; i < m; i++) {
            int first, last;
            code_32(at[2*i], &s, 2*i, 2*i + 1, q + 32*(b + i), &first, &last);
            d_a[b + i] = s.d[2*i], sums[b + i][0] = (int16_t) (first + last);
            fine[b + i][0] = (int16_t) s.fine[2*i], fine[b + i][1] = (int16_t) s.fine[2*i + 1];
        }
    }
}

void K(quant_blocks)(int block, int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16], int16_t (*fine)[8]) {
    (block == 32 ? blocks_of_32 : blocks_of_256)(n, x, q, d_a, sums, fine);
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
