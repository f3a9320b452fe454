/* Real models give the same bits whatever the number of threads, the cut of the prompt and the instruction set. Skipped where
 * the models are not there. */

#include "check.h"

#include "arenite.h"
#include "llama.h"

#include <unistd.h>

static const char *const files[] = { "smollm2-135m.gguf", "gemma3-270m.gguf" };
enum { N_TOKENS = 9 };

static struct llama_context *context(struct llama_model *m, int n_threads) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 512;
    p.n_threads = p.n_threads_batch = n_threads;
    p.swa_full = false;
    struct llama_context *ctx = llama_init_from_model(m, p);
    CHECK(ctx, "no context");
    return ctx;
}

/* The logits after a prompt of arbitrary tokens, given in steps. */
static const float *prompt(struct llama_context *ctx, int step) {
    llama_token tokens[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = 300 + 977*i % 40000;
    for (int i = 0; i < N_TOKENS; i += step) {
        if (llama_decode(ctx, llama_batch_get_one(tokens + i, N_TOKENS - i < step ? N_TOKENS - i : step))) return NULL;
    }
    return llama_get_logits_ith(ctx, -1);
}

static void check_bits(struct llama_model *m, const char *file) {
    static float want[1 << 19];
    const size_t bytes = (size_t) llama_vocab_n_tokens(llama_model_get_vocab(m))*sizeof *want;
    for (int i = 0; i < 4; i++) {
        struct llama_context *ctx = context(m, (int[]) { 1, 2, 3, 8 }[i]);
        const float *got = ctx ? prompt(ctx, (int[]) { 512, 1, 7, 32 }[i]) : NULL;
        CHECK(got, "%s: no logits", file);
        if (got && i == 0) memcpy(want, got, bytes);
        CHECK(!got || !memcmp(want, got, bytes), "%s: other bits in case %d", file, i);
        llama_free(ctx);
    }
    for (int i = 0; arn_cpu_level_name(i); i++) {
        CHECK(arn_cpu_set_level(arn_cpu_level_name(i)), "level %d", i);
        struct llama_context *ctx = context(m, 2);
        const float *got = ctx ? prompt(ctx, 512) : NULL;
        CHECK(got && !memcmp(want, got, bytes), "%s: other bits with %s", file, arn_cpu_level_name(i));
        llama_free(ctx);
    }
    arn_cpu_set_level(NULL);
}

int main(void) {
    const char *folder = getenv("ARENITE_MODELS");
    for (size_t i = 0; i < sizeof files/sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "models", files[i]);
        if (access(path, R_OK)) continue;
        struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
        CHECK(m, "%s does not load", path);
        if (m) check_bits(m, files[i]);
        llama_model_free(m);
    }
    return check_count ? DONE() : 77;
}
