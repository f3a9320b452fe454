#ifndef TINY_H
#define TINY_H
/* Small complete models of any supported architecture, built in memory and written to a file: what a test changes in the
 * gguf_context before tiny_write is what the loader meets. */

#include "check.h"
#include "llama.h"

#include <unistd.h>

struct tiny_shape {
    const char *arch;                   /* "llama" or "gemma3" */
    int n_layer, n_embd, n_head, n_head_kv, n_ff, n_expert, n_used;
    int n_swa;                          /* gemma3 */
    enum ggml_type type;                /* of matrices: F32 or F16 */
    bool no_data;                       /* only keys and shapes: tiny_write leaves holes in the file */
};

struct tiny {
    struct gguf_context *g;
    struct ggml_context *ctx;
    struct tiny_shape    shape;
    int                  n_vocab;
    uint64_t             seed;
    char                 path[64];      /* the file, removed by tiny_free */
};

enum { TINY_VOCAB = 259 + 26 };         /* 3 special, 256 bytes, the letters */

static inline struct tiny_shape tiny_llama(void) {
    return (struct tiny_shape) { "llama", 1, 32, 4, 2, 64, 0, 0, 0, GGML_TYPE_F32, false };
}

static inline void tiny_u32(struct tiny *t, const char *name, uint32_t v) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", t->shape.arch, name);
    gguf_set_val_u32(t->g, key, v);
}

static inline void tiny_f32(struct tiny *t, const char *name, float v) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", t->shape.arch, name);
    gguf_set_val_f32(t->g, key, v);
}

/* Adds a tensor of seeded values around `mean`. */
static inline struct ggml_tensor *tiny_tensor(struct tiny *t, const char *name, enum ggml_type type, float mean,
                                              int64_t ne0, int64_t ne1, int64_t ne2) {
    struct ggml_tensor *x = ggml_new_tensor_3d(t->ctx, type, ne0, ne1, ne2);
    const float scale = 1/sqrtf((float) ne0);
    ggml_set_name(x, name);
    for (int64_t i = 0; x->data && i < ggml_nelements(x); i++) {
        const float v = mean + scale*rnd_f32(&t->seed);
        if (type == GGML_TYPE_F16) ((ggml_fp16_t *) x->data)[i] = ggml_fp32_to_fp16(v);
        else                       ((float *) x->data)[i] = v;
    }
    gguf_add_tensor(t->g, x);
    return x;
}

static inline void tiny_block(struct tiny *t, int il, const char *name, enum ggml_type type, float mean,
                              int64_t ne0, int64_t ne1, int64_t ne2) {
    char full[64];
    snprintf(full, sizeof full, "blk.%d.%s.weight", il, name);
    tiny_tensor(t, full, type, mean, ne0, ne1, ne2);
}

static inline void tiny_vocabulary(struct tiny *t) {
    static char texts[TINY_VOCAB][8];
    const char *tokens[TINY_VOCAB];
    float       scores[TINY_VOCAB];
    int32_t     types [TINY_VOCAB];
    for (int i = 0; i < TINY_VOCAB; i++) {
        if (i < 3)        snprintf(texts[i], sizeof texts[i], "%s", (const char *[]) { "<unk>", "<s>", "</s>" }[i]);
        else if (i < 259) snprintf(texts[i], sizeof texts[i], "<0x%02X>", (unsigned) i - 3);
        else              snprintf(texts[i], sizeof texts[i], "%c", 'a' + (i - 259));
        tokens[i] = texts[i];
        scores[i] = i < 259 ? 0 : -(float) (i - 259);
        types [i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    }
    gguf_set_val_str (t->g, "tokenizer.ggml.model", "llama");
    gguf_set_arr_str (t->g, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
    gguf_set_arr_data(t->g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, TINY_VOCAB);
    gguf_set_arr_data(t->g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, TINY_VOCAB);
    gguf_set_val_u32 (t->g, "tokenizer.ggml.unknown_token_id", 0);
    gguf_set_val_u32 (t->g, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32 (t->g, "tokenizer.ggml.eos_token_id", 2);
}

static inline void tiny_layer(struct tiny *t, int il) {
    const struct tiny_shape *s = &t->shape;
    const int64_t d = s->n_embd/s->n_head, e = s->n_embd;
    const bool gemma = !strcmp(s->arch, "gemma3");
    tiny_block(t, il, "attn_norm",   GGML_TYPE_F32, 1, e, 1, 1);
    tiny_block(t, il, "attn_q",      s->type, 0, e, d*s->n_head, 1);
    tiny_block(t, il, "attn_k",      s->type, 0, e, d*s->n_head_kv, 1);
    tiny_block(t, il, "attn_v",      s->type, 0, e, d*s->n_head_kv, 1);
    tiny_block(t, il, "attn_output", s->type, 0, d*s->n_head, e, 1);
    tiny_block(t, il, "ffn_norm",    GGML_TYPE_F32, 1, e, 1, 1);
    if (s->n_expert) {
        tiny_block(t, il, "ffn_gate_inp",  GGML_TYPE_F32, 0, e, s->n_expert, 1);
        tiny_block(t, il, "ffn_gate_exps", s->type, 0, e, s->n_ff, s->n_expert);
        tiny_block(t, il, "ffn_up_exps",   s->type, 0, e, s->n_ff, s->n_expert);
        tiny_block(t, il, "ffn_down_exps", s->type, 0, s->n_ff, e, s->n_expert);
    } else {
        tiny_block(t, il, "ffn_gate", s->type, 0, e, s->n_ff, 1);
        tiny_block(t, il, "ffn_up",   s->type, 0, e, s->n_ff, 1);
        tiny_block(t, il, "ffn_down", s->type, 0, s->n_ff, e, 1);
    }
    if (!gemma) return;
    tiny_block(t, il, "attn_q_norm",         GGML_TYPE_F32, 1, d, 1, 1);
    tiny_block(t, il, "attn_k_norm",         GGML_TYPE_F32, 1, d, 1, 1);
    tiny_block(t, il, "post_attention_norm", GGML_TYPE_F32, 1, e, 1, 1);
    tiny_block(t, il, "post_ffw_norm",       GGML_TYPE_F32, 1, e, 1, 1);
}

static inline void tiny_keys(struct tiny *t) {
    const struct tiny_shape *s = &t->shape;
    gguf_set_val_str(t->g, "general.architecture", s->arch);
    tiny_u32(t, "block_count",          (uint32_t) s->n_layer);
    tiny_u32(t, "context_length",       512);
    tiny_u32(t, "embedding_length",     (uint32_t) s->n_embd);
    tiny_u32(t, "feed_forward_length",  (uint32_t) s->n_ff);
    tiny_u32(t, "attention.head_count", (uint32_t) s->n_head);
    tiny_u32(t, "attention.head_count_kv", (uint32_t) s->n_head_kv);
    tiny_f32(t, "attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_f32(t, "rope.freq_base", 10000);
    if (s->n_expert) tiny_u32(t, "expert_count", (uint32_t) s->n_expert);
    if (s->n_expert) tiny_u32(t, "expert_used_count", (uint32_t) s->n_used);
    if (s->n_swa)    tiny_u32(t, "attention.sliding_window", (uint32_t) s->n_swa);
}

static inline struct tiny tiny_new(struct tiny_shape shape) {
    struct tiny t = { .shape = shape, .seed = 1, .n_vocab = TINY_VOCAB };
    t.g   = gguf_init_empty();
    t.ctx = ggml_init((struct ggml_init_params) { (size_t) 64 << 20, NULL, shape.no_data });
    tiny_keys(&t);
    tiny_vocabulary(&t);
    tiny_tensor(&t, "token_embd.weight", shape.type, 0, shape.n_embd, TINY_VOCAB, 1);
    tiny_tensor(&t, "output_norm.weight", GGML_TYPE_F32, 1, shape.n_embd, 1, 1);
    for (int il = 0; il < shape.n_layer; il++) tiny_layer(&t, il);
    snprintf(t.path, sizeof t.path, "/tmp/tiny-%d.gguf", (int) getpid());
    return t;
}

static inline void tiny_write(const struct tiny *t) {
    if (!gguf_write_to_file(t->g, t->path, t->shape.no_data)) exit(fprintf(stderr, "%s: cannot write\n", t->path));
    if (!t->shape.no_data) return;
    const int64_t last = gguf_get_n_tensors(t->g) - 1;
    const size_t size = gguf_get_meta_size(t->g) + gguf_get_tensor_offset(t->g, last) +
                        gguf_get_tensor_size(t->g, last);
    if (truncate(t->path, (off_t) size)) exit(fprintf(stderr, "%s: cannot extend\n", t->path));
}

static inline void tiny_free(struct tiny *t) {
    unlink(t->path);
    gguf_free(t->g);
    ggml_free(t->ctx);
}

/* ---- the log of the model library, caught ---------------------------------------------------------------------- */

static char tiny_log[4096];
static int  tiny_errors;

static inline void tiny_catch(enum ggml_log_level level, const char *text, void *user_data) {
    (void) user_data;
    if (level == GGML_LOG_LEVEL_ERROR) tiny_errors++;
    const size_t used = strlen(tiny_log);
    if (level >= GGML_LOG_LEVEL_WARN) snprintf(tiny_log + used, sizeof tiny_log - used, "%s", text);
}

static inline void tiny_log_clear(void) { tiny_log[0] = 0; tiny_errors = 0; }

#endif
