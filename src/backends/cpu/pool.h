#ifndef POOL_H
#define POOL_H
/* Threads of the CPU backend: a pool of sleeping workers, and what the workers of one run share. */

#include "ggml.h"
#include "ggml-cpu.h"

#include <stdatomic.h>

/* What the workers of one run share (struct cpu_task points here). Fields written by many have a cache line of their own.
 *
 *   chunk      the next chunk nobody has taken; zero again when a step opens and when the last worker has arrived at a meeting
 *   gate       the step that is open, and the workers inside (run_enter)
 *   phase      counts openings and meetings; who waits, waits for it to change
 *   wish       the status the run is to end with, set by any worker at any time */
struct cpu_run {
    int               nth;
    int               narrow;           /* the chunk counter of nodes that one worker computes alone */
    struct pool_spin *spin;             /* [nth] */
    _Alignas(64) atomic_llong chunk;
    _Alignas(64) atomic_ullong gate;
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

/* Steps are open one after the other, in the order of their numbers. Who finds a step open enters it, and the last to leave it
 * has the run for itself until it opens the next one; a worker that comes late, since others have its core, is not waited for
 * and goes on with the step that is open then. Only a step that gathers is entered by every worker.
 *
 * The step that is open, `from` or one behind it, once it is. A run begins with none open. */
int  run_enter(struct cpu_run *run, int ith, int from);
/* True to the last one inside: the step is closed. */
bool run_leave(struct cpu_run *run);
/* To be called by that one, and once at the beginning. */
void run_open(struct cpu_run *run, int step, bool gathers);
/* The run is to end with this status. The first wish counts. */
void run_stop(struct cpu_run *run, enum ggml_status status);

/* From now on workers are placed on the cores of memory nodes as the strategy says, unless a pool names cores itself. */
void pool_place(enum ggml_numa_strategy strategy);

/* A pool of up to GGML_MAX_N_THREADS workers; the caller of pool_run is worker 0. NULL when out of memory. */
struct ggml_threadpool *pool_new(const struct ggml_threadpool_params *params);
void pool_free(struct ggml_threadpool *pool);
/* Workers that pool_run can use, at most n; starts threads that are missing. Less than n when the system refuses. */
int  pool_grow(struct ggml_threadpool *pool, int n);
/* work(run, ith) on workers 0 .. run->nth-1 at once, but for those that have not come yet when worker 0 is done with it; returns
 * when all have left it. One caller at a time. */
void pool_run(struct ggml_threadpool *pool, struct cpu_run *run, void (*work)(struct cpu_run *run, int ith));

/* Threads worth running when n are asked for: no more than there are cores. pool_limit(n) sets that number for tests;
 * 0: what the system says. */
int  pool_threads(int n);
void pool_limit(int n);

#endif
