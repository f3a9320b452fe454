#ifndef MODEL_SAMPLER_H
#define MODEL_SAMPLER_H
/* Samplers whose state is one block without pointers: what the files of the samplers share. */

#include "candidates.h"

struct plain_sampler {
    float  p, t, delta, exponent;       /* probability, temperature or threshold, and the two of the dynamic temperature */
    float  tau, eta, mu;                /* mirostat: target, rate, running bound; all in bits */
    float  weighted, weights;           /* adaptive-p: decayed sums of probabilities and of ones */
    float  chosen;                      /* adaptive-p: probability of the token that was drawn */
    int32_t  k, n_vocab;
    size_t   min_keep;
    uint32_t seed, seed_now;            /* as asked for; in use */
    struct random random;
};

/* A sampler with a copy of this state. NULL after a line of log: out of memory. */
struct llama_sampler *plain_sampler_new(struct llama_sampler_i *iface, const struct plain_sampler *state);

struct llama_sampler *plain_sampler_clone(const struct llama_sampler *s);
void plain_sampler_copy(const struct llama_sampler *from, struct llama_sampler *to);
void plain_sampler_free(struct llama_sampler *s);
void plain_sampler_reseed(struct llama_sampler *s);     /* the generator starts anew */

/* Its seed in use; LLAMA_DEFAULT_SEED when it has none. For any sampler. */
uint32_t plain_sampler_seed(const struct llama_sampler *s);

#endif
