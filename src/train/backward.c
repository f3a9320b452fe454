/* The backward pass of a graph: gradients of its losses by its parameters, appended to it as further nodes.
 *
 * Nodes are walked from the last to the first. When a node's turn comes all its users have been, so what they contributed,
 * added up, is its gradient; that is handed on to its sources by the rules of gradients.c. Only nodes between a parameter
 * and a loss take part. Nothing is allocated but tensors in the caller's context: the graph's own table of gradients first
 * says which nodes take part (`wanted`), then holds their sums.
 *
 * A graph that cannot be differentiated (an op without a rule, a full context, a node changed in place) is one line of log,
 * and unusable: computing it returns GGML_STATUS_ALLOC_FAILED. */

#include "gradients.h"

#include <inttypes.h>
#include <string.h>

static tensor wanted;           /* stands for: takes part, nothing contributed yet */

struct backward {
    context            *ctx;
    struct ggml_cgraph *graph;
};

static tensor **slot(struct ggml_tensor **table, const struct ggml_cgraph *g, const tensor *t) {
    const size_t i = hash_find(&g->visited_hash_set, t);
    return i == HASH_FULL || !hash_used(&g->visited_hash_set, i) ? NULL : &table[i];
}
static tensor *sum_of(const struct backward *b, const tensor *t) {
    tensor **sum = t ? slot(b->graph->grads, b->graph, t) : NULL;
    return sum ? *sum : NULL;
}
static bool takes_part(const struct backward *b, const tensor *t) { return sum_of(b, t) != NULL; }

static void refuse(const struct backward *b, const tensor *y, const char *why) {
    char text[256];
    snprintf(text, sizeof text, "no gradient of %s ('%.63s' %s [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]): %s",
             ggml_op_desc(y), y->name, ggml_type_name(y->type), y->ne[0], y->ne[1], y->ne[2], y->ne[3], why);
    graph_give_up(b->graph, text);
}

/* ---- who takes part -------------------------------------------------------------------------------------------------- */

/* A source on the way to a parameter makes its user one; a rule `constant` ends the way. */
static bool leads_to_param(const struct backward *b, const tensor *y) {
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        if (y->src[s] && y->src[s] != y && takes_part(b, y->src[s]) && gradient_of(y, s) != constant) return true;
    }
    return false;
}

/* Results that are a window on what others own and do not change it. */
static bool may_view(enum ggml_op op) { return op_is_view(op) || op == GGML_OP_CPY || op == GGML_OP_SET_ROWS; }

static void consider(struct backward *b, tensor *y, tensor *accumulator) {
    const bool loss = y->flags & GGML_TENSOR_FLAG_LOSS, param = y->flags & GGML_TENSOR_FLAG_PARAM;
    if (y->type == GGML_TYPE_I32 || (!loss && !param && !leads_to_param(b, y))) return;
    if (!float_type(y)) { refuse(b, y, "it is neither F32 nor F16 nor BF16"); return; }
    if (y->view_src && !may_view(y->op)) { refuse(b, y, "it changes its source in place"); return; }
    if (loss && !accumulator) {
        accumulator = ggml_format_name(ggml_dup_tensor(b->ctx, y), "grad acc for %s", y->name);
        ggml_build_forward_expand(b->graph, accumulator);
    }
    if (!graph_ok(b->graph)) return;
    *slot(b->graph->grad_accs, b->graph, y) = accumulator;
    *slot(b->graph->grads, b->graph, y)     = loss ? accumulator : &wanted;
}

/* ---- what flows ------------------------------------------------------------------------------------------------------ */

/* A gradient that is passed on as it is keeps its name. */
static void name_sum(const struct backward *b, const tensor *x, tensor *t, const tensor *g) {
    if (t && t != g && !ggml_graph_get_grad_acc(b->graph, x)) ggml_format_name(t, "grad for %s", x->name);
}
static void contribute(struct backward *b, const tensor *y, tensor *x, tensor *t) {
    if (!t) { refuse(b, y, "no rule for these shapes, or the context is full"); return; }
    if (!ggml_are_same_shape(t, x) || t->type != GGML_TYPE_F32) { refuse(b, y, "its rule does not give the source's shape"); return; }
    const tensor *before = sum_of(b, x);
    if (before != &wanted) t = ggml_add(b->ctx, sum_of(b, x), t);
    name_sum(b, x, t, sum_of(b, y));
    ggml_build_forward_expand(b->graph, t);
    if (graph_ok(b->graph)) *slot(b->graph->grads, b->graph, x) = t;
}

/* The sum is complete: into the accumulator with it, and on to the sources. */
static void flow(struct backward *b, tensor *y) {
    tensor *g = sum_of(b, y), *accumulator = ggml_graph_get_grad_acc(b->graph, y);
    if (!g || g == &wanted) return;
    for (int s = 0; s < GGML_MAX_SRC && graph_ok(b->graph); s++) {
        tensor *x = y->src[s];
        if (!x || x == y || !takes_part(b, x)) continue;
        gradient *rule = gradient_of(y, s);
        if (rule == constant) continue;
        if (!rule) { refuse(b, y, "the op has no rule for it"); return; }
        contribute(b, y, x, rule(&(struct edge) { .ctx = b->ctx, .y = y, .g = g, .a = y->src[0], .b = y->src[1] }));
    }
    if (!accumulator || y->flags & GGML_TENSOR_FLAG_LOSS || !graph_ok(b->graph)) return;
    tensor *total = ggml_format_name(ggml_add_inplace(b->ctx, accumulator, g), "grad for %s", y->name);
    ggml_build_forward_expand(b->graph, total);
    if (graph_ok(b->graph)) *slot(b->graph->grads, b->graph, y) = total;
}

void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph, struct ggml_tensor **grad_accs) {
    if (!graph_ok(cgraph)) return;
    struct backward b = { ctx, cgraph };
    const int n = cgraph->n_nodes;
    unsigned flags = 0;
    for (int i = 0; i < n; i++) flags |= (unsigned) cgraph->nodes[i]->flags;
    if (!cgraph->grads)                       graph_give_up(cgraph, "it was made without gradients");
    else if (!(flags & GGML_TENSOR_FLAG_PARAM)) graph_give_up(cgraph, "no node is a parameter (ggml_set_param)");
    else if (!(flags & GGML_TENSOR_FLAG_LOSS))  graph_give_up(cgraph, "no node is a loss (ggml_set_loss)");
    if (!graph_ok(cgraph)) return;
    memset(cgraph->grads,     0, cgraph->visited_hash_set.size*sizeof *cgraph->grads);
    memset(cgraph->grad_accs, 0, cgraph->visited_hash_set.size*sizeof *cgraph->grad_accs);
    for (int i = 0; i < n && graph_ok(cgraph); i++) consider(&b, cgraph->nodes[i], grad_accs ? grad_accs[i] : NULL);
    for (int i = n; i-- > 0 && graph_ok(cgraph); )  flow(&b, cgraph->nodes[i]);
    for (size_t i = 0; i < cgraph->visited_hash_set.size; i++) if (cgraph->grads[i] == &wanted) cgraph->grads[i] = NULL;
}
