#ifndef CODES_H
#define CODES_H
/* Codes of any quantised type in one form: a function for each type reads up to 256 neighbouring weights of a row (codes.c).
 * Panels of all types are filled from it (quant_gemm.c). It costs some 300 bytes of code a type, once per register width, and a call
 * for 256 weights.
 *
 * Codes and scales are those of the definition (portable/quant_dot.c): weight = d*scale*code, less dmin*min in blocks of 256,
 * plus dmin in blocks of 32. */

#include "quant.h"

struct codes {
    _Alignas(32) int8_t q[QK_K];            /* in the order of elements, from -127 */
    _Alignas(32) int16_t scale[16], min[16];    /* blocks of 256: of groups of 16, those of even groups first */
    /* where to put the factors of blocks: those of the next one are `step` floats behind, of the second half of a block of 32 in
     * NVFP4 `half` floats */
    float *d, *dmin;
    int step, half;
};

/* Reads n blocks of the row beginning at block `first`: of 32 elements up to 8, of 256 one. */
typedef void read_codes_t(const void *row, int64_t first, int n, struct codes *c);
extern read_codes_t *const read_codes_avx2[GGML_TYPE_COUNT];            /* NULL: no product */
extern read_codes_t *const read_codes_neon[GGML_TYPE_COUNT];

/* The codebooks with their values in place of levels, an entry in one load: written by books_fill. */
extern uint64_t book_iq2_xxs[256], book_iq2_xs[512], book_iq2_s[1024], book_iq1[2048];     /* IQ1: 1, 9, 17 less one */
extern uint32_t book_iq3_xxs[256], book_iq3_s[512];
extern uint64_t book_signs[128];        /* 1 and -1 of even_signs */
extern float    book_e4m3[256];         /* e4m3_half */
void books_fill(void);                  /* once, before any product; takes some 20 us */

#endif
