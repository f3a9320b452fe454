/* UNARY, SQR SQRT LOG SIN COS, SILU_BACK and GLU: every function, type and layout, in place and apart. */

#include "ref.h"

static double x_of(const tensor *y, const int64_t *i) { return value_at(y->src[0], i); }
static double sigmoid(double x) { return 1/(1 + exp(-x)); }
static double gelu(double x)    { return 0.5*x*(1 + tanh(sqrt(2/3.14159265358979324)*x*(1 + 0.044715*x*x))); }

static double ABS(double x)         { return fabs(x); }
static double SGN(double x)         { return (x > 0) - (x < 0); }
static double NEG(double x)         { return -x; }
static double STEP(double x)        { return x > 0; }
static double TANH(double x)        { return tanh(x); }
static double ELU(double x)         { return x > 0 ? x : expm1(x); }
static double RELU(double x)        { return x > 0 ? x : 0; }
static double SIGMOID(double x)     { return sigmoid(x); }
static double GELU(double x)        { return gelu(x); }
static double GELU_QUICK(double x)  { return x*sigmoid(1.702*x); }
static double SILU(double x)        { return x*sigmoid(x); }
static double HARDSIGMOID(double x) { return fmin(1, fmax(0, (x + 3)/6)); }
static double HARDSWISH(double x)   { return x*HARDSIGMOID(x); }
static double EXP(double x)         { return exp(x); }
static double EXPM1(double x)       { return expm1(x); }
static double SOFTPLUS(double x)    { return log1p(exp(x)); }
static double GELU_ERF(double x)    { return 0.5*x*erfc(-x/sqrt(2)); }
static double FLOOR(double x)       { return floor(x); }
static double CEIL(double x)        { return ceil(x); }
static double ROUND(double x)       { return round(x); }
static double TRUNC(double x)       { return trunc(x); }

#define ROW(NAME) [GGML_UNARY_OP_##NAME] = NAME
static double (*const unary[GGML_UNARY_OP_COUNT])(double x) = {
    ROW(ABS), ROW(SGN), ROW(NEG), ROW(STEP), ROW(TANH), ROW(ELU), ROW(RELU), ROW(SIGMOID), ROW(GELU), ROW(GELU_QUICK),
    ROW(SILU), ROW(HARDSWISH), ROW(HARDSIGMOID), ROW(EXP), ROW(EXPM1), ROW(SOFTPLUS), ROW(GELU_ERF), ROW(FLOOR), ROW(CEIL),
    ROW(ROUND), ROW(TRUNC) };
static double want_unary(const tensor *y, const int64_t *i) { return unary[y->op_params[0]](x_of(y, i)); }

static double want_sqr(const tensor *y, const int64_t *i)  { return x_of(y, i)*x_of(y, i); }
static double want_sqrt(const tensor *y, const int64_t *i) { return sqrt(x_of(y, i)); }
static double want_log(const tensor *y, const int64_t *i)  { return log(x_of(y, i)); }
static double want_sin(const tensor *y, const int64_t *i)  { return sin(x_of(y, i)); }
static double want_cos(const tensor *y, const int64_t *i)  { return cos(x_of(y, i)); }

typedef tensor *builder(struct ggml_context *ctx, tensor *a);
static const struct { const char *name; builder *build, *inplace; reference *want; } maps[] = {
    { "sqr",  ggml_sqr,  ggml_sqr_inplace,  want_sqr },
    { "sqrt", ggml_sqrt, ggml_sqrt_inplace, want_sqrt },
    { "log",  ggml_log,  ggml_log_inplace,  want_log },
    { "sin",  ggml_sin,  ggml_sin_inplace,  want_sin },
    { "cos",  ggml_cos,  ggml_cos_inplace,  want_cos },
};

static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
static double rounding(enum ggml_type type) {
    return type == GGML_TYPE_F32 ? 4e-7 : type == GGML_TYPE_F16 ? 0x1p-11 + 4e-7 : 0x1p-8 + 4e-7;
}
#define SHAPES SIZE(33, 5, 3, 2), SIZE(2100, 3, 1, 1)

static void test_unary(void) {
    const int64_t *const shapes[] = { SHAPES };
    for (int op = 0; op < GGML_UNARY_OP_COUNT; op++) for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) for (int s = 0; s < 2; s++) {
        if (op == GGML_UNARY_OP_XIELU) continue;
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k], shapes[s], (enum layout) l);
        fill(&b, a, -6, 6);
        char name[96];
        snprintf(name, sizeof name, "%s of %s %s", ggml_unary_op_name((enum ggml_unary_op) op), layout_names[l], ggml_type_name(types[k]));
        expect(&b, ggml_unary(b.ctx, a, (enum ggml_unary_op) op), want_unary, rounding(types[k]), 1e-7, name);
        tensor *own = ggml_unary(b.ctx, a, (enum ggml_unary_op) op);
        compute(&b, own, 1);
        tensor *in = ggml_unary_inplace(b.ctx, a, (enum ggml_unary_op) op);
        compute(&b, in, 2);
        int wrong = 0;
        FOR_ELEMENTS(i, own) wrong += value_at(own, i) != value_at(in, i);
        CHECK(wrong == 0, "%s in place: %d differ", name, wrong);
        bench_free(&b);
    }
}

static void test_maps(void) {
    for (size_t m = 0; m < sizeof maps/sizeof *maps; m++) for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k], SIZE(33, 5, 3, 2), (enum layout) l);
        fill(&b, a, 0.1, 20);
        char name[96];
        snprintf(name, sizeof name, "%s of %s %s", maps[m].name, layout_names[l], ggml_type_name(types[k]));
        expect(&b, maps[m].build(b.ctx, a), maps[m].want, rounding(types[k]), 1e-7, name);
        expect_same_for_threads(&b, maps[m].build(b.ctx, a), name);
        bench_free(&b);
    }
}

/* F16 or BF16 sources may be widened: the destination's type counts. */
static void test_widening(void) {
    for (int k = 1; k < 3; k++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k], SIZE(33, 5, 1, 1), PACKED), *y = ggml_unary(b.ctx, a, GGML_UNARY_OP_EXP);
        y->type = GGML_TYPE_F32;
        for (int d = 0; d < 4; d++) y->nb[d] *= 2;
        expect(&b, y, want_unary, 2e-7, 0, "to F32");
        bench_free(&b);
    }
}

static double want_xielu(const tensor *y, const int64_t *i) {
    const double x = x_of(y, i), beta = 0.5, eps = -1e-6, an = beta + log1p(exp(0.8)), ap = log1p(exp(0.7));
    return x > 0 ? ap*x*x + beta*x : (expm1(fmin(x, eps)) - x)*an + beta*x;
}
static double want_silu_back(const tensor *y, const int64_t *i) {
    const double dy = value_at(y->src[0], i), x = value_at(y->src[1], i), s = sigmoid(x);
    return dy*s*(1 + x*(1 - s));
}

static void test_others(void) {
    for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k], SIZE(33, 5, 3, 2), (enum layout) l);
        tensor *x = operand(&b, types[k], SIZE(33, 5, 3, 2), (enum layout) ((l + 1) % LAYOUTS));
        fill(&b, a, -4, 4), fill(&b, x, -4, 4);
        expect(&b, ggml_xielu(b.ctx, a, 0.8f, 0.7f, 0.5f, -1e-6f), want_xielu, rounding(types[k]), 3e-6, "xielu");
        expect(&b, ggml_silu_back(b.ctx, a, x), want_silu_back, rounding(types[k]), 1e-6, "silu_back");
        bench_free(&b);
    }
}

/* ---- gated linear units -------------------------------------------------------------------------------------------- */

static double want_glu(const tensor *y, const int64_t *i) {
    const int op = y->op_params[0];
    const tensor *a = y->src[0], *c = y->src[1];
    const int64_t half = c ? 0 : y->ne[0];
    const int64_t first[4] = { i[0], i[1], i[2], i[3] }, second[4] = { i[0] + half, i[1], i[2], i[3] };
    const bool swapped = half && y->op_params[1];
    const double x = value_at(a, swapped ? second : first), g = value_at(c ? c : a, swapped ? first : second);
    const double alpha = 1.702, limit = 2.5, xl = fmin(x, limit), gl = fmin(limit, fmax(-limit, g));
    switch (op) {
    case GGML_GLU_OP_REGLU:       return RELU(x)*g;
    case GGML_GLU_OP_GEGLU:       return gelu(x)*g;
    case GGML_GLU_OP_SWIGLU:      return SILU(x)*g;
    case GGML_GLU_OP_GEGLU_ERF:   return GELU_ERF(x)*g;
    case GGML_GLU_OP_GEGLU_QUICK: return GELU_QUICK(x)*g;
    case GGML_GLU_OP_SWIGLU_OAI:  return xl*sigmoid(alpha*xl)*(gl + 1);
    default:                      return SILU(xl)*gl;
    }
}

static void test_glu(void) {
    for (int op = 0; op < GGML_GLU_OP_COUNT; op++) for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) for (int form = 0; form < 3; form++) {
        const bool limited = op == GGML_GLU_OP_SWIGLU_OAI || op == GGML_GLU_OP_SWIGLU_CLAMP;
        if (limited && form < 2) continue;
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k], SIZE(form < 2 ? 66 : 33, 5, 3, 2), (enum layout) l);
        tensor *g = operand(&b, types[k], a->ne, (enum layout) ((l + 2) % LAYOUTS));
        fill(&b, a, -4, 4), fill(&b, g, -4, 4);
        tensor *y = op == GGML_GLU_OP_SWIGLU_OAI   ? ggml_swiglu_oai(b.ctx, a, g, 1.702f, 2.5f)
                  : op == GGML_GLU_OP_SWIGLU_CLAMP ? ggml_swiglu_clamp(b.ctx, a, g, 2.5f)
                  : form == 2                      ? ggml_glu_split(b.ctx, a, g, (enum ggml_glu_op) op)
                  :                                  ggml_glu(b.ctx, a, (enum ggml_glu_op) op, form == 1);
        char name[96];
        snprintf(name, sizeof name, "%s, form %d, %s %s", ggml_glu_op_name((enum ggml_glu_op) op), form, layout_names[l], ggml_type_name(types[k]));
        expect(&b, y, want_glu, rounding(types[k]), 2e-6, name);
        bench_free(&b);
    }
}

static void test_empty(void) {
    struct bench b = bench_new();
    tensor *a = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED);
    CHECK(compute(&b, ggml_gelu(b.ctx, a), 2) == GGML_STATUS_SUCCESS, "gelu of nothing");
    CHECK(compute(&b, ggml_swiglu(b.ctx, a), 2) == GGML_STATUS_SUCCESS, "swiglu of nothing");
    CHECK(compute(&b, ggml_sin(b.ctx, a), 2) == GGML_STATUS_SUCCESS, "sin of nothing");
    bench_free(&b);
}

int main(void) {
    test_unary();
    test_maps();
    test_widening();
    test_others();
    test_glu();
    test_empty();
    return DONE();
}
