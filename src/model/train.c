/* Training: a model's F32 weights change so that its logits foretell the tokens that follow. ggml-opt.h has losses, gradients
 * and steps; here the weights are chosen, and each part of a batch becomes a graph that is handed to it.
 *
 * A point of the data is a text as long as the context. It is read from an empty cache, n_ubatch tokens at a time: those are one
 * graph, whose gradients stop where the cache holds what earlier ones wrote. n_batch tokens make a step of the optimiser. */

#include "model.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

enum { GROWTH = 16 };                           /* of a graph by its backward pass and steps, at most */

struct training {
    ggml_backend_sched_t sched;
    ggml_opt_context_t   opt;
    int32_t              n_batch, n_ubatch;
    llama_token         *tokens, *labels;       /* [n_ctx] of the point at hand */
    int8_t              *outputs;               /* [n_batch] ones */
};

struct pass {
    struct llama_context   *ctx;
    ggml_opt_dataset_t      dataset;
    ggml_opt_result_t       result;
    ggml_opt_epoch_callback callback;           /* or NULL */
    bool                    train;
    int64_t                 done, total;        /* graphs */
    int64_t                 start_us;
};

static bool refuse(const struct llama_context *ctx, const char *why) {
    log_error("%s: no training: %s", model_file_name(ctx->model), why);
    return false;
}

/* ---- the weights ------------------------------------------------------------------------------------------------------- */

bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata) {
    (void) tensor; (void) userdata;
    return true;
}

static int choose(struct ggml_tensor *const *t, const struct llama_model *m, const struct llama_opt_params *p) {
    int n = 0;
    for (int id = 0; id < TENSOR_COUNT; id++) {
        struct ggml_tensor *w = t[id];
        if (!w) continue;
        w->flags &= ~GGML_TENSOR_FLAG_PARAM;
        if (w->type != GGML_TYPE_F32 || w == m->t[TOKEN_EMBD] || id == ROPE_FREQS) continue;
        if (p->param_filter && !p->param_filter(w, p->param_filter_ud)) continue;
        ggml_set_param(w);
        n++;
    }
    return n;
}

static int weights_choose(const struct llama_model *m, const struct llama_opt_params *p) {
    int n = choose(m->t, m, p);
    for (uint32_t il = 0; il < m->h.n_layer; il++) n += choose(m->layers[il].t, m, p);
    return n;
}

/* ---- beginning --------------------------------------------------------------------------------------------------------- */

void training_free(struct training *t) {
    if (!t) return;
    ggml_opt_free(t->opt);
    if (t->sched) ggml_backend_sched_free(t->sched);
    free(t->tokens);
    free(t->labels);
    free(t->outputs);
    free(t);
}

struct steps { uint32_t n_batch, n_ubatch; };   /* tokens of a step of the optimiser, and of a graph */

static struct steps steps_of(const struct llama_context *ctx, uint32_t n_ctx_train) {
    const struct llama_context_params *c = &ctx->params;
    const uint32_t n = c->n_batch < n_ctx_train ? c->n_batch : n_ctx_train;
    return (struct steps) { n, c->n_ubatch < n ? c->n_ubatch : n };
}

static bool can_train(const struct llama_context *ctx, const struct llama_model *m, const struct llama_opt_params *p, uint32_t n_ctx_train) {
    const struct steps s = steps_of(ctx, n_ctx_train);
    if (m != ctx->model)                                   return refuse(ctx, "the context is of another model");
    if ((unsigned) p->optimizer_type >= GGML_OPT_OPTIMIZER_TYPE_COUNT) return refuse(ctx, "no such optimizer");
    if (model_lacks(m))                                    return refuse(ctx, model_lacks(m));
    if (m->bytes_mapped)                                   return refuse(ctx, "its weights are a mapped file (LLAMA_LOAD_MODE_NONE reads them)");
    if (n_ctx_train > INT32_MAX || n_ctx_train % s.n_batch || ctx->params.n_ctx % s.n_batch) return refuse(ctx, "the context is no multiple of n_batch");
    if (s.n_batch % s.n_ubatch) return refuse(ctx, "n_batch is no multiple of n_ubatch");
    return true;
}

static struct training *training_new(const struct llama_context *ctx, const struct llama_opt_params *p, uint32_t n_ctx_train) {
    struct training *t = calloc(1, sizeof *t);
    const struct steps s = steps_of(ctx, n_ctx_train);
    const size_t n = ctx->params.n_ctx;
    if (!t) return NULL;
    t->n_batch  = (int32_t) s.n_batch;
    t->n_ubatch = (int32_t) s.n_ubatch;
    t->tokens   = malloc(n*sizeof *t->tokens);
    t->labels   = malloc(n*sizeof *t->labels);
    t->outputs  = malloc((size_t) t->n_batch);
    if (t->outputs) memset(t->outputs, 1, (size_t) t->n_batch);
    ggml_backend_t backend = ctx->backend;
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(backend);
    t->sched = ggml_backend_sched_new(&backend, &buft, 1, GROWTH*(graph_most_nodes(ctx) + 8), false, false);
    struct ggml_opt_params o = ggml_opt_default_params(t->sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    o.opt_period = t->n_batch/t->n_ubatch;
    o.optimizer  = p->optimizer_type;
    if (p->get_opt_pars) o.get_opt_pars = p->get_opt_pars, o.get_opt_pars_ud = p->get_opt_pars_ud;
    t->opt = t->sched ? ggml_opt_init(o) : NULL;
    if (t->tokens && t->labels && t->outputs && t->opt) return t;
    training_free(t);
    return NULL;
}

void llama_opt_init(struct llama_context *ctx, struct llama_model *model, struct llama_opt_params params) {
    const uint32_t n_ctx_train = params.n_ctx_train ? params.n_ctx_train : ctx->params.n_ctx;
    training_free(ctx->training);
    ctx->training = NULL;
    if (!can_train(ctx, model, &params, n_ctx_train)) return;
    if (!(ctx->training = training_new(ctx, &params, n_ctx_train))) {
        refuse(ctx, "out of memory");
        return;
    }
    char key[GGML_MAX_NAME + 32];
    snprintf(key, sizeof key, "%s.context_length", model->arch->name);
    gguf_set_val_u32(model->parts[0].gguf, key, n_ctx_train);
    model->h.n_ctx_train = n_ctx_train;
    if (!weights_choose(model, &params)) refuse(ctx, "no F32 weight is to be trained");
}

/* ---- a pass ------------------------------------------------------------------------------------------------------------ */

/* A column of probabilities for each token: 1 for the label. */
static void labels_set(struct ggml_tensor *t, const llama_token *labels) {
    memset(t->data, 0, ggml_nbytes(t));
    for (int64_t i = 0; i < t->ne[1]; i++) ((float *) t->data)[i*t->ne[0] + labels[i]] = 1;
}

/* The tokens of the batch from `first` on, n_ubatch of them, which stand `at` in the point. */
static bool part_run(struct pass *p, int32_t first, int32_t at) {
    struct llama_context *ctx = p->ctx;
    const struct training *t = ctx->training;
    const struct graph *g = &ctx->graph;
    struct graph_shape shape = { .n_tokens = t->n_ubatch, .n_outputs = t->n_ubatch, .causal = llama_get_causal_attn(ctx) };
    if (!memory_place(&ctx->memory, &ctx->batch, first, t->n_ubatch)) return refuse(ctx, "no room in the KV cache");
    for (int i = 0; i < KV_CACHES; i++) shape.n_kv[i] = kv_extent(&ctx->memory.cache[i].cells);
    if (!graph_build_training(ctx, &shape)) return refuse(ctx, "out of memory");
    graph_threads(ctx, t->n_ubatch);
    ggml_opt_prepare_alloc(t->opt, g->ctx, g->gf, g->tokens, ggml_graph_node(g->gf, -1));
    ggml_opt_alloc(t->opt, p->train);
    if (!arn_opt_ready(t->opt)) return false;
    graph_inputs(ctx, first);
    labels_set(ggml_opt_labels(t->opt), t->labels + at);
    if (!arn_opt_eval(t->opt, p->result)) return false;
    p->done++;
    if (p->callback) p->callback(p->train, t->opt, p->dataset, p->result, p->done, p->total, p->start_us);
    return true;
}

static bool batch_run(struct pass *p, int32_t at) {
    struct llama_context *ctx = p->ctx;
    const struct training *t = ctx->training;
    const struct llama_batch batch = { .n_tokens = t->n_batch, .token = t->tokens + at, .logits = t->outputs };
    if (!batch_check(ctx, &batch)) return false;
    memory_begin(&ctx->memory);
    for (int32_t i = 0; i < t->n_batch; i += t->n_ubatch) {
        if (!part_run(p, i, at + i)) return false;
    }
    return true;
}

static bool point_run(struct pass *p, int64_t i) {
    struct llama_context *ctx = p->ctx;
    const struct training *t = ctx->training;
    const int32_t n = (int32_t) ctx->params.n_ctx;
    ggml_opt_dataset_get_batch_host(p->dataset, t->tokens, (size_t) n*sizeof *t->tokens, t->labels, i);
    for (int32_t k = 0; k < n; k++) {
        if (t->labels[k] < 0 || (uint32_t) t->labels[k] >= ctx->model->h.n_vocab) return refuse(ctx, "a label is no token of the model");
    }
    llama_memory_clear(&ctx->memory, false);
    for (int32_t at = 0; at < n; at += t->n_batch) {
        if (!batch_run(p, at)) return false;
    }
    return true;
}

static bool points_run(struct pass *p, int64_t from, int64_t to) {
    p->total    = (to - from)*(p->ctx->params.n_ctx/(uint32_t) p->ctx->training->n_ubatch);
    p->start_us = ggml_time_us();
    for (int64_t i = from; i < to; i++) {
        if (!point_run(p, i)) return false;
    }
    return true;
}

static bool data_fits(const struct llama_context *ctx, ggml_opt_dataset_t dataset, int64_t split) {
    const struct ggml_tensor *const t[2] = { ggml_opt_dataset_data(dataset), ggml_opt_dataset_labels(dataset) };
    if (!ctx->training) return refuse(ctx, "it has not been begun (llama_opt_init)");
    for (int i = 0; i < 2; i++) {
        if (!t[i] || t[i]->type != GGML_TYPE_I32 || t[i]->ne[0] != ctx->params.n_ctx)
            return refuse(ctx, "the data are not n_ctx tokens and as many labels a point, both I32");
    }
    return split <= ggml_opt_dataset_ndata(dataset) || refuse(ctx, "the split lies behind the data");
}

void llama_opt_epoch(struct llama_context *ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                     ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                     ggml_opt_epoch_callback callback_eval) {
    if (!data_fits(ctx, dataset, idata_split)) return;
    const int64_t n = ggml_opt_dataset_ndata(dataset), split = idata_split < 0 ? n : idata_split;
    struct pass train = { .ctx = ctx, .dataset = dataset, .result = result_train, .callback = callback_train, .train = true };
    struct pass eval  = { .ctx = ctx, .dataset = dataset, .result = result_eval,  .callback = callback_eval };
    ctx->out.n = 0;
    llama_memory_clear(&ctx->memory, true);     /* gradients multiply by 0 what is masked: it must be finite */
    if (points_run(&train, 0, split)) points_run(&eval, split, n);
    ctx->graph.ready = false;
    llama_memory_clear(&ctx->memory, false);
}
