/* MUL_MAT and MUL_MAT_ID: values against sums in double, any layout and broadcast, the same bytes whatever else is in the
 * batch and however many threads there are, experts against plain products, wrong indices refused. */

#include "ref.h"

#include <stddef.h>

static const enum ggml_type weights[] = {
    GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS,
    GGML_TYPE_MXFP4, GGML_TYPE_NVFP4, GGML_TYPE_Q1_0, GGML_TYPE_Q2_0, GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_IQ1_S,
    GGML_TYPE_IQ1_M, GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S,
};
enum { N_WEIGHTS = sizeof weights/sizeof weights[0] };

static bool is_float(enum ggml_type type) { return ggml_blck_size(type) == 1; }

/* Activations that share a scale, or 1. */
static int64_t scale_block(enum ggml_type type) {
    return is_float(type) ? 1 : ggml_blck_size(ggml_get_type_traits_cpu(type)->vec_dot_type);
}

/* The product at i and the most that coding the activations in 8 bits and adding in F32 may change it. */
static double product_at(const tensor *y, const int64_t *i, double *most) {
    const tensor *w = y->src[0], *x = y->src[1];
    const int64_t w2 = i[2]/(x->ne[2]/w->ne[2]), w3 = i[3]/(x->ne[3]/w->ne[3]), block = scale_block(w->type);
    double sum = 0, size = 0, coded = 0, amax = 0;
    for (int64_t k = 0; k < w->ne[0]; k++) {
        if (k % block == 0) {
            amax = 0;
            for (int64_t j = k; j < k + block; j++) amax = fmax(amax, fabs(value(x, j, i[1], i[2], i[3])));
        }
        const double a = value(w, k, i[0], w2, w3), b = value(x, k, i[1], i[2], i[3]);
        sum += a*b, size += fabs(a*b), coded += fabs(a)*amax/254;
    }
    *most = size*4e-6 + (block == 1 || !is_float(x->type) ? 0 : 1.001*coded);
    return sum;
}

static void check_product(const tensor *y, const char *what) {
    int wrong = 0;
    FOR_ELEMENTS(i, y) {
        double most;
        const double want = product_at(y, i, &most), got = value_at(y, i);
        if (!(fabs(want - got) <= most) && wrong++ == 0) {
            CHECK(false, "%s: [%d, %d, %d, %d] is %g, exact %g", what, (int) i[0], (int) i[1], (int) i[2], (int) i[3], got, want);
        }
    }
    CHECK(wrong == 0, "%s: %d of %d elements", what, wrong, (int) ggml_nelements(y));
}

/* w [k, 19, 2, 1] in one layout times x [k, m, 4, 2] in another. */
static void check_layouts(enum ggml_type type, enum ggml_type x_type, enum layout w_layout, enum layout x_layout, int64_t m) {
    struct bench b = bench_new();
    const int64_t k = is_float(type) ? 75 : 256;
    char what[160];
    tensor *w = operand(&b, type, SIZE(k, 19, 2, 1), w_layout), *x = operand(&b, x_type, SIZE(k, m, 4, 2), x_layout);
    tensor *y = ggml_mul_mat(b.ctx, w, x);
    snprintf(what, sizeof what, "%s %s times %s %s, m = %d", layout_names[w_layout], ggml_type_name(type), layout_names[x_layout],
             ggml_type_name(x_type), (int) m);
    CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "%s", what);
    check_product(y, what);
    CHECK(guards_intact(&b), "%s: bytes around a tensor changed", what);
    bench_free(&b);
}

static void test_layouts(void) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        for (int layout = 0; layout < LAYOUTS; layout++) {
            check_layouts(weights[i], GGML_TYPE_F32, PACKED, (enum layout) layout, 3);
            if (layout != TRANSPOSED) check_layouts(weights[i], GGML_TYPE_F32, (enum layout) layout, WINDOW, 1);
        }
        check_layouts(weights[i], GGML_TYPE_F16,  WINDOW,   PACKED,     2);
        check_layouts(weights[i], GGML_TYPE_BF16, PERMUTED, TRANSPOSED, 3);
    }
}

/* Column j of a product of n columns has the bytes it has alone. */
static void test_batch(void) {
    static const int64_t counts[] = { 2, 3, 4, 5, 7, 8, 16, 33, 64, 300 };
    for (int i = 0; i < N_WEIGHTS; i++) {
        struct bench b = bench_new();
        const int64_t k = 768, rows = 70, most = 300;
        tensor *w = operand(&b, weights[i], SIZE(k, rows, 1, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, SIZE(k, most, 1, 1), PACKED);
        float *const alone = malloc(sizeof *alone*(size_t) (rows*most));
        for (int64_t j = 0; j < most; j += 7) {
            tensor *y = ggml_mul_mat(b.ctx, w, ggml_view_2d(b.ctx, x, k, 1, x->nb[1], (size_t) j*x->nb[1]));
            y->data = alone + j*rows;
            CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "%s", ggml_type_name(weights[i]));
        }
        for (size_t c = 0; c < sizeof counts/sizeof counts[0]; c++) {
            tensor *y = ggml_mul_mat(b.ctx, w, ggml_view_2d(b.ctx, x, k, counts[c], x->nb[1], 0));
            CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "%s", ggml_type_name(weights[i]));
            for (int64_t j = 0; j < counts[c]; j += 7) {
                CHECK(!memcmp(alone + j*rows, (float *) y->data + j*rows, sizeof *alone*(size_t) rows), "%s: column %d of %d",
                      ggml_type_name(weights[i]), (int) j, (int) counts[c]);
            }
        }
        free(alone);
        bench_free(&b);
    }
}

static void test_threads(void) {
    static const int64_t columns[] = { 1, 4, 19 };
    for (int i = 0; i < N_WEIGHTS; i++) {
        for (int c = 0; c < 3; c++) {
            struct bench b = bench_new();
            tensor *w = operand(&b, weights[i], SIZE(512, 203, 1, 1), PACKED);
            tensor *x = operand(&b, GGML_TYPE_F32, SIZE(512, columns[c], 2, 1), PACKED);
            expect_same_for_threads(&b, ggml_mul_mat(b.ctx, w, x), ggml_type_name(weights[i]));
            bench_free(&b);
        }
    }
}

/* Activations that come in the partner's type are used as they are, the code -128 included. */
static void test_partner(void) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        const enum ggml_type partner = ggml_get_type_traits_cpu(weights[i])->vec_dot_type;
        if (is_float(weights[i])) continue;
        struct bench b = bench_new();
        tensor *w = operand(&b, weights[i], SIZE(512, 33, 1, 1), PACKED), *x = operand(&b, partner, SIZE(512, 9, 1, 1), PACKED);
        const size_t first = partner == GGML_TYPE_Q8_0 ? offsetof(block_q8_0, qs) : offsetof(block_q8_K, qs);
        _Static_assert(offsetof(block_q8_1, qs) == offsetof(block_q8_K, qs), "both after four bytes");
        for (size_t at = first; at < ggml_nbytes(x); at += ggml_type_size(partner)) ((int8_t *) x->data)[at] = -128;
        for (size_t at = 0; at < ggml_nbytes(x) && partner == GGML_TYPE_Q8_K; at += sizeof(block_q8_K)) {   /* its sums follow */
            block_q8_K *block = (block_q8_K *) (void *) ((char *) x->data + at);
            block->bsums[0] = 0;
            for (int j = 0; j < 16; j++) block->bsums[0] = (int16_t) (block->bsums[0] + block->qs[j]);
        }
        tensor *y = ggml_mul_mat(b.ctx, w, x);
        CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "%s", ggml_type_name(weights[i]));
        check_product(y, ggml_type_name(weights[i]));
        bench_free(&b);
    }
}

static void test_extremes(void) {
    for (int64_t m = 1; m < 20; m += 9) {
        struct bench b = bench_new();
        tensor *w = operand(&b, GGML_TYPE_F16, SIZE(4096, 3, 1, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, SIZE(4096, m, 1, 1), PACKED);
        FOR_ELEMENTS(i, w) set_value(w, i, 10);
        FOR_ELEMENTS(i, x) set_value(x, i, 10);
        tensor *y = ggml_mul_mat(b.ctx, w, x);
        CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "F16 of tens");
        FOR_ELEMENTS(i, y) CHECK(value_at(y, i) == 409600, "sums of F16 weights do not overflow: %g", value_at(y, i));
        bench_free(&b);
    }
}

static void test_empty(void) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        for (int64_t m = 1; m < 20; m += 9) {
            struct bench b = bench_new();
            tensor *w = operand(&b, weights[i], SIZE(0, 5, 1, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, SIZE(0, m, 1, 1), PACKED);
            tensor *y = ggml_mul_mat(b.ctx, w, x);
            CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "k = 0");
            FOR_ELEMENTS(e, y) CHECK(value_at(y, e) == 0, "k = 0: %g", value_at(y, e));
            CHECK(guards_intact(&b), "k = 0: bytes around a tensor changed");
            bench_free(&b);
        }
        struct bench b = bench_new();
        tensor *w = operand(&b, weights[i], SIZE(256, 5, 1, 1), PACKED);
        tensor *none = ggml_mul_mat(b.ctx, w, operand(&b, GGML_TYPE_F32, SIZE(256, 0, 1, 1), PACKED));
        CHECK(compute(&b, none, 2) == GGML_STATUS_SUCCESS && ggml_nelements(none) == 0, "no columns");
        bench_free(&b);
    }
}

/* ---- experts ---- */

enum { EXPERTS = 5, USED = 2 };

static void check_experts(enum ggml_type type, int64_t tokens, int64_t rows_of_x, int threads) {
    struct bench b = bench_new();
    const int64_t k = 256, rows = 45;
    tensor *w = operand(&b, type, SIZE(k, rows, EXPERTS, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, SIZE(k, rows_of_x, tokens, 1), PACKED);
    tensor *ids = operand(&b, GGML_TYPE_I32, SIZE(USED, tokens, 1, 1), WINDOW);
    FOR_ELEMENTS(i, ids) set_value(ids, i, (double) ((i[0]*3 + i[1]*i[1]) % (EXPERTS - 1)));     /* the last one is never chosen */
    tensor *y = ggml_mul_mat_id(b.ctx, w, x, ids);
    CHECK(compute(&b, y, threads) == GGML_STATUS_SUCCESS, "experts of %s", ggml_type_name(type));
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t u = 0; u < USED; u++) {
            const size_t expert = (size_t) value(ids, u, t, 0, 0);
            struct bench c = bench_new();
            tensor *one = ggml_mul_mat(c.ctx, ggml_view_2d(c.ctx, w, k, rows, w->nb[1], expert*w->nb[2]),
                                       ggml_view_2d(c.ctx, x, k, 1, x->nb[1], (size_t) (u % rows_of_x)*x->nb[1] + (size_t) t*x->nb[2]));
            CHECK(compute(&c, one, 1) == GGML_STATUS_SUCCESS, "one expert");
            CHECK(!memcmp(one->data, address(y, SIZE(0, u, t, 0)), ggml_nbytes(one)), "%s: expert %d of token %d of %d",
                  ggml_type_name(type), (int) u, (int) t, (int) tokens);
            bench_free(&c);
        }
    }
    CHECK(guards_intact(&b), "experts: bytes around a tensor changed");
    bench_free(&b);
}

static void test_experts(void) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        check_experts(weights[i], 1, 1, 2);
        check_experts(weights[i], 3, USED, 2);
        check_experts(weights[i], 29, 1, 3);
        check_experts(weights[i], 29, USED, 1);
    }
}

static void test_wrong_experts(void) {
    static const int wrong[] = { -1, EXPERTS };
    for (int i = 0; i < 2; i++) {
        for (int64_t tokens = 1; tokens < 60; tokens += 29) {
            struct bench b = bench_new();
            tensor *w = operand(&b, GGML_TYPE_Q4_0, SIZE(256, 45, EXPERTS, 1), PACKED), *x = operand(&b, GGML_TYPE_F32, SIZE(256, 1, tokens, 1), PACKED);
            tensor *ids = operand(&b, GGML_TYPE_I32, SIZE(USED, tokens, 1, 1), PACKED);
            FOR_ELEMENTS(e, ids) set_value(ids, e, 0);
            set_value(ids, SIZE(1, tokens - 1, 0, 0), wrong[i]);
            tensor *y = ggml_mul_mat_id(b.ctx, w, x, ids);
            CHECK(compute(&b, y, 2) == GGML_STATUS_FAILED, "expert %d", wrong[i]);
            CHECK(guards_intact(&b), "expert %d: bytes around a tensor changed", wrong[i]);
            bench_free(&b);
        }
    }
}

int main(void) {
    test_layouts();
    test_batch();
    test_threads();
    test_partner();
    test_extremes();
    test_empty();
    test_experts();
    test_wrong_experts();
    return DONE();
}
