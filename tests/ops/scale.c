/* SCALE, CLAMP, FILL, LEAKY_RELU: every float type and layout, of their own and in place. */

#include "ref.h"

static float param(const tensor *y, int i) { return bits_f32((uint32_t) y->op_params[i]); }
static double want_scale(const tensor *y, const int64_t *i) { return (double) param(y, 0)*value_at(y->src[0],
    i) + (double) param(y, 1); }
static double want_clamp(const tensor *y, const int64_t *i) {
    const double v = value_at(y->src[0], i);
    return v < (double) param(y, 0) ? (double) param(y, 0) : v > (double) param(y, 1) ? (double) param(y, 1) : v;
}
static double want_leaky(const tensor *y, const int64_t *i) {
    const double v = value_at(y->src[0], i);
    return v > 0.0 ? v : (double) param(y, 0)*v;
}
static double want_fill(const tensor *y, const int64_t *i) { (void) i; return (double) param(y, 0); }

static tensor *scale (struct ggml_context *ctx, tensor *x, bool in) { return in ? ggml_scale_inplace(ctx, x, 1.75f)
    : ggml_scale(ctx, x, 1.75f); }
static tensor *affine(struct ggml_context *ctx, tensor *x, bool in) { return in
    ? ggml_scale_bias_inplace(ctx, x, 3.0f, -0.3f) : ggml_scale_bias(ctx, x, 3.0f, -0.3f); }
static tensor *clamp (struct ggml_context *ctx, tensor *x, bool in) { return in
    ? ggml_clamp_inplace(ctx, x, -0.5f, 0.25f) : ggml_clamp(ctx, x, -0.5f, 0.25f); }
static tensor *leaky (struct ggml_context *ctx, tensor *x, bool in) { return ggml_leaky_relu(ctx, x, 0.125f, in); }
static tensor *filled(struct ggml_context *ctx, tensor *x, bool in) { return in ? ggml_fill_inplace(ctx, x, 2.5f)
    : ggml_fill(ctx, x, 2.5f); }

static const struct { const char *name; tensor *(*build)(struct ggml_context *, tensor *,
    bool); reference *want; } ops[] = {
    { "scale", scale, want_scale }, { "scale_bias", affine, want_scale }, { "clamp", clamp, want_clamp },
    { "leaky_relu", leaky, want_leaky }, { "fill", filled, want_fill },
};
static const struct { enum ggml_type type; double rounding; } types[] = {
    { GGML_TYPE_F32, 0x1p-24 }, { GGML_TYPE_F16, 0x1p-11 }, { GGML_TYPE_BF16, 0x1p-8 },
};

int main(void) {
    for (size_t o = 0; o < sizeof ops/sizeof *ops; o++) {
        for (size_t k = 0; k < sizeof types/sizeof *types; k++) for (int l = 0; l < LAYOUTS; l++) {
            struct bench b = bench_new();
            tensor *x = operand(&b, types[k].type, SIZE(1033, 5, 3, 2), (enum layout) l),
                *own = ops[o].build(b.ctx, x, false);
            expect(&b, own, ops[o].want, types[k].rounding, 1e-7, ops[o].name);
            tensor *in = ops[o].build(b.ctx, x, true);
            CHECK(in->view_src && compute(&b, in, 2) == GGML_STATUS_SUCCESS, "%s in place", ops[o].name);
            int wrong = 0;
            FOR_ELEMENTS(i, own) wrong += value_at(own, i) != value_at(in, i);
            CHECK(wrong == 0 && guards_intact(&b), "%s in place of a %s tensor: %d", ops[o].name, layout_names[l], wrong);
            bench_free(&b);
        }
        struct bench b = bench_new();
        expect_same_for_threads(&b, ops[o].build(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(300, 200, 1, 1), TRANSPOSED),
            false), ops[o].name);
        tensor *none = ops[o].build(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED), false);
        CHECK(compute(&b, none, 2) == GGML_STATUS_SUCCESS, "%s of nothing", ops[o].name);
        bench_free(&b);
    }
    struct bench b = bench_new();                       /* NaN is not clamped away; the values under a fill do not matter */
    tensor *x = operand_of(&b, GGML_TYPE_F32, SIZE(3, 1, 1, 1), (double[]) { NAN, INFINITY, -INFINITY });
    tensor *c = ggml_clamp(b.ctx, x, -1.0f, 1.0f), *f = ggml_fill(b.ctx, x, 0.0f);
    CHECK(compute(&b, c, 1) == GGML_STATUS_SUCCESS && isnan(value(c, 0, 0, 0, 0)) && value(c, 1, 0, 0, 0) == 1 &&
        value(c, 2, 0, 0, 0) == -1, "clamp");
    CHECK(compute(&b, f, 1) == GGML_STATUS_SUCCESS && value(f, 0, 0, 0, 0) == 0 && value(f, 1, 0, 0, 0) == 0, "fill");
    bench_free(&b);
    return DONE();
}
