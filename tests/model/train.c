/* Training a whole model (llama_opt_*): gradients of weights against differences of a loss summed in double from what
 * llama_decode answers; a text is learnt; n_ubatch and threads; what cannot be trained; every allocation failing once. */

#include "tiny.h"

#include "arenite.h"
#include "interpose.h"

enum { N_CTX = 256 };

static struct ggml_opt_optimizer_params pars = { .adamw = { 2e-2f, 0.9f, 0.999f, 1e-8f, 0 }, .sgd = { 1, 0 } };

struct run {
    struct tiny           tiny;
    struct llama_model   *model;
    struct llama_context *ctx;
    ggml_opt_dataset_t    data;
};

static struct llama_model *load(const struct tiny *t, enum llama_load_mode mode) {
    struct llama_model_params p = llama_model_default_params();
    p.load_mode = mode;
    return llama_model_load_from_file(t->path, p);
}
static struct llama_context *context(struct llama_model *m, uint32_t n_batch, uint32_t n_ubatch, enum ggml_type cache) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = N_CTX, p.n_batch = n_batch, p.n_ubatch = n_ubatch, p.n_outputs_max = N_CTX;
    p.type_k = p.type_v = cache;
    p.n_threads = p.n_threads_batch = 1;
    return llama_init_from_model(m, p);
}
/* n points, each the text again and again, beginning one letter later than the one before. */
static ggml_opt_dataset_t texts(int n, const char *text) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_I32, N_CTX, N_CTX, n, 1);
    for (int i = 0; d && i < n*N_CTX; i++) {
        const size_t at = (size_t) (i/N_CTX + i%N_CTX), length = strlen(text);
        ((int32_t *) ggml_opt_dataset_data  (d)->data)[i] = 3 + (unsigned char) text[at%length];
        ((int32_t *) ggml_opt_dataset_labels(d)->data)[i] = 3 + (unsigned char) text[(at + 1)%length];
    }
    return d;
}
static struct llama_opt_params sgd(void) {
    return (struct llama_opt_params) { .param_filter = llama_opt_param_filter_all, .get_opt_pars = ggml_opt_get_constant_optimizer_params,
        .get_opt_pars_ud = &pars, .optimizer_type = GGML_OPT_OPTIMIZER_TYPE_SGD };
}
static struct run start(struct tiny_shape shape, uint32_t n_batch, uint32_t n_ubatch, enum ggml_type cache) {
    struct run r = { .tiny = tiny_new(shape) };
    tiny_write(&r.tiny);
    r.model = load(&r.tiny, LLAMA_LOAD_MODE_NONE);
    r.ctx   = context(r.model, n_batch, n_ubatch, cache);
    r.data  = texts(2, "the lazy dog, ");
    return r;
}
static void stop(struct run *r) {
    llama_free(r->ctx);
    llama_model_free(r->model);
    ggml_opt_dataset_free(r->data);
    tiny_free(&r->tiny);
}

/* One pass; the mean loss, NaN when nothing was computed. */
static double epoch(const struct run *r, int64_t split, bool train) {
    ggml_opt_result_t sums[2] = { ggml_opt_result_init(), ggml_opt_result_init() };
    double loss = 0;
    int64_t n = 0;
    llama_opt_epoch(r->ctx, r->data, sums[0], sums[1], split, NULL, NULL);
    ggml_opt_result_loss(sums[!train], &loss, NULL);
    ggml_opt_result_ndata(sums[!train], &n);
    for (int i = 0; i < 2; i++) ggml_opt_result_free(sums[i]);
    return n ? loss : (double) NAN;
}

/* ---- gradients ----------------------------------------------------------------------------------------------------------- */

static struct ggml_tensor *found[64];
static int n_found;
static bool collect(const struct ggml_tensor *t, void *user_data) {
    (void) user_data;
    found[n_found++] = (struct ggml_tensor *) (uintptr_t) t;
    return true;
}

/* The mean cross-entropy of the first point, by the ordinary way through the model. */
static double loss_of(const struct run *r) {
    int8_t all[N_CTX];
    memset(all, 1, sizeof all);
    int32_t *tokens = ggml_opt_dataset_data(r->data)->data, *labels = ggml_opt_dataset_labels(r->data)->data;
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(r->model)), n_batch = (int) llama_n_batch(r->ctx);
    double loss = 0;
    llama_memory_clear(llama_get_memory(r->ctx), false);
    for (int at = 0; at < N_CTX; at += n_batch) {
        const struct llama_batch batch = { .n_tokens = n_batch, .token = tokens + at, .logits = all };
        if (llama_decode(r->ctx, batch) != 0) return (double) NAN;
        for (int i = 0; i < n_batch; i++) {
            const float *x = llama_get_logits_ith(r->ctx, i);
            double sum = 0;
            for (int k = 0; k < n_vocab; k++) sum += exp((double) x[k]);
            loss += log(sum) - (double) x[labels[at + i]];
        }
    }
    return loss/N_CTX;
}

/* A step of plain descent with a rate of 1 takes the gradient away from a weight. Weight k of those that move most. */
static void compare(const struct run *r, const struct ggml_tensor *t, const float *before, const float *gradient) {
    float *w = t->data;
    const int64_t n = ggml_nelements(t);
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(gradient[i]));
    int checked = 0;
    for (int64_t i = n/3, seen = 0; seen < n && checked < 2; i = (i + 7)%n, seen++) {
        const float h = 0.02f;
        if (fabsf(gradient[i]) < 0.5f*most) continue;
        w[i] = before[i] + h;
        const double up = loss_of(r);
        w[i] = before[i] - h;
        const double slope = (up - loss_of(r))/(2*(double) h);
        w[i] = before[i];
        CHECK(fabs(slope - (double) gradient[i]) < 0.02*fabs(slope) + 2e-5, "%s [%lld]: %g, differences say %g", t->name, (long long) i,
              (double) gradient[i], slope);
        checked++;
    }
    CHECK(checked == 2 && most > 0, "%s: no gradient", t->name);
}

static void test_gradients(struct tiny_shape shape, const char *name) {
    struct run r = start(shape, N_CTX, N_CTX, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    p.param_filter = collect;
    n_found = 0;
    llama_opt_init(r.ctx, r.model, p);
    static float before[64][TINY_VOCAB*64], gradient[TINY_VOCAB*64];
    for (int i = 0; i < n_found; i++) memcpy(before[i], found[i]->data, ggml_nbytes(found[i]));
    const double want = loss_of(&r), loss = epoch(&r, 1, true);
    CHECK(fabs(loss - want) < 1e-4, "%s: loss %g, by decoding %g", name, loss, want);
    float (*moved)[TINY_VOCAB*64] = malloc(sizeof before);
    for (int i = 0; i < n_found; i++) memcpy(moved[i], found[i]->data, ggml_nbytes(found[i])), memcpy(found[i]->data, before[i], ggml_nbytes(found[i]));
    for (int i = 0; i < n_found; i++) {
        for (int64_t k = 0; k < ggml_nelements(found[i]); k++) gradient[k] = before[i][k] - moved[i][k];
        compare(&r, found[i], before[i], gradient);
    }
    free(moved);
    stop(&r);
}

/* ---- learning -------------------------------------------------------------------------------------------------------------- */

static void test_learns(struct tiny_shape shape, const char *name, int n_epochs, double below) {
    struct run r = start(shape, 64, 32, GGML_TYPE_F16);
    struct llama_opt_params p = sgd();
    p.optimizer_type = GGML_OPT_OPTIMIZER_TYPE_ADAMW;
    llama_opt_init(r.ctx, r.model, p);
    const double first = epoch(&r, 1, true);
    double loss = first;
    for (int i = 0; i < n_epochs; i++) loss = epoch(&r, 1, true);
    CHECK(first > 4 && loss < below, "%s: the loss went from %g to %g", name, first, loss);
    CHECK(fabs(loss_of(&r) - epoch(&r, 0, false)) < 0.05, "%s: it does not decode as it was trained", name);
    stop(&r);
}

/* Saved and loaded again the model is the trained one, with its new context. */
static void test_saved(void) {
    struct run r = start(tiny_llama(), N_CTX, N_CTX, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    p.n_ctx_train = 2*N_CTX;
    llama_opt_init(r.ctx, r.model, p);
    epoch(&r, -1, true);
    const double want = loss_of(&r);
    llama_model_save_to_file(r.model, r.tiny.path);
    struct run again = r;
    again.model = load(&r.tiny, LLAMA_LOAD_MODE_AUTO);
    again.ctx   = context(again.model, N_CTX, N_CTX, GGML_TYPE_F32);
    CHECK(again.model && llama_model_n_ctx_train(again.model) == 2*N_CTX && loss_of(&again) == want, "saved and loaded");
    llama_free(again.ctx);
    llama_model_free(again.model);
    stop(&r);
}

/* ---- parts of a batch, threads ---------------------------------------------------------------------------------------------- */

static void weights_after(uint32_t n_ubatch, int threads, float *out, size_t size) {
    struct run r = start(tiny_llama(), N_CTX, n_ubatch, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    p.param_filter = collect;
    n_found = 0;
    llama_set_n_threads(r.ctx, threads, threads);
    llama_opt_init(r.ctx, r.model, p);
    epoch(&r, 1, true);
    memcpy(out, found[n_found - 1]->data, size);        /* the last layer's last product: no cache lies behind it */
    stop(&r);
}
static void test_parts(void) {
    enum { N = 32*64 };
    static float whole[N], parts[N], threads[N];
    weights_after(N_CTX, 1, whole, sizeof whole);
    weights_after(64, 1, parts, sizeof parts);
    weights_after(N_CTX, 3, threads, sizeof threads);
    CHECK(!memcmp(whole, threads, sizeof whole), "other bits with three threads");
    for (int i = 0; i < N; i++) CHECK(fabsf(whole[i] - parts[i]) < 1e-6f, "weight %d: %g, in parts %g", i, (double) whole[i], (double) parts[i]);
}

static int n_calls;
static int64_t last_call, calls_of;
static void count(bool train, ggml_opt_context_t opt, ggml_opt_dataset_t data, ggml_opt_result_t result, int64_t i, int64_t n, int64_t us) {
    (void) opt, (void) data, (void) result, (void) us;
    n_calls  += train;
    last_call = i, calls_of = n;
}
static bool only_output(const struct ggml_tensor *t, void *user_data) { (*(int *) user_data)++; return !strcmp(t->name, "output_norm.weight"); }

static void test_choice(void) {
    struct run r = start(tiny_llama(), 128, 64, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    int asked = 0;
    p.param_filter = collect, n_found = 0;
    llama_opt_init(r.ctx, r.model, p);
    static float before[64][TINY_VOCAB*64];
    for (int i = 0; i < n_found; i++) memcpy(before[i], found[i]->data, ggml_nbytes(found[i]));
    p.param_filter = only_output, p.param_filter_ud = &asked;
    llama_opt_init(r.ctx, r.model, p);
    llama_opt_epoch(r.ctx, r.data, NULL, NULL, -1, count, count);
    CHECK(asked == n_found && n_found == 10, "%d of %d weights", asked, n_found);
    for (int i = 0; i < n_found; i++) {
        const bool same = !memcmp(before[i], found[i]->data, ggml_nbytes(found[i]));
        CHECK(same == (strcmp(found[i]->name, "output_norm.weight") != 0), "%s %s", found[i]->name, same ? "stayed" : "changed");
    }
    CHECK(n_calls == 8 && last_call == 8 && calls_of == 8, "%d calls, the last %lld of %lld", n_calls, (long long) last_call, (long long) calls_of);
    stop(&r);
}

/* ---- what cannot be ---------------------------------------------------------------------------------------------------------- */

static void declined(const struct run *r, const char *why) {
    CHECK(isnan(epoch(r, 1, true)) && strstr(tiny_log, why) && tiny_errors, "wanted \"%s\", told \"%s\"", why, tiny_log);
    tiny_log_clear();
}
static void test_refused(void) {
    struct run r = start(tiny_llama(), N_CTX, N_CTX, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    declined(&r, "llama_opt_init");
    p.optimizer_type = GGML_OPT_OPTIMIZER_TYPE_COUNT;
    llama_opt_init(r.ctx, r.model, p), declined(&r, "no such optimizer");
    p = sgd(), p.n_ctx_train = 300;
    llama_opt_init(r.ctx, r.model, p), declined(&r, "multiple of n_batch");
    p = sgd();
    struct llama_model *other = load(&r.tiny, LLAMA_LOAD_MODE_MMAP);
    llama_opt_init(r.ctx, other, p), declined(&r, "another model");
    struct run mapped = r;
    mapped.model = other, mapped.ctx = context(other, N_CTX, N_CTX, GGML_TYPE_F32);
    llama_opt_init(mapped.ctx, other, p), declined(&mapped, "mapped file");
    llama_free(mapped.ctx), llama_model_free(other);
    struct run uneven = r;
    uneven.ctx = context(r.model, 96, 96, GGML_TYPE_F32);
    llama_opt_init(uneven.ctx, r.model, p), declined(&uneven, "multiple of n_batch");
    llama_free(uneven.ctx);
    uneven.ctx = context(r.model, 128, 96, GGML_TYPE_F32);
    llama_opt_init(uneven.ctx, r.model, p), declined(&uneven, "multiple of n_ubatch");
    llama_free(uneven.ctx);

    llama_opt_init(r.ctx, r.model, p);
    int32_t *tokens = ggml_opt_dataset_data(r.data)->data, *labels = ggml_opt_dataset_labels(r.data)->data;
    struct run data = r;
    data.data = ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_I32, 64, 64, 2, 1),     declined(&data, "n_ctx tokens"), ggml_opt_dataset_free(data.data);
    data.data = ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_F32, N_CTX, N_CTX, 2, 1), declined(&data, "n_ctx tokens"), ggml_opt_dataset_free(data.data);
    data.data = ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_I32, N_CTX, 0, 2, 1),   declined(&data, "n_ctx tokens"), ggml_opt_dataset_free(data.data);
    CHECK(isnan(epoch(&r, 3, true)) && strstr(tiny_log, "behind the data"), "%s", tiny_log);
    tiny_log_clear();
    for (int i = 0; i < 2; i++) {
        int32_t *at = (i ? labels : tokens) + 17;
        const int32_t was = *at;
        *at = TINY_VOCAB, declined(&r, i ? "label" : "no such token");
        *at = -1,         declined(&r, i ? "label" : "no such token");
        *at = was;
    }
    CHECK(!isnan(epoch(&r, 1, true)) && !tiny_errors, "after all of that: %s", tiny_log);
    stop(&r);

    struct tiny_shape wide = tiny_llama();              /* heads of 32: a row of Q8_0 */
    wide.n_head = wide.n_head_kv = 1;
    r = start(wide, N_CTX, N_CTX, GGML_TYPE_Q8_0);
    llama_opt_init(r.ctx, r.model, p), declined(&r, "no gradient");
    stop(&r);
}

/* Matrices of F16 stay, norms are trained. */
static void test_half(void) {
    struct tiny_shape shape = tiny_llama();
    shape.type = GGML_TYPE_F16;
    struct run r = start(shape, N_CTX, N_CTX, GGML_TYPE_F32);
    struct llama_opt_params p = sgd();
    p.param_filter = collect, n_found = 0;
    llama_opt_init(r.ctx, r.model, p);
    CHECK(n_found == 3, "%d weights", n_found);
    const double first = epoch(&r, -1, true), then = epoch(&r, -1, true);
    CHECK(then < first && !tiny_errors, "%g, then %g: %s", first, then, tiny_log);
    stop(&r);
}

/* ---- no memory ----------------------------------------------------------------------------------------------------------------- */

static void test_memory(void) {
    interpose_used();
#if INTERPOSED
    struct run r = start(tiny_llama(), N_CTX, 128, GGML_TYPE_F32);
    ggml_opt_result_t result = ggml_opt_result_init();
    int n = 1;
    for (bool reached = true; reached && n < 3000; n++) {
        llama_free(r.ctx);
        r.ctx = context(r.model, N_CTX, 128, GGML_TYPE_F32);
        tiny_log_clear();
        ggml_opt_result_free(result), result = ggml_opt_result_init();
        const long before = held;
        fail_at = n;
        llama_opt_init(r.ctx, r.model, sgd());
        llama_opt_epoch(r.ctx, r.data, result, NULL, 1, NULL, NULL);
        reached = fail_at == 0;
        fail_at = 0;
        int64_t done = 0;
        ggml_opt_result_ndata(result, &done);
        CHECK(!reached || tiny_errors || done == N_CTX, "failure %d: no error, %lld tokens", n, (long long) done);
        CHECK(reached || (!tiny_errors && done == N_CTX), "without a failure: %s", tiny_log);
        CHECK(!isnan(loss_of(&r)), "failure %d: it does not answer any more", n);
        tiny_log_clear();
        llama_opt_init(r.ctx, r.model, sgd());
        CHECK(!isnan(epoch(&r, 1, true)) && !tiny_errors, "failure %d, then: %s", n, tiny_log);
        llama_opt_init(r.ctx, r.model, (struct llama_opt_params) { .optimizer_type = GGML_OPT_OPTIMIZER_TYPE_COUNT });
        CHECK(held - before < 4, "failure %d: %ld blocks are left", n, held - before);
    }
    CHECK(n > 30, "only %d allocations", n);
    ggml_opt_result_free(result);
    stop(&r);
#endif
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    struct tiny_shape gemma = { "gemma3", 2, 32, 4, 2, 64, 0, 0, 64, GGML_TYPE_F32, false }, experts = tiny_llama(), two = tiny_llama();
    experts.n_expert = experts.n_used = 3;          /* all of them: where the choice turns there is no slope */
    two.n_layer = 2;
    test_gradients(two, "llama");
    test_gradients(gemma, "gemma3");
    test_gradients(experts, "experts");
    CHECK(!tiny_errors, "%s", tiny_log);
    test_learns((struct tiny_shape) { "llama", 2, 64, 4, 2, 128, 0, 0, 0, GGML_TYPE_F32, false }, "llama", SANITIZED ? 3 : 20, SANITIZED ? 2.5 : 0.1);
    test_learns(gemma, "gemma3", SANITIZED ? 1 : 6, SANITIZED ? 4 : 2.5);
    test_learns(experts, "experts", SANITIZED ? 1 : 6, SANITIZED ? 4 : 2.5);
    test_saved();
    test_parts();
    test_choice();
    test_half();
    CHECK(!tiny_errors, "%s", tiny_log);
    tiny_log_clear();
    test_refused();
    test_memory();
    return DONE();
}
