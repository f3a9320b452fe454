/* Filters, tests, methods and global functions: each family is a table of names. Semantics are those of Python's values and
 * of Jinja's own pages (https://jinja.palletsprojects.com/en/stable/templates/#list-of-builtin-filters); `tojson` is plain
 * JSON without escapes for HTML, as chat templates expect. Values cannot be changed in place, except in a namespace. */

#include "jinja.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- arguments ---- */

static const struct value *find_arg(const struct args *a, size_t i, const char *name) {
    if (i < a->n) return a->items + i;
    for (size_t k = 0; k < a->n_named; k++) if (str_is(a->names[k], name)) return a->named + k;
    return NULL;
}

static struct value arg(const struct args *a, size_t i, const char *name, struct value otherwise) {
    const struct value *v = find_arg(a, i, name);
    return v ? *v : otherwise;
}

static struct str arg_str(struct jinja *j, const struct args *a, size_t i, const char *name, const char *otherwise) {
    const struct value v = arg(a, i, name, v_cstr(otherwise));
    if (v.kind != STRING) jinja_fail(j, "%s must be a string, not %s", name, kind_name(v.kind));
    return v.kind == STRING ? v.s : (struct str) { "", 0 };
}

static int64_t arg_int(struct jinja *j, const struct args *a, size_t i, const char *name, int64_t otherwise) {
    const struct value v = arg(a, i, name, v_int(otherwise));
    if (v.kind == NONE) return otherwise;
    if (v.kind != INT && v.kind != BOOL) jinja_fail(j, "%s must be an integer, not %s", name, kind_name(v.kind));
    return v.kind == INT ? v.i : v.kind == BOOL ? v.b : 0;
}

static struct value to_str(struct jinja *j, struct value v) {
    struct text t = { 0 };
    if (v.kind == STRING) return v;
    text_str(j, &t, v);
    return v_text(&t);
}

#define BUILTIN(name) static struct value name(struct jinja *j, struct value self, const struct args *a)
#define UNUSED_ARGS (void) a

/* ---- strings ---- */

static bool in_set(struct str set, const char *p, size_t n) {
    for (size_t i = 0; i + n <= set.n; i++) if (!memcmp(set.p + i, p, n)) return true;
    return false;
}

static bool white(const char *p, size_t n) {
    static const char *const wide[] = { "\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80" };
    if (n == 1) return *p == ' ' || (*p >= '\t' && *p <= '\r') || (*p >= 0x1c && *p <= 0x1f);
    for (size_t i = 0; i < sizeof wide/sizeof *wide; i++) if (strlen(wide[i]) == n && !memcmp(p, wide[i], n)) return true;
    return n == 3 && !memcmp(p, "\xe2\x80", 2) && (unsigned char) p[2] >= 0x80 && (unsigned char) p[2] <= 0x8a;
}

/* Strip code points of `set` (white space when NULL) from the left (1), the right (2) or both (3). */
static struct value strip(struct value v, const struct str *set, int sides) {
    struct str s = v.s;
    while ((sides & 1) && s.n) {
        const size_t n = utf8_offset(s.p, s.n, 1);
        if (set ? !in_set(*set, s.p, n) : !white(s.p, n)) break;
        s.p += n;
        s.n -= n;
    }
    while ((sides & 2) && s.n) {
        size_t n = 1;
        while (n < s.n && n < 4 && ((unsigned char) s.p[s.n - n] & 0xc0) == 0x80) n++;
        if (set ? !in_set(*set, s.p + s.n - n, n) : !white(s.p + s.n - n, n)) break;
        s.n -= n;
    }
    return v_str(s.p, s.n);
}

static struct value strip_args(struct jinja *j, struct value self, const struct args *a, int sides) {
    const struct value chars = arg(a, 0, "chars", v_none());
    if (chars.kind == NONE || chars.kind == UNDEFINED) return strip(self, NULL, sides);
    if (chars.kind != STRING) { jinja_fail(j, "characters to strip must be a string"); return self; }
    return strip(self, &chars.s, sides);
}

BUILTIN(m_strip)  { return strip_args(j, self, a, 3); }
BUILTIN(m_lstrip) { return strip_args(j, self, a, 1); }
BUILTIN(m_rstrip) { return strip_args(j, self, a, 2); }

/* First place of `what` in s from byte `from`; s.n + 1 when there is none. */
static size_t find_str(struct str s, struct str what, size_t from) {
    for (size_t i = from; i + what.n <= s.n; i++) if (!what.n || !memcmp(s.p + i, what.p, what.n)) return i;
    return s.n + 1;
}

static struct value replace(struct jinja *j, struct str s, struct str old, struct str new, int64_t count) {
    struct text t = { 0 };
    size_t at = 0;
    for (; count != 0 && jinja_step(j); count--) {
        const size_t i = find_str(s, old, at);
        if (i > s.n) break;
        if (!old.n) {                                   /* between all code points */
            const size_t n = utf8_offset(s.p + at, s.n - at, 1);
            text_add(j, &t, new.p, new.n);
            text_add(j, &t, s.p + at, n);
            at += n;
            if (n == 0) { at = s.n; break; }
            continue;
        }
        text_add(j, &t, s.p + at, i - at);
        text_add(j, &t, new.p, new.n);
        at = i + old.n;
    }
    text_add(j, &t, s.p + at, s.n - at);
    return v_text(&t);
}

BUILTIN(m_replace) { return replace(j, self.s, arg_str(j, a, 0, "old", ""), arg_str(j, a, 1, "new", ""), arg_int(j, a, 2, "count", -1)); }

static struct value split_white(struct jinja *j, struct str s, int64_t most) {
    struct value l = v_list(j, LIST, 0);
    size_t at = 0;
    while (jinja_step(j)) {
        size_t n = 0;
        while (at < s.n && white(s.p + at, n = utf8_offset(s.p + at, s.n - at, 1))) at += n;
        if (at >= s.n) break;
        size_t end = at;
        while (end < s.n && !white(s.p + end, n = utf8_offset(s.p + end, s.n - end, 1))) end += n;
        if (most-- == 0) { list_add(j, l.l, strip(v_str(s.p + at, s.n - at), NULL, 2)); break; }
        list_add(j, l.l, v_str(s.p + at, end - at));
        at = end;
    }
    return l;
}

static void reverse(struct list *l) {
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        const struct value v = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = v;
    }
}

static struct value split(struct jinja *j, struct value self, const struct args *a, bool from_right) {
    const struct value sep = arg(a, 0, "sep", v_none());
    int64_t most = arg_int(j, a, 1, "maxsplit", -1);
    struct str s = self.s;
    if (sep.kind == NONE) return split_white(j, s, most);
    if (sep.kind != STRING || !sep.s.n) { jinja_fail(j, "a separator must be a string that is not empty"); return self; }
    struct value l = v_list(j, LIST, 0);
    while (most-- != 0 && jinja_step(j)) {
        size_t i = find_str(s, sep.s, 0);
        if (i > s.n) break;
        if (from_right) for (size_t k = s.n - sep.s.n + 1; k-- > i; ) if (!memcmp(s.p + k, sep.s.p, sep.s.n)) { i = k; break; }
        const struct str left = { s.p, i }, right = { s.p + i + sep.s.n, s.n - i - sep.s.n };
        const struct str part = from_right ? right : left;
        list_add(j, l.l, v_str(part.p, part.n));
        s = from_right ? left : right;
    }
    list_add(j, l.l, v_str(s.p, s.n));
    if (from_right && !j->failed) reverse(l.l);
    return l;
}

BUILTIN(m_split)  { return split(j, self, a, false); }
BUILTIN(m_rsplit) { return split(j, self, a, true); }

BUILTIN(m_splitlines) {
    struct value l = v_list(j, LIST, 0);
    const bool keep = is_true(arg(a, 0, "keepends", v_bool(false)));
    for (size_t at = 0; at < self.s.n && jinja_step(j); ) {
        size_t end = at;
        while (end < self.s.n && self.s.p[end] != '\n' && self.s.p[end] != '\r') end++;
        size_t after = end < self.s.n ? end + 1 : end;
        if (after < self.s.n && self.s.p[end] == '\r' && self.s.p[after] == '\n') after++;
        list_add(j, l.l, v_str(self.s.p + at, (keep ? after : end) - at));
        at = after;
    }
    return l;
}

static bool edge(struct str s, struct str what, bool end) {
    return what.n <= s.n && (!what.n || !memcmp(end ? s.p + s.n - what.n : s.p, what.p, what.n));
}

static struct value edges(struct jinja *j, struct value self, const struct args *a, bool end) {
    const struct value what = arg(a, 0, "prefix", v_none());
    if (what.kind == STRING) return v_bool(edge(self.s, what.s, end));
    if (what.kind != TUPLE) { jinja_fail(j, "startswith and endswith take a string or a tuple"); return v_bool(false); }
    for (size_t i = 0; i < what.l->n; i++) if (what.l->items[i].kind == STRING && edge(self.s, what.l->items[i].s, end)) return v_bool(true);
    return v_bool(false);
}

BUILTIN(m_startswith) { return edges(j, self, a, false); }
BUILTIN(m_endswith)   { return edges(j, self, a, true); }

BUILTIN(m_removeprefix) {
    const struct str s = arg_str(j, a, 0, "prefix", "");
    return edge(self.s, s, false) ? v_str(self.s.p + s.n, self.s.n - s.n) : self;
}
BUILTIN(m_removesuffix) {
    const struct str s = arg_str(j, a, 0, "suffix", "");
    return edge(self.s, s, true) ? v_str(self.s.p, self.s.n - s.n) : self;
}

/* Case is changed in ASCII only. */
static struct value cased(struct jinja *j, struct value v, int (*first)(int), int (*rest)(int), bool words) {
    const struct value s = to_str(j, v);
    char *p = jinja_alloc(j, s.s.n + 1);
    bool start = true;
    for (size_t i = 0; p && i < s.s.n; i++) {
        const unsigned char c = (unsigned char) s.s.p[i];
        p[i] = c < 128 ? (char) (start ? first : rest)(c) : (char) c;
        start = words && c < 128 && !isalpha(c);
    }
    return p ? v_str(p, s.s.n) : s;
}

BUILTIN(m_upper)      { UNUSED_ARGS; return cased(j, self, toupper, toupper, false); }
BUILTIN(m_lower)      { UNUSED_ARGS; return cased(j, self, tolower, tolower, false); }
BUILTIN(m_capitalize) { UNUSED_ARGS; return cased(j, self, toupper, tolower, false); }
BUILTIN(m_title)      { UNUSED_ARGS; return cased(j, self, toupper, tolower, true); }

static struct value find_index(struct jinja *j, struct value self, const struct args *a, bool last) {
    const struct str what = arg_str(j, a, 0, "sub", "");
    size_t found = find_str(self.s, what, 0);
    for (size_t i = found; last && i <= self.s.n && jinja_step(j); i = find_str(self.s, what, i + 1)) found = i;
    return found > self.s.n ? v_int(-1) : v_int((int64_t) utf8_length(self.s.p, found));
}

BUILTIN(m_find)  { return find_index(j, self, a, false); }
BUILTIN(m_rfind) { return find_index(j, self, a, true); }
BUILTIN(m_index) {
    const struct value i = find_index(j, self, a, false);
    if (i.i < 0) jinja_fail(j, "substring not found");
    return i;
}

BUILTIN(m_count) {
    const struct str what = arg_str(j, a, 0, "sub", "");
    int64_t n = 0;
    if (!what.n) return v_int((int64_t) utf8_length(self.s.p, self.s.n) + 1);
    for (size_t i = find_str(self.s, what, 0); i <= self.s.n && jinja_step(j); i = find_str(self.s, what, i + what.n)) n++;
    return v_int(n);
}

BUILTIN(m_join) {
    const struct value l = value_list(j, arg(a, 0, "iterable", v_none()));
    struct text t = { 0 };
    for (size_t i = 0; !j->failed && i < l.l->n && jinja_step(j); i++) {
        if (l.l->items[i].kind != STRING) jinja_fail(j, "join takes strings, not %s", kind_name(l.l->items[i].kind));
        if (i) text_add(j, &t, self.s.p, self.s.n);
        text_str(j, &t, l.l->items[i]);
    }
    return v_text(&t);
}

static bool all_of(struct str s, int (*is)(int)) {
    for (size_t i = 0; i < s.n; i++) if ((unsigned char) s.p[i] >= 128 || !is((unsigned char) s.p[i])) return false;
    return s.n != 0;
}

BUILTIN(m_isdigit) { (void) j; UNUSED_ARGS; return v_bool(all_of(self.s, isdigit)); }
BUILTIN(m_isalpha) { (void) j; UNUSED_ARGS; return v_bool(all_of(self.s, isalpha)); }
BUILTIN(m_isalnum) { (void) j; UNUSED_ARGS; return v_bool(all_of(self.s, isalnum)); }
BUILTIN(m_isspace) { (void) j; UNUSED_ARGS; return v_bool(self.s.n && !strip(self, NULL, 1).s.n); }
BUILTIN(m_isupper) { UNUSED_ARGS; return v_bool(equal(j, self, cased(j, self, toupper, toupper, false)) && !equal(j, self, cased(j, self, tolower, tolower, false))); }
BUILTIN(m_islower) { UNUSED_ARGS; return v_bool(equal(j, self, cased(j, self, tolower, tolower, false)) && !equal(j, self, cased(j, self, toupper, toupper, false))); }

/* "{} {0} {name}".format(...) without format specifications */
BUILTIN(m_format) {
    struct text t = { 0 };
    size_t automatic = 0;
    for (size_t i = 0; i < self.s.n && jinja_step(j); i++) {
        const char c = self.s.p[i];
        if ((c == '{' || c == '}') && i + 1 < self.s.n && self.s.p[i + 1] == c) { text_add(j, &t, &c, 1); i++; continue; }
        if (c != '{') { text_add(j, &t, &c, 1); continue; }
        const size_t close = find_str(self.s, (struct str) { "}", 1 }, i);
        if (close > self.s.n) { jinja_fail(j, "a '{' of a format is not closed"); break; }
        const struct str field = { self.s.p + i + 1, close - i - 1 };
        const struct value *v = NULL;
        if (!field.n) v = find_arg(a, automatic++, "");
        else if (all_of(field, isdigit) && field.n < 4) v = find_arg(a, (size_t) strtol(field.p, NULL, 10), "");
        else for (size_t k = 0; k < a->n_named; k++) if (a->names[k].n == field.n && !memcmp(a->names[k].p, field.p, field.n)) v = a->named + k;
        if (!v) { jinja_fail(j, "a format names '%.*s', which is not given", (int) (field.n < 40 ? field.n : 40), field.p); break; }
        text_str(j, &t, *v);
        i = close;
    }
    return v_text(&t);
}

/* ---- dicts, loops ---- */

BUILTIN(m_items) {
    struct value l = v_list(j, LIST, 0);
    UNUSED_ARGS;
    for (size_t i = 0; i < self.d->n && jinja_step(j); i++) {
        struct value pair = v_list(j, TUPLE, 2);
        if (j->failed) break;
        list_add(j, pair.l, self.d->keys[i]);
        list_add(j, pair.l, self.d->values[i]);
        list_add(j, l.l, pair);
    }
    return l;
}

BUILTIN(m_keys) { UNUSED_ARGS; return value_list(j, self); }
BUILTIN(m_values) {
    struct value l = v_list(j, LIST, 0);
    UNUSED_ARGS;
    for (size_t i = 0; i < self.d->n && !j->failed; i++) list_add(j, l.l, self.d->values[i]);
    return l;
}
BUILTIN(m_get) {
    const struct value *v = dict_get(j, self.d, arg(a, 0, "key", v_none()));
    return v ? *v : arg(a, 1, "default", v_none());
}

BUILTIN(m_list_index) {
    for (size_t i = 0; i < self.l->n && !j->failed; i++) if (equal(j, self.l->items[i], arg(a, 0, "value", v_none()))) return v_int((int64_t) i);
    jinja_fail(j, "a value is not in the list");
    return v_none();
}
BUILTIN(m_list_count) {
    int64_t n = 0;
    for (size_t i = 0; i < self.l->n && !j->failed; i++) n += equal(j, self.l->items[i], arg(a, 0, "value", v_none()));
    return v_int(n);
}

BUILTIN(m_cycle) {
    if (!a->n) { jinja_fail(j, "cycle takes at least one value"); return v_none(); }
    return a->items[self.i % (int64_t) a->n];
}
BUILTIN(m_changed) {                                    /* self holds what was given last time */
    struct value now = v_list(j, LIST, a->n);
    for (size_t i = 0; i < a->n; i++) list_add(j, now.l, a->items[i]);
    if (j->failed) return v_none();
    const bool same = self.l->n && equal(j, self.l->items[0], now);
    self.l->n = 0;
    list_add(j, self.l, now);
    return v_bool(!same);
}

static const struct { enum kind kind; const char *name; builtin run; } methods[] = {
    { STRING, "strip", m_strip }, { STRING, "lstrip", m_lstrip }, { STRING, "rstrip", m_rstrip }, { STRING, "replace", m_replace },
    { STRING, "split", m_split }, { STRING, "rsplit", m_rsplit }, { STRING, "splitlines", m_splitlines },
    { STRING, "startswith", m_startswith }, { STRING, "endswith", m_endswith }, { STRING, "removeprefix", m_removeprefix },
    { STRING, "removesuffix", m_removesuffix }, { STRING, "upper", m_upper }, { STRING, "lower", m_lower },
    { STRING, "capitalize", m_capitalize }, { STRING, "title", m_title }, { STRING, "find", m_find }, { STRING, "rfind", m_rfind },
    { STRING, "index", m_index }, { STRING, "count", m_count }, { STRING, "join", m_join }, { STRING, "format", m_format },
    { STRING, "isdigit", m_isdigit }, { STRING, "isnumeric", m_isdigit }, { STRING, "isalpha", m_isalpha }, { STRING, "isalnum", m_isalnum },
    { STRING, "isspace", m_isspace }, { STRING, "isupper", m_isupper }, { STRING, "islower", m_islower },
    { DICT, "items", m_items }, { DICT, "keys", m_keys }, { DICT, "values", m_values }, { DICT, "get", m_get },
    { LIST, "index", m_list_index }, { LIST, "count", m_list_count }, { TUPLE, "index", m_list_index }, { TUPLE, "count", m_list_count },
    { FUNCTION, "cycle", m_cycle }, { FUNCTION, "changed", m_changed },
};

builtin method_find(enum kind kind, struct str name) {
    for (size_t i = 0; i < sizeof methods/sizeof *methods; i++) if (methods[i].kind == kind && str_is(name, methods[i].name)) return methods[i].run;
    return NULL;
}

/* ---- filters over strings and numbers ---- */

/* The filter `title` begins words after white space, hyphens and opening brackets only; the method after any non-letter. */
BUILTIN(f_title) {
    const struct value s = cased(j, self, tolower, tolower, false);
    char *p = (char *) s.s.p;
    bool start = true;
    UNUSED_ARGS;
    for (size_t i = 0; !j->failed && i < s.s.n; i++) {
        const unsigned char c = (unsigned char) p[i];
        if (start && c < 128) p[i] = (char) toupper(c);
        start = c < 128 && (isspace(c) || strchr("-({[<", c));
    }
    return s;
}

BUILTIN(f_string) { UNUSED_ARGS; return to_str(j, self); }
BUILTIN(f_trim)   { return strip_args(j, to_str(j, self), a, 3); }

BUILTIN(f_length) {
    UNUSED_ARGS;
    switch (self.kind) {
        case UNDEFINED: return v_int(0);
        case STRING: return v_int((int64_t) utf8_length(self.s.p, self.s.n));
        case LIST: case TUPLE: return v_int((int64_t) self.l->n);
        case DICT: return v_int((int64_t) self.d->n);
        default: jinja_fail(j, "%s has no length", kind_name(self.kind)); return v_int(0);
    }
}

BUILTIN(f_default) {
    const bool also_false = is_true(arg(a, 1, "boolean", v_bool(false)));
    (void) j;
    return self.kind == UNDEFINED || (also_false && !is_true(self)) ? arg(a, 0, "default_value", v_cstr("")) : self;
}

BUILTIN(f_replace) {
    const struct value s = to_str(j, self), old = to_str(j, arg(a, 0, "old", v_cstr(""))), new = to_str(j, arg(a, 1, "new", v_cstr("")));
    return replace(j, s.s, old.s, new.s, arg_int(j, a, 2, "count", -1));
}

BUILTIN(f_abs) {
    UNUSED_ARGS;
    if (!is_number(self) || (self.kind == INT && self.i == INT64_MIN)) { jinja_fail(j, "abs takes a number, not %s", kind_name(self.kind)); return self; }
    return self.kind == FLOAT ? v_float(fabs(self.f)) : v_int(self.kind == BOOL ? self.b : self.i < 0 ? -self.i : self.i);
}

/* A string as a number; false when it is none. */
static bool parse_number(struct jinja *j, struct value v, double *f) {
    const struct str s = strip(v, NULL, 3).s;
    char *p = jinja_alloc(j, s.n + 1), *end;
    if (!p || !s.n) return false;
    memcpy(p, s.p, s.n);
    *f = strtod(p, &end);
    return end == p + s.n;
}

BUILTIN(f_int) {
    double f = self.kind == STRING ? NAN : is_number(self) ? as_float(self) : NAN;
    if (self.kind == INT) return self;
    if (self.kind == STRING && !parse_number(j, self, &f)) f = NAN;
    return f > -0x1p63 && f < 0x1p63 ? v_int((int64_t) f) : arg(a, 0, "default", v_int(0));
}

BUILTIN(f_float) {
    double f;
    if (is_number(self)) return v_float(as_float(self));
    return self.kind == STRING && parse_number(j, self, &f) ? v_float(f) : arg(a, 0, "default", v_float(0));
}

BUILTIN(f_round) {
    const int64_t places = arg_int(j, a, 0, "precision", 0);
    const struct str method = arg_str(j, a, 1, "method", "common");
    if (!is_number(self)) { jinja_fail(j, "round takes a number, not %s", kind_name(self.kind)); return self; }
    const double scale = pow(10, (double) (places < -300 ? -300 : places > 300 ? 300 : places)), x = as_float(self)*scale;
    const double r = str_is(method, "ceil") ? ceil(x) : str_is(method, "floor") ? floor(x) : nearbyint(x);
    return v_float(isfinite(r/scale) ? r/scale : as_float(self));
}

BUILTIN(f_indent) {
    const struct value width = arg(a, 0, "width", v_int(4)), s = to_str(j, self);
    const bool first = is_true(arg(a, 1, "first", v_bool(false))), blank = is_true(arg(a, 2, "blank", v_bool(false)));
    struct text by = { 0 }, t = { 0 };
    if (width.kind == STRING) by = (struct text) { .p = (char *) width.s.p, .n = width.s.n };
    else for (int64_t i = 0; width.kind == INT && i < width.i && jinja_step(j); i++) text_add(j, &by, " ", 1);
    for (size_t at = 0; at <= s.s.n && jinja_step(j); ) {
        size_t end = find_str(s.s, (struct str) { "\n", 1 }, at);
        if (end > s.s.n) end = s.s.n;
        if (at == 0 ? first : blank || end > at) text_add(j, &t, by.p, by.n);
        text_add(j, &t, s.s.p + at, end - at + (end < s.s.n));
        at = end + 1;
    }
    return v_text(&t);
}

static const char *escaped(char c) {
    switch (c) {
        case '&': return "&amp;";
        case '<': return "&lt;";
        case '>': return "&gt;";
        case '"': return "&#34;";
        case '\'': return "&#39;";
        default: return NULL;
    }
}

BUILTIN(f_escape) {
    const struct value s = to_str(j, self);
    struct text t = { 0 };
    UNUSED_ARGS;
    for (size_t i = 0; i < s.s.n && !j->failed; i++) {
        const char *e = escaped(s.s.p[i]);
        text_add(j, &t, e ? e : s.s.p + i, e ? strlen(e) : 1);
    }
    return v_text(&t);
}

/* printf formatting with %s %d %i %f %x %%, flags and widths up to 99 */
BUILTIN(f_format) {
    struct text t = { 0 };
    size_t used = 0;
    if (self.kind != STRING) { jinja_fail(j, "format takes a string, not %s", kind_name(self.kind)); return self; }
    for (size_t i = 0; i < self.s.n && jinja_step(j); i++) {
        if (self.s.p[i] != '%') { text_add(j, &t, self.s.p + i, 1); continue; }
        char spec[16] = "%", buf[512];
        size_t n = 1;
        while (++i < self.s.n && n < 8 && strchr("0123456789.-+ #", self.s.p[i])) spec[n++] = self.s.p[i];
        const char type = i < self.s.n ? self.s.p[i] : 0;
        if (type == '%') { text_add(j, &t, "%", 1); continue; }
        if (n > 1 && (strspn(spec + 1, "0123456789.-+ #") > 6 || atoi(spec + 1) > 99)) { jinja_fail(j, "a width of a format is too large"); break; }
        if (used >= a->n) { jinja_fail(j, "a format wants more than %zu values", a->n); break; }
        const struct value v = a->items[used++];
        if (type == 's' && n == 1) { text_str(j, &t, v); continue; }
        if (type == 'd' || type == 'i' || type == 'x') {
            if (!is_number(v)) { jinja_fail(j, "a format wants a number"); break; }
            strcpy(spec + n, type == 'x' ? "llx" : "lld");
            text_add(j, &t, buf, (size_t) snprintf(buf, sizeof buf, spec, v.kind == INT ? (long long) v.i : (long long) as_float(v)));
        } else if (type == 'f' || type == 'g' || type == 'e') {
            if (!is_number(v)) { jinja_fail(j, "a format wants a number"); break; }
            spec[n] = type;
            text_add(j, &t, buf, (size_t) snprintf(buf, sizeof buf, spec, as_float(v)));
        } else if (type == 's') {
            const struct value s = to_str(j, v);
            const size_t width = (size_t) labs(strtol(spec + 1, NULL, 10)), have = utf8_length(s.s.p, s.s.n);
            if (spec[1] != '-') for (size_t k = have; k < width; k++) text_add(j, &t, " ", 1);
            text_str(j, &t, s);
            if (spec[1] == '-') for (size_t k = have; k < width; k++) text_add(j, &t, " ", 1);
        } else {
            jinja_fail(j, "a format uses '%%%c'", type ? type : ' ');
        }
    }
    return v_text(&t);
}

BUILTIN(f_tojson) {
    const struct value indent = arg(a, 0, "indent", v_none());
    const bool ascii = is_true(arg(a, 1, "ensure_ascii", v_bool(false)));
    struct text t = { 0 };
    text_json(j, &t, self, indent.kind == INT && indent.i >= 0 ? (int) (indent.i < 32 ? indent.i : 32) : -1, 0, ascii);
    return v_text(&t);
}

BUILTIN(f_truncate) {
    const struct value s = to_str(j, self);
    const int64_t length = arg_int(j, a, 0, "length", 255), leeway = arg_int(j, a, 3, "leeway", 5);
    const bool killwords = is_true(arg(a, 1, "killwords", v_bool(false)));
    const struct str end = arg_str(j, a, 2, "end", "...");
    const int64_t have = (int64_t) utf8_length(s.s.p, s.s.n), room = length - (int64_t) utf8_length(end.p, end.n);
    if (length < 0 || room < 0 || have <= length || have - length <= leeway) return s;
    size_t cut = utf8_offset(s.s.p, s.s.n, (size_t) room);
    if (!killwords) { size_t k = cut; while (k > 0 && s.s.p[k - 1] != ' ') k--; if (k > 0) cut = k - 1; }
    struct text t = { 0 };
    text_add(j, &t, s.s.p, cut);
    text_add(j, &t, end.p, end.n);
    return v_text(&t);
}

BUILTIN(f_wordcount) { UNUSED_ARGS; return v_int((int64_t) split_white(j, to_str(j, self).s, -1).l->n); }
BUILTIN(f_self)      { (void) j; UNUSED_ARGS; return self; }

/* ---- filters over sequences ---- */

static struct list *items_of(struct jinja *j, struct value v) {
    static struct list none;
    const struct value l = value_list(j, v);
    return j->failed || l.kind != LIST ? &none : l.l;
}

BUILTIN(f_list)  {
    struct value l = v_list(j, LIST, 0);
    const struct list *of = items_of(j, self);
    UNUSED_ARGS;
    for (size_t i = 0; i < of->n && !j->failed; i++) list_add(j, l.l, of->items[i]);
    return l;
}
BUILTIN(f_first) { const struct list *l = items_of(j, self); UNUSED_ARGS; return l->n ? l->items[0] : v_undefined("first", 5); }
BUILTIN(f_last)  { const struct list *l = items_of(j, self); UNUSED_ARGS; return l->n ? l->items[l->n - 1] : v_undefined("last", 4); }

BUILTIN(f_reverse) {
    struct value l = f_list(j, self, a);
    if (j->failed) return l;
    reverse(l.l);
    if (self.kind != STRING) return l;
    struct text t = { 0 };
    for (size_t i = 0; i < l.l->n; i++) text_str(j, &t, l.l->items[i]);
    return v_text(&t);
}

/* v.a.b, or v itself without a path; integers in the path are indices */
static struct value by_path(struct jinja *j, struct value v, struct value path) {
    if (path.kind == INT) return value_item(j, v, path);
    if (path.kind != STRING) return v;
    struct str s = path.s;
    while (!j->failed) {
        const size_t dot = find_str(s, (struct str) { ".", 1 }, 0);
        const struct str part = { s.p, dot > s.n ? s.n : dot };
        if (all_of(part, isdigit) && part.n < 10) v = value_item(j, v, v_int(strtol(part.p, NULL, 10)));
        else v = v.kind == DICT || v.kind == NAMESPACE ? value_item(j, v, v_str(part.p, part.n)) : value_attr(j, v, part);
        if (dot > s.n) break;
        s = (struct str) { s.p + dot + 1, s.n - dot - 1 };
    }
    return v;
}

BUILTIN(f_join) {
    const struct list *l = items_of(j, self);
    const struct value d = to_str(j, arg(a, 0, "d", v_cstr(""))), path = arg(a, 1, "attribute", v_none());
    struct text t = { 0 };
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        if (i) text_str(j, &t, d);
        text_str(j, &t, by_path(j, l->items[i], path));
    }
    return v_text(&t);
}

static struct value folded(struct jinja *j, struct value v, bool sensitive) {
    return sensitive || v.kind != STRING ? v : cased(j, v, tolower, tolower, false);
}

/* A stable merge sort by the path of each item. */
static void sort_items(struct jinja *j, struct value *x, struct value *spare, size_t n, struct value path, bool down, bool sensitive) {
    if (n < 2 || !jinja_step(j)) return;
    const size_t half = n/2;
    sort_items(j, x, spare, half, path, down, sensitive);
    sort_items(j, x + half, spare, n - half, path, down, sensitive);
    size_t l = 0, r = half;
    for (size_t k = 0; k < n && !j->failed; k++) {
        bool right = l == half;
        if (l < half && r < n) {
            const int c = compare(j, folded(j, by_path(j, x[r], path), sensitive), folded(j, by_path(j, x[l], path), sensitive));
            right = down ? c > 0 : c < 0;
        }
        spare[k] = right ? x[r++] : x[l++];
    }
    if (!j->failed) memcpy(x, spare, n*sizeof *x);
}

static struct value sorted(struct jinja *j, struct value v, struct value path, bool down, bool sensitive) {
    struct value l = f_list(j, v, NULL);
    struct value *spare = j->failed ? NULL : jinja_alloc(j, (l.l->n + 1)*sizeof *spare);
    if (spare) sort_items(j, l.l->items, spare, l.l->n, path, down, sensitive);
    return l;
}

BUILTIN(f_sort) {
    return sorted(j, self, arg(a, 2, "attribute", v_none()), is_true(arg(a, 0, "reverse", v_bool(false))), is_true(arg(a, 1, "case_sensitive", v_bool(false))));
}

BUILTIN(f_dictsort) {
    const bool sensitive = is_true(arg(a, 0, "case_sensitive", v_bool(false))), down = is_true(arg(a, 2, "reverse", v_bool(false)));
    const struct str by = arg_str(j, a, 1, "by", "key");
    if (self.kind != DICT) { jinja_fail(j, "dictsort takes a dict, not %s", kind_name(self.kind)); return self; }
    return sorted(j, m_items(j, self, a), v_int(str_is(by, "value")), down, sensitive);
}

BUILTIN(f_unique) {
    const struct list *l = items_of(j, self);
    struct value r = v_list(j, LIST, 0);
    const bool sensitive = is_true(arg(a, 0, "case_sensitive", v_bool(false)));
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        bool seen = false;
        for (size_t k = 0; k < r.l->n && !seen && !j->failed; k++) seen = equal(j, folded(j, r.l->items[k], sensitive), folded(j, l->items[i], sensitive));
        if (!seen) list_add(j, r.l, l->items[i]);
    }
    return r;
}

static struct value extreme(struct jinja *j, struct value self, const struct args *a, int sign) {
    const struct list *l = items_of(j, self);
    const struct value path = arg(a, 1, "attribute", v_none());
    const bool sensitive = is_true(arg(a, 0, "case_sensitive", v_bool(false)));
    size_t best = 0;
    for (size_t i = 1; i < l->n && !j->failed; i++) {
        if (sign*compare(j, folded(j, by_path(j, l->items[i], path), sensitive), folded(j, by_path(j, l->items[best], path), sensitive)) > 0) best = i;
    }
    return l->n ? l->items[best] : v_undefined("max", 3);
}

BUILTIN(f_max) { return extreme(j, self, a, 1); }
BUILTIN(f_min) { return extreme(j, self, a, -1); }

BUILTIN(f_sum) {
    const struct list *l = items_of(j, self);
    const struct value path = arg(a, 0, "attribute", v_none());
    struct value r = arg(a, 1, "start", v_int(0));
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        const struct value v = by_path(j, l->items[i], path);
        if (!is_number(v) || !is_number(r)) { jinja_fail(j, "sum takes numbers, not %s", kind_name(v.kind)); break; }
        const double f = as_float(r) + as_float(v);
        r = r.kind == FLOAT || v.kind == FLOAT || fabs(f) >= 0x1p53 ? v_float(f) : v_int((int64_t) f);
    }
    return r;
}

BUILTIN(f_map) {
    const struct list *l = items_of(j, self);
    struct value r = v_list(j, LIST, 0);
    const struct value *path = a->n ? NULL : find_arg(a, 1, "attribute");
    const struct value *otherwise = find_arg(a, SIZE_MAX, "default");
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        if (path) {
            const struct value v = by_path(j, l->items[i], *path);
            list_add(j, r.l, v.kind == UNDEFINED && otherwise ? *otherwise : v);
            continue;
        }
        if (!a->n || a->items[0].kind != STRING) { jinja_fail(j, "map takes a filter's name or an attribute"); break; }
        const struct args rest = { a->items + 1, a->n - 1, a->names, a->named, a->n_named };
        list_add(j, r.l, filter_call(j, a->items[0].s, l->items[i], &rest));
    }
    return r;
}

/* select, reject and their attr forms: the test named by the first argument, truth without one */
static struct value chosen(struct jinja *j, struct value self, const struct args *a, bool by_attribute, bool wanted) {
    const struct list *l = items_of(j, self);
    struct value r = v_list(j, LIST, 0);
    const size_t at = by_attribute;
    if (a->n < at) { jinja_fail(j, "the attribute to select by is missing"); return r; }
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        const struct value v = by_attribute ? by_path(j, l->items[i], a->items[0]) : l->items[i];
        bool holds = is_true(v);
        if (a->n > at) {
            const struct args rest = { a->items + at + 1, a->n - at - 1, a->names, a->named, a->n_named };
            if (a->items[at].kind != STRING) { jinja_fail(j, "a test is named by a string"); break; }
            holds = test_call(j, a->items[at].s, v, &rest);
        }
        if (holds == wanted) list_add(j, r.l, l->items[i]);
    }
    return r;
}

BUILTIN(f_select)     { return chosen(j, self, a, false, true); }
BUILTIN(f_reject)     { return chosen(j, self, a, false, false); }
BUILTIN(f_selectattr) { return chosen(j, self, a, true, true); }
BUILTIN(f_rejectattr) { return chosen(j, self, a, true, false); }

BUILTIN(f_batch) {
    const struct list *l = items_of(j, self);
    const int64_t size = arg_int(j, a, 0, "linecount", 1);
    const struct value fill = arg(a, 1, "fill_with", v_none());
    struct value r = v_list(j, LIST, 0), row = v_list(j, LIST, 0);
    if (size < 1 || j->failed) { jinja_fail(j, "batch takes a number above 0"); return r; }
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        if (i && i % (size_t) size == 0) { list_add(j, r.l, row); row = v_list(j, LIST, 0); if (j->failed) break; }
        list_add(j, row.l, l->items[i]);
    }
    if (j->failed) return r;
    while (fill.kind != NONE && row.l->n && row.l->n < (size_t) size && jinja_step(j)) list_add(j, row.l, fill);
    if (row.l->n) list_add(j, r.l, row);
    return r;
}

BUILTIN(f_items) {
    if (self.kind == UNDEFINED) return v_list(j, LIST, 0);
    if (self.kind != DICT) { jinja_fail(j, "items takes a dict, not %s", kind_name(self.kind)); return self; }
    return m_items(j, self, a);
}

BUILTIN(f_attr) { return value_attr(j, self, arg_str(j, a, 0, "name", "")); }

BUILTIN(f_groupby) {
    const struct value path = arg(a, 0, "attribute", v_none());
    const struct value l = sorted(j, self, path, false, true);
    struct value r = v_list(j, LIST, 0), group = v_none(), last = v_none();
    for (size_t i = 0; !j->failed && i < l.l->n; i++) {
        const struct value key = by_path(j, l.l->items[i], path);
        if (!i || !equal(j, key, last)) {
            struct value pair = v_list(j, TUPLE, 2);
            group = v_list(j, LIST, 0);
            if (j->failed) break;
            list_add(j, pair.l, key);
            list_add(j, pair.l, group);
            list_add(j, r.l, pair);
        }
        list_add(j, group.l, l.l->items[i]);
        last = key;
    }
    return r;
}

static const struct { const char *name; builtin run; } filters[] = {
    { "abs", f_abs }, { "attr", f_attr }, { "batch", f_batch }, { "capitalize", m_capitalize }, { "count", f_length }, { "d", f_default },
    { "default", f_default }, { "dictsort", f_dictsort }, { "e", f_escape }, { "escape", f_escape }, { "first", f_first },
    { "float", f_float }, { "forceescape", f_escape }, { "format", f_format }, { "groupby", f_groupby }, { "indent", f_indent },
    { "int", f_int }, { "items", f_items }, { "join", f_join }, { "last", f_last }, { "length", f_length }, { "list", f_list },
    { "lower", m_lower }, { "map", f_map }, { "max", f_max }, { "min", f_min }, { "reject", f_reject }, { "rejectattr", f_rejectattr },
    { "replace", f_replace }, { "reverse", f_reverse }, { "round", f_round }, { "safe", f_self }, { "select", f_select },
    { "selectattr", f_selectattr }, { "sort", f_sort }, { "string", f_string }, { "sum", f_sum }, { "title", f_title },
    { "tojson", f_tojson }, { "trim", f_trim }, { "truncate", f_truncate }, { "unique", f_unique }, { "upper", m_upper },
    { "wordcount", f_wordcount },
};

builtin filter_find(struct str name) {
    for (size_t i = 0; i < sizeof filters/sizeof *filters; i++) if (str_is(name, filters[i].name)) return filters[i].run;
    return NULL;
}

struct value filter_call(struct jinja *j, struct str name, struct value v, const struct args *a) {
    const builtin f = filter_find(name);
    if (!jinja_step(j)) return v;
    if (!f) { jinja_fail(j, "no such filter: '%.*s'", (int) (name.n < 40 ? name.n : 40), name.p); return v; }
    return f(j, v, a);
}

/* ---- tests ---- */

static bool kind_in(struct value v, const char *name) {
    static const struct { const char *name; unsigned kinds; } rows[] = {
        { "undefined", 1 << UNDEFINED }, { "none", 1 << NONE }, { "boolean", 1 << BOOL }, { "integer", 1 << INT }, { "float", 1 << FLOAT },
        { "number", 1 << INT | 1 << FLOAT | 1 << BOOL }, { "string", 1 << STRING }, { "mapping", 1 << DICT },
        { "sequence", 1 << STRING | 1 << LIST | 1 << TUPLE | 1 << DICT }, { "iterable", 1 << STRING | 1 << LIST | 1 << TUPLE | 1 << DICT | 1 << UNDEFINED },
        { "callable", 1 << FUNCTION },
    };
    for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) if (!strcmp(rows[i].name, name)) return rows[i].kinds >> v.kind & 1;
    return false;
}

static bool is_kind_test(struct str name, char buf[16]) {
    static const char *const names[] = { "undefined", "none", "boolean", "integer", "float", "number", "string", "mapping", "sequence", "iterable", "callable" };
    for (size_t i = 0; i < sizeof names/sizeof *names; i++) if (str_is(name, names[i])) { strcpy(buf, names[i]); return true; }
    return false;
}

enum order_test { EQ, NE, LT, LE, GT, GE };
static const struct { const char *name; enum order_test test; } orders[] = {
    { "eq", EQ }, { "equalto", EQ }, { "==", EQ }, { "ne", NE }, { "!=", NE }, { "lt", LT }, { "lessthan", LT }, { "<", LT },
    { "le", LE }, { "<=", LE }, { "gt", GT }, { "greaterthan", GT }, { ">", GT }, { "ge", GE }, { ">=", GE },
};

static bool order_holds(struct jinja *j, enum order_test test, struct value a, struct value b) {
    if (test == EQ) return equal(j, a, b);
    if (test == NE) return !equal(j, a, b);
    const int c = compare(j, a, b);
    return test == LT ? c < 0 : test == LE ? c <= 0 : test == GT ? c > 0 : c >= 0;
}

static bool is_integer(struct value v) { return v.kind == INT || v.kind == BOOL; }

bool test_call(struct jinja *j, struct str name, struct value v, const struct args *a) {
    char kind[16];
    const struct value b = arg(a, 0, "", v_none());
    const int64_t i = v.kind == BOOL ? v.b : v.kind == INT ? v.i : 0;
    if (str_is(name, "defined")) return v.kind != UNDEFINED;
    if (is_kind_test(name, kind)) return kind_in(v, kind);
    if (str_is(name, "true"))    return v.kind == BOOL && v.b;
    if (str_is(name, "false"))   return v.kind == BOOL && !v.b;
    if (str_is(name, "odd"))     return is_integer(v) && i % 2 != 0;
    if (str_is(name, "even"))    return is_integer(v) && i % 2 == 0;
    if (str_is(name, "divisibleby")) return is_integer(v) && b.kind == INT && b.i != 0 && b.i != -1 ? i % b.i == 0 : b.kind == INT && b.i == -1;
    if (str_is(name, "sameas"))  return v.kind == b.kind && equal(j, v, b);
    if (str_is(name, "upper"))   return v.kind == STRING && m_isupper(j, v, a).b;
    if (str_is(name, "lower"))   return v.kind == STRING && m_islower(j, v, a).b;
    if (str_is(name, "filter"))  return v.kind == STRING && filter_find(v.s);
    if (str_is(name, "in")) {
        if (b.kind == STRING) return v.kind == STRING && find_str(b.s, v.s, 0) <= b.s.n;
        if (b.kind == DICT) return dict_get(j, b.d, v) != NULL;
        const struct list *l = items_of(j, b);
        for (size_t k = 0; k < l->n && !j->failed; k++) if (equal(j, l->items[k], v)) return true;
        return false;
    }
    for (size_t k = 0; k < sizeof orders/sizeof *orders; k++) if (str_is(name, orders[k].name)) return order_holds(j, orders[k].test, v, b);
    jinja_fail(j, "no such test: '%.*s'", (int) (name.n < 40 ? name.n : 40), name.p);
    return false;
}

/* ---- global functions ---- */

BUILTIN(g_range) {
    int64_t from = 0, to, step = arg_int(j, a, 2, "step", 1);
    (void) self;
    struct value l = v_list(j, LIST, 0);
    if (!a->n || a->n > 3) { jinja_fail(j, "range takes one to three integers"); return l; }
    if (a->n == 1) to = arg_int(j, a, 0, "stop", 0);
    else { from = arg_int(j, a, 0, "start", 0); to = arg_int(j, a, 1, "stop", 0); }
    if (step == 0) { jinja_fail(j, "the step of a range cannot be 0"); return l; }
    const double count = ((double) to - (double) from)/(double) step;
    if (count > 100000) { jinja_fail(j, "a range of more than 100000"); return l; }     /* the sandbox's own bound */
    for (int64_t i = from; jinja_step(j) && (step > 0 ? i < to : i > to); i += step) {
        list_add(j, l.l, v_int(i));
        if (step > 0 ? i > INT64_MAX - step : i < INT64_MIN - step) break;
    }
    return l;
}

static struct value dict_of(struct jinja *j, const struct args *a, enum kind kind) {
    struct value d = v_dict(j, kind);
    if (j->failed) return d;
    for (size_t i = 0; a->n && a->items[0].kind == DICT && i < a->items[0].d->n; i++) dict_set(j, d.d, a->items[0].d->keys[i], a->items[0].d->values[i]);
    for (size_t i = 0; i < a->n_named; i++) dict_set(j, d.d, v_str(a->names[i].p, a->names[i].n), a->named[i]);
    return d;
}

BUILTIN(g_dict)      { (void) self; return dict_of(j, a, DICT); }
BUILTIN(g_namespace) { (void) self; return dict_of(j, a, NAMESPACE); }

BUILTIN(g_raise) {
    const struct value s = to_str(j, arg(a, 0, "message", v_cstr("")));
    (void) self;
    jinja_fail(j, "%.*s", (int) (s.s.n < 200 ? s.s.n : 200), s.s.p);
    return v_none();
}

BUILTIN(g_strftime_now) {
    const struct str format = arg_str(j, a, 0, "format", "");
    const time_t now = (time_t) j->now;
    struct tm t;
    char f[128], *buf = jinja_alloc(j, 1024);
    (void) self;
    if (!buf || format.n >= sizeof f || !gmtime_r(&now, &t)) { jinja_fail(j, "strftime_now cannot write that"); return v_cstr(""); }
    memcpy(f, format.p, format.n);
    f[format.n] = 0;
    return v_str(buf, strftime(buf, 1024, f, &t));
}

void globals_add(struct jinja *j) {
    static const struct { const char *name; builtin run; } functions[] = {
        { "range", g_range }, { "dict", g_dict }, { "namespace", g_namespace }, { "raise_exception", g_raise }, { "strftime_now", g_strftime_now },
    };
    for (size_t i = 0; i < sizeof functions/sizeof *functions; i++) {
        struct func *fn = jinja_alloc(j, sizeof *fn);
        if (!fn) return;
        *fn = (struct func) { .name = { functions[i].name, strlen(functions[i].name) }, .run = functions[i].run };
        dict_set(j, &j->globals->vars, v_cstr(functions[i].name), (struct value) { .kind = FUNCTION, .fn = fn });
    }
}
