/* A context: a model, a memory, a planned graph and the rows that results go to. Everything it will need is allocated when
 * it is made; the output rows alone may grow later, when a batch asks for more of them than any before. */

#include "model.h"

#include "log.h"
#include "vocab.h"

#include <math.h>
#include <stdlib.h>

/* ---- parameters ------------------------------------------------------------------------------------------------ */

enum { MOST_CTX = INT32_MAX - KV_STEP };        /* positions are an int32_t, and the cells are padded */

static uint32_t padded(uint32_t n, uint32_t step) { return n > UINT32_MAX - step ? n/step*step : (n + step - 1)/step*step; }

/* Fills in what was left open and brings the rest into range. */
static void params_resolve(struct llama_context_params *p, const struct hparams *h) {
    if (!p->n_ctx)     p->n_ctx = h->n_ctx_train < MOST_CTX ? h->n_ctx_train : MOST_CTX;
    p->n_ctx = padded(p->n_ctx ? p->n_ctx : 1, KV_STEP);
    if (!p->n_seq_max) p->n_seq_max = 1;
    if (!p->n_batch)   p->n_batch = 1;
    if (p->n_batch > p->n_ctx) p->n_batch = p->n_ctx;
    if (!p->n_ubatch || p->n_ubatch > p->n_batch) p->n_ubatch = p->n_batch;
    if (!p->n_outputs_max) p->n_outputs_max = p->n_seq_max;
    if (p->n_outputs_max > p->n_batch) p->n_outputs_max = p->n_batch;
    if (p->n_threads <= 0)       p->n_threads = arn_cpu_default_threads();
    if (p->n_threads_batch <= 0) p->n_threads_batch = p->n_threads;
    if (p->n_threads > GGML_MAX_N_THREADS)       p->n_threads = GGML_MAX_N_THREADS;
    if (p->n_threads_batch > GGML_MAX_N_THREADS) p->n_threads_batch = GGML_MAX_N_THREADS;
    if (p->pooling_type == LLAMA_POOLING_TYPE_UNSPECIFIED) p->pooling_type = (enum llama_pooling_type) h->pooling;
    if (p->attention_type == LLAMA_ATTENTION_TYPE_UNSPECIFIED) {
        p->attention_type = h->causal ? LLAMA_ATTENTION_TYPE_CAUSAL : LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    }
    if (p->rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED) {
        p->rope_scaling_type = (enum llama_rope_scaling_type) h->rope_scaling;
    }
    if (!(p->rope_freq_base > 0))   p->rope_freq_base = h->rope_base;
    if (!(p->rope_freq_scale > 0))  p->rope_freq_scale = h->rope_factor > 0 ? 1/h->rope_factor : 1;
    if (p->rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_NONE) p->rope_freq_scale = 1;
    if (!(p->yarn_ext_factor >= 0)) p->yarn_ext_factor = h->yarn_ext_factor;
    if (p->yarn_ext_factor < 0)     p->yarn_ext_factor = p->rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_YARN ? 1 : 0;
    if (!(p->yarn_attn_factor > 0)) p->yarn_attn_factor = h->yarn_attn_factor;
    if (!(p->yarn_beta_fast >= 0))  p->yarn_beta_fast = h->yarn_beta_fast;
    if (!(p->yarn_beta_slow >= 0))  p->yarn_beta_slow = h->yarn_beta_slow;
    if (!p->yarn_orig_ctx)          p->yarn_orig_ctx = h->n_ctx_orig;
}

static struct rope_numbers rope_numbers(const struct llama_context_params *p, const struct hparams *h) {
    return (struct rope_numbers) {
        .n_ctx_orig = (int) p->yarn_orig_ctx, .scale = p->rope_freq_scale, .ext_factor = p->yarn_ext_factor,
        .attn_factor = p->yarn_attn_factor*h->rope_attn_factor, .beta_fast = p->yarn_beta_fast, .beta_slow = p->yarn_beta_slow,
    };
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static bool refuse(const struct llama_model *m, const char *why) {
    log_error("%s: no context: %s", m ? model_file_name(m) : "model", why);
    return false;
}

static bool params_usable(const struct llama_model *m, const struct llama_context_params *p) {
    if (!m)                                             return refuse(m, "no model");
    if (p->n_seq_max > MAX_SEQUENCES)                   return refuse(m, "more than 64 sequences");
    if (p->n_ctx > MOST_CTX)                            return refuse(m, "n_ctx is too large");
    if (p->pooling_type == LLAMA_POOLING_TYPE_RANK)     return refuse(m, "the model has no ranking head");
    if (p->ctx_type != LLAMA_CONTEXT_TYPE_DEFAULT)      return refuse(m, "the model predicts one token at a time");
    if (p->rope_scaling_type == LLAMA_ROPE_SCALING_TYPE_LONGROPE) return refuse(m, "longrope scaling is not supported");
    return true;
}

static bool fill(struct llama_context *ctx, struct llama_context_params params) {
    const struct llama_model *m = ctx->model;
    params_resolve(&params, &m->h);
    if (params.embeddings && params.pooling_type == LLAMA_POOLING_TYPE_RANK) return refuse(m, "it ranks, and its head is not supported");
    ctx->params = params;
    ctx->rope   = rope_numbers(&params, &m->h);
    if (!(ctx->backend = ggml_backend_dev_init(m->device, NULL))) return refuse(m, "the device does not start");
    ggml_backend_cpu_set_abort_callback(ctx->backend, params.abort_callback, params.abort_callback_data);
    ggml_backend_cpu_set_n_threads(ctx->backend, params.n_threads_batch);
    if (params.embeddings && params.pooling_type != LLAMA_POOLING_TYPE_NONE) {
        ctx->seq_embd = malloc((size_t) m->h.n_embd*MAX_SEQUENCES*sizeof *ctx->seq_embd);
        if (!ctx->seq_embd) return refuse(m, "out of memory");
    }
    if (!memory_init(&ctx->memory, m, &params))                        return false;
    if (!batch_reserve(&ctx->batch, (int32_t) params.n_batch))         return refuse(m, "out of memory");
    if (m->vocab_only)                                                 return true;
    if (!outputs_reserve(ctx, (int32_t) params.n_outputs_max))         return false;
    return graph_init(ctx);
}

struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params) {
    if (!params_usable(model, &params)) return NULL;
    struct llama_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        refuse(model, "out of memory");
        return NULL;
    }
    ctx->model    = model;
    ctx->start_us = ggml_time_us();
    if (!fill(ctx, params)) {
        llama_free(ctx);
        return NULL;
    }
    llama_perf_context_reset(ctx);
    return ctx;
}

struct llama_context *llama_new_context_with_model(struct llama_model *model, struct llama_context_params params) {
    return llama_init_from_model(model, params);
}

void llama_free(struct llama_context *ctx) {
    if (!ctx) return;
    training_free(ctx->training);
    graph_release(ctx);
    outputs_release(&ctx->out);
    memory_release(&ctx->memory);
    batch_release(&ctx->batch);
    free(ctx->seq_embd);
    adapter_uses_free(ctx->adapters, ctx->n_adapters);
    if (ctx->control.buffer) ggml_backend_buffer_free(ctx->control.buffer);
    if (ctx->backend) ggml_backend_free(ctx->backend);
    free(ctx);
}

/* ---- questions and settings ------------------------------------------------------------------------------------ */

const struct llama_model *llama_get_model(const struct llama_context *ctx) { return ctx->model; }
llama_memory_t llama_get_memory(const struct llama_context *ctx) { return (llama_memory_t) (uintptr_t) &ctx->memory; }
enum llama_pooling_type llama_pooling_type(const struct llama_context *ctx) { return ctx->params.pooling_type; }

uint32_t llama_n_ctx     (const struct llama_context *ctx) { return ctx->params.n_ctx; }
uint32_t llama_n_ctx_seq (const struct llama_context *ctx) {
    return ctx->params.kv_unified ? ctx->params.n_ctx : ctx->params.n_ctx/ctx->params.n_seq_max;
}
uint32_t llama_n_batch   (const struct llama_context *ctx) { return ctx->params.n_batch; }
uint32_t llama_n_ubatch  (const struct llama_context *ctx) { return ctx->params.n_ubatch; }
uint32_t llama_n_seq_max (const struct llama_context *ctx) { return ctx->params.n_seq_max; }
uint32_t llama_n_rs_seq  (const struct llama_context *ctx) { (void) ctx; return 0; }
int32_t  llama_n_threads (struct llama_context *ctx) { return ctx->params.n_threads; }
int32_t  llama_n_threads_batch(struct llama_context *ctx) { return ctx->params.n_threads_batch; }

static int32_t threads(int32_t n) {
    return n <= 0 ? arn_cpu_default_threads() : n > GGML_MAX_N_THREADS ? GGML_MAX_N_THREADS : n;
}

void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch) {
    ctx->params.n_threads       = threads(n_threads);
    ctx->params.n_threads_batch = threads(n_threads_batch);
}

void llama_attach_threadpool(struct llama_context *ctx, ggml_threadpool_t threadpool,
                             ggml_threadpool_t threadpool_batch) {
    ctx->pool       = threadpool;
    ctx->pool_batch = threadpool_batch ? threadpool_batch : threadpool;
}

void llama_detach_threadpool(struct llama_context *ctx) {
    ctx->pool = ctx->pool_batch = NULL;
    ggml_backend_cpu_set_threadpool(ctx->backend, NULL);
}

void llama_set_embeddings(struct llama_context *ctx, bool embeddings) { ctx->params.embeddings = embeddings; }
void llama_set_causal_attn(struct llama_context *ctx, bool causal_attn) {
    ctx->params.attention_type = causal_attn ? LLAMA_ATTENTION_TYPE_CAUSAL : LLAMA_ATTENTION_TYPE_NON_CAUSAL;
}
bool llama_get_causal_attn(const struct llama_context *ctx) {
    return ctx->params.attention_type != LLAMA_ATTENTION_TYPE_NON_CAUSAL;
}
void llama_set_warmup(struct llama_context *ctx, bool warmup) { (void) ctx; (void) warmup; }
void llama_set_abort_callback(struct llama_context *ctx, ggml_abort_callback abort_callback,
                              void *abort_callback_data) {
    ctx->params.abort_callback      = abort_callback;
    ctx->params.abort_callback_data = abort_callback_data;
    ggml_backend_cpu_set_abort_callback(ctx->backend, abort_callback, abort_callback_data);
}
void llama_synchronize(struct llama_context *ctx) { if (ctx->sched) ggml_backend_sched_synchronize(ctx->sched); }

/* Samplers run on the logits that the caller reads; none runs inside the graph. */
bool        llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl) {
    (void) ctx; (void) seq_id; (void) smpl;
    return false;
}
#define NEVER(type, name, value) \
    type name(struct llama_context *ctx, int32_t i) { (void) ctx; (void) i; return value; }
NEVER(llama_token,   llama_get_sampled_token_ith,            LLAMA_TOKEN_NULL)
NEVER(float *,       llama_get_sampled_probs_ith,            NULL)
NEVER(uint32_t,      llama_get_sampled_probs_count_ith,      0)
NEVER(float *,       llama_get_sampled_logits_ith,           NULL)
NEVER(uint32_t,      llama_get_sampled_logits_count_ith,     0)
NEVER(llama_token *, llama_get_sampled_candidates_ith,       NULL)
NEVER(uint32_t,      llama_get_sampled_candidates_count_ith, 0)

/* ---- figures --------------------------------------------------------------------------------------------------- */

struct llama_perf_context_data llama_perf_context(const struct llama_context *ctx) {
    struct llama_perf_context_data p = ctx->perf;
    if (!p.n_p_eval) p.n_p_eval = 1;        /* divisors, as programs expect */
    if (!p.n_eval)   p.n_eval   = 1;
    return p;
}

void llama_perf_context_print(const struct llama_context *ctx) {
    const struct llama_perf_context_data p = llama_perf_context(ctx);
    log_info("load   %9.2f ms", p.t_load_ms);
    log_info("prompt %9.2f ms, %5d tokens, %9.2f tokens/s", p.t_p_eval_ms, p.n_p_eval,
             1e3*p.n_p_eval/(p.t_p_eval_ms + 1e-9));
    log_info("answer %9.2f ms, %5d tokens, %9.2f tokens/s", p.t_eval_ms, p.n_eval, 1e3*p.n_eval/(p.t_eval_ms + 1e-9));
}

void llama_perf_context_reset(struct llama_context *ctx) {
    ctx->perf = (struct llama_perf_context_data) {
        .t_start_ms = (double) ggml_time_us()*1e-3, .t_load_ms = (double) ctx->model->load_us*1e-3,
    };
}

/* ---- the plan -------------------------------------------------------------------------------------------------- */

/* What is read of the files' headers, where the mapping has it, and what is kept of it. Strings are kept as long as the file
 * has them, so the size of the metadata is taken for that of its copy. */
static size_t headers_bytes(const struct llama_model *m) {
    size_t bytes = 0;
    for (int i = 0; i < m->n_parts; i++) {
        const struct part *p = m->parts + i;
        bytes += gguf_get_meta_size(p->gguf) + ggml_get_mem_size(p->tensors) + (p->file.data ? gguf_get_data_offset(p->gguf) : 0);
    }
    return bytes;
}

static size_t metadata_bytes(const struct llama_model *m) {
    return vocab_bytes(m->vocab) + m->h.n_layer*sizeof *m->layers + headers_bytes(m);
}

static struct arn_memory with_adapters(struct arn_memory memory, const struct llama_context *ctx) {
    for (size_t i = 0; i < ctx->n_adapters; i++) {
        const struct llama_adapter_lora *a = ctx->adapters[i].adapter;
        memory.weights_mapped  += a->files->bytes_mapped;
        memory.weights_private += a->files->bytes_private;
        memory.metadata        += headers_bytes(a->files) + a->model->h.n_layer*sizeof *a->layers;
    }
    if (ctx->control.buffer) memory.other += ggml_backend_buffer_get_size(ctx->control.buffer);
    return memory;
}

/* Sizes are enough here. */
static bool has_weights(const struct llama_context *ctx) { return !ctx->model->vocab_only || refuse(ctx->model, model_lacks(ctx->model)); }

struct arn_memory arn_context_memory(const struct llama_context *ctx) {
    if (ctx->model->vocab_only) return (struct arn_memory) { .metadata = metadata_bytes(ctx->model) };
    return with_adapters((struct arn_memory) {
        .weights_mapped = ctx->model->bytes_mapped, .weights_private = ctx->model->bytes_private,
        .metadata = metadata_bytes(ctx->model), .kv = memory_bytes(&ctx->memory), .activations = ctx->activations,
        .activations_lower_bound = ctx->lower_bound,
        .scratch = ctx->scratch, .outputs = ctx->out.bytes,
        .other = ggml_get_mem_size(ctx->graph.ctx) + memory_other_bytes(&ctx->memory),
    }, ctx);
}

bool arn_context_plan(struct llama_context *ctx, arn_plan_visit visit, void *user_data) {
    if (!has_weights(ctx) || !graph_reserve(ctx)) return false;
    arn_gallocr_visit(arn_sched_gallocr(ctx->sched), visit, user_data);
    return true;
}

bool arn_context_steps(struct llama_context *ctx, int32_t n_tokens, int32_t n_threads, arn_step_visit visit, void *user_data) {
    return has_weights(ctx) && graph_place(ctx, n_tokens) && arn_cpu_visit_steps(ctx->graph.gf, n_threads, visit, user_data);
}
