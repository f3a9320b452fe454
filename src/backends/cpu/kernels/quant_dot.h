#ifndef QUANT_DOT_H
#define QUANT_DOT_H
/* Products of quantised weights with activations.
 *
 * The definition. An activation row is cut into the blocks of its weight type (32 or 256 elements); each block has a float
 * scale d = amax/127 (F32, never rounded to half), codes q = round half away(x*(1/d)) in -127 .. 127 and exact sums of codes.
 * For one output, over blocks in increasing k, with one accumulator:
 *     acc = fmaf(d_w*d_a, (float) isum, acc)                 isum: the exact integer sum of scale x (code - offset) x q
 *     acc = fmaf(-(dmin_w*d_a), (float) msum, acc)           where the type has minimums: msum = sum of minimum x sum of q
 * (Q4_1 and Q5_1: the second line is fmaf(m_w*d_a, (float) sum of q, acc).) Integers are exact, so their order is free. */

#include "ggml.h"

struct quant_kernels {
    int placeholder;
};

extern const struct quant_kernels quant_kernels_portable;
void quant_kernels_avx2  (struct quant_kernels *k);
void quant_kernels_avx512(struct quant_kernels *k);
void quant_kernels_vnni  (struct quant_kernels *k);
void quant_kernels_neon  (struct quant_kernels *k);
void quant_kernels_dotprod(struct quant_kernels *k);

#endif
