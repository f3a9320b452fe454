/* Builders of rotary position embedding, forward and backward. One parameter block serves all of them. */

#include "build.h"

#include <math.h>

enum { N_DIMS = 1, MODE = 2, N_OFFSET = 15 };           /* slots of op_params */

struct rope {
    int   n_dims, mode, n_ctx_orig;
    float freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow;
    const int *sections;                                /* t, h, w, e; NULL: none */
};

static tensor *rope(const char *call, context *ctx, enum ggml_op op, tensor *a, tensor *pos, tensor *factors,
                    struct rope p, bool inplace) {
    if (!a || !pos) return NULL;
    static const int none[GGML_MROPE_SECTIONS];
    const bool multi = p.mode & GGML_ROPE_TYPE_MROPE;
    const int *s = multi && p.sections ? p.sections : none;
    REQUIRE(call, (p.mode & 1) == 0, a, pos, factors);
    REQUIRE(call, pos->type == GGML_TYPE_I32 && ggml_is_vector(pos), a, pos, factors);
    REQUIRE(call, pos->ne[0] == a->ne[2]*(multi ? 4 : 1), a, pos, factors);
    REQUIRE(call, a->type == GGML_TYPE_F32 || a->type == GGML_TYPE_F16, a, pos, factors);
    REQUIRE(call, p.n_dims >= 0 && p.n_dims % 2 == 0 && p.n_dims <= a->ne[0], a, pos, factors);
    REQUIRE(call, p.mode != GGML_ROPE_TYPE_VISION || a->ne[0] == 2*(int64_t) p.n_dims, a, pos, factors);
    if (multi) {
        REQUIRE(call, s[0] >= 0 && s[1] >= 0 && s[2] >= 0 && s[3] >= 0 && (s[0] | s[1] | s[2]) > 0, a, pos, factors);
        REQUIRE(call, (int64_t) s[0] + s[1] + s[2] + s[3] <= a->ne[0], a, pos, factors);
    }
    if (factors) {
        const int64_t used = p.mode == GGML_ROPE_TYPE_VISION ? p.n_dims : p.n_dims/2;
        REQUIRE(call, factors->type == GGML_TYPE_F32 && factors->ne[0] >= used, a, pos, factors);
    }
    return PARAMS(op_like(ctx, op, a, inplace, SOURCES(a, pos, factors)), 0, p.n_dims, p.mode, 0, p.n_ctx_orig,
                  bits(p.freq_base), bits(p.freq_scale), bits(p.ext_factor), bits(p.attn_factor), bits(p.beta_fast),
                  bits(p.beta_slow), s[0], s[1], s[2], s[3]);
}

static struct rope plain(int n_dims, int mode) {
    return (struct rope) { .n_dims = n_dims, .mode = mode, .freq_base = 10000.0f, .freq_scale = 1.0f, .attn_factor = 1.0f };
}
tensor *ggml_rope(context *ctx, tensor *a, tensor *b, int n_dims, int mode) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, NULL, plain(n_dims, mode), false);
}
tensor *ggml_rope_inplace(context *ctx, tensor *a, tensor *b, int n_dims, int mode) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, NULL, plain(n_dims, mode), true);
}

/* The long parameter list, once: as declared, and as the block. */
#define FREQUENCIES int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor, float attn_factor, \
                    float beta_fast, float beta_slow
#define BLOCK(sections) \
    (struct rope) { n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow, sections }

tensor *ggml_rope_ext(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims, FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, c, BLOCK(NULL), false);
}
tensor *ggml_rope_ext_inplace(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims, FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, c, BLOCK(NULL), true);
}
tensor *ggml_rope_ext_back(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims, FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE_BACK, a, b, c, BLOCK(NULL), false);
}
tensor *ggml_rope_custom(context *ctx, tensor *a, tensor *b, int n_dims, FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, NULL, BLOCK(NULL), false);
}
tensor *ggml_rope_custom_inplace(context *ctx, tensor *a, tensor *b, int n_dims, FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, NULL, BLOCK(NULL), true);
}
tensor *ggml_rope_multi(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims, int sections[GGML_MROPE_SECTIONS],
                        FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, c, BLOCK(sections), false);
}
tensor *ggml_rope_multi_inplace(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims,
                                int sections[GGML_MROPE_SECTIONS], FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE, a, b, c, BLOCK(sections), true);
}
tensor *ggml_rope_multi_back(context *ctx, tensor *a, tensor *b, tensor *c, int n_dims, int sections[GGML_MROPE_SECTIONS],
                             FREQUENCIES) {
    return rope(__func__, ctx, GGML_OP_ROPE_BACK, a, b, c, BLOCK(sections), false);
}

/* The pair whose wave turns `beta` times within the original context (Peng et al. 2023, "YaRN", section 3.2). */
static float corr_dim(int n_dims, int n_ctx_orig, float freq_base, float beta) {
    const double two_pi = 6.283185307179586;
    return (float) (n_dims*log(n_ctx_orig/(beta*two_pi))/(2.0*log((double) freq_base)));
}
void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow, float dims[2]) {
    dims[0] = fmaxf(0.0f, floorf(corr_dim(n_dims, n_ctx_orig, freq_base, beta_fast)));
    dims[1] = fminf((float) (n_dims - 1), ceilf(corr_dim(n_dims, n_ctx_orig, freq_base, beta_slow)));
}

tensor *ggml_rope_set_offset(tensor *a, int n_offs) {
    if (!a) return NULL;
    REQUIRE(__func__, a->op == GGML_OP_ROPE || a->op == GGML_OP_ROPE_BACK, a);
    REQUIRE(__func__, param_i32(a, MODE) != GGML_ROPE_TYPE_VISION, a);
    REQUIRE(__func__, n_offs >= 0 && (int64_t) n_offs + param_i32(a, N_DIMS) <= a->ne[0], a);
    param_set_i32(a, N_OFFSET, n_offs);
    return a;
}
