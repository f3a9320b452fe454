/* ARGSORT TOP_K. Equal elements keep their order, NaN comes last whatever the order, so each row has one answer. */

#include "rows.h"

#include <string.h>

/* Whether element i of x stands before element j. sign -1: the largest first. */
static bool before(const float *x, float sign, int32_t i, int32_t j) {
    const float a = x[i]*sign, b = x[j]*sign;
    if (a != a || b != b) return b != b && (a == a || i < j);
    return a < b || (a == b && i < j);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

/* Runs a[lo .. mid-1] and a[mid .. hi-1] as one run in b. */
static void merge(const float *x, float sign, const int32_t *a, int32_t *b, int64_t lo, int64_t mid, int64_t hi) {
    for (int64_t i = lo, j = mid, k = lo; k < hi; k++) {
        b[k] = j == hi || (i < mid && !before(x, sign, a[j], a[i])) ? a[i++] : a[j++];
    }
}

/* Merge sort from runs of one upwards; `spare` holds n as well. */
static void sort_row(int64_t n, const float *x, float sign, int32_t *order, int32_t *spare) {
    int32_t *a = order, *b = spare;
    for (int64_t i = 0; i < n; i++) a[i] = (int32_t) i;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2*run) {
            const int64_t mid = lo + run < n ? lo + run : n, hi = mid + run < n ? mid + run : n;
            merge(x, sign, a, b, lo, mid, hi);
        }
        int32_t *const swap = a;
        a = b, b = swap;
    }
    if (a != order) memcpy(order, a, (size_t) n*sizeof *a);
}

static size_t spare_bytes(const struct ggml_tensor *x) { return ((size_t) x->ne[0]*sizeof(int32_t) + 63) & ~(size_t) 63; }

size_t scratch_argsort(const struct ggml_tensor *dst, int n_threads) {
    return scratch_source_row(dst, n_threads) + spare_bytes(dst->src[0])*(size_t) n_threads;
}

void op_argsort(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const float sign = param_i32(dst, 0) == GGML_SORT_ORDER_ASC ? 1.0f : -1.0f;
    char *const spare = (char *) t->scratch + scratch_source_row(dst, t->nth) + spare_bytes(x)*(size_t) t->ith;
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), 16*x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        sort_row(x->ne[0], row_whole(t, x, r), sign, row_number(dst, r), (int32_t *) (void *) spare);
    }
}

/* ---- the first k --------------------------------------------------------------------------------------------------- */

/* A heap of n elements whose last in order stands at the top: restores it below place i. */
static void sift(const float *x, int32_t *heap, int64_t n, int64_t i) {
    for (int64_t child; (child = 2*i + 1) < n; i = child) {
        if (child + 1 < n && before(x, -1.0f, heap[child], heap[child + 1])) child++;
        if (!before(x, -1.0f, heap[i], heap[child])) return;
        const int32_t swap = heap[i];
        heap[i] = heap[child], heap[child] = swap;
    }
}

static void top_row(int64_t n, const float *x, int64_t k, int32_t *best) {
    for (int64_t i = 0; i < k; i++) best[i] = (int32_t) i;
    for (int64_t i = k/2; i-- > 0; ) sift(x, best, k, i);
    for (int64_t i = k; k > 0 && i < n; i++) {
        if (!before(x, -1.0f, (int32_t) i, best[0])) continue;
        best[0] = (int32_t) i;
        sift(x, best, k, 0);
    }
    for (int64_t i = k; i-- > 1; ) {                    /* the last in order goes to the end */
        const int32_t last = best[0];
        best[0] = best[i], best[i] = last;
        sift(x, best, i, 0);
    }
}

void op_top_k(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), 4*x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        top_row(x->ne[0], row_whole(t, x, r), dst->ne[0], row_number(dst, r));
    }
}
