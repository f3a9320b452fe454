/* Generation is quiet: after the first token no call to malloc, calloc, realloc, free, mmap, munmap or sbrk, no new thread,
 * no growing resident memory. And creation is careful: whichever allocation fails while a model and its context are made,
 * there is an error, nothing leaks, and the next try succeeds. */

#define _GNU_SOURCE

#include "tiny.h"

#include "arenite.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#if SANITIZED || !defined(__GLIBC__)
int main(void) { return 77; }           /* the allocator is the sanitizer's */
#else

/* ---- the allocator, watched ------------------------------------------------------------------------------------ */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void  __libc_free(void *);

static bool watching;
static long calls, live, fail_at = -1;      /* fail_at counts down to the allocation that fails */

static bool fails(void) {
    if (!watching) return false;
    calls++;
    return fail_at >= 0 && fail_at-- == 0;
}
static void *counted(void *p) { live += p && watching; return p; }

void *malloc(size_t n)                  { return fails() ? NULL : counted(__libc_malloc(n)); }
void *calloc(size_t n, size_t size)     { return fails() ? NULL : counted(__libc_calloc(n, size)); }
void *aligned_alloc(size_t a, size_t n) { return fails() ? NULL : counted(__libc_memalign(a, n)); }
void *realloc(void *p, size_t n) {
    if (fails()) return NULL;
    void *q = __libc_realloc(p, n);
    live += watching && !p && q;
    return q;
}
int posix_memalign(void **p, size_t a, size_t n) {
    if (fails()) return 12;
    return (*p = counted(__libc_memalign(a, n))) ? 0 : 12;
}
void free(void *p) {
    if (watching && p) calls++, live--;
    __libc_free(p);
}
void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t offset) {
    calls += watching;
    return (void *) syscall(SYS_mmap, p, n, prot, flags, fd, offset);
}
int munmap(void *p, size_t n) {
    calls += watching;
    return (int) syscall(SYS_munmap, p, n);
}

/* ---- what the kernel says -------------------------------------------------------------------------------------- */

static long status_field(const char *name) {
    char text[4096], *at;
    FILE *f = fopen("/proc/self/status", "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return (at = strstr(text, name)) ? atol(at + strlen(name) + 1) : -1;
}

static struct llama_sampler *sampler;      /* sampling allocates nothing either, once it has its buffer */

static int generate(struct llama_context *ctx, int n, llama_token *token) {
    for (int i = 0; i < n; i++) {
        if (llama_decode(ctx, llama_batch_get_one(token, 1))) return i;
        *token = llama_sampler_sample(sampler, ctx, -1);
        if (*token < 0) return i;
    }
    return n;
}

static struct llama_sampler *usual_sampler(void) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_penalties(TINY_VOCAB, 64, 1.1f, 0.0f, 0.0f));
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(40));
    llama_sampler_chain_add(chain, llama_sampler_init_top_p(0.95f, 1));
    llama_sampler_chain_add(chain, llama_sampler_init_temp(0.8f));
    llama_sampler_chain_add(chain, llama_sampler_init_dist(1));
    return chain;
}

static struct llama_context_params params(void) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 2304;
    p.n_ubatch = 64;
    p.n_threads = p.n_threads_batch = 2;
    p.swa_full = false;
    return p;
}

static void test_generation(const struct tiny_shape shape) {
    struct tiny t = tiny_new(shape);
    tiny_write(&t);
    struct llama_model *m = llama_model_load_from_file(t.path, llama_model_default_params());
    struct llama_context *ctx = m ? llama_init_from_model(m, params()) : NULL;
    CHECK(ctx, "%s", tiny_log);
    llama_token prompt[100], token = 5;
    for (int i = 0; i < 100; i++) prompt[i] = i;
    if (ctx && llama_decode(ctx, llama_batch_get_one(prompt, 100)) == 0 && generate(ctx, 1, &token) == 1) {
        const long threads = status_field("Threads:"), rss = status_field("VmRSS:");
        calls = 0;
        watching = true;
        const int done = generate(ctx, 2000, &token);
        const long during = calls;
        watching = false;
        CHECK(done == 2000, "stopped at %d: %s", done, tiny_log);
        CHECK(during == 0, "%s: %ld calls to the allocator", shape.arch, during);
        CHECK(status_field("Threads:") == threads, "%ld threads, %ld before", status_field("Threads:"), threads);
        const long kv = (long) (arn_context_memory(ctx).kv >> 10);      /* pages of the cache are touched as it fills */
        CHECK(status_field("VmRSS:") <= rss + kv + 200, "resident: %ld kB, %ld before", status_field("VmRSS:"), rss);
    } else {
        CHECK(false, "the prompt: %s", tiny_log);
    }
    /* prompts of other sizes than were reserved re-plan in place */
    if (ctx) {
        llama_memory_clear(llama_get_memory(ctx), false);
        for (int round = 0; round < 2; round++) {
            calls = 0;
            watching = round > 0;
            for (int n = 1; n <= 64; n += 9) {
                CHECK(llama_decode(ctx, llama_batch_get_one(prompt, n)) == 0, "%s", tiny_log);
                llama_memory_clear(llama_get_memory(ctx), false);
            }
            watching = false;
            CHECK(round == 0 || calls == 0, "%s: %ld calls to the allocator in prompts", shape.arch, calls);
        }
    }
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

/* ---- the n-th allocation fails --------------------------------------------------------------------------------- */

static bool make_all(const char *path) {
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    struct llama_context *ctx = m ? llama_init_from_model(m, params()) : NULL;
    llama_token tokens[3] = { 1, 2, 3 };
    const bool ok = ctx && llama_decode(ctx, llama_batch_get_one(tokens, 3)) == 0;
    llama_free(ctx);
    llama_model_free(m);
    return ok;
}

static void test_failures(const struct tiny_shape shape) {
    struct tiny t = tiny_new(shape);
    tiny_write(&t);
    CHECK(make_all(t.path), "%s", tiny_log);
    int n = 0;
    for (bool ok = false; !ok && n < 2000; n++) {
        tiny_log_clear();
        live = 0;
        fail_at = n;
        watching = true;
        ok = make_all(t.path);
        const bool reached = fail_at < 0;
        const long left = live;
        watching = false;
        fail_at = -1;
        CHECK(left == 0, "allocation %d: %ld blocks leak", n, left);
        CHECK(ok || tiny_errors > 0, "allocation %d fails silently", n);
        if (ok && reached) ok = false;      /* it went on without what it could not get */
    }
    CHECK(n > 30 && n < 2000, "%d allocations", n);
    CHECK(make_all(t.path), "afterwards: %s", tiny_log);
    tiny_free(&t);
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    ggml_log_set(tiny_catch, NULL);
    const struct tiny_shape llama = { "llama",  2, 64, 4, 2, 96, 0, 0,  0, GGML_TYPE_F32, false };
    const struct tiny_shape gemma = { "gemma3", 6, 64, 4, 1, 96, 0, 0, 24, GGML_TYPE_F16, false };
    sampler = usual_sampler();
    test_generation(llama);
    test_generation(gemma);
    llama_sampler_free(sampler);
    test_failures(llama);
    test_failures(gemma);
    return DONE();
}
#endif
