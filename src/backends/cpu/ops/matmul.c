/* MUL_MAT and MUL_MAT_ID.
 *
 * Both are the same work: a set of slices, each a matrix of weights with a list of columns that are multiplied by it. In
 * MUL_MAT the slices are the matrices of src0 and a slice's columns are the rows of src1 that it is broadcast to; in
 * MUL_MAT_ID they are the experts and the tokens that chose them, sorted by expert. Columns are numbered slice by slice.
 *
 * First the columns are prepared in units of the scratch: a unit is one tile of activations for slices with enough columns
 * for a gemm, else up to as many single columns. After a barrier pieces of rows of a slice are handed out and each is
 * multiplied by all the columns of its slice. When the preparation is small every worker does all of it for itself, which
 * costs less than the barrier.
 *
 * Several products of the same columns (STEP_PRODUCTS) are one work: the columns are prepared once, and the pieces are those
 * of all of them. A chain of nodes that makes the columns is computed with the preparation: each worker its units' rows, or,
 * where every worker prepares for itself, each a copy of its own and one of them, when nobody reads the sources any more, the
 * nodes themselves. What is done with the products element by element follows on each piece.
 *
 * Scratch: `areas` times [ in MUL_MAT_ID: order | first column and first unit of each slice | units ],
 * then for each worker [ F32 rows of one unit | scratch of gemm, or the copy of the columns ]. */

#include <string.h>

#include "compiler.h"
#include "cpu.h"
#include "kernels.h"
#include "steps.h"

enum {
    ROW_BLOCK_MIN = 32,         /* rows of a chunk are a multiple of it, what any tile is content with */
    GEMM_MIN      = 5,          /* columns of a slice from which a gemm pays */
    PRIVATE_MAX   = 8192,       /* elements of activations that every worker prepares for itself */
    WARM_BYTES    = 4096,       /* of a piece that are asked for before it is begun */
    CHUNK_BYTES   = 32768,      /* weights that several columns are taken past while they are in the cache */
    GEMM_BLOCKS   = 4           /* of ROW_BLOCK_MIN rows that a gemm takes at once: it asks for the weights of one during the one before */
};

struct matmul {
    const struct ggml_tensor *w, *x, *ids;          /* ids NULL: MUL_MAT */
    const struct ggml_tensor *dst;
    const struct product     *p;
    const struct cpu_kernels *kernels;
    int64_t k, rows;
    int64_t slices, columns;                        /* columns: of all slices together */
    int     unit_columns;                           /* 1: no gemm */
    int64_t units;                                  /* at most */
    bool    is_private, is_flat;                    /* is_flat: one slice, whose columns are the rows of a matrix */
    size_t  lists_size, unit_size, area_size, floats_size, worker_size, total;      /* bytes */
};

/* One worker's or everybody's lists and units. */
struct area {
    char    *units;
    int32_t *order;                                 /* [columns] token*used + slot, sorted by expert; these in MUL_MAT_ID only */
    int64_t *column_first, *unit_first;             /* [slices + 1] */
};

/* ---- sizes; SIZE_MAX stays what it is ---- */

static size_t add_sizes(size_t a, size_t b) { size_t r; return size_add(&r, a, b) ? r : SIZE_MAX; }
static size_t mul_sizes(size_t a, size_t b) { size_t r; return size_mul(&r, a, b) ? r : SIZE_MAX; }
static size_t pad64(size_t a)               { size_t r; return size_pad(&r, a, 64) ? r : SIZE_MAX; }

static bool is_float(enum ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1)/b; }

static void plan_sizes(struct matmul *m, int n_threads) {
    const size_t column = column_size(m->p->block, m->k);
    m->unit_size = column;
    if (m->unit_columns > 1) {
        const size_t tile = pad64(m->p->tile_size(m->k)), columns = mul_sizes(column, (size_t) m->unit_columns);
        m->unit_size = tile > columns ? tile : columns;
    }
    m->units = m->ids ? m->columns/m->unit_columns + m->slices : m->slices*ceil_div(m->columns/m->slices, m->unit_columns);
    if (m->units > m->columns) m->units = m->columns;
    if (m->ids) {
        m->lists_size = pad64(mul_sizes((size_t) m->columns, sizeof(int32_t)));
        m->lists_size = add_sizes(m->lists_size, pad64(mul_sizes(2*sizeof(int64_t), (size_t) m->slices + 1)));
    }
    m->area_size   = add_sizes(m->lists_size, mul_sizes((size_t) m->units, m->unit_size));
    m->floats_size = mul_sizes(pad64(mul_sizes((size_t) m->k, sizeof(float))), (size_t) m->unit_columns);
    m->worker_size = add_sizes(m->floats_size, m->unit_columns > 1 ? pad64(m->p->gemm_scratch(m->k)) :
                     m->is_private ? pad64(mul_sizes((size_t) (m->k*m->columns), sizeof(float))) : 0);
    const size_t areas = m->is_private ? (size_t) n_threads : 1;
    m->total = add_sizes(mul_sizes(areas, m->area_size), mul_sizes((size_t) n_threads, m->worker_size));
}

/* The way dst is computed by these kernels; with `plain` without gemm. */
static struct matmul plan(const struct ggml_tensor *dst, const struct cpu_kernels *kernels, int n_threads, bool plain) {
    struct matmul m = { .w = dst->src[0], .x = dst->src[1], .ids = dst->src[2], .dst = dst, .kernels = kernels };
    /* codes of a partner type may be -128, which only the portable products allow for */
    m.p       = is_float(m.x->type) ? &kernels->q.product[m.w->type] : &quant_kernels_portable.product[m.w->type];
    m.k       = m.w->ne[0];
    m.rows    = m.w->ne[1];
    m.slices  = m.w->ne[2]*m.w->ne[3];
    m.columns = dst->ne[1]*dst->ne[2]*dst->ne[3];
    if (m.rows == 0 || m.columns == 0 || m.slices == 0) {
        m.columns = 0;
        return m;
    }
    const int64_t most = m.ids ? m.columns : m.columns/m.slices;                    /* columns of one slice */
    const bool gemm = !plain && m.p->tile_columns && most >= GEMM_MIN && m.w->nb[0] == ggml_type_size(m.w->type);
    m.unit_columns = gemm ? m.p->tile_columns : 1;
    m.is_flat    = !m.ids && m.x->ne[2]*m.x->ne[3] == 1;
    m.is_private = !gemm && m.k <= PRIVATE_MAX/m.columns;
    plan_sizes(&m, n_threads);
    return m;
}

size_t scratch_mul_mat(const struct ggml_tensor *dst, int n_threads) {
    return plan(dst, cpu_kernels(), n_threads, false).total;
}

bool products_alike(const struct ggml_tensor *a, const struct ggml_tensor *b, const struct cpu_kernels *k, int n_threads) {
    const struct matmul x = plan(a, k, n_threads, false), y = plan(b, k, n_threads, false);
    return x.p->block == y.p->block && (x.unit_columns == 1 || x.p->tile == y.p->tile) && x.k == y.k && x.slices == y.slices &&
           x.columns == y.columns && x.unit_columns == y.unit_columns && x.unit_size == y.unit_size;
}

bool products_meet(const struct ggml_tensor *node, const struct cpu_kernels *k, int n_threads) {
    return !plan(node, k, n_threads, false).is_private;
}

bool supports_mul_mat(const struct ggml_tensor *dst) {
    const struct ggml_tensor *w = dst->src[0], *x = dst->src[1];
    return quant_kernels_portable.product[w->type].block &&
           (is_float(w->type) || w->nb[0] == ggml_type_size(w->type)) &&
           (is_float(x->type) || (!is_float(w->type) && x->type == quant_partners[w->type])) && dst->nb[0] == sizeof(float);
}

/* ---- columns ---- */

static struct area area_at(const struct cpu_task *t, const struct matmul *m) {
    char *base = (char *) t->scratch + (m->is_private ? (size_t) t->ith*m->area_size : 0);
    struct area a = { .units = base + m->lists_size };
    if (!m->ids) return a;
    a.order = (int32_t *) (void *) base;
    a.column_first = (int64_t *) (void *) (a.units - pad64(2*sizeof(int64_t)*((size_t) m->slices + 1)));
    a.unit_first   = a.column_first + m->slices + 1;
    return a;
}

/* The first column and the first unit of a slice, 0 <= slice <= slices. */
static int64_t column_first(const struct matmul *m, const struct area *a, int64_t slice) {
    return m->ids ? a->column_first[slice] : slice*(m->columns/m->slices);
}
static int64_t unit_first(const struct matmul *m, const struct area *a, int64_t slice) {
    return m->ids ? a->unit_first[slice] : slice*ceil_div(m->columns/m->slices, m->unit_columns);
}
static int64_t columns_of(const struct matmul *m, const struct area *a, int64_t slice) {
    return column_first(m, a, slice + 1) - column_first(m, a, slice);
}

static bool has_gemm(const struct matmul *m, const struct area *a, int64_t slice) {
    return m->unit_columns > 1 && columns_of(m, a, slice) >= GEMM_MIN;
}

static int32_t id_at(const struct ggml_tensor *ids, int64_t slot, int64_t token) {
    return *(const int32_t *) (const void *) ((const char *) ids->data + (size_t) slot*ids->nb[0] + (size_t) token*ids->nb[1]);
}

/* Sorts the pairs of token and slot by expert, tokens of an expert in their order. False after task_fail. */
static bool list_experts(const struct cpu_task *t, const struct matmul *m, const struct area *a) {
    const int64_t used = m->ids->ne[0], tokens = m->ids->ne[1];
    int64_t *first = a->column_first;
    memset(first, 0, sizeof *first*((size_t) m->slices + 1));
    for (int64_t i = 0; i < used*tokens; i++) {
        const int32_t id = id_at(m->ids, i % used, i / used);
        if (id < 0 || id >= m->slices) {
            task_fail(t, m->dst, "expert %d of token %lld is outside 0 .. %lld", id, (long long) (i/used), (long long) m->slices - 1);
            return false;
        }
        first[id + 1]++;
    }
    for (int64_t s = 0; s < m->slices; s++) first[s + 1] += first[s];
    for (int64_t i = 0; i < used*tokens; i++) {             /* moves each first to its end, which is the next one's first */
        a->order[first[id_at(m->ids, i % used, i / used)]++] = (int32_t) i;
    }
    for (int64_t s = m->slices; s > 0; s--) first[s] = first[s - 1];
    first[0] = 0;
    a->unit_first[0] = 0;
    for (int64_t s = 0; s < m->slices; s++) a->unit_first[s + 1] = a->unit_first[s] + ceil_div(first[s + 1] - first[s], m->unit_columns);
    return true;
}

/* Where column c comes from and goes to. */
static void column_at(const struct matmul *m, const struct area *a, int64_t c, const void **x, float **y) {
    int64_t i1, i2 = 0, i3 = 0, x1;
    if (m->is_flat) {
        x1 = i1 = c;
    } else if (m->ids) {
        i1 = a->order[c] % m->dst->ne[1], i2 = a->order[c] / m->dst->ne[1];
        x1 = i1 % m->x->ne[1];
    } else {
        const int64_t per_slice = m->columns/m->slices, slice = c/per_slice, j = c % per_slice;
        const int64_t repeat2 = m->x->ne[2]/m->w->ne[2], repeat3 = m->x->ne[3]/m->w->ne[3];
        x1 = i1 = j % m->x->ne[1];
        i2 = slice % m->w->ne[2]*repeat2 + j/m->x->ne[1] % repeat2;
        i3 = slice / m->w->ne[2]*repeat3 + j/m->x->ne[1] / repeat2;
    }
    *x = row_at(m->x, x1, i2, i3);
    *y = row_at(m->dst, i1, i2, i3);
}

static const void *slice_at(const struct matmul *m, int64_t slice) {
    return row_at(m->w, 0, slice % m->w->ne[2], slice / m->w->ne[2]);
}

/* A row of floats of any kind, elements `stride` bytes apart, to dense F32. */
static void gather(const struct matmul *m, enum ggml_type type, size_t stride, const char *x, float *y) {
    const int64_t k = m->k;
    const struct float_kernels *f = &m->kernels->f;
    if (stride == ggml_type_size(type)) {
        if      (type == GGML_TYPE_F32) memcpy(y, x, sizeof *y*(size_t) k);
        else if (type == GGML_TYPE_F16) f->from_f16(k, y, (const uint16_t *) (const void *) x);
        else                            f->from_bf16(k, y, (const uint16_t *) (const void *) x);
        return;
    }
    for (int64_t i = 0; i < k; i++, x += stride) {
        if      (type == GGML_TYPE_F32) y[i] = *(const float *) (const void *) x;
        else if (type == GGML_TYPE_F16) y[i] = ggml_fp16_to_fp32(*(const ggml_fp16_t *) (const void *) x);
        else                            y[i] = ggml_bf16_to_fp32(*(const ggml_bf16_t *) (const void *) x);
    }
}

static const float *column_floats(const struct matmul *m, const void *x, float *buffer) {
    if (m->x->type == GGML_TYPE_F32 && m->x->nb[0] == sizeof(float)) return x;
    gather(m, m->x->type, m->x->nb[0], x, buffer);
    return buffer;
}

static void prepare_column(const struct matmul *m, const void *x, float *buffer, void *column) {
    if      (!is_float(m->x->type)) column_from_partner(m->x->type, m->k, x, column);
    else if (m->p->block == 1)      gather(m, m->x->type, m->x->nb[0], x, column);
    else                            m->kernels->q.quantize(m->p->block, m->k, column_floats(m, x, buffer), column);
}

static int64_t slice_of_unit(const struct matmul *m, const struct area *a, int64_t unit) {
    int64_t low = 0, high = m->slices;                      /* the slice is in low .. high-1 */
    while (high - low > 1) {
        const int64_t middle = (low + high)/2;
        if (unit_first(m, a, middle) <= unit) low = middle; else high = middle;
    }
    return low;
}

static void prepare_unit(const struct matmul *m, const struct area *a, int64_t unit, float *buffer) {
    const int64_t slice = slice_of_unit(m, a, unit);
    const int64_t c = column_first(m, a, slice) + (unit - unit_first(m, a, slice))*m->unit_columns;
    const int64_t left = column_first(m, a, slice + 1) - c;
    const int n = (int) (left < m->unit_columns ? left : m->unit_columns);
    const size_t buffer_row = column_pad((size_t) m->k*sizeof(float))/sizeof(float);
    const bool tile = has_gemm(m, a, slice);
    const float *rows[TILE_COLUMNS_MAX];
    char *out = a->units + (size_t) unit*m->unit_size;
    for (int i = 0; i < n; i++) {
        const void *x;
        float *y;
        column_at(m, a, c + i, &x, &y);
        if (tile) rows[i] = column_floats(m, x, buffer + (size_t) i*buffer_row);
        else      prepare_column(m, x, buffer, out + (size_t) i*column_size(m->p->block, m->k));
    }
    if (tile) m->p->tile(m->k, n, rows, out);
}

/* ---- products ---- */

/* Rows of a float matrix whose elements are not neighbours: one row at a time. */
static void multiply_strided(const struct matmul *m, const char *w, int64_t n, const void *column, float *y, float *buffer) {
    for (int64_t i = 0; i < n; i++) {
        gather(m, m->w->type, m->w->nb[0], w + (size_t) i*m->w->nb[1], buffer);
        m->kernels->q.product[GGML_TYPE_F32].gemv(m->k, 1, buffer, 0, column, y + i);
    }
}

/* Rows i0 .. i0+n-1 of a slice times each of its columns. */
static void multiply_gemv(const struct matmul *m, const struct area *a, int64_t slice, int64_t i0, int64_t n, float *buffer) {
    const size_t column = column_size(m->p->block, m->k);
    const char *w = (const char *) slice_at(m, slice) + (size_t) i0*m->w->nb[1];
    const bool dense = m->w->nb[0] == ggml_type_size(m->w->type);
    const int64_t first = column_first(m, a, slice), count = columns_of(m, a, slice);
    for (int64_t j = 0; j < count; j++) {
        const int64_t unit = unit_first(m, a, slice) + j/m->unit_columns;
        const char *prepared = a->units + (size_t) unit*m->unit_size + (size_t) (j % m->unit_columns)*column;
        const void *x;
        float *y;
        column_at(m, a, first + j, &x, &y);
        if (dense) m->p->gemv(m->k, n, w, m->w->nb[1], prepared, y + i0);
        else       multiply_strided(m, w, n, prepared, y + i0, buffer);
    }
}

static void multiply_gemm(const struct matmul *m, const struct area *a, int64_t slice, int64_t i0, int64_t n, void *scratch) {
    const int64_t end = column_first(m, a, slice + 1), all = columns_of(m, a, slice);
    const int64_t calls = ceil_div(all, GEMM_COLUMNS/m->unit_columns*m->unit_columns);
    const int64_t most = ceil_div(ceil_div(all, calls), m->unit_columns)*m->unit_columns;
    const char *w = (const char *) slice_at(m, slice) + (size_t) i0*m->w->nb[1];
    const char *tiles = a->units + (size_t) unit_first(m, a, slice)*m->unit_size;
    for (int64_t c = column_first(m, a, slice); c < end; c += most) {
        const int count = (int) (end - c < most ? end - c : most);
        float *y[GEMM_COLUMNS];
        for (int j = 0; j < count; j++) {
            const void *x;
            column_at(m, a, c + j, &x, &y[j]);
            y[j] += i0;
        }
        m->p->gemm(m->k, n, w, m->w->nb[1], count, tiles, m->unit_size, y, scratch);
        tiles += (size_t) (most/m->unit_columns)*m->unit_size;
    }
}

/* ---- a step of products ---- */

struct group {
    const struct cpu_step      *step;
    struct ggml_tensor *const  *node;           /* before, products, after */
    struct matmul               m[STEP_NODES];  /* of the products; what the first says of columns holds for all */
    struct ggml_tensor          x;              /* this worker's copy of the columns */
    size_t                      areas, worker_size;
};

/* Rows of one slice of a set of products. Pieces are numbered; each worker counts through all and does those it took. Slices
 * without columns have none. */
struct piece { int set; int64_t slice, i0, n; };
struct pieces {
    int64_t number, left;                       /* pieces so far, and the blocks behind them: ROW_BLOCK_MIN rows of a set */
    int     set;                                /* where the next one begins */
    int64_t slice, block;
    int64_t round;                              /* blocks of each piece of this round */
};

static bool is_set(const struct group *g, int i) { return g->step->set[g->step->before + i] == i; }

static struct pieces all_pieces(const struct group *g, const struct area *a) {
    struct pieces p = { 0 };
    for (int i = 0; i < g->step->products; i++) for (int64_t s = 0; is_set(g, i) && s < g->m[i].slices; s++) {
        if (columns_of(&g->m[i], a, s)) p.left += ceil_div(g->m[i].rows, ROW_BLOCK_MIN);
    }
    return p;
}

/* Blocks of the next piece. Each worker's share is read in as few pieces as may be, since memory answers slowly at first: a round
 * gives each three quarters of what is left for it, and smaller rounds follow, so that all workers end together. Weights that
 * several columns are taken past stay in the cache meanwhile. */
static int64_t piece_blocks(const struct cpu_task *t, const struct matmul *m, const struct area *a, struct pieces *p) {
    const int64_t left = ceil_div(m->rows, ROW_BLOCK_MIN) - p->block, block_bytes = ROW_BLOCK_MIN*(int64_t) m->w->nb[1] + 1;
    const int64_t bytes = columns_of(m, a, p->slice) > 1 ? CHUNK_BYTES : 32*CHUNK_BYTES;
    const int64_t most = has_gemm(m, a, p->slice) ? GEMM_BLOCKS : bytes/block_bytes;
    if (p->number % t->nth == 0) p->round = t->nth == 1 ? p->left : 3*p->left/(4*t->nth);
    int64_t n = p->round;
    if (n > most) n = most;
    if (n < 1)    n = 1;
    return n < left ? n : left;
}

static void next_slice(const struct group *g, struct pieces *p) {
    p->block = 0;
    if (++p->slice < g->m[p->set].slices) return;
    p->slice = 0;
    do p->set++; while (p->set < g->step->products && !is_set(g, p->set));
}

/* Asks for the beginning of a piece. */
static void warm_piece(const struct group *g, const struct piece *piece) {
    const struct matmul *m = &g->m[piece->set];
    const char *w = (const char *) slice_at(m, piece->slice) + (size_t) piece->i0*m->w->nb[1];
    const size_t size = (size_t) piece->n*m->w->nb[1];
    for (size_t at = 0; at < size && at < WARM_BYTES; at += 64) PREFETCH(w + at);
}

/* The next piece that nobody has taken; of no rows at the end. */
static struct piece take_piece(const struct cpu_task *t, const struct group *g, const struct area *a, struct pieces *p) {
    int64_t wanted;
    task_chunk(t, INT64_MAX, &wanted);
    while (p->left > 0) {
        const struct matmul *m = &g->m[p->set];
        if (columns_of(m, a, p->slice) == 0) {
            next_slice(g, p);
            continue;
        }
        const int64_t n = piece_blocks(t, m, a, p), i0 = p->block*ROW_BLOCK_MIN, end = i0 + n*ROW_BLOCK_MIN;
        const struct piece piece = { p->set, p->slice, i0, (end < m->rows ? end : m->rows) - i0 };
        p->left -= n, p->block += n;
        if (end >= m->rows) next_slice(g, p);
        if (p->number++ < wanted) continue;
        warm_piece(g, &piece);
        return piece;
    }
    return (struct piece) { .n = 0 };
}

/* What is done with the products of a piece element by element. */
static void finish(const struct cpu_task *t, const struct group *g, const struct area *a, const struct piece *piece) {
    const struct cpu_step *s = g->step;
    const struct matmul *m = &g->m[piece->set];
    struct span part = { .i0 = piece->i0, .i1 = piece->i0 + piece->n };
    for (int i = s->before + s->products; i < s->count; i++) {
        if (s->set[i] != piece->set) continue;
        const int64_t first = column_first(m, a, piece->slice), count = columns_of(m, a, piece->slice);
        for (int64_t j = 0; j < (m->ids ? count : 1); j++) {
            part.r0 = m->ids ? a->order[first + j] : first;
            part.r1 = m->ids ? part.r0 + 1 : first + count;
            node_part(t, g->node[i], part);
        }
    }
}

/* Rows from .. to-1 of a piece, of one of its products. */
static void multiply_rows(const struct matmul *m, const struct area *a, const struct piece *p, int64_t from, int64_t to, float *buffer) {
    if (from == to) return;
    if (has_gemm(m, a, p->slice)) multiply_gemm(m, a, p->slice, p->i0 + from, to - from, (char *) (void *) buffer + m->floats_size);
    else                          multiply_gemv(m, a, p->slice, p->i0 + from, to - from, buffer);
}

/* All pieces from p on that this worker gets. The next one is taken shortly before one ends, so that its weights are on the way;
 * earlier, it would be kept from a worker that is free. */
static void multiply(const struct cpu_task *t, const struct group *g, const struct area *a, struct pieces *pieces, struct piece p, float *buffer) {
    const uint8_t *set = g->step->set + g->step->before;
    for (struct piece next; p.n; p = next) {
        int last = p.set;
        for (int i = p.set + 1; i < g->step->products; i++) {
            if (set[i] != p.set) continue;
            multiply_rows(&g->m[last], a, &p, 0, p.n, buffer);
            last = i;
        }
        const int64_t head = has_gemm(&g->m[last], a, p.slice) ? 0 : (p.n - 1)/ROW_BLOCK_MIN*ROW_BLOCK_MIN;
        multiply_rows(&g->m[last], a, &p, 0, head, buffer);
        next = take_piece(t, g, a, pieces);
        multiply_rows(&g->m[last], a, &p, head, p.n, buffer);
        finish(t, g, a, &p);
    }
}

static void run_chain(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node, int64_t r0, int64_t r1) {
    for (int i = 0; i < step->before; i++) node_part(t, node[i], (struct span) { r0, r1, 0, node[i]->ne[0] });
}
void finish_products(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node) {
    if (!step->meets) run_chain(t, step, node, 0, n_rows(node[0]));
}

/* The chain, with results in `to` instead of its nodes' memory; x becomes the last of them. */
static void copy_chain(const struct cpu_task *t, const struct group *g, float *to, struct ggml_tensor *x) {
    for (int i = 0; i < g->step->before; i++) {
        struct ggml_tensor last = *x;
        *x = *g->node[i];
        x->data = to;
        for (int d = 1; d < GGML_MAX_DIMS; d++) x->nb[d] = x->nb[d - 1]*(size_t) x->ne[d - 1];
        for (int s = 0; s < GGML_MAX_SRC && i; s++) if (x->src[s] == g->node[i - 1]) x->src[s] = &last;
        node_part(t, x, (struct span) { 0, n_rows(x), 0, x->ne[0] });
    }
}

static void prepare(const struct cpu_task *t, struct group *g, const struct area *a, float *buffer) {
    struct matmul *m = &g->m[0];
    const int64_t units = unit_first(m, a, m->slices);
    if (m->is_private) {
        if (g->step->before) {
            copy_chain(t, g, (float *) (void *) ((char *) (void *) buffer + m->floats_size), &g->x);
            m->x = &g->x;
        }
        for (int64_t i = 0; i < units; i++) prepare_unit(m, a, i, buffer);
        return;
    }
    for (int64_t i; task_chunk(t, units, &i); ) {
        const int64_t r0 = i*m->unit_columns, r1 = r0 + m->unit_columns;
        if (g->step->before) run_chain(t, g->step, g->node, r0, r1 < m->columns ? r1 : m->columns);
        prepare_unit(m, a, i, buffer);
    }
    task_barrier(t);
}

/* How all of it is computed; false when there is nothing to compute. */
static bool plan_group(const struct cpu_task *t, struct group *g, bool plain) {
    g->worker_size = 0;
    for (int i = 0; i < g->step->products; i++) {
        struct matmul *m = &g->m[i];
        *m = plan(g->node[g->step->before + i], t->k, t->nth, plain);
        if (m->columns == 0) return false;
        if (!plain && m->total > t->scratch_size) return plan_group(t, g, true);      /* planned for another instruction set */
        if (g->step->meets) m->is_private = false, plan_sizes(m, t->nth);
        if (m->worker_size > g->worker_size) g->worker_size = m->worker_size;
    }
    g->areas = g->m[0].is_private ? (size_t) t->nth : 1;
    return true;
}

void run_products(const struct cpu_task *t, const struct cpu_step *step, struct ggml_tensor *const *node) {
    struct group g = { .step = step, .node = node };
    if (!plan_group(t, &g, false)) return;
    const struct matmul *m = &g.m[0];
    const struct area a = area_at(t, m);
    float *buffer = (float *) (void *) ((char *) t->scratch + g.areas*m->area_size + (size_t) t->ith*g.worker_size);
    if (m->ids) {
        if ((m->is_private || t->ith == 0) && !list_experts(t, m, &a)) a.unit_first[m->slices] = -1;
        if (!m->is_private) task_barrier(t);
        if (unit_first(m, &a, m->slices) < 0) return;
    }
    /* memory answers while the columns are prepared; where that is shared, the same counter gives the units first */
    struct pieces pieces = all_pieces(&g, &a);
    struct piece first = { .n = 0 };
    if (m->is_private && !(first = take_piece(t, &g, &a, &pieces)).n) return;
    prepare(t, &g, &a, buffer);
    if (!m->is_private) first = take_piece(t, &g, &a, &pieces);
    multiply(t, &g, &a, &pieces, first, buffer);
}

void op_mul_mat(const struct cpu_task *t, struct ggml_tensor *dst) {
    static const struct cpu_step one = { .kind = STEP_PRODUCTS, .count = 1, .products = 1 };
    run_products(t, &one, &dst);
}
