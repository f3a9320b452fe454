#ifndef QUANT_H
#define QUANT_H
/* Block layouts, and for each type its reference unpack and pack. Formulas: one function a type, named unpack_<tag> and
 * pack_<tag>; the exported dequantize_row_<tag> / quantize_row_<tag>_ref of the interface are those. All arithmetic is F32,
 * one operation at a time, so that packing gives the same bytes on every machine. */

#include "ggml.h"

#define QK_K 256

typedef struct { uint16_t d; uint8_t qs[16]; }                                       block_q4_0;
typedef struct { uint16_t d, m; uint8_t qs[16]; }                                    block_q4_1;
typedef struct { uint16_t d; uint8_t qh[4], qs[16]; }                                block_q5_0;
typedef struct { uint16_t d, m; uint8_t qh[4], qs[16]; }                             block_q5_1;
typedef struct { uint16_t d; int8_t qs[32]; }                                        block_q8_0;
typedef struct { uint16_t d, s; int8_t qs[32]; }                                     block_q8_1;
typedef struct { uint8_t scales[16], qs[64]; uint16_t d, dmin; }                     block_q2_K;
typedef struct { uint8_t hmask[32], qs[64], scales[12]; uint16_t d; }                block_q3_K;
typedef struct { uint16_t d, dmin; uint8_t scales[12], qs[128]; }                    block_q4_K;
typedef struct { uint16_t d, dmin; uint8_t scales[12], qh[32], qs[128]; }            block_q5_K;
typedef struct { uint8_t ql[128], qh[64]; int8_t scales[16]; uint16_t d; }           block_q6_K;
typedef struct { float d; int8_t qs[QK_K]; int16_t bsums[16]; }                      block_q8_K;
typedef struct { uint16_t d; uint16_t qs[32]; }                                      block_iq2_xxs;
typedef struct { uint16_t d; uint16_t qs[32]; uint8_t scales[8]; }                   block_iq2_xs;
typedef struct { uint16_t d; uint8_t qs[64], qh[8], scales[8]; }                     block_iq2_s;
typedef struct { uint16_t d; uint8_t qs[96]; }                                       block_iq3_xxs;
typedef struct { uint16_t d; uint8_t qs[64], qh[8], signs[32], scales[4]; }          block_iq3_s;
typedef struct { uint16_t d; uint8_t qs[32]; uint16_t qh[8]; }                       block_iq1_s;
typedef struct { uint8_t qs[32], qh[16], scales[8]; }                                block_iq1_m;
typedef struct { uint16_t d; uint8_t qs[16]; }                                       block_iq4_nl;
typedef struct { uint16_t d, scales_h; uint8_t scales_l[4], qs[128]; }               block_iq4_xs;
typedef struct { uint8_t qs[48], qh[4]; uint16_t d; }                                block_tq1_0;
typedef struct { uint8_t qs[64]; uint16_t d; }                                       block_tq2_0;
typedef struct { uint8_t e, qs[16]; }                                                block_mxfp4;
typedef struct { uint8_t d[4], qs[32]; }                                             block_nvfp4;
typedef struct { uint16_t d; uint8_t qs[16]; }                                       block_q1_0;
typedef struct { uint16_t d; uint8_t qs[16]; }                                       block_q2_0;

/* Scalar conversions, round to nearest even; NaN stays NaN (quiet), overflow becomes infinity. */
static inline float bits_f32(uint32_t u) { union { uint32_t u; float f; } v = { .u = u }; return v.f; }
static inline uint32_t f32_bits(float f) { union { float f; uint32_t u; } v = { .f = f }; return v.u; }

static inline float f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t) (h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return bits_f32(sign | 0x7f800000 | (rest & 0x3ff) << 13 | (uint32_t) (rest > 0x7c00) << 22);
    if (rest >= 0x0400) return bits_f32(sign | ((rest << 13) + 0x38000000));
    const float subnormal = (float) rest*0x1p-24f;              /* exact */
    return bits_f32(sign | f32_bits(subnormal));
}

static inline uint16_t f32_to_f16(float f) {
    const uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    if (rest >  0x7f800000) return (uint16_t) (sign | 0x7e00);
    if (rest >= 0x477ff000) return (uint16_t) (sign | 0x7c00);  /* 65520 and above round to infinity */
    if (rest >= 0x38800000) return (uint16_t) (sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
    /* subnormal half: adding 0.5 leaves the code in the low bits of the sum, rounded to nearest even */
    return (uint16_t) (sign | (f32_bits(bits_f32(rest) + 0.5f) - 0x3f000000));
}

static inline float bf16_to_f32(uint16_t h) { return bits_f32((uint32_t) h << 16); }
static inline uint16_t f32_to_bf16(float f) {
    const uint32_t u = f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t) (u >> 16 | 64);
    return (uint16_t) ((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* What a type can do, beyond the row of types.def; NULL where it cannot. */
struct quant_type {
    void (*unpack)(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k);     /* k elements, whole blocks */
    void (*pack)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k);       /* reference encoder */
    /* with one weight per column (or NULL): `rows` rows of n elements */
    void (*pack_weighted)(const float *x, void *y, int64_t rows, int64_t n, const float *weights);
    bool (*valid)(const void *x, size_t n_blocks);      /* no NaN or infinity in a scale */
};
extern const struct quant_type quant_types[GGML_TYPE_COUNT];

#endif
