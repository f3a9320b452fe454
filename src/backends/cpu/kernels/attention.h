#ifndef ATTENTION_KERNELS_H
#define ATTENTION_KERNELS_H
/* Kernels of fused attention. A chunk is up to 64 neighbouring keys; a block is a few query rows that share them. Of a block
 * and a chunk they make, for each row on its own,
 *     s[j] = q . k[j]                                in 16 lanes of fmaf, like every dot product of floats
 *     z[j] = fmaf(s[j], scale, slope*mask[j])        or fmaf(cap, tanh(s[j]*(scale/cap)), slope*mask[j])
 *     m = max z, p[j] = exp(z[j] - m), l = sum p     in 16 lanes
 *     a[d] = fmaf(p[j], v[j][d], a[d])               for unmasked j in increasing order, from zero
 * A position whose mask is minus infinity takes no part, whatever lies in its memory; a chunk without others is passed over. */

#include <stddef.h>
#include <stdint.h>

enum {
    ATTENTION_KEYS  = 64,
    ATTENTION_AHEAD = 6,       /* rows of a head lie apart in a cache: that many ahead of the one that is read, its lines are asked for */
    ATTENTION_RUN   = 16       /* rows of values that are weighed at once */
};

/* Rows of queries, keys and values have dk or dv elements, multiples of 16: shorter ones are padded with zeros. */
static inline int64_t padded16(int64_t n) { return (n + 15)/16*16; }

struct attention_kernels {
    int rows;                           /* rows of a block that it computes best at once; at most 16 */

    /* mask[j], j < n, as floats, minus infinity from there to 64; bit j of the result: position j takes part. NULL: zeros */
    uint64_t (*mask)(int n, const uint16_t *f16, float *mask);

    /* kt = n keys (rows of dk floats `stride` bytes apart) turned, so that 16 keys are one vector:
     *     [4 groups of 16 keys][8 pairs of lanes][dk/16][lane l, lane l+8][16 keys]      the pairs l = 0 4 2 6 1 5 3 7
     * zeros for the keys from n on. A query row for `scores_turned` has the order of dk too: turn_row makes it. */
    void (*turn)(int64_t dk, int n, const void *k, size_t stride, float *kt);
    void (*turn_row)(int64_t dk, const float *q, float *qt);

    /* s[r][j] for rows q[r], one behind the other, and the groups of 16 keys that have a bit in `any` */
    void (*scores_turned)(int64_t dk, int rows, const float *qt, const float *kt, uint64_t any, float (*s)[ATTENTION_KEYS]);
    /* s[r][j] for the keys with a bit in `any`, which lie `stride` bytes apart */
    void (*scores_f32)(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]);
    void (*scores_f16)(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]);

    /* s becomes p; *max = m; returns l */
    float (*weights)(float *s, const float *mask, float slope, float scale, float cap, float *max);

    /* a[r] (rows of dv padded) += p[r][j] v[j] over j0 <= j < j1; v rows `stride` bytes apart */
    void (*weigh_f32)(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a);
    void (*weigh_f16)(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a);

    /* Joins the chunk's (m, l, a) to the row's (max, sum, acc): both are scaled down to the larger maximum,
     * e = exp(-|max - m|):  acc = fmaf(a, g, acc*f), sum = fmaf(l, g, sum*f), f = 1, g = e, or the other way round. */
    void (*merge)(int64_t dv, float *acc, float *max, float *sum, const float *a, float m, float l);
};

extern const struct attention_kernels attention_kernels_portable;                       /* the definition */

#endif
