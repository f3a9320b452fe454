/* Any bytes as an expression, and any bytes as a text: parsing ends with a pattern or one line of error, and a text has the same match
 * whether it comes whole or in parts. The part behind the first zero byte is the text. */

#include "fuzz.h"

#include "llama.h"
#include "pattern.h"

static void search_both(const struct pattern *p, const uint8_t *text, size_t n) {
    struct search *whole = search_new(p), *parts = search_new(p);
    if (whole && parts) {
        const size_t *a = search_feed(whole, text, n), *b = search_feed(parts, text, 0);
        for (size_t i = 0; i < n; i++) b = search_feed(parts, text + i, 1);
        require(!a == !b && (!a || (!memcmp(a, b, 2*p->n_groups*sizeof *a) && a[0] <= a[1] && a[1] <= n)), "another match in parts");
    }
    search_free(whole), search_free(parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llama_log_set(quiet, NULL);
    const struct text_and_rest in = text_and_rest(data, size);
    struct pattern *p = in.text ? pattern_parse(in.text, "pattern") : NULL;
    if (p && in.rest) search_both(p, in.rest, in.n_rest < 64 ? in.n_rest : 64);
    pattern_free(p);
    free(in.text);
    return 0;
}
