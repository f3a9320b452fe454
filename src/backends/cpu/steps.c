/* From the nodes of a graph to steps: which nodes need no meeting of the workers in between.
 *
 * A worker goes through the nodes of a step part by part: some rows of a chain, or some rows of products and what is done
 * with these element by element. Every node is computed by its own kernels and leaves its value in its own memory, so a step
 * has the bits of its nodes one by one, and outputs, watched nodes and sources of later nodes need no exception. What is saved
 * are meetings, preparations of one input for several products, and trips to memory.
 *
 * Many columns are prepared in parts, with the chain that makes them, and the workers meet before they multiply; what is done
 * with their products is left to the step that reads it next.
 *
 * A node joins a step only where its memory allows it: while one worker is at a node, another may be at a later or an earlier
 * one, so what they write must not be what the other reads or writes, except for the elements that one part holds of both. A
 * node may also be computed earlier than the graph lists it, past others, when none of these reads or writes its memory. */

#include "steps.h"
#include "compute.h"
#include "rows.h"
#include "arenite.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SMALL_WORK   = 16384,           /* a node with less work is not worth a meeting: some 5 to 15 us of one core */
    LOOK_AHEAD   = 16,              /* nodes that others may be computed before */
    FEW_COLUMNS  = 8                /* of more, pieces of rows far apart cost more than the trip to memory that they save */
};

static atomic_bool fusing_off;

void arn_cpu_set_fusing(bool on) { fusing_off = !on; }
bool steps_fusing(void)          { return !fusing_off; }

/* ---- one node --------------------------------------------------------------------------------------------------- */

bool node_computed(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) && !op_is_view(node->op) && !ggml_is_empty(node);
}

/* Elements read or written, roughly; products count four multiply-adds as one. */
static double work_of(const struct ggml_tensor *node) {
    const struct ggml_tensor *const *src = (const struct ggml_tensor *const *) node->src;
    if (node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) {
        return (double) ggml_nelements(node)*(double) src[0]->ne[0]/4;
    }
    if (node->op == GGML_OP_OUT_PROD) return (double) ggml_nelements(node)*(double) src[0]->ne[1]/(src[2] ? 4.0*(double) node->ne[2] : 4.0);
    if (node->op == GGML_OP_FLASH_ATTN_EXT) return (double) ggml_nelements(src[0])*(double) src[1]->ne[1]/2;
    if (node->op == GGML_OP_SET_ROWS) return (double) ggml_nelements(src[0]);
    double most = (double) ggml_nelements(node);
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        /* rows of a table are picked, not read through */
        if (src[i] && !(node->op == GGML_OP_GET_ROWS && i == 0)) most = fmax(most, (double) ggml_nelements(src[i]));
    }
    return most;
}

bool node_wide(const struct ggml_tensor *node) {
    const enum cpu_threads threads = cpu_ops[node->op].threads;
    return threads == ALL_THREADS || (threads == BY_SIZE && work_of(node) >= SMALL_WORK);
}

/* The node has memory, for itself and its sources, and an op that takes what it is given. */
static enum ggml_status check(const struct ggml_tensor *node, int i) {
    bool placed = node->data;
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        placed = placed && (!node->src[s] || node->src[s]->data || ggml_is_empty(node->src[s]));
    }
    if (!placed) {
        LOG_ERROR("graph: node %d (%s, \"%s\") or one of its sources has no memory\n", i, ggml_op_desc(node), node->name);
        return GGML_STATUS_ALLOC_FAILED;
    }
    if (!cpu_supports(node)) {
        LOG_ERROR("graph: node %d (%s, \"%s\"): the CPU backend cannot compute it from these types and layouts\n",
            i, ggml_op_desc(node), node->name);
        return GGML_STATUS_FAILED;
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

typedef const struct ggml_tensor *tensor;

static bool apart(tensor a, tensor b) {
    const uintptr_t at_a = (uintptr_t) a->data, at_b = (uintptr_t) b->data;
    const size_t size_a = ggml_nbytes(a), size_b = ggml_nbytes(b);
    return size_a == 0 || size_b == 0 || (at_a < at_b ? at_b - at_a >= size_a : at_a - at_b >= size_b);
}

static bool same_place(tensor a, tensor b) {
    return a->data == b->data && a->type == b->type && ggml_are_same_shape(a, b) && ggml_are_same_stride(a, b);
}

/* What of two nodes may share memory, element for element. */
enum { NOTHING = 0, RESULTS = 1, SOURCES = 2, NOT_SOURCE_1 = 4 };

/* Workers may be at `first` and at `then` at one time. NOT_SOURCE_1: that source of `then` is looked after otherwise. */
static bool independent(tensor first, tensor then, int shared) {
    const bool results = shared & RESULTS, sources = shared & SOURCES;
    if (!apart(first, then) && !(results && same_place(first, then))) return false;
    for (int i = 0; i < GGML_MAX_SRC; i++) {
        tensor a = first->src[i], b = then->src[i];
        if (a && !apart(a, then) && !(sources && same_place(a, then))) return false;
        if (i == 1 && (shared & NOT_SOURCE_1)) continue;
        if (b && !apart(b, first) && !(results && same_place(b, first))) return false;
    }
    return true;
}

/* ---- what ops allow --------------------------------------------------------------------------------------------- */

/* Parts of its result that an op can compute on their own. */
enum { WHOLE, ROWS, ELEMENTS };

static int parts_of(tensor node, int n_threads) {
    static const uint8_t parts[GGML_OP_COUNT] = {
        [GGML_OP_NORM] = ROWS,    [GGML_OP_RMS_NORM] = ROWS, [GGML_OP_L2_NORM] = ROWS,
        [GGML_OP_ADD] = ELEMENTS, [GGML_OP_SUB] = ELEMENTS,  [GGML_OP_MUL] = ELEMENTS,   [GGML_OP_DIV] = ELEMENTS,
        [GGML_OP_SQR] = ELEMENTS, [GGML_OP_SQRT] = ELEMENTS, [GGML_OP_SCALE] = ELEMENTS, [GGML_OP_CLAMP] = ELEMENTS,
        [GGML_OP_UNARY] = ELEMENTS, [GGML_OP_GLU] = ELEMENTS,
    };
    if (node->op == GGML_OP_GLU && !node->src[1]) return WHOLE;                 /* halves of one row */
    if (node->type != GGML_TYPE_F32 || cpu_ops[node->op].scratch(node, n_threads)) return WHOLE;
    return parts[node->op];
}

/* Their functions may touch whatever they like. */
static bool is_custom(tensor node) {
    return node->op == GGML_OP_CUSTOM || (node->op >= GGML_OP_MAP_CUSTOM1 && node->op <= GGML_OP_MAP_CUSTOM3);
}

static bool is_product(tensor node) {
    if (node->op == GGML_OP_MUL_MAT_ID) return true;
    return node->op == GGML_OP_MUL_MAT && node->src[0]->ne[2]*node->src[0]->ne[3] == 1 &&
           node->src[1]->ne[2]*node->src[1]->ne[3] == 1;
}

/* ---- making a step ---------------------------------------------------------------------------------------------- */

struct maker {
    const struct cpu_kernels *kernels;
    int                       n_threads;
    struct ggml_tensor      **todo;         /* [n] what is computed, in the order of the graph; NULL: is in a step */
    int                       n;
    struct ggml_tensor       *before[STEP_NODES], *product[STEP_NODES], *after[STEP_NODES], *passed[LOOK_AHEAD];
    uint8_t                   product_set[STEP_NODES], after_set[STEP_NODES];
    int                       n_before, n_products, n_after, n_passed;
    bool                      meets;        /* between before and product */
};

/* The node reads the last of n nodes and has nothing else to do with any of them. */
static bool follows(tensor node, struct ggml_tensor *const *chain, int n) {
    bool reads = false;
    if (!ggml_are_same_shape(node, chain[n - 1])) return false;
    for (int i = 0; i < n; i++) if (!independent(chain[i], node, RESULTS | SOURCES)) return false;
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        if (node->src[s] == chain[n - 1]) reads = true;
        else for (int i = 0; node->src[s] && i < n; i++) if (!apart(node->src[s], chain[i])) return false;
    }
    return reads;
}

/* Whatever the chain reads and writes is done with when the workers meet. */
static bool after_chain(const struct maker *m, tensor node, int shared) {
    for (int i = 0; i < m->n_before && !m->meets; i++) if (!independent(m->before[i], node, shared)) return false;
    return true;
}

/* How many nodes from todo[i] on are each made, row by row, from the one before. */
static int chain_length(const struct maker *m, int i) {
    int n = 0;
    while (n < STEP_NODES/2 && i + n < m->n && m->todo[i + n] && parts_of(m->todo[i + n], m->n_threads) != WHOLE &&
           (n == 0 || follows(m->todo[i + n], m->todo + i, n))) n++;
    return n;
}

/* The node can be computed at the step's time, before those that were passed. */
static bool can_pass(const struct maker *m, tensor node) {
    for (int i = 0; i < m->n_passed; i++) if (!independent(m->passed[i], node, NOTHING)) return false;
    return true;
}

static bool add_product(struct maker *m, struct ggml_tensor *node) {
    tensor first = m->product[0];
    if (!is_product(node)) return false;
    if (m->n_products && (node->op != first->op || node->src[2] != first->src[2] || !same_place(node->src[1], first->src[1]) ||
                          !products_alike(first, node, m->kernels, m->n_threads))) return false;
    if (m->n_products == 0) m->meets = products_meet(node, m->kernels, m->n_threads);
    if (!after_chain(m, node, NOT_SOURCE_1) || !can_pass(m, node)) return false;
    for (int i = 0; i < m->n_products; i++) if (!independent(m->product[i], node, NOTHING)) return false;
    for (int i = 0; i < m->n_after; i++)    if (!independent(m->after[i], node, NOTHING)) return false;
    m->product_set[m->n_products] = (uint8_t) m->n_products;
    m->product[m->n_products++] = node;
    return true;
}

/* The set whose results the node reads, element by element; -1: none. Two of one shape become one. */
static int joined_set(struct maker *m, tensor node) {
    int set = -1;
    for (int s = 0; s < GGML_MAX_SRC; s++) for (int i = 0; i < m->n_products + m->n_after; i++) {
        const bool is_after = i >= m->n_products;
        tensor made = is_after ? m->after[i - m->n_products] : m->product[i];
        if (node->src[s] != made) continue;
        const uint8_t found = is_after ? m->after_set[i - m->n_products] : m->product_set[i];
        if (!ggml_are_same_shape(node, made)) return -1;
        if (set < 0) set = found;
        if (set == found) continue;
        const uint8_t low = found < set ? found : (uint8_t) set, high = found < set ? (uint8_t) set : found;
        for (int j = 0; j < m->n_products; j++) if (m->product_set[j] == high) m->product_set[j] = low;
        for (int j = 0; j < m->n_after; j++)    if (m->after_set[j] == high)   m->after_set[j] = low;
        set = low;
    }
    return set;
}

static bool add_after(struct maker *m, struct ggml_tensor *node) {
    if (parts_of(node, m->n_threads) != ELEMENTS || node->ne[1]*node->ne[2]*node->ne[3] > FEW_COLUMNS) return false;
    const int set = joined_set(m, node);
    if (set < 0 || !after_chain(m, node, NOTHING) || !can_pass(m, node)) return false;
    for (int i = 0; i < m->n_products; i++) {
        if (!independent(m->product[i], node, m->product_set[i] == set ? RESULTS : NOTHING)) return false;
    }
    for (int i = 0; i < m->n_after; i++) {
        if (!independent(m->after[i], node, m->after_set[i] == set ? RESULTS | SOURCES : NOTHING)) return false;
    }
    m->after_set[m->n_after] = (uint8_t) set;
    m->after[m->n_after++] = node;
    return true;
}

static void put(struct cpu_steps *s, struct cpu_step *step, struct ggml_tensor *node, uint8_t set) {
    step->set[step->count++] = set;
    step->wide = step->wide || node_wide(node);
    s->node[step->first + step->count - 1] = node;
}

/* A chain of n nodes from todo[i] on (0: none) and what can be computed with the product behind it. */
static bool make_products(struct maker *m, struct cpu_steps *s, struct cpu_step *step, int i, int n) {
    m->n_before = m->n_products = m->n_after = m->n_passed = 0;
    for (int j = i; j < i + n; j++) m->before[m->n_before++] = m->todo[j];
    int at = i + n;
    if (at >= m->n || !m->todo[at] || (n && m->todo[at]->op != GGML_OP_MUL_MAT)) return false;
    if (n && m->todo[at]->src[1] != m->todo[at - 1]) return false;
    if (!add_product(m, m->todo[at])) return false;
    for (int j = i; j <= at; j++) m->todo[j] = NULL;
    for (at++; at < m->n && m->n_passed < LOOK_AHEAD && m->n_before + m->n_products + m->n_after < STEP_NODES; at++) {
        struct ggml_tensor *node = m->todo[at];
        if (!node) continue;
        if (is_custom(node)) break;
        if (add_product(m, node) || add_after(m, node)) m->todo[at] = NULL;
        else m->passed[m->n_passed++] = node;
    }
    step->kind   = STEP_PRODUCTS;
    step->meets  = m->meets;
    step->before = (uint8_t) m->n_before, step->products = (uint8_t) m->n_products;
    for (int j = 0; j < m->n_before; j++)   put(s, step, m->before[j], 0);
    for (int j = 0; j < m->n_products; j++) put(s, step, m->product[j], m->product_set[j]);
    for (int j = 0; j < m->n_after; j++)    put(s, step, m->after[j], m->after_set[j]);
    return true;
}

/* A rotation, with those that can be computed with it. */
static void make_ropes(struct maker *m, struct cpu_steps *s, struct cpu_step *step, int i) {
    tensor first = m->todo[i];
    m->n_passed = 0;
    step->kind  = STEP_ROPES;
    put(s, step, m->todo[i], 0);
    m->todo[i] = NULL;
    for (i++; i < m->n && m->n_passed < LOOK_AHEAD && step->count < STEP_NODES; i++) {
        struct ggml_tensor *node = m->todo[i];
        if (!node) continue;
        if (is_custom(node)) break;
        bool ok = ropes_alike(first, node) && can_pass(m, node);
        for (int j = 0; ok && j < step->count; j++) ok = independent(s->node[step->first + j], node, NOTHING);
        if (!ok) {
            m->passed[m->n_passed++] = node;
            continue;
        }
        put(s, step, node, 0);
        m->todo[i] = NULL;
    }
}

static bool node_meets(tensor node, const struct cpu_kernels *k, int n_threads) {
    if (node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID) return products_meet(node, k, n_threads);
    if (node->op == GGML_OP_FLASH_ATTN_EXT) return attention_meets(node, n_threads);
    return is_custom(node);
}

/* The step that begins with todo[i]. */
static struct cpu_step make_step(struct maker *m, struct cpu_steps *s, int first, int i) {
    struct cpu_step step = { .first = first };
    const bool fusing = steps_fusing();
    if (fusing && (m->todo[i]->op == GGML_OP_ROPE || m->todo[i]->op == GGML_OP_ROPE_BACK)) {
        make_ropes(m, s, &step, i);
        return step;
    }
    int n = fusing ? chain_length(m, i) : 0;
    if (fusing && make_products(m, s, &step, i, n)) return step;
    bool wide = false;
    for (int j = 0; j < n; j++) wide = wide || node_wide(m->todo[i + j]);
    if (!wide) n = 1;                                       /* narrow nodes need no meeting anyway */
    step.kind  = n > 1 ? STEP_ROWS : STEP_NODE;
    step.meets = node_meets(m->todo[i], m->kernels, m->n_threads);
    for (int j = i; j < i + n; j++) {
        put(s, &step, m->todo[j], 0);
        m->todo[j] = NULL;
    }
    return step;
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

static size_t list_bytes(int n, size_t item) { return GGML_PAD((size_t) n*item, 64); }

size_t steps_size(int n_nodes) {
    return list_bytes(n_nodes, sizeof(struct cpu_step)) + 2*list_bytes(n_nodes, sizeof(struct ggml_tensor *));
}

struct cpu_steps steps_in(void *memory, int n_nodes) {
    return (struct cpu_steps) { .step = memory, .node = (void *) ((char *) memory + list_bytes(n_nodes, sizeof(struct cpu_step))) };
}

enum ggml_status steps_make(struct cpu_steps *s, const struct ggml_cgraph *graph, const struct cpu_kernels *k, int n_threads) {
    struct maker m = { .kernels = k, .n_threads = n_threads };
    m.todo = (void *) ((char *) s->node + list_bytes(graph->n_nodes, sizeof *s->node));
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor *node = graph->nodes[i];
        if (!node_computed(node)) continue;
        const enum ggml_status status = check(node, i);
        if (status != GGML_STATUS_SUCCESS) return status;
        const size_t scratch = cpu_ops[node->op].scratch(node, n_threads);
        if (scratch > s->scratch_size) s->scratch_size = scratch;
        m.todo[m.n++] = node;
    }
    for (int i = 0, first = 0; i < m.n; i++) {
        if (!m.todo[i]) continue;
        const struct cpu_step step = make_step(&m, s, first, i);
        s->step[s->n++] = step;
        s->any_wide = s->any_wide || step.wide;
        first += step.count;
    }
    return GGML_STATUS_SUCCESS;
}

/* ---- running a step --------------------------------------------------------------------------------------------- */

void node_part(const struct cpu_task *t, struct ggml_tensor *node, struct span part) {
    struct cpu_task task = *t;
    task.part = &part;
    cpu_ops[node->op].run(&task, node);
}

static void run_rows(const struct cpu_task *t, struct ggml_tensor *const *node, int n) {
    struct span part = { .i1 = node[0]->ne[0] };
    while (next_rows(t, n_rows(node[0]), node[0]->ne[0], &part.r0, &part.r1)) {
        for (int i = 0; i < n; i++) node_part(t, node[i], part);
    }
}

void step_run(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node) {
    switch ((enum step_kind) step->kind) {
    case STEP_NODE:     cpu_ops[node[0]->op].run(t, node[0]);  break;
    case STEP_ROWS:     run_rows(t, node, step->count);        break;
    case STEP_ROPES:    run_ropes(t, node, step->count);       break;
    case STEP_PRODUCTS: run_products(t, step, node);           break;
    }
}

void step_finish(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node) {
    if (step->kind == STEP_PRODUCTS)              finish_products(t, step, node);
    else if (node[0]->op == GGML_OP_FLASH_ATTN_EXT) finish_attention(t, node[0]);
}
