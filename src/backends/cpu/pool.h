#ifndef POOL_H
#define POOL_H
/* Threads of the CPU backend: a pool of sleeping workers, and what the workers of one run share. */

#include "ggml.h"
#include "ggml-cpu.h"

#include <stdatomic.h>

/* What the workers of one run share (struct cpu_task points here). Fields written by many have a cache line of their own.
 *
 *   chunk      the next chunk nobody has taken; zero again when the last worker has arrived at a meeting
 *   through    workers that have called task_last since the meeting
 *   phase      counts meetings; who waits, waits for it to change
 *   wish       the status the run is to end with, set by any worker at any time
 *   status     the same as of the last meeting: it changes only while everybody is there, so all read the same */
struct cpu_run {
    int               nth;
    int               narrow;           /* the chunk counter of nodes that worker 0 computes alone */
    enum ggml_status  status;
    struct pool_spin *spin;             /* [nth] */
    _Alignas(64) atomic_llong chunk;
    atomic_int                through;
    _Alignas(64) atomic_int   arrived;
    _Alignas(64) atomic_uint  phase;
    atomic_int                sleepers;
    atomic_llong              changed;          /* when the phase did, if somebody slept */
    atomic_int                wish;
};

/* How long a worker spins before it sleeps, in nanoseconds; learnt from how its last waits ended. */
struct pool_spin {
    _Alignas(64) int64_t ns;
};

/* All workers meet; false when the run is to end, to all of them alike. */
bool run_meet(struct cpu_run *run, int ith);
/* The run is to end with this status: seen by everyone at the next meeting. The first wish counts. */
void run_stop(struct cpu_run *run, enum ggml_status status);

/* From now on workers are placed on the cores of memory nodes as the strategy says, unless a pool names cores itself. */
void pool_place(enum ggml_numa_strategy strategy);

/* A pool of up to GGML_MAX_N_THREADS workers; the caller of pool_run is worker 0. NULL when out of memory. */
struct ggml_threadpool *pool_new(const struct ggml_threadpool_params *params);
void pool_free(struct ggml_threadpool *pool);
/* Workers that pool_run can use, at most n; starts threads that are missing. Less than n when the system refuses. */
int  pool_grow(struct ggml_threadpool *pool, int n);
/* work(run, ith) on workers 0 .. run->nth-1 at once; returns when all have left it. One caller at a time. */
void pool_run(struct ggml_threadpool *pool, struct cpu_run *run, void (*work)(struct cpu_run *run, int ith));

/* Threads worth running when n are asked for: no more than there are cores. pool_limit(n) sets that number for tests;
 * 0: what the system says. */
int  pool_threads(int n);
void pool_limit(int n);

#endif
