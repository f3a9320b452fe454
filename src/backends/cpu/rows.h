#ifndef ROWS_H
#define ROWS_H
/* Walking over tensors of any layout and reading and writing their rows as floats.
 *
 * A dense F32 row is used where it lies; every other row (other types, elements apart) goes through a buffer: a piece of the
 * worker's stack in element-wise ops, the worker's part of the node's scratch where a reduction wants the row as a whole.
 * So every layout gives the bits of the packed one. Chunks depend on shapes alone, never on the number of threads. */

#include "cpu.h"
#include "kernels.h"

enum {
    PIECE = 1024,           /* floats of a piece; a multiple of every block */
    CHUNK = 16384           /* elements of a chunk, about; a multiple of PIECE; smaller tensors are one chunk */
};

/* ---- chunks -------------------------------------------------------------------------------------------------------- */

/* The next chunk of `rows` rows of n elements, or the task's part. Whole rows, or, of rows longer than a chunk, a part of one. */
bool next_span(const struct cpu_task *t, int64_t rows, int64_t n, struct span *s);
/* The same with rows that may not be cut; n is the work of a row, in elements. */
bool next_rows(const struct cpu_task *t, int64_t rows, int64_t n, int64_t *r0, int64_t *r1);

/* ---- rows as floats ------------------------------------------------------------------------------------------------ */

/* F32, F16, BF16 in any layout; block types that can be unpacked (packed) in dense rows. */
bool row_readable(const struct ggml_tensor *x);
bool row_writable(const struct ggml_tensor *y);
static inline bool row_dense(const struct ggml_tensor *x) { return x->nb[0] == ggml_type_size(x->type) || x->ne[0] == 1; }
static inline bool row_direct(const struct ggml_tensor *x) { return x->type == GGML_TYPE_F32 && row_dense(x); }

/* n elements from element i0 of a row of x: the row itself where it is dense F32, else buf. i0 at a block's start. */
const float *row_load(const struct cpu_task *t, const struct ggml_tensor *x, const void *row, int64_t i0, int64_t n,
    float *buf);
/* Where to compute elements from i0 on: the row itself where it is dense F32, else buf. Then row_store puts them there. */
static inline float *row_place(const struct ggml_tensor *y, void *row, int64_t i0, float *buf) {
    return row_direct(y) ? (float *) row + i0 : buf;
}
void row_store(const struct cpu_task *t, const struct ggml_tensor *y, void *row, int64_t i0, int64_t n, const float *v);

/* What a row of x takes as floats in scratch. */
static inline size_t row_bytes(const struct ggml_tensor *x) { return ((size_t) x->ne[0]*sizeof(float) + 63) & ~(size_t) 63; }
/* The whole row r of dst's first source as floats, in this worker's part of the scratch if need be. An op that uses this
 * names `source_row` as its scratch in the op table. */
const float *row_whole(const struct cpu_task *t, const struct ggml_tensor *x, int64_t r);
size_t scratch_source_row(const struct ggml_tensor *dst, int n_threads);

/* The address of row r, counted over dims 1 to 3. */
static inline void *row_number(const struct ggml_tensor *t, int64_t r) {
    int64_t i1, i2, i3;
    row_index(t, r, &i1, &i2, &i3);
    return row_at(t, i1, i2, i3);
}
/* The address of the row of x that meets row (i1, i2, i3) of a tensor that x is repeated over. */
static inline int64_t wrap(int64_t i, int64_t n) { return i < n ? i : i % n; }
static inline void *row_wrapped(const struct ggml_tensor *x, int64_t i1, int64_t i2, int64_t i3) {
    return row_at(x, wrap(i1, x->ne[1]), wrap(i2, x->ne[2]), wrap(i3, x->ne[3]));
}
static inline char *element(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (char *) row_at(t, i1, i2, i3) + (size_t) i0*t->nb[0];
}

/* n units of `size` bytes, `from_step` and `to_step` bytes apart (0: one unit for all); a unit is an element or a block. */
void copy_units(char *to, size_t to_step, const char *from, size_t from_step, size_t size, int64_t n);
/* The number of units in a row. */
static inline int64_t row_units(const struct ggml_tensor *t) { return t->ne[0]/ggml_blck_size(t->type); }
/* Units can be moved without looking into them: dense rows for block types. */
static inline bool row_movable(const struct ggml_tensor *x) { return ggml_blck_size(x->type) == 1 || row_dense(x); }

/* The integer that a row of indices holds at element i. */
static inline int64_t index_at(const struct ggml_tensor *ids, int64_t i0, int64_t i1, int64_t i2) {
    const void *p = element(ids, i0, i1, i2, 0);
    return ids->type == GGML_TYPE_I64 ? *(const int64_t *) p : *(const int32_t *) p;
}

/* y = f(x) for every element of the first source; y may be x. */
typedef void piece_map(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x);
void map_pieces(const struct cpu_task *t, struct ggml_tensor *dst, piece_map *f);

/* F32, F16, BF16; one element of such a type. */
static inline bool plain_float(enum ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}
static inline float float_from(enum ggml_type type, const void *p) {
    return type == GGML_TYPE_F32 ? *(const float *) p :
           type == GGML_TYPE_F16 ? f16_to_f32(*(const uint16_t *) p) : bf16_to_f32(*(const uint16_t *) p);
}
static inline float float_at(const struct ggml_tensor *x, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return float_from(x->type, element(x, i0, i1, i2, i3));
}
bool supports_plain_floats(const struct ggml_tensor *dst);      /* all sources of such types, the result F32 */

#define FOR_PIECES(i, n, begin, end) \
    for (int64_t i = begin, n; n = (end) - i < PIECE ? (end) - i : PIECE, n > 0; i += n)

#endif
