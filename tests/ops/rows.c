/* GET_ROWS, SET_ROWS, GET_ROWS_BACK with every type, layout and index width; DIAG, DIAG_MASK_*, TRI. */

#include "ref.h"

static const enum ggml_type types[] = {
    GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
        GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K,
};
#define COUNT(a) ((int) (sizeof (a)/sizeof *(a)))

static enum layout plain_layout(enum ggml_type type, int l) {
    return l == TRANSPOSED && ggml_blck_size(type) > 1 ? WINDOW : (enum layout) l;
}

/* ---- gather -------------------------------------------------------------------------------------------------------- */

static double picked(const tensor *y, const int64_t *i) {
    return value(y->src[0], i[0], (int64_t) value(y->src[1], i[1], i[2], i[3], 0), i[2], i[3]);
}

static void test_get_rows(void) {
    for (int k = 0; k < COUNT(types); k++) for (int l = 0; l < LAYOUTS; l++) for (int li = 0; li < LAYOUTS; li++) {
        struct bench b = bench_new();
        const int64_t n = ggml_blck_size(types[k]) == 1 ? 7 : 256;
        tensor *x = operand(&b, types[k], SIZE(n, 5, 3, 2), plain_layout(types[k], l));
        if (types[k] == GGML_TYPE_I32) fill(&b, x, -1000, 1000);
        tensor *ids = operand(&b, GGML_TYPE_I32, SIZE(4, 3, 2, 1), (enum layout) li);
        fill(&b, ids, 0, 5);
        tensor *y = ggml_get_rows(b.ctx, x, ids);
        CHECK(y->type == (types[k] == GGML_TYPE_I32 ? GGML_TYPE_I32 : GGML_TYPE_F32), "type");
        expect(&b, y, picked, 0.0, 0.0, ggml_type_name(types[k]));
        bench_free(&b);
    }
}

static const double bad_ids[] = { -1, 5, INT32_MAX, INT32_MIN };

static void test_bad_ids(void) {
    for (int k = 0; k < COUNT(bad_ids); k++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(8, 5, 1, 1), PACKED),
            *ids = operand_of(&b, GGML_TYPE_I32, SIZE(3, 1, 1, 1), (double[]) { 0, 4, bad_ids[k] });
        tensor *g = operand(&b, GGML_TYPE_F32, SIZE(8, 3, 1, 1), PACKED);
        CHECK(compute(&b, ggml_get_rows(b.ctx, x, ids), 2) == GGML_STATUS_FAILED, "get_rows of row %g", bad_ids[k]);
        CHECK(compute(&b, ggml_get_rows_back(b.ctx, g, ids, x), 2) == GGML_STATUS_FAILED, "get_rows_back to row %g",
            bad_ids[k]);
        CHECK(compute(&b, ggml_set_rows(b.ctx, x, g, ids), 2) == GGML_STATUS_FAILED, "set_rows of row %g", bad_ids[k]);
        CHECK(guards_intact(&b), "row %g", bad_ids[k]);
        bench_free(&b);
    }
}

static double added(const tensor *y, const int64_t *i) {
    double sum = 0.0;
    const tensor *g = y->src[0], *ids = y->src[1];
    for (int64_t r = 0; r < ids->ne[0]; r++) if (value(ids, r, 0, 0, 0) == (double) i[1]) sum += value(g, i[0], r, 0, 0);
    return sum;
}
static void test_get_rows_back(void) {
    for (int f16 = 0; f16 < 2; f16++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *g = operand(&b, f16 ? GGML_TYPE_F16 : GGML_TYPE_F32, SIZE(1100, 6, 1, 1), (enum layout) l);
        tensor *c = operand(&b, GGML_TYPE_F32, SIZE(1100, 4, 1, 1), PACKED);
        tensor *ids = operand_of(&b, GGML_TYPE_I32, SIZE(6, 1, 1, 1), (double[]) { 3, 0, 3, 1, 3, 0 });
        expect(&b, ggml_get_rows_back(b.ctx, g, ids, c), added, 0.0, 1e-6, "get_rows_back");
        bench_free(&b);
    }
}

/* ---- scatter ------------------------------------------------------------------------------------------------------- */

static void test_set_rows(void) {
    for (int k = 0; k < COUNT(types); k++) for (int l = 0; l < LAYOUTS; l++) for (int wide = 0; wide < 2; wide++) {
        if (types[k] == GGML_TYPE_I32) continue;
        struct bench b = bench_new();
        const int64_t n = ggml_blck_size(types[k]) == 1 ? 7 : 256;
        tensor *x = operand(&b, types[k], SIZE(n, 6, 4, 2), plain_layout(types[k], l)),
            *v = operand(&b, GGML_TYPE_F32, SIZE(n, 3, 4, 2), (enum layout) l);
        tensor *ids = operand_of(&b, wide ? GGML_TYPE_I64 : GGML_TYPE_I32, SIZE(3, 2, 1, 1),
            (double[]) { 5, 0, 3, 1, 2, 4 });
        tensor *before = ggml_cont(b.ctx, x), *encoded = ggml_cpy(b.ctx, v,
            operand(&b, types[k], SIZE(n, 3, 4, 2), PACKED));
        CHECK(compute(&b, before, 1) == GGML_STATUS_SUCCESS && compute(&b, encoded, 1) == GGML_STATUS_SUCCESS,
            "set_rows");
        tensor *y = ggml_set_rows(b.ctx, x, v, ids);
        CHECK(y->src[0] == v && y->src[1] == ids && y->src[2] == x, "the sources of set_rows");
        CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "set_rows");
        int wrong = 0;
        FOR_ELEMENTS(i, y) {
            int64_t from = -1;
            for (int64_t r = 0; r < 3; r++) if (value(ids, r, i[2] % 2, 0, 0) == (double) i[1]) from = r;
            const double want = from < 0 ? value_at(before, i) : value(encoded, i[0], from, i[2], i[3]);
            wrong += value_at(y, i) != want;
        }
        CHECK(wrong == 0, "set_rows of %s %s: %d", ggml_type_name(types[k]), layout_names[l], wrong);
        CHECK(guards_intact(&b), "set_rows");
        bench_free(&b);
    }
}

/* Of several rows with one number the last one remains, with any number of threads. */
static void test_set_rows_twice(void) {
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_F16, SIZE(256, 10, 1, 1), PACKED),
            *v = operand(&b, GGML_TYPE_F32, SIZE(256, 400, 1, 1), PACKED);
        tensor *ids = operand(&b, GGML_TYPE_I64, SIZE(400, 1, 1, 1), PACKED);
        for (int64_t r = 0; r < 400; r++) set_value(ids, SIZE(r, 0, 0, 0), (double) (r % 10));
        tensor *y = ggml_set_rows(b.ctx, x, v, ids);
        CHECK(compute(&b, y, n_threads) == GGML_STATUS_SUCCESS, "set_rows");
        int wrong = 0;
        FOR_ELEMENTS(i, y) wrong += value_at(y,
            i) != (double) f16_to_f32(f32_to_f16((float) value(v, i[0], 390 + i[1], 0, 0)));
        CHECK(wrong == 0, "%d threads: %d", n_threads, wrong);
        bench_free(&b);
    }
}

/* ---- parts of rows ------------------------------------------------------------------------------------------------- */

static double want_diag(const tensor *y, const int64_t *i) { return i[0] == i[1]
    ? value(y->src[0], i[0], 0, i[2], i[3]) : 0.0; }
static double want_mask(const tensor *y, const int64_t *i, double masked) {
    return i[0] > y->op_params[0] + i[1] ? masked : value_at(y->src[0], i);
}
static double want_mask_inf (const tensor *y, const int64_t *i) { return want_mask(y, i, -INFINITY); }
static double want_mask_zero(const tensor *y, const int64_t *i) { return want_mask(y, i, 0.0); }
static double want_tri(const tensor *y, const int64_t *i) {
    const bool kept[] = { i[0] >= i[1], i[0] > i[1], i[0] <= i[1], i[0] < i[1] };
    return kept[y->op_params[0]] ? value_at(y->src[0], i) : 0.0;
}

static void test_parts(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *d = operand(&b, GGML_TYPE_F32, SIZE(5, 1, 3, 2), (enum layout) l),
            *x = operand(&b, GGML_TYPE_F32, SIZE(9, 5, 3, 2), (enum layout) l);
        tensor *s = operand(&b, GGML_TYPE_F32, SIZE(5, 5, 3, 2), (enum layout) l);
        expect(&b, ggml_diag(b.ctx, d), want_diag, 0.0, 0.0, "diag");
        for (int past = -3; past <= 9; past += 4) {
            expect(&b, ggml_diag_mask_inf(b.ctx, x, past), want_mask_inf, 0.0, 0.0, "diag_mask_inf");
            expect(&b, ggml_diag_mask_zero(b.ctx, x, past), want_mask_zero, 0.0, 0.0, "diag_mask_zero");
        }
        for (int kind = 0; kind < 4; kind++) expect(&b, ggml_tri(b.ctx, s, (enum ggml_tri_type) kind), want_tri, 0.0,
            0.0, "tri");
        tensor *own = ggml_diag_mask_inf(b.ctx, x, 2);
        CHECK(compute(&b, own, 1) == GGML_STATUS_SUCCESS, "mask");
        tensor *in = ggml_diag_mask_inf_inplace(b.ctx, x, 2);
        CHECK(compute(&b, in, 1) == GGML_STATUS_SUCCESS, "mask");
        FOR_ELEMENTS(i, own) CHECK(value_at(own, i) == value_at(in, i), "mask in place");
        bench_free(&b);
    }
}

static void test_empty_and_threads(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_Q8_0, SIZE(1024, 100, 1, 1), PACKED),
        *ids = operand(&b, GGML_TYPE_I32, SIZE(64, 1, 1, 1), PACKED);
    fill(&b, ids, 0, 100);
    expect_same_for_threads(&b, ggml_get_rows(b.ctx, x, ids), "get_rows");
    CHECK(compute(&b, ggml_get_rows(b.ctx, x, operand(&b, GGML_TYPE_I32, SIZE(0, 1, 1, 1), PACKED)),
        2) == GGML_STATUS_SUCCESS, "no ids");
    bench_free(&b);
}

int main(void) {
    test_get_rows();
    test_bad_ids();
    test_get_rows_back();
    test_set_rows();
    test_set_rows_twice();
    test_parts();
    test_empty_and_threads();
    return DONE();
}
