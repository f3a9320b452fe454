/* Any bytes give a context or one line of error, from memory, a file and a callback alike, quickly and in little memory.
 * With a directory as argument: writes the files of the table there (the corpus of the fuzz target). */

#include "gguf_cases.h"
#include "quant.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char   said[4096];
static int    said_errors;
static void hear(enum ggml_log_level level, const char *text, void *user) {
    (void) user;
    if (level == GGML_LOG_LEVEL_ERROR) said_errors++;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s", text);
}

static double seconds(void) {                                   /* of this process, whatever else runs */
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}
static long peak_kib(void) { struct rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_maxrss; }

struct remote { const uint8_t *p; size_t n; uint64_t last; int bad; };
static size_t remote_read(void *user, void *out, uint64_t offset, size_t n) {
    struct remote *m = user;
    if (offset < m->last || n > 7 || offset + n > m->n) m->bad++;       /* in order, in pieces, never beyond the declared end */
    m->last = offset;
    if (offset > m->n) return 0;
    if (n > m->n - offset) n = (size_t) (m->n - offset);
    memcpy(out, m->p + offset, n);
    return n;
}

enum source { BUFFER, FILE_AT_0, FILE_AT_100, CALLBACK, SOURCES };

/* *start: where the GGUF begins in its source */
static struct gguf_context *load_from(enum source source, const struct bytes *b, struct gguf_init_params params, size_t *start) {
    struct gguf_context *g = NULL;
    *start = source == FILE_AT_100 ? 100 : 0;
    if (source == BUFFER) return gguf_init_from_buffer(b->p, b->n, params);
    if (source == CALLBACK) {
        struct remote m = { .p = b->p, .n = b->n };
        g = gguf_init_from_callback(remote_read, &m, 7, b->n, params);
        CHECK(m.bad == 0, "%d callbacks out of order or out of range", m.bad);
        return g;
    }
    FILE *f = tmpfile();
    if (!f) return NULL;
    for (size_t i = 0; i < *start; i++) fputc('#', f);
    fwrite(b->p, 1, b->n, f);
    fseek(f, (long) *start, SEEK_SET);
    g = gguf_init_from_file_ptr(f, params);
    fclose(f);
    return g;
}

static void check_loaded(const struct gguf_case *c, const struct gguf_context *g, struct ggml_context *ggml, bool no_alloc,
                         const struct bytes *b, size_t start) {
    struct ggml_tensor *t = ggml_get_first_tensor(ggml);
    if (!no_alloc) {
        CHECK(t && t->type == GGML_TYPE_I8 && !strcmp(t->name, "GGUF tensor data binary blob"), "%s", c->name);
        t = ggml_get_next_tensor(ggml, t);
    }
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++, t = ggml_get_next_tensor(ggml, t)) {
        const int64_t *ne = gguf_get_tensor_ne(g, i);
        if (!t) break;
        CHECK(!strcmp(t->name, gguf_get_tensor_name(g, i)) && !memcmp(t->ne, ne, sizeof t->ne), "%s", c->name);
        CHECK(!strcmp(t->name, c->t[i].name) && t->type == (enum ggml_type) c->t[i].type, "%s", c->name);
        CHECK(gguf_get_tensor_size(g, i) == ggml_nbytes(t), "%s", c->name);
        CHECK(gguf_find_tensor(g, t->name) == i, "%s", c->name);
        const size_t at = gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i) - start;
        if (no_alloc) CHECK(!t->data, "%s", c->name);
        else if (ggml_nbytes(t)) CHECK(!memcmp(t->data, b->p + at, ggml_nbytes(t)), "%s", c->name);
    }
    CHECK(!t, "%s: more tensors than infos", c->name);
    CHECK(ggml_get_no_alloc(ggml) == no_alloc, "%s", c->name);
}

/* What no 32-bit machine can hold is refused as such before the data are looked at. */
static bool too_large_here(const struct gguf_case *c) {
    return (uint64_t) c->t[0].ne[0] > SIZE_MAX;
}

static void check_case(const struct gguf_case *c, enum source source, bool want_tensors, bool no_alloc) {
    struct ggml_context *const untouched = (struct ggml_context *) &said, *ggml = untouched;
    struct bytes b = gguf_case_bytes(c, big_endian_here());
    size_t start;
    said[0] = 0, said_errors = 0;
    const double before = seconds();
    struct gguf_context *g = load_from(source, &b, (struct gguf_init_params) { no_alloc, want_tensors ? &ggml : NULL }, &start);
    const double took = seconds() - before;
    const char *says = too_large_here(c) ? "more than memory can hold" : c->says;
    const bool loads = !c->says || (c->metadata_loads && !want_tensors && !too_large_here(c));
    CHECK(!!g == loads, "%s (source %d, tensors %d, no_alloc %d): %s", c->name, (int) source, want_tensors, no_alloc, said);
    CHECK(SANITIZED || took < 0.01 || source != BUFFER, "%s took %.3f s", c->name, took);
    if (!loads) {
        CHECK(said_errors == 1 && strstr(said, says) && strchr(said, '\n') == said + strlen(said) - 1,
            "%s: said \"%s\", expected \"%s\"", c->name, said, says);
        CHECK(ggml == untouched || !ggml, "%s: a context is left", c->name);
    } else if (g) {
        CHECK(said_errors == 0, "%s: %s", c->name, said);
        if (want_tensors) check_loaded(c, g, ggml, no_alloc, &b, start);
    }
    if (g && ggml != untouched && want_tensors) ggml_free(ggml);
    gguf_free(g);
    free(b.p);
}

/* A truncated file never loads with its data, whatever the length, and the error is one line. */
static void check_truncated(void) {
    struct gguf_case c = { "truncated", NULL, .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\10\0\0\0" "\2\0\0\0\0\0\0\0"
        "\3\0\0\0\0\0\0\0" "abc" "\0\0\0\0\0\0\0\0") } }, .t = { T_F32(8), { "y", 0, 1, { 5 }, GGML_TYPE_F32, 32 } }, .data = 52 };
    const struct bytes b = gguf_case_bytes(&c, false);
    if (big_endian_here()) return;                              /* raw values */
    for (size_t n = 1; n <= b.n; n++) {
        struct ggml_context *ggml = NULL;
        uint8_t *exact = malloc(n);
        memcpy(exact, b.p, n);
        said_errors = 0;
        struct gguf_context *g = gguf_init_from_buffer(exact, n, (struct gguf_init_params) { false, &ggml });
        CHECK(!!g == (n == b.n) && said_errors == (n < b.n), "%zu of %zu bytes: %d errors", n, b.n, said_errors);
        if (ggml) ggml_free(ggml);
        gguf_free(g);
        free(exact);
    }
    free(b.p);
}

/* 1 000 000 strings of 8 bytes: well under half a second. 50 000 keys and as many look-ups: not quadratic. */
static void check_large(void) {
    struct bytes b = { .big = big_endian_here() };
    bytes_put(&b, "GGUF", 4);
    bytes_num(&b, 3, 4), bytes_num(&b, 0, 8), bytes_num(&b, 50001, 8);
    bytes_text(&b, "tokens", 6);
    bytes_num(&b, GGUF_TYPE_ARRAY, 4), bytes_num(&b, GGUF_TYPE_STRING, 4), bytes_num(&b, 1000000, 8);
    char text[32];
    for (int i = 0; i < 1000000; i++) bytes_text(&b, text, (size_t) snprintf(text, sizeof text, "%08d", i));
    for (int i = 0; i < 50000; i++) {
        bytes_text(&b, text, (size_t) snprintf(text, sizeof text, "key.%d", i));
        bytes_num(&b, GGUF_TYPE_INT32, 4), bytes_num(&b, (uint64_t) i, 4);
    }
    const double before = seconds();
    struct gguf_context *g = gguf_init_from_buffer(b.p, b.n, (struct gguf_init_params) { true, NULL });
    const double took = seconds() - before;
    CHECK(g && (SANITIZED || took < 0.5), "loading took %.3f s: %s", took, said);
    fprintf(stderr, "1 000 000 strings and 50 000 keys: %.3f s\n", took);
    for (int i = 0; g && i < 50000; i++) {
        snprintf(text, sizeof text, "key.%d", i);
        const int64_t id = gguf_find_key(g, text);
        if (id != i + 1 || gguf_get_val_i32(g, id) != i) { CHECK(false, "%s is key %" PRId64, text, id); break; }
    }
    if (g) {
        CHECK(SANITIZED || seconds() - before < 1.0, "50 000 look-ups: %.3f s", seconds() - before);
        CHECK(gguf_get_arr_n(g, 0) == 1000000 && !strcmp(gguf_get_arr_str(g, 0, 999999), "00999999"), "last string");
    }
    gguf_free(g);
    free(b.p);
}

/* The other byte order: with its data the file loads and holds the same values; in place it is refused by name. */
static void check_byte_order(void) {
    const struct gguf_case c = { "order", NULL, .kv = { { "k", .type = GGUF_TYPE_UINT32, .value = 0x01020304 },
        { "f", .type = GGUF_TYPE_FLOAT64, .value = 0x3ff8000000000000 } },
        .t = { T_F32(8), { "q", 0, 1, { 32 }, GGML_TYPE_Q4_0, 32 } }, .data = 50 };
    struct bytes little = gguf_case_bytes(&c, false), big = gguf_case_bytes(&c, true);
    const bool little_here = !big_endian_here();
    struct bytes *native = little_here ? &little : &big, *other = little_here ? &big : &little;
    uint8_t *data = other->p + other->n - 50;
    for (int i = 0; i < 32; i += 4) for (int j = 0; j < 2; j++) {
        const uint8_t byte = data[i + j];
        data[i + j] = data[i + 3 - j], data[i + 3 - j] = byte;
    }
    const uint8_t byte = data[32];
    data[32] = data[33], data[33] = byte;                       /* the block's half scale; its nibbles are bytes */

    struct ggml_context *a = NULL, *b = NULL;
    struct gguf_context *g = gguf_init_from_buffer(native->p, native->n, (struct gguf_init_params) { false, &a });
    struct gguf_context *h = gguf_init_from_buffer(other->p, other->n, (struct gguf_init_params) { false, &b });
    CHECK(g && h && a && b, "%s", said);
    if (h && b && a) {
        CHECK(gguf_get_val_u32(h, 0) == 0x01020304 && gguf_get_val_f64(h, 1) == 1.5, "numbers");
        CHECK(!memcmp(ggml_get_first_tensor(a)->data, ggml_get_first_tensor(b)->data, 50), "data");
    }
    if (a) ggml_free(a);
    if (b) ggml_free(b);
    gguf_free(g), gguf_free(h);
    said[0] = 0;
    g = gguf_init_from_buffer(other->p, other->n, (struct gguf_init_params) { true, &a });
    CHECK(!g && strstr(said, "byte order") && strstr(said, little_here ? "little endian" : "big endian"), "%s", said);
    g = gguf_init_from_buffer(other->p, other->n, (struct gguf_init_params) { true, NULL });
    CHECK(g && gguf_get_val_u32(g, 0) == 0x01020304 && gguf_get_tensor_offset(g, 1) == 32, "metadata alone");
    gguf_free(g);
    free(little.p), free(big.p);
}

static void check_sources(void) {
    said[0] = 0;
    const struct gguf_init_params p = { true, NULL };
    CHECK(!gguf_init_from_file("/nonexistent/model.gguf", p) && strstr(said, "/nonexistent/model.gguf"), "%s", said);
    CHECK(!gguf_init_from_file("/", p), "a directory loads");
    CHECK(!gguf_init_from_file("/dev/null", p), "an empty file loads");
    CHECK(!gguf_init_from_file_ptr(NULL, p) && !gguf_init_from_buffer(NULL, 1, p) && !gguf_init_from_buffer("G", 0, p), "nothing loads");
    CHECK(!gguf_init_from_callback(NULL, NULL, 0, 100, p), "no callback loads");
    struct bytes b = gguf_case_bytes(&gguf_cases[0], false);
    struct remote m = { .p = b.p, .n = b.n };
    CHECK(!gguf_init_from_callback(remote_read, &m, 7, 0, p) && m.last == 0, "an input of declared length 0 loads");
    free(b.p);
}

static int write_corpus(const char *dir) {
    for (int i = 0; i < N_GGUF_CASES; i++) {
        char path[512];
        struct bytes b = gguf_case_bytes(&gguf_cases[i], false);
        snprintf(path, sizeof path, "%s/%02d", dir, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(b.p, 1, b.n, f) != b.n || fclose(f)) return 1;
        free(b.p);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return write_corpus(argv[1]);
    ggml_log_set(hear, NULL);
    for (int i = 0; i < N_GGUF_CASES; i++)
        for (enum source s = BUFFER; s < SOURCES && !(big_endian_here() && gguf_cases[i].kv[0].raw_n); s++)
            for (int k = 0; k < 3; k++) check_case(&gguf_cases[i], s, k > 0, k > 1);
    check_truncated();
    check_byte_order();
    check_sources();
    CHECK(SANITIZED || peak_kib() < 16*1024, "peak %ld KiB", peak_kib());
    check_large();
    return DONE();
}
