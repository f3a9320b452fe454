#ifndef EMULATE512_H
#define EMULATE512_H
/* The AVX-512 and VNNI instructions that the integer kernels use, as pairs of 256-bit ones or written out lane by lane, so that
 * those kernels can be tested on machines without them. __m512i and __m512 become our own types. */

#include <immintrin.h>
#include <stdint.h>

struct i512 { __m256i a, b; };
struct f512 { __m256  a, b; };
#define __m512i struct i512
#define __m512  struct f512

#define EMULATE_0(type, name, x)      static inline type name(void) { return (type) { x, x }; }
#define EMULATE_2(type, name, f)      static inline type name(type x, type y) { return (type) { f(x.a, y.a), f(x.b, y.b) }; }
#define EMULATE_3(type, name, f)      static inline type name(type x, type y, type z) { return (type) { f(x.a, y.a, z.a), f(x.b, y.b, z.b) }; }

/* acc + the products of four unsigned and four signed bytes; of two pairs of int16 */
static inline __m256i emulate_dpbusd(__m256i acc, __m256i u, __m256i s) {
    int32_t sum[8];
    uint8_t a[32];
    int8_t  b[32];
    _mm256_storeu_si256((__m256i *) (void *) sum, acc);
    _mm256_storeu_si256((__m256i *) (void *) a, u), _mm256_storeu_si256((__m256i *) (void *) b, s);
    for (int i = 0; i < 32; i++) sum[i/4] += a[i]*b[i];
    return _mm256_loadu_si256((const __m256i *) (const void *) sum);
}
static inline __m256i emulate_dpwssd(__m256i acc, __m256i a, __m256i b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }

EMULATE_0(struct i512, emulate_setzero, _mm256_setzero_si256())
EMULATE_2(struct i512, emulate_add32,   _mm256_add_epi32)
EMULATE_2(struct i512, emulate_add16,   _mm256_add_epi16)
EMULATE_2(struct i512, emulate_madd,    _mm256_madd_epi16)
EMULATE_2(struct i512, emulate_maddubs, _mm256_maddubs_epi16)
EMULATE_3(struct i512, emulate_dpbusd2, emulate_dpbusd)
EMULATE_3(struct i512, emulate_dpwssd2, emulate_dpwssd)
EMULATE_2(struct f512, emulate_mul,     _mm256_mul_ps)
EMULATE_3(struct f512, emulate_fma,     _mm256_fmadd_ps)
EMULATE_3(struct f512, emulate_fnma,    _mm256_fnmadd_ps)
static inline struct i512 emulate_load(const void *p) {
    return (struct i512) { _mm256_load_si256((const __m256i *) p), _mm256_load_si256((const __m256i *) p + 1) };
}
static inline struct i512 emulate_set32(int x) { return (struct i512) { _mm256_set1_epi32(x), _mm256_set1_epi32(x) }; }
static inline struct i512 emulate_set16(short x) { return (struct i512) { _mm256_set1_epi16(x), _mm256_set1_epi16(x) }; }
static inline struct f512 emulate_set1(float x) { return (struct f512) { _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
static inline struct f512 emulate_load_ps(const float *p) { return (struct f512) { _mm256_load_ps(p), _mm256_load_ps(p + 8) }; }
static inline void emulate_store_ps(float *p, struct f512 v) { _mm256_store_ps(p, v.a), _mm256_store_ps(p + 8, v.b); }
static inline struct f512 emulate_from_ints(struct i512 v) { return (struct f512) { _mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b) }; }

#undef  _mm256_dpbusd_epi32
#undef  _mm256_dpwssd_epi32
#define _mm256_dpbusd_epi32  emulate_dpbusd
#define _mm256_dpwssd_epi32  emulate_dpwssd
#define _mm512_setzero_si512 emulate_setzero
#define _mm512_load_si512    emulate_load
#define _mm512_set1_epi32    emulate_set32
#define _mm512_set1_epi16    emulate_set16
#define _mm512_add_epi32     emulate_add32
#define _mm512_add_epi16     emulate_add16
#define _mm512_madd_epi16    emulate_madd
#define _mm512_maddubs_epi16 emulate_maddubs
#define _mm512_dpbusd_epi32  emulate_dpbusd2
#define _mm512_dpwssd_epi32  emulate_dpwssd2
#define _mm512_load_ps       emulate_load_ps
#define _mm512_store_ps      emulate_store_ps
#define _mm512_set1_ps       emulate_set1
#define _mm512_mul_ps        emulate_mul
#define _mm512_fmadd_ps      emulate_fma
#define _mm512_fnmadd_ps     emulate_fnma
#define _mm512_cvtepi32_ps   emulate_from_ints

#endif
