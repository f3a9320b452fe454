/* From tree to text. Scopes are Jinja's: a loop and a macro open one, `if` does not; `set` writes the innermost, so what a
 * loop sets ends with the turn, and a namespace carries values out. */

#include "jinja.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static struct value eval(struct jinja *j, const struct node *n);
static void run(struct jinja *j, const struct node *n);

static const struct value undefined = { .kind = UNDEFINED };

/* ---- names ---- */

static struct value lookup(struct jinja *j, struct str name) {
    for (const struct scope *s = j->scope; s; s = s->parent) {
        for (size_t i = 0; i < s->vars.n; i++) {
            const struct str key = s->vars.keys[i].s;
            if (key.n == name.n && !memcmp(key.p, name.p, name.n)) return s->vars.values[i];
        }
    }
    return v_undefined(name.p, name.n);
}

static struct scope *scope_open(struct jinja *j, struct scope *parent) {
    struct scope *s = jinja_alloc(j, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

static void set_name(struct jinja *j, struct str name, struct value v) { dict_set(j, &j->scope->vars, v_str(name.p, name.n), v); }

static void assign(struct jinja *j, const struct node *target, struct value v) {
    if (target->kind == E_NAME) { set_name(j, target->v.s, v); return; }
    if (target->kind == E_ATTR) {
        const struct value space = lookup(j, target->a->v.s);
        if (space.kind != NAMESPACE) jinja_fail(j, "%s has no attribute to set", kind_name(space.kind));
        else dict_set(j, space.d, target->v, v);
        return;
    }
    const struct value l = value_list(j, v);
    if (j->failed) return;
    if (l.kind != LIST || l.l->n != target->n) { jinja_fail(j, "%zu names for %zu values", target->n, l.kind == LIST ? l.l->n : 0); return; }
    for (size_t i = 0; i < target->n; i++) assign(j, target->items[i], l.l->items[i]);
}

/* ---- attributes, items, slices ---- */

static struct value bound_method(struct jinja *j, struct value v, struct str name) {
    const builtin f = v.kind == FUNCTION ? NULL : method_find(v.kind, name);        /* those of a loop come with it (loop_value) */
    if (!f) return undefined;
    struct func *fn = jinja_alloc(j, sizeof *fn);
    struct value *self = jinja_alloc(j, sizeof *self);
    if (!fn || !self) return undefined;
    *self = v;
    *fn = (struct func) { .name = name, .run = f, .self = self };
    return (struct value) { .kind = FUNCTION, .fn = fn };
}

static bool refuse_undefined(struct jinja *j, struct value v) {
    if (v.kind != UNDEFINED) return false;
    jinja_fail(j, "'%.*s' is undefined", (int) (v.s.n < 60 ? v.s.n : 60), v.s.p ? v.s.p : "");
    return true;
}

/* An attribute is first a method, then an item: so `d.items` is the method. */
struct value value_attr(struct jinja *j, struct value v, struct str name) {
    if (refuse_undefined(j, v)) return undefined;
    const struct value method = bound_method(j, v, name);
    if (method.kind == FUNCTION) return method;
    if (v.kind == DICT || v.kind == NAMESPACE) {
        const struct value *item = dict_get(j, v.d, v_str(name.p, name.n));
        if (item) return *item;
    }
    return v_undefined(name.p, name.n);
}

struct value value_item(struct jinja *j, struct value v, struct value key) {
    if (refuse_undefined(j, v)) return undefined;
    if (v.kind == DICT || v.kind == NAMESPACE) {
        const struct value *item = dict_get(j, v.d, key);
        if (item) return *item;
    }
    if (key.kind == INT && (v.kind == LIST || v.kind == TUPLE || v.kind == STRING)) {
        const int64_t n = (int64_t) (v.kind == STRING ? utf8_length(v.s.p, v.s.n) : v.l->n), i = key.i < 0 ? key.i + n : key.i;
        if (i < 0 || i >= n) return v_undefined("index", 5);
        if (v.kind != STRING) return v.l->items[i];
        const size_t from = utf8_offset(v.s.p, v.s.n, (size_t) i), to = from + utf8_offset(v.s.p + from, v.s.n - from, 1);
        return v_str(v.s.p + from, to - from);
    }
    if (key.kind == STRING) return v.kind == DICT || v.kind == NAMESPACE ? v_undefined(key.s.p, key.s.n) : value_attr(j, v, key.s);
    return undefined;
}

/* Where a slice begins and ends among n elements, as Python counts. */
static bool slice_bound(struct jinja *j, const struct node *part, int64_t n, int64_t step, int64_t otherwise, int64_t *at) {
    *at = otherwise;
    if (!part) return true;
    const struct value v = eval(j, part);
    if (v.kind == NONE) return true;
    if (v.kind != INT) { jinja_fail(j, "a slice needs integers, not %s", kind_name(v.kind)); return false; }
    int64_t i = v.i < 0 ? (v.i < -n ? -1 : v.i + n) : v.i > n ? n : v.i;
    if (v.i < -n) i = step < 0 ? -1 : 0;
    if (step < 0 && i >= n) i = n - 1;
    *at = i;
    return true;
}

static struct value slice(struct jinja *j, const struct node *node) {
    const struct value v = eval(j, node->a);
    if (j->failed || refuse_undefined(j, v)) return undefined;
    if (v.kind != LIST && v.kind != TUPLE && v.kind != STRING) { jinja_fail(j, "%s cannot be sliced", kind_name(v.kind)); return undefined; }
    const struct value items = value_list(j, v), step_v = node->items[2] ? eval(j, node->items[2]) : v_int(1);
    if (j->failed) return undefined;
    const int64_t step = step_v.kind == NONE ? 1 : step_v.i, n = (int64_t) items.l->n;
    if ((step_v.kind != INT && step_v.kind != NONE) || step == 0 || step == INT64_MIN) { jinja_fail(j, "the step of a slice cannot be that"); return undefined; }
    int64_t from, to;
    if (!slice_bound(j, node->items[0], n, step, step > 0 ? 0 : n - 1, &from) || !slice_bound(j, node->items[1], n, step, step > 0 ? n : -1, &to)) return undefined;
    if (v.kind == STRING && step == 1) {
        const size_t a = utf8_offset(v.s.p, v.s.n, (size_t) from), b = to > from ? a + utf8_offset(v.s.p + a, v.s.n - a, (size_t) (to - from)) : a;
        return v_str(v.s.p + a, b - a);
    }
    struct value l = v_list(j, v.kind == TUPLE ? TUPLE : LIST, 0);
    struct text t = { 0 };
    for (int64_t i = from; jinja_step(j) && (step > 0 ? i < to : i > to); i += step) {
        if (v.kind == STRING) text_str(j, &t, items.l->items[i]); else list_add(j, l.l, items.l->items[i]);
        if (step > n || step < -n) break;
    }
    return v.kind == STRING ? v_text(&t) : l;
}

/* ---- operators ---- */

static struct value concat(struct jinja *j, struct value a, struct value b) {
    struct text t = { 0 };
    text_str(j, &t, a);
    text_str(j, &t, b);
    return v_text(&t);
}

static struct value repeat(struct jinja *j, struct value v, int64_t times) {
    struct text t = { 0 };
    struct value l = v.kind == STRING ? v : v_list(j, v.kind, 0);
    for (int64_t i = 0; i < times && jinja_step(j); i++) {
        if (v.kind == STRING) { if (!v.s.n) break; text_add(j, &t, v.s.p, v.s.n); continue; }
        if (!v.l->n) break;
        for (size_t k = 0; k < v.l->n; k++) list_add(j, l.l, v.l->items[k]);
    }
    return v.kind == STRING ? v_text(&t) : l;
}

/* Integer arithmetic; false when the result does not fit 64 bits. */
static bool int_op(char op, int64_t a, int64_t b, int64_t *r) {
    switch (op) {
        case '+': if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false; *r = a + b; return true;
        case '-': if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) return false; *r = a - b; return true;
        case '*':
            if (a && b && ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN) || (a != -1 && b != -1 && (
                a > 0 ? (b > 0 ? a > INT64_MAX/b : b < INT64_MIN/a) : (b > 0 ? a < INT64_MIN/b : a < INT64_MAX/b))))) return false;
            *r = a*b;
            return true;
        case 'D': if (a == INT64_MIN && b == -1) return false; *r = a/b - (a % b != 0 && (a < 0) != (b < 0)); return true;
        case '%': *r = b == -1 ? 0 : a % b; if (*r && (*r < 0) != (b < 0)) *r += b; return true;
        default: break;
    }
    *r = 1;                                             /* '**' with b >= 0 */
    for (int64_t i = 0; i < b; i++) {
        if (*r == 0 || (*r == 1 && i > 1 && a == 1)) break;
        if (i > 63 && a != -1) return a == 0 || a == 1;
        if (!int_op('*', *r, a, r)) return false;
        if (a == -1 && i > 0) { *r = b % 2 ? -1 : 1; break; }
    }
    return true;
}

static double float_op(char op, double a, double b) {
    switch (op) {
        case '+': return a + b;
        case '-': return a - b;
        case '*': return a*b;
        case '/': return a/b;
        case 'D': return floor(a/b);
        case '%': { const double r = fmod(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
        default:  return pow(a, b);
    }
}

/* "%s and %d" % values: the formatting of strings, kept to what templates use. */
static struct value format_percent(struct jinja *j, struct value format, struct value values) {
    const struct args a = { .items = values.kind == TUPLE ? values.l->items : &values, .n = values.kind == TUPLE ? values.l->n : 1 };
    return filter_call(j, (struct str) { "format", 6 }, format, &a);
}

static struct value arithmetic(struct jinja *j, char op, struct value a, struct value b) {
    const bool numbers = is_number(a) && is_number(b);
    if (refuse_undefined(j, a) || refuse_undefined(j, b)) return undefined;
    if (op == '+' && a.kind == STRING && b.kind == STRING) return concat(j, a, b);
    if (op == '+' && a.kind == b.kind && (a.kind == LIST || a.kind == TUPLE)) {
        struct value l = v_list(j, a.kind, a.l->n + b.l->n);
        for (size_t i = 0; i < a.l->n; i++) list_add(j, l.l, a.l->items[i]);
        for (size_t i = 0; i < b.l->n; i++) list_add(j, l.l, b.l->items[i]);
        return l;
    }
    if (op == '*' && b.kind == INT && (a.kind == STRING || a.kind == LIST || a.kind == TUPLE)) return repeat(j, a, b.i);
    if (op == '*' && a.kind == INT && (b.kind == STRING || b.kind == LIST || b.kind == TUPLE)) return repeat(j, b, a.i);
    if (op == '%' && a.kind == STRING) return format_percent(j, a, b);
    if (!numbers) { jinja_fail(j, "'%s' between %s and %s", op == 'D' ? "//" : op == 'P' ? "**" : (char[]) { op, 0 }, kind_name(a.kind), kind_name(b.kind)); return undefined; }
    if ((op == '/' || op == 'D' || op == '%') && as_float(b) == 0) { jinja_fail(j, "division by zero"); return undefined; }
    const int64_t ia = a.kind == BOOL ? a.b : a.i, ib = b.kind == BOOL ? b.b : b.i;
    if (a.kind == FLOAT || b.kind == FLOAT || op == '/' || (op == 'P' && ib < 0)) return v_float(float_op(op, as_float(a), as_float(b)));
    int64_t r;
    if (!int_op(op, ia, ib, &r)) { jinja_fail(j, "an integer does not fit 64 bits"); return undefined; }
    return v_int(r);
}

static bool contains(struct jinja *j, struct value in, struct value v) {
    if (in.kind == STRING) {
        if (v.kind != STRING) { jinja_fail(j, "%s in a string", kind_name(v.kind)); return false; }
        for (size_t i = 0; i + v.s.n <= in.s.n && jinja_step(j); i++) if (!v.s.n || !memcmp(in.s.p + i, v.s.p, v.s.n)) return true;
        return false;
    }
    if (in.kind == DICT || in.kind == NAMESPACE) return dict_get(j, in.d, v) != NULL;
    if (in.kind != LIST && in.kind != TUPLE) {
        if (in.kind != UNDEFINED) jinja_fail(j, "%s holds nothing", kind_name(in.kind));
        return false;
    }
    for (size_t i = 0; i < in.l->n && !j->failed; i++) if (equal(j, in.l->items[i], v)) return true;
    return false;
}

static bool holds(struct jinja *j, struct str op, struct value a, struct value b) {
    if (str_is(op, "=="))     return equal(j, a, b);
    if (str_is(op, "!="))     return !equal(j, a, b);
    if (str_is(op, "in"))     return contains(j, b, a);
    if (str_is(op, "not in")) return !contains(j, b, a);
    if (refuse_undefined(j, a) || refuse_undefined(j, b)) return false;
    const bool nan = (a.kind == FLOAT && isnan(a.f)) || (b.kind == FLOAT && isnan(b.f));
    const int c = compare(j, a, b);
    return !nan && (op.p[0] == '<' ? (op.n == 2 ? c <= 0 : c < 0) : (op.n == 2 ? c >= 0 : c > 0));
}

static struct value comparison(struct jinja *j, const struct node *n) {
    struct value left = eval(j, n->a);
    for (size_t i = 0; i < n->n && !j->failed; i++) {
        const struct value right = eval(j, n->items[i]);
        if (j->failed || !holds(j, n->names[i], left, right)) return v_bool(false);
        left = right;
    }
    return v_bool(true);
}

/* ---- calls ---- */

static bool eval_args(struct jinja *j, const struct node *n, struct args *a) {
    *a = (struct args) { 0 };
    if (!n->n) return !j->failed;
    a->items = jinja_alloc(j, n->n*sizeof *a->items);
    a->named = jinja_alloc(j, n->n*sizeof *a->named);
    a->names = jinja_alloc(j, n->n*sizeof *a->names);
    for (size_t i = 0; i < n->n && !j->failed; i++) {
        const struct value v = eval(j, n->items[i]);
        if (n->names[i].p) { a->names[a->n_named] = n->names[i]; a->named[a->n_named++] = v; }
        else a->items[a->n++] = v;
    }
    return !j->failed;
}

/* Bind a macro's parameters in the scope that is open. */
static bool bind(struct jinja *j, const struct node *macro, const struct args *a) {
    if (a->n > macro->n) { jinja_fail(j, "%zu arguments for a macro of %zu", a->n, macro->n); return false; }
    for (size_t i = 0; i < macro->n && !j->failed; i++) {
        struct value v = v_undefined(macro->names[i].p, macro->names[i].n);
        bool given = i < a->n;
        if (given) v = a->items[i];
        for (size_t k = 0; k < a->n_named && !given; k++) {
            if (a->names[k].n == macro->names[i].n && !memcmp(a->names[k].p, macro->names[i].p, macro->names[i].n)) { v = a->named[k]; given = true; }
        }
        if (!given && macro->items[i]) v = eval(j, macro->items[i]);
        set_name(j, macro->names[i], v);
    }
    return !j->failed;
}

static struct value call_macro(struct jinja *j, const struct func *fn, const struct args *a) {
    struct scope *before = j->scope;
    struct text t = { 0 }, *out = j->out;
    j->scope = scope_open(j, fn->scope);
    j->out = &t;
    if (j->scope && bind(j, fn->macro, a)) run(j, fn->macro->body);
    j->out = out;
    j->scope = before;
    j->flow = FLOW_ON;
    return v_text(&t);
}

struct value jinja_call(struct jinja *j, struct value callee, const struct args *a) {
    if (refuse_undefined(j, callee)) return undefined;
    if (callee.kind != FUNCTION) { jinja_fail(j, "%s cannot be called", kind_name(callee.kind)); return undefined; }
    if (++j->depth > JINJA_DEPTH) jinja_fail(j, "calls nested more than %d deep", JINJA_DEPTH);
    struct value r = undefined;
    if (jinja_step(j)) r = callee.fn->macro ? call_macro(j, callee.fn, a) : callee.fn->run(j, callee.fn->self ? *callee.fn->self : undefined, a);
    j->depth--;
    return r;
}

static struct value macro_value(struct jinja *j, const struct node *n) {
    struct func *fn = jinja_alloc(j, sizeof *fn);
    if (!fn) return undefined;
    *fn = (struct func) { .name = n->v.s, .macro = n, .scope = j->scope };
    return (struct value) { .kind = FUNCTION, .fn = fn };
}

/* ---- expressions ---- */

static struct value eval_items(struct jinja *j, const struct node *n, enum kind kind) {
    struct value l = v_list(j, kind, n->n);
    for (size_t i = 0; i < n->n && !j->failed; i++) list_add(j, l.l, eval(j, n->items[i]));
    return l;
}

static struct value eval_dict(struct jinja *j, const struct node *n) {
    struct value d = v_dict(j, DICT);
    for (size_t i = 0; i + 1 < n->n && !j->failed; i += 2) {
        const struct value key = eval(j, n->items[i]), v = eval(j, n->items[i + 1]);
        if (!j->failed) dict_set(j, d.d, key, v);
    }
    return d;
}

static struct value apply_filter(struct jinja *j, const struct node *n, struct value v) {
    struct args a;
    if (n->a) v = apply_filter(j, n->a, v);             /* a chain without a value at its root: of blocks */
    return eval_args(j, n, &a) ? filter_call(j, n->v.s, v, &a) : undefined;
}

static struct value eval_filter(struct jinja *j, const struct node *n) {
    struct args a;
    const struct value v = eval(j, n->a);
    return !j->failed && eval_args(j, n, &a) ? filter_call(j, n->v.s, v, &a) : undefined;
}

static struct value eval_test(struct jinja *j, const struct node *n) {
    struct args a;
    const struct value v = eval(j, n->a);
    return v_bool(!j->failed && eval_args(j, n, &a) && test_call(j, n->v.s, v, &a));
}

static struct value eval_call(struct jinja *j, const struct node *n) {
    struct args a;
    const struct value callee = eval(j, n->a);
    return !j->failed && eval_args(j, n, &a) ? jinja_call(j, callee, &a) : undefined;
}

static struct value eval_unary(struct jinja *j, const struct node *n) {
    const struct value v = eval(j, n->a);
    if (j->failed || refuse_undefined(j, v)) return undefined;
    return n->op == '-' ? arithmetic(j, '-', v.kind == FLOAT ? v_float(0) : v_int(0), v) : arithmetic(j, '+', v_int(0), v);
}

static struct value eval_binary(struct jinja *j, const struct node *n) {
    const struct value a = eval(j, n->a), b = eval(j, n->b);
    if (j->failed) return undefined;
    return n->op == '~' ? concat(j, a, b) : arithmetic(j, n->op, a, b);
}

static struct value eval_some(struct jinja *j, const struct node *n) {
    struct value a;
    switch (n->kind) {
        case E_CONST:   return n->v;
        case E_NAME:    return lookup(j, n->v.s);
        case E_LIST:    return eval_items(j, n, LIST);
        case E_TUPLE:   return eval_items(j, n, TUPLE);
        case E_DICT:    return eval_dict(j, n);
        case E_ATTR:    a = eval(j, n->a); return j->failed ? undefined : value_attr(j, a, n->v.s);
        case E_INDEX:   a = eval(j, n->a); return j->failed ? undefined : value_item(j, a, eval(j, n->b));
        case E_SLICE:   return slice(j, n);
        case E_CALL:    return eval_call(j, n);
        case E_FILTER:  return eval_filter(j, n);
        case E_TEST:    return eval_test(j, n);
        case E_UNARY:   return eval_unary(j, n);
        case E_BINARY:  return eval_binary(j, n);
        case E_AND:     a = eval(j, n->a); return is_true(a) ? eval(j, n->b) : a;
        case E_OR:      a = eval(j, n->a); return is_true(a) ? a : eval(j, n->b);
        case E_NOT:     return v_bool(!is_true(eval(j, n->a)));
        case E_COMPARE: return comparison(j, n);
        case E_COND:    return is_true(eval(j, n->b)) ? eval(j, n->a) : n->c ? eval(j, n->c) : undefined;
        default:        return undefined;
    }
}

static struct value eval(struct jinja *j, const struct node *n) {
    if (!n || !jinja_step(j)) return undefined;
    if (++j->depth > JINJA_DEPTH) jinja_fail(j, "nested more than %d deep", JINJA_DEPTH);
    if (n->line) j->line = n->line;
    const struct value v = j->failed ? undefined : eval_some(j, n);
    j->depth--;
    return v;
}

/* ---- statements ---- */

static void set_loop(struct jinja *j, struct value loop, const char *name, struct value v) { dict_set(j, loop.d, v_cstr(name), v); }

/* The variable `loop` of turn i among the items. */
static struct value loop_value(struct jinja *j, const struct list *l, size_t i, int depth, struct value *changed) {
    struct value loop = v_dict(j, DICT);
    if (j->failed) return undefined;
    set_loop(j, loop, "index",     v_int((int64_t) i + 1));
    set_loop(j, loop, "index0",    v_int((int64_t) i));
    set_loop(j, loop, "revindex",  v_int((int64_t) (l->n - i)));
    set_loop(j, loop, "revindex0", v_int((int64_t) (l->n - i) - 1));
    set_loop(j, loop, "first",     v_bool(i == 0));
    set_loop(j, loop, "last",      v_bool(i + 1 == l->n));
    set_loop(j, loop, "length",    v_int((int64_t) l->n));
    set_loop(j, loop, "depth",     v_int(depth + 1));
    set_loop(j, loop, "depth0",    v_int(depth));
    set_loop(j, loop, "previtem",  i ? l->items[i - 1] : v_undefined("previtem", 8));
    set_loop(j, loop, "nextitem",  i + 1 < l->n ? l->items[i + 1] : v_undefined("nextitem", 8));
    const struct { const char *name; struct value self; } methods[] = { { "cycle", v_int((int64_t) i) }, { "changed", *changed } };
    for (size_t m = 0; m < 2; m++) {
        struct func *fn = jinja_alloc(j, sizeof *fn);
        struct value *self = jinja_alloc(j, sizeof *self);
        if (!fn || !self) return undefined;
        *self = methods[m].self;
        const struct str name = { methods[m].name, strlen(methods[m].name) };
        *fn = (struct func) { .name = name, .run = method_find(FUNCTION, name), .self = self };
        set_loop(j, loop, methods[m].name, (struct value) { .kind = FUNCTION, .fn = fn });
    }
    return loop;
}

/* The items that the loop's own condition keeps. */
static struct list *filtered(struct jinja *j, const struct node *n, struct list *l) {
    struct value kept = v_list(j, LIST, 0);
    struct scope *before = j->scope;
    for (size_t i = 0; i < l->n && jinja_step(j); i++) {
        j->scope = scope_open(j, before);
        if (!j->scope) break;
        assign(j, n->b, l->items[i]);
        if (is_true(eval(j, n->c))) list_add(j, kept.l, l->items[i]);
    }
    j->scope = before;
    return kept.l;
}

static int loop_depth(const struct jinja *j) {
    int depth = 0;
    for (const struct scope *s = j->scope; s; s = s->parent) {
        for (size_t i = 0; i < s->vars.n; i++) depth += str_is(s->vars.keys[i].s, "loop");
    }
    return depth;
}

static void run_for(struct jinja *j, const struct node *n) {
    const struct value of = eval(j, n->a);
    if (j->failed || refuse_undefined(j, of)) return;
    const struct value items = value_list(j, of);
    if (j->failed) return;
    struct list *l = n->c ? filtered(j, n, items.l) : items.l;
    struct scope *before = j->scope;
    const int depth = loop_depth(j);
    struct value changed = v_list(j, LIST, 1);
    for (size_t i = 0; !j->failed && i < l->n && jinja_step(j); i++) {
        const struct value loop = loop_value(j, l, i, depth, &changed);
        j->scope = scope_open(j, before);
        if (!j->scope) break;
        set_name(j, (struct str) { "loop", 4 }, loop);
        assign(j, n->b, l->items[i]);
        run(j, n->body);
        const enum flow flow = j->flow;
        j->flow = FLOW_ON;
        if (flow == FLOW_BREAK) break;
    }
    j->scope = before;
    if (!j->failed && l->n == 0) run(j, n->orelse);
}

/* The text that a body prints. */
static struct value captured(struct jinja *j, const struct node *body, bool scoped) {
    struct text t = { 0 }, *out = j->out;
    struct scope *before = j->scope;
    if (scoped) j->scope = scope_open(j, before);
    j->out = &t;
    if (j->scope) run(j, body);
    j->out = out;
    j->scope = before;
    return v_text(&t);
}

static void run_call(struct jinja *j, const struct node *n) {
    struct scope *before = j->scope;
    const struct value caller = macro_value(j, n);
    struct args a;
    const struct value callee = eval(j, n->a->a);
    if (j->failed || callee.kind != FUNCTION || !callee.fn->macro) { jinja_fail(j, "only a macro can be called with a block"); return; }
    if (!eval_args(j, n->a, &a)) return;
    struct func with = *callee.fn;                      /* the macro finds `caller` in a scope around its own */
    with.scope = scope_open(j, callee.fn->scope);
    if (!with.scope) return;
    j->scope = with.scope;
    set_name(j, (struct str) { "caller", 6 }, caller);
    j->scope = before;
    const struct value r = jinja_call(j, (struct value) { .kind = FUNCTION, .fn = &with }, &a);
    text_str(j, j->out, r);
}

static void run_with(struct jinja *j, const struct node *n) {
    struct scope *before = j->scope, *inner = scope_open(j, before);
    for (size_t i = 0; inner && i + 1 < n->n && !j->failed; i += 2) {
        const struct value v = eval(j, n->items[i + 1]);
        j->scope = inner;
        assign(j, n->items[i], v);
        j->scope = before;
    }
    if (!inner) return;
    j->scope = inner;
    run(j, n->body);
    j->scope = before;
}

static void run_if(struct jinja *j, const struct node *n) {
    while (!is_true(eval(j, n->a))) {
        if (!n->b) { run(j, n->orelse); return; }
        n = n->b;
    }
    run(j, n->body);
}

static void run_one(struct jinja *j, const struct node *n) {
    struct value v;
    switch (n->kind) {
        case S_TEXT:     text_add(j, j->out, n->v.s.p, n->v.s.n); break;
        case S_PRINT:    v = eval(j, n->a); text_str(j, j->out, v); break;
        case S_IF:       run_if(j, n); break;
        case S_FOR:      run_for(j, n); break;
        case S_SET:      v = eval(j, n->a); if (!j->failed) assign(j, n->b, v); break;
        case S_SET_BLOCK: v = captured(j, n->body, true); assign(j, n->b, n->c ? apply_filter(j, n->c, v) : v); break;
        case S_MACRO:    set_name(j, n->v.s, macro_value(j, n)); break;
        case S_CALL:     run_call(j, n); break;
        case S_FILTER:   v = captured(j, n->body, true); v = apply_filter(j, n->c, v); text_str(j, j->out, v); break;
        case S_WITH:     run_with(j, n); break;
        case S_SCOPE:    run(j, n->body); break;
        case S_BREAK:    j->flow = FLOW_BREAK; break;
        case S_CONTINUE: j->flow = FLOW_CONTINUE; break;
        default: break;
    }
}

static void run(struct jinja *j, const struct node *n) {
    if (++j->depth > JINJA_DEPTH) jinja_fail(j, "nested more than %d deep", JINJA_DEPTH);
    for (; n && j->flow == FLOW_ON && jinja_step(j); n = n->next) {
        if (n->line) j->line = n->line;
        run_one(j, n);
    }
    j->depth--;
}

bool jinja_run(struct jinja *j, const struct node *tree, struct text *out) {
    j->out = out;
    j->scope = scope_open(j, j->globals);               /* templates set names above the globals */
    if (j->scope) run(j, tree);
    return !j->failed;
}
