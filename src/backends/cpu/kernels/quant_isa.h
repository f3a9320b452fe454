#ifndef QUANT_ISA_H
#define QUANT_ISA_H
/* What the files of one instruction set offer each other: each lays its part over the table. */

#include "kernels.h"

void K(quant_gemv)(struct quant_kernels *k);
void K(quant_gemm)(struct quant_kernels *k);
void K(quant_row)(int block, int64_t k, const float *x, void *column);         /* quantize of the table */

#endif
