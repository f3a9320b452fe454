/* A token drawn from a context: what the samplers make of the logits of an output, and what is said when there is nothing to
 * draw from. */

#include "tiny.h"

static int32_t best_of(const float *logits, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) best = logits[i] > logits[best] ? i : best;
    return best;
}

static void draws(struct llama_context *ctx) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_penalties(TINY_VOCAB, 4, 1.0f, 0.0f, 1e9f));
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
    const int32_t best = best_of(llama_get_logits_ith(ctx, -1), TINY_VOCAB);
    const llama_token first = llama_sampler_sample(chain, ctx, -1), second = llama_sampler_sample(chain, ctx, -1);
    CHECK(first == best, "%d drawn, %d has the largest logit", first, best);
    CHECK(second != first && second >= 0, "the first draw was accepted, so it is penalised: %d", second);
    struct llama_sampler *alone = llama_sampler_init_greedy();
    CHECK(llama_sampler_sample(alone, ctx, -1) == best, "a sampler without a chain");
    CHECK(llama_get_logits_ith(ctx, -1)[best] > -1e8f, "the context's logits stay as they are");
    llama_sampler_free(alone);
    llama_sampler_free(chain);
}

static void nothing_to_draw(struct llama_context *ctx) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(5));
    tiny_log_clear();
    CHECK(llama_sampler_sample(chain, ctx, -1) == LLAMA_TOKEN_NULL && tiny_errors == 1, "nobody chooses: %s", tiny_log);
    CHECK(llama_sampler_sample(chain, ctx, 99) == LLAMA_TOKEN_NULL && tiny_errors > 1, "no such output: %s", tiny_log);
    llama_sampler_free(chain);
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    struct tiny tiny = tiny_new(tiny_llama());
    tiny_write(&tiny);
    struct llama_model *model = llama_model_load_from_file(tiny.path, llama_model_default_params());
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 32;
    struct llama_context *ctx = model ? llama_init_from_model(model, params) : NULL;
    llama_token tokens[] = { 1, 70, 71 };
    const bool ready = ctx && llama_decode(ctx, llama_batch_get_one(tokens, 3)) == 0;
    CHECK(ready, "%s", tiny_log);
    if (ready) {
        draws(ctx);
        nothing_to_draw(ctx);
    }
    llama_free(ctx);
    llama_model_free(model);
    tiny_free(&tiny);
    return DONE();
}
