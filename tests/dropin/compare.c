/* compare PLUGIN exact|near: ops on the host's CPU device and on a plugin's device, from the same data.
 *
 * The host is whichever tensor library the loader finds: this program knows the interface only. PLUGIN is a path for
 * ggml_backend_load, or a device's name after ggml_backend_load_all (so GGML_BACKEND_PATH is used). exact: every result must
 * have the same bytes; near: the squared error must be within the case's bound of the square of the result. */

#include "check.h"
#include "ggml.h"
#include "ggml-alloc.h"
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
    else ggml_quantize_chunk(t->type, x, data, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, data, 0, bytes);
    free(data);
    free(x);
}

/* The numbers of a result; the caller frees them. */
static float *numbers(const struct ggml_tensor *t) {
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

static const struct op_case *now;
static int compared;

static bool compare(int index, struct ggml_tensor *a, struct ggml_tensor *b, void *exact) {
    float *x = numbers(a), *y = numbers(b);
    double error = 0, square = 0;
    const int64_t n = ggml_nelements(a);
    for (int64_t i = 0; i < n; i++) {
        error  += ((double) x[i] - y[i])*((double) x[i] - y[i]);
        square += (double) x[i]*x[i];
    }
    const double bound = *(const bool *) exact ? 0 : now->bound;
    (void) index;
    CHECK(error <= bound*square, "%s: squared error %g of the square, bound %g", now->name, error/square, bound);
    compared++;
    free(x);
    free(y);
    return true;
}

static void one(const struct op_case *c, ggml_backend_t host, ggml_backend_t plugin, bool exact) {
    const struct ggml_init_params params = { .mem_size = (size_t) 1 << 20, .no_alloc = true };
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, false);
    struct ggml_tensor *result = c->make(ctx);
    now = c;
    ggml_build_forward_expand(graph, result);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, host);
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (t->op == GGML_OP_NONE) fill(t);
    CHECK(ggml_backend_supports_op(plugin, result), "%s: supported by the plugin", c->name);
    CHECK(ggml_backend_compare_graph_backend(host, plugin, graph, compare, &exact, NULL, 0), "%s", c->name);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

/* A graph that a scheduler spreads over both: the plugin is preferred and reads the host's memory. */
static void together(ggml_backend_t host, ggml_backend_t plugin) {
    ggml_backend_t backends[] = { plugin, host };
    const struct ggml_init_params params = { .mem_size = (size_t) 1 << 20, .no_alloc = true };
    struct ggml_context *weights = ggml_init(params), *ctx = ggml_init(params);
    struct ggml_tensor *w = ggml_new_tensor_2d(weights, GGML_TYPE_Q4_0, 64, 64);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(weights, host);
    fill(w);
    ggml_backend_sched_t sched = ggml_backend_sched_new(backends, NULL, 2, 64, false, true);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, false);
    struct ggml_tensor *x = f32(ctx, 64, 3, 1, 1), *y = ggml_mul_mat(ctx, w, ggml_silu(ctx, x));
    ggml_set_input(x);
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    CHECK(ggml_backend_sched_alloc_graph(sched, graph), "allocated");
    fill(x);
    CHECK(ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS, "computed");
    CHECK(ggml_backend_sched_get_tensor_backend(sched, y) == plugin, "on the plugin");
    float *got = numbers(y), sum = 0;
    for (int i = 0; i < 64*3; i++) sum += fabsf(got[i]);
    CHECK(sum > 0 && sum < 1e4f, "numbers come out: %g", (double) sum);
    free(got);
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(buffer);
    ggml_free(weights);
    ggml_free(ctx);
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "compare PLUGIN exact|near\n"), 2;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), dev;
    if (strchr(argv[1], '/')) {
        ggml_backend_reg_t reg = ggml_backend_load(argv[1]);
        dev = reg ? ggml_backend_reg_dev_get(reg, 0) : NULL;
    } else {
        ggml_backend_load_all();
        dev = ggml_backend_dev_by_name(argv[1]);
    }
    CHECK(dev && dev != cpu, "the plugin %s", argv[1]);
    if (!dev) return DONE();
    fprintf(stderr, "%s (%s) and %s (%s)\n", ggml_backend_dev_name(cpu), ggml_backend_dev_description(cpu),
            ggml_backend_dev_name(dev), ggml_backend_dev_description(dev));
    ggml_backend_t host = ggml_backend_dev_init(cpu, NULL), plugin = ggml_backend_dev_init(dev, NULL);
    for (size_t i = 0; i < sizeof cases/sizeof cases[0]; i++) one(&cases[i], host, plugin, !strcmp(argv[2], "exact"));
    together(host, plugin);
    CHECK(compared >= (int) (sizeof cases/sizeof cases[0]), "%d results compared", compared);
    ggml_backend_free(host);
    ggml_backend_free(plugin);
    return DONE();
}
