/* Grammars: which texts are theirs, told from lists made by hand; what is no grammar; the sampler's mask against walking each
 * token alone; triggers; memory that fails. */

#include "vocabs.h"
#include "grammar.h"
#include "interpose.h"

enum { NO, PART, WHOLE };

/* Is the text no beginning of one of the grammar's, a beginning, or whole? */
static int place_of(const struct grammar *g, const char *text, size_t n) {
    struct matcher m;
    struct level level[2];
    struct utf8_part part = { 0 };
    if (!matcher_init(&m, g, level)) return -1;
    int result = PART;
    for (size_t i = 0; i < n && result; i++) {
        const int whole = utf8_push(&part, (unsigned char) text[i]);
        if (whole == 0) {
            const struct code_range r = utf8_range(&part);
            if (!matcher_may(&m, level, r.first, r.last)) result = NO;
        } else if (whole < 0 || !matcher_step(&m, level, part.code, level + 1)) {
            result = NO;
        } else {
            level[0] = level[1];
            matcher_commit(&m, level);
        }
    }
    if (result == PART && !part.left && level[0].ends) result = WHOLE;
    matcher_free(&m);
    return result;
}

static const char json[] =
    "root   ::= value\n"
    "value  ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
    "object ::= \"{\" ws ( string \":\" ws value (\",\" ws string \":\" ws value)* )? \"}\" ws  # pairs\n"
    "array  ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws\n"
    "string ::= \"\\\"\" ( [^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\" ws\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)? ws\n"
    "ws     ::= [ \\t\\n]*\n";

static const char sums[] = "root ::= term ([-+*/] term)*\nterm ::= [0-9]+ | \"(\" root \")\"\n";

static const struct { const char *grammar, *text; int place; } cases[] = {
    { json, "{\"a\": [1, -2.5e+3, true, {\"\\u00e9\": \"x\\n\"}]} ", WHOLE }, { json, "{\"a\": [1, 2", PART }, { json, "", PART },
    { json, "{\"a\" 1", NO }, { json, "01", NO }, { json, "1.", PART }, { json, "1.5", WHOLE }, { json, "[1,]", NO },
    { json, "\"\xc3\xa9\xf0\x9f\x98\x80\"", WHOLE }, { json, "\"\xc3", PART }, { json, "\"\xc3\"", NO }, { json, "\"\xff", NO },
    { json, "\"\xed\xa0\x80\"", NO }, { json, "\"\xc0\x80\"", NO }, { json, "tru", PART }, { json, "trux", NO }, { json, "\"\t\"", NO },
    { sums, "1+(2*(3-4))/5", WHOLE }, { sums, "1+(2*", PART }, { sums, "1+)", NO }, { sums, "()", NO },
    { "root ::= \"a\"{2,3}", "a", PART }, { "root ::= \"a\"{2,3}", "aa", WHOLE }, { "root ::= \"a\"{2,3}", "aaa", WHOLE },
    { "root ::= \"a\"{2,3}", "aaaa", NO }, { "root ::= \"ab\"{2}", "abab", WHOLE }, { "root ::= \"ab\"{2}", "ababa", NO },
    { "root ::= \"ab\"{3,}", "abab", PART }, { "root ::= \"ab\"{3,}", "abababab", WHOLE }, { "root ::= \"a\"{0}\"b\"", "b", WHOLE },
    { "root ::= ((\"a\" \"b\"){2} \"c\"){2,3} \"d\"", "ababcababcd", WHOLE }, { "root ::= ((\"a\" \"b\"){2} \"c\"){2,3} \"d\"", "ababcd", NO },
    { "root ::= ((\"a\" \"b\"){2} \"c\"){2,3} \"d\"", "ababcababcababcd", WHOLE }, { "root ::= (\"x\"? \"y\"?)*", "yxxyy", WHOLE },
    { "root ::= (\"a\" | \"ab\") (\"c\" | \"bc\")", "abc", WHOLE }, { "root ::= (\"a\" | \"ab\") (\"c\" | \"bc\")", "abbc", WHOLE },
    { "root ::= (\n  \"a\" |\n  \"b\"\n)+ # end\nother ::= root", "abba", WHOLE }, { "root ::= [a-cx\\-\\]]+", "abc-x]", WHOLE },
    { "root ::= [a-cx\\-\\]]+", "d", NO }, { "root ::= [^a-c]", "b", NO }, { "root ::= [^a-c]", "\xf4\x8f\xbf\xbf", WHOLE },
    { "root ::= [a-]", "-", WHOLE }, { "root ::= []", "a", NO }, { "root ::= [^]", "a", WHOLE }, { "root ::= . .", "\xe2\x82\xac" "a", WHOLE },
    { "root ::= \"\\x41\\u20ac\\U0001f600\"", "A\xe2\x82\xac\xf0\x9f\x98\x80", WHOLE }, { "root ::= ", "", WHOLE },
    { "root ::= \"a\" | ", "", WHOLE }, { "root ::= \"a\"\nroot ::= \"b\"", "b", WHOLE },
    { "root ::= a*\na ::= \"x\" | b\nb ::= \"y\" a?", "xyyx", WHOLE }, { "root ::= \"a\" root \"b\" | \"\"", "aabb", WHOLE },
    { "root ::= \"a\" root \"b\" | \"\"", "aab", PART }, { "root ::= \"a\" root \"b\" | \"\"", "aabbb", NO },
    { "root ::= \"a\" * \"b\" + \"c\" ?\r\n", "aab", WHOLE }, { "root ::= [\xc3\xa4-\xc3\xbc]", "\xc3\xb6", WHOLE },
};

static void texts(void) {
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        struct grammar *g = grammar_parse(cases[i].grammar, "root", NULL);
        CHECK(g, "%s: %s", cases[i].grammar, last_line);
        if (!g) continue;
        const int place = place_of(g, cases[i].text, strlen(cases[i].text));
        CHECK(place == cases[i].place, "%s: '%s': %d", cases[i].grammar, cases[i].text, place);
        grammar_free(g);
    }
}

static void no_grammars(void) {
    static const char *const bad[] = { "", "# nothing", "root", "root ::= \"a", "root ::= [a", "root ::= (\"a\"", "root ::= \"a\")", "root := \"a\"",
        "root ::= x", "other ::= \"a\"", "root ::= root", "root ::= root \"a\" | \"a\"", "root ::= a\na ::= b\nb ::= \"\"* a \"x\"", "root ::= \"\"{3} (root)",
        "root ::= \"x\"? root", "root ::= \"a\"{10001}", "root ::= \"a\"{3,2}", "root ::= \"a\"{", "root ::= \"a\"{,3}", "root ::= \"a\"**", "root ::= * \"a\"",
        "root ::= [z-a]", "root ::= \"\\q\"", "root ::= \"\\xg0\"", "root ::= \"\\U00110000\"", "root ::= \"\xff\"", "root ::= \"a\" ::= \"b\"",
        "root ::= \"\\", "root ::= [\\", "root ::= \"a\"{99999999999999999999}", "root ::= ((((\"a\"{9999}){9999}){9999} \"b\"){9999} \"b\"){9999} [a-",
        "9 ::= \"a\"" };
    for (size_t i = 0; i < sizeof bad/sizeof *bad; i++) {
        n_errors = 0;
        struct grammar *g = grammar_parse(bad[i], "root", NULL);
        CHECK(!g && n_errors == 1, "%s: %d lines", bad[i], n_errors);
        grammar_free(g);
    }
    /* nesting and growth end with an error; time is linear */
    static char text[1 << 20];
    size_t n = (size_t) sprintf(text, "root ::= ");
    memset(text + n, '(', sizeof text - n - 1);
    CHECK(!grammar_parse(text, "root", NULL) && strstr(last_line, "deep"), "%s", last_line);
    for (size_t at = n; at + 24 < sizeof text; ) at += (size_t) sprintf(text + at, "\"ab\"{9999,9999} ");
    CHECK(!grammar_parse(text, "root", NULL) && strstr(last_line, "too large"), "%s", last_line);
    n = (size_t) sprintf(text, "root ::= \"a\" r0\n");
    for (int i = 0; i < 30000; i++) n += (size_t) sprintf(text + n, "r%d ::= r%d\n", i, i + 1);
    sprintf(text + n, "r30000 ::= \"b\"");
    struct grammar *g = grammar_parse(text, "root", NULL);
    CHECK(g && place_of(g, "ab", 2) == WHOLE, "a chain of rules");
    grammar_free(g);
    sprintf(text + n, "r30000 ::= r15000");
    CHECK(!grammar_parse(text, "root", NULL), "a chain that bites its tail");
}

/* Deep nesting and ambiguity: memory and places stay small, or the text is not taken. */
static void bounds(void) {
    enum { DEEP = 20000 };
    static char text[DEEP];
    struct grammar *g = grammar_parse("root ::= \"[\" root \"]\" | \"\"", "root", NULL);
    memset(text, '[', DEEP/2);
    memset(text + DEEP/2, ']', DEEP/2);
    CHECK(place_of(g, text, SANITIZED ? 1000 : DEEP/2) == PART, "deep");
    memset(text + 500, ']', 500);
    CHECK(place_of(g, text, 1000) == WHOLE, "deep and back");
    grammar_free(g);
    g = grammar_parse("root ::= s s | s\ns ::= \"a\" | \"a\" s | \"a\" s s", "root", NULL);
    memset(text, 'a', 200);
    CHECK(place_of(g, text, 200) == WHOLE, "ambiguous");
    grammar_free(g);
}

/* ---- the sampler ------------------------------------------------------------------------------------------------------- */

static struct small tokens;
enum { FIRST = 259 };           /* <unk> <s> </s> and the bytes; then these */
static const char *const words[] = { "{", "{\"", "true", "tr", "ue", "\":", "1", "12", "}", "},", " ", "[[", "]]", "\xc3\xa9", "ab\xc3", "\"a\":", "null}" };

static struct llama_vocab *vocab_of(struct gguf_context **g) {
    small_spm(&tokens);
    for (size_t i = 0; i < sizeof words/sizeof *words; i++) small_add(&tokens, words[i], 0.0f, LLAMA_TOKEN_TYPE_NORMAL);
    *g = small_gguf(&tokens, "llama");
    gguf_set_val_u32(*g, "tokenizer.ggml.eos_token_id", 2);
    return vocab_new(*g);
}

/* Applies to all tokens, and to each alone; both must agree. How many pass. */
static int passing(struct llama_sampler *s, int n_vocab, bool *pass) {
    static llama_token_data data[MAX_TOKENS];
    int n = 0;
    for (int i = 0; i < n_vocab; i++) data[i] = (llama_token_data) { i, 1.0f, 0.0f };
    llama_token_data_array c = { data, (size_t) n_vocab, -1, false };
    llama_sampler_apply(s, &c);
    for (int i = 0; i < n_vocab; i++) pass[i] = data[i].logit == 1.0f, n += pass[i];
    for (int i = 0; i < n_vocab; i++) {
        llama_token_data one = { i, 1.0f, 0.0f };
        llama_token_data_array single = { &one, 1, -1, false };
        llama_sampler_apply(s, &single);
        CHECK((one.logit == 1.0f) == pass[i], "token %d alone and among all", i);
    }
    return n;
}

static void accept_text(struct llama_sampler *s, const char *text) {
    for (; *text; text++) llama_sampler_accept(s, 3 + (unsigned char) *text);
}

/* Which tokens pass after some were accepted, ended by -1; `most`: that many others too. */
static void passes_after(const struct llama_vocab *v, const char *text, const llama_token *accepted, const llama_token *want, int most) {
    const int n = llama_vocab_n_tokens(v);
    bool pass[MAX_TOKENS];
    struct llama_sampler *s = llama_sampler_init_grammar(v, text, "root");
    CHECK(s, "%s: %s", text, last_line);
    if (!s) return;
    for (; *accepted >= 0; accepted++) llama_sampler_accept(s, *accepted);
    const int count = passing(s, n, pass);
    int wanted = 0;
    for (; *want >= 0; want++, wanted++) CHECK(pass[*want], "%s: token %d does not pass", text, *want);
    CHECK(count == wanted + most, "%s: %d pass, wanted %d", text, count, wanted + most);
    llama_sampler_free(s);
}
#define IDS(...) (const llama_token[]) { __VA_ARGS__, -1 }
static void token_elements(const struct llama_vocab *v) {
    enum { TRUE = FIRST + 2, TR, EOG = 2, BYTE = 3 };
    const int n = llama_vocab_n_tokens(v);
    static const char both[] = "root ::= <[261]> \"x\" | \"true\" \"y\"?", named[] = "root ::= <s> !<[262]>* \"x\"{2}";
    passes_after(v, both, IDS(-1),               IDS(TRUE, TR, BYTE + 't'), 0);
    passes_after(v, both, IDS(TRUE),             IDS(BYTE + 'x', BYTE + 'y', EOG), 0);     /* by its letters and as a whole */
    passes_after(v, both, IDS(TR, FIRST + 4),    IDS(BYTE + 'y', EOG), 0);
    passes_after(v, both, IDS(TRUE, BYTE + 'x'), IDS(EOG), 0);
    passes_after(v, named, IDS(-1),              IDS(1), 0);
    passes_after(v, named, IDS(1),               IDS(0), n - 3);                                /* all but 262 and the end */
    passes_after(v, named, IDS(1, BYTE + 0xc3, BYTE + 'x', BYTE + 'x'), IDS(EOG), n - 2);
    passes_after(v, "root ::= <[7]>{2} \"x\"", IDS(7),       IDS(7), 0);
    passes_after(v, "root ::= <[7]>{2} \"x\"", IDS(7, 7),    IDS(BYTE + 'x'), 0);
    passes_after(v, "root ::= . <[7]>", IDS(BYTE + 0xc3, BYTE + 0xa9), IDS(7), 0);             /* not within a character */
    static const char *const none[] = { "root ::= <[99999]>", "root ::= <[99999999999999999999]>", "root ::= <[]>", "root ::= <[x]>", "root ::= <[1>",
        "root ::= <[1]", "root ::= <", "root ::= <nothing>", "root ::= <s", "root ::= !x", "root ::= !" };
    for (size_t i = 0; i < sizeof none/sizeof *none; i++) {
        n_errors = 0;
        struct llama_sampler *s = llama_sampler_init_grammar(v, none[i], "root");
        CHECK(!s && n_errors == 1, "%s", none[i]);
        llama_sampler_free(s);
    }
    CHECK(!grammar_parse("root ::= <s>", "root", NULL), "a name without a vocabulary");
}

static void masks(const struct llama_vocab *v) {
    const int n = llama_vocab_n_tokens(v);
    bool pass[MAX_TOKENS], again[MAX_TOKENS];
    struct llama_sampler *s = llama_sampler_init_grammar(v, json, "root");
    struct grammar *g = grammar_parse(json, "root", NULL);
    static const char *const sofar[] = { "", "{", "{\"", "{\"a", "{\"a\":", "{\"a\": tr", "{\"a\": 1", "[[1", "1", "{\"\xc3", "[true]" };
    for (size_t k = 0; k < sizeof sofar/sizeof *sofar; k++) {
        llama_sampler_reset(s);
        accept_text(s, sofar[k]);
        const int count = passing(s, n, pass);
        int want = 0;
        for (int i = 0; i < n; i++) {       /* the text so far and the token, from the start, by the matcher alone */
            char text[64], piece[32];
            const int32_t size = llama_token_to_piece(v, i, piece, sizeof piece, 0, true);
            const size_t length = (size_t) snprintf(text, sizeof text, "%s", sofar[k]);
            memcpy(text + length, piece, (size_t) size);
            const bool fits = i == 2 ? place_of(g, text, length) == WHOLE : size > 0 && place_of(g, text, length + (size_t) size) != NO;
            CHECK(fits == pass[i], "'%s' and token %d", sofar[k], i);
            want += fits;
        }
        CHECK(count == want && want > 0, "'%s': %d of %d", sofar[k], count, want);
        struct llama_sampler *clone = llama_sampler_clone(s);
        llama_sampler_accept(s, 2);
        passing(clone, n, again);
        CHECK(!memcmp(pass, again, (size_t) n), "a clone after '%s'", sofar[k]);
        llama_sampler_reset(s);
        llama_sampler_copy(clone, s);
        passing(s, n, again);
        CHECK(!memcmp(pass, again, (size_t) n), "a copy after '%s'", sofar[k]);
        llama_sampler_free(clone);
    }
    llama_sampler_reset(s);
    n_errors = 0;
    accept_text(s, "x");
    CHECK(n_errors == 1 && passing(s, n, pass) == 1 && pass[2], "after a token without a place only the end is left");
    llama_sampler_free(s);
    grammar_free(g);

    s = llama_sampler_init_grammar(v, "", "root");
    CHECK(passing(s, n, pass) == n, "an empty grammar lets all pass");
    llama_sampler_free(s);
    CHECK(!llama_sampler_init_grammar(v, "root ::= x", "root") && !llama_sampler_init_grammar(NULL, json, "root")
          && !llama_sampler_init_grammar(v, json, "none"), "refused");
}

static void triggers(const struct llama_vocab *v) {
    const int n = llama_vocab_n_tokens(v);
    bool pass[MAX_TOKENS];
    const char *patterns[] = { "call:(.+)" };
    const llama_token token = FIRST;        /* { */
    for (int by_token = 0; by_token < 2; by_token++) {
        struct llama_sampler *s = llama_sampler_init_grammar_lazy_patterns(v, json, "root", patterns, 1, &token, 1);
        CHECK(passing(s, n, pass) == n, "all before the trigger");
        accept_text(s, "some text {");
        CHECK(passing(s, n, pass) == n, "all before the trigger");
        if (by_token) llama_sampler_accept(s, token);
        else          accept_text(s, "call:{");
        CHECK(passing(s, n, pass) < n && pass[3 + '"'] && pass[3 + '}'] && !pass[3 + 'a'], "in the object");
        struct llama_sampler *clone = llama_sampler_clone(s);
        llama_sampler_reset(s);
        CHECK(passing(s, n, pass) == n && passing(clone, n, pass) < n, "reset waits anew");
        llama_sampler_free(clone);
        llama_sampler_free(s);
    }
    const char *bad[] = { "(" };
    CHECK(!llama_sampler_init_grammar_lazy_patterns(v, json, "root", bad, 1, NULL, 0), "no pattern");
}

static void failing_memory(const struct llama_vocab *v) {
    for (long n = 1; n < 500; n++) {
        const long before = held;
        fail_at = n;
        const char *patterns[] = { "call:(.+)", "[{]" };
        struct llama_sampler *s = llama_sampler_init_grammar_lazy_patterns(v, json, "root", patterns, 2, NULL, 0);
        if (s) accept_text(s, "call");
        struct llama_sampler *clone = s ? llama_sampler_clone(s) : NULL;
        if (s) accept_text(s, ":{\"a\":[");
        const bool failed = fail_at == 0;
        fail_at = 0;
        llama_sampler_free(clone);
        llama_sampler_free(s);
        CHECK((s || failed) && held == before, "allocation %ld: %ld blocks kept", n, held - before);
        if (!failed) return;
    }
    CHECK(!INTERPOSED, "still failing");
}

int main(void) {
    interpose_used();
    llama_log_set(hear, NULL);
    texts();
    no_grammars();
    bounds();
    struct gguf_context *g;
    struct llama_vocab *v = vocab_of(&g);
    token_elements(v);
    masks(v);
    triggers(v);
    failing_memory(v);
    vocab_free(v);
    gguf_free(g);
    return DONE();
}
