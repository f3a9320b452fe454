/* Samplers that change the candidates by the values of their logits alone, and those that choose one. Each cites where it
 * comes from; with a parameter that switches it off a sampler leaves everything as it is. */

#include <math.h>

#include "sampler.h"

#define STATE(s) ((struct plain_sampler *) (s)->ctx)
#define NAMED(tag, text) static const char *tag##_name(const struct llama_sampler *s) { (void) s; return text; }
#define PLAIN .clone = plain_sampler_clone, .free = plain_sampler_free, .copy_state = plain_sampler_copy

static struct llama_sampler *seeded(struct llama_sampler_i *iface, struct plain_sampler state) {
    state.seed_now = seed_or_random(state.seed);
    state.random   = random_seeded(state.seed_now);
    return plain_sampler_new(iface, &state);
}

static struct llama_sampler *unseeded(struct llama_sampler_i *iface, struct plain_sampler state) {
    state.seed = state.seed_now = LLAMA_DEFAULT_SEED;
    return plain_sampler_new(iface, &state);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

NAMED(greedy, "greedy")
static void greedy_apply(struct llama_sampler *s, llama_token_data_array *c) {
    (void) s;
    c->selected = candidates_best(c);
}
static struct llama_sampler_i greedy = { .name = greedy_name, .apply = greedy_apply };
struct llama_sampler *llama_sampler_init_greedy(void) { return llama_sampler_init(&greedy, NULL); }

NAMED(dist, "dist")
static void dist_apply(struct llama_sampler *s, llama_token_data_array *c) {
    candidates_softmax(c);
    c->selected = candidates_draw(c, &STATE(s)->random);
}
static struct llama_sampler_i dist = { .name = dist_name, .apply = dist_apply, .reset = plain_sampler_reseed, PLAIN };
struct llama_sampler *llama_sampler_init_dist(uint32_t seed) {
    return seeded(&dist, (struct plain_sampler) { .seed = seed });
}

/* ---- keeping the best -------------------------------------------------------------------------------------------- */

NAMED(top_k, "top-k")
static void top_k(llama_token_data_array *c, int32_t k) {
    if (k <= 0) return;
    candidates_sort(c, (size_t) k);
    candidates_cut(c, (size_t) k);
    c->sorted = true;
}
static void top_k_apply(struct llama_sampler *s, llama_token_data_array *c) { top_k(c, STATE(s)->k); }
static struct llama_sampler_i top_k_iface = { .name = top_k_name, .apply = top_k_apply, PLAIN };
struct llama_sampler *llama_sampler_init_top_k(int32_t k) {
    return unseeded(&top_k_iface, (struct plain_sampler) { .k = k });
}

/* The shortest beginning with a sum of p (Holtzman et al. 2019). The order is made piece by piece: mostly a few hundred
 * candidates hold nearly all of the probability. */
NAMED(top_p, "top-p")
static void top_p_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct plain_sampler *state = STATE(s);
    if (!(state->p < 1.0f) || c->size == 0) return;
    candidates_softmax(c);
    const bool was_sorted = c->sorted;
    double sum = 0.0;
    size_t keep = 0;
    for (size_t ordered = was_sorted ? c->size : 0; keep < c->size; ) {
        if (keep == ordered) {
            ordered = ordered ? 8*ordered : 128;
            candidates_sort(c, ordered);
        }
        sum += c->data[keep++].p;
        if (sum >= state->p && keep >= state->min_keep) break;
    }
    candidates_cut(c, keep);
    c->sorted = true;
}
static struct llama_sampler_i top_p = { .name = top_p_name, .apply = top_p_apply, PLAIN };
struct llama_sampler *llama_sampler_init_top_p(float p, size_t min_keep) {
    return unseeded(&top_p, (struct plain_sampler) { .p = p, .min_keep = min_keep });
}

/* Keeps what has at least p of the largest probability (Nguyen et al. 2024): as logits, largest + log p. */
NAMED(min_p, "min-p")
static void min_p_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct plain_sampler *state = STATE(s);
    const int64_t best = candidates_best(c);
    if (!(state->p > 0.0f) || best < 0) return;
    const float least = c->data[best].logit + logf(state->p);
    size_t keep = 0, n = 0;
    for (size_t i = 0; i < c->size; i++) keep += c->data[i].logit >= least;
    if (keep < state->min_keep || keep == 0) {
        top_k(c, state->min_keep > INT32_MAX ? INT32_MAX : state->min_keep ? (int32_t) state->min_keep : 1);
        return;
    }
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].logit >= least) c->data[n++] = c->data[i];
    }
    candidates_cut(c, n);
}
static struct llama_sampler_i min_p = { .name = min_p_name, .apply = min_p_apply, PLAIN };
struct llama_sampler *llama_sampler_init_min_p(float p, size_t min_keep) {
    return unseeded(&min_p, (struct plain_sampler) { .p = p, .min_keep = min_keep });
}

/* Keeps those whose surprise is nearest to the entropy, up to a sum of p (Meister et al. 2022). The logit holds the distance
 * while they are put in order; p holds log p, from which the logit comes back up to a constant. */
NAMED(typical, "typical")
static void typical_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct plain_sampler *state = STATE(s);
    if (!(state->p < 1.0f) || c->size == 0) return;
    candidates_softmax(c);
    const double entropy = candidates_entropy(c);
    for (size_t i = 0; i < c->size; i++) {
        const float log_p = logf(c->data[i].p);
        c->data[i].logit = (float) -fabs(-(double) log_p - entropy);
        c->data[i].p     = log_p;
    }
    c->sorted = false;
    candidates_sort(c, c->size);
    double sum = 0.0;
    size_t keep = 0;
    while (keep < c->size) {
        sum += exp(c->data[keep++].p);
        if (sum > state->p && keep >= state->min_keep) break;
    }
    candidates_cut(c, keep);
    for (size_t i = 0; i < c->size; i++) {
        c->data[i].logit = c->data[i].p;
        c->data[i].p     = expf(c->data[i].logit);
    }
    c->sorted = false;
}
static struct llama_sampler_i typical = { .name = typical_name, .apply = typical_apply, PLAIN };
struct llama_sampler *llama_sampler_init_typical(float p, size_t min_keep) {
    return unseeded(&typical, (struct plain_sampler) { .p = p, .min_keep = min_keep });
}

/* Leaves out all but the least likely of those with at least t, with probability p ("exclude top choices"). */
NAMED(xtc, "xtc")
static void xtc_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct plain_sampler *state = STATE(s);
    if (!(state->p > 0.0f) || !(state->t <= 0.5f) || c->size < 2) return;
    if (random_unit(&state->random) > state->p) return;
    candidates_softmax(c);
    candidates_sort(c, c->size);
    size_t above = 0;
    while (above < c->size && c->data[above].p >= state->t) above++;
    const size_t skip = above ? above - 1 : 0;
    if (skip == 0 || c->size - skip < state->min_keep) return;
    c->data += skip;
    c->size -= skip;
}
static struct llama_sampler_i xtc = { .name = xtc_name, .apply = xtc_apply, .reset = plain_sampler_reseed, PLAIN };
struct llama_sampler *llama_sampler_init_xtc(float p, float t, size_t min_keep, uint32_t seed) {
    return seeded(&xtc, (struct plain_sampler) { .p = p, .t = t, .min_keep = min_keep, .seed = seed });
}

/* Keeps logits within n standard deviations of the largest (Tang et al. 2024); others become -inf. */
NAMED(top_n_sigma, "top-n-sigma")
static void top_n_sigma_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const float n = STATE(s)->p;
    const int64_t best = candidates_best(c);
    if (!(n > 0.0f) || c->size < 2 || !isfinite(c->data[best].logit)) return;
    double sum = 0.0, squares = 0.0;
    size_t finite = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (!isfinite(c->data[i].logit)) continue;
        sum += c->data[i].logit;
        finite++;
    }
    const double mean = sum/(double) finite;
    for (size_t i = 0; i < c->size; i++) {
        const double d = c->data[i].logit - mean;
        if (isfinite(c->data[i].logit)) squares += d*d;
    }
    const double least = c->data[best].logit - n*sqrt(squares/(double) finite);
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].logit >= least)) c->data[i].logit = -INFINITY;
    }
}
static struct llama_sampler_i top_n_sigma = { .name = top_n_sigma_name, .apply = top_n_sigma_apply, PLAIN };
struct llama_sampler *llama_sampler_init_top_n_sigma(float n) {
    return unseeded(&top_n_sigma, (struct plain_sampler) { .p = n });
}

/* ---- temperature ------------------------------------------------------------------------------------------------- */

/* Divides the logits, in float. At 0 or below the best one alone stays possible. */
static void temperature(llama_token_data_array *c, float t) {
    const int64_t best = candidates_best(c);
    for (size_t i = 0; i < c->size; i++) {
        if (t > 0.0f)                 c->data[i].logit /= t;
        else if ((int64_t) i != best) c->data[i].logit = -INFINITY;
    }
}
NAMED(temp, "temp")
static void temp_apply(struct llama_sampler *s, llama_token_data_array *c) {
    if (STATE(s)->t != 1.0f) temperature(c, STATE(s)->t);
}
static struct llama_sampler_i temp = { .name = temp_name, .apply = temp_apply, PLAIN };
struct llama_sampler *llama_sampler_init_temp(float t) {
    return unseeded(&temp, (struct plain_sampler) { .t = t });
}

/* A temperature in t - delta .. t + delta that rises with the entropy, as a share of the largest possible one, to the power
 * of exponent (Zhang et al. 2024, "entropy-based dynamic temperature"). */
NAMED(temp_ext, "temp-ext")
static void temp_ext_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct plain_sampler *state = STATE(s);
    if (!(state->delta > 0.0f)) { temp_apply(s, c); return; }
    if (c->size < 2) return;
    const double low = fmax(0.0, (double) state->t - state->delta), high = (double) state->t + state->delta;
    candidates_softmax(c);
    const double share = candidates_entropy(c)/log((double) c->size);
    temperature(c, (float) (low + (high - low)*pow(share, state->exponent)));
    candidates_softmax(c);
}
static struct llama_sampler_i temp_ext = { .name = temp_ext_name, .apply = temp_ext_apply, PLAIN };
struct llama_sampler *llama_sampler_init_temp_ext(float t, float delta, float exponent) {
    return unseeded(&temp_ext, (struct plain_sampler) { .t = t, .delta = delta, .exponent = exponent });
}

/* ---- mirostat (Basu et al. 2021) --------------------------------------------------------------------------------- */

/* Draws, and moves the bound by the difference of the surprise drawn and the target. */
static void mirostat_draw(struct plain_sampler *state, llama_token_data_array *c) {
    candidates_softmax(c);
    c->selected = candidates_draw(c, &state->random);
    if (c->selected < 0) return;
    const float p = c->data[c->selected].p;
    if (p > 0.0f) state->mu -= state->eta*(-log2f(p) - state->tau);
}

static void mirostat_reset(struct llama_sampler *s) {
    plain_sampler_reseed(s);
    STATE(s)->mu = 2.0f*STATE(s)->tau;
}

/* Version 1: the exponent of Zipf's law is fitted to the m most likely, which gives the number k to keep. */
NAMED(mirostat, "mirostat")
static void mirostat_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct plain_sampler *state = STATE(s);
    if (c->size == 0) return;
    candidates_softmax(c);
    candidates_sort(c, c->size);
    double with_b = 0.0, squares = 0.0;
    for (size_t i = 0; i + 1 < c->size && i + 1 < (size_t) (state->k > 0 ? state->k : 0); i++) {
        if (!(c->data[i + 1].p > 0.0f)) break;
        const double t = log((double) (i + 2)/(double) (i + 1)), b = log((double) c->data[i].p/c->data[i + 1].p);
        with_b  += t*b;
        squares += t*t;
    }
    const double fit = squares > 0.0 ? with_b/squares : 1.0, epsilon = fit - 1.0;
    const double k = pow(epsilon*pow(2.0, state->mu)/(1.0 - pow(state->n_vocab, -epsilon)), 1.0/fit);
    if (k < (double) c->size) top_k(c, k >= 1.0 ? (int32_t) k : 1);     /* a NaN keeps all */
    mirostat_draw(state, c);
}
static struct llama_sampler_i mirostat = { .name = mirostat_name, .apply = mirostat_apply, .reset = mirostat_reset, PLAIN };
struct llama_sampler *llama_sampler_init_mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta, int32_t m) {
    return seeded(&mirostat, (struct plain_sampler) { .n_vocab = n_vocab, .seed = seed, .tau = tau, .eta = eta,
        .mu = 2.0f*tau, .k = m });
}

/* Version 2: candidates with a surprise above the bound are left out. */
NAMED(mirostat_v2, "mirostat-v2")
static void mirostat_v2_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct plain_sampler *state = STATE(s);
    candidates_softmax(c);
    candidates_sort(c, c->size);
    size_t keep = c->size ? 1 : 0;
    while (keep < c->size && -log2f(c->data[keep].p) <= state->mu) keep++;
    candidates_cut(c, keep);
    mirostat_draw(state, c);
}
static struct llama_sampler_i mirostat_v2 = { .name = mirostat_v2_name, .apply = mirostat_v2_apply,
    .reset = mirostat_reset, PLAIN };
struct llama_sampler *llama_sampler_init_mirostat_v2(uint32_t seed, float tau, float eta) {
    return seeded(&mirostat_v2, (struct plain_sampler) { .seed = seed, .tau = tau, .eta = eta, .mu = 2.0f*tau });
}

/* ---- adaptive-p -------------------------------------------------------------------------------------------------- */

/* Prefers tokens whose probability is near a target, which moves so that the decayed mean of the probabilities drawn comes
 * to `p`: weights are the exponential of a peak of that height, width and sharpness around it. A negative target draws by
 * probability. Logits and probabilities stay as they are. */
static double adaptive_weight(const struct plain_sampler *state, float target, float p) {
    static const double width = 0.3, peak = 5.0, sharpness = 10.0;
    if (state->p < 0.0f || !(p > 0.0f)) return p;
    const double d = fabs((double) p - target)/width;
    return exp(peak - sharpness*d*d/(1.0 + d));
}

NAMED(adaptive_p, "adaptive-p")
static void adaptive_p_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct plain_sampler *state = STATE(s);
    const float target = fminf(fmaxf(2.0f*state->p - state->weighted/state->weights, 0.0f), 1.0f);
    double sum = 0.0;
    candidates_softmax(c);
    for (size_t i = 0; i < c->size; i++) sum += adaptive_weight(state, target, c->data[i].p);
    double left = random_unit(&state->random)*sum;
    c->selected = -1;
    for (size_t i = 0; i < c->size && (left >= 0.0 || c->selected < 0); i++) {
        const double weight = adaptive_weight(state, target, c->data[i].p);
        if (!(weight > 0.0)) continue;
        c->selected = (int64_t) i;
        left -= weight;
    }
    state->chosen = c->selected >= 0 ? c->data[c->selected].p : -1.0f;
}
static void adaptive_p_accept(struct llama_sampler *s, llama_token token) {
    struct plain_sampler *state = STATE(s);
    (void) token;
    if (state->chosen < 0.0f) return;
    state->weighted = state->chosen + state->delta*state->weighted;
    state->weights  = 1.0f          + state->delta*state->weights;
    state->chosen   = -1.0f;
}
static void adaptive_p_start(struct plain_sampler *state) {
    state->weights  = 1.0f/(1.0f - state->delta);
    state->weighted = state->p*state->weights;
    state->chosen   = -1.0f;
}
static void adaptive_p_reset(struct llama_sampler *s) {
    plain_sampler_reseed(s);
    adaptive_p_start(STATE(s));
}
static struct llama_sampler_i adaptive_p = { .name = adaptive_p_name, .accept = adaptive_p_accept,
    .apply = adaptive_p_apply, .reset = adaptive_p_reset, PLAIN };
struct llama_sampler *llama_sampler_init_adaptive_p(float target, float decay, uint32_t seed) {
    struct plain_sampler state = { .p = fminf(target, 1.0f), .delta = fminf(fmaxf(decay, 0.0f), 0.99f), .seed = seed };
    adaptive_p_start(&state);
    return seeded(&adaptive_p, state);
}
