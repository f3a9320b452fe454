/* Samplers that remember the tokens accepted: penalties on those seen lately, and DRY, which penalises going on with a
 * sequence that has been seen. Memory is taken when they are made. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "log.h"

enum { HISTORY_MAX = 1 << 20, HISTORY_DEFAULT = 1 << 15 };      /* tokens; the second for "all of the context" */

/* The last `size` tokens, in a ring. */
struct history {
    llama_token *tokens;
    size_t       size, n, next;
};

static bool history_init(struct history *h, int32_t size) {
    h->size = size < 0 ? HISTORY_DEFAULT : size > HISTORY_MAX ? HISTORY_MAX : (size_t) size;
    h->tokens = calloc(h->size + 1, sizeof *h->tokens);
    return h->tokens != NULL;
}

/* Token number i back from the last one. */
static llama_token history_at(const struct history *h, size_t i) { return h->tokens[(h->next + h->size - 1 - i)%h->size]; }

static void history_put(struct history *h, llama_token token) {
    if (h->size == 0) return;
    h->tokens[h->next] = token;
    h->next = (h->next + 1)%h->size;
    if (h->n < h->size) h->n++;
}

static void history_copy(struct history *to, const struct history *from) {
    const size_t size = to->size < from->size ? to->size : from->size;
    to->n = to->next = 0;
    for (size_t i = from->n < size ? from->n : size; i-- > 0; ) history_put(to, history_at(from, i));
}

static void *copy_of(const void *p, size_t bytes) {
    void *copy = malloc(bytes + 1);
    if (copy && bytes) memcpy(copy, p, bytes);
    return copy;
}

/* ---- penalties --------------------------------------------------------------------------------------------------- */

/* A token seen n times among the last ones: a positive logit is divided by `repeat`, another one multiplied with it
 * (Keskar et al. 2019), then n*frequency + presence are taken off. */
struct penalties {
    struct history history;
    uint32_t *counts;           /* [n_vocab] of each token in the history */
    int32_t   n_vocab, last_n;
    float     repeat, frequency, presence;
};

static const char *penalties_name(const struct llama_sampler *s) { (void) s; return "penalties"; }

static void penalties_accept(struct llama_sampler *s, llama_token token) {
    struct penalties *p = s->ctx;
    if (p->history.size == 0 || token < 0 || token >= p->n_vocab) return;
    if (p->history.n == p->history.size) p->counts[history_at(&p->history, p->history.n - 1)]--;
    history_put(&p->history, token);
    p->counts[token]++;
}

static void penalties_apply(struct llama_sampler *s, llama_token_data_array *c) {
    const struct penalties *p = s->ctx;
    if (p->history.n == 0 || (p->repeat == 1.0f && p->frequency == 0.0f && p->presence == 0.0f)) return;
    for (size_t i = 0; i < c->size; i++) {
        llama_token_data *x = &c->data[i];
        const uint32_t n = x->id >= 0 && x->id < p->n_vocab ? p->counts[x->id] : 0;
        if (n == 0) continue;
        x->logit  = x->logit > 0.0f ? x->logit/p->repeat : x->logit*p->repeat;
        x->logit -= (float) n*p->frequency + p->presence;
    }
    c->sorted = false;
}

static void penalties_reset(struct llama_sampler *s) {
    struct penalties *p = s->ctx;
    memset(p->counts, 0, (size_t) p->n_vocab*sizeof *p->counts);
    p->history.n = p->history.next = 0;
}

static struct llama_sampler *penalties_clone(const struct llama_sampler *s) {
    const struct penalties *p = s->ctx;
    struct llama_sampler *copy = llama_sampler_init_penalties(p->n_vocab, p->last_n, p->repeat, p->frequency, p->presence);
    if (copy) llama_sampler_copy(s, copy);
    return copy;
}

static void penalties_copy(const struct llama_sampler *from, struct llama_sampler *to) {
    const struct penalties *a = from->ctx;
    struct penalties *b = to->ctx;
    history_copy(&b->history, &a->history);
    memset(b->counts, 0, (size_t) b->n_vocab*sizeof *b->counts);
    for (size_t i = 0; i < b->history.n; i++) {
        if (history_at(&b->history, i) < b->n_vocab) b->counts[history_at(&b->history, i)]++;
    }
}

static void penalties_free(struct llama_sampler *s) {
    struct penalties *p = s->ctx;
    free(p->history.tokens);
    free(p->counts);
    free(p);
}

static struct llama_sampler_i penalties_iface = { .name = penalties_name, .accept = penalties_accept,
    .apply = penalties_apply, .reset = penalties_reset, .clone = penalties_clone, .free = penalties_free,
    .copy_state = penalties_copy };

struct llama_sampler *llama_sampler_init_penalties(int32_t n_vocab, int32_t penalty_last_n, float penalty_repeat,
        float penalty_freq, float penalty_present) {
    struct penalties *p = calloc(1, sizeof *p);
    struct llama_sampler *s = llama_sampler_init(&penalties_iface, p);
    if (n_vocab < 0) n_vocab = 0;
    if (p) {
        p->n_vocab = n_vocab;
        p->last_n  = penalty_last_n;
        p->repeat  = penalty_repeat;
        p->frequency = penalty_freq;
        p->presence  = penalty_present;
        p->counts  = calloc((size_t) n_vocab + 1, sizeof *p->counts);
    }
    if (s && p && p->counts && history_init(&p->history, penalty_last_n)) return s;
    log_error("sampler: out of memory");
    if (p) { free(p->counts); free(p->history.tokens); }
    free(p);
    free(s);
    return NULL;
}

/* ---- DRY --------------------------------------------------------------------------------------------------------- */

/* "Don't repeat yourself": when the last m >= allowed tokens occurred before, what came after them then loses
 * multiplier*base^(m - allowed), for the longest such m, unless it is a breaker by itself. A breaker, a string such as a newline, ends the sequence that is
 * looked at, wherever tokens spell it: the first of them (the head) may hold text before it, the others are its tail. */
enum { DRY_MAX_BREAKER = 40, DRY_MAX_TAIL = 20 };      /* bytes, tokens */

struct dry_tail { llama_token tokens[DRY_MAX_TAIL]; int32_t n; };
struct dry_head { llama_token token; int32_t tail; };       /* index in tails */

struct dry {
    struct history history;
    float    multiplier, base;
    int32_t  allowed, last_n, n_vocab;
    struct dry_head *heads;         /* [n_heads] by token */
    struct dry_tail *tails;         /* [n_tails] */
    size_t   n_heads, n_tails;
    uint32_t *same;                 /* [history.size] how far the tokens back from i agree with those back from the last */
    uint32_t *reach;                /* [n_vocab] 1 + longest sequence that the token would go on with; 0 between calls */
};

static const char *dry_name(const struct llama_sampler *s) { (void) s; return "dry"; }
static void dry_accept(struct llama_sampler *s, llama_token token) { history_put(&((struct dry *) s->ctx)->history, token); }
static void dry_reset(struct llama_sampler *s) { ((struct dry *) s->ctx)->history.n = 0; }

/* Does the history, i tokens back, begin with this head? The length of its tail, or -1. */
static int32_t tail_behind(const struct dry *d, const struct dry_head *head, size_t i) {
    const struct dry_tail *tail = &d->tails[head->tail];
    if ((size_t) tail->n > i) return -1;
    for (int32_t j = 0; j < tail->n; j++) {
        if (tail->tokens[j] != history_at(&d->history, i - 1 - (size_t) j)) return -1;
    }
    return tail->n;
}

static size_t first_head(const struct dry *d, llama_token token) {
    size_t low = 0;
    for (size_t high = d->n_heads; low < high; ) {
        const size_t middle = (low + high)/2;
        if (d->heads[middle].token < token) low = middle + 1;
        else                                high = middle;
    }
    return low;
}

/* The longest tail of a breaker that begins i tokens back; -1: none begins there. */
static int32_t breaker_at(const struct dry *d, size_t i) {
    const llama_token token = history_at(&d->history, i);
    int32_t longest = -1;
    for (size_t j = first_head(d, token); j < d->n_heads && d->heads[j].token == token; j++) {
        const int32_t n = tail_behind(d, &d->heads[j], i);
        if (n > longest) longest = n;
    }
    return longest;
}

/* Tokens since the last breaker. */
static size_t dry_limit(const struct dry *d) {
    for (size_t i = 0; i < d->history.n; i++) {
        const int32_t tail = breaker_at(d, i);
        if (tail >= 0) return i - (size_t) tail;
    }
    return d->history.n;
}

static bool is_breaker(const struct dry *d, llama_token token) {
    for (size_t j = first_head(d, token); j < d->n_heads && d->heads[j].token == token; j++) {
        if (d->tails[d->heads[j].tail].n == 0) return true;
    }
    return false;
}

/* same[i] for all i: the Z-algorithm (Gusfield 1997) over the history from its end. */
static void dry_compare(struct dry *d) {
    const size_t n = d->history.n;
    size_t from = 0, to = 0;            /* the match that reaches farthest is [from, to) */
    d->same[0] = (uint32_t) n;
    for (size_t i = 1; i < n; i++) {
        size_t k = i < to ? (d->same[i - from] < to - i ? d->same[i - from] : to - i) : 0;
        while (i + k < n && history_at(&d->history, k) == history_at(&d->history, i + k)) k++;
        d->same[i] = (uint32_t) k;
        if (i + k > to) { from = i; to = i + k; }
    }
}

static void dry_apply(struct llama_sampler *s, llama_token_data_array *c) {
    struct dry *d = s->ctx;
    const size_t n = d->history.n, allowed = (size_t) d->allowed;
    if (d->multiplier == 0.0f || d->base < 1.0f || n <= allowed) return;
    const size_t limit = dry_limit(d);
    if (limit < allowed) return;
    dry_compare(d);
    for (size_t i = 1; i < n; i++) {
        const size_t length = d->same[i] < limit ? d->same[i] : limit;
        const llama_token next = history_at(&d->history, i - 1);
        if (length >= allowed && next >= 0 && next < d->n_vocab && length >= d->reach[next]) {
            d->reach[next] = (uint32_t) length + 1;
        }
    }
    const float largest = d->base > 1.000001f ? 88.0f/logf(d->base) : INFINITY;     /* base to that is still finite */
    for (size_t i = 0; i < c->size; i++) {
        llama_token_data *x = &c->data[i];
        const uint32_t reach = x->id >= 0 && x->id < d->n_vocab ? d->reach[x->id] : 0;
        if (reach == 0 || is_breaker(d, x->id)) continue;
        x->logit -= d->multiplier*powf(d->base, fminf((float) (reach - 1 - allowed), largest));
    }
    for (size_t i = 1; i < n; i++) {
        const llama_token next = history_at(&d->history, i - 1);
        if (next >= 0 && next < d->n_vocab) d->reach[next] = 0;
    }
    c->sorted = false;
}

static void dry_free(struct llama_sampler *s) {
    struct dry *d = s->ctx;
    free(d->history.tokens);
    free(d->heads);
    free(d->tails);
    free(d->same);
    free(d->reach);
    free(d);
}

static void dry_copy(const struct llama_sampler *from, struct llama_sampler *to) {
    history_copy(&((struct dry *) to->ctx)->history, &((const struct dry *) from->ctx)->history);
}

static struct llama_sampler *dry_clone(const struct llama_sampler *s);
static struct llama_sampler_i dry_iface = { .name = dry_name, .accept = dry_accept, .apply = dry_apply,
    .reset = dry_reset, .clone = dry_clone, .free = dry_free, .copy_state = dry_copy };

/* A sampler of these settings with room for its history. NULL: out of memory. */
static struct llama_sampler *dry_new(const struct dry *settings) {
    struct dry *d = calloc(1, sizeof *d);
    struct llama_sampler *s = llama_sampler_init(&dry_iface, d);
    if (!s || !d) { free(d); free(s); return NULL; }
    d->multiplier = settings->multiplier;
    d->base       = settings->base;
    d->allowed    = settings->allowed > 0 ? settings->allowed : 0;
    d->last_n     = settings->last_n;
    d->n_vocab    = settings->n_vocab;
    d->reach      = calloc((size_t) d->n_vocab + 1, sizeof *d->reach);
    d->same       = history_init(&d->history, d->last_n) ? calloc(d->history.size + 1, sizeof *d->same) : NULL;
    if (d->reach && d->same) return s;
    llama_sampler_free(s);
    return NULL;
}

static struct llama_sampler *dry_clone(const struct llama_sampler *s) {
    const struct dry *from = s->ctx;
    struct llama_sampler *copy = dry_new(from);
    struct dry *d = copy ? copy->ctx : NULL;
    if (d) {
        d->heads   = copy_of(from->heads, from->n_heads*sizeof *d->heads);
        d->tails   = copy_of(from->tails, from->n_tails*sizeof *d->tails);
        d->n_heads = from->n_heads;
        d->n_tails = from->n_tails;
        dry_copy(s, copy);
    }
    if (d && d->heads && d->tails) return copy;
    log_error("sampler: out of memory");
    llama_sampler_free(copy);
    return NULL;
}

/* Appends to an array that grows by doubling. */
static void *room_for_one(void *array, size_t n, size_t element) {
    return n & (n - 1) ? array : realloc(array, (n ? 2*n : 1)*element);
}

static bool add_head(struct dry *d, llama_token token, int32_t tail) {
    struct dry_head *heads = room_for_one(d->heads, d->n_heads, sizeof *heads);
    if (!heads) return false;
    d->heads = heads;
    heads[d->n_heads++] = (struct dry_head) { token, tail };
    return true;
}

/* Tails of a breaker: number i begins behind its first i + 1 bytes; the last is empty. */
static bool add_tails(struct dry *d, const struct llama_vocab *vocab, const char *breaker, size_t length) {
    for (size_t i = 1; i <= length; i++) {
        struct dry_tail *tails = room_for_one(d->tails, d->n_tails, sizeof *tails), *tail;
        if (!tails) return false;
        d->tails = tails;
        tail = &tails[d->n_tails++];
        llama_token ids[DRY_MAX_BREAKER + 8];
        const int32_t n = llama_tokenize(vocab, breaker + i, (int32_t) (length - i), ids, DRY_MAX_BREAKER + 8, false, false);
        tail->n = n < 0 ? 0 : n > DRY_MAX_TAIL ? DRY_MAX_TAIL : n;
        memcpy(tail->tokens, ids, (size_t) tail->n*sizeof *ids);
    }
    return true;
}

/* Heads that this token makes with a breaker whose tails begin at `first`. */
static bool add_heads(struct dry *d, llama_token token, const char *piece, size_t n, const char *breaker, size_t length,
        size_t first) {
    for (size_t at = 0; at < n; at++) {
        const size_t common = n - at < length ? n - at : length;
        if (memcmp(piece + at, breaker, common)) continue;
        if (!add_head(d, token, (int32_t) (first + common - 1))) return false;
        if (common == length) break;
    }
    return true;
}

static bool add_breakers(struct dry *d, const struct llama_vocab *vocab, const char **breakers, size_t n) {
    size_t *first = calloc(n + 1, sizeof *first);
    bool ok = first != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        size_t length = breakers[i] ? strlen(breakers[i]) : 0;
        if (length > DRY_MAX_BREAKER) length = DRY_MAX_BREAKER;
        first[i] = d->n_tails;
        ok = add_tails(d, vocab, breakers[i], length);
        first[i + 1] = d->n_tails;
    }
    char *piece = NULL;
    int32_t size = 0;
    for (llama_token id = 0; ok && n && id < d->n_vocab; id++) {
        int32_t length = llama_token_to_piece(vocab, id, piece, size, 0, true);
        if (length < 0 && length > INT32_MIN) {
            char *grown = realloc(piece, (size_t) -length);
            ok = grown != NULL;
            if (!ok) break;
            piece = grown;
            size = -length;
            length = llama_token_to_piece(vocab, id, piece, size, 0, true);
        }
        for (size_t i = 0; ok && length > 0 && i < n; i++) {
            ok = first[i + 1] == first[i]
                || add_heads(d, id, piece, (size_t) length, breakers[i], first[i + 1] - first[i], first[i]);
        }
    }
    free(piece);
    free(first);
    return ok;
}

struct llama_sampler *llama_sampler_init_dry(const struct llama_vocab *vocab, float dry_multiplier, float dry_base,
        int32_t dry_allowed_length, int32_t dry_penalty_last_n, const char **seq_breakers, size_t num_breakers) {
    const bool on = dry_multiplier != 0.0f && dry_base >= 1.0f && dry_penalty_last_n != 0;
    const struct dry settings = { .multiplier = on ? dry_multiplier : 0.0f, .base = dry_base, .allowed = dry_allowed_length,
        .last_n = on ? dry_penalty_last_n : 0, .n_vocab = on ? llama_vocab_n_tokens(vocab) : 0 };
    struct llama_sampler *s = dry_new(&settings);
    if (s && (!on || add_breakers(s->ctx, vocab, seq_breakers, seq_breakers ? num_breakers : 0))) return s;
    log_error("sampler: out of memory");
    llama_sampler_free(s);
    return NULL;
}
