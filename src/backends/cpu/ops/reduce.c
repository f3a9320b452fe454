/* SUM SUM_ROWS MEAN CUMSUM ARGMAX COUNT_EQUAL REPEAT REPEAT_BACK CONCAT ARANGE TIMESTEP_EMBEDDING.
 * Sums are kept in double, a row by the lanes of the sum kernel, rows in their order, and rounded once. */

#include "rows.h"

#include <math.h>
#include <string.h>

bool supports_readable(const struct ggml_tensor *dst) { return row_readable(dst->src[0]) && row_writable(dst); }

/* ---- sums ---------------------------------------------------------------------------------------------------------- */

/* One result per row, written through its own type. */
static void store_one(const struct cpu_task *t, const struct ggml_tensor *dst, void *row, float v) {
    row_store(t, dst, row, 0, 1, &v);
}

void op_sum(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    double sum = 0.0;
    for (int64_t r = 0; r < n_rows(x); r++) sum += t->k->f.sum(x->ne[0], row_whole(t, x, r));
    store_one(t, dst, dst->data, (float) sum);
}

static void sum_rows(const struct cpu_task *t, struct ggml_tensor *dst, double divisor) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        store_one(t, dst, row_number(dst, r), (float) (t->k->f.sum(x->ne[0], row_whole(t, x, r))/divisor));
    }
}
void op_sum_rows(const struct cpu_task *t, struct ggml_tensor *dst) { sum_rows(t, dst, 1.0); }
void op_mean    (const struct cpu_task *t, struct ggml_tensor *dst) { sum_rows(t, dst, (double) dst->src[0]->ne[0]); }

void op_cumsum(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const void *const from = row_number(x, r);
        void *const to = row_number(dst, r);
        float sum = 0.0f;
        FOR_PIECES(i, m, 0, x->ne[0]) {
            float buf_x[PIECE], buf[PIECE];
            const float *const v = row_load(t, x, from, i, m, buf_x);
            float *const y = row_place(dst, to, i, buf);
            for (int64_t j = 0; j < m; j++) y[j] = sum += v[j];
            row_store(t, dst, to, i, m, y);
        }
    }
}

/* ---- choice and count ---------------------------------------------------------------------------------------------- */

/* The first of the largest elements; NaN is passed over; 0 when there is nothing else. */
static int32_t first_max(const struct cpu_task *t, int64_t n, const float *x) {
    const float max = t->k->f.max(n, x);
    for (int64_t i = 0; i < n; i++) if (x[i] == max) return (int32_t) i;
    return 0;
}

void op_argmax(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, x->ne[1], x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        *(int32_t *) (void *) element(dst, r, 0, 0, 0) = first_max(t, x->ne[0], row_whole(t, x, r));
    }
}
bool supports_argmax(const struct ggml_tensor *dst) { return row_readable(dst->src[0]); }

bool supports_count_equal(const struct ggml_tensor *dst) {
    return dst->src[0]->type == GGML_TYPE_I32 && dst->src[1]->type == GGML_TYPE_I32;
}
void op_count_equal(const struct cpu_task *t, struct ggml_tensor *dst) {
    (void) t;
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    int64_t count = 0;
    for (int64_t r = 0; r < n_rows(a); r++) {
        const char *const row_a = row_number(a, r), *const row_b = row_number(b, r);
        for (int64_t i = 0; i < a->ne[0]; i++) {
            count += !memcmp(row_a + (size_t) i*a->nb[0], row_b + (size_t) i*b->nb[0], sizeof(int32_t));
        }
    }
    *(int64_t *) dst->data = count;
}

/* ---- repetition ---------------------------------------------------------------------------------------------------- */

bool supports_movable(const struct ggml_tensor *dst) {
    return row_movable(dst) && row_movable(dst->src[0]) && (!dst->src[1] || row_movable(dst->src[1]));
}

void op_repeat(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const size_t size = ggml_type_size(x->type);
    const int64_t n = row_units(dst), period = row_units(x);
    int64_t r0, r1;
    if (ggml_is_empty(x)) {                             /* nothing to repeat: zeros */
        if (task_chunk(t, 1, &r0)) memset(dst->data, 0, ggml_nbytes(dst));
        return;
    }
    while (next_rows(t, n_rows(dst), n, &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const char *const from = row_wrapped(x, i1, i2, i3);
        char *const to = row_at(dst, i1, i2, i3);
        if (period == 1) copy_units(to, dst->nb[0], from, 0, size, n);
        else for (int64_t i = 0; i < n; i += period) {
            copy_units(to + (size_t) i*dst->nb[0], dst->nb[0], from, x->nb[0], size, period);
        }
    }
}

/* Row (i1, i2, i3) of dst is the sum of the rows of x that repeat it, in the order of x. */
static void sum_of_tiles(const struct cpu_task *t, const struct ggml_tensor *dst, const struct ggml_tensor *x, float *y,
                         int64_t i1, int64_t i2, int64_t i3) {
    memset(y, 0, (size_t) dst->ne[0]*sizeof *y);
    for (int64_t k3 = i3; k3 < x->ne[3]; k3 += dst->ne[3])
    for (int64_t k2 = i2; k2 < x->ne[2]; k2 += dst->ne[2])
    for (int64_t k1 = i1; k1 < x->ne[1]; k1 += dst->ne[1])
    for (int64_t k0 = 0;  k0 < x->ne[0]; k0 += dst->ne[0]) {
        FOR_PIECES(i, m, 0, dst->ne[0]) {
            float buf[PIECE];
            t->k->f.add(m, y + i, y + i, row_load(t, x, row_at(x, k1, k2, k3), k0 + i, m, buf));
        }
    }
}
bool supports_repeat_back(const struct ggml_tensor *dst) {
    return dst->type == GGML_TYPE_F32 && row_readable(dst->src[0]) && ggml_blck_size(dst->src[0]->type) == 1;
}
void op_repeat_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    const int64_t work = ggml_nelements(x)/n_rows(dst);
    while (next_rows(t, n_rows(dst), work, &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        sum_of_tiles(t, dst, x, row_at(dst, i1, i2, i3), i1, i2, i3);
    }
}

void op_concat(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    const int dim = param_i32(dst, 0);
    const size_t size = ggml_type_size(dst->type);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), row_units(dst), &r0, &r1)) for (int64_t r = r0, i[4] = { 0 }; r < r1; r++) {
        row_index(dst, r, &i[1], &i[2], &i[3]);
        char *const to = row_at(dst, i[1], i[2], i[3]);
        const bool second = dim != 0 && i[dim] >= a->ne[dim];
        const struct ggml_tensor *const x = second ? b : a;
        if (second) i[dim] -= a->ne[dim];
        copy_units(to, dst->nb[0], row_at(x, i[1], i[2], i[3]), x->nb[0], size, row_units(x));
        if (dim != 0) continue;
        char *const behind = to + (size_t) row_units(a)*dst->nb[0];
        copy_units(behind, dst->nb[0], row_at(b, i[1], i[2], i[3]), b->nb[0], size, row_units(b));
    }
}

/* ---- sequences ----------------------------------------------------------------------------------------------------- */

void op_arange(const struct cpu_task *t, struct ggml_tensor *dst) {
    (void) t;
    const float start = param_f32(dst, 0), step = param_f32(dst, 2);
    float *const y = dst->data;
    for (int64_t i = 0; i < dst->ne[0]; i++) y[i] = start + step*(float) i;
}

/* cos and sin of t*exp(-ln(max_period)*j/half), behind each other (Vaswani et al. 2017, section 3.5). */
void op_timestep_embedding(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *steps = dst->src[0];
    const int64_t half = dst->ne[0]/2;
    float log_period = (float) param_i32(dst, 1);
    t->k->f.log(1, &log_period, &log_period);
    int64_t r0, r1;
    while (next_rows(t, dst->ne[1], 16*dst->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        float *const y = row_at(dst, r, 0, 0), buf[1];
        const float step = *row_load(t, steps, steps->data, r, 1, buf);
        for (int64_t j = 0; j < half; j++) y[j] = -log_period*(float) j/(float) half;
        t->k->f.unary[GGML_UNARY_OP_EXP](half, y, y);
        t->k->f.mul1(half, y, y, step);
        t->k->f.sin(half, y + half, y);
        t->k->f.cos(half, y, y);
        if (dst->ne[0] % 2) y[dst->ne[0] - 1] = 0.0f;
    }
}
