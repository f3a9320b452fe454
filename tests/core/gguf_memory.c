/* The n-th allocation fails, for every n: the reader returns NULL after a line of log, setters leave the context as it was and
 * mark it, and nothing is leaked. */

#include "gguf_cases.h"

#if SANITIZED || !defined(__GLIBC__)
int main(void) { return check_skipped(); }
#else

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void  __libc_free(void *p);

static long fail_at = -1, calls, held;          /* fail_at counts down from the next call on; held: blocks not freed */
static bool refused(void) { calls++; return fail_at >= 0 && fail_at-- == 0; }

void *malloc(size_t n) {
    void *p = refused() ? NULL : __libc_malloc(n);
    if (p) held++;
    return p;
}
void *calloc(size_t n, size_t size) {
    void *p = refused() ? NULL : __libc_calloc(n, size);
    if (p) held++;
    return p;
}
void *realloc(void *old, size_t n) {
    void *p = refused() ? NULL : __libc_realloc(old, n);
    if (p && !old) held++;
    return p;
}
void *aligned_alloc(size_t align, size_t n);
int   posix_memalign(void **p, size_t align, size_t n);
void *memalign(size_t align, size_t n);
void *__libc_memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n) {
    void *p = refused() ? NULL : __libc_memalign(align, n);
    if (p) held++;
    return p;
}
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n) { return (*p = memalign(align, n)) ? 0 : 12; }
void free(void *p) {
    if (p) held--;
    __libc_free(p);
}

static int said;
static void hear(enum ggml_log_level level, const char *text, void *user) {
    (void) text, (void) user;
    if (level == GGML_LOG_LEVEL_ERROR) said++;
}

static struct bytes file(void) {
    const struct gguf_case c = { "memory", .kv = {
        { "strings", .type = GGUF_TYPE_ARRAY, RAW("\10\0\0\0" "\2\0\0\0\0\0\0\0" "\3\0\0\0\0\0\0\0" "abc" "\0\0\0\0\0\0\0\0") },
        { "numbers", .type = GGUF_TYPE_ARRAY, RAW("\4\0\0\0" "\2\0\0\0\0\0\0\0" "12345678") } },
        .t = { T_F32(8), { "y", 0, 1, { 5 }, GGML_TYPE_F32, 32 } }, .data = 52 };
    return gguf_case_bytes(&c, false);
}

static void check_reader(const struct bytes *b, const struct gguf_init_params params) {
    for (long n = 0; ; n++) {
        if (params.ctx) *params.ctx = NULL;
        const long before = held;
        said = 0;
        fail_at = n;
        struct gguf_context *g = gguf_init_from_buffer(b->p, b->n, params);
        const bool reached = fail_at < 0;
        fail_at = -1;
        CHECK(!g == reached && (said > 0) == reached, "allocation %ld: %s, %d errors", n, g ? "loads" : "NULL", said);
        CHECK(g || !params.ctx || !*params.ctx, "allocation %ld: a context is left", n);
        if (params.ctx && *params.ctx) ggml_free(*params.ctx);
        gguf_free(g);
        CHECK(held == before, "allocation %ld: %ld blocks leaked", n, held - before);
        if (!reached) return;
        if (n > 1000) { CHECK(false, "no end"); return; }
    }
}

static void set_number(struct gguf_context *g)  { gguf_set_val_u32(g, "k", 1); }
static void set_string(struct gguf_context *g)  { gguf_set_val_str(g, "k", "text"); }
static void set_strings(struct gguf_context *g) { gguf_set_arr_str(g, "k", (const char *[]) { "a", "b" }, 2); }
static void replace(struct gguf_context *g)     { gguf_set_val_f64(g, "old", 2.0); }
static void add_tensor(struct gguf_context *g)  { struct ggml_tensor t = { .type = GGML_TYPE_I8, .ne = { 4, 1, 1, 1 }, .nb = { 1, 4, 4, 4 } }; gguf_add_tensor(g, &t); }
static void (*const setters[])(struct gguf_context *) = { set_number, set_string, set_strings, replace, add_tensor };

static void check_setters(void) {
    for (size_t i = 0; i < sizeof setters/sizeof *setters; i++) {
        for (long n = 0, reached = 1; reached; n++) {
            const long before = held;
            struct gguf_context *g = gguf_init_empty();
            gguf_set_val_u32(g, "old", 7);
            said = 0;
            fail_at = n;
            setters[i](g);
            reached = fail_at < 0;
            fail_at = -1;
            if (reached) {
                CHECK(gguf_get_n_kv(g) == 1 && gguf_get_n_tensors(g) == 0 && gguf_get_val_u32(g, 0) == 7, "setter %zu: changed", i);
                CHECK(said == 1 && !gguf_write_to_file(g, "/dev/null", true), "setter %zu: an incomplete file is written", i);
            } else {
                CHECK(said == 0 && gguf_write_to_file(g, "/dev/null", true), "setter %zu", i);
            }
            gguf_free(g);
            CHECK(held == before, "setter %zu, allocation %ld: %ld blocks leaked", i, n, held - before);
        }
    }
}

int main(void) {
    struct ggml_context *ggml = NULL;
    struct bytes b = file();
    ggml_log_set(hear, NULL);
    check_reader(&b, (struct gguf_init_params) { true, NULL });
    check_reader(&b, (struct gguf_init_params) { true, &ggml });
    check_reader(&b, (struct gguf_init_params) { false, &ggml });
    check_setters();
    CHECK(calls > 100, "only %ld calls were seen", calls);
    free(b.p);
    return DONE();
}
#endif
