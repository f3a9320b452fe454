/* ADD SUB MUL DIV, ADD_ID, ADD1, ACC, SET: every type triple, every layout of both operands, every way to repeat. */

#include "ref.h"

static double repeated(const tensor *b, const int64_t *i) {
    return value(b, i[0] % b->ne[0], i[1] % b->ne[1], i[2] % b->ne[2], i[3] % b->ne[3]);
}
static double want_add(const tensor *y, const int64_t *i) { return value_at(y->src[0], i) + repeated(y->src[1], i); }
static double want_sub(const tensor *y, const int64_t *i) { return value_at(y->src[0], i) - repeated(y->src[1], i); }
static double want_mul(const tensor *y, const int64_t *i) { return value_at(y->src[0], i)*repeated(y->src[1], i); }
static double want_div(const tensor *y, const int64_t *i) { return value_at(y->src[0], i)/repeated(y->src[1], i); }

typedef tensor *builder(struct ggml_context *ctx, tensor *a, tensor *b);
static const struct { const char *name; builder *build, *inplace; reference *want; } ops[] = {
    { "add", ggml_add, ggml_add_inplace, want_add },
    { "sub", ggml_sub, ggml_sub_inplace, want_sub },
    { "mul", ggml_mul, ggml_mul_inplace, want_mul },
    { "div", ggml_div, ggml_div_inplace, want_div },
};
enum { OPS = sizeof ops/sizeof *ops };

/* Half a unit in the last place of the result's type. */
static double rounding(enum ggml_type type) {
    return type == GGML_TYPE_F32 ? 0x1p-24 : type == GGML_TYPE_F16 ? 0x1p-11 : 0x1p-8;
}

static const struct { enum ggml_type a, b; } types[] = {
    { GGML_TYPE_F32,  GGML_TYPE_F32  },
    { GGML_TYPE_F16,  GGML_TYPE_F16  }, { GGML_TYPE_F16,  GGML_TYPE_F32 },
    { GGML_TYPE_BF16, GGML_TYPE_BF16 }, { GGML_TYPE_BF16, GGML_TYPE_F32 },
};
static const int64_t shapes[][2][4] = {                 /* of a, of b */
    { { 7, 5, 3, 2 },  { 7, 5, 3, 2 } },
    { { 8, 6, 4, 2 },  { 8, 1, 1, 1 } },
    { { 8, 6, 4, 2 },  { 1, 6, 1, 1 } },
    { { 8, 6, 4, 2 },  { 1, 1, 1, 1 } },
    { { 9, 6, 4, 2 },  { 3, 2, 2, 1 } },
    { { 1, 6, 1, 1 },  { 1, 3, 1, 1 } },
    { { 2050, 2, 1, 1 }, { 2050, 1, 1, 1 } },           /* longer than a piece */
    { { 2050, 2, 1, 1 }, { 5, 1, 1, 1 } },              /* the period does not divide a piece */
};

static void test_pairs(void) {
    for (int o = 0; o < OPS; o++) for (size_t k = 0; k < sizeof types/sizeof *types; k++)
    for (size_t s = 0; s < sizeof shapes/sizeof *shapes; s++) for (int la = 0; la < LAYOUTS; la++) for (int lb = 0; lb < LAYOUTS; lb++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, types[k].a, shapes[s][0], (enum layout) la);
        tensor *c = operand(&b, types[k].b, shapes[s][1], (enum layout) lb);
        fill(&b, c, 0.5, 1.5);
        char name[128];
        snprintf(name, sizeof name, "%s %s %s, %s, shapes %d", ops[o].name, ggml_type_name(a->type), layout_names[la],
                 layout_names[lb], (int) s);
        expect(&b, ops[o].build(b.ctx, a, c), ops[o].want, rounding(a->type), o == 3 ? 0.0 : 1e-7, name);
        bench_free(&b);
    }
}

/* The result in the place of a, whatever a's layout, equals the result of its own. */
static void test_inplace(void) {
    for (int o = 0; o < OPS; o++) for (int la = 0; la < LAYOUTS; la++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(6, 5, 3, 2), (enum layout) la);
        tensor *c = operand(&b, GGML_TYPE_F32, SIZE(6, 1, 3, 1), TRANSPOSED);
        tensor *own = ops[o].build(b.ctx, a, c);
        CHECK(compute(&b, own, 1) == GGML_STATUS_SUCCESS, "%s", ops[o].name);
        tensor *in = ops[o].inplace(b.ctx, a, c);
        CHECK(in->view_src == (a->view_src ? a->view_src : a), "%s: a view", ops[o].name);
        CHECK(compute(&b, in, 1) == GGML_STATUS_SUCCESS, "%s", ops[o].name);
        int wrong = 0;
        FOR_ELEMENTS(i, own) wrong += value_at(own, i) != value_at(in, i);
        CHECK(wrong == 0, "%s in place of a %s tensor: %d differ", ops[o].name, layout_names[la], wrong);
        CHECK(guards_intact(&b), "%s", ops[o].name);
        bench_free(&b);
    }
}

/* As an allocator may place it: the result lies exactly on the second operand. */
static void test_on_second(void) {
    struct bench b = bench_new();
    tensor *a = operand(&b, GGML_TYPE_F32, SIZE(1030, 3, 1, 1), PACKED), *c = operand(&b, GGML_TYPE_F32, a->ne, PACKED);
    tensor *own = ggml_sub(b.ctx, a, c);
    CHECK(compute(&b, own, 1) == GGML_STATUS_SUCCESS, "sub");
    tensor *on = ggml_sub(b.ctx, a, c);
    on->data = c->data;
    CHECK(compute(&b, on, 1) == GGML_STATUS_SUCCESS, "sub");
    CHECK(!memcmp(own->data, on->data, ggml_nbytes(own)), "sub in the place of b");
    bench_free(&b);
}

static void test_threads(void) {
    for (int o = 0; o < OPS; o++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(50000, 3, 1, 1), PACKED),
            *c = operand(&b, GGML_TYPE_F32, SIZE(50000, 1, 1, 1), PACKED);
        expect_same_for_threads(&b, ops[o].build(b.ctx, a, c), ops[o].name);
        tensor *d = operand(&b, GGML_TYPE_F16, SIZE(3, 7000, 3, 1), TRANSPOSED),
            *e = operand(&b, GGML_TYPE_F32, SIZE(3, 7000, 1, 1), PACKED);
        expect_same_for_threads(&b, ops[o].build(b.ctx, d, e), ops[o].name);
        bench_free(&b);
    }
}

static void test_empty(void) {
    for (int o = 0; o < OPS; o++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED);
        tensor *y = ops[o].build(b.ctx, a, operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED));
        CHECK(ggml_nelements(y) == 0 && compute(&b, y, 2) == GGML_STATUS_SUCCESS, "%s of nothing", ops[o].name);
        bench_free(&b);
    }
}

/* View [6, 4] of a[10, 4] = 0 .. 39 with row stride 40 at byte 8, times a tensor of one element 3. */
static void test_gapped_rows_times_one(void) {
    struct bench b = bench_new();
    tensor *a = operand(&b, GGML_TYPE_F32, SIZE(10, 4, 1, 1), PACKED);
    FOR_ELEMENTS(i, a) set_value(a, i, (double) (10*i[1] + i[0]));
    tensor *y = ggml_mul(b.ctx, ggml_view_2d(b.ctx, a, 6, 4, 40, 8),
        operand_of(&b, GGML_TYPE_F32, SIZE(1, 1, 1, 1), (double[]) { 3 }));
    CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "mul");
    FOR_ELEMENTS(i, y) CHECK(value_at(y, i) == (double) (3*(10*i[1] + 2 + i[0])), "row %d, element %d", (int) i[1],
        (int) i[0]);
    bench_free(&b);
}

/* ---- quantised first operand, casts -------------------------------------------------------------------------------- */

static const enum ggml_type blocks[] = { GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K };

static void test_quantised(void) {
    for (size_t k = 0; k < sizeof blocks/sizeof *blocks; k++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, blocks[k], SIZE(1280, 3, 1, 1), PACKED),
            *c = operand(&b, GGML_TYPE_F32, SIZE(1280, 3, 1, 1), WINDOW);
        tensor *y = ggml_add_cast(b.ctx, a, c, GGML_TYPE_F32);
        CHECK(y->type == GGML_TYPE_F32, "add_cast");
        expect(&b, y, want_add, 0x1p-24, 0.0, "add_cast");
        tensor *q = ggml_add(b.ctx, a, c);
        CHECK(q->type == blocks[k] && compute(&b, q, 2) == GGML_STATUS_SUCCESS, "add to %s", ggml_type_name(blocks[k]));
        unsigned char bytes[2048];                      /* the sums, encoded by the type's encoder */
        quant_types[blocks[k]].pack((const float *) y->data + 1280, bytes, 1280);
        CHECK(!memcmp(bytes, (const char *) q->data + q->nb[1], q->nb[1]), "add to %s", ggml_type_name(blocks[k]));
        bench_free(&b);
    }
}

/* ---- rows by number, one scalar ------------------------------------------------------------------------------------ */

static double want_add_id(const tensor *y, const int64_t *i) {
    return value_at(y->src[0], i) + value(y->src[1], i[0], (int64_t) value(y->src[2], i[1], i[2], 0, 0), 0, 0);
}
static void test_add_id(void) {
    for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(5, 2, 3, 1), (enum layout) l),
            *c = operand(&b, GGML_TYPE_F32, SIZE(5, 4, 1, 1), (enum layout) l);
        tensor *ids = operand_of(&b, GGML_TYPE_I32, SIZE(2, 3, 1, 1), (double[]) { 3, 0, 2, 2, 1, 3 });
        expect(&b, ggml_add_id(b.ctx, a, c, ids), want_add_id, 0x1p-24, 0.0, "add_id");
        for (int bad = -1; bad <= 4; bad += 5) {
            set_value(ids, SIZE(1, 2, 0, 0), bad);
            CHECK(compute(&b, ggml_add_id(b.ctx, a, c, ids), 2) == GGML_STATUS_FAILED, "id %d", bad);
            CHECK(guards_intact(&b), "id %d", bad);
        }
        bench_free(&b);
    }
}

static void test_add1(void) {
    static const enum ggml_type all[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
    for (int k = 0; k < 3; k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, all[k], SIZE(5, 4, 3, 2), (enum layout) l),
            *one = operand(&b, all[k], SIZE(1, 1, 1, 1), PACKED);
        expect(&b, ggml_add1(b.ctx, a, one), want_add, rounding(all[k]), 1e-7, "add1");
        bench_free(&b);
    }
}

/* ---- regions ------------------------------------------------------------------------------------------------------- */

static void test_regions(void) {
    for (int l = 0; l < LAYOUTS; l++) for (int in = 0; in < 2; in++) for (int add = 0; add < 2; add++) {
        struct bench b = bench_new();
        tensor *a = operand(&b, GGML_TYPE_F32, SIZE(6, 5, 2, 1), PACKED),
            *c = operand(&b, GGML_TYPE_F32, SIZE(3, 2, 2, 1), (enum layout) l);
        float *before = bytes_of(a);
        tensor *(*const build)(struct ggml_context *, tensor *, tensor *, size_t, size_t, size_t, size_t) =
            add ? in ? ggml_acc_inplace : ggml_acc : in ? ggml_set_inplace : ggml_set;
        tensor *y = build(b.ctx, a, c, a->nb[1], a->nb[2], a->nb[3], a->nb[1] + 2*a->nb[0]);
        CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "region");
        FOR_ELEMENTS(i, y) {
            const double old = (double) before[i[0] + 6*(i[1] + 5*i[2])];
            const bool inside = i[0] >= 2 && i[0] < 5 && i[1] >= 1 && i[1] < 3;
            const double v = inside ? value(c, i[0] - 2, i[1] - 1, i[2], 0) : 0.0;
            const double want = !inside ? old : add ? (double) (float) (old + v) : v;
            CHECK(value_at(y, i) == want, "%s, in place %d: [%d, %d, %d]", add ? "acc" : "set", in, (int) i[0],
                (int) i[1], (int) i[2]);
        }
        CHECK(guards_intact(&b), "region");
        free(before);
        bench_free(&b);
    }
    struct bench b = bench_new();
    tensor *a = operand(&b, GGML_TYPE_I32, SIZE(4, 3, 1, 1), PACKED),
        *c = operand_of(&b, GGML_TYPE_I32, SIZE(2, 1, 1, 1), (double[]) { 7, 8 });
    fill(&b, a, 0, 100);
    tensor *y = ggml_set_2d(b.ctx, ggml_set_1d(b.ctx, a, c, 8), c, a->nb[1], a->nb[1]);
    CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "set of integers");
    CHECK(value(y, 2, 0, 0, 0) == 7 && value(y, 3, 0, 0, 0) == 8 && value(y, 0, 1, 0, 0) == 7 &&
        value(y, 1, 1, 0, 0) == 8 &&
          value(y, 2, 1, 0, 0) == value(a, 2, 1, 0, 0), "set of integers");
    bench_free(&b);
}

/* Types without values as floats end in an error, not in a crash. */
static void test_refused(void) {
    struct bench b = bench_new();
    tensor *a = operand(&b, GGML_TYPE_I32, SIZE(4, 1, 1, 1), PACKED);
    CHECK(compute(&b, ggml_add(b.ctx, a, a), 1) == GGML_STATUS_FAILED, "sum of I32");
    bench_free(&b);
}

int main(void) {
    test_pairs();
    test_inplace();
    test_on_second();
    test_threads();
    test_empty();
    test_gapped_rows_times_one();
    test_quantised();
    test_add_id();
    test_add1();
    test_regions();
    test_refused();
    return DONE();
}
