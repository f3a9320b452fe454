#ifndef META_H
#define META_H
/* What the files of the meta device share.
 *
 * A tensor on the meta device is one of
 *   MIRRORED   every device holds the whole
 *   axis 0..3  every device holds a share of the axis: the pieces, cut in the order segment, repeat, device
 *   PARTIAL    every contributing device holds a summand of the whole (ne[device] is 1 or 0)
 *   UNKNOWN    a view whose elements no axis of it divides
 * Segment s repeats nr[s] times and gives ne[s*n + device] elements to each of the n devices:
 *
 *      | 0 0 0 1 1 | 0 0 0 1 1 | 0 1 1 |      n = 2; ne = { 3,2, 1,2 }, nr = { 2, 1 }
 *        segment 0   its repeat   seg. 1
 *
 * A device's share lies packed in its own memory, in the order of the whole. */

#include "backend_impl.h"

enum { META_MAX = GGML_BACKEND_META_MAX_DEVICES, META_SEGMENTS = 16 };

typedef struct ggml_backend_meta_split_state split;

/* ---- splits (meta_split.c) --------------------------------------------------------------------------------------- */

static inline bool split_is(const split *s, enum ggml_backend_meta_split_axis axis) { return s->axis == axis; }
static inline bool split_axis(const split *s)     { return (unsigned) s->axis < GGML_MAX_DIMS; }
static inline bool split_mirrored(const split *s) { return s->axis == GGML_BACKEND_SPLIT_AXIS_MIRRORED; }
static inline bool split_partial(const split *s)  { return s->axis == GGML_BACKEND_SPLIT_AXIS_PARTIAL; }

static inline bool split_one_round(const split *s) { return s->n_segments == 1 && s->nr[0] == 1; }     /* each device has one range */

split   split_of(enum ggml_backend_meta_split_axis axis);
bool    split_equal(const split *a, const split *b, int n);
int64_t split_share(const split *s, int n, int device);             /* elements of the axis; of PARTIAL 1 or 0; else 1 */
bool    split_blocks(const struct ggml_tensor *t, const split *s, int n);       /* no block of weights is divided */
/* Brings what a callback said of a root into the form above; false, with a reason, when it is no division of the tensor. */
bool    split_check(const struct ggml_tensor *t, int n, split *s, const char **why);
/* The split of a view from that of its root: by the places of its elements alone, whatever made the view. */
void    split_view(const struct ggml_tensor *root, const split *s, const struct ggml_tensor *view, int n, split *out);
/* The device's share of a root or a view as a tensor: ne and nb; returns its offset in the device's share of the root. */
size_t  split_slice(const struct ggml_tensor *root, const split *s, const struct ggml_tensor *view, const split *v, int n,
                    int device, struct ggml_tensor *slice);

/* A run of bytes of one device within the block of the split axis (the bytes that its index runs through). */
struct piece {
    size_t at, size, local;     /* in the whole block, and in the device's share of it */
    int    device;
};
struct pieces {
    const split *s;
    size_t unit;                /* bytes of an element of the axis (of a block of weights on axis 0, counted by `per`) */
    size_t per, at, local[META_MAX];
    int    n, device;
    uint32_t segment, repeat;
};
struct pieces pieces_of(const struct ggml_tensor *root, const split *s, int n);
bool          pieces_next(struct pieces *p, struct piece *piece);
size_t        split_block(const struct ggml_tensor *root, int axis);            /* bytes of that block */

/* What a node needs of its sources and what it then is. */
struct step {
    const struct ggml_tensor *node;
    int   n;
    split have[GGML_MAX_SRC];   /* in */
    split place;                /* in: of the memory that a node in place of another tensor writes to; else UNKNOWN */
    split want[GGML_MAX_SRC], out;
};
bool step_divided(struct step *step);       /* the rule of its op; false when it has none for these splits */
void step_whole(struct step *step);         /* everything whole, on every device */

/* ---- buffers and devices (meta.c) --------------------------------------------------------------------------------- */

struct meta_device {
    struct ggml_backend_device      device;
    struct ggml_backend_buffer_type buft;
    int                n;
    ggml_backend_dev_t devices[META_MAX];
    ggml_backend_meta_get_split_state_t get_split_state;
    void              *userdata;
    char              *name, *description, *buft_name;
    struct meta_device *next;
};
struct meta_device *meta_device_of(ggml_backend_dev_t dev);

static inline const struct ggml_tensor *root_of(const struct ggml_tensor *t) { return t->view_src ? t->view_src : t; }
/* A root and its split now; NULL when it is in no buffer of n devices like these. */
split *meta_split_of(const struct ggml_tensor *root, int n);
/* True: computed, so that its split may change; false: its split is what the callback said. */
bool   meta_computed(const struct ggml_tensor *root);
/* The share of a root or a view, with split v, in the device's memory. */
void   meta_slice(const struct ggml_tensor *t, const split *v, int n, int device, struct ggml_tensor *slice);
/* The sum of PARTIAL slices, in the order of the devices: floats in bytes at .. at + size - 1; `part` has as much room as `sum`. */
void   meta_sum(const struct ggml_tensor *slices, const split *s, int n, float *sum, float *part, size_t at, size_t size);
/* Bytes of the root as a whole, gathered from the devices. */
void   meta_get(const struct ggml_tensor *root, void *data, size_t offset, size_t size);

/* ---- computing (meta_compute.c) ------------------------------------------------------------------------------------ */

ggml_backend_t meta_backend_init(struct meta_device *meta, const char *params);
extern struct ggml_backend_reg meta_reg;

#endif
