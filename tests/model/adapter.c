/* Low-rank adapters: a model with them answers as the model whose F32 weights have them added, within what the other order of
 * sums explains; without them, or with scale 0, it has the bits it had; files that do not fit are refused, each with one line
 * that says why. Control vectors: a model with them answers as one whose layers have them as a bias of their last product.
 * (Failing allocations: memory.c.) */

#include "tiny_lora.h"

#include "arenite.h"

#include <limits.h>

enum { N = 20, BOUND_PER_MILLION = 5 };         /* of the largest logit; weights are as exact as their sums */

static llama_token tokens[N];

static struct llama_model *load(const struct tiny *t) {
    tiny_write(t);
    tiny_log_clear();
    struct llama_model *m = llama_model_load_from_file(t->path, llama_model_default_params());
    if (!m) exit(fprintf(stderr, "%s\n", tiny_log));
    return m;
}

static struct llama_context *context(struct llama_model *m, int threads) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 64;
    p.swa_full = false;
    p.type_k = p.type_v = GGML_TYPE_F32;    /* rounding to halves would make large differences of small ones */
    p.n_threads = p.n_threads_batch = threads;
    struct llama_context *ctx = llama_init_from_model(m, p);
    if (!ctx) exit(fprintf(stderr, "%s\n", tiny_log));
    return ctx;
}

static struct llama_adapter_lora *adapter(struct llama_model *m, const struct tiny_lora *l) {
    lora_write(l);
    tiny_log_clear();
    struct llama_adapter_lora *a = llama_adapter_lora_init(m, l->path);
    if (!a) exit(fprintf(stderr, "%s\n", tiny_log));
    return a;
}

static void finish(struct llama_context *ctx, struct llama_model *m, struct tiny_lora *l, struct tiny *t) {
    llama_free(ctx);
    llama_model_free(m);
    lora_free(l);
    tiny_free(t);
}

/* Logits of all tokens, in steps. */
static void logits(struct llama_context *ctx, int step, float *out) {
    llama_memory_clear(llama_get_memory(ctx), true);
    for (int at = 0; at < N; at += step) {
        int8_t all[N];
        const int n = N - at < step ? N - at : step;
        memset(all, 1, sizeof all);
        struct llama_batch b = llama_batch_get_one(tokens + at, n);
        b.logits = all;
        CHECK(llama_decode(ctx, b) == 0, "%s", tiny_log);
        for (int i = 0; i < n; i++) memcpy(out + (size_t) (at + i)*TINY_VOCAB, llama_get_logits_ith(ctx, i), TINY_VOCAB*sizeof *out);
    }
}

static void check_near(const char *name, const float *got, const float *want) {
    double largest = 0, worst = 0;
    for (int i = 0; i < N*TINY_VOCAB; i++) {
        const double e = fabs((double) got[i] - (double) want[i]), w = fabs((double) want[i]);
        if (w > largest) largest = w;
        if (!(e <= worst)) worst = e;
    }
    fprintf(stderr, "%s: off by %.2g of %.2g\n", name, worst, largest);
    CHECK(worst <= largest*BOUND_PER_MILLION*1e-6, "%s: off by %g of %g", name, worst, largest);
}

static float plain[N*TINY_VOCAB], got[N*TINY_VOCAB], want[N*TINY_VOCAB], again[N*TINY_VOCAB];
static bool same(const float *a, const float *b) { return !memcmp(a, b, sizeof plain); }

/* ---- values ---------------------------------------------------------------------------------------------------- */

static const char *const dense[]   = { "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", NULL };
static const char *const routed[]  = { "attn_q", "attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", NULL };

static const struct { const char *name; struct tiny_shape shape; const char *const *blocks; enum ggml_type type; float alpha; } cases[] = {
    { "llama",    { "llama",  2, 64, 4, 2,  96, 0, 0, 0, GGML_TYPE_F32, false }, dense,  GGML_TYPE_F32, 8 },
    { "no alpha", { "llama",  2, 64, 4, 2,  96, 0, 0, 0, GGML_TYPE_F32, false }, dense,  GGML_TYPE_F16, 0 },
    { "experts",  { "llama",  2, 64, 4, 2,  96, 6, 2, 0, GGML_TYPE_F32, false }, routed, GGML_TYPE_F32, 3 },
    { "gemma3",   { "gemma3", 7, 64, 4, 1,  96, 0, 0, 8, GGML_TYPE_F32, false }, dense,  GGML_TYPE_F16, 2 },
};

/* The model of a case, with a matrix of its own for the output. */
static struct tiny model_of(int c) {
    struct tiny t = tiny_new(cases[c].shape);
    tiny_tensor(&t, "output.weight", GGML_TYPE_F32, 0, cases[c].shape.n_embd, TINY_VOCAB, 1);
    return t;
}

/* Pairs for every kind of weight; the two adapters of a case share some of them. */
static struct tiny_lora adapter_of(int c, const struct tiny *t, int number) {
    struct tiny_lora l = lora_new(cases[c].shape.arch, 3 + number, cases[c].alpha, number);
    for (int il = number; il < cases[c].shape.n_layer; il++) {
        for (int i = 0; cases[c].blocks[i]; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", il, cases[c].blocks[i]);
            lora_pair(&l, t, name, cases[c].type);
        }
    }
    lora_pair(&l, t, number ? "output.weight" : "token_embd.weight", cases[c].type);
    return l;
}

static void merged(int c, const struct tiny_lora *l, const float *scales, float *out) {
    struct tiny t = model_of(c);
    strcat(t.path, ".merged");              /* the other one is mapped */
    for (int i = 0; i < 2; i++) lora_merge(&l[i], &t, (double) scales[i]);
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1);
    logits(ctx, N, out);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

static void test_case(int c) {
    const char *name = cases[c].name;
    struct tiny t = model_of(c);
    struct tiny_lora l[2] = { adapter_of(c, &t, 0), adapter_of(c, &t, 1) };
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1), *threads = context(m, 3);
    struct llama_adapter_lora *a[] = { adapter(m, &l[0]), adapter(m, &l[1]) };
    logits(ctx, N, plain);
    static const float scales[][2] = { { 1, 0 }, { 0, -0.7f }, { 0.5f, 1 }, { 0.25f, 2 } };
    for (int i = 0; i < 4; i++) {
        float both[2] = { scales[i][0], scales[i][1] };
        CHECK(llama_set_adapters_lora(ctx, a, 2, both) == 0, "%s: %s", name, tiny_log);
        logits(ctx, N, got);
        CHECK(!same(got, plain), "%s: the adapters change nothing", name);
        merged(c, l, both, want);
        check_near(name, got, want);
        CHECK(llama_set_adapters_lora(threads, a, 2, both) == 0, "%s: %s", name, tiny_log);
        logits(threads, 1 + 3*i, again);
        CHECK(same(got, again), "%s: other bits in steps of %d with 3 threads", name, 1 + 3*i);
    }
    float none[2] = { 0, 0 };
    CHECK(llama_set_adapters_lora(ctx, a, 2, none) == 0, "%s: %s", name, tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, plain), "%s: scale 0 changes bits", name);
    CHECK(llama_set_adapters_lora(threads, NULL, 0, NULL) == 0, "%s: %s", name, tiny_log);
    logits(threads, N, got);
    CHECK(same(got, plain), "%s: removed adapters change bits", name);
    llama_free(threads);
    llama_free(ctx);
    llama_adapter_lora_free(a[0]);
    llama_model_free(m);                    /* with a[1] */
    lora_free(&l[0]);
    lora_free(&l[1]);
    tiny_free(&t);
}

/* One matrix for both: the embeddings' pair changes what is read, the output's the logits, and neither the other. */
static void test_tied(void) {
    for (int output = 0; output < 2; output++) {
        struct tiny t = tiny_new(cases[0].shape), both = tiny_new(cases[0].shape);
        struct tiny_lora l = lora_new("llama", 4, 2, 0);
        lora_pair(&l, &t, output ? "output.weight" : "token_embd.weight", GGML_TYPE_F32);
        struct llama_model *m = load(&t);
        struct llama_context *ctx = context(m, 1);
        struct llama_adapter_lora *a = adapter(m, &l);
        float scale = 1;
        CHECK(llama_set_adapters_lora(ctx, &a, 1, &scale) == 0, "%s", tiny_log);
        logits(ctx, N, got);
        const struct ggml_tensor *embd = ggml_get_tensor(both.ctx, "token_embd.weight");
        struct ggml_tensor *out = tiny_tensor(&both, "output.weight", GGML_TYPE_F32, 0, embd->ne[0], embd->ne[1], 1);
        memcpy(out->data, embd->data, ggml_nbytes(embd));
        lora_merge(&l, &both, 1);
        llama_free(ctx);
        llama_model_free(m);
        m = load(&both);
        ctx = context(m, 1);
        logits(ctx, N, want);
        check_near(output ? "tied, output" : "tied, embeddings", got, want);
        llama_free(ctx);
        llama_model_free(m);
        lora_free(&l);
        tiny_free(&t);
        tiny_free(&both);
    }
}

/* ---- sets ------------------------------------------------------------------------------------------------------ */

static void test_set(void) {
    struct tiny t = model_of(0);
    struct tiny_lora l = adapter_of(0, &t, 0);
    struct llama_model *m = load(&t), *other = load(&t);
    struct llama_context *ctx = context(m, 1);
    struct llama_adapter_lora *a[] = { adapter(m, &l), NULL }, *foreign = adapter(other, &l), *twice[] = { a[0], a[0] };
    float scales[] = { 1, 0.5f };
    const struct arn_memory before = arn_context_memory(ctx);
    CHECK(llama_set_adapters_lora(ctx, a, 1, scales) == 0, "%s", tiny_log);
    const struct arn_memory with = arn_context_memory(ctx);
    CHECK(with.weights_mapped + with.weights_private > before.weights_mapped + before.weights_private && with.metadata > before.metadata,
          "the plan does not count the adapter");
    logits(ctx, N, want);
    tiny_log_clear();
    CHECK(llama_set_adapters_lora(ctx, a, 2, scales) == -1, "no adapter taken");
    CHECK(llama_set_adapters_lora(ctx, &foreign, 1, scales) == -1, "another model's adapter taken");
    CHECK(llama_set_adapters_lora(ctx, a, 1, (float[]) { NAN }) == -1, "scale NaN taken");
    CHECK(llama_set_adapters_lora(ctx, NULL, 1, scales) == -1 && tiny_errors == 4, "%d lines: %s", tiny_errors, tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, want), "a refused set changes bits");
    CHECK(llama_set_adapters_lora(ctx, twice, 2, (float[]) { 0.5f, 1 }) == 0, "%s", tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, want), "the last scale does not count");
    CHECK(llama_set_adapters_lora(ctx, a, 1, scales + 1) == 0, "%s", tiny_log);
    logits(ctx, N, got);
    CHECK(!same(got, want), "another scale changes nothing");
    llama_free(ctx);
    llama_model_free(m);
    llama_model_free(other);
    lora_free(&l);
    tiny_free(&t);
}

static void test_metadata(void) {
    struct tiny t = model_of(0);
    struct tiny_lora l = adapter_of(0, &t, 0);
    gguf_set_arr_data(l.g, "adapter.alora.invocation_tokens", GGUF_TYPE_UINT32, (uint32_t[]) { 5, 284 }, 2);
    tiny_log_clear();
    struct llama_model *m = load(&t);
    struct llama_adapter_lora *a = adapter(m, &l);
    char text[64];
    CHECK(llama_adapter_meta_count(a) == 4, "%d keys", llama_adapter_meta_count(a));
    CHECK(llama_adapter_meta_val_str(a, "adapter.type", text, sizeof text) == 4 && !strcmp(text, "lora"), "%s", text);
    CHECK(llama_adapter_meta_val_str(a, "none", text, sizeof text) == -1, "%s", text);
    CHECK(llama_adapter_meta_key_by_index(a, 3, text, sizeof text) == 18 && !strcmp(text, "adapter.lora.alpha"), "%s", text);
    CHECK(llama_adapter_meta_val_str_by_index(a, 1, text, sizeof text) == 5 && !strcmp(text, "llama"), "%s", text);
    CHECK(llama_adapter_meta_val_str_by_index(a, 4, text, sizeof text) == -1, "%s", text);
    const llama_token *first = llama_adapter_get_alora_invocation_tokens(a);
    CHECK(llama_adapter_get_alora_n_invocation_tokens(a) == 2 && first && first[0] == 5 && first[1] == 284, "invocation tokens");
    FILE *f = fopen(l.path, "rb");
    struct llama_adapter_lora *stream = f ? llama_adapter_lora_init_from_file_ptr(m, f) : NULL;
    CHECK(stream && llama_adapter_meta_count(stream) == 4, "%s", tiny_log);
    if (f) fclose(f);
    finish(NULL, m, &l, &t);
}

/* ---- wrong files ----------------------------------------------------------------------------------------------- */

static void no_type    (struct tiny_lora *l) { gguf_remove_key(l->g, "general.type"); }
static void a_model    (struct tiny_lora *l) { gguf_set_val_str(l->g, "general.type", "model"); }
static void number_type(struct tiny_lora *l) { gguf_set_val_u32(l->g, "adapter.type", 1); }
static void other_type (struct tiny_lora *l) { gguf_set_val_str(l->g, "adapter.type", "prompt"); }
static void other_arch (struct tiny_lora *l) { gguf_set_val_str(l->g, "general.architecture", "gemma3"); }
static void alpha_inf  (struct tiny_lora *l) { gguf_set_val_f32(l->g, "adapter.lora.alpha", INFINITY); }
static void alpha_u32  (struct tiny_lora *l) { gguf_set_val_u32(l->g, "adapter.lora.alpha", 4); }
static void token_high (struct tiny_lora *l) { gguf_set_arr_data(l->g, "adapter.alora.invocation_tokens", GGUF_TYPE_UINT32, (uint32_t[]) { TINY_VOCAB }, 1); }
static void token_text (struct tiny_lora *l) { gguf_set_val_str(l->g, "adapter.alora.invocation_tokens", "a"); }
static void half(struct tiny_lora *l, const char *name, const char *end, int64_t ne0, int64_t ne1) { lora_half(l, name, end, GGML_TYPE_F32, ne0, ne1, 1); }
static void pair(struct tiny_lora *l, const char *name, int64_t k, int64_t rank_a, int64_t rank_b, int64_t rows) {
    half(l, name, "a", k, rank_a);
    half(l, name, "b", rank_b, rows);
}
static void width      (struct tiny_lora *l) { pair(l, "blk.0.ffn_up.weight", 65, 4, 4, 96); }
static void rows       (struct tiny_lora *l) { pair(l, "blk.0.ffn_up.weight", 64, 4, 4, 95); }
static void ranks      (struct tiny_lora *l) { pair(l, "blk.0.ffn_up.weight", 64, 4, 5, 96); }
static void turned     (struct tiny_lora *l) { pair(l, "blk.0.ffn_up.weight", 4, 64, 96, 4); }
static void embedding  (struct tiny_lora *l) { pair(l, "token_embd.weight", 64, 4, 4, TINY_VOCAB); }
static void only_a     (struct tiny_lora *l) { half(l, "blk.0.ffn_up.weight", "a", 64, 4); }
static void only_b     (struct tiny_lora *l) { half(l, "blk.0.ffn_up.weight", "b", 4, 96); }
static void norm       (struct tiny_lora *l) { pair(l, "blk.0.attn_norm.weight", 64, 4, 4, 1); }
static void layer      (struct tiny_lora *l) { pair(l, "blk.2.ffn_up.weight", 64, 4, 4, 96); }
static void layer_zero (struct tiny_lora *l) { pair(l, "blk.00.ffn_up.weight", 64, 4, 4, 96); }
static void layer_large(struct tiny_lora *l) { pair(l, "blk.99999999999999999999.ffn_up.weight", 64, 4, 4, 96); }
static void expert     (struct tiny_lora *l) { pair(l, "blk.0.ffn_up_exps.weight", 64, 4, 4, 96); }
static void half_c     (struct tiny_lora *l) { half(l, "blk.0.ffn_up.weight", "c", 64, 4); }

static const struct { const char *name; void (*spoil)(struct tiny_lora *l); const char *says; } wrong[] = {
    { "no type",          no_type,     "general.type is missing" },
    { "a model",          a_model,     "general.type is \"model\", wanted \"adapter\"" },
    { "type, a number",   number_type, "adapter.type is no text" },
    { "other type",       other_type,  "adapter.type is \"prompt\", wanted \"lora\"" },
    { "other model",      other_arch,  "general.architecture is \"gemma3\", wanted \"llama\"" },
    { "alpha infinite",   alpha_inf,   "adapter.lora.alpha" },
    { "alpha whole",      alpha_u32,   "adapter.lora.alpha" },
    { "unknown token",    token_high,  "invocation_tokens" },
    { "token as text",    token_text,  "invocation_tokens" },
    { "width",            width,       "blk.0.ffn_up.weight.lora_a has shape [65, 4, 1, 1], wanted [64, 4, 1, 1]" },
    { "rows",             rows,        "blk.0.ffn_up.weight.lora_b has shape [4, 95, 1, 1], wanted [4, 96, 1, 1]" },
    { "ranks",            ranks,       "blk.0.ffn_up.weight.lora_a has shape [64, 4, 1, 1], wanted [64, 5, 1, 1]" },
    { "turned",           turned,      "blk.0.ffn_up.weight.lora_a has shape" },
    { "embedding",        embedding,   "token_embd.weight.lora_a has shape" },
    { "no b",             only_a,      "blk.0.ffn_up.weight.lora_a is there without its other half" },
    { "no a",             only_b,      "blk.0.ffn_up.weight.lora_b is there without its other half" },
    { "norm",             norm,        "no matrix blk.0.attn_norm.weight" },
    { "layer",            layer,       "no matrix blk.2.ffn_up.weight" },
    { "layer 00",         layer_zero,  "no matrix blk.00.ffn_up.weight" },
    { "layer, large",     layer_large, "no matrix blk.9999" },
    { "expert",           expert,      "no matrix blk.0.ffn_up_exps.weight" },
    { "third half",       half_c,      "lora_c ends neither in" },
};

static void refused(struct llama_model *m, const char *path, const char *name, const char *says) {
    tiny_log_clear();
    struct llama_adapter_lora *a = llama_adapter_lora_init(m, path);
    CHECK(!a && tiny_errors == 1 && strstr(tiny_log, says), "%s: %s, %d lines: %s", name, a ? "taken" : "refused", tiny_errors, tiny_log);
    llama_adapter_lora_free(a);
}

static struct tiny_lora sound(const struct tiny *t) {
    struct tiny_lora l = lora_new("llama", 4, 8, 0);
    lora_pair(&l, t, "blk.0.attn_q.weight", GGML_TYPE_F32);
    return l;
}

static void test_wrong(void) {
    struct tiny t = tiny_new(cases[0].shape);
    struct llama_model *m = load(&t);
    for (size_t i = 0; i < sizeof wrong/sizeof *wrong; i++) {
        struct tiny_lora l = sound(&t);
        wrong[i].spoil(&l);
        lora_write(&l);
        refused(m, l.path, wrong[i].name, wrong[i].says);
        lora_free(&l);
    }
    struct tiny_lora none = lora_new("llama", 4, 8, 0);
    lora_write(&none);
    refused(m, none.path, "no tensors", "no pair of tensors");
    lora_free(&none);
    refused(m, "/tmp/tiny-lora-none", "no file", "/tmp/tiny-lora-none");
    refused(m, t.path, "the model itself", "general.type is missing");
    refused(m, NULL, "no name", "no file given");
    refused(NULL, t.path, "no model", "no model");
    llama_model_free(m);
    tiny_free(&t);
}

/* Cut anywhere, a file is refused. */
static void test_truncated(void) {
    struct tiny t = tiny_new(cases[0].shape);
    struct llama_model *m = load(&t);
    struct tiny_lora l = sound(&t);
    const size_t size = gguf_get_meta_size(l.g) + gguf_get_tensor_offset(l.g, 1) + gguf_get_tensor_size(l.g, 1);
    for (size_t n = size; n-- > 0; n -= n % 13 < n ? n % 13 : n) {
        lora_write(&l);
        if (truncate(l.path, (off_t) n)) exit(fprintf(stderr, "%s: cannot be cut\n", l.path));
        tiny_log_clear();
        struct llama_adapter_lora *a = llama_adapter_lora_init(m, l.path);
        CHECK(!a && tiny_errors > 0, "%zu of %zu bytes: %s", n, size, tiny_log);
    }
    finish(NULL, m, &l, &t);
}

/* Some bytes changed, anywhere: refused with a line, or taken and then computed with. */
static void test_damaged(void) {
    struct tiny t = tiny_new(cases[0].shape);
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1);
    struct tiny_lora l = sound(&t);
    static unsigned char whole[8192], bytes[8192];
    lora_write(&l);
    FILE *f = fopen(l.path, "rb");
    const size_t size = f ? fread(whole, 1, sizeof whole, f) : 0;
    if (f) fclose(f);
    uint64_t seed = 11;
    int taken = 0;
    CHECK(size > 2000 && size < sizeof whole, "%zu bytes", size);
    for (int i = 0; size && i < 1500; i++) {
        memcpy(bytes, whole, size);
        for (int j = 0; j <= i % 3; j++) bytes[rnd_u64(&seed) % (i % 5 ? 640 : size)] = (unsigned char) rnd_u64(&seed);
        f = fopen(l.path, "wb");
        if (!f || fwrite(bytes, 1, size, f) != size || fclose(f)) exit(fprintf(stderr, "%s: cannot write\n", l.path));
        tiny_log_clear();
        struct llama_adapter_lora *a = llama_adapter_lora_init(m, l.path);
        CHECK(a || tiny_errors > 0, "case %d: not a word", i);
        if (!a) continue;
        taken++;
        llama_memory_clear(llama_get_memory(ctx), true);
        CHECK(llama_set_adapters_lora(ctx, &a, 1, (float[]) { 1 }) == 0 && llama_decode(ctx, llama_batch_get_one(tokens, 4)) == 0, "case %d: %s", i, tiny_log);
        CHECK(llama_set_adapters_lora(ctx, NULL, 0, NULL) == 0, "%s", tiny_log);
        llama_adapter_lora_free(a);
    }
    fprintf(stderr, "%d of 1500 damaged files taken\n", taken);
    CHECK(taken > 0 && taken < 1500, "nothing was tried");
    finish(ctx, m, &l, &t);
}

/* A norm that was trained as well is left out, with a warning. */
static void test_norm_left_out(void) {
    struct tiny t = tiny_new(cases[0].shape);
    struct llama_model *m = load(&t);
    struct tiny_lora l = sound(&t);
    struct ggml_tensor *w = ggml_new_tensor_1d(l.ctx, GGML_TYPE_F32, 64);
    memset(w->data, 0, ggml_nbytes(w));
    gguf_add_tensor(l.g, ggml_set_name(w, "blk.0.attn_norm.weight"));
    adapter(m, &l);
    CHECK(!tiny_errors && strstr(tiny_log, "blk.0.attn_norm.weight is not used"), "%s", tiny_log);
    finish(NULL, m, &l, &t);
}

/* One that is freed while contexts use it works on in them, until they are given others or are freed. */
static void test_freed_in_use(void) {
    struct tiny t = model_of(0);
    struct tiny_lora l = adapter_of(0, &t, 0);
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1), *other = context(m, 1);
    struct llama_adapter_lora *a = adapter(m, &l);
    float scale = 1;
    logits(ctx, N, plain);
    CHECK(llama_set_adapters_lora(ctx, &a, 1, &scale) == 0 && llama_set_adapters_lora(other, &a, 1, &scale) == 0, "%s", tiny_log);
    logits(ctx, N, want);
    llama_adapter_lora_free(a);
    logits(ctx, N, got);
    CHECK(same(got, want), "a freed adapter changes bits");
    CHECK(llama_set_adapters_lora(ctx, NULL, 0, NULL) == 0, "%s", tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, plain), "a freed adapter is still there");
    logits(other, N, got);
    CHECK(same(got, want), "it is gone from another context");
    llama_free(other);
    finish(ctx, m, &l, &t);
}

/* ---- control vectors ------------------------------------------------------------------------------------------- */

enum { CONTROL_LAYERS = 4, CONTROL_WIDTH = 64 };
static const struct tiny_shape control_shape = { "llama", CONTROL_LAYERS, CONTROL_WIDTH, 4, 2, 96, 0, 0, 0, GGML_TYPE_F32, false };

/* The logits of the model whose layers first .. last have vectors as a bias; layer 1's vector comes first. */
static void biased(const float *vectors, int first, int last, float *out) {
    struct tiny t = tiny_new(control_shape);
    strcat(t.path, ".biased");
    for (int il = first; il <= last; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_down.bias", il);
        memcpy(tiny_tensor(&t, name, GGML_TYPE_F32, 0, CONTROL_WIDTH, 1, 1)->data, vectors + (il - 1)*CONTROL_WIDTH, CONTROL_WIDTH*sizeof *vectors);
    }
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1);
    logits(ctx, N, out);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

static const struct { const char *name; size_t len; int start, end, first, last; } ranges[] = {
    { "all",                   3*CONTROL_WIDTH,     1,       3,         1,  3 },
    { "all, and more",         3*CONTROL_WIDTH,     INT_MIN, INT_MAX,   1,  3 },
    { "the last",              3*CONTROL_WIDTH,     3,       3,         3,  3 },
    { "two",                   3*CONTROL_WIDTH,     0,       2,         1,  2 },
    { "one and a half given",  3*CONTROL_WIDTH/2,   1,       3,         1,  1 },
    { "more given",            4*CONTROL_WIDTH,     2,       9,         2,  3 },
    { "layer 0",               3*CONTROL_WIDTH,     0,       0,         1,  0 },
    { "none",                  3*CONTROL_WIDTH,     3,       2,         1,  0 },
    { "before the first",      3*CONTROL_WIDTH,     INT_MIN, INT_MIN,   1,  0 },
    { "after the last",        3*CONTROL_WIDTH,     4,       INT_MAX,   1,  0 },
    { "none given",            CONTROL_WIDTH - 1,   1,       3,         1,  0 },
};

static void test_control(void) {
    static float vectors[4*CONTROL_WIDTH];
    uint64_t seed = 3;
    struct tiny t = tiny_new(control_shape);
    struct llama_model *m = load(&t);
    struct llama_context *ctx = context(m, 1), *threads = context(m, 3);
    logits(ctx, N, plain);
    for (size_t i = 0; i < sizeof ranges/sizeof *ranges; i++) {
        const char *name = ranges[i].name;
        for (int j = 0; j < 4*CONTROL_WIDTH; j++) vectors[j] = rnd_f32(&seed);      /* "all" twice: others for the same layers */
        CHECK(llama_set_adapter_cvec(ctx, vectors, ranges[i].len, CONTROL_WIDTH, ranges[i].start, ranges[i].end) == 0, "%s: %s", name, tiny_log);
        CHECK(llama_set_adapter_cvec(threads, vectors, ranges[i].len, CONTROL_WIDTH, ranges[i].start, ranges[i].end) == 0, "%s: %s", name, tiny_log);
        logits(ctx, N, got);
        logits(threads, 3, again);
        CHECK(same(got, again), "%s: other bits in steps of 3 with 3 threads", name);
        CHECK(same(got, plain) == (ranges[i].last < ranges[i].first), "%s: the vectors count where they should not, or do not", name);
        biased(vectors, ranges[i].first, ranges[i].last, want);
        check_near(name, got, want);
    }
    CHECK(llama_set_adapter_cvec(ctx, vectors, 3*CONTROL_WIDTH, CONTROL_WIDTH, 1, 3) == 0, "%s", tiny_log);
    logits(ctx, N, want);
    tiny_log_clear();
    CHECK(llama_set_adapter_cvec(ctx, vectors, 3*CONTROL_WIDTH, CONTROL_WIDTH - 1, 1, 3) == -1 && tiny_errors == 1, "another width: %s", tiny_log);
    CHECK(llama_set_adapter_cvec(ctx, vectors, 3*CONTROL_WIDTH, -CONTROL_WIDTH, 1, 3) == -1 && tiny_errors == 2, "a width below 0: %s", tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, want), "a refused call changes bits");
    CHECK(llama_set_adapter_cvec(ctx, NULL, 0, 0, 0, 0) == 0, "%s", tiny_log);
    logits(ctx, N, got);
    CHECK(same(got, plain), "removed vectors change bits");
    llama_free(threads);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

/* Vectors and adapters at once, in a model with a window: the bits do not depend on how it is computed, nor on who came first. */
static void test_control_and_adapter(void) {
    static float vectors[6*64];
    uint64_t seed = 4;
    struct tiny t = model_of(3);
    struct tiny_lora l = adapter_of(3, &t, 0);
    struct llama_model *m = load(&t);
    struct llama_context *ctx[] = { context(m, 1), context(m, 2) };
    struct llama_adapter_lora *a = adapter(m, &l);
    float scale = 1;
    for (int j = 0; j < 6*64; j++) vectors[j] = rnd_f32(&seed);
    CHECK(llama_set_adapters_lora(ctx[0], &a, 1, &scale) == 0, "%s", tiny_log);
    logits(ctx[0], N, plain);
    for (int i = 0; i < 2; i++) CHECK(llama_set_adapter_cvec(ctx[i], vectors, 6*64, 64, 1, 6) == 0, "%s", tiny_log);
    logits(ctx[1], N, again);
    CHECK(llama_set_adapters_lora(ctx[1], &a, 1, &scale) == 0, "%s", tiny_log);
    logits(ctx[0], N, want);
    logits(ctx[1], 1, got);
    CHECK(same(got, want), "other bits in steps of 1, or in another order");
    CHECK(!same(plain, want) && !same(again, want), "one of both does not count");
    llama_free(ctx[0]);
    llama_free(ctx[1]);
    finish(NULL, m, &l, &t);
}

int main(void) {
    uint64_t seed = 7;
    llama_log_set(tiny_catch, NULL);
    ggml_log_set(tiny_catch, NULL);
    for (int i = 0; i < N; i++) tokens[i] = i ? (llama_token) (3 + rnd_u64(&seed) % (TINY_VOCAB - 3)) : 1;
    for (int c = 0; c < (int) (sizeof cases/sizeof *cases); c++) test_case(c);
    test_tied();
    test_set();
    test_metadata();
    test_wrong();
    test_truncated();
    test_damaged();
    test_norm_left_out();
    test_freed_in_use();
    test_control();
    test_control_and_adapter();
    return DONE();
}
