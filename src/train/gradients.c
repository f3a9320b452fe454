/* The gradient of every op, source by source: what a node's gradient g contributes to that of one of its sources.
 *
 * A row of the table names an op and a function for each of its first five sources. A function builds the contribution out
 * of ordinary ops, F32 and of the source's shape, and returns NULL where it has no rule for these shapes. `constant` stands
 * for sources through which nothing flows: indices, shapes, results that are constant almost everywhere. An empty place is
 * a gradient that does not exist here; backward.c refuses a graph that needs it. To add one: a function and its place.
 *
 * In the comments y is the node, a and b its sources, dy, da, db their gradients. */

#include "gradients.h"

#include <math.h>
#include <string.h>

/* ---- helpers ------------------------------------------------------------------------------------------------------- */

static tensor *packed(context *ctx, tensor *t) { return !t || ggml_is_contiguous(t) ? t : ggml_cont(ctx, t); }
static tensor *as_f32(context *ctx, tensor *t) { return t->type == GGML_TYPE_F32 ? t : ggml_cast(ctx, t, GGML_TYPE_F32); }

/* Rows at growing addresses, as products want their first operand. */
static tensor *ordered(context *ctx, tensor *t) { return ggml_is_transposed(t) ? ggml_cont(ctx, t) : t; }

/* The same elements in the shape of `like`. */
static tensor *shaped(context *ctx, tensor *t, tensor *like) {
    return !t || ggml_are_same_shape(t, like) ? t : ggml_reshape(ctx, packed(ctx, t), like);
}
/* Summed over what repeats `like`. */
static tensor *summed(context *ctx, tensor *t, tensor *like) {
    return !t || ggml_are_same_shape(t, like) ? t : ggml_repeat_back(ctx, t, like);
}
/* v everywhere, after g has been computed: nothing is kept from the graph's start. */
static tensor *filled(context *ctx, tensor *g, const int64_t *ne, float v) {
    return ggml_repeat_4d(ctx, ggml_fill(ctx, ggml_view_1d(ctx, g, 1, 0), v), ne[0], ne[1], ne[2], ne[3]);
}
static tensor *zeros(context *ctx, tensor *g, const int64_t *ne) { return filled(ctx, g, ne, 0.0f); }

/* ---- copies and sums: the gradient passes --------------------------------------------------------------------------- */

static tensor *pass    (const struct edge *e) { return shaped(e->ctx, e->g, e->a); }
static tensor *pass_b  (const struct edge *e) { return summed(e->ctx, e->g, e->b); }
static tensor *minus_b (const struct edge *e) { return ggml_neg(e->ctx, summed(e->ctx, e->g, e->b)); }
static tensor *total_b (const struct edge *e) { return shaped(e->ctx, ggml_sum(e->ctx, e->g), e->b); }
static tensor *repeated(const struct edge *e) { return ggml_repeat(e->ctx, e->g, e->a); }
static tensor *reduced (const struct edge *e) { return ggml_repeat_back(e->ctx, e->g, e->a); }
static tensor *scaled  (const struct edge *e) { return ggml_scale(e->ctx, e->g, param_f32(e->y, 0)); }
static tensor *averaged(const struct edge *e) {
    return ggml_repeat(e->ctx, ggml_scale(e->ctx, e->g, 1.0f/(float) e->a->ne[0]), e->a);
}

/* ---- products and quotients ----------------------------------------------------------------------------------------- */

static tensor *mul_a(const struct edge *e) { return ggml_mul(e->ctx, e->g, e->b); }
static tensor *mul_b(const struct edge *e) { return summed(e->ctx, ggml_mul(e->ctx, e->g, e->a), e->b); }
static tensor *div_a(const struct edge *e) { return ggml_div(e->ctx, e->g, e->b); }
/* db = -dy*y/b */
static tensor *div_b(const struct edge *e) {
    tensor *t = ggml_div(e->ctx, ggml_mul(e->ctx, e->g, e->y), e->b);
    return summed(e->ctx, ggml_neg(e->ctx, t), e->b);
}

/* t seen as [n, share, rest]: the sums over `share`, [n, 1, rest]. */
static tensor *summed_middle(context *ctx, tensor *t, int64_t n, int64_t share) {
    if (!t || share <= 1) return t;
    const int64_t rest = ggml_nelements(t)/(n*share);
    tensor *groups = ggml_reshape_3d(ctx, t, n, share, rest);
    return groups ? op_new(ctx, GGML_OP_REPEAT_BACK, GGML_TYPE_F32, SHAPE(n, 1, rest, 1), SOURCES(groups)) : NULL;
}
/* Slices of `like` were shared by groups of neighbouring slices of t: the groups' sums, in dim 2 and then in dim 3. */
static tensor *summed_groups(context *ctx, tensor *t, tensor *like) {
    if (!t || ggml_is_empty(t)) return t;
    const int64_t slice = like->ne[0]*like->ne[1], share2 = t->ne[2]/like->ne[2], share3 = t->ne[3]/like->ne[3];
    t = summed_middle(ctx, t, slice, share2);
    return shaped(ctx, summed_middle(ctx, t, slice*like->ne[2], share3), like);
}

static bool has_hint(const tensor *product) { return param_i32(product, 1) != 0; }

/* y[i, j] = sum over k of a[k, i]*b[k, j]:  da[k, i] = sum over j of b[k, j]*dy[i, j],  db[k, j] = sum over i of a[k, i]*dy[i, j] */
static tensor *mul_mat_a(const struct edge *e) {
    if (has_hint(e->y)) return NULL;
    return summed_groups(e->ctx, ggml_out_prod(e->ctx, ordered(e->ctx, e->b), e->g), e->a);
}
static tensor *mul_mat_b(const struct edge *e) {
    return has_hint(e->y) ? NULL : ggml_out_prod(e->ctx, e->a, ggml_transpose(e->ctx, e->g));
}

/* y[i, j] = sum over k of a[i, k]*b[j, k] */
static tensor *out_prod_a(const struct edge *e) {
    return summed_groups(e->ctx, ggml_out_prod(e->ctx, packed(e->ctx, e->g), ggml_transpose(e->ctx, e->b)), e->a);
}
static tensor *out_prod_b(const struct edge *e) {
    if (e->a->ne[2] != e->b->ne[2] || e->a->ne[3] != e->b->ne[3]) return NULL;
    return ggml_out_prod(e->ctx, ggml_cont(e->ctx, ggml_transpose(e->ctx, e->g)), ggml_transpose(e->ctx, e->a));
}

/* ---- functions of one element --------------------------------------------------------------------------------------- */

static tensor *sqr(const struct edge *e) { return ggml_scale(e->ctx, ggml_mul(e->ctx, e->g, e->a), 2.0f); }
static tensor *sqrt_a(const struct edge *e) { return ggml_scale(e->ctx, ggml_div(e->ctx, e->g, e->y), 0.5f); }
static tensor *log_a(const struct edge *e) { return ggml_div(e->ctx, e->g, e->a); }
static tensor *sin_a(const struct edge *e) { return ggml_mul(e->ctx, e->g, ggml_cos(e->ctx, e->a)); }
static tensor *cos_a(const struct edge *e) { return ggml_neg(e->ctx, ggml_mul(e->ctx, e->g, ggml_sin(e->ctx, e->a))); }

static tensor *abs_a(const struct edge *e)      { return ggml_mul(e->ctx, e->g, ggml_sgn(e->ctx, e->a)); }
static tensor *neg_a(const struct edge *e)      { return ggml_neg(e->ctx, e->g); }
static tensor *relu(const struct edge *e)       { return ggml_mul(e->ctx, e->g, ggml_step(e->ctx, e->a)); }
static tensor *exp_a(const struct edge *e)      { return ggml_mul(e->ctx, e->g, e->y); }
static tensor *expm1_a(const struct edge *e)    { return ggml_mul(e->ctx, e->g, ggml_exp(e->ctx, e->a)); }
static tensor *softplus(const struct edge *e)   { return ggml_mul(e->ctx, e->g, ggml_sigmoid(e->ctx, e->a)); }
static tensor *silu(const struct edge *e)       { return ggml_silu_back(e->ctx, packed(e->ctx, e->g), as_f32(e->ctx, e->a)); }
/* e^min(x, 0) */
static tensor *elu(const struct edge *e) {
    return ggml_mul(e->ctx, e->g, ggml_exp(e->ctx, ggml_clamp(e->ctx, as_f32(e->ctx, e->a), -INFINITY, 0.0f)));
}
/* y - y^2 */
static tensor *sigmoid(const struct edge *e) {
    return ggml_mul(e->ctx, e->g, ggml_sub(e->ctx, e->y, ggml_sqr(e->ctx, e->y)));
}
/* 1 - y^2 */
static tensor *tanh_a(const struct edge *e) {
    return ggml_mul(e->ctx, e->g, ggml_scale_bias(e->ctx, ggml_sqr(e->ctx, e->y), -1.0f, 1.0f));
}
/* y = silu(c x)/c */
static tensor *gelu_quick(const struct edge *e) {
    tensor *x = ggml_scale(e->ctx, as_f32(e->ctx, e->a), 1.702f);
    return ggml_silu_back(e->ctx, packed(e->ctx, e->g), x);
}
/* y = x (1 + t)/2 with t = tanh u, u = c (x + k x^3):  y' = (1 + t)/2 + x (1 - t^2) u'/2,  u' = c (1 + 3 k x^2) */
static tensor *gelu(const struct edge *e) {
    const float c = 0.79788456f, k = 0.044715f;
    context *ctx = e->ctx;
    tensor *x = as_f32(ctx, e->a), *xx = ggml_sqr(ctx, x);
    tensor *t = ggml_tanh(ctx, ggml_mul(ctx, x, ggml_scale_bias(ctx, xx, c*k, c)));
    tensor *slope = ggml_mul(ctx, ggml_scale_bias(ctx, ggml_sqr(ctx, t), -0.5f, 0.5f), ggml_scale_bias(ctx, xx, 3.0f*c*k, c));
    tensor *d = ggml_add(ctx, ggml_scale_bias(ctx, t, 0.5f, 0.5f), ggml_mul(ctx, x, slope));
    return ggml_mul(ctx, e->g, d);
}
/* 1/6 where |x| < 3 */
static tensor *hard_slope(const struct edge *e) {
    return ggml_scale(e->ctx, ggml_step(e->ctx, ggml_scale_bias(e->ctx, ggml_abs(e->ctx, as_f32(e->ctx, e->a)), -1.0f, 3.0f)), 1.0f/6.0f);
}
static tensor *hardsigmoid(const struct edge *e) { return ggml_mul(e->ctx, e->g, hard_slope(e)); }
static tensor *hardswish(const struct edge *e) {
    tensor *slope = ggml_mul(e->ctx, hard_slope(e), e->a);
    return ggml_mul(e->ctx, e->g, ggml_add(e->ctx, ggml_hardsigmoid(e->ctx, as_f32(e->ctx, e->a)), slope));
}
/* 1 or the slope */
static tensor *leaky_relu(const struct edge *e) {
    const float slope = param_f32(e->y, 0);
    return ggml_mul(e->ctx, e->g, ggml_scale_bias(e->ctx, ggml_step(e->ctx, as_f32(e->ctx, e->a)), 1.0f - slope, slope));
}
/* y = x F(x), F the normal distribution:  y' = F(x) + x F'(x) = 1/2 + sgn(x) (F(z) - 1/2 + z F'(z)) with z = |x|, kept from 0
 * and from where z*z overflows, so that F(z) = y(z)/z */
static tensor *gelu_erf(const struct edge *e) {
    context *ctx = e->ctx;
    tensor *x = as_f32(ctx, e->a), *z = ggml_clamp(ctx, ggml_abs(ctx, x), 1e-20f, 1e4f);
    tensor *slope = ggml_scale(ctx, ggml_mul(ctx, z, ggml_exp(ctx, ggml_scale(ctx, ggml_sqr(ctx, z), -0.5f))), 0.39894228f);
    tensor *odd = ggml_add(ctx, ggml_scale_bias(ctx, ggml_div(ctx, ggml_gelu_erf(ctx, z), z), 1.0f, -0.5f), slope);
    return ggml_mul(ctx, e->g, ggml_scale_bias(ctx, ggml_mul(ctx, odd, ggml_sgn(ctx, x)), 1.0f, 0.5f));
}
/* b + 2 p x where x > 0, else b + n ((x < eps) e^x - 1) */
static tensor *xielu(const struct edge *e) {
    const float n = param_f32(e->y, 1), p = param_f32(e->y, 2), b = param_f32(e->y, 3), eps = param_f32(e->y, 4);
    context *ctx = e->ctx;
    tensor *x = as_f32(ctx, e->a);
    tensor *falls = ggml_mul(ctx, ggml_exp(ctx, ggml_clamp(ctx, x, -INFINITY, 0.0f)), ggml_step(ctx, ggml_scale_bias(ctx, x, -1.0f, eps)));
    tensor *low = ggml_mul(ctx, ggml_scale_bias(ctx, falls, n, -n), ggml_scale_bias(ctx, ggml_step(ctx, x), -1.0f, 1.0f));
    return ggml_mul(ctx, e->g, ggml_add(ctx, ggml_scale_bias(ctx, ggml_relu(ctx, x), 2.0f*p, b), low));
}
/* g where min < x < max, else 0 */
static tensor *inside(context *ctx, tensor *g, tensor *x, float min, float max) {
    tensor *above = ggml_step(ctx, ggml_scale_bias(ctx, x,  1.0f, -min));
    tensor *below = ggml_step(ctx, ggml_scale_bias(ctx, x, -1.0f,  max));
    return ggml_mul(ctx, ggml_mul(ctx, g, above), below);
}
static tensor *clamp(const struct edge *e) {
    return inside(e->ctx, e->g, as_f32(e->ctx, e->a), param_f32(e->y, 0), param_f32(e->y, 1));
}

/* ---- gated units: y = f(x)*gate, both in one row of a or in a and b ---------------------------------------------------
 *
 * Bounded ones are y = f(min(x, limit))*(clamp(gate) + plus); OAI's f is x/(1 + e^-alpha x) = silu(alpha x)/alpha. */

static gradient *unary_gradient(enum ggml_unary_op op);
static const struct { bool known, bounded; enum ggml_unary_op f; float plus; } glu_functions[GGML_GLU_OP_COUNT] = {
    [GGML_GLU_OP_REGLU]        = { true, false, GGML_UNARY_OP_RELU,       0.0f },
    [GGML_GLU_OP_GEGLU]        = { true, false, GGML_UNARY_OP_GELU,       0.0f },
    [GGML_GLU_OP_SWIGLU]       = { true, false, GGML_UNARY_OP_SILU,       0.0f },
    [GGML_GLU_OP_SWIGLU_OAI]   = { true, true,  GGML_UNARY_OP_SILU,       1.0f },
    [GGML_GLU_OP_GEGLU_ERF]    = { true, false, GGML_UNARY_OP_GELU_ERF,   0.0f },
    [GGML_GLU_OP_GEGLU_QUICK]  = { true, false, GGML_UNARY_OP_GELU_QUICK, 0.0f },
    [GGML_GLU_OP_SWIGLU_CLAMP] = { true, true,  GGML_UNARY_OP_SILU,       0.0f },
};
static float glu_alpha(const tensor *y) { return param_i32(y, 0) == GGML_GLU_OP_SWIGLU_OAI ? param_f32(y, 2) : 1.0f; }
static bool  glu_bounded(const tensor *y) { return glu_functions[param_i32(y, 0)].bounded; }
static float glu_limit(const tensor *y) { return param_f32(y, 3); }

static tensor *bounded_x(const struct edge *e, tensor *x) {
    return ggml_scale(e->ctx, ggml_clamp(e->ctx, as_f32(e->ctx, x), -INFINITY, glu_limit(e->y)), glu_alpha(e->y));
}
static tensor *bounded_gate(const struct edge *e, tensor *gate) {
    const float limit = glu_limit(e->y);
    return ggml_scale_bias(e->ctx, ggml_clamp(e->ctx, as_f32(e->ctx, gate), -limit, limit), 1.0f, glu_functions[param_i32(e->y, 0)].plus);
}
static tensor *glu_x(const struct edge *e, tensor *x, tensor *gate) {
    const bool bounded = glu_bounded(e->y);
    if (!x || !gate) return NULL;
    const struct edge inner = {
        .ctx = e->ctx, .a = bounded ? bounded_x(e, x) : x, .g = ggml_mul(e->ctx, e->g, bounded ? bounded_gate(e, gate) : gate),
    };
    if (!inner.a || !inner.g) return NULL;
    tensor *dx = unary_gradient(glu_functions[param_i32(e->y, 0)].f)(&inner);
    return bounded ? inside(e->ctx, dx, as_f32(e->ctx, x), -INFINITY, glu_limit(e->y)) : dx;
}
static tensor *glu_gate(const struct edge *e, tensor *x, tensor *gate) {
    context *ctx = e->ctx;
    const float limit = glu_limit(e->y);
    if (!x || !gate) return NULL;
    if (!glu_bounded(e->y)) return ggml_mul(ctx, e->g, ggml_unary(ctx, x, glu_functions[param_i32(e->y, 0)].f));
    tensor *f = ggml_mul(ctx, ggml_clamp(ctx, as_f32(ctx, x), -INFINITY, limit), ggml_sigmoid(ctx, bounded_x(e, x)));
    return inside(ctx, ggml_mul(ctx, e->g, f), as_f32(ctx, gate), -limit, limit);
}
static tensor *half(const struct edge *e, int i) {
    tensor *a = packed(e->ctx, e->a);
    if (!a) return NULL;
    return ggml_cont(e->ctx, ggml_view_4d(e->ctx, a, a->ne[0]/2, a->ne[1], a->ne[2], a->ne[3], a->nb[1], a->nb[2], a->nb[3],
                                          (size_t) (a->ne[0]/2*i)*a->nb[0]));
}
static tensor *glu_a(const struct edge *e) {
    if (e->b) return glu_x(e, e->a, e->b);
    const int swapped = param_i32(e->y, 1) != 0;
    if (e->a->ne[0] % 2) return NULL;
    tensor *x = half(e, swapped), *gate = half(e, !swapped);
    tensor *dx = glu_x(e, x, gate), *dgate = glu_gate(e, x, gate);
    return swapped ? ggml_concat(e->ctx, dgate, dx, 0) : ggml_concat(e->ctx, dx, dgate, 0);
}
static tensor *glu_b(const struct edge *e) { return glu_gate(e, e->a, e->b); }

/* ---- rows ------------------------------------------------------------------------------------------------------------ */

static tensor *rms_norm(const struct edge *e) { return ggml_rms_norm_back(e->ctx, e->g, e->a, param_f32(e->y, 0)); }

/* norm(x) is rms_norm(c), c = x less its mean: the gradient by c, less its mean. Rows are those of x. */
static tensor *norm_of(context *ctx, tensor *g, tensor *x, float eps) {
    tensor *c = ggml_sub(ctx, x, ggml_mean(ctx, x)), *d = ggml_rms_norm_back(ctx, g, c, eps);
    return d ? ggml_sub(ctx, d, ggml_mean(ctx, d)) : NULL;
}
static tensor *norm(const struct edge *e) { return norm_of(e->ctx, e->g, as_f32(e->ctx, e->a), param_f32(e->y, 0)); }

/* A group is a row of [ne0*ne1*channels, groups, ne3] when the groups are of one size. */
static tensor *group_norm(const struct edge *e) {
    const tensor *a = e->a;
    const int64_t groups = param_i32(e->y, 0);
    if (a->ne[2] % groups) return NULL;
    const int64_t n = a->ne[0]*a->ne[1]*(a->ne[2]/groups);
    tensor *x = ggml_reshape_3d(e->ctx, packed(e->ctx, as_f32(e->ctx, e->a)), n, groups, a->ne[3]);
    tensor *g = ggml_reshape_3d(e->ctx, packed(e->ctx, e->g), n, groups, a->ne[3]);
    return x && g ? shaped(e->ctx, norm_of(e->ctx, g, x, param_f32(e->y, 1)), e->a) : NULL;
}

/* y = x/d, d = max(|x|, eps):  dx = (dy - y*sum(y dy))/d, without the sum where d is eps. */
static tensor *l2_norm(const struct edge *e) {
    context *ctx = e->ctx;
    const float eps = param_f32(e->y, 0);
    tensor *size = ggml_sqrt(ctx, ggml_sum_rows(ctx, ggml_sqr(ctx, as_f32(ctx, e->a))));
    tensor *free = ggml_step(ctx, ggml_scale_bias(ctx, size, 1.0f, -eps));
    tensor *along = ggml_mul(ctx, ggml_sum_rows(ctx, ggml_mul(ctx, e->g, e->y)), free);
    tensor *across = along ? ggml_sub(ctx, e->g, ggml_mul(ctx, as_f32(ctx, e->y), along)) : NULL;
    return ggml_div(ctx, across, ggml_clamp(ctx, size, eps, INFINITY));
}
/* The sum from each element to the row's end. */
static tensor *cumsum(const struct edge *e) {
    tensor *g = packed(e->ctx, e->g);
    return ggml_sub(e->ctx, ggml_add(e->ctx, g, ggml_sum_rows(e->ctx, g)), ggml_cumsum(e->ctx, g));
}

/* Mask and bias are added before the exponential, sinks make the sum of y less than 1: the rule is the same. */
static tensor *soft_max(const struct edge *e) {
    return ggml_soft_max_ext_back(e->ctx, e->g, e->y, param_f32(e->y, 0), 0.0f);
}

/* A sink is one more key without a value. Its share of a row is 1 - sum p, its gradient minus that share times sum p*dp; a sink
 * serves a slice, so that is added up over rows, [1, n, heads, n3]. */
static tensor *sinks_of(context *ctx, tensor *p, tensor *dp, tensor *sinks) {
    tensor *rest = ggml_scale_bias(ctx, ggml_sum_rows(ctx, p), -1.0f, 1.0f);
    tensor *rows = ggml_mul(ctx, ggml_sum_rows(ctx, ggml_mul(ctx, p, dp)), rest);
    if (!rows) return NULL;
    return shaped(ctx, ggml_neg(ctx, op_new(ctx, GGML_OP_REPEAT_BACK, GGML_TYPE_F32, SHAPE(1, 1, rows->ne[2], 1), SOURCES(rows))), sinks);
}
static tensor *soft_max_sinks(const struct edge *e) { return sinks_of(e->ctx, e->y, e->g, e->y->src[2]); }

/* Attention with the probabilities p of the forward pass made again, p [n_kv, n, heads]: dv = sum over n of p*dy,
 * dp = sum over dv of v*dy, and from there as softmax and products. With a soft cap c the softmax is of c*t, t = tanh(s/c),
 * and ds = (1 - t^2)*d(c*t). */
struct attention { tensor *p, *g, *dp, *ds; };
static struct attention attention_of(const struct edge *e) {
    const tensor *y = e->y;
    context *ctx = e->ctx;
    struct attention at = { NULL, NULL, NULL, NULL };
    const float cap = param_f32(y, 2), scale = cap != 0.0f ? param_f32(y, 0)/cap : param_f32(y, 0), factor = cap != 0.0f ? cap : scale;
    tensor *s = ggml_mul_mat(ctx, ordered(ctx, y->src[1]), y->src[0]);
    tensor *t = cap != 0.0f ? ggml_tanh(ctx, ggml_scale(ctx, s, scale)) : NULL;
    at.p = ggml_soft_max_ext(ctx, cap != 0.0f ? t : s, y->src[3], factor, param_f32(y, 1));
    if (at.p && y->src[4]) ggml_soft_max_add_sinks(at.p, y->src[4]);
    at.g  = ggml_permute(ctx, e->g, 0, 2, 1, 3);
    at.dp = ggml_mul_mat(ctx, ordered(ctx, y->src[2]), at.g);
    at.ds = ggml_soft_max_ext_back(ctx, at.dp, at.p, factor, 0.0f);
    if (cap != 0.0f) at.ds = ggml_mul(ctx, at.ds, ggml_scale_bias(ctx, ggml_sqr(ctx, t), -scale, scale));
    return at;
}
static tensor *attention_q(const struct edge *e) {
    const struct attention at = attention_of(e);
    return at.ds ? ggml_out_prod(e->ctx, ordered(e->ctx, e->b), ggml_transpose(e->ctx, at.ds)) : NULL;
}
static tensor *attention_k(const struct edge *e) {
    const struct attention at = attention_of(e);
    return summed_groups(e->ctx, at.ds ? ggml_out_prod(e->ctx, ordered(e->ctx, e->a), at.ds) : NULL, e->b);
}
static tensor *attention_v(const struct edge *e) {
    const struct attention at = attention_of(e);
    return summed_groups(e->ctx, at.p ? ggml_out_prod(e->ctx, at.g, at.p) : NULL, e->y->src[2]);
}
static tensor *attention_sinks(const struct edge *e) {
    const struct attention at = attention_of(e);
    return at.ds ? sinks_of(e->ctx, at.p, at.dp, e->y->src[4]) : NULL;
}

/* Turning by the angle and by its negative are each other's gradient; all parameters are shared. */
static tensor *rope(const struct edge *e) {
    const enum ggml_op op = e->y->op == GGML_OP_ROPE ? GGML_OP_ROPE_BACK : GGML_OP_ROPE;
    return op_params(op_like(e->ctx, op, e->g, false, SOURCES(e->g, e->b, e->y->src[2])), 16, e->y->op_params);
}

/* Rows g [n, r, b2, b3] added to zeros at ids [r, b2, b3] of slices of n_rows each. All slices are seen as one: each slice's
 * ids move on by the rows before it, in floats, which hold them exactly up to 2^24. */
static tensor *rows_added(context *ctx, tensor *g, tensor *ids, int64_t n_rows) {
    const int64_t slices = ids->ne[1]*ids->ne[2], n = g->ne[0];
    ids = packed(ctx, ids);
    if (slices > 1) {
        if (n_rows*slices > 1 << 24) return NULL;
        tensor *first = ggml_reshape_3d(ctx, ggml_scale(ctx, ggml_arange(ctx, 0.0f, (float) slices, 1.0f), (float) n_rows), 1, slices, 1);
        tensor *each = ids ? ggml_reshape_2d(ctx, ids, ids->ne[0], slices) : NULL;
        ids = ggml_cast(ctx, ggml_add(ctx, ggml_cast(ctx, each, GGML_TYPE_F32), first), GGML_TYPE_I32);
    }
    const int64_t total = ids ? ggml_nelements(ids) : 0;
    tensor *flat = ggml_reshape_1d(ctx, ids, total), *rows = ggml_reshape_2d(ctx, packed(ctx, g), n, total);
    return op_new(ctx, GGML_OP_GET_ROWS_BACK, GGML_TYPE_F32, SHAPE(n, n_rows*slices, 1, 1), SOURCES(rows, flat));
}
static tensor *get_rows(const struct edge *e) { return shaped(e->ctx, rows_added(e->ctx, e->g, e->b, e->a->ne[1]), e->a); }
static tensor *get_rows_back(const struct edge *e) { return ggml_get_rows(e->ctx, e->g, e->b); }
/* The rows b [n, ids of one] that ids of any shape have picked. */
static tensor *add_id_b(const struct edge *e) {
    tensor *ids = packed(e->ctx, e->y->src[2]);
    ids = ids ? ggml_reshape_1d(e->ctx, ids, ggml_nelements(ids)) : NULL;
    return ids ? shaped(e->ctx, rows_added(e->ctx, e->g, ids, e->b->ne[1]), e->b) : NULL;
}

/* SET_ROWS(values a, ids b, where to c), each id once in a slice: values take the gradient of the rows that they have become,
 * and nothing flows to what was there before. */
static tensor *set_rows_values(const struct edge *e) {
    tensor *ids = e->b->type == GGML_TYPE_I32 ? e->b : ggml_cast(e->ctx, e->b, GGML_TYPE_I32);
    return ggml_get_rows(e->ctx, e->g, ggml_repeat_4d(e->ctx, ids, e->b->ne[0], e->a->ne[2], e->a->ne[3], 1));
}
static tensor *set_rows_place(const struct edge *e) {
    return ggml_set_rows(e->ctx, ggml_dup(e->ctx, packed(e->ctx, e->g)), zeros(e->ctx, e->g, e->a->ne), e->b);
}

/* ---- experts --------------------------------------------------------------------------------------------------------- */

/* y[:, u, t] = a[:, :, ids[u, t]] times b[:, u, t], b's dim 1 repeated. To b flows the same product with a transposed. */
static tensor *mul_mat_id_b(const struct edge *e) {
    context *ctx = e->ctx;
    tensor *a = ggml_is_quantized(e->a->type) ? as_f32(ctx, e->a) : e->a;
    tensor *turned = ggml_cont(ctx, ggml_transpose(ctx, a));
    return summed(ctx, ggml_mul_mat_id(ctx, turned, e->g, e->y->src[2]), e->b);
}
/* To expert x flows the sum of outer products of b and dy over the pairs (u, t) whose id is x: an outer product whose third
 * source names the slice that each pair adds to. */
static tensor *mul_mat_id_a(const struct edge *e) {
    context *ctx = e->ctx;
    const int64_t k = e->b->ne[0], n = e->y->ne[0], used = e->y->ne[1], tokens = e->y->ne[2], pairs = used*tokens;
    tensor *ids = ggml_reshape_1d(ctx, packed(ctx, e->y->src[2]), pairs), *g = ggml_reshape_2d(ctx, packed(ctx, e->g), n, pairs);
    tensor *b = as_f32(ctx, e->b);
    b = ggml_reshape_2d(ctx, e->b->ne[1] == used ? packed(ctx, b) : ggml_repeat_4d(ctx, b, k, used, tokens, 1), k, pairs);
    return op_new(ctx, GGML_OP_OUT_PROD, GGML_TYPE_F32, SHAPE(k, n, e->a->ne[2], 1), SOURCES(b, g, ids));
}

static tensor *diag_mask(const struct edge *e) { return ggml_diag_mask_zero(e->ctx, e->g, param_i32(e->y, 0)); }
static tensor *tri(const struct edge *e) {
    return ggml_tri(e->ctx, e->g, (enum ggml_tri_type) param_i32(e->y, 0));
}
static tensor *cross_entropy(const struct edge *e) { return ggml_cross_entropy_loss_back(e->ctx, e->g, e->a, e->b); }

/* ---- other layouts of the same elements ------------------------------------------------------------------------------ */

static tensor *transpose(const struct edge *e) { return ggml_transpose(e->ctx, e->g); }
static tensor *permute(const struct edge *e) {
    int back[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; d++) back[param_i32(e->y, d)] = d;
    return ggml_permute(e->ctx, e->g, back[0], back[1], back[2], back[3]);
}

/* The part of g from element `at` on that has the shape of `like`. */
static tensor *part(const struct edge *e, const tensor *like, int dim, int64_t at) {
    tensor *g = packed(e->ctx, e->g);
    if (!g) return NULL;
    return ggml_cont(e->ctx, ggml_view_4d(e->ctx, g, like->ne[0], like->ne[1], like->ne[2], like->ne[3], g->nb[1], g->nb[2],
                                          g->nb[3], (size_t) at*g->nb[dim]));
}
static tensor *concat_a(const struct edge *e) { return part(e, e->a, 0, 0); }
static tensor *concat_b(const struct edge *e) { return part(e, e->b, param_i32(e->y, 0), e->a->ne[param_i32(e->y, 0)]); }

/* A region in floats: where its bytes in an element type of `size` bytes come to lie when every element is F32. */
struct region { size_t nb[GGML_MAX_DIMS], offset; };
static struct region region_of(const size_t *nb, size_t offset, size_t size) {
    struct region r = { .offset = offset/size*sizeof(float) };
    for (int d = 0; d < GGML_MAX_DIMS; d++) r.nb[d] = nb[d]/size*sizeof(float);
    return r;
}
/* Strides and offset fit the op's 32-bit parameters. */
static bool region_small(const tensor *t, const struct region *r) {
    bool ok = r->offset <= INT32_MAX;
    for (int d = 1; d < GGML_MAX_DIMS; d++) ok = ok && (r->nb[d] <= INT32_MAX || t->ne[d] == 1);
    return ok;
}
static tensor *cut(context *ctx, tensor *g, const tensor *like, const struct region *r) {
    return ggml_cont(ctx, ggml_view_4d(ctx, g, like->ne[0], like->ne[1], like->ne[2], like->ne[3], r->nb[1], r->nb[2],
                                       r->nb[3], r->offset));
}

/* ACC and SET: a region of y is added to, or is, b. */
static struct region target(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return region_of((const size_t[]) { 0, (size_t) p[0], (size_t) p[1], (size_t) p[2] }, (size_t) p[3],
                     ggml_element_size(e->y));
}
static tensor *region_b(const struct edge *e) {
    const struct region r = target(e);
    tensor *g = packed(e->ctx, e->g);
    return g ? cut(e->ctx, g, e->b, &r) : NULL;
}
static tensor *set_a(const struct edge *e) {
    const struct region r = target(e);
    return region_small(e->b, &r) ? ggml_set(e->ctx, packed(e->ctx, e->g), zeros(e->ctx, e->g, e->b->ne), r.nb[1], r.nb[2],
                                             r.nb[3], r.offset) : NULL;
}

/* Elements from the first to the last, gaps included. */
static int64_t extent(const tensor *t) { return (int64_t) (ggml_nbytes(t)/ggml_element_size(t)); }

/* The window's gradient is added to zeros laid out as the memory that window and source share, and the source's elements are
 * read out of it. So strides of either may be any, and elements that a window shows twice count twice. */
static tensor *view(const struct edge *e) {
    const tensor *a = e->a, *y = e->y;
    const size_t size = ggml_element_size(a);
    size_t offset;
    memcpy(&offset, y->op_params, sizeof offset);
    const struct region r = region_of(y->nb, offset, size), whole = region_of(a->nb, 0, size);
    const int64_t end = (int64_t) (offset/size) + extent(y), n = extent(a) > end ? extent(a) : end;
    if (y->type != a->type || offset % size || !region_small(y, &r) || ggml_nelements(y) > n) return NULL;
    tensor *memory = ggml_acc(e->ctx, zeros(e->ctx, e->g, SHAPE(n, 1, 1, 1)), packed(e->ctx, e->g), r.nb[1], r.nb[2], r.nb[3],
                              r.offset);
    if (ggml_is_contiguous(a) && n == ggml_nelements(a)) return shaped(e->ctx, memory, e->a);
    tensor *t = memory ? ggml_view_4d(e->ctx, memory, a->ne[0], a->ne[1], a->ne[2], a->ne[3], whole.nb[1], whole.nb[2],
                                      whole.nb[3], 0) : NULL;
    if (t) t->nb[0] = whole.nb[0];
    return ggml_cont(e->ctx, t);
}

/* ---- grids ------------------------------------------------------------------------------------------------------------ */

static tensor *im2col_b(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return ggml_im2col_back(e->ctx, packed(e->ctx, e->g), e->a, e->b->ne, p[0], p[1], p[2], p[3], p[4], p[5], p[6] != 0);
}

/* Convolutions without columns of their own, as products of columns [taps, P] and kernels [taps, OC]. P is every window of all
 * of the data, OW*OH*N. */
struct window { int s0, s1, p0, p1, d0, d1; };
static struct window window_of(const tensor *y) {
    return (struct window) { param_i32(y, 0), param_i32(y, 1), param_i32(y, 2), param_i32(y, 3), param_i32(y, 4), param_i32(y, 5) };
}
static tensor *columns(context *ctx, tensor *kernel, tensor *data, const struct window *w) {
    return ggml_im2col(ctx, kernel, data, w->s0, w->s1, w->p0, w->p1, w->d0, w->d1, true, GGML_TYPE_F32);
}
static tensor *rows_of(context *ctx, tensor *t, int64_t n) {
    return t ? ggml_reshape_2d(ctx, packed(ctx, t), n, n ? ggml_nelements(t)/n : 0) : NULL;
}
/* Channels first: [C, W*H*N]. */
static tensor *by_channel(context *ctx, tensor *t) {
    return t ? rows_of(ctx, ggml_cont(ctx, ggml_permute(ctx, t, 1, 2, 0, 3)), t->ne[2]) : NULL;
}
static int64_t taps(const tensor *kernel) { return kernel->ne[0]*kernel->ne[1]*kernel->ne[2]; }

static tensor *conv_2d_kernel(const struct edge *e) {
    const struct window w = window_of(e->y);
    tensor *x = rows_of(e->ctx, columns(e->ctx, e->a, as_f32(e->ctx, e->b), &w), taps(e->a));
    return shaped(e->ctx, ggml_out_prod(e->ctx, x, by_channel(e->ctx, e->g)), e->a);
}
static tensor *conv_2d_data(const struct edge *e) {
    const struct window w = window_of(e->y);
    const tensor *y = e->y;
    tensor *kernel = rows_of(e->ctx, as_f32(e->ctx, e->a), taps(e->a));
    tensor *x = ggml_out_prod(e->ctx, kernel, ggml_transpose(e->ctx, by_channel(e->ctx, e->g)));
    return ggml_im2col_back(e->ctx, ggml_reshape_4d(e->ctx, x, taps(e->a), y->ne[0], y->ne[1], y->ne[3]), e->a, e->b->ne,
                            w.s0, w.s1, w.p0, w.p1, w.d0, w.d1, true);
}

/* A channel for itself: data seen as N*C pictures of one channel, columns as [taps, P, C, N]. */
static tensor *conv_dw_kernel(const struct edge *e) {
    context *ctx = e->ctx;
    const struct window w = window_of(e->y);
    const tensor *y = e->y;
    const int64_t positions = y->ne[0]*y->ne[1];
    tensor *data = ggml_reshape_4d(ctx, packed(ctx, as_f32(ctx, e->b)), e->b->ne[0], e->b->ne[1], 1, e->b->ne[2]*e->b->ne[3]);
    tensor *x = ggml_reshape_4d(ctx, columns(ctx, e->a, data, &w), taps(e->a), positions, y->ne[2], y->ne[3]);
    tensor *g = ggml_reshape_4d(ctx, packed(ctx, e->g), 1, positions, y->ne[2], y->ne[3]);
    tensor *each = ggml_out_prod(ctx, x, g);
    return shaped(ctx, each ? op_new(ctx, GGML_OP_REPEAT_BACK, GGML_TYPE_F32, SHAPE(taps(e->a), 1, y->ne[2], 1), SOURCES(each)) : NULL,
                  e->a);
}
static tensor *conv_dw_data(const struct edge *e) {
    context *ctx = e->ctx;
    const struct window w = window_of(e->y);
    const tensor *y = e->y;
    const int64_t pictures = y->ne[2]*y->ne[3];
    tensor *kernel = ggml_reshape_4d(ctx, packed(ctx, as_f32(ctx, e->a)), taps(e->a), 1, y->ne[2], 1);
    tensor *x = ggml_out_prod(ctx, kernel, ggml_reshape_4d(ctx, packed(ctx, e->g), y->ne[0]*y->ne[1], 1, y->ne[2], y->ne[3]));
    tensor *data = ggml_im2col_back(ctx, ggml_reshape_4d(ctx, x, taps(e->a), y->ne[0], y->ne[1], pictures), e->a,
                                    (int64_t[]) { e->b->ne[0], e->b->ne[1], 1, pictures }, w.s0, w.s1, w.p0, w.p1, w.d0, w.d1, true);
    return shaped(ctx, data, e->b);
}

/* y is [OW, OH, OD, OC*N], the kernel [KW, KH, KD, C*OC]. */
struct window_3d { int s[3], p[3], d[3]; int64_t c, n, oc; };
static struct window_3d window_3d_of(const tensor *y) {
    struct window_3d w = { .c = param_i32(y, 9), .n = param_i32(y, 10), .oc = param_i32(y, 11) };
    for (int i = 0; i < 3; i++) w.s[i] = param_i32(y, i), w.p[i] = param_i32(y, 3 + i), w.d[i] = param_i32(y, 6 + i);
    return w;
}
/* The gradient with channels first, [OC, OW*OH*OD*N]. */
static tensor *channels_3d(const struct edge *e, const struct window_3d *w) {
    const int64_t positions = e->y->ne[0]*e->y->ne[1]*e->y->ne[2];
    return by_channel(e->ctx, ggml_reshape_4d(e->ctx, packed(e->ctx, e->g), positions, 1, w->oc, w->n));
}
static tensor *conv_3d_kernel(const struct edge *e) {
    const struct window_3d w = window_3d_of(e->y);
    tensor *x = ggml_im2col_3d(e->ctx, e->a, as_f32(e->ctx, e->b), w.c, w.s[0], w.s[1], w.s[2], w.p[0], w.p[1], w.p[2], w.d[0], w.d[1], w.d[2],
                               GGML_TYPE_F32);
    return shaped(e->ctx, ggml_out_prod(e->ctx, rows_of(e->ctx, x, taps(e->a)*w.c), channels_3d(e, &w)), e->a);
}
static tensor *turned(context *ctx, tensor *t, int d0, int d1, int d2, int d3) { return ggml_cont(ctx, ggml_permute(ctx, t, d0, d1, d2, d3)); }
/* Columns are added back in two steps: each picture of a tap in depth and a place in depth for itself, [IW, IH] of them all; then
 * the taps in depth, as lines of one dimension, one for each element of the picture. */
static tensor *conv_3d_data(const struct edge *e) {
    context *ctx = e->ctx;
    const struct window_3d w = window_3d_of(e->y);
    const int64_t *k = e->a->ne, *in = e->b->ne, *out = e->y->ne, area = k[0]*k[1], plane = in[0]*in[1];
    tensor *kernel = rows_of(ctx, as_f32(ctx, e->a), area*k[2]*w.c);
    tensor *x = ggml_out_prod(ctx, kernel, ggml_transpose(ctx, channels_3d(e, &w)));            /* [taps, OW*OH*OD*N] */
    x = ggml_reshape_4d(ctx, x, area, k[2]*w.c, out[0]*out[1], out[2]*w.n);
    x = ggml_reshape_4d(ctx, turned(ctx, x, 0, 2, 1, 3), area, out[0], out[1], k[2]*w.c*out[2]*w.n);
    x = ggml_im2col_back(ctx, x, ggml_reshape_4d(ctx, kernel, k[0], k[1], 1, k[2]*k[3]),
                         (int64_t[]) { in[0], in[1], 1, k[2]*w.c*out[2]*w.n }, w.s[0], w.s[1], w.p[0], w.p[1], w.d[0], w.d[1], true);
    x = turned(ctx, ggml_reshape_4d(ctx, x, plane, k[2], w.c, out[2]*w.n), 2, 0, 3, 1);         /* [KD, OD*N, plane, C] */
    const int64_t lines = w.n*plane*w.c;
    x = ggml_im2col_back(ctx, ggml_reshape_3d(ctx, x, k[2], out[2], lines), ggml_reshape_3d(ctx, kernel, k[2], 1, area*k[3]),
                         (int64_t[]) { in[2], 1, lines, 1 }, w.s[2], 0, w.p[2], 0, w.d[2], 0, false);
    x = turned(ctx, ggml_reshape_4d(ctx, x, in[2], w.n, plane, w.c), 1, 3, 0, 2);               /* [plane, ID, C, N] */
    return shaped(ctx, x, e->b);
}

/* Transposed: the data's gradient is the convolution of g. Kernel [K, OC, IC] or [KW, KH, OC, IC]; one dimension is two with a
 * height of 1. */
struct transposed { tensor *kernel, *g; struct window w; };
static struct transposed transposed_of(const struct edge *e) {
    const bool flat = e->y->op == GGML_OP_CONV_TRANSPOSE_1D;
    const int s = param_i32(e->y, 0);
    const int64_t *a = e->a->ne, *g = e->g->ne;
    return (struct transposed) {
        flat ? ggml_reshape_4d(e->ctx, packed(e->ctx, e->a), a[0], 1, a[1], a[2]) : e->a,
        flat ? ggml_reshape_4d(e->ctx, packed(e->ctx, e->g), g[0], 1, g[1], g[2]) : e->g,
        { s, flat ? 1 : s, 0, 0, 1, 1 },
    };
}
static tensor *transposed_kernel(const struct edge *e) {
    const struct transposed t = transposed_of(e);
    const bool flat = e->y->op == GGML_OP_CONV_TRANSPOSE_1D;
    tensor *data = packed(e->ctx, as_f32(e->ctx, e->b));
    if (flat) data = ggml_reshape_4d(e->ctx, data, e->b->ne[0], 1, e->b->ne[1], e->b->ne[2]);
    if (!t.kernel) return NULL;
    return shaped(e->ctx, ggml_out_prod(e->ctx, rows_of(e->ctx, columns(e->ctx, t.kernel, t.g, &t.w), taps(t.kernel)),
                                        by_channel(e->ctx, data)), e->a);
}
static tensor *transposed_data(const struct edge *e) {
    context *ctx = e->ctx;
    const struct transposed t = transposed_of(e);
    tensor *x = t.kernel ? columns(ctx, t.kernel, t.g, &t.w) : NULL;
    if (!x) return NULL;
    tensor *y = ggml_mul_mat(ctx, rows_of(ctx, t.kernel, taps(t.kernel)), rows_of(ctx, x, taps(t.kernel)));     /* [IC, P] */
    y = ggml_reshape_4d(ctx, y, t.kernel->ne[3], x->ne[1], x->ne[2], x->ne[3]);
    return shaped(ctx, ggml_cont(ctx, ggml_permute(ctx, y, 2, 0, 1, 3)), e->b);
}

static tensor *pool_2d(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return ggml_pool_2d_back(e->ctx, packed(e->ctx, e->g), e->a, (enum ggml_op_pool) p[0], p[1], p[2], p[3], p[4],
                             (float) p[5], (float) p[6]);
}
static tensor *roll(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return ggml_roll(e->ctx, e->g, -p[0], -p[1], -p[2], -p[3]);
}
/* Padding is left out again. A circular one is completed to whole repetitions, which are added up. */
static tensor *pad(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    tensor *g = packed(e->ctx, e->g);
    if (!g) return NULL;
    if (p[8]) {
        int more[2*GGML_MAX_DIMS];
        for (int d = 0; d < GGML_MAX_DIMS; d++) {
            const int64_t n = e->a->ne[d];
            more[2*d]     = (int) ((n - p[2*d] % n) % n);
            more[2*d + 1] = (int) ((n - p[2*d + 1] % n) % n);
        }
        g = ggml_pad_ext(e->ctx, g, more[0], more[1], more[2], more[3], more[4], more[5], more[6], more[7]);
        return ggml_repeat_back(e->ctx, g, e->a);
    }
    const struct region r = {
        .nb = { g->nb[0], g->nb[1], g->nb[2], g->nb[3] },
        .offset = (size_t) p[0]*g->nb[0] + (size_t) p[2]*g->nb[1] + (size_t) p[4]*g->nb[2] + (size_t) p[6]*g->nb[3],
    };
    return cut(e->ctx, g, e->a, &r);
}

/* ---- the tables ------------------------------------------------------------------------------------------------------- */

tensor *constant(const struct edge *e) { GGML_UNUSED(e); return NULL; }

static gradient *const unary_gradients[GGML_UNARY_OP_COUNT] = {
    [GGML_UNARY_OP_ABS]        = abs_a,
    [GGML_UNARY_OP_SGN]        = constant,
    [GGML_UNARY_OP_NEG]        = neg_a,
    [GGML_UNARY_OP_STEP]       = constant,
    [GGML_UNARY_OP_TANH]       = tanh_a,
    [GGML_UNARY_OP_ELU]        = elu,
    [GGML_UNARY_OP_RELU]       = relu,
    [GGML_UNARY_OP_SIGMOID]    = sigmoid,
    [GGML_UNARY_OP_GELU]       = gelu,
    [GGML_UNARY_OP_GELU_QUICK] = gelu_quick,
    [GGML_UNARY_OP_GELU_ERF]   = gelu_erf,
    [GGML_UNARY_OP_XIELU]      = xielu,
    [GGML_UNARY_OP_SILU]       = silu,
    [GGML_UNARY_OP_HARDSWISH]  = hardswish,
    [GGML_UNARY_OP_HARDSIGMOID] = hardsigmoid,
    [GGML_UNARY_OP_EXP]        = exp_a,
    [GGML_UNARY_OP_EXPM1]      = expm1_a,
    [GGML_UNARY_OP_SOFTPLUS]   = softplus,
    [GGML_UNARY_OP_FLOOR]      = constant,
    [GGML_UNARY_OP_CEIL]       = constant,
    [GGML_UNARY_OP_ROUND]      = constant,
    [GGML_UNARY_OP_TRUNC]      = constant,
};
static gradient *unary_gradient(enum ggml_unary_op op) { return unary_gradients[op]; }

enum { SOURCES_WITH_GRADIENTS = 5 };
static gradient *const gradients[GGML_OP_COUNT][SOURCES_WITH_GRADIENTS] = {
    /*                                 by a            by b            by c            by d    by e */
    [GGML_OP_DUP]                  = { pass },
    [GGML_OP_ADD]                  = { pass,           pass_b },
    [GGML_OP_ADD_ID]               = { pass,           add_id_b,       constant },
    [GGML_OP_ADD1]                 = { pass,           total_b },
    [GGML_OP_ACC]                  = { pass,           region_b },
    [GGML_OP_SUB]                  = { pass,           minus_b },
    [GGML_OP_MUL]                  = { mul_a,          mul_b },
    [GGML_OP_DIV]                  = { div_a,          div_b },
    [GGML_OP_SQR]                  = { sqr },
    [GGML_OP_SQRT]                 = { sqrt_a },
    [GGML_OP_LOG]                  = { log_a },
    [GGML_OP_SIN]                  = { sin_a },
    [GGML_OP_COS]                  = { cos_a },
    [GGML_OP_SUM]                  = { repeated },
    [GGML_OP_SUM_ROWS]             = { repeated },
    [GGML_OP_CUMSUM]               = { cumsum },
    [GGML_OP_MEAN]                 = { averaged },
    [GGML_OP_REPEAT]               = { reduced },
    [GGML_OP_REPEAT_BACK]          = { repeated },
    [GGML_OP_CONCAT]               = { concat_a,       concat_b },
    [GGML_OP_NORM]                 = { norm },
    [GGML_OP_RMS_NORM]             = { rms_norm },
    [GGML_OP_GROUP_NORM]           = { group_norm },
    [GGML_OP_L2_NORM]              = { l2_norm },
    [GGML_OP_MUL_MAT]              = { mul_mat_a,      mul_mat_b },
    [GGML_OP_MUL_MAT_ID]           = { mul_mat_id_a,   mul_mat_id_b,   constant },
    [GGML_OP_OUT_PROD]             = { out_prod_a,     out_prod_b },
    [GGML_OP_SCALE]                = { scaled },
    [GGML_OP_SET]                  = { set_a,          region_b },
    [GGML_OP_CPY]                  = { pass,           constant },
    [GGML_OP_CONT]                 = { pass },
    [GGML_OP_RESHAPE]              = { pass },
    [GGML_OP_VIEW]                 = { view },
    [GGML_OP_PERMUTE]              = { permute },
    [GGML_OP_TRANSPOSE]            = { transpose },
    [GGML_OP_GET_ROWS]             = { get_rows,       constant },
    [GGML_OP_GET_ROWS_BACK]        = { get_rows_back,  constant },
    [GGML_OP_SET_ROWS]             = { set_rows_values, constant,      set_rows_place },
    [GGML_OP_DIAG_MASK_INF]        = { diag_mask },
    [GGML_OP_DIAG_MASK_ZERO]       = { diag_mask },
    [GGML_OP_SOFT_MAX]             = { soft_max,       NULL,           soft_max_sinks },
    [GGML_OP_ROPE]                 = { rope,           constant },
    [GGML_OP_ROPE_BACK]            = { rope,           constant },
    [GGML_OP_CLAMP]                = { clamp },
    [GGML_OP_IM2COL]               = { constant,       im2col_b },
    [GGML_OP_IM2COL_BACK]          = { NULL,           constant },
    [GGML_OP_CONV_2D]              = { conv_2d_kernel, conv_2d_data },
    [GGML_OP_CONV_2D_DW]           = { conv_dw_kernel, conv_dw_data },
    [GGML_OP_CONV_3D]              = { conv_3d_kernel, conv_3d_data },
    [GGML_OP_CONV_TRANSPOSE_1D]    = { transposed_kernel, transposed_data },
    [GGML_OP_CONV_TRANSPOSE_2D]    = { transposed_kernel, transposed_data },
    [GGML_OP_POOL_2D]              = { pool_2d },
    [GGML_OP_PAD]                  = { pad },
    [GGML_OP_ROLL]                 = { roll },
    [GGML_OP_ARGMAX]               = { constant },
    [GGML_OP_ARGSORT]              = { constant },
    [GGML_OP_TOP_K]                = { constant },
    [GGML_OP_COUNT_EQUAL]          = { constant,       constant },
    [GGML_OP_FILL]                 = { constant },
    [GGML_OP_LEAKY_RELU]           = { leaky_relu },
    [GGML_OP_FLASH_ATTN_EXT]       = { attention_q,    attention_k,    attention_v,    NULL,   attention_sinks },
    [GGML_OP_TRI]                  = { tri },
    [GGML_OP_CROSS_ENTROPY_LOSS]   = { cross_entropy },
};

gradient *gradient_of(const tensor *y, int s) {
    if (s >= SOURCES_WITH_GRADIENTS) return NULL;
    if (y->op == GGML_OP_UNARY) return s == 0 ? unary_gradient((enum ggml_unary_op) param_i32(y, 0)) : NULL;
    if (y->op == GGML_OP_GLU)   return s > 1 || !glu_functions[param_i32(y, 0)].known ? NULL : s == 0 ? glu_a : glu_b;
    return gradients[y->op][s];
}
