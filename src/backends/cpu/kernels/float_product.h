/* Rows of one float type times columns; included once per type with
 *     T       the tag,
 *     ELEMENT what a row is made of,
 *     LOAD    16 elements as floats,
 *     WIDEN   one. */

/* Lanes of n elements; what is left after whole vectors goes to the first lanes. */
static inline vf K_JOIN(tail, T)(int64_t k, const ELEMENT *w, const float *x, vf acc) {
    float lane[16];
    if (k % 16 == 0) return acc;
    vf_store(lane, acc);
    for (int64_t i = k/16*16; i < k; i++) lane[i % 16] = fmaf(WIDEN(w[i]), x[i], lane[i % 16]);
    return vf_load(lane);
}

static void K_JOIN(gemv, T)(int64_t k, int64_t rows, const void *weights, size_t stride, const void *column, float *y) {
    const float *x = column;
    for (int64_t i = 0; i < rows; i += 2) {                 /* two rows: their chains overlap, and memory still sees one stream */
        const char *row = (const char *) weights + (size_t) i*stride;
        const ELEMENT *w = (const ELEMENT *) (const void *) row;
        const ELEMENT *v = (const ELEMENT *) (const void *) (i + 1 < rows ? row + stride : row);
        vf a = vf_set1(0.0f), b = a;
        for (int64_t e = 0; e + 16 <= k; e += 16) {
            const vf xs = vf_load(x + e);
            PREFETCH((const char *) (w + e) + AHEAD), PREFETCH((const char *) (v + e) + AHEAD);
            a = vf_fma(LOAD(w + e), xs, a);
            b = vf_fma(LOAD(v + e), xs, b);
        }
        y[i] = vf_sum(K_JOIN(tail, T)(k, w, x, a));
        if (i + 1 < rows) y[i + 1] = vf_sum(K_JOIN(tail, T)(k, v, x, b));
    }
}

/* 16 rows to a panel, 16 elements of each at a time. */
static void K_JOIN(panel, T)(int64_t k, const void *const *rows, float *panel) {
    const int64_t steps = (k + 15)/16;
    for (int64_t s = 0; s < steps; s++) {
        vf block[16];
        for (int r = 0; r < 16; r++) {
            const ELEMENT *w = (const ELEMENT *) rows[r] + 16*s;
            if (16*s + 16 <= k) {
                block[r] = LOAD(w);
            } else {
                float last[16] = { 0 };
                for (int i = 0; i < k - 16*s; i++) last[i] = WIDEN(w[i]);
                block[r] = vf_load(last);
            }
        }
        vf_transpose(block);
        for (int l = 0; l < 16; l++) vf_store(panel + (l*steps + s)*16, block[l]);
    }
}

static void K_JOIN(gemm, T)(int64_t k, int64_t rows, const void *w, size_t stride, int columns, const void *tiles,
                            size_t tile_stride, float *const *y, void *scratch) {
    for (int64_t i = 0; i < rows; i += 16) {
        const int64_t n = rows - i < 16 ? rows - i : 16;
        const void *row[16];
        for (int64_t r = 0; r < 16; r++) row[r] = (const char *) w + (size_t) (i + (r < n ? r : n - 1))*stride;
        K_JOIN(panel, T)(k, row, scratch);
        for (int c = 0; c < columns; c += TILE_COLUMNS, tiles = (const char *) tiles + tile_stride) {
            multiply_tile(k, scratch, tiles, (int) n, columns - c < TILE_COLUMNS ? columns - c : TILE_COLUMNS, y + c, i);
        }
        tiles = (const char *) tiles - (size_t) ((columns + TILE_COLUMNS - 1)/TILE_COLUMNS)*tile_stride;
    }
}

#undef T
#undef ELEMENT
#undef LOAD
#undef WIDEN
