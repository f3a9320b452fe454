#ifndef TRANSFORMER_H
#define TRANSFORMER_H
/* The graph of a decoder as model libraries build it: weights and cache in memory of their own, everything else for the
 * planner to place. Only the interface is used. */

#include "ggml.h"

struct shape {
    int64_t n_embd, n_ff, n_head, n_head_kv, n_vocab, n_layer, n_kv;
    bool flash;             /* fused attention, or scores as a tensor */
    bool gemma;             /* norms behind attention and feed-forward, norms of q and k */
};

static char elsewhere[64];  /* an address for tensors that have one; nothing is computed */

static struct ggml_tensor *weight(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1) {
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, type, ne0, ne1);
    t->data = elsewhere;
    return t;
}

static struct ggml_tensor *norm(struct ggml_context *ctx, struct ggml_tensor *x) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f), weight(ctx, GGML_TYPE_F32, x->ne[0], 1));
}

static struct ggml_cgraph *decoder(struct ggml_context *ctx, const struct shape *s, int64_t n_tokens, bool all_logits) {
    const int64_t head = s->n_embd/s->n_head, n_kv_embd = head*s->n_head_kv;
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8192, false);
    struct ggml_tensor *tokens = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens);
    struct ggml_tensor *pos    = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_tokens);
    struct ggml_tensor *rows   = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, n_tokens);
    struct ggml_tensor *mask   = ggml_new_tensor_2d(ctx, s->flash ? GGML_TYPE_F16 : GGML_TYPE_F32, s->n_kv, n_tokens);
    struct ggml_tensor *outs   = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, all_logits ? n_tokens : 1);
    struct ggml_tensor *const inputs[] = { tokens, pos, rows, mask, outs };
    for (int i = 0; i < 5; i++) ggml_set_input(inputs[i]);
    struct ggml_tensor *x = ggml_get_rows(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_vocab), tokens);
    if (s->gemma) x = ggml_scale(ctx, x, 25.0f);
    for (int l = 0; l < s->n_layer; l++) {
        struct ggml_tensor *residual = x, *cur = norm(ctx, x);
        struct ggml_tensor *q = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_embd), cur);
        struct ggml_tensor *k = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, n_kv_embd), cur);
        struct ggml_tensor *v = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, n_kv_embd), cur);
        q = ggml_reshape_3d(ctx, q, head, s->n_head, n_tokens);
        k = ggml_reshape_3d(ctx, k, head, s->n_head_kv, n_tokens);
        if (s->gemma) { q = norm(ctx, q); k = norm(ctx, k); }
        q = ggml_rope(ctx, q, pos, (int) head, GGML_ROPE_TYPE_NEOX);
        k = ggml_rope(ctx, k, pos, (int) head, GGML_ROPE_TYPE_NEOX);
        struct ggml_tensor *k_cache = weight(ctx, GGML_TYPE_F16, n_kv_embd, s->n_kv);
        struct ggml_tensor *v_cache = weight(ctx, GGML_TYPE_F16, n_kv_embd, s->n_kv);
        ggml_build_forward_expand(g, q);
        ggml_build_forward_expand(g, v);
        ggml_build_forward_expand(g, k);
        ggml_build_forward_expand(g, ggml_set_rows(ctx, k_cache, ggml_reshape_2d(ctx, k, n_kv_embd, n_tokens), rows));
        ggml_build_forward_expand(g, ggml_set_rows(ctx, v_cache, v, rows));
        q = ggml_permute(ctx, q, 0, 2, 1, 3);
        k = ggml_permute(ctx, ggml_reshape_3d(ctx, k_cache, head, s->n_head_kv, s->n_kv), 0, 2, 1, 3);
        v = ggml_permute(ctx, ggml_reshape_3d(ctx, v_cache, head, s->n_head_kv, s->n_kv), 0, 2, 1, 3);
        if (s->flash) {
            cur = ggml_flash_attn_ext(ctx, q, k, v, mask, 0.125f, 0.0f, 0.0f);
        } else {
            struct ggml_tensor *scores = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, k, q), mask, 0.125f, 0.0f);
            cur = ggml_mul_mat(ctx, ggml_cont(ctx, ggml_transpose(ctx, v)), scores);
            cur = ggml_cont(ctx, ggml_permute(ctx, cur, 0, 2, 1, 3));
        }
        cur = ggml_reshape_2d(ctx, cur, s->n_embd, n_tokens);
        cur = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_embd), cur);
        if (l == s->n_layer - 1) { cur = ggml_get_rows(ctx, cur, outs); residual = ggml_get_rows(ctx, residual, outs); }
        if (s->gemma) cur = norm(ctx, cur);
        struct ggml_tensor *middle = ggml_add(ctx, cur, residual);
        cur = norm(ctx, middle);
        struct ggml_tensor *up   = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_ff), cur);
        struct ggml_tensor *gate = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_ff), cur);
        cur = s->gemma ? ggml_geglu_split(ctx, gate, up) : ggml_swiglu_split(ctx, gate, up);
        cur = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_ff, s->n_embd), cur);
        if (s->gemma) cur = norm(ctx, cur);
        x = ggml_add(ctx, cur, middle);
    }
    x = ggml_mul_mat(ctx, weight(ctx, GGML_TYPE_F16, s->n_embd, s->n_vocab), norm(ctx, x));
    ggml_set_output(x);
    ggml_build_forward_expand(g, x);
    return g;
}

static const struct shape llama_135m = { 576, 1536, 9, 3, 49152, 30, 2048, true, false };
static const struct shape gemma_270m = { 640, 2048, 4, 1, 262144, 18, 2048, true, true };
static const struct shape llama_7b   = { 4096, 11008, 32, 32, 32000, 32, 4096, true, false };

#endif
