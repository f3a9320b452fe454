/* NORM RMS_NORM L2_NORM GROUP_NORM RMS_NORM_BACK. Sums run over 16 double lanes and the factor of a row is computed in double,
 * so that no finite row overflows; only the factor is rounded to F32. */

#include "rows.h"

#include <math.h>

/* (x - mean)*scale for the row at `row` of dst. */
static void write_row(const struct cpu_task *t, const struct ggml_tensor *dst, void *row, const float *x, double mean, double scale) {
    FOR_PIECES(i, m, 0, dst->ne[0]) {
        float buf[PIECE];
        float *const y = row_place(dst, row, i, buf);
        if (mean != 0.0) t->k->f.add1(m, y, x + i, (float) -mean);
        t->k->f.mul1(m, y, mean != 0.0 ? y : x + i, (float) scale);
        row_store(t, dst, row, i, m, y);
    }
}

struct factors { double mean, scale; };
typedef struct factors row_factors(const struct float_kernels *k, int64_t n, const float *x, double eps);

static void norm(const struct cpu_task *t, struct ggml_tensor *dst, row_factors *f) {
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *x = row_whole(t, dst->src[0], r);
        const struct factors a = f(&t->k->f, dst->ne[0], x, param_f32(dst, 0));
        write_row(t, dst, row_number(dst, r), x, a.mean, a.scale);
    }
}

static struct factors layer(const struct float_kernels *k, int64_t n, const float *x, double eps) {
    const double mean = k->sum(n, x)/(double) n;
    return (struct factors) { mean, 1.0/sqrt(k->sum_sq_from(n, x, mean)/(double) n + eps) };
}
static struct factors rms(const struct float_kernels *k, int64_t n, const float *x, double eps) {
    return (struct factors) { 0.0, 1.0/sqrt(k->sum_sq(n, x)/(double) n + eps) };
}
static struct factors l2(const struct float_kernels *k, int64_t n, const float *x, double eps) {
    return (struct factors) { 0.0, 1.0/fmax(sqrt(k->sum_sq(n, x)), eps) };
}
void op_norm    (const struct cpu_task *t, struct ggml_tensor *dst) { norm(t, dst, layer); }
void op_rms_norm(const struct cpu_task *t, struct ggml_tensor *dst) { norm(t, dst, rms); }
void op_l2_norm (const struct cpu_task *t, struct ggml_tensor *dst) { norm(t, dst, l2); }

/* A group is a run of channels (dim 2) of one slice (dim 3): its rows are summed one after the other. */
void op_group_norm(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0];
    const struct float_kernels *k = &t->k->f;
    const int64_t groups = param_i32(dst, 0), n = a->ne[0], channels = (a->ne[2] + groups - 1)/groups;
    int64_t chunk;
    while (task_chunk(t, groups*a->ne[3], &chunk)) {
        const int64_t i3 = chunk/groups, first = chunk%groups*channels;
        const int64_t last = first + channels < a->ne[2] ? first + channels : a->ne[2];
        const int64_t r0 = (i3*a->ne[2] + first)*a->ne[1], r1 = (i3*a->ne[2] + last)*a->ne[1];
        const double count = (double) n*(double) (r1 - r0);
        double sum = 0.0, sq = 0.0;
        for (int64_t r = r0; r < r1; r++) sum += k->sum(n, row_whole(t, a, r));
        for (int64_t r = r0; r < r1; r++) sq += k->sum_sq_from(n, row_whole(t, a, r), sum/count);
        const double scale = 1.0/sqrt(sq/count + (double) param_f32(dst, 1));
        for (int64_t r = r0; r < r1; r++) write_row(t, dst, row_number(dst, r), row_whole(t, a, r), sum/count, scale);
    }
}

size_t scratch_rms_norm_back(const struct ggml_tensor *dst, int n_threads) { return 2*row_bytes(dst)*(size_t) n_threads; }

/* With S = sum x^2, D = sum x dy over a row of n: dx = (dy - x D/(S + eps n))/sqrt(S/n + eps). */
void op_rms_norm_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *grad = dst->src[0], *a = dst->src[1];
    const struct float_kernels *k = &t->k->f;
    const int64_t n = dst->ne[0];
    const double eps = param_f32(dst, 0);
    char *const part = (char *) t->scratch + 2*row_bytes(dst)*(size_t) t->ith;
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), n, &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *dy = row_load(t, grad, row_number(grad, r), 0, n, (float *) (void *) part);
        const float *x  = row_load(t, a, row_number(a, r), 0, n, (float *) (void *) (part + row_bytes(dst)));
        const double sq = k->sum_sq(n, x), dot = k->sum_mul(n, x, dy), scale = 1.0/sqrt(sq/(double) n + eps);
        FOR_PIECES(i, m, 0, n) {
            float y[PIECE];                                     /* dst may lie on either source */
            k->mul1(m, y, dy + i, (float) scale);
            k->axpy(m, y, x + i, (float) (-dot/(sq + eps*(double) n)*scale));
            row_store(t, dst, row_number(dst, r), i, m, y);
        }
    }
}
