#ifndef KERNELS_H
#define KERNELS_H
/* The table of kernels: one function pointer a kernel, filled level by level. The portable table is the definition; every
 * other level returns the same bits. Two halves with one owner each: floats (float_kernels.h) and quantised products (quant_dot.h). */

#include "float_kernels.h"
#include "quant_dot.h"

struct cpu_kernels {
    struct float_kernels f;
    struct quant_kernels q;
};

/* A kernel source is compiled once per instruction set with -DISA=avx2 and the like; K(name) is then name_avx2. */
#define K_JOIN_(a, b) a##_##b
#define K_JOIN(a, b)  K_JOIN_(a, b)
#define K(name)       K_JOIN(name, ISA)

#endif
