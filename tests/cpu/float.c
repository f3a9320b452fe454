/* Every instruction set returns the bits of the portable float kernels; the portable ones agree with doubles. */

#include "check.h"
#include "cpu.h"
#include "kernels.h"
#include "quant.h"

enum { N = 1100, STEP = 176 };         /* STEP: of rows in one array */
static const int64_t lengths[] = { 0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 255, 256, 257, 1000, N };
#define FOR_EACH_LENGTH(n) for (size_t l_ = 0, n; l_ < sizeof lengths/sizeof *lengths && (n = (size_t) lengths[l_], true); l_++)

static float a[N], b[N], c[N];
static uint16_t halves[N];
static block_q8_0 blocks[N/32];

/* Values of all sizes, a few of them special. */
static float any_float(uint64_t *seed) {
    static const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
        -0x1.fffffep127f, 65519.99f, 65520.0f, 0x1p-24f, 0x1p-25f, 0.5f, -0.5f, 1.5f, 2.5f, 0x1.fffffep-2f, 8388609.0f };
    const uint64_t r = rnd_u64(seed);
    switch (r % 16) {
    case 0:          return special[(r >> 8) % (sizeof special/sizeof *special)];
    case 1: case 2:  return bits_f32((uint32_t) (r >> 16));             /* any bits at all */
    case 3: case 4:  return rnd_f32(seed)*100.0f;
    default:         return rnd_f32(seed)*8.0f;
    }
}

/* One NaN is as good as another. */
static void same_nan(size_t n, float *x) { for (size_t i = 0; i < n; i++) if (isnan(x[i])) x[i] = NAN; }
static void same_half_nan(size_t n, uint16_t *x, uint16_t infinity) {
    for (size_t i = 0; i < n; i++) if ((x[i] & 0x7fff) > infinity) x[i] = 0x7fff;
}

struct out { float y[N + 16], z[N + 16]; uint16_t h[N + 16]; double d; float f; };
static struct out want, got;

static void clear(struct out *o) {
    memset(o, 0x5a, sizeof *o);                                         /* what lies behind a row stays as it is */
}

static void compare(const char *what, size_t n, const char *level) {
    same_nan(n, want.y), same_nan(n, got.y), same_nan(n, want.z), same_nan(n, got.z);
    if (isnan(want.d)) want.d = NAN;
    if (isnan(got.d)) got.d = NAN;
    same_nan(1, &want.f), same_nan(1, &got.f);
    CHECK(!memcmp(&want, &got, sizeof want), "%s, n = %zu, %s", what, n, level);
}

/* The statement with k and o, once for the definition and once for the level, on cleared outputs. */
#define BOTH(what, statement) do { \
    const struct float_kernels *k = p; struct out *o = &want; clear(o); statement; \
    k = q; o = &got; clear(o); statement; \
    compare(what, n, level); \
} while (0)

static void compare_level(const struct float_kernels *p, const struct float_kernels *q, const char *level) {
    static double angles[N];
    FOR_EACH_LENGTH(n) {
        const int64_t m = (int64_t) n;
#define UNARY(NAME, f)  BOTH("unary " #NAME, k->unary[GGML_UNARY_OP_##NAME](m, o->y, a));
#define MAP(name, f)    BOTH(#name, k->name(m, o->y, a));
#define BINARY(name, f) BOTH(#name, k->name(m, o->y, a, b));
#define GLU(NAME, f)    BOTH("glu " #NAME, k->glu[GGML_GLU_OP_##NAME](m, o->y, a, b));
#include "float.def"
        for (size_t i = 0; i < n; i++) angles[i] = 1e5*c[i];
        BOTH("sin",          k->sin(m, o->y, a));
        BOTH("cos",          k->cos(m, o->y, a));
        BOTH("sin_cos",      k->sin_cos(m, o->y, o->z, angles));
        BOTH("add1",         k->add1(m, o->y, a, 0.3f));
        BOTH("mul1",         k->mul1(m, o->y, a, 0.3f));
        BOTH("axpy",         memcpy(o->y, b, n*sizeof *b); k->axpy(m, o->y, a, 0.3f));
        for (int terms = 0; terms < 4; terms++)
            BOTH("outer", for (size_t i = 0; i < OUTER_ROWS*STEP; i++) o->z[i] = b[i % N];
                 k->outer(m < STEP ? m/16*16 : STEP, o->z, STEP, (const float *[]) { a, b, c }, c, terms));
        BOTH("scale_bias",   k->scale_bias(m, o->y, a, 0.3f, -0.7f));
        BOTH("xielu",        k->xielu(m, o->y, a, 0.8f, 0.7f, 0.5f, -1e-6f));
        BOTH("swiglu_oai",   k->swiglu_oai(m, o->y, a, b, 1.702f, 7.0f));
        BOTH("swiglu_clamp", k->swiglu_clamp(m, o->y, a, b, 7.0f));
        BOTH("rotate_halves", k->rotate_halves(m/2, o->y, a, b, c));
        BOTH("rotate_pairs",  k->rotate_pairs(m/2, o->y, a, b, c));
        BOTH("rotate in place", memcpy(o->y, a, n*sizeof *a); k->rotate_halves(m/2, o->y, o->y, b, c));
        BOTH("in place",     memcpy(o->y, a, n*sizeof *a); k->unary[GGML_UNARY_OP_GELU](m, o->y, o->y));
        BOTH("sin in place", memcpy(o->y, a, n*sizeof *a); k->sin(m, o->y, o->y));
        for (int pass = 0; pass < 2; pass++) {                          /* with and without infinities and NaN */
            const float *x = pass ? a : c;
            BOTH("sum",         o->d = k->sum(m, x));
            BOTH("sum_sq",      o->d = k->sum_sq(m, x));
            BOTH("sum_mul",     o->d = k->sum_mul(m, x, b));
            BOTH("sum_sq_from", o->d = k->sum_sq_from(m, x, 0.1));
            BOTH("max",         o->f = k->max(m, x));
            BOTH("exp_sum",     o->d = k->exp_sum(m, o->y, x, 1.0f));
            BOTH("dot_f32",     o->f = k->dot_f32(m, x, c));
            BOTH("dot_f16",     o->f = k->dot_f16(m, halves, x));
            BOTH("dot_bf16",    o->f = k->dot_bf16(m, halves, x));
        }
        BOTH("from_f16",  k->from_f16(m, o->y, halves));
        BOTH("from_bf16", k->from_bf16(m, o->y, halves));
        BOTH("to_f16",    k->to_f16(m, o->h, a); same_half_nan(n, o->h, 0x7c00));
        BOTH("to_bf16",   k->to_bf16(m, o->h, a); same_half_nan(n, o->h, 0x7f80));
    }
}

/* The definition itself, against sums in long double. */
static void check_reductions(const struct float_kernels *k) {
    FOR_EACH_LENGTH(n) {
        long double sum = 0, sq = 0, from = 0, dot = 0, size = 1e-30L, e = 0;
        float max = -INFINITY, y[N];
        for (size_t i = 0; i < n; i++) {
            sum += c[i], sq += (long double) c[i]*c[i], from += (c[i] - 0.25L)*(c[i] - 0.25L), e += expl(c[i] - 3.0L);
            dot += (long double) c[i]*c[n - 1 - i], size += fabsl((long double) c[i]*c[n - 1 - i]);
            if (c[i] > max) max = c[i];
        }
        float back[N];
        for (size_t i = 0; i < n; i++) back[i] = c[n - 1 - i];
        const int64_t m = (int64_t) n;
        CHECK(fabsl(k->sum(m, c) - sum) <= 1e-12L*(1 + (long double) n), "sum of %zu", n);
        CHECK(fabsl(k->sum_sq(m, c) - sq) <= 1e-13L*(1 + sq), "sum_sq of %zu", n);
        CHECK(fabsl(k->sum_sq_from(m, c, 0.25) - from) <= 1e-13L*(1 + from), "sum_sq_from of %zu", n);
        CHECK(fabsl(k->sum_mul(m, c, back) - dot) <= 1e-13L*size, "sum_mul of %zu", n);
        CHECK(fabsl(k->dot_f32(m, c, back) - dot) <= 1e-5L*size, "dot of %zu", n);
        CHECK(k->max(m, c) == max, "max of %zu", n);
        CHECK(fabsl(k->exp_sum(m, y, c, 3.0f) - e) <= 1e-6L*(e + 1e-30L), "exp_sum of %zu", n);
    }
    const float with_nan[] = { NAN, 1, NAN, 3, 2 };
    CHECK(k->max(5, with_nan) == 3, "max passes over NaN");
}

/* IEEE 754 halves, and ties to even. */
static void check_halves(const struct float_kernels *k, const char *level) {
    static const struct { float x; uint16_t f16; } f16[] = { { 65519.99f, 0x7bff }, { 65520, 0x7c00 }, { 5.9604645e-8f, 1 },
        { 2.9802322e-8f, 0 }, { 1.00048828125f, 0x3c00 }, { 1.00146484375f, 0x3c02 }, { -1e9f, 0xfc00 }, { -0.0f, 0x8000 } };
    static const struct { uint32_t x; uint16_t bf16; } bf16[] = { { 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 }, { 0x7f7fffff, 0x7f80 } };
    uint16_t h;
    for (size_t i = 0; i < sizeof f16/sizeof *f16; i++) {
        k->to_f16(1, &h, &f16[i].x);
        CHECK(h == f16[i].f16, "%g to f16: %04x, %s", f16[i].x, h, level);
    }
    for (size_t i = 0; i < sizeof bf16/sizeof *bf16; i++) {
        const float x = bits_f32(bf16[i].x);
        k->to_bf16(1, &h, &x);
        CHECK(h == bf16[i].bf16, "%08x to bf16: %04x, %s", bf16[i].x, h, level);
    }
    const float nan = bits_f32(0x7f800001);
    k->to_bf16(1, &h, &nan);
    CHECK((h & 0x7fff) > 0x7f80, "a NaN stays one in bf16: %04x, %s", h, level);
    k->to_f16(1, &h, &nan);
    CHECK((h & 0x7fff) > 0x7c00, "a NaN stays one in f16: %04x, %s", h, level);
}

int main(void) {
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) a[i] = any_float(&seed), b[i] = any_float(&seed), c[i] = rnd_f32(&seed)*3.0f;
    for (int i = 0; i < N; i++) halves[i] = (uint16_t) rnd_u64(&seed);
    for (int i = 0; i < N/32; i++) {
        blocks[i].d = f32_to_f16(rnd_f32(&seed));
        for (int j = 0; j < 32; j++) blocks[i].qs[j] = (int8_t) rnd_u64(&seed);
    }
    const struct float_kernels *portable = &cpu_kernels_at(CPU_PORTABLE)->f;
    check_reductions(portable);
    for (int level = 0; level < CPU_LEVELS; level++) {
        if (!cpu_level_present((enum cpu_level) level)) continue;
        const char *name = cpu_level_name((enum cpu_level) level);
        const struct float_kernels *k = &cpu_kernels_at((enum cpu_level) level)->f;
        check_halves(k, name);
        compare_level(portable, k, name);
    }
    return DONE();
}
