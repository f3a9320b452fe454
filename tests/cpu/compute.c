/* Running graphs on the CPU: what is skipped, what work memory is asked for and when it is taken, the levels, single elements. */

#include "check.h"
#include "interpose.h"
#include "arenite.h"
#include "cpu.h"

static void quiet(enum ggml_log_level level, const char *text, void *data) { (void) level, (void) text, (void) data; }

static struct ggml_context *context(void) {
    return ggml_init((struct ggml_init_params) { .mem_size = 8 << 20 });
}

static struct ggml_tensor *random_tensor(struct ggml_context *ctx, enum ggml_type type, int64_t n, int64_t m) {
    static uint64_t seed = 11;
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, type, n, m);
    float *row = malloc((size_t) n*sizeof *row);
    for (int64_t r = 0; r < m; r++) {
        for (int64_t i = 0; i < n; i++) row[i] = rnd_f32(&seed);
        ggml_get_type_traits_cpu(type)->from_float(row, row_at(t, r, 0, 0), n);
    }
    free(row);
    return t;
}

/* Only what a forward_expand marked is computed; views and empty nodes cost nothing and need no memory. */
static void what_is_skipped(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *x = ggml_set_f32(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), 3.0f);
    struct ggml_tensor *marked = ggml_scale(ctx, ggml_view_1d(ctx, x, 2, 8), 2.0f), *other = ggml_scale(ctx, x, 5.0f);
    struct ggml_tensor *none = ggml_scale(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 0), 2.0f);
    ggml_set_f32(other, -1.0f);
    none->data = none->src[0]->data = NULL;
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 32, false);
    ggml_build_forward_expand(graph, marked);
    ggml_build_forward_expand(graph, none);
    ggml_graph_add_node(graph, other);
    CHECK(ggml_graph_compute_with_ctx(ctx, graph, 2) == GGML_STATUS_SUCCESS, "run");
    CHECK(ggml_get_f32_1d(marked, 1) == 6.0f, "%f", (double) ggml_get_f32_1d(marked, 1));
    CHECK(ggml_get_f32_1d(other, 0) == -1.0f, "a node that was only added is not executed");
    ggml_free(ctx);
}

static struct ggml_cgraph *product(struct ggml_context *ctx, int64_t columns, struct ggml_tensor **out) {
    *out = ggml_mul_mat(ctx, random_tensor(ctx, GGML_TYPE_Q4_0, 256, 128), random_tensor(ctx, GGML_TYPE_F32, 256, columns));
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 32, false);
    ggml_build_forward_expand(graph, *out);
    return graph;
}

static void work_memory(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *out;
    struct ggml_cgraph *large = product(ctx, 64, &out), *small = product(ctx, 2, &out);
    struct ggml_tensor *add = ggml_add(ctx, out, out);
    struct ggml_cgraph *plain = ggml_new_graph_custom(ctx, 32, false);
    ggml_graph_add_node(plain, add);
    add->flags |= GGML_TENSOR_FLAG_COMPUTE;
    CHECK(arn_cpu_scratch_size(large, 4) > arn_cpu_scratch_size(small, 4), "more columns, more scratch");
    CHECK(arn_cpu_scratch_size(small, 4) >= arn_cpu_scratch_size(small, 1), "more threads, no less scratch");
    CHECK(arn_cpu_scratch_size(plain, 4) == 0, "an addition needs none");
    struct ggml_cplan plan = ggml_graph_plan(small, 3, NULL);
    CHECK(plan.n_threads == 3 && plan.work_size >= arn_cpu_scratch_size(small, 3) && !plan.work_data, "plan");
    CHECK(ggml_graph_plan(plain, 7, NULL).n_threads == 1, "one thread for a small graph");
    CHECK(ggml_graph_plan(large, 0, NULL).n_threads == GGML_DEFAULT_N_THREADS, "the default number");
    char *block = malloc(plan.work_size + 1);           /* any address will do, and no byte behind it is touched */
    plan.work_data = (uint8_t *) block + 1;
    plan.abort_callback = NULL;
    CHECK(ggml_graph_compute(small, &plan) == GGML_STATUS_SUCCESS, "run");
    free(block);
    ggml_free(ctx);

    ctx = ggml_init((struct ggml_init_params) { .mem_size = 300000 });
    small = product(ctx, 2, &out);
    const size_t left = ggml_get_mem_size(ctx) - ggml_used_mem(ctx);
    ggml_new_tensor_1d(ctx, GGML_TYPE_I8, (int64_t) left - 600);
    CHECK(ggml_graph_compute_with_ctx(ctx, small, 2) == GGML_STATUS_ALLOC_FAILED, "no room for it in the context");
    ggml_free(ctx);
}

/* A scheduler's reservation of the largest graph counts for the scratch too: it is taken at the first run, whatever runs. */
static void reserved_scratch(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *out;
    struct ggml_cgraph *large = product(ctx, 64, &out), *small = product(ctx, 2, &out);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    CHECK(ggml_backend_sched_reserve(sched, large) && ggml_backend_sched_reserve(sched, small), "reserve");
    CHECK(ggml_backend_graph_compute(cpu, small) == GGML_STATUS_SUCCESS, "the first run");
    const long before = taken;
    CHECK(ggml_backend_graph_compute(cpu, large) == GGML_STATUS_SUCCESS, "the large one");
    CHECK(taken == before, "%ld calls to the allocator", taken - before);
    ggml_backend_sched_free(sched);
    ggml_backend_free(cpu);
    for (long n = 1; INTERPOSED && n < 50; n++) {       /* the n-th allocation fails: a status, and the next run is well */
        const long at_start = held;
        cpu = ggml_backend_cpu_init();
        fail_at = n;
        const enum ggml_status status = ggml_backend_graph_compute(cpu, large);
        const bool last = fail_at > 0;
        fail_at = 0;
        CHECK(status == GGML_STATUS_SUCCESS || status == GGML_STATUS_ALLOC_FAILED, "allocation %ld: %d", n, status);
        CHECK(ggml_backend_graph_compute(cpu, large) == GGML_STATUS_SUCCESS, "allocation %ld: afterwards", n);
        ggml_backend_free(cpu);
        CHECK(held <= at_start, "allocation %ld: %ld blocks leaked", n, held - at_start);
        if (last) break;
    }
    ggml_free(ctx);
}

/* Every level, and the portable kernels asked for by use_ref: the same bytes. */
static void levels(void) {
    struct ggml_context *ctx = context();
    struct ggml_tensor *out;
    struct ggml_cgraph *graph = product(ctx, 7, &out);
    static float want[128*7];
    ggml_backend_t cpu = ggml_backend_cpu_init();
    CHECK(!strcmp(arn_cpu_level_name(0), "portable") && !arn_cpu_level_name(-1) && !arn_cpu_level_name(100), "names");
    CHECK(!arn_cpu_set_level("nothing"), "an unknown level");
    ggml_backend_cpu_set_use_ref(cpu, true);
    ggml_backend_graph_compute(cpu, graph);
    memcpy(want, out->data, sizeof want);
    ggml_backend_cpu_set_use_ref(cpu, false);
    int n = 0;
    for (; arn_cpu_level_name(n); n++) {
        CHECK(arn_cpu_set_level(arn_cpu_level_name(n)) && !strcmp(arn_cpu_get_level(), arn_cpu_level_name(n)), "level %d", n);
        memset(out->data, 0, sizeof want);
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "level %d", n);
        CHECK(!memcmp(out->data, want, sizeof want), "%s", arn_cpu_level_name(n));
    }
    CHECK(arn_cpu_set_level(NULL) && !strcmp(arn_cpu_get_level(), arn_cpu_level_name(n - 1)), "the best is the last");
    for (int l = 0; l < CPU_LEVELS; l++) {
        CHECK(cpu_level_present((enum cpu_level) l) == (cpu_kernels_at((enum cpu_level) l) != NULL), "level %d", l);
    }
    ggml_backend_free(cpu);
    ggml_free(ctx);
}

static void elements(void) {
    static const enum ggml_type types[] = { GGML_TYPE_I8, GGML_TYPE_I16, GGML_TYPE_I32, GGML_TYPE_I64, GGML_TYPE_F16,
                                            GGML_TYPE_BF16, GGML_TYPE_F32, GGML_TYPE_F64 };
    struct ggml_context *ctx = context();
    for (size_t i = 0; i < sizeof types/sizeof types[0]; i++) {
        struct ggml_tensor *t = ggml_new_tensor_2d(ctx, types[i], 3, 2), *v = ggml_transpose(ctx, t);
        const char *name = ggml_type_name(types[i]);
        CHECK(ggml_set_f32(t, 7.0f) == t && ggml_get_i32_1d(t, 5) == 7 && ggml_get_f32_1d(t, 0) == 7.0f, "%s", name);
        CHECK(ggml_set_i32(t, -3) == t && ggml_get_f32_1d(t, 5) == -3.0f && ggml_get_i32_1d(t, 0) == -3, "%s", name);
        ggml_set_f32_nd(t, 2, 1, 0, 0, 11.0f);
        ggml_set_i32_1d(t, 1, 12);
        CHECK(ggml_get_i32_nd(t, 2, 1, 0, 0) == 11 && ggml_get_f32_nd(v, 1, 2, 0, 0) == 11.0f, "%s: through a view", name);
        CHECK(ggml_get_f32_1d(v, 2) == 12.0f, "%s: numbered in the packed order of the view", name);
        ggml_set_i32_nd(v, 1, 2, 0, 0, 13);
        ggml_set_f32_1d(v, 0, 14.0f);
        CHECK(ggml_get_f32_nd(t, 2, 1, 0, 0) == 13.0f && ggml_get_i32_1d(t, 0) == 14, "%s", name);
    }
    CHECK(ggml_get_f32_1d(ggml_new_f32(ctx, 0.5f), 0) == 0.5f && ggml_get_i32_1d(ggml_new_i32(ctx, 1 << 30), 0) == 1 << 30, "new");
    CHECK(ggml_get_i32_1d(ggml_set_i32(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1), INT32_MAX), 0) == INT32_MAX, "all bits");
    float f[4] = { 1.00048828125f, 65519.99f, 65520.0f, -2.5f }, back[4];
    ggml_fp16_t h[4];
    ggml_bf16_t b[4];
    int32_t n[4];
    ggml_cpu_fp32_to_fp16(f, h, 4);
    CHECK(h[0] == 0x3c00 && h[1] == 0x7bff && h[2] == 0x7c00, "%04x %04x %04x", h[0], h[1], h[2]);
    ggml_cpu_fp16_to_fp32(h, back, 4);
    CHECK(back[0] == 1.0f && back[3] == -2.5f, "back");
    ggml_cpu_fp32_to_bf16(f, b, 4);
    ggml_cpu_bf16_to_fp32(b, back, 4);
    CHECK(back[0] == 1.0f && back[3] == -2.5f, "and as bf16");
    ggml_cpu_fp32_to_i32(f, n, 4);
    CHECK(n[0] == 1 && n[3] == -2, "towards zero");
    ggml_cpu_fp32_to_fp32(f, back, 4);
    CHECK(!memcmp(f, back, sizeof f), "a copy");
    ggml_free(ctx);
}

int main(void) {
    ggml_log_set(quiet, NULL);
    what_is_skipped();
    work_memory();
    reserved_scratch();
    levels();
    elements();
    return DONE();
}
