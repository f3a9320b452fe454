/* ARGSORT TOP_K. Equal elements keep their order, NaN comes last whatever the order, so each row has one answer: an element
 * and its place become one number, and these numbers are all different. */

#include "rows.h"

#include <string.h>

/* Numbers in the order wanted: the float as an integer that grows (or falls) with it, then the place. */
static uint64_t sort_key(float v, int64_t place, bool descending) {
    const uint32_t bits = f32_bits(v + 0.0f);                   /* -0 is 0 */
    const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    const uint32_t code = v != v ? UINT32_MAX : descending ? ~rising : rising;
    return (uint64_t) code << 32 | (uint64_t) place;
}
static int32_t place_of(uint64_t key) { return (int32_t) (key & UINT32_MAX); }

static size_t key_bytes(const struct ggml_tensor *x, int copies) {
    return ((size_t) x->ne[0]*sizeof(uint64_t)*(size_t) copies + 63) & ~(size_t) 63;
}
/* This worker's keys, behind the rows that all of them load. */
static uint64_t *keys_of(const struct cpu_task *t, const struct ggml_tensor *dst, int copies) {
    const size_t rows = scratch_source_row(dst, t->nth);
    return (uint64_t *) (void *) ((char *) t->scratch + rows + key_bytes(dst->src[0], copies)*(size_t) t->ith);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

enum { RUN = 16 };

static void insertion_sort(uint64_t *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const uint64_t v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}
/* a[0 .. mid-1] and a[mid .. n-1] as one run in b. */
static void merge(const uint64_t *a, uint64_t *b, int64_t mid, int64_t n) {
    for (int64_t i = 0, j = mid, k = 0; k < n; k++) b[k] = j == n || (i < mid && a[i] < a[j]) ? a[i++] : a[j++];
}
/* Sorted runs, merged in pairs upwards between a and b; returns where the whole lies. */
static const uint64_t *merge_sort(uint64_t *a, uint64_t *b, int64_t n) {
    for (int64_t i = 0; i < n; i += RUN) insertion_sort(a + i, n - i < RUN ? n - i : RUN);
    for (int64_t run = RUN; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2*run) {
            const int64_t end = n - i < 2*run ? n - i : 2*run;
            merge(a + i, b + i, end < run ? end : run, end);
        }
        uint64_t *const swap = a;
        a = b, b = swap;
    }
    return a;
}

size_t scratch_argsort(const struct ggml_tensor *dst, int n_threads) {
    return scratch_source_row(dst, n_threads) + key_bytes(dst->src[0], 2)*(size_t) n_threads;
}

void op_argsort(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    const bool descending = param_i32(dst, 0) == GGML_SORT_ORDER_DESC;
    const int64_t n = x->ne[0];
    uint64_t *const keys = keys_of(t, dst, 2);
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), 16*n, &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        const float *const v = row_whole(t, x, r);
        int32_t *const order = row_number(dst, r);
        for (int64_t i = 0; i < n; i++) keys[i] = sort_key(v[i], i, descending);
        const uint64_t *const sorted = merge_sort(keys, keys + n, n);
        for (int64_t i = 0; i < n; i++) order[i] = place_of(sorted[i]);
    }
}

/* ---- the first k: a heap with the last of them on top --------------------------------------------------------------- */

static void sift(uint64_t *heap, int64_t n, int64_t i) {
    const uint64_t v = heap[i];
    for (int64_t child; (child = 2*i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= v) break;
        heap[i] = heap[child];
    }
    heap[i] = v;
}

static void top_row(int64_t n, const float *x, int64_t k, uint64_t *heap, int32_t *best) {
    if (k == 0) return;
    for (int64_t i = 0; i < k; i++) heap[i] = sort_key(x[i], i, true);
    for (int64_t i = k/2; i-- > 0; ) sift(heap, k, i);
    for (int64_t i = k; i < n; i++) {
        const uint64_t key = sort_key(x[i], i, true);
        if (key > heap[0]) continue;
        heap[0] = key;
        sift(heap, k, 0);
    }
    for (int64_t i = k; i-- > 0; ) {
        best[i] = place_of(heap[0]);
        heap[0] = heap[i];
        sift(heap, i, 0);
    }
}

size_t scratch_top_k(const struct ggml_tensor *dst, int n_threads) {
    return scratch_source_row(dst, n_threads) + key_bytes(dst->src[0], 1)*(size_t) n_threads;
}

void op_top_k(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0];
    int64_t r0, r1;
    while (next_rows(t, n_rows(x), 4*x->ne[0], &r0, &r1)) for (int64_t r = r0; r < r1; r++) {
        top_row(x->ne[0], row_whole(t, x, r), dst->ne[0], keys_of(t, dst, 1), row_number(dst, r));
    }
}
