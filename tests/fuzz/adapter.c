/* Any bytes as a low-rank adapter of a small model: they are refused, or the model answers with them, with finite scales or none. */

#include "fuzz.h"

#include "model/tiny.h"

static struct llama_model *model(void) {
    struct tiny t = tiny_new((struct tiny_shape) { .arch = "llama", .n_layer = 1, .n_embd = 8, .n_head = 2, .n_head_kv = 1, .n_ff = 8, .n_expert = 3,
                                                   .n_used = 2, .type = GGML_TYPE_F32 });
    tiny_write(&t);
    struct llama_model *m = llama_model_load_from_file(t.path, llama_model_default_params());
    tiny_free(&t);
    (void) check_count, (void) check_failed;
    return m;
}

static void use(struct llama_context *ctx, struct llama_adapter_lora *a) {
    llama_token tokens[3] = { 1, 70, TINY_VOCAB - 1 };
    float scale = -0.5f;
    char text[16];
    for (int i = 0; i < llama_adapter_meta_count(a); i++) {
        llama_adapter_meta_key_by_index(a, i, text, sizeof text);
        llama_adapter_meta_val_str_by_index(a, i, text, sizeof text);
    }
    if (llama_set_adapters_lora(ctx, &a, 1, &scale)) return;
    llama_memory_clear(llama_get_memory(ctx), false);
    require(llama_decode(ctx, llama_batch_get_one(tokens, 3)) || llama_get_logits_ith(ctx, -1), "no logits");
    require(!llama_set_adapters_lora(ctx, NULL, 0, NULL), "an adapter is not taken away");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct llama_model *m;
    static struct llama_context *ctx;
    struct llama_context_params p = llama_context_default_params();
    llama_log_set(quiet, NULL);
    p.n_ctx = 64, p.n_batch = p.n_ubatch = 3, p.n_threads = p.n_threads_batch = 1;
    if (!m)   m = model();
    if (!ctx) ctx = llama_init_from_model(m, p);
    require(ctx, "no context");
    FILE *file = file_of(data, size);
    if (!file) return 0;
    struct llama_adapter_lora *a = llama_adapter_lora_init_from_file_ptr(m, file);
    fclose(file);
    if (a) use(ctx, a);
    llama_adapter_lora_free(a);
    return 0;
}
