#ifndef MODEL_CANDIDATES_H
#define MODEL_CANDIDATES_H
/* What samplers do to the candidates for the next token. The order is by logit, largest first, of equal ones the smaller
 * id first; a NaN counts as -inf. Nothing here allocates. */

#include "llama.h"

/* A seeded generator (Steele, Lea and Flood 2014, splitmix64). */
struct random { uint64_t state; };
struct random random_seeded(uint32_t seed);
double random_unit(struct random *r);           /* [0, 1), 53 bits */
uint32_t seed_or_random(uint32_t seed);         /* LLAMA_DEFAULT_SEED asks for another one each time */

/* The first k in order: O(n log k), usually one comparison for each of the rest. All in order makes them `sorted`. */
void candidates_sort(llama_token_data_array *c, size_t k);

/* Sets every p: expf(logit - largest), divided by their sum, which is taken in double from the front. When all logits are
 * -inf, and among several that are +inf, shares are equal. */
void candidates_softmax(llama_token_data_array *c);

/* Draws by p, which need not sum to 1: index, or -1 when there are no candidates. */
int64_t candidates_draw(const llama_token_data_array *c, struct random *r);

/* The best one: index, or -1. */
int64_t candidates_best(const llama_token_data_array *c);

/* Entropy of p in nats. */
double candidates_entropy(const llama_token_data_array *c);

/* Keeps the first n. */
void candidates_cut(llama_token_data_array *c, size_t n);

#endif
