/* GGUF files: metadata as key/value pairs, tensor descriptions, data. Owns the context of both, the reader and the writer.
 *
 *   "GGUF" | version u32 | tensors i64 | pairs i64 | pairs | tensor infos | padding | data, each tensor padded
 *
 * Reading. Any bytes give a context or one line of log and NULL. `take` is the one place that looks at the input; the first
 * failure stays and everything after it fails too. Lengths are compared with the bytes that are left before anything is
 * allocated, and memory grows with the bytes that really arrive. Files of the other byte order are read as well.
 * Writing. Bytes go straight to the file; nothing is collected in memory.
 * A model split over several files is the client's business, as is what the keys mean. */

#define _FILE_OFFSET_BITS 64                                    /* files above 2 GiB on 32-bit systems */

#include "gguf.h"
#include "core.h"
#include "ggml-backend.h"
#include "quant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define fseeko _fseeki64
#define ftello _ftelli64
#endif

/* ---- limits, each with its reason -------------------------------------------------------------------------------- */

#define KEY_MAX    65535u               /* of the format */
#define STRING_MAX ((size_t) 1 << 30)   /* what other readers take, too */
#define ARRAY_MAX  ((uint64_t) 1 << 30)
#define KV_MIN     14u                  /* bytes of the shortest pair: "k" = one byte */
#define INFO_MIN   24u                  /* bytes of the shortest tensor info: no name, no dimensions */
#define PROBES_MAX 512u                 /* look-ups per name while reading: far above chance, so a file made to collide is refused */
#define STEP       ((size_t) 1 << 20)   /* a long value is read, and data of a buffer written, in pieces from here up */
#define AHEAD      16384u               /* bytes read at once */

/* ---- the table of value types ------------------------------------------------------------------------------------ */

#define SCALARS(X) \
    X(u8,  uint8_t,  UINT8)  X(i8,  int8_t,  INT8)  X(u16, uint16_t, UINT16)  X(i16, int16_t, INT16) \
    X(u32, uint32_t, UINT32) X(i32, int32_t, INT32) X(f32, float,    FLOAT32) X(bool, bool,   BOOL)  \
    X(u64, uint64_t, UINT64) X(i64, int64_t, INT64) X(f64, double,   FLOAT64)

static const struct { const char *name; size_t size; } kinds[GGUF_TYPE_COUNT] = {
#define X(tag, ctype, NAME) [GGUF_TYPE_##NAME] = { #tag, sizeof(ctype) },
    SCALARS(X)
#undef X
    [GGUF_TYPE_STRING] = { "str", 0 },
    [GGUF_TYPE_ARRAY]  = { "arr", 0 },
};
_Static_assert(sizeof(bool) == 1, "a bool is one byte in a file");

const char *gguf_type_name(enum gguf_type type) { return (unsigned) type < GGUF_TYPE_COUNT ? kinds[type].name : NULL; }

/* ---- the context ------------------------------------------------------------------------------------------------- */

struct pair {
    char          *key;
    enum gguf_type type;        /* of the elements: never ARRAY */
    bool           array;
    size_t         n;           /* elements; 1 for a scalar */
    char          *data;        /* n elements; strings one after the other, each with a terminator */
    size_t        *starts;      /* strings only: [n + 1] where each begins in data */
};

struct info {
    struct ggml_tensor tensor;  /* name, type, shape; where its data are, when it was added by the program */
    size_t             offset;  /* in the data section */
};

/* Names to positions: open addressing, at most half full; a slot holds position + 1. */
struct index { size_t *slots, size; };

struct gguf_context {
    uint32_t     version;
    size_t       alignment, data_offset, data_size;
    struct pair *pairs;
    struct info *infos;
    size_t       n_pairs, pairs_size, n_infos, infos_size;
    struct index keys, names;
    bool         incomplete;    /* a setter ran out of memory: the context is never written */
};

static const char *pair_name(const struct gguf_context *c, size_t i) { return c->pairs[i].key; }
static const char *info_name(const struct gguf_context *c, size_t i) { return c->infos[i].tensor.name; }
typedef const char *(*name_at)(const struct gguf_context *, size_t);

static size_t hash(const char *s) {                             /* FNV-1a, then the mix of splitmix64 */
    uint64_t h = 0xcbf29ce484222325u;
    while (*s) h = (h ^ (uint8_t) *s++)*0x100000001b3u;
    h = (h ^ h >> 30)*0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27)*0x94d049bb133111ebu;
    return (size_t) (h ^ h >> 31);
}

/* The slot of `name` or the free one where it belongs; adds the steps taken to *probes. The index is not empty. */
static size_t *index_slot(const struct gguf_context *c, const struct index *x, name_at at, const char *name, size_t *probes) {
    size_t i = hash(name) & (x->size - 1);
    while (x->slots[i] && strcmp(at(c, x->slots[i] - 1), name)) i = (i + 1) & (x->size - 1), ++*probes;
    return &x->slots[i];
}

static int64_t index_find(const struct gguf_context *c, const struct index *x, name_at at, const char *name) {
    size_t probes = 0;
    return x->size ? (int64_t) *index_slot(c, x, at, name, &probes) - 1 : -1;
}

/* Room for n names, of which those before `have` are entered again when the index grows; false when out of memory. */
static bool index_reserve(const struct gguf_context *c, struct index *x, name_at at, size_t have, size_t n) {
    struct index y = { NULL, x->size ? x->size : 64 };
    if (x->size && n <= x->size/2) return true;
    while (n > y.size/2) y.size *= 2;
    y.slots = calloc(y.size, sizeof *y.slots);
    if (!y.slots) return false;
    size_t probes = 0;
    for (size_t i = 0; i < have; i++) *index_slot(c, &y, at, at(c, i), &probes) = i + 1;
    free(x->slots);
    *x = y;
    return true;
}

/* p with room for n elements, growing by doubling; NULL, with p as it was, when out of memory. */
static void *reserve(void *p, size_t *size, size_t n, size_t element) {
    size_t bytes, wanted = *size ? *size : 16;
    if (p && n <= *size) return p;
    while (wanted < n) if (!size_mul(&wanted, wanted, 2)) return NULL;
    if (!size_mul(&bytes, wanted, element)) return NULL;
    p = realloc(p, bytes);
    if (p) *size = wanted;
    return p;
}

static void pair_free(struct pair *p) {
    free(p->key);
    free(p->data);
    free(p->starts);
}

/* Appends the pair, whose key is new, and owns it from then on; false when out of memory. */
static bool append_pair(struct gguf_context *c, const struct pair *p) {
    size_t probes = 0;
    struct pair *pairs = reserve(c->pairs, &c->pairs_size, c->n_pairs + 1, sizeof *pairs);
    if (!pairs) return false;
    c->pairs = pairs;
    if (!index_reserve(c, &c->keys, pair_name, c->n_pairs, c->n_pairs + 1)) return false;
    c->pairs[c->n_pairs] = *p;
    *index_slot(c, &c->keys, pair_name, p->key, &probes) = ++c->n_pairs;
    return true;
}

static bool append_info(struct gguf_context *c, const struct info *t) {
    size_t probes = 0;
    struct info *infos = reserve(c->infos, &c->infos_size, c->n_infos + 1, sizeof *infos);
    if (!infos) return false;
    c->infos = infos;
    if (!index_reserve(c, &c->names, info_name, c->n_infos, c->n_infos + 1)) return false;
    c->infos[c->n_infos] = *t;
    *index_slot(c, &c->names, info_name, t->tensor.name, &probes) = ++c->n_infos;
    return true;
}

struct gguf_context *gguf_init_empty(void) {
    struct gguf_context *c = calloc(1, sizeof *c);
    if (!c) {
        LOG_ERROR("gguf: out of memory\n");
        return NULL;
    }
    c->version = GGUF_VERSION;
    c->alignment = GGUF_DEFAULT_ALIGNMENT;
    return c;
}

void gguf_free(struct gguf_context *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n_pairs; i++) pair_free(&c->pairs[i]);
    free(c->pairs);
    free(c->infos);
    free(c->keys.slots);
    free(c->names.slots);
    free(c);
}

/* ---- the reader's primitives ------------------------------------------------------------------------------------- */

struct reader {
    gguf_reader_callback_t read;        /* up to n bytes from an offset; fewer: the input ends there */
    void       *user;
    size_t      chunk;                  /* most bytes for one call of read */
    uint64_t    pos, end;               /* bytes handed out; bytes there are */
    uint64_t    start;                  /* where the GGUF begins in its file */
    const char *source;                 /* for messages */
    char        what[96];               /* what is being read, for messages */
    bool        swap, failed, ended;
    size_t      at, have;
    uint8_t     ahead[AHEAD];
};

/* Logs the first failure; always false. */
GGML_ATTRIBUTE_FORMAT(2, 3)
static bool fail(struct reader *r, const char *format, ...) {
    char text[256];
    va_list args;
    if (r->failed) return false;
    r->failed = true;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    LOG_ERROR("gguf: %s: %s: %s (at byte %" PRIu64 ")\n", r->source, r->what, text, r->start + r->pos);
    return false;
}

static bool no_memory(struct reader *r) { return fail(r, "out of memory"); }

/* Names what is being read; a name from the file is shown as far as it can be printed. */
static void about(struct reader *r, const char *what, const char *name) {
    size_t n = (size_t) snprintf(r->what, sizeof r->what, "%s", what);
    if (!name) return;
    r->what[n++] = ' ';
    for (; *name && n < sizeof r->what - 1; name++) r->what[n++] = (char) (*name > ' ' && *name < 127 ? *name : '?');
    r->what[n] = 0;
}

static size_t fetch(struct reader *r, void *out, size_t n) {
    if (r->ended) return 0;
    if (n > r->chunk) n = r->chunk;
    const size_t got = r->read(r->user, out, r->pos, n);
    if (got < n) r->ended = true;
    return got <= n ? got : 0;
}

static bool take(struct reader *r, void *out, size_t n) {
    uint8_t *to = out;
    if (r->failed) return false;
    if (n > r->end - r->pos) return fail(r, "%zu bytes wanted, %" PRIu64 " left", n, r->end - r->pos);
    while (n > 0) {
        const bool direct = r->at == r->have && n >= AHEAD;
        if (direct || r->at == r->have) {
            const uint64_t left = r->end - r->pos;
            const size_t got = fetch(r, direct ? to : r->ahead, direct ? n : left < AHEAD ? (size_t) left : AHEAD);
            if (!got) return fail(r, "%zu bytes cannot be read", n);
            r->at = 0;
            r->have = direct ? 0 : got;
            if (direct) r->pos += got, to += got, n -= got;
            continue;
        }
        const size_t k = n < r->have - r->at ? n : r->have - r->at;
        memcpy(to, r->ahead + r->at, k);
        r->at += k, r->pos += k, to += k, n -= k;
    }
    return true;
}

/* Passes over n bytes that are known to be there. */
static void skip(struct reader *r, uint64_t n) {
    const bool inside = n <= r->have - r->at;
    r->at = inside ? r->at + (size_t) n : 0;
    r->have = inside ? r->have : 0;
    r->pos += n;
}

static void swap_each(void *data, size_t width, size_t n) {
    for (uint8_t *p = data; n > 0; n--, p += width) {
        for (size_t j = 0; j < width/2; j++) {
            const uint8_t byte = p[j];
            p[j] = p[width - 1 - j];
            p[width - 1 - j] = byte;
        }
    }
}

/* A number of the file; 0 after a failure. */
#define TAKE(tag, ctype) \
    static ctype take_##tag(struct reader *r) { \
        ctype v = 0; \
        if (!take(r, &v, sizeof v)) return 0; \
        if (r->swap) swap_each(&v, sizeof v, 1); \
        return v; \
    }
TAKE(u32, uint32_t)
TAKE(i32, int32_t)
TAKE(u64, uint64_t)
TAKE(i64, int64_t)

/* Appends n bytes to the `have` bytes of a block, which keeps room for one more; at most twice of what arrived is held. */
static bool take_onto(struct reader *r, char **block, size_t *size, size_t have, size_t n) {
    if (n > r->end - r->pos) return fail(r, "%zu bytes wanted, %" PRIu64 " left", n, r->end - r->pos);
    do {
        const size_t most = have > STEP ? have : STEP, step = n < most ? n : most;
        char *grown = reserve(*block, size, have + step + 1, 1);
        if (!grown) return no_memory(r);
        *block = grown;
        if (!take(r, grown + have, step)) return false;
        have += step;
        n -= step;
    } while (n > 0);
    return true;
}

/* A length of at most `max` bytes that are really there. */
static bool take_length(struct reader *r, size_t max, size_t *n) {
    const uint64_t length = take_u64(r);
    if (r->failed) return false;
    if (length > max) return fail(r, "a string of %" PRIu64 " bytes, at most %zu are allowed", length, max);
    if (length > r->end - r->pos) return fail(r, "a string of %" PRIu64 " bytes, %" PRIu64 " left", length, r->end - r->pos);
    *n = (size_t) length;
    return true;
}

/* ---- reading pairs ----------------------------------------------------------------------------------------------- */

static bool take_strings(struct reader *r, struct pair *p) {
    size_t starts_size = 0, data_size = 0, end = 0;
    for (size_t i = 0; i <= p->n; i++) {
        size_t length = 0, *starts = reserve(p->starts, &starts_size, i + 1, sizeof *starts);
        if (!starts) return no_memory(r);
        p->starts = starts;
        starts[i] = end;
        if (i == p->n) break;
        if (!take_length(r, STRING_MAX, &length) || !take_onto(r, &p->data, &data_size, end, length)) return false;
        end += length;
        p->data[end++] = 0;
    }
    return true;
}

static bool take_values(struct reader *r, struct pair *p) {
    const size_t width = kinds[p->type].size;
    size_t size = 0;
    if (p->type == GGUF_TYPE_STRING) return take_strings(r, p);
    if (!take_onto(r, &p->data, &size, 0, p->n*width)) return false;
    if (r->swap) swap_each(p->data, width, p->n);
    for (size_t i = 0; p->type == GGUF_TYPE_BOOL && i < p->n; i++) p->data[i] = p->data[i] != 0;
    return true;
}

static bool take_type(struct reader *r, struct pair *p) {
    int32_t type = take_i32(r);
    p->n = 1;
    if (type == GGUF_TYPE_ARRAY) {
        type = take_i32(r);
        const uint64_t n = take_u64(r);
        if (r->failed) return false;
        if (type == GGUF_TYPE_ARRAY) return fail(r, "an array of arrays, expected one level");
        p->array = true;
        p->n = (size_t) n;
        if (type < 0 || type >= GGUF_TYPE_COUNT) return fail(r, "element type %" PRId32 ", expected 0 to 12", type);
        const size_t least = type == GGUF_TYPE_STRING ? 8 : kinds[type].size;
        if (n > ARRAY_MAX) return fail(r, "%" PRIu64 " elements, at most %" PRIu64 " are allowed", n, ARRAY_MAX);
        if (n > (r->end - r->pos)/least)
            return fail(r, "%" PRIu64 " elements of %s in the %" PRIu64 " bytes left", n, kinds[type].name, r->end - r->pos);
    }
    if (r->failed) return false;
    if (type < 0 || type >= GGUF_TYPE_COUNT) return fail(r, "value type %" PRId32 ", expected 0 to 12", type);
    p->type = (enum gguf_type) type;
    return true;
}

static bool power_of_two(size_t n) { return n && !(n & (n - 1)); }

static bool take_alignment(struct reader *r, const struct pair *p, size_t *alignment) {
    uint32_t v;
    if (p->type != GGUF_TYPE_UINT32 || p->array)
        return fail(r, "%s%s, expected u32", p->array ? "array of " : "", kinds[p->type].name);
    memcpy(&v, p->data, sizeof v);
    if (!power_of_two(v)) return fail(r, "%" PRIu32 ", expected a power of two", v);
    *alignment = v;
    return true;
}

static bool is_new(struct reader *r, const struct gguf_context *c, const struct index *x, name_at at, const char *name) {
    size_t probes = 0;
    if (x->size && *index_slot(c, x, at, name, &probes)) return fail(r, "the name is there twice, expected once");
    return probes <= PROBES_MAX || fail(r, "the names are made to collide");
}

static bool take_key(struct reader *r, const struct gguf_context *c, struct pair *p) {
    size_t length = 0, size = 0;
    about(r, "key", NULL);
    if (!take_length(r, KEY_MAX, &length) || !take_onto(r, &p->key, &size, 0, length)) return false;
    p->key[length] = 0;
    about(r, "key", p->key);
    if (length == 0)              return fail(r, "empty");
    if (strlen(p->key) != length) return fail(r, "contains a zero byte");
    return is_new(r, c, &c->keys, pair_name, p->key);
}

static bool take_pair(struct reader *r, struct gguf_context *c) {
    struct pair p = { .key = NULL };
    const bool ok = take_key(r, c, &p) && take_type(r, &p) && take_values(r, &p)
        && (strcmp(p.key, GGUF_KEY_GENERAL_ALIGNMENT) || take_alignment(r, &p, &c->alignment))
        && (append_pair(c, &p) || no_memory(r));
    if (!ok) pair_free(&p);
    return ok;
}

/* ---- reading tensor infos ---------------------------------------------------------------------------------------- */

/* Strides and bytes of a packed tensor of t's type and shape; false when they cannot be counted. */
static bool packed_size(struct ggml_tensor *t, size_t *bytes) {
    const int64_t block = ggml_blck_size(t->type);
    int64_t elements;
    if (!dims_product(t->ne, GGML_MAX_DIMS, &elements)) return false;
    t->nb[0] = ggml_type_size(t->type);
    if ((uint64_t) (t->ne[0]/block) > SIZE_MAX || !size_mul(&t->nb[1], t->nb[0], (size_t) (t->ne[0]/block))) return false;
    for (int i = 1; i < GGML_MAX_DIMS; i++) {
        size_t *next = i < GGML_MAX_DIMS - 1 ? &t->nb[i + 1] : bytes;
        if ((uint64_t) t->ne[i] > SIZE_MAX || !size_mul(next, t->nb[i], (size_t) t->ne[i])) return false;
    }
    return true;
}

static bool take_name(struct reader *r, struct ggml_tensor *t) {
    size_t length = 0;
    about(r, "tensor name", NULL);
    if (!take_length(r, GGML_MAX_NAME - 1, &length) || !take(r, t->name, length)) return false;
    about(r, "tensor", t->name);
    return strlen(t->name) == length || fail(r, "the name contains a zero byte");
}

static bool take_shape(struct reader *r, struct ggml_tensor *t) {
    const uint32_t n_dims = take_u32(r);
    if (n_dims > GGML_MAX_DIMS) return fail(r, "%" PRIu32 " dimensions, expected at most %d", n_dims, GGML_MAX_DIMS);
    for (uint32_t i = 0; i < GGML_MAX_DIMS; i++) {
        t->ne[i] = i < n_dims ? take_i64(r) : 1;
        if (t->ne[i] < 0) return fail(r, "dimension %" PRIu32 " is %" PRId64 ", expected 0 or more", i, t->ne[i]);
    }
    const int32_t type = take_i32(r);
    if (r->failed) return false;
    if (type < 0 || type >= GGML_TYPE_COUNT || !ggml_blck_size((enum ggml_type) type))
        return fail(r, "type %" PRId32 " is not in use", type);
    t->type = (enum ggml_type) type;
    if (t->ne[0] % ggml_blck_size(t->type) != 0)
        return fail(r, "rows of %" PRId64 " elements, expected whole blocks of %" PRId64 " (%s)", t->ne[0],
            ggml_blck_size(t->type), ggml_type_name(t->type));
    return true;
}

static bool take_info(struct reader *r, struct gguf_context *c) {
    struct info t = { .offset = 0 };
    size_t bytes, padded, end;
    if (!take_name(r, &t.tensor) || !is_new(r, c, &c->names, info_name, t.tensor.name) || !take_shape(r, &t.tensor))
        return false;
    if (!packed_size(&t.tensor, &bytes) || !size_pad(&padded, bytes, c->alignment) || !size_add(&end, c->data_size, padded))
        return fail(r, "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] of %s is more than memory can hold", t.tensor.ne[0],
            t.tensor.ne[1], t.tensor.ne[2], t.tensor.ne[3], ggml_type_name(t.tensor.type));
    const uint64_t offset = take_u64(r);
    if (r->failed) return false;
    if (offset != c->data_size) return fail(r, "data at offset %" PRIu64 ", expected %zu", offset, c->data_size);
    t.offset = c->data_size;
    c->data_size = end;
    return append_info(c, &t) || no_memory(r);
}

/* ---- reading a file ---------------------------------------------------------------------------------------------- */

static bool take_count(struct reader *r, const char *of, size_t least, int64_t *n) {
    *n = take_i64(r);
    if (r->failed) return false;
    if (*n < 0 || (uint64_t) *n > (r->end - r->pos)/least)
        return fail(r, "%" PRId64 " %s, expected 0 to what %" PRIu64 " bytes can hold", *n, of, r->end - r->pos);
    return true;
}

static bool take_header(struct reader *r, struct gguf_context *c, int64_t *n_infos, int64_t *n_pairs) {
    char magic[4] = "";
    about(r, "header", NULL);
    if (!take(r, magic, 4)) return false;
    if (memcmp(magic, GGUF_MAGIC, 4)) {
        r->pos = 0;
        return fail(r, "magic bytes %02x %02x %02x %02x, expected \"GGUF\"", (uint8_t) magic[0], (uint8_t) magic[1],
            (uint8_t) magic[2], (uint8_t) magic[3]);
    }
    c->version = take_u32(r);
    if (c->version && !(c->version & 0xffff)) {                 /* no version is that large: the other byte order */
        r->swap = true;
        swap_each(&c->version, 4, 1);
    }
    if (r->failed) return false;
    if (c->version < 2 || c->version > GGUF_VERSION) return fail(r, "version %" PRIu32 ", expected 2 or 3", c->version);
    return take_count(r, "tensors", INFO_MIN, n_infos) && take_count(r, "pairs", KV_MIN, n_pairs);
}

/* Where the last tensor's own bytes end; the padding after them may be missing. */
static size_t data_end(const struct gguf_context *c) {
    const struct info *last = c->n_infos ? &c->infos[c->n_infos - 1] : NULL;
    return last ? last->offset + ggml_nbytes(&last->tensor) : 0;
}

/* Goes to the data section and sets its place. `wanted`: all of it must be there. */
static bool find_data(struct reader *r, struct gguf_context *c, bool wanted) {
    const uint64_t padding = c->n_infos ? -r->pos & (c->alignment - 1) : 0, left = r->end - r->pos;
    const size_t bytes = data_end(c);
    about(r, "data", NULL);
    if (bytes && padding > left) return fail(r, "begins %" PRIu64 " bytes further on, %" PRIu64 " left", padding, left);
    if (bytes && wanted && bytes > left - padding)
        return fail(r, "%zu bytes declared, %" PRIu64 " left", bytes, left - padding);
    if (r->start + r->pos + padding > SIZE_MAX) return fail(r, "begins beyond what this machine can address");
    c->data_offset = (size_t) (r->start + r->pos + padding);
    skip(r, padding < left ? padding : left);
    return true;
}

/* The whole section in the context's first tensor, in this machine's byte order. */
static struct ggml_tensor *take_data(struct reader *r, const struct gguf_context *c, struct ggml_context *ggml) {
    struct ggml_tensor *blob = ggml_new_tensor_1d(ggml, GGML_TYPE_I8, (int64_t) c->data_size);
    const size_t bytes = data_end(c);
    if (!blob) {
        no_memory(r);
        return NULL;
    }
    ggml_set_name(blob, "GGUF tensor data binary blob");
    if (bytes && !take(r, blob->data, bytes)) return NULL;
    const uint64_t left = r->end - r->pos;
    const size_t rest = c->data_size - bytes, there = left < rest ? (size_t) left : rest;
    if (there && !take(r, (char *) blob->data + bytes, there)) return NULL;
    if (rest > there) memset((char *) blob->data + bytes + there, 0, rest - there);
    for (size_t i = 0; r->swap && i < c->n_infos; i++) {
        const struct ggml_tensor *t = &c->infos[i].tensor;
        quant_swap(t->type, (char *) blob->data + c->infos[i].offset, ggml_nbytes(t)/ggml_type_size(t->type));
    }
    return blob;
}

/* The ggml context with one tensor for each info, after the blob if data are loaded. */
static struct ggml_context *make_tensors(struct reader *r, const struct gguf_context *c, bool no_alloc) {
    size_t bytes;
    bool fits = size_mul(&bytes, c->n_infos + !no_alloc, ggml_tensor_overhead());
    if (!no_alloc) fits = fits && size_add(&bytes, bytes, c->data_size) && size_add(&bytes, bytes, GGML_MEM_ALIGN);
    struct ggml_context *ggml = NULL;
    if (fits) ggml = ggml_init((struct ggml_init_params) { bytes, NULL, no_alloc });
    struct ggml_tensor *blob = ggml && !no_alloc ? take_data(r, c, ggml) : NULL;
    bool ok = ggml && (no_alloc || blob);
    if (ok) ggml_set_no_alloc(ggml, true);
    for (size_t i = 0; ok && i < c->n_infos; i++) {
        const struct ggml_tensor *t = &c->infos[i].tensor;
        struct ggml_tensor *made = ggml_new_tensor(ggml, t->type, GGML_MAX_DIMS, t->ne);
        ok = made != NULL;
        if (!ok) break;
        ggml_set_name(made, t->name);
        if (blob) made->data = (char *) blob->data + c->infos[i].offset;
    }
    if (ok) {
        ggml_set_no_alloc(ggml, no_alloc);
        return ggml;
    }
    no_memory(r);
    if (ggml) ggml_free(ggml);
    return NULL;
}

static struct gguf_context *load(struct reader *r, struct gguf_init_params params) {
    struct gguf_context *c = gguf_init_empty();
    int64_t n_infos = 0, n_pairs = 0;
    if (!c) return NULL;
    bool ok = take_header(r, c, &n_infos, &n_pairs);
    if (ok && r->swap && params.ctx && params.no_alloc)         /* the data are used where they are */
        ok = fail(r, "the byte order is not this machine's, expected %s endian: only loading the data (no_alloc = false) converts them",
            *(const uint8_t *) &(const uint16_t) { 1 } ? "little" : "big");
    for (int64_t i = 0; ok && i < n_pairs; i++) ok = take_pair(r, c);
    for (int64_t i = 0; ok && i < n_infos; i++) ok = take_info(r, c);
    ok = ok && find_data(r, c, params.ctx != NULL);
    if (ok && params.ctx) {
        *params.ctx = make_tensors(r, c, params.no_alloc);
        ok = *params.ctx != NULL;
    }
    if (ok) return c;
    gguf_free(c);
    return NULL;
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

struct file_source { FILE *file; uint64_t start, at; };

static size_t file_read(void *user, void *out, uint64_t offset, size_t n) {
    struct file_source *s = user;
    if (s->at != offset && fseeko(s->file, (off_t) (s->start + offset), SEEK_SET) != 0) return 0;
    const size_t got = fread(out, 1, n, s->file);
    s->at = offset + got;
    return got;
}

static size_t memory_read(void *user, void *out, uint64_t offset, size_t n) {
    memcpy(out, (const char *) user + offset, n);
    return n;
}

static struct gguf_context *load_file(FILE *file, const char *name, struct gguf_init_params params) {
    const off_t start = ftello(file);
    const bool sized = start >= 0 && fseeko(file, 0, SEEK_END) == 0;
    const off_t end = sized ? ftello(file) : -1;
    if (!sized || end < start || fseeko(file, start, SEEK_SET) != 0) {
        LOG_ERROR("gguf: %s: the size cannot be found: %s\n", name, strerror(errno));
        return NULL;
    }
    struct file_source s = { file, (uint64_t) start, 0 };
    struct reader r = { .read = file_read, .user = &s, .chunk = SIZE_MAX, .start = s.start, .source = name,
                        .end = (uint64_t) (end - start) };
    return load(&r, params);
}

struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params) {
    return file ? load_file(file, "file", params) : NULL;
}

struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params) {
    FILE *file = ggml_fopen(fname, "rb");
    if (!file) {
        LOG_ERROR("gguf: %s: cannot be opened: %s\n", fname, strerror(errno));
        return NULL;
    }
    struct gguf_context *c = load_file(file, fname, params);
    fclose(file);
    return c;
}

struct gguf_context *gguf_init_from_buffer(const void *data, size_t size, struct gguf_init_params params) {
    union { const void *in; void *out; } user = { data };      /* only ever read */
    if (!data || !size) return NULL;
    struct reader r = { .read = memory_read, .user = user.out, .chunk = SIZE_MAX, .end = size, .source = "buffer" };
    return load(&r, params);
}

struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback, void *userdata, size_t max_chunk_read,
                                             uint64_t max_expected_size, struct gguf_init_params params) {
    if (!callback) return NULL;
    struct reader r = { .read = callback, .user = userdata, .chunk = max_chunk_read ? max_chunk_read : SIZE_MAX,
                        .end = max_expected_size, .source = "input" };
    return load(&r, params);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static const struct pair *pair_at(const struct gguf_context *c, int64_t i, const char *call) {
    if (i < 0 || (uint64_t) i >= c->n_pairs)
        GGML_ABORT("%s: key %" PRId64 " of %zu", call, i, c->n_pairs);
    return &c->pairs[i];
}

static const struct info *info_at(const struct gguf_context *c, int64_t i, const char *call) {
    if (i < 0 || (uint64_t) i >= c->n_infos)
        GGML_ABORT("%s: tensor %" PRId64 " of %zu", call, i, c->n_infos);
    return &c->infos[i];
}

/* The only element, which has this type. */
static const char *value_at(const struct gguf_context *c, int64_t i, enum gguf_type type, const char *call) {
    const struct pair *p = pair_at(c, i, call);
    if (p->type != type || p->n != 1)
        GGML_ABORT("%s: %s holds %zu of %s, not one %s", call, p->key, p->n, kinds[p->type].name, kinds[type].name);
    return p->data;
}

uint32_t gguf_get_version    (const struct gguf_context *c) { return c->version; }
size_t   gguf_get_alignment  (const struct gguf_context *c) { return c->alignment; }
size_t   gguf_get_data_offset(const struct gguf_context *c) { return c->data_offset; }
int64_t  gguf_get_n_kv       (const struct gguf_context *c) { return (int64_t) c->n_pairs; }
int64_t  gguf_get_n_tensors  (const struct gguf_context *c) { return (int64_t) c->n_infos; }

int64_t gguf_find_key   (const struct gguf_context *c, const char *key)  { return index_find(c, &c->keys, pair_name, key); }
int64_t gguf_find_tensor(const struct gguf_context *c, const char *name) { return index_find(c, &c->names, info_name, name); }

const char *gguf_get_key(const struct gguf_context *c, int64_t i) { return pair_at(c, i, __func__)->key; }

enum gguf_type gguf_get_kv_type(const struct gguf_context *c, int64_t i) {
    const struct pair *p = pair_at(c, i, __func__);
    return p->array ? GGUF_TYPE_ARRAY : p->type;
}

enum gguf_type gguf_get_arr_type(const struct gguf_context *c, int64_t i) {
    const struct pair *p = pair_at(c, i, __func__);
    if (!p->array) GGML_ABORT("%s: %s is no array", __func__, p->key);
    return p->type;
}

#define X(tag, ctype, NAME) \
    ctype gguf_get_val_##tag(const struct gguf_context *c, int64_t i) { \
        ctype v; \
        memcpy(&v, value_at(c, i, GGUF_TYPE_##NAME, __func__), sizeof v); \
        return v; \
    }
SCALARS(X)
#undef X

const char *gguf_get_val_str(const struct gguf_context *c, int64_t i) { return value_at(c, i, GGUF_TYPE_STRING, __func__); }

const void *gguf_get_val_data(const struct gguf_context *c, int64_t i) {
    const struct pair *p = pair_at(c, i, __func__);
    if (p->type == GGUF_TYPE_STRING || p->n != 1) GGML_ABORT("%s: %s is not one number", __func__, p->key);
    return p->data;
}

size_t gguf_get_arr_n(const struct gguf_context *c, int64_t i) { return pair_at(c, i, __func__)->n; }

const void *gguf_get_arr_data(const struct gguf_context *c, int64_t i) {
    const struct pair *p = pair_at(c, i, __func__);
    if (p->type == GGUF_TYPE_STRING) GGML_ABORT("%s: %s holds strings", __func__, p->key);
    return p->data;
}

const char *gguf_get_arr_str(const struct gguf_context *c, int64_t key_id, size_t i) {
    const struct pair *p = pair_at(c, key_id, __func__);
    if (p->type != GGUF_TYPE_STRING) GGML_ABORT("%s: %s holds no strings", __func__, p->key);
    if (i >= p->n) GGML_ABORT("%s: %s: string %zu of %zu", __func__, p->key, i, p->n);
    return p->data + p->starts[i];
}

size_t         gguf_get_tensor_offset(const struct gguf_context *c, int64_t i) { return info_at(c, i, __func__)->offset; }
const char    *gguf_get_tensor_name  (const struct gguf_context *c, int64_t i) { return info_at(c, i, __func__)->tensor.name; }
const int64_t *gguf_get_tensor_ne    (const struct gguf_context *c, int64_t i) { return info_at(c, i, __func__)->tensor.ne; }
enum ggml_type gguf_get_tensor_type  (const struct gguf_context *c, int64_t i) { return info_at(c, i, __func__)->tensor.type; }
size_t         gguf_get_tensor_size  (const struct gguf_context *c, int64_t i) { return ggml_nbytes(&info_at(c, i, __func__)->tensor); }

/* ---- changing ---------------------------------------------------------------------------------------------------- */

/* Offsets of the tensors from `i` on follow from sizes and alignment. */
static void place_tensors(struct gguf_context *c, size_t i) {
    size_t end = 0, bytes = 0;
    if (i) end = c->infos[i - 1].offset, bytes = ggml_nbytes(&c->infos[i - 1].tensor);
    for (;; i++) {
        if (!size_pad(&bytes, bytes, c->alignment) || !size_add(&end, end, bytes))
            GGML_ABORT("gguf: the tensors are larger than memory can hold");
        if (i == c->n_infos) break;
        c->infos[i].offset = end;
        bytes = ggml_nbytes(&c->infos[i].tensor);
    }
    c->data_size = end;
}

static void set_alignment(struct gguf_context *c, size_t alignment) {
    if (c->alignment == alignment) return;
    c->alignment = alignment;
    place_tensors(c, 0);
}

/* Takes the pair out and moves those behind it up. */
static void drop_pair(struct gguf_context *c, size_t i) {
    pair_free(&c->pairs[i]);
    memmove(c->pairs + i, c->pairs + i + 1, (--c->n_pairs - i)*sizeof *c->pairs);
    memset(c->keys.slots, 0, c->keys.size*sizeof *c->keys.slots);
    for (size_t j = 0, probes = 0; j < c->n_pairs; j++) *index_slot(c, &c->keys, pair_name, c->pairs[j].key, &probes) = j + 1;
}

int64_t gguf_remove_key(struct gguf_context *c, const char *key) {
    const int64_t i = gguf_find_key(c, key);
    if (i < 0) return i;
    if (!strcmp(c->pairs[i].key, GGUF_KEY_GENERAL_ALIGNMENT)) set_alignment(c, GGUF_DEFAULT_ALIGNMENT);
    drop_pair(c, (size_t) i);
    return i;
}

static void check_alignment(const struct pair *p, uint32_t *alignment) {
    if (p->type != GGUF_TYPE_UINT32 || p->array) GGML_ABORT("gguf: %s is a u32, not %s", p->key, kinds[p->type].name);
    memcpy(alignment, p->data, sizeof *alignment);
    if (!power_of_two(*alignment)) GGML_ABORT("gguf: %s is a power of two, not %" PRIu32, p->key, *alignment);
}

/* Enters a finished pair in the place of one with the same key. `whole`: all its memory could be had. */
static void put_pair(struct gguf_context *c, struct pair *p, bool whole) {
    uint32_t alignment = 0;
    const bool is_alignment = whole && !strcmp(p->key, GGUF_KEY_GENERAL_ALIGNMENT);
    if (is_alignment) check_alignment(p, &alignment);
    const int64_t old = whole ? gguf_find_key(c, p->key) : -1;
    if (old >= 0) drop_pair(c, (size_t) old);                   /* its room is what the new one takes */
    if (!whole || !append_pair(c, p)) {
        LOG_ERROR("gguf: out of memory: the key is not set\n");
        c->incomplete = true;
        pair_free(p);
        return;
    }
    if (is_alignment) set_alignment(c, alignment);
}

static void *copy_of(const void *data, size_t n) {
    void *p = malloc(n ? n : 1);
    if (p && n) memcpy(p, data, n);
    return p;
}

static char *copy_key(const char *key) {
    if (!*key || strlen(key) > KEY_MAX) GGML_ABORT("gguf: a key has 1 to %u bytes, not %zu", KEY_MAX, strlen(key));
    return copy_of(key, strlen(key) + 1);
}

static void set_numbers(struct gguf_context *c, const char *key, enum gguf_type type, bool array, const void *data, size_t n) {
    size_t bytes;
    if ((unsigned) type >= GGUF_TYPE_COUNT || !kinds[type].size)
        GGML_ABORT("gguf: %s: an array of type %d cannot be set from plain data", key, (int) type);
    if (!size_mul(&bytes, n, kinds[type].size)) GGML_ABORT("gguf: %s: %zu elements", key, n);
    struct pair p = { copy_key(key), type, array, n, copy_of(data, bytes), NULL };
    for (size_t i = 0; p.data && type == GGUF_TYPE_BOOL && i < n; i++) p.data[i] = p.data[i] != 0;
    put_pair(c, &p, p.key && p.data);
}

static void set_strings(struct gguf_context *c, const char *key, bool array, const char *const *data, size_t n) {
    size_t end = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += strlen(data[i]) + 1;
    struct pair p = { copy_key(key), GGUF_TYPE_STRING, array, n, malloc(bytes ? bytes : 1), calloc(n + 1, sizeof *p.starts) };
    const bool whole = p.key && p.data && p.starts;
    for (size_t i = 0; whole && i < n; i++) {
        const size_t length = strlen(data[i]) + 1;
        memcpy(p.data + end, data[i], length);
        p.starts[i + 1] = end += length;
    }
    put_pair(c, &p, whole);
}

#define X(tag, ctype, NAME) \
    void gguf_set_val_##tag(struct gguf_context *c, const char *key, ctype v) { \
        set_numbers(c, key, GGUF_TYPE_##NAME, false, &v, 1); \
    }
SCALARS(X)
#undef X

void gguf_set_val_str(struct gguf_context *c, const char *key, const char *val) { set_strings(c, key, false, &val, 1); }

void gguf_set_arr_data(struct gguf_context *c, const char *key, enum gguf_type type, const void *data, size_t n) {
    set_numbers(c, key, type, true, data, n);
}

void gguf_set_arr_str(struct gguf_context *c, const char *key, const char **data, size_t n) {
    set_strings(c, key, true, (const char *const *) data, n);
}

static size_t pair_bytes(const struct pair *p) {
    return p->type == GGUF_TYPE_STRING ? p->starts[p->n] : p->n*kinds[p->type].size;
}

void gguf_set_kv(struct gguf_context *c, const struct gguf_context *src) {
    for (size_t i = 0; c != src && i < src->n_pairs; i++) {
        const struct pair *from = &src->pairs[i];
        struct pair p = *from;
        p.key    = copy_key(from->key);
        p.data   = copy_of(from->data, pair_bytes(from));
        p.starts = from->starts ? copy_of(from->starts, (from->n + 1)*sizeof *from->starts) : NULL;
        put_pair(c, &p, p.key && p.data && (p.starts || !from->starts));
    }
}

void gguf_add_tensor(struct gguf_context *c, const struct ggml_tensor *tensor) {
    if (gguf_find_tensor(c, tensor->name) >= 0) GGML_ABORT("gguf_add_tensor: %s is there already", tensor->name);
    const struct info t = { *tensor, 0 };
    if (append_info(c, &t)) {
        place_tensors(c, c->n_infos - 1);
        return;
    }
    LOG_ERROR("gguf: out of memory: tensor %s is not added\n", tensor->name);
    c->incomplete = true;
}

static size_t tensor_named(const struct gguf_context *c, const char *name, const char *call) {
    const int64_t i = gguf_find_tensor(c, name);
    if (i < 0) GGML_ABORT("%s: there is no tensor %s", call, name);
    return (size_t) i;
}

void gguf_set_tensor_type(struct gguf_context *c, const char *name, enum ggml_type type) {
    const size_t i = tensor_named(c, name, __func__);
    struct ggml_tensor *t = &c->infos[i].tensor;
    size_t bytes;
    if ((unsigned) type >= GGML_TYPE_COUNT || !ggml_blck_size(type)) GGML_ABORT("%s: there is no type %d", __func__, (int) type);
    if (t->ne[0] % ggml_blck_size(type) != 0)
        GGML_ABORT("%s: %s: rows of %" PRId64 " are no whole blocks of %s", __func__, name, t->ne[0], ggml_type_name(type));
    t->type = type;
    if (!packed_size(t, &bytes)) GGML_ABORT("%s: %s is larger than memory can hold", __func__, name);
    place_tensors(c, i);
}

void gguf_set_tensor_data(struct gguf_context *c, const char *name, const void *data) {
    union { const void *in; void *out; } p = { data };          /* only ever read */
    c->infos[tensor_named(c, name, __func__)].tensor.data = p.out;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct sink { FILE *file; char *memory; size_t n; bool failed; };       /* to a file, into memory, or, with neither, counted */

static void put(struct sink *s, const void *data, size_t n) {
    if (s->file && !s->failed && fwrite(data, 1, n, s->file) != n) s->failed = true;
    if (s->memory) memcpy(s->memory + s->n, data, n);
    s->n += n;
}

static void put_u32(struct sink *s, uint32_t v) { put(s, &v, sizeof v); }
static void put_u64(struct sink *s, uint64_t v) { put(s, &v, sizeof v); }
static void put_text(struct sink *s, const char *text, size_t n) { put_u64(s, n); put(s, text, n); }

static void put_padding(struct sink *s, size_t alignment) {
    static const char zeros[4096];
    for (size_t left = -s->n & (alignment - 1), n; left > 0; left -= n) put(s, zeros, n = left < sizeof zeros ? left : sizeof zeros);
}

static void put_meta(struct sink *s, const struct gguf_context *c) {
    put(s, GGUF_MAGIC, 4);
    put_u32(s, c->version);
    put_u64(s, c->n_infos);
    put_u64(s, c->n_pairs);
    for (size_t k = 0; k < c->n_pairs; k++) {
        const struct pair *p = &c->pairs[k];
        put_text(s, p->key, strlen(p->key));
        if (p->array) put_u32(s, GGUF_TYPE_ARRAY);
        put_u32(s, p->type);
        if (p->array) put_u64(s, p->n);
        if (p->type != GGUF_TYPE_STRING) put(s, p->data, pair_bytes(p));
        else for (size_t i = 0; i < p->n; i++) put_text(s, p->data + p->starts[i], p->starts[i + 1] - p->starts[i] - 1);
    }
    for (size_t k = 0; k < c->n_infos; k++) {
        const struct info *t = &c->infos[k];
        const int n_dims = ggml_n_dims(&t->tensor);
        put_text(s, t->tensor.name, strlen(t->tensor.name));
        put_u32(s, (uint32_t) n_dims);
        for (int i = 0; i < n_dims; i++) put_u64(s, (uint64_t) t->tensor.ne[i]);
        put_u32(s, t->tensor.type);
        put_u64(s, t->offset);
    }
    put_padding(s, c->alignment);
}

static bool put_tensor(struct sink *s, const struct ggml_tensor *t, char *piece) {
    const size_t bytes = ggml_nbytes(t);
    if (!ggml_is_contiguous(t)) GGML_ABORT("gguf: tensor %s is not contiguous", t->name);
    if (!t->buffer) {
        if (!t->data && bytes) GGML_ABORT("gguf: tensor %s has no data", t->name);
        if (bytes) put(s, t->data, bytes);
    }
    for (size_t at = 0, n; t->buffer && at < bytes && !s->failed; at += n) {
        n = bytes - at < STEP ? bytes - at : STEP;
        ggml_backend_tensor_get(t, piece, at, n);
        put(s, piece, n);
    }
    return !s->failed;
}

static bool write_file(const struct gguf_context *c, FILE *file, const char *name, bool only_meta) {
    struct sink s = { .file = file };
    char *piece = NULL;
    bool ok = !c->incomplete;
    if (ok && !only_meta) ok = (piece = malloc(STEP)) != NULL;
    if (!ok) {
        LOG_ERROR("gguf: %s: %s\n", name, c->incomplete ? "the context is incomplete, nothing is written" : "out of memory");
        return false;
    }
    put_meta(&s, c);
    for (size_t i = 0; !only_meta && i < c->n_infos && put_tensor(&s, &c->infos[i].tensor, piece); i++) put_padding(&s, c->alignment);
    free(piece);
    if (s.failed || fflush(file) != 0) {
        LOG_ERROR("gguf: %s: cannot be written: %s\n", name, strerror(errno));
        return false;
    }
    return true;
}

bool gguf_write_to_file_ptr(const struct gguf_context *c, FILE *file, bool only_meta) {
    GGML_ASSERT(file);
    return write_file(c, file, "file", only_meta);
}

bool gguf_write_to_file(const struct gguf_context *c, const char *fname, bool only_meta) {
    FILE *file = ggml_fopen(fname, "wb");
    if (!file) {
        LOG_ERROR("gguf: %s: cannot be opened: %s\n", fname, strerror(errno));
        return false;
    }
    bool ok = write_file(c, file, fname, only_meta);
    if (fclose(file) != 0 && ok) {
        LOG_ERROR("gguf: %s: cannot be written: %s\n", fname, strerror(errno));
        ok = false;
    }
    return ok;
}

size_t gguf_get_meta_size(const struct gguf_context *c) {
    struct sink s = { .file = NULL };
    put_meta(&s, c);
    return s.n;
}

void gguf_get_meta_data(const struct gguf_context *c, void *data) {
    struct sink s = { .memory = data };
    put_meta(&s, c);
}
