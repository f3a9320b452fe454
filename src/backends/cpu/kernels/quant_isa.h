#ifndef QUANT_ISA_H
#define QUANT_ISA_H
/* What the files of one instruction set offer each other: each lays its part over the table. */

#include "kernels.h"

void K(quant_gemv)(struct quant_kernels *k);
void K(quant_gemm)(struct quant_kernels *k);
/* The codes, d_a and sums of one block of 32 (one sum) or 256 (16 sums, even runs first). */
void K(quant_block)(int block, const float *x, int8_t *q, float *d_a, int16_t *sums);

#endif
