/* The n-th allocation fails, for every n, in what programs do with a model that is loaded: there is an error, nothing leaks,
 * and what was there still answers as before. (Loading and making contexts: quiet.c. Vocabularies and samplers:
 * vocab_memory.c.) */

#include "tiny_lora.h"

#include "arenite.h"
#include "interpose.h"

#if !INTERPOSED
int main(void) { interpose_used(); return 77; }
#else

static struct tiny          tiny;
static struct llama_model  *model;
static struct llama_context *ctx;
static struct tiny_lora     lora;
static struct llama_adapter_lora *adapter;
static float                want[TINY_VOCAB];       /* logits behind the tokens below */
static llama_token          tokens[] = { 1, 70, 260, 261, 262, 263, 264 };
enum { N = sizeof tokens/sizeof *tokens };

static struct llama_context *context(void) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 64;
    p.n_batch = 16;
    p.n_threads = p.n_threads_batch = 1;
    p.n_seq_max = 2;
    p.kv_unified = true;
    p.n_outputs_max = 1;
    return llama_init_from_model(model, p);
}

/* Without its first allocations, no program is told of a failure that has not come: the whole context is made before. */
static bool decoded(void) {
    llama_memory_clear(llama_get_memory(ctx), true);
    return llama_decode(ctx, llama_batch_get_one(tokens, N)) == 0;
}

static bool still_answers(void) { return decoded() && !memcmp(llama_get_logits_ith(ctx, -1), want, sizeof want); }

/* ---- what may fail; each leaves nothing of its own --------------------------------------------------------------------------- */

static bool decode(void) { return decoded(); }

/* All rows are asked for: the output buffer must grow. */
static bool decode_all(void) {
    int8_t all[N];
    memset(all, 1, sizeof all);
    struct llama_batch batch = llama_batch_get_one(tokens, N);
    batch.logits = all;
    llama_memory_clear(llama_get_memory(ctx), true);
    return llama_decode(ctx, batch) == 0;
}

/* Positions move, so that the next batch begins by turning the keys. */
static bool shift(void) {
    if (!decoded()) return false;
    llama_memory_seq_rm(llama_get_memory(ctx), 0, 0, 2);
    llama_memory_seq_add(llama_get_memory(ctx), 0, 2, -1, -2);
    return llama_decode(ctx, llama_batch_get_one(tokens, 1)) == 0;
}

static bool copy_sequence(void) {
    if (!decoded()) return false;
    llama_memory_seq_cp(llama_get_memory(ctx), 0, 1, -1, -1);
    return llama_memory_seq_pos_max(llama_get_memory(ctx), 1) == N - 1;
}

static bool state_file(void) {
    char path[96];
    llama_token read[N];
    size_t n = 0;
    snprintf(path, sizeof path, "%s.state", tiny.path);
    const bool ok = decoded() && llama_state_save_file(ctx, path, tokens, N) && llama_state_load_file(ctx, path, read, N, &n) && n == N;
    unlink(path);
    return ok;
}

static bool sequence_file(void) {
    char path[96];
    llama_token read[N];
    size_t n = 0;
    snprintf(path, sizeof path, "%s.seq", tiny.path);
    const bool ok = decoded() && llama_state_seq_save_file(ctx, path, 0, tokens, N) && llama_state_seq_load_file(ctx, path, 1, read, N, &n) && n == N;
    unlink(path);
    return ok;
}

static bool state_memory(void) {
    static uint8_t bytes[1 << 20];
    if (!decoded()) return false;
    const size_t size = llama_state_get_data(ctx, bytes, sizeof bytes);
    return size && llama_state_set_data(ctx, bytes, size) == size;
}

static bool batch(void) {
    struct llama_batch b = llama_batch_init(8, 0, 3);
    const bool ok = b.token && b.pos && b.n_seq_id && b.seq_id && b.logits;
    CHECK(ok || (!b.token && !b.pos && !b.seq_id), "half a batch");
    llama_batch_free(b);
    return ok;
}

static bool growing_batch(void) {
    struct llama_batch_ext *b = llama_batch_ext_init(ctx);
    bool ok = b != NULL;
    for (int i = 0; ok && i < N; i++) ok = llama_batch_ext_add_token(b, 0, tokens[i]) >= 0;
    llama_batch_ext_free(b);
    return ok;
}

static bool no_entry(const struct arn_plan_entry *entry, void *user_data) { (void) entry, (void) user_data; return true; }
static bool plan(void) { return arn_context_plan(ctx, no_entry, NULL); }

static bool save(void) {
    char path[96];
    snprintf(path, sizeof path, "%s.copy", tiny.path);
    const int before = tiny_errors;
    llama_model_save_to_file(model, path);
    unlink(path);
    return tiny_errors == before;
}

static bool load_copied(void) {
    struct llama_model_params p = llama_model_default_params();
    p.load_mode = LLAMA_LOAD_MODE_NONE;
    struct llama_model *m = llama_model_load_from_file(tiny.path, p);
    llama_model_free(m);
    return m;
}

static bool load_stream(void) {
    FILE *f = fopen(tiny.path, "rb");
    struct llama_model *m = f ? llama_model_load_from_file_ptr(f, llama_model_default_params()) : NULL;
    if (!f) tiny_errors++;                      /* the C library's own */
    if (f) fclose(f);
    llama_model_free(m);
    return m;
}

static bool load_adapter(void) {
    struct llama_adapter_lora *a = llama_adapter_lora_init(model, lora.path);
    llama_adapter_lora_free(a);
    return a;
}

/* A context that could not take the adapter goes on without. */
static bool use_adapter(void) {
    float scale = 1;
    const bool ok = llama_set_adapters_lora(ctx, &adapter, 1, &scale) == 0;
    const long left = fail_at;
    fail_at = 0;
    CHECK(!ok || llama_set_adapters_lora(ctx, NULL, 0, NULL) == 0, "%s", tiny_log);
    fail_at = left;
    return ok;
}

/* And one that could not give it back goes on with it. */
static bool drop_adapter(void) {
    float scale = 1, before[TINY_VOCAB];
    const long left = fail_at;
    fail_at = 0;
    CHECK(llama_set_adapters_lora(ctx, &adapter, 1, &scale) == 0 && decoded(), "%s", tiny_log);
    memcpy(before, llama_get_logits_ith(ctx, -1), sizeof before);
    fail_at = left;
    const bool ok = llama_set_adapters_lora(ctx, NULL, 0, NULL) == 0;
    if (ok) return true;
    CHECK(decoded() && !memcmp(before, llama_get_logits_ith(ctx, -1), sizeof before), "the adapter is half there: %s", tiny_log);
    CHECK(llama_set_adapters_lora(ctx, NULL, 0, NULL) == 0, "%s", tiny_log);
    return false;
}

static float control[64];

static bool use_control(void) {
    const bool ok = llama_set_adapter_cvec(ctx, control, 64, 64, 1, 1) == 0;
    const long left = fail_at;
    fail_at = 0;
    CHECK(!ok || llama_set_adapter_cvec(ctx, NULL, 0, 0, 0, 0) == 0, "%s", tiny_log);
    fail_at = left;
    return ok;
}

/* Planned with its adapters, a context computes without allocating. */
static void decodes_quietly(void) {
    float scale = 1;
    ctx = context();
    if (!ctx || llama_set_adapters_lora(ctx, &adapter, 1, &scale) != 0 || llama_set_adapter_cvec(ctx, control, 64, 64, 1, 1) != 0 || !decoded()) { CHECK(false, "%s", tiny_log); return; }
    const long before = taken;
    CHECK(decoded() && taken == before, "%ld allocations with an adapter", taken - before);
    llama_free(ctx);
}

static bool chat(void) {
    static const struct llama_chat_message messages[] = { { "system", "be" }, { "user", "hi" } };
    const struct arn_chat c = {
        .tmpl = "{% set n = namespace(x='') %}{% macro f(a) %}[{{ a|trim|upper }}]{% endmacro %}{% for m in messages if m.role != 'tool' %}"
                "{% set n.x = n.x ~ f(m.role) %}{{ m.content.split('e')|join(', ') }}{{ {'k': loop.index}|tojson }}{% endfor %}{{ n.x[::-1] }}",
        .messages = messages, .n_messages = 2, .extra_json = "{\"tools\": [1, {\"a\": \"b\\u00e4\"}]}", .now = 1 };
    char text[256], error[256] = "";
    const int32_t n = arn_chat_render(&c, text, sizeof text, error, sizeof error);
    if (n < 0) tiny_errors += error[0] != 0;
    CHECK(n < 0 || !strcmp(text, "b, {\"k\": 1}hi{\"k\": 2}]RESU[]METSYS["), "%s", text);
    return n >= 0;
}

static const struct { const char *name; bool (*run)(void); bool whole; } rows[] = {
    { "decode", decode, true }, { "decode all", decode_all, true }, { "shift", shift, true }, { "copy a sequence", copy_sequence, true },
    { "state in a file", state_file, true }, { "sequence in a file", sequence_file, true }, { "state in memory", state_memory, true },
    { "batch", batch, false }, { "growing batch", growing_batch, true }, { "plan", plan, true }, { "save", save, false },
    { "load, copied", load_copied, false }, { "load a stream", load_stream, false }, { "chat", chat, false },
    { "load an adapter", load_adapter, false }, { "use an adapter", use_adapter, true }, { "drop an adapter", drop_adapter, true },
    { "control vectors", use_control, true },
};

static void every_failure(const char *name, bool (*run)(void), bool whole) {
    int n = 1;
    for (bool reached = true; reached && n < 3000; n++) {
        if (whole && !(ctx = context())) { CHECK(false, "no context: %s", tiny_log); return; }
        tiny_log_clear();
        const long before = held;
        fail_at = n;
        const bool ok = run();
        reached = fail_at == 0;
        fail_at = 0;
        const long after = held;
        CHECK(ok || reached, "%s does not work: %s", name, tiny_log);
        CHECK(ok || tiny_errors > 0, "%s, allocation %d: not a word", name, n);
        CHECK(whole || after == before, "%s, allocation %d: %ld blocks are left", name, n, after - before);
        if (!whole) continue;
        CHECK(still_answers(), "%s, allocation %d: the context answers otherwise: %s", name, n, tiny_log);
        llama_free(ctx);
    }
    CHECK(n < 3000, "%s: no end", name);
    fprintf(stderr, "%s: %d allocations\n", name, n - 2);
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    ggml_log_set(tiny_catch, NULL);
    tiny = tiny_new((struct tiny_shape) { .arch = "gemma3", .n_layer = 2, .n_embd = 64, .n_head = 4, .n_head_kv = 2, .n_ff = 96,
                                          .n_swa = 8, .type = GGML_TYPE_F16 });
    tiny_write(&tiny);
    model = llama_model_load_from_file(tiny.path, llama_model_default_params());
    ctx = model ? context() : NULL;
    if (!ctx || !decoded()) return fprintf(stderr, "%s\n", tiny_log), 1;
    memcpy(want, llama_get_logits_ith(ctx, -1), sizeof want);
    llama_free(ctx);
    for (int i = 0; i < 64; i++) control[i] = (float) i;
    lora = lora_new("gemma3", 4, 8, 0);
    lora_pair(&lora, &tiny, "blk.1.attn_q.weight", GGML_TYPE_F16);
    lora_pair(&lora, &tiny, "token_embd.weight", GGML_TYPE_F32);
    lora_write(&lora);
    adapter = llama_adapter_lora_init(model, lora.path);
    if (!adapter) return fprintf(stderr, "%s\n", tiny_log), 1;
    const long before = held;
    decodes_quietly();
    for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) every_failure(rows[i].name, rows[i].run, rows[i].whole);
    CHECK(held == before, "%ld blocks are left in the end", held - before);
    llama_model_free(model);
    lora_free(&lora);
    tiny_free(&tiny);
    return DONE();
}
#endif
