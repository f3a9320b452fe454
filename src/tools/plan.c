/* plan: every byte that a run will use, before it runs; the place of every activation as a picture, time across, address up; and
 * the steps in which a batch is computed. */

#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

struct place { char name[GGML_MAX_NAME]; char op[24]; size_t offset, size; int first, last; bool in_place; };
struct places { struct place *items; size_t n, room; bool failed; size_t peak; int end; };

static bool keep(const struct arn_plan_entry *e, void *user_data) {
    struct places *p = user_data;
    if (p->n == p->room) {
        const size_t room = 2*p->room + 256;
        struct place *grown = realloc(p->items, room*sizeof *grown);
        if (!grown) { p->failed = true; return false; }
        p->items = grown;
        p->room = room;
    }
    struct place *q = p->items + p->n++;
    *q = (struct place) { .offset = e->offset, .size = e->size, .first = e->first, .last = e->last, .in_place = e->in_place };
    snprintf(q->name, sizeof q->name, "%s", ggml_get_name(e->tensor));
    snprintf(q->op, sizeof q->op, "%s", ggml_op_name(e->tensor->op));
    if (e->offset + e->size > p->peak) p->peak = e->offset + e->size;
    if (e->last > p->end) p->end = e->last;
    return true;
}

/* ---- steps ---- */

struct steps { cJSON *list; int n, n_wide, n_nodes; };

static bool is_result(const struct arn_step *step, const struct ggml_tensor *t) {
    for (int i = 0; i < step->n_nodes; i++) if (step->nodes[i] == t) return true;
    return false;
}

/* Rows that are picked, not read through. */
static double picked_bytes(const struct ggml_tensor *node, int s) {
    const struct ggml_tensor *src = node->src[s];
    if (s == 0 && node->op == GGML_OP_GET_ROWS) return (double) ggml_row_size(src->type, ggml_nelements(node));
    if (s == 0 && node->op == GGML_OP_MUL_MAT_ID) {
        const int64_t used = node->ne[1]*node->ne[2];
        return (double) src->nb[2]*(double) (used < src->ne[2] ? used : src->ne[2]);
    }
    return src == node->view_src ? 0 : (double) ggml_nbytes(src);
}

/* What a step reads from before it, each once, and writes. */
static double step_bytes(const struct arn_step *step) {
    double bytes = 0;
    for (int i = 0; i < step->n_nodes; i++) {
        const struct ggml_tensor *node = step->nodes[i];
        const bool rows = node->op == GGML_OP_SET_ROWS;
        bytes += rows ? (double) ggml_row_size(node->type, ggml_nelements(node->src[0])) : (double) ggml_nbytes(node);
        for (int s = 0; s < GGML_MAX_SRC; s++) {
            bool known = !node->src[s] || is_result(step, node->src[s]) || (rows && s == 2);
            for (int j = 0; j < i && !known; j++) {
                for (int r = 0; r < GGML_MAX_SRC; r++) known = known || step->nodes[j]->src[r] == node->src[s];
            }
            if (!known) bytes += picked_bytes(node, s);
        }
    }
    return bytes;
}

static const char *weight_of(const struct ggml_tensor *node) {
    const bool product = node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
    return product ? ggml_get_name(node->src[0]) : NULL;
}

static bool print_step(const struct arn_step *step, void *user_data) {
    struct steps *s = user_data;
    char bytes[32];
    if (s->n++ == 0) printf("\n  step  threads      bytes  nodes: what makes the input of products | the products | what follows on their parts\n");
    s->n_wide  += step->wide;
    s->n_nodes += step->n_nodes;
    printf("  %4d  %-7s %10s ", s->n - 1, step->wide ? "all" : "one", bytes_text(step_bytes(step), bytes));
    for (int i = 0; i < step->n_nodes; i++) {
        const char *weight = weight_of(step->nodes[i]);
        const bool bar = step->n_products && i && (i == step->n_chain || i == step->n_chain + step->n_products);
        printf("%s %s", bar ? " |" : "", ggml_op_desc(step->nodes[i]));
        if (weight) printf(" %s", weight);
        if (i + 1 < step->n_nodes && weight && i + 1 < step->n_chain + step->n_products) printf(",");
    }
    printf("\n");
    return true;
}

static bool add_step(const struct arn_step *step, void *user_data) {
    struct steps *s = user_data;
    cJSON *o = cJSON_CreateObject(), *nodes = cJSON_AddArrayToObject(o, "nodes");
    cJSON_AddBoolToObject(o, "all_threads", step->wide);
    cJSON_AddNumberToObject(o, "bytes", step_bytes(step));
    cJSON_AddNumberToObject(o, "chain", step->n_chain);
    cJSON_AddNumberToObject(o, "products", step->n_products);
    for (int i = 0; i < step->n_nodes; i++) {
        cJSON *node = cJSON_CreateObject();
        cJSON_AddStringToObject(node, "op", ggml_op_desc(step->nodes[i]));
        cJSON_AddStringToObject(node, "name", ggml_get_name(step->nodes[i]));
        if (weight_of(step->nodes[i])) cJSON_AddStringToObject(node, "weight", weight_of(step->nodes[i]));
        cJSON_AddItemToArray(nodes, node);
    }
    cJSON_AddItemToArray(s->list, o);
    return true;
}

/* ---- the picture ---- */

enum { WIDTH = 1600, HEIGHT = 800, LEFT = 90, TOP = 60, BOTTOM = 60, RIGHT = 30 };

/* A colour for each op, so that the same work looks the same everywhere. */
static unsigned hue(const char *op) {
    unsigned h = 2166136261u;
    for (; *op; op++) h = (h ^ (unsigned char) *op)*16777619u;
    return h % 360;
}

static void put_axis(FILE *f, const struct places *p, double x_scale, double y_scale) {
    char text[32];
    for (int i = 0; i <= 8; i++) {
        const double bytes = (double) p->peak*i/8, y = HEIGHT - BOTTOM - bytes*y_scale;
        fprintf(f, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/><text x='%d' y='%.1f' text-anchor='end'>%s</text>\n", LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, bytes_text(bytes, text));
    }
    for (int i = 0; i <= 10; i++) {
        const int node = (int) ((int64_t) p->end*i/10);
        fprintf(f, "<text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n", LEFT + (node + 1)*x_scale, HEIGHT - BOTTOM + 18, node);
    }
    fprintf(f, "<text x='%d' y='%d' text-anchor='middle'>node of the graph, in the order of computing</text>\n", (WIDTH + LEFT - RIGHT)/2, HEIGHT - 14);
}

static int write_svg(const char *path, const char *model, const struct places *p, const struct arn_memory *m) {
    struct output o;
    if (!output_open(&o, path)) return 1;
    FILE *const f = o.file;
    const double x_scale = (double) (WIDTH - LEFT - RIGHT)/(p->end + 2), y_scale = (double) (HEIGHT - TOP - BOTTOM)/(double) (p->peak ? p->peak : 1);
    char a[32], b[32];
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n", WIDTH, HEIGHT);
    fprintf(f, "<text x='%d' y='24' font-size='17'>", LEFT);
    xml_put(f, model);
    fprintf(f, ": where each activation lies, and how long</text>\n<text x='%d' y='44' fill='#555'>%zu tensors; peak %s, lower bound %s</text>\n",
            LEFT, p->n, bytes_text((double) m->activations, a), bytes_text((double) m->activations_lower_bound, b));
    put_axis(f, p, x_scale, y_scale);
    for (size_t i = 0; i < p->n; i++) {
        const struct place *q = p->items + i;
        const double h = (double) q->size*y_scale;
        fprintf(f, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='hsl(%u,60%%,%d%%)' stroke='#fff' stroke-width='%.2f'><title>",
                LEFT + (q->first + 1)*x_scale, HEIGHT - BOTTOM - ((double) q->offset + (double) q->size)*y_scale, (q->last - q->first + 1)*x_scale, h,
                hue(q->op), q->in_place ? 78 : 62, h > 3 ? 0.5 : 0.0);
        xml_put(f, q->name);
        fprintf(f, " (%s) %s at %zu, nodes %d to %d%s</title></rect>\n", q->op, bytes_text((double) q->size, a), q->offset, q->first, q->last, q->in_place ? ", in place" : "");
    }
    const double bound = HEIGHT - BOTTOM - (double) m->activations_lower_bound*y_scale;
    fprintf(f, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#c00' stroke-dasharray='6 4'/><text x='%d' y='%.1f' text-anchor='end' fill='#c00'>lower bound</text>\n</svg>\n",
            LEFT, WIDTH - RIGHT, bound, bound, WIDTH - RIGHT - 4, bound + 14);
    return output_close(&o, true) ? 0 : 1;
}

/* ---- figures ---- */

/* Kinds of memory: how the report calls them, and where struct arn_memory has them. */
static const struct { const char *key, *what; size_t at; } kinds[] = {
    { "weights_mapped",  "weights, used in the file's mapping", offsetof(struct arn_memory, weights_mapped)  },
    { "weights_private", "weights, copied",                     offsetof(struct arn_memory, weights_private) },
    { "metadata",        "metadata and vocabulary",             offsetof(struct arn_memory, metadata)        },
    { "kv",              "cache of keys and values",            offsetof(struct arn_memory, kv)              },
    { "activations",     "activations",                         offsetof(struct arn_memory, activations)     },
    { "scratch",         "scratch of the kernels",              offsetof(struct arn_memory, scratch)         },
    { "outputs",         "logits",                              offsetof(struct arn_memory, outputs)         },
    { "other",           "graph and bookkeeping",               offsetof(struct arn_memory, other)           },
};
#define N_KINDS (sizeof kinds/sizeof *kinds)

static size_t bytes_of(const struct arn_memory *m, size_t i) {
    size_t bytes;
    memcpy(&bytes, (const char *) m + kinds[i].at, sizeof bytes);
    return bytes;
}

static int report_json(struct session *s, const struct arn_memory *m, const struct places *p, bool tensors, bool ops) {
    cJSON *o = cJSON_CreateObject(), *devices = cJSON_AddObjectToObject(o, "bytes"), *cpu = cJSON_AddObjectToObject(devices, "CPU");
    size_t total = 0;
    for (size_t i = 0; i < N_KINDS; i++) { cJSON_AddNumberToObject(cpu, kinds[i].key, (double) bytes_of(m, i)); total += bytes_of(m, i); }
    cJSON_AddNumberToObject(o, "total", (double) total);
    cJSON_AddNumberToObject(o, "peak", (double) m->activations);
    cJSON_AddNumberToObject(o, "lower_bound", (double) m->activations_lower_bound);
    cJSON_AddNumberToObject(o, "n_ctx", s->n_ctx);
    cJSON_AddNumberToObject(o, "n_batch", s->n_batch);
    cJSON *list = tensors ? cJSON_AddArrayToObject(o, "tensors") : NULL;
    for (size_t i = 0; list && i < p->n; i++) {
        cJSON *t = cJSON_CreateObject();
        cJSON_AddStringToObject(t, "name", p->items[i].name);
        cJSON_AddStringToObject(t, "op", p->items[i].op);
        cJSON_AddNumberToObject(t, "offset", (double) p->items[i].offset);
        cJSON_AddNumberToObject(t, "size", (double) p->items[i].size);
        cJSON_AddNumberToObject(t, "first", p->items[i].first);
        cJSON_AddNumberToObject(t, "last", p->items[i].last);
        cJSON_AddBoolToObject(t, "in_place", p->items[i].in_place);
        cJSON_AddItemToArray(list, t);
    }
    struct steps steps = { .list = ops ? cJSON_AddArrayToObject(o, "steps") : NULL };
    if (ops && !arn_context_steps(s->ctx, s->n_batch, s->threads, add_step, &steps)) {
        cJSON_Delete(o);
        return 1;
    }
    return print_json(o);
}

static int report(struct session *s, const struct arn_memory *m, const struct places *p, bool tensors, bool ops) {
    char text[32];
    size_t total = 0;
    printf("CPU, %d threads, context of %d tokens, prompts in steps of %d\n\n", s->threads, s->n_ctx, s->n_batch);
    for (size_t i = 0; i < N_KINDS; i++) {
        const size_t bytes = bytes_of(m, i);
        total += bytes;
        if (bytes) printf("  %-38s %14zu  %10s\n", kinds[i].what, bytes, bytes_text((double) bytes, text));
    }
    printf("  %-38s %14zu  %10s\n\n", "together", total, bytes_text((double) total, text));
    printf("activations: %zu tensors, peak %zu, lower bound %zu (%.2f %% above it)\n", p->n, m->activations, m->activations_lower_bound,
           m->activations_lower_bound ? 100*((double) m->activations/(double) m->activations_lower_bound - 1) : 0);
    for (size_t i = 0; tensors && i < p->n; i++) {
        const struct place *q = p->items + i;
        printf("  %5d - %-5d  %12zu + %-12zu %-16s %s%s\n", q->first, q->last, q->offset, q->size, q->op, q->name, q->in_place ? " (in place)" : "");
    }
    struct steps steps = { .n = 0 };
    if (!ops) return 0;
    if (!arn_context_steps(s->ctx, s->n_batch, s->threads, print_step, &steps)) return 1;
    printf("%d nodes in %d steps, %d of them shared by all threads\n", steps.n_nodes, steps.n, steps.n_wide);
    return 0;
}

int command_plan(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    const char *svg = NULL;
    bool tensors = false, ops = false;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "--svg",     ARG_TEXT, &svg,     "FILE", "draw the activations, time across and address up", 0, 0 },
        { "--tensors", ARG_FLAG, &tensors, NULL,   "list every activation: nodes, place, size", 0, 0 },
        { "--ops",     ARG_FLAG, &ops,     NULL,   "list the steps of computing BATCH tokens: nodes, threads, bytes", 0, 0 },
        ARG_COMMON(m), ARG_ADAPTERS(m), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("plan", "Show every byte that a run will use, before it runs.", args, argc, argv, &status)) return status;
    struct session s;
    struct places p = { 0 };
    m.sizes_only = !ops;                                        /* steps depend on where things lie */
    if (!session_open(&s, &m, true)) return 1;
    const struct arn_memory memory = arn_context_memory(s.ctx);
    if (!arn_context_plan(s.ctx, keep, &p) || p.failed) status = fail("out of memory");
    else {
        status = svg ? write_svg(svg, m.model, &p, &memory) : 0;
        if (!status && m.json) status = report_json(&s, &memory, &p, tensors, ops);
        else if (!status) status = report(&s, &memory, &p, tensors, ops);
    }
    free(p.items);
    session_close(&s);
    return status;
}
