/* The tile of one shape of types: PANEL_ROWS rows times TILE_COLUMNS columns; included once per shape with
 *     SHAPE     its name,
 *     BLOCK     32 or 256,
 *     GROUP     elements that share an integer scale (blocks of 256),
 *     OFFSET    what is added to codes, so that they are unsigned where products want that (SUM_BITS); the starts take it
 *               away again; 0: nothing,
 *     MIN       1 when there are minimums,
 *     PRODUCTS  how many products of a code and an activation always fit 16 bits when added: 16 or 8,
 *     WIDE      1 for signed bytes where the set has no product of signed bytes: they stand as int16, with their scale in
 *               blocks of 256,
 *     PARTS     2 when the halves of a block of 32 have a float scale each, else 1.
 *
 * A block of a panel                                   A block of a tile
 *     codes   [BLOCK/4][PANEL_ROWS][4]                     codes  [BLOCK/4][TILE_COLUMNS][4]
 *     scales  int32 [BLOCK/GROUP][PANEL_ROWS]              starts int32 [BLOCK/SPAN][TILE_COLUMNS]          OFFSET
 *     pairs   int16 [PAIRS][PANEL_ROWS][2] MIN             pairs  int16 [PAIRS][TILE_COLUMNS][2]            MIN
 *     d       float [PARTS][PANEL_ROWS]                    d_a    float [TILE_COLUMNS]
 *     dmin    float [PANEL_ROWS]           MIN             d_a*qsum float [TILE_COLUMNS]                    MIN of 32
 * (scales and pairs of minimums and of sums of activations in blocks of 256 only; WIDE codes are int16 in pairs, [BLOCK/2][..][2]). A scale is applied after SPAN
 * elements: as many as the sums of the instruction set have room for. */

#if SUM_BITS == 0
#undef  OFFSET
#define OFFSET 0
#endif

#define S(name) K_JOIN(name, SHAPE)
#define SCALED (BLOCK == 256 && !WIDE)
#define STEP   (WIDE ? 2 : 4)           /* elements a dword holds */

enum {
    S(SPAN)     = WIDE ? (BLOCK == 32 ? 32 : 16) : SUM_BITS == 16 ? (2*PRODUCTS < GROUP ? 2*PRODUCTS : GROUP)
                                 : (SCALED && SUM_BITS && PRODUCTS < GROUP ? PRODUCTS : GROUP),
    S(SPANS)    = BLOCK/S(SPAN),
    S(STEPS)    = S(SPAN)/STEP,
    S(PAIRS)    = 128/GROUP,
    S(PANEL)    = PANEL_ROWS*(BLOCK/STEP*4 + (SCALED ? BLOCK/GROUP*4 : 0) + (SCALED && MIN ? S(PAIRS)*4 : 0) + PARTS*4 + MIN*4),
    S(TILE)     = TILE_COLUMNS*(BLOCK/STEP*4 + (OFFSET ? S(SPANS)*4 : 0) + (SCALED && MIN ? S(PAIRS)*4 : 0) + 4 + (!SCALED && MIN)*4)
};

/* Four steps (two where a span has no more) along k. Spelled out without loops that a compiler would leave as loops: only in
 * straight code do all sums stay in registers. */
static inline void S(four)(const uint8_t *w, const uint8_t *a, tv sum[TILE_VECTORS][TILE_COLUMNS]) {
    for (int i = 0; i < (S(STEPS) < 4 ? S(STEPS) : 4); i++, w += PANEL_ROWS*4, a += TILE_COLUMNS*4) {
        tv codes[TILE_VECTORS];
        for (int v = 0; v < TILE_VECTORS; v++) codes[v] = t_load(w + v*LANES*4);
        for (int c = 0; c < TILE_COLUMNS; c++) {
            const tv q = t_all(a + 4*c);
            for (int v = 0; v < TILE_VECTORS; v++) {
                sum[v][c] = WIDE ? t_dot_wide(sum[v][c], codes[v], q) : t_dot(sum[v][c], codes[v], q);
            }
        }
    }
}

/* The exact sums of a part of one block. */
static inline void S(ints)(const uint8_t *w, const uint8_t *a, int part, tv isum[TILE_VECTORS][TILE_COLUMNS]) {
    const int32_t *scales = (const int32_t *) (const void *) (w + PANEL_ROWS*(BLOCK/STEP*4));
    const int32_t *starts = (const int32_t *) (const void *) (a + TILE_COLUMNS*(BLOCK/STEP*4));
    (void) scales, (void) starts;
    w += part*(S(SPANS)/PARTS*S(STEPS)*PANEL_ROWS*4), a += part*(S(SPANS)/PARTS*S(STEPS)*TILE_COLUMNS*4);
    for (int v = 0; v < TILE_VECTORS; v++) {
        for (int c = 0; c < TILE_COLUMNS; c++) isum[v][c] = t_zero();
    }
    for (int s = part*S(SPANS)/PARTS; s < (part + 1)*S(SPANS)/PARTS; s++) {
        tv sum[TILE_VECTORS][TILE_COLUMNS];
        for (int c = 0; c < TILE_COLUMNS; c++) {
            for (int v = 0; v < TILE_VECTORS; v++) {
                sum[v][c] = WIDE ? isum[v][c] : OFFSET ? t_all(starts + s*TILE_COLUMNS + c) : t_zero();
            }
        }
        S(four)(w, a, sum);
        if (S(STEPS) > 4)  S(four)(w + 4*PANEL_ROWS*4,  a + 4*TILE_COLUMNS*4,  sum);
        if (S(STEPS) > 8)  S(four)(w + 8*PANEL_ROWS*4,  a + 8*TILE_COLUMNS*4,  sum);
        if (S(STEPS) > 12) S(four)(w + 12*PANEL_ROWS*4, a + 12*TILE_COLUMNS*4, sum);
        w += S(STEPS)*PANEL_ROWS*4, a += S(STEPS)*TILE_COLUMNS*4;
        for (int v = 0; v < TILE_VECTORS; v++) {
            for (int c = 0; c < TILE_COLUMNS; c++) {
#if SCALED
                const tv scale = t_load(scales + s*S(SPAN)/GROUP*PANEL_ROWS + v*LANES);
                isum[v][c] = t_scale(isum[v][c], sum[v][c], scale);
#elif WIDE
                isum[v][c] = sum[v][c];
#else
                isum[v][c] = t_close(isum[v][c], sum[v][c]);
#endif
            }
        }
    }
}

#if SCALED && MIN
static inline tf S(less_min)(const uint8_t *w, const uint8_t *a, int v, int c, tf acc) {
    const uint8_t *wm = w + PANEL_ROWS*(BLOCK/STEP*4 + BLOCK/GROUP*4) + v*LANES*4;
    const uint8_t *am = a + TILE_COLUMNS*(BLOCK/STEP*4 + (OFFSET ? S(SPANS)*4 : 0)) + c*4;
    const float   *dmin = (const float *) (const void *) (wm + PANEL_ROWS*(S(PAIRS)*4 + 4));
    const float   *d_a  = (const float *) (const void *) (am + TILE_COLUMNS*S(PAIRS)*4);
    tv msum = t_zero();
    for (int p = 0; p < S(PAIRS); p++) msum = t_pairs(msum, t_load(wm + p*PANEL_ROWS*4), t_all(am + p*TILE_COLUMNS*4));
    return tf_fnma(tf_mul(tf_load(dmin), tf_at(d_a)), tf_from_ints(msum), acc);
}
#endif

static void S(tile)(int blocks, const uint8_t *w, const uint8_t *a, float *acc) {
    for (int b = 0; b < blocks; b++, w += S(PANEL), a += S(TILE)) {
        const float *d   = (const float *) (const void *) (w + S(PANEL) - PANEL_ROWS*(PARTS*4 + MIN*4));
        const float *d_a = (const float *) (const void *) (a + S(TILE) - TILE_COLUMNS*(4 + (!SCALED && MIN)*4));
        for (int part = 0; part < PARTS; part++, d += PANEL_ROWS) {
            tv isum[TILE_VECTORS][TILE_COLUMNS];
            S(ints)(w, a, part, isum);
            for (int c = 0; c < TILE_COLUMNS; c++) {
                for (int v = 0; v < TILE_VECTORS; v++) {
                    float *at = acc + (c*TILE_VECTORS + v)*LANES;
                    tf sum = tf_fma(tf_mul(tf_load(d + v*LANES), tf_at(d_a + c)), tf_from_ints(isum[v][c]), tf_load(at));
#if SCALED && MIN
                    sum = S(less_min)(w, a, v, c, sum);
#elif MIN
                    sum = tf_fma(tf_load(d + PANEL_ROWS + v*LANES), tf_at(d_a + TILE_COLUMNS + c), sum);
#endif
                    tf_store(at, sum);
                }
            }
        }
    }
}

_Static_assert(PIECE/BLOCK*S(PANEL) <= PANEL_SIZE_MAX, "scratch is sized for it");
static size_t S(tile_size)(int64_t k) { return (size_t) (k/BLOCK)*S(TILE); }

static const struct shape S(shape) = {
    .tile = S(tile), .block = BLOCK, .group = GROUP, .span = S(SPAN), .offset = OFFSET, .parts = PARTS, .wide = WIDE,
    .scaled = SCALED, .min = MIN, .panel_size = S(PANEL), .tile_size = S(TILE),
};
static void S(prepare)(int64_t k, int n, const float *const *x, void *tile) { prepare(&S(shape), k, n, x, tile); }

#undef S
#undef SCALED
#undef STEP
#undef SHAPE
#undef BLOCK
#undef GROUP
#undef OFFSET
#undef MIN
#undef PRODUCTS
#undef WIDE
#undef PARTS
