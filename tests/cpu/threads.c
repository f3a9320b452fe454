/* The pool: the same bytes for any number of threads, changing that number at every call, stopping at any node, workers that
 * come late, an idle process that uses no CPU, and no memory taken or thread started once a graph has run. */

#include "check.h"
#include "cpu.h"
#include "interpose.h"
#include "pool.h"
#include "arenite.h"

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}
static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

/* A chain of wide and narrow nodes: y = W x + y', again and again. */
enum { WIDTH = 96, COLUMNS = 40, LAYERS = 6 };
struct net {
    struct ggml_context *ctx;
    struct ggml_cgraph  *graph;
    struct ggml_tensor  *out;
};

static struct ggml_tensor *random_tensor(struct ggml_context *ctx, int64_t n, int64_t m, uint64_t *seed) {
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, m);
    for (int64_t i = 0; i < n*m; i++) ((float *) t->data)[i] = rnd_f32(seed);
    return t;
}

static struct net net_new(int layers) {
    uint64_t seed = 7;
    struct net net = { .ctx = ggml_init((struct ggml_init_params) { .mem_size = 4 << 20 }) };
    struct ggml_tensor *x = random_tensor(net.ctx, WIDTH, COLUMNS, &seed);
    for (int i = 0; i < layers; i++) {
        struct ggml_tensor *w = random_tensor(net.ctx, WIDTH, WIDTH, &seed);
        x = ggml_add(net.ctx, ggml_mul_mat(net.ctx, w, x), ggml_scale(net.ctx, x, 0.5f));
    }
    net.out   = x;
    net.graph = ggml_new_graph(net.ctx);
    ggml_build_forward_expand(net.graph, x);
    return net;
}

static void same_bytes(void) {
    static const int counts[] = { 1, 2, 3, 8, 5 };
    struct net net = net_new(LAYERS);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    static float want[WIDTH*COLUMNS];
    for (size_t i = 0; i < sizeof counts/sizeof counts[0]; i++) {
        ggml_backend_cpu_set_n_threads(cpu, counts[i]);
        memset(net.out->data, 0, sizeof want);
        CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_SUCCESS, "%d threads", counts[i]);
        if (i == 0) memcpy(want, net.out->data, sizeof want);
        CHECK(!memcmp(want, net.out->data, sizeof want), "%d threads", counts[i]);
    }
    ggml_backend_free(cpu);
    ggml_free(net.ctx);
}

/* The number of threads changes at every call; a fourth of the calls is stopped by the callback. */
static bool yes(void *data) { (void) data; return true; }

static void add_one(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth, void *data) {
    (void) data;
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth) ((float *) dst->data)[i] = ((const float *) a->data)[i] + 1.0f;
}

static void alternate(int calls) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 20 });
    struct ggml_tensor *x = ggml_set_f32(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 16), 0.0f), *y = x;
    for (int i = 0; i < 4; i++) y = ggml_map_custom1(ctx, y, add_one, GGML_N_TASKS_MAX, NULL);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    int failed = 0;
    for (int i = 0; i < calls; i++) {
        const bool stop = i % 4 == 3;
        ggml_backend_cpu_set_n_threads(cpu, i % 2 == 0 ? 1 : i % 64 == 1 ? 8 : 2);
        ggml_backend_cpu_set_abort_callback(cpu, stop ? yes : NULL, NULL);
        memset(y->data, 0, ggml_nbytes(y));
        failed += ggml_backend_graph_compute(cpu, graph) != (stop ? GGML_STATUS_ABORTED : GGML_STATUS_SUCCESS);
        failed += ((float *) y->data)[i % 16] != (stop ? 0.0f : 4.0f);
    }
    CHECK(failed == 0, "%d of %d calls", failed, calls);
    ggml_backend_free(cpu);
    ggml_free(ctx);
}

/* Graphs and pools that go away at once, while workers have hardly left them. */
static void short_lives(int calls) {
    for (int i = 0; i < calls; i++) {
        struct net net = net_new(1);
        ggml_backend_t cpu = ggml_backend_cpu_init();
        ggml_backend_cpu_set_n_threads(cpu, 4);
        CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_SUCCESS, "life %d", i);
        ggml_free(net.ctx);
        ggml_backend_free(cpu);
    }
}

static bool count_down(void *data) {
    return --*(int *) data == 0;
}

static void abort_anywhere(void) {
    struct net net = net_new(LAYERS);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    static float want[WIDTH*COLUMNS];
    ggml_backend_graph_compute(cpu, net.graph);
    memcpy(want, net.out->data, sizeof want);
    const int n = ggml_graph_n_nodes(net.graph);
    for (int threads = 1; threads <= 8; threads *= 2) {
        ggml_backend_cpu_set_n_threads(cpu, threads);
        for (int node = 1; node <= n; node++) {
            int left = node;
            ggml_backend_cpu_set_abort_callback(cpu, count_down, &left);
            const double start = now();
            CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_ABORTED, "node %d, %d threads", node, threads);
            CHECK(left == 0, "the callback is asked once a node and not again: node %d, %d left", node, left);
            CHECK(now() - start < (SANITIZED ? 5 : 0.5), "node %d, %d threads: %f s", node, threads, now() - start);
        }
        ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);
        memset(net.out->data, 0, sizeof want);
        CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_SUCCESS, "after it, %d threads", threads);
        CHECK(!memcmp(want, net.out->data, sizeof want), "after it, %d threads", threads);
    }
    ggml_backend_free(cpu);
    ggml_free(net.ctx);
}

/* Who comes late is not waited for and goes on where the others are; a step that gathers waits for all. One thread plays both. */
static void latecomers(void) {
    struct pool_spin spin[2] = { { 0 }, { 0 } };
    struct cpu_run run = { .nth = 2, .spin = spin };
    run_open(&run, 3, false);
    CHECK(run_enter(&run, 0, 0) == 3 && run_leave(&run), "a step without the other worker");
    run_open(&run, 4, false);
    CHECK(run_enter(&run, 0, 4) == 4 && run_enter(&run, 1, 0) == 4, "the step that is open when it comes");
    CHECK(!run_leave(&run) && run_leave(&run), "the last of those inside closes it");
    run_open(&run, 5, true);
    CHECK(run_enter(&run, 0, 5) == 5 && !run_leave(&run), "a step that gathers stays open");
    CHECK(run_enter(&run, 1, 5) == 5 && run_leave(&run), "until both were there");
}

/* Every worker enters a custom op, once each, and they are there together. */
struct visits {
    atomic_int entered[8];
};
static void visit(struct ggml_tensor *dst, int ith, int nth, void *data) {
    struct visits *v = data;
    (void) dst, (void) nth;
    atomic_fetch_add(&v->entered[ith], 1);
}

static void custom_by_all(void) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 20 });
    struct visits v;
    memset(&v, 0, sizeof v);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_tensor *y = ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, &x, 1, visit, GGML_N_TASKS_MAX, &v);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    CHECK(ggml_graph_compute_with_ctx(ctx, graph, 5) == GGML_STATUS_SUCCESS, "custom");
    for (int i = 0; i < 8; i++) CHECK(v.entered[i] == (i < 5), "worker %d entered %d times", i, v.entered[i]);
    ggml_free(ctx);
}

static void pools(void) {
    struct net net = net_new(2);
    struct ggml_threadpool_params params = ggml_threadpool_params_default(3);
    params.paused = true;
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    CHECK(pool && ggml_threadpool_get_n_threads(pool) == 3, "3 threads");
    struct ggml_cplan plan = ggml_graph_plan(net.graph, 0, pool);
    CHECK(plan.n_threads == 3, "%d threads planned", plan.n_threads);
    plan.work_data = malloc(plan.work_size);
    for (int i = 0; i < 3; i++) {
        CHECK(ggml_graph_compute(net.graph, &plan) == GGML_STATUS_SUCCESS, "run %d", i);
        ggml_threadpool_pause(pool);
        ggml_threadpool_pause(pool);
        if (i == 1) ggml_threadpool_resume(pool);
    }
    plan.n_threads = 64;
    CHECK(ggml_graph_compute(net.graph, &plan) == GGML_STATUS_SUCCESS, "more threads than the pool has");
    plan.n_threads = 3;
    plan.work_size = 1;
    CHECK(ggml_graph_compute(net.graph, &plan) == GGML_STATUS_ALLOC_FAILED, "too little work memory");
    free(plan.work_data);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(cpu, pool);
    CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_SUCCESS, "a backend on this pool");
    ggml_backend_cpu_set_threadpool(cpu, NULL);
    CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_SUCCESS, "and on its own again");
    ggml_backend_free(cpu);
    ggml_threadpool_free(pool);
    ggml_threadpool_free(NULL);
    ggml_free(net.ctx);
}

static void failing(void) {
    struct net net = net_new(1);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    void *data = net.out->data;
    net.out->data = NULL;
    CHECK(ggml_backend_graph_compute(cpu, net.graph) == GGML_STATUS_ALLOC_FAILED, "a node without memory");
    net.out->data = data;
    struct ggml_tensor *table = ggml_new_tensor_2d(net.ctx, GGML_TYPE_F32, 4, 3);
    struct ggml_tensor *ids   = ggml_new_tensor_1d(net.ctx, GGML_TYPE_I32, 2);
    struct ggml_tensor *rows  = ggml_get_rows(net.ctx, table, ids), *after = ggml_mul_mat(net.ctx, table, rows);
    struct ggml_cgraph *graph = ggml_new_graph(net.ctx);
    ggml_build_forward_expand(graph, after);
    ggml_set_f32(table, 1.0f);
    ggml_set_f32(after, 0.0f);
    for (int threads = 1; threads <= 4; threads++) {
        ggml_backend_cpu_set_n_threads(cpu, threads);
        ggml_set_i32(ids, 3);
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_FAILED, "a row that is not there, %d threads", threads);
        CHECK(threads > 1 || ggml_get_f32_1d(after, 0) == 0.0f, "nothing is computed after the failure");
        ggml_set_i32(ids, 2);
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "the next run is not touched by it");
        CHECK(ggml_get_f32_1d(after, 0) == 4.0f, "%f", (double) ggml_get_f32_1d(after, 0));
    }
    CHECK(ggml_backend_graph_compute(cpu, NULL) == GGML_STATUS_ALLOC_FAILED, "no graph");
    ggml_backend_free(cpu);
    ggml_free(net.ctx);
}

static void idle(void) {
    struct net net = net_new(1);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 4);
    ggml_backend_graph_compute(cpu, net.graph);
    const double before = cpu_time();
    nanosleep(&(struct timespec) { .tv_nsec = 300000000 }, NULL);
    CHECK(cpu_time() - before < 0.01, "%f s of CPU time in 0.3 s of idleness", cpu_time() - before);
    ggml_backend_free(cpu);
    ggml_free(net.ctx);
}

static void nothing_taken(void) {
#if INTERPOSED
    struct net small = net_new(1), large = net_new(LAYERS);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, 4);
    ggml_backend_graph_compute(cpu, large.graph);
    const long taken_before = taken, started_before = started;
    for (int i = 0; i < 20; i++) {
        ggml_backend_cpu_set_n_threads(cpu, i % 4 + 1);
        ggml_backend_graph_compute(cpu, i % 3 ? small.graph : large.graph);
    }
    CHECK(taken == taken_before, "%ld calls to the allocator", taken - taken_before);
    CHECK(started == started_before, "%ld threads started", started - started_before);
    CHECK(taken_before > 0 && started_before > 0, "the counters count");
    ggml_backend_free(cpu);
    ggml_free(small.ctx);
    ggml_free(large.ctx);
#endif
}

static void quiet(enum ggml_log_level level, const char *text, void *data) { (void) level, (void) text, (void) data; }

int main(int argc, char **argv) {
    const int calls = argc > 1 ? atoi(argv[1]) : 20000;
    ggml_log_set(quiet, NULL);
    CHECK(arn_cpu_default_threads() >= 1 && pool_threads(1) == 1 && pool_threads(1000) == arn_cpu_default_threads(),
          "no more threads than cores");
    nothing_taken();
    pool_limit(GGML_MAX_N_THREADS);                     /* from here on as many threads as asked for */
    same_bytes();
    abort_anywhere();
    latecomers();
    custom_by_all();
    pools();
    failing();
    idle();
    short_lives(50);
    const double start = now();
    alternate(calls);
    fprintf(stderr, "%d alternations in %.2f s\n", calls, now() - start);
    return DONE();
}
