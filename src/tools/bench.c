/* bench: prompt and generation speed, load time, resident memory.
 *
 * A prompt test computes p tokens, a generation test n tokens one by one; both after `depth` tokens that the cache holds already,
 * none by default. Each runs once to warm up and then `repeat` times. Token ids are a fixed sequence, so that every run does the
 * same work. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

struct result { char test[48]; int threads; double mean, deviation; };

static void mean_of(const double *x, int n, double *mean, double *deviation) {
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    *mean = sum/n;
    for (int i = 0; i < n; i++) square += (x[i] - *mean)*(x[i] - *mean);
    *deviation = n > 1 ? sqrt(square/(n - 1)) : 0;
}

/* What a test does: n tokens from those given, after the depth first of them. */
struct work { const llama_token *tokens; int depth, n; bool one_by_one; };

static bool once(struct session *s, const struct work *w, int n, double *tok_s) {
    const llama_token *const tokens = w->tokens + w->depth;
    session_rewind(s, w->depth);
    const double start = now_s();
    if (w->one_by_one) {
        for (int i = 0; i < n; i++) if (!session_decode(s, tokens + i, 1, false)) return false;
    } else if (!session_decode(s, tokens, n, false)) {
        return false;
    }
    *tok_s = n/(now_s() - start);
    return true;
}

static bool test(struct session *s, const struct work *w, int repeat, struct result *r) {
    double x[64];
    const int named = snprintf(r->test, sizeof r->test, "%s%d", w->one_by_one ? "tg" : "pp", w->n);
    if (w->depth) snprintf(r->test + named, sizeof r->test - (size_t) named, "@d%d", w->depth);
    r->threads = s->threads;
    if (!once(s, w, w->one_by_one && w->n > 4 ? 4 : w->n, x)) return false;
    for (int i = 0; i < repeat; i++) {
        if (!once(s, w, w->n, x + i)) return false;
        progress(r->test, (i + 1.0)/repeat);
    }
    mean_of(x, repeat, &r->mean, &r->deviation);
    return true;
}

static void print_result(const struct session *s, const struct result *r) {
    static bool headed;
    if (!headed) printf(" threads  test\n");
    headed = true;
    size_t private_bytes, mapped_bytes;
    char a[32], b[32];
    memory_read(&private_bytes, &mapped_bytes);
    printf("%8d  %-8s  %10.2f +- %7.2f tokens/s   load %.3f s   memory %s private, %s mapped\n", r->threads, r->test, r->mean, r->deviation,
           s->load_s, bytes_text((double) private_bytes, a), bytes_text((double) mapped_bytes, b));
    fflush(stdout);
}

static void add_json(cJSON *list, const char *model, const struct session *s, const struct result *r) {
    size_t private_bytes, mapped_bytes;
    memory_read(&private_bytes, &mapped_bytes);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", model);
    cJSON_AddNumberToObject(o, "threads", r->threads);
    cJSON_AddStringToObject(o, "test", r->test);
    cJSON_AddNumberToObject(o, "tok_s", r->mean);
    cJSON_AddNumberToObject(o, "stdev", r->deviation);
    cJSON_AddNumberToObject(o, "load_s", s->load_s);
    cJSON_AddNumberToObject(o, "private_bytes", (double) private_bytes);
    cJSON_AddNumberToObject(o, "mapped_bytes", (double) mapped_bytes);
    cJSON_AddItemToArray(list, o);
}

/* Numbers of a comma-separated list; their count, or 0 when one is not a whole number from 1 to most. */
static int list_read(const char *text, long *out, int room, long most) {
    int n = 0;
    for (const char *p = text; n < room; p++) {
        char *end;
        out[n] = strtol(p, &end, 10);
        if (end == p || out[n] < 1 || out[n] > most) return 0;
        n++;
        if (!*end) return n;
        if (*end != ',') return 0;
        p = end;
    }
    return 0;
}

/* The tokens before the test, which are not timed, get all cores. */
static bool fill(struct session *s, const llama_token *tokens, int depth) {
    const int all = arn_cpu_default_threads();
    llama_set_n_threads(s->ctx, all, all);
    const bool ok = session_decode(s, tokens, depth, false);
    llama_set_n_threads(s->ctx, s->threads, s->threads);
    return ok;
}

static int bench_threads(const struct model_args *m, const int64_t sizes[2], int depth, int repeat, cJSON *list) {
    const int n_max = depth + (int) (sizes[0] > sizes[1] ? sizes[0] : sizes[1]);
    struct session s;
    if (!session_open(&s, m, true)) return 1;
    llama_token *tokens = malloc(((size_t) n_max + 1)*sizeof *tokens);
    int status = tokens ? 0 : fail("out of memory");
    for (int i = 0; tokens && i < n_max; i++) tokens[i] = (llama_token) ((1000003LL*(i + 1)) % s.n_vocab);
    if (!status && depth && !fill(&s, tokens, depth)) status = 1;
    for (int i = 0; i < 2 && !status; i++) {
        const struct work w = { tokens, depth, (int) sizes[i], i == 1 };
        struct result r;
        if (sizes[i] == 0) continue;
        if (!test(&s, &w, repeat, &r)) { status = 1; break; }
        if (list) add_json(list, m->model, &s, &r);
        else      print_result(&s, &r);
    }
    free(tokens);
    session_close(&s);
    return status;
}

int command_bench(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    int64_t sizes[2] = { 512, 128 }, depth = 0, repeat = 5;
    const char *threads = NULL;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "-p", ARG_INT,  &sizes[0], "N",    "tokens of the prompt test; 0: none (default: 512)", 0, 1 << 20 },
        { "-n", ARG_INT,  &sizes[1], "N",    "tokens of the generation test; 0: none (default: 128)", 0, 1 << 20 },
        { "-d", ARG_INT,  &depth,    "N",    "tokens that the cache holds before each test (default: 0)", 0, 1 << 24 },
        { "-t", ARG_TEXT, &threads,  "LIST", "numbers of threads, as 1,2 (default: the cores that this process may use)", 0, 0 },
        { "-r", ARG_INT,  &repeat,   "R",    "measure R times (default: 5)", 1, 64 },
        { "-b", ARG_INT,  &m.n_batch, "BATCH", "tokens per step of a prompt (default: 512)", 1, 1 << 20 },
        { "--cache-k", ARG_TYPE, &m.type_k, "TYPE", "type of cached keys (default: f16)", 0, 0 },
        { "--cache-v", ARG_TYPE, &m.type_v, "TYPE", "type of cached values (default: f16)", 0, 0 },
        ARG_CPU(m), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("bench", "Measure prompt and generation speed, load time and memory.", args, argc, argv, &status)) return status;
    status = 0;
    long list_threads[16] = { arn_cpu_default_threads() };
    const int n = threads ? list_read(threads, list_threads, 16, 512) : 1;
    if (!n) return usage("bench: -t '%s' is not a list of numbers from 1 to 512", threads);
    m.n_ctx = depth + (sizes[0] > sizes[1] ? sizes[0] : sizes[1]);
    if (m.n_ctx < 64) m.n_ctx = 64;
    cJSON *list = m.json ? cJSON_CreateArray() : NULL;
    for (int i = 0; i < n && !status; i++) {
        m.threads = list_threads[i];
        status = bench_threads(&m, sizes, (int) depth, (int) repeat, list);
    }
    if (!list) return status;
    if (status) { cJSON_Delete(list); return status; }
    return print_json(list);
}
