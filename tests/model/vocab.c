/* Whatever the tokenizer keys of a file say, there is a vocabulary that works or one clear line; and what the functions of
 * llama.h answer about small vocabularies, worked out by hand. */

#include "vocabs.h"

static struct small s;

/* A vocabulary that must not load, with one error that names the key. */
static void rejected(struct gguf_context *g, const char *key) {
    n_errors = 0;
    struct llama_vocab *v = vocab_new(g);
    CHECK(!v, "%s loads", key);
    CHECK(n_errors == 1 && strstr(last_line, key), "%s: %d errors, \"%s\"", key, n_errors, last_line);
    vocab_free(v);
    gguf_free(g);
}

static struct gguf_context *spm_with(const char *key, enum gguf_type type, const void *data, size_t n) {
    small_spm(&s);
    struct gguf_context *g = small_gguf(&s, "llama");
    if (key) gguf_set_arr_data(g, key, type, data, n);
    return g;
}

static void wrong_metadata(void) {
    static const uint8_t zeros[4096];
    struct gguf_context *g;
    rejected(spm_with("tokenizer.ggml.scores", GGUF_TYPE_UINT8, zeros, 259), "tokenizer.ggml.scores");
    rejected(spm_with("tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, zeros, 3), "tokenizer.ggml.scores");
    rejected(spm_with("tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, zeros, 260), "tokenizer.ggml.scores");
    rejected(spm_with("tokenizer.ggml.token_type", GGUF_TYPE_UINT8, zeros, 259), "tokenizer.ggml.token_type");
    rejected(spm_with("tokenizer.ggml.token_type", GGUF_TYPE_INT32, zeros, 2), "tokenizer.ggml.token_type");
    rejected(spm_with("tokenizer.ggml.tokens", GGUF_TYPE_INT32, zeros, 259), "tokenizer.ggml.tokens");
    rejected(spm_with("tokenizer.ggml.suppress_tokens", GGUF_TYPE_FLOAT32, zeros, 1), "tokenizer.ggml.suppress_tokens");
    rejected(gguf_init_empty(), "tokenizer.ggml.model");

    gguf_set_val_str(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.scores", "none");
    rejected(g, "tokenizer.ggml.scores");
    gguf_set_val_str(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.model", "word soup");
    rejected(g, "word soup");
    gguf_set_val_u32(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.model", 1);
    rejected(g, "tokenizer.ggml.model");
    gguf_set_val_u32(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.add_bos_token", 1);
    rejected(g, "tokenizer.ggml.add_bos_token");
    gguf_set_val_str(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.bos_token_id", "1");
    rejected(g, "tokenizer.ggml.bos_token_id");
    gguf_remove_key(g = spm_with(NULL, 0, NULL, 0), "tokenizer.ggml.tokens");
    rejected(g, "tokenizer.ggml.tokens");

    static const char *const not_bytes[] = { "<0x-1>", "<0xZZ>", "<0x0>", "<0x000>", "", "x", "<0x 1>", "<0x1 >", "<0X41>" };
    for (size_t i = 0; i < sizeof not_bytes/sizeof *not_bytes; i++) {
        small_spm(&s);
        s.texts[70] = not_bytes[i];
        rejected(small_gguf(&s, "llama"), "tokenizer.ggml.tokens");
    }

    static const char *const not_rules[] = { "ab", "a", "", " a" };
    for (size_t i = 0; i < sizeof not_rules/sizeof *not_rules; i++) {
        const char *rules[] = { "a b", not_rules[i] };
        small_bpe(&s);
        gguf_set_arr_str(g = small_gguf(&s, "gpt2"), "tokenizer.ggml.merges", rules, 2);
        rejected(g, "tokenizer.ggml.merges");
    }
    small_bpe(&s);
    gguf_set_val_u32(g = small_gguf(&s, "gpt2"), "tokenizer.ggml.pre", 3);
    rejected(g, "tokenizer.ggml.pre");
    small_bpe(&s);
    gguf_set_arr_data(g = small_gguf(&s, "gpt2"), "tokenizer.ggml.merges", GGUF_TYPE_INT32, zeros, 4);
    rejected(g, "tokenizer.ggml.merges");

    static char longer[VOCAB_MAX_MARKED + 2];
    memset(longer, 'x', sizeof longer - 1);
    small_spm(&s);
    small_add(&s, longer, 0.0f, LLAMA_TOKEN_TYPE_CONTROL);
    rejected(small_gguf(&s, "llama"), "tokenizer.ggml.tokens");
}

static struct llama_vocab *loads(struct gguf_context *g, const char *what) {
    n_errors = 0;
    struct llama_vocab *v = vocab_new(g);
    CHECK(v && n_errors == 0, "%s: %s", what, last_line);
    if (!v) exit(1);
    return v;
}

static void odd_but_usable(void) {
    small_spm(&s);
    small_add(&s, "<0x02>", 0.0f, LLAMA_TOKEN_TYPE_BYTE);          /* as token 5 */
    struct gguf_context *g = small_gguf(&s, "llama");
    n_warnings = 0;
    struct llama_vocab *v = loads(g, "a text twice");
    CHECK(n_warnings == 1, "it is told");
    CHECK(vocab_find(v, "<0x02>", 6) == 5 && !strcmp(llama_vocab_get_text(v, 259), "<0x02>"), "the first one counts");
    vocab_free(v);
    gguf_free(g);

    small_spm(&s);
    g = small_gguf(&s, "llama");
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 99999);
    gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 0xfffffffe);
    gguf_set_val_bool(g, "tokenizer.ggml.add_bos_token", true);
    gguf_set_val_bool(g, "tokenizer.ggml.add_eos_token", true);
    v = loads(g, "ids out of range");
    CHECK(llama_vocab_bos(v) == -1 && llama_vocab_eos(v) == -1, "ids out of range are absent");
    CHECK(!llama_vocab_get_add_bos(v) && !llama_vocab_get_add_eos(v), "nothing to add");
    CHECK(llama_tokenize(v, "a", 1, NULL, 0, true, true) == -4, "nothing added to the bytes of a space mark and an a");
    vocab_free(v);
    gguf_free(g);

    small_bpe(&s);
    g = small_gguf(&s, "gpt2");
    gguf_set_val_str(g, "tokenizer.ggml.pre", "of a model to come");
    const char *rules[] = { "x yz", "a b" };
    gguf_set_arr_str(g, "tokenizer.ggml.merges", rules, 2);
    n_warnings = 0;
    v = loads(g, "unknown pre-tokenizer and rules");
    CHECK(n_warnings == 2, "both are told");
    CHECK(!strcmp(ids_of(v, "ab 12", false, false), "97 98 32 49 50"), "%s", ids_of(v, "ab 12", false, false));
    vocab_free(v);
    gguf_free(g);

    g = gguf_init_empty();
    gguf_set_val_str(g, "tokenizer.ggml.model", "none");
    gguf_set_val_str(g, "general.architecture", "llama");
    gguf_set_val_u32(g, "llama.vocab_size", 77);
    v = loads(g, "no vocabulary");
    llama_token id;
    char text[4];
    CHECK(llama_vocab_n_tokens(v) == 77 && llama_vocab_type(v) == LLAMA_VOCAB_TYPE_NONE, "a size alone");
    CHECK(llama_tokenize(v, "a", 1, &id, 1, true, true) == 0, "no ids");
    CHECK(llama_token_to_piece(v, 3, text, 4, 0, true) == 0 && llama_vocab_bos(v) == -1 && !llama_vocab_is_eog(v, 3)
        && !strcmp(llama_vocab_get_text(v, 3), "") && llama_vocab_get_attr(v, 3) == 0, "no text");
    vocab_free(v);
    gguf_free(g);
}

/* Texts that hash alike would make every look-up a walk: a table that full of them is refused, not endured. */
static void hashes_alike(void) {
    struct hash_index index;
    CHECK(hash_init(&index, 4*HASH_MAX_PROBES), "room");
    int put = 0;
    for (; put < 2*HASH_MAX_PROBES; put++) {
        struct hash_probe p = hash_begin(&index, 12345);
        while (hash_next(&index, &p) >= 0) {}
        if (!hash_put(&index, p, (size_t) put)) break;
    }
    CHECK(put == HASH_MAX_PROBES, "%d of one hash", put);
    free(index.slots);
}

/* ids: 259 ▁, 260 a, 261 b, 262 ab, 263 ▁a, 264 ▁ab, 265 <mark> (user defined), 266 <ctl> (control), 267 abab */
static struct llama_vocab *spm(struct gguf_context **g, bool prefix) {
    small_spm(&s);
    small_add(&s, SPACE_MARK, -5.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "a", -5.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "b", -5.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "ab", -1.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, SPACE_MARK "a", -0.5f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, SPACE_MARK "ab", -2.0f, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "<mark>", 0.0f, LLAMA_TOKEN_TYPE_USER_DEFINED);
    small_add(&s, "<ctl>", 0.0f, LLAMA_TOKEN_TYPE_CONTROL);
    small_add(&s, "abab", -9.0f, LLAMA_TOKEN_TYPE_NORMAL);
    *g = small_gguf(&s, "llama");
    gguf_set_val_bool(*g, "tokenizer.ggml.add_space_prefix", prefix);
    gguf_set_val_bool(*g, "tokenizer.ggml.add_eos_token", true);
    return loads(*g, "spm");
}

static void spm_by_hand(void) {
    static const struct { const char *text; bool prefix, add, parse; const char *ids; } cases[] = {
        { "ab",            false, false, false, "262" },
        { "ab",            true,  false, false, "264" },            /* ▁a first (-0.5), then ▁ab */
        { "ab",            true,  true,  false, "1 264 2" },
        { "abab",          false, false, false, "267" },
        { "aab b",         false, false, false, "260 262 259 261" },
        { "b\xc3\xa9",     false, false, false, "261 198 172" },    /* é has no token: <0xC3> <0xA9> */
        { "b\xff",         false, false, false, "261 258" },
        { "a<mark>b",      false, false, false, "260 265 261" },
        { "ab<mark>ab",    true,  false, false, "264 265 264" },    /* a prefix behind a special token as well */
        { "a<ctl>b",       false, false, true,  "260 266 261" },
        { "<ctl>",         false, false, false, "63 102 119 111 65" },
        { "<0x41>",        false, false, true,  "63 51 123 55 52 65" },     /* the name of a byte is text */
        { "",              true,  true,  true,  "1 2" },
        { "",              true,  false, true,  "" },
    };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        struct gguf_context *g;
        struct llama_vocab *v = spm(&g, cases[i].prefix);
        const char *got = ids_of(v, cases[i].text, cases[i].add, cases[i].parse);
        CHECK(!strcmp(got, cases[i].ids), "\"%s\": %s, not %s", cases[i].text, got, cases[i].ids);
        vocab_free(v);
        gguf_free(g);
    }
}

static void round_trips(void) {
    static const char *const texts[] = { "", " ", "  ", " ab", "ab ab", "  ab  ", "a<mark> ab", "<mark><mark>a", "<ctl> a<ctl>",
        "\xff\xfe", "\n\n a", "x\xc3\xa9" };
    for (int prefix = 0; prefix < 2; prefix++) {
        struct gguf_context *g;
        struct llama_vocab *v = spm(&g, prefix);
        for (size_t i = 0; i < sizeof texts/sizeof *texts; i++) {
            for (int add = 0; add < 2; add++) {
                CHECK(!strcmp(text_of(v, texts[i], add), texts[i]), "\"%s\" comes back as \"%s\", prefix %d, bos %d", texts[i],
                    text_of(v, texts[i], add), prefix, add);
            }
        }
        vocab_free(v);
        gguf_free(g);
    }
}

/* ids: 256 ab, 257 abc, 258 Ġa, 259 <end>, 260 bc */
static void bpe_by_hand(void) {
    static const char *rules[] = { "b c", "a b", "ab c", "\xc4\xa0 a" };
    small_bpe(&s);
    small_add(&s, "ab", 0, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "abc", 0, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "\xc4\xa0" "a", 0, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&s, "<|im_end|>", 0, LLAMA_TOKEN_TYPE_CONTROL);
    small_add(&s, "bc", 0, LLAMA_TOKEN_TYPE_NORMAL);
    static const struct { const char *pre, *text, *ids; } cases[] = {
        { "gpt-2",     "ab",           "256" },
        { "gpt-2",     "abc",          "97 260" },          /* b c ranks above a b */
        { "gpt-2",     "abab",         "256 256" },
        { "gpt-2",     " a ab",        "258 32 256" },         /* a b ranks above Ġ a */
        { "llama-bpe", "abc",          "257" },             /* the whole word is a token */
        { "llama-bpe", "abcb",         "97 260 98" },
        { "gpt-2",     "a<|im_end|>b", "97 259 98" },
    };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        struct gguf_context *g = small_gguf(&s, "gpt2");
        gguf_set_val_str(g, "tokenizer.ggml.pre", cases[i].pre);
        gguf_set_val_bool(g, "tokenizer.ggml.add_bos_token", false);
        gguf_set_arr_str(g, "tokenizer.ggml.merges", rules, 4);
        struct llama_vocab *v = loads(g, "bpe");
        const char *got = ids_of(v, cases[i].text, true, true);
        CHECK(!strcmp(got, cases[i].ids), "%s, \"%s\": %s, not %s", cases[i].pre, cases[i].text, got, cases[i].ids);
        CHECK(!strcmp(text_of(v, cases[i].text, true), cases[i].text), "\"%s\" comes back", cases[i].text);
        CHECK(llama_vocab_is_eog(v, 259) && llama_vocab_eot(v) == 259 && !llama_vocab_is_eog(v, 258), "ends");
        CHECK(llama_vocab_bos(v) == -1 && llama_vocab_nl(v) == '\n', "ids");
        vocab_free(v);
        gguf_free(g);
    }
}

/* Of several special tokens the leftmost counts, then the longest. */
static void special_tokens_overlap(void) {
    static const char *const marks[] = { "<a", "<a>", "<a><b", "a><b>", "<b>" };      /* 259 .. 263 */
    small_spm(&s);
    for (int i = 0; i < 5; i++) small_add(&s, marks[i], 0.0f, i == 2 ? LLAMA_TOKEN_TYPE_CONTROL : LLAMA_TOKEN_TYPE_USER_DEFINED);
    struct gguf_context *g = small_gguf(&s, "llama");
    gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", false);
    struct llama_vocab *v = loads(g, "marks");
    CHECK(!strcmp(ids_of(v, "<a><b>", false, false), "260 263"), "%s", ids_of(v, "<a><b>", false, false));
    CHECK(!strcmp(ids_of(v, "<a><b>", false, true),  "261 65"),  "%s", ids_of(v, "<a><b>", false, true));
    CHECK(!strcmp(ids_of(v, "<a<a",   false, true),  "259 259"), "%s", ids_of(v, "<a<a", false, true));
    CHECK(!strcmp(ids_of(v, "a><b>",  false, true),  "262"),     "%s", ids_of(v, "a><b>", false, true));
    vocab_free(v);
    gguf_free(g);
}

static void white_space_behind_specials(void) {
    small_spm(&s);
    small_add(&s, "<|end|>", 0.0f, LLAMA_TOKEN_TYPE_CONTROL);       /* 259 */
    struct gguf_context *g = small_gguf(&s, "llama");
    gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", false);
    gguf_set_val_str(g, "general.name", "Phi-3 mini");
    struct llama_vocab *v = loads(g, "phi-3");
    CHECK(!strcmp(ids_of(v, "<|end|> \n A<s>\n", false, true), "259 68 1 13"), "%s",
        ids_of(v, "<|end|> \n A<s>\n", false, true));
    vocab_free(v);
    gguf_free(g);
}

static void sizes_and_pieces(void) {
    struct gguf_context *g;
    struct llama_vocab *v = spm(&g, true);
    llama_token ids[4] = { 7, 7, 7, 7 };
    char text[16];
    CHECK(llama_tokenize(v, "ab ab", 5, ids, 3, true, true) == -4, "needed: 4");
    CHECK(ids[3] == 7, "not past the room");
    CHECK(llama_tokenize(v, "ab ab", 5, NULL, 0, true, true) == -4, "no room at all");
    CHECK(llama_tokenize(v, "ab ab", 5, ids, 4, true, true) == 4, "just enough");
    CHECK(llama_tokenize(v, "ab ab", -5, ids, 4, false, true) == 0, "a negative length is none");

    memset(text, '#', sizeof text);
    CHECK(llama_token_to_piece(v, 264, text, 2, 0, false) == -3 && text[2] == '#', "needed: 3");
    CHECK(llama_token_to_piece(v, 264, text, 3, 0, false) == 3 && !memcmp(text, " ab#", 4), "\" ab\"");
    CHECK(llama_token_to_piece(v, 264, text, 3, 1, false) == 2 && !memcmp(text, "ab", 2), "lstrip");
    CHECK(llama_token_to_piece(v, 266, text, 8, 0, false) == 0 && llama_token_to_piece(v, 266, text, 8, 0, true) == 5, "control");
    CHECK(llama_token_to_piece(v, 265, text, 8, 0, false) == 6 && !memcmp(text, "<mark>", 6), "user defined");
    CHECK(llama_token_to_piece(v, 3 + 65, text, 8, 0, false) == 1 && text[0] == 'A', "byte");
    static const llama_token strange[] = { -1, INT32_MIN, INT32_MAX, 268 };
    for (size_t i = 0; i < sizeof strange/sizeof *strange; i++) {
        CHECK(llama_token_to_piece(v, strange[i], text, 8, 0, true) == 0, "id %d", strange[i]);
        CHECK(llama_vocab_get_score(v, strange[i]) == 0.0f && !llama_vocab_is_eog(v, strange[i])
            && !llama_vocab_is_control(v, strange[i]) && !strcmp(llama_vocab_get_text(v, strange[i]), ""), "id %d", strange[i]);
    }

    const llama_token line[] = { 1, 264, 266, 264, 2 };
    CHECK(llama_detokenize(v, line, 5, text, 16, false, false) == 4 && !memcmp(text, "abab", 4), "special tokens hidden");
    CHECK(llama_detokenize(v, line, 5, text, 16, true, true) == 9 && !memcmp(text, "ab<ctl>ab", 9), "first and last removed");
    CHECK(llama_detokenize(v, line, 5, text, 8, true, true) == -9, "needed: 9");
    CHECK(llama_detokenize(v, line, 0, text, 8, true, true) == 0 && llama_detokenize(v, line, -3, text, 8, true, true) == 0, "none");

    CHECK(llama_vocab_get_attr(v, 265) == LLAMA_TOKEN_ATTR_USER_DEFINED && llama_vocab_get_attr(v, 2) == LLAMA_TOKEN_ATTR_CONTROL
        && llama_vocab_get_attr(v, 5) == LLAMA_TOKEN_ATTR_BYTE && llama_vocab_get_attr(v, 0) == LLAMA_TOKEN_ATTR_UNKNOWN, "kinds");
    CHECK(llama_vocab_get_score(v, 262) == -1.0f, "scores");
    vocab_free(v);
    gguf_free(g);
}

int main(void) {
    llama_log_set(hear, NULL);
    wrong_metadata();
    odd_but_usable();
    hashes_alike();
    spm_by_hand();
    round_trips();
    bpe_by_hand();
    special_tokens_overlap();
    white_space_behind_specials();
    sizes_and_pieces();
    return DONE();
}
