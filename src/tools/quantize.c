/* quantize: a model file with weights of other types, and a summary of what was replaced where rows are no whole blocks. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "commands.h"
#include "tool.h"

/* ---- the wanted file type ---- */

/* Names that people use for the usual one of several mixtures. */
static const struct { const char *name; enum llama_ftype ftype; } short_names[] = {
    { "Q3_K", LLAMA_FTYPE_MOSTLY_Q3_K_M }, { "Q4_K", LLAMA_FTYPE_MOSTLY_Q4_K_M }, { "Q5_K", LLAMA_FTYPE_MOSTLY_Q5_K_M },
};
enum { FTYPE_END = 64 };

static int file_type(const char *name) {
    for (size_t i = 0; i < sizeof short_names/sizeof *short_names; i++) if (!strcasecmp(name, short_names[i].name)) return (int) short_names[i].ftype;
    for (int i = 0; i < FTYPE_END; i++) if (strcmp(llama_ftype_name((enum llama_ftype) i), "unknown") && !strcasecmp(name, llama_ftype_name((enum llama_ftype) i))) return i;
    return -1;
}

static int unknown_type(const char *name) {
    char list[512] = "";
    size_t n = 0;
    for (int i = 0; i < FTYPE_END && n < sizeof list; i++) {
        const char *known = llama_ftype_name((enum llama_ftype) i);
        if (strcmp(known, "unknown")) n += (size_t) snprintf(list + n, sizeof list - n, " %s", known);
    }
    return usage("quantize: '%s' is not a file type:%s", name, list);
}

/* ---- per-tensor types: PATTERN=TYPE,PATTERN=TYPE ---- */

struct overrides { struct llama_model_tensor_override *items; char *text; };

static bool overrides_read(struct overrides *o, const char *list) {
    size_t n = 2;
    for (const char *c = list; *c; c++) n += *c == ',';
    const size_t length = strlen(list) + 1;
    o->items = calloc(n, sizeof *o->items);
    o->text  = malloc(length);
    if (!o->items || !o->text) return !fail("out of memory");
    memcpy(o->text, list, length);
    n = 0;
    for (char *part = o->text, *next; part; part = next) {
        if ((next = strchr(part, ',')) != NULL) *next++ = 0;
        char *equals = strrchr(part, '=');
        if (!equals || equals == part) { usage("--tensor: '%s' is not PATTERN=TYPE", part); return false; }
        *equals = 0;
        enum ggml_type type = GGML_TYPE_COUNT;
        if (!type_named(equals + 1, &type)) { usage("--tensor: '%s' is not a type, such as q8_0 or f16", equals + 1); return false; }
        o->items[n++] = (struct llama_model_tensor_override) { part, type };
    }
    return true;
}

/* ---- importance: a GGUF file with sums of squares and counts for each tensor ---- */

struct importance { struct ggml_context *ctx; struct llama_model_imatrix_data *items; };

static void mean_squares(float *x, int64_t n, int64_t matrices, const float *counts, int64_t n_counts) {
    for (int64_t m = 0; m < matrices; m++) {
        const float count = counts[m < n_counts ? m : 0];
        for (int64_t i = 0; i < n; i++) x[m*n + i] = count > 0 ? x[m*n + i]/count : 1;
    }
}

static bool importance_read(struct importance *im, const char *path) {
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params) { .no_alloc = false, .ctx = &im->ctx });
    if (!g) { fail_library(path, "not a readable GGUF file"); return false; }
    im->items = calloc((size_t) gguf_get_n_tensors(g) + 1, sizeof *im->items);
    gguf_free(g);
    if (!im->items) return !fail("out of memory");
    size_t n = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(im->ctx); t; t = ggml_get_next_tensor(im->ctx, t)) {
        const size_t length = strlen(t->name), tail = strlen(".in_sum2");
        if (t->type != GGML_TYPE_F32 || length <= tail || strcmp(t->name + length - tail, ".in_sum2")) continue;
        char name[GGML_MAX_NAME + 16];
        snprintf(name, sizeof name, "%.*s.counts", (int) (length - tail), t->name);
        const struct ggml_tensor *counts = ggml_get_tensor(im->ctx, name);
        if (!counts || counts->type != GGML_TYPE_F32 || ggml_nelements(counts) < 1) { fail("%s: %s has no counts", path, t->name); return false; }
        mean_squares(t->data, t->ne[0], ggml_nrows(t), counts->data, ggml_nelements(counts));
        t->name[length - tail] = 0;
        im->items[n++] = (struct llama_model_imatrix_data) { t->name, t->data, (size_t) ggml_nelements(t) };
    }
    return n > 0 || !fail("%s: no tensor is named *.in_sum2, as importance data are", path);
}

/* ---- the run ---- */

struct summary { bool quiet; cJSON *replaced; int64_t n, n_replaced; int64_t count[GGML_TYPE_COUNT][GGML_TYPE_COUNT]; int64_t columns[GGML_TYPE_COUNT][GGML_TYPE_COUNT]; };

static bool on_tensor(const struct arn_quantized *q, void *user_data) {
    struct summary *s = user_data;
    s->n++;
    if (q->type == q->wanted) return true;
    s->n_replaced++;
    s->count  [q->wanted][q->type]++;
    s->columns[q->wanted][q->type] = q->source->ne[0];
    cJSON *o = s->replaced ? cJSON_CreateObject() : NULL;
    if (!o) return true;
    cJSON_AddStringToObject(o, "tensor", q->source->name);
    cJSON_AddNumberToObject(o, "columns", (double) q->source->ne[0]);
    cJSON_AddStringToObject(o, "wanted", ggml_type_name(q->wanted));
    cJSON_AddStringToObject(o, "type", ggml_type_name(q->type));
    cJSON_AddItemToArray(s->replaced, o);
    return true;
}

static bool on_progress(float done, void *user_data) {
    (void) user_data;
    progress("quantising", (double) done);
    return !interrupted();
}

static void report(const struct summary *s, const char *out, double bytes) {
    char text[32];
    printf("%s: %" PRId64 " tensors quantised", out, s->n);
    if (bytes > 0) printf(", %s", bytes_text(bytes, text));
    putchar('\n');
    for (int w = 0; w < GGML_TYPE_COUNT; w++) {
        for (int t = 0; t < GGML_TYPE_COUNT; t++) {
            if (!s->count[w][t]) continue;
            printf("  %" PRId64 " are %s instead of %s: rows of %" PRId64 " are no whole blocks of %" PRId64 "\n", s->count[w][t],
                   ggml_type_name((enum ggml_type) t), ggml_type_name((enum ggml_type) w), s->columns[w][t], ggml_blck_size((enum ggml_type) w));
        }
    }
}

static int report_json(struct summary *s, const char *type, double bytes) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "type", type);
    cJSON_AddNumberToObject(o, "quantised", (double) s->n);
    cJSON_AddNumberToObject(o, "bytes", bytes);
    cJSON_AddItemToObject(o, "replaced", s->replaced);
    return print_json(o);
}

static double file_bytes(const char *path) {
    FILE *f = fopen(path, "rb");
    const double bytes = f && !fseeko(f, 0, SEEK_END) ? (double) ftello(f) : 0;
    if (f) fclose(f);
    return bytes;
}

struct quantize_args {
    const char *in, *out, *type, *tensors, *importance;
    int64_t threads;
    bool strict, keep_output, json, verbose;
};

static int quantize(const struct quantize_args *a, struct llama_model_quantize_params *p) {
    static struct summary s;
    struct overrides o = { NULL, NULL };
    struct importance im = { NULL, NULL };
    int status = 1;
    s.replaced = a->json ? cJSON_CreateArray() : NULL;
    const bool ready = !a->importance || importance_read(&im, a->importance);
    if (ready && a->tensors && !overrides_read(&o, a->tensors)) status = 2;
    else if (ready) {
        p->nthread = (int32_t) a->threads;
        p->quantize_output_tensor = !a->keep_output;
        p->imatrix      = im.items;
        p->tt_overrides = o.items;
        const struct arn_quantize more = { .strict = a->strict, .visit = on_tensor, .progress = on_progress, .user_data = &s };
        const bool ok = arn_model_quantize(a->in, a->out, p, &more);
        const double bytes = ok && !p->dry_run ? file_bytes(a->out) : 0;
        if (!ok) status = interrupted() ? 1 : fail_library(a->in, "cannot be quantised");
        else if (a->json) { status = report_json(&s, llama_ftype_name(p->ftype), bytes); s.replaced = NULL; }
        else { report(&s, a->out, bytes); status = 0; }
    }
    cJSON_Delete(s.replaced);
    free(o.items);
    free(o.text);
    free(im.items);
    ggml_free(im.ctx);
    return status;
}

int command_quantize(int argc, char **argv) {
    struct quantize_args a = { 0 };
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    const struct arg args[] = {
        { "IN",            ARG_TEXT, &a.in,         "IN",   "a GGUF file, best with weights of F16, BF16 or F32", 0, 0 },
        { "OUT",           ARG_TEXT, &a.out,        "OUT",  "the file to write", 0, 0 },
        { "TYPE",          ARG_TEXT, &a.type,       "TYPE", "a file type: Q4_K_M, Q8_0, ...", 0, 0 },
        { "-t",            ARG_INT,  &a.threads,    "THREADS", "threads (default: the cores that this process may use)", 1, 512 },
        { "--strict",      ARG_FLAG, &a.strict,     NULL,   "refuse to replace a type whose blocks do not divide the rows", 0, 0 },
        { "--requantize",  ARG_FLAG, &p.allow_requantize, NULL, "take weights that are quantised already", 0, 0 },
        { "--pure",        ARG_FLAG, &p.pure,       NULL,   "all matrices in the main type of TYPE, no mixture", 0, 0 },
        { "--keep-output", ARG_FLAG, &a.keep_output, NULL,  "leave output.weight as it is", 0, 0 },
        { "--output",      ARG_TYPE, &p.output_tensor_type,   "TYPE", "type of the output matrix: q8_0, f16, ...", 0, 0 },
        { "--embedding",   ARG_TYPE, &p.token_embedding_type, "TYPE", "type of the token embedding", 0, 0 },
        { "--tensor",      ARG_TEXT, &a.tensors,    "LIST", "types by name: PATTERN=TYPE,... with regular expressions; the first that fits", 0, 0 },
        { "--importance",  ARG_TEXT, &a.importance, "FILE", "importance data (imatrix) in a GGUF file", 0, 0 },
        { "--keep-split",  ARG_FLAG, &p.keep_split, NULL,   "as many files as the source has", 0, 0 },
        { "--dry-run",     ARG_FLAG, &p.dry_run,    NULL,   "check and report, write nothing", 0, 0 },
        { "--verbose",     ARG_FLAG, &a.verbose,    NULL,   "show what the library logs", 0, 0 },
        { "--json",        ARG_FLAG, &a.json,       NULL,   "print JSON", 0, 0 },
        ARG_END };
    int status;
    if (!args_read("quantize", "Write a model with weights of other types.", args, argc, argv, &status)) return status;
    const int ftype = file_type(a.type);
    if (ftype < 0) return unknown_type(a.type);
    p.ftype = (enum llama_ftype) ftype;
    library_log(a.verbose);
    signals_install();
    return quantize(&a, &p);
}
