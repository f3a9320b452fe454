/* From source to tree: one recursive descent over the source itself. Grammar and white-space rules are Jinja's with
 * trim_blocks and lstrip_blocks set (https://jinja.palletsprojects.com/en/stable/templates/#whitespace-control). */

#include "jinja.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum token { T_END, T_NAME, T_INT, T_FLOAT, T_STRING, T_OP };

struct parser {
    struct jinja *j;
    const char   *begin, *p, *end;  /* the source, and what is left of it */
    bool          trim;             /* the data that follows loses its leading white space */
    bool          in_tag;           /* between {{ or {% and its end */
    enum token    token;            /* the one looked at */
    struct str    text;             /* its text; of a string: its value */
    struct value  number;
    int           depth;
};

/* ---- tokens inside a tag ---- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name(char c)  { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || (unsigned char) c >= 128; }

static bool fail_at(struct parser *s, const char *what) {
    jinja_fail(s->j, "%s", what);
    s->token = T_END;
    s->p = s->end;
    return false;
}

static void put_utf8(char **q, uint32_t u) {
    static const unsigned char firsts[] = { 0, 0xc0, 0xe0, 0xf0 };
    const int more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
    *(*q)++ = (char) (firsts[more] | u >> 6*more);
    for (int i = more; i-- > 0; ) *(*q)++ = (char) (0x80 | (u >> 6*i & 63));
}

/* `digits` hexadecimal digits at p; false when they are not there. */
static bool hex(const char *p, const char *end, int digits, uint32_t *u) {
    if (end - p < digits) return false;
    *u = 0;
    for (int i = 0; i < digits; i++) {
        const char c = p[i], lower = (char) (c | 32);
        if (is_digit(c)) *u = *u << 4 | (uint32_t) (c - '0');
        else if (lower >= 'a' && lower <= 'f') *u = *u << 4 | (uint32_t) (lower - 'a' + 10);
        else return false;
    }
    return true;
}

/* One escape after the backslash at p, at most as long in UTF-8 as in the source; returns what follows. */
static const char *unescape(const char *p, const char *end, char **q) {
    static const char from[] = "ntrbfv0\\'\"a/", to[] = "\n\t\r\b\f\v\0\\'\"\a/";
    const char *at = *p ? strchr(from, *p) : NULL;
    uint32_t u, low;
    if (*p == '\n') return p + 1;
    if (at) { *(*q)++ = to[at - from]; return p + 1; }
    const int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    if (!digits || !hex(p + 1, end, digits, &u)) { *(*q)++ = '\\'; return p; }
    p += 1 + digits;
    if (u >= 0xd800 && u < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && hex(p + 2, end, 4, &low) && low >= 0xdc00 && low < 0xe000) {
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    put_utf8(q, u > 0x10ffff || (u >= 0xd800 && u < 0xe000) ? 0xfffd : u);
    return p;
}

static bool string_token(struct parser *s) {
    const char quote = *s->p++;
    const char *start = s->p, *close = start;
    while (close < s->end && *close != quote) close += *close == '\\' && close + 1 < s->end ? 2 : 1;
    if (close >= s->end) return fail_at(s, "a string is not closed");
    char *buf = jinja_alloc(s->j, (size_t) (close - start) + 4), *q = buf;
    if (!buf) return fail_at(s, "out of memory");
    for (const char *p = start; p < close; ) {
        if (*p == '\n') s->j->line++;
        if (*p == '\\') p = unescape(p + 1, close, &q);
        else *q++ = *p++;
    }
    s->text = (struct str) { buf, (size_t) (q - buf) };
    s->token = T_STRING;
    s->p = close + 1;
    return true;
}

static bool number_token(struct parser *s) {
    char buf[64];
    size_t n = 0;
    bool real = false;
    const char *p = s->p;
    for (; p < s->end && n < sizeof buf - 1; p++) {
        const bool exponent = (*p == 'e' || *p == 'E') && p + 1 < s->end && (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && p + 2 < s->end && is_digit(p[2])));
        if (*p == '_' && p + 1 < s->end && is_digit(p[1])) continue;
        if (*p == '.' && !real && p + 1 < s->end && is_digit(p[1])) real = true;
        else if (exponent) { real = true; buf[n++] = *p++; }
        else if (!is_digit(*p)) break;
        buf[n++] = *p;
    }
    buf[n] = 0;
    errno = 0;
    if (real) s->number = v_float(strtod(buf, NULL));
    else      s->number = v_int(strtoll(buf, NULL, 10));
    if (errno == ERANGE || n == sizeof buf - 1) return fail_at(s, "a number is too large");
    s->token = real ? T_FLOAT : T_INT;
    s->p = p;
    return true;
}

/* Look at the next token; T_END at the end of the tag. */
static bool next(struct parser *s) {
    while (s->p < s->end && is_space(*s->p)) s->j->line += *s->p++ == '\n';
    s->token = T_END;
    if (s->j->failed || s->p >= s->end) return false;
    const char *p = s->p;
    const size_t left = (size_t) (s->end - p);
    if (s->in_tag && left >= 2 && ((p[0] == '%' && p[1] == '}') || (p[0] == '}' && p[1] == '}' && s->depth == 0))) return false;
    if (s->in_tag && left >= 3 && (*p == '-' || *p == '+') && (p[1] == '%' || p[1] == '}') && p[2] == '}') return false;
    if (*p == '"' || *p == '\'') return string_token(s);
    if (is_digit(*p)) return number_token(s);
    if (is_name(*p)) {
        while (s->p < s->end && is_name(*s->p)) s->p++;
        s->token = T_NAME;
    } else {
        static const char *const two[] = { "==", "!=", "<=", ">=", "//", "**" };
        size_t n = 1;
        for (size_t i = 0; i < 6; i++) if (left >= 2 && !memcmp(p, two[i], 2)) n = 2;
        if (*p == '{' || *p == '(' || *p == '[') s->depth++;
        if ((*p == '}' || *p == ')' || *p == ']') && s->depth > 0) s->depth--;
        s->token = T_OP;
        s->p += n;
    }
    s->text = (struct str) { p, (size_t) (s->p - p) };
    return true;
}

static bool is_op(const struct parser *s, const char *op)     { return s->token == T_OP && str_is(s->text, op); }
static bool is_word(const struct parser *s, const char *word) { return s->token == T_NAME && str_is(s->text, word); }
static bool take_op(struct parser *s, const char *op)         { if (!is_op(s, op)) return false; next(s); return true; }
static bool take_word(struct parser *s, const char *word)     { if (!is_word(s, word)) return false; next(s); return true; }

static bool expect_op(struct parser *s, const char *op) {
    if (take_op(s, op)) return true;
    if (s->token == T_END) jinja_fail(s->j, "'%s' expected", op);
    else jinja_fail(s->j, "'%s' expected at '%.*s'", op, (int) (s->text.n < 20 ? s->text.n : 20), s->text.p);
    return fail_at(s, "");
}

static struct str take_name(struct parser *s) {
    const struct str name = s->text;
    if (s->token != T_NAME) { fail_at(s, "a name expected"); return (struct str) { "", 0 }; }
    next(s);
    return name;
}

/* ---- expressions, loosest first ---- */

static struct node *node_new(struct parser *s, enum node_kind kind, struct node *a, struct node *b) {
    static struct node none;
    struct node *n = jinja_alloc(s->j, sizeof *n);
    if (!n) { none = (struct node) { .kind = E_CONST }; return &none; }
    *n = (struct node) { .kind = kind, .line = s->j->line, .a = a, .b = b };
    return n;
}

static void item_add(struct parser *s, struct node *n, struct node *item, struct str name) {
    if (n->n % 8 == 0) {
        struct node **items = jinja_alloc(s->j, (n->n + 8)*sizeof *items);
        struct str *names = jinja_alloc(s->j, (n->n + 8)*sizeof *names);
        if (!items || !names) return;
        if (n->n) { memcpy(items, n->items, n->n*sizeof *items); memcpy(names, n->names, n->n*sizeof *names); }
        n->items = items;
        n->names = names;
    }
    n->items[n->n] = item;
    n->names[n->n++] = name;
}

static struct node *expression(struct parser *s);
static struct node *unary(struct parser *s, bool with_filters);

/* The arguments of a call after '('. */
static void arguments(struct parser *s, struct node *call) {
    while (s->token != T_END && !is_op(s, ")")) {
        struct str name = { NULL, 0 };
        struct node *value = expression(s);
        if (value->kind == E_NAME && is_op(s, "=")) {
            next(s);
            name = value->v.s;
            value = expression(s);
        }
        item_add(s, call, value, name);
        if (!take_op(s, ",")) break;
    }
    expect_op(s, ")");
}

static struct node *sequence(struct parser *s, enum node_kind kind, const char *close) {
    struct node *n = node_new(s, kind, NULL, NULL);
    const struct str none = { NULL, 0 };
    while (s->token != T_END && !is_op(s, close)) {
        item_add(s, n, expression(s), none);
        if (kind == E_DICT) { expect_op(s, ":"); item_add(s, n, expression(s), none); }
        if (!take_op(s, ",")) break;
    }
    expect_op(s, close);
    return n;
}

/* ( expression ) or a tuple */
static struct node *parenthesis(struct parser *s) {
    if (take_op(s, ")")) return node_new(s, E_TUPLE, NULL, NULL);
    struct node *first = expression(s);
    if (!is_op(s, ",")) { expect_op(s, ")"); return first; }
    struct node *n = node_new(s, E_TUPLE, NULL, NULL);
    item_add(s, n, first, (struct str) { NULL, 0 });
    while (take_op(s, ",") && !is_op(s, ")")) item_add(s, n, expression(s), (struct str) { NULL, 0 });
    expect_op(s, ")");
    return n;
}

static const struct { const char *name; struct value v; } constants[] = {
    { "true",  { .kind = BOOL, .b = true  } }, { "True",  { .kind = BOOL, .b = true  } },
    { "false", { .kind = BOOL, .b = false } }, { "False", { .kind = BOOL, .b = false } },
    { "none",  { .kind = NONE } },             { "None",  { .kind = NONE } },
};

static struct node *name_or_constant(struct parser *s) {
    struct node *n = node_new(s, E_NAME, NULL, NULL);
    n->v = v_str(s->text.p, s->text.n);
    for (size_t i = 0; i < sizeof constants/sizeof *constants; i++) {
        if (str_is(s->text, constants[i].name)) { n->kind = E_CONST; n->v = constants[i].v; }
    }
    next(s);
    return n;
}

/* Adjacent strings are one, as in Python. */
static struct node *string(struct parser *s) {
    struct node *n = node_new(s, E_CONST, NULL, NULL);
    struct text t = { 0 };
    for (; s->token == T_STRING; next(s)) text_add(s->j, &t, s->text.p, s->text.n);
    n->v = v_text(&t);
    return n;
}

static struct node *primary(struct parser *s) {
    struct node *n;
    switch (s->token) {
        case T_NAME:   return name_or_constant(s);
        case T_STRING: return string(s);
        case T_INT: case T_FLOAT:
            n = node_new(s, E_CONST, NULL, NULL);
            n->v = s->number;
            next(s);
            return n;
        default: break;
    }
    if (take_op(s, "(")) return parenthesis(s);
    if (take_op(s, "[")) return sequence(s, E_LIST, "]");
    if (take_op(s, "{")) return sequence(s, E_DICT, "}");
    if (s->token == T_END) fail_at(s, "an expression expected");
    else { jinja_fail(s->j, "unexpected '%.*s'", (int) (s->text.n < 20 ? s->text.n : 20), s->text.p); fail_at(s, ""); }
    return node_new(s, E_CONST, NULL, NULL);
}

/* [index] or [from:to:step] */
static struct node *subscript(struct parser *s, struct node *of) {
    struct node *part[3] = { NULL, NULL, NULL };
    int colons = 0;
    while (s->token != T_END && !is_op(s, "]") && colons < 3) {
        if (take_op(s, ":")) colons++;
        else part[colons] = expression(s);
    }
    expect_op(s, "]");
    if (colons == 0 && part[0]) return node_new(s, E_INDEX, of, part[0]);
    if (colons == 0 || colons > 2) { fail_at(s, "an index expected"); return of; }
    struct node *n = node_new(s, E_SLICE, of, NULL);
    for (int i = 0; i < 3; i++) item_add(s, n, part[i], (struct str) { NULL, 0 });
    return n;
}

static struct node *postfix(struct parser *s, struct node *n) {
    while (!s->j->failed) {
        if (take_op(s, ".")) {
            if (s->token == T_INT) { struct node *i = primary(s); n = node_new(s, E_INDEX, n, i); continue; }
            struct node *attr = node_new(s, E_ATTR, n, NULL);
            const struct str name = take_name(s);
            attr->v = v_str(name.p, name.n);
            n = attr;
        } else if (take_op(s, "[")) {
            n = subscript(s, n);
        } else if (take_op(s, "(")) {
            n = node_new(s, E_CALL, n, NULL);
            arguments(s, n);
        } else {
            break;
        }
    }
    return n;
}

/* value | filter(arguments), and: value is [not] test [argument] */
static struct node *filter(struct parser *s, struct node *value) {
    struct node *n = node_new(s, E_FILTER, value, NULL);
    const struct str name = take_name(s);
    n->v = v_str(name.p, name.n);
    if (take_op(s, "(")) arguments(s, n);
    return n;
}

static bool begins_argument(const struct parser *s) {
    if (s->token == T_NAME) {
        static const char *const words[] = { "else", "or", "and", "is", "in", "not", "if" };
        for (size_t i = 0; i < sizeof words/sizeof *words; i++) if (str_is(s->text, words[i])) return false;
        return true;
    }
    return s->token == T_STRING || s->token == T_INT || s->token == T_FLOAT || is_op(s, "[") || is_op(s, "{");
}

static struct node *is_test(struct parser *s, struct node *value) {
    const bool negated = take_word(s, "not");
    struct node *n = node_new(s, E_TEST, value, NULL);
    const struct str name = take_name(s);
    n->v = v_str(name.p, name.n);
    if (take_op(s, "(")) arguments(s, n);
    else if (begins_argument(s)) item_add(s, n, postfix(s, primary(s)), (struct str) { NULL, 0 });
    return negated ? node_new(s, E_NOT, n, NULL) : n;
}

static struct node *filters(struct parser *s, struct node *n) {
    while (!s->j->failed) {
        if (take_op(s, "|")) n = filter(s, n);
        else if (take_word(s, "is")) n = is_test(s, n);
        else if (is_op(s, "(")) n = postfix(s, n);
        else break;
    }
    return n;
}

/* Every nested expression passes here: the depth of the tree, and so of every later walk, is bounded. */
static struct node *unary(struct parser *s, bool with_filters) {
    struct node *n;
    if (++s->j->depth > JINJA_DEPTH) { fail_at(s, "nested too deep"); s->j->depth--; return node_new(s, E_CONST, NULL, NULL); }
    if (is_op(s, "-") || is_op(s, "+")) {
        const char op = *s->text.p;
        next(s);
        n = node_new(s, E_UNARY, unary(s, false), NULL);
        n->op = op;
    } else {
        n = primary(s);
    }
    n = postfix(s, n);
    if (with_filters) n = filters(s, n);
    s->j->depth--;
    return n;
}

/* The binary operators by level, loosest first. */
static const struct { const char *text; char op; int level; } operators[] = {
    { "+", '+', 0 }, { "-", '-', 0 }, { "~", '~', 1 }, { "*", '*', 2 }, { "/", '/', 2 }, { "//", 'D', 2 }, { "%", '%', 2 }, { "**", 'P', 3 },
};

static struct node *binary(struct parser *s, int level) {
    if (level == 4) return unary(s, true);
    struct node *n = binary(s, level + 1);
    for (int chain = 0; !s->j->failed && s->token == T_OP; chain++) {
        size_t i = 0;
        while (i < 8 && !(operators[i].level == level && str_is(s->text, operators[i].text))) i++;
        if (i == 8) break;
        if (chain > JINJA_DEPTH/2) { fail_at(s, "an expression is too long"); break; }
        next(s);
        n = node_new(s, E_BINARY, n, binary(s, level + 1));
        n->op = operators[i].op;
    }
    return n;
}

static bool comparison(struct parser *s, struct str *op) {
    static const char *const texts[] = { "==", "!=", "<", "<=", ">", ">=" };
    *op = s->text;
    for (size_t i = 0; i < 6; i++) if (is_op(s, texts[i])) { next(s); return true; }
    if (take_word(s, "in")) return true;
    if (is_word(s, "not")) {
        const struct parser before = *s;
        const int line = s->j->line;
        next(s);
        if (take_word(s, "in")) { *op = (struct str) { "not in", 6 }; return true; }
        *s = before;
        s->j->line = line;
    }
    return false;
}

static struct node *comparisons(struct parser *s) {
    struct node *first = binary(s, 0);
    struct str op;
    if (!comparison(s, &op)) return first;
    struct node *n = node_new(s, E_COMPARE, first, NULL);
    do item_add(s, n, binary(s, 0), op); while (comparison(s, &op));
    return n;
}

static struct node *negation(struct parser *s) {
    if (!is_word(s, "not")) return comparisons(s);
    next(s);
    if (++s->j->depth > JINJA_DEPTH) fail_at(s, "nested too deep");
    struct node *n = node_new(s, E_NOT, negation(s), NULL);
    s->j->depth--;
    return n;
}

static struct node *conjunction(struct parser *s) {
    struct node *n = negation(s);
    for (int chain = 0; take_word(s, "and"); chain++) {
        if (chain > JINJA_DEPTH/2) fail_at(s, "an expression is too long");
        n = node_new(s, E_AND, n, negation(s));
    }
    return n;
}

static struct node *disjunction(struct parser *s) {
    struct node *n = conjunction(s);
    for (int chain = 0; take_word(s, "or"); chain++) {
        if (chain > JINJA_DEPTH/2) fail_at(s, "an expression is too long");
        n = node_new(s, E_OR, n, conjunction(s));
    }
    return n;
}

/* value if condition else other */
static struct node *conditional(struct parser *s, bool with_condition) {
    struct node *n = disjunction(s);
    for (int chain = 0; with_condition && take_word(s, "if"); chain++) {
        if (chain > JINJA_DEPTH/2) fail_at(s, "an expression is too long");
        n = node_new(s, E_COND, n, disjunction(s));
        if (!take_word(s, "else")) continue;
        if (++s->j->depth > JINJA_DEPTH) fail_at(s, "nested too deep");
        n->c = conditional(s, true);
        s->j->depth--;
    }
    return n;
}

static struct node *expression(struct parser *s) {
    if (++s->j->depth > JINJA_DEPTH) fail_at(s, "nested too deep");
    struct node *n = conditional(s, true);
    s->j->depth--;
    return n;
}

/* An expression, or several with commas between them: a tuple. */
static struct node *tuple(struct parser *s, bool with_condition) {
    struct node *first = with_condition ? expression(s) : conditional(s, false);
    if (!is_op(s, ",")) return first;
    struct node *n = node_new(s, E_TUPLE, NULL, NULL);
    item_add(s, n, first, (struct str) { NULL, 0 });
    while (take_op(s, ",") && s->token != T_END && !is_op(s, "=") && !is_word(s, "in")) {
        item_add(s, n, with_condition ? expression(s) : conditional(s, false), (struct str) { NULL, 0 });
    }
    return n;
}

/* What can stand left of `=` or `in`: a name, name.attribute, or a tuple of names. */
static struct node *target(struct parser *s) {
    const bool closed = take_op(s, "(");
    struct node *first = node_new(s, E_NAME, NULL, NULL), *n = first;
    struct str name = take_name(s);
    first->v = v_str(name.p, name.n);
    if (!closed && take_op(s, ".")) {
        name = take_name(s);
        n = node_new(s, E_ATTR, first, NULL);
        n->v = v_str(name.p, name.n);
        return n;
    }
    if (is_op(s, ",")) {
        n = node_new(s, E_TUPLE, NULL, NULL);
        item_add(s, n, first, (struct str) { NULL, 0 });
        while (take_op(s, ",") && s->token == T_NAME && !is_word(s, "in")) {
            struct node *more = node_new(s, E_NAME, NULL, NULL);
            name = take_name(s);
            more->v = v_str(name.p, name.n);
            item_add(s, n, more, (struct str) { NULL, 0 });
        }
    }
    if (closed) expect_op(s, ")");
    return n;
}

/* ---- tags and data ---- */

/* The end of a tag; what follows loses white space by the rules. */
static void tag_end(struct parser *s, char closing) {
    if (s->j->failed) return;
    if (s->token != T_END) { jinja_fail(s->j, "unexpected '%.*s'", (int) (s->text.n < 20 ? s->text.n : 20), s->text.p); return; }
    const bool minus = s->p < s->end && *s->p == '-', plus = s->p < s->end && *s->p == '+';
    s->p += minus || plus;
    if (s->end - s->p < 2 || s->p[0] != closing || s->p[1] != '}') { jinja_fail(s->j, "'%c}' expected", closing); return; }
    s->p += 2;
    s->in_tag = false;
    s->trim = minus;
    if (!minus && !plus && closing != '}') {            /* trim_blocks */
        if (s->end - s->p >= 2 && s->p[0] == '\r' && s->p[1] == '\n') s->p++;
        if (s->p < s->end && *s->p == '\n') { s->p++; s->j->line++; }
    }
}

/* The data up to the next tag, with white space taken off; *tag is the tag's second character or 0 at the end. */
static struct str data(struct parser *s, char *tag) {
    const char *start = s->p, *p = start;
    while (p < s->end && !(*p == '{' && p + 1 < s->end && (p[1] == '{' || p[1] == '%' || p[1] == '#'))) s->j->line += *p++ == '\n';
    const char *stop = p;
    *tag = p < s->end ? p[1] : 0;
    s->p = *tag ? p + 2 : p;
    const bool minus = *tag && s->p < s->end && *s->p == '-', plus = *tag && s->p < s->end && *s->p == '+';
    s->p += minus || plus;
    if (s->trim) while (start < stop && is_space(*start)) start++;
    if (minus) while (stop > start && is_space(stop[-1])) stop--;
    else if (!plus && (*tag == '%' || *tag == '#')) {   /* lstrip_blocks */
        const char *q = stop;
        while (q > start && (q[-1] == ' ' || q[-1] == '\t')) q--;
        if (q > start ? q[-1] == '\n' : start == s->begin || start[-1] == '\n') stop = q;
    }
    return (struct str) { start, (size_t) (stop - start) };
}

static struct node *statements(struct parser *s, const char *const *stops);

/* Is the name looked at one of the words that end a block? */
static bool stops_here(const struct parser *s, const char *const *stops) {
    for (; stops && *stops; stops++) if (is_word(s, *stops)) return true;
    return false;
}

/* The body of a block up to one of `stops`, whose word is then looked at inside its tag. */
static struct node *body(struct parser *s, const char *const *stops) {
    tag_end(s, '%');
    struct node *n = statements(s, stops);
    if (!s->j->failed && !stops_here(s, stops)) jinja_fail(s->j, "'%s' is missing", *stops);
    return n;
}

static struct node *if_statement(struct parser *s) {
    static const char *const stops[] = { "elif", "else", "endif", NULL };
    struct node *n = node_new(s, S_IF, tuple(s, true), NULL), *last = n;
    n->body = body(s, stops);
    for (int branches = 0; take_word(s, "elif"); branches++) {
        struct node *more = node_new(s, S_IF, tuple(s, true), NULL);
        if (branches > JINJA_DEPTH) jinja_fail(s->j, "more than %d branches", JINJA_DEPTH);
        more->body = body(s, stops);
        last->b = more;
        last = more;
    }
    if (take_word(s, "else")) last->orelse = body(s, (const char *const[]) { "endif", NULL });
    take_word(s, "endif");
    return n;
}

static struct node *for_statement(struct parser *s) {
    struct node *n = node_new(s, S_FOR, NULL, target(s));
    if (!take_word(s, "in")) { fail_at(s, "'in' expected"); return n; }
    n->a = tuple(s, false);
    if (take_word(s, "if")) n->c = expression(s);
    if (take_word(s, "recursive")) fail_at(s, "recursive loops are not supported");
    n->body = body(s, (const char *const[]) { "else", "endfor", NULL });
    if (take_word(s, "else")) n->orelse = body(s, (const char *const[]) { "endfor", NULL });
    take_word(s, "endfor");
    return n;
}

static struct node *set_statement(struct parser *s) {
    struct node *n = node_new(s, S_SET, NULL, target(s));
    if (take_op(s, "=")) { n->a = tuple(s, true); return n; }
    n->kind = S_SET_BLOCK;
    struct node *value = NULL;                          /* {% set x | filter %}: filters of the block's text */
    while (take_op(s, "|")) value = filter(s, value);
    n->c = value;
    n->body = body(s, (const char *const[]) { "endset", NULL });
    take_word(s, "endset");
    return n;
}

/* (name, name = default, ...): items hold the defaults, NULL without one */
static void parameters(struct parser *s, struct node *n) {
    while (s->token == T_NAME) {
        const struct str name = take_name(s);
        item_add(s, n, take_op(s, "=") ? expression(s) : NULL, name);
        if (!take_op(s, ",")) break;
    }
    expect_op(s, ")");
}

static struct node *macro_statement(struct parser *s) {
    struct node *n = node_new(s, S_MACRO, NULL, NULL);
    const struct str name = take_name(s);
    n->v = v_str(name.p, name.n);
    if (expect_op(s, "(")) parameters(s, n);
    n->body = body(s, (const char *const[]) { "endmacro", NULL });
    take_word(s, "endmacro");
    if (s->token == T_NAME) next(s);                    /* {% endmacro name %} */
    return n;
}

static struct node *call_statement(struct parser *s) {
    struct node *n = node_new(s, S_CALL, NULL, NULL);
    if (take_op(s, "(")) parameters(s, n);
    n->a = expression(s);
    if (n->a->kind != E_CALL) fail_at(s, "a call expected");
    n->body = body(s, (const char *const[]) { "endcall", NULL });
    take_word(s, "endcall");
    return n;
}

static struct node *filter_statement(struct parser *s) {
    struct node *n = node_new(s, S_FILTER, NULL, NULL);
    n->c = filter(s, NULL);
    while (take_op(s, "|")) n->c = filter(s, n->c);
    n->body = body(s, (const char *const[]) { "endfilter", NULL });
    take_word(s, "endfilter");
    return n;
}

static struct node *with_statement(struct parser *s) {
    struct node *n = node_new(s, S_WITH, NULL, NULL);
    const struct str none = { NULL, 0 };
    while (s->token == T_NAME) {
        item_add(s, n, target(s), none);
        expect_op(s, "=");
        item_add(s, n, expression(s), none);
        if (!take_op(s, ",")) break;
    }
    n->body = body(s, (const char *const[]) { "endwith", NULL });
    take_word(s, "endwith");
    return n;
}

/* {% generation %}: marks what an assistant said, for training; its body is kept. */
static struct node *generation_statement(struct parser *s) {
    struct node *n = node_new(s, S_SCOPE, NULL, NULL);
    n->body = body(s, (const char *const[]) { "endgeneration", NULL });
    take_word(s, "endgeneration");
    return n;
}

static struct node *break_statement(struct parser *s)    { return node_new(s, S_BREAK, NULL, NULL); }
static struct node *continue_statement(struct parser *s) { return node_new(s, S_CONTINUE, NULL, NULL); }

static const struct { const char *word; struct node *(*parse)(struct parser *s); } tags[] = {
    { "if", if_statement }, { "for", for_statement }, { "set", set_statement }, { "macro", macro_statement },
    { "call", call_statement }, { "filter", filter_statement }, { "with", with_statement },
    { "generation", generation_statement }, { "break", break_statement }, { "continue", continue_statement },
};

static struct node *statement(struct parser *s) {
    for (size_t i = 0; i < sizeof tags/sizeof *tags; i++) {
        if (!is_word(s, tags[i].word)) continue;
        next(s);
        if (++s->j->depth > JINJA_DEPTH) fail_at(s, "nested too deep");
        struct node *n = tags[i].parse(s);
        s->j->depth--;
        tag_end(s, '%');
        return n;
    }
    jinja_fail(s->j, "no such statement: '%.*s'", (int) (s->text.n < 20 ? s->text.n : 20), s->token == T_END ? "" : s->text.p);
    return node_new(s, S_TEXT, NULL, NULL);
}

static void comment(struct parser *s) {
    const char *p = s->p;
    while (s->end - p >= 2 && !(p[0] == '#' && p[1] == '}')) s->j->line += *p++ == '\n';
    if (s->end - p < 2) { jinja_fail(s->j, "a comment is not closed"); return; }
    s->token = T_END;
    s->p = p > s->p && (p[-1] == '-' || p[-1] == '+') ? p - 1 : p;
    tag_end(s, '#');
}

/* {% raw %} ... {% endraw %}: text as it stands */
static struct node *raw(struct parser *s) {
    tag_end(s, '%');
    struct node *n = node_new(s, S_TEXT, NULL, NULL);
    const char *start = s->p;
    while (!s->j->failed && s->p < s->end) {
        const char *tag = s->p;
        if (s->end - tag < 2 || tag[0] != '{' || tag[1] != '%') { s->j->line += *s->p++ == '\n'; continue; }
        s->p += 2;
        if (s->p < s->end && (*s->p == '-' || *s->p == '+')) s->p++;
        s->in_tag = true;
        if (next(s) && is_word(s, "endraw")) {
            next(s);
            tag_end(s, '%');
            n->v = v_str(start, (size_t) (tag - start));
            return n;
        }
        s->p = tag + 2;
    }
    jinja_fail(s->j, "'endraw' is missing");
    return n;
}

static struct node *print_statement(struct parser *s) {
    s->depth = 0;
    next(s);
    struct node *n = node_new(s, S_PRINT, tuple(s, true), NULL);
    tag_end(s, '}');
    return n;
}

/* Statements up to the end of the source or one of `stops`. */
static struct node *statements(struct parser *s, const char *const *stops) {
    struct node *first = NULL, **last = &first;
    while (!s->j->failed) {
        char tag;
        const struct str text = data(s, &tag);
        if (text.n) {
            struct node *n = node_new(s, S_TEXT, NULL, NULL);
            n->v = v_str(text.p, text.n);
            *last = n;
            last = &n->next;
        }
        if (!tag) break;
        s->in_tag = true;
        struct node *n = NULL;
        if (tag == '#') { comment(s); continue; }
        if (tag == '{') {
            n = print_statement(s);
        } else {
            s->depth = 0;
            next(s);
            if (stops_here(s, stops)) break;
            n = is_word(s, "raw") ? (next(s), raw(s)) : statement(s);
        }
        *last = n;
        last = &n->next;
    }
    return first;
}

struct node *jinja_parse(struct jinja *j, const char *source, size_t n) {
    if (n && source[n - 1] == '\n') n--;                /* keep_trailing_newline is off */
    struct parser s = { .j = j, .begin = source, .p = source, .end = source + n };
    j->line = 1;
    struct node *tree = statements(&s, NULL);
    return j->failed ? NULL : tree;
}

/* ---- JSON, which shares its tokens with the language (https://www.rfc-editor.org/rfc/rfc8259) ---- */

static struct value json_value(struct parser *s) {
    static const struct { const char *word; struct value v; } words[] = {
        { "true", { .kind = BOOL, .b = true } }, { "false", { .kind = BOOL, .b = false } }, { "null", { .kind = NONE } } };
    struct value v = v_none();
    if (++s->j->depth > JINJA_DEPTH) fail_at(s, "JSON nested too deep");
    const bool minus = take_op(s, "-");
    if (s->token == T_INT || s->token == T_FLOAT) {
        v = s->number;
        if (minus && v.kind == INT) v.i = -v.i;
        if (minus && v.kind == FLOAT) v.f = -v.f;
        next(s);
    } else if (!minus && s->token == T_STRING) {
        v = v_str(s->text.p, s->text.n);
        next(s);
    } else if (!minus && s->token == T_NAME) {
        size_t i = 0;
        while (i < 3 && !str_is(s->text, words[i].word)) i++;
        if (i == 3) fail_at(s, "JSON: unexpected word"); else v = words[i].v;
        next(s);
    } else if (!minus && take_op(s, "[")) {
        v = v_list(s->j, LIST, 0);
        while (!s->j->failed && !is_op(s, "]")) { list_add(s->j, v.l, json_value(s)); if (!take_op(s, ",")) break; }
        expect_op(s, "]");
    } else if (!minus && take_op(s, "{")) {
        v = v_dict(s->j, DICT);
        while (!s->j->failed && s->token == T_STRING) {
            const struct value key = v_str(s->text.p, s->text.n);
            next(s);
            expect_op(s, ":");
            dict_set(s->j, v.d, key, json_value(s));
            if (!take_op(s, ",")) break;
        }
        expect_op(s, "}");
    } else {
        fail_at(s, "JSON: a value expected");
    }
    s->j->depth--;
    return v;
}

struct value jinja_parse_json(struct jinja *j, const char *source, size_t n) {
    struct parser s = { .j = j, .begin = source, .p = source, .end = source + n };
    j->line = 1;
    next(&s);
    const struct value v = json_value(&s);
    if (!j->failed && (s.token != T_END || s.p < s.end)) jinja_fail(j, "JSON: more after the value");
    return v;
}
