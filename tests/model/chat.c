/* Chat templates render as the reference environment renders them (chat.golden holds its answers), and what is wrong or without
 * bound ends in one line. */

#include "check.h"

#include "arenite.h"

static char *read_file(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/model/%s", getenv("ARENITE_SOURCE") ? getenv("ARENITE_SOURCE") : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    static char buf[2][1 << 16];
    static int which;
    char *p = buf[which++ % 2];
    p[fread(p, 1, sizeof buf[0] - 1, f)] = 0;
    fclose(f);
    return p;
}

static int32_t render(const char *tmpl, const char *extra, char *buf, size_t size, char *error) {
    const struct arn_chat c = { .tmpl = tmpl, .messages_json = "[]", .extra_json = extra, .now = 1700000000 };
    return arn_chat_render(&c, buf, size, error, 256);
}

static void renders_as_the_reference(void) {
    char *cases = read_file("chat.golden"), *variables = read_file("chat.json"), error[256];
    static char got[1 << 16];
    CHECK(cases && variables, "golden files are missing");
    if (!cases || !variables) return;
    for (char *t = cases, *end; (end = strstr(t, "\n====\n")) != NULL; t = end + 6) {
        *end = 0;
        char *want = strstr(t, "\n---->\n");
        CHECK(want, "no answer for %s", t);
        if (!want) continue;
        *want = 0;
        want += 7;
        const int32_t n = render(t, variables, got, sizeof got, error);
        if (!strcmp(want, "ERROR")) CHECK(n == -1 && strstr(error, "chat template, line"), "%s gives %d", t, n);
        else CHECK(n == (int32_t) strlen(want) && !strcmp(got, want), "%s\n  gives %s\n  not   %s", t, n < 0 ? error : got, want);
    }
}

static void refuses(const char *tmpl, const char *what) {
    char error[256], buf[64];
    const int32_t n = render(tmpl, NULL, buf, sizeof buf, error);
    CHECK(n == -1 && strstr(error, what), "%.60s: %d, '%s', not '%s'", tmpl, n, n < 0 ? error : "", what);
}

static void bounds_hold(void) {
    static char deep[200000];
    refuses("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "more than");
    refuses("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "MiB");
    refuses("{{ 'x' * 1000000000000 }}", "");
    refuses("{{ [1] * 1000000000000 }}", "");
    refuses("{{ range(1000000000) }}", "100000");
    refuses("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deep");
    refuses("{{ 9223372036854775807 + 1 }}", "64 bits");
    refuses("{{ 99999999999999999999 }}", "too large");
    const char *const nests[] = { "(", "[", "{'a':", "-", "not ", "{% if 1 %}", "a.", "'x'|upper|", "1+", "1 if 1 else ", "a is not b and " };
    for (size_t k = 0; k < sizeof nests/sizeof *nests; k++) {
        const size_t n = strlen(nests[k]);
        const bool tag = nests[k][0] == '{' && nests[k][1] == '%';
        size_t at = 0;
        if (!tag) { strcpy(deep, "{{ "); at = 3; }
        while (at + n < sizeof deep - 1) { memcpy(deep + at, nests[k], n); at += n; }
        deep[at] = 0;
        refuses(deep, "");
    }
    refuses("{{ 'abc", "not closed");
    refuses("{% raw %}", "endraw");
    refuses("{# ", "comment");
    refuses("{{ {'a': [1,2}} }}", "");
    refuses("{% include 'x' %}", "no such statement");
}

static void variables_must_be_json(void) {
    char error[256], buf[64];
    const char *const wrong[] = { "", "{", "[1", "{\"a\" 1}", "nope", "{\"a\": x}", "1 2", "[]" };
    for (size_t i = 0; i < sizeof wrong/sizeof *wrong; i++) CHECK(render("x", wrong[i], buf, sizeof buf, error) == -1, "%s is taken", wrong[i]);
    CHECK(render("{{ a }}{{ b[1] }}{{ c.d }}", "{\"a\": -1.5, \"b\": [true, null], \"c\": {\"d\": \"\\ud83d\\ude00\"}}", buf, sizeof buf, error) == 12, "%s", error);
    CHECK(!strcmp(buf, "-1.5None\xf0\x9f\x98\x80"), "%s", buf);
}

static void small_buffers_are_told_the_size(void) {
    char error[256], buf[4] = "zzz";
    CHECK(render("hello", NULL, buf, 4, error) == 5 && !strcmp(buf, "hel"), "%s", buf);
    CHECK(render("hello", NULL, NULL, 0, error) == 5, "without room");
    const struct llama_chat_message m[] = { { "user", "hi" } };
    char text[128];
    CHECK(llama_chat_apply_template(NULL, m, 1, true, text, sizeof text) == 52, "%s", text);
    CHECK(!strcmp(text, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"), "%s", text);
    CHECK(llama_chat_apply_template("gemma", m, 1, false, text, sizeof text) > 0 && !strcmp(text, "<start_of_turn>user\nhi<end_of_turn>\n"), "%s", text);
    const char *names[32];
    const int32_t n = llama_chat_builtin_templates(names, 32);
    for (int32_t i = 0; i < n; i++) CHECK(llama_chat_apply_template(names[i], m, 1, true, text, sizeof text) > 0, "%s", names[i]);
}

int main(void) {
    renders_as_the_reference();
    bounds_hold();
    variables_must_be_json();
    small_buffers_are_told_the_size();
    return DONE();
}
