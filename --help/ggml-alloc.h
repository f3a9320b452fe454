#ifndef GGML_ALLOC_H
#define GGML_ALLOC_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend *ggml_backend_t;
typedef struct ggml_gallocr *ggml_gallocr_t;

/* ---- one after the other --------------------------------------------------------------------------------------- */

/* Places tensors in a buffer that the caller owns, each behind the one before. */
struct ggml_tallocr {
    ggml_backend_buffer_t buffer;
    void *base;                         /* of the buffer */
    size_t alignment;
    size_t offset;                      /* bytes used, from the base */
};

GGML_API struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer);
/* GGML_STATUS_ALLOC_FAILED, after one line of log, when the buffer is full; the tensor then has no place. */
GGML_API enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor);

/* Place all tensors of a no_alloc context that have no memory yet, and their views, in a new buffer of the type or of the
 * backend's default type; in several behind one handle where one buffer of the type is too small. The caller frees it, after
 * the last use of the tensors. NULL, with every tensor as it was, when there is nothing to place or no memory for it. The
 * first tells the bytes that the call takes. */
GGML_API size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
    ggml_backend_buffer_type_t buft);
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
    ggml_backend_buffer_type_t buft);
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx, ggml_backend_t backend);

/* ---- planned from lifetimes ------------------------------------------------------------------------------------ */

/* The graph allocator gives memory to the tensors of a graph that have none, and uses it again as soon as the last reader of
 * a tensor, or of a view of it, has run. Results take over the place of an operand where their op allows it. So
 *   - inputs must be written before every computation, after ggml_gallocr_alloc_graph;
 *   - after it only outputs (ggml_set_output) and results that no node reads are there to be read;
 *   - what must outlive a graph, or is shared by several graphs, needs memory of its own (a buffer): a tensor that got its
 *     memory here belongs to the graph that was allocated last.
 * Tensors that have memory already, and views of them, are left where they are.
 *
 * Reserve the largest graph once, then allocate each graph before computing it: within the reservation that makes no
 * allocation, whatever its sizes and lifetimes. Not for two threads at a time. */
GGML_API ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);
/* With several types every node and leaf of a graph belongs to one, by index; equal types share their memory. NULL when out
 * of memory. */
GGML_API ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs);
/* Frees the buffers too; NULL is allowed. */
GGML_API void ggml_gallocr_free(ggml_gallocr_t galloc);

/* Plan the graph and take buffers as large as it needs; they never shrink. False, after one line of log, without memory for
 * it. Ids: index of the buffer type by position in the graph; NULL stands for 0. A growing buffer is a new one: graphs that
 * were allocated before must be built anew. */
GGML_API bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
GGML_API bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
    const int *leaf_buffer_ids);
/* Plan only: sizes[i] is what buffer type i would take. */
GGML_API void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
    const int *leaf_buffer_ids, size_t *sizes);

/* Place the tensors of the graph. A graph that the last plan does not fit (other lifetimes, larger tensors) is planned anew,
 * with larger buffers only if it needs them. With several buffer types it is refused instead (false), since their ids are not
 * known: reserve it. False also without memory. */
GGML_API bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
/* Bytes held of buffer type i; 0 for one that is equal to an earlier one. */
GGML_API size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id);

#ifdef __cplusplus
}
#endif

#endif
