/* Scores and weighted sums on keys and values where they lie; attention.c includes this once for each type of element, with
 *     T(name)   the name of a function for this type
 *     ELEMENT   the type
 *     LOAD(p)   16 elements as floats
 *     AHEAD     how many rows ahead lines are asked for; 0: they are in the cache */

INLINE const ELEMENT *T(row)(const void *rows, int64_t j, size_t stride) {
    return (const ELEMENT *) (const void *) ((const char *) rows + (size_t) j*stride);
}

/* `keys` neighbours at once, the lanes of each product in a vector: a query is read once for all of them. */
INLINE void T(scores_part)(const int rows, const int keys, int64_t dk, const float *q, const void *k, int64_t j, size_t stride,
                           float (*s)[ATTENTION_KEYS]) {
    vf acc[ROWS_AT_ONCE];
    float sums[ROWS_AT_ONCE + 3];
    EACH_ROW(i, rows*keys) acc[i] = vf_set1(0.0f);
    for (int64_t i = 0; i < dk; i += 16) {
        vf key[4];
        EACH_ROW(m, keys) key[m] = LOAD(T(row)(k, j + m, stride) + i);
        if (AHEAD) EACH_ROW(m, keys) PREFETCH(T(row)(k, j + m + AHEAD, stride) + i);
        EACH_ROW(r, rows) {
            const vf query = vf_load(q + r*dk + i);
            EACH_ROW(m, keys) acc[r*keys + m] = vf_fma(key[m], query, acc[r*keys + m]);
        }
    }
    EACH_ROW(i, rows*keys/4) vf_sum4(acc + 4*i, sums + 4*i);
    EACH_ROW(i, rows*keys%4) sums[rows*keys/4*4 + i] = vf_sum(acc[rows*keys/4*4 + i]);
    EACH_ROW(i, rows*keys)   s[i/keys][j + i%keys] = sums[i];
}
INLINE void T(scores_rows)(const int rows, int64_t dk, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    const int keys = rows == 1 ? 4 : rows <= ROWS_AT_ONCE/2 ? 2 : 1;
    const uint64_t full = ((uint64_t) 1 << keys) - 1;
    for (int j = 0; j < ATTENTION_KEYS && any >> j;) {
        if (keys > 1 && (any >> j & full) == full) T(scores_part)(rows, keys, dk, q, k, j, stride, s), j += keys;
        else if (any >> j & 1)                     T(scores_part)(rows, 1, dk, q, k, j, stride, s), j++;
        else                                       j++;
    }
}
static void T(scores)(int64_t dk, int rows, const float *q, const void *k, size_t stride, uint64_t any, float (*s)[ATTENTION_KEYS]) {
    for (int r = 0, n; r < rows; r += n) {
        n = at_once(rows - r, ROWS_AT_ONCE);
        FOR_ROWS_OF(n, T(scores_rows), dk, q + r*dk, k, stride, any, s + r)
    }
}

/* `wide` vectors of values of each row at once, so many that chains of sums hide each other's latency; a value is read once
 * for all rows. */
INLINE void T(weigh_part)(const int rows, const int wide, int64_t dv, const float (*p)[ATTENTION_KEYS], int j0, int j1, const ELEMENT *v,
                          size_t stride, float *a) {
    vf acc[ROWS_AT_ONCE];
    EACH_ROW(i, rows*wide) acc[i] = vf_load(a + i/wide*dv + i%wide*16);
    for (int j = j0; j < j1; j++) {
        const ELEMENT *const values = T(row)(v, j, stride);
        if (AHEAD) EACH_ROW(w, (wide + 1)/2) PREFETCH(T(row)(v, j + ATTENTION_RUN, stride) + 32*w);
        EACH_ROW(w, wide) {
            const vf value = LOAD(values + 16*w);
            EACH_ROW(r, rows) acc[r*wide + w] = vf_fma(vf_set1(p[r][j]), value, acc[r*wide + w]);
        }
    }
    EACH_ROW(i, rows*wide) vf_store(a + i/wide*dv + i%wide*16, acc[i]);
}
INLINE void T(weigh_rows)(const int rows, int64_t dv, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a) {
    const int wide = rows == 1 ? 4 : rows <= ROWS_AT_ONCE/2 ? 2 : 1;
    int64_t d = 0;
    for (; d + 16*wide <= dv; d += 16*wide) T(weigh_part)(rows, wide, dv, p, j0, j1, (const ELEMENT *) v + d, stride, a + d);
    for (; d < dv; d += 16)                 T(weigh_part)(rows, 1,    dv, p, j0, j1, (const ELEMENT *) v + d, stride, a + d);
}
/* Columns are taken one after the other, so rows that come from memory go in runs that the first cache holds, each run asking for
 * the next: of whole chunks a line would be asked for just before its use (a quarter faster where heads are 128 wide). */
static void T(weigh)(int64_t dv, int rows, const float (*p)[ATTENTION_KEYS], int j0, int j1, const void *v, size_t stride, float *a) {
    for (int r = 0, n; r < rows; r += n) {
        n = at_once(rows - r, ROWS_AT_ONCE);
        for (int j = j0, end; j < j1; j = end) {
            end = AHEAD > 0 && j1 - j > ATTENTION_RUN ? j + ATTENTION_RUN : j1;
            FOR_ROWS_OF(n, T(weigh_rows), dv, p + r, j, end, v, stride, a + r*dv)
        }
    }
}

#undef T
#undef ELEMENT
#undef LOAD
#undef AHEAD
