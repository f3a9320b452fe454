/* OUT_PROD SOLVE_TRI: rows of the result are sums of rows, one fused multiply-add a term, in increasing t. */

#include "rows.h"

#include <string.h>

bool supports_out_prod(const struct ggml_tensor *dst) {
    return row_readable(dst->src[0]) && plain_float(dst->src[1]->type);
}

/* y[:, j] = sum over t of a[:, t]*b[j, t]; a's slices are shared as in a matrix product. Some rows of y, of one slice, grow together,
 * a strip at a time and some terms at a time, so that what they meet stays in the first cache. */
enum { TOGETHER = 8*OUTER_ROWS, STRIP = 256, TERMS = 16 };

/* The strip y, n rows y_step floats apart, grows by terms of x times factors; those of a term lie one row of y after the other. */
static void grow(const struct cpu_task *t, int64_t m, float *y, int64_t y_step, int64_t n, const float *const *x, int terms,
                 const struct ggml_tensor *b, const char *const *factors) {
    for (int64_t r = 0; r < n; r += OUTER_ROWS) {
        const int rows = n - r < OUTER_ROWS ? (int) (n - r) : OUTER_ROWS;
        const int64_t whole = rows == OUTER_ROWS ? m/16*16 : 0;
        float s[TERMS*OUTER_ROWS];
        for (int k = 0; k < terms; k++) for (int j = 0; j < rows; j++) {
            s[OUTER_ROWS*k + j] = float_from(b->type, factors[k] + (size_t) (r + j)*b->nb[0]);
        }
        float *const to = y + r*y_step;
        if (whole) t->k->f.outer(whole, to, y_step, x, s, terms);
        for (int k = 0; k < terms && whole < m; k++) for (int j = 0; j < rows; j++) {
            t->k->f.axpy(m - whole, to + j*y_step + whole, x[k] + whole, s[OUTER_ROWS*k + j]);
        }
    }
}
/* Whether term k belongs to slice i2: all do, unless a third source has the slices of terms (gradients of experts). */
static bool is_term(const struct ggml_tensor *slices, int64_t k, int64_t i2) {
    return !slices || *(const int32_t *) ((const char *) slices->data + (size_t) k*slices->nb[0]) == i2;
}
/* Elements i0 .. end-1 of rows r .. r+n-1 of y, of one slice. */
static void out_prod_rows(const struct cpu_task *t, struct ggml_tensor *dst, int64_t r, int64_t n, int64_t i0, int64_t end) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1], *slices = dst->src[2];
    const int64_t y_step = (int64_t) (dst->nb[1]/sizeof(float));
    int64_t i1, i2, i3;
    row_index(dst, r, &i1, &i2, &i3);
    const int64_t a2 = slices ? 0 : i2/(b->ne[2]/a->ne[2]), a3 = i3/(b->ne[3]/a->ne[3]), b2 = slices ? 0 : i2;
    for (int64_t i = i0; i < end; i += STRIP) {
        const int64_t m = end - i < STRIP ? end - i : STRIP;
        float *const y = (float *) row_at(dst, i1, i2, i3) + i;
        for (int64_t j = 0; j < n; j++) memset(y + j*y_step, 0, (size_t) m*sizeof *y);
        for (int64_t k = 0; k < a->ne[1]; ) {
            const float *x[TERMS];
            const char *factors[TERMS];
            float buf[TERMS][STRIP];
            int terms = 0;
            for (; k < a->ne[1] && terms < TERMS; k++) {
                if (!is_term(slices, k, i2)) continue;
                x[terms]       = row_load(t, a, row_at(a, k, a2, a3), i, m, buf[terms]);
                factors[terms] = element(b, i1, k, b2, i3);
                terms++;
            }
            grow(t, m, y, y_step, n, x, terms, b, factors);
        }
    }
}
void op_out_prod(const struct cpu_task *t, struct ggml_tensor *dst) {
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0, n; r < s.r1; r += n) {
        n = dst->ne[1] - r % dst->ne[1];
        if (n > s.r1 - r) n = s.r1 - r;
        if (n > TOGETHER) n = TOGETHER;
        out_prod_rows(t, dst, r, n, s.i0, s.i1);
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
