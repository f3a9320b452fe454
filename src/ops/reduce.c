/* Builders of sums, counts, choices and orders, and of their counterparts: repetition, concatenation, sequences. */

#include "build.h"

#include <math.h>

tensor *ggml_sum(context *ctx, tensor *a) {
    return a ? op_new(ctx, GGML_OP_SUM, a->type, SHAPE(1, 1, 1, 1), SOURCES(a)) : NULL;
}
tensor *ggml_sum_rows(context *ctx, tensor *a) {
    return a ? op_new(ctx, GGML_OP_SUM_ROWS, a->type, SHAPE(1, a->ne[1], a->ne[2], a->ne[3]), SOURCES(a)) : NULL;
}
tensor *ggml_mean(context *ctx, tensor *a) {
    return a ? op_new(ctx, GGML_OP_MEAN, GGML_TYPE_F32, SHAPE(1, a->ne[1], a->ne[2], a->ne[3]), SOURCES(a)) : NULL;
}

tensor *ggml_cumsum(context *ctx, tensor *a) {
    if (!a) return NULL;
    REQUIRE(__func__, a->type == GGML_TYPE_F32, a);
    return op_like(ctx, GGML_OP_CUMSUM, a, false, SOURCES(a));
}

tensor *ggml_argmax(context *ctx, tensor *a) {
    if (!a) return NULL;
    REQUIRE(__func__, ggml_is_matrix(a) && a->ne[0] <= INT32_MAX, a);
    return op_new(ctx, GGML_OP_ARGMAX, GGML_TYPE_I32, SHAPE(a->ne[1], 1, 1, 1), SOURCES(a));
}

tensor *ggml_count_equal(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_are_same_shape(a, b), a, b);
    return op_new(ctx, GGML_OP_COUNT_EQUAL, GGML_TYPE_I64, SHAPE(1, 1, 1, 1), SOURCES(a, b));
}

/* ---- repetition ---------------------------------------------------------------------------------------------------- */

static tensor *repeat(const char *call, context *ctx, tensor *a, const int64_t *ne) {
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        REQUIRE(call, ggml_is_empty(a) || divides(a->ne[d], ne[d]), a);
    }
    return op_new(ctx, GGML_OP_REPEAT, a->type, ne, SOURCES(a));
}
tensor *ggml_repeat(context *ctx, tensor *a, tensor *b) { return a && b ? repeat(__func__, ctx, a, b->ne) : NULL; }
tensor *ggml_repeat_4d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return a ? repeat(__func__, ctx, a, SHAPE(ne0, ne1, ne2, ne3)) : NULL;
}

tensor *ggml_repeat_back(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_can_repeat(b, a), a, b);
    return op_new(ctx, GGML_OP_REPEAT_BACK, a->type, b->ne, SOURCES(a));
}

tensor *ggml_concat(context *ctx, tensor *a, tensor *b, int dim) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, dim >= 0 && dim < GGML_MAX_DIMS && a->type == b->type, a, b);
    int64_t ne[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        REQUIRE(__func__, d == dim || same_ne(a, d, b, d), a, b);
        ne[d] = d == dim ? a->ne[d] + b->ne[d] : a->ne[d];
    }
    REQUIRE(__func__, dim != 0 || divides(ggml_blck_size(a->type), a->ne[0]), a, b);
    REQUIRE(__func__, divides(ggml_blck_size(a->type), ne[0]), a, b);
    return PARAMS(op_new(ctx, GGML_OP_CONCAT, a->type, ne, SOURCES(a, b)), dim);
}

/* ---- sequences ----------------------------------------------------------------------------------------------------- */

tensor *ggml_arange(context *ctx, float start, float stop, float step) {
    const float steps = ceilf((stop - start)/step);
    REQUIRE(__func__, stop > start && steps > 0.0f && steps <= (float) INT32_MAX, NULL);
    return PARAMS(op_new(ctx, GGML_OP_ARANGE, GGML_TYPE_F32, SHAPE((int64_t) steps, 1, 1, 1), SOURCES(NULL)),
                  bits(start), bits(stop), bits(step));
}

tensor *ggml_timestep_embedding(context *ctx, tensor *timesteps, int dim, int max_period) {
    if (!timesteps) return NULL;
    REQUIRE(__func__, ggml_is_vector(timesteps) && dim >= 0 && max_period > 0, timesteps);
    return PARAMS(op_new(ctx, GGML_OP_TIMESTEP_EMBEDDING, GGML_TYPE_F32, SHAPE(dim, timesteps->ne[0], 1, 1),
                         SOURCES(timesteps)), dim, max_period);
}

/* ---- order --------------------------------------------------------------------------------------------------------- */

tensor *ggml_argsort(context *ctx, tensor *a, enum ggml_sort_order order) {
    if (!a) return NULL;
    REQUIRE(__func__, a->ne[0] <= INT32_MAX && (order == GGML_SORT_ORDER_ASC || order == GGML_SORT_ORDER_DESC), a);
    return PARAMS(op_new(ctx, GGML_OP_ARGSORT, GGML_TYPE_I32, a->ne, SOURCES(a)), (int32_t) order);
}

tensor *ggml_top_k(context *ctx, tensor *a, int k) {
    if (!a) return NULL;
    REQUIRE(__func__, k >= 0 && k <= a->ne[0] && a->ne[0] <= INT32_MAX, a);
    return op_new(ctx, GGML_OP_TOP_K, GGML_TYPE_I32, SHAPE(k, a->ne[1], a->ne[2], a->ne[3]), SOURCES(a));
}

tensor *ggml_argsort_top_k(context *ctx, tensor *a, int k) {
    if (!a) return NULL;
    REQUIRE(__func__, k >= 0 && k <= a->ne[0], a);
    tensor *order = ggml_argsort(ctx, a, GGML_SORT_ORDER_DESC);
    return order ? ggml_view_4d(ctx, order, k, order->ne[1], order->ne[2], order->ne[3], order->nb[1], order->nb[2],
                                order->nb[3], 0) : NULL;
}
