/* OUT_PROD, SOLVE_TRI, hyper-connections, the lightning indexer, the loss and the optimiser steps. */

#include "ref.h"

static float param_f(const tensor *y, int i) { return bits_f32((uint32_t) y->op_params[i]); }

/* ---- products and the solver --------------------------------------------------------------------------------------- */

static double want_out_prod(const tensor *y, const int64_t *i) {
    const tensor *a = y->src[0], *b = y->src[1];
    double sum = 0.0;
    for (int64_t t = 0; t < a->ne[1]; t++) {
        sum += value(a, i[0], t, i[2]/(b->ne[2]/a->ne[2]), i[3]/(b->ne[3]/a->ne[3]))*value(b, i[1], t, i[2], i[3]);
    }
    return sum;
}
static void test_out_prod(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0,
        GGML_TYPE_Q4_K };
    for (size_t k = 0; k < sizeof types/sizeof *types; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        const enum layout la = l == TRANSPOSED ? WINDOW : (enum layout) l;
        tensor *a = operand(&b, types[k], SIZE(256, 7, 2, 1), la),
            *c = operand(&b, GGML_TYPE_F32, SIZE(5, 7, 4, 3), (enum layout) l);
        expect(&b, ggml_out_prod(b.ctx, a, c), want_out_prod, 0.0, 1e-5, "out_prod");
        bench_free(&b);
    }
    for (size_t k = 0; k < sizeof types/sizeof *types; k++) {         /* more rows, terms and elements than are computed at a time */
        struct bench b = bench_new();
        const int64_t n = k < 3 ? 600 : 512;
        tensor *a = operand(&b, types[k], SIZE(n, 37, 1, 1), PACKED), *c = operand(&b, GGML_TYPE_F32, SIZE(59, 37, 2, 1), TRANSPOSED);
        expect(&b, ggml_out_prod(b.ctx, a, c), want_out_prod, 0.0, 1e-5, "out_prod, large");
        bench_free(&b);
    }
    struct bench b = bench_new();
    tensor *y = ggml_out_prod(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(3, 0, 1, 1), PACKED),
        operand(&b, GGML_TYPE_F32, SIZE(5, 0, 1, 1), PACKED));
    CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "no terms");
    FOR_ELEMENTS(i, y) CHECK(value_at(y, i) == 0, "no terms");
    bench_free(&b);
}

/* The residual of A*X = B, and that nothing above the diagonal of A takes part. */
static void test_solve_tri(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(9, 9, 2, 2), (enum layout) l),
            *c = operand(&b, GGML_TYPE_F32, SIZE(70, 9, 2, 2), (enum layout) l);
        FOR_ELEMENTS(i, a) {
            if (i[0] == i[1]) set_value(a, i, 2.0 + value_at(a, i));
            if (i[0] > i[1])  set_value(a, i, (double) NAN);
        }
        tensor *x = ggml_solve_tri(b.ctx, a, c, true, true, false);
        CHECK(compute(&b, x, 2) == GGML_STATUS_SUCCESS, "solve_tri");
        double worst = 0.0;
        FOR_ELEMENTS(i, c) {
            double sum = -value_at(c, i);
            for (int64_t k = 0; k <= i[1]; k++) sum += value(a, k, i[1], i[2], i[3])*value(x, i[0], k, i[2], i[3]);
            if (!(fabs(sum) <= worst)) worst = fabs(sum);
        }
        CHECK(worst < 1e-5 && guards_intact(&b), "solve_tri: residual %g", worst);
        bench_free(&b);
    }
}

/* ---- hyper-connections --------------------------------------------------------------------------------------------- */

static double comb[4][4];                       /* [d][s], of one token */
static void mix(const tensor *y, int64_t t) {
    const double eps = (double) param_f(y, 0);
    for (int s = 0; s < 4; s++) {
        double sum = 0.0;
        for (int d = 0; d < 4; d++) {
            comb[d][s] = exp(value(y->src[0], 8 + d + 4*s, t, 0, 0)*value(y->src[1], 2, 0, 0, 0) + value(y->src[2],
                8 + d + 4*s, 0, 0, 0));
            sum += comb[d][s];
        }
        for (int d = 0; d < 4; d++) comb[d][s] = comb[d][s]/sum + eps;
    }
    for (int k = 0; k < y->op_params[1]; k++) {
        for (int s = 0; k > 0 && s < 4; s++) {
            const double sum = comb[0][s] + comb[1][s] + comb[2][s] + comb[3][s] + eps;
            for (int d = 0; d < 4; d++) comb[d][s] /= sum;
        }
        for (int d = 0; d < 4; d++) {
            const double sum = comb[d][0] + comb[d][1] + comb[d][2] + comb[d][3] + eps;
            for (int s = 0; s < 4; s++) comb[d][s] /= sum;
        }
    }
}
static double want_comb(const tensor *y, const int64_t *i) {
    mix(y, i[2]);
    return comb[i[0]][i[1]];
}
static double want_pre(const tensor *y, const int64_t *i) {
    double sum = 0.0;
    for (int64_t h = 0; h < y->src[0]->ne[1]; h++) {
        const double x = value(y->src[0], i[0], h, i[1], 0);
        sum += y->op_params[1] ? x/(1.0 + exp(-value(y->src[1], i[0], h, i[1], 0)))*(double) param_f(y, 0)
            : x*value(y->src[1], h, i[1], 0, 0);
    }
    return sum;
}
static double want_post(const tensor *y, const int64_t *i) {
    double sum = value(y->src[0], i[0], i[2], 0, 0)*value(y->src[2], i[1], i[2], 0, 0);
    if (!y->src[3]) return sum + value(y->src[1], i[0], i[1], i[2], 0);
    for (int64_t s = 0; s < y->src[1]->ne[1]; s++) sum += value(y->src[1], i[0], s, i[2], 0)*value(y->src[3], i[1], s,
        i[2], 0);
    return sum;
}
static void test_hyper(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        const enum layout lay = (enum layout) l;
        for (int n = 1; n < 20; n += 9) {
            expect(&b, ggml_dsv4_hc_comb(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(24, 5, 1, 1), lay),
                operand(&b, GGML_TYPE_F32, SIZE(3, 1, 1, 1), PACKED),
                operand(&b, GGML_TYPE_F32, SIZE(24, 1, 1, 1), PACKED), 1e-6f, n),
                   want_comb, 0.0, 1e-6, "hc_comb");
        }
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(1030, 4, 3, 1), lay);
        expect(&b, ggml_dsv4_hc_pre(b.ctx, x, operand(&b, GGML_TYPE_F32, SIZE(4, 3, 1, 1), lay)), want_pre, 0.0, 1e-6,
            "hc_pre");
        expect(&b, ggml_dsv4_hc_pre_gated(b.ctx, x, operand(&b, GGML_TYPE_F32, SIZE(1030, 4, 3, 1), lay), 0.7f),
            want_pre, 0.0, 1e-6, "hc_pre_gated");
        tensor *v = operand(&b, GGML_TYPE_F32, SIZE(1030, 3, 1, 1), lay),
            *post = operand(&b, GGML_TYPE_F32, SIZE(4, 3, 1, 1), lay);
        expect(&b, ggml_dsv4_hc_post(b.ctx, v, x, post, operand(&b, GGML_TYPE_F32, SIZE(4, 4, 3, 1), lay)), want_post,
            0.0, 1e-6, "hc_post");
        expect(&b, ggml_dsv4_hc_post(b.ctx, v, x, post, NULL), want_post, 0.0, 1e-6, "hc_post");
        bench_free(&b);
    }
}

static double want_indexer(const tensor *y, const int64_t *i) {
    const tensor *q = y->src[0], *k = y->src[1], *w = y->src[2], *mask = y->src[3];
    double sum = value(mask, i[0], i[1], 0, i[3] % mask->ne[3]);
    for (int64_t h = 0; h < q->ne[1]; h++) {
        double dot = 0.0;
        for (int64_t d = 0; d < q->ne[0]; d++) dot += value(q, d, h, i[1], i[3])*value(k, d, 0, i[0], i[3]);
        sum += fmax(dot, 0.0)*value(w, h, i[1], 0, i[3]);
    }
    return sum;
}
static void test_indexer(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0 };
    for (int k = 0; k < 3; k++) {
        struct bench b = bench_new();
        tensor *mask = operand(&b, GGML_TYPE_F16, SIZE(17, 5, 1, 1), PACKED);
        set_value(mask, SIZE(3, 2, 0, 0), (double) -INFINITY);
        expect(&b, ggml_lightning_indexer(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(64, 4, 5, 2), WINDOW),
            operand(&b, types[k], SIZE(64, 1, 17, 2), PACKED), operand(&b, GGML_TYPE_F32, SIZE(4, 5, 1, 2), PACKED),
            mask),
               want_indexer, 0.0, 1e-5, "lightning_indexer");
        bench_free(&b);
    }
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

static double log_softmax(const tensor *x, const int64_t *i) {
    double max = -INFINITY, sum = 0.0;
    for (int64_t k = 0; k < x->ne[0]; k++) max = fmax(max, value(x, k, i[1], i[2], i[3]));
    for (int64_t k = 0; k < x->ne[0]; k++) sum += exp(value(x, k, i[1], i[2], i[3]) - max);
    return value_at(x, i) - max - log(sum);
}
static double want_loss(const tensor *y, const int64_t *unused) {
    (void) unused;
    double loss = 0.0;
    FOR_ELEMENTS(i, y->src[0]) loss -= value_at(y->src[1], i)*log_softmax(y->src[0], i);
    return loss/(double) ggml_nrows(y->src[0]);
}
static double want_loss_back(const tensor *y, const int64_t *i) {
    return (exp(log_softmax(y->src[1], i)) - value_at(y->src[2], i))*value(y->src[0], 0, 0, 0, 0)/(double) ggml_nrows(y);
}
static void test_loss(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(100, 7, 2, 1), WINDOW),
        *p = operand(&b, GGML_TYPE_F32, SIZE(100, 7, 2, 1), PERMUTED), *g = operand(&b, GGML_TYPE_F32, SIZE(1, 1, 1, 1), PACKED);
    fill(&b, x, -20, 20), fill(&b, p, 0, 0.02);
    expect(&b, ggml_cross_entropy_loss(b.ctx, x, p), want_loss, 1e-6, 0.0, "cross_entropy_loss");
    expect(&b, ggml_cross_entropy_loss_back(b.ctx, g, x, p), want_loss_back, 1e-5, 1e-8, "cross_entropy_loss_back");
    bench_free(&b);
}

static void test_optimisers(void) {
    struct bench b = bench_new();
    tensor *w = ggml_new_tensor_2d(b.ctx, GGML_TYPE_F32, 50, 3);
    ggml_set_param(w);
    place(&b, w);
    fill(&b, w, -1, 1);
    tensor *g = operand(&b, GGML_TYPE_F32, w->ne, PACKED), *m = operand(&b, GGML_TYPE_F32, w->ne, PACKED),
        *v = operand(&b, GGML_TYPE_F32, w->ne, PACKED);
    fill(&b, v, 0, 1);
    const double a = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-8, decay = 0.1, c1 = 1/(1 - b1), c2 = 1/(1 - b2);
    float *w0 = bytes_of(w), *m0 = bytes_of(m), *v0 = bytes_of(v);
    tensor *step = ggml_opt_step_adamw(b.ctx, w, g, m, v, operand_of(&b, GGML_TYPE_F32, SIZE(7, 1, 1, 1),
        (double[]) { a, b1, b2, eps, decay, c1, c2 }));
    CHECK(step->view_src == w && compute(&b, step, 2) == GGML_STATUS_SUCCESS, "adamw");
    for (int i = 0; i < 150; i++) {
        const double gi = flat_value(g, i), mi = b1*(double) m0[i] + (1 - b1)*gi, vi = b2*(double) v0[i] + (1 - b2)*gi*gi;
        const double wi = (double) w0[i]*(1 - a*decay) - a*mi*c1/(sqrt(vi*c2) + eps);
        CHECK(fabs(flat_value(w, i) - wi) < 1e-6 && fabs(flat_value(m, i) - mi) < 1e-6 &&
            fabs(flat_value(v, i) - vi) < 1e-6, "adamw %d", i);
    }
    float *w1 = bytes_of(w);
    step = ggml_opt_step_sgd(b.ctx, w, g, operand_of(&b, GGML_TYPE_F32, SIZE(2, 1, 1, 1), (double[]) { a, decay }));
    CHECK(compute(&b, step, 2) == GGML_STATUS_SUCCESS, "sgd");
    for (int i = 0; i < 150; i++) CHECK(fabs(flat_value(w, i) - ((double) w1[i]*(1 - a*decay) - a*flat_value(g,
        i))) < 1e-6, "sgd %d", i);
    free(w0), free(m0), free(v0), free(w1);
    bench_free(&b);
}

int main(void) {
    test_out_prod();
    test_solve_tri();
    test_hyper();
    test_indexer();
    test_loss();
    test_optimisers();
    return DONE();
}
