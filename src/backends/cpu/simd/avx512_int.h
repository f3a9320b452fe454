#ifndef AVX512_INT_H
#define AVX512_INT_H
/* Integer steps with AVX-512, with VNNI where the compiler may. A row at a time uses 256-bit registers: memory is the limit
 * there, and blocks of 32 fit. Tiles are 16 lanes wide; with VNNI sums of products have 32 bits from the start. */

#define TILES_OF_512_BITS
#include "avx2_int.h"

enum { LANES = 16, TILE_VECTORS = 2, TILE_COLUMNS = 6 };
#define SUMS_KEPT   0

typedef __m512i tv;
typedef __m512  tf;

static inline tv   t_zero(void) { return _mm512_setzero_si512(); }
static inline tv   t_load(const void *p) { return _mm512_load_si512(p); }
static inline tv   t_all(const void *p) { int32_t x; memcpy(&x, p, 4); return _mm512_set1_epi32(x); }
static inline tv   t_dot_wide(tv sum, tv w, tv a) { return _mm512_add_epi32(sum, _mm512_madd_epi16(w, a)); }
static inline tv   t_pairs(tv acc, tv w, tv a) { return _mm512_add_epi32(acc, _mm512_madd_epi16(w, a)); }

#ifdef __AVX512VNNI__
#define GEMV_OF_SOME 1          /* those whose products gain; the others, and all without VNNI, are as they are with AVX2 */
#define SUM_BITS    32
#define BYTES_WIDE  0           /* signed bytes become unsigned, 128 more, which the starts take away again */
#define BYTES_START 128
static inline tv   t_dot(tv sum, tv w, tv a) { return _mm512_dpbusd_epi32(sum, w, a); }
/* a sum that fits 16 bits is its own low half; the high half meets zero */
static inline tv   t_scale(tv acc, tv sum, tv scale) { return _mm512_dpwssd_epi32(acc, sum, scale); }
static inline int32_t scale_word(int scale) { return (int32_t) ((uint32_t) scale & 0xffff); }
static inline int32_t offset_word(const int8_t *q, int span, int offset) {
    int sum = 0;
    for (int i = 0; i < span; i++) sum += q[i];
    return -offset*sum;
}
#else
#define SUM_BITS    16
#define BYTES_WIDE  1
#define BYTES_START 0
static inline tv   t_dot(tv sum, tv w, tv a) { return _mm512_add_epi16(sum, _mm512_maddubs_epi16(w, a)); }
static inline tv   t_scale(tv acc, tv sum, tv scale) { return _mm512_add_epi32(acc, _mm512_madd_epi16(sum, scale)); }
static inline int32_t scale_word(int scale) { return twice_16(scale); }
static inline int32_t offset_word(const int8_t *q, int span, int offset) { return offset_pair(q, span, offset); }
#endif

static inline tv   t_plus(tv a, tv b) { return _mm512_add_epi16(a, b); }
static inline void t_store(void *p, tv v) { _mm512_store_si512((__m512i *) p, v); }
static inline tv   t_scale_wide(tv acc, tv sum, tv scale) { return _mm512_add_epi32(acc, _mm512_mullo_epi32(sum, scale)); }

static inline tf   tf_load(const float *p) { return _mm512_load_ps(p); }
static inline void tf_store(float *p, tf v) { _mm512_store_ps(p, v); }
static inline tf   tf_at(const float *p) { return _mm512_set1_ps(*p); }
static inline tf   tf_mul(tf a, tf b) { return _mm512_mul_ps(a, b); }
static inline tf   tf_fma(tf a, tf b, tf c) { return _mm512_fmadd_ps(a, b, c); }
static inline tf   tf_fnma(tf a, tf b, tf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline tf   tf_from_ints(tv v) { return _mm512_cvtepi32_ps(v); }

#endif
