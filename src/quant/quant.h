#ifndef QUANT_H
#define QUANT_H
/* Block layouts, and for each type its reference unpack and pack. Formulas: one function a type, named unpack_<tag> and
 * pack_<tag>; the exported dequantize_row_<tag> / quantize_row_<tag>_ref of the interface are those. All arithmetic is F32,
 * one operation at a time, so that packing gives the same bytes on every machine. */

#include "ggml.h"
#include <math.h>

#define QK_K 256

typedef float                                                                        block_f32;
typedef double                                                                       block_f64;
typedef uint16_t                                                                     block_f16, block_bf16;
typedef int8_t                                                                       block_i8;
typedef int16_t                                                                      block_i16;
typedef int32_t                                                                      block_i32;
typedef int64_t                                                                      block_i64;
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

/* ---- what a type can do ------------------------------------------------------------------------------------------- */

/* The numbers of more than one byte in a block. They are little endian in a file and in the machine's order in memory; bytes
 * in arrays of bytes keep their places. A scale must be finite (an E8M0 exponent not 255) for the block to be valid. */
enum field_kind { FIELD_NONE, FIELD_U16, FIELD_U32, FIELD_U64, FIELD_F16, FIELD_BF16, FIELD_F32, FIELD_F64, FIELD_E8M0, FIELD_IQ1_M };
struct quant_field { uint8_t kind, n; uint16_t at; };           /* n of them, the first `at` bytes into the block */

struct quant_type {
    /* k elements, whole blocks; NULL where the interface has none (F32; activation-only types) */
    void (*unpack)(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k);
    void (*pack)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k);
    /* One block with a weight for each element. `energy` is the mean square of the row. Weights are finite, >= 0, not all 0. */
    void (*pack_weighted)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy);
    struct quant_field fields[2];
    void (*pack_file)(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k);  /* for files without weights; NULL: pack */
};
extern const struct quant_type quant_types[GGML_TYPE_COUNT];

/* Swaps the bytes of every field of n blocks, in place: a file of the other byte order. */
void quant_swap(enum ggml_type type, void *blocks, size_t n);

#define TYPE(id, NAME, tag, n, bytes, dots) \
    void unpack_##tag(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k); \
    void pack_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k); \
    void pack_file_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k); \
    void pack_weighted_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy);
#include "types.def"
#undef TYPE

extern const int8_t iq4_values[16];     /* what the nibbles of IQ4_NL and IQ4_XS stand for */
extern const int8_t fp4_values[16];     /* E2M1, doubled: the nibbles of MXFP4 and NVFP4 */

/* The codebooks: 8 elements of 2 bits, or 4 of 4 bits (IQ3), the first lowest. An element is a level. */
extern const uint16_t grid_iq2_xxs[256], grid_iq2_xs[512], grid_iq2_s[1024], grid_iq3_xxs[256], grid_iq3_s[512], grid_iq1_s[2048];

/* The signs of 8 elements from 7 bits: the eighth bit makes their number even. */
static inline uint8_t even_signs(unsigned bits) {
    unsigned parity = bits ^ bits >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return (uint8_t) (bits | (parity & 1) << 7);
}

/* ---- steps that several types share ------------------------------------------------------------------------------- */

/* The integer below v in magnitude, within lo .. hi; NaN is 0. */
static inline int trunc_within(float v, int lo, int hi) { return v >= hi ? hi : v <= lo ? lo : v == v ? (int) v : 0; }
/* The nearest integer, halves away from zero, within lo .. hi; NaN is 0. */
static inline int round_within(float v, int lo, int hi) {
    const float c = v > (float) hi ? (float) hi : v < (float) lo ? (float) lo : v == v ? v : 0.0f;
    const int whole = (int) c;
    const float rest = c - (float) whole;                       /* exact */
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}
/* The nearest integer, halves to even, for |v| < 2^22; some 23-bit integer otherwise. */
static inline int round_even(float v) { return (int) (f32_bits(v + 0x1.8p23f) & 0x7fffff) - 0x400000; }
static inline int clamp_int(int v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }

/* 2^e for e in -149 .. 127 */
static inline float power_of_2(int e) { return bits_f32(e >= -126 ? (uint32_t) (e + 127) << 23 : 1u << (e + 149)); }

/* Half of an E4M3 number; 0x7f, which is NaN there, counts as 0. The sign bit is never set and not looked at. */
static inline float e4m3_half(uint8_t code) {
    const int e = code >> 3 & 15, m = code & 7;
    if (code == 0x7f) return 0.0f;
    return e ? (float) (8 + m)*power_of_2(e - 7 - 3 - 1) : (float) m*power_of_2(-9 - 1);
}

/* The element of the largest magnitude, with its sign; the first of several. */
static inline float signed_max(const float *x, int n) {
    float max = 0.0f, amax = 0.0f;
    for (int i = 0; i < n; i++) if (fabsf(x[i]) > amax) amax = fabsf(x[i]), max = x[i];
    return max;
}
static inline float inverse(float d) { return d != 0.0f ? 1.0f/d : 0.0f; }

/* Groups of at most 32. Codes 0 .. 2*zero-1 and the scale d with x = d*(code - zero) of the least weighted squares among 19 tried; weights NULL:
 * the squares of x. Scale and codes are 0 for a group smaller than 1e-15. */
float fit_symmetric(int n, int zero, const float *x, uint8_t *codes, const float *weights);

/* Codes 0 .. top, the scale d and min <= 0 with x = d*code + min of the least weighted error among those that start from
 * (from + step*t + top)/(max - min), t = 0 .. steps. */
struct fit_plan { float from, step; int steps; bool absolute; };        /* absolute: errors are not squared */
extern const struct fit_plan fit_weighted;                              /* the one used with importance weights */
float fit_offset(const struct fit_plan *plan, int n, int top, const float *x, const float *weights, uint8_t *codes, float *min);

#endif
