/* Sums, choices, counts, order, repetition, concatenation and sequences. */

#include "ref.h"

static const enum ggml_type floats[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
static double rounding(enum ggml_type type) {
    return type == GGML_TYPE_F32 ? 0x1p-23 : type == GGML_TYPE_F16 ? 0x1p-11 : 0x1p-8;
}

/* ---- sums ---------------------------------------------------------------------------------------------------------- */

static double want_sum(const tensor *y, const int64_t *unused) {
    (void) unused;
    double sum = 0.0;
    FOR_ELEMENTS(i, y->src[0]) sum += value_at(y->src[0], i);
    return sum;
}
static double sum_to(const tensor *x, const int64_t *i, int64_t n) {
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += value(x, k, i[1], i[2], i[3]);
    return sum;
}
static double want_sum_rows(const tensor *y, const int64_t *i) { return sum_to(y->src[0], i, y->src[0]->ne[0]); }
static double want_mean    (const tensor *y, const int64_t *i) { return want_sum_rows(y, i)/(double) y->src[0]->ne[0]; }
static double want_cumsum  (const tensor *y, const int64_t *i) { return sum_to(y->src[0], i, i[0] + 1); }

static void test_sums(void) {
    for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, floats[k], SIZE(1500, 3, 2, 2), (enum layout) l);
        const double e = rounding(floats[k]);
        expect(&b, ggml_sum(b.ctx, x), want_sum, e, 0.0, "sum");
        expect(&b, ggml_sum_rows(b.ctx, x), want_sum_rows, e, 0.0, "sum_rows");
        expect(&b, ggml_mean(b.ctx, x), want_mean, 0x1p-23, 0.0, "mean");
        if (k == 0) expect(&b, ggml_cumsum(b.ctx, x), want_cumsum, 0.0, 1e-4, "cumsum");
        /* the packed copy gives the same bits */
        tensor *of_view = ggml_sum_rows(b.ctx, x), *of_copy = ggml_sum_rows(b.ctx, ggml_cont(b.ctx, x));
        CHECK(compute(&b, of_view, 2) == GGML_STATUS_SUCCESS && compute(&b, of_copy, 2) == GGML_STATUS_SUCCESS,
            "sum_rows");
        CHECK(!memcmp(of_view->data, of_copy->data, ggml_nbytes(of_view)), "sum_rows of a %s tensor and of its copy",
            layout_names[l]);
        bench_free(&b);
    }
}

static void test_sum_of_permuted(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(3, 4, 1, 1), PACKED),
        *y = operand(&b, GGML_TYPE_F32, SIZE(33, 256, 1, 1), PACKED);
    for (int i = 0; i < 12; i++) ((float *) x->data)[i] = (float) (i + 1);
    for (int i = 0; i < 33*256; i++) ((float *) y->data)[i] = (float) (7*i % 25);
    tensor *sx = ggml_sum(b.ctx, ggml_permute(b.ctx, x, 1, 0, 2, 3)),
        *sy = ggml_sum(b.ctx, ggml_permute(b.ctx, y, 1, 0, 2, 3));
    CHECK(compute(&b, sx, 1) == GGML_STATUS_SUCCESS && value(sx, 0, 0, 0, 0) == 78, "sum");
    CHECK(compute(&b, sy, 1) == GGML_STATUS_SUCCESS && value(sy, 0, 0, 0, 0) == 101371, "sum");
    bench_free(&b);
}

static void test_empty(void) {
    struct bench b = bench_new();
    tensor *none = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED),
        *some = operand(&b, GGML_TYPE_F32, SIZE(4, 3, 1, 1), PACKED);
    tensor *sum = ggml_sum(b.ctx, none), *both = ggml_concat(b.ctx, none, some, 1);
    CHECK(compute(&b, sum, 1) == GGML_STATUS_SUCCESS && value(sum, 0, 0, 0, 0) == 0, "the sum of nothing");
    CHECK(compute(&b, both, 1) == GGML_STATUS_SUCCESS && !memcmp(both->data, some->data, ggml_nbytes(some)),
        "concat of nothing and something");
    tensor *const all[] = {
        ggml_sum_rows(b.ctx, none), ggml_mean(b.ctx, none), ggml_cumsum(b.ctx, none), ggml_argmax(b.ctx, none),
        ggml_argsort(b.ctx, none, GGML_SORT_ORDER_ASC), ggml_top_k(b.ctx, none, 2), ggml_repeat(b.ctx, none, none),
        ggml_count_equal(b.ctx, operand(&b, GGML_TYPE_I32, SIZE(4, 0, 1, 1), PACKED),
            operand(&b, GGML_TYPE_I32, SIZE(4, 0, 1, 1), PACKED)),
    };
    for (size_t k = 0; k < sizeof all/sizeof *all; k++) CHECK(compute(&b, all[k], 2) == GGML_STATUS_SUCCESS,
        "%s of nothing", ggml_op_name(all[k]->op));
    bench_free(&b);
}

/* ---- choice, count, order ------------------------------------------------------------------------------------------ */

static double want_argmax(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    int64_t best = 0;
    for (int64_t k = 1; k < x->ne[0]; k++) if (value(x, k, i[0], 0, 0) > value(x, best, i[0], 0, 0)) best = k;
    return (double) best;
}
static void test_argmax(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        expect(&b, ggml_argmax(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(100, 7, 1, 1), (enum layout) l)), want_argmax,
            0.0, 0.0, "argmax");
        bench_free(&b);
    }
    static const struct { double x[6]; int best; } rows[] = {
        { { 3, 7, 7, 1, 7, 2 }, 1 },  { { NAN, 1, 2, NAN, 2, 0 }, 2 },  { { NAN, NAN, NAN, NAN, NAN, NAN }, 0 },
        { { -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY }, 0 },
            { { NAN, -INFINITY, NAN, 5, INFINITY, INFINITY }, 4 },
    };
    for (size_t k = 0; k < sizeof rows/sizeof *rows; k++) {
        struct bench b = bench_new();
        tensor *y = ggml_argmax(b.ctx, operand_of(&b, GGML_TYPE_F32, SIZE(6, 1, 1, 1), rows[k].x));
        CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS && value(y, 0, 0, 0, 0) == rows[k].best,
            "argmax of row %d: %g", (int) k, value(y, 0, 0, 0, 0));
        bench_free(&b);
    }
}

static void test_count_equal(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_I32, SIZE(9, 5, 3, 2), (enum layout) l),
            *y = operand(&b, GGML_TYPE_I32, SIZE(9, 5, 3, 2), PACKED);
        fill(&b, x, 0, 4), fill(&b, y, 0, 4);
        int64_t want = 0;
        FOR_ELEMENTS(i, x) want += value_at(x, i) == value_at(y, i);
        tensor *n = ggml_count_equal(b.ctx, x, y);
        CHECK(n->type == GGML_TYPE_I64 && compute(&b, n, 2) == GGML_STATUS_SUCCESS &&
            value(n, 0, 0, 0, 0) == (double) want, "count_equal");
        bench_free(&b);
    }
}

/* The rank of an element by counting those before it: the definition, in quadratic time. */
static int64_t rank_of(const tensor *x, int64_t k, const int64_t *i, bool descending) {
    const double v = value(x, k, i[1], i[2], i[3]);
    int64_t rank = 0;
    for (int64_t j = 0; j < x->ne[0]; j++) {
        const double w = value(x, j, i[1], i[2], i[3]);
        const bool earlier = v != v ? w == w || j < k : w == w && ((descending ? w > v : w < v) || (w == v && j < k));
        rank += earlier;
    }
    return rank;
}
static void check_order(tensor *y, const tensor *x, bool descending, const char *name) {
    int wrong = 0;
    FOR_ELEMENTS(i, y) {
        const int64_t k = (int64_t) value_at(y, i);
        wrong += k < 0 || k >= x->ne[0] || rank_of(x, k, i, descending) != i[0];
    }
    CHECK(wrong == 0, "%s: %d", name, wrong);
}
static void test_order(void) {
    for (int l = 0; l < LAYOUTS; l++) for (int order = 0; order < 2; order++) for (int64_t n = 1; n < 70; n += 17) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(n, 3, 2, 1), (enum layout) l);
        FOR_ELEMENTS(i, x) set_value(x, i, rnd_u64(&b.seed) % 11 == 0 ? (double) NAN
            : (double) (rnd_u64(&b.seed) % 9));     /* many ties */
        tensor *s = ggml_argsort(b.ctx, x, (enum ggml_sort_order) order), *t = ggml_top_k(b.ctx, x, (int) (n + 1)/2),
            *v = ggml_argsort_top_k(b.ctx, x, (int) (n + 1)/2);
        CHECK(compute(&b, s, 2) == GGML_STATUS_SUCCESS && compute(&b, t, 2) == GGML_STATUS_SUCCESS &&
            compute(&b, v, 2) == GGML_STATUS_SUCCESS, "order");
        check_order(s, x, order == GGML_SORT_ORDER_DESC, "argsort");
        check_order(t, x, true, "top_k");
        check_order(v, x, true, "argsort_top_k");
        CHECK(guards_intact(&b), "order");
        bench_free(&b);
    }
}

/* ---- repetition ---------------------------------------------------------------------------------------------------- */

static double want_repeat(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    return value(x, i[0] % x->ne[0], i[1] % x->ne[1], i[2] % x->ne[2], i[3] % x->ne[3]);
}
static double want_tiles(const tensor *y, const int64_t *i) {
    double sum = 0.0;
    FOR_ELEMENTS(k, y->src[0]) {
        bool mine = true;
        for (int d = 0; d < 4; d++) mine = mine && k[d] % y->ne[d] == i[d];
        if (mine) sum += value_at(y->src[0], k);
    }
    return sum;
}
static void test_repeat(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32,
        GGML_TYPE_I64, GGML_TYPE_I16 };
    static const int64_t shapes[][4] = { { 4, 3, 2, 1 }, { 1, 3, 1, 1 }, { 4, 1, 1, 1 }, { 2, 1, 2, 1 } };
    for (size_t k = 0; k < sizeof types/sizeof *types; k++) for (int l = 0; l < LAYOUTS; l++) for (size_t s = 0; s < 4; s++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, types[k], shapes[s], (enum layout) l);
        fill(&b, x, -50, 50);
        expect(&b, ggml_repeat_4d(b.ctx, x, 8, 6, 4, 3), want_repeat, 0.0, 0.0, "repeat");
        if (types[k] == GGML_TYPE_F32) {
            tensor *big = operand(&b, GGML_TYPE_F32, SIZE(8, 6, 4, 3), (enum layout) l);
            expect(&b, ggml_repeat_back(b.ctx, big, x), want_tiles, 0.0, 1e-4, "repeat_back");
        }
        bench_free(&b);
    }
    struct bench b = bench_new();
    tensor *q = operand(&b, GGML_TYPE_Q4_0, SIZE(64, 2, 1, 1), PACKED);
    expect(&b, ggml_repeat_4d(b.ctx, q, 128, 4, 2, 1), want_repeat, 0.0, 0.0, "repeat of blocks");
    bench_free(&b);
}

static double want_concat(const tensor *y, const int64_t *i) {
    const int dim = y->op_params[0];
    int64_t k[4] = { i[0], i[1], i[2], i[3] };
    if (k[dim] < y->src[0]->ne[dim]) return value_at(y->src[0], k);
    k[dim] -= y->src[0]->ne[dim];
    return value_at(y->src[1], k);
}
static void test_concat(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I32, GGML_TYPE_I8, GGML_TYPE_I64 };
    for (size_t k = 0; k < sizeof types/sizeof *types; k++) for (int dim = 0; dim < 4; dim++) for (int la = 0; la < LAYOUTS; la++) for (int lb = 0; lb < LAYOUTS; lb++) {
        struct bench b = bench_new();
        int64_t n[4] = { 5, 4, 3, 2 }, m[4] = { 5, 4, 3, 2 };
        m[dim] = 3;
        tensor *x = operand(&b, types[k], n, (enum layout) la), *y = operand(&b, types[k], m, (enum layout) lb);
        fill(&b, x, -50, 50), fill(&b, y, -50, 50);
        expect(&b, ggml_concat(b.ctx, x, y, dim), want_concat, 0.0, 0.0, "concat");
        bench_free(&b);
    }
    for (int dim = 0; dim < 4; dim++) {
        struct bench b = bench_new();
        expect(&b, ggml_concat(b.ctx, operand(&b, GGML_TYPE_Q4_K, SIZE(256, 2, 2, 1), PERMUTED),
            operand(&b, GGML_TYPE_Q4_K, SIZE(256, 2, 2, 1), WINDOW), dim),
               want_concat, 0.0, 0.0, "concat of blocks");
        bench_free(&b);
    }
}

/* ---- sequences ----------------------------------------------------------------------------------------------------- */

static double want_arange(const tensor *y, const int64_t *i) { (void) y; return 0.5 + 0.25*(double) i[0]; }
static double want_timestep(const tensor *y, const int64_t *i) {
    const int64_t half = y->ne[0]/2, j = i[0] % (half ? half : 1);
    if (i[0] == 2*half) return 0.0;
    const double angle = value(y->src[0], i[1], 0, 0, 0)*exp(-log((double) y->op_params[1])*(double) j/(double) half);
    return i[0] < half ? cos(angle) : sin(angle);
}
static void test_sequences(void) {
    struct bench b = bench_new();
    tensor *r = ggml_arange(b.ctx, 0.5f, 3.1f, 0.25f);
    CHECK(r->ne[0] == 11, "arange: %d", (int) r->ne[0]);
    expect(&b, r, want_arange, 0.0, 0.0, "arange");
    for (int dim = 32; dim < 34; dim++) {
        tensor *t = operand_of(&b, GGML_TYPE_F32, SIZE(3, 1, 1, 1), (double[]) { 0, 12, 999 });
        expect(&b, ggml_timestep_embedding(b.ctx, t, dim, 10000), want_timestep, 0.0, 999*3e-7, "timestep_embedding");
    }
    bench_free(&b);
}

static void test_threads(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(500, 400, 1, 1), TRANSPOSED);
    expect_same_for_threads(&b, ggml_sum(b.ctx, x), "sum");
    expect_same_for_threads(&b, ggml_sum_rows(b.ctx, x), "sum_rows");
    expect_same_for_threads(&b, ggml_cumsum(b.ctx, x), "cumsum");
    expect_same_for_threads(&b, ggml_argmax(b.ctx, x), "argmax");
    expect_same_for_threads(&b, ggml_argsort(b.ctx, x, GGML_SORT_ORDER_DESC), "argsort");
    expect_same_for_threads(&b, ggml_top_k(b.ctx, x, 40), "top_k");
    expect_same_for_threads(&b, ggml_repeat_4d(b.ctx, x, 500, 800, 1, 1), "repeat");
    expect_same_for_threads(&b, ggml_repeat_back(b.ctx, x, operand(&b, GGML_TYPE_F32, SIZE(100, 50, 1, 1), PACKED)),
        "repeat_back");
    expect_same_for_threads(&b, ggml_concat(b.ctx, x, x, 1), "concat");
    bench_free(&b);
}

int main(void) {
    test_sums();
    test_sum_of_permuted();
    test_empty();
    test_argmax();
    test_count_equal();
    test_order();
    test_repeat();
    test_concat();
    test_sequences();
    test_threads();
    return DONE();
}
