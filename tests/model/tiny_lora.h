#ifndef TINY_LORA_H
#define TINY_LORA_H
/* Small adapters for tiny models, and the models that they amount to: the same weights with scale*B*A added in double. */

#include "tiny.h"

struct tiny_lora {
    struct gguf_context *g;
    struct ggml_context *ctx;
    int      rank;
    float    alpha;                     /* 0: the file has none */
    uint64_t seed;
    char     path[64];                  /* the file, removed by lora_free */
};

static inline struct tiny_lora lora_new(const char *arch, int rank, float alpha, int number) {
    struct tiny_lora l = { .g = gguf_init_empty(), .rank = rank, .alpha = alpha, .seed = 100 + (uint64_t) number };
    l.ctx = ggml_init((struct ggml_init_params) { (size_t) 8 << 20, NULL, false });
    gguf_set_val_str(l.g, "general.type", "adapter");
    gguf_set_val_str(l.g, "general.architecture", arch);
    gguf_set_val_str(l.g, "adapter.type", "lora");
    if (alpha != 0) gguf_set_val_f32(l.g, "adapter.lora.alpha", alpha);
    snprintf(l.path, sizeof l.path, "/tmp/tiny-lora-%d-%d.gguf", (int) getpid(), number);
    return l;
}

static inline void lora_half(struct tiny_lora *l, const char *name, const char *half, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    struct ggml_tensor *x = ggml_new_tensor_3d(l->ctx, type, ne0, ne1, ne2);
    char full[96];
    snprintf(full, sizeof full, "%s.lora_%s", name, half);
    ggml_set_name(x, full);
    for (int64_t i = 0; i < ggml_nelements(x); i++) {
        const float v = 0.3f*rnd_f32(&l->seed);
        if (type == GGML_TYPE_F16) ((ggml_fp16_t *) x->data)[i] = ggml_fp32_to_fp16(v);
        else                       ((float *) x->data)[i] = v;
    }
    gguf_add_tensor(l->g, x);
}

static inline bool lora_is_embedding(const char *name) { return !strcmp(name, "token_embd.weight"); }

/* Both halves for the model's weight of that name; output.weight stands for the embedding's matrix where there is none. */
static inline void lora_pair(struct tiny_lora *l, const struct tiny *t, const char *name, enum ggml_type type) {
    const struct ggml_tensor *w = ggml_get_tensor(t->ctx, name);
    if (!w) w = ggml_get_tensor(t->ctx, "token_embd.weight");
    const bool rows = lora_is_embedding(name);
    lora_half(l, name, "a", type, rows ? l->rank : w->ne[0], rows ? w->ne[1] : l->rank, w->ne[2]);
    lora_half(l, name, "b", type, l->rank, rows ? w->ne[0] : w->ne[1], w->ne[2]);
}

static inline double lora_at(const struct ggml_tensor *x, int64_t i, int64_t j, int64_t k) {
    const int64_t at = i + x->ne[0]*(j + x->ne[1]*k);
    return x->type == GGML_TYPE_F16 ? (double) ggml_fp16_to_fp32(((const ggml_fp16_t *) x->data)[at]) : (double) ((const float *) x->data)[at];
}

/* Adds `scale` times the adapter's product to the F32 weights of t. */
static inline void lora_merge(const struct tiny_lora *l, struct tiny *t, double scale) {
    for (struct ggml_tensor *a = ggml_get_first_tensor(l->ctx); a; a = ggml_get_next_tensor(l->ctx, a)) {
        char name[96];
        const size_t n = strlen(a->name);
        snprintf(name, sizeof name, "%s", a->name);
        if (strcmp(a->name + n - 7, ".lora_a")) continue;
        name[n - 1] = 'b';
        const struct ggml_tensor *b = ggml_get_tensor(l->ctx, name);
        name[n - 7] = 0;
        struct ggml_tensor *w = ggml_get_tensor(t->ctx, name);
        const bool rows = lora_is_embedding(name);
        const double factor = l->alpha != 0 ? scale*(double) l->alpha/l->rank : scale;
        for (int64_t at = 0; at < ggml_nelements(w); at++) {
            const int64_t i = at % w->ne[0], j = at/w->ne[0] % w->ne[1], k = at/w->ne[0]/w->ne[1];
            double sum = 0;
            for (int r = 0; r < l->rank; r++) sum += rows ? lora_at(a, r, j, 0)*lora_at(b, r, i, 0) : lora_at(a, i, r, k)*lora_at(b, r, j, k);
            ((float *) w->data)[at] = (float) ((double) ((float *) w->data)[at] + factor*sum);
        }
    }
}

static inline void lora_write(const struct tiny_lora *l) {
    if (!gguf_write_to_file(l->g, l->path, false)) exit(fprintf(stderr, "%s: cannot write\n", l->path));
}

static inline void lora_free(struct tiny_lora *l) {
    unlink(l->path);
    gguf_free(l->g);
    ggml_free(l->ctx);
}

#endif
