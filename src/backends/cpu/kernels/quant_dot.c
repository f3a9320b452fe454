/* Quantised products per instruction set: what is not laid over the table here runs as portable C. */

#include "kernels.h"

void K(quant_kernels)(struct quant_kernels *k) { (void) k; }
