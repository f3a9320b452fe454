/* Parsing expressions. The program of a part follows that of the part before it; what applies to a part that is written already moves it
 * or writes it again, so jumps are relative. Groups are read by recursion of bounded depth. */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "pattern.h"

struct parser {
    const char     *at, *refused;       /* the rest of the text; why it is refused */
    struct pattern *p;
    struct pattern_node *part;          /* [PATTERN_NODES]: one that is being repeated */
    int depth;
};

/* ---- nodes ----------------------------------------------------------------------------------------------------------- */

static void refuse(struct parser *s, const char *why) { if (!s->refused) s->refused = why; }

static void emit(struct parser *s, uint8_t op, size_t arg, size_t from, size_t to) {
    if (s->p->n_nodes == PATTERN_NODES) { refuse(s, "it is too large"); return; }
    s->p->nodes[s->p->n_nodes++] = (struct pattern_node) { op, (uint16_t) arg, (int16_t) ((ptrdiff_t) to - (ptrdiff_t) from) };
}
static size_t here(const struct parser *s) { return s->p->n_nodes; }
static void emit_plain(struct parser *s, uint8_t op, size_t arg) { emit(s, op, arg, 0, 0); }
static void emit_to(struct parser *s, uint8_t op, bool first, size_t to) { emit(s, op, first, here(s), to); }

/* A split before the part that begins at `from`, over it to `past` behind its end. */
static void insert_split(struct parser *s, size_t from, size_t past) {
    emit_plain(s, PATTERN_SPLIT, 0);
    if (s->refused) return;
    struct pattern_node *const n = s->p->nodes + from;
    memmove(n + 1, n, (here(s) - 1 - from)*sizeof *n);
    *n = (struct pattern_node) { PATTERN_SPLIT, 0, (int16_t) (here(s) + past - from) };
}

static void emit_part(struct parser *s, size_t n) {
    if (n > PATTERN_NODES - here(s)) { refuse(s, "it is too large"); return; }
    memcpy(s->p->nodes + here(s), s->part, n*sizeof *s->part);
    s->p->n_nodes += n;
}

/* The part from `from` on, least to most times (most -1: as often as may be); lazy: as seldom as may be. */
static void repeat(struct parser *s, size_t from, int least, int most, bool lazy) {
    const size_t n = here(s) - from;
    if (n == 0 || s->refused) return;
    memcpy(s->part, s->p->nodes + from, n*sizeof *s->part);
    s->p->n_nodes = from;
    for (int i = 0; i < least && !s->refused; i++) emit_part(s, n);
    if (most < 0 && least > 0) {
        emit_to(s, PATTERN_SPLIT, !lazy, here(s) - n);
    } else if (most < 0) {
        const size_t first = here(s);
        emit_to(s, PATTERN_SPLIT, lazy, first + n + 2);
        emit_part(s, n);
        emit_to(s, PATTERN_JUMP, false, first);
    } else {
        const size_t end = here(s) + (size_t) (most > least ? most - least : 0)*(n + 1);
        if (end > PATTERN_NODES) refuse(s, "it is too large");
        for (int i = least; i < most && !s->refused; i++) emit_to(s, PATTERN_SPLIT, lazy, end), emit_part(s, n);
    }
}

/* ---- sets of bytes ----------------------------------------------------------------------------------------------------- */

static void set_add(struct byte_set *set, int first, int last) { for (int b = first; b <= last; b++) set->bits[b >> 5] |= UINT32_C(1) << (b & 31); }
static void set_invert(struct byte_set *set) { for (int i = 0; i < 8; i++) set->bits[i] = ~set->bits[i]; }
static void set_join(struct byte_set *set, const struct byte_set *other) { for (int i = 0; i < 8; i++) set->bits[i] |= other->bits[i]; }

static void emit_set(struct parser *s, const struct byte_set *set) {
    size_t i = 0;
    while (i < s->p->n_sets && memcmp(s->p->sets + i, set, sizeof *set)) i++;
    if (i == s->p->n_sets) {
        if (i == PATTERN_NODES) { refuse(s, "it is too large"); return; }
        s->p->sets[s->p->n_sets++] = *set;
    }
    emit_plain(s, PATTERN_BYTE, i);
}
static void emit_byte(struct parser *s, int byte) {
    struct byte_set set = { { 0 } };
    set_add(&set, byte, byte);
    emit_set(s, &set);
}

static const struct { char letter; const char *name, *ranges; } classes[] = {
    { 'd', "digit", "09" },   { 'w', "word",  "09AZaz__" }, { 's', "space", "\t\r  " },   { 0, "alpha",  "AZaz" },   { 0, "alnum", "09AZaz" },
    { 0,   "upper", "AZ" },   { 0,   "lower", "az" },       { 0,   "punct", "!/:@[`{~" }, { 0, "xdigit", "09AFaf" }, { 0, "blank", "\t\t  " },
};
enum { CLASSES = sizeof classes/sizeof *classes };

static void set_add_class(struct byte_set *set, size_t i) { for (const char *r = classes[i].ranges; *r; r += 2) set_add(set, r[0], r[1]); }

/* \d \s \w and their opposites, by letter; false: no such class. */
static bool set_of_letter(char letter, struct byte_set *set) {
    for (size_t i = 0; i < CLASSES && classes[i].letter; i++) {
        if ((letter | 32) != classes[i].letter) continue;
        *set = (struct byte_set) { { 0 } };
        set_add_class(set, i);
        if (letter != classes[i].letter) set_invert(set);
        return true;
    }
    return false;
}

/* [:alpha:] and the like, within a class. */
static bool set_add_named(struct parser *s, struct byte_set *set) {
    for (size_t i = 0; i < CLASSES; i++) {
        const size_t n = strlen(classes[i].name);
        if (strncmp(s->at, "[:", 2) || strncmp(s->at + 2, classes[i].name, n) || strncmp(s->at + 2 + n, ":]", 2)) continue;
        s->at += n + 4;
        set_add_class(set, i);
        return true;
    }
    return false;
}

/* ---- escapes ------------------------------------------------------------------------------------------------------------- */

static int hex_digits(struct parser *s, int n) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        const char c = s->at[i], lower = (char) (c | 32);
        const bool digit = c >= '0' && c <= '9';
        if (!digit && !(lower >= 'a' && lower <= 'f')) { refuse(s, "hexadecimal digits are missing"); return 0; }
        value = 16*value + (digit ? c - '0' : lower - 'a' + 10);
    }
    s->at += n;
    return value;
}

/* The character after a backslash that stands for one; the text is behind it then. Characters past 127 are more than a byte: false in
 * *single. */
static int escaped(struct parser *s, bool *single) {
    static const char from[] = "tnrfv0", to[] = "\t\n\r\f\v";
    const char c = *s->at++;
    const char *known = c ? strchr(from, c) : NULL;
    *single = true;
    if (known) return to[known - from];
    if (c == 'x') return hex_digits(s, 2);
    if (c == 'u') {
        const int code = hex_digits(s, 4);
        *single = code < 128;
        return code;
    }
    if (c == 'c' && ((*s->at | 32) >= 'a' && (*s->at | 32) <= 'z')) return *s->at++ & 31;
    if (c == 0) s->at--, refuse(s, "it ends in a backslash");
    else if (c >= '1' && c <= '9') refuse(s, "it refers to a group");
    else if ((c | 32) >= 'a' && (c | 32) <= 'z') refuse(s, "it has an unknown escape");
    return (unsigned char) c;
}

static void emit_code(struct parser *s, int code) {
    if (code >= 0x800) emit_byte(s, 0xe0 | code >> 12), emit_byte(s, 0x80 | (code >> 6 & 63));
    else               emit_byte(s, 0xc0 | code >> 6);
    emit_byte(s, 0x80 | (code & 63));
}

static void parse_escape(struct parser *s) {
    struct byte_set set;
    bool single;
    if (*s->at == 'b' || *s->at == 'B') { emit_plain(s, PATTERN_EDGE, *s->at++ == 'b'); return; }
    if (set_of_letter(*s->at, &set))    { s->at++, emit_set(s, &set); return; }
    const int code = escaped(s, &single);
    if (single) emit_byte(s, code & 255);
    else        emit_code(s, code);
}

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

/* One thing of a class: a byte, returned, or a set, added, and -1 returned. */
static int class_item(struct parser *s, struct byte_set *set) {
    struct byte_set letters;
    bool single;
    if (set_add_named(s, set)) return -1;
    if (*s->at != '\\') return (unsigned char) *s->at++;
    s->at++;
    if (*s->at == 'b') { s->at++; return '\b'; }
    if (set_of_letter(*s->at, &letters)) { s->at++, set_join(set, &letters); return -1; }
    const int code = escaped(s, &single);
    if (!single) refuse(s, "a class holds bytes alone");
    return code & 255;
}

static void parse_class(struct parser *s) {
    struct byte_set set = { { 0 } };
    const bool inverted = *s->at == '^';
    s->at += inverted;
    while (*s->at && *s->at != ']' && !s->refused) {
        const int first = class_item(s, &set);
        int last = first;
        if (first >= 0 && s->at[0] == '-' && s->at[1] && s->at[1] != ']') {
            s->at++;
            last = class_item(s, &set);
            if (last < first) refuse(s, "it has a range that ends before it begins");
        }
        if (first >= 0) set_add(&set, first, last);
    }
    if (*s->at == ']') s->at++;
    else               refuse(s, "']' is missing");
    if (inverted) set_invert(&set);
    emit_set(s, &set);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------------------- */

static void parse_alternatives(struct parser *s);

static void parse_group(struct parser *s) {
    const bool plain = s->at[0] == '?' && s->at[1] == ':';
    const size_t group = s->p->n_groups;
    if (s->at[0] == '?' && !plain) refuse(s, "what follows '(?' is not read");
    if (!plain && group == PATTERN_GROUPS) refuse(s, "it has too many groups");
    if (s->depth == PATTERN_DEPTH) refuse(s, "its groups are too deep");
    if (s->refused) return;
    if (plain) s->at += 2;
    else       s->p->n_groups++, emit_plain(s, PATTERN_SAVE, 2*group);
    s->depth++;
    parse_alternatives(s);
    s->depth--;
    if (*s->at == ')') s->at++;
    else               refuse(s, "')' is missing");
    if (!plain) emit_plain(s, PATTERN_SAVE, 2*group + 1);
}

static bool parse_number(struct parser *s, int *n) {
    const char *const from = s->at;
    for (*n = 0; *s->at >= '0' && *s->at <= '9'; s->at++) if (*n <= PATTERN_NODES) *n = 10**n + *s->at - '0';
    return s->at > from;
}

/* How often the part that begins at `from` may stand. */
static void parse_count(struct parser *s, size_t from) {
    int least = 0, most = -1;
    const char c = *s->at;
    if (c != '*' && c != '+' && c != '?' && c != '{') return;
    s->at++;
    if (c == '+') least = 1;
    if (c == '?') most = 1;
    if (c == '{') {
        if (!parse_number(s, &least)) refuse(s, "a count is missing");
        most = least;
        if (*s->at == ',') s->at++, most = parse_number(s, &most) ? most : -1;
        if (*s->at++ != '}') { s->at--, refuse(s, "'}' is missing"); }
        if (most >= 0 && most < least) refuse(s, "it counts down");
    }
    const bool lazy = *s->at == '?';
    s->at += lazy;
    repeat(s, from, least, most, lazy);
}

static void parse_part(struct parser *s) {
    struct byte_set any = { { 0 } };
    const char c = *s->at++;
    switch (c) {
        case '^':  emit_plain(s, PATTERN_BEGIN, 0); return;
        case '$':  emit_plain(s, PATTERN_END, 0); return;
        case '(':  parse_group(s); return;
        case '[':  parse_class(s); return;
        case '\\': parse_escape(s); return;
        case '.':
            set_add(&any, '\n', '\n'), set_add(&any, '\r', '\r'), set_invert(&any);
            emit_set(s, &any);
            return;
        case '*': case '+': case '?': case '{': refuse(s, "a count has nothing before it"); return;
        default: emit_byte(s, (unsigned char) c);
    }
}

/* Alternatives up to ')' or the end. Each but the last is followed by a jump to the end of all; until that is known the jumps
 * are a list, linked by how far away the one before is. */
static void parse_alternatives(struct parser *s) {
    size_t from = here(s), jumps = 0;
    while (*s->at && *s->at != ')' && !s->refused) {
        if (*s->at != '|') {
            const size_t part = here(s);
            parse_part(s);
            parse_count(s, part);
            continue;
        }
        s->at++;
        insert_split(s, from, 1);
        emit_plain(s, PATTERN_JUMP, jumps);
        jumps = from = here(s);
    }
    if (s->refused) return;
    for (size_t next; jumps; jumps = next) {
        struct pattern_node *n = s->p->nodes + jumps - 1;
        next = n->arg;
        n->arg = 0;
        n->to = (int16_t) (here(s) - (jumps - 1));
    }
}

static struct pattern *pattern_new(void) {
    struct pattern *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->nodes = malloc(PATTERN_NODES*sizeof *p->nodes);
    p->sets  = malloc(PATTERN_NODES*sizeof *p->sets);
    p->n_groups = 1;
    if (p->nodes && p->sets) return p;
    pattern_free(p);
    return NULL;
}

void pattern_free(struct pattern *p) {
    if (!p) return;
    free(p->nodes), free(p->sets);
    free(p);
}

/* Without the room that was not needed. */
static struct pattern *trimmed(struct pattern *p) {
    struct pattern_node *nodes = realloc(p->nodes, p->n_nodes*sizeof *nodes);
    if (nodes) p->nodes = nodes;
    struct byte_set *sets = realloc(p->sets, (p->n_sets + 1)*sizeof *sets);
    if (sets) p->sets = sets;
    return p;
}

static struct pattern *make(const char *text, const char *what, bool is_word) {
    struct parser s = { text, NULL, pattern_new(), malloc(PATTERN_NODES*sizeof *s.part), 0 };
    if (!s.p || !s.part) {
        refuse(&s, "there is no memory for it");
    } else {
        emit_plain(&s, PATTERN_SAVE, 0);
        if (is_word) while (*s.at && !s.refused) emit_byte(&s, (unsigned char) *s.at++);
        else         parse_alternatives(&s);
        if (*s.at) refuse(&s, "')' has no '('");
        emit_plain(&s, PATTERN_SAVE, 1);
        emit_plain(&s, PATTERN_MATCH, 0);
    }
    free(s.part);
    if (!s.refused) return trimmed(s.p);
    log_error("%s '%.100s' is no pattern: %s", what, text, s.refused);
    pattern_free(s.p);
    return NULL;
}

struct pattern *pattern_parse(const char *text, const char *what)   { return make(text, what, false); }
struct pattern *pattern_of_word(const char *word, const char *what) { return make(word, what, true); }
