/* Files that change what a model answers: low-rank adapters, and control vectors, one of n_embd floats in tensor direction.N for
 * each layer N from 1 on, as their tools write them. Several of either add up. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* "FILE:SCALE", or a file alone: what stands behind the last colon is a scale if it is a number. The file's name, malloc'd; NULL
 * after an error line. */
static char *file_and_scale(const char *option, const char *text, float *scale) {
    const char *colon = strrchr(text, ':');
    char *end = NULL, *path;
    const double given = colon ? strtod(colon + 1, &end) : 1;
    const bool has_scale = colon && end != colon + 1 && !*end;
    const size_t length = has_scale ? (size_t) (colon - text) : strlen(text);
    *scale = has_scale ? (float) given : 1;
    if (!isfinite(*scale))            { fail("%s: '%s' is no scale", option, colon + 1); return NULL; }
    if (!(path = malloc(length + 1))) { fail("out of memory"); return NULL; }
    memcpy(path, text, length);
    path[length] = 0;
    return path;
}

/* Adapters are freed with the model. */
static bool loras_open(struct session *s, const struct text_list *list) {
    struct llama_adapter_lora *adapters[LIST_MAX];
    float scales[LIST_MAX];
    for (int i = 0; i < list->n; i++) {
        char *path = file_and_scale("--lora", list->items[i], &scales[i]);
        adapters[i] = path ? llama_adapter_lora_init(s->model, path) : NULL;
        if (path && !adapters[i]) fail_library(path, "no adapter of this model");
        free(path);
        if (!adapters[i]) return false;
    }
    return !list->n || !llama_set_adapters_lora(s->ctx, adapters, (size_t) list->n, scales) || !fail_library(NULL, "the adapters cannot be used");
}

/* ---- control vectors ---- */

struct control { float *data; int n_embd, n_layer; };       /* [n_embd, n_layer - 1]: those of layers 1, 2, ... */

/* The layer that a tensor's name gives, 0 if none. */
static int layer_of(const char *name) {
    static const char start[] = "direction.";
    char *end;
    if (strncmp(name, start, sizeof start - 1) || name[sizeof start - 1] < '0' || name[sizeof start - 1] > '9') return 0;
    const long n = strtol(name + sizeof start - 1, &end, 10);
    return *end || n > INT32_MAX ? 0 : (int) n;
}

static bool control_add_tensor(const struct control *c, const struct ggml_tensor *t, float scale, const char *path) {
    const int layer = layer_of(ggml_get_name(t));
    if (layer < 1 || layer >= c->n_layer)
        return !fail("%s: tensor %s is for no layer from 1 to %d of the model", path, ggml_get_name(t), c->n_layer - 1);
    if (t->type != GGML_TYPE_F32 || ggml_nelements(t) != c->n_embd)
        return !fail("%s: tensor %s has %" PRId64 " elements of %s, wanted %d of f32", path, ggml_get_name(t), ggml_nelements(t), ggml_type_name(t->type), c->n_embd);
    float *to = c->data + (size_t) (layer - 1)*(size_t) c->n_embd;
    for (int i = 0; i < c->n_embd; i++) {
        to[i] += scale*((const float *) t->data)[i];
        if (!isfinite(to[i])) return !fail("%s: tensor %s has values that are not finite", path, ggml_get_name(t));
    }
    return true;
}

static bool control_add(const struct control *c, const char *path, float scale) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params) { .no_alloc = false, .ctx = &ctx });
    if (!g) return !fail_library(path, "cannot be read");
    bool ok = true;
    int n = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); ok && t; t = ggml_get_next_tensor(ctx, t)) {
        if (strncmp(ggml_get_name(t), "direction", 9)) continue;        /* the data of the whole file are a tensor too */
        ok = control_add_tensor(c, t, scale, path);
        n++;
    }
    if (ok && !n) ok = !fail("%s: no tensor is named direction.N, as control vectors are", path);
    gguf_free(g);
    ggml_free(ctx);
    return ok;
}

static bool controls_open(struct session *s, const struct text_list *list, const int64_t layers[2]) {
    struct control c = { .n_embd = llama_model_n_embd(s->model), .n_layer = llama_model_n_layer(s->model) };
    const int from = layers[0] ? (int) layers[0] : 1, to = layers[0] ? (int) layers[1] : c.n_layer - 1;
    if (!list->n) return true;
    const size_t n = (size_t) c.n_embd*(size_t) (c.n_layer - 1);
    c.data = calloc(n + 1, sizeof *c.data);
    bool ok = c.data || !fail("out of memory");
    for (int i = 0; ok && i < list->n; i++) {
        float scale;
        char *path = file_and_scale("--control-vector", list->items[i], &scale);
        ok = path && control_add(&c, path, scale);
        free(path);
    }
    ok = ok && (!llama_set_adapter_cvec(s->ctx, c.data, n, c.n_embd, from, to) || !fail_library(NULL, "the control vectors cannot be used"));
    free(c.data);
    return ok;
}

bool adapters_open(struct session *s, const struct model_args *a) {
    return loras_open(s, &a->lora) && controls_open(s, &a->control, a->control_layers);
}
