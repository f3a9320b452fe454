/* An op on a view gives the bits of the same op on a packed copy of it, for every op that takes one operand or two; and
 * tensors too large for 32-bit products are addressed rightly. */

#define _DEFAULT_SOURCE
#include "ref.h"

#include <sys/mman.h>

#define UNARY(name) static tensor *do_##name(struct ggml_context *ctx, tensor *x) { return ggml_##name(ctx, x); }
#define UNARIES(X) X(relu) X(sqr) X(sqrt) X(log) X(exp) X(silu) X(gelu) X(gelu_erf) X(gelu_quick) X(sigmoid) X(tanh) X(neg) \
    X(abs) X(sgn) X(step) X(elu) X(sin) X(cos) X(hardswish) X(hardsigmoid) X(expm1) X(softplus) X(floor) X(ceil) X(round) \
    X(trunc) X(soft_max) X(cumsum) X(sum_rows) X(mean) X(reglu) X(geglu) X(swiglu) X(dup) X(cont)
UNARIES(UNARY)
static tensor *do_scale   (struct ggml_context *ctx, tensor *x) { return ggml_scale(ctx, x, 1.7f); }
static tensor *do_norm    (struct ggml_context *ctx, tensor *x) { return ggml_norm(ctx, x, 1e-6f); }
static tensor *do_rms_norm(struct ggml_context *ctx, tensor *x) { return ggml_rms_norm(ctx, x, 1e-6f); }
static tensor *do_l2_norm (struct ggml_context *ctx, tensor *x) { return ggml_l2_norm(ctx, x, 1e-6f); }
static tensor *do_argsort (struct ggml_context *ctx, tensor *x) { return ggml_argsort(ctx, x, GGML_SORT_ORDER_ASC); }
static tensor *do_top_k   (struct ggml_context *ctx, tensor *x) { return ggml_top_k(ctx, x, 3); }
static tensor *do_clamp   (struct ggml_context *ctx, tensor *x) { return ggml_clamp(ctx, x, -0.5f, 0.5f); }
static tensor *do_repeat  (struct ggml_context *ctx, tensor *x) { return ggml_repeat_4d(ctx, x, 2*x->ne[0], x->ne[1],
    3*x->ne[2], x->ne[3]); }
static tensor *do_pad     (struct ggml_context *ctx, tensor *x) { return ggml_pad(ctx, x, 1, 2, 0, 1); }

#define ROW(name) { #name, do_##name },
static const struct { const char *name; tensor *(*build)(struct ggml_context *, tensor *); } unary[] = {
    UNARIES(ROW) ROW(scale) ROW(norm) ROW(rms_norm) ROW(l2_norm) ROW(argsort) ROW(top_k) ROW(clamp) ROW(repeat) ROW(pad)
};
static const struct { const char *name; tensor *(*build)(struct ggml_context *, tensor *, tensor *); } binary[] = {
    { "add", ggml_add }, { "sub", ggml_sub }, { "mul", ggml_mul }, { "div", ggml_div },
    { "swiglu_split", ggml_swiglu_split }, { "geglu_split", ggml_geglu_split }, { "silu_back", ggml_silu_back },
};
#define COUNT(a) (sizeof (a)/sizeof *(a))

static void same(struct bench *b, tensor *of_view, tensor *of_copy, const char *name, int layout) {
    const enum ggml_status s = compute(b, of_view, 2), t = compute(b, of_copy, 2);
    CHECK(s == GGML_STATUS_SUCCESS && t == GGML_STATUS_SUCCESS, "%s of a %s tensor", name, layout_names[layout]);
    CHECK(!memcmp(of_view->data, of_copy->data, ggml_nbytes(of_copy)), "%s of a %s tensor and of its copy", name,
        layout_names[layout]);
    CHECK(guards_intact(b), "%s of a %s tensor", name, layout_names[layout]);
}

static void test_layouts(void) {
    for (int l = 1; l < LAYOUTS; l++) {
        for (size_t k = 0; k < COUNT(unary); k++) {
            struct bench b = bench_new();
            tensor *x = operand(&b, GGML_TYPE_F32, SIZE(38, 5, 3, 2), (enum layout) l);
            same(&b, unary[k].build(b.ctx, x), unary[k].build(b.ctx, ggml_cont(b.ctx, x)), unary[k].name, l);
            bench_free(&b);
        }
        for (size_t k = 0; k < COUNT(binary); k++) {
            struct bench b = bench_new();
            tensor *x = operand(&b, GGML_TYPE_F32, SIZE(38, 5, 3, 2), (enum layout) l),
                *y = operand(&b, GGML_TYPE_F32, SIZE(38, 5, 3, 2), (enum layout) l);
            same(&b, binary[k].build(b.ctx, x, y), binary[k].build(b.ctx, ggml_cont(b.ctx, x), ggml_cont(b.ctx, y)),
                binary[k].name, l);
            bench_free(&b);
        }
    }
}

/* Tensors without elements: every op ends well, and a product over nothing is zeros. */
static void test_empty(void) {
    for (size_t k = 0; k < COUNT(unary); k++) {
        struct bench b = bench_new();
        tensor *none = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED);
        CHECK(compute(&b, unary[k].build(b.ctx, none), 2) == GGML_STATUS_SUCCESS, "%s of nothing", unary[k].name);
        bench_free(&b);
    }
    for (size_t k = 0; k < COUNT(binary); k++) {
        struct bench b = bench_new();
        tensor *none = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED);
        CHECK(compute(&b, binary[k].build(b.ctx, none, none), 2) == GGML_STATUS_SUCCESS, "%s of nothing", binary[k].name);
        bench_free(&b);
    }
    struct bench b = bench_new();
    tensor *thin = operand(&b, GGML_TYPE_F32, SIZE(0, 5, 1, 1), PACKED),
        *columns = operand(&b, GGML_TYPE_F32, SIZE(8, 0, 1, 1), PACKED);
    tensor *zeros = ggml_mul_mat(b.ctx, thin, thin), *no_columns = ggml_mul_mat(b.ctx,
        operand(&b, GGML_TYPE_F32, SIZE(8, 3, 1, 1), PACKED), columns);
    CHECK(compute(&b, zeros, 2) == GGML_STATUS_SUCCESS && compute(&b, no_columns, 2) == GGML_STATUS_SUCCESS, "mul_mat");
    FOR_ELEMENTS(i, zeros) CHECK(value_at(zeros, i) == 0, "a product over nothing");
    tensor *grown = ggml_repeat_4d(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(0, 1, 1, 1), PACKED), 3, 2, 1, 1);
    CHECK(compute(&b, grown, 2) == GGML_STATUS_SUCCESS && value(grown, 2, 1, 0, 0) == 0, "nothing repeated");
    bench_free(&b);
}

/* A target whose slices would lie far outside of memory, if there were a second one. */
static void test_unused_stride(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(8, 4, 1, 1), PACKED),
        *y = operand(&b, GGML_TYPE_F32, SIZE(8, 4, 1, 1), PACKED);
    tensor *far = ggml_view_4d(b.ctx, y, 8, 4, 1, 1, y->nb[1], (size_t) 1 << 50, (size_t) 1 << 60, 0);
    tensor *ids = operand_of(&b, GGML_TYPE_I32, SIZE(4, 1, 1, 1), (double[]) { 3, 2, 1, 0 });
    CHECK(far && compute(&b, ggml_cpy(b.ctx, x, far), 2) == GGML_STATUS_SUCCESS &&
        !memcmp(x->data, y->data, ggml_nbytes(x)), "cpy");
    CHECK(compute(&b, ggml_set_rows(b.ctx, far, x, ids), 2) == GGML_STATUS_SUCCESS &&
        value(y, 5, 3, 0, 0) == value(x, 5, 0, 0, 0), "set_rows");
    CHECK(guards_intact(&b), "an unused stride");
    bench_free(&b);
}

/* 5 GiB of address space of which a few pages are touched. */
static void test_beyond_32_bits(void) {
    struct bench b = bench_new();
    tensor *table = ggml_new_tensor_2d(b.ctx, GGML_TYPE_F16, 4096, 600000);
    void *memory = mmap(NULL, ggml_nbytes(table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "no 5 GiB of address space: not tested\n");
        bench_free(&b);
        return;
    }
    table->data = memory;
    tensor *row = operand(&b, GGML_TYPE_F32, SIZE(4096, 1, 1, 1), PACKED),
        *ids = operand_of(&b, GGML_TYPE_I32, SIZE(1, 1, 1, 1), (double[]) { 599999 });
    CHECK(compute(&b, ggml_set_rows(b.ctx, table, row, ids), 2) == GGML_STATUS_SUCCESS, "set_rows");
    tensor *got = ggml_get_rows(b.ctx, table, ids);
    CHECK(compute(&b, got, 2) == GGML_STATUS_SUCCESS, "get_rows");
    int wrong = 0;
    for (int i = 0; i < 4096; i++) wrong += flat_value(got,
        i) != (double) f16_to_f32(f32_to_f16((float) flat_value(row, i)));
    CHECK(wrong == 0 && flat_value(got, 7) != 0, "the last row of 600000: %d", wrong);
    munmap(memory, ggml_nbytes(table));
    bench_free(&b);
}

int main(void) {
    test_layouts();
    test_empty();
    test_unused_stride();
    test_beyond_32_bits();
    return DONE();
}
