/* Memory with real models, by the kernel's own accounting: loading takes little beside what the file's mapping has; the plan
 * is what a full context then uses, to 1 %; generating up to 2,000 tokens calls no allocator, starts no thread and touches nothing but
 * new rows of the cache. Skipped where the models are not there. (Tiny models: quiet.c.) */

#define _GNU_SOURCE

#include "check.h"

#include "arenite.h"
#include "interpose.h"
#include "llama.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !INTERPOSED
int main(void) { interpose_used(); return 77; }
#else

/* Caches come in steps of 256 cells: with the prompt and one token more they are full at the end. The window of the second is
 * 512 tokens, so its cache has gone round by then. */
static const struct { const char *file; int n_generated; } models[] = { { "smollm2-135m.gguf", 2000 }, { "gemma3-270m.gguf", 464 } };
enum { N_PROMPT = 303 };

/* ---- what is counted: every way to memory --------------------------------------------------------------------------------------- */

static _Atomic long maps;

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t offset) {
    maps++;
    return (void *) syscall(SYS_mmap, p, n, prot, flags, fd, offset);
}
int munmap(void *p, size_t n) { maps++; return (int) syscall(SYS_munmap, p, n); }

/* Calls to the allocator, blocks given back (as a change of blocks held), mappings, and the end of the heap. */
struct calls { long taken, held, maps, started; void *end; };
static struct calls calls(void) { return (struct calls) { taken, held, maps, started, sbrk(0) }; }

static double private_bytes(void) {
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) if (!strncmp(line, "RssAnon:", 8)) kb = (double) atol(line + 8);
    if (f) fclose(f);
    return 1024*kb;
}

/* Resident bytes of the mapping of this file. */
static double mapped_bytes(const char *path) {
    char line[4400];
    double kb = 0;
    bool in = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strchr(line, '-') && strstr(line, " r")) in = strstr(line, path) != NULL;
        if (in && !strncmp(line, "Rss:", 4)) kb += (double) atol(line + 4);
    }
    if (f) fclose(f);
    return 1024*kb;
}

/* ---- the run ----------------------------------------------------------------------------------------------------------------------- */

static llama_token likeliest(struct llama_context *ctx, int n_vocab) {
    const float *x = llama_get_logits_ith(ctx, -1);
    int best = 0;
    for (int i = 1; i < n_vocab; i++) if (x[i] > x[best]) best = i;
    return best;
}

static bool generate(struct llama_context *ctx, int n_vocab, int n, llama_token *token) {
    for (int i = 0; i < n; i++) {
        if (llama_decode(ctx, llama_batch_get_one(token, 1))) return false;
        *token = likeliest(ctx, n_vocab);
    }
    return true;
}

static struct llama_context *context(struct llama_model *m, int n_ctx) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = (uint32_t) n_ctx;
    p.n_batch = p.n_ubatch = N_PROMPT;
    p.n_threads = p.n_threads_batch = 1;
    p.swa_full = false;
    return llama_init_from_model(m, p);
}

/* Resident memory of this process after loading, with a context, after the first token, and at the end. */
struct stages { double loaded, ready, first, last, mapped; };

static void check_figures(const char *path, const struct arn_memory *p, const struct stages *s, double grown_rows) {
    struct stat file = { 0 };
    CHECK(!stat(path, &file), "%s is gone", path);
    const double private = (double) (p->weights_private + p->kv + p->activations + p->scratch + p->outputs + p->other);
    const double planned = private + (double) (p->weights_mapped + p->metadata), used = s->last + s->mapped;
    fprintf(stderr, "%s: planned %.2f MB, used %.2f MB; private after loading %.2f MB, with a context %.2f MB\n", path, planned/1e6, used/1e6,
            s->loaded/1e6, s->ready/1e6);
    CHECK(s->ready < 0.05*(double) file.st_size + (double) (p->kv + p->activations), "%.0f bytes are private", s->ready);
    CHECK(fabs(used - planned) < 0.01*planned, "%.0f bytes planned, %.0f used", planned, used);
    CHECK(s->last - s->first < (double) p->kv*grown_rows + 300e3, "private: %.0f bytes after one token, %.0f at the end", s->first, s->last);
}

static void check_model(const char *path, int n_generated) {
    const int n_ctx = N_PROMPT + 1 + n_generated;
    const double before = private_bytes();
    struct stages s;
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    s.loaded = private_bytes() - before;
    struct llama_context *ctx = m ? context(m, n_ctx) : NULL;
    s.ready = private_bytes() - before;
    CHECK(ctx, "%s: no context", path);
    if (!ctx) return;
    const struct arn_memory plan = arn_context_memory(ctx);
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
    llama_token prompt[N_PROMPT], token;
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = 300 + 977*i % 40000;
    CHECK(llama_decode(ctx, llama_batch_get_one(prompt, N_PROMPT)) == 0, "the prompt");
    token = likeliest(ctx, n_vocab);
    CHECK(generate(ctx, n_vocab, 1, &token), "the first token");
    s.first = private_bytes() - before;
    const struct calls then = calls();
    CHECK(generate(ctx, n_vocab, n_generated, &token), "generation");
    const struct calls now = calls();
    s.last = private_bytes() - before;
    s.mapped = mapped_bytes(path);
    CHECK(now.taken == then.taken && now.held == then.held, "%ld allocations, %ld blocks freed", now.taken - then.taken, then.held - now.held);
    CHECK(now.maps == then.maps && now.end == then.end && now.started == then.started, "%ld mappings, %ld threads", now.maps - then.maps, now.started - then.started);
    check_figures(path, &plan, &s, (double) n_generated/n_ctx);
    llama_free(ctx);
    llama_model_free(m);
}

int main(void) {
    const char *folder = getenv("ARENITE_MODELS");
    for (size_t i = 0; i < sizeof models/sizeof *models; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "models", models[i].file);
        char *const real = realpath(path, NULL);                /* as the kernel calls the mapping */
        if (real) check_model(real, models[i].n_generated);
        free(real);
    }
    return check_count ? DONE() : 77;
}
#endif
