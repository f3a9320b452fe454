/* Columns and convolutions, composed and direct, plain and transposed, against sums written from their definitions. */

#include "ref.h"

static int32_t param(const tensor *y, int i) { return y->op_params[i]; }
static double inside(const tensor *x, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const bool in = i0 >= 0 && i0 < x->ne[0] && i1 >= 0 && i1 < x->ne[1] && i2 >= 0 && i2 < x->ne[2] && i3 >= 0 &&
        i3 < x->ne[3];
    return in ? value(x, i0, i1, i2, i3) : 0.0;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

static double want_im2col(const tensor *y, const int64_t *i) {
    const tensor *k = y->src[0], *x = y->src[1];
    const int64_t kw = i[0] % k->ne[0], rest = i[0]/k->ne[0];
    const int64_t u = i[1]*param(y, 0) + kw*param(y, 4) - param(y, 2);
    if (!param(y, 6)) return inside(x, u, rest, i[2], 0);
    const int64_t kh = rest % k->ne[1], ic = rest/k->ne[1];
    return inside(x, u, i[2]*param(y, 1) + kh*param(y, 5) - param(y, 3), ic, i[3]);
}
static double want_im2col_3d(const tensor *y, const int64_t *i) {
    const tensor *k = y->src[0], *x = y->src[1];
    int64_t r = i[0], tap[3], at[3];
    const int64_t od = (x->ne[2] + 2*param(y, 5) - param(y, 8)*(k->ne[2] - 1) - 1)/param(y, 2) + 1,
        o[3] = { i[1], i[2], i[3] % od };
    for (int d = 0; d < 3; d++) {
        tap[d] = r % k->ne[d], r /= k->ne[d];
        at[d] = o[d]*param(y, d) + tap[d]*param(y, 6 + d) - param(y, 3 + d);
    }
    return inside(x, at[0], at[1], at[2], i[3]/od*param(y, 9) + r);
}
/* The gradient by its meaning: the sum of all column elements whose window tap falls on this element. */
static double want_im2col_back(const tensor *y, const int64_t *i) {
    const tensor *cols = y->src[0], *k = y->src[1];
    double sum = 0.0;
    FOR_ELEMENTS(c, cols) {
        const int64_t kw = c[0] % k->ne[0], rest = c[0]/k->ne[0], u = c[1]*param(y, 0) + kw*param(y, 4) - param(y, 2);
        const int64_t kh = param(y, 6) ? rest % k->ne[1] : 0, ic = param(y, 6) ? rest/k->ne[1] : rest;
        const int64_t v = c[2]*param(y, 1) + kh*param(y, 5) - param(y, 3);
        if (param(y, 6) ? u == i[0] && v == i[1] && ic == i[2] && c[3] == i[3] : u == i[0] && ic == i[1] &&
            c[2] == i[2]) sum += value_at(cols, c);
    }
    return sum;
}
static double want_col2im(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    const int64_t s = param(y, 0), k = x->ne[0]/param(y, 1);
    double sum = 0.0;
    for (int64_t c = 0; c < x->ne[1]; c++) for (int64_t tap = 0; tap < k; tap++) {
        if (c*s + tap - param(y, 2) == i[0]) sum += value(x, i[1]*k + tap, c, 0, 0);
    }
    return sum;
}

static void test_columns(void) {
    for (int l = 0; l < LAYOUTS; l++) for (int f16 = 0; f16 < 2; f16++) {
        struct bench b = bench_new();
        const enum ggml_type type = f16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        tensor *k = operand(&b, GGML_TYPE_F16, SIZE(3, 2, 4, 1), PACKED),
            *x = operand(&b, type, SIZE(9, 7, 4, 2), (enum layout) l);
        expect(&b, ggml_im2col(b.ctx, k, x, 2, 1, 1, 2, 2, 1, true, type), want_im2col, 0.0, 0.0, "im2col");
        expect(&b, ggml_im2col(b.ctx, operand(&b, type, SIZE(3, 4, 5, 1), PACKED),
            operand(&b, type, SIZE(9, 4, 2, 1), (enum layout) l), 2, 0, 1, 0, 1, 0, false, type),
               want_im2col, 0.0, 0.0, "im2col of rows");
        expect(&b, ggml_im2col_3d(b.ctx, operand(&b, type, SIZE(3, 2, 2, 6), PACKED),
            operand(&b, type, SIZE(7, 6, 5, 4), (enum layout) l), 2, 2, 1, 1, 1, 0, 1, 1, 2, 1, type),
               want_im2col_3d, 0.0, 0.0, "im2col_3d");
        expect(&b, ggml_im2col_back(b.ctx, operand(&b, type, SIZE(24, 4, 10, 2), (enum layout) l), k,
            (int64_t[]) { 9, 7, 4, 2 }, 2, 1, 1, 2, 2, 1, true),
               want_im2col_back, 0.0, 1e-6, "im2col_back");
        expect(&b, ggml_im2col_back(b.ctx, operand(&b, type, SIZE(12, 5, 2, 1), (enum layout) l),
            operand(&b, type, SIZE(3, 4, 5, 1), PACKED), (int64_t[]) { 9, 4, 2, 1 }, 2, 0, 1, 0, 1, 0, false),
               want_im2col_back, 0.0, 1e-6, "im2col_back of rows");
        expect(&b, ggml_col2im_1d(b.ctx, operand(&b, type, SIZE(15, 6, 1, 1), (enum layout) l), 2, 3, 1), want_col2im,
            f16 ? 0x1p-11 : 1e-6, 1e-6, "col2im_1d");
        bench_free(&b);
    }
}

/* ---- convolutions: the result of a composition has no convolution node, so its operands stand here ------------------ */

static struct { const tensor *k, *x; int s[3], p[3], d[3]; int64_t channels; bool depthwise; } conv;

/* Element o of result channel oc, batch n; kernels [KW, KH, KD, IC*OC] and data [W, H, D, IC*N] in general. */
static double convolved(const int64_t *o, int64_t oc, int64_t n, double (*kernel)(const int64_t *, int64_t, int64_t),
    const int64_t *size,
                        double (*data)(const int64_t *, int64_t, int64_t)) {
    double sum = 0.0;
    for (int64_t c = 0; c < conv.channels; c++)
    for (int64_t z = 0; z < size[2]; z++) for (int64_t y = 0; y < size[1]; y++) for (int64_t x = 0; x < size[0]; x++) {
        const int64_t tap[3] = { x, y, z };
        int64_t at[3];
        for (int d = 0; d < 3; d++) at[d] = o[d]*conv.s[d] + tap[d]*conv.d[d] - conv.p[d];
        sum += kernel(tap, c, oc)*data(at, conv.depthwise ? oc : c, n);
    }
    return sum;
}
static double kernel_1d(const int64_t *tap, int64_t c, int64_t oc) { return value(conv.k, tap[0], c, oc, 0); }
static double data_1d(const int64_t *at, int64_t c, int64_t n) { return inside(conv.x, at[0], c, n, 0); }
static double kernel_2d(const int64_t *tap, int64_t c, int64_t oc) { return value(conv.k, tap[0], tap[1], c, oc); }
static double data_2d(const int64_t *at, int64_t c, int64_t n) { return inside(conv.x, at[0], at[1], c, n); }
static double kernel_3d(const int64_t *tap, int64_t c, int64_t oc) { return value(conv.k, tap[0], tap[1], tap[2],
    oc*conv.channels + c); }
static double data_3d(const int64_t *at, int64_t c, int64_t n) { return inside(conv.x, at[0], at[1], at[2],
    n*conv.channels + c); }

static double want_1d(const tensor *y, const int64_t *i) {
    (void) y;
    return convolved(SIZE(i[0], 0, 0, 0), i[1], i[2], kernel_1d, SIZE(conv.k->ne[0], 1, 1, 1), data_1d);
}
static double want_2d(const tensor *y, const int64_t *i) {
    (void) y;
    return convolved(SIZE(i[0], i[1], 0, 0), i[2], i[3], kernel_2d, SIZE(conv.k->ne[0], conv.k->ne[1], 1, 1), data_2d);
}
static double want_3d(const tensor *y, const int64_t *i) {
    (void) y;
    const int64_t out = conv.k->ne[3]/conv.channels;
    return convolved(i, i[3] % out, i[3]/out, kernel_3d, conv.k->ne, data_3d);
}
static void setup(const tensor *k, const tensor *x, int s, int p, int d, int64_t channels, bool depthwise) {
    conv.k = k, conv.x = x, conv.channels = channels, conv.depthwise = depthwise;
    for (int a = 0; a < 3; a++) conv.s[a] = s, conv.p[a] = p, conv.d[a] = d;
}

static void test_convolutions(void) {
    static const enum ggml_type kernels[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
    for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) {
        const double e = 1e-5;
        struct bench b = bench_new();
        tensor *k1 = operand(&b, kernels[k], SIZE(3, 4, 5, 1), PACKED),
            *x1 = operand(&b, GGML_TYPE_F32, SIZE(10, 4, 2, 1), (enum layout) l);
        setup(k1, x1, 2, 1, 1, 4, false);
        expect(&b, ggml_conv_1d(b.ctx, k1, x1, 2, 1, 1), want_1d, 0.0, e, "conv_1d");
        tensor *kd = operand(&b, kernels[k], SIZE(3, 1, 4, 1), PACKED),
            *xp = operand(&b, GGML_TYPE_F32, SIZE(10, 4, 2, 1), PACKED);
        setup(kd, xp, 1, 1, 1, 1, true);
        expect(&b, ggml_conv_1d_dw_ph(b.ctx, kd, xp, 1, 1), want_1d, 0.0, e, "conv_1d_dw");
        tensor *k2 = operand(&b, kernels[k], SIZE(3, 3, 4, 5), PACKED),
            *x2 = operand(&b, GGML_TYPE_F32, SIZE(9, 7, 4, 2), (enum layout) l);
        setup(k2, x2, 2, 1, 1, 4, false);
        expect(&b, ggml_conv_2d(b.ctx, k2, x2, 2, 2, 1, 1, 1, 1), want_2d, 0.0, e, "conv_2d");
        expect(&b, ggml_conv_2d_direct(b.ctx, k2, x2, 2, 2, 1, 1, 1, 1), want_2d, 0.0, 1e-5, "conv_2d_direct");
        tensor *k4 = operand(&b, kernels[k], SIZE(3, 2, 1, 4), PACKED),
            *x4 = operand(&b, GGML_TYPE_F32, SIZE(9, 7, 4, 2), PACKED);
        setup(k4, x4, 1, 1, 2, 1, true);
        expect(&b, ggml_conv_2d_dw(b.ctx, k4, x4, 1, 1, 1, 1, 2, 2), want_2d, 0.0, e, "conv_2d_dw");
        expect(&b, ggml_conv_2d_dw_direct(b.ctx, k4, x4, 1, 1, 1, 1, 2, 2), want_2d, 0.0, 1e-5, "conv_2d_dw_direct");
        tensor *innermost = ggml_permute(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(4, 9, 7, 2), PACKED), 2, 0, 1, 3);
        setup(k4, innermost, 1, 1, 2, 1, true);
        tensor *y = ggml_conv_2d_dw_direct(b.ctx, k4, innermost, 1, 1, 1, 1, 2, 2);
        CHECK(y->nb[2] == sizeof(float) && ggml_is_contiguous_channels(y), "channels innermost");
        expect(&b, y, want_2d, 0.0, 1e-5, "conv_2d_dw_direct, channels innermost");
        tensor *k3 = operand(&b, kernels[k], SIZE(3, 2, 2, 6), PACKED),
            *x3 = operand(&b, GGML_TYPE_F32, SIZE(7, 6, 5, 4), (enum layout) l);
        setup(k3, x3, 1, 1, 1, 2, false);
        expect(&b, ggml_conv_3d(b.ctx, k3, x3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1), want_3d, 0.0, e, "conv_3d");
        expect(&b, ggml_conv_3d_direct(b.ctx, k3, x3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3), want_3d, 0.0, 1e-5,
            "conv_3d_direct");
        bench_free(&b);
    }
}

/* ---- transposed ---------------------------------------------------------------------------------------------------- */

static double want_transpose_1d(const tensor *y, const int64_t *i) {
    const tensor *k = y->src[0], *x = y->src[1];
    double sum = 0.0;
    for (int64_t c = 0; c < x->ne[1]; c++) for (int64_t j = 0; j < x->ne[0]; j++) for (int64_t tap = 0; tap < k->ne[0]; tap++) {
        if (j*param(y, 0) + tap == i[0]) sum += value(k, tap, i[1], c, 0)*value(x, j, c, i[2], 0);
    }
    return sum;
}
static double want_transpose_2d(const tensor *y, const int64_t *i) {
    const tensor *k = y->src[0], *x = y->src[1];
    double sum = 0.0;
    for (int64_t c = 0; c < x->ne[2]; c++) for (int64_t v = 0; v < x->ne[1]; v++) for (int64_t u = 0; u < x->ne[0]; u++) {
        const int64_t kx = i[0] - u*param(y, 0), ky = i[1] - v*param(y, 0);
        if (kx >= 0 && kx < k->ne[0] && ky >= 0 && ky < k->ne[1]) sum += value(k, kx, ky, i[2], c)*value(x, u, v, c,
            i[3]);
    }
    return sum;
}
static void test_transposed(void) {
    for (int f16 = 0; f16 < 2; f16++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        const enum ggml_type type = f16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        expect(&b, ggml_conv_transpose_1d(b.ctx, operand(&b, type, SIZE(3, 5, 4, 1), (enum layout) l),
            operand(&b, GGML_TYPE_F32, SIZE(10, 4, 1, 1), (enum layout) l), 2, 0, 1),
               want_transpose_1d, 0.0, 1e-5, "conv_transpose_1d");
        expect(&b, ggml_conv_transpose_2d_p0(b.ctx, operand(&b, type, SIZE(3, 2, 5, 4), (enum layout) l),
            operand(&b, GGML_TYPE_F32, SIZE(5, 6, 4, 2), (enum layout) l), 2),
               want_transpose_2d, 0.0, 1e-5, "conv_transpose_2d");
        bench_free(&b);
    }
}

static void test_threads(void) {
    struct bench b = bench_new();
    tensor *k = operand(&b, GGML_TYPE_F32, SIZE(3, 3, 8, 16), PACKED),
        *x = operand(&b, GGML_TYPE_F32, SIZE(40, 30, 8, 1), PACKED);
    expect_same_for_threads(&b, ggml_conv_2d_direct(b.ctx, k, x, 1, 1, 1, 1, 1, 1), "conv_2d_direct");
    expect_same_for_threads(&b, ggml_im2col(b.ctx, k, x, 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F16), "im2col");
    expect_same_for_threads(&b, ggml_conv_2d(b.ctx, k, x, 1, 1, 1, 1, 1, 1), "conv_2d");
    expect_same_for_threads(&b, ggml_conv_transpose_2d_p0(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(3, 3, 4, 8), PACKED),
        x, 2), "conv_transpose_2d");
    bench_free(&b);
}

int main(void) {
    test_columns();
    test_convolutions();
    test_transposed();
    test_threads();
    return DONE();
}
