/* The numbers of a model: metadata keys become struct hparams, each checked against the range in its architecture's table.
 *
 * Nothing is used unchecked: whatever passes here keeps every later product of sizes inside 64 bits and every divisor
 * above zero. The first thing wrong ends loading with one line that names the file, the key, what it holds and what it may. */

#include "model.h"

#include "log.h"

#include <math.h>
#include <string.h>

/* A key of the file with its value as seen by the reader. */
struct value {
    const char    *file;
    char           key[160];
    const struct gguf_context *gguf;
    int64_t        id;
    enum gguf_type type;        /* of the value or of the elements */
    size_t         n;           /* elements of an array; 0: not an array */
    const void    *data;        /* numbers; NULL for strings */
};

static bool value_find(struct value *v, const struct llama_model *m, const char *name) {
    *v = (struct value) { .file = model_file_name(m), .gguf = m->parts[0].gguf };
    snprintf(v->key, sizeof v->key, "%s.%s", m->arch->name, name);
    v->id = gguf_find_key(v->gguf, v->key);
    if (v->id < 0) return false;
    v->type = gguf_get_kv_type(v->gguf, v->id);
    if (v->type == GGUF_TYPE_ARRAY) {
        v->type = gguf_get_arr_type(v->gguf, v->id);
        v->n    = gguf_get_arr_n(v->gguf, v->id);
        v->data = v->type == GGUF_TYPE_STRING || !v->n ? NULL : gguf_get_arr_data(v->gguf, v->id);
    } else if (v->type != GGUF_TYPE_STRING) {
        v->data = gguf_get_val_data(v->gguf, v->id);
    }
    return true;
}

static bool is_whole(enum gguf_type t) {
    return t != GGUF_TYPE_FLOAT32 && t != GGUF_TYPE_FLOAT64 && t != GGUF_TYPE_STRING && t != GGUF_TYPE_BOOL;
}

/* Element i as a double: exact for every type but 64-bit integers past 2^53, which no range admits. */
static double number_at(const struct value *v, size_t i) {
    #define AT(type) ((double) ((const type *) v->data)[i])
    switch (v->type) {
        case GGUF_TYPE_UINT8:   return AT(uint8_t);
        case GGUF_TYPE_BOOL:
        case GGUF_TYPE_INT8:    return AT(int8_t);
        case GGUF_TYPE_UINT16:  return AT(uint16_t);
        case GGUF_TYPE_INT16:   return AT(int16_t);
        case GGUF_TYPE_UINT32:  return AT(uint32_t);
        case GGUF_TYPE_INT32:   return AT(int32_t);
        case GGUF_TYPE_FLOAT32: return AT(float);
        case GGUF_TYPE_UINT64:  return AT(uint64_t);
        case GGUF_TYPE_INT64:   return AT(int64_t);
        case GGUF_TYPE_FLOAT64: return AT(double);
        default:                return NAN;
    }
    #undef AT
}

static bool wrong_type(const struct value *v, const char *wanted) {
    log_error("%s: key %s is of type %s%s, wanted %s", v->file, v->key, v->n ? "array of " : "",
              gguf_type_name(v->type), wanted);
    return false;
}

static bool store(void *field, size_t i, const struct value *v, double x, const struct key_row *row) {
    if (!(x >= row->min && x <= row->max)) {
        log_error("%s: key %s is %g, wanted %g to %g", v->file, v->key, x, row->min, row->max);
        return false;
    }
    switch (row->kind) {
        case KEY_F32:  ((float    *) field)[i] = (float) x;     break;
        case KEY_BOOL: ((bool     *) field)[i] = x != 0;        break;
        default:       ((uint32_t *) field)[i] = (uint32_t) x;  break;
    }
    return true;
}

static bool store_choice(void *field, const struct value *v, const struct key_row *row) {
    if (v->type != GGUF_TYPE_STRING || v->n) return wrong_type(v, "a string");
    const char *name = gguf_get_val_str(v->gguf, v->id);
    for (uint32_t i = 0; row->choices[i]; i++) {
        if (!strcmp(name, row->choices[i])) {
            *(uint32_t *) field = i;
            return true;
        }
    }
    log_error("%s: key %s is \"%.60s\", which is not supported", v->file, v->key, name);
    return false;
}

static bool store_layers(void *field, const struct value *v, const struct key_row *row, uint32_t n_layer) {
    if (v->type == GGUF_TYPE_STRING || !is_whole(v->type)) return wrong_type(v, "whole numbers");
    if (v->n && v->n < n_layer) {
        log_error("%s: key %s has %zu elements for %u layers", v->file, v->key, v->n, n_layer);
        return false;
    }
    for (uint32_t i = 0; i < n_layer; i++) {
        if (!store(field, i, v, number_at(v, v->n ? i : 0), row)) return false;
    }
    return true;
}

static bool key_absent(struct hparams *h, const struct value *v, const struct key_row *row) {
    if (row->required) {
        log_error("%s: key %s is missing", v->file, v->key);
        return false;
    }
    void *field = (char *) h + row->offset;
    for (uint32_t i = 0; i < (row->kind == KEY_LAYERS ? h->n_layer : 1); i++) {
        switch (row->kind) {
            case KEY_F32:  *(float *) field = (float) row->absent;              break;
            case KEY_BOOL: *(bool  *) field = row->absent != 0;                 break;
            default:       ((uint32_t *) field)[i] = (uint32_t) row->absent;    break;
        }
    }
    return true;
}

static bool key_read(struct llama_model *m, const struct key_row *row) {
    struct value v;
    if (!value_find(&v, m, row->name)) return key_absent(&m->h, &v, row);
    void *field = (char *) &m->h + row->offset;
    if (row->kind == KEY_CHOICE) return store_choice(field, &v, row);
    if (row->kind == KEY_LAYERS) return store_layers(field, &v, row, m->h.n_layer);
    if (v.n || !v.data)          return wrong_type(&v, "one number");
    if (row->kind == KEY_BOOL && v.type != GGUF_TYPE_BOOL) return wrong_type(&v, "bool");
    if (row->kind == KEY_U32  && !is_whole(v.type))        return wrong_type(&v, "a whole number");
    return store(field, 0, &v, number_at(&v, 0), row);
}

/* ---- what must hold between keys ------------------------------------------------------------------------------- */

static bool unfit(const struct llama_model *m, const char *name, double x, const char *why) {
    log_error("%s: key %s.%s is %g, %s", model_file_name(m), m->arch->name, name, x, why);
    return false;
}

static bool keys_agree(const struct llama_model *m) {
    const struct hparams *h = &m->h;
    for (uint32_t il = 0; il < h->n_layer; il++) {
        if (h->n_head[il] % h->n_head_kv[il]) {
            return unfit(m, "attention.head_count_kv", h->n_head_kv[il], "which does not divide the number of heads");
        }
    }
    if (h->n_head_k % 2)       return unfit(m, "attention.key_length", h->n_head_k, "wanted an even number");
    if (h->n_rot > h->n_head_k || h->n_rot % 2) {
        return unfit(m, "rope.dimension_count", h->n_rot, "wanted an even number up to the size of a head");
    }
    if (h->n_expert_used > h->n_expert) return unfit(m, "expert_used_count", h->n_expert_used,
                                                     "more than there are experts");
    if (h->n_expert && !h->n_expert_used) return unfit(m, "expert_used_count", 0, "wanted at least 1 of the experts");
    return true;
}

static void keys_derive(struct hparams *h) {
    for (uint32_t il = 0; il < h->n_layer; il++) {
        if (!h->n_head_kv[il]) h->n_head_kv[il] = h->n_head[il];
        h->swa[il] = h->n_swa && h->swa_pattern && il % h->swa_pattern < h->swa_pattern - 1;
    }
    if (!h->n_ctx_orig)  h->n_ctx_orig  = h->n_ctx_train;
    if (!h->n_ff_expert) h->n_ff_expert = h->n_ff[0];
    if (h->rope_scale_linear != 0 && h->rope_factor == 0) h->rope_factor = h->rope_scale_linear;
}

/* Head sizes follow from the width unless the file states them; without either there is nothing to divide. */
static bool head_sizes(struct llama_model *m) {
    struct hparams *h = &m->h;
    if ((!h->n_head_k || !h->n_head_v) && h->n_embd % h->n_head[0]) {
        return unfit(m, "attention.head_count", h->n_head[0], "which does not divide the embedding length");
    }
    if (!h->n_head_k) h->n_head_k = h->n_embd/h->n_head[0];
    if (!h->n_head_v) h->n_head_v = h->n_embd/h->n_head[0];
    if (!h->n_rot)    h->n_rot    = h->n_head_k;
    return true;
}

bool keys_read(struct llama_model *m) {
    const struct gguf_context *gguf = m->parts[0].gguf;
    const int64_t id = gguf_find_key(gguf, "general.architecture");
    if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) {
        log_error("%s: key general.architecture is missing or not a string", model_file_name(m));
        return false;
    }
    const char *name = gguf_get_val_str(gguf, id);
    if (!(m->arch = arch_find(name))) {
        log_error("%s: key general.architecture is \"%.60s\", which is not supported", model_file_name(m), name);
        return false;
    }
    for (const struct key_row *row = m->arch->keys; row->name; row++) {
        if (!key_read(m, row)) return false;
    }
    if (!head_sizes(m)) return false;
    keys_derive(&m->h);
    if (m->arch->derive) m->arch->derive(&m->h);
    return keys_agree(m);
}
