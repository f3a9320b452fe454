/* The helpers of the builders: results, parameters, refusals. */

#include "build.h"

#include <inttypes.h>
#include <string.h>

static tensor *produced_by(tensor *t, enum ggml_op op, tensor *const *sources) {
    if (!t) return NULL;
    t->op = op;
    memcpy(t->src, sources, sizeof t->src);
    return t;
}

tensor *op_new(context *ctx, enum ggml_op op, enum ggml_type type, const int64_t *ne, tensor *const *sources) {
    return produced_by(tensor_new(ctx, type, GGML_MAX_DIMS, ne, NULL, 0), op, sources);
}

tensor *op_like(context *ctx, enum ggml_op op, tensor *a, bool inplace, tensor *const *sources) {
    return produced_by(inplace ? ggml_view_tensor(ctx, a) : ggml_dup_tensor(ctx, a), op, sources);
}

tensor *op_params(tensor *t, int n, const int32_t *words) {
    if (t) memcpy(t->op_params, words, (size_t) n*sizeof *words);
    return t;
}

void op_refuse(const char *call, const char *rule, tensor *const *operands) {
    char text[1024] = "";
    for (size_t n = 0; *operands && n < sizeof text; operands++) {
        const tensor *t = *operands;
        n += (size_t) snprintf(text + n, sizeof text - n, "%s'%s' %s [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
            "] strides [%zu, %zu, %zu, %zu]", n ? ", " : " for ", t->name, ggml_type_name(t->type), t->ne[0], t->ne[1],
            t->ne[2], t->ne[3], t->nb[0], t->nb[1], t->nb[2], t->nb[3]);
    }
    GGML_ABORT("%s: %s does not hold%s", call, rule, text);
}
