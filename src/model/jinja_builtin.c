/* Filters, tests and global functions: each family is a table of names. Semantics are those of Python's values and of Jinja's
 * own pages (https://jinja.palletsprojects.com/en/stable/templates/#list-of-builtin-filters); `tojson` is plain JSON without
 * escapes for HTML, as chat templates expect. Values cannot be changed in place, except in a namespace. */

#include "jinja.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- filters over strings and numbers ---- */

/* The filter `title` begins words after white space, hyphens and opening brackets only; the method after any non-letter. */
static BUILTIN(f_title) {
    const struct value s = str_cased(j, self, tolower, tolower, false);
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

static BUILTIN(f_string) { UNUSED_ARGS; return value_str(j, self); }
static BUILTIN(f_trim)   { return method_strip(j, value_str(j, self), a); }

static BUILTIN(f_length) {
    UNUSED_ARGS;
    switch (self.kind) {
        case UNDEFINED: return v_int(0);
        case STRING: return v_int((int64_t) utf8_length(self.s.p, self.s.n));
        case LIST: case TUPLE: return v_int((int64_t) self.l->n);
        case DICT: return v_int((int64_t) self.d->n);
        default: jinja_fail(j, "%s has no length", kind_name(self.kind)); return v_int(0);
    }
}

static BUILTIN(f_default) {
    const bool also_false = is_true(arg_or(a, 1, "boolean", v_bool(false)));
    (void) j;
    return self.kind == UNDEFINED || (also_false && !is_true(self)) ? arg_or(a, 0, "default_value", v_cstr("")) : self;
}

static BUILTIN(f_replace) {
    const struct value s = value_str(j, self), old = value_str(j, arg_or(a, 0, "old", v_cstr(""))), new = value_str(j, arg_or(a, 1, "new", v_cstr("")));
    return str_replace(j, s.s, old.s, new.s, arg_int(j, a, 2, "count", -1));
}

static BUILTIN(f_abs) {
    UNUSED_ARGS;
    if (!is_number(self) || (self.kind == INT && self.i == INT64_MIN)) { jinja_fail(j, "abs takes a number, not %s", kind_name(self.kind)); return self; }
    return self.kind == FLOAT ? v_float(fabs(self.f)) : v_int(self.kind == BOOL ? self.b : self.i < 0 ? -self.i : self.i);
}

/* A string as a number; false when it is none. */
static bool parse_number(struct jinja *j, struct value v, double *f) {
    const struct str s = str_strip(v, NULL, 3).s;
    char *p = jinja_alloc(j, s.n + 1), *end;
    if (!p || !s.n) return false;
    memcpy(p, s.p, s.n);
    *f = strtod(p, &end);
    return end == p + s.n;
}

static BUILTIN(f_int) {
    double f = self.kind == STRING ? NAN : is_number(self) ? as_float(self) : NAN;
    if (self.kind == INT) return self;
    if (self.kind == STRING && !parse_number(j, self, &f)) f = NAN;
    return f > -0x1p63 && f < 0x1p63 ? v_int((int64_t) f) : arg_or(a, 0, "default", v_int(0));
}

static BUILTIN(f_float) {
    double f;
    if (is_number(self)) return v_float(as_float(self));
    return self.kind == STRING && parse_number(j, self, &f) ? v_float(f) : arg_or(a, 0, "default", v_float(0));
}

static BUILTIN(f_round) {
    const int64_t places = arg_int(j, a, 0, "precision", 0);
    const struct str method = arg_str(j, a, 1, "method", "common");
    if (!is_number(self)) { jinja_fail(j, "round takes a number, not %s", kind_name(self.kind)); return self; }
    const double scale = pow(10, (double) (places < -300 ? -300 : places > 300 ? 300 : places)), x = as_float(self)*scale;
    const double r = str_is(method, "ceil") ? ceil(x) : str_is(method, "floor") ? floor(x) : nearbyint(x);
    return v_float(isfinite(r/scale) ? r/scale : as_float(self));
}

static BUILTIN(f_indent) {
    const struct value width = arg_or(a, 0, "width", v_int(4)), s = value_str(j, self);
    const bool first = is_true(arg_or(a, 1, "first", v_bool(false))), blank = is_true(arg_or(a, 2, "blank", v_bool(false)));
    struct text by = { 0 }, t = { 0 };
    if (width.kind == STRING) by = (struct text) { .p = (char *) width.s.p, .n = width.s.n };
    else for (int64_t i = 0; width.kind == INT && i < width.i && jinja_step(j); i++) text_add(j, &by, " ", 1);
    for (size_t at = 0; at <= s.s.n && jinja_step(j); ) {
        size_t end = str_find(s.s, (struct str) { "\n", 1 }, at);
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

static BUILTIN(f_escape) {
    const struct value s = value_str(j, self);
    struct text t = { 0 };
    UNUSED_ARGS;
    for (size_t i = 0; i < s.s.n && !j->failed; i++) {
        const char *e = escaped(s.s.p[i]);
        text_add(j, &t, e ? e : s.s.p + i, e ? strlen(e) : 1);
    }
    return v_text(&t);
}

/* printf formatting with %s %d %i %f %x %%, flags and widths up to 99 */
static BUILTIN(f_format) {
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
            const struct value s = value_str(j, v);
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

static BUILTIN(f_tojson) {
    const struct value indent = arg_or(a, 0, "indent", v_none());
    const bool ascii = is_true(arg_or(a, 1, "ensure_ascii", v_bool(false)));
    struct text t = { 0 };
    text_json(j, &t, self, indent.kind == INT && indent.i >= 0 ? (int) (indent.i < 32 ? indent.i : 32) : -1, 0, ascii);
    return v_text(&t);
}

static BUILTIN(f_truncate) {
    const struct value s = value_str(j, self);
    const int64_t length = arg_int(j, a, 0, "length", 255), leeway = arg_int(j, a, 3, "leeway", 5);
    const bool killwords = is_true(arg_or(a, 1, "killwords", v_bool(false)));
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

static BUILTIN(f_wordcount) { UNUSED_ARGS; return v_int((int64_t) str_split_white(j, value_str(j, self).s, -1).l->n); }
static BUILTIN(f_self)      { (void) j; UNUSED_ARGS; return self; }

/* ---- filters over sequences ---- */

static struct list *items_of(struct jinja *j, struct value v) {
    static struct list none;
    const struct value l = value_list(j, v);
    return j->failed || l.kind != LIST ? &none : l.l;
}

static BUILTIN(f_list)  {
    struct value l = v_list(j, LIST, 0);
    const struct list *of = items_of(j, self);
    UNUSED_ARGS;
    for (size_t i = 0; i < of->n && !j->failed; i++) list_add(j, l.l, of->items[i]);
    return l;
}
static BUILTIN(f_first) { const struct list *l = items_of(j, self); UNUSED_ARGS; return l->n ? l->items[0] : v_undefined("first", 5); }
static BUILTIN(f_last)  { const struct list *l = items_of(j, self); UNUSED_ARGS; return l->n ? l->items[l->n - 1] : v_undefined("last", 4); }

static BUILTIN(f_reverse) {
    struct value l = f_list(j, self, a);
    if (j->failed) return l;
    list_reverse(l.l);
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
        const size_t dot = str_find(s, (struct str) { ".", 1 }, 0);
        const struct str part = { s.p, dot > s.n ? s.n : dot };
        if (str_all(part, isdigit) && part.n < 10) v = value_item(j, v, v_int(strtol(part.p, NULL, 10)));
        else v = v.kind == DICT || v.kind == NAMESPACE ? value_item(j, v, v_str(part.p, part.n)) : value_attr(j, v, part);
        if (dot > s.n) break;
        s = (struct str) { s.p + dot + 1, s.n - dot - 1 };
    }
    return v;
}

static BUILTIN(f_join) {
    const struct list *l = items_of(j, self);
    const struct value d = value_str(j, arg_or(a, 0, "d", v_cstr(""))), path = arg_or(a, 1, "attribute", v_none());
    struct text t = { 0 };
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        if (i) text_str(j, &t, d);
        text_str(j, &t, by_path(j, l->items[i], path));
    }
    return v_text(&t);
}

static struct value folded(struct jinja *j, struct value v, bool sensitive) {
    return sensitive || v.kind != STRING ? v : str_cased(j, v, tolower, tolower, false);
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

static BUILTIN(f_sort) {
    return sorted(j, self, arg_or(a, 2, "attribute", v_none()), is_true(arg_or(a, 0, "reverse", v_bool(false))), is_true(arg_or(a, 1, "case_sensitive", v_bool(false))));
}

static BUILTIN(f_dictsort) {
    const bool sensitive = is_true(arg_or(a, 0, "case_sensitive", v_bool(false))), down = is_true(arg_or(a, 2, "reverse", v_bool(false)));
    const struct str by = arg_str(j, a, 1, "by", "key");
    if (self.kind != DICT) { jinja_fail(j, "dictsort takes a dict, not %s", kind_name(self.kind)); return self; }
    return sorted(j, method_items(j, self, a), v_int(str_is(by, "value")), down, sensitive);
}

static BUILTIN(f_unique) {
    const struct list *l = items_of(j, self);
    struct value r = v_list(j, LIST, 0);
    const bool sensitive = is_true(arg_or(a, 0, "case_sensitive", v_bool(false)));
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        bool seen = false;
        for (size_t k = 0; k < r.l->n && !seen && !j->failed; k++) seen = equal(j, folded(j, r.l->items[k], sensitive), folded(j, l->items[i], sensitive));
        if (!seen) list_add(j, r.l, l->items[i]);
    }
    return r;
}

static struct value extreme(struct jinja *j, struct value self, const struct args *a, int sign) {
    const struct list *l = items_of(j, self);
    const struct value path = arg_or(a, 1, "attribute", v_none());
    const bool sensitive = is_true(arg_or(a, 0, "case_sensitive", v_bool(false)));
    size_t best = 0;
    for (size_t i = 1; i < l->n && !j->failed; i++) {
        if (sign*compare(j, folded(j, by_path(j, l->items[i], path), sensitive), folded(j, by_path(j, l->items[best], path), sensitive)) > 0) best = i;
    }
    return l->n ? l->items[best] : v_undefined("max", 3);
}

static BUILTIN(f_max) { return extreme(j, self, a, 1); }
static BUILTIN(f_min) { return extreme(j, self, a, -1); }

static BUILTIN(f_sum) {
    const struct list *l = items_of(j, self);
    const struct value path = arg_or(a, 0, "attribute", v_none());
    struct value r = arg_or(a, 1, "start", v_int(0));
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        const struct value v = by_path(j, l->items[i], path);
        if (!is_number(v) || !is_number(r)) { jinja_fail(j, "sum takes numbers, not %s", kind_name(v.kind)); break; }
        const double f = as_float(r) + as_float(v);
        r = r.kind == FLOAT || v.kind == FLOAT || fabs(f) >= 0x1p53 ? v_float(f) : v_int((int64_t) f);
    }
    return r;
}

static BUILTIN(f_map) {
    const struct list *l = items_of(j, self);
    struct value r = v_list(j, LIST, 0);
    const struct value *path = a->n ? NULL : arg_find(a, 1, "attribute");
    const struct value *otherwise = arg_find(a, SIZE_MAX, "default");
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

static BUILTIN(f_select)     { return chosen(j, self, a, false, true); }
static BUILTIN(f_reject)     { return chosen(j, self, a, false, false); }
static BUILTIN(f_selectattr) { return chosen(j, self, a, true, true); }
static BUILTIN(f_rejectattr) { return chosen(j, self, a, true, false); }

static BUILTIN(f_batch) {
    const struct list *l = items_of(j, self);
    const int64_t size = arg_int(j, a, 0, "linecount", 1);
    const struct value fill = arg_or(a, 1, "fill_with", v_none());
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

static BUILTIN(f_items) {
    if (self.kind == UNDEFINED) return v_list(j, LIST, 0);
    if (self.kind != DICT) { jinja_fail(j, "items takes a dict, not %s", kind_name(self.kind)); return self; }
    return method_items(j, self, a);
}

static BUILTIN(f_attr) { return value_attr(j, self, arg_str(j, a, 0, "name", "")); }

static BUILTIN(f_groupby) {
    const struct value path = arg_or(a, 0, "attribute", v_none());
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
    { "abs", f_abs }, { "attr", f_attr }, { "batch", f_batch }, { "capitalize", method_capitalize }, { "count", f_length }, { "d", f_default },
    { "default", f_default }, { "dictsort", f_dictsort }, { "e", f_escape }, { "escape", f_escape }, { "first", f_first },
    { "float", f_float }, { "forceescape", f_escape }, { "format", f_format }, { "groupby", f_groupby }, { "indent", f_indent },
    { "int", f_int }, { "items", f_items }, { "join", f_join }, { "last", f_last }, { "length", f_length }, { "list", f_list },
    { "lower", method_lower }, { "map", f_map }, { "max", f_max }, { "min", f_min }, { "reject", f_reject }, { "rejectattr", f_rejectattr },
    { "replace", f_replace }, { "reverse", f_reverse }, { "round", f_round }, { "safe", f_self }, { "select", f_select },
    { "selectattr", f_selectattr }, { "sort", f_sort }, { "string", f_string }, { "sum", f_sum }, { "title", f_title },
    { "tojson", f_tojson }, { "trim", f_trim }, { "truncate", f_truncate }, { "unique", f_unique }, { "upper", method_upper },
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
    const struct value b = arg_or(a, 0, "", v_none());
    const int64_t i = v.kind == BOOL ? v.b : v.kind == INT ? v.i : 0;
    if (str_is(name, "defined")) return v.kind != UNDEFINED;
    if (is_kind_test(name, kind)) return kind_in(v, kind);
    if (str_is(name, "true"))    return v.kind == BOOL && v.b;
    if (str_is(name, "false"))   return v.kind == BOOL && !v.b;
    if (str_is(name, "odd"))     return is_integer(v) && i % 2 != 0;
    if (str_is(name, "even"))    return is_integer(v) && i % 2 == 0;
    if (str_is(name, "divisibleby")) return is_integer(v) && b.kind == INT && b.i != 0 && b.i != -1 ? i % b.i == 0 : b.kind == INT && b.i == -1;
    if (str_is(name, "sameas"))  return v.kind == b.kind && equal(j, v, b);
    if (str_is(name, "upper"))   return v.kind == STRING && method_isupper(j, v, a).b;
    if (str_is(name, "lower"))   return v.kind == STRING && method_islower(j, v, a).b;
    if (str_is(name, "filter"))  return v.kind == STRING && filter_find(v.s);
    if (str_is(name, "in")) {
        if (b.kind == STRING) return v.kind == STRING && str_find(b.s, v.s, 0) <= b.s.n;
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

static BUILTIN(g_range) {
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

static BUILTIN(g_dict)      { (void) self; return dict_of(j, a, DICT); }
static BUILTIN(g_namespace) { (void) self; return dict_of(j, a, NAMESPACE); }

static BUILTIN(g_raise) {
    const struct value s = value_str(j, arg_or(a, 0, "message", v_cstr("")));
    (void) self;
    jinja_fail(j, "%.*s", (int) (s.s.n < 200 ? s.s.n : 200), s.s.p);
    return v_none();
}

static BUILTIN(g_strftime_now) {
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
