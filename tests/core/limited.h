#ifndef LIMITED_H
#define LIMITED_H
/* A second device for tests: it knows few ops, nobody else can read its memory (its addresses are made up) and it reads
 * nobody else's. `deferred`: what it is told is queued, with its operands as they are then, and done when somebody waits. */

#include "backend_impl.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { LIMITED_BASE = 0x10000, LIMITED_QUEUE = 256 };

struct limited_task {
    enum { TASK_NODE, TASK_WRITE, TASK_MARK } kind;
    struct ggml_tensor dst, src[3];
    char   *to;
    const void *from;
    size_t size;
};

/* The one device and its switches. */
static struct limited {
    bool ops[GGML_OP_COUNT];                    /* what it supports */
    bool deferred, offload;
    int  n_nodes, n_graphs;                     /* computed so far */
    size_t bytes_in;                            /* written to its memory */
    int  n_buffers, fail_alloc;                 /* held; refuse every allocation */
    struct limited_task queue[LIMITED_QUEUE];
    int  n_queued, n_done, n_recorded;
} limited;

/* ---- memory: base addresses are LIMITED_BASE, tensors' data counts from there ---------------------------------------- */

static ggml_backend_buffer_t limited_home(const struct ggml_tensor *t) { return t->view_src ? t->view_src->buffer : t->buffer; }
static char *limited_real(const struct ggml_tensor *t) {
    return (char *) limited_home(t)->context + ((uintptr_t) t->data - LIMITED_BASE);
}

static void limited_run(int until);

static const char *limited_buft_name(ggml_backend_buffer_type_t b) { (void) b; return "LTD"; }
static size_t limited_alignment(ggml_backend_buffer_type_t b)      { (void) b; return 64; }
static void *limited_base(ggml_backend_buffer_t b)                 { (void) b; return (void *) (uintptr_t) LIMITED_BASE; }
static void limited_buffer_free(ggml_backend_buffer_t b) {
    limited_run(limited.n_queued);
    limited.n_buffers--;
    free(b->context);
}
static void limited_set(ggml_backend_buffer_t b, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) b;
    limited.bytes_in += size;
    memcpy(limited_real(t) + offset, data, size);
}
static void limited_get(ggml_backend_buffer_t b, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    (void) b;
    memcpy(data, limited_real(t) + offset, size);
}
static void limited_clear(ggml_backend_buffer_t b, uint8_t value) { memset(b->context, value, b->size); }

static ggml_backend_buffer_t limited_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    const struct ggml_backend_buffer_i iface = {
        .free_buffer = limited_buffer_free, .get_base = limited_base, .set_tensor = limited_set, .get_tensor = limited_get,
        .clear = limited_clear,
    };
    void *p = limited.fail_alloc ? NULL : malloc(size);
    ggml_backend_buffer_t b = p ? ggml_backend_buffer_init(buft, iface, p, size) : NULL;
    if (!b) { free(p); return NULL; }
    limited.n_buffers++;
    return b;
}

static struct ggml_backend_buffer_type limited_buft = {
    .iface = { .get_name = limited_buft_name, .alloc_buffer = limited_alloc, .get_alignment = limited_alignment },
};

/* ---- computing: plain loops over contiguous F32, sums in double ------------------------------------------------------- */

static void limited_mul_mat(const struct ggml_tensor *d, const struct ggml_tensor *a, const struct ggml_tensor *b,
                            const int32_t *ids) {
    const float *x = (const float *) limited_real(a), *y = (const float *) limited_real(b);
    float *z = (float *) limited_real(d);
    const int64_t k = a->ne[0], n = a->ne[1], columns = ggml_nelements(d)/n;
    for (int64_t j = 0; j < columns; j++) {
        const float *w = ids ? x + ids[j]*k*n : x;
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) sum += (double) w[i*k + l]*(double) y[j*k + l];
            z[j*n + i] = (float) sum;
        }
    }
}

static void limited_node(const struct limited_task *task) {
    const struct ggml_tensor *d = &task->dst, *a = &task->src[0], *b = &task->src[1];
    float *z = (float *) limited_real(d);
    limited.n_nodes++;
    if (d->op == GGML_OP_MUL_MAT)    limited_mul_mat(d, a, b, NULL);
    if (d->op == GGML_OP_MUL_MAT_ID) limited_mul_mat(d, a, b, (const int32_t *) limited_real(&task->src[2]));
    if (d->op == GGML_OP_ADD) {
        for (int64_t i = 0; i < ggml_nelements(d); i++) z[i] = ((float *) limited_real(a))[i] + ((float *) limited_real(b))[i];
    }
    if (d->op == GGML_OP_CPY) memmove(z, limited_real(a), ggml_nbytes(a));
}

/* Does everything before queue position `until`. */
static void limited_run(int until) {
    for (; limited.n_done < until; limited.n_done++) {
        const struct limited_task *task = &limited.queue[limited.n_done % LIMITED_QUEUE];
        if (task->kind == TASK_NODE)  limited_node(task);
        if (task->kind == TASK_WRITE) memcpy(task->to, task->from, task->size);
    }
}

static void limited_push(const struct limited_task *task) {
    if (limited.n_queued - limited.n_done == LIMITED_QUEUE) limited_run(limited.n_done + 1);
    limited.queue[limited.n_queued++ % LIMITED_QUEUE] = *task;
    if (!limited.deferred) limited_run(limited.n_queued);
}

static enum ggml_status limited_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    (void) backend;
    limited.n_graphs++;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (op_is_view(node->op)) continue;
        struct limited_task task = { .kind = TASK_NODE, .dst = *node };
        for (int s = 0; s < 3; s++) if (node->src[s]) task.src[s] = *node->src[s];
        limited_push(&task);
    }
    return GGML_STATUS_SUCCESS;
}

static void limited_set_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) backend;
    limited.bytes_in += size;
    limited_push(&(struct limited_task) { .kind = TASK_WRITE, .to = limited_real(t) + offset, .from = data, .size = size });
}

static void limited_synchronize(ggml_backend_t backend) { (void) backend; limited_run(limited.n_queued); }

static void limited_record(ggml_backend_t backend, ggml_backend_event_t event) {
    (void) backend;
    limited.n_recorded++;
    *(int *) event->context = limited.n_queued;
}
static void limited_wait(ggml_backend_t backend, ggml_backend_event_t event) { (void) backend, (void) event; }    /* in order */

/* ---- backend and device ----------------------------------------------------------------------------------------------- */

static const char *limited_name(ggml_backend_t backend) { (void) backend; return "LTD"; }
static void limited_free(ggml_backend_t backend)        { limited_run(limited.n_queued); free(backend); }

static const char *limited_dev_name(ggml_backend_dev_t dev) { (void) dev; return "LTD0"; }
static const char *limited_dev_description(ggml_backend_dev_t dev) { (void) dev; return "a limited device"; }
static void limited_dev_memory(ggml_backend_dev_t dev, size_t *available, size_t *total) {
    (void) dev;
    *available = *total = 1 << 20;
}
static enum ggml_backend_dev_type limited_dev_type(ggml_backend_dev_t dev) { (void) dev; return GGML_BACKEND_DEVICE_TYPE_GPU; }
static void limited_dev_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    props->name = limited_dev_name(dev);
    props->type = GGML_BACKEND_DEVICE_TYPE_GPU;
}
static ggml_backend_buffer_type_t limited_dev_buft(ggml_backend_dev_t dev) { (void) dev; return &limited_buft; }
static bool limited_dev_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    (void) dev;
    if (op_is_view(op->op)) return true;
    bool ok = limited.ops[op->op] && ggml_is_contiguous(op);
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        ok = ok && (!op->src[s] || ((op->src[s]->type == GGML_TYPE_F32 || s == 2) && ggml_is_contiguous(op->src[s])));
    }
    return ok && (op->op != GGML_OP_ADD || ggml_are_same_shape(op->src[0], op->src[1]));
}
static bool limited_dev_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    (void) dev;
    return buft == &limited_buft;
}
static bool limited_dev_offload(ggml_backend_dev_t dev, const struct ggml_tensor *op) { (void) dev, (void) op; return limited.offload; }
static ggml_backend_event_t limited_event_new(ggml_backend_dev_t dev) {
    ggml_backend_event_t event = malloc(sizeof *event);
    int *position = calloc(1, sizeof *position);
    if (!event || !position) { free(event); free(position); return NULL; }
    *event = (struct ggml_backend_event) { .device = dev, .context = position };
    return event;
}
static void limited_event_free(ggml_backend_dev_t dev, ggml_backend_event_t event) { (void) dev; free(event->context); free(event); }
static void limited_event_sync(ggml_backend_dev_t dev, ggml_backend_event_t event) {
    (void) dev;
    limited_run(*(int *) event->context);
}
static ggml_backend_t limited_init(ggml_backend_dev_t dev, const char *params);

static const char *limited_reg_name(ggml_backend_reg_t reg) { (void) reg; return "Limited"; }
static size_t limited_reg_count(ggml_backend_reg_t reg)     { (void) reg; return 1; }
static ggml_backend_dev_t limited_reg_device(ggml_backend_reg_t reg, size_t index);

static struct ggml_backend_reg limited_reg = {
    .api_version = GGML_BACKEND_API_VERSION,
    .iface = { .get_name = limited_reg_name, .get_device_count = limited_reg_count, .get_device = limited_reg_device },
};
static struct ggml_backend_device limited_device = {
    .iface = {
        .get_name = limited_dev_name, .get_description = limited_dev_description, .get_memory = limited_dev_memory,
        .get_type = limited_dev_type, .get_props = limited_dev_props, .init_backend = limited_init,
        .get_buffer_type = limited_dev_buft, .supports_op = limited_dev_supports_op, .supports_buft = limited_dev_supports_buft,
        .offload_op = limited_dev_offload, .event_new = limited_event_new, .event_free = limited_event_free,
        .event_synchronize = limited_event_sync,
    },
    .reg = &limited_reg,
};
static ggml_backend_dev_t limited_reg_device(ggml_backend_reg_t reg, size_t index) { (void) reg, (void) index; return &limited_device; }

static ggml_backend_t limited_init(ggml_backend_dev_t dev, const char *params) {
    static ggml_guid guid = { 1, 2, 3 };
    ggml_backend_t backend = malloc(sizeof *backend);
    (void) params;
    if (!backend) return NULL;
    *backend = (struct ggml_backend) {
        .guid = &guid, .device = dev,
        .iface = { .get_name = limited_name, .free = limited_free, .set_tensor_async = limited_set_async,
                   .synchronize = limited_synchronize, .graph_compute = limited_compute, .event_record = limited_record,
                   .event_wait = limited_wait },
    };
    return backend;
}

/* A fresh device that knows MUL_MAT and ADD. */
static void limited_reset(void) {
    limited = (struct limited) { .deferred = false };
    limited.ops[GGML_OP_MUL_MAT] = limited.ops[GGML_OP_ADD] = true;
}

#endif
