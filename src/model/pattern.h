#ifndef MODEL_PATTERN_H
#define MODEL_PATTERN_H
/* Regular expressions that come with requests: the syntax of ECMAScript (ECMA-262, "RegExp") over bytes, in time linear in the
 * text whatever the expression.
 *
 *   text of an expression ──pattern.c──> a program ──pattern_search.c──> where it is first found in a text that still grows
 *
 * Read: alternatives, groups (...) and (?:...), classes with ranges and escapes, . \d \w \s and their opposites, \b \B ^ $,
 * * + ? {m,n} and their lazy forms, \xHH \uHHHH. Refused: references to groups and looking around, which need more than linear
 * time, and what passes the bounds below. ^ and $ are the ends of the text, not of lines. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATTERN_NODES  = 4096,              /* of a program; counted repeats are written out */
    PATTERN_GROUPS = 16,                /* that remember where they matched */
    PATTERN_DEPTH  = 64,                /* of groups in groups */
};

enum pattern_op {
    PATTERN_BYTE,       /* a byte of sets[arg] */
    PATTERN_SPLIT,      /* the next node and the one `to` away; the latter first when arg */
    PATTERN_JUMP,       /* the node `to` away */
    PATTERN_SAVE,       /* remember where this is as mark `arg` */
    PATTERN_BEGIN, PATTERN_END,                         /* of the text */
    PATTERN_EDGE,       /* of a word, or not of one when arg is 0 */
    PATTERN_MATCH,
};

struct pattern_node { uint8_t op; uint16_t arg; int16_t to; };
struct byte_set     { uint32_t bits[8]; };

struct pattern {
    struct pattern_node *nodes;
    struct byte_set     *sets;
    size_t n_nodes, n_sets, n_groups;   /* marks 2g and 2g + 1 are where group g begins and ends; group 0 is all */
};

/* NULL after one line of log that begins with `what`: no expression, one that is refused, or no memory. */
struct pattern *pattern_parse(const char *text, const char *what);
/* The pattern of a text that stands for itself. */
struct pattern *pattern_of_word(const char *word, const char *what);
void pattern_free(struct pattern *p);

/* Where it occurs in a text that grows. Of all matches the leftmost is found, and of those that begin there the one that the
 * expression prefers. */
struct search;
struct search *search_new(const struct pattern *p);     /* NULL: no memory; the pattern must live as long */
void search_free(struct search *s);
void search_reset(struct search *s);                    /* to the empty text */
void search_copy(struct search *to, const struct search *from);     /* of the same pattern */
/* The marks of a match in the text so far, were it to end after these bytes; NULL: none. NO_MARK: its group took no part. */
#define NO_MARK SIZE_MAX
const size_t *search_feed(struct search *s, const void *bytes, size_t n);

/* 1: it occurs in the text; 0: it does not; -1: no memory. */
int pattern_occurs(const struct pattern *p, const char *text);

#endif
