/* The scheduler, with the CPU alone and with a limited device beside it. */

#include "check.h"
#include "interpose.h"
#include "arenite.h"
#include "ggml-cpu.h"
#include "limited.h"

#include <sys/wait.h>
#include <unistd.h>

enum { N = 8, M = 5 };

static ggml_backend_t cpu, ltd;

static void quiet(enum ggml_log_level level, const char *text, void *data) { (void) level, (void) text, (void) data; }

static struct ggml_context *context(void) {
    return ggml_init((struct ggml_init_params) { .mem_size = 1 << 20, .no_alloc = true });
}

static ggml_backend_sched_t both(bool parallel, bool offload) {
    ggml_backend_t backends[] = { ltd, cpu };
    return ggml_backend_sched_new(backends, NULL, 2, 256, parallel, offload);
}

/* ---- one backend ----------------------------------------------------------------------------------------------------- */

static struct { char text[256]; } seen;
static const char *stop_at;
static const char *wanted;                  /* names of one letter */
static bool watch(struct ggml_tensor *t, bool ask, void *data) {
    char step[8];
    (void) data;
    snprintf(step, sizeof step, "%c%c ", t->name[0], ask ? '?' : '!');
    strcat(seen.text, step);
    return ask ? strchr(wanted, t->name[0]) != NULL : !(stop_at && strchr(stop_at, t->name[0]));
}

/* b = sqr(a), c = sqrt(b), e = c + b */
struct abc {
    struct ggml_context *ctx;
    struct ggml_cgraph  *graph;
    struct ggml_tensor  *a, *b, *c, *e;
};
static struct abc abc_new(void) {
    struct abc x = { .ctx = context() };
    ggml_set_input(ggml_set_name(x.a = ggml_new_tensor_1d(x.ctx, GGML_TYPE_F32, N), "a"));
    ggml_set_name(x.b = ggml_sqr(x.ctx, x.a), "b");
    ggml_set_name(x.c = ggml_sqrt(x.ctx, x.b), "c");
    ggml_set_name(x.e = ggml_add(x.ctx, x.c, x.b), "e");
    ggml_set_output(x.e);
    x.graph = ggml_new_graph(x.ctx);
    ggml_build_forward_expand(x.graph, x.e);
    return x;
}

static void cpu_alone(void) {
    ggml_backend_sched_t s = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    struct abc x = abc_new();
    const float in[N] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    float got[N];
    CHECK(ggml_backend_sched_reserve(s, x.graph), "reserve");
    CHECK(!x.e->data && !x.a->data && !ggml_backend_sched_get_tensor_backend(s, x.e), "after reserve nothing is placed");
    CHECK(ggml_backend_sched_alloc_graph(s, x.graph), "alloc");
    CHECK(ggml_backend_sched_get_tensor_backend(s, x.b) == cpu && ggml_backend_sched_get_tensor_backend(s, x.e) == cpu,
          "every node has a backend");
    CHECK(x.b->src[0] == x.a && x.e->src[0] == x.c && x.e->src[1] == x.b, "no source is rewritten");
    CHECK(ggml_backend_sched_get_n_splits(s) == 1 && ggml_backend_sched_get_n_copies(s) == 1 &&
          ggml_backend_sched_get_n_backends(s) == 1 && ggml_backend_sched_get_backend(s, 0) == cpu, "one of each");
    CHECK(ggml_backend_sched_get_buffer_type(s, cpu) == ggml_backend_cpu_buffer_type(), "default buffer type");
    CHECK(ggml_backend_sched_get_buffer_size(s, cpu) > 0 && arn_sched_gallocr(s), "a buffer");
    wanted = "c";
    ggml_backend_sched_set_eval_callback(s, watch, NULL);
    for (int run = 0; run < 2; run++) {
        seen.text[0] = 0;
        ggml_backend_tensor_set(x.a, in, 0, sizeof in);
        CHECK(ggml_backend_sched_graph_compute(s, x.graph) == GGML_STATUS_SUCCESS, "run %d", run);
        ggml_backend_tensor_get(x.e, got, 0, sizeof got);
        for (int i = 0; i < N; i++) CHECK(got[i] == in[i] + in[i]*in[i], "%d: %f", i, (double) got[i]);
        CHECK(!strcmp(seen.text, "b? c? c! e? "), "%s", seen.text);
    }
    ggml_backend_tensor_get(x.a, got, 0, sizeof got);
    for (int i = 0; i < N; i++) CHECK(got[i] == in[i]*in[i], "the square takes the input's place: %f", (double) got[i]);
    stop_at = "b", wanted = "b";
    seen.text[0] = 0;
    ggml_backend_tensor_set(x.a, in, 0, sizeof in);
    ggml_backend_sched_graph_compute(s, x.graph);
    CHECK(!strcmp(seen.text, "b? b! "), "false skips the rest: %s", seen.text);
    stop_at = NULL;
    ggml_backend_sched_free(s);
    ggml_backend_sched_free(NULL);
    ggml_free(x.ctx);
}

/* ---- two backends ----------------------------------------------------------------------------------------------------- */

/* h = W x (device), s = sqr(h) (CPU), y = h + s (device), z = W y (device), out = scale(z) (CPU), with W on the device */
struct mix {
    struct ggml_context  *weights, *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_cgraph   *graph;
    struct ggml_tensor   *w, *x, *h, *s, *y, *z, *out;
    float                 W[N*N], X[N*M], want[N*M];
};

static void multiply(const float *w, const float *x, float *y, int columns) {
    for (int j = 0; j < columns; j++) {
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += (double) w[i*N + k]*(double) x[j*N + k];
            y[j*N + i] = (float) sum;
        }
    }
}

static void mix_build(struct mix *m, int columns) {
    m->ctx = context();
    ggml_set_input(ggml_set_name(m->x = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, N, columns), "x"));
    ggml_set_name(m->h = ggml_mul_mat(m->ctx, m->w, m->x), "h");
    ggml_set_name(m->s = ggml_sqr(m->ctx, m->h), "s");
    ggml_set_name(m->y = ggml_add(m->ctx, m->h, m->s), "y");
    ggml_set_name(m->z = ggml_mul_mat(m->ctx, m->w, m->y), "z");
    ggml_set_name(m->out = ggml_scale(m->ctx, m->z, 0.5f), "o");
    ggml_set_output(m->out);
    m->graph = ggml_new_graph_custom(m->ctx, 64, false);
    ggml_build_forward_expand(m->graph, m->out);
}

static bool mix_init(struct mix *m, ggml_backend_buffer_type_t where) {
    float h[N*M], y[N*M];
    uint64_t seed = 3;
    for (int i = 0; i < N*N; i++) m->W[i] = rnd_f32(&seed);
    for (int i = 0; i < N*M; i++) m->X[i] = rnd_f32(&seed);
    multiply(m->W, m->X, h, M);
    for (int i = 0; i < N*M; i++) y[i] = h[i] + h[i]*h[i];
    multiply(m->W, y, m->want, M);
    for (int i = 0; i < N*M; i++) m->want[i] *= 0.5f;
    m->weights = context();
    ggml_set_name(m->w = ggml_new_tensor_2d(m->weights, GGML_TYPE_F32, N, N), "w");
    m->buffer = ggml_backend_alloc_ctx_tensors_from_buft(m->weights, where);
    if (m->buffer) {
        ggml_backend_buffer_set_usage(m->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_backend_tensor_set(m->w, m->W, 0, sizeof m->W);
    }
    mix_build(m, M);
    return m->buffer;
}

static void mix_free(struct mix *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->ctx);
    ggml_free(m->weights);
}

static double mix_error(const struct mix *m) {
    float got[N*M];
    double worst = 0;
    ggml_backend_tensor_get(m->out, got, 0, sizeof got);
    for (int i = 0; i < N*M; i++) worst = fmax(worst, fabs((double) got[i] - (double) m->want[i]));
    return worst;
}

static double mix_run(ggml_backend_sched_t s, struct mix *m) {
    ggml_backend_tensor_set(m->x, m->X, 0, sizeof m->X);
    const enum ggml_status status = ggml_backend_sched_graph_compute(s, m->graph);
    CHECK(status == GGML_STATUS_SUCCESS, "status %d", status);
    return mix_error(m);
}

static void splits_and_copies(void) {
    limited_reset();
    ggml_backend_sched_t s = both(false, false);
    struct mix m;
    mix_init(&m, &limited_buft);
    CHECK(ggml_backend_sched_reserve(s, m.graph), "reserve");
    CHECK(m.h->src[1] == m.x && m.s->src[0] == m.h, "reserving leaves the graph as it was");
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph), "alloc");
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.x) == cpu, "an input is the CPU's");
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.h) == ltd && ggml_backend_sched_get_tensor_backend(s, m.z) == ltd,
          "products are where their weights are");
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.s) == cpu, "what the device cannot do falls back to the CPU");
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.y) == ltd, "what it can do between its nodes is its own");
    CHECK(ggml_backend_sched_get_n_splits(s) == 4, "%d splits", ggml_backend_sched_get_n_splits(s));
    CHECK(m.h->src[0] == m.w && m.h->src[1] != m.x, "the source that cannot be read is rewritten, the other not");
    CHECK(!strcmp(m.h->src[1]->name, "LTD#x#0"), "%s", m.h->src[1]->name);
    CHECK(!strcmp(m.s->src[0]->name, "CPU#h#0"), "%s", m.s->src[0]->name);
    for (int run = 0; run < 3; run++) CHECK(mix_run(s, &m) < 1e-5, "run %d: error %g", run, mix_error(&m));
    ggml_backend_sched_reset(s);
    CHECK(!ggml_backend_sched_get_tensor_backend(s, m.h), "forgotten");
    ggml_free(m.ctx);
    mix_build(&m, M);
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph) && mix_run(s, &m) < 1e-5, "a fresh graph after a reset");
    ggml_backend_sched_reset(s);
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph) && mix_run(s, &m) < 1e-5, "the same graph once more");
    ggml_backend_sched_free(s);
    mix_free(&m);
    CHECK(limited.n_buffers == 0, "%d buffers held", limited.n_buffers);
}

static void user_control(void) {
    limited_reset();
    ggml_backend_sched_t s = both(false, false);
    struct mix m;
    mix_init(&m, &limited_buft);
    ggml_backend_sched_set_tensor_backend(s, m.y, cpu);
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.y) == cpu, "set");
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph), "alloc");
    CHECK(ggml_backend_sched_get_tensor_backend(s, m.y) == cpu, "the caller's choice stays");
    CHECK(mix_run(s, &m) < 1e-5, "error %g", mix_error(&m));
    wanted = "hy", seen.text[0] = 0;
    ggml_backend_sched_set_eval_callback(s, watch, NULL);
    CHECK(mix_run(s, &m) < 1e-5, "error %g", mix_error(&m));
    CHECK(!strcmp(seen.text, "h? h! s? y? y! z? o? "), "%s", seen.text);
    ggml_backend_sched_free(s);
    mix_free(&m);
}

static void weights_on_the_host(void) {
    limited_reset();
    struct mix m;
    mix_init(&m, ggml_backend_cpu_buffer_type());
    ggml_backend_sched_t s = both(false, true);
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph) && ggml_backend_sched_get_tensor_backend(s, m.h) == cpu,
          "a device that does not want it leaves the product to the CPU");
    CHECK(mix_run(s, &m) < 1e-5 && limited.n_nodes == 0, "error %g, %d nodes on the device", mix_error(&m), limited.n_nodes);
    ggml_backend_sched_reset(s);
    ggml_free(m.ctx);
    mix_build(&m, M);
    limited.offload = true;
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph) && ggml_backend_sched_get_tensor_backend(s, m.h) == ltd,
          "one that wants it gets it");
    CHECK(mix_run(s, &m) < 1e-5 && limited.n_nodes == 3, "error %g, %d nodes on the device", mix_error(&m), limited.n_nodes);
    ggml_backend_sched_free(s);
    s = both(false, false);
    ggml_free(m.ctx);
    mix_build(&m, M);
    CHECK(ggml_backend_sched_alloc_graph(s, m.graph) && ggml_backend_sched_get_tensor_backend(s, m.h) == cpu,
          "nothing is offloaded without op_offload");
    ggml_backend_sched_free(s);
    mix_free(&m);
}

/* Of the weights of many experts only the chosen ones travel. */
static void chosen_experts(void) {
    enum { EXPERTS = 16, USED = 2 };
    limited_reset();
    limited.ops[GGML_OP_MUL_MAT_ID] = limited.offload = true;
    struct ggml_context *weights = context(), *ctx = context();
    struct ggml_tensor *w = ggml_new_tensor_3d(weights, GGML_TYPE_F32, N, N, EXPERTS);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(weights, ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    uint64_t seed = 5;
    float x[N*USED], want[N*USED], got[N*USED];
    const int32_t ids[USED] = { 11, 3 };
    for (int64_t i = 0; i < ggml_nelements(w); i++) ((float *) w->data)[i] = rnd_f32(&seed);
    for (int i = 0; i < N*USED; i++) x[i] = rnd_f32(&seed);
    for (int i = 0; i < USED; i++) multiply((float *) w->data + ids[i]*N*N, x + i*N, want + i*N, 1);
    struct ggml_tensor *in = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, N, USED, 1);
    struct ggml_tensor *id = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, USED, 1);
    ggml_set_input(in);
    ggml_set_input(id);
    struct ggml_tensor *out = ggml_mul_mat_id(ctx, w, in, id);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, false);
    ggml_set_output(out);
    ggml_build_forward_expand(graph, out);
    ggml_backend_sched_t s = both(false, true);
    CHECK(ggml_backend_sched_alloc_graph(s, graph) && ggml_backend_sched_get_tensor_backend(s, out) == ltd, "offloaded");
    ggml_backend_tensor_set(in, x, 0, sizeof x);
    ggml_backend_tensor_set(id, ids, 0, sizeof ids);
    limited.bytes_in = 0;
    CHECK(ggml_backend_sched_graph_compute(s, graph) == GGML_STATUS_SUCCESS, "run");
    ggml_backend_tensor_get(out, got, 0, sizeof got);
    for (int i = 0; i < N*USED; i++) CHECK(fabsf(got[i] - want[i]) < 1e-5f, "%d: %f %f", i, (double) got[i], (double) want[i]);
    CHECK(limited.bytes_in == USED*N*N*sizeof(float) + sizeof x + sizeof ids, "%zu bytes written", limited.bytes_in);
    ggml_backend_sched_free(s);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_free(weights);
}

/* ---- several graphs in flight ------------------------------------------------------------------------------------------ */

/* state += W x, on a device that does nothing before somebody waits: each graph's input must still be there then. */
static void in_flight(void) {
    enum { GRAPHS = 7 };
    limited_reset();
    limited.ops[GGML_OP_CPY] = true;
    struct ggml_context *fixed = context(), *ctx[GRAPHS];
    struct ggml_tensor *w = ggml_new_tensor_2d(fixed, GGML_TYPE_F32, N, N), *state = ggml_new_tensor_1d(fixed, GGML_TYPE_F32, N);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(fixed, &limited_buft);
    ggml_backend_buffer_clear(buffer, 0);
    float W[N*N], x[N], y[N], want[N] = {0}, got[N];
    uint64_t seed = 9;
    for (int i = 0; i < N*N; i++) W[i] = rnd_f32(&seed);
    ggml_backend_tensor_set(w, W, 0, sizeof W);
    ggml_backend_sched_t s = both(true, false);
    CHECK(ggml_backend_sched_get_n_copies(s) == 4, "%d copies", ggml_backend_sched_get_n_copies(s));
    limited.deferred = true;
    int done_early = 0;
    for (int g = 0; g < GRAPHS; g++) {
        ctx[g] = context();
        struct ggml_tensor *in = ggml_new_tensor_1d(ctx[g], GGML_TYPE_F32, N);
        ggml_set_input(in);
        struct ggml_tensor *out = ggml_cpy(ctx[g], ggml_add(ctx[g], ggml_mul_mat(ctx[g], w, in), state), state);
        struct ggml_cgraph *graph = ggml_new_graph_custom(ctx[g], 64, false);
        ggml_build_forward_expand(graph, out);
        if (g == 0) {
            CHECK(ggml_backend_sched_reserve(s, graph), "reserve");
        }
        ggml_backend_sched_reset(s);
        CHECK(ggml_backend_sched_alloc_graph(s, graph), "alloc %d", g);
        for (int i = 0; i < N; i++) x[i] = rnd_f32(&seed);
        multiply(W, x, y, 1);
        for (int i = 0; i < N; i++) want[i] += y[i];
        ggml_backend_tensor_set(in, x, 0, sizeof x);
        CHECK(ggml_backend_sched_graph_compute_async(s, graph) == GGML_STATUS_SUCCESS, "graph %d", g);
        done_early += g == 3 && limited.n_done > 0;
    }
    CHECK(!done_early, "four graphs are under way before the first one is waited for");
    CHECK(limited.n_done < limited.n_queued && limited.n_recorded == GRAPHS, "%d of %d done, %d events", limited.n_done,
          limited.n_queued, limited.n_recorded);
    ggml_backend_sched_synchronize(s);
    ggml_backend_tensor_get(state, got, 0, sizeof got);
    for (int i = 0; i < N; i++) CHECK(fabsf(got[i] - want[i]) < 1e-5f, "%d: %f %f", i, (double) got[i], (double) want[i]);
    ggml_backend_sched_free(s);
    for (int g = 0; g < GRAPHS; g++) ggml_free(ctx[g]);
    ggml_backend_buffer_free(buffer);
    ggml_free(fixed);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static void sizes_before(void) {
    limited_reset();
    ggml_backend_sched_t s = both(false, false);
    struct mix m;
    size_t sizes[2] = { 1, 1 };
    mix_init(&m, &limited_buft);
    const int buffers = limited.n_buffers;
    ggml_backend_sched_reserve_size(s, m.graph, sizes);
    CHECK(limited.n_buffers == buffers && m.h->src[1] == m.x, "nothing allocated, nothing rewritten");
    CHECK(ggml_backend_sched_reserve(s, m.graph), "reserve");
    CHECK(sizes[0] == ggml_backend_sched_get_buffer_size(s, ltd) && sizes[0] > 0, "device: %zu", sizes[0]);
    CHECK(sizes[1] == ggml_backend_sched_get_buffer_size(s, cpu) && sizes[1] > 0, "CPU: %zu", sizes[1]);
    ggml_backend_sched_free(s);
    mix_free(&m);
}

static void nothing_taken(void) {
    limited_reset();
    ggml_backend_sched_t s = both(false, false);
    struct mix m;
    mix_init(&m, &limited_buft);
    CHECK(ggml_backend_sched_reserve(s, m.graph), "reserve");
    ggml_backend_sched_alloc_graph(s, m.graph);
    mix_run(s, &m);
    for (int columns = M; columns > 0; columns--) {
        ggml_free(m.ctx);
        mix_build(&m, columns);
        const long before = taken, threads = started;
        ggml_backend_sched_reset(s);
        const bool ok = ggml_backend_sched_alloc_graph(s, m.graph) &&
                        ggml_backend_sched_graph_compute(s, m.graph) == GGML_STATUS_SUCCESS;
        CHECK(taken == before && started == threads, "%d columns: %ld calls to the allocator", columns, taken - before);
        CHECK(ok, "%d columns", columns);
    }
    ggml_backend_sched_free(s);
    mix_free(&m);
}

/* One life of a scheduler in which allocation n fails; true when none was left to fail. */
static bool life_without(long n) {
    limited_reset();
    struct mix m;
    mix_init(&m, &limited_buft);
    ggml_backend_t own = ggml_backend_cpu_init();
    ggml_backend_t backends[] = { ltd, own };
    fail_at = n;
    ggml_backend_sched_t s = ggml_backend_sched_new(backends, NULL, 2, 256, true, false);
    bool ok = s && ggml_backend_sched_reserve(s, m.graph);
    const bool reserved = ok;
    ok = ok && ggml_backend_sched_alloc_graph(s, m.graph);
    if (ok) {
        ggml_backend_tensor_set(m.x, m.X, 0, sizeof m.X);
        const enum ggml_status status = ggml_backend_sched_graph_compute(s, m.graph);
        CHECK(status == GGML_STATUS_SUCCESS || status == GGML_STATUS_ALLOC_FAILED, "allocation %ld: status %d", n, status);
        ok = status == GGML_STATUS_SUCCESS;
    } else {
        CHECK(m.h->src[1] == m.x, "allocation %ld: the graph is as it was", n);
    }
    const bool none_left = fail_at > 0;
    fail_at = 0;
    CHECK(ok || !none_left, "allocation %ld", n);
    if (s && !reserved) CHECK(ggml_backend_sched_reserve(s, m.graph), "allocation %ld: the same again", n);
    if (s && !ok) {
        ggml_backend_sched_reset(s);
        ggml_free(m.ctx);
        mix_build(&m, M);
        CHECK(ggml_backend_sched_alloc_graph(s, m.graph), "allocation %ld: once there is memory again", n);
        CHECK(mix_run(s, &m) < 1e-5, "allocation %ld: error %g", n, mix_error(&m));
    }
    ggml_backend_sched_free(s);
    ggml_backend_free(own);
    mix_free(&m);
    CHECK(limited.n_buffers == 0, "allocation %ld: %d buffers held", n, limited.n_buffers);
    return none_left;
}

static void any_allocation_may_fail(void) {
    if (!INTERPOSED) return;
    life_without(1000000);                              /* what is made once a process is made now */
    long n = 1;
    for (bool last = false; !last && n < 1000; n++) {
        const long before = held;
        last = life_without(n);
        CHECK(held == before, "allocation %ld: %ld blocks leaked", n, held - before);
    }
    CHECK(n > 10 && n < 1000, "%ld allocations", n);
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------------- */

static void aborts(const char *what, void (*call)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        call();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status), "%s", what);
}

static void too_large(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 200, false);
    for (int i = 0; i < 150; i++) ggml_build_forward_expand(graph, t = ggml_sqr(ctx, t));
    ggml_backend_sched_alloc_graph(ggml_backend_sched_new(&cpu, NULL, 1, 4, false, false), graph);
}
static void device_last(void) {
    ggml_backend_t backends[] = { cpu, ltd };
    ggml_backend_sched_new(backends, NULL, 2, 64, false, false);
}
static void twice(void) {
    ggml_backend_sched_t s = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    struct abc x = abc_new();
    ggml_backend_sched_alloc_graph(s, x.graph);
    ggml_backend_sched_alloc_graph(s, x.graph);
}
static void nobody_can(void) {
    ggml_backend_sched_t s = both(false, false);
    struct mix m;
    mix_init(&m, &limited_buft);
    limited.ops[GGML_OP_MUL_MAT] = false;
    m.h->op = GGML_OP_FLASH_ATTN_BACK;                  /* nobody runs it */
    ggml_backend_sched_alloc_graph(s, m.graph);
}

static void unusable_graph(void) {
    ggml_backend_sched_t s = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    struct ggml_context *ctx = context();
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 16, false);
    ggml_build_forward_expand(graph, NULL);
    CHECK(!ggml_backend_sched_reserve(s, graph) && !ggml_backend_sched_alloc_graph(s, graph), "a NULL in the graph");
    CHECK(ggml_backend_sched_graph_compute(s, graph) == GGML_STATUS_ALLOC_FAILED, "its status");
    ggml_backend_sched_free(s);
    ggml_free(ctx);
}

int main(void) {
    ggml_log_set(quiet, NULL);
    cpu = ggml_backend_cpu_init();
    ltd = ggml_backend_dev_init(&limited_device, NULL);
    limited_reset();
    cpu_alone();
    splits_and_copies();
    user_control();
    weights_on_the_host();
    chosen_experts();
    in_flight();
    sizes_before();
    nothing_taken();
    any_allocation_may_fail();
    unusable_graph();
    limited_reset();
    aborts("a graph larger than the scheduler's", too_large);
    aborts("a last backend that is no CPU", device_last);
    aborts("two allocations without a reset", twice);
    aborts("an op that no backend runs", nobody_can);
    ggml_backend_free(ltd);
    ggml_backend_free(cpu);
    return DONE();
}
