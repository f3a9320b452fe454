/* The optimiser's context: a model's graph with a loss, its backward pass and a step for every weight behind it.
 *
 * One list of nodes serves everything: | forward, loss | gradients | steps |. What a batch does not need is not marked for
 * computing, so that a static graph has one plan whatever is done with it. Weights have their state (a sum of gradients,
 * two moments) beside them, in memory of the same type, found by the weight: graphs may change from batch to batch.
 *
 * Memory: `ctx` describes the graph's tensors and is written anew for every new graph; `fixed` holds what the program or this
 * file writes: labels, the loss's factor, the parameters of a step. The rest is the scheduler's. */

#include "opt.h"

#include <stdlib.h>
#include <string.h>

/* Nodes and leafs of the whole graph for one of the forward graph: no rule builds as many. */
enum { GROWTH = 16 };

struct weight { struct ggml_tensor *w, *sum, *m, *v; };         /* sum, m, v: NULL when not kept */

struct memory {                                                 /* of some weights' state */
    struct memory        *next;
    struct ggml_context  *ctx;
    ggml_backend_buffer_t buffer;
};

struct ggml_opt_context {
    struct ggml_opt_params   params;
    bool                     is_static;
    struct ggml_context     *ctx, *fixed;
    ggml_backend_buffer_t    fixed_buffer;
    struct ggml_tensor      *inputs, *outputs, *labels, *loss, *pred, *n_correct;
    struct ggml_tensor      *one, *step;            /* the loss's factor [1]; parameters of a step [7] or [2] */
    struct ggml_cgraph      *next;                  /* the program's graph, for a context without a static one */
    struct ggml_cgraph      *graph;
    int                      n_forward, n_grad;     /* nodes up to the loss, up to the gradients */
    struct weight           *weights;
    int                      n_weights;
    struct memory           *memory;
    enum ggml_opt_build_type kind, placed;          /* what the batch does; what the graph was placed for last */
    bool                     ready;
    int64_t                  n_steps;               /* made, and the one to come */
    int32_t                  n_summed;              /* batches since the last step */
    uint64_t                 random;
};

uint64_t opt_random(ggml_opt_context_t opt) {                   /* Steele, Lea and Flood 2014, splitmix64 */
    uint64_t z = opt->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30)*0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27)*0x94d049bb133111ebu;
    return z ^ z >> 31;
}
bool arn_opt_ready(ggml_opt_context_t opt) { return opt && opt->ready; }

/* ---- the state of weights -------------------------------------------------------------------------------------------- */

static bool keeps_sums(const struct ggml_opt_context *o) {
    const bool one_batch = o->is_static && o->params.build_type == GGML_OPT_BUILD_TYPE_OPT && o->params.opt_period == 1;
    return o->params.build_type >= GGML_OPT_BUILD_TYPE_GRAD && !one_batch;
}
static bool keeps_moments(const struct ggml_opt_context *o) {
    return o->params.build_type == GGML_OPT_BUILD_TYPE_OPT && o->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW;
}

static struct weight *weight_of(const struct ggml_opt_context *o, const struct ggml_tensor *w) {
    for (int i = 0; i < o->n_weights; i++) if (o->weights[i].w == w) return &o->weights[i];
    return NULL;
}
/* Where the weight is; host memory while it is nowhere. */
static ggml_backend_buffer_type_t type_of(const struct ggml_opt_context *o, const struct ggml_tensor *w) {
    const ggml_backend_sched_t s = o->params.backend_sched;
    return w->buffer ? ggml_backend_buffer_get_type(w->buffer) :
        ggml_backend_get_default_buffer_type(ggml_backend_sched_get_backend(s, ggml_backend_sched_get_n_backends(s) - 1));
}

static struct ggml_tensor *state_tensor(struct ggml_context *ctx, const struct ggml_tensor *w, const char *what) {
    return ggml_format_name(ggml_new_tensor(ctx, GGML_TYPE_F32, GGML_MAX_DIMS, w->ne), "%s %s", what, w->name);
}
/* State for the n new weights at `at` that lie in memory of one type, zeros. */
static bool memory_new(struct ggml_opt_context *o, struct weight *at, int n, ggml_backend_buffer_type_t type) {
    struct memory *m = calloc(1, sizeof *m);
    if (!m) return false;
    m->next   = o->memory;
    o->memory = m;
    m->ctx    = ggml_init((struct ggml_init_params) { .mem_size = 3*(size_t) n*ggml_tensor_overhead(), .no_alloc = true });
    bool any = false;
    for (int i = 0; m->ctx && i < n; i++) {
        if (type_of(o, at[i].w) != type) continue;
        if (keeps_sums(o))    at[i].sum = state_tensor(m->ctx, at[i].w, "grad acc for"), any = true;
        if (keeps_moments(o)) at[i].m = state_tensor(m->ctx, at[i].w, "first moment of"),
                              at[i].v = state_tensor(m->ctx, at[i].w, "second moment of"), any = true;
    }
    m->buffer = m->ctx && any ? ggml_backend_alloc_ctx_tensors_from_buft(m->ctx, type) : NULL;
    if (m->buffer) ggml_backend_buffer_clear(m->buffer, 0);
    return m->ctx && (!any || m->buffer);
}
static void memory_free(struct memory *m) {
    for (struct memory *next; m; m = next) {
        next = m->next;
        ggml_backend_buffer_free(m->buffer);
        ggml_free(m->ctx);
        free(m);
    }
}
static bool has_state(const struct ggml_opt_context *o, const struct weight *w) {
    return (w->sum || !keeps_sums(o)) && (w->m || !keeps_moments(o));
}
/* State for all weights of the graph that have none yet. */
static bool weights_add(struct ggml_opt_context *o) {
    const int before = o->n_weights;
    int n = before;
    for (int i = 0; i < o->n_forward; i++) n += o->graph->nodes[i]->flags & GGML_TENSOR_FLAG_PARAM && !weight_of(o, o->graph->nodes[i]);
    if (n == before) return true;
    struct weight *p = realloc(o->weights, (size_t) n*sizeof *p);
    struct memory *const kept = o->memory;
    if (!p) return false;
    o->weights = p;
    for (int i = 0, k = before; i < o->n_forward; i++) {
        struct ggml_tensor *w = o->graph->nodes[i];
        if (w->flags & GGML_TENSOR_FLAG_PARAM && !weight_of(o, w)) p[k++] = (struct weight) { .w = w };
    }
    bool ok = true;
    for (int i = before; ok && i < n; i++) if (!has_state(o, &p[i])) ok = memory_new(o, p + before, n - before, type_of(o, p[i].w));
    if (ok) o->n_weights = n;
    while (!ok && o->memory != kept) {
        struct memory *m = o->memory;
        o->memory = m->next;
        m->next = NULL;
        memory_free(m);
    }
    return ok;
}

static void forget(const struct ggml_opt_context *o, bool sums, bool moments) {
    for (int i = 0; i < o->n_weights; i++) {
        const struct weight *w = &o->weights[i];
        if (sums)    ggml_set_zero(w->sum);
        if (moments) ggml_set_zero(w->m), ggml_set_zero(w->v);
    }
}

/* ---- the graph --------------------------------------------------------------------------------------------------------- */

static bool has_labels(const struct ggml_opt_context *o) {
    return o->params.loss_type == GGML_OPT_LOSS_TYPE_CROSS_ENTROPY || o->params.loss_type == GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR;
}
static bool is_mean(const struct ggml_opt_context *o) { return o->params.loss_type != GGML_OPT_LOSS_TYPE_SUM; }

static struct ggml_tensor *as_matrix(struct ggml_context *ctx, struct ggml_tensor *t) {
    return ggml_is_matrix(t) ? t : ggml_reshape_2d(ctx, t, t->ne[0], ggml_nrows(t));
}

/* A batch's share of the period's loss. */
static void loss_build(struct ggml_opt_context *o) {
    struct ggml_context *ctx = o->ctx;
    struct ggml_tensor *y = o->outputs;
    const float share = 1.0f/(float) o->params.opt_period, n = (float) ggml_nelements(y);
    if (has_labels(o) && !o->is_static) {
        o->labels = ggml_set_name(ggml_dup_tensor(ctx, y), "labels");
        ggml_set_input(o->labels);
    }
    o->pred = o->n_correct = NULL;
    switch (o->params.loss_type) {
        case GGML_OPT_LOSS_TYPE_MEAN: o->loss = ggml_scale(ctx, ggml_sum(ctx, y), share/n); break;
        case GGML_OPT_LOSS_TYPE_SUM:  o->loss = ggml_sum(ctx, y); break;
        case GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR:
            o->loss = ggml_scale(ctx, ggml_sum(ctx, ggml_sqr(ctx, ggml_sub(ctx, y, o->labels))), share/n);
            break;
        case GGML_OPT_LOSS_TYPE_CROSS_ENTROPY:
            o->loss = ggml_cross_entropy_loss(ctx, y, o->labels);
            if (o->params.opt_period > 1) o->loss = ggml_scale(ctx, o->loss, share);
            if (!o->labels) break;
            o->pred      = ggml_set_name(ggml_argmax(ctx, as_matrix(ctx, y)), "pred");
            o->n_correct = ggml_set_name(ggml_count_equal(ctx, o->pred, ggml_argmax(ctx, as_matrix(ctx, o->labels))), "ncorrect");
            ggml_set_output(o->pred), ggml_set_output(o->n_correct);
            break;
        default: GGML_ABORT("ggml_opt: there is no loss type %d", (int) o->params.loss_type);
    }
    ggml_set_loss(ggml_set_name(o->loss, "loss"));
    ggml_set_output(o->loss);
}

static void forward_build(struct ggml_opt_context *o) {
    struct ggml_tensor *in = o->inputs, *out = o->outputs;
    if (in && in->op == GGML_OP_NONE) ggml_set_input(in);
    ggml_set_output(out);
    loss_build(o);
    for (int i = 0; o->next && i < o->next->n_nodes; i++) ggml_build_forward_expand(o->graph, o->next->nodes[i]);
    ggml_build_forward_expand(o->graph, o->loss);
    if (o->n_correct) ggml_build_forward_expand(o->graph, o->n_correct);
    o->n_forward = o->graph->n_nodes;
}

static bool backward_build(struct ggml_opt_context *o) {
    struct ggml_tensor **sums = weights_add(o) ? ggml_new_buffer(o->ctx, (size_t) o->n_forward*sizeof *sums) : NULL;
    if (!sums) return false;
    for (int i = 0; i < o->n_forward; i++) {
        struct ggml_tensor *t = o->graph->nodes[i];
        const struct weight *w = t->flags & GGML_TENSOR_FLAG_PARAM ? weight_of(o, t) : NULL;
        sums[i] = t == o->loss ? o->one : w ? w->sum : NULL;
    }
    ggml_build_backward_expand(o->ctx, o->graph, sums);
    o->n_grad = o->graph->n_nodes;
    return graph_ok(o->graph);
}

static bool steps_build(struct ggml_opt_context *o) {
    for (int i = 0; i < o->n_forward && graph_ok(o->graph); i++) {
        const struct weight *w = weight_of(o, o->graph->nodes[i]);
        struct ggml_tensor *g = w ? ggml_graph_get_grad(o->graph, w->w) : NULL;
        if (!g) continue;
        if (w->w->type != GGML_TYPE_F32) {
            LOG_ERROR("training: weight '%s' is %s, a step changes F32\n", w->w->name, ggml_type_name(w->w->type));
            return false;
        }
        if (!ggml_is_contiguous(g)) g = ggml_cont(o->ctx, g);
        ggml_build_forward_expand(o->graph, o->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW ?
            ggml_opt_step_adamw(o->ctx, w->w, g, w->m, w->v, o->step) : ggml_opt_step_sgd(o->ctx, w->w, g, o->step));
    }
    return graph_ok(o->graph);
}

/* Room for a whole graph over n nodes and leafs; kept when there is enough already. */
static bool room_for(struct ggml_opt_context *o, size_t n) {
    const size_t nodes = GROWTH*n + 64;
    const size_t size = ggml_graph_overhead_custom(nodes, true) + nodes*ggml_tensor_overhead() + n*sizeof(void *) + 64;
    if (o->ctx && ggml_get_mem_size(o->ctx) >= size) ggml_reset(o->ctx);
    else {
        ggml_free(o->ctx);
        o->ctx = ggml_init((struct ggml_init_params) { .mem_size = size, .no_alloc = true });
    }
    o->graph = o->ctx ? ggml_new_graph_custom(o->ctx, nodes, true) : NULL;
    return o->graph;
}

static bool graph_build(struct ggml_opt_context *o, size_t n, enum ggml_opt_build_type kind) {
    if (!room_for(o, n)) return false;
    forward_build(o);
    return graph_ok(o->graph) && (kind < GGML_OPT_BUILD_TYPE_GRAD || backward_build(o)) &&
           (kind < GGML_OPT_BUILD_TYPE_OPT || steps_build(o));
}

/* Nodes and leafs that the outputs are computed from, all of them sources of tensors in ctx_compute; 0 when out of memory. */
static size_t forward_size(const struct ggml_opt_params *p) {
    size_t most = 1, n = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(p->ctx_compute); t; t = ggml_get_next_tensor(p->ctx_compute, t)) {
        most++;
        for (int s = 0; s < GGML_MAX_SRC; s++) most += t->src[s] != NULL;
    }
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = ggml_graph_overhead_custom(most, false) });
    struct ggml_cgraph *g = ctx ? ggml_new_graph_custom(ctx, most, false) : NULL;
    ggml_build_forward_expand(g, p->outputs);
    if (graph_ok(g)) n = (size_t) g->n_nodes + (size_t) g->n_leafs;
    ggml_free(ctx);
    return n;
}

/* ---- contexts ----------------------------------------------------------------------------------------------------------- */

struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata) {
    GGML_UNUSED(userdata);
    return (struct ggml_opt_optimizer_params) { .adamw = { 1e-3f, 0.9f, 0.999f, 1e-8f, 0.0f }, .sgd = { 1e-3f, 0.0f } };
}
struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata) {
    return *(const struct ggml_opt_optimizer_params *) userdata;
}

struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched, enum ggml_opt_loss_type loss_type) {
    return (struct ggml_opt_params) {
        .backend_sched = backend_sched, .loss_type = loss_type, .build_type = GGML_OPT_BUILD_TYPE_OPT, .opt_period = 1,
        .get_opt_pars = ggml_opt_get_default_optimizer_params, .optimizer = GGML_OPT_OPTIMIZER_TYPE_ADAMW,
    };
}

static bool fixed_new(struct ggml_opt_context *o) {
    static const float one = 1.0f;
    const ggml_backend_sched_t s = o->params.backend_sched;
    o->fixed = ggml_init((struct ggml_init_params) { .mem_size = 3*ggml_tensor_overhead(), .no_alloc = true });
    if (!o->fixed) return false;
    o->one  = ggml_set_name(ggml_new_tensor_1d(o->fixed, GGML_TYPE_F32, 1), "grad acc for loss");
    o->step = ggml_set_name(ggml_new_tensor_1d(o->fixed, GGML_TYPE_F32, o->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW ? 7 : 2), "step");
    if (o->is_static && has_labels(o)) o->labels = ggml_set_name(ggml_dup_tensor(o->fixed, o->outputs), "labels");
    o->fixed_buffer = ggml_backend_alloc_ctx_tensors(o->fixed, ggml_backend_sched_get_backend(s, ggml_backend_sched_get_n_backends(s) - 1));
    if (!o->fixed_buffer) return false;
    ggml_backend_buffer_clear(o->fixed_buffer, 0);
    ggml_backend_tensor_set(o->one, &one, 0, sizeof one);
    return true;
}

ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params) {
    if (!params.backend_sched || !params.get_opt_pars || params.opt_period < 1 || (unsigned) params.optimizer >= GGML_OPT_OPTIMIZER_TYPE_COUNT)
        GGML_ABORT("ggml_opt_init: scheduler %p, opt_period %d, optimizer %d", (void *) params.backend_sched, (int) params.opt_period, (int) params.optimizer);
    if (params.ctx_compute && (!params.inputs || !params.outputs)) return NULL;         /* their builders have said why */
    struct ggml_opt_context *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->params    = params;
    o->is_static = params.ctx_compute;
    o->inputs    = o->is_static ? params.inputs : NULL;
    o->outputs   = o->is_static ? params.outputs : NULL;
    o->n_steps   = 1;
    const size_t n = o->is_static ? forward_size(&params) : 0;
    if (fixed_new(o) && (!o->is_static || (n > 0 && graph_build(o, n, params.build_type)))) return o;
    LOG_ERROR("ggml_opt_init: out of memory, or no graph to train\n");
    ggml_opt_free(o);
    return NULL;
}

void ggml_opt_free(ggml_opt_context_t o) {
    if (!o) return;
    memory_free(o->memory);
    free(o->weights);
    ggml_backend_buffer_free(o->fixed_buffer);
    ggml_free(o->fixed);
    ggml_free(o->ctx);
    free(o);
}

void ggml_opt_reset(ggml_opt_context_t o, bool optimizer) {
    if (!o) return;
    forget(o, true, optimizer);
    o->n_summed = 0;
    if (optimizer) o->n_steps = 1;
}

bool                ggml_opt_static_graphs(ggml_opt_context_t opt_ctx) { return opt_ctx && opt_ctx->is_static; }
struct ggml_tensor *ggml_opt_inputs  (ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->inputs    : NULL; }
struct ggml_tensor *ggml_opt_outputs (ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->outputs   : NULL; }
struct ggml_tensor *ggml_opt_labels  (ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->labels    : NULL; }
struct ggml_tensor *ggml_opt_loss    (ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->loss      : NULL; }
struct ggml_tensor *ggml_opt_pred    (ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->pred      : NULL; }
struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx) { return opt_ctx ? opt_ctx->n_correct : NULL; }

struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node) {
    return opt_ctx && opt_ctx->graph && node ? ggml_graph_get_grad_acc(opt_ctx->graph, node) : NULL;
}
enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->params.optimizer : GGML_OPT_OPTIMIZER_TYPE_COUNT;
}
const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type optimizer) {
    static const char *const names[GGML_OPT_OPTIMIZER_TYPE_COUNT] = { "adamw", "sgd" };
    return (unsigned) optimizer < GGML_OPT_OPTIMIZER_TYPE_COUNT ? names[optimizer] : "undefined";
}

/* ---- a batch ------------------------------------------------------------------------------------------------------------- */

void ggml_opt_prepare_alloc(ggml_opt_context_t o, struct ggml_context *ctx_compute, struct ggml_cgraph *gf,
                            struct ggml_tensor *inputs, struct ggml_tensor *outputs) {
    GGML_UNUSED(ctx_compute);
    if (!o) return;
    if (o->is_static) GGML_ABORT("ggml_opt_prepare_alloc: the context has a static graph");
    o->next    = graph_ok(gf) && outputs ? gf : NULL;
    o->inputs  = inputs;
    o->outputs = outputs;
}

static enum ggml_opt_build_type kind_of(const struct ggml_opt_context *o, bool backward) {
    if (!backward || o->params.build_type == GGML_OPT_BUILD_TYPE_FORWARD) return GGML_OPT_BUILD_TYPE_FORWARD;
    const bool last = o->n_summed + 1 >= o->params.opt_period;
    return last ? o->params.build_type : GGML_OPT_BUILD_TYPE_GRAD;
}

static void mark(struct ggml_opt_context *o) {
    const int n = o->kind == GGML_OPT_BUILD_TYPE_FORWARD ? o->n_forward : o->kind == GGML_OPT_BUILD_TYPE_GRAD ? o->n_grad : o->graph->n_nodes;
    for (int i = o->n_forward; i < o->graph->n_nodes; i++) {
        struct ggml_tensor *t = o->graph->nodes[i];
        t->flags = i < n ? t->flags | GGML_TENSOR_FLAG_COMPUTE : t->flags & ~GGML_TENSOR_FLAG_COMPUTE;
    }
}

/* The scheduler forgets a graph when it gets another one: then it knows nothing of our loss. Marks may not change under a
 * graph that it has; placing it anew is one walk over the nodes and takes no memory. */
static bool is_placed(const struct ggml_opt_context *o) {
    return o->is_static && o->placed == o->kind && ggml_backend_sched_get_tensor_backend(o->params.backend_sched, o->loss);
}

void ggml_opt_alloc(ggml_opt_context_t o, bool backward) {
    if (!o) return;
    o->ready = false;
    o->kind  = kind_of(o, backward);
    if (!o->is_static) {
        if (!o->outputs) GGML_ABORT("ggml_opt_alloc: no graph, call ggml_opt_prepare_alloc first");
        if (!o->next || !graph_build(o, (size_t) o->next->n_nodes + (size_t) o->next->n_leafs + 4, o->kind)) {
            LOG_ERROR("ggml_opt_alloc: the graph cannot be built\n");
            return;
        }
    }
    if (o->kind > GGML_OPT_BUILD_TYPE_FORWARD && o->params.build_type == GGML_OPT_BUILD_TYPE_OPT && o->n_summed == 0)
        forget(o, true, false);
    o->ready = is_placed(o);
    if (o->ready) return;
    if (o->is_static) mark(o);
    ggml_backend_sched_reset(o->params.backend_sched);
    o->ready  = ggml_backend_sched_alloc_graph(o->params.backend_sched, o->graph);
    o->placed = o->ready ? o->kind : (enum ggml_opt_build_type) 0;
    if (!o->ready) LOG_ERROR("ggml_opt_alloc: no memory for a graph of %d nodes\n", o->graph->n_nodes);
}

/* By multiplications alone: the same on every machine. */
static double power(double x, int64_t n) {
    double r = 1.0;
    for (; n > 0; n >>= 1, x *= x) if (n & 1) r *= x;
    return r;
}
static void step_set(const struct ggml_opt_context *o) {
    const struct ggml_opt_optimizer_params p = o->params.get_opt_pars(o->params.get_opt_pars_ud);
    const double rest1 = 1.0 - power((double) p.adamw.beta1, o->n_steps), rest2 = 1.0 - power((double) p.adamw.beta2, o->n_steps);
    const float adamw[7] = { p.adamw.alpha, p.adamw.beta1, p.adamw.beta2, p.adamw.eps, p.adamw.wd, (float) (1.0/rest1), (float) (1.0/rest2) };
    const float sgd[2] = { p.sgd.alpha, p.sgd.wd };
    ggml_backend_tensor_set(o->step, o->params.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW ? adamw : sgd, 0, ggml_nbytes(o->step));
}

static bool report(const struct ggml_opt_context *o, ggml_opt_result_t result) {
    float loss;
    int64_t n_correct = -1;
    ggml_backend_tensor_get(o->loss, &loss, 0, sizeof loss);
    if (o->n_correct) ggml_backend_tensor_get(o->n_correct, &n_correct, 0, sizeof n_correct);
    return result_add(result, &(struct opt_batch) {
        .n = o->pred ? ggml_nelements(o->pred) : o->outputs->ne[1], .loss = (double) loss*(is_mean(o) ? o->params.opt_period : 1),
        .per_point = is_mean(o), .n_correct = n_correct, .pred = o->pred });
}

bool arn_opt_eval(ggml_opt_context_t o, ggml_opt_result_t result) {
    if (!o || !o->ready) {
        LOG_ERROR("ggml_opt_eval: no graph is ready (ggml_opt_alloc)\n");
        return false;
    }
    o->ready = false;
    if (o->kind == GGML_OPT_BUILD_TYPE_OPT) step_set(o);
    const enum ggml_status status = ggml_backend_sched_graph_compute(o->params.backend_sched, o->graph);
    if (status != GGML_STATUS_SUCCESS) {
        LOG_ERROR("ggml_opt_eval: %s\n", ggml_status_to_string(status));
        return false;
    }
    o->n_steps += o->kind == GGML_OPT_BUILD_TYPE_OPT;
    if (o->kind > GGML_OPT_BUILD_TYPE_FORWARD) o->n_summed = (o->n_summed + 1)%o->params.opt_period;
    if (!o->is_static) o->next = NULL;
    return !result || report(o, result);
}

void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result) { arn_opt_eval(opt_ctx, result); }
