/* The walk from nothing to a product, in the usual steps: a context for the tensors' descriptions, a backend, a buffer for what
 * is known, a graph, an allocator for what is computed. Prints a row of the result a line:
 *     60 55 50 110
 *     90 54 54 126
 *     42 29 28 64
 *
 *     cc matmul.c $(pkg-config --cflags --libs ggml) */

#include <stdio.h>

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

int main(void) {
    /* a: 4 rows of 2, b: 3 rows of 2; ggml_mul_mat(a, b) has a row for each row of b, an element for each row of a */
    const float a_data[] = { 2, 8,  5, 1,  4, 2,  8, 6 };
    const float b_data[] = { 10, 5,  9, 9,  5, 4 };

    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 8*ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true });
    if (!ctx) return 1;
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 4);
    struct ggml_tensor *b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 3);

    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_buffer_t inputs = ggml_backend_alloc_ctx_tensors(ctx, backend);
    if (!backend || !inputs) return 1;
    ggml_backend_tensor_set(a, a_data, 0, sizeof a_data);
    ggml_backend_tensor_set(b, b_data, 0, sizeof b_data);

    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *product = ggml_mul_mat(ctx, a, b);
    ggml_build_forward_expand(graph, product);

    ggml_gallocr_t allocator = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend));
    if (!ggml_gallocr_alloc_graph(allocator, graph)) return 1;
    if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) return 1;

    float out[12];
    ggml_backend_tensor_get(product, out, 0, sizeof out);
    for (int row = 0; row < 3; row++) printf("%g %g %g %g\n", (double) out[4*row], (double) out[4*row + 1], (double) out[4*row + 2], (double) out[4*row + 3]);

    ggml_gallocr_free(allocator);
    ggml_backend_buffer_free(inputs);
    ggml_backend_free(backend);
    ggml_free(ctx);
    return 0;
}
