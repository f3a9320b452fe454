/* Arguments of calls, and the methods of strings, lists, dicts and loops in a table. Semantics are those of Python's values. The
 * filters (jinja_builtin.c) that do the same use what is here. */

#include "jinja.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- arguments ---- */

const struct value *arg_find(const struct args *a, size_t i, const char *name) {
    if (i < a->n) return a->items + i;
    for (size_t k = 0; k < a->n_named; k++) if (str_is(a->names[k], name)) return a->named + k;
    return NULL;
}

struct value arg_or(const struct args *a, size_t i, const char *name, struct value otherwise) {
    const struct value *v = arg_find(a, i, name);
    return v ? *v : otherwise;
}

struct str arg_str(struct jinja *j, const struct args *a, size_t i, const char *name, const char *otherwise) {
    const struct value v = arg_or(a, i, name, v_cstr(otherwise));
    if (v.kind != STRING) jinja_fail(j, "%s must be a string, not %s", name, kind_name(v.kind));
    return v.kind == STRING ? v.s : (struct str) { "", 0 };
}

int64_t arg_int(struct jinja *j, const struct args *a, size_t i, const char *name, int64_t otherwise) {
    const struct value v = arg_or(a, i, name, v_int(otherwise));
    if (v.kind == NONE) return otherwise;
    if (v.kind != INT && v.kind != BOOL) jinja_fail(j, "%s must be an integer, not %s", name, kind_name(v.kind));
    return v.kind == INT ? v.i : v.kind == BOOL ? v.b : 0;
}

struct value value_str(struct jinja *j, struct value v) {
    struct text t = { 0 };
    if (v.kind == STRING) return v;
    text_str(j, &t, v);
    return v_text(&t);
}

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
struct value str_strip(struct value v, const struct str *set, int sides) {
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
    const struct value chars = arg_or(a, 0, "chars", v_none());
    if (chars.kind == NONE || chars.kind == UNDEFINED) return str_strip(self, NULL, sides);
    if (chars.kind != STRING) { jinja_fail(j, "characters to strip must be a string"); return self; }
    return str_strip(self, &chars.s, sides);
}

BUILTIN(method_strip)  { return strip_args(j, self, a, 3); }
static BUILTIN(m_lstrip) { return strip_args(j, self, a, 1); }
static BUILTIN(m_rstrip) { return strip_args(j, self, a, 2); }

/* First place of `what` in s from byte `from`; s.n + 1 when there is none. */
size_t str_find(struct str s, struct str what, size_t from) {
    for (size_t i = from; i + what.n <= s.n; i++) if (!what.n || !memcmp(s.p + i, what.p, what.n)) return i;
    return s.n + 1;
}

struct value str_replace(struct jinja *j, struct str s, struct str old, struct str new, int64_t count) {
    struct text t = { 0 };
    size_t at = 0;
    for (; count != 0 && jinja_step(j); count--) {
        const size_t i = str_find(s, old, at);
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

static BUILTIN(m_replace) { return str_replace(j, self.s, arg_str(j, a, 0, "old", ""), arg_str(j, a, 1, "new", ""), arg_int(j, a, 2, "count", -1)); }

struct value str_split_white(struct jinja *j, struct str s, int64_t most) {
    struct value l = v_list(j, LIST, 0);
    size_t at = 0;
    while (jinja_step(j)) {
        size_t n = 0;
        while (at < s.n && white(s.p + at, n = utf8_offset(s.p + at, s.n - at, 1))) at += n;
        if (at >= s.n) break;
        size_t end = at;
        while (end < s.n && !white(s.p + end, n = utf8_offset(s.p + end, s.n - end, 1))) end += n;
        if (most-- == 0) { list_add(j, l.l, str_strip(v_str(s.p + at, s.n - at), NULL, 2)); break; }
        list_add(j, l.l, v_str(s.p + at, end - at));
        at = end;
    }
    return l;
}

void list_reverse(struct list *l) {
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        const struct value v = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = v;
    }
}

static struct value split(struct jinja *j, struct value self, const struct args *a, bool from_right) {
    const struct value sep = arg_or(a, 0, "sep", v_none());
    int64_t most = arg_int(j, a, 1, "maxsplit", -1);
    struct str s = self.s;
    if (sep.kind == NONE) return str_split_white(j, s, most);
    if (sep.kind != STRING || !sep.s.n) { jinja_fail(j, "a separator must be a string that is not empty"); return self; }
    struct value l = v_list(j, LIST, 0);
    while (most-- != 0 && jinja_step(j)) {
        size_t i = str_find(s, sep.s, 0);
        if (i > s.n) break;
        if (from_right) for (size_t k = s.n - sep.s.n + 1; k-- > i; ) if (!memcmp(s.p + k, sep.s.p, sep.s.n)) { i = k; break; }
        const struct str left = { s.p, i }, right = { s.p + i + sep.s.n, s.n - i - sep.s.n };
        const struct str part = from_right ? right : left;
        list_add(j, l.l, v_str(part.p, part.n));
        s = from_right ? left : right;
    }
    list_add(j, l.l, v_str(s.p, s.n));
    if (from_right && !j->failed) list_reverse(l.l);
    return l;
}

static BUILTIN(m_split)  { return split(j, self, a, false); }
static BUILTIN(m_rsplit) { return split(j, self, a, true); }

static BUILTIN(m_splitlines) {
    struct value l = v_list(j, LIST, 0);
    const bool keep = is_true(arg_or(a, 0, "keepends", v_bool(false)));
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
    const struct value what = arg_or(a, 0, "prefix", v_none());
    if (what.kind == STRING) return v_bool(edge(self.s, what.s, end));
    if (what.kind != TUPLE) { jinja_fail(j, "startswith and endswith take a string or a tuple"); return v_bool(false); }
    for (size_t i = 0; i < what.l->n; i++) if (what.l->items[i].kind == STRING && edge(self.s, what.l->items[i].s, end)) return v_bool(true);
    return v_bool(false);
}

static BUILTIN(m_startswith) { return edges(j, self, a, false); }
static BUILTIN(m_endswith)   { return edges(j, self, a, true); }

static BUILTIN(m_removeprefix) {
    const struct str s = arg_str(j, a, 0, "prefix", "");
    return edge(self.s, s, false) ? v_str(self.s.p + s.n, self.s.n - s.n) : self;
}
static BUILTIN(m_removesuffix) {
    const struct str s = arg_str(j, a, 0, "suffix", "");
    return edge(self.s, s, true) ? v_str(self.s.p, self.s.n - s.n) : self;
}

/* Case is changed in ASCII only. */
struct value str_cased(struct jinja *j, struct value v, int (*first)(int), int (*rest)(int), bool words) {
    const struct value s = value_str(j, v);
    char *p = jinja_alloc(j, s.s.n + 1);
    bool start = true;
    for (size_t i = 0; p && i < s.s.n; i++) {
        const unsigned char c = (unsigned char) s.s.p[i];
        p[i] = c < 128 ? (char) (start ? first : rest)(c) : (char) c;
        start = words && c < 128 && !isalpha(c);
    }
    return p ? v_str(p, s.s.n) : s;
}

BUILTIN(method_upper)      { UNUSED_ARGS; return str_cased(j, self, toupper, toupper, false); }
BUILTIN(method_lower)      { UNUSED_ARGS; return str_cased(j, self, tolower, tolower, false); }
BUILTIN(method_capitalize) { UNUSED_ARGS; return str_cased(j, self, toupper, tolower, false); }
static BUILTIN(m_title)      { UNUSED_ARGS; return str_cased(j, self, toupper, tolower, true); }

static struct value find_index(struct jinja *j, struct value self, const struct args *a, bool last) {
    const struct str what = arg_str(j, a, 0, "sub", "");
    size_t found = str_find(self.s, what, 0);
    for (size_t i = found; last && i <= self.s.n && jinja_step(j); i = str_find(self.s, what, i + 1)) found = i;
    return found > self.s.n ? v_int(-1) : v_int((int64_t) utf8_length(self.s.p, found));
}

static BUILTIN(m_find)  { return find_index(j, self, a, false); }
static BUILTIN(m_rfind) { return find_index(j, self, a, true); }
static BUILTIN(m_index) {
    const struct value i = find_index(j, self, a, false);
    if (i.i < 0) jinja_fail(j, "substring not found");
    return i;
}

static BUILTIN(m_count) {
    const struct str what = arg_str(j, a, 0, "sub", "");
    int64_t n = 0;
    if (!what.n) return v_int((int64_t) utf8_length(self.s.p, self.s.n) + 1);
    for (size_t i = str_find(self.s, what, 0); i <= self.s.n && jinja_step(j); i = str_find(self.s, what, i + what.n)) n++;
    return v_int(n);
}

static BUILTIN(m_join) {
    const struct value l = value_list(j, arg_or(a, 0, "iterable", v_none()));
    struct text t = { 0 };
    for (size_t i = 0; !j->failed && i < l.l->n && jinja_step(j); i++) {
        if (l.l->items[i].kind != STRING) jinja_fail(j, "join takes strings, not %s", kind_name(l.l->items[i].kind));
        if (i) text_add(j, &t, self.s.p, self.s.n);
        text_str(j, &t, l.l->items[i]);
    }
    return v_text(&t);
}

bool str_all(struct str s, int (*is)(int)) {
    for (size_t i = 0; i < s.n; i++) if ((unsigned char) s.p[i] >= 128 || !is((unsigned char) s.p[i])) return false;
    return s.n != 0;
}

static BUILTIN(m_isdigit) { (void) j; UNUSED_ARGS; return v_bool(str_all(self.s, isdigit)); }
static BUILTIN(m_isalpha) { (void) j; UNUSED_ARGS; return v_bool(str_all(self.s, isalpha)); }
static BUILTIN(m_isalnum) { (void) j; UNUSED_ARGS; return v_bool(str_all(self.s, isalnum)); }
static BUILTIN(m_isspace) { (void) j; UNUSED_ARGS; return v_bool(self.s.n && !str_strip(self, NULL, 1).s.n); }
BUILTIN(method_isupper) { UNUSED_ARGS; return v_bool(equal(j, self, str_cased(j, self, toupper, toupper, false)) && !equal(j, self, str_cased(j, self, tolower, tolower, false))); }
BUILTIN(method_islower) { UNUSED_ARGS; return v_bool(equal(j, self, str_cased(j, self, tolower, tolower, false)) && !equal(j, self, str_cased(j, self, toupper, toupper, false))); }

/* "{} {0} {name}".format(...) without format specifications */
static BUILTIN(m_format) {
    struct text t = { 0 };
    size_t automatic = 0;
    for (size_t i = 0; i < self.s.n && jinja_step(j); i++) {
        const char c = self.s.p[i];
        if ((c == '{' || c == '}') && i + 1 < self.s.n && self.s.p[i + 1] == c) { text_add(j, &t, &c, 1); i++; continue; }
        if (c != '{') { text_add(j, &t, &c, 1); continue; }
        const size_t close = str_find(self.s, (struct str) { "}", 1 }, i);
        if (close > self.s.n) { jinja_fail(j, "a '{' of a format is not closed"); break; }
        const struct str field = { self.s.p + i + 1, close - i - 1 };
        const struct value *v = NULL;
        if (!field.n) v = arg_find(a, automatic++, "");
        else if (str_all(field, isdigit) && field.n < 4) v = arg_find(a, (size_t) strtol(field.p, NULL, 10), "");
        else for (size_t k = 0; k < a->n_named; k++) if (a->names[k].n == field.n && !memcmp(a->names[k].p, field.p, field.n)) v = a->named + k;
        if (!v) { jinja_fail(j, "a format names '%.*s', which is not given", (int) (field.n < 40 ? field.n : 40), field.p); break; }
        text_str(j, &t, *v);
        i = close;
    }
    return v_text(&t);
}

/* ---- dicts, loops ---- */

BUILTIN(method_items) {
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

static BUILTIN(m_keys) { UNUSED_ARGS; return value_list(j, self); }
static BUILTIN(m_values) {
    struct value l = v_list(j, LIST, 0);
    UNUSED_ARGS;
    for (size_t i = 0; i < self.d->n && !j->failed; i++) list_add(j, l.l, self.d->values[i]);
    return l;
}
static BUILTIN(m_get) {
    const struct value *v = dict_get(j, self.d, arg_or(a, 0, "key", v_none()));
    return v ? *v : arg_or(a, 1, "default", v_none());
}

static BUILTIN(m_list_index) {
    for (size_t i = 0; i < self.l->n && !j->failed; i++) if (equal(j, self.l->items[i], arg_or(a, 0, "value", v_none()))) return v_int((int64_t) i);
    jinja_fail(j, "a value is not in the list");
    return v_none();
}
static BUILTIN(m_list_count) {
    int64_t n = 0;
    for (size_t i = 0; i < self.l->n && !j->failed; i++) n += equal(j, self.l->items[i], arg_or(a, 0, "value", v_none()));
    return v_int(n);
}

static BUILTIN(m_cycle) {
    if (!a->n) { jinja_fail(j, "cycle takes at least one value"); return v_none(); }
    return a->items[self.i % (int64_t) a->n];
}
static BUILTIN(m_changed) {                                    /* self holds what was given last time */
    struct value now = v_list(j, LIST, a->n);
    for (size_t i = 0; i < a->n; i++) list_add(j, now.l, a->items[i]);
    if (j->failed) return v_none();
    const bool same = self.l->n && equal(j, self.l->items[0], now);
    self.l->n = 0;
    list_add(j, self.l, now);
    return v_bool(!same);
}

static const struct { enum kind kind; const char *name; builtin run; } methods[] = {
    { STRING, "strip", method_strip }, { STRING, "lstrip", m_lstrip }, { STRING, "rstrip", m_rstrip }, { STRING, "replace", m_replace },
    { STRING, "split", m_split }, { STRING, "rsplit", m_rsplit }, { STRING, "splitlines", m_splitlines },
    { STRING, "startswith", m_startswith }, { STRING, "endswith", m_endswith }, { STRING, "removeprefix", m_removeprefix },
    { STRING, "removesuffix", m_removesuffix }, { STRING, "upper", method_upper }, { STRING, "lower", method_lower },
    { STRING, "capitalize", method_capitalize }, { STRING, "title", m_title }, { STRING, "find", m_find }, { STRING, "rfind", m_rfind },
    { STRING, "index", m_index }, { STRING, "count", m_count }, { STRING, "join", m_join }, { STRING, "format", m_format },
    { STRING, "isdigit", m_isdigit }, { STRING, "isnumeric", m_isdigit }, { STRING, "isalpha", m_isalpha }, { STRING, "isalnum", m_isalnum },
    { STRING, "isspace", m_isspace }, { STRING, "isupper", method_isupper }, { STRING, "islower", method_islower },
    { DICT, "items", method_items }, { DICT, "keys", m_keys }, { DICT, "values", m_values }, { DICT, "get", m_get },
    { LIST, "index", m_list_index }, { LIST, "count", m_list_count }, { TUPLE, "index", m_list_index }, { TUPLE, "count", m_list_count },
    { FUNCTION, "cycle", m_cycle }, { FUNCTION, "changed", m_changed },
};

builtin method_find(enum kind kind, struct str name) {
    for (size_t i = 0; i < sizeof methods/sizeof *methods; i++) if (methods[i].kind == kind && str_is(name, methods[i].name)) return methods[i].run;
    return NULL;
}
