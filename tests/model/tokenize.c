/* Ids equal those of the reference tokenizers on the corpus, for both models; texts come back; long runs are quick. */

#include <time.h>

#include "vocabs.h"

static struct gguf_context *open_model(const char *name) {
    const char *dir = getenv("ARENITE_MODELS");
    char path[512];
    snprintf(path, sizeof path, "%s/%s.gguf", dir ? dir : "models", name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fclose(f);
    return gguf_init_from_file(path, (struct gguf_init_params) { .no_alloc = true });
}

static void check_ids(const struct llama_vocab *v, const char *name, const char *text, size_t n, char *want, bool parse) {
    llama_token ids[1024];
    char got[8192] = "";
    const int32_t count = llama_tokenize(v, text, (int32_t) n, ids, 1024, false, parse);
    size_t at = 0;
    for (int32_t i = 0; i < count; i++) at += (size_t) snprintf(got + at, sizeof got - at, "%s%d", i ? " " : "", (int) ids[i]);
    CHECK(!strcmp(got, want), "%s%s, \"%s\": %s, not %s", name, parse ? " parsing" : "", text, got, want);
    char back[1024];
    const int32_t size = llama_detokenize(v, ids, count, back, sizeof back, false, true);
    CHECK(size == (int32_t) n && !memcmp(back, text, n), "%s: \"%s\" comes back as \"%.*s\"", name, text, (int) size, back);
}

static void corpus(const struct llama_vocab *v, const char *name) {
    char file[64];
    snprintf(file, sizeof file, "%s.ids", name);
    char *texts = test_file("corpus.txt", 0), *ids = test_file(file, 1), *text, *line;
    int lines = 0;
    while ((text = next_line(&texts)) && (line = next_line(&ids))) {
        const size_t n = unescape(text);
        char *bar = strchr(line, '|');
        lines++;
        if (!bar) continue;
        *bar = '\0';
        check_ids(v, name, text, n, line, true);
        check_ids(v, name, text, n, bar + 1, false);
    }
    CHECK(lines == 73, "%s: %d lines", name, lines);
}

static bool smollm2(void) {
    struct gguf_context *g = open_model("smollm2-135m");
    if (!g) return false;
    struct llama_vocab *v = vocab_new(g);
    CHECK(v, "smollm2");
    corpus(v, "smollm2-135m");
    CHECK(!strcmp(ids_of(v, "<|im_start|>user\nhi<|im_end|>", true, true), "1 4093 198 6004 2"), "special tokens on");
    CHECK(!strncmp(ids_of(v, "<|im_start|>user\nhi<|im_end|>", true, false), "44 108 306 79 3738 108 46 ", 26), "off");
    CHECK(llama_vocab_type(v) == LLAMA_VOCAB_TYPE_BPE && llama_vocab_n_tokens(v) == 49152, "kind");
    CHECK(llama_vocab_bos(v) == 1 && llama_vocab_eos(v) == 2 && llama_vocab_pad(v) == 2 && llama_vocab_nl(v) == 198, "ids");
    CHECK(llama_vocab_is_eog(v, 0) && llama_vocab_is_eog(v, 2) && !llama_vocab_is_eog(v, 1), "ends");
    CHECK(!llama_vocab_get_add_bos(v) && !llama_vocab_get_add_eos(v), "flags");
    vocab_free(v);
    gguf_free(g);
    return true;
}

static bool gemma3(void) {
    struct gguf_context *g = open_model("gemma3-270m");
    if (!g) return false;
    struct llama_vocab *v = vocab_new(g);
    CHECK(v, "gemma3");
    corpus(v, "gemma3-270m");
    CHECK(!strcmp(ids_of(v, "<start_of_turn>user", false, true), "105 2364"), "special tokens on");
    CHECK(!strcmp(ids_of(v, "<start_of_turn>user", false, false), "236820 3041 236779 1340 236779 887 236813 2364"), "off");
    CHECK(!strcmp(ids_of(v, "\t\t\t\t\t\ttest", false, true), "255973 2181"), "tabs");
    CHECK(!strcmp(ids_of(v, "The capital of France is", true, true), "2 818 5279 529 7001 563"), "bos");
    CHECK(!strcmp(ids_of(v, "a </s> b", false, true), "236746 236743 212 518"), "a tag of HTML is text");
    CHECK(llama_vocab_is_eog(v, 1) && llama_vocab_is_eog(v, 106) && !llama_vocab_is_eog(v, 212), "ends");
    CHECK(llama_vocab_bos(v) == 2 && llama_vocab_eos(v) == 1 && llama_vocab_eot(v) == 106 && llama_vocab_nl(v) == 248, "ids");
    vocab_free(v);
    gguf_free(g);
    return true;
}

/* A hundred thousand of one character become one token per byte, in under a second. */
static void long_runs(void) {
    static const char *const runs[] = { "A", "7", " ", ".", "\n", "\xe4\xb8\xad", "\xf0\x9f\x99\x82" };
    enum { N = 100000 };
    static struct small s;
    small_bpe(&s);
    struct gguf_context *g = small_gguf(&s, "gpt2");
    gguf_set_val_str(g, "tokenizer.ggml.pre", "gpt-2");
    struct llama_vocab *v = vocab_new(g);
    CHECK(v, "bytes alone");
    char *text = malloc(4*N);
    llama_token *ids = malloc(4*N*sizeof *ids);
    for (size_t i = 0; i < sizeof runs/sizeof *runs; i++) {
        const int32_t size = (int32_t) strlen(runs[i]);
        for (int32_t j = 0; j < N; j++) memcpy(text + (size_t) (j*size), runs[i], (size_t) size);
        const clock_t start = clock();
        const int32_t n = llama_tokenize(v, text, N*size, ids, 4*N, false, false);
        CHECK(n == N*size, "run of \"%s\": %d tokens", runs[i], n);
        CHECK((double) (clock() - start)/CLOCKS_PER_SEC < 1.0, "run of \"%s\" takes too long", runs[i]);
        CHECK(ids[0] == (unsigned char) runs[i][0] && ids[n - 1] == (unsigned char) runs[i][size - 1], "ids");
    }
    free(text);
    free(ids);
    vocab_free(v);
    gguf_free(g);
}

int main(void) {
    long_runs();
    const bool one = smollm2(), two = gemma3();
    if (!one && !two && !check_failed) return 77;
    return DONE();
}
