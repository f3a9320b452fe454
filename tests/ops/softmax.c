/* SOFT_MAX with every combination of mask, bias and sinks, masked rows, and SOFT_MAX_BACK, against doubles. */

#include "core.h"
#include "ref.h"

static double slope_of(const tensor *y, int64_t h) {
    const double bias = (double) param_f32(y, 1);
    if (bias == 0) return 1;
    const int64_t heads = y->src[0]->ne[2];
    int64_t whole = 1;
    while (2*whole <= heads) whole *= 2;
    return h < whole ? pow(pow(2, -bias/(double) whole), (double) (h + 1)) : pow(pow(2, -bias/2/(double) whole), (double) (2*(h - whole) + 1));
}
static double score(const tensor *y, int64_t k, const int64_t *i) {
    const tensor *a = y->src[0], *m = y->src[1];
    const double z = value(a, k, i[1], i[2], i[3])*(double) param_f32(y, 0);
    return m ? z + slope_of(y, i[2])*value(m, k, i[1], i[2] % m->ne[2], i[3] % m->ne[3]) : z;
}
static double want_soft_max(const tensor *y, const int64_t *i) {
    const tensor *sinks = y->src[2];
    double max = sinks ? value(sinks, i[2], 0, 0, 0) : -INFINITY, sum = 0;
    for (int64_t k = 0; k < y->ne[0]; k++) max = fmax(max, score(y, k, i));
    if (max == -INFINITY) return 0;
    for (int64_t k = 0; k < y->ne[0]; k++) sum += exp(score(y, k, i) - max);
    if (sinks) sum += exp(value(sinks, i[2], 0, 0, 0) - max);
    return exp(score(y, i[0], i) - max)/sum;
}

/* Values in [-1, 1), minus infinity for about a third, and for all of row 1. */
static void fill_mask(struct bench *b, tensor *m) {
    fill(b, m, -1, 1);
    FOR_ELEMENTS(i, m) if (i[1] == 1 || rnd_f32(&b->seed) < -0.3f) set_value(m, i, -INFINITY);
}

static void test_combinations(void) {
    for (int kind = 0; kind < 3; kind++) for (int bias = 0; bias < 2; bias++) for (int with_sinks = 0; with_sinks < 2; with_sinks++)
    for (int l = 0; l < LAYOUTS; l++) for (int ml = 0; ml < 2; ml++) {
        if (kind == 0 && bias) continue;
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(45, 5, 6, 2), (enum layout) l), *m = NULL, *sinks = NULL;
        fill(&b, a, -20, 20);
        if (kind) {
            m = operand(&b, kind == 1 ? GGML_TYPE_F16 : GGML_TYPE_F32, ml ? SIZE(45, 7, 3, 2) : SIZE(45, 5, 1, 1), PACKED);
            fill_mask(&b, m);
        }
        if (with_sinks) sinks = operand(&b, GGML_TYPE_F32, SIZE(6, 1, 1, 1), PACKED);
        tensor *y = ggml_soft_max_ext(b.ctx, a, m, 0.3f, bias ? 8.0f : 0.0f);
        ggml_soft_max_add_sinks(y, sinks);
        char name[96];
        snprintf(name, sizeof name, "soft_max %s, mask %d, bias %d, sinks %d", layout_names[l], kind, bias, with_sinks);
        expect(&b, y, want_soft_max, 3e-6, 1e-7, name);
        expect_same_for_threads(&b, y, name);
        tensor *in = ggml_soft_max_ext_inplace(b.ctx, a, m, 0.3f, bias ? 8.0f : 0.0f);
        ggml_soft_max_add_sinks(in, sinks);
        compute(&b, in, 2);
        int wrong = 0;
        FOR_ELEMENTS(i, y) wrong += value_at(y, i) != value_at(in, i);
        CHECK(wrong == 0, "%s in place: %d differ", name, wrong);
        bench_free(&b);
    }
}

static void test_rows(void) {
    static const double rows[][4] = { { -INFINITY, -INFINITY, -INFINITY, -INFINITY }, { 0, 0, 0, 0 }, { 3e38, 3e38, -3e38, 0 },
                                      { -INFINITY, 5, -INFINITY, 5 } };
    static const double want[][4] = { { 0, 0, 0, 0 }, { 0.25, 0.25, 0.25, 0.25 }, { 0.5, 0.5, 0, 0 }, { 0, 0.5, 0, 0.5 } };
    for (int c = 0; c < 4; c++) {
        struct bench b = bench_new();
        tensor *y = ggml_soft_max(b.ctx, operand_of(&b, GGML_TYPE_F32, SIZE(4, 1, 1, 1), rows[c]));
        CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "soft_max");
        FOR_ELEMENTS(i, y) CHECK(fabs(value_at(y, i) - want[c][i[0]]) < 1e-7, "row %d: [%d] = %g", c, (int) i[0], value_at(y, i));
        bench_free(&b);
    }
    struct bench b = bench_new();
    tensor *y = ggml_soft_max(b.ctx, operand_of(&b, GGML_TYPE_F32, SIZE(2, 1, 1, 1), (const double[]) { NAN, -INFINITY }));
    compute(&b, y, 1);
    CHECK(isnan(value(y, 0, 0, 0, 0)), "a NaN is not hidden");
    bench_free(&b);
}

static double want_back(const tensor *d, const int64_t *i) {
    double dot = 0;
    for (int64_t k = 0; k < d->ne[0]; k++) dot += value(d->src[0], k, i[1], i[2], i[3])*value(d->src[1], k, i[1], i[2], i[3]);
    return (double) 0.3f*value_at(d->src[1], i)*(value_at(d->src[0], i) - dot);
}
static void test_back(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *dy = operand(&b, GGML_TYPE_F32, SIZE(1030, 2, 1, 1), (enum layout) l), *y = operand(&b, GGML_TYPE_F32, dy->ne, WINDOW);
        expect(&b, ggml_soft_max_ext_back(b.ctx, dy, y, 0.3f, 0.0f), want_back, 1e-5, 1e-6, "soft_max_back");
        bench_free(&b);
    }
}

int main(void) {
    test_combinations();
    test_rows();
    test_back();
    return DONE();
}
