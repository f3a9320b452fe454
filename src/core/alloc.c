/* Where tensors lie: one after the other in a buffer (tallocr, contexts), or planned from their lifetimes (gallocr).
 *
 * The planner sees a graph as blocks: a block is a tensor, its views, and the results that take over its place one after the
 * other (in place). A block lives from the node that writes it first to the node that reads it last; a leaf from before the
 * first node, an output or a result that nobody reads to the end. Blocks that live at the same time must not overlap:
 *
 *      address ^   +-----------+ +---+       the peak is the top edge; it is never below the largest sum of
 *              |   |  scores   | |out|       blocks that live at one time, and planning stops where it gets there
 *              |   +-----+-----+-+---+
 *              |   |  q  |     x     |
 *              +---+-----+-----------+--> nodes in their order
 *
 * All lifetimes are known before the first block is placed, so the order of placing is free: several are tried.
 *
 * Promises: a plan is used for a graph only where every lifetime is the planned one and no block is larger. A graph within
 * the last reservation is planned and placed without any allocation. Out of memory is one line of log and false or NULL. */

#include "arenite.h"
#include "backend_impl.h"
#include "compiler.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

static size_t padded_size(ggml_backend_buffer_type_t buft, size_t align, const struct ggml_tensor *t) {
    size_t size;
    return size_pad(&size, ggml_backend_buft_get_alloc_size(buft, t), align) ? size : SIZE_MAX;
}

/* ---- one after the other ---------------------------------------------------------------------------------------- */

struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer) {
    void *base = ggml_backend_buffer_get_base(buffer);
    const size_t align = ggml_backend_buffer_get_alignment(buffer);
    return (struct ggml_tallocr) { buffer, base, align, (align - (uintptr_t) base%align)%align };
}

enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor) {
    const size_t total = ggml_backend_buffer_get_size(talloc->buffer);
    const size_t size  = padded_size(ggml_backend_buffer_get_type(talloc->buffer), talloc->alignment, tensor);
    const size_t left  = talloc->offset < total ? total - talloc->offset : 0;
    if (size > left) {
        LOG_ERROR("buffer of %zu bytes is full: tensor %s needs %zu bytes, %zu are left\n", total, tensor->name, size, left);
        return GGML_STATUS_ALLOC_FAILED;
    }
    void *at = (char *) talloc->base + talloc->offset;
    talloc->offset += size;
    return ggml_backend_tensor_alloc(talloc->buffer, tensor, at);
}

static bool needs_place(const struct ggml_tensor *t) { return !t->data && !t->buffer && !t->view_src; }

/* A run of tensors that shares a buffer: from `first` up to, not with, `*end`. Its bytes; 0 when there is nothing to place,
 * SIZE_MAX when a tensor alone is too large for the type. */
static size_t run_bytes(struct ggml_context *ctx, ggml_backend_buffer_type_t buft, struct ggml_tensor *first,
                        struct ggml_tensor **end) {
    const size_t align = ggml_backend_buft_get_alignment(buft), most = ggml_backend_buft_get_max_size(buft);
    size_t bytes = 0;
    struct ggml_tensor *t = first;
    for (; t; t = ggml_get_next_tensor(ctx, t)) {
        const size_t size = needs_place(t) ? padded_size(buft, align, t) : 0;
        if (size > most || size == SIZE_MAX) {
            LOG_ERROR("tensor %s needs %zu bytes, a buffer of type %s has at most %zu\n", t->name, size,
                ggml_backend_buft_name(buft), most);
            return SIZE_MAX;
        }
        if (size > most - bytes) break;
        bytes += size;
    }
    *end = t;
    return bytes;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx, ggml_backend_buffer_type_t buft) {
    size_t total = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; ) {
        const size_t bytes = run_bytes(ctx, buft, t, &t);
        if (bytes == SIZE_MAX || !size_add(&total, total, bytes)) return 0;
    }
    return total;
}

static bool place_run(struct ggml_context *ctx, ggml_backend_buffer_t buffer, struct ggml_tensor *t,
                      const struct ggml_tensor *end) {
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    for (; t != end; t = ggml_get_next_tensor(ctx, t))
        if (needs_place(t) && ggml_tallocr_alloc(&talloc, t) != GGML_STATUS_SUCCESS) return false;
    return true;
}

static bool views_init(struct ggml_context *ctx) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (t->view_src && !t->buffer && t->view_src->buffer && ggml_backend_view_init(t) != GGML_STATUS_SUCCESS)
            return false;
    return true;
}

/* what was placed in these buffers is without a place again */
static void unplace(struct ggml_context *ctx, const ggml_backend_buffer_t *buffers, size_t n) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        for (size_t i = 0; i < n; i++)
            if (t->buffer && t->buffer == buffers[i]) { t->buffer = NULL; t->data = NULL; }
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                                                     ggml_backend_buffer_type_t buft) {
    if (!ggml_get_no_alloc(ctx)) GGML_ABORT("ggml_backend_alloc_ctx_tensors: the context allocates its tensors itself");
    ggml_backend_buffer_t *buffers = NULL, result = NULL;
    size_t n = 0;
    bool ok = true;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx), *first = t; t && ok; first = t) {
        const size_t bytes = run_bytes(ctx, buft, first, &t);
        if (bytes == 0) continue;
        ggml_backend_buffer_t *more = bytes == SIZE_MAX ? NULL : realloc(buffers, (n + 1)*sizeof *buffers);
        if (more) buffers = more;
        ggml_backend_buffer_t buffer = more ? ggml_backend_buft_alloc_buffer(buft, bytes) : NULL;
        if (buffer) buffers[n++] = buffer;
        else if (bytes != SIZE_MAX) LOG_ERROR("no memory for a %s buffer of %zu bytes\n", ggml_backend_buft_name(buft), bytes);
        ok = buffer && place_run(ctx, buffer, first, t);
    }
    ok = ok && views_init(ctx);
    if (ok && n > 1) {
        result = ggml_backend_multi_buffer_alloc_buffer(buffers, n);       /* takes the members, also when it fails */
        if (!result) unplace(ctx, buffers, n);
    } else if (ok && n == 1) {
        result = buffers[0];
    } else {
        unplace(ctx, buffers, n);
        for (size_t i = 0; i < n; i++) ggml_backend_buffer_free(buffers[i]);
    }
    free(buffers);
    return result;
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx, ggml_backend_t backend) {
    return ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_get_default_buffer_type(backend));
}

/* ---- the graph allocator: what it holds ------------------------------------------------------------------------- */

#define MAX_CHUNKS 16
#define AHEAD      6            /* nodes: tensors come from memory faster than one by one */
#define BEFORE     (-1)         /* the position of what is there before the first node; nodes count from 0 */

enum { OPERANDS = 3 };          /* the most sources of an op that works in place */

/* A tensor that has no place of its own elsewhere, or a view of one. */
struct item {
    struct ggml_tensor *tensor;
    int    root;                /* item whose memory it is: itself or what it views */
    int    block;               /* of the root */
    int    at;                  /* position that writes it */
    int    first, last;         /* of a root: its life, views included */
    int    buffer_id;
    int    n_uses;
    int    operands[OPERANDS];  /* items of its first sources; -1: none, or elsewhere */
    bool   output;              /* flagged so */
    bool   names_memory;        /* a view that nothing computes */
    bool   in_place;
};

struct block {
    size_t size;
    size_t offset;              /* in the arena: chunk c is [c*chunk_size, (c+1)*chunk_size) */
    int    first, last;
    int    arena;
};

/* Memory of one buffer type: chunks of at most its largest buffer. */
struct arena {
    ggml_backend_buffer_type_t buft;
    size_t                align;
    size_t                chunk_size;               /* SIZE_MAX: one chunk without end */
    size_t                planned[MAX_CHUNKS];      /* bytes that the plan takes of each chunk */
    size_t                lower_bound;
    ggml_backend_buffer_t chunks[MAX_CHUNKS];
    char                 *bases[MAX_CHUNKS];        /* of the chunks */
};

struct ggml_gallocr {
    int           n_buffers;    /* buffer types as given; equal ones share an arena */
    int          *arena_of;     /* [n_buffers] */
    struct arena *arenas;       /* [n_buffers], the first n_arenas in use */
    int           n_arenas;

    /* the graph seen last; room for `room` items and blocks, and for nodes and leafs as given */
    int           room, n_items, n_blocks;
    int           end;          /* its number of nodes: the position of what lives to the end */
    struct item  *items;
    struct block *blocks;
    int          *slots;        /* [n_slots] hash of tensor -> item + 1, 0: free */
    size_t        n_slots;      /* a power of two, at least twice the room */
    int           n_views, view_room;
    struct ggml_tensor **views; /* [n_views] views of memory elsewhere that are not initialised yet, some more than once */

    /* the plan: blocks placed. As long as a graph's blocks match it its offsets are theirs. */
    int           n_plan;
    struct block *plan;         /* [room] */
    int          *order, *placed;                   /* [room] scratch of the planner */
    size_t       *trial;        /* [room] offsets being tried */
    size_t       *live;         /* [node_room + 2] bytes alive at each position */
    int           node_room, leaf_room;

    /* buffer ids of the last reservation with several buffer types */
    int           n_nodes, n_leafs;                 /* -1: none yet */
    int          *node_ids, *leaf_ids;
};

ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs) {
    GGML_ASSERT(n_bufs > 0);
    struct ggml_gallocr *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->n_buffers = n_bufs;
    g->n_nodes   = g->n_leafs = -1;
    g->arena_of  = calloc((size_t) n_bufs, sizeof *g->arena_of);
    g->arenas    = calloc((size_t) n_bufs, sizeof *g->arenas);
    if (!g->arena_of || !g->arenas) {
        ggml_gallocr_free(g);
        return NULL;
    }
    for (int i = 0; i < n_bufs; i++) {
        int a = 0;
        while (a < g->n_arenas && g->arenas[a].buft != bufts[i]) a++;
        g->arena_of[i] = a;
        if (a < g->n_arenas) continue;
        const size_t align = ggml_backend_buft_get_alignment(bufts[i]), most = ggml_backend_buft_get_max_size(bufts[i]);
        g->arenas[g->n_arenas++] = (struct arena) {
            .buft = bufts[i], .align = align, .chunk_size = most > SIZE_MAX/(2*MAX_CHUNKS) ? SIZE_MAX : most & ~(align - 1),
        };
    }
    return g;
}

ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) { return ggml_gallocr_new_n(&buft, 1); }

void ggml_gallocr_free(ggml_gallocr_t g) {
    if (!g) return;
    for (int a = 0; a < g->n_arenas; a++)
        for (int c = 0; c < MAX_CHUNKS; c++) ggml_backend_buffer_free(g->arenas[a].chunks[c]);
    void *const owned[] = { g->arena_of, g->arenas, g->items, g->blocks, g->slots, g->plan, g->order, g->placed, g->trial,
                            g->live, g->views, g->node_ids, g->leaf_ids, g };
    for (size_t i = 0; i < sizeof owned/sizeof *owned; i++) free(owned[i]);
}

/* ---- finding tensors -------------------------------------------------------------------------------------------- */

/* *p grown to n elements of `size` bytes; false, with *p as it was, when out of memory */
static bool grow(void *p, size_t n, size_t size) {
    size_t bytes;
    void *old, *grown = NULL;
    memcpy(&old, p, sizeof old);
    if (size_mul(&bytes, n, size)) grown = realloc(old, bytes ? bytes : 1);
    if (grown) memcpy(p, &grown, sizeof grown);
    return grown != NULL;
}

static size_t slot_of(const struct ggml_gallocr *g, const struct ggml_tensor *t) {
    size_t i = (size_t) (((uint64_t) (uintptr_t) t >> 4)*0x9e3779b97f4a7c15u >> 32) & (g->n_slots - 1);
    while (g->slots[i] && g->items[g->slots[i] - 1].tensor != t) i = (i + 1) & (g->n_slots - 1);
    return i;
}

static bool make_room(struct ggml_gallocr *g, int room) {
    if (room <= g->room) return true;
    size_t n_slots = 64;
    const size_t n = (size_t) room;
    while (n_slots < 2*n) n_slots *= 2;
    if (!grow(&g->items, n, sizeof *g->items) || !grow(&g->blocks, n, sizeof *g->blocks) ||
        !grow(&g->plan,  n, sizeof *g->plan)  || !grow(&g->order,  n, sizeof *g->order)  ||
        !grow(&g->placed, n, sizeof *g->placed) || !grow(&g->trial, n, sizeof *g->trial)) return false;
    int *slots = calloc(n_slots, sizeof *slots);
    if (!slots) return false;
    free(g->slots);
    g->slots   = slots;
    g->n_slots = n_slots;
    g->room    = room;
    for (int i = 0; i < g->n_items; i++) g->slots[slot_of(g, g->items[i].tensor)] = i + 1;
    return true;
}

static bool is_ours(const struct ggml_gallocr *g, ggml_backend_buffer_t buffer) {
    for (int a = 0; a < g->n_arenas; a++)
        for (int c = 0; c < MAX_CHUNKS && g->arenas[a].chunks[c]; c++) if (g->arenas[a].chunks[c] == buffer) return true;
    return false;
}

/* Whether the tensor, or the root it views, was given its memory by somebody else. */
static inline bool is_external(const struct ggml_gallocr *g, const struct ggml_tensor *t) {
    const struct ggml_tensor *root = t->view_src ? t->view_src : t;
    return (root->data || root->buffer) && !(root->buffer && is_ours(g, root->buffer));
}

/* The item of t, a new one when it is seen for the first time; -1 when out of memory. */
static int item_get(struct ggml_gallocr *g, struct ggml_tensor *t, int buffer_id) {
    if (g->n_items + 2 > g->room && !make_room(g, 2*g->room + 2)) return -1;
    const size_t slot = slot_of(g, t);
    if (g->slots[slot]) return g->slots[slot] - 1;
    const int i = g->n_items++;
    g->slots[slot] = i + 1;
    g->items[i] = (struct item) { .tensor = t, .root = i, .at = BEFORE, .first = INT32_MAX, .last = BEFORE,
                                  .buffer_id = buffer_id, .operands = { -1, -1, -1 },
                                  .output = t->flags & GGML_TENSOR_FLAG_OUTPUT,
                                  .names_memory = t->view_src && t->op == GGML_OP_NONE };
    if (t->view_src) {
        const int root = item_get(g, t->view_src, buffer_id);
        if (root < 0) return -1;
        g->items[i].root = root;
    }
    return i;
}

/* ---- from a graph to blocks ------------------------------------------------------------------------------------- */

static void item_touch(struct ggml_gallocr *g, int i, int at) {
    struct item *root = &g->items[g->items[i].root];
    if (at < root->first) root->first = at;
    if (at > root->last)  root->last  = at;
}

/* The item of a tensor that is not computed here: memory not seen before holds data from before the graph. */
static int item_given(struct ggml_gallocr *g, struct ggml_tensor *t, int buffer_id) {
    const int seen = g->n_items, i = item_get(g, t, buffer_id);
    if (i >= 0 && g->items[i].root >= seen) item_touch(g, i, BEFORE);
    return i;
}

/* What lies elsewhere needs no place; a view of it may have to be told where its root is. */
static bool see_external(struct ggml_gallocr *g, struct ggml_tensor *t) {
    if (!t->view_src || t->buffer || !t->view_src->buffer) return true;
    if (g->n_views == g->view_room) {
        if (!grow(&g->views, (size_t) g->view_room*2 + 64, sizeof *g->views)) return false;
        g->view_room = g->view_room*2 + 64;
    }
    g->views[g->n_views++] = t;
    return true;
}

static bool see_node(struct ggml_gallocr *g, struct ggml_tensor *t, int at, int buffer_id) {
    int operands[OPERANDS] = { -1, -1, -1 };
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        struct ggml_tensor *src = t->src[s];
        if (!src || src == t) continue;
        if (is_external(g, src)) {
            if (!see_external(g, src)) return false;
            continue;
        }
        const int i = item_given(g, src, buffer_id);
        if (i < 0) return false;
        item_touch(g, i, at);
        g->items[i].n_uses++;
        if (s < OPERANDS) operands[s] = i;
    }
    if (is_external(g, t)) return see_external(g, t);
    const bool given = t->op == GGML_OP_NONE || t->view_src || t->flags & GGML_TENSOR_FLAG_INPUT;
    const int i = given ? item_given(g, t, buffer_id) : item_get(g, t, buffer_id);
    if (i < 0) return false;
    g->items[i].buffer_id = buffer_id;
    g->items[i].at = given ? BEFORE : at;
    memcpy(g->items[i].operands, operands, sizeof operands);
    item_touch(g, i, at);
    return true;
}

static bool same_layout(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->type == b->type && ggml_are_same_shape(a, b) && ggml_are_same_stride(a, b);
}

/* The block whose place the node may take: read for the last time here, by one operand that covers it from its start in the
 * layout of the result. -1: none. */
static int in_place_block(const struct ggml_gallocr *g, const struct item *x, size_t size) {
    const struct ggml_tensor *t = x->tensor;
    int blocks[OPERANDS];
    if (x->at == BEFORE || x->first != x->at) return -1;
    if (!op_can_inplace(t->op, ggml_backend_buft_is_host(g->arenas[g->arena_of[x->buffer_id]].buft))) return -1;
    for (int s = 0; s < OPERANDS; s++) blocks[s] = x->operands[s] < 0 ? -1 : g->items[g->items[x->operands[s]].root].block;
    for (int s = 0; s < OPERANDS; s++) {
        const int b = blocks[s];
        if (b < 0 || g->blocks[b].last != x->at || g->blocks[b].size < size || g->blocks[b].arena != g->arena_of[x->buffer_id]) continue;
        const struct ggml_tensor *src = g->items[x->operands[s]].tensor;
        if ((blocks[0] == b) + (blocks[1] == b) + (blocks[2] == b) == 1 && !src->view_offs && same_layout(src, t)) return b;
    }
    return -1;
}

static bool make_blocks(struct ggml_gallocr *g) {
    size_t total = 0;
    for (int i = 0; i < g->n_items; i++) {
        struct item *x = &g->items[i];
        if (x->output || (x->n_uses == 0 && !x->names_memory)) item_touch(g, i, g->end);
        x->block = -1;
    }
    g->n_blocks = 0;
    for (int i = 0; i < g->n_items; i++) {
        struct item *x = &g->items[i];
        if (x->root != i) continue;
        const int a = g->arena_of[x->buffer_id];
        size_t size = padded_size(g->arenas[a].buft, g->arenas[a].align, x->tensor);
        if (size == 0) size = g->arenas[a].align;           /* an address of its own, for what has no bytes too */
        if (size == SIZE_MAX || !size_add(&total, total, size) || total > SIZE_MAX/2) {
            LOG_ERROR("graph allocator: tensor %s is too large\n", x->tensor->name);
            return false;
        }
        x->block    = in_place_block(g, x, size);
        x->in_place = x->block >= 0;
        if (!x->in_place) {
            g->blocks[g->n_blocks] = (struct block) { .size = size, .first = x->first, .last = x->last, .arena = a };
            x->block = g->n_blocks++;
        } else if (g->blocks[x->block].last < x->last) {
            g->blocks[x->block].last = x->last;
        }
    }
    return true;
}

static bool describe(struct ggml_gallocr *g, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    g->n_items = g->n_blocks = g->n_views = 0;
    if (!make_room(g, graph->n_nodes + graph->n_leafs + 2)) return false;
    memset(g->slots, 0, g->n_slots*sizeof *g->slots);
    g->end = graph->n_nodes;
    bool ok = true;
    for (int i = 0; i < graph->n_leafs && ok; i++)
        ok = is_external(g, graph->leafs[i]) ? see_external(g, graph->leafs[i])
                                             : item_given(g, graph->leafs[i], leaf_ids ? leaf_ids[i] : 0) >= 0;
    for (int i = 0; i < graph->n_nodes && ok; i++) {
        const struct ggml_tensor *soon = graph->nodes[i + AHEAD < graph->n_nodes ? i + AHEAD : i];
        PREFETCH(soon), PREFETCH(&soon->op), PREFETCH(soon->src), PREFETCH(&soon->data);
        ok = see_node(g, graph->nodes[i], i, node_ids ? node_ids[i] : 0);
    }
    if (ok && make_blocks(g)) return true;
    g->n_items = 0;
    return false;
}

/* ---- from blocks to a plan -------------------------------------------------------------------------------------- */

static size_t lower_bound(struct ggml_gallocr *g, int arena) {
    const size_t n = (size_t) g->end + 2;               /* position p counts at p + 1 */
    size_t now = 0, most = 0;
    memset(g->live, 0, n*sizeof *g->live);
    for (int i = 0; i < g->n_blocks; i++) {
        const struct block *b = &g->blocks[i];
        if (b->arena != arena) continue;
        g->live[b->first + 1] += b->size;
        if (b->last < g->end) g->live[b->last + 2] -= b->size;     /* wraps, and back in the sum */
    }
    for (size_t p = 0; p < n; p++) {
        now += g->live[p];
        if (now > most) most = now;
    }
    return most;
}

/* Orders of placing. A block's rank: larger goes first; blocks of equal rank keep their order in time. */
typedef uint64_t (*block_rank)(const struct block *b);
static uint64_t by_time(const struct block *b)     { GGML_UNUSED(b); return 0; }
static uint64_t by_size(const struct block *b)     { return b->size; }
static uint64_t by_duration(const struct block *b) { return (uint64_t) (b->last - b->first); }
static uint64_t by_area(const struct block *b)     { return b->size/16*(uint64_t) (b->last - b->first + 1); }
static uint64_t by_end(const struct block *b)      { return (uint64_t) (b->last + 1); }

static bool goes_before(const struct ggml_gallocr *g, block_rank rank, int a, int b) {
    const struct block *x = &g->blocks[a], *y = &g->blocks[b];
    const uint64_t rx = rank(x), ry = rank(y);
    if (rx != ry) return rx > ry;
    if (x->first != y->first) return x->first < y->first;
    return a < b;
}

/* Shell's sort (Ciura's gaps): in place, where qsort may allocate. */
static void sort_order(struct ggml_gallocr *g, int n, block_rank rank) {
    static const int gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };
    for (size_t k = 0; k < sizeof gaps/sizeof *gaps; k++)
        for (int i = gaps[k]; i < n; i++) {
            const int v = g->order[i];
            int j = i;
            for (; j >= gaps[k] && goes_before(g, rank, v, g->order[j - gaps[k]]); j -= gaps[k])
                g->order[j] = g->order[j - gaps[k]];
            g->order[j] = v;
        }
}

/* the least offset >= at where `size` bytes lie in one chunk */
static size_t in_chunk(const struct arena *a, size_t at, size_t size) {
    if (a->chunk_size == SIZE_MAX || at/a->chunk_size == (at + size - 1)/a->chunk_size) return at;
    return (at/a->chunk_size + 1)*a->chunk_size;
}

/* Place the first n blocks of g->order one by one: the smallest gap that holds it between blocks of its time (or with
 * `lowest` the lowest one), else above all of them. The offsets go to g->trial; returns the peak. */
static size_t place_in_order(struct ggml_gallocr *g, const struct arena *a, int n, bool lowest, bool in_time) {
    size_t peak = 0;
    int n_placed = 0;                                   /* g->placed: by offset */
    for (int k = 0; k < n; k++) {
        const struct block *b = &g->blocks[g->order[k]];
        size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        int kept = 0;
        for (int p = 0; p < n_placed; p++) {
            const int other = g->placed[p];
            const struct block *o = &g->blocks[other];
            if (in_time && o->last < b->first) continue;        /* nobody who comes will meet it */
            g->placed[kept++] = other;
            if (o->last < b->first || o->first > b->last) continue;
            const size_t start = in_chunk(a, at, b->size), low = g->trial[other], high = low + o->size;
            if (start < low && b->size <= low - start && low - start < best_gap && !(lowest && best != SIZE_MAX)) {
                best     = start;
                best_gap = low - start;
            }
            if (high > at) at = high;
        }
        n_placed = kept;
        if (best == SIZE_MAX) best = in_chunk(a, at, b->size);
        g->trial[g->order[k]] = best;
        if (best + b->size > peak) peak = best + b->size;
        int p = n_placed++;
        for (; p > 0 && g->trial[g->placed[p - 1]] > best; p--) g->placed[p] = g->placed[p - 1];
        g->placed[p] = g->order[k];
    }
    return peak;
}

/* Place g->order and keep the offsets when the peak is the least so far. */
static size_t try_order(struct ggml_gallocr *g, const struct arena *a, int n, bool lowest, bool in_time, size_t *best) {
    const size_t peak = place_in_order(g, a, n, lowest, in_time);
    if (peak < *best) {
        *best = peak;
        for (int i = 0; i < n; i++) g->blocks[g->order[i]].offset = g->trial[g->order[i]];
    }
    return peak;
}

/* The block at the peak of the last placing goes to the front of the order. */
static void promote_top(struct ggml_gallocr *g, int n, size_t peak) {
    int k = 0;
    while (k < n - 1 && g->trial[g->order[k]] + g->blocks[g->order[k]].size != peak) k++;
    const int top = g->order[k];
    memmove(g->order + 1, g->order, (size_t) k*sizeof *g->order);
    g->order[0] = top;
}

/* Offsets for the n blocks in g->order, from the first order that needs no more than `enough`, or the best one. */
static void place_blocks(struct ggml_gallocr *g, const struct arena *a, int n, size_t enough) {
    static const struct { block_rank rank; bool lowest, in_time; } tries[] = {
        { by_time, false, true }, { by_size, false, false }, { by_area, false, false }, { by_duration, false, false },
        { by_size, true, false }, { by_time, true, true }, { by_end, false, false },
    };
    const size_t n_tries = sizeof tries/sizeof *tries;
    size_t best = SIZE_MAX, best_try = 0, k = 0;
    for (; k < n_tries && best > enough; k++) {
        const size_t before = best;
        sort_order(g, n, tries[k].rank);
        try_order(g, a, n, tries[k].lowest, tries[k].in_time, &best);
        if (best < before) best_try = k;
    }
    if (best <= enough) return;
    sort_order(g, n, tries[best_try].rank);
    for (int i = 0; i < 32 && best > enough; i++)
        promote_top(g, n, try_order(g, a, n, tries[best_try].lowest, false, &best));
}

/* What the arena's buffer holds already; 0 when it is several buffers or none. */
static size_t held_bytes(const struct arena *a) {
    return a->chunk_size == SIZE_MAX && a->chunks[0] ? ggml_backend_buffer_get_size(a->chunks[0]) : 0;
}

static bool plan_arena(struct ggml_gallocr *g, int arena, bool frugal) {
    struct arena *a = &g->arenas[arena];
    int n = 0;
    a->lower_bound = lower_bound(g, arena);
    memset(a->planned, 0, sizeof a->planned);
    for (int i = 0; i < g->n_blocks; i++) {
        if (g->blocks[i].arena != arena) continue;
        g->order[n++] = i;
        if (g->blocks[i].size > a->chunk_size) a->chunk_size = g->blocks[i].size;
    }
    const size_t held = frugal ? 0 : held_bytes(a);
    place_blocks(g, a, n, held > a->lower_bound ? held : a->lower_bound);
    for (int i = 0; i < n; i++) {
        const struct block *b = &g->blocks[g->order[i]];
        const size_t chunk = b->offset/a->chunk_size, end = b->offset%a->chunk_size + b->size;
        if (chunk >= MAX_CHUNKS) {
            LOG_ERROR("graph allocator: more than %d buffers of %zu bytes are needed\n", MAX_CHUNKS, a->chunk_size);
            return false;
        }
        if (end > a->planned[chunk]) a->planned[chunk] = end;
    }
    return true;
}

/* Whether the plan places this graph's blocks too; then their offsets are the plan's. */
static bool plan_holds(struct ggml_gallocr *g) {
    if (g->n_blocks != g->n_plan) return false;
    for (int i = 0; i < g->n_blocks; i++) {
        const struct block *b = &g->blocks[i], *p = &g->plan[i];
        if (b->first != p->first || b->last != p->last || b->arena != p->arena || b->size > p->size) return false;
    }
    return true;
}

/* A plan for the blocks: the least memory that is found when `frugal`, else what the buffers hold is little enough. */
static bool make_plan(struct ggml_gallocr *g, bool frugal) {
    g->n_plan = 0;
    if (g->end > g->node_room || !g->live) {
        if (!grow(&g->live, (size_t) g->end + 2, sizeof *g->live) ||
            !grow(&g->node_ids, (size_t) g->end, sizeof *g->node_ids)) return false;
        g->node_room = g->end;
    }
    for (int a = 0; a < g->n_arenas; a++) if (!plan_arena(g, a, frugal)) return false;
    memcpy(g->plan, g->blocks, (size_t) g->n_blocks*sizeof *g->plan);
    g->n_plan = g->n_blocks;
    return true;
}

/* ---- from a plan to memory -------------------------------------------------------------------------------------- */

/* Buffers at least as large as the plan; a failure leaves the others as they are. */
static bool hold_plan(struct ggml_gallocr *g) {
    for (int a = 0; a < g->n_arenas; a++)
        for (int c = 0; c < MAX_CHUNKS; c++) {
            struct arena *arena = &g->arenas[a];
            ggml_backend_buffer_t *chunk = &arena->chunks[c];
            if (arena->planned[c] == 0 || (*chunk && ggml_backend_buffer_get_size(*chunk) >= arena->planned[c])) continue;
            ggml_backend_buffer_t larger = ggml_backend_buft_alloc_buffer(arena->buft, arena->planned[c]);
            if (!larger && *chunk) {        /* both at once may be too much; what the old one held is void anyway */
                ggml_backend_buffer_free(*chunk);
                *chunk = NULL;
                larger = ggml_backend_buft_alloc_buffer(arena->buft, arena->planned[c]);
            }
            if (!larger) {
                LOG_ERROR("graph allocator: no memory for a %s buffer of %zu bytes\n", ggml_backend_buft_name(arena->buft),
                    arena->planned[c]);
                return false;
            }
            ggml_backend_buffer_free(*chunk);
            *chunk = larger;
            arena->bases[c] = ggml_backend_buffer_get_base(larger);
            ggml_backend_buffer_set_usage(larger, GGML_BACKEND_BUFFER_USAGE_COMPUTE);
        }
    return true;
}

static bool place_item(const struct ggml_gallocr *g, const struct item *x) {
    struct ggml_tensor *t = x->tensor;
    t->buffer = NULL;
    t->data   = NULL;
    if (t->view_src) return ggml_backend_view_init(t) == GGML_STATUS_SUCCESS;
    const struct block *b = &g->plan[x->block];
    const struct arena *a = &g->arenas[b->arena];
    const size_t chunk = b->offset/a->chunk_size;
    t->buffer = a->chunks[chunk];               /* the plan is within the buffer: nothing to check again */
    t->data   = a->bases[chunk] + b->offset%a->chunk_size;
    return ggml_backend_buffer_init_tensor(t->buffer, t) == GGML_STATUS_SUCCESS;
}

static bool place_all(struct ggml_gallocr *g) {
    for (int a = 0; a < g->n_arenas; a++)
        for (int c = 0; c < MAX_CHUNKS; c++) if (g->arenas[a].chunks[c]) ggml_backend_buffer_reset(g->arenas[a].chunks[c]);
    /* roots first: a view may be seen before what it views */
    for (int i = 0; i < g->n_items; i++) if (g->items[i].root == i && !place_item(g, &g->items[i])) return false;
    for (int i = 0; i < g->n_items; i++) if (g->items[i].root != i && !place_item(g, &g->items[i])) return false;
    for (int i = 0; i < g->n_views; i++)
        if (!g->views[i]->buffer && ggml_backend_view_init(g->views[i]) != GGML_STATUS_SUCCESS) return false;
    return true;
}

static bool measure(struct ggml_gallocr *g, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    g->n_nodes = g->n_leafs = -1;
    if (!graph_ok(graph) || !describe(g, graph, node_ids, leaf_ids)) return false;
    if (!make_plan(g, true)) return false;
    if (graph->n_leafs > g->leaf_room || !g->leaf_ids) {
        if (!grow(&g->leaf_ids, (size_t) graph->n_leafs, sizeof *g->leaf_ids)) return false;
        g->leaf_room = graph->n_leafs;
    }
    for (int i = 0; i < graph->n_nodes; i++) g->node_ids[i] = node_ids ? node_ids[i] : 0;
    for (int i = 0; i < graph->n_leafs; i++) g->leaf_ids[i] = leaf_ids ? leaf_ids[i] : 0;
    g->n_nodes = graph->n_nodes;
    g->n_leafs = graph->n_leafs;
    return true;
}

bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
                            const int *leaf_buffer_ids) {
    return measure(galloc, graph, node_buffer_ids, leaf_buffer_ids) && hold_plan(galloc);
}

bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    return ggml_gallocr_reserve_n(galloc, graph, NULL, NULL);
}

static bool first_of_arena(const struct ggml_gallocr *g, int buffer_id) {
    GGML_ASSERT(buffer_id >= 0 && buffer_id < g->n_buffers);
    for (int i = 0; i < buffer_id; i++) if (g->arena_of[i] == g->arena_of[buffer_id]) return false;
    return true;
}

static size_t planned_bytes(const struct ggml_gallocr *g, int buffer_id) {
    size_t n = 0;
    if (!first_of_arena(g, buffer_id)) return 0;
    for (int c = 0; c < MAX_CHUNKS; c++) n += g->arenas[g->arena_of[buffer_id]].planned[c];
    return n;
}

void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids,
                                 const int *leaf_buffer_ids, size_t *sizes) {
    const bool ok = measure(galloc, graph, node_buffer_ids, leaf_buffer_ids);
    for (int i = 0; i < galloc->n_buffers; i++) sizes[i] = ok ? planned_bytes(galloc, i) : 0;
}

bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph) {
    if (!graph_ok(graph)) return false;
    const bool reserved = graph->n_nodes == galloc->n_nodes && graph->n_leafs == galloc->n_leafs;
    if (galloc->n_buffers > 1) {        /* the caller knows which buffers the nodes of another graph belong to */
        if (!reserved || !describe(galloc, graph, galloc->node_ids, galloc->leaf_ids)) return false;
        if (!plan_holds(galloc)) { galloc->n_items = 0; return false; }
    } else if (!describe(galloc, graph, NULL, NULL) || (!plan_holds(galloc) && !make_plan(galloc, false))) {
        return false;
    }
    return hold_plan(galloc) && place_all(galloc);
}

size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id) {
    size_t n = 0;
    if (!first_of_arena(galloc, buffer_id)) return 0;
    const struct arena *a = &galloc->arenas[galloc->arena_of[buffer_id]];
    for (int c = 0; c < MAX_CHUNKS; c++) n += a->chunks[c] ? ggml_backend_buffer_get_size(a->chunks[c]) : 0;
    return n;
}

/* ---- the plan, for who wants to see it -------------------------------------------------------------------------- */

void arn_gallocr_visit(ggml_gallocr_t galloc, arn_plan_visit visit, void *user_data) {
    for (int i = 0; galloc->n_plan && i < galloc->n_items; i++) {
        const struct item *x = &galloc->items[i];
        if (x->root != i) continue;
        const struct block *b = &galloc->plan[x->block];
        const struct arena *a = &galloc->arenas[b->arena];
        const size_t chunk = b->offset/a->chunk_size;
        struct arn_plan_entry e = { .tensor = x->tensor, .buffer_id = x->buffer_id, .offset = b->offset%a->chunk_size,
            .size = b->size, .first = x->first, .last = x->last < galloc->end ? x->last : galloc->end - 1,
            .in_place = x->in_place };
        for (size_t c = 0; c < chunk; c++) e.offset += a->planned[c];
        if (!visit(&e, user_data)) return;
    }
}

void arn_gallocr_quality(ggml_gallocr_t galloc, int buffer_id, size_t *peak, size_t *lower_bound_bytes) {
    *peak = planned_bytes(galloc, buffer_id);
    *lower_bound_bytes = first_of_arena(galloc, buffer_id) ? galloc->arenas[galloc->arena_of[buffer_id]].lower_bound : 0;
}
