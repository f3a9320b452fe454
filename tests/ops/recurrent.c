/* State-space and linear-attention recurrences: the definitions in double, token by token, with every state they return. */

#include "ref.h"

/* The expected result, element by element of the packed output; NaN: not written, not compared. */
static double *expected;
static double want(const tensor *y, const int64_t *i) {
    const double v = expected[i[0] + y->ne[0]*(i[1] + y->ne[1]*(i[2] + y->ne[2]*i[3]))];
    return v == v ? v : value_at(y, i);
}
static double *expected_for(const tensor *y) {
    free(expected);
    expected = malloc((size_t) ggml_nelements(y)*sizeof *expected);
    if (!expected) exit(2);
    for (int64_t i = 0; i < ggml_nelements(y); i++) expected[i] = NAN;
    return expected;
}

/* ---- state-space models -------------------------------------------------------------------------------------------- */

static double want_ssm_conv(const tensor *y, const int64_t *i) {
    double sum = 0.0;
    for (int64_t k = 0; k < y->src[1]->ne[0]; k++) sum += value(y->src[0], i[1] + k, i[0], i[2], 0)*value(y->src[1],
        k, i[0], 0, 0);
    return sum;
}

static void expect_scan(const tensor *y) {
    const tensor *s = y->src[0], *x = y->src[1], *dt = y->src[2], *A = y->src[3], *B = y->src[4], *C = y->src[5],
        *ids = y->src[6];
    const int64_t N = s->ne[0], D = s->ne[1], H = s->ne[2], T = x->ne[2], S = x->ne[3], K = y->op_params[0];
    double *out = expected_for(y), *states = out + ggml_nelements(x);
    for (int64_t q = 0; q < S; q++) for (int64_t h = 0; h < H; h++) for (int64_t d = 0; d < D; d++) {
        double state[64];
        for (int64_t i = 0; i < N; i++) state[i] = value(s, i, d, h, (int64_t) value(ids, q, 0, 0, 0));
        for (int64_t t = 0; t < T; t++) {
            const double raw = value(dt, h, t, q, 0), delta = raw > 20.0 ? raw : log1p(exp(raw));
            const int64_t group = h/(H/B->ne[1]);
            double sum = 0.0;
            for (int64_t i = 0; i < N; i++) {
                state[i] = state[i]*exp(delta*value(A, A->ne[0] == 1 ? 0 : i, h, 0, 0)) + value(B, i, group, t,
                    q)*value(x, d, h, t, q)*delta;
                sum += state[i]*value(C, i, group, t, q);
            }
            out[d + D*(h + H*(t + T*q))] = sum;
            if (T - 1 - t < K) for (int64_t i = 0; i < N; i++) states[i + N*(d + D*(h + H*(q + S*(T - 1 - t))))] = state[i];
        }
    }
}
static void test_ssm(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        const enum layout rows = l == TRANSPOSED ? WINDOW : (enum layout) l;
        expect(&b, ggml_ssm_conv(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(9, 6, 2, 1), rows),
            operand(&b, GGML_TYPE_F32, SIZE(4, 6, 1, 1), rows)), want_ssm_conv, 0.0, 1e-6, "ssm_conv");
        for (int mamba = 1; mamba < 3; mamba++) for (int64_t K = 1; K < (mamba == 1 ? 2 : 9); K += 3) {
            tensor *s = operand(&b, GGML_TYPE_F32, SIZE(16, 3, 4, 5), rows),
                *x = operand(&b, GGML_TYPE_F32, SIZE(3, 4, 6, 2), rows), *dt = operand(&b, GGML_TYPE_F32, SIZE(4, 6, 2, 1), rows);
            tensor *A = operand(&b, GGML_TYPE_F32, SIZE(mamba == 1 ? 16 : 1, 4, 1, 1), PACKED),
                *B = operand(&b, GGML_TYPE_F32, SIZE(16, 2, 6, 2), rows), *C = operand(&b, GGML_TYPE_F32, SIZE(16, 2, 6, 2), rows);
            tensor *ids = operand_of(&b, GGML_TYPE_I32, SIZE(2, 1, 1, 1), (double[]) { 4, 1 }),
                *y = ggml_ssm_scan(b.ctx, s, x, dt, A, B, C, ids, K);
            fill(&b, dt, -3, 30);
            fill(&b, A, -2, 0);
            expect_scan(y);
            expect(&b, y, want, 1e-5, 2e-4, "ssm_scan");
            for (int bad = -1; bad <= 5; bad += 6) {
                set_value(ids, SIZE(1, 0, 0, 0), bad);
                CHECK(compute(&b, ggml_ssm_scan(b.ctx, s, x, dt, A, B, C, ids, K), 2) == GGML_STATUS_FAILED &&
                    guards_intact(&b), "state %d", bad);
            }
            bench_free(&b);
            b = bench_new();
        }
        bench_free(&b);
    }
}

/* ---- linear attention ---------------------------------------------------------------------------------------------- */

enum { S = 16, H = 3, T = 6, SEQS = 2 };
static int64_t at(int64_t t, int64_t h, int64_t i) { return (t*H + h)*S + i; }

typedef void token(const tensor *y, double *m, int64_t t, int64_t h, double *out);
static void wkv6(const tensor *y, double *m, int64_t t, int64_t h, double *out) {
    for (int64_t j = 0; j < S; j++) {
        double sum = 0.0;
        for (int64_t i = 0; i < S; i++) {
            const double kv = flat_value(y->src[0], at(t, h, i))*flat_value(y->src[1], at(t, h, j));
            sum += flat_value(y->src[2], at(t, h, i))*(kv*flat_value(y->src[3], h*S + i) + m[i*S + j]);
            m[i*S + j] = m[i*S + j]*flat_value(y->src[4], at(t, h, i)) + kv;
        }
        out[at(t, h, j)] = sum;
    }
}
static void gated(const tensor *y, double *m, int64_t t, int64_t h, double *out) {
    for (int64_t j = 0; j < S; j++) {
        double sum = 0.0;
        for (int64_t i = 0; i < S; i++) {
            m[i*S + j] = m[i*S + j]*flat_value(y->src[3], at(t, h, i)) + flat_value(y->src[0],
                at(t, h, i))*flat_value(y->src[1], at(t, h, j));
            sum += flat_value(y->src[2], at(t, h, i))*0.25*m[i*S + j];
        }
        out[at(t, h, j)] = sum;
    }
}
static void wkv7(const tensor *y, double *m, int64_t t, int64_t h, double *out) {
    for (int64_t i = 0; i < S; i++) {
        double sa = 0.0, sum = 0.0;
        for (int64_t j = 0; j < S; j++) sa += flat_value(y->src[4], at(t, h, j))*m[i*S + j];
        for (int64_t j = 0; j < S; j++) {
            m[i*S + j] = m[i*S + j]*flat_value(y->src[1], at(t, h, j)) + flat_value(y->src[3],
                at(t, h, i))*flat_value(y->src[2], at(t, h, j)) + sa*flat_value(y->src[5], at(t, h, j));
            sum += m[i*S + j]*flat_value(y->src[0], at(t, h, j));
        }
        out[at(t, h, i)] = sum;
    }
}

static void attention(struct bench *b, tensor *y, const tensor *state, token *f, const char *name) {
    double *out = expected_for(y), *states = out + S*H*T;
    for (int64_t i = 0; i < S*S*H*SEQS; i++) states[i] = flat_value(state, i);
    for (int64_t t = 0; t < T; t++) for (int64_t h = 0; h < H; h++) f(y, states + (t/(T/SEQS)*H + h)*S*S, t, h, out);
    expect(b, y, want, 1e-5, 1e-4, name);
}
static void test_linear_attention(void) {
    struct bench b = bench_new();
    tensor *x[7], *state = operand(&b, GGML_TYPE_F32, SIZE(S*S*H, SEQS, 1, 1), PACKED);
    for (int k = 0; k < 7; k++) x[k] = operand(&b, GGML_TYPE_F32, SIZE(S, H, T, 1), PACKED);
    tensor *bonus = operand(&b, GGML_TYPE_F32, SIZE(S, H, 1, 1), PACKED);
    attention(&b, ggml_rwkv_wkv6(b.ctx, x[0], x[1], x[2], bonus, x[3], state), state, wkv6, "wkv6");
    attention(&b, ggml_gated_linear_attn(b.ctx, x[0], x[1], x[2], x[3], state, 0.25f), state, gated, "gated_linear_attn");
    fill(&b, x[4], -0.2, 0.2);
    attention(&b, ggml_rwkv_wkv7(b.ctx, x[0], x[1], x[2], x[3], x[4], x[5], state), state, wkv7, "wkv7");
    expect_same_for_threads(&b, ggml_rwkv_wkv7(b.ctx, x[0], x[1], x[2], x[3], x[4], x[5], state), "wkv7");
    bench_free(&b);
}

static void expect_delta(const tensor *y) {
    const tensor *q = y->src[0], *k = y->src[1], *v = y->src[2], *g = y->src[3], *beta = y->src[4], *state = y->src[5];
    const int64_t n = v->ne[0], heads = v->ne[1], tokens = v->ne[2], B = v->ne[3], K = y->op_params[0];
    double *out = expected_for(y), *states = out + n*heads*tokens*B;
    for (int64_t b = 0; b < B; b++) for (int64_t h = 0; h < heads; h++) {
        double m[S*S];
        for (int64_t i = 0; i < n*n; i++) m[i] = flat_value(state, (b*heads + h)*n*n + i);
        const int64_t hk = h % q->ne[1], bk = b/(B/q->ne[3]);
        for (int64_t t = 0; t < tokens; t++) for (int64_t j = 0; j < n; j++) {
            double dot = 0.0, sum = 0.0;
            for (int64_t i = 0; i < n; i++) {
                m[j*n + i] *= exp(value(g, g->ne[0] == 1 ? 0 : i, h, t, b));
                dot += m[j*n + i]*value(k, i, hk, t, bk);
            }
            const double delta = (value(v, j, h, t, b) - dot)*value(beta, 0, h, t, b);
            for (int64_t i = 0; i < n; i++) {
                m[j*n + i] += value(k, i, hk, t, bk)*delta;
                sum += m[j*n + i]*value(q, i, hk, t, bk)/sqrt((double) n);
            }
            out[((b*tokens + t)*heads + h)*n + j] = sum;
            if (j == n - 1 && tokens - 1 - t < K) for (int64_t i = 0; i < n*n; i++) states[((tokens - 1 - t)*B*heads + b*heads + h)*n*n + i] = m[i];
        }
    }
}
static void test_delta(void) {
    for (int vector = 0; vector < 2; vector++) for (int64_t K = 1; K < 9; K += 3) for (int l = 0; l < 2; l++) {
        struct bench b = bench_new();
        const enum layout rows = l ? WINDOW : PACKED;
        tensor *q = operand(&b, GGML_TYPE_F32, SIZE(S, 2, T, 1), rows),
            *k = operand(&b, GGML_TYPE_F32, SIZE(S, 2, T, 1), rows), *v = operand(&b, GGML_TYPE_F32, SIZE(S, 4, T, 2), rows);
        tensor *g = operand(&b, GGML_TYPE_F32, SIZE(vector ? S : 1, 4, T, 2), PACKED),
            *beta = operand(&b, GGML_TYPE_F32, SIZE(1, 4, T, 2), PACKED), *state = operand(&b, GGML_TYPE_F32, SIZE(S, S, 4, 2), PACKED);
        fill(&b, g, -1, 0), fill(&b, beta, 0, 1), fill(&b, k, -0.3, 0.3);
        tensor *y = ggml_gated_delta_net(b.ctx, q, k, v, g, beta, state, K);
        expect_delta(y);
        expect(&b, y, want, 1e-5, 1e-5, "gated_delta_net");
        bench_free(&b);
    }
}

int main(void) {
    test_ssm();
    test_linear_attention();
    test_delta();
    free(expected);
    return DONE();
}
