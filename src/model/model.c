/* Questions to a loaded model. The numbers come from struct hparams, the texts from the file's metadata. */

#include "model.h"

#include "log.h"

#include <string.h>

/* ---- names ----------------------------------------------------------------------------------------------------- */

enum { N_META_KEYS = LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT_ETA + 1 };

static const char *const meta_keys[N_META_KEYS] = {
    [LLAMA_MODEL_META_KEY_SAMPLING_SEQUENCE]        = "general.sampling.sequence",
    [LLAMA_MODEL_META_KEY_SAMPLING_TOP_K]           = "general.sampling.top_k",
    [LLAMA_MODEL_META_KEY_SAMPLING_TOP_P]           = "general.sampling.top_p",
    [LLAMA_MODEL_META_KEY_SAMPLING_MIN_P]           = "general.sampling.min_p",
    [LLAMA_MODEL_META_KEY_SAMPLING_XTC_PROBABILITY] = "general.sampling.xtc_probability",
    [LLAMA_MODEL_META_KEY_SAMPLING_XTC_THRESHOLD]   = "general.sampling.xtc_threshold",
    [LLAMA_MODEL_META_KEY_SAMPLING_TEMP]            = "general.sampling.temp",
    [LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_LAST_N]  = "general.sampling.penalty_last_n",
    [LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_REPEAT]  = "general.sampling.penalty_repeat",
    [LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT]        = "general.sampling.mirostat",
    [LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT_TAU]    = "general.sampling.mirostat_tau",
    [LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT_ETA]    = "general.sampling.mirostat_eta",
};

const char *llama_model_meta_key_str(enum llama_model_meta_key key) {
    return (unsigned) key < N_META_KEYS ? meta_keys[key] : NULL;
}

/* ---- metadata: every key that is not an array ------------------------------------------------------------------ */

static const struct gguf_context *metadata(const struct llama_model *m) { return m->parts[0].gguf; }

/* The key's index in the file of the i-th key that is not an array; -1: there are fewer. */
static int64_t meta_id(const struct llama_model *m, int32_t i) {
    const struct gguf_context *g = metadata(m);
    for (int64_t id = 0; id < gguf_get_n_kv(g); id++) {
        if (gguf_get_kv_type(g, id) != GGUF_TYPE_ARRAY && i-- == 0) return id;
    }
    return -1;
}

/* As snprintf: the length it wants; -1 and an empty string when there is nothing. */
static int32_t meta_print(const struct gguf_context *g, int64_t id, char *buf, size_t size) {
    if (size) buf[0] = 0;
    if (id < 0) return -1;
    switch (gguf_get_kv_type(g, id)) {
        case GGUF_TYPE_UINT8:   return snprintf(buf, size, "%u",   gguf_get_val_u8(g, id));
        case GGUF_TYPE_INT8:    return snprintf(buf, size, "%d",   gguf_get_val_i8(g, id));
        case GGUF_TYPE_UINT16:  return snprintf(buf, size, "%u",   gguf_get_val_u16(g, id));
        case GGUF_TYPE_INT16:   return snprintf(buf, size, "%d",   gguf_get_val_i16(g, id));
        case GGUF_TYPE_UINT32:  return snprintf(buf, size, "%u",   gguf_get_val_u32(g, id));
        case GGUF_TYPE_INT32:   return snprintf(buf, size, "%d",   gguf_get_val_i32(g, id));
        case GGUF_TYPE_UINT64:  return snprintf(buf, size, "%llu", (unsigned long long) gguf_get_val_u64(g, id));
        case GGUF_TYPE_INT64:   return snprintf(buf, size, "%lld", (long long) gguf_get_val_i64(g, id));
        case GGUF_TYPE_FLOAT32: return snprintf(buf, size, "%f",   (double) gguf_get_val_f32(g, id));
        case GGUF_TYPE_FLOAT64: return snprintf(buf, size, "%f",   gguf_get_val_f64(g, id));
        case GGUF_TYPE_BOOL:    return snprintf(buf, size, "%s",   gguf_get_val_bool(g, id) ? "true" : "false");
        case GGUF_TYPE_STRING:  return snprintf(buf, size, "%s",   gguf_get_val_str(g, id));
        default:                return -1;
    }
}

int32_t llama_model_meta_count(const struct llama_model *m) {
    const struct gguf_context *g = metadata(m);
    int32_t n = 0;
    for (int64_t id = 0; id < gguf_get_n_kv(g); id++) n += gguf_get_kv_type(g, id) != GGUF_TYPE_ARRAY;
    return n;
}

int32_t llama_model_meta_val_str(const struct llama_model *m, const char *key, char *buf, size_t buf_size) {
    return meta_print(metadata(m), gguf_find_key(metadata(m), key), buf, buf_size);
}

int32_t llama_model_meta_val_str_by_index(const struct llama_model *m, int32_t i, char *buf, size_t buf_size) {
    return meta_print(metadata(m), meta_id(m, i), buf, buf_size);
}

int32_t llama_model_meta_key_by_index(const struct llama_model *m, int32_t i, char *buf, size_t buf_size) {
    const int64_t id = meta_id(m, i);
    if (buf_size) buf[0] = 0;
    return id < 0 ? -1 : snprintf(buf, buf_size, "%s", gguf_get_key(metadata(m), id));
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static const char *meta_text(const struct llama_model *m, const char *key) {
    const int64_t id = gguf_find_key(metadata(m), key);
    return id >= 0 && gguf_get_kv_type(metadata(m), id) == GGUF_TYPE_STRING ? gguf_get_val_str(metadata(m), id) : NULL;
}

const char *llama_model_chat_template(const struct llama_model *m, const char *name) {
    char key[160] = "tokenizer.chat_template";
    if (name) snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
    return meta_text(m, key);
}

enum llama_ftype llama_model_ftype(const struct llama_model *m) {
    const int64_t id = gguf_find_key(metadata(m), "general.file_type");
    if (id < 0 || gguf_get_kv_type(metadata(m), id) != GGUF_TYPE_UINT32) return LLAMA_FTYPE_GUESSED;
    return (enum llama_ftype) gguf_get_val_u32(metadata(m), id);
}

int32_t llama_model_desc(const struct llama_model *m, char *buf, size_t buf_size) {
    const double n = (double) m->n_params;
    return snprintf(buf, buf_size, "%s %.2f%c %s", m->arch ? m->arch->name : "vocabulary", n < 1e9 ? n/1e6 : n/1e9,
                    n < 1e9 ? 'M' : 'B', llama_ftype_name(llama_model_ftype(m)));
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

const struct llama_vocab *llama_model_get_vocab(const struct llama_model *m) { return m->vocab; }
enum llama_rope_type llama_model_rope_type(const struct llama_model *m) {
    return m->arch ? m->arch->rope : LLAMA_ROPE_TYPE_NONE;
}
int32_t  llama_model_n_ctx_train  (const struct llama_model *m) { return (int32_t) m->h.n_ctx_train; }
int32_t  llama_model_n_embd       (const struct llama_model *m) { return (int32_t) m->h.n_embd; }
int32_t  llama_model_n_embd_inp   (const struct llama_model *m) { return (int32_t) m->h.n_embd; }
int32_t  llama_model_n_embd_out   (const struct llama_model *m) { return (int32_t) m->h.n_embd; }
int32_t  llama_model_n_layer      (const struct llama_model *m) { return (int32_t) m->h.n_layer; }
int32_t  llama_model_n_layer_nextn(const struct llama_model *m) { (void) m; return 0; }
int32_t  llama_model_n_head       (const struct llama_model *m) { return (int32_t) m->h.n_head[0]; }
int32_t  llama_model_n_head_kv    (const struct llama_model *m) { return (int32_t) m->h.n_head_kv[0]; }
int32_t  llama_model_n_swa        (const struct llama_model *m) { return (int32_t) m->h.n_swa; }
uint32_t llama_model_n_cls_out    (const struct llama_model *m) { (void) m; return 1; }
uint64_t llama_model_size         (const struct llama_model *m) { return m->n_bytes; }
uint64_t llama_model_n_params     (const struct llama_model *m) { return m->n_params; }
bool     llama_model_has_encoder  (const struct llama_model *m) { (void) m; return false; }
bool     llama_model_has_decoder  (const struct llama_model *m) { (void) m; return true; }
bool     llama_model_is_recurrent (const struct llama_model *m) { (void) m; return false; }
bool     llama_model_is_hybrid    (const struct llama_model *m) { (void) m; return false; }
bool     llama_model_is_diffusion (const struct llama_model *m) { (void) m; return false; }
llama_token llama_model_decoder_start_token(const struct llama_model *m) { (void) m; return LLAMA_TOKEN_NULL; }
const char *llama_model_cls_label(const struct llama_model *m, uint32_t i) { (void) m; (void) i; return NULL; }
float llama_model_rope_freq_scale_train(const struct llama_model *m) {
    return m->h.rope_factor > 0 ? 1/m->h.rope_factor : 1.0f;
}

int32_t llama_n_ctx_train(const struct llama_model *m) { return llama_model_n_ctx_train(m); }
int32_t llama_n_embd     (const struct llama_model *m) { return llama_model_n_embd(m); }
int32_t llama_n_layer    (const struct llama_model *m) { return llama_model_n_layer(m); }
int32_t llama_n_head     (const struct llama_model *m) { return llama_model_n_head(m); }

/* ---- writing --------------------------------------------------------------------------------------------------- */

void llama_model_save_to_file(const struct llama_model *m, const char *path_model) {
    if (model_lacks(m)) {
        log_error("%s: %s", path_model, model_lacks(m));
        return;
    }
    struct gguf_context *out = gguf_init_empty();
    if (!out) {
        log_error("%s: out of memory", path_model);
        return;
    }
    gguf_set_kv(out, metadata(m));
    static const char *const of_parts[] = { "split.no", "split.count", "split.tensors.count", GGUF_KEY_GENERAL_ALIGNMENT };
    for (size_t i = 0; i < sizeof of_parts/sizeof *of_parts; i++) gguf_remove_key(out, of_parts[i]);
    for (int i = 0; i < m->n_parts; i++) {
        struct ggml_context *ctx = m->parts[i].tensors;
        for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
            gguf_add_tensor(out, t);
        }
    }
    if (!gguf_write_to_file(out, path_model, false)) log_error("%s: the model could not be written", path_model);
    gguf_free(out);
}
