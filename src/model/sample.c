/* The interface of samplers, chains of them, and drawing a token from a context. A chain keeps the buffer of candidates, so
 * drawing allocates nothing after the first time. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "sampler.h"

struct llama_sampler *llama_sampler_init(struct llama_sampler_i *iface, llama_sampler_context_t ctx) {
    struct llama_sampler *s = malloc(sizeof *s);
    if (!s) { log_error("sampler: out of memory"); return NULL; }
    *s = (struct llama_sampler) { iface, ctx };
    return s;
}

const char *llama_sampler_name(const struct llama_sampler *smpl) {
    return smpl->iface->name ? smpl->iface->name(smpl) : "(no name)";
}

void llama_sampler_accept(struct llama_sampler *smpl, llama_token token) {
    if (smpl && smpl->iface->accept) smpl->iface->accept(smpl, token);
}

void llama_sampler_apply(struct llama_sampler *smpl, llama_token_data_array *cur_p) {
    if (smpl->iface->apply) smpl->iface->apply(smpl, cur_p);
}

void llama_sampler_reset(struct llama_sampler *smpl) {
    if (smpl && smpl->iface->reset) smpl->iface->reset(smpl);
}

struct llama_sampler *llama_sampler_clone(const struct llama_sampler *smpl) {
    if (!smpl) return NULL;
    if (smpl->iface->clone) return smpl->iface->clone(smpl);
    if (!smpl->ctx) return llama_sampler_init(smpl->iface, NULL);
    log_error("llama_sampler_clone: sampler %s cannot be cloned", llama_sampler_name(smpl));
    return NULL;
}

void llama_sampler_copy(const struct llama_sampler *src, struct llama_sampler *dst) {
    if (src->iface != dst->iface) {
        log_error("llama_sampler_copy: from %s to %s", llama_sampler_name(src), llama_sampler_name(dst));
    } else if (src->iface->copy_state) {
        src->iface->copy_state(src, dst);
    }
}

void llama_sampler_free(struct llama_sampler *smpl) {
    if (!smpl) return;
    if (smpl->iface->free) smpl->iface->free(smpl);
    free(smpl);
}

/* ---- plain state ------------------------------------------------------------------------------------------------- */

struct llama_sampler *plain_sampler_new(struct llama_sampler_i *iface, const struct plain_sampler *state) {
    struct plain_sampler *copy = malloc(sizeof *copy);
    if (!copy) { log_error("sampler: out of memory"); return NULL; }
    *copy = *state;
    struct llama_sampler *s = llama_sampler_init(iface, copy);
    if (!s) free(copy);
    return s;
}

struct llama_sampler *plain_sampler_clone(const struct llama_sampler *s) { return plain_sampler_new(s->iface, s->ctx); }
void plain_sampler_copy(const struct llama_sampler *from, struct llama_sampler *to) {
    *(struct plain_sampler *) to->ctx = *(const struct plain_sampler *) from->ctx;
}
void plain_sampler_free(struct llama_sampler *s) { free(s->ctx); }

void plain_sampler_reseed(struct llama_sampler *s) {
    struct plain_sampler *state = s->ctx;
    state->seed_now = seed_or_random(state->seed);
    state->random   = random_seeded(state->seed_now);
}

uint32_t plain_sampler_seed(const struct llama_sampler *s) {
    return s->iface->free == plain_sampler_free ? ((const struct plain_sampler *) s->ctx)->seed_now : LLAMA_DEFAULT_SEED;
}

/* ---- chains ------------------------------------------------------------------------------------------------------ */

struct chain {
    struct llama_sampler_chain_params params;
    struct llama_sampler **samplers;    /* [n], owned */
    int32_t n, capacity;
    llama_token_data *candidates;       /* [n_candidates] kept between draws */
    size_t  n_candidates;
    int64_t sample_us;
    int32_t n_sampled;
};

static const char *chain_name(const struct llama_sampler *s) { (void) s; return "chain"; }

static void chain_accept(struct llama_sampler *s, llama_token token) {
    struct chain *chain = s->ctx;
    const int64_t start = chain->params.no_perf ? 0 : ggml_time_us();
    for (int32_t i = 0; i < chain->n; i++) llama_sampler_accept(chain->samplers[i], token);
    chain->n_sampled++;
    if (!chain->params.no_perf) chain->sample_us += ggml_time_us() - start;
}

static void chain_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct chain *chain = s->ctx;
    const int64_t start = chain->params.no_perf ? 0 : ggml_time_us();
    for (int32_t i = 0; i < chain->n; i++) llama_sampler_apply(chain->samplers[i], c);
    if (!chain->params.no_perf) chain->sample_us += ggml_time_us() - start;
}

static void chain_reset(struct llama_sampler *s) {
    struct chain *chain = s->ctx;
    for (int32_t i = 0; i < chain->n; i++) llama_sampler_reset(chain->samplers[i]);
}

static struct llama_sampler *chain_clone(const struct llama_sampler *s) {
    const struct chain *chain = s->ctx;
    struct llama_sampler *copy = llama_sampler_chain_init(chain->params);
    for (int32_t i = 0; copy && i < chain->n; i++) {
        struct llama_sampler *part = llama_sampler_clone(chain->samplers[i]);
        if (part) llama_sampler_chain_add(copy, part);
        if (llama_sampler_chain_n(copy) != i + 1) {
            llama_sampler_free(copy);
            copy = NULL;
        }
    }
    return copy;
}

static void chain_copy(const struct llama_sampler *from, struct llama_sampler *to) {
    const struct chain *a = from->ctx, *b = to->ctx;
    if (a->n != b->n) log_error("llama_sampler_copy: a chain of %d to one of %d", a->n, b->n);
    for (int32_t i = 0; i < a->n && a->n == b->n; i++) llama_sampler_copy(a->samplers[i], b->samplers[i]);
}

static void chain_free(struct llama_sampler *s) {
    struct chain *chain = s->ctx;
    for (int32_t i = 0; i < chain->n; i++) llama_sampler_free(chain->samplers[i]);
    free(chain->samplers);
    free(chain->candidates);
    free(chain);
}

static struct llama_sampler_i chain_iface = { .name = chain_name, .accept = chain_accept, .apply = chain_apply,
    .reset = chain_reset, .clone = chain_clone, .free = chain_free, .copy_state = chain_copy };

struct llama_sampler_chain_params llama_sampler_chain_default_params(void) {
    return (struct llama_sampler_chain_params) { .no_perf = true };
}

struct llama_sampler *llama_sampler_chain_init(struct llama_sampler_chain_params params) {
    struct chain *chain = calloc(1, sizeof *chain);
    if (!chain) { log_error("sampler: out of memory"); return NULL; }
    chain->params = params;
    struct llama_sampler *s = llama_sampler_init(&chain_iface, chain);
    if (!s) free(chain);
    return s;
}

void llama_sampler_chain_add(struct llama_sampler *chain, struct llama_sampler *smpl) {
    struct chain *c = chain->ctx;
    if (!smpl) return;
    if (c->n == c->capacity) {
        const int32_t capacity = c->capacity ? 2*c->capacity : 8;
        struct llama_sampler **samplers = realloc(c->samplers, (size_t) capacity*sizeof *samplers);
        if (!samplers) {
            log_error("sampler: out of memory");
            llama_sampler_free(smpl);
            return;
        }
        c->samplers = samplers;
        c->capacity = capacity;
    }
    c->samplers[c->n++] = smpl;
}

struct llama_sampler *llama_sampler_chain_get(struct llama_sampler *chain, int32_t i) {
    if (!chain || chain->iface != &chain_iface) return NULL;
    const struct chain *c = chain->ctx;
    return i == -1 ? chain : i >= 0 && i < c->n ? c->samplers[i] : NULL;
}

int32_t llama_sampler_chain_n(const struct llama_sampler *chain) { return ((const struct chain *) chain->ctx)->n; }

struct llama_sampler *llama_sampler_chain_remove(struct llama_sampler *chain, int32_t i) {
    struct chain *c = chain->ctx;
    if (i < 0 || i >= c->n) return NULL;
    struct llama_sampler *removed = c->samplers[i];
    memmove(c->samplers + i, c->samplers + i + 1, (size_t) (--c->n - i)*sizeof *c->samplers);
    return removed;
}

uint32_t llama_sampler_get_seed(const struct llama_sampler *smpl) {
    if (smpl->iface != &chain_iface) return plain_sampler_seed(smpl);
    const struct chain *chain = smpl->ctx;
    for (int32_t i = chain->n; i-- > 0; ) {
        const uint32_t seed = llama_sampler_get_seed(chain->samplers[i]);
        if (seed != LLAMA_DEFAULT_SEED) return seed;
    }
    return LLAMA_DEFAULT_SEED;
}

/* ---- drawing a token --------------------------------------------------------------------------------------------- */

/* Room for n candidates, in the chain or, for a sampler alone, for the caller to free. */
static llama_token_data *room_for(struct llama_sampler *s, size_t n) {
    if (s->iface != &chain_iface) return malloc(n*sizeof(llama_token_data));
    struct chain *chain = s->ctx;
    if (chain->n_candidates < n) {
        llama_token_data *grown = realloc(chain->candidates, n*sizeof *grown);
        if (!grown) return NULL;
        chain->candidates   = grown;
        chain->n_candidates = n;
    }
    return chain->candidates;
}

llama_token llama_sampler_sample(struct llama_sampler *smpl, struct llama_context *ctx, int32_t idx) {
    const float *logits = llama_get_logits_ith(ctx, idx);
    const int32_t n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    if (!logits || n <= 0) {
        log_error("llama_sampler_sample: no logits at %d", idx);
        return LLAMA_TOKEN_NULL;
    }
    const int64_t start = ggml_time_us();
    llama_token_data *data = room_for(smpl, (size_t) n);
    if (!data) {
        log_error("llama_sampler_sample: out of memory for %d candidates", n);
        return LLAMA_TOKEN_NULL;
    }
    for (int32_t i = 0; i < n; i++) data[i] = (llama_token_data) { i, logits[i], 0.0f };
    if (smpl->iface == &chain_iface && !((struct chain *) smpl->ctx)->params.no_perf) {
        ((struct chain *) smpl->ctx)->sample_us += ggml_time_us() - start;
    }
    llama_token_data_array c = { data, (size_t) n, -1, false };
    llama_sampler_apply(smpl, &c);
    const bool chosen = c.selected >= 0 && (size_t) c.selected < c.size;
    const llama_token token = chosen ? c.data[c.selected].id : LLAMA_TOKEN_NULL;
    if (smpl->iface != &chain_iface) free(data);
    if (chosen) llama_sampler_accept(smpl, token);
    else        log_error("llama_sampler_sample: no sampler of %s chose a token", llama_sampler_name(smpl));
    return token;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

struct llama_perf_sampler_data llama_perf_sampler(const struct llama_sampler *chain) {
    if (!chain || chain->iface != &chain_iface) return (struct llama_perf_sampler_data) { 0.0, 0 };
    const struct chain *c = chain->ctx;
    return (struct llama_perf_sampler_data) { (double) c->sample_us/1000.0, c->n_sampled };
}

void llama_perf_sampler_print(const struct llama_sampler *chain) {
    const struct llama_perf_sampler_data perf = llama_perf_sampler(chain);
    log_info("sampling: %.2f ms for %d tokens, %.3f ms each", perf.t_sample_ms, perf.n_sample,
        perf.n_sample ? perf.t_sample_ms/perf.n_sample : 0.0);
}

void llama_perf_sampler_reset(struct llama_sampler *chain) {
    if (!chain || chain->iface != &chain_iface) return;
    struct chain *c = chain->ctx;
    c->sample_us = 0;
    c->n_sampled = 0;
}
