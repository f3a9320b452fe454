/* info: what a GGUF file holds; with --check every block is looked at for scales that are not finite. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

struct info_args { const char *file; bool json, check, tensors; };

/* ---- values as text ---- */

static double number_at(enum gguf_type type, const void *data, size_t i) {
    switch (type) {
        case GGUF_TYPE_UINT8:   return ((const uint8_t  *) data)[i];
        case GGUF_TYPE_INT8:    return ((const int8_t   *) data)[i];
        case GGUF_TYPE_UINT16:  return ((const uint16_t *) data)[i];
        case GGUF_TYPE_INT16:   return ((const int16_t  *) data)[i];
        case GGUF_TYPE_UINT32:  return ((const uint32_t *) data)[i];
        case GGUF_TYPE_INT32:   return ((const int32_t  *) data)[i];
        case GGUF_TYPE_FLOAT32: return (double) ((const float *) data)[i];
        case GGUF_TYPE_UINT64:  return (double) ((const uint64_t *) data)[i];
        case GGUF_TYPE_INT64:   return (double) ((const int64_t  *) data)[i];
        case GGUF_TYPE_FLOAT64: return ((const double *) data)[i];
        case GGUF_TYPE_BOOL:    return ((const int8_t *) data)[i] != 0;
        default:                return 0;
    }
}

static void print_text(const char *text, size_t most) {
    putchar('"');
    text_put(stdout, text, most);
    putchar('"');
}

/* A name from the file, with spaces up to the width of its column. */
static void print_name(const char *name, int width) {
    const int n = (int) strlen(name);
    text_put(stdout, name, TEXT_MAX);
    printf("%*s ", n < width ? width - n : 0, "");
}

static void print_value(const struct gguf_context *g, int64_t i) {
    const enum gguf_type type = gguf_get_kv_type(g, i);
    if (type == GGUF_TYPE_STRING) { print_text(gguf_get_val_str(g, i), 100); return; }
    if (type != GGUF_TYPE_ARRAY)  { printf("%.10g", number_at(type, gguf_get_val_data(g, i), 0)); return; }
    const enum gguf_type item = gguf_get_arr_type(g, i);
    const size_t n = gguf_get_arr_n(g, i), shown = n < 6 ? n : 6;
    printf("[");
    for (size_t k = 0; k < shown; k++) {
        if (k) printf(", ");
        if (item == GGUF_TYPE_STRING) print_text(gguf_get_arr_str(g, i, k), 24);
        else printf("%.6g", number_at(item, gguf_get_arr_data(g, i), k));
    }
    printf(shown < n ? ", ...] (%zu %s)" : "] (%zu %s)", n, gguf_type_name(item));
}

static cJSON *json_value(const struct gguf_context *g, int64_t i) {
    const enum gguf_type type = gguf_get_kv_type(g, i);
    if (type == GGUF_TYPE_STRING) return cJSON_CreateString(gguf_get_val_str(g, i));
    if (type == GGUF_TYPE_BOOL)   return cJSON_CreateBool(gguf_get_val_bool(g, i));
    if (type != GGUF_TYPE_ARRAY)  return cJSON_CreateNumber(number_at(type, gguf_get_val_data(g, i), 0));
    cJSON *o = cJSON_CreateObject();                    /* long lists are named by type and length only */
    cJSON_AddStringToObject(o, "array", gguf_type_name(gguf_get_arr_type(g, i)));
    cJSON_AddNumberToObject(o, "length", (double) gguf_get_arr_n(g, i));
    return o;
}

/* ---- the check ---- */

/* Index of the first bad block in n blocks, by halving; the caller knows that there is one. */
static size_t first_bad(enum ggml_type type, const char *data, size_t n, size_t block) {
    size_t low = 0, high = n;                           /* blocks before low are good; one in [low, high) is bad */
    while (high - low > 1) {
        const size_t middle = low + (high - low)/2;
        if (ggml_validate_row_data(type, data + low*block, (middle - low)*block)) low = middle;
        else high = middle;
    }
    return low;
}

/* Read one tensor in pieces; *bad is the first block with a scale that is not finite, or -1. False on a read error. */
static bool check_tensor(FILE *f, const struct gguf_context *g, int64_t i, void *buf, size_t size, int64_t *bad) {
    const enum ggml_type type = gguf_get_tensor_type(g, i);
    const size_t block = ggml_type_size(type), total = gguf_get_tensor_size(g, i), step = size/block*block;
    *bad = -1;
    if (fseeko(f, (off_t) (gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i)), SEEK_SET)) return false;
    for (size_t done = 0; done < total; done += step) {
        const size_t part = total - done < step ? total - done : step;
        if (fread(buf, 1, part, f) < part) return false;
        if (ggml_validate_row_data(type, buf, part)) continue;
        *bad = (int64_t) (done/block + first_bad(type, buf, part/block, block));
        break;
    }
    return true;
}

static int check_all(const struct info_args *a, const struct gguf_context *g, cJSON *faults) {
    const size_t size = 1 << 20;
    void *buf = malloc(size);
    FILE *f = fopen(a->file, "rb");
    int status = 0;
    if (!buf || !f) status = fail("%s: %s", a->file, buf ? strerror(errno) : "out of memory");
    const int64_t n = gguf_get_n_tensors(g);
    for (int64_t i = 0; buf && f && i < n; i++) {
        int64_t bad;
        const char *name = gguf_get_tensor_name(g, i);
        if (!check_tensor(f, g, i, buf, size, &bad)) { status = fail("%s: tensor %s: %s", a->file, name, ferror(f) ? strerror(errno) : "its data ends past the end of the file"); break; }
        if (bad >= 0) {
            status = fail("%s: tensor %s: block %" PRId64 " has a scale that is not a finite number", a->file, name, bad);
            cJSON *o = faults ? cJSON_CreateObject() : NULL;
            if (o) {
                cJSON_AddStringToObject(o, "tensor", name);
                cJSON_AddNumberToObject(o, "block", (double) bad);
                cJSON_AddItemToArray(faults, o);
            }
        }
        progress("checking", (i + 1.0)/(double) n);
    }
    if (f) fclose(f);
    free(buf);
    return status;
}

/* ---- the report ---- */

static void shape_text(const struct gguf_context *g, int64_t i, char *buf, size_t size) {
    const int64_t *ne = gguf_get_tensor_ne(g, i);
    int n = GGML_MAX_DIMS;
    while (n > 1 && ne[n - 1] == 1) n--;
    size_t at = 0;
    for (int d = 0; d < n && at < size; d++) at += (size_t) snprintf(buf + at, size - at, d ? " x %" PRId64 : "%" PRId64, ne[d]);
}

static void print_types(const struct gguf_context *g) {
    double bytes[GGML_TYPE_COUNT] = { 0 }, total = 0;
    int64_t count[GGML_TYPE_COUNT] = { 0 };
    char text[32];
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        bytes[gguf_get_tensor_type(g, i)] += (double) gguf_get_tensor_size(g, i);
        count[gguf_get_tensor_type(g, i)]++;
        total += (double) gguf_get_tensor_size(g, i);
    }
    printf("\n%" PRId64 " tensors, %s\n", gguf_get_n_tensors(g), bytes_text(total, text));
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        if (count[t]) printf("  %-8s %6" PRId64 " tensors  %10s  %5.1f %%\n", ggml_type_name((enum ggml_type) t), count[t], bytes_text(bytes[t], text), total > 0 ? 100*bytes[t]/total : 0);
    }
}

static void print_report(const struct info_args *a, const struct gguf_context *g) {
    printf("%s: GGUF version %u, data at byte %zu, aligned to %zu\n\n", a->file, gguf_get_version(g), gguf_get_data_offset(g), gguf_get_alignment(g));
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) {
        printf("  ");
        print_name(gguf_get_key(g, i), 44);
        print_value(g, i);
        putchar('\n');
    }
    print_types(g);
    if (!a->tensors) return;
    putchar('\n');
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        char shape[96], size[32];
        shape_text(g, i, shape, sizeof shape);
        printf("  ");
        print_name(gguf_get_tensor_name(g, i), 36);
        printf("%-8s %-24s %10s\n", ggml_type_name(gguf_get_tensor_type(g, i)), shape, bytes_text((double) gguf_get_tensor_size(g, i), size));
    }
}

static cJSON *json_report(const struct gguf_context *g) {
    cJSON *o = cJSON_CreateObject(), *kv = cJSON_AddObjectToObject(o, "metadata"), *tensors = cJSON_AddArrayToObject(o, "tensors");
    cJSON_AddNumberToObject(o, "version", gguf_get_version(g));
    cJSON_AddNumberToObject(o, "alignment", (double) gguf_get_alignment(g));
    cJSON_AddNumberToObject(o, "data_offset", (double) gguf_get_data_offset(g));
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) cJSON_AddItemToObject(kv, gguf_get_key(g, i), json_value(g, i));
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        cJSON *t = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(t, "shape");
        for (int d = 0; d < GGML_MAX_DIMS; d++) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double) gguf_get_tensor_ne(g, i)[d]));
        cJSON_AddStringToObject(t, "name", gguf_get_tensor_name(g, i));
        cJSON_AddStringToObject(t, "type", ggml_type_name(gguf_get_tensor_type(g, i)));
        cJSON_AddNumberToObject(t, "bytes", (double) gguf_get_tensor_size(g, i));
        cJSON_AddItemToArray(tensors, t);
    }
    return o;
}

int command_info(int argc, char **argv) {
    struct info_args a = { 0 };
    bool log = false;
    const struct arg args[] = {
        { "FILE",      ARG_TEXT, &a.file,    "FILE", "a GGUF file", 0, 0 },
        { "--tensors", ARG_FLAG, &a.tensors, NULL,   "list every tensor", 0, 0 },
        { "--check",   ARG_FLAG, &a.check,   NULL,   "look at every block for scales that are not finite; exit code 1 if there is one", 0, 0 },
        { "--verbose", ARG_FLAG, &log,       NULL,   "show what the library logs", 0, 0 },
        { "--json",    ARG_FLAG, &a.json,    NULL,   "print JSON", 0, 0 },
        ARG_END };
    int status;
    if (!args_read("info", "Show what a GGUF file holds: metadata, tensors, sizes per type.", args, argc, argv, &status)) return status;
    library_log(log);
    struct ggml_context *tensors = NULL;            /* asked for, so that the data are known to lie in the file */
    struct gguf_context *g = gguf_init_from_file(a.file, (struct gguf_init_params) { .no_alloc = true, .ctx = &tensors });
    ggml_free(tensors);
    if (!g) return fail_library(a.file, "not a readable GGUF file");
    cJSON *o = a.json ? json_report(g) : NULL, *faults = o ? cJSON_AddArrayToObject(o, "faults") : NULL;
    if (!a.json) print_report(&a, g);
    status = a.check ? check_all(&a, g, faults) : 0;
    if (a.json && print_json(o)) status = 1;
    if (a.check && !status && !a.json) printf("\nall scales are finite\n");
    gguf_free(g);
    return status;
}
