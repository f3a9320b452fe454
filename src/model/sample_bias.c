/* Samplers that treat some tokens apart: a bias on given ids, and filling a gap in a text. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "log.h"

/* ---- bias -------------------------------------------------------------------------------------------------------- */

struct biases {
    int32_t n, n_vocab;
    llama_logit_bias list[];
};

static const char *bias_name(const struct llama_sampler *s) { (void) s; return "logit-bias"; }

static void bias_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct biases *b = s->ctx;
    for (int32_t i = 0; i < b->n; i++) {
        const llama_token id = b->list[i].token;
        if (id >= 0 && (size_t) id < c->size && c->data[id].id == id) {     /* in the order of ids, as they start */
            c->data[id].logit += b->list[i].bias;
            continue;
        }
        for (size_t j = 0; j < c->size; j++) {
            if (c->data[j].id != id) continue;
            c->data[j].logit += b->list[i].bias;
            break;
        }
    }
    if (b->n) c->sorted = false;
}

static struct llama_sampler *bias_clone(const struct llama_sampler *s) {
    const struct biases *b = s->ctx;
    return llama_sampler_init_logit_bias(b->n_vocab, b->n, b->list);
}

static void bias_free(struct llama_sampler *s) { free(s->ctx); }

static struct llama_sampler_i bias_iface = { .name = bias_name, .apply = bias_apply, .clone = bias_clone,
    .free = bias_free };

struct llama_sampler *llama_sampler_init_logit_bias(int32_t n_vocab, int32_t n_logit_bias,
        const llama_logit_bias *logit_bias) {
    const size_t n = n_logit_bias > 0 && logit_bias ? (size_t) n_logit_bias : 0;
    struct biases *b = malloc(sizeof *b + n*sizeof b->list[0]);
    if (!b) { log_error("sampler: out of memory"); return NULL; }
    b->n = (int32_t) n;
    b->n_vocab = n_vocab;
    if (n) memcpy(b->list, logit_bias, n*sizeof b->list[0]);
    struct llama_sampler *s = llama_sampler_init(&bias_iface, b);
    if (!s) free(b);
    return s;
}

/* ---- filling a gap ----------------------------------------------------------------------------------------------- */

/* For a model that writes between a prefix and a suffix. It stops when ends of generation are likely enough; else tokens
 * whose text begins with that of another one are joined with it, as both start the same way, and only clear choices stay:
 * first those with 0.2, then those with 1/(n + 1) of what is left, and always the ends. */
enum { INFILL_MAX = 256, INFILL_PIECE = 64 };       /* candidates looked at, bytes of their texts */

static const char *infill_name(const struct llama_sampler *s) { (void) s; return "infill"; }

static bool is_end(const struct llama_sampler *s, llama_token id) { return llama_vocab_is_eog(s->ctx, id); }

static void scale_to_one(llama_token_data_array *c) {
    double sum = 0.0;
    for (size_t i = 0; i < c->size; i++) sum += c->data[i].p;
    for (size_t i = 0; i < c->size && sum > 0.0; i++) c->data[i].p = (float) (c->data[i].p/sum);
}

/* Keeps the ends and what has at least p. Returns how many of the latter there are. */
static size_t keep_clear(const struct llama_sampler *s, llama_token_data_array *c, float p) {
    size_t n = 0, texts = 0;
    for (size_t i = 0; i < c->size; i++) {
        const bool end = is_end(s, c->data[i].id);
        if (!end && !(c->data[i].p >= p)) continue;
        texts += !end;
        c->data[n++] = c->data[i];
    }
    c->size = n;
    return texts;
}

static void join_prefixes(const struct llama_sampler *s, llama_token_data_array *c) {
    char    pieces[INFILL_MAX][INFILL_PIECE];
    int32_t lengths[INFILL_MAX];
    for (size_t i = 0; i < c->size; i++) {
        lengths[i] = llama_token_to_piece(s->ctx, c->data[i].id, pieces[i], INFILL_PIECE, 0, false);
        if (is_end(s, c->data[i].id)) lengths[i] = 0;
    }
    for (size_t i = 0; i < c->size; i++) {
        for (size_t j = 0; j < c->size; j++) {
            if (i == j || lengths[i] <= 0 || lengths[i] > lengths[j] || !(c->data[i].p > 0.0f)
                || !(c->data[j].p > 0.0f) || memcmp(pieces[i], pieces[j], (size_t) lengths[i])) continue;
            const size_t to = c->data[j].p > c->data[i].p ? j : i, from = to == i ? j : i;
            c->data[to].p += c->data[from].p;
            c->data[from].p = 0.0f;
            c->data[from].logit = -INFINITY;
        }
    }
}

static void infill_apply(struct llama_sampler *s, llama_token_data_array *c) {
    double end_sum = 0.0, text_sum = 0.0;
    if (c->size == 0) return;
    candidates_softmax(c);
    for (size_t i = 0; i < c->size; i++) *(is_end(s, c->data[i].id) ? &end_sum : &text_sum) += c->data[i].p;
    const bool stop = 3.0*end_sum*(double) c->size > text_sum;
    candidates_sort(c, INFILL_MAX);
    candidates_cut(c, INFILL_MAX);
    c->sorted = false;
    if (stop) {
        keep_clear(s, c, INFINITY);
        scale_to_one(c);
        if (c->size) return;
    } else {
        join_prefixes(s, c);
        const size_t texts = keep_clear(s, c, 0.2f);
        scale_to_one(c);
        if (texts) {
            keep_clear(s, c, 1.0f/(float) (texts + 1));
            scale_to_one(c);
            return;
        }
    }
    const llama_token eot = llama_vocab_eot(s->ctx);
    c->data[0] = (llama_token_data) { eot >= 0 ? eot : llama_vocab_eos(s->ctx), INFINITY, 1.0f };
    c->size = 1;
}

static struct llama_sampler *infill_clone(const struct llama_sampler *s) { return llama_sampler_init_infill(s->ctx); }

static struct llama_sampler_i infill_iface = { .name = infill_name, .apply = infill_apply, .clone = infill_clone };

struct llama_sampler *llama_sampler_init_infill(const struct llama_vocab *vocab) {
    return llama_sampler_init(&infill_iface, (void *) (uintptr_t) vocab);
}
