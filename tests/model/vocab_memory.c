/* The n-th allocation fails, for every n: loading a vocabulary, tokenizing and making samplers end with an error, and nothing is
 * leaked. Turning ids into text allocates nothing. */

#include "vocabs.h"

#if SANITIZED || !defined(__GLIBC__)
int main(void) { return 77; }
#else

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void  __libc_free(void *p);

static long fail_at = -1, held, calls;      /* fail_at counts down; held: blocks not freed */
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
void free(void *p) {
    if (p) held--;
    __libc_free(p);
}

/* Runs until it succeeds, failing one allocation later each time; `run` returns whether it did. */
static void every_failure(const char *what, bool (*run)(void)) {
    int n = 0;
    for (bool done = false; !done && n < 1000; n++) {
        const long before = held;
        n_errors = 0;
        fail_at = n;
        done = run();
        fail_at = -1;
        CHECK(held == before, "%s, allocation %d: %ld blocks left", what, n, held - before);
        CHECK(done || n_errors > 0, "%s, allocation %d: no word", what, n);
    }
    CHECK(n > 1 && n < 1000, "%s: %d allocations", what, n);
}

static struct gguf_context *spm_file, *bpe_file;
static struct llama_vocab *spm, *bpe;

static bool load_spm(void) { struct llama_vocab *v = vocab_new(spm_file); vocab_free(v); return v; }
static bool load_bpe(void) { struct llama_vocab *v = vocab_new(bpe_file); vocab_free(v); return v; }

static bool tokenize(const struct llama_vocab *v) {
    llama_token ids[1000];
    static char text[300];
    memset(text, 'a', sizeof text);
    return llama_tokenize(v, text, sizeof text, ids, 1000, true, true) > 0;
}
static bool tokenize_spm(void) { return tokenize(spm); }
static bool tokenize_bpe(void) { return tokenize(bpe); }

static bool chain(void) {
    const llama_logit_bias bias = { 1, 1.0f };
    const char *breakers[] = { "\n", "ab" };
    struct llama_sampler *parts[] = { llama_sampler_init_top_k(1), llama_sampler_init_greedy(),
        llama_sampler_init_penalties(10, 5, 1, 1, 1), llama_sampler_init_logit_bias(10, 1, &bias),
        llama_sampler_init_dry(bpe, 1.0f, 2.0f, 2, 10, breakers, 2), llama_sampler_init_dist(1), llama_sampler_init_infill(bpe),
        llama_sampler_init_temp(1.0f), llama_sampler_init_min_p(0.1f, 1), llama_sampler_init_xtc(1, 0.1f, 1, 1) };
    enum { PARTS = sizeof parts/sizeof *parts };
    struct llama_sampler *made = llama_sampler_chain_init(llama_sampler_chain_default_params()), *clone = NULL;
    for (int i = 0; i < PARTS; i++) {
        if (made) llama_sampler_chain_add(made, parts[i]);
        else      llama_sampler_free(parts[i]);
    }
    const bool whole = made && llama_sampler_chain_n(made) == PARTS;
    if (whole) clone = llama_sampler_clone(made);
    const bool ok = clone != NULL;
    llama_sampler_free(made);
    llama_sampler_free(clone);
    return ok;
}

static void text_without_memory(void) {
    llama_token ids[300];
    char text[600];
    for (int i = 0; i < 300; i++) ids[i] = i;
    calls = 0;
    CHECK(llama_detokenize(spm, ids, 300, text, 600, true, true) > 0 && llama_detokenize(bpe, ids, 300, text, 600, false, true) > 0
        && llama_token_to_piece(bpe, 65, text, 8, 0, true) == 1, "text");
    CHECK(calls == 0, "%ld allocations", calls);
}

int main(void) {
    static struct small s;
    static const char *rules[] = { "a a", "aa aa" };
    llama_log_set(hear, NULL);
    small_spm(&s);
    small_add(&s, "aa", 1.0f, LLAMA_TOKEN_TYPE_NORMAL);
    spm_file = small_gguf(&s, "llama");
    const int32_t suppressed = 3;
    gguf_set_arr_data(spm_file, "tokenizer.ggml.suppress_tokens", GGUF_TYPE_INT32, &suppressed, 1);
    small_bpe(&s);
    small_add(&s, "aa", 0.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "aaaa", 0.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "<|im_end|>", 0.0f, LLAMA_TOKEN_TYPE_CONTROL);
    bpe_file = small_gguf(&s, "gpt2");
    gguf_set_val_str(bpe_file, "tokenizer.ggml.pre", "llama-bpe");
    gguf_set_arr_str(bpe_file, "tokenizer.ggml.merges", rules, 2);
    spm = vocab_new(spm_file);
    bpe = vocab_new(bpe_file);

    every_failure("loading SPM", load_spm);
    every_failure("loading BPE", load_bpe);
    every_failure("tokenizing SPM", tokenize_spm);
    every_failure("tokenizing BPE", tokenize_bpe);
    every_failure("samplers", chain);
    text_without_memory();
    vocab_free(spm);
    vocab_free(bpe);
    gguf_free(spm_file);
    gguf_free(bpe_file);
    return DONE();
}
#endif
