/* Any bytes as a state of a context, of one of its sequences, or as a file of either: they are refused and nothing changes, or what they
 * hold goes on. The first byte says which, the second what is done with the memory then. */

#include "fuzz.h"

#include "model/tiny.h"

enum { WHOLE, SEQUENCE, WINDOW, FILE_WHOLE, FILE_SEQUENCE, WAYS };

/* One layer that sees everything and one with a window: both caches are there. */
static struct llama_context *context(void) {
    struct tiny t = tiny_new((struct tiny_shape) { .arch = "gemma3", .n_layer = 2, .n_embd = 8, .n_head = 2, .n_head_kv = 1, .n_ff = 8, .n_swa = 4,
                                                   .type = GGML_TYPE_F16 });
    tiny_u32(&t, "attention.sliding_window_pattern", 2);
    tiny_write(&t);
    struct llama_model *m = llama_model_load_from_file(t.path, llama_model_default_params());
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 256, p.n_batch = p.n_ubatch = 4, p.n_seq_max = 3, p.n_threads = p.n_threads_batch = 1, p.swa_full = false;
    struct llama_context *ctx = m ? llama_init_from_model(m, p) : NULL;
    tiny_free(&t);
    (void) check_count, (void) check_failed;
    require(ctx, "no context");
    return ctx;
}

static bool load_file(struct llama_context *ctx, int way, const uint8_t *data, size_t size) {
    char path[64];
    llama_token tokens[8];
    size_t n;
    snprintf(path, sizeof path, "/tmp/state-%d", (int) getpid());
    FILE *f = fopen(path, "wb");
    const bool written = f && fwrite(data, 1, size, f) == size;
    if (f) fclose(f);
    const bool ok = written && (way == FILE_WHOLE ? llama_state_load_file(ctx, path, tokens, 8, &n)
                                                  : llama_state_seq_load_file(ctx, path, 1, tokens, 8, &n) > 0);
    unlink(path);
    return ok;
}

static bool load(struct llama_context *ctx, int way, const uint8_t *data, size_t size) {
    switch (way) {
        case WHOLE:    return llama_state_set_data(ctx, data, size) > 0;
        case SEQUENCE: return llama_state_seq_set_data(ctx, data, size, 1) > 0;
        case WINDOW:   return llama_state_seq_set_data_ext(ctx, data, size, 1, LLAMA_STATE_SEQ_FLAGS_SWA_ONLY) > 0;
        default:       return load_file(ctx, way, data, size);
    }
}

/* Each sequence goes on, with positions of its own making. */
static void go_on(struct llama_context *ctx) {
    for (llama_seq_id s = 0; s < 3; s++) {
        llama_token tokens[2] = { 4, 5 };
        llama_seq_id *seqs[2] = { &s, &s };
        int32_t counts[2] = { 1, 1 };
        const struct llama_batch b = { .n_tokens = 2, .token = tokens, .n_seq_id = counts, .seq_id = seqs };
        require(llama_decode(ctx, b) || llama_get_logits_ith(ctx, -1), "no logits");
    }
}

static void change(llama_memory_t mem, uint8_t how) {
    switch (how % 7) {
        case 1: llama_memory_seq_add (mem, 1, 0, -1, how);       break;
        case 2: llama_memory_seq_add (mem, 0, 1, -1, INT32_MAX); break;
        case 3: llama_memory_seq_add (mem, 0, 1, -1, -how);      break;
        case 4: llama_memory_seq_div (mem, 1, 0, -1, 3);         break;
        case 5: llama_memory_seq_cp  (mem, 1, 2, -1, how);       break;
        case 6: llama_memory_seq_rm  (mem, 1, how/7, -1);        break;
        default:                                                 break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct llama_context *ctx;
    llama_log_set(quiet, NULL);
    if (!ctx) ctx = context();
    if (size < 2) return 0;
    llama_memory_clear(llama_get_memory(ctx), false);
    if (!load(ctx, data[0]%WAYS, data + 2, size - 2)) {
        for (llama_seq_id s = 0; s < 3; s++) require(llama_memory_seq_pos_max(llama_get_memory(ctx), s) < 0, "something of a state that was refused");
        return 0;
    }
    go_on(ctx);
    change(llama_get_memory(ctx), data[1]);
    go_on(ctx);
    return 0;
}
