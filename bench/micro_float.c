/* Times the float kernels and fused attention at every level of this machine, in cycles per element or multiply-adds per
 * cycle, next to memory copy as the plain bound of a loop. Cycles come from a chain of dependent 64-bit products, three
 * cycles each on current x86 and AArch64 cores, measured just before each figure, so that other load distorts little.
 *
 *     micro_float [level]           figures are the best of several runs; the portable level, minutes, only by name */

#define _POSIX_C_SOURCE 200809L

#include "arenite.h"
#include "cpu.h"
#include "kernels.h"
#include "quant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 4096, D = 64, RUNS = 7 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec + 1e-9*(double) t.tv_nsec;
}
static volatile uint64_t sink;
static double cycles_per_second(void) {
    const double start = now();
    uint64_t x = 3;
    for (int i = 0; i < 300000; i++) x = x*x;
    const double seconds = now() - start;
    sink = x;
    return 3*300000/seconds;
}

static float x[N], y[N], z[N];
static double angles[N];
static uint16_t h[N];

typedef void body(const struct float_kernels *k);
/* Cycles of one call of f. */
static double cost(body *f, const struct float_kernels *k) {
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        const double rate = cycles_per_second();
        int n = 0;
        const double start = now();
        double seconds;
        do { for (int i = 0; i < 64; i++, n++) f(k); } while ((seconds = now() - start) < 0.002);
        if (seconds/n*rate < best) best = seconds/n*rate;
    }
    return best;
}

#define UNARY(NAME, f)  static void run_##NAME(const struct float_kernels *k) { k->unary[GGML_UNARY_OP_##NAME](N, y, x); }
#define MAP(name, f)    static void run_##name(const struct float_kernels *k) { k->name(N, y, x); }
#define BINARY(name, f) static void run_##name(const struct float_kernels *k) { k->name(N, y, x, z); }
#define GLU(NAME, f)    static void glu_##NAME(const struct float_kernels *k) { k->glu[GGML_GLU_OP_##NAME](N, y, x, z); }
#include "float.def"
static void run_copy(const struct float_kernels *k)    { (void) k; memcpy(y, x, sizeof x); sink = (uint64_t) y[7]; }
static void run_sin(const struct float_kernels *k)     { k->sin(N, y, x); }
static void run_sin_cos(const struct float_kernels *k) { k->sin_cos(N, y, z, angles); }
static void run_sum(const struct float_kernels *k)     { sink = (uint64_t) k->sum(N, x); }
static void run_sum_sq(const struct float_kernels *k)  { sink = (uint64_t) k->sum_sq(N, x); }
static void run_max(const struct float_kernels *k)     { sink = (uint64_t) k->max(N, x); }
static void run_exp_sum(const struct float_kernels *k) { sink = (uint64_t) k->exp_sum(N, y, x, 8.0f); }
static void run_dot(const struct float_kernels *k)     { sink = (uint64_t) k->dot_f32(N, x, z); }
static void run_dot_f16(const struct float_kernels *k) { sink = (uint64_t) k->dot_f16(N, h, z); }
static void run_to_f16(const struct float_kernels *k)  { k->to_f16(N, h, x); }
static void run_from_f16(const struct float_kernels *k) { k->from_f16(N, y, h); }

static const struct { const char *name; body *f; } rows[] = {
    { "copy", run_copy },
#define UNARY(NAME, f)  { #NAME, run_##NAME },
#define MAP(name, f)    { #name, run_##name },
#define BINARY(name, f) { #name, run_##name },
#define GLU(NAME, f)    { "glu " #NAME, glu_##NAME },
#include "float.def"
    { "sin", run_sin }, { "sin_cos", run_sin_cos }, { "sum", run_sum }, { "sum_sq", run_sum_sq }, { "max", run_max },
    { "exp_sum", run_exp_sum }, { "dot f32", run_dot }, { "dot f16", run_dot_f16 }, { "to f16", run_to_f16 }, { "from f16", run_from_f16 },
};

/* ---- attention ------------------------------------------------------------------------------------------------------ */

static float q[64*256], kt[64*256], v[64*256], a[16*256], s[16][ATTENTION_KEYS], mask[ATTENTION_KEYS];
static uint16_t keys[64*256];

static void run_turn(const struct float_kernels *k)   { k->attention->turn(D, 64, v, D*sizeof *v, kt); }
static void run_turned(const struct float_kernels *k) { k->attention->scores_turned(D, k->attention->rows, q, kt, ~(uint64_t) 0, s); }
static void run_scores3(const struct float_kernels *k) { k->attention->scores_f16(D, 3, q, keys, D*2, ~(uint64_t) 0, s); }
static void run_weights(const struct float_kernels *k) {
    float m;
    memcpy(s[0], q, sizeof s[0]);
    sink = (uint64_t) k->attention->weights(s[0], mask, 1, 0.1f, 0, &m);
}
static void run_weigh(const struct float_kernels *k)  { k->attention->weigh_f32(D, k->attention->rows, (const float (*)[ATTENTION_KEYS]) s, 0, 64, v, D*sizeof *v, a); }
static void run_weigh3(const struct float_kernels *k) { k->attention->weigh_f16(D, 3, (const float (*)[ATTENTION_KEYS]) s, 0, 64, keys, D*2, a); }
static void run_merge(const struct float_kernels *k) {
    float m = 1, l = 1;
    k->attention->merge(D, a, &m, &l, q, 0.5f, 1.0f);
}

/* Multiply-adds per cycle of the whole op on one thread; the last `tokens` of a cache of `n` keys, causal. */
static double attention_rate(enum ggml_type type, int64_t d, int64_t tokens, int64_t n, int64_t heads, int64_t kv_heads) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params) { .mem_size = (size_t) 256 << 20 });
    struct ggml_tensor *tq = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, d, tokens, heads);
    struct ggml_tensor *tk = ggml_new_tensor_3d(ctx, type, d, n, kv_heads), *tv = ggml_new_tensor_3d(ctx, type, d, n, kv_heads);
    struct ggml_tensor *tm = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n, tokens);
    memset(tk->data, 0, ggml_nbytes(tk)), memset(tv->data, 0, ggml_nbytes(tv)), memset(tq->data, 0, ggml_nbytes(tq));
    int64_t live = 0;
    for (int64_t i = 0; i < tokens; i++) for (int64_t j = 0; j < n; j++) {
        const bool masked = j > n - tokens + i;
        ((uint16_t *) tm->data)[i*n + j] = masked ? 0xfc00 : 0;
        live += !masked;
    }
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, ggml_flash_attn_ext(ctx, tq, tk, tv, tm, 0.1f, 0, 0));
    struct ggml_cplan plan = ggml_graph_plan(g, 1, NULL);
    plan.work_data = malloc(plan.work_size + 64);
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        const double rate = cycles_per_second(), start = now();
        int times = 0;
        double seconds;
        do { ggml_graph_compute(g, &plan); times++; } while ((seconds = now() - start) < 0.005);
        if (seconds/times*rate < best) best = seconds/times*rate;
    }
    free(plan.work_data);
    ggml_free(ctx);
    return 2.0*(double) (live*heads*d)/best;
}

static void bench_level(const char *name, const struct float_kernels *k) {
    printf("%s: cycles per element\n", name);
    for (size_t i = 0; i < sizeof rows/sizeof *rows; i++) printf("  %-18s %8.3f\n", rows[i].name, cost(rows[i].f, k)/N);
    const int r = k->attention->rows;
    printf("attention kernels, d = 64: multiply-adds per cycle\n");
    printf("  turned scores      %8.2f\n  weigh              %8.2f\n", r*64*D/cost(run_turned, k), r*64*D/cost(run_weigh, k));
    printf("  scores, 3 rows f16 %8.2f\n  weigh, 3 rows f16  %8.2f\n", 3*64*D/cost(run_scores3, k), 3*64*D/cost(run_weigh3, k));
    printf("  cycles: turn %.0f, weights of a row %.0f, merge of a row %.0f\n", cost(run_turn, k), cost(run_weights, k), cost(run_merge, k));
    static const struct { enum ggml_type type; int64_t d, tokens, n, heads, kv_heads; } ops[] = {
        { GGML_TYPE_F16, 64, 512, 512, 9, 3 },  { GGML_TYPE_F16, 64, 512, 4096, 9, 3 },  { GGML_TYPE_F16, 128, 512, 2048, 8, 2 },
        { GGML_TYPE_F16, 256, 256, 512, 4, 1 }, { GGML_TYPE_Q8_0, 64, 512, 2048, 9, 3 }, { GGML_TYPE_F16, 64, 1, 512, 9, 3 },
        { GGML_TYPE_F16, 64, 1, 4096, 9, 3 },   { GGML_TYPE_Q8_0, 64, 1, 4096, 9, 3 },   { GGML_TYPE_F16, 128, 1, 4096, 8, 8 },
    };
    printf("attention, one thread: multiply-adds per cycle\n");
    for (size_t i = 0; i < sizeof ops/sizeof *ops; i++) {
        printf("  %-5s d %3d, %3d tokens, %4d keys, %d heads of %d %8.2f\n", ggml_type_name(ops[i].type), (int) ops[i].d, (int) ops[i].tokens,
               (int) ops[i].n, (int) ops[i].heads, (int) ops[i].kv_heads,
               attention_rate(ops[i].type, ops[i].d, ops[i].tokens, ops[i].n, ops[i].heads, ops[i].kv_heads));
    }
}

int main(int argc, char **argv) {
    for (int i = 0; i < N; i++) x[i] = (float) (i % 201)*0.08f - 8.0f, z[i] = (float) (i % 97)*0.01f, angles[i] = 1e3*i;
    for (int i = 0; i < N; i++) h[i] = f32_to_f16(x[i]);
    for (int i = 0; i < 64*256; i++) q[i] = v[i] = (float) (i % 31)*0.01f, keys[i] = f32_to_f16(v[i]);
    for (int level = 0; level < CPU_LEVELS; level++) {
        if (!cpu_level_present((enum cpu_level) level)) continue;
        const char *name = cpu_level_name((enum cpu_level) level);
        if (argc > 1 ? strcmp(argv[1], name) : level == CPU_PORTABLE) continue;
        arn_cpu_set_level(name);
        bench_level(name, &cpu_kernels_at((enum cpu_level) level)->f);
    }
    return 0;
}
