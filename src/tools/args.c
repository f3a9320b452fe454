/* Options are a table: reading them and their help come from the same rows. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool.h"

static bool is_operand(const struct arg *a) { return a->name[0] != '-'; }

static void print_help(const char *command, const char *summary, const struct arg *args) {
    printf("usage: arenite %s", command);
    for (const struct arg *a = args; a->name; a++) if (is_operand(a)) printf(" %s", a->value);
    printf(" [options]\n\n%s\n\n", summary);
    for (const struct arg *a = args; a->name; a++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", a->name, !is_operand(a) && a->value ? " " : "", !is_operand(a) && a->value ? a->value : "");
        printf("  %-18s %s\n", left, a->help);
    }
    printf("  %-18s %s\n", "--help", "show this");
}

static const struct arg *find(const struct arg *args, const char *name, size_t length) {
    for (const struct arg *a = args; a->name; a++) {
        if (!is_operand(a) && strlen(a->name) == length && !strncmp(a->name, name, length)) return a;
    }
    return NULL;
}

static bool number_ok(const struct arg *a, const char *text, double *v) {
    char *end;
    errno = 0;
    *v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(*v)) return false;
    if (a->kind == ARG_INT && *v != floor(*v)) return false;
    return a->least >= a->most || (*v >= a->least && *v <= a->most);
}

/* A type that data can have. */
bool type_named(const char *text, enum ggml_type *type) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        *type = (enum ggml_type) i;
        if (ggml_blck_size(*type) && !strcasecmp(ggml_type_name(*type), text)) return true;
    }
    return false;
}

static bool store_type(const struct arg *a, const char *text) {
    enum ggml_type type;
    if (type_named(text, &type)) { *(enum ggml_type *) a->target = type; return true; }
    usage("%s: '%s' is not a type, such as f16, q8_0 or f32", a->name, text);
    return false;
}

static bool set_level(const struct arg *a, const char *text) {
    if (arn_cpu_set_level(text)) return true;
    char levels[128] = "";
    const char *name;
    size_t n = 0;
    for (int i = 0; (name = arn_cpu_level_name(i)) != NULL && n < sizeof levels; i++) n += (size_t) snprintf(levels + n, sizeof levels - n, " %s", name);
    usage("%s: '%s' is not one of the levels of this machine:%s", a->name, text, levels);
    return false;
}

static bool append(const struct arg *a, const char *text) {
    struct text_list *list = a->target;
    if (list->n == LIST_MAX) return !usage("%s: given more than %d times", a->name, LIST_MAX);
    list->items[list->n++] = text;
    return true;
}

static bool store_range(const struct arg *a, const char *text) {
    int64_t *range = a->target;
    char *colon, *end = NULL;
    errno = 0;
    const long long from = strtoll(text, &colon, 10), to = *colon == ':' ? strtoll(colon + 1, &end, 10) : 0;
    if (!end || colon == text || end == colon + 1 || *end || errno || (double) from < a->least || (double) to > a->most || from > to)
        return !usage("%s: '%s' is not %s, whole numbers from %.10g to %.10g", a->name, text, a->value, a->least, a->most);
    range[0] = from;
    range[1] = to;
    return true;
}

/* Store one value; false after an error line. */
static bool store(const struct arg *a, const char *text) {
    double v;
    if (a->kind == ARG_TYPE)  return store_type(a, text);
    if (a->kind == ARG_LEVEL) return set_level(a, text);
    if (a->kind == ARG_TEXT) { *(const char **) a->target = text; return true; }
    if (a->kind == ARG_LIST) return append(a, text);
    if (a->kind == ARG_RANGE) return store_range(a, text);
    if (!number_ok(a, text, &v)) {
        if (a->least < a->most) usage("%s: '%s' is not %s from %.10g to %.10g", a->name, text, a->kind == ARG_INT ? "a whole number" : "a number", a->least, a->most);
        else                    usage("%s: '%s' is not a number", a->name, text);
        return false;
    }
    if (a->kind == ARG_INT) *(int64_t *) a->target = (int64_t) v;
    else                    *(double  *) a->target = v;
    return true;
}

bool args_read(const char *command, const char *summary, const struct arg *args, int argc, char **argv, int *status) {
    const struct arg *operand = args;
    bool only_operands = false;
    *status = 2;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_operands && !strcmp(word, "--help")) {
            print_help(command, summary, args);
            *status = 0;
            return false;
        }
        if (!only_operands && !strcmp(word, "--")) { only_operands = true; continue; }
        if (!only_operands && word[0] == '-' && word[1]) {
            const char *equals = strncmp(word, "--", 2) ? NULL : strchr(word, '=');
            const struct arg *a = find(args, word, equals ? (size_t) (equals - word) : strlen(word));
            if (!a) { usage("%s: no such option: %s (see arenite %s --help)", command, word, command); return false; }
            if (a->kind == ARG_FLAG) {
                if (equals) { usage("%s takes no value", a->name); return false; }
                *(bool *) a->target = true;
                continue;
            }
            const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (!value) { usage("%s needs a value: %s %s", a->name, a->name, a->value); return false; }
            if (!store(a, value)) return false;
            continue;
        }
        while (operand->name && !is_operand(operand)) operand++;
        if (!operand->name) { usage("%s: one argument too many: '%s'", command, word); return false; }
        if (!store(operand++, word)) return false;
    }
    while (operand->name && (!is_operand(operand) || operand->value[0] == '[')) operand++;
    if (operand->name) { usage("%s: %s is missing (see arenite %s --help)", command, operand->name, command); return false; }
    return true;
}
