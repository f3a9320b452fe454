/* Any bytes, read as a GGUF file in every way there is; what loads is asked for everything, written, and read again the same. */

#include "fuzz.h"

#include "gguf.h"

struct input { const uint8_t *p; size_t n; };
static size_t give(void *user, void *out, uint64_t offset, size_t n) {
    const struct input *in = user;
    if (offset > in->n) return 0;
    if (n > in->n - offset) n = (size_t) (in->n - offset);
    memcpy(out, in->p + offset, n);
    return n;
}

static size_t ask_pairs(const struct gguf_context *g) {
    size_t sum = 0;
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) {
        const bool array = gguf_get_kv_type(g, i) == GGUF_TYPE_ARRAY;
        const enum gguf_type type = array ? gguf_get_arr_type(g, i) : gguf_get_kv_type(g, i);
        const size_t n = gguf_get_arr_n(g, i);
        require(gguf_find_key(g, gguf_get_key(g, i)) == i, "a key is not found");
        if (type == GGUF_TYPE_STRING) for (size_t j = 0; j < n; j++) sum += strlen(gguf_get_arr_str(g, i, j));
        else if (n) sum += ((const uint8_t *) gguf_get_arr_data(g, i))[n - 1];
    }
    return sum;
}

static size_t ask_tensors(const struct gguf_context *g, struct ggml_context *ggml) {
    size_t sum = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        const struct ggml_tensor *t = ggml_get_tensor(ggml, gguf_get_tensor_name(g, i));
        require(t && gguf_find_tensor(g, t->name) == i && ggml_nbytes(t) == gguf_get_tensor_size(g, i), "another tensor");
        for (size_t j = 0; t->data && j < ggml_nbytes(t); j += 61) sum += ((const uint8_t *) t->data)[j];
        if (t->data) ggml_validate_row_data(t->type, t->data, ggml_nbytes(t));
    }
    return sum;
}

static void write_and_read(struct gguf_context *g) {
    const size_t n = gguf_get_meta_size(g);
    uint8_t *a = malloc(n), *b = malloc(n);
    require(a && b, "no memory");
    gguf_get_meta_data(g, a);
    struct gguf_context *again = gguf_init_from_buffer(a, n, (struct gguf_init_params) { true, NULL });
    require(again && gguf_get_meta_size(again) == n, "what was written has another size");
    gguf_get_meta_data(again, b);
    require(!memcmp(a, b, n), "what was written is another");
    struct gguf_context *copy = gguf_init_empty();
    gguf_set_kv(copy, g);
    require(gguf_get_n_kv(copy) == gguf_get_n_kv(g) && gguf_get_alignment(copy) == gguf_get_alignment(g), "the copy is another");
    while (gguf_get_n_kv(copy) > 0 && gguf_get_n_kv(copy) < 100) gguf_remove_key(copy, gguf_get_key(copy, gguf_get_n_kv(copy)/2));
    gguf_free(copy);
    gguf_free(again);
    free(a), free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct ggml_context *ggml = NULL;
    struct input in = { data, size };
    ggml_log_set(quiet, NULL);
    for (int way = 0; way < 4; way++) {
        const struct gguf_init_params params = { way == 1, way == 0 ? NULL : &ggml };
        struct gguf_context *g = way == 3 ? gguf_init_from_callback(give, &in, 5, size, params)
                                          : gguf_init_from_buffer(data, size, params);
        if (!g) continue;
        ask_pairs(g);
        if (way > 0) ask_tensors(g, ggml), ggml_free(ggml);
        if (way == 0 && gguf_get_meta_size(g) < (1 << 24)) write_and_read(g);
        gguf_free(g);
    }
    return 0;
}
