/* OUT_PROD SOLVE_TRI: rows of the result are sums of rows, one fused multiply-add a term, in increasing t. */

#include "rows.h"

#include <string.h>

bool supports_out_prod(const struct ggml_tensor *dst) {
    return row_readable(dst->src[0]) && plain_float(dst->src[1]->type);
}

/* y[:, j] = sum over t of a[:, t]*b[j, t]; a's slices are shared as in a matrix product. */
void op_out_prod(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    const int64_t share2 = b->ne[2]/a->ne[2], share3 = b->ne[3]/a->ne[3];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0, i1, i2, i3; r < s.r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        float *const y = row_at(dst, i1, i2, i3);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf[PIECE];
            memset(y + i, 0, (size_t) m*sizeof *y);
            for (int64_t k = 0; k < a->ne[1]; k++) {
                const float *const x = row_load(t, a, row_at(a, k, i2/share2, i3/share3), i, m, buf);
                t->k->f.axpy(m, y + i, x, float_at(b, i1, k, i2, i3));
            }
        }
    }
}

/* Forward substitution for some columns of one slice: a is lower triangular, a row of it along dim 0. */
static void substitute(const struct cpu_task *t, struct ggml_tensor *dst, int64_t i, int64_t m, int64_t i2, int64_t i3) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    for (int64_t r = 0; r < a->ne[1]; r++) {
        float *const y = (float *) row_at(dst, r, i2, i3) + i, buf[PIECE];
        const float *const x = row_load(t, b, row_at(b, r, i2, i3), i, m, buf);
        if (x != y) memcpy(y, x, (size_t) m*sizeof *y);
        for (int64_t k = 0; k < r; k++) {
            t->k->f.axpy(m, y, (const float *) row_at(dst, k, i2, i3) + i, -float_at(a, k, r, i2, i3));
        }
        const float pivot = float_at(a, r, r, i2, i3);
        for (int64_t j = 0; j < m; j++) y[j] /= pivot;
    }
}
void op_solve_tri(const struct cpu_task *t, struct ggml_tensor *dst) {
    enum { COLUMNS = 64 };
    const int64_t parts = (dst->ne[0] + COLUMNS - 1)/COLUMNS;
    int64_t chunk;
    while (task_chunk(t, parts*dst->ne[2]*dst->ne[3], &chunk)) {
        const int64_t i = chunk % parts*COLUMNS, slice = chunk/parts;
        substitute(t, dst, i, dst->ne[0] - i < COLUMNS ? dst->ne[0] - i : COLUMNS, slice % dst->ne[2], slice/dst->ne[2]);
    }
}
