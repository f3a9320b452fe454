/* ADD SUB MUL DIV SILU_BACK ADD_ID ADD1 ACC SET: two operands, the second repeated over the first or laid into a region of it.
 * Operands of every readable type are widened to F32, and the result is rounded once to its own type. The result may lie in
 * the place of either operand. */

#include "rows.h"

#include <string.h>

typedef void pair_kernel(int64_t n, float *y, const float *a, const float *b);

static bool readable_pair(const struct ggml_tensor *dst) {
    return row_readable(dst->src[0]) && row_readable(dst->src[1]) && row_writable(dst);
}
bool supports_binary(const struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    return readable_pair(dst) && (ggml_blck_size(b->type) == 1 || a->ne[0] == b->ne[0]);
}

/* n elements from i0 on of a row that repeats every `period` elements of x. */
static const float *load_repeated(const struct cpu_task *t, const struct ggml_tensor *x, const void *row, int64_t period,
                                  int64_t i0, int64_t n, float *buf) {
    if (i0 + n <= period) return row_load(t, x, row, i0, n, buf);
    if (period == 1) {
        const float v = *row_load(t, x, row, 0, 1, buf);
        for (int64_t i = 0; i < n; i++) buf[i] = v;
        return buf;
    }
    for (int64_t i = 0, m; i < n; i += m) {
        const int64_t k = (i0 + i) % period;
        m = period - k < n - i ? period - k : n - i;
        const float *run = row_load(t, x, row, k, m, buf + i);
        if (run != buf + i) memcpy(buf + i, run, (size_t) m*sizeof *run);
    }
    return buf;
}

static void binary(const struct cpu_task *t, struct ggml_tensor *dst, pair_kernel *f) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    const bool flat = !t->part && ggml_are_same_shape(a, b) && ggml_is_contiguous(a) && ggml_is_contiguous(b) &&
        ggml_is_contiguous(dst);
    const int64_t rows = flat ? 1 : n_rows(dst), n = flat ? ggml_nelements(dst) : dst->ne[0];
    const int64_t period = flat ? n : b->ne[0];
    struct span s;
    while (next_span(t, rows, n, &s)) for (int64_t r = s.r0, i1, i2, i3; r < s.r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const void *const row_a = row_at(a, i1, i2, i3), *const row_b = row_wrapped(b, i1, i2, i3);
        void *const row = row_at(dst, i1, i2, i3);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_a[PIECE], buf_b[PIECE], buf[PIECE];
            float *const y = row_place(dst, row, i, buf);
            f(m, y, row_load(t, a, row_a, i, m, buf_a), load_repeated(t, b, row_b, period, i, m, buf_b));
            row_store(t, dst, row, i, m, y);
        }
    }
}
void op_add(const struct cpu_task *t, struct ggml_tensor *dst) { binary(t, dst, t->k->f.add); }
void op_sub(const struct cpu_task *t, struct ggml_tensor *dst) { binary(t, dst, t->k->f.sub); }
void op_mul(const struct cpu_task *t, struct ggml_tensor *dst) { binary(t, dst, t->k->f.mul); }
void op_div(const struct cpu_task *t, struct ggml_tensor *dst) { binary(t, dst, t->k->f.div); }
void op_silu_back(const struct cpu_task *t, struct ggml_tensor *dst) { binary(t, dst, t->k->f.silu_back); }

bool supports_readable_pair(const struct ggml_tensor *dst) { return readable_pair(dst); }

void op_add_id(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1], *ids = dst->src[2];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0, i1, i2, i3; r < s.r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const int64_t id = index_at(ids, i1, i2, 0);
        if (id < 0 || id >= b->ne[1]) {
            task_fail(t, dst, "row %lld of %lld", (long long) id, (long long) b->ne[1]);
            return;
        }
        const void *const row_a = row_at(a, i1, i2, i3), *const row_b = row_at(b, id, 0, 0);
        void *const row = row_at(dst, i1, i2, i3);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_a[PIECE], buf_b[PIECE], buf[PIECE];
            float *const y = row_place(dst, row, i, buf);
            t->k->f.add(m, y, row_load(t, a, row_a, i, m, buf_a), row_load(t, b, row_b, i, m, buf_b));
            row_store(t, dst, row, i, m, y);
        }
    }
}

void op_add1(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    float scalar;
    scalar = *row_load(t, b, b->data, 0, 1, &scalar);
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        const void *const row_a = row_number(a, r);
        void *const row = row_number(dst, r);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_a[PIECE], buf[PIECE];
            float *const y = row_place(dst, row, i, buf);
            t->k->f.add1(m, y, row_load(t, a, row_a, i, m, buf_a), scalar);
            row_store(t, dst, row, i, m, y);
        }
    }
}

/* ---- regions: op_params hold the strides of dims 1 to 3 and the offset, in bytes ----------------------------------- */

/* The region as a tensor, b's shape over dst's bytes. Rows of it may overlap: one worker writes them in order. */
static struct ggml_tensor region_of(const struct ggml_tensor *dst) {
    struct ggml_tensor region = *dst;
    memcpy(region.ne, dst->src[1]->ne, sizeof region.ne);
    for (int d = 1; d < GGML_MAX_DIMS; d++) region.nb[d] = (size_t) param_i32(dst, d - 1);
    region.data = (char *) dst->data + param_i32(dst, 3);
    return region;
}
static void start_from_source(const struct ggml_tensor *dst) {
    if (dst->data != dst->src[0]->data) memcpy(dst->data, dst->src[0]->data, ggml_nbytes(dst));
}

bool supports_acc(const struct ggml_tensor *dst) {
    return dst->type == GGML_TYPE_F32 && row_readable(dst->src[1]) && ggml_is_contiguous(dst->src[0]);
}
void op_acc(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *b = dst->src[1], region = region_of(dst);
    start_from_source(dst);
    for (int64_t r = 0; r < n_rows(b); r++) {
        const void *const row_b = row_number(b, r);
        float *const row = row_number(&region, r);
        FOR_PIECES(i, m, 0, b->ne[0]) {
            float buf[PIECE];
            t->k->f.add(m, row + i, row + i, row_load(t, b, row_b, i, m, buf));
        }
    }
}

bool supports_set(const struct ggml_tensor *dst) {
    return dst->type == dst->src[1]->type && ggml_blck_size(dst->type) == 1 && ggml_is_contiguous(dst->src[0]);
}
void op_set(const struct cpu_task *t, struct ggml_tensor *dst) {
    (void) t;
    const struct ggml_tensor *b = dst->src[1], region = region_of(dst);
    const size_t size = ggml_type_size(dst->type);
    start_from_source(dst);
    for (int64_t r = 0; r < n_rows(b); r++) {
        copy_units(row_number(&region, r), size, row_number(b, r), b->nb[0], size, b->ne[0]);
    }
}
