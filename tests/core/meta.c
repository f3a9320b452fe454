/* The meta device: graphs over leafs that are divided in every way give what one device gives.
 *
 * How a leaf is divided stands in its name: "w@1/8" along axis 1 in shares of multiples of 8 (more for the first device, some
 * may get none), "w@0x2" in two rounds, "w@p" in summands, "w" not at all. */

#include "check.h"
#include "interpose.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "limited.h"
#include "../../src/backends/meta.h"

enum { MIRRORED = GGML_BACKEND_SPLIT_AXIS_MIRRORED, PARTIAL = GGML_BACKEND_SPLIT_AXIS_PARTIAL };

static ggml_backend_dev_t cpu_device;
static int   said;
static void quiet(enum ggml_log_level level, const char *text, void *data) { (void) text, (void) data; said += level == GGML_LOG_LEVEL_ERROR; }

/* ---- divisions -------------------------------------------------------------------------------------------------------- */

static const int *n_of;                     /* devices of the meta device at hand: what a callback's data is for */

static void shares_of(int64_t length, int64_t grain, int n, int64_t *ne) {
    int64_t left = length/grain;
    for (int j = 0; j < n; j++) {
        const int64_t own = j == n - 1 ? left : left - left/(n - j + 1);
        ne[j] = own*grain;
        left -= own;
    }
}

static struct ggml_backend_meta_split_state by_name(const struct ggml_tensor *t, void *data) {
    const int n = *(const int *) data;
    struct ggml_backend_meta_split_state s = { .axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED, .nr = {1}, .n_segments = 1 };
    const char *at = strchr(t->name, '@');
    if (!at) return s;
    if (at[1] == 'p') { s.axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL; return s; }
    s.axis = (enum ggml_backend_meta_split_axis) (at[1] - '0');
    const char *rounds = strchr(at, 'x'), *grain = strchr(at, '/');
    s.nr[0] = rounds ? (uint32_t) atoi(rounds + 1) : 1;
    shares_of(t->ne[s.axis]/s.nr[0], grain ? atoi(grain + 1) : 1, n, s.ne);
    return s;
}

/* ---- a graph on a device ------------------------------------------------------------------------------------------------ */

struct scene {
    struct ggml_context *leafs, *nodes;
    struct ggml_tensor  *watched[8];
    int                  n_watched;
};
typedef struct ggml_tensor *build(struct scene *s);

static struct ggml_tensor *leaf(struct scene *s, const char *name, enum ggml_type type, int64_t n0, int64_t n1, int64_t n2) {
    return ggml_set_name(ggml_new_tensor_3d(s->leafs, type, n0, n1, n2), name);
}

static uint64_t seed_of(const char *name) {
    uint64_t h = 7;
    for (; *name && *name != '@'; name++) h = h*31 + (uint64_t) *name;
    return h;
}

/* Names that begin with i are indices: 0, 1, 2, ... in some order. */
static void fill(struct ggml_tensor *t) {
    uint64_t seed = seed_of(t->name);
    const int64_t n = ggml_nelements(t);
    float *x = malloc((size_t) n*sizeof *x);
    void *data = malloc(ggml_nbytes(t));
    for (int64_t i = 0; i < n; i++) x[i] = rnd_f32(&seed);
    if (t->type == GGML_TYPE_I32 || t->type == GGML_TYPE_I64) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t id = t->type == GGML_TYPE_I64 ? (i*2 + 1)%(2*n + 1) : (i*3 + 1)%4;
            if (t->type == GGML_TYPE_I64) ((int64_t *) data)[i] = id;
            else ((int32_t *) data)[i] = (int32_t) id;
        }
    } else if (t->type == GGML_TYPE_F32) memcpy(data, x, ggml_nbytes(t));
    else ggml_quantize_chunk(t->type, x, data, 0, n/t->ne[0], t->ne[0], NULL);
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(data);
    free(x);
}

struct result {
    enum ggml_status status;
    struct ggml_backend_meta_split_state split;     /* of the last node */
    float *data;                                    /* of it and of what is watched, one after the other */
    size_t n;
};

static void read_into(struct result *r, const struct ggml_tensor *t) {
    r->data = realloc(r->data, (r->n + (size_t) ggml_nelements(t))*sizeof *r->data);
    float *to = r->data + r->n;
    r->n += (size_t) ggml_nelements(t);
    char *raw = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, raw, 0, ggml_nbytes(t));
    if (t->type == GGML_TYPE_F32) memcpy(to, raw, ggml_nbytes(t));
    else if (t->type == GGML_TYPE_I32) for (int64_t i = 0; i < ggml_nelements(t); i++) to[i] = (float) ((int32_t *) raw)[i];
    else ggml_get_type_traits(t->type)->to_float(raw, to, ggml_nelements(t));
    free(raw);
}

static struct result run(ggml_backend_dev_t device, build *b) {
    const struct ggml_init_params params = { .mem_size = 1 << 20, .no_alloc = true };
    struct scene s = { .leafs = ggml_init(params), .nodes = ggml_init(params) };
    struct result r = { .status = GGML_STATUS_ALLOC_FAILED };
    struct ggml_tensor *last = b(&s);
    ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(s.leafs, backend);
    struct ggml_cgraph *graph = ggml_new_graph_custom(s.nodes, 512, false);
    ggml_set_output(last);
    for (int i = 0; i < s.n_watched; i++) { ggml_set_output(s.watched[i]); ggml_build_forward_expand(graph, s.watched[i]); }
    ggml_build_forward_expand(graph, last);
    ggml_gallocr_t plan = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend));
    if (memory && ggml_gallocr_alloc_graph(plan, graph)) {
        for (struct ggml_tensor *t = ggml_get_first_tensor(s.leafs); t; t = ggml_get_next_tensor(s.leafs, t)) if (!t->view_src) fill(t);
        for (int i = 0; i < 2; i++) r.status = ggml_backend_graph_compute(backend, graph);      /* twice: the same */
    }
    if (r.status == GGML_STATUS_SUCCESS) {
        read_into(&r, last);
        for (int i = 0; i < s.n_watched; i++) read_into(&r, s.watched[i]);
        const struct ggml_tensor *root = last->view_src ? last->view_src : last;
        if (n_of && ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_META) {
            split_view(root, meta_split_of(root, *n_of), last, *n_of, &r.split);
        }
    }
    ggml_gallocr_free(plan);
    ggml_backend_buffer_free(memory);
    ggml_backend_free(backend);
    ggml_free(s.nodes);
    ggml_free(s.leafs);
    return r;
}

static void same(const struct result *a, const struct result *b, double bound, const char *what) {
    CHECK(a->status == GGML_STATUS_SUCCESS && b->status == GGML_STATUS_SUCCESS, "%s: status %d, %d", what, (int) a->status, (int) b->status);
    CHECK(a->n == b->n, "%s: %zu and %zu elements", what, a->n, b->n);
    if (a->n != b->n || !a->n) return;
    double most = 0, worst = 0;
    for (size_t i = 0; i < a->n; i++) {
        most  = fmax(most, fabs((double) a->data[i]));
        worst = fmax(worst, fabs((double) a->data[i] - (double) b->data[i]));
    }
    if (bound == 0) CHECK(!memcmp(a->data, b->data, a->n*sizeof *a->data), "%s: other bits, by %g", what, worst);
    else CHECK(worst <= bound*most, "%s: off by %g of %g", what, worst, most);
}

/* ---- single ops ----------------------------------------------------------------------------------------------------------- */

#define OP(name, ...) static struct ggml_tensor *name(struct scene *s) { struct ggml_context *c = s->nodes; return __VA_ARGS__; }
#define F32(name, ...) leaf(s, name, GGML_TYPE_F32, __VA_ARGS__)
#define F16(name, ...) leaf(s, name, GGML_TYPE_F16, __VA_ARGS__)
#define Q4(name, ...)  leaf(s, name, GGML_TYPE_Q4_0, __VA_ARGS__)
#define I32(name, ...) leaf(s, name, GGML_TYPE_I32, __VA_ARGS__)

OP(product_rows,      ggml_mul_mat(c, F32("w@1", 64, 7, 1), F32("x", 64, 5, 1)))
OP(product_rows_q,    ggml_mul_mat(c, Q4("w@1", 256, 9, 1), F32("x", 256, 5, 1)))
OP(product_one_row,   ggml_mul_mat(c, Q4("w@1", 256, 1, 1), F32("x", 256, 1, 1)))
OP(product_rounds,    ggml_mul_mat(c, F32("w@1x2", 64, 12, 1), F32("x", 64, 3, 1)))
OP(product_columns,   ggml_mul_mat(c, F32("w@0", 67, 7, 1), F32("x", 67, 5, 1)))
OP(product_columns_q, ggml_mul_mat(c, Q4("w@0/32", 256, 9, 1), F32("x@0/32", 256, 5, 1)))
OP(product_other,     ggml_mul_mat(c, Q4("w@0/32", 256, 9, 1), F32("x@0/64", 256, 5, 1)))
OP(product_tokens,    ggml_mul_mat(c, Q4("w", 64, 9, 1), F32("x@1", 64, 5, 1)))
OP(product_whole,     ggml_mul_mat(c, Q4("w", 64, 9, 1), F32("x@0", 64, 5, 1)))
OP(product_batch,     ggml_mul_mat(c, F32("w@2", 16, 4, 3), F32("x@2/2", 16, 5, 6)))
OP(product_batch_w,   ggml_mul_mat(c, F32("w@2", 16, 4, 3), F32("x", 16, 5, 6)))
OP(product_batch_x,   ggml_mul_mat(c, F32("w", 16, 4, 3), F32("x@2/2", 16, 5, 6)))
OP(product_batch_one, ggml_mul_mat(c, F32("w", 16, 4, 1), F32("x@2", 16, 5, 5)))
OP(experts_rows,      ggml_mul_mat_id(c, Q4("w@1", 64, 9, 4), F32("x", 64, 1, 3), I32("ids", 2, 3, 1)))
OP(experts_columns,   ggml_mul_mat_id(c, Q4("w@0/32", 128, 9, 4), F32("x@0/32", 128, 2, 3), I32("ids", 2, 3, 1)))
OP(experts_apart,     ggml_mul_mat_id(c, Q4("w@2", 64, 9, 4), F32("x", 64, 1, 3), I32("ids", 2, 3, 1)))
OP(add_both,          ggml_add(c, F32("a@0", 10, 3, 1), F32("b@0", 10, 3, 1)))
OP(add_first,         ggml_add(c, F32("a@1", 10, 3, 1), F32("b", 10, 3, 1)))
OP(add_second,        ggml_add(c, F32("a", 10, 3, 1), F32("b@0", 10, 1, 1)))
OP(add_row,           ggml_add(c, F32("a@1", 10, 3, 1), F32("b", 10, 1, 1)))
OP(add_crossed,       ggml_add(c, F32("a@1", 10, 3, 1), F32("b@0", 10, 3, 1)))
OP(add_repeated,      ggml_add(c, F32("a@0", 10, 4, 1), F32("b", 5, 2, 1)))
OP(add_id,            ggml_add_id(c, F32("a@0", 10, 2, 3), F32("b@0", 10, 4, 1), I32("ids", 2, 3, 1)))
OP(mul_rounds,        ggml_mul(c, F32("a@0x3", 12, 4, 1), F32("b", 12, 1, 1)))
OP(summands_first,    ggml_mul(c, F32("a@p", 10, 3, 1), F32("b", 10, 1, 1)))
OP(summands_both,     ggml_scale(c, ggml_add(c, F32("a@p", 10, 3, 1), F32("b@p", 10, 3, 1)), 2.0f))
OP(summands_whole,    ggml_sqr(c, F32("a@p", 10, 3, 1)))
OP(summands_offset,   ggml_scale_bias(c, F32("a@p", 10, 3, 1), 2.0f, 1.0f))
OP(norm_rows,         ggml_rms_norm(c, F32("a@1", 10, 3, 1), 1e-5f))
OP(norm_elements,     ggml_norm(c, F32("a@0", 10, 3, 1), 1e-5f))
OP(unary_silu,        ggml_silu(c, F32("a@2", 10, 3, 5)))
OP(scale_all,         ggml_scale_bias(c, F32("a@0", 10, 3, 5), 2.0f, 1.0f))
OP(glu_pair,          ggml_swiglu_split(c, F32("a@0", 10, 3, 1), F32("b@0", 10, 3, 1)))
OP(glu_halves,        ggml_swiglu(c, F32("a@0x2", 20, 3, 1)))
OP(glu_across,        ggml_swiglu(c, F32("a@0", 20, 3, 1)))
OP(glu_tokens,        ggml_geglu(c, F32("a@1", 20, 3, 1)))
OP(soft_max_heads,    ggml_soft_max_ext(c, F32("a@2", 10, 3, 3), F16("m", 10, 3, 1), 0.5f, 0.0f))
OP(soft_max_slopes,   ggml_soft_max_ext(c, F32("a@2", 10, 3, 4), F16("m", 10, 3, 1), 0.5f, 8.0f))
OP(rope_heads,        ggml_rope(c, F32("a@1", 8, 3, 4), I32("pos", 4, 1, 1), 8, 0))
OP(rope_tokens,       ggml_rope(c, F32("a@2", 8, 3, 4), I32("pos", 4, 1, 1), 8, 0))
OP(rope_elements,     ggml_rope(c, F32("a@0", 8, 3, 4), I32("pos", 4, 1, 1), 8, GGML_ROPE_TYPE_NEOX))
OP(rows_columns,      ggml_get_rows(c, Q4("a@0/32", 96, 4, 1), I32("ids", 5, 1, 1)))
OP(rows_rows,         ggml_get_rows(c, F32("a@1", 9, 4, 1), I32("ids", 5, 1, 1)))
OP(concat_other,      ggml_concat(c, F32("a@1", 9, 4, 1), F32("b@1", 3, 4, 1), 0))
OP(concat_same,       ggml_concat(c, F32("a@1", 9, 4, 1), F32("b@1", 9, 2, 1), 1))
OP(repeat_other,      ggml_repeat_4d(c, F32("a@0", 9, 2, 1), 9, 4, 2, 1))
OP(cont_heads,        ggml_cont_2d(c, ggml_permute(c, F32("a@2", 6, 4, 3), 0, 2, 1, 3), 18, 4))
OP(cont_transposed,   ggml_cont(c, ggml_transpose(c, F32("a@0", 6, 4, 3))))
OP(cont_flat,         ggml_cont_1d(c, F32("a@0", 6, 4, 1), 24))
OP(cast_q,            ggml_cast(c, F32("a@0/32", 96, 4, 1), GGML_TYPE_Q8_0))
OP(view_columns,      ggml_sqr(c, ggml_view_2d(c, F32("a@0", 12, 4, 1), 5, 4, 12*sizeof(float), 3*sizeof(float))))
OP(view_one,          ggml_sqr(c, ggml_view_2d(c, F32("a@0", 12, 4, 1), 1, 4, 12*sizeof(float), 3*sizeof(float))))
OP(view_heads,        ggml_sqr(c, ggml_reshape_3d(c, F32("a@0/4", 12, 4, 1), 4, 3, 4)))
OP(view_through,      ggml_sqr(c, ggml_reshape_3d(c, F32("a@0/3", 12, 4, 1), 4, 3, 4)))
OP(view_group,        ggml_sqr(c, ggml_view_2d(c, F32("a@0x3", 24, 4, 1), 8, 4, 24*sizeof(float), 8*sizeof(float))))
OP(no_rule,           ggml_pool_1d(c, F32("a@0", 12, 4, 1), GGML_OP_POOL_AVG, 2, 2, 0))
OP(argsort_rows,      ggml_argsort(c, F32("a@1", 12, 4, 1), GGML_SORT_ORDER_ASC))
OP(top_k_elements,    ggml_top_k(c, F32("a@0", 12, 4, 1), 1))
OP(in_place,          ggml_add_inplace(c, F32("a@0", 12, 4, 1), F32("b", 12, 4, 1)))
OP(in_place_node,     ggml_scale_inplace(c, ggml_mul_mat(c, F32("w@1", 16, 9, 1), F32("x", 16, 3, 1)), 2.0f))
OP(store_same,        ggml_cpy(c, F32("a@0", 12, 4, 1), F16("b@0", 12, 4, 1)))
OP(store_whole,       ggml_cpy(c, F32("a", 12, 4, 1), F16("b@0", 12, 4, 1)))
OP(store_heads,       ggml_cpy(c, F32("a@1", 4, 3, 4), F16("b@0/4", 12, 4, 1)))
OP(store_part,        ggml_cpy(c, F32("a@0", 12, 2, 1), ggml_view_2d(c, F16("b@0", 12, 4, 1), 12, 2, 24, 24)))
OP(store_rows,        ggml_set_rows(c, F16("b@0", 12, 9, 1), F32("a@0", 12, 4, 1), leaf(s, "i", GGML_TYPE_I64, 4, 1, 1)))
OP(store_rows_whole,  ggml_set_rows(c, F16("b@0", 12, 9, 1), F32("a", 12, 4, 1), leaf(s, "i", GGML_TYPE_I64, 4, 1, 1)))
OP(store_in_whole,    ggml_set_rows(c, F16("b", 12, 9, 1), F32("a@0", 12, 4, 1), leaf(s, "i", GGML_TYPE_I64, 4, 1, 1)))
OP(attention_heads,   ggml_flash_attn_ext(c, F32("q@2/2", 8, 3, 6), F16("k@2", 8, 10, 3), F16("v@2", 8, 10, 3), F16("m", 10, 3, 1), 0.3f, 0, 0))
OP(attention_mixed,   ggml_flash_attn_ext(c, F32("q@2/2", 8, 3, 6), F16("k", 8, 10, 3), F16("v@2", 8, 10, 3), F16("m", 10, 3, 1), 0.3f, 0, 0))
OP(attention_one,     ggml_flash_attn_ext(c, F32("q@2", 8, 3, 6), F16("k", 8, 10, 1), F16("v", 8, 10, 1), F16("m", 10, 3, 1), 0.3f, 0, 0))
OP(attention_across,  ggml_flash_attn_ext(c, F32("q@2", 8, 3, 6), F16("k@2", 8, 10, 2), F16("v@2", 8, 10, 2), F16("m", 10, 3, 1), 0.3f, 0, 0))
OP(attention_slopes,  ggml_flash_attn_ext(c, F32("q@2/2", 8, 3, 6), F16("k@2", 8, 10, 3), F16("v@2", 8, 10, 3), F16("m", 10, 3, 1), 0.3f, 8, 0))

/* Both products of a unit; its sum is added up where the norm reads it. */
static struct ggml_tensor *unit(struct scene *s) {
    struct ggml_context *c = s->nodes;
    struct ggml_tensor *x = F32("x", 64, 3, 1);
    struct ggml_tensor *up = ggml_mul_mat(c, Q4("up@1/32", 64, 96, 1), x), *gate = ggml_mul_mat(c, Q4("gate@1/32", 64, 96, 1), x);
    struct ggml_tensor *down = ggml_mul_mat(c, Q4("down@0/32", 96, 64, 1), ggml_swiglu_split(c, gate, up));
    return ggml_rms_norm(c, ggml_add(c, down, x), 1e-5f);
}
OP(product_two,       ggml_sub(c, ggml_mul_mat(c, F32("w@0", 67, 7, 1), F32("x", 67, 5, 1)), ggml_mul_mat(c, F32("v@0", 67, 7, 1), F32("x", 67, 5, 1))))

static const struct { const char *name; build *build; int axis; double bound; } ops[] = {
#define CASE(name, axis, bound) { #name, name, axis, bound }
    CASE(product_rows, 0, 0), CASE(product_rows_q, 0, 0), CASE(product_one_row, 0, 0), CASE(product_rounds, 0, 0),
    CASE(product_columns, PARTIAL, 1e-6), CASE(product_columns_q, PARTIAL, 1e-6), CASE(product_other, PARTIAL, 1e-6),
    CASE(product_tokens, 1, 0), CASE(product_whole, MIRRORED, 0), CASE(product_batch, 2, 0), CASE(product_batch_w, 2, 0),
    CASE(product_batch_x, 2, 0), CASE(product_batch_one, 2, 0), CASE(experts_rows, 0, 0), CASE(experts_columns, PARTIAL, 1e-6),
    CASE(experts_apart, MIRRORED, 0), CASE(add_both, 0, 0), CASE(add_first, 1, 0), CASE(add_second, 0, 0), CASE(add_row, 1, 0),
    CASE(add_crossed, 1, 0), CASE(add_repeated, MIRRORED, 0), CASE(add_id, 0, 0), CASE(mul_rounds, MIRRORED, 0),
    CASE(summands_first, PARTIAL, 0), CASE(summands_both, PARTIAL, 0), CASE(summands_whole, MIRRORED, 0),
    CASE(summands_offset, MIRRORED, 0), CASE(norm_rows, 1, 0), CASE(norm_elements, MIRRORED, 0), CASE(unary_silu, 2, 0),
    CASE(scale_all, 0, 0), CASE(glu_pair, 0, 0), CASE(glu_halves, 0, 0), CASE(glu_across, MIRRORED, 0), CASE(glu_tokens, 1, 0),
    CASE(soft_max_heads, 2, 0), CASE(soft_max_slopes, MIRRORED, 0), CASE(rope_heads, 1, 0), CASE(rope_tokens, MIRRORED, 0),
    CASE(rope_elements, MIRRORED, 0), CASE(rows_columns, 0, 0), CASE(rows_rows, MIRRORED, 0), CASE(concat_other, 1, 0),
    CASE(concat_same, MIRRORED, 0), CASE(repeat_other, 0, 0), CASE(cont_heads, 0, 0), CASE(cont_transposed, 1, 0),
    CASE(cont_flat, MIRRORED, 0), CASE(cast_q, 0, 0), CASE(view_columns, 0, 0), CASE(view_one, MIRRORED, 0), CASE(view_heads, 1, 0),
    CASE(view_through, MIRRORED, 0), CASE(view_group, 0, 0), CASE(no_rule, MIRRORED, 0), CASE(argsort_rows, 1, 0),
    CASE(top_k_elements, MIRRORED, 0), CASE(in_place, 0, 0), CASE(in_place_node, 0, 0), CASE(store_same, 0, 0), CASE(store_whole, 0, 0),
    CASE(store_heads, 0, 0), CASE(store_part, 0, 0), CASE(store_rows, 0, 0), CASE(store_rows_whole, 0, 0), CASE(store_in_whole, MIRRORED, 0),
    CASE(attention_heads, 1, 0), CASE(attention_mixed, 1, 0), CASE(attention_one, 1, 0), CASE(attention_across, MIRRORED, 0),
    CASE(attention_slopes, MIRRORED, 0), CASE(unit, MIRRORED, 1e-5), CASE(product_two, PARTIAL, 1e-5),
};

static ggml_backend_dev_t meta_of(int n, const int *userdata) {
    ggml_backend_dev_t devices[META_MAX];
    for (int j = 0; j < n; j++) devices[j] = cpu_device;
    return ggml_backend_meta_device(devices, (size_t) n, by_name, (void *) (uintptr_t) userdata);
}

static const int counts[] = { 1, 2, 3, 5, 16 };

static void single_ops(void) {
    for (size_t i = 0; i < sizeof ops/sizeof *ops; i++) {
        n_of = NULL;
        struct result want = run(cpu_device, ops[i].build);
        for (size_t k = 0; k < sizeof counts/sizeof *counts; k++) {
            char what[64];
            n_of = &counts[k];
            struct result got = run(meta_of(counts[k], n_of), ops[i].build);
            snprintf(what, sizeof what, "%s on %d", ops[i].name, counts[k]);
            same(&want, &got, ops[i].bound, what);
            if (counts[k] == 2) CHECK((int) got.split.axis == ops[i].axis, "%s: axis %d", what, (int) got.split.axis);
            free(got.data);
        }
        free(want.data);
    }
}

/* ---- a layer of a decoder ---------------------------------------------------------------------------------------------------- */

enum { EMBD = 64, HEAD = 16, HEADS = 6, HEADS_KV = 3, TOKENS = 4, CACHE = 12, FF = 96, EXPERTS = 4, USED = 2 };

static struct ggml_tensor *attention(struct scene *s, struct ggml_tensor *x, bool fused) {
    struct ggml_context *c = s->nodes;
    struct ggml_tensor *pos = I32("pos", TOKENS, 1, 1), *at = leaf(s, "i", GGML_TYPE_I64, TOKENS, 1, 1), *mask = F16("mask", CACHE, TOKENS, 1);
    struct ggml_tensor *k_cache = F16("kc@0/16", HEAD*HEADS_KV, CACHE, 1), *v_cache = F16("vc@0/16", HEAD*HEADS_KV, CACHE, 1);
    struct ggml_tensor *q = ggml_mul_mat(c, Q4("wq@1/32", EMBD, HEAD*HEADS, 1), x), *k = ggml_mul_mat(c, Q4("wk@1/16", EMBD, HEAD*HEADS_KV, 1), x);
    struct ggml_tensor *v = ggml_add(c, ggml_mul_mat(c, Q4("wv@1/16", EMBD, HEAD*HEADS_KV, 1), x), F32("bv@0/16", HEAD*HEADS_KV, 1, 1));
    q = ggml_rope(c, ggml_rms_norm(c, ggml_reshape_3d(c, q, HEAD, HEADS, TOKENS), 1e-5f), pos, HEAD, GGML_ROPE_TYPE_NEOX);
    k = ggml_rope(c, ggml_reshape_3d(c, k, HEAD, HEADS_KV, TOKENS), pos, HEAD, GGML_ROPE_TYPE_NEOX);
    s->watched[s->n_watched++] = ggml_set_rows(c, k_cache, ggml_reshape_2d(c, k, HEAD*HEADS_KV, TOKENS), at);
    s->watched[s->n_watched++] = ggml_set_rows(c, v_cache, v, at);
    q = ggml_permute(c, q, 0, 2, 1, 3);
    k = ggml_permute(c, ggml_view_3d(c, k_cache, HEAD, HEADS_KV, CACHE, HEAD*2, HEAD*HEADS_KV*2, 0), 0, 2, 1, 3);
    v = ggml_permute(c, ggml_view_3d(c, v_cache, HEAD, HEADS_KV, CACHE, HEAD*2, HEAD*HEADS_KV*2, 0), 0, 2, 1, 3);
    struct ggml_tensor *y;
    if (fused) y = ggml_reshape_2d(c, ggml_flash_attn_ext(c, q, k, v, mask, 0.25f, 0, 0), HEAD*HEADS, TOKENS);
    else {
        struct ggml_tensor *scores = ggml_soft_max_ext(c, ggml_mul_mat(c, k, q), mask, 0.25f, 0);
        y = ggml_mul_mat(c, ggml_cont(c, ggml_transpose(c, v)), scores);
        y = ggml_cont_2d(c, ggml_permute(c, y, 0, 2, 1, 3), HEAD*HEADS, TOKENS);
    }
    return ggml_mul_mat(c, Q4("wo@0/32", HEAD*HEADS, EMBD, 1), y);
}

static struct ggml_tensor *feed_forward(struct scene *s, struct ggml_tensor *x) {
    struct ggml_context *c = s->nodes;
    struct ggml_tensor *up = ggml_mul_mat(c, Q4("wu@1/32", EMBD, FF, 1), x), *gate = ggml_mul_mat(c, Q4("wg@1/32", EMBD, FF, 1), x);
    return ggml_mul_mat(c, Q4("wd@0/32", FF, EMBD, 1), ggml_swiglu_split(c, gate, up));
}

static struct ggml_tensor *experts(struct scene *s, struct ggml_tensor *x) {
    struct ggml_context *c = s->nodes;
    struct ggml_tensor *p = ggml_soft_max(c, ggml_mul_mat(c, F32("router", EMBD, EXPERTS, 1), x));
    struct ggml_tensor *ids = ggml_argsort_top_k(c, p, USED);
    struct ggml_tensor *weights = ggml_get_rows(c, ggml_reshape_3d(c, p, 1, EXPERTS, TOKENS), ids);
    x = ggml_reshape_3d(c, x, EMBD, 1, TOKENS);
    struct ggml_tensor *up = ggml_mul_mat_id(c, Q4("eu@1/32", EMBD, FF, EXPERTS), x, ids);
    struct ggml_tensor *gate = ggml_mul_mat_id(c, Q4("eg@1/32", EMBD, FF, EXPERTS), x, ids);
    struct ggml_tensor *y = ggml_mul_mat_id(c, Q4("ed@0/32", FF, EMBD, EXPERTS), ggml_swiglu_split(c, gate, up), ids);
    y = ggml_mul(c, y, weights);
    struct ggml_tensor *sum = ggml_view_2d(c, y, EMBD, TOKENS, y->nb[2], 0);
    for (int i = 1; i < USED; i++) sum = ggml_add(c, sum, ggml_view_2d(c, y, EMBD, TOKENS, y->nb[2], (size_t) i*y->nb[1]));
    return sum;
}

static struct ggml_tensor *layer(struct scene *s, bool fused, bool mixture) {
    struct ggml_context *c = s->nodes;
    struct ggml_tensor *x = ggml_get_rows(c, Q4("embd", EMBD, 9, 1), I32("ids", TOKENS, 1, 1));
    struct ggml_tensor *y = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), F32("n1", EMBD, 1, 1));
    x = ggml_add(c, attention(s, y, fused), x);
    y = ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), F32("n2", EMBD, 1, 1));
    x = ggml_add(c, mixture ? experts(s, y) : feed_forward(s, y), x);
    return ggml_mul_mat(c, Q4("out@1", EMBD, 11, 1), ggml_rms_norm(c, x, 1e-5f));
}
static struct ggml_tensor *dense_fused(struct scene *s)   { return layer(s, true, false); }
static struct ggml_tensor *dense_plain(struct scene *s)   { return layer(s, false, false); }
static struct ggml_tensor *mixture_fused(struct scene *s) { return layer(s, true, true); }
static struct ggml_tensor *attention_alone(struct scene *s) { return attention(s, F32("x", EMBD, TOKENS, 1), true); }

static build *const layers[] = { dense_fused, dense_plain, mixture_fused, attention_alone };

static void whole_layers(void) {
    for (size_t i = 0; i < sizeof layers/sizeof *layers; i++) {
        n_of = NULL;
        struct result want = run(cpu_device, layers[i]);
        for (size_t k = 0; k < sizeof counts/sizeof *counts; k++) {
            char what[64];
            n_of = &counts[k];
            struct result got = run(meta_of(counts[k], n_of), layers[i]), again = run(meta_of(counts[k], n_of), layers[i]);
            snprintf(what, sizeof what, "layer %zu on %d", i, counts[k]);
            same(&want, &got, counts[k] == 1 ? 0 : 1e-5, what);
            same(&got, &again, 0, what);
            free(got.data);
            free(again.data);
        }
        free(want.data);
    }
}

/* ---- divisions at random: right, or a line of log and a status ---------------------------------------------------------------- */

struct luck { int n; uint64_t seed; };

static struct ggml_backend_meta_split_state at_random(const struct ggml_tensor *t, void *data) {
    const struct luck *luck = data;
    uint64_t seed = luck->seed*1000003u + seed_of(t->name);
    struct ggml_backend_meta_split_state s = { .axis = GGML_BACKEND_SPLIT_AXIS_MIRRORED, .nr = {1}, .n_segments = 1 };
    const int axis = (int) (rnd_u64(&seed)%6);
    if (axis == 4 && t->type == GGML_TYPE_F32) s.axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL;
    if (axis > 2) return s;
    const int64_t grain = axis == 0 ? ggml_blck_size(t->type) : 1;
    int64_t left = t->ne[axis]/grain;
    s.axis = (enum ggml_backend_meta_split_axis) axis;
    for (int j = 0; j < luck->n; j++) {
        const int64_t own = j == luck->n - 1 ? left : (int64_t) (rnd_u64(&seed)%(uint64_t) (left + 1));
        s.ne[j] = own*grain;
        left -= own;
    }
    return s;
}

static void divided_at_random(void) {
    static struct luck luck[60];
    int computed = 0;
    n_of = NULL;
    struct result want[4];
    for (int i = 0; i < 4; i++) want[i] = run(cpu_device, layers[i]);
    for (int r = 0; r < 60; r++) {
        luck[r] = (struct luck) { .n = 2 + r%3, .seed = (uint64_t) r };
        ggml_backend_dev_t devices[] = { cpu_device, cpu_device, cpu_device, cpu_device };
        said = 0;
        struct result got = run(ggml_backend_meta_device(devices, (size_t) luck[r].n, at_random, &luck[r]), layers[r/3%4]);
        char what[64];
        snprintf(what, sizeof what, "at random %d", r);
        if (got.status == GGML_STATUS_SUCCESS) {
            same(&want[r/3%4], &got, 1e-5, what);
            computed++;
        } else {
            CHECK(said > 0, "%s: status %d without a word", what, (int) got.status);
        }
        free(got.data);
    }
    CHECK(computed >= 25, "%d of 60 are computed", computed);
    for (int i = 0; i < 4; i++) free(want[i].data);
}

/* ---- data -------------------------------------------------------------------------------------------------------------------- */

static void moved(const char *name, enum ggml_type type, const int64_t *ne, int n) {
    static int data_n[META_MAX + 1];
    data_n[n] = n;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 16, .no_alloc = true });
    struct ggml_tensor *t = ggml_set_name(ggml_new_tensor(ctx, type, 4, ne), name);
    struct ggml_tensor *v = ggml_view_1d(ctx, t, ne[0], t->nb[1]);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta_of(n, &data_n[n])));
    CHECK(buffer && t->buffer == buffer && v->buffer == buffer, "%s is placed", name);
    if (!buffer) { ggml_free(ctx); return; }
    const size_t size = ggml_nbytes(t), one = strchr(name, 'p') ? 4 : 1;
    unsigned char *model = malloc(size), *got = malloc(size);
    uint64_t seed = 5;
    for (size_t i = 0; i < size; i++) model[i] = (unsigned char) (rnd_u64(&seed) & 0x3f);   /* no NaN */
    ggml_backend_tensor_set(t, model, 0, size);
    bool ok = true;
    for (int r = 0; r < 200; r++) {
        const size_t at = rnd_u64(&seed)%size/one*one, most = size - at, part = (rnd_u64(&seed)%most + one)/one*one;
        const size_t n_bytes = part > most ? most : part;
        if (r%3 == 0) {
            for (size_t i = 0; i < n_bytes; i++) model[at + i] ^= (unsigned char) (r & 0x3f);
            ggml_backend_tensor_set(t, model + at, at, n_bytes);
        }
        if (r%17 == 0) {
            memset(model + at, r & 0x3f, n_bytes);
            ggml_backend_tensor_memset(t, (uint8_t) (r & 0x3f), at, n_bytes);
        }
        const size_t from = rnd_u64(&seed)%size, to = from + 1 + rnd_u64(&seed)%(size - from);
        memset(got, 0xee, size);
        ggml_backend_tensor_get(t, got, from, to - from);
        ok = ok && !memcmp(got, model + from, to - from);
    }
    CHECK(ok, "%s on %d: other bytes", name, n);
    ggml_backend_tensor_get(v, got, 0, ggml_nbytes(v));
    CHECK(!memcmp(got, model + t->nb[1], ggml_nbytes(v)), "%s: a view", name);
    ggml_backend_tensor_get_2d(t, got, 1, 2, (size_t) ne[1], t->nb[1], 2);
    for (int64_t i = 0; i < ne[1]; i++) CHECK(!memcmp(got + 2*i, model + 1 + (size_t) i*t->nb[1], 2), "%s: row %" PRId64, name, i);
    struct ggml_context *other_ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 16, .no_alloc = true });
    struct ggml_tensor *host = ggml_new_tensor(other_ctx, type, 4, ne);
    ggml_backend_alloc_ctx_tensors_from_buft(other_ctx, ggml_backend_cpu_buffer_type());
    ggml_backend_tensor_copy(t, host);
    CHECK(!memcmp(host->data, model, size), "%s: copied to the host", name);
    ggml_backend_buffer_clear(buffer, 0);
    ggml_backend_tensor_copy(host, t);
    ggml_backend_tensor_get(t, got, 0, size);
    CHECK(!memcmp(got, model, size), "%s: copied from the host", name);
    ggml_backend_buffer_free(host->buffer);
    ggml_free(other_ctx);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    free(model);
    free(got);
}

static void data(void) {
    static const char *const names[] = { "t", "t@0/32", "t@1", "t@2", "t@3", "t@0x2/32", "t@1x3", "t@2x2", "t@p" };
    for (size_t i = 0; i < sizeof names/sizeof *names; i++)
        for (int n = 1; n <= 4; n++) {
            moved(names[i], GGML_TYPE_F32, (const int64_t[]) { 128, 6, 4, 3 }, n);
            if (!strchr(names[i], 'p')) moved(names[i], GGML_TYPE_Q4_1, (const int64_t[]) { 128, 6, 4, 3 }, n);
        }
}

/* Leafs outside an allocator's buffers take their shares only. */
static void memory(void) {
    static const int three = 3;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 16, .no_alloc = true });
    ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1000, 3000), "w@1");
    const long long before = limited.n_buffers;
    ggml_backend_dev_t devices[] = { cpu_device, &limited_device, cpu_device };
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 3, by_name, (void *) (uintptr_t) &three);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta));
    CHECK(buffer && limited.n_buffers == before + 1, "one share");
    const struct ggml_tensor *t = ggml_get_first_tensor(ctx);
    const split *s = meta_split_of(t, 3);
    int64_t sum = 0;
    for (int j = 0; j < 3; j++) {
        struct ggml_tensor slice;
        meta_slice(t, s, 3, j, &slice);
        sum += slice.ne[1];
        CHECK(ggml_backend_buffer_get_size(slice.buffer) == (size_t) slice.ne[1]*4000, "device %d", j);
    }
    CHECK(sum == 3000, "all of it");
    limited.fail_alloc = 1;
    t = ggml_get_first_tensor(ctx);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 16, .no_alloc = true });
    struct ggml_tensor *again = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1000, 3000), "w@1");
    said = 0;
    CHECK(!ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta)) && said > 0 && !again->buffer, "a device is full");
    limited.fail_alloc = 0;
    CHECK(limited.n_buffers == before, "nothing is left");
    ggml_free(ctx);
}

/* ---- devices of other kinds ------------------------------------------------------------------------------------------------- */

static int n_added;
static void *comm_init(ggml_backend_t *backends, size_t n) { return n == 2 && backends[0] && backends[1] ? &n_added : NULL; }
static void comm_free(void *comm) { CHECK(comm == &n_added, "its own"); }
static bool comm_add(void *comm, struct ggml_tensor **t) {
    float a[2][64];
    (void) comm;
    n_added++;
    for (int j = 0; j < 2; j++) ggml_backend_tensor_get(t[j], a[j], 0, ggml_nbytes(t[j]));
    for (int i = 0; i < 64; i++) a[0][i] += a[1][i];
    for (int j = 0; j < 2; j++) ggml_backend_tensor_set(t[j], a[0], 0, ggml_nbytes(t[j]));
    return n_added > 1;         /* the first time it does not handle it; what it wrote then is taken as it is */
}
static void *comm_function(ggml_backend_reg_t reg, const char *name) {
    (void) reg;
    const struct { const char *name; void (*f)(void); } all[] = {
        { "ggml_backend_comm_init", (void (*)(void)) comm_init }, { "ggml_backend_comm_free", (void (*)(void)) comm_free },
        { "ggml_backend_comm_allreduce_tensor", (void (*)(void)) comm_add },
    };
    void *p = NULL;
    for (int i = 0; i < 3; i++) if (!strcmp(all[i].name, name)) memcpy(&p, &all[i].f, sizeof p);
    return p;
}

OP(limited_chain, ggml_add(c, ggml_mul_mat(c, F32("w2@0", 9, 7, 1), ggml_mul_mat(c, F32("w1@1", 64, 9, 1), F32("x", 64, 5, 1))), F32("b", 7, 5, 1)))
/* parts of a whole tensor are not contiguous: the limited device cannot take them */
OP(limited_parts, ggml_add(c, ggml_mul_mat(c, F32("w2@0", 64, 7, 1), F32("x", 64, 5, 1)), F32("b", 7, 5, 1)))

static void limited_devices(void) {
    static build *const graphs[] = { limited_chain, limited_parts };
    for (int i = 0; i < 2; i++)
        for (int mixed = 0; mixed < 3; mixed++)
            for (int deferred = 0; deferred < 2; deferred++) {
                static const int two = 2;
                ggml_backend_dev_t devices[] = { mixed == 1 ? cpu_device : &limited_device, mixed == 2 ? cpu_device : &limited_device };
                n_of = NULL;
                struct result want = run(cpu_device, graphs[i]);
                limited.deferred = deferred;
                n_of = &two;
                struct result got = run(ggml_backend_meta_device(devices, 2, by_name, (void *) (uintptr_t) &two), graphs[i]);
                same(&want, &got, 1e-6, "limited devices");
                CHECK(limited.n_nodes > 0, "they compute");
                free(got.data);
                free(want.data);
            }
    limited.deferred = false;
    CHECK(limited.n_buffers == 0, "%d buffers are left", limited.n_buffers);
}

static struct ggml_tensor *three_products(struct scene *s) {
    struct ggml_tensor *x = F32("x", 64, 1, 1);
    struct ggml_context *c = s->nodes;
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d@0", i);
        x = ggml_add(c, ggml_mul_mat(c, F32(name, 64, 64, 1), x), F32("b", 64, 1, 1));
    }
    return x;
}

static void own_sums(void) {
    static const int two = 2;
    ggml_backend_dev_t devices[] = { &limited_device, &limited_device };
    n_of = NULL;
    struct result want = run(cpu_device, three_products);
    limited_reg.iface.get_proc_address = comm_function;
    n_of = &two;
    n_added = 1;
    struct result got = run(ggml_backend_meta_device(devices, 2, by_name, (void *) (uintptr_t) &two), three_products);
    CHECK(n_added == 7, "%d sums by the devices", n_added - 1);
    limited_reg.iface.get_proc_address = NULL;
    same(&want, &got, 1e-5, "sums by the devices");
    free(got.data);
    free(want.data);
}

/* ---- what is refused --------------------------------------------------------------------------------------------------------- */

static struct ggml_backend_meta_split_state nonsense(const struct ggml_tensor *t, void *data) {
    (void) t;
    return *(const struct ggml_backend_meta_split_state *) data;
}

static void nonsense_refused(void) {
    static struct ggml_backend_meta_split_state states[] = {
        { .axis = GGML_BACKEND_SPLIT_AXIS_NONE }, { .axis = GGML_BACKEND_SPLIT_AXIS_UNKNOWN },
        { .axis = (enum ggml_backend_meta_split_axis) 4 }, { .axis = (enum ggml_backend_meta_split_axis) -1 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 32, 32 }, .nr = {1} },                             /* no segment */
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 32, 32 }, .nr = {1}, .n_segments = 17 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 32, 32 }, .nr = {1}, .n_segments = UINT32_MAX },
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 32, 32 }, .nr = {0}, .n_segments = 1 },            /* never */
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 32, 32 }, .nr = {2}, .n_segments = 1 },            /* too much */
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 16, 48 }, .nr = {1}, .n_segments = 1 },            /* through a block */
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { 96, -32 }, .nr = {1}, .n_segments = 1 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_0, .ne = { INT64_MIN, INT64_MIN }, .nr = {1}, .n_segments = 1 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_1, .ne = { INT64_MAX, INT64_MAX }, .nr = {UINT32_MAX}, .n_segments = 1 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_1, .ne = { 1, 1 }, .nr = {1}, .n_segments = 1 },              /* too little */
        { .axis = GGML_BACKEND_SPLIT_AXIS_1, .ne = { 2, 1, 0, 0 }, .nr = { 1, 0 }, .n_segments = 1 },
        { .axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL },                                                    /* not of Q4_0 */
    };
    static struct ggml_backend_meta_split_state empty_segments =
        { .axis = GGML_BACKEND_SPLIT_AXIS_1, .ne = { 0, 0, 3, 1, 0, 0 }, .nr = { UINT32_MAX, 1, 7 }, .n_segments = 3 };
    ggml_backend_dev_t devices[17];
    for (int j = 0; j < 17; j++) devices[j] = cpu_device;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 16, .no_alloc = true });
    struct ggml_tensor *t = ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_0, 64, 4);
    for (size_t i = 0; i < sizeof states/sizeof *states; i++) {
        const ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, nonsense, &states[i]);
        said = 0;
        CHECK(!ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta)) && said > 0 && !t->buffer, "state %zu", i);
    }
    const ggml_backend_dev_t fine = ggml_backend_meta_device(devices, 2, nonsense, &empty_segments);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(fine));
    CHECK(buffer && meta_split_of(t, 2)->n_segments == 1, "empty segments do not count");
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    said = 0;
    CHECK(!ggml_backend_meta_device(devices, 0, NULL, NULL) && !ggml_backend_meta_device(NULL, 1, NULL, NULL), "no device");
    CHECK(!ggml_backend_meta_device(devices, 17, NULL, NULL) && said == 3, "too many");
    devices[1] = fine;
    CHECK(!ggml_backend_meta_device(devices, 2, NULL, NULL), "of meta devices");
    devices[1] = NULL;
    CHECK(!ggml_backend_meta_device(devices, 2, NULL, NULL), "of nothing");
}

/* A store that does not match how its target is divided; sources that are elsewhere. */
OP(store_across, ggml_set_rows(c, F16("b@1", 12, 9, 1), F32("a", 12, 4, 1), leaf(s, "i", GGML_TYPE_I64, 4, 1, 1)))
OP(store_in_sum, ggml_add_inplace(c, F32("a@p", 12, 4, 1), F32("b", 12, 4, 1)))
OP(store_flat,   ggml_cpy(c, F32("a", 12, 4, 1), ggml_reshape_1d(c, F32("b@0", 12, 4, 1), 48)))

static void not_followed(void) {
    static const int two = 2;
    static build *const graphs[] = { store_across, store_in_sum, store_flat };
    n_of = &two;
    for (int i = 0; i < 3; i++) {
        said = 0;
        struct result got = run(meta_of(2, &two), graphs[i]);
        CHECK(got.status == GGML_STATUS_FAILED && said > 0, "graph %d: %d", i, (int) got.status);
        free(got.data);
    }
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 20 });
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, ggml_sqr(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4)));
    ggml_backend_t backend = ggml_backend_dev_init(meta_of(2, &two), NULL);
    said = 0;
    const enum ggml_status status = ggml_backend_graph_compute(backend, g);
    CHECK(status == GGML_STATUS_FAILED && said == 1, "memory of the host: status %d, %d lines", (int) status, said);
    ggml_backend_free(backend);
    ggml_free(ctx);
}

/* ---- the device ------------------------------------------------------------------------------------------------------------- */

static bool stop(void *data) { (void) data; return true; }

static void properties(void) {
    static const int two = 2, other = 2;
    ggml_backend_dev_t devices[] = { cpu_device, &limited_device };
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, by_name, (void *) (uintptr_t) &two);
    CHECK(meta == ggml_backend_meta_device(devices, 2, by_name, (void *) (uintptr_t) &two), "the same");
    ggml_backend_dev_t second = ggml_backend_meta_device(devices, 2, by_name, (void *) (uintptr_t) &other);
    CHECK(meta != second && meta != meta_of(2, &two), "others");
    CHECK(!strcmp(ggml_backend_dev_name(meta), "Meta(CPU,LTD0)"), "%s", ggml_backend_dev_name(meta));
    CHECK(strstr(ggml_backend_dev_description(meta), ",a limited device)"), "%s", ggml_backend_dev_description(meta));
    CHECK(!strcmp(ggml_backend_buft_name(ggml_backend_dev_buffer_type(meta)), "Meta(CPU,LTD)"), "memory");
    size_t available, total, of_cpu, total_of_cpu;
    ggml_backend_dev_memory(meta, &available, &total);
    ggml_backend_dev_memory(cpu_device, &of_cpu, &total_of_cpu);
    CHECK(total == total_of_cpu + (1 << 20), "%zu of memory", total);
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(meta, &props);
    CHECK(props.type == GGML_BACKEND_DEVICE_TYPE_META && !props.caps.async && !props.caps.host_buffer && !props.caps.buffer_from_host_ptr &&
          !props.caps.events && props.memory_total == total, "properties");
    CHECK(ggml_backend_dev_supports_buft(meta, ggml_backend_dev_buffer_type(second)), "the same devices");
    CHECK(!ggml_backend_dev_supports_buft(meta, ggml_backend_cpu_buffer_type()) &&
          !ggml_backend_dev_supports_buft(meta, ggml_backend_dev_buffer_type(meta_of(2, &two))), "other devices");
    CHECK(!ggml_backend_buft_is_host(ggml_backend_dev_buffer_type(meta)), "addresses are nobody's");
    struct ggml_tensor x = { .ne = { 4, 1, 1, 1 }, .nb = { 4, 16, 16, 16 } }, t = x;
    t.op = GGML_OP_SQR, t.src[0] = &x;
    CHECK(!ggml_backend_dev_supports_op(meta, &t) && ggml_backend_dev_supports_op(meta_of(2, &two), &t), "what one cannot do");
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(meta);
    CHECK(reg && !strcmp(ggml_backend_reg_name(reg), "Meta") && ggml_backend_reg_dev_count(reg) == 0 &&
          !ggml_backend_reg_get_proc_address(reg, "no such"), "registry");
    const ggml_backend_set_n_threads_t threads = (ggml_backend_set_n_threads_t) (uintptr_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    const ggml_backend_set_abort_callback_t abort = (ggml_backend_set_abort_callback_t) (uintptr_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_abort_callback");
    ggml_backend_t backend = ggml_backend_dev_init(meta_of(2, &two), NULL);
    CHECK(backend && !strcmp(ggml_backend_name(backend), "Meta(CPU,CPU)"), "backend");
    threads(backend, 2);
    abort(backend, stop, NULL);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = 1 << 20, .no_alloc = true });
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, ggml_sqr(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4)));
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    CHECK(ggml_backend_graph_compute(backend, g) == GGML_STATUS_ABORTED, "it stops");
    abort(backend, NULL, NULL);
    CHECK(ggml_backend_graph_compute(backend, g) == GGML_STATUS_SUCCESS, "it goes on");
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(backend);
    ggml_free(ctx);
}

/* ---- with a scheduler, and without memory --------------------------------------------------------------------------------------- */

struct whole {
    struct scene s;
    struct ggml_tensor *last;
    struct ggml_cgraph *graph;
};
static struct whole whole_new(build *b) {
    const struct ggml_init_params params = { .mem_size = 1 << 20, .no_alloc = true };
    struct whole w = { .s = { .leafs = ggml_init(params), .nodes = ggml_init(params) } };
    w.last = b(&w.s);
    w.graph = ggml_new_graph_custom(w.s.nodes, 512, false);
    ggml_set_output(w.last);
    for (int i = 0; i < w.s.n_watched; i++) { ggml_set_output(w.s.watched[i]); ggml_build_forward_expand(w.graph, w.s.watched[i]); }
    ggml_build_forward_expand(w.graph, w.last);
    return w;
}
static void whole_free(struct whole *w) {
    ggml_free(w->s.nodes);
    ggml_free(w->s.leafs);
}

static void scheduled(void) {
    static const int two = 2;
    n_of = NULL;
    struct result want = run(cpu_device, dense_fused);
    ggml_backend_t meta = ggml_backend_dev_init(meta_of(2, &two), NULL), cpu = ggml_backend_dev_init(cpu_device, NULL);
    struct whole w = whole_new(dense_fused);
    ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors(w.s.leafs, meta);
    ggml_backend_buffer_set_usage(memory, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (struct ggml_tensor *t = ggml_get_first_tensor(w.s.leafs); t; t = ggml_get_next_tensor(w.s.leafs, t)) fill(t);
    ggml_backend_sched_t sched = ggml_backend_sched_new((ggml_backend_t[]) { meta, cpu }, NULL, 2, 512, false, false);
    CHECK(ggml_backend_sched_reserve(sched, w.graph), "reserve");
    struct result got = {0};
    for (int i = 0; i < 3; i++) {
        ggml_backend_sched_reset(sched);
        const long before = taken;
        CHECK(ggml_backend_sched_alloc_graph(sched, w.graph), "alloc");
        got.status = ggml_backend_sched_graph_compute(sched, w.graph);
        CHECK(i < 2 || taken == before, "%ld allocations in a run of a graph known before", taken - before);
    }
    CHECK(ggml_backend_sched_get_n_splits(sched) == 1 && ggml_backend_sched_get_tensor_backend(sched, w.last) == meta, "all on one");
    if (got.status == GGML_STATUS_SUCCESS) {
        read_into(&got, w.last);
        for (int i = 0; i < w.s.n_watched; i++) read_into(&got, w.s.watched[i]);
    }
    same(&want, &got, 1e-5, "scheduled");
    free(got.data);
    free(want.data);
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(memory);
    ggml_backend_free(meta);
    ggml_backend_free(cpu);
    whole_free(&w);
}

/* The n-th allocation of placing and computing fails. */
static void without_memory(void) {
    static const int two = 2;
    if (!INTERPOSED) return;
    ggml_backend_dev_t device = meta_of(2, &two);
    int failed = 0;
    for (long n = 1; ; n++) {
        struct whole w = whole_new(mixture_fused);
        const long before = held;
        said = 0;
        fail_at = n;
        ggml_backend_t meta = ggml_backend_dev_init(device, NULL);
        ggml_backend_buffer_t memory = meta ? ggml_backend_alloc_ctx_tensors(w.s.leafs, meta) : NULL;
        ggml_gallocr_t plan = memory ? ggml_gallocr_new(ggml_backend_get_default_buffer_type(meta)) : NULL;
        enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
        if (plan && ggml_gallocr_alloc_graph(plan, w.graph)) {
            if (fail_at > 0) {      /* not reached so far: indices have to be right */
                const long rest = fail_at;
                fail_at = 0;
                for (struct ggml_tensor *t = ggml_get_first_tensor(w.s.leafs); t; t = ggml_get_next_tensor(w.s.leafs, t)) fill(t);
                fail_at = rest;
            }
            status = ggml_backend_graph_compute(meta, w.graph);
        }
        const bool reached = fail_at == 0;
        fail_at = 0;
        const bool computing = plan && w.last->extra;
        CHECK(status == GGML_STATUS_SUCCESS || status == GGML_STATUS_ALLOC_FAILED, "allocation %ld: status %d", n, (int) status);
        CHECK(reached || status == GGML_STATUS_SUCCESS, "allocation %ld: status %d", n, (int) status);
        CHECK(!computing || status == GGML_STATUS_SUCCESS || said > 0, "allocation %ld: without a word", n);
        if (computing) {
            failed += status != GGML_STATUS_SUCCESS;
            CHECK(ggml_backend_graph_compute(meta, w.graph) == GGML_STATUS_SUCCESS, "allocation %ld: later it works", n);
        }
        ggml_gallocr_free(plan);
        ggml_backend_buffer_free(memory);
        ggml_backend_free(meta);
        CHECK(held == before, "allocation %ld: %ld blocks leaked", n, held - before);
        whole_free(&w);
        if (!reached) { CHECK(n > 100 && failed > 10, "%ld allocations, %d of computing", n, failed); break; }
        if (n > 5000) { CHECK(false, "no end"); break; }
    }
}

static void device_without_memory(void) {
    static const int numbers[8] = { 2, 2, 2, 2, 2, 2, 2, 2 };
    for (long n = 1; INTERPOSED && n < 8; n++) {
        const long before = held;
        said = 0;
        fail_at = n;
        const ggml_backend_dev_t device = meta_of(2, &numbers[n]);
        const bool reached = fail_at == 0;
        fail_at = 0;
        CHECK(reached == !device && reached == (said > 0), "allocation %ld", n);
        CHECK(!reached || held == before, "allocation %ld: %ld blocks leaked", n, held - before);
    }
}

int main(void) {
    ggml_log_set(quiet, NULL);
    interpose_used();
    cpu_device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    limited_reset();
    single_ops();
    whole_layers();
    divided_at_random();
    data();
    memory();
    limited_devices();
    own_sums();
    nonsense_refused();
    not_followed();
    properties();
    scheduled();
    without_memory();
    device_without_memory();
    return DONE();
}
