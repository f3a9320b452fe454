/* Pre-tokenizers as scanners. The definition of each is a regular expression in the tokenizer.json of a model family; its
 * alternatives come in few kinds, so a family is a row of parameters and no text is ever scanned backwards.
 *
 * A family has stages: each cuts every piece of the one before it. In a stage a piece is a match, or what lies between two
 * matches (what the tokenizers library calls "isolated"). In the comments, L N M P S are the classes of characters of that
 * name, W is white space. */

#include <string.h>

#include "pre.h"
#include "unicode.h"

#define COUNT(array) (sizeof (array)/sizeof *(array))

/* ---- sets of characters ------------------------------------------------------------------------------------------ */

enum {
    UPPERS  = 1 << CHAR_UPPER, LOWERS = 1 << CHAR_LOWER, CASELESS = 1 << CHAR_LETTER, MARKS = 1 << CHAR_MARK,
    NUMBERS = 1 << CHAR_NUMBER, PUNCTS = 1 << CHAR_PUNCT, SYMBOLS = 1 << CHAR_SYMBOL, SPACES = 1 << CHAR_SPACE,
    LETTERS = UPPERS | LOWERS | CASELESS,
    ALL     = (1 << (CHAR_OTHER + 1)) - 1,
};

struct range { uint32_t first, last; };

/* Characters of these classes or in these ranges (ascending); `except`: all others. */
struct set {
    uint16_t            kinds;
    bool                except;
    uint16_t            n_ranges;
    const struct range *ranges;
};
#define RANGES(array) .n_ranges = COUNT(array), .ranges = array

static bool in_ranges(const struct set *set, uint32_t code) {
    size_t low = 0, high = set->n_ranges;
    while (low < high) {
        const size_t middle = (low + high)/2;
        if (code > set->ranges[middle].last) low = middle + 1;
        else                                 high = middle;
    }
    return low < set->n_ranges && code >= set->ranges[low].first;
}

static bool in_set(const struct set *set, struct character c) {
    return c.length && ((set->kinds >> c.kind & 1) || in_ranges(set, c.code)) != set->except;
}

static bool is(struct character c, unsigned kinds) { return c.length && kinds >> c.kind & 1; }
static bool is_newline(struct character c)         { return c.code == '\n' || c.code == '\r'; }

static const struct range newline_ranges[] = { { '\n', '\n' }, { '\r', '\r' } };
static const struct range space_ranges[]   = { { ' ', ' ' } };
static const struct range digit_ranges[]   = { { '0', '9' } };
static const struct range cjk_ranges[]     = { { 0x800, 0x9fa5 }, { 0xac00, 0xd7ff } };       /* [一-龥ࠀ-一가-퟿] */
static const struct range kana_ranges[]    = { { 0x3040, 0x30ff }, { 0x4e00, 0x9fa5 } };      /* [一-龥぀-ゟ゠-ヿ] */
static const struct range signs_ranges[]   = { { '$', '$' }, { '+', '+' }, { '<', '>' }, { '^', '^' }, { '|', '|' },
                                               { '~', '~' } };
static const struct range signs_tick_ranges[] = { { '$', '$' }, { '+', '+' }, { '<', '>' }, { '^', '^' }, { '`', '`' },
                                               { '|', '|' }, { '~', '~' } };
static const struct range stops_ranges[]   = {                                                /* (|.,!?…。，、।۔،) */
    { '!', '!' }, { '(', ')' }, { ',', ',' }, { '.', '.' }, { '?', '?' }, { '|', '|' }, { 0x60c, 0x60c }, { 0x6d4, 0x6d4 },
    { 0x964, 0x964 }, { 0x2026, 0x2026 }, { 0x3001, 0x3002 }, { 0xff0c, 0xff0c },
};
static const struct range wide_punct_ranges[] = {                                  /* [!-/:-~！-／：-～‘-‟　-。] */
    { '!', '/' }, { ':', '~' }, { 0x2018, 0x201f }, { 0x3000, 0x3002 }, { 0xff01, 0xff0f }, { 0xff1a, 0xff5e },
};
/* The letters that DeepSeek's first tokenizer lists: those with case as of Unicode 11 or so. */
static const struct range cased_ranges[] = {
    { 'A', 'Z' }, { 'a', 'z' }, { 0xb5, 0xb5 }, { 0xc0, 0xd6 }, { 0xd8, 0xf6 }, { 0xf8, 0x1ba }, { 0x1bc, 0x1bf },
    { 0x1c4, 0x293 }, { 0x295, 0x2af }, { 0x370, 0x373 }, { 0x376, 0x377 }, { 0x37b, 0x37d }, { 0x37f, 0x37f },
    { 0x386, 0x386 }, { 0x388, 0x38a }, { 0x38c, 0x38c }, { 0x38e, 0x3a1 }, { 0x3a3, 0x3f5 }, { 0x3f7, 0x481 },
    { 0x48a, 0x52f }, { 0x531, 0x556 }, { 0x10a0, 0x10c5 }, { 0x13a0, 0x13f5 }, { 0x13f8, 0x13fd }, { 0x1c90, 0x1cba },
    { 0x1cbd, 0x1cbf }, { 0x1d00, 0x1d2b }, { 0x1d6b, 0x1d77 }, { 0x1d79, 0x1d9a }, { 0x1e00, 0x1f15 },
    { 0x1f18, 0x1f1d }, { 0x1f20, 0x1f45 }, { 0x1f48, 0x1f4d }, { 0x1f50, 0x1f57 }, { 0x1f59, 0x1f59 },
    { 0x1f5b, 0x1f5b }, { 0x1f5d, 0x1f5d }, { 0x1f5f, 0x1f7d }, { 0x1f80, 0x1fb4 }, { 0x1fb6, 0x1fbc },
    { 0x1fbe, 0x1fbe }, { 0x1fc2, 0x1fc4 }, { 0x1fc6, 0x1fcc }, { 0x1fd0, 0x1fd3 }, { 0x1fd6, 0x1fdb },
    { 0x1fe0, 0x1fec }, { 0x1ff2, 0x1ff4 }, { 0x1ff6, 0x1ffc }, { 0x2102, 0x2102 }, { 0x2107, 0x2107 },
    { 0x210a, 0x2113 }, { 0x2115, 0x2115 }, { 0x2119, 0x211d }, { 0x2124, 0x2124 }, { 0x2126, 0x2126 },
    { 0x2128, 0x2128 }, { 0x212a, 0x212d }, { 0x212f, 0x2134 }, { 0x2139, 0x2139 }, { 0x213c, 0x213f },
    { 0x2145, 0x2149 }, { 0x214e, 0x214e }, { 0x2183, 0x2184 }, { 0x2c00, 0x2c7b }, { 0x2c7e, 0x2ce4 },
    { 0x2ceb, 0x2cee }, { 0x2cf2, 0x2cf3 }, { 0xa640, 0xa66d }, { 0xa680, 0xa69b }, { 0xa722, 0xa76f },
    { 0xa771, 0xa787 }, { 0xa78b, 0xa78e }, { 0xab70, 0xabbf }, { 0xfb00, 0xfb06 }, { 0xfb13, 0xfb17 },
    { 0xff21, 0xff3a }, { 0xff41, 0xff5a }, { 0x10400, 0x1044f }, { 0x104b0, 0x104d3 }, { 0x104d8, 0x104fb },
    { 0x10c80, 0x10cb2 }, { 0x10cc0, 0x10cf2 }, { 0x118a0, 0x118df }, { 0x1e900, 0x1e943 },
};

/* ---- stages ------------------------------------------------------------------------------------------------------ */

enum contraction { NO_CONTRACTION, EXACT, ANY_CASE_ASCII, ANY_CASE };

struct stage {
    size_t (*match)(const struct stage *stage, const char *text, size_t left);  /* bytes matched at text; 0: none */

    /* match_run: lead?body{min,max} */
    struct set lead;
    struct set body;
    uint32_t   min, max;

    /* match_words: the alternatives in their order */
    enum contraction contraction;   /* 's 't 're 've 'm 'll 'd: before all else, or, in cased words, as their ending */
    bool       glued;               /* one of ASCII's signs and the ASCII letters behind it */
    bool       cased;               /* a word ends where an upper case letter follows a lower case one */
    uint16_t   letters;             /* lead?letters+ */
    uint32_t   numbers;             /* N{1,numbers}; 0: not an alternative */
    bool       space_number;        /* with ' '? before them */
    uint16_t   others;              /* ' '?others+tail* */
    const char *tail;
    bool       newlines;            /* W*newline+, then W+ not before something, then W+ */
};

static size_t run_of(const struct set *set, const char *text, size_t left, uint32_t min, uint32_t max) {
    size_t at = 0;
    uint32_t n = 0;
    for (struct character c; n < max && in_set(set, c = char_at(text + at, left - at)); n++) at += c.length;
    return n < min ? 0 : at;
}

static size_t run_of_kinds(unsigned kinds, const char *text, size_t left) {
    size_t at = 0;
    for (struct character c; is(c = char_at(text + at, left - at), kinds); ) at += c.length;
    return at;
}

static size_t match_run(const struct stage *s, const char *text, size_t left) {
    const struct character c = char_at(text, left);
    const size_t led = in_set(&s->lead, c) ? run_of(&s->body, text + c.length, left - c.length, s->min, s->max) : 0;
    return led ? c.length + led : run_of(&s->body, text, left, s->min, s->max);
}

/* W+ at the very end; text is at the start of the piece, so the whole piece is told apart at once. */
static size_t piece_before_last_spaces(const char *text, size_t left) {
    size_t at = 0, spaces = 0;
    for (struct character c; (c = char_at(text + at, left - at)).length; at += c.length) {
        if (c.kind != CHAR_SPACE) spaces = at + c.length;
    }
    return spaces ? spaces : left;
}

static size_t match_contraction(enum contraction kind, const char *text, size_t left) {
    static const char endings[][3] = { "s", "t", "re", "ve", "m", "ll", "d" };
    if (kind == NO_CONTRACTION || left < 2 || text[0] != '\'') return 0;
    for (size_t i = 0; i < COUNT(endings); i++) {
        const size_t n = strlen(endings[i]);
        size_t same = 0;
        while (same < n && same + 1 < left) {
            const char c = text[1 + same];
            const bool fold = kind != EXACT && c >= 'A' && c <= 'Z';
            if ((fold ? c - 'A' + 'a' : c) != endings[i][same]) break;
            same++;
        }
        if (same == n) return n + 1;
    }
    return kind == ANY_CASE && left >= 3 && !memcmp(text + 1, "\xc5\xbf", 2) ? 3 : 0;      /* the long s folds to s */
}

/* [UPPER CASELESS MARK]*[LOWER CASELESS MARK]+, else [UPPER CASELESS MARK]+: `at` is past the first part's longest run.
 * When no lower case follows that run, the second part takes its last character that has no case. */
static size_t match_cased(const char *text, size_t left) {
    size_t at = 0, caseless_end = 0;
    for (struct character c; is(c = char_at(text + at, left - at), UPPERS | CASELESS | MARKS); ) {
        at += c.length;
        if (c.kind != CHAR_UPPER) caseless_end = at;
    }
    const size_t lower = run_of_kinds(LOWERS | CASELESS | MARKS, text + at, left - at);
    return lower ? at + lower : caseless_end;
}

static size_t match_cased_word(const struct stage *s, const char *text, size_t left) {
    const struct character c = char_at(text, left);
    const size_t lead = in_set(&s->lead, c) ? c.length : 0;
    size_t n = lead ? match_cased(text + lead, left - lead) : 0;
    if (n) n += lead;
    if (!n) n = match_cased(text, left);
    if (!n) {
        n = run_of_kinds(UPPERS | CASELESS | MARKS, text + lead, left - lead);
        if (n) n += lead;
    }
    return n ? n + match_contraction(s->contraction, text + n, left - n) : 0;
}

static size_t match_word(const struct stage *s, const char *text, size_t left) {
    const struct character c = char_at(text, left);
    const size_t led = in_set(&s->lead, c) ? run_of_kinds(s->letters, text + c.length, left - c.length) : 0;
    return led ? c.length + led : run_of_kinds(s->letters, text, left);
}

static size_t match_glued(const char *text, size_t left) {
    const char c = left ? text[0] : 0;
    size_t at = 1;
    if (!((c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~'))) return 0;
    while (at < left && ((text[at] >= 'A' && text[at] <= 'Z') || (text[at] >= 'a' && text[at] <= 'z'))) at++;
    return at > 1 ? at : 0;
}

static size_t match_numbers(const struct stage *s, const char *text, size_t left) {
    static const struct set numbers = { .kinds = NUMBERS };
    const size_t lead = s->space_number && left && text[0] == ' ';
    const size_t n = s->numbers ? run_of(&numbers, text + lead, left - lead, 1, s->numbers) : 0;
    return n ? lead + n : 0;
}

static size_t match_others(const struct stage *s, const char *text, size_t left) {
    const size_t lead = left && text[0] == ' ';
    size_t n = run_of_kinds(s->others, text + lead, left - lead);
    if (!n) return 0;
    n += lead;
    while (n < left && text[n] && strchr(s->tail, text[n])) n++;
    return n;
}

static size_t match_spaces(const struct stage *s, const char *text, size_t left) {
    size_t at = 0, last = 0, newline_end = 0;           /* `last`: where the last character begins */
    for (struct character c; is(c = char_at(text + at, left - at), SPACES); ) {
        last = at;
        at += c.length;
        if (is_newline(c)) newline_end = at;
    }
    if (s->newlines && newline_end) return newline_end;
    return at < left && last > 0 ? last : at;
}

static size_t match_words(const struct stage *s, const char *text, size_t left) {
    size_t n = s->cased ? 0 : match_contraction(s->contraction, text, left);
    if (!n && s->glued) n = match_glued(text, left);
    if (!n) n = s->cased ? match_cased_word(s, text, left) : match_word(s, text, left);
    if (!n) n = match_numbers(s, text, left);
    if (!n) n = match_others(s, text, left);
    if (!n) n = match_spaces(s, text, left);
    return n;
}

/* ---- families ---------------------------------------------------------------------------------------------------- */

#define ONE_OR_MORE .min = 1, .max = UINT32_MAX
#define AFTER_ANY  .lead = { LETTERS | NUMBERS, .except = true, RANGES(newline_ranges) }      /* [^\r\nLN]? */
#define AFTER_SPACE .lead = { 0, RANGES(space_ranges) }
#define NOT_LETTERS (ALL & ~(SPACES | LETTERS | NUMBERS))

static const struct stage
    /* 's|'t|'re|'ve|'m|'ll|'d| ?L+| ?N+| ?[^WLN]+|W+(?!\S)|W+ */
    gpt2_words = { match_words, AFTER_SPACE, .contraction = EXACT, .letters = LETTERS, .numbers = UINT32_MAX,
        .space_number = true, .others = NOT_LETTERS, .tail = "" },
    /* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?L+|N{1,3}| ?[^WLN]+[\r\n]*|W*[\r\n]+|W+(?!\S)|W+ */
    llama3_words = { match_words, AFTER_ANY, .contraction = ANY_CASE, .letters = LETTERS, .numbers = 3,
        .others = NOT_LETTERS, .tail = "\r\n", .newlines = true },
    qwen2_words = { match_words, AFTER_ANY, .contraction = ANY_CASE, .letters = LETTERS, .numbers = 1,
        .others = NOT_LETTERS, .tail = "\r\n", .newlines = true },
    /* as before, with marks among the letters */
    qwen35_words = { match_words, AFTER_ANY, .contraction = ANY_CASE, .letters = LETTERS | MARKS, .numbers = 1,
        .others = NOT_LETTERS & ~MARKS, .tail = "\r\n", .newlines = true },
    /* '(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\nLN]?L+|N| ?[^WLN]+[\r\n]*|W*[\r\n]|W+(?!\S)|W+ */
    bailing_words = { match_words, AFTER_ANY, .contraction = ANY_CASE_ASCII, .letters = LETTERS, .numbers = 1,
        .others = NOT_LETTERS, .tail = "\r\n", .newlines = true },
    /* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?L+|N{1}| ?[^WLN\r\n]+|W*[\r\n]+|W+(?!\S)|W+ */
    seed_words = { match_words, AFTER_ANY, .contraction = ANY_CASE, .letters = LETTERS, .numbers = 1,
        .others = NOT_LETTERS, .tail = "", .newlines = true },
    /* with U = [Lu Lt Lm Lo M], V = [Ll Lm Lo M], c = (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
     * [^\r\nLN]?U*V+c|[^\r\nLN]?U+V*c|N{1,3}| ?[^WLN]+[\r\n/]*|W*[\r\n]+|W+(?!\S)|W+ */
    gpt4o_words = { match_words, AFTER_ANY, .contraction = ANY_CASE, .cased = true, .numbers = 3,
        .others = NOT_LETTERS, .tail = "\r\n/", .newlines = true },
    tekken_words = { match_words, AFTER_ANY, .cased = true, .numbers = 1,
        .others = NOT_LETTERS, .tail = "\r\n/", .newlines = true },
    /* [!-/:-@[-`{-~][A-Za-z]+|[^\r\nLPS]?[LM]+| ?[PS]+[\r\n]*|W*[\r\n]+|W+(?!\S)|W+ */
    deepseek3_words = { match_words, .lead = { LETTERS | PUNCTS | SYMBOLS, .except = true, RANGES(newline_ranges) },
        .glued = true, .letters = LETTERS | MARKS, .others = PUNCTS | SYMBOLS, .tail = "\r\n", .newlines = true },

    number          = { match_run, .body = { NUMBERS }, .min = 1, .max = 1 },
    three_numbers   = { match_run, .body = { NUMBERS }, .min = 1, .max = 3 },
    all_numbers     = { match_run, .body = { NUMBERS }, ONE_OR_MORE },
    three_digits    = { match_run, .body = { 0, RANGES(digit_ranges) }, .min = 3, .max = 3 },
    newline         = { match_run, .body = { 0, RANGES(newline_ranges) }, .min = 1, .max = 1 },
    punctuation     = { match_run, .body = { PUNCTS, RANGES(signs_ranges) }, ONE_OR_MORE },
    punctuation_tick = { match_run, .body = { PUNCTS, RANGES(signs_tick_ranges) }, ONE_OR_MORE },
    space_letters   = { match_run, .lead = { SPACES }, .body = { LETTERS }, ONE_OR_MORE },
    space_punct     = { match_run, .lead = { SPACES }, .body = { PUNCTS }, ONE_OR_MORE },
    space_cased     = { match_run, .lead = { SPACES }, .body = { 0, RANGES(cased_ranges) }, ONE_OR_MORE },
    space_wide      = { match_run, .lead = { SPACES }, .body = { 0, RANGES(wide_punct_ranges) }, ONE_OR_MORE },
    last_spaces     = { .match = NULL },     /* W+$ */
    cjk             = { match_run, .body = { 0, RANGES(cjk_ranges) }, ONE_OR_MORE },
    kana            = { match_run, .body = { 0, RANGES(kana_ranges) }, ONE_OR_MORE },
    between_stops   = { match_run, AFTER_SPACE, .body = { SPACES, .except = true, RANGES(stops_ranges) }, ONE_OR_MORE };

struct pre {
    const char *names;              /* values of tokenizer.ggml.pre, each between spaces */
    const struct stage *stages[PRE_MAX_STAGES];
    bool ignores_merges, adds_bos;
};
static const struct pre families[] = {
    { .names = " default ", .stages = { &punctuation, &gpt2_words, &all_numbers, &three_digits } },
    { .names = " gpt-2 gpt2 phi-2 mpt olmo jina-es jina-de jina-v2-es jina-v2-de jais trillion gigachat a.x-4.0 mellum"
               " modern-bert granite-docling roberta-bpe exaone4 ", .stages = { &gpt2_words } },
    { .names = " llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 ", .stages = { &llama3_words },
      .ignores_merges = true, .adds_bos = true },
    { .names = " dbrx smaug-bpe glm4 chatglm-bpe ", .stages = { &llama3_words } },
    { .names = " qwen2 stablelm2 hunyuan megrez deepseek-r1-qwen grok-2 solar-open ", .stages = { &qwen2_words } },
    { .names = " qwen35 ", .stages = { &qwen35_words } },
    { .names = " bailingmoe bailingmoe2 llada-moe ", .stages = { &bailing_words } },
    { .names = " seed-coder ", .stages = { &seed_words } },
    { .names = " gpt-4o llama4 kanana2 ", .stages = { &gpt4o_words } },
    { .names = " tekken ", .stages = { &tekken_words }, .ignores_merges = true, .adds_bos = true },
    { .names = " starcoder refact command-r smollm codeshell exaone minerva-7b ", .stages = { &number, &gpt2_words } },
    { .names = " falcon ", .stages = { &punctuation_tick, &gpt2_words, &three_digits } },
    { .names = " bloom poro-chat gpt3-finnish ", .stages = { &between_stops } },
    { .names = " viking ", .stages = { &between_stops, &number } },
    { .names = " deepseek-llm ", .stages = { &newline, &space_cased, &space_wide, &last_spaces, &cjk, &all_numbers } },
    { .names = " deepseek-coder ", .stages = { &newline, &space_letters, &space_punct, &cjk, &number } },
    { .names = " deepseek-v3 hunyuan-dense joyai-llm ", .stages = { &three_numbers, &kana, &deepseek3_words } },
};

const struct pre *pre_find(const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; n && !strchr(name, ' ') && i < COUNT(families); i++) {
        for (const char *p = families[i].names; (p = strstr(p, name)); p++) {
            if (p[-1] == ' ' && p[n] == ' ') return &families[i];
        }
    }
    return NULL;
}

bool pre_ignores_merges(const struct pre *pre) { return pre->ignores_merges; }
bool pre_adds_bos(const struct pre *pre)       { return pre->adds_bos; }

struct pre_scan pre_begin(const struct pre *pre, const char *text, size_t length) {
    return (struct pre_scan) { .pre = pre, .text = text, .length = length };
}

/* The next piece of a stage: a match, or all characters up to the next one. */
static size_t next_piece(const struct stage *s, const char *text, size_t left) {
    if (!s->match) return piece_before_last_spaces(text, left);
    size_t at = s->match(s, text, left);
    if (at) return at;
    do at += char_length(text + at, left - at); while (at < left && !s->match(s, text + at, left - at));
    return at;
}

size_t pre_next(struct pre_scan *scan) {
    size_t end = scan->length;
    for (int i = 0; i < PRE_MAX_STAGES && scan->pre->stages[i] && scan->at < scan->length; i++) {
        if (scan->ends[i] <= scan->at) {
            scan->ends[i] = scan->at + next_piece(scan->pre->stages[i], scan->text + scan->at, end - scan->at);
        }
        end = scan->ends[i];
    }
    const size_t length = end - scan->at;
    scan->at = end;
    return length;
}
