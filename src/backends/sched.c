/* The scheduler: a graph over several backends.
 *
 * Each tensor is assigned a backend (assign_*), the node list is cut into splits, runs of nodes of one backend
 * (split_nodes), what a split cannot read in place is copied to it, and the list with the copies in it is placed by the graph
 * allocator and run split by split (run_splits). Backends are named by their index, 0 is preferred, the last one is the CPU.
 *
 * Memory. Every list here grows to the largest graph seen and stays; a graph that fits is planned and run without a call to
 * the allocator. Copies are tensors of our own (struct copies), with the original in src[0]: that keeps the original alive
 * until it is copied, and says what a rewritten source of the caller's graph was. */

#include "arenite.h"
#include "backend_impl.h"
#include "core.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BACKENDS = 16, MAX_COPIES = 4, CHUNK = 64, NONE = -1 };

/* A run of nodes of one backend and the originals of what is copied to it before. */
struct split {
    int                backend;
    int                begin, end;          /* nodes of the caller's graph */
    int                inputs, n_inputs;    /* in sched->inputs */
    struct ggml_cgraph graph;
};

/* `tensor` stays allocated until node `until` has run: a wish of a backend's graph_optimize. */
struct alloc_dep {
    struct ggml_tensor *tensor;
    const struct ggml_tensor *until;
};

struct chunk {
    struct chunk      *next;
    struct ggml_tensor t[CHUNK];
};

/* A list that grows. */
struct list {
    void  *p;
    size_t n, capacity;                     /* items */
};

struct ggml_backend_sched {
    int                        n_backends, n_copies, cur_copy, next_copy;
    ggml_backend_t             backends[MAX_BACKENDS];
    ggml_backend_buffer_type_t bufts[MAX_BACKENDS];
    ggml_backend_event_t       events[MAX_BACKENDS][MAX_COPIES];
    ggml_gallocr_t             galloc;
    bool                       op_offload, is_reset, is_alloc, out_of_memory;
    bool                       has_copies;  /* copy_of holds something */
    size_t                     graph_size;

    /* what is known of a tensor, by its slot in `seen` */
    struct ggml_hash_set seen;
    int                 *backend_of;        /* [seen.size], NONE: not assigned */
    struct ggml_tensor **copy_of;           /* [seen.size][n_backends][n_copies] */

    struct list splits;                     /* struct split */
    struct list inputs;                     /* struct ggml_tensor *: what splits copy, one after the other */
    struct list graph_inputs;               /* struct ggml_tensor *: INPUT tensors with several copies */
    struct list deps;                       /* struct alloc_dep */
    struct list nodes, leafs;               /* struct ggml_tensor *: the graph with copies, for the allocator */
    struct list node_ids, leaf_ids;         /* int: their backends */
    struct list old_node_ids, old_leaf_ids; /* int: those of the last allocation */
    struct list experts;                    /* char: ids of experts and a mark for each */
    struct ggml_cgraph graph;               /* nodes, leafs */

    struct chunk *chunks;                   /* tensors we made; the first n_made are in use */
    int           n_made;

    ggml_backend_sched_eval_callback callback;
    void                            *callback_data;
};

/* ---- lists and copies ---------------------------------------------------------------------------------------------- */

/* Room for n items; false and out_of_memory set when there is none. */
static bool list_room(ggml_backend_sched_t s, struct list *list, size_t n, size_t item) {
    if (n <= list->capacity) return true;
    size_t capacity = 2*list->capacity > n ? 2*list->capacity : n, bytes;
    if (capacity < 64) capacity = 64;
    void *p = size_mul(&bytes, capacity, item) ? realloc(list->p, bytes) : NULL;
    if (!p) {
        s->out_of_memory = true;
        return false;
    }
    list->p = p, list->capacity = capacity;
    return true;
}

static void push_tensor(ggml_backend_sched_t s, struct list *list, struct ggml_tensor *t) {
    if (list_room(s, list, list->n + 1, sizeof t)) ((struct ggml_tensor **) list->p)[list->n++] = t;
}

static void push_id(ggml_backend_sched_t s, struct list *list, int id) {
    if (list_room(s, list, list->n + 1, sizeof id)) ((int *) list->p)[list->n++] = id;
}

static struct split *split_at(ggml_backend_sched_t s, size_t i) { return (struct split *) s->splits.p + i; }
static struct ggml_tensor *input_at(ggml_backend_sched_t s, int i) { return ((struct ggml_tensor **) s->inputs.p)[i]; }

/* A tensor of ours; NULL when out of memory. Chunks are kept, so that addresses stay. */
static struct ggml_tensor *make_tensor(ggml_backend_sched_t s) {
    struct chunk **at = &s->chunks;
    for (int i = 0; i < s->n_made/CHUNK; i++) at = &(*at)->next;
    if (!*at) *at = calloc(1, sizeof **at);
    if (!*at) {
        s->out_of_memory = true;
        return NULL;
    }
    return memset(&(*at)->t[s->n_made++ % CHUNK], 0, sizeof(struct ggml_tensor));
}

static bool is_ours(const struct ggml_backend_sched *s, const struct ggml_tensor *t) {
    for (const struct chunk *c = s->chunks; c; c = c->next) {
        const uintptr_t at = (uintptr_t) t, begin = (uintptr_t) c->t;
        if (at >= begin && at < begin + sizeof c->t) return true;
    }
    return false;
}

static struct ggml_tensor *make_copy(ggml_backend_sched_t s, struct ggml_tensor *original, int backend, int copy) {
    struct ggml_tensor *t = make_tensor(s);
    if (!t) return NULL;
    t->type = original->type;
    memcpy(t->ne, original->ne, sizeof t->ne);
    memcpy(t->nb, original->nb, sizeof t->nb);
    t->src[0] = original;
    if (s->n_copies > 1) t->flags |= GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;  /* nobody takes its place */
    ggml_format_name(t, "%s#%s#%d", ggml_backend_name(s->backends[backend]), original->name, copy);
    return t;
}

/* Sources of the caller's graph that point to copies of an earlier split point to the originals again. */
static void restore_sources(const struct ggml_backend_sched *s, const struct ggml_cgraph *graph) {
    for (int i = 0; s->n_backends > 1 && i < graph->n_nodes; i++) {
        struct ggml_tensor **src = graph->nodes[i]->src;
        for (int j = 0; j < GGML_MAX_SRC; j++) if (src[j] && is_ours(s, src[j])) src[j] = src[j]->src[0];
    }
}

/* ---- what is known of a tensor -------------------------------------------------------------------------------------- */

static size_t slot_of(ggml_backend_sched_t s, struct ggml_tensor *t) {
    const size_t slot = hash_find(&s->seen, t);
    GGML_ASSERT(slot != HASH_FULL && "the graph fits the size given to ggml_backend_sched_new");
    if (hash_used(&s->seen, slot)) return slot;
    const size_t n = (size_t) s->n_backends*(size_t) s->n_copies;
    hash_insert(&s->seen, t);
    s->backend_of[slot] = NONE;
    memset(s->copy_of + slot*n, 0, n*sizeof *s->copy_of);
    return slot;
}

static int *id_of(ggml_backend_sched_t s, struct ggml_tensor *t) { return &s->backend_of[slot_of(s, t)]; }

/* The copies of t for a backend, [n_copies]. */
static struct ggml_tensor **copies_of(ggml_backend_sched_t s, struct ggml_tensor *t, int backend) {
    return s->copy_of + (slot_of(s, t)*(size_t) s->n_backends + (size_t) backend)*(size_t) s->n_copies;
}

static ggml_backend_buffer_t buffer_of(const struct ggml_tensor *t) { return t->view_src ? t->view_src->buffer : t->buffer; }
static bool is_weight(const struct ggml_tensor *t) {
    const ggml_backend_buffer_t buffer = buffer_of(t);
    return buffer && buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
}

static bool supports(ggml_backend_sched_t s, int backend, const struct ggml_tensor *op) {
    return ggml_backend_supports_op(s->backends[backend], op);
}

/* Can the backend read t where it is, or where it will be? */
static bool readable(ggml_backend_sched_t s, struct ggml_tensor *t, int backend) {
    const ggml_backend_buffer_t buffer = buffer_of(t);
    if (buffer) return ggml_backend_supports_buft(s->backends[backend], buffer->buft);
    int id = *id_of(s, t);
    if (id == NONE && t->view_src) id = *id_of(s, t->view_src);
    return id != NONE && ggml_backend_supports_buft(s->backends[backend], s->bufts[id]);
}

/* ---- assignment ------------------------------------------------------------------------------------------------------ */

/* The first backend that reads t's buffer and runs op. */
static int backend_at(ggml_backend_sched_t s, const struct ggml_tensor *t, const struct ggml_tensor *op) {
    const ggml_backend_buffer_t buffer = buffer_of(t);
    for (int b = 0; buffer && b < s->n_backends; b++) {
        if (ggml_backend_supports_buft(s->backends[b], buffer->buft) && supports(s, b, op)) return b;
    }
    return NONE;
}

/* Where the weights of an op want it: with them, or on a backend that takes such work away from the last one. */
static int backend_by_weights(ggml_backend_sched_t s, const struct ggml_tensor *op) {
    if (op->op == GGML_OP_ROPE || op->op == GGML_OP_FLASH_ATTN_EXT) return NONE;    /* their weights are too small to decide */
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        const struct ggml_tensor *w = op->src[i];
        if (!w || !is_weight(w)) continue;
        const int id = backend_at(s, w, op);
        if (s->op_offload && id == s->n_backends - 1 && ggml_backend_buffer_is_host(buffer_of(w))) {
            for (int b = 0; b < id; b++) if (supports(s, b, op) && ggml_backend_offload_op(s->backends[b], op)) return b;
        }
        if (id != NONE) return id;
    }
    return NONE;
}

/* The backend of a tensor that is in memory already, is an input, or has weights; else NONE. */
static int backend_by_data(ggml_backend_sched_t s, const struct ggml_tensor *t) {
    if (buffer_of(t)) {
        const int id = backend_at(s, t, t);
        if (id == NONE) {
            GGML_ABORT("scheduler: tensor \"%s\" is in a %s buffer, where no backend runs %s", t->name,
                       ggml_backend_buffer_name(buffer_of(t)), ggml_op_name(t->op));
        }
        return id;
    }
    const struct ggml_tensor *root = t->view_src ? t->view_src : t;
    if (root->data || (t->flags & GGML_TENSOR_FLAG_INPUT)) return s->n_backends - 1;
    return backend_by_weights(s, t);
}

static void assign_by_data(ggml_backend_sched_t s, struct ggml_tensor *t) {
    int *id = id_of(s, t);
    if (*id == NONE) *id = backend_by_data(s, t);
}

/* Walks the nodes in steps of `step`, carrying the backend of an assigned node to its unassigned neighbours. */
static void spread(ggml_backend_sched_t s, const struct ggml_cgraph *graph, int step, bool last_too) {
    int id = NONE;
    for (int i = step > 0 ? 0 : graph->n_nodes - 1; i >= 0 && i < graph->n_nodes; i += step) {
        struct ggml_tensor *node = graph->nodes[i];
        if (op_is_view(node->op)) continue;
        int *own = id_of(s, node);
        if (*own != NONE)                            id   = *own < s->n_backends - 1 || last_too ? *own : NONE;
        else if (id != NONE && supports(s, id, node)) *own = id;
    }
}

/* The backend that runs the node and can read most of its sources where they are. */
static int backend_by_sources(ggml_backend_sched_t s, const struct ggml_tensor *node) {
    int best = NONE, most = -1;
    for (int b = 0; b < s->n_backends; b++) {
        if (!supports(s, b, node)) continue;
        int n = 0;
        for (int i = 0; i < GGML_MAX_SRC; i++) n += node->src[i] && readable(s, node->src[i], b);
        if (n > most) most = n, best = b;
    }
    return best;
}

/* A preferred backend with the same memory, when it runs the node and reads all its sources. */
static int backend_upgraded(ggml_backend_sched_t s, const struct ggml_tensor *node, int id) {
    for (int b = 0; b < id; b++) {
        bool ok = s->bufts[b] == s->bufts[id] && supports(s, b, node);
        for (int i = 0; i < GGML_MAX_SRC; i++) ok = ok && (!node->src[i] || readable(s, node->src[i], b));
        if (ok) return b;
    }
    return id;
}

/* Views follow their root, what is left over follows who reads it. */
static void assign_rest(ggml_backend_sched_t s, struct ggml_tensor *node) {
    int *id = id_of(s, node);
    if (*id == NONE && node->view_src) *id = *id_of(s, node->view_src);
    if (*id == NONE) *id = backend_by_sources(s, node);
    if (*id == NONE) GGML_ABORT("scheduler: no backend runs %s (\"%s\")", ggml_op_desc(node), node->name);
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        struct ggml_tensor *src = node->src[i];
        if (!src || *id_of(s, src) != NONE) continue;
        const int root = src->view_src ? *id_of(s, src->view_src) : NONE;
        *id_of(s, src) = root != NONE ? root : *id;
        if (src->view_src && root == NONE) *id_of(s, src->view_src) = *id;
    }
}

static void assign(ggml_backend_sched_t s, const struct ggml_cgraph *graph) {
    for (int i = 0; i < graph->n_leafs; i++) assign_by_data(s, graph->leafs[i]);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *node = graph->nodes[i];
        assign_by_data(s, node);
        for (int j = 0; j < GGML_MAX_SRC; j++) if (node->src[j]) assign_by_data(s, node->src[j]);
    }
    spread(s, graph,  1, false);
    spread(s, graph, -1, false);
    spread(s, graph,  1, true);
    spread(s, graph, -1, true);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *node = graph->nodes[i];
        int *id = id_of(s, node);
        if (op_is_view(node->op)) continue;
        *id = *id == NONE ? backend_by_sources(s, node) : backend_upgraded(s, node, *id);
    }
    for (int i = 0; i < graph->n_nodes; i++) assign_rest(s, graph->nodes[i]);
}

/* ---- splits ---------------------------------------------------------------------------------------------------------- */

static bool make_copies(ggml_backend_sched_t s, struct ggml_tensor *t, int backend, bool t_is_current) {
    struct ggml_tensor **copies = copies_of(s, t, backend);
    for (int c = 0; c < s->n_copies; c++) {
        copies[c] = t_is_current && c == s->cur_copy ? t : make_copy(s, t, backend, c);
        if (!copies[c]) return false;
    }
    return true;
}

/* With several copies an INPUT has one per graph in flight, on its own backend; the caller's tensor is the current one. */
static void multiply_input(ggml_backend_sched_t s, struct ggml_tensor *t) {
    const int id = *id_of(s, t);
    if (s->n_copies == 1 || !(t->flags & GGML_TENSOR_FLAG_INPUT) || copies_of(s, t, id)[0]) return;
    if (make_copies(s, t, id, true)) push_tensor(s, &s->graph_inputs, t);
}

/* Makes every source of the node readable for the split, by rewriting it to a copy where it has to. */
static void split_sources(ggml_backend_sched_t s, struct split *split, struct ggml_tensor *node) {
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        struct ggml_tensor *src = node->src[i];
        if (!src) continue;
        multiply_input(s, src);
        if (*id_of(s, src) == split->backend || readable(s, src, split->backend)) continue;
        if (!copies_of(s, src, split->backend)[0]) {
            if (!make_copies(s, src, split->backend, false)) return;
            push_tensor(s, &s->inputs, src);
            split->n_inputs++;
            if (node->op == GGML_OP_MUL_MAT_ID && i == 0) {
                list_room(s, &s->experts, ggml_nbytes(node->src[2]) + (size_t) src->ne[2], 1);
            }
        }
        node->src[i] = copies_of(s, src, split->backend)[s->cur_copy];
    }
}

/* A weight to be copied begins a new split where the split has inputs already: the memory of those can be used again. */
static bool wants_new_split(ggml_backend_sched_t s, const struct split *split, const struct ggml_tensor *node) {
    for (int i = 0; i < GGML_MAX_SRC && split->n_inputs > 0; i++) {
        struct ggml_tensor *src = node->src[i];
        if (src && is_weight(src) && *id_of(s, src) != split->backend && !readable(s, src, split->backend) &&
            !copies_of(s, src, split->backend)[0]) return true;
    }
    return false;
}

static struct split *begin_split(ggml_backend_sched_t s, int backend, int node) {
    if (!list_room(s, &s->splits, s->splits.n + 1, sizeof(struct split))) return NULL;
    struct split *split = split_at(s, s->splits.n++);
    *split = (struct split) { .backend = backend, .begin = node, .inputs = (int) s->inputs.n };
    return split;
}

/* Views go with whatever split they fall into. */
static void split_nodes(ggml_backend_sched_t s, const struct ggml_cgraph *graph) {
    struct split *split = NULL;
    for (int i = 0; i < graph->n_nodes && !s->out_of_memory; i++) {
        struct ggml_tensor *node = graph->nodes[i];
        if (op_is_view(node->op)) continue;
        const int id = *id_of(s, node);
        if (!split || id != split->backend || wants_new_split(s, split, node)) {
            if (split) split->end = i;
            split = begin_split(s, id, split ? i : 0);
            if (!split) return;
        }
        split_sources(s, split, node);
    }
    if (!split && graph->n_nodes > 0) split = begin_split(s, s->n_backends - 1, 0);     /* nothing but views */
    if (split) split->end = graph->n_nodes;
}

static void add_alloc_dep(void *user_data, struct ggml_tensor *tensor, struct ggml_tensor *until) {
    ggml_backend_sched_t s = user_data;
    if (!list_room(s, &s->deps, s->deps.n + 1, sizeof(struct alloc_dep))) return;
    ((struct alloc_dep *) s->deps.p)[s->deps.n++] = (struct alloc_dep) { tensor, until };
}

static void push_node(ggml_backend_sched_t s, struct ggml_tensor *t, int id) {
    push_tensor(s, &s->nodes, t);
    push_id(s, &s->node_ids, id);
}

static void push_leaf(ggml_backend_sched_t s, struct ggml_tensor *t, int id) {
    push_tensor(s, &s->leafs, t);
    push_id(s, &s->leaf_ids, id);
}

/* Views of what has to stay until this node has run. */
static void push_deps(ggml_backend_sched_t s, const struct ggml_tensor *node) {
    const struct alloc_dep *deps = s->deps.p;
    for (size_t i = 0; i < s->deps.n; i++) {
        struct ggml_tensor *t = deps[i].tensor, *view = deps[i].until == node ? make_tensor(s) : NULL;
        if (!view) continue;
        *view = *t;
        memset(view->src, 0, sizeof view->src);
        view->op        = GGML_OP_VIEW;
        view->src[0]    = t;
        view->view_src  = t->view_src ? t->view_src : t;
        view->view_offs = t->view_src ? t->view_offs : 0;
        push_node(s, view, *id_of(s, t));
    }
}

/* The nodes with the copies in front of the splits they belong to, for the allocator. With several copies all of them are
 * leafs, the first ones and in the order of their number, so that each keeps its place from graph to graph. */
static void list_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    for (size_t i = 0; i < s->graph_inputs.n; i++) {
        struct ggml_tensor *t = ((struct ggml_tensor **) s->graph_inputs.p)[i];
        const int id = *id_of(s, t);
        for (int c = 0; c < s->n_copies; c++) push_leaf(s, copies_of(s, t, id)[c], id);
    }
    for (size_t i = 0; i < s->splits.n; i++) {
        const struct split *split = split_at(s, i);
        for (int j = 0; j < split->n_inputs; j++) {
            struct ggml_tensor **copies = copies_of(s, input_at(s, split->inputs + j), split->backend);
            if (s->n_copies == 1) push_node(s, copies[0], split->backend);
            for (int c = 0; s->n_copies > 1 && c < s->n_copies; c++) push_leaf(s, copies[c], split->backend);
        }
        for (int j = split->begin; j < split->end; j++) {
            push_node(s, graph->nodes[j], *id_of(s, graph->nodes[j]));
            push_deps(s, graph->nodes[j]);
        }
    }
    for (int i = 0; i < graph->n_leafs; i++) {
        struct ggml_tensor *leaf = graph->leafs[i];
        const int id = *id_of(s, leaf);
        if (copies_of(s, leaf, id)[s->cur_copy] != leaf) push_leaf(s, leaf, id);
    }
}

static _Atomic uint64_t last_uid;

/* The backends may reorder the nodes of their splits. */
static void optimize_splits(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    for (size_t i = 0; i < s->splits.n; i++) {
        struct split *split = split_at(s, i);
        const ggml_backend_t backend = s->backends[split->backend];
        struct ggml_backend_graph_optimize_params params = { .add_alloc_dep = add_alloc_dep, .user_data = s };
        split->graph = ggml_graph_view(graph, split->begin, split->end);
        if (backend->iface.graph_optimize) backend->iface.graph_optimize(backend, &split->graph, &params);
        split->graph.uid = atomic_fetch_add(&last_uid, 1) + 1;      /* until the next split the nodes and their places stay */
    }
}

/* What an earlier split that was not reset has left. */
static void forget_copies(ggml_backend_sched_t s) {
    const size_t n = (size_t) s->n_backends*(size_t) s->n_copies;
    for (size_t i = 0; s->has_copies && i < s->seen.size; i++) {
        if (hash_used(&s->seen, i)) memset(s->copy_of + i*n, 0, n*sizeof *s->copy_of);
    }
    s->has_copies = false;
}

/* Splits the graph and lists it for the allocator; false when out of memory, the graph being as it was. */
static bool split_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    GGML_ASSERT(graph && (size_t) graph->n_nodes + (size_t) graph->n_leafs <= s->graph_size &&
                "the graph fits the size given to ggml_backend_sched_new");
    restore_sources(s, graph);
    forget_copies(s);
    s->splits.n = s->inputs.n = s->graph_inputs.n = s->deps.n = s->nodes.n = s->leafs.n = s->node_ids.n = s->leaf_ids.n = 0;
    s->n_made = 0;
    s->is_reset = s->out_of_memory = false;
    s->has_copies = true;
    assign(s, graph);
    split_nodes(s, graph);
    if (!s->out_of_memory) {
        optimize_splits(s, graph);
        list_graph(s, graph);
    }
    if (s->out_of_memory) {
        LOG_ERROR("scheduler: out of memory for the plan of a graph of %d nodes\n", graph->n_nodes);
        restore_sources(s, graph);
        return false;
    }
    s->graph = *graph;
    s->graph.grads   = s->graph.grad_accs = NULL;
    s->graph.size    = (int) (s->nodes.n > s->leafs.n ? s->nodes.n : s->leafs.n);
    s->graph.nodes   = s->nodes.p, s->graph.n_nodes = (int) s->nodes.n;
    s->graph.leafs   = s->leafs.p, s->graph.n_leafs = (int) s->leafs.n;
    s->graph.uid     = 0;
    return true;
}

/* ---- allocation ------------------------------------------------------------------------------------------------------ */

/* Did a tensor change the kind of its memory since the last allocation? */
static bool kinds_changed(ggml_backend_sched_t s, const struct list *ids, const struct list *old) {
    if (ids->n != old->n) return true;
    for (size_t i = 0; i < ids->n; i++) {
        if (s->bufts[((int *) ids->p)[i]] != s->bufts[((int *) old->p)[i]]) return true;
    }
    return false;
}

static bool remember(ggml_backend_sched_t s, struct list *old, const struct list *ids) {
    if (!list_room(s, old, ids->n, sizeof(int))) return false;
    if (ids->n) memcpy(old->p, ids->p, ids->n*sizeof(int));
    old->n = ids->n;
    return true;
}

static void synchronize_all(ggml_backend_sched_t s) {
    for (int b = 0; b < s->n_backends; b++) ggml_backend_synchronize(s->backends[b]);
}

static bool reserve(ggml_backend_sched_t s) {
    return ggml_gallocr_reserve_n(s->galloc, &s->graph, s->node_ids.p, s->leaf_ids.p) &&
           remember(s, &s->old_node_ids, &s->node_ids) && remember(s, &s->old_leaf_ids, &s->leaf_ids);
}

static bool allocate(ggml_backend_sched_t s) {
    const bool changed = kinds_changed(s, &s->node_ids, &s->old_node_ids) || kinds_changed(s, &s->leaf_ids, &s->old_leaf_ids);
    if (!changed && ggml_gallocr_alloc_graph(s->galloc, &s->graph)) return true;
    synchronize_all(s);                     /* buffers may move */
    if (reserve(s) && ggml_gallocr_alloc_graph(s->galloc, &s->graph)) return true;
    LOG_ERROR("scheduler: a graph of %d nodes cannot be allocated\n", s->graph.n_nodes);
    return false;
}

/* ---- running --------------------------------------------------------------------------------------------------------- */

/* The split's backend is done with the copy it used last time around. */
static void wait_for_copy(ggml_backend_sched_t s, int backend) {
    if (s->events[backend][s->cur_copy]) ggml_backend_event_synchronize(s->events[backend][s->cur_copy]);
    else                                 ggml_backend_synchronize(s->backends[backend]);
}

/* Copies the experts that `ids` names, neighbours in one piece. False: this input is not such a case. */
static bool copy_experts(ggml_backend_sched_t s, const struct split *split, struct ggml_tensor *input, struct ggml_tensor *copy) {
    const struct ggml_tensor *user = NULL;
    if (graph_uses(&s->graph, input) != 1) return false;
    for (int i = 0; i < split->graph.n_nodes; i++) {
        const struct ggml_tensor *node = split->graph.nodes[i];
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            if (node->src[j] != copy) continue;
            if (user || node->op != GGML_OP_MUL_MAT_ID || j != 0) return false;
            user = node;
        }
    }
    if (!user || !is_weight(input) || !ggml_backend_buffer_is_host(buffer_of(input))) return false;
    struct ggml_tensor *ids = user->src[2];
    if (is_ours(s, ids)) ids = ids->src[0];
    const size_t bytes = ggml_nbytes(ids), n = (size_t) input->ne[2];
    if (!list_room(s, &s->experts, bytes + n, 1)) return false;
    char *const id = s->experts.p, *const wanted = id + bytes;
    ggml_backend_synchronize(s->backends[*id_of(s, ids)]);
    ggml_backend_tensor_get(ids, id, 0, bytes);
    memset(wanted, 0, n);
    for (int64_t i1 = 0; i1 < ids->ne[1]; i1++) {
        for (int64_t i0 = 0; i0 < ids->ne[0]; i0++) {
            int32_t e;
            memcpy(&e, id + (size_t) i1*ids->nb[1] + (size_t) i0*ids->nb[0], sizeof e);
            if (e >= 0 && (size_t) e < n) wanted[e] = 1;
        }
    }
    wait_for_copy(s, split->backend);
    for (size_t begin = 0, end; begin < n; begin = end + 1) {
        for (end = begin; end < n && wanted[end]; end++) { }
        ggml_backend_tensor_set_async(s->backends[split->backend], copy, (const char *) input->data + begin*input->nb[2],
                                      begin*input->nb[2], (end - begin)*input->nb[2]);
    }
    return true;
}

static void copy_input(ggml_backend_sched_t s, const struct split *split, struct ggml_tensor *input) {
    const ggml_backend_t from = s->backends[*id_of(s, input)], to = s->backends[split->backend];
    struct ggml_tensor *copy = copies_of(s, input, split->backend)[s->cur_copy];
    if (input->flags & GGML_TENSOR_FLAG_INPUT) {
        wait_for_copy(s, split->backend);   /* at once: the caller may write the next input as soon as we return */
        ggml_backend_tensor_copy(input, copy);
        return;
    }
    if (copy_experts(s, split, input, copy)) return;
    const ggml_backend_event_t event = s->events[split->backend][s->cur_copy];
    if (event) ggml_backend_event_wait(to, event);
    else       ggml_backend_synchronize(to);
    if (to->iface.cpy_tensor_async && to->iface.cpy_tensor_async(from, to, input, copy)) return;
    ggml_backend_synchronize(from);
    wait_for_copy(s, split->backend);
    ggml_backend_tensor_copy(input, copy);
}

/* Runs of nodes that the callback does not want to see, each with the first one it does at its end. */
static enum ggml_status run_observed(ggml_backend_sched_t s, struct split *split) {
    const ggml_backend_t backend = s->backends[split->backend];
    for (int begin = 0, end; begin < split->graph.n_nodes; begin = end) {
        bool wanted = false;
        for (end = begin; end < split->graph.n_nodes && !wanted; end++) {
            wanted = s->callback(split->graph.nodes[end], true, s->callback_data);
        }
        struct ggml_cgraph part = ggml_graph_view(&split->graph, begin, end);
        const enum ggml_status status = ggml_backend_graph_compute_async(backend, &part);
        if (status != GGML_STATUS_SUCCESS) return status;
        ggml_backend_synchronize(backend);
        if (wanted && !s->callback(split->graph.nodes[end - 1], false, s->callback_data)) break;
    }
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status run_splits(ggml_backend_sched_t s) {
    for (size_t i = 0; i < s->splits.n; i++) {
        struct split *split = split_at(s, i);
        const ggml_backend_t backend = s->backends[split->backend];
        for (int j = 0; j < split->n_inputs; j++) copy_input(s, split, input_at(s, split->inputs + j));
        const enum ggml_status status = s->callback ? run_observed(s, split) :
            ggml_backend_graph_compute_async(backend, &split->graph);
        if (status != GGML_STATUS_SUCCESS) return status;
        const ggml_backend_event_t event = s->events[split->backend][s->cur_copy];
        if (event && split->n_inputs > 0) ggml_backend_event_record(event, backend);
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- the interface --------------------------------------------------------------------------------------------------- */

/* Tables by slot and the allocator; false when out of memory. */
static bool sched_init(ggml_backend_sched_t s, size_t graph_size) {
    size_t slots, copies;
    s->graph_size = ggml_hash_size(graph_size);
    if (!size_mul(&slots, s->graph_size, 2)) return false;          /* roots of views are in no list of the graph */
    s->seen = ggml_hash_set_new(slots);
    if (!s->seen.keys || !size_mul(&copies, s->seen.size, (size_t) s->n_backends*(size_t) s->n_copies)) return false;
    s->backend_of = calloc(s->seen.size, sizeof *s->backend_of);
    s->copy_of    = calloc(copies, sizeof *s->copy_of);
    s->galloc     = ggml_gallocr_new_n(s->bufts, s->n_backends);
    return s->backend_of && s->copy_of && s->galloc;
}

ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends, ggml_backend_buffer_type_t *bufts, int n_backends,
                                            size_t graph_size, bool parallel, bool op_offload) {
    GGML_ASSERT(n_backends > 0 && n_backends <= MAX_BACKENDS);
    GGML_ASSERT(ggml_backend_dev_type(ggml_backend_get_device(backends[n_backends - 1])) == GGML_BACKEND_DEVICE_TYPE_CPU &&
                "the last backend is a CPU");
    ggml_backend_sched_t s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->n_backends = n_backends;
    s->n_copies   = parallel ? MAX_COPIES : 1;
    s->op_offload = op_offload;
    s->is_reset   = true;
    for (int b = 0; b < n_backends; b++) {
        s->backends[b] = backends[b];
        s->bufts[b]    = bufts && bufts[b] ? bufts[b] : ggml_backend_get_default_buffer_type(backends[b]);
        GGML_ASSERT(ggml_backend_supports_buft(backends[b], s->bufts[b]) && "a backend reads its own buffers");
        for (int c = 0; parallel && c < s->n_copies; c++) s->events[b][c] = ggml_backend_event_new(backends[b]->device);
    }
    if (sched_init(s, graph_size)) return s;
    LOG_ERROR("scheduler: out of memory for graphs of %zu tensors\n", graph_size);
    ggml_backend_sched_free(s);
    return NULL;
}

void ggml_backend_sched_free(ggml_backend_sched_t s) {
    if (!s) return;
    for (int b = 0; b < s->n_backends; b++) {
        for (int c = 0; c < s->n_copies; c++) ggml_backend_event_free(s->events[b][c]);
    }
    for (struct chunk *c = s->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    struct list *const lists[] = {
        &s->splits, &s->inputs, &s->graph_inputs, &s->deps, &s->nodes, &s->leafs, &s->node_ids, &s->leaf_ids,
        &s->old_node_ids, &s->old_leaf_ids, &s->experts,
    };
    for (size_t i = 0; i < sizeof lists/sizeof lists[0]; i++) free(lists[i]->p);
    ggml_gallocr_free(s->galloc);
    ggml_hash_set_free(&s->seen);
    free(s->backend_of);
    free(s->copy_of);
    free(s);
}

void ggml_backend_sched_reset(ggml_backend_sched_t s) {
    if (!s->is_reset) ggml_hash_set_reset(&s->seen);
    s->is_reset   = true;
    s->has_copies = false;
    s->is_alloc = false;
}

void ggml_backend_sched_synchronize(ggml_backend_sched_t s) {
    synchronize_all(s);
    if (!s->is_alloc) s->next_copy = 0;     /* the same copy each time, so that backends see the same graph again */
}

void ggml_backend_sched_split_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    GGML_ASSERT(s);
    ggml_backend_sched_reset(s);
    if (graph_ok(graph)) split_graph(s, graph);
}

void ggml_backend_sched_reserve_size(ggml_backend_sched_t s, struct ggml_cgraph *graph, size_t *sizes) {
    GGML_ASSERT(s && sizes);
    memset(sizes, 0, (size_t) s->n_backends*sizeof *sizes);
    ggml_backend_sched_reset(s);
    ggml_backend_sched_synchronize(s);
    if (!graph_ok(graph) || !split_graph(s, graph)) return;
    ggml_gallocr_reserve_n_size(s->galloc, &s->graph, s->node_ids.p, s->leaf_ids.p, sizes);
    s->old_node_ids.n = s->old_leaf_ids.n = 0;
    restore_sources(s, graph);
    ggml_backend_sched_reset(s);
}

bool ggml_backend_sched_reserve(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    GGML_ASSERT(s);
    ggml_backend_sched_synchronize(s);
    if (!graph_ok(graph) || !split_graph(s, graph)) return false;
    const bool ok = reserve(s);
    restore_sources(s, graph);
    if (ok) ggml_backend_sched_reset(s);
    return ok;
}

bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    GGML_ASSERT(s && !s->is_alloc && "one allocation per reset");
    s->cur_copy  = s->next_copy;
    s->next_copy = (s->next_copy + 1) % s->n_copies;
    if (!graph_ok(graph) || !split_graph(s, graph)) return false;
    if (!allocate(s)) {
        restore_sources(s, graph);
        return false;
    }
    s->is_alloc = true;
    return true;
}

enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    GGML_ASSERT(s);
    if (!s->is_reset && !s->is_alloc) ggml_backend_sched_reset(s);
    if (!s->is_alloc && !ggml_backend_sched_alloc_graph(s, graph)) return GGML_STATUS_ALLOC_FAILED;
    return run_splits(s);
}

enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t s, struct ggml_cgraph *graph) {
    const enum ggml_status status = ggml_backend_sched_graph_compute_async(s, graph);
    ggml_backend_sched_synchronize(s);
    return status;
}

void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t s, ggml_backend_sched_eval_callback callback, void *user_data) {
    GGML_ASSERT(s);
    s->callback      = callback;
    s->callback_data = user_data;
}

int ggml_backend_sched_get_n_splits(ggml_backend_sched_t s)   { return (int) s->splits.n; }
int ggml_backend_sched_get_n_copies(ggml_backend_sched_t s)   { return s->n_copies; }
int ggml_backend_sched_get_n_backends(ggml_backend_sched_t s) { return s->n_backends; }

ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t s, int i) {
    GGML_ASSERT(i >= 0 && i < s->n_backends);
    return s->backends[i];
}

static int index_of(ggml_backend_sched_t s, ggml_backend_t backend) {
    for (int b = 0; b < s->n_backends; b++) if (s->backends[b] == backend) return b;
    GGML_ABORT("scheduler: %s is not one of its backends", ggml_backend_name(backend));
}

ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t s, ggml_backend_t backend) {
    return s->bufts[index_of(s, backend)];
}

size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t s, ggml_backend_t backend) {
    return ggml_gallocr_get_buffer_size(s->galloc, index_of(s, backend));
}

void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t s, struct ggml_tensor *node, ggml_backend_t backend) {
    *id_of(s, node) = index_of(s, backend);
    s->is_reset = false;
}

ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t s, struct ggml_tensor *node) {
    const size_t slot = hash_find(&s->seen, node);
    if (slot == HASH_FULL || !hash_used(&s->seen, slot) || s->backend_of[slot] == NONE) return NULL;
    return s->backends[s->backend_of[slot]];
}

ggml_gallocr_t arn_sched_gallocr(ggml_backend_sched_t s) {
    return s->galloc;
}
