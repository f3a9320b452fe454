#ifndef SIMD_NEON_H
#define SIMD_NEON_H
/* The float steps (simd/c.h names them) on 16 lanes for AArch64: four registers, doubles eight. */

#include <arm_neon.h>
#include "compiler.h"
#include "quant.h"

#define LANES 16
#define ROWS_AT_ONCE 6                          /* rows whose 16 lanes stay in registers in a matrix loop */

typedef struct { float32x4_t a, b, c, d; } vf;
typedef struct { uint32x4_t  a, b, c, d; } vu;
typedef vu                                 vm;
typedef struct { float64x2_t v[8]; }       vd;

#define ONE(to, name, from, f)  INLINE to name(from x) { return (to) { f(x.a), f(x.b), f(x.c), f(x.d) }; }
#define TWO(to, name, from, f)  INLINE to name(from x, from y) { return (to) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) }; }
#define THREE(name, f)          INLINE vf name(vf x, vf y, vf z) { \
    return (vf) { f(z.a, x.a, y.a), f(z.b, x.b, y.b), f(z.c, x.c, y.c), f(z.d, x.d, y.d) }; }

INLINE vf vf_set1(float x)           { const float32x4_t v = vdupq_n_f32(x); return (vf) { v, v, v, v }; }
INLINE vf vf_load(const float *p)    { return (vf) { vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) }; }
INLINE void vf_store(float *p, vf x) { vst1q_f32(p, x.a); vst1q_f32(p + 4, x.b); vst1q_f32(p + 8, x.c); vst1q_f32(p + 12, x.d); }
TWO(vf, vf_add, vf, vaddq_f32)
TWO(vf, vf_sub, vf, vsubq_f32)
TWO(vf, vf_mul, vf, vmulq_f32)
TWO(vf, vf_div, vf, vdivq_f32)
THREE(vf_fma,  vfmaq_f32)
THREE(vf_fnma, vfmsq_f32)
ONE(vf, vf_sqrt,  vf, vsqrtq_f32)
ONE(vf, vf_floor, vf, vrndmq_f32)
ONE(vf, vf_ceil,  vf, vrndpq_f32)
ONE(vf, vf_trunc, vf, vrndq_f32)
TWO(vm, vf_lt, vf, vcltq_f32)
TWO(vm, vf_eq, vf, vceqq_f32)
INLINE float32x4_t min_f32(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
INLINE float32x4_t max_f32(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
TWO(vf, vf_min, vf, min_f32)
TWO(vf, vf_max, vf, max_f32)
INLINE vf vf_select(vm m, vf x, vf y) {
    return (vf) { vbslq_f32(m.a, x.a, y.a), vbslq_f32(m.b, x.b, y.b), vbslq_f32(m.c, x.c, y.c), vbslq_f32(m.d, x.d, y.d) };
}

INLINE vu vu_set1(uint32_t x)        { const uint32x4_t v = vdupq_n_u32(x); return (vu) { v, v, v, v }; }
ONE(vu, vu_of, vf, vreinterpretq_u32_f32)
ONE(vf, vf_of, vu, vreinterpretq_f32_u32)
TWO(vu, vu_add, vu, vaddq_u32)
TWO(vu, vu_sub, vu, vsubq_u32)
TWO(vu, vu_and, vu, vandq_u32)
TWO(vu, vu_or,  vu, vorrq_u32)
INLINE vu vu_shift(vu x, int n) {                                       /* left, for negative n right */
    const int32x4_t by = vdupq_n_s32(n);
    return (vu) { vshlq_u32(x.a, by), vshlq_u32(x.b, by), vshlq_u32(x.c, by), vshlq_u32(x.d, by) };
}
#define vu_shl(x, n) vu_shift(x, n)
#define vu_shr(x, n) vu_shift(x, -(n))
INLINE uint32x4_t sar_u32(uint32x4_t x, int n) {
    return vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(x), vdupq_n_s32(-n)));
}
INLINE vu vu_sar(vu x, int n)        { return (vu) { sar_u32(x.a, n), sar_u32(x.b, n), sar_u32(x.c, n), sar_u32(x.d, n) }; }
INLINE float32x4_t from_int(uint32x4_t x) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x)); }
ONE(vf, vf_from_int, vu, from_int)

#define EACH_VD(out, expression) vd out; for (int i = 0; i < 8; i++) out.v[i] = expression
INLINE vd vd_set1(double x)          { EACH_VD(y, vdupq_n_f64(x)); return y; }
INLINE vd vd_load(const double *p)   { EACH_VD(y, vld1q_f64(p + 2*i)); return y; }
INLINE vd vd_from(vf x) {
    return (vd) {{ vcvt_f64_f32(vget_low_f32(x.a)), vcvt_high_f64_f32(x.a), vcvt_f64_f32(vget_low_f32(x.b)), vcvt_high_f64_f32(x.b),
                   vcvt_f64_f32(vget_low_f32(x.c)), vcvt_high_f64_f32(x.c), vcvt_f64_f32(vget_low_f32(x.d)), vcvt_high_f64_f32(x.d) }};
}
INLINE vf vf_from(vd x) {
    return (vf) { vcvt_high_f32_f64(vcvt_f32_f64(x.v[0]), x.v[1]), vcvt_high_f32_f64(vcvt_f32_f64(x.v[2]), x.v[3]),
                  vcvt_high_f32_f64(vcvt_f32_f64(x.v[4]), x.v[5]), vcvt_high_f32_f64(vcvt_f32_f64(x.v[6]), x.v[7]) };
}
INLINE vd vd_add(vd x, vd y)         { EACH_VD(z, vaddq_f64(x.v[i], y.v[i])); return z; }
INLINE vd vd_sub(vd x, vd y)         { EACH_VD(z, vsubq_f64(x.v[i], y.v[i])); return z; }
INLINE vd vd_mul(vd x, vd y)         { EACH_VD(z, vmulq_f64(x.v[i], y.v[i])); return z; }
INLINE vd vd_fma(vd x, vd y, vd z)   { EACH_VD(r, vfmaq_f64(z.v[i], x.v[i], y.v[i])); return r; }
INLINE uint64x2_t to_sign(float64x2_t m, int n) { return vshlq_u64(vreinterpretq_u64_f64(m), vdupq_n_s64(63 - n)); }
INLINE float64x2_t pick_f64(float64x2_t m, int n, float64x2_t x, float64x2_t y) {
    return vbslq_f64(vcltzq_s64(vreinterpretq_s64_u64(to_sign(m, n))), x, y);
}
INLINE float64x2_t flip_f64(float64x2_t m, int n, float64x2_t x) {
    const uint64x2_t sign = vandq_u64(to_sign(m, n), vdupq_n_u64(UINT64_C(1) << 63));
    return vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(x), sign));
}
INLINE vd vd_pick(vd m, int n, vd x, vd y) { EACH_VD(r, pick_f64(m.v[i], n, x.v[i], y.v[i])); return r; }
INLINE vd vd_flip(vd m, int n, vd x)       { EACH_VD(r, flip_f64(m.v[i], n, x.v[i])); return r; }

INLINE vf vf_swap(vf x) {                                               /* lanes 2i and 2i+1 */
    return (vf) { vrev64q_f32(x.a), vrev64q_f32(x.b), vrev64q_f32(x.c), vrev64q_f32(x.d) };
}

/* The largest lane; lanes are not NaN. */
INLINE float vf_max_all(vf x) {
    const float32x4_t s4 = max_f32(max_f32(x.d, x.b), max_f32(x.c, x.a));
    const float32x4_t s2 = max_f32(vextq_f32(s4, s4, 2), s4);
    return vgetq_lane_f32(max_f32(vextq_f32(s2, s2, 1), s2), 0);
}

/* Bit i: lane i. */
INLINE uint32_t bits4(uint32x4_t m) { return vaddvq_u32(vandq_u32(m, (const uint32x4_t) { 1, 2, 4, 8 })); }
INLINE uint32_t vm_bits(vm m) { return bits4(m.a) | bits4(m.b) << 4 | bits4(m.c) << 8 | bits4(m.d) << 12; }

/* Four rows become columns. */
INLINE void transpose4(float32x4_t *r) {
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]),  vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]),  vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
/* Rows become columns: lane j of r[i] goes to lane i of r[j]. */
INLINE void vf_transpose(vf *r) {
    float32x4_t t[4][4][4];                             /* [rows 4i ..][columns 4j ..][row] */
    for (int i = 0; i < 4; i++) for (int k = 0; k < 4; k++) {
        t[i][0][k] = r[4*i + k].a, t[i][1][k] = r[4*i + k].b, t[i][2][k] = r[4*i + k].c, t[i][3][k] = r[4*i + k].d;
    }
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) transpose4(t[i][j]);
    for (int j = 0; j < 4; j++) for (int k = 0; k < 4; k++) r[4*j + k] = (vf) { t[0][j][k], t[1][j][k], t[2][j][k], t[3][j][k] };
}

/* Lanes 8..15 onto 0..7, then 4..7 onto 0..3, 2..3 onto 0..1, 1 onto 0. */
INLINE float vf_sum(vf x) {
    const float32x4_t s4 = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}
/* sums[i] = vf_sum(x[i]) of four vectors. */
INLINE void vf_sum4(const vf *x, float *sums) {
    float32x4_t s[4];
    for (int i = 0; i < 4; i++) s[i] = vaddq_f32(vaddq_f32(x[i].a, x[i].c), vaddq_f32(x[i].b, x[i].d));
    transpose4(s);
    vst1q_f32(sums, vaddq_f32(vaddq_f32(s[0], s[2]), vaddq_f32(s[1], s[3])));
}
INLINE double vd_sum(vd x) {
    float64x2_t s[4];
    for (int i = 0; i < 4; i++) s[i] = vaddq_f64(x.v[i], x.v[i + 4]);
    const float64x2_t s2 = vaddq_f64(vaddq_f64(s[0], s[2]), vaddq_f64(s[1], s[3]));
    return vgetq_lane_f64(s2, 0) + vgetq_lane_f64(s2, 1);
}

INLINE float32x4_t load4_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
INLINE vf vf_load_f16(const uint16_t *p) { return (vf) { load4_f16(p), load4_f16(p + 4), load4_f16(p + 8), load4_f16(p + 12) }; }
INLINE float32x4_t load4_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16)); }
INLINE vf vf_load_bf16(const uint16_t *p) { return (vf) { load4_bf16(p), load4_bf16(p + 4), load4_bf16(p + 8), load4_bf16(p + 12) }; }
INLINE vf vf_load_i8(const int8_t *p) {
    const int8x16_t x = vld1q_s8(p);
    const int16x8_t lo = vmovl_s8(vget_low_s8(x)), hi = vmovl_s8(vget_high_s8(x));
    return (vf) { vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(lo))),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(hi))) };
}
INLINE void store4_f16(uint16_t *p, float32x4_t x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
INLINE void vf_store_f16(uint16_t *p, vf x) { store4_f16(p, x.a); store4_f16(p + 4, x.b); store4_f16(p + 8, x.c); store4_f16(p + 12, x.d); }
/* The low halves of the words, each below 65536. */
INLINE void vu_store16(uint16_t *p, vu x) {
    vst1_u16(p, vmovn_u32(x.a)); vst1_u16(p + 4, vmovn_u32(x.b)); vst1_u16(p + 8, vmovn_u32(x.c)); vst1_u16(p + 12, vmovn_u32(x.d));
}

#undef ONE
#undef TWO
#undef THREE
#undef EACH_VD
#endif
