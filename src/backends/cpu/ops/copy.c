/* DUP CPY CONT: the elements of the source in logical order become those of the result, whatever their shapes and layouts.
 * Between equal types bytes are moved; otherwise values go through F32 (integers: truncated towards zero, NaN to 0, values
 * outside the range to its nearest end). */

#include "rows.h"

#include <string.h>

/* ---- a place in a tensor, in logical order --------------------------------------------------------------------------- */

struct cursor {
    const struct ggml_tensor *t;
    int64_t n, i0, i1, i2, i3;          /* n units in a row; the place, in units */
    char   *row;
};

static struct cursor cursor_at(const struct ggml_tensor *t, int64_t unit) {
    struct cursor c = { .t = t, .n = row_units(t) };
    c.i0 = unit % c.n;
    row_index(t, unit/c.n, &c.i1, &c.i2, &c.i3);
    c.row = row_at(t, c.i1, c.i2, c.i3);
    return c;
}

/* m units on, at most to the start of the next row. */
static void cursor_move(struct cursor *c, int64_t m) {
    const struct ggml_tensor *t = c->t;
    if ((c->i0 += m) < c->n) return;
    c->i0 = 0;
    if (++c->i1 == t->ne[1]) {
        c->i1 = 0;
        if (++c->i2 == t->ne[2]) c->i2 = 0, c->i3++;
    }
    c->row = row_at(t, c->i1, c->i2, c->i3);
}
static char *cursor_unit(const struct cursor *c) { return c->row + (size_t) c->i0*c->t->nb[0]; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- equal types --------------------------------------------------------------------------------------------------- */

static void move(const struct cpu_task *t, struct ggml_tensor *dst, const struct ggml_tensor *src) {
    const size_t size = ggml_type_size(dst->type);
    const int64_t total = row_units(dst)*n_rows(dst);
    const bool packed = ggml_is_contiguous(dst) && ggml_is_contiguous(src);
    struct span s;
    while (next_span(t, 1, total, &s)) {
        if (packed) {
            memmove((char *) dst->data + (size_t) s.i0*size, (const char *) src->data + (size_t) s.i0*size,
                    (size_t) (s.i1 - s.i0)*size);
            continue;
        }
        struct cursor from = cursor_at(src, s.i0), to = cursor_at(dst, s.i0);
        for (int64_t i = s.i0, m; i < s.i1; i += m) {
            m = least(s.i1 - i, least(from.n - from.i0, to.n - to.i0));
            copy_units(cursor_unit(&to), dst->nb[0], cursor_unit(&from), src->nb[0], size, m);
            cursor_move(&from, m);
            cursor_move(&to, m);
        }
    }
}

/* ---- conversions --------------------------------------------------------------------------------------------------- */

static int32_t to_i32(float v) {
    return v >= 0x1p31f ? INT32_MAX : v < -0x1p31f ? INT32_MIN : v == v ? (int32_t) v : 0;
}

static const float *load(const struct cpu_task *t, const struct cursor *c, int64_t i0, int64_t n, float *buf) {
    if (c->t->type != GGML_TYPE_I32) return row_load(t, c->t, c->row, i0, n, buf);
    for (int64_t i = 0; i < n; i++) buf[i] = (float) *(const int32_t *) (const void *) (c->row + (size_t) (i0 + i)*c->t->nb[0]);
    return buf;
}
static void store(const struct cpu_task *t, const struct cursor *c, int64_t i0, int64_t n, const float *v) {
    if (c->t->type != GGML_TYPE_I32) { row_store(t, c->t, c->row, i0, n, v); return; }
    for (int64_t i = 0; i < n; i++) *(int32_t *) (void *) (c->row + (size_t) (i0 + i)*c->t->nb[0]) = to_i32(v[i]);
}

/* n elements from the source's place on: where they lie, or gathered in buf. Both sides start at blocks. */
static const float *take(const struct cpu_task *t, struct cursor *c, int64_t n, float *buf) {
    const int64_t block = ggml_blck_size(c->t->type);
    for (int64_t i = 0, m; i < n; i += m) {
        m = least(n - i, (c->n - c->i0)*block);
        const float *run = load(t, c, c->i0*block, m, buf + i);
        cursor_move(c, m/block);
        if (m == n) return run;
        if (run != buf + i) memcpy(buf + i, run, (size_t) m*sizeof *run);
    }
    return buf;
}
static void give(const struct cpu_task *t, struct cursor *c, int64_t n, const float *v) {
    const int64_t block = ggml_blck_size(c->t->type);
    for (int64_t i = 0, m; i < n; i += m) {
        m = least(n - i, (c->n - c->i0)*block);
        store(t, c, c->i0*block, m, v + i);
        cursor_move(c, m/block);
    }
}

static void convert(const struct cpu_task *t, struct ggml_tensor *dst, const struct ggml_tensor *src) {
    struct span s;
    while (next_span(t, 1, ggml_nelements(dst), &s)) {
        struct cursor from = cursor_at(src, s.i0/ggml_blck_size(src->type));
        struct cursor to   = cursor_at(dst, s.i0/ggml_blck_size(dst->type));
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf[PIECE];
            give(t, &to, m, take(t, &from, m, buf));
        }
    }
}

/* Indices: 64 bits to the nearest of 32. */
static void narrow(const struct cpu_task *t, struct ggml_tensor *dst, const struct ggml_tensor *src) {
    struct span s;
    while (next_span(t, 1, ggml_nelements(dst), &s)) {
        struct cursor from = cursor_at(src, s.i0), to = cursor_at(dst, s.i0);
        for (int64_t i = s.i0; i < s.i1; i++, cursor_move(&from, 1), cursor_move(&to, 1)) {
            const int64_t v = *(const int64_t *) (const void *) cursor_unit(&from);
            *(int32_t *) (void *) cursor_unit(&to) = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t) v;
        }
    }
}

/* ---- the ops ------------------------------------------------------------------------------------------------------- */

bool supports_copy(const struct ggml_tensor *dst) {
    const struct ggml_tensor *src = dst->src[0];
    if (src->type == dst->type) return row_movable(src) && row_movable(dst);
    if (src->type == GGML_TYPE_I64) return dst->type == GGML_TYPE_I32;
    return (row_readable(src) || src->type == GGML_TYPE_I32) && (row_writable(dst) || dst->type == GGML_TYPE_I32);
}

void op_copy(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *src = dst->src[0];
    const bool same_place = src->data == dst->data && ggml_are_same_shape(src, dst) && ggml_are_same_stride(src, dst);
    if (src->type != dst->type) (src->type == GGML_TYPE_I64 ? narrow : convert)(t, dst, src);
    else if (!same_place)       move(t, dst, src);
}
