/* How a row of one type is read, and its product with one column; included once per type with
 *     T        the tag,
 *     BLOCK    32 or 256: elements that share a scale of activations,
 *     OFFSET   what is to be taken from each code (0: nothing),
 *     MIN      1 when the type has minimums (dmin or m),
 *     SIGNED   0: codes are unsigned, 1: signed bytes, 2: magnitudes, with signs_<tag>,
 * and, where it is not what the first lines below say,
 *     PARTS    blocks of activations that one of weights meets,
 *     HALVES   1 when the halves of a block of 32 have a scale each,
 *     PAIRS    1 when short rows are read two at once,
 *     NUMBERED 1 when the numbers of entries are put together first,
 *     OFFSETS  1 when the second result of scales_<tag> is the scales times what is to be taken from their codes,
 *     UNIT     what the scale d is to be multiplied by,
 *     PLACE, PLACE_T, SCALE(w)   the array of the buffer that keeps the scale of block w, its type, and that scale,
 *     FLOATS   the function that goes on from there. */

#ifndef PARTS
#define PARTS  1
#endif
#ifndef HALVES
#define HALVES 0
#endif
#ifndef NUMBERED
#define NUMBERED 0
#endif
#ifndef OFFSETS
#define OFFSETS 0
#endif
#ifndef PAIRS
#define PAIRS  0
#endif
#ifndef UNIT
#define UNIT   1.0f
#endif
#ifndef SCALE
#if MIN && BLOCK == 32
#define PLACE    dm
#define PLACE_T  uint32_t
#define SCALE(w) u32_at(w)      /* d and m, with which the block begins */
#else
#define PLACE    d
#define PLACE_T  uint16_t
#define SCALE(w) (w)->d
#endif
#endif
#ifndef FLOATS
#if BLOCK == 256
#define FLOATS (MIN ? floats_256_min : floats_256)
#else
#define FLOATS (MIN ? floats_32_min : floats_32)
#endif
#endif

#define ROWS    K_JOIN(rows, T)
#define BLOCK_T K_JOIN(block, T)
#if NUMBERED
#define CODES(w, j) K_JOIN(codes, T)(w, at, j)
#else
#define CODES(w, j) K_JOIN(codes, T)(w, j)
#endif

#if HALVES
static void ROWS(const struct walk *p, const char *from, const int8_t *q, const int16_t *sums, const int16_t *fine, struct piece *out) {
    (void) sums;
    const int n = p->n, rows = p->rows;
    for (int r = 0; r < rows; r++, from += p->stride) {
        const BLOCK_T *w = (const BLOCK_T *) (const void *) from;
        const char *ahead = from + (r + 2 < rows ? p->ahead : p->ahead_last);
        find_pages(ahead, (size_t) (n/PARTS)*sizeof *w);
        for (int b = 0; b < n; b += 2, w++, ahead += sizeof *w) {
            vb u[2];
            prefetch(ahead);
            K_JOIN(pair, T)(w, 0, u);
            vi_store(out->isum[b][r],     vi_dot_signed(u[0], q + 32*b,      fine + 16*b));
            vi_store(out->isum[b + 1][r], vi_dot_signed(u[1], q + 32*b + 32, fine + 16*b + 16));
            for (int h = 0; h < 4; h++) out->f[2*b + h][r] = book_e4m3[w->d[h]];
        }
    }
}
#elif BLOCK == 32
static inline void K_JOIN(ROWS, two)(const BLOCK_T *w, const BLOCK_T *last, int part, const int8_t *q, const int16_t *fine,
                                     int32_t *isum, PLACE_T *scales) {
    vb u[2];
    (void) part;
#if PARTS == 1
    K_JOIN(pair, T)(w, last, u);
#else
    K_JOIN(pair, T)(w, part, u);
#endif
    vi_store(isum, K_JOIN(VI_DOT_PAIR, SIGNED)(u, q, fine));
    scales[0] = SCALE(w), scales[GEMV_ROWS] = SCALE(last);
}
static void ROWS(const struct walk *p, const char *from, const int8_t *q, const int16_t *sums, const int16_t *fine, struct piece *out) {
    enum { STEP = PARTS == 1 ? 2 : PARTS, NEXT = PARTS == 1 ? 2 : 1 };          /* blocks of activations and of weights */
    (void) sums;
    const int n = p->n, rows = p->rows;
    const size_t stride = p->stride;
    for (int r = 0, side; r < rows; r += side, from += (size_t) side*stride) {
        const BLOCK_T *w = (const BLOCK_T *) (const void *) from;
        const ptrdiff_t ahead = r + 2 < rows ? p->ahead : p->ahead_last;
        side = PAIRS && stride <= SHORT && n%2 == 0 && r + 1 < rows ? 2 : 1;
        find_pages(from + ahead, (size_t) side*(size_t) (n/PARTS)*sizeof *w);
        const int8_t  *codes = q;
        const int16_t *f = fine;
        int32_t *isum = out->isum[0][r];
        PLACE_T *scales = &out->PLACE[0][r];
        int b = 0;
        for (; b + STEP <= n; b += STEP, w += NEXT, codes += 32*STEP, f += 16*STEP) {
            prefetch((const char *) w + ahead);
            UNROLL for (int part = 0; part < STEP; part += 2, isum += GEMV_ROWS*GEMV_LANES, scales += 2*GEMV_ROWS) {
                K_JOIN(ROWS, two)(w, w + NEXT - 1, part, codes + 32*part, f + 16*part, isum, scales);
                if (side == 2) {
                    const BLOCK_T *v = (const BLOCK_T *) (const void *) ((const char *) w + stride);
                    prefetch((const char *) v + ahead);
                    K_JOIN(ROWS, two)(v, v + 1, 0, codes, f, isum + GEMV_LANES, scales + 1);
                }
            }
        }
        if (b < n) K_JOIN(ROWS, two)(w, w, 0, codes, f, isum, scales);          /* an odd block is paired with zeros of q */
    }
}
#else
static void ROWS(const struct walk *p, const char *from, const int8_t *codes, const int16_t *sums, const int16_t *fine, struct piece *out) {
    const int n = p->n, rows = p->rows;
    for (int r = 0; r < rows; r++, from += p->stride) {
        const BLOCK_T *w = (const BLOCK_T *) (const void *) from;
        const ptrdiff_t ahead = r + 2 < rows ? p->ahead : p->ahead_last;
        find_pages(from + ahead, (size_t) (n/PARTS)*sizeof *w);
        const int8_t *q = codes;
        for (int b = 0; b < n; b++, w++, q += BLOCK) {
            UNROLL for (size_t i = 0; i < sizeof *w; i += 64) prefetch((const char *) w + ahead + i);
            vs s, m;
            K_JOIN(scales, T)(w, &s, &m);
            vi isum = vi_zero();
#if NUMBERED
            uint16_t at[32];
            K_JOIN(numbers, T)(w, at);
#endif
#if OFFSETS
            const vi offset = vi_scaled_sums(m, sums + 16*b);
#elif OFFSET
            const vi offset = vi_times(vi_scaled_sums(s, sums + 16*b), OFFSET);
#endif
            s = vs_times(s, fine + 8*b);
            UNROLL for (int j = 0; j < 8; j++) {
#if SIGNED == 2
                isum = vi_dot_scaled_signs(isum, CODES(w, j), K_JOIN(signs, T)(w, j), q + 32*j, s, j);
#elif SIGNED
                isum = vi_dot_scaled_signed(isum, CODES(w, j), q + 32*j, s, j);
#else
                isum = vi_dot_scaled(isum, CODES(w, j), q + 32*j, s, j);
#endif
            }
#if OFFSET || OFFSETS
            isum = vi_sub(isum, offset);
#endif
            vi_store(out->isum[b][r], isum);
            out->PLACE[b][r] = SCALE(w);
#if MIN
            vi_store(out->msum[b][r], vi_scaled_sums(m, sums + 16*b));
            out->dmin[b][r] = w->dmin;
#endif
        }
    }
    (void) sums;
}
#endif

static void K_JOIN(gemv, T)(int64_t k, int64_t rows, const void *weights, size_t stride, const void *column, float *y) {
    static const struct reader type = { BLOCK, PARTS, BLOCK == 256 ? SUMS/2 : HALVES ? SUMS : 2*SUMS, OFFSET, sizeof(BLOCK_T), UNIT, ROWS, FLOATS };
    gemv(&type, k, rows, weights, stride, column, y);
}

#undef ROWS
#undef BLOCK_T
#undef CODES
#undef T
#undef BLOCK
#undef OFFSET
#undef MIN
#undef SIGNED
#undef PARTS
#undef HALVES
#undef PAIRS
#undef NUMBERED
#undef OFFSETS
#undef UNIT
#undef PLACE
#undef PLACE_T
#undef SCALE
#undef FLOATS
