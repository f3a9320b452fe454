/* The gradient that ggml_build_backward_expand builds for every op, source by source, against finite differences.
 *
 * A case builds y from parameters; the loss is sum(w*y) with fixed random w. The reference perturbs a parameter by h = 1/32
 * (exactly, elements are multiples of 1/1024), adds w*y up in double and takes the five-point difference, whose error is
 * h^4/30 times the fifth derivative, some 1e-7, and the rounding of y over h, some 1e-5. Each case runs with its operands
 * packed, permuted, transposed and as a window of something larger (so that views are differentiated everywhere), and with
 * every tensor in memory of its own as well as placed by the graph allocator: the same bytes. */

#include "check.h"
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

typedef struct ggml_tensor tensor;
typedef struct ggml_context context;

enum layout { PACKED, PERMUTED, TRANSPOSED, WINDOW, LAYOUTS };
enum { ANY = 15, NO_TRANSPOSED = 11, ONLY_PACKED = 1 };         /* layouts a case accepts, bits */
enum { MAX_PARAMS = 3, PICKS = 10 };

struct test_case {
    const char *name;
    tensor    *(*build)(context *ctx, tensor **p);
    int64_t     ne[MAX_PARAMS][4];
    double      lo, hi;                     /* elements: lo <= |x| < hi */
    double      bound;                      /* on |difference|/(1 + |derivative|) */
    bool        positive;
    int         layouts;
};

/* ---- cases ---------------------------------------------------------------------------------------------------------- */

static int32_t few_ids[] = { 2, 0, 2, 3, 1, 3, 1, 0, 0, 2, 1, 3 };
static int64_t each_once[] = { 3, 0, 2, 1, 2, 0 };                  /* in each three */
static tensor *ids(context *ctx, int64_t n) {
    tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n);
    ggml_set_name(t, "ids");
    return t;
}
static tensor *ids_3d(context *ctx, int64_t n0, int64_t n1, int64_t n2) {
    return ggml_set_name(ggml_new_tensor_3d(ctx, GGML_TYPE_I32, n0, n1, n2), "ids");
}
static tensor *once(context *ctx, int64_t n0, int64_t n1) {
    return ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_I64, n0, n1), "once");
}
static tensor *given(context *ctx, enum ggml_type type, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    tensor *t = ggml_new_tensor_4d(ctx, type, n0, n1, n2, n3);
    ggml_set_name(t, "given");
    return t;
}

#define CASE1(name, expression) static tensor *name(context *ctx, tensor **p) { tensor *a = p[0]; return expression; }
#define CASE2(name, expression) static tensor *name(context *ctx, tensor **p) { tensor *a = p[0], *b = p[1]; return expression; }
CASE1(t_dup,       ggml_dup(ctx, a))
CASE2(t_add,       ggml_add(ctx, a, b))
CASE2(t_sub,       ggml_sub(ctx, a, b))
CASE2(t_mul,       ggml_mul(ctx, a, b))
CASE2(t_div,       ggml_div(ctx, a, b))
CASE2(t_add1,      ggml_add1(ctx, a, b))
CASE2(t_acc,       ggml_acc(ctx, a, b, 6*4, 30*4, 60*4, 7*4))
CASE2(t_set,       ggml_set(ctx, a, b, 6*4, 30*4, 60*4, 7*4))
CASE1(t_sqr,       ggml_sqr(ctx, a))
CASE1(t_sqrt,      ggml_sqrt(ctx, a))
CASE1(t_log,       ggml_log(ctx, a))
CASE1(t_sin,       ggml_sin(ctx, a))
CASE1(t_cos,       ggml_cos(ctx, a))
CASE1(t_sum,       ggml_sum(ctx, a))
CASE1(t_sum_rows,  ggml_sum_rows(ctx, a))
CASE1(t_mean,      ggml_mean(ctx, a))
CASE1(t_repeat,    ggml_repeat_4d(ctx, a, 10, 6, 4, 3))
CASE2(t_repeat_back, ggml_repeat_back(ctx, a, b))
CASE2(t_concat0,   ggml_concat(ctx, a, b, 0))
CASE2(t_concat2,   ggml_concat(ctx, a, b, 2))
CASE1(t_norm,      ggml_norm(ctx, a, 1e-3f))
CASE1(t_rms_norm,  ggml_rms_norm(ctx, a, 1e-3f))
CASE1(t_group_norm, ggml_group_norm(ctx, a, 2, 1e-3f))
CASE2(t_mul_mat,   ggml_mul_mat(ctx, a, b))
CASE2(t_out_prod,  ggml_out_prod(ctx, a, b))
CASE1(t_scale,     ggml_scale_bias(ctx, a, -1.5f, 0.25f))
CASE2(t_cpy,       ggml_cpy(ctx, a, ggml_dup(ctx, b)))
CASE1(t_cont,      ggml_cont_2d(ctx, a, a->ne[0]*a->ne[1], a->ne[2]*a->ne[3]))
CASE1(t_reshape,   ggml_reshape_2d(ctx, a, 6, 10))
CASE1(t_view,      ggml_view_3d(ctx, a, 3, 2, 2, a->nb[1], a->nb[2], a->nb[1] + a->nb[0]))
CASE1(t_overlap,   ggml_view_2d(ctx, a, 4, 4, 2*a->nb[0], 3*a->nb[0]))
CASE1(t_permute,   ggml_permute(ctx, a, 2, 0, 3, 1))
CASE1(t_transpose, ggml_transpose(ctx, a))
CASE1(t_get_rows,  ggml_get_rows(ctx, a, ids(ctx, 5)))
CASE1(t_get_slices, ggml_get_rows(ctx, a, ids_3d(ctx, 2, 3, 2)))
CASE2(t_set_rows,  ggml_set_rows(ctx, ggml_dup(ctx, a), b, once(ctx, 3, 2)))
CASE2(t_set_shared, ggml_set_rows(ctx, ggml_dup(ctx, a), b, ggml_cast(ctx, once(ctx, 3, 1), GGML_TYPE_I32)))
CASE2(t_add_id,    ggml_add_id(ctx, a, b, ids_3d(ctx, 2, 3, 1)))
CASE2(t_mul_mat_id, ggml_mul_mat_id(ctx, a, b, ids_3d(ctx, 2, 3, 1)))
CASE1(t_mul_mat_id_f16, ggml_mul_mat_id(ctx, ggml_cast(ctx, given(ctx, GGML_TYPE_F32, 7, 5, 4, 1), GGML_TYPE_F16), a, ids_3d(ctx, 2, 3, 1)))
CASE2(t_get_rows_back, ggml_get_rows_back(ctx, a, ids(ctx, 5), b))
CASE1(t_mask_inf,  ggml_soft_max(ctx, ggml_diag_mask_inf(ctx, a, 1)))
CASE1(t_mask_zero, ggml_diag_mask_zero(ctx, a, 1))
CASE1(t_soft_max,  ggml_soft_max_ext(ctx, a, given(ctx, GGML_TYPE_F32, a->ne[0], a->ne[1], 1, 1), 0.7f, 8.0f))
CASE1(t_rope,      ggml_rope_ext(ctx, a, ids(ctx, a->ne[2]), NULL, 4, 0, 512, 100.0f, 0.9f, 1.0f, 1.1f, 32.0f, 1.0f))
CASE1(t_rope_neox, ggml_rope(ctx, a, ids(ctx, a->ne[2]), 6, 2))
CASE1(t_rope_back, ggml_rope_ext_back(ctx, a, ids(ctx, a->ne[2]), NULL, 4, 2, 0, 100.0f, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f))
CASE1(t_clamp,     ggml_clamp(ctx, a, -0.5f, 0.6f))
CASE1(t_im2col,    ggml_im2col(ctx, given(ctx, GGML_TYPE_F32, 3, 2, 2, 4), a, 2, 1, 1, 1, 1, 2, true, GGML_TYPE_F32))
CASE1(t_im2col_1d, ggml_im2col(ctx, given(ctx, GGML_TYPE_F32, 3, 2, 4, 1), a, 1, 0, 1, 0, 1, 0, false, GGML_TYPE_F32))
CASE2(t_conv_2d,   ggml_conv_2d(ctx, a, b, 1, 1, 1, 0, 1, 1))
CASE2(t_conv_1d,   ggml_conv_1d(ctx, a, b, 1, 1, 1))
CASE2(t_conv_direct, ggml_conv_2d_direct(ctx, ggml_cont(ctx, a), b, 2, 1, 1, 2, 1, 2))
CASE2(t_conv_dw,   ggml_conv_2d_dw_direct(ctx, a, b, 2, 1, 1, 2, 1, 2))
CASE1(t_conv_3d,   ggml_conv_3d_direct(ctx, ggml_cont(ctx, a), given(ctx, GGML_TYPE_F32, 6, 5, 4, 4), 1, 2, 1, 1, 0, 1, 2, 1, 1, 2, 2, 3))
CASE1(t_conv_3d_data, ggml_conv_3d_direct(ctx, given(ctx, GGML_TYPE_F32, 3, 2, 2, 6), a, 1, 2, 1, 1, 0, 1, 2, 1, 1, 2, 2, 3))
CASE2(t_conv_3d_strides, ggml_conv_3d_direct(ctx, ggml_cont(ctx, a), b, 2, 1, 2, 0, 1, 2, 1, 2, 2, 3, 1, 2))
CASE2(t_conv_back, ggml_conv_transpose_2d_p0(ctx, a, b, 2))
CASE2(t_conv_back_1d, ggml_conv_transpose_1d(ctx, a, b, 2, 0, 1))
CASE1(t_pool_avg,  ggml_pool_2d(ctx, a, GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0))
CASE1(t_pool_max,  ggml_pool_2d(ctx, a, GGML_OP_POOL_MAX, 2, 3, 2, 1, 0, 0))
CASE1(t_pad,       ggml_pad_ext(ctx, a, 1, 2, 0, 1, 2, 0, 1, 1))
CASE1(t_pad_circular, ggml_pad_ext_circular(ctx, a, 1, 2, 0, 1, 2, 0, 1, 1))
CASE1(t_pad_around, ggml_pad_ext_circular(ctx, a, 5, 5, 3, 0, 0, 2, 0, 1))
CASE1(t_roll,      ggml_roll(ctx, a, 1, -2, 1, 0))
CASE1(t_leaky,     ggml_leaky_relu(ctx, a, 0.1f, false))
CASE1(t_hardswish, ggml_hardswish(ctx, a))
CASE1(t_hardsigmoid, ggml_hardsigmoid(ctx, a))
CASE1(t_l2_norm,   ggml_l2_norm(ctx, a, 1e-3f))
CASE1(t_l2_small,  ggml_l2_norm(ctx, a, 50.0f))
CASE1(t_cumsum,    ggml_cumsum(ctx, a))
CASE1(t_tri,       ggml_tri(ctx, a, GGML_TRI_TYPE_LOWER))
CASE1(t_loss,      ggml_cross_entropy_loss(ctx, a, ggml_soft_max(ctx, given(ctx, GGML_TYPE_F32, a->ne[0], a->ne[1], a->ne[2], a->ne[3]))))
CASE1(t_abs,       ggml_abs(ctx, a))
CASE1(t_neg,       ggml_neg(ctx, a))
CASE1(t_tanh,      ggml_tanh(ctx, a))
CASE1(t_elu,       ggml_elu(ctx, a))
CASE1(t_relu,      ggml_relu(ctx, a))
CASE1(t_sigmoid,   ggml_sigmoid(ctx, a))
CASE1(t_gelu,      ggml_gelu(ctx, a))
CASE1(t_gelu_quick, ggml_gelu_quick(ctx, a))
CASE1(t_silu,      ggml_silu(ctx, a))
CASE1(t_exp,       ggml_exp(ctx, a))
CASE1(t_expm1,     ggml_expm1(ctx, a))
CASE1(t_softplus,  ggml_softplus(ctx, a))
CASE1(t_gelu_erf,  ggml_gelu_erf(ctx, a))
CASE1(t_xielu,     ggml_xielu(ctx, a, 0.3f, 0.8f, 0.5f, -0.01f))
CASE2(t_swiglu_oai,   ggml_swiglu_oai(ctx, a, b, 1.702f, 1.2f))
CASE2(t_oai_cut,      ggml_swiglu_oai(ctx, a, b, 1.702f, 0.5f))
CASE2(t_swiglu_clamp, ggml_swiglu_clamp(ctx, a, b, 1.2f))
CASE2(t_clamp_cut,    ggml_swiglu_clamp(ctx, a, b, 0.5f))
CASE1(t_geglu_erf,    ggml_geglu_erf_swapped(ctx, a))
CASE2(t_geglu_erf_split, ggml_geglu_erf_split(ctx, a, b))
CASE2(t_swiglu_split, ggml_swiglu_split(ctx, a, b))
CASE2(t_geglu_split,  ggml_geglu_split(ctx, a, b))
CASE1(t_swiglu,    ggml_swiglu(ctx, a))
CASE1(t_reglu,     ggml_reglu_swapped(ctx, a))
CASE1(t_geglu_quick, ggml_geglu_quick(ctx, a))
/* constants in part: nothing flows through them, the rest does */
CASE1(t_constants, ggml_mul(ctx, a, ggml_add(ctx, ggml_step(ctx, a), ggml_add(ctx, ggml_sgn(ctx, a), ggml_fill(ctx, a, 0.5f)))))
/* one parameter used many times: sums of contributions, through views and itself */
CASE1(t_many_uses, ggml_add(ctx, ggml_mul(ctx, a, ggml_sqr(ctx, a)), ggml_sub(ctx, a, ggml_mul(ctx, ggml_cont(ctx, ggml_permute(ctx,
                       ggml_permute(ctx, a, 1, 0, 2, 3), 1, 0, 2, 3)), a))))
/* a perceptron with a normalisation, a bias and a residual */
static tensor *t_network(context *ctx, tensor **p) {
    tensor *h = ggml_silu(ctx, ggml_add(ctx, ggml_mul_mat(ctx, p[0], p[1]), p[2]));
    return ggml_add(ctx, ggml_rms_norm(ctx, h, 1e-5f), h);
}
/* fused attention, heads of the query sharing those of keys and values, with a mask and sinks */
static tensor *t_flash(context *ctx, tensor **p) {
    tensor *mask = ggml_cast(ctx, given(ctx, GGML_TYPE_F32, p[1]->ne[1], p[0]->ne[1], 1, 1), GGML_TYPE_F16);
    tensor *y = ggml_flash_attn_ext(ctx, p[0], p[1], p[2], mask, 0.4f, 2.0f, 0.0f);
    ggml_flash_attn_ext_add_sinks(y, given(ctx, GGML_TYPE_F32, p[0]->ne[2], 1, 1, 1));
    return y;
}
/* with a soft cap and slopes, keys as values, and the sinks are parameters */
static tensor *t_flash_cap(context *ctx, tensor **p) {
    tensor *mask = ggml_cast(ctx, given(ctx, GGML_TYPE_F32, p[1]->ne[1], p[0]->ne[1], 1, 1), GGML_TYPE_F16);
    tensor *y = ggml_flash_attn_ext(ctx, p[0], p[1], p[1], mask, 1.5f, 4.0f, 1.3f);
    ggml_flash_attn_ext_add_sinks(y, p[2]);
    return y;
}
static tensor *t_sinks(context *ctx, tensor **p) {
    tensor *y = ggml_soft_max_ext(ctx, p[0], NULL, 0.7f, 0.0f);
    ggml_soft_max_add_sinks(y, p[1]);
    return y;
}
/* one head of attention: scores, mask, softmax, values, all from one parameter */
static tensor *t_attention(context *ctx, tensor **p) {
    tensor *q = ggml_rope(ctx, ggml_reshape_3d(ctx, ggml_cont(ctx, p[0]), 4, 2, 5), ids(ctx, 5), 4, 0);
    tensor *k = ggml_rope(ctx, ggml_reshape_3d(ctx, ggml_cont(ctx, p[1]), 4, 1, 5), ids(ctx, 5), 4, 0);
    q = ggml_permute(ctx, q, 0, 2, 1, 3), k = ggml_permute(ctx, k, 0, 2, 1, 3);
    tensor *s = ggml_soft_max(ctx, ggml_diag_mask_inf(ctx, ggml_scale(ctx, ggml_mul_mat(ctx, k, q), 0.5f), 0));
    tensor *v = ggml_cont(ctx, ggml_transpose(ctx, k));
    return ggml_cont_2d(ctx, ggml_permute(ctx, ggml_mul_mat(ctx, v, s), 0, 2, 1, 3), 8, 5);
}

#define PLAIN { { 5, 3, 2, 2 } }
static const struct test_case cases[] = {
    /*  name            build            shapes of the parameters                lo    hi    bound  positive layouts */
    { "dup",            t_dup,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "add",            t_add,           { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "add repeated",   t_add,           { { 6, 4, 2, 2 }, { 3, 1, 2, 1 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "sub repeated",   t_sub,           { { 6, 4, 2, 2 }, { 6, 2, 1, 1 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "mul",            t_mul,           { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "mul repeated",   t_mul,           { { 6, 4, 2, 2 }, { 1, 4, 1, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "div",            t_div,           { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },     1.0,  2.0,  3e-5,  false,   ANY },
    { "div repeated",   t_div,           { { 6, 4, 2, 2 }, { 6, 1, 1, 2 } },     1.0,  2.0,  3e-5,  false,   ANY },
    { "add1",           t_add1,          { { 5, 3, 2, 2 }, { 1, 1, 1, 1 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "acc",            t_acc,           { { 6, 5, 2, 2 }, { 3, 2, 2, 1 } },     0.1,  1.0,  1e-5,  false,   ONLY_PACKED },
    { "set",            t_set,           { { 6, 5, 2, 2 }, { 3, 2, 2, 1 } },     0.1,  1.0,  1e-5,  false,   ONLY_PACKED },
    { "sqr",            t_sqr,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "sqrt",           t_sqrt,          PLAIN,                                  1.0,  2.0,  1e-5,  true,    ANY },
    { "log",            t_log,           PLAIN,                                  1.0,  2.0,  1e-5,  true,    ANY },
    { "sin",            t_sin,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "cos",            t_cos,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "sum",            t_sum,           PLAIN,                                  0.1,  1.0,  3e-5,  false,   ANY },
    { "sum_rows",       t_sum_rows,      PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "mean",           t_mean,          PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "repeat",         t_repeat,        { { 5, 3, 2, 1 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "repeat_back",    t_repeat_back,   { { 6, 4, 4, 2 }, { 3, 4, 2, 1 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "concat 0",       t_concat0,       { { 5, 3, 2, 2 }, { 2, 3, 2, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "concat 2",       t_concat2,       { { 5, 3, 2, 2 }, { 5, 3, 3, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "norm",           t_norm,          { { 9, 3, 2, 2 } },                     0.3,  1.0,  1e-4,  false,   ANY },
    { "rms_norm",       t_rms_norm,      { { 9, 3, 2, 2 } },                     0.3,  1.0,  5e-5,  false,   ANY },
    { "group_norm",     t_group_norm,    { { 3, 2, 4, 2 } },                     0.3,  1.0,  1e-4,  false,   ANY },
    { "mul_mat",        t_mul_mat,       { { 7, 5, 2, 1 }, { 7, 3, 2, 1 } },     0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "mul_mat shared", t_mul_mat,       { { 7, 4, 2, 1 }, { 7, 3, 4, 3 } },     0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "mul_mat row",    t_mul_mat,       { { 7, 4, 1, 2 }, { 7, 1, 3, 4 } },     0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "out_prod",       t_out_prod,      { { 4, 5, 2, 2 }, { 3, 5, 2, 2 } },     0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "scale",          t_scale,         PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "cpy",            t_cpy,           { { 5, 3, 2, 2 }, { 15, 4, 1, 1 } },    0.1,  1.0,  1e-5,  false,   ANY },
    { "cont",           t_cont,          PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "reshape",        t_reshape,       PLAIN,                                  0.1,  1.0,  1e-5,  false,   ONLY_PACKED },
    { "view",           t_view,          { { 5, 4, 3, 2 } },                     0.1,  1.0,  1e-5,  false,   NO_TRANSPOSED },
    { "view, overlap",  t_overlap,       { { 20, 1, 1, 1 } },                    0.1,  1.0,  1e-5,  false,   ONLY_PACKED },
    { "permute",        t_permute,       PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "transpose",      t_transpose,     PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "get_rows",       t_get_rows,      { { 6, 4, 1, 1 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "get_rows, slices",t_get_slices,    { { 6, 4, 3, 2 } },                      0.1,  1.0,  1e-5,  false,   ANY },
    { "set_rows",        t_set_rows,      { { 6, 4, 2, 2 }, { 6, 3, 2, 2 } },      0.1,  1.0,  1e-5,  false,   ANY },
    { "set_rows shared", t_set_shared,    { { 6, 4, 2, 2 }, { 6, 3, 2, 2 } },      0.1,  1.0,  1e-5,  false,   ANY },
    { "add_id",          t_add_id,        { { 6, 2, 3, 1 }, { 6, 4, 1, 1 } },      0.1,  1.0,  1e-5,  false,   ANY },
    { "mul_mat_id",      t_mul_mat_id,    { { 7, 5, 4, 1 }, { 7, 2, 3, 1 } },      0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "mul_mat_id, some", t_mul_mat_id,   { { 33, 9, 7, 1 }, { 33, 2, 3, 1 } },    0.1,  1.0,  4e-5,  false,   NO_TRANSPOSED },
    { "mul_mat_id, one", t_mul_mat_id,    { { 7, 5, 4, 1 }, { 7, 1, 3, 1 } },      0.1,  1.0,  2e-5,  false,   NO_TRANSPOSED },
    { "mul_mat_id F16",  t_mul_mat_id_f16,{ { 7, 1, 3, 1 } },                      0.1,  1.0,  2e-5,  false,   ANY },
    { "get_rows_back",  t_get_rows_back, { { 6, 5, 1, 1 }, { 6, 4, 1, 1 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "diag_mask_inf",  t_mask_inf,      { { 5, 3, 2, 1 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "diag_mask_zero", t_mask_zero,     { { 5, 3, 2, 1 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "soft_max",       t_soft_max,      { { 7, 3, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "rope",           t_rope,          { { 6, 2, 5, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "rope neox",      t_rope_neox,     { { 6, 2, 5, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "rope_back",      t_rope_back,     { { 6, 2, 5, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "clamp",          t_clamp,         PLAIN,                                  0.7,  1.0,  1e-5,  false,   ANY },
    { "clamp, inside",  t_clamp,         PLAIN,                                  0.1,  0.4,  1e-5,  false,   ANY },
    { "im2col",         t_im2col,        { { 7, 5, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "im2col, 1-D",    t_im2col_1d,     { { 7, 2, 3, 1 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "conv_2d",        t_conv_2d,       { { 3, 2, 2, 3 }, { 5, 4, 2, 2 } },     0.1,  1.0,  2e-5,  false,   ONLY_PACKED },
    { "conv_1d",        t_conv_1d,       { { 3, 2, 3, 1 }, { 6, 2, 2, 1 } },     0.1,  1.0,  2e-5,  false,   ONLY_PACKED },
    { "conv_2d direct",  t_conv_direct,   { { 3, 2, 2, 4 }, { 7, 5, 2, 2 } },      0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_2d_dw direct",t_conv_dw,       { { 3, 2, 1, 4 }, { 7, 5, 4, 2 } },      0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_3d by data", t_conv_3d_data,  { { 6, 5, 4, 4 } },                      0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_3d, strides", t_conv_3d_strides, { { 2, 3, 3, 6 }, { 5, 4, 5, 3 } },   0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_3d direct",  t_conv_3d,       { { 3, 2, 2, 6 } },                      0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_transpose_2d",t_conv_back,     { { 3, 2, 2, 4 }, { 4, 3, 4, 2 } },      0.1,  1.0,  3e-5,  false,   ANY },
    { "conv_transpose_1d",t_conv_back_1d,  { { 3, 2, 4, 1 }, { 5, 4, 1, 1 } },      0.1,  1.0,  3e-5,  false,   ANY },
    { "pool_2d, mean",  t_pool_avg,      { { 6, 4, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "pool_2d, most",  t_pool_max,      { { 6, 4, 2, 2 } },                     0.1, 60.0,  1e-5,  false,   ANY },
    { "pad, circular",  t_pad_circular,  PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "pad, around",    t_pad_around,    PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "pad",            t_pad,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "roll",           t_roll,          PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "leaky_relu",     t_leaky,         PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "hardswish",      t_hardswish,     PLAIN,                                  0.1,  2.0,  1e-5,  false,   ANY },
    { "hardsigmoid",    t_hardsigmoid,   PLAIN,                                  0.1,  2.0,  1e-5,  false,   ANY },
    { "hardsigmoid 0",  t_hardsigmoid,   PLAIN,                                  4.0,  5.0,  1e-5,  false,   ANY },
    { "l2_norm",        t_l2_norm,       { { 9, 3, 2, 2 } },                     0.3,  1.0,  5e-5,  false,   ANY },
    { "l2_norm, eps",   t_l2_small,      { { 9, 3, 2, 2 } },                     0.3,  1.0,  1e-5,  false,   ANY },
    { "cumsum",         t_cumsum,        PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "tri",            t_tri,           { { 4, 4, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "cross_entropy",  t_loss,          { { 7, 3, 2, 2 } },                     0.1,  1.0,  2e-5,  false,   ONLY_PACKED },
    { "abs",            t_abs,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "neg",            t_neg,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "tanh",           t_tanh,          PLAIN,                                  0.1,  1.0,  2e-5,  false,   ANY },
    { "elu",            t_elu,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "relu",           t_relu,          PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "sigmoid",        t_sigmoid,       PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "gelu",           t_gelu,          PLAIN,                                  0.1,  2.0,  2e-5,  false,   ANY },
    { "gelu_quick",     t_gelu_quick,    PLAIN,                                  0.1,  2.0,  2e-5,  false,   ANY },
    { "silu",           t_silu,          PLAIN,                                  0.1,  2.0,  1e-5,  false,   ANY },
    { "exp",            t_exp,           PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "expm1",          t_expm1,         PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "softplus",       t_softplus,      PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "gelu_erf",        t_gelu_erf,      { { 5, 3, 2, 2 } },                      0.1,  2.0,  2e-5,  false,   ANY },
    { "gelu_erf at 0",   t_gelu_erf,      { { 5, 3, 2, 2 } },                      0.0,  0.01, 2e-5,  false,   ANY },
    { "xielu",           t_xielu,         { { 5, 3, 2, 2 } },                      0.1,  2.0,  2e-5,  false,   ANY },
    { "swiglu_oai",      t_swiglu_oai,    { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },      0.1,  1.0,  2e-5,  false,   ANY },
    { "swiglu_oai cut",  t_oai_cut,       { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },      0.6,  1.0,  2e-5,  false,   ANY },
    { "swiglu_clamp",    t_swiglu_clamp,  { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },      0.1,  1.0,  2e-5,  false,   ANY },
    { "swiglu_clamp cut",t_clamp_cut,     { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },      0.6,  1.0,  2e-5,  false,   ANY },
    { "geglu_erf",       t_geglu_erf,     { { 6, 3, 2, 2 } },                      0.1,  1.0,  2e-5,  false,   ANY },
    { "geglu_erf split", t_geglu_erf_split,{ { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },      0.1,  1.0,  2e-5,  false,   ANY },
    { "swiglu split",   t_swiglu_split,  { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "geglu split",    t_geglu_split,   { { 5, 3, 2, 2 }, { 5, 3, 2, 2 } },     0.1,  1.0,  1e-5,  false,   ANY },
    { "swiglu",         t_swiglu,        { { 6, 3, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "reglu",          t_reglu,         { { 6, 3, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "geglu_quick",    t_geglu_quick,   { { 6, 3, 2, 2 } },                     0.1,  1.0,  1e-5,  false,   ANY },
    { "constants",      t_constants,     PLAIN,                                  0.1,  1.0,  1e-5,  false,   ANY },
    { "many uses",      t_many_uses,     PLAIN,                                  0.1,  1.0,  2e-5,  false,   ANY },
    { "network",        t_network,       { { 7, 6, 1, 1 }, { 7, 4, 1, 1 }, { 6, 1, 1, 1 } }, 0.1, 1.0, 5e-5, false, NO_TRANSPOSED },
    { "flash_attn_ext", t_flash,         { { 8, 5, 4, 2 }, { 8, 6, 2, 2 }, { 8, 6, 2, 2 } }, 0.1, 1.0, 2e-5, false, ANY },
    { "flash, other v",  t_flash,         { { 8, 5, 4, 1 }, { 8, 6, 1, 1 }, { 8, 6, 2, 1 } }, 0.1, 1.0, 2e-5, false, ANY },
    { "flash, other k",  t_flash,         { { 8, 5, 4, 2 }, { 8, 6, 4, 2 }, { 6, 6, 1, 2 } }, 0.1, 1.0, 2e-5, false, ANY },
    { "flash, soft cap",t_flash_cap,     { { 8, 5, 4, 2 }, { 8, 6, 2, 2 }, { 4, 1, 1, 1 } }, 0.1, 1.0, 3e-5, false, ANY },
    { "soft_max sinks",  t_sinks,         { { 7, 3, 2, 2 }, { 2, 1, 1, 1 } },      0.1,  1.0,  1e-5,  false,   ANY },
    { "attention",      t_attention,     { { 8, 5, 1, 1 }, { 4, 5, 1, 1 } },     0.1,  1.0,  3e-5,  false,   ANY },
};

/* ---- a case laid out --------------------------------------------------------------------------------------------------- */

/* `room` holds parameters, w and given data with their memory; `ctx` describes the graph. */
struct bench {
    context *room, *ctx;
    tensor  *root[MAX_PARAMS], *w, *y, *loss;
    struct ggml_cgraph *forward, *graph;
    ggml_backend_buffer_t buffer;
    ggml_gallocr_t gallocr;
    int      n;
    uint64_t seed;
};
static ggml_backend_t cpu;

static float pick(uint64_t *seed, const struct test_case *c) {
    const float r = rnd_f32(seed), size = (float) (c->lo + (c->hi - c->lo)*(double) fabsf(r));
    return rintf((r < 0 && !c->positive ? -size : size)*1024.0f)/1024.0f;
}

static tensor *operand(struct bench *b, tensor **root, const int64_t *n, enum layout layout) {
    switch (layout) {
        case PERMUTED:
            *root = ggml_new_tensor_4d(b->room, GGML_TYPE_F32, n[0], n[2], n[1], n[3]);
            return ggml_permute(b->ctx, *root, 0, 2, 1, 3);
        case TRANSPOSED:
            *root = ggml_new_tensor_4d(b->room, GGML_TYPE_F32, n[1], n[0], n[2], n[3]);
            return ggml_transpose(b->ctx, *root);
        case WINDOW:
            *root = ggml_new_tensor_4d(b->room, GGML_TYPE_F32, n[0] + 2, n[1] + 1, n[2] + 1, n[3]);
            return ggml_view_4d(b->ctx, *root, n[0], n[1], n[2], n[3], (*root)->nb[1], (*root)->nb[2], (*root)->nb[3], 4);
        default:
            return *root = ggml_new_tensor_4d(b->room, GGML_TYPE_F32, n[0], n[1], n[2], n[3]);
    }
}

/* Data of what a case calls given or ids. */
static void fill_given(struct bench *b) {
    uint64_t seed = 77;
    for (tensor *t = ggml_get_first_tensor(b->ctx); t; t = ggml_get_next_tensor(b->ctx, t)) {
        if (!strcmp(t->name, "ids"))  ggml_backend_tensor_set(t, few_ids, 0, ggml_nbytes(t));
        if (!strcmp(t->name, "once")) ggml_backend_tensor_set(t, each_once, 0, ggml_nbytes(t));
        if (strcmp(t->name, "given") || !t->buffer) continue;
        for (int64_t i = 0; i < ggml_nelements(t); i++) {
            const float v = rnd_f32(&seed);
            ggml_backend_tensor_set(t, &v, (size_t) i*sizeof v, sizeof v);
        }
    }
}

static struct bench bench_new(const struct test_case *c, enum layout layout, bool planned) {
    struct bench b = { .seed = 5 };
    tensor *p[MAX_PARAMS];
    b.room = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 16 });
    b.ctx  = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 19, .no_alloc = true });
    for (b.n = 0; b.n < MAX_PARAMS && c->ne[b.n][0]; b.n++) {
        p[b.n] = operand(&b, &b.root[b.n], c->ne[b.n], layout);
        ggml_set_param(b.root[b.n]);
        for (int64_t i = 0; i < ggml_nelements(b.root[b.n]); i++) ggml_get_data_f32(b.root[b.n])[i] = pick(&b.seed, c);
    }
    b.y = ggml_cont(b.ctx, c->build(b.ctx, p));
    ggml_set_output(b.y);
    b.w = ggml_new_tensor(b.room, GGML_TYPE_F32, 4, b.y->ne);
    for (int64_t i = 0; i < ggml_nelements(b.w); i++) ggml_get_data_f32(b.w)[i] = rnd_f32(&b.seed);
    b.loss = ggml_sum(b.ctx, ggml_mul(b.ctx, b.y, b.w));
    ggml_set_loss(b.loss);
    ggml_set_output(b.loss);
    for (tensor *t = ggml_get_first_tensor(b.ctx); t; t = ggml_get_next_tensor(b.ctx, t))
        if (!strcmp(t->name, "ids") || !strcmp(t->name, "once") || !strcmp(t->name, "given")) ggml_set_input(t);
    b.forward = ggml_new_graph_custom(b.ctx, 64, false);
    ggml_build_forward_expand(b.forward, b.y);
    b.graph = ggml_new_graph_custom(b.ctx, 256, true);
    ggml_build_forward_expand(b.graph, b.loss);
    ggml_build_backward_expand(b.ctx, b.graph, NULL);
    for (int i = 0; i < b.n; i++) if (ggml_graph_get_grad(b.graph, b.root[i])) ggml_set_output(ggml_graph_get_grad(b.graph, b.root[i]));
    if (planned) {
        b.gallocr = ggml_gallocr_new(ggml_backend_get_default_buffer_type(cpu));
        CHECK(ggml_gallocr_alloc_graph(b.gallocr, b.graph), "%s: plan", c->name);
    } else {
        b.buffer = ggml_backend_alloc_ctx_tensors(b.ctx, cpu);
    }
    fill_given(&b);
    ggml_graph_reset(b.graph);
    return b;
}
static void bench_free(struct bench *b) {
    ggml_gallocr_free(b->gallocr);
    ggml_backend_buffer_free(b->buffer);
    ggml_free(b->ctx);
    ggml_free(b->room);
}

static void run(struct ggml_cgraph *g, const char *name) {
    const enum ggml_status status = ggml_backend_graph_compute(cpu, g);
    CHECK(status == GGML_STATUS_SUCCESS, "%s: status %d", name, (int) status);
}

/* ---- the derivative ----------------------------------------------------------------------------------------------------- */

static double loss_at(struct bench *b, float *x, float v, const char *name) {
    const float before = *x;
    double loss = 0.0;
    *x = v;
    run(b->forward, name);
    const float *y = b->y->data, *w = b->w->data;
    for (int64_t i = 0; i < ggml_nelements(b->y); i++) loss += (double) y[i]*(double) w[i];
    *x = before;
    return loss;
}
static double difference(struct bench *b, float *x, const char *name) {
    const float h = 0.03125f;
    const double near = loss_at(b, x, *x + h, name) - loss_at(b, x, *x - h, name);
    const double far  = loss_at(b, x, *x + 2*h, name) - loss_at(b, x, *x - 2*h, name);
    return (8.0*near - far)/(12.0*(double) h);
}

/* Element i of a tensor of any layout. */
static float element(const tensor *t, int64_t i) {
    int64_t at[4];
    ggml_unravel_index(t, i, &at[0], &at[1], &at[2], &at[3]);
    const char *p = t->data;
    for (int d = 0; d < 4; d++) p += (size_t) at[d]*t->nb[d];
    return *(const float *) (const void *) p;
}

static void check_case(const struct test_case *c, enum layout layout) {
    struct bench b = bench_new(c, layout, false), planned = bench_new(c, layout, true);
    run(b.graph, c->name), run(planned.graph, c->name);
    double worst = 0.0;
    for (int k = 0; k < b.n; k++) {
        tensor *g = ggml_graph_get_grad(b.graph, b.root[k]), *g2 = ggml_graph_get_grad(planned.graph, planned.root[k]);
        const bool expected = strcmp(c->name, "cpy") && strcmp(c->name, "repeat_back") && strcmp(c->name, "get_rows_back");
        if (k > 0 && !expected) { CHECK(!g, "%s: nothing flows to operand %d", c->name, k); continue; }
        CHECK(g && g2, "%s: no gradient", c->name);
        if (!g || !g2) continue;
        bool same = true;
        for (int64_t i = 0; i < ggml_nelements(g); i++) same = same && element(g, i) == element(g2, i);
        CHECK(same, "%s, layout %d: the plan changes the gradient", c->name, (int) layout);
        for (int i = 0; i < PICKS; i++) {
            const size_t at = (size_t) (rnd_u64(&b.seed)%(uint64_t) ggml_nelements(g));
            const double got = (double) element(g, (int64_t) at);
            const double want = difference(&b, ggml_get_data_f32(b.root[k]) + at, c->name);
            const double error = fabs(got - want)/(1.0 + fabs(want));
            if (!(error <= worst)) worst = error;
            CHECK(error <= c->bound, "%s, layout %d, operand %d, element %zu: %.9g, expected %.9g", c->name, (int) layout, k, at, got, want);
        }
    }
    if (getenv("GRADIENTS_SHOW")) fprintf(stderr, "%-16s %d %.2g\n", c->name, (int) layout, worst);
    bench_free(&b), bench_free(&planned);
}

int main(void) {
    cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 1);
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++)
        for (int l = 0; l < LAYOUTS; l++) if (cases[i].layouts >> l & 1) check_case(&cases[i], (enum layout) l);
    ggml_backend_free(cpu);
    return DONE();
}
