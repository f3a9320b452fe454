/* The integer kernels of the vnni level, with its instructions emulated, against the portable definition. */

#include "kernels.h"

#ifdef __AVX2__
#include "emulate512.h"
#define __AVX512VNNI__ 1
#define EMULATED "emulated vnni"
#undef  ISA
#define ISA      emulated_vnni
#define SIMD_INT "avx512_int.h"
void quant_kernels_emulated_vnni(struct quant_kernels *k);
#include "../../src/backends/cpu/kernels/quant.c"
#include "../../src/backends/cpu/kernels/quant_gemv.c"
#undef SET
#include "../../src/backends/cpu/kernels/quant_gemm.c"
/* floats and rows have tests of their own */
void K(float_gemm)(struct quant_kernels *k) { (void) k; }
void K(quant_rows)(struct quant_kernels *k) { (void) k; }
#include "quant_dot.c"
#else
int main(void) { return 77; }
#endif
