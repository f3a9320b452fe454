/* compare PLUGIN exact|near: ops on the host's CPU device and on a plugin's device, from the same data.
 *
 * The host is whichever tensor library the loader finds: this program knows the interface only. PLUGIN is a path for
 * ggml_backend_load, or a device's name after ggml_backend_load_all (so GGML_BACKEND_PATH is used). exact: every result must
 * have the same bytes; near: the squared error must be within the case's bound of the square of the result. */

#include "cases.h"
#include "ggml-alloc.h"

static const struct op_case *now;
static int compared;

static bool compare(int index, struct ggml_tensor *a, struct ggml_tensor *b, void *exact) {
    float *x = numbers(a), *y = numbers(b);
    double error = 0, square = 0;
    const int64_t n = ggml_nelements(a);
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == y[i] && isinf(x[i])) continue;
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
