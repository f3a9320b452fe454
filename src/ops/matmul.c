/* Builders of matrix products, their precision hints, and the triangular solver. */

#include "build.h"

enum { ACC_PREC = 0, HINT = 1, SRC1_PREC = 3, ATTENTION_PREC = 3 };     /* slots of op_params */

/* Slices of b share slices of a in dims 2 and 3. */
static bool slices_match(const tensor *a, const tensor *b) {
    return divides(a->ne[2], b->ne[2]) && divides(a->ne[3], b->ne[3]);
}

/* Rows of weights lie at growing addresses. */
static bool in_order(const tensor *a) { return ggml_is_empty(a) || !ggml_is_transposed(a); }

tensor *ggml_mul_mat(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, same_ne(a, 0, b, 0) && slices_match(a, b), a, b);
    REQUIRE(__func__, in_order(a), a, b);
    return op_new(ctx, GGML_OP_MUL_MAT, GGML_TYPE_F32, SHAPE(a->ne[1], b->ne[1], b->ne[2], b->ne[3]), SOURCES(a, b));
}

tensor *ggml_mul_mat_id(context *ctx, tensor *as, tensor *b, tensor *ids) {
    if (!as || !b || !ids) return NULL;
    REQUIRE(__func__, same_ne(as, 0, b, 0) && in_order(as), as, b, ids);
    REQUIRE(__func__, ggml_is_3d(as) && ggml_is_3d(b) && ggml_is_matrix(ids), as, b, ids);
    REQUIRE(__func__, ids->type == GGML_TYPE_I32 && same_ne(ids, 1, b, 2) && divides(b->ne[1], ids->ne[0]), as, b, ids);
    return op_new(ctx, GGML_OP_MUL_MAT_ID, GGML_TYPE_F32, SHAPE(as->ne[1], ids->ne[0], b->ne[2], 1),
                  SOURCES(as, b, ids));
}

tensor *ggml_out_prod(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, same_ne(a, 1, b, 1) && slices_match(a, b), a, b);
    REQUIRE(__func__, in_order(a), a, b);
    return op_new(ctx, GGML_OP_OUT_PROD, GGML_TYPE_F32, SHAPE(a->ne[0], b->ne[0], b->ne[2], b->ne[3]), SOURCES(a, b));
}

bool ggml_prec_set_acc(tensor *a, enum ggml_prec prec) {
    if (!a) return false;
    switch (a->op) {
        case GGML_OP_MUL_MAT:
        case GGML_OP_MUL_MAT_ID:     param_set_i32(a, ACC_PREC,       (int32_t) prec); return true;
        case GGML_OP_FLASH_ATTN_EXT: param_set_i32(a, ATTENTION_PREC, (int32_t) prec); return true;
        default:                     return false;
    }
}

bool ggml_prec_set_src(tensor *a, enum ggml_prec prec, int idx) {
    REQUIRE(__func__, idx >= 0 && idx < GGML_MAX_SRC, a);
    if (!a || (a->op != GGML_OP_MUL_MAT && a->op != GGML_OP_MUL_MAT_ID) || idx != 1) return false;
    param_set_i32(a, SRC1_PREC, (int32_t) prec);
    return true;
}

void ggml_mul_mat_set_prec(tensor *a, enum ggml_prec prec) {
    if (!a) return;
    REQUIRE(__func__, a->op == GGML_OP_MUL_MAT, a);
    param_set_i32(a, ACC_PREC, (int32_t) prec);
}

void ggml_mul_mat_set_hint(tensor *a, enum ggml_op_hint hint) {
    if (!a) return;
    REQUIRE(__func__, a->op == GGML_OP_MUL_MAT, a);
    param_set_i32(a, HINT, (int32_t) hint);
}

tensor *ggml_solve_tri(context *ctx, tensor *a, tensor *b, bool left, bool lower, bool uni) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, left && lower && !uni, a, b);
    REQUIRE(__func__, a->type == GGML_TYPE_F32 && b->type == GGML_TYPE_F32, a, b);
    REQUIRE(__func__, same_ne(a, 0, a, 1) && same_ne(a, 1, b, 1) && same_ne(a, 2, b, 2) && same_ne(a, 3, b, 3), a, b);
    return op_new(ctx, GGML_OP_SOLVE_TRI, GGML_TYPE_F32, b->ne, SOURCES(a, b));
}
