/* plan: every byte that a run will use, before it runs; and the place of every activation as a picture, time across, address up. */

#include <errno.h>
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

/* ---- the picture ---- */

enum { WIDTH = 1600, HEIGHT = 800, LEFT = 90, TOP = 60, BOTTOM = 60, RIGHT = 30 };

static void put_escaped(FILE *f, const char *text) {
    for (; *text; text++) {
        switch (*text) {
            case '&': fputs("&amp;", f); break;
            case '<': fputs("&lt;", f);  break;
            case '>': fputs("&gt;", f);  break;
            default:  if ((unsigned char) *text >= 32) fputc(*text, f);
        }
    }
}

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
    FILE *f = fopen(path, "wb");
    if (!f) return fail("%s: %s", path, strerror(errno));
    const double x_scale = (double) (WIDTH - LEFT - RIGHT)/(p->end + 2), y_scale = (double) (HEIGHT - TOP - BOTTOM)/(double) (p->peak ? p->peak : 1);
    char a[32], b[32];
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n", WIDTH, HEIGHT);
    fprintf(f, "<text x='%d' y='24' font-size='17'>", LEFT);
    put_escaped(f, model);
    fprintf(f, ": where each activation lies, and how long</text>\n<text x='%d' y='44' fill='#555'>%zu tensors; peak %s, lower bound %s</text>\n",
            LEFT, p->n, bytes_text((double) m->activations, a), bytes_text((double) m->activations_lower_bound, b));
    put_axis(f, p, x_scale, y_scale);
    for (size_t i = 0; i < p->n; i++) {
        const struct place *q = p->items + i;
        const double h = (double) q->size*y_scale;
        fprintf(f, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='hsl(%u,60%%,%d%%)' stroke='#fff' stroke-width='%.2f'><title>",
                LEFT + (q->first + 1)*x_scale, HEIGHT - BOTTOM - ((double) q->offset + (double) q->size)*y_scale, (q->last - q->first + 1)*x_scale, h,
                hue(q->op), q->in_place ? 78 : 62, h > 3 ? 0.5 : 0.0);
        put_escaped(f, q->name);
        fprintf(f, " (%s) %s at %zu, nodes %d to %d%s</title></rect>\n", q->op, bytes_text((double) q->size, a), q->offset, q->first, q->last, q->in_place ? ", in place" : "");
    }
    const double bound = HEIGHT - BOTTOM - (double) m->activations_lower_bound*y_scale;
    fprintf(f, "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#c00' stroke-dasharray='6 4'/><text x='%d' y='%.1f' text-anchor='end' fill='#c00'>lower bound</text>\n</svg>\n",
            LEFT, WIDTH - RIGHT, bound, bound, WIDTH - RIGHT - 4, bound + 14);
    return ferror(f) | fclose(f) ? fail("%s: %s", path, strerror(errno)) : 0;
}

/* ---- figures ---- */

/* Kinds of memory: how the report calls them, and where struct arn_memory has them. */
static const struct { const char *key, *what; size_t at; } kinds[] = {
    { "weights_mapped",  "weights, used in the file's mapping", offsetof(struct arn_memory, weights_mapped)  },
    { "weights_private", "weights, copied",                     offsetof(struct arn_memory, weights_private) },
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

static int report_json(const struct session *s, const struct arn_memory *m, const struct places *p, bool tensors) {
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
    return print_json(o);
}

static void report(const struct session *s, const struct arn_memory *m, const struct places *p, bool tensors) {
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
}

int command_plan(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    const char *svg = NULL;
    bool tensors = false;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "--svg",     ARG_TEXT, &svg,     "FILE", "draw the activations, time across and address up", 0, 0 },
        { "--tensors", ARG_FLAG, &tensors, NULL,   "list every activation: nodes, place, size", 0, 0 },
        ARG_COMMON(m), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("plan", "Show every byte that a run will use, before it runs.", args, argc, argv, &status)) return status;
    struct session s;
    struct places p = { 0 };
    if (!session_open(&s, &m, true)) return 1;
    const struct arn_memory memory = arn_context_memory(s.ctx);
    if (!arn_context_plan(s.ctx, keep, &p) || p.failed) status = fail("out of memory");
    else {
        status = svg ? write_svg(svg, m.model, &p, &memory) : 0;
        if (!status && m.json) status = report_json(&s, &memory, &p, tensors);
        else if (!status) report(&s, &memory, &p, tensors);
    }
    free(p.items);
    session_close(&s);
    return status;
}
