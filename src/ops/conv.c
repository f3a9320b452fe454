/* Builders of convolutions: columns for a matrix product, the compositions over them, and the direct ops.
 *
 * A kernel is [KW, KH, IC, OC], data [W, H, IC, N], the result [OW, OH, OC, N]. In a composition the kernel stands first in
 * the product, so that it may be of any type, and columns keep the data's precision. */

#include "build.h"

/* Positions of a window of k elements with gaps d, at steps s over n elements padded by p on both sides. */
static int64_t conv_positions(int64_t n, int64_t k, int s, int p, int d) {
    const int64_t room = n + 2*(int64_t) p - d*(k - 1) - 1;
    return s > 0 && d > 0 && room >= 0 ? room/s + 1 : 0;
}

static enum ggml_type column_type(const tensor *data) {
    return data && data->type == GGML_TYPE_F16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

tensor *ggml_im2col(context *ctx, tensor *a, tensor *b, int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D,
                    enum ggml_type dst_type) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, dst_type == GGML_TYPE_F32 || dst_type == GGML_TYPE_F16, a, b);
    REQUIRE(__func__, is_2D ? same_ne(a, 2, b, 2) : same_ne(a, 1, b, 1) && b->ne[3] == 1, a, b);
    const int64_t ow = conv_positions(b->ne[0], a->ne[0], s0, p0, d0);
    const int64_t oh = is_2D ? conv_positions(b->ne[1], a->ne[1], s1, p1, d1) : 1;
    REQUIRE(__func__, ow > 0 && oh > 0, a, b);
    const int64_t *ne = is_2D ? SHAPE(a->ne[0]*a->ne[1]*a->ne[2], ow, oh, b->ne[3])
                              : SHAPE(a->ne[0]*a->ne[1], ow, b->ne[2], 1);
    return PARAMS(op_new(ctx, GGML_OP_IM2COL, dst_type, ne, SOURCES(a, b)), s0, s1, p0, p1, d0, d1, is_2D);
}

tensor *ggml_im2col_back(context *ctx, tensor *a, tensor *b, int64_t *ne, int s0, int s1, int p0, int p1, int d0, int d1,
                         bool is_2D) {
    if (!a || !b) return NULL;
    const int64_t ow = conv_positions(ne[0], b->ne[0], s0, p0, d0);
    const int64_t oh = is_2D ? conv_positions(ne[1], b->ne[1], s1, p1, d1) : ne[2];
    const int64_t column = b->ne[0]*b->ne[1]*(is_2D ? b->ne[2] : 1);
    REQUIRE(__func__, a->ne[0] == column && a->ne[1] == ow && a->ne[2] == oh && a->ne[3] == (is_2D ? ne[3] : 1), a, b);
    REQUIRE(__func__, is_2D ? ne[2] == b->ne[2] : ne[1] == b->ne[1] && ne[3] == 1, a, b);
    return PARAMS(op_new(ctx, GGML_OP_IM2COL_BACK, GGML_TYPE_F32, ne, SOURCES(a, b)), s0, s1, p0, p1, d0, d1, is_2D);
}

tensor *ggml_im2col_3d(context *ctx, tensor *a, tensor *b, int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2,
                       int d0, int d1, int d2, enum ggml_type dst_type) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, dst_type == GGML_TYPE_F32 || dst_type == GGML_TYPE_F16, a, b);
    REQUIRE(__func__, IC > 0 && IC <= INT32_MAX && divides(IC, a->ne[3]) && divides(IC, b->ne[3]), a, b);
    const int64_t ow = conv_positions(b->ne[0], a->ne[0], s0, p0, d0);
    const int64_t oh = conv_positions(b->ne[1], a->ne[1], s1, p1, d1);
    const int64_t od = conv_positions(b->ne[2], a->ne[2], s2, p2, d2);
    REQUIRE(__func__, ow > 0 && oh > 0 && od > 0, a, b);
    const int64_t *ne = SHAPE(a->ne[0]*a->ne[1]*a->ne[2]*IC, ow, oh, od*(b->ne[3]/IC));
    return PARAMS(op_new(ctx, GGML_OP_IM2COL_3D, dst_type, ne, SOURCES(a, b)), s0, s1, s2, p0, p1, p2, d0, d1, d2,
                  (int32_t) IC);
}

tensor *ggml_col2im_1d(context *ctx, tensor *a, int s0, int oc, int p0) {
    if (!a) return NULL;
    REQUIRE(__func__, ggml_is_matrix(a) && float_type(a) && s0 > 0 && oc > 0 && p0 >= 0 && divides(oc, a->ne[0]), a);
    const int64_t length = (a->ne[1] - 1)*s0 + a->ne[0]/oc - 2*(int64_t) p0;
    REQUIRE(__func__, length > 0, a);
    return PARAMS(op_new(ctx, GGML_OP_COL2IM_1D, a->type, SHAPE(length, oc, 1, 1), SOURCES(a)), s0, oc, p0);
}

/* ---- compositions -------------------------------------------------------------------------------------------------- */

/* Kernels of `taps` elements, oc of them, over the columns of n*positions windows: [positions, oc, n]. */
static tensor *product_of_columns(context *ctx, tensor *columns, tensor *kernel, int64_t oc, int64_t positions, int64_t n) {
    if (!columns) return NULL;
    const int64_t taps = columns->ne[0];
    tensor *t = ggml_mul_mat(ctx, ggml_reshape_2d(ctx, kernel, taps, oc), ggml_reshape_3d(ctx, columns, taps, positions, n));
    return ggml_cont(ctx, ggml_transpose(ctx, t));
}

tensor *ggml_conv_1d(context *ctx, tensor *a, tensor *b, int s0, int p0, int d0) {
    tensor *columns = a ? ggml_im2col(ctx, a, b, s0, 0, p0, 0, d0, 0, false, column_type(b)) : NULL;
    return columns ? product_of_columns(ctx, columns, a, a->ne[2], columns->ne[1], columns->ne[2]) : NULL;
}
tensor *ggml_conv_1d_ph(context *ctx, tensor *a, tensor *b, int s, int d) {
    return a ? ggml_conv_1d(ctx, a, b, s, (int) (a->ne[0]/2), d) : NULL;
}

/* Each channel on its own: channels and batch are slices of one product, whose single row is the result. */
tensor *ggml_conv_1d_dw(context *ctx, tensor *a, tensor *b, int s0, int p0, int d0) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, a->ne[1] == 1 && same_ne(a, 2, b, 1) && a->ne[3] == 1 && b->ne[3] == 1, a, b);
    const int64_t c = b->ne[1], n = b->ne[2];
    tensor *columns = ggml_im2col(ctx, a, ggml_reshape_3d(ctx, b, b->ne[0], 1, c*n), s0, 0, p0, 0, d0, 0, false,
                                  column_type(b));
    if (!columns) return NULL;
    tensor *t = ggml_mul_mat(ctx, a, ggml_reshape_4d(ctx, columns, columns->ne[0], columns->ne[1], c, n));
    return ggml_reshape_3d(ctx, t, columns->ne[1], c, n);
}
tensor *ggml_conv_1d_dw_ph(context *ctx, tensor *a, tensor *b, int s0, int d0) {
    return a ? ggml_conv_1d_dw(ctx, a, b, s0, (int) (a->ne[0]/2), d0) : NULL;
}

tensor *ggml_conv_2d(context *ctx, tensor *a, tensor *b, int s0, int s1, int p0, int p1, int d0, int d1) {
    tensor *columns = a ? ggml_im2col(ctx, a, b, s0, s1, p0, p1, d0, d1, true, column_type(b)) : NULL;
    if (!columns) return NULL;
    const int64_t ow = columns->ne[1], oh = columns->ne[2], n = columns->ne[3];
    return ggml_reshape_4d(ctx, product_of_columns(ctx, columns, a, a->ne[3], ow*oh, n), ow, oh, a->ne[3], n);
}
tensor *ggml_conv_2d_sk_p0(context *ctx, tensor *a, tensor *b) {
    return a ? ggml_conv_2d(ctx, a, b, (int) a->ne[0], (int) a->ne[1], 0, 0, 1, 1) : NULL;
}
tensor *ggml_conv_2d_s1_ph(context *ctx, tensor *a, tensor *b) {
    return a ? ggml_conv_2d(ctx, a, b, 1, 1, (int) (a->ne[0]/2), (int) (a->ne[1]/2), 1, 1) : NULL;
}

tensor *ggml_conv_2d_dw(context *ctx, tensor *a, tensor *b, int s0, int s1, int p0, int p1, int d0, int d1) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, a->ne[2] == 1 && same_ne(a, 3, b, 2), a, b);
    const int64_t c = b->ne[2], n = b->ne[3], taps = a->ne[0]*a->ne[1];
    tensor *kernel = ggml_reshape_4d(ctx, a, taps, 1, c, 1);
    tensor *columns = ggml_im2col(ctx, a, ggml_reshape_4d(ctx, b, b->ne[0], b->ne[1], 1, c*n), s0, s1, p0, p1, d0, d1, true,
                                  column_type(b));
    if (!columns) return NULL;
    const int64_t ow = columns->ne[1], oh = columns->ne[2];
    tensor *t = ggml_mul_mat(ctx, kernel, ggml_reshape_4d(ctx, columns, taps, ow*oh, c, n));
    return ggml_reshape_4d(ctx, t, ow, oh, c, n);
}

tensor *ggml_conv_3d(context *ctx, tensor *a, tensor *b, int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2,
                     int d0, int d1, int d2) {
    tensor *columns = a ? ggml_im2col_3d(ctx, a, b, IC, s0, s1, s2, p0, p1, p2, d0, d1, d2, column_type(b)) : NULL;
    if (!columns) return NULL;
    const int64_t oc = a->ne[3]/IC, n = b->ne[3]/IC, ow = columns->ne[1], oh = columns->ne[2], od = columns->ne[3]/n;
    return ggml_reshape_4d(ctx, product_of_columns(ctx, columns, a, oc, ow*oh*od, n), ow, oh, od, oc*n);
}

/* ---- direct -------------------------------------------------------------------------------------------------------- */

tensor *ggml_conv_2d_direct(context *ctx, tensor *a, tensor *b, int s0, int s1, int p0, int p1, int d0, int d1) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, same_ne(a, 2, b, 2), a, b);
    const int64_t ow = conv_positions(b->ne[0], a->ne[0], s0, p0, d0);
    const int64_t oh = conv_positions(b->ne[1], a->ne[1], s1, p1, d1);
    REQUIRE(__func__, ow > 0 && oh > 0, a, b);
    return PARAMS(op_new(ctx, GGML_OP_CONV_2D, b->type, SHAPE(ow, oh, a->ne[3], b->ne[3]), SOURCES(a, b)),
                  s0, s1, p0, p1, d0, d1);
}

tensor *ggml_conv_3d_direct(context *ctx, tensor *a, tensor *b, int s0, int s1, int s2, int p0, int p1, int p2,
                            int d0, int d1, int d2, int n_channels, int n_batch, int n_channels_out) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, n_channels > 0 && n_batch > 0 && n_channels_out > 0, a, b);
    REQUIRE(__func__, a->ne[3] == (int64_t) n_channels*n_channels_out && b->ne[3] == (int64_t) n_channels*n_batch, a, b);
    const int64_t ow = conv_positions(b->ne[0], a->ne[0], s0, p0, d0);
    const int64_t oh = conv_positions(b->ne[1], a->ne[1], s1, p1, d1);
    const int64_t od = conv_positions(b->ne[2], a->ne[2], s2, p2, d2);
    REQUIRE(__func__, ow > 0 && oh > 0 && od > 0, a, b);
    return PARAMS(op_new(ctx, GGML_OP_CONV_3D, GGML_TYPE_F32, SHAPE(ow, oh, od, (int64_t) n_channels_out*n_batch),
                         SOURCES(a, b)), s0, s1, s2, p0, p1, p2, d0, d1, d2, n_channels, n_batch, n_channels_out);
}

tensor *ggml_conv_2d_dw_direct(context *ctx, tensor *a, tensor *b, int stride0, int stride1, int pad0, int pad1,
                               int dilation0, int dilation1) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, a->ne[2] == 1 && same_ne(a, 3, b, 2), a, b);
    const int64_t ow = conv_positions(b->ne[0], a->ne[0], stride0, pad0, dilation0);
    const int64_t oh = conv_positions(b->ne[1], a->ne[1], stride1, pad1, dilation1);
    REQUIRE(__func__, ow > 0 && oh > 0, a, b);
    tensor *t = PARAMS(op_new(ctx, GGML_OP_CONV_2D_DW, b->type, SHAPE(ow, oh, b->ne[2], b->ne[3]), SOURCES(a, b)),
                       stride0, stride1, pad0, pad1, dilation0, dilation1);
    if (t && ggml_is_contiguous_channels(b)) {          /* channels innermost, as the data */
        t->nb[2] = ggml_type_size(t->type);
        t->nb[0] = t->nb[2]*(size_t) t->ne[2];
        t->nb[1] = t->nb[0]*(size_t) t->ne[0];
    }
    return t;
}

tensor *ggml_conv_transpose_1d(context *ctx, tensor *a, tensor *b, int s0, int p0, int d0) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, p0 == 0 && d0 == 1 && s0 > 0, a, b);
    REQUIRE(__func__, ggml_is_matrix(b) && same_ne(a, 2, b, 1) && a->ne[3] == 1, a, b);
    return PARAMS(op_new(ctx, GGML_OP_CONV_TRANSPOSE_1D, GGML_TYPE_F32,
                         SHAPE((b->ne[0] - 1)*s0 + a->ne[0], a->ne[1], b->ne[2], 1), SOURCES(a, b)), s0, p0, d0);
}

tensor *ggml_conv_transpose_2d_p0(context *ctx, tensor *a, tensor *b, int stride) {
    if (!a || !b) return NULL;
    REQUIRE(__func__, same_ne(a, 3, b, 2) && stride > 0, a, b);
    return PARAMS(op_new(ctx, GGML_OP_CONV_TRANSPOSE_2D, GGML_TYPE_F32,
                         SHAPE((b->ne[0] - 1)*stride + a->ne[0], (b->ne[1] - 1)*stride + a->ne[1], a->ne[2], b->ne[3]),
                         SOURCES(a, b)), stride);
}
