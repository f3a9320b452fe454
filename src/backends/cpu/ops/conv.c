/* IM2COL IM2COL_BACK IM2COL_3D COL2IM_1D CONV_2D CONV_3D CONV_2D_DW CONV_TRANSPOSE_1D CONV_TRANSPOSE_2D.
 * Everything is seen as three-dimensional windows over channels: one and two dimensions are ones of size 1. Sums are F32, in
 * an order that the shapes alone decide. */

#include "rows.h"

#include <string.h>

struct windows {
    const struct ggml_tensor *x;                /* the data */
    int64_t in[3], k[3], out[3];                /* sizes of data, window, result: x, y, z */
    int     s[3], p[3], d[3];                   /* step, padding, gap */
    int64_t channels, batch;
    size_t  nb[3], nb_channel, nb_batch;        /* strides of x in bytes */
};

/* b [W, H, IC, N] under a window of kernel k; parameters s0, s1, p0, p1, d0, d1. */
static struct windows windows_2d(const struct ggml_tensor *op, const struct ggml_tensor *kernel,
                                 const struct ggml_tensor *x) {
    const int32_t *p = op->op_params;
    return (struct windows) {
        .x = x, .in = { x->ne[0], x->ne[1], 1 }, .k = { kernel->ne[0], kernel->ne[1], 1 },
        .s = { p[0], p[1], 1 }, .p = { p[2], p[3], 0 }, .d = { p[4], p[5], 1 }, .channels = x->ne[2], .batch = x->ne[3],
        .nb = { x->nb[0], x->nb[1], 0 }, .nb_channel = x->nb[2], .nb_batch = x->nb[3],
    };
}
/* b [L, IC, N]. */
static struct windows windows_1d(const struct ggml_tensor *op, const struct ggml_tensor *kernel,
                                 const struct ggml_tensor *x) {
    const int32_t *p = op->op_params;
    return (struct windows) {
        .x = x, .in = { x->ne[0], 1, 1 }, .k = { kernel->ne[0], 1, 1 }, .s = { p[0], 1, 1 }, .p = { p[2], 0, 0 },
        .d = { p[4], 1, 1 }, .channels = x->ne[1], .batch = x->ne[2], .nb = { x->nb[0], 0, 0 }, .nb_channel = x->nb[1],
        .nb_batch = x->nb[2],
    };
}
/* b [W, H, D, channels*N]. */
static struct windows windows_3d(const struct ggml_tensor *op, const struct ggml_tensor *kernel,
                                 const struct ggml_tensor *x, int64_t channels) {
    const int32_t *p = op->op_params;
    return (struct windows) {
        .x = x, .in = { x->ne[0], x->ne[1], x->ne[2] }, .k = { kernel->ne[0], kernel->ne[1], kernel->ne[2] },
        .s = { p[0], p[1], p[2] }, .p = { p[3], p[4], p[5] }, .d = { p[6], p[7], p[8] }, .channels = channels,
        .batch = x->ne[3]/channels, .nb = { x->nb[0], x->nb[1], x->nb[2] }, .nb_channel = x->nb[3],
        .nb_batch = x->nb[3]*(size_t) channels,
    };
}
static int64_t taps_of(const struct windows *w) { return w->k[0]*w->k[1]*w->k[2]*w->channels; }

/* The taps of one channel at position o of the result, kw innermost; 0 outside the data. */
static float *gather_channel(const struct windows *w, const char *x, const int64_t *o, float *y) {
    for (int64_t kz = 0; kz < w->k[2]; kz++) {
        const int64_t z = o[2]*w->s[2] + kz*w->d[2] - w->p[2];
        for (int64_t ky = 0; ky < w->k[1]; ky++) {
            const int64_t v = o[1]*w->s[1] + ky*w->d[1] - w->p[1];
            const bool inside = z >= 0 && z < w->in[2] && v >= 0 && v < w->in[1];
            const char *const row = x + (inside ? (size_t) z*w->nb[2] + (size_t) v*w->nb[1] : 0);
            for (int64_t kx = 0; kx < w->k[0]; kx++) {
                const int64_t u = o[0]*w->s[0] + kx*w->d[0] - w->p[0];
                *y++ = inside && u >= 0 && u < w->in[0] ? float_from(w->x->type, row + (size_t) u*w->nb[0]) : 0.0f;
            }
        }
    }
    return y;
}
/* Position r of the result, x innermost, then y, z, batch. */
static const char *position(const struct windows *w, int64_t r, int64_t *o) {
    o[0] = r % w->out[0], r /= w->out[0];
    o[1] = r % w->out[1], r /= w->out[1];
    o[2] = r % w->out[2], r /= w->out[2];
    return (const char *) w->x->data + (size_t) r*w->nb_batch;
}
/* All taps at position r: a column. */
static void gather_column(const struct windows *w, int64_t r, float *y) {
    int64_t o[3];
    const char *const x = position(w, r, o);
    for (int64_t c = 0; c < w->channels; c++) y = gather_channel(w, x + (size_t) c*w->nb_channel, o, y);
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

bool supports_im2col(const struct ggml_tensor *dst) { return plain_float(dst->src[1]->type); }

static size_t column_bytes(int64_t n) { return ((size_t) n*sizeof(float) + 63) & ~(size_t) 63; }

size_t scratch_im2col(const struct ggml_tensor *dst, int n_threads) {
    return row_direct(dst) ? 0 : row_bytes(dst)*(size_t) n_threads;
}

static void columns(const struct cpu_task *t, struct ggml_tensor *dst, const struct windows *w) {
    float *const column = (float *) (void *) ((char *) t->scratch + row_bytes(dst)*(size_t) t->ith);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        void *const row = row_number(dst, r);
        float *const y = row_place(dst, row, 0, column);
        gather_column(w, r, y);
        row_store(t, dst, row, 0, dst->ne[0], y);
    }
}

static struct windows im2col_windows(const struct ggml_tensor *dst, const struct ggml_tensor *kernel,
                                     const struct ggml_tensor *x, const struct ggml_tensor *cols) {
    const bool plane = param_i32(dst, 6);
    struct windows w = plane ? windows_2d(dst, kernel, x) : windows_1d(dst, kernel, x);
    w.out[0] = cols->ne[1], w.out[1] = plane ? cols->ne[2] : 1, w.out[2] = 1;
    return w;
}
void op_im2col(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct windows w = im2col_windows(dst, dst->src[0], dst->src[1], dst);
    columns(t, dst, &w);
}
void op_im2col_3d(const struct cpu_task *t, struct ggml_tensor *dst) {
    struct windows w = windows_3d(dst, dst->src[0], dst->src[1], param_i32(dst, 9));
    w.out[0] = dst->ne[1], w.out[1] = dst->ne[2], w.out[2] = dst->ne[3]/w.batch;
    columns(t, dst, &w);
}

/* Which position's tap k falls on element i of an axis: false if none does. */
static bool position_of(const struct windows *w, int axis, int64_t i, int64_t k, int64_t *o) {
    const int64_t at = i + w->p[axis] - k*w->d[axis];
    *o = at/w->s[axis];
    return at >= 0 && at % w->s[axis] == 0 && *o < w->out[axis];
}

bool supports_im2col_back(const struct ggml_tensor *dst) { return plain_float(dst->src[0]->type); }

void op_im2col_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *cols = dst->src[0];
    const struct windows w = im2col_windows(dst, dst->src[1], dst, cols);
    const bool plane = param_i32(dst, 6);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0]*w.k[0]*w.k[1], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const int64_t v = plane ? i1 : 0, channel = plane ? i2 : i1, n = plane ? i3 : i2;
        float *const y = row_at(dst, i1, i2, i3);
        for (int64_t u = 0; u < dst->ne[0]; u++) {
            float sum = 0.0f;
            int64_t ox, oy;
            for (int64_t ky = 0; ky < w.k[1]; ky++) for (int64_t kx = 0; kx < w.k[0]; kx++) {
                if (!position_of(&w, 0, u, kx, &ox) || !position_of(&w, 1, v, ky, &oy)) continue;
                const int64_t tap = (channel*w.k[1] + ky)*w.k[0] + kx;
                sum += plane ? float_at(cols, tap, ox, oy, n) : float_at(cols, tap, ox, n, 0);
            }
            y[u] = sum;
        }
    }
}

void op_col2im_1d(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const int64_t s = param_i32(dst, 0), k = x->ne[0]/param_i32(dst, 1), p = param_i32(dst, 2);
    struct span span;
    while (next_span(t, dst->ne[1], dst->ne[0], &span)) for (int64_t c = span.r0; c < span.r1; c++) {
        for (int64_t i = span.i0; i < span.i1; i++) {
            float sum = 0.0f;
            for (int64_t tap = (i + p) % s; tap < k; tap += s) {
                const int64_t column = (i + p - tap)/s;
                if (column >= 0 && column < x->ne[1]) sum += float_at(x, c*k + tap, column, 0, 0);
            }
            row_store(t, dst, row_at(dst, c, 0, 0), i, 1, &sum);
        }
    }
}

/* ---- direct convolution: columns of a few positions, each against all kernels --------------------------------------- */

enum { POSITIONS = 8 };

bool supports_conv_direct(const struct ggml_tensor *dst) {
    const struct ggml_tensor *kernel = dst->src[0];
    return plain_float(kernel->type) && ggml_is_contiguous(kernel) && plain_float(dst->src[1]->type) && dst->type == GGML_TYPE_F32;
}

static int64_t kernel_taps(const struct ggml_tensor *dst) {
    const struct ggml_tensor *kernel = dst->src[0];
    return kernel->ne[0]*kernel->ne[1]*kernel->ne[2]*(dst->op == GGML_OP_CONV_3D ? param_i32(dst, 9) : 1);
}
size_t scratch_conv_direct(const struct ggml_tensor *dst, int n_threads) {
    return POSITIONS*column_bytes(kernel_taps(dst))*(size_t) n_threads;
}

static float dot(const struct cpu_task *t, enum ggml_type type, int64_t n, const void *weights, const float *x) {
    return type == GGML_TYPE_F32 ? t->k->f.dot_f32(n, weights, x) :
           type == GGML_TYPE_F16 ? t->k->f.dot_f16(n, weights, x) : t->k->f.dot_bf16(n, weights, x);
}

/* One result for each kernel and position; `to` is the place of the first position's first kernel. */
static void convolve(const struct cpu_task *t, struct ggml_tensor *dst, const struct windows *w, int64_t n_kernels) {
    const struct ggml_tensor *kernel = dst->src[0];
    const int64_t taps = taps_of(w), plane = w->out[0]*w->out[1]*w->out[2], total = plane*w->batch;
    const size_t pitch = column_bytes(taps)/sizeof(float), step = ggml_type_size(kernel->type)*(size_t) taps;
    float *const cols = (float *) (void *) ((char *) t->scratch + POSITIONS*column_bytes(taps)*(size_t) t->ith);
    float *const y = dst->data;
    int64_t chunk;
    while (task_chunk(t, (total + POSITIONS - 1)/POSITIONS, &chunk)) {
        const int64_t r0 = chunk*POSITIONS, r1 = r0 + POSITIONS < total ? r0 + POSITIONS : total;
        for (int64_t r = r0; r < r1; r++) gather_column(w, r, cols + (size_t) (r - r0)*pitch);
        for (int64_t k = 0; k < n_kernels; k++) for (int64_t r = r0; r < r1; r++) {
            const void *const weights = (const char *) kernel->data + (size_t) k*step;
            const float *const column = cols + (size_t) (r - r0)*pitch;
            y[(r/plane*n_kernels + k)*plane + r % plane] = dot(t, kernel->type, taps, weights, column);
        }
    }
}
void op_conv_2d(const struct cpu_task *t, struct ggml_tensor *dst) {
    struct windows w = windows_2d(dst, dst->src[0], dst->src[1]);
    w.out[0] = dst->ne[0], w.out[1] = dst->ne[1], w.out[2] = 1;
    convolve(t, dst, &w, dst->ne[2]);
}
void op_conv_3d(const struct cpu_task *t, struct ggml_tensor *dst) {
    struct windows w = windows_3d(dst, dst->src[0], dst->src[1], param_i32(dst, 9));
    w.out[0] = dst->ne[0], w.out[1] = dst->ne[1], w.out[2] = dst->ne[2];
    convolve(t, dst, &w, param_i32(dst, 11));
}

/* Each channel under its own kernel; the result may have its channels innermost. */
void op_conv_2d_dw(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *kernel = dst->src[0];
    const struct windows w = windows_2d(dst, kernel, dst->src[1]);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0]*w.k[0]*w.k[1], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            float sum = 0.0f;
            for (int64_t ky = 0; ky < w.k[1]; ky++) for (int64_t kx = 0; kx < w.k[0]; kx++) {
                const int64_t u = i*w.s[0] + kx*w.d[0] - w.p[0], v = i1*w.s[1] + ky*w.d[1] - w.p[1];
                if (u < 0 || u >= w.in[0] || v < 0 || v >= w.in[1]) continue;
                sum += float_at(kernel, kx, ky, 0, i2)*float_at(w.x, u, v, i2, i3);
            }
            *(float *) (void *) element(dst, i, i1, i2, i3) = sum;
        }
    }
}

/* ---- transposed: every input element adds its kernel to the result -------------------------------------------------- */

void op_conv_transpose_1d(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *kernel = dst->src[0], *x = dst->src[1];
    const int64_t s = param_i32(dst, 0);
    int64_t row;
    while (task_chunk(t, dst->ne[1]*dst->ne[2], &row)) {
        const int64_t oc = row % dst->ne[1], n = row/dst->ne[1];
        float *const y = row_at(dst, oc, n, 0);
        memset(y, 0, (size_t) dst->ne[0]*sizeof *y);
        for (int64_t ic = 0; ic < x->ne[1]; ic++) for (int64_t k = 0; k < kernel->ne[0]; k++) {
            const float weight = float_at(kernel, k, oc, ic, 0);
            for (int64_t i = 0; i < x->ne[0]; i++) y[i*s + k] += weight*float_at(x, i, ic, n, 0);
        }
    }
}

static void transposed_plane(struct ggml_tensor *dst, int64_t oc, int64_t n) {
    const struct ggml_tensor *kernel = dst->src[0], *x = dst->src[1];
    const int64_t s = param_i32(dst, 0);
    for (int64_t v = 0; v < dst->ne[1]; v++) memset(row_at(dst, v, oc, n), 0, (size_t) dst->ne[0]*sizeof(float));
    for (int64_t ic = 0; ic < x->ne[2]; ic++)
    for (int64_t ky = 0; ky < kernel->ne[1]; ky++) for (int64_t kx = 0; kx < kernel->ne[0]; kx++) {
        const float weight = float_at(kernel, kx, ky, oc, ic);
        for (int64_t v = 0; v < x->ne[1]; v++) {
            float *const y = row_at(dst, v*s + ky, oc, n);
            for (int64_t u = 0; u < x->ne[0]; u++) y[u*s + kx] += weight*float_at(x, u, v, ic, n);
        }
    }
}
void op_conv_transpose_2d(const struct cpu_task *t, struct ggml_tensor *dst) {
    int64_t plane;
    while (task_chunk(t, dst->ne[2]*dst->ne[3], &plane)) transposed_plane(dst, plane % dst->ne[2], plane/dst->ne[2]);
}
