/* Builders of copies and conversions: the elements are streamed in logical order, so shapes may differ. */

#include "build.h"

tensor *ggml_dup        (context *ctx, tensor *a) { return a ? op_like(ctx, GGML_OP_DUP, a, false, SOURCES(a)) : NULL; }
tensor *ggml_dup_inplace(context *ctx, tensor *a) { return a ? op_like(ctx, GGML_OP_DUP, a, true,  SOURCES(a)) : NULL; }

tensor *ggml_cpy(context *ctx, tensor *a, tensor *b) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, ggml_nelements(a) == ggml_nelements(b), a, b);
    tensor *t = op_like(ctx, GGML_OP_CPY, b, true, SOURCES(a, b));
    if (!t) return NULL;
    return b->name[0] ? ggml_format_name(t, "%s (copy of %s)", b->name, a->name) : ggml_format_name(t, "%s (copy)", a->name);
}

/* The second source is the result itself: a conversion is a copy into a tensor that it owns. */
tensor *ggml_cast(context *ctx, tensor *a, enum ggml_type type) {
    if (!a) return NULL;
    tensor *t = op_new(ctx, GGML_OP_CPY, type, a->ne, SOURCES(a));
    if (!t) return NULL;
    t->src[1] = t;
    return ggml_format_name(t, "%s (copy)", a->name);
}

static tensor *cont(const char *call, context *ctx, tensor *a, const int64_t *ne) {
    int64_t n;
    REQUIRE(call, dims_product(ne, GGML_MAX_DIMS, &n) && n == ggml_nelements(a), a);
    tensor *t = op_new(ctx, GGML_OP_CONT, a->type, ne, SOURCES(a));
    return t ? ggml_format_name(t, "%s (cont)", a->name) : NULL;
}
tensor *ggml_cont(context *ctx, tensor *a) { return a ? cont(__func__, ctx, a, a->ne) : NULL; }
tensor *ggml_cont_1d(context *ctx, tensor *a, int64_t ne0) {
    return a ? cont(__func__, ctx, a, SHAPE(ne0, 1, 1, 1)) : NULL;
}
tensor *ggml_cont_2d(context *ctx, tensor *a, int64_t ne0, int64_t ne1) {
    return a ? cont(__func__, ctx, a, SHAPE(ne0, ne1, 1, 1)) : NULL;
}
tensor *ggml_cont_3d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2) {
    return a ? cont(__func__, ctx, a, SHAPE(ne0, ne1, ne2, 1)) : NULL;
}
tensor *ggml_cont_4d(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return a ? cont(__func__, ctx, a, SHAPE(ne0, ne1, ne2, ne3)) : NULL;
}
