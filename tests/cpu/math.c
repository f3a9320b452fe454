/* The elementary functions keep their stated largest errors: over a dense sample of all floats, and at special values. */

#include "check.h"
#include "cpu.h"
#include "kernels.h"
#include "quant.h"

static double sigmoid(double x)    { return x < 0 ? exp(x)/(1 + exp(x)) : 1/(1 + exp(-x)); }
static double softplus(double x)   { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double gelu(double x)       { return x*sigmoid(2*sqrt(2/3.14159265358979324)*x*(1 + 0.044715*x*x)); }
static double gelu_quick(double x) { return x*sigmoid(1.702*x); }
static double gelu_erf(double x)   { return 0.5*x*erfc(-x/sqrt(2)); }
static double silu(double x)       { return x*sigmoid(x); }

#define UNARY(NAME) .at = offsetof(struct float_kernels, unary[GGML_UNARY_OP_##NAME])
#define MAP(name)   .at = offsetof(struct float_kernels, name)

/* `ulp`: largest error in units in the last place of the result. The gates multiply x by a factor that vanishes on the left:
 * there `of_x` bounds the error in units in the last place of x. */
static const struct function {
    const char *name;
    double (*exact)(double x);
    double ulp, of_x;
    size_t at;
} functions[] = {
    { "exp",        exp,        1, 0, UNARY(EXP) },
    { "expm1",      expm1,      2, 0, UNARY(EXPM1) },
    { "log",        log,        1, 0, MAP(log) },
    { "tanh",       tanh,       2, 0, UNARY(TANH) },
    { "sin",        sin,        1, 0, MAP(sin) },
    { "cos",        cos,        1, 0, MAP(cos) },
    { "sigmoid",    sigmoid,    3, 0, UNARY(SIGMOID) },
    { "softplus",   softplus,   3, 0, UNARY(SOFTPLUS) },
    { "silu",       silu,       0, 3, UNARY(SILU) },
    { "gelu",       gelu,       0, 3, UNARY(GELU) },
    { "gelu_quick", gelu_quick, 0, 3, UNARY(GELU_QUICK) },
    { "gelu_erf",   gelu_erf,   0, 3, UNARY(GELU_ERF) },
};

typedef void map(int64_t n, float *y, const float *x);
static map *kernel(const struct float_kernels *k, const struct function *f) {
    map *p;
    memcpy(&p, (const char *) k + f->at, sizeof p);
    return p;
}

static double last_place(double x) {
    int e;
    frexp(x, &e);
    return ldexp(1, (x == 0 || e < -125 ? -125 : e) - 24);
}

/* Error of y in the unit that the function is stated in. */
static double error(const struct function *f, float x, float y) {
    const double exact = f->exact(x);
    const float rounded = (float) exact;
    if (isnan(rounded)) return isnan(y) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(y)) return rounded == y ? 0 : INFINITY;
    return fabs(y - exact)/last_place(f->of_x > 0 ? x : exact);
}

static void check_dense(const struct function *f, const struct float_kernels *k, uint32_t step) {
    enum { BLOCK = 1024 };
    float x[BLOCK], y[BLOCK], at = 0;
    double worst = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        int n = 0;
        for (; n < BLOCK && bits <= UINT32_MAX; bits += step) {
            const float v = bits_f32((uint32_t) bits);
            if (f->ulp > 0 || isfinite(v)) x[n++] = v;
        }
        kernel(k, f)(n, y, x);
        for (int i = 0; i < n; i++) {
            const double e = error(f, x[i], y[i]);
            if (!(e <= worst)) worst = e, at = x[i];
        }
    }
    CHECK(worst <= f->ulp + f->of_x, "%s(%a): error %.3f", f->name, (double) at, worst);
}

static void check_values(const struct float_kernels *k) {
    static const struct { int op; float x, y; } unary[] = {
        { GGML_UNARY_OP_GELU, 8.0039f, 8.0039f }, { GGML_UNARY_OP_GELU, 3.1415927f, 3.139308f },
        { GGML_UNARY_OP_GELU, 1.0f, 0.841192f }, { GGML_UNARY_OP_GELU, 9.9990234f, 9.999023f },
        { GGML_UNARY_OP_GELU_QUICK, 70000, 70000 }, { GGML_UNARY_OP_GELU_QUICK, -70000, 0 },
        { GGML_UNARY_OP_GELU, -INFINITY, 0 }, { GGML_UNARY_OP_SILU, -INFINITY, 0 }, { GGML_UNARY_OP_GELU_ERF, -INFINITY, 0 },
        { GGML_UNARY_OP_GELU, INFINITY, INFINITY }, { GGML_UNARY_OP_SILU, INFINITY, INFINITY },
        { GGML_UNARY_OP_GELU_ERF, INFINITY, INFINITY }, { GGML_UNARY_OP_GELU, 3e38f, 3e38f }, { GGML_UNARY_OP_GELU, -3e38f, 0 },
        { GGML_UNARY_OP_EXP, 0, 1 }, { GGML_UNARY_OP_EXP, 88.72283f, 0x1.ffff08p127f }, { GGML_UNARY_OP_EXP, 88.722840f, INFINITY },
        { GGML_UNARY_OP_EXP, -103.97208f, 0x1p-149f }, { GGML_UNARY_OP_EXP, -103.97209f, 0 }, { GGML_UNARY_OP_EXP, -INFINITY, 0 },
        { GGML_UNARY_OP_EXPM1, -INFINITY, -1 }, { GGML_UNARY_OP_TANH, INFINITY, 1 }, { GGML_UNARY_OP_TANH, -INFINITY, -1 },
        { GGML_UNARY_OP_SOFTPLUS, -INFINITY, 0 }, { GGML_UNARY_OP_SOFTPLUS, INFINITY, INFINITY },
        { GGML_UNARY_OP_ROUND, 0.5f, 1 }, { GGML_UNARY_OP_ROUND, -2.5f, -3 }, { GGML_UNARY_OP_ROUND, 0x1.fffffep-2f, 0 },
        { GGML_UNARY_OP_ROUND, 8388609, 8388609 }, { GGML_UNARY_OP_FLOOR, -0.5f, -1 }, { GGML_UNARY_OP_CEIL, 1.25f, 2 },
        { GGML_UNARY_OP_TRUNC, -1.75f, -1 }, { GGML_UNARY_OP_SGN, -3, -1 }, { GGML_UNARY_OP_SGN, 0, 0 }, { GGML_UNARY_OP_SGN, NAN, 0 },
        { GGML_UNARY_OP_STEP, 0, 0 }, { GGML_UNARY_OP_STEP, 2, 1 }, { GGML_UNARY_OP_ABS, -3, 3 }, { GGML_UNARY_OP_NEG, 2, -2 },
        { GGML_UNARY_OP_RELU, -2, 0 }, { GGML_UNARY_OP_RELU, 2, 2 }, { GGML_UNARY_OP_ELU, -1, -0.63212056f }, { GGML_UNARY_OP_ELU, 2, 2 },
        { GGML_UNARY_OP_HARDSWISH, -4, 0 }, { GGML_UNARY_OP_HARDSWISH, 1, 0.6666667f }, { GGML_UNARY_OP_HARDSIGMOID, 9, 1 },
    };
    for (size_t i = 0; i < sizeof unary/sizeof *unary; i++) {
        float y;
        k->unary[unary[i].op](1, &y, &unary[i].x);
        CHECK(y == unary[i].y || fabsf(y - unary[i].y) <= 1e-6f*fabsf(unary[i].y), "%s(%.9g) = %.9g, not %.9g",
              ggml_unary_op_name((enum ggml_unary_op) unary[i].op), (double) unary[i].x, (double) y, (double) unary[i].y);
    }
    static const float logs[][2] = { { 0, -INFINITY }, { -0.0f, -INFINITY }, { INFINITY, INFINITY }, { 1, 0 }, { 0x1p-149f, -103.27893f } };
    for (int i = 0; i < 5; i++) {
        float y;
        k->log(1, &y, logs[i]);
        CHECK(y == logs[i][1], "log(%g) = %g", (double) logs[i][0], (double) y);
    }
    static const float none[] = { -1, -INFINITY, NAN };
    float y[3];
    k->log(3, y, none);
    CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]), "log of what is not positive");
    k->sin(3, y, (const float[]) { INFINITY, -INFINITY, NAN });
    CHECK(isnan(y[0]) && isnan(y[1]) && isnan(y[2]), "sin of what is not finite");
}

/* Angles in doubles: those of rotary embeddings at positions up to a million and beyond. */
static void check_angles(const struct float_kernels *k) {
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        const double x = ldexp((double) rnd_f32(&seed), (int) (rnd_u64(&seed) % 32));
        float s, c;
        k->sin_cos(1, &s, &c, &x);
        CHECK(fabs(s - sin(x)) <= 0.51*last_place(sin(x)) && fabs(c - cos(x)) <= 0.51*last_place(cos(x)), "angle %.17g", x);
    }
}

int main(void) {
    const struct float_kernels *k = &cpu_kernels()->f;      /* all levels give the same bits: tests/cpu/float.c */
    for (size_t i = 0; i < sizeof functions/sizeof *functions; i++) check_dense(&functions[i], k, 2503);
    for (size_t i = 0; i < sizeof functions/sizeof *functions; i++) check_dense(&functions[i], &float_kernels_portable, 400009);
    check_values(k);
    check_values(&float_kernels_portable);
    check_angles(k);
    return DONE();
}
