/* The machine's limits, measured: reading memory, multiply-adds of bytes and of floats. One line of JSON:
 * {"threads":n,"read_gb_s":…,"int8_gop_s":…,"int8_avx2":…,"int8_avx512":…,"int8_vnni":…,"f32_gflop_s":…}. int8_gop_s is the
 * greatest of those of the instruction sets, 0 where the machine lacks one. Built with the machine's own instructions, for bench/run only.
 *
 *     limits THREADS [SECONDS] */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX2__)
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

/* add_bytes_<set>: the products of bytes from the nearest cache and those of a register, other ones every round, so that none can be
 * computed once for all. Without an instruction for it pairs of products are added in 16 bits, which hold eight of them when one
 * side has 4 bits, and then to sums of 32 bits: we know no faster sequence. */
enum { CHAINS = 6, TURNS = 8 };
#define ADD_BYTES(set, vector, turn, end)                                                                              \
    static double add_bytes_##set(struct worker *w) {                                                                  \
        enum { ROUNDS = 20000 };                                                                                       \
        vector s[CHAINS], b;                                                                                           \
        memset(s, 0, sizeof s), memset(&b, 2, sizeof b);                                                               \
        for (int r = 0; r < ROUNDS; r++) {                                                                             \
            const unsigned char *p = w->data + (r & 31)*64;                                                            \
            vector t[CHAINS];                                                                                          \
            memset(t, 0, sizeof t);                                                                                    \
            _Pragma("GCC unroll 1")                                                                                    \
            for (int j = 0; j < TURNS; j++, p += CHAINS*sizeof b) {                                                    \
                _Pragma("GCC unroll 6")                                                                                \
                for (int i = 0; i < CHAINS; i++) { vector a; memcpy(&a, p + sizeof a*(size_t) i, sizeof a); turn; }    \
            }                                                                                                          \
            _Pragma("GCC unroll 6")                                                                                    \
            for (int i = 0; i < CHAINS; i++) end;                                                                      \
        }                                                                                                              \
        int32_t lanes[sizeof s/4];                                                                                     \
        memcpy(lanes, s, sizeof s);                                                                                    \
        for (size_t i = 0; i < sizeof s/4; i++) sink += (double) lanes[i];                                             \
        return 2.0*(double) sizeof(vector)*CHAINS*TURNS*ROUNDS;                                                        \
    }
#if defined(__AVX2__)
ADD_BYTES(avx2, __m256i, t[i] = _mm256_add_epi16(t[i], _mm256_maddubs_epi16(a, b)),
          s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(t[i], _mm256_set1_epi16(1))))
#endif
#if defined(__AVX512BW__)
ADD_BYTES(avx512, __m512i, t[i] = _mm512_add_epi16(t[i], _mm512_maddubs_epi16(a, b)),
          s[i] = _mm512_add_epi32(s[i], _mm512_madd_epi16(t[i], _mm512_set1_epi16(1))))
#endif
#if defined(__AVX512VNNI__)
ADD_BYTES(vnni, __m512i, t[i] = _mm512_dpbusd_epi32(t[i], a, b), s[i] = _mm512_add_epi32(s[i], t[i]))
#endif

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
    double int8[3] = { 0 }, best = 0;
#if defined(__AVX2__)
    int8[0] = measure(add_bytes_avx2, data, threads, seconds);
#endif
#if defined(__AVX512BW__)
    int8[1] = measure(add_bytes_avx512, data, threads, seconds);
#endif
#if defined(__AVX512VNNI__)
    int8[2] = measure(add_bytes_vnni, data, threads, seconds);
#endif
    for (int i = 0; i < 3; i++) if (int8[i] > best) best = int8[i];
    printf("{\"threads\":%d,\"read_gb_s\":%.2f,\"int8_gop_s\":%.1f,\"int8_avx2\":%.1f,\"int8_avx512\":%.1f,\"int8_vnni\":%.1f,\"f32_gflop_s\":%.1f}\n",
           threads, measure(read_memory, data, threads, seconds), best, int8[0], int8[1], int8[2], measure(add_floats, data, threads, seconds));
    free(data);
    return 0;
}
