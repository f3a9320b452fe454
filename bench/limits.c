/* The machine's limits, measured: reading memory, multiply-adds of bytes and of floats. One line of JSON:
 * {"threads":n,"read_gb_s":…,"int8_gop_s":…,"f32_gflop_s":…}. Built with the machine's own instructions, for bench/run only.
 *
 *     limits THREADS [SECONDS] */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

enum { READ_BYTES = 256 << 20, THREADS_MAX = 64 };

struct worker { pthread_t thread; const unsigned char *data; size_t size; double seconds, amount; double (*work)(struct worker *w); };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}

static volatile double sink;        /* keeps results alive */

/* Bytes read by one pass over the worker's part. */
static double read_memory(struct worker *w) {
    const uint64_t *p = (const uint64_t *) w->data;
    uint64_t s[32] = { 0 };
    for (size_t i = 0; i < w->size/8; i += 32) for (int k = 0; k < 32; k++) s[k] += p[i + (size_t) k];
    uint64_t all = 0;
    for (int k = 0; k < 32; k++) all += s[k];
    sink += (double) all;
    return (double) w->size;
}

/* Operations (two a multiply-add) of one round on registers. */
static double add_floats(struct worker *w) {
    enum { N = 96, ROUNDS = 100000 };
    float s[N];
    (void) w;
    for (int i = 0; i < N; i++) s[i] = (float) i;
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < N; i++) s[i] = s[i]*0.999f + 0.001f;
    }
    float all = 0;
    for (int i = 0; i < N; i++) all += s[i];
    sink += (double) all;
    return 2.0*N*ROUNDS;
}

static double add_bytes(struct worker *w) {
    (void) w;
#if defined(__AVX512VNNI__)
    enum { N = 12, ROUNDS = 100000 };
    __m512i s[N];
    const __m512i a = _mm512_set1_epi8(3);
    __m512i b = _mm512_set1_epi8(2);
    for (int i = 0; i < N; i++) s[i] = _mm512_set1_epi32(i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < N; i++) s[i] = _mm512_dpbusd_epi32(s[i], a, b);
    }
    for (int i = 1; i < N; i++) s[0] = _mm512_add_epi32(s[0], s[i]);
    sink += (double) _mm512_reduce_add_epi32(s[0]);
    return 2.0*64*N*ROUNDS;
#else
    return 0;                               /* without a dot product instruction the rate depends on the kernel: not stated */
#endif
}

static void *run(void *arg) {
    struct worker *w = arg;
    const double start = now();
    w->amount = 0;
    w->work(w);                             /* once to warm up, then counted */
    const double from = now();
    do w->amount += w->work(w); while (now() - start < w->seconds);
    w->seconds = now() - from;
    return NULL;
}

static double measure(double (*work)(struct worker *w), const unsigned char *data, int threads, double seconds) {
    struct worker w[THREADS_MAX];
    double sum = 0;
    for (int i = 0; i < threads; i++) {
        const size_t part = READ_BYTES/(size_t) threads/256*256;
        w[i] = (struct worker) { .data = data + part*(size_t) i, .size = part, .seconds = seconds, .work = work };
        pthread_create(&w[i].thread, NULL, run, &w[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(w[i].thread, NULL);
        sum += w[i].amount/w[i].seconds;
    }
    return sum/1e9;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const double seconds = argc > 2 ? atof(argv[2]) : 0.5;
    unsigned char *data = aligned_alloc(4096, READ_BYTES);
    if (!data || threads < 1 || threads > THREADS_MAX) return 1;
    for (size_t i = 0; i < READ_BYTES; i++) data[i] = (unsigned char) (i*7);
    printf("{\"threads\":%d,\"read_gb_s\":%.2f,\"int8_gop_s\":%.1f,\"f32_gflop_s\":%.1f}\n", threads, measure(read_memory, data, threads, seconds),
           measure(add_bytes, data, threads, seconds), measure(add_floats, data, threads, seconds));
    free(data);
    return 0;
}
