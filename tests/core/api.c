/* Every function of the interface is declared with its result and parameters (a redeclaration that differs does not compile);
 * those of the tensor library are defined (this links), and each of its headers declares those and no other. */

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "gguf.h"
#include "ggml-opt.h"
#include "llama.h"
#include "check.h"

#define FUNCTION(result, name, parameters) result name parameters;
#include "api_ggml.def"
#include "api_llama.def"
#undef FUNCTION

typedef void (*function)(void);
static const struct { const char *name; function address; } functions[] = {
#define FUNCTION(result, name, parameters) { #name, (function) name },
#include "api_ggml.def"
#undef FUNCTION
};
enum { N = sizeof functions/sizeof functions[0] };
static int declared[N];

static char *text_of(const char *header) {
    const char *source = getenv("ARENITE_SOURCE");
    char path[1024];
    snprintf(path, sizeof path, "%s/include/%s", source ? source : ".", header);
    FILE *f = fopen(path, "rb");
    CHECK(f, "%s", path);
    if (!f) return NULL;
    char *text = calloc(1, 1 << 18);
    CHECK(fread(text, 1, (1 << 18) - 1, f) > 0 && feof(f), "%s fits", path);
    fclose(f);
    return text;
}

/* The name that a declaration behind GGML_API is for: the last word before the first parenthesis. */
static void find_declared(const char *header) {
    char *text = text_of(header);
    for (char *at = text; at && (at = strstr(at, "_API ")); ) {
        const char *line = at;
        while (line > text && line[-1] != '\n') line--;
        at += 5;
        if (*line == '#') continue;
        char *end = at + strcspn(at, "(;{\n"), *name = end;
        if (*end == '\n') end += strcspn(end, "(;{"), name = end;
        if (*end != '(') continue;
        while (name > at && (name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') || (name[-1] >= 'a' && name[-1] <= 'z') ||
                             (name[-1] >= 'A' && name[-1] <= 'Z'))) name--;
        *end = 0;
        int i = 0;
        while (i < N && strcmp(functions[i].name, name)) i++;
        CHECK(i < N, "%s declares %s, which is not in the interface", header, name);
        if (i < N) declared[i]++;
        at = end + 1;
    }
    free(text);
}

int main(void) {
    static const char *const headers[] = {
        "ggml.h", "ggml-alloc.h", "ggml-backend.h", "ggml-cpu.h", "gguf.h", "ggml-opt.h",
    };
    for (size_t i = 0; i < sizeof headers/sizeof headers[0]; i++) find_declared(headers[i]);
    for (int i = 0; i < N; i++) {
        CHECK(declared[i] == 1, "%s is declared %d times in the headers", functions[i].name, declared[i]);
        CHECK(functions[i].address, "%s", functions[i].name);
    }
    CHECK(N == 666, "%d functions", (int) N);
    return DONE();
}
