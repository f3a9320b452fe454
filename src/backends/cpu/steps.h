#ifndef STEPS_H
#define STEPS_H
/* What is run of a graph, in which order, and what needs no meeting of the workers in between. */

#include "cpu.h"

enum { STEP_NODES = 12 };               /* at most in one step */

enum step_kind {
    STEP_NODE,                          /* one node */
    STEP_ROWS,                          /* a chain: each node reads the row of the one before; part by part through all */
    STEP_ROPES,                         /* rotations by the same angles */
    STEP_PRODUCTS                       /* a chain, then products of its result, then what is done with these element by element */
};

/* What the workers do between two meetings: nodes nodes[first] .. nodes[first + count - 1] of its list. */
struct cpu_step {
    int           first;
    uint8_t       kind, count;
    uint8_t       before, products;     /* of STEP_PRODUCTS: nodes of the chain; products behind them */
    bool          wide;                 /* for all workers, else one computes it alone */
    bool          meets;                /* every worker is to enter it: they meet in it, or divide its work by their number */
    uint8_t       set[STEP_NODES];      /* of STEP_PRODUCTS: nodes of one set share the rows that a worker takes */
};

struct cpu_steps {
    struct cpu_step     *step;          /* [n], room for a step a node */
    struct ggml_tensor **node;          /* [n_nodes of the graph]: those that are computed, step by step */
    int                  n;
    bool                 any_wide;
    size_t               scratch_size;
};

/* Bytes for the lists of any graph of n nodes, and the lists in such memory. */
bool steps_fusing(void);                /* arn_cpu_set_fusing */

size_t           steps_size(int n_nodes);
struct cpu_steps steps_in(void *memory, int n_nodes);

/* Lists the steps; one line of log where a node cannot be computed. */
enum ggml_status steps_make(struct cpu_steps *s, const struct ggml_cgraph *graph, const struct cpu_kernels *k, int n_threads);

/* The node is computed, not a view, not empty, not left out; it is worth more than one worker. */
bool node_computed(const struct ggml_tensor *node);
bool node_wide(const struct ggml_tensor *node);

/* Does this worker's share of a step; then, once all have left it, one of them what is left. */
void step_run(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node);
void step_finish(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node);

#endif
