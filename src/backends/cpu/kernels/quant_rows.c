/* Rows of floats to blocks of 32 and back, in the steps of the instruction set: what a cache of keys and values needs. The
 * bytes and the bits are those of src/quant. Blocks that hold a NaN or an infinity, or nothing but values near the ends of
 * the range, are left to it, so that nothing here overflows. */

#include "kernels.h"
#include "quant_isa.h"

#if defined __AVX512F__ || defined __ARM_FEATURE_DOTPROD
/* One row needs no wider registers: these sets keep what the set below them has. */
void K(quant_rows)(struct quant_kernels *k) { (void) k; }
#else

#include SIMD_INT
#include "quant_types.h"

/* ---- floats to codes ---- */

static bool ordinary(const float *x) {
    const uint32_t top = greatest_bits(32, x);
    return top >= f32_bits(0x1p-96f) && top <= f32_bits(0x1p96f);
}

/* The element of the largest magnitude, with its sign. */
static float farthest(const float *x) {
    float least, most;
    block_range(x, &least, &most);
    if (most == -least) return signed_max(x, 32);           /* the first of the two */
    return most > -least ? most : least;
}

static void put_codes(vb codes, uint8_t *qs, uint8_t *qh) {
    const uint32_t fifth = vb_mask(codes, 4);
    vb_store_nibbles(qs, codes);
    if (qh) memcpy(qh, &fifth, 4);
}

/* Codes 0 .. 2*zero-1 of the types without a minimum; the scale as a half. */
static uint16_t put_symmetric(const float *x, int zero, uint8_t *qs, uint8_t *qh) {
    const float d = farthest(x)/(float) -zero;
    put_codes(vb_least(cut_codes(x, 0.0f, 1.0f/d, (float) zero + 0.5f), 2*zero - 1), qs, qh);
    return half_of_float(d);
}

/* Codes 0 .. top of the types with one. False for a minimum of zero: which of the two zeros it is depends on the order. */
static bool put_offset(const float *x, int top, uint16_t *d, uint16_t *m, uint8_t *qs, uint8_t *qh) {
    float least, most;
    block_range(x, &least, &most);
    if (least == 0.0f) return false;
    const float scale = (most - least)/(float) top;
    put_codes(vb_least(cut_codes(x, least, inverse(scale), 0.5f), top), qs, qh);
    *d = half_of_float(scale), *m = half_of_float(least);
    return true;
}

static void put_q8_0(const float *x, block_q8_0 *b) {
    const float d = bits_f32(greatest_bits(32, x))/127.0f;
    vb_store(b->qs, round_codes(x, 1.0f/d, 1.0f/d));
    b->d = half_of_float(d);
}

#define PACK(tag, put) static void to_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) { \
    for (block_##tag *b = y; k > 0; k -= 32, b++, x += 32) if (!ordinary(x) || !(put)) pack_##tag(x, b, 32); }
PACK(q8_0, (put_q8_0(x, b), true))
PACK(q4_0, (b->d = put_symmetric(x,  8, b->qs, NULL),  true))
PACK(q5_0, (b->d = put_symmetric(x, 16, b->qs, b->qh), true))
PACK(q4_1, put_offset(x, 15, &b->d, &b->m, b->qs, NULL))
PACK(q5_1, put_offset(x, 31, &b->d, &b->m, b->qs, b->qh))

/* ---- codes to floats: code*d + m, rounded twice ---- */

#define NOTHING -0.0f                                       /* what can be added to any float and leaves it as it is */
#define UNPACK(tag, codes, m) static void from_##tag(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) { \
    for (const block_##tag *b = x; k > 0; k -= 32, b++, y += 32) vb_floats(codes, float_of_half(b->d), m, y); }
UNPACK(q8_0, codes_q8_0(b), NOTHING)
UNPACK(q4_0, vb_minus(codes_q4_0(b), 8),  NOTHING)
UNPACK(q5_0, vb_minus(codes_q5_0(b), 16), NOTHING)
UNPACK(q4_1, codes_q4_1(b), float_of_half(b->m))
UNPACK(q5_1, codes_q5_1(b), float_of_half(b->m))

#define SET(NAME, tag) k->unpack[GGML_TYPE_##NAME] = from_##tag, k->pack[GGML_TYPE_##NAME] = to_##tag
void K(quant_rows)(struct quant_kernels *k) { SET(Q8_0, q8_0); SET(Q4_0, q4_0); SET(Q5_0, q5_0); SET(Q4_1, q4_1); SET(Q5_1, q5_1); }

#endif
