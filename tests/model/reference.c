/* Real models against their references (reference/<model>.json): the token ids of each prompt; the exact logits, which this
 * library must reach itself with every weight expanded to F32; and the divergence of the quantised file from them, which
 * must not be above that of the peer. Skipped where the models are not there (scripts/models.py fetches them). */

#include "check.h"

#include <cjson/cJSON.h>

#include "arenite.h"
#include "gguf.h"
#include "llama.h"

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    static char buf[1 << 16];
    buf[fread(buf, 1, sizeof buf - 1, f)] = 0;
    fclose(f);
    return buf;
}

/* One tensor, expanded row by row behind what f holds, padded to the alignment. */
static bool expand_tensor(FILE *in, FILE *out, const struct gguf_context *g, int64_t i, size_t alignment) {
    const enum ggml_type type = gguf_get_tensor_type(g, i);
    const int64_t n = gguf_get_tensor_ne(g, i)[0];
    const size_t row = ggml_row_size(type, n), size = gguf_get_tensor_size(g, i);
    const int64_t rows = (int64_t) (size/row);
    void *packed = malloc(row);
    float *wide = malloc((size_t) n*sizeof *wide);
    bool ok = packed && wide && !fseeko(in, (off_t) (gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i)), SEEK_SET);
    for (int64_t r = 0; ok && r < rows; r++) {
        ok = fread(packed, 1, row, in) == row;
        if (type == GGML_TYPE_F32) memcpy(wide, packed, row);
        else ggml_get_type_traits(type)->to_float(packed, wide, n);
        ok = ok && fwrite(wide, sizeof *wide, (size_t) n, out) == (size_t) n;
    }
    const char zero[64] = { 0 };
    const size_t pad = (alignment - (size_t) rows*(size_t) n*sizeof *wide % alignment) % alignment;
    ok = ok && fwrite(zero, 1, pad, out) == pad;
    free(packed);
    free(wide);
    return ok;
}

/* The same model with every weight as F32. */
static bool expand(const char *from, const char *to) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(from, (struct gguf_init_params) { .no_alloc = true, .ctx = &ctx }), *w = gguf_init_empty();
    bool ok = g && w;
    if (ok) gguf_set_kv(w, g);
    for (struct ggml_tensor *t = ok ? ggml_get_first_tensor(ctx) : NULL; t; t = ggml_get_next_tensor(ctx, t)) {
        gguf_add_tensor(w, t);
        gguf_set_tensor_type(w, ggml_get_name(t), GGML_TYPE_F32);
    }
    ok = ok && gguf_write_to_file(w, to, true);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "ab");
    ok = ok && in && out;
    for (int64_t i = 0; ok && i < gguf_get_n_tensors(g); i++) ok = expand_tensor(in, out, g, i, gguf_get_alignment(w));
    if (in) fclose(in);
    if (out) ok = !fclose(out) && ok;
    ggml_free(ctx);
    gguf_free(g);
    gguf_free(w);
    return ok;
}

struct loaded { struct llama_model *model; struct llama_context *ctx; };

static struct loaded load(const char *path, enum ggml_type cache) {
    struct loaded l = { .model = llama_model_load_from_file(path, llama_model_default_params()) };
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = 64;
    p.n_outputs_max = 64;
    p.type_k = p.type_v = cache;
    l.ctx = l.model ? llama_init_from_model(l.model, p) : NULL;
    return l;
}

static void unload(struct loaded *l) {
    llama_free(l->ctx);
    llama_model_free(l->model);
}

static bool decode(const struct loaded *l, const llama_token *tokens, int n) {
    struct llama_batch b = llama_batch_init(n, 0, 1);
    llama_memory_clear(llama_get_memory(l->ctx), true);
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = tokens[i];
        b.pos[i] = i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = true;
    }
    const bool ok = llama_decode(l->ctx, b) == 0;
    llama_batch_free(b);
    return ok;
}

static double log_sum(const float *x, int n, int *top) {
    int best = 0;
    double sum = 0;
    for (int i = 1; i < n; i++) if (x[i] > x[best]) best = i;
    for (int i = 0; i < n; i++) sum += exp((double) x[i] - (double) x[best]);
    *top = best;
    return (double) x[best] + log(sum);
}

/* KL(p || q) of two rows of logits; *top is q's best token. */
static double divergence(const float *p, const float *q, int n, int *top) {
    int top_p;
    const double lp = log_sum(p, n, &top_p), lq = log_sum(q, n, top);
    double kl = 0;
    for (int i = 0; i < n; i++) {
        const double a = (double) p[i] - lp;
        kl += exp(a)*(a - ((double) q[i] - lq));
    }
    return kl;
}

static double number(const cJSON *o, const char *name) { return cJSON_GetNumberValue(cJSON_GetObjectItem(o, name)); }

static int check_tokens(const struct loaded *l, const cJSON *c, llama_token *tokens, int room) {
    const char *prompt = cJSON_GetStringValue(cJSON_GetObjectItem(c, "prompt"));
    const cJSON *want = cJSON_GetObjectItem(c, "tokens");
    const int n = llama_tokenize(llama_model_get_vocab(l->model), prompt, (int32_t) strlen(prompt), tokens, room, true, true);
    CHECK(n == cJSON_GetArraySize(want), "%s: %d tokens", prompt, n);
    for (int i = 0; i < n && i < cJSON_GetArraySize(want); i++) CHECK(tokens[i] == cJSON_GetArrayItem(want, i)->valueint, "%s: token %d is %d", prompt, i, tokens[i]);
    return n;
}

struct totals { double ours, peer; int positions; };

static void check_case(const struct loaded *exact, const struct loaded *ours, const cJSON *c, struct totals *t) {
    const char *prompt = cJSON_GetStringValue(cJSON_GetObjectItem(c, "prompt"));
    const cJSON *top20 = cJSON_GetObjectItem(c, "exact_top20");
    llama_token tokens[64];
    const int n = check_tokens(ours, c, tokens, 64), n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(ours->model));
    const bool computed = n > 0 && decode(exact, tokens, n) && decode(ours, tokens, n);
    CHECK(computed, "%s cannot be computed", prompt);
    if (!computed) return;
    double kl = 0, worst = 0;
    int top = -1;
    for (int i = 0; i < n; i++) kl += divergence(llama_get_logits_ith(exact->ctx, i), llama_get_logits_ith(ours->ctx, i), n_vocab, &top);
    const float *last = llama_get_logits_ith(exact->ctx, n - 1);
    for (int i = 0; i < cJSON_GetArraySize(top20); i++) {
        const cJSON *pair = cJSON_GetArrayItem(top20, i);
        const double d = fabs((double) last[cJSON_GetArrayItem(pair, 0)->valueint] - cJSON_GetArrayItem(pair, 1)->valuedouble);
        if (d > worst) worst = d;
    }
    CHECK(worst < 2e-2, "%s: an exact logit differs by %g", prompt, worst);
    CHECK(top == cJSON_GetArrayItem(cJSON_GetArrayItem(top20, 0), 0)->valueint, "%s: the best token is %d", prompt, top);
    t->ours += kl;
    t->peer += n*number(c, "peer_mean_kl");
    t->positions += n;
    CHECK(kl/n <= number(c, "peer_mean_kl"), "mean KL %.6f, the peer's %.6f: %.40s", kl/n, number(c, "peer_mean_kl"), prompt);
    fprintf(stderr, "mean KL %.6f (peer %.6f), exact logits within %.1e: %.40s\n", kl/n, number(c, "peer_mean_kl"), worst, prompt);
}

static bool check_model(const char *name) {
    char path[1024], expanded[1024], cases[1024];
    snprintf(path, sizeof path, "%s/%s.gguf", getenv("ARENITE_MODELS") ? getenv("ARENITE_MODELS") : "models", name);
    snprintf(cases, sizeof cases, "%s/tests/model/reference/%s.json", getenv("ARENITE_SOURCE") ? getenv("ARENITE_SOURCE") : ".", name);
    snprintf(expanded, sizeof expanded, "%s.f32.gguf", name);
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    fclose(f);
    cJSON *all = cJSON_Parse(read_file(cases));
    const bool written = all && expand(path, expanded);
    CHECK(written, "%s cannot be expanded", path);
    struct loaded exact = written ? load(expanded, GGML_TYPE_F32) : (struct loaded) { 0 }, ours = load(path, GGML_TYPE_F16);
    CHECK(exact.ctx && ours.ctx, "%s cannot be loaded", name);
    struct totals t = { 0 };
    const cJSON *c;
    if (exact.ctx && ours.ctx) cJSON_ArrayForEach(c, cJSON_GetObjectItem(all, "cases")) check_case(&exact, &ours, c, &t);
    CHECK(t.positions && t.ours <= t.peer, "%s: mean KL %.6f, the peer's %.6f", name, t.ours/t.positions, t.peer/t.positions);
    fprintf(stderr, "%s: mean KL %.6f, the peer's %.6f\n", name, t.ours/t.positions, t.peer/t.positions);
    unload(&exact);
    unload(&ours);
    remove(expanded);
    cJSON_Delete(all);
    return true;
}

int main(void) {
    const bool smollm = check_model("smollm2-135m"), gemma = check_model("gemma3-270m");
    if (!smollm && !gemma) return 77;
    return DONE();
}
