/* Contexts, tensors and graphs: everything about them that needs no memory but the arena's own.
 *
 * Promises: an arena that is full, a shape that does not fit its integers and a graph with more nodes than room are one line
 * of log and a NULL (or an unusable graph, see graph_ok), never an abort; building a graph allocates nothing outside the
 * arena and needs no deep stack, however deep the graph. What builds ops is in src/ops/, what places tensors in alloc.c.
 *
 * The arena:  | object | payload ... pad to 16 | object | payload ... | ... free ... |
 * A tensor's payload is the struct and, unless the context says no_alloc, its data right behind it. */

#include "core.h"
#include "ggml-backend.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- abort and log ---------------------------------------------------------------------------------------------- */

static ggml_abort_callback_t abort_callback;

ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback) {
    const ggml_abort_callback_t previous = abort_callback;
    abort_callback = callback;
    return previous;
}

void ggml_abort(const char *file, int line, const char *fmt, ...) {
    char message[2048];
    const int n = snprintf(message, sizeof message, "%s:%d: ", file, line);
    va_list args;
    va_start(args, fmt);
    if (n >= 0 && (size_t) n < sizeof message) vsnprintf(message + n, sizeof message - (size_t) n, fmt, args);
    va_end(args);
    fflush(stdout);
    if (abort_callback) abort_callback(message);
    else                fprintf(stderr, "%s\n", message);
    abort();
}

static void log_to_stderr(enum ggml_log_level level, const char *text, void *user_data) {
    GGML_UNUSED(level); GGML_UNUSED(user_data);
    fputs(text, stderr);
    fflush(stderr);
}

static struct { ggml_log_callback write; void *user_data; } log_sink = { log_to_stderr, NULL };

void ggml_log_set(ggml_log_callback log_callback, void *user_data) {
    log_sink.write     = log_callback ? log_callback : log_to_stderr;
    log_sink.user_data = user_data;
}

void ggml_log_get(ggml_log_callback *log_callback, void **user_data) {
    *log_callback = log_sink.write;
    *user_data    = log_sink.user_data;
}

void ggml_log_internal(enum ggml_log_level level, const char *format, ...) {
    char text[1024], *longer = NULL;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int n = vsnprintf(text, sizeof text, format, args);
    if (n >= (int) sizeof text && (longer = malloc((size_t) n + 1))) vsnprintf(longer, (size_t) n + 1, format, again);
    va_end(again);
    va_end(args);
    if (n >= 0) log_sink.write(level, longer ? longer : text, log_sink.user_data);
    free(longer);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

const char *ggml_status_to_string(enum ggml_status status) {
    switch (status) {
        case GGML_STATUS_ALLOC_FAILED: return "memory could not be allocated";
        case GGML_STATUS_FAILED:       return "the operation failed";
        case GGML_STATUS_SUCCESS:      return "success";
        case GGML_STATUS_ABORTED:      return "stopped by the abort callback";
    }
    return "unknown status";
}

static const struct op_fact { const char *name, *symbol; int alias; } op_facts[GGML_OP_COUNT] = {
#define OP(NAME, symbol, alias) [GGML_OP_##NAME] = { #NAME, symbol, alias },
#include "ops.def"
#undef OP
};

static const char *const unary_names[GGML_UNARY_OP_COUNT] = {
#define UNARY(NAME) [GGML_UNARY_OP_##NAME] = #NAME
    UNARY(ABS),  UNARY(SGN),        UNARY(NEG),  UNARY(STEP),      UNARY(TANH),        UNARY(ELU), UNARY(RELU),
    UNARY(GELU), UNARY(GELU_QUICK), UNARY(SILU), UNARY(HARDSWISH), UNARY(HARDSIGMOID), UNARY(EXP), UNARY(EXPM1),
    UNARY(CEIL), UNARY(GELU_ERF),   UNARY(ROUND), UNARY(SOFTPLUS), UNARY(SIGMOID),     UNARY(TRUNC), UNARY(XIELU),
    UNARY(FLOOR),
#undef UNARY
};

static const char *const glu_names[GGML_GLU_OP_COUNT] = {
#define GLU(NAME) [GGML_GLU_OP_##NAME] = #NAME
    GLU(REGLU), GLU(GEGLU), GLU(SWIGLU), GLU(SWIGLU_OAI), GLU(GEGLU_ERF), GLU(GEGLU_QUICK), GLU(SWIGLU_CLAMP),
#undef GLU
};

#define OP_KNOWN(op) ((unsigned) (op) < GGML_OP_COUNT)

const char *ggml_op_name(enum ggml_op op)                { return OP_KNOWN(op) ? op_facts[op].name   : "unknown"; }
const char *ggml_op_symbol(enum ggml_op op)              { return OP_KNOWN(op) ? op_facts[op].symbol : "unknown"; }
const char *ggml_unary_op_name(enum ggml_unary_op op)    { return op < GGML_UNARY_OP_COUNT ? unary_names[op] : "unknown"; }
const char *ggml_glu_op_name(enum ggml_glu_op op)        { return op < GGML_GLU_OP_COUNT   ? glu_names[op]   : "unknown"; }
bool        ggml_op_can_inplace(enum ggml_op op)         { return OP_KNOWN(op) && op_facts[op].alias == 1; }
bool        op_can_inplace(enum ggml_op op, bool host)   {
    return OP_KNOWN(op) && (op_facts[op].alias == 1 || (host && op_facts[op].alias == 3));
}
bool        op_is_view(enum ggml_op op)                  { return OP_KNOWN(op) && op_facts[op].alias == 2; }

enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor) {
    GGML_ASSERT(tensor->op == GGML_OP_UNARY);
    return (enum ggml_unary_op) param_i32(tensor, 0);
}

enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor) {
    GGML_ASSERT(tensor->op == GGML_OP_GLU);
    return (enum ggml_glu_op) param_i32(tensor, 0);
}

const char *ggml_op_desc(const struct ggml_tensor *t) {
    if (t->op == GGML_OP_UNARY) return ggml_unary_op_name(ggml_get_unary_op(t));
    if (t->op == GGML_OP_GLU)   return ggml_glu_op_name(ggml_get_glu_op(t));
    return ggml_op_name(t->op);
}

const char *ggml_version(void) { return "0.25.3"; }
const char *ggml_commit(void)  { return "arenite"; }

bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b) { return !memcmp(guid_a, guid_b, sizeof(ggml_guid)); }

/* ---- time, files, memory, the lock ------------------------------------------------------------------------------ */

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec*1000000000 + t.tv_nsec;
}

void    ggml_time_init(void)     { }
int64_t ggml_time_ms(void)       { return now_ns()/1000000; }
int64_t ggml_time_us(void)       { return now_ns()/1000; }
int64_t ggml_cycles(void)        { return clock(); }
int64_t ggml_cycles_per_ms(void) { return CLOCKS_PER_SEC/1000; }

FILE *ggml_fopen(const char *fname, const char *mode) { return fopen(fname, mode); }

void *ggml_aligned_malloc(size_t size) {
    size_t padded;
    return size && size_pad(&padded, size, 64) ? aligned_alloc(64, padded) : NULL;
}

void ggml_aligned_free(void *p, size_t size) { GGML_UNUSED(size); free(p); }

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
void ggml_critical_section_start(void) { pthread_mutex_lock(&the_lock); }
void ggml_critical_section_end(void)   { pthread_mutex_unlock(&the_lock); }

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* Ids that no row of types.def has were used by formats that nobody writes any more; their block size stays 0. */
static const struct type_fact { const char *name; int64_t block; size_t bytes; } type_facts[GGML_TYPE_COUNT] = {
#define TYPE(id, NAME, name, weights, bytes, dots) [GGML_TYPE_##NAME] = { #name, weights, bytes },
#include "types.def"
#undef TYPE
};

static struct type_fact type_fact(enum ggml_type type) {
    return (unsigned) type < GGML_TYPE_COUNT ? type_facts[type] : (struct type_fact) { .name = "NONE" };
}

static bool type_known(enum ggml_type type)        { return type_fact(type).block != 0; }
int64_t     ggml_blck_size(enum ggml_type type)    { return type_fact(type).block; }
size_t      ggml_type_size(enum ggml_type type)    { return type_fact(type).bytes; }
bool        ggml_is_quantized(enum ggml_type type) { return type_fact(type).block > 1; }

const char *ggml_type_name(enum ggml_type type) {
    const char *name = type_fact(type).name;
    return name ? name : "DEPRECATED";
}

double ggml_type_sizef(enum ggml_type type) {
    const struct type_fact t = type_fact(type);
    return t.block ? (double) t.bytes/(double) t.block : 0.0;
}

/* bytes of n elements, whole blocks or not; 0 with *fits false when they are more than a size_t holds */
static size_t row_bytes(enum ggml_type type, int64_t n, bool *fits) {
    const size_t block = (size_t) type_facts[type].block, size = type_facts[type].bytes;
    size_t whole = 0, r = 0;
    *fits = n >= 0 && size_mul(&whole, (size_t) n/block, size) && size_add(&r, whole, (size_t) n%block*size/block);
    return *fits ? r : 0;
}

size_t ggml_row_size(enum ggml_type type, int64_t ne) {
    bool fits;
    return type_known(type) ? row_bytes(type, ne, &fits) : 0;
}

enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype) {
    static const unsigned char types[] = {      /* the type + 1; 0: no single type */
#define FTYPE(NAME) [GGML_FTYPE_MOSTLY_##NAME] = GGML_TYPE_##NAME + 1
        [GGML_FTYPE_ALL_F32] = GGML_TYPE_F32 + 1,
        FTYPE(F16),  FTYPE(BF16),   FTYPE(Q4_0),  FTYPE(Q4_1),    FTYPE(Q5_0),   FTYPE(Q5_1),    FTYPE(Q8_0),  FTYPE(Q2_K),
        FTYPE(Q3_K), FTYPE(Q4_K),   FTYPE(Q5_K),  FTYPE(Q6_K),    FTYPE(Q1_0),   FTYPE(Q2_0),    FTYPE(MXFP4), FTYPE(NVFP4),
        FTYPE(IQ1_S), FTYPE(IQ1_M), FTYPE(IQ2_XXS), FTYPE(IQ2_XS), FTYPE(IQ2_S), FTYPE(IQ3_XXS), FTYPE(IQ3_S),
        FTYPE(IQ4_NL), FTYPE(IQ4_XS),
#undef FTYPE
    };
    return ftype >= 0 && (size_t) ftype < sizeof types && types[ftype] ? (enum ggml_type) (types[ftype] - 1)
                                                                       : GGML_TYPE_COUNT;
}

/* ---- arena ------------------------------------------------------------------------------------------------------ */

struct ggml_context {
    size_t              mem_size;
    char               *mem;
    bool                owned;          /* mem is ours to free */
    bool                no_alloc;
    struct ggml_object *first, *last;   /* NULL when empty */
};

struct ggml_context *ggml_init(struct ggml_init_params params) {
    size_t size = params.mem_size ? params.mem_size : GGML_MEM_ALIGN;
    if ((uintptr_t) params.mem_buffer%GGML_MEM_ALIGN)
        GGML_ABORT("ggml_init: mem_buffer %p is not aligned to %d bytes", params.mem_buffer, GGML_MEM_ALIGN);
    if (!params.mem_buffer && !size_pad(&size, size, GGML_MEM_ALIGN)) size = SIZE_MAX;      /* no machine has this much */
    struct ggml_context *ctx = malloc(sizeof *ctx);
    char *mem = params.mem_buffer ? params.mem_buffer : ggml_aligned_malloc(size);
    if (!ctx || !mem) {
        LOG_ERROR("ggml_init: no memory for a context of %zu bytes\n", size);
        if (!params.mem_buffer) free(mem);
        free(ctx);
        return NULL;
    }
    *ctx = (struct ggml_context) { .mem_size = size, .mem = mem, .owned = !params.mem_buffer, .no_alloc = params.no_alloc };
    return ctx;
}

void ggml_reset(struct ggml_context *ctx) { if (ctx) ctx->first = ctx->last = NULL; }

void ggml_free(struct ggml_context *ctx) {
    if (ctx && ctx->owned) ggml_aligned_free(ctx->mem, ctx->mem_size);
    free(ctx);
}

size_t ggml_used_mem(const struct ggml_context *ctx)           { return ctx->last ? ctx->last->offs + ctx->last->size : 0; }
bool   ggml_get_no_alloc(struct ggml_context *ctx)             { return ctx->no_alloc; }
void   ggml_set_no_alloc(struct ggml_context *ctx, bool value) { ctx->no_alloc = value; }
void  *ggml_get_mem_buffer(const struct ggml_context *ctx)     { return ctx->mem; }
size_t ggml_get_mem_size(const struct ggml_context *ctx)       { return ctx->mem_size; }

/* `size` bytes of the arena for a `what`; NULL after one line of log when they are not there */
static void *arena_take(struct ggml_context *ctx, enum ggml_object_type type, size_t size, const char *what) {
    if (!ctx) GGML_ABORT("a new %s needs a context, got NULL", what);
    const size_t used = ggml_used_mem(ctx), left = ctx->mem_size - used;
    size_t padded, wanted;
    if (!size_pad(&padded, size, GGML_MEM_ALIGN) || !size_add(&wanted, padded, sizeof(struct ggml_object))) {
        LOG_ERROR("ggml context: a %s of %zu bytes fits no context\n", what, size);
        return NULL;
    }
    if (wanted > left) {
        LOG_ERROR("ggml context of %zu bytes is full: a %s needs %zu bytes, %zu are left, %zu are missing\n",
            ctx->mem_size, what, wanted, left, wanted - left);
        return NULL;
    }
    struct ggml_object *object = (void *) (ctx->mem + used);
    *object = (struct ggml_object) { .offs = used + sizeof *object, .size = padded, .type = type };
    if (ctx->last) ctx->last->next = object;
    else           ctx->first = object;
    ctx->last = object;
    return ctx->mem + object->offs;
}

void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes) {
    return arena_take(ctx, GGML_OBJECT_TYPE_WORK_BUFFER, nbytes, "buffer");
}

void ggml_print_object(const struct ggml_object *obj) {
    static const char *const kinds[] = { "tensor", "graph", "work buffer" };
    LOG_INFO("object at %zu: %zu bytes, %s\n", obj->offs, obj->size, kinds[obj->type]);
}

void ggml_print_objects(const struct ggml_context *ctx) {
    for (const struct ggml_object *o = ctx->first; o; o = o->next) ggml_print_object(o);
}

static struct ggml_tensor *tensor_from(const struct ggml_context *ctx, const struct ggml_object *object) {
    while (object && object->type != GGML_OBJECT_TYPE_TENSOR) object = object->next;
    return object ? (struct ggml_tensor *) (void *) (ctx->mem + object->offs) : NULL;
}

struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx) { return tensor_from(ctx, ctx->first); }

struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor) {
    const struct ggml_object *object = (const void *) ((const char *) tensor - sizeof *object);
    return tensor_from(ctx, object->next);
}

#define FOR_TENSORS(t, ctx) \
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))

struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name) {
    FOR_TENSORS(t, ctx) if (!strcmp(t->name, name)) return t;
    return NULL;
}

size_t ggml_get_max_tensor_size(const struct ggml_context *ctx) {
    size_t most = 0;
    FOR_TENSORS(t, ctx) if (ggml_nbytes(t) > most) most = ggml_nbytes(t);
    return most;
}

/* ---- new tensors ------------------------------------------------------------------------------------------------ */

bool dims_product(const int64_t *ne, int n, int64_t *product) {
    int64_t p = 1;
    for (int i = 0; i < n; i++) {
        if (ne[i] < 0 || (p && ne[i] > INT64_MAX/p)) return false;
        p *= ne[i];
    }
    *product = p;
    return true;
}

/* packed strides for t's type and dimensions; false when the bytes or the elements are more than can be counted */
static bool pack_strides(struct ggml_tensor *t, size_t *bytes) {
    int64_t elements;
    bool fits;
    t->nb[0] = type_facts[t->type].bytes;
    t->nb[1] = row_bytes(t->type, t->ne[0], &fits);
    if (!fits || !dims_product(t->ne, GGML_MAX_DIMS, &elements)) return false;
    for (int i = 2; i < GGML_MAX_DIMS; i++) if (!size_mul(&t->nb[i], t->nb[i - 1], (size_t) t->ne[i - 1])) return false;
    return size_mul(bytes, t->nb[3], (size_t) t->ne[3]);
}

struct ggml_tensor *tensor_new(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne,
                               struct ggml_tensor *view_src, size_t view_offs) {
    if (!type_known(type)) GGML_ABORT("new tensor: there is no type %d", (int) type);
    if (n_dims < 1 || n_dims > GGML_MAX_DIMS) GGML_ABORT("new tensor: %d dimensions, 1 to 4 are possible", n_dims);
    struct ggml_tensor t = { .type = type, .ne = { 1, 1, 1, 1 } };
    size_t bytes, end, size = sizeof t;
    memcpy(t.ne, ne, (size_t) n_dims*sizeof *ne);
    if (!pack_strides(&t, &bytes)) {
        LOG_ERROR("new tensor: %s [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] is no shape that memory can hold\n",
            ggml_type_name(type), t.ne[0], t.ne[1], t.ne[2], t.ne[3]);
        return NULL;
    }
    if (view_src) {
        const bool fits = size_add(&view_offs, view_offs, view_src->view_offs);
        if (view_src->view_src) view_src = view_src->view_src;
        if (!fits || !size_add(&end, view_offs, bytes) || end > ggml_nbytes(view_src)) {
            LOG_ERROR("view of %zu bytes at %zu ends behind %s, which has %zu bytes\n",
                bytes, view_offs, view_src->name, ggml_nbytes(view_src));
            return NULL;
        }
        t.view_src  = view_src;
        t.view_offs = view_offs;
        t.data      = view_src->data ? (char *) view_src->data + view_offs : NULL;
    } else if (ctx && !ctx->no_alloc && !size_add(&size, size, bytes)) {
        size = SIZE_MAX;
    }
    struct ggml_tensor *r = arena_take(ctx, GGML_OBJECT_TYPE_TENSOR, size, "tensor");
    if (!r) return NULL;
    *r = t;
    if (!view_src && !ctx->no_alloc) r->data = r + 1;
    return r;
}

struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const int64_t *ne) {
    return tensor_new(ctx, type, n_dims, ne, NULL, 0);
}

#define NEW(n, ...) tensor_new(ctx, type, n, (const int64_t[]) { __VA_ARGS__ }, NULL, 0)
struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0) { return NEW(1, ne0); }
struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1) {
    return NEW(2, ne0, ne1);
}
struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                       int64_t ne2) {
    return NEW(3, ne0, ne1, ne2);
}
struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
                                       int64_t ne2, int64_t ne3) {
    return NEW(4, ne0, ne1, ne2, ne3);
}
#undef NEW

struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src) {
    return src ? tensor_new(ctx, src->type, GGML_MAX_DIMS, src->ne, NULL, 0) : NULL;
}

struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src) {
    struct ggml_tensor *r = src ? tensor_new(ctx, src->type, GGML_MAX_DIMS, src->ne, src, 0) : NULL;
    if (!r) return NULL;
    memcpy(r->nb, src->nb, sizeof r->nb);
    return ggml_format_name(r, "%s (view)", src->name);
}

/* ---- names, flags, data of a tensor ----------------------------------------------------------------------------- */

const char *ggml_get_name(const struct ggml_tensor *tensor) { return tensor->name; }

struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name) {
    if (!tensor) return NULL;
    const size_t n = strlen(name) < GGML_MAX_NAME ? strlen(name) : GGML_MAX_NAME - 1;
    memmove(tensor->name, name, n);
    memset(tensor->name + n, 0, GGML_MAX_NAME - n);
    return tensor;
}

struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...) {
    char name[GGML_MAX_NAME];               /* the arguments may point into the name itself */
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    return ggml_set_name(tensor, name);
}

/* an op's result is neither an input nor a parameter */
static void flag_a_leaf(struct ggml_tensor *t, enum ggml_tensor_flag flag, const char *call) {
    if (!t) return;
    if (t->op != GGML_OP_NONE) GGML_ABORT("%s: %s is the result of %s", call, t->name, ggml_op_desc(t));
    t->flags |= flag;
}

void ggml_set_input(struct ggml_tensor *tensor) { flag_a_leaf(tensor, GGML_TENSOR_FLAG_INPUT, "ggml_set_input"); }
void ggml_set_param(struct ggml_tensor *tensor) { flag_a_leaf(tensor, GGML_TENSOR_FLAG_PARAM, "ggml_set_param"); }

void ggml_set_output(struct ggml_tensor *tensor) {
    if (!tensor) return;
    tensor->flags |= GGML_TENSOR_FLAG_OUTPUT;
    if (tensor->view_src) tensor->view_src->flags |= GGML_TENSOR_FLAG_OUTPUT;
}

void ggml_set_loss(struct ggml_tensor *tensor) {
    if (!tensor) return;
    if (tensor->type != GGML_TYPE_F32 || !ggml_is_scalar(tensor))
        GGML_ABORT("ggml_set_loss: %s is %s with %" PRId64 " elements, a loss is one f32", tensor->name,
            ggml_type_name(tensor->type), ggml_nelements(tensor));
    tensor->flags |= GGML_TENSOR_FLAG_LOSS;
}

void *ggml_get_data(const struct ggml_tensor *tensor) { return tensor->data; }

float *ggml_get_data_f32(const struct ggml_tensor *tensor) {
    GGML_ASSERT(tensor->type == GGML_TYPE_F32);
    return tensor->data;
}

struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor) {
    if (!tensor || ggml_is_empty(tensor)) return tensor;
    if (tensor->buffer) ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
    else if (tensor->data) memset(tensor->data, 0, ggml_nbytes(tensor));
    else GGML_ABORT("ggml_set_zero: %s has no data", tensor->name);
    return tensor;
}

/* ---- shape predicates ------------------------------------------------------------------------------------------- */

int64_t ggml_nelements(const struct ggml_tensor *t) { return t->ne[0]*t->ne[1]*t->ne[2]*t->ne[3]; }
int64_t ggml_nrows(const struct ggml_tensor *t)     { return t->ne[1]*t->ne[2]*t->ne[3]; }

size_t ggml_nbytes(const struct ggml_tensor *t) {
    for (int i = 0; i < GGML_MAX_DIMS; i++) if (t->ne[i] <= 0) return 0;
    const size_t block = (size_t) type_facts[t->type].block, n0 = (size_t) t->ne[0];
    size_t n = block == 1 ? type_facts[t->type].bytes + (n0 - 1)*t->nb[0] : n0/block*t->nb[0] + n0%block*t->nb[0]/block;
    for (int i = 1; i < GGML_MAX_DIMS; i++) n += (size_t) (t->ne[i] - 1)*t->nb[i];
    return n;
}

size_t ggml_nbytes_pad(const struct ggml_tensor *t)   { return GGML_PAD(ggml_nbytes(t), (size_t) GGML_MEM_ALIGN); }
size_t ggml_element_size(const struct ggml_tensor *t) { return ggml_type_size(t->type); }
size_t ggml_tensor_overhead(void)                     { return sizeof(struct ggml_object) + sizeof(struct ggml_tensor); }

int ggml_n_dims(const struct ggml_tensor *t) {
    int n = GGML_MAX_DIMS;
    while (n > 1 && t->ne[n - 1] == 1) n--;
    return n;
}

bool ggml_is_scalar(const struct ggml_tensor *t) { return t->ne[0] == 1 && ggml_is_vector(t); }
bool ggml_is_vector(const struct ggml_tensor *t) { return t->ne[1] == 1 && ggml_is_matrix(t); }
bool ggml_is_matrix(const struct ggml_tensor *t) { return t->ne[2] == 1 && ggml_is_3d(t); }
bool ggml_is_3d(const struct ggml_tensor *t)     { return t->ne[3] == 1; }
bool ggml_is_view(const struct ggml_tensor *t)   { return t->view_src != NULL; }
bool ggml_is_empty(const struct ggml_tensor *t)  { return !(t->ne[0] && t->ne[1] && t->ne[2] && t->ne[3]); }

bool ggml_is_transposed(const struct ggml_tensor *t) { return t->nb[0] > t->nb[1]; }
bool ggml_is_permuted(const struct ggml_tensor *t) {
    return t->nb[0] > t->nb[1] || t->nb[1] > t->nb[2] || t->nb[2] > t->nb[3];
}

/* Dims 1 .. n-1 are packed, except that dims up to m may have any stride and start the count afresh. */
static bool contiguous(const struct ggml_tensor *t, int m, int n) {
    if (!ggml_is_contiguous_rows(t)) return false;
    size_t expected = ggml_row_size(t->type, t->ne[0]);
    for (int i = 1; i < n; i++) {
        if (i <= m) expected = t->nb[i]*(size_t) t->ne[i];
        else if (t->ne[i] != 1) {
            if (t->nb[i] != expected) return false;
            expected *= (size_t) t->ne[i];
        }
    }
    return true;
}

bool ggml_is_contiguous     (const struct ggml_tensor *t) { return contiguous(t, 0, 4); }
bool ggml_is_contiguous_0   (const struct ggml_tensor *t) { return contiguous(t, 0, 4); }
bool ggml_is_contiguous_1   (const struct ggml_tensor *t) { return contiguous(t, 1, 4); }
bool ggml_is_contiguous_2   (const struct ggml_tensor *t) { return contiguous(t, 2, 4); }
bool ggml_is_contiguous_to_1(const struct ggml_tensor *t) { return contiguous(t, 0, 1); }
bool ggml_is_contiguous_to_2(const struct ggml_tensor *t) { return contiguous(t, 0, 2); }
bool ggml_is_contiguous_to_3(const struct ggml_tensor *t) { return contiguous(t, 0, 3); }

bool ggml_is_contiguous_rows(const struct ggml_tensor *t) {
    return t->nb[0] == ggml_type_size(t->type) || t->ne[0] == ggml_blck_size(t->type);
}

bool ggml_is_contiguous_channels(const struct ggml_tensor *t) {
    return t->nb[0] > t->nb[2] && t->nb[1] > t->nb[0] && t->nb[2] == ggml_type_size(t->type);
}

bool ggml_is_contiguously_allocated(const struct ggml_tensor *t) {
    return ggml_nbytes(t) == ggml_row_size(t->type, ggml_nelements(t));
}

bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return !memcmp(t0->ne, t1->ne, sizeof t0->ne);
}

bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return !memcmp(t0->nb, t1->nb, sizeof t0->nb);
}

bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    if (ggml_is_empty(t0)) return ggml_is_empty(t1);
    for (int i = 0; i < GGML_MAX_DIMS; i++) if (t1->ne[i]%t0->ne[i]) return false;
    return true;
}

void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2, int64_t *i3) {
    int64_t *const to[] = { i0, i1, i2, i3 };
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        if (to[d]) *to[d] = d < 3 ? i%tensor->ne[d] : i;
        i /= tensor->ne[d];
    }
}

/* ---- sets of tensors -------------------------------------------------------------------------------------------- */

/* Part of the ABI: plugins search our sets. The least primes above the powers of two, pointers without their four always
 * clear bits modulo the size, linear probing. */
size_t ggml_hash_size(size_t min_size) {
    static const size_t primes[] = {
        2, 3, 5, 11, 17, 37, 67, 131, 257, 521, 1031, 2053, 4099, 8209, 16411, 32771, 65537, 131101, 262147, 524309, 1048583,
        2097169, 4194319, 8388617, 16777259, 33554467, 67108879, 134217757, 268435459, 536870923, 1073741827, 2147483659,
    };
    for (size_t i = 0; i < sizeof primes/sizeof *primes; i++) if (primes[i] >= min_size) return primes[i];
    return min_size | 1;
}

static size_t bitset_bytes(size_t n) { return (n + 31)/32*sizeof(uint32_t); }
static size_t counts_bytes(size_t n) { return (n + 1)/2*2*sizeof(int32_t); }    /* keeps pointers aligned */

struct ggml_hash_set ggml_hash_set_new(size_t size) {
    struct ggml_hash_set set = { .size = ggml_hash_size(size) };
    set.keys = set.size <= SIZE_MAX/sizeof *set.keys ? malloc(set.size*sizeof *set.keys) : NULL;
    set.used = calloc(1, bitset_bytes(set.size));
    if (set.keys && set.used) return set;
    ggml_hash_set_free(&set);
    return (struct ggml_hash_set) { 0 };
}

void ggml_hash_set_free(struct ggml_hash_set *set) { free(set->keys); free(set->used); }
void ggml_hash_set_reset(struct ggml_hash_set *set) { if (set->used) memset(set->used, 0, bitset_bytes(set->size)); }

size_t hash_find(const struct ggml_hash_set *set, const struct ggml_tensor *key) {
    const size_t start = set->size ? ((size_t) (uintptr_t) key >> 4)%set->size : 0;
    size_t i = start;
    for (size_t n = 0; n < set->size; n++) {
        if (!hash_used(set, i) || set->keys[i] == key) return i;
        if (++i == set->size) i = 0;
    }
    return HASH_FULL;
}

size_t hash_insert(struct ggml_hash_set *set, struct ggml_tensor *key) {
    const size_t i = hash_find(set, key);
    if (i == HASH_FULL)    return HASH_FULL;
    if (hash_used(set, i)) return HASH_EXISTS;
    set->used[i/32] |= (uint32_t) 1 << i%32;
    set->keys[i] = key;
    return i;
}

bool hash_contains(const struct ggml_hash_set *set, const struct ggml_tensor *key) {
    const size_t i = hash_find(set, key);
    return i != HASH_FULL && hash_used(set, i);
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

/* Bytes of a graph in its arena: struct, nodes, leafs, hash keys, grads, grad_accs, use counts, bits; SIZE_MAX when no arena
 * holds them. Programs size their arenas by it. */
static size_t graph_bytes(size_t size, bool grads) {
    if (size > INT_MAX) return SIZE_MAX;
    const size_t hash = ggml_hash_size(2*size), pointers = 2*size + (grads ? 3 : 1)*hash;
    return sizeof(struct ggml_cgraph) + pointers*sizeof(void *) + counts_bytes(hash) + bitset_bytes(hash);
}

size_t ggml_graph_overhead_custom(size_t size, bool grads) {
    size_t n;
    return size_pad(&n, graph_bytes(size, grads), GGML_MEM_ALIGN) && size_add(&n, n, sizeof(struct ggml_object)) ? n : SIZE_MAX;
}

size_t ggml_graph_overhead(void) { return ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, false); }

struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads) {
    struct ggml_cgraph *g = arena_take(ctx, GGML_OBJECT_TYPE_GRAPH, graph_bytes(size, grads), "graph");
    if (!g) return NULL;
    const size_t hash = ggml_hash_size(2*size);
    struct ggml_tensor **p = (void *) (g + 1);
    *g = (struct ggml_cgraph) { .size = (int) size, .order = GRAPH_LEFT_TO_RIGHT };
    g->nodes = p;  p += size;
    g->leafs = p;  p += size;
    g->visited_hash_set.size = hash;
    g->visited_hash_set.keys = p;  p += hash;
    if (grads) {
        g->grads     = p;  p += hash;
        g->grad_accs = p;  p += hash;
    }
    g->use_counts            = (void *) p;
    g->visited_hash_set.used = (void *) ((char *) p + counts_bytes(hash));
    ggml_graph_clear(g);
    return g;
}

struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx) {
    return ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, false);
}

void ggml_graph_clear(struct ggml_cgraph *g) {
    if (!g) return;
    g->n_nodes = g->n_leafs = 0;
    g->order &= ~(unsigned) GRAPH_UNUSABLE;
    const size_t hash = g->visited_hash_set.size;
    ggml_hash_set_reset(&g->visited_hash_set);
    if (g->grads)     memset(g->grads,     0, hash*sizeof *g->grads);
    if (g->grad_accs) memset(g->grad_accs, 0, hash*sizeof *g->grad_accs);
}

bool graph_ok(const struct ggml_cgraph *g) { return g && !(g->order & GRAPH_UNUSABLE); }

void graph_give_up(struct ggml_cgraph *g, const char *why) {
    if (graph_ok(g)) LOG_ERROR("graph with room for %d nodes and as many leafs: %s; it cannot be computed\n", g->size, why);
    g->order |= GRAPH_UNUSABLE;
}

static bool is_leaf(const struct ggml_tensor *t) { return t->op == GGML_OP_NONE && !(t->flags & GGML_TENSOR_FLAG_PARAM); }

static void graph_append(struct ggml_cgraph *g, struct ggml_tensor *t) {
    const bool leaf = is_leaf(t);
    int *n = leaf ? &g->n_leafs : &g->n_nodes;
    if (hash_contains(&g->visited_hash_set, t)) return;
    if (*n == g->size) { graph_give_up(g, leaf ? "too many leafs" : "too many nodes"); return; }
    const size_t i = hash_insert(&g->visited_hash_set, t);
    g->use_counts[i] = 0;
    if (!t->name[0]) ggml_format_name(t, leaf ? "leaf_%d" : "node_%d", *n);
    (leaf ? g->leafs : g->nodes)[(*n)++] = t;
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        const size_t used = t->src[s] ? hash_find(&g->visited_hash_set, t->src[s]) : HASH_FULL;
        if (used != HASH_FULL && hash_used(&g->visited_hash_set, used)) g->use_counts[used]++;
    }
}

/* The first source of t that the graph does not have yet, leafs among them taken in on the way; NULL when all are there.
 * With `compute` *stale is set when the graph has a source that is not marked for computing. */
static struct ggml_tensor *next_source(struct ggml_cgraph *g, const struct ggml_tensor *t, bool compute, bool *stale) {
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        struct ggml_tensor *s = t->src[g->order & GRAPH_RIGHT_TO_LEFT ? GGML_MAX_SRC - 1 - i : i];
        if (!s || s == t) continue;
        if (hash_contains(&g->visited_hash_set, s)) {
            *stale |= compute && s->op != GGML_OP_NONE && !(s->flags & GGML_TENSOR_FLAG_COMPUTE);
            continue;
        }
        if (!is_leaf(s)) return s;
        graph_append(g, s);
    }
    return NULL;
}

static void mark(struct ggml_tensor *t, bool compute) {
    if (compute && t->op != GGML_OP_NONE) t->flags |= GGML_TENSOR_FLAG_COMPUTE;
}

/* Depth first, sources before the tensor. The way back from the tensor being visited to the root lies in the free end of
 * g->nodes, growing down: all of it become nodes, so where there is no room for the way there is none for the nodes. */
static void graph_visit(struct ggml_cgraph *g, struct ggml_tensor *root, bool compute) {
    const bool known = hash_contains(&g->visited_hash_set, root);
    bool stale = known && compute && !(root->flags & GGML_TENSOR_FLAG_COMPUTE);
    int top = g->size;                      /* nodes[top] .. nodes[size-1]: the way */
    if (is_leaf(root)) { graph_append(g, root); return; }
    mark(root, compute);
    for (struct ggml_tensor *t = known ? NULL : root; t; ) {
        if (top == g->n_nodes) { graph_give_up(g, "too many nodes"); return; }
        g->nodes[--top] = t;
        mark(t, compute);
        while (top < g->size && !(t = next_source(g, g->nodes[top], compute, &stale))) graph_append(g, g->nodes[top++]);
        if (top == g->size || !graph_ok(g)) break;
    }
    if (stale)                              /* sources come before their users, so one pass from the end reaches all */
        for (int i = g->n_nodes; i-- > 0; )
            if (g->nodes[i]->flags & GGML_TENSOR_FLAG_COMPUTE)
                for (int s = 0; s < GGML_MAX_SRC; s++) if (g->nodes[i]->src[s]) mark(g->nodes[i]->src[s], true);
}

static void graph_expand(struct ggml_cgraph *g, struct ggml_tensor *t, bool compute) {
    if (!g) return;
    if (!t) graph_give_up(g, "a tensor to compute is NULL");
    if (graph_ok(g)) graph_visit(g, t, compute);
}

void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) { graph_expand(cgraph, tensor, true); }
void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor)  { graph_expand(cgraph, tensor, false); }

struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors, int n_tensors,
                                              int idx) {
    if (idx < 0 || idx >= n_tensors) GGML_ABORT("ggml_build_forward_select: %d is not one of %d tensors", idx, n_tensors);
    for (int i = 0; i < n_tensors; i++) graph_expand(cgraph, tensors[i], i == idx);
    return tensors[idx];
}

void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    if (!cgraph) return;
    if (!tensor) graph_give_up(cgraph, "a tensor to add is NULL");
    else if (cgraph->n_nodes == cgraph->size) graph_give_up(cgraph, "too many nodes");
    else cgraph->nodes[cgraph->n_nodes++] = tensor;
}

struct ggml_cgraph ggml_graph_view(struct ggml_cgraph *graph, int i0, int i1) {
    return (struct ggml_cgraph) {
        .n_nodes = i1 - i0, .nodes = graph->nodes + i0, .use_counts = graph->use_counts,
        .visited_hash_set = graph->visited_hash_set, .order = graph->order,
    };
}

void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst) {
    if (dst->size < src->n_nodes || dst->size < src->n_leafs || dst->visited_hash_set.size < src->visited_hash_set.size)
        GGML_ABORT("ggml_graph_cpy: %d nodes and %d leafs do not fit a graph of size %d", src->n_nodes, src->n_leafs, dst->size);
    ggml_graph_clear(dst);
    dst->n_nodes = src->n_nodes;
    dst->n_leafs = src->n_leafs;
    dst->order   = src->order;
    if (src->n_nodes) memcpy(dst->nodes, src->nodes, (size_t) src->n_nodes*sizeof *src->nodes);
    if (src->n_leafs) memcpy(dst->leafs, src->leafs, (size_t) src->n_leafs*sizeof *src->leafs);
    for (size_t i = 0; i < src->visited_hash_set.size; i++) {
        if (!hash_used(&src->visited_hash_set, i)) continue;
        const size_t j = hash_insert(&dst->visited_hash_set, src->visited_hash_set.keys[i]);
        dst->use_counts[j] = src->use_counts[i];
        if (src->grads     && dst->grads)     dst->grads[j]     = src->grads[i];
        if (src->grad_accs && dst->grad_accs) dst->grad_accs[j] = src->grad_accs[i];
    }
}

struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads) {
    struct ggml_cgraph *r = cgraph ? ggml_new_graph_custom(ctx, (size_t) cgraph->size, cgraph->grads || force_grads) : NULL;
    if (r) ggml_graph_cpy(cgraph, r);
    return r;
}

void ggml_graph_reset(struct ggml_cgraph *cgraph) {
    static const float one = 1.0f;
    if (!cgraph) return;
    if (!cgraph->grads) GGML_ABORT("ggml_graph_reset: the graph has no gradients");
    for (int i = 0; i < cgraph->n_nodes; i++) {
        struct ggml_tensor *t = cgraph->nodes[i], *acc = ggml_graph_get_grad_acc(cgraph, t);
        if (t->op == GGML_OP_OPT_STEP_ADAMW) { ggml_set_zero(t->src[2]); ggml_set_zero(t->src[3]); }
        if (!acc) continue;
        if (!(t->flags & GGML_TENSOR_FLAG_LOSS)) ggml_set_zero(acc);
        else if (acc->buffer)                    ggml_backend_tensor_set(acc, &one, 0, sizeof one);
        else { GGML_ASSERT(acc->data); memcpy(acc->data, &one, sizeof one); }
    }
}

int                  ggml_graph_size(struct ggml_cgraph *cgraph)    { return cgraph ? cgraph->size    : 0; }
int                  ggml_graph_n_nodes(struct ggml_cgraph *cgraph) { return cgraph ? cgraph->n_nodes : 0; }
struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph)   { return cgraph ? cgraph->nodes   : NULL; }

struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i) {
    const int n = ggml_graph_n_nodes(cgraph), at = i < 0 ? n + i : i;
    if (at < 0 || at >= n) GGML_ABORT("ggml_graph_node: there is no node %d, the graph has %d", i, n);
    return cgraph->nodes[at];
}

struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name) {
    for (int i = 0; i < cgraph->n_leafs; i++) if (!strcmp(cgraph->leafs[i]->name, name)) return cgraph->leafs[i];
    for (int i = 0; i < cgraph->n_nodes; i++) if (!strcmp(cgraph->nodes[i]->name, name)) return cgraph->nodes[i];
    return NULL;
}

static struct ggml_tensor *grad_of(const struct ggml_cgraph *g, struct ggml_tensor **table, const struct ggml_tensor *node) {
    const size_t i = table ? hash_find(&g->visited_hash_set, node) : HASH_FULL;
    return i != HASH_FULL && hash_used(&g->visited_hash_set, i) ? table[i] : NULL;
}

struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node) {
    return grad_of(cgraph, cgraph->grads, node);
}

struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node) {
    return grad_of(cgraph, cgraph->grad_accs, node);
}

void ggml_graph_print(const struct ggml_cgraph *cgraph) {
    const int n = cgraph->n_nodes + cgraph->n_leafs;
    LOG_INFO("graph: %d nodes, %d leafs\n", cgraph->n_nodes, cgraph->n_leafs);
    for (int i = 0; i < n; i++) {
        const struct ggml_tensor *t = i < cgraph->n_nodes ? cgraph->nodes[i] : cgraph->leafs[i - cgraph->n_nodes];
        LOG_INFO("%5d  %-16s %-8s [%6" PRId64 ", %6" PRId64 ", %6" PRId64 ", %6" PRId64 "]  %s\n", i, ggml_op_desc(t),
            ggml_type_name(t->type), t->ne[0], t->ne[1], t->ne[2], t->ne[3], t->name);
    }
}

static void dot_string(FILE *f, const char *s) {
    for (; *s; s++) {
        if (strchr("\"\\<>{}|", *s)) fputc('\\', f);
        fputc(*s, f);
    }
}

void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char *filename) {
    FILE *f = ggml_fopen(filename, "w");
    if (!f) { LOG_ERROR("ggml_graph_dump_dot: %s cannot be written\n", filename); return; }
    fputs("digraph {\n  node [shape = record, style = filled, fillcolor = white];\n", f);
    for (int i = 0; i < gb->n_nodes + gb->n_leafs; i++) {
        const struct ggml_tensor *t = i < gb->n_nodes ? gb->nodes[i] : gb->leafs[i - gb->n_nodes];
        const bool forward = cgraph && hash_contains(&cgraph->visited_hash_set, t);
        fprintf(f, "  \"%p\" [fillcolor = %s, label = \"", (const void *) t, is_leaf(t) ? "pink" : forward ? "lightgreen" : "white");
        dot_string(f, t->name);
        fprintf(f, " | %s [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] | ", ggml_type_name(t->type),
            t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
        dot_string(f, ggml_op_symbol(t->op));
        fputs("\"];\n", f);
        for (int s = 0; s < GGML_MAX_SRC; s++)
            if (t->src[s]) fprintf(f, "  \"%p\" -> \"%p\" [label = \"%d\"];\n", (void *) t->src[s], (const void *) t, s);
    }
    fputs("}\n", f);
    if (fclose(f)) LOG_ERROR("ggml_graph_dump_dot: %s is incomplete\n", filename);
}

/* ---- thread pool parameters ------------------------------------------------------------------------------------- */

void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads) {
    *p = (struct ggml_threadpool_params) { .n_threads = n_threads, .prio = GGML_SCHED_PRIO_NORMAL, .poll = 50 };
}

struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads) {
    struct ggml_threadpool_params p;
    ggml_threadpool_params_init(&p, n_threads);
    return p;
}

bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct ggml_threadpool_params *p1) {
    return p0->n_threads == p1->n_threads && p0->prio == p1->prio && p0->poll == p1->poll &&
        p0->strict_cpu == p1->strict_cpu && !memcmp(p0->cpumask, p1->cpumask, sizeof p0->cpumask);
}
