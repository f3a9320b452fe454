/* A file, or several, become a model.
 *
 * The header is read from the file's mapping; tensors are views on the mapping, so weights are neither read nor copied
 * here, and the time this takes does not grow with them. Files whose tensors lie unaligned, and callers who ask for it,
 * get a private copy instead. Every part of the file that a tensor claims is checked to be there before it is used.
 * Whatever fails, one line says why, and everything is undone by llama_model_free, which takes half-loaded models. */

#include "model.h"

#include "log.h"
#include "vocab.h"

#include <stdlib.h>
#include <string.h>

const char *model_lacks(const struct llama_model *m) {
    return m->vocab_only ? "only the vocabulary was loaded" : m->no_alloc ? "only sizes were asked for" : NULL;
}

const char *model_file_name(const struct llama_model *m) {
    return m->n_parts && m->parts[0].file.name ? m->parts[0].file.name : "model";
}

/* ---- headers --------------------------------------------------------------------------------------------------- */

static size_t read_header(void *file, void *bytes, uint64_t offset, size_t size) {
    return file_read(file, bytes, offset, size);
}

/* Tensors without data, as the infos describe them. */
static struct ggml_context *tensors_described(const struct gguf_context *g) {
    const int64_t n = gguf_get_n_tensors(g);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { ((size_t) n + 1)*ggml_tensor_overhead(), NULL, true });
    for (int64_t i = 0; ctx && i < n; i++) {
        struct ggml_tensor *t = ggml_new_tensor(ctx, gguf_get_tensor_type(g, i), GGML_MAX_DIMS,
                                                gguf_get_tensor_ne(g, i));
        if (t) ggml_set_name(t, gguf_get_tensor_name(g, i));
    }
    return ctx;
}

/* Is the file of the other byte order? Its version is then no number below 2^16 here. */
static bool is_foreign(const struct file *f) {
    uint32_t version = 0;
    return file_read(f, &version, 4, sizeof version) == sizeof version && version && !(version & 0xffff);
}

/* Data of this machine's byte order stay in the file; others are read and converted, and wait in p->converted for their place. */
static bool part_parse(struct part *p) {
    const bool foreign = is_foreign(&p->file);
    const struct gguf_init_params params = { .no_alloc = !foreign, .ctx = foreign ? &p->converted : &p->tensors };
    p->gguf = gguf_init_from_callback(read_header, &p->file, 0, p->file.size, params);
    if (!p->gguf) log_error("%s: not a usable GGUF file", p->file.name);
    else if (foreign && !(p->tensors = tensors_described(p->gguf))) log_error("%s: out of memory", p->file.name);
    return p->gguf && p->tensors;
}

/* Each tensor's bytes lie inside the file: the loader's one promise to everything that computes with them. */
static bool part_has_data(const struct part *p) {
    const uint64_t start = gguf_get_data_offset(p->gguf), size = p->file.size;
    for (int64_t i = 0; i < gguf_get_n_tensors(p->gguf); i++) {
        const uint64_t offset = gguf_get_tensor_offset(p->gguf, i), bytes = gguf_get_tensor_size(p->gguf, i);
        if (start > size || offset > size - start || bytes > size - start - offset) {
            log_error("%s: tensor %s wants %llu bytes at %llu, but the file ends at %llu", p->file.name,
                      gguf_get_tensor_name(p->gguf, i), (unsigned long long) bytes,
                      (unsigned long long) start + offset, (unsigned long long) size);
            return false;
        }
    }
    return true;
}

/* A whole number of the split keys; -1: absent or of another type. */
static int64_t split_number(const struct gguf_context *g, const char *key) {
    const int64_t id = gguf_find_key(g, key);
    if (id < 0) return -1;
    switch (gguf_get_kv_type(g, id)) {
        case GGUF_TYPE_UINT16: return gguf_get_val_u16(g, id);
        case GGUF_TYPE_INT32:  return gguf_get_val_i32(g, id);
        case GGUF_TYPE_UINT32: return gguf_get_val_u32(g, id);
        default:               return -1;
    }
}

static bool part_open(struct llama_model *m, const char *path) {
    struct part *p = &m->parts[m->n_parts++];
    return file_open(&p->file, path) && part_parse(p) && part_has_data(p);
}

static bool split_is(const struct part *p, int64_t number, int64_t count) {
    const int64_t no = split_number(p->gguf, "split.no"), of = split_number(p->gguf, "split.count");
    if (no == number && of == count) return true;
    log_error("%s: split.no is %lld of %lld, wanted %lld of %lld", p->file.name, (long long) no, (long long) of,
              (long long) number, (long long) count);
    return false;
}

static bool split_names_known(const struct llama_model *m, const char *path, char *prefix, size_t size, int64_t count) {
    if (llama_split_prefix(prefix, size, path, 0, (int32_t) count) > 0) return true;
    log_error("%s: a model of %lld files wants names that end in -00001-of-%05lld.gguf", model_file_name(m),
              (long long) count, (long long) count);
    return false;
}

static bool split_total_fits(const struct llama_model *m) {
    int64_t n = 0;
    for (int i = 0; i < m->n_parts; i++) n += gguf_get_n_tensors(m->parts[i].gguf);
    const int64_t total = split_number(m->parts[0].gguf, "split.tensors.count");
    if (total == n) return true;
    log_error("%s: key split.tensors.count is %lld, but the files have %lld tensors", model_file_name(m),
              (long long) total, (long long) n);
    return false;
}

/* Opens the other files of a split model; paths[0] is open. */
static bool splits_open(struct llama_model *m, const char *const *paths, size_t n_paths) {
    const int64_t count = split_number(m->parts[0].gguf, "split.count");
    if (count <= 1 && n_paths == 1) return true;
    if (count > MAX_SPLITS || (n_paths > 1 && count != (int64_t) n_paths)) {
        log_error("%s: key split.count is %lld, wanted %zu", model_file_name(m), (long long) count, n_paths);
        return false;
    }
    char prefix[4096], name[4096 + 32];
    if (n_paths == 1 && !split_names_known(m, paths[0], prefix, sizeof prefix, count)) return false;
    struct part *parts = realloc(m->parts, (size_t) count*sizeof *parts);
    if (!parts) {
        log_error("%s: out of memory", model_file_name(m));
        return false;
    }
    m->parts = parts;
    memset(parts + 1, 0, ((size_t) count - 1)*sizeof *parts);
    if (!split_is(&m->parts[0], 0, count)) return false;
    for (int i = 1; i < count; i++) {
        if (n_paths == 1) llama_split_path(name, sizeof name, prefix, i, (int32_t) count);
        if (!part_open(m, n_paths == 1 ? name : paths[i]) || !split_is(&m->parts[i], i, count)) return false;
    }
    return split_total_fits(m);
}

/* ---- overrides ------------------------------------------------------------------------------------------------- */

/* The kind of a value in the terms of enum llama_model_kv_override_type; -1: none of them. */
static int override_kind(enum gguf_type type) {
    switch (type) {
        case GGUF_TYPE_ARRAY:   return -1;
        case GGUF_TYPE_STRING:  return LLAMA_KV_OVERRIDE_TYPE_STR;
        case GGUF_TYPE_BOOL:    return LLAMA_KV_OVERRIDE_TYPE_BOOL;
        case GGUF_TYPE_FLOAT32:
        case GGUF_TYPE_FLOAT64: return LLAMA_KV_OVERRIDE_TYPE_FLOAT;
        default:                return LLAMA_KV_OVERRIDE_TYPE_INT;
    }
}

bool override_one(struct gguf_context *g, const char *file, const struct llama_model_kv_override *o) {
    const int64_t id = gguf_find_key(g, o->key);
    if (!memchr(o->key, 0, sizeof o->key) || !strcmp(o->key, GGUF_KEY_GENERAL_ALIGNMENT) ||
        (id >= 0 && override_kind(gguf_get_kv_type(g, id)) != (int) o->tag)) {
        log_error("%s: key %.127s cannot be overridden by a value of this type", file, o->key);
        return false;
    }
    switch (o->tag) {
        case LLAMA_KV_OVERRIDE_TYPE_FLOAT: gguf_set_val_f32 (g, o->key, (float) o->val_f64); break;
        case LLAMA_KV_OVERRIDE_TYPE_BOOL:  gguf_set_val_bool(g, o->key, o->val_bool);        break;
        case LLAMA_KV_OVERRIDE_TYPE_STR: {
            char text[sizeof o->val_str + 1] = "";
            memcpy(text, o->val_str, sizeof o->val_str);
            gguf_set_val_str(g, o->key, text);
            break;
        }
        case LLAMA_KV_OVERRIDE_TYPE_INT:
            if (o->val_i64 >= 0 && o->val_i64 <= UINT32_MAX) gguf_set_val_u32(g, o->key, (uint32_t) o->val_i64);
            else                                             gguf_set_val_i64(g, o->key, o->val_i64);
            break;
    }
    return true;
}

static bool overrides_apply(struct llama_model *m, const struct llama_model_kv_override *o) {
    for (; o && o->key[0]; o++) {
        if (!override_one(m->parts[0].gguf, model_file_name(m), o)) return false;
    }
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

struct progress {
    llama_progress_callback callback;
    void    *user_data;
    uint64_t done, total;
};

static bool progress_add(struct progress *p, uint64_t bytes) {
    p->done += bytes;
    return !p->callback || p->callback(p->total ? (float) ((double) p->done/(double) p->total) : 1.0f, p->user_data);
}

static bool part_is_aligned(const struct part *p, size_t alignment) {
    for (int64_t i = 0; i < gguf_get_n_tensors(p->gguf); i++) {
        if ((gguf_get_data_offset(p->gguf) + gguf_get_tensor_offset(p->gguf, i)) % alignment) return false;
    }
    return p->file.data != NULL;
}

/* Tensors become views on the mapping. */
static bool part_map(struct llama_model *m, struct part *p, struct progress *progress) {
    size_t largest = 0, all = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(p->gguf); i++) {
        const size_t size = gguf_get_tensor_size(p->gguf, i);
        largest = size > largest ? size : largest;
        all    += size;
    }
    p->buffer = ggml_backend_dev_buffer_from_host_ptr(m->device, p->file.data, p->file.size, largest);
    bool ok = p->buffer != NULL;
    const size_t start = gguf_get_data_offset(p->gguf);
    struct ggml_tensor *t = ok ? ggml_get_first_tensor(p->tensors) : NULL;
    for (int64_t i = 0; ok && t; t = ggml_get_next_tensor(p->tensors, t), i++) {
        unsigned char *data = p->file.data + start + gguf_get_tensor_offset(p->gguf, i);
        ok = ggml_backend_tensor_alloc(p->buffer, t, data) == GGML_STATUS_SUCCESS;
    }
    if (!ok) {
        log_error("%s: the device does not take the mapping", p->file.name);
        return false;
    }
    m->bytes_mapped += all;
    return progress_add(progress, all);
}

bool part_read(const struct part *p, int64_t i, size_t at, void *bytes, size_t size) {
    if (p->converted) {                     /* the first tensor is all data, as the section had them */
        const struct ggml_tensor *section = ggml_get_first_tensor(p->converted);
        memcpy(bytes, (const char *) section->data + gguf_get_tensor_offset(p->gguf, i) + at, size);
        return true;
    }
    const uint64_t start = gguf_get_data_offset(p->gguf) + gguf_get_tensor_offset(p->gguf, i) + at;
    if (file_read(&p->file, bytes, start, size) == size) return true;
    log_error("%s: tensor %s could not be read", p->file.name, gguf_get_tensor_name(p->gguf, i));
    return false;
}

ggml_backend_buffer_t buffer_pretended(struct ggml_context *ctx, ggml_backend_buffer_type_t type) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, 1);
    for (struct ggml_tensor *t = buffer ? ggml_get_first_tensor(ctx) : NULL; t; t = ggml_get_next_tensor(ctx, t)) {
        t->buffer = buffer;
        t->data   = ggml_backend_buffer_get_base(buffer);
    }
    return buffer;
}

/* Tensors get memory of their own, filled from the file, which is not needed afterwards. */
static bool part_copy(struct llama_model *m, struct part *p, struct progress *progress) {
    const ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(m->device);
    const size_t all = ggml_backend_alloc_ctx_tensors_from_buft_size(p->tensors, type);
    p->buffer = m->no_alloc ? buffer_pretended(p->tensors, type) : ggml_backend_alloc_ctx_tensors_from_buft(p->tensors, type);
    if (!p->buffer) {
        log_error("%s: out of memory for the weights", p->file.name);
        return false;
    }
    m->bytes_private += m->no_alloc ? all : ggml_backend_buffer_get_size(p->buffer);
    if (m->no_alloc) return true;
    struct ggml_tensor *t = ggml_get_first_tensor(p->tensors);
    for (int64_t i = 0; t; t = ggml_get_next_tensor(p->tensors, t), i++) {
        const size_t size = ggml_nbytes(t);
        if (!size) continue;
        if (!part_read(p, i, 0, t->data, size) || !progress_add(progress, size)) return false;
    }
    ggml_free(p->converted);
    p->converted = NULL;
    return true;
}

static bool data_place(struct llama_model *m, const struct llama_model_params *params) {
    const enum llama_load_mode mode = params->load_mode;
    const bool lock = mode == LLAMA_LOAD_MODE_MLOCK || mode == LLAMA_LOAD_MODE_MMAP_MLOCK;
    const bool map  = mode == LLAMA_LOAD_MODE_AUTO  || mode == LLAMA_LOAD_MODE_MMAP || mode == LLAMA_LOAD_MODE_MMAP_MLOCK;
    const size_t alignment = ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(m->device));
    struct progress progress = { params->progress_callback, params->progress_callback_user_data, 0, m->n_bytes };
    if (!progress_add(&progress, 0)) return false;
    for (int i = 0; i < m->n_parts; i++) {
        struct part *p = &m->parts[i];
        if (!gguf_get_n_tensors(p->gguf)) continue;
        const bool mapped = map && !p->converted && part_is_aligned(p, alignment);
        if (!(mapped ? part_map(m, p, &progress) : part_copy(m, p, &progress))) return false;
        ggml_backend_buffer_set_usage(p->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        if (lock) memory_lock(&p->file, ggml_backend_buffer_get_base(p->buffer),
                              ggml_backend_buffer_get_size(p->buffer));
    }
    return true;
}

static bool data_check(const struct llama_model *m) {
    for (int i = 0; i < m->n_parts; i++) {
        struct ggml_context *ctx = m->parts[i].tensors;
        for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
            if (ggml_validate_row_data(t->type, t->data, ggml_nbytes(t))) continue;
            log_error("%s: tensor %s has values that are not finite", m->parts[i].file.name, t->name);
            return false;
        }
    }
    return true;
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* The tensors of all parts into `list`, unless that is NULL. Their number. */
static size_t list_tensors(const struct llama_model *m, struct ggml_tensor **list) {
    size_t n = 0;
    for (int i = 0; i < m->n_parts; i++) {
        struct ggml_context *ctx = m->parts[i].tensors;
        for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t), n++) {
            if (list) list[n] = t;
        }
    }
    return n;
}

/* Rows of the embedding: as many as there are tokens; a file without tokens states them or lets the tensor tell. */
static bool vocab_size(struct llama_model *m) {
    m->h.n_vocab = (uint32_t) llama_vocab_n_tokens(m->vocab);
    if (m->h.n_vocab) return true;
    for (int i = 0; i < m->n_parts; i++) {
        const struct ggml_tensor *t = ggml_get_tensor(m->parts[i].tensors, "token_embd.weight");
        if (t && t->ne[1] > 0 && t->ne[1] <= INT32_MAX) m->h.n_vocab = (uint32_t) t->ne[1];
    }
    if (!m->h.n_vocab) log_error("%s: neither tokens nor tensor token_embd.weight", model_file_name(m));
    return m->h.n_vocab > 0;
}

static bool weights_list(struct llama_model *m) {
    struct name_index index = { .n = list_tensors(m, NULL) };
    m->layers    = calloc(m->h.n_layer, sizeof *m->layers);
    index.sorted = malloc((index.n + 1)*sizeof *index.sorted);
    bool ok = m->layers && index.sorted;
    if (!ok) log_error("%s: out of memory", model_file_name(m));
    if (ok) list_tensors(m, index.sorted);
    for (size_t i = 0; ok && i < index.n; i++) {
        m->n_params += (uint64_t) ggml_nelements(index.sorted[i]);
        m->n_bytes  += ggml_nbytes(index.sorted[i]);
    }
    ok = ok && weights_find(m, &index);
    free(index.sorted);
    return ok;
}

/* Everything but the weights' data. */
static bool model_fill(struct llama_model *m, const struct llama_model_params *params) {
    m->vocab_only = params->vocab_only;
    m->no_alloc   = params->no_alloc;
    m->device     = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!m->device) {
        log_error("%s: no device to compute with", model_file_name(m));
        return false;
    }
    if (!overrides_apply(m, params->kv_overrides))                 return false;
    if (!m->vocab_only && !keys_read(m))                           return false;
    if (!(m->vocab = vocab_new(m->parts[0].gguf)))                 return false;
    if (m->vocab_only) return true;
    return vocab_size(m) && weights_list(m);
}

static bool model_load(struct llama_model *m, const struct llama_model_params *params) {
    if (!model_fill(m, params)) return false;
    return m->vocab_only || (data_place(m, params) && (!params->check_tensors || m->no_alloc || data_check(m)));
}

static struct llama_model *model_new(void) {
    struct llama_model *m = calloc(1, sizeof *m);
    if (m) m->parts = calloc(1, sizeof *m->parts);
    if (m && m->parts) return m;
    log_error("model: out of memory");
    free(m);
    return NULL;
}

static struct llama_model *finish(struct llama_model *m, bool ok, int64_t start) {
    if (ok) {
        m->load_us = ggml_time_us() - start;
        return m;
    }
    llama_model_free(m);
    return NULL;
}

struct llama_model *model_open(const char *path) {
    struct llama_model *m = model_new();
    m = m ? finish(m, part_open(m, path) && splits_open(m, &path, 1), 0) : NULL;
    for (int i = 0; m && i < m->n_parts; i++) file_unmap(&m->parts[i].file);
    return m;
}

struct llama_model *model_open_one(const char *path, FILE *stream, ggml_backend_dev_t device) {
    struct llama_model *m = model_new();
    if (!m) return NULL;
    struct part *p = &m->parts[m->n_parts++];
    m->device = device;
    return finish(m, (stream ? file_open_stream(&p->file, stream) : file_open(&p->file, path)) && part_parse(p) && part_has_data(p), 0);
}

bool model_place(struct llama_model *m) {
    const struct llama_model_params params = llama_model_default_params();
    return data_place(m, &params);
}

struct llama_model *llama_model_load_from_splits(const char **paths, size_t n_paths, struct llama_model_params params) {
    if (!paths || !n_paths || !paths[0]) {
        log_error("model: no file given");
        return NULL;
    }
    const int64_t start = ggml_time_us();
    struct llama_model *m = model_new();
    if (!m) return NULL;
    return finish(m, part_open(m, paths[0]) && splits_open(m, paths, n_paths) && model_load(m, &params), start);
}

struct llama_model *llama_model_load_from_file(const char *path_model, struct llama_model_params params) {
    return llama_model_load_from_splits(&path_model, 1, params);
}

struct llama_model *llama_model_load_from_file_ptr(FILE *file, struct llama_model_params params) {
    const int64_t start = ggml_time_us();
    struct llama_model *m = file ? model_new() : NULL;
    if (!m) return NULL;
    struct part *p = &m->parts[m->n_parts++];
    return finish(m, file_open_stream(&p->file, file) && part_parse(p) && part_has_data(p) && model_load(m,
            &params), start);
}

struct llama_model *llama_load_model_from_file(const char *path_model, struct llama_model_params params) {
    return llama_model_load_from_file(path_model, params);
}

/* ---- a model without a file ------------------------------------------------------------------------------------ */

static bool data_ask(struct llama_model *m, llama_model_set_tensor_data_t set_tensor_data, void *user_data) {
    struct part *p = &m->parts[0];
    p->buffer = ggml_backend_alloc_ctx_tensors_from_buft(p->tensors, ggml_backend_dev_buffer_type(m->device));
    if (!p->buffer) {
        log_error("model: out of memory for the weights");
        return false;
    }
    ggml_backend_buffer_set_usage(p->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    m->bytes_private = ggml_backend_buffer_get_size(p->buffer);
    for (struct ggml_tensor *t = ggml_get_first_tensor(p->tensors); t; t = ggml_get_next_tensor(p->tensors, t)) {
        set_tensor_data(t, user_data);
    }
    return true;
}

struct llama_model *llama_model_init_from_user(struct gguf_context *metadata,
                                               llama_model_set_tensor_data_t set_tensor_data,
                                               void *set_tensor_data_ud, struct llama_model_params params) {
    const int64_t start = ggml_time_us();
    struct llama_model *m = metadata && set_tensor_data ? model_new() : NULL;
    if (!m) return NULL;
    struct part *p = &m->parts[m->n_parts++];
    p->gguf    = gguf_init_empty();
    p->tensors = tensors_described(metadata);
    if (p->gguf) gguf_set_kv(p->gguf, metadata);
    if (!p->gguf || !p->tensors) {
        log_error("model: out of memory");
        return finish(m, false, start);
    }
    return finish(m, model_fill(m, &params) && (m->vocab_only || data_ask(m, set_tensor_data, set_tensor_data_ud)),
                  start);
}

void llama_model_free(struct llama_model *m) {
    if (!m) return;
    while (m->adapters) llama_adapter_lora_free(m->adapters);
    vocab_free(m->vocab);
    for (int i = 0; i < m->n_parts; i++) {
        struct part *p = &m->parts[i];
        if (p->buffer) ggml_backend_buffer_free(p->buffer);
        ggml_free(p->tensors);
        ggml_free(p->converted);
        gguf_free(p->gguf);
        file_close(&p->file);
    }
    free(m->parts);
    free(m->layers);
    free(m);
}

void llama_free_model(struct llama_model *m) { llama_model_free(m); }
