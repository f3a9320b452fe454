/* Any bytes as an expression, and any bytes as a text: parsing ends with a pattern or one line of error, and a text has the same match
 * whether it comes whole or in parts. The part behind the first zero byte is the text. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"
#include "pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void quiet(enum ggml_log_level level, const char *text, void *user) { (void) level, (void) text, (void) user; }

static void search_both(const struct pattern *p, const uint8_t *text, size_t n) {
    struct search *whole = search_new(p), *parts = search_new(p);
    if (whole && parts) {
        const size_t *a = search_feed(whole, text, n), *b = search_feed(parts, text, 0);
        for (size_t i = 0; i < n; i++) b = search_feed(parts, text + i, 1);
        if (!a != !b || (a && (memcmp(a, b, 2*p->n_groups*sizeof *a) || a[0] > a[1] || a[1] > n))) {
            fprintf(stderr, "another match in parts\n");
            abort();
        }
    }
    search_free(whole), search_free(parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llama_log_set(quiet, NULL);
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const size_t n = strlen(text);
    struct pattern *p = pattern_parse(text, "pattern");
    if (p && n < size) search_both(p, data + n + 1, size - n - 1 < 64 ? size - n - 1 : 64);
    pattern_free(p);
    free(text);
    return 0;
}
