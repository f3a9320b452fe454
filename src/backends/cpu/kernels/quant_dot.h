#ifndef QUANT_DOT_H
#define QUANT_DOT_H
/* Products of weights with activations: what MUL_MAT and MUL_MAT_ID are made of.
 *
 * The definition (portable/quant_dot.c). It speaks of one output alone, the product of a row of weights w with a row of
 * activations x, k elements each, so an output's bits depend on nothing else: not on the instruction set, the threads, the
 * number of columns or the shape of a tile.
 *
 * Quantised weights. x is cut into blocks as long as those of the weight type's partner (32 for Q8_0 and Q8_1, 256 for Q8_K),
 * and these into groups (16 in blocks of 32, 32 in blocks of 256), so that one great value spoils no more than its group.
 * A block has a scale d_a = amax/(6*127), an F32 never rounded to half; a group a fine scale f, an integer 1 .. 6, the least
 * that is not below gmax*(6/amax), and codes q = x*(1/(d_a*f)) rounded half away from zero, in -127 .. 127; x counts as
 * d_a*(f*q). amax and gmax are the greatest |x| of block and group as bit patterns, so a NaN or an infinity is found and makes
 * d_a one, with all q zero; a block whose d_a is below the smallest normal float counts as zeros, d_a = 0; f is 1 in both.
 * Over blocks in increasing k, one accumulator:
 *     acc = fmaf(d_w*d_a, (float) isum, acc)          isum: the exact sum of scale*(code - offset)*f*q
 *     acc = fmaf(-(dmin_w*d_a), (float) msum, acc)    Q2_K, Q4_K, Q5_K; msum: the exact sum of minimum*f*q
 *     acc = fmaf(m_w, d_a*(float) qsum, acc)          Q4_1, Q5_1; qsum: the exact sum of f*q
 *     acc = fmaf(d_w*d_a, (float) isum, acc)          NVFP4, for elements 0..15 and then for 16..31, which have a d_w each
 * Codes of the IQ types are the integers of their codebooks, in eighths in IQ1; their scales are 2s + 1 (IQ4_XS: s - 32); d_w is d
 * times the power of two that is left: 1/8 in IQ1 and IQ2, 1/4 in IQ3_XXS. Weight blocks longer than 32 whose partner is Q8_0 are
 * met by several blocks of activations.
 * Integers are exact, so their order is free. Activations that already have the partner's type are used as they are, f = 1.
 *
 * Float weights (F32, F16, BF16, widened exactly). Activations stay F32. Element i goes to virtual lane i mod 16, each lane a
 * chain of fmaf in increasing i starting at zero; then lanes 8..15 are added onto 0..7, 4..7 onto 0..3, 2..3 onto 0..1 and 1
 * onto 0.
 *
 * Two ways to the same bits. `gemv` streams rows of weights past one column of activations; `gemm` unpacks a block of rows
 * into a cache-sized panel and uses it for many columns, which stand in tiles of `tile_columns`. */

#include "ggml-cpu.h"

enum {
    FINE_MOST     = 6,              /* the greatest fine scale: sums of a group times it fit 16 bits, sums of a block 32 */
    FINE_GROUP_32 = 16, FINE_GROUP_256 = 32
};
static inline int fine_group(int block) { return block == 32 ? FINE_GROUP_32 : FINE_GROUP_256; }

/* A prepared column: the activations of one output column as gemv reads them. For floats the F32 values; for quantised
 * weights four arrays, each 64-aligned: int8 codes [k], float d_a [k/block], int16 sums of f*q [k/run] where a run is 32
 * elements in blocks of 32, 16 elements in blocks of 256, and the int16 fine scales. Of the 16 sums of a block those of even
 * runs stand first. Codes in blocks of 32 stand as nibbles come out of two blocks at once: of each pair of blocks the first
 * halves, then the second halves; after an odd number of blocks a block of zeros completes the pair. Fine scales stand eight
 * times there, one for each two codes; in blocks of 256 once. */
static inline size_t column_pad(size_t bytes) { return (bytes + 63) & ~(size_t) 63; }
static inline int    column_run(int block)    { return block == 32 ? 32 : 16; }
static inline size_t column_d(int64_t k)      { return column_pad((size_t) k); }                    /* offsets in bytes */
static inline size_t column_sums(int block, int64_t k) { return column_d(k) + column_pad((size_t) (k/block)*sizeof(float)); }
static inline size_t column_fine(int block, int64_t k) {
    return column_sums(block, k) + column_pad((size_t) (k/column_run(block))*sizeof(int16_t));
}
static inline int64_t column_sum_place(int64_t run)    { return run/16*16 + run%2*8 + run%16/2; }    /* blocks of 256 */
static inline int64_t column_place(int block, int64_t i) {                                              /* of element i's code */
    return block == 32 ? i/64*64 + i/32%2*16 + i/16%2*32 + i%16 : i;
}
static inline int64_t column_fine_place(int block, int64_t i) { return block == 32 ? column_place(32, i)/2 : i/FINE_GROUP_256; }
static inline size_t column_size(int block, int64_t k) {
    if (block == 1) return column_pad((size_t) k*sizeof(float));
    return column_fine(block, k) + (block == 32 ? (size_t) (k + 63)/64*64 : column_pad((size_t) (k/FINE_GROUP_256)*sizeof(int16_t)));
}

/* How a level multiplies one type of weights. Rows of weights are dense in themselves and `stride` bytes apart. */
struct product {
    int block;                      /* elements that share a d_a; 1: floats; 0: this type has no product */
    /* y[i] = row i . column, 0 <= i < rows */
    void (*gemv)(int64_t k, int64_t rows, const void *w, size_t stride, const void *column, float *y);

    int tile_columns;               /* 0: no gemm */
    size_t (*tile_size)(int64_t k), (*gemm_scratch)(int64_t k);
    /* a 64-aligned tile of n <= tile_columns rows of F32; the missing ones are zeros */
    void (*tile)(int64_t k, int n, const float *const *x, void *tile);
    /* y[j][i] = row i . column j, 0 <= j < columns <= GEMM_COLUMNS; tiles are tile_stride bytes apart; scratch is 64-aligned, of gemm_scratch(k) */
    void (*gemm)(int64_t k, int64_t rows, const void *w, size_t stride, int columns, const void *tiles, size_t tile_stride,
                 float *const *y, void *scratch);
};

enum {
    TILE_COLUMNS_MAX = 16,          /* of any tile */
    GEMM_COLUMNS     = 528          /* most columns of one gemm call: a batch of 512 in whole tiles of 4, 6, 12 or 16 */
};

struct quant_kernels {
    /* k floats, whole blocks of 32 or 256, to a prepared column */
    void (*quantize)(int block, int64_t k, const float *x, void *column);
    struct product product[GGML_TYPE_COUNT];
    /* n elements, whole blocks; the definition is quant_types[], which levels.c puts here */
    void (*unpack[GGML_TYPE_COUNT])(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t n);
    void (*pack[GGML_TYPE_COUNT])(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t n);
};

extern const struct quant_kernels quant_kernels_portable;               /* the definition */
void quant_kernels_avx2  (struct quant_kernels *k);                     /* each lays its own over what is there */
void quant_kernels_avx512(struct quant_kernels *k);
void quant_kernels_vnni  (struct quant_kernels *k);
void quant_kernels_neon  (struct quant_kernels *k);
void quant_kernels_dotprod(struct quant_kernels *k);

/* n elements already in a partner type (Q8_0, Q8_1, Q8_K) to a prepared column. Codes may then be -128, which only the
 * portable products allow for. False when the type is no partner. */
bool column_from_partner(enum ggml_type type, int64_t n, const void *x, void *column);

/* The type that activations are brought to before they meet weights of each type (types.def); COUNT: none. */
extern const enum ggml_type quant_partners[GGML_TYPE_COUNT];

#endif
