/* Builders of softmax with mask, position bias and sinks. */

#include "build.h"

static tensor *soft_max(const char *call, context *ctx, tensor *a, tensor *mask, float scale, float max_bias, bool inplace) {
    if (!a) return NULL;
    REQUIRE(call, !(max_bias > 0.0f) || mask, a);
    if (mask) {
        REQUIRE(call, mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32, a, mask);
        REQUIRE(call, same_ne(a, 0, mask, 0) && mask->ne[1] >= a->ne[1], a, mask);
        REQUIRE(call, divides(mask->ne[2], a->ne[2]) && divides(mask->ne[3], a->ne[3]), a, mask);
    }
    return PARAMS(op_like(ctx, GGML_OP_SOFT_MAX, a, inplace, SOURCES(a, mask)), bits(scale), bits(max_bias));
}
tensor *ggml_soft_max(context *ctx, tensor *a) { return soft_max(__func__, ctx, a, NULL, 1.0f, 0.0f, false); }
tensor *ggml_soft_max_inplace(context *ctx, tensor *a) { return soft_max(__func__, ctx, a, NULL, 1.0f, 0.0f, true); }
tensor *ggml_soft_max_ext(context *ctx, tensor *a, tensor *mask, float scale, float max_bias) {
    return soft_max(__func__, ctx, a, mask, scale, max_bias, false);
}
tensor *ggml_soft_max_ext_inplace(context *ctx, tensor *a, tensor *mask, float scale, float max_bias) {
    return soft_max(__func__, ctx, a, mask, scale, max_bias, true);
}

void ggml_soft_max_add_sinks(tensor *a, tensor *sinks) {
    if (!a) return;
    REQUIRE(__func__, a->op == GGML_OP_SOFT_MAX, a, sinks);
    if (sinks) REQUIRE(__func__, sinks->type == GGML_TYPE_F32 && same_ne(sinks, 0, a->src[0], 2), a, sinks);
    a->src[2] = sinks;
}

static tensor *soft_max_back(const char *call, context *ctx, tensor *a, tensor *b, float scale, float max_bias, bool inplace) {
    if (!a || !b) return NULL;
    REQUIRE(call, ggml_are_same_shape(a, b), a, b);
    return PARAMS(op_like(ctx, GGML_OP_SOFT_MAX_BACK, a, inplace, SOURCES(a, b)), bits(scale), bits(max_bias));
}
tensor *ggml_soft_max_ext_back(context *ctx, tensor *a, tensor *b, float scale, float max_bias) {
    return soft_max_back(__func__, ctx, a, b, scale, max_bias, false);
}
tensor *ggml_soft_max_ext_back_inplace(context *ctx, tensor *a, tensor *b, float scale, float max_bias) {
    return soft_max_back(__func__, ctx, a, b, scale, max_bias, true);
}
