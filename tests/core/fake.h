#ifndef FAKE_H
#define FAKE_H
/* A buffer type for tests: host memory, any alignment and largest size, and a count of what is held. */

#include "backend_impl.h"

#include <stdlib.h>
#include <string.h>

struct fake {
    struct ggml_backend_buffer_type type;   /* first: the type is the fake */
    size_t align, max_size;
    int    n_buffers;                       /* held now */
    size_t bytes;
    int    n_allocs, fail_at;               /* the fail_at-th allocation fails (0: none) */
};

static const char *fake_name(ggml_backend_buffer_type_t buft) { (void) buft; return "fake"; }
static size_t fake_align(ggml_backend_buffer_type_t buft)     { return ((struct fake *) buft)->align; }
static size_t fake_max(ggml_backend_buffer_type_t buft)       { return ((struct fake *) buft)->max_size; }
static bool   fake_is_host(ggml_backend_buffer_type_t buft)   { (void) buft; return true; }
static void  *fake_base(ggml_backend_buffer_t buffer)         { return buffer->context; }
static void   fake_free(ggml_backend_buffer_t buffer) {
    struct fake *f = (struct fake *) buffer->buft;
    f->n_buffers--;
    f->bytes -= buffer->size;
    free(buffer->context);
}
static void fake_set(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy((char *) t->data + offset, data, size);
}
static void fake_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    (void) buffer;
    memset((char *) t->data + offset, value, size);
}

static ggml_backend_buffer_t fake_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    struct fake *f = (struct fake *) buft;
    const struct ggml_backend_buffer_i iface = { .free_buffer = fake_free, .get_base = fake_base, .set_tensor = fake_set,
                                                 .memset_tensor = fake_memset };
    if (++f->n_allocs == f->fail_at) return NULL;
    void *base = aligned_alloc(f->align, (size + f->align - 1)/f->align*f->align);
    if (!base) return NULL;
    ggml_backend_buffer_t buffer = ggml_backend_buffer_init(buft, iface, base, size);
    if (!buffer) { free(base); return NULL; }
    f->n_buffers++;
    f->bytes += size;
    return buffer;
}

static struct fake fake_new(size_t align, size_t max_size) {
    return (struct fake) {
        .type = { .iface = { .get_name = fake_name, .alloc_buffer = fake_alloc, .get_alignment = fake_align,
                             .get_max_size = fake_max, .is_host = fake_is_host } },
        .align = align, .max_size = max_size,
    };
}

#endif
