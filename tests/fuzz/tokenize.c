/* Any vocabulary and any text: ids are in range and do not depend on the room given for them, and where every byte has a token
 * and no other kind of token is there, the text comes back.
 *
 *   flags (u8) · pre-tokenizer (u8) · bos id (u16) · tokens: length (u8, 0 ends), type (u8), score (i8), text · merges: length
 *   (u8, 0 ends), text · the text to tokenize */

#include "fuzz.h"

#include "vocab.h"

enum { SPM = 1, BYTES = 2, PREFIX = 4, ADD = 8, PARSE = 16, MAX_LIST = 512 };

struct input { const uint8_t *p; size_t left; };
static unsigned take(struct input *in) { return in->left ? (in->left--, *in->p++) : 0; }

struct list { char *texts[MAX_LIST]; float scores[MAX_LIST]; int32_t types[MAX_LIST]; size_t n; };

static bool list_add(struct list *l, const char *text, size_t n, int32_t type, float score) {
    if (l->n == MAX_LIST || !(l->texts[l->n] = calloc(1, n + 1))) return false;
    memcpy(l->texts[l->n], text, n);
    l->types[l->n]    = type;
    l->scores[l->n++] = score;
    return true;
}

static void read_list(struct input *in, struct list *l, bool with_type) {
    for (size_t n; (n = take(in)) > 0; ) {
        const int32_t type = with_type ? (int32_t) take(in)%8 : 1;
        const float score = with_type ? (float) (int8_t) take(in)/4.0f : 0.0f;
        if (n > in->left) n = in->left;
        if (!list_add(l, (const char *) in->p, n, type, score)) return;
        in->p    += n;
        in->left -= n;
    }
}

static void use(const struct llama_vocab *v, const char *text, int32_t n, unsigned flags, bool exact) {
    const int32_t need = -llama_tokenize(v, text, n, NULL, 0, flags & ADD, flags & PARSE);
    require(need >= 0 && need <= 4*n + 6, "count");
    llama_token *ids = malloc(((size_t) need + 1)*sizeof *ids);
    char *back = malloc((size_t) n + 1);
    if (ids && back) {
        require(llama_tokenize(v, text, n, ids, need, flags & ADD, flags & PARSE) == need, "same count");
        for (int32_t i = 0; i < need; i++) require(ids[i] >= 0 && ids[i] < llama_vocab_n_tokens(v), "id");
        const int32_t size = llama_detokenize(v, ids, need, back, n, false, true);
        if (exact) require(size == n && !memcmp(back, text, (size_t) n), "round trip");
        for (int32_t i = 0; i < need; i++) llama_token_to_piece(v, ids[i], back, n, i%3, i%2);
    }
    free(ids);
    free(back);
}

static const char *const pres[] = { "default", "gpt-2", "llama-bpe", "qwen2", "qwen35", "bailingmoe", "seed-coder", "gpt-4o",
    "tekken", "smollm", "falcon", "bloom", "viking", "deepseek-llm", "deepseek-coder", "deepseek-v3" };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct list tokens, merges;
    struct input in = { data, size };
    tokens.n = merges.n = 0;
    llama_log_set(quiet, NULL);
    const unsigned flags = take(&in), pre = take(&in), low = take(&in), bos = low | take(&in) << 8;
    for (unsigned b = 0; flags & BYTES && b < 256; b++) {
        char text[8];
        const size_t n = flags & SPM ? (size_t) snprintf(text, sizeof text, "<0x%02X>", b) : byte_to_text((unsigned char) b, text);
        list_add(&tokens, text, n, flags & SPM ? LLAMA_TOKEN_TYPE_BYTE : LLAMA_TOKEN_TYPE_NORMAL, 0.0f);
    }
    const size_t own = tokens.n;
    read_list(&in, &tokens, true);
    read_list(&in, &merges, false);
    /* SPM reads a space mark in the text as a space, and the empty token has no text */
    bool exact = flags & BYTES && !(flags & (SPM | ADD));
    for (size_t i = own; i < tokens.n; i++) exact = exact && tokens.types[i] == LLAMA_TOKEN_TYPE_NORMAL;

    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "tokenizer.ggml.model", flags & SPM ? "llama" : "gpt2");
    gguf_set_val_str(g, "tokenizer.ggml.pre", pres[pre%(sizeof pres/sizeof *pres)]);
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", (const char **) tokens.texts, tokens.n);
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, tokens.scores, tokens.n);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, tokens.types, tokens.n);
    gguf_set_arr_str(g, "tokenizer.ggml.merges", (const char **) merges.texts, merges.n);
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", bos);
    gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", flags & PREFIX);
    struct llama_vocab *v = vocab_new(g);
    if (v) use(v, (const char *) in.p, (int32_t) in.left, flags, exact);
    vocab_free(v);
    gguf_free(g);
    while (tokens.n) free(tokens.texts[--tokens.n]);
    while (merges.n) free(merges.texts[--merges.n]);
    return 0;
}
