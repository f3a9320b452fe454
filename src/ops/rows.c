/* Builders of row gather and scatter, diagonals and triangular masks. */

#include "build.h"

tensor *ggml_get_rows(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, same_ne(a, 2, b, 1) && same_ne(a, 3, b, 2) && b->ne[3] == 1 && b->type == GGML_TYPE_I32, a, b);
    const enum ggml_type type = a->type == GGML_TYPE_I32 ? GGML_TYPE_I32 : GGML_TYPE_F32;
    return op_new(ctx, GGML_OP_GET_ROWS, type, SHAPE(a->ne[0], b->ne[0], b->ne[1], b->ne[2]), SOURCES(a, b));
}

tensor *ggml_get_rows_back(context *ctx, tensor *a, tensor *b, tensor *c) {
    if (!a || !b || !c) return NULL;
    REQUIRE(__func__, ggml_is_matrix(a) && ggml_is_vector(b) && b->type == GGML_TYPE_I32, a, b, c);
    REQUIRE(__func__, ggml_is_matrix(c) && same_ne(a, 0, c, 0) && same_ne(a, 1, b, 0), a, b, c);
    return op_new(ctx, GGML_OP_GET_ROWS_BACK, GGML_TYPE_F32, c->ne, SOURCES(a, b));
}

tensor *ggml_set_rows(context *ctx, tensor *a, tensor *b, tensor *c) {
    if (!a || !b || !c) return NULL;
    REQUIRE(__func__, same_ne(a, 0, b, 0) && same_ne(a, 2, b, 2) && same_ne(a, 3, b, 3), a, b, c);
    REQUIRE(__func__, same_ne(b, 1, c, 0) && divides(c->ne[1], b->ne[2]) && divides(c->ne[2], b->ne[3]), a, b, c);
    REQUIRE(__func__, c->ne[3] == 1 && (c->type == GGML_TYPE_I64 || c->type == GGML_TYPE_I32), a, b, c);
    REQUIRE(__func__, b->type == GGML_TYPE_F32 || b->type == GGML_TYPE_F16, a, b, c);
    return op_like(ctx, GGML_OP_SET_ROWS, a, true, SOURCES(b, c, a));
}

tensor *ggml_diag(context *ctx, tensor *a) {
    if (!a) return NULL;
    REQUIRE(__func__, a->ne[1] == 1, a);
    return op_new(ctx, GGML_OP_DIAG, a->type, SHAPE(a->ne[0], a->ne[0], a->ne[2], a->ne[3]), SOURCES(a));
}

static tensor *diag_mask(context *ctx, enum ggml_op op, tensor *a, int n_past, bool inplace) {
    return a ? PARAMS(op_like(ctx, op, a, inplace, SOURCES(a)), n_past) : NULL;
}
tensor *ggml_diag_mask_inf(context *ctx, tensor *a, int n_past) {
    return diag_mask(ctx, GGML_OP_DIAG_MASK_INF, a, n_past, false);
}
tensor *ggml_diag_mask_inf_inplace(context *ctx, tensor *a, int n_past) {
    return diag_mask(ctx, GGML_OP_DIAG_MASK_INF, a, n_past, true);
}
tensor *ggml_diag_mask_zero(context *ctx, tensor *a, int n_past) {
    return diag_mask(ctx, GGML_OP_DIAG_MASK_ZERO, a, n_past, false);
}
tensor *ggml_diag_mask_zero_inplace(context *ctx, tensor *a, int n_past) {
    return diag_mask(ctx, GGML_OP_DIAG_MASK_ZERO, a, n_past, true);
}

tensor *ggml_tri(context *ctx, tensor *a, enum ggml_tri_type type) {
    if (!a) return NULL;
    REQUIRE(__func__, a->type == GGML_TYPE_F32 && same_ne(a, 0, a, 1) && type >= 0 && type <= GGML_TRI_TYPE_LOWER, a);
    return PARAMS(op_like(ctx, GGML_OP_TRI, a, false, SOURCES(a)), (int32_t) type);
}
