/* Contexts and tensors: sizes of the arena's objects, running out of it, shapes that no memory holds, names, enumeration,
 * predicates over any layout, and the tables of types and ops. */

#include "check.h"
#include "core.h"
#include "ggml-alloc.h"

static int  log_lines;
static char log_text[512];
static void count_lines(enum ggml_log_level level, const char *text, void *user_data) {
    (void) level; (void) user_data;
    snprintf(log_text, sizeof log_text, "%s", text);
    for (; *text; text++) log_lines += *text == '\n';
}

static struct ggml_context *context(size_t size, bool no_alloc) {
    return ggml_init((struct ggml_init_params) { size, NULL, no_alloc });
}

static void sizes(void) {
    struct ggml_context *ctx = context(1 << 16, false);
    CHECK(ggml_tensor_overhead() == 368, "%zu", ggml_tensor_overhead());
    CHECK(ggml_used_mem(ctx) == 0, "empty");
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3);
    CHECK(ggml_used_mem(ctx) == 384, "F32[3]: %zu", ggml_used_mem(ctx));
    CHECK((char *) a->data == (char *) a + 336 && a->nb[1] == 12 && a->ne[3] == 1, "data follows the struct");
    ggml_new_tensor_1d(ctx, GGML_TYPE_I8, 1);
    CHECK(ggml_used_mem(ctx) == 768, "then I8[1]: %zu", ggml_used_mem(ctx));
    CHECK(ggml_nbytes(ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 33)) == 18, "part of a block is not counted");
    CHECK(ggml_get_max_tensor_size(ctx) == 18, "largest tensor");
    CHECK(ggml_get_mem_size(ctx) == 1 << 16 && (char *) ggml_get_mem_buffer(ctx) < (char *) a, "the block");
    void *work = ggml_new_buffer(ctx, 100);
    CHECK(work && (uintptr_t) work%16 == 0, "work buffer");
    ggml_reset(ctx);
    CHECK(ggml_used_mem(ctx) == 0 && !ggml_get_first_tensor(ctx), "reset");
    ggml_free(ctx);
    ggml_free(NULL);

    static _Alignas(16) char mine[1000];
    ctx = ggml_init((struct ggml_init_params) { 999, mine, true });
    CHECK(ggml_get_mem_size(ctx) == 999 && ggml_get_mem_buffer(ctx) == mine, "a caller's block is taken as it is");
    CHECK(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1000)->data == NULL, "no_alloc");
    CHECK(ggml_get_no_alloc(ctx), "no_alloc");
    ggml_free(ctx);
    ctx = context(0, true);
    CHECK(ggml_get_mem_size(ctx) == 16, "a size of 0 is 16");
    ggml_free(ctx);
    ctx = context(17, true);
    CHECK(ggml_get_mem_size(ctx) == 32 && (uintptr_t) ggml_get_mem_buffer(ctx)%64 == 0, "rounded up");
    ggml_free(ctx);
}

static void running_out(void) {
    struct ggml_context *ctx = context(4096, false);
    log_lines = 0;
    CHECK(!ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 100000), "100000 floats in 4096 bytes");
    CHECK(log_lines == 1 && strstr(log_text, "396272 are missing"), "one line that says how much: %s", log_text);
    CHECK(ggml_used_mem(ctx) == 0, "nothing is taken");
    CHECK(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10) != NULL, "what fits still fits");
    CHECK(!ggml_new_graph(ctx) && !ggml_new_buffer(ctx, SIZE_MAX), "graph, buffer");
    ggml_free(ctx);
    log_lines = 0;
    CHECK(!context(SIZE_MAX - 5, false) && log_lines == 1, "no machine has this much");
#if !SANITIZED                          /* which ends the program instead of refusing */
    CHECK(!context(SIZE_MAX/2, false) && log_lines == 2, "nor this");
#endif
    ctx = context(368, true);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10);
    CHECK(a && ggml_get_mem_size(ctx) == ggml_used_mem(ctx), "filled to the last byte");
    CHECK(!ggml_dup_tensor(ctx, a) && !ggml_view_tensor(ctx, a) && !ggml_dup_tensor(ctx, NULL), "then NULL");
    CHECK(!ggml_set_name(NULL, "x") && !ggml_format_name(NULL, "%d", 1), "NULL flows");
    ggml_set_input(NULL); ggml_set_output(NULL); ggml_set_param(NULL); ggml_set_loss(NULL); ggml_set_zero(NULL);
    ggml_free(ctx);
}

static void shapes(void) {
    struct ggml_context *ctx = context(1 << 16, true);
    static const struct { int64_t ne[4]; bool ok; size_t bytes; } cases[] = {
        { { 65536, 32769, 1, 1 },                 true,  2147549184 },
        { { INT64_C(1) << 40, 1 << 22, 1, 1 },    true,  (size_t) 1 << 62 },
        { { INT64_C(1) << 40, 1 << 23, 1, 1 },    false, 0 },
        { { INT64_C(1) << 62, 2, 2, 2 },          false, 0 },
        { { -1, 1, 1, 1 },                        false, 0 },
        { { 4, -4, 4, -4 },                       false, 0 },
        { { INT64_C(1) << 40, INT64_C(1) << 40, 0, 1 }, false, 0 },
        { { 0, 3, 2, 1 },                         true,  0 },
        { { INT64_MIN, 1, 1, 1 },                 false, 0 },
    };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        log_lines = 0;
        const struct ggml_tensor *t = ggml_new_tensor(ctx, GGML_TYPE_I8, 4, cases[i].ne);
        CHECK((t != NULL) == cases[i].ok, "shape %zu", i);
        CHECK(t ? ggml_nbytes(t) == cases[i].bytes : log_lines == 1, "shape %zu", i);
    }
    CHECK(!ggml_new_tensor_2d(ctx, GGML_TYPE_F32, INT64_C(1) << 40, 1 << 22), "2^62 floats are 2^64 bytes");
    struct ggml_tensor *mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 524288, 8192);
    CHECK(mask->nb[2] == (size_t) 1 << 33 && mask->nb[3] == (size_t) 1 << 33, "strides are 64 bits");
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    int64_t eight = 8;
    CHECK(tensor_new(ctx, GGML_TYPE_F32, 1, &eight, x, 0) != NULL, "a view of all");
    log_lines = 0;
    CHECK(!tensor_new(ctx, GGML_TYPE_F32, 1, &eight, x, 16) && log_lines == 1, "a view past the end of its parent");
    CHECK(!tensor_new(ctx, GGML_TYPE_F32, 1, &eight, x, SIZE_MAX - 3), "an offset that wraps");
    ggml_free(ctx);
}

static void views(void) {
    struct ggml_context *ctx = context(1 << 16, false);
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 6);
    const int64_t ne[] = { 2, 3 };
    struct ggml_tensor *v = tensor_new(ctx, GGML_TYPE_F32, 2, ne, a, 16), *w = tensor_new(ctx, GGML_TYPE_F32, 2, ne, v, 8);
    CHECK(w->view_src == a && w->view_offs == 24 && w->data == (char *) a->data + 24, "a view of a view is one of the root");
    ggml_set_name(a, "a");
    struct ggml_tensor *all = ggml_view_tensor(ctx, a);
    CHECK(!strcmp(all->name, "a (view)") && all->op == GGML_OP_NONE && !all->src[0] && ggml_is_view(all), "view_tensor");
    ggml_set_output(all);
    CHECK(a->flags & GGML_TENSOR_FLAG_OUTPUT, "an output's root is an output");
    struct ggml_tensor *d = ggml_dup_tensor(ctx, v);
    CHECK(d->nb[1] == 8 && !d->view_src && !d->name[0], "a duplicate is packed and nameless");
    ggml_free(ctx);
}

static void names(void) {
    struct ggml_context *ctx = context(1 << 16, false);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1), *b = ggml_dup_tensor(ctx, a);
    ggml_new_graph_custom(ctx, 10, false);
    struct ggml_tensor *c = ggml_dup_tensor(ctx, a);
    char longer[100];
    memset(longer, 'x', 99);
    longer[99] = 0;
    ggml_set_name(b, longer);
    CHECK(strlen(b->name) == 63, "63 bytes at most");
    ggml_format_name(c, "%s-%d", "tensor", 7);
    CHECK(!strcmp(ggml_get_name(c), "tensor-7"), "%s", c->name);
    ggml_format_name(c, "%s (%s)", c->name, c->name);
    CHECK(!strcmp(c->name, "tensor-7 (tensor-7)"), "a name from itself: %s", c->name);
    CHECK(ggml_get_tensor(ctx, "tensor-7 (tensor-7)") == c && !ggml_get_tensor(ctx, "tensor"), "found by name");
    CHECK(ggml_get_first_tensor(ctx) == a && ggml_get_next_tensor(ctx, a) == b && ggml_get_next_tensor(ctx, b) == c &&
          !ggml_get_next_tensor(ctx, c), "in the order of creation, graphs left out");
    int64_t i[4];
    struct ggml_tensor *t = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 2, 3, 4, 5);
    ggml_unravel_index(t, 1 + 2*(2 + 3*(3 + 4*4)), &i[0], &i[1], &i[2], &i[3]);
    CHECK(i[0] == 1 && i[1] == 2 && i[2] == 3 && i[3] == 4, "unravel");
    for (int k = 0; k < 120; k++) ((float *) t->data)[k] = 1;
    ggml_set_zero(t);
    CHECK(((float *) t->data)[119] == 0, "zeroed");
    ggml_free(ctx);
}

/* layouts, and what each predicate says of them: contiguous _0 _1 _2, to 1 2 3 dims, rows, channels, permuted, transposed */
static void predicates(void) {
    static const struct { int64_t ne[4]; size_t nb[4]; const char *is; } cases[] = {
        { { 4, 4, 2, 2 }, { 4, 16,  64, 128 }, "111 111 1000" },
        { { 4, 4, 2, 2 }, { 8, 16,  64, 128 }, "000 000 0000" },
        { { 1, 4, 2, 2 }, { 8,  4,  16,  32 }, "111 111 1011" },
        { { 4, 4, 2, 2 }, { 4, 32, 128, 256 }, "011 100 1000" },
        { { 4, 4, 2, 2 }, { 4, 16, 128, 256 }, "001 110 1000" },
        { { 4, 1, 2, 2 }, { 4, 99,  16,  32 }, "101 111 1010" },
        { { 4, 1, 2, 2 }, { 4, 99,  99, 198 }, "011 110 1000" },
        { { 4, 4, 2, 2 }, { 4, 16,  64, 200 }, "000 111 1000" },
        { { 4, 4, 1, 2 }, { 4, 16,  77,  77 }, "001 111 1000" },
        { { 4, 4, 1, 2 }, { 4, 16,  77,  64 }, "110 111 1010" },
        { { 4, 4, 2, 2 }, { 8, 32,   4, 128 }, "000 000 0110" },
        { { 4, 4, 2, 2 }, { 16, 4,  64, 128 }, "000 000 0011" },
    };
    struct ggml_tensor t = { .type = GGML_TYPE_F32 };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        memcpy(t.ne, cases[i].ne, sizeof t.ne);
        memcpy(t.nb, cases[i].nb, sizeof t.nb);
        char is[16];
        snprintf(is, sizeof is, "%d%d%d %d%d%d %d%d%d%d", ggml_is_contiguous_0(&t), ggml_is_contiguous_1(&t),
            ggml_is_contiguous_2(&t), ggml_is_contiguous_to_1(&t), ggml_is_contiguous_to_2(&t), ggml_is_contiguous_to_3(&t),
            ggml_is_contiguous_rows(&t), ggml_is_contiguous_channels(&t), ggml_is_permuted(&t), ggml_is_transposed(&t));
        CHECK(!strcmp(is, cases[i].is), "layout %zu: %s, not %s", i, is, cases[i].is);
        CHECK(ggml_is_contiguous(&t) == ggml_is_contiguous_0(&t), "layout %zu", i);
    }
    CHECK(ggml_nbytes(&t) == 4 + 3*16 + 3*4 + 64 + 128, "bytes from first to last: %zu", ggml_nbytes(&t));
    CHECK(!ggml_is_contiguously_allocated(&(struct ggml_tensor) { .ne = { 4, 4, 1, 1 }, .nb = { 4, 32, 128, 128 } }), "gaps");
    CHECK(ggml_is_contiguously_allocated(&(struct ggml_tensor) { .ne = { 4, 4, 1, 1 }, .nb = { 16, 4, 64, 64 } }), "transposed");
    const struct ggml_tensor q = { .type = GGML_TYPE_Q8_0, .ne = { 64, 3, 1, 1 }, .nb = { 34, 100, 300, 300 } };
    CHECK(ggml_nbytes(&q) == 68 + 200, "rows of blocks with gaps: %zu", ggml_nbytes(&q));
    const struct ggml_tensor none = { .ne = { 4, 0, 1, 1 }, .nb = { 4, 16, 0, 0 } }, one = { .ne = { 1, 1, 1, 1 } };
    const struct ggml_tensor v = { .ne = { 2, 1, 1, 1 } }, m = { .ne = { 4, 6, 1, 1 } }, c = { .ne = { 4, 6, 2, 1 } };
    CHECK(ggml_is_empty(&none) && !ggml_is_empty(&one) && ggml_nbytes(&none) == 0, "empty");
    CHECK(ggml_is_scalar(&one) && !ggml_is_scalar(&v) && ggml_is_vector(&v) && !ggml_is_vector(&m) && ggml_is_matrix(&m) &&
          !ggml_is_matrix(&c) && ggml_is_3d(&c), "how many dimensions");
    CHECK(ggml_n_dims(&one) == 1 && ggml_n_dims(&m) == 2 && ggml_n_dims(&c) == 3, "n_dims");
    CHECK(ggml_can_repeat(&v, &m) && !ggml_can_repeat(&m, &v) && ggml_can_repeat(&one, &c) && ggml_can_repeat(&one, &none) &&
          !ggml_can_repeat(&none, &one) && ggml_can_repeat(&none, &none), "repeat");
    CHECK(ggml_nelements(&c) == 48 && ggml_nrows(&c) == 12, "counts");
}

static void tables(void) {
    CHECK(!strcmp(ggml_type_name(GGML_TYPE_Q4_K), "q4_K") && !strcmp(ggml_type_name((enum ggml_type) 4), "DEPRECATED"), "names");
    CHECK(ggml_blck_size((enum ggml_type) 4) == 0 && ggml_row_size((enum ggml_type) 4, 32) == 0 &&
          ggml_type_size((enum ggml_type) 250) == 0 && ggml_type_name((enum ggml_type) -1), "types that do not exist");
    CHECK(ggml_row_size(GGML_TYPE_Q6_K, 512) == 420 && ggml_type_sizef(GGML_TYPE_Q4_0) == 18.0/32, "sizes");
    CHECK(ggml_row_size(GGML_TYPE_F32, INT64_MAX) == 0 && ggml_row_size(GGML_TYPE_F32, -1) == 0, "rows that do not fit");
    int quantized = 0, named = 0;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const struct ggml_type_traits *t = ggml_get_type_traits((enum ggml_type) i);
        quantized += ggml_is_quantized((enum ggml_type) i);
        CHECK(t->blck_size == ggml_blck_size((enum ggml_type) i) && t->type_name, "type %d", i);
    }
    CHECK(quantized == 27, "%d block formats", quantized);
    static const enum ggml_type no_float[] = { GGML_TYPE_F32, GGML_TYPE_Q8_1, GGML_TYPE_Q8_K, GGML_TYPE_I8, GGML_TYPE_I16,
                                               GGML_TYPE_I32, GGML_TYPE_I64, GGML_TYPE_F64 };
    for (size_t i = 0; i < sizeof no_float/sizeof *no_float; i++)
        CHECK(!ggml_get_type_traits(no_float[i])->to_float, "%s has no to_float", ggml_type_name(no_float[i]));
    static const enum ggml_type both[] = { GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
        GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K };
    for (size_t i = 0; i < sizeof both/sizeof *both; i++)
        CHECK(ggml_get_type_traits(both[i])->to_float && ggml_get_type_traits(both[i])->from_float_ref, "%s is converted",
            ggml_type_name(both[i]));
    CHECK(!ggml_get_type_traits(GGML_TYPE_Q8_K)->from_float_ref, "q8_K has no reference quantiser");
    CHECK(ggml_ftype_to_ggml_type(GGML_FTYPE_ALL_F32) == GGML_TYPE_F32 &&
          ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q4_K) == GGML_TYPE_Q4_K &&
          ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q4_1_SOME_F16) == GGML_TYPE_COUNT &&
          ggml_ftype_to_ggml_type(GGML_FTYPE_UNKNOWN) == GGML_TYPE_COUNT &&
          ggml_ftype_to_ggml_type((enum ggml_ftype) 1000) == GGML_TYPE_COUNT, "file types");
    for (int i = 0; i < GGML_OP_COUNT; i++) named += ggml_op_name((enum ggml_op) i) && ggml_op_symbol((enum ggml_op) i);
    for (int i = 0; i < GGML_UNARY_OP_COUNT; i++) named += ggml_unary_op_name((enum ggml_unary_op) i) != NULL;
    for (int i = 0; i < GGML_GLU_OP_COUNT; i++) named += ggml_glu_op_name((enum ggml_glu_op) i) != NULL;
    CHECK(named == GGML_OP_COUNT + GGML_UNARY_OP_COUNT + GGML_GLU_OP_COUNT, "every op has a name");
    static const char *const in_place[] = { "FILL", "SCALE", "DIAG_MASK_ZERO", "DIAG_MASK_INF", "ADD", "ADD_ID", "ADD1", "SUB",
        "MUL", "DIV", "SQR", "SQRT", "LOG", "UNARY", "ROPE", "ROPE_BACK", "SILU_BACK", "RMS_NORM", "RMS_NORM_BACK", "SOFT_MAX",
        "SOFT_MAX_BACK", "CLAMP" };
    int n = 0;
    for (int i = 0; i < GGML_OP_COUNT; i++) n += ggml_op_can_inplace((enum ggml_op) i);
    CHECK(n == (int) (sizeof in_place/sizeof *in_place), "%d ops in place", n);
    for (int i = 0; i < GGML_OP_COUNT; i++)
        for (size_t k = 0; k < sizeof in_place/sizeof *in_place; k++)
            if (!strcmp(ggml_op_name((enum ggml_op) i), in_place[k])) CHECK(ggml_op_can_inplace((enum ggml_op) i), "%s", in_place[k]);
    const struct ggml_tensor gelu = { .op = GGML_OP_UNARY, .op_params = { GGML_UNARY_OP_GELU } };
    const struct ggml_tensor swiglu = { .op = GGML_OP_GLU, .op_params = { GGML_GLU_OP_SWIGLU } };
    CHECK(!strcmp(ggml_op_desc(&gelu), "GELU") && !strcmp(ggml_op_desc(&swiglu), "SWIGLU"), "descriptions");
    CHECK(!strcmp(ggml_version(), "0.25.3"), "version");
}

static void halves(void) {
    static const struct { float f; uint16_t h; } cases[] = {
        { 65519.99f, 0x7bff }, { 65520.0f, 0x7c00 }, { 5.9604645e-8f, 0x0001 }, { 2.9802322e-8f, 0x0000 },
        { 1.00048828125f, 0x3c00 }, { 1.00146484375f, 0x3c02 }, { -2.0f, 0xc000 }, { 0.0f, 0 },
    };
    static const struct { uint32_t f; uint16_t h; } brain[] = { { 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 }, { 0x7f7fffff, 0x7f80 } };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        ggml_fp16_t row;
        ggml_fp32_to_fp16_row(&cases[i].f, &row, 1);
        CHECK(ggml_fp32_to_fp16(cases[i].f) == cases[i].h && row == cases[i].h, "%g: %04x", cases[i].f, row);
    }
    for (size_t i = 0; i < 3; i++) {
        float f;
        memcpy(&f, &brain[i].f, 4);
        ggml_bf16_t row;
        ggml_fp32_to_bf16_row(&f, &row, 1);
        CHECK(ggml_fp32_to_bf16(f).bits == brain[i].h && row.bits == brain[i].h, "%08x: %04x", brain[i].f, row.bits);
    }
    for (int h = 0; h < 65536; h++) {
        const ggml_fp16_t half = (ggml_fp16_t) h;
        const ggml_bf16_t b = { (uint16_t) h };
        float f, g;
        ggml_fp16_to_fp32_row(&half, &f, 1);
        ggml_bf16_to_fp32_row(&b, &g, 1);
        const int e = h >> 10 & 31, m = h & 1023;
        const double exact = (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24))*(h >> 15 ? -1 : 1);
        if (e < 31) CHECK((double) f == exact, "half %04x is %g", h, exact);
        else        CHECK(m ? isnan(f) : isinf(f), "half %04x", h);
        if (!isnan(f)) CHECK(ggml_fp32_to_fp16(f) == half, "half %04x comes back", h);
        else           CHECK(isnan(ggml_fp16_to_fp32(ggml_fp32_to_fp16(f))), "a NaN stays one");
        if (!isnan(g)) CHECK(ggml_fp32_to_bf16(g).bits == h, "brain half %04x comes back", h);
        else           CHECK(ggml_fp32_to_bf16(g).bits & 0x40, "a quiet NaN");
    }
}

static void the_rest(void) {
    ggml_log_callback log;
    void *user_data;
    ggml_log_get(&log, &user_data);
    CHECK(log == count_lines && !user_data, "the log callback is kept");
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 2] = '\n';
    longer[sizeof longer - 1] = 0;
    log_lines = 0;
    LOG_INFO("%s", longer);
    CHECK(log_lines == 1, "a long line is logged whole");
    ggml_time_init();
    const int64_t t0 = ggml_time_us(), ms = ggml_time_ms();
    CHECK(t0 > 0 && ggml_time_us() >= t0 && ms <= t0/1000 + 1, "the clock runs");
    CHECK(ggml_cycles() >= 0 && ggml_cycles_per_ms() > 0, "cycles");
    struct ggml_threadpool_params p = ggml_threadpool_params_default(3), q = p;
    CHECK(p.n_threads == 3 && p.poll == 50 && !p.strict_cpu && !p.paused && p.prio == GGML_SCHED_PRIO_NORMAL && !p.cpumask[0],
        "defaults");
    q.paused = true;
    CHECK(ggml_threadpool_params_match(&p, &q), "paused does not matter");
    q.cpumask[511] = true;
    CHECK(!ggml_threadpool_params_match(&p, &q), "the mask does");
    CHECK(strlen(ggml_status_to_string(GGML_STATUS_ALLOC_FAILED)) && strlen(ggml_status_to_string((enum ggml_status) 77)),
        "a text for any status");
    ggml_guid a = { 1 }, b = { 1 };
    CHECK(ggml_guid_matches(&a, &b), "equal ids");
    b[15] = 1;
    CHECK(!ggml_guid_matches(&a, &b), "other ids");
    void *m = ggml_aligned_malloc(100);
    CHECK(m && (uintptr_t) m%64 == 0 && !ggml_aligned_malloc(SIZE_MAX), "aligned memory");
    ggml_aligned_free(m, 100);
}

int main(void) {
    ggml_log_set(count_lines, NULL);
    sizes();
    running_out();
    shapes();
    views();
    names();
    predicates();
    tables();
    halves();
    the_rest();
    return DONE();
}
