/* Workers on the cores of memory nodes: what each strategy asks for, on this machine and on one with a node for each core, as the
 * system would describe it; the memory of a buffer is not touched before a graph writes to it. */

#define _GNU_SOURCE

#include "check.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "system.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_COLUMNS = 64, N_ROWS = 4096, N_THREADS = 2, PAGE = 4096 };

static void test_lists(void) {
    static const struct { const char *text; const char *cores; } rows[] = {     /* cores: one character for each, 0 when it is no list */
        { "0", "1" }, { "0-1", "11" }, { "0-2,5", "111001" }, { "1,3-4", "01011" }, { "0-3,8,10-11", "111100001011" },
        { "", 0 }, { "0-", 0 }, { "3-1", 0 }, { "0,", 0 }, { "x", 0 }, { "0;1", 0 },
    };
    for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) {
        bool cores[GGML_MAX_N_THREADS];
        const bool ok = system_core_list(rows[i].text, cores);
        CHECK(ok == (rows[i].cores != NULL), "'%s'", rows[i].text);
        for (size_t k = 0; ok && k < GGML_MAX_N_THREADS; k++) {
            CHECK(cores[k] == (k < strlen(rows[i].cores) && rows[i].cores[k] == '1'), "'%s': core %zu", rows[i].text, k);
        }
    }
    bool cores[GGML_MAX_N_THREADS];
    CHECK(system_core_list("0-18446744073709551615", cores) && cores[GGML_MAX_N_THREADS - 1], "more cores than there is room for");
    CHECK(!system_node_cores(1 << 20, cores), "a node that is not there");
}

static cpu_set_t seen[N_THREADS];                           /* where each worker may run */

static void square(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth, void *user) {
    (void) user, (void) nth;
    const float *x = a->data;
    float *y = dst->data;
    sched_getaffinity(0, sizeof seen[ith], &seen[ith]);
    for (int64_t i = ith; i < N_ROWS; i += nth) for (int k = 0; k < N_COLUMNS; k++) y[i*N_COLUMNS + k] = x[i*N_COLUMNS + k]*x[i*N_COLUMNS + k];
}

/* Pages of the buffer that hold anything. */
static size_t resident(ggml_backend_buffer_t buffer) {
    static unsigned char pages[2*N_ROWS*N_COLUMNS*4/PAGE + 64];
    const uintptr_t base = (uintptr_t) ggml_backend_buffer_get_base(buffer)/PAGE*PAGE;
    const size_t n = ggml_backend_buffer_get_size(buffer)/PAGE;
    size_t held = 0;
    if (n > sizeof pages || mincore((void *) base, n*PAGE, pages)) return SIZE_MAX;
    for (size_t i = 0; i < n; i++) held += pages[i] & 1;
    return held;
}

static int run(enum ggml_numa_strategy strategy) {
    const int home = system_numa_node();
    ggml_numa_init(strategy);
    CHECK(!ggml_is_numa() || system_numa_nodes() > 1, "one node is no NUMA machine");
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(cpu, N_THREADS);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 20, .no_alloc = true });
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N_COLUMNS, N_ROWS);
    struct ggml_tensor *y = ggml_map_custom1(ctx, x, square, N_THREADS, NULL);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    CHECK(buffer && resident(buffer) <= 2, "%zu pages are touched before anything is written", resident(buffer));
    float *values = x->data;
    for (int i = 0; i < N_ROWS*N_COLUMNS; i++) values[i] = (float) (i % 1000);
    CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "computed");
    for (int i = 0; i < N_ROWS*N_COLUMNS; i++) if (((float *) y->data)[i] != values[i]*values[i]) { CHECK(false, "element %d", i); break; }

    cpu_set_t ours;
    bool node[GGML_MAX_N_THREADS];
    sched_getaffinity(0, sizeof ours, &ours);
    CHECK(CPU_EQUAL(&ours, &seen[0]), "the calling thread is not moved");
    const bool placed = strategy == GGML_NUMA_STRATEGY_DISTRIBUTE || strategy == GGML_NUMA_STRATEGY_ISOLATE;
    const bool known  = placed && system_node_cores(strategy == GGML_NUMA_STRATEGY_ISOLATE ? home : 1 % system_numa_nodes(), node);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&seen[1]); i++) {
        const bool want = known && i < GGML_MAX_N_THREADS ? node[i] : CPU_ISSET(i, &ours) != 0;
        CHECK((CPU_ISSET(i, &seen[1]) != 0) == want, "strategy %d: core %d", (int) strategy, i);
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_backend_free(cpu);
    return DONE();
}

/* Two nodes of one core each. */
static bool two_nodes(char *folder) {
    bool ok = mkdtemp(folder) != NULL;
    for (int i = 0; ok && i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/node%d", folder, i);
        ok = !mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/node%d/cpulist", folder, i);
        FILE *f = ok ? fopen(path, "w") : NULL;
        ok = f && fprintf(f, "%d\n", i) > 0 && !fclose(f);
    }
    return ok;
}

static void remove_nodes(const char *folder) {
    static const char *const names[] = { "/node0/cpulist", "/node1/cpulist", "/node0", "/node1", "" };
    for (size_t i = 0; i < sizeof names/sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        CHECK(!remove(path), "%s", path);
    }
}

static void test_strategy(enum ggml_numa_strategy strategy, bool one_core, const char *nodes) {
    const pid_t child = fork();                             /* a process chooses once */
    if (child == 0) {
        if (nodes) system_nodes_in(nodes);
        if (nodes) CHECK(system_numa_nodes() == 2, "%d nodes", system_numa_nodes());
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        if (one_core) sched_setaffinity(0, sizeof one, &one);
        _exit(run(strategy));
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "strategy %d%s", (int) strategy, one_core ? " on one core" : "");
}

int main(void) {
    test_lists();
    char nodes[] = "/tmp/arenite_nodes_XXXXXX";
    CHECK(two_nodes(nodes), "%s", nodes);
    for (int i = 0; i < GGML_NUMA_STRATEGY_COUNT; i++) {
        const enum ggml_numa_strategy strategy = (enum ggml_numa_strategy) i;
        test_strategy(strategy, false, NULL);
        test_strategy(strategy, true, NULL);
        test_strategy(strategy, false, nodes);
    }
    remove_nodes(nodes);
    return DONE();
}
