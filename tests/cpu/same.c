/* The same bytes come out of every op of the list of cases: in a second run, with any number of threads, and in a child process
 * that has inherited a backend whose threads it has not. */

#include "dropin/cases.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "pool.h"

#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

/* The bytes of a case's result, the inputs made anew from the same seed; -1: it could not be computed. */
static long result(const struct op_case *c, ggml_backend_t backend, char bytes[ROOM]) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 20, .no_alloc = true });
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, false);
    struct ggml_tensor *out = c->make(ctx);
    ggml_build_forward_expand(graph, out);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    seed = 7;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (t->op == GGML_OP_NONE) fill(t);
    const bool ok = ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS && ggml_nbytes(out) <= ROOM;
    const long size = ok ? (long) ggml_nbytes(out) : -1;
    if (ok) ggml_backend_tensor_get(out, bytes, 0, (size_t) size);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return size;
}

static char want[sizeof cases/sizeof cases[0]][ROOM], got[ROOM];
static long sizes[sizeof cases/sizeof cases[0]];

static void again(ggml_backend_t backend, const char *how) {
    for (size_t i = 0; i < sizeof cases/sizeof cases[0]; i++) {
        const long size = result(&cases[i], backend, got);
        CHECK(size == sizes[i] && !memcmp(got, want[i], (size_t) sizes[i]), "%s, %s", cases[i].name, how);
    }
}

/* A child that hangs is ended by its own alarm. */
static void in_child(ggml_backend_t backend) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        check_failed = 0;
        again(backend, "in a child");
        ggml_backend_free(backend);
        _exit(check_failed != 0);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

int main(void) {
    static const int threads[] = { 1, 2, 3, 8 };
    ggml_backend_t backend = ggml_backend_cpu_init();
    pool_limit(8);
    for (size_t i = 0; i < sizeof cases/sizeof cases[0]; i++) {
        ggml_backend_cpu_set_n_threads(backend, 1);
        sizes[i] = result(&cases[i], backend, want[i]);
        CHECK(sizes[i] > 0, "%s", cases[i].name);
    }
    for (size_t n = 0; n < sizeof threads/sizeof threads[0]; n++) {
        char how[32];
        snprintf(how, sizeof how, "%d threads", threads[n]);
        ggml_backend_cpu_set_n_threads(backend, threads[n]);
        again(backend, how);
    }
    in_child(backend);
    again(backend, "after a child");
    ggml_backend_free(backend);
    return DONE();
}
