/* SentencePiece's byte pair encoding (Kudo and Richardson 2018): spaces become U+2581, characters merge in the order of the
 * scores of the tokens that they form, and what is no token becomes tokens of bytes.
 *
 * A text is cut before a space where no token reaches over that place, so that long texts are merged word by word; the ids
 * are those of merging the whole. */

#include "merge.h"
#include "unicode.h"

/* Higher scores first; any order of bits is an order here, so a NaN does no harm. */
static uint32_t priority_of(float score) {
    uint32_t bits;
    score += 0.0f;                                          /* -0 ties with 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* Control, unknown and byte tokens are never made of text. */
static llama_token find_piece(const struct llama_vocab *v, const char *text, size_t length) {
    const llama_token id = vocab_find(v, text, length);
    enum { NOT_TEXT = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_BYTE };
    return id >= 0 && !(v->attr[id] & NOT_TEXT) ? id : LLAMA_TOKEN_NULL;
}

static bool merge_by_score(const struct merger *m, const struct symbol *left, const struct symbol *right,
        struct candidate *c) {
    (void) right;
    c->id = find_piece(m->vocab, m->text + left->start, c->length);
    if (c->id < 0) return false;
    c->priority = priority_of(vocab_score(m->vocab, c->id));
    return true;
}

/* Bytes up to the place before the next space that no token reaches over. */
static size_t next_word(const struct llama_vocab *v, const char *text, size_t length) {
    size_t at = 1;
    while (at < length && (text[at] != ' ' || text[at - 1] == ' ' || v->spans[(unsigned char) text[at - 1]])) at++;
    return at < length ? at : length;
}

/* The word with marks for its spaces, at m->buffer. *n: its bytes, *chars: its characters. */
static bool escape(struct merger *m, const char *word, size_t length, bool space_prefix, size_t *n, size_t *chars) {
    size_t spaces = space_prefix, at = 0;
    for (size_t i = 0; i < length; i++) spaces += word[i] == ' ';
    if (!merger_buffer(m, length + SPACE_MARK_BYTES*spaces)) return false;
    if (space_prefix) {
        memcpy(m->buffer, SPACE_MARK, SPACE_MARK_BYTES);
        at = SPACE_MARK_BYTES;
    }
    for (size_t i = 0; i < length; i++) {
        if (word[i] == ' ') { memcpy(m->buffer + at, SPACE_MARK, SPACE_MARK_BYTES); at += SPACE_MARK_BYTES; }
        else                m->buffer[at++] = word[i];
    }
    *n = at;
    *chars = 0;
    for (at = 0; at < *n; at += char_length(m->buffer + at, *n - at)) ++*chars;
    return true;
}

static bool tokenize_word(const struct llama_vocab *v, struct merger *m, const char *word, size_t length,
        bool space_prefix, struct token_sink *sink) {
    size_t n, chars;
    if (!escape(m, word, length, space_prefix, &n, &chars) || !merger_begin(m, m->buffer, chars)) return false;
    for (size_t at = 0, size; at < n; at += size) {
        size = char_length(m->buffer + at, n - at);
        merger_add(m, at, size, find_piece(v, m->buffer + at, size));
    }
    merger_run(m, merge_by_score);
    merger_emit(m, sink);
    return true;
}

bool spm_tokenize(const struct llama_vocab *v, struct merger *m, const char *text, size_t length,
        bool space_prefix, struct token_sink *sink) {
    for (size_t at = 0, n; at < length; at += n) {
        n = next_word(v, text + at, length - at);
        if (!tokenize_word(v, m, text + at, n, space_prefix && at == 0, sink)) return false;
    }
    return true;
}
