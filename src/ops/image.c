/* Builders of ops on grids: pooling, resizing, padding, rolling, windows and relative positions. */

#include "build.h"

/* ---- pooling ------------------------------------------------------------------------------------------------------- */

tensor *ggml_pool_1d(context *ctx, tensor *a, enum ggml_op_pool op, int k0, int s0, int p0) {
    if (!a) return NULL;
    REQUIRE(__func__, op >= 0 && op < GGML_OP_POOL_COUNT && k0 > 0 && s0 > 0 && p0 >= 0, a);
    const int64_t room = a->ne[0] + 2*(int64_t) p0 - k0;
    REQUIRE(__func__, room >= 0, a);
    return PARAMS(op_new(ctx, GGML_OP_POOL_1D, GGML_TYPE_F32, SHAPE(room/s0 + 1, a->ne[1], a->ne[2], a->ne[3]), SOURCES(a)),
                  (int32_t) op, k0, s0, p0);
}

/* Half a pixel of padding is a whole one to one side, so the size is computed with the fraction. */
static int64_t pool_positions(int64_t n, int k, int s, float p) {
    const float positions = ((float) n + 2.0f*p - (float) k)/(float) s + 1.0f;
    return positions >= 1.0f ? (int64_t) positions : 0;
}
static bool pool_rules(enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1) {
    return op >= 0 && op < GGML_OP_POOL_COUNT && k0 > 0 && k1 > 0 && s0 > 0 && s1 > 0 && p0 >= 0.0f && p1 >= 0.0f &&
           p0 < 1e6f && p1 < 1e6f;
}

tensor *ggml_pool_2d(context *ctx, tensor *a, enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1) {
    if (!a) return NULL;
    REQUIRE(__func__, pool_rules(op, k0, k1, s0, s1, p0, p1), a);
    const int64_t ow = pool_positions(a->ne[0], k0, s0, p0), oh = pool_positions(a->ne[1], k1, s1, p1);
    REQUIRE(__func__, ow > 0 && oh > 0, a);
    return PARAMS(op_new(ctx, GGML_OP_POOL_2D, GGML_TYPE_F32, SHAPE(ow, oh, a->ne[2], a->ne[3]), SOURCES(a)),
                  (int32_t) op, k0, k1, s0, s1, (int32_t) p0, (int32_t) p1);
}

tensor *ggml_pool_2d_back(context *ctx, tensor *a, tensor *af, enum ggml_op_pool op, int k0, int k1, int s0, int s1,
                          float p0, float p1) {
    if (!a || !af) return NULL;
    REQUIRE(__func__, pool_rules(op, k0, k1, s0, s1, p0, p1), a, af);
    REQUIRE(__func__, same_ne(a, 2, af, 2) && same_ne(a, 3, af, 3), a, af);
    return PARAMS(op_new(ctx, GGML_OP_POOL_2D_BACK, GGML_TYPE_F32, af->ne, SOURCES(a, af)),
                  (int32_t) op, k0, k1, s0, s1, (int32_t) p0, (int32_t) p1);
}

/* ---- size ---------------------------------------------------------------------------------------------------------- */

static tensor *upscale(const char *call, context *ctx, tensor *a, const int64_t *ne, uint32_t mode) {
    if (!a) return NULL;
    REQUIRE(call, (mode & 0xff) < GGML_SCALE_MODE_COUNT && a->type == GGML_TYPE_F32, a);
    REQUIRE(call, !(mode & GGML_SCALE_FLAG_ANTIALIAS) || (mode & 0xff) == GGML_SCALE_MODE_BILINEAR, a);
    return PARAMS(op_new(ctx, GGML_OP_UPSCALE, a->type, ne, SOURCES(a)), (int32_t) mode);
}
tensor *ggml_upscale(context *ctx, tensor *a, int scale_factor, enum ggml_scale_mode mode) {
    if (!a) return NULL;
    REQUIRE(__func__, scale_factor > 1, a);
    return upscale(__func__, ctx, a, SHAPE(a->ne[0]*scale_factor, a->ne[1]*scale_factor, a->ne[2], a->ne[3]), (uint32_t) mode);
}
tensor *ggml_upscale_ext(context *ctx, tensor *a, int ne0, int ne1, int ne2, int ne3, enum ggml_scale_mode mode) {
    return upscale(__func__, ctx, a, SHAPE(ne0, ne1, ne2, ne3), (uint32_t) mode);
}
tensor *ggml_interpolate(context *ctx, tensor *a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, uint32_t mode) {
    return upscale(__func__, ctx, a, SHAPE(ne0, ne1, ne2, ne3), mode);
}

static tensor *pad(const char *call, context *ctx, tensor *a, const int32_t *p, bool circular) {
    if (!a) return NULL;
    int64_t ne[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        REQUIRE(call, p[2*d] >= 0 && p[2*d + 1] >= 0, a);
        REQUIRE(call, !circular || a->ne[d] > 0, a);
        ne[d] = a->ne[d] + p[2*d] + p[2*d + 1];
    }
    return PARAMS(op_new(ctx, GGML_OP_PAD, a->type, ne, SOURCES(a)), p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], circular);
}
tensor *ggml_pad(context *ctx, tensor *a, int p0, int p1, int p2, int p3) {
    return pad(__func__, ctx, a, (const int32_t[]) { 0, p0, 0, p1, 0, p2, 0, p3 }, false);
}
tensor *ggml_pad_circular(context *ctx, tensor *a, int p0, int p1, int p2, int p3) {
    return pad(__func__, ctx, a, (const int32_t[]) { 0, p0, 0, p1, 0, p2, 0, p3 }, true);
}
tensor *ggml_pad_ext(context *ctx, tensor *a, int lp0, int rp0, int lp1, int rp1, int lp2, int rp2, int lp3, int rp3) {
    return pad(__func__, ctx, a, (const int32_t[]) { lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3 }, false);
}
tensor *ggml_pad_ext_circular(context *ctx, tensor *a, int lp0, int rp0, int lp1, int rp1, int lp2, int rp2, int lp3, int rp3) {
    return pad(__func__, ctx, a, (const int32_t[]) { lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3 }, true);
}

tensor *ggml_pad_reflect_1d(context *ctx, tensor *a, int p0, int p1) {
    if (!a) return NULL;
    REQUIRE(__func__, p0 >= 0 && p1 >= 0 && p0 < a->ne[0] && p1 < a->ne[0] && a->type == GGML_TYPE_F32, a);
    return PARAMS(op_new(ctx, GGML_OP_PAD_REFLECT_1D, a->type, SHAPE(a->ne[0] + p0 + p1, a->ne[1], a->ne[2], a->ne[3]),
                         SOURCES(a)), p0, p1);
}

tensor *ggml_roll(context *ctx, tensor *a, int shift0, int shift1, int shift2, int shift3) {
    if (!a) return NULL;
    const int64_t shift[GGML_MAX_DIMS] = { shift0, shift1, shift2, shift3 };
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        REQUIRE(__func__, shift[d] == 0 || (shift[d] < a->ne[d] && -shift[d] < a->ne[d]), a);
    }
    return PARAMS(op_like(ctx, GGML_OP_ROLL, a, false, SOURCES(a)), shift0, shift1, shift2, shift3);
}

/* ---- windows and relative positions (Kirillov et al. 2023, "Segment Anything") ------------------------------------- */

tensor *ggml_win_part(context *ctx, tensor *a, int w) {
    if (!a) return NULL;
    REQUIRE(__func__, ggml_is_3d(a) && a->type == GGML_TYPE_F32 && w > 0, a);
    const int64_t npx = (a->ne[1] + w - 1)/w, npy = (a->ne[2] + w - 1)/w;
    return PARAMS(op_new(ctx, GGML_OP_WIN_PART, GGML_TYPE_F32, SHAPE(a->ne[0], w, w, npx*npy), SOURCES(a)),
                  (int32_t) npx, (int32_t) npy, w);
}

tensor *ggml_win_unpart(context *ctx, tensor *a, int w0, int h0, int w) {
    if (!a) return NULL;
    REQUIRE(__func__, a->type == GGML_TYPE_F32 && w > 0 && a->ne[1] == w && a->ne[2] == w && w0 >= 0 && h0 >= 0, a);
    REQUIRE(__func__, a->ne[3] == (((int64_t) w0 + w - 1)/w)*(((int64_t) h0 + w - 1)/w), a);
    return PARAMS(op_new(ctx, GGML_OP_WIN_UNPART, GGML_TYPE_F32, SHAPE(a->ne[0], w0, h0, 1), SOURCES(a)), w);
}

tensor *ggml_get_rel_pos(context *ctx, tensor *a, int qh, int kh) {
    if (!a) return NULL;
    REQUIRE(__func__, qh == kh && a->ne[1] == 2*(int64_t) qh - 1 && ggml_is_matrix(a), a);
    return op_new(ctx, GGML_OP_GET_REL_POS, GGML_TYPE_F16, SHAPE(a->ne[0], kh, qh, 1), SOURCES(a));
}

static tensor *add_rel_pos(const char *call, context *ctx, tensor *a, tensor *pw, tensor *ph, bool inplace) {
    if (!a || !pw || !ph) return NULL;
    REQUIRE(call, ggml_are_same_shape(pw, ph), a, pw, ph);
    REQUIRE(call, a->type == GGML_TYPE_F32 && pw->type == GGML_TYPE_F32 && ph->type == GGML_TYPE_F32, a, pw, ph);
    REQUIRE(call, pw->ne[0]*pw->ne[0] == a->ne[0] && pw->ne[1]*pw->ne[2] == a->ne[1] && pw->ne[3] == a->ne[2], a, pw, ph);
    REQUIRE(call, ggml_is_3d(a), a, pw, ph);
    return PARAMS(op_like(ctx, GGML_OP_ADD_REL_POS, a, inplace, SOURCES(a, pw, ph)), inplace);
}
tensor *ggml_add_rel_pos(context *ctx, tensor *a, tensor *pw, tensor *ph) {
    return add_rel_pos(__func__, ctx, a, pw, ph, false);
}
tensor *ggml_add_rel_pos_inplace(context *ctx, tensor *a, tensor *pw, tensor *ph) {
    return add_rel_pos(__func__, ctx, a, pw, ph, true);
}
