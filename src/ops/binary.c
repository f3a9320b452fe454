/* Builders of element-wise ops on two tensors, the second repeated over the first, and of writes into a region. */

#include "build.h"

static tensor *binary(const char *call, context *ctx, enum ggml_op op, tensor *a, tensor *b, bool inplace) {
    if (!a || !b) return NULL;
    REQUIRE(call, ggml_can_repeat(b, a), a, b);
    return op_like(ctx, op, a, inplace, SOURCES(a, b));
}

#define BINARY(name, OP) \
    tensor *ggml_##name(context *ctx, tensor *a, tensor *b) { \
        return binary(__func__, ctx, GGML_OP_##OP, a, b, false); \
    } \
    tensor *ggml_##name##_inplace(context *ctx, tensor *a, tensor *b) { \
        return binary(__func__, ctx, GGML_OP_##OP, a, b, true); \
    }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div, DIV)

tensor *ggml_add_cast(context *ctx, tensor *a, tensor *b, enum ggml_type type) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_is_quantized(a->type) || a->type == GGML_TYPE_F16 || a->type == GGML_TYPE_BF16, a, b);
    REQUIRE(__func__, same_ne(a, 0, b, 0) && ggml_can_repeat(b, a), a, b);
    return op_new(ctx, GGML_OP_ADD, type, a->ne, SOURCES(a, b));
}

tensor *ggml_add_id(context *ctx, tensor *a, tensor *b, tensor *ids) {
    if (!a || !b || !ids) return NULL;
    REQUIRE(__func__, same_ne(a, 0, b, 0) && ggml_is_matrix(b), a, b, ids);
    REQUIRE(__func__, same_ne(a, 1, ids, 0) && same_ne(a, 2, ids, 1) && ggml_is_matrix(ids), a, b, ids);
    REQUIRE(__func__, ids->type == GGML_TYPE_I32 && ggml_is_3d(a), a, b, ids);
    return op_like(ctx, GGML_OP_ADD_ID, a, false, SOURCES(a, b, ids));
}

static tensor *add1(const char *call, context *ctx, tensor *a, tensor *b, bool inplace) {
    if (!a || !b) return NULL;
    REQUIRE(call, ggml_is_scalar(b), a, b);
    return op_like(ctx, GGML_OP_ADD1, a, inplace, SOURCES(a, b));
}
tensor *ggml_add1        (context *ctx, tensor *a, tensor *b) { return add1(__func__, ctx, a, b, false); }
tensor *ggml_add1_inplace(context *ctx, tensor *a, tensor *b) { return add1(__func__, ctx, a, b, true); }

/* ---- a region of a: b's elements at byte offset + i1*nb1 + i2*nb2 + i3*nb3, elements of a row adjacent ------------- */

/* Whether a region with b's shape and these strides lies inside a. */
static bool region_fits(const tensor *a, const tensor *b, const size_t *nb, size_t offset) {
    size_t end = ggml_element_size(a), step;
    if (ggml_is_empty(b)) return true;
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        if (!size_mul(&step, (size_t) b->ne[d] - 1, d ? nb[d - 1] : ggml_element_size(a))) return false;
        if (!size_add(&end, end, step)) return false;
    }
    return size_add(&end, end, offset) && end <= ggml_nbytes(a);
}

/* Strides are kept as 32-bit words, so larger ones are refused unless no element needs them. */
static bool region_words(const tensor *b, const size_t *nb, size_t offset, int32_t *words) {
    for (int d = 0; d < 3; d++) {
        if (nb[d] > INT32_MAX && b->ne[d + 1] > 1) return false;
        words[d] = nb[d] > INT32_MAX ? 0 : (int32_t) nb[d];
    }
    words[3] = (int32_t) offset;
    return offset <= INT32_MAX;
}

static tensor *region(const char *call, context *ctx, enum ggml_op op, tensor *a, tensor *b, size_t nb1, size_t nb2,
                      size_t nb3, size_t offset, bool inplace) {
    if (!a || !b) return NULL;
    const size_t nb[3] = { nb1, nb2, nb3 };
    int32_t words[5] = { 0, 0, 0, 0, inplace };
    REQUIRE(call, ggml_nelements(b) <= ggml_nelements(a) && a->type == b->type, a, b);
    REQUIRE(call, ggml_is_contiguous(a) && ggml_blck_size(a->type) == 1, a, b);
    REQUIRE(call, region_words(b, nb, offset, words) && region_fits(a, b, nb, offset), a, b);
    return op_params(op_like(ctx, op, a, inplace, SOURCES(a, b)), 5, words);
}

static tensor *acc(const char *call, context *ctx, tensor *a, tensor *b, size_t nb1, size_t nb2, size_t nb3,
                   size_t offset, bool inplace) {
    if (!a || !b) return NULL;
    REQUIRE(call, a->type == GGML_TYPE_F32 && b->type == GGML_TYPE_F32, a, b);
    return region(call, ctx, GGML_OP_ACC, a, b, nb1, nb2, nb3, offset, inplace);
}
tensor *ggml_acc(context *ctx, tensor *a, tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return acc(__func__, ctx, a, b, nb1, nb2, nb3, offset, false);
}
tensor *ggml_acc_inplace(context *ctx, tensor *a, tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return acc(__func__, ctx, a, b, nb1, nb2, nb3, offset, true);
}

tensor *ggml_set(context *ctx, tensor *a, tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return region(__func__, ctx, GGML_OP_SET, a, b, nb1, nb2, nb3, offset, false);
}
tensor *ggml_set_inplace(context *ctx, tensor *a, tensor *b, size_t nb1, size_t nb2, size_t nb3, size_t offset) {
    return region(__func__, ctx, GGML_OP_SET, a, b, nb1, nb2, nb3, offset, true);
}
tensor *ggml_set_1d(context *ctx, tensor *a, tensor *b, size_t offset) {
    return a ? region(__func__, ctx, GGML_OP_SET, a, b, a->nb[1], a->nb[2], a->nb[3], offset, false) : NULL;
}
tensor *ggml_set_1d_inplace(context *ctx, tensor *a, tensor *b, size_t offset) {
    return a ? region(__func__, ctx, GGML_OP_SET, a, b, a->nb[1], a->nb[2], a->nb[3], offset, true) : NULL;
}
tensor *ggml_set_2d(context *ctx, tensor *a, tensor *b, size_t nb1, size_t offset) {
    return a ? region(__func__, ctx, GGML_OP_SET, a, b, nb1, a->nb[2], a->nb[3], offset, false) : NULL;
}
tensor *ggml_set_2d_inplace(context *ctx, tensor *a, tensor *b, size_t nb1, size_t offset) {
    return a ? region(__func__, ctx, GGML_OP_SET, a, b, nb1, a->nb[2], a->nb[3], offset, true) : NULL;
}
