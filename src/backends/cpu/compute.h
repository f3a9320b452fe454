#ifndef COMPUTE_H
#define COMPUTE_H
/* Running a graph on the pool. */

#include "cpu.h"
#include "steps.h"

/* What the steps in a block of memory were made for. */
struct cpu_planned {
    uint64_t                  uid;              /* of the graph; 0: of none that will be known again */
    const struct cpu_kernels *kernels;
    int                       n_nodes, n_threads;
    bool                      fusing;
    struct cpu_steps          steps;
};

/* What a run needs besides its tensors: 64-aligned memory for its steps and scratch. Owned by a backend it only grows, so that
 * a graph that fits runs without a call to the allocator; `fixed` memory is the program's and never grows. */
struct cpu_memory {
    void  *p;
    size_t size;
    bool   fixed;
    struct cpu_planned planned;
};

/* How a graph is run. */
struct cpu_how {
    int                     n_threads;          /* >= 1 */
    struct ggml_threadpool *pool;               /* NULL only with n_threads 1 */
    ggml_abort_callback     abort_callback;     /* NULL: none */
    void                   *abort_data;
    bool                    use_ref;            /* the portable kernels */
};

/* Bytes of memory that cpu_compute needs for this graph with up to n_threads threads; SIZE_MAX: more than can be. */
size_t cpu_memory_size(const struct ggml_cgraph *graph, int n_threads);
/* At least `size` bytes, the first `keep` of them as they were; false: out of memory or fixed, nothing changed. */
bool   cpu_memory_grow(struct cpu_memory *memory, size_t size, size_t keep);
void   cpu_memory_free(struct cpu_memory *memory);

enum ggml_status cpu_compute(const struct ggml_cgraph *graph, const struct cpu_how *how, struct cpu_memory *memory);

#endif
