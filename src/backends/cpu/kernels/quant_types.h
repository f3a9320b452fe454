#ifndef QUANT_TYPES_H
#define QUANT_TYPES_H
/* How each quantised type reads itself, in the steps of the instruction set: codes of 32 neighbouring weights in their order
 * (unsigned, the offset still in them; signed for Q8_0, IQ4 and NVFP4; magnitudes with the signs apart for IQ2 and IQ3), and the
 * scales and minimums of a block of 256. */

#include "codes.h"
#include "quant.h"

/* ---- blocks of 32: one, or two as vi_dot_pair wants them ---- */

static inline uint32_t u32_at(const void *p) { uint32_t u; memcpy(&u, p, 4); return u; }

static inline vb codes_q4_0(const block_q4_0 *w) { return vb_nibbles(w->qs); }
static inline vb codes_q4_1(const block_q4_1 *w) { return vb_nibbles(w->qs); }
static inline vb codes_q5_0(const block_q5_0 *w) { return vb_or(vb_nibbles(w->qs), vb_spread(u32_at(w->qh))); }
static inline vb codes_q5_1(const block_q5_1 *w) { return vb_or(vb_nibbles(w->qs), vb_spread(u32_at(w->qh))); }
static inline vb codes_q8_0(const block_q8_0 *w) { return vb_load(w->qs); }

static inline void nibble_pair(const uint8_t *first, const uint8_t *last, vb u[2]) {
    const vb v = vb_halves(first, last);
    u[0] = vb_bits(v, 0, 15), u[1] = vb_bits(v, 4, 15);
}
static inline void fifth_bit_pair(const uint8_t *first, const uint8_t *last, vb u[2]) {
    vb bits[2];
    vb_where_pair(first, last, bits);
    u[0] = vb_or(u[0], vb_and(bits[0], vb_set(16))), u[1] = vb_or(u[1], vb_and(bits[1], vb_set(16)));
}
static inline void pair_q4_0(const block_q4_0 *w, const block_q4_0 *v, vb u[2]) { nibble_pair(w->qs, v->qs, u); }
static inline void pair_q4_1(const block_q4_1 *w, const block_q4_1 *v, vb u[2]) { nibble_pair(w->qs, v->qs, u); }
static inline void pair_q5_0(const block_q5_0 *w, const block_q5_0 *v, vb u[2]) {
    nibble_pair(w->qs, v->qs, u), fifth_bit_pair(w->qh, v->qh, u);
}
static inline void pair_q5_1(const block_q5_1 *w, const block_q5_1 *v, vb u[2]) {
    nibble_pair(w->qs, v->qs, u), fifth_bit_pair(w->qh, v->qh, u);
}
static inline void pair_q8_0(const block_q8_0 *w, const block_q8_0 *v, vb u[2]) {
    u[0] = vb_halves(w->qs, v->qs), u[1] = vb_halves(w->qs + 16, v->qs + 16);
}

static const int8_t fp4_above_12[16] = { 12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0 };

static inline vb codes_iq4_nl(const block_iq4_nl *w) { return vb_lookup(iq4_values,   vb_nibbles(w->qs)); }
static inline vb codes_mxfp4 (const block_mxfp4  *w) { return vb_lookup(fp4_above_12, vb_nibbles(w->qs)); }
static inline void nibble_pair_lookup(const int8_t table[16], const uint8_t *first, const uint8_t *last, vb u[2]) {
    nibble_pair(first, last, u);
    u[0] = vb_lookup(table, u[0]), u[1] = vb_lookup(table, u[1]);
}
static inline void pair_iq4_nl(const block_iq4_nl *w, const block_iq4_nl *v, vb u[2]) { nibble_pair_lookup(iq4_values, w->qs, v->qs, u); }
static inline void pair_mxfp4(const block_mxfp4 *w, const block_mxfp4 *v, vb u[2]) { nibble_pair_lookup(fp4_above_12, w->qs, v->qs, u); }

/* ---- blocks of 64 and 128: a part of 32, or a pair of parts ---- */

static inline vb codes_q1_0(const block_q1_0 *w, int part) { return vb_and(vb_where(u32_at(w->qs + 4*part)), vb_set(2)); }
static inline void pair_q1_0(const block_q1_0 *w, int part, vb u[2]) {
    vb_where_parts(w->qs, part, u);
    u[0] = vb_and(u[0], vb_set(2)), u[1] = vb_and(u[1], vb_set(2));
}
static inline uint64_t two_words(const uint8_t *first, const uint8_t *last) { return u32_at(first) | (uint64_t) u32_at(last) << 32; }
static inline vb codes_q2_0(const block_q2_0 *w, int part) { return vb_quarters(two_words(w->qs + 8*part, w->qs + 8*part + 4)); }
static inline void pair_q2_0(const block_q2_0 *w, int part, vb u[2]) {
    (void) part;
    u[0] = vb_quarters(two_words(w->qs, w->qs + 8)), u[1] = vb_quarters(two_words(w->qs + 4, w->qs + 12));
}
static inline vb codes_nvfp4(const block_nvfp4 *w, int part) { return vb_lookup(fp4_values, vb_zip_eights(vb_nibbles(w->qs + 16*part))); }
static inline void pair_nvfp4(const block_nvfp4 *w, int part, vb u[2]) {
    const vb v = vb_load(w->qs), low = vb_lookup(fp4_values, vb_bits(v, 0, 15)), high = vb_lookup(fp4_values, vb_bits(v, 4, 15));
    (void) part;
    u[0] = vb_even_eights(low, high), u[1] = vb_odd_eights(low, high);
}

/* ---- blocks of 256: codes of elements 32j .. 32j+31 ---- */

static inline vb codes_q2_K(const block_q2_K *w, int j) { return vb_bits(vb_load(w->qs + j/4*32), j%4*2, 3); }
static inline vb codes_q3_K(const block_q3_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->qs + j/4*32), j%4*2, 3), vb_field(vb_load(w->hmask), j, 1, 2));
}
static inline vb codes_q4_K(const block_q4_K *w, int j) { return vb_bits(vb_load(w->qs + j/2*32), j%2*4, 15); }
static inline vb codes_q5_K(const block_q5_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->qs + j/2*32), j%2*4, 15), vb_field(vb_load(w->qh), j, 1, 4));
}
static inline vb codes_q6_K(const block_q6_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->ql + j/4*64 + j%2*32), j%4/2*4, 15), vb_field(vb_load(w->qh + j/4*32), j%4*2, 3, 4));
}

/* The six-bit scales and minimums of eight groups, one a byte. */
static inline void six_bits(const uint8_t s[12], uint64_t *scales, uint64_t *mins) {
    uint32_t a, b, c;
    memcpy(&a, s, 4), memcpy(&b, s + 4, 4), memcpy(&c, s + 8, 4);
    *scales = (a & 0x3f3f3f3f) | (uint64_t) ((c      & 0x0f0f0f0f) | (a >> 2 & 0x30303030)) << 32;
    *mins   = (b & 0x3f3f3f3f) | (uint64_t) ((c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)) << 32;
}

static inline void scales_q2_K(const block_q2_K *w, vs *s, vs *m) { *s = vs_low(w->scales), *m = vs_high(w->scales); }
static inline void scales_q3_K(const block_q3_K *w, vs *s, vs *m) {
    const uint64_t low = 0x0f0f0f0f0f0f0f0f, high = 0x3030303030303030;
    uint64_t ab;
    uint32_t c;
    memcpy(&ab, w->scales, 8), memcpy(&c, w->scales + 8, 4);
    const uint64_t pairs = c | (uint64_t) (c >> 2) << 32;   /* of bits: the low ones of scales 0 .. 7, above them those of 8 .. 15 */
    *m = *s = vs_minus(vs_in_order((ab & low) | (pairs << 4 & high), (ab >> 4 & low) | (pairs & high)), 32);
}
static inline void scales_q4_K(const block_q4_K *w, vs *s, vs *m) {
    uint64_t scales, mins;
    six_bits(w->scales, &scales, &mins);
    *s = vs_eight(scales), *m = vs_eight(mins);
}
static inline void scales_q5_K(const block_q5_K *w, vs *s, vs *m) {
    uint64_t scales, mins;
    six_bits(w->scales, &scales, &mins);
    *s = vs_eight(scales), *m = vs_eight(mins);
}
static inline void scales_q6_K(const block_q6_K *w, vs *s, vs *m) { *m = *s = vs_signed(w->scales); }

/* ---- three values ---- */

#define EVERY_BYTE(x) (UINT64_C(0x0101010101010101)*(x))

static inline vb codes_tq2_0(const block_tq2_0 *w, int j) { return vb_bits(vb_load(w->qs + j/4*32), j%4*2, 3); }

/* The trit on top of each byte: v*3 >= 256 from 86 on, >= 512 from 171 on. */
static inline vb trits(vb v) { return vb_sub(vb_set(0), vb_add(vb_at_least(v, 86), vb_at_least(v, 171))); }
/* Bytes times a power of three bring the trits of one plane to the top: of planes of 32 bytes five, of 16 bytes five, of 4 bytes
 * four. */
static inline vb codes_tq1_0(const block_tq1_0 *w, int j) {
#define FOUR_OF(a)         a, a, a, a
#define EIGHT_OF(a)        FOUR_OF(a), FOUR_OF(a)
#define PLANES(a, b)       { EIGHT_OF(a), EIGHT_OF(b) }
    static const uint16_t powers[8][16] = {                             /* of each two neighbours */
        PLANES(1, 1), PLANES(3, 3), PLANES(9, 9), PLANES(27, 27), PLANES(81, 81), PLANES(1, 3), PLANES(9, 27),
        { EIGHT_OF(81), 1, 1, 3, 3, 9, 9, 27, 27 },
    };
    const uint32_t qh = u32_at(w->qh), tail[4] = { qh, qh, qh, qh };
    const vb v = j < 5 ? vb_load(w->qs) : vb_halves(w->qs + 32, j < 7 ? (const void *) (w->qs + 32) : tail);
    return trits(vb_times(v, powers[j]));
}
static inline void scales_ones(vs *s, vs *m) { *m = *s = vs_bytes(EVERY_BYTE(1), EVERY_BYTE(1)); }
static inline void scales_tq1_0(const block_tq1_0 *w, vs *s, vs *m) { (void) w, scales_ones(s, m); }
static inline void scales_tq2_0(const block_tq2_0 *w, vs *s, vs *m) { (void) w, scales_ones(s, m); }

/* ---- IQ4_XS, IQ3, IQ2, IQ1 ---- */

static inline uint64_t u64_at(const void *p) { uint64_t u; memcpy(&u, p, 8); return u; }

/* The nibbles of four bytes, and the pairs of bits of two, in order, one a byte. */
static inline uint64_t eight_nibbles(uint64_t x) {
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8)  & 0x00ff00ff00ff00ff;
    return (x | x << 4) & EVERY_BYTE(15);
}
static inline uint64_t eight_pairs(uint64_t x) {
    x = (x | x << 24) & 0x000000ff000000ff;
    x = (x | x << 12) & 0x000f000f000f000f;
    return (x | x << 6) & EVERY_BYTE(3);
}
/* 2s + 1 of one scale a byte: of even groups and of odd ones */
static inline void scales_odd(uint64_t even, uint64_t odd, vs *s, vs *m) {
    *m = *s = vs_bytes(even << 1 | EVERY_BYTE(1), odd << 1 | EVERY_BYTE(1));
}

static inline vb codes_iq4_xs(const block_iq4_xs *w, int j) { return vb_lookup(iq4_values, vb_nibbles(w->qs + 16*j)); }
static inline void scales_iq4_xs(const block_iq4_xs *w, vs *s, vs *m) {
    const uint64_t scales = eight_nibbles(u32_at(w->scales_l)) | eight_pairs(w->scales_h) << 4;
    *m = *s = vs_minus(vs_bytes(scales, scales), 32);
}

/* Signs as bytes of 1 and -1: eight from seven bits, whose number the eighth makes even; from a bit each. */
static inline vb even_signs_4(uint32_t w) { return vb_eights(book_signs, w & 127, w >> 7 & 127, w >> 14 & 127, w >> 21 & 127); }
static inline vb signs_of(const void *bits) { return vb_or(vb_where(u32_at(bits)), vb_set(1)); }

static inline vb codes_iq2_xxs(const block_iq2_xxs *w, int j) {
    const uint8_t *q = (const uint8_t *) (w->qs + 4*j);                 /* little endian, as every machine here is */
    return vb_eights(book_iq2_xxs, q[0], q[1], q[2], q[3]);
}
static inline vb signs_iq2_xxs(const block_iq2_xxs *w, int j) { return even_signs_4(u32_at(w->qs + 4*j + 2)); }
static inline void scales_iq2_xxs(const block_iq2_xxs *w, vs *s, vs *m) {
    uint64_t scales = 0;
    for (int j = 0; j < 8; j++) scales |= (uint64_t) (w->qs[4*j + 3] >> 12) << 8*j;
    scales_odd(scales, scales, s, m);
}

static inline vb codes_iq2_xs(const block_iq2_xs *w, int j) {
    const uint16_t *q = w->qs + 4*j;
    return vb_eights(book_iq2_xs, q[0] & 511, q[1] & 511, q[2] & 511, q[3] & 511);
}
static inline vb signs_iq2_xs(const block_iq2_xs *w, int j) {
    const uint16_t *q = w->qs + 4*j;
    return vb_eights(book_signs, q[0] >> 9, q[1] >> 9, q[2] >> 9, q[3] >> 9);
}
static inline void scales_iq2_xs(const block_iq2_xs *w, vs *s, vs *m) {
    const uint64_t scales = u64_at(w->scales);
    scales_odd(scales & EVERY_BYTE(15), scales >> 4 & EVERY_BYTE(15), s, m);
}

/* IQ2_S and IQ1 keep the low bits of an entry's number in a byte and the others elsewhere: all 32 of a block are put together first. */
#define FOUR_TIMES(a, b, c, d) { a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d }
static inline vb entries(const uint64_t *book, const uint16_t at[4]) { return vb_eights(book, at[0], at[1], at[2], at[3]); }

static inline void numbers_iq2_s(const block_iq2_s *w, uint16_t at[32]) {
#define BYTE(i) i, 255, i, 255, i, 255, i, 255
    static const uint8_t  places[32]  = { BYTE(0), BYTE(1), BYTE(2), BYTE(3) };
    static const uint16_t factors[16] = FOUR_TIMES(256, 64, 16, 4);
    for (int i = 0; i < 2; i++) vb_numbers(w->qs + 16*i, w->qh + 4*i, places, factors, 0x300, at + 16*i);
#undef BYTE
}
static inline vb codes_iq2_s(const block_iq2_s *w, const uint16_t at[32], int j) { (void) w; return entries(book_iq2_s, at + 4*j); }
static inline vb signs_iq2_s(const block_iq2_s *w, int j) { return signs_of(w->qs + 32 + 4*j); }
static inline void scales_iq2_s(const block_iq2_s *w, vs *s, vs *m) {
    const uint64_t scales = u64_at(w->scales);
    scales_odd(scales & EVERY_BYTE(15), scales >> 4 & EVERY_BYTE(15), s, m);
}

static inline vb codes_iq3_xxs(const block_iq3_xxs *w, int j) { return vb_fours_of_256(book_iq3_xxs, w->qs + 8*j); }
static inline vb signs_iq3_xxs(const block_iq3_xxs *w, int j) { return even_signs_4(u32_at(w->qs + 64 + 4*j)); }
static inline void scales_iq3_xxs(const block_iq3_xxs *w, vs *s, vs *m) {
    uint64_t scales = 0;
    for (int j = 0; j < 8; j++) scales |= (uint64_t) (w->qs[64 + 4*j + 3] >> 4) << 8*j;
    scales_odd(scales, scales, s, m);
}

static inline vb codes_iq3_s(const block_iq3_s *w, int j) { return vb_fours(book_iq3_s, w->qs + 8*j, w->qh[j]); }
static inline vb signs_iq3_s(const block_iq3_s *w, int j) { return signs_of(w->signs + 4*j); }
static inline void scales_iq3_s(const block_iq3_s *w, vs *s, vs *m) {
    const uint64_t scales = eight_nibbles(u32_at(w->scales));
    scales_odd(scales, scales, s, m);
}

/* In eighths: an entry's 1, 9, 17, less 7 or 9, which in IQ1_S holds for 32 weights and is left to the caller. */
static inline void numbers_iq1_s(const block_iq1_s *w, uint16_t at[32]) {
#define WORD(i) 2*i, 2*i + 1, 2*i, 2*i + 1, 2*i, 2*i + 1, 2*i + 1, 255
    static const uint8_t  places[32]  = { WORD(0), WORD(1), WORD(2), WORD(3) };
    static const uint16_t factors[16] = FOUR_TIMES(256, 32, 4, 128);
    for (int i = 0; i < 2; i++) vb_numbers(w->qs + 16*i, (const uint8_t *) (w->qh + 4*i), places, factors, 0x700, at + 16*i);
#undef WORD
}
static inline vb codes_iq1_s(const block_iq1_s *w, const uint16_t at[32], int j) { (void) w; return entries(book_iq1, at + 4*j); }
static inline int less_iq1_s(const block_iq1_s *w, int j) { return 7 + (w->qh[j] >> 14 & 2); }
static inline void scales_iq1_s(const block_iq1_s *w, vs *s, vs *m) {
    *s = vs_minus(vs_words(w->qh, 11, 14), -1);
    *m = vs_product(*s, vs_minus(vs_words(w->qh, 14, 2), -7));
}

static inline void numbers_iq1_m(const block_iq1_m *w, uint16_t at[32]) {
#define BYTE(i) i, 255, i, 255
    static const uint8_t  places[32]  = { BYTE(0), BYTE(1), BYTE(2), BYTE(3), BYTE(4), BYTE(5), BYTE(6), BYTE(7) };
    static const uint16_t factors[16] = FOUR_TIMES(256, 16, 256, 16);
    for (int i = 0; i < 2; i++) vb_numbers(w->qs + 16*i, w->qh + 8*i, places, factors, 0x700, at + 16*i);
#undef BYTE
}
static inline vb codes_iq1_m(const block_iq1_m *w, const uint16_t at[32], int j) {
    return vb_add(entries(book_iq1, at + 4*j), vb_and(vb_eights_without(w->qh + j/4*8, j%4), vb_set(2)));
}
static inline void scales_iq1_m(const block_iq1_m *w, vs *s, vs *m) {
    const uint64_t words = u64_at(w->scales), three = 0x0007000700070007;
    scales_odd((words & three) | (words << 2 & three << 8), (words >> 3 & three) | (words >> 1 & three << 8), s, m);
}
static inline uint16_t half_iq1_m(const block_iq1_m *w) {
    const uint64_t high = u64_at(w->scales) & 0xf000f000f000f000;
    return (uint16_t) (high >> 12 | high >> 24 | high >> 36 | high >> 48);
}

#endif
