/* Pooling, resizing, padding, rolling, windows and relative positions against their definitions. */

#include "ref.h"

static int32_t param(const tensor *y, int i) { return y->op_params[i]; }
static int64_t modulo(int64_t i, int64_t n) { return ((i % n) + n) % n; }

/* ---- pooling ------------------------------------------------------------------------------------------------------- */

static double want_pool_1d(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    double sum = 0.0, max = -3.4028234663852886e38;
    int n = 0;
    for (int k = 0; k < param(y, 1); k++) {
        const int64_t at = i[0]*param(y, 2) + k - param(y, 3);
        if (at < 0 || at >= x->ne[0]) continue;
        const double v = value(x, at, i[1], i[2], i[3]);
        sum += v, n++;
        if (v > max) max = v;
    }
    return param(y, 0) == GGML_OP_POOL_MAX ? max : sum/n;
}
static double want_pool_2d(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    double sum = 0.0, max = -3.4028234663852886e38;
    for (int ky = 0; ky < param(y, 2); ky++) for (int kx = 0; kx < param(y, 1); kx++) {
        const int64_t u = i[0]*param(y, 3) + kx - param(y, 5), v = i[1]*param(y, 4) + ky - param(y, 6);
        if (u < 0 || u >= x->ne[0] || v < 0 || v >= x->ne[1]) continue;
        const double w = value(x, u, v, i[2], i[3]);
        sum += w;
        if (w > max) max = w;
    }
    return param(y, 0) == GGML_OP_POOL_MAX ? max : sum/(param(y, 1)*param(y, 2));
}
static double want_pool_back(const tensor *y, const int64_t *i) {
    const tensor *g = y->src[0], *x = y->src[1];
    double sum = 0.0;
    for (int64_t oy = 0; oy < g->ne[1]; oy++) for (int64_t ox = 0; ox < g->ne[0]; ox++) {
        const double gradient = value(g, ox, oy, i[2], i[3]);
        double max = -INFINITY;
        int64_t mx = -1, my = -1;
        bool hit = false;
        for (int ky = 0; ky < param(y, 2); ky++) for (int kx = 0; kx < param(y, 1); kx++) {
            const int64_t u = ox*param(y, 3) + kx - param(y, 5), v = oy*param(y, 4) + ky - param(y, 6);
            if (u < 0 || u >= x->ne[0] || v < 0 || v >= x->ne[1]) continue;
            hit = hit || (u == i[0] && v == i[1]);
            if (value(x, u, v, i[2], i[3]) > max) max = value(x, u, v, i[2], i[3]), mx = u, my = v;
        }
        if (param(y, 0) == GGML_OP_POOL_AVG) sum += hit ? gradient/(param(y, 1)*param(y, 2)) : 0.0;
        else if (mx == i[0] && my == i[1]) sum += gradient;
    }
    return sum;
}
static void test_pooling(void) {
    for (int op = 0; op < 2; op++) for (int f16 = 0; f16 < 2; f16++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, f16 ? GGML_TYPE_F16 : GGML_TYPE_F32, SIZE(11, 9, 3, 2), (enum layout) l);
        expect(&b, ggml_pool_1d(b.ctx, x, (enum ggml_op_pool) op, 3, 2, 1), want_pool_1d, 1e-6, 1e-7, "pool_1d");
        expect(&b, ggml_pool_2d(b.ctx, x, (enum ggml_op_pool) op, 3, 2, 2, 2, 1, 0), want_pool_2d, 1e-6, 1e-7, "pool_2d");
        tensor *half = ggml_pool_2d(b.ctx, x, (enum ggml_op_pool) op, 2, 2, 2, 2, 0.5f, 0.5f);
        CHECK(half->ne[0] == 6 && half->ne[1] == 5, "half a pixel of padding");
        expect(&b, half, want_pool_2d, 1e-6, 1e-7, "pool_2d");
        fill(&b, x, -4, 4);
        FOR_ELEMENTS(i, x) set_value(x, i, floor(value_at(x, i)));          /* ties: the first maximum has the gradient */
        tensor *g = operand(&b, GGML_TYPE_F32, SIZE(6, 4, 3, 2), (enum layout) l);
        expect(&b, ggml_pool_2d_back(b.ctx, g, x, (enum ggml_op_pool) op, 3, 2, 2, 2, 1, 0), want_pool_back, 1e-6,
            1e-6, "pool_2d_back");
        bench_free(&b);
    }
}

/* ---- resizing ------------------------------------------------------------------------------------------------------ */

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
static double triangle(double u) { return fabs(u) < 1.0 ? 1.0 - fabs(u) : 0.0; }
static double keys(double u) {
    const double a = -0.75, v = fabs(u);
    return v <= 1.0 ? (a + 2)*v*v*v - (a + 3)*v*v + 1 : v < 2.0 ? a*v*v*v - 5*a*v*v + 8*a*v - 4*a : 0.0;
}
/* The weight of source element j in output element i of an axis; rows of weights add up to one. */
static double axis_weight(uint32_t mode, int64_t i, int64_t j, int64_t n, int64_t m) {
    const bool align = mode & GGML_SCALE_FLAG_ALIGN_CORNERS;
    const double scale = align && n > 1 && m > 1 ? (double) (m - 1)/(double) (n - 1) : (double) m/(double) n,
        off = align ? 0.0 : 0.5;
    const double x = ((double) i + off)/scale - off, f = floor(x);
    double w = 0.0, sum = 0.0;
    switch (mode & 0xff) {
        case GGML_SCALE_MODE_NEAREST: return within((int64_t) floor((double) i/scale), n) == j;
        case GGML_SCALE_MODE_BICUBIC:
            for (int k = -1; k < 3; k++) if (within((int64_t) f + k, n) == j) w += keys(x - f - k);
            return w;
        default: break;
    }
    if (!(mode & GGML_SCALE_FLAG_ANTIALIAS)) {
        const int64_t x0 = within((int64_t) f, n), x1 = within((int64_t) f + 1, n);
        const double d = fmin(fmax(x - (double) x0, 0.0), 1.0);
        return (x0 == j ? 1.0 - d : 0.0) + (x1 == j ? d : 0.0);
    }
    const double c = ((double) i + 0.5)/scale, u = fmax(1.0, 1.0/scale);
    for (int64_t k = (int64_t) fmax(0, floor(c - u + 0.5)); k < (int64_t) fmin((double) n, floor(c + u + 0.5)); k++) {
        sum += triangle(((double) k - c + 0.5)/u);
        if (k == j) w = triangle(((double) k - c + 0.5)/u);
    }
    return w/sum;
}
static double want_upscale(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    const uint32_t mode = (uint32_t) param(y, 0);
    const int64_t i2 = (int64_t) floor((double) i[2]*(double) x->ne[2]/(double) y->ne[2]),
        i3 = (int64_t) floor((double) i[3]*(double) x->ne[3]/(double) y->ne[3]);
    double sum = 0.0;
    for (int64_t v = 0; v < x->ne[1]; v++) for (int64_t u = 0; u < x->ne[0]; u++) {
        sum += axis_weight(mode, i[0], u, x->ne[0], y->ne[0])*axis_weight(mode, i[1], v, x->ne[1], y->ne[1])*value(x,
            u, v, i2, i3);
    }
    return sum;
}
static void test_resizing(void) {
    static const uint32_t modes[] = {
        GGML_SCALE_MODE_NEAREST, GGML_SCALE_MODE_BILINEAR, GGML_SCALE_MODE_BICUBIC,
            GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS,
        GGML_SCALE_MODE_NEAREST | GGML_SCALE_FLAG_ALIGN_CORNERS,
            GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ALIGN_CORNERS,
            GGML_SCALE_MODE_BICUBIC | GGML_SCALE_FLAG_ALIGN_CORNERS,
    };
    for (size_t k = 0; k < sizeof modes/sizeof *modes; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        char name[32];
        snprintf(name, sizeof name, "mode %x", modes[k]);
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(8, 6, 2, 1), (enum layout) l);
        expect(&b, ggml_interpolate(b.ctx, x, 16, 12, 4, 2, modes[k]), want_upscale, 0.0, 1e-5, name);
        expect(&b, ggml_interpolate(b.ctx, x, 4, 3, 2, 1, modes[k]), want_upscale, 0.0, 1e-5, name);
        if (modes[k] < 3) expect(&b, ggml_upscale(b.ctx, x, 4, (enum ggml_scale_mode) modes[k]), want_upscale, 0.0,
            1e-5, name);
        bench_free(&b);
    }
}

/* ---- padding and rolling ------------------------------------------------------------------------------------------- */

static double want_pad(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    int64_t k[4];
    for (int d = 0; d < 4; d++) {
        k[d] = i[d] - param(y, 2*d);
        if (param(y, 8)) k[d] = modulo(k[d], x->ne[d]);
        else if (k[d] < 0 || k[d] >= x->ne[d]) return 0.0;
    }
    return value_at(x, k);
}
static double want_reflect(const tensor *y, const int64_t *i) {
    const int64_t n = y->src[0]->ne[0], k = i[0] - param(y, 0);
    return value(y->src[0], k < 0 ? -k : k >= n ? 2*(n - 1) - k : k, i[1], i[2], i[3]);
}
static double want_roll(const tensor *y, const int64_t *i) {
    int64_t k[4];
    for (int d = 0; d < 4; d++) k[d] = modulo(i[d] - param(y, d), y->ne[d]);
    return value_at(y->src[0], k);
}
static void test_padding(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(7, 5, 3, 2), (enum layout) l);
        expect(&b, ggml_pad(b.ctx, x, 1, 2, 0, 1), want_pad, 0.0, 0.0, "pad");
        expect(&b, ggml_pad_ext(b.ctx, x, 3, 1, 2, 2, 1, 0, 0, 2), want_pad, 0.0, 0.0, "pad_ext");
        expect(&b, ggml_pad_circular(b.ctx, x, 9, 2, 0, 1), want_pad, 0.0, 0.0, "pad_circular");
        expect(&b, ggml_pad_ext_circular(b.ctx, x, 16, 1, 2, 2, 1, 0, 0, 2), want_pad, 0.0, 0.0, "pad_ext_circular");
        expect(&b, ggml_pad_reflect_1d(b.ctx, x, 6, 4), want_reflect, 0.0, 0.0, "pad_reflect_1d");
        expect(&b, ggml_roll(b.ctx, x, 3, -2, 1, 0), want_roll, 0.0, 0.0, "roll");
        expect(&b, ggml_roll(b.ctx, x, -6, 4, -2, 1), want_roll, 0.0, 0.0, "roll");
        bench_free(&b);
    }
}

/* ---- windows, relative positions ----------------------------------------------------------------------------------- */

static double want_part(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    const int64_t u = i[3] % param(y, 0)*param(y, 2) + i[1], v = i[3]/param(y, 0)*param(y, 2) + i[2];
    return u < x->ne[1] && v < x->ne[2] ? value(x, i[0], u, v, 0) : 0.0;
}
static double want_whole(const tensor *y, const int64_t *i) { return value_at(y->src[0]->src[0], i); }
static double want_rel_pos(const tensor *y, const int64_t *i) { return value(y->src[0], i[0],
    y->ne[1] - 1 - i[1] + i[2], 0, 0); }
static double want_add_rel_pos(const tensor *y, const int64_t *i) {
    const tensor *pw = y->src[1], *ph = y->src[2];
    const int64_t k = pw->ne[0], q1 = i[1] % pw->ne[1], q2 = i[1]/pw->ne[1];
    return value_at(y->src[0], i) + value(pw, i[0] % k, q1, q2, i[2]) + value(ph, i[0]/k, q1, q2, i[2]);
}
static void test_windows(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *part = ggml_win_part(b.ctx, operand(&b, GGML_TYPE_F32, SIZE(5, 7, 9, 1), (enum layout) l), 4);
        expect(&b, part, want_part, 0.0, 0.0, "win_part");
        expect(&b, ggml_win_unpart(b.ctx, part, 7, 9, 4), want_whole, 0.0, 0.0, "win_unpart");
        expect(&b, ggml_get_rel_pos(b.ctx, operand(&b, GGML_TYPE_F16, SIZE(5, 7, 1, 1), (enum layout) l), 4, 4),
            want_rel_pos, 0.0, 0.0, "get_rel_pos");
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(9, 6, 2, 1), (enum layout) l),
            *pw = operand(&b, GGML_TYPE_F32, SIZE(3, 3, 2, 2), (enum layout) l);
        tensor *ph = operand(&b, GGML_TYPE_F32, SIZE(3, 3, 2, 2), (enum layout) l),
            *own = ggml_add_rel_pos(b.ctx, a, pw, ph);
        expect(&b, own, want_add_rel_pos, 1e-6, 1e-6, "add_rel_pos");
        tensor *in = ggml_add_rel_pos_inplace(b.ctx, a, pw, ph);
        CHECK(compute(&b, in, 1) == GGML_STATUS_SUCCESS, "add_rel_pos");
        FOR_ELEMENTS(i, own) CHECK(value_at(own, i) == value_at(in, i), "add_rel_pos in place");
        bench_free(&b);
    }
}

int main(void) {
    test_pooling();
    test_resizing();
    test_padding();
    test_windows();
    return DONE();
}
