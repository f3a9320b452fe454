#ifndef BACKEND_IMPL_H
#define BACKEND_IMPL_H
/* What a backend fills in and what the core hands it: the plugin ABI. Functions marked optional may be NULL. */

#include "ggml-backend.h"

#define GGML_BACKEND_API_VERSION 2

struct ggml_backend_buffer_type_i {
    /* the same string each time */
    const char *( *get_name)(ggml_backend_buffer_type_t buft);
    /* NULL when there is no memory; never asked for 0 bytes */
    ggml_backend_buffer_t ( *alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);
    /* of the addresses of tensors, a power of two */
    size_t ( *get_alignment)(ggml_backend_buffer_type_t buft);
    /* optional: of one buffer; without it there is no limit */
    size_t ( *get_max_size)(ggml_backend_buffer_type_t buft);
    /* optional: bytes of a tensor where these are more than ggml_nbytes */
    size_t ( *get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
    /* optional: the CPU may read and write the data in place */
    bool ( *is_host)(ggml_backend_buffer_type_t buft);
};

struct ggml_backend_buffer_type {
    struct ggml_backend_buffer_type_i iface;
    ggml_backend_dev_t device;
    void *context;
};

struct ggml_backend_buffer_i {
    /* optional: gives the storage back; the struct is released by the core */
    void ( *free_buffer)(ggml_backend_buffer_t buffer);
    /* first address, which need not be one the CPU can use but is not NULL; not asked of empty buffers */
    void *( *get_base)(ggml_backend_buffer_t buffer);
    /* optional: called once for each tensor, views too, that gets its place in the buffer */
    enum ggml_status ( *init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
    /* optional, but without it ggml_backend_tensor_memset has nothing to call */
    void ( *memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);
    /* both return when the copy is done */
    void ( *set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
    void ( *get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
    /* optional: n_copies pieces of `size` bytes, each a stride further; without them the core copies piece by piece */
    void ( *set_tensor_2d)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size,
                           size_t n_copies, size_t stride_tensor, size_t stride_data);
    void ( *get_tensor_2d)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size,
                           size_t n_copies, size_t stride_tensor, size_t stride_data);
    /* optional: dst is in this buffer, src in any; false: not handled, the copy goes through host memory */
    bool ( *cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst);
    /* every byte of the buffer */
    void ( *clear)(ggml_backend_buffer_t buffer, uint8_t value);
    /* optional: tensors are about to be placed anew, what init_tensor attached is void */
    void ( *reset)(ggml_backend_buffer_t buffer);
};

struct ggml_backend_buffer {
    struct ggml_backend_buffer_i iface;
    ggml_backend_buffer_type_t buft;
    void *context;
    size_t size;
    enum ggml_backend_buffer_usage usage;
};

struct ggml_backend_graph_optimize_params {
    /* keeps the memory of `tensor` until node `until` is computed; of several calls the latest node counts */
    void ( *add_alloc_dep)(void *user_data, struct ggml_tensor *tensor, struct ggml_tensor *until);
    void *user_data;
};

struct ggml_backend_i {
    const char *( *get_name)(ggml_backend_t backend);
    /* the backend with its context */
    void ( *free)(ggml_backend_t backend);
    /* optional: put in the queue; without them the buffer's own copies are used */
    void ( *set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
    void ( *get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
    void ( *set_tensor_2d_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size,
                                 size_t n_copies, size_t stride_tensor, size_t stride_data);
    void ( *get_tensor_2d_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size,
                                 size_t n_copies, size_t stride_tensor, size_t stride_data);
    /* optional: after what is queued on the source, before what will be queued on the destination; false: not handled */
    bool ( *cpy_tensor_async)(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct ggml_tensor *src,
                              struct ggml_tensor *dst);
    /* optional: waits for the whole queue; without it nothing is ever queued */
    void ( *synchronize)(ggml_backend_t backend);
    /* optional, all of these: a graph prepared for many runs; update takes one of the same shape with other tensors */
    ggml_backend_graph_plan_t ( *graph_plan_create)(ggml_backend_t backend, const struct ggml_cgraph *cgraph);
    void ( *graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    void ( *graph_plan_update)(ggml_backend_t backend, ggml_backend_graph_plan_t plan, const struct ggml_cgraph *cgraph);
    enum ggml_status ( *graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
    /* computes the nodes in their order; may return before they are computed where there is a queue */
    enum ggml_status ( *graph_compute)(ggml_backend_t backend, struct ggml_cgraph *cgraph);
    /* optional: marks a point of this queue, and makes this queue wait for one */
    void ( *event_record)(ggml_backend_t backend, ggml_backend_event_t event);
    void ( *event_wait)(ggml_backend_t backend, ggml_backend_event_t event);
    /* optional: may change the order of the nodes before they are placed */
    void ( *graph_optimize)(ggml_backend_t backend, struct ggml_cgraph *cgraph, struct ggml_backend_graph_optimize_params *params);
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
    /* short, like CPU or CUDA0; then in words */
    const char *( *get_name)(ggml_backend_dev_t dev);
    const char *( *get_description)(ggml_backend_dev_t dev);
    /* bytes; 0: not known */
    void ( *get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);
    enum ggml_backend_dev_type ( *get_type)(ggml_backend_dev_t dev);
    /* of a struct of zeros */
    void ( *get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);
    /* a backend of its own; params is for the device to read and may be NULL */
    ggml_backend_t ( *init_backend)(ggml_backend_dev_t dev, const char *params);
    ggml_backend_buffer_type_t ( *get_buffer_type)(ggml_backend_dev_t dev);
    /* optional: host memory from which the device copies faster */
    ggml_backend_buffer_type_t ( *get_host_buffer_type)(ggml_backend_dev_t dev);
    /* optional: the caller's memory as a buffer, not copied */
    ggml_backend_buffer_t ( *buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size);
    /* the node can be computed with the types and shapes it has */
    bool ( *supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    /* tensors there can be read in place */
    bool ( *supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
    /* optional: worth computing here though the weights lie elsewhere */
    bool ( *offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
    /* optional, all three; the last makes the host wait */
    ggml_backend_event_t ( *event_new)(ggml_backend_dev_t dev);
    void ( *event_free)(ggml_backend_dev_t dev, ggml_backend_event_t event);
    void ( *event_synchronize)(ggml_backend_dev_t dev, ggml_backend_event_t event);
};

struct ggml_backend_device {
    struct ggml_backend_device_i iface;
    ggml_backend_reg_t reg;
    void *context;
};

struct ggml_backend_reg_i {
    /* like CPU or CUDA */
    const char *( *get_name)(ggml_backend_reg_t reg);
    size_t ( *get_device_count)(ggml_backend_reg_t reg);
    /* index below the count */
    ggml_backend_dev_t ( *get_device)(ggml_backend_reg_t reg, size_t index);
    /* optional: further functions by name; NULL: none of that name */
    void *( *get_proc_address)(ggml_backend_reg_t reg, const char *name);
};

struct ggml_backend_reg {
    int api_version;                    /* GGML_BACKEND_API_VERSION; others are refused */
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
