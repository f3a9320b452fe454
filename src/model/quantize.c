/* Quantising a model file: plans the type of every tensor, then streams one after the other through a buffer of bounded size
 * (read, not mapped: memory stays small, and a file that became shorter is an error) into a new file, which takes the name wanted only when it is complete.
 *
 * Works on any GGUF file whose data are there, of architectures that cannot be loaded too. Types come from mixture.c, unless the
 * program's patterns say otherwise; rows that are no whole blocks get the type that mixture.c has instead, or are refused.
 * Rows are packed by all threads; the bytes do not depend on how many. */

#include "model.h"
#include "arenite.h"
#include "ggml-cpu.h"
#include "log.h"
#include "mixture.h"
#include "pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 8 << 20 };             /* floats unpacked at once, at least a row */

struct item {                               /* one tensor of the new file */
    const struct part  *part;
    int64_t             index;              /* in the part */
    const struct ggml_tensor *source;
    enum ggml_type      type;
    const float        *importance;         /* [ne0, matrices], or NULL */
};

struct work {
    const struct llama_model_quantize_params *params;
    const struct arn_quantize *more;
    struct llama_model  *m;                 /* its files only */
    const struct part   *parts;             /* those that go into this file */
    int                  n_parts;
    struct mixture       mixture;
    struct pattern     **patterns;          /* of params->tt_overrides, in order, and NULL */
    struct item         *items;             /* [n_items] */
    size_t               n_items, n_replaced, n_wanted;
    struct gguf_context *out;
    struct ggml_context *shapes;            /* the tensors of `out` */
    FILE                *file;
    float               *floats;            /* [piece] */
    void                *packed;            /* room for the same weights */
    size_t               floats_bytes, packed_bytes;
    uint64_t             done, total;       /* bytes of the source */
};

static bool out_of_memory(const struct work *w) { log_error("%s: out of memory", model_file_name(w->m)); return false; }

/* ---- the plan: which tensors, under which names, of which types -------------------------------------------------------------- */

static bool is_pruned(const int32_t *layers, int layer) {
    while (layers && *layers >= 0 && *layers != layer) layers++;
    return layers && layer >= 0 && *layers == layer;
}

static int n_pruned_below(const int32_t *layers, int layer) {
    int n = 0;
    for (int i = 0; i < layer; i++) n += is_pruned(layers, i);
    return n;
}

/* A whole number of the metadata, of a list its first; 0: none. */
static int number(const struct gguf_context *g, const char *name) {
    char key[256];
    const int64_t arch = gguf_find_key(g, "general.architecture");
    if (arch < 0 || gguf_get_kv_type(g, arch) != GGUF_TYPE_STRING) return 0;
    snprintf(key, sizeof key, "%.100s.%s", gguf_get_val_str(g, arch), name);
    const int64_t id = gguf_find_key(g, key);
    if (id < 0) return 0;
    const enum gguf_type type = gguf_get_kv_type(g, id);
    uint32_t v = 0;
    if (type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32) memcpy(&v, gguf_get_val_data(g, id), sizeof v);
    else if (type == GGUF_TYPE_ARRAY && gguf_get_arr_n(g, id) &&
            (gguf_get_arr_type(g, id) == GGUF_TYPE_UINT32 || gguf_get_arr_type(g, id) == GGUF_TYPE_INT32)) memcpy(&v, gguf_get_arr_data(g, id), sizeof v);
    return v <= INT32_MAX ? (int) v : 0;
}

static void mixture_describe(struct work *w) {
    const struct gguf_context *g = w->m->parts[0].gguf;
    struct mixture *x = &w->mixture;
    *x = (struct mixture) { .ftype = w->params->ftype, .n_head = number(g, "attention.head_count"), .n_head_kv = number(g, "attention.head_count_kv"),
                            .n_expert = number(g, "expert_count"), .has_importance = w->params->imatrix != NULL };
    for (int i = 0; i < w->m->n_parts; i++) {
        const struct gguf_context *part = w->m->parts[i].gguf;
        for (int64_t k = 0; k < gguf_get_n_tensors(part); k++) {
            const char *name = gguf_get_tensor_name(part, k);
            x->has_output = x->has_output || !strcmp(name, "output.weight");
            if (mixture_layer(name) >= x->n_layer) x->n_layer = mixture_layer(name) + 1;
        }
    }
}

static bool patterns_parse(struct work *w) {
    const struct llama_model_tensor_override *o = w->params->tt_overrides;
    size_t n = 0;
    while (o && o[n].pattern) n++;
    if (!(w->patterns = calloc(n + 1, sizeof *w->patterns))) return out_of_memory(w);
    for (size_t i = 0; i < n; i++) {
        if (!(w->patterns[i] = pattern_parse(o[i].pattern, "tensor pattern"))) return false;
    }
    return true;
}

static void patterns_free(struct pattern **patterns) {
    for (size_t i = 0; patterns && patterns[i]; i++) pattern_free(patterns[i]);
    free(patterns);
}

/* The program's word on a tensor: the first pattern that occurs in its name. False: no memory. */
static bool pattern_type(const struct work *w, const char *name, enum ggml_type *type) {
    int found = 0;
    for (size_t i = 0; !found && w->patterns[i]; i++) {
        if ((found = pattern_occurs(w->patterns[i], name)) > 0) *type = w->params->tt_overrides[i].type;
    }
    return found >= 0 || out_of_memory(w);
}

/* Can weights be stored in this type? */
static bool packs(enum ggml_type type) {
    return type == GGML_TYPE_F32 || ((unsigned) type < GGML_TYPE_COUNT && type != GGML_TYPE_Q8_1 && type != GGML_TYPE_Q8_K &&
           ggml_get_type_traits(type)->to_float && ggml_get_type_traits(type)->from_float_ref) ||
           type == GGML_TYPE_IQ2_XXS || type == GGML_TYPE_IQ2_XS || type == GGML_TYPE_IQ1_S || type == GGML_TYPE_IQ1_M;
}

/* The type wanted for a tensor that is quantised at all. */
static bool wanted_type(const struct work *w, const struct ggml_tensor *t, enum ggml_type *type) {
    const struct llama_model_quantize_params *p = w->params;
    *type = p->pure ? mixture_main_type(p->ftype) : mixture_type(&w->mixture, t);
    if (!strcmp(t->name, "token_embd.weight") && p->token_embedding_type < GGML_TYPE_COUNT) *type = p->token_embedding_type;
    else if (mixture_is_output(&w->mixture, t->name) && p->output_tensor_type < GGML_TYPE_COUNT) *type = p->output_tensor_type;
    if (!pattern_type(w, t->name, type)) return false;
    if (packs(*type)) return true;
    log_error("tensor %s: nothing can be packed into %s", t->name, (unsigned) *type < GGML_TYPE_COUNT ? ggml_type_name(*type) : "an unknown type");
    return false;
}

static bool find_importance(const struct work *w, struct item *it) {
    const struct llama_model_imatrix_data *i = w->params->imatrix;
    const struct ggml_tensor *t = it->source;
    while (i && i->name && strcmp(i->name, t->name)) i++;
    if (!i || !i->name) return true;
    it->importance = i->data;
    if (i->data && i->size == (size_t) t->ne[0]*(size_t) t->ne[2]) return true;
    log_error("tensor %s: its importance data are %zu numbers, expected %lld", t->name, i->size, (long long) (t->ne[0]*t->ne[2]));
    return false;
}

static bool item_type(struct work *w, struct item *it) {
    const struct llama_model_quantize_params *p = w->params;
    const struct ggml_tensor *t = it->source;
    it->type = t->type;
    const bool kept = p->only_copy || !mixture_takes(t) || !packs(t->type) || (!p->quantize_output_tensor && !strcmp(t->name, "output.weight"));
    enum ggml_type wanted = t->type;
    if (!kept && !wanted_type(w, t, &wanted)) return false;
    if (wanted == t->type) return true;
    if (ggml_is_quantized(t->type) && !p->allow_requantize) {
        log_error("tensor %s is %s: quantising what is quantised already loses more, and must be allowed (allow_requantize, --requantize)", t->name, ggml_type_name(t->type));
        return false;
    }
    it->type = mixture_fallback(wanted, t->ne[0]);
    w->n_wanted++;
    w->n_replaced += it->type != wanted;
    if (it->type != wanted && w->more->strict) {
        log_error("tensor %s: rows of %lld are no whole blocks of %s, which has %lld", t->name, (long long) t->ne[0], ggml_type_name(wanted),
                  (long long) ggml_blck_size(wanted));
        return false;
    }
    if (!find_importance(w, it)) return false;
    if (!it->importance && ggml_quantize_requires_imatrix(it->type)) {
        log_error("tensor %s: %s needs importance data, and there are none for it", t->name, ggml_type_name(it->type));
        return false;
    }
    return !w->more->visit || w->more->visit(&(struct arn_quantized) { t, wanted, it->type }, w->more->user_data);
}

/* Describes the tensor in the new file, under its new number where layers before it are left out. */
static bool item_describe(struct work *w, const struct item *it) {
    struct ggml_tensor *t = ggml_new_tensor(w->shapes, it->type, GGML_MAX_DIMS, it->source->ne);
    if (!t) return out_of_memory(w);
    const int layer = mixture_layer(it->source->name);
    if (layer < 0) ggml_set_name(t, it->source->name);
    else ggml_format_name(t, "blk.%d%s", layer - n_pruned_below(w->params->prune_layers, layer), strchr(it->source->name + 4, '.'));
    if (gguf_find_tensor(w->out, t->name) >= 0) {       /* in two files of the source, or after renaming */
        log_error("%s: two tensors would have the name %s", model_file_name(w->m), t->name);
        return false;
    }
    const int64_t before = gguf_get_n_tensors(w->out);
    gguf_add_tensor(w->out, t);
    return gguf_get_n_tensors(w->out) > before || out_of_memory(w);
}

static bool plan_tensors(struct work *w) {
    size_t n = 0;
    for (int i = 0; i < w->n_parts; i++) n += (size_t) gguf_get_n_tensors(w->parts[i].gguf);
    w->items  = calloc(n + 1, sizeof *w->items);
    w->shapes = ggml_init((struct ggml_init_params) { (n + 1)*ggml_tensor_overhead(), NULL, true });
    if (!w->items || !w->shapes) return out_of_memory(w);
    for (int i = 0; i < w->n_parts; i++) {
        struct ggml_tensor *t = ggml_get_first_tensor(w->parts[i].tensors);
        for (int64_t k = 0; t; t = ggml_get_next_tensor(w->parts[i].tensors, t), k++) {
            if (is_pruned(w->params->prune_layers, mixture_layer(t->name))) continue;
            struct item *it = &w->items[w->n_items++];
            *it = (struct item) { .part = &w->parts[i], .index = k, .source = t };
            if (!item_type(w, it) || !item_describe(w, it)) return false;
            w->total += ggml_nbytes(t);
        }
    }
    return true;
}

static void count_layers(struct work *w) {
    const struct gguf_context *g = w->m->parts[0].gguf;
    const int n = number(g, "block_count"), pruned = n_pruned_below(w->params->prune_layers, w->mixture.n_layer);
    char key[256];
    if (!pruned || n < pruned) return;
    snprintf(key, sizeof key, "%.100s.block_count", gguf_get_val_str(g, gguf_find_key(g, "general.architecture")));
    gguf_set_val_u32(w->out, key, (uint32_t) (n - pruned));
}

static bool plan(struct work *w) {
    static const char *const of_parts[] = { "split.no", "split.count", "split.tensors.count" };
    if (!(w->out = gguf_init_empty())) return out_of_memory(w);
    gguf_set_kv(w->out, w->parts[0].gguf);
    for (size_t i = 0; i < 3 && !w->params->keep_split; i++) gguf_remove_key(w->out, of_parts[i]);
    if (w->parts == w->m->parts) {                      /* the metadata are the first file's */
        if (!w->params->only_copy) {
            gguf_set_val_u32(w->out, "general.quantization_version", GGML_QNT_VERSION);
            gguf_set_val_u32(w->out, "general.file_type", (uint32_t) w->params->ftype);
        }
        count_layers(w);
        for (const struct llama_model_kv_override *o = w->params->kv_overrides; o && o->key[0]; o++) {
            if (!override_one(w->out, model_file_name(w->m), o)) return false;
        }
    }
    return plan_tensors(w);
}

/* ---- data --------------------------------------------------------------------------------------------------------------------- */

struct piece {                                          /* consecutive rows of one matrix */
    const struct item *it;
    const unsigned char *from;
    float   *floats;
    unsigned char *to;
    int64_t  n_rows;
    const float *importance;                            /* [ne0] of this matrix */
};

static void unpack(enum ggml_type type, const void *from, float *to, int64_t n) {
    if (type == GGML_TYPE_F32) memcpy(to, from, (size_t) n*sizeof *to);
    else                       ggml_get_type_traits(type)->to_float(from, to, n);
}

/* One thread's share of a piece; how the op runs it is ggml.h's custom ops. */
static void pack_share(struct ggml_tensor *dst, int ith, int nth, void *user_data) {
    const struct piece *p = user_data;
    const int64_t n = p->it->source->ne[0], first = p->n_rows*ith/nth, rows = p->n_rows*(ith + 1)/nth - first;
    const enum ggml_type source = p->it->source->type;
    (void) dst;
    if (rows <= 0) return;
    unpack(source, p->from + (size_t) first*ggml_row_size(source, n), p->floats + first*n, rows*n);
    ggml_quantize_chunk(p->it->type, p->floats, p->to, first*n, rows, n, p->importance);
}

static bool pack_piece(const struct work *w, struct piece *p) {
    char memory[8192];
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { sizeof memory, memory, false });
    struct ggml_tensor *op = ctx ? ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 0, pack_share, GGML_N_TASKS_MAX, p) : NULL;
    struct ggml_cgraph *graph = op ? ggml_new_graph_custom(ctx, 4, false) : NULL;
    if (graph) ggml_build_forward_expand(graph, op);
    const int n_threads = w->params->nthread > 0 ? w->params->nthread : arn_cpu_default_threads();
    const bool ok = graph && ggml_graph_compute_with_ctx(ctx, graph, n_threads) == GGML_STATUS_SUCCESS;
    ggml_free(ctx);
    return ok || out_of_memory(w);
}

static bool room(const struct work *w, void *pointer, size_t *have, size_t want) {
    void **p = pointer;
    if (want <= *have) return true;
    free(*p);
    *have = 0;
    if (!(*p = malloc(want))) return out_of_memory(w);
    *have = want;
    return true;
}

static bool put(struct work *w, const void *bytes, size_t n) { return !n || fwrite(bytes, 1, n, w->file) == n; }

static bool advance(struct work *w, size_t bytes) {
    w->done += bytes;
    if (!w->more->progress || w->more->progress(w->total ? (float) ((double) w->done/(double) w->total) : 1.0f, w->more->user_data)) return true;
    log_error("%s: quantising was stopped", model_file_name(w->m));
    return false;
}

static bool copy_item(struct work *w, const struct item *it) {
    const size_t all = ggml_nbytes(it->source);
    if (!room(w, &w->packed, &w->packed_bytes, all < PIECE_BYTES ? all : PIECE_BYTES)) return false;
    for (size_t at = 0; at < all; at += PIECE_BYTES) {
        const size_t n = all - at < PIECE_BYTES ? all - at : PIECE_BYTES;
        if (!part_read(it->part, it->index, at, w->packed, n)) return false;
        if (!put(w, w->packed, n)) return false;
        if (!advance(w, n)) return false;
    }
    return true;
}

static bool pack_item(struct work *w, const struct item *it) {
    const int64_t n = it->source->ne[0], per_matrix = it->source->ne[1], matrices = it->source->ne[2]*it->source->ne[3];
    const size_t limit = w->params->max_buf_size && w->params->max_buf_size < PIECE_BYTES ? w->params->max_buf_size : PIECE_BYTES;
    const size_t floats = (size_t) n*sizeof(float), from = ggml_row_size(it->source->type, n), to = ggml_row_size(it->type, n);
    int64_t rows = (int64_t) (limit/floats);
    if (rows < 1) rows = 1;
    if (rows > per_matrix) rows = per_matrix;
    if (!room(w, &w->floats, &w->floats_bytes, (size_t) rows*floats)) return false;
    if (!room(w, &w->packed, &w->packed_bytes, (size_t) rows*(from + to))) return false;
    unsigned char *source = w->packed, *packed = source + (size_t) rows*from;
    for (int64_t r = 0; r < per_matrix*matrices; ) {
        const int64_t matrix = r/per_matrix, left = per_matrix - r%per_matrix;
        struct piece p = { it, source, w->floats, packed, left < rows ? left : rows, NULL };
        if (it->importance) p.importance = it->importance + matrix % it->source->ne[2]*n;
        if (!part_read(it->part, it->index, (size_t) r*from, source, (size_t) p.n_rows*from) || !pack_piece(w, &p)) return false;
        if (!ggml_validate_row_data(it->type, packed, (size_t) p.n_rows*to)) {
            log_error("%s: tensor %s: rows %lld to %lld have values that are not finite", model_file_name(w->m), it->source->name, (long long) r,
                      (long long) (r + p.n_rows - 1));
            return false;
        }
        if (!put(w, packed, (size_t) p.n_rows*to) || !advance(w, (size_t) p.n_rows*from)) return false;
        r += p.n_rows;
    }
    return true;
}

static bool write_data(struct work *w) {
    static const char zeros[1024];
    const size_t alignment = gguf_get_alignment(w->out);
    for (size_t i = 0; i < w->n_items; i++) {
        const struct item *it = &w->items[i];
        if (ggml_nelements(it->source) && !(it->type == it->source->type ? copy_item(w, it) : pack_item(w, it))) return false;
        size_t padding = (alignment - gguf_get_tensor_size(w->out, (int64_t) i) % alignment) % alignment;
        for (size_t n; padding; padding -= n) {
            n = padding < sizeof zeros ? padding : sizeof zeros;
            if (!put(w, zeros, n)) return false;
        }
    }
    return true;
}

/* ---- files ------------------------------------------------------------------------------------------------------------------- */

static bool write_file(struct work *w, const char *path) {
    const size_t length = strlen(path) + sizeof ".part";
    const bool whole = !file_is_special(path);          /* a device or a link stays what it is */
    char *part = malloc(length);
    if (!part) return out_of_memory(w);
    snprintf(part, length, whole ? "%s.part" : "%s", path);
    errno = 0;
    if (!(w->file = fopen(part, "wb"))) {
        log_error("%s: %s", path, strerror(errno));
        free(part);
        return false;
    }
    const bool begun = gguf_write_to_file_ptr(w->out, w->file, true);       /* or there is a line of error */
    bool ok = begun && write_data(w);
    const bool failed = begun && ferror(w->file), closed = fclose(w->file) == 0;
    if (failed || (ok && (!closed || (whole && rename(part, path))))) {
        log_error("%s: %s", path, errno ? strerror(errno) : "it could not be written");
        ok = false;
    }
    if (!ok && whole) remove(part);
    free(part);
    return ok;
}

static void work_release(struct work *w) {
    free(w->items);
    free(w->floats);
    free(w->packed);
    gguf_free(w->out);
    ggml_free(w->shapes);
}

/* These parts into one file, or only the plan for it. */
static bool quantize_parts(struct work w, const struct part *parts, int n_parts, const char *path) {
    w.parts   = parts;
    w.n_parts = n_parts;
    bool ok = plan(&w);
    size_t bytes = 0;
    for (size_t i = 0; ok && i < w.n_items; i++) bytes += gguf_get_tensor_size(w.out, (int64_t) i);
    if (ok && !w.params->dry_run) ok = write_file(&w, path);
    if (ok) log_info("%s: %zu tensors, %zu quantised; %.1f MB become %.1f MB", path, w.n_items, w.n_wanted, (double) w.total/1e6, (double) bytes/1e6);
    if (ok && w.n_replaced) {
        log_warn("%s: %zu of %zu tensors have rows that are no whole blocks of the type wanted and got another one", path, w.n_replaced, w.n_wanted);
    }
    work_release(&w);
    return ok;
}

static bool quantize_all(const struct work *w, const char *path) {
    char prefix[4096], name[4096 + 32];
    const int n = w->m->n_parts;
    if (!w->params->keep_split || n == 1) return quantize_parts(*w, w->m->parts, n, path);
    const size_t length = strlen(path), tail = strlen(".gguf");
    if (length <= tail || length >= sizeof prefix || strcmp(path + length - tail, ".gguf")) {
        log_error("%s: the name of a file that is kept split ends in .gguf", path);
        return false;
    }
    memcpy(prefix, path, length - tail);
    prefix[length - tail] = 0;
    int done = 0;
    for (; done < n; done++) {
        llama_split_path(name, sizeof name, prefix, done, n);
        if (!quantize_parts(*w, &w->m->parts[done], 1, name)) break;
    }
    for (int i = done; done < n && !w->params->dry_run && i-- > 0; ) {       /* some of the files are none of a model */
        llama_split_path(name, sizeof name, prefix, i, n);
        if (!file_is_special(name)) remove(name);
    }
    return done == n;
}

bool arn_model_quantize(const char *in, const char *out, const struct llama_model_quantize_params *params, const struct arn_quantize *more) {
    static const struct arn_quantize plain = { 0 };
    const struct llama_model_quantize_params usual = llama_model_quantize_default_params();
    struct work w = { .params = params ? params : &usual, .more = more ? more : &plain };
    if (!in || !out) {
        log_error("quantize: no file given");
        return false;
    }
    if (!w.params->only_copy && mixture_main_type(w.params->ftype) == GGML_TYPE_COUNT) {
        log_error("quantize: %d is not a file type", (int) w.params->ftype);
        return false;
    }
    if (!(w.m = model_open(in))) return false;
    mixture_describe(&w);
    const bool ok = patterns_parse(&w) && quantize_all(&w, out);
    patterns_free(w.patterns);
    llama_model_free(w.m);
    return ok;
}

uint32_t llama_model_quantize(const char *fname_inp, const char *fname_out, const llama_model_quantize_params *params) {
    return arn_model_quantize(fname_inp, fname_out, params, NULL) ? 0 : 1;
}

struct llama_model_quantize_params llama_model_quantize_default_params(void) {
    return (struct llama_model_quantize_params) {
        .ftype = LLAMA_FTYPE_MOSTLY_Q8_0, .output_tensor_type = GGML_TYPE_COUNT, .token_embedding_type = GGML_TYPE_COUNT,
        .quantize_output_tensor = true,
    };
}
