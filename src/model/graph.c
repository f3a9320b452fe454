/* Graphs of a context: built in an arena that is emptied and filled again, placed by the scheduler, reused while their
 * shape repeats.
 *
 * The worst case is reserved when the context is made; afterwards building, placing and computing a graph allocates
 * nothing. Generation repeats one shape for KV_STEP tokens and so mostly only fills inputs and computes. */

#include "model.h"

#include "log.h"

#include <math.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------------------------- */

enum { NODES_PER_PAIR = 4 };                    /* of an adapter: two products, a scale, a sum */

size_t graph_most_nodes(const struct llama_context *ctx) {
    const struct hparams *h = &ctx->model->h;
    size_t n = 64 + (size_t) h->n_layer*(64 + 2*(size_t) h->n_expert_used);
    for (size_t i = 0; i < ctx->n_adapters; i++) n += NODES_PER_PAIR*ctx->adapters[i].adapter->n_pairs;
    return n;
}

static struct ggml_tensor *input(struct graph *g, enum ggml_type type, int64_t ne0, int64_t ne1, const char *name) {
    struct ggml_tensor *t = ggml_new_tensor_2d(g->ctx, type, ne0, ne1);
    if (!t) return NULL;
    ggml_set_input(t);
    return ggml_set_name(t, name);
}

static bool inputs(struct graph *g) {
    const int64_t n = g->shape.n_tokens;
    g->tokens  = g->shape.from_embd ? NULL : input(g, GGML_TYPE_I32, n, 1, "tokens");
    g->embd    = g->shape.from_embd ? input(g, GGML_TYPE_F32, g->model->h.n_embd, n, "embeddings") : NULL;
    g->pos     = input(g, GGML_TYPE_I32, n, 1, "positions");
    g->outputs = input(g, GGML_TYPE_I32, g->shape.n_outputs, 1, "outputs");
    for (int i = 0; i < KV_CACHES; i++) {
        struct cache_input *in = &g->cache[i];
        *in = (struct cache_input) { .n_kv = g->shape.n_kv[i] };
        if (!in->n_kv) continue;
        in->slots = input(g, GGML_TYPE_I64, n, 1,        i == KV_SLIDING ? "slots of the window" : "slots");
        in->mask  = input(g, GGML_TYPE_F16, in->n_kv, n, i == KV_SLIDING ? "mask of the window"  : "mask");
        if (!in->slots || !in->mask) return false;
    }
    return (g->tokens || g->embd) && g->pos && g->outputs;
}

static bool start(struct graph *g) {
    g->ready = false;
    ggml_reset(g->ctx);
    g->gf = ggml_new_graph_custom(g->ctx, graph_most_nodes(g->lctx), false);
    return g->gf != NULL;
}

static bool build(struct graph *g, const struct graph_shape *shape) {
    g->shape = *shape;
    if (!start(g) || !inputs(g)) return false;
    struct ggml_tensor *result = g->model->arch->build(g);
    if (result) ggml_build_forward_expand(g->gf, result);
    return result || !shape->n_outputs;
}

bool graph_build_training(struct llama_context *ctx, const struct graph_shape *shape) {
    ctx->graph.training = true;
    const bool built = build(&ctx->graph, shape);
    ctx->graph.training = false;
    return built;
}

static bool same_shape(const struct graph_shape *a, const struct graph_shape *b) {
    return a->n_tokens == b->n_tokens && a->n_outputs == b->n_outputs && a->first_output == b->first_output &&
           a->n_kv[KV_FULL] == b->n_kv[KV_FULL] && a->n_kv[KV_SLIDING] == b->n_kv[KV_SLIDING] &&
           a->from_embd == b->from_embd && a->embeddings == b->embeddings;
}

bool graph_prepare(struct llama_context *ctx, const struct graph_shape *shape) {
    struct graph *g = &ctx->graph;
    if (g->ready && same_shape(&g->shape, shape)) {
        g->shape = *shape;
        ctx->perf.n_reused++;
        return true;
    }
    if (!build(g, shape)) return false;
    ggml_backend_sched_reset(ctx->sched);
    g->ready = ggml_backend_sched_alloc_graph(ctx->sched, g->gf);
    return g->ready;
}

/* ---- the worst case -------------------------------------------------------------------------------------------- */

static bool is_computed(const struct ggml_tensor *t) {
    return t->op != GGML_OP_NONE && t->op != GGML_OP_RESHAPE && t->op != GGML_OP_VIEW && t->op != GGML_OP_PERMUTE &&
           t->op != GGML_OP_TRANSPOSE;
}

static bool is_supported(struct llama_context *ctx) {
    struct ggml_cgraph *gf = ctx->graph.gf;
    for (int i = 0; i < ggml_graph_n_nodes(gf); i++) {
        const struct ggml_tensor *t = ggml_graph_node(gf, i);
        if (!is_computed(t) || ggml_backend_supports_op(ctx->backend, t)) continue;
        log_error("%s: the device cannot compute %s of types %s and %s", model_file_name(ctx->model), ggml_op_desc(t),
                  ggml_type_name(t->src[0]->type), t->src[1] ? ggml_type_name(t->src[1]->type) : "none");
        return false;
    }
    return true;
}

static bool build_worst(struct llama_context *ctx, int64_t n_tokens, int64_t n_outputs) {
    struct graph *g = &ctx->graph;
    struct graph_shape shape = { .n_tokens = n_tokens, .n_outputs = n_outputs, .embeddings = ctx->params.embeddings };
    for (int i = 0; i < KV_CACHES; i++) shape.n_kv[i] = ctx->memory.cache[i].n;
    g->measuring = true;
    const bool built = build(g, &shape);
    g->measuring = false;
    return built;
}

/* Activations of the graph: there, or counted alone. */
static bool plan(struct llama_context *ctx) {
    size_t bytes = 0;
    if (ctx->model->no_alloc) ggml_backend_sched_reserve_size(ctx->sched, ctx->graph.gf, &bytes);
    else if (ggml_backend_sched_reserve(ctx->sched, ctx->graph.gf)) bytes = ggml_backend_sched_get_buffer_size(ctx->sched, ctx->backend);
    if (bytes > ctx->activations) ctx->activations = bytes;
    return bytes > 0;
}

static bool reserve(struct llama_context *ctx, int64_t n_tokens, int64_t n_outputs) {
    const bool built = build_worst(ctx, n_tokens, n_outputs);
    if (built && !is_supported(ctx)) return false;
    if (built && plan(ctx)) return true;
    log_error("%s: no memory to compute batches of %lld tokens", model_file_name(ctx->model), (long long) n_tokens);
    return false;
}

bool graph_reserve(struct llama_context *ctx) {
    const int64_t n = ctx->params.n_ubatch;
    size_t peak;
    ctx->activations = 0;
    if (!reserve(ctx, 1, 1) || !reserve(ctx, n, n) || !reserve(ctx, n, 1)) return false;
    ctx->scratch = arn_cpu_scratch_size(ctx->graph.gf, ctx->params.n_threads_batch);
    arn_gallocr_quality(arn_sched_gallocr(ctx->sched), 0, &peak, &ctx->lower_bound);
    return true;
}

bool graph_place(struct llama_context *ctx, int64_t n_tokens) {
    if (n_tokens < 1 || n_tokens > ctx->params.n_ubatch) {
        log_error("%s: a step computes 1 to %u tokens, not %lld", model_file_name(ctx->model), ctx->params.n_ubatch, (long long) n_tokens);
        return false;
    }
    if (!build_worst(ctx, n_tokens, 1)) return false;
    ggml_backend_sched_reset(ctx->sched);
    return ggml_backend_sched_alloc_graph(ctx->sched, ctx->graph.gf);
}

bool graph_init(struct llama_context *ctx) {
    struct graph *g = &ctx->graph;
    const size_t n = graph_most_nodes(ctx);
    g->lctx  = ctx;
    g->model = ctx->model;
    g->ctx   = ggml_init((struct ggml_init_params) {
        n*ggml_tensor_overhead() + ggml_graph_overhead_custom(n, false), NULL, true });
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(ctx->backend);
    ctx->sched = g->ctx ? ggml_backend_sched_new(&ctx->backend, &buft, 1, 2*n, false, false) : NULL;
    if (!ctx->sched) {
        log_error("%s: out of memory for the graph", model_file_name(ctx->model));
        return false;
    }
    ggml_backend_sched_set_eval_callback(ctx->sched, ctx->params.cb_eval, ctx->params.cb_eval_user_data);
    return graph_reserve(ctx);
}

void graph_release(struct llama_context *ctx) {
    if (ctx->sched) ggml_backend_sched_free(ctx->sched);
    ggml_free(ctx->graph.ctx);
}

bool graph_replan(struct llama_context *ctx) {
    struct llama_context before = *ctx;
    ctx->graph = (struct graph) { 0 };
    ctx->sched = NULL;
    const bool ok = graph_init(ctx);
    graph_release(ok ? &before : ctx);
    if (!ok) *ctx = before;
    return ok;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static void set(struct ggml_tensor *t, const void *data) {
    if (t && t->buffer) ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
}

static void set_cache(struct llama_context *ctx, int which, int32_t first) {
    struct cache_input *in = &ctx->graph.cache[which];
    const struct kv_cache *kv = &ctx->memory.cache[which];
    const int32_t n = (int32_t) ctx->graph.shape.n_tokens;
    if (!in->n_kv) return;
    for (int32_t i = 0; in->slots->buffer && i < n; i++) ((int64_t *) in->slots->data)[i] = kv->taken[first + i].cell;
    if (in->mask->buffer) kv_mask(&kv->cells, &ctx->batch, first, n, in->n_kv, ctx->graph.shape.causal, in->mask->data);
}

static void set_outputs(struct llama_context *ctx, int32_t first) {
    const struct graph *g = &ctx->graph;
    if (!g->outputs->buffer) return;
    int32_t *rows = g->outputs->data, n = 0;
    for (int32_t i = 0; i < g->shape.n_tokens; i++) {
        if (ctx->batch.output[first + i]) rows[n++] = i;
    }
}

/* Inputs are host memory of the CPU device and are filled where they lie. */
void graph_inputs(struct llama_context *ctx, int32_t first) {
    struct graph *g = &ctx->graph;
    const struct token_list *b = &ctx->batch;
    if (b->token) set(g->tokens, b->token + first);
    else          set(g->embd, b->embd + (size_t) first*g->model->h.n_embd);
    set(g->pos, b->pos + first);
    set_outputs(ctx, first);
    for (int i = 0; i < KV_CACHES; i++) set_cache(ctx, i, first);
}

void graph_threads(struct llama_context *ctx, int64_t n_tokens) {
    const bool one = n_tokens == 1;
    ggml_threadpool_t pool = one ? ctx->pool : ctx->pool_batch;
    if (pool) ggml_backend_cpu_set_threadpool(ctx->backend, pool);
    ggml_backend_cpu_set_n_threads(ctx->backend, one ? ctx->params.n_threads : ctx->params.n_threads_batch);
}

static enum ggml_status compute(struct llama_context *ctx) {
    graph_threads(ctx, ctx->graph.shape.n_tokens);
    return ggml_backend_sched_graph_compute(ctx->sched, ctx->graph.gf);
}

enum ggml_status graph_run(struct llama_context *ctx, int32_t first) {
    graph_inputs(ctx, first);
    return compute(ctx);
}

/* ---- shifts ---------------------------------------------------------------------------------------------------- */

struct shift_inputs { struct ggml_tensor *rows, *delta, *slots; };

/* Keys of n cells: read as [head size, heads, n] of F32, rotated by delta, written back. */
static bool build_shift(struct llama_context *ctx, int il, struct ggml_tensor *k, int64_t n, struct shift_inputs *in) {
    struct graph *g = &ctx->graph;
    if (!start(g)) return false;
    const int64_t size = k->ne[0], heads = k->ne[2];
    in->rows  = input(g, GGML_TYPE_I32, heads*n, 1, "rows");
    in->delta = input(g, GGML_TYPE_I32, n, 1, "shifts");
    in->slots = input(g, GGML_TYPE_I64, n, 1, "slots");
    if (!in->rows || !in->delta || !in->slots) return false;
    struct ggml_tensor *x = ggml_get_rows(g->ctx, ggml_reshape_2d(g->ctx, k, size, k->ne[1]*heads), in->rows);
    if (!x) return false;
    x = block_rope(g, il, ggml_reshape_3d(g->ctx, x, size, heads, n), in->delta);
    x = ggml_set_rows(g->ctx, k, ggml_permute(g->ctx, x, 0, 2, 1, 3), in->slots);
    if (!x) return false;
    ggml_build_forward_expand(g->gf, x);
    ggml_backend_sched_reset(ctx->sched);
    return ggml_backend_sched_alloc_graph(ctx->sched, g->gf);
}

static bool shift_layer(struct llama_context *ctx, int il, struct ggml_tensor *k, const struct kv_cells *c,
                        const int64_t *cells, int64_t n) {
    struct shift_inputs in;
    if (!build_shift(ctx, il, k, n, &in)) return false;
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *) in.slots->data)[i] = cells[i];
        ((int32_t *) in.delta->data)[i] = c->shift[cells[i]];
        for (int64_t h = 0; h < k->ne[2]; h++) {
            ((int32_t *) in.rows->data)[i*k->ne[2] + h] = (int32_t) (h*k->ne[1] + cells[i]);
        }
    }
    return compute(ctx) == GGML_STATUS_SUCCESS;
}

static bool shift_cells(struct llama_context *ctx, struct kv_cache *kv, const int64_t *cells, int64_t n) {
    for (int il = 0; il < (int) ctx->model->h.n_layer; il++) {
        if (kv->k[il] && !shift_layer(ctx, il, kv->k[il], &kv->cells, cells, n)) return false;
    }
    for (int64_t i = 0; i < n; i++) kv->cells.shift[cells[i]] = 0;
    return true;
}

static bool shift_cache(struct llama_context *ctx, struct kv_cache *kv) {
    int64_t cells[64], n = 0;
    for (int64_t i = 0; i < kv->cells.n; i++) {
        if (kv->cells.shift[i]) cells[n++] = i;
        if (n == 64 && !shift_cells(ctx, kv, cells, n)) return false;
        n %= 64;
    }
    return !n || shift_cells(ctx, kv, cells, n);
}

/* A rotation by delta must not scale again: the factor that YaRN applies is divided out. */
bool graph_shift(struct llama_context *ctx) {
    const struct rope_numbers whole = ctx->rope;
    ctx->rope.attn_factor = whole.ext_factor != 0 ? 1/(1 + 0.1f*logf(1/whole.scale)) : 1;
    bool ok = true;
    for (int i = 0; ok && i < KV_CACHES; i++) {
        if (ctx->memory.cache[i].cells.n) ok = shift_cache(ctx, &ctx->memory.cache[i]);
    }
    ctx->rope = whole;
    ctx->graph.ready = false;
    if (ok) ctx->memory.shifted = false;
    return ok;
}
