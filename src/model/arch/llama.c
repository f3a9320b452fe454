/* The llama family: rotary attention with grouped heads, gated feed-forward, or experts in its place.
 * Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models"; experts as in Jiang et al. 2024, "Mixtral
 * of Experts". Converted files hold query and key rows so that rotated pairs are neighbours. */

#include "keys.h"
#include "weights.h"

static const struct key_row keys[] = {
    KEYS_SHAPE,
    KEYS_ROPE,
    KEYS_EXPERTS,
    { .name = NULL },
};

static const struct tensor_row tensors[] = {
    TENSORS_EMBED,
    TENSORS_ATTENTION,
    TENSORS_FFN,
    { ROPE_FREQS,       "rope_freqs.weight",            { N_ROT_HALF },                    USE_FACTORS, OPTIONAL,   0 },
    { ATTN_Q_BIAS,      "blk.%d.attn_q.bias",           { N_Q },                           USE_VECTOR,  OPTIONAL,   0 },
    { ATTN_K_BIAS,      "blk.%d.attn_k.bias",           { N_K },                           USE_VECTOR,  OPTIONAL,   0 },
    { ATTN_V_BIAS,      "blk.%d.attn_v.bias",           { N_V },                           USE_VECTOR,  OPTIONAL,   0 },
    { ATTN_OUT_BIAS,    "blk.%d.attn_output.bias",      { N_EMBD },                        USE_VECTOR,  OPTIONAL,   0 },
    { FFN_GATE_BIAS,    "blk.%d.ffn_gate.bias",         { N_FF },                          USE_VECTOR,  OPTIONAL,   0 },
    { FFN_UP_BIAS,      "blk.%d.ffn_up.bias",           { N_FF },                          USE_VECTOR,  OPTIONAL,   0 },
    { FFN_DOWN_BIAS,    "blk.%d.ffn_down.bias",         { N_EMBD },                        USE_VECTOR,  OPTIONAL,   0 },
    { FFN_ROUTER,       "blk.%d.ffn_gate_inp.weight",   { N_EMBD, N_EXPERT },              USE_MATRIX,  IF_EXPERTS, 0 },
    { FFN_GATE_EXPERTS, "blk.%d.ffn_gate_exps.weight",  { N_EMBD, N_FF_EXPERT, N_EXPERT }, USE_EXPERTS, IF_EXPERTS, 0 },
    { FFN_UP_EXPERTS,   "blk.%d.ffn_up_exps.weight",    { N_EMBD, N_FF_EXPERT, N_EXPERT }, USE_EXPERTS, IF_EXPERTS, 0 },
    { FFN_DOWN_EXPERTS, "blk.%d.ffn_down_exps.weight",  { N_FF_EXPERT, N_EMBD, N_EXPERT }, USE_EXPERTS, IF_EXPERTS, 0 },
    { .name = NULL },
};

static struct ggml_tensor *build(struct graph *g) {
    struct ggml_tensor *x = block_input(g);
    for (int il = 0; il < (int) g->model->h.n_layer; il++) {
        struct ggml_tensor *const *w = g->model->layers[il].t;
        struct ggml_tensor *y = block_attention(g, il, block_norm(g, x, w[ATTN_NORM]));
        x = ggml_add(g->ctx, y, block_residual(g, il, x));
        y = block_ffn(g, il, block_norm(g, x, w[FFN_NORM]), GGML_GLU_OP_SWIGLU);
        x = block_control(g, il, ggml_add(g->ctx, y, x));
    }
    return block_output(g, x);
}

const struct arch arch_llama = {
    .name = "llama", .keys = keys, .tensors = tensors, .rope = LLAMA_ROPE_TYPE_NORM, .build = build,
};
