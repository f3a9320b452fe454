/* Builders of element-wise functions of one tensor. */

#include "build.h"

#include <math.h>

static tensor *map(context *ctx, enum ggml_op op, tensor *a, bool inplace) {
    return a ? op_like(ctx, op, a, inplace, SOURCES(a)) : NULL;
}

#define MAP(name, OP) \
    tensor *ggml_##name          (context *ctx, tensor *a) { return map(ctx, GGML_OP_##OP, a, false); } \
    tensor *ggml_##name##_inplace(context *ctx, tensor *a) { return map(ctx, GGML_OP_##OP, a, true); }
MAP(sqr,  SQR)
MAP(sqrt, SQRT)
MAP(log,  LOG)
MAP(sin,  SIN)
MAP(cos,  COS)

static tensor *unary(const char *call, context *ctx, tensor *a, enum ggml_unary_op op, bool inplace) {
    if (!a) return NULL;
    REQUIRE(call, op >= 0 && op < GGML_UNARY_OP_COUNT, a);
    return PARAMS(map(ctx, GGML_OP_UNARY, a, inplace), (int32_t) op);
}
tensor *ggml_unary(context *ctx, tensor *a, enum ggml_unary_op op) { return unary(__func__, ctx, a, op, false); }
tensor *ggml_unary_inplace(context *ctx, tensor *a, enum ggml_unary_op op) { return unary(__func__, ctx, a, op, true); }

#define UNARY(name, OP) \
    tensor *ggml_##name(context *ctx, tensor *a) { return unary(__func__, ctx, a, GGML_UNARY_OP_##OP, false); }
#define UNARY_INPLACE(name, OP) UNARY(name, OP) \
    tensor *ggml_##name##_inplace(context *ctx, tensor *a) { return unary(__func__, ctx, a, GGML_UNARY_OP_##OP, true); }
UNARY_INPLACE(abs,        ABS)
UNARY_INPLACE(sgn,        SGN)
UNARY_INPLACE(neg,        NEG)
UNARY_INPLACE(step,       STEP)
UNARY_INPLACE(tanh,       TANH)
UNARY_INPLACE(elu,        ELU)
UNARY_INPLACE(relu,       RELU)
UNARY_INPLACE(sigmoid,    SIGMOID)
UNARY_INPLACE(gelu,       GELU)
UNARY_INPLACE(gelu_erf,   GELU_ERF)
UNARY_INPLACE(gelu_quick, GELU_QUICK)
UNARY_INPLACE(silu,       SILU)
UNARY_INPLACE(exp,        EXP)
UNARY_INPLACE(expm1,      EXPM1)
UNARY_INPLACE(softplus,   SOFTPLUS)
UNARY_INPLACE(floor,      FLOOR)
UNARY_INPLACE(ceil,       CEIL)
UNARY_INPLACE(round,      ROUND)
UNARY_INPLACE(trunc,      TRUNC)
UNARY(hardswish,   HARDSWISH)
UNARY(hardsigmoid, HARDSIGMOID)

static float softplus(float x) { return x > 20.0f ? x : (float) log1p(exp((double) x)); }

tensor *ggml_xielu(context *ctx, tensor *a, float alpha_n, float alpha_p, float beta, float eps) {
    return PARAMS(map(ctx, GGML_OP_UNARY, a, false), GGML_UNARY_OP_XIELU, bits(beta + softplus(alpha_n)),
                  bits(softplus(alpha_p)), bits(beta), bits(eps));
}

tensor *ggml_clamp(context *ctx, tensor *a, float min, float max) {
    return PARAMS(map(ctx, GGML_OP_CLAMP, a, false), bits(min), bits(max));
}
tensor *ggml_clamp_inplace(context *ctx, tensor *a, float min, float max) {
    return PARAMS(map(ctx, GGML_OP_CLAMP, a, true), bits(min), bits(max));
}

tensor *ggml_leaky_relu(context *ctx, tensor *a, float negative_slope, bool inplace) {
    return PARAMS(map(ctx, GGML_OP_LEAKY_RELU, a, inplace), bits(negative_slope));
}

tensor *ggml_scale(context *ctx, tensor *a, float s) { return ggml_scale_bias(ctx, a, s, 0.0f); }
tensor *ggml_scale_inplace(context *ctx, tensor *a, float s) { return ggml_scale_bias_inplace(ctx, a, s, 0.0f); }
tensor *ggml_scale_bias(context *ctx, tensor *a, float s, float b) {
    return PARAMS(map(ctx, GGML_OP_SCALE, a, false), bits(s), bits(b));
}
tensor *ggml_scale_bias_inplace(context *ctx, tensor *a, float s, float b) {
    return PARAMS(map(ctx, GGML_OP_SCALE, a, true), bits(s), bits(b));
}

tensor *ggml_fill(context *ctx, tensor *a, float c) { return PARAMS(map(ctx, GGML_OP_FILL, a, false), bits(c)); }
tensor *ggml_fill_inplace(context *ctx, tensor *a, float c) { return PARAMS(map(ctx, GGML_OP_FILL, a, true), bits(c)); }

tensor *ggml_silu_back(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_are_same_shape(a, b) && a->type == b->type, a, b);
    return op_like(ctx, GGML_OP_SILU_BACK, a, false, SOURCES(a, b));
}
