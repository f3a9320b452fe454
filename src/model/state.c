/* States: the memory of a context, whole or of one sequence, as bytes that another context of the same model can take up.
 *
 *   whole      "ARNS" version, model, outputs (n rows of logits, row of each batch index), caches
 *   sequence   "ARNQ" version, model, caches
 *   cache      n cells, then per cell {index, position, sequences}, then per layer and head the rows of keys, of values
 *
 * Numbers are in the machine's own order. Reading trusts nothing: every count is held against the bytes that are left, and a
 * state is checked to its end before the first cell changes. */

#include "model.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

enum { MAGIC_WHOLE = 0x534e5241, MAGIC_SEQ = 0x514e5241, STATE_VERSION = 1 };

/* ---- bytes out and in ------------------------------------------------------------------------------------------ */

struct writer {
    uint8_t *p;             /* NULL: only counts */
    size_t   size, used;
    bool     full;
};

static void put(struct writer *w, const void *bytes, size_t n) {
    if (w->p && n > w->size - w->used) w->full = true;
    if (w->p && !w->full) memcpy(w->p + w->used, bytes, n);
    w->used += w->full ? 0 : n;
}

static void put_u32(struct writer *w, uint32_t v) { put(w, &v, sizeof v); }

struct reader {
    const uint8_t *p;
    size_t         left;
    bool           failed, whole;       /* whole: a file's, which ends where the state does */
};

/* The next n bytes; NULL once anything was missing. */
static const uint8_t *get(struct reader *r, size_t n) {
    if (r->failed || n > r->left) {
        r->failed = true;
        return NULL;
    }
    r->p += n;
    r->left -= n;
    return r->p - n;
}

static bool at_end(const struct reader *r) {
    if (r->whole && r->left) log_error("state: %zu bytes behind its end", r->left);
    return !r->whole || !r->left;
}

static uint32_t get_u32(struct reader *r) {
    uint32_t v = 0;
    const uint8_t *p = get(r, sizeof v);
    if (p) memcpy(&v, p, sizeof v);
    return v;
}

/* ---- what it belongs to ---------------------------------------------------------------------------------------- */

struct cell_record {
    uint64_t seqs;
    uint32_t index;
    int32_t  pos;
};

struct fingerprint {
    uint32_t n_layer, n_embd, n_vocab, n_head_kv, n_head_k, n_head_v, type_k, type_v, sliding;
};

static struct fingerprint fingerprint(const struct llama_context *ctx) {
    const struct hparams *h = &ctx->model->h;
    return (struct fingerprint) {
        h->n_layer, h->n_embd, h->n_vocab, h->n_head_kv[0], h->n_head_k, h->n_head_v,
        (uint32_t) ctx->params.type_k, (uint32_t) ctx->params.type_v, ctx->memory.cache[KV_SLIDING].cells.n > 0,
    };
}

static void put_head(struct writer *w, const struct llama_context *ctx, uint32_t magic) {
    const struct fingerprint f = fingerprint(ctx);
    put_u32(w, magic);
    put_u32(w, STATE_VERSION);
    put(w, &f, sizeof f);
}

static bool get_head(struct reader *r, const struct llama_context *ctx, uint32_t magic) {
    const struct fingerprint f = fingerprint(ctx);
    const bool kind = get_u32(r) == magic && get_u32(r) == STATE_VERSION;
    const uint8_t *p = get(r, sizeof f);
    if (kind && p && !memcmp(p, &f, sizeof f)) return true;
    log_error("state: not one of this model and these cache types");
    return false;
}

/* ---- caches ---------------------------------------------------------------------------------------------------- */

static void put_rows(struct writer *w, const struct ggml_tensor *t, const struct kv_cells *c, uint64_t seqs) {
    for (int64_t head = 0; head < t->ne[2]; head++) {
        for (int64_t i = 0; i < c->end; i++) {
            const size_t offset = (size_t) head*t->nb[2] + (size_t) i*t->nb[1];
            if (!(c->seqs[i] & seqs)) continue;
            if (w->p && t->nb[1] > w->size - w->used) w->full = true;
            if (w->p && !w->full) ggml_backend_tensor_get(t, w->p + w->used, offset, t->nb[1]);
            w->used += w->full ? 0 : t->nb[1];
        }
    }
}

static void put_cache(struct writer *w, const struct kv_cache *kv, uint32_t n_layer, uint64_t seqs) {
    const struct kv_cells *c = &kv->cells;
    uint32_t n = 0;
    for (int64_t i = 0; i < c->end; i++) n += (c->seqs[i] & seqs) != 0;
    put_u32(w, n);
    for (int64_t i = 0; i < c->end; i++) {
        const struct cell_record cell = { c->seqs[i] & seqs, (uint32_t) i, c->pos[i] };
        if (cell.seqs) put(w, &cell, sizeof cell);
    }
    for (uint32_t il = 0; il < n_layer; il++) {
        if (!kv->k[il]) continue;
        put_rows(w, kv->k[il], c, seqs);
        put_rows(w, kv->v[il], c, seqs);
    }
}

static size_t row_bytes(const struct kv_cache *kv, uint32_t n_layer) {
    size_t bytes = 0;
    for (uint32_t il = 0; il < n_layer; il++) {
        if (kv->k[il]) bytes += kv->k[il]->nb[1]*(size_t) kv->k[il]->ne[2] + kv->v[il]->nb[1]*(size_t) kv->v[il]->ne[2];
    }
    return bytes;
}

struct cache_state {                /* one cache of a state, checked */
    uint32_t       n;
    const uint8_t *cells, *rows;
};

static struct cell_record cell_at(const struct cache_state *s, uint32_t i) {
    struct cell_record cell;
    memcpy(&cell, s->cells + i*sizeof cell, sizeof cell);
    return cell;
}

static bool get_cache(struct reader *r, const struct llama_context *ctx, const struct kv_cache *kv,
                      struct cache_state *s) {
    const uint64_t known = ctx->params.n_seq_max == 64 ? ~(uint64_t) 0 : ((uint64_t) 1 << ctx->params.n_seq_max) - 1;
    s->n = get_u32(r);
    if (s->n > kv->cells.n) {
        log_error("state: %u cells for a cache of %u", s->n, kv->cells.n);
        return false;
    }
    s->cells = get(r, s->n*sizeof(struct cell_record));
    s->rows  = get(r, s->n*row_bytes(kv, ctx->memory.n_layer));
    bool ok  = s->cells && s->rows;
    for (uint32_t i = 0, next = 0; ok && i < s->n; i++) {
        const struct cell_record cell = cell_at(s, i);
        ok = cell.index >= next && cell.index < kv->cells.n && cell.pos >= 0 && cell.pos < INT32_MAX &&
            cell.seqs && !(cell.seqs & ~known);
        next = cell.index + 1;
    }
    if (!ok) log_error("state: damaged, or of a context with more cells or sequences");
    return ok;
}

static void set_rows(struct ggml_tensor *t, const uint8_t **rows, uint32_t n, const int64_t *to) {
    for (int64_t head = 0; head < t->ne[2]; head++) {
        for (uint32_t i = 0; i < n; i++, *rows += t->nb[1]) {
            ggml_backend_tensor_set(t, *rows, (size_t) head*t->nb[2] + (size_t) to[i]*t->nb[1], t->nb[1]);
        }
    }
}

static void set_cache(struct kv_cache *kv, uint32_t n_layer, const struct cache_state *s, const int64_t *to) {
    const uint8_t *rows = s->rows;
    for (uint32_t il = 0; il < n_layer; il++) {
        if (!kv->k[il]) continue;
        set_rows(kv->k[il], &rows, s->n, to);
        set_rows(kv->v[il], &rows, s->n, to);
    }
}

/* ---- a state of everything ------------------------------------------------------------------------------------- */

static void put_outputs(struct writer *w, const struct llama_context *ctx) {
    const struct output_rows *out = &ctx->out;
    put_u32(w, (uint32_t) out->n);
    put_u32(w, (uint32_t) out->n_batch);
    if (!out->n) return;
    put(w, out->row, (size_t) out->n_batch*sizeof *out->row);
    put(w, out->logits, (size_t) out->n*ctx->model->h.n_vocab*sizeof *out->logits);
}

static bool get_outputs(struct reader *r, const struct llama_context *ctx, uint32_t *n, const uint8_t **row,
                        const uint8_t **logits) {
    *n = get_u32(r);
    const uint32_t n_batch = get_u32(r);
    if (r->failed || *n > n_batch || n_batch != (uint32_t) ctx->out.n_batch) {
        log_error("state: of a context with batches of %u tokens, not %d", n_batch, ctx->out.n_batch);
        return false;
    }
    *row    = get(r, *n ? n_batch*sizeof(int32_t) : 0);
    *logits = get(r, (size_t) *n*ctx->model->h.n_vocab*sizeof(float));
    for (uint32_t i = 0; *n && *row && i < n_batch; i++) {
        int32_t at;
        memcpy(&at, *row + i*sizeof at, sizeof at);
        if (at < -1 || at >= (int32_t) *n) r->failed = true;
    }
    if (r->failed) log_error("state: damaged");
    return !r->failed;
}

static void *room(size_t bytes) {
    void *p = malloc(bytes);
    if (!p) log_error("state: out of memory for %zu bytes", bytes);
    return p;
}

static size_t state_write(struct llama_context *ctx, uint8_t *dst, size_t size) {
    struct writer w = { dst, size, 0, false };
    if (ctx->memory.shifted && !graph_shift(ctx)) return 0;
    put_head(&w, ctx, MAGIC_WHOLE);
    put_outputs(&w, ctx);
    for (int i = 0; i < KV_CACHES; i++) {
        if (ctx->memory.cache[i].cells.n) put_cache(&w, &ctx->memory.cache[i], ctx->memory.n_layer, ~(uint64_t) 0);
    }
    if (w.full) log_error("state: it does not fit into %zu bytes", size);
    return w.full ? 0 : w.used;
}

size_t llama_state_get_size(struct llama_context *ctx) { return state_write(ctx, NULL, 0); }

size_t llama_state_get_data(struct llama_context *ctx, uint8_t *dst, size_t size) {
    return dst ? state_write(ctx, dst, size) : 0;
}

/* Where cells of a state go: to their own index, or to new cells of sequence `dest` in order of position. */
static int64_t *targets(const struct cache_state *s) { return room((s->n + (size_t) 1)*sizeof(int64_t)); }

static void cache_restore(struct kv_cache *kv, uint32_t n_layer, const struct cache_state *s, int64_t *to) {
    struct kv_cells *c = &kv->cells;
    for (int64_t i = 0; i < c->n; i++) kv_cell_clear(c, i);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct cell_record cell = cell_at(s, i);
        to[i] = cell.index;
        c->pos [cell.index] = cell.pos;
        c->seqs[cell.index] = cell.seqs;
    }
    kv_recount(c);
    set_cache(kv, n_layer, s, to);
}

static size_t state_read(struct llama_context *ctx, const uint8_t *src, size_t size, bool whole) {
    struct reader r = { src, src ? size : 0, false, whole };
    struct cache_state s[KV_CACHES] = { { 0 } };
    int64_t *to[KV_CACHES] = { NULL };
    const uint8_t *row = NULL, *logits = NULL;
    uint32_t n = 0;
    bool ok = get_head(&r, ctx, MAGIC_WHOLE) && get_outputs(&r, ctx, &n, &row, &logits);
    for (int i = 0; ok && i < KV_CACHES; i++) {
        const struct kv_cache *kv = &ctx->memory.cache[i];
        if (kv->cells.n) ok = get_cache(&r, ctx, kv, &s[i]) && (to[i] = targets(&s[i]));
    }
    ok = ok && at_end(&r) && outputs_reserve(ctx, (int32_t) n);
    for (int i = 0; i < KV_CACHES; i++) {
        if (ok && to[i]) cache_restore(&ctx->memory.cache[i], ctx->memory.n_layer, &s[i], to[i]);
        free(to[i]);
    }
    if (!ok) return 0;
    ctx->memory.shifted = false;
    ctx->out.n = (int32_t) n;
    if (n) memcpy(ctx->out.row, row, (size_t) ctx->out.n_batch*sizeof *ctx->out.row);
    if (n) memcpy(ctx->out.logits, logits, (size_t) n*ctx->model->h.n_vocab*sizeof *ctx->out.logits);
    return size - r.left;
}

size_t llama_state_set_data(struct llama_context *ctx, const uint8_t *src, size_t size) { return state_read(ctx, src, size, false); }

/* ---- a state of one sequence ----------------------------------------------------------------------------------- */

static bool seq_known(const struct llama_context *ctx, llama_seq_id s) {
    if (s >= 0 && (uint32_t) s < ctx->params.n_seq_max) return true;
    log_error("state: no sequence %d", s);
    return false;
}

/* Whether a state of one sequence has to do with cache i. */
static bool takes_part(const struct llama_context *ctx, int i, llama_state_seq_flags flags) {
    return ctx->memory.cache[i].cells.n && (i == KV_SLIDING || !(flags & LLAMA_STATE_SEQ_FLAGS_SWA_ONLY));
}

static size_t seq_write(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id s,
                        llama_state_seq_flags flags) {
    struct writer w = { dst, size, 0, false };
    if (!seq_known(ctx, s) || (ctx->memory.shifted && !graph_shift(ctx))) return 0;
    put_head(&w, ctx, MAGIC_SEQ);
    put_u32(&w, flags & LLAMA_STATE_SEQ_FLAGS_SWA_ONLY);
    for (int i = 0; i < KV_CACHES; i++) {
        if (takes_part(ctx, i, flags)) put_cache(&w, &ctx->memory.cache[i], ctx->memory.n_layer, (uint64_t) 1 << s);
    }
    if (w.full) log_error("state: it does not fit into %zu bytes", size);
    return w.full ? 0 : w.used;
}

static bool has_room(const struct kv_cells *c, uint32_t n, int s) {
    uint32_t room = 0;
    for (int64_t i = 0; i < c->n; i++) room += !(c->seqs[i] & ~((uint64_t) 1 << s));
    if (room < n) log_error("state: %u cells wanted, %u free", n, room);
    return room >= n;
}

static void seq_clear(struct kv_cells *c, int s) {
    for (int64_t i = 0; i < c->n; i++) {
        c->seqs[i] &= ~((uint64_t) 1 << s);
        if (!c->seqs[i]) kv_cell_clear(c, i);
    }
    kv_recount(c);
}

struct ordered { int32_t pos; uint32_t i; };

static int by_pos(const void *a, const void *b) {
    const int32_t x = ((const struct ordered *) a)->pos, y = ((const struct ordered *) b)->pos;
    return (x > y) - (x < y);
}

static bool seq_restore(struct kv_cache *kv, uint32_t n_layer, const struct cache_state *s, int64_t *to,
                        struct ordered *order, int dest) {
    seq_clear(&kv->cells, dest);
    for (uint32_t i = 0; i < s->n; i++) order[i] = (struct ordered) { cell_at(s, i).pos, i };
    qsort(order, s->n, sizeof *order, by_pos);
    for (uint32_t i = 0; i < s->n; i++) {
        if ((to[order[i].i] = kv_take(&kv->cells, dest, order[i].pos)) < 0) {
            seq_clear(&kv->cells, dest);
            return false;
        }
    }
    set_cache(kv, n_layer, s, to);
    return true;
}

static size_t seq_read(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest,
                       llama_state_seq_flags flags, bool whole) {
    struct reader r = { src, src ? size : 0, false, whole };
    struct cache_state s[KV_CACHES] = { { 0 } };
    int64_t *to[KV_CACHES] = { NULL };
    struct ordered *order[KV_CACHES] = { NULL };
    bool ok = seq_known(ctx, dest) && get_head(&r, ctx, MAGIC_SEQ);
    if (ok && get_u32(&r) != (flags & LLAMA_STATE_SEQ_FLAGS_SWA_ONLY)) {
        log_error("state: saved with other flags");
        ok = false;
    }
    for (int i = 0; ok && i < KV_CACHES; i++) {
        const struct kv_cache *kv = &ctx->memory.cache[i];
        if (!takes_part(ctx, i, flags)) continue;
        ok = get_cache(&r, ctx, kv, &s[i]) && has_room(&kv->cells, s[i].n, dest) && (to[i] = targets(&s[i]));
        ok = ok && (order[i] = room((s[i].n + (size_t) 1)*sizeof *order[i]));
    }
    ok = ok && at_end(&r);
    for (int i = 0; i < KV_CACHES; i++) {
        ok = ok && (!to[i] || seq_restore(&ctx->memory.cache[i], ctx->memory.n_layer, &s[i], to[i], order[i], dest));
        free(to[i]);
        free(order[i]);
    }
    return ok ? size - r.left : 0;
}

size_t llama_state_seq_get_size_ext(struct llama_context *ctx, llama_seq_id seq_id, llama_state_seq_flags flags) {
    return seq_write(ctx, NULL, 0, seq_id, flags);
}
size_t llama_state_seq_get_data_ext(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id,
                                    llama_state_seq_flags flags) {
    return dst ? seq_write(ctx, dst, size, seq_id, flags) : 0;
}
size_t llama_state_seq_set_data_ext(struct llama_context *ctx, const uint8_t *src, size_t size,
                                    llama_seq_id dest_seq_id, llama_state_seq_flags flags) {
    return seq_read(ctx, src, size, dest_seq_id, flags, false);
}
size_t llama_state_seq_get_size(struct llama_context *ctx, llama_seq_id seq_id) {
    return seq_write(ctx, NULL, 0, seq_id, 0);
}
size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id) {
    return llama_state_seq_get_data_ext(ctx, dst, size, seq_id, 0);
}
size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest_seq_id) {
    return seq_read(ctx, src, size, dest_seq_id, 0, false);
}

/* ---- files: magic, version, n tokens, the tokens, a state ------------------------------------------------------ */

static bool save(const char *path, uint32_t magic, uint32_t version, const llama_token *tokens, size_t n,
                 const uint8_t *state, size_t size) {
    const uint32_t head[3] = { magic, version, (uint32_t) n };
    FILE *f = n <= UINT32_MAX ? ggml_fopen(path, "wb") : NULL;
    bool ok = f && fwrite(head, sizeof head, 1, f) == 1 && (!n || fwrite(tokens, sizeof *tokens, n, f) == n) &&
        fwrite(state, 1, size, f) == size;
    if (f && fclose(f)) ok = false;
    if (!ok) log_error("%s: the state could not be written", path);
    return ok;
}

struct saved {                      /* the bytes of such a file; free them */
    uint8_t *bytes;
    uint32_t n;
    const uint8_t *state;
    size_t size;
};

/* The largest state that a context can take up: more of a file is not worth reading. */
static uint64_t most_bytes(const struct llama_context *ctx) {
    const uint64_t outputs = (uint64_t) ctx->params.n_batch*(1 + (uint64_t) ctx->model->h.n_vocab)*sizeof(float);
    uint64_t bytes = sizeof(struct fingerprint) + 8*sizeof(uint32_t) + outputs;
    for (int i = 0; i < KV_CACHES; i++) {
        const struct kv_cache *kv = &ctx->memory.cache[i];
        if (kv->cells.n) bytes += kv->cells.n*(sizeof(struct cell_record) + row_bytes(kv, ctx->memory.n_layer));
    }
    return bytes;
}

static bool load(const struct llama_context *ctx, const char *path, uint32_t magic, uint32_t version, size_t capacity, struct saved *s) {
    struct file f;
    uint32_t head[3];
    *s = (struct saved) { 0 };
    if (!file_open(&f, path)) return false;
    const bool known = file_read(&f, head, 0, sizeof head) == sizeof head && head[0] == magic && head[1] == version;
    const uint64_t tokens = known ? head[2]*(uint64_t) sizeof(llama_token) : 0;
    const bool fits = known && head[2] <= capacity && tokens <= f.size - sizeof head && f.size - sizeof head - tokens <= most_bytes(ctx);
    s->bytes = fits ? room(f.size) : NULL;
    const bool read = s->bytes && file_read(&f, s->bytes, 0, f.size) == f.size;
    if (read) {
        s->n     = head[2];
        s->state = s->bytes + sizeof head + tokens;
        s->size  = f.size - sizeof head - tokens;
    }
    if (!fits)                 log_error("%s: not a saved state, or of more than %zu tokens, or of another context", path, capacity);
    else if (s->bytes && !read) log_error("%s: it cannot be read", path);
    file_close(&f);
    if (!read) free(s->bytes);
    return read;
}

static void tokens_out(const struct saved *s, llama_token *tokens, size_t *count) {
    if (s->n && tokens) memcpy(tokens, s->bytes + 3*sizeof(uint32_t), s->n*sizeof *tokens);
    if (count) *count = s->n;
}

bool llama_state_save_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
                           size_t n_token_count) {
    const size_t size = llama_state_get_size(ctx);
    uint8_t *state = room(size + 1);
    const bool ok = state && state_write(ctx, state, size) == size &&
                    save(path_session, LLAMA_SESSION_MAGIC, LLAMA_SESSION_VERSION, tokens, n_token_count, state, size);
    free(state);
    return ok;
}

bool llama_state_load_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out_,
                           size_t n_token_capacity, size_t *n_token_count_out) {
    struct saved s;
    if (!load(ctx, path_session, LLAMA_SESSION_MAGIC, LLAMA_SESSION_VERSION, n_token_capacity, &s)) return false;
    const bool ok = state_read(ctx, s.state, s.size, true) > 0;
    if (ok) tokens_out(&s, tokens_out_, n_token_count_out);
    free(s.bytes);
    return ok;
}

size_t llama_state_seq_save_file(struct llama_context *ctx, const char *filepath, llama_seq_id seq_id,
                                 const llama_token *tokens, size_t n_token_count) {
    const size_t size = llama_state_seq_get_size(ctx, seq_id);
    uint8_t *state = room(size + 1);
    const bool ok = size && state && seq_write(ctx, state, size, seq_id, 0) == size &&
                    save(filepath, LLAMA_STATE_SEQ_MAGIC, LLAMA_STATE_SEQ_VERSION, tokens, n_token_count, state, size);
    free(state);
    return ok ? size + 3*sizeof(uint32_t) + n_token_count*sizeof *tokens : 0;
}

size_t llama_state_seq_load_file(struct llama_context *ctx, const char *filepath, llama_seq_id dest_seq_id,
                                 llama_token *tokens_out_, size_t n_token_capacity, size_t *n_token_count_out) {
    struct saved s;
    if (!load(ctx, filepath, LLAMA_STATE_SEQ_MAGIC, LLAMA_STATE_SEQ_VERSION, n_token_capacity, &s)) return 0;
    const bool ok = seq_read(ctx, s.state, s.size, dest_seq_id, 0, true) > 0;
    if (ok) tokens_out(&s, tokens_out_, n_token_count_out);
    const size_t read = s.size + 3*sizeof(uint32_t) + s.n*sizeof(llama_token);
    free(s.bytes);
    return ok ? read : 0;
}

/* ---- older names ------------------------------------------------------------------------------------------------- */

size_t llama_get_state_size(struct llama_context *ctx) { return llama_state_get_size(ctx); }

size_t llama_copy_state_data(struct llama_context *ctx, uint8_t *dst) {
    return llama_state_get_data(ctx, dst, llama_state_get_size(ctx));
}

size_t llama_set_state_data(struct llama_context *ctx, const uint8_t *src) { return llama_state_set_data(ctx, src, SIZE_MAX); }

bool llama_load_session_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out_,
                             size_t n_token_capacity, size_t *n_token_count_out) {
    return llama_state_load_file(ctx, path_session, tokens_out_, n_token_capacity, n_token_count_out);
}

bool llama_save_session_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
                             size_t n_token_count) {
    return llama_state_save_file(ctx, path_session, tokens, n_token_count);
}
