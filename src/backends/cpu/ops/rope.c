/* ROPE and ROPE_BACK in all modes (Su et al. 2021; with YaRN, Peng et al. 2023; with sections, Wang et al. 2024, Qwen2-VL).
 *
 * The angle of pair i at position p is p*f(i), f(i) = base^(-2i/n_dims)/ff(i) and YaRN's mix, every factor in double: its
 * error is below 1e-13*(1 + i) of itself, so below 1e-5 radians at position 1e6, and no angle is made from another. It is
 * reduced exactly (kernels/elementary.h). Cosines and sines are computed once a token and serve all its heads. */

#include "reals.h"
#include "rows.h"

#include <math.h>
#include <string.h>

struct rope {
    int     n_dims, mode, offset, sections[GGML_MROPE_SECTIONS];
    int64_t pairs;                      /* rotated pairs of a row */
    double  size;                       /* of the rotation: attn_factor and YaRN's part */
    bool    back;
};

/* A worker's scratch: tables of doubles, then of floats, then two rows for those that are not dense F32. */
struct tables {
    double *freq, *angle;               /* [pairs] */
    float  *c, *s;                      /* [2 pairs] */
    float  *row, *out;                  /* [ne0] */
};

static size_t table_bytes(const struct ggml_tensor *dst) { return 6*row_bytes(dst); }
size_t scratch_rope(const struct ggml_tensor *dst, int n_threads) { return table_bytes(dst)*(size_t) n_threads; }

static struct tables tables_at(const struct cpu_task *t, const struct ggml_tensor *dst) {
    char *const p = (char *) t->scratch + table_bytes(dst)*(size_t) t->ith;
    const size_t row = row_bytes(dst);                                      /* holds ne0/2 doubles: at most that many pairs */
    #define PART(i) ((void *) (p + (i)*row))
    return (struct tables) { PART(0), PART(1), PART(2), PART(3), PART(4), PART(5) };
    #undef PART
}

static struct rope rope_of(const struct ggml_tensor *dst) {
    struct rope r = { .n_dims = param_i32(dst, 1), .mode = param_i32(dst, 2), .offset = param_i32(dst, 15),
                      .back = dst->op == GGML_OP_ROPE_BACK };
    for (int i = 0; i < GGML_MROPE_SECTIONS; i++) r.sections[i] = param_i32(dst, 11 + i);
    r.pairs = r.mode == GGML_ROPE_TYPE_VISION ? r.n_dims : r.n_dims/2;
    const double factor = param_f32(dst, 8), scale = param_f32(dst, 6);
    r.size = param_f32(dst, 7) != 0.0f ? factor*(1.0 - 0.1*real_log(scale)) : factor;
    return r;
}

/* Which of the four position blocks (t, h, w, e) pair i follows, and the exponent of its frequency. */
static int section_of(const struct rope *r, int64_t i, int64_t *exponent) {
    *exponent = i;
    if (!(r->mode & GGML_ROPE_TYPE_MROPE)) return 0;
    const int *const s = r->sections;
    const int64_t at = i % ((int64_t) s[0] + s[1] + s[2] + s[3]);
    if (r->mode == GGML_ROPE_TYPE_IMROPE) {
        const int k = (int) (at % 3);                                       /* t, h, w take turns as long as they last */
        return at < 3*(int64_t) s[k] ? k : 3;
    }
    int64_t first = 0;
    int k = 0;
    while (k < 3 && at >= first + s[k]) first += s[k++];
    if (r->mode == GGML_ROPE_TYPE_VISION) *exponent = at - first;
    return k;
}

/* freq[i] = base^(-2e/n_dims) times what factors and YaRN do to it, e the exponent of pair i. Powers are products of squares:
 * power(e) = power(e/2)^2 [step]. */
static void frequencies(const struct ggml_tensor *dst, const struct rope *r, double *freq, double *power) {
    const struct ggml_tensor *factors = dst->src[2];
    const float ext = param_f32(dst, 7), scale = param_f32(dst, 6);
    const double step = real_pow(param_f32(dst, 5), -2.0/r->n_dims);
    float range[2] = { 0, 0 };
    if (ext != 0.0f) {
        ggml_rope_yarn_corr_dims(r->n_dims, param_i32(dst, 4), param_f32(dst, 5), param_f32(dst, 9), param_f32(dst, 10), range);
    }
    power[0] = 1.0;
    for (int64_t e = 1; e < r->pairs; e++) power[e] = power[e/2]*power[e/2]*(e % 2 ? step : 1.0);
    for (int64_t i = 0; i < r->pairs; i++) {
        int64_t e;
        section_of(r, i, &e);
        const double ff = factors ? *(const float *) (const void *) element(factors, i, 0, 0, 0) : 1.0;
        const double ramp = fmin(1.0, fmax(0.0, ((double) i - range[0])/fmax(0.001, (double) range[1] - range[0])));
        const double kept = (1.0 - ramp)*ext;
        freq[i] = power[e]/ff*(ext != 0.0f ? scale*(1.0 - kept) + kept : scale);
    }
}

/* Cosines and sines for token i2, in the order that the mode's rotation reads. */
static void token_tables(const struct cpu_task *t, const struct ggml_tensor *dst, const struct rope *r, int64_t i2,
                         const struct tables *a) {
    const struct ggml_tensor *pos = dst->src[1];
    for (int64_t i = 0; i < r->pairs; i++) {
        int64_t e;
        const int64_t at = i2 + section_of(r, i, &e)*dst->ne[2];
        a->angle[i] = a->freq[i]*(double) *(const int32_t *) (const void *) element(pos, at, 0, 0, 0);
    }
    t->k->f.sin_cos(r->pairs, a->s, a->c, a->angle);
    if (r->size != 1.0) t->k->f.mul1(r->pairs, a->c, a->c, (float) r->size);
    if (r->size != 1.0 || r->back) t->k->f.mul1(r->pairs, a->s, a->s, (float) (r->back ? -r->size : r->size));
    if (r->mode != GGML_ROPE_TYPE_NORMAL) return;
    for (int64_t i = r->pairs - 1; i >= 0; i--) {
        const float c = a->c[i], s = a->s[i];
        a->c[2*i] = a->c[2*i + 1] = c;
        a->s[2*i] = -s, a->s[2*i + 1] = s;
    }
}

static void rotate(const struct cpu_task *t, const struct ggml_tensor *dst, const struct rope *r, int64_t i1, int64_t i2, int64_t i3,
                   const struct tables *a) {
    const int64_t n = dst->ne[0], first = r->offset, last = first + 2*r->pairs;
    void *const row = row_at(dst, i1, i2, i3);
    const float *x = row_load(t, dst->src[0], row_at(dst->src[0], i1, i2, i3), 0, n, a->row);
    float *y = row_place(dst, row, 0, a->out);
    if (x != y) {
        memcpy(y, x, (size_t) first*sizeof *y);
        memcpy(y + last, x + last, (size_t) (n - last)*sizeof *y);
    }
    if (r->mode == GGML_ROPE_TYPE_NORMAL) t->k->f.rotate_pairs (r->pairs, y + first, x + first, a->c, a->s);
    else                                  t->k->f.rotate_halves(r->pairs, y + first, x + first, a->c, a->s);
    row_store(t, dst, row, 0, n, y);
}

bool supports_rope(const struct ggml_tensor *dst) {
    return row_readable(dst->src[0]) && ggml_blck_size(dst->type) == 1 && row_writable(dst);
}

bool ropes_alike(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->op == b->op && a->src[1] == b->src[1] && a->src[2] == b->src[2] && a->ne[0] == b->ne[0] && a->ne[2] == b->ne[2] &&
           a->ne[3] == b->ne[3] && !memcmp(a->op_params, b->op_params, sizeof a->op_params);
}

/* A chunk is a token with its heads in all nodes, or, of short tokens, a few of them. */
void run_ropes(const struct cpu_task *t, struct ggml_tensor *const *node, int n) {
    const struct ggml_tensor *dst = node[0];
    const struct tables a = tables_at(t, dst);
    const struct rope r = rope_of(dst);
    int64_t r0, r1, heads = 0;
    for (int i = 0; i < n; i++) heads += node[i]->ne[1];
    frequencies(dst, &r, a.freq, a.angle);
    while (next_rows(t, dst->ne[2]*dst->ne[3], dst->ne[0]*heads, &r0, &r1)) for (int64_t token = r0; token < r1; token++) {
        const int64_t i2 = token % dst->ne[2], i3 = token / dst->ne[2];
        token_tables(t, dst, &r, i2, &a);
        for (int i = 0; i < n; i++) {
            for (int64_t i1 = 0; i1 < node[i]->ne[1]; i1++) rotate(t, node[i], &r, i1, i2, i3, &a);
        }
    }
}

void op_rope(const struct cpu_task *t, struct ggml_tensor *dst) { run_ropes(t, &dst, 1); }
