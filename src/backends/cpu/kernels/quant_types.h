#ifndef QUANT_TYPES_H
#define QUANT_TYPES_H
/* How each quantised type reads itself, in the steps of the instruction set: codes of 32 neighbouring weights in their order
 * (unsigned, the offset still in them; signed for Q8_0), and the scales and minimums of a block of 256. */

#include "quant.h"

/* ---- blocks of 32: one, or two as vi_dot_pair wants them ---- */

static inline uint32_t u32_at(const uint8_t *p) { uint32_t u; memcpy(&u, p, 4); return u; }

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
    const uint32_t a = u32_at(first), b = u32_at(last);
    u[0] = vb_or(u[0], vb_spread((a & 0xffff) | b << 16)), u[1] = vb_or(u[1], vb_spread(a >> 16 | (b & 0xffff0000)));
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

/* ---- blocks of 256: codes of elements 32j .. 32j+31 ---- */

static inline vb codes_q2_K(const block_q2_K *w, int j) { return vb_bits(vb_load(w->qs + j/4*32), j%4*2, 3); }
static inline vb codes_q3_K(const block_q3_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->qs + j/4*32), j%4*2, 3), vb_up(vb_bits(vb_load(w->hmask), j, 1), 2));
}
static inline vb codes_q4_K(const block_q4_K *w, int j) { return vb_bits(vb_load(w->qs + j/2*32), j%2*4, 15); }
static inline vb codes_q5_K(const block_q5_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->qs + j/2*32), j%2*4, 15), vb_up(vb_bits(vb_load(w->qh), j, 1), 4));
}
static inline vb codes_q6_K(const block_q6_K *w, int j) {
    return vb_or(vb_bits(vb_load(w->ql + j/4*64 + j%2*32), j%4/2*4, 15), vb_up(vb_bits(vb_load(w->qh + j/4*32), j%4*2, 3), 4));
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
    uint32_t a, b, c, d[4];
    memcpy(&a, w->scales, 4), memcpy(&b, w->scales + 4, 4), memcpy(&c, w->scales + 8, 4);
    d[0] = (a      & 0x0f0f0f0f) | (c << 4 & 0x30303030), d[1] = (b      & 0x0f0f0f0f) | (c << 2 & 0x30303030);
    d[2] = (a >> 4 & 0x0f0f0f0f) | (c      & 0x30303030), d[3] = (b >> 4 & 0x0f0f0f0f) | (c >> 2 & 0x30303030);
    *m = *s = vs_minus(vs_signed(d), 32);
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

#endif
