/* A program as others write it: both libraries by their public headers alone. Exit code 0: the libraries answer. */

#include <arenite.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gguf.h>
#include <llama.h>

#include <stdio.h>
#include <string.h>

static int product_is_right(void) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { 1 << 20, NULL, false });
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 3), *b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, 1);
    memcpy(a->data, (float[]) { 1, 2, 3, 4, 5, 6 }, 24);
    memcpy(b->data, (float[]) { 10, 1 }, 8);
    struct ggml_tensor *product = ggml_mul_mat(ctx, a, b);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, product);
    const enum ggml_status status = ggml_graph_compute_with_ctx(ctx, graph, 2);
    const int right = status == GGML_STATUS_SUCCESS && !memcmp(product->data, (float[]) { 12, 34, 56 }, 12);
    ggml_free(ctx);
    return right;
}

int main(void) {
    struct llama_sampler *greedy = llama_sampler_init_greedy();
    llama_token_data candidates[] = { { 0, 1.0f, 0 }, { 1, 3.0f, 0 }, { 2, 2.0f, 0 } };
    llama_token_data_array all = { candidates, 3, -1, false };
    llama_sampler_apply(greedy, &all);
    llama_sampler_free(greedy);
    printf("%s, %s\n", ggml_version(), arn_cpu_get_level());
    return product_is_right() && all.selected == 1 ? 0 : 1;
}
