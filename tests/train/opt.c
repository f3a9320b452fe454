/* ggml-opt.h: data sets and their orders, steps of both optimisers against the formulas in double, gradients added up over
 * several batches, static and changing graphs, results, passes over data, the same bits for every number of threads; no
 * allocation after the first batch, and every allocation failing once. */

#include "check.h"
#include "interpose.h"
#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "core/limited.h"

typedef struct ggml_tensor tensor;
typedef struct ggml_context context;

static void no_log(enum ggml_log_level level, const char *text, void *user_data) { (void) level, (void) text, (void) user_data; }

/* ---- data sets ----------------------------------------------------------------------------------------------------------- */

static ggml_opt_dataset_t numbered(int64_t n, int64_t shard, int64_t labels) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_I32, 3, labels, n, shard);
    if (!d) return NULL;
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) ggml_get_data_f32(ggml_opt_dataset_data(d))[3*i + k] = (float) (10*i + k);
        if (labels) ((int32_t *) ggml_opt_dataset_labels(d)->data)[i] = (int32_t) i;
    }
    return d;
}
/* The points in their present order, read batch by batch. */
static void read_order(ggml_opt_dataset_t d, int64_t n, int64_t batch, int64_t *order) {
    float x[3*64];
    int32_t label[64];
    for (int64_t i = 0; i < n/batch; i++) {
        ggml_opt_dataset_get_batch_host(d, x, (size_t) (3*batch)*sizeof *x, label, i);
        for (int64_t k = 0; k < batch; k++) {
            order[i*batch + k] = label[k];
            CHECK(x[3*k] == (float) (10*label[k]) && x[3*k + 2] == (float) (10*label[k] + 2), "a point and its label stay together");
        }
    }
}
static ggml_backend_t cpu;
static ggml_backend_sched_t sched;
static ggml_opt_context_t any_context(void) {
    return ggml_opt_init(ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM));
}
static void test_dataset(void) {
    enum { N = 48, SHARD = 4 };
    int64_t order[N], again[N], sorted[N] = { 0 };
    ggml_opt_dataset_t d = numbered(N, SHARD, 1);
    CHECK(ggml_opt_dataset_ndata(d) == N && ggml_opt_dataset_data(d)->ne[1] == N, "sizes");
    read_order(d, N, 8, order);
    for (int i = 0; i < N; i++) CHECK(order[i] == i, "before shuffling, point %d", i);
    ggml_opt_context_t opt = any_context(), other = any_context();
    ggml_opt_dataset_shuffle(opt, d, -1);
    read_order(d, N, 8, order);
    int moved = 0;
    for (int i = 0; i < N; i++) sorted[order[i]]++, moved += order[i] != i;
    for (int i = 0; i < N; i++) CHECK(sorted[i] == 1 && order[i]%SHARD == i%SHARD && order[i]/SHARD == order[i - i%SHARD]/SHARD, "whole shards, point %d", i);
    CHECK(moved > N/2, "%d points moved", moved);
    ggml_opt_dataset_shuffle(opt, d, 16);
    read_order(d, N, 4, again);
    CHECK(!memcmp(order + 16, again + 16, sizeof order - 16*sizeof *order), "only the first points are shuffled");
    ggml_opt_dataset_t e = numbered(N, SHARD, 1);
    ggml_opt_dataset_shuffle(other, e, -1), ggml_opt_dataset_shuffle(other, e, 16);
    read_order(e, N, 4, order);
    CHECK(!memcmp(order, again, sizeof order), "a generator starts the same way each time");
    ggml_opt_free(opt), ggml_opt_free(other);
    ggml_opt_dataset_free(d), ggml_opt_dataset_free(e);
    d = numbered(6, 1, 0);
    context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1024, .no_alloc = true });
    tensor *batch = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 2);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    ggml_opt_dataset_get_batch(d, batch, NULL, 2);
    CHECK(!ggml_opt_dataset_labels(d) && ggml_get_data_f32(batch)[0] == 40 && ggml_get_data_f32(batch)[5] == 52, "without labels, into a tensor");
    ggml_backend_buffer_free(buffer), ggml_free(ctx), ggml_opt_dataset_free(d);
    d = numbered(6, 4, 1);
    opt = any_context();
    ggml_opt_dataset_shuffle(opt, d, -1);
    read_order(d, 4, 4, order);
    for (int i = 0; i < 4; i++) CHECK(order[i] == i && ggml_opt_dataset_ndata(d) == 6, "one whole shard of 6 points: point %d", i);
    ggml_opt_free(opt), ggml_opt_dataset_free(d);
    ggml_opt_dataset_free(NULL), ggml_opt_free(NULL), ggml_opt_result_free(NULL);
}

/* ---- a linear model: y = w x + c, mean squared error ------------------------------------------------------------------------ */

enum { WIDTH = 4, OUT = 2, POINTS = 24 };
struct model {
    context *fixed, *ctx;
    ggml_backend_buffer_t buffer;
    tensor  *x, *w, *c, *y;
};
static float target(int64_t i, int k) { return (float) ((i*7 + k*3)%11)/11.0f - 0.4f; }
static float point(int64_t i, int k)  { return (float) ((i*5 + k*k + 1)%13)/13.0f - 0.5f; }

static bool model_graph(struct model *m, context *ctx) {
    m->y = ggml_add(ctx, ggml_mul_mat(ctx, m->w, m->x), m->c);
    return m->y;
}
static bool model_new(struct model *m, int64_t batch) {
    *m = (struct model) { .fixed = ggml_init((struct ggml_init_params) { .mem_size = 4096, .no_alloc = true }) };
    m->ctx = ggml_init((struct ggml_init_params) { .mem_size = 4096, .no_alloc = true });
    if (!m->fixed || !m->ctx) return false;
    m->x = ggml_new_tensor_2d(m->fixed, GGML_TYPE_F32, WIDTH, batch);
    m->w = ggml_set_name(ggml_new_tensor_2d(m->fixed, GGML_TYPE_F32, WIDTH, OUT), "w");
    m->c = ggml_set_name(ggml_new_tensor_1d(m->fixed, GGML_TYPE_F32, OUT), "c");
    ggml_set_param(m->w), ggml_set_param(m->c);
    if (!(m->buffer = ggml_backend_alloc_ctx_tensors(m->fixed, cpu))) return false;
    for (int i = 0; i < WIDTH*OUT; i++) ggml_get_data_f32(m->w)[i] = 0.1f*(float) (i%3) - 0.1f;
    for (int i = 0; i < OUT; i++) ggml_get_data_f32(m->c)[i] = 0.05f;
    return model_graph(m, m->ctx);
}
static void model_free(struct model *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->fixed), ggml_free(m->ctx);
}
static ggml_opt_dataset_t points(void) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, WIDTH, OUT, POINTS, 1);
    if (!d) return NULL;
    for (int64_t i = 0; i < POINTS; i++) {
        for (int k = 0; k < WIDTH; k++) ggml_get_data_f32(ggml_opt_dataset_data(d))[WIDTH*i + k] = point(i, k);
        for (int k = 0; k < OUT; k++) ggml_get_data_f32(ggml_opt_dataset_labels(d))[OUT*i + k] = target(i, k);
    }
    return d;
}

static struct ggml_opt_optimizer_params the_params = {
    .adamw = { 0.02f, 0.8f, 0.95f, 1e-6f, 0.1f }, .sgd = { 0.3f, 0.05f },
};
static struct ggml_opt_params params_for(struct model *m, enum ggml_opt_loss_type loss, enum ggml_opt_optimizer_type optimizer, int period) {
    struct ggml_opt_params p = ggml_opt_default_params(sched, loss);
    p.optimizer = optimizer, p.opt_period = period;
    p.get_opt_pars = ggml_opt_get_constant_optimizer_params, p.get_opt_pars_ud = &the_params;
    if (m) p.ctx_compute = m->ctx, p.inputs = m->x, p.outputs = m->y;
    return p;
}

/* The same in double: weights [OUT][WIDTH + 1], the last one c. */
struct reference { double w[OUT][WIDTH + 1], m[OUT][WIDTH + 1], v[OUT][WIDTH + 1]; int t; };
static double reference_gradient(const struct reference *r, int64_t first, int64_t n, double g[OUT][WIDTH + 1]) {
    double loss = 0.0;
    memset(g, 0, sizeof(double[OUT][WIDTH + 1]));
    for (int64_t i = first; i < first + n; i++) for (int k = 0; k < OUT; k++) {
        double e = r->w[k][WIDTH] - (double) target(i, k);
        for (int j = 0; j < WIDTH; j++) e += r->w[k][j]*(double) point(i, j);
        loss += e*e/(double) (n*OUT);
        for (int j = 0; j < WIDTH; j++) g[k][j] += 2.0*e*(double) point(i, j)/(double) (n*OUT);
        g[k][WIDTH] += 2.0*e/(double) (n*OUT);
    }
    return loss;
}
static void reference_step(struct reference *r, double g[OUT][WIDTH + 1], bool adamw) {
    const double a = (double) (adamw ? the_params.adamw.alpha : the_params.sgd.alpha), wd = (double) (adamw ? the_params.adamw.wd : the_params.sgd.wd);
    const double b1 = (double) the_params.adamw.beta1, b2 = (double) the_params.adamw.beta2;
    r->t++;
    for (int k = 0; k < OUT; k++) for (int j = 0; j <= WIDTH; j++) {
        double *w = &r->w[k][j], *m = &r->m[k][j], *v = &r->v[k][j];
        *m = b1**m + (1 - b1)*g[k][j], *v = b2**v + (1 - b2)*g[k][j]*g[k][j];
        const double step = adamw ? (*m/(1 - pow(b1, r->t)))/(sqrt(*v/(1 - pow(b2, r->t))) + (double) the_params.adamw.eps) : g[k][j];
        *w = *w*(1 - a*wd) - a*step;
    }
}
static struct reference reference_of(const struct model *m) {
    struct reference r = { .t = 0 };
    for (int k = 0; k < OUT; k++) {
        for (int j = 0; j < WIDTH; j++) r.w[k][j] = (double) ggml_get_data_f32(m->w)[k*WIDTH + j];
        r.w[k][WIDTH] = (double) ggml_get_data_f32(m->c)[k];
    }
    return r;
}
static double distance(const struct reference *r, const struct model *m) {
    const struct reference now = reference_of(m);
    double worst = 0.0;
    for (int k = 0; k < OUT; k++) for (int j = 0; j <= WIDTH; j++) worst = fmax(worst, fabs(now.w[k][j] - r->w[k][j]));
    return worst;
}

/* Three passes in batches of `batch`, a step after `period` of them. */
static void test_steps(enum ggml_opt_optimizer_type optimizer, int64_t batch, int period) {
    struct model m;
    CHECK(model_new(&m, batch), "model");
    ggml_opt_dataset_t d = points();
    ggml_opt_context_t opt = ggml_opt_init(params_for(&m, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, optimizer, period));
    ggml_opt_result_t result = ggml_opt_result_init();
    struct reference r = reference_of(&m);
    const char *name = ggml_opt_optimizer_name(ggml_opt_context_optimizer_type(opt));
    CHECK(ggml_opt_static_graphs(opt) && !ggml_opt_pred(opt) && ggml_opt_labels(opt) && ggml_opt_inputs(opt) == m.x && ggml_opt_outputs(opt) == m.y, "%s", name);
    CHECK(!ggml_opt_grad_acc(opt, m.w) == (period == 1), "gradients add up when they must");
    for (int pass = 0; pass < 3; pass++) {
        double loss, error, want = 0.0, squares = 0.0, g[OUT][WIDTH + 1];
        ggml_opt_result_reset(result);
        const struct reference start = r;
        ggml_opt_epoch(opt, d, result, NULL, -1, NULL, NULL);
        for (int64_t i = 0; i < POINTS; i += batch*period) {
            for (int b = 0; b < period; b++) {
                double unused[OUT][WIDTH + 1];
                const double l = reference_gradient(&r, i + b*batch, batch, unused);
                want += l, squares += l*l;
            }
            reference_gradient(&r, i, batch*period, g);
            reference_step(&r, g, optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW);
        }
        const double n = (double) (POINTS/batch);
        ggml_opt_result_loss(result, &loss, &error);
        CHECK(fabs(loss - want/n) < 1e-5 && fabs(error - sqrt((squares/n - want/n*want/n)/(n - 1))) < 1e-5, "%s: loss %g +- %g, expected %g", name, loss, error, want/n);
        CHECK(distance(&r, &m) < 2e-5 && distance(&start, &m) > 1e-3, "%s, batch %d, period %d, pass %d: %g from the reference", name, (int) batch, period, pass, distance(&r, &m));
    }
    ggml_opt_result_free(result), ggml_opt_free(opt), ggml_opt_dataset_free(d), model_free(&m);
}

/* ---- graphs that change, gradients alone, losses alone ------------------------------------------------------------------------ */

static void batch_fill(ggml_opt_context_t opt, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float x[WIDTH], y[OUT];
        for (int k = 0; k < WIDTH; k++) x[k] = point(first + i, k);
        for (int k = 0; k < OUT; k++) y[k] = target(first + i, k);
        ggml_backend_tensor_set(ggml_opt_inputs(opt), x, (size_t) i*sizeof x, sizeof x);
        ggml_backend_tensor_set(ggml_opt_labels(opt), y, (size_t) i*sizeof y, sizeof y);
    }
}

/* A new graph for each batch, of other sizes in between, gives the bits of a static one. */
static void test_dynamic(void) {
    struct model still, moving;
    CHECK(model_new(&still, 4) && model_new(&moving, 4), "models");
    const struct ggml_opt_params p = params_for(NULL, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2);
    ggml_opt_context_t opt = ggml_opt_init(p);
    CHECK(opt && !ggml_opt_static_graphs(opt), "no graph yet");
    for (int64_t i = 0; i < POINTS; i += 4) {
        struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 15, .no_alloc = true });
        struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 64, true);
        CHECK(model_graph(&moving, ctx), "graph");
        ggml_build_forward_expand(g, moving.y);
        ggml_opt_prepare_alloc(opt, ctx, g, moving.x, moving.y);
        ggml_opt_alloc(opt, true);
        batch_fill(opt, i, 4);
        ggml_opt_eval(opt, NULL);
        CHECK(ggml_opt_grad_acc(opt, moving.w), "an accumulator");
        ggml_free(ctx);
    }
    ggml_opt_free(opt);
    opt = ggml_opt_init(params_for(&still, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2));
    for (int64_t i = 0; i < POINTS; i += 4) {
        ggml_opt_alloc(opt, true);
        batch_fill(opt, i, 4);
        ggml_opt_eval(opt, NULL);
        ggml_opt_alloc(opt, false);             /* a look in between changes nothing */
        batch_fill(opt, 0, 4);
        ggml_opt_eval(opt, NULL);
    }
    CHECK(!memcmp(still.w->data, moving.w->data, ggml_nbytes(still.w)) && !memcmp(still.c->data, moving.c->data, ggml_nbytes(still.c)), "the same bits");
    ggml_opt_free(opt);
    model_free(&still), model_free(&moving);
}

static void test_build_types(void) {
    struct model m;
    CHECK(model_new(&m, 4), "model");
    struct ggml_opt_params p = params_for(&m, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 1);
    p.build_type = GGML_OPT_BUILD_TYPE_GRAD;
    ggml_opt_context_t grad = ggml_opt_init(p);
    p.build_type = GGML_OPT_BUILD_TYPE_FORWARD;
    ggml_opt_context_t loss = ggml_opt_init(p);
    const struct reference r = reference_of(&m);
    double want[OUT][WIDTH + 1], sum[OUT][WIDTH + 1] = { { 0 } };
    for (int i = 0; i < 3; i++) {               /* in turns on one scheduler */
        float l;
        const double l_want = reference_gradient(&r, 4*i, 4, want);
        for (int k = 0; k < OUT; k++) for (int j = 0; j <= WIDTH; j++) sum[k][j] += want[k][j];
        ggml_opt_alloc(grad, true), batch_fill(grad, 4*i, 4), ggml_opt_eval(grad, NULL);
        const float *g = ggml_opt_grad_acc(grad, m.w)->data;
        for (int k = 0; k < OUT; k++) for (int j = 0; j < WIDTH; j++) CHECK(fabs((double) g[k*WIDTH + j] - sum[k][j]) < 1e-6, "%d batches", i + 1);
        ggml_opt_alloc(loss, true), batch_fill(loss, 4*i, 4), ggml_opt_eval(loss, NULL);
        ggml_backend_tensor_get(ggml_opt_loss(loss), &l, 0, sizeof l);
        CHECK(fabs((double) l - l_want) < 1e-6, "loss alone: %g, expected %g", (double) l, l_want);
    }
    CHECK(distance(&r, &m) == 0.0 && !ggml_opt_grad_acc(loss, m.w), "weights stay");
    ggml_opt_reset(grad, false);
    CHECK(ggml_get_data_f32(ggml_opt_grad_acc(grad, m.w))[0] == 0.0f, "forgotten");
    ggml_opt_free(grad), ggml_opt_free(loss), model_free(&m);
}

/* After a reset the optimiser starts again: the same steps from the same weights. */
static void test_reset(void) {
    struct model m;
    float first[WIDTH*OUT], start[WIDTH*OUT], c[OUT];
    CHECK(model_new(&m, 4), "model");
    ggml_opt_dataset_t d = points();
    ggml_opt_context_t opt = ggml_opt_init(params_for(&m, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2));
    memcpy(start, m.w->data, sizeof start), memcpy(c, m.c->data, sizeof c);
    ggml_opt_epoch(opt, d, NULL, NULL, -1, NULL, NULL);
    memcpy(first, m.w->data, sizeof first);
    ggml_opt_reset(opt, true);
    memcpy(m.w->data, start, sizeof start), memcpy(m.c->data, c, sizeof c);
    ggml_opt_epoch(opt, d, NULL, NULL, -1, NULL, NULL);
    CHECK(!memcmp(first, m.w->data, sizeof first), "the same again");
    ggml_opt_free(opt), ggml_opt_dataset_free(d), model_free(&m);
}

/* MEAN and SUM of the outputs; an op without a gradient; weights that are not F32. */
static void test_losses_and_refusals(void) {
    struct model m;
    CHECK(model_new(&m, 4), "model");
    for (int type = GGML_OPT_LOSS_TYPE_MEAN; type <= GGML_OPT_LOSS_TYPE_SUM; type++) {
        struct ggml_opt_params p = params_for(&m, (enum ggml_opt_loss_type) type, GGML_OPT_OPTIMIZER_TYPE_SGD, 3);
        p.build_type = GGML_OPT_BUILD_TYPE_FORWARD;
        ggml_opt_context_t opt = ggml_opt_init(p);
        ggml_opt_result_t result = ggml_opt_result_init();
        double want = 0.0, loss, error, accuracy;
        int64_t n;
        CHECK(opt && !ggml_opt_labels(opt), "no labels");
        for (int i = 0; i < 2; i++) {
            ggml_opt_alloc(opt, false);
            for (int k = 0; k < 4*WIDTH; k++) ggml_get_data_f32(m.x)[k] = (float) (i + k%3);
            ggml_opt_eval(opt, result);
            for (int k = 0; k < 4*OUT; k++) want += (double) ggml_get_data_f32(m.y)[k];
        }
        ggml_opt_result_loss(result, &loss, &error), ggml_opt_result_accuracy(result, &accuracy, NULL), ggml_opt_result_ndata(result, &n);
        CHECK(fabs(loss - (type == GGML_OPT_LOSS_TYPE_SUM ? want : want/(2*4*OUT))) < 1e-5 && n == 8 && isnan(accuracy), "loss type %d: %g", type, loss);
        ggml_opt_result_free(result), ggml_opt_free(opt);
    }
    ggml_log_set(no_log, NULL);
    struct ggml_opt_params p = params_for(&m, GGML_OPT_LOSS_TYPE_SUM, GGML_OPT_OPTIMIZER_TYPE_SGD, 1);
    p.outputs = ggml_pool_1d(m.ctx, m.y, GGML_OP_POOL_MAX, 1, 1, 0);
    CHECK(!ggml_opt_init(p), "an op without a gradient is NULL");
    p.outputs = NULL;
    CHECK(!ggml_opt_init(p), "outputs for which there was no room");
    context *half = ggml_init((struct ggml_init_params) { .mem_size = 4096 });
    tensor *w = ggml_new_tensor_2d(half, GGML_TYPE_F16, WIDTH, OUT);
    ggml_set_param(w);
    p.outputs = ggml_mul_mat(m.ctx, w, m.x);
    CHECK(!ggml_opt_init(p), "a weight that is not F32 is NULL");
    ggml_opt_eval(NULL, NULL), ggml_opt_alloc(NULL, true), ggml_opt_reset(NULL, true);
    ggml_free(half);
    ggml_log_set(NULL, NULL);
    model_free(&m);
}

/* ---- a classifier -------------------------------------------------------------------------------------------------------------- */

enum { CLASSES = 3, HIDDEN = 40, CASES = 240 };
struct net {
    context *fixed, *ctx;
    ggml_backend_buffer_t buffer;
    tensor  *x, *w1, *b1, *w2, *y;
};
static bool net_new(struct net *m, int64_t batch) {
    *m = (struct net) { .fixed = ggml_init((struct ggml_init_params) { .mem_size = 4096, .no_alloc = true }) };
    m->ctx = ggml_init((struct ggml_init_params) { .mem_size = 8192, .no_alloc = true });
    if (!m->fixed || !m->ctx) return false;
    uint64_t seed = 1;
    m->x  = ggml_new_tensor_2d(m->fixed, GGML_TYPE_F32, 2, batch);
    m->w1 = ggml_new_tensor_2d(m->fixed, GGML_TYPE_F32, 2, HIDDEN);
    m->b1 = ggml_new_tensor_1d(m->fixed, GGML_TYPE_F32, HIDDEN);
    m->w2 = ggml_new_tensor_2d(m->fixed, GGML_TYPE_F32, HIDDEN, CLASSES);
    tensor *const w[3] = { m->w1, m->b1, m->w2 };
    if (!(m->buffer = ggml_backend_alloc_ctx_tensors(m->fixed, cpu))) return false;
    for (int i = 0; i < 3; i++) {
        ggml_set_param(w[i]);
        for (int64_t k = 0; k < ggml_nelements(w[i]); k++) ggml_get_data_f32(w[i])[k] = 0.7f*rnd_f32(&seed);
    }
    m->y = ggml_mul_mat(m->ctx, m->w2, ggml_relu(m->ctx, ggml_add(m->ctx, ggml_mul_mat(m->ctx, m->w1, m->x), m->b1)));
    return m->y;
}
static void net_free(struct net *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->fixed), ggml_free(m->ctx);
}
/* Three rings around the origin. */
static ggml_opt_dataset_t rings(void) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 2, CLASSES, CASES, 4);
    uint64_t seed = 9;
    for (int64_t i = 0; d && i < CASES; i++) {
        const int64_t class = i%CLASSES;
        const double angle = 3.2*(double) rnd_f32(&seed), radius = 0.4 + 0.8*(double) class + 0.15*(double) rnd_f32(&seed);
        float *x = ggml_get_data_f32(ggml_opt_dataset_data(d)) + 2*i, *p = ggml_get_data_f32(ggml_opt_dataset_labels(d)) + CLASSES*i;
        x[0] = (float) (radius*cos(angle)), x[1] = (float) (radius*sin(angle));
        for (int k = 0; k < CLASSES; k++) p[k] = k == class;
    }
    return d;
}
static struct ggml_opt_params net_params(struct net *m) {
    struct ggml_opt_params p = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    p.ctx_compute = m->ctx, p.inputs = m->x, p.outputs = m->y, p.opt_period = 2;
    p.get_opt_pars = ggml_opt_get_constant_optimizer_params, p.get_opt_pars_ud = &the_params;
    return p;
}

static int callbacks[2];
static long taken_first, taken_last;
static void count_callback(bool train, ggml_opt_context_t opt, ggml_opt_dataset_t d, ggml_opt_result_t result, int64_t i, int64_t n, int64_t start) {
    (void) opt, (void) d, (void) result, (void) start;
    callbacks[train]++;
    CHECK(i == callbacks[train] && n == (train ? CASES*3/4/12 : CASES/4/12), "batch %d of %d", (int) i, (int) n);
    if (train && i == 1) taken_first = taken;
    taken_last = taken;
}

static void test_classifier(void) {
    struct net m;
    CHECK(net_new(&m, 12), "net");
    ggml_opt_dataset_t d = rings();
    ggml_opt_context_t opt = ggml_opt_init(net_params(&m));
    ggml_opt_result_t train = ggml_opt_result_init(), eval = ggml_opt_result_init();
    double loss, first_loss = 0, accuracy, error;
    ggml_opt_dataset_shuffle(opt, d, -1);
    for (int epoch = 0; epoch < 30; epoch++) {
        ggml_opt_result_reset(train), ggml_opt_result_reset(eval);
        callbacks[0] = callbacks[1] = 0;
        ggml_opt_epoch(opt, d, train, eval, CASES*3/4, count_callback, count_callback);
        CHECK(callbacks[0] == CASES/4/12 && callbacks[1] == CASES*3/4/12, "a callback for each batch");
        if (INTERPOSED) CHECK(taken_first == taken_last, "%ld allocations after the first batch of pass %d", taken_last - taken_first, epoch);
        ggml_opt_result_loss(train, &loss, NULL);
        if (epoch == 0) first_loss = loss;
    }
    ggml_opt_result_accuracy(eval, &accuracy, &error);
    CHECK(loss < 0.25*first_loss && accuracy > 0.9 && error < 0.06, "loss %g to %g, %g right", first_loss, loss, accuracy);
    int32_t pred[CASES/4], right = 0;
    float x[2*4], label[CLASSES*4];
    ggml_opt_result_pred(eval, pred);
    for (int i = 0; i < CASES/4; i += 4) {
        ggml_opt_dataset_get_batch_host(d, x, sizeof x, label, (CASES*3/4 + i)/4);
        for (int k = 0; k < 4; k++) right += label[CLASSES*k + pred[i + k]] == 1.0f;
    }
    CHECK(fabs((double) right/(CASES/4) - accuracy) < 1e-9, "predictions in order: %d right, %g", (int) right, accuracy);
    ggml_opt_result_free(train), ggml_opt_result_free(eval), ggml_opt_free(opt), ggml_opt_dataset_free(d), net_free(&m);
}

/* A schedule sees the epoch's number; every number of threads, and another run, gives the same weights. */
static int64_t epochs_seen;
static struct ggml_opt_optimizer_params schedule(void *userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(NULL);
    epochs_seen = *(const int64_t *) userdata;
    p.adamw.alpha = 0.02f/(float) epochs_seen;
    return p;
}
static void test_fit(void) {
    static const int threads[] = { 1, 1, 2, 3, 8 };
    static float want[2*HIDDEN];
    for (size_t i = 0; i < sizeof threads/sizeof *threads; i++) {
        struct net m;
        ggml_backend_cpu_set_n_threads(cpu, threads[i]);
        CHECK(net_new(&m, 12), "net");
        ggml_opt_dataset_t d = rings();
        epochs_seen = 0;
        ggml_opt_fit(sched, m.ctx, m.x, m.y, d, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY, GGML_OPT_OPTIMIZER_TYPE_ADAMW, schedule, 3, 24, 0.25f, true);
        CHECK(epochs_seen == 3, "%d epochs", (int) epochs_seen);
        if (i == 0) memcpy(want, m.w1->data, sizeof want);
        CHECK(!memcmp(want, m.w1->data, sizeof want), "other weights with %d threads", threads[i]);
        ggml_opt_dataset_free(d), net_free(&m);
    }
    ggml_backend_cpu_set_n_threads(cpu, 1);
}

/* A second device computes the products, their operands copied to it and the results back: the same course, its sums being in
 * double. */
static void test_two_devices(void) {
    struct model m;
    limited_reset();
    limited.offload = true;
    CHECK(model_new(&m, 4), "model");
    ggml_backend_buffer_set_usage(m.buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_t backends[2] = { limited_init(&limited_device, NULL), cpu };
    ggml_backend_sched_t two = ggml_backend_sched_new(backends, NULL, 2, 1024, false, true);
    struct ggml_opt_params p = params_for(&m, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2);
    p.backend_sched = two;
    ggml_opt_context_t opt = ggml_opt_init(p);
    ggml_opt_dataset_t d = points();
    struct reference r = reference_of(&m);
    ggml_opt_epoch(opt, d, NULL, NULL, -1, NULL, NULL);
    for (int64_t i = 0; i < POINTS; i += 8) {
        double g[OUT][WIDTH + 1];
        reference_gradient(&r, i, 8, g);
        reference_step(&r, g, true);
    }
    CHECK(limited.n_nodes >= POINTS/4 && distance(&r, &m) < 2e-5, "%d nodes on the device, %g from the reference", limited.n_nodes, distance(&r, &m));
    ggml_opt_free(opt), ggml_opt_dataset_free(d);
    ggml_backend_sched_free(two), ggml_backend_free(backends[0]), model_free(&m);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------------ */

static bool whole_run(void) {
    struct net m;
    bool ok = net_new(&m, 12);
    ggml_opt_dataset_t d = ok ? rings() : NULL;
    ggml_opt_context_t opt = d ? ggml_opt_init(net_params(&m)) : NULL;
    ggml_opt_result_t train = ggml_opt_result_init();
    int64_t n = 0;
    if (opt && train) ggml_opt_epoch(opt, d, train, NULL, 36, NULL, NULL);
    ggml_opt_result_ndata(train, &n);
    ggml_opt_result_free(train), ggml_opt_free(opt), ggml_opt_dataset_free(d), net_free(&m);
    return n == 36;
}
/* Two batches with a graph each. */
static bool changing_run(void) {
    struct model m;
    const bool ok = model_new(&m, 4);
    ggml_opt_context_t opt = ok ? ggml_opt_init(params_for(NULL, GGML_OPT_LOSS_TYPE_SUM, GGML_OPT_OPTIMIZER_TYPE_ADAMW, 2)) : NULL;
    ggml_opt_result_t result = ggml_opt_result_init();
    int64_t n = 0;
    for (int i = 0; opt && result && i < 2; i++) {
        struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 13, .no_alloc = true });
        struct ggml_cgraph *g = ctx && model_graph(&m, ctx) ? ggml_new_graph_custom(ctx, 16, false) : NULL;
        ggml_build_forward_expand(g, m.y);
        if (g) {
            ggml_opt_prepare_alloc(opt, ctx, g, m.x, m.y);
            ggml_opt_alloc(opt, true);
            memset(m.x->data, 0, ggml_nbytes(m.x));
            ggml_opt_eval(opt, result);
        }
        ggml_free(ctx);
    }
    ggml_opt_result_ndata(result, &n);
    ggml_opt_result_free(result), ggml_opt_free(opt), model_free(&m);
    return n == 8;
}

static void fail_each(bool (*run)(void), const char *name) {
    CHECK(run(), "%s: all is well", name);
    const long before = held;
    int n = 0;
    for (bool done = false; !done && n < 1000; n++) {
        fail_at = n + 1;
        done = run() && fail_at > 0;
        fail_at = 0;
        ggml_backend_sched_reset(sched);
        CHECK(held <= before + 64, "%s, call %d: %ld blocks held, %ld before", name, n, held, before);
    }
    const long after = held;
    CHECK(run() && run() && held == after, "%s: %ld blocks more after each run", name, held - after);
    CHECK(n > 20 && n < 1000, "%s: %d allocations", name, n);
}
static void test_allocations_fail(void) {
    if (!INTERPOSED) return;
    ggml_log_set(no_log, NULL);
    fail_each(whole_run, "a static graph");
    fail_each(changing_run, "changing graphs");
    ggml_log_set(NULL, NULL);
}

int main(void) {
    cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 1);
    sched = ggml_backend_sched_new(&cpu, NULL, 1, 1024, false, true);
    test_dataset();
    for (int optimizer = 0; optimizer < GGML_OPT_OPTIMIZER_TYPE_COUNT; optimizer++) {
        test_steps((enum ggml_opt_optimizer_type) optimizer, 8, 1);
        test_steps((enum ggml_opt_optimizer_type) optimizer, 4, 2);
        test_steps((enum ggml_opt_optimizer_type) optimizer, 2, 3);
    }
    test_dynamic();
    test_build_types();
    test_reset();
    test_losses_and_refusals();
    test_classifier();
    test_fit();
    test_two_devices();
    test_allocations_fail();
    ggml_backend_sched_free(sched);
    ggml_backend_free(cpu);
    return DONE();
}
