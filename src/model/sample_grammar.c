/* The sampler that lets a grammar's texts pass alone. It knows the places where the text so far may be in the grammar; a token
 * passes when its bytes lead to another place, an end of generation where the text may end. The grammar is parsed once and
 * shared by clones. A lazy one waits, and lets everything pass, until a trigger appears in the text. */

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "grammar.h"
#include "log.h"
#include "pattern.h"
#include "vocab.h"

enum { MAX_WAIT = 1 << 20 };            /* bytes of text in which triggers are looked for */

struct constraint {                     /* what clones share */
    atomic_int         users;
    struct grammar    *grammar;         /* NULL: everything passes */
    struct pattern   **triggers;        /* [n_triggers]: the grammar's text begins at the first group of one, or where it begins */
    llama_token       *tokens;          /* [n_tokens] triggers too; the grammar's text begins with them */
    size_t             n_triggers, n_tokens;
    bool               lazy;
};

struct state {
    const struct llama_vocab *vocab;
    const struct piece_table *pieces;
    struct constraint *c;
    struct matcher     matcher;
    struct utf8_part   part;            /* of a character that the text so far leaves open */
    bool               waiting, lost;   /* for a trigger; after a token that the grammar has no place for */
    char              *text;            /* while waiting */
    size_t             length, room;
    struct search    **searches;        /* [n_triggers] for triggers in it */
    struct level      *levels;          /* [longest + 1]: the base, and after each character of the token in hand */
    struct utf8_part  *parts;           /* [longest + 1]: after each byte */
    uint32_t          *depth;           /* [longest + 1]: the level after each byte */
    uint8_t           *passes;          /* [n_tokens] of the mask in hand */
};

/* ---- walking ------------------------------------------------------------------------------------------------------- */

/* Goes on from byte `from`, whose levels are there, to the end of the bytes; how many of them have a place. */
static uint32_t walk(struct state *s, const unsigned char *bytes, uint32_t from, uint32_t n) {
    for (uint32_t i = from; i < n; i++) {
        struct utf8_part part = s->parts[i];
        uint32_t at = s->depth[i];
        const int whole = utf8_push(&part, bytes[i]);
        if (whole < 0) return i;
        if (whole) {
            if (!matcher_step(&s->matcher, s->levels + at, part.code, s->levels + at + 1)) return i;
            part = (struct utf8_part) { 0 };
            at++;
        } else {
            const struct code_range r = utf8_range(&part);
            if (!matcher_may(&s->matcher, s->levels + at, r.first, r.last)) return i;
        }
        s->parts[i + 1] = part;
        s->depth[i + 1] = at;
    }
    return n;
}

static void walk_begin(struct state *s) {
    s->parts[0] = s->part;
    s->depth[0] = 0;
}

/* An unfinished character is no end. */
static bool may_end(const struct state *s) { return s->lost || (s->levels[0].ends && s->part.left == 0); }

/* An element of the grammar takes the token as a whole. */
static bool taken_whole(const struct state *s, llama_token id) {
    return s->c->grammar->has_tokens && s->part.left == 0 && matcher_may(&s->matcher, s->levels, GRAMMAR_TOKEN(id), GRAMMAR_TOKEN(id));
}

static bool passes(struct state *s, llama_token id) {
    if (!vocab_has(s->vocab, id)) return false;
    if (llama_vocab_is_eog(s->vocab, id)) return may_end(s);
    const struct piece *p = s->pieces->sorted + s->pieces->rank[id];
    if (s->lost)            return false;
    if (taken_whole(s, id)) return true;
    if (p->length == 0)     return false;
    walk_begin(s);
    return walk(s, s->pieces->bytes + p->at, 0, p->length) == p->length;
}

/* All tokens at once, in order of their bytes: what two share is walked once, and what follows a beginning that has no place is
 * not walked at all. Returns whether any passes. */
static bool mask_all(struct state *s) {
    uint32_t valid = 0;
    bool any = false;
    walk_begin(s);
    for (int32_t i = 0; i < s->vocab->n_tokens; i++) {
        const struct piece *p = s->pieces->sorted + i;
        bool pass;
        if (p->common <= valid) {
            valid = walk(s, s->pieces->bytes + p->at, p->common, p->length);
            pass = valid == p->length && p->length > 0;
        } else {
            pass = false;
        }
        if (llama_vocab_is_eog(s->vocab, p->id)) pass = may_end(s);
        else if (s->lost)                        pass = false;
        else if (taken_whole(s, p->id))          pass = true;
        s->passes[p->id] = pass;
        any = any || pass;
    }
    return any;
}

static void forget(llama_token_data *d) { d->logit = -INFINITY; }

static void apply_all(struct state *s, llama_token_data_array *c) {
    if (!mask_all(s)) {
        log_error("grammar: no token of the vocabulary goes on with the text; it ends here");
        s->lost = true;
        mask_all(s);
    }
    for (size_t i = 0; i < c->size; i++) {
        if (!vocab_has(s->vocab, c->data[i].id) || !s->passes[c->data[i].id]) forget(c->data + i);
    }
}

static void grammar_apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct state *s = smpl->ctx;
    if (!s->c->grammar || s->waiting) return;
    c->sorted = false;
    if (c->size > (size_t) s->vocab->n_tokens/8) { apply_all(s, c); return; }
    for (size_t i = 0; i < c->size; i++) if (!passes(s, c->data[i].id)) forget(c->data + i);
}

/* ---- accepting ------------------------------------------------------------------------------------------------------- */

/* The text goes on with these bytes, piece by piece of what the levels have room for. */
static void go_on(struct state *s, const unsigned char *bytes, size_t n) {
    const uint32_t most = s->pieces->longest;
    for (size_t at = 0; at < n && !s->lost; at += most) {
        const uint32_t part = (uint32_t) (n - at < most ? n - at : most);
        walk_begin(s);
        if (walk(s, bytes + at, 0, part) < part) {
            log_error("grammar: an accepted token has no place in it; nothing but an end passes from here on");
            s->lost = true;
            return;
        }
        s->part = s->parts[part];
        const uint32_t depth = s->depth[part];
        if (depth) {
            s->levels[0] = s->levels[depth];
            matcher_commit(&s->matcher, s->levels);
        }
    }
}

/* The text goes on with a token: by its bytes, as an element of the grammar, or both at once. */
static void take(struct state *s, llama_token id, const struct piece *p) {
    const unsigned char *bytes = s->pieces->bytes + p->at;
    struct level whole;
    if (!taken_whole(s, id)) { go_on(s, bytes, p->length); return; }
    walk_begin(s);
    const bool both = p->length && walk(s, bytes, 0, p->length) == p->length && s->parts[p->length].left == 0;
    if (!matcher_step_beside(&s->matcher, s->levels, GRAMMAR_TOKEN(id), both ? s->levels + s->depth[p->length] : NULL, &whole)) {
        log_error("grammar: the text is too deep");
        s->lost = true;
        return;
    }
    s->levels[0] = whole;
    matcher_commit(&s->matcher, s->levels);
}

static void forget_text(struct state *s) {
    s->length = 0;
    for (size_t i = 0; i < s->c->n_triggers; i++) search_reset(s->searches[i]);
}

static bool keep_text(struct state *s, const void *bytes, size_t n) {
    if (s->length + n > MAX_WAIT) forget_text(s);
    if (s->length + n > s->room) {
        const size_t room = 2*(s->length + n) + 256;
        char *grown = realloc(s->text, room);
        if (!grown) return false;
        s->text = grown;
        s->room = room;
    }
    memcpy(s->text + s->length, bytes, n);
    s->length += n;
    return true;
}

/* Where the grammar's text begins in the text so far, whose last bytes these are; NULL: no trigger yet. */
static const char *triggered(const struct state *s, const void *bytes, size_t n) {
    const char *start = NULL;
    for (size_t i = 0; i < s->c->n_triggers; i++) {
        const size_t *marks = search_feed(s->searches[i], bytes, n);
        if (!marks || start) continue;
        start = s->text + marks[0];
        for (size_t g = s->c->triggers[i]->n_groups - 1; g > 0; g--) {
            if (marks[2*g] != NO_MARK && marks[2*g + 1] != NO_MARK && marks[2*g + 1] > marks[2*g]) start = s->text + marks[2*g];
        }
    }
    return start;
}

static void wait_on(struct state *s, llama_token id, const struct piece *p) {
    const unsigned char *bytes = s->pieces->bytes + p->at;
    const char *start = NULL;
    for (size_t i = 0; i < s->c->n_tokens; i++) {
        if (s->c->tokens[i] != id) continue;
        s->waiting = false;
        forget_text(s);
        take(s, id, p);
        return;
    }
    if (!keep_text(s, bytes, p->length)) { log_error("grammar: out of memory"); return; }
    if (!(start = triggered(s, bytes, p->length))) return;
    s->waiting = false;
    go_on(s, (const unsigned char *) start, s->length - (size_t) (start - s->text));
    forget_text(s);
}

static void grammar_accept(struct llama_sampler *smpl, llama_token id) {
    struct state *s = smpl->ctx;
    if (!s->c->grammar || s->lost || !vocab_has(s->vocab, id)) return;
    const struct piece *p = s->pieces->sorted + s->pieces->rank[id];
    if (s->waiting) { wait_on(s, id, p); return; }
    if (!llama_vocab_is_eog(s->vocab, id)) { take(s, id, p); return; }
    if (!may_end(s)) {
        log_error("grammar: the text ended where it may not");
        s->lost = true;
    }
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static const char *grammar_name(const struct llama_sampler *s) { (void) s; return "grammar"; }

static void constraint_free(struct constraint *c) {
    if (!c || atomic_fetch_sub(&c->users, 1) > 1) return;
    for (size_t i = 0; i < c->n_triggers; i++) pattern_free(c->triggers[i]);
    free(c->triggers);
    free(c->tokens);
    grammar_free(c->grammar);
    free(c);
}

static void state_free(struct state *s) {
    if (!s) return;
    matcher_free(&s->matcher);
    for (size_t i = 0; s->searches && i < s->c->n_triggers; i++) search_free(s->searches[i]);
    free(s->searches);
    constraint_free(s->c);
    free(s->text);
    free(s->levels);
    free(s->parts);
    free(s->depth);
    free(s->passes);
    free(s);
}

static void grammar_free_sampler(struct llama_sampler *smpl) { state_free(smpl->ctx); }

static bool searches_new(struct state *s) {
    s->searches = calloc(s->c->n_triggers + 1, sizeof(struct search *));
    for (size_t i = 0; s->searches && i < s->c->n_triggers; i++) if (!(s->searches[i] = search_new(s->c->triggers[i]))) return false;
    return s->searches != NULL;
}

/* A state without its places; takes the constraint over. */
static struct state *state_new(const struct llama_vocab *vocab, struct constraint *c) {
    struct state *s = calloc(1, sizeof *s);
    if (!s) { constraint_free(c); return NULL; }
    *s = (struct state) { .vocab = vocab, .c = c, .waiting = c->lazy };
    if (!c->grammar) return s;
    s->pieces = vocab_pieces(vocab);
    const size_t n = s->pieces ? (size_t) s->pieces->longest + 1 : 0;
    if (n) {
        s->levels = calloc(n, sizeof *s->levels);
        s->parts  = calloc(n, sizeof *s->parts);
        s->depth  = calloc(n, sizeof *s->depth);
        s->passes = calloc((size_t) vocab->n_tokens + 1, 1);
    }
    if (n && s->levels && s->parts && s->depth && s->passes && searches_new(s)) return s;
    state_free(s);
    return NULL;
}

static struct llama_sampler *grammar_clone(const struct llama_sampler *smpl);

static void grammar_reset(struct llama_sampler *smpl) {
    struct state *s = smpl->ctx;
    s->waiting = s->c->lazy;
    s->lost    = false;
    s->part    = (struct utf8_part) { 0 };
    if (!s->c->grammar) return;
    forget_text(s);
    matcher_free(&s->matcher);
    if (matcher_init(&s->matcher, s->c->grammar, s->levels)) return;
    log_error("grammar: out of memory");
    s->levels[0] = (struct level) { .ends = true };
    s->lost = true;
}

static void grammar_copy(const struct llama_sampler *from, struct llama_sampler *to) {
    struct llama_sampler *copy = grammar_clone(from);
    if (!copy) return;
    void *old = to->ctx;
    to->ctx   = copy->ctx;
    copy->ctx = old;
    llama_sampler_free(copy);
}

static struct llama_sampler_i grammar_iface = { .name = grammar_name, .accept = grammar_accept, .apply = grammar_apply,
    .reset = grammar_reset, .clone = grammar_clone, .free = grammar_free_sampler, .copy_state = grammar_copy };

static struct llama_sampler *grammar_clone(const struct llama_sampler *smpl) {
    const struct state *from = smpl->ctx;
    atomic_fetch_add(&from->c->users, 1);
    struct state *s = state_new(from->vocab, from->c);
    bool ok = s != NULL;
    if (ok && s->c->grammar) {
        s->waiting   = from->waiting;
        s->lost      = from->lost;
        s->part      = from->part;
        s->levels[0] = from->levels[0];
        s->levels[0].stepped = 0;
        ok = (!from->matcher.grammar || matcher_copy(&s->matcher, &from->matcher))
          && (!from->length || keep_text(s, from->text, from->length));
        for (size_t i = 0; ok && i < s->c->n_triggers; i++) search_copy(s->searches[i], from->searches[i]);
    }
    struct llama_sampler *copy = ok ? llama_sampler_init(&grammar_iface, s) : NULL;
    if (!ok) log_error("sampler: out of memory");
    if (!copy) state_free(s);
    return copy;
}

/* ---- making ------------------------------------------------------------------------------------------------------------ */

static bool triggers_init(struct constraint *c, const char **texts, size_t n, bool words, const llama_token *tokens, size_t n_tokens) {
    c->triggers = calloc(n + 1, sizeof *c->triggers);
    c->tokens   = calloc(n_tokens + 1, sizeof *c->tokens);
    if (!c->triggers || !c->tokens) { log_error("grammar: out of memory"); return false; }
    for (; c->n_triggers < n; c->n_triggers++) {
        const char *text = texts[c->n_triggers];
        c->triggers[c->n_triggers] = words ? pattern_of_word(text, "grammar: trigger") : pattern_parse(text, "grammar: trigger");
        if (!c->triggers[c->n_triggers]) return false;
    }
    if (n_tokens) memcpy(c->tokens, tokens, n_tokens*sizeof *tokens);
    c->n_tokens = n_tokens;
    return true;
}

static struct llama_sampler *make(const struct llama_vocab *vocab, struct constraint *c) {
    struct state *s = state_new(vocab, c);
    const bool ok = s && (!c->grammar || matcher_init(&s->matcher, c->grammar, s->levels));
    struct llama_sampler *smpl = ok ? llama_sampler_init(&grammar_iface, s) : NULL;
    if (!ok) log_error("sampler: out of memory, or the grammar is too large");
    if (!smpl) state_free(s);
    return smpl;
}

static struct constraint *constraint_new(const struct llama_vocab *vocab, const char *text, const char *root) {
    const bool none = !text || !text[0];
    if (!none && (!vocab || !root)) { log_error("grammar: no %s is given", vocab ? "root" : "vocabulary"); return NULL; }
    struct constraint *c = calloc(1, sizeof *c);
    if (!c) { log_error("sampler: out of memory"); return NULL; }
    atomic_init(&c->users, 1);
    if (none || (c->grammar = grammar_parse(text, root, vocab))) return c;
    constraint_free(c);
    return NULL;
}

static struct llama_sampler *make_lazy(const struct llama_vocab *vocab, const char *text, const char *root, const char **triggers,
        size_t n_triggers, bool words, const llama_token *tokens, size_t n_tokens) {
    struct constraint *c = constraint_new(vocab, text, root);
    if (!c) return NULL;
    c->lazy = true;
    if (triggers_init(c, triggers, n_triggers, words, tokens, n_tokens)) return make(vocab, c);
    constraint_free(c);
    return NULL;
}

struct llama_sampler *llama_sampler_init_grammar(const struct llama_vocab *vocab, const char *grammar_str, const char *grammar_root) {
    struct constraint *c = constraint_new(vocab, grammar_str, grammar_root);
    return c ? make(vocab, c) : NULL;
}

struct llama_sampler *llama_sampler_init_grammar_lazy(const struct llama_vocab *vocab, const char *grammar_str,
        const char *grammar_root, const char **trigger_words, size_t num_trigger_words, const llama_token *trigger_tokens,
        size_t num_trigger_tokens) {
    return make_lazy(vocab, grammar_str, grammar_root, trigger_words, num_trigger_words, true, trigger_tokens, num_trigger_tokens);
}

struct llama_sampler *llama_sampler_init_grammar_lazy_patterns(const struct llama_vocab *vocab, const char *grammar_str,
        const char *grammar_root, const char **trigger_patterns, size_t num_trigger_patterns,
        const llama_token *trigger_tokens, size_t num_trigger_tokens) {
    return make_lazy(vocab, grammar_str, grammar_root, trigger_patterns, num_trigger_patterns, false, trigger_tokens, num_trigger_tokens);
}
