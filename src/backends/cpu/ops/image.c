/* POOL_1D POOL_2D POOL_2D_BACK UPSCALE PAD PAD_REFLECT_1D ROLL WIN_PART WIN_UNPART GET_REL_POS ADD_REL_POS: ops on grids.
 * Each element of the result is gathered on its own, so no two workers write one place. */

#include "rows.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b)    { return a < b ? a : b; }
static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

#define LOWEST (-0x1.fffffep127f)               /* the finite float below all others */

/* ---- pooling ------------------------------------------------------------------------------------------------------- */

/* The part of a window of k elements at `at` (it may be negative) that lies in 0 .. n-1. */
struct window { int64_t from, to; };
static struct window window_in(int64_t at, int64_t k, int64_t n) {
    return (struct window) { greatest(at, 0), least(at + k, n) };
}

void op_pool_1d(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const bool average = param_i32(dst, 0) == GGML_OP_POOL_AVG;
    const int k = param_i32(dst, 1), s = param_i32(dst, 2), p = param_i32(dst, 3);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *const v = row_whole(t, x, r);
        float *const y = row_number(dst, r);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            const struct window w = window_in(i*s - p, k, x->ne[0]);
            float sum = 0.0f, max = LOWEST;
            for (int64_t j = w.from; j < w.to; j++) sum += v[j], max = v[j] > max ? v[j] : max;
            y[i] = !average ? max : w.to > w.from ? sum/(float) (w.to - w.from) : 0.0f;
        }
    }
}

struct pool { bool average; int k0, k1, s0, s1, p0, p1; };
static struct pool pool_of(const struct ggml_tensor *t) {
    return (struct pool) { param_i32(t, 0) == GGML_OP_POOL_AVG, param_i32(t, 1), param_i32(t, 2), param_i32(t, 3),
                           param_i32(t, 4), param_i32(t, 5), param_i32(t, 6) };
}

void op_pool_2d(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const struct pool p = pool_of(dst);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0]*p.k0*p.k1, &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        float *const y = row_at(dst, i1, i2, i3);
        const struct window wy = window_in(i1*p.s1 - p.p1, p.k1, x->ne[1]);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            const struct window wx = window_in(i*p.s0 - p.p0, p.k0, x->ne[0]);
            float sum = 0.0f, max = LOWEST;
            for (int64_t j = wy.from; j < wy.to; j++) for (int64_t k = wx.from; k < wx.to; k++) {
                const float v = float_at(x, k, j, i2, i3);
                sum += v;
                if (v > max) max = v;
            }
            y[i] = p.average ? sum/(float) ((int64_t) p.k0*p.k1) : max;
        }
    }
}

/* One plane: every gradient goes to the first maximum of its window, or in equal parts to all of it. */
static void pool_back_plane(struct ggml_tensor *dst, struct pool p, int64_t i2, int64_t i3) {
    const struct ggml_tensor *grad = dst->src[0], *x = dst->src[1];
    for (int64_t j = 0; j < dst->ne[1]; j++) memset(row_at(dst, j, i2, i3), 0, (size_t) dst->ne[0]*sizeof(float));
    for (int64_t i1 = 0; i1 < grad->ne[1]; i1++) for (int64_t i0 = 0; i0 < grad->ne[0]; i0++) {
        const struct window wy = window_in(i1*p.s1 - p.p1, p.k1, x->ne[1]);
        const struct window wx = window_in(i0*p.s0 - p.p0, p.k0, x->ne[0]);
        const float g = float_at(grad, i0, i1, i2, i3);
        float max = LOWEST, *best = NULL;
        for (int64_t j = wy.from; j < wy.to; j++) for (int64_t k = wx.from; k < wx.to; k++) {
            float *const y = (float *) row_at(dst, j, i2, i3) + k;
            if (p.average) *y += g/(float) ((int64_t) p.k0*p.k1);
            else if (float_at(x, k, j, i2, i3) > max) max = float_at(x, k, j, i2, i3), best = y;
        }
        if (best) *best += g;
    }
}
void op_pool_2d_back(const struct cpu_task *t, struct ggml_tensor *dst) {
    int64_t plane;
    while (task_chunk(t, dst->ne[2]*dst->ne[3], &plane)) {
        pool_back_plane(dst, pool_of(dst), plane % dst->ne[2], plane / dst->ne[2]);
    }
}

/* ---- resizing ------------------------------------------------------------------------------------------------------ */

/* Source size; target size over source size; of a pixel's centre. */
struct axis { int64_t n; float scale, offset; };

static struct axis axis_of(const struct ggml_tensor *dst, int d, bool align) {
    const int64_t n = dst->src[0]->ne[d], m = dst->ne[d];
    if (align && d < 2 && n > 1 && m > 1) return (struct axis) { n, (float) (m - 1)/(float) (n - 1), 0.0f };
    return (struct axis) { n, (float) m/(float) n, align ? 0.0f : 0.5f };
}
static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
static int64_t nearest(struct axis a, int64_t i) { return within((int64_t) floorf((float) i/a.scale), a.n); }

/* The source elements an output element is made of, along one axis. */
struct taps { int n; int64_t at[4]; float w[4]; };

static struct taps linear(struct axis a, int64_t i) {
    const float x = ((float) i + a.offset)/a.scale - a.offset;
    const int64_t base = (int64_t) floorf(x), x0 = within(base, a.n);
    const float d = fminf(fmaxf(x - (float) x0, 0.0f), 1.0f);
    return (struct taps) { 2, { x0, within(base + 1, a.n) }, { 1.0f - d, d } };
}
/* Keys 1981, "Cubic convolution interpolation", with a = -3/4. */
static struct taps cubic(struct axis a, int64_t i) {
    const float x = ((float) i + a.offset)/a.scale - a.offset, f = floorf(x), d = x - f, c = -0.75f;
    struct taps taps = { .n = 4 };
    for (int k = 0; k < 4; k++) {
        const float u = fabsf(d - (float) (k - 1));
        taps.at[k] = within((int64_t) f + k - 1, a.n);
        taps.w[k]  = u <= 1.0f ? ((c + 2.0f)*u - (c + 3.0f))*u*u + 1.0f : ((c*u - 5.0f*c)*u + 8.0f*c)*u - 4.0f*c;
    }
    return taps;
}
static struct taps closest(struct axis a, int64_t i) { return (struct taps) { 1, { nearest(a, i) }, { 1.0f } }; }

static float interpolated(const struct ggml_tensor *x, struct taps tx, struct taps ty, int64_t i2, int64_t i3) {
    float sum = 0.0f;
    for (int j = 0; j < ty.n; j++) {
        float row = 0.0f;
        for (int k = 0; k < tx.n; k++) row += tx.w[k]*float_at(x, tx.at[k], ty.at[j], i2, i3);
        sum += ty.w[j]*row;
    }
    return sum;
}

/* A triangle as wide as the step between output elements, if that is more than one. */
struct triangle { float centre, support; int64_t from, to; };
static struct triangle triangle_of(struct axis a, int64_t i) {
    const float c = ((float) i + 0.5f)/a.scale, u = fmaxf(1.0f, 1.0f/a.scale);
    const int64_t from = (int64_t) floorf(c - u + 0.5f), to = (int64_t) floorf(c + u + 0.5f);
    return (struct triangle) { c, u, greatest(0, from), least(a.n, to) };
}
static float height(struct triangle t, int64_t x) {
    return fmaxf(0.0f, 1.0f - fabsf(((float) x - t.centre + 0.5f)/t.support));
}
static float antialiased(const struct ggml_tensor *x, struct triangle tx, struct triangle ty, int64_t i2, int64_t i3) {
    float sum = 0.0f, weight = 0.0f;
    for (int64_t j = ty.from; j < ty.to; j++) for (int64_t k = tx.from; k < tx.to; k++) {
        const float w = height(tx, k)*height(ty, j);
        sum += w*float_at(x, k, j, i2, i3);
        weight += w;
    }
    return weight > 0.0f ? sum/weight : 0.0f;
}

void op_upscale(const struct cpu_task *t, struct ggml_tensor *dst) {
    static struct taps (*const modes[])(struct axis, int64_t) = {
        [GGML_SCALE_MODE_NEAREST] = closest, [GGML_SCALE_MODE_BILINEAR] = linear, [GGML_SCALE_MODE_BICUBIC] = cubic,
    };
    const struct ggml_tensor *x = dst->src[0];
    const uint32_t mode = (uint32_t) param_i32(dst, 0);
    const bool align = mode & GGML_SCALE_FLAG_ALIGN_CORNERS, smooth = mode & GGML_SCALE_FLAG_ANTIALIAS;
    struct axis a[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; d++) a[d] = axis_of(dst, d, align);
    struct taps (*const taps)(struct axis, int64_t) = modes[mode & 0xff];
    int64_t r0, r1;
    if (ggml_is_empty(x)) return;
    while (next_rows(t, n_rows(dst), 16*dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        float *const y = row_at(dst, i1, i2, i3);
        const int64_t j2 = nearest(a[2], i2), j3 = nearest(a[3], i3);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            y[i] = smooth ? antialiased(x, triangle_of(a[0], i), triangle_of(a[1], i1), j2, j3)
                          : interpolated(x, taps(a[0], i), taps(a[1], i1), j2, j3);
        }
    }
}

/* ---- padding and rolling: elements are moved, whatever they are ---------------------------------------------------- */

bool supports_elements(const struct ggml_tensor *dst) { return ggml_blck_size(dst->type) == 1; }

static int64_t modulo(int64_t i, int64_t n) { const int64_t r = i % n; return r < 0 ? r + n : r; }

/* n elements of a row of x from element `from` on, starting again at its end. */
static void copy_around(char *to, size_t step, const struct ggml_tensor *x, const char *row, int64_t from, int64_t n) {
    for (int64_t i = 0, m; i < n; i += m) {
        const int64_t j = modulo(from + i, x->ne[0]);
        m = least(n - i, x->ne[0] - j);
        copy_units(to + (size_t) i*step, step, row + (size_t) j*x->nb[0], x->nb[0], ggml_type_size(x->type), m);
    }
}

static void pad_row(struct ggml_tensor *dst, const int64_t *i, bool circular) {
    const struct ggml_tensor *x = dst->src[0];
    const size_t size = ggml_type_size(dst->type);
    char *const row = row_at(dst, i[1], i[2], i[3]);
    int64_t j[GGML_MAX_DIMS];
    bool inside = true;
    for (int d = 1; d < GGML_MAX_DIMS; d++) {
        j[d] = i[d] - param_i32(dst, 2*d);
        inside = inside && j[d] >= 0 && j[d] < x->ne[d];
        if (circular) j[d] = modulo(j[d], x->ne[d]);
    }
    if (circular) {
        copy_around(row, size, x, row_at(x, j[1], j[2], j[3]), -(int64_t) param_i32(dst, 0), dst->ne[0]);
    } else {
        memset(row, 0, (size_t) dst->ne[0]*size);
        char *const to = row + (size_t) param_i32(dst, 0)*size;
        if (inside) copy_units(to, size, row_at(x, j[1], j[2], j[3]), x->nb[0], size, x->ne[0]);
    }
}
void op_pad(const struct cpu_task *t, struct ggml_tensor *dst) {
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i[GGML_MAX_DIMS] = { 0 }; r < r1; r++) {
        row_index(dst, r, &i[1], &i[2], &i[3]);
        pad_row(dst, i, param_i32(dst, 8));
    }
}

void op_pad_reflect_1d(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const int64_t p = param_i32(dst, 0), n = x->ne[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const char *const from = row_number(x, r);
        float *const y = row_number(dst, r);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            const int64_t j = i < p ? p - i : i - p, k = j < n ? j : 2*(n - 1) - j;
            y[i] = *(const float *) (const void *) (from + (size_t) k*x->nb[0]);
        }
    }
}

void op_roll(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        char *const to = row_at(dst, i1, i2, i3);
        i1 = modulo(i1 - param_i32(dst, 1), x->ne[1]);
        i2 = modulo(i2 - param_i32(dst, 2), x->ne[2]);
        i3 = modulo(i3 - param_i32(dst, 3), x->ne[3]);
        copy_around(to, dst->nb[0], x, row_at(x, i1, i2, i3), -(int64_t) param_i32(dst, 0), dst->ne[0]);
    }
}

/* ---- windows and relative positions -------------------------------------------------------------------------------- */

void op_win_part(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const int64_t npx = param_i32(dst, 0), w = param_i32(dst, 2);
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        float *const y = row_at(dst, i1, i2, i3);
        const int64_t j1 = i3 % npx*w + i1, j2 = i3/npx*w + i2;
        if (j1 >= x->ne[1] || j2 >= x->ne[2]) memset(y, 0, (size_t) dst->ne[0]*sizeof *y);
        else copy_units((char *) y, sizeof *y, row_at(x, j1, j2, 0), x->nb[0], sizeof *y, dst->ne[0]);
    }
}

void op_win_unpart(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const int64_t w = param_i32(dst, 0), npx = (dst->ne[1] + w - 1)/w;
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const char *const from = row_at(x, i1 % w, i2 % w, i2/w*npx + i1/w);
        copy_units(row_at(dst, i1, i2, i3), dst->nb[0], from, x->nb[0], sizeof(float), dst->ne[0]);
    }
}

bool supports_get_rel_pos(const struct ggml_tensor *dst) { return dst->src[0]->type == GGML_TYPE_F16; }
void op_get_rel_pos(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const char *const from = row_at(x, dst->ne[1] - 1 - i1 + i2, 0, 0);
        copy_units(row_at(dst, i1, i2, i3), dst->nb[0], from, x->nb[0], sizeof(uint16_t), dst->ne[0]);
    }
}

void op_add_rel_pos(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *pw = dst->src[1], *ph = dst->src[2];
    const int64_t k = pw->ne[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const int64_t q1 = i1 % pw->ne[1], q2 = i1/pw->ne[1];
        for (int64_t y = 0; y < k; y++) for (int64_t x = 0; x < k; x++) {
            float *const to = (float *) (void *) element(dst, x + k*y, i1, i2, i3);
            *to = float_at(a, x + k*y, i1, i2, i3) + float_at(pw, x, q1, q2, i2) + float_at(ph, y, q1, q2, i2);
        }
    }
}
