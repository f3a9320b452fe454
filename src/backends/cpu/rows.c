/* Chunks of rows, and rows of every type and layout as floats. */

#include "rows.h"

#include <string.h>

/* ---- chunks -------------------------------------------------------------------------------------------------------- */

static bool take_part(const struct cpu_task *t, struct span *s) {
    *s = *t->part;
    t->part->r1 = t->part->r0;
    return s->r0 < s->r1;
}

bool next_rows(const struct cpu_task *t, int64_t rows, int64_t n, int64_t *r0, int64_t *r1) {
    if (t->part) {
        struct span s;
        const bool some = take_part(t, &s);
        *r0 = s.r0, *r1 = s.r1;
        return some;
    }
    const int64_t step = n >= CHUNK ? 1 : CHUNK/(n > 0 ? n : 1);
    int64_t chunk;
    if (!task_chunk(t, (rows + step - 1)/step, &chunk)) return false;
    *r0 = chunk*step;
    *r1 = *r0 + step < rows ? *r0 + step : rows;
    return true;
}

bool next_span(const struct cpu_task *t, int64_t rows, int64_t n, struct span *s) {
    if (t->part) return take_part(t, s);
    if (n <= CHUNK) {
        s->i0 = 0, s->i1 = n;
        return n > 0 && next_rows(t, rows, n, &s->r0, &s->r1);
    }
    const int64_t parts = (n + CHUNK - 1)/CHUNK;
    int64_t chunk;
    if (!task_chunk(t, rows*parts, &chunk)) return false;
    s->r0 = chunk/parts, s->r1 = s->r0 + 1;
    s->i0 = chunk%parts*CHUNK;
    s->i1 = s->i0 + CHUNK < n ? s->i0 + CHUNK : n;
    return true;
}

/* ---- rows as floats ------------------------------------------------------------------------------------------------ */

bool supports_plain_floats(const struct ggml_tensor *dst) {
    for (int s = 0; s < GGML_MAX_SRC; s++) if (dst->src[s] && !plain_float(dst->src[s]->type)) return false;
    return dst->type == GGML_TYPE_F32;
}
bool row_readable(const struct ggml_tensor *x) {
    return plain_float(x->type) || (quant_types[x->type].unpack && row_dense(x));
}
bool row_writable(const struct ggml_tensor *y) {
    return plain_float(y->type) || (quant_types[y->type].pack && row_dense(y));
}

/* n <= PIECE halves that lie `step` bytes apart, side by side. */
static void gather_halves(uint16_t *to, const char *from, size_t step, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(to + i, from + (size_t) i*step, sizeof *to);
}
static void scatter_halves(char *to, size_t step, const uint16_t *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t) i*step, from + i, sizeof *from);
}

const float *row_load(const struct cpu_task *t, const struct ggml_tensor *x, const void *row, int64_t i0, int64_t n,
                      float *buf) {
    const char *from = (const char *) row + (size_t) (i0/ggml_blck_size(x->type))*x->nb[0];
    if (x->type == GGML_TYPE_F32) {
        if (row_dense(x)) return (const float *) (const void *) from;
        for (int64_t i = 0; i < n; i++) memcpy(buf + i, from + (size_t) i*x->nb[0], sizeof *buf);
        return buf;
    }
    if (!plain_float(x->type)) {
        t->k->q.unpack[x->type](from, buf, n);
        return buf;
    }
    void (*const widen)(int64_t, float *, const uint16_t *) =
        x->type == GGML_TYPE_F16 ? t->k->f.from_f16 : t->k->f.from_bf16;
    if (row_dense(x)) {
        widen(n, buf, (const uint16_t *) (const void *) from);
        return buf;
    }
    FOR_PIECES(i, m, 0, n) {
        uint16_t halves[PIECE];
        gather_halves(halves, from + (size_t) i*x->nb[0], x->nb[0], m);
        widen(m, buf + i, halves);
    }
    return buf;
}

void row_store(const struct cpu_task *t, const struct ggml_tensor *y, void *row, int64_t i0, int64_t n, const float *v) {
    char *to = (char *) row + (size_t) (i0/ggml_blck_size(y->type))*y->nb[0];
    if (y->type == GGML_TYPE_F32) {
        if ((const void *) to == (const void *) v) return;
        if (row_dense(y)) memcpy(to, v, (size_t) n*sizeof *v);
        else for (int64_t i = 0; i < n; i++) memcpy(to + (size_t) i*y->nb[0], v + i, sizeof *v);
        return;
    }
    if (!plain_float(y->type)) {
        t->k->q.pack[y->type](v, to, n);
        return;
    }
    void (*const narrow)(int64_t, uint16_t *, const float *) =
        y->type == GGML_TYPE_F16 ? t->k->f.to_f16 : t->k->f.to_bf16;
    if (row_dense(y)) {
        narrow(n, (uint16_t *) (void *) to, v);
        return;
    }
    FOR_PIECES(i, m, 0, n) {
        uint16_t halves[PIECE];
        narrow(m, halves, v + i);
        scatter_halves(to + (size_t) i*y->nb[0], y->nb[0], halves, m);
    }
}

size_t scratch_source_row(const struct ggml_tensor *dst, int n_threads) {
    return row_direct(dst->src[0]) ? 0 : row_bytes(dst->src[0])*(size_t) n_threads;
}

const float *row_whole(const struct cpu_task *t, const struct ggml_tensor *x, int64_t r) {
    float *const buf = (float *) (void *) ((char *) t->scratch + row_bytes(x)*(size_t) t->ith);
    return row_load(t, x, row_number(x, r), 0, x->ne[0], buf);
}

/* ---- units --------------------------------------------------------------------------------------------------------- */

#define UNITS(type) do { \
    for (int64_t i = 0; i < n; i++) *(type *) (void *) (to + (size_t) i*to_step) = *(const type *) (const void *) (from + (size_t) i*from_step); \
} while (0)

void copy_units(char *to, size_t to_step, const char *from, size_t from_step, size_t size, int64_t n) {
    if (to_step == size && from_step == size) memcpy(to, from, (size_t) n*size);
    else if (size == 1) UNITS(uint8_t);
    else if (size == 2) UNITS(uint16_t);
    else if (size == 4) UNITS(uint32_t);
    else if (size == 8) UNITS(uint64_t);
    else for (int64_t i = 0; i < n; i++) memcpy(to + (size_t) i*to_step, from + (size_t) i*from_step, size);
}

void map_pieces(const struct cpu_task *t, struct ggml_tensor *dst, piece_map *f) {
    const struct ggml_tensor *a = dst->src[0];
    const bool flat = !t->part && ggml_is_contiguous(a) && ggml_is_contiguous(dst);
    struct span s;
    const int64_t rows = flat ? 1 : n_rows(dst), n = flat ? ggml_nelements(dst) : dst->ne[0];
    while (next_span(t, rows, n, &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        const void *const from = row_number(a, r);
        void *const to = row_number(dst, r);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_a[PIECE], buf[PIECE];
            float *const y = row_place(dst, to, i, buf);
            f(t, dst, m, y, row_load(t, a, from, i, m, buf_a));
            row_store(t, dst, to, i, m, y);
        }
    }
}
