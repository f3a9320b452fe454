#ifndef BACKEND_IMPL_H
#define BACKEND_IMPL_H
/* What a backend fills in and what the core hands it: the plugin ABI, version 2. */

#include "ggml-backend.h"

#define GGML_BACKEND_API_VERSION 2

struct ggml_backend_buffer_type_i {
    const char *( *get_name)(ggml_backend_buffer_type_t buft);  /* return a stable name string */
    ggml_backend_buffer_t ( *alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);  /* allocate size bytes and return a buffer; NULL on failure (0-byte requests never reach it, the core makes a dummy) */
    size_t ( *get_alignment)(ggml_backend_buffer_type_t buft);  /* return the power-of-two alignment for tensor addresses */
    size_t ( *get_max_size)(ggml_backend_buffer_type_t buft);  /* optional; largest single buffer, NULL means unlimited (SIZE_MAX) */
    size_t ( *get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);  /* optional; bytes to reserve for this tensor, must be >= ggml_nbytes; NULL means ggml_nbytes */
    bool ( *is_host)(ggml_backend_buffer_type_t buft);  /* optional; true if data is plain CPU memory in the standard layout; NULL means false */
};

struct ggml_backend_buffer_type {
    struct ggml_backend_buffer_type_i iface;
    ggml_backend_dev_t device;
    void *context;
};

struct ggml_backend_buffer_i {
    void ( *free_buffer)(ggml_backend_buffer_t buffer);  /* optional; release backend storage (the core frees the struct itself) */
    void *( *get_base)(ggml_backend_buffer_t buffer);  /* return base address (may be a fake non-NULL address for device memory); not called when size is 0 */
    enum ggml_status ( *init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);  /* optional; called once per tensor placed in the buffer (views included) to attach extras; returns status */
    void ( *memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);  /* fill size bytes at offset of the tensor data; may be NULL, then ggml_backend_tensor_memset asserts */
    void ( *set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);  /* host -> tensor copy, blocking */
    void ( *get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);  /* tensor -> host copy, blocking */
    void ( *set_tensor_2d)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);  /* optional; n_copies chunks of size bytes with two strides; NULL => core loops over set_tensor */
    void ( *get_tensor_2d)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);  /* optional; as above in the other direction */
    bool ( *cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst);  /* optional; copy src (any buffer) into dst (this buffer); false = not handled, core falls back to host copy */
    void ( *clear)(ggml_backend_buffer_t buffer, uint8_t value);  /* fill the whole buffer with a byte */
    void ( *reset)(ggml_backend_buffer_t buffer);  /* optional; drop per-tensor state when the allocator is about to re-place tensors */
};

struct ggml_backend_buffer {
    struct ggml_backend_buffer_i iface;
    ggml_backend_buffer_type_t buft;
    void *context;
    size_t size;
    enum ggml_backend_buffer_usage usage;
};

struct ggml_backend_graph_optimize_params {
    void ( *add_alloc_dep)(void *user_data, struct ggml_tensor *tensor, struct ggml_tensor *until);  /* keep tensor allocated until node "until" has run (longest wins) */
    void *user_data;
};

struct ggml_backend_i {
    const char *( *get_name)(ggml_backend_t backend);  /* return the stream/backend name */
    void ( *free)(ggml_backend_t backend);  /* destroy the backend object and its context */
    void ( *set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);  /* optional; queue host->device write; NULL => core uses the blocking path */
    void ( *get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);  /* optional; queue device->host read */
    void ( *set_tensor_2d_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);  /* optional; strided variant */
    void ( *get_tensor_2d_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data);  /* optional; strided variant */
    bool ( *cpy_tensor_async)(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct ggml_tensor *src, struct ggml_tensor *dst);  /* optional; queue a copy ordered after src backend work and before later dst backend work; false = not handled */
    void ( *synchronize)(ggml_backend_t backend);  /* optional; wait for everything queued; NULL means the backend is synchronous */
    ggml_backend_graph_plan_t ( *graph_plan_create)(ggml_backend_t backend, const struct ggml_cgraph *cgraph);  /* optional; build a reusable plan for a graph */
    void ( *graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);  /* optional; free a plan */
    void ( *graph_plan_update)(ggml_backend_t backend, ggml_backend_graph_plan_t plan, const struct ggml_cgraph *cgraph);  /* optional; refit plan to a graph of the same topology (never called by the core) */
    enum ggml_status ( *graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);  /* optional; run a plan */
    enum ggml_status ( *graph_compute)(ggml_backend_t backend, struct ggml_cgraph *cgraph);  /* run all nodes in order (may return before completion if async); required */
    void ( *event_record)(ggml_backend_t backend, ggml_backend_event_t event);  /* optional; mark the current point of this stream */
    void ( *event_wait)(ggml_backend_t backend, ggml_backend_event_t event);  /* optional; make this stream wait for the event */
    void ( *graph_optimize)(ggml_backend_t backend, struct ggml_cgraph *cgraph, struct ggml_backend_graph_optimize_params *params);  /* optional; may reorder nodes of a split before allocation; may extend tensor lifetimes through the params callback (third parameter is new vs Aug 2026) */
};

struct ggml_backend {
    ggml_guid_t guid;
    struct ggml_backend_i iface;
    ggml_backend_dev_t device;
    void *context;
};

struct ggml_backend_event {
    struct ggml_backend_device *device;
    void *context;
};

struct ggml_backend_device_i {
    const char *( *get_name)(ggml_backend_dev_t dev);  /* short id, e.g. CPU, CUDA0 */
    const char *( *get_description)(ggml_backend_dev_t dev);  /* human readable model string */
    void ( *get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);  /* write free and total bytes (0 = unknown) */
    enum ggml_backend_dev_type ( *get_type)(ggml_backend_dev_t dev);  /* return ggml_backend_dev_type */
    void ( *get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);  /* fill the whole property struct (core zeroes it first) */
    ggml_backend_t ( *init_backend)(ggml_backend_dev_t dev, const char *params);  /* create a backend (stream) on this device; params string is backend-defined and may be NULL */
    ggml_backend_buffer_type_t ( *get_buffer_type)(ggml_backend_dev_t dev);  /* default buffer type */
    ggml_backend_buffer_type_t ( *get_host_buffer_type)(ggml_backend_dev_t dev);  /* optional; pinned host memory type, NULL if none */
    ggml_backend_buffer_t ( *buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size);  /* optional; wrap caller memory without copying */
    bool ( *supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);  /* true if graph_compute can run this node with these operand types/shapes */
    bool ( *supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);  /* true if tensors living in that buffer type can be read directly */
    bool ( *offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);  /* optional; true if the device wants this op even though its weights sit elsewhere (large batches) */
    ggml_backend_event_t ( *event_new)(ggml_backend_dev_t dev);  /* optional; create event */
    void ( *event_free)(ggml_backend_dev_t dev, ggml_backend_event_t event);  /* optional; destroy event */
    void ( *event_synchronize)(ggml_backend_dev_t dev, ggml_backend_event_t event);  /* optional; host waits for the event */
};

struct ggml_backend_device {
    struct ggml_backend_device_i iface;
    ggml_backend_reg_t reg;
    void *context;
};

struct ggml_backend_reg_i {
    const char *( *get_name)(ggml_backend_reg_t reg);  /* registry name, e.g. CPU, CUDA, Vulkan */
    size_t ( *get_device_count)(ggml_backend_reg_t reg);  /* number of devices */
    ggml_backend_dev_t ( *get_device)(ggml_backend_reg_t reg, size_t index);  /* device by index (asserts in range) */
    void *( *get_proc_address)(ggml_backend_reg_t reg, const char *name);  /* optional; look up extension functions by name; NULL if unknown */
};

struct ggml_backend_reg {
    int api_version;  /* must equal GGML_BACKEND_API_VERSION (2) or a dynamically loaded backend is rejected */
    struct ggml_backend_reg_i iface;
    void *context;
};

typedef ggml_backend_reg_t ( *ggml_backend_init_t)(void);
typedef int ( *ggml_backend_score_t)(void);

/* ---- what the core offers to backends ---------------------------------------------------------------------------- */

/* A buffer of a backend's storage; NULL when out of memory (the storage stays the caller's then). */
GGML_API ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft, struct ggml_backend_buffer_i iface,
                                                        void *context, size_t size);
/* The destination buffer's own copy; false when it has none or does not handle the source. */
GGML_API bool ggml_backend_buffer_copy_tensor(const struct ggml_tensor *src, struct ggml_tensor *dst);

/* Several buffers as one: size, clear, reset, usage and free are those of the members; there is no base address. Takes over
 * the members, also on failure (NULL), when it frees them. */
GGML_API ggml_backend_buffer_t ggml_backend_multi_buffer_alloc_buffer(ggml_backend_buffer_t *buffers, size_t n_buffers);
GGML_API bool ggml_backend_buffer_is_multi_buffer(ggml_backend_buffer_t buffer);
GGML_API void ggml_backend_multi_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);

/* ---- registry ---------------------------------------------------------------------------------------------------- */

/* The registries that are part of this build, in the order of preference (backends/builtin.c). */
size_t builtin_count(void);
ggml_backend_reg_t builtin_reg(size_t index);
/* Takes a registry out of the list; false when it is not there. */
bool registry_remove(ggml_backend_reg_t reg);

#endif
