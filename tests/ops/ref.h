#ifndef REF_H
#define REF_H
/* A bench for ops: operands of any type in any layout, memory with guards around it, a graph computed with some number of
 * threads, and every element of the result held against a reference in double. Include it once, in a test program.
 *
 *     struct bench b = bench_new();
 *     struct ggml_tensor *x = operand(&b, GGML_TYPE_F16, SIZE(5, 3, 2, 1), TRANSPOSED);
 *     struct ggml_tensor *y = ggml_sqr(b.ctx, x);
 *     CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "sqr");
 *     compare(&b, y, square, 1e-3, 0.0, "sqr of F16");         static double square(const tensor *y, const int64_t *i)
 *     bench_free(&b);
 */

#include "check.h"
#include "ggml.h"
#include "ggml-cpu.h"
#include "quant.h"

typedef struct ggml_tensor tensor;

/* How an operand lies in memory: packed; dims 1 and 2 exchanged; dims 0 and 1 exchanged (elements apart); a window in
 * something larger (gaps between rows and between slices). */
enum layout { PACKED, PERMUTED, TRANSPOSED, WINDOW, LAYOUTS };
static const char *const layout_names[LAYOUTS] = { "packed", "permuted", "transposed", "window" };

#define SIZE(n0, n1, n2, n3) ((const int64_t[4]) { n0, n1, n2, n3 })

enum { GUARD = 64, MAX_ROOTS = 64 };
struct root { unsigned char *block; size_t size; };             /* guard, size bytes, guard */
struct bench {
    struct ggml_context *ctx;
    struct root          roots[MAX_ROOTS];
    int                  n_roots;
    uint64_t             seed;
};

static inline struct bench bench_new(void) {
    struct bench b = { .seed = 1 };
    b.ctx = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 20, .no_alloc = true });
    return b;
}
static inline void bench_free(struct bench *b) {
    for (int i = 0; i < b->n_roots; i++) free(b->roots[i].block);
    ggml_free(b->ctx);
}

/* Memory for a tensor, filled with a pattern that is NaN in every float type. */
static inline void place(struct bench *b, tensor *t) {
    if (t->view_src) {
        t->data = (char *) t->view_src->data + t->view_offs;
        return;
    }
    const size_t size = GGML_PAD(ggml_nbytes(t), (size_t) 64);
    struct root *r = &b->roots[b->n_roots++];
    if (b->n_roots > MAX_ROOTS || !(r->block = aligned_alloc(64, size + 2*GUARD))) exit(2);
    r->size = ggml_nbytes(t);
    memset(r->block, 0xff, size + 2*GUARD);
    t->data = r->block + GUARD;
}
static inline void place_all(struct bench *b) {
    for (tensor *t = ggml_get_first_tensor(b->ctx); t; t = ggml_get_next_tensor(b->ctx, t)) if (!t->data) place(b, t);
}
/* No byte around any tensor has changed. */
static inline bool guards_intact(const struct bench *b) {
    for (int i = 0; i < b->n_roots; i++) {
        const struct root *r = &b->roots[i];
        const size_t end = GUARD + GGML_PAD(r->size, (size_t) 64) + GUARD;
        for (size_t k = 0; k < end; k++) if ((k < GUARD || k >= GUARD + r->size) && r->block[k] != 0xff) return false;
    }
    return true;
}

/* ---- elements ------------------------------------------------------------------------------------------------------ */

static inline void *address(const tensor *t, const int64_t *i) {
    return (char *) t->data + (size_t) (i[0]/ggml_blck_size(t->type))*t->nb[0] + (size_t) i[1]*t->nb[1] +
           (size_t) i[2]*t->nb[2] + (size_t) i[3]*t->nb[3];
}
/* Element i of the block at p; a block is unpacked when it is another one than the last. */
static inline double value_in_block(enum ggml_type type, const void *p, int64_t i) {
    static enum ggml_type last = GGML_TYPE_COUNT;
    static unsigned char  bytes[512];
    static float          block[256];
    if (type != last || memcmp(bytes, p, ggml_type_size(type))) {
        memcpy(bytes, p, ggml_type_size(type));
        quant_types[type].unpack(p, block, ggml_blck_size(type));
        last = type;
    }
    return (double) block[i];
}
static inline double value_at(const tensor *t, const int64_t *i) {
    const void *p = address(t, i);
    switch (t->type) {
        case GGML_TYPE_F32:  return (double) *(const float *) p;
        case GGML_TYPE_F16:  return (double) f16_to_f32(*(const uint16_t *) p);
        case GGML_TYPE_BF16: return (double) bf16_to_f32(*(const uint16_t *) p);
        case GGML_TYPE_I32:  return (double) *(const int32_t *) p;
        case GGML_TYPE_I64:  return (double) *(const int64_t *) p;
        case GGML_TYPE_I16:  return (double) *(const int16_t *) p;
        case GGML_TYPE_I8:   return (double) *(const int8_t *) p;
        default:             return value_in_block(t->type, p, i[0] % ggml_blck_size(t->type));
    }
}
static inline double value(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return value_at(t, SIZE(i0, i1, i2, i3));
}
/* Element i of a packed F32 tensor. */
static inline double flat_value(const tensor *t, int64_t i) { return (double) ((const float *) t->data)[i]; }
/* Plain types only. */
static inline void set_value(tensor *t, const int64_t *i, double v) {
    void *p = address(t, i);
    switch (t->type) {
        case GGML_TYPE_F32:  *(float *)    p = (float) v;               break;
        case GGML_TYPE_F16:  *(uint16_t *) p = f32_to_f16((float) v);   break;
        case GGML_TYPE_BF16: *(uint16_t *) p = f32_to_bf16((float) v);  break;
        case GGML_TYPE_I32:  *(int32_t *)  p = (int32_t) v;             break;
        case GGML_TYPE_I64:  *(int64_t *)  p = (int64_t) v;             break;
        case GGML_TYPE_I16:  *(int16_t *)  p = (int16_t) v;             break;
        case GGML_TYPE_I8:   *(int8_t *)   p = (int8_t) v;              break;
        default:             exit(2);
    }
}

#define FOR_ELEMENTS(i, t) \
    for (int64_t i[4] = { 0 }; i[3] < (t)->ne[3]; i[3]++) for (i[2] = 0; i[2] < (t)->ne[2]; i[2]++) \
    for (i[1] = 0; i[1] < (t)->ne[1]; i[1]++) for (i[0] = 0; i[0] < (t)->ne[0]; i[0]++)

/* Elements in [lo, hi), integers included; block types by their reference encoder (packed tensors only), eleven rows of which are
 * repeated where encoding is a search. */
static inline void fill(struct bench *b, tensor *t, double lo, double hi) {
    if (ggml_blck_size(t->type) == 1) {
        FOR_ELEMENTS(i, t) set_value(t, i, lo + (hi - lo)*(0.5 + 0.5*(double) rnd_f32(&b->seed)));
        return;
    }
    const struct quant_type *q = &quant_types[t->type];
    float row[4096];
    for (int64_t r = 0; r < ggml_nrows(t); r++) {
        if (r >= 11 && q->pack_weighted) {
            memcpy((char *) t->data + (size_t) r*t->nb[1], (char *) t->data + (size_t) (r - 11)*t->nb[1], t->nb[1]);
            continue;
        }
        for (int64_t i = 0; i < t->ne[0]; i++) row[i] = (float) (lo + (hi - lo)*(0.5 + 0.5*(double) rnd_f32(&b->seed)));
        (q->pack ? q->pack : q->pack_file)(row, (char *) t->data + (size_t) r*t->nb[1], t->ne[0]);
    }
}
static inline void set_all(tensor *t, const double *v) {
    FOR_ELEMENTS(i, t) set_value(t, i, *v++);
}

/* An operand with elements in [-1, 1). TRANSPOSED needs a plain type. */
static inline tensor *operand(struct bench *b, enum ggml_type type, const int64_t *n, enum layout layout) {
    const int64_t more = ggml_blck_size(type);
    tensor *root, *t;
    switch (layout) {
        case PERMUTED:
            root = ggml_new_tensor_4d(b->ctx, type, n[0], n[2], n[1], n[3]);
            place(b, root);
            t = ggml_permute(b->ctx, root, 0, 2, 1, 3);
            break;
        case TRANSPOSED:
            root = ggml_new_tensor_4d(b->ctx, type, n[1], n[0], n[2], n[3]);
            place(b, root);
            t = ggml_transpose(b->ctx, root);
            break;
        case WINDOW:
            root = ggml_new_tensor_4d(b->ctx, type, n[0] + 2*more, n[1] + 1, n[2] + 1, n[3]);
            place(b, root);
            t = ggml_view_4d(b->ctx, root, n[0], n[1], n[2], n[3], root->nb[1], root->nb[2], root->nb[3], root->nb[0]);
            break;
        default:
            root = t = ggml_new_tensor_4d(b->ctx, type, n[0], n[1], n[2], n[3]);
            place(b, root);
    }
    fill(b, root, -1.0, 1.0);
    return t;
}
static inline tensor *operand_of(struct bench *b, enum ggml_type type, const int64_t *n, const double *values) {
    tensor *t = operand(b, type, n, PACKED);
    set_all(t, values);
    return t;
}

/* ---- computing ----------------------------------------------------------------------------------------------------- */

static inline enum ggml_status compute(struct bench *b, tensor *out, int n_threads) {
    place_all(b);
    struct ggml_cgraph *g = ggml_new_graph_custom(b->ctx, 64, false);
    ggml_build_forward_expand(g, out);
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    const enum ggml_status status = ggml_graph_compute(g, &plan);
    free(plan.work_data);
    return status;
}

typedef double reference(const tensor *out, const int64_t *i);

/* Every element within abs + rel*|want| of the reference; NaN for NaN, the same infinity for an infinity. */
static inline void compare(struct bench *b, const tensor *out, reference *want, double rel, double absolute,
    const char *name) {
    int wrong = 0;
    if (!ONLY_RACES) FOR_ELEMENTS(i, out) {
        const double got = value_at(out, i), expected = want(out, i);
        const bool same = got == expected || (got != got && expected != expected);
        if (same || fabs(got - expected) <= absolute + rel*fabs(expected)) continue;
        if (wrong++ < 3 && check_failed < 10) {
            fprintf(stderr, "%s: [%d, %d, %d, %d]: %.9g, expected %.9g\n", name, (int) i[0], (int) i[1], (int) i[2],
                (int) i[3],
                    got, expected);
        }
    }
    CHECK(wrong == 0, "%s: %d of %d elements", name, wrong, (int) ggml_nelements(out));
    CHECK(guards_intact(b), "%s: bytes around a tensor changed", name);
}

/* Compute and compare. */
static inline void expect(struct bench *b, tensor *out, reference *want, double rel, double absolute, const char *name) {
    const enum ggml_status status = compute(b, out, 2);
    CHECK(status == GGML_STATUS_SUCCESS, "%s: status %d", name, (int) status);
    if (status == GGML_STATUS_SUCCESS) compare(b, out, want, rel, absolute, name);
}

/* A copy of the elements of a packed tensor; the caller frees it. */
static inline void *bytes_of(const tensor *t) {
    void *p = malloc(ggml_nbytes(t) + 1);
    if (!p) exit(2);
    return memcpy(p, t->data, ggml_nbytes(t));
}

/* 1, 2, 3 and 8 threads give the same bytes. `out` is packed and not in place. */
static inline void expect_same_for_threads(struct bench *b, tensor *out, const char *name) {
    static const int threads[] = { 2, 3, 8 };
    CHECK(compute(b, out, 1) == GGML_STATUS_SUCCESS, "%s", name);
    void *const want = bytes_of(out);
    for (int k = 0; k < 3; k++) {
        memset(out->data, 0xff, ggml_nbytes(out));
        CHECK(compute(b, out, threads[k]) == GGML_STATUS_SUCCESS, "%s", name);
        CHECK(!memcmp(want, out->data, ggml_nbytes(out)), "%s: other bytes with %d threads", name, threads[k]);
    }
    free(want);
}

#endif
