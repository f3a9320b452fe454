/* The values of the template language: arena, construction, text, truth, order, JSON. */

#include "jinja.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and the arena ---- */

void jinja_fail(struct jinja *j, const char *format, ...) {
    if (j->failed) return;
    j->failed = true;
    const int n = snprintf(j->error, sizeof j->error, "chat template, line %d: ", j->line);
    va_list args;
    va_start(args, format);
    vsnprintf(j->error + n, sizeof j->error - (size_t) n, format, args);
    va_end(args);
}

bool jinja_step(struct jinja *j) {
    if (!j->failed && ++j->steps > JINJA_STEPS) jinja_fail(j, "more than %d steps", JINJA_STEPS);
    return !j->failed;
}

struct chunk { struct chunk *next; size_t used, size; max_align_t bytes[]; };

void *jinja_alloc(struct jinja *j, size_t size) {
    if (j->failed) return NULL;
    if (size > JINJA_MEMORY || j->memory + size > JINJA_MEMORY) { jinja_fail(j, "more than %d MiB of memory", JINJA_MEMORY >> 20); return NULL; }
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!j->chunks || j->chunks->size - j->chunks->used < size) {
        const size_t room = size > 1 << 16 ? size : 1 << 16;
        struct chunk *c = malloc(sizeof *c + room);
        if (!c) { jinja_fail(j, "out of memory"); return NULL; }
        *c = (struct chunk) { j->chunks, 0, room };
        j->chunks = c;
    }
    void *p = (char *) j->chunks->bytes + j->chunks->used;
    j->chunks->used += size;
    j->memory += size;
    return memset(p, 0, size);
}

void jinja_free(struct jinja *j) {
    while (j->chunks) {
        struct chunk *next = j->chunks->next;
        free(j->chunks);
        j->chunks = next;
    }
}

/* Room for one more of `size` bytes each in an array that grows in the arena. */
static void *grow(struct jinja *j, const void *old, size_t n, size_t *room, size_t size) {
    const size_t more = 2**room + 8;
    void *p = jinja_alloc(j, more*size);
    if (!p) return NULL;
    if (n) memcpy(p, old, n*size);
    *room = more;
    return p;
}

bool text_add(struct jinja *j, struct text *t, const char *p, size_t n) {
    if (j->failed) return false;
    if (t->n + n > t->room) {
        if (t->n + n > JINJA_OUTPUT) { jinja_fail(j, "more than %d MiB of text", JINJA_OUTPUT >> 20); return false; }
        const size_t room = 2*(t->n + n) + 64;
        char *grown = jinja_alloc(j, room);
        if (!grown) return false;
        if (t->n) memcpy(grown, t->p, t->n);
        t->p = grown;
        t->room = room;
    }
    if (n) memcpy(t->p + t->n, p, n);
    t->n += n;
    return true;
}

static bool text_cstr(struct jinja *j, struct text *t, const char *p) { return text_add(j, t, p, strlen(p)); }

/* ---- construction ---- */

struct value v_str(const char *p, size_t n) { return (struct value) { .kind = STRING, .s = { p, n } }; }
struct value v_cstr(const char *p) { return v_str(p, strlen(p)); }
struct value v_text(const struct text *t) { return v_str(t->p ? t->p : "", t->n); }
struct value v_int(int64_t i) { return (struct value) { .kind = INT, .i = i }; }
struct value v_bool(bool b) { return (struct value) { .kind = BOOL, .b = b }; }
struct value v_float(double f) { return (struct value) { .kind = FLOAT, .f = f }; }
struct value v_none(void) { return (struct value) { .kind = NONE }; }
struct value v_undefined(const char *p, size_t n) { return (struct value) { .kind = UNDEFINED, .s = { p, n } }; }

struct value v_list(struct jinja *j, enum kind kind, size_t room) {
    struct list *l = jinja_alloc(j, sizeof *l);
    if (!l) return v_undefined("", 0);
    l->items = room ? jinja_alloc(j, room*sizeof *l->items) : NULL;
    l->room  = l->items ? room : 0;
    return (struct value) { .kind = kind, .l = l };
}

struct value v_dict(struct jinja *j, enum kind kind) {
    struct dict *d = jinja_alloc(j, sizeof *d);
    return d ? (struct value) { .kind = kind, .d = d } : v_undefined("", 0);
}

bool list_add(struct jinja *j, struct list *l, struct value v) {
    if (j->failed) return false;
    if (l->n == l->room) {
        struct value *items = grow(j, l->items, l->n, &l->room, sizeof *items);
        if (!items) return false;
        l->items = items;
    }
    l->items[l->n++] = v;
    return true;
}

struct value *dict_get(struct jinja *j, const struct dict *d, struct value key) {
    for (size_t i = 0; i < d->n; i++) if (jinja_step(j) && equal(j, d->keys[i], key)) return d->values + i;
    return NULL;
}

bool dict_set(struct jinja *j, struct dict *d, struct value key, struct value v) {
    if (j->failed) return false;
    if (key.kind == LIST || key.kind == DICT || key.kind == UNDEFINED) { jinja_fail(j, "%s cannot be a key", kind_name(key.kind)); return false; }
    struct value *old = dict_get(j, d, key);
    if (old) { *old = v; return true; }
    if (d->n == d->room) {
        size_t room = d->room;
        struct value *keys = grow(j, d->keys, d->n, &room, sizeof *keys);
        struct value *values = grow(j, d->values, d->n, &d->room, sizeof *values);
        if (!keys || !values) return false;
        d->keys = keys;
        d->values = values;
    }
    d->keys[d->n] = key;
    d->values[d->n++] = v;
    return !j->failed;
}

/* ---- truth, numbers, equality, order ---- */

const char *kind_name(enum kind kind) {
    static const char *const names[] = { "an undefined value", "none", "a bool", "an integer", "a float", "a string", "a list",
                                         "a tuple", "a dict", "a namespace", "a function" };
    return names[kind];
}

bool is_true(struct value v) {
    switch (v.kind) {
        case UNDEFINED: case NONE: return false;
        case BOOL:   return v.b;
        case INT:    return v.i != 0;
        case FLOAT:  return v.f != 0;
        case STRING: return v.s.n != 0;
        case LIST: case TUPLE: return v.l->n != 0;
        case DICT:   return v.d->n != 0;
        default:     return true;
    }
}

bool is_number(struct value v) { return v.kind == INT || v.kind == FLOAT || v.kind == BOOL; }
double as_float(struct value v) { return v.kind == FLOAT ? v.f : v.kind == INT ? (double) v.i : v.b; }
static int64_t as_int(struct value v) { return v.kind == BOOL ? v.b : v.i; }

bool str_is(struct str s, const char *text) { return strlen(text) == s.n && !memcmp(s.p, text, s.n); }

static int str_order(struct str a, struct str b) {
    const size_t n = a.n < b.n ? a.n : b.n;
    const int c = n ? memcmp(a.p, b.p, n) : 0;          /* the order of UTF-8 bytes is that of code points */
    return c ? (c > 0) - (c < 0) : (a.n > b.n) - (a.n < b.n);
}

static bool dict_equal(struct jinja *j, const struct dict *a, const struct dict *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const struct value *other = dict_get(j, b, a->keys[i]);
        if (!other || !equal(j, a->values[i], *other)) return false;
    }
    return true;
}

static bool list_equal(struct jinja *j, const struct list *a, const struct list *b) {
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) if (!equal(j, a->items[i], b->items[i])) return false;
    return true;
}

bool equal(struct jinja *j, struct value a, struct value b) {
    if (!jinja_step(j)) return false;
    if (is_number(a) && is_number(b)) return a.kind == FLOAT || b.kind == FLOAT ? as_float(a) == as_float(b) : as_int(a) == as_int(b);
    if (a.kind != b.kind) return false;
    if (j->depth > JINJA_DEPTH) { jinja_fail(j, "nested more than %d deep", JINJA_DEPTH); return false; }
    j->depth++;
    bool same;
    switch (a.kind) {
        case UNDEFINED: case NONE: same = true; break;
        case STRING: same = a.s.n == b.s.n && (!a.s.n || !memcmp(a.s.p, b.s.p, a.s.n)); break;
        case LIST: case TUPLE: same = list_equal(j, a.l, b.l); break;
        case DICT:   same = dict_equal(j, a.d, b.d); break;
        case NAMESPACE: same = a.d == b.d; break;
        default:     same = a.fn == b.fn; break;
    }
    j->depth--;
    return same;
}

int compare(struct jinja *j, struct value a, struct value b) {
    if (!jinja_step(j)) return 0;
    if (is_number(a) && is_number(b)) {
        if (a.kind == FLOAT || b.kind == FLOAT) return (as_float(a) > as_float(b)) - (as_float(a) < as_float(b));
        return (as_int(a) > as_int(b)) - (as_int(a) < as_int(b));
    }
    if (a.kind == STRING && b.kind == STRING) return str_order(a.s, b.s);
    if (a.kind == b.kind && (a.kind == LIST || a.kind == TUPLE)) {
        if (++j->depth > JINJA_DEPTH) jinja_fail(j, "nested more than %d deep", JINJA_DEPTH);
        int c = 0;
        for (size_t i = 0; !c && !j->failed && i < a.l->n && i < b.l->n; i++) if (!equal(j, a.l->items[i], b.l->items[i])) c = compare(j, a.l->items[i], b.l->items[i]);
        j->depth--;
        return c ? c : (a.l->n > b.l->n) - (a.l->n < b.l->n);
    }
    jinja_fail(j, "%s and %s have no order", kind_name(a.kind), kind_name(b.kind));
    return 0;
}

/* ---- UTF-8 ---- */

static bool is_start(char c) { return ((unsigned char) c & 0xc0) != 0x80; }

size_t utf8_length(const char *p, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += is_start(p[i]);
    return count;
}

size_t utf8_offset(const char *p, size_t n, size_t i) {
    size_t at = 0;
    while (at < n && !is_start(p[at])) at++;            /* bytes that continue nothing belong to no code point */
    for (; at < n && i > 0; i--) for (at++; at < n && !is_start(p[at]); at++) { }
    return at;
}

/* What iterating gives: elements, keys, or code points. */
struct value value_list(struct jinja *j, struct value v) {
    if (v.kind == LIST || v.kind == TUPLE) return (struct value) { .kind = LIST, .l = v.l };
    struct value l = v_list(j, LIST, 0);
    if (j->failed || v.kind == UNDEFINED) return l;
    if (v.kind == DICT) {
        for (size_t i = 0; i < v.d->n; i++) list_add(j, l.l, v.d->keys[i]);
    } else if (v.kind == STRING) {
        for (size_t at = 0; at < v.s.n && jinja_step(j); ) {
            const size_t next = at + utf8_offset(v.s.p + at, v.s.n - at, 1);
            list_add(j, l.l, v_str(v.s.p + at, next - at));
            at = next;
        }
    } else {
        jinja_fail(j, "%s cannot be iterated over", kind_name(v.kind));
    }
    return l;
}

/* ---- text ---- */

/* The shortest decimal that reads back as the same double, written as Python does. */
static void float_text(double f, char buf[40]) {
    if (isnan(f)) { strcpy(buf, "nan"); return; }
    if (isinf(f)) { strcpy(buf, f > 0 ? "inf" : "-inf"); return; }
    char digits[32];
    int precision = 1;
    do snprintf(digits, sizeof digits, "%.*e", precision - 1, f); while (strtod(digits, NULL) != f && ++precision <= 17);
    const int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        snprintf(buf, 40, "%.*e", precision - 1, f);
        return;
    }
    const int after = precision - 1 - exponent;
    snprintf(buf, 40, "%.*f", after > 0 ? after : 1, f);
}

bool text_str(struct jinja *j, struct text *t, struct value v) {
    if (v.kind == UNDEFINED) return !j->failed;
    if (v.kind == STRING) return text_add(j, t, v.s.p, v.s.n);
    return text_repr(j, t, v);
}

static bool repr_string(struct jinja *j, struct text *t, struct str s) {
    const bool twofold = s.n && memchr(s.p, '\'', s.n) && !memchr(s.p, '"', s.n);
    const char quote = twofold ? '"' : '\'';
    text_add(j, t, &quote, 1);
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char) s.p[i];
        char e[8];
        if (c == '\n') text_cstr(j, t, "\\n");
        else if (c == '\r') text_cstr(j, t, "\\r");
        else if (c == '\t') text_cstr(j, t, "\\t");
        else if (c == '\\' || c == (unsigned char) quote) { e[0] = '\\'; e[1] = (char) c; text_add(j, t, e, 2); }
        else if (c < 32 || c == 127) text_add(j, t, e, (size_t) snprintf(e, sizeof e, "\\x%02x", c));
        else text_add(j, t, s.p + i, 1);
    }
    return text_add(j, t, &quote, 1);
}

static void repr_items(struct jinja *j, struct text *t, const struct list *l, const char *open, const char *close) {
    text_cstr(j, t, open);
    for (size_t i = 0; i < l->n && !j->failed; i++) {
        if (i) text_cstr(j, t, ", ");
        text_repr(j, t, l->items[i]);
    }
    text_cstr(j, t, close);
}

static void repr_dict(struct jinja *j, struct text *t, const struct dict *d) {
    text_cstr(j, t, "{");
    for (size_t i = 0; i < d->n && !j->failed; i++) {
        if (i) text_cstr(j, t, ", ");
        text_repr(j, t, d->keys[i]);
        text_cstr(j, t, ": ");
        text_repr(j, t, d->values[i]);
    }
    text_cstr(j, t, "}");
}

bool text_repr(struct jinja *j, struct text *t, struct value v) {
    char buf[40];
    if (!jinja_step(j)) return false;
    if (++j->depth > JINJA_DEPTH) jinja_fail(j, "nested more than %d deep", JINJA_DEPTH);
    else switch (v.kind) {
        case UNDEFINED: text_cstr(j, t, "Undefined"); break;
        case NONE:      text_cstr(j, t, "None"); break;
        case BOOL:      text_cstr(j, t, v.b ? "True" : "False"); break;
        case INT:       text_add(j, t, buf, (size_t) snprintf(buf, sizeof buf, "%lld", (long long) v.i)); break;
        case FLOAT:     float_text(v.f, buf); text_cstr(j, t, buf); break;
        case STRING:    repr_string(j, t, v.s); break;
        case LIST:      repr_items(j, t, v.l, "[", "]"); break;
        case TUPLE:     repr_items(j, t, v.l, "(", v.l->n == 1 ? ",)" : ")"); break;
        case DICT:      repr_dict(j, t, v.d); break;
        case NAMESPACE: text_cstr(j, t, "<Namespace>"); break;
        case FUNCTION:  text_cstr(j, t, "<function>"); break;
    }
    j->depth--;
    return !j->failed;
}

/* ---- JSON ---- */

static void json_string(struct jinja *j, struct text *t, struct str s, bool ascii) {
    text_cstr(j, t, "\"");
    for (size_t i = 0; i < s.n && !j->failed; i++) {
        const unsigned char c = (unsigned char) s.p[i];
        const char *const at = c ? strchr("\"\\\n\r\t\b\f", c) : NULL;
        char e[16];
        if (at) { e[0] = '\\'; e[1] = "\"\\nrtbf"[at - strchr("\"\\\n\r\t\b\f", '"')]; text_add(j, t, e, 2); }
        else if (c < 32 || c == 127) text_add(j, t, e, (size_t) snprintf(e, sizeof e, "\\u%04x", c));
        else if (c < 128 || !ascii) text_add(j, t, s.p + i, 1);
        else {
            const size_t n = utf8_offset(s.p + i, s.n - i, 1);
            uint32_t u = c & (0x7fu >> n);
            for (size_t k = 1; k < n; k++) u = u << 6 | ((unsigned char) s.p[i + k] & 0x3f);
            int w = u < 0x10000 ? snprintf(e, sizeof e, "\\u%04x", (unsigned) u)
                                : snprintf(e, sizeof e, "\\u%04x\\u%04x", (unsigned) (0xd800 + ((u - 0x10000) >> 10 & 0x3ff)), (unsigned) (0xdc00 + ((u - 0x10000) & 0x3ff)));
            text_add(j, t, e, (size_t) w);
            i += n - 1;
        }
    }
    text_cstr(j, t, "\"");
}

static void json_break(struct jinja *j, struct text *t, int indent, int level) {
    if (indent < 0) return;
    text_cstr(j, t, "\n");
    for (int i = 0; i < indent*level && !j->failed; i++) text_cstr(j, t, " ");
}

static void json_items(struct jinja *j, struct text *t, struct value v, int indent, int level, bool ascii) {
    const bool dict = v.kind == DICT || v.kind == NAMESPACE;
    const size_t n = dict ? v.d->n : v.l->n;
    text_cstr(j, t, dict ? "{" : "[");
    for (size_t i = 0; i < n && !j->failed; i++) {
        if (i) text_cstr(j, t, indent < 0 ? ", " : ",");
        json_break(j, t, indent, level + 1);
        if (dict) {
            if (v.d->keys[i].kind == STRING) json_string(j, t, v.d->keys[i].s, ascii);
            else { text_cstr(j, t, "\""); text_json(j, t, v.d->keys[i], -1, 0, ascii); text_cstr(j, t, "\""); }
            text_cstr(j, t, ": ");
        }
        text_json(j, t, dict ? v.d->values[i] : v.l->items[i], indent, level + 1, ascii);
    }
    if (n) json_break(j, t, indent, level);
    text_cstr(j, t, dict ? "}" : "]");
}

bool text_json(struct jinja *j, struct text *t, struct value v, int indent, int level, bool ascii) {
    if (!jinja_step(j)) return false;
    if (++j->depth > JINJA_DEPTH) jinja_fail(j, "nested more than %d deep", JINJA_DEPTH);
    else switch (v.kind) {
        case NONE:   text_cstr(j, t, "null"); break;
        case BOOL:   text_cstr(j, t, v.b ? "true" : "false"); break;
        case STRING: json_string(j, t, v.s, ascii); break;
        case INT:    text_repr(j, t, v); break;
        case FLOAT:  text_repr(j, t, v); break;
        case LIST: case TUPLE: case DICT: case NAMESPACE: json_items(j, t, v, indent, level, ascii); break;
        default:     jinja_fail(j, "%s cannot be written as JSON", kind_name(v.kind)); break;
    }
    j->depth--;
    return !j->failed;
}
