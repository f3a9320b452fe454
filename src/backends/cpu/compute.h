#ifndef COMPUTE_H
#define COMPUTE_H
/* Running a graph on the pool. */

#include "cpu.h"

/* What a run needs besides its tensors. Owned by a backend it only grows, so that a graph that fits runs without a call to
 * the allocator. */
struct cpu_memory {
    void  *p;
    size_t size;
};

/* How a graph is run. */
struct cpu_how {
    int                     n_threads;          /* >= 1 */
    struct ggml_threadpool *pool;               /* NULL only with n_threads 1 */
    ggml_abort_callback     abort_callback;     /* NULL: none */
    void                   *abort_data;
    bool                    use_ref;            /* the portable kernels */
};

/* Bytes of memory (steps and scratch) that cpu_compute needs for this graph with up to n_threads threads. */
size_t cpu_memory_size(const struct ggml_cgraph *graph, int n_threads);
bool   cpu_memory_grow(struct cpu_memory *memory, size_t size);     /* false: out of memory, nothing changed */
void   cpu_memory_free(struct cpu_memory *memory);

enum ggml_status cpu_compute(const struct ggml_cgraph *graph, const struct cpu_how *how, void *memory, size_t size);

#endif
