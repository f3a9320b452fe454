/* DSV4_HC_COMB DSV4_HC_PRE DSV4_HC_POST LIGHTNING_INDEXER: hyper-connections (Zhu et al. 2024, with doubly stochastic mixing
 * after Sinkhorn and Knopp 1967) and the scorer of sparse attention. */

#include "rows.h"

#include <string.h>

enum { HC = 4 };                                /* streams of DSV4_HC_COMB */

/* comb[d + HC*s]: softmax over d for each s, then columns and rows scaled to sums of one in turn. */
static void normalise(float *comb, float eps, int step_in, int step_out) {
    for (int i = 0; i < HC; i++) {
        float sum = 0.0f;
        for (int j = 0; j < HC; j++) sum += comb[i*step_out + j*step_in];
        for (int j = 0; j < HC; j++) comb[i*step_out + j*step_in] /= sum + eps;
    }
}

void op_dsv4_hc_comb(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *mixes = dst->src[0], *scale = dst->src[1], *base = dst->src[2];
    const float eps = param_f32(dst, 0);
    int64_t r0, r1;
    while (next_rows(t, dst->ne[2], 64*param_i32(dst, 1), &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        float *const comb = row_at(dst, 0, r, 0);
        for (int i = 0; i < HC*HC; i++) {
            comb[i] = float_at(mixes, 2*HC + i, r, 0, 0)*float_at(scale, 2, 0, 0, 0) + float_at(base, 2*HC + i, 0, 0, 0);
        }
        for (int s = 0; s < HC; s++) {
            float *const row = comb + HC*s;
            const float sum = (float) t->k->f.exp_sum(HC, row, row, t->k->f.max(HC, row));
            for (int d = 0; d < HC; d++) row[d] = row[d]/sum + eps;
        }
        normalise(comb, eps, HC, 1);
        for (int k = 1; k < param_i32(dst, 1); k++) {
            normalise(comb, eps, 1, HC);
            normalise(comb, eps, HC, 1);
        }
    }
}

void op_dsv4_hc_pre(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0], *w = dst->src[1];
    const bool gated = param_i32(dst, 1);
    struct span s;
    while (next_span(t, dst->ne[1], dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) FOR_PIECES(i, m, s.i0, s.i1) {
        float *const y = (float *) row_at(dst, r, 0, 0) + i, buf[PIECE], gate[PIECE];
        memset(y, 0, (size_t) m*sizeof *y);
        for (int64_t h = 0; h < x->ne[1]; h++) {
            const float *const v = row_load(t, x, row_at(x, h, r, 0), i, m, buf);
            if (!gated) {
                t->k->f.axpy(m, y, v, float_at(w, h, r, 0, 0));
                continue;
            }
            t->k->f.unary[GGML_UNARY_OP_SIGMOID](m, gate, row_load(t, w, row_at(w, h, r, 0), i, m, gate));
            t->k->f.mul(m, gate, gate, v);
            t->k->f.add(m, y, y, gate);
        }
        if (gated) t->k->f.mul1(m, y, y, param_f32(dst, 0));
    }
}

void op_dsv4_hc_post(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0], *residual = dst->src[1], *post = dst->src[2], *comb = dst->src[3];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s))
    for (int64_t r = s.r0, d, i2, i3; r < s.r1; r++) FOR_PIECES(i, m, s.i0, s.i1) {
        row_index(dst, r, &d, &i2, &i3);
        float *const y = (float *) row_at(dst, d, i2, i3) + i, buf[PIECE];
        t->k->f.mul1(m, y, row_load(t, x, row_at(x, i2, 0, 0), i, m, buf), float_at(post, d, i2, 0, 0));
        if (!comb) t->k->f.add(m, y, y, row_load(t, residual, row_at(residual, d, i2, 0), i, m, buf));
        for (int64_t h = 0; comb && h < residual->ne[1]; h++) {
            t->k->f.axpy(m, y, row_load(t, residual, row_at(residual, h, i2, 0), i, m, buf), float_at(comb, d, h, i2, 0));
        }
    }
}

/* ---- sum over heads of max(q_h*k_j, 0)*w_h, plus mask ----------------------------------------------------------------- */

bool supports_lightning_indexer(const struct ggml_tensor *dst) {
    return row_direct(dst->src[0]) && row_readable(dst->src[1]) &&
           plain_float(dst->src[2]->type) && plain_float(dst->src[3]->type);
}
size_t scratch_lightning_indexer(const struct ggml_tensor *dst, int n_threads) {
    return row_bytes(dst->src[1])*(size_t) n_threads;
}

/* A chunk is a key, unpacked once and scored against every token. */
void op_lightning_indexer(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *q = dst->src[0], *k = dst->src[1], *w = dst->src[2], *mask = dst->src[3];
    float *const room = (float *) (void *) ((char *) t->scratch + row_bytes(k)*(size_t) t->ith);
    int64_t chunk;
    while (task_chunk(t, k->ne[2]*k->ne[3], &chunk)) {
        const int64_t j = chunk % k->ne[2], b = chunk/k->ne[2];
        const float *const key = row_load(t, k, row_at(k, 0, j, b), 0, k->ne[0], room);
        for (int64_t i = 0; i < q->ne[2]; i++) {
            float score = 0.0f;
            for (int64_t h = 0; h < q->ne[1]; h++) {
                const float dot = t->k->f.dot_f32(q->ne[0], row_at(q, h, i, b), key);
                if (dot > 0.0f) score += dot*float_at(w, h, i, 0, b);
            }
            *(float *) (void *) element(dst, j, i, 0, b) = score + float_at(mask, j, i, 0, wrap(b, mask->ne[3]));
        }
    }
}
