#ifndef AVX2_INT_H
#define AVX2_INT_H
/* Integer steps with 256-bit registers, AVX2 or, where the compiler may, VNNI in its 256-bit form.
 *
 * vb: 32 bytes, codes of 32 neighbouring weights. vi: 8 lanes of int32. vf: 8 lanes of float. vs: int16 scales of a block of
 * 256, scale j of elements 32j .. 32j+15 in lane j, that of elements 32j+16 .. 32j+31 in lane 8 + j.
 * Panels: a vector of panel bytes holds 4 neighbouring elements of each of LANES rows. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m256i vb, vi, vs;
typedef __m256  vf;

enum { GEMV_ROWS = 8, GEMV_LANES = 8 };

static inline void prefetch(const void *p) { _mm_prefetch((const char *) p, _MM_HINT_T0); }

/* ---- codes ---- */

static inline vb vb_load(const void *p) { return _mm256_loadu_si256((const __m256i *) p); }
static inline void vb_store(void *p, vb v) { _mm256_storeu_si256((__m256i *) p, v); }
static inline vb vb_halves(const void *first, const void *last) {       /* 16 bytes of each */
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)), _mm_loadu_si128(last), 1);
}
static inline vb vb_or(vb a, vb b) { return _mm256_or_si256(a, b); }
static inline vb vb_and(vb a, vb b) { return _mm256_and_si256(a, b); }
/* (byte >> shift) & mask */
static inline vb vb_bits(vb v, int shift, int mask) {
    return _mm256_and_si256(_mm256_srli_epi16(v, shift), _mm256_set1_epi8((char) mask));
}
/* the bits of `mask`, at `from` in v, moved to `to` */
static inline vb vb_field(vb v, int from, int mask, int to) {
    const vb moved = from >= to ? _mm256_srli_epi16(v, from - to) : _mm256_slli_epi16(v, to - from);
    return _mm256_and_si256(moved, _mm256_set1_epi8((char) (mask << to)));
}
/* 16 bytes of nibbles: the low ones first, then the high ones */
static inline vb vb_nibbles(const void *p) {
    const __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) p));
    return _mm256_and_si256(_mm256_srlv_epi32(v, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)), _mm256_set1_epi8(15));
}
/* -1 in byte i where bit i of 32 is set */
static inline vb vb_where(uint32_t bits) {
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i each = _mm256_set1_epi64x((long long) 0x8040201008040201);
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int32_t) bits), bytes), each), each);
}
/* the same of twice 32 bits: of the first halves of both, then of the second halves */
static inline void vb_where_pair(const void *first, const void *last, vb u[2]) {
    int32_t a, b;
    memcpy(&a, first, 4), memcpy(&b, last, 4);
    const __m256i bytes = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0404040404040404, 0x0505050505050505);
    const __m256i each = _mm256_set1_epi64x((long long) 0x8040201008040201);
    const __m256i v = _mm256_broadcastq_epi64(_mm_insert_epi32(_mm_cvtsi32_si128(a), b, 1));
    const __m256i w = _mm256_srli_epi64(v, 16);
    u[0] = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(v, bytes), each), each);
    u[1] = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(w, bytes), each), each);
}
/* the same of parts `part` and `part` + 1 of four times 32 bits; part is 0 or 2 */
static inline void vb_where_parts(const void *p, int part, vb u[2]) {
    const __m256i bytes = _mm256_add_epi8(_mm256_setr_epi64x(0, 0x0101010101010101, 0x0404040404040404, 0x0505050505050505),
                                          _mm256_set1_epi8((char) (4*part)));
    const __m256i each = _mm256_set1_epi64x((long long) 0x8040201008040201);
    const __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) p));
    u[0] = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(v, bytes), each), each);
    u[1] = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(v, _mm256_add_epi8(bytes, _mm256_set1_epi8(2))), each), each);
}
/* bit i of 32 as 16 in byte i */
static inline vb vb_spread(uint32_t bits) { return _mm256_and_si256(vb_where(bits), _mm256_set1_epi8(16)); }
static inline vb vb_set(int x) { return _mm256_set1_epi8((char) x); }
static inline vb vb_add(vb a, vb b) { return _mm256_add_epi8(a, b); }
static inline vb vb_sub(vb a, vb b) { return _mm256_sub_epi8(a, b); }
/* -1 in each byte that is at least n, unsigned */
static inline vb vb_at_least(vb v, int n) { return _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8((char) n)), v); }
/* bytes times factors, modulo 256, one for each two neighbours */
static inline vb vb_times(vb v, const uint16_t factors[16]) {
    const __m256i f = vb_load(factors), even = _mm256_mullo_epi16(v, f), odd = _mm256_mullo_epi16(_mm256_srli_epi16(v, 8), f);
    return _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(255)), _mm256_slli_epi16(odd, 8));
}
/* table[byte] for bytes below 16 */
static inline vb vb_lookup(const int8_t table[16], vb v) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (const void *) table)), v);
}
/* of four times eight bytes the second and the third change places */
static inline vb vb_zip_eights(vb v) { return _mm256_permute4x64_epi64(v, 0xd8); }
/* eights 0 and 2 of a, each followed by that of b; eights 1 and 3 */
static inline vb vb_even_eights(vb a, vb b) { return _mm256_unpacklo_epi64(a, b); }
static inline vb vb_odd_eights(vb a, vb b) { return _mm256_unpackhi_epi64(a, b); }
/* elements 2i, 2i + 1, 16 + 2i, 17 + 2i in each four */
static inline vb vb_paired(vb v) {
    const __m256i order = _mm256_setr_epi64x(0x0b0a030209080100, 0x0f0e07060d0c0504, 0x0b0a030209080100, 0x0f0e07060d0c0504);
    return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(v, 0xd8), order);
}
/* magnitudes and signs, bytes of 1 and -1 */
static inline vb vb_signed(vb size, vb signs) { return _mm256_sign_epi8(size, signs); }
/* the pairs of bits of eight bytes, in order */
static inline vb vb_quarters(uint64_t bytes) {
    const __m256i v = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long) bytes));
    const __m256i w = _mm256_or_si256(v, _mm256_slli_epi32(v, 12));
    return _mm256_and_si256(_mm256_or_si256(w, _mm256_slli_epi32(w, 6)), _mm256_set1_epi8(3));
}
/* entries of a table of eight bytes each; eight of four bytes, with a ninth bit of their numbers from `high` */
static inline vb vb_eights(const uint64_t *table, unsigned a, unsigned b, unsigned c, unsigned d) {
    return _mm256_set_epi64x((long long) table[d], (long long) table[c], (long long) table[b], (long long) table[a]);
}
/* numbers of 16 entries: a byte of q, above it the bits of `mask` of two bytes of the eight at `high`, those named (255: none), times a factor */
static inline void vb_numbers(const uint8_t *q, const uint8_t *high, const uint8_t places[32], const uint16_t factors[16], int mask,
                              uint16_t at[16]) {
    const __m256i words = _mm256_shuffle_epi8(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *) (const void *) high)), vb_load(places));
    const __m256i above = _mm256_and_si256(_mm256_mullo_epi16(words, vb_load(factors)), _mm256_set1_epi16((short) mask));
    vb_store(at, _mm256_or_si256(above, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *) (const void *) q))));
}
/* -1 in the bytes of eight i where bit 16j + 4i + 3 of eight bytes is not set */
static inline vb vb_eights_without(const uint8_t bits[8], int j) {
    const __m256i each = _mm256_slli_epi64(_mm256_setr_epi64x(0x8, 0x80, 0x800, 0x8000), 16*j);
    const __m256i v = _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *) (const void *) bits));
    return _mm256_cmpeq_epi64(_mm256_and_si256(v, each), _mm256_setzero_si256());
}
static inline vb vb_fours(const uint32_t *table, const uint8_t *q, unsigned high) {
    uint16_t at[8];
    const __m128i bits = _mm_and_si128(_mm_set1_epi16((short) high), _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128));
    const __m128i ninth = _mm_mullo_epi16(bits, _mm_setr_epi16(256, 128, 64, 32, 16, 8, 4, 2));
    _mm_storeu_si128((__m128i *) (void *) at, _mm_or_si128(ninth, _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *) (const void *) q))));
    return _mm256_setr_epi32((int32_t) table[at[0]], (int32_t) table[at[1]], (int32_t) table[at[2]], (int32_t) table[at[3]],
                             (int32_t) table[at[4]], (int32_t) table[at[5]], (int32_t) table[at[6]], (int32_t) table[at[7]]);
}
static inline vb vb_fours_of_256(const uint32_t *table, const uint8_t *q) {
    return _mm256_setr_epi32((int32_t) table[q[0]], (int32_t) table[q[1]], (int32_t) table[q[2]], (int32_t) table[q[3]],
                             (int32_t) table[q[4]], (int32_t) table[q[5]], (int32_t) table[q[6]], (int32_t) table[q[7]]);
}

/* bit `bit` of each byte */
static inline uint32_t vb_mask(vb v, int bit) { return (uint32_t) _mm256_movemask_epi8(_mm256_slli_epi16(v, 7 - bit)); }
static inline vb vb_least(vb v, int n) { return _mm256_min_epu8(v, _mm256_set1_epi8((char) n)); }
static inline vb vb_minus(vb v, int n) { return _mm256_sub_epi8(v, _mm256_set1_epi8((char) n)); }
/* vb_nibbles undone */
static inline void vb_store_nibbles(void *p, vb v) {
    const __m256i w = _mm256_and_si256(v, _mm256_set1_epi8(15));
    _mm_storeu_si128(p, _mm_or_si128(_mm256_castsi256_si128(w), _mm256_extracti128_si256(_mm256_slli_epi16(w, 4), 1)));
}

/* ---- scales of a block of 256 ---- */

static inline vs vs_eight(uint64_t bytes) { return _mm256_cvtepu8_epi16(_mm_set1_epi64x((long long) bytes)); }
static inline vs vs_sixteen(__m128i bytes) {            /* in the order of elements, signed */
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, order));
}
static inline vs vs_bytes(uint64_t even, uint64_t odd) {        /* signed, those of even groups apart */
    return _mm256_cvtepi8_epi16(_mm_set_epi64x((long long) odd, (long long) even));
}
static inline vs vs_in_order(uint64_t first, uint64_t last) {
    return vs_sixteen(_mm_set_epi64x((long long) last, (long long) first));
}
static inline vs vs_signed(const void *p) { return vs_sixteen(_mm_loadu_si128((const __m128i *) p)); }
static inline vs vs_low(const void *p) {
    return vs_sixteen(_mm_and_si128(_mm_loadu_si128((const __m128i *) p), _mm_set1_epi8(15)));
}
static inline vs vs_high(const void *p) {
    return vs_sixteen(_mm_and_si128(_mm_srli_epi16(_mm_loadu_si128((const __m128i *) p), 4), _mm_set1_epi8(15)));
}
/* (word j >> shift) & mask for both groups of 32 elements */
static inline vs vs_words(const uint16_t p[8], int shift, int mask) {
    const __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (const void *) p));
    return _mm256_and_si256(_mm256_srli_epi16(v, shift), _mm256_set1_epi16((short) mask));
}
static inline vs vs_product(vs a, vs b) { return _mm256_mullo_epi16(a, b); }
static inline vs vs_minus(vs v, int n) { return _mm256_sub_epi16(v, _mm256_set1_epi16((short) n)); }
/* each times one of eight, those of odd groups as those of even ones */
static inline vs vs_times(vs v, const int16_t f[8]) {
    return _mm256_mullo_epi16(v, _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *) (const void *) f)));
}
static inline vs vs_load(const int16_t *p) { return _mm256_loadu_si256((const __m256i *) (const void *) p); }
static inline void vs_store(int16_t *p, vs v) { _mm256_storeu_si256((__m256i *) (void *) p, v); }

/* ---- sums of one row ---- */

static inline vi vi_zero(void) { return _mm256_setzero_si256(); }
static inline vi vi_load(const int32_t *p) { return _mm256_load_si256((const __m256i *) (const void *) p); }
static inline void vi_store(int32_t *p, vi v) { _mm256_store_si256((__m256i *) (void *) p, v); }
static inline vi vi_set(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_times(vi a, int n) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(n)); }

/* Two blocks of 32: codes u[0] of their first halves, u[1] of their second halves, times q in the same order, each two times the
 * fine scale that stands for them. Four lanes add up to the product of the first block, the other four to that of the second.
 * Codes are unsigned below 64, or signed. */
static inline vi vi_dot_pair(const vb u[2], const int8_t *q, const int16_t *fine) {
    return _mm256_add_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(u[0], vb_load(q)),      vb_load(fine)),
                            _mm256_madd_epi16(_mm256_maddubs_epi16(u[1], vb_load(q + 32)), vb_load(fine + 16)));
}
static inline vi vi_dot_signed(vb w, const int8_t *q, const int16_t *fine) {
    const __m256i size = _mm256_sign_epi8(w, w), signs = _mm256_sign_epi8(vb_load(q), w);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(size, signs), vb_load(fine));
}
static inline vi vi_dot_pair_signed(const vb w[2], const int8_t *q, const int16_t *fine) {
    return _mm256_add_epi32(vi_dot_signed(w[0], q, fine), vi_dot_signed(w[1], q + 32, fine + 16));
}
/* scales j and 8 + j where the products of elements 32j .. 32j+31 are; from a table, since j counts a loop */
static inline vs vs_spread(vs s, int j) {
    static const uint32_t places[8] = {
        0x01000100, 0x03020302, 0x05040504, 0x07060706, 0x09080908, 0x0b0a0b0a, 0x0d0c0d0c, 0x0f0e0f0e,
    };
    return _mm256_shuffle_epi8(s, _mm256_set1_epi32((int32_t) places[j]));
}
/* acc + scale j times that product; a lane's product of 4 fits 16 bits, so its low half times the scale is all of it */
static inline vi vi_dot_scaled(vi acc, vb u, const int8_t *q, vs s, int j) {
#ifdef __AVX512VNNI__
    const __m256i p = _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, vb_load(q));
    return _mm256_dpwssd_epi32(acc, p, _mm256_shuffle_epi8(s, _mm256_set1_epi32((int32_t) 0x80800100 + j*0x0202)));
#else
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(u, vb_load(q)), vs_spread(s, j)));
#endif
}
/* the same for magnitudes below 128 with signs, and for signed codes above -128 */
static inline vi vi_dot_scaled_signs(vi acc, vb size, vb signs, const int8_t *q, vs s, int j) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(vb_load(q), signs)), vs_spread(s, j)));
}
static inline vi vi_dot_scaled_signed(vi acc, vb w, const int8_t *q, vs s, int j) {
    return vi_dot_scaled_signs(acc, _mm256_sign_epi8(w, w), w, q, s, j);
}
/* lanes that add up to the sum of scale x sum over the 16 groups of a block of 256 */
static inline vi vi_scaled_sums(vs s, const int16_t *sums) { return _mm256_madd_epi16(s, vb_load(sums)); }

/* In both halves of lane r: the sum of that half of vector r of four. (Unpacking and adding takes a third of the time of hadd.) */
static inline vi halves_of_four(const int32_t *p) {
    const vi a = vi_load(p), b = vi_load(p + 8), c = vi_load(p + 16), d = vi_load(p + 24);
    const vi e = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    const vi f = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_add_epi32(_mm256_unpacklo_epi64(e, f), _mm256_unpackhi_epi64(e, f));
}

/* pairs of blocks: lane r of *first and *last from the two halves of vector r of eight */
static inline void vi_reduce_pair(const int32_t *p, vi *first, vi *last) {
    const vi e = halves_of_four(p), f = halves_of_four(p + 32);
    *first = _mm256_permute2x128_si256(e, f, 0x20), *last = _mm256_permute2x128_si256(e, f, 0x31);
}
/* lane r: the sum of the lanes of vector r of eight */
static inline vi vi_reduce(const int32_t *p) {
    vi first, last;
    vi_reduce_pair(p, &first, &last);
    return _mm256_add_epi32(first, last);
}

/* ---- floats, a lane is an output ---- */

static inline vf vf_zero(void) { return _mm256_setzero_ps(); }
static inline vf vf_set(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vf vf_from_ints(vi v) { return _mm256_cvtepi32_ps(v); }
static inline vf vf_from_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) (const void *) p)); }
static inline float float_of_half(uint16_t h) { return _cvtsh_ss(h); }
static inline uint16_t half_of_float(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }
/* eight pairs of halves: the low ones and the high ones */
static inline void vf_from_pairs(const uint32_t *p, vf *low, vf *high) {
    const __m256i v = vb_load(p), order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                                                           0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i w = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, order), 0xd8);
    *low = _mm256_cvtph_ps(_mm256_castsi256_si128(w)), *high = _mm256_cvtph_ps(_mm256_extracti128_si256(w, 1));
}

/* y[i] = code i*d + m of signed bytes, rounded twice */
static inline void vb_floats(vb u, float d, float m, float *y) {
    const __m128i halves[2] = { _mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1) };
    for (int i = 0; i < 4; i++) {
        const __m256i w = _mm256_cvtepi8_epi32(i % 2 ? _mm_srli_si128(halves[i/2], 8) : halves[i/2]);
        vf_store(y + 8*i, vf_add(vf_mul(vf_from_ints(w), vf_set(d)), vf_set(m)));
    }
}

/* ---- activations ---- */

/* greatest |x| of n floats as a bit pattern; n a multiple of 32 */
static inline uint32_t greatest_bits(int n, const float *x) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i a = _mm256_setzero_si256(), b = a;
    for (int i = 0; i < n; i += 16) {
        a = _mm256_max_epu32(a, _mm256_and_si256(vb_load(x + i), mask));
        b = _mm256_max_epu32(b, _mm256_and_si256(vb_load(x + i + 8), mask));
    }
    a = _mm256_max_epu32(a, b);
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t) _mm_cvtsi128_si32(m);
}

/* the greatest |x| of eight groups of n floats, 16 or 32, as bit patterns */
static inline __m256i greatest_lanes(int n, const float *x) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i a = _mm256_and_si256(vb_load(x), mask);
    for (int i = 8; i < n; i += 8) a = _mm256_max_epu32(a, _mm256_and_si256(vb_load(x + i), mask));
    return a;
}
static inline __m256i greatest_of_four(const float *const at[4], int n) {           /* of lane r of both halves */
    const __m256i a = greatest_lanes(n, at[0]), b = greatest_lanes(n, at[1]), c = greatest_lanes(n, at[2]), d = greatest_lanes(n, at[3]);
    const __m256i e = _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    const __m256i f = _mm256_max_epu32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_max_epu32(_mm256_unpacklo_epi64(e, f), _mm256_unpackhi_epi64(e, f));
}
static inline void greatest_eight(const float *const at[8], int n, uint32_t most[8]) {
    const __m256i a = greatest_of_four(at, n), b = greatest_of_four(at + 4, n);
    vb_store(most, _mm256_max_epu32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)));
}

/* x*scale rounded half away from zero: what is cut off after adding the float just below one half is right for every float */
static inline __m256i round_away(const float *x, __m256 scale) {
    const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x), scale), sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    return _mm256_cvttps_epi32(_mm256_add_ps(v, _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f))));
}
/* 32 integers to signed bytes */
static inline vb pack_words(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i v = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
static inline vb round_codes(const float *x, float scale, float last) {             /* of 16 floats each */
    const __m256 s = _mm256_set1_ps(scale), t = _mm256_set1_ps(last);
    return pack_words(round_away(x, s), round_away(x + 8, s), round_away(x + 16, t), round_away(x + 24, t));
}
/* least and greatest of 32 floats, none a NaN */
static inline void block_range(const float *x, float *least, float *most) {
    const __m256 a = vf_load(x), b = vf_load(x + 8), c = vf_load(x + 16), d = vf_load(x + 24);
    const __m256 lo = _mm256_min_ps(_mm256_min_ps(a, b), _mm256_min_ps(c, d)), hi = _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
    /* the least as the greatest of the negated, so that one tree does for both */
    __m256 v = _mm256_xor_ps(_mm256_permute2f128_ps(lo, hi, 0x20), _mm256_setr_ps(-0.0f, -0.0f, -0.0f, -0.0f, 0, 0, 0, 0));
    v = _mm256_max_ps(v, _mm256_xor_ps(_mm256_permute2f128_ps(lo, hi, 0x31), _mm256_setr_ps(-0.0f, -0.0f, -0.0f, -0.0f, 0, 0, 0, 0)));
    v = _mm256_max_ps(v, _mm256_permute_ps(v, 0x4e));
    v = _mm256_max_ps(v, _mm256_permute_ps(v, 0xb1));
    *least = -_mm256_cvtss_f32(v), *most = _mm_cvtss_f32(_mm256_extractf128_ps(v, 1));
}
/* (x - from)*scale + plus, each step rounded, cut to the integer below; results within 0 .. 255 */
static inline __m256i cut(const float *x, __m256 from, __m256 scale, __m256 plus) {
    return _mm256_cvttps_epi32(_mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x), from), scale), plus));
}
static inline vb cut_codes(const float *x, float from, float scale, float plus) {
    const __m256 f = vf_set(from), s = vf_set(scale), p = vf_set(plus);
    return pack_words(cut(x, f, s, p), cut(x + 8, f, s, p), cut(x + 16, f, s, p), cut(x + 24, f, s, p));
}
/* the sums of the first and of the last 16 bytes */
static inline void vb_sums(vb q, int *first, int *last) {
    const __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
    const __m256i two = _mm256_add_epi32(four, _mm256_shuffle_epi32(four, 0x4e));
    const __m256i one = _mm256_add_epi32(two, _mm256_shuffle_epi32(two, 0xb1));
    *first = _mm256_extract_epi32(one, 0), *last = _mm256_extract_epi32(one, 4);
}

/* ---- tiles: LANES rows a vector, TILE_VECTORS of them by TILE_COLUMNS ---- */

#define READ_CODES      read_codes_avx2
#define WIDE_SCALED     1       /* signed codes of blocks of 256 stand as int16 with their scale in them */

/* 16 signed codes times a scale as int16 */
static inline vb t_widen(const int8_t *q, int scale) {
    return _mm256_mullo_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *) (const void *) q)), _mm256_set1_epi16((short) scale));
}

static inline int32_t twice_16(int x) { return (int32_t) (((uint32_t) x & 0xffff)*0x10001); }
/* -offset times the sums of q[0 .. span-1], of places 0, 1 and of places 2, 3 of each four, as a pair of int16 */
static inline int32_t offset_pair(const int8_t *q, int span, int offset) {
    __m128i s = _mm_setzero_si128();
    for (int i = 0; i < span; i += 16) {
        s = _mm_add_epi16(s, _mm_maddubs_epi16(_mm_set1_epi8(1), _mm_loadu_si128((const __m128i *) (const void *) (q + i))));
    }
    s = _mm_add_epi16(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi16(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(_mm_mullo_epi16(s, _mm_set1_epi16((short) -offset)));
}

/* -offset times the sums of q[0 .. 15] and of q[16 .. 31], as a pair of int16 */
static inline int32_t offset_halves(const int8_t *q, int offset) {
    int first, last;
    vb_sums(vb_load(q), &first, &last);
    return (int32_t) (((uint32_t) (-offset*first) & 0xffff) | (uint32_t) (-offset*last) << 16);
}

#ifndef TILES_OF_512_BITS
#define READS_CODES     1       /* codes.c is compiled */
#define GEMV_OF_ALL     1       /* quant_gemv.c is; wider sets keep its kernels where theirs would be the same */
enum { LANES = 8, TILE_VECTORS = 2, TILE_COLUMNS = 6 };
#define SUM_BITS    16          /* of the sums of products, which pair up neighbours; 32: four of them; 0: no limit */
#define BYTES_WIDE  1           /* signed bytes stand as int16 */
#define BYTES_START 0           /* or have this added */
#define SUMS_KEPT   1           /* sums of a block wait in memory */

typedef __m256i tv;             /* panel bytes, int32 lanes, or pairs of 16-bit sums */
typedef __m256  tf;

static inline tv   t_zero(void) { return _mm256_setzero_si256(); }
static inline tv   t_load(const void *p) { return _mm256_load_si256((const __m256i *) p); }
static inline tv   t_all(const void *p) { return _mm256_castps_si256(_mm256_broadcast_ss((const float *) p)); }
/* the sums so far and codes w times activations a; 16 bits may wrap on the way and come right again */
static inline tv   t_dot(tv sum, tv w, tv a) { return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, a)); }
static inline tv   t_dot_wide(tv sum, tv w, tv a) { return _mm256_add_epi32(sum, _mm256_madd_epi16(w, a)); }
/* int32 lanes: acc + scale*sums, acc + the products of pairs of int16; sums of scales */
static inline tv   t_scale(tv acc, tv sum, tv scale) { return _mm256_add_epi32(acc, _mm256_madd_epi16(sum, scale)); }
static inline tv   t_plus(tv a, tv b) { return _mm256_add_epi16(a, b); }
static inline void t_store(void *p, tv v) { _mm256_store_si256((__m256i *) p, v); }
static inline tv   t_pairs(tv acc, tv w, tv a) { return _mm256_add_epi32(acc, _mm256_madd_epi16(w, a)); }
/* a scale as t_scale takes it; what sums over q[0 .. span-1] start with to have `offset` taken from each code */
static inline int32_t scale_word(int scale) { return twice_16(scale); }
static inline int32_t offset_word(const int8_t *q, int span, int offset) { return offset_pair(q, span, offset); }

static inline tf   tf_load(const float *p) { return _mm256_load_ps(p); }
static inline void tf_store(float *p, tf v) { _mm256_storeu_ps(p, v); }
static inline tf   tf_at(const float *p) { return _mm256_broadcast_ss(p); }
static inline tf   tf_mul(tf a, tf b) { return _mm256_mul_ps(a, b); }
static inline tf   tf_fma(tf a, tf b, tf c) { return _mm256_fmadd_ps(a, b, c); }
static inline tf   tf_fnma(tf a, tf b, tf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline tf   tf_from_ints(tv v) { return _mm256_cvtepi32_ps(v); }
#endif

static inline void floats_from_halves(float *y, const uint16_t *x) {            /* eight */
    _mm256_storeu_ps(y, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) (const void *) x)));
}

/* Dwords of 8 rows u to columns: dword i of row r goes to out + i*step + 4r. With a step below 32 bytes rows beyond it are
 * written over by the next column, since columns are stored in their order; the last one reaches 32 bytes. */
static inline void transpose_dwords(const vb u[8], uint8_t *out, size_t step) {
    vb a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2*i]     = _mm256_unpacklo_epi32(u[2*i], u[2*i + 1]);
        a[2*i + 1] = _mm256_unpackhi_epi32(u[2*i], u[2*i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[4*i]     = _mm256_unpacklo_epi64(a[4*i],     a[4*i + 2]);
        b[4*i + 1] = _mm256_unpackhi_epi64(a[4*i],     a[4*i + 2]);
        b[4*i + 2] = _mm256_unpacklo_epi64(a[4*i + 1], a[4*i + 3]);
        b[4*i + 3] = _mm256_unpackhi_epi64(a[4*i + 1], a[4*i + 3]);
    }
    for (int i = 0; i < 4; i++) vb_store(out + (size_t) i*step,       _mm256_permute2x128_si256(b[i], b[4 + i], 0x20));
    for (int i = 0; i < 4; i++) vb_store(out + (size_t) (4 + i)*step, _mm256_permute2x128_si256(b[i], b[4 + i], 0x31));
}
/* The same of codes widened to 16 bits, the halves of each row times its two fine scales: 16 dwords a row. */
static inline void transpose_wide(const vb u[8], int16_t fine[8][2], uint8_t *out, size_t step) {
    vb v[8];
    for (int r = 0; r < 8; r++) v[r] = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(u[r])), _mm256_set1_epi16(fine[r][0]));
    transpose_dwords(v, out, step);
    for (int r = 0; r < 8; r++) v[r] = _mm256_mullo_epi16(_mm256_cvtepi8_epi16(_mm256_extracti128_si256(u[r], 1)), _mm256_set1_epi16(fine[r][1]));
    transpose_dwords(v, out + 8*step, step);
}

#endif
