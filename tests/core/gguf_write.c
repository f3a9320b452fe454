/* What is set is what is written is what is read: every type of value, tensors, alignment, files above 4 GiB, full disks.
 * Wrong calls of the program stop with a message. */

#include "gguf_cases.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct gguf_init_params metadata = { true, NULL };

static void no_log(enum ggml_log_level level, const char *text, void *user) { (void) level, (void) text, (void) user; }

static void temporary(char *path, size_t n, const char *name) {
    const char *dir = getenv("TMPDIR");
    snprintf(path, n, "%s/arenite-%ld-%s.gguf", dir ? dir : "/tmp", (long) getpid(), name);
}

static uint8_t *read_all(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    struct stat s;
    *n = 0;
    if (!f || fstat(fileno(f), &s)) return NULL;
    uint8_t *p = malloc((size_t) s.st_size + 1);
    *n = fread(p, 1, (size_t) s.st_size, f);
    fclose(f);
    return p;
}

static struct gguf_context *every_value(void) {
    struct gguf_context *g = gguf_init_empty();
    const bool     bools[3]  = { true, false, true };
    const char    *texts[4]  = { "one", "", "drei \xc3\xa4", "4" };
    const double   f64s[2]   = { 1e300, -0.0 };
    gguf_set_val_u8  (g, "u8",  255);
    gguf_set_val_i8  (g, "i8",  -128);
    gguf_set_val_u16 (g, "u16", 65535);
    gguf_set_val_i16 (g, "i16", -32768);
    gguf_set_val_u32 (g, "u32", 0xffffffffu);
    gguf_set_val_i32 (g, "i32", INT32_MIN);
    gguf_set_val_f32 (g, "f32", 0.1f);
    gguf_set_val_bool(g, "bool", true);
    gguf_set_val_str (g, "str", "text");
    gguf_set_val_str (g, "str.empty", "");
    gguf_set_val_u64 (g, "u64", UINT64_MAX);
    gguf_set_val_i64 (g, "i64", INT64_MIN);
    gguf_set_val_f64 (g, "f64", 0.1);
    gguf_set_arr_data(g, "arr.bool", GGUF_TYPE_BOOL, bools, 3);
    gguf_set_arr_data(g, "arr.f64", GGUF_TYPE_FLOAT64, f64s, 2);
    gguf_set_arr_str (g, "arr.str", texts, 4);
    for (enum gguf_type t = 0; t < GGUF_TYPE_COUNT; t++) {
        char key[32];
        snprintf(key, sizeof key, "empty.%s", gguf_type_name(t));
        if (t == GGUF_TYPE_STRING)     gguf_set_arr_str(g, key, NULL, 0);
        else if (t != GGUF_TYPE_ARRAY) gguf_set_arr_data(g, key, t, NULL, 0);
    }
    return g;
}

static void check_values(const struct gguf_context *g) {
#define AT(key) gguf_find_key(g, key)
    CHECK(gguf_get_n_kv(g) == 28, "%" PRId64, gguf_get_n_kv(g));
    CHECK(gguf_get_val_u8 (g, AT("u8"))  == 255 && gguf_get_val_i8(g, AT("i8")) == -128, "8 bits");
    CHECK(gguf_get_val_u16(g, AT("u16")) == 65535 && gguf_get_val_i16(g, AT("i16")) == -32768, "16 bits");
    CHECK(gguf_get_val_u32(g, AT("u32")) == 0xffffffffu && gguf_get_val_i32(g, AT("i32")) == INT32_MIN, "32 bits");
    CHECK(gguf_get_val_u64(g, AT("u64")) == UINT64_MAX && gguf_get_val_i64(g, AT("i64")) == INT64_MIN, "64 bits");
    CHECK(gguf_get_val_f32(g, AT("f32")) == 0.1f && gguf_get_val_f64(g, AT("f64")) == 0.1, "floats");
    CHECK(gguf_get_val_bool(g, AT("bool")) && *(const int8_t *) gguf_get_val_data(g, AT("bool")) == 1, "bool");
    CHECK(!strcmp(gguf_get_val_str(g, AT("str")), "text") && !*gguf_get_val_str(g, AT("str.empty")), "str");
    CHECK(gguf_get_kv_type(g, AT("arr.bool")) == GGUF_TYPE_ARRAY && gguf_get_arr_type(g, AT("arr.bool")) == GGUF_TYPE_BOOL, "type");
    CHECK(!memcmp(gguf_get_arr_data(g, AT("arr.bool")), "\1\0\1", 3) && gguf_get_arr_n(g, AT("arr.bool")) == 3, "arr.bool");
    CHECK(((const double *) gguf_get_arr_data(g, AT("arr.f64")))[0] == 1e300, "arr.f64");
    CHECK(gguf_get_arr_n(g, AT("arr.str")) == 4 && !strcmp(gguf_get_arr_str(g, AT("arr.str"), 2), "drei \xc3\xa4"), "arr.str");
    CHECK(gguf_get_arr_n(g, AT("u8")) == 1 && gguf_get_arr_n(g, AT("empty.str")) == 0, "counts");
    CHECK(AT("absent") == -1 && AT("") == -1 && !strcmp(gguf_get_key(g, 0), "u8"), "keys");
#undef AT
}

/* read, write, read gives the same bytes; only the metadata, the metadata in memory and the whole file agree */
static void check_round_trip(void) {
    char a[256], b[256];
    temporary(a, sizeof a, "a"), temporary(b, sizeof b, "b");
    struct ggml_context *ggml = ggml_init((struct ggml_init_params) { 1 << 20, NULL, false }), *loaded = NULL;
    struct ggml_tensor *x = ggml_new_tensor_2d(ggml, GGML_TYPE_F32, 5, 3), *q = ggml_new_tensor_1d(ggml, GGML_TYPE_Q8_0, 64);
    struct ggml_tensor *none = ggml_new_tensor_2d(ggml, GGML_TYPE_F16, 4, 0);
    ggml_set_name(x, "x"), ggml_set_name(q, "q"), ggml_set_name(none, "none");
    for (int i = 0; i < 15; i++) ((float *) x->data)[i] = (float) i;
    memset(q->data, 0x5a, ggml_nbytes(q));

    struct gguf_context *g = every_value();
    check_values(g);
    gguf_add_tensor(g, x), gguf_add_tensor(g, none), gguf_add_tensor(g, q);
    CHECK(gguf_get_tensor_offset(g, 1) == 64 && gguf_get_tensor_offset(g, 2) == 64, "offsets");
    CHECK(gguf_write_to_file(g, a, false), "write");
    struct gguf_context *h = gguf_init_from_file(a, (struct gguf_init_params) { false, &loaded });
    CHECK(h && loaded, "read");
    if (h && loaded) {
        check_values(h);
        CHECK(!memcmp(ggml_get_tensor(loaded, "x")->data, x->data, 60), "x");
        CHECK(!memcmp(ggml_get_tensor(loaded, "q")->data, q->data, ggml_nbytes(q)), "q");
        CHECK(ggml_nelements(ggml_get_tensor(loaded, "none")) == 0 && gguf_get_tensor_size(h, 1) == 0, "none");
        for (struct ggml_tensor *t = ggml_get_first_tensor(loaded); t; t = ggml_get_next_tensor(loaded, t))
            if (gguf_find_tensor(h, t->name) >= 0) gguf_set_tensor_data(h, t->name, t->data);
        CHECK(gguf_write_to_file(h, b, false), "write again");
    }
    size_t an, bn;
    uint8_t *ap = read_all(a, &an), *bp = read_all(b, &bn);
    CHECK(an && an == bn && !memcmp(ap, bp, an), "%zu and %zu bytes", an, bn);
    const size_t n = gguf_get_meta_size(g);
    uint8_t *meta = malloc(n);
    gguf_get_meta_data(g, meta);
    CHECK(n < an && n % 32 == 0 && !memcmp(meta, ap, n), "metadata in memory, %zu bytes", n);
    CHECK(gguf_write_to_file(g, b, true), "only metadata");
    free(bp);
    bp = read_all(b, &bn);
    CHECK(bn == n && !memcmp(meta, bp, n), "metadata alone, %zu bytes", bn);
    struct gguf_context *m = gguf_init_from_buffer(meta, n, metadata);
    CHECK(m && gguf_get_n_tensors(m) == 3, "metadata read back");
    if (m) check_values(m);
    gguf_free(m), gguf_free(g), gguf_free(h);
    if (loaded) ggml_free(loaded);
    ggml_free(ggml);
    free(ap), free(bp), free(meta);
    remove(a), remove(b);
}

/* strings with zero bytes survive, though the getters cannot show them */
static void check_zero_bytes(void) {
    const struct gguf_case c = { "zero", .kv = { { "k", .type = GGUF_TYPE_STRING, RAW("\3\0\0\0\0\0\0\0" "a\0b") },
        { "l", .type = GGUF_TYPE_ARRAY, RAW("\10\0\0\0" "\2\0\0\0\0\0\0\0" "\1\0\0\0\0\0\0\0" "\0" "\2\0\0\0\0\0\0\0" "x\0") } } };
    struct bytes b = gguf_case_bytes(&c, false);
    if (big_endian_here()) { free(b.p); return; }               /* raw values */
    struct gguf_context *g = gguf_init_from_buffer(b.p, b.n, metadata), *copy = gguf_init_empty();
    CHECK(g != NULL, "load");
    if (g) {
        gguf_set_kv(copy, g);
        uint8_t *meta = malloc(gguf_get_meta_size(copy));
        gguf_get_meta_data(copy, meta);
        CHECK(gguf_get_meta_size(copy) == b.n && !memcmp(meta, b.p, b.n), "the same bytes");
        CHECK(!strcmp(gguf_get_val_str(g, 0), "a"), "shown up to the zero");
        free(meta);
    }
    gguf_free(g), gguf_free(copy);
    free(b.p);
}

static void check_setters(void) {
    struct gguf_context *g = gguf_init_empty(), *h = gguf_init_empty();
    gguf_set_val_u32(g, "a", 1), gguf_set_val_u32(g, "b", 2), gguf_set_val_str(g, "c", "three");
    gguf_set_val_f32(g, "a", 4.0f);
    CHECK(gguf_find_key(g, "b") == 0 && gguf_find_key(g, "c") == 1 && gguf_find_key(g, "a") == 2, "the new value goes to the end");
    CHECK(gguf_get_n_kv(g) == 3 && gguf_get_val_f32(g, 2) == 4.0f, "value");
    gguf_set_val_str(g, gguf_get_key(g, 1), gguf_get_val_str(g, 1));
    CHECK(!strcmp(gguf_get_val_str(g, gguf_find_key(g, "c")), "three"), "a value set from itself");
    CHECK(gguf_remove_key(g, "b") == 0 && gguf_remove_key(g, "b") == -1 && gguf_find_key(g, "a") == 0, "removal");
    gguf_set_val_u32(h, "a", 9), gguf_set_val_u32(h, "z", 8);
    gguf_set_kv(h, g);
    CHECK(gguf_get_n_kv(h) == 3 && gguf_get_val_f32(h, gguf_find_key(h, "a")) == 4.0f, "copied over");
    gguf_set_kv(g, g);
    CHECK(gguf_get_n_kv(g) == 2, "copied onto itself");
    gguf_free(g), gguf_free(h);
    CHECK(!gguf_type_name(GGUF_TYPE_COUNT) && !strcmp(gguf_type_name(GGUF_TYPE_FLOAT64), "f64"), "type names");
    CHECK(!strcmp(gguf_type_name(GGUF_TYPE_ARRAY), "arr") && !strcmp(gguf_type_name(GGUF_TYPE_BOOL), "bool"), "type names");
    gguf_free(NULL);
}

/* The alignment that is set, copied or removed is the one in force, before tensors and after. */
static void check_alignment(void) {
    struct ggml_context *ggml = ggml_init((struct ggml_init_params) { 1 << 20, NULL, false });
    struct ggml_tensor *x = ggml_new_tensor_1d(ggml, GGML_TYPE_F32, 3), *y = ggml_new_tensor_1d(ggml, GGML_TYPE_F32, 3);
    ggml_set_name(x, "x"), ggml_set_name(y, "y");
    memset(x->data, 1, 12), memset(y->data, 2, 12);
    for (int when = 0; when < 3; when++) {
        char path[256];
        struct gguf_context *g = gguf_init_empty(), *from = gguf_init_empty();
        temporary(path, sizeof path, "alignment");
        if (when == 0) gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, 256);
        gguf_add_tensor(g, x), gguf_add_tensor(g, y);
        CHECK(gguf_get_tensor_offset(g, 1) == (when ? 32u : 256u), "before");
        if (when == 1) gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, 256);
        gguf_set_val_u32(from, GGUF_KEY_GENERAL_ALIGNMENT, 256);
        if (when == 2) gguf_set_kv(g, from);
        CHECK(gguf_get_alignment(g) == 256 && gguf_get_tensor_offset(g, 1) == 256, "when %d", when);
        CHECK(gguf_write_to_file(g, path, false), "write");
        struct ggml_context *loaded = NULL;
        struct gguf_context *h = gguf_init_from_file(path, (struct gguf_init_params) { false, &loaded });
        CHECK(h && gguf_get_alignment(h) == 256 && gguf_get_data_offset(h) % 256 == 0, "read");
        if (loaded) CHECK(!memcmp(ggml_get_tensor(loaded, "y")->data, y->data, 12), "data");
        if (loaded) ggml_free(loaded);
        CHECK(gguf_remove_key(g, GGUF_KEY_GENERAL_ALIGNMENT) == 0 && gguf_get_tensor_offset(g, 1) == 32, "removed");
        gguf_free(g), gguf_free(h), gguf_free(from);
        remove(path);
    }
    struct gguf_context *g = gguf_init_empty();
    gguf_add_tensor(g, x), gguf_add_tensor(g, y);
    gguf_set_tensor_type(g, "x", GGML_TYPE_F64);
    CHECK(gguf_get_tensor_size(g, 0) == 24 && gguf_get_tensor_type(g, 0) == GGML_TYPE_F64 && gguf_get_tensor_offset(g, 1) == 32, "type");
    gguf_free(g);
    ggml_free(ggml);
}

/* A first tensor of 5 GiB (of 3 GiB where 32 bits count bytes) that is a hole in the file, a second one behind it. */
static void check_large_file(void) {
    char path[256];
    temporary(path, sizeof path, "large");
    const uint64_t size = SIZE_MAX > UINT32_MAX ? 5ull << 30 : 3ull << 30;
    struct gguf_case c = { "large", .t = { { "hole", 0, 1, { (int64_t) size }, GGML_TYPE_I8, 0 }, { "x", 0, 1, { 8 }, GGML_TYPE_F32, size } } };
    struct bytes b = gguf_case_bytes(&c, big_endian_here());
    FILE *f = fopen(path, "wb");
    bool made = f && fwrite(b.p, 1, b.n, f) == b.n && fflush(f) == 0 && ftruncate(fileno(f), (off_t) (b.n + size + 32)) == 0
        && pwrite(fileno(f), "01234567890123456789012345678901", 32, (off_t) (b.n + size)) == 32;
    if (f) fclose(f);
    struct ggml_context *ggml = NULL;
    struct gguf_context *g = made ? gguf_init_from_file(path, (struct gguf_init_params) { true, &ggml }) : NULL;
    struct stat s;
    if (!made) fprintf(stderr, "skipped: no file above 4 GiB can be made here\n");
    else {
        CHECK(g != NULL, "load");
        CHECK(stat(path, &s) || s.st_blocks < 100000, "the file is no hole: %lld blocks", (long long) s.st_blocks);
        char got[33] = "";
        f = fopen(path, "rb");
        const size_t at = g ? gguf_get_data_offset(g) + gguf_get_tensor_offset(g, 1) : 0;
        CHECK(f && pread(fileno(f), got, 32, (off_t) at) == 32 && !strcmp(got, "01234567890123456789012345678901"), "at %zu: %s", at, got);
        fclose(f);
        CHECK(truncate(path, (off_t) (b.n + size + 31)) == 0 && !gguf_init_from_file(path, (struct gguf_init_params) { true, &ggml }),
            "one byte short");
    }
    if (g) ggml_free(ggml);
    gguf_free(g);
    free(b.p);
    remove(path);
}

/* 200 MiB go out in pieces: the writer's memory does not grow with them */
static void check_streams(void) {
    const size_t size = 200u << 20;
    struct ggml_context *ggml = ggml_init((struct ggml_init_params) { size + (1 << 20), NULL, false });
    struct ggml_tensor *x = ggml_new_tensor_1d(ggml, GGML_TYPE_I8, (int64_t) size);
    struct gguf_context *g = gguf_init_empty();
    struct rusage before, after;
    memset(x->data, 7, size);
    ggml_set_name(x, "x");
    gguf_add_tensor(g, x);
    getrusage(RUSAGE_SELF, &before);
    CHECK(gguf_write_to_file(g, "/dev/null", false), "write");
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss - before.ru_maxrss < 16*1024, "the writer took %ld KiB", after.ru_maxrss - before.ru_maxrss);
    if (access("/dev/full", W_OK) == 0) CHECK(!gguf_write_to_file(g, "/dev/full", false), "a full disk goes unnoticed");
    if (access("/dev/full", W_OK) == 0) CHECK(!gguf_write_to_file(g, "/dev/full", true), "a full disk goes unnoticed");
    CHECK(!gguf_write_to_file(g, "/nonexistent/x", false), "no such directory");
    gguf_free(g);
    ggml_free(ggml);
}

/* ---- wrong calls --------------------------------------------------------------------------------------------------------- */

static struct gguf_context *w;
static void no_type(void)         { gguf_set_arr_data(w, "k", GGUF_TYPE_STRING, "x", 1); }
static void no_array(void)        { gguf_set_arr_data(w, "k", GGUF_TYPE_ARRAY, "x", 1); }
static void no_key(void)          { gguf_set_val_u8(w, "", 1); }
static void bad_alignment(void)   { gguf_set_val_u32(w, GGUF_KEY_GENERAL_ALIGNMENT, 24); }
static void typed_alignment(void) { gguf_set_val_i32(w, GGUF_KEY_GENERAL_ALIGNMENT, 32); }
static void other_type(void)      { gguf_get_val_u32(w, 0); }
static void past_keys(void)       { gguf_get_key(w, 2); }
static void before_keys(void)     { gguf_get_kv_type(w, -1); }
static void past_strings(void)    { gguf_get_arr_str(w, 1, 2); }
static void no_number(void)       { gguf_get_arr_data(w, 1); }
static void past_tensors(void)    { gguf_get_tensor_name(w, 0); }
static void no_tensor(void)       { gguf_set_tensor_type(w, "x", GGML_TYPE_F32); }
static const struct { void (*call)(void); const char *says; } wrong[] = {
    { no_type, "type 8" }, { no_array, "type 9" }, { no_key, "1 to 65535" }, { bad_alignment, "power of two, not 24" }, { typed_alignment, "u32, not i32" },
    { other_type, "not one u32" }, { past_keys, "key 2 of 2" }, { before_keys, "key -1" }, { past_strings, "string 2 of 2" }, { no_number, "holds strings" },
    { past_tensors, "tensor 0 of 0" }, { no_tensor, "no tensor x" },
};

static int out_fd;
static void on_abort(const char *message) { if (write(out_fd, message, strlen(message)) < 0) _exit(2); _exit(7); }

static void check_wrong_calls(void) {
    const char *texts[2] = { "a", "b" };
    w = gguf_init_empty();
    gguf_set_val_u8(w, "u8", 1);
    gguf_set_arr_str(w, "strings", texts, 2);
    for (size_t i = 0; i < sizeof wrong/sizeof *wrong; i++) {
        int fd[2], status;
        char text[512] = "";
        if (pipe(fd)) return;
        const pid_t pid = fork();
        if (pid == 0) {
            out_fd = fd[1];
            ggml_set_abort_callback(on_abort);
            wrong[i].call();
            _exit(0);
        }
        close(fd[1]);
        const ssize_t n = read(fd[0], text, sizeof text - 1);
        close(fd[0]);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7, "call %zu", i);
        CHECK(n > 0 && strstr(text, wrong[i].says), "call %zu: \"%s\", expected \"%s\"", i, text, wrong[i].says);
    }
    gguf_free(w);
}

int main(void) {
    check_streams();
    ggml_log_set(no_log, NULL);
    check_round_trip();
    check_zero_bytes();
    check_setters();
    check_alignment();
    check_large_file();
    check_wrong_calls();
    return DONE();
}
