/* Builders of gated linear units. */

#include "build.h"

static tensor *glu(const char *call, context *ctx, tensor *a, tensor *b, enum ggml_glu_op op, bool swapped, float alpha,
                   float limit) {
    REQUIRE(call, op >= 0 && op < GGML_GLU_OP_COUNT, a, b);
    tensor *t;
    if (b) {
        REQUIRE(call, ggml_are_same_shape(a, b) && a->type == b->type, a, b);
        t = op_like(ctx, GGML_OP_GLU, a, false, SOURCES(a, b));
    } else {
        t = op_new(ctx, GGML_OP_GLU, a->type, SHAPE(a->ne[0]/2, a->ne[1], a->ne[2], a->ne[3]), SOURCES(a));
    }
    return PARAMS(t, (int32_t) op, swapped, bits(alpha), bits(limit));
}

static tensor *glu_split(const char *call, context *ctx, tensor *a, tensor *b, enum ggml_glu_op op) {
    return a && b ? glu(call, ctx, a, b, op, false, 0.0f, 0.0f) : NULL;
}

tensor *ggml_glu(context *ctx, tensor *a, enum ggml_glu_op op, bool swapped) {
    return a ? glu(__func__, ctx, a, NULL, op, swapped, 0.0f, 0.0f) : NULL;
}
tensor *ggml_glu_split(context *ctx, tensor *a, tensor *b, enum ggml_glu_op op) {
    return glu_split(__func__, ctx, a, b, op);
}

#define GLU(name, OP) \
    tensor *ggml_##name          (context *ctx, tensor *a) { return ggml_glu(ctx, a, GGML_GLU_OP_##OP, false); } \
    tensor *ggml_##name##_swapped(context *ctx, tensor *a) { return ggml_glu(ctx, a, GGML_GLU_OP_##OP, true); } \
    tensor *ggml_##name##_split  (context *ctx, tensor *a, tensor *b) { \
        return glu_split(__func__, ctx, a, b, GGML_GLU_OP_##OP); \
    }
GLU(reglu,       REGLU)
GLU(geglu,       GEGLU)
GLU(swiglu,      SWIGLU)
GLU(geglu_erf,   GEGLU_ERF)
GLU(geglu_quick, GEGLU_QUICK)

tensor *ggml_swiglu_oai(context *ctx, tensor *a, tensor *b, float alpha, float limit) {
    return a && b ? glu(__func__, ctx, a, b, GGML_GLU_OP_SWIGLU_OAI, false, alpha, limit) : NULL;
}
tensor *ggml_swiglu_clamp(context *ctx, tensor *a, tensor *b, float limit) {
    return a && b ? glu(__func__, ctx, a, b, GGML_GLU_OP_SWIGLU_CLAMP, false, 0.0f, limit) : NULL;
}
