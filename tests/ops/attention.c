/* FLASH_ATTN_EXT against the formula in double: types, grouped heads, masks, bias, softcap, sinks, layouts; and the promises
 * that bytes do not depend on threads, batch size, padding of the cache or what lies in masked memory. */

#include "arenite.h"
#include "core.h"
#include "ref.h"

/* Heads in the order of dims 1 and 2 as a model's cache has them: [d, heads, tokens] permuted to [d, tokens, heads]. */
struct shape { int64_t dk, dv, tokens, keys, heads, k_heads, v_heads, batch; };

static double slope_of(const tensor *y, int64_t h) {
    const double bias = (double) param_f32(y, 1);
    if (bias == 0) return 1;
    const int64_t heads = y->ne[1];
    int64_t whole = 1;
    while (2*whole <= heads) whole *= 2;
    return pow(2, -bias/(double) whole*(h < whole ? (double) (h + 1) : (double) (2*(h - whole) + 1)/2));
}

/* The row [head, token, batch] in double, kept while its elements are asked for one after the other. */
static const double *want_row(const tensor *y, int64_t head, int64_t token, int64_t batch) {
    static double row[1024], z[4096];
    static struct { const tensor *y; int64_t head, token, batch; } last;
    if (last.y == y && last.head == head && last.token == token && last.batch == batch) return row;
    last.y = y, last.head = head, last.token = token, last.batch = batch;
    const tensor *q = y->src[0], *k = y->src[1], *v = y->src[2], *m = y->src[3], *sinks = y->src[4];
    const int64_t kh = head/(q->ne[2]/k->ne[2]), vh = head/(q->ne[2]/v->ne[2]);
    const double scale = (double) param_f32(y, 0), cap = (double) param_f32(y, 2);
    double max = sinks ? value(sinks, head, 0, 0, 0) : -INFINITY, sum = 0;
    for (int64_t j = 0; j < k->ne[1]; j++) {
        const double mask = m ? value(m, j, token, head % m->ne[2], batch % m->ne[3]) : 0;
        double s = 0;
        for (int64_t i = 0; i < q->ne[0] && mask != -INFINITY; i++) s += value(q, i, token, head, batch)*value(k, i, j, kh, batch);
        z[j] = mask == -INFINITY ? mask : (cap != 0 ? cap*tanh(s*scale/cap) : s*scale) + slope_of(y, head)*mask;
        max = fmax(max, z[j]);
    }
    memset(row, 0, sizeof row);
    for (int64_t j = 0; j < k->ne[1]; j++) {
        if (z[j] == -INFINITY) continue;
        const double p = exp(z[j] - max);
        sum += p;
        for (int64_t i = 0; i < y->ne[0]; i++) row[i] += p*value(v, i, j, vh, batch);
    }
    if (sinks) sum += exp(value(sinks, head, 0, 0, 0) - max);
    for (int64_t i = 0; i < y->ne[0] && sum > 0; i++) row[i] /= sum;
    return row;
}
static double want(const tensor *y, const int64_t *i) { return want_row(y, i[1], i[2], i[3])[i[0]]; }

static tensor *heads_operand(struct bench *b, enum ggml_type type, int64_t d, int64_t rows, int64_t heads, int64_t batch, bool permuted) {
    if (!permuted) return operand(b, type, SIZE(d, rows, heads, batch), PACKED);
    tensor *root = operand(b, type, SIZE(d, heads, rows, batch), PACKED);
    return ggml_permute(b->ctx, root, 0, 2, 1, 3);
}

/* Causal, for queries that are the last of the cache, with a few holes. */
static void fill_mask(struct bench *b, tensor *m, int64_t keys, int64_t tokens) {
    FOR_ELEMENTS(i, m) {
        const bool masked = i[0] > keys - tokens + i[1] || rnd_f32(&b->seed) < -0.9f;
        set_value(m, i, masked ? -INFINITY : 0.5*(double) rnd_f32(&b->seed));
    }
}

struct extras { bool mask, sinks, permuted; float bias, cap; int64_t mask_heads; };
static tensor *build(struct bench *b, const struct shape *s, enum ggml_type kt, enum ggml_type vt, const struct extras *e) {
    tensor *q = heads_operand(b, GGML_TYPE_F32, s->dk, s->tokens, s->heads, s->batch, e->permuted);
    tensor *k = heads_operand(b, kt, s->dk, s->keys, s->k_heads, s->batch, e->permuted);
    tensor *v = heads_operand(b, vt, s->dv, s->keys, s->v_heads, s->batch, e->permuted);
    tensor *m = e->mask ? operand(b, GGML_TYPE_F16, SIZE(s->keys, s->tokens, e->mask_heads, s->batch > 1 ? s->batch : 1), PACKED) : NULL;
    if (m) fill_mask(b, m, s->keys, s->tokens);
    tensor *y = ggml_flash_attn_ext(b->ctx, q, k, v, m, 1.0f/sqrtf((float) s->dk)*3, e->bias, e->cap);
    if (e->sinks) ggml_flash_attn_ext_add_sinks(y, operand(b, GGML_TYPE_F32, SIZE(s->heads, 1, 1, 1), PACKED));
    return y;
}

static const struct shape shapes[] = {
    /*  dk   dv  tok  keys  h kh vh  b */
    {   64,  64,   1,   32, 4, 4, 4, 1 },
    {   64,  64,   1,  300, 6, 2, 2, 1 },
    {   64,  64,  33,  100, 6, 2, 2, 1 },
    {  128, 128,   3,   70, 4, 1, 1, 2 },
    {   80,  80,  20,   65, 4, 2, 2, 1 },
    {   32,  96,   5,  129, 6, 3, 2, 1 },
    {  256, 256,   2,   64, 4, 1, 1, 1 },
    {   32,  32,  70,   70, 2, 1, 2, 1 },
    {   64,  64,   1,    1, 1, 1, 1, 1 },
};
enum { SHAPES = sizeof shapes/sizeof *shapes };

static void test_shapes(void) {
    static const struct { enum ggml_type k, v; } types[] = {
        { GGML_TYPE_F16,  GGML_TYPE_F16  }, { GGML_TYPE_F32,  GGML_TYPE_F32  }, { GGML_TYPE_BF16, GGML_TYPE_BF16 },
        { GGML_TYPE_Q8_0, GGML_TYPE_Q8_0 }, { GGML_TYPE_Q4_0, GGML_TYPE_Q4_0 }, { GGML_TYPE_F16,  GGML_TYPE_Q8_0 } };
    for (int n = 0; n < SHAPES; n++) for (int k = 0; k < 6; k++) for (int permuted = 0; permuted < 2; permuted++) {
        if (k > 2 && (shapes[n].dk % 32 || shapes[n].dv % 32)) continue;
        struct bench b = bench_new();
        const struct extras e = { .mask = true, .mask_heads = 1, .permuted = permuted };
        char name[96];
        snprintf(name, sizeof name, "shape %d, types %d, permuted %d", n, k, permuted);
        tensor *y = build(&b, &shapes[n], types[k].k, types[k].v, &e);
        expect(&b, y, want, 2e-6, 2e-6, name);
        expect_same_for_threads(&b, y, name);
        bench_free(&b);
    }
}

/* Rows shorter than 16 lanes' multiple, in F16 and F32. */
static void test_odd_rows(void) {
    static const struct shape odd = { 40, 24, 18, 77, 2, 1, 1, 1 };
    for (int k = 0; k < 2; k++) {
        struct bench b = bench_new();
        const enum ggml_type type = k ? GGML_TYPE_F32 : GGML_TYPE_F16;
        tensor *y = build(&b, &odd, type, type, &(struct extras) { .mask = true, .mask_heads = 1 });
        expect(&b, y, want, 2e-6, 2e-6, "odd rows");
        bench_free(&b);
    }
}

static void test_extras(void) {
    for (int n = 1; n < 4; n++) for (int bits = 0; bits < 32; bits++) {
        const struct extras e = { .mask = bits & 1, .sinks = bits & 2, .cap = bits & 4 ? 1.5f : 0.0f, .bias = (bits & 9) == 9 ? 8.0f : 0.0f,
                                  .mask_heads = bits & 16 ? 2 : 1 };
        struct bench b = bench_new();
        char name[96];
        snprintf(name, sizeof name, "shape %d, extras %02x", n, bits);
        tensor *y = build(&b, &shapes[n], GGML_TYPE_F16, GGML_TYPE_F16, &e);
        expect(&b, y, want, 3e-6, 3e-6, name);
        expect_same_for_threads(&b, y, name);
        bench_free(&b);
    }
}

/* The masked row gives zeros, others are unaffected; also with NaN behind the mask. */
static void test_masked_rows(void) {
    static const struct { int64_t tokens, masked; } cases[] = { { 2, 1 }, { 128, 14 } };
    for (int c = 0; c < 2; c++) for (int nan = 0; nan < 2; nan++) {
        const struct shape s = { 64, 64, cases[c].tokens, 32, 2, 1, 1, 1 };
        struct bench b = bench_new();
        tensor *y = build(&b, &s, GGML_TYPE_F16, GGML_TYPE_F16, &(struct extras) { .mask = true, .mask_heads = 1 });
        tensor *k = y->src[1], *v = y->src[2], *m = y->src[3];
        FOR_ELEMENTS(i, m) set_value(m, i, i[1] < cases[c].masked || (nan && i[0] % 5 == 2) ? -INFINITY : 0);
        FOR_ELEMENTS(i, k) if (nan && i[1] % 5 == 2) set_value(k, i, NAN);
        FOR_ELEMENTS(i, v) if (nan && i[1] % 5 == 2) set_value(v, i, i[0] % 2 ? NAN : INFINITY);
        expect(&b, y, want, 2e-6, 2e-6, "masked rows");
        FOR_ELEMENTS(i, y) if (i[2] < cases[c].masked) CHECK(value_at(y, i) == 0, "row %d is zero", (int) i[2]);
        bench_free(&b);
    }
}

/* One cache, its queries in batches of 1, 7, 32 and all: the same bytes for each; and with 61 more masked keys at the end. */
static void test_batches(enum ggml_type type, int64_t group) {
    enum { TOKENS = 100, KEYS = 230, MORE = 61, D = 64 };
    struct bench b = bench_new();
    tensor *q = operand(&b, GGML_TYPE_F32, SIZE(D, TOKENS, 2*group, 1), PACKED);
    tensor *k = operand(&b, type, SIZE(D, KEYS + MORE, 2, 1), PACKED), *v = operand(&b, type, SIZE(D, KEYS + MORE, 2, 1), PACKED);
    float *all = NULL;
    static const int64_t sizes[] = { TOKENS, 1, 7, 32 };
    for (int padded = 0; padded < 2; padded++) for (int i = 0; i < 4; i++) for (int64_t t0 = 0; t0 < TOKENS; t0 += sizes[i]) {
        if (padded && i == 1 && t0 % 11) continue;
        struct ggml_context *ctx = b.ctx;
        b.ctx = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 20, .no_alloc = true });
        const int roots = b.n_roots;
        const int64_t n = TOKENS - t0 < sizes[i] ? TOKENS - t0 : sizes[i], keys = KEYS + (padded ? MORE : 0);
        tensor *part = ggml_view_3d(b.ctx, q, D, n, 2*group, q->nb[1], q->nb[2], (size_t) t0*q->nb[1]);
        tensor *pk = ggml_view_3d(b.ctx, k, D, keys, 2, k->nb[1], k->nb[2], 0), *pv = ggml_view_3d(b.ctx, v, D, keys, 2, v->nb[1], v->nb[2], 0);
        tensor *m = operand(&b, GGML_TYPE_F16, SIZE(keys, n, 1, 1), PACKED);
        FOR_ELEMENTS(x, m) set_value(m, x, x[0] > KEYS - TOKENS + t0 + x[1] ? -INFINITY : 0);
        tensor *y = ggml_flash_attn_ext(b.ctx, part, pk, pv, m, 0.3f, 0, 0);
        CHECK(compute(&b, y, 1 + (int) (t0 % 3)) == GGML_STATUS_SUCCESS, "batches");
        if (!all) all = bytes_of(y);
        const size_t size = (size_t) (n*2*group*D)*sizeof *all;
        CHECK(!memcmp(all + t0*2*group*D, y->data, size), "%s, batches of %d from %d, padded %d: other bytes", ggml_type_name(type),
              (int) sizes[i], (int) t0, padded);
        ggml_free(b.ctx);
        while (b.n_roots > roots) free(b.roots[--b.n_roots].block);
        b.ctx = ctx;
    }
    free(all);
    bench_free(&b);
}

/* The same bytes at every level for a whole op. */
static void test_levels(void) {
    struct bench b = bench_new();
    static const struct shape s = { 64, 64, 40, 200, 6, 2, 2, 1 };
    tensor *y = build(&b, &s, GGML_TYPE_F16, GGML_TYPE_F16, &(struct extras) { .mask = true, .mask_heads = 1, .cap = 3 });
    void *first = NULL;
    for (int i = 0; arn_cpu_level_name(i); i++) {
        arn_cpu_set_level(arn_cpu_level_name(i));
        CHECK(compute(&b, y, 2) == GGML_STATUS_SUCCESS, "levels");
        if (first) CHECK(!memcmp(first, y->data, ggml_nbytes(y)), "%s: other bytes", arn_cpu_level_name(i));
        else first = bytes_of(y);
    }
    arn_cpu_set_level(NULL);
    free(first);
    bench_free(&b);
}

int main(void) {
    test_shapes();
    test_odd_rows();
    test_extras();
    test_masked_rows();
    test_batches(GGML_TYPE_F16, 3);
    test_batches(GGML_TYPE_Q8_0, 1);
    test_levels();
    return DONE();
}
