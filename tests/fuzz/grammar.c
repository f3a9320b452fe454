/* Any bytes as a grammar, and any bytes as a text: parsing ends with a grammar or one line of error, and a text has the same
 * places whether it comes whole or in parts. The part behind the first zero byte is the text. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar.h"
#include "llama.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quiet(enum ggml_log_level level, const char *text, void *user) { (void) level, (void) text, (void) user; }

/* The bytes of the text that have a place; `commit`: each character is made the base. */
static size_t walk(const struct grammar *g, const uint8_t *text, size_t n, bool commit) {
    static struct level levels[65];
    struct matcher m;
    struct utf8_part part = { 0 };
    size_t i = 0, depth = 0;
    if (!matcher_init(&m, g, levels)) return 0;
    for (; i < n; i++) {
        const int whole = utf8_push(&part, text[i]);
        if (whole < 0) break;
        if (!whole) {
            const struct code_range r = utf8_range(&part);
            if (!matcher_may(&m, levels + depth, r.first, r.last)) break;
            continue;
        }
        if (!matcher_step(&m, levels + depth, part.code, levels + depth + 1)) break;
        depth++;
        if (commit) {
            levels[0] = levels[1];
            matcher_commit(&m, levels);
            depth = 0;
        }
    }
    matcher_free(&m);
    return i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llama_log_set(quiet, NULL);
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const size_t n = strlen(text);
    struct grammar *g = grammar_parse(text, "root", NULL);
    if (g && n < size) {
        const uint8_t *input = data + n + 1;
        const size_t length = size - n - 1 < 64 ? size - n - 1 : 64;
        const size_t a = walk(g, input, length, false), b = walk(g, input, length, true);
        if (a != b) {
            fprintf(stderr, "%zu and %zu bytes have places\n", a, b);
            abort();
        }
    }
    grammar_free(g);
    free(text);
    return 0;
}
