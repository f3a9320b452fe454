/* Builders of the loss and of the optimiser steps. */

#include "build.h"

tensor *ggml_cross_entropy_loss(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_are_same_shape(a, b), a, b);
    return op_new(ctx, GGML_OP_CROSS_ENTROPY_LOSS, a->type, SHAPE(1, 1, 1, 1), SOURCES(a, b));
}

tensor *ggml_cross_entropy_loss_back(context *ctx, tensor *a, tensor *b, tensor *c) {
    if (!a || !b || !c) return NULL;
    REQUIRE(__func__, ggml_is_scalar(a) && ggml_are_same_shape(b, c), a, b, c);
    return op_like(ctx, GGML_OP_CROSS_ENTROPY_LOSS_BACK, b, false, SOURCES(a, b, c));
}

tensor *ggml_opt_step_adamw(context *ctx, tensor *a, tensor *grad, tensor *m, tensor *v, tensor *adamw_params) {
    if (!a || !grad || !m || !v || !adamw_params) return NULL;
    REQUIRE(__func__, a->flags & GGML_TENSOR_FLAG_PARAM, a, grad, m, v, adamw_params);
    REQUIRE(__func__, ggml_are_same_shape(a, grad) && ggml_are_same_shape(a, m) && ggml_are_same_shape(a, v),
            a, grad, m, v, adamw_params);
    REQUIRE(__func__, adamw_params->type == GGML_TYPE_F32 && ggml_nelements(adamw_params) == 7, a, grad, m, v, adamw_params);
    return op_like(ctx, GGML_OP_OPT_STEP_ADAMW, a, true, SOURCES(a, grad, m, v, adamw_params));
}

tensor *ggml_opt_step_sgd(context *ctx, tensor *a, tensor *grad, tensor *sgd_params) {
    if (!a || !grad || !sgd_params) return NULL;
    REQUIRE(__func__, (a->flags & GGML_TENSOR_FLAG_PARAM) && ggml_are_same_shape(a, grad), a, grad, sgd_params);
    REQUIRE(__func__, sgd_params->type == GGML_TYPE_F32 && ggml_nelements(sgd_params) == 2, a, grad, sgd_params);
    return op_like(ctx, GGML_OP_OPT_STEP_SGD, a, true, SOURCES(a, grad, sgd_params));
}
