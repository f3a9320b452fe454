/* What it costs to place a graph again: a decoder's graph (tests/core/transformer.h) of two sizes in turn, built beforehand, as
 * a program does that generates between prompts. Microseconds for each placing, the best of several rounds.
 *
 * The same program measures any library that serves the interface, whichever the loader finds. */

#define _POSIX_C_SOURCE 200809L

#include "core/transformer.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

static struct ggml_cgraph *build(struct ggml_context **ctx, const struct shape *shape, int64_t n_tokens) {
    const struct ggml_init_params params = { .mem_size = 8192*2*ggml_tensor_overhead(), .no_alloc = true };
    *ctx = ggml_init(params);
    return decoder(*ctx, shape, n_tokens, false);
}

/* Without places: what the allocator gave is taken away, as in a graph just built. */
static void forget(struct ggml_context *ctx) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (t->buffer) t->buffer = NULL, t->data = NULL;
}

static void measure(const char *name, const struct shape *shape) {
    struct ggml_context *ctx[2];
    struct ggml_cgraph *graphs[2] = { build(&ctx[0], shape, 512), build(&ctx[1], shape, 1) };
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    if (!ggml_gallocr_reserve(galloc, graphs[0])) return;
    double best[2] = { 1, 1 };
    for (int i = 0; i < 600; i++) {
        forget(ctx[i%2]);
        const double start = now();
        if (!ggml_gallocr_alloc_graph(galloc, graphs[i%2])) return;
        const double time = now() - start;
        if (time < best[i%2]) best[i%2] = time;
    }
    printf("%-14s %4d nodes: %5.1f us for 512 tokens, %5.1f us for one\n", name, ggml_graph_n_nodes(graphs[0]), 1e6*best[0], 1e6*best[1]);
    ggml_gallocr_free(galloc);
    for (int i = 0; i < 2; i++) ggml_free(ctx[i]);
}

int main(void) {
    measure("SmolLM2 135M", &llama_135m);
    measure("Gemma 3 270M", &gemma_270m);
    measure("Llama 7B",     &llama_7b);
    return 0;
}
