/* Reading the tokenizer.ggml.* keys into a vocabulary, with every type, length and id checked. */

#include <inttypes.h>
#include <stdio.h>

#include "log.h"
#include "pre.h"
#include "vocab.h"

#define COUNT(array) (sizeof (array)/sizeof *(array))
#define KEY "tokenizer.ggml."

/* Roles of special tokens: keys, and texts by which the token is known when the keys are absent. */
static const struct special_row {
    const char *key, *old_key;
    const char *texts[8];
} special_rows[SPECIAL_COUNT] = {
    [SPECIAL_BOS]     = { .key = KEY "bos_token_id" },
    [SPECIAL_EOS]     = { .key = KEY "eos_token_id" },
    [SPECIAL_EOT]     = { .key = KEY "eot_token_id", .texts = { "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
                          "<|endoftext|>", "<EOT>", "<end_of_utterance>", "<｜end▁of▁sentence｜>" } },
    [SPECIAL_EOM]     = { .key = KEY "eom_token_id", .texts = { "<|eom_id|>" } },
    [SPECIAL_UNK]     = { .key = KEY "unknown_token_id" },
    [SPECIAL_SEP]     = { .key = KEY "seperator_token_id", .old_key = KEY "separator_token_id" },
    [SPECIAL_PAD]     = { .key = KEY "padding_token_id" },
    [SPECIAL_MASK]    = { .key = KEY "mask_token_id" },
    [SPECIAL_FIM_PRE] = { KEY "fim_pre_token_id", KEY "prefix_token_id", { "<|fim_prefix|>", "<fim-prefix>",
                          "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>" } },
    [SPECIAL_FIM_SUF] = { KEY "fim_suf_token_id", KEY "suffix_token_id", { "<|fim_suffix|>", "<fim-suffix>",
                          "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>" } },
    [SPECIAL_FIM_MID] = { KEY "fim_mid_token_id", KEY "middle_token_id", { "<|fim_middle|>", "<fim-middle>",
                          "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>" } },
    [SPECIAL_FIM_PAD] = { .key = KEY "fim_pad_token_id", .texts = { "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>" } },
    [SPECIAL_FIM_REP] = { .key = KEY "fim_rep_token_id", .texts = { "<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
                          "<REPO>", "<reponame>" } },
    [SPECIAL_FIM_SEP] = { .key = KEY "fim_sep_token_id", .texts = { "<|file_sep|>" } },
};

/* Control tokens that end a turn wherever they occur. */
static const char *const end_texts[] = {
    "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>",
    "<end_of_turn>", "<turn|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<end_of_utterance>", "<｜end▁of▁sentence｜>",
};

const char *vocab_text(const struct llama_vocab *v, llama_token id) {
    return v->texts_key < 0 ? "" : gguf_get_arr_str(v->gguf, v->texts_key, (size_t) id);
}

float vocab_score(const struct llama_vocab *v, llama_token id) {
    float score = 0.0f;
    if (v->scores) memcpy(&score, v->scores + (size_t) id*sizeof score, sizeof score);
    return score;
}

bool vocab_has(const struct llama_vocab *v, llama_token id) { return id >= 0 && id < v->n_tokens; }

/* Is this text, ended by NUL, exactly these bytes? */
static bool same_text(const char *text, const char *bytes, size_t n) {
    for (; n; n--, text++, bytes++) {
        if (*text != *bytes || !*text) return false;
    }
    return !*text;
}

llama_token vocab_find(const struct llama_vocab *v, const char *text, size_t length) {
    if (v->texts_key < 0 || length > v->longest) return LLAMA_TOKEN_NULL;
    struct hash_probe p = hash_begin(&v->ids, hash_bytes(text, length));
    for (int64_t i; (i = hash_next(&v->ids, &p)) >= 0; ) {
        if (same_text(vocab_text(v, (llama_token) i), text, length)) return (llama_token) i;
    }
    return LLAMA_TOKEN_NULL;
}

void vocab_find_batch(const struct llama_vocab *v, const char *const *texts, const size_t *lengths, llama_token *ids,
        int n) {
    uint64_t hashes[VOCAB_BATCH];
    const char *first[VOCAB_BATCH];
    for (int i = 0; i < n; i++) hashes[i] = hash_bytes(texts[i], lengths[i]);
    for (int i = 0; i < n; i++) hash_touch(&v->ids, hashes[i]);
    for (int i = 0; i < n; i++) {
        struct hash_probe p = hash_begin(&v->ids, hashes[i]);
        const int64_t id = hash_next(&v->ids, &p);
        first[i] = id < 0 ? "" : vocab_text(v, (llama_token) id);
    }
    for (int i = 0; i < n; i++) (void) *(const volatile char *) first[i];
    for (int i = 0; i < n; i++) ids[i] = vocab_find(v, texts[i], lengths[i]);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static bool unexpected(const struct gguf_context *gguf, int64_t key, const char *expected) {
    const enum gguf_type type = gguf_get_kv_type(gguf, key);
    if (type == GGUF_TYPE_ARRAY) {
        log_error("%s: an array of %zu %s found, %s expected", gguf_get_key(gguf, key), gguf_get_arr_n(gguf, key),
            gguf_type_name(gguf_get_arr_type(gguf, key)), expected);
    } else {
        log_error("%s: %s found, %s expected", gguf_get_key(gguf, key), gguf_type_name(type), expected);
    }
    return false;
}

/* An array with elements of this type, `n` of them unless that is negative. *key < 0: absent. False: something else. */
static bool find_array(const struct gguf_context *gguf, const char *name, enum gguf_type type, int64_t n, int64_t *key) {
    char expected[64];
    *key = gguf_find_key(gguf, name);
    if (*key < 0) return true;
    if (gguf_get_kv_type(gguf, *key) == GGUF_TYPE_ARRAY && gguf_get_arr_type(gguf, *key) == type
            && (n < 0 || gguf_get_arr_n(gguf, *key) == (size_t) n)) return true;
    if (n < 0) snprintf(expected, sizeof expected, "an array of %s",           gguf_type_name(type));
    else       snprintf(expected, sizeof expected, "an array of %" PRId64 " %s", n, gguf_type_name(type));
    return unexpected(gguf, *key, expected);
}

static bool read_bool(const struct gguf_context *gguf, const char *name, bool *value) {
    const int64_t key = gguf_find_key(gguf, name);
    if (key < 0) return true;
    if (gguf_get_kv_type(gguf, key) != GGUF_TYPE_BOOL) return unexpected(gguf, key, "bool");
    *value = gguf_get_val_bool(gguf, key);
    return true;
}

/* An id out of range is told and taken as absent. *found: was there such a key? */
static bool read_id(const struct llama_vocab *v, const char *name, llama_token *id, bool *found) {
    const int64_t key = name ? gguf_find_key(v->gguf, name) : -1;
    if (key < 0) return true;
    int64_t value;
    switch (gguf_get_kv_type(v->gguf, key)) {
        case GGUF_TYPE_UINT32: value = gguf_get_val_u32(v->gguf, key); break;
        case GGUF_TYPE_INT32:  value = gguf_get_val_i32(v->gguf, key); break;
        default: return unexpected(v->gguf, key, "u32");
    }
    *found = true;
    *id = LLAMA_TOKEN_NULL;
    if (value >= 0 && value < v->n_tokens) *id = (llama_token) value;
    else if (value != -1 && value != UINT32_MAX) {
        log_warn("%s: %" PRId64 " found, an id below %d expected; taken as absent", name, value, v->n_tokens);
    }
    return true;
}

/* ---- texts, types ------------------------------------------------------------------------------------------------ */

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int byte_of_token_text(const char *text) {
    if (strlen(text) != 6 || memcmp(text, "<0x", 3) || text[5] != '>') return -1;
    const int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static bool read_attributes(struct llama_vocab *v) {
    static const uint16_t attr_of_type[] = {
        [LLAMA_TOKEN_TYPE_UNDEFINED]    = LLAMA_TOKEN_ATTR_UNDEFINED,
        [LLAMA_TOKEN_TYPE_NORMAL]       = LLAMA_TOKEN_ATTR_NORMAL,
        [LLAMA_TOKEN_TYPE_UNKNOWN]      = LLAMA_TOKEN_ATTR_UNKNOWN,
        [LLAMA_TOKEN_TYPE_CONTROL]      = LLAMA_TOKEN_ATTR_CONTROL,
        [LLAMA_TOKEN_TYPE_USER_DEFINED] = LLAMA_TOKEN_ATTR_USER_DEFINED,
        [LLAMA_TOKEN_TYPE_UNUSED]       = LLAMA_TOKEN_ATTR_UNUSED,
        [LLAMA_TOKEN_TYPE_BYTE]         = LLAMA_TOKEN_ATTR_BYTE,
    };
    int64_t key;
    if (!find_array(v->gguf, KEY "token_type", GGUF_TYPE_INT32, v->n_tokens, &key)) return false;
    const unsigned char *types = key < 0 ? NULL : gguf_get_arr_data(v->gguf, key);
    for (int32_t i = 0; i < v->n_tokens; i++) {
        int32_t type = LLAMA_TOKEN_TYPE_NORMAL;
        if (types) memcpy(&type, types + (size_t) i*sizeof type, sizeof type);
        v->attr[i] = type >= 0 && type < (int32_t) COUNT(attr_of_type) ? attr_of_type[type] : LLAMA_TOKEN_ATTR_UNDEFINED;
        if (v->attr[i] == LLAMA_TOKEN_ATTR_BYTE && byte_of_token_text(vocab_text(v, i)) < 0) {
            log_error(KEY "tokens: token %d is \"%.32s\", <0x00> to <0xFF> expected of a byte", i, vocab_text(v, i));
            return false;
        }
    }
    return true;
}

/* Which bytes come right before a space mark. */
static void note_spans(struct llama_vocab *v, const char *text) {
    for (const char *mark = text; (mark = strstr(mark, SPACE_MARK)); mark += SPACE_MARK_BYTES) {
        if (mark > text) v->spans[(unsigned char) mark[-1]] = true;
    }
}

/* The hashes of n texts from number `first` on; their slots are on the way from memory when it returns. */
static void hash_texts(struct llama_vocab *v, int32_t first, int32_t n, uint64_t *hashes) {
    for (int32_t i = 0; i < n; i++) {
        const char *text = vocab_text(v, first + i);
        const size_t length = strlen(text);
        if (length > v->longest) v->longest = length;
        if (v->type == LLAMA_VOCAB_TYPE_SPM) note_spans(v, text);
        hashes[i] = hash_bytes(text, length);
    }
    for (int32_t i = 0; i < n; i++) hash_touch(&v->ids, hashes[i]);
}

/* Of several tokens with one text the first is the one that text becomes. */
static bool index_texts(struct llama_vocab *v) {
    uint64_t hashes[VOCAB_BATCH];
    int32_t repeated = 0;
    for (int32_t i = 0; i < v->n_tokens; i++) {
        if (i%VOCAB_BATCH == 0) hash_texts(v, i, v->n_tokens - i < VOCAB_BATCH ? v->n_tokens - i : VOCAB_BATCH, hashes);
        struct hash_probe p = hash_begin(&v->ids, hashes[i%VOCAB_BATCH]);
        int64_t other;
        while ((other = hash_next(&v->ids, &p)) >= 0 && strcmp(vocab_text(v, (llama_token) other), vocab_text(v, i))) {}
        if (other >= 0) repeated++;
        else if (!hash_put(&v->ids, p, (size_t) i)) {
            log_error(KEY "tokens: %d texts of one hash found", HASH_MAX_PROBES);
            return false;
        }
    }
    if (repeated) log_warn(KEY "tokens: %d texts repeat that of an earlier token", repeated);
    return true;
}

static void find_bytes(struct llama_vocab *v) {
    for (int b = 0; b < 256; b++) {
        char text[8];
        size_t n;
        if (v->type == LLAMA_VOCAB_TYPE_BPE) n = byte_to_text((unsigned char) b, text);
        else                                 n = (size_t) snprintf(text, sizeof text, "<0x%02X>", (unsigned) b);
        v->byte_id[b] = vocab_find(v, text, n);
        text[0] = (char) b;
        if (v->byte_id[b] == LLAMA_TOKEN_NULL && b) v->byte_id[b] = vocab_find(v, text, 1);
    }
}

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static bool read_specials(struct llama_vocab *v) {
    if (v->type == LLAMA_VOCAB_TYPE_SPM) {      /* where SentencePiece puts them when nobody says otherwise */
        static const enum special usual[] = { SPECIAL_UNK, SPECIAL_BOS, SPECIAL_EOS };
        for (int i = 0; i < (int) COUNT(usual) && i < v->n_tokens; i++) v->special[usual[i]] = i;
    }
    for (int i = 0; i < SPECIAL_COUNT; i++) {
        const struct special_row *row = &special_rows[i];
        bool found = false;
        if (!read_id(v, row->key, &v->special[i], &found)) return false;
        if (!found && !read_id(v, row->old_key, &v->special[i], &found)) return false;
        for (size_t j = 0; !found && j < COUNT(row->texts) && row->texts[j]; j++) {
            const llama_token id = vocab_find(v, row->texts[j], strlen(row->texts[j]));
            if (id == LLAMA_TOKEN_NULL || v->attr[id] == LLAMA_TOKEN_ATTR_BYTE) continue;
            v->special[i] = id;
            v->attr[id] = LLAMA_TOKEN_ATTR_CONTROL;
            found = true;
        }
    }
    return true;
}

static void mark_ends(struct llama_vocab *v) {
    static const enum special ends[] = { SPECIAL_EOS, SPECIAL_EOT, SPECIAL_EOM, SPECIAL_FIM_PAD, SPECIAL_FIM_REP,
        SPECIAL_FIM_SEP };
    for (size_t i = 0; i < COUNT(end_texts); i++) {
        const llama_token id = vocab_find(v, end_texts[i], strlen(end_texts[i]));
        if (id != LLAMA_TOKEN_NULL && v->attr[id] & LLAMA_TOKEN_ATTR_CONTROL) v->attr[id] |= ATTR_EOG;
    }
    for (size_t i = 0; i < COUNT(ends); i++) {
        if (v->special[ends[i]] != LLAMA_TOKEN_NULL) v->attr[v->special[ends[i]]] |= ATTR_EOG;
    }
    /* A model that has <|return|> and <|call|> uses <|end|> between the parts of one answer. */
    const llama_token end = vocab_find(v, "<|end|>", 7);
    if (end != LLAMA_TOKEN_NULL && end != v->special[SPECIAL_EOS] && vocab_find(v, "<|return|>", 10) >= 0
            && vocab_find(v, "<|call|>", 8) >= 0) v->attr[end] &= (uint16_t) ~ATTR_EOG;
}

/* Phi-3 was trained with white space behind its special tokens dropped; its files say so only by their name. */
static void strip_behind_specials(struct llama_vocab *v) {
    static const char *const kept[] = { "<unk>", "<s>", "<|endoftext|>" };
    const int64_t key = gguf_find_key(v->gguf, "general.name");
    if (key < 0 || gguf_get_kv_type(v->gguf, key) != GGUF_TYPE_STRING) return;
    const char *name = gguf_get_val_str(v->gguf, key);
    if (!strstr(name, "Phi-3") && !strstr(name, "Phi3") && !strstr(name, "phi-3") && !strstr(name, "phi3")) return;
    for (int32_t i = 0; i < v->n_marked; i++) v->attr[v->marked[i].id] |= LLAMA_TOKEN_ATTR_RSTRIP;
    for (size_t i = 0; i < COUNT(kept); i++) {
        const llama_token id = vocab_find(v, kept[i], strlen(kept[i]));
        if (id >= 0) v->attr[id] &= (uint16_t) ~LLAMA_TOKEN_ATTR_RSTRIP;
    }
}

static bool read_flags(struct llama_vocab *v) {
    v->add_bos = v->type == LLAMA_VOCAB_TYPE_SPM || (v->pre && pre_adds_bos(v->pre));
    v->add_space_prefix = v->type == LLAMA_VOCAB_TYPE_SPM;
    if (!read_bool(v->gguf, KEY "add_bos_token",    &v->add_bos) || !read_bool(v->gguf, KEY "add_eos_token", &v->add_eos)
     || !read_bool(v->gguf, KEY "add_sep_token",    &v->add_sep)
     || !read_bool(v->gguf, KEY "add_space_prefix", &v->add_space_prefix)) return false;
    if (v->type != LLAMA_VOCAB_TYPE_SPM) v->add_space_prefix = false;
    if (v->add_bos && v->special[SPECIAL_BOS] < 0) log_warn(KEY "add_bos_token is true, but there is no such token");
    if (v->add_eos && v->special[SPECIAL_EOS] < 0) log_warn(KEY "add_eos_token is true, but there is no such token");
    v->add_bos = v->add_bos && v->special[SPECIAL_BOS] >= 0;
    v->add_eos = v->add_eos && v->special[SPECIAL_EOS] >= 0;
    return true;
}

static bool read_suppressed(struct llama_vocab *v) {
    int64_t key;
    if (!find_array(v->gguf, KEY "suppress_tokens", GGUF_TYPE_INT32, -1, &key)) return false;
    const size_t n = key < 0 ? 0 : gguf_get_arr_n(v->gguf, key);
    if (n == 0) return true;
    if (n > (size_t) v->n_tokens) return unexpected(v->gguf, key, "at most one per token");
    v->suppress = calloc(n, sizeof *v->suppress);
    if (!v->suppress) { log_error("vocabulary: out of memory"); return false; }
    const unsigned char *data = gguf_get_arr_data(v->gguf, key);
    for (size_t i = 0; i < n; i++) {
        llama_token id;
        memcpy(&id, data + i*sizeof id, sizeof id);
        if (vocab_has(v, id)) v->suppress[v->n_suppress++] = id;
        else log_warn(KEY "suppress_tokens: %d found, an id below %d expected; left out", id, v->n_tokens);
    }
    return true;
}

/* ---- tokens that are looked for in text -------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) {
    const struct marked_token *x = a, *y = b;
    const int order = strcmp(x->text, y->text);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static bool collect_marked(struct llama_vocab *v) {
    enum { MARKED = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED | LLAMA_TOKEN_ATTR_UNKNOWN };
    size_t n = 0;
    for (int32_t i = 0; i < v->n_tokens; i++) n += (v->attr[i] & MARKED) != 0;
    if (n == 0) return true;
    v->marked = calloc(n, sizeof *v->marked);
    if (!v->marked) { log_error("vocabulary: out of memory"); return false; }
    for (int32_t i = 0; i < v->n_tokens; i++) {
        const char *text = v->attr[i] & MARKED ? vocab_text(v, i) : "";
        const size_t length = strlen(text);
        if (length == 0) continue;
        if (length > VOCAB_MAX_MARKED) {
            log_error(KEY "tokens: special token %d has %zu bytes, at most %d expected", i, length, VOCAB_MAX_MARKED);
            return false;
        }
        v->marked[v->n_marked++] = (struct marked_token) { text, (uint32_t) length, i };
    }
    qsort(v->marked, (size_t) v->n_marked, sizeof *v->marked, by_text);
    int32_t at = 0;
    for (int b = 0; b < 256; b++) {
        while (at < v->n_marked && (unsigned char) v->marked[at].text[0] < b) at++;
        v->marked_from[b] = at;
    }
    v->marked_from[256] = v->n_marked;
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool read_type(struct llama_vocab *v) {
    static const struct { const char *name; enum llama_vocab_type type; } types[] = {
        { "llama", LLAMA_VOCAB_TYPE_SPM }, { "gpt2", LLAMA_VOCAB_TYPE_BPE },
        { "none", LLAMA_VOCAB_TYPE_NONE }, { "no_vocab", LLAMA_VOCAB_TYPE_NONE },
    };
    const int64_t key = gguf_find_key(v->gguf, KEY "model");
    if (key < 0) { log_error(KEY "model: not found, a string expected"); return false; }
    if (gguf_get_kv_type(v->gguf, key) != GGUF_TYPE_STRING) return unexpected(v->gguf, key, "a string");
    const char *name = gguf_get_val_str(v->gguf, key);
    for (size_t i = 0; i < COUNT(types); i++) {
        v->type = types[i].type;
        if (!strcmp(name, types[i].name)) return true;
    }
    log_error(KEY "model: \"%.64s\" found, one of llama, gpt2, none expected", name);
    return false;
}

/* A model without a vocabulary may still say how many ids it has. */
static bool read_size_alone(struct llama_vocab *v) {
    char name[128];
    const int64_t arch = gguf_find_key(v->gguf, "general.architecture");
    if (arch < 0 || gguf_get_kv_type(v->gguf, arch) != GGUF_TYPE_STRING) return true;
    snprintf(name, sizeof name, "%.64s.vocab_size", gguf_get_val_str(v->gguf, arch));
    const int64_t key = gguf_find_key(v->gguf, name);
    if (key < 0) return true;
    if (gguf_get_kv_type(v->gguf, key) != GGUF_TYPE_UINT32) return unexpected(v->gguf, key, "u32");
    const uint32_t n = gguf_get_val_u32(v->gguf, key);
    if (n > INT32_MAX) { log_error("%s: %" PRIu32 " found, at most %d expected", name, n, INT32_MAX); return false; }
    v->n_tokens = (int32_t) n;
    return true;
}

static bool read_texts(struct llama_vocab *v) {
    int64_t key;
    if (!find_array(v->gguf, KEY "tokens", GGUF_TYPE_STRING, -1, &v->texts_key)) return false;
    const size_t n = v->texts_key < 0 ? 0 : gguf_get_arr_n(v->gguf, v->texts_key);
    if (n == 0 || n > VOCAB_MAX_TOKENS) {
        log_error(KEY "tokens: %zu found, 1 to %d expected", n, VOCAB_MAX_TOKENS);
        return false;
    }
    v->n_tokens = (int32_t) n;
    if (!find_array(v->gguf, KEY "scores", GGUF_TYPE_FLOAT32, v->n_tokens, &key)) return false;
    v->scores = key < 0 ? NULL : gguf_get_arr_data(v->gguf, key);
    v->attr = calloc(n, sizeof *v->attr);
    if (!v->attr || !hash_init(&v->ids, n)) { log_error("vocabulary: out of memory"); return false; }
    return true;
}

static bool load(struct llama_vocab *v) {
    if (!read_type(v)) return false;
    if (v->type == LLAMA_VOCAB_TYPE_NONE) return read_size_alone(v);
    if (!read_texts(v) || !read_attributes(v) || !index_texts(v)) return false;
    find_bytes(v);
    if (v->type == LLAMA_VOCAB_TYPE_BPE && !bpe_load(v)) return false;
    if (!read_specials(v) || !read_flags(v) || !read_suppressed(v)) return false;
    mark_ends(v);
    if (!collect_marked(v)) return false;
    strip_behind_specials(v);
    return true;
}

struct llama_vocab *vocab_new(const struct gguf_context *gguf) {
    struct llama_vocab *v = calloc(1, sizeof *v);
    if (!v) { log_error("vocabulary: out of memory"); return NULL; }
    v->gguf = gguf;
    v->texts_key = -1;
    for (int i = 0; i < SPECIAL_COUNT; i++) v->special[i] = LLAMA_TOKEN_NULL;
    for (int i = 0; i < 256; i++) v->byte_id[i] = LLAMA_TOKEN_NULL;
    if (load(v)) return v;
    vocab_free(v);
    return NULL;
}

void vocab_free(struct llama_vocab *v) {
    if (!v) return;
    free(v->attr);
    free(v->ids.slots);
    free(v->suppress);
    free(v->marked);
    free(v->merges);
    free(v->ranks.slots);
    pieces_free(v->pieces);
    free(v);
}

static size_t slots_bytes(const struct hash_index *index) { return index->slots ? ((size_t) index->mask + 1)*sizeof *index->slots : 0; }

size_t vocab_bytes(const struct llama_vocab *v) {
    return sizeof *v + (size_t) v->n_tokens*sizeof *v->attr + slots_bytes(&v->ids) + slots_bytes(&v->ranks) +
           (size_t) v->n_suppress*sizeof *v->suppress + (size_t) v->n_marked*sizeof *v->marked +
           (size_t) v->n_merges*sizeof *v->merges;
}
