#ifndef SIMD_AVX2_H
#define SIMD_AVX2_H
/* The float steps (simd/c.h names them) on 16 lanes for AVX2 with FMA and F16C: lanes 0..7 in `a`, 8..15 in `b`. */

#include <immintrin.h>
#include "compiler.h"
#include "quant.h"

#define LANES 16
#define ROWS_AT_ONCE 6                          /* rows whose 16 lanes stay in registers in a matrix loop */

typedef struct { __m256  a, b; }       vf;
typedef struct { __m256i a, b; }       vu;
typedef struct { __m256  a, b; }       vm;
typedef struct { __m256d a, b, c, d; } vd;

#define TWO(type, name, f)   INLINE type name(type x, type y) { return (type) { f(x.a, y.a), f(x.b, y.b) }; }
#define ONE(type, name, f)   INLINE type name(type x)         { return (type) { f(x.a), f(x.b) }; }

INLINE vf vf_set1(float x)         { const __m256 v = _mm256_set1_ps(x); return (vf) { v, v }; }
INLINE vf vf_load(const float *p)  { return (vf) { _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
INLINE void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x.a); _mm256_storeu_ps(p + 8, x.b); }
TWO(vf, vf_add, _mm256_add_ps)
TWO(vf, vf_sub, _mm256_sub_ps)
TWO(vf, vf_mul, _mm256_mul_ps)
TWO(vf, vf_div, _mm256_div_ps)
TWO(vf, vf_min, _mm256_min_ps)
TWO(vf, vf_max, _mm256_max_ps)
ONE(vf, vf_sqrt,  _mm256_sqrt_ps)
ONE(vf, vf_floor, _mm256_floor_ps)
ONE(vf, vf_ceil,  _mm256_ceil_ps)
INLINE __m256 trunc_ps(__m256 x)   { return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
ONE(vf, vf_trunc, trunc_ps)
INLINE vf vf_fma (vf x, vf y, vf z) { return (vf) { _mm256_fmadd_ps (x.a, y.a, z.a), _mm256_fmadd_ps (x.b, y.b, z.b) }; }
INLINE vf vf_fnma(vf x, vf y, vf z) { return (vf) { _mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b) }; }
INLINE vm vf_lt(vf x, vf y) { return (vm) { _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ) }; }
INLINE vm vf_eq(vf x, vf y) { return (vm) { _mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ) }; }
INLINE vf vf_select(vm m, vf x, vf y) {
    return (vf) { _mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b) };
}

INLINE vu vu_set1(uint32_t x)      { const __m256i v = _mm256_set1_epi32((int) x); return (vu) { v, v }; }
INLINE vu vu_of(vf x)              { return (vu) { _mm256_castps_si256(x.a), _mm256_castps_si256(x.b) }; }
INLINE vf vf_of(vu x)              { return (vf) { _mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b) }; }
TWO(vu, vu_add, _mm256_add_epi32)
TWO(vu, vu_sub, _mm256_sub_epi32)
TWO(vu, vu_and, _mm256_and_si256)
TWO(vu, vu_or,  _mm256_or_si256)
#define vu_shl(x, n) ((vu) { _mm256_slli_epi32((x).a, n), _mm256_slli_epi32((x).b, n) })
#define vu_shr(x, n) ((vu) { _mm256_srli_epi32((x).a, n), _mm256_srli_epi32((x).b, n) })
#define vu_sar(x, n) ((vu) { _mm256_srai_epi32((x).a, n), _mm256_srai_epi32((x).b, n) })
INLINE vf vf_from_int(vu x)        { return (vf) { _mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b) }; }

#define FOUR(name, f) INLINE vd name(vd x, vd y) { return (vd) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) }; }
INLINE vd vd_set1(double x)        { const __m256d v = _mm256_set1_pd(x); return (vd) { v, v, v, v }; }
INLINE vd vd_load(const double *p) {
    return (vd) { _mm256_loadu_pd(p), _mm256_loadu_pd(p + 4), _mm256_loadu_pd(p + 8), _mm256_loadu_pd(p + 12) };
}
INLINE vd vd_from(vf x) {
    return (vd) { _mm256_cvtps_pd(_mm256_castps256_ps128(x.a)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1)),
                  _mm256_cvtps_pd(_mm256_castps256_ps128(x.b)), _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1)) };
}
INLINE vf vf_from(vd x) {
    return (vf) { _mm256_set_m128(_mm256_cvtpd_ps(x.b), _mm256_cvtpd_ps(x.a)),
                  _mm256_set_m128(_mm256_cvtpd_ps(x.d), _mm256_cvtpd_ps(x.c)) };
}
FOUR(vd_add, _mm256_add_pd)
FOUR(vd_sub, _mm256_sub_pd)
FOUR(vd_mul, _mm256_mul_pd)
INLINE vd vd_fma(vd x, vd y, vd z) {
    return (vd) { _mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b),
                  _mm256_fmadd_pd(x.c, y.c, z.c), _mm256_fmadd_pd(x.d, y.d, z.d) };
}
INLINE __m256d to_sign(__m256d m, int n) { return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(m), 63 - n)); }
INLINE __m256d flip_pd(__m256d m, int n, __m256d x) {
    return _mm256_xor_pd(x, _mm256_and_pd(to_sign(m, n), _mm256_set1_pd(-0.0)));
}
INLINE vd vd_pick(vd m, int n, vd x, vd y) {
    return (vd) { _mm256_blendv_pd(y.a, x.a, to_sign(m.a, n)), _mm256_blendv_pd(y.b, x.b, to_sign(m.b, n)),
                  _mm256_blendv_pd(y.c, x.c, to_sign(m.c, n)), _mm256_blendv_pd(y.d, x.d, to_sign(m.d, n)) };
}
INLINE vd vd_flip(vd m, int n, vd x) {
    return (vd) { flip_pd(m.a, n, x.a), flip_pd(m.b, n, x.b), flip_pd(m.c, n, x.c), flip_pd(m.d, n, x.d) };
}

INLINE vf vf_swap(vf x) { return (vf) { _mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1) }; }   /* lanes 2i, 2i+1 */

/* The largest lane; lanes are not NaN. */
INLINE float vf_max_all(vf x) {
    const __m256 s8 = _mm256_max_ps(x.b, x.a);
    const __m128 s4 = _mm_max_ps(_mm256_extractf128_ps(s8, 1), _mm256_castps256_ps128(s8));
    const __m128 s2 = _mm_max_ps(_mm_movehl_ps(s4, s4), s4);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(s2), s2));
}

/* Bit i: lane i. */
INLINE uint32_t vm_bits(vm m) { return (uint32_t) _mm256_movemask_ps(m.a) | (uint32_t) _mm256_movemask_ps(m.b) << 8; }

/* Rows become columns: lane j of r[i] goes to lane i of r[j]. */
INLINE void transpose8(__m256 *r) {
    __m256 t[8], u[8];
    for (int i = 0; i < 4; i++) t[2*i] = _mm256_unpacklo_ps(r[2*i], r[2*i + 1]), t[2*i + 1] = _mm256_unpackhi_ps(r[2*i], r[2*i + 1]);
    for (int i = 0; i < 8; i += 4) {
        u[i]     = _mm256_shuffle_ps(t[i],     t[i + 2], 0x44), u[i + 1] = _mm256_shuffle_ps(t[i],     t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44), u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i]     = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
INLINE void vf_transpose(vf *r) {
    __m256 q[4][8];                                     /* quarters: rows 0..7 and 8..15 by columns 0..7 and 8..15 */
    for (int i = 0; i < 8; i++) q[0][i] = r[i].a, q[1][i] = r[i].b, q[2][i] = r[i + 8].a, q[3][i] = r[i + 8].b;
    for (int i = 0; i < 4; i++) transpose8(q[i]);
    for (int i = 0; i < 8; i++) r[i] = (vf) { q[0][i], q[2][i] }, r[i + 8] = (vf) { q[1][i], q[3][i] };
}

/* Lanes 8..15 onto 0..7, then 4..7 onto 0..3, 2..3 onto 0..1, 1 onto 0. */
INLINE float vf_sum(vf x) {
    const __m256 s8 = _mm256_add_ps(x.a, x.b);
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
/* sums[i] = vf_sum(x[i]) of four vectors. */
INLINE void vf_sum4(const vf *x, float *sums) {
    __m256 s8[4], s4[2];
    for (int i = 0; i < 4; i++) s8[i] = _mm256_add_ps(x[i].a, x[i].b);
    for (int i = 0; i < 2; i++) {                       /* rows 2i and 2i+1 side by side */
        s4[i] = _mm256_add_ps(_mm256_permute2f128_ps(s8[2*i], s8[2*i + 1], 0x20), _mm256_permute2f128_ps(s8[2*i], s8[2*i + 1], 0x31));
    }
    const __m256 s2 = _mm256_add_ps(_mm256_shuffle_ps(s4[0], s4[1], 0x44), _mm256_shuffle_ps(s4[0], s4[1], 0xee));
    const __m256 s1 = _mm256_add_ps(_mm256_shuffle_ps(s2, s2, 0x88), _mm256_shuffle_ps(s2, s2, 0xdd));
    _mm_storeu_ps(sums, _mm_unpacklo_ps(_mm256_castps256_ps128(s1), _mm256_extractf128_ps(s1, 1)));
}
INLINE double vd_sum(vd x) {
    const __m256d s4 = _mm256_add_pd(_mm256_add_pd(x.a, x.c), _mm256_add_pd(x.b, x.d));
    const __m128d s2 = _mm_add_pd(_mm256_castpd256_pd128(s4), _mm256_extractf128_pd(s4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s2, _mm_unpackhi_pd(s2, s2)));
}

INLINE vf vf_load_f16(const uint16_t *p) {
    return (vf) { _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p)),
                  _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p + 1)) };
}
INLINE vf vf_load_bf16(const uint16_t *p) {
    const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) p));
    const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) p + 1));
    return (vf) { _mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16)) };
}
INLINE vf vf_load_i8(const int8_t *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *) p);
    return (vf) { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))) };
}
INLINE void vf_store_f16(uint16_t *p, vf x) {
    _mm_storeu_si128((__m128i *) p,     _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *) p + 1, _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
/* The low halves of the words, each below 65536. */
INLINE void vu_store16(uint16_t *p, vu x) {
    const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(x.a, x.b), 0xd8);
    _mm256_storeu_si256((__m256i *) p, halves);
}

#undef ONE
#undef TWO
#undef FOUR
#endif
