/* Builders of normalisations over rows or groups of channels. */

#include "build.h"

static tensor *norm(const char *call, context *ctx, enum ggml_op op, tensor *a, float eps, bool inplace) {
    if (!a) return NULL;
    REQUIRE(call, eps >= 0.0f, a);
    return PARAMS(op_like(ctx, op, a, inplace, SOURCES(a)), bits(eps));
}

#define NORM(name, OP) \
    tensor *ggml_##name(context *ctx, tensor *a, float eps) { \
        return norm(__func__, ctx, GGML_OP_##OP, a, eps, false); \
    } \
    tensor *ggml_##name##_inplace(context *ctx, tensor *a, float eps) { \
        return norm(__func__, ctx, GGML_OP_##OP, a, eps, true); \
    }
NORM(norm,     NORM)
NORM(rms_norm, RMS_NORM)
NORM(l2_norm,  L2_NORM)

static tensor *group_norm(const char *call, context *ctx, tensor *a, int n_groups, float eps, bool inplace) {
    if (!a) return NULL;
    REQUIRE(call, n_groups > 0 && eps >= 0.0f, a);
    return PARAMS(op_like(ctx, GGML_OP_GROUP_NORM, a, inplace, SOURCES(a)), n_groups, bits(eps));
}
tensor *ggml_group_norm(context *ctx, tensor *a, int n_groups, float eps) {
    return group_norm(__func__, ctx, a, n_groups, eps, false);
}
tensor *ggml_group_norm_inplace(context *ctx, tensor *a, int n_groups, float eps) {
    return group_norm(__func__, ctx, a, n_groups, eps, true);
}

tensor *ggml_rms_norm_back(context *ctx, tensor *a, tensor *b, float eps) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_are_same_shape(a, b) && eps >= 0.0f, a, b);
    return PARAMS(op_like(ctx, GGML_OP_RMS_NORM_BACK, a, false, SOURCES(a, b)), bits(eps));
}
