/* Computing a graph on the devices of a meta device.
 *
 * The nodes are gone through once, in their order. Each gets a share on each device (a tensor with shares of the sources), which
 * waits in that device's graph. Where a source is not held the way the rule of the op wants it, the graphs so far are
 * computed, and the source is brought together first: a sum of summands in its own place (once, whoever reads it next), anything
 * else as a whole copy in scratch memory of each device. A share that a device cannot compute is tried once more with
 * everything whole.
 *
 * Sums are added in F32 in the order of the devices, ((p0 + p1) + p2) ..., and every device gets the same result; so a graph
 * gives the same bits each time. With summands p of k columns the sum differs from that of one device by no more than the
 * order of adding does: |error| <= (n + k)*2^-24*sum |product|. A registry that offers ggml_backend_comm_allreduce_tensor adds in
 * its own order.
 *
 * Memory: tensors, graphs and scratch are kept and only grow; a graph no larger than one before is computed without a call
 * to the allocator. */

#include "meta.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { POOL = 256, FLOATS = 16384 };

struct pool {
    struct pool *next;
    struct ggml_tensor tensors[POOL];
};

struct meta_backend {
    struct meta_device   *meta;
    int                   n;
    ggml_backend_t        backends[META_MAX];
    struct ggml_cgraph    graphs[META_MAX];         /* shares that wait to be computed */
    int                   capacity;                 /* nodes of such a graph */
    struct pool          *pools, *pool;             /* all, and the one in use */
    int                   n_pool;                   /* tensors taken from it */
    struct ggml_hash_set  known;                    /* tensors with shares */
    struct ggml_tensor  **shares;                   /* [slot*n + device] */
    ggml_backend_buffer_t scratch[META_MAX];
    size_t                scratch_used;             /* by the sources of the node at hand */
    char                 *host;                     /* where a tensor is brought together */
    size_t                host_size;
    float                *sum, *part;               /* FLOATS each */
    void                 *comm;
    ggml_backend_comm_free_t             comm_free;
    ggml_backend_comm_allreduce_tensor_t comm_add;
    const struct ggml_cgraph *graph;                /* the one being computed */
    struct step           step;
};

static enum ggml_status no_memory(const char *what) {
    LOG_ERROR("meta device: out of memory for %s\n", what);
    return GGML_STATUS_ALLOC_FAILED;
}

/* ---- memory of a run ------------------------------------------------------------------------------------------------ */

static void graph_free(struct ggml_cgraph *g) {
    free(g->nodes);
    free(g->use_counts);
    ggml_hash_set_free(&g->visited_hash_set);
    *g = (struct ggml_cgraph) {0};
}

static bool graph_room(struct ggml_cgraph *g, int nodes) {
    graph_free(g);
    g->nodes = calloc((size_t) nodes, sizeof *g->nodes);
    g->visited_hash_set = ggml_hash_set_new(2*(size_t) nodes);
    g->use_counts = g->visited_hash_set.keys ? calloc(g->visited_hash_set.size, sizeof *g->use_counts) : NULL;
    g->size = nodes;
    return g->nodes && g->use_counts;
}

/* Room for the nodes and their sources. */
static enum ggml_status room_for(struct meta_backend *b, const struct ggml_cgraph *graph) {
    size_t tensors = 1;
    for (int i = 0; i < graph->n_nodes; i++) {
        tensors++;
        for (int s = 0; s < GGML_MAX_SRC; s++) tensors += graph->nodes[i]->src[s] != NULL;
    }
    b->pool = b->pools, b->n_pool = 0;
    if (graph->n_nodes > b->capacity) {
        for (int j = 0; j < b->n; j++) if (!graph_room(&b->graphs[j], graph->n_nodes)) { b->capacity = 0; return no_memory("graphs"); }
        b->capacity = graph->n_nodes;
    }
    if (b->known.size < 2*tensors) {
        ggml_hash_set_free(&b->known);
        free(b->shares);
        b->shares = NULL;
        b->known = ggml_hash_set_new(2*tensors);
        if (b->known.keys) b->shares = calloc(b->known.size, (size_t) b->n*sizeof *b->shares);
        if (!b->shares) {
            ggml_hash_set_free(&b->known);
            b->known = (struct ggml_hash_set) {0};
            return no_memory("a graph");
        }
    }
    ggml_hash_set_reset(&b->known);
    return GGML_STATUS_SUCCESS;
}

/* n tensors side by side; NULL when out of memory. */
static struct ggml_tensor *take(struct meta_backend *b) {
    if (!b->pool || b->n_pool + b->n > POOL) {
        struct pool **next = b->pool ? &b->pool->next : &b->pools;
        if (!*next && !(*next = calloc(1, sizeof **next))) return NULL;
        b->pool = *next, b->n_pool = 0;
    }
    b->n_pool += b->n;
    return b->pool->tensors + (b->n_pool - b->n);
}

/* ---- graphs of the devices ------------------------------------------------------------------------------------------- */

static void empty_graphs(struct meta_backend *b) {
    for (int j = 0; j < b->n; j++) {
        b->graphs[j].n_nodes = 0;
        ggml_hash_set_reset(&b->graphs[j].visited_hash_set);
    }
}

static void synchronize(ggml_backend_t backend) {
    struct meta_backend *b = backend->context;
    for (int j = 0; j < b->n; j++) ggml_backend_synchronize(b->backends[j]);
}

/* Everything that waits is computed; `wait`: done, so that its results can be read. */
static enum ggml_status flush(struct meta_backend *b, bool wait) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    for (int j = 0; j < b->n && status == GGML_STATUS_SUCCESS; j++) {
        if (b->graphs[j].n_nodes > 0) status = ggml_backend_graph_compute_async(b->backends[j], &b->graphs[j]);
    }
    empty_graphs(b);
    for (int j = 0; j < b->n && (wait || status != GGML_STATUS_SUCCESS); j++) ggml_backend_synchronize(b->backends[j]);
    return status;
}

static void append(struct meta_backend *b, int device, struct ggml_tensor *share, int uses) {
    struct ggml_cgraph *g = &b->graphs[device];
    const size_t slot = hash_insert(&g->visited_hash_set, share);
    if (slot >= HASH_EXISTS) return;                /* listed twice: once is enough */
    g->nodes[g->n_nodes++] = share;
    g->use_counts[slot] = uses;
}

/* ---- bringing together ------------------------------------------------------------------------------------------------ */

static bool add_by_devices(struct meta_backend *b, struct ggml_tensor *shares, const split *s) {
    struct ggml_tensor *pointers[META_MAX];
    if (!b->comm) return false;
    for (int j = 0; j < b->n; j++) {
        pointers[j] = &shares[j];
        if (!s->ne[j]) ggml_backend_tensor_memset(&shares[j], 0, 0, ggml_nbytes(&shares[j]));
    }
    return b->comm_add(b->comm, pointers);
}

/* The summands of a root become the sum, in every device's place. */
static enum ggml_status add_up(struct meta_backend *b, const struct ggml_tensor *root, split *s) {
    struct ggml_tensor shares[META_MAX];
    const enum ggml_status status = flush(b, true);
    if (status != GGML_STATUS_SUCCESS) return status;
    for (int j = 0; j < b->n; j++) meta_slice(root, s, b->n, j, &shares[j]);
    const size_t size = b->n == 1 || add_by_devices(b, shares, s) ? 0 : ggml_nbytes(root);
    for (size_t at = 0, part; at < size; at += part) {
        part = size - at < FLOATS*sizeof *b->sum ? size - at : FLOATS*sizeof *b->sum;
        meta_sum(shares, s, b->n, b->sum, b->part, at, part);
        for (int j = 0; j < b->n; j++) ggml_backend_tensor_set(&shares[j], b->sum, at, part);
    }
    *s = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    return GGML_STATUS_SUCCESS;
}

static bool scratch_room(struct meta_backend *b, size_t size) {
    for (int j = 0; j < b->n; j++) {
        if (b->scratch[j] && ggml_backend_buffer_get_size(b->scratch[j]) >= size) continue;
        ggml_backend_buffer_free(b->scratch[j]);
        b->scratch[j] = ggml_backend_alloc_buffer(b->backends[j], size);
        if (!b->scratch[j]) return false;
        ggml_backend_buffer_set_usage(b->scratch[j], GGML_BACKEND_BUFFER_USAGE_COMPUTE);
    }
    return true;
}

static bool host_room(struct meta_backend *b, size_t size) {
    if (size <= b->host_size) return true;
    free(b->host);
    b->host = malloc(size);
    b->host_size = b->host ? size : 0;
    return b->host;
}

/* Bytes of scratch that a whole copy takes. */
static bool copy_size(const struct meta_backend *b, const struct ggml_tensor *root, size_t *size) {
    const size_t most = ggml_backend_buft_get_alloc_size(&b->meta->buft, root);
    return size_pad(size, most, ggml_backend_buft_get_alignment(&b->meta->buft));
}

/* Whole copies of the root of `t` in scratch: `shares` are `t` in these. */
static enum ggml_status bring_together(struct meta_backend *b, const struct ggml_tensor *t, struct ggml_tensor *shares) {
    const struct ggml_tensor *root = root_of(t);
    const size_t size = ggml_nbytes(root), at = b->scratch_used;
    size_t room;
    if (!copy_size(b, root, &room) || !host_room(b, size)) return no_memory("bringing a tensor together");
    b->scratch_used += room;
    meta_get(root, b->host, 0, size);
    for (int j = 0; j < b->n; j++) {
        struct ggml_tensor copy = *root;
        copy.buffer = NULL, copy.data = NULL, copy.extra = NULL, copy.op = GGML_OP_NONE;
        char *base = ggml_backend_buffer_get_base(b->scratch[j]);
        if (ggml_backend_tensor_alloc(b->scratch[j], &copy, base + at) != GGML_STATUS_SUCCESS) return GGML_STATUS_FAILED;
        ggml_backend_tensor_set(&copy, b->host, 0, size);
        shares[j] = *t;
        shares[j].view_src = NULL, shares[j].buffer = copy.buffer, shares[j].extra = t == root ? copy.extra : NULL;
        shares[j].data = (char *) copy.data + (t == root ? 0 : t->view_offs), shares[j].view_offs = 0;
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- shares of a node -------------------------------------------------------------------------------------------------- */

static bool buffered(const struct meta_backend *b, const struct ggml_tensor *t) {
    return ggml_is_empty(t) || meta_split_of(root_of(t), b->n);
}

static void split_now(const struct meta_backend *b, const struct ggml_tensor *t, split *s) {
    if (ggml_is_empty(t)) *s = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    else split_view(root_of(t), meta_split_of(root_of(t), b->n), t, b->n, s);
}

/* The shares of a tensor as it is held: the same structs each time, so that devices know it again. NULL: out of memory. */
static struct ggml_tensor *shares_of(struct meta_backend *b, const struct ggml_tensor *t, const split *s) {
    const size_t slot = hash_find(&b->known, t);
    struct ggml_tensor **known = &b->shares[slot*(size_t) b->n];
    if (hash_used(&b->known, slot)) return *known;
    struct ggml_tensor *shares = take(b);
    if (!shares) return NULL;
    for (int j = 0; j < b->n; j++) {
        if (ggml_is_empty(t)) { shares[j] = *t; shares[j].buffer = NULL; shares[j].view_src = NULL; shares[j].extra = NULL; }
        else meta_slice(t, s, b->n, j, &shares[j]);
        if (op_is_view(t->op)) shares[j].op = GGML_OP_NONE;
        memset(shares[j].src, 0, sizeof shares[j].src);
    }
    hash_insert(&b->known, (struct ggml_tensor *) (uintptr_t) t);       /* only its address is kept */
    *known = shares;
    return shares;
}

/* Parts of what every device has whole. */
static void cut(const struct meta_backend *b, const split *want, struct ggml_tensor *shares) {
    const int axis = (int) want->axis;
    int64_t first = 0;
    for (int j = 0; j < b->n; j++) {
        struct ggml_tensor *t = &shares[j];
        const int64_t share = split_share(want, b->n, j);
        t->data = (char *) t->data + (size_t) (first/(axis == 0 ? ggml_blck_size(t->type) : 1))*t->nb[axis];
        t->ne[axis] = share;
        t->extra = NULL;
        first += share;
    }
}

static bool overlap(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const struct ggml_tensor *x = root_of(a), *y = root_of(b);
    const char *at_x = x->data, *at_y = y->data;
    return x->buffer == y->buffer && at_x < at_y + ggml_nbytes(y) && at_y < at_x + ggml_nbytes(x);
}

/* A whole tensor has the parts that are wanted: each device's is one range, of whole blocks. */
static bool has_parts(const struct ggml_tensor *t, const split *want, int n) {
    if (!split_axis(want)) return !split_partial(want);
    return split_one_round(want) && split_blocks(t, want, n);
}

/* A part of a whole tensor where the result, laid out in another way, takes its place. */
static bool trampled(const struct step *p, int i) {
    return split_axis(&p->want[i]) && overlap(p->node, p->node->src[i]);
}

enum { AS_IT_IS, CUT, COPIED };

/* How source i comes to what is wanted of it; -1: there is no way. A node may be a source of its own (a cast). */
static int way_of(const struct step *p, int i) {
    if (p->node->src[i] == p->node) return AS_IT_IS;
    if (split_equal(&p->have[i], &p->want[i], p->n)) return AS_IT_IS;
    if (!has_parts(p->node->src[i], &p->want[i], p->n)) return -1;
    return split_mirrored(&p->have[i]) && !trampled(p, i) ? CUT : COPIED;
}

/* Shares of source i, as the step wants them. */
static enum ggml_status source_shares(struct meta_backend *b, int i, struct ggml_tensor **shares) {
    const struct step *p = &b->step;
    const struct ggml_tensor *t = p->node->src[i];
    const int way = way_of(p, i);
    if (way != COPIED && !(*shares = shares_of(b, t, &p->have[i]))) return no_memory("a graph");
    if (way == AS_IT_IS) return GGML_STATUS_SUCCESS;
    struct ggml_tensor *parts = take(b);
    if (!parts) return no_memory("a graph");
    if (way == CUT) memcpy(parts, *shares, (size_t) b->n*sizeof *parts);
    else {
        const enum ggml_status status = bring_together(b, t, parts);
        if (status != GGML_STATUS_SUCCESS) return status;
    }
    for (int j = 0; j < b->n; j++) {
        parts[j].op = GGML_OP_NONE;
        memset(parts[j].src, 0, sizeof parts[j].src);
    }
    if (split_axis(&p->want[i])) cut(b, &p->want[i], parts);
    *shares = parts;
    return GGML_STATUS_SUCCESS;
}

/* For sources that are copied: everything before is computed, and there is room in scratch. */
static enum ggml_status prepare(struct meta_backend *b) {
    struct step *p = &b->step;
    size_t scratch = 0;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        const struct ggml_tensor *t = p->node->src[i];
        if (!t || way_of(p, i) != COPIED) continue;
        size_t size;
        if (!copy_size(b, root_of(t), &size) || !size_add(&scratch, scratch, size)) return no_memory("scratch");
    }
    b->scratch_used = 0;
    if (scratch == 0) return GGML_STATUS_SUCCESS;
    const enum ggml_status status = flush(b, true);
    if (status != GGML_STATUS_SUCCESS) return status;
    return scratch_room(b, scratch) ? GGML_STATUS_SUCCESS : no_memory("scratch");
}

/* The devices that have something to compute can compute it. */
static bool computable(const struct meta_backend *b, const struct ggml_tensor *shares) {
    for (int j = 0; j < b->n; j++) {
        const bool idle = ggml_is_empty(&shares[j]) || split_share(&b->step.out, b->n, j) == 0;
        if (!idle && !ggml_backend_dev_supports_op(b->meta->devices[j], &shares[j])) return false;
    }
    return true;
}

/* The shares of the node with their sources. `node`: structs to fill. */
static enum ggml_status node_shares(struct meta_backend *b, struct ggml_tensor *node) {
    const struct step *p = &b->step;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        struct ggml_tensor *shares = NULL;
        if (!p->node->src[i]) continue;
        const enum ggml_status status = source_shares(b, i, &shares);
        if (status != GGML_STATUS_SUCCESS) return status;
        for (int j = 0; j < b->n; j++) node[j].src[i] = &shares[j];
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- a node -------------------------------------------------------------------------------------------------------------- */

static void describe(struct meta_backend *b, const struct ggml_tensor *node) {
    struct step *p = &b->step;
    p->node = node, p->n = b->n;
    for (int i = 0; i < GGML_MAX_SRC; i++) if (node->src[i]) split_now(b, node->src[i], &p->have[i]);
    p->place = split_of(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    if (node->view_src) split_now(b, node, &p->place);
}

/* What is written in place keeps the split that its memory has, and every source can be brought to what is wanted. */
static bool possible(const struct step *p) {
    if (p->node->view_src && !split_equal(&p->place, &p->out, p->n)) return false;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        const struct ggml_tensor *t = p->node->src[i];
        if (!t) continue;
        const int way = way_of(p, i);
        if (way < 0 || (way != AS_IT_IS && p->node->view_src && root_of(t) == p->node->view_src && t->data == p->node->data)) return false;
    }
    return true;
}

/* True when a source or the node's own place is a sum that the step wants whole: adds it up. */
static bool summand_wanted(struct meta_backend *b, enum ggml_status *status) {
    const struct step *p = &b->step;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        const struct ggml_tensor *t = p->node->src[i];
        if (!t || t == p->node || !split_partial(&p->have[i]) || split_partial(&p->want[i]) || !meta_computed(root_of(t))) continue;
        *status = add_up(b, root_of(t), meta_split_of(root_of(t), b->n));
        return true;
    }
    return false;
}

static enum ggml_status plan(struct meta_backend *b, const struct ggml_tensor *node, bool divided) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    struct step *p = &b->step;
    do {
        describe(b, node);
        if (!divided || !step_divided(p) || !possible(p)) step_whole(p);
    } while (summand_wanted(b, &status) && status == GGML_STATUS_SUCCESS);
    if (status != GGML_STATUS_SUCCESS || possible(p)) return status;
    LOG_ERROR("meta device: node \"%s\" (%s) writes into a tensor that is divided in a way it cannot follow\n", node->name,
        ggml_op_desc(node));
    return GGML_STATUS_FAILED;
}

static enum ggml_status place_shares(struct meta_backend *b, const struct ggml_tensor *node, struct ggml_tensor **shares) {
    struct step *p = &b->step;
    enum ggml_status status = prepare(b);
    if (status != GGML_STATUS_SUCCESS) return status;
    split *own = meta_split_of(root_of(node), b->n);
    if (!node->view_src) *own = p->out;
    if (!(*shares = shares_of(b, node, &p->out))) return no_memory("a graph");
    for (int j = 0; j < b->n && !node->view_src; j++) meta_slice(node, &p->out, b->n, j, &(*shares)[j]);
    return node_shares(b, *shares);
}

static enum ggml_status compute_node(struct meta_backend *b, const struct ggml_tensor *node) {
    struct ggml_tensor *shares = NULL;
    bool ok = false;
    for (int divided = 1; !ok && divided >= 0; divided--) {
        enum ggml_status status = plan(b, node, divided);
        if (status == GGML_STATUS_SUCCESS) status = place_shares(b, node, &shares);
        if (status != GGML_STATUS_SUCCESS) return status;
        ok = computable(b, shares);
    }
    if (!ok) {
        LOG_ERROR("meta device: node \"%s\" (%s) can be computed by none of the ways to divide it\n", node->name, ggml_op_desc(node));
        return GGML_STATUS_FAILED;
    }
    const int uses = graph_uses(b->graph, node);
    for (int j = 0; j < b->n; j++) if (split_share(&b->step.out, b->n, j) > 0) append(b, j, &shares[j], uses);
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status check_places(const struct meta_backend *b, const struct ggml_tensor *node) {
    bool ok = buffered(b, node);
    for (int i = 0; i < GGML_MAX_SRC; i++) ok = ok && (!node->src[i] || buffered(b, node->src[i]));
    if (ok) return GGML_STATUS_SUCCESS;
    LOG_ERROR("meta device: node \"%s\" (%s) or one of its sources is not in a buffer of this device\n", node->name, ggml_op_desc(node));
    return node->data ? GGML_STATUS_FAILED : GGML_STATUS_ALLOC_FAILED;
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct meta_backend *b = backend->context;
    if (!graph_ok(graph)) return GGML_STATUS_ALLOC_FAILED;
    enum ggml_status status = room_for(b, graph);
    b->graph = graph;
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS; i++) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (!(node->flags & GGML_TENSOR_FLAG_COMPUTE) || op_is_view(node->op) || ggml_is_empty(node)) continue;
        status = check_places(b, node);
        if (status == GGML_STATUS_SUCCESS) status = compute_node(b, node);
    }
    if (status == GGML_STATUS_SUCCESS) return flush(b, false);
    empty_graphs(b);
    synchronize(backend);
    return status;
}

/* ---- the backend ---------------------------------------------------------------------------------------------------------- */

static const char *name(ggml_backend_t backend) { return ((struct meta_backend *) backend->context)->meta->name; }

static void backend_free(ggml_backend_t backend) {
    struct meta_backend *b = backend->context;
    if (b->comm) b->comm_free(b->comm);
    for (int j = 0; j < b->n; j++) {
        graph_free(&b->graphs[j]);
        ggml_backend_buffer_free(b->scratch[j]);
        ggml_backend_free(b->backends[j]);
    }
    for (struct pool *p = b->pools, *next; p; p = next) { next = p->next; free(p); }
    ggml_hash_set_free(&b->known);
    free(b->shares);
    free(b->host);
    free(b->sum);
    free(b->part);
    free(b);
    free(backend);
}

static void set_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    synchronize(backend);
    ggml_backend_tensor_set(t, data, offset, size);
}
static void get_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    synchronize(backend);
    ggml_backend_tensor_get(t, data, offset, size);
}

typedef void (*function)(void);
static function function_of(ggml_backend_t backend, const char *what) {
    const ggml_backend_reg_t reg = backend->device ? ggml_backend_dev_backend_reg(backend->device) : NULL;
    void *p = reg ? ggml_backend_reg_get_proc_address(reg, what) : NULL;
    function f;
    memcpy(&f, &p, sizeof f);
    return f;
}

/* Devices of one kind may add up by themselves. */
static void find_comm(struct meta_backend *b) {
    const ggml_backend_comm_init_t init = (ggml_backend_comm_init_t) function_of(b->backends[0], "ggml_backend_comm_init");
    b->comm_free = (ggml_backend_comm_free_t) function_of(b->backends[0], "ggml_backend_comm_free");
    b->comm_add  = (ggml_backend_comm_allreduce_tensor_t) function_of(b->backends[0], "ggml_backend_comm_allreduce_tensor");
    if (b->n > 1 && init && b->comm_free && b->comm_add) b->comm = init(b->backends, (size_t) b->n);
}

ggml_backend_t meta_backend_init(struct meta_device *meta, const char *params) {
    static ggml_guid guid = { 0x5a, 0x1d, 0x0c, 0x77, 0x3e, 0x94, 0x42, 0xb1, 0x88, 0x26, 0xd9, 0x60, 0xf3, 0x4b, 0xae, 0x15 };
    ggml_backend_t backend = calloc(1, sizeof *backend);
    struct meta_backend *b = calloc(1, sizeof *b);
    bool ok = backend && b && (b->sum = malloc(FLOATS*sizeof *b->sum)) && (b->part = malloc(FLOATS*sizeof *b->part));
    for (; ok && b->n < meta->n; b->n += ok) ok = (b->backends[b->n] = ggml_backend_dev_init(meta->devices[b->n], params));
    if (!ok) {
        LOG_ERROR("meta device: %s cannot be opened\n", meta->name);
        for (int j = 0; b && j < b->n; j++) ggml_backend_free(b->backends[j]);
        if (b) { free(b->sum); free(b->part); }
        free(b);
        free(backend);
        return NULL;
    }
    b->meta = meta;
    find_comm(b);
    *backend = (struct ggml_backend) {
        .guid = &guid, .device = &meta->device, .context = b,
        .iface = { .get_name = name, .free = backend_free, .set_tensor_async = set_async, .get_tensor_async = get_async,
                   .synchronize = synchronize, .graph_compute = graph_compute },
    };
    return backend;
}

/* ---- the registry: no devices of its own, but the settings of backends reach all devices ------------------------------------ */

static void set_n_threads(ggml_backend_t backend, int n_threads) {
    struct meta_backend *b = backend->context;
    for (int j = 0; j < b->n; j++) {
        const ggml_backend_set_n_threads_t set = (ggml_backend_set_n_threads_t) function_of(b->backends[j], "ggml_backend_set_n_threads");
        if (set) set(b->backends[j], n_threads);
    }
}

static void set_abort(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct meta_backend *b = backend->context;
    for (int j = 0; j < b->n; j++) {
        const ggml_backend_set_abort_callback_t set =
            (ggml_backend_set_abort_callback_t) function_of(b->backends[j], "ggml_backend_set_abort_callback");
        if (set) set(b->backends[j], callback, data);
    }
}

static const char *reg_name(ggml_backend_reg_t reg) { (void) reg; return "Meta"; }
static size_t reg_count(ggml_backend_reg_t reg)     { (void) reg; return 0; }
static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t i) { (void) reg, (void) i; return NULL; }
static void *reg_function(ggml_backend_reg_t reg, const char *what) {
    static const struct { const char *name; function f; } functions[] = {
        { "ggml_backend_set_n_threads",      (function) set_n_threads },
        { "ggml_backend_set_abort_callback", (function) set_abort },
    };
    void *p = NULL;
    (void) reg;
    for (size_t i = 0; i < sizeof functions/sizeof *functions; i++) {
        if (!strcmp(functions[i].name, what)) memcpy(&p, &functions[i].f, sizeof p);
    }
    return p;
}

struct ggml_backend_reg meta_reg = {
    .api_version = GGML_BACKEND_API_VERSION,
    .iface = { .get_name = reg_name, .get_device_count = reg_count, .get_device = reg_device, .get_proc_address = reg_function },
};
