/* The gradient of every op, source by source: what a node's gradient g contributes to that of one of its sources.
 *
 * A row of the table names an op and a function for each of its first three sources. A function builds the contribution out
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
/* As many zeros, after g has been computed: nothing is kept from the graph's start. */
static tensor *zeros(context *ctx, tensor *g, const int64_t *ne) {
    return ggml_repeat_4d(ctx, ggml_fill(ctx, ggml_view_1d(ctx, g, 1, 0), 0.0f), ne[0], ne[1], ne[2], ne[3]);
}

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
/* 1 where min < x < max */
static tensor *clamp(const struct edge *e) {
    context *ctx = e->ctx;
    tensor *x = as_f32(ctx, e->a);
    tensor *above = ggml_step(ctx, ggml_scale_bias(ctx, x,  1.0f, -param_f32(e->y, 0)));
    tensor *below = ggml_step(ctx, ggml_scale_bias(ctx, x, -1.0f,  param_f32(e->y, 1)));
    return ggml_mul(ctx, ggml_mul(ctx, e->g, above), below);
}

/* ---- gated units: y = f(x)*gate, both in one row of a or in a and b --------------------------------------------------- */

static gradient *unary_gradient(enum ggml_unary_op op);
static const struct { bool known; enum ggml_unary_op f; } glu_functions[GGML_GLU_OP_COUNT] = {
    [GGML_GLU_OP_REGLU]       = { true, GGML_UNARY_OP_RELU },
    [GGML_GLU_OP_GEGLU]       = { true, GGML_UNARY_OP_GELU },
    [GGML_GLU_OP_SWIGLU]      = { true, GGML_UNARY_OP_SILU },
    [GGML_GLU_OP_GEGLU_QUICK] = { true, GGML_UNARY_OP_GELU_QUICK },
};
static tensor *glu_x(const struct edge *e, tensor *x, tensor *gate) {
    const enum ggml_unary_op f = glu_functions[param_i32(e->y, 0)].f;
    const struct edge inner = { .ctx = e->ctx, .a = x, .g = ggml_mul(e->ctx, e->g, gate) };
    return x && inner.g ? unary_gradient(f)(&inner) : NULL;
}
static tensor *glu_gate(const struct edge *e, tensor *x) {
    return ggml_mul(e->ctx, e->g, ggml_unary(e->ctx, x, glu_functions[param_i32(e->y, 0)].f));
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
    tensor *dx = glu_x(e, x, gate), *dgate = glu_gate(e, x);
    return swapped ? ggml_concat(e->ctx, dgate, dx, 0) : ggml_concat(e->ctx, dx, dgate, 0);
}
static tensor *glu_b(const struct edge *e) { return glu_gate(e, e->a); }

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

/* Attention with the probabilities p of the forward pass made again, p [n_kv, n, heads]: dv = sum over n of p*dy,
 * dp = sum over dv of v*dy, and from there as softmax and products. */
struct attention { tensor *p, *g, *ds; };
static struct attention attention_of(const struct edge *e) {
    const tensor *y = e->y;
    context *ctx = e->ctx;
    struct attention at = { NULL, NULL, NULL };
    if (param_f32(y, 2) != 0.0f /* soft cap */ || y->src[1]->ne[2] != y->src[2]->ne[2]) return at;
    const float scale = param_f32(y, 0);
    at.p = ggml_soft_max_ext(ctx, ggml_mul_mat(ctx, ordered(ctx, y->src[1]), y->src[0]), y->src[3], scale, param_f32(y, 1));
    if (at.p && y->src[4]) ggml_soft_max_add_sinks(at.p, y->src[4]);
    at.g = ggml_permute(ctx, e->g, 0, 2, 1, 3);
    at.ds = ggml_soft_max_ext_back(ctx, ggml_mul_mat(ctx, ordered(ctx, y->src[2]), at.g), at.p, scale, 0.0f);
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

/* Turning by the angle and by its negative are each other's gradient; all parameters are shared. */
static tensor *rope(const struct edge *e) {
    const enum ggml_op op = e->y->op == GGML_OP_ROPE ? GGML_OP_ROPE_BACK : GGML_OP_ROPE;
    return op_params(op_like(e->ctx, op, e->g, false, SOURCES(e->g, e->b, e->y->src[2])), 16, e->y->op_params);
}

static tensor *get_rows(const struct edge *e) {
    const bool plain = ggml_is_matrix(e->a) && ggml_is_vector(e->b);
    return plain ? ggml_get_rows_back(e->ctx, e->g, e->b, e->a) : NULL;
}
static tensor *get_rows_back(const struct edge *e) { return ggml_get_rows(e->ctx, e->g, e->b); }

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
static tensor *pool_2d(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return ggml_pool_2d_back(e->ctx, packed(e->ctx, e->g), e->a, (enum ggml_op_pool) p[0], p[1], p[2], p[3], p[4],
                             (float) p[5], (float) p[6]);
}
static tensor *roll(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    return ggml_roll(e->ctx, e->g, -p[0], -p[1], -p[2], -p[3]);
}
/* Padding is left out again; a circular one would have to be added up. */
static tensor *pad(const struct edge *e) {
    const int32_t *p = e->y->op_params;
    tensor *g = packed(e->ctx, e->g);
    if (p[8] || !g) return NULL;
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

static gradient *const gradients[GGML_OP_COUNT][3] = {
    /*                                 by a            by b            by c */
    [GGML_OP_DUP]                  = { pass },
    [GGML_OP_ADD]                  = { pass,           pass_b },
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
    [GGML_OP_DIAG_MASK_INF]        = { diag_mask },
    [GGML_OP_DIAG_MASK_ZERO]       = { diag_mask },
    [GGML_OP_SOFT_MAX]             = { soft_max },
    [GGML_OP_ROPE]                 = { rope,           constant },
    [GGML_OP_ROPE_BACK]            = { rope,           constant },
    [GGML_OP_CLAMP]                = { clamp },
    [GGML_OP_IM2COL]               = { constant,       im2col_b },
    [GGML_OP_IM2COL_BACK]          = { NULL,           constant },
    [GGML_OP_POOL_2D]              = { pool_2d },
    [GGML_OP_PAD]                  = { pad },
    [GGML_OP_ROLL]                 = { roll },
    [GGML_OP_ARGMAX]               = { constant },
    [GGML_OP_ARGSORT]              = { constant },
    [GGML_OP_TOP_K]                = { constant },
    [GGML_OP_COUNT_EQUAL]          = { constant,       constant },
    [GGML_OP_FILL]                 = { constant },
    [GGML_OP_LEAKY_RELU]           = { leaky_relu },
    [GGML_OP_FLASH_ATTN_EXT]       = { attention_q,    attention_k,    attention_v },
    [GGML_OP_TRI]                  = { tri },
    [GGML_OP_CROSS_ENTROPY_LOSS]   = { cross_entropy },
};

gradient *gradient_of(const tensor *y, int s) {
    if (s > 2) return NULL;
    if (y->op == GGML_OP_UNARY) return s == 0 ? unary_gradient((enum ggml_unary_op) param_i32(y, 0)) : NULL;
    if (y->op == GGML_OP_GLU)   return s > 1 || !glu_functions[param_i32(y, 0)].known ? NULL : s == 0 ? glu_a : glu_b;
    return gradients[y->op][s];
}
