/* Real models answer: the best next tokens and their logits are those of the exact model, and the bits do not depend on
 * threads, on how the prompt is cut, or on the instruction set. Skipped where the models are not there. */

#include "check.h"

#include "arenite.h"
#include "llama.h"

#include <unistd.h>

struct answer {
    const char        *file;
    const llama_token *tokens;
    int                n;
    const llama_token *best;        /* [8] */
    const float       *logits;      /* [8] */
};

#define LIST(...) { __VA_ARGS__ }
#define COUNT(...) (int) (sizeof (llama_token[]) __VA_ARGS__/sizeof(llama_token))
#define ANSWER(file, tokens, best, logits) \
    { file, (const llama_token[]) tokens, COUNT(tokens), (const llama_token[]) best, (const float[]) logits },
static const struct answer answers[] = {
#include "answers.def"
};
enum { N_ANSWERS = sizeof answers/sizeof *answers };

static struct llama_context *context(struct llama_model *m, int n_threads) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 512;
    p.n_threads = p.n_threads_batch = n_threads;
    p.swa_full = false;
    struct llama_context *ctx = llama_init_from_model(m, p);
    CHECK(ctx, "no context");
    return ctx;
}

/* The logits after the prompt, given in steps. */
static const float *prompt(struct llama_context *ctx, const struct answer *a, int step) {
    llama_token tokens[64];
    memcpy(tokens, a->tokens, (size_t) a->n*sizeof *tokens);
    llama_memory_clear(llama_get_memory(ctx), false);
    for (int i = 0; i < a->n; i += step) {
        if (llama_decode(ctx, llama_batch_get_one(tokens + i, a->n - i < step ? a->n - i : step))) return NULL;
    }
    return llama_get_logits_ith(ctx, -1);
}

static void check_answer(struct llama_context *ctx, const struct answer *a) {
    const float *logits = prompt(ctx, a, a->n);
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    CHECK(logits, "%s: no logits", a->file);
    if (!logits) return;
    int best = 0;
    for (int v = 1; v < n_vocab; v++) best = logits[v] > logits[best] ? v : best;
    /* 8-bit activations move logits by some tenths: what is closer than that to the best may win */
    int place = 0;
    while (place < 8 && a->best[place] != best) place++;
    CHECK(place < 8 && a->logits[0] - a->logits[place] < 0.5f, "%s: token %d wins", a->file, best);
    for (int i = 0; i < 8; i++) {
        const float e = fabsf(logits[a->best[i]] - a->logits[i]);
        CHECK(e < 1.0f, "%s: token %d is %g, exactly %g", a->file, a->best[i], (double) logits[a->best[i]], (double) a->logits[i]);
    }
}

static void check_bits(struct llama_model *m, const struct answer *a) {
    static float want[1 << 19];
    const size_t bytes = (size_t) llama_vocab_n_tokens(llama_model_get_vocab(m))*sizeof *want;
    for (int i = 0; i < 4; i++) {
        struct llama_context *ctx = context(m, (int[]) { 1, 2, 3, 8 }[i]);
        const float *got = ctx ? prompt(ctx, a, (int[]) { 512, 1, 7, 32 }[i]) : NULL;
        CHECK(got, "%s: no logits", a->file);
        if (got && i == 0) memcpy(want, got, bytes);
        CHECK(!got || !memcmp(want, got, bytes), "%s: other bits in case %d", a->file, i);
        llama_free(ctx);
    }
    for (int i = 0; arn_cpu_level_name(i); i++) {
        CHECK(arn_cpu_set_level(arn_cpu_level_name(i)), "level %d", i);
        struct llama_context *ctx = context(m, 2);
        const float *got = ctx ? prompt(ctx, a, 512) : NULL;
        CHECK(got && !memcmp(want, got, bytes), "%s: other bits with %s", a->file, arn_cpu_level_name(i));
        llama_free(ctx);
    }
    arn_cpu_set_level(NULL);
}

int main(void) {
    const char *folder = getenv("ARENITE_MODELS");
    struct llama_model *m = NULL;
    struct llama_context *ctx = NULL;
    for (int i = 0; i < N_ANSWERS; i++) {
        const struct answer *a = &answers[i];
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "models", a->file);
        if (access(path, R_OK)) continue;
        const bool first = i == 0 || strcmp(a->file, answers[i - 1].file);
        if (first) {
            llama_free(ctx);
            llama_model_free(m);
            m   = llama_model_load_from_file(path, llama_model_default_params());
            ctx = m ? context(m, 2) : NULL;
            CHECK(ctx, "%s does not load", path);
            if (m) check_bits(m, a);
        }
        if (ctx) check_answer(ctx, a);
    }
    llama_free(ctx);
    llama_model_free(m);
    return check_count ? DONE() : 77;
}
