#ifndef BUILD_H
#define BUILD_H
/* What the builders share. A builder checks its operands, makes the result and notes op, parameters and sources in it; it
 * computes nothing. A required operand that is NULL makes the result NULL (the arena was full further up); a call that
 * breaks a rule stops with one line that names the call, the rule and the operands. Rules are about shapes and types: any
 * layout that a shape allows is accepted unless the op's meaning depends on it. */

#include "core.h"

typedef struct ggml_tensor  tensor;
typedef struct ggml_context context;

#define SHAPE(n0, n1, n2, n3) ((const int64_t[GGML_MAX_DIMS]) { n0, n1, n2, n3 })
#define SOURCES(...)          ((tensor *const[GGML_MAX_SRC + 1]) { __VA_ARGS__ })

/* A result of its own with `ne` elements, packed. NULL when the arena is full. */
tensor *op_new(context *ctx, enum ggml_op op, enum ggml_type type, const int64_t *ne, tensor *const *sources);
/* A result of the type and shape of `a`: its own and packed, or a view of `a`. */
tensor *op_like(context *ctx, enum ggml_op op, tensor *a, bool inplace, tensor *const *sources);

/* op_params from slot 0; floats by their bits. Both accept and return a NULL tensor. */
tensor *op_params(tensor *t, int n, const int32_t *words);
static inline int32_t bits(float f) { union { float f; int32_t i; } u = { .f = f }; return u.i; }
#define PARAMS(t, ...) op_params(t, (int) (sizeof((const int32_t[]) { __VA_ARGS__ })/sizeof(int32_t)), \
                                 (const int32_t[]) { __VA_ARGS__ })

/* Stop unless the rule holds for the operands of `call`. */
#define REQUIRE(call, rule, ...) \
    do { if (!(rule)) op_refuse(call, #rule, SOURCES(__VA_ARGS__)); } while (0)
void op_refuse(const char *call, const char *rule, tensor *const *operands);

static inline bool same_ne(const tensor *a, int i, const tensor *b, int j) { return a->ne[i] == b->ne[j]; }
static inline bool divides(int64_t n, int64_t whole) { return n != 0 ? whole % n == 0 : whole == 0; }
static inline bool float_type(const tensor *a) {
    return a->type == GGML_TYPE_F32 || a->type == GGML_TYPE_F16 || a->type == GGML_TYPE_BF16;
}

#endif
