/* The rules of the conversions that do not need another implementation to check: rounding, ties, zeros, importance of zeros,
 * numbers that are not finite, validity, byte order. */

#include "quant.h"
#include "check.h"

#include <time.h>

static char said[512];
static void hear(enum ggml_log_level level, const char *text, void *user) { (void) level, (void) user; snprintf(said, sizeof said, "%s", text); }

/* without importance data */
static void pack(enum ggml_type t, const float *x, void *y, int64_t n) {
    (quant_types[t].pack ? quant_types[t].pack : quant_types[t].pack_file)(x, y, n);
}
static bool can_pack(enum ggml_type t) {
    return (quant_types[t].pack || quant_types[t].pack_file) && t != GGML_TYPE_F16 && t != GGML_TYPE_BF16;
}

static void check_scalars(void) {
    static const struct { float f; uint16_t h; } halves[] = {
        { 65519.99f, 0x7bff }, { 65520.0f, 0x7c00 }, { 5.9604645e-8f, 0x0001 }, { 2.9802322e-8f, 0x0000 }, { 1.00048828125f, 0x3c00 },
        { 1.00146484375f, 0x3c02 }, { -65520.0f, 0xfc00 }, { INFINITY, 0x7c00 }, { -0.0f, 0x8000 }, { 6.1035156e-5f, 0x0400 }, { 8.9406967e-8f, 0x0002 },
    };
    static const struct { uint32_t f; uint16_t h; } bfloats[] = {
        { 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 }, { 0x7f7fffff, 0x7f80 }, { 0x7f800001, 0x7fc0 }, { 0xff800001, 0xffc0 }, { 0x00000001, 0x0000 },
        { 0x7f800000, 0x7f80 },
    };
    for (size_t i = 0; i < sizeof halves/sizeof *halves; i++) {
        ggml_fp16_t row;
        ggml_fp32_to_fp16_row(&halves[i].f, &row, 1);
        CHECK(ggml_fp32_to_fp16(halves[i].f) == halves[i].h && row == halves[i].h, "%a", halves[i].f);
    }
    CHECK(isnan(ggml_fp16_to_fp32(ggml_fp32_to_fp16(NAN))) && isnan(ggml_bf16_to_fp32(ggml_fp32_to_bf16(NAN))), "NaN");
    for (size_t i = 0; i < sizeof bfloats/sizeof *bfloats; i++) {
        const float f = bits_f32(bfloats[i].f);
        ggml_bf16_t row;
        ggml_fp32_to_bf16_row(&f, &row, 1);
        CHECK(ggml_fp32_to_bf16(f).bits == bfloats[i].h && row.bits == bfloats[i].h, "%08x", (unsigned) bfloats[i].f);
    }
    for (uint32_t h = 0; h < 0x10000; h++) {                    /* each half against its definition, and there and back */
        const int e = h >> 10 & 31, m = h & 1023;
        const double v = (h & 0x8000 ? -1 : 1)*(e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
        if (e == 31) continue;
        if ((double) f16_to_f32((uint16_t) h) != v || f32_to_f16((float) v) != h) { CHECK(false, "half %04x", (unsigned) h); break; }
    }
}

static void check_ties(void) {
    float x[32];
    block_q8_0 b;
    x[0] = 127.0f;
    for (int i = 1; i < 32; i++) x[i] = (float) (i - 16) + 0.5f;
    CHECK(ggml_quantize_chunk(GGML_TYPE_Q8_0, x, &b, 0, 1, 32, NULL) == 34 && b.d == 0x3c00 && b.qs[0] == 127, "scale");
    for (int i = 1; i < 32; i++) CHECK(b.qs[i] == (i < 16 ? i - 16 : i - 15), "%g is %d", x[i], b.qs[i]);
}

/* a block of zeros holds the scale zero and gives zeros back */
static void check_zeros(enum ggml_type t) {
    const int64_t n = ggml_blck_size(t);
    float x[QK_K] = { 0 }, y[QK_K], w[QK_K];
    uint8_t block[512];
    for (int i = 0; i < QK_K; i++) w[i] = 1.0f;
    memset(block, 0xff, sizeof block);
    pack(t, x, block, n);
    CHECK(t == GGML_TYPE_Q8_1 || ggml_validate_row_data(t, block, ggml_type_size(t)), "%s", ggml_type_name(t));
    for (int weighted = 0; weighted < 2 && quant_types[t].unpack; weighted++) {
        if (weighted) ggml_quantize_chunk(t, x, block, 0, 1, n, w);
        quant_types[t].unpack(block, y, n);
        for (int i = 0; i < n; i++) if (y[i] != 0.0f) { CHECK(false, "%s: zero %d is %g", ggml_type_name(t), i, y[i]); break; }
    }
}

/* importance of zeros, or that is no importance, gives what no importance gives */
static void check_no_importance(enum ggml_type t) {
    enum { ROWS = 4, ROW = 256 };
    static float x[ROWS*ROW], y[ROWS*ROW], w[3][ROW];
    static uint8_t a[ROWS*ROW*4], b[ROWS*ROW*4];
    const size_t bytes = ggml_row_size(t, ROWS*ROW);
    for (int i = 0; i < ROWS*ROW; i++) x[i] = -1.0f;
    for (int i = 0; i < ROW; i++) w[0][i] = 0.0f, w[1][i] = NAN, w[2][i] = -1.0f;
    for (int k = 0; k < 3; k++) {
        memset(a, 0, bytes), memset(b, 0, bytes);
        if (ggml_quantize_requires_imatrix(t)) pack(t, x, a, ROWS*ROW);
        else                                   ggml_quantize_chunk(t, x, a, 0, ROWS, ROW, NULL);
        ggml_quantize_chunk(t, x, b, 0, ROWS, ROW, w[k]);
        CHECK(!memcmp(a, b, bytes), "%s, kind %d", ggml_type_name(t), k);
        quant_types[t].unpack(b, y, ROWS*ROW);
        for (int i = 0; i < ROWS*ROW; i++) if (!(fabsf(y[i] + 1.0f) < 0.5f)) { CHECK(false, "%s: -1 is %g", ggml_type_name(t), y[i]); break; }
    }
    /* zeros in half of each block: the elements without importance stay sensible */
    for (int i = 0; i < ROW; i++) w[0][i] = i % 32 < 16 ? 0.0f : 1.0f;
    ggml_quantize_chunk(t, x, b, 0, ROWS, ROW, w[0]);
    quant_types[t].unpack(b, y, ROWS*ROW);
    for (int i = 0; i < ROWS*ROW; i++) if (!(fabsf(y[i] + 1.0f) < 0.75f)) { CHECK(false, "%s: -1 without importance is %g", ggml_type_name(t), y[i]); break; }
}

#ifdef EMULATOR
enum { N_ANY = 30 };
#else
enum { N_ANY = SANITIZED ? 120 : 200 };
#endif

/* any floats at all: no undefined behaviour (a sanitizer sees it), no byte beyond the block */
static void check_any_floats(enum ggml_type t) {
    static const float odd[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f, 1e-45f, -1e-38f, 0.0f, 1.0f };
    const int64_t n = ggml_blck_size(t);
    const size_t bytes = ggml_type_size(t);
    float x[QK_K], w[QK_K], y[QK_K];
    uint8_t block[512];
    uint64_t seed = 3;
    for (int k = 0; k < N_ANY; k++) {
        for (int i = 0; i < QK_K; i++) {
            const uint64_t u = rnd_u64(&seed);
            x[i] = k < 10 ? odd[k] : k % 2 ? odd[u % 10] : bits_f32((uint32_t) u);
            w[i] = k/2 % 2 ? 1.0f : odd[u >> 40 & 7];
        }
        memset(block, 0x5c, sizeof block);
        pack(t, x, block, n);
        ggml_quantize_chunk(t, x, block, 0, 1, n, w);
        for (size_t i = bytes; i < sizeof block; i++) if (block[i] != 0x5c) { CHECK(false, "%s: byte %zu", ggml_type_name(t), i); break; }
        if (quant_types[t].unpack) quant_types[t].unpack(block, y, n);
    }
}

/* any bytes unpack; swapping twice is nothing, once changes the fields alone */
static void check_any_bytes(enum ggml_type t) {
    const size_t bytes = ggml_type_size(t);
    uint8_t a[2*512], b[2*512];
    float y[2*QK_K];
    uint64_t seed = 4;
    for (int k = 0; k < 200; k++) {
        for (size_t i = 0; i < 2*bytes; i++) a[i] = b[i] = (uint8_t) (rnd_u64(&seed) >> 30);
        if (quant_types[t].unpack) quant_types[t].unpack(a, y, 2*ggml_blck_size(t));
        quant_swap(t, b, 2);
        quant_swap(t, b, 2);
        CHECK(!memcmp(a, b, 2*bytes), "%s", ggml_type_name(t));
        ggml_validate_row_data(t, a, 2*bytes);
    }
}

/* each scale that is not finite is found, in the block where it is */
static void check_validity(enum ggml_type t) {
    const size_t bytes = ggml_type_size(t);
    uint8_t blocks[3*512] = { 0 };
    CHECK(ggml_validate_row_data(t, blocks, 3*bytes) && ggml_validate_row_data(t, blocks, 0), "%s: zeros", ggml_type_name(t));
    CHECK(bytes == 1 || (!ggml_validate_row_data(t, blocks, 3*bytes - 1) && strstr(said, "whole number")), "%s: half a block", ggml_type_name(t));
    for (const struct quant_field *f = quant_types[t].fields; f < quant_types[t].fields + 2; f++) {
        static const struct { uint8_t size; uint64_t nan, infinite; } values[] = {
            [FIELD_F16] = { 2, 0x7e00, 0xfc00 }, [FIELD_BF16] = { 2, 0x7fc0, 0xff80 }, [FIELD_F32] = { 4, 0x7fc00000, 0xff800000 },
            [FIELD_F64] = { 8, 0x7ff8000000000000, 0xfff0000000000000 }, [FIELD_E8M0] = { 1, 255, 255 }, [FIELD_IQ1_M] = { 0, 0, 0 },
        };
        for (int k = 0; k < f->n*2; k++) {
            const uint64_t v = k % 2 ? values[f->kind].nan : values[f->kind].infinite;
            uint8_t *at = blocks + bytes + f->at + k/2*values[f->kind].size;
            const uint16_t v16 = (uint16_t) v;
            const uint32_t v32 = (uint32_t) v;
            const void *from = values[f->kind].size == 2 ? (const void *) &v16 : values[f->kind].size == 4 ? (const void *) &v32 : &v;
            if (!values[f->kind].size) continue;
            if (values[f->kind].size == 1) *at = (uint8_t) v; else memcpy(at, from, values[f->kind].size);
            CHECK(!ggml_validate_row_data(t, blocks, 3*bytes) && strstr(said, "block 1"), "%s: %s", ggml_type_name(t), said);
            memset(at, 0, values[f->kind].size);
        }
    }
}

static void check_chunks(enum ggml_type t) {
    enum { ROWS = 5, ROW = 512 };
    static float x[ROWS*ROW], w[ROW];
    static uint8_t whole[ROWS*ROW*4], parts[ROWS*ROW*4];
    const size_t row = ggml_row_size(t, ROW);
    uint64_t seed = 5;
    for (int i = 0; i < ROWS*ROW; i++) x[i] = rnd_f32(&seed);
    for (int i = 0; i < ROW; i++) w[i] = 1.0f + rnd_f32(&seed);
    memset(whole, 0, sizeof whole), memset(parts, 0, sizeof parts);
    CHECK(ggml_quantize_chunk(t, x, whole, 0, ROWS, ROW, w) == ROWS*row, "%s", ggml_type_name(t));
    for (int r = 0; r < ROWS; r++) CHECK(ggml_quantize_chunk(t, x, parts, r*ROW, 1, ROW, w) == row, "%s", ggml_type_name(t));
    CHECK(!memcmp(whole, parts, ROWS*row), "%s: rows one by one differ", ggml_type_name(t));
}

/* the first block of a type is as fast as the others: no tables are built */
static void check_first_use(void) {
    float x[QK_K], w[QK_K];
    uint8_t block[512];
    uint64_t seed = 6;
    for (int i = 0; i < QK_K; i++) x[i] = rnd_f32(&seed), w[i] = 1.0f;
    const clock_t before = clock();
    ggml_quantize_init(GGML_TYPE_IQ1_S);
    ggml_quantize_chunk(GGML_TYPE_IQ1_S, x, block, 0, 1, QK_K, w);
    ggml_quantize_chunk(GGML_TYPE_IQ2_XS, x, block, 0, 1, QK_K, w);
    CHECK(SANITIZED || clock() - before < CLOCKS_PER_SEC/10, "%.3f s", (double) (clock() - before)/CLOCKS_PER_SEC);
    ggml_quantize_free();
}

int main(void) {
    check_first_use();
    ggml_log_set(hear, NULL);
    check_scalars();
    check_ties();
    for (enum ggml_type t = 0; t < GGML_TYPE_COUNT; t++) {
        if (!ggml_blck_size(t)) continue;
        check_any_bytes(t);
        if (t != GGML_TYPE_Q8_1) check_validity(t);
        if (!can_pack(t)) continue;
        check_zeros(t);
        check_any_floats(t);
        if (t == GGML_TYPE_Q8_1 || t == GGML_TYPE_Q8_K) continue;
        check_no_importance(t);
        check_chunks(t);
    }
    CHECK(!ggml_validate_row_data(GGML_TYPE_Q8_1, said, 36) && !ggml_validate_row_data((enum ggml_type) 4, said, 0), "no data of weights");
    float x[8] = { 1, -2, 3, 4, 5, 6, 7, 8 }, y[8];
    CHECK(ggml_quantize_chunk(GGML_TYPE_F32, x, y, 0, 2, 4, NULL) == 32 && !memcmp(x, y, 32), "F32 is copied");
    return DONE();
}
