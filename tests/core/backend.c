/* The registry, buffers, moving data in and out of tensors, and copies of graphs; facts of the CPU as a backend. */

#include "check.h"
#include "interpose.h"
#include "arenite.h"
#include "ggml-cpu.h"
#include "limited.h"

#include <sys/wait.h>
#include <unistd.h>

static int  lines;
static char last_line[512];
static void listen(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    lines += level == GGML_LOG_LEVEL_ERROR;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static struct ggml_context *context(void) {
    return ggml_init((struct ggml_init_params) { .mem_size = 1 << 20, .no_alloc = true });
}

static void registry_facts(void) {
    static const char *const procs[] = {
        "ggml_backend_set_n_threads", "ggml_backend_dev_get_extra_bufts", "ggml_backend_get_features",
        "ggml_backend_set_abort_callback", "ggml_backend_cpu_numa_init", "ggml_backend_cpu_is_numa",
        "ggml_backend_cpu_set_use_ref", "ggml_threadpool_new", "ggml_threadpool_free", "ggml_backend_cpu_set_threadpool",
    };
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("cPu");
    ggml_backend_dev_t dev = ggml_backend_dev_by_name("cpu");
    CHECK(reg && reg == ggml_backend_cpu_reg() && !strcmp(ggml_backend_reg_name(reg), "CPU"), "found in any case");
    CHECK(ggml_backend_reg_count() >= 1 && ggml_backend_reg_get(ggml_backend_reg_count() - 1) == reg, "the CPU comes last");
    CHECK(ggml_backend_reg_dev_count(reg) == 1 && ggml_backend_reg_dev_get(reg, 0) == dev, "one device");
    CHECK(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == dev && ggml_backend_dev_backend_reg(dev) == reg, "by type");
    CHECK(!ggml_backend_reg_by_name("nobody") && !ggml_backend_dev_by_name("nobody") && !ggml_backend_reg_by_name(NULL) &&
          !ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_ACCEL) && !ggml_backend_init_by_name("nobody", NULL), "unknown");
    for (size_t i = 0; i < sizeof procs/sizeof procs[0]; i++) {
        CHECK(ggml_backend_reg_get_proc_address(reg, procs[i]), "%s", procs[i]);
    }
    CHECK(!ggml_backend_reg_get_proc_address(reg, "nothing"), "an unknown extension");

    struct ggml_backend_dev_props props;
    size_t available, total;
    ggml_backend_dev_get_props(dev, &props);
    ggml_backend_dev_memory(dev, &available, &total);
    CHECK(!strcmp(props.name, "CPU") && props.type == GGML_BACKEND_DEVICE_TYPE_CPU && props.description[0], "name, type");
    CHECK(props.memory_free == total && total == available && total > 0 && !props.device_id, "memory");
    CHECK(!props.caps.async && !props.caps.host_buffer && props.caps.buffer_from_host_ptr && !props.caps.events, "caps");
    CHECK(!ggml_backend_dev_host_buffer_type(dev) && !ggml_backend_event_new(dev), "no pinned memory, no events");
    CHECK(!ggml_backend_dev_offload_op(dev, NULL), "offload_op unset is false");

    ggml_backend_get_features_t features;
    void *p = ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
    memcpy(&features, &p, sizeof features);
    const struct ggml_backend_feature *f = features(reg);
    int n = 0;
    for (; f[n].name; n++) CHECK(!strcmp(f[n].value, "1"), "%s", f[n].name);
    CHECK(n > 0 || !ggml_cpu_has_sse3(), "%d features", n);
}

static void backend_facts(void) {
    static const uint8_t guid[16] = { 0xaa, 0x67, 0xc7, 0x43, 0x96, 0xe6, 0xa3, 0x8a, 0xe3, 0xaf, 0xea, 0x92, 0x36, 0xbc, 0xfc, 0x89 };
    ggml_backend_t all[] = {
        ggml_backend_cpu_init(), ggml_backend_init_best(), ggml_backend_init_by_name("CPU", NULL),
        ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL),
    };
    for (size_t i = 0; i < sizeof all/sizeof all[0]; i++) {
        CHECK(ggml_backend_is_cpu(all[i]) && !memcmp(ggml_backend_guid(all[i]), guid, 16), "way %zu", i);
        CHECK(!strcmp(ggml_backend_name(all[i]), "CPU") && ggml_backend_get_device(all[i]) == ggml_backend_dev_get(0), "way %zu", i);
        CHECK(ggml_backend_get_default_buffer_type(all[i]) == ggml_backend_cpu_buffer_type(), "way %zu", i);
        CHECK(ggml_backend_get_alignment(all[i]) == 32 && ggml_backend_get_max_size(all[i]) == SIZE_MAX, "way %zu", i);
        ggml_backend_free(all[i]);
    }
    ggml_backend_free(NULL);
    CHECK(!ggml_backend_is_cpu(NULL) && !ggml_backend_guid(NULL), "NULL is no CPU");
    ggml_backend_buffer_type_t buft = ggml_backend_cpu_buffer_type();
    CHECK(!strcmp(ggml_backend_buft_name(buft), "CPU") && ggml_backend_buft_is_host(buft) && !ggml_backend_buft_get_device(buft),
          "buffer type");
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const struct ggml_type_traits_cpu *t = ggml_get_type_traits_cpu((enum ggml_type) i);
        CHECK(t && (!t->vec_dot || t->nrows == 1), "type %d", i);
    }
}

/* x.y from the traits of a type against sums in double over what the types hold. */
static void dot_products(void) {
    enum { LENGTH = 512 };
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0,
                                            GGML_TYPE_Q4_K, GGML_TYPE_Q6_K };
    float x[LENGTH], y[LENGTH], u[LENGTH], v[LENGTH];
    char a[LENGTH*4], b[LENGTH*8];
    uint64_t seed = 1;
    for (int i = 0; i < LENGTH; i++) x[i] = rnd_f32(&seed), y[i] = rnd_f32(&seed);
    for (size_t i = 0; i < sizeof types/sizeof types[0]; i++) {
        const struct ggml_type_traits_cpu *t = ggml_get_type_traits_cpu(types[i]);
        const struct ggml_type_traits_cpu *other = ggml_get_type_traits_cpu(t->vec_dot_type);
        CHECK(t->from_float && t->vec_dot && other->from_float, "%s", ggml_type_name(types[i]));
        t->from_float(x, a, LENGTH);
        other->from_float(y, b, LENGTH);
        float got = 0;
        t->vec_dot(LENGTH, &got, 0, a, 0, b, 0, 1);
        const ggml_to_float_t back = ggml_get_type_traits(types[i])->to_float;
        if (back) back(a, u, LENGTH);
        else      memcpy(u, x, sizeof u);
        memcpy(v, y, sizeof v);                         /* the other side is finer; its own error is bounded below */
        double want = 0, size = 0;
        for (int k = 0; k < LENGTH; k++) want += (double) u[k]*(double) v[k], size += fabs((double) u[k]*(double) v[k]);
        CHECK(fabs((double) got - want) < 0.01*size, "%s: %f, %f", ggml_type_name(types[i]), (double) got, want);
        CHECK(types[i] != GGML_TYPE_F32 || fabs((double) got - want) < 1e-5*size, "F32: %f, %f", (double) got, want);
    }
}

static void buffers(void) {
    ggml_backend_buffer_t none = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 0);
    CHECK(none && !ggml_backend_buffer_get_base(none) && ggml_backend_buffer_get_size(none) == 0, "a buffer of no bytes");
    ggml_backend_buffer_clear(none, 1);
    ggml_backend_buffer_free(none);
    ggml_backend_buffer_free(NULL);

    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 100);
    uint8_t *base = ggml_backend_buffer_get_base(b);
    CHECK((uintptr_t) base % 64 == 0 && ggml_backend_buffer_get_size(b) == 100 && ggml_backend_buffer_is_host(b), "host memory");
    CHECK(ggml_backend_buffer_get_usage(b) == GGML_BACKEND_BUFFER_USAGE_ANY && !strcmp(ggml_backend_buffer_name(b), "CPU"), "any");
    CHECK(ggml_backend_buffer_get_alignment(b) == 32 && ggml_backend_buffer_get_max_size(b) == SIZE_MAX, "alignment, size");
    ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    CHECK(ggml_backend_buffer_get_usage(b) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS, "weights");
    ggml_backend_buffer_clear(b, 0xab);
    for (int i = 0; i < 100; i++) CHECK(base[i] == 0xab, "byte %d", i);
    ggml_backend_buffer_reset(b);

    _Alignas(32) char mine[64];
    ggml_backend_buffer_t mapped = ggml_backend_cpu_buffer_from_ptr(mine, sizeof mine);
    CHECK(!strcmp(ggml_backend_buffer_name(mapped), "CPU_Mapped") && ggml_backend_buffer_get_base(mapped) == mine, "mapped");
    CHECK(ggml_backend_buffer_is_host(mapped) && !ggml_backend_buffer_is_multi_buffer(mapped), "host");
    ggml_backend_buffer_free(mapped);
    mapped = ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_by_name("CPU"), mine, sizeof mine, 8);
    CHECK(mapped && ggml_backend_buffer_get_base(mapped) == mine, "through the device");
    ggml_backend_buffer_free(mapped);
    ggml_backend_buffer_free(b);
    if (!INTERPOSED) return;                            /* sanitizers stop the program here */
    lines = 0;
    CHECK(!ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), SIZE_MAX/2), "more than there is");
    CHECK(lines == 1, "%d lines", lines);
}

/* Data in and out, on host memory and on memory that is not. */
static void data_of(ggml_backend_t backend, const char *where) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 3), *u = ggml_dup_tensor(ctx, t);
    struct ggml_tensor *v = ggml_view_1d(ctx, t, 4, 4*sizeof(float));
    ggml_backend_tensor_set(t, NULL, 0, 0);             /* nothing: allowed before there is a buffer */
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, backend);
    CHECK(b && t->buffer == b && v->buffer == b && (char *) v->data == (char *) t->data + 16, "%s: a view is placed", where);
    ggml_backend_buffer_clear(b, 0);
    float in[12], out[12] = {0};
    for (int i = 0; i < 12; i++) in[i] = (float) i;
    ggml_backend_tensor_set(t, in, 0, sizeof in);
    ggml_backend_tensor_get(v, out, 0, 16);
    CHECK(out[0] == 4 && out[3] == 7, "%s: the view sees it", where);
    ggml_backend_tensor_get(t, out, 8, 16);
    CHECK(out[0] == 2 && out[3] == 5, "%s: a part", where);
    ggml_backend_tensor_copy(t, u);
    ggml_backend_tensor_copy(u, u);
    ggml_backend_tensor_get_async(backend, u, out, 0, sizeof out);
    ggml_backend_synchronize(backend);
    CHECK(!memcmp(in, out, sizeof in), "%s: a copy", where);
    ggml_backend_tensor_set_2d(u, in, 4, 8, 3, 16, 8);  /* two floats into columns 1 and 2 of each row */
    ggml_backend_tensor_get_2d(u, out, 0, 16, 3, 16, 16);
    static const float want[12] = { 0, 0, 1, 3, 4, 2, 3, 7, 8, 4, 5, 11 };
    CHECK(!memcmp(want, out, sizeof want), "%s: two dimensions", where);
    ggml_backend_tensor_set_2d_async(backend, u, in, 0, 16, 3, 16, 16);
    ggml_backend_synchronize(backend);
    memset(out, 0, sizeof out);
    ggml_backend_tensor_get_2d_async(backend, u, out, 0, 8, 3, 16, 8);
    static const float columns[6] = { 0, 1, 4, 5, 8, 9 };
    CHECK(!memcmp(columns, out, sizeof columns), "%s: two dimensions, asynchronous", where);
    ggml_backend_tensor_set_async(backend, u, in + 6, 0, 8);
    ggml_backend_synchronize(backend);
    ggml_backend_tensor_get(u, out, 0, 8);
    CHECK(out[0] == 6 && out[1] == 7, "%s: asynchronous", where);
    if (b->iface.memset_tensor) {
        ggml_backend_tensor_memset(u, 0, 4, 8);
        ggml_backend_tensor_get(u, out, 0, 16);
        CHECK(out[0] == 6 && out[1] == 0 && out[2] == 0 && out[3] == 3, "%s: filled", where);
    }
    ggml_backend_buffer_free(b);
    ggml_free(ctx);
}

static void between(ggml_backend_t cpu, ggml_backend_t ltd) {
    enum { LENGTH = 10000 };                            /* more than goes through the stack at once */
    static float in[LENGTH], out[LENGTH];
    struct ggml_context *a = context(), *c = context();
    struct ggml_tensor *x = ggml_new_tensor_1d(a, GGML_TYPE_F32, LENGTH), *y = ggml_new_tensor_1d(a, GGML_TYPE_F32, LENGTH);
    struct ggml_tensor *z = ggml_new_tensor_1d(c, GGML_TYPE_F32, LENGTH);
    ggml_backend_buffer_t ba = ggml_backend_alloc_ctx_tensors(a, ltd), bc = ggml_backend_alloc_ctx_tensors(c, cpu);
    for (int i = 0; i < LENGTH; i++) in[i] = (float) i;
    memcpy(z->data, in, sizeof in);
    ggml_backend_tensor_copy(z, x);
    ggml_backend_tensor_copy(x, y);                     /* through the host */
    ggml_backend_tensor_set(z, out, 0, sizeof out);
    ggml_backend_tensor_copy_async(ltd, cpu, y, z);
    ggml_backend_tensor_get(z, out, 0, sizeof out);
    CHECK(!memcmp(in, out, sizeof in), "there and back");
    ggml_backend_buffer_free(ba);
    ggml_backend_buffer_free(bc);
    ggml_free(a);
    ggml_free(c);
}

static void many_as_one(void) {
    ggml_backend_buffer_t parts[3];
    uint8_t *base[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 32);
        base[i]  = ggml_backend_buffer_get_base(parts[i]);
    }
    ggml_backend_buffer_t all = ggml_backend_multi_buffer_alloc_buffer(parts, 3);
    CHECK(all && ggml_backend_buffer_is_multi_buffer(all) && ggml_backend_buffer_get_size(all) == 96, "the sum");
    CHECK(!ggml_backend_buffer_get_base(all), "no address of its own");
    ggml_backend_buffer_set_usage(all, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_buffer_clear(all, 7);
    ggml_backend_buffer_reset(all);
    for (int i = 0; i < 3; i++) {
        CHECK(ggml_backend_buffer_get_usage(parts[i]) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS && base[i][31] == 7, "member %d", i);
    }
    ggml_backend_buffer_free(all);
}

static void registering(void) {
    const size_t regs = ggml_backend_reg_count(), devices = ggml_backend_dev_count();
    ggml_backend_register(&limited_reg);
    ggml_backend_register(&limited_reg);
    CHECK(ggml_backend_reg_count() == regs + 1 && ggml_backend_dev_count() == devices + 1, "once");
    CHECK(ggml_backend_reg_by_name("LIMITED") == &limited_reg && ggml_backend_dev_by_name("ltd0") == &limited_device, "by name");
    CHECK(!ggml_backend_reg_get_proc_address(&limited_reg, "x"), "no extensions");
    ggml_backend_t best = ggml_backend_init_best();
    CHECK(best && ggml_backend_get_device(best) == &limited_device, "a GPU is better than a CPU");
    ggml_backend_free(best);
    ggml_backend_unload(&limited_reg);
    CHECK(ggml_backend_reg_count() == regs && ggml_backend_dev_count() == devices, "gone");
    lines = 0;
    ggml_backend_unload(&limited_reg);
    CHECK(lines == 1, "%d lines for one that is not there", lines);
    ggml_backend_device_register(&limited_device);
    CHECK(ggml_backend_dev_count() == devices + 1 && ggml_backend_reg_count() == regs, "a device alone");
}

static void loading(void) {
    lines = 0;
    CHECK(!ggml_backend_load("/nonexistent/libggml-none.so") && lines == 1, "no such file: %d lines", lines);
    lines = 0;
    CHECK(!ggml_backend_load("libm.so.6") && lines == 1, "not a plugin: %d lines", lines);
    CHECK(strstr(last_line, "ggml_backend_init"), "%s", last_line);
    lines = 0;
    CHECK(!ggml_backend_load(NULL) && lines == 1, "no path");
    ggml_backend_load_all_from_path("/nonexistent");
    ggml_backend_load_all();
    CHECK(ggml_backend_reg_by_name("CPU"), "what is built in stays");
}

/* y = W x + b on both; the callback sees equal values node by node, or only those asked for. */
static int   compared;
static float worst;
static bool compare(int node, struct ggml_tensor *t1, struct ggml_tensor *t2, void *data) {
    float a[64], b[64];
    const size_t n = ggml_nbytes(t1);
    (void) node;
    compared++;
    ggml_backend_tensor_get(t1, a, 0, n);
    ggml_backend_tensor_get(t2, b, 0, n);
    for (size_t i = 0; i < n/sizeof *a; i++) worst = fmaxf(worst, fabsf(a[i] - b[i]));
    return compared < *(int *) data;
}

static struct ggml_cgraph *affine(struct ggml_context *ctx, struct ggml_tensor **product) {
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 8), *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 2);
    struct ggml_tensor *b = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 32);
    *product = ggml_mul_mat(ctx, w, x);
    struct ggml_tensor *y = ggml_add(ctx, *product, ggml_view_2d(ctx, b, 8, 2, 32, 32));
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 32, false);
    ggml_build_forward_expand(graph, y);
    return graph;
}

static void graphs_elsewhere(ggml_backend_t cpu, ggml_backend_t ltd) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *product;
    struct ggml_cgraph *graph = affine(ctx, &product);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    uint64_t seed = 4;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        for (int64_t i = 0; !t->view_src && i < ggml_nelements(t); i++) ((float *) t->data)[i] = rnd_f32(&seed);
    }
    int enough = 100;
    compared = 0;
    CHECK(ggml_backend_compare_graph_backend(cpu, ltd, graph, compare, &enough, NULL, 0), "copied");
    CHECK(compared == 2 && worst < 1e-6f, "%d nodes, worst %g", compared, (double) worst);
    enough = 1, compared = 0;
    CHECK(ggml_backend_compare_graph_backend(cpu, ltd, graph, compare, &enough, NULL, 0) && compared == 1, "stopped at one");
    enough = 100, compared = 0;
    struct ggml_tensor const *const only[] = { product };
    CHECK(ggml_backend_compare_graph_backend(cpu, ltd, graph, compare, &enough, only, 1) && compared == 1, "one node");
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(ltd, graph);
    CHECK(copy.graph && ggml_graph_n_nodes(copy.graph) == ggml_graph_n_nodes(graph), "a copy");
    CHECK(ggml_graph_node(copy.graph, 0)->buffer->buft == &limited_buft && ggml_graph_node(copy.graph, 0) != product, "elsewhere");
    ggml_backend_graph_copy_free(copy);
    limited.fail_alloc = 1;
    copy = ggml_backend_graph_copy(ltd, graph);
    CHECK(!copy.graph && !copy.buffer && !copy.ctx_allocated && !copy.ctx_unallocated, "all zero on failure");
    CHECK(!ggml_backend_compare_graph_backend(cpu, ltd, graph, compare, &enough, NULL, 0), "false on failure");
    limited.fail_alloc = 0;
    for (long n = 1; INTERPOSED && n < 100; n++) {
        const long before = held;
        fail_at = n;
        copy = ggml_backend_graph_copy(cpu, graph);
        const bool last = fail_at > 0;
        fail_at = 0;
        CHECK((copy.buffer != NULL) == last, "allocation %ld", n);
        ggml_backend_graph_copy_free(copy);
        CHECK(held == before, "allocation %ld: %ld blocks leaked", n, held - before);
        if (last) break;
    }
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(cpu, graph);
    float *data = ggml_get_data_f32(product);
    data[0] = 1000;
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS && data[0] < 1000, "a plan");
    ggml_backend_graph_plan_free(cpu, plan);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

/* ---- wrong calls ---------------------------------------------------------------------------------------------------------- */

static struct ggml_tensor *placed(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
    return t;
}
static const float zeros[8];
static void past_the_end(void)    { ggml_backend_tensor_set(placed(), zeros, 8, 12); }
static void overflowing(void)     { ggml_backend_tensor_set(placed(), zeros, SIZE_MAX - 3, 8); }
static void rows_past(void)       { ggml_backend_tensor_set_2d(placed(), zeros, 0, 4, 3, SIZE_MAX/2 + 1, 4); }
static void no_buffer(void)       { ggml_backend_tensor_set(ggml_new_tensor_1d(context(), GGML_TYPE_F32, 4), zeros, 0, 4); }
static void placed_twice(void)    { struct ggml_tensor *t = placed(); ggml_backend_tensor_alloc(t->buffer, t, t->data); }
static void other_layout(void) {
    ggml_backend_tensor_copy(placed(), ggml_new_tensor_1d(context(), GGML_TYPE_F32, 5));
}
static void unaligned(void)       { ggml_backend_cpu_buffer_from_ptr((void *) (uintptr_t) 0x1001, 32); }
static void no_such_device(void)  { ggml_backend_dev_get(1000); }

/* A meta device is a device like others (core/meta has how it divides). */
static void meta(ggml_backend_t cpu) {
    ggml_backend_dev_t devices[] = { ggml_backend_get_device(cpu), ggml_backend_get_device(cpu) };
    ggml_backend_t on_meta = ggml_backend_dev_init(ggml_backend_meta_device(devices, 2, NULL, NULL), NULL);
    CHECK(on_meta && ggml_backend_dev_type(ggml_backend_get_device(on_meta)) == GGML_BACKEND_DEVICE_TYPE_META, "a backend");
    data_of(on_meta, "meta");
    between(cpu, on_meta);
    ggml_backend_free(on_meta);
}

static void wrong_calls(void) {
    static const struct { const char *what; void (*call)(void); } calls[] = {
        { "writing past the end", past_the_end }, { "an offset that overflows", overflowing }, { "rows past the end", rows_past },
        { "a tensor without a buffer", no_buffer }, { "a tensor placed twice", placed_twice }, { "another layout", other_layout },
        { "memory that is not aligned", unaligned }, { "an index out of range", no_such_device },
    };
    for (size_t i = 0; i < sizeof calls/sizeof calls[0]; i++) {
        const pid_t child = fork();
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            calls[i].call();
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status), "%s", calls[i].what);
    }
}

int main(void) {
    ggml_log_set(listen, NULL);
    limited_reset();
    registry_facts();
    backend_facts();
    dot_products();
    buffers();
    ggml_backend_t cpu = ggml_backend_cpu_init(), ltd = ggml_backend_dev_init(&limited_device, NULL);
    data_of(cpu, "host");
    data_of(ltd, "device");
    between(cpu, ltd);
    many_as_one();
    graphs_elsewhere(cpu, ltd);
    meta(cpu);
    loading();
    registering();
    wrong_calls();
    ggml_backend_free(ltd);
    ggml_backend_free(cpu);
    CHECK(limited.n_buffers == 0, "%d buffers held", limited.n_buffers);
    return DONE();
}
