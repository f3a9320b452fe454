/* A batch goes through the model: cells are found for all of it, then it runs part by part, and the rows asked for appear
 * in the output buffer. A batch that does not run to its end leaves the memory as it was. */

#include "model.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

/* ---- output rows ----------------------------------------------------------------------------------------------- */

bool outputs_reserve(struct llama_context *ctx, int32_t n) {
    struct output_rows *out = &ctx->out;
    const struct hparams *h = &ctx->model->h;
    if (!out->row) {
        out->n_batch = (int32_t) ctx->params.n_batch;
        out->row     = malloc((size_t) out->n_batch*sizeof *out->row);
    }
    if (out->row && n <= out->max) return true;
    const uint64_t bytes = (uint64_t) n*((uint64_t) h->n_vocab + h->n_embd)*sizeof(float);
    ggml_backend_buffer_t buffer = out->row && bytes <= SIZE_MAX/2 ?
        ggml_backend_buft_alloc_buffer(ggml_backend_get_default_buffer_type(ctx->backend), ctx->model->no_alloc ? 1 : (size_t) bytes) : NULL;
    if (!buffer) {
        log_error("%s: out of memory for the results of %d tokens", model_file_name(ctx->model), n);
        return false;
    }
    if (out->buffer) ggml_backend_buffer_free(out->buffer);
    ctx->graph.ready = false;
    out->buffer = buffer;
    out->bytes  = ctx->model->no_alloc ? (size_t) bytes : ggml_backend_buffer_get_size(buffer);
    out->logits = ggml_backend_buffer_get_base(buffer);
    out->embd   = out->logits + (size_t) n*h->n_vocab;
    out->max    = n;
    out->n      = 0;
    return true;
}

void outputs_release(struct output_rows *out) {
    if (out->buffer) ggml_backend_buffer_free(out->buffer);
    free(out->row);
    *out = (struct output_rows) { 0 };
}

static void outputs_number(struct llama_context *ctx) {
    struct output_rows *out = &ctx->out;
    out->n = 0;
    for (int32_t i = 0; i < out->n_batch; i++) out->row[i] = i < ctx->batch.n && ctx->batch.output[i] ? out->n++ : -1;
}

/* The row of batch index i, or of the i-th output from the end when negative; -1 after one line of log. */
static int32_t row_of(const struct llama_context *ctx, int32_t i, const char *what) {
    const struct output_rows *out = &ctx->out;
    const int32_t row = i < 0 ? (i >= -out->n ? out->n + i : -1) : i < out->n_batch && out->n ? out->row[i] : -1;
    if (row < 0) log_error("no %s: token %d of the last batch was not asked for them", what, i);
    return row;
}

float *llama_get_logits(struct llama_context *ctx) { return ctx->out.n ? ctx->out.logits : NULL; }

float *llama_get_logits_ith(struct llama_context *ctx, int32_t i) {
    const int32_t row = row_of(ctx, i, "logits");
    return row < 0 ? NULL : ctx->out.logits + (size_t) row*ctx->model->h.n_vocab;
}

float *llama_get_embeddings(struct llama_context *ctx) {
    return ctx->out.n && ctx->params.embeddings ? ctx->out.embd : NULL;
}

float *llama_get_embeddings_ith(struct llama_context *ctx, int32_t i) {
    const int32_t row = ctx->params.embeddings ? row_of(ctx, i, "embeddings") : -1;
    return row < 0 ? NULL : ctx->out.embd + (size_t) row*ctx->model->h.n_embd;
}

/* ---- pooling --------------------------------------------------------------------------------------------------- */

static void pool_mean(const struct llama_context *ctx, int s, float *sum) {
    const uint32_t n_embd = ctx->model->h.n_embd;
    int32_t n = 0;
    memset(sum, 0, n_embd*sizeof *sum);
    for (int32_t i = 0; i < ctx->batch.n; i++) {
        if (!(ctx->batch.seqs[i] >> s & 1)) continue;
        const float *x = ctx->out.embd + (size_t) ctx->out.row[i]*n_embd;
        for (uint32_t j = 0; j < n_embd; j++) sum[j] += x[j];
        n++;
    }
    for (uint32_t j = 0; j < n_embd; j++) sum[j] /= (float) n;
}

/* The embedding of the sequence's first or last token of the batch. */
static void pool_one(const struct llama_context *ctx, int s, float *to) {
    const bool last = ctx->params.pooling_type == LLAMA_POOLING_TYPE_LAST;
    int32_t best = -1;
    for (int32_t i = 0; i < ctx->batch.n; i++) {
        if (!(ctx->batch.seqs[i] >> s & 1)) continue;
        if (best < 0 || (ctx->batch.pos[i] > ctx->batch.pos[best]) == last) best = i;
    }
    memcpy(to, ctx->out.embd + (size_t) ctx->out.row[best]*ctx->model->h.n_embd, ctx->model->h.n_embd*sizeof *to);
}

static void pool(struct llama_context *ctx) {
    ctx->seq_embd_set = 0;
    if (!ctx->seq_embd) return;
    for (int32_t i = 0; i < ctx->batch.n; i++) ctx->seq_embd_set |= ctx->batch.seqs[i];
    for (int s = 0; s < MAX_SEQUENCES; s++) {
        if (!(ctx->seq_embd_set >> s & 1)) continue;
        float *to = ctx->seq_embd + (size_t) s*ctx->model->h.n_embd;
        ctx->params.pooling_type == LLAMA_POOLING_TYPE_MEAN ? pool_mean(ctx, s, to) : pool_one(ctx, s, to);
    }
}

float *llama_get_embeddings_seq(struct llama_context *ctx, llama_seq_id seq_id) {
    if (seq_id < 0 || seq_id >= MAX_SEQUENCES || !(ctx->seq_embd_set >> seq_id & 1)) return NULL;
    return ctx->seq_embd + (size_t) seq_id*ctx->model->h.n_embd;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

enum { DECODED = 0, NO_ROOM = 1, STOPPED = 2, BAD_BATCH = -1, NO_MEMORY = -2, FAILED = -3 };

static int32_t part_size(const struct llama_context *ctx, int32_t first) {
    const int32_t left = ctx->batch.n - first, most = (int32_t) ctx->params.n_ubatch;
    return left < most ? left : most;
}

static bool place_all(struct llama_context *ctx) {
    for (int32_t i = 0, n; i < ctx->batch.n; i += n) {
        n = part_size(ctx, i);
        if (!memory_place(&ctx->memory, &ctx->batch, i, n)) return false;
    }
    return true;
}

static int run_part(struct llama_context *ctx, int32_t first, int32_t n, int32_t first_output) {
    struct graph_shape shape = {
        .n_tokens = n, .first_output = first_output, .from_embd = !ctx->batch.token,
        .causal = llama_get_causal_attn(ctx), .embeddings = ctx->params.embeddings,
    };
    for (int32_t i = first; i < first + n; i++) shape.n_outputs += ctx->batch.output[i];
    for (int i = 0; i < KV_CACHES; i++) shape.n_kv[i] = kv_extent(&ctx->memory.cache[i].cells);
    if (!graph_prepare(ctx, &shape)) {
        log_error("%s: no memory to compute %d tokens", model_file_name(ctx->model), n);
        return NO_MEMORY;
    }
    const enum ggml_status status = graph_run(ctx, first);
    if (status == GGML_STATUS_SUCCESS) return DECODED;
    if (status == GGML_STATUS_ABORTED) return STOPPED;
    log_error("%s: computing failed: %s", model_file_name(ctx->model), ggml_status_to_string(status));
    return status == GGML_STATUS_ALLOC_FAILED ? NO_MEMORY : FAILED;
}

static bool in_one_part(const struct llama_context *ctx) { return part_size(ctx, 0) == ctx->batch.n; }

static int run_all(struct llama_context *ctx) {
    int32_t outputs = 0;
    for (int32_t i = 0, n; i < ctx->batch.n; i += n) {
        n = part_size(ctx, i);
        if (!in_one_part(ctx) && !memory_place(&ctx->memory, &ctx->batch, i, n)) return FAILED;
        const int result = run_part(ctx, i, n, outputs);
        if (result != DECODED) return result;
        for (int32_t j = i; j < i + n; j++) outputs += ctx->batch.output[j];
    }
    return DECODED;
}

static void count_time(struct llama_context *ctx, int64_t start) {
    const double ms = (double) (ggml_time_us() - start)*1e-3;
    if (ctx->batch.n == 1) ctx->perf.n_eval++, ctx->perf.t_eval_ms += ms;
    else                   ctx->perf.n_p_eval += ctx->batch.n, ctx->perf.t_p_eval_ms += ms;
}

/* Cells are found for the whole batch first, so that a batch too large for the memory is told before anything is computed.
 * Those of a batch in parts are given back and taken again part by part: a part must not see, or lose, what a later one
 * takes. */
static int decode(struct llama_context *ctx) {
    if (ctx->memory.shifted && !graph_shift(ctx)) return NO_MEMORY;
    memory_begin(&ctx->memory);
    const bool room = place_all(ctx), outputs = room && outputs_reserve(ctx, ctx->batch.n_outputs);
    if (!outputs || !in_one_part(ctx)) memory_undo(&ctx->memory, false);
    if (!room) log_warn("no room in the KV cache for %d tokens", ctx->batch.n);
    if (!outputs) return room ? NO_MEMORY : NO_ROOM;
    ctx->out.n = 0;
    const int result = run_all(ctx);
    if (result != DECODED) {
        memory_undo(&ctx->memory, true);
        return result;
    }
    outputs_number(ctx);
    pool(ctx);
    return DECODED;
}

int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch) {
    const int64_t start = ggml_time_us();
    const char *why = model_lacks(ctx->model);
    if (why) {
        log_error("%s: %s", model_file_name(ctx->model), why);
        return FAILED;
    }
    if (!batch_check(ctx, &batch)) return BAD_BATCH;
    const int result = decode(ctx);
    if (result == DECODED) count_time(ctx, start);
    return result;
}

int32_t llama_encode(struct llama_context *ctx, struct llama_batch batch) {
    (void) ctx;
    (void) batch;
    log_error("encode: the model has no encoder");
    return BAD_BATCH;
}
