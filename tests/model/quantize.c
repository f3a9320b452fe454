/* Quantising files: the types of the mixtures, rows that are no whole blocks, refusals that leave nothing behind, the same bytes
 * from any number of threads, small memory, and failing allocations. */

#define _XOPEN_SOURCE 700

#include "tiny.h"

#include "arenite.h"
#include "interpose.h"
#include "mixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char out_path[96], other_path[96];

static struct llama_model_quantize_params params(enum llama_ftype ftype) {
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    p.ftype = ftype;
    p.nthread = 2;
    return p;
}

static bool exists(const char *path) { return !access(path, F_OK); }

static bool same_files(const char *a, const char *b) {
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    int c = 0, d = 0;
    while (f && g && c == d && c != EOF) c = getc(f), d = getc(g);
    const bool same = f && g && c == d;
    if (f) fclose(f);
    if (g) fclose(g);
    return same;
}

/* A file of matrices with 4 rows each: name, columns. */
struct matrix { const char *name; int64_t columns; };

static void write_matrices(const char *path, enum ggml_type type, const struct matrix *m, size_t n, float scale) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 16 << 20, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    uint64_t seed = 7;
    gguf_set_val_str(g, "general.architecture", "unheard-of");
    for (size_t i = 0; i < n; i++) {
        struct ggml_tensor *t = ggml_new_tensor_2d(ctx, type, m[i].columns, 4);
        ggml_set_name(t, m[i].name);
        for (int64_t k = 0; k < ggml_nelements(t); k++) {
            const float v = scale*rnd_f32(&seed);
            if (type == GGML_TYPE_F16) ((ggml_fp16_t *) t->data)[k] = ggml_fp32_to_fp16(v);
            else                       ((float *) t->data)[k] = v;
        }
        gguf_add_tensor(g, t);
    }
    CHECK(gguf_write_to_file(g, path, false), "%s", path);
    gguf_free(g);
    ggml_free(ctx);
}

static enum ggml_type type_in(const char *path, const char *name) {
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params) { .no_alloc = true });
    const int64_t i = g ? gguf_find_tensor(g, name) : -1;
    const enum ggml_type type = i < 0 ? GGML_TYPE_COUNT : gguf_get_tensor_type(g, i);
    gguf_free(g);
    return type;
}

/* ---- rows that are no whole blocks ---------------------------------------------------------------------------------------------- */

static const struct matrix odd[] = { { "blk.0.a.weight", 576 }, { "blk.0.b.weight", 2688 }, { "blk.0.c.weight", 172 }, { "blk.0.d.weight", 14 },
                                     { "blk.0.e.weight", 512 } };
static const enum ggml_type odd_types[] = { GGML_TYPE_Q5_0, GGML_TYPE_Q5_0, GGML_TYPE_F16, GGML_TYPE_F16, GGML_TYPE_Q4_K };
enum { N_ODD = sizeof odd/sizeof *odd };

static bool count_replaced(const struct arn_quantized *q, void *user_data) {
    *(int *) user_data += q->type != q->wanted;
    return true;
}

/* Values of what was written, against those of the source: within a quarter of the largest. */
static void check_values(const char *from, const char *to) {
    struct ggml_context *a = NULL, *b = NULL;
    struct gguf_context *g = gguf_init_from_file(from, (struct gguf_init_params) { .ctx = &a }), *h = gguf_init_from_file(to, (struct gguf_init_params) { .ctx = &b });
    CHECK(g && h, "%s", tiny_log);
    for (size_t i = 0; g && h && i < N_ODD; i++) {
        float y[4*2688];
        const struct ggml_tensor *x = ggml_get_tensor(a, odd[i].name), *q = ggml_get_tensor(b, odd[i].name);
        ggml_get_type_traits(q->type)->to_float(q->data, y, ggml_nelements(q));
        double worst = 0;
        for (int64_t k = 0; k < ggml_nelements(x); k++) worst = fmax(worst, fabs((double) (((const float *) x->data)[k] - y[k])));
        CHECK(worst < 0.25, "%s: off by %g", odd[i].name, worst);
    }
    gguf_free(g), gguf_free(h), ggml_free(a), ggml_free(b);
}

static void test_odd_rows(const char *path) {
    const struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q4_K_M);
    int replaced = 0;
    write_matrices(path, GGML_TYPE_F32, odd, N_ODD, 1);
    tiny_log_clear();
    CHECK(arn_model_quantize(path, out_path, &p, &(struct arn_quantize) { .visit = count_replaced, .user_data = &replaced }), "%s", tiny_log);
    CHECK(replaced == 4 && strstr(tiny_log, "4 of 5 tensors"), "%d: %s", replaced, tiny_log);
    for (size_t i = 0; i < N_ODD; i++) CHECK(type_in(out_path, odd[i].name) == odd_types[i], "%s: %s", odd[i].name, ggml_type_name(type_in(out_path, odd[i].name)));
    check_values(path, out_path);

    tiny_log_clear();
    remove(out_path);
    CHECK(!arn_model_quantize(path, out_path, &p, &(struct arn_quantize) { .strict = true }), "strict");
    CHECK(tiny_errors == 1 && strstr(tiny_log, "blk.0.a.weight") && strstr(tiny_log, "576") && !exists(out_path), "%s", tiny_log);

    /* an override is a wish like others */
    const struct llama_model_tensor_override wishes[] = { { "0\\.[ab]\\.", GGML_TYPE_Q6_K }, { "e.weight$", GGML_TYPE_Q8_0 }, { NULL, GGML_TYPE_F32 } };
    struct llama_model_quantize_params with = p;
    with.tt_overrides = wishes;
    CHECK(llama_model_quantize(path, out_path, &with) == 0, "%s", tiny_log);
    CHECK(type_in(out_path, "blk.0.a.weight") == GGML_TYPE_Q8_0 && type_in(out_path, "blk.0.e.weight") == GGML_TYPE_Q8_0, "overrides");
    static const struct llama_model_tensor_override bad[][2] = { { { "(", GGML_TYPE_Q6_K } }, { { "a", GGML_TYPE_Q8_1 } }, { { "a", GGML_TYPE_I32 } },
                                                                 { { "a", (enum ggml_type) 4 } }, { { "a", GGML_TYPE_COUNT } }, { { "a", (enum ggml_type) -1 } } };
    for (size_t i = 0; i < sizeof bad/sizeof *bad; i++) {
        with.tt_overrides = bad[i];
        tiny_log_clear();
        remove(out_path);
        CHECK(llama_model_quantize(path, out_path, &with) != 0 && tiny_errors == 1 && !exists(out_path), "override %zu: %s", i, tiny_log);
    }
}

/* ---- mixtures: what files of these names have --------------------------------------------------------------------------------------- */

struct expected { enum llama_ftype ftype; const char *name; enum ggml_type type; };

/* 16 layers, 4 heads on 1 head of keys where `gqa`, `experts` experts. */
static void check_mixture(int gqa, int experts, const struct expected *e, size_t n) {
    struct ggml_tensor t = { .ne = { 256, 256, experts ? experts : 1, 1 } };
    for (size_t i = 0; i < n; i++) {
        const struct mixture m = { .ftype = e[i].ftype, .n_layer = 16, .n_head = 4, .n_head_kv = 4/gqa, .n_expert = experts, .has_output = true };
        snprintf(t.name, sizeof t.name, "%s.weight", e[i].name);
        const enum ggml_type got = mixture_type(&m, &t);
        CHECK(got == e[i].type, "%s, %s: %s", llama_ftype_name(e[i].ftype), t.name, ggml_type_name(got));
    }
}
#define ROW(FTYPE, name, TYPE) { LLAMA_FTYPE_MOSTLY_##FTYPE, name, GGML_TYPE_##TYPE }

static void test_mixtures(void) {
    static const struct expected dense[] = {
        ROW(Q4_K_M, "output", Q6_K), ROW(Q4_K_M, "token_embd", Q4_K), ROW(Q4_K_M, "blk.0.attn_v", Q6_K), ROW(Q4_K_M, "blk.1.ffn_down", Q6_K),
        ROW(Q4_K_M, "blk.2.attn_v", Q4_K), ROW(Q4_K_M, "blk.4.attn_v", Q6_K), ROW(Q4_K_M, "blk.5.ffn_down", Q4_K), ROW(Q4_K_M, "blk.14.ffn_down", Q6_K),
        ROW(Q4_K_M, "blk.3.attn_q", Q4_K), ROW(Q4_K_M, "blk.3.attn_qkv", Q5_K), ROW(Q4_K_S, "blk.3.attn_v", Q5_K), ROW(Q4_K_S, "blk.4.attn_v", Q4_K),
        ROW(Q4_K_S, "blk.1.ffn_down", Q5_K), ROW(Q4_K_S, "blk.2.ffn_down", Q4_K), ROW(Q5_K_M, "blk.15.attn_v", Q6_K), ROW(Q5_K_S, "blk.15.attn_v", Q5_K),
        ROW(Q3_K_M, "blk.0.attn_v", Q5_K), ROW(Q3_K_M, "blk.9.attn_v", Q4_K), ROW(Q3_K_M, "blk.9.attn_output", Q4_K), ROW(Q3_K_M, "blk.0.ffn_down", Q5_K),
        ROW(Q3_K_L, "blk.9.ffn_down", Q5_K), ROW(Q2_K, "blk.9.attn_v", Q3_K), ROW(Q2_K, "blk.9.ffn_down", Q3_K), ROW(Q2_K, "blk.9.ffn_up", Q2_K),
        ROW(Q4_0, "output", Q6_K), ROW(Q8_0, "output", Q8_0), ROW(Q8_0, "blk.0.attn_v", Q8_0), ROW(F16, "output", F16), ROW(IQ4_XS, "blk.0.ffn_down", Q5_K),
        ROW(IQ2_XS, "token_embd", Q2_K), ROW(IQ2_M, "blk.9.attn_output", IQ3_S), ROW(IQ3_XS, "blk.9.ffn_gate", IQ3_XXS), ROW(IQ3_XS, "blk.0.ffn_gate", IQ3_S),
        ROW(TQ1_0, "token_embd", Q4_K),
    };
    static const struct expected shared[] = { ROW(Q2_K, "blk.9.attn_v", Q4_K), ROW(IQ4_XS, "blk.9.attn_v", Q5_K), ROW(IQ2_XS, "blk.9.attn_v", Q4_K) };
    static const struct expected experts[] = { ROW(Q4_K_M, "blk.9.attn_k", Q8_0), ROW(Q4_K_M, "blk.9.attn_output", Q5_K), ROW(Q4_K_M, "blk.0.ffn_down_exps", Q6_K),
        ROW(MXFP4_MOE, "blk.0.ffn_up_exps", MXFP4) };
    check_mixture(1, 0, dense, sizeof dense/sizeof *dense);
    check_mixture(4, 0, shared, sizeof shared/sizeof *shared);
    check_mixture(1, 8, experts, sizeof experts/sizeof *experts);
}

/* ---- whole models -------------------------------------------------------------------------------------------------------------------- */

static struct tiny big_tiny(void) {
    return tiny_new((struct tiny_shape) { .arch = "llama", .n_layer = 4, .n_embd = 256, .n_head = 4, .n_head_kv = 2, .n_ff = 512, .type = GGML_TYPE_F16 });
}

static bool answers(const char *path) {
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 64;
    struct llama_context *ctx = m ? llama_init_from_model(m, p) : NULL;
    llama_token tokens[] = { 1, 70, 260 };
    const bool ok = ctx && llama_decode(ctx, llama_batch_get_one(tokens, 3)) == 0 && isfinite(llama_get_logits_ith(ctx, -1)[0]);
    llama_free(ctx);
    llama_model_free(m);
    return ok;
}

static void test_models(void) {
    static const enum llama_ftype ftypes[] = { LLAMA_FTYPE_ALL_F32, LLAMA_FTYPE_MOSTLY_BF16, LLAMA_FTYPE_MOSTLY_Q4_0, LLAMA_FTYPE_MOSTLY_Q8_0,
        LLAMA_FTYPE_MOSTLY_Q2_K, LLAMA_FTYPE_MOSTLY_Q4_K_M, LLAMA_FTYPE_MOSTLY_Q6_K };
    struct tiny t = big_tiny();
    tiny_write(&t);
    for (size_t i = 0; i < sizeof ftypes/sizeof *ftypes; i++) {
        struct llama_model_quantize_params p = params(ftypes[i]);
        CHECK(llama_model_quantize(t.path, out_path, &p) == 0 && answers(out_path), "%s: %s", llama_ftype_name(ftypes[i]), tiny_log);
        p.nthread = 5;
        p.max_buf_size = 50000;
        CHECK(llama_model_quantize(t.path, other_path, &p) == 0 && same_files(out_path, other_path), "%s: other bytes", llama_ftype_name(ftypes[i]));
        p.allow_requantize = true;                      /* onto itself: the new file takes its name when it is whole */
        CHECK(llama_model_quantize(other_path, other_path, &p) == 0 && same_files(out_path, other_path), "%s, in place: %s", llama_ftype_name(ftypes[i]), tiny_log);
    }
    struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q4_K_M);
    p.prune_layers = (const int32_t[]) { 1, 3, -1 };
    CHECK(llama_model_quantize(t.path, out_path, &p) == 0 && answers(out_path), "two layers less: %s", tiny_log);
    CHECK(type_in(out_path, "blk.1.attn_q.weight") != GGML_TYPE_COUNT && type_in(out_path, "blk.2.attn_q.weight") == GGML_TYPE_COUNT, "layers");
    p.prune_layers = NULL;
    p.only_copy = true;
    CHECK(llama_model_quantize(t.path, out_path, &p) == 0 && type_in(out_path, "blk.1.attn_q.weight") == GGML_TYPE_F16 && answers(out_path), "copy");
    p.only_copy = false;
    p.dry_run = true;
    remove(out_path);
    CHECK(llama_model_quantize(t.path, out_path, &p) == 0 && !exists(out_path), "a dry run writes");
    p.dry_run = false;
    p.output_tensor_type = GGML_TYPE_F16, p.pure = true;
    CHECK(llama_model_quantize(t.path, out_path, &p) == 0 && type_in(out_path, "blk.0.attn_v.weight") == GGML_TYPE_Q4_K &&
          type_in(out_path, "token_embd.weight") == GGML_TYPE_F16, "pure");
    tiny_free(&t);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------------------- */

static void turned_down(const char *in, struct llama_model_quantize_params p, const char *word) {
    remove(out_path);
    tiny_log_clear();
    CHECK(llama_model_quantize(in, out_path, &p) != 0, "%s", word);
    CHECK(tiny_errors > 0 && strstr(tiny_log, word) && !exists(out_path), "wanted '%s': %s", word, tiny_log);
    char part[128];
    snprintf(part, sizeof part, "%s.part", out_path);
    CHECK(!exists(part), "%s: a part is left", word);
}

static void test_refusals(void) {
    struct tiny t = big_tiny();
    struct stat st;
    tiny_write(&t);
    struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q4_K_M);
    turned_down("/nowhere/at/all.gguf", p, "/nowhere");
    turned_down(t.path, params((enum llama_ftype) 99), "99");
    turned_down(t.path, params(LLAMA_FTYPE_MOSTLY_IQ2_XS), "importance");
    static float ones[512];
    for (int i = 0; i < 512; i++) ones[i] = 1;
    p.imatrix = (const struct llama_model_imatrix_data[]) { { "blk.0.attn_q.weight", ones, 3 }, { NULL, NULL, 0 } };
    turned_down(t.path, p, "blk.0.attn_q.weight");
    p.imatrix = NULL;
    CHECK(llama_model_quantize(t.path, other_path, &p) == 0, "%s", tiny_log);
    turned_down(other_path, params(LLAMA_FTYPE_MOSTLY_Q5_K_S), "allowed");
    tiny_log_clear();
    CHECK(llama_model_quantize(t.path, "/nowhere/at/all", &p) != 0 && strstr(tiny_log, "/nowhere"), "%s", tiny_log);

    const struct rlimit before = { RLIM_INFINITY, RLIM_INFINITY };      /* a disk that fills up */
    setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 100000, RLIM_INFINITY });
    turned_down(t.path, p, out_path);
    setrlimit(RLIMIT_FSIZE, &before);

    CHECK(!stat(t.path, &st) && !truncate(t.path, st.st_size - 1000), "truncate");
    turned_down(t.path, p, "left (at byte");
    write_matrices(t.path, GGML_TYPE_F32, odd, N_ODD, INFINITY);
    turned_down(t.path, p, "not finite");
    tiny_free(&t);
}

/* Part `no` of 2: `name` and a tensor of its own. */
static void write_half(const char *path, int no, const char *name, float value) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 20, NULL, false });
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_u16(g, "split.no", (uint16_t) no);
    gguf_set_val_u16(g, "split.count", 2);
    gguf_set_val_i32(g, "split.tensors.count", 4);
    for (int i = 0; i < 2; i++) {
        struct ggml_tensor *t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 64, 2);
        if (i) ggml_format_name(t, "own.%d.weight", no);
        else   ggml_set_name(t, name);
        for (int k = 0; k < 128; k++) ((float *) t->data)[k] = value;
        gguf_add_tensor(g, t);
    }
    CHECK(gguf_write_to_file(g, path, false), "%s", path);
    gguf_free(g);
    ggml_free(ctx);
}

/* Names that meet in the new file: of two files of the source, or written in two ways. */
static void test_names(void) {
    static const struct matrix twice[] = { { "blk.0.a.weight", 64 }, { "blk.00.a.weight", 64 } };
    struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q8_0);
    char halves[2][96], new_halves[2][112];
    for (int i = 0; i < 2; i++) {
        snprintf(halves[i], sizeof halves[i], "/tmp/quantize%d-0000%d-of-00002.gguf", (int) getpid(), i + 1);
        snprintf(new_halves[i], sizeof new_halves[i], "%.*s-0000%d-of-00002.gguf", (int) (strlen(out_path) - strlen(".gguf")), out_path, i + 1);
    }
    write_matrices(other_path, GGML_TYPE_F32, twice, 2, 1.0f);
    turned_down(other_path, p, "two tensors would have the name blk.0.a.weight");
    write_half(halves[0], 0, "first.weight", 1);
    write_half(halves[1], 1, "second.weight", 1);
    CHECK(llama_model_quantize(halves[0], out_path, &p) == 0 && type_in(out_path, "second.weight") == GGML_TYPE_Q8_0, "%s", tiny_log);
    write_half(halves[1], 1, "first.weight", 1);
    turned_down(halves[0], p, "two tensors would have the name first.weight");

    p.keep_split = true;                                /* both files or neither */
    for (int ok = 1; ok >= 0; ok--) {
        tiny_log_clear();
        remove(new_halves[0]), remove(new_halves[1]);
        write_half(halves[1], 1, "second.weight", ok ? 1 : INFINITY);
        CHECK(llama_model_quantize(halves[0], out_path, &p) == !ok && exists(new_halves[0]) == ok && exists(new_halves[1]) == ok, "kept split, %d: %s", ok, tiny_log);
    }
    for (int i = 0; i < 2; i++) remove(halves[i]), remove(new_halves[i]);
}

/* What is no regular file is written as it is, and stays: here a link to a device. */
static void test_special(void) {
    static const struct matrix one[] = { { "a.weight", 64 } };
    const struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q8_0);
    struct stat st;
    char part[128];
    snprintf(part, sizeof part, "%s.part", out_path);
    write_matrices(other_path, GGML_TYPE_F32, one, 1, 1.0f);
    remove(out_path);
    CHECK(!symlink("/dev/null", out_path) && llama_model_quantize(other_path, out_path, &p) == 0, "%s", tiny_log);
    CHECK(!lstat(out_path, &st) && S_ISLNK(st.st_mode) && !exists(part), "the link is gone");
    remove(out_path);
    tiny_log_clear();
    CHECK(!symlink("/dev/full", out_path) && llama_model_quantize(other_path, out_path, &p) != 0 && tiny_errors == 1, "a full device: %s", tiny_log);
    CHECK(!lstat(out_path, &st) && S_ISLNK(st.st_mode), "the link is gone");
    remove(out_path);
    tiny_log_clear();
    CHECK(llama_model_quantize(other_path, "/tmp", &p) != 0 && strstr(tiny_log, "/tmp: "), "a folder: %s", tiny_log);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------------- */

static double peak_bytes(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return 1024*(double) u.ru_maxrss;
}

/* 64 MiB of weights, which the file has as a hole. */
static void test_streams(const char *path) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 16, NULL, true });
    struct gguf_context *g = gguf_init_empty();
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 4096, 8192);
    ggml_set_name(t, "large.weight");
    gguf_add_tensor(g, t);
    CHECK(gguf_write_to_file(g, path, true) && !truncate(path, (off_t) (gguf_get_meta_size(g) + ggml_nbytes(t))), "a hole");
    gguf_free(g);
    ggml_free(ctx);
    const double before = peak_bytes();
    const struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q8_0);
    CHECK(llama_model_quantize(path, out_path, &p) == 0 && type_in(out_path, "large.weight") == GGML_TYPE_Q8_0, "%s", tiny_log);
    CHECK(SANITIZED || peak_bytes() - before < 30e6, "%.0f bytes more", peak_bytes() - before);
}

static void test_failures(const char *path) {
    static const struct matrix few[] = { { "a.weight", 256 }, { "output.weight", 64 } };
    struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q4_K_M);
    p.nthread = 1;
    p.tt_overrides = (const struct llama_model_tensor_override[]) { { "a", GGML_TYPE_Q4_K }, { NULL, GGML_TYPE_F32 } };
    write_matrices(path, GGML_TYPE_F32, few, 2, 1);
    int n = 1;
    for (bool reached = INTERPOSED; reached && n < 1000; n++) {
        tiny_log_clear();
        remove(out_path);
        const long before = held;
        fail_at = n;
        const bool ok = llama_model_quantize(path, out_path, &p) == 0;
        reached = fail_at == 0;
        fail_at = 0;
        CHECK(held == before, "allocation %d: %ld blocks are left", n, held - before);
        CHECK(ok ? exists(out_path) : tiny_errors > 0 && !exists(out_path), "allocation %d: %s", n, tiny_log);
    }
    CHECK(n < 1000, "no end");
}

/* sum of weight*(y - x)^2 of a matrix of out_path, and whether its bytes are those of ggml_quantize_chunk with `importance` */
static double weighted_error(const char *name, const struct ggml_tensor *x, const float *weight, const float *importance) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(out_path, (struct gguf_init_params) { false, &ctx });
    const struct ggml_tensor *t = ggml_get_tensor(ctx, name);
    static float y[1024];
    static uint8_t bytes[1024];
    double error = 0;
    CHECK(t && t->type == GGML_TYPE_Q4_0, "%s", name);
    if (t) {
        ggml_get_type_traits(t->type)->to_float(t->data, y, 1024);
        ggml_quantize_chunk(t->type, x->data, bytes, 0, 4, 256, importance);
        CHECK(!memcmp(bytes, t->data, ggml_nbytes(t)), "%s: bytes", name);
    }
    for (int i = 0; i < 1024; i++) {
        const double d = (double) y[i] - (double) ((const float *) x->data)[i];
        error += (double) weight[i % 256]*d*d;
    }
    gguf_free(g), ggml_free(ctx);
    return error;
}
/* Importance of one matrix changes that one alone, and lowers its weighted error. */
static void test_importance(void) {
    static const struct matrix matrices[] = { { "blk.0.attn_q.weight", 256 }, { "blk.0.attn_k.weight", 256 } };
    static float weight[256];
    for (int i = 0; i < 256; i++) weight[i] = i % 7 == 0 ? 50.0f : 0.1f;
    write_matrices(other_path, GGML_TYPE_F32, matrices, 2, 1.0f);
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(other_path, (struct gguf_init_params) { false, &ctx });
    const struct ggml_tensor *q = ggml_get_tensor(ctx, matrices[0].name), *k = ggml_get_tensor(ctx, matrices[1].name);
    struct llama_model_quantize_params p = params(LLAMA_FTYPE_MOSTLY_Q4_0);
    double error[2];
    for (int with = 0; with < 2 && q && k; with++) {
        p.imatrix = with ? (const struct llama_model_imatrix_data[]) { { matrices[0].name, weight, 256 }, { NULL, NULL, 0 } } : NULL;
        CHECK(llama_model_quantize(other_path, out_path, &p) == 0, "%s", tiny_log);
        error[with] = weighted_error(matrices[0].name, q, weight, with ? weight : NULL);
        weighted_error(matrices[1].name, k, weight, NULL);
    }
    CHECK(q && k && error[1] < 0.7*error[0], "weighted error %g, without importance %g", error[1], error[0]);
    gguf_free(g), ggml_free(ctx);
}

int main(void) {
    char path[96];
    llama_log_set(tiny_catch, NULL);
    interpose_used();
    signal(SIGXFSZ, SIG_IGN);
    snprintf(path,       sizeof path,       "/tmp/quantize-%d-in.gguf",    (int) getpid());
    snprintf(out_path,   sizeof out_path,   "/tmp/quantize-%d-out.gguf",   (int) getpid());
    snprintf(other_path, sizeof other_path, "/tmp/quantize-%d-other.gguf", (int) getpid());
    test_streams(path);                 /* first: the peak of memory is the process's */
    test_mixtures();
    test_odd_rows(path);
    test_models();
    test_importance();
    test_refusals();
    test_names();
    test_special();
    test_failures(path);
    remove(path), remove(out_path), remove(other_path);
    return DONE();
}
