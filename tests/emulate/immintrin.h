#ifndef EMULATE_IMMINTRIN_H
#define EMULATE_IMMINTRIN_H
/* AVX-512 on machines without it: this header stands before the compiler's, which gives AVX2 as it is; SIMDe's portable C
 * gives most of AVX-512, and what its releases lack is written out below. */

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <stdint.h>
#include <string.h>

#define EMULATED_HALVES(type, x) type h[2]; memcpy(h, &(x), sizeof h)
#define LANES_OF(type, name, x) type name[64/sizeof(type)]; memcpy(name, &(x), sizeof name)

static inline __m512 emulated_join(__m256 a, __m256 b) {
    const __m256 h[2] = { a, b };
    __m512 r;
    memcpy(&r, h, sizeof r);
    return r;
}

#undef  _mm512_roundscale_ps                                        /* SIMDe's differs on special values */
#define _mm512_roundscale_ps(x, mode) emulated_join(_mm256_round_ps(emulated_half(x, 0), mode), \
                                                    _mm256_round_ps(emulated_half(x, 1), mode))
static inline __m256 emulated_half(__m512 x, int i) {
    EMULATED_HALVES(__m256, x);
    return h[i];
}
#undef  _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
static inline __m512 emulated_cvtepi32_ps(__m512i x) {
    EMULATED_HALVES(__m256i, x);
    return emulated_join(_mm256_cvtepi32_ps(h[0]), _mm256_cvtepi32_ps(h[1]));
}
#undef  _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16
static inline __m256i emulated_cvtepi32_epi16(__m512i x) {
    LANES_OF(uint32_t, a, x);
    uint16_t b[16];
    for (int i = 0; i < 16; i++) b[i] = (uint16_t) a[i];
    return _mm256_loadu_si256((const __m256i *) b);
}
#undef  _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
static inline __m512i emulated_cvtepu16_epi32(__m256i x) {
    uint16_t a[16];
    uint32_t b[16];
    _mm256_storeu_si256((__m256i *) a, x);
    for (int i = 0; i < 16; i++) b[i] = a[i];
    return _mm512_loadu_si512(b);
}
#undef  _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32
static inline __m512i emulated_cvtepi8_epi32(__m128i x) {
    int8_t a[16];
    int32_t b[16];
    _mm_storeu_si128((__m128i *) a, x);
    for (int i = 0; i < 16; i++) b[i] = a[i];
    return _mm512_loadu_si512(b);
}
#undef  _mm512_cvtpd_ps
#define _mm512_cvtpd_ps emulated_cvtpd_ps
static inline __m256 emulated_cvtpd_ps(__m512d x) {
    EMULATED_HALVES(__m256d, x);
    return _mm256_set_m128(_mm256_cvtpd_ps(h[1]), _mm256_cvtpd_ps(h[0]));
}
#undef  _mm512_cvtps_pd
#define _mm512_cvtps_pd emulated_cvtps_pd
static inline __m512d emulated_cvtps_pd(__m256 x) {
    const __m256d h[2] = { _mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)) };
    __m512d r;
    memcpy(&r, h, sizeof r);
    return r;
}
#undef  _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated_cvtph_ps
static inline __m512 emulated_cvtph_ps(__m256i x) {
    return emulated_join(_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}
#undef  _mm512_cvtps_ph
#define _mm512_cvtps_ph(x, mode) emulated_cvtps_ph(x)               /* to nearest */
static inline __m256i emulated_cvtps_ph(__m512 x) {
    EMULATED_HALVES(__m256, x);
    return _mm256_set_m128i(_mm256_cvtps_ph(h[1], 0), _mm256_cvtps_ph(h[0], 0));
}
#undef  _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps emulated_extractf32x8_ps
static inline __m256 emulated_extractf32x8_ps(__m512 x, int i) {
    EMULATED_HALVES(__m256, x);
    return h[i];
}
#undef  _mm512_permute_ps
#define _mm512_permute_ps emulated_permute_ps
static inline __m512 emulated_permute_ps(__m512 x, int order) {
    LANES_OF(float, a, x);
    float b[16];
    for (int i = 0; i < 16; i++) b[i] = a[i/4*4 + (order >> i%4*2 & 3)];
    return _mm512_loadu_ps(b);
}
#undef  _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 emulated_shuffle_f32x4
static inline __m512 emulated_shuffle_f32x4(__m512 x, __m512 y, int order) {
    LANES_OF(float, a, x);
    LANES_OF(float, b, y);
    float c[16];
    for (int i = 0; i < 16; i++) c[i] = (i < 8 ? a : b)[(order >> i/4*2 & 3)*4 + i%4];
    return _mm512_loadu_ps(c);
}
#undef  _mm512_srai_epi32
#define _mm512_srai_epi32 emulated_srai_epi32
static inline __m512i emulated_srai_epi32(__m512i x, unsigned n) {
    LANES_OF(int32_t, a, x);
    for (int i = 0; i < 16; i++) a[i] >>= n;
    return _mm512_loadu_si512(a);
}

#undef  _mm512_madd_epi16                                           /* SIMDe's alias takes the arguments of another */
#define _mm512_madd_epi16(x, y) simde_mm512_madd_epi16(x, y)

#endif
