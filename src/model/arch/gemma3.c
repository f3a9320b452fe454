/* Gemma 3 (text): norms before and after each block, normalised queries and keys, five layers that see a sliding window
 * to one that sees everything, each kind with its own rotary base. Gemma Team 2025, "Gemma 3 Technical Report".
 * Files store norm weights ready to multiply with. */

#include "keys.h"
#include "weights.h"

#include <math.h>

static const struct key_row keys[] = {
    KEYS_SHAPE,
    KEYS_ROPE,
    { .name = "attention.sliding_window",         .kind = KEY_U32, .offset = FIELD(n_swa),         .min = 0, .max = INT32_MAX },
    { .name = "attention.sliding_window_pattern", .kind = KEY_U32, .offset = FIELD(swa_pattern),   .min = 1, .max = MAX_LAYERS, .absent = 6 },
    { .name = "rope.freq_base_swa",               .kind = KEY_F32, .offset = FIELD(rope_base_swa), .min = 1, .max = 1e15, .absent = 10000 },
    { .name = NULL },
};

static const struct tensor_row tensors[] = {
    TENSORS_EMBED,
    TENSORS_ATTENTION,
    TENSORS_FFN,
    { ATTN_Q_NORM,    "blk.%d.attn_q_norm.weight",         { N_HEAD_K }, USE_VECTOR, ALWAYS, 0 },
    { ATTN_K_NORM,    "blk.%d.attn_k_norm.weight",         { N_HEAD_K }, USE_VECTOR, ALWAYS, 0 },
    { ATTN_POST_NORM, "blk.%d.post_attention_norm.weight", { N_EMBD },   USE_VECTOR, ALWAYS, 0 },
    { FFN_POST_NORM,  "blk.%d.post_ffw_norm.weight",       { N_EMBD },   USE_VECTOR, ALWAYS, 0 },
    { .name = NULL },
};

/* The 27B model, the only one of 62 layers, scales queries by the width per head rather than by the head's size. */
static void derive(struct hparams *h) {
    h->embd_scale = sqrtf((float) h->n_embd);
    if (h->attn_scale == 0 && h->n_layer == 62) h->attn_scale = 1/sqrtf((float) h->n_embd/(float) h->n_head[0]);
}

static struct ggml_tensor *build(struct graph *g) {
    struct ggml_tensor *x = block_input(g);
    for (int il = 0; il < (int) g->model->h.n_layer; il++) {
        struct ggml_tensor *const *w = g->model->layers[il].t;
        struct ggml_tensor *y = block_attention(g, il, block_norm(g, x, w[ATTN_NORM]));
        x = ggml_add(g->ctx, block_norm(g, y, w[ATTN_POST_NORM]), block_residual(g, il, x));
        y = block_ffn(g, il, block_norm(g, x, w[FFN_NORM]), GGML_GLU_OP_GEGLU);
        x = block_control(g, il, ggml_add(g->ctx, block_norm(g, y, w[FFN_POST_NORM]), x));
    }
    return block_output(g, x);
}

const struct arch arch_gemma3 = {
    .name = "gemma3", .keys = keys, .tensors = tensors, .rope = LLAMA_ROPE_TYPE_NEOX, .derive = derive, .build = build,
};
