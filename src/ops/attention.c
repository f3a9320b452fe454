/* Builders of fused attention and of the key scorer of sparse attention. */

#include "build.h"

enum { PREC = 3, N_KV_MAX = 4, SINKS = 4 };             /* slots: two of op_params, one of src */

tensor *ggml_flash_attn_ext(context *ctx, tensor *q, tensor *k, tensor *v, tensor *mask, float scale, float max_bias,
                            float logit_softcap) {
    if (!q || !k || !v) return NULL;
    REQUIRE(__func__, same_ne(q, 0, k, 0) && same_ne(k, 1, v, 1), q, k, v, mask);
    REQUIRE(__func__, divides(k->ne[2], q->ne[2]) && divides(v->ne[2], q->ne[2]), q, k, v, mask);
    REQUIRE(__func__, same_ne(q, 3, k, 3) && same_ne(q, 3, v, 3), q, k, v, mask);
    REQUIRE(__func__, !(max_bias > 0.0f) || mask, q, k, v, mask);
    if (mask) {
        REQUIRE(__func__, mask->type == GGML_TYPE_F16 && ggml_is_contiguous(mask), q, k, v, mask);
        REQUIRE(__func__, mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1], q, k, v, mask);
        REQUIRE(__func__, divides(mask->ne[2], q->ne[2]) && divides(mask->ne[3], q->ne[3]), q, k, v, mask);
    }
    return PARAMS(op_new(ctx, GGML_OP_FLASH_ATTN_EXT, GGML_TYPE_F32, SHAPE(v->ne[0], q->ne[2], q->ne[1], q->ne[3]),
                         SOURCES(q, k, v, mask)), bits(scale), bits(max_bias), bits(logit_softcap));
}

static void require_attention(const char *call, const tensor *a) {
    REQUIRE(call, a->op == GGML_OP_FLASH_ATTN_EXT, (tensor *) a);
}
void ggml_flash_attn_ext_set_prec(tensor *a, enum ggml_prec prec) {
    if (!a) return;
    require_attention(__func__, a);
    param_set_i32(a, PREC, (int32_t) prec);
}
enum ggml_prec ggml_flash_attn_ext_get_prec(const tensor *a) {
    require_attention(__func__, a);
    return (enum ggml_prec) param_i32(a, PREC);
}
void ggml_flash_attn_ext_set_n_kv_max(tensor *a, int32_t n_kv_max) {
    if (!a) return;
    require_attention(__func__, a);
    param_set_i32(a, N_KV_MAX, n_kv_max);
}
void ggml_flash_attn_ext_add_sinks(tensor *a, tensor *sinks) {
    if (!a) return;
    require_attention(__func__, a);
    if (sinks) REQUIRE(__func__, sinks->type == GGML_TYPE_F32 && same_ne(sinks, 0, a->src[0], 2), a, sinks);
    a->src[SINKS] = sinks;
}

tensor *ggml_flash_attn_back(context *ctx, tensor *q, tensor *k, tensor *v, tensor *d, bool masked) {
    (void) ctx, (void) masked;
    op_refuse(__func__, "fused attention has a gradient", SOURCES(q, k, v, d));
    return NULL;
}

tensor *ggml_lightning_indexer(context *ctx, tensor *q, tensor *k, tensor *weights, tensor *mask) {
    if (!q || !k || !weights || !mask) return NULL;
    REQUIRE(__func__, q->type == GGML_TYPE_F32 && weights->type == GGML_TYPE_F32 && mask->type == GGML_TYPE_F16,
            q, k, weights, mask);
    REQUIRE(__func__, same_ne(q, 0, k, 0) && k->ne[1] == 1 && same_ne(q, 3, k, 3), q, k, weights, mask);
    REQUIRE(__func__, same_ne(weights, 0, q, 1) && same_ne(weights, 1, q, 2) && weights->ne[2] == 1 &&
            same_ne(weights, 3, q, 3), q, k, weights, mask);
    REQUIRE(__func__, same_ne(mask, 0, k, 2) && same_ne(mask, 1, q, 2) && mask->ne[2] == 1 &&
            divides(mask->ne[3], q->ne[3]), q, k, weights, mask);
    return op_new(ctx, GGML_OP_LIGHTNING_INDEXER, GGML_TYPE_F32, SHAPE(k->ne[2], q->ne[2], 1, q->ne[3]),
                  SOURCES(q, k, weights, mask));
}
