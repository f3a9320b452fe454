#ifndef FUZZ_H
#define FUZZ_H
/* What the fuzz targets share. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A log callback that says nothing: errors are what most inputs end in. */
static inline void quiet(enum ggml_log_level level, const char *text, void *user) { (void) level, (void) text, (void) user; }

/* What must hold for every input. */
static inline void require(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* An input in two parts: a text that ends at the first zero byte, and what is behind it. */
struct text_and_rest {
    char          *text;                /* terminated, malloc'd; NULL: no memory */
    const uint8_t *rest;                /* NULL: there is no zero byte */
    size_t         n_rest;
};

static inline struct text_and_rest text_and_rest(const uint8_t *data, size_t size) {
    struct text_and_rest t = { malloc(size + 1), NULL, 0 };
    if (!t.text) return t;
    if (size) memcpy(t.text, data, size);
    t.text[size] = 0;
    const size_t n = strlen(t.text);
    if (n < size) t.rest = data + n + 1, t.n_rest = size - n - 1;
    return t;
}

/* An input as a file, for what reads files by name or stream; NULL: it cannot be written. */
static inline FILE *file_of(const uint8_t *data, size_t size) {
    FILE *f = tmpfile();
    if (!f || (fwrite(data, 1, size, f) == size && !fflush(f))) return f;
    fclose(f);
    return NULL;
}

#endif
