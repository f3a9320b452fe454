#ifndef CPU_H
#define CPU_H
/* What the files of the CPU backend share: how an op is told its share of the work, the op table, the kernel table.
 *
 * A node is computed by several workers of a run at once: each enters the op's `run` with its own struct cpu_task. Work is cut
 * into chunks that workers take from a shared counter (task_chunk), and who comes too late to get one is not waited for, so
 * nothing may be left to a certain worker. Where all are wanted (steps.h: meets) task_barrier lets them meet between two phases of
 * one op and sets the counter back to zero. No chunk ever splits a reduction, so the bits do not depend on who takes what. */

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "core.h"
#include "quant.h"

struct cpu_run;                                 /* pool.c: one graph on its way through the pool */
struct cpu_kernels;                             /* kernels/kernels.h */

/* Columns i0 .. i1-1 of rows r0 .. r1-1. */
struct span { int64_t r0, r1, i0, i1; };

struct cpu_task {
    int                       ith, nth;         /* this worker and their number */
    int                       n_threads;        /* that the scratch is for; nth may be less, never more */
    struct cpu_run           *run;
    const struct cpu_kernels *k;                /* the kernels of the chosen instruction set */
    void                     *scratch;          /* shared by the workers of a node, 64-aligned */
    size_t                    scratch_size;     /* at least what the op's row asked for */
    struct span              *part;             /* NULL: the node is shared out by chunks; else this worker does this part of
                                                   it and no more, and next_rows and next_span give it once */
};

/* The next chunk of 0 .. n-1 that nobody has taken: true and *i. */
bool task_chunk(const struct cpu_task *t, int64_t n, int64_t *i);
/* All workers of the node meet here; afterwards the chunk counter is zero again. */
void task_barrier(const struct cpu_task *t);
/* Computes a part of a node whose op walks by next_rows or next_span. */
void node_part(const struct cpu_task *t, struct ggml_tensor *node, struct span part);
/* The node cannot be computed (an index outside its range): one line of log, and the run ends with GGML_STATUS_FAILED. */
void task_fail(const struct cpu_task *t, const struct ggml_tensor *dst, const char *format, ...) GGML_ATTRIBUTE_FORMAT(3, 4);

/* How many workers enter an op. BY_SIZE: one when the node is small, else all. */
enum cpu_threads { BY_SIZE, ONE_THREAD, ALL_THREADS };

/* One op of the table (cpu_ops.def). Both what is run and what is reported as supported come from its row. */
struct cpu_op {
    void   (*run)(const struct cpu_task *t, struct ggml_tensor *dst);           /* NULL: not supported */
    bool   (*supports)(const struct ggml_tensor *dst);
    size_t (*scratch)(const struct ggml_tensor *dst, int n_threads);            /* bytes */
    enum cpu_threads threads;
};
extern const struct cpu_op cpu_ops[GGML_OP_COUNT];

#define CPU_OP(NAME, tag, sup, scr, threads)                                \
    void   op_##tag(const struct cpu_task *t, struct ggml_tensor *dst);     \
    bool   supports_##sup(const struct ggml_tensor *dst);                   \
    size_t scratch_##scr(const struct ggml_tensor *dst, int n_threads);
#include "cpu_ops.def"
#undef CPU_OP

/* STEP_PRODUCTS (steps.h); whether two products of one input can share its preparation, and whether the workers meet after it
 * (ops/matmul.c). */
struct cpu_step;
void run_products(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node);
bool products_alike(const struct ggml_tensor *a, const struct ggml_tensor *b, const struct cpu_kernels *k, int n_threads);
bool products_meet(const struct ggml_tensor *node, const struct cpu_kernels *k, int n_threads);
/* What is left of a step when all have left it, for one worker. */
void finish_products(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node);
/* FLASH_ATTN_EXT: whether the workers meet in it; else what is left when all have left it, for one worker (ops/attention.c). */
bool attention_meets(const struct ggml_tensor *dst, int n_threads);
void finish_attention(const struct cpu_task *t, struct ggml_tensor *dst);
/* STEP_ROPES; whether two rotations share their angles (ops/rope.c). */
void run_ropes(const struct cpu_task *t, struct ggml_tensor *const *node, int n);
bool ropes_alike(const struct ggml_tensor *a, const struct ggml_tensor *b);

bool   supports_any(const struct ggml_tensor *dst);                     /* whatever the builder accepts */
size_t scratch_none(const struct ggml_tensor *dst, int n_threads);
bool   cpu_supports(const struct ggml_tensor *dst);                     /* the row's word; views are always supported */

/* Instruction sets, each containing those before it on the same machine. */
enum cpu_level { CPU_PORTABLE, CPU_AVX2, CPU_AVX512, CPU_AVX512_VNNI, CPU_NEON, CPU_DOTPROD, CPU_LEVELS };
const char *cpu_level_name(enum cpu_level level);
bool cpu_level_present(enum cpu_level level);                   /* built in and usable on this machine */
const struct cpu_kernels *cpu_kernels_at(enum cpu_level level); /* the table with everything up to this level; NULL if absent */
const struct cpu_kernels *cpu_kernels(void);                    /* the level in force: the best, or what arn_cpu_set_level chose */

/* Rows of a tensor: r counts 0 .. ne1*ne2*ne3-1. */
static inline int64_t n_rows(const struct ggml_tensor *t) { return t->ne[1]*t->ne[2]*t->ne[3]; }
static inline void *row_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (char *) t->data + (size_t) i1*t->nb[1] + (size_t) i2*t->nb[2] + (size_t) i3*t->nb[3];
}
static inline void row_index(const struct ggml_tensor *t, int64_t r, int64_t *i1, int64_t *i2, int64_t *i3) {
    *i1 = r % t->ne[1];
    *i2 = r / t->ne[1] % t->ne[2];
    *i3 = r / t->ne[1] / t->ne[2];
}

#endif
