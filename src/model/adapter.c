/* Low-rank adapters (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"): files that add scale*B*A to
 * weights of a model, and which of them a context computes with; and control vectors, which a context adds between layers.
 *
 * A file's tensors are NAME.lora_a and NAME.lora_b for the model's NAME; every one is checked against the model's here, so
 * that graphs need not. The weights themselves are never changed: blocks.c adds B(scale*(A x)) where it multiplies by one.
 * The data stay in the file's mapping like a model's. An adapter belongs to its model and goes with it. */

#include "model.h"

#include "log.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *file_name(const struct llama_adapter_lora *a) { return model_file_name(a->files); }
static const struct gguf_context *metadata(const struct llama_adapter_lora *a) { return a->files->parts[0].gguf; }

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static bool text_is(const struct llama_adapter_lora *a, const char *key, const char *want) {
    const struct gguf_context *g = metadata(a);
    const int64_t id = gguf_find_key(g, key);
    const bool is_text = id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_STRING;
    if (is_text && !strcmp(gguf_get_val_str(g, id), want)) return true;
    log_error("%s: key %s is %s%.60s%s, wanted \"%s\"", file_name(a), key, is_text ? "\"" : "", is_text ? gguf_get_val_str(g, id) :
              id < 0 ? "missing" : "no text", is_text ? "\"" : "", want);
    return false;
}

static bool read_alpha(struct llama_adapter_lora *a) {
    static const char key[] = "adapter.lora.alpha";
    const struct gguf_context *g = metadata(a);
    const int64_t id = gguf_find_key(g, key);
    const bool is_float = id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_FLOAT32;
    a->alpha = is_float ? gguf_get_val_f32(g, id) : 0;
    if (id < 0 || (is_float && isfinite(a->alpha))) return true;
    log_error("%s: key %s is not a finite number of type f32", file_name(a), key);
    return false;
}

/* The tokens from which on an activated adapter is meant to work; the file need not have them. */
static bool read_invocation(struct llama_adapter_lora *a) {
    static const char key[] = "adapter.alora.invocation_tokens";
    const struct gguf_context *g = metadata(a);
    const int64_t id = gguf_find_key(g, key);
    if (id < 0) return true;
    const enum gguf_type type = gguf_get_kv_type(g, id) == GGUF_TYPE_ARRAY ? gguf_get_arr_type(g, id) : GGUF_TYPE_COUNT;
    bool ok = type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32;
    const size_t n = ok ? gguf_get_arr_n(g, id) : 0;
    const uint32_t *tokens = n ? gguf_get_arr_data(g, id) : NULL;
    for (size_t i = 0; ok && i < n; i++) ok = tokens[i] < a->model->h.n_vocab;
    if (!ok) log_error("%s: key %s is not a list of the model's tokens", file_name(a), key);
    if (!ok || !n) return ok;
    if (!(a->invocation = malloc(n*sizeof *a->invocation))) {
        log_error("%s: out of memory", file_name(a));
        return false;
    }
    memcpy(a->invocation, tokens, n*sizeof *tokens);
    a->n_invocation = n;
    return true;
}

static bool read_keys(struct llama_adapter_lora *a) {
    return text_is(a, "general.type", "adapter") && text_is(a, "adapter.type", "lora") &&
           text_is(a, "general.architecture", a->model->arch->name) && read_alpha(a) && read_invocation(a);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

/* The row of the architecture's table that describes tensor `name`, and its layer (-1: none). NULL: no such row. */
static const struct tensor_row *row_named(const struct llama_model *m, const char *name, int *il) {
    const unsigned long layer = strncmp(name, "blk.", 4) ? ULONG_MAX : strtoul(name + 4, NULL, 10);
    for (const struct tensor_row *row = m->arch->tensors; row->name; row++) {
        char full[GGML_MAX_NAME];
        *il = strchr(row->name, '%') ? layer < m->h.n_layer ? (int) layer : INT_MAX : -1;
        if (*il == INT_MAX) continue;
        snprintf(full, sizeof full, row->name, *il);
        if (!strcmp(full, name)) return row;
    }
    return NULL;
}

static bool shape_is(const struct llama_adapter_lora *a, const struct ggml_tensor *t, int64_t ne0, int64_t ne1, int64_t ne2) {
    if (t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == 1) return true;
    log_error("%s: tensor %s has shape [%lld, %lld, %lld, %lld], wanted [%lld, %lld, %lld, 1]", file_name(a), t->name,
              (long long) t->ne[0], (long long) t->ne[1], (long long) t->ne[2], (long long) t->ne[3],
              (long long) ne0, (long long) ne1, (long long) ne2);
    return false;
}

/* Do both halves fit each other and the weight? Embeddings are looked up: row v of their A belongs to token v. */
static bool pair_fits(const struct llama_adapter_lora *a, const struct lora_pair *p, const struct ggml_tensor *w, const struct tensor_row *row) {
    const int64_t rank = p->b->ne[0];
    if (rank < 1) {
        log_error("%s: tensor %s has rank 0", file_name(a), p->b->name);
        return false;
    }
    const enum tensor_use second = row->use == USE_EXPERTS ? USE_EXPERTS : USE_MATRIX;
    const bool fits = row->id == TOKEN_EMBD ? shape_is(a, p->a, rank, w->ne[1], 1) && shape_is(a, p->b, rank, w->ne[0], 1)
        : shape_is(a, p->a, w->ne[0], rank, w->ne[2]) && shape_is(a, p->b, rank, w->ne[1], w->ne[2]);
    return fits && weight_type_fits(a->files, p->a, row->use) && weight_type_fits(a->files, p->b, second);
}

static struct ggml_tensor *model_weight(const struct llama_model *m, int il, enum tensor_id id) {
    return il < 0 ? m->t[id] : m->layers[il].t[id];
}

const struct lora_pair *adapter_pair(const struct llama_adapter_lora *a, int il, enum tensor_id id) {
    return il < 0 ? &a->whole.t[id] : &a->layers[il].t[id];
}

static bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Puts one tensor of the file into its place. Norms that were trained as well are no part of a low-rank adapter. */
static bool tensor_take(struct llama_adapter_lora *a, struct ggml_tensor *t) {
    const bool first = ends_with(t->name, ".lora_a");
    if (!first && !ends_with(t->name, ".lora_b")) {
        const bool norm = ends_with(t->name, "_norm.weight");
        if (norm) log_warn ("%s: tensor %s is not used: only pairs of lora_a and lora_b are", file_name(a), t->name);
        else      log_error("%s: tensor %s ends neither in .lora_a nor in .lora_b", file_name(a), t->name);
        return norm;
    }
    char name[GGML_MAX_NAME];
    int il;
    snprintf(name, sizeof name, "%.*s", (int) (strlen(t->name) - strlen(".lora_a")), t->name);
    const struct tensor_row *row = row_named(a->model, name, &il);
    if (!row || !model_weight(a->model, il, row->id) || row->use == USE_VECTOR || row->use == USE_FACTORS) {
        log_error("%s: tensor %s: the model has no matrix %s", file_name(a), t->name, name);
        return false;
    }
    struct lora_pair *p = il < 0 ? &a->whole.t[row->id] : &a->layers[il].t[row->id];
    *(first ? &p->a : &p->b) = t;
    return true;
}

static bool pairs_check(struct llama_adapter_lora *a) {
    const struct llama_model *m = a->model;
    for (const struct tensor_row *row = m->arch->tensors; row->name; row++) {
        const bool layered = strchr(row->name, '%') != NULL;
        for (int il = layered ? 0 : -1; il < (layered ? (int) m->h.n_layer : 0); il++) {
            const struct lora_pair *p = adapter_pair(a, il, row->id);
            if (!p->a && !p->b) continue;
            if (!p->a || !p->b) {
                log_error("%s: tensor %s is there without its other half", file_name(a), p->a ? p->a->name : p->b->name);
                return false;
            }
            if (!pair_fits(a, p, model_weight(m, il, row->id), row)) return false;
            a->n_pairs++;
        }
    }
    if (!a->n_pairs) log_error("%s: no pair of tensors lora_a and lora_b", file_name(a));
    return a->n_pairs > 0;
}

static bool read_tensors(struct llama_adapter_lora *a) {
    if (!(a->layers = calloc(a->model->h.n_layer, sizeof *a->layers))) {
        log_error("%s: out of memory", file_name(a));
        return false;
    }
    struct ggml_context *ctx = a->files->parts[0].tensors;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!tensor_take(a, t)) return false;
    }
    return pairs_check(a);
}

/* ---- the adapter ----------------------------------------------------------------------------------------------- */

static struct llama_adapter_lora *adapter_new(struct llama_model *m, const char *path, FILE *stream) {
    if (!m || m->vocab_only || (!path && !stream)) {
        log_error("adapter: %s", m && !m->vocab_only ? "no file given" : "no model with weights given");
        return NULL;
    }
    struct llama_adapter_lora *a = calloc(1, sizeof *a);
    if (!a) {
        log_error("adapter: out of memory");
        return NULL;
    }
    atomic_init(&a->users, 1);
    a->model    = m;
    a->next     = m->adapters;
    m->adapters = a;
    a->files    = model_open_one(path, stream, m->device);
    if (a->files && read_keys(a) && read_tensors(a) && model_place(a->files)) return a;
    llama_adapter_lora_free(a);
    return NULL;
}

struct llama_adapter_lora *llama_adapter_lora_init(struct llama_model *model, const char *path_lora) {
    return adapter_new(model, path_lora, NULL);
}

struct llama_adapter_lora *llama_adapter_lora_init_from_file_ptr(struct llama_model *model, FILE *file) {
    return adapter_new(model, NULL, file);
}

/* One user less: the last one takes the adapter with it. */
static void release(struct llama_adapter_lora *a) {
    if (atomic_fetch_sub(&a->users, 1) > 1) return;
    llama_model_free(a->files);
    free(a->layers);
    free(a->invocation);
    free(a);
}

void llama_adapter_lora_free(struct llama_adapter_lora *adapter) {
    if (!adapter) return;
    struct llama_adapter_lora **at = &adapter->model->adapters;
    while (*at != adapter) at = &(*at)->next;
    *at = adapter->next;
    release(adapter);
}

void adapter_uses_free(struct adapter_use *uses, size_t n) {
    for (size_t i = 0; i < n; i++) release(uses[i].adapter);
    free(uses);
}

int32_t llama_adapter_meta_count(const struct llama_adapter_lora *a) { return llama_model_meta_count(a->files); }
int32_t llama_adapter_meta_val_str(const struct llama_adapter_lora *a, const char *key, char *buf, size_t buf_size) {
    return llama_model_meta_val_str(a->files, key, buf, buf_size);
}
int32_t llama_adapter_meta_key_by_index(const struct llama_adapter_lora *a, int32_t i, char *buf, size_t buf_size) {
    return llama_model_meta_key_by_index(a->files, i, buf, buf_size);
}
int32_t llama_adapter_meta_val_str_by_index(const struct llama_adapter_lora *a, int32_t i, char *buf, size_t buf_size) {
    return llama_model_meta_val_str_by_index(a->files, i, buf, buf_size);
}
uint64_t llama_adapter_get_alora_n_invocation_tokens(const struct llama_adapter_lora *a) { return a->n_invocation; }
const llama_token *llama_adapter_get_alora_invocation_tokens(const struct llama_adapter_lora *a) { return a->invocation; }

/* ---- which of them a context uses ------------------------------------------------------------------------------ */

float adapter_scale(const struct adapter_use *use, const struct lora_pair *p) {
    const float alpha = use->adapter->alpha;
    return alpha != 0 ? use->scale*alpha/(float) p->b->ne[0] : use->scale;
}

static bool uses_valid(const struct llama_context *ctx, struct llama_adapter_lora *const *adapters, size_t n, const float *scales) {
    bool ok = !n || (adapters && scales);
    for (size_t i = 0; ok && i < n; i++) ok = adapters[i] && adapters[i]->model == ctx->model && isfinite(scales[i]);
    if (!ok) log_error("%s: adapters must be the model's own, their scales finite", model_file_name(ctx->model));
    return ok;
}

/* Those that change anything, in order; the last scale given for one counts. Their number. */
static size_t uses_fill(struct adapter_use *uses, struct llama_adapter_lora *const *adapters, size_t n, const float *scales) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t later = i + 1;
        while (later < n && adapters[later] != adapters[i]) later++;
        if (later < n || scales[i] == 0) continue;
        atomic_fetch_add(&adapters[i]->users, 1);
        uses[used++] = (struct adapter_use) { adapters[i], scales[i] };
    }
    return used;
}

static bool same_adapters(const struct llama_context *ctx, const struct adapter_use *uses, size_t n) {
    for (size_t i = 0; i < n && n == ctx->n_adapters; i++) {
        if (ctx->adapters[i].adapter != uses[i].adapter) return false;
    }
    return n == ctx->n_adapters;
}

/* Other scales of the same adapters need another graph, and no other plan. */
int32_t llama_set_adapters_lora(struct llama_context *ctx, struct llama_adapter_lora **adapters, size_t n_adapters, float *scales) {
    if (!uses_valid(ctx, adapters, n_adapters, scales)) return -1;
    struct adapter_use *uses = calloc(n_adapters + 1, sizeof *uses), *const before = ctx->adapters;
    if (!uses) {
        log_error("%s: out of memory for %zu adapters", model_file_name(ctx->model), n_adapters);
        return -1;
    }
    const size_t n = uses_fill(uses, adapters, n_adapters, scales), n_before = ctx->n_adapters;
    const bool same = same_adapters(ctx, uses, n);
    ctx->adapters    = uses;
    ctx->n_adapters  = n;
    ctx->graph.ready = false;
    const bool ok = same || graph_replan(ctx);
    if (!ok) {
        ctx->adapters   = before;
        ctx->n_adapters = n_before;
    }
    adapter_uses_free(ok ? before : uses, ok ? n_before : n);
    return ok ? 0 : -1;
}

/* ---- control vectors ------------------------------------------------------------------------------------------- */

/* Which layers get one: of 1, 2, ... those that are asked for, given, and in the model. */
static bool control_range(const struct llama_context *ctx, size_t len, int32_t n_embd, int32_t il_start, int32_t il_end, struct control *c) {
    const struct hparams *h = &ctx->model->h;
    if (n_embd < 1 || (uint32_t) n_embd != h->n_embd) {
        log_error("%s: control vectors have %d elements, wanted %u", model_file_name(ctx->model), n_embd, h->n_embd);
        return false;
    }
    const size_t given = len/h->n_embd, layers = given < h->n_layer - 1 ? given + 1 : h->n_layer;
    c->begin = il_start > 1 ? il_start : 1;
    c->end   = il_end < (int) layers ? il_end + (il_end >= 0) : (int) layers;
    if (c->begin >= c->end) c->begin = c->end = 0;
    return true;
}

static bool control_alloc(const struct llama_context *ctx, struct control *c) {
    const size_t size = (size_t) ctx->model->h.n_embd*(size_t) (c->end - 1)*sizeof(float);
    c->buffer = ggml_backend_buft_alloc_buffer(ggml_backend_get_default_buffer_type(ctx->backend), size);
    if (c->buffer) c->data = ggml_backend_buffer_get_base(c->buffer);
    else log_error("%s: out of memory for control vectors", model_file_name(ctx->model));
    return c->buffer;
}

/* Other vectors for the same layers take the place of the old ones; other layers need another plan. */
int32_t llama_set_adapter_cvec(struct llama_context *ctx, const float *data, size_t len, int32_t n_embd, int32_t il_start, int32_t il_end) {
    struct control c = { 0 };
    const struct control before = ctx->control;
    if (data && !control_range(ctx, len, n_embd, il_start, il_end, &c)) return -1;
    const bool same = c.begin == before.begin && c.end == before.end;
    if (same)                                     c = before;
    else if (c.end && !control_alloc(ctx, &c))    return -1;
    if (c.end) memcpy(c.data, data, (size_t) n_embd*(size_t) (c.end - 1)*sizeof *data);
    ctx->control = c;
    const bool ok = same || graph_replan(ctx);
    if (!ok) ctx->control = before;
    const ggml_backend_buffer_t unused = same ? NULL : ok ? before.buffer : c.buffer;
    if (unused) ggml_backend_buffer_free(unused);
    return ok ? 0 : -1;
}
