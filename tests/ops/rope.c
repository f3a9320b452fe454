/* ROPE and ROPE_BACK in every mode against the formula in double, and its error at far positions. */

#include "ref.h"

#define PI 3.14159265358979323846

struct setting { int mode, n_dims, offset, sections[4]; float base, scale, ext, attn, fast, slow; int ctx; };
static struct setting now;

/* Which position block pair i follows; *exponent is that of its frequency. */
static int block_of(int64_t i, int64_t *exponent) {
    *exponent = i;
    if (!(now.mode & GGML_ROPE_TYPE_MROPE)) return 0;
    const int64_t t = now.sections[0], h = now.sections[1], w = now.sections[2], s = i % (t + h + w + now.sections[3]);
    if (now.mode == GGML_ROPE_TYPE_IMROPE) return s % 3 == 1 && s < 3*h ? 1 : s % 3 == 2 && s < 3*w ? 2 : s % 3 == 0 && s < 3*t ? 0 : 3;
    const int k = s < t ? 0 : s < t + h ? 1 : s < t + h + w ? 2 : 3;
    if (now.mode == GGML_ROPE_TYPE_VISION) *exponent = s - (k == 0 ? 0 : k == 1 ? t : k == 2 ? t + h : t + h + w);
    return k;
}

static double want_rope(const tensor *y, const int64_t *i) {
    const tensor *a = y->src[0], *pos = y->src[1], *ff = y->src[2];
    const bool pairs_apart = now.mode != GGML_ROPE_TYPE_NORMAL;
    const int64_t half = now.mode == GGML_ROPE_TYPE_VISION ? now.n_dims : now.n_dims/2, k = i[0] - now.offset;
    if (k < 0 || k >= 2*half) return value_at(a, i);
    const int64_t pair = pairs_apart ? k % half : k/2, second = pairs_apart ? k/half : k % 2;
    int64_t e;
    const int block = block_of(pair, &e);
    double theta = value(pos, i[2] + block*y->ne[2], 0, 0, 0)*pow((double) now.base, -2.0*(double) e/now.n_dims), m = (double) now.attn;
    if (ff) theta /= value(ff, pair, 0, 0, 0);
    if (now.ext != 0) {
        double edge[2];
        for (int j = 0; j < 2; j++) edge[j] = now.n_dims*log(now.ctx/(2*PI*(double) (j ? now.slow : now.fast)))/(2*log((double) now.base));
        const double lo = fmax(0, floor(edge[0])), hi = fmin(now.n_dims - 1, ceil(edge[1]));
        const double ramp = (1 - fmin(1, fmax(0, ((double) pair - lo)/fmax(0.001, hi - lo))))*(double) now.ext;
        theta = (double) now.scale*theta*(1 - ramp) + theta*ramp;
        m *= 1 + 0.1*log(1/(double) now.scale);
    } else {
        theta *= (double) now.scale;
    }
    int64_t at[4] = { now.offset + (pairs_apart ? pair : 2*pair), i[1], i[2], i[3] };
    const double x0 = value_at(a, at);
    at[0] += pairs_apart ? half : 1;
    const double x1 = value_at(a, at), c = cos(theta)*m, s = sin(theta)*m*(y->op == GGML_OP_ROPE_BACK ? -1 : 1);
    return second ? x0*s + x1*c : x0*c - x1*s;
}

static tensor *build(struct bench *b, tensor *a, tensor *pos, tensor *ff, bool back, bool inplace) {
    const struct setting s = now;
    int sections[4];
    memcpy(sections, s.sections, sizeof sections);
    const bool multi = s.mode & GGML_ROPE_TYPE_MROPE;
    tensor *y =
        multi && back    ? ggml_rope_multi_back(b->ctx, a, pos, ff, s.n_dims, sections, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow)
      : multi && inplace ? ggml_rope_multi_inplace(b->ctx, a, pos, ff, s.n_dims, sections, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow)
      : multi            ? ggml_rope_multi(b->ctx, a, pos, ff, s.n_dims, sections, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow)
      : back             ? ggml_rope_ext_back(b->ctx, a, pos, ff, s.n_dims, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow)
      : inplace          ? ggml_rope_ext_inplace(b->ctx, a, pos, ff, s.n_dims, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow)
      :                    ggml_rope_ext(b->ctx, a, pos, ff, s.n_dims, s.mode, s.ctx, s.base, s.scale, s.ext, s.attn, s.fast, s.slow);
    return s.offset ? ggml_rope_set_offset(y, s.offset) : y;
}

static const struct setting modes[] = {
    { .mode = GGML_ROPE_TYPE_NORMAL, .n_dims = 24 },
    { .mode = GGML_ROPE_TYPE_NORMAL, .n_dims = 40 },
    { .mode = GGML_ROPE_TYPE_NORMAL, .n_dims = 24, .offset = 10 },
    { .mode = GGML_ROPE_TYPE_NEOX,   .n_dims = 40 },
    { .mode = GGML_ROPE_TYPE_NEOX,   .n_dims = 34, .offset = 6 },
    { .mode = GGML_ROPE_TYPE_MROPE,  .n_dims = 40, .sections = { 8, 6, 4, 2 } },
    { .mode = GGML_ROPE_TYPE_MROPE,  .n_dims = 40, .sections = { 3, 2, 2, 0 } },
    { .mode = GGML_ROPE_TYPE_IMROPE, .n_dims = 40, .sections = { 8, 6, 4, 2 } },
    { .mode = GGML_ROPE_TYPE_VISION, .n_dims = 20, .sections = { 10, 10, 0, 0 } },
    { .mode = GGML_ROPE_TYPE_VISION, .n_dims = 20, .sections = { 4, 6, 5, 5 } },
};

static void test_modes(void) {
    for (size_t m = 0; m < sizeof modes/sizeof *modes; m++) for (int yarn = 0; yarn < 2; yarn++) for (int with_ff = 0; with_ff < 2; with_ff++)
    for (int l = 0; l < LAYOUTS; l++) for (int half = 0; half < 2; half++) {
        now = modes[m];
        now.base = 10000, now.scale = yarn ? 0.25f : 0.7f, now.ext = yarn ? 0.8f : 0, now.attn = 1.1f, now.fast = 32, now.slow = 1, now.ctx = 4096;
        struct bench b = bench_new();
        tensor *a = operand(&b, half ? GGML_TYPE_F16 : GGML_TYPE_F32, SIZE(40, 3, 5, 2), (enum layout) l);
        tensor *pos = operand(&b, GGML_TYPE_I32, SIZE(now.mode & GGML_ROPE_TYPE_MROPE ? 20 : 5, 1, 1, 1), PACKED), *ff = NULL;
        fill(&b, pos, 0, 5000);
        if (with_ff) ff = operand(&b, GGML_TYPE_F32, SIZE(20, 1, 1, 1), PACKED), fill(&b, ff, 0.5, 4);
        char name[96];
        snprintf(name, sizeof name, "rope row %d, yarn %d, factors %d, %s", (int) m, yarn, with_ff, layout_names[l]);
        tensor *y = build(&b, a, pos, ff, false, false);
        expect(&b, y, want_rope, half ? 0x1p-11 : 2e-7, 1e-6, name);
        expect(&b, build(&b, a, pos, ff, true, false), want_rope, half ? 0x1p-11 : 2e-7, 1e-6, name);
        tensor *in = build(&b, a, pos, ff, false, true);
        compute(&b, in, 2);
        int wrong = 0;
        FOR_ELEMENTS(i, y) wrong += value_at(y, i) != value_at(in, i);
        CHECK(wrong == 0, "%s in place: %d differ", name, wrong);
        bench_free(&b);
    }
}

/* d = 128, base 10000, x = 1: the angle is right to 1e-6 radians up to position 1e6. */
static void test_far(void) {
    static const double positions[] = { 0, 4096, 131072, 1000000, 2147483647 };
    for (int mode = 0; mode <= 2; mode += 2) {
        now = (struct setting) { .mode = mode, .n_dims = 128, .base = 10000, .scale = 1, .attn = 1 };
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(128, 2, 5, 1), PACKED);
        FOR_ELEMENTS(i, a) set_value(a, i, 1);
        tensor *pos = operand_of(&b, GGML_TYPE_I32, SIZE(5, 1, 1, 1), positions);
        expect(&b, build(&b, a, pos, NULL, false, false), want_rope, 0, 1e-6, "far positions");
        expect_same_for_threads(&b, build(&b, a, pos, NULL, false, false), "far positions");
        bench_free(&b);
    }
}

int main(void) {
    test_modes();
    test_far();
    return DONE();
}
