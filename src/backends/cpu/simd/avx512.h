#ifndef SIMD_AVX512_H
#define SIMD_AVX512_H
/* The float steps (simd/c.h names them) on 16 lanes for AVX-512 F, BW, DQ and VL: one register, doubles two. */

#include <immintrin.h>
#include "compiler.h"
#include "quant.h"

#define LANES 16
#define ROWS_AT_ONCE 12                         /* rows whose 16 lanes stay in registers in a matrix loop */

typedef __m512                   vf;
typedef __m512i                  vu;
typedef __mmask16                vm;
typedef struct { __m512d a, b; } vd;

INLINE vf vf_set1(float x)           { return _mm512_set1_ps(x); }
INLINE vf vf_load(const float *p)    { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
INLINE vf vf_add(vf x, vf y)         { return _mm512_add_ps(x, y); }
INLINE vf vf_sub(vf x, vf y)         { return _mm512_sub_ps(x, y); }
INLINE vf vf_mul(vf x, vf y)         { return _mm512_mul_ps(x, y); }
INLINE vf vf_div(vf x, vf y)         { return _mm512_div_ps(x, y); }
INLINE vf vf_min(vf x, vf y)         { return _mm512_min_ps(x, y); }
INLINE vf vf_max(vf x, vf y)         { return _mm512_max_ps(x, y); }
INLINE vf vf_sqrt(vf x)              { return _mm512_sqrt_ps(x); }
INLINE vf vf_floor(vf x)             { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
INLINE vf vf_ceil(vf x)              { return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
INLINE vf vf_trunc(vf x)             { return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
INLINE vf vf_fma (vf x, vf y, vf z)  { return _mm512_fmadd_ps(x, y, z); }
INLINE vf vf_fnma(vf x, vf y, vf z)  { return _mm512_fnmadd_ps(x, y, z); }
INLINE vm vf_lt(vf x, vf y)          { return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ); }
INLINE vm vf_eq(vf x, vf y)          { return _mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ); }
INLINE vf vf_select(vm m, vf x, vf y) { return _mm512_mask_blend_ps(m, y, x); }

INLINE vu vu_set1(uint32_t x)        { return _mm512_set1_epi32((int) x); }
INLINE vu vu_of(vf x)                { return _mm512_castps_si512(x); }
INLINE vf vf_of(vu x)                { return _mm512_castsi512_ps(x); }
INLINE vu vu_add(vu x, vu y)         { return _mm512_add_epi32(x, y); }
INLINE vu vu_sub(vu x, vu y)         { return _mm512_sub_epi32(x, y); }
INLINE vu vu_and(vu x, vu y)         { return _mm512_and_si512(x, y); }
INLINE vu vu_or(vu x, vu y)          { return _mm512_or_si512(x, y); }
#define vu_shl(x, n) _mm512_slli_epi32(x, n)
#define vu_shr(x, n) _mm512_srli_epi32(x, n)
#define vu_sar(x, n) _mm512_srai_epi32(x, n)
INLINE vf vf_from_int(vu x)          { return _mm512_cvtepi32_ps(x); }

INLINE vd vd_set1(double x)          { return (vd) { _mm512_set1_pd(x), _mm512_set1_pd(x) }; }
INLINE vd vd_load(const double *p)   { return (vd) { _mm512_loadu_pd(p), _mm512_loadu_pd(p + 8) }; }
INLINE vd vd_from(vf x) {
    return (vd) { _mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)) };
}
INLINE vf vf_from(vd x) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.a)), _mm512_cvtpd_ps(x.b), 1);
}
INLINE vd vd_add(vd x, vd y)         { return (vd) { _mm512_add_pd(x.a, y.a), _mm512_add_pd(x.b, y.b) }; }
INLINE vd vd_sub(vd x, vd y)         { return (vd) { _mm512_sub_pd(x.a, y.a), _mm512_sub_pd(x.b, y.b) }; }
INLINE vd vd_mul(vd x, vd y)         { return (vd) { _mm512_mul_pd(x.a, y.a), _mm512_mul_pd(x.b, y.b) }; }
INLINE vd vd_fma(vd x, vd y, vd z)   { return (vd) { _mm512_fmadd_pd(x.a, y.a, z.a), _mm512_fmadd_pd(x.b, y.b, z.b) }; }
INLINE __mmask8 has_bit(__m512d m, int n) { return _mm512_test_epi64_mask(_mm512_castpd_si512(m), _mm512_set1_epi64(1ll << n)); }
INLINE __m512d flip_pd(__m512d m, int n, __m512d x) {
    return _mm512_mask_xor_pd(x, has_bit(m, n), x, _mm512_set1_pd(-0.0));
}
INLINE vd vd_pick(vd m, int n, vd x, vd y) {
    return (vd) { _mm512_mask_blend_pd(has_bit(m.a, n), y.a, x.a), _mm512_mask_blend_pd(has_bit(m.b, n), y.b, x.b) };
}
INLINE vd vd_flip(vd m, int n, vd x) { return (vd) { flip_pd(m.a, n, x.a), flip_pd(m.b, n, x.b) }; }

INLINE vf vf_swap(vf x) { return _mm512_permute_ps(x, 0xb1); }          /* lanes 2i and 2i+1 */

/* The largest lane; lanes are not NaN. */
INLINE float vf_max_all(vf x) {
    const __m256 s8 = _mm256_max_ps(_mm512_extractf32x8_ps(x, 1), _mm512_castps512_ps256(x));
    const __m128 s4 = _mm_max_ps(_mm256_extractf128_ps(s8, 1), _mm256_castps256_ps128(s8));
    const __m128 s2 = _mm_max_ps(_mm_movehl_ps(s4, s4), s4);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(s2), s2));
}

/* Bit i: lane i. */
INLINE uint32_t vm_bits(vm m) { return m; }

/* Rows become columns: lane j of r[i] goes to lane i of r[j]. First within quarters of registers, then of whole quarters. */
INLINE void vf_transpose(vf *r) {
    __m512 t[16], u[16];
    for (int i = 0; i < 16; i += 2) t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    for (int i = 0; i < 16; i += 4) {
        u[i]     = _mm512_shuffle_ps(t[i],     t[i + 2], 0x44), u[i + 1] = _mm512_shuffle_ps(t[i],     t[i + 2], 0xee);
        u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44), u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {                       /* u[4k + i]: columns i, 4+i, 8+i, 12+i of rows 4k .. 4k+3 */
        const __m512 a = _mm512_shuffle_f32x4(u[i],     u[i + 4],  0x88), b = _mm512_shuffle_f32x4(u[i],     u[i + 4],  0xdd);
        const __m512 c = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88), d = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
        r[i]     = _mm512_shuffle_f32x4(a, c, 0x88), r[i + 8]  = _mm512_shuffle_f32x4(a, c, 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88), r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

/* Lanes 8..15 onto 0..7, then 4..7 onto 0..3, 2..3 onto 0..1, 1 onto 0. */
INLINE float vf_sum(vf x) {
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}
/* sums[i] = vf_sum(x[i]) of four vectors. */
INLINE void vf_sum4(const vf *x, float *sums) {
    __m256 s8[4], s4[2];
    for (int i = 0; i < 4; i++) s8[i] = _mm256_add_ps(_mm512_castps512_ps256(x[i]), _mm512_extractf32x8_ps(x[i], 1));
    for (int i = 0; i < 2; i++) {                       /* rows 2i and 2i+1 side by side */
        s4[i] = _mm256_add_ps(_mm256_permute2f128_ps(s8[2*i], s8[2*i + 1], 0x20), _mm256_permute2f128_ps(s8[2*i], s8[2*i + 1], 0x31));
    }
    const __m256 s2 = _mm256_add_ps(_mm256_shuffle_ps(s4[0], s4[1], 0x44), _mm256_shuffle_ps(s4[0], s4[1], 0xee));
    const __m256 s1 = _mm256_add_ps(_mm256_shuffle_ps(s2, s2, 0x88), _mm256_shuffle_ps(s2, s2, 0xdd));
    _mm_storeu_ps(sums, _mm_unpacklo_ps(_mm256_castps256_ps128(s1), _mm256_extractf128_ps(s1, 1)));
}
INLINE double vd_sum(vd x) {
    const __m512d s8 = _mm512_add_pd(x.a, x.b);
    const __m256d s4 = _mm256_add_pd(_mm512_castpd512_pd256(s8), _mm512_extractf64x4_pd(s8, 1));
    const __m128d s2 = _mm_add_pd(_mm256_castpd256_pd128(s4), _mm256_extractf128_pd(s4, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s2, _mm_unpackhi_pd(s2, s2)));
}

INLINE vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }
INLINE vf vf_load_bf16(const uint16_t *p) {
    return vf_of(vu_shl(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *) p)), 16));
}
INLINE vf vf_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *) p)));
}
INLINE void vf_store_f16(uint16_t *p, vf x) {
    _mm256_storeu_si256((__m256i *) p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
/* The low halves of the words, each below 65536. */
INLINE void vu_store16(uint16_t *p, vu x) { _mm256_storeu_si256((__m256i *) p, _mm512_cvtepi32_epi16(x)); }

#endif
