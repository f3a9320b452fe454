/* FLASH_ATTN_EXT: attention without its matrix (Dao et al. 2022; Milakov and Gimelshein 2018 for the running softmax).
 *
 * Keys are walked in chunks of 64 from the start of the cache; a row's chunks are merged in that order, so neither threads
 * nor the other rows of a batch nor masked keys at the end of the cache change a bit (kernels/attention.h says what a chunk
 * gives). All arithmetic is F32.
 *
 * Work. A tile is a run of tokens times the query heads that share one key and one value head: 64 rows or so on a prompt, the
 * heads of one token in generation. A unit is a tile over all chunks, merged as it goes. When there are too few tiles for the
 * workers, or so few tokens that memory is the limit, it is one chunk of a tile: the heads of a chunk, which are neighbours in
 * a cache, come one after the other, and all workers meet after every `wave` chunks to merge what these left in scratch; where
 * that is little, the last one does it.
 *
 *     scratch: a part for each worker (struct part), then for each row of the op its state and, in waves, its chunks */

#include "compiler.h"
#include "reals.h"
#include "rows.h"

#include <math.h>
#include <string.h>

enum {
    TILE_ROWS   = 64,
    TURN_ROWS   = 16,                               /* of a tile, from which it pays to turn the keys of a chunk */
    FEW_STATES  = 192                               /* rows of chunks that one worker merges sooner than workers meet */
};

struct attention {
    const struct ggml_tensor       *q, *k, *v, *mask, *sinks;
    const struct attention_kernels *kernels;
    const struct float_kernels     *floats;
    float   scale, max_bias, cap;
    int64_t dk, dv;                                 /* padded to 16 */
    int64_t keys, chunks;
    int64_t group;                                  /* query heads that share a key and a value head */
    int64_t tile_tokens, tiles_of_tokens, tiles;
    int64_t wave;                                   /* chunks between two meetings; 0: units are whole tiles */
    bool    mask_per_head;
};

/* What a worker needs for a tile and a chunk. */
struct part {
    float    *q, *qt;                               /* [tile rows][dk], as it is and turned */
    float    *k, *kt, *v;                           /* [64][dk], turned, [64][dv] */
    float    *mask;                                 /* [tile rows][64] */
    uint64_t *live;                                 /* [tile rows]: a bit for each key that takes part */
    float    *slope;                                /* [tile rows] */
    float    *s;                                    /* [16][64] */
    float    *a;                                    /* [16][dv] */
};
/* A row's running softmax: max, sum, then dv values. */
static int64_t state_floats(const struct attention *x) { return 16 + x->dv; }

static int64_t greatest_divisor(int64_t a, int64_t b) { while (b) { const int64_t r = a % b; a = b; b = r; } return a; }

static struct attention attention_of(const struct ggml_tensor *dst, int n_threads) {
    struct attention x = { .q = dst->src[0], .k = dst->src[1], .v = dst->src[2], .mask = dst->src[3], .sinks = dst->src[4] };
    x.cap      = param_f32(dst, 2);
    x.scale    = param_f32(dst, 0);
    x.max_bias = param_f32(dst, 1);
    x.dk = padded16(x.q->ne[0]), x.dv = padded16(x.v->ne[0]);
    x.keys = x.k->ne[1], x.chunks = (x.keys + ATTENTION_KEYS - 1)/ATTENTION_KEYS;
    x.group = greatest_divisor(x.q->ne[2]/x.k->ne[2], x.q->ne[2]/x.v->ne[2]);
    x.mask_per_head = x.mask && x.mask->ne[2] > 1;
    const int64_t tokens = x.q->ne[1], most = x.group < TILE_ROWS ? TILE_ROWS/x.group : 1;
    x.tile_tokens = tokens < most ? tokens : most;
    x.tiles_of_tokens = (tokens + x.tile_tokens - 1)/x.tile_tokens;
    x.tiles = x.tiles_of_tokens*(x.q->ne[2]/x.group)*x.q->ne[3];
    if (x.chunks > 1 && (x.tiles_of_tokens == 1 || (n_threads > 1 && x.tiles < 4*n_threads))) {
        x.wave = (8*n_threads + x.tiles - 1)/x.tiles;
        if (x.wave > x.chunks) x.wave = x.chunks;
    }
    return x;
}

static int64_t tile_rows(const struct attention *x) { return x->tile_tokens*x->group; }

static size_t part_floats(const struct attention *x) {
    const int64_t rows = tile_rows(x);
    return (size_t) (2*rows*x->dk + ATTENTION_KEYS*(2*x->dk + x->dv) + rows*ATTENTION_KEYS + 3*padded16(rows) +
                     16*ATTENTION_KEYS + 16*x->dv);
}
static struct part part_at(const struct attention *x, float *p) {
    const int64_t rows = tile_rows(x);
    struct part w;
    w.q    = p,      p += rows*x->dk;
    w.qt   = p,      p += rows*x->dk;
    w.k    = p,      p += ATTENTION_KEYS*x->dk;
    w.kt   = p,      p += ATTENTION_KEYS*x->dk;
    w.v    = p,      p += ATTENTION_KEYS*x->dv;
    w.mask = p,      p += rows*ATTENTION_KEYS;
    w.live = (uint64_t *) (void *) p, p += 2*padded16(rows);
    w.slope = p,     p += padded16(rows);
    w.s    = p,      p += 16*ATTENTION_KEYS;
    w.a    = p;
    return w;
}
/* Rows that have a state in scratch at one time: in waves all of the op, each with its chunks; else a worker's tile. */
static size_t states_floats(const struct attention *x, int n_threads) {
    const int64_t rows = x->wave ? x->tiles*tile_rows(x)*(1 + x->wave) : tile_rows(x)*n_threads;
    return (size_t) (rows*state_floats(x));
}

size_t scratch_flash_attn_ext(const struct ggml_tensor *dst, int n_threads) {
    const struct attention x = attention_of(dst, n_threads);
    return (part_floats(&x)*(size_t) n_threads + states_floats(&x, n_threads))*sizeof(float);
}

bool supports_flash_attn_ext(const struct ggml_tensor *dst) {
    const struct ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2];
    return row_readable(q) && row_readable(k) && row_readable(v) && row_direct(dst);
}

/* ---- one chunk for one tile ---------------------------------------------------------------------------------------- */

struct tile {
    int64_t t0, tokens, head, batch;                /* query rows: tokens t0 .. times heads head .. head + group - 1 */
    int     rows;                                   /* row r: token r/group, head r % group */
    bool    turned;
};

static struct tile tile_at(const struct attention *x, int64_t i) {
    const int64_t groups = x->q->ne[2]/x->group;
    /* late tokens see most keys: they come first, so that no worker ends with a long one */
    struct tile t = { .t0 = (x->tiles_of_tokens - 1 - i/(groups*x->q->ne[3]))*x->tile_tokens,
                      .head = i % groups*x->group, .batch = i/groups % x->q->ne[3] };
    const int64_t left = x->q->ne[1] - t.t0;
    t.tokens = left < x->tile_tokens ? left : x->tile_tokens;
    t.rows   = (int) (t.tokens*x->group);
    t.turned = t.rows >= TURN_ROWS;
    return t;
}

/* n elements of a row as floats at `to`, zeros from there to `padded`. */
static void fetch(const struct cpu_task *task, const struct ggml_tensor *t, const void *row, int64_t padded, float *to) {
    const int64_t n = t->ne[0];
    const float *from = row_load(task, t, row, 0, n, to);
    if (from != to) memcpy(to, from, (size_t) n*sizeof *to);
    memset(to + n, 0, (size_t) (padded - n)*sizeof *to);
}

static void load_queries(const struct cpu_task *task, const struct attention *x, const struct tile *t, const struct part *w) {
    for (int r = 0; r < t->rows; r++) {
        fetch(task, x->q, row_at(x->q, t->t0 + r/x->group, t->head + r%x->group, t->batch), x->dk, w->q + r*x->dk);
        if (t->turned) x->kernels->turn_row(x->dk, w->q + r*x->dk, w->qt + r*x->dk);
        w->slope[r] = alibi_slope(t->head + r%x->group, x->q->ne[2], x->max_bias);
    }
}

/* Rows of keys or values of a chunk as the kernels take them: where they lie, or as floats in `to`. */
struct operand { const void *rows; size_t stride; bool f16; };
static struct operand chunk_operand(const struct cpu_task *task, const struct ggml_tensor *t, const struct tile *tile, int64_t head,
                                    int64_t j0, int n, int64_t padded, float *to) {
    const bool f16 = t->type == GGML_TYPE_F16 && !tile->turned;         /* many rows share it: widened once */
    if ((f16 || t->type == GGML_TYPE_F32) && row_dense(t) && t->ne[0] == padded) {
        return (struct operand) { row_at(t, j0, head, tile->batch), t->nb[1], f16 };
    }
    const size_t bytes = row_dense(t) ? ggml_row_size(t->type, t->ne[0]) : 0;
    const bool whole = row_dense(t) && t->ne[0] == padded;
    for (int j = 0; j < n; j++) {
        const char *const row = row_at(t, j0 + j, head, tile->batch);
        for (size_t i = 0; i < bytes; i += 64) PREFETCH(row + ATTENTION_AHEAD*t->nb[1] + i);
        if      (whole && ggml_is_quantized(t->type)) task->k->q.unpack[t->type](row, to + j*padded, padded);
        else if (whole && t->type == GGML_TYPE_F16)   task->k->f.from_f16(padded, to + j*padded, (const uint16_t *) (const void *) row);
        else                                          fetch(task, t, row, padded, to + j*padded);
    }
    return (struct operand) { to, (size_t) padded*sizeof(float), false };
}

/* The masks of the tile's rows for a chunk, and which keys take part: in a slot for each token, or, when heads have masks of
 * their own, for each row. Returns the union. */
static int64_t slot_of(const struct attention *x, int r) { return x->mask_per_head ? r : r/x->group; }
static uint64_t load_masks(const struct attention *x, const struct tile *t, const struct part *w, int64_t j0, int n) {
    uint64_t any = 0;
    const int64_t slots = x->mask_per_head ? t->rows : t->tokens;
    for (int64_t i = 0; i < slots; i++) {
        const int64_t token = t->t0 + (x->mask_per_head ? i/x->group : i), head = t->head + (x->mask_per_head ? i%x->group : 0);
        const uint16_t *row = NULL;
        if (x->mask) row = (const uint16_t *) row_at(x->mask, token, head % x->mask->ne[2], t->batch % x->mask->ne[3]) + j0;
        w->live[i] = x->kernels->mask(n, row, w->mask + i*ATTENTION_KEYS);
        any |= w->live[i];
    }
    return any;
}

/* a[r] += p v over the keys that take part: runs that all rows share at once, others row by row. */
static void weigh(const struct attention *x, int rows, const uint64_t *live, uint64_t all, uint64_t any, const float (*p)[ATTENTION_KEYS],
                  const struct operand *v, float *a) {
    void (*const f)(int64_t, int, const float (*)[ATTENTION_KEYS], int, int, const void *, size_t, float *) =
        v->f16 ? x->kernels->weigh_f16 : x->kernels->weigh_f32;
    for (int j = 0; j < ATTENTION_KEYS && any >> j;) {
        int end = j + 1;
        if (all >> j & 1) {
            while (end < ATTENTION_KEYS && all >> end & 1) end++;
            f(x->dv, rows, p, j, end, v->rows, v->stride, a);
        } else if (any >> j & 1) {
            for (int r = 0; r < rows; r++) if (live[r] >> j & 1) f(x->dv, 1, p + r, j, end, v->rows, v->stride, a + r*x->dv);
        }
        j = end;
    }
}

/* Where a row keeps its running softmax, or a chunk's share of it. */
struct state { float *max, *sum, *values; };
static struct state state_at(const struct attention *x, float *states, int64_t i) {
    float *const p = states + i*state_floats(x);
    return (struct state) { p, p + 1, p + 16 };
}
static void state_clear(const struct attention *x, struct state s) {
    *s.max = -INFINITY, *s.sum = 0.0f;
    memset(s.values, 0, (size_t) x->dv*sizeof *s.values);
}

/* A block of the tile's rows, from `first` on, times the chunk: its shares in w->a, max and sum. Returns how many rows. */
static int block_chunk(const struct attention *x, const struct tile *t, const struct part *w, int first, const struct operand *k,
                       const struct operand *v, uint64_t *live, float *max, float *sum) {
    const struct attention_kernels *kernels = x->kernels;
    const int rows = t->rows - first < kernels->rows ? t->rows - first : kernels->rows;
    float (*const s)[ATTENTION_KEYS] = (void *) w->s;
    uint64_t all = ~(uint64_t) 0, any = 0;
    for (int r = 0; r < rows; r++) live[r] = w->live[slot_of(x, first + r)], all &= live[r], any |= live[r];
    if (!any) return rows;
    if (t->turned)   kernels->scores_turned(x->dk, rows, w->qt + first*x->dk, w->kt, any, s);
    else if (k->f16) kernels->scores_f16(x->dk, rows, w->q + first*x->dk, k->rows, k->stride, any, s);
    else             kernels->scores_f32(x->dk, rows, w->q + first*x->dk, k->rows, k->stride, any, s);
    for (int r = 0; r < rows; r++) {
        const float *mask = w->mask + slot_of(x, first + r)*ATTENTION_KEYS;
        sum[r] = kernels->weights(s[r], mask, w->slope[first + r], x->scale, x->cap, &max[r]);
    }
    memset(w->a, 0, (size_t) (rows*x->dv)*sizeof *w->a);
    weigh(x, rows, live, all, any, (const float (*)[ATTENTION_KEYS]) s, v, w->a);
    return rows;
}

/* Row r of the tile gets its share of the chunk at states + r*step: merged into what is there, or instead of it. */
static void tile_chunk(const struct cpu_task *task, const struct attention *x, const struct tile *t, const struct part *w, int64_t chunk,
                       float *states, int64_t step, bool merge) {
    const int64_t j0 = chunk*ATTENTION_KEYS, heads = x->q->ne[2];
    const int n = (int) (x->keys - j0 < ATTENTION_KEYS ? x->keys - j0 : ATTENTION_KEYS);
    if (!load_masks(x, t, w, j0, n)) return;
    const int64_t head_k = t->head/(heads/x->k->ne[2]), head_v = t->head/(heads/x->v->ne[2]);
    const struct operand k = chunk_operand(task, x->k, t, head_k, j0, n, x->dk, w->k);
    const struct operand v = chunk_operand(task, x->v, t, head_v, j0, n, x->dv, w->v);
    if (t->turned) x->kernels->turn(x->dk, n, k.rows, k.stride, w->kt);
    for (int first = 0, rows; first < t->rows; first += rows) {
        uint64_t live[16];
        float max[16], sum[16];
        rows = block_chunk(x, t, w, first, &k, &v, live, max, sum);
        for (int r = 0; r < rows; r++) {
            const struct state y = state_at(x, states, (first + r)*step);
            const float *a = w->a + r*x->dv;
            if (!live[r]) continue;
            if (merge) x->kernels->merge(x->dv, y.values, y.max, y.sum, a, max[r], sum[r]);
            else       *y.max = max[r], *y.sum = sum[r], memcpy(y.values, a, (size_t) x->dv*sizeof *a);
        }
    }
}

/* ---- rows out ------------------------------------------------------------------------------------------------------ */

/* values/sum, the sink counted as one more key without a value; zeros when no key took part. */
static void finish_row(const struct attention *x, struct ggml_tensor *dst, const struct tile *t, int r, struct state y) {
    const int64_t token = t->t0 + r/x->group, head = t->head + r%x->group;
    float scale = 1.0f, sum = *y.sum;
    if (x->sinks) {
        const float sink = *(const float *) (const void *) element(x->sinks, head, 0, 0, 0);
        float e = -fabsf(*y.max - sink);
        x->floats->unary[GGML_UNARY_OP_EXP](1, &e, &e);
        if (sink > *y.max) scale = e;
        sum = sink > *y.max ? fmaf(sum, e, 1.0f) : sum + e;
    }
    x->floats->mul1(dst->ne[0], row_at(dst, head, token, t->batch), y.values, sum != 0.0f ? scale/sum : 0.0f);
}

static void whole_tiles(const struct cpu_task *task, const struct attention *x, struct ggml_tensor *dst, const struct part *w, float *states) {
    int64_t i;
    states += task->ith*tile_rows(x)*state_floats(x);
    while (task_chunk(task, x->tiles, &i)) {
        const struct tile t = tile_at(x, i);
        load_queries(task, x, &t, w);
        for (int r = 0; r < t.rows; r++) state_clear(x, state_at(x, states, r));
        for (int64_t chunk = 0; chunk < x->chunks; chunk++) tile_chunk(task, x, &t, w, chunk, states, 1, true);
        for (int r = 0; r < t.rows; r++) finish_row(x, dst, &t, r, state_at(x, states, r));
    }
}

/* Tiles that nobody has taken get what n chunks from `first` on left. */
static void merge_tiles(const struct cpu_task *task, const struct attention *x, struct ggml_tensor *dst, float *states, int64_t first, int64_t n) {
    int64_t i;
    while (task_chunk(task, x->tiles, &i)) {
        const struct tile t = tile_at(x, i);
        for (int r = 0; r < t.rows; r++) {
            const int64_t at = (i*tile_rows(x) + r)*(1 + x->wave);
            const struct state y = state_at(x, states, at);
            if (first == 0) state_clear(x, y);
            for (int64_t c = 0; c < n; c++) {
                const struct state z = state_at(x, states, at + 1 + c);
                if (*z.sum != 0.0f) x->kernels->merge(x->dv, y.values, y.max, y.sum, z.values, *z.max, *z.sum);
            }
            if (first + n == x->chunks) finish_row(x, dst, &t, r, y);
        }
    }
}

static bool meets(const struct attention *x) {
    return x->wave && (x->wave < x->chunks || x->tiles*tile_rows(x)*x->chunks > FEW_STATES);
}
bool attention_meets(const struct ggml_tensor *dst, int n_threads) {
    const struct attention x = attention_of(dst, n_threads);
    return meets(&x);
}

/* States in scratch: [row of the op][its own, then one a chunk of the wave]; a sum of zero says that the chunk has no share. */
static void in_waves(const struct cpu_task *task, const struct attention *x, struct ggml_tensor *dst, const struct part *w, float *states) {
    const int64_t step = 1 + x->wave;
    for (int64_t first = 0; first < x->chunks; first += x->wave) {
        const int64_t n = x->chunks - first < x->wave ? x->chunks - first : x->wave;
        int64_t unit;
        while (task_chunk(task, x->tiles*n, &unit)) {
            const struct tile t = tile_at(x, unit%x->tiles);
            float *const own = states + (unit%x->tiles*tile_rows(x)*step + 1 + unit/x->tiles)*state_floats(x);
            load_queries(task, x, &t, w);
            for (int r = 0; r < t.rows; r++) *state_at(x, own, r*step).sum = 0.0f;
            tile_chunk(task, x, &t, w, first + unit/x->tiles, own, step, false);
        }
        if (!meets(x)) return;
        task_barrier(task);
        merge_tiles(task, x, dst, states, first, n);
        if (first + n < x->chunks) task_barrier(task);
    }
}

static struct attention attention_with(const struct cpu_task *t, const struct ggml_tensor *dst, float **states) {
    struct attention x = attention_of(dst, t->n_threads);
    x.floats = &t->k->f, x.kernels = t->k->f.attention;
    *states = (float *) t->scratch + part_floats(&x)*(size_t) t->n_threads;
    return x;
}

void op_flash_attn_ext(const struct cpu_task *t, struct ggml_tensor *dst) {
    float *states;
    const struct attention x = attention_with(t, dst, &states);
    const struct part w = part_at(&x, (float *) t->scratch + part_floats(&x)*(size_t) t->ith);
    if (x.wave) in_waves(t, &x, dst, &w, states);
    else        whole_tiles(t, &x, dst, &w, states);
}

void finish_attention(const struct cpu_task *t, struct ggml_tensor *dst) {
    float *states;
    const struct attention x = attention_with(t, dst, &states);
    if (x.wave && !meets(&x)) merge_tiles(t, &x, dst, states, 0, x.chunks);
}
