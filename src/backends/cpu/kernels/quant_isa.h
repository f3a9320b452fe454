#ifndef QUANT_ISA_H
#define QUANT_ISA_H
/* What the files of one instruction set offer each other: each lays its part over the table. */

#include "kernels.h"

void K(quant_gemv)(struct quant_kernels *k);
void K(quant_gemm)(struct quant_kernels *k);
void K(codes_rows)(struct quant_kernels *k);        /* where READS_CODES */
void K(float_gemm)(struct quant_kernels *k);
void K(quant_rows)(struct quant_kernels *k);
/* n blocks of 32 or 256 floats to codes [n][block], each with its d_a, its sums (one, or 16 with those of even runs first) and its
 * fine scales (two or eight). */
enum { QUANT_BLOCKS_MAX = 8 };
void K(quant_blocks)(int block, int n, const float *const *x, int8_t *q, float *d_a, int16_t (*sums)[16], int16_t (*fine)[8]);

#endif
