/* Times whole ops through ggml's interface alone, so that one program measures any library that serves it, ours or the
 * peer's, whichever the loader finds (LD_LIBRARY_PATH): storing rows into and fetching them from a cache of each type, and
 * fused attention on prompts and in generation.
 *
 *     micro_ops [rows | generate | prompt | all] [THREADS [SHAPE]]
 *
 * Each figure is the best of several runs of the same graph: processor time with one thread, which other load on the machine
 * distorts little, else time. */

#define _POSIX_C_SOURCE 200809L

#include "ggml.h"
#include "ggml-cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int n_threads = 1;

static double now(void) {
    struct timespec t;
    clock_gettime(n_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

/* Seconds of computing `result` and what it needs, the best of runs that take some 0.2 s together. */
static double cost(struct ggml_context *ctx, struct ggml_tensor *result) {
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, result);
    struct ggml_threadpool_params how = ggml_threadpool_params_default(n_threads);
    struct ggml_threadpool *pool = ggml_threadpool_new(&how);
    struct ggml_cplan plan = ggml_graph_plan(g, n_threads, pool);
    plan.work_data = malloc(plan.work_size + 64);
    double best = 1e9;
    const double end = now() + 0.2;
    for (int run = 0; run < 3 || now() < end; run++) {
        const double start = now();
        ggml_graph_compute(g, &plan);
        if (now() - start < best) best = now() - start;
    }
    free(plan.work_data);
    ggml_threadpool_free(pool);
    return best;
}

static struct ggml_context *context(size_t mib) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = mib << 20 });
    if (!ctx) exit(1);
    return ctx;
}

static void fill(struct ggml_tensor *t) {
    float row[4096];
    uint32_t x = 1;
    const int64_t rows = ggml_nrows(t), n = t->ne[0];
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) x = x*1664525 + 1013904223, row[i] = (float) (int32_t) x*0x1p-30f;
        char *to = (char *) t->data + (size_t) r*t->nb[1];
        if (t->type == GGML_TYPE_F32) memcpy(to, row, (size_t) n*sizeof *row);
        else ggml_get_type_traits_cpu(t->type)->from_float(row, to, n);
    }
}

static void rows(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                            GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL };
    enum { N = 1024, ROWS = 64 };
    printf("%d rows of %d elements, %d thread(s): nanoseconds an element\n%-8s %10s %10s %10s %10s\n", ROWS, N, n_threads, "", "set_rows",
           "get_rows", "cpy to", "cpy from");
    for (size_t i = 0; i < sizeof types/sizeof *types; i++) {
        struct ggml_context *ctx = context(16);
        struct ggml_tensor *cache = ggml_new_tensor_2d(ctx, types[i], N, ROWS), *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, ROWS);
        struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, ROWS), *picks = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, ROWS);
        for (int r = 0; r < ROWS; r++) ((int64_t *) ids->data)[r] = r*7 % ROWS, ((int32_t *) picks->data)[r] = r*7 % ROWS;
        fill(x), fill(cache);
        const double set = cost(ctx, ggml_set_rows(ctx, cache, x, ids)), get = cost(ctx, ggml_get_rows(ctx, cache, picks));
        const double to = cost(ctx, ggml_cpy(ctx, x, cache));
        const double from = types[i] == GGML_TYPE_IQ4_NL ? 0 : cost(ctx, ggml_cpy(ctx, cache, x));      /* the peer has none */
        const double each = 1e9/N/ROWS;
        printf("%-8s %10.2f %10.2f %10.2f %10.2f\n", ggml_type_name(types[i]), set*each, get*each, to*each, from*each);
        ggml_free(ctx);
    }
}

struct shape { enum ggml_type type; int d, tokens, keys, heads, kv_heads, window; };

/* The last `tokens` of `keys`, causal, each seeing at most `window` keys if that is not 0. */
static void attention(const struct shape *s) {
    struct ggml_context *ctx = context(512);
    struct ggml_tensor *q = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s->d, s->tokens, s->heads);
    struct ggml_tensor *k = ggml_new_tensor_3d(ctx, s->type, s->d, s->kv_heads, s->keys), *v = ggml_new_tensor_3d(ctx, s->type, s->d, s->kv_heads, s->keys);
    struct ggml_tensor *mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, s->keys, (s->tokens + 63)/64*64);
    fill(q), fill(k), fill(v);
    double live = 0;
    for (int i = 0; i < (int) mask->ne[1]; i++) for (int j = 0; j < s->keys; j++) {
        const int at = s->keys - s->tokens + i;
        const bool masked = i >= s->tokens || j > at || (s->window && j <= at - s->window);
        ((uint16_t *) mask->data)[(int64_t) i*s->keys + j] = masked ? 0xfc00 : 0;
        live += !masked;
    }
    const double seconds = cost(ctx, ggml_flash_attn_ext(ctx, q, ggml_permute(ctx, k, 0, 2, 1, 3), ggml_permute(ctx, v, 0, 2, 1, 3), mask, 0.1f, 0, 0));
    const double bytes = s->tokens == 1 ? (double) (ggml_nbytes(k) + ggml_nbytes(v))*live/s->keys : 0;
    char window[32] = "";
    if (s->window) snprintf(window, sizeof window, ", window %d", s->window);
    printf("%-5s d %3d, %3d tokens, %5d keys, %2d heads of %d%s: %9.3f ms, %6.1f G multiply-adds/s", ggml_type_name(s->type), s->d, s->tokens,
           s->keys, s->heads, s->kv_heads, window, seconds*1e3, 2*live*s->heads*s->d/seconds*1e-9);
    if (bytes > 0) printf(", %5.1f GB/s", bytes/seconds*1e-9);
    printf("\n");
    ggml_free(ctx);
}

static const struct shape generation[] = {
    { GGML_TYPE_F16,  64, 1,  8192,  9, 3, 0 },   { GGML_TYPE_Q8_0,  64, 1, 8192,  9, 3, 0 },   { GGML_TYPE_Q4_0, 64, 1, 8192, 9, 3, 0 },
    { GGML_TYPE_F16,  64, 1, 32768,  9, 3, 0 },   { GGML_TYPE_Q8_0,  64, 1, 32768, 9, 3, 0 },
    { GGML_TYPE_F16, 128, 1,  8192, 32, 8, 0 },   { GGML_TYPE_Q8_0, 128, 1, 8192, 32, 8, 0 },   { GGML_TYPE_Q4_0, 128, 1, 8192, 32, 8, 0 },
    { GGML_TYPE_F16, 128, 1,  8192,  8, 8, 0 },   { GGML_TYPE_Q8_0, 128, 1, 8192,  8, 8, 0 },
    { GGML_TYPE_F16, 256, 1,  8192,  4, 1, 0 },   { GGML_TYPE_F16, 256, 1, 8192, 4, 1, 512 },
};
static const struct shape prompts[] = {
    { GGML_TYPE_F16,  64, 512, 2048,  9, 3, 0 },  { GGML_TYPE_Q8_0,  64, 512, 2048,  9, 3, 0 }, { GGML_TYPE_Q4_0, 64, 512, 2048, 9, 3, 0 },
    { GGML_TYPE_F16,  64, 512, 8192,  9, 3, 0 },  { GGML_TYPE_F16,  128, 512, 2048,  8, 2, 0 }, { GGML_TYPE_Q8_0, 128, 512, 2048, 8, 2, 0 },
    { GGML_TYPE_F16, 128, 512, 8192,  8, 2, 0 },  { GGML_TYPE_F16,  256, 512, 2048,  4, 1, 0 }, { GGML_TYPE_F16, 256, 512, 2048, 4, 1, 512 },
    { GGML_TYPE_F16, 128,   8, 2048,  8, 2, 0 },  { GGML_TYPE_F16,   64,   4, 2048,  9, 3, 0 },
};

/* The shapes of one list, or that of one number. */
static void each(const struct shape *shapes, size_t n, int only) {
    for (size_t i = 0; i < n; i++) if (only < 0 || (size_t) only == i) attention(&shapes[i]);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    const bool all = !strcmp(what, "all");
    const int only = argc > 3 ? atoi(argv[3]) : -1;
    if (argc > 2) n_threads = atoi(argv[2]);
    ggml_cpu_init();
    if (all || !strcmp(what, "rows"))     rows();
    if (all || !strcmp(what, "generate")) each(generation, sizeof generation/sizeof *generation, only);
    if (all || !strcmp(what, "prompt"))   each(prompts, sizeof prompts/sizeof *prompts, only);
    return 0;
}
