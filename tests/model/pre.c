/* Each pre-tokenizer cuts the corpus as the regular expressions that define it do, and cuts any bytes into words that join up
 * to the text, in linear time. */

#include <time.h>

#include "pre.h"
#include "vocabs.h"

static void same_cuts(void) {
    char *cuts = test_file("pre.cuts", 0), *line;
    const struct pre *pre = NULL;
    char *at = NULL, *name = NULL;
    while ((line = next_line(&cuts))) {
        if (line[0] == '=') {
            name = line + 2;
            pre = pre_find(name);
            CHECK(pre, "%s", name);
            at = test_file("corpus.txt", 1);
            continue;
        }
        char *text = at ? next_line(&at) : NULL;
        if (!text || !pre) continue;
        const size_t n = unescape(text);
        struct pre_scan scan = pre_begin(pre, text, n);
        char got[2048] = "";
        for (size_t word, used = 0; (word = pre_next(&scan)) > 0; ) {
            used += (size_t) snprintf(got + used, sizeof got - used, "%s%zu", used ? " " : "", word);
        }
        CHECK(!strcmp(got, line), "%s on \"%s\": %s, not %s", name, text, got, line);
    }
}

static const char *const names[] = { "default", "gpt-2", "llama-bpe", "qwen2", "qwen35", "bailingmoe", "seed-coder", "gpt-4o",
    "tekken", "smollm", "falcon", "bloom", "viking", "deepseek-llm", "deepseek-coder", "deepseek-v3" };
enum { NAMES = sizeof names/sizeof *names };

static void any_bytes_join_up(void) {
    uint64_t seed = 1;
    for (int i = 0; i < 4000; i++) {
        unsigned char text[64];
        const size_t n = rnd_u64(&seed)%sizeof text;
        for (size_t j = 0; j < n; j++) text[j] = rnd_u64(&seed)%2 ? (unsigned char) rnd_u64(&seed)
            : (unsigned char) " a1\n'."[rnd_u64(&seed)%6];
        struct pre_scan scan = pre_begin(pre_find(names[i%NAMES]), (char *) text, n);
        size_t sum = 0, words = 0;
        for (size_t word; (word = pre_next(&scan)) > 0; words++) sum += word;
        CHECK(sum == n && words <= n, "%s: %zu of %zu bytes", names[i%NAMES], sum, n);
    }
}

/* Long runs of anything: time that grew with the square of the length would be some 10 s each. */
static void linear_time(void) {
    static const char *const parts[] = { "a", "A", " ", "7", ".", "\n", " \n", "Aa", "'", "\xe4\xb8\xad", "\xcc\x81", "\xff", " \xe3\x80\x80" };
    enum { BYTES = 1 << 17 };
    char *text = malloc(BYTES);
    for (size_t i = 0; i < sizeof parts/sizeof *parts; i++) {
        const size_t part = strlen(parts[i]), n = BYTES/part*part;
        for (size_t j = 0; j < n; j += part) memcpy(text + j, parts[i], part);
        if (n < BYTES) text[n] = 'x';
        for (int k = 0; k < NAMES; k++) {
            const clock_t start = clock();
            struct pre_scan scan = pre_begin(pre_find(names[k]), text, n);
            while (pre_next(&scan)) {}
            const double s = (double) (clock() - start)/CLOCKS_PER_SEC;
            CHECK(s < 1.0, "%s takes %.2f s for 128 KiB of \"%s\"", names[k], s, parts[i]);
        }
    }
    free(text);
}

int main(void) {
    CHECK(!pre_find("nothing") && !pre_find("") && !pre_find(" ") && !pre_find("gpt") && !pre_find("llama3 llama-v3"), "names");
    same_cuts();
    any_bytes_join_up();
    linear_time();
    return DONE();
}
