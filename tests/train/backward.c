/* ggml_build_backward_expand as a whole: accumulators over several passes, which nodes have gradients, several losses, names,
 * threads; what cannot be differentiated and a context that is too small are an unusable graph and nothing worse. */

#include "check.h"
#include "ggml.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

typedef struct ggml_tensor tensor;
typedef struct ggml_context context;

static char log_text[1024];
static int  log_lines;
static void keep_log(enum ggml_log_level level, const char *text, void *user_data) {
    (void) level, (void) user_data;
    snprintf(log_text, sizeof log_text, "%s", text);
    log_lines++;
}

static context *room(size_t size) { return ggml_init((struct ggml_init_params) { .mem_size = size }); }

static enum ggml_status compute(struct ggml_cgraph *g, int n_threads) {
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    const enum ggml_status status = ggml_graph_compute(g, &plan);
    free(plan.work_data);
    return status;
}
static tensor *vector(context *ctx, int64_t n, const float *v) {
    tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
    memcpy(t->data, v, (size_t) n*sizeof *v);
    return t;
}
static bool equals(const tensor *t, int64_t n, const float *v) {
    return t && ggml_nelements(t) == n && !memcmp(t->data, v, (size_t) n*sizeof *v);
}
static int index_of(const struct ggml_cgraph *g, const tensor *t) {
    for (int i = 0; i < ggml_graph_n_nodes((struct ggml_cgraph *) g); i++) if (ggml_graph_node((struct ggml_cgraph *) g, i) == t) return i;
    return -1;
}

/* loss = sum of x*x + 3*x: dx = 2x + 3 */
static const float x_data[3] = { 1, -2, 0.5f }, dx_data[3] = { 5, -1, 4 };

static void test_plain(void) {
    context *ctx = room(1 << 20);
    tensor *x = ggml_set_name(vector(ctx, 3, x_data), "x"), *other = vector(ctx, 3, x_data);
    ggml_set_param(x);
    tensor *square = ggml_mul(ctx, x, x), *loss = ggml_sum(ctx, ggml_add(ctx, square, ggml_scale(ctx, x, 3.0f)));
    ggml_set_loss(ggml_set_name(loss, "loss"));
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
    ggml_build_forward_expand(g, loss);
    ggml_build_forward_expand(g, ggml_neg(ctx, other));
    const int forward = ggml_graph_n_nodes(g);
    ggml_build_backward_expand(ctx, g, NULL);
    tensor *dx = ggml_graph_get_grad(g, x);
    CHECK(dx && !strcmp(dx->name, "grad for x") && ggml_graph_n_nodes(g) > forward, "named, appended");
    CHECK(ggml_graph_get_grad_acc(g, loss) && !ggml_graph_get_grad_acc(g, x), "a loss alone has an accumulator unasked");
    CHECK(!strcmp(ggml_graph_get_grad_acc(g, loss)->name, "grad acc for loss"), "%s", ggml_graph_get_grad_acc(g, loss)->name);
    CHECK(!ggml_graph_get_grad(g, other) && ggml_graph_get_grad(g, square), "gradients lie between parameter and loss");
    ggml_graph_reset(g);
    for (int pass = 0; pass < 3; pass++) {
        CHECK(compute(g, 1) == GGML_STATUS_SUCCESS && equals(dx, 3, dx_data), "pass %d", pass);
    }
    ggml_free(ctx);
}

/* With accumulators each pass adds; those of nodes between are not what flows on. */
static void test_accumulators(void) {
    context *ctx = room(1 << 20);
    tensor *x = vector(ctx, 3, x_data);
    ggml_set_param(x);
    tensor *square = ggml_mul(ctx, x, x), *loss = ggml_sum(ctx, ggml_add(ctx, square, ggml_scale(ctx, x, 3.0f)));
    ggml_set_loss(loss);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
    ggml_build_forward_expand(g, loss);
    tensor *accs[64] = { NULL }, *acc = ggml_dup_tensor(ctx, x), *acc_square = ggml_dup_tensor(ctx, x);
    accs[index_of(g, x)] = acc, accs[index_of(g, square)] = acc_square;
    ggml_build_backward_expand(ctx, g, accs);
    CHECK(ggml_graph_get_grad_acc(g, x) == acc && ggml_graph_get_grad(g, x)->view_src == acc, "the sum lies in the accumulator");
    memset(acc->data, 0xff, ggml_nbytes(acc));
    ggml_graph_reset(g);
    for (int pass = 1; pass <= 3; pass++) {
        CHECK(compute(g, 1) == GGML_STATUS_SUCCESS, "pass %d", pass);
        const float p = (float) pass, want[3] = { 5*p, -p, 4*p }, ones[3] = { p, p, p };
        CHECK(equals(acc, 3, want) && equals(ggml_graph_get_grad(g, x), 3, want), "%d passes", pass);
        CHECK(equals(acc_square, 3, ones), "%d passes, a node between", pass);
    }
    ggml_graph_reset(g);
    CHECK(compute(g, 1) == GGML_STATUS_SUCCESS && equals(acc, 3, dx_data), "again from zero");
    ggml_free(ctx);
}

/* Two losses, one a part of the other: d(sum x + (sum x)^2) = 1 + 2 sum x. */
static void test_losses(void) {
    context *ctx = room(1 << 20);
    tensor *x = vector(ctx, 3, x_data);
    ggml_set_param(x);
    tensor *inner = ggml_sum(ctx, x), *outer = ggml_sqr(ctx, inner);
    ggml_set_loss(inner), ggml_set_loss(outer);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
    ggml_build_forward_expand(g, outer);
    ggml_build_backward_expand(ctx, g, NULL);
    ggml_graph_reset(g);
    const float slope = 1 + 2*(1 - 2 + 0.5f), want[3] = { slope, slope, slope };
    for (int pass = 0; pass < 2; pass++) CHECK(compute(g, 1) == GGML_STATUS_SUCCESS && equals(ggml_graph_get_grad(g, x), 3, want), "pass %d", pass);
    ggml_free(ctx);
}

/* F16 parameters: gradients are F32. */
static void test_half(void) {
    context *ctx = room(1 << 20);
    tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 3, 1), *y = vector(ctx, 3, x_data);
    ggml_fp32_to_fp16_row(x_data, x->data, 3);
    ggml_set_param(x), ggml_set_param(y);
    tensor *loss = ggml_sum(ctx, ggml_mul_mat(ctx, x, y));
    ggml_set_loss(loss);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
    ggml_build_forward_expand(g, loss);
    ggml_build_backward_expand(ctx, g, NULL);
    ggml_graph_reset(g);
    CHECK(compute(g, 1) == GGML_STATUS_SUCCESS, "half");
    CHECK(ggml_graph_get_grad(g, x)->type == GGML_TYPE_F32 && equals(ggml_graph_get_grad(g, x), 3, x_data), "by F16");
    CHECK(equals(ggml_graph_get_grad(g, y), 3, x_data), "by F32");
    ggml_free(ctx);
}

/* Quantised experts under an input that is a parameter: the gradient is that through the experts as they are, expanded. */
static void test_quantised_experts(void) {
    context *ctx = room(1 << 20);
    uint64_t seed = 9;
    tensor *w[2] = { ggml_new_tensor_3d(ctx, GGML_TYPE_Q8_0, 64, 32, 3), ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 32, 3) };
    tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 1, 4), *ids = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 2, 4);
    float *values = ggml_get_data_f32(w[1]);
    for (int i = 0; i < 64*32*3; i++) values[i] = rnd_f32(&seed);
    ggml_quantize_chunk(GGML_TYPE_Q8_0, values, w[0]->data, 0, 32*3, 64, NULL);
    ggml_get_type_traits(GGML_TYPE_Q8_0)->to_float(w[0]->data, values, 64*32*3);
    for (int i = 0; i < 64*4; i++) ggml_get_data_f32(x)[i] = rnd_f32(&seed);
    for (int i = 0; i < 8; i++) ((int32_t *) ids->data)[i] = (i*2 + i/4) % 3;
    ggml_set_param(x);
    tensor *dx[2];
    for (int k = 0; k < 2; k++) {
        tensor *loss = ggml_sum(ctx, ggml_mul_mat_id(ctx, w[k], x, ids));
        ggml_set_loss(loss);
        struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
        ggml_build_forward_expand(g, loss);
        ggml_build_backward_expand(ctx, g, NULL);
        ggml_graph_reset(g);
        CHECK(compute(g, 2) == GGML_STATUS_SUCCESS, "experts of type %s", ggml_type_name(w[k]->type));
        dx[k] = ggml_graph_get_grad(g, x);
    }
    CHECK(dx[0] && dx[1] && !memcmp(dx[0]->data, dx[1]->data, ggml_nbytes(x)), "the same gradient");
    ggml_free(ctx);
}

/* ---- what cannot be ------------------------------------------------------------------------------------------------------ */

enum refusal { NO_RULE, IN_PLACE, MASK, INTEGER, NO_PARAM, NO_LOSS, NO_GRADS, REFUSALS };
static const char *const refusal_texts[REFUSALS] = {
    "no gradient of UPSCALE", "in place", "no gradient of SOFT_MAX", "neither F32", "no node is a parameter", "no node is a loss",
    "without gradients",
};
static tensor *refused_graph(context *ctx, enum refusal r) {
    tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 3), *mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 3);
    ggml_set_zero(x), ggml_set_zero(mask);
    if (r != NO_PARAM) ggml_set_param(r == MASK ? mask : x);
    tensor *y = r == NO_RULE ? ggml_upscale(ctx, x, 2, GGML_SCALE_MODE_NEAREST) : r == IN_PLACE ? ggml_scale_inplace(ctx, ggml_dup(ctx, x), 2.0f) :
                r == MASK ? ggml_soft_max_ext(ctx, x, mask, 1.0f, 0.0f) : r == INTEGER ? ggml_cast(ctx, x, GGML_TYPE_I64) : ggml_sqr(ctx, x);
    tensor *loss = ggml_sum(ctx, r == INTEGER ? ggml_cast(ctx, y, GGML_TYPE_F32) : y);
    if (r != NO_LOSS) ggml_set_loss(loss);
    return loss;
}
static void test_refusals(void) {
    for (int r = 0; r < REFUSALS; r++) {
        context *ctx = room(1 << 20);
        struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, r != NO_GRADS);
        ggml_build_forward_expand(g, refused_graph(ctx, (enum refusal) r));
        log_lines = 0;
        ggml_log_set(keep_log, NULL);
        ggml_build_backward_expand(ctx, g, NULL);
        const int lines = log_lines;
        CHECK(strstr(log_text, refusal_texts[r]) && lines == 1, "%s: %d lines, the last %s", refusal_texts[r], lines, log_text);
        CHECK(compute(g, 1) == GGML_STATUS_ALLOC_FAILED, "%s", refusal_texts[r]);
        ggml_build_backward_expand(ctx, g, NULL);       /* an unusable graph stays one */
        ggml_log_set(NULL, NULL);
        ggml_free(ctx);
    }
    ggml_build_backward_expand(NULL, NULL, NULL);
    CHECK(true, "a graph that its context had no room for");
}

/* Every size of the context, and of the graph, from too small for the backward pass to enough. */
static bool fits(size_t memory, size_t nodes) {
    static const float w_data[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    context *data = room(4096), *ctx = room(memory);
    tensor *x = vector(data, 3, x_data), *w = ggml_new_tensor_2d(data, GGML_TYPE_F32, 3, 4);
    memcpy(w->data, w_data, sizeof w_data);
    ggml_set_param(w), ggml_set_param(x);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, nodes, true);
    tensor *y = ggml_norm(ctx, ggml_view_1d(ctx, ggml_mul_mat(ctx, w, x), 3, 4), 1e-5f), *loss = ggml_sum(ctx, ggml_gelu(ctx, y));
    ggml_set_loss(loss);
    ggml_build_forward_expand(g, loss);
    ggml_build_backward_expand(ctx, g, NULL);
    const struct ggml_cgraph *usable = g;
    bool ok = usable && ggml_graph_get_grad(g, w) && ggml_graph_get_grad(g, x);
    if (g) {
        if (ok) ggml_graph_reset(g);
        const enum ggml_status status = compute(g, 1);
        CHECK(status == GGML_STATUS_SUCCESS || status == GGML_STATUS_ALLOC_FAILED, "status %d", (int) status);
        ok = ok && status == GGML_STATUS_SUCCESS;
    }
    ggml_free(ctx), ggml_free(data);
    return ok;
}
static void test_exhaustion(void) {
    ggml_log_set(keep_log, NULL);
    const size_t enough = 64*1024;
    CHECK(fits(enough, 128), "enough");
    int failed = 0, nodes_failed = 0;
    for (size_t size = 1024; size < enough; size += 176) failed += !fits(size, 128);
    for (size_t nodes = 1; nodes < 128; nodes++) nodes_failed += !fits(enough, nodes);
    ggml_log_set(NULL, NULL);
    CHECK(failed > 50 && nodes_failed > 30, "%d sizes and %d graphs too small", failed, nodes_failed);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------- */

static void test_threads(void) {
    static float want[3][90*300];
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        context *ctx = room(64 << 20);
        uint64_t seed = 3;
        tensor *p[3] = { ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 300, 70), ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 300, 90),
            ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 70) };
        for (int i = 0; i < 3; i++) {
            ggml_set_param(p[i]);
            for (int64_t j = 0; j < ggml_nelements(p[i]); j++) ggml_get_data_f32(p[i])[j] = rnd_f32(&seed);
        }
        tensor *h = ggml_gelu(ctx, ggml_add(ctx, ggml_mul_mat(ctx, p[0], p[1]), p[2]));
        tensor *loss = ggml_cross_entropy_loss(ctx, ggml_rms_norm(ctx, h, 1e-5f), ggml_soft_max(ctx, h));
        tensor *labels = loss->src[1];
        labels->src[0] = ggml_dup_tensor(ctx, h);
        memset(labels->src[0]->data, 0, ggml_nbytes(h));
        ggml_set_loss(loss);
        struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 128, true);
        ggml_build_forward_expand(g, loss);
        ggml_build_backward_expand(ctx, g, NULL);
        ggml_graph_reset(g);
        CHECK(compute(g, n_threads) == GGML_STATUS_SUCCESS, "%d threads", n_threads);
        for (int i = 0; i < 3; i++) {
            const tensor *t = ggml_graph_get_grad(g, p[i]);
            if (n_threads == 1) memcpy(want[i], t->data, ggml_nbytes(t));
            CHECK(!memcmp(want[i], t->data, ggml_nbytes(t)), "%d threads, parameter %d", n_threads, i);
        }
        ggml_free(ctx);
    }
}

int main(void) {
    test_plain();
    test_accumulators();
    test_losses();
    test_half();
    test_quantised_experts();
    test_refusals();
    test_exhaustion();
    test_threads();
    return DONE();
}
