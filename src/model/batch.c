/* Batches: the program's struct llama_batch, its growing sibling llama_batch_ext, and the check that turns either into a
 * list with every field filled in, which is all that decode.c sees. */

#include "model.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

/* ---- the checked list ------------------------------------------------------------------------------------------ */

bool batch_reserve(struct token_list *list, int32_t n) {
    list->pos       = malloc((size_t) n*sizeof *list->pos);
    list->seqs      = malloc((size_t) n*sizeof *list->seqs);
    list->first_seq = malloc((size_t) n*sizeof *list->first_seq);
    list->output    = malloc((size_t) n*sizeof *list->output);
    return list->pos && list->seqs && list->first_seq && list->output;
}

void batch_release(struct token_list *list) {
    free(list->pos);
    free(list->seqs);
    free(list->first_seq);
    free(list->output);
    *list = (struct token_list) { 0 };
}

static bool refuse(const char *what, long long value) {
    log_error("batch: %s %lld", what, value);
    return false;
}

static bool fill_seqs(struct llama_context *ctx, const struct llama_batch *b, int32_t i) {
    struct token_list *list = &ctx->batch;
    list->seqs[i]      = 1;
    list->first_seq[i] = 0;
    if (!b->seq_id) return true;
    const int32_t n = b->n_seq_id ? b->n_seq_id[i] : 1;
    if (n < 1 || n > MAX_SEQUENCES) return refuse("a token with this many sequences:", n);
    list->seqs[i] = 0;
    for (int32_t j = 0; j < n; j++) {
        const llama_seq_id s = b->seq_id[i][j];
        if (s < 0 || (uint32_t) s >= ctx->params.n_seq_max) return refuse("sequence out of range:", s);
        list->seqs[i] |= (uint64_t) 1 << s;
    }
    list->first_seq[i] = (int8_t) b->seq_id[i][0];
    return true;
}

/* A sequence goes on where its memory ends, without gaps. */
static bool positions_follow(struct llama_context *ctx) {
    const struct token_list *list = &ctx->batch;
    llama_pos low[MAX_SEQUENCES], high[MAX_SEQUENCES];
    int32_t   count[MAX_SEQUENCES] = { 0 };
    for (int32_t i = 0; i < list->n; i++) {
        const llama_pos p = list->pos[i];
        for (int s = 0; s < (int) ctx->params.n_seq_max; s++) {
            if (!(list->seqs[i] >> s & 1)) continue;
            if (!count[s] || p < low[s])  low[s]  = p;
            if (!count[s] || p > high[s]) high[s] = p;
            count[s]++;
        }
    }
    for (int s = 0; s < (int) ctx->params.n_seq_max; s++) {
        if (!count[s]) continue;
        const llama_pos past = llama_memory_seq_pos_max(&ctx->memory, s);
        if (past >= 0 && low[s] != past + 1)           return refuse("a sequence goes on at its end, not at", low[s]);
        if ((int64_t) high[s] - low[s] + 1 > count[s]) return refuse("a gap in the positions before", high[s]);
    }
    return true;
}

/* Position of token i that has none: behind the memory and the tokens of its sequence before it. */
static void fill_positions(struct llama_context *ctx) {
    struct token_list *list = &ctx->batch;
    llama_pos next[MAX_SEQUENCES];
    for (int s = 0; s < MAX_SEQUENCES; s++) next[s] = llama_memory_seq_pos_max(&ctx->memory, s) + 1;
    for (int32_t i = 0; i < list->n; i++) {
        list->pos[i] = next[list->first_seq[i]];
        for (int s = 0; s < MAX_SEQUENCES; s++) {
            if (list->seqs[i] >> s & 1) next[s] = list->pos[i] + (list->pos[i] < INT32_MAX);    /* the last is refused */
        }
    }
}

static bool tokens_known(const struct llama_context *ctx, const struct llama_batch *b) {
    for (int32_t i = 0; i < b->n_tokens; i++) {
        const llama_token token = b->token[i];
        if (token < 0 || (uint32_t) token >= ctx->model->h.n_vocab) return refuse("no such token:", token);
    }
    return true;
}

bool batch_check(struct llama_context *ctx, const struct llama_batch *b) {
    struct token_list *list = &ctx->batch;
    const bool pooled = ctx->seq_embd != NULL;
    const int32_t n = b->n_tokens;
    if (n < 1 || (uint32_t) n > ctx->params.n_batch) return refuse("number of tokens out of range:", n);
    if (!b->token == !b->embd) return refuse("wanted tokens or embeddings, given", b->token ? 2 : 0);
    if (b->token && !tokens_known(ctx, b)) return false;
    list->n         = b->n_tokens;
    list->token     = b->token;
    list->embd      = b->embd;
    list->n_outputs = 0;
    for (int32_t i = 0; i < list->n; i++) {
        if (!fill_seqs(ctx, b, i)) return false;
        list->output[i]  = pooled || (b->logits ? b->logits[i] != 0 : i == list->n - 1);
        list->n_outputs += list->output[i];
    }
    if (b->pos) memcpy(list->pos, b->pos, (size_t) list->n*sizeof *list->pos);
    else        fill_positions(ctx);
    for (int32_t i = 0; i < list->n; i++) {
        if (list->pos[i] < 0 || list->pos[i] == INT32_MAX) return refuse("position out of range:", list->pos[i]);
    }
    return positions_follow(ctx);
}

/* ---- struct llama_batch ---------------------------------------------------------------------------------------- */

struct llama_batch llama_batch_get_one(llama_token *tokens, int32_t n_tokens) {
    return (struct llama_batch) { .n_tokens = n_tokens, .token = tokens };
}

/* An array of pointers to n rows of m ids, ended by NULL. */
static llama_seq_id **seq_rows(int32_t n, int32_t m) {
    llama_seq_id **rows = calloc((size_t) n + 1, sizeof *rows);
    for (int32_t i = 0; rows && i < n; i++) {
        if ((rows[i] = malloc((size_t) m*sizeof **rows))) continue;
        while (i-- > 0) free(rows[i]);
        free(rows);
        return NULL;
    }
    return rows;
}

/* With no memory: a batch whose arrays are all NULL. */
struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max) {
    struct llama_batch b = { 0 };
    const size_t n = n_tokens > 0 ? (size_t) n_tokens : 1;
    if (embd > 0) b.embd = (size_t) embd <= SIZE_MAX/sizeof *b.embd/n ? malloc(n*(size_t) embd*sizeof *b.embd) : NULL;
    else          b.token = malloc(n*sizeof *b.token);
    b.pos      = malloc(n*sizeof *b.pos);
    b.n_seq_id = malloc(n*sizeof *b.n_seq_id);
    b.seq_id   = seq_rows((int32_t) n, n_seq_max > 0 ? n_seq_max : 1);
    b.logits   = malloc(n*sizeof *b.logits);
    if ((b.token || b.embd) && b.pos && b.n_seq_id && b.seq_id && b.logits) return b;
    log_error("batch: out of memory for %d tokens", n_tokens);
    llama_batch_free(b);
    return (struct llama_batch) { 0 };
}

void llama_batch_free(struct llama_batch b) {
    free(b.token);
    free(b.embd);
    free(b.pos);
    free(b.n_seq_id);
    for (int32_t i = 0; b.seq_id && b.seq_id[i]; i++) free(b.seq_id[i]);
    free(b.seq_id);
    free(b.logits);
}

/* ---- struct llama_batch_ext ------------------------------------------------------------------------------------ */

struct llama_batch_ext {
    struct llama_context *ctx;
    struct llama_batch    b;                    /* of n_batch tokens and as many embeddings, when those are used */
    llama_token          *token;
    float                *embd;
    bool                  with_pos, logits_set;
    int32_t               n_embd_set;
};

struct llama_batch_ext *llama_batch_ext_init(struct llama_context *ctx) {
    struct llama_batch_ext *e = calloc(1, sizeof *e);
    if (!e) { log_error("batch: out of memory"); return NULL; }
    e->ctx = ctx;
    e->b   = llama_batch_init((int32_t) ctx->params.n_batch, 0, (int32_t) ctx->params.n_seq_max);
    e->token = e->b.token;
    if (e->token) return e;
    free(e);
    return NULL;
}

void llama_batch_ext_free(struct llama_batch_ext *e) {
    if (!e) return;
    e->b.token = e->token;
    e->b.embd  = NULL;
    llama_batch_free(e->b);
    free(e->embd);
    free(e);
}

void llama_batch_ext_clear(struct llama_batch_ext *e) {
    e->b.n_tokens = 0;
    e->n_embd_set = 0;
    e->with_pos = e->logits_set = false;
}

int32_t llama_batch_ext_add(struct llama_batch_ext *e, llama_seq_id seq_id) {
    const int32_t i = e->b.n_tokens;
    if ((uint32_t) i >= e->ctx->params.n_batch || seq_id < 0 || (uint32_t) seq_id >= e->ctx->params.n_seq_max) return -1;
    e->token[i]        = LLAMA_TOKEN_NULL;
    e->b.n_seq_id[i]   = 1;
    e->b.seq_id[i][0]  = seq_id;
    e->b.logits[i]     = 0;
    e->b.pos[i]        = -1;
    return e->b.n_tokens++;
}

int32_t llama_batch_ext_add_token(struct llama_batch_ext *e, llama_seq_id seq_id, llama_token id) {
    const int32_t i = llama_batch_ext_add(e, seq_id);
    if (i >= 0) e->token[i] = id;
    return i;
}

static bool known(const struct llama_batch_ext *e, int32_t i) { return i >= 0 && i < e->b.n_tokens; }

static bool set_embd(struct llama_batch_ext *e, int32_t i, const struct llama_embd *embd) {
    const size_t n = e->ctx->model->h.n_embd;
    if (!known(e, i) || !embd->data || embd->n_rows != 1 || embd->n_embd != n) return false;
    if (!e->embd) e->embd = malloc((size_t) e->ctx->params.n_batch*n*sizeof *e->embd);
    if (!e->embd) return false;
    memcpy(e->embd + (size_t) i*n, embd->data, n*sizeof *e->embd);
    e->n_embd_set++;
    return true;
}

int32_t llama_batch_ext_add_embd(struct llama_batch_ext *e, llama_seq_id seq_id, struct llama_embd embd) {
    const int32_t i = llama_batch_ext_add(e, seq_id);
    if (i < 0 || set_embd(e, i, &embd)) return i;
    e->b.n_tokens--;
    return -1;
}

bool llama_batch_ext_add_seq(struct llama_batch_ext *e, int32_t idx, llama_seq_id seq_id) {
    if (!known(e, idx) || seq_id < 0 || (uint32_t) seq_id >= e->ctx->params.n_seq_max) return false;
    for (int32_t j = 0; j < e->b.n_seq_id[idx]; j++) {
        if (e->b.seq_id[idx][j] == seq_id) return true;
    }
    e->b.seq_id[idx][e->b.n_seq_id[idx]++] = seq_id;
    return true;
}

bool llama_batch_ext_set_embd_token(struct llama_batch_ext *e, int32_t idx, struct llama_embd embd) {
    return set_embd(e, idx, &embd);
}

/* No model here has a state to be given from outside. */
bool llama_batch_ext_set_embd_state(struct llama_batch_ext *e, int32_t idx, struct llama_embd embd) {
    (void) e; (void) idx; (void) embd;
    return false;
}

bool llama_batch_ext_set_output_embd(struct llama_batch_ext *e, int32_t idx, bool value) {
    return llama_batch_ext_set_output_logits(e, idx, value);
}

bool llama_batch_ext_set_output_logits(struct llama_batch_ext *e, int32_t idx, bool value) {
    if (!known(e, idx)) return false;
    e->b.logits[idx] = value;
    e->logits_set    = true;
    return true;
}

bool llama_batch_ext_set_pos(struct llama_batch_ext *e, int32_t idx, const llama_pos *pos) {
    if (!known(e, idx) || !pos) return false;
    e->b.pos[idx] = *pos;
    e->with_pos   = true;
    return true;
}

int32_t llama_process(struct llama_context *ctx, enum llama_process_type type, struct llama_batch_ext *e) {
    if (type != LLAMA_PROCESS_TYPE_DECODE) return -1;
    if (e->n_embd_set && e->n_embd_set != e->b.n_tokens) {
        log_error("batch: %d of %d tokens are embeddings", e->n_embd_set, e->b.n_tokens);
        return -1;
    }
    struct llama_batch b = e->b;
    b.token = e->n_embd_set ? NULL : e->token;
    b.embd  = e->n_embd_set ? e->embd : NULL;
    if (!e->with_pos)   b.pos = NULL;
    if (!e->logits_set) b.logits = NULL;
    return llama_decode(ctx, b);
}
