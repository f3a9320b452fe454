#ifndef MODEL_GRAMMAR_H
#define MODEL_GRAMMAR_H
/* Grammars that constrain generated text, and where in one a text stands.
 *
 *   GBNF text ──grammar.c──> a program of nodes ──grammar_match.c──> the places a text may be at ──sample_grammar.c──> a mask
 *
 * A rule is a run of nodes ended by RETURN. Node i goes on at i + 1 unless it says otherwise. A parsed grammar never changes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grammar_op {
    GRAMMAR_CHARS,      /* one character of ranges[at .. at + n) */
    GRAMMAR_CALL,       /* rule `at` */
    GRAMMAR_SPLIT,      /* i + 1, or `at` */
    GRAMMAR_JUMP,       /* `at` */
    GRAMMAR_RETURN,     /* the end of a rule */
};

/* What a CHARS takes: code points, and tokens as a whole, which lie beyond them. */
#define GRAMMAR_TOKEN(id) (0x200000u + (uint32_t) (id))

struct grammar_node {
    uint32_t op, at, n;
};

struct code_range {     /* inclusive */
    uint32_t first, last;
};

struct grammar {
    struct grammar_node *nodes;
    struct code_range   *ranges;        /* of one CHARS: ascending, apart from each other */
    uint32_t            *starts;        /* [n_rules]: a rule's first node */
    uint32_t n_nodes, n_ranges, n_rules, root;
    bool     has_tokens;                /* some range is of tokens */
};

/* The grammar of a GBNF text whose texts begin with rule `root`. NULL after one line of log: the text is no grammar, a rule is
 * missing or begins with itself, a bound of grammar.c is passed, or memory runs out. Names of tokens are those of the vocabulary,
 * which may be NULL: then there are none. */
struct llama_vocab;
struct grammar *grammar_parse(const char *text, const char *root, const struct llama_vocab *vocab);
void grammar_free(struct grammar *g);

/* ---- places ------------------------------------------------------------------------------------------------------ */

struct place { uint32_t node, frame; };                 /* where to go on, and who called the rule that it is in */

/* A rule entered at some point of the text, and all the calls that entered it there. Merging them keeps the number of places
 * polynomial in the text, whatever the grammar (Scott and Johnstone 2010, "GLL Parsing"). */
struct frame { uint32_t calls; bool left; };            /* the first of its calls, + 1; left again where it was entered */
struct call  { uint32_t node, frame, next; };           /* where the caller goes on; the next call of the list, + 1 */

/* The places after some characters: a run of matcher.places, all of them at CHARS. Levels are a stack: stepping from one
 * forgets every level that was reached from it by other characters. */
struct level {
    uint32_t first, n;
    uint32_t n_frames, n_calls;         /* in use up to here */
    uint64_t stepped;                   /* which of its places took the last character: the level above is theirs */
    bool     ends;                      /* the text may end here */
};

struct matcher {
    const struct grammar *grammar;
    struct place *places, *seen;        /* of all levels; of the step being made */
    struct frame *frames;               /* frames[0]: the start */
    struct call  *calls;
    uint32_t n_places, n_seen, n_frames, n_calls;
    uint32_t room_places, room_seen, room_frames, room_calls;
    uint64_t *slots;                    /* hash of seen: stamp << 32 | index; twice room_seen of them */
    uint64_t *entered;                  /* [n_rules] stamp << 32 | frame: entered in this step */
    uint32_t  stamp;
};

/* Each returns false when memory or a bound ends it. */
bool matcher_init(struct matcher *m, const struct grammar *g, struct level *base);
bool matcher_copy(struct matcher *to, const struct matcher *from);      /* fresh; stacks above its base are not copied */
void matcher_free(struct matcher *m);
/* From a level by one character to the one above. False: no place takes it. */
bool matcher_step(struct matcher *m, struct level *from, uint32_t code, struct level *to);
/* The same, and the places of `also`, a level reached from `from` another way, stay beside those. */
bool matcher_step_beside(struct matcher *m, struct level *from, uint32_t code, const struct level *also, struct level *to);
/* Would a place take some character of low .. high? */
bool matcher_may(const struct matcher *m, const struct level *from, uint32_t low, uint32_t high);
/* Makes `level` the new base and gives back what only others needed. */
void matcher_commit(struct matcher *m, struct level *level);

/* ---- UTF-8 byte by byte, across tokens ---------------------------------------------------------------------------- */

struct utf8_part { uint32_t code, least; uint8_t left; };   /* of an unfinished character; left 0: none */

/* 1: `part` is a whole character; 0: it goes on; -1: not UTF-8. */
int utf8_push(struct utf8_part *part, unsigned char byte);
struct code_range utf8_range(const struct utf8_part *part);         /* what an unfinished one may become */

#endif
