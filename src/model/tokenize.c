/* Text to ids. Special tokens are found first, the leftmost of them and of several at one place the longest; what lies
 * between them is the tokenizer's. User-defined tokens are found always, control and unknown ones when asked for. */

#include "log.h"
#include "merge.h"

static bool is_white(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* The longest marked token at the start of the text; NULL: none. `marked` is sorted, so the tokens that agree with the
 * first n bytes are a shrinking range of it, those that end there first. */
static const struct marked_token *match_marked(const struct llama_vocab *v, const char *text, size_t left, bool special) {
    const struct marked_token *found = NULL;
    int32_t low = v->marked_from[(unsigned char) text[0]], high = v->marked_from[(unsigned char) text[0] + 1];
    for (size_t n = 1; low < high; n++) {
        for (; low < high && v->marked[low].length == n; low++) {
            const struct marked_token *m = &v->marked[low];
            const bool wanted = special || v->attr[m->id] & LLAMA_TOKEN_ATTR_USER_DEFINED;
            if (wanted && (!found || found->length < n)) found = m;
        }
        if (n >= left) break;
        const unsigned char next = (unsigned char) text[n];
        for (int32_t end = high; low < end; ) {             /* first token with a byte >= next at n */
            const int32_t middle = low + (end - low)/2;
            if ((unsigned char) v->marked[middle].text[n] < next) low = middle + 1;
            else                                              end = middle;
        }
        for (int32_t begin = low; begin < high; ) {         /* first one with a byte > next */
            const int32_t middle = begin + (high - begin)/2;
            if ((unsigned char) v->marked[middle].text[n] <= next) begin = middle + 1;
            else                                               high = middle;
        }
    }
    return found;
}

struct run {
    const struct llama_vocab *vocab;
    struct merger             merger;
    struct token_sink         sink;
    bool                      after_special;        /* at the start, or behind a special token */
};

static bool raw_text(struct run *r, const char *text, size_t length) {
    if (length == 0) return true;
    const bool prefix = r->vocab->add_space_prefix && r->after_special;
    r->after_special = false;
    return r->vocab->type == LLAMA_VOCAB_TYPE_SPM
        ? spm_tokenize(r->vocab, &r->merger, text, length, prefix, &r->sink)
        : bpe_tokenize(r->vocab, &r->merger, text, length, &r->sink);
}

static bool all_text(struct run *r, const char *text, size_t length, bool special) {
    const struct llama_vocab *v = r->vocab;
    size_t begin = 0, at = 0;
    while (at < length) {
        const unsigned char first = (unsigned char) text[at];
        const struct marked_token *m = v->marked_from[first] == v->marked_from[first + 1] ? NULL
            : match_marked(v, text + at, length - at, special);
        if (!m) { at++; continue; }
        size_t end = at;
        if (v->attr[m->id] & LLAMA_TOKEN_ATTR_LSTRIP) while (end > begin && is_white(text[end - 1])) end--;
        if (!raw_text(r, text + begin, end - begin)) return false;
        sink_put(&r->sink, m->id);
        r->after_special = true;
        at += m->length;
        if (v->attr[m->id] & LLAMA_TOKEN_ATTR_RSTRIP) while (at < length && is_white(text[at])) at++;
        begin = at;
    }
    return raw_text(r, text + begin, length - begin);
}

int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token *tokens,
        int32_t n_tokens_max, bool add_special, bool parse_special) {
    if (vocab->type == LLAMA_VOCAB_TYPE_NONE) return 0;
    struct run r = { .vocab = vocab, .merger = { .vocab = vocab }, .after_special = true,
        .sink = { tokens, tokens && n_tokens_max > 0 ? n_tokens_max : 0, 0 } };
    if (add_special && vocab->add_bos) sink_put(&r.sink, vocab->special[SPECIAL_BOS]);
    const bool ok = all_text(&r, text ? text : "", text && text_len > 0 ? (size_t) text_len : 0, parse_special);
    if (add_special && vocab->add_eos) sink_put(&r.sink, vocab->special[SPECIAL_EOS]);
    merger_free(&r.merger);
    if (!ok) log_error("llama_tokenize: out of memory for a text of %d bytes", text_len);
    if (!ok || r.sink.count > INT32_MAX) return INT32_MIN;
    return r.sink.count <= r.sink.capacity ? (int32_t) r.sink.count : (int32_t) -r.sink.count;
}
