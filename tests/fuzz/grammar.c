/* Any bytes as a grammar, and any bytes as a text: parsing ends with a grammar or one line of error, and a text has the same
 * places whether it comes whole or in parts. The part behind the first zero byte is the text. */

#include "fuzz.h"

#include "grammar.h"
#include "llama.h"

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
    const struct text_and_rest in = text_and_rest(data, size);
    const size_t n = in.n_rest < 64 ? in.n_rest : 64;
    struct grammar *g = in.text ? grammar_parse(in.text, "root", NULL) : NULL;
    if (g && in.rest) require(walk(g, in.rest, n, false) == walk(g, in.rest, n, true), "another number of bytes has places when characters are committed");
    grammar_free(g);
    free(in.text);
    return 0;
}
