/* GET_ROWS GET_ROWS_BACK SET_ROWS DIAG DIAG_MASK_INF DIAG_MASK_ZERO TRI: whole rows picked by number, and rows of which a
 * part is kept. An index outside its tensor ends the run with an error before anything is read or written through it. */

#include "rows.h"

#include <math.h>
#include <string.h>

static bool index_ok(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t id, int64_t rows) {
    if (id >= 0 && id < rows) return true;
    task_fail(t, dst, "row %lld of a tensor of %lld rows", (long long) id, (long long) rows);
    return false;
}

/* ---- gather -------------------------------------------------------------------------------------------------------- */

bool supports_get_rows(const struct ggml_tensor *dst) {
    return row_readable(dst->src[0]) || dst->src[0]->type == GGML_TYPE_I32;
}

/* Elements i0 .. i1-1 of a row of x, to a dense row of 32-bit elements. */
static void get_row(const struct cpu_task *t, const struct ggml_tensor *x, const char *row, void *to,
                    int64_t i0, int64_t i1) {
    if (x->type == GGML_TYPE_I32) {
        copy_units((char *) to + (size_t) i0*4, 4, row + (size_t) i0*x->nb[0], x->nb[0], 4, i1 - i0);
        return;
    }
    float *const y = (float *) to + i0;
    const float *const v = row_load(t, x, row, i0, i1 - i0, y);
    if (v != y) memcpy(y, v, (size_t) (i1 - i0)*sizeof *y);
}

void op_get_rows(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *table = dst->src[0], *ids = dst->src[1];
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0, i1, i2, i3; r < s.r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const int64_t id = index_at(ids, i1, i2, i3);
        if (!index_ok(t, dst, id, table->ne[1])) return;
        get_row(t, table, row_at(table, id, i2, i3), row_at(dst, i1, i2, i3), s.i0, s.i1);
    }
}

bool supports_get_rows_back(const struct ggml_tensor *dst) { return plain_float(dst->src[0]->type); }

/* Each chunk owns some columns of every row, so several rows with one number are added in their order. */
void op_get_rows_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0], *ids = dst->src[1];
    int64_t part;
    while (task_chunk(t, (dst->ne[0] + PIECE - 1)/PIECE, &part)) {
        const int64_t i = part*PIECE, m = dst->ne[0] - i < PIECE ? dst->ne[0] - i : PIECE;
        for (int64_t r = 0; r < dst->ne[1]; r++) memset((float *) row_at(dst, r, 0, 0) + i, 0, (size_t) m*sizeof(float));
        for (int64_t r = 0; r < ids->ne[0]; r++) {
            const int64_t id = index_at(ids, r, 0, 0);
            if (!index_ok(t, dst, id, dst->ne[1])) return;
            float buf[PIECE], *const y = (float *) row_at(dst, id, 0, 0) + i;
            t->k->f.add(m, y, y, row_load(t, x, row_at(x, r, 0, 0), i, m, buf));
        }
    }
}

/* ---- scatter ------------------------------------------------------------------------------------------------------- */

bool supports_set_rows(const struct ggml_tensor *dst) { return row_readable(dst->src[0]) && row_writable(dst); }

static void set_row(const struct cpu_task *t, const struct ggml_tensor *x, const void *from,
                    const struct ggml_tensor *dst, void *to) {
    FOR_PIECES(i, m, 0, x->ne[0]) {
        float buf[PIECE];
        row_store(t, dst, to, i, m, row_load(t, x, from, i, m, buf));
    }
}

/* A chunk owns the rows of dst whose number falls to it, and goes through all indices in order: of several rows with one
 * number the last remains, whoever computes. */
void op_set_rows(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0], *ids = dst->src[1];
    const int64_t wanted = t->nth == 1 ? 1 : ggml_nelements(x)/CHUNK + 1, chunks = wanted < 64 ? wanted : 64;
    int64_t chunk;
    while (task_chunk(t, chunks, &chunk)) for (int64_t r = 0, i1 = 0, i2 = 0, i3 = 0; r < n_rows(x); r++) {
        const int64_t id = index_at(ids, i1, wrap(i2, ids->ne[1]), wrap(i3, ids->ne[2]));
        if (!index_ok(t, dst, id, dst->ne[1])) return;
        if (id % chunks == chunk) set_row(t, x, row_at(x, i1, i2, i3), dst, row_at(dst, id, i2, i3));
        if (++i1 == x->ne[1]) {
            i1 = 0;
            if (++i2 == x->ne[2]) i2 = 0, i3++;
        }
    }
}

/* ---- a part of each row -------------------------------------------------------------------------------------------- */

bool supports_f32_source(const struct ggml_tensor *dst) {
    return dst->type == GGML_TYPE_F32 && dst->src[0]->type == GGML_TYPE_F32;
}

void op_diag(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        float *const y = row_at(dst, i1, i2, i3);
        memset(y, 0, (size_t) dst->ne[0]*sizeof *y);
        y[i1] = *(const float *) (const void *) element(a, i1, 0, i2, i3);
    }
}

/* Row i1 of dst keeps elements from + up*i1 .. to + down*i1 - 1 of its source; the others become `value`. */
struct kept { int64_t from, up, to, down; float value; };

static void keep(const struct cpu_task *t, struct ggml_tensor *dst, struct kept k) {
    const struct ggml_tensor *a = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const int64_t from = k.from + k.up*i1, to = k.to + k.down*i1;
        const void *const row_a = row_at(a, i1, i2, i3);
        void *const row = row_at(dst, i1, i2, i3);
        FOR_PIECES(i, m, 0, dst->ne[0]) {
            float buf_a[PIECE], buf[PIECE];
            const float *const x = row_load(t, a, row_a, i, m, buf_a);
            float *const y = row_place(dst, row, i, buf);
            for (int64_t j = 0; j < m; j++) y[j] = i + j >= from && i + j < to ? x[j] : k.value;
            row_store(t, dst, row, i, m, y);
        }
    }
}

void op_diag_mask_inf(const struct cpu_task *t, struct ggml_tensor *dst) {
    keep(t, dst, (struct kept) { .to = (int64_t) param_i32(dst, 0) + 1, .down = 1, .value = -INFINITY });
}
void op_diag_mask_zero(const struct cpu_task *t, struct ggml_tensor *dst) {
    keep(t, dst, (struct kept) { .to = (int64_t) param_i32(dst, 0) + 1, .down = 1 });
}

void op_tri(const struct cpu_task *t, struct ggml_tensor *dst) {
    const int64_t n = dst->ne[0];
    const struct kept kinds[] = {
        [GGML_TRI_TYPE_UPPER_DIAG] = { .from = 0, .up = 1, .to = n },
        [GGML_TRI_TYPE_UPPER]      = { .from = 1, .up = 1, .to = n },
        [GGML_TRI_TYPE_LOWER_DIAG] = { .to = 1, .down = 1 },
        [GGML_TRI_TYPE_LOWER]      = { .to = 0, .down = 1 },
    };
    keep(t, dst, kinds[param_i32(dst, 0)]);
}
