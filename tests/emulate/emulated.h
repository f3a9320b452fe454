/* Prototypes of what the kernel sources make of ISA=emulated and emulated_vnni; included before each of them. */
struct float_kernels;
struct quant_kernels;
void float_kernels_emulated(struct float_kernels *k);
void quant_kernels_emulated(struct quant_kernels *k);
void float_kernels_emulated_vnni(struct float_kernels *k);
void quant_kernels_emulated_vnni(struct quant_kernels *k);

#ifdef EMULATED_VNNI        /* known to the kernels, not to the headers of the compiler */
#include <immintrin.h>
#define __AVX512VNNI__ 1
#endif
