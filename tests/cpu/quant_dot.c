/* Products of weights with activations: the portable definition against sums in F64 over unpacked weights, and every level of
 * instructions against the portable definition, bit for bit. */

#include "check.h"
#include "cpu.h"
#include "kernels.h"

#define GREATEST 0x1.fffffep127f

enum { ROWS = 37, COLUMNS = 23, K_MAX = 2048 + 256 };

static uint64_t seed = 1;

#define FLOATS(NAME, tag, block)          { GGML_TYPE_##NAME, #NAME, block },
#define QUANTISED(NAME, tag, block, tile) FLOATS(NAME, tag, block)
static const struct { enum ggml_type type; const char *name; int block; } products[] = {
#include "products.def"
};
enum { N_PRODUCTS = sizeof products/sizeof products[0] };

static const struct { enum ggml_type type; size_t at[2]; } halves[] = {         /* where scales that are halves stand */
    { GGML_TYPE_Q4_0, { 0, 0 } }, { GGML_TYPE_Q4_1, { 0, 2 } }, { GGML_TYPE_Q5_0, { 0, 0 } }, { GGML_TYPE_Q5_1, { 0, 2 } },
    { GGML_TYPE_Q8_0, { 0, 0 } }, { GGML_TYPE_Q2_K, { 80, 82 } }, { GGML_TYPE_Q3_K, { 108, 108 } },
    { GGML_TYPE_Q4_K, { 0, 2 } }, { GGML_TYPE_Q5_K, { 0, 2 } }, { GGML_TYPE_Q6_K, { 208, 208 } },
    { GGML_TYPE_IQ4_NL,  { 0, 0 } }, { GGML_TYPE_IQ4_XS, { 0, 0 } }, { GGML_TYPE_Q1_0,    { 0, 0 } }, { GGML_TYPE_Q2_0,  { 0, 0 } },
    { GGML_TYPE_TQ1_0, { 52, 52 } }, { GGML_TYPE_TQ2_0, { 64, 64 } }, { GGML_TYPE_IQ2_XXS, { 0, 0 } }, { GGML_TYPE_IQ2_XS, { 0, 0 } },
    { GGML_TYPE_IQ2_S,   { 0, 0 } }, { GGML_TYPE_IQ3_XXS, { 0, 0 } }, { GGML_TYPE_IQ3_S,  { 0, 0 } }, { GGML_TYPE_IQ1_S,  { 0, 0 } },
};

enum fill { RANDOM, ZEROS, ONES };      /* of the bytes of a block */

static uint16_t small_half(void) { return (uint16_t) (0x2000 + rnd_u64(&seed) % 0x1800 + (rnd_u64(&seed) & 1)*0x8000); }

static void fill_weights(enum ggml_type type, size_t bytes, void *data, enum fill fill) {
    uint8_t *w = data;
    const size_t size = ggml_type_size(type);
    for (size_t i = 0; i < bytes; i++) w[i] = fill == RANDOM ? (uint8_t) rnd_u64(&seed) : fill == ONES ? 255 : 0;
    if (type == GGML_TYPE_F32) for (size_t i = 0; i < bytes; i += 4) { const float f = rnd_f32(&seed); memcpy(w + i, &f, 4); }
    if (type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) {
        for (size_t i = 0; i < bytes; i += 2) {
            const uint16_t h = type == GGML_TYPE_F16 ? small_half() : f32_to_bf16(rnd_f32(&seed));
            memcpy(w + i, &h, 2);
        }
    }
    for (size_t i = 0; i < bytes && type == GGML_TYPE_MXFP4; i += size) w[i] = (uint8_t) (110 + rnd_u64(&seed) % 24);
    for (size_t i = 54; i < bytes && type == GGML_TYPE_IQ1_M; i += size) {      /* the top of its half: below infinity */
        uint16_t last;
        memcpy(&last, w + i, 2);
        last &= 0x8fff;
        memcpy(w + i, &last, 2);
    }
    for (size_t h = 0; h < sizeof halves/sizeof halves[0]; h++) {
        if (halves[h].type != type) continue;
        for (size_t i = 0; i < bytes; i += size) {
            for (int j = 0; j < 2; j++) { const uint16_t d = small_half(); memcpy(w + i + halves[h].at[j], &d, 2); }
        }
    }
}

static void *aligned(size_t size) {
    void *p = ggml_aligned_malloc(size + 64);
    if (!p) exit(1);
    memset(p, 0, size + 64);
    return p;
}

static void random_floats(int64_t n, float *x) { for (int64_t i = 0; i < n; i++) x[i] = 3*rnd_f32(&seed); }

#ifndef EMULATED
/* What element i of a prepared column stands for. */
static double activation(int block, int64_t k, const void *column, int64_t i) {
    const char *at = column;
    const float   *d    = (const float *) (const void *) (at + column_d(k));
    const int16_t *fine = (const int16_t *) (const void *) (at + column_fine(block, k));
    return (double) d[i/block]*fine[column_fine_place(block, i)]*((const int8_t *) column)[column_place(block, i)];
}

/* What a product should be, from unpacked weights and the activations it really uses; *size the sum of magnitudes. */
static double exact(enum ggml_type type, int block, int64_t k, const void *w, const void *column, double *size) {
    static float unpacked[K_MAX];
    if (type == GGML_TYPE_F32) memcpy(unpacked, w, sizeof *unpacked*(size_t) k);
    else quant_types[type].unpack(w, unpacked, k);
    double sum = *size = 0;
    for (int64_t i = 0; i < k; i++) {
        const double x = block == 1 ? ((const float *) column)[i] : activation(block, k, column, i);
        sum += x*unpacked[i], *size += fabs(x*unpacked[i]);
    }
    return sum;
}

static void test_definition(void) {
    static float x[K_MAX], y[ROWS];
    for (int i = 0; i < N_PRODUCTS; i++) for (int64_t k = 0; k <= 1024; k += k ? 3*k : 256) {
        const enum ggml_type type = products[i].type;
        const size_t stride = ggml_row_size(type, k);
        char *w = aligned(stride*ROWS), *column = aligned(column_size(products[i].block, k));
        fill_weights(type, stride*ROWS, w, RANDOM);
        random_floats(k, x);
        if (products[i].block == 1) memcpy(column, x, sizeof *x*(size_t) k);
        else quant_kernels_portable.quantize(products[i].block, k, x, column);
        quant_kernels_portable.product[type].gemv(k, ROWS, w, stride, column, y);
        for (int r = 0; r < ROWS; r++) {
            double size;
            const double want = exact(type, products[i].block, k, w + (size_t) r*stride, column, &size);
            CHECK(fabs(want - (double) y[r]) <= size*1e-6, "%s row %d: %g, exact %g", products[i].name, r, (double) y[r], want);
        }
        ggml_aligned_free(w, 0), ggml_aligned_free(column, 0);
    }
}

/* ---- activations ---- */

static void check_codes(const float *x, const int8_t *want, const int *want_fine, float want_d, const char *what) {
    char *column = aligned(column_size(32, 32));
    quant_kernels_portable.quantize(32, 32, x, column);
    const float d = *(const float *) (const void *) (column + column_d(32));
    const int16_t *fine = (const int16_t *) (const void *) (column + column_fine(32, 32));
    for (int i = 0; i < 32; i++) {
        CHECK((int8_t) column[column_place(32, i)] == want[i], "%s: code %d", what, i);
        CHECK(fine[column_fine_place(32, i)] == want_fine[i/16], "%s: fine scale of %d", what, i);
    }
    CHECK(d == want_d || (isnan(d) && isnan(want_d)), "%s: d = %g", what, (double) d);
    ggml_aligned_free(column, 0);
}

static void test_codes(void) {
    float x[32] = { 127*FINE_MOST };
    int8_t want[32] = { 127 };
    const int most[2] = { FINE_MOST, FINE_MOST }, ones[2] = { 1, 1 }, apart[2] = { FINE_MOST, 2 };
    for (int i = 1; i < 32; i++) {                          /* ties go away from zero; the second half is finer */
        const float step = i < 16 ? FINE_MOST : 2;
        x[i] = ((float) (i%16 - 8) + 0.5f)*step;
        want[i] = (int8_t) (i%16 - 8 + (i%16 >= 8));
    }
    x[31] = 2*127, want[31] = 127;
    check_codes(x, want, apart, 1, "ties");
    const int8_t zeros[32] = { 0 };
    for (int i = 0; i < 32; i++) x[i] = 0;
    check_codes(x, zeros, ones, 0, "zeros");
    for (int i = 0; i < 32; i++) x[i] = 1e-37f;
    check_codes(x, zeros, ones, 0, "tiny");
    x[5] = INFINITY;
    check_codes(x, zeros, ones, INFINITY, "infinity");
    x[9] = NAN;
    check_codes(x, zeros, ones, NAN, "NaN");
    for (int i = 0; i < 32; i++) x[i] = i & 1 ? -GREATEST : GREATEST, want[i] = i & 1 ? -127 : 127;
    check_codes(x, want, most, GREATEST/(FINE_MOST*127), "greatest floats");
}

/* No activation is farther from its float than half a step of its group, which is at most 1/FINE_MOST of a block's above
 * the least that there could be. */
static void test_fine(void) {
    static float x[K_MAX];
    for (int b = 0; b < 2; b++) {
        const int block = b ? 256 : 32, group = fine_group(block);
        const int64_t k = 1024;
        char *column = aligned(column_size(block, k));
        random_floats(k, x);
        for (int64_t i = 5; i < k; i += 100) x[i] *= 50;
        quant_kernels_portable.quantize(block, k, x, column);
        for (int64_t i = 0; i < k; i++) {
            float most = 0, all = 0;
            for (int j = 0; j < group; j++) most = fmaxf(most, fabsf(x[i/group*group + j]));
            for (int j = 0; j < block; j++) all  = fmaxf(all,  fabsf(x[i/block*block + j]));
            const double step = ((double) most + (double) all/FINE_MOST)/127;
            CHECK(fabs(activation(block, k, column, i) - (double) x[i]) <= step/2*1.00001, "block %d, element %d", block, (int) i);
        }
        ggml_aligned_free(column, 0);
    }
}

#endif

/* ---- every level against the portable one ---- */

static void level_quantize(const struct quant_kernels *q, const char *level, int block, int64_t k, const float *x, const char *what) {
    char *want = aligned(column_size(block, k)), *got = aligned(column_size(block, k));
    quant_kernels_portable.quantize(block, k, x, want);
    q->quantize(block, k, x, got);
    CHECK(!memcmp(want, got, column_size(block, k)), "%s: codes of blocks of %d, k = %d, %s", level, block, (int) k, what);
    ggml_aligned_free(want, 0), ggml_aligned_free(got, 0);
}

static void test_level_quantize(const struct quant_kernels *q, const char *level) {
    static float x[K_MAX];
    for (int block = 32; block <= 256; block += 224) {
        for (int round = 0; round < 20; round++) {
            random_floats(K_MAX, x);
            level_quantize(q, level, block, K_MAX, x, "random");
        }
        for (int i = 0; i < K_MAX; i++) x[i] = i % 32 ? (float) (i % 254 - 127) + 0.5f : 127;
        level_quantize(q, level, block, K_MAX, x, "ties");
        for (int i = 0; i < K_MAX; i++) x[i] = i % 32 ? (float) ((int) (rnd_u64(&seed) % 254) - 127) + 0.49999997f : 127;
        level_quantize(q, level, block, K_MAX, x, "just below ties");
        for (int i = 0; i < K_MAX; i++) x[i] = bits_f32((uint32_t) rnd_u64(&seed));
        level_quantize(q, level, block, K_MAX, x, "any bits");
        for (int i = 0; i < K_MAX; i++) x[i] = bits_f32((uint32_t) rnd_u64(&seed) & 0x83ffffff);
        level_quantize(q, level, block, K_MAX, x, "tiny");
        for (int i = 0; i < K_MAX; i++) x[i] = bits_f32((uint32_t) rnd_u64(&seed) & 0x7fffff) * (i/256 % 2 ? 1 : 0);
        level_quantize(q, level, block, K_MAX, x, "subnormal");
    }
}

static bool same(const float *a, const float *b, size_t n) {                    /* bits, but any NaN is a NaN */
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) && !(isnan(a[i]) && isnan(b[i]))) return false;
    }
    return true;
}

/* ROWS rows times n columns: gemv column by column and gemm, both against the portable gemv. */
static void level_product(const struct quant_kernels *q, const char *level, int i, int64_t k, int n, enum fill fill, bool extreme) {
    const enum ggml_type type = products[i].type;
    const struct product *p = &q->product[type], *definition = &quant_kernels_portable.product[type];
    const size_t stride = ggml_row_size(type, k) + 2*ggml_type_size(type), column = column_size(p->block, k);
    char *w = aligned(stride*ROWS), *c = aligned(column);
    float *x = aligned(sizeof *x*(size_t) (k*n)), *want = aligned(sizeof *want*ROWS*COLUMNS), *got = aligned(sizeof *got*(ROWS + 1)*COLUMNS);
    fill_weights(type, stride*ROWS, w, fill);
    random_floats(k*n, x);
    if (extreme) for (int64_t e = 0; e < k*n; e++) x[e] = rnd_u64(&seed) & 3 ? 2 : -2;
    if (fill == ONES) for (int64_t e = 0; e < k*n; e++) x[e] = e/k & 1 ? -2 : 2;
    const float *xs[COLUMNS];
    float *ys[COLUMNS];
    for (int j = 0; j < n; j++) {
        xs[j] = x + j*k, ys[j] = got + j*(ROWS + 1);
        if (p->block == 1) memcpy(c, xs[j], sizeof *x*(size_t) k);
        else q->quantize(p->block, k, xs[j], c);
        definition->gemv(k, ROWS, w, stride, c, want + j*ROWS);
        p->gemv(k, ROWS, w, stride, c, ys[j]);
        CHECK(same(want + j*ROWS, ys[j], ROWS), "%s: gemv %s, k = %d, fill %d", level, products[i].name, (int) k, fill);
        for (int r = 0; r <= ROWS; r++) ys[j][r] = -77;
    }
    if (p->tile_columns) {
        const int tiles = (n + p->tile_columns - 1)/p->tile_columns;
        const size_t tile = p->tile_size(k) + 128;
        char *t = aligned(tile*(size_t) tiles), *scratch = aligned(p->gemm_scratch(k));
        memset(t, 0x5a, tile*(size_t) tiles), memset(scratch, 0x5a, p->gemm_scratch(k));
        for (int u = 0; u < tiles; u++) {
            const int first = u*p->tile_columns, left = n - first;
            p->tile(k, left < p->tile_columns ? left : p->tile_columns, xs + first, t + (size_t) u*tile);
        }
        p->gemm(k, ROWS, w, stride, n, t, tile, ys, scratch);
        for (int j = 0; j < n; j++) {
            CHECK(same(want + j*ROWS, ys[j], ROWS), "%s: gemm %s, k = %d, column %d of %d, fill %d", level, products[i].name, (int) k, j, n, fill);
            CHECK(ys[j][ROWS] == -77, "%s: gemm %s writes past its rows", level, products[i].name);
        }
        ggml_aligned_free(t, 0), ggml_aligned_free(scratch, 0);
    }
    ggml_aligned_free(w, 0), ggml_aligned_free(c, 0), ggml_aligned_free(x, 0), ggml_aligned_free(want, 0), ggml_aligned_free(got, 0);
}

static void test_level(const struct quant_kernels *q, const char *level) {
    static const int64_t lengths[] = { 0, 1, 2, 3, 5, 8, 9 };                      /* in blocks; floats as they are */
    test_level_quantize(q, level);
    for (int i = 0; i < N_PRODUCTS; i++) {
        const int block = products[i].block;
        for (size_t l = 0; l < sizeof lengths/sizeof lengths[0]; l++) {
            const int64_t weights = ggml_blck_size(products[i].type), step = block > weights ? block : weights;
            const int64_t k = block == 1 ? lengths[l]*29 : lengths[l]*step;
            level_product(q, level, i, k, 1 + (int) l*3, RANDOM, false);
            level_product(q, level, i, k, 1 + (int) l, RANDOM, true);
        }
        level_product(q, level, i, block == 1 ? 300 : 640/block*block, COLUMNS, RANDOM, false);
        level_product(q, level, i, 2048, 7, RANDOM, false);
        level_product(q, level, i, 18432, 1, RANDOM, false);                        /* rows that gemv takes in pieces */
        if (block > 1) {                                    /* every code and scale at its greatest, all of one sign */
            level_product(q, level, i, 512, 6, ONES,  true);
            level_product(q, level, i, 512, 6, ZEROS, true);
        }
    }
}

int main(void) {
#ifdef EMULATED                             /* included with the kernels of one level: tests them alone */
    if (!cpu_level_present(CPU_AVX2)) return 77;
    struct quant_kernels q = quant_kernels_portable;
    K(quant_kernels)(&q);
    test_level(&q, EMULATED);
#else
    test_definition();
    test_codes();
    test_fine();
    for (int level = 0; level < CPU_LEVELS; level++) {
        const struct cpu_kernels *k = cpu_kernels_at((enum cpu_level) level);
        if (k && level != CPU_PORTABLE) test_level(&k->q, cpu_level_name((enum cpu_level) level));
    }
#endif
    return DONE();
}
