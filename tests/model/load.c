/* Loading: a good file becomes a model with its weights where the mapping has them; whatever is wrong with a file is one
 * clear line and no model. */

#include "tiny.h"

#include "arenite.h"
#include "model.h"

#include <sys/stat.h>

static struct llama_model *load(const char *path) {
    tiny_log_clear();
    return llama_model_load_from_file(path, llama_model_default_params());
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

struct bad_key { const char *name; enum gguf_type type; double value; };

static const struct bad_key bad_keys[] = {
    { "attention.head_count",                   GGUF_TYPE_UINT32,  0 },
    { "attention.head_count_kv",                GGUF_TYPE_UINT32,  0 },
    { "attention.head_count_kv",                GGUF_TYPE_UINT32,  3 },
    { "attention.head_count",                   GGUF_TYPE_UINT32,  5 },
    { "attention.head_count",                   GGUF_TYPE_FLOAT32, 4 },
    { "attention.head_count",                   GGUF_TYPE_INT32,  -4 },
    { "attention.key_length",                   GGUF_TYPE_UINT32,  7 },
    { "block_count",                            GGUF_TYPE_UINT32,  0 },
    { "block_count",                            GGUF_TYPE_UINT32,  2e9 },
    { "block_count",                            GGUF_TYPE_STRING,  0 },
    { "embedding_length",                       GGUF_TYPE_UINT32,  0 },
    { "embedding_length",                       GGUF_TYPE_UINT32,  4e9 },
    { "feed_forward_length",                    GGUF_TYPE_UINT32,  0 },
    { "attention.layer_norm_rms_epsilon",       GGUF_TYPE_FLOAT32, -1 },
    { "attention.layer_norm_rms_epsilon",       GGUF_TYPE_FLOAT32, (double) NAN },
    { "attention.layer_norm_rms_epsilon",       GGUF_TYPE_STRING,  0 },
    { "expert_used_count",                      GGUF_TYPE_UINT32,  9 },
    { "rope.freq_base",                         GGUF_TYPE_FLOAT32, 0 },
    { "rope.freq_base",                         GGUF_TYPE_FLOAT32, (double) INFINITY },
    { "rope.dimension_count",                   GGUF_TYPE_UINT32,  10 },
    { "rope.dimension_count",                   GGUF_TYPE_UINT32,  3 },
    { "rope.scaling.type",                      GGUF_TYPE_STRING,  0 },
    { "context_length",                         GGUF_TYPE_UINT32,  0 },
};

static void put_key(struct tiny *t, const char *key, enum gguf_type type, double v) {
    switch (type) {
        case GGUF_TYPE_UINT32: gguf_set_val_u32(t->g, key, (uint32_t) v); break;
        case GGUF_TYPE_INT32:  gguf_set_val_i32(t->g, key, (int32_t) v);  break;
        case GGUF_TYPE_STRING: gguf_set_val_str(t->g, key, "wrong");      break;
        default:               gguf_set_val_f32(t->g, key, (float) v);    break;
    }
}

static void check_refused(struct tiny *t, const char *what, double value, const char *names) {
    tiny_write(t);
    struct llama_model *m = load(t->path);
    CHECK(!m, "%s = %g loads", what, value);
    CHECK(strstr(tiny_log, names), "%s = %g: \"%s\" does not name %s", what, value, tiny_log, names);
    CHECK(tiny_errors == 1, "%s = %g: %d lines: %s", what, value, tiny_errors, tiny_log);
    llama_model_free(m);
}

static void test_bad_keys(void) {
    for (size_t i = 0; i < sizeof bad_keys/sizeof *bad_keys; i++) {
        struct tiny t = tiny_new(tiny_llama());
        char key[96];
        snprintf(key, sizeof key, "llama.%s", bad_keys[i].name);
        put_key(&t, key, bad_keys[i].type, bad_keys[i].value);
        check_refused(&t, key, bad_keys[i].value, key);
        tiny_free(&t);
    }
}

/* head_count 8 with head_count_kv 3; experts of which none is used, or more than there are. */
static void test_bad_pairs(void) {
    static const struct { const char *a; uint32_t va; const char *b; uint32_t vb; const char *names; } pairs[] = {
        { "llama.attention.head_count", 8, "llama.attention.head_count_kv", 3, "llama.attention.head_count_kv" },
        { "llama.expert_count",         8, "llama.expert_used_count",       0, "llama.expert_used_count" },
        { "llama.expert_count",         2, "llama.expert_used_count",       9, "llama.expert_used_count" },
    };
    for (size_t i = 0; i < sizeof pairs/sizeof *pairs; i++) {
        struct tiny t = tiny_new(tiny_llama());
        gguf_set_val_u32(t.g, pairs[i].a, pairs[i].va);
        gguf_set_val_u32(t.g, pairs[i].b, pairs[i].vb);
        check_refused(&t, pairs[i].names, pairs[i].vb, pairs[i].names);
        tiny_free(&t);
    }
}

static void test_missing_keys(void) {
    static const char *const needed[] = {
        "general.architecture", "llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon",
    };
    for (size_t i = 0; i < sizeof needed/sizeof *needed; i++) {
        struct tiny t = tiny_new(tiny_llama());
        gguf_remove_key(t.g, needed[i]);
        check_refused(&t, needed[i], 0, needed[i]);
        tiny_free(&t);
    }
    struct tiny t = tiny_new(tiny_llama());
    gguf_set_val_str(t.g, "general.architecture", "unheard of");
    check_refused(&t, "architecture", 0, "unheard of");
    tiny_free(&t);
}

/* One number for all layers, or one per layer. */
static void test_layer_arrays(void) {
    struct tiny_shape shape = tiny_llama();
    shape.n_layer = 2;
    struct tiny t = tiny_new(shape);
    const uint32_t ff[2] = { 64, 64 };
    gguf_set_arr_data(t.g, "llama.feed_forward_length", GGUF_TYPE_UINT32, ff, 2);
    tiny_write(&t);
    struct llama_model *m = load(t.path);
    CHECK(m, "an array of two is refused: %s", tiny_log);
    llama_model_free(m);
    gguf_set_arr_data(t.g, "llama.feed_forward_length", GGUF_TYPE_UINT32, ff, 1);
    check_refused(&t, "array", 1, "llama.feed_forward_length");
    tiny_free(&t);
}

/* ---- tensors --------------------------------------------------------------------------------------------------- */

static void test_bad_tensors(void) {
    struct tiny_shape shape = tiny_llama();
    struct tiny t = tiny_new(shape);
    tiny_u32(&t, "block_count", 2);
    check_refused(&t, "missing layer", 2, "blk.1.attn_norm.weight");
    tiny_u32(&t, "block_count", 1);
    tiny_u32(&t, "feed_forward_length", 32);
    check_refused(&t, "shape", 32, "blk.0.ffn_gate.weight");
    tiny_u32(&t, "feed_forward_length", 64);
    gguf_set_tensor_type(t.g, "blk.0.ffn_up.weight", GGML_TYPE_I16);
    check_refused(&t, "type", 0, "blk.0.ffn_up.weight");
    gguf_set_tensor_type(t.g, "blk.0.ffn_up.weight", GGML_TYPE_F32);
    gguf_set_tensor_type(t.g, "output_norm.weight", GGML_TYPE_F16);
    check_refused(&t, "type", 0, "output_norm.weight");
    tiny_free(&t);
}

static size_t file_size(const char *path) {
    struct stat st;
    return stat(path, &st) ? 0 : (size_t) st.st_size;
}

/* Cut anywhere, the file is refused. */
static void test_truncated(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_write(&t);
    const size_t size = file_size(t.path);
    for (size_t cut = size - 200; ; cut = cut > 1000 ? cut*3/4 : cut - cut/16 - 1) {
        tiny_write(&t);
        if (truncate(t.path, (off_t) cut)) break;
        struct llama_model *m = load(t.path);
        CHECK(!m && tiny_errors > 0, "cut at %zu of %zu loads", cut, size);
        llama_model_free(m);
        if (!cut) break;
    }
    tiny_free(&t);
    CHECK(!load("/nonexistent/model.gguf") && tiny_errors == 1, "%s", tiny_log);
    CHECK(!load("/tmp") && tiny_errors == 1, "%s", tiny_log);
}

static void test_check_tensors(void) {
    struct tiny t = tiny_new(tiny_llama());
    ((float *) ggml_get_tensor(t.ctx, "blk.0.attn_k.weight")->data)[17] = NAN;
    tiny_write(&t);
    struct llama_model_params p = llama_model_default_params();
    p.check_tensors = true;
    tiny_log_clear();
    CHECK(!llama_model_load_from_file(t.path, p) && strstr(tiny_log, "blk.0.attn_k.weight"), "a NaN passes: %s",
          tiny_log);
    struct llama_model *m = load(t.path);
    CHECK(m, "unasked, it is checked: %s", tiny_log);
    llama_model_free(m);
    tiny_free(&t);
}

/* ---- ways of loading ------------------------------------------------------------------------------------------- */

static void test_modes(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_write(&t);
    static const enum llama_load_mode modes[] = {
        LLAMA_LOAD_MODE_AUTO, LLAMA_LOAD_MODE_NONE, LLAMA_LOAD_MODE_MMAP_MLOCK, LLAMA_LOAD_MODE_DIRECT_IO };
    for (size_t i = 0; i < sizeof modes/sizeof *modes; i++) {
        struct llama_model_params p = llama_model_default_params();
        p.load_mode = modes[i];
        struct llama_model *m = llama_model_load_from_file(t.path, p);
        CHECK(m, "mode %d: %s", modes[i], tiny_log);
        if (!m) continue;
        const struct ggml_tensor *got = m->layers[0].t[FFN_DOWN], *want = ggml_get_tensor(t.ctx,
                "blk.0.ffn_down.weight");
        CHECK(!memcmp(got->data, want->data, ggml_nbytes(want)), "mode %d: other bytes", modes[i]);
        const bool mapped = i % 2 == 0;
        CHECK((m->bytes_mapped > 0) == mapped && (m->bytes_private > 0) == !mapped, "mode %d: %zu mapped, %zu private",
              modes[i], m->bytes_mapped, m->bytes_private);
        CHECK(llama_model_size(m) == m->n_bytes && llama_model_n_params(m) > 10000, "sizes");
        CHECK(m->t[OUTPUT] == m->t[TOKEN_EMBD], "the output is not tied");
        llama_model_free(m);
    }
    FILE *f = fopen(t.path, "rb");
    struct llama_model *m = llama_model_load_from_file_ptr(f, llama_model_default_params());
    CHECK(m, "from a stream");
    llama_model_free(m);
    if (f) fclose(f);
    tiny_free(&t);
}

static bool cancel_second(float progress, void *calls) {
    (void) progress;
    return ++*(int *) calls < 2;
}

/* A context over a vocabulary alone: there, and good for nothing but an error. */
static void test_wordless(struct llama_model *m) {
    float control[1] = { 0 };
    llama_token token = 1;
    uint8_t state[4096];
    struct llama_context *ctx = llama_init_from_model(m, llama_context_default_params());
    CHECK(ctx && !tiny_errors && llama_n_ctx(ctx) > 0 && llama_n_batch(ctx) > 0, "a context without weights: %s", tiny_log);
    if (!ctx) return;
    CHECK(llama_decode(ctx, llama_batch_get_one(&token, 1)) < 0 && tiny_errors == 1, "it decodes");
    CHECK(!llama_get_logits(ctx) && !llama_get_logits_ith(ctx, 0) && !llama_get_embeddings(ctx), "it has results");
    CHECK(llama_set_adapter_cvec(ctx, control, 0, 0, 1, 1) == -1 && llama_set_adapter_cvec(ctx, NULL, 0, 0, 0, 0) == 0, "control vectors");
    CHECK(!arn_context_plan(ctx, NULL, NULL) && !arn_context_steps(ctx, 1, 1, NULL, NULL) && arn_context_memory(ctx).metadata > 0, "a plan");
    llama_memory_t memory = llama_get_memory(ctx);
    llama_memory_clear(memory, true);
    CHECK(llama_memory_seq_rm(memory, 0, 0, -1) && llama_memory_seq_pos_max(memory, 0) == -1 && llama_memory_seq_pos_min(memory, 0) == -1, "its memory");
    llama_memory_seq_cp(memory, 0, 0, 0, -1), llama_memory_seq_keep(memory, 0), llama_memory_seq_add(memory, 0, 0, -1, 1), llama_memory_seq_div(memory, 0, 0, -1, 2);
    const size_t n = llama_state_get_size(ctx);
    CHECK(n <= sizeof state && llama_state_get_data(ctx, state, n) == n && llama_state_set_data(ctx, state, n) == n, "its state: %s", tiny_log);
    llama_opt_init(ctx, m, (struct llama_opt_params) { 0 });
    llama_synchronize(ctx);
    llama_free(ctx);
}

/* Sizes alone: those of a context that has its memory, also where there is no such memory; and nothing else. */
static void test_sizes(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_write(&t);
    struct llama_context_params c = llama_context_default_params();
    c.n_ctx = 512, c.n_batch = c.n_ubatch = 64, c.n_threads = c.n_threads_batch = 1;
    for (int i = 0; i < 2; i++) {
        struct llama_model_params p = llama_model_default_params();
        p.load_mode = i ? LLAMA_LOAD_MODE_NONE : LLAMA_LOAD_MODE_AUTO;
        p.check_tensors = true;
        struct llama_model *whole = llama_model_load_from_file(t.path, p);
        p.no_alloc = true;
        struct llama_model *m = llama_model_load_from_file(t.path, p);
        struct llama_context *real = llama_init_from_model(whole, c), *ctx = m ? llama_init_from_model(m, c) : NULL;
        CHECK(real && ctx, "%s", tiny_log);
        if (!real || !ctx) return;
        const struct arn_memory a = arn_context_memory(real), b = arn_context_memory(ctx);
        CHECK(!memcmp(&a, &b, sizeof a), "other sizes: cache %zu and %zu, activations %zu and %zu, outputs %zu and %zu", a.kv, b.kv, a.activations, b.activations, a.outputs, b.outputs);
        llama_token token = 1;
        uint8_t state[4096];
        tiny_log_clear();
        CHECK(llama_decode(ctx, llama_batch_get_one(&token, 1)) < 0 && tiny_errors == 1 && !llama_get_logits(ctx), "it decodes");
        llama_memory_clear(llama_get_memory(ctx), true);
        llama_memory_seq_rm(llama_get_memory(ctx), 0, 0, -1), llama_memory_seq_add(llama_get_memory(ctx), 0, 0, -1, 1);
        const size_t n = llama_state_get_size(ctx);
        CHECK(n <= sizeof state && llama_state_get_data(ctx, state, n) == n, "its state");
        llama_model_save_to_file(m, "/nonexistent/saved");
        CHECK(tiny_errors == 2, "%s", tiny_log);
        llama_free(ctx);
        struct llama_context_params large = c;
        large.n_ctx = 1 << 30;
        CHECK((ctx = llama_init_from_model(m, large)) && arn_context_memory(ctx).kv == a.kv << 21, "a large one: %s", tiny_log);
        llama_free(ctx), llama_free(real);
        llama_model_free(m), llama_model_free(whole);
    }
    tiny_log_clear();
    tiny_free(&t);
}

static void test_progress(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_write(&t);
    struct llama_model_params p = llama_model_default_params();
    int calls = 0;
    p.progress_callback = cancel_second;
    p.progress_callback_user_data = &calls;
    CHECK(!llama_model_load_from_file(t.path, p) && calls == 2, "not cancelled after %d calls", calls);
    p = llama_model_default_params();
    p.vocab_only = true;
    struct llama_model *m = llama_model_load_from_file(t.path, p);
    CHECK(m && llama_vocab_n_tokens(llama_model_get_vocab(m)) == TINY_VOCAB, "vocabulary alone");
    tiny_log_clear();
    test_wordless(m);
    llama_model_free(m);
    tiny_free(&t);
}

static void test_overrides(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_write(&t);
    struct llama_model_kv_override o[3] = {
        { .tag = LLAMA_KV_OVERRIDE_TYPE_INT,   .key = "llama.context_length", .val_i64 = 77 },
        { .tag = LLAMA_KV_OVERRIDE_TYPE_FLOAT, .key = "llama.rope.freq_base", .val_f64 = 5e5 },
    };
    struct llama_model_params p = llama_model_default_params();
    p.kv_overrides = o;
    struct llama_model *m = llama_model_load_from_file(t.path, p);
    CHECK(m && llama_model_n_ctx_train(m) == 77 && m->h.rope_base == 5e5f, "overrides are not seen");
    llama_model_free(m);
    o[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    tiny_log_clear();
    CHECK(!llama_model_load_from_file(t.path, p) && strstr(tiny_log, "llama.context_length"), "another type: %s",
          tiny_log);
    snprintf(o[0].key, sizeof o[0].key, "general.alignment");
    CHECK(!llama_model_load_from_file(t.path, p), "the alignment is overridden");
    tiny_free(&t);
}

static void test_questions(void) {
    struct tiny t = tiny_new(tiny_llama());
    gguf_set_val_str(t.g, "tokenizer.chat_template", "{{ x }}");
    gguf_set_val_u32(t.g, "general.file_type", 0);
    tiny_write(&t);
    struct llama_model *m = load(t.path);
    char text[64];
    CHECK(m, "%s", tiny_log);
    if (!m) { tiny_free(&t); return; }
    CHECK(llama_model_n_embd(m) == 32 && llama_model_n_layer(m) == 1 && llama_model_n_head(m) == 4 &&
          llama_model_n_head_kv(m) == 2, "shape");
    CHECK(llama_model_meta_val_str(m, "llama.context_length", text, sizeof text) == 3 && !strcmp(text, "512"),
          "meta: %s", text);
    CHECK(llama_model_meta_val_str(m, "no such key", text, sizeof text) == -1 && !*text, "absent: %s", text);
    CHECK(llama_model_meta_val_str(m, "general.architecture", text, 4) == 5 && !strcmp(text, "lla"), "cut: %s", text);
    CHECK(!strcmp(llama_model_chat_template(m, NULL), "{{ x }}") && !llama_model_chat_template(m, "tool"), "template");
    int found = 0;
    for (int i = 0; i < llama_model_meta_count(m); i++) {
        CHECK(llama_model_meta_key_by_index(m, i, text, sizeof text) > 0, "key %d", i);
        found += !strcmp(text, "general.architecture");
        CHECK(strcmp(text, "tokenizer.ggml.tokens"), "an array among the keys");
    }
    CHECK(found == 1 && llama_model_meta_key_by_index(m, 1 << 20, text, sizeof text) == -1, "keys");
    CHECK(llama_model_desc(m, text, sizeof text) > 0 && strstr(text, "llama") && strstr(text, "F32"), "%s", text);
    llama_model_free(m);
    tiny_free(&t);
}

/* A file of a 7B model's shape: 4 GB of weights cost no time and no memory. */
static void test_large(void) {
    struct tiny t = tiny_new((struct tiny_shape) { "llama", 32, 4096, 32, 32, 11008, 0, 0, 0, GGML_TYPE_Q4_0, true });
    tiny_write(&t);
    CHECK(file_size(t.path) > (size_t) 3 << 30, "%zu bytes", file_size(t.path));
    int64_t best = INT64_MAX;
    for (int i = 0; i < 5; i++) {       /* the machine may be busy: the best of five */
        const int64_t start = ggml_time_us();
        struct llama_model *m = load(t.path);
        const int64_t took = ggml_time_us() - start;
        CHECK(m && m->bytes_private == 0 && m->bytes_mapped > (size_t) 3 << 30, "%s", tiny_log);
        best = took < best ? took : best;
        llama_model_free(m);
    }
    CHECK(best < 100000, "loading takes %lld us", (long long) best);
    tiny_free(&t);
}

/* ---- several files --------------------------------------------------------------------------------------------- */

/* Part `no` of 2: the first has the keys and the first tensor, the second the rest. */
static void write_part(const struct tiny *t, const char *path, int no, uint16_t no_written, int32_t total) {
    struct gguf_context *g = gguf_init_empty();
    if (no == 0) gguf_set_kv(g, t->g);
    gguf_set_val_u16(g, "split.no", no_written);
    gguf_set_val_u16(g, "split.count", 2);
    gguf_set_val_i32(g, "split.tensors.count", total);
    int i = 0;
    for (struct ggml_tensor *x = ggml_get_first_tensor(t->ctx); x; x = ggml_get_next_tensor(t->ctx, x), i++) {
        if ((i > 0) == no) gguf_add_tensor(g, x);
    }
    gguf_write_to_file(g, path, false);
    gguf_free(g);
}

static void test_splits(void) {
    struct tiny t = tiny_new(tiny_llama());
    char first[64], second[64];
    snprintf(first,  sizeof first,  "/tmp/tiny%d-00001-of-00002.gguf", (int) getpid());
    snprintf(second, sizeof second, "/tmp/tiny%d-00002-of-00002.gguf", (int) getpid());
    const int total = 11;
    write_part(&t, first, 0, 0, total);
    write_part(&t, second, 1, 1, total);
    struct llama_model *m = load(first);
    CHECK(m && m->n_parts == 2, "two parts: %s", tiny_log);
    llama_model_free(m);
    const char *paths[2] = { first, second };
    m = llama_model_load_from_splits(paths, 2, llama_model_default_params());
    CHECK(m, "by list: %s", tiny_log);
    llama_model_free(m);
    CHECK(!load(second) && tiny_errors == 1, "starting with the second: %s", tiny_log);
    write_part(&t, second, 1, 0, total);
    CHECK(!load(first) && strstr(tiny_log, "split.no"), "wrong number: %s", tiny_log);
    write_part(&t, second, 1, 1, total);
    write_part(&t, first, 0, 0, total + 1);
    CHECK(!load(first) && strstr(tiny_log, "split.tensors.count"), "wrong total: %s", tiny_log);
    unlink(second);
    CHECK(!load(first) && strstr(tiny_log, second), "missing part: %s", tiny_log);
    unlink(first);
    tiny_free(&t);
}

/* ---- without a file -------------------------------------------------------------------------------------------- */

static void copy_data(struct ggml_tensor *t, void *tiny) {
    memcpy(t->data, ggml_get_tensor(((struct tiny *) tiny)->ctx, t->name)->data, ggml_nbytes(t));
}

static void test_from_user(void) {
    struct tiny t = tiny_new(tiny_llama());
    tiny_log_clear();
    struct llama_model *m = llama_model_init_from_user(t.g, copy_data, &t, llama_model_default_params());
    CHECK(m, "%s", tiny_log);
    const struct ggml_tensor *want = ggml_get_tensor(t.ctx, "blk.0.ffn_down.weight");
    CHECK(m && !memcmp(m->layers[0].t[FFN_DOWN]->data, want->data, ggml_nbytes(want)), "other bytes");
    llama_model_free(m);
    tiny_u32(&t, "attention.head_count", 0);
    CHECK(!llama_model_init_from_user(t.g, copy_data, &t, llama_model_default_params()) && tiny_errors == 1, "%s",
          tiny_log);
    tiny_free(&t);
}

/* A model that was written and is read again has the same weights and keys. */
static void test_save(void) {
    struct tiny t = tiny_new(tiny_llama());
    char copy[80];
    snprintf(copy, sizeof copy, "%s.copy", t.path);
    tiny_write(&t);
    struct llama_model *m = load(t.path);
    if (m) llama_model_save_to_file(m, copy);
    struct llama_model *again = load(copy);
    CHECK(again && llama_model_n_params(again) == llama_model_n_params(m) &&
          llama_model_meta_count(again) == llama_model_meta_count(m), "%s", tiny_log);
    const struct ggml_tensor *want = ggml_get_tensor(t.ctx, "blk.0.ffn_down.weight");
    CHECK(again && !memcmp(again->layers[0].t[FFN_DOWN]->data, want->data, ggml_nbytes(want)), "other bytes");
    tiny_log_clear();
    if (m) llama_model_save_to_file(m, "/nonexistent/model.gguf");
    CHECK(tiny_errors > 0, "a failure to write is silent");
    struct llama_model_params words = llama_model_default_params();
    words.vocab_only = true;
    struct llama_model *vocabulary = llama_model_load_from_file(t.path, words);
    tiny_log_clear();
    if (vocabulary) llama_model_save_to_file(vocabulary, copy);
    CHECK(vocabulary && tiny_errors == 1 && strstr(tiny_log, "only the vocabulary"), "a model without weights: %s", tiny_log);
    llama_model_free(vocabulary);
    llama_model_free(m);
    llama_model_free(again);
    unlink(copy);
    tiny_free(&t);
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    test_bad_keys();
    test_bad_pairs();
    test_missing_keys();
    test_layer_arrays();
    test_bad_tensors();
    test_truncated();
    test_check_tensors();
    test_modes();
    test_sizes();
    test_progress();
    test_overrides();
    test_questions();
    test_large();
    test_splits();
    test_from_user();
    test_save();
    return DONE();
}
