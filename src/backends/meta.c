/* One device that stands for several.
 *
 * Promises what every device does: tensors in its buffers hold the data of the whole tensor, and a graph gives the same bits as
 * on the device behind it. The work and the memory are those of the first of the devices; how tensors could be divided is
 * not asked. There is one such device for each first device, and it stays as long as the process. */

#include "backend_impl.h"
#include "core.h"

#include <pthread.h>
#include <stdlib.h>

struct meta {
    struct ggml_backend_device device;
    ggml_backend_dev_t         first;
    struct meta               *next;
};

static struct meta    *metas;
static pthread_mutex_t metas_lock = PTHREAD_MUTEX_INITIALIZER;

static ggml_backend_dev_t first(ggml_backend_dev_t dev) { return ((struct meta *) dev->context)->first; }

static const char *meta_name(ggml_backend_dev_t dev)        { (void) dev; return "Meta"; }
static const char *meta_description(ggml_backend_dev_t dev) { return ggml_backend_dev_description(first(dev)); }
static enum ggml_backend_dev_type meta_type(ggml_backend_dev_t dev) { (void) dev; return GGML_BACKEND_DEVICE_TYPE_META; }
static void meta_memory(ggml_backend_dev_t dev, size_t *available, size_t *total) {
    ggml_backend_dev_memory(first(dev), available, total);
}
static void meta_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    ggml_backend_dev_get_props(first(dev), props);
    props->name = meta_name(dev);
    props->type = meta_type(dev);
}
static ggml_backend_t meta_init(ggml_backend_dev_t dev, const char *params) {
    ggml_backend_t backend = ggml_backend_dev_init(first(dev), params);
    if (backend) backend->device = dev;
    return backend;
}
static ggml_backend_buffer_type_t meta_buft(ggml_backend_dev_t dev)      { return ggml_backend_dev_buffer_type(first(dev)); }
static ggml_backend_buffer_type_t meta_host_buft(ggml_backend_dev_t dev) { return ggml_backend_dev_host_buffer_type(first(dev)); }
static ggml_backend_buffer_t meta_from_ptr(ggml_backend_dev_t dev, void *p, size_t size, size_t max_tensor_size) {
    return ggml_backend_dev_buffer_from_host_ptr(first(dev), p, size, max_tensor_size);
}
static bool meta_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    return ggml_backend_dev_supports_op(first(dev), op);
}
static bool meta_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    return ggml_backend_dev_supports_buft(first(dev), buft);
}
static bool meta_offload_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    return ggml_backend_dev_offload_op(first(dev), op);
}

ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
                                            ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud) {
    (void) get_split_state, (void) get_split_state_ud;
    GGML_ASSERT(devs && n_devs > 0 && devs[0] && "a meta device stands for at least one device");
    pthread_mutex_lock(&metas_lock);
    struct meta *meta = metas;
    while (meta && meta->first != devs[0]) meta = meta->next;
    if (!meta && (meta = calloc(1, sizeof *meta))) {
        *meta = (struct meta) {
            .device = { .iface = {
                .get_name      = meta_name,      .get_description      = meta_description, .get_memory  = meta_memory,
                .get_type      = meta_type,      .get_props            = meta_props,       .init_backend = meta_init,
                .get_buffer_type = meta_buft,    .get_host_buffer_type = meta_host_buft,   .buffer_from_host_ptr = meta_from_ptr,
                .supports_op   = meta_supports_op, .supports_buft      = meta_supports_buft, .offload_op = meta_offload_op,
            }, .reg = devs[0]->reg, .context = meta },
            .first = devs[0], .next = metas,
        };
        metas = meta;
    }
    pthread_mutex_unlock(&metas_lock);
    if (!meta) LOG_ERROR("meta device: out of memory\n");
    return meta ? &meta->device : NULL;
}
