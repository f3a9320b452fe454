#ifndef GGML_CPU_H
#define GGML_CPU_H

/* The CPU backend, and computing graphs with it directly. */

#include "ggml.h"
#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_numa_strategy {
    GGML_NUMA_STRATEGY_DISABLED   = 0,
    GGML_NUMA_STRATEGY_DISTRIBUTE = 1,
    GGML_NUMA_STRATEGY_ISOLATE    = 2,
    GGML_NUMA_STRATEGY_NUMACTL    = 3,
    GGML_NUMA_STRATEGY_MIRROR     = 4,
    GGML_NUMA_STRATEGY_COUNT      = 5,
};

struct ggml_cplan {
    size_t work_size;  /* bytes the caller must provide in work_data (0 = none) */
    uint8_t *work_data;
    int n_threads;
    struct ggml_threadpool *threadpool;  /* NULL: threads for this call only */
    ggml_abort_callback abort_callback;
    void *abort_callback_data;
    bool use_ref;  /* select plain reference kernels only */
};

typedef void ( *ggml_vec_dot_t)(int n, float * GGML_RESTRICT s, size_t bs, const void * GGML_RESTRICT x, size_t bx, const void * GGML_RESTRICT y, size_t by, int nrc);

struct ggml_type_traits_cpu {
    ggml_from_float_t from_float;
    ggml_vec_dot_t vec_dot;  /* *s = sum of x[i]*y[i], n elements, whole blocks; nrc is 1 */
    enum ggml_type vec_dot_type;  /* of the other row */
    int64_t nrows;  /* that one call takes: 1 */
};

/* ---- machine ------------------------------------------------------------------------------------------------------ */

/* Once, before the first graph: which cores the workers of thread pools run on that name none themselves. DISTRIBUTE: those of the
 * memory nodes in turn; ISOLATE: those of the node that the calling thread is on; NUMACTL and MIRROR: those that the process was
 * given. The thread that computes a graph is never moved. Memory lies on the node whose thread touches it first: buffers are not
 * touched before a graph writes to them, pages of a mapped file when somebody reads them. is_numa: a strategy was asked for and
 * the machine has more than one memory node. */
GGML_BACKEND_API void ggml_numa_init(enum ggml_numa_strategy numa);
GGML_BACKEND_API bool ggml_is_numa(void);
/* ---- single values ------------------------------------------------------------------------------------------------ */

/* A new tensor of one element in the context, which has memory for it; NULL when that is full. */
GGML_BACKEND_API struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value);
/* Every element becomes `value`; returns the tensor. For tensors in host memory, here and below. */
GGML_BACKEND_API struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value);
GGML_BACKEND_API struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value);
/* One element, by its number in the packed order or by its four indices; converted from and to the tensor's type (integers, F16,
 * BF16, F32, F64). An index out of range or a block type ends the program with a message. */
GGML_BACKEND_API int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i);
GGML_BACKEND_API void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value);
GGML_BACKEND_API int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);
GGML_BACKEND_API void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, int32_t
    value);
GGML_BACKEND_API float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i);
GGML_BACKEND_API void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value);
GGML_BACKEND_API float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3);
GGML_BACKEND_API void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, float value);
/* ---- threads ------------------------------------------------------------------------------------------------------ */

/* A pool for graphs that are computed one after the other; NULL when out of memory. Its threads sleep when there is nothing to
 * do; there are never more of them than cores that the process may use, since results do not depend on their number. A child
 * of fork has none of them: there the caller computes alone. The caller frees it, when no graph uses it. */
GGML_BACKEND_API struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params);
GGML_BACKEND_API void ggml_threadpool_free(struct ggml_threadpool *threadpool);
/* What the pool was made for. */
GGML_BACKEND_API int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool);
/* A paused pool does not even spin for a moment between graphs; computing resumes it. */
GGML_BACKEND_API void ggml_threadpool_pause(struct ggml_threadpool *threadpool);
GGML_BACKEND_API void ggml_threadpool_resume(struct ggml_threadpool *threadpool);
/* ---- computing without a backend ---------------------------------------------------------------------------------- */

/* How many bytes of work memory and how many threads the graph wants; n_threads <= 0: the pool's, or 4. The caller gives
 * work_data (any alignment), and may set the abort callback and use_ref. */
GGML_BACKEND_API struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads, struct
    ggml_threadpool *threadpool);
/* Computes the marked nodes in their order. The abort callback is asked after each node, by one thread at a time. Statuses
 * as of ggml_backend_graph_compute; too little work memory is ALLOC_FAILED. Without a pool the threads live for this call only. */
GGML_BACKEND_API enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph, struct ggml_cplan *cplan);
/* The same with work memory from the context; ALLOC_FAILED when that is full. */
GGML_BACKEND_API enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
    int n_threads);
/* ---- what the processor has and the system lets us use ------------------------------------------------------------ */
GGML_BACKEND_API int ggml_cpu_has_sse3(void);
GGML_BACKEND_API int ggml_cpu_has_ssse3(void);
GGML_BACKEND_API int ggml_cpu_has_avx(void);
GGML_BACKEND_API int ggml_cpu_has_avx_vnni(void);
GGML_BACKEND_API int ggml_cpu_has_avx2(void);
GGML_BACKEND_API int ggml_cpu_has_bmi2(void);
GGML_BACKEND_API int ggml_cpu_has_f16c(void);
GGML_BACKEND_API int ggml_cpu_has_fma(void);
GGML_BACKEND_API int ggml_cpu_has_avx512(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_vbmi(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_vnni(void);
GGML_BACKEND_API int ggml_cpu_has_avx512_bf16(void);
GGML_BACKEND_API int ggml_cpu_has_amx_int8(void);
GGML_BACKEND_API int ggml_cpu_has_neon(void);
GGML_BACKEND_API int ggml_cpu_has_arm_fma(void);
GGML_BACKEND_API int ggml_cpu_has_fp16_va(void);
GGML_BACKEND_API int ggml_cpu_has_dotprod(void);
GGML_BACKEND_API int ggml_cpu_has_matmul_int8(void);
GGML_BACKEND_API int ggml_cpu_has_sve(void);
GGML_BACKEND_API int ggml_cpu_get_sve_cnt(void);
GGML_BACKEND_API int ggml_cpu_has_sme(void);
GGML_BACKEND_API int ggml_cpu_has_sme2(void);
GGML_BACKEND_API int ggml_cpu_has_riscv_v(void);
GGML_BACKEND_API int ggml_cpu_get_rvv_vlen(void);
GGML_BACKEND_API int ggml_cpu_has_vsx(void);
GGML_BACKEND_API int ggml_cpu_has_vxe(void);
GGML_BACKEND_API int ggml_cpu_has_wasm_simd(void);
GGML_BACKEND_API int ggml_cpu_has_llamafile(void);
/* ---- parts -------------------------------------------------------------------------------------------------------- */

/* Functions are NULL where a type has none. Static. */
GGML_BACKEND_API const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type);
/* ---- the CPU as a backend ----------------------------------------------------------------------------------------- */

/* Finds out about the processor; done by all that need it. */
GGML_BACKEND_API void ggml_cpu_init(void);
/* With 4 threads, made when first needed. The caller frees it; NULL when out of memory. */
GGML_BACKEND_API ggml_backend_t ggml_backend_cpu_init(void);
GGML_BACKEND_API bool ggml_backend_is_cpu(ggml_backend_t backend);
/* For the next graphs; 1 .. 512. Changing it costs nothing. */
GGML_BACKEND_API void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads);
/* The program's pool, which must outlive its use here; NULL: the backend's own. The one in use before is paused. */
GGML_BACKEND_API void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu, ggml_threadpool_t threadpool);
/* Asked after each node, on the calling thread; true ends the run with GGML_STATUS_ABORTED. NULL: none. */
GGML_BACKEND_API void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu, ggml_abort_callback
    abort_callback, void *abort_callback_data);
/* The plain kernels only. They give the same bits. */
GGML_BACKEND_API void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref);
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_cpu_reg(void);
/* n elements from the first to the second; halves are rounded to nearest even. */
GGML_BACKEND_API void ggml_cpu_fp32_to_fp32(const float *, float *, int64_t);
GGML_BACKEND_API void ggml_cpu_fp32_to_i32(const float *, int32_t *, int64_t);
GGML_BACKEND_API void ggml_cpu_fp32_to_fp16(const float *, ggml_fp16_t *, int64_t);
GGML_BACKEND_API void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *, float *, int64_t);
GGML_BACKEND_API void ggml_cpu_fp32_to_bf16(const float *, ggml_bf16_t *, int64_t);
GGML_BACKEND_API void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *, float *, int64_t);

#ifdef __cplusplus
}
#endif

#endif
