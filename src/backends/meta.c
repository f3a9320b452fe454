/* One device that stands for several: the device, its memory, and the way of data in and out of divided tensors.
 *
 * A buffer has addresses that are nobody's; what lies at them is attached to each root (a tensor that is no view) when it is
 * placed: how it is divided, and where the shares are. In buffers of an allocator's (usage COMPUTE) every device has a buffer of
 * the full size, and a share lies where the whole would; elsewhere each root has memory of its own on the devices, no more
 * than its shares. Sets and gets take any bytes of any tensor. Memory of the devices is taken when the first tensor is placed.
 *
 * Views carry nothing: their shares follow from their root's (meta_split.c). Devices stay as long as the process; there is one
 * for each list of devices with a callback and its data. */

#include "meta.h"
#include "core.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

enum { BASE = 1 << 20, CHUNK = 64 };

/* What `extra` of a root points to. */
struct place {
    split  split;
    bool   computed;
    size_t at, size;                                /* of the whole, in the buffer */
    ggml_backend_buffer_t memory[META_MAX];         /* of the share; NULL: at the same place of the device's buffer */
    void  *extra[META_MAX];                         /* what the device attached to its share */
};

struct chunk {
    struct chunk *next;
    struct place  places[CHUNK];
};

struct meta_buffer {
    struct meta_device *meta;
    struct chunk *chunks;
    size_t n_places;
    int    fill;                                    /* the byte that unplaced memory holds; -1: any */
    ggml_backend_buffer_t members[META_MAX];        /* of the full size, once one is needed */
};

static void buffer_free(ggml_backend_buffer_t buffer);

static struct meta_buffer *meta_buffer_of(const struct ggml_tensor *t) {
    return t->buffer && t->buffer->iface.free_buffer == buffer_free ? t->buffer->context : NULL;
}

/* Walks the places of a buffer; starts as {0}. */
struct cursor {
    struct chunk *chunk;
    size_t        i;
};

static struct place *places_next(const struct meta_buffer *mb, struct cursor *at) {
    if (at->i == mb->n_places) return NULL;
    if (at->i%CHUNK == 0) at->chunk = at->chunk ? at->chunk->next : mb->chunks;
    return &at->chunk->places[at->i++%CHUNK];
}

static void place_release(struct place *p) {
    for (int j = 0; j < META_MAX; j++) {
        ggml_backend_buffer_free(p->memory[j]);
        p->memory[j] = NULL;
    }
}

static void buffer_reset(ggml_backend_buffer_t buffer) {
    struct meta_buffer *mb = buffer->context;
    struct place *p;
    for (struct cursor at = {0}; (p = places_next(mb, &at)); ) place_release(p);
    mb->n_places = 0;
    for (int j = 0; j < mb->meta->n; j++) if (mb->members[j]) ggml_backend_buffer_reset(mb->members[j]);
}

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct meta_buffer *mb = buffer->context;
    buffer_reset(buffer);
    for (struct chunk *c = mb->chunks, *next; c; c = next) { next = c->next; free(c); }
    for (int j = 0; j < META_MAX; j++) ggml_backend_buffer_free(mb->members[j]);
    free(mb);
}

static void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct meta_buffer *mb = buffer->context;
    struct place *p;
    mb->fill = value;
    for (int j = 0; j < META_MAX; j++) if (mb->members[j]) ggml_backend_buffer_clear(mb->members[j], value);
    for (struct cursor at = {0}; (p = places_next(mb, &at)); )
        for (int j = 0; j < META_MAX; j++) if (p->memory[j]) ggml_backend_buffer_clear(p->memory[j], value);
}

static void *buffer_base(ggml_backend_buffer_t buffer) { (void) buffer; return (void *) (uintptr_t) BASE; }

static bool members_ready(struct meta_buffer *mb, size_t size) {
    for (int j = 0; j < mb->meta->n; j++) {
        if (mb->members[j]) continue;
        mb->members[j] = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(mb->meta->devices[j]), size);
        if (!mb->members[j]) return false;
        ggml_backend_buffer_set_usage(mb->members[j], GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        if (mb->fill >= 0) ggml_backend_buffer_clear(mb->members[j], (uint8_t) mb->fill);
    }
    return true;
}

/* A free record; the one of a root that lay there before where memory is placed anew without a reset. */
static struct place *place_new(struct meta_buffer *mb, size_t at, size_t size, bool own) {
    struct place *p = NULL, *old;
    for (struct cursor c = {0}; own && (old = places_next(mb, &c)); ) {
        if (old->at >= at + size || at >= old->at + old->size) continue;
        place_release(old);
        old->size = 0;
        p = old;
    }
    if (!p) {
        struct chunk **last = &mb->chunks;
        for (size_t i = mb->n_places; *last && i >= CHUNK; i -= CHUNK) last = &(*last)->next;
        if (!*last && !(*last = calloc(1, sizeof **last))) return NULL;
        p = &(*last)->places[mb->n_places++%CHUNK];
    }
    memset(p, 0, sizeof *p);
    p->at = at, p->size = size;
    return p;
}

/* Each device's share of a root in memory of its own. */
static bool place_own(const struct meta_buffer *mb, struct place *p, const struct ggml_tensor *root) {
    for (int j = 0; j < mb->meta->n; j++) {
        struct ggml_tensor share = *root;
        share.buffer = NULL, share.data = NULL, share.extra = NULL;
        split_slice(root, &p->split, root, &p->split, mb->meta->n, j, &share);
        if (ggml_is_empty(&share)) continue;
        const ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(mb->meta->devices[j]);
        const ggml_backend_buffer_t memory = ggml_backend_buft_alloc_buffer(buft, ggml_backend_buft_get_alloc_size(buft, &share));
        if (!memory) return false;
        p->memory[j] = memory;
        if (mb->fill >= 0) ggml_backend_buffer_clear(memory, (uint8_t) mb->fill);
        share.op = GGML_OP_NONE;
        if (ggml_backend_tensor_alloc(memory, &share, ggml_backend_buffer_get_base(memory)) != GGML_STATUS_SUCCESS) return false;
        p->extra[j] = share.extra;
    }
    return true;
}

/* What the program says of a leaf; nodes are whole until they are computed. */
static bool ask(const struct meta_device *meta, const struct ggml_tensor *root, split *s) {
    const char *why = "it is not contiguous";
    *s = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    if (root->op != GGML_OP_NONE || !meta->get_split_state) return true;
    *s = meta->get_split_state(root, meta->userdata);
    if (split_check(root, meta->n, s, &why) && (!split_axis(s) || ggml_is_contiguous(root))) return true;
    LOG_ERROR("meta device: tensor \"%s\" cannot be divided along axis %s as it was asked: %s\n", root->name,
        ggml_backend_meta_split_axis_name(s->axis), why);
    return false;
}

static enum ggml_status buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *t) {
    struct meta_buffer *mb = buffer->context;
    if (t->view_src || ggml_is_empty(t)) return GGML_STATUS_SUCCESS;
    const bool own = buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE;
    split s = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    t->extra = NULL;
    if (own && !ask(mb->meta, t, &s)) return GGML_STATUS_FAILED;
    struct place *p = place_new(mb, (uintptr_t) t->data - BASE, ggml_nbytes(t), own);
    if (p) p->split = s, p->computed = t->op != GGML_OP_NONE;
    if (!p || !(own ? place_own(mb, p, t) : members_ready(mb, buffer->size))) {
        if (p) place_release(p);
        LOG_ERROR("meta device: out of memory for tensor \"%s\"\n", t->name);
        return GGML_STATUS_ALLOC_FAILED;
    }
    t->extra = p;
    return GGML_STATUS_SUCCESS;
}

/* ---- shares -------------------------------------------------------------------------------------------------------- */

split *meta_split_of(const struct ggml_tensor *root, int n) {
    const struct meta_buffer *mb = meta_buffer_of(root);
    struct place *p = mb && mb->meta->n == n ? root->extra : NULL;
    return p ? &p->split : NULL;
}

bool meta_computed(const struct ggml_tensor *root) { return ((const struct place *) root->extra)->computed; }

void meta_slice(const struct ggml_tensor *t, const split *v, int n, int device, struct ggml_tensor *slice) {
    const struct ggml_tensor *root = root_of(t);
    const struct place *p = root->extra;
    const struct meta_buffer *mb = meta_buffer_of(root);
    const ggml_backend_buffer_t own = p->memory[device], member = mb->members[device];
    *slice = *t;
    slice->view_src  = NULL, slice->view_offs = 0, slice->buffer = own ? own : member, slice->data = NULL;
    slice->extra = t == root ? p->extra[device] : NULL;
    const size_t offset = split_slice(root, &p->split, t, v, n, device, slice) + (own ? 0 : p->at);
    if (slice->buffer) slice->data = (char *) ggml_backend_buffer_get_base(slice->buffer) + offset;
}

/* ---- data ---------------------------------------------------------------------------------------------------------- */

enum way { SET, GET };

static void move(enum way way, struct ggml_tensor *t, char *data, size_t offset, size_t size, size_t n, size_t stride_t,
                 size_t stride_data) {
    if (way == SET) ggml_backend_tensor_set_2d(t, data, offset, size, n, stride_t, stride_data);
    else            ggml_backend_tensor_get_2d(t, data, offset, size, n, stride_t, stride_data);
}

/* Bytes from..to of each of n blocks of the split axis, the first one `first`; the data starts at `from`. */
static void move_blocks(enum way way, struct ggml_tensor *slices, const struct ggml_tensor *root, const split *s, int n_devices,
                        size_t first, size_t n, size_t from, size_t to, char *data) {
    const size_t block = split_block(root, (int) s->axis);
    size_t own[META_MAX] = {0};
    struct piece piece;
    for (struct pieces p = pieces_of(root, s, n_devices); pieces_next(&p, &piece); ) own[piece.device] += piece.size;
    for (struct pieces p = pieces_of(root, s, n_devices); pieces_next(&p, &piece); ) {
        const size_t lo = piece.at > from ? piece.at : from, hi = piece.at + piece.size < to ? piece.at + piece.size : to;
        if (hi <= lo) continue;
        move(way, &slices[piece.device], data + (lo - from), first*own[piece.device] + piece.local + (lo - piece.at), hi - lo, n,
             own[piece.device], block);
    }
}

static void move_divided(enum way way, struct ggml_tensor *slices, const struct ggml_tensor *root, const split *s, int n_devices,
                         char *data, size_t offset, size_t size) {
    const size_t block = split_block(root, (int) s->axis);
    while (size > 0) {
        const size_t from = offset%block, rest = block - from, whole = from == 0 ? size/block : 0;
        const size_t to = whole || rest < size ? block : from + size, n = whole ? whole : 1;
        move_blocks(way, slices, root, s, n_devices, offset/block, n, from, to, data);
        const size_t done = n*(to - from);
        data += done, offset += done, size -= done;
    }
}

enum { FEW_FLOATS = 1024 };

/* The first contributor keeps the whole, so that what was set is what is got. */
static void set_summands(struct ggml_tensor *slices, const split *s, int n, const char *data, size_t offset, size_t size) {
    const float zeros[FEW_FLOATS] = {0};
    bool first = true;
    for (int j = 0; j < n; j++) {
        if (!s->ne[j]) continue;
        for (size_t i = 0; i < size; i += sizeof zeros) {
            const size_t part = size - i < sizeof zeros ? size - i : sizeof zeros;
            ggml_backend_tensor_set(&slices[j], first ? data + i : (const char *) zeros, offset + i, part);
        }
        first = false;
    }
}

void meta_sum(const struct ggml_tensor *slices, const split *s, int n, float *sum, float *part, size_t at, size_t size) {
    bool first = true;
    for (int j = 0; j < n; j++) {
        if (!s->ne[j]) continue;
        ggml_backend_tensor_get(&slices[j], first ? sum : part, at, size);
        for (size_t i = 0; !first && i < size/sizeof *sum; i++) sum[i] += part[i];
        first = false;
    }
    if (first) memset(sum, 0, size);
}

/* Whole floats are added. */
static void get_summands(struct ggml_tensor *slices, const split *s, int n, char *data, size_t offset, size_t size) {
    float sum[FEW_FLOATS], part[FEW_FLOATS];
    while (size > 0) {
        const size_t skip = offset%sizeof(float), at = offset - skip, left = ggml_nbytes(&slices[0]) - at;
        const size_t most = left < sizeof sum ? left : sizeof sum, got = most - skip < size ? most - skip : size;
        meta_sum(slices, s, n, sum, part, at, most);
        memcpy(data, (const char *) sum + skip, got);
        data += got, offset += got, size -= got;
    }
}

/* `t` may be a view: its bytes are those of its root. */
static void move_bytes(enum way way, const struct ggml_tensor *t, char *data, size_t offset, size_t size) {
    const struct ggml_tensor *root = root_of(t);
    const struct meta_buffer *mb = meta_buffer_of(root);
    const struct place *p = root->extra;
    GGML_ASSERT(mb && p && "a tensor of a meta device is placed by ggml_backend_tensor_alloc or an allocator");
    const split *s = &p->split;
    const int n = mb->meta->n;
    struct ggml_tensor slices[META_MAX];
    for (int j = 0; j < n; j++) meta_slice(root, s, n, j, &slices[j]);
    offset += (size_t) ((const char *) t->data - (const char *) root->data);
    if (split_axis(s)) move_divided(way, slices, root, s, n, data, offset, size);
    else if (way == GET && split_partial(s)) get_summands(slices, s, n, data, offset, size);
    else if (split_partial(s)) set_summands(slices, s, n, data, offset, size);
    else for (int j = 0; j < (way == GET ? 1 : n); j++) move(way, &slices[j], data, offset, size, 1, 0, 0);
}

void meta_get(const struct ggml_tensor *root, void *data, size_t offset, size_t size) {
    move_bytes(GET, root, data, offset, size);
}

static void buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) buffer;
    move_bytes(SET, t, (char *) (uintptr_t) data, offset, size);        /* only read */
}
static void buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    (void) buffer;
    move_bytes(GET, t, data, offset, size);
}
static void buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    char part[4096];
    (void) buffer;
    memset(part, value, sizeof part);
    for (size_t i = 0; i < size; i += sizeof part) {
        move_bytes(SET, t, part, offset + i, size - i < sizeof part ? size - i : sizeof part);
    }
}

/* ---- buffer types -------------------------------------------------------------------------------------------------- */

static struct meta_device *meta_of_buft(ggml_backend_buffer_type_t buft) { return (struct meta_device *) buft->context; }

static ggml_backend_buffer_type_t member_type(ggml_backend_buffer_type_t buft, int j) {
    return ggml_backend_dev_buffer_type(meta_of_buft(buft)->devices[j]);
}

static const char *buft_name(ggml_backend_buffer_type_t buft) { return meta_of_buft(buft)->buft_name; }

static ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    const struct ggml_backend_buffer_i iface = {
        .free_buffer = buffer_free, .get_base = buffer_base, .init_tensor = buffer_init_tensor, .memset_tensor = buffer_memset,
        .set_tensor = buffer_set, .get_tensor = buffer_get, .clear = buffer_clear, .reset = buffer_reset,
    };
    struct meta_buffer *mb = size <= SIZE_MAX/2 ? calloc(1, sizeof *mb) : NULL;
    ggml_backend_buffer_t buffer = mb ? ggml_backend_buffer_init(buft, iface, mb, size) : NULL;
    if (!buffer) {
        LOG_ERROR("meta device: no memory for a buffer of %zu bytes\n", size);
        free(mb);
        return NULL;
    }
    *mb = (struct meta_buffer) { .meta = meta_of_buft(buft), .fill = -1 };
    return buffer;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    size_t most = 1;
    for (int j = 0; j < meta_of_buft(buft)->n; j++) {
        const size_t own = ggml_backend_buft_get_alignment(member_type(buft, j));
        if (own > most) most = own;
    }
    return most;
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    size_t least = SIZE_MAX;
    for (int j = 0; j < meta_of_buft(buft)->n; j++) {
        const size_t own = ggml_backend_buft_get_max_size(member_type(buft, j));
        if (own < least) least = own;
    }
    return least;
}

static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *t) {
    size_t most = ggml_nbytes(t);
    for (int j = 0; j < meta_of_buft(buft)->n; j++) {
        const size_t own = ggml_backend_buft_get_alloc_size(member_type(buft, j), t);
        if (own > most) most = own;
    }
    return most;
}

static bool buft_is_host(ggml_backend_buffer_type_t buft) { (void) buft; return false; }

/* ---- devices ------------------------------------------------------------------------------------------------------- */

struct meta_device *meta_device_of(ggml_backend_dev_t dev) { return dev->context; }

static const char *dev_name(ggml_backend_dev_t dev)        { return meta_device_of(dev)->name; }
static const char *dev_description(ggml_backend_dev_t dev) { return meta_device_of(dev)->description; }
static enum ggml_backend_dev_type dev_type(ggml_backend_dev_t dev) { (void) dev; return GGML_BACKEND_DEVICE_TYPE_META; }

static void dev_memory(ggml_backend_dev_t dev, size_t *available, size_t *total) {
    const struct meta_device *meta = meta_device_of(dev);
    *available = *total = 0;
    for (int j = 0; j < meta->n; j++) {
        size_t own_available = 0, own_total = 0;
        ggml_backend_dev_memory(meta->devices[j], &own_available, &own_total);
        if (!size_add(available, *available, own_available)) *available = SIZE_MAX;
        if (!size_add(total, *total, own_total)) *total = SIZE_MAX;
    }
}

static void dev_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    const struct meta_device *meta = meta_device_of(dev);
    *props = (struct ggml_backend_dev_props) {
        .name = meta->name, .description = meta->description, .type = GGML_BACKEND_DEVICE_TYPE_META,
        .caps = { .async = true, .mmap_support = true },
    };
    dev_memory(dev, &props->memory_free, &props->memory_total);
    for (int j = 0; j < meta->n; j++) {
        struct ggml_backend_dev_props own;
        ggml_backend_dev_get_props(meta->devices[j], &own);
        props->caps.async        = props->caps.async        && own.caps.async;
        props->caps.mmap_support = props->caps.mmap_support && own.caps.mmap_support;
    }
}

static ggml_backend_t dev_init(ggml_backend_dev_t dev, const char *params) { return meta_backend_init(meta_device_of(dev), params); }
static ggml_backend_buffer_type_t dev_buft(ggml_backend_dev_t dev)         { return &meta_device_of(dev)->buft; }

/* What all of them copy from fast; NULL when they do not agree. */
static ggml_backend_buffer_type_t dev_host_buft(ggml_backend_dev_t dev) {
    const struct meta_device *meta = meta_device_of(dev);
    const ggml_backend_buffer_type_t first = ggml_backend_dev_host_buffer_type(meta->devices[0]);
    for (int j = 1; j < meta->n; j++) if (ggml_backend_dev_host_buffer_type(meta->devices[j]) != first) return NULL;
    return first;
}

static bool dev_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    const struct meta_device *meta = meta_device_of(dev);
    for (int j = 0; j < meta->n; j++) if (!ggml_backend_dev_supports_op(meta->devices[j], op)) return false;
    return true;
}

static bool dev_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    const struct meta_device *meta = meta_device_of(dev);
    if (buft->iface.get_name != buft_name) return false;
    const struct meta_device *other = meta_of_buft(buft);
    return meta->n == other->n && !memcmp(meta->devices, other->devices, (size_t) meta->n*sizeof *meta->devices);
}

typedef const char *name_of(ggml_backend_dev_t dev);
static const char *memory_name(ggml_backend_dev_t dev) { return ggml_backend_buft_name(ggml_backend_dev_buffer_type(dev)); }

/* "Meta(A,B)"; NULL when out of memory. */
static char *joined(ggml_backend_dev_t *devs, int n, name_of *of) {
    size_t size = sizeof "Meta()";
    for (int j = 0; j < n; j++) size += strlen(of(devs[j])) + 1;
    char *text = malloc(size), *end = text;
    if (!text) return NULL;
    end = strcpy(end, "Meta(") + strlen("Meta(");
    for (int j = 0; j < n; j++) {
        if (j > 0) *end++ = ',';
        const char *own = of(devs[j]);
        end = strcpy(end, own) + strlen(own);
    }
    strcpy(end, ")");
    return text;
}

static struct meta_device *device_new(ggml_backend_dev_t *devs, int n, ggml_backend_meta_get_split_state_t callback, void *userdata) {
    struct meta_device *meta = calloc(1, sizeof *meta);
    if (!meta) return NULL;
    *meta = (struct meta_device) {
        .device = { .iface = {
            .get_name        = dev_name,  .get_description      = dev_description, .get_memory   = dev_memory,
            .get_type        = dev_type,  .get_props            = dev_props,       .init_backend = dev_init,
            .get_buffer_type = dev_buft,  .get_host_buffer_type = dev_host_buft,
            .supports_op     = dev_supports_op, .supports_buft  = dev_supports_buft,
        }, .reg = &meta_reg, .context = meta },
        .buft = { .iface = {
            .get_name = buft_name, .alloc_buffer = buft_alloc, .get_alignment = buft_alignment, .get_max_size = buft_max_size,
            .get_alloc_size = buft_alloc_size, .is_host = buft_is_host,
        }, .device = &meta->device, .context = meta },
        .n = n, .get_split_state = callback, .userdata = userdata,
        .name = joined(devs, n, ggml_backend_dev_name), .description = joined(devs, n, ggml_backend_dev_description),
        .buft_name = joined(devs, n, memory_name),
    };
    memcpy(meta->devices, devs, (size_t) n*sizeof *devs);
    if (meta->name && meta->description && meta->buft_name) return meta;
    free(meta->name);
    free(meta->description);
    free(meta->buft_name);
    free(meta);
    return NULL;
}

static struct meta_device *metas;
static pthread_mutex_t metas_lock = PTHREAD_MUTEX_INITIALIZER;

ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
                                            ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud) {
    bool ok = devs && n_devs > 0 && n_devs <= META_MAX;
    for (size_t j = 0; ok && j < n_devs; j++) ok = devs[j] && ggml_backend_dev_type(devs[j]) != GGML_BACKEND_DEVICE_TYPE_META;
    if (!ok) {
        LOG_ERROR("meta device: it stands for 1 to %d devices that are none themselves, not for %zu\n", META_MAX, n_devs);
        return NULL;
    }
    pthread_mutex_lock(&metas_lock);
    struct meta_device *meta = metas;
    while (meta && ((size_t) meta->n != n_devs || memcmp(meta->devices, devs, n_devs*sizeof *devs) ||
                    meta->get_split_state != get_split_state || meta->userdata != get_split_state_ud)) meta = meta->next;
    if (!meta && (meta = device_new(devs, (int) n_devs, get_split_state, get_split_state_ud))) {
        meta->next = metas;
        metas = meta;
    }
    pthread_mutex_unlock(&metas_lock);
    if (!meta) LOG_ERROR("meta device: out of memory\n");
    return meta ? &meta->device : NULL;
}
