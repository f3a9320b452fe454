/* The tile of one shape of types: PANEL_ROWS rows times TILE_COLUMNS columns; included once per shape with
 *     SHAPE     its name,
 *     BLOCK     32 or 256,
 *     GROUP     elements that share an integer scale, a fine scale of activations in blocks of 32,
 *     OFFSET    what is added to codes, so that they are unsigned where products want that (SUM_BITS); the starts take it
 *               away again; 0: nothing,
 *     MIN       1 when there are minimums,
 *     PRODUCTS  how many products of a code and an activation always fit 16 bits when added: 16 or 8; 0: too few,
 *     WIDE      1 for signed bytes where the set has no product of signed bytes: they stand as int16, with their scale in
 *               blocks of 256,
 *     PARTS     2 when the halves of a block of 32 have a float scale each, else 1.
 *
 * A block of a panel                                   A block of a tile
 *     codes   [BLOCK/4][PANEL_ROWS][4]                     codes  [BLOCK/4][TILE_COLUMNS][4]
 *     scales  int32 [BLOCK/GROUP][FINE_MOST][PANEL_ROWS]   starts int32 [BLOCK/SPAN][TILE_COLUMNS]          OFFSET
 *                                                          fine   int32 [BLOCK/FINE][TILE_COLUMNS]
 *     pairs   int16 [PAIRS][PANEL_ROWS][2] MIN             pairs  int16 [PAIRS][TILE_COLUMNS][2]            MIN
 *     d       float [PARTS][PANEL_ROWS]                    d_a    float [TILE_COLUMNS]
 *     dmin    float [PANEL_ROWS]           MIN             d_a*qsum float [TILE_COLUMNS]                    MIN of 32
 * (scales and pairs of minimums and of sums of activations in blocks of 256 only; WIDE codes are int16 in pairs, [BLOCK/2][..][2],
 * with the fine scales in those of tiles). A scale is applied after SPAN elements: as many as the sums of the instruction set
 * have room for. It is to be multiplied by a fine one: so that it need not be, the panel has it FINE_MOST times, and `fine` says
 * which one, as an offset in bytes. Blocks of 32 have no scales, `fine` is the factor itself; where sums are pairs of 16 bits the
 * first of each is of the first half, the second of the second half (vb_paired), and so are the factors.
 *
 * The sums of a block of 256 are left in memory (`kept`). KEPT: they wait there already while those of a span are in registers, where
 * there are not enough for both; a compiler that has to find that out keeps two copies of them. */

#if SUM_BITS == 0
#undef  OFFSET
#define OFFSET 0
#endif

#define S(name) K_JOIN(name, SHAPE)
#define SCALED (BLOCK == 256 && !WIDE)
#define PAIRED (BLOCK == 32 && !WIDE && PARTS == 1 && SUM_BITS == 16)
#define STEP   (WIDE ? 2 : 4)           /* elements a dword holds */
#define KEPT   (SUMS_KEPT && SCALED)

enum {
    S(SPAN)     = WIDE ? (BLOCK == 32 ? 32 : 16) : PAIRED ? 2*PRODUCTS : SUM_BITS == 16 ? (2*PRODUCTS < GROUP ? 2*PRODUCTS : GROUP)
                                 : (SUM_BITS && PRODUCTS && PRODUCTS < GROUP ? PRODUCTS : GROUP),
    S(FINE)     = PAIRED ? 32 : BLOCK == 32 ? FINE_GROUP_32 : FINE_GROUP_256,
    S(FINES)    = WIDE ? 0 : BLOCK/S(FINE),
    S(SPANS)    = BLOCK/S(SPAN),
    S(STEPS)    = S(SPAN)/STEP,
    S(PAIRS)    = 128/GROUP,
    S(PANEL)    = PANEL_ROWS*(BLOCK/STEP*4 + (SCALED ? BLOCK/GROUP*FINE_MOST*4 : 0) + (SCALED && MIN ? S(PAIRS)*4 : 0) + PARTS*4 + MIN*4),
    S(TILE)     = TILE_COLUMNS*(BLOCK/STEP*4 + (OFFSET ? S(SPANS)*4 : 0) + S(FINES)*4 + (SCALED && MIN ? S(PAIRS)*4 : 0) + 4 + (!SCALED && MIN)*4)
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

static inline tv S(isum)(tv isum[TILE_VECTORS][TILE_COLUMNS], const int32_t *kept, int v, int c) {
    return KEPT ? t_load(kept + (c*TILE_VECTORS + v)*LANES) : isum[v][c];
}
static inline void S(set_isum)(tv isum[TILE_VECTORS][TILE_COLUMNS], int32_t *kept, int v, int c, tv x) {
    if (KEPT) t_store(kept + (c*TILE_VECTORS + v)*LANES, x);
    else      isum[v][c] = x;
}

/* The exact sums of a part of one block. */
static inline void S(ints)(const uint8_t *w, const uint8_t *a, int part, tv isum[TILE_VECTORS][TILE_COLUMNS], int32_t *kept) {
    const uint8_t  *scales = w + PANEL_ROWS*(BLOCK/STEP*4);
    const uint32_t *starts = (const uint32_t *) (const void *) (a + TILE_COLUMNS*(BLOCK/STEP*4));
    const uint32_t *fine   = starts + TILE_COLUMNS*((OFFSET ? S(SPANS) : 0) + part*S(FINES)/PARTS);
    (void) scales, (void) starts, (void) fine;
    w += part*(S(SPANS)/PARTS*S(STEPS)*PANEL_ROWS*4), a += part*(S(SPANS)/PARTS*S(STEPS)*TILE_COLUMNS*4);
    for (int v = 0; v < TILE_VECTORS; v++) {
        for (int c = 0; c < TILE_COLUMNS; c++) S(set_isum)(isum, kept, v, c, t_zero());
    }
    for (unsigned s = (unsigned) part*S(SPANS)/PARTS; s < ((unsigned) part + 1)*S(SPANS)/PARTS; s++) {
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
        for (int c = 0; c < TILE_COLUMNS; c++) {
#if !SCALED && !WIDE
            const tv f = t_all(fine + c);
#endif
            for (int v = 0; v < TILE_VECTORS; v++) {
#if SCALED
                S(set_isum)(isum, kept, v, c, t_scale(S(isum)(isum, kept, v, c), sum[v][c], t_load(scales + fine[c] + v*LANES*4)));
#elif WIDE
                isum[v][c] = sum[v][c];
#elif PRODUCTS || SUM_BITS == 0
                isum[v][c] = t_scale(isum[v][c], sum[v][c], f);
#else
                isum[v][c] = t_scale_wide(isum[v][c], sum[v][c], f);
#endif
            }
        }
        /* without a branch, at which a compiler copies all sums */
        scales += ((s + 1)*S(SPAN)/GROUP   - s*S(SPAN)/GROUP)*FINE_MOST*PANEL_ROWS*4;
        fine   += ((s + 1)*S(SPAN)/S(FINE) - s*S(SPAN)/S(FINE))*TILE_COLUMNS;
    }
    for (int v = 0; v < TILE_VECTORS && SCALED && !KEPT; v++) {
        for (int c = 0; c < TILE_COLUMNS; c++) t_store(kept + (c*TILE_VECTORS + v)*LANES, isum[v][c]);
    }
}

#if SCALED && MIN
static inline tf S(msum)(const uint8_t *w, const uint8_t *a, int v, int c) {
    const uint8_t *wm = w + PANEL_ROWS*(BLOCK/STEP*4 + BLOCK/GROUP*FINE_MOST*4) + v*LANES*4;
    const uint8_t *am = a + TILE_COLUMNS*(BLOCK/STEP*4 + (OFFSET ? S(SPANS)*4 : 0) + S(FINES)*4) + c*4;
    tv msum = t_zero();
    for (int p = 0; p < S(PAIRS); p++) msum = t_pairs(msum, t_load(wm + p*PANEL_ROWS*4), t_all(am + p*TILE_COLUMNS*4));
    return tf_from_ints(msum);
}
#endif

/* Factors are read before the first sum is stored, which might be where they are for all that a compiler knows. */
static void S(tile)(int blocks, const uint8_t *w, const uint8_t *a, float *acc, int32_t *kept) {
    for (int b = 0; b < blocks; b++, w += S(PANEL), a += S(TILE)) {
        const float *d   = (const float *) (const void *) (w + S(PANEL) - PANEL_ROWS*(PARTS*4 + MIN*4));
        const float *d_a = (const float *) (const void *) (a + S(TILE) - TILE_COLUMNS*(4 + (!SCALED && MIN)*4));
        for (int part = 0; part < PARTS; part++, d += PANEL_ROWS) {
            tv isum[TILE_VECTORS][TILE_COLUMNS];
            tf d_w[TILE_VECTORS], m_w[TILE_VECTORS];
            S(ints)(w, a, part, isum, kept);
            for (int v = 0; v < TILE_VECTORS; v++) d_w[v] = tf_load(d + v*LANES), m_w[v] = tf_load(d + MIN*PANEL_ROWS + v*LANES);
            for (int c = 0; c < TILE_COLUMNS; c++) {
                const tf d_c = tf_at(d_a + c), m_c = tf_at(d_a + (!SCALED && MIN)*TILE_COLUMNS + c);
                (void) m_w, (void) m_c;
                for (int v = 0; v < TILE_VECTORS; v++) {
                    float *at = acc + (c*TILE_VECTORS + v)*LANES;
                    tf sum = tf_fma(tf_mul(d_w[v], d_c), tf_from_ints(SCALED ? t_load(kept + (at - acc)) : isum[v][c]), tf_load(at));
#if SCALED && MIN
                    sum = tf_fnma(tf_mul(m_w[v], d_c), S(msum)(w, a, v, c), sum);
#elif MIN
                    sum = tf_fma(m_w[v], m_c, sum);
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
    .tile = S(tile), .block = BLOCK, .group = GROUP, .span = S(SPAN), .offset = OFFSET, .parts = PARTS, .wide = WIDE, .paired = PAIRED,
    .scaled = SCALED, .min = MIN, .panel_size = S(PANEL), .tile_size = S(TILE),
};
static void S(prepare)(int64_t k, int n, const float *const *x, void *tile) { prepare(&S(shape), k, n, x, tile); }

#undef S
#undef SCALED
#undef PAIRED
#undef STEP
#undef KEPT
#undef SHAPE
#undef BLOCK
#undef GROUP
#undef OFFSET
#undef MIN
#undef PRODUCTS
#undef WIDE
#undef PARTS
