/* NORM RMS_NORM L2_NORM GROUP_NORM RMS_NORM_BACK against sums in double, for every layout, and rows of extreme size. */

#include "ref.h"

static const double eps = 1e-5f;

struct sums { double n, sum, sq; };
static struct sums row_sums(const tensor *x, const int64_t *i) {
    struct sums s = { 0, 0, 0 };
    for (int64_t k = 0; k < x->ne[0]; k++) {
        const double v = value(x, k, i[1], i[2], i[3]);
        s.n++, s.sum += v, s.sq += v*v;
    }
    return s;
}
static double want_norm(const tensor *y, const int64_t *i) {
    const struct sums s = row_sums(y->src[0], i);
    return (value_at(y->src[0], i) - s.sum/s.n)/sqrt(s.sq/s.n - s.sum*s.sum/s.n/s.n + eps);
}
static double want_rms_norm(const tensor *y, const int64_t *i) {
    const struct sums s = row_sums(y->src[0], i);
    return value_at(y->src[0], i)/sqrt(s.sq/s.n + eps);
}
static double want_l2_norm(const tensor *y, const int64_t *i) {
    return value_at(y->src[0], i)/fmax(sqrt(row_sums(y->src[0], i).sq), eps);
}
static double want_group_norm(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    const int64_t groups = y->op_params[0], channels = (x->ne[2] + groups - 1)/groups, first = i[2]/channels*channels;
    double n = 0, sum = 0, sq = 0;
    for (int64_t c = first; c < first + channels && c < x->ne[2]; c++) for (int64_t r = 0; r < x->ne[1]; r++) {
        const struct sums s = row_sums(x, (const int64_t[]) { 0, r, c, i[3] });
        n += s.n, sum += s.sum, sq += s.sq;
    }
    return (value_at(x, i) - sum/n)/sqrt(sq/n - sum*sum/n/n + eps);
}
static double want_rms_norm_back(const tensor *y, const int64_t *i) {
    const tensor *dy = y->src[0], *x = y->src[1];
    const struct sums s = row_sums(x, i);
    double dot = 0;
    for (int64_t k = 0; k < x->ne[0]; k++) dot += value(x, k, i[1], i[2], i[3])*value(dy, k, i[1], i[2], i[3]);
    return (value_at(dy, i) - value_at(x, i)*dot/(s.sq + eps*s.n))/sqrt(s.sq/s.n + eps);
}

typedef tensor *builder(struct ggml_context *ctx, tensor *a, float e);
static const struct { const char *name; builder *build, *inplace; reference *want; } norms[] = {
    { "norm",     ggml_norm,     ggml_norm_inplace,     want_norm },
    { "rms_norm", ggml_rms_norm, ggml_rms_norm_inplace, want_rms_norm },
    { "l2_norm",  ggml_l2_norm,  ggml_l2_norm_inplace,  want_l2_norm },
};

static void test_rows(void) {
    static const int64_t shapes[][4] = { { 33, 5, 3, 2 }, { 1, 7, 1, 1 }, { 1030, 1, 1, 1 } };
    for (int op = 0; op < 3; op++) for (int l = 0; l < LAYOUTS; l++) for (int s = 0; s < 3; s++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, shapes[s], (enum layout) l);
        fill(&b, a, -2, 3);
        tensor *y = norms[op].build(b.ctx, a, (float) eps);
        expect(&b, y, norms[op].want, 1e-6, 1e-6, norms[op].name);
        expect_same_for_threads(&b, norms[op].build(b.ctx, a, (float) eps), norms[op].name);
        tensor *in = norms[op].inplace(b.ctx, a, (float) eps);
        compute(&b, in, 2);
        int wrong = 0;
        FOR_ELEMENTS(i, y) wrong += value_at(y, i) != value_at(in, i);
        CHECK(wrong == 0, "%s of a %s tensor in place: %d differ", norms[op].name, layout_names[l], wrong);
        bench_free(&b);
    }
}

static void test_groups(void) {
    for (int groups = 1; groups <= 5; groups++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(9, 4, 7, 2), (enum layout) l);
        expect(&b, ggml_group_norm(b.ctx, a, groups, (float) eps), want_group_norm, 2e-6, 2e-6, "group_norm");
        bench_free(&b);
    }
}

static void test_back(void) {
    for (int l = 0; l < LAYOUTS; l++) for (int m = 0; m < LAYOUTS; m++) {
        struct bench b = bench_new();
        tensor *dy = operand(&b, GGML_TYPE_F32, SIZE(1030, 2, 1, 1), (enum layout) l);
        tensor *x  = operand(&b, GGML_TYPE_F32, SIZE(1030, 2, 1, 1), (enum layout) m);
        expect(&b, ggml_rms_norm_back(b.ctx, dy, x, (float) eps), want_rms_norm_back, 1e-6, 2e-6, "rms_norm_back");
        bench_free(&b);
    }
    for (int on = 0; on < 2; on++) {                        /* the result lies on one of the sources */
        struct bench b = bench_new();
        tensor *dy = operand(&b, GGML_TYPE_F32, SIZE(1100, 2, 1, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, dy->ne, PACKED);
        tensor *apart = ggml_rms_norm_back(b.ctx, dy, x, (float) eps), *in = ggml_rms_norm_back(b.ctx, dy, x, (float) eps);
        compute(&b, apart, 1);
        in->data = on ? x->data : dy->data;
        compute(&b, in, 1);
        CHECK(!memcmp(apart->data, in->data, ggml_nbytes(apart)), "rms_norm_back on source %d", on);
        bench_free(&b);
    }
}

static void test_huge(void) {
    static const struct { int n; builder *build; double x, y; } cases[] = {
        { 4,  ggml_rms_norm, 1e20, 1 },     { 4, ggml_l2_norm, 1e20, 0.5 },   { 64, ggml_l2_norm, 1e20, 0.125 },
        { 64, ggml_rms_norm, -3e37, -1 },   { 64, ggml_norm, 1e20, 0 },       { 4, ggml_l2_norm, 0, 0 },
    };
    for (size_t c = 0; c < sizeof cases/sizeof *cases; c++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(cases[c].n, 1, 1, 1), PACKED);
        FOR_ELEMENTS(i, a) set_value(a, i, cases[c].x);
        tensor *y = cases[c].build(b.ctx, a, 1e-6f);
        CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "huge rows");
        FOR_ELEMENTS(i, y) CHECK(fabs(value_at(y, i) - cases[c].y) <= 1e-6, "row of %g: %g", cases[c].x, value_at(y, i));
        bench_free(&b);
    }
}

int main(void) {
    test_rows();
    test_groups();
    test_back();
    test_huge();
    return DONE();
}
