/* Ids to text, and what a program may ask about a vocabulary. Any id is a valid argument: one that the vocabulary does not
 * have has no text, no score and no attributes. */

#include "unicode.h"
#include "vocab.h"

/* ---- questions --------------------------------------------------------------------------------------------------- */

enum llama_vocab_type llama_vocab_type(const struct llama_vocab *vocab) { return vocab->type; }
int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab)           { return vocab->n_tokens; }

static bool has_text(const struct llama_vocab *v, llama_token id) { return vocab_has(v, id) && v->attr; }

const char *llama_vocab_get_text(const struct llama_vocab *vocab, llama_token token) {
    return has_text(vocab, token) ? vocab_text(vocab, token) : "";
}

float llama_vocab_get_score(const struct llama_vocab *vocab, llama_token token) {
    return has_text(vocab, token) ? vocab_score(vocab, token) : 0.0f;
}

enum llama_token_attr llama_vocab_get_attr(const struct llama_vocab *vocab, llama_token token) {
    return (enum llama_token_attr) (has_text(vocab, token) ? vocab->attr[token] & ~ATTR_EOG : LLAMA_TOKEN_ATTR_UNDEFINED);
}

bool llama_vocab_is_eog(const struct llama_vocab *vocab, llama_token token) {
    return has_text(vocab, token) && vocab->attr[token] & ATTR_EOG;
}

bool llama_vocab_is_control(const struct llama_vocab *vocab, llama_token token) {
    return has_text(vocab, token) && vocab->attr[token] & LLAMA_TOKEN_ATTR_CONTROL;
}

#define SPECIAL(name, role) \
    llama_token llama_vocab_##name(const struct llama_vocab *vocab) { return vocab->special[SPECIAL_##role]; }
SPECIAL(bos, BOS)  SPECIAL(eos, EOS)  SPECIAL(eot, EOT)  SPECIAL(sep, SEP)  SPECIAL(pad, PAD)  SPECIAL(mask, MASK)
SPECIAL(fim_pre, FIM_PRE)  SPECIAL(fim_suf, FIM_SUF)  SPECIAL(fim_mid, FIM_MID)
SPECIAL(fim_pad, FIM_PAD)  SPECIAL(fim_rep, FIM_REP)  SPECIAL(fim_sep, FIM_SEP)
#undef SPECIAL

llama_token llama_vocab_cls(const struct llama_vocab *vocab)     { return llama_vocab_bos(vocab); }
llama_token llama_vocab_nl(const struct llama_vocab *vocab)      { return vocab->byte_id['\n']; }
bool llama_vocab_get_add_bos(const struct llama_vocab *vocab)    { return vocab->add_bos; }
bool llama_vocab_get_add_eos(const struct llama_vocab *vocab)    { return vocab->add_eos; }
bool llama_vocab_get_add_sep(const struct llama_vocab *vocab)    { return vocab->add_sep; }

const llama_token *llama_vocab_get_suppress_tokens(const struct llama_vocab *vocab, int32_t *n_suppress_tokens) {
    *n_suppress_tokens = vocab->n_suppress;
    return vocab->suppress;
}

/* The names of before. */
#define OLD(type, old, new) type old(const struct llama_vocab *vocab) { return new(vocab); }
OLD(llama_token, llama_token_bos, llama_vocab_bos)          OLD(llama_token, llama_token_eos, llama_vocab_eos)
OLD(llama_token, llama_token_eot, llama_vocab_eot)          OLD(llama_token, llama_token_cls, llama_vocab_bos)
OLD(llama_token, llama_token_sep, llama_vocab_sep)          OLD(llama_token, llama_token_nl, llama_vocab_nl)
OLD(llama_token, llama_token_pad, llama_vocab_pad)          OLD(int32_t, llama_n_vocab, llama_vocab_n_tokens)
OLD(bool, llama_add_bos_token, llama_vocab_get_add_bos)     OLD(bool, llama_add_eos_token, llama_vocab_get_add_eos)
OLD(llama_token, llama_token_fim_pre, llama_vocab_fim_pre)  OLD(llama_token, llama_token_fim_suf, llama_vocab_fim_suf)
OLD(llama_token, llama_token_fim_mid, llama_vocab_fim_mid)  OLD(llama_token, llama_token_fim_pad, llama_vocab_fim_pad)
OLD(llama_token, llama_token_fim_rep, llama_vocab_fim_rep)  OLD(llama_token, llama_token_fim_sep, llama_vocab_fim_sep)
#undef OLD
#define OLD(type, old, new) type old(const struct llama_vocab *vocab, llama_token token) { return new(vocab, token); }
OLD(const char *, llama_token_get_text, llama_vocab_get_text)   OLD(float, llama_token_get_score, llama_vocab_get_score)
OLD(enum llama_token_attr, llama_token_get_attr, llama_vocab_get_attr)
OLD(bool, llama_token_is_eog, llama_vocab_is_eog)               OLD(bool, llama_token_is_control, llama_vocab_is_control)
#undef OLD

/* ---- text of ids ------------------------------------------------------------------------------------------------- */

/* Where text goes: leading spaces are dropped while `strip` lasts, the rest is written while it fits and always counted. */
struct text_sink {
    char   *text;
    int64_t capacity, count;
    int32_t strip;
};

static void put_bytes(struct text_sink *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (out->strip > 0 && bytes[i] == ' ') { out->strip--; continue; }
        out->strip = 0;
        if (out->count < out->capacity) out->text[out->count] = bytes[i];
        out->count++;
    }
}

static void put_spm(struct text_sink *out, const char *text) {
    for (const char *mark; (mark = strstr(text, SPACE_MARK)); text = mark + SPACE_MARK_BYTES) {
        put_bytes(out, text, (size_t) (mark - text));
        put_bytes(out, " ", 1);
    }
    put_bytes(out, text, strlen(text));
}

/* A character that stands for no byte is text as it is. */
static void put_bpe(struct text_sink *out, const char *text) {
    size_t left = strlen(text);
    for (struct character c; (c = char_at(text, left)).length; text += c.length, left -= c.length) {
        const int byte = byte_of_code(c.code);
        const char plain = (char) byte;
        put_bytes(out, byte < 0 ? text : &plain, byte < 0 ? c.length : 1);
    }
}

static void put_token(struct text_sink *out, const struct llama_vocab *v, llama_token id, bool special) {
    if (!has_text(v, id)) return;
    const char *text = vocab_text(v, id);
    const unsigned attr = v->attr[id];
    if (attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) {
        if (special) put_bytes(out, text, strlen(text));
    } else if (attr & LLAMA_TOKEN_ATTR_USER_DEFINED) {
        put_bytes(out, text, strlen(text));
    } else if (attr & LLAMA_TOKEN_ATTR_BYTE) {
        const char byte = (char) byte_of_token_text(text);
        put_bytes(out, &byte, 1);
    } else if (attr & LLAMA_TOKEN_ATTR_NORMAL) {
        if (v->type == LLAMA_VOCAB_TYPE_SPM) put_spm(out, text);
        else                                 put_bpe(out, text);
    }
}

static int32_t size_or_need(const struct text_sink *out) {
    if (out->count > INT32_MAX) return INT32_MIN;
    return out->count <= out->capacity ? (int32_t) out->count : (int32_t) -out->count;
}

int32_t llama_token_to_piece(const struct llama_vocab *vocab, llama_token token, char *buf, int32_t length,
        int32_t lstrip, bool special) {
    struct text_sink out = { buf, buf && length > 0 ? length : 0, 0, lstrip };
    put_token(&out, vocab, token, special);
    return size_or_need(&out);
}

int32_t llama_detokenize(const struct llama_vocab *vocab, const llama_token *tokens, int32_t n_tokens, char *text,
        int32_t text_len_max, bool remove_special, bool unparse_special) {
    struct text_sink out = { text, text && text_len_max > 0 ? text_len_max : 0, 0, 0 };
    if (n_tokens < 0) n_tokens = 0;
    if (remove_special && vocab->add_eos && n_tokens > 0 && tokens[n_tokens - 1] == vocab->special[SPECIAL_EOS]) n_tokens--;
    int32_t i = remove_special && vocab->add_bos && n_tokens > 0 && tokens[0] == vocab->special[SPECIAL_BOS];
    for (; i < n_tokens; i++) {
        /* The tokenizer puts a space in front of the text and behind a special token; here it goes again. */
        const bool after_special = i == 0 || llama_vocab_get_attr(vocab, tokens[i - 1])
            & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED);
        out.strip = vocab->add_space_prefix && after_special;
        put_token(&out, vocab, tokens[i], unparse_special);
    }
    return size_or_need(&out);
}
