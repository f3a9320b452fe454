/* Builders of views: other shapes and strides over the same bytes. They are never computed. */

#include "build.h"

#include <string.h>

/* ---- reshape: the same elements in the same order ------------------------------------------------------------------ */

static tensor *reshape(const char *call, context *ctx, tensor *a, int n_dims, const int64_t *ne) {
    int64_t n;
    REQUIRE(call, ggml_is_contiguous(a), a);
    REQUIRE(call, dims_product(ne, n_dims, &n) && n == ggml_nelements(a), a);
    tensor *t = tensor_new(ctx, a->type, n_dims, ne, a, 0);
    if (!t) return NULL;
    t->op = GGML_OP_RESHAPE;
    t->src[0] = a;
    return ggml_format_name(t, "%s (reshaped)", a->name);
}
tensor *ggml_reshape(context *ctx, tensor *a, tensor *b) {
    return a && b ? reshape(__func__, ctx, a, GGML_MAX_DIMS, b->ne) : NULL;
}
tensor *ggml_reshape_1d(context *ctx, tensor *a, int64_t ne0) {
    return a ? reshape(__func__, ctx, a, 1, SHAPE(ne0, 1, 1, 1)) : NULL;
}
tensor *ggml_reshape_2d(context *ctx, tensor *a, int64_t ne0, int64_t ne1) {
    return a ? reshape(__func__, ctx, a, 2, SHAPE(ne0, ne1, 1, 1)) : NULL;
}
tensor *ggml_reshape_3d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2) {
    return a ? reshape(__func__, ctx, a, 3, SHAPE(ne0, ne1, ne2, 1)) : NULL;
}
tensor *ggml_reshape_4d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return a ? reshape(__func__, ctx, a, 4, SHAPE(ne0, ne1, ne2, ne3)) : NULL;
}

/* ---- view: a window at a byte offset, with strides of its own ------------------------------------------------------ */

/* Whether every byte of the window lies in the root of a. */
static bool window_fits(const tensor *a, const int64_t *ne, const size_t *nb, size_t offset) {
    const tensor *root = a->view_src ? a->view_src : a;
    const size_t block = (size_t) ggml_blck_size(a->type);
    size_t end, step;
    if (!size_add(&end, a->view_src ? a->view_offs : 0, offset)) return false;
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        if (ne[d] == 0) return end <= ggml_nbytes(root);
    }
    if (!size_mul(&step, ((size_t) ne[0] + block - 1)/block, ggml_type_size(a->type))) return false;
    if (!size_add(&end, end, step)) return false;
    for (int d = 1; d < GGML_MAX_DIMS; d++) {
        if (!size_mul(&step, (size_t) ne[d] - 1, nb[d]) || !size_add(&end, end, step)) return false;
    }
    return end <= ggml_nbytes(root);
}

/* A window past the end is an error of data as often as of code (sizes read from a file): one line of log, and NULL. */
static tensor *view(context *ctx, tensor *a, int n_dims, const int64_t *ne, const size_t *nb, size_t offset) {
    int64_t n;
    if (!dims_product(ne, GGML_MAX_DIMS, &n) || !window_fits(a, ne, nb, offset)) {
        LOG_ERROR("view of '%s': [%lld, %lld, %lld, %lld] with strides [%zu, %zu, %zu] at byte %zu ends past its %zu bytes\n",
                  a->name, (long long) ne[0], (long long) ne[1], (long long) ne[2], (long long) ne[3], nb[1], nb[2], nb[3],
                  offset, ggml_nbytes(a->view_src ? a->view_src : a));
        return NULL;
    }
    tensor *t = tensor_new(ctx, a->type, n_dims, ne, a, offset);
    if (!t) return NULL;
    ggml_format_name(t, "%s (view)", a->name);
    memcpy(t->op_params, &offset, sizeof offset);
    for (int d = 1; d < GGML_MAX_DIMS; d++) t->nb[d] = nb[d];
    t->op = GGML_OP_VIEW;
    t->src[0] = a;
    return t;
}

tensor *ggml_view_1d(context *ctx, tensor *a, int64_t ne0, size_t offset) {
    if (!a) return NULL;
    const size_t row = ggml_row_size(a->type, ne0);
    return view(ctx, a, 1, SHAPE(ne0, 1, 1, 1), (const size_t[]) { 0, row, row, row }, offset);
}
tensor *ggml_view_2d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, size_t nb1, size_t offset) {
    if (!a) return NULL;
    const size_t nb2 = nb1*(size_t) ne1;
    return view(ctx, a, 2, SHAPE(ne0, ne1, 1, 1), (const size_t[]) { 0, nb1, nb2, nb2 }, offset);
}
tensor *ggml_view_3d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, size_t nb1, size_t nb2, size_t offset) {
    if (!a) return NULL;
    return view(ctx, a, 3, SHAPE(ne0, ne1, ne2, 1), (const size_t[]) { 0, nb1, nb2, nb2*(size_t) ne2 }, offset);
}
tensor *ggml_view_4d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, size_t nb1, size_t nb2,
                     size_t nb3, size_t offset) {
    return a ? view(ctx, a, 4, SHAPE(ne0, ne1, ne2, ne3), (const size_t[]) { 0, nb1, nb2, nb3 }, offset) : NULL;
}

/* ---- permutations -------------------------------------------------------------------------------------------------- */

tensor *ggml_permute(context *ctx, tensor *a, int axis0, int axis1, int axis2, int axis3) {
    if (!a) return NULL;
    const int axis[GGML_MAX_DIMS] = { axis0, axis1, axis2, axis3 };
    unsigned seen = 0;
    for (int d = 0; d < GGML_MAX_DIMS; d++) seen |= axis[d] >= 0 && axis[d] < GGML_MAX_DIMS ? 1u << axis[d] : 0;
    REQUIRE(__func__, seen == 15 /* the axes are 0 to 3 in some order */, a);
    tensor *t = ggml_view_tensor(ctx, a);
    if (!t) return NULL;
    ggml_format_name(t, "%s (permuted)", a->name);
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        t->ne[axis[d]] = a->ne[d];
        t->nb[axis[d]] = a->nb[d];
        param_set_i32(t, d, axis[d]);
    }
    t->op = GGML_OP_PERMUTE;
    t->src[0] = a;
    return t;
}

tensor *ggml_transpose(context *ctx, tensor *a) {
    if (!a) return NULL;
    tensor *t = ggml_view_tensor(ctx, a);
    if (!t) return NULL;
    ggml_format_name(t, "%s (transposed)", a->name);
    t->ne[0] = a->ne[1], t->ne[1] = a->ne[0];
    t->nb[0] = a->nb[1], t->nb[1] = a->nb[0];
    t->op = GGML_OP_TRANSPOSE;
    t->src[0] = a;
    return t;
}
