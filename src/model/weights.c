/* The tensors of a model: each row of the architecture's table is looked up by name and checked for shape and type.
 *
 * Shapes are written in named dimensions, which the model's numbers give a size. A type is right when the model's device
 * says that it computes with it, so no graph of a loaded model meets an unsupported weight. */

#include "model.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

static int64_t dim_size(const struct hparams *h, enum tensor_dim dim, int il) {
    switch (dim) {
        case N_EMBD:      return h->n_embd;
        case N_VOCAB:     return h->n_vocab;
        case N_Q:         return (int64_t) h->n_head[il]*h->n_head_k;
        case N_K:         return (int64_t) h->n_head_kv[il]*h->n_head_k;
        case N_V:         return (int64_t) h->n_head_kv[il]*h->n_head_v;
        case N_ATTN:      return (int64_t) h->n_head[il]*h->n_head_v;
        case N_HEAD_K:    return h->n_head_k;
        case N_FF:        return h->n_ff[il];
        case N_FF_EXPERT: return h->n_ff_expert;
        case N_EXPERT:    return h->n_expert;
        case N_ROT_HALF:  return h->n_rot/2;
        case DIM_NONE:    break;
    }
    return 1;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct ggml_tensor *const *) a)->name, (*(struct ggml_tensor *const *) b)->name);
}

static struct ggml_tensor *lookup(const struct name_index *index, const char *name) {
    struct ggml_tensor key = { 0 }, *const at = &key;
    snprintf(key.name, sizeof key.name, "%s", name);
    struct ggml_tensor **found = bsearch(&at, index->sorted, index->n, sizeof *index->sorted, by_name);
    return found ? *found : NULL;
}

static bool shape_fits(const struct llama_model *m, const struct ggml_tensor *t, const struct tensor_row *row, int il) {
    int64_t want[4];
    for (int i = 0; i < 4; i++) want[i] = dim_size(&m->h, row->dims[i], il);
    if (!memcmp(want, t->ne, sizeof want)) return true;
    log_error("%s: tensor %s has shape [%lld, %lld, %lld, %lld], wanted [%lld, %lld, %lld, %lld]", model_file_name(m),
              t->name, (long long) t->ne[0], (long long) t->ne[1], (long long) t->ne[2], (long long) t->ne[3],
              (long long) want[0], (long long) want[1], (long long) want[2], (long long) want[3]);
    return false;
}

/* The op that will read the tensor, on operands of the types it will have. */
static struct ggml_tensor *trial_op(struct ggml_context *ctx, struct ggml_tensor *w, enum tensor_use use) {
    struct ggml_tensor *ids = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 1, 1);
    struct ggml_tensor *x   = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, w->ne[0], 1, 1);
    switch (use) {
        case USE_MATRIX:  return ggml_mul_mat(ctx, w, x);
        case USE_EXPERTS: return ggml_mul_mat_id(ctx, w, x, ids);
        case USE_ROWS:    return ggml_get_rows(ctx, w, ids);
        default:          return NULL;
    }
}

bool weight_type_fits(const struct llama_model *m, struct ggml_tensor *t, enum tensor_use use) {
    if (use == USE_VECTOR || use == USE_FACTORS) {
        if (t->type == GGML_TYPE_F32) return true;
    } else {
        _Alignas(16) unsigned char memory[8192];
        struct ggml_context *ctx = ggml_init((struct ggml_init_params) { sizeof memory, memory, true });
        const struct ggml_tensor *op = ctx ? trial_op(ctx, t, use) : NULL;
        const bool fits = op && ggml_backend_dev_supports_op(m->device, op);
        ggml_free(ctx);
        if (fits) return true;
    }
    log_error("%s: tensor %s has type %s, which is not supported for it", model_file_name(m), t->name,
              ggml_type_name(t->type));
    return false;
}

static bool wanted(const struct hparams *h, enum tensor_when when) {
    return when == IF_DENSE ? h->n_expert == 0 : when == IF_EXPERTS ? h->n_expert > 0 : true;
}

static bool find(struct llama_model *m, const struct name_index *index, const struct tensor_row *row, int il,
                 struct ggml_tensor **slot) {
    if (!wanted(&m->h, row->when)) return true;
    char name[GGML_MAX_NAME];
    snprintf(name, sizeof name, row->name, il);
    struct ggml_tensor *t = lookup(index, name);
    if (!t && row->or_else == USE_TOKEN_EMBD) {
        t = m->t[TOKEN_EMBD];
        *slot = t;
        return weight_type_fits(m, t, row->use);
    }
    if (!t && row->when == OPTIONAL) return true;
    if (!t) {
        log_error("%s: tensor %s is missing", model_file_name(m), name);
        return false;
    }
    *slot = t;
    return shape_fits(m, t, row, il < 0 ? 0 : il) && weight_type_fits(m, t, row->use);
}

bool weights_find(struct llama_model *m, const struct name_index *index) {
    qsort(index->sorted, index->n, sizeof *index->sorted, by_name);
    for (size_t i = 1; i < index->n; i++) {
        if (by_name(&index->sorted[i - 1], &index->sorted[i]) == 0) {
            log_error("%s: tensor %s is in two files of the model", model_file_name(m), index->sorted[i]->name);
            return false;
        }
    }
    for (const struct tensor_row *row = m->arch->tensors; row->name; row++) {
        if (!strchr(row->name, '%')) {
            if (!find(m, index, row, -1, &m->t[row->id])) return false;
            continue;
        }
        for (uint32_t il = 0; il < m->h.n_layer; il++) {
            if (!find(m, index, row, (int) il, &m->layers[il].t[row->id])) return false;
        }
    }
    return true;
}
