/* Many columns times rows of quantised weights. ROW_BLOCK rows are unpacked piece by piece (PIECE elements of k) into panels
 * that stay in the first cache, all columns are taken past a piece tile by tile, and the accumulators of all columns wait in
 * the scratch meanwhile:  | panels | sums of a block | acc [tiles][panels][TILE_COLUMNS][PANEL_ROWS] |. */

#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "quant_types.h"
#include "codes.h"
#include "quant_isa.h"

enum {
    PANEL_ROWS = TILE_VECTORS*LANES,
    ROW_BLOCK  = 32,
    PIECE      = 512,
    PANELS     = ROW_BLOCK/PANEL_ROWS,
    TILE_ACC   = TILE_COLUMNS*PANEL_ROWS,
    TILES_MAX  = (GEMM_COLUMNS + TILE_COLUMNS - 1)/TILE_COLUMNS,
    PANEL_SIZE_MAX = PIECE*PANEL_ROWS*(2 + 1)       /* codes of two bytes, and at most a byte an element of scales */
};

/* One way to lay out panels and tiles; quant_tile.h draws it and instantiates them. */
struct shape {
    void (*tile)(int blocks, const uint8_t *panel, const uint8_t *tile, float *acc, int32_t *kept);
    int  block, group, span, offset, parts;
    bool wide, paired, scaled, min;
    int  panel_size, tile_size;                 /* bytes of a block */
};

/* ---- panels ---- */

/* Sixteen numbers of each of eight rows (struct codes), neighbours a dword, by columns of dwords. */
static void eight_columns(const int16_t *const rows[8], uint32_t columns[8][8]) {
    vb u[8];
    for (int i = 0; i < 8; i++) u[i] = vb_load(rows[i]);
    transpose_dwords(u, (uint8_t *) columns[0], sizeof columns[0]);
}
/* Number g of each row, of `groups` that a block has. */
static void column_of(uint32_t columns[8][8], int groups, int g, int16_t out[8]) {
    const int lane = groups == 8 ? g : g%2*8 + g/2;
    for (int i = 0; i < 8; i++) out[i] = (int16_t) (columns[lane/2][i] >> lane%2*16);
}
/* Scales and minimums of eight rows from row r on, from where they begin. */
static void panel_scales(const struct codes c[8], int groups, uint8_t *at, int r) {
    _Alignas(32) uint32_t columns[8][8];
    const int16_t *const rows[8] = { c[0].scale, c[1].scale, c[2].scale, c[3].scale, c[4].scale, c[5].scale, c[6].scale, c[7].scale };
    int32_t *out = (int32_t *) (void *) at + r;
    eight_columns(rows, columns);
    for (int g = 0; g < groups; g++, out += FINE_MOST*PANEL_ROWS) {
        int16_t s[8];
        column_of(columns, groups, g, s);
        for (int i = 0; i < 8; i++) out[i] = scale_word(s[i]);
    }
}
static void panel_mins(const struct codes c[8], int groups, uint8_t *at, int r) {
    _Alignas(32) uint32_t columns[8][8];
    const int16_t *const rows[8] = { c[0].min, c[1].min, c[2].min, c[3].min, c[4].min, c[5].min, c[6].min, c[7].min };
    uint32_t *out = (uint32_t *) (void *) at + r;
    eight_columns(rows, columns);
    for (int p = 0; p < groups/2; p++, out += PANEL_ROWS) {
        int16_t first[8], last[8];
        column_of(columns, groups, 2*p, first), column_of(columns, groups, 2*p + 1, last);
        for (int i = 0; i < 8; i++) out[i] = (uint16_t) first[i] | (uint32_t) (uint16_t) last[i] << 16;
    }
}
/* The scales of all rows times 2, 3, .. FINE_MOST. */
static void panel_fine(int groups, uint8_t *at) {
    for (int g = 0; g < groups; g++, at += FINE_MOST*PANEL_ROWS*4) {
        for (int v = 0; v < PANEL_ROWS*4; v += LANES*4) {
            const tv scale = t_load(at + v);
            tv times = scale;
            for (int f = 1; f < FINE_MOST; f++) t_store(at + f*PANEL_ROWS*4 + v, times = t_plus(times, scale));
        }
    }
}

/* Codes 32j .. 32j+31 of eight rows. */
static void panel_codes(const struct shape *s, const struct codes c[8], int j, uint8_t *out) {
    vb u[8];
#if BYTES_WIDE || WIDE_SCALED
    for (int half = 0; half < 2*s->wide; half++) {
        for (int i = 0; i < 8; i++) u[i] = t_widen(c[i].q + 32*j + 16*half, s->block == 32 ? 1 : c[i].scale[8*half + j]);
        transpose_dwords(u, out + half*PANEL_ROWS*32, PANEL_ROWS*4);
    }
    if (s->wide) return;
#endif
    for (int i = 0; i < 8; i++) {
        u[i] = vb_add(vb_load(c[i].q + 32*j), vb_set(s->offset));
        if (s->paired) u[i] = vb_paired(u[i]);
    }
    transpose_dwords(u, out, PANEL_ROWS*4);
}

/* Up to 256 neighbouring elements of rows r .. r+7, in groups of 32. */
static void panel_eight(const struct shape *s, const struct codes c[8], int groups, int r, uint8_t *panel) {
    const int per_block = s->block/32, group_size = PANEL_ROWS*(s->wide ? 64 : 32), n = 256/s->group;
    for (int j = 0; j < groups; j++) panel_codes(s, c, j, panel + j/per_block*s->panel_size + j%per_block*group_size + r*4);
    if (s->scaled)           panel_scales(c, n, panel + PANEL_ROWS*256, r);
    if (s->scaled && s->min) panel_mins(c, n, panel + PANEL_ROWS*(256 + n*FINE_MOST*4), r);
}

/* n blocks of PANEL_ROWS rows beginning at block `first`. */
static void fill_panel(const struct shape *s, read_codes_t *read, int n, const void *const *rows, int64_t first, uint8_t *panel) {
    const int most = 256/s->block;
    struct codes c[8];
    for (int i = 0; i < 8; i++) c[i].step = s->panel_size/4, c[i].half = PANEL_ROWS;
    for (int b = 0; b < n; b += most, panel += most*s->panel_size) {
        const int m = n - b < most ? n - b : most;
        float *const factors = (float *) (void *) (panel + s->panel_size) - (s->parts + s->min)*PANEL_ROWS;
        for (int r = 0; r < PANEL_ROWS; r += 8) {
            for (int i = 0; i < 8; i++) {
                c[i].d = factors + r + i, c[i].dmin = c[i].d + PANEL_ROWS;
                read(rows[r + i], first + b, m, &c[i]);
            }
            panel_eight(s, c, m*s->block/32, r, panel);
        }
        if (s->scaled) panel_fine(256/s->group, panel + PANEL_ROWS*256);
    }
}

/* ---- tiles ---- */

/* The sums of activations of two groups for each pair of minimums. */
static void tile_sums(int group, const int16_t (*sums)[16], uint32_t *out) {
    for (int p = 0; p < 128/group; p++, out += TILE_COLUMNS) {
        for (int c = 0; c < TILE_COLUMNS; c++) {
            const int16_t *s = sums[c];
            const int first = group == 16 ? s[p] : s[2*p] + s[8 + 2*p], last = group == 16 ? s[8 + p] : s[2*p + 1] + s[9 + 2*p];
            out[c] = (uint16_t) first | (uint32_t) last << 16;
        }
    }
}

/* Where the fine scales of a tile begin to count: an offset among those of a panel, or the factors. */
static void tile_fine(const struct shape *s, const int16_t (*fine)[8], int groups, uint32_t *out) {
    for (int g = 0; g < groups; g++, out += TILE_COLUMNS) {
        for (int c = 0; c < TILE_COLUMNS; c++) {
            out[c] = s->scaled ? (uint32_t) (fine[c][g] - 1)*PANEL_ROWS*4 :
                     s->paired ? (uint16_t) fine[c][0] | (uint32_t) (uint16_t) fine[c][1] << 16 : (uint32_t) scale_word(fine[c][g]);
        }
    }
}

/* Codes 32j .. 32j+31 of all columns; they reach into what is written after them. */
static void tile_codes(const struct shape *s, const int8_t *codes, const int16_t (*fine)[8], int j, uint8_t *out) {
    vb u[8];
    for (int c = 0; c < 8; c++) u[c] = vb_load(codes + (c < TILE_COLUMNS ? c*s->block : 0) + 32*j);
    if (s->wide) {
        int16_t f[8][2];
        for (int c = 0; c < 8; c++) {
            const int16_t *of = fine[c < TILE_COLUMNS ? c : 0];
            f[c][0] = of[s->block == 32 ? 0 : j], f[c][1] = of[s->block == 32 ? 1 : j];
        }
        transpose_wide(u, f, out, TILE_COLUMNS*4);
    } else {
        for (int c = 0; c < 8*s->paired; c++) u[c] = vb_paired(u[c]);
        transpose_dwords(u, out, TILE_COLUMNS*4);
    }
}

/* One block: codes of all columns, each with its d_a, its sums and its fine scales. */
static void tile_block(const struct shape *s, const int8_t *codes, const float *d_a, const int16_t (*sums)[16], const int16_t (*fine)[8],
                       uint8_t *a) {
    const int step = s->wide ? 2 : 4, block = s->block, fines = s->wide ? 0 : s->paired ? 1 : block/fine_group(block);
    for (int j = 0; j < block/32; j++) tile_codes(s, codes, fine, j, a + j*(32/step)*TILE_COLUMNS*4);
    uint32_t *out = (uint32_t *) (void *) a + TILE_COLUMNS*(block/step);
    for (int i = 0; s->offset && i < block; i += s->span, out += TILE_COLUMNS) {
        for (int c = 0; c < TILE_COLUMNS; c++) {
            out[c] = (uint32_t) (s->paired ? offset_halves(codes + c*block, s->offset) : offset_word(codes + c*block + i, s->span, s->offset));
        }
    }
    tile_fine(s, fine, fines, out);
    out += fines*TILE_COLUMNS;
    if (s->scaled && s->min) {
        tile_sums(s->group, sums, out);
        out += 128/s->group*TILE_COLUMNS;
    }
    float *floats = (float *) (void *) out;
    for (int c = 0; c < TILE_COLUMNS; c++) {
        floats[c] = d_a[c];
        if (!s->scaled && s->min) floats[TILE_COLUMNS + c] = d_a[c]*(float) sums[c][0];
    }
}

/* Codes of four blocks of 32 are computed at a time, so two blocks of all columns waste nothing. */
static void prepare(const struct shape *s, int64_t k, int n, const float *const *x, uint8_t *tile) {
    enum { BLOCKS = 2 };
    _Alignas(32) int8_t codes[TILE_COLUMNS*256] = { 0 };
    float   d_a[BLOCKS*TILE_COLUMNS]      = { 0 };
    int16_t sums[BLOCKS*TILE_COLUMNS][16] = { 0 }, fine[BLOCKS*TILE_COLUMNS][8];
    for (int i = 0; i < BLOCKS*TILE_COLUMNS*8; i++) fine[i/8][i%8] = 1;
    for (int64_t i = 0; i < k; ) {
        const float *at[BLOCKS*TILE_COLUMNS];
        const int blocks = s->block == 32 && n == TILE_COLUMNS && i + 32 < k ? BLOCKS : 1;
        for (int c = 0; c < blocks*n; c++) at[c] = x[c%n] + i + c/n*s->block;
        K(quant_blocks)(s->block, blocks*n, at, codes, d_a, sums, fine);
        for (int c = 0; c < blocks*n; c += n, i += s->block, tile += s->tile_size) {
            tile_block(s, codes + c*s->block, d_a + c, (const int16_t (*)[16]) sums + c, (const int16_t (*)[8]) fine + c, tile);
        }
    }
}

/* ---- products ---- */

/* Weights of the next piece, a share of them for each tile: memory answers while tiles are computed. What lies between rows that
 * are not dense is taken for a part of them. */
struct ahead { const char *w; size_t stride, size; int64_t rows; };
static void ask_ahead(const struct ahead *a, int t, int n_tiles) {
    for (int64_t r = t*a->rows/n_tiles; r < (t + 1)*a->rows/n_tiles; r++) {
        for (size_t at = 0; at < a->size + 63; at += 64) prefetch(a->w + (size_t) r*a->stride + at);
    }
}
/* The piece from block b on of the first ROW_BLOCK of `left` rows, or where they have no more, the first one of the next rows. */
static struct ahead weights_ahead(int64_t b, int64_t blocks, int piece, int64_t left, const char *w, size_t stride) {
    struct ahead a = { .w = w, .stride = stride };
    if (blocks == 0) return a;
    a.size = stride*(size_t) piece/(size_t) blocks;
    if (a.size > 2*PIECE) a.size = 2*PIECE;
    if      (b < blocks)       a.rows = left,             a.w += stride*(size_t) b/(size_t) blocks;
    else if (left > ROW_BLOCK) a.rows = left - ROW_BLOCK, a.w += ROW_BLOCK*stride;
    if (a.rows > ROW_BLOCK) a.rows = ROW_BLOCK;
    return a;
}

/* Columns lie far apart: what will be written there is asked for while it is computed. */
static void ask_tile(int64_t rows, int columns, float *const *y, int64_t i) {
    for (int c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r += 16) prefetch(y[c] + i + r);
    }
}

/* The rows of all panels of one tile to their columns: neighbouring lines of memory one after the other. */
static void store_tile(const float *acc, int64_t rows, int columns, float *const *y, int64_t i) {
    for (int c = 0; c < columns; c++) {
        for (int p = 0; p*PANEL_ROWS < rows; p++) {
            const float *from = acc + p*TILE_ACC + c*PANEL_ROWS;
            const int64_t n = rows - p*PANEL_ROWS;
            if (n >= PANEL_ROWS) memcpy(y[c] + i + p*PANEL_ROWS, from, sizeof *acc*PANEL_ROWS);
            else                 memcpy(y[c] + i + p*PANEL_ROWS, from, sizeof *acc*(size_t) n);
        }
    }
}

/* Of `left` rows the first ROW_BLOCK, which begin at row i of y. */
static void gemm_rows(const struct shape *s, read_codes_t *read, int64_t k, int64_t left, const char *w, size_t stride, int columns,
                      const char *tiles, size_t tile_stride, float *const *y, int64_t i, uint8_t *scratch) {
    const int64_t rows = left < ROW_BLOCK ? left : ROW_BLOCK;
    const int     n_tiles = (columns + TILE_COLUMNS - 1)/TILE_COLUMNS, n_panels = (int) ((rows + PANEL_ROWS - 1)/PANEL_ROWS);
    const int64_t blocks = k/s->block, pieces = (blocks*s->block + PIECE - 1)/PIECE;
    const int     piece = pieces ? (int) ((blocks + pieces - 1)/pieces) : 0;        /* all of about the same size */
    const size_t  panel_size = (size_t) (piece*s->panel_size);
    int32_t      *kept = (int32_t *) (void *) (scratch + PANELS*panel_size);
    float        *acc = (float *) (void *) (kept + TILE_ACC);
    const void   *row[ROW_BLOCK];
    for (int64_t r = 0; r < ROW_BLOCK; r++) row[r] = w + (size_t) (r < rows ? r : rows - 1)*stride;
    memset(acc, 0, sizeof *acc*(size_t) (n_tiles*n_panels*TILE_ACC));
    for (int64_t b = 0; b < blocks || b == 0; b += piece ? piece : 1) {
        const int n = blocks - b < piece ? (int) (blocks - b) : piece;
        const bool last = b + n >= blocks;
        const struct ahead ahead = weights_ahead(b + n, blocks, piece, left, w, stride);
        for (int p = 0; p < n_panels; p++) fill_panel(s, read, n, row + p*PANEL_ROWS, b, scratch + (size_t) p*panel_size);
        for (int t = 0; t < n_tiles; t++) {
            const uint8_t *tile = (const uint8_t *) tiles + (size_t) t*tile_stride + (size_t) b*(size_t) s->tile_size;
            const int n_columns = columns - t*TILE_COLUMNS < TILE_COLUMNS ? columns - t*TILE_COLUMNS : TILE_COLUMNS;
            ask_ahead(&ahead, t, n_tiles);
            if (last) ask_tile(rows, n_columns, y + t*TILE_COLUMNS, i);
            for (int p = 0; p < n_panels; p++) {
                s->tile(n, scratch + (size_t) p*panel_size, tile, acc + (t*n_panels + p)*TILE_ACC, kept);
            }
            if (last) store_tile(acc + t*n_panels*TILE_ACC, rows, n_columns, y + t*TILE_COLUMNS, i);
        }
    }
}

static void gemm(const struct shape *s, read_codes_t *read, int64_t k, int64_t rows, const void *w, size_t stride,
                 int columns, const void *tiles, size_t tile_stride, float *const *y, void *scratch) {
    for (int64_t i = 0; i < rows; i += ROW_BLOCK) {
        gemm_rows(s, read, k, rows - i, (const char *) w + (size_t) i*stride, stride, columns, tiles, tile_stride, y, i, scratch);
    }
}

static size_t gemm_scratch(int64_t k) {
    (void) k;
    return PANELS*PANEL_SIZE_MAX + sizeof(float)*(1 + TILES_MAX*PANELS)*TILE_ACC;
}

/* ---- shapes ---- */

#define SHAPE n32                       /* Q4_0, Q5_0, MXFP4, Q1_0, Q2_0 */
#define BLOCK    32
#define GROUP    16
#define OFFSET   16
#define MIN      0
#define PRODUCTS 16
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE n32_min                   /* Q4_1 */
#define BLOCK    32
#define GROUP    16
#define OFFSET   0
#define MIN      1
#define PRODUCTS 16
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE n32_min5                  /* Q5_1 */
#define BLOCK    32
#define GROUP    16
#define OFFSET   0
#define MIN      1
#define PRODUCTS 8
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE n32_bytes                 /* Q8_0, IQ4_NL */
#define BLOCK    32
#define GROUP    16
#define OFFSET   BYTES_START
#define MIN      0
#define PRODUCTS 0
#define WIDE     BYTES_WIDE
#define PARTS    1
#include "quant_tile.h"

#define SHAPE k32_min                   /* Q4_K */
#define BLOCK    256
#define GROUP    32
#define OFFSET   0
#define MIN      1
#define PRODUCTS 16
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE k16_min                   /* Q2_K, Q5_K */
#define BLOCK    256
#define GROUP    16
#define OFFSET   0
#define MIN      1
#define PRODUCTS 8
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE k16                       /* Q3_K, Q6_K, TQ, IQ1, IQ3_S */
#define BLOCK    256
#define GROUP    16
#define OFFSET   32
#define MIN      0
#define PRODUCTS 8
#define WIDE     0
#define PARTS    1
#include "quant_tile.h"

#define SHAPE n16                       /* NVFP4 */
#define BLOCK    32
#define GROUP    16
#define OFFSET   16
#define MIN      0
#define PRODUCTS 16
#define WIDE     0
#define PARTS    2
#include "quant_tile.h"

#if WIDE_SCALED
#define SHAPE k_wide                    /* IQ4_XS, IQ2, IQ3_XXS: a scale times a code fits 13 bits, all of a block 32 */
#define BLOCK    256
#define GROUP    32
#define OFFSET   0
#define MIN      0
#define PRODUCTS 16
#define WIDE     1
#define PARTS    1
#include "quant_tile.h"
#define K_SIGNED k_wide
#else
#define K_SIGNED k16
#endif

/* ---- types ---- */

#define FLOATS(NAME, tag, block)
#define QUANTISED(NAME, tag, block, fit) \
    static void gemm_##tag(int64_t k, int64_t rows, const void *w, size_t stride, int columns, const void *tiles, size_t tile_stride, \
                           float *const *y, void *scratch) { \
        gemm(&K_JOIN(shape, fit), READ_CODES[GGML_TYPE_##NAME], k, rows, w, stride, columns, tiles, tile_stride, y, scratch); \
    }
#include "products.def"
#undef QUANTISED

#define QUANTISED(NAME, tag, block, fit) \
    p = &k->product[GGML_TYPE_##NAME], p->tile_columns = TILE_COLUMNS, p->tile_size = K_JOIN(tile_size, fit); \
    p->gemm_scratch = gemm_scratch, p->tile = K_JOIN(prepare, fit), p->gemm = gemm_##tag;
void K(quant_gemm)(struct quant_kernels *k) {
    struct product *p;
#include "products.def"
}
#undef FLOATS
#undef QUANTISED
