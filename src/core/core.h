#ifndef CORE_H
#define CORE_H
/* What the modules of the library share and programs do not see: the arena, the graph, checked sizes, the log.
 *
 * Errors. A wrong call by the program ends in GGML_ABORT with the call, the tensors, their shapes and types.
 * Anything from outside (bytes, memory, devices) is a value: NULL, false or a status, after one line of log. A NULL tensor
 * flows through every builder: a builder that is handed a NULL operand it needs returns NULL. */

#include "ggml.h"

/* ---- checked sizes ---------------------------------------------------------------------------------------------- */

/* r = a + b or a * b; false, with *r untouched, when the result does not fit. */
static inline bool size_add(size_t *r, size_t a, size_t b) { if (b > SIZE_MAX - a) return false; *r = a + b; return true; }
static inline bool size_mul(size_t *r, size_t a, size_t b) { if (a && b > SIZE_MAX/a) return false; *r = a*b; return true; }
/* r = a rounded up to a multiple of the power of two n. */
static inline bool size_pad(size_t *r, size_t a, size_t n) {
    if (a > SIZE_MAX - (n - 1)) return false;
    *r = (a + n - 1) & ~(n - 1);
    return true;
}
/* The product of n dimensions, each >= 0; false when one is negative or the product does not fit int64. */
bool dims_product(const int64_t *ne, int n, int64_t *product);

/* ---- log -------------------------------------------------------------------------------------------------------- */

GGML_API void ggml_log_internal(enum ggml_log_level level, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);
#define LOG_INFO(...)  ggml_log_internal(GGML_LOG_LEVEL_INFO,  __VA_ARGS__)
#define LOG_WARN(...)  ggml_log_internal(GGML_LOG_LEVEL_WARN,  __VA_ARGS__)
#define LOG_ERROR(...) ggml_log_internal(GGML_LOG_LEVEL_ERROR, __VA_ARGS__)

/* ---- arena ------------------------------------------------------------------------------------------------------ */

/* A context is one block; objects lie in it one after the other, each behind this header, nothing is freed singly. */
struct ggml_object {
    size_t              offs;   /* of the payload, from the start of the block */
    size_t              size;   /* of the payload, a multiple of GGML_MEM_ALIGN */
    struct ggml_object *next;
    enum ggml_object_type type;
    char                padding[4];
};

/* A new tensor of `n_dims` dimensions in the arena; with `view_src` a view of its root, `view_offs` bytes in.
 * NULL after one line of log when the arena is full or a size does not fit; aborts on an invalid type. */
struct ggml_tensor *tensor_new(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne,
                               struct ggml_tensor *view_src, size_t view_offs);

/* op_params as numbers: `i` counts 32-bit words. */
static inline int32_t param_i32(const struct ggml_tensor *t, int i) { return t->op_params[i]; }
static inline float   param_f32(const struct ggml_tensor *t, int i) {
    union { int32_t i; float f; } u = { .i = t->op_params[i] };
    return u.f;
}
static inline void param_set_i32(struct ggml_tensor *t, int i, int32_t v) { t->op_params[i] = v; }
static inline void param_set_f32(struct ggml_tensor *t, int i, float v) {
    union { float f; int32_t i; } u = { .f = v };
    t->op_params[i] = u.i;
}

/* ---- op facts (ops.def) ------------------------------------------------------------------------------------------ */

GGML_API bool ggml_op_can_inplace(enum ggml_op op);      /* the result may take a source's place (alias 1) */
bool op_can_inplace(enum ggml_op op, bool host);         /* the same, in host memory or elsewhere (alias 1 or 3) */
bool op_is_view(enum ggml_op op);                        /* never computed (alias 2) */

/* ---- graph ------------------------------------------------------------------------------------------------------ */

/* An open-addressing set of tensor pointers; `used` has a bit per slot. */
struct ggml_hash_set {
    size_t               size;
    uint32_t            *used;
    struct ggml_tensor **keys;
};

#define HASH_FULL   ((size_t) -1)
#define HASH_EXISTS ((size_t) -2)

GGML_API struct ggml_hash_set ggml_hash_set_new(size_t size);   /* keys NULL when out of memory */
GGML_API void   ggml_hash_set_free(struct ggml_hash_set *set);
GGML_API void   ggml_hash_set_reset(struct ggml_hash_set *set);
GGML_API size_t ggml_hash_size(size_t min_size);                /* the capacity used for min_size keys */
size_t hash_find(const struct ggml_hash_set *set, const struct ggml_tensor *key);   /* slot of key or a free one; HASH_FULL */
size_t hash_insert(struct ggml_hash_set *set, struct ggml_tensor *key);             /* slot; HASH_EXISTS; HASH_FULL */
bool   hash_contains(const struct ggml_hash_set *set, const struct ggml_tensor *key);
static inline bool hash_used(const struct ggml_hash_set *set, size_t i) { return set->used[i/32] >> i%32 & 1; }

/* In which order the sources of a tensor are visited, and whether building the graph failed (a bit). */
enum graph_order { GRAPH_LEFT_TO_RIGHT = 0, GRAPH_RIGHT_TO_LEFT = 1, GRAPH_UNUSABLE = 2 };

/* The layout is part of the plugin ABI (96 bytes). */
struct ggml_cgraph {
    int                  size;          /* capacity of nodes and of leafs */
    int                  n_nodes;
    int                  n_leafs;
    struct ggml_tensor **nodes;         /* [size] in the order of computing */
    struct ggml_tensor **grads;         /* [hash size] or NULL */
    struct ggml_tensor **grad_accs;     /* [hash size] or NULL */
    struct ggml_tensor **leafs;         /* [size] */
    int32_t             *use_counts;    /* [hash size]: edges from each visited tensor */
    struct ggml_hash_set visited_hash_set;
    enum graph_order     order;
    uint64_t             uid;           /* non-zero and equal: the same graph as last time */
};

/* False for NULL and for a graph that could not be built in full (too many nodes, a NULL tensor): computing or allocating
 * it returns GGML_STATUS_ALLOC_FAILED or false. Clearing the graph makes it usable again; a view or a copy inherits it. */
bool graph_ok(const struct ggml_cgraph *g);
void graph_give_up(struct ggml_cgraph *g, const char *why);     /* make it one, with a line of log the first time */

GGML_API struct ggml_cgraph ggml_graph_view(struct ggml_cgraph *graph, int i0, int i1);  /* nodes i0..i1-1, sharing storage */
static inline int graph_uses(const struct ggml_cgraph *g, const struct ggml_tensor *t) {
    const size_t i = hash_find(&g->visited_hash_set, t);
    return i == HASH_FULL || !hash_used(&g->visited_hash_set, i) ? 0 : g->use_counts[i];
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

GGML_API void *ggml_aligned_malloc(size_t size);         /* 64-aligned; NULL when out of memory */
GGML_API void  ggml_aligned_free(void *p, size_t size);
GGML_API void  ggml_critical_section_start(void);        /* the library's one lock, for process-wide tables */
GGML_API void  ggml_critical_section_end(void);

#endif
