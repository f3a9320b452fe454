#ifndef WEIGHTS_H
#define WEIGHTS_H
/* The tensor rows that transformer decoders share. */

#include "model.h"

#define TENSORS_EMBED \
    { TOKEN_EMBD,  "token_embd.weight",  { N_EMBD, N_VOCAB }, USE_ROWS,   ALWAYS, 0 }, \
    { OUTPUT_NORM, "output_norm.weight", { N_EMBD },          USE_VECTOR, ALWAYS, 0 }, \
    { OUTPUT,      "output.weight",      { N_EMBD, N_VOCAB }, USE_MATRIX, ALWAYS, USE_TOKEN_EMBD }

#define TENSORS_ATTENTION \
    { ATTN_NORM,   "blk.%d.attn_norm.weight",   { N_EMBD },         USE_VECTOR, ALWAYS, 0 }, \
    { ATTN_Q,      "blk.%d.attn_q.weight",      { N_EMBD, N_Q },    USE_MATRIX, ALWAYS, 0 }, \
    { ATTN_K,      "blk.%d.attn_k.weight",      { N_EMBD, N_K },    USE_MATRIX, ALWAYS, 0 }, \
    { ATTN_V,      "blk.%d.attn_v.weight",      { N_EMBD, N_V },    USE_MATRIX, ALWAYS, 0 }, \
    { ATTN_OUT,    "blk.%d.attn_output.weight", { N_ATTN, N_EMBD }, USE_MATRIX, ALWAYS, 0 }

#define TENSORS_FFN \
    { FFN_NORM,    "blk.%d.ffn_norm.weight",    { N_EMBD },         USE_VECTOR, ALWAYS,   0 }, \
    { FFN_GATE,    "blk.%d.ffn_gate.weight",    { N_EMBD, N_FF },   USE_MATRIX, IF_DENSE, 0 }, \
    { FFN_UP,      "blk.%d.ffn_up.weight",      { N_EMBD, N_FF },   USE_MATRIX, IF_DENSE, 0 }, \
    { FFN_DOWN,    "blk.%d.ffn_down.weight",    { N_FF, N_EMBD },   USE_MATRIX, IF_DENSE, 0 }

#endif
