/* Order, softmax and draws over the candidates of one token. */

#include <math.h>
#include <time.h>

#include "candidates.h"

struct random random_seeded(uint32_t seed) { return (struct random) { seed }; }

double random_unit(struct random *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30)*0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27)*0x94d049bb133111ebu;
    return (double) ((z ^ z >> 31) >> 11)*0x1p-53;
}

uint32_t seed_or_random(uint32_t seed) {
    if (seed != LLAMA_DEFAULT_SEED) return seed;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    struct random r = { (uint64_t) now.tv_sec*1000000007u ^ (uint64_t) now.tv_nsec ^ (uint64_t) (uintptr_t) &now << 20 };
    seed = (uint32_t) (random_unit(&r)*0x1p32);
    return seed == LLAMA_DEFAULT_SEED ? 0 : seed;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static inline float level(const llama_token_data *x) { return x->logit == x->logit ? x->logit : -INFINITY; }

static inline bool before(const llama_token_data *a, const llama_token_data *b) {
    const float x = level(a), y = level(b);
    return x > y || (x == y && a->id < b->id);
}

static void swap(llama_token_data *a, llama_token_data *b) {
    const llama_token_data x = *a;
    *a = *b;
    *b = x;
}

/* The heap has its last in order on top. */
static void sink_down(llama_token_data *heap, size_t n, size_t i) {
    for (size_t child; (child = 2*i + 1) < n; i = child) {
        if (child + 1 < n && before(&heap[child], &heap[child + 1])) child++;
        if (!before(&heap[i], &heap[child])) return;
        swap(&heap[i], &heap[child]);
    }
}

void candidates_sort(llama_token_data_array *c, size_t k) {
    if (c->sorted || c->size == 0) return;
    if (k > c->size) k = c->size;
    for (size_t i = k/2; i-- > 0; ) sink_down(c->data, k, i);
    for (size_t i = k; k && i < c->size; i++) {
        if (!before(&c->data[i], &c->data[0])) continue;
        swap(&c->data[i], &c->data[0]);
        sink_down(c->data, k, 0);
    }
    for (size_t n = k; n > 1; ) {
        swap(&c->data[0], &c->data[--n]);
        sink_down(c->data, n, 0);
    }
    c->sorted = k == c->size;
}

int64_t candidates_best(const llama_token_data_array *c) {
    if (c->size == 0) return -1;
    size_t best = 0;
    for (size_t i = 1; i < c->size && !c->sorted; i++) {
        if (before(&c->data[i], &c->data[best])) best = i;
    }
    return (int64_t) best;
}

/* ---- probabilities ----------------------------------------------------------------------------------------------- */

void candidates_softmax(llama_token_data_array *c) {
    const int64_t best = candidates_best(c);
    if (best < 0) return;
    const float largest = level(&c->data[best]);
    double sum = 0.0;
    for (size_t i = 0; i < c->size; i++) {
        const float x = level(&c->data[i]);
        c->data[i].p = x == largest ? 1.0f : expf(x - largest);
        sum += c->data[i].p;
    }
    for (size_t i = 0; i < c->size; i++) c->data[i].p = (float) (c->data[i].p/sum);
}

int64_t candidates_draw(const llama_token_data_array *c, struct random *r) {
    double sum = 0.0;
    for (size_t i = 0; i < c->size; i++) sum += c->data[i].p;
    double left = random_unit(r)*sum;
    int64_t last = c->size ? 0 : -1;            /* rounding may leave something at the end */
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].p > 0.0f)) continue;
        last = (int64_t) i;
        left -= c->data[i].p;
        if (left < 0.0) break;
    }
    return last;
}

double candidates_entropy(const llama_token_data_array *c) {
    double entropy = 0.0;
    for (size_t i = 0; i < c->size; i++) {
        const double p = c->data[i].p;
        if (p > 0.0) entropy -= p*log(p);
    }
    return entropy;
}

void candidates_cut(llama_token_data_array *c, size_t n) {
    if (n < c->size) c->size = n;
}
