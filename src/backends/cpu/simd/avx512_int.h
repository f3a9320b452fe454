#ifndef AVX512_INT_H
#define AVX512_INT_H
/* Integer steps with AVX-512, with VNNI where the compiler may. A row at a time uses 256-bit registers: memory is the limit
 * there, and blocks of 32 fit. */

#include "avx2_int.h"

#endif
