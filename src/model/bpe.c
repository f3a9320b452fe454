/* Byte-level byte pair encoding (Sennrich, Haddow and Birch 2016; bytes written as characters: Radford et al. 2019). Words
 * come from the pre-tokenizer; in each the bytes are merged by rank. Rules are kept by token id, so merging looks at no
 * text. */

#include "log.h"
#include "merge.h"
#include "pre.h"

/* Printable bytes stand for themselves; the 68 others take the code points from 256 on, in order. */
static uint32_t code_of_byte(unsigned char b) {
    return b <= 0x20 ? 0x100u + b : b >= 0x7f && b <= 0xa0 ? 0x121u + (b - 0x7fu) : b == 0xad ? 0x143u : b;
}

int byte_of_code(uint32_t code) {
    if (code >= 0x100) return code <= 0x120 ? (int) code - 0x100 : code <= 0x142 ? (int) code - 0x121 + 0x7f
        : code == 0x143 ? 0xad : -1;
    return code_of_byte((unsigned char) code) == code ? (int) code : -1;
}

size_t byte_to_text(unsigned char byte, char text[2]) {
    const uint32_t code = code_of_byte(byte);
    if (code < 0x80) { text[0] = (char) code; return 1; }
    text[0] = (char) (0xc0 | code >> 6);
    text[1] = (char) (0x80 | (code & 0x3f));
    return 2;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static uint64_t hash_pair(llama_token left, llama_token right) {
    return hash_mix(hash_mix(0, (uint64_t) (uint32_t) left << 32 | (uint32_t) right), 0);
}

/* Index of the rule in v->merges, which is its rank; -1: none. */
static int64_t find_rule(const struct llama_vocab *v, llama_token left, llama_token right, struct hash_probe *p) {
    *p = hash_begin(&v->ranks, hash_pair(left, right));
    int64_t i;
    while ((i = hash_next(&v->ranks, p)) >= 0 && (v->merges[i].left != left || v->merges[i].right != right)) {}
    return i;
}

/* Rules on their way into the table: the texts of each, two in gguf and one in `joined`, and their ids. */
struct rule_batch {
    const char *texts[3][VOCAB_BATCH];
    size_t      lengths[3][VOCAB_BATCH];
    llama_token ids[3][VOCAB_BATCH];
    int         n;
    char       *joined;
    size_t      size, used;         /* bytes of `joined` */
    size_t      unknown;            /* rules left out so far */
};

/* "left right"; a rule that makes a text longer than any token's is left out. False: no such form. */
static bool batch_add(const struct llama_vocab *v, struct rule_batch *b, const char *text) {
    const char *space = *text ? strchr(text + 1, ' ') : NULL;
    if (!space) return false;
    const size_t left = (size_t) (space - text), right = strlen(space + 1);
    if (left + right > v->longest) { b->unknown++; return true; }
    char *joined = b->joined + b->used;
    memcpy(joined, text, left);
    memcpy(joined + left, space + 1, right);
    b->used += left + right;
    b->texts[0][b->n] = text;      b->lengths[0][b->n] = left;
    b->texts[1][b->n] = space + 1; b->lengths[1][b->n] = right;
    b->texts[2][b->n] = joined;    b->lengths[2][b->n] = left + right;
    b->n++;
    return true;
}

static bool batch_flush(struct llama_vocab *v, struct rule_batch *b) {
    for (int k = 0; k < 3; k++) vocab_find_batch(v, b->texts[k], b->lengths[k], b->ids[k], b->n);
    for (int i = 0; i < b->n; i++) hash_touch(&v->ranks, hash_pair(b->ids[0][i], b->ids[1][i]));
    for (int i = 0; i < b->n; i++) {
        const struct merge_rule rule = { b->ids[0][i], b->ids[1][i], b->ids[2][i] };
        struct hash_probe p;
        if (rule.left < 0 || rule.right < 0 || rule.merged < 0) { b->unknown++; continue; }
        if (find_rule(v, rule.left, rule.right, &p) >= 0) continue;        /* the first, better one counts */
        if (!hash_put(&v->ranks, p, (size_t) v->n_merges)) {
            log_error("tokenizer.ggml.merges: %d pairs of one hash found", HASH_MAX_PROBES);
            return false;
        }
        v->merges[v->n_merges++] = rule;
    }
    b->n = 0;
    b->used = 0;
    return true;
}

static bool read_rules(struct llama_vocab *v, int64_t key, size_t n, struct rule_batch *b) {
    for (size_t i = 0; i < n; i++) {
        const char *text = gguf_get_arr_str(v->gguf, key, i);
        if ((b->n == VOCAB_BATCH || b->used + v->longest > b->size) && !batch_flush(v, b)) return false;
        if (!batch_add(v, b, text)) {
            log_error("tokenizer.ggml.merges: entry %zu is \"%.64s\", two texts with a space between expected", i, text);
            return false;
        }
    }
    if (!batch_flush(v, b)) return false;
    if (b->unknown) log_warn("tokenizer.ggml.merges: %zu of %zu name texts that are not tokens; left out", b->unknown, n);
    return true;
}

static bool load_rules(struct llama_vocab *v) {
    const struct gguf_context *gguf = v->gguf;
    const int64_t key = gguf_find_key(gguf, "tokenizer.ggml.merges");
    size_t n = 0;
    if (key >= 0) {
        if (gguf_get_kv_type(gguf, key) != GGUF_TYPE_ARRAY || gguf_get_arr_type(gguf, key) != GGUF_TYPE_STRING) {
            log_error("tokenizer.ggml.merges: %s found, an array of strings expected",
                gguf_type_name(gguf_get_kv_type(gguf, key)));
            return false;
        }
        n = gguf_get_arr_n(gguf, key);
    }
    if (n > VOCAB_MAX_TOKENS) {
        log_error("tokenizer.ggml.merges: %zu found, at most %d expected", n, VOCAB_MAX_TOKENS);
        return false;
    }
    struct rule_batch batch = { .size = v->longest < 4096 ? 8*4096 : 8*v->longest };
    batch.joined = malloc(batch.size);
    v->merges = calloc(n + 1, sizeof *v->merges);
    bool ok = batch.joined && v->merges && hash_init(&v->ranks, n);
    if (!ok) log_error("vocabulary: out of memory");
    ok = ok && read_rules(v, key, n, &batch);
    free(batch.joined);
    return ok;
}

bool bpe_load(struct llama_vocab *v) {
    const int64_t key = gguf_find_key(v->gguf, "tokenizer.ggml.pre");
    const char *name = NULL;
    if (key >= 0) {
        if (gguf_get_kv_type(v->gguf, key) != GGUF_TYPE_STRING) {
            log_error("tokenizer.ggml.pre: %s found, a string expected", gguf_type_name(gguf_get_kv_type(v->gguf, key)));
            return false;
        }
        name = gguf_get_val_str(v->gguf, key);
        v->pre = pre_find(name);
    }
    if (!v->pre) {
        v->pre = pre_find("default");
        if (name) log_warn("tokenizer.ggml.pre: \"%.64s\" is not known; cutting words as \"default\" does", name);
        else      log_warn("tokenizer.ggml.pre: not found; cutting words as \"default\" does");
    }
    return load_rules(v);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool merge_by_rank(const struct merger *m, const struct symbol *left, const struct symbol *right,
        struct candidate *c) {
    struct hash_probe p;
    if (left->id < 0 || right->id < 0) return false;
    const int64_t rank = find_rule(m->vocab, left->id, right->id, &p);
    if (rank < 0) return false;
    c->priority = (uint32_t) rank;
    c->id       = m->vocab->merges[rank].merged;
    return true;
}

/* The token whose text is the whole word; m->buffer has room for the longest text. */
static llama_token whole_word(const struct llama_vocab *v, struct merger *m, const char *word, size_t length) {
    size_t n = 0;
    if (length > v->longest) return LLAMA_TOKEN_NULL;
    for (size_t i = 0; i < length; i++) n += byte_to_text((unsigned char) word[i], m->buffer + n);
    const llama_token id = vocab_find(v, m->buffer, n);
    return id >= 0 && v->attr[id] & LLAMA_TOKEN_ATTR_NORMAL ? id : LLAMA_TOKEN_NULL;
}

bool bpe_tokenize(const struct llama_vocab *v, struct merger *m, const char *text, size_t length,
        struct token_sink *sink) {
    struct pre_scan scan = pre_begin(v->pre, text, length);
    if (pre_ignores_merges(v->pre) && !merger_buffer(m, 2*v->longest + 1)) return false;
    for (size_t n, at = 0; (n = pre_next(&scan)) > 0; at += n) {
        const llama_token whole = pre_ignores_merges(v->pre) ? whole_word(v, m, text + at, n) : LLAMA_TOKEN_NULL;
        if (whole >= 0) {
            sink_put(sink, whole);
            continue;
        }
        if (!merger_begin(m, text + at, n)) return false;
        for (size_t i = 0; i < n; i++) merger_add(m, i, 1, v->byte_id[(unsigned char) text[at + i]]);
        merger_run(m, merge_by_rank);
        merger_emit(m, sink);
    }
    return true;
}
