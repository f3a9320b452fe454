/* Times every product of every level that this machine runs, in cycles per weight beside its bound, one table a level:
 *     gemv   a weight met by one column: with weights in the cache, and from memory; the bound is reading the same memory in
 *            the same run
 *     gemm   a weight met by one of many columns, in thousandths; the bound is two products of whole registers a cycle, which
 *            the best of these machines can begin
 *     activations   what preparing a column for gemm takes, an element
 *
 *     micro_products [NAME OF TYPE | all [rows k columns]]
 *
 * Each figure is the best of several repetitions, in processor time of one thread. A cycle is measured by a chain of dependent additions. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu.h"
#include "kernels.h"

#define FLOATS(NAME, tag, block)          { GGML_TYPE_##NAME, #NAME },
#define QUANTISED(NAME, tag, block, tile) FLOATS(NAME, tag, block)
static const struct { enum ggml_type type; const char *name; } products[] = {
#include "products.def"
};

static const size_t STREAM = 100u << 20;        /* bytes that no cache holds */

enum { ROUNDS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

static volatile uint64_t sink;

static double cycle_ns(void) {
    double best = 1;
    for (int round = 0; round < 20; round++) {
        uint64_t x = sink | 1;
        const double start = now();
        for (int i = 0; i < 200000; i++) {
            x += x >> 63 ^ (uint64_t) i, x ^= x << 1;                   /* the chain is shift, xor, add, shift, xor: 4 cycles */
        }
        const double each = (now() - start)/200000/5*1e9;
        sink = x;
        if (each < best) best = each;
    }
    return best;
}

static double read_gb(const void *data) {
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        const uint64_t *p = data;
        uint64_t a = 0, b = 0, c = 0, d = 0;
        const double start = now();
        for (size_t i = 0; i < STREAM/8; i += 8) a += p[i] + p[i + 4], b += p[i + 1] + p[i + 5], c += p[i + 2] + p[i + 6], d += p[i + 3] + p[i + 7];
        const double time = now() - start;
        sink = a + b + c + d;
        if (time < best) best = time;
    }
    return (double) STREAM/best*1e-9;
}

static double time_gemm(const struct product *p, int64_t rows, int64_t k, int columns, const char *w, size_t stride,
                        const float *const *x, float *const *y, char *tiles, char *scratch, double *prepare) {
    const size_t tile = p->tile_size(k);
    double best = 1e9;
    *prepare = 1e9;
    for (int round = 0; round < 40; round++) {
        double start = now();
        for (int c = 0, t = 0; c < columns; c += p->tile_columns, t++) {
            p->tile(k, columns - c < p->tile_columns ? columns - c : p->tile_columns, x + c, tiles + (size_t) t*tile);
        }
        if (now() - start < *prepare) *prepare = now() - start;
        start = now();
        p->gemm(k, rows, w, stride, columns, tiles, tile, y, scratch);
        if (now() - start < best) best = now() - start;
    }
    return best;
}

/* Seconds of one of `calls` products in a row. Asking for processor time costs as much as a small product, so those are timed together. */
static double time_gemv(const struct product *p, int64_t rows, int64_t k, const char *w, size_t stride, const void *column, float *y, int calls) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        for (int i = 0; i < calls; i++) p->gemv(k, rows, w, stride, column, y);
        const double each = (now() - start)/calls;
        if (each < best) best = each;
    }
    return best;
}

/* Multiply-adds of two registers of bytes and of floats. */
static const struct { int bytes, floats; } widest[CPU_LEVELS] = {
    [CPU_AVX2] = { 64, 16 }, [CPU_AVX512] = { 128, 32 }, [CPU_AVX512_VNNI] = { 128, 32 }, [CPU_NEON] = { 32, 8 }, [CPU_DOTPROD] = { 32, 8 },
};

struct machine { double ns, gb; };              /* of a cycle; read a second */

static void bench(const struct quant_kernels *q, int level, enum ggml_type type, const char *name, char *memory, int64_t rows, int64_t k, int columns,
                  struct machine m) {
    const struct product *p = &q->product[type];
    const size_t stride = ggml_row_size(type, k);
    float *x = malloc(sizeof *x*(size_t) (k*columns)), *y = malloc(sizeof *y*(size_t) (rows*columns + (int64_t) (STREAM/stride)));
    char *column = ggml_aligned_malloc(column_size(p->block, k)), *scratch = p->gemm_scratch ? ggml_aligned_malloc(p->gemm_scratch(k)) : NULL;
    const float **xs = malloc(sizeof *xs*(size_t) columns);
    float **ys = malloc(sizeof *ys*(size_t) columns);
    for (int64_t i = 0; i < k*columns; i++) x[i] = (float) ((i*7919) % 2001 - 1000)*0.001f;
    for (int c = 0; c < columns; c++) xs[c] = x + c*k, ys[c] = y + c*rows;
    if (p->block == 1) memcpy(column, x, sizeof *x*(size_t) k);
    else q->quantize(p->block, k, x, column);
    const int64_t many = (int64_t) (STREAM/stride);
    const double weight = (double) stride/(double) k;                               /* bytes */
    const double near = time_gemv(p, 64, k, memory, stride, column, y, 200)*1e9/m.ns/(double) (64*k);
    const double far  = time_gemv(p, many, k, memory, stride, column, y, 1)*1e9/m.ns/(double) (many*k), bound = weight/m.gb/m.ns;
    printf("  %-8s %8.3f %8.3f %8.3f %6.0f %% %7.1f %7.1f", name, near, far, bound, 100*bound/far, weight/near/m.ns, weight/far/m.ns);
    if (p->tile_columns) {
        const size_t tiles_size = p->tile_size(k)*(size_t) (columns/p->tile_columns + 1);
        char *tiles = ggml_aligned_malloc(tiles_size);
        double prepare;
        const double t = time_gemm(p, rows, k, columns, memory, stride, xs, ys, tiles, scratch, &prepare), macs = (double) (rows*k*columns);
        const double each = t*1e12/m.ns/macs, least = 1e3/(p->block == 1 ? widest[level].floats : widest[level].bytes);
        printf(" %9.1f %7.1f %5.0f %% %8.1f %9.2f", each, least, 100*least/each, 2*macs/t*1e-9, prepare*1e9/m.ns/(double) (k*columns));
        ggml_aligned_free(tiles, tiles_size);
    }
    printf("\n");
    free(x), free(y), free(xs), free(ys);
    ggml_aligned_free(column, 0), ggml_aligned_free(scratch, 0);
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "all";
    const int64_t rows = argc > 4 ? atoll(argv[2]) : 64, k = argc > 4 ? atoll(argv[3]) : 2048;
    const int columns = argc > 4 ? atoi(argv[4]) : 252;
    char *memory = ggml_aligned_malloc(STREAM);
    if (!memory) return 1;
    for (size_t i = 0; i < STREAM; i++) memory[i] = (char) (0x20 | (i*2654435761u >> 7 & 0x1f));
    struct machine m = { .ns = cycle_ns() };
    for (int level = 1; level < CPU_LEVELS; level++) {
        const struct cpu_kernels *kernels = cpu_kernels_at((enum cpu_level) level);
        if (!kernels) continue;
        m.gb = read_gb(memory);
        printf("%s: %lld rows, k = %lld, %d columns; %.2f GHz, reading %.1f GB/s\n"
               "  %-8s %-40s %-15s %-44s activations\n"
               "  %-8s %8s %8s %8s %8s %7s %7s %9s %7s %7s %8s\n", cpu_level_name((enum cpu_level) level), (long long) rows, (long long) k, columns,
               1/m.ns, m.gb, "", "    gemv: cycles a weight", "  GB/s", "gemm: cycles a thousand weights", "type", "cache", "memory", "bound", "",
               "cache", "memory", "", "bound", "", "G op/s");
        for (size_t i = 0; i < sizeof products/sizeof products[0]; i++) {
            if (!strcmp(only, "all") || !strcmp(only, products[i].name)) {
                bench(&kernels->q, level, products[i].type, products[i].name, memory, rows, k, columns, m);
            }
        }
    }
    return 0;
}
