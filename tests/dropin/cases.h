#ifndef CASES_H
#define CASES_H
/* Small graphs, one for an op or a type, with the bound of the squared error that two libraries may be apart. Only the interface
 * is used, so that programs which know no library of their own (compare.c) can run them. */

#include "check.h"
#include "ggml.h"
#include "ggml-backend.h"

static struct ggml_tensor *f32(struct ggml_context *c, int64_t a, int64_t b, int64_t d, int64_t e) {
    return ggml_new_tensor_4d(c, GGML_TYPE_F32, a, b, d, e);
}
static struct ggml_tensor *of(struct ggml_context *c, enum ggml_type type, int64_t a, int64_t b, int64_t d) {
    return ggml_new_tensor_4d(c, type, a, b, d, 1);
}
static struct ggml_tensor *ids(struct ggml_context *c, int64_t n, int64_t rows) {
    return ggml_new_tensor_2d(c, GGML_TYPE_I32, n, rows);       /* numbers 0..3 */
}
static struct ggml_tensor *long_ids(struct ggml_context *c, int64_t n) {
    return ggml_new_tensor_1d(c, GGML_TYPE_I64, n);             /* numbers 0..n-1 */
}
static struct ggml_tensor *above_zero(struct ggml_context *c) { return ggml_set_name(f32(c, 65, 3, 2, 1), "above zero"); }

#define X    f32(c, 65, 7, 3, 2)
#define Y    f32(c, 64, 8, 1, 1)
#define MASK of(c, GGML_TYPE_F16, 64, 8, 1)

/*   name             bound    result */
#define CASES(CASE) \
    CASE(add,         0,       ggml_add(c, X, f32(c, 65, 1, 3, 1))) \
    CASE(sub,         0,       ggml_sub(c, X, X)) \
    CASE(mul,         0,       ggml_mul(c, X, f32(c, 65, 7, 1, 1))) \
    CASE(div,         1e-12,   ggml_div(c, X, f32(c, 1, 7, 3, 2))) \
    CASE(scale,       1e-12,   ggml_scale_bias(c, X, 1.5f, 0.25f)) \
    CASE(sqr,         0,       ggml_sqr(c, X)) \
    CASE(sqrt,        0,       ggml_sqrt(c, above_zero(c))) \
    CASE(log,         1e-12,   ggml_log(c, above_zero(c))) \
    CASE(sin,         1e-12,   ggml_sin(c, X)) \
    CASE(cos,         1e-12,   ggml_cos(c, X)) \
    CASE(exp,         1e-12,   ggml_exp(c, X)) \
    CASE(tanh,        1e-12,   ggml_tanh(c, X)) \
    CASE(sigmoid,     1e-12,   ggml_sigmoid(c, X)) \
    CASE(relu,        0,       ggml_relu(c, X)) \
    CASE(silu,        1e-10,   ggml_silu(c, X)) \
    CASE(gelu,        1e-6,    ggml_gelu(c, X)) \
    CASE(gelu_erf,    1e-10,   ggml_gelu_erf(c, X)) \
    CASE(swiglu,      1e-10,   ggml_swiglu_split(c, X, X)) \
    CASE(geglu,       1e-6,    ggml_geglu_split(c, X, X)) \
    CASE(clamp,       0,       ggml_clamp(c, X, -0.5f, 0.5f)) \
    CASE(sum,         1e-10,   ggml_sum(c, X)) \
    CASE(sum_rows,    1e-10,   ggml_sum_rows(c, X)) \
    CASE(mean,        1e-10,   ggml_mean(c, X)) \
    CASE(argmax,      0,       ggml_argmax(c, Y)) \
    CASE(argsort,     0,       ggml_argsort(c, Y, GGML_SORT_ORDER_DESC)) \
    CASE(norm,        1e-10,   ggml_norm(c, X, 1e-5f)) \
    CASE(rms_norm,    1e-10,   ggml_rms_norm(c, X, 1e-5f)) \
    CASE(l2_norm,     1e-10,   ggml_l2_norm(c, X, 1e-5f)) \
    CASE(group_norm,  1e-10,   ggml_group_norm(c, f32(c, 16, 16, 8, 1), 4, 1e-5f)) \
    CASE(soft_max,    1e-10,   ggml_soft_max(c, X)) \
    CASE(soft_mask,   1e-10,   ggml_soft_max_ext(c, f32(c, 64, 8, 4, 1), MASK, 0.125f, 8.0f)) \
    CASE(rope,        1e-7,    ggml_rope(c, f32(c, 64, 4, 3, 1), ids(c, 3, 1), 64, GGML_ROPE_TYPE_NORMAL)) \
    CASE(rope_neox,   1e-7,    ggml_rope(c, f32(c, 64, 4, 3, 1), ids(c, 3, 1), 64, GGML_ROPE_TYPE_NEOX)) \
    CASE(transpose,   0,       ggml_cont(c, ggml_transpose(c, X))) \
    CASE(permute,     0,       ggml_cont(c, ggml_permute(c, X, 2, 0, 3, 1))) \
    CASE(cast,        0,       ggml_cast(c, X, GGML_TYPE_F16)) \
    CASE(quantise,    0,       ggml_cast(c, Y, GGML_TYPE_Q8_0)) \
    CASE(concat,      0,       ggml_concat(c, X, X, 1)) \
    CASE(repeat,      0,       ggml_repeat(c, f32(c, 65, 1, 1, 1), X)) \
    CASE(get_rows,    0,       ggml_get_rows(c, f32(c, 33, 4, 1, 1), ids(c, 9, 1))) \
    CASE(rows_q4_0,   0,       ggml_get_rows(c, of(c, GGML_TYPE_Q4_0, 64, 4, 1), ids(c, 9, 1))) \
    CASE(rows_q6_K,   0,       ggml_get_rows(c, of(c, GGML_TYPE_Q6_K, 256, 4, 1), ids(c, 9, 1))) \
    CASE(pad,         0,       ggml_pad(c, X, 3, 2, 1, 0)) \
    CASE(roll,        0,       ggml_roll(c, X, 2, -1, 1, 0)) \
    CASE(upscale,     1e-10,   ggml_upscale(c, f32(c, 8, 8, 3, 1), 2, GGML_SCALE_MODE_NEAREST)) \
    CASE(im2col,      0,       ggml_im2col(c, f32(c, 3, 3, 2, 4), f32(c, 10, 9, 2, 1), 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32)) \
    CASE(pool,        1e-10,   ggml_pool_2d(c, f32(c, 12, 12, 3, 1), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0)) \
    CASE(cumsum,      1e-10,   ggml_cumsum(c, Y)) \
    CASE(out_prod,    1e-10,   ggml_out_prod(c, f32(c, 32, 5, 1, 1), f32(c, 16, 5, 1, 1))) \
    CASE(mul_mat,     1e-10,   ggml_mul_mat(c, f32(c, 96, 33, 2, 1), f32(c, 96, 5, 4, 1))) \
    CASE(mm_f16,      1e-6,    ggml_mul_mat(c, of(c, GGML_TYPE_F16, 96, 33, 1), f32(c, 96, 5, 1, 1))) \
    CASE(mm_bf16,     1e-4,    ggml_mul_mat(c, of(c, GGML_TYPE_BF16, 96, 33, 1), f32(c, 96, 5, 1, 1))) \
    CASE(mm_q4_0,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q4_0, 256, 33, 1), f32(c, 256, 5, 1, 1))) \
    CASE(mm_q4_1,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q4_1, 256, 33, 1), f32(c, 256, 1, 1, 1))) \
    CASE(mm_q5_0,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q5_0, 256, 33, 1), f32(c, 256, 5, 1, 1))) \
    CASE(mm_q8_0,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q8_0, 256, 33, 1), f32(c, 256, 5, 1, 1))) \
    CASE(mm_q4_K,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q4_K, 256, 33, 1), f32(c, 256, 5, 1, 1))) \
    CASE(mm_q6_K,     1e-5,    ggml_mul_mat(c, of(c, GGML_TYPE_Q6_K, 256, 33, 1), f32(c, 256, 1, 1, 1))) \
    CASE(experts,     1e-5,    ggml_mul_mat_id(c, of(c, GGML_TYPE_Q4_0, 256, 16, 4), f32(c, 256, 2, 6, 1), ids(c, 2, 6))) \
    CASE(leaky_relu,  0,       ggml_leaky_relu(c, X, 0.1f, false)) \
    CASE(mask_inf,    1e-10,    ggml_soft_max(c, ggml_diag_mask_inf(c, f32(c, 9, 9, 2, 1), 0))) \
    CASE(set_rows,    0,       ggml_set_rows(c, of(c, GGML_TYPE_F16, 64, 4, 1), f32(c, 64, 4, 1, 1), long_ids(c, 4))) \
    CASE(conv_2d,     1e-6,    ggml_conv_2d(c, of(c, GGML_TYPE_F16, 3, 3, 4), f32(c, 10, 9, 4, 1), 1, 1, 1, 1, 1, 1)) \
    CASE(conv_up,     1e-6,    ggml_conv_transpose_1d(c, f32(c, 3, 4, 5, 1), f32(c, 9, 5, 1, 1), 2, 0, 1)) \
    CASE(timestep,    1e-7,    ggml_timestep_embedding(c, f32(c, 7, 1, 1, 1), 32, 100)) \
    CASE(ssm_conv,    1e-10,   ggml_ssm_conv(c, f32(c, 12, 8, 2, 1), f32(c, 4, 8, 1, 1))) \
    CASE(gla,         1e-8,    ggml_gated_linear_attn(c, f32(c, 16, 2, 5, 1), f32(c, 16, 2, 5, 1), f32(c, 16, 2, 5, 1), \
                                                      f32(c, 16, 2, 5, 1), f32(c, 512, 1, 1, 1), 0.25f)) \
    CASE(cross,       1e-8,    ggml_cross_entropy_loss(c, Y, ggml_soft_max(c, Y))) \
    CASE(norm_back,   1e-8,    ggml_rms_norm_back(c, Y, Y, 1e-5f)) \
    CASE(repeat_back, 1e-10,   ggml_repeat_back(c, f32(c, 64, 8, 1, 1), f32(c, 32, 2, 1, 1))) \
    CASE(acc,         0,       ggml_acc(c, f32(c, 32, 8, 1, 1), f32(c, 16, 4, 1, 1), 128, 1024, 1024, 64)) \
    CASE(flash,       1e-4,    ggml_flash_attn_ext(c, f32(c, 64, 8, 4, 1), of(c, GGML_TYPE_F16, 64, 64, 4), \
                                                   of(c, GGML_TYPE_F16, 64, 64, 4), MASK, 0.125f, 0, 0)) \
    CASE(flash_q8_0,  1e-4,    ggml_flash_attn_ext(c, f32(c, 64, 8, 4, 1), of(c, GGML_TYPE_Q8_0, 64, 64, 4), \
                                                   of(c, GGML_TYPE_Q8_0, 64, 64, 4), MASK, 0.125f, 0, 0))

#define CASE(name, bound, result) static struct ggml_tensor *make_##name(struct ggml_context *c) { return result; }
CASES(CASE)
#undef CASE

static const struct op_case {
    const char *name;
    double bound;
    struct ggml_tensor *(*make)(struct ggml_context *);
} cases[] = {
#define CASE(name, bound, result) { #name, bound, make_##name },
    CASES(CASE)
#undef CASE
};

static uint64_t seed = 1;

static void fill(struct ggml_tensor *t) {
    const size_t n = (size_t) ggml_nelements(t), bytes = ggml_nbytes(t);
    const float least = strcmp(t->name, "above zero") ? -2 : 2;         /* then: at least 1 */
    float *x = malloc(n*sizeof *x);
    void *data = malloc(bytes);
    for (size_t i = 0; i < n; i++) x[i] = rnd_f32(&seed) + (least > 0 ? least : 0);
    if (t->type == GGML_TYPE_F32) memcpy(data, x, bytes);
    else if (t->type == GGML_TYPE_I32) for (size_t i = 0; i < n; i++) ((int32_t *) data)[i] = (int32_t) (i*5/3 % 4);
    else if (t->type == GGML_TYPE_I64) for (size_t i = 0; i < n; i++) ((int64_t *) data)[i] = (int64_t) (n - 1 - i);
    else ggml_quantize_chunk(t->type, x, data, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, data, 0, bytes);
    free(data);
    free(x);
}

/* The numbers of a result; the caller frees them. */
static inline float *numbers(const struct ggml_tensor *t) {
    const size_t n = (size_t) ggml_nelements(t), bytes = ggml_nbytes(t);
    float *x = malloc(n*sizeof *x);
    void *data = malloc(bytes);
    ggml_backend_tensor_get(t, data, 0, bytes);
    if (t->type == GGML_TYPE_I32) for (size_t i = 0; i < n; i++) x[i] = (float) ((int32_t *) data)[i];
    else if (t->type == GGML_TYPE_F32) memcpy(x, data, bytes);
    else ggml_get_type_traits(t->type)->to_float(data, x, (int64_t) n);
    free(data);
    return x;
}

#endif
