/* One column times rows of weights, for one type; included once per type with
 *     T        the tag,
 *     BLOCK    32 or 256: elements that share a scale of activations,
 *     OFFSET   what is to be taken from each code (0: nothing),
 *     MIN      1 when the type has minimums (dmin or m),
 *     SIGNED   0: codes are unsigned, 1: signed bytes, 2: magnitudes, with signs_<tag>,
 * and, where it is not what the first three lines below say,
 *     PARTS    blocks of activations that one of weights meets,
 *     HALVES   1 when the halves of a block of 32 have a scale each,
 *     SMALL    1 when codes are 0 .. 2 and there are no integer scales,
 *     UNIT     what the scale d is to be multiplied by.
 *
 * GEMV_ROWS rows at a time, in pieces of up to PIECE blocks: first each row's piece is read in one go, since one long stream
 * is what memory is fastest at, and the lanes of its integer sums are kept in a buffer; then the sums of all rows are reduced
 * together and the floats follow with a lane for each row. */

#ifndef PARTS
#define PARTS  1
#endif
#ifndef HALVES
#define HALVES 0
#endif
#ifndef SMALL
#define SMALL  0
#endif

#define GEMV K_JOIN(gemv, T)
#define BLOCK_T K_JOIN(block, T)
#define PIECE (BLOCK == 256 ? 16 : HALVES ? 32 : 64)

#if BLOCK == 32
/* Reads n blocks of one row into its places of the buffer, two at a time. */
static inline void K_JOIN(GEMV, row)(int n, const BLOCK_T *w, const int8_t *q, const int16_t *sums, struct piece *out, int row) {
    (void) sums;
    for (int b = 0; b < n; b += 2, q += 64) {
        vb u[2];
        prefetch((const char *) w + AHEAD);
#if PARTS == 1
        K_JOIN(pair, T)(w, b + 1 < n ? w + 1 : w, u);               /* an odd block is paired with zeros of q */
#else
        K_JOIN(pair, T)(w, b%PARTS, u);
#endif
#if HALVES
        vi_store(out->isum[b][row],     vi_dot_signed(vi_zero(), u[0], q));
        vi_store(out->isum[b + 1][row], vi_dot_signed(vi_zero(), u[1], q + 32));
        for (int h = 0; h < 4; h++) out->f[2*b + h][row] = book_e4m3[w->d[h]];
#else
        vi_store(out->isum[b/2][row], K_JOIN(VI_DOT_PAIR, SIGNED)(u, q));
        K_JOIN(PUT, T)(out, b, row, w, PARTS == 1 && b + 1 < n ? w + 1 : w);
#endif
        if (PARTS == 1) w += 2; else if ((b + 2)%PARTS == 0) w++;
    }
}

#if !HALVES
static inline vf K_JOIN(GEMV, block)(const struct piece *in, int b, vi isum, float d_a, int sum, vf acc) {
    (void) sum;
#if OFFSET
    isum = vi_sub(isum, vi_set(OFFSET*sum));
#endif
#if MIN
    vf d, m;
    vf_from_pairs(in->dm[b], &d, &m);
    acc = vf_fma(vf_mul(d, vf_set(d_a)), vf_from_ints(isum), acc);
    return vf_fma(m, vf_set(d_a*(float) sum), acc);
#else
    return vf_fma(vf_mul(K_JOIN(GET, T)(in, b), vf_set(d_a)), vf_from_ints(isum), acc);
#endif
}
#endif

static inline vf K_JOIN(GEMV, floats)(int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    for (int b = 0; b < n; b += 2) {
        vi first, last;
#if HALVES
        vi first2, last2;
        vi_reduce_pair(in->isum[b][0], &first, &last), vi_reduce_pair(in->isum[b + 1][0], &first2, &last2);
        (void) sums;
        acc = vf_fma(vf_mul(vf_load(in->f[2*b]),     vf_set(d_a[b])),     vf_from_ints(first),  acc);
        acc = vf_fma(vf_mul(vf_load(in->f[2*b + 1]), vf_set(d_a[b])),     vf_from_ints(first2), acc);
        acc = vf_fma(vf_mul(vf_load(in->f[2*b + 2]), vf_set(d_a[b + 1])), vf_from_ints(last),   acc);
        acc = vf_fma(vf_mul(vf_load(in->f[2*b + 3]), vf_set(d_a[b + 1])), vf_from_ints(last2),  acc);
#else
        vi_reduce_pair(in->isum[b/2][0], &first, &last);
        acc = K_JOIN(GEMV, block)(in, b, first, d_a[b], sums[b], acc);
        if (b + 1 < n) acc = K_JOIN(GEMV, block)(in, b + 1, last, d_a[b + 1], sums[b + 1], acc);
#endif
    }
    return acc;
}
#else
/* Reads n blocks of one row into its places of the buffer. */
static inline void K_JOIN(GEMV, row)(int n, const BLOCK_T *w, const int8_t *q, const int16_t *sums, struct piece *out, int row) {
    for (int b = 0; b < n; b++, w++, q += BLOCK, sums += 16) {
        for (size_t i = 0; i < sizeof *w; i += 64) prefetch((const char *) w + AHEAD + i);
        vs s, m;
        K_JOIN(scales, T)(w, &s, &m);
        vi isum = vi_zero();
        for (int j = 0; j < 8; j++) {
#if SMALL
            isum = vi_dot_small(isum, K_JOIN(codes, T)(w, j), q + 32*j);
#elif SIGNED == 2
            isum = vi_dot_scaled_signs(isum, K_JOIN(codes, T)(w, j), K_JOIN(signs, T)(w, j), q + 32*j, s, j);
#elif SIGNED
            isum = vi_dot_scaled_signed(isum, K_JOIN(codes, T)(w, j), q + 32*j, s, j);
#else
            isum = vi_dot_scaled(isum, K_JOIN(codes, T)(w, j), q + 32*j, s, j);
#endif
        }
#if SMALL
        isum = vi_close_small(isum);
#endif
#if OFFSET
        isum = vi_sub(isum, vi_times(vi_scaled_sums(s, sums), OFFSET));
#endif
        vi_store(out->isum[b][row], isum);
        K_JOIN(PUT, T)(out, b, row, w, w);
#if MIN
        vi_store(out->msum[b][row], vi_scaled_sums(m, sums));
        out->dmin[b][row] = w->dmin;
#endif
    }
}

static inline vf K_JOIN(GEMV, floats)(int n, const struct piece *in, const float *d_a, const int16_t *sums, vf acc) {
    (void) sums;
    for (int b = 0; b < n; b++) {
#ifdef UNIT
        const vf d = vf_mul(vf_from_halves(in->d[b]), vf_set(UNIT));
#else
        const vf d = vf_from_halves(in->d[b]);
#endif
        acc = vf_fma(vf_mul(d, vf_set(d_a[b])), vf_from_ints(vi_reduce(in->isum[b][0])), acc);
#if MIN
        acc = vf_fnma(vf_mul(vf_from_halves(in->dmin[b]), vf_set(d_a[b])), vf_from_ints(vi_reduce(in->msum[b][0])), acc);
#endif
    }
    return acc;
}
#endif

static void GEMV(int64_t k, int64_t rows, const void *weights, size_t stride, const void *column, float *y) {
    const int64_t blocks = k/BLOCK;
    const int8_t  *q    = column;
    const float   *d_a  = (const float *) (const void *) ((const char *) column + column_d(k));
    const int16_t *sums = (const int16_t *) (const void *) ((const char *) column + column_sums(BLOCK, k));
    const int run = BLOCK/column_run(BLOCK);
    struct piece piece;
    for (int64_t i = 0; i < rows; i += GEMV_ROWS) {
        const int n_rows = rows - i < GEMV_ROWS ? (int) (rows - i) : GEMV_ROWS;
        vf acc = vf_zero();
        for (int64_t b = 0; b < blocks; b += PIECE) {
            const int n = blocks - b < PIECE ? (int) (blocks - b) : PIECE;
            for (int r = 0; r < n_rows; r++) {
                const BLOCK_T *w = (const BLOCK_T *) (const void *) ((const char *) weights + (size_t) (i + r)*stride) + b/PARTS;
                K_JOIN(GEMV, row)(n, w, q + b*BLOCK, sums + b*run, &piece, r);
            }
            acc = K_JOIN(GEMV, floats)(n, &piece, d_a + b, sums + b*run, acc);
        }
        if (n_rows == GEMV_ROWS) {
            vf_store(y + i, acc);
        } else {
            float last[GEMV_ROWS];
            vf_store(last, acc);
            memcpy(y + i, last, sizeof *y*(size_t) n_rows);
        }
    }
}

#undef GEMV
#undef BLOCK_T
#undef PIECE
#undef T
#undef BLOCK
#undef OFFSET
#undef MIN
#undef SIGNED
#undef PARTS
#undef HALVES
#undef SMALL
#undef UNIT
