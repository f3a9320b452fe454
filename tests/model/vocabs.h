#ifndef VOCABS_H
#define VOCABS_H
/* Small vocabularies built in memory, the corpus, and what of the log a test wants to see. */

#include "check.h"
#include "vocab.h"

static char last_line[512];
static int  n_errors, n_warnings;
static inline void hear(enum ggml_log_level level, const char *text, void *user) {
    (void) user;
    n_errors   += level == GGML_LOG_LEVEL_ERROR;
    n_warnings += level == GGML_LOG_LEVEL_WARN;
    snprintf(last_line, sizeof last_line, "%s", text);
}

enum { MAX_TOKENS = 600 };
struct small {
    const char *texts[MAX_TOKENS];
    float       scores[MAX_TOKENS];
    int32_t     types[MAX_TOKENS];
    size_t      n;
    char        bytes[256][8];
};

static inline void small_add(struct small *s, const char *text, float score, int32_t type) {
    s->texts[s->n]  = text;
    s->scores[s->n] = score;
    s->types[s->n++] = type;
}

/* <unk> <s> </s>, then the 256 bytes, then what the test adds. */
static inline void small_spm(struct small *s) {
    s->n = 0;
    small_add(s, "<unk>", 0.0f, LLAMA_TOKEN_TYPE_UNKNOWN);
    small_add(s, "<s>",   0.0f, LLAMA_TOKEN_TYPE_CONTROL);
    small_add(s, "</s>",  0.0f, LLAMA_TOKEN_TYPE_CONTROL);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(s->bytes[b], sizeof s->bytes[b], "<0x%02X>", b);
        small_add(s, s->bytes[b], 0.0f, LLAMA_TOKEN_TYPE_BYTE);
    }
}

/* The 256 bytes as byte-level BPE writes them, ids 0 to 255. */
static inline void small_bpe(struct small *s) {
    s->n = 0;
    for (unsigned b = 0; b < 256; b++) {
        s->bytes[b][byte_to_text((unsigned char) b, s->bytes[b])] = '\0';
        small_add(s, s->bytes[b], 0.0f, LLAMA_TOKEN_TYPE_NORMAL);
    }
}

static inline struct gguf_context *small_gguf(struct small *s, const char *model) {
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "tokenizer.ggml.model", model);
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", s->texts, s->n);
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, s->scores, s->n);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, s->types, s->n);
    return g;
}

/* Ids of a text as "1 2 3". */
static inline const char *ids_of(const struct llama_vocab *v, const char *text, bool add, bool parse) {
    static char out[4096];
    llama_token ids[512];
    const int32_t n = llama_tokenize(v, text, (int32_t) strlen(text), ids, 512, add, parse);
    size_t at = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < n; i++) {
        at += (size_t) snprintf(out + at, sizeof out - at, "%s%d", i ? " " : "", (int) ids[i]);
    }
    return out;
}

static inline const char *text_of(const struct llama_vocab *v, const char *text, bool add) {
    static char out[4096];
    llama_token ids[512];
    const int32_t n = llama_tokenize(v, text, (int32_t) strlen(text), ids, 512, add, true);
    const int32_t size = llama_detokenize(v, ids, n, out, sizeof out - 1, true, true);
    out[size < 0 ? 0 : size] = '\0';
    return out;
}

/* A file of the tests in buffer 0 or 1, ended by NUL; exits when there is none. */
static inline char *test_file(const char *name, int buffer) {
    static char text[2][1 << 18];
    const char *source = getenv("ARENITE_SOURCE");
    char path[512];
    snprintf(path, sizeof path, "%s/tests/model/golden/%s", source ? source : ".", name);
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text[buffer], 1, sizeof text[buffer] - 1, f) : 0;
    if (n == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    text[buffer][n] = '\0';
    fclose(f);
    return text[buffer];
}

/* Cuts the next line off *at; NULL at the end. */
static inline char *next_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = '\0';
    *at = end + 1;
    return line;
}

/* A line of the corpus in place: %XX is a byte. Returns its length. */
static inline size_t unescape(char *line) {
    size_t n = 0;
    for (const char *p = line; *p; p++) {
        unsigned byte;
        if (*p == '%' && sscanf(p + 1, "%2x", &byte) == 1) { line[n++] = (char) byte; p += 2; }
        else line[n++] = *p;
    }
    line[n] = '\0';
    return n;
}

#endif
