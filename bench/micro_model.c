/* Times what a generated token costs a model's file, matrix by matrix: each is read by a plain sum and multiplied with one
 * column, in the order in which a token needs them, so that every byte comes from memory again. One after the other is read and
 * multiplied in turn, the next time the other way round, so that both meet the same neighbours. Matrices of one type and shape
 * are one line; of experts those that a token uses count.
 *
 *     micro_model FILE [THREADS [TOKENS]]
 *
 * Each thread has its part of the rows, and all begin a matrix together: what a graph of these products can reach at most.
 * Figures are medians of the tokens, since memory is as fast as the neighbours let it be. */

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cpu.h"
#include "gguf.h"
#include "kernels.h"

enum { MATRICES_MAX = 4096, KINDS_MAX = 64, THREADS_MAX = 64, K_MAX = 1 << 17, ROWS_MAX = 1 << 20, TOKENS_MAX = 64,
       READ = 0, MULTIPLY = 1 };

struct kind   { enum ggml_type type; int64_t k, rows; int count; size_t size; double seconds[2][TOKENS_MAX]; };
struct matrix { const char *data; int kind, slices, used; };
struct worker { pthread_t thread; int ith; char *column; float *y; double seconds[2][KINDS_MAX]; };

static struct kind       kinds[KINDS_MAX];
static struct matrix     matrices[MATRICES_MAX];
static struct worker     workers[THREADS_MAX];
static atomic_int        arrived, meetings;
static int               n_kinds, n_matrices, n_threads = 1, n_tokens = 16;
static volatile uint64_t sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

static void read_through(const char *from, size_t size) {
    const uint64_t *p = (const uint64_t *) (const void *) from;
    uint64_t s[32] = { 0 };
    for (size_t i = 0; i + 32 <= size/8; i += 32) for (size_t j = 0; j < 32; j++) s[j] += p[i + j];
    for (int j = 1; j < 32; j++) s[0] += s[j];
    sink = s[0];
}

static void meet(void) {
    const int meeting = atomic_load(&meetings);
    if (atomic_fetch_add(&arrived, 1) + 1 == n_threads) atomic_store(&arrived, 0), atomic_fetch_add(&meetings, 1);
    else while (atomic_load(&meetings) == meeting);
}

/* This worker's part of one matrix. */
static void pass_rows(struct worker *w, const struct kind *d, const char *data, int what) {
    const int64_t from = d->rows*w->ith/n_threads/32*32, to = w->ith + 1 == n_threads ? d->rows : d->rows*(w->ith + 1)/n_threads/32*32;
    const size_t stride = ggml_row_size(d->type, d->k);
    data += (size_t) from*stride;
    if (what == READ) read_through(data, (size_t) (to - from)*stride);
    else              cpu_kernels()->q.product[d->type].gemv(d->k, to - from, data, stride, w->column, w->y);
}

static void *work(void *arg) {
    struct worker *w = arg;
    for (int token = 0; token < n_tokens; token++) {
        memset(w->seconds, 0, sizeof w->seconds);
        for (int j = 0; j < 2*n_matrices; j++) {
            const int i = j % n_matrices, what = (i + j/n_matrices) % 2;
            const struct matrix *m = &matrices[i];
            meet();
            const double start = now();
            for (int u = 0; u < m->used; u++) {
                pass_rows(w, &kinds[m->kind], m->data + (size_t) ((token*m->used + u) % m->slices)*kinds[m->kind].size, what);
            }
            w->seconds[what][m->kind] += now() - start;
        }
        meet();
        for (int i = 0; w->ith == 0 && i < 2*n_kinds; i++) {
            double *const seconds = &kinds[i/2].seconds[i%2][token];
            *seconds = 0;
            for (int t = 0; t < n_threads; t++) *seconds += workers[t].seconds[i%2][i/2]/n_threads;
        }
        meet();
    }
    return NULL;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static double median(double *x) {
    qsort(x, (size_t) n_tokens, sizeof *x, compare);
    return x[n_tokens/2];
}

static void add(const struct ggml_tensor *t, const char *data, int used) {
    int i = 0;
    while (i < n_kinds && (kinds[i].type != t->type || kinds[i].k != t->ne[0] || kinds[i].rows != t->ne[1])) i++;
    if (i == KINDS_MAX || n_matrices == MATRICES_MAX || t->ne[0] > K_MAX || t->ne[1] > ROWS_MAX) return;
    if (i == n_kinds) kinds[n_kinds++] = (struct kind) { .type = t->type, .k = t->ne[0], .rows = t->ne[1], .size = t->nb[2] };
    const int slices = (int) t->ne[2];
    if (used > slices) used = slices;
    kinds[i].count += used;
    matrices[n_matrices++] = (struct matrix) { data, i, slices, used };
}

/* Experts that a token uses: the key of that name of whatever architecture. */
static int experts_used(const struct gguf_context *g) {
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) {
        if (strstr(gguf_get_key(g, i), ".expert_used_count") && gguf_get_kv_type(g, i) == GGUF_TYPE_UINT32) return (int) gguf_get_val_u32(g, i);
    }
    return 1;
}

static bool list(const char *path) {
    struct ggml_context *c = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params) { .no_alloc = true, .ctx = &c });
    const int fd = open(path, O_RDONLY);
    if (!g || fd < 0) return false;
    const int64_t n = gguf_get_n_tensors(g);
    const size_t size = n ? gguf_get_data_offset(g) + gguf_get_tensor_offset(g, n - 1) + gguf_get_tensor_size(g, n - 1) : 0;
    const char *file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) return false;
    const bool tied = gguf_find_tensor(g, "output.weight") < 0;
    for (int last = 0; last <= 1; last++) for (int64_t i = 0; i < n; i++) {
        const char *name = gguf_get_tensor_name(g, i);
        const struct ggml_tensor *t = ggml_get_tensor(c, name);
        const bool layer = !strncmp(name, "blk.", 4) && t->ne[1] > 1, output = !strcmp(name, tied ? "token_embd.weight" : "output.weight");
        if (last ? output : layer) add(t, file + gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i), strstr(name, "_exps") ? experts_used(g) : 1);
    }
    return n_matrices > 0;
}

static bool start(struct worker *w, int ith) {
    float *x = calloc(K_MAX, sizeof *x);
    w->ith = ith, w->column = ggml_aligned_malloc(column_size(32, K_MAX)), w->y = malloc(ROWS_MAX*sizeof *w->y);
    if (!x || !w->column || !w->y) return false;
    memset(w->column, 0, column_size(32, K_MAX));
    free(x);
    return !pthread_create(&w->thread, NULL, work, w);
}

int main(int argc, char **argv) {
    if (argc > 2) n_threads = atoi(argv[2]);
    if (argc > 3) n_tokens = atoi(argv[3]);
    if (argc < 2 || n_threads < 1 || n_threads > THREADS_MAX || n_tokens < 1 || n_tokens > TOKENS_MAX || !list(argv[1])) {
        fprintf(stderr, "usage: micro_model FILE [THREADS [TOKENS]], FILE a model of quantised matrices\n");
        return 1;
    }
    for (int i = 0; i < n_threads; i++) if (!start(&workers[i], i)) return 1;
    for (int i = 0; i < n_threads; i++) pthread_join(workers[i].thread, NULL);
    printf("%s, %d thread%s\n  %-8s %7s %7s %6s %9s %9s %9s %7s\n", argv[1], n_threads, n_threads > 1 ? "s" : "", "type", "k", "rows", "count", "MB",
           "read GB/s", "gemv GB/s", "share");
    double mb = 0, total[2] = { 0 };
    for (int i = 0; i < n_kinds; i++) {
        struct kind *d = &kinds[i];
        const double each = (double) d->size*d->count*1e-6, read = median(d->seconds[READ]), multiply = median(d->seconds[MULTIPLY]);
        printf("  %-8s %7lld %7lld %6d %9.2f %9.2f %9.2f %5.0f %%\n", ggml_type_name(d->type), (long long) d->k, (long long) d->rows, d->count, each,
               each*1e-3/read, each*1e-3/multiply, 100*read/multiply);
        mb += each, total[READ] += read, total[MULTIPLY] += multiply;
    }
    printf("  %-31s %9.2f %9.2f %9.2f %5.0f %%   %.1f tokens/s if there were nothing else\n", "token", mb, mb*1e-3/total[0], mb*1e-3/total[1],
           100*total[0]/total[1], 1/total[1]);
    return 0;
}
