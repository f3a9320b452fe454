/* Steps of several nodes: every node has the bytes that it has when each is computed on its own, for any number of threads, in
 * memory of its own and in places that the allocator planned; nodes whose memory does not allow it are left alone. */

#include "check.h"
#include "cpu.h"
#include "pool.h"
#include "arenite.h"

enum { K = 256, HEADS = 4, HEAD = K/HEADS, WIDE = 512, CELLS = 96, EXPERTS = 4, USED = 2 };

struct net {
    struct ggml_context *fixed, *ctx;       /* weights and inputs; nodes */
    struct ggml_cgraph  *graph;
    enum ggml_type       type;              /* of the weights */
    int64_t              columns;
};

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static struct ggml_tensor *fixed(struct net *n, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    return ggml_new_tensor_3d(n->fixed, type, ne0, ne1, ne2);
}
static struct ggml_tensor *weight(struct net *n, int64_t rows) { return fixed(n, n->type, K, rows, 1); }
static struct ggml_tensor *vector(struct net *n, int64_t ne0)  { return fixed(n, GGML_TYPE_F32, ne0, 1, 1); }
static struct ggml_tensor *input(struct net *n, int64_t ne0)   { return fixed(n, GGML_TYPE_F32, ne0, n->columns, 1); }

/* All of them again as they were at first, since nodes may be computed in their place. Integers are the numbers 0, 1, ... */
static void fill(struct net *n) {
    uint64_t seed = 5;
    for (struct ggml_tensor *t = ggml_get_first_tensor(n->fixed); t; t = ggml_get_next_tensor(n->fixed, t)) {
        static float row[WIDE];
        for (int64_t r = 0; r < n_rows(t); r++) {
            for (int64_t i = 0; i < t->ne[0]; i++) row[i] = rnd_f32(&seed);
            char *const to = (char *) t->data + (size_t) r*t->nb[1];
            for (int64_t i = 0; i < t->ne[0] && t->type == GGML_TYPE_I32; i++) ((int32_t *) (void *) to)[i] = (int32_t) ((i + r) % EXPERTS);
            for (int64_t i = 0; i < t->ne[0] && t->type == GGML_TYPE_I64; i++) ((int64_t *) (void *) to)[i] = i;
            if (t->type != GGML_TYPE_I32 && t->type != GGML_TYPE_I64) ggml_get_type_traits_cpu(t->type)->from_float(row, to, t->ne[0]);
        }
    }
}

static void expand(struct net *n, struct ggml_tensor *t) { ggml_build_forward_expand(n->graph, t); }
static void result(struct net *n, struct ggml_tensor *t) {
    ggml_set_output(t);
    expand(n, t);
}

static struct ggml_tensor *norm(struct net *n, struct ggml_tensor *x) {
    return ggml_mul(n->ctx, ggml_rms_norm(n->ctx, x, 1e-5f), vector(n, x->ne[0]));
}

/* ---- what models are made of ------------------------------------------------------------------------------------- */

static struct ggml_tensor *attention(struct net *n, struct ggml_tensor *x, bool gemma) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *q = ggml_mul_mat(c, weight(n, K), x), *k = ggml_mul_mat(c, weight(n, K/2), x);
    struct ggml_tensor *v = ggml_mul_mat(c, weight(n, K/2), x), *pos = fixed(n, GGML_TYPE_I32, n->columns, 1, 1);
    struct ggml_tensor *slots = fixed(n, GGML_TYPE_I64, n->columns, 1, 1), *cache[2];
    expand(n, q), expand(n, k), expand(n, v);
    q = ggml_reshape_3d(c, q, HEAD, HEADS, n->columns);
    k = ggml_reshape_3d(c, k, HEAD, HEADS/2, n->columns);
    v = ggml_reshape_3d(c, v, HEAD, HEADS/2, n->columns);
    if (gemma) q = norm(n, q), k = norm(n, k);
    q = ggml_permute(c, ggml_rope(c, q, pos, HEAD, GGML_ROPE_TYPE_NEOX), 0, 2, 1, 3);
    k = ggml_rope(c, k, pos, HEAD, GGML_ROPE_TYPE_NEOX);
    for (int i = 0; i < 2; i++) {
        cache[i] = ggml_set_rows(c, fixed(n, GGML_TYPE_F16, HEAD, CELLS, HEADS/2), ggml_permute(c, i ? v : k, 0, 2, 1, 3), slots);
        expand(n, cache[i]);
    }
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, cache[0], cache[1], NULL, 0.125f, 0, 0);
    return ggml_mul_mat(c, weight(n, K), ggml_reshape_2d(c, y, K, n->columns));
}

static struct ggml_tensor *gated(struct net *n, struct ggml_tensor *x, bool gemma) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *gate = ggml_mul_mat(c, weight(n, K), x), *up = ggml_mul_mat(c, weight(n, K), x);
    return ggml_mul_mat(c, weight(n, K), gemma ? ggml_geglu_split(c, gate, up) : ggml_swiglu_split(c, gate, up));
}

static void layers(struct net *n, bool gemma) {
    struct ggml_tensor *x = input(n, K), *y;
    for (int i = 0; i < 2; i++) {
        y = attention(n, norm(n, x), gemma);
        x = ggml_add(n->ctx, gemma ? norm(n, y) : y, x);
        y = gated(n, norm(n, x), gemma);
        x = ggml_add(n->ctx, gemma ? norm(n, y) : y, x);
    }
    result(n, ggml_scale(n->ctx, ggml_tanh(n->ctx, ggml_scale(n->ctx, ggml_mul_mat(n->ctx, weight(n, WIDE), norm(n, x)), 0.1f)), 10.0f));
}
static void llama(struct net *n) { layers(n, false); }
static void gemma(struct net *n) { layers(n, true); }

/* Biases, activations, a product that is read twice, one that is an output. */
static void biases(struct net *n) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *x = input(n, K), *q = ggml_mul_mat(c, weight(n, K), x), *k = ggml_mul_mat(c, weight(n, K - 32), x);
    struct ggml_tensor *a = ggml_gelu(c, ggml_add(c, q, vector(n, K))), *b = ggml_clamp(c, ggml_add(c, k, vector(n, K - 32)), -0.5f, 0.5f);
    ggml_set_output(k);
    result(n, ggml_mul(c, a, q));
    result(n, b);
    result(n, ggml_sub(c, ggml_mul_mat(c, weight(n, 7), a), fixed(n, GGML_TYPE_F32, 7, 1, 1)));
}

static void experts(struct net *n) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *x = norm(n, input(n, K)), *ids = fixed(n, GGML_TYPE_I32, USED, n->columns, 1), *share = fixed(n, GGML_TYPE_F32, 1, USED, n->columns);
    struct ggml_tensor *w[3];
    for (int i = 0; i < 3; i++) w[i] = fixed(n, n->type, K, K, EXPERTS);
    x = ggml_reshape_3d(c, x, K, 1, n->columns);
    struct ggml_tensor *y = ggml_swiglu_split(c, ggml_mul_mat_id(c, w[0], x, ids), ggml_mul_mat_id(c, w[1], x, ids));
    result(n, ggml_mul(c, ggml_mul_mat_id(c, w[2], y, ids), share));
}

/* A chain of rows that no product reads, with the middle of it read again. */
static void chain(struct net *n) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *x = input(n, K), *y = ggml_mul(c, ggml_norm(c, ggml_add(c, x, input(n, K)), 1e-5f), input(n, K));
    struct ggml_tensor *z = ggml_scale(c, ggml_l2_norm(c, y, 1e-5f), 3.0f);
    result(n, ggml_add(c, z, ggml_cont(c, ggml_transpose(c, ggml_cont(c, ggml_transpose(c, y))))));
}

/* Sums written over what the products read, over a part of it, and over a product that is still to be read. */
static void in_the_way(struct net *n) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *x = input(n, K), *y = ggml_mul_mat(c, weight(n, K), x), *z = ggml_mul_mat(c, weight(n, K), x);
    struct ggml_tensor *over_x = ggml_add_inplace(c, x, y);
    expand(n, z);
    expand(n, over_x);
    struct ggml_tensor *again = ggml_mul_mat(c, weight(n, K), over_x), *over_y = ggml_mul_inplace(c, y, z);
    result(n, ggml_add(c, again, over_y));
    struct ggml_tensor *half = ggml_view_2d(c, over_x, K/2, n->columns, over_x->nb[1], 0);
    struct ggml_tensor *p = ggml_mul_mat(c, fixed(n, GGML_TYPE_F16, K/2, K/2, 1), ggml_view_2d(c, over_x, K/2, n->columns, over_x->nb[1], K/4*4));
    result(n, ggml_add_inplace(c, half, p));
    struct ggml_tensor *in_place = ggml_rms_norm_inplace(c, input(n, K), 1e-5f);
    result(n, ggml_mul_mat(c, weight(n, K), ggml_mul_inplace(c, in_place, vector(n, K))));
}

/* Views: of what is multiplied, of what is added, of what is read later. */
static void views(struct net *n) {
    struct ggml_context *c = n->ctx;
    struct ggml_tensor *both = input(n, 2*K), *x = ggml_view_2d(c, both, K, n->columns, both->nb[1], 0);
    struct ggml_tensor *rest = ggml_view_2d(c, both, K, n->columns, both->nb[1], K*sizeof(float));
    struct ggml_tensor *y = ggml_add(c, ggml_mul_mat(c, weight(n, WIDE), x), ggml_repeat(c, rest, fixed(n, GGML_TYPE_F32, WIDE, n->columns, 1)));
    struct ggml_tensor *half = ggml_view_2d(c, y, K, n->columns, y->nb[1], K*sizeof(float));
    result(n, ggml_add_inplace(c, rest, ggml_scale(c, ggml_mul_mat(c, weight(n, K), half), 2.0f)));
}

static const struct { const char *name; void (*build)(struct net *n); int few, many; /* steps for few columns and for many */ } cases[] = {
    { "llama", llama, 17, 18 }, { "gemma", gemma, 27, 26 }, { "biases", biases, 2, 5 }, { "experts", experts, 4, 5 }, { "chain", chain, 8, 4 },
    { "in the way", in_the_way, 7, 6 }, { "views", views, 4, 5 },
};

/* ---- running ----------------------------------------------------------------------------------------------------- */

static struct net net_new(int at, enum ggml_type type, int64_t columns, bool planned) {
    struct net n = { .type = type, .columns = columns };
    n.fixed = ggml_init((struct ggml_init_params) { .mem_size = 24 << 20 });
    n.ctx   = ggml_init((struct ggml_init_params) { .mem_size = 24 << 20, .no_alloc = planned });
    n.graph = ggml_new_graph(n.ctx);
    cases[at].build(&n);
    return n;
}

/* What the nodes hold: all of them, or outputs alone. */
static size_t collect(const struct net *n, bool outputs, char *to, size_t room) {
    size_t size = 0;
    for (int i = 0; i < ggml_graph_n_nodes(n->graph); i++) {
        const struct ggml_tensor *t = ggml_graph_node(n->graph, i);
        const size_t bytes = ggml_nbytes(t);
        if ((outputs && !(t->flags & GGML_TENSOR_FLAG_OUTPUT)) || !ggml_is_contiguous(t)) continue;
        if (size + bytes > room) abort();
        memcpy(to + size, t->data, bytes);
        size += bytes;
    }
    return size;
}

enum { ROOM = 16 << 20 };
static char want[ROOM], got[ROOM];

static size_t run(struct net *n, ggml_backend_t cpu, int threads, bool outputs, char *to) {
    for (int i = 0; i < ggml_graph_n_nodes(n->graph); i++) {
        struct ggml_tensor *t = ggml_graph_node(n->graph, i);
        if (!outputs && !t->view_src) memset(t->data, 0x7f, ggml_nbytes(t));
    }
    fill(n);
    ggml_backend_cpu_set_n_threads(cpu, threads);
    CHECK(ggml_backend_graph_compute(cpu, n->graph) == GGML_STATUS_SUCCESS, "run");
    return collect(n, outputs, to, ROOM);
}

static bool count(const struct arn_step *step, void *n) {
    (void) step;
    ++*(int *) n;
    return true;
}

static void same_bytes(ggml_backend_t cpu, int at, enum ggml_type type, int64_t columns, bool planned) {
    struct net n = net_new(at, type, columns, planned);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    if (planned) CHECK(ggml_gallocr_alloc_graph(galloc, n.graph), "placed");
    arn_cpu_set_fusing(false);
    const size_t size = run(&n, cpu, 1, planned, want);
    arn_cpu_set_fusing(true);
    for (int threads = planned ? 3 : 2; threads <= 3; threads++) {
        CHECK(run(&n, cpu, threads, planned, got) == size, "size");
        CHECK(!memcmp(want, got, size), "%s, %s, %d columns, %d threads%s", cases[at].name, ggml_type_name(type), (int) columns, threads,
              planned ? ", planned" : "");
    }
    int steps = 0;
    CHECK(arn_cpu_visit_steps(n.graph, 2, count, &steps), "listed");
    CHECK(planned || steps == (columns < 80 ? cases[at].few : cases[at].many), "%s: %d steps", cases[at].name, steps);
    ggml_gallocr_free(galloc);
    ggml_free(n.ctx);
    ggml_free(n.fixed);
}

/* ---- a scheduler with somebody who watches ------------------------------------------------------------------------ */

struct seen { bool every; size_t n; char *bytes; };

static bool watch(struct ggml_tensor *t, bool ask, void *data) {
    struct seen *s = data;
    if (ask) return s->every || t->op == GGML_OP_MUL || t->op == GGML_OP_MUL_MAT;
    if (!s->every && t->op != GGML_OP_MUL && t->op != GGML_OP_MUL_MAT) return true;
    memcpy(s->bytes + s->n, &t->op, sizeof t->op);
    if (t->op == GGML_OP_MUL || t->op == GGML_OP_MUL_MAT) {
        memcpy(s->bytes + s->n, t->data, ggml_nbytes(t));
        s->n += ggml_nbytes(t);
    }
    return true;
}

static void watched(ggml_backend_t cpu) {
    static char *const to[2] = { want, got };
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        struct net n = net_new(0, GGML_TYPE_Q4_0, 3, true);
        struct seen seen = { .every = i == 0, .bytes = to[i] };
        ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, 1024, false, false);
        ggml_backend_sched_set_eval_callback(sched, watch, &seen);
        CHECK(ggml_backend_sched_alloc_graph(sched, n.graph), "placed");
        fill(&n);
        CHECK(ggml_backend_sched_graph_compute(sched, n.graph) == GGML_STATUS_SUCCESS, "run");
        size[i] = seen.n;
        ggml_backend_sched_free(sched);
        ggml_free(n.ctx);
        ggml_free(n.fixed);
    }
    CHECK(size[0] == size[1] && size[0] > 0 && !memcmp(want, got, size[0]), "what is seen of some nodes is what is seen of all");
}

/* A scheduler's graph is known again: what was planned for one is not used for the next. */
static void known_again(ggml_backend_t cpu) {
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, 1024, false, false);
    for (int i = 0; i < 6; i++) {
        struct net n = net_new(i % 2, GGML_TYPE_F16, 1 + i/2, true);
        ggml_backend_sched_reset(sched);
        CHECK(ggml_backend_sched_alloc_graph(sched, n.graph), "placed");
        for (int again = 0; again < 3; again++) {
            arn_cpu_set_fusing(again > 0);
            fill(&n);
            CHECK(ggml_backend_sched_graph_compute(sched, n.graph) == GGML_STATUS_SUCCESS, "run");
            const size_t size = collect(&n, true, again ? got : want, ROOM);
            CHECK(!again || !memcmp(want, got, size), "graph %d, time %d", i, again);
        }
        ggml_free(n.ctx);
        ggml_free(n.fixed);
    }
    ggml_backend_sched_free(sched);
}

int main(void) {
    static const enum ggml_type types[] = { GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K };
    static const int64_t columns[] = { 1, 80, 3 };
    const int n_types = SANITIZED ? 1 : 3, n_columns = SANITIZED ? 2 : 3;           /* sanitizers are slow */
    ggml_backend_t cpu = ggml_backend_cpu_init();
    pool_limit(GGML_MAX_N_THREADS);
    for (int at = 0; at < (int) (sizeof cases/sizeof cases[0]); at++) {
        for (int t = 0; t < n_types; t++) for (int c = 0; c < n_columns; c++) for (int planned = 0; planned < 2; planned++) {
            same_bytes(cpu, at, types[t], columns[c], planned);
        }
    }
    watched(cpu);
    known_again(cpu);
    ggml_backend_free(cpu);
    return DONE();
}
