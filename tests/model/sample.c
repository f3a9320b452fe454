/* Samplers against values worked out from their definitions in double precision, and against any input at all: NaN, infinities,
 * no candidates, parameters that switch them off. */

#include <time.h>

#include "vocabs.h"

enum { N = 8 };
static const float logits[N] = { 1.0f, 3.0f, 2.0f, 0.5f, -1.0f, 2.5f, 2.75f, -2.0f };
static const float probabilities[N] = { 0.0451767f, 0.3338135f, 0.1228031f, 0.0274011f, 0.0061140f, 0.2024681f, 0.2599742f,
    0.0022492f };

static llama_token_data data[N];
static llama_token_data_array candidates_of(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++) data[i] = (llama_token_data) { (llama_token) i, values[i], 0.0f };
    return (llama_token_data_array) { data, n, -1, false };
}

static bool near(float a, double b) { return fabs((double) a - b) <= 1e-5*(1.0 + fabs(b)); }

/* Ids left, in their order, as "1 6 5"; those at -inf are gone. */
static const char *left(const llama_token_data_array *c) {
    static char out[256];
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].logit == -INFINITY) continue;
        at += (size_t) snprintf(out + at, sizeof out - at, "%s%d", at ? " " : "", (int) c->data[i].id);
    }
    return out;
}

/* Applies the sampler once to the eight logits and frees it. */
static llama_token_data_array once(struct llama_sampler *s) {
    llama_token_data_array c = candidates_of(logits, N);
    llama_sampler_apply(s, &c);
    llama_sampler_free(s);
    return c;
}

#define LEFT(sampler, want) do { \
    const llama_token_data_array c_ = once(sampler); \
    CHECK(!strcmp(left(&c_), want), "%s", left(&c_)); \
} while (0)

static void cuts(void) {
    LEFT(llama_sampler_init_top_k(3), "1 6 5");
    LEFT(llama_sampler_init_top_k(1), "1");
    LEFT(llama_sampler_init_top_k(100), "1 6 5 2 0 3 4 7");
    LEFT(llama_sampler_init_top_k(0), "0 1 2 3 4 5 6 7");
    LEFT(llama_sampler_init_top_k(-5), "0 1 2 3 4 5 6 7");

    LEFT(llama_sampler_init_top_p(0.5f, 0), "1 6");             /* sums: 0.334 0.594 0.796 0.919 */
    LEFT(llama_sampler_init_top_p(0.33f, 0), "1");
    LEFT(llama_sampler_init_top_p(0.33f, 3), "1 6 5");
    LEFT(llama_sampler_init_top_p(0.9f, 1), "1 6 5 2");
    LEFT(llama_sampler_init_top_p(0.0f, 0), "1");
    LEFT(llama_sampler_init_top_p(1.0f, 0), "0 1 2 3 4 5 6 7");
    LEFT(llama_sampler_init_top_p(NAN, 0), "0 1 2 3 4 5 6 7");

    LEFT(llama_sampler_init_min_p(0.3f, 0), "1 2 5 6");
    LEFT(llama_sampler_init_min_p(0.9f, 3), "1 6 5");           /* too few: the best three */
    LEFT(llama_sampler_init_min_p(2.0f, 0), "1");
    LEFT(llama_sampler_init_min_p(0.0f, 0), "0 1 2 3 4 5 6 7");
    LEFT(llama_sampler_init_min_p(0.5f, 100), "1 6 5 2 0 3 4 7");

    LEFT(llama_sampler_init_typical(0.4f, 0), "5 6");           /* in order of |surprise - 1.5808|: 5 6 1 2 0 3 4 7 */
    LEFT(llama_sampler_init_typical(0.5f, 0), "5 6 1");
    LEFT(llama_sampler_init_typical(0.1f, 4), "5 6 1 2");
    LEFT(llama_sampler_init_typical(1.0f, 0), "0 1 2 3 4 5 6 7");

    LEFT(llama_sampler_init_top_n_sigma(1.0f), "1 2 5 6");      /* deviation 1.71363: at least 1.28637 */
    LEFT(llama_sampler_init_top_n_sigma(0.0f), "0 1 2 3 4 5 6 7");

    LEFT(llama_sampler_init_xtc(1.0f, 0.2f, 0, 1), "5 2 0 3 4 7");      /* 1, 6 and 5 have 0.2; 5 the least of them */
    LEFT(llama_sampler_init_xtc(1.0f, 0.2f, 7, 1), "1 6 5 2 0 3 4 7");  /* six would be left */
    LEFT(llama_sampler_init_xtc(1.0f, 0.33f, 0, 1), "1 6 5 2 0 3 4 7"); /* one alone is no choice */
    LEFT(llama_sampler_init_xtc(0.0f, 0.1f, 0, 1), "0 1 2 3 4 5 6 7");
    LEFT(llama_sampler_init_xtc(1.0f, 0.6f, 0, 1), "0 1 2 3 4 5 6 7");
}

static void temperatures(void) {
    llama_token_data_array c = once(llama_sampler_init_temp(0.5f));
    for (int i = 0; i < N; i++) CHECK(c.data[i].logit == logits[i]/0.5f, "temp, %d: %g", i, (double) c.data[i].logit);
    LEFT(llama_sampler_init_temp(0.0f), "1");
    LEFT(llama_sampler_init_temp(-1.0f), "1");
    c = once(llama_sampler_init_temp_ext(1.0f, 0.5f, 1.0f));           /* entropy 1.58076 of ln 8: 1.2601858 */
    for (int i = 0; i < N; i++) CHECK(near(c.data[i].logit, logits[i]/1.2601857747676313), "temp-ext, %d", i);
    c = once(llama_sampler_init_temp_ext(1.0f, 0.5f, 2.0f));
    for (int i = 0; i < N; i++) CHECK(near(c.data[i].logit, logits[i]/1.0778824121590638), "temp-ext squared, %d", i);
    c = once(llama_sampler_init_temp_ext(2.0f, 0.0f, 1.0f));
    for (int i = 0; i < N; i++) CHECK(c.data[i].logit == logits[i]/2.0f, "temp-ext without a range, %d", i);
}

static void choices(void) {
    llama_token_data_array c = once(llama_sampler_init_greedy());
    CHECK(c.selected == 1, "greedy: %" PRId64, c.selected);
    const float ties[] = { 1.0f, 7.0f, 7.0f, NAN };
    c = candidates_of(ties, 4);
    struct llama_sampler *s = llama_sampler_init_greedy();
    llama_sampler_apply(s, &c);
    CHECK(c.selected == 1, "of equal ones the first, never NaN: %" PRId64, c.selected);
    llama_sampler_free(s);

    c = once(llama_sampler_init_dist(1));
    for (int i = 0; i < N; i++) CHECK(near(c.data[i].p, probabilities[i]), "p of %d: %g", i, (double) c.data[i].p);

    /* Frequencies of 20,000 draws lie within five deviations. */
    int seen[N] = { 0 };
    enum { DRAWS = 20000 };
    s = llama_sampler_init_dist(42);
    for (int i = 0; i < DRAWS; i++) {
        c = candidates_of(logits, N);
        llama_sampler_apply(s, &c);
        seen[c.data[c.selected].id]++;
    }
    for (int i = 0; i < N; i++) {
        const double p = probabilities[i], deviation = sqrt(DRAWS*p*(1.0 - p));
        CHECK(fabs(seen[i] - DRAWS*p) < 5.0*deviation + 1.0, "%d drawn %d times, %.0f expected", i, seen[i], DRAWS*p);
    }
    llama_sampler_free(s);
}

static int32_t draw(struct llama_sampler *s) {
    llama_token_data_array c = candidates_of(logits, N);
    llama_sampler_apply(s, &c);
    llama_sampler_accept(s, c.data[c.selected].id);
    return c.data[c.selected].id;
}

/* One seed is one sequence; a reset starts it anew; a clone and a copy go on as the original does. */
static void seeds(void) {
    struct llama_sampler *made[] = { llama_sampler_init_dist(7), llama_sampler_init_mirostat(N, 7, 2.0f, 0.1f, 4),
        llama_sampler_init_mirostat_v2(7, 2.0f, 0.1f), llama_sampler_init_adaptive_p(0.3f, 0.9f, 7) };
    for (size_t k = 0; k < sizeof made/sizeof *made; k++) {
        struct llama_sampler *s = made[k];
        int32_t first[40];
        for (int i = 0; i < 40; i++) first[i] = draw(s);
        llama_sampler_reset(s);
        struct llama_sampler *other = llama_sampler_clone(s);
        for (int i = 0; i < 20; i++) CHECK(draw(s) == first[i], "%s after a reset, %d", llama_sampler_name(s), i);
        for (int i = 0; i < 40; i++) CHECK(draw(other) == first[i], "%s cloned, %d", llama_sampler_name(s), i);
        llama_sampler_copy(s, other);
        for (int i = 20; i < 40; i++) CHECK(draw(other) == first[i], "%s copied, %d", llama_sampler_name(s), i);
        CHECK(llama_sampler_get_seed(s) == 7, "%s: seed %u", llama_sampler_name(s), llama_sampler_get_seed(s));
        llama_sampler_free(other);
        llama_sampler_free(s);
    }
    struct llama_sampler *any = llama_sampler_init_dist(LLAMA_DEFAULT_SEED), *none = llama_sampler_init_top_k(1);
    CHECK(llama_sampler_get_seed(any) != LLAMA_DEFAULT_SEED, "a seed is found");
    CHECK(llama_sampler_get_seed(none) == LLAMA_DEFAULT_SEED, "no seed");
    llama_sampler_free(any);
    llama_sampler_free(none);
}

static void mirostats(void) {
    /* fit 0.5751580 over the best four; with mu = 2 tau = 3 the number to keep is 4.56 */
    LEFT(llama_sampler_init_mirostat(N, 1, 1.5f, 0.1f, 4), "1 6 5 2");
    LEFT(llama_sampler_init_mirostat(N, 1, 1.0f, 0.1f, 4), "1");                      /* 1.37 */
    LEFT(llama_sampler_init_mirostat(N, 1, 3.0f, 0.1f, 4), "1 6 5 2 0 3 4 7");        /* 169.7 */
    /* surprises in bits: 1.583 1.944 2.304 3.026 4.468 5.190 7.354 8.796 */
    LEFT(llama_sampler_init_mirostat_v2(1, 1.0f, 0.1f), "1 6");
    LEFT(llama_sampler_init_mirostat_v2(1, 1.2f, 0.1f), "1 6 5");
    LEFT(llama_sampler_init_mirostat_v2(1, 0.1f, 0.1f), "1");
    /* drawing the only candidate (0 bits) raises mu = 0.2 by rate*tau: after 18 draws 2.0 */
    struct llama_sampler *s = llama_sampler_init_mirostat_v2(1, 0.1f, 1.0f);
    for (int i = 0; i < 18; i++) (void) draw(s);
    llama_token_data_array c = candidates_of(logits, N);
    llama_sampler_apply(s, &c);
    CHECK(c.size == 2, "%zu left", c.size);
    llama_sampler_free(s);
}

static void penalties(void) {
    struct llama_sampler *s = llama_sampler_init_penalties(N, 3, 2.0f, 0.25f, 0.5f);
    static const llama_token line[] = { 7, 1, 4, 1, 99, -1 };       /* 7 falls out; strange ids leave no trace */
    for (int i = 0; i < 6; i++) llama_sampler_accept(s, line[i]);
    for (int again = 0; again < 2; again++) {
        llama_token_data_array c = candidates_of(logits, N);
        llama_sampler_apply(s, &c);
        for (int i = 0; i < N; i++) {
            const float want = i == 1 ? 3.0f/2.0f - 2*0.25f - 0.5f : i == 4 ? -1.0f*2.0f - 0.25f - 0.5f : logits[i];
            CHECK(c.data[i].logit == want, "penalties, %d: %g", i, (double) c.data[i].logit);
        }
        struct llama_sampler *clone = llama_sampler_clone(s);
        llama_sampler_free(s);
        s = clone;
    }
    llama_sampler_reset(s);
    llama_token_data_array c = candidates_of(logits, N);
    llama_sampler_apply(s, &c);
    CHECK(c.data[1].logit == 3.0f, "nothing after a reset");
    llama_sampler_free(s);
    for (int last = -1; last < 1; last++) {
        s = llama_sampler_init_penalties(N, last, 2.0f, 0.0f, 0.0f);
        llama_sampler_accept(s, 1);
        c = candidates_of(logits, N);
        llama_sampler_apply(s, &c);
        CHECK(c.data[1].logit == (last ? 1.5f : 3.0f), "last_n %d", last);
        llama_sampler_free(s);
    }
}

static void biases(void) {
    const llama_logit_bias list[] = { { 2, 10.0f }, { 4, -INFINITY }, { 99, 1.0f }, { -1, 1.0f } };
    struct llama_sampler *s = llama_sampler_init_logit_bias(N, 4, list), *clone = llama_sampler_clone(s);
    llama_token_data_array c = candidates_of(logits, N);
    llama_sampler_apply(clone, &c);
    CHECK(c.data[2].logit == 12.0f && c.data[4].logit == -INFINITY && c.data[1].logit == 3.0f, "in order of ids");
    c = candidates_of(logits, N);
    data[0].id = 2;
    data[2].id = 0;
    llama_sampler_apply(s, &c);
    CHECK(c.data[0].logit == 11.0f && c.data[2].logit == 2.0f, "in another order");
    llama_sampler_free(s);
    llama_sampler_free(clone);
}

/* ids: 0 to 255 bytes, 256 "ab", 257 "b\n" */
static struct llama_vocab *vocabulary(struct gguf_context **g) {
    static struct small small;
    small_bpe(&small);
    small_add(&small, "ab", 0, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&small, "b\xc4\x8a", 0, LLAMA_TOKEN_TYPE_NORMAL);
    small_add(&small, "<|im_end|>", 0, LLAMA_TOKEN_TYPE_CONTROL);
    *g = small_gguf(&small, "gpt2");
    gguf_set_val_str(*g, "tokenizer.ggml.pre", "gpt-2");
    return vocab_new(*g);
}

/* What the token loses to DRY (multiplier 2, base 3, from 2 tokens on) after this text, a byte a token. */
static double dry_loss(const struct llama_vocab *v, const char *breaker, const char *text, llama_token token, int32_t last_n) {
    const char *breakers[] = { breaker };
    struct llama_sampler *s = llama_sampler_init_dry(v, 2.0f, 3.0f, 2, last_n, breakers, breaker ? 1 : 0);
    for (; *text; text++) llama_sampler_accept(s, *text == '#' ? 257 : (unsigned char) *text);
    struct llama_sampler *clone = llama_sampler_clone(s);
    llama_token_data x[2] = { { token, 0.0f, 0.0f }, { 200, 0.0f, 0.0f } };
    llama_token_data_array c = { x, 2, -1, false };
    llama_sampler_apply(clone, &c);
    CHECK(x[1].logit == 0.0f, "a token that was not seen");
    llama_sampler_free(s);
    llama_sampler_free(clone);
    return -x[0].logit;
}

static void dry(void) {
    struct gguf_context *g;
    struct llama_vocab *v = vocabulary(&g);
    CHECK(dry_loss(v, NULL, "abcXab", 'c', -1) == 2.0, "ab, c went on: 2*3^0");
    CHECK(dry_loss(v, NULL, "xabcXxab", 'c', -1) == 6.0, "xab: 2*3^1");
    CHECK(dry_loss(v, NULL, "bcXab", 'c', -1) == 0.0, "b alone is too short");
    CHECK(dry_loss(v, NULL, "abcXab", 'X', -1) == 0.0, "another token");
    CHECK(dry_loss(v, NULL, "aaaaaa", 'a', -1) == 2.0*27.0, "five of six are repeated: 2*3^3");
    CHECK(dry_loss(v, NULL, "xabcXxab", 'c', 4) == 0.0, "the last four alone");
    CHECK(dry_loss(v, NULL, "xabcXxab", 'c', 0) == 0.0, "off");
    CHECK(dry_loss(v, "a", "xabcXxab", 'c', -1) == 0.0, "only b since the breaker");
    CHECK(dry_loss(v, "x", "xabcXxab", 'c', -1) == 2.0, "ab since the breaker");
    CHECK(dry_loss(v, "\n", "ab#cdXab#cd", 'X', -1) == 2.0, "a token that holds a breaker: cd");
    CHECK(dry_loss(v, "\nc", "ab#cdeXab#cde", 'X', -1) == 2.0, "a breaker over two tokens: de");
    CHECK(dry_loss(v, "\nx", "ab#cdXab#cd", 'X', -1) == 2.0*27.0, "half of a breaker is none: ab#cd");
    CHECK(dry_loss(v, "c", "abcXab", 'c', -1) == 0.0, "a breaker may be repeated");
    CHECK(dry_loss(v, "", "xabcXxab", 'c', -1) == 6.0, "an empty breaker");
    vocab_free(v);
    gguf_free(g);
}

static void infill(void) {
    struct gguf_context *g;
    struct llama_vocab *v = vocabulary(&g);
    struct llama_sampler *s = llama_sampler_init_infill(v);
    llama_token_data x[3] = { { 'a', 2.0f, 0 }, { 256, 2.1f, 0 }, { 'z', 1.9f, 0 } };
    llama_token_data_array c = { x, 3, -1, false };
    llama_sampler_apply(s, &c);
    CHECK(c.size == 1 && c.data[0].id == 256 && near(c.data[0].p, 1.0), "ab takes what a had, z is no clear choice");
    llama_token_data y[2] = { { 258, 0.0f, 0 }, { 'a', 1.0f, 0 } };
    c = (llama_token_data_array) { y, 2, -1, false };
    llama_sampler_apply(s, &c);
    CHECK(c.size == 1 && c.data[0].id == 258, "the end is likely enough");
    c.size = 0;
    llama_sampler_apply(s, &c);
    CHECK(c.size == 0, "none");
    llama_sampler_free(s);
    vocab_free(v);
    gguf_free(g);
}

static struct llama_sampler *make(int i) {
    static const llama_logit_bias bias = { 3, 1.0f };
    switch (i) {
        case 0: return llama_sampler_init_greedy();
        case 1: return llama_sampler_init_dist(1);
        case 2: return llama_sampler_init_top_k(3);
        case 3: return llama_sampler_init_top_p(0.7f, 2);
        case 4: return llama_sampler_init_min_p(0.2f, 2);
        case 5: return llama_sampler_init_typical(0.7f, 2);
        case 6: return llama_sampler_init_temp(0.7f);
        case 7: return llama_sampler_init_temp_ext(0.7f, 0.5f, 1.0f);
        case 8: return llama_sampler_init_xtc(1.0f, 0.1f, 1, 1);
        case 9: return llama_sampler_init_top_n_sigma(1.0f);
        case 10: return llama_sampler_init_mirostat(N, 1, 2.0f, 0.1f, 5);
        case 11: return llama_sampler_init_mirostat_v2(1, 2.0f, 0.1f);
        case 12: return llama_sampler_init_adaptive_p(0.5f, 0.9f, 1);
        case 13: return llama_sampler_init_penalties(N, 4, 1.5f, 0.1f, 0.1f);
        case 14: return llama_sampler_init_logit_bias(N, 1, &bias);
        case 15: return llama_sampler_init_temp(0.0f);
        case 16: return llama_sampler_init_adaptive_p(-1.0f, 0.9f, 1);
        default: return NULL;
    }
}

/* Any logits: sizes shrink at most, ids stay those that were there, and what is chosen is one of them. */
static void any_logits(void) {
    static const float strange[] = { NAN, INFINITY, -INFINITY, 3.4e38f, -3.4e38f, 0.0f, -0.0f, 1.0f, 1e-45f };
    uint64_t seed = 3;
    struct llama_sampler *s;
    for (int k = 0; (s = make(k)); k++) {
        for (int i = 0; i < 3000; i++) {
            float values[N];
            const size_t n = rnd_u64(&seed)%(N + 1);
            for (size_t j = 0; j < n; j++) {
                values[j] = rnd_u64(&seed)%4 ? strange[rnd_u64(&seed)%(i%9 + 1)] : 4.0f*rnd_f32(&seed);
            }
            llama_token_data_array c = candidates_of(values, n);
            llama_sampler_apply(s, &c);
            unsigned ids = 0;
            CHECK(c.size <= n && (n == 0 || c.size > 0), "%s: %zu of %zu", llama_sampler_name(s), c.size, n);
            for (size_t j = 0; j < c.size; j++) {
                CHECK(c.data[j].id >= 0 && (size_t) c.data[j].id < n && !(ids >> c.data[j].id & 1), "%s", llama_sampler_name(s));
                ids |= 1u << c.data[j].id;
            }
            CHECK(c.selected >= -1 && c.selected < (int64_t) c.size, "%s: %" PRId64, llama_sampler_name(s), c.selected);
            llama_sampler_accept(s, (llama_token) (rnd_u64(&seed)%(N + 2)) - 1);
        }
        llama_sampler_free(s);
    }
}

static void chains(void) {
    struct llama_sampler_chain_params params = llama_sampler_chain_default_params();
    params.no_perf = false;
    struct llama_sampler *chain = llama_sampler_chain_init(params);
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(4));
    llama_sampler_chain_add(chain, llama_sampler_init_temp(0.8f));
    llama_sampler_chain_add(chain, llama_sampler_init_dist(11));
    CHECK(llama_sampler_chain_n(chain) == 3 && llama_sampler_get_seed(chain) == 11, "three, with a seed");
    CHECK(!strcmp(llama_sampler_name(llama_sampler_chain_get(chain, 1)), "temp"), "the second");
    CHECK(llama_sampler_chain_get(chain, -1) == chain && !llama_sampler_chain_get(chain, 3), "itself, none");
    struct llama_sampler *clone = llama_sampler_clone(chain);
    for (int i = 0; i < 50; i++) CHECK(draw(chain) == draw(clone), "a clone draws the same");
    CHECK(llama_perf_sampler(chain).n_sample == 50, "%d counted", llama_perf_sampler(chain).n_sample);
    llama_perf_sampler_reset(chain);
    CHECK(llama_perf_sampler(chain).n_sample == 0, "reset");
    struct llama_sampler *taken = llama_sampler_chain_remove(chain, 0);
    CHECK(llama_sampler_chain_n(chain) == 2 && !strcmp(llama_sampler_name(taken), "top-k"), "taken out");
    CHECK(!llama_sampler_chain_remove(chain, 2) && !llama_sampler_chain_remove(chain, -1), "nothing there");
    llama_sampler_free(taken);
    llama_sampler_free(chain);
    llama_sampler_free(clone);
    llama_sampler_free(NULL);
}

/* 262,144 candidates: the best 40 are found without putting all in order. */
static void large_vocabulary(void) {
    enum { LARGE = 262144, TIMES = 20 };
    llama_token_data *x = malloc(LARGE*sizeof *x);
    uint64_t seed = 5;
    double seconds = 0.0;
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < LARGE; i++) x[i] = (llama_token_data) { i, 10.0f*rnd_f32(&seed)*rnd_f32(&seed), 0.0f };
        llama_token_data_array c = { x, LARGE, -1, false };
        float least = INFINITY;
        struct llama_sampler *s = llama_sampler_init_top_k(40);
        const clock_t start = clock();
        llama_sampler_apply(s, &c);
        seconds += (double) (clock() - start)/CLOCKS_PER_SEC;
        llama_sampler_free(s);
        CHECK(c.size == 40 && c.sorted, "40");
        for (size_t i = 0; i < c.size; i++) {
            CHECK(c.data[i].logit <= least, "in order");
            least = c.data[i].logit;
        }
        size_t above = 0;
        for (int i = 0; i < LARGE; i++) above += x[i].logit > least;
        CHECK(above < 40, "%zu are above the last", above);
    }
    fprintf(stderr, "top-k 40 of %d: %.3f ms\n", LARGE, 1e3*seconds/TIMES);
    free(x);
}

int main(void) {
    cuts();
    temperatures();
    choices();
    seeds();
    mirostats();
    penalties();
    biases();
    dry();
    infill();
    any_logits();
    chains();
    large_vocabulary();
    return DONE();
}
