/* Builders of state-space and linear-attention recurrences and of hyper-connections. S: head size, H: heads, T: tokens,
 * B: sequences. Several of them return the outputs and the new states behind each other in one tensor. */

#include "build.h"

static bool all_f32(tensor *const *t) {
    for (; *t; t++) if ((*t)->type != GGML_TYPE_F32) return false;
    return true;
}
static bool all_packed(tensor *const *t) {
    for (; *t; t++) if (!ggml_is_contiguous(*t)) return false;
    return true;
}
static bool all_same_shape(tensor *const *t) {
    for (; t[1]; t++) if (!ggml_are_same_shape(t[0], t[1])) return false;
    return true;
}

/* ---- state-space models -------------------------------------------------------------------------------------------- */

tensor *ggml_ssm_conv(context *ctx, tensor *sx, tensor *c) {
    if (!sx || !c) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(sx, c)) && ggml_is_3d(sx) && ggml_is_matrix(c), sx, c);
    REQUIRE(__func__, same_ne(sx, 1, c, 1) && c->ne[0] > 0 && sx->ne[0] >= c->ne[0] - 1, sx, c);
    return op_new(ctx, GGML_OP_SSM_CONV, GGML_TYPE_F32, SHAPE(c->ne[1], sx->ne[0] - c->ne[0] + 1, sx->ne[2], 1),
                  SOURCES(sx, c));
}

tensor *ggml_ssm_scan(context *ctx, tensor *s, tensor *x, tensor *dt, tensor *A, tensor *B, tensor *C, tensor *ids,
                      int64_t K) {
    if (!s || !x || !dt || !A || !B || !C || !ids) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(s, x, dt, A, B, C)) && ids->type == GGML_TYPE_I32, s, x, dt, A, B, C, ids);
    REQUIRE(__func__, same_ne(x, 0, s, 1) && same_ne(x, 1, s, 2) && ggml_is_vector(ids), s, x, dt, A, B, C, ids);
    REQUIRE(__func__, same_ne(dt, 0, x, 1) && same_ne(dt, 1, x, 2) && same_ne(dt, 2, x, 3), s, x, dt, A, B, C, ids);
    REQUIRE(__func__, same_ne(A, 1, x, 1) && (A->ne[0] == 1 || same_ne(A, 0, s, 0)), s, x, dt, A, B, C, ids);
    REQUIRE(__func__, ggml_are_same_shape(B, C) && same_ne(B, 0, s, 0) && divides(B->ne[1], x->ne[1]), s, x, dt, A, B, C, ids);
    REQUIRE(__func__, same_ne(B, 2, x, 2) && same_ne(B, 3, x, 3) && same_ne(ids, 0, x, 3), s, x, dt, A, B, C, ids);
    REQUIRE(__func__, K >= 1 && K <= INT32_MAX && (K == 1 || A->ne[0] == 1), s, x, dt, A, B, C, ids);
    const int64_t states = s->ne[0]*s->ne[1]*s->ne[2]*x->ne[3];
    return PARAMS(op_new(ctx, GGML_OP_SSM_SCAN, GGML_TYPE_F32, SHAPE(ggml_nelements(x) + K*states, 1, 1, 1),
                         SOURCES(s, x, dt, A, B, C, ids)), (int32_t) K);
}

/* ---- linear attention: operands [S, H, T], T shared evenly by the sequences of `state` ----------------------------- */

static tensor *linear_attention(const char *call, context *ctx, enum ggml_op op, tensor *k, tensor *state,
                                tensor *const *operands) {
    const int64_t S = k->ne[0], H = k->ne[1], T = k->ne[2], n_seqs = state->ne[1];
    REQUIRE(call, all_f32(operands) && all_packed(operands) && ggml_is_3d(k), k, state);
    REQUIRE(call, ggml_nelements(state) == S*S*H*n_seqs && divides(n_seqs, T), k, state);
    return op_new(ctx, op, GGML_TYPE_F32, SHAPE(S*H, T + S*n_seqs, 1, 1), operands);
}

tensor *ggml_rwkv_wkv6(context *ctx, tensor *k, tensor *v, tensor *r, tensor *tf, tensor *td, tensor *state) {
    if (!k || !v || !r || !tf || !td || !state) return NULL;
    REQUIRE(__func__, all_same_shape(SOURCES(k, v, r, td)), k, v, r, tf, td, state);
    REQUIRE(__func__, ggml_nelements(tf) == k->ne[0]*k->ne[1], k, v, r, tf, td, state);
    return linear_attention(__func__, ctx, GGML_OP_RWKV_WKV6, k, state, SOURCES(k, v, r, tf, td, state));
}
tensor *ggml_gated_linear_attn(context *ctx, tensor *k, tensor *v, tensor *q, tensor *g, tensor *state, float scale) {
    if (!k || !v || !q || !g || !state) return NULL;
    REQUIRE(__func__, all_same_shape(SOURCES(k, v, q, g)), k, v, q, g, state);
    return PARAMS(linear_attention(__func__, ctx, GGML_OP_GATED_LINEAR_ATTN, k, state, SOURCES(k, v, q, g, state)),
                  bits(scale));
}
tensor *ggml_rwkv_wkv7(context *ctx, tensor *r, tensor *w, tensor *k, tensor *v, tensor *a, tensor *b, tensor *state) {
    if (!r || !w || !k || !v || !a || !b || !state) return NULL;
    REQUIRE(__func__, all_same_shape(SOURCES(r, w, k, v, a, b)), r, w, k, v, a, b, state);
    return linear_attention(__func__, ctx, GGML_OP_RWKV_WKV7, k, state, SOURCES(r, w, k, v, a, b, state));
}

tensor *ggml_gated_delta_net(context *ctx, tensor *q, tensor *k, tensor *v, tensor *g, tensor *beta, tensor *state,
                             int64_t K) {
    if (!q || !k || !v || !g || !beta || !state) return NULL;
    const int64_t S = v->ne[0], H = v->ne[1], T = v->ne[2], B = v->ne[3];
    tensor *const *all = SOURCES(q, k, v, g, beta, state);
    REQUIRE(__func__, all_f32(all) && all_packed(SOURCES(g, beta, state)), q, k, v, g, beta, state);
    REQUIRE(__func__, ggml_are_same_shape(q, k) && same_ne(q, 0, v, 0) && same_ne(q, 2, v, 2), q, k, v, g, beta, state);
    REQUIRE(__func__, divides(q->ne[1], H) && divides(q->ne[3], B), q, k, v, g, beta, state);
    REQUIRE(__func__, (g->ne[0] == 1 || g->ne[0] == S) && g->ne[1] == H && g->ne[2] == T && g->ne[3] == B,
            q, k, v, g, beta, state);
    REQUIRE(__func__, beta->ne[0] == 1 && beta->ne[1] == H && beta->ne[2] == T && beta->ne[3] == B, q, k, v, g, beta, state);
    REQUIRE(__func__, ggml_nelements(state) == S*S*H*B && K >= 1 && K <= INT32_MAX, q, k, v, g, beta, state);
    return PARAMS(op_new(ctx, GGML_OP_GATED_DELTA_NET, GGML_TYPE_F32, SHAPE(S*H, T*B + K*S*B, 1, 1), all), (int32_t) K);
}

/* ---- hyper-connections: hc parallel residual streams --------------------------------------------------------------- */

tensor *ggml_dsv4_hc_comb(context *ctx, tensor *mixes, tensor *scale, tensor *base, float eps, int32_t n_iter) {
    if (!mixes || !scale || !base) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(mixes, scale, base)) && ggml_is_matrix(mixes), mixes, scale, base);
    REQUIRE(__func__, mixes->ne[0] == 24 && ggml_nelements(scale) >= 3 && ggml_nelements(base) == 24 && n_iter >= 1,
            mixes, scale, base);
    return PARAMS(op_new(ctx, GGML_OP_DSV4_HC_COMB, GGML_TYPE_F32, SHAPE(4, 4, mixes->ne[1], 1), SOURCES(mixes, scale, base)),
                  bits(eps), n_iter);
}

static tensor *hc_pre(context *ctx, tensor *x, tensor *weights, float scale, bool gated) {
    return PARAMS(op_new(ctx, GGML_OP_DSV4_HC_PRE, GGML_TYPE_F32, SHAPE(x->ne[0], x->ne[2], 1, 1), SOURCES(x, weights)),
                  bits(scale), gated);
}
tensor *ggml_dsv4_hc_pre(context *ctx, tensor *x, tensor *weights) {
    if (!x || !weights) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(x, weights)) && ggml_is_3d(x) && ggml_is_matrix(weights), x, weights);
    REQUIRE(__func__, same_ne(weights, 0, x, 1) && same_ne(weights, 1, x, 2), x, weights);
    return hc_pre(ctx, x, weights, 1.0f, false);
}
tensor *ggml_dsv4_hc_pre_gated(context *ctx, tensor *x, tensor *gate, float scale) {
    if (!x || !gate) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(x, gate)) && ggml_is_3d(x) && ggml_are_same_shape(x, gate), x, gate);
    return hc_pre(ctx, x, gate, scale, true);
}

tensor *ggml_dsv4_hc_post(context *ctx, tensor *x, tensor *residual, tensor *post, tensor *comb) {
    if (!x || !residual || !post) return NULL;
    REQUIRE(__func__, all_f32(SOURCES(x, residual, post, comb)) && ggml_is_3d(residual), x, residual, post, comb);
    REQUIRE(__func__, ggml_is_matrix(x) && same_ne(x, 0, residual, 0) && same_ne(x, 1, residual, 2), x, residual, post, comb);
    REQUIRE(__func__, ggml_is_matrix(post) && same_ne(post, 0, residual, 1) && same_ne(post, 1, residual, 2),
            x, residual, post, comb);
    REQUIRE(__func__, !comb || (same_ne(comb, 0, residual, 1) && same_ne(comb, 1, residual, 1) && same_ne(comb, 2, residual, 2)),
            x, residual, post, comb);
    return op_like(ctx, GGML_OP_DSV4_HC_POST, residual, false, SOURCES(x, residual, post, comb));
}
