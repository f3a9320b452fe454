#ifndef MODEL_PRE_H
#define MODEL_PRE_H
/* Pre-tokenizers: how byte-level BPE cuts text into words before it merges. */

#include <stdbool.h>
#include <stddef.h>

enum { PRE_MAX_STAGES = 6 };

struct pre;                     /* one way of cutting, by the value of tokenizer.ggml.pre */

/* The one of that name; NULL: not known. */
const struct pre *pre_find(const char *name);

/* What the models of that name do unless their files say otherwise. */
bool pre_ignores_merges(const struct pre *pre);     /* a word that is a token is that token, whatever the merges give */
bool pre_adds_bos(const struct pre *pre);

/* Cuts a text into words from front to back, in time linear in its length, without memory of its own. */
struct pre_scan {
    const struct pre *pre;
    const char       *text;
    size_t            length, at;
    size_t            ends[PRE_MAX_STAGES];     /* end of the piece that each stage has open */
};
struct pre_scan pre_begin(const struct pre *pre, const char *text, size_t length);

/* Bytes of the next word, which starts at scan->at as it was before the call; 0: the text is at its end. */
size_t pre_next(struct pre_scan *scan);

#endif
