/* Packing the codebook types. A super-block is fitted in three steps:
 *   1. each group of 16 or 32 elements by itself: for several scales the nearest points of the codebook, by weighted squares,
 *      and the scale that is best for these points; the best of them all is kept;
 *   2. the scale of the super-block from the largest of these, and for each group the two steps of its few bits around its own
 *      scale, with the nearest points again; the better one is kept;
 *   3. the scale of the super-block once more, as the best for all points chosen.
 * The nearest point is exact, and no table outlives a call: the cost of a point is the sum of two entries of small tables, one
 * for each half of its elements, and a run of points that share their high half is passed over when that half alone costs too
 * much. The point that was nearest at another scale is looked at first: few runs are then left.
 *
 * Without importance data, or where it is all zeros, all columns are equally important. */

#include "quant.h"

#include <string.h>

#define TINY 1e-15f

struct book {
    const uint16_t *grid;               /* in increasing order */
    int             n, elements;        /* points; elements of one: 8 with 3 levels or 4 with 8 levels */
    float           values[8];          /* of the levels */
    bool            even, deltas;       /* an even number of signs in 8; no signs, but delta = +-1/8 */
    int             delta_span;         /* elements with one delta */
    int             group, top;         /* elements with one scale; scales are 0 .. top */
    float           unit;               /* y = d*unit*(2*scale + 1)*value */
    float           energy;             /* weights are importance*sqrt(energy*mean square + x^2) */
    float           from, step;         /* scales tried: (largest/last value)*(from + step*t), t = 0 .. 11 */
};

#define IQ2_VALUES     { 8, 25, 43 }
#define IQ3_XXS_VALUES { 4, 12, 20, 28, 36, 44, 52, 62 }
#define IQ3_S_VALUES   { 1, 3, 5, 7, 9, 11, 13, 15 }
#define IQ1_VALUES     { -1, 0, 1 }
/*                                     grid            n  el  values          even   deltas span grp top  unit   energy from   step */
static const struct book book_iq2_xxs = { grid_iq2_xxs,  256, 8, IQ2_VALUES,     true,  false, 0,  32, 15, 0.125f, 1.0f, 0.85f, 0.035f };
static const struct book book_iq2_xs  = { grid_iq2_xs,   512, 8, IQ2_VALUES,     true,  false, 0,  16, 15, 0.125f, 1.0f, 0.80f, 0.045f };
static const struct book book_iq2_s   = { grid_iq2_s,   1024, 8, IQ2_VALUES,     false, false, 0,  16, 15, 0.125f, 2.0f, 0.80f, 0.045f };
static const struct book book_iq3_xxs = { grid_iq3_xxs,  256, 4, IQ3_XXS_VALUES, true,  false, 0,  32, 15, 0.25f,  2.0f, 0.80f, 0.035f };
static const struct book book_iq3_s   = { grid_iq3_s,    512, 4, IQ3_S_VALUES,   false, false, 0,  32, 15, 1.0f,   2.0f, 0.80f, 0.035f };
static const struct book book_iq1_s   = { grid_iq1_s,   2048, 8, IQ1_VALUES,     false, true,  32, 32, 7,  1.0f,   2.0f, 0.30f, 0.05f };
static const struct book book_iq1_m   = { grid_iq1_s,   2048, 8, IQ1_VALUES,     false, true,  8,  16, 7,  1.0f,   2.0f, 0.30f, 0.05f };

/* The grid as the search wants it: a half of a point is ROW times what its second quarter is plus what its first one is, and
 * points of one high half follow each other. */
enum { ROW = 12, HALVES = 9*ROW };      /* a quarter is one of 9 or 8 things; rows of twelve fill registers */
struct runs { int n; uint8_t high[81]; uint16_t start[82]; uint8_t low_of[2048], run_of[2048]; };

struct coded {
    float    d;
    uint16_t entries[64];               /* index of each point */
    uint8_t  signs[32];                 /* of 8 elements each */
    bool     minus[32];                 /* delta of 8 elements each */
    uint8_t  scales[16];
};

/* ---- nearest points ---------------------------------------------------------------------------------------------------- */

static int level_bits(const struct book *p) { return 16/p->elements; }

static float value_at(const struct book *p, int entry, int j, float delta) {
    const int bits = level_bits(p);
    return p->values[p->grid[entry] >> bits*j & ((1 << bits) - 1)] + delta;
}

static int levels_of(const struct book *p) { return p->elements == 8 ? 3 : 8; }

/* A byte of the grid is half a point, a nibble a quarter: two elements of 3 levels, in two bits each, or one of 8. */
static uint8_t half_of(const struct book *p, int byte) {
    const int first = byte & 15, second = byte >> 4;
    return (uint8_t) (p->elements == 8 ? ROW*(second%4 + second/4*3) + first%4 + first/4*3 : ROW*second + first);
}

static void runs_find(const struct book *p, struct runs *r) {
    r->n = 0;
    for (int i = 0; i < p->n; i++) {
        if (i == 0 || p->grid[i] >> 8 != p->grid[i - 1] >> 8) {
            r->high[r->n] = half_of(p, p->grid[i] >> 8);
            r->start[r->n++] = (uint16_t) i;
        }
        r->low_of[i] = half_of(p, p->grid[i] & 255);
        r->run_of[i] = (uint8_t) (r->n - 1);
    }
    r->start[r->n] = (uint16_t) p->n;
}

/* cost[h]: what the half h of a point costs, whose elements are x[0] ... Returns the least. */
static float half_costs(const struct book *p, const float *x, const float *w, float s, float delta, float *cost) {
    const int levels = levels_of(p), n = p->elements == 8 ? 9 : 8;
    float one[4][8], quarter[2][ROW] = { { 0.0f } }, least[2] = { INFINITY, INFINITY };
    for (int j = 0; j < p->elements/2; j++)
        for (int l = 0; l < levels; l++) {
            const float e = x[j] - s*(p->values[l] + delta);
            one[j][l] = w[j]*e*e;
        }
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < n; i++) {
            const float c = quarter[q][i] = n == 8 ? one[q][i] : one[2*q][i%3] + one[2*q + 1][i/3];
            least[q] = c < least[q] ? c : least[q];
        }
    for (int i = 0; i < n; i++, cost += ROW)
        for (int k = 0; k < ROW; k++) cost[k] = quarter[0][k] + quarter[1][i];
    return least[0] + least[1];
}

/* The point nearest to x, at scale s; adds its error to *error. guess: any point, better a near one. */
static int nearest(const struct book *p, const struct runs *r, const float *x, const float *w, float s, float delta, int guess, float *error) {
    float low[HALVES], high[HALVES];
    const float least = half_costs(p, x, w, s, delta, low);
    half_costs(p, x + p->elements/2, w + p->elements/2, s, delta, high);
    float best = high[r->high[r->run_of[guess]]] + low[r->low_of[guess]];
    for (int run = 0; run < r->n; run++) {
        const float above = high[r->high[run]];
        if (!(above + least < best)) continue;
        for (int i = r->start[run]; i < r->start[run + 1]; i++) {
            const float c = above + low[r->low_of[i]];
            if (c < best) best = c, guess = i;
        }
    }
    *error += best;
    return guess;
}

/* ---- a group -------------------------------------------------------------------------------------------------------------- */

/* A = sum w*x*v, B = sum w*v*v; entries: before a fit any, better those of another scale. */
struct fit { float A, B, error; uint16_t entries[8]; bool minus[4]; };

/* The nearest points of elements 0 .. span-1, for one delta. */
static void fit_span(const struct book *p, const struct runs *r, int span, const float *x, const float *w, float s, float delta, struct fit *f) {
    f->A = f->B = f->error = 0.0f;
    for (int i = 0; i < span/p->elements; i++) {
        const int at = i*p->elements;
        f->entries[i] = (uint16_t) nearest(p, r, x + at, w + at, s, delta, f->entries[i], &f->error);
        for (int j = 0; j < p->elements; j++) {
            const float v = value_at(p, f->entries[i], j, delta);
            f->A += w[at + j]*x[at + j]*v;
            f->B += w[at + j]*v*v;
        }
    }
}

static void fit_group(const struct book *p, const struct runs *r, const float *x, const float *w, float s, struct fit *f) {
    if (!p->deltas) {
        fit_span(p, r, p->group, x, w, s, 0.0f, f);
        return;
    }
    f->A = f->B = f->error = 0.0f;
    for (int at = 0; at < p->group; at += p->delta_span) {
        struct fit plus, minus;
        memcpy(plus.entries, f->entries + at/8, (size_t) (p->delta_span/8)*sizeof *f->entries);
        memcpy(minus.entries, plus.entries, sizeof plus.entries);
        fit_span(p, r, p->delta_span, x + at, w + at, s,  0.125f, &plus);
        fit_span(p, r, p->delta_span, x + at, w + at, s, -0.125f, &minus);
        const bool is_minus = minus.error < plus.error;
        const struct fit *better = is_minus ? &minus : &plus;
        f->A += better->A, f->B += better->B, f->error += better->error;
        memcpy(f->entries + at/8, better->entries, (size_t) (p->delta_span/8)*sizeof *f->entries);
        for (int i = 0; i < p->delta_span/8; i++) f->minus[at/8 + i] = is_minus;
    }
}

/* The scale that suits the group best. In IQ2 even elements suit a low level, since few points are high everywhere. */
static float free_scale(const struct book *p, const struct runs *r, const float *x, const float *w) {
    float max = 0.0f, best = 0.0f, scale = 0.0f;
    for (int i = 0; i < p->group; i++) max = fabsf(x[i]) > max ? fabsf(x[i]) : max;
    if (!(max >= TINY && max < INFINITY)) return 0.0f;
    const float last = p->values[p->elements == 8 ? 2 : 7];
    const int low_levels = p->elements == 8 && !p->deltas ? 2 : 0;
    struct fit f = { .A = 0.0f };
    for (int t = -low_levels; t < 12; t++) {
        fit_group(p, r, x, w, t < 0 ? max/p->values[-1 - t] : max/last*(p->from + p->step*(float) t), &f);
        if (f.A > 0.0f && f.B > 0.0f && f.A*f.A > best*f.B) {
            scale = f.A/f.B;
            best = f.A*scale;
        }
    }
    return scale;
}

/* ---- a super-block ---------------------------------------------------------------------------------------------------------- */

/* importance*sqrt(mean square + x^2); a column of no importance keeps a ten-thousandth of the mean, so that its elements are
 * still the nearest there are. */
static void weigh(const struct book *p, const float *x, const float *importance, float *w) {
    float square = 0.0f, sum = 0.0f;
    for (int i = 0; i < QK_K; i++) square += x[i]*x[i];
    for (int i = 0; importance && i < QK_K; i++) sum += importance[i];
    square *= p->energy/(float) QK_K;
    for (int i = 0; i < QK_K; i++) {
        w[i] = sqrtf(square + x[i]*x[i]);
        if (sum > 0.0f) w[i] *= importance[i] + 1e-4f*sum/(float) QK_K;
    }
}

/* The signs apart from the magnitudes. Where their number must be even and is not, the element that matters least changes
 * its sign: what is then left of it is negative. */
static void split_signs(const struct book *p, const float *x, const float *w, float *magnitude, uint8_t *signs) {
    for (int n = 0; n < QK_K/8; n++) {
        unsigned bits = 0, count = 0;
        int least = 0;
        for (int j = 0; j < 8; j++) {
            const int i = 8*n + j;
            magnitude[i] = p->deltas ? x[i] : fabsf(x[i]);
            if (x[i] < 0.0f) bits |= 1u << j, count++;
            if (w[i]*x[i]*x[i] < w[8*n + least]*x[8*n + least]*x[8*n + least]) least = j;
        }
        if (p->even && count % 2) {
            bits ^= 1u << least;
            magnitude[8*n + least] = -magnitude[8*n + least];
        }
        signs[n] = (uint8_t) bits;
    }
}

/* The better of the two steps around the group's own scale. */
static int round_scale(const struct book *p, const struct runs *r, const float *x, const float *w, float unit, float scale, struct fit *f) {
    const float at = scale/unit;
    const int below = trunc_within((at - 1.0f)/2.0f, 0, p->top), above = below < p->top ? below + 1 : below;
    fit_group(p, r, x, w, unit*(float) (2*below + 1), f);
    if (above == below) return below;
    struct fit g = *f;
    fit_group(p, r, x, w, unit*(float) (2*above + 1), &g);
    if (!(g.error < f->error)) return below;
    *f = g;
    return above;
}

static void encode(const struct book *p, const float *x, const float *importance, struct coded *c) {
    float w[QK_K], magnitude[QK_K], scales[16], max = 0.0f, A = 0.0f, B = 0.0f;
    const int groups = QK_K/p->group, points = p->group/p->elements;
    struct runs r;
    memset(c, 0, sizeof *c);
    runs_find(p, &r);
    weigh(p, x, importance, w);
    split_signs(p, x, w, magnitude, c->signs);
    for (int g = 0; g < groups; g++) {
        scales[g] = free_scale(p, &r, magnitude + g*p->group, w + g*p->group);
        max = scales[g] > max ? scales[g] : max;
    }
    const float unit = max/(float) (2*p->top + 1);
    if (!(unit > 0.0f)) {
        memset(c->signs, 0, sizeof c->signs);
        return;
    }
    for (int g = 0; g < groups; g++) {
        struct fit f = { .A = 0.0f };
        c->scales[g] = (uint8_t) round_scale(p, &r, magnitude + g*p->group, w + g*p->group, unit, scales[g], &f);
        memcpy(c->entries + g*points, f.entries, (size_t) points*sizeof *f.entries);
        for (int i = 0; i < p->group/8; i++) c->minus[g*p->group/8 + i] = p->deltas && f.minus[i];
        const float step = (float) (2*c->scales[g] + 1);
        A += f.A*step;
        B += f.B*step*step;
    }
    c->d = (B > 0.0f && A > 0.0f ? A/B : unit)/p->unit;
}

/* ---- the layouts, as drawn in quant.h ------------------------------------------------------------------------------------------ */

static void put_iq2_xxs(const struct coded *c, block_iq2_xxs *b) {
    b->d = f32_to_f16(c->d);
    for (int g = 0; g < 8; g++) {
        uint32_t w = (uint32_t) c->scales[g] << 28;
        for (int l = 0; l < 4; l++) w |= (uint32_t) (c->signs[4*g + l] & 127) << 7*l;
        for (int l = 0; l < 2; l++) b->qs[4*g + l] = (uint16_t) (c->entries[4*g + 2*l] | c->entries[4*g + 2*l + 1] << 8);
        b->qs[4*g + 2] = (uint16_t) w;
        b->qs[4*g + 3] = (uint16_t) (w >> 16);
    }
}

static void put_iq2_xs(const struct coded *c, block_iq2_xs *b) {
    b->d = f32_to_f16(c->d);
    for (int n = 0; n < 32; n++) b->qs[n] = (uint16_t) (c->entries[n] | (c->signs[n] & 127) << 9);
    for (int g = 0; g < 8; g++) b->scales[g] = (uint8_t) (c->scales[2*g] | c->scales[2*g + 1] << 4);
}

static void put_iq2_s(const struct coded *c, block_iq2_s *b) {
    memset(b, 0, sizeof *b);
    b->d = f32_to_f16(c->d);
    for (int n = 0; n < 32; n++) {
        b->qs[n]      = (uint8_t) c->entries[n];
        b->qs[32 + n] = c->signs[n];
        b->qh[n/4]   |= (uint8_t) (c->entries[n] >> 8 << n%4*2);
    }
    for (int g = 0; g < 8; g++) b->scales[g] = (uint8_t) (c->scales[2*g] | c->scales[2*g + 1] << 4);
}

static void put_iq3_xxs(const struct coded *c, block_iq3_xxs *b) {
    b->d = f32_to_f16(c->d);
    for (int n = 0; n < 64; n++) b->qs[n] = (uint8_t) c->entries[n];
    for (int g = 0; g < 8; g++) {
        uint32_t w = (uint32_t) c->scales[g] << 28;
        for (int l = 0; l < 4; l++) w |= (uint32_t) (c->signs[4*g + l] & 127) << 7*l;
        for (int i = 0; i < 4; i++) b->qs[64 + 4*g + i] = (uint8_t) (w >> 8*i);
    }
}

static void put_iq3_s(const struct coded *c, block_iq3_s *b) {
    memset(b, 0, sizeof *b);
    b->d = f32_to_f16(c->d);
    for (int n = 0; n < 64; n++) {
        b->qs[n] = (uint8_t) c->entries[n];
        b->qh[n/8] |= (uint8_t) (c->entries[n] >> 8 << n%8);
    }
    memcpy(b->signs, c->signs, sizeof b->signs);
    for (int g = 0; g < 4; g++) b->scales[g] = (uint8_t) (c->scales[2*g] | c->scales[2*g + 1] << 4);
}

static void put_iq1_s(const struct coded *c, block_iq1_s *b) {
    b->d = f32_to_f16(c->d);
    for (int g = 0; g < 8; g++) {
        b->qh[g] = (uint16_t) (c->scales[g] << 12 | c->minus[4*g] << 15);
        for (int l = 0; l < 4; l++) {
            b->qs[4*g + l] = (uint8_t) c->entries[4*g + l];
            b->qh[g] |= (uint16_t) (c->entries[4*g + l] >> 8 << 3*l);
        }
    }
}

static void put_iq1_m(const struct coded *c, block_iq1_m *b) {
    const uint16_t half = f32_to_f16(c->d);
    uint16_t words[4];
    memset(b, 0, sizeof *b);
    for (int i = 0; i < 4; i++) {
        words[i] = (uint16_t) (half >> 4*i << 12);
        for (int j = 0; j < 4; j++) words[i] |= (uint16_t) (c->scales[4*i + j] << 3*j);
    }
    memcpy(b->scales, words, sizeof words);
    for (int n = 0; n < 32; n++) {
        b->qs[n] = (uint8_t) c->entries[n];
        b->qh[n/2] |= (uint8_t) ((c->entries[n] >> 8 | c->minus[n] << 3) << n%2*4);
    }
}

#define IQ_PACK(tag) \
    void pack_weighted_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, const float *GGML_RESTRICT weights, float energy) { \
        struct coded c; \
        (void) energy; \
        encode(&book_##tag, x, weights, &c); \
        put_##tag(&c, y); \
    } \
    void pack_##tag(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) { \
        for (block_##tag *b = y; k > 0; k -= QK_K, b++, x += QK_K) pack_weighted_##tag(x, b, NULL, 0.0f); \
    }
IQ_PACK(iq2_xxs)
IQ_PACK(iq2_xs)
IQ_PACK(iq2_s)
IQ_PACK(iq3_xxs)
IQ_PACK(iq3_s)
IQ_PACK(iq1_s)
IQ_PACK(iq1_m)
