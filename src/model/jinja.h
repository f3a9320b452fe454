#ifndef JINJA_H
#define JINJA_H
/* A small interpreter of the Jinja template language, as chat templates use it: Python's semantics of values, the sandboxed
 * environment that such templates are written for (trim_blocks, lstrip_blocks, loop controls, raise_exception,
 * strftime_now), nothing that reaches outside. Language: https://jinja.palletsprojects.com/en/stable/templates/
 *
 * A template is untrusted. Everything lives in one arena with a bound; steps, nesting and output have bounds too. The first
 * error is kept in `error`; after it every function returns an undefined value at once, so callers need not ask in between.
 *
 *   jinja_value.c    arena, values, text of values, comparing, JSON
 *   jinja_parse.c    source -> tree
 *   jinja_eval.c     tree -> text
 *   jinja_method.c   arguments; methods of values, in a table
 *   jinja_builtin.c  filters, tests and global functions, each in a table */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml.h"

enum kind { UNDEFINED, NONE, BOOL, INT, FLOAT, STRING, LIST, TUPLE, DICT, NAMESPACE, FUNCTION };

struct jinja;
struct value;
struct args;
struct node;
typedef struct value (*builtin)(struct jinja *j, struct value self, const struct args *a);
#define BUILTIN(name) struct value name(struct jinja *j, struct value self, const struct args *a)
#define UNUSED_ARGS (void) a

struct str  { const char *p; size_t n; };                           /* UTF-8, not terminated */
struct list { struct value *items; size_t n, room; };
struct dict { struct value *keys, *values; size_t n, room; };       /* in the order of insertion */
struct func { struct str name; builtin run; struct value *self; const struct node *macro; struct scope *scope; };

struct value {
    enum kind kind;
    union {
        bool         b;
        int64_t      i;
        double       f;
        struct str   s;             /* STRING; UNDEFINED: what was looked for, for the error */
        struct list *l;             /* LIST, TUPLE */
        struct dict *d;             /* DICT, NAMESPACE */
        struct func *fn;
    };
};

/* Arguments of a call: positional, then by name. */
struct args { struct value *items; size_t n; struct str *names; struct value *named; size_t n_named; };

struct scope { struct dict vars; struct scope *parent; };

enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE };

struct jinja {
    struct chunk *chunks;           /* the arena */
    size_t        memory, steps;
    int           depth, line;
    bool          failed;
    char          error[256];
    struct text  *out;              /* where printing goes */
    struct scope *scope, *globals;
    enum flow     flow;
    int64_t       now;              /* seconds since 1970 for strftime_now, UTC */
};

struct text { char *p; size_t n, room; };           /* growing text in the arena */

enum {                                              /* bounds, and why */
    JINJA_MEMORY = 256 << 20,                       /* templates that append to a string copy it each time */
    JINJA_OUTPUT = 64 << 20,
    JINJA_STEPS  = 20000000,                        /* about a second */
    JINJA_DEPTH  = 400,                             /* nesting of the tree and of macro calls; keeps the C stack small */
};

/* jinja_value.c */
void         jinja_fail(struct jinja *j, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
bool         jinja_step(struct jinja *j);                           /* false: failed, or too many steps */
void        *jinja_alloc(struct jinja *j, size_t size);             /* zeroed; NULL after failing */
void         jinja_free(struct jinja *j);                           /* the arena */
bool         text_add(struct jinja *j, struct text *t, const char *p, size_t n);
bool         text_str(struct jinja *j, struct text *t, struct value v);                 /* as Python's str */
bool         text_repr(struct jinja *j, struct text *t, struct value v);                /* as Python's repr */
bool         text_json(struct jinja *j, struct text *t, struct value v, int indent, int level, bool ascii);
struct value v_str(const char *p, size_t n);
struct value v_cstr(const char *p);
struct value v_text(const struct text *t);
struct value v_int(int64_t i);
struct value v_bool(bool b);
struct value v_float(double f);
struct value v_none(void);
struct value v_undefined(const char *p, size_t n);
struct value v_list(struct jinja *j, enum kind kind, size_t room);
struct value v_dict(struct jinja *j, enum kind kind);
bool         list_add(struct jinja *j, struct list *l, struct value v);
bool         dict_set(struct jinja *j, struct dict *d, struct value key, struct value v);
struct value *dict_get(struct jinja *j, const struct dict *d, struct value key);        /* NULL: not there */
bool         is_true(struct value v);
bool         is_number(struct value v);                             /* BOOL counts, as in Python */
double       as_float(struct value v);
bool         equal(struct jinja *j, struct value a, struct value b);
int          compare(struct jinja *j, struct value a, struct value b);                  /* -1, 0, 1; fails on kinds without order */
bool         str_is(struct str s, const char *text);
size_t       utf8_length(const char *p, size_t n);                  /* code points */
size_t       utf8_offset(const char *p, size_t n, size_t i);        /* byte offset of code point i */
struct value value_list(struct jinja *j, struct value v);           /* what iterating over v gives: a LIST */
const char  *kind_name(enum kind kind);

/* jinja_parse.c */
enum node_kind {
    E_CONST, E_NAME, E_LIST, E_TUPLE, E_DICT, E_ATTR, E_INDEX, E_SLICE, E_CALL, E_FILTER, E_TEST, E_UNARY, E_BINARY,
    E_AND, E_OR, E_NOT, E_COMPARE, E_COND,
    S_TEXT, S_PRINT, S_IF, S_FOR, S_SET, S_SET_BLOCK, S_MACRO, S_CALL, S_FILTER, S_WITH, S_BREAK, S_CONTINUE, S_SCOPE,
};

struct node {
    enum node_kind kind;
    int            line;
    char           op;              /* E_UNARY, E_BINARY: one of + - * / % ~ and D (//), P (**) */
    struct value   v;               /* E_CONST; the name in E_NAME, E_ATTR, E_FILTER, E_TEST, S_MACRO; the text of S_TEXT */
    struct node   *a, *b, *c;       /* operands; a: condition, iterable or value of a statement; b: target, or
                                     * the `elif` of S_IF; c: condition of S_FOR, filters of blocks */
    struct node  **items;           /* elements, arguments, operands; E_DICT: key and value in turn; S_WITH: target and value */
    struct str    *names;           /* E_CALL and friends: names of arguments, p NULL when positional; E_COMPARE: operators */
    size_t         n;
    struct node   *body, *orelse;   /* statements */
    struct node   *next;            /* the statement after this one */
};

struct node *jinja_parse(struct jinja *j, const char *source, size_t n);
struct value jinja_parse_json(struct jinja *j, const char *source, size_t n);

/* jinja_eval.c */
bool         jinja_run(struct jinja *j, const struct node *tree, struct text *out);
struct value jinja_call(struct jinja *j, struct value callee, const struct args *a);
struct value value_attr(struct jinja *j, struct value v, struct str name);              /* v.name */
struct value value_item(struct jinja *j, struct value v, struct value key);             /* v[key] */

/* jinja_method.c */
const struct value *arg_find(const struct args *a, size_t i, const char *name);         /* the i-th or the named; NULL: not given */
struct value arg_or(const struct args *a, size_t i, const char *name, struct value otherwise);
struct str   arg_str(struct jinja *j, const struct args *a, size_t i, const char *name, const char *otherwise);
int64_t      arg_int(struct jinja *j, const struct args *a, size_t i, const char *name, int64_t otherwise);
struct value value_str(struct jinja *j, struct value v);            /* as Python's str */
struct value str_strip(struct value v, const struct str *set, int sides);               /* white space: set NULL; left 1, right 2 */
size_t       str_find(struct str s, struct str what, size_t from);  /* first place from byte `from`; s.n + 1: none */
struct value str_replace(struct jinja *j, struct str s, struct str old, struct str new, int64_t count);
struct value str_split_white(struct jinja *j, struct str s, int64_t most);
struct value str_cased(struct jinja *j, struct value v, int (*first)(int), int (*rest)(int), bool words);
bool         str_all(struct str s, int (*is)(int));                 /* not empty, and ASCII of this class */
void         list_reverse(struct list *l);
builtin      method_find(enum kind kind, struct str name);
BUILTIN(method_strip);
BUILTIN(method_upper);
BUILTIN(method_lower);
BUILTIN(method_capitalize);
BUILTIN(method_isupper);
BUILTIN(method_islower);
BUILTIN(method_items);

/* jinja_builtin.c */
builtin      filter_find(struct str name);
struct value filter_call(struct jinja *j, struct str name, struct value v, const struct args *a);
bool         test_call(struct jinja *j, struct str name, struct value v, const struct args *a);
void         globals_add(struct jinja *j);

#endif
