/* GBNF texts to programs: rules, alternatives, groups, literals, classes of characters, repetition, comments.
 *
 * A token may be an element too: for the matcher it is one character more, beyond those of Unicode.
 *
 * One pass, no tree: an element's nodes stand at the end of the program, and a repetition behind it moves them or calls them
 * as a rule of their own. Repeating costs nodes by the count, not by the size of what is repeated, so nesting does not
 * multiply. Groups recurse to a bounded depth; nothing else recurses. */

#include "grammar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "llama.h"
#include "log.h"
#include "unicode.h"

/* Programs of 10,000 nodes are large schemas; the bounds leave a hundred times as much. */
enum { MAX_NODES = 1 << 20, MAX_RANGES = 1 << 20, MAX_RULES = 1 << 16, MAX_DEPTH = 100, MAX_REPEAT = 10000, MAX_TOKEN_NAME = 1000 };
enum { LAST_CODE = 0x10ffff };
#define NONE     UINT32_MAX
#define NO_LIMIT UINT32_MAX

struct name { const char *text; size_t length; };       /* of a rule; NULL: a group's */

struct parser {
    const char     *text, *at;
    const struct llama_vocab *vocab;                    /* or NULL */
    struct grammar *g;
    struct name    *names;                              /* [n_rules] */
    struct hash_index index;
    uint32_t        room_nodes, room_ranges, room_rules;
    int             depth;
    bool            failed;
};

/* ---- errors and growth --------------------------------------------------------------------------------------------- */

/* Tells the first failure and stops the reading. */
static void refuse(struct parser *p, const char *what) {
    int line = 1;
    if (p->failed) return;
    p->failed = true;
    for (const char *c = p->text; c < p->at; c++) line += *c == '\n';
    int shown = 0;
    while (shown < 30 && p->at[shown] && p->at[shown] != '\n') shown++;
    log_error("grammar, line %d: %s, at '%.*s'", line, what, shown, p->at);
}

static void *grown(struct parser *p, void *list, uint32_t n, uint32_t *room, uint32_t most, size_t size) {
    if (n < *room) return list;
    const uint32_t wanted = *room ? *room*2 : 64;
    void *bigger = wanted <= most ? realloc(list, wanted*size) : NULL;
    if (!bigger) refuse(p, wanted <= most ? "out of memory" : "the grammar is too large");
    else         *room = wanted;
    return bigger ? bigger : list;
}

static uint32_t emit(struct parser *p, enum grammar_op op, uint32_t at, uint32_t n) {
    struct grammar *g = p->g;
    g->nodes = grown(p, g->nodes, g->n_nodes, &p->room_nodes, MAX_NODES, sizeof *g->nodes);
    if (p->failed) return 0;
    g->nodes[g->n_nodes] = (struct grammar_node) { op, at, n };
    return g->n_nodes++;
}

struct element { uint32_t start, rules; };              /* its first node and the number of rules before it */

static struct element begin(const struct parser *p) { return (struct element) { p->g->n_nodes, p->g->n_rules }; }

/* Puts a node before an element's, the last of the program; places in it move along, rules made of its parts too. */
static void insert(struct parser *p, struct element e, enum grammar_op op, uint32_t at) {
    struct grammar *g = p->g;
    const uint32_t start = e.start;
    emit(p, op, 0, 0);
    if (p->failed) return;
    for (uint32_t r = e.rules; r < g->n_rules; r++) {
        if (g->starts[r] != NONE && g->starts[r] >= start) g->starts[r]++;
    }
    memmove(g->nodes + start + 1, g->nodes + start, (g->n_nodes - 1 - start)*sizeof *g->nodes);
    for (uint32_t i = start + 1; i < g->n_nodes; i++) {
        struct grammar_node *node = g->nodes + i;
        if ((node->op == GRAMMAR_SPLIT || node->op == GRAMMAR_JUMP) && node->at >= start) node->at++;
    }
    g->nodes[start] = (struct grammar_node) { op, at, 0 };
}

/* ---- rules by name --------------------------------------------------------------------------------------------------- */

static uint32_t new_rule(struct parser *p, struct name name) {
    struct grammar *g = p->g;
    uint32_t room = p->room_rules;
    g->starts = grown(p, g->starts, g->n_rules, &room, MAX_RULES, sizeof *g->starts);
    if (p->failed) return 0;
    room = p->room_rules;
    p->names = grown(p, p->names, g->n_rules, &room, MAX_RULES, sizeof *p->names);
    if (p->failed) return 0;
    p->room_rules = room;
    g->starts[g->n_rules] = NONE;
    p->names [g->n_rules] = name;
    return g->n_rules++;
}

static uint32_t rule_named(struct parser *p, struct name name) {
    const uint64_t hash = hash_bytes(name.text, name.length);
    struct hash_probe probe = hash_begin(&p->index, hash);
    for (int64_t i; (i = hash_next(&p->index, &probe)) >= 0; ) {
        if (p->names[i].length == name.length && !memcmp(p->names[i].text, name.text, name.length)) return (uint32_t) i;
    }
    const uint32_t rule = new_rule(p, name);
    if (!p->failed && !hash_put(&p->index, probe, rule)) refuse(p, "too many rules");
    return rule;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static struct name read_name(struct parser *p) {
    const char *start = p->at;
    while (is_word(*p->at)) p->at++;
    if (p->at == start) refuse(p, "a name is expected");
    return (struct name) { start, (size_t) (p->at - start) };
}

/* Spaces and comments; ends of lines too, where an expression goes on behind them. */
static void skip_space(struct parser *p, bool lines) {
    for (;; p->at++) {
        if (*p->at == '#') while (p->at[1] && p->at[1] != '\n' && p->at[1] != '\r') p->at++;
        else if (!(*p->at == ' ' || *p->at == '\t' || (lines && (*p->at == '\n' || *p->at == '\r')))) return;
    }
}

/* ---- characters ------------------------------------------------------------------------------------------------------ */

static uint32_t read_hex(struct parser *p, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        const char c = *p->at;
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) { refuse(p, "hexadecimal digits are expected"); return 0; }
        code = code << 4 | (uint32_t) digit;
    }
    if (code > LAST_CODE) refuse(p, "no such character");
    return code;
}

static uint32_t read_escape(struct parser *p) {
    static const char same[] = "\\\"[]-^/.'(){}|*+?$", letters[] = "nrt", control[] = "\n\r\t", widths[] = "x2u4U8";
    const char c = *p->at, *found;
    if (c && (found = strchr(letters, c))) { p->at++; return (uint32_t) control[found - letters]; }
    if (c && strchr(same, c))              { p->at++; return (uint32_t) c; }
    if (c && (found = strchr("xuU", c)))   { p->at++; return read_hex(p, strchr(widths, c)[1] - '0'); }
    refuse(p, "no such escape");
    return 0;
}

static uint32_t read_char(struct parser *p) {
    if (*p->at == '\\') { p->at++; return read_escape(p); }
    const struct character c = char_at(p->at, strnlen(p->at, 4));
    if (c.length == 0) refuse(p, "the text ends inside quotes or brackets");
    else if (c.length == 1 && (unsigned char) *p->at >= 0x80) refuse(p, "the text is not UTF-8");
    p->at += p->failed ? 0 : c.length;
    return c.code;
}

static void add_range(struct parser *p, uint32_t first, uint32_t last) {
    struct grammar *g = p->g;
    g->ranges = grown(p, g->ranges, g->n_ranges, &p->room_ranges, MAX_RANGES, sizeof *g->ranges);
    if (!p->failed) g->ranges[g->n_ranges++] = (struct code_range) { first, last };
}

static int by_first(const void *a, const void *b) {
    const struct code_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* The ranges from `start` on in order and joined. */
static void tidy(struct grammar *g, uint32_t start) {
    uint32_t n = start;
    if (g->n_ranges == start) return;
    qsort(g->ranges + start, g->n_ranges - start, sizeof *g->ranges, by_first);
    for (uint32_t i = start + 1; i < g->n_ranges; i++) {
        const struct code_range r = g->ranges[i];
        if (r.first > g->ranges[n].last + 1)     g->ranges[++n] = r;
        else if (r.last > g->ranges[n].last)     g->ranges[n].last = r.last;
    }
    g->n_ranges = n + 1;
}

/* All characters but those of the tidy ranges from `start` on. */
static void negate(struct parser *p, uint32_t start) {
    struct grammar *g = p->g;
    uint32_t next = 0, n = start;
    add_range(p, 0, 0);                                     /* one more at most */
    for (uint32_t i = start; !p->failed && i < g->n_ranges; i++) {
        const bool rest = i == g->n_ranges - 1;
        const struct code_range r = g->ranges[i];
        if (rest ? next <= LAST_CODE : r.first > next) g->ranges[n++] = (struct code_range) { next, rest ? LAST_CODE : r.first - 1 };
        next = r.last + 1;
    }
    g->n_ranges = n;
}

static void read_class(struct parser *p) {
    const uint32_t start = p->g->n_ranges;
    const bool negated = *p->at == '^';
    if (negated) p->at++;
    while (!p->failed && *p->at != ']') {
        const uint32_t first = read_char(p);
        uint32_t last = first;
        if (*p->at == '-' && p->at[1] != ']') {
            p->at++;
            last = read_char(p);
        }
        if (last < first) refuse(p, "the range is upside down");
        add_range(p, first, last);
    }
    if (p->failed) return;
    p->at++;
    tidy(p->g, start);
    if (negated) negate(p, start);
    emit(p, GRAMMAR_CHARS, start, p->g->n_ranges - start);
}

static void read_literal(struct parser *p) {
    while (!p->failed && *p->at != '"') {
        const uint32_t code = read_char(p);
        add_range(p, code, code);
        emit(p, GRAMMAR_CHARS, p->g->n_ranges - 1, 1);
    }
    if (!p->failed) p->at++;
}

/* <[id]>, or <name>: a special token's text, brackets and all. */
static int64_t read_token_id(struct parser *p) {
    int64_t id = 0;
    if (p->at[1] == '[') {
        p->at += 2;
        if (*p->at < '0' || *p->at > '9') refuse(p, "the id of a token is expected");
        while (*p->at >= '0' && *p->at <= '9' && id <= INT32_MAX) id = 10*id + (*p->at++ - '0');
        if (!p->failed && (p->at[0] != ']' || p->at[1] != '>')) refuse(p, "']>' is expected behind the id of a token");
        if (!p->failed && (id > INT32_MAX || (p->vocab && id >= llama_vocab_n_tokens(p->vocab)))) refuse(p, "there is no such token");
        p->at += p->failed ? 0 : 2;
        return id;
    }
    const size_t length = strcspn(p->at, ">\n");
    llama_token tokens[2] = { -1, -1 };
    if (p->at[length] != '>' || length > MAX_TOKEN_NAME) refuse(p, "'>' is expected behind the name of a token");
    else if (!p->vocab || llama_tokenize(p->vocab, p->at, (int32_t) length + 1, tokens, 2, false, true) != 1) refuse(p, "this is not the name of one token");
    else p->at += length + 1;
    return p->failed ? 0 : tokens[0];
}

/* One token, or any but that one. */
static void read_token(struct parser *p, bool negated) {
    const uint32_t code = GRAMMAR_TOKEN(read_token_id(p)), start = p->g->n_ranges;
    if (p->failed) return;
    if (!negated)                               add_range(p, code, code);
    if (negated && code > GRAMMAR_TOKEN(0))     add_range(p, GRAMMAR_TOKEN(0), code - 1);
    if (negated)                                add_range(p, code + 1, UINT32_MAX);
    p->g->has_tokens = true;
    emit(p, GRAMMAR_CHARS, start, p->g->n_ranges - start);
}

/* ---- repetition ------------------------------------------------------------------------------------------------------ */

/* An element as one node, which may stand any number of times; the program ends before it. */
static struct grammar_node as_unit(struct parser *p, struct element e) {
    struct grammar *g = p->g;
    const uint32_t start = e.start;
    if (g->n_nodes == start + 1 && (g->nodes[start].op == GRAMMAR_CHARS || g->nodes[start].op == GRAMMAR_CALL)) {
        return g->nodes[--g->n_nodes];
    }
    insert(p, e, GRAMMAR_JUMP, 0);
    const uint32_t rule = new_rule(p, (struct name) { NULL, 0 });
    emit(p, GRAMMAR_RETURN, 0, 0);
    if (p->failed) return (struct grammar_node) { 0 };
    g->starts[rule] = start + 1;
    g->nodes[start].at = g->n_nodes;
    return (struct grammar_node) { GRAMMAR_CALL, rule, 0 };
}

static void repeat(struct parser *p, struct element e, uint32_t least, uint32_t most) {
    struct grammar *g = p->g;
    const uint32_t start = e.start;
    if (p->failed || (least == 1 && most == 1)) return;
    if (least == 0 && most == 1) { insert(p, e, GRAMMAR_SPLIT, g->n_nodes + 1); return; }
    if (least == 0 && most == NO_LIMIT) {
        insert(p, e, GRAMMAR_SPLIT, g->n_nodes + 2);
        emit(p, GRAMMAR_JUMP, start, 0);
        return;
    }
    if (least == 1 && most == NO_LIMIT) { emit(p, GRAMMAR_SPLIT, start, 0); return; }
    const struct grammar_node unit = as_unit(p, e);
    for (uint32_t i = 0; !p->failed && i < least; i++) emit(p, unit.op, unit.at, unit.n);
    if (most == NO_LIMIT) {
        emit(p, GRAMMAR_SPLIT, g->n_nodes - 1, 0);          /* the last one again; there are two at least */
        return;
    }
    const uint32_t end = g->n_nodes + 2*(most - least);
    for (uint32_t i = least; !p->failed && i < most; i++) {
        emit(p, GRAMMAR_SPLIT, end, 0);
        emit(p, unit.op, unit.at, unit.n);
    }
}

static uint32_t read_count(struct parser *p) {
    uint32_t n = 0;
    if (*p->at < '0' || *p->at > '9') { refuse(p, "a number of repetitions is expected"); return 0; }
    while (*p->at >= '0' && *p->at <= '9' && n <= MAX_REPEAT) n = 10*n + (uint32_t) (*p->at++ - '0');
    if (n > MAX_REPEAT) refuse(p, "more than 10000 repetitions");
    return n;
}

/* {m}, {m,} or {m,n}, with spaces anywhere. */
static void read_counts(struct parser *p, struct element e, bool nested) {
    skip_space(p, nested);
    const uint32_t least = read_count(p);
    uint32_t most = least;
    skip_space(p, nested);
    if (!p->failed && *p->at == ',') {
        p->at++;
        skip_space(p, nested);
        most = *p->at == '}' ? NO_LIMIT : read_count(p);
        skip_space(p, nested);
    }
    if (!p->failed && *p->at != '}') refuse(p, "'}' is expected");
    if (!p->failed && most < least)  refuse(p, "the most repetitions are below the least");
    if (p->failed) return;
    p->at++;
    repeat(p, e, least, most);
}

static void read_repetition(struct parser *p, struct element e, bool nested) {
    const char c = *p->at;
    if (p->failed || !c || !strchr("*+?{", c)) return;
    p->at++;
    if (c == '{') read_counts(p, e, nested);
    else          repeat(p, e, c == '+', c == '?' ? 1 : NO_LIMIT);
    skip_space(p, nested);
    if (*p->at && strchr("*+?{", *p->at)) refuse(p, "one repetition behind another; a group tells what is meant");
}

/* ---- expressions ----------------------------------------------------------------------------------------------------- */

static void read_alternatives(struct parser *p, bool nested);

static void read_group(struct parser *p) {
    if (++p->depth > MAX_DEPTH) { refuse(p, "groups are nested too deep"); return; }
    skip_space(p, true);
    read_alternatives(p, true);
    p->depth--;
    if (!p->failed && *p->at != ')') refuse(p, "')' is expected");
    if (!p->failed) p->at++;
}

/* Elements until something that is none. */
static void read_sequence(struct parser *p, bool nested) {
    for (;;) {
        const char c = *p->at;
        const struct element e = begin(p);
        if (p->failed) return;
        if (is_word(c)) {
            const uint32_t rule = rule_named(p, read_name(p));
            emit(p, GRAMMAR_CALL, rule, 0);
        } else if (c && strchr("\"[(.", c)) {
            p->at++;
            if (c == '"')      read_literal(p);
            else if (c == '[') read_class(p);
            else if (c == '(') read_group(p);
            else               add_range(p, 0, LAST_CODE), emit(p, GRAMMAR_CHARS, p->g->n_ranges - 1, 1);
        } else if (c == '<' || (c == '!' && p->at[1] == '<')) {
            p->at += c == '!';
            read_token(p, c == '!');
        } else {
            return;
        }
        skip_space(p, nested);
        read_repetition(p, e, nested);
    }
}

/* SPLIT first JUMP end SPLIT second JUMP end … last; the jumps are chained until the end is known. */
static void read_alternatives(struct parser *p, bool nested) {
    struct grammar *g = p->g;
    uint32_t ends = NONE;
    for (;;) {
        const uint32_t split = emit(p, GRAMMAR_SPLIT, NONE, 0);
        read_sequence(p, nested);
        if (p->failed) return;
        if (*p->at != '|') {
            g->nodes[split] = (struct grammar_node) { GRAMMAR_JUMP, split + 1, 0 };
            break;
        }
        p->at++;
        skip_space(p, true);
        ends = emit(p, GRAMMAR_JUMP, ends, 0);
        if (p->failed) return;
        g->nodes[split].at = g->n_nodes;
    }
    while (ends != NONE) {
        const uint32_t next = g->nodes[ends].at;
        g->nodes[ends].at = g->n_nodes;
        ends = next;
    }
}

static void read_rule(struct parser *p) {
    const uint32_t rule = rule_named(p, read_name(p));
    skip_space(p, false);
    if (!p->failed && strncmp(p->at, "::=", 3)) refuse(p, "'::=' is expected");
    if (p->failed) return;
    p->at += 3;
    skip_space(p, true);
    p->g->starts[rule] = p->g->n_nodes;                     /* the last rule of a name counts */
    read_alternatives(p, false);
    emit(p, GRAMMAR_RETURN, 0, 0);
    if (!p->failed && *p->at && *p->at != '\n' && *p->at != '\r') refuse(p, "the end of the line is expected");
    if (!p->failed) skip_space(p, true);
}

/* ---- what a whole grammar must be ------------------------------------------------------------------------------------ */

/* For each node: can a rule be left from it without a character? Goes backwards from the RETURNs; a CALL waits for both its
 * rule and what follows. `work` has room for 6 words a node. */
static void find_empty(const struct grammar *g, bool *empty, uint32_t *work) {
    uint32_t *head = work, *next = head + g->n_nodes, *queue = next + 2*g->n_nodes, n = 0;
    uint8_t  *wait = (uint8_t *) (queue + g->n_nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++) head[i] = NONE, empty[i] = false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const struct grammar_node *node = g->nodes + i;
        const uint32_t to[2] = { node->op == GRAMMAR_JUMP ? node->at : i + 1, node->op == GRAMMAR_CALL ? g->starts[node->at] : node->at };
        const int count = node->op == GRAMMAR_CALL || node->op == GRAMMAR_SPLIT ? 2 : node->op == GRAMMAR_JUMP;
        wait[i] = node->op == GRAMMAR_CALL ? 2 : 1;
        for (int k = 0; k < count; k++) {
            next[2*i + (uint32_t) k] = head[to[k]];
            head[to[k]] = 2*i + (uint32_t) k;
        }
        if (node->op == GRAMMAR_RETURN) empty[i] = true, queue[n++] = i;
    }
    for (uint32_t q = 0; q < n; q++) {
        for (uint32_t e = head[queue[q]]; e != NONE; e = next[e]) {
            const uint32_t i = e/2;
            if (empty[i] || --wait[i]) continue;
            empty[i] = true;
            queue[n++] = i;
        }
    }
}

/* The rules that `rule` may begin with, written to `out`. No node belongs to two rules. */
static uint32_t beginnings(const struct grammar *g, uint32_t rule, const bool *empty, uint32_t *seen, uint32_t *stack, uint32_t *out) {
    uint32_t n = 0, found = 0;
    stack[n++] = g->starts[rule];
    while (n) {
        const uint32_t i = stack[--n];
        const struct grammar_node *node = g->nodes + i;
        if (seen[i] == rule + 1) continue;
        seen[i] = rule + 1;
        if (node->op == GRAMMAR_JUMP || node->op == GRAMMAR_SPLIT) stack[n++] = node->at;
        if (node->op == GRAMMAR_SPLIT) stack[n++] = i + 1;
        if (node->op != GRAMMAR_CALL) continue;
        out[found++] = node->at;
        if (empty[g->starts[node->at]]) stack[n++] = i + 1;
    }
    return found;
}

/* A rule that begins with itself, at once or through others; NONE. A walk along what rules begin with, with its own stack: it
 * meets a rule that it is inside of. `work`: 6 words a node, 4 a rule. */
static uint32_t left_recursive(const struct grammar *g, const bool *empty, uint32_t *work) {
    enum { UNKNOWN, INSIDE, DONE };
    uint32_t *seen = work, *stack = seen + g->n_nodes, *edges = stack + 3*g->n_nodes;
    uint32_t *from = edges + g->n_nodes, *next = from + g->n_rules + 1, *state = next + g->n_rules, n = 0;
    memset(work, 0, ((size_t) g->n_nodes*6 + 4*(size_t) g->n_rules + 1)*sizeof *work);
    for (uint32_t r = 0; r < g->n_rules; r++) {
        next[r] = from[r];
        from[r + 1] = from[r] + beginnings(g, r, empty, seen, stack, edges + from[r]);
    }
    stack = state + g->n_rules;
    for (uint32_t r = 0; r < g->n_rules; r++) {
        if (state[r] == UNKNOWN) state[r] = INSIDE, stack[n++] = r;
        while (n) {
            const uint32_t top = stack[n - 1];
            if (next[top] == from[top + 1]) { state[top] = DONE; n--; continue; }
            const uint32_t callee = edges[next[top]++];
            if (state[callee] == INSIDE)  return callee;
            if (state[callee] == UNKNOWN) state[callee] = INSIDE, stack[n++] = callee;
        }
    }
    return NONE;
}

static bool check(struct parser *p, const char *root) {
    struct grammar *g = p->g;
    for (uint32_t r = 0; r < g->n_rules; r++) {
        if (g->starts[r] != NONE) continue;
        log_error("grammar: rule '%.*s' is used and not defined", (int) (p->names[r].length < 100 ? p->names[r].length : 100), p->names[r].text);
        return false;
    }
    const struct name start = { root, strlen(root) };
    const uint32_t n = g->n_rules;
    g->root = rule_named(p, start);
    if (p->failed) return false;
    if (g->n_rules > n) { log_error("grammar: there is no rule '%s'", root); return false; }
    uint32_t *work  = malloc(((size_t) g->n_nodes*6 + (size_t) g->n_rules*4 + 1)*sizeof *work);
    bool     *empty = malloc((size_t) g->n_nodes*sizeof *empty);
    uint32_t circle = NONE;
    const bool ok = work && empty;
    if (ok) find_empty(g, empty, work), circle = left_recursive(g, empty, work);
    if (!ok) log_error("grammar: out of memory");
    if (circle != NONE) {
        const struct name name = p->names[circle];
        log_error("grammar: rule '%.*s' begins with itself, at once or through others", name.text ? (int) (name.length < 100 ? name.length : 100) : 7,
                  name.text ? name.text : "(group)");
    }
    free(work);
    free(empty);
    return ok && circle == NONE;
}

struct grammar *grammar_parse(const char *text, const char *root, const struct llama_vocab *vocab) {
    struct parser p = { .text = text, .at = text, .vocab = vocab, .g = calloc(1, sizeof *p.g) };
    bool ok = p.g && hash_init(&p.index, MAX_RULES);
    if (!ok) log_error("grammar: out of memory");
    if (ok) skip_space(&p, true);
    while (ok && !p.failed && *p.at) read_rule(&p);
    ok = ok && !p.failed && check(&p, root);
    free(p.index.slots);
    free(p.names);
    if (ok) return p.g;
    grammar_free(p.g);
    return NULL;
}

void grammar_free(struct grammar *g) {
    if (!g) return;
    free(g->nodes);
    free(g->ranges);
    free(g->starts);
    free(g);
}
