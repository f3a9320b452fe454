/* Running a graph: a list of steps is made from its nodes before the run, then all workers walk the list together.
 *
 * A wide step is entered by every worker; a narrow one is computed by worker 0 alone. Workers meet before and after each
 * wide step; between narrow steps nobody waits. Which one a node is follows from its size, before the run. A step names its
 * first node and how many nodes it covers, so that an op row may come to cover several.
 *
 * Memory of a run, one block:
 *     | steps [n_nodes] | padding to 64 | scratch, shared by the workers of a node |
 * Ending: any worker may wish it (run_stop, task_fail); all leave at the next meeting, which is at most one node away. */

#include "compute.h"
#include "pool.h"
#include "arenite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step {
    const struct cpu_op *op;
    int                  node, count;
    bool                 wide;
};

/* A node with less work than this is not worth a meeting of the workers: some 5 to 15 us of one core. */
enum { SMALL_WORK = 16384 };

struct walk {
    struct cpu_run            run;
    const struct ggml_cgraph *graph;
    const struct cpu_how     *how;
    const struct cpu_kernels *kernels;
    int                       n_threads;    /* that the scratch is for; run.nth may be less */
    const struct step        *steps;
    int                       n_steps;
    bool                      any_wide;
    void                     *scratch;
    size_t                    scratch_size;
};

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static bool is_computed(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) && !op_is_view(node->op) && !ggml_is_empty(node);
}

/* Elements read or written, roughly; products count four multiply-adds as one. */
static double work_of(const struct ggml_tensor *node) {
    const struct ggml_tensor *const *src = (const struct ggml_tensor *const *) node->src;
    if (node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) {
        return (double) ggml_nelements(node)*(double) src[0]->ne[0]/4;
    }
    if (node->op == GGML_OP_FLASH_ATTN_EXT) return (double) ggml_nelements(src[0])*(double) src[1]->ne[1]/2;
    double most = (double) ggml_nelements(node);
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        /* rows of a table are picked, not read through */
        if (src[i] && !(node->op == GGML_OP_GET_ROWS && i == 0)) most = fmax(most, (double) ggml_nelements(src[i]));
    }
    return most;
}

static bool is_wide(const struct cpu_op *op, const struct ggml_tensor *node) {
    return op->threads == ALL_THREADS || (op->threads == BY_SIZE && work_of(node) >= SMALL_WORK);
}

/* The node has memory, for itself and its sources, and an op that takes what it is given. */
static enum ggml_status check(const struct ggml_tensor *node, int i) {
    bool placed = node->data;
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        placed = placed && (!node->src[s] || node->src[s]->data || ggml_is_empty(node->src[s]));
    }
    if (!placed) {
        LOG_ERROR("graph: node %d (%s, \"%s\") or one of its sources has no memory\n", i, ggml_op_desc(node), node->name);
        return GGML_STATUS_ALLOC_FAILED;
    }
    if (!cpu_supports(node)) {
        LOG_ERROR("graph: node %d (%s, \"%s\"): the CPU backend cannot compute it from these types and layouts\n",
            i, ggml_op_desc(node), node->name);
        return GGML_STATUS_FAILED;
    }
    return GGML_STATUS_SUCCESS;
}

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* The list, how long it is, whether any of it is wide, and the scratch of its nodes. */
static enum ggml_status make_steps(struct walk *w, struct step *steps) {
    const struct ggml_cgraph *graph = w->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (!is_computed(node)) continue;
        const enum ggml_status status = check(node, i);
        if (status != GGML_STATUS_SUCCESS) return status;
        const struct cpu_op *op = &cpu_ops[node->op];
        const bool wide = is_wide(op, node);
        steps[w->n_steps++] = (struct step) { .op = op, .node = i, .count = 1, .wide = wide };
        w->any_wide = w->any_wide || wide;
        w->scratch_size = max_size(w->scratch_size, op->scratch(node, w->n_threads));
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

size_t arn_cpu_scratch_size(const struct ggml_cgraph *graph, int n_threads) {
    size_t most = 0;
    n_threads = pool_threads(n_threads);
    for (int i = 0; graph_ok(graph) && i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (is_computed(node) && cpu_supports(node)) most = max_size(most, cpu_ops[node->op].scratch(node, n_threads));
    }
    return most;
}

static size_t steps_size(const struct ggml_cgraph *graph) {
    return graph_ok(graph) ? GGML_PAD((size_t) graph->n_nodes*sizeof(struct step), 64) : 0;
}

size_t cpu_memory_size(const struct ggml_cgraph *graph, int n_threads) {
    size_t size;
    return size_add(&size, steps_size(graph), arn_cpu_scratch_size(graph, n_threads)) ? size : SIZE_MAX;
}

bool cpu_memory_grow(struct cpu_memory *memory, size_t size, size_t keep) {
    if (size <= memory->size) return true;
    void *p = memory->fixed ? NULL : ggml_aligned_malloc(size);
    if (!p) return false;
    if (keep) memcpy(p, memory->p, keep);
    cpu_memory_free(memory);
    *memory = (struct cpu_memory) { .p = p, .size = size };
    return true;
}

void cpu_memory_free(struct cpu_memory *memory) {
    if (!memory->fixed) ggml_aligned_free(memory->p, memory->size);
    *memory = (struct cpu_memory) { .p = NULL };
}

/* Lists the steps in the memory and finds room for their scratch behind them. */
static enum ggml_status plan(struct walk *w, struct cpu_memory *memory) {
    const size_t steps = steps_size(w->graph);
    size_t size = steps;
    if (!graph_ok(w->graph)) {
        LOG_ERROR("graph: memory ran out while it was built, it cannot be computed\n");
        return GGML_STATUS_ALLOC_FAILED;
    }
    bool ok = cpu_memory_grow(memory, steps, 0);
    if (ok) {
        const enum ggml_status status = make_steps(w, memory->p);
        if (status != GGML_STATUS_SUCCESS) return status;
        ok = size_add(&size, steps, w->scratch_size) && cpu_memory_grow(memory, size, steps);
    }
    if (!ok) {
        LOG_ERROR("graph: no work memory of %zu bytes, there are %zu\n", size, memory->size);
        return GGML_STATUS_ALLOC_FAILED;
    }
    w->steps        = memory->p;
    w->scratch      = (char *) memory->p + steps;
    w->scratch_size = memory->size - steps;
    return GGML_STATUS_SUCCESS;
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

static void run_step(struct walk *w, const struct step *step, int ith) {
    if (!step->wide) w->run.narrow = 0;
    const struct cpu_task task = {
        .ith = ith, .nth = step->wide ? w->run.nth : 1, .n_threads = w->n_threads, .run = &w->run, .k = w->kernels,
        .scratch = w->scratch, .scratch_size = w->scratch_size,
    };
    step->op->run(&task, w->graph->nodes[step->node]);
    if (ith == 0 && w->how->abort_callback && w->how->abort_callback(w->how->abort_data)) {
        run_stop(&w->run, GGML_STATUS_ABORTED);
    }
}

static void work(struct cpu_run *run, int ith) {
    struct walk *w = (struct walk *) run;                   /* run is its first member */
    for (int i = 0; i < w->n_steps; i++) {
        const struct step *step = &w->steps[i];
        if (i > 0 && (step->wide || step[-1].wide)) {
            if (!run_meet(run, ith)) return;
        }
        if (step->wide || (ith == 0 && atomic_load(&run->wish) == GGML_STATUS_SUCCESS)) run_step(w, step, ith);
    }
}

enum ggml_status cpu_compute(const struct ggml_cgraph *graph, const struct cpu_how *how, struct cpu_memory *memory) {
    struct walk w = {
        .graph = graph, .how = how, .kernels = how->use_ref ? cpu_kernels_at(CPU_PORTABLE) : cpu_kernels(), .run.nth = 1,
        .n_threads = pool_threads(how->n_threads),
    };
    const enum ggml_status status = plan(&w, memory);
    if (status != GGML_STATUS_SUCCESS) return status;
    if (w.any_wide && how->pool) w.run.nth = pool_grow(how->pool, w.n_threads);
    if (w.run.nth > 1) pool_run(how->pool, &w.run, work);
    else               work(&w.run, 0);
    return (enum ggml_status) atomic_load(&w.run.wish);
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *graph, int n_threads, struct ggml_threadpool *pool) {
    if (n_threads <= 0) n_threads = pool ? ggml_threadpool_get_n_threads(pool) : GGML_DEFAULT_N_THREADS;
    bool wide = false;
    for (int i = 0; graph_ok(graph) && i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        wide = wide || (is_computed(node) && is_wide(&cpu_ops[node->op], node));
    }
    if (!wide) n_threads = 1;
    size_t work_size = cpu_memory_size(graph, n_threads);
    if (work_size && !size_add(&work_size, work_size, 63)) work_size = SIZE_MAX;    /* the program's memory begins anywhere */
    return (struct ggml_cplan) {
        .work_size = work_size, .n_threads = n_threads, .threadpool = pool,
    };
}

enum ggml_status ggml_graph_compute(struct ggml_cgraph *graph, struct ggml_cplan *plan) {
    GGML_ASSERT(plan && plan->n_threads > 0 && (plan->work_size == 0 || plan->work_data));
    struct cpu_how how = {
        .n_threads = plan->n_threads, .pool = plan->threadpool, .use_ref = plan->use_ref,
        .abort_callback = plan->abort_callback, .abort_data = plan->abort_callback_data,
    };
    struct ggml_threadpool *own = NULL;
    if (how.pool && how.n_threads > ggml_threadpool_get_n_threads(how.pool)) {
        how.n_threads = ggml_threadpool_get_n_threads(how.pool);
        LOG_WARN("graph: %d threads asked for, the pool has %d\n", plan->n_threads, how.n_threads);
    } else if (!how.pool && how.n_threads > 1) {
        const struct ggml_threadpool_params params = ggml_threadpool_params_default(how.n_threads);
        how.pool = own = pool_new(&params);                 /* out of memory: one thread does it */
    }
    const size_t skip = (64 - (uintptr_t) plan->work_data%64)%64;
    struct cpu_memory memory = { .p = plan->work_data ? plan->work_data + skip : NULL, .fixed = true };
    memory.size = plan->work_size > skip && plan->work_data ? plan->work_size - skip : 0;
    const enum ggml_status status = cpu_compute(graph, &how, &memory);
    pool_free(own);
    return status;
}

enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *graph, int n_threads) {
    struct ggml_cplan plan = ggml_graph_plan(graph, n_threads, NULL);
    const bool no_alloc = ggml_get_no_alloc(ctx);
    ggml_set_no_alloc(ctx, false);
    struct ggml_tensor *work = plan.work_size <= INT64_MAX ?
        ggml_new_tensor_1d(ctx, GGML_TYPE_I8, (int64_t) plan.work_size) : NULL;
    ggml_set_no_alloc(ctx, no_alloc);
    if (!work) return GGML_STATUS_ALLOC_FAILED;
    plan.work_data = work->data;
    return ggml_graph_compute(graph, &plan);
}
