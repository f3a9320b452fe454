/* Real models give the same bits along a prompt, whatever the number of threads, the cut of the prompt and the
 * instruction set. Skipped where the models are not there. (Tiny models: decode.c. AVX-512 and NEON, emulated:
 * cmake/emulate.cmake, cmake/neon.cmake.) */

#include "check.h"

#include "arenite.h"
#include "llama.h"

#include <unistd.h>

/* `every`: positions whose logits are looked at. Other bits between them would be in the keys that the next one sees. */
static const struct model { const char *file; int n, every; } models[] = { { "smollm2-135m.gguf", 300, 1 }, { "gemma3-270m.gguf", 100, 5 } };
enum { N_TOKENS = 300, N_PORTABLE = 11 };

/* Each against two threads and the whole prompt at once, at the best level. Plain C is slow: it computes the opening of the
 * prompt only, whose logits do not depend on what follows. */
static const struct { int n_threads, step; } runs[] = { { 1, 512 }, { 2, 1 }, { 3, 7 }, { 8, 32 } };

static int      n_vocab;
static uint64_t want[N_TOKENS];

static uint64_t digest(const float *row) {
    uint64_t h = 1, word;
    for (int i = 0; i < n_vocab; i += 2) {
        memcpy(&word, row + i, sizeof word);
        h = (h ^ word ^ h >> 29)*0x9e3779b97f4a7c15u;
    }
    return h;
}

static struct llama_context *context(struct llama_model *m, int n_threads) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = 512;
    p.n_threads = p.n_threads_batch = n_threads;
    p.swa_full = false;
    return llama_init_from_model(m, p);
}

/* The digests of the logits after n arbitrary tokens, given in steps. */
static bool digests(struct llama_model *m, int every, int n_threads, int step, int n, uint64_t *out) {
    struct llama_context *ctx = context(m, n_threads);
    llama_token tokens[N_TOKENS];
    int8_t all[N_TOKENS];
    for (int i = 0; i < n; i++) tokens[i] = 300 + 977*i % 40000, all[i] = i % every == 0;
    bool ok = ctx != NULL;
    for (int i = 0; ok && i < n; i += step) {
        struct llama_batch batch = llama_batch_get_one(tokens + i, n - i < step ? n - i : step);
        batch.logits = all + i;
        ok = llama_decode(ctx, batch) == 0;
        for (int j = 0; ok && j < batch.n_tokens; j++) if (all[i + j]) out[i + j] = digest(llama_get_logits_ith(ctx, j));
    }
    llama_free(ctx);
    return ok;
}

static void check_run(struct llama_model *m, const struct model *about, int n_threads, int step, int n) {
    uint64_t got[N_TOKENS];
    const bool ok = digests(m, about->every, n_threads, step, n, got);
    CHECK(ok, "%s: no logits", about->file);
    for (int i = 0; ok && i < n; i += about->every) {
        CHECK(got[i] == want[i], "%s, %d threads, steps of %d, %s: other bits at token %d", about->file, n_threads, step, arn_cpu_get_level(), i);
    }
}

static void check_bits(struct llama_model *m, const struct model *about) {
    n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m)) & ~1;
    if (!digests(m, about->every, 2, 512, about->n, want)) { CHECK(false, "%s: no logits", about->file); return; }
    CHECK(want[0] != want[about->every], "%s: the same logits everywhere", about->file);
    for (size_t i = 0; i < sizeof runs/sizeof *runs; i++) check_run(m, about, runs[i].n_threads, runs[i].step, about->n);
    for (int i = 0; arn_cpu_level_name(i + 1); i++) {
        const char *name = arn_cpu_level_name(i);
        CHECK(arn_cpu_set_level(name), "level %s", name);
        check_run(m, about, 2, 512, strcmp(name, "portable") ? about->n : N_PORTABLE);
    }
    arn_cpu_set_level(NULL);
}

int main(void) {
    const char *folder = getenv("ARENITE_MODELS");
    for (size_t i = 0; i < sizeof models/sizeof *models; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "models", models[i].file);
        if (access(path, R_OK)) continue;
        struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
        CHECK(m, "%s does not load", path);
        if (m) check_bits(m, &models[i]);
        llama_model_free(m);
    }
    return check_count ? DONE() : 77;
}
