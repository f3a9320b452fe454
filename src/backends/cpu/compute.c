/* Running a graph: a list of steps is made from its nodes before the run (steps.c), then all workers walk the list together.
 *
 * A wide step is entered by every worker that comes in time; the last one to leave it completes it, computes the narrow steps
 * behind it alone and opens the next wide one. Which one a step is follows from its size, before the run. The list is kept for a
 * graph that says to be the same as last time (its uid).
 *
 * Memory of a run, one block:
 *     | lists of steps | scratch, shared by the workers of a step |
 * Ending: any worker may wish it (run_stop, task_fail); then no other step is opened. */

#include "compute.h"
#include "pool.h"
#include "steps.h"
#include "arenite.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct cpu_run            run;
    const struct ggml_cgraph *graph;
    const struct cpu_how     *how;
    const struct cpu_kernels *kernels;
    int                       n_threads;    /* that the scratch is for; run.nth may be less */
    struct cpu_steps          steps;
    void                     *scratch;
    size_t                    scratch_size;
};

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

size_t arn_cpu_scratch_size(const struct ggml_cgraph *graph, int n_threads) {
    size_t most = 0;
    n_threads = pool_threads(n_threads);
    for (int i = 0; graph_ok(graph) && i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (node_computed(node) && cpu_supports(node)) most = max_size(most, cpu_ops[node->op].scratch(node, n_threads));
    }
    return most;
}

static size_t lists_size(const struct ggml_cgraph *graph) { return graph_ok(graph) ? steps_size(graph->n_nodes) : 0; }

size_t cpu_memory_size(const struct ggml_cgraph *graph, int n_threads) {
    size_t size;
    return size_add(&size, lists_size(graph), arn_cpu_scratch_size(graph, n_threads)) ? size : SIZE_MAX;
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
    const size_t lists = lists_size(w->graph);
    size_t size = lists;
    if (!graph_ok(w->graph)) {
        LOG_ERROR("graph: memory ran out while it was built, it cannot be computed\n");
        return GGML_STATUS_ALLOC_FAILED;
    }
    bool ok = cpu_memory_grow(memory, lists, 0);
    if (ok) {
        w->steps = steps_in(memory->p, w->graph->n_nodes);
        const enum ggml_status status = steps_make(&w->steps, w->graph, w->kernels, w->n_threads);
        if (status != GGML_STATUS_SUCCESS) return status;
        ok = size_add(&size, lists, w->steps.scratch_size) && cpu_memory_grow(memory, size, lists);
    }
    if (!ok) {
        LOG_ERROR("graph: no work memory of %zu bytes, there are %zu\n", size, memory->size);
        return GGML_STATUS_ALLOC_FAILED;
    }
    return GGML_STATUS_SUCCESS;
}

static bool same_plan(const struct cpu_planned *a, const struct cpu_planned *b) {
    return a->uid == b->uid && a->n_nodes == b->n_nodes && a->n_threads == b->n_threads && a->kernels == b->kernels &&
           a->fusing == b->fusing;
}

/* The steps of the last run, if they were made for this graph and these circumstances; else new ones. */
static enum ggml_status plan_or_keep(struct walk *w, struct cpu_memory *memory) {
    struct cpu_planned now = { .kernels = w->kernels, .n_threads = w->n_threads, .fusing = steps_fusing() };
    if (w->graph && !memory->fixed) now.uid = w->graph->uid, now.n_nodes = w->graph->n_nodes;
    if (now.uid && same_plan(&now, &memory->planned)) {
        w->steps = memory->planned.steps;
    } else {
        memory->planned.uid = 0;
        const enum ggml_status status = plan(w, memory);
        if (status != GGML_STATUS_SUCCESS) return status;
    }
    const size_t lists = lists_size(w->graph);
    const struct cpu_steps at = steps_in(memory->p, w->graph->n_nodes);         /* the block may have moved */
    w->steps.step   = at.step, w->steps.node = at.node;
    w->scratch      = (char *) memory->p + lists;
    w->scratch_size = memory->size - lists;
    now.steps       = w->steps;
    memory->planned = now;
    return GGML_STATUS_SUCCESS;
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

typedef void part_of_step(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node);

static void do_part(struct walk *w, int i, int ith, int nth, part_of_step *part) {
    const struct cpu_step *step = &w->steps.step[i];
    const struct cpu_task task = {
        .ith = ith, .nth = nth, .n_threads = w->n_threads, .run = &w->run, .k = w->kernels,
        .scratch = w->scratch, .scratch_size = w->scratch_size,
    };
    if (nth == 1) w->run.narrow = 0;
    part(&task, step, w->steps.node + step->first);
}

/* For one worker alone: completes step i, unless it failed. */
static void complete(struct walk *w, int i) {
    if (atomic_load(&w->run.wish) == GGML_STATUS_SUCCESS) do_part(w, i, 0, 1, step_finish);
    for (int node = 0; w->how->abort_callback && node < w->steps.step[i].count; node++) {       /* asked once a node */
        if (!w->how->abort_callback(w->how->abort_data)) continue;
        run_stop(&w->run, GGML_STATUS_ABORTED);
        break;
    }
}

/* For one worker alone: computes narrow steps from i on and opens what is behind them, or the end. */
static void go_on(struct walk *w, int i) {
    for (; i < w->steps.n && !w->steps.step[i].wide && atomic_load(&w->run.wish) == GGML_STATUS_SUCCESS; i++) {
        do_part(w, i, 0, 1, step_run);
        complete(w, i);
    }
    if (atomic_load(&w->run.wish) != GGML_STATUS_SUCCESS) i = w->steps.n;
    run_open(&w->run, i, i < w->steps.n && w->steps.step[i].meets);
}

static void work(struct cpu_run *run, int ith) {
    struct walk *w = (struct walk *) run;                   /* run is its first member */
    if (ith == 0) go_on(w, 0);
    for (int i = 0; (i = run_enter(run, ith, i)) < w->steps.n; i++) {
        do_part(w, i, ith, run->nth, step_run);
        if (!run_leave(run)) continue;
        complete(w, i);
        go_on(w, i + 1);
    }
}

enum ggml_status cpu_compute(const struct ggml_cgraph *graph, const struct cpu_how *how, struct cpu_memory *memory) {
    struct walk w = {
        .graph = graph, .how = how, .kernels = how->use_ref ? cpu_kernels_at(CPU_PORTABLE) : cpu_kernels(), .run.nth = 1,
        .n_threads = pool_threads(how->n_threads),
    };
    const enum ggml_status status = plan_or_keep(&w, memory);
    if (status != GGML_STATUS_SUCCESS) return status;
    if (w.steps.any_wide && how->pool) w.run.nth = pool_grow(how->pool, w.n_threads);
    if (w.run.nth > 1) pool_run(how->pool, &w.run, work);
    else               work(&w.run, 0);
    return (enum ggml_status) atomic_load(&w.run.wish);
}

bool arn_cpu_visit_steps(const struct ggml_cgraph *graph, int n_threads, arn_step_visit visit, void *user_data) {
    struct cpu_memory memory = { .p = NULL };
    const struct cpu_how how = { .n_threads = n_threads };
    struct walk w = { .graph = graph, .how = &how, .kernels = cpu_kernels(), .n_threads = pool_threads(n_threads) };
    const bool ok = plan_or_keep(&w, &memory) == GGML_STATUS_SUCCESS;
    for (int i = 0; ok && i < w.steps.n; i++) {
        const struct cpu_step *s = &w.steps.step[i];
        const struct arn_step step = { w.steps.node + s->first, s->count, s->before, s->products, s->wide };
        if (!visit(&step, user_data)) break;
    }
    cpu_memory_free(&memory);
    return ok;
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *graph, int n_threads, struct ggml_threadpool *pool) {
    if (n_threads <= 0) n_threads = pool ? ggml_threadpool_get_n_threads(pool) : GGML_DEFAULT_N_THREADS;
    bool wide = false;
    for (int i = 0; graph_ok(graph) && i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        wide = wide || (node_computed(node) && node_wide(node));
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
    struct ggml_tensor *work = plan.work_size < SIZE_MAX ?
        ggml_new_tensor_1d(ctx, GGML_TYPE_I8, (int64_t) plan.work_size) : NULL;
    ggml_set_no_alloc(ctx, no_alloc);
    if (!work) return GGML_STATUS_ALLOC_FAILED;
    plan.work_data = work->data;
    return ggml_graph_compute(graph, &plan);
}
