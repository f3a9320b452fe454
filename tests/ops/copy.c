/* DUP CPY CONT: every conversion, every layout on both sides, other shapes of the same count. */

#include "ref.h"

/* The source's element with the same place in logical order. */
static double streamed(const tensor *y, const int64_t *i) {
    const tensor *x = y->src[0];
    int64_t k = i[0] + y->ne[0]*(i[1] + y->ne[1]*(i[2] + y->ne[2]*i[3])), j[4];
    for (int d = 0; d < 4; d++) j[d] = k % x->ne[d], k /= x->ne[d];
    const double v = value_at(x, j);
    return y->type == GGML_TYPE_I32 ? trunc(v) : v;
}

static const enum ggml_type plain[] = {
    GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_I32, GGML_TYPE_I64, GGML_TYPE_I16, GGML_TYPE_I8,
};
static const enum ggml_type blocks[] = {
    GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K,
};
#define COUNT(a) (sizeof (a)/sizeof *(a))

static bool convertible(enum ggml_type a, enum ggml_type b) {
    return a == b || ((a <= GGML_TYPE_F16 || a == GGML_TYPE_BF16 || a == GGML_TYPE_I32) &&
                      (b <= GGML_TYPE_F16 || b == GGML_TYPE_BF16 || b == GGML_TYPE_I32));
}
static double rounding(enum ggml_type type) { return type == GGML_TYPE_F16 ? 0x1p-11 : type == GGML_TYPE_BF16
    ? 0x1p-8 : 0.0; }

/* One copy of `from` into a tensor of its own in layout `lt`. */
static void copy_case(enum ggml_type from, enum ggml_type to, const int64_t *n, const int64_t *m, enum layout lf,
    enum layout lt) {
    struct bench b = bench_new();
    tensor *x = operand(&b, from, n, lf), *y = operand(&b, to, m, lt);
    if (ggml_blck_size(from) == 1) fill(&b, x, -100.0, 100.0);
    char name[128];
    snprintf(name, sizeof name, "cpy %s %s to %s %s", ggml_type_name(from), layout_names[lf], ggml_type_name(to),
        layout_names[lt]);
    tensor *r = ggml_cpy(b.ctx, x, y);
    CHECK(r->view_src == (y->view_src ? y->view_src : y), "%s: a view of the target", name);
    expect(&b, r, streamed, rounding(to), 0.0, name);
    bench_free(&b);
}

static void test_plain(void) {
    for (size_t f = 0; f < COUNT(plain); f++) for (size_t t = 0; t < COUNT(plain); t++) {
        if (!convertible(plain[f], plain[t])) continue;
        for (int lf = 0; lf < LAYOUTS; lf++) for (int lt = 0; lt < LAYOUTS; lt++) {
            copy_case(plain[f], plain[t], SIZE(7, 5, 3, 2), SIZE(7, 5, 3, 2), (enum layout) lf, (enum layout) lt);
            copy_case(plain[f], plain[t], SIZE(7, 5, 3, 2), SIZE(3, 2, 5, 7), (enum layout) lf, (enum layout) lt);
            copy_case(plain[f], plain[t], SIZE(1031, 5, 1, 1), SIZE(5, 1031, 1, 1), (enum layout) lf, (enum layout) lt);
        }
    }
}

/* To blocks: what the type's encoder gives; from blocks: what its decoder gives. */
static void test_blocks(void) {
    static const enum ggml_type sources[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 };
    for (size_t k = 0; k < COUNT(blocks); k++) for (int l = 0; l < LAYOUTS; l++) for (size_t s = 0; s < COUNT(sources); s++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, sources[s], SIZE(512, 3, 2, 1), (enum layout) l);
        tensor *q = ggml_cpy(b.ctx, x, operand(&b, blocks[k], SIZE(512, 3, 2, 1), PACKED)),
            *f = ggml_cast(b.ctx, q, GGML_TYPE_F32);
        CHECK(compute(&b, f, 2) == GGML_STATUS_SUCCESS, "%s", ggml_type_name(blocks[k]));
        float row[512];
        unsigned char bytes[1024];
        int wrong = 0;
        for (int64_t r = 0; r < 6; r++) {
            for (int64_t i = 0; i < 512; i++) row[i] = (float) value(x, i, r % 3, r/3, 0);
            quant_types[blocks[k]].pack(row, bytes, 512);
            wrong += memcmp(bytes, (const char *) q->data + (size_t) r*q->nb[1], q->nb[1]) != 0;
        }
        CHECK(wrong == 0, "%s to %s: %d rows", ggml_type_name(sources[s]), ggml_type_name(blocks[k]), wrong);
        compare(&b, f, streamed, 0.0, 0.0, ggml_type_name(blocks[k]));
        bench_free(&b);
    }
    for (size_t k = 0; k < COUNT(blocks); k++) {        /* the same type: bytes, whatever the rows' places and the shape */
        copy_case(blocks[k], GGML_TYPE_F16, SIZE(256, 4, 3, 1), SIZE(256, 4, 3, 1), PERMUTED, TRANSPOSED);
        struct bench b = bench_new();
        tensor *x = operand(&b, blocks[k], SIZE(256, 4, 3, 1), PERMUTED),
            *y = operand(&b, blocks[k], SIZE(768, 2, 2, 1), WINDOW);
        expect(&b, ggml_cpy(b.ctx, x, y), streamed, 0.0, 0.0, "blocks moved");
        bench_free(&b);
    }
    struct bench b = bench_new();                       /* rows that are no whole blocks, into rows that are */
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(33, 32, 1, 1), PACKED),
        *q = ggml_cpy(b.ctx, x, operand(&b, GGML_TYPE_Q8_0, SIZE(32, 33, 1, 1), PACKED));
    CHECK(compute(&b, q, 1) == GGML_STATUS_SUCCESS, "33 to 32");
    unsigned char bytes[2048];
    quant_types[GGML_TYPE_Q8_0].pack((const float *) x->data, bytes, 33*32);
    CHECK(!memcmp(bytes, q->data, ggml_nbytes(q)), "33 to 32");
    bench_free(&b);
}

static void test_cont_and_dup(void) {
    for (size_t k = 0; k < COUNT(plain); k++) for (int l = 0; l < LAYOUTS; l++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, plain[k], SIZE(7, 5, 3, 2), (enum layout) l);
        fill(&b, x, -100.0, 100.0);
        tensor *y = ggml_cont(b.ctx, x), *z = ggml_cont_2d(b.ctx, x, 21, 10), *d = ggml_dup(b.ctx, x);
        CHECK(ggml_is_contiguous(y) && y->type == x->type, "cont");
        expect(&b, y, streamed, 0.0, 0.0, "cont");
        expect(&b, z, streamed, 0.0, 0.0, "cont_2d");
        expect(&b, d, streamed, 0.0, 0.0, "dup");
        expect(&b, ggml_dup_inplace(b.ctx, x), streamed, 0.0, 0.0, "dup in place");
        bench_free(&b);
    }
}

/* Values at the edges of the conversions. */
static void test_edges(void) {
    static const double v[] = { 65519.99, 65520, 5.9604645e-8, 2.9802322e-8, 1.00048828125, 1.00146484375, NAN, -0.0 };
    static const uint16_t half[] = { 0x7bff, 0x7c00, 0x0001, 0x0000, 0x3c00, 0x3c02, 0x7e00, 0x8000 };
    static const uint32_t word[]  = { 0x3f808000, 0x3f818000, 0x7f7fffff, 0x7f800001, 0xff800001 };
    static const uint16_t brain[] = { 0x3f80, 0x3f82, 0x7f80, 0x7fc0, 0xffc0 };
    struct bench b = bench_new();
    tensor *h = ggml_cast(b.ctx, operand_of(&b, GGML_TYPE_F32, SIZE(8, 1, 1, 1), v), GGML_TYPE_F16);
    CHECK(compute(&b, h, 1) == GGML_STATUS_SUCCESS, "f16");
    for (int i = 0; i < 8; i++) {
        const uint16_t got = ((const uint16_t *) h->data)[i];
        CHECK(v[i] != v[i] ? (got & 0x7fff) > 0x7c00 : got == half[i], "%g: %04x", v[i], got);
    }
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(5, 1, 1, 1), PACKED), *y = ggml_cast(b.ctx, x, GGML_TYPE_BF16);
    memcpy(x->data, word, sizeof word);
    CHECK(compute(&b, y, 1) == GGML_STATUS_SUCCESS, "bf16");
    for (int i = 0; i < 5; i++) CHECK(((const uint16_t *) y->data)[i] == brain[i], "%08x: %04x", word[i],
        ((const uint16_t *) y->data)[i]);
    static const double w[] = { 2.9, -2.9, 3e9, -3e9, NAN, 16777217 };
    static const int32_t integer[] = { 2, -2, INT32_MAX, INT32_MIN, 0, 16777216 };
    tensor *n = ggml_cast(b.ctx, operand_of(&b, GGML_TYPE_F32, SIZE(6, 1, 1, 1), w), GGML_TYPE_I32);
    CHECK(compute(&b, n, 1) == GGML_STATUS_SUCCESS, "i32");
    for (int i = 0; i < 6; i++) CHECK(((const int32_t *) n->data)[i] == integer[i], "%g: %d", w[i],
        (int) ((const int32_t *) n->data)[i]);
    bench_free(&b);
}

/* Indices of 64 bits become those of 32, exactly or the nearest, in any layout. */
static void test_indices(void) {
    static const int64_t v[6] = { 16777217, -5, INT32_MAX, (int64_t) INT32_MAX + 1, INT64_MIN, 0 };
    static const int32_t want[6] = { 16777217, -5, INT32_MAX, INT32_MAX, INT32_MIN, 0 };
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_I64, SIZE(3, 2, 1, 1), PACKED);
    memcpy(x->data, v, sizeof v);
    tensor *y = ggml_cast(b.ctx, x, GGML_TYPE_I32), *turned = ggml_cast(b.ctx, ggml_transpose(b.ctx, x), GGML_TYPE_I32);
    CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS && !memcmp(y->data, want, sizeof want), "packed");
    CHECK(compute(&b, turned, 2) == GGML_STATUS_SUCCESS, "turned");
    for (int i = 0; i < 6; i++) CHECK(((const int32_t *) turned->data)[i] == want[i/2 + i%2*3], "turned, %d", i);
    bench_free(&b);
}

static void test_threads_and_refusals(void) {
    struct bench b = bench_new();
    tensor *x = operand(&b, GGML_TYPE_F32, SIZE(300, 200, 1, 1), TRANSPOSED);
    expect_same_for_threads(&b, ggml_cont(b.ctx, x), "cont");
    expect_same_for_threads(&b, ggml_cast(b.ctx, x, GGML_TYPE_F16), "cast");
    CHECK(compute(&b, ggml_cast(b.ctx, x, GGML_TYPE_I64), 1) == GGML_STATUS_FAILED, "F32 to I64");
    CHECK(compute(&b, ggml_cast(b.ctx, x, GGML_TYPE_IQ1_S), 1) == GGML_STATUS_FAILED, "F32 to IQ1_S");
    tensor *none = operand(&b, GGML_TYPE_F32, SIZE(4, 0, 1, 1), PACKED);
    CHECK(compute(&b, ggml_cont(b.ctx, none), 1) == GGML_STATUS_SUCCESS, "nothing");
    bench_free(&b);
}

int main(void) {
    test_plain();
    test_blocks();
    test_cont_and_dup();
    test_edges();
    test_indices();
    test_threads_and_refusals();
    return DONE();
}
