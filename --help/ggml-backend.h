#ifndef GGML_BACKEND_H
#define GGML_BACKEND_H

/* Where tensors live and who computes them. A registry offers devices, a device makes buffers (memory) and backends (queues of
 * work). What fails for lack of memory returns NULL, false or a status after one line of log; wrong arguments end the program
 * with a message. */

#include "ggml.h"
#include "ggml-alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_BACKEND_META_MAX_DEVICES 16

enum ggml_backend_buffer_usage {
    GGML_BACKEND_BUFFER_USAGE_ANY     = 0,
    GGML_BACKEND_BUFFER_USAGE_WEIGHTS = 1,
    GGML_BACKEND_BUFFER_USAGE_COMPUTE = 2,
};

enum ggml_backend_dev_type {
    GGML_BACKEND_DEVICE_TYPE_CPU   = 0,
    GGML_BACKEND_DEVICE_TYPE_GPU   = 1,
    GGML_BACKEND_DEVICE_TYPE_IGPU  = 2,
    GGML_BACKEND_DEVICE_TYPE_ACCEL = 3,
    GGML_BACKEND_DEVICE_TYPE_META  = 4,
};

enum ggml_backend_meta_split_axis {
    GGML_BACKEND_SPLIT_AXIS_0        = 0,
    GGML_BACKEND_SPLIT_AXIS_1        = 1,
    GGML_BACKEND_SPLIT_AXIS_2        = 2,
    GGML_BACKEND_SPLIT_AXIS_3        = 3,
    GGML_BACKEND_SPLIT_AXIS_MIRRORED = 10,
    GGML_BACKEND_SPLIT_AXIS_PARTIAL  = 11,
    GGML_BACKEND_SPLIT_AXIS_NONE     = 98,
    GGML_BACKEND_SPLIT_AXIS_UNKNOWN  = 99,
};

typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend_event *ggml_backend_event_t;
typedef struct ggml_backend *ggml_backend_t;
typedef void *ggml_backend_graph_plan_t;
typedef struct ggml_backend_reg *ggml_backend_reg_t;
typedef struct ggml_backend_device *ggml_backend_dev_t;
typedef struct ggml_backend_sched *ggml_backend_sched_t;

struct ggml_backend_dev_caps {
    bool async;                 /* computing and copying return before they are done */
    bool host_buffer;           /* has a type of host memory that it copies from fast */
    bool buffer_from_host_ptr;  /* uses the program's memory where it is */
    bool events;
    bool mmap_support;          /* uses mapped files where they are */
};

struct ggml_backend_dev_props {
    const char *name;
    const char *description;
    size_t memory_free;
    size_t memory_total;
    enum ggml_backend_dev_type type;
    const char *device_id;  /* PCI id "domain:bus:dev.fn" lower case, or NULL */
    struct ggml_backend_dev_caps caps;
};

struct ggml_backend_feature {
    const char *name;
    const char *value;
};

struct ggml_backend_meta_split_state {
    enum ggml_backend_meta_split_axis axis;
    int64_t ne[16 *GGML_BACKEND_META_MAX_DEVICES];
    uint32_t nr[16];
    uint32_t n_segments;
};

struct ggml_backend_graph_copy {
    ggml_backend_buffer_t buffer;
    struct ggml_context *ctx_allocated;
    struct ggml_context *ctx_unallocated;
    struct ggml_cgraph *graph;
};

typedef void *( *ggml_backend_comm_init_t)(ggml_backend_t *backends, size_t n_backends);
typedef void ( *ggml_backend_comm_free_t)(void *comm_ctx);
typedef bool ( *ggml_backend_comm_allreduce_tensor_t)(void *comm_ctx, struct ggml_tensor **tensors);
typedef ggml_backend_buffer_type_t ( *ggml_backend_split_buffer_type_t)(int main_device, const float *tensor_split);
typedef void ( *ggml_backend_set_n_threads_t)(ggml_backend_t backend, int n_threads);
typedef ggml_backend_buffer_type_t *( *ggml_backend_dev_get_extra_bufts_t)(ggml_backend_dev_t device);
typedef void ( *ggml_backend_set_abort_callback_t)(ggml_backend_t backend, ggml_abort_callback abort_callback, void *abort_callback_data);
typedef struct ggml_backend_feature *( *ggml_backend_get_features_t)(ggml_backend_reg_t reg);
typedef bool ( *ggml_backend_sched_eval_callback)(struct ggml_tensor *t, bool ask, void *user_data);
typedef struct ggml_backend_meta_split_state ( *ggml_backend_meta_get_split_state_t)(const struct ggml_tensor *tensor, void *userdata);
typedef bool ( *ggml_backend_eval_callback)(int node_index, struct ggml_tensor *t1, struct ggml_tensor *t2, void *user_data);

/* ---- buffer types ----------------------------------------------------------------------------------------------- */

/* A type is a kind of memory. Types are static: nobody frees them. */
GGML_API const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft);
/* A new buffer of `size` bytes, the caller's to free; NULL, after one line of log, when there is no memory for it. With size 0
 * an empty buffer whose base is NULL. */
GGML_API ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size);
/* Of tensor addresses, a power of two. */
GGML_API size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft);
/* Of one buffer; SIZE_MAX: no limit. */
GGML_API size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft);
/* Bytes that the tensor takes in such a buffer: at least ggml_nbytes. */
GGML_API size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
/* True: plain memory that the processor reads, tensors in their standard layout. */
GGML_API bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft);
/* The device it belongs to; NULL for the CPU's. */
GGML_API ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft);

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

/* The name of its type. */
GGML_API const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer);
/* Tensors in it must not be used any more. NULL is allowed. */
GGML_API void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);
/* The address of its first byte, on its device; NULL for empty ones and for several buffers behind one handle. */
GGML_API void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);
/* Called when a tensor, or a view, has got its place in the buffer: lets the backend attach what it needs. */
GGML_API enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
/* The same questions as of its type. */
GGML_API size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer);
GGML_API size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor);
/* Every byte of it becomes `value`. */
GGML_API void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value);
GGML_API bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer);
/* WEIGHTS: the scheduler runs ops where their weights are. COMPUTE: set by allocators. */
GGML_API void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);
GGML_API enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer);
GGML_API ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer);
/* Forgets what init_tensor attached, before its tensors are placed anew. */
GGML_API void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer);

/* ---- data of tensors -------------------------------------------------------------------------------------------- */

/* `offset`, `size` and strides count bytes of the tensor's data; size 0 does nothing. Reading or writing outside the tensor, or
 * one that is in no buffer, ends the program with a message. The _2d calls move n_copies pieces of `size` bytes, stride_tensor
 * and stride_data apart. The plain calls return when it is done; the _async ones may return before: neither side's memory
 * may be touched until ggml_backend_synchronize. */
GGML_API void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
GGML_API void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
GGML_API void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size,
    size_t n_copies, size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size,
    size_t n_copies, size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);
/* Both have the same type, shape and strides, in any buffers. */
GGML_API void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst);
GGML_API void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
    size_t offset, size_t size);
GGML_API void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
    size_t offset, size_t size);
GGML_API void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
    size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);
GGML_API void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
    size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);
/* A copy that follows what is queued on backend_src and comes before what is queued on backend_dst later. */
GGML_API void ggml_backend_tensor_copy_async(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct
    ggml_tensor *src, struct ggml_tensor *dst);

/* ---- backends --------------------------------------------------------------------------------------------------- */

/* A backend is a device in use: a queue of work, not for two threads at a time. The first call: 16 bytes that tell its kind. */
GGML_API ggml_guid_t ggml_backend_guid(ggml_backend_t backend);
GGML_API const char *ggml_backend_name(ggml_backend_t backend);
/* Waits for nothing: synchronize first. NULL is allowed. */
GGML_API void ggml_backend_free(ggml_backend_t backend);
/* The default buffer type of its device, and buffers of it. */
GGML_API ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend);
GGML_API ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size);
GGML_API size_t ggml_backend_get_alignment(ggml_backend_t backend);
GGML_API size_t ggml_backend_get_max_size(ggml_backend_t backend);
/* Returns when all that was queued is done. */
GGML_API void ggml_backend_synchronize(ggml_backend_t backend);
/* A graph prepared for being computed many times; NULL when out of memory. Freed by the caller, before the graph. Only for
 * backends that have it (the CPU does), else the program ends with a message. */
GGML_API ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *cgraph);
GGML_API void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
GGML_API enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
/* Compute the nodes in their order. GGML_STATUS_ALLOC_FAILED: a tensor has no memory, or there is none to compute with;
 * FAILED: a node cannot be computed (an index outside its range), a line of log says which; ABORTED: a callback asked for
 * it. What a failed run has written is not defined. The _async call may return before it is done. */
GGML_API enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph);
GGML_API enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph *cgraph);
/* Can it compute this node (types, layouts); can it use tensors in buffers of this type where they are; does it want the node
 * although its weights are elsewhere. */
GGML_API bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op);
GGML_API bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op);
GGML_API ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend);

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* A point in a backend's queue. NULL when the device has no events. Freed by the caller; NULL is allowed. */
GGML_API ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device);
GGML_API void ggml_backend_event_free(ggml_backend_event_t event);
/* The event is now what the backend has queued so far; synchronize: the caller waits for it; wait: another backend's later
 * work does. */
GGML_API void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend);
GGML_API void ggml_backend_event_synchronize(ggml_backend_event_t event);
GGML_API void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

/* ---- devices ---------------------------------------------------------------------------------------------------- */

/* Owned by their registry. Names are short ("CPU"), descriptions are for people. */
GGML_API const char *ggml_backend_dev_name(ggml_backend_dev_t device);
GGML_API const char *ggml_backend_dev_description(ggml_backend_dev_t device);
/* Bytes; 0 when unknown. */
GGML_API void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total);
GGML_API enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device);
GGML_API void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props);
GGML_API ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device);
/* A new backend on the device, the caller's to free; params are the backend's own or NULL. NULL on failure. */
GGML_API ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params);
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device);
/* Host memory from which the device copies fast; NULL when it has none. */
GGML_API ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device);
/* A buffer over the caller's memory, which must outlive it; max_tensor_size: the largest tensor that will lie in it. Only
 * for devices with the capability buffer_from_host_ptr. */
GGML_API ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device, void *ptr, size_t
    size, size_t max_tensor_size);
GGML_API bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op);
GGML_API bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft);
GGML_API bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

/* ---- the registry ----------------------------------------------------------------------------------------------- */

/* A registry is what a backend offers: its devices and, by name, functions of its own (NULL: unknown). */
GGML_API const char *ggml_backend_reg_name(ggml_backend_reg_t reg);
GGML_API size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg);
GGML_API ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index);
GGML_API void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name);
/* The registries and devices of the process; those built in are there from the start. Names are compared without regard to
 * case; the *_by_* calls return NULL when there is none, *_get ends the program when the index is out of range. */
GGML_API void ggml_backend_register(ggml_backend_reg_t reg);
GGML_API void ggml_backend_device_register(ggml_backend_dev_t device);
GGML_API size_t ggml_backend_reg_count(void);
GGML_API ggml_backend_reg_t ggml_backend_reg_get(size_t index);
GGML_API ggml_backend_reg_t ggml_backend_reg_by_name(const char *name);
GGML_API size_t ggml_backend_dev_count(void);
GGML_API ggml_backend_dev_t ggml_backend_dev_get(size_t index);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_name(const char *name);
GGML_API ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type);
/* A new backend on the device of this name or type, or on the best one: GPU, integrated GPU, CPU. NULL when there is none. */
GGML_API ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params);
GGML_API ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params);
GGML_API ggml_backend_t ggml_backend_init_best(void);
/* A registry from a shared object. NULL, after one line of log, when it cannot be opened, is no backend, is of no use on this
 * machine or is built for another version of this interface. */
GGML_API ggml_backend_reg_t ggml_backend_load(const char *path);
/* Takes it out of the registry and closes its file; nothing of it may be in use. */
GGML_API void ggml_backend_unload(ggml_backend_reg_t reg);
/* The backends that lie beside the program or in the current directory (libggml-NAME-*.so, the best of them, or
 * libggml-NAME.so), or in dir_path; and the file that the environment's GGML_BACKEND_PATH names. */
GGML_API void ggml_backend_load_all(void);
GGML_API void ggml_backend_load_all_from_path(const char *dir_path);

/* ---- the scheduler ---------------------------------------------------------------------------------------------- */

/* Computes graphs over several backends: assigns each node to one, cuts the graph into splits, copies what a split cannot
 * read, and places everything with a graph allocator (ggml-alloc.h, whose rules for inputs and outputs hold here too).
 *
 * The use of it: reserve the largest graph once; then for each graph reset, alloc_graph, write the inputs, graph_compute.
 * A graph that is no larger than what was reserved is allocated and computed without a call to the memory allocator.
 * Splitting makes sources of the caller's nodes point to copies: a graph belongs to the scheduler that allocated it.
 * One graph may be computed again and again; before another one there must be a reset.
 *
 * Backends in the order of preference, the last one a CPU, at most 16; buffer types one each, or NULL for the defaults.
 * graph_size: nodes and leafs of the largest graph. parallel: 4 copies of every input, so that a graph can be filled while
 * earlier ones run. op_offload: nodes with weights in host memory may run on a device that wants them. NULL when out of
 * memory. Backends must outlive the scheduler. */
GGML_API ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends, ggml_backend_buffer_type_t *bufts, int
    n_backends, size_t graph_size, bool parallel, bool op_offload);
GGML_API void ggml_backend_sched_free(ggml_backend_sched_t sched);
/* Per backend the bytes that reserving this graph would take. */
GGML_API void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph, size_t
    *sizes);
/* False, after one line of log, when out of memory. The graph is left as it was. */
GGML_API bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph);
GGML_API int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);
GGML_API ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);
/* Of the last graph. */
GGML_API int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched);
GGML_API int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched);
GGML_API ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched, ggml_backend_t
    backend);
/* Bytes of the backend's buffer for activations. */
GGML_API size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched, ggml_backend_t backend);
/* Before alloc_graph: this node runs there. get: where a node was assigned, NULL when nowhere. */
GGML_API void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node,
    ggml_backend_t backend);
GGML_API ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node);
/* Assigns and splits without allocating. */
GGML_API void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
/* Once per reset. False, after one line of log, when out of memory; the graph is then as it was. */
GGML_API bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
/* Allocates first if need be. GGML_STATUS_ALLOC_FAILED when that fails, else the status of the first split that fails. */
GGML_API enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph *graph);
GGML_API enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph
    *graph);
/* Waits for all backends. reset: forgets assignments and allocation. */
GGML_API void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);
GGML_API void ggml_backend_sched_reset(ggml_backend_sched_t sched);
/* For each node first callback(t, true): true if it wants to see it; then, computed, callback(t, false): false ends the split
 * there. Nodes up to a wanted one are computed together. NULL: no callback. */
GGML_API void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched, ggml_backend_sched_eval_callback
    callback, void *user_data);
GGML_API const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis);
/* One device of type META for n_devs >= 1 devices; owned by the library. Work and memory are the first one's: how tensors could
 * be divided (get_split_state) is not asked. NULL when out of memory. */
GGML_API ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
    ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud);

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* The graph and all it reaches with its data, in memory of the backend; all zero on failure. The caller frees it. */
GGML_API struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend, struct ggml_cgraph *graph);
GGML_API void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy);
/* Computes the graph node by node on both backends and hands each pair of results to the callback, until it returns false;
 * with test_nodes the whole graph at once, and only these. False when the graph could not be copied. */
GGML_API bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2, struct ggml_cgraph
    *graph, ggml_backend_eval_callback callback, void *user_data, struct ggml_tensor const * const *test_nodes, size_t
    num_test_nodes);
/* Gives a tensor its place at addr in the buffer; gives a view its place in its root's. Each once. */
GGML_API enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, void
    *addr);
GGML_API enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor);
/* A CPU buffer over the caller's memory, 32-aligned, which must outlive it; and the CPU's own type. */
GGML_API ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);
GGML_API ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void);

#ifdef __cplusplus
}
#endif

#endif
