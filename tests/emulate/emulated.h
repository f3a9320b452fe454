/* Prototypes of what the kernel sources make of ISA=emulated; included before each of them. */
struct float_kernels;
struct quant_kernels;
void float_kernels_emulated(struct float_kernels *k);
void quant_kernels_emulated(struct quant_kernels *k);
