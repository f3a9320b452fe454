/* SOFT_MAX with mask, linear position bias and sinks, and SOFT_MAX_BACK. A row whose every position is masked gives zeros. */

#include "reals.h"
#include "rows.h"

#include <math.h>

size_t scratch_soft_max(const struct ggml_tensor *dst, int n_threads) {
    return row_direct(dst) ? 0 : row_bytes(dst)*(size_t) n_threads;
}
size_t scratch_soft_max_back(const struct ggml_tensor *dst, int n_threads) { return 2*row_bytes(dst)*(size_t) n_threads; }

bool supports_soft_max(const struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *sinks = dst->src[2];
    return row_readable(a) && ggml_blck_size(a->type) == 1 && row_writable(dst) && (!sinks || sinks->ne[0] == a->ne[2]);
}
bool supports_soft_max_back(const struct ggml_tensor *dst) {
    return param_f32(dst, 1) == 0.0f && row_readable(dst->src[0]) && row_readable(dst->src[1]) &&
           ggml_blck_size(dst->type) == 1 && row_writable(dst);
}

/* z = scale x + slope mask */
static void scores(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t i1, int64_t i2, int64_t i3, float *z) {
    const struct ggml_tensor *a = dst->src[0], *mask = dst->src[1];
    const float slope = alibi_slope(i2, a->ne[2], param_f32(dst, 1));
    FOR_PIECES(i, m, 0, dst->ne[0]) {
        float buf[PIECE];
        t->k->f.mul1(m, z + i, row_load(t, a, row_at(a, i1, i2, i3), i, m, buf), param_f32(dst, 0));
        if (!mask) continue;
        const void *const row = row_at(mask, i1, i2 % mask->ne[2], i3 % mask->ne[3]);
        t->k->f.axpy(m, z + i, row_load(t, mask, row, i, m, buf), slope);
    }
}

/* exp(z - max)/sum in place; `sink`, when there is one, counts as one more position that has no output. */
static void normalise(const struct float_kernels *k, int64_t n, float *z, const float *sink) {
    float max = k->max(n, z), extra = 0.0f;
    if (sink && *sink > max) max = *sink;
    if (max == -INFINITY) {                                     /* all masked; NaN, which max passes over, is kept */
        for (int64_t i = 0; i < n; i++) z[i] = z[i] == -INFINITY ? 0.0f : z[i];
        return;
    }
    if (sink) {
        extra = *sink - max;
        k->unary[GGML_UNARY_OP_EXP](1, &extra, &extra);
    }
    const double sum = k->exp_sum(n, z, z, max) + extra;
    k->mul1(n, z, z, (float) (1.0/sum));
}

void op_soft_max(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *sinks = dst->src[2];
    float *const part = (float *) (void *) ((char *) t->scratch + row_bytes(dst)*(size_t) t->ith);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        void *const row = row_at(dst, i1, i2, i3);
        float *const z = row_place(dst, row, 0, part);
        scores(t, dst, i1, i2, i3, z);
        normalise(&t->k->f, dst->ne[0], z, sinks ? (const float *) element(sinks, i2, 0, 0, 0) : NULL);
        row_store(t, dst, row, 0, dst->ne[0], z);
    }
}

/* dx = scale y (dy - sum y dy) */
void op_soft_max_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *grad = dst->src[0], *out = dst->src[1];
    const struct float_kernels *k = &t->k->f;
    const int64_t n = dst->ne[0];
    char *const part = (char *) t->scratch + 2*row_bytes(dst)*(size_t) t->ith;
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), n, &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *dy = row_load(t, grad, row_number(grad, r), 0, n, (float *) (void *) part);
        const float *y  = row_load(t, out, row_number(out, r), 0, n, (float *) (void *) (part + row_bytes(dst)));
        const float dot = (float) k->sum_mul(n, y, dy);
        FOR_PIECES(i, m, 0, n) {
            float dx[PIECE];                                    /* dst may lie on either source */
            k->add1(m, dx, dy + i, -dot);
            k->mul(m, dx, dx, y + i);
            k->mul1(m, dx, dx, param_f32(dst, 0));
            row_store(t, dst, row_number(dst, r), i, m, dx);
        }
    }
}
