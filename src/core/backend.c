/* Backends as the program sees them: buffer types and buffers, moving data in and out of tensors, backends and events,
 * devices, the registry, and copying a graph to another backend.
 *
 * This file forwards to what a backend filled in (backend_impl.h) and supplies what it left out: defaults, checks of the
 * caller's arguments, fallbacks through host memory. It names no backend; the list of them is in backends/builtin.c. */

#include "backend_impl.h"
#include "core.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffer types ------------------------------------------------------------------------------------------------ */

const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft) {
    return buft ? buft->iface.get_name(buft) : "NULL";
}

ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size) {
    GGML_ASSERT(buft);
    if (size == 0) return ggml_backend_buffer_init(buft, (struct ggml_backend_buffer_i) {0}, NULL, 0);
    return buft->iface.alloc_buffer(buft, size);
}

size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft) {
    GGML_ASSERT(buft);
    return buft->iface.get_alignment(buft);
}

size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft) {
    GGML_ASSERT(buft);
    return buft->iface.get_max_size ? buft->iface.get_max_size(buft) : SIZE_MAX;
}

size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    GGML_ASSERT(buft);
    if (!buft->iface.get_alloc_size) return ggml_nbytes(tensor);
    const size_t size = buft->iface.get_alloc_size(buft, tensor);
    GGML_ASSERT(size >= ggml_nbytes(tensor));
    return size;
}

bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft) {
    GGML_ASSERT(buft);
    return buft->iface.is_host && buft->iface.is_host(buft);
}

ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft) {
    GGML_ASSERT(buft);
    return buft->device;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft, struct ggml_backend_buffer_i iface,
                                               void *context, size_t size) {
    ggml_backend_buffer_t buffer = malloc(sizeof *buffer);
    if (!buffer) return NULL;
    *buffer = (struct ggml_backend_buffer) {
        .iface = iface, .buft = buft, .context = context, .size = size, .usage = GGML_BACKEND_BUFFER_USAGE_ANY,
    };
    return buffer;
}

const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_name(buffer->buft);
}

void ggml_backend_buffer_free(ggml_backend_buffer_t buffer) {
    if (!buffer) return;
    if (buffer->iface.free_buffer) buffer->iface.free_buffer(buffer);
    free(buffer);
}

size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    return buffer->size;
}

void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    if (buffer->size == 0 || !buffer->iface.get_base) return NULL;
    void *base = buffer->iface.get_base(buffer);
    GGML_ASSERT(base && "a buffer has an address");
    return base;
}

enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    GGML_ASSERT(buffer);
    return buffer->iface.init_tensor ? buffer->iface.init_tensor(buffer, tensor) : GGML_STATUS_SUCCESS;
}

void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    GGML_ASSERT(buffer);
    if (buffer->size > 0) buffer->iface.clear(buffer, value);
}

size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_alignment(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_get_max_size(ggml_backend_buffer_get_type(buffer));
}

size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor) {
    return ggml_backend_buft_get_alloc_size(ggml_backend_buffer_get_type(buffer), tensor);
}

bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_is_host(ggml_backend_buffer_get_type(buffer));
}

void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage) {
    GGML_ASSERT(buffer);
    buffer->usage = usage;
    if (ggml_backend_buffer_is_multi_buffer(buffer)) ggml_backend_multi_buffer_set_usage(buffer, usage);
}

enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    return buffer->usage;
}

ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    return buffer->buft;
}

void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    if (buffer->iface.reset) buffer->iface.reset(buffer);
}

bool ggml_backend_buffer_copy_tensor(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    const ggml_backend_buffer_t buffer = dst->view_src ? dst->view_src->buffer : dst->buffer;
    return buffer->iface.cpy_tensor && buffer->iface.cpy_tensor(buffer, src, dst);
}

/* ---- several buffers as one --------------------------------------------------------------------------------------- */

struct multi_buffer {
    size_t                n;
    ggml_backend_buffer_t members[];
};

static void multi_free(ggml_backend_buffer_t buffer) {
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n; i++) ggml_backend_buffer_free(multi->members[i]);
    free(multi);
}

static void multi_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n; i++) ggml_backend_buffer_clear(multi->members[i], value);
}

static void multi_reset(ggml_backend_buffer_t buffer) {
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n; i++) ggml_backend_buffer_reset(multi->members[i]);
}

ggml_backend_buffer_t ggml_backend_multi_buffer_alloc_buffer(ggml_backend_buffer_t *buffers, size_t n) {
    const struct ggml_backend_buffer_i iface = { .free_buffer = multi_free, .clear = multi_clear, .reset = multi_reset };
    GGML_ASSERT(n > 0);
    struct multi_buffer *multi = malloc(sizeof *multi + n*sizeof *buffers);
    ggml_backend_buffer_t buffer = NULL;
    size_t size = 0;
    for (size_t i = 0; i < n; i++) size += buffers[i]->size;
    if (multi) buffer = ggml_backend_buffer_init(buffers[0]->buft, iface, multi, size);
    if (!buffer) {
        for (size_t i = 0; i < n; i++) ggml_backend_buffer_free(buffers[i]);
        free(multi);
        return NULL;
    }
    multi->n = n;
    memcpy(multi->members, buffers, n*sizeof *buffers);
    return buffer;
}

bool ggml_backend_buffer_is_multi_buffer(ggml_backend_buffer_t buffer) {
    GGML_ASSERT(buffer);
    return buffer->iface.free_buffer == multi_free;
}

void ggml_backend_multi_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage) {
    GGML_ASSERT(ggml_backend_buffer_is_multi_buffer(buffer));
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n; i++) ggml_backend_buffer_set_usage(multi->members[i], usage);
}

/* ---- tensors in buffers ------------------------------------------------------------------------------------------- */

static ggml_backend_buffer_t buffer_of(const struct ggml_tensor *t) {
    return t->view_src ? t->view_src->buffer : t->buffer;
}

enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor) {
    GGML_ASSERT(tensor && !tensor->buffer && tensor->view_src && tensor->view_src->buffer && tensor->view_src->data &&
                "a view is placed after its root, once");
    tensor->buffer = tensor->view_src->buffer;
    tensor->data   = (char *) tensor->view_src->data + tensor->view_offs;
    return ggml_backend_buffer_init_tensor(tensor->buffer, tensor);
}

enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, void *addr) {
    GGML_ASSERT(tensor && !tensor->buffer && !tensor->data && !tensor->view_src && "a root tensor is placed once");
    const uintptr_t base = (uintptr_t) ggml_backend_buffer_get_base(buffer), at = (uintptr_t) addr;
    const size_t    size = ggml_backend_buffer_get_size(buffer), own = ggml_backend_buffer_get_alloc_size(buffer, tensor);
    GGML_ASSERT(at >= base && at - base <= size && own <= size - (at - base) && "the tensor lies inside the buffer");
    tensor->buffer = buffer;
    tensor->data   = addr;
    return ggml_backend_buffer_init_tensor(buffer, tensor);
}

/* The buffer of a tensor of which `n` pieces of `size` bytes, `stride` apart, are read or written at `offset`; the
 * arguments are checked. NULL when there is nothing to do. */
static ggml_backend_buffer_t buffer_for(const struct ggml_tensor *t, const char *call, size_t offset, size_t size, size_t n,
                                        size_t stride) {
    GGML_ASSERT(t);
    if (size == 0 || n == 0) return NULL;
    const ggml_backend_buffer_t buffer = buffer_of(t);
    if (!buffer || !t->data) GGML_ABORT("%s: tensor \"%s\" is not in a buffer", call, t->name);
    size_t end, last;
    if (!size_mul(&last, n - 1, stride) || !size_add(&end, last, size) || !size_add(&end, end, offset) ||
        end > ggml_nbytes(t)) {
        GGML_ABORT("%s: %zu x %zu bytes at %zu exceed the %zu bytes of tensor \"%s\"", call, n, size, offset,
                   ggml_nbytes(t), t->name);
    }
    return buffer;
}

void ggml_backend_tensor_set(struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    const ggml_backend_buffer_t buffer = buffer_for(t, __func__, offset, size, 1, 0);
    if (buffer) buffer->iface.set_tensor(buffer, t, data, offset, size);
}

void ggml_backend_tensor_get(const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    const ggml_backend_buffer_t buffer = buffer_for(t, __func__, offset, size, 1, 0);
    if (buffer) buffer->iface.get_tensor(buffer, t, data, offset, size);
}

void ggml_backend_tensor_set_2d(struct ggml_tensor *t, const void *data, size_t offset, size_t size, size_t n,
                                size_t stride_tensor, size_t stride_data) {
    const ggml_backend_buffer_t buffer = buffer_for(t, __func__, offset, size, n, stride_tensor);
    if (!buffer) return;
    if (buffer->iface.set_tensor_2d && n > 1) {
        buffer->iface.set_tensor_2d(buffer, t, data, offset, size, n, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buffer->iface.set_tensor(buffer, t, (const char *) data + i*stride_data, offset + i*stride_tensor, size);
    }
}

void ggml_backend_tensor_get_2d(const struct ggml_tensor *t, void *data, size_t offset, size_t size, size_t n,
                                size_t stride_tensor, size_t stride_data) {
    const ggml_backend_buffer_t buffer = buffer_for(t, __func__, offset, size, n, stride_tensor);
    if (!buffer) return;
    if (buffer->iface.get_tensor_2d && n > 1) {
        buffer->iface.get_tensor_2d(buffer, t, data, offset, size, n, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buffer->iface.get_tensor(buffer, t, (char *) data + i*stride_data, offset + i*stride_tensor, size);
    }
}

void ggml_backend_tensor_memset(struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    const ggml_backend_buffer_t buffer = buffer_for(t, __func__, offset, size, 1, 0);
    if (!buffer) return;
    GGML_ASSERT(buffer->iface.memset_tensor && "this buffer type cannot fill tensors");
    buffer->iface.memset_tensor(buffer, t, value, offset, size);
}

static void same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b, const char *call) {
    if (a->type == b->type && ggml_are_same_shape(a, b) && ggml_are_same_stride(a, b)) return;
    GGML_ABORT("%s: tensors \"%s\" and \"%s\" differ in type, shape or strides", call, a->name, b->name);
}

/* Piece by piece through the stack: neither side is host memory. */
static void copy_through_host(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    char piece[16384];
    const size_t n = ggml_nbytes(src);
    for (size_t i = 0; i < n; i += sizeof piece) {
        const size_t size = n - i < sizeof piece ? n - i : sizeof piece;
        ggml_backend_tensor_get(src, piece, i, size);
        ggml_backend_tensor_set(dst, piece, i, size);
    }
}

void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst) {
    same_layout(src, dst, __func__);
    const size_t n = ggml_nbytes(src);
    if (src == dst || n == 0) return;
    GGML_ASSERT(buffer_of(src) && buffer_of(dst) && src->data && dst->data && "tensors to be copied are in buffers");
    if      (ggml_backend_buffer_is_host(buffer_of(src)))   ggml_backend_tensor_set(dst, src->data, 0, n);
    else if (ggml_backend_buffer_is_host(buffer_of(dst)))   ggml_backend_tensor_get(src, dst->data, 0, n);
    else if (!ggml_backend_buffer_copy_tensor(src, dst))    copy_through_host(src, dst);
}

/* ---- backends ----------------------------------------------------------------------------------------------------- */

ggml_guid_t ggml_backend_guid(ggml_backend_t backend) { return backend ? backend->guid : NULL; }
const char *ggml_backend_name(ggml_backend_t backend) { return backend ? backend->iface.get_name(backend) : "NULL"; }
void        ggml_backend_free(ggml_backend_t backend) { if (backend) backend->iface.free(backend); }

ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend) {
    GGML_ASSERT(backend);
    return backend->device;
}

ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend) {
    return ggml_backend_dev_buffer_type(ggml_backend_get_device(backend));
}

ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size) {
    return ggml_backend_buft_alloc_buffer(ggml_backend_get_default_buffer_type(backend), size);
}

size_t ggml_backend_get_alignment(ggml_backend_t backend) {
    return ggml_backend_buft_get_alignment(ggml_backend_get_default_buffer_type(backend));
}

size_t ggml_backend_get_max_size(ggml_backend_t backend) {
    return ggml_backend_buft_get_max_size(ggml_backend_get_default_buffer_type(backend));
}

void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset,
                                   size_t size) {
    GGML_ASSERT(backend);
    if      (!backend->iface.set_tensor_async)              ggml_backend_tensor_set(t, data, offset, size);
    else if (buffer_for(t, __func__, offset, size, 1, 0))   backend->iface.set_tensor_async(backend, t, data, offset, size);
}

void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset,
                                   size_t size) {
    GGML_ASSERT(backend);
    if      (!backend->iface.get_tensor_async)              ggml_backend_tensor_get(t, data, offset, size);
    else if (buffer_for(t, __func__, offset, size, 1, 0))   backend->iface.get_tensor_async(backend, t, data, offset, size);
}

void ggml_backend_tensor_set_2d_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset,
                                      size_t size, size_t n, size_t stride_tensor, size_t stride_data) {
    GGML_ASSERT(backend);
    if (!buffer_for(t, __func__, offset, size, n, stride_tensor)) return;
    if (backend->iface.set_tensor_2d_async && n > 1) {
        backend->iface.set_tensor_2d_async(backend, t, data, offset, size, n, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ggml_backend_tensor_set_async(backend, t, (const char *) data + i*stride_data, offset + i*stride_tensor, size);
    }
}

void ggml_backend_tensor_get_2d_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset,
                                      size_t size, size_t n, size_t stride_tensor, size_t stride_data) {
    GGML_ASSERT(backend);
    if (!buffer_for(t, __func__, offset, size, n, stride_tensor)) return;
    if (backend->iface.get_tensor_2d_async && n > 1) {
        backend->iface.get_tensor_2d_async(backend, t, data, offset, size, n, stride_tensor, stride_data);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ggml_backend_tensor_get_async(backend, t, (char *) data + i*stride_data, offset + i*stride_tensor, size);
    }
}

void ggml_backend_tensor_copy_async(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src,
                                    struct ggml_tensor *dst) {
    same_layout(src, dst, __func__);
    if (src == dst) return;
    GGML_ASSERT(to);
    if (to->iface.cpy_tensor_async && to->iface.cpy_tensor_async(from, to, src, dst)) return;
    ggml_backend_synchronize(from);
    ggml_backend_synchronize(to);
    ggml_backend_tensor_copy(src, dst);
}

void ggml_backend_synchronize(ggml_backend_t backend) {
    GGML_ASSERT(backend);
    if (backend->iface.synchronize) backend->iface.synchronize(backend);
}

ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *graph) {
    GGML_ASSERT(backend && backend->iface.graph_plan_create && "this backend has no graph plans");
    return backend->iface.graph_plan_create(backend, graph);
}

void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    GGML_ASSERT(backend && backend->iface.graph_plan_free && "this backend has no graph plans");
    backend->iface.graph_plan_free(backend, plan);
}

enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    GGML_ASSERT(backend && backend->iface.graph_plan_compute && "this backend has no graph plans");
    return backend->iface.graph_plan_compute(backend, plan);
}

enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph *graph) {
    GGML_ASSERT(backend);
    return backend->iface.graph_compute(backend, graph);
}

enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    const enum ggml_status status = ggml_backend_graph_compute_async(backend, graph);
    ggml_backend_synchronize(backend);
    return status;
}

bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    return ggml_backend_dev_supports_op(ggml_backend_get_device(backend), op);
}

bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft) {
    return ggml_backend_dev_supports_buft(ggml_backend_get_device(backend), buft);
}

bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    return ggml_backend_dev_offload_op(ggml_backend_get_device(backend), op);
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device) {
    return device && device->iface.event_new ? device->iface.event_new(device) : NULL;
}

void ggml_backend_event_free(ggml_backend_event_t event) {
    if (event) event->device->iface.event_free(event->device, event);
}

void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend) {
    GGML_ASSERT(backend && backend->iface.event_record && "this backend has no events");
    backend->iface.event_record(backend, event);
}

void ggml_backend_event_synchronize(ggml_backend_event_t event) {
    GGML_ASSERT(event && event->device->iface.event_synchronize);
    event->device->iface.event_synchronize(event->device, event);
}

void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    GGML_ASSERT(backend && backend->iface.event_wait && "this backend has no events");
    backend->iface.event_wait(backend, event);
}

/* ---- devices ------------------------------------------------------------------------------------------------------ */

const char *ggml_backend_dev_name(ggml_backend_dev_t device)        { return device->iface.get_name(device); }
const char *ggml_backend_dev_description(ggml_backend_dev_t device) { return device->iface.get_description(device); }

void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *available, size_t *total) {
    *available = *total = 0;
    device->iface.get_memory(device, available, total);
}

enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device) { return device->iface.get_type(device); }

void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    memset(props, 0, sizeof *props);
    device->iface.get_props(device, props);
}

ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device) { return device->reg; }

ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params) {
    GGML_ASSERT(device);
    return device->iface.init_backend(device, params);
}

ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device) {
    GGML_ASSERT(device);
    return device->iface.get_buffer_type(device);
}

ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device) {
    GGML_ASSERT(device);
    return device->iface.get_host_buffer_type ? device->iface.get_host_buffer_type(device) : NULL;
}

ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device, void *p, size_t size,
                                                            size_t max_tensor_size) {
    GGML_ASSERT(device && device->iface.buffer_from_host_ptr && "this device cannot use host memory as it is");
    return device->iface.buffer_from_host_ptr(device, p, size, max_tensor_size);
}

bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    GGML_ASSERT(device);
    return device->iface.supports_op(device, op);
}

bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    GGML_ASSERT(device);
    return device->iface.supports_buft(device, buft);
}

bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    GGML_ASSERT(device);
    return device->iface.offload_op && device->iface.offload_op(device, op);
}

const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis axis) {
    static const struct { enum ggml_backend_meta_split_axis axis; const char *name; } names[] = {
        { GGML_BACKEND_SPLIT_AXIS_0, "0" }, { GGML_BACKEND_SPLIT_AXIS_1, "1" }, { GGML_BACKEND_SPLIT_AXIS_2, "2" },
        { GGML_BACKEND_SPLIT_AXIS_3, "3" }, { GGML_BACKEND_SPLIT_AXIS_MIRRORED, "MIRRORED" },
        { GGML_BACKEND_SPLIT_AXIS_PARTIAL, "PARTIAL" }, { GGML_BACKEND_SPLIT_AXIS_NONE, "NONE" },
    };
    for (size_t i = 0; i < sizeof names/sizeof names[0]; i++) if (names[i].axis == axis) return names[i].name;
    return "UNKNOWN";
}

/* ---- registry ----------------------------------------------------------------------------------------------------- */

const char *ggml_backend_reg_name(ggml_backend_reg_t reg)      { GGML_ASSERT(reg); return reg->iface.get_name(reg); }
size_t      ggml_backend_reg_dev_count(ggml_backend_reg_t reg) { GGML_ASSERT(reg); return reg->iface.get_device_count(reg); }

ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index) {
    GGML_ASSERT(reg);
    return reg->iface.get_device(reg, index);
}

void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name) {
    GGML_ASSERT(reg);
    return reg->iface.get_proc_address ? reg->iface.get_proc_address(reg, name) : NULL;
}

/* A list of pointers that grows. */
struct list {
    void **items;
    size_t n, capacity;
};

static bool list_has(const struct list *list, const void *item) {
    for (size_t i = 0; i < list->n; i++) if (list->items[i] == item) return true;
    return false;
}

static bool list_add(struct list *list, void *item) {
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity ? 2*list->capacity : 16;
        void **items = realloc(list->items, capacity*sizeof *items);
        if (!items) return false;
        list->items = items, list->capacity = capacity;
    }
    list->items[list->n++] = item;
    return true;
}

static void list_remove(struct list *list, const void *item) {
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) if (list->items[i] != item) list->items[n++] = list->items[i];
    list->n = n;
}

static struct { struct list regs, devices; } registry;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t  registry_once = PTHREAD_ONCE_INIT;

static void add_reg(ggml_backend_reg_t reg) {
    pthread_mutex_lock(&registry_lock);
    bool ok = list_has(&registry.regs, reg);
    if (!ok && list_add(&registry.regs, reg)) {
        ok = true;
        for (size_t i = 0; i < ggml_backend_reg_dev_count(reg); i++) {
            ok = list_add(&registry.devices, ggml_backend_reg_dev_get(reg, i)) && ok;
        }
    }
    pthread_mutex_unlock(&registry_lock);
    if (!ok) LOG_ERROR("registry: out of memory for %s\n", ggml_backend_reg_name(reg));
}

static void add_builtins(void) {
    for (size_t i = 0; i < builtin_count(); i++) add_reg(builtin_reg(i));
}

void ggml_backend_register(ggml_backend_reg_t reg) {
    pthread_once(&registry_once, add_builtins);
    if (reg) add_reg(reg);
}

void ggml_backend_device_register(ggml_backend_dev_t device) {
    pthread_once(&registry_once, add_builtins);
    pthread_mutex_lock(&registry_lock);
    const bool ok = list_has(&registry.devices, device) || list_add(&registry.devices, device);
    pthread_mutex_unlock(&registry_lock);
    if (!ok) LOG_ERROR("registry: out of memory for device %s\n", ggml_backend_dev_name(device));
}

bool registry_remove(ggml_backend_reg_t reg) {
    pthread_once(&registry_once, add_builtins);
    pthread_mutex_lock(&registry_lock);
    const bool found = list_has(&registry.regs, reg);
    if (found) {
        for (size_t i = 0; i < ggml_backend_reg_dev_count(reg); i++) {
            list_remove(&registry.devices, ggml_backend_reg_dev_get(reg, i));
        }
        list_remove(&registry.regs, reg);
    }
    pthread_mutex_unlock(&registry_lock);
    return found;
}

static size_t count(const struct list *list) {
    pthread_once(&registry_once, add_builtins);
    pthread_mutex_lock(&registry_lock);
    const size_t n = list->n;
    pthread_mutex_unlock(&registry_lock);
    return n;
}

/* NULL past the end: another thread may have shortened the list since it was counted. */
static void *item(const struct list *list, size_t i) {
    pthread_once(&registry_once, add_builtins);
    pthread_mutex_lock(&registry_lock);
    void *p = i < list->n ? list->items[i] : NULL;
    pthread_mutex_unlock(&registry_lock);
    return p;
}

/* ASCII only, whatever the locale. */
static bool same_name(const char *a, const char *b) {
    for (;; a++, b++) {
        const char x = *a >= 'A' && *a <= 'Z' ? (char) (*a + 32) : *a, y = *b >= 'A' && *b <= 'Z' ? (char) (*b + 32) : *b;
        if (x != y) return false;
        if (!x) return true;
    }
}

size_t ggml_backend_reg_count(void) { return count(&registry.regs); }
size_t ggml_backend_dev_count(void) { return count(&registry.devices); }

ggml_backend_reg_t ggml_backend_reg_get(size_t index) {
    ggml_backend_reg_t reg = item(&registry.regs, index);
    GGML_ASSERT(reg && "registry index in range");
    return reg;
}

ggml_backend_dev_t ggml_backend_dev_get(size_t index) {
    ggml_backend_dev_t device = item(&registry.devices, index);
    GGML_ASSERT(device && "device index in range");
    return device;
}

ggml_backend_reg_t ggml_backend_reg_by_name(const char *name) {
    ggml_backend_reg_t reg;
    for (size_t i = 0; name && (reg = item(&registry.regs, i)); i++) if (same_name(ggml_backend_reg_name(reg), name)) return reg;
    return NULL;
}

ggml_backend_dev_t ggml_backend_dev_by_name(const char *name) {
    ggml_backend_dev_t dev;
    for (size_t i = 0; name && (dev = item(&registry.devices, i)); i++) if (same_name(ggml_backend_dev_name(dev), name)) return dev;
    return NULL;
}

ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type) {
    ggml_backend_dev_t dev;
    for (size_t i = 0; (dev = item(&registry.devices, i)); i++) if (ggml_backend_dev_type(dev) == type) return dev;
    return NULL;
}

static ggml_backend_t init_if(ggml_backend_dev_t dev, const char *params) {
    return dev ? ggml_backend_dev_init(dev, params) : NULL;
}

ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params) {
    return init_if(ggml_backend_dev_by_name(name), params);
}

ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params) {
    return init_if(ggml_backend_dev_by_type(type), params);
}

ggml_backend_t ggml_backend_init_best(void) {
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    if (!dev) dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
    if (!dev) dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return init_if(dev, NULL);
}

/* ---- a graph on another backend ------------------------------------------------------------------------------------ */

/* Copies of tensors, found by the slot of the original in `seen`. Roots lie in `owned` and get memory, views in `views`. */
struct copier {
    struct ggml_hash_set  seen;
    struct ggml_tensor  **copies;       /* [seen.size] */
    struct ggml_context  *owned, *views;
};

static struct ggml_tensor *copy_of(struct copier *c, struct ggml_tensor *t);

static bool copy_links(struct copier *c, const struct ggml_tensor *t, struct ggml_tensor *copy) {
    copy->op    = t->op;
    copy->flags = t->flags;
    memcpy(copy->nb, t->nb, sizeof t->nb);
    memcpy(copy->op_params, t->op_params, sizeof t->op_params);
    ggml_set_name(copy, t->name);
    if (t->view_src) {
        copy->view_src  = copy_of(c, t->view_src);
        copy->view_offs = t->view_offs;
        if (!copy->view_src) return false;
    }
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        copy->src[i] = t->src[i] ? copy_of(c, t->src[i]) : NULL;
        if (t->src[i] && !copy->src[i]) return false;
    }
    return true;
}

/* The copy of t and of what it needs; NULL when out of memory. In a graph's order sources come first, so this goes no
 * deeper than a view and its root. */
static struct ggml_tensor *copy_of(struct copier *c, struct ggml_tensor *t) {
    const size_t slot = hash_find(&c->seen, t);
    if (slot == HASH_FULL) return NULL;
    if (hash_used(&c->seen, slot)) return c->copies[slot];
    struct ggml_tensor *copy = ggml_dup_tensor(t->view_src ? c->views : c->owned, t);
    if (!copy) return NULL;
    hash_insert(&c->seen, t);
    c->copies[slot] = copy;
    return copy_links(c, t, copy) ? copy : NULL;
}

/* An upper bound of the tensors that a graph reaches. */
static size_t count_reached(const struct ggml_cgraph *graph) {
    size_t n = (size_t) graph->n_leafs*2;
    for (int i = 0; i < graph->n_nodes; i++) {
        n += 2;
        for (int s = 0; s < GGML_MAX_SRC; s++) n += graph->nodes[i]->src[s] ? 2 : 0;
    }
    return n;
}

static bool copier_init(struct copier *c, const struct ggml_cgraph *graph) {
    const size_t n = count_reached(graph);
    const struct ggml_init_params tensors = { .mem_size = (n + 1)*ggml_tensor_overhead(), .no_alloc = true };
    struct ggml_init_params owned = tensors;
    owned.mem_size += ggml_graph_overhead_custom((size_t) graph->size, false);
    *c = (struct copier) { .seen = ggml_hash_set_new(n + 1) };
    if (!c->seen.keys) return false;
    c->copies = calloc(c->seen.size, sizeof(struct ggml_tensor *));
    c->owned  = c->copies ? ggml_init(owned)   : NULL;
    c->views  = c->owned  ? ggml_init(tensors) : NULL;
    return c->views;
}

static struct ggml_cgraph *copy_nodes(struct copier *c, const struct ggml_cgraph *graph) {
    for (int i = 0; i < graph->n_leafs; i++) if (!copy_of(c, graph->leafs[i])) return NULL;
    for (int i = 0; i < graph->n_nodes; i++) if (!copy_of(c, graph->nodes[i])) return NULL;
    struct ggml_cgraph *copy = ggml_new_graph_custom(c->owned, (size_t) graph->size, false);
    if (!copy) return NULL;
    for (int i = 0; i < graph->n_leafs; i++) copy->leafs[i] = copy_of(c, graph->leafs[i]);
    for (int i = 0; i < graph->n_nodes; i++) copy->nodes[i] = copy_of(c, graph->nodes[i]);
    copy->n_leafs = graph->n_leafs;
    copy->n_nodes = graph->n_nodes;
    return copy;
}

/* Gives views their place and roots the original's data. */
static bool copy_data(struct copier *c) {
    for (size_t i = 0; i < c->seen.size; i++) {
        if (!hash_used(&c->seen, i)) continue;
        struct ggml_tensor *t = c->seen.keys[i], *copy = c->copies[i];
        if (copy->view_src) {
            if (ggml_backend_view_init(copy) != GGML_STATUS_SUCCESS) return false;
        } else if (t->buffer && t->data) {
            ggml_backend_tensor_copy(t, copy);
        } else if (t->data) {
            ggml_backend_tensor_set(copy, t->data, 0, ggml_nbytes(t));
        }
    }
    return true;
}

struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct copier c;
    struct ggml_backend_graph_copy result = {0};
    GGML_ASSERT(graph);
    if (copier_init(&c, graph)) {
        result.graph = copy_nodes(&c, graph);
        if (result.graph) result.buffer = ggml_backend_alloc_ctx_tensors(c.owned, backend);
    }
    const bool ok = result.buffer && copy_data(&c);
    ggml_hash_set_free(&c.seen);
    free(c.copies);
    result.ctx_allocated   = c.owned;
    result.ctx_unallocated = c.views;
    if (ok) return result;
    LOG_ERROR("graph copy: out of memory on %s\n", ggml_backend_name(backend));
    ggml_backend_graph_copy_free(result);
    return (struct ggml_backend_graph_copy) {0};
}

void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy) {
    ggml_backend_buffer_free(copy.buffer);
    ggml_free(copy.ctx_allocated);
    ggml_free(copy.ctx_unallocated);
}

static bool is_among(const struct ggml_tensor *t, struct ggml_tensor const *const *list, size_t n) {
    for (size_t i = 0; i < n; i++) if (list[i] == t) return true;
    return false;
}

bool ggml_backend_compare_graph_backend(ggml_backend_t a, ggml_backend_t b, struct ggml_cgraph *graph,
                                        ggml_backend_eval_callback callback, void *user_data,
                                        struct ggml_tensor const *const *test_nodes, size_t n_test) {
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(b, graph);
    if (!copy.buffer) return false;
    if (n_test > 0) {
        ggml_backend_graph_compute(a, graph);
        ggml_backend_graph_compute(b, copy.graph);
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *t1 = graph->nodes[i], *t2 = copy.graph->nodes[i];
        if (n_test == 0) {
            struct ggml_cgraph one = ggml_graph_view(graph, i, i + 1), two = ggml_graph_view(copy.graph, i, i + 1);
            ggml_backend_graph_compute(a, &one);
            ggml_backend_graph_compute(b, &two);
        }
        if (op_is_view(t1->op) || (n_test > 0 && !is_among(t1, test_nodes, n_test))) continue;
        if (!callback(i, t1, t2, user_data)) break;
    }
    ggml_backend_graph_copy_free(copy);
    return true;
}
