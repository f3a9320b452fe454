#ifndef MODEL_MERGE_H
#define MODEL_MERGE_H
/* Merging neighbours until nothing merges: the common part of BPE and SPM. The pair of the lowest priority number merges
 * first, of equal ones the leftmost. n symbols take O(n log n) steps and 52 n bytes, which are kept for the next word. */

#include "vocab.h"

struct symbol {
    uint32_t    previous, next;     /* neighbours; MERGE_NONE at the ends */
    uint32_t    start, length;      /* bytes of the word; length 0: merged into the one before */
    llama_token id;                 /* LLAMA_TOKEN_NULL: no token has this text */
};

struct candidate {
    uint32_t    priority, left, length;     /* symbol on the left, bytes of both */
    llama_token id;                         /* the token of both together */
};

#define MERGE_NONE UINT32_MAX

struct merger {
    const struct llama_vocab *vocab;
    const char       *text;                 /* the word */
    struct symbol    *symbols;              /* [n_symbols]; the first is never merged away */
    struct candidate *heap;                 /* [n_heap] the lowest on top */
    size_t            n_symbols, n_heap, capacity;
    char             *buffer;               /* room for a rewritten word */
    size_t            buffer_size;
};

/* Room for a word of n symbols, and none in it. False: out of memory, or n is above 2^30. */
bool merger_begin(struct merger *m, const char *text, size_t n);
/* At least n bytes at m->buffer. */
bool merger_buffer(struct merger *m, size_t n);
void merger_free(struct merger *m);

static inline void merger_add(struct merger *m, size_t start, size_t length, llama_token id) {
    const uint32_t i = (uint32_t) m->n_symbols++;
    m->symbols[i] = (struct symbol) { i ? i - 1 : MERGE_NONE, i + 1, (uint32_t) start, (uint32_t) length, id };
}

/* May these neighbours merge? Fills priority and id of *c. */
typedef bool (*merge_rule_of)(const struct merger *m, const struct symbol *left, const struct symbol *right,
    struct candidate *c);

/* Merges the symbols added. What is left is the list from symbols[0] by `next`. */
void merger_run(struct merger *m, merge_rule_of rule);

/* Their tokens; a symbol without one becomes the tokens of its bytes, a byte without one the unknown token. */
void merger_emit(const struct merger *m, struct token_sink *sink);

#endif
