/* Cells of the KV cache: who owns which, which are free, what a token may see, and the llama_memory_* calls.
 * Knows nothing of graphs; the keys' rotation after a shift is done by graph.c before they are next read. */

#include "model.h"

#include "log.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ----------------------------------------------------------------------------------------------------- */

static int lowest_bit(uint64_t set) {
    int i = 0;
    while (!(set >> i & 1)) i++;
    return i;
}
#define FOR_EACH_SEQ(s, set) \
    for (uint64_t set_##s = (set), s; set_##s && (s = (uint64_t) lowest_bit(set_##s), 1); set_##s &= set_##s - 1)

void kv_cell_clear(struct kv_cells *c, int64_t i) {
    c->pos[i] = -1;
    c->shift[i] = 0;
    c->seqs[i] = 0;
}

void kv_recount(struct kv_cells *c) {
    for (int s = 0; s < MAX_SEQUENCES; s++) c->top[s] = -1, c->last[s] = -1;
    c->end = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (c->seqs[i]) c->end = i + 1;
        FOR_EACH_SEQ(s, c->seqs[i]) {
            if (c->pos[i] > c->top[s]) c->top[s] = c->pos[i], c->last[s] = i;
        }
    }
}

int64_t kv_extent(const struct kv_cells *c) {
    const int64_t end = c->end ? c->end : 1;
    return c->n ? (end + KV_STEP - 1)/KV_STEP*KV_STEP : 0;
}

/* Positions up to this one are out of sight of whatever sequence s appends next. */
static int64_t out_of_sight(const struct kv_cells *c, uint64_t s) {
    return c->n_swa && !c->keeps ? (int64_t) c->top[s] + 1 - c->n_swa : -1;
}

static bool is_free(const struct kv_cells *c, const int64_t *hidden, int64_t i) {
    FOR_EACH_SEQ(s, c->seqs[i]) {
        if (c->pos[i] > hidden[s]) return false;
    }
    return true;
}

static bool page_is_free(const struct kv_cells *c, const int64_t *hidden, int64_t page) {
    for (int64_t i = page*KV_PAGE; i < (page + 1)*KV_PAGE; i++) {
        if (!is_free(c, hidden, i)) return false;
    }
    return true;
}

/* The cell for the token of sequence s at pos: the next of the sequence's page, else its place in the next free page, else
 * any free cell. -1: none. */
static int64_t cell_for(const struct kv_cells *c, const int64_t *hidden, int s, llama_pos pos) {
    const int64_t next = c->last[s] + 1, pages = c->n/KV_PAGE;
    if (next % KV_PAGE && is_free(c, hidden, next)) return next;
    const int64_t start = (next + KV_PAGE - 1)/KV_PAGE;
    for (int64_t i = 0; i < pages; i++) {
        const int64_t page = (start + i) % pages;
        if (page_is_free(c, hidden, page)) return page*KV_PAGE + pos % KV_PAGE;
    }
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t cell = (next + i) % c->n;
        if (is_free(c, hidden, cell)) return cell;
    }
    return -1;
}

static void fill(struct kv_cells *c, int64_t i, llama_pos pos, uint64_t seqs) {
    c->pos[i]   = pos;
    c->shift[i] = 0;
    c->seqs[i]  = seqs;
    if (i >= c->end) c->end = i + 1;
    FOR_EACH_SEQ(s, seqs) {
        if (pos > c->top[s]) c->top[s] = pos, c->last[s] = i;
    }
}

static void take(struct kv_cache *kv, int64_t i, llama_pos pos, uint64_t seqs) {
    struct kv_cells *c = &kv->cells;
    kv->taken[kv->n_taken++] = (struct kv_taken) { i, c->pos[i], c->shift[i], c->seqs[i] };
    fill(c, i, pos, seqs);
}

static void give_back(struct kv_cache *kv, int32_t keep, bool written) {
    struct kv_cells *c = &kv->cells;
    while (kv->n_taken > keep) {
        const struct kv_taken *t = &kv->taken[--kv->n_taken];
        c->pos[t->cell]   = t->pos;
        c->shift[t->cell] = t->shift;
        c->seqs[t->cell]  = t->seqs;
        if (written) kv_cell_clear(c, t->cell);
    }
    kv_recount(c);
}

static void find_hidden(const struct kv_cells *c, int64_t *hidden) {
    for (int s = 0; s < MAX_SEQUENCES; s++) hidden[s] = out_of_sight(c, (uint64_t) s);
}

int64_t kv_take(struct kv_cells *c, int s, llama_pos pos) {
    int64_t hidden[MAX_SEQUENCES];
    find_hidden(c, hidden);
    const int64_t cell = cell_for(c, hidden, s, pos);
    if (cell >= 0) fill(c, cell, pos, (uint64_t) 1 << s);
    return cell;
}

static bool place(struct kv_cache *kv, const struct token_list *batch, int32_t first, int32_t n) {
    const int32_t before = kv->n_taken;
    int64_t hidden[MAX_SEQUENCES];
    find_hidden(&kv->cells, hidden);
    for (int32_t i = first; i < first + n; i++) {
        const int64_t cell = cell_for(&kv->cells, hidden, batch->first_seq[i], batch->pos[i]);
        if (cell < 0) {
            give_back(kv, before, false);
            return false;
        }
        take(kv, cell, batch->pos[i], batch->seqs[i]);
    }
    return true;
}

void memory_begin(struct llama_memory_i *mem) {
    for (int i = 0; i < KV_CACHES; i++) mem->cache[i].n_taken = 0;
}

bool memory_place(struct llama_memory_i *mem, const struct token_list *batch, int32_t first, int32_t n) {
    for (int i = 0; i < KV_CACHES; i++) {
        if (!mem->cache[i].cells.n || place(&mem->cache[i], batch, first, n)) continue;
        while (i-- > 0) {
            if (mem->cache[i].cells.n) give_back(&mem->cache[i], mem->cache[i].n_taken - n, false);
        }
        return false;
    }
    return true;
}

void memory_undo(struct llama_memory_i *mem, bool written) {
    for (int i = 0; i < KV_CACHES; i++) {
        if (mem->cache[i].cells.n) give_back(&mem->cache[i], 0, written);
    }
}

void kv_mask(const struct kv_cells *c, const struct token_list *batch, int32_t first, int32_t n, int64_t n_kv,
             bool causal,
             ggml_fp16_t *mask) {
    const ggml_fp16_t hidden = 0xfc00, seen = 0;        /* -inf and 0 */
    for (int32_t j = 0; j < n; j++) {
        const uint64_t  seq  = (uint64_t) 1 << batch->first_seq[first + j];
        const llama_pos pos  = batch->pos[first + j];
        const int64_t   from = c->n_swa ? (int64_t) pos - c->n_swa + 1 : 0, to = causal ? pos : INT32_MAX;
        ggml_fp16_t    *row  = mask + j*n_kv;
        for (int64_t i = 0; i < n_kv; i++) {
            row[i] = (c->seqs[i] & seq) && c->pos[i] >= from && c->pos[i] <= to ? seen : hidden;
        }
    }
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static bool cells_init(struct kv_cells *c, uint32_t n, uint32_t n_swa) {
    c->n     = n;
    c->n_swa = n_swa;
    c->pos   = malloc(n*sizeof *c->pos);
    c->shift = malloc(n*sizeof *c->shift);
    c->seqs  = malloc(n*sizeof *c->seqs);
    return c->pos && c->shift && c->seqs;
}

/* Not before the tensors are there: what cannot be had is not worth touching a page for every cell. */
static void cells_clear(struct kv_cells *c) {
    for (uint32_t i = 0; i < c->n; i++) kv_cell_clear(c, i);
    kv_recount(c);
}

static bool type_holds(enum ggml_type type, uint32_t head_size, const char *what) {
    if ((int) type >= 0 && type < GGML_TYPE_COUNT && ggml_blck_size(type) > 0 &&
        head_size % (uint64_t) ggml_blck_size(type) == 0) {
        return true;
    }
    const char *name = (int) type >= 0 && type < GGML_TYPE_COUNT && ggml_type_name(type) ? ggml_type_name(type) : "unknown";
    log_error("KV cache: heads of %u elements cannot be kept as %s of type %s (%d)", head_size, what, name, (int) type);
    return false;
}

/* Whether n cells of all layers have a size that can be asked for. */
static bool size_is_sane(const struct hparams *h, const struct llama_context_params *p, uint64_t n) {
    double bytes = 0;
    for (uint32_t il = 0; il < h->n_layer; il++) {
        const size_t head = ggml_row_size(p->type_k, h->n_head_k) + ggml_row_size(p->type_v, h->n_head_v);
        bytes += (double) n*h->n_head_kv[il]*(double) head;
    }
    return bytes < (double) SIZE_MAX/4;
}

static bool tensors_init(struct kv_cache *kv, const struct llama_model *m, const struct llama_context_params *p,
                         int which) {
    const struct hparams *h = &m->h;
    kv->k   = calloc(h->n_layer, sizeof *kv->k);
    kv->v   = calloc(h->n_layer, sizeof *kv->v);
    kv->ctx = ggml_init((struct ggml_init_params) { 2*h->n_layer*ggml_tensor_overhead(), NULL, true });
    if (!kv->k || !kv->v || !kv->ctx || !size_is_sane(h, p, kv->n)) return false;
    for (uint32_t il = 0; il < h->n_layer; il++) {
        if (h->swa[il] != (which == KV_SLIDING)) continue;
        kv->k[il] = ggml_new_tensor_3d(kv->ctx, p->type_k, h->n_head_k, kv->n, h->n_head_kv[il]);
        kv->v[il] = ggml_new_tensor_3d(kv->ctx, p->type_v, h->n_head_v, kv->n, h->n_head_kv[il]);
        if (!kv->k[il] || !kv->v[il]) return false;
        ggml_format_name(kv->k[il], "cache_k.%u", il);
        ggml_format_name(kv->v[il], "cache_v.%u", il);
    }
    const ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(m->device);
    kv->bytes  = ggml_backend_alloc_ctx_tensors_from_buft_size(kv->ctx, type);
    kv->buffer = m->no_alloc ? buffer_pretended(kv->ctx, type) : ggml_backend_alloc_ctx_tensors_from_buft(kv->ctx, type);
    return kv->buffer != NULL;
}

static uint32_t cells_wanted(const struct hparams *h, const struct llama_context_params *p, int which) {
    if (which == KV_FULL || p->swa_full) return p->n_ctx;
    const uint64_t batch  = p->n_ubatch > SWA_BATCH ? p->n_ubatch : SWA_BATCH;
    const uint64_t wanted = ((uint64_t) h->n_swa + KV_PAGE)*p->n_seq_max + batch + KV_PAGE;
    const uint64_t padded = (wanted + KV_STEP - 1)/KV_STEP*KV_STEP;
    return padded < p->n_ctx ? (uint32_t) padded : p->n_ctx;
}

bool memory_init(struct llama_memory_i *mem, const struct llama_model *m, const struct llama_context_params *p) {
    const struct hparams *h = &m->h;
    if (!type_holds(p->type_k, h->n_head_k, "key") || !type_holds(p->type_v, h->n_head_v, "value")) return false;
    bool used[KV_CACHES] = { false };
    for (uint32_t il = 0; il < h->n_layer; il++) used[h->swa[il] ? KV_SLIDING : KV_FULL] = true;
    mem->n_layer = h->n_layer;
    for (int i = 0; i < KV_CACHES; i++) {
        if (!used[i]) continue;
        struct kv_cache *kv = &mem->cache[i];
        kv->cells.keeps = p->swa_full;
        kv->taken = malloc((size_t) p->n_batch*sizeof *kv->taken);
        kv->n     = cells_wanted(h, p, i);
        if (kv->taken && (m->no_alloc || cells_init(&kv->cells, kv->n, i == KV_SLIDING ? h->n_swa : 0)) && tensors_init(kv, m, p, i)) {
            cells_clear(&kv->cells);
            continue;
        }
        log_error("KV cache: out of memory for %u cells", kv->n);
        return false;
    }
    return true;
}

void memory_release(struct llama_memory_i *mem) {
    for (int i = 0; i < KV_CACHES; i++) {
        struct kv_cache *kv = &mem->cache[i];
        if (kv->buffer) ggml_backend_buffer_free(kv->buffer);
        ggml_free(kv->ctx);
        free(kv->k);
        free(kv->v);
        free(kv->taken);
        free(kv->cells.pos);
        free(kv->cells.shift);
        free(kv->cells.seqs);
        *kv = (struct kv_cache) { 0 };
    }
}

size_t memory_bytes(const struct llama_memory_i *mem) {
    size_t n = 0;
    for (int i = 0; i < KV_CACHES; i++) {
        if (mem->cache[i].buffer) n += mem->cache[i].bytes;
    }
    return n;
}

size_t memory_other_bytes(const struct llama_memory_i *mem) {
    size_t n = 0;
    for (int i = 0; i < KV_CACHES; i++) {
        const struct kv_cells *c = &mem->cache[i].cells;
        n += mem->cache[i].n*(sizeof *c->pos + sizeof *c->shift + sizeof *c->seqs);
    }
    return n;
}

struct kv_cache *memory_cache(struct llama_memory_i *mem, const struct llama_model *m, int il) {
    return &mem->cache[m->h.swa[il] ? KV_SLIDING : KV_FULL];
}

/* ---- llama_memory_* -------------------------------------------------------------------------------------------- */

#define FOR_EACH_CELLS(c, mem) for (struct kv_cache *kv_##c = (mem)->cache; kv_##c < (mem)->cache + KV_CACHES; kv_##c++) \
    for (struct kv_cells *c = kv_##c->cells.n ? &kv_##c->cells : NULL; c; c = NULL)

static uint64_t seq_bit(llama_seq_id s) { return s >= 0 && s < MAX_SEQUENCES ? (uint64_t) 1 << s : 0; }

struct range { llama_pos from, to; };       /* from inclusive, to exclusive */
static struct range range_of(llama_pos p0, llama_pos p1) {
    return (struct range) { p0 < 0 ? 0 : p0, p1 < 0 ? INT_MAX : p1 };
}
static bool in_range(const struct kv_cells *c, int64_t i, struct range r) {
    return c->pos[i] >= r.from && c->pos[i] < r.to;
}

void llama_memory_clear(llama_memory_t mem, bool data) {
    FOR_EACH_CELLS(c, mem) {
        for (int64_t i = 0; i < c->n; i++) kv_cell_clear(c, i);
        kv_recount(c);
    }
    for (int i = 0; data && i < KV_CACHES; i++) {
        if (mem->cache[i].buffer) ggml_backend_buffer_clear(mem->cache[i].buffer, 0);
    }
    mem->shifted = false;
}

/* Whether taking [r.from, ...) off the end leaves a sliding cache with all that the next token must see. */
static bool window_survives(llama_memory_t mem, llama_seq_id s, struct range r) {
    const struct kv_cells *c = &mem->cache[KV_SLIDING].cells;
    if (!c->n || c->top[s] < 0 || r.to <= c->top[s] || r.from > c->top[s]) return true;
    const llama_pos whole = llama_memory_seq_pos_min(mem, s);   /* of the sliding cache */
    llama_pos begin = INT_MAX;
    const struct kv_cells *full = &mem->cache[KV_FULL].cells;
    for (int64_t i = 0; i < full->n; i++) {
        if (full->seqs[i] & seq_bit(s) && full->pos[i] < begin) begin = full->pos[i];
    }
    if (!full->n) begin = 0;
    const int64_t need = (int64_t) r.from - c->n_swa + 1;
    return r.from <= begin || whole <= (need > begin ? need : begin);
}

bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
    const struct range r = range_of(p0, p1);
    if (seq_id >= MAX_SEQUENCES) return false;
    for (int s = 0; s < MAX_SEQUENCES; s++) {
        if ((seq_id < 0 || seq_id == s) && !window_survives(mem, s, r)) return false;
    }
    const uint64_t gone = seq_id < 0 ? ~(uint64_t) 0 : seq_bit(seq_id);
    FOR_EACH_CELLS(c, mem) {
        for (int64_t i = 0; i < c->n; i++) {
            if (!in_range(c, i, r)) continue;
            c->seqs[i] &= ~gone;
            if (!c->seqs[i]) kv_cell_clear(c, i);
        }
        kv_recount(c);
    }
    return true;
}

static void rows_copy(struct ggml_tensor *t, int64_t from, int64_t to, int64_t n) {
    for (int64_t head = 0; t && head < t->ne[2]; head++) {
        const size_t base = (size_t) head*t->nb[2];
        ggml_backend_tensor_set(t, (const char *) t->data + base + (size_t) from*t->nb[1],
                                base + (size_t) to*t->nb[1], (size_t) n*t->nb[1]);
    }
}

/* A sequence that goes on within a page it shares would lose the page's order; it gets a copy of that page. Without a free
 * page it shares on, and its sums may be cut differently from then on. */
static void unshare_last_page(struct kv_cache *kv, int s, uint32_t n_layer) {
    struct kv_cells *c = &kv->cells;
    const int64_t page = c->last[s]/KV_PAGE*KV_PAGE, n = c->last[s] + 1 - page, pages = c->n/KV_PAGE;
    int64_t hidden[MAX_SEQUENCES], to = (page/KV_PAGE + 1) % pages;
    if (c->last[s] < 0 || n == KV_PAGE) return;
    find_hidden(c, hidden);
    for (int64_t tries = 0; !page_is_free(c, hidden, to); to = (to + 1) % pages) {
        if (++tries == pages) return;
    }
    for (uint32_t il = 0; il < n_layer; il++) {
        rows_copy(kv->k[il], page, to*KV_PAGE, n);
        rows_copy(kv->v[il], page, to*KV_PAGE, n);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = page + i, b = to*KV_PAGE + i;
        kv_cell_clear(c, b);
        if (!(c->seqs[a] >> s & 1)) continue;
        c->pos[b]   = c->pos[a];
        c->shift[b] = c->shift[a];
        c->seqs[b]  = (uint64_t) 1 << s;
        c->seqs[a] &= ~((uint64_t) 1 << s);
        if (!c->seqs[a]) kv_cell_clear(c, a);
    }
    kv_recount(c);
}

void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
                         llama_pos p1) {
    const struct range r = range_of(p0, p1);
    if (seq_id_src == seq_id_dst) return;
    FOR_EACH_CELLS(c, mem) {
        for (int64_t i = 0; i < c->n; i++) {
            if (in_range(c, i, r) && c->seqs[i] & seq_bit(seq_id_src)) c->seqs[i] |= seq_bit(seq_id_dst);
        }
        kv_recount(c);
        if (seq_bit(seq_id_dst)) unshare_last_page(kv_c, seq_id_dst, mem->n_layer);
    }
}

void llama_memory_seq_keep(llama_memory_t mem, llama_seq_id seq_id) {
    FOR_EACH_CELLS(c, mem) {
        for (int64_t i = 0; i < c->n; i++) {
            c->seqs[i] &= seq_bit(seq_id);
            if (!c->seqs[i]) kv_cell_clear(c, i);
        }
        kv_recount(c);
    }
}

/* Gives every cell of the sequence in range the position that `num` and `den` make of it: pos/den + num. */
static void move(llama_memory_t mem, llama_seq_id s, struct range r, llama_pos num, int den) {
    FOR_EACH_CELLS(c, mem) {
        for (int64_t i = 0; i < c->n; i++) {
            if (!in_range(c, i, r) || !(c->seqs[i] & seq_bit(s))) continue;
            const int64_t to = (int64_t) c->pos[i]/den + num;
            if (to < 0 || to > INT_MAX - 1) {
                kv_cell_clear(c, i);
                continue;
            }
            c->shift[i] += (llama_pos) (to - c->pos[i]);
            c->pos[i]    = (llama_pos) to;
            mem->shifted = true;
        }
        kv_recount(c);
    }
}

void llama_memory_seq_add(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, llama_pos delta) {
    if (delta) move(mem, seq_id, range_of(p0, p1), delta, 1);
}

void llama_memory_seq_div(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, int d) {
    if (d > 1) move(mem, seq_id, range_of(p0, p1), 0, d);
}

/* With a sliding cache: of what it still holds, which is all that can be rolled back to. */
llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id) {
    const struct kv_cells *c = &mem->cache[mem->cache[KV_SLIDING].cells.n ? KV_SLIDING : KV_FULL].cells;
    llama_pos lowest = -1;
    for (int64_t i = 0; i < c->n; i++) {
        if (c->seqs[i] & seq_bit(seq_id) && (lowest < 0 || c->pos[i] < lowest)) lowest = c->pos[i];
    }
    return lowest;
}

llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id) {
    const struct kv_cells *c = &mem->cache[mem->cache[KV_SLIDING].cells.n ? KV_SLIDING : KV_FULL].cells;
    return c->n && seq_id >= 0 && seq_id < MAX_SEQUENCES ? c->top[seq_id] : -1;
}

bool llama_memory_can_shift(llama_memory_t mem) { (void) mem; return true; }
