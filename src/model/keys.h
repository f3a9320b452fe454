#ifndef KEYS_H
#define KEYS_H
/* The metadata rows that transformer decoders share; an architecture's table starts with them and adds its own.
 * block_count comes first: per-layer rows need it. */

#include "model.h"

extern const char *const rope_scaling_names[];

#define KEYS_SHAPE \
    { .name = "block_count",                  .kind = KEY_U32,    .offset = FIELD(n_layer),     .min = 1, .max = MAX_LAYERS, .required = true }, \
    { .name = "context_length",               .kind = KEY_U32,    .offset = FIELD(n_ctx_train), .min = 1, .max = INT32_MAX,  .required = true }, \
    { .name = "embedding_length",             .kind = KEY_U32,    .offset = FIELD(n_embd),      .min = 1, .max = MAX_EMBD,   .required = true }, \
    { .name = "feed_forward_length",          .kind = KEY_LAYERS, .offset = FIELD(n_ff),        .min = 1, .max = MAX_FF,     .required = true }, \
    { .name = "attention.head_count",         .kind = KEY_LAYERS, .offset = FIELD(n_head),      .min = 1, .max = MAX_HEADS,  .required = true }, \
    { .name = "attention.head_count_kv",      .kind = KEY_LAYERS, .offset = FIELD(n_head_kv),   .min = 1, .max = MAX_HEADS }, \
    { .name = "attention.key_length",         .kind = KEY_U32,    .offset = FIELD(n_head_k),    .min = 1, .max = MAX_HEAD_SIZE }, \
    { .name = "attention.value_length",       .kind = KEY_U32,    .offset = FIELD(n_head_v),    .min = 1, .max = MAX_HEAD_SIZE }, \
    { .name = "attention.layer_norm_rms_epsilon", .kind = KEY_F32, .offset = FIELD(norm_eps),   .min = 0, .max = 1,          .required = true }, \
    { .name = "attention.scale",              .kind = KEY_F32,    .offset = FIELD(attn_scale),  .min = 0, .max = 1e6 }, \
    { .name = "attention.causal",             .kind = KEY_BOOL,   .offset = FIELD(causal),      .min = 0, .max = 1, .absent = 1 }, \
    { .name = "pooling_type",                 .kind = KEY_U32,    .offset = FIELD(pooling),     .min = 0, .max = LLAMA_POOLING_TYPE_RANK }, \
    { .name = "attn_logit_softcapping",       .kind = KEY_F32,    .offset = FIELD(attn_softcap),  .min = 0, .max = 1e6 }, \
    { .name = "final_logit_softcapping",      .kind = KEY_F32,    .offset = FIELD(final_softcap), .min = 0, .max = 1e6 }

#define KEYS_ROPE \
    { .name = "rope.dimension_count",         .kind = KEY_U32,    .offset = FIELD(n_rot),       .min = 2, .max = MAX_HEAD_SIZE }, \
    { .name = "rope.freq_base",               .kind = KEY_F32,    .offset = FIELD(rope_base),   .min = 1, .max = 1e15, .absent = 10000 }, \
    { .name = "rope.scaling.type",            .kind = KEY_CHOICE, .offset = FIELD(rope_scaling), .choices = rope_scaling_names, \
                                              .absent = LLAMA_ROPE_SCALING_TYPE_LINEAR }, \
    { .name = "rope.scaling.factor",          .kind = KEY_F32,    .offset = FIELD(rope_factor), .min = 0, .max = 1e6 }, \
    { .name = "rope.scale_linear",            .kind = KEY_F32,    .offset = FIELD(rope_scale_linear), .min = 0, .max = 1e6 }, \
    { .name = "rope.scaling.attn_factor",     .kind = KEY_F32,    .offset = FIELD(rope_attn_factor), .min = 1e-6, .max = 1e6, .absent = 1 }, \
    { .name = "rope.scaling.original_context_length", .kind = KEY_U32, .offset = FIELD(n_ctx_orig), .min = 1, .max = INT32_MAX }, \
    { .name = "rope.scaling.yarn_ext_factor", .kind = KEY_F32,    .offset = FIELD(yarn_ext_factor),  .min = -1, .max = 1e6, .absent = -1 }, \
    { .name = "rope.scaling.yarn_attn_factor", .kind = KEY_F32,   .offset = FIELD(yarn_attn_factor), .min = 1e-6, .max = 1e6, .absent = 1 }, \
    { .name = "rope.scaling.yarn_beta_fast",  .kind = KEY_F32,    .offset = FIELD(yarn_beta_fast),   .min = 0, .max = 1e6, .absent = 32 }, \
    { .name = "rope.scaling.yarn_beta_slow",  .kind = KEY_F32,    .offset = FIELD(yarn_beta_slow),   .min = 0, .max = 1e6, .absent = 1 }

#define KEYS_EXPERTS \
    { .name = "expert_count",                 .kind = KEY_U32,    .offset = FIELD(n_expert),      .min = 0, .max = MAX_EXPERTS }, \
    { .name = "expert_used_count",            .kind = KEY_U32,    .offset = FIELD(n_expert_used), .min = 0, .max = MAX_EXPERTS }, \
    { .name = "expert_feed_forward_length",   .kind = KEY_U32,    .offset = FIELD(n_ff_expert),   .min = 1, .max = MAX_FF }

#endif
