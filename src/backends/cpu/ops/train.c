/* CROSS_ENTROPY_LOSS CROSS_ENTROPY_LOSS_BACK OPT_STEP_ADAMW OPT_STEP_SGD. */

#include "rows.h"

#include <math.h>

/* ---- loss ---------------------------------------------------------------------------------------------------------- */

static bool direct(const struct ggml_tensor *x) { return row_direct(x); }
bool supports_loss(const struct ggml_tensor *dst) {
    return dst->type == GGML_TYPE_F32 && direct(dst->src[0]) && direct(dst->src[1]) &&
        (!dst->src[2] || direct(dst->src[2]));
}
size_t scratch_loss(const struct ggml_tensor *dst, int n_threads) { return row_bytes(dst->src[1])*(size_t) n_threads; }
static float *scratch_row(const struct cpu_task *t, const struct ggml_tensor *x) {
    return (float *) (void *) ((char *) t->scratch + row_bytes(x)*(size_t) t->ith);
}

/* Rows in their order, in double. */
void op_cross_entropy_loss(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *logits = dst->src[0], *labels = dst->src[1];
    float *const e = scratch_row(t, labels);
    const int64_t n = logits->ne[0];
    double loss = 0.0;
    for (int64_t r = 0; r < n_rows(logits); r++) {
        const float *const x = row_number(logits, r), *const p = row_number(labels, r);
        const float max = t->k->f.max(n, x);
        float log_sum = (float) t->k->f.exp_sum(n, e, x, max);
        t->k->f.log(1, &log_sum, &log_sum);
        for (int64_t i = 0; i < n; i++) loss += (double) p[i]*((double) x[i] - (double) max - (double) log_sum);
    }
    *(float *) dst->data = (float) (-loss/(double) n_rows(logits));
}

void op_cross_entropy_loss_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *grad = dst->src[0], *logits = dst->src[1], *labels = dst->src[2];
    const float scale = *(const float *) grad->data/(float) n_rows(logits);
    const int64_t n = logits->ne[0];
    float *const e = scratch_row(t, logits);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), n, &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *const x = row_number(logits, r), *const p = row_number(labels, r);
        float *const y = row_number(dst, r);
        const float sum = (float) t->k->f.exp_sum(n, e, x, t->k->f.max(n, x));
        for (int64_t i = 0; i < n; i++) y[i] = (e[i]/sum - p[i])*scale;
    }
}

/* ---- optimiser steps: the result is a view of the parameters -------------------------------------------------------- */

bool supports_opt_step(const struct ggml_tensor *dst) {
    for (int s = 0; s < 4 && dst->src[s]; s++) if (!row_direct(dst->src[s])) return false;
    return true;
}

/* Loshchilov and Hutter 2019, "Decoupled weight decay regularization". */
void op_opt_step_adamw(const struct cpu_task *t, struct ggml_tensor *dst) {
    const float *const p = dst->src[4]->data;
    const float alpha = p[0], beta1 = p[1], beta2 = p[2], eps = p[3], keep = 1.0f - alpha*p[4], c1 = p[5], c2 = p[6];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        float *const w = row_number(dst, r), *const m = row_number(dst->src[2], r), *const v = row_number(dst->src[3], r);
        const float *const g = row_number(dst->src[1], r);
        for (int64_t i = s.i0; i < s.i1; i++) {
            m[i] = beta1*m[i] + (1.0f - beta1)*g[i];
            v[i] = beta2*v[i] + (1.0f - beta2)*g[i]*g[i];
            w[i] = w[i]*keep - alpha*(m[i]*c1)/(sqrtf(v[i]*c2) + eps);
        }
    }
}

void op_opt_step_sgd(const struct cpu_task *t, struct ggml_tensor *dst) {
    const float *const p = dst->src[2]->data;
    const float alpha = p[0], keep = 1.0f - alpha*p[1];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        float *const w = row_number(dst, r);
        const float *const g = row_number(dst->src[1], r);
        for (int64_t i = s.i0; i < s.i1; i++) w[i] = w[i]*keep - alpha*g[i];
    }
}
