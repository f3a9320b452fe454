/* Many columns times rows of quantised weights. ROW_BLOCK rows are unpacked piece by piece (PIECE elements of k) into panels
 * that stay in the first cache, all columns are taken past a piece tile by tile, and the accumulators of all columns wait in
 * the scratch meanwhile:  | panels | acc [tiles][panels][TILE_COLUMNS][PANEL_ROWS] |. */

#include <string.h>

#include "kernels.h"
#include SIMD_INT
#include "quant_types.h"
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

struct shape {
    void (*tile)(int blocks, const uint8_t *panel, const uint8_t *tile, float *acc);
    int  block, panel_size, tile_size;          /* elements; bytes of a block of a panel and of a tile */
};
typedef void panel_t(int n, const void *const *rows, int64_t first, uint8_t *panel);

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

/* At most ROW_BLOCK rows beginning at row i of y. */
static void gemm_rows(const struct shape *s, panel_t *panel, int64_t k, int64_t rows, const char *w, size_t stride, int columns,
                      const char *tiles, size_t tile_stride, float *const *y, int64_t i, uint8_t *scratch) {
    const int     n_tiles = (columns + TILE_COLUMNS - 1)/TILE_COLUMNS, n_panels = (int) ((rows + PANEL_ROWS - 1)/PANEL_ROWS);
    const int64_t blocks = k/s->block, pieces = (blocks*s->block + PIECE - 1)/PIECE;
    const int     piece = pieces ? (int) ((blocks + pieces - 1)/pieces) : 0;        /* all of about the same size */
    const size_t  panel_size = (size_t) (piece*s->panel_size);
    float        *acc = (float *) (void *) (scratch + PANELS*panel_size);
    const void   *row[ROW_BLOCK];
    for (int64_t r = 0; r < ROW_BLOCK; r++) row[r] = w + (size_t) (r < rows ? r : rows - 1)*stride;
    memset(acc, 0, sizeof *acc*(size_t) (n_tiles*n_panels*TILE_ACC));
    for (int64_t b = 0; b < blocks; b += piece) {
        const int n = blocks - b < piece ? (int) (blocks - b) : piece;
        for (int p = 0; p < n_panels; p++) panel(n, row + p*PANEL_ROWS, b, scratch + (size_t) p*panel_size);
        for (int t = 0; t < n_tiles; t++) {
            const uint8_t *tile = (const uint8_t *) tiles + (size_t) t*tile_stride + (size_t) b*(size_t) s->tile_size;
            for (int p = 0; p < n_panels; p++) s->tile(n, scratch + (size_t) p*panel_size, tile, acc + (t*n_panels + p)*TILE_ACC);
        }
    }
    for (int t = 0; t < n_tiles; t++) {
        const int left = columns - t*TILE_COLUMNS;
        store_tile(acc + t*n_panels*TILE_ACC, rows, left < TILE_COLUMNS ? left : TILE_COLUMNS, y + t*TILE_COLUMNS, i);
    }
}

static void gemm(const struct shape *s, panel_t *panel, int64_t k, int64_t rows, const void *w, size_t stride, int columns,
                 const void *tiles, size_t tile_stride, float *const *y, void *scratch) {
    for (int64_t i = 0; i < rows; i += ROW_BLOCK) {
        gemm_rows(s, panel, k, rows - i < ROW_BLOCK ? rows - i : ROW_BLOCK, (const char *) w + (size_t) i*stride, stride, columns,
                  tiles, tile_stride, y, i, scratch);
    }
}

static size_t gemm_scratch(int64_t k) {
    (void) k;
    return PANELS*PANEL_SIZE_MAX + sizeof(float)*TILES_MAX*PANELS*TILE_ACC;
}

/* ---- shapes ---- */

#define SHAPE n32                       /* Q4_0, Q5_0 */
#define BLOCK    32
#define GROUP    32
#define OFFSET   (SUM_BITS != 0)
#define MIN      0
#define PRODUCTS 16
#define WIDE     0
#include "quant_tile.h"

#define SHAPE n32_min                   /* Q4_1 */
#define BLOCK    32
#define GROUP    32
#define OFFSET   0
#define MIN      1
#define PRODUCTS 16
#define WIDE     0
#include "quant_tile.h"

#define SHAPE n32_min5                  /* Q5_1 */
#define BLOCK    32
#define GROUP    32
#define OFFSET   0
#define MIN      1
#define PRODUCTS 8
#define WIDE     0
#include "quant_tile.h"

#define SHAPE n32_bytes                 /* Q8_0 */
#define BLOCK    32
#define GROUP    32
#define OFFSET   (BYTES_START != 0)
#define MIN      0
#define PRODUCTS 16
#define WIDE     BYTES_WIDE
#include "quant_tile.h"

#define SHAPE k32_min                   /* Q4_K */
#define BLOCK    256
#define GROUP    32
#define OFFSET   0
#define MIN      1
#define PRODUCTS 16
#define WIDE     0
#include "quant_tile.h"

#define SHAPE k16_min                   /* Q2_K, Q5_K */
#define BLOCK    256
#define GROUP    16
#define OFFSET   0
#define MIN      1
#define PRODUCTS 8
#define WIDE     0
#include "quant_tile.h"

#define SHAPE k16                       /* Q3_K, Q6_K */
#define BLOCK    256
#define GROUP    16
#define OFFSET   (SUM_BITS != 0)
#define MIN      0
#define PRODUCTS 8
#define WIDE     0
#include "quant_tile.h"

/* ---- scales of row r of a panel, from where its codes end ---- */

static void panel_scale_words(const int16_t s[16], int groups, uint8_t *at, int r) {
    int32_t *out = (int32_t *) (void *) at + r;
    for (int g = 0; g < groups; g++) out[g*PANEL_ROWS] = scale_word(groups == 8 ? s[g] : s[g%2*8 + g/2]);
}
static void panel_min_pairs(const int16_t m[16], int groups, uint8_t *at, int r) {
    uint32_t *out = (uint32_t *) (void *) at + r;
    for (int p = 0; p < groups/2; p++) {
        const int16_t first = groups == 8 ? m[2*p] : m[p], last = groups == 8 ? m[2*p + 1] : m[8 + p];
        out[p*PANEL_ROWS] = (uint16_t) first | (uint32_t) (uint16_t) last << 16;
    }
}

#define PANEL_SCALES(tag, groups, min)                                                           \
    static void panel_scales_##tag(const block_##tag *w, uint8_t *panel, int r) {                \
        int16_t scale[16], mins[16];                                                            \
        vs s, m;                                                                                \
        scales_##tag(w, &s, &m);                                                                \
        vs_store(scale, s);                                                                     \
        vs_store(mins, m);                                                                      \
        panel_scale_words(scale, groups, panel + PANEL_ROWS*256, r);                             \
        if (min) panel_min_pairs(mins, groups, panel + PANEL_ROWS*(256 + groups*4), r);                \
    }
PANEL_SCALES(q2_K, 16, 1)
PANEL_SCALES(q3_K, 16, 0)
PANEL_SCALES(q4_K,  8, 1)
PANEL_SCALES(q5_K, 16, 1)
PANEL_SCALES(q6_K, 16, 0)

/* ---- types ---- */

#define T q4_0
#define SHAPE n32
#define BLOCK  32
#define OFFSET 8
#define MIN    0
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q4_1
#define SHAPE n32_min
#define BLOCK  32
#define OFFSET 0
#define MIN    1
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q5_0
#define SHAPE n32
#define BLOCK  32
#define OFFSET 16
#define MIN    0
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q5_1
#define SHAPE n32_min5
#define BLOCK  32
#define OFFSET 0
#define MIN    1
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q8_0
#define SHAPE n32_bytes
#define BLOCK  32
#define OFFSET 0
#define MIN    0
#define WIDE   BYTES_WIDE
#define SIGNED 1
#include "quant_panel.h"

#define T q2_K
#define SHAPE k16_min
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q3_K
#define SHAPE k16
#define BLOCK  256
#define OFFSET 4
#define MIN    0
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q4_K
#define SHAPE k32_min
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q5_K
#define SHAPE k16_min
#define BLOCK  256
#define OFFSET 0
#define MIN    1
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define T q6_K
#define SHAPE k16
#define BLOCK  256
#define OFFSET 32
#define MIN    0
#define WIDE   0
#define SIGNED 0
#include "quant_panel.h"

#define SET(NAME, tag, shape) \
    k->product[GGML_TYPE_##NAME].tile_columns = TILE_COLUMNS, k->product[GGML_TYPE_##NAME].tile_size = tile_size_##shape, \
    k->product[GGML_TYPE_##NAME].gemm_scratch = gemm_scratch, \
    k->product[GGML_TYPE_##NAME].tile = prepare_##tag, k->product[GGML_TYPE_##NAME].gemm = gemm_##tag
void K(quant_gemm)(struct quant_kernels *k) {
    SET(Q4_0, q4_0, n32);       SET(Q4_1, q4_1, n32_min);   SET(Q5_0, q5_0, n32);   SET(Q5_1, q5_1, n32_min5);
    SET(Q8_0, q8_0, n32_bytes); SET(Q2_K, q2_K, k16_min);   SET(Q3_K, q3_K, k16);   SET(Q4_K, q4_K, k32_min);
    SET(Q5_K, q5_K, k16_min);   SET(Q6_K, q6_K, k16);
}
