/* The pieces that architectures are put together from. Each adds its tensors to the graph being built; a missing operand
 * (the arena is full, or the last layer has no outputs) makes the result NULL, which flows through to the end. */

#include "model.h"

#include <math.h>

/* A result that is kept outside the planned memory, where the caller of llama_decode reads it. */
static struct ggml_tensor *place(struct graph *g, struct ggml_tensor *t, float *at) {
    if (!t || !at || g->training) return t;
    struct output_rows *out = &g->lctx->out;
    if (g->measuring) {     /* only sizes count: more rows than there is room for */
        t->buffer = out->buffer;
        t->data   = at;
        return t;
    }
    return ggml_backend_tensor_alloc(out->buffer, t, at) == GGML_STATUS_SUCCESS ? t : NULL;
}

/* ---- products by weights --------------------------------------------------------------------------------------- */

static struct ggml_tensor *product(struct graph *g, struct ggml_tensor *w, struct ggml_tensor *x, struct ggml_tensor *ids) {
    return ids ? ggml_mul_mat_id(g->ctx, w, x, ids) : ggml_mul_mat(g->ctx, w, x);
}

/* What the context's adapters add to y, the product of weight `id` with x; il < 0: a weight outside layers. The embeddings'
 * x is the tokens, whose rows are looked up. */
static struct ggml_tensor *adapted(struct graph *g, int il, enum tensor_id id, struct ggml_tensor *y, struct ggml_tensor *x,
                                   struct ggml_tensor *ids) {
    for (size_t i = 0; y && i < g->lctx->n_adapters; i++) {
        const struct adapter_use *use = &g->lctx->adapters[i];
        const struct lora_pair *p = adapter_pair(use->adapter, il, id);
        if (!p->a) continue;
        struct ggml_tensor *z = id == TOKEN_EMBD ? ggml_get_rows(g->ctx, p->a, x) : product(g, p->a, x, ids);
        z = product(g, p->b, ggml_scale(g->ctx, z, adapter_scale(use, p)), ids);
        y = g->training ? ggml_add(g->ctx, y, z) : ggml_add_inplace(g->ctx, y, z);
    }
    return y;
}

enum { NO_BIAS = TENSOR_COUNT };

static struct ggml_tensor *linear(struct graph *g, int il, enum tensor_id id, int bias, struct ggml_tensor *x) {
    struct ggml_tensor *const *w = g->model->layers[il].t;
    if (!x) return NULL;
    struct ggml_tensor *y = adapted(g, il, id, ggml_mul_mat(g->ctx, w[id], x), x, NULL);
    return bias != NO_BIAS && w[bias] ? ggml_add(g->ctx, y, w[bias]) : y;
}

/* The experts `ids` [used, n] of x [k, 1 or used, n]. */
static struct ggml_tensor *expert_linear(struct graph *g, int il, enum tensor_id id, struct ggml_tensor *x, struct ggml_tensor *ids) {
    return adapted(g, il, id, ggml_mul_mat_id(g->ctx, g->model->layers[il].t[id], x, ids), x, ids);
}

/* ---- the beginning and what layers share ------------------------------------------------------------------------- */

/* Rows of x that are asked for. */
static struct ggml_tensor *keep_outputs(struct graph *g, struct ggml_tensor *x) {
    if (!x || g->shape.n_outputs == g->shape.n_tokens) return x;
    return g->shape.n_outputs ? ggml_get_rows(g->ctx, x, g->outputs) : NULL;
}

static bool is_last(const struct graph *g, int il) { return il == (int) g->model->h.n_layer - 1; }

struct ggml_tensor *block_input(struct graph *g) {
    const struct hparams *h = &g->model->h;
    if (g->shape.from_embd) return g->embd;
    struct ggml_tensor *x = ggml_get_rows(g->ctx, g->model->t[TOKEN_EMBD], g->tokens);
    x = adapted(g, -1, TOKEN_EMBD, x, g->tokens, NULL);
    return h->embd_scale != 0 ? ggml_scale(g->ctx, x, h->embd_scale) : x;
}

struct ggml_tensor *block_norm(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *weight) {
    if (!x) return NULL;
    return ggml_mul(g->ctx, ggml_rms_norm(g->ctx, x, g->model->h.norm_eps), weight);
}

struct ggml_tensor *block_residual(struct graph *g, int il, struct ggml_tensor *x) {
    return is_last(g, il) ? keep_outputs(g, x) : x;
}

/* ---- attention ------------------------------------------------------------------------------------------------- */

struct ggml_tensor *block_rope(struct graph *g, int il, struct ggml_tensor *x, struct ggml_tensor *pos) {
    const struct hparams *h = &g->model->h;
    const struct rope_numbers *r = &g->lctx->rope;
    const bool local = h->swa[il] && h->rope_base_swa > 0;
    return ggml_rope_ext(g->ctx, x, pos, g->model->t[ROPE_FREQS], (int) h->n_rot, g->model->arch->rope, r->n_ctx_orig,
                         local ? h->rope_base_swa : g->lctx->params.rope_freq_base, local ? 1.0f : r->scale,
                         r->ext_factor, r->attn_factor, r->beta_fast, r->beta_slow);
}

/* [head size, heads, n_tokens] of a projection, normalised per head if the layer has a weight for it. */
static struct ggml_tensor *heads(struct graph *g, struct ggml_tensor *x, int64_t size, int64_t n,
                                 struct ggml_tensor *norm) {
    if (!x) return NULL;
    x = ggml_reshape_3d(g->ctx, x, size, n, g->shape.n_tokens);
    return norm ? block_norm(g, x, norm) : x;
}

/* Writes x [head size, heads, n_tokens] to the batch's cells; what attention then reads is [head size, n_kv, heads]. */
static struct ggml_tensor *cached(struct graph *g, struct ggml_tensor *cache, struct ggml_tensor *x,
                                  const struct cache_input *in) {
    if (!x) return NULL;
    struct ggml_tensor *all = ggml_set_rows(g->ctx, cache, ggml_permute(g->ctx, x, 0, 2, 1, 3), in->slots);
    if (!all) return NULL;
    ggml_build_forward_expand(g->gf, all);
    return ggml_view_3d(g->ctx, all, cache->ne[0], in->n_kv, cache->ne[2], cache->nb[1], cache->nb[2], 0);
}

/* Lists what has been made so far, before one of them goes on: what projections have in common, their input and later the
 * angles of their rotations, is then prepared once. */
static void side_by_side(struct graph *g, int il, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v) {
    if (!q || !k || !v) return;
    if (!is_last(g, il) || g->shape.n_outputs) ggml_build_forward_expand(g->gf, q);
    ggml_build_forward_expand(g->gf, k);
    ggml_build_forward_expand(g->gf, v);
}

struct ggml_tensor *block_attention(struct graph *g, int il, struct ggml_tensor *x) {
    if (!x) return NULL;
    const struct hparams *h = &g->model->h;
    struct ggml_tensor *const *w = g->model->layers[il].t;
    const struct kv_cache *kv = memory_cache(&g->lctx->memory, g->model, il);
    const struct cache_input *in = &g->cache[kv - g->lctx->memory.cache];
    const int64_t n_head = h->n_head[il], n_head_kv = h->n_head_kv[il];

    struct ggml_tensor *q = linear(g, il, ATTN_Q, ATTN_Q_BIAS, x), *k = linear(g, il, ATTN_K, ATTN_K_BIAS, x);
    struct ggml_tensor *v = linear(g, il, ATTN_V, ATTN_V_BIAS, x);
    side_by_side(g, il, q, k, v);
    q = heads(g, q, h->n_head_k, n_head,    w[ATTN_Q_NORM]);
    k = heads(g, k, h->n_head_k, n_head_kv, w[ATTN_K_NORM]);
    v = heads(g, v, h->n_head_v, n_head_kv, NULL);
    side_by_side(g, il, q, k, v);
    k = cached(g, kv->k[il], block_rope(g, il, k, g->pos), in);
    v = cached(g, kv->v[il], v, in);
    if (is_last(g, il) && !g->shape.n_outputs) return NULL;

    q = ggml_permute(g->ctx, block_rope(g, il, q, g->pos), 0, 2, 1, 3);
    const float scale = h->attn_scale != 0 ? h->attn_scale : 1/sqrtf((float) h->n_head_k);
    struct ggml_tensor *y = ggml_flash_attn_ext(g->ctx, q, k, v, in->mask, scale, 0, h->attn_softcap);
    if (!y) return NULL;
    y = ggml_reshape_2d(g->ctx, y, h->n_head_v*n_head, g->shape.n_tokens);
    return linear(g, il, ATTN_OUT, ATTN_OUT_BIAS, is_last(g, il) ? keep_outputs(g, y) : y);
}

/* ---- feed-forward ---------------------------------------------------------------------------------------------- */

/* The sum over experts of y [n_embd, n_used, n], in the order of their scores. */
static struct ggml_tensor *expert_sum(struct graph *g, struct ggml_tensor *y) {
    if (!y) return NULL;
    struct ggml_tensor *sum = NULL;
    for (int64_t i = 0; i < y->ne[1]; i++) {
        struct ggml_tensor *part = ggml_view_2d(g->ctx, y, y->ne[0], y->ne[2], y->nb[2], (size_t) i*y->nb[1]);
        sum = sum ? ggml_add(g->ctx, sum, part) : part;
    }
    return y->ne[1] == 1 ? ggml_cont(g->ctx, sum) : sum;
}

/* The experts_used best by softmax of the router, weighted by their share of the chosen ones' probability. */
static struct ggml_tensor *experts(struct graph *g, int il, struct ggml_tensor *x, enum ggml_glu_op act) {
    const struct hparams *h = &g->model->h;
    const int64_t n = x->ne[1], used = h->n_expert_used;
    struct ggml_context *ctx = g->ctx;
    struct ggml_tensor *probs = ggml_soft_max(ctx, linear(g, il, FFN_ROUTER, NO_BIAS, x));    /* [n_expert, n] */
    struct ggml_tensor *ids   = ggml_argsort_top_k(ctx, probs, (int) used);                         /* [used, n] */
    if (!ids) return NULL;
    struct ggml_tensor *share = ggml_get_rows(ctx, ggml_reshape_3d(ctx, probs, 1, h->n_expert, n), ids);
    if (!share) return NULL;
    share = ggml_reshape_2d(ctx, share, used, n);
    share = ggml_div(ctx, share, ggml_sum_rows(ctx, share));
    x = ggml_reshape_3d(ctx, x, x->ne[0], 1, n);
    struct ggml_tensor *y = ggml_glu_split(ctx, expert_linear(g, il, FFN_GATE_EXPERTS, x, ids),
                                                expert_linear(g, il, FFN_UP_EXPERTS,   x, ids), act);
    y = expert_linear(g, il, FFN_DOWN_EXPERTS, y, ids);                                             /* [n_embd, used, n] */
    return expert_sum(g, ggml_mul(ctx, y, ggml_reshape_3d(ctx, share, 1, used, n)));
}

struct ggml_tensor *block_ffn(struct graph *g, int il, struct ggml_tensor *x, enum ggml_glu_op act) {
    if (!x) return NULL;
    if (g->model->layers[il].t[FFN_ROUTER]) return experts(g, il, x, act);
    struct ggml_tensor *y = ggml_glu_split(g->ctx, linear(g, il, FFN_GATE, FFN_GATE_BIAS, x),
                                                   linear(g, il, FFN_UP,   FFN_UP_BIAS,   x), act);
    return linear(g, il, FFN_DOWN, FFN_DOWN_BIAS, y);
}

/* ---- the end of a layer ------------------------------------------------------------------------------------------ */

struct ggml_tensor *block_control(struct graph *g, int il, struct ggml_tensor *x) {
    const struct control *c = &g->lctx->control;
    const int64_t n = g->model->h.n_embd;
    if (!x || il < c->begin || il >= c->end) return x;
    struct ggml_tensor *v = ggml_new_tensor_1d(g->ctx, GGML_TYPE_F32, n);
    if (!v || ggml_backend_tensor_alloc(c->buffer, v, c->data + (il - 1)*n) != GGML_STATUS_SUCCESS) return NULL;
    return ggml_add(g->ctx, x, v);
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

struct ggml_tensor *block_output(struct graph *g, struct ggml_tensor *x) {
    const struct hparams *h = &g->model->h;
    const struct output_rows *out = &g->lctx->out;
    const int64_t row = g->shape.first_output;
    x = block_norm(g, x, g->model->t[OUTPUT_NORM]);
    if (g->shape.embeddings) x = place(g, x, out->embd + row*h->n_embd);
    if (!x) return NULL;
    struct ggml_tensor *normed = x;
    x = place(g, ggml_mul_mat(g->ctx, g->model->t[OUTPUT], normed), out->logits + row*h->n_vocab);
    x = adapted(g, -1, OUTPUT, x, normed, NULL);
    if (!x || h->final_softcap == 0) return x;
    if (g->training) return ggml_scale(g->ctx, ggml_tanh(g->ctx, ggml_scale(g->ctx, x, 1/h->final_softcap)), h->final_softcap);
    x = ggml_tanh_inplace(g->ctx, ggml_scale_inplace(g->ctx, x, 1/h->final_softcap));
    return ggml_scale_inplace(g->ctx, x, h->final_softcap);
}
