/* Graphs: the order of nodes, who is marked for computing, use counts, room, and graphs deeper than any stack. */

#include "check.h"
#include "core.h"
#include "transformer.h"

static int log_lines;
static void count_lines(enum ggml_log_level level, const char *text, void *user_data) {
    (void) level; (void) user_data;
    for (; *text; text++) log_lines += *text == '\n';
}

static struct ggml_context *context(size_t size) { return ggml_init((struct ggml_init_params) { size, NULL, true }); }

/* the names of the nodes, those to be computed with a star */
static const char *order(struct ggml_cgraph *g) {
    static char text[256];
    text[0] = 0;
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        const struct ggml_tensor *t = ggml_graph_node(g, i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s ", t->name, t->flags & GGML_TENSOR_FLAG_COMPUTE ? "*" : "");
    }
    return text;
}

#define IS(g, want) CHECK(!strcmp(order(g), want), "%s", order(g))
#define NAMED(t, text) ggml_set_name(t, text)

static void sizes(void) {
    CHECK(ggml_graph_overhead() == 82608, "%zu", ggml_graph_overhead());
    CHECK(ggml_graph_overhead_custom(2048, true) == 148192, "%zu", ggml_graph_overhead_custom(2048, true));
    CHECK(ggml_graph_overhead_custom(100, false) == 4864, "%zu", ggml_graph_overhead_custom(100, false));
    CHECK(ggml_graph_overhead_custom(1, false) == 176, "%zu", ggml_graph_overhead_custom(1, false));
    CHECK(ggml_graph_overhead_custom(SIZE_MAX/4, true) == SIZE_MAX, "no arena holds it");
    for (size_t size = 0; size < 5000; size = size*3/2 + 1)
        for (int grads = 0; grads < 2; grads++) {
            struct ggml_context *ctx = context(ggml_graph_overhead_custom(size, grads));
            CHECK(ggml_new_graph_custom(ctx, size, grads) && ggml_used_mem(ctx) <= ggml_get_mem_size(ctx), "size %zu", size);
            ggml_free(ctx);
        }
    static const size_t hashes[][2] = { { 0, 2 }, { 2, 2 }, { 4, 5 }, { 200, 257 }, { 4096, 4099 }, { 40000, 65537 } };
    for (size_t i = 0; i < sizeof hashes/sizeof *hashes; i++) CHECK(ggml_hash_size(hashes[i][0]) == hashes[i][1], "%zu", i);
}

static void order_and_marks(void) {
    struct ggml_context *ctx = context(1 << 20);
    struct ggml_tensor *a = NAMED(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "a"), *b = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *x = NAMED(ggml_sqr(ctx, a), "x"), *y = NAMED(ggml_sqr(ctx, b), "y");
    struct ggml_tensor *z = NAMED(ggml_add(ctx, x, y), "z"), *w = NAMED(ggml_mul(ctx, z, x), "w"), *last = ggml_sqr(ctx, w);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8, false);
    ggml_build_forward_order(g, w);
    IS(g, "x y z w ");                                  /* in the graph, not to be computed */
    ggml_build_forward_expand(g, z);
    IS(g, "x* y* z* w ");                               /* a visit later marks what it needs */
    ggml_build_forward_expand(g, last);
    IS(g, "x* y* z* w* node_4* ");
    ggml_build_forward_expand(g, last);
    IS(g, "x* y* z* w* node_4* ");                      /* a second time: nothing */
    CHECK(!strcmp(b->name, "leaf_1") && g->n_leafs == 2 && g->leafs[0] == a, "leafs: %s", b->name);
    CHECK(graph_uses(g, x) == 2 && graph_uses(g, a) == 1 && graph_uses(g, last) == 0, "uses");
    CHECK(ggml_graph_node(g, -1) == last && ggml_graph_size(g) == 8 && ggml_graph_nodes(g)[0] == x, "accessors");
    CHECK(ggml_graph_get_tensor(g, "z") == z && ggml_graph_get_tensor(g, "a") == a && !ggml_graph_get_tensor(g, "q"), "by name");
    CHECK(!ggml_graph_get_grad(g, x) && !ggml_graph_get_grad_acc(g, x), "no gradients");

    struct ggml_cgraph part = ggml_graph_view(g, 1, 3);
    CHECK(part.n_nodes == 2 && part.nodes[0] == y && graph_uses(&part, x) == 2, "a part of a graph");
    struct ggml_cgraph *copy = ggml_graph_dup(ctx, g, true);
    IS(copy, "x* y* z* w* node_4* ");
    CHECK(copy->grads && copy->n_leafs == 2 && graph_uses(copy, x) == 2, "a copy, with room for gradients");
    ggml_graph_clear(copy);
    CHECK(ggml_graph_n_nodes(copy) == 0 && copy->n_leafs == 0 && graph_uses(copy, x) == 0, "cleared");
    ggml_graph_add_node(copy, x);
    CHECK(ggml_graph_n_nodes(copy) == 1, "a node added as it is");
    ggml_free(ctx);
}

static void selection(void) {
    struct ggml_context *ctx = context(1 << 20);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), *x = NAMED(ggml_sqr(ctx, a), "x");
    struct ggml_tensor *p = NAMED(ggml_sqrt(ctx, x), "p"), *q = NAMED(ggml_sqr(ctx, NAMED(ggml_log(ctx, x), "l")), "q");
    struct ggml_tensor *both[] = { p, q };
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 4, false);
    CHECK(ggml_build_forward_select(g, both, 2, 1) == q, "the one that is chosen");
    IS(g, "x* p l* q* ");                               /* the shape is the same whoever is chosen */
    CHECK(graph_ok(g), "filled to the last node");
    ggml_free(ctx);
}

static void special_nodes(void) {
    struct ggml_context *ctx = context(1 << 20);
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), *c = ggml_cast(ctx, a, GGML_TYPE_F16);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8, false);
    NAMED(c, "c");
    c->src[1] = c;                                      /* a result among its own sources */
    ggml_build_forward_expand(g, c);
    IS(g, "c* ");
    struct ggml_tensor *p = NAMED(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "p");
    ggml_set_param(p);
    ggml_build_forward_expand(g, NAMED(ggml_sqr(ctx, p), "s"));
    IS(g, "c* p s* ");                                  /* a parameter is a node without anything to compute */
    struct ggml_tensor *one = NAMED(ggml_sqr(ctx, a), "1"), *two = NAMED(ggml_sqr(ctx, one), "2");
    one->src[1] = two;
    log_lines = 0;
    ggml_build_forward_expand(g, two);                  /* a circle has no order: it ends, and is no graph */
    CHECK(!graph_ok(g) && log_lines == 1, "a circle");
    ggml_free(ctx);
}

static void room(void) {
    struct ggml_context *ctx = context((size_t) 3100*ggml_tensor_overhead() + 2*ggml_graph_overhead());
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    for (int i = 0; i < 3000; i++) x = ggml_sqr(ctx, x);
    log_lines = 0;
    ggml_build_forward_expand(g, x);
    CHECK(!graph_ok(g) && log_lines == 1, "3000 nodes in a graph of 2048: %d lines", log_lines);
    ggml_build_forward_expand(g, x);
    struct ggml_cgraph part = ggml_graph_view(g, 0, g->n_nodes), *copy = ggml_graph_dup(ctx, g, false);
    CHECK(log_lines == 1 && !graph_ok(&part) && !graph_ok(copy), "said once, passed on");
    ggml_graph_clear(g);
    CHECK(graph_ok(g), "usable again");
    ggml_build_forward_expand(g, NULL);
    CHECK(!graph_ok(g) && log_lines == 2, "a NULL tensor");
    ggml_graph_clear(g);
    ggml_graph_add_node(g, NULL);
    CHECK(!graph_ok(g), "a NULL node");
    ggml_build_forward_expand(NULL, x);
    ggml_build_forward_expand(NULL, NULL);
    CHECK(!graph_ok(NULL) && ggml_graph_n_nodes(NULL) == 0, "no graph");
    ggml_free(ctx);

    ctx = context(1 << 20);                             /* leafs have their own room, exactly as much */
    for (int extra = 0; extra < 2; extra++) {
        g = ggml_new_graph_custom(ctx, 3, false);
        struct ggml_tensor *sum = ggml_add(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4));
        ggml_build_forward_expand(g, ggml_add(ctx, sum, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4)));
        CHECK(graph_ok(g) && g->n_leafs == 3, "three leafs");
        if (extra) ggml_build_forward_expand(g, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4));
        CHECK(graph_ok(g) == !extra, "a leaf too many");
        ggml_build_forward_expand(g, g->leafs[0]);
    }
    ggml_free(ctx);
}

static void depth(void) {
    const int n = 100000;
    struct ggml_context *ctx = context((size_t) (n + 1)*ggml_tensor_overhead() + ggml_graph_overhead_custom((size_t) n, false));
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, (size_t) n, false);
    for (int i = 0; i < n; i++) x = ggml_add(ctx, x, x);
    ggml_build_forward_order(g, x);
    CHECK(graph_ok(g) && g->n_nodes == n && g->nodes[n - 1] == x && g->n_leafs == 1, "a chain of %d nodes", n);
    ggml_build_forward_expand(g, x);
    CHECK(g->nodes[0]->flags & GGML_TENSOR_FLAG_COMPUTE && graph_uses(g, g->nodes[7]) == 2, "marked to the end");
    ggml_free(ctx);
}

/* FNV-1a of all that a program can see of a graph: order, names, ops, types, flags, shapes, strides, parameters, sources */
static uint64_t fingerprint(struct ggml_cgraph *g) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        const struct ggml_tensor *t = ggml_graph_node(g, i);
        char text[2048];
        size_t n = (size_t) snprintf(text, sizeof text, "%s %s %s %d %zu", t->name, ggml_op_desc(t), ggml_type_name(t->type),
            (int) t->flags, t->view_offs);
        for (int d = 0; d < 4; d++)  n += (size_t) snprintf(text + n, sizeof text - n, " %d %zu", (int) t->ne[d], t->nb[d]);
        for (int p = 0; p < 16; p++) n += (size_t) snprintf(text + n, sizeof text - n, " %x", (unsigned) t->op_params[p]);
        for (int s = 0; s < 10; s++)
            if (t->src[s]) n += (size_t) snprintf(text + n, sizeof text - n, " %d %s", s, t->src[s]->name);
        for (size_t c = 0; c <= n; c++) h = (h ^ (unsigned char) text[c])*0x100000001b3u;
    }
    return h;
}

/* of the same calls with ggml 0.25.3, and the bytes they take of the context */
static void decoders_are_the_same(void) {
    static const struct { const struct shape *shape; bool flash; uint64_t fingerprint; size_t used; } cases[] = {
        { &llama_135m, false, 0xf0b18c3df4b7d531, 832144 },
        { &llama_135m, true,  0x6480d32749f3ab0f, 765904 },
        { &gemma_270m, false, 0x7d321eabd8a9d0e, 713280 },
        { &gemma_270m, true,  0xa13b3b8db6cc121e, 673536 },
    };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        struct ggml_context *ctx = context(8 << 20);
        struct shape shape = *cases[i].shape;
        shape.flash = cases[i].flash;
        const uint64_t h = fingerprint(decoder(ctx, &shape, 17, false));
        CHECK(h == cases[i].fingerprint, "decoder %zu: 0x%" PRIx64, i, h);
        CHECK(ggml_used_mem(ctx) == cases[i].used, "decoder %zu: %zu bytes", i, ggml_used_mem(ctx));
        ggml_free(ctx);
    }
}

static void drawing(void) {
    struct ggml_context *ctx = context(1 << 20);
    struct ggml_cgraph *g = ggml_new_graph_custom(ctx, 8, false);
    struct ggml_tensor *a = NAMED(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "say \"a\"");
    ggml_build_forward_expand(g, ggml_sqr(ctx, a));
    log_lines = 0;
    ggml_graph_print(g);
    CHECK(log_lines == 3, "a line per tensor");
    ggml_graph_dump_dot(g, NULL, "graph-test.dot");
    FILE *f = ggml_fopen("graph-test.dot", "r");
    char text[2000] = "";
    if (f) { text[fread(text, 1, sizeof text - 1, f)] = 0; fclose(f); }
    CHECK(!strncmp(text, "digraph {", 9) && strstr(text, "say \\\"a\\\"") && strstr(text, " -> "), "%s", text);
    remove("graph-test.dot");
    log_lines = 0;
    ggml_graph_dump_dot(g, NULL, "no/such/folder/x.dot");
    CHECK(log_lines == 1, "a file that cannot be written is said");
    ggml_free(ctx);
}

int main(void) {
    ggml_log_set(count_lines, NULL);
    sizes();
    order_and_marks();
    selection();
    special_nodes();
    room();
    depth();
    decoders_are_the_same();
    drawing();
    return DONE();
}
