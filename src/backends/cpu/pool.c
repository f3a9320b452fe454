/* The thread pool of the CPU backend (contract: an idle process uses no CPU, a loaded machine is shared fairly).
 *
 * Each worker sleeps on a word of its own, so that workers a job does not need are left alone. Who has not taken a job when its
 * caller is done with it, loses it, so a job is only ever touched by workers that its caller waits for. Every wait spins for a
 * short time and then sleeps. How short is learnt: a wait that a full spin would have caught lengthens the next spin, a longer
 * one halves it, so on a machine whose cores are taken by others waiting costs next to nothing and the time goes to whoever has
 * work. A full spin catches the other worker's last piece, not its absence: who sleeps is let in at once when woken, who spins is
 * kept until its turn ends and then waits for that of its neighbour. (Generation beside two busy processes on two cores, of its
 * speed without them: a full spin of 100 us 27 %, of 20 us 45 %; without them both are the same.)
 *
 * A worker that lost its core to another process keeps others waiting only for the piece of work that it holds: steps are gone
 * through without those that are not there (pool.h). Workers, and the caller while it is one, ask for short slices: the share
 * of a core stays the same, in smaller pieces.
 *
 * More threads than cores gain nothing and meet slowly, so pool_threads cuts their number; results do not depend on it. */

#include "pool.h"
#include "core.h"
#include "cpu.h"
#include "machine.h"
#include "system.h"
#include "arenite.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nanoseconds. A sleep and its wake-up cost some 10,000 to 50,000. */
enum { SPIN_LEAST = 500, SPIN_MOST = 20000, SLICE = 100000 };

struct worker {
    _Alignas(64) atomic_uint job;                           /* odd: one is offered; one more when it is taken or withdrawn */
    atomic_int               asleep;
    atomic_llong             changed;
    pthread_t                thread;
    struct pool_spin         spin;                          /* between jobs; between meetings it is the pool's spin[ith] */
    struct ggml_threadpool  *pool;
    int                      ith;
};

struct ggml_threadpool {
    struct ggml_threadpool_params params;
    int              n_threads;                             /* worker 0 included: workers[1 .. n_threads-1] run */
    long             process;                               /* that started them; a child of it has none of them */
    atomic_bool      quit, paused;
    struct cpu_run  *run;                                   /* the job; read only by workers that it includes */
    void           (*work)(struct cpu_run *run, int ith);
    _Alignas(64) atomic_uint left;                          /* workers that have taken the job and left it */
    atomic_int       caller_asleep;
    atomic_llong     changed;
    struct pool_spin spin[GGML_MAX_N_THREADS];
    struct worker    workers[GGML_MAX_N_THREADS];
};

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Waits until *word is no longer `old`. `asleep` counts sleepers, so that the other side wakes only when there are some, and
 * leaves the time of its change in *changed for them: what counts for the next spin is how long the change took to come, not
 * how late a busy machine lets a sleeper run again. */
static void wait_change(atomic_uint *word, unsigned old, atomic_int *asleep, const atomic_llong *changed, struct pool_spin *spin) {
    const int64_t start = system_now();
    int64_t waited = 0;
    while (waited < spin->ns) {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != old) return;
            machine_relax();
        }
        waited = system_now() - start;
    }
    atomic_fetch_add(asleep, 1);
    while (atomic_load(word) == old) system_wait(word, old);
    atomic_fetch_sub(asleep, 1);
    const int64_t came = atomic_load_explicit(changed, memory_order_relaxed) - start;
    spin->ns = came < SPIN_MOST ? 2*spin->ns : spin->ns/2;
    if (spin->ns < SPIN_LEAST) spin->ns = SPIN_LEAST;
    if (spin->ns > SPIN_MOST)  spin->ns = SPIN_MOST;
}

/* To be called before the change that sleepers wait for. */
static void note_change(const atomic_int *asleep, atomic_llong *changed) {
    if (atomic_load_explicit(asleep, memory_order_relaxed)) {
        atomic_store_explicit(changed, system_now(), memory_order_relaxed);
    }
}

static void next_phase(struct cpu_run *run) {
    note_change(&run->sleepers, &run->changed);
    atomic_fetch_add(&run->phase, 1);
    if (atomic_load(&run->sleepers)) system_wake(&run->phase, INT_MAX);
}

/* The gate: | step + 1: 32 bits | whether it gathers | workers inside, or closed: 16 bits |. Who is to come counts as inside; zero:
 * no step was open yet. */
#define GATE_GATHERS UINT64_C(0x10000)
#define GATE_INSIDE  UINT64_C(0x0ffff)
#define GATE_CLOSED  GATE_INSIDE
_Static_assert(GGML_MAX_N_THREADS < 0xffff, "workers inside are counted in 16 bits");

int run_enter(struct cpu_run *run, int ith, int from) {
    for (;;) {
        const unsigned phase = atomic_load(&run->phase);
        unsigned long long gate = atomic_load(&run->gate);
        while ((int) (gate >> 32) > from && (gate & GATE_INSIDE) != GATE_CLOSED) {
            if (gate & GATE_GATHERS || atomic_compare_exchange_weak(&run->gate, &gate, gate + 1)) return (int) (gate >> 32) - 1;
        }
        wait_change(&run->phase, phase, &run->sleepers, &run->changed, &run->spin[ith]);
    }
}

bool run_leave(struct cpu_run *run) {
    unsigned long long gate = atomic_load(&run->gate);
    for (;;) {
        const bool last = (gate & GATE_INSIDE) == 1;
        if (atomic_compare_exchange_weak(&run->gate, &gate, last ? gate | GATE_CLOSED : gate - 1)) return last;
    }
}

void run_open(struct cpu_run *run, int step, bool gathers) {
    atomic_store_explicit(&run->chunk, 0, memory_order_relaxed);
    atomic_store(&run->gate, ((unsigned long long) step + 1) << 32 | (gathers ? GATE_GATHERS | (unsigned) run->nth : 0));
    if (run->nth > 1) next_phase(run);
}

void run_stop(struct cpu_run *run, enum ggml_status status) {
    int none = GGML_STATUS_SUCCESS;
    atomic_compare_exchange_strong(&run->wish, &none, (int) status);
}

/* ---- what an op sees -------------------------------------------------------------------------------------------- */

bool task_chunk(const struct cpu_task *t, int64_t n, int64_t *i) {
    *i = t->nth == 1 ? t->run->narrow++ : atomic_fetch_add_explicit(&t->run->chunk, 1, memory_order_relaxed);
    return *i < n;
}

void task_barrier(const struct cpu_task *t) {
    struct cpu_run *run = t->run;
    if (t->nth == 1) {
        run->narrow = 0;
        return;
    }
    const unsigned phase = atomic_load_explicit(&run->phase, memory_order_relaxed);
    if (atomic_fetch_add(&run->arrived, 1) + 1 < run->nth) {
        wait_change(&run->phase, phase, &run->sleepers, &run->changed, &run->spin[t->ith]);
    } else {
        atomic_store_explicit(&run->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&run->chunk, 0, memory_order_relaxed);
        next_phase(run);
    }
}

void task_fail(const struct cpu_task *t, const struct ggml_tensor *dst, const char *format, ...) {
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    int none = GGML_STATUS_SUCCESS;
    if (atomic_compare_exchange_strong(&t->run->wish, &none, GGML_STATUS_FAILED)) {
        LOG_ERROR("%s (%s): %s\n", ggml_op_desc(dst), dst->name, why);
    }
}

/* ---- workers ---------------------------------------------------------------------------------------------------- */

/* DISTRIBUTE: the nodes in turn; ISOLATE: the node of the thread that asked for it. */
static atomic_int node_count, node_only = -1;

void pool_place(enum ggml_numa_strategy strategy) {
    atomic_store(&node_count, strategy == GGML_NUMA_STRATEGY_DISTRIBUTE ? system_numa_nodes() : 0);
    atomic_store(&node_only,  strategy == GGML_NUMA_STRATEGY_ISOLATE    ? system_numa_node()  : -1);
}

/* The cores of a worker; none set: those of the thread that started it. */
static void worker_cores(const struct worker *w, bool mask[GGML_MAX_N_THREADS]) {
    const struct ggml_threadpool_params *p = &w->pool->params;
    const int count = atomic_load(&node_count), only = atomic_load(&node_only);
    int seen = 0, total = 0;
    for (int i = 0; i < GGML_MAX_N_THREADS; i++) total += p->cpumask[i];
    for (int i = 0; i < GGML_MAX_N_THREADS; i++) {          /* strict: one core each, in turn */
        mask[i] = p->cpumask[i] && (!p->strict_cpu || seen++ == w->ith % total);
    }
    if (total || (!count && only < 0)) return;
    if (!system_node_cores(count ? w->ith % count : only, mask)) memset(mask, 0, GGML_MAX_N_THREADS*sizeof *mask);
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct ggml_threadpool *pool = w->pool;
    bool mask[GGML_MAX_N_THREADS];
    worker_cores(w, mask);
    if (!system_place(mask, pool->params.prio)) LOG_WARN("threads: cores or priority of worker %d refused\n", w->ith);
    system_slice(SLICE);

    for (;;) {
        struct pool_spin none = { 0 };
        struct pool_spin *spin = atomic_load(&pool->paused) ? &none : &w->spin;
        unsigned job = atomic_load(&w->job);
        if (job%2 == 0) {
            wait_change(&w->job, job, &w->asleep, &w->changed, spin);
            continue;
        }
        if (atomic_load(&pool->quit)) return NULL;
        if (!atomic_compare_exchange_strong(&w->job, &job, job + 1)) continue;
        pool->work(pool->run, w->ith);
        note_change(&pool->caller_asleep, &pool->changed);
        atomic_fetch_add(&pool->left, 1);
        if (atomic_load(&pool->caller_asleep)) system_wake(&pool->left, 1);
    }
}

static void worker_wake(struct worker *w) {
    note_change(&w->asleep, &w->changed);
    atomic_fetch_add(&w->job, 1);
    if (atomic_load(&w->asleep)) system_wake(&w->job, 1);
}

/* False: the worker has taken the job. */
static bool withdraw(struct worker *w) {
    unsigned job = atomic_load(&w->job);
    return job%2 && atomic_compare_exchange_strong(&w->job, &job, job + 1);
}

/* A fork copies the memory of a pool and none of its threads: in the child the caller is alone, with the same results. */
static bool pool_is_ours(const struct ggml_threadpool *pool) { return pool->process == system_process(); }

int pool_grow(struct ggml_threadpool *pool, int n) {
    if (!pool_is_ours(pool)) return 1;
    if (n > GGML_MAX_N_THREADS) n = GGML_MAX_N_THREADS;
    while (pool->n_threads < n) {
        struct worker *w = &pool->workers[pool->n_threads];
        w->pool = pool, w->ith = pool->n_threads, w->spin.ns = pool->spin[w->ith].ns;
        if (pthread_create(&w->thread, NULL, worker_main, w)) {
            LOG_WARN("threads: %d of %d could be started\n", pool->n_threads, n);
            break;
        }
        pool->n_threads++;
    }
    return n < pool->n_threads ? n : pool->n_threads;
}

struct ggml_threadpool *pool_new(const struct ggml_threadpool_params *params) {
    struct ggml_threadpool *pool = ggml_aligned_malloc(sizeof *pool);
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->params    = *params;
    pool->n_threads = 1;
    pool->process   = system_process();
    atomic_store(&pool->paused, params->paused);
    for (int i = 0; i < GGML_MAX_N_THREADS; i++) pool->spin[i].ns = (int64_t) SPIN_MOST*params->poll/100;
    return pool;
}

void pool_free(struct ggml_threadpool *pool) {
    if (!pool) return;
    atomic_store(&pool->quit, true);
    const int n = pool_is_ours(pool) ? pool->n_threads : 1;
    for (int i = 1; i < n; i++) worker_wake(&pool->workers[i]);
    for (int i = 1; i < n; i++) pthread_join(pool->workers[i].thread, NULL);
    ggml_aligned_free(pool, sizeof *pool);
}

void pool_run(struct ggml_threadpool *pool, struct cpu_run *run, void (*work)(struct cpu_run *run, int ith)) {
    int64_t slice = 0;
    if (run->nth > 1) {
        slice = system_slice(SLICE);
        run->spin = pool->spin;
        pool->run = run, pool->work = work;
        atomic_store(&pool->paused, false);
        atomic_store(&pool->left, 0);
        for (int i = 1; i < run->nth; i++) worker_wake(&pool->workers[i]);
    }
    work(run, 0);
    if (run->nth == 1) return;
    unsigned taken = 0;
    for (int i = 1; i < run->nth; i++) taken += !withdraw(&pool->workers[i]);
    for (unsigned left; (left = atomic_load(&pool->left)) != taken;) {
        wait_change(&pool->left, left, &pool->caller_asleep, &pool->changed, &pool->spin[0]);
    }
    system_slice(slice);
}

/* ---- how many --------------------------------------------------------------------------------------------------- */

static atomic_int cores, limit;

void pool_limit(int n) {
    limit = n;
}

int arn_cpu_default_threads(void) {
    if (!cores) cores = system_cores();                     /* reading the quota opens files: once a process is enough */
    return cores;
}

int pool_threads(int n) {
    const int most = limit ? limit : arn_cpu_default_threads();
    return n < most ? n : most;
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params) {
    struct ggml_threadpool *pool = pool_new(params);
    if (pool) pool_grow(pool, pool_threads(params->n_threads));
    return pool;
}

void ggml_threadpool_free(struct ggml_threadpool *pool) {
    pool_free(pool);
}

int ggml_threadpool_get_n_threads(struct ggml_threadpool *pool) {
    return pool->params.n_threads;
}

void ggml_threadpool_pause(struct ggml_threadpool *pool) {
    atomic_store(&pool->paused, true);
}

void ggml_threadpool_resume(struct ggml_threadpool *pool) {
    atomic_store(&pool->paused, false);
}
