/* Patterns: where they match, as ECMAScript has it; the same in whatever pieces the text comes; what is refused, with one line each;
 * expressions that make other engines recurse or search without end. */

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "llama.h"
#include "pattern.h"

enum { NONE = -1 };

static const struct { const char *pattern, *text; int from, to, group_from, group_to; } cases[] = {
    { "abc", "xxabcxx", 2, 5, NONE, NONE },         { "abc", "xxabxx", NONE, 0, 0, 0 },             { "", "abc", 0, 0, NONE, NONE },
    { "a|ab", "ab", 0, 1, NONE, NONE },             { "ab|a", "ab", 0, 2, NONE, NONE },             { "b|ab", "ab", 0, 2, NONE, NONE },
    { "(a|ab)(c|bcd)", "abcd", 0, 4, 0, 1 },        { "x(a|b|cd|)y", "xcdy", 0, 4, 1, 3 },          { "x(a|b|cd|)y", "xy", 0, 2, 1, 1 },
    { "a*", "aaa", 0, 3, NONE, NONE },              { "a*?", "aaa", 0, 0, NONE, NONE },             { "a+?", "aaa", 0, 1, NONE, NONE },
    { "(a+)b", "caab", 1, 4, 1, 3 },                { "(a*)(a|b)", "aab", 0, 3, 0, 2 },             { "(a*?)(a|b)", "aab", 0, 1, 0, 0 },
    { "<(.*)>", "<a><b>", 0, 6, 1, 5 },             { "<(.*?)>", "<a><b>", 0, 3, 1, 2 },            { "^(?:a?){3}a{3}$", "aaa", 0, 3, NONE, NONE },
    { "a{2}", "aaa", 0, 2, NONE, NONE },            { "a{2,}", "aaaa", 0, 4, NONE, NONE },          { "a{2,3}", "aaaa", 0, 3, NONE, NONE },
    { "a{2,3}?", "aaaa", 0, 2, NONE, NONE },        { "xa{0}y", "xy", 0, 2, NONE, NONE },           { "(ab){2}", "ababab", 0, 4, 2, 4 },
    { "(?:ab|c){2,}", "abcabx", 0, 5, NONE, NONE }, { "^b", "ab", NONE, 0, 0, 0 },                  { "a$", "ab", NONE, 0, 0, 0 },
    { "^a.c$", "a\nc", NONE, 0, 0, 0 },             { "^a[\\s\\S]c$", "a\nc", 0, 3, NONE, NONE },   { "[a-c]+", "xxabcd", 2, 5, NONE, NONE },
    { "[^a-c]+", "abxyc", 2, 4, NONE, NONE },       { "[]x]", "x]", NONE, 0, 0, 0 },                { "[^]", "\n", 0, 1, NONE, NONE },
    { "[\\]\\-a]+", "-a]b", 0, 3, NONE, NONE },     { "[a-]+", "b-a", 1, 3, NONE, NONE },           { "[[:digit:]_]+", "ab1_2", 2, 5, NONE, NONE },
    { "\\d+\\.\\d+", "v1.25", 1, 5, NONE, NONE },   { "\\w+\\s\\W", "ab !", 0, 4, NONE, NONE },     { "\\bcat\\b", "concat cat", 7, 10, NONE, NONE },
    { "\\Bcat", "concat cat", 3, 6, NONE, NONE },   { "\\x41\\u0042\\t\\0", "AB\t", NONE, 0, 0, 0 },{ "\\x41\\u0042\\t", "AB\t", 0, 3, NONE, NONE },
    { "\\u20ac+", "\xe2\x82\xac", 0, 3, NONE, NONE }, { "\\{\"a\"", "x{\"a\"", 1, 5, NONE, NONE },  { "a]}", "a]}", 0, 3, NONE, NONE },
    { "(a*)*", "b", 0, 0, NONE, NONE },             { "(a|b)*c|(a|ab)*c", "abac", 0, 4, 2, 3 },     { "(?:(a)|b)*", "ab", 0, 2, 0, 1 },
    { "(?:<think>[\\s\\S]*?</think>\\s*)?(\\{)", "<think>{</think> {", 0, 18, 17, 18 },
    { "^(?:<think>[\\s\\S]*?</think>\\s*)?(\\{\"name\")[\\s\\S]*$", "<think>\n</think>\n{\"name\": 1}", 0, 28, 17, 24 },
    { "attn_(?:k|v)\\.weight", "blk.3.attn_v.weight", 6, 19, NONE, NONE },
};

static const char *const refused[] = { "(", ")", "a)", "(a", "[a", "[", "*", "a**", "+a", "a|*", "{2}", "a{", "a{x}", "a{2", "a{2,1}", "\\", "a\\", "(a)\\1",
    "(?=a)", "(?!a)", "(?<n>a)", "(?i)a", "[b-a]", "\\x4", "\\u123", "\\q", "[\\u20ac]", "a{5000}", "(?:a{100}){100}", "((((a{99}){99}){99}){99})",
    "(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)(a)" };

static int n_errors;
static void hear(enum ggml_log_level level, const char *text, void *user) { (void) text, (void) user, n_errors += level == GGML_LOG_LEVEL_ERROR; }

static int mark(const size_t *marks, size_t i) { return marks && marks[i] != NO_MARK ? (int) marks[i] : NONE; }

static void matches(void) {
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        const size_t n = strlen(cases[i].text);
        struct pattern *p = pattern_parse(cases[i].pattern, "test");
        struct search *s = p ? search_new(p) : NULL;
        CHECK(s, "'%s' is refused", cases[i].pattern);
        for (size_t cut = 0; s && cut <= n; cut++) {
            struct search *copy = search_new(p);
            search_reset(s);
            search_feed(s, cases[i].text, cut);
            search_copy(copy, s);
            search_feed(s, "other", 5);
            const size_t *marks = search_feed(copy, cases[i].text + cut, n - cut);
            CHECK(mark(marks, 0) == cases[i].from, "'%s' in '%s' begins at %d", cases[i].pattern, cases[i].text, mark(marks, 0));
            if (marks) CHECK((int) marks[1] == cases[i].to, "'%s' in '%s' ends at %zu", cases[i].pattern, cases[i].text, marks[1]);
            if (marks && p->n_groups > 1) {
                CHECK(mark(marks, 2) == cases[i].group_from && (mark(marks, 3) == cases[i].group_to || !marks), "'%s' in '%s': group %d to %d",
                      cases[i].pattern, cases[i].text, mark(marks, 2), mark(marks, 3));
            }
            search_free(copy);
        }
        CHECK(p && pattern_occurs(p, cases[i].text) == (cases[i].from != NONE), "'%s' in '%s'", cases[i].pattern, cases[i].text);
        search_free(s);
        pattern_free(p);
    }
    struct pattern *p = pattern_of_word("a.b*(", "test");
    CHECK(p && pattern_occurs(p, "xa.b*(x") == 1 && pattern_occurs(p, "aab(") == 0, "a word stands for itself");
    pattern_free(p);
}

static void refusals(void) {
    for (size_t i = 0; i < sizeof refused/sizeof *refused; i++) {
        n_errors = 0;
        struct pattern *p = pattern_parse(refused[i], "test");
        CHECK(!p && n_errors == 1, "'%s': %d lines", refused[i], n_errors);
        pattern_free(p);
    }
}

/* A search costs at most nodes times bytes steps: those here would take others longer than there is time, or more stack than there is. */
static void bounded(void) {
    enum { N = 200000 };
    char *text = malloc(2*N + 1);
    CHECK(text, "memory");
    if (!text) return;
    memset(text, '(', N), memset(text + N, ')', N), text[2*N] = 0;
    CHECK(!pattern_parse(text, "test"), "deep groups");
    memset(text, 'a', N), text[N] = 0;
    const char *slow[] = { "(a*)*b", "(a|aa)+$b", "(?:a?){50}a{50}b", "(.*)(.*)(.*)(.*)[^a]" };
    for (size_t i = 0; i < sizeof slow/sizeof *slow; i++) {
        struct pattern *p = pattern_parse(slow[i], "test");
        CHECK(p && pattern_occurs(p, text + N - 20000) == 0, "'%s'", slow[i]);
        pattern_free(p);
    }
    free(text);
}

int main(void) {
    llama_log_set(hear, NULL);
    matches();
    refusals();
    bounded();
    return DONE();
}
