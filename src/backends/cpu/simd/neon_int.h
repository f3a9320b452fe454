#ifndef NEON_INT_H
#define NEON_INT_H
/* Integer steps for AArch64 (avx2_int.h says what each does), with the dot product instructions where the compiler may. What
 * has 256 bits there is a pair of registers here. Codes in panels have their offset already taken away: products of signed
 * bytes are at hand, and sums have 32 bits from the start. */

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"

typedef struct { uint8x16_t  a, b; } vb;
typedef struct { int32x4_t   a, b; } vi;
typedef struct { float32x4_t a, b; } vf;
typedef struct { int16_t v[16]; }    vs;

enum { GEMV_ROWS = 8, GEMV_LANES = 8 };

static inline void prefetch(const void *p) { PREFETCH(p); }

/* ---- codes ---- */

static inline vb vb_load(const void *p) { return (vb) { vld1q_u8(p), vld1q_u8((const uint8_t *) p + 16) }; }
static inline void vb_store(void *p, vb v) { vst1q_u8(p, v.a), vst1q_u8((uint8_t *) p + 16, v.b); }
static inline vb vb_halves(const void *first, const void *last) { return (vb) { vld1q_u8(first), vld1q_u8(last) }; }
static inline vb vb_or(vb x, vb y) { return (vb) { vorrq_u8(x.a, y.a), vorrq_u8(x.b, y.b) }; }
static inline vb vb_bits(vb v, int shift, int mask) {
    const int8x16_t by = vdupq_n_s8((int8_t) -shift);
    const uint8x16_t m = vdupq_n_u8((uint8_t) mask);
    return (vb) { vandq_u8(vshlq_u8(v.a, by), m), vandq_u8(vshlq_u8(v.b, by), m) };
}
static inline vb vb_field(vb v, int from, int mask, int to) {
    const int8x16_t by = vdupq_n_s8((int8_t) (to - from));
    const uint8x16_t m = vdupq_n_u8((uint8_t) (mask << to));
    return (vb) { vandq_u8(vshlq_u8(v.a, by), m), vandq_u8(vshlq_u8(v.b, by), m) };
}
static inline vb vb_nibbles(const void *p) {
    const uint8x16_t v = vld1q_u8(p);
    return (vb) { vandq_u8(v, vdupq_n_u8(15)), vshrq_n_u8(v, 4) };
}
static inline uint8x16_t where_16(uint32_t bits) {
    const uint8x16_t each = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    return vtstq_u8(vcombine_u8(vdup_n_u8((uint8_t) bits), vdup_n_u8((uint8_t) (bits >> 8))), each);
}
static inline vb vb_where(uint32_t bits) { return (vb) { where_16(bits), where_16(bits >> 16) }; }
static inline void vb_where_pair(const void *first, const void *last, vb u[2]) {
    uint32_t a, b;
    memcpy(&a, first, 4), memcpy(&b, last, 4);
    u[0] = (vb) { where_16(a), where_16(b) }, u[1] = (vb) { where_16(a >> 16), where_16(b >> 16) };
}
static inline void vb_where_parts(const void *p, int part, vb u[2]) {
    vb_where_pair((const uint8_t *) p + 4*part, (const uint8_t *) p + 4*part + 4, u);
}
static inline vb vb_spread(uint32_t bits) {
    const vb v = vb_where(bits);
    return (vb) { vandq_u8(v.a, vdupq_n_u8(16)), vandq_u8(v.b, vdupq_n_u8(16)) };
}
static inline vb vb_set(int x) { return (vb) { vdupq_n_u8((uint8_t) x), vdupq_n_u8((uint8_t) x) }; }
static inline vb vb_add(vb x, vb y) { return (vb) { vaddq_u8(x.a, y.a), vaddq_u8(x.b, y.b) }; }
static inline vb vb_sub(vb x, vb y) { return (vb) { vsubq_u8(x.a, y.a), vsubq_u8(x.b, y.b) }; }
static inline vb vb_and(vb x, vb y) { return (vb) { vandq_u8(x.a, y.a), vandq_u8(x.b, y.b) }; }
static inline vb vb_at_least(vb v, int n) {
    const uint8x16_t x = vdupq_n_u8((uint8_t) n);
    return (vb) { vcgeq_u8(v.a, x), vcgeq_u8(v.b, x) };
}
static inline uint8x16_t times_16(uint8x16_t v, const uint16_t *factors) {
    const uint16x8_t f = vld1q_u16(factors);
    return vmulq_u8(v, vreinterpretq_u8_u16(vorrq_u16(f, vshlq_n_u16(f, 8))));
}
static inline vb vb_times(vb v, const uint16_t factors[16]) { return (vb) { times_16(v.a, factors), times_16(v.b, factors + 8) }; }
static inline vb vb_lookup(const int8_t table[16], vb v) {
    const uint8x16_t t = vreinterpretq_u8_s8(vld1q_s8(table));
    return (vb) { vqtbl1q_u8(t, v.a), vqtbl1q_u8(t, v.b) };
}
static inline uint8x16_t zip_first(uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(x), vreinterpretq_u64_u8(y)));
}
static inline uint8x16_t zip_last(uint8x16_t x, uint8x16_t y) {
    return vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(x), vreinterpretq_u64_u8(y)));
}
static inline vb vb_zip_eights(vb v) { return (vb) { zip_first(v.a, v.b), zip_last(v.a, v.b) }; }
static inline vb vb_paired(vb v) { return v; }          /* tiles have no pairs here */
static inline vb vb_even_eights(vb x, vb y) { return (vb) { zip_first(x.a, y.a), zip_first(x.b, y.b) }; }
static inline vb vb_odd_eights(vb x, vb y) { return (vb) { zip_last(x.a, y.a), zip_last(x.b, y.b) }; }
static inline vb vb_signed(vb size, vb signs) { return (vb) { vmulq_u8(size.a, signs.a), vmulq_u8(size.b, signs.b) }; }
static inline uint8x16_t quarters_4(uint16x4_t bytes) {
    const uint32x4_t v = vmovl_u16(bytes), w = vorrq_u32(v, vshlq_n_u32(v, 12));
    return vandq_u8(vreinterpretq_u8_u32(vorrq_u32(w, vshlq_n_u32(w, 6))), vdupq_n_u8(3));
}
static inline vb vb_quarters(uint64_t bytes) {
    const uint16x8_t v = vmovl_u8(vcreate_u8(bytes));
    return (vb) { quarters_4(vget_low_u16(v)), quarters_4(vget_high_u16(v)) };
}
static inline uint8x16_t eights_2(uint64_t a, uint64_t b) { return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(a), vcreate_u64(b))); }
static inline vb vb_eights(const uint64_t *table, unsigned a, unsigned b, unsigned c, unsigned d) {
    return (vb) { eights_2(table[a], table[b]), eights_2(table[c], table[d]) };
}
static inline void numbers_8(uint8x8_t q, uint8x16_t high, const uint8_t *places, const uint16_t *factors, int mask, uint16_t *at) {
    const uint16x8_t words = vreinterpretq_u16_u8(vqtbl1q_u8(high, vld1q_u8(places)));
    vst1q_u16(at, vorrq_u16(vandq_u16(vmulq_u16(words, vld1q_u16(factors)), vdupq_n_u16((uint16_t) mask)), vmovl_u8(q)));
}
static inline void vb_numbers(const uint8_t *q, const uint8_t *high, const uint8_t places[32], const uint16_t factors[16], int mask,
                              uint16_t at[16]) {
    const uint8x16_t v = vcombine_u8(vld1_u8(high), vdup_n_u8(0));
    numbers_8(vld1_u8(q), v, places, factors, mask, at), numbers_8(vld1_u8(q + 8), v, places + 16, factors + 8, mask, at + 8);
}
static inline vb vb_eights_without(const uint8_t bits[8], int j) {
    const uint64_t h = (uint64_t) (bits[2*j] | bits[2*j + 1] << 8);
    return (vb) { eights_2((h >> 3 & 1) - 1, (h >> 7 & 1) - 1), eights_2((h >> 11 & 1) - 1, (h >> 15) - 1) };
}
static inline vb vb_fours(const uint32_t *table, const uint8_t *q, unsigned high) {
    uint32_t v[8];
    for (unsigned i = 0; i < 8; i++) v[i] = table[q[i] | (high >> i & 1) << 8];
    return vb_load(v);
}

static inline uint32_t mask_8(uint8x8_t v, int bit) {
    return vaddv_u8(vshl_u8(vand_u8(vshl_u8(v, vdup_n_s8((int8_t) -bit)), vdup_n_u8(1)), vcreate_s8(0x0706050403020100)));
}
static inline uint32_t vb_mask(vb v, int bit) {
    return mask_8(vget_low_u8(v.a), bit) | mask_8(vget_high_u8(v.a), bit) << 8 | mask_8(vget_low_u8(v.b), bit) << 16 |
           mask_8(vget_high_u8(v.b), bit) << 24;
}
static inline vb vb_least(vb v, int n) { return (vb) { vminq_u8(v.a, vdupq_n_u8((uint8_t) n)), vminq_u8(v.b, vdupq_n_u8((uint8_t) n)) }; }
static inline vb vb_minus(vb v, int n) { return (vb) { vsubq_u8(v.a, vdupq_n_u8((uint8_t) n)), vsubq_u8(v.b, vdupq_n_u8((uint8_t) n)) }; }
static inline void vb_store_nibbles(void *p, vb v) { vst1q_u8(p, vorrq_u8(vandq_u8(v.a, vdupq_n_u8(15)), vshlq_n_u8(v.b, 4))); }

static inline vb vb_fours_of_256(const uint32_t *table, const uint8_t *q) { return vb_fours(table, q, 0); }

/* ---- scales of a block of 256 ---- */

static inline vs vs_of(int16x8_t even, int16x8_t odd) {
    vs s;
    vst1q_s16(s.v, even), vst1q_s16(s.v + 8, odd);
    return s;
}
static inline vs vs_eight(uint64_t bytes) {
    const int16x8_t v = vreinterpretq_s16_u16(vmovl_u8(vcreate_u8(bytes)));
    return vs_of(v, v);
}
static inline vs vs_sixteen(int8x16_t v) {
    return vs_of(vmovl_s8(vget_low_s8(vuzp1q_s8(v, v))), vmovl_s8(vget_low_s8(vuzp2q_s8(v, v))));
}
static inline vs vs_bytes(uint64_t even, uint64_t odd) {
    return vs_of(vmovl_s8(vcreate_s8(even)), vmovl_s8(vcreate_s8(odd)));
}
static inline vs vs_in_order(uint64_t first, uint64_t last) { return vs_sixteen(vcombine_s8(vcreate_s8(first), vcreate_s8(last))); }
static inline vs vs_signed(const void *p) { return vs_sixteen(vld1q_s8(p)); }
static inline vs vs_low(const void *p) { return vs_sixteen(vreinterpretq_s8_u8(vandq_u8(vld1q_u8(p), vdupq_n_u8(15)))); }
static inline vs vs_high(const void *p) { return vs_sixteen(vreinterpretq_s8_u8(vshrq_n_u8(vld1q_u8(p), 4))); }
static inline vs vs_words(const uint16_t p[8], int shift, int mask) {
    const uint16x8_t v = vandq_u16(vshlq_u16(vld1q_u16(p), vdupq_n_s16((int16_t) -shift)), vdupq_n_u16((uint16_t) mask));
    return vs_of(vreinterpretq_s16_u16(v), vreinterpretq_s16_u16(v));
}
static inline vs vs_minus(vs v, int n) {
    const int16x8_t m = vdupq_n_s16((int16_t) n);
    return vs_of(vsubq_s16(vld1q_s16(v.v), m), vsubq_s16(vld1q_s16(v.v + 8), m));
}
static inline vs vs_times(vs v, const int16_t f[8]) {
    const int16x8_t x = vld1q_s16(f);
    return vs_of(vmulq_s16(vld1q_s16(v.v), x), vmulq_s16(vld1q_s16(v.v + 8), x));
}
static inline vs vs_product(vs x, vs y) {
    return vs_of(vmulq_s16(vld1q_s16(x.v), vld1q_s16(y.v)), vmulq_s16(vld1q_s16(x.v + 8), vld1q_s16(y.v + 8)));
}
static inline vs vs_load(const int16_t *p) { vs s; memcpy(s.v, p, sizeof s.v); return s; }
static inline void vs_store(int16_t *p, vs v) { memcpy(p, v.v, sizeof v.v); }

/* ---- sums of one row ---- */

static inline vi vi_zero(void) { return (vi) { vdupq_n_s32(0), vdupq_n_s32(0) }; }
static inline vi vi_load(const int32_t *p) { return (vi) { vld1q_s32(p), vld1q_s32(p + 4) }; }
static inline void vi_store(int32_t *p, vi v) { vst1q_s32(p, v.a), vst1q_s32(p + 4, v.b); }
static inline vi vi_set(int32_t x) { return (vi) { vdupq_n_s32(x), vdupq_n_s32(x) }; }
static inline vi vi_sub(vi x, vi y) { return (vi) { vsubq_s32(x.a, y.a), vsubq_s32(x.b, y.b) }; }
static inline vi vi_times(vi x, int n) { return (vi) { vmulq_n_s32(x.a, n), vmulq_n_s32(x.b, n) }; }

/* acc + lanes that add up to the product of 16 signed bytes */
static inline int32x4_t dot_16(int32x4_t acc, uint8x16_t u, const int8_t *q) {
    const int8x16_t w = vreinterpretq_s8_u8(u), a = vld1q_s8(q);
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(acc, w, a);
#else
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(a));
    return vpadalq_s16(acc, vaddq_s16(low, vmull_high_s8(w, a)));       /* at most 2*128*127 */
#endif
}
static inline vi vi_dot_signed(vb w, const int8_t *q, const int16_t *fine) {
    const int32x4_t zero = vdupq_n_s32(0);
    return (vi) { vmulq_n_s32(dot_16(zero, w.a, q), fine[0]), vmulq_n_s32(dot_16(zero, w.b, q + 16), fine[8]) };
}
static inline vi vi_dot_pair(const vb u[2], const int8_t *q, const int16_t *fine) {
    const int32x4_t zero = vdupq_n_s32(0);
    const vi first = vi_dot_signed(u[0], q, fine);
    return (vi) { vmlaq_n_s32(first.a, dot_16(zero, u[1].a, q + 32), fine[16]), vmlaq_n_s32(first.b, dot_16(zero, u[1].b, q + 48), fine[24]) };
}
static inline vi vi_dot_pair_signed(const vb w[2], const int8_t *q, const int16_t *fine) { return vi_dot_pair(w, q, fine); }
static inline vi vi_dot_scaled(vi acc, vb u, const int8_t *q, vs s, int j) {
    const int32x4_t zero = vdupq_n_s32(0);
    return (vi) { vmlaq_n_s32(acc.a, dot_16(zero, u.a, q), s.v[j]), vmlaq_n_s32(acc.b, dot_16(zero, u.b, q + 16), s.v[8 + j]) };
}
static inline vi vi_dot_scaled_signed(vi acc, vb w, const int8_t *q, vs s, int j) { return vi_dot_scaled(acc, w, q, s, j); }
static inline vi vi_dot_scaled_signs(vi acc, vb size, vb signs, const int8_t *q, vs s, int j) {
    return vi_dot_scaled(acc, vb_signed(size, signs), q, s, j);
}
static inline int32x4_t pairs_8(const int16_t *s, const int16_t *sums) {
    const int16x8_t x = vld1q_s16(s), y = vld1q_s16(sums);
    return vmlal_high_s16(vmull_s16(vget_low_s16(x), vget_low_s16(y)), x, y);
}
static inline vi vi_scaled_sums(vs s, const int16_t *sums) { return (vi) { pairs_8(s.v, sums), pairs_8(s.v + 8, sums + 8) }; }

static inline int32x4_t reduce_4(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}
static inline void vi_reduce_pair(const int32_t *p, vi *first, vi *last) {
    vi v[8];
    for (int r = 0; r < 8; r++) v[r] = vi_load(p + 8*r);
    *first = (vi) { reduce_4(v[0].a, v[1].a, v[2].a, v[3].a), reduce_4(v[4].a, v[5].a, v[6].a, v[7].a) };
    *last  = (vi) { reduce_4(v[0].b, v[1].b, v[2].b, v[3].b), reduce_4(v[4].b, v[5].b, v[6].b, v[7].b) };
}
static inline vi vi_reduce(const int32_t *p) {
    vi first, last;
    vi_reduce_pair(p, &first, &last);
    return (vi) { vaddq_s32(first.a, last.a), vaddq_s32(first.b, last.b) };
}

/* ---- floats, a lane is an output ---- */

static inline float32x4_t halves_4(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }

static inline vf vf_zero(void) { return (vf) { vdupq_n_f32(0), vdupq_n_f32(0) }; }
static inline vf vf_set(float x) { return (vf) { vdupq_n_f32(x), vdupq_n_f32(x) }; }
static inline void vf_store(float *p, vf v) { vst1q_f32(p, v.a), vst1q_f32(p + 4, v.b); }
static inline vf vf_load(const float *p) { return (vf) { vld1q_f32(p), vld1q_f32(p + 4) }; }
static inline vf vf_mul(vf x, vf y) { return (vf) { vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b) }; }
static inline vf vf_fma(vf x, vf y, vf z) { return (vf) { vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b) }; }
static inline vf vf_fnma(vf x, vf y, vf z) { return (vf) { vfmsq_f32(z.a, x.a, y.a), vfmsq_f32(z.b, x.b, y.b) }; }
static inline vf vf_from_ints(vi v) { return (vf) { vcvtq_f32_s32(v.a), vcvtq_f32_s32(v.b) }; }
static inline vf vf_from_halves(const uint16_t *p) { return (vf) { halves_4(p), halves_4(p + 4) }; }
static inline float float_of_half(uint16_t h) { return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0); }
static inline uint16_t half_of_float(float x) { return vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x))), 0); }
static inline void vf_from_pairs(const uint32_t *p, vf *low, vf *high) {
    uint16_t halves[2][8];
    for (int i = 0; i < 8; i++) halves[0][i] = (uint16_t) p[i], halves[1][i] = (uint16_t) (p[i] >> 16);
    *low = vf_from_halves(halves[0]), *high = vf_from_halves(halves[1]);
}

static inline void floats_16(uint8x16_t u, float d, float m, float *y) {
    const int16x8_t v[2] = { vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(u))), vmovl_high_s8(vreinterpretq_s8_u8(u)) };
    for (int i = 0; i < 4; i++) {
        const int32x4_t w = i % 2 ? vmovl_high_s16(v[i/2]) : vmovl_s16(vget_low_s16(v[i/2]));
        vst1q_f32(y + 4*i, vaddq_f32(vmulq_n_f32(vcvtq_f32_s32(w), d), vdupq_n_f32(m)));
    }
}
static inline void vb_floats(vb u, float d, float m, float *y) { floats_16(u.a, d, m, y), floats_16(u.b, d, m, y + 16); }

/* ---- tiles ---- */

enum { LANES = 4, TILE_VECTORS = 4, TILE_COLUMNS = 4 };
#define SUM_BITS    0
#define SUMS_KEPT   0
#define BYTES_WIDE  0
#define BYTES_START 0
#define WIDE_SCALED 0
#define READ_CODES  read_codes_neon
#define GEMV_OF_ALL 1
#ifndef __ARM_FEATURE_DOTPROD
#define READS_CODES 1
#endif

typedef int32x4_t   tv;
typedef float32x4_t tf;

static inline tv t_zero(void) { return vdupq_n_s32(0); }
static inline tv t_load(const void *p) { return vld1q_s32(p); }
static inline tv t_all(const void *p) { return vld1q_dup_s32(p); }
static inline tv t_dot(tv sum, tv codes, tv all) {
    const int8x16_t w = vreinterpretq_s8_s32(codes), a = vreinterpretq_s8_s32(all);
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, w, a);
#else
    /* neighbours in pairs of int16, then in int32: a lane is a row of four */
    const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)), vmull_high_s8(w, a));
    return vpadalq_s16(sum, pairs);
#endif
}
static inline tv t_dot_wide(tv sum, tv w, tv a) { return t_dot(sum, w, a); }
static inline tv t_scale(tv acc, tv sum, tv scale) { return vmlaq_s32(acc, sum, scale); }
static inline tv t_plus(tv x, tv y) { return vaddq_s32(x, y); }
static inline void t_store(void *p, tv v) { vst1q_s32(p, v); }
static inline tv t_pairs(tv acc, tv w, tv a) {
    const int16x8_t x = vreinterpretq_s16_s32(w), y = vreinterpretq_s16_s32(a);
    return vaddq_s32(acc, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}
static inline int32_t scale_word(int scale) { return scale; }
static inline int32_t offset_word(const int8_t *q, int span, int offset) { (void) q, (void) span, (void) offset; return 0; }
static inline int32_t offset_halves(const int8_t *q, int offset) { (void) q, (void) offset; return 0; }

static inline tf   tf_load(const float *p) { return vld1q_f32(p); }
static inline void tf_store(float *p, tf v) { vst1q_f32(p, v); }
static inline tf   tf_at(const float *p) { return vld1q_dup_f32(p); }
static inline tf   tf_mul(tf x, tf y) { return vmulq_f32(x, y); }
static inline tf   tf_fma(tf x, tf y, tf z) { return vfmaq_f32(z, x, y); }
static inline tf   tf_fnma(tf x, tf y, tf z) { return vfmsq_f32(z, x, y); }
static inline tf   tf_from_ints(tv v) { return vcvtq_f32_s32(v); }

static inline void floats_from_halves(float *y, const uint16_t *x) { vf_store(y, vf_from_halves(x)); }

/* four rows: r[i] becomes the dwords i of all */
static inline void transpose_4(uint8x16_t r0, uint8x16_t r1, uint8x16_t r2, uint8x16_t r3, uint8x16_t r[4]) {
    const uint32x4_t a = vreinterpretq_u32_u8(r0), b = vreinterpretq_u32_u8(r1), c = vreinterpretq_u32_u8(r2), d = vreinterpretq_u32_u8(r3);
    const uint64x2_t e = vreinterpretq_u64_u32(vtrn1q_u32(a, b)), f = vreinterpretq_u64_u32(vtrn2q_u32(a, b));
    const uint64x2_t g = vreinterpretq_u64_u32(vtrn1q_u32(c, d)), h = vreinterpretq_u64_u32(vtrn2q_u32(c, d));
    r[0] = vreinterpretq_u8_u64(vtrn1q_u64(e, g)), r[1] = vreinterpretq_u8_u64(vtrn1q_u64(f, h));
    r[2] = vreinterpretq_u8_u64(vtrn2q_u64(e, g)), r[3] = vreinterpretq_u8_u64(vtrn2q_u64(f, h));
}
static inline void transpose_dwords(const vb u[8], uint8_t *out, size_t step) {
    uint8x16_t low[8], high[8];                         /* rows 0..3 and rows 4..7 of dwords 0..7 */
    transpose_4(u[0].a, u[1].a, u[2].a, u[3].a, low),  transpose_4(u[0].b, u[1].b, u[2].b, u[3].b, low + 4);
    transpose_4(u[4].a, u[5].a, u[6].a, u[7].a, high), transpose_4(u[4].b, u[5].b, u[6].b, u[7].b, high + 4);
    for (int i = 0; i < 8; i++) vst1q_u8(out + (size_t) i*step, low[i]), vst1q_u8(out + (size_t) i*step + 16, high[i]);
}
static inline void transpose_wide(const vb u[8], int16_t fine[8][2], uint8_t *out, size_t step) { (void) fine, transpose_dwords(u, out, step); }

/* ---- activations ---- */

static inline uint32_t greatest_bits(int n, const float *x) {
    uint32x4_t m = vdupq_n_u32(0);
    for (int i = 0; i < n; i += 4) m = vmaxq_u32(m, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7fffffff)));
    return vmaxvq_u32(m);
}
static inline int16x4_t round_away(const float *x, float scale) {
    const float32x4_t v = vmulq_n_f32(vld1q_f32(x), scale);
    const uint32x4_t half = vdupq_n_u32(0x3effffff), sign = vandq_u32(vreinterpretq_u32_f32(v), vdupq_n_u32(0x80000000));
    return vmovn_s32(vcvtq_s32_f32(vaddq_f32(v, vreinterpretq_f32_u32(vorrq_u32(half, sign)))));
}
static inline uint8x16_t round_16(const float *x, float scale) {
    const int16x8_t low  = vcombine_s16(round_away(x, scale), round_away(x + 4, scale));
    const int16x8_t high = vcombine_s16(round_away(x + 8, scale), round_away(x + 12, scale));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
static inline void greatest_eight(const float *const at[8], int n, uint32_t most[8]) {
    for (int g = 0; g < 8; g++) most[g] = greatest_bits(n, at[g]);
}
static inline vb round_codes(const float *x, float scale, float last) { return (vb) { round_16(x, scale), round_16(x + 16, last) }; }
static inline void block_range(const float *x, float *least, float *most) {
    float32x4_t lo = vld1q_f32(x), hi = lo;
    for (int i = 4; i < 32; i += 4) lo = vminq_f32(lo, vld1q_f32(x + i)), hi = vmaxq_f32(hi, vld1q_f32(x + i));
    *least = vminvq_f32(lo), *most = vmaxvq_f32(hi);
}
static inline uint8x16_t cut_16(const float *x, float from, float scale, float plus) {
    uint16x4_t v[4];
    for (int i = 0; i < 4; i++) {
        const float32x4_t y = vaddq_f32(vmulq_n_f32(vsubq_f32(vld1q_f32(x + 4*i), vdupq_n_f32(from)), scale), vdupq_n_f32(plus));
        v[i] = vmovn_u32(vcvtq_u32_f32(y));
    }
    return vcombine_u8(vmovn_u16(vcombine_u16(v[0], v[1])), vmovn_u16(vcombine_u16(v[2], v[3])));
}
static inline vb cut_codes(const float *x, float from, float scale, float plus) {
    return (vb) { cut_16(x, from, scale, plus), cut_16(x + 16, from, scale, plus) };
}
static inline void vb_sums(vb q, int *first, int *last) {
    *first = vaddlvq_s8(vreinterpretq_s8_u8(q.a)), *last = vaddlvq_s8(vreinterpretq_s8_u8(q.b));
}

#endif
