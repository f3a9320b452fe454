/* A panel of rows of one type, and its gemm; included once per type with
 *     T        the tag,
 *     SHAPE    the shape of quant_tile.h it fits,
 *     BLOCK, OFFSET (the number), MIN, WIDE  as there,
 *     SIGNED   1 when the codes are signed bytes. */

#define BLOCK_T K_JOIN(block, T)

/* n blocks of PANEL_ROWS rows */
static void K_JOIN(panel, T)(int n, const void *const *rows, int64_t first, uint8_t *panel) {
    for (int b = 0; b < n; b++, panel += K_JOIN(PANEL, SHAPE)) {
        uint16_t halves[2][PANEL_ROWS];
        for (int r = 0; r < PANEL_ROWS; r++) {
            const BLOCK_T *w = (const BLOCK_T *) rows[r] + first + b;
            halves[0][r] = w->d;
#if BLOCK == 256
            K_JOIN(panel_scales, T)(w, panel, r);
#endif
#if MIN && BLOCK == 32
            halves[1][r] = w->m;
#elif MIN
            halves[1][r] = w->dmin;
#endif
        }
        float *d = (float *) (void *) (panel + K_JOIN(PANEL, SHAPE) - PANEL_ROWS*(4 + MIN*4));
        for (int r = 0; r < PANEL_ROWS; r += 8) {
            floats_from_halves(d + r, halves[0] + r);
            if (MIN) floats_from_halves(d + PANEL_ROWS + r, halves[1] + r);
            for (int j = 0; j < BLOCK/32; j++) {
                vb u[8];
                for (int i = 0; i < 8; i++) {
                    const BLOCK_T *w = (const BLOCK_T *) rows[r + i] + first + b;
#if BLOCK == 32
                    u[i] = K_JOIN(codes, T)(w);
#else
                    u[i] = K_JOIN(codes, T)(w, j);
#endif
                }
                for (int i = 0; i < 8; i++) u[i] = t_codes(u[i], OFFSET, SIGNED);
                if (WIDE) transpose_wide  (u, panel + j*PANEL_ROWS*64 + r*4, PANEL_ROWS*4);
                else      transpose_dwords(u, panel + j*PANEL_ROWS*32 + r*4, PANEL_ROWS*4);
            }
        }
    }
}

static void K_JOIN(prepare, T)(int64_t k, int n, const float *const *x, void *tile) {
    K_JOIN(prepare, SHAPE)(k, n, x, SIGNED ? BYTES_START : OFFSET, tile);
}

static void K_JOIN(gemm, T)(int64_t k, int64_t rows, const void *w, size_t stride, int columns, const void *tiles,
                            size_t tile_stride, float *const *y, void *scratch) {
    gemm(&K_JOIN(shape, SHAPE), K_JOIN(panel, T), k, rows, w, stride, columns, tiles, tile_stride, y, scratch);
}

#undef BLOCK_T
#undef T
#undef SHAPE
#undef BLOCK
#undef OFFSET
#undef MIN
#undef WIDE
#undef SIGNED
