/* Any bytes as a model's file: it is refused, or it answers, the same whether a prompt comes whole or token by token, after a shift of
 * its positions, and from a saved state. Whatever it is, quantising it ends with a file or a line of error. */

#include "fuzz.h"

#include <math.h>

#include "llama.h"

enum { N = 5 };

/* The last token's logits after the N tokens, `step` at a time; NULL: there is no memory. */
static const float *logits(struct llama_context *ctx, llama_token *tokens, int step) {
    llama_memory_clear(llama_get_memory(ctx), false);
    for (int at = 0; at < N; at += step) {
        const int n = N - at < step ? N - at : step;
        if (llama_decode(ctx, llama_batch_get_one(tokens + at, n))) return NULL;
    }
    return llama_get_logits_ith(ctx, -1);
}

static bool same(const float *a, const float *b, int32_t n) {
    for (int32_t i = 0; i < n; i++) if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

static void restore(struct llama_context *ctx) {
    const size_t size = llama_state_get_size(ctx);
    uint8_t *state = malloc(size + 1);
    if (state && llama_state_get_data(ctx, state, size) == size) require(llama_state_set_data(ctx, state, size) == size, "a state is not taken back");
    free(state);
}

static void compute(struct llama_context *ctx, int32_t n_vocab) {
    llama_token tokens[N];
    for (int i = 0; i < N; i++) tokens[i] = (llama_token) ((int64_t) n_vocab*i/N);
    float *first = malloc((size_t) n_vocab*sizeof *first);
    const float *whole = first ? logits(ctx, tokens, N) : NULL;
    if (whole) memcpy(first, whole, (size_t) n_vocab*sizeof *first);
    const float *single = whole ? logits(ctx, tokens, 1) : NULL;
    if (single) require(same(first, single, n_vocab), "other logits token by token");
    llama_memory_seq_add(llama_get_memory(ctx), 0, 1, -1, 3);
    llama_decode(ctx, llama_batch_get_one(tokens, 1));
    restore(ctx);
    llama_decode(ctx, llama_batch_get_one(tokens, 1));
    free(first);
}

static void use(FILE *file) {
    struct llama_model *m = llama_model_load_from_file_ptr(file, llama_model_default_params());
    if (!m) return;
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 64, p.n_batch = p.n_ubatch = N, p.n_threads = p.n_threads_batch = 1, p.swa_full = false;
    struct llama_context *ctx = llama_init_from_model(m, p);
    if (ctx) compute(ctx, llama_vocab_n_tokens(llama_model_get_vocab(m)));
    llama_free(ctx);
    llama_model_free(m);
}

static void quantize(FILE *file, size_t size) {
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    char path[32];
    p.ftype = size % 2 ? LLAMA_FTYPE_MOSTLY_Q4_K_M : LLAMA_FTYPE_MOSTLY_Q8_0;
    p.allow_requantize = true, p.nthread = 1;
    snprintf(path, sizeof path, "/dev/fd/%d", fileno(file));
    llama_model_quantize(path, "/dev/null", &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FILE *file = file_of(data, size);
    llama_log_set(quiet, NULL);
    if (!file) return 0;
    use(file);
    quantize(file, size);
    fclose(file);
    return 0;
}
