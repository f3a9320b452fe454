/* Decoding: the logits are the model's (held against double precision), and the same bits come out however many threads
 * compute them, however the prompt is cut into batches, and whatever else is in the cache. */

#include "reference.h"

#include "arenite.h"

static const struct { const char *name; struct tiny_shape shape; } models[] = {
    { "dense",   { "llama",  2, 64, 4, 2, 96, 0, 0,  0, GGML_TYPE_F32, false } },
    { "half",    { "llama",  2, 64, 4, 4, 96, 0, 0,  0, GGML_TYPE_F16, false } },
    { "experts", { "llama",  2, 64, 4, 2, 96, 6, 2,  0, GGML_TYPE_F32, false } },
    { "window",  { "gemma3", 7, 64, 4, 1, 96, 0, 0, 24, GGML_TYPE_F32, false } },
};
enum { N_MODELS = sizeof models/sizeof *models, N_TOKENS = 90 };

static llama_token tokens[800];

static struct llama_model *load(const struct tiny *t) {
    tiny_write(t);
    tiny_log_clear();
    struct llama_model *m = llama_model_load_from_file(t->path, llama_model_default_params());
    CHECK(m, "%s", tiny_log);
    return m;
}

static struct llama_context_params params(void) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 1024;
    p.swa_full = false;
    p.n_threads = p.n_threads_batch = 2;
    return p;
}

static struct llama_context *context(struct llama_model *m, struct llama_context_params p) {
    tiny_log_clear();
    struct llama_context *ctx = llama_init_from_model(m, p);
    CHECK(ctx, "no context: %s", tiny_log);
    return ctx;
}

/* Decodes n tokens of sequence s at pos, all with logits; they go to `out` unless NULL. */
static int decode(struct llama_context *ctx, int s, llama_pos pos, const llama_token *list, int n, float *out) {
    struct llama_batch b = llama_batch_init(n, 0, 1);
    const int n_vocab = TINY_VOCAB;
    b.n_tokens = n;
    for (int i = 0; i < n; i++) {
        b.token[i] = list[i];
        b.pos[i] = pos + i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = s;
        b.logits[i] = out != NULL;
    }
    const int result = llama_decode(ctx, b);
    for (int i = 0; out && !result && i < n; i++) memcpy(out + (size_t) i*n_vocab, llama_get_logits_ith(ctx, i),
                                                         (size_t) n_vocab*sizeof *out);
    llama_batch_free(b);
    return result;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static double worst_error(const float *got, const double *want, int n) {
    double worst = 0;
    for (int i = 0; i < n; i++) {
        const double e = fabs((double) got[i] - want[i]);
        if (!(e <= worst)) worst = e;       /* NaN counts */
    }
    return worst;
}

static void check_values(const char *name, const struct tiny *t, struct reference r, enum ggml_type kv,
                         double tolerance) {
    static double want[N_TOKENS*TINY_VOCAB];
    static float  got [N_TOKENS*TINY_VOCAB];
    struct llama_model *m = load(t);
    struct llama_context_params p = params();
    p.type_k = p.type_v = kv;
    struct llama_context *ctx = m ? context(m, p) : NULL;
    if (ctx) {
        r.t = t;
        r.n = N_TOKENS;
        ref_logits(&r, tokens, want);
        CHECK(decode(ctx, 0, 0, tokens, N_TOKENS, got) == 0, "%s: %s", name, tiny_log);
        const double e = worst_error(got, want, N_TOKENS*TINY_VOCAB);
        CHECK(e < tolerance, "%s, cache %s: off by %g", name, ggml_type_name(kv), e);
    }
    llama_free(ctx);
    llama_model_free(m);
}

static struct reference plain(const struct tiny_shape *s) {
    return (struct reference) { .rope_base = 10000, .rope_base_local = 10000, .rope_scale = 1, .n_swa = s->n_swa,
                               .pattern = 6 };
}

static void test_values(void) {
    for (int i = 0; i < N_MODELS; i++) {
        struct tiny t = tiny_new(models[i].shape);
        check_values(models[i].name, &t, plain(&t.shape), GGML_TYPE_F32, 2e-5);
        check_values(models[i].name, &t, plain(&t.shape), GGML_TYPE_F16, 5e-3);
        tiny_free(&t);
    }
}

/* Caches of block types: near the exact values, as near as their bits allow. */
static void test_block_caches(void) {
    struct tiny t = tiny_new((struct tiny_shape) { "llama", 1, 64, 2, 1, 96, 0, 0, 0, GGML_TYPE_F32, false });
    check_values("heads of 32", &t, plain(&t.shape), GGML_TYPE_F32,  2e-5);
    check_values("heads of 32", &t, plain(&t.shape), GGML_TYPE_BF16, 2e-2);
    check_values("heads of 32", &t, plain(&t.shape), GGML_TYPE_Q8_0, 2e-2);
    check_values("heads of 32", &t, plain(&t.shape), GGML_TYPE_Q4_0, 3e-1);
    tiny_free(&t);
}

/* Rotary scaling, frequency factors, soft-caps: keys and tensors that change the values. */
static void test_variants(void) {
    struct tiny t = tiny_new(models[0].shape);
    struct reference r = plain(&t.shape);
    r.rope_base = 500000, tiny_f32(&t, "rope.freq_base", 500000);
    r.rope_scale = 0.25,  tiny_f32(&t, "rope.scaling.factor", 4);
    r.attn_softcap = 0.5, tiny_f32(&t, "attn_logit_softcapping", 0.5f);
    r.final_softcap = 2,  tiny_f32(&t, "final_logit_softcapping", 2);
    tiny_tensor(&t, "rope_freqs.weight", GGML_TYPE_F32, 2, 8, 1, 1);
    check_values("variants", &t, r, GGML_TYPE_F32, 2e-5);
    tiny_free(&t);

    struct tiny g = tiny_new(models[3].shape);
    r = plain(&g.shape);
    r.rope_base = 1e6,       tiny_f32(&g, "rope.freq_base", 1e6f);
    r.rope_base_local = 500, tiny_f32(&g, "rope.freq_base_swa", 500);
    r.rope_scale = 0.125,    tiny_f32(&g, "rope.scaling.factor", 8);
    r.pattern = 3,           tiny_u32(&g, "attention.sliding_window_pattern", 3);
    check_values("gemma3 variants", &g, r, GGML_TYPE_F32, 2e-5);
    tiny_free(&g);
}

/* ---- bits ------------------------------------------------------------------------------------------------------ */

/* A window cache has 768 cells here and wraps around; a plain one sees more than one step of attention. */
static int length(int model) { return ONLY_RACES ? 64 : models[model].shape.n_swa ? 800 : 300; }

static void run_in_batches(struct llama_model *m, struct llama_context_params p, int total, int step, int s,
                           float *last) {
    struct llama_context *ctx = context(m, p);
    static float rows[512*TINY_VOCAB];
    for (int i = 0, n; ctx && i < total; i += n) {
        n = total - i < step ? total - i : step;
        CHECK(decode(ctx, s, i, tokens + i, n, i + n == total ? rows : NULL) == 0, "at %d: %s", i, tiny_log);
        if (i + n == total) memcpy(last, rows + (size_t) (n - 1)*TINY_VOCAB, TINY_VOCAB*sizeof *last);
    }
    llama_free(ctx);
}

static void test_same_bits(void) {
    for (int i = 0; i < N_MODELS; i++) {
        static float want[TINY_VOCAB], got[TINY_VOCAB];
        struct tiny t = tiny_new(models[i].shape);
        struct llama_model *m = load(&t);
        if (!m) { tiny_free(&t); continue; }
        struct llama_context_params p = params();
        run_in_batches(m, p, length(i), 512, 0, want);
        static const int steps[] = { 1, 7, 32, 512 };
        for (int j = 0; j < 4; j++) {
            for (int ubatch = 0; ubatch < 2; ubatch++) {
                p = params();
                p.n_threads = p.n_threads_batch = (int32_t[]) { 1, 2, 3, 8 }[(j + 2*ubatch) % 4];
                if (ubatch) p.n_ubatch = (uint32_t) steps[j];
                if (ubatch && !models[i].shape.n_swa) p.n_seq_max = 4;
                memset(got, 0, sizeof got);
                run_in_batches(m, p, length(i), ubatch ? 512 : steps[j], p.n_seq_max - 1, got);
                CHECK(!memcmp(want, got, sizeof want), "%s: other bits in %s of %d with %d threads", models[i].name,
                      ubatch ? "parts" : "batches", steps[j], p.n_threads);
            }
        }
        llama_model_free(m);
        tiny_free(&t);
    }
}

/* Two sequences in turns, of uneven steps, against each alone. */
static void test_sequences(int i) {
    static float want[2][100*TINY_VOCAB], got[2][100*TINY_VOCAB];
    struct tiny t = tiny_new(models[i].shape);
    struct llama_model *m = load(&t);
    struct llama_context_params p = params();
    p.n_seq_max = 2;
    struct llama_context *ctx = m ? context(m, p) : NULL;
    for (int s = 0; ctx && s < 2; s++) {
        decode(ctx, s, 0, tokens + 100*s, 100, want[s]);
        llama_memory_clear(llama_get_memory(ctx), false);
    }
    for (int at = 0; ctx && at < 100; at += 10) {
        for (int s = 0; s < 2; s++) CHECK(decode(ctx, s, at, tokens + 100*s + at, 10, got[s] + at*TINY_VOCAB) == 0,
                                          "%s", tiny_log);
    }
    CHECK(!memcmp(want, got, sizeof want), "%s: a neighbour changes bits", models[i].name);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Files that begin as a state's and are none: more than the context can hold, of which nothing is read, and tokens that are not there. */
static void refused_files(struct llama_context *ctx) {
    static const struct { uint32_t tokens; off_t size; } files[] = { { 1, (off_t) 1 << 40 }, { 1, 15 }, { 4, 24 }, { UINT32_MAX, 28 }, { 0, 12 }, { 0, 3 } };
    char path[64];
    llama_token read[3];
    size_t n;
    snprintf(path, sizeof path, "/tmp/state-%d", (int) getpid());
    for (size_t i = 0; i < sizeof files/sizeof *files; i++) {
        const uint32_t heads[2][3] = { { LLAMA_SESSION_MAGIC, LLAMA_SESSION_VERSION, files[i].tokens }, { LLAMA_STATE_SEQ_MAGIC, LLAMA_STATE_SEQ_VERSION, files[i].tokens } };
        for (int k = 0; k < 2; k++) {
            FILE *f = fopen(path, "wb");
            if (!f || fwrite(heads[k], sizeof heads[k], 1, f) != 1 || fclose(f) || truncate(path, files[i].size)) exit(fprintf(stderr, "%s: cannot write\n", path));
            tiny_log_clear();
            const bool taken = k ? llama_state_seq_load_file(ctx, path, 1, read, 3, &n) > 0 : llama_state_load_file(ctx, path, read, 3, &n);
            CHECK(!taken && tiny_errors == 1, "file %zu: %d lines: %s", i, tiny_errors, tiny_log);
        }
    }
    unlink(path);
    CHECK(!llama_state_load_file(ctx, path, read, 3, &n) && !llama_state_load_file(ctx, "/tmp", read, 3, &n), "no file");
}

/* A copied sequence, a rolled back one and a restored one go on with the bits of the original. */
static void test_memory(int i, enum ggml_type kv) {
    static float want[TINY_VOCAB], got[TINY_VOCAB];
    struct tiny t = tiny_new(models[i].shape);
    struct llama_model *m = load(&t);
    struct llama_context_params p = params();
    p.n_seq_max = 3;
    p.type_k = p.type_v = kv;
    struct llama_context *ctx = m ? context(m, p) : NULL;
    if (!ctx) { llama_model_free(m); tiny_free(&t); return; }
    llama_memory_t mem = llama_get_memory(ctx);
    CHECK(decode(ctx, 0, 0, tokens, 70, NULL) == 0 && decode(ctx, 0, 70, tokens + 70, 1, want) == 0, "%s", tiny_log);

    CHECK(llama_memory_seq_rm(mem, 0, 70, -1) && decode(ctx, 0, 70, tokens + 70, 1, got) == 0, "%s", tiny_log);
    CHECK(!memcmp(want, got, sizeof want), "%s: rolled back", models[i].name);

    llama_memory_seq_rm(mem, 0, 70, -1);
    llama_memory_seq_cp(mem, 0, 1, -1, -1);
    CHECK(decode(ctx, 1, 70, tokens + 70, 1, got) == 0 && !memcmp(want, got, sizeof want), "%s: copied",
          models[i].name);

    const size_t size = llama_state_seq_get_size(ctx, 0), whole = llama_state_get_size(ctx);
    uint8_t *state = malloc(size), *all = malloc(whole);
    CHECK(llama_state_seq_get_data(ctx, state, size, 0) == size && llama_state_get_data(ctx, all, whole) == whole,
          "%s", tiny_log);
    CHECK(llama_state_seq_set_data(ctx, state, size, 2) == size && llama_memory_seq_pos_max(mem, 2) == 69, "%s",
          tiny_log);
    CHECK(decode(ctx, 2, 70, tokens + 70, 1, got) == 0 && !memcmp(want, got, sizeof want),
          "%s: restored as another", models[i].name);

    llama_memory_clear(mem, true);
    CHECK(llama_state_set_data(ctx, all, whole) == whole, "%s", tiny_log);
    CHECK(decode(ctx, 0, 70, tokens + 70, 1, got) == 0 && !memcmp(want, got, sizeof want), "%s: restored",
          models[i].name);
    for (size_t cut = 0; !ONLY_RACES && cut < whole; cut += cut < 200 ? 1 : 997) {
        if (llama_state_set_data(ctx, all, cut)) CHECK(false, "a state cut at %zu of %zu is taken", cut, whole);
        if (cut < size && llama_state_seq_set_data(ctx, state, cut, 1)) {
            CHECK(false, "a sequence cut at %zu is taken", cut);
        }
    }
    CHECK(llama_memory_seq_pos_max(mem, 0) == 70, "a refused state changes the memory");
    refused_files(ctx);
    uint64_t seed = 3;
    for (int n = 0; n < (ONLY_RACES ? 0 : 300); n++) {      /* damaged anywhere: taken or refused, never a crash */
        uint8_t *at = &state[rnd_u64(&seed) % (n < 200 ? 200 : size)], old = *at;
        *at = (uint8_t) rnd_u64(&seed);
        llama_state_seq_set_data(ctx, state, size, 1);
        *at = old;
    }
    free(state);
    free(all);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

/* Positions moved back by one page: what follows sees the keys rotated as if they had been computed there. */
static void test_shift(void) {
    static float want[TINY_VOCAB], got[TINY_VOCAB];
    struct tiny_shape shape = models[0].shape;
    shape.n_layer = 1;      /* with more, values would remember the positions they were computed at */
    struct tiny t = tiny_new(shape);
    struct llama_model *m = load(&t);
    struct llama_context_params p = params();
    p.type_k = p.type_v = GGML_TYPE_F32;
    struct llama_context *ctx = m ? context(m, p) : NULL;
    if (!ctx) { llama_model_free(m); tiny_free(&t); return; }
    llama_memory_t mem = llama_get_memory(ctx);
    decode(ctx, 0, 0, tokens + 10, 50, NULL);
    decode(ctx, 0, 50, tokens + 60, 1, want);
    llama_memory_clear(mem, false);
    decode(ctx, 0, 0, tokens, 60, NULL);
    CHECK(llama_memory_can_shift(mem) && llama_memory_seq_rm(mem, 0, 0, 10), "remove the first ten");
    llama_memory_seq_add(mem, 0, 10, -1, -10);
    CHECK(decode(ctx, 0, 50, tokens + 60, 1, got) == 0, "%s", tiny_log);
    double worst = 0;
    for (int i = 0; i < TINY_VOCAB; i++) worst = fmax(worst, fabs((double) want[i] - (double) got[i]));
    CHECK(worst < 1e-4, "shifted: off by %g", worst);
    llama_memory_seq_add(mem, 0, 0, -1, INT32_MAX - 1 - 50);        /* to the last position that there is */
    tiny_log_clear();
    CHECK(llama_memory_seq_pos_max(mem, 0) == INT32_MAX - 1 && llama_decode(ctx, llama_batch_get_one(tokens, 3)) == -1 && tiny_errors == 1,
          "positions behind the last one: %s", tiny_log);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

/* ---- wrong batches --------------------------------------------------------------------------------------------- */

static bool stop_now(void *on) { return *(bool *) on; }

static void test_refused(void) {
    static float want[TINY_VOCAB], got[TINY_VOCAB];
    struct tiny t = tiny_new(models[3].shape);
    struct llama_model *m = load(&t);
    struct llama_context_params p = params();
    p.n_ctx = 256;
    p.n_batch = 200;
    p.n_ubatch = 64;
    bool stop = false;
    p.abort_callback = stop_now;
    p.abort_callback_data = &stop;
    struct llama_context *ctx = m ? context(m, p) : NULL;
    if (!ctx) { llama_model_free(m); tiny_free(&t); return; }
    llama_memory_t mem = llama_get_memory(ctx);
    CHECK(decode(ctx, 0, 0, tokens, 150, NULL) == 0 && decode(ctx, 0, 150, tokens + 150, 1, want) == 0, "%s", tiny_log);
    llama_memory_seq_rm(mem, 0, 150, -1);
    const llama_token wrong[2] = { TINY_VOCAB, -1 };
    CHECK(decode(ctx, 0, 150, wrong, 1, got) == -1 && decode(ctx, 0, 150, wrong + 1, 1, got) == -1,
          "tokens out of range");
    CHECK(decode(ctx, 1, 0, tokens, 1, got) == -1 && decode(ctx, -1, 0, tokens, 1, got) == -1,
          "sequences out of range");
    CHECK(decode(ctx, 0, 152, tokens, 1, got) == -1 && decode(ctx, 0, 149, tokens, 1, got) == -1,
          "positions that do not follow");
    CHECK(decode(ctx, 0, 150, tokens, 0, got) == -1 && decode(ctx, 0, 150, tokens, 201, got) == -1,
          "sizes out of range");
    CHECK(decode(ctx, 0, 150, tokens, 107, NULL) == 1, "more than there is room for");
    stop = true;
    CHECK(decode(ctx, 0, 150, tokens, 100, NULL) == 2, "not stopped");
    stop = false;
    CHECK(llama_memory_seq_pos_max(mem, 0) == 149, "the memory was changed: %d", llama_memory_seq_pos_max(mem, 0));
    CHECK(decode(ctx, 0, 150, tokens + 150, 1, got) == 0 && !memcmp(want, got, sizeof want),
          "it does not go on as before");
    CHECK(!llama_get_logits_ith(ctx, 1) && !llama_get_logits_ith(ctx, -2) && !llama_get_logits_ith(ctx, 1 << 30),
          "rows that are not there");
    CHECK(llama_get_logits_ith(ctx, -1) == llama_get_logits(ctx), "the last row");
    CHECK(!llama_get_embeddings(ctx) && !llama_get_embeddings_ith(ctx, 0), "embeddings nobody asked for");
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

static void test_context_refused(void) {
    struct tiny t = tiny_new(models[0].shape);
    struct llama_model *m = load(&t);
    for (int i = 0; m && i < 5; i++) {
        struct llama_context_params p = params();
        if (i == 0) p.n_seq_max = 65;
        if (i == 1) p.type_k = GGML_TYPE_Q4_K;              /* heads of 16 */
        if (i == 2) p.pooling_type = LLAMA_POOLING_TYPE_RANK;
        if (i == 3) p.n_ctx = UINT32_MAX;
        if (i == 4) p.type_k = GGML_TYPE_I32;
        tiny_log_clear();
        struct llama_context *ctx = llama_init_from_model(m, p);
        CHECK(!ctx && tiny_errors == 1, "case %d: %d lines: %s", i, tiny_errors, tiny_log);
        llama_free(ctx);
    }
    tiny_log_clear();
    CHECK(!llama_init_from_model(NULL, params()) && tiny_errors == 1, "no model");
    llama_model_free(m);
    tiny_free(&t);
}

/* ---- embeddings and the growing batch -------------------------------------------------------------------------- */

static void test_embeddings(void) {
    struct tiny t = tiny_new(models[0].shape);
    tiny_u32(&t, "pooling_type", LLAMA_POOLING_TYPE_MEAN);
    struct llama_model *m = load(&t);
    struct llama_context_params p = params();
    p.embeddings = true;
    p.pooling_type = LLAMA_POOLING_TYPE_LAST;
    struct llama_context *last = m ? context(m, p) : NULL;
    CHECK(last && llama_pooling_type(last) == LLAMA_POOLING_TYPE_LAST, "what the program asks for");
    llama_free(last);
    p.pooling_type = LLAMA_POOLING_TYPE_UNSPECIFIED;            /* what the file names */
    struct llama_context *ctx = m ? context(m, p) : NULL;
    if (!ctx) { llama_model_free(m); tiny_free(&t); return; }
    CHECK(decode(ctx, 0, 0, tokens, 9, NULL) == 0, "%s", tiny_log);
    const float *mean = llama_get_embeddings_seq(ctx, 0);
    CHECK(mean && !llama_get_embeddings_seq(ctx, 1), "pooled");
    for (int j = 0; mean && j < 64; j++) {
        double sum = 0;
        for (int i = 0; i < 9; i++) sum += (double) llama_get_embeddings_ith(ctx, i)[j];
        CHECK(fabs(sum/9 - (double) mean[j]) < 1e-5, "element %d", j);
    }
    const float *logits = llama_get_logits_ith(ctx, 8);     /* the head on the last embedding */
    const struct ggml_tensor *w = ggml_get_tensor(t.ctx, "token_embd.weight");
    for (int v = 0; logits && v < TINY_VOCAB; v += 50) {
        double dot = 0;
        for (int j = 0; j < 64; j++) dot += (double) llama_get_embeddings_ith(ctx, 8)[j]*ref_at(w, j, v, 0);
        CHECK(fabs(dot - (double) logits[v]) < 1e-4, "logit %d", v);
    }
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

static void test_batch_ext(void) {
    static float want[TINY_VOCAB];
    struct tiny t = tiny_new(models[0].shape);
    struct llama_model *m = load(&t);
    struct llama_context *ctx = m ? context(m, params()) : NULL;
    if (!ctx) { llama_model_free(m); tiny_free(&t); return; }
    decode(ctx, 0, 0, tokens, 20, NULL);
    decode(ctx, 0, 20, tokens + 20, 1, want);
    llama_memory_clear(llama_get_memory(ctx), false);
    struct llama_batch_ext *b = llama_batch_ext_init(ctx);
    for (int i = 0; i < 21; i++) CHECK(llama_batch_ext_add_token(b, 0, tokens[i]) == i, "index of token %d", i);
    CHECK(llama_batch_ext_set_output_logits(b, 20, true) && !llama_batch_ext_set_output_logits(b, 21, true), "outputs");
    CHECK(llama_batch_ext_add_token(b, 1, 0) == -1 && llama_batch_ext_add_token(b, -1, 0) == -1,
          "sequences out of range");
    CHECK(llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, b) == 0, "%s", tiny_log);
    const float *got = llama_get_logits_ith(ctx, 20);
    CHECK(got && !memcmp(want, got, sizeof want), "other logits");
    CHECK(llama_process(ctx, LLAMA_PROCESS_TYPE_ENCODE, b) < 0, "encoding");

    /* the same by embeddings: llama's input is the row of the table */
    llama_memory_clear(llama_get_memory(ctx), false);
    llama_batch_ext_clear(b);
    const struct ggml_tensor *w = ggml_get_tensor(t.ctx, "token_embd.weight");
    for (int i = 0; i < 21; i++) {
        const struct llama_embd e = { (const float *) w->data + 64*tokens[i], 1, 64 };
        CHECK(llama_batch_ext_add_embd(b, 0, e) == i, "embedding %d", i);
    }
    CHECK(llama_process(ctx, LLAMA_PROCESS_TYPE_DECODE, b) == 0, "%s", tiny_log);
    got = llama_get_logits_ith(ctx, -1);
    CHECK(got && !memcmp(want, got, sizeof want), "other logits by embeddings");
    llama_batch_ext_free(b);
    llama_free(ctx);
    llama_model_free(m);
    tiny_free(&t);
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    uint64_t seed = 11;
    for (size_t i = 0; i < sizeof tokens/sizeof *tokens; i++) tokens[i] = (llama_token) (rnd_u64(&seed) % TINY_VOCAB);
    if (!ONLY_RACES) {
        test_values();
        test_block_caches();
        test_variants();
    }
    test_same_bits();
    for (int i = 0; i < N_MODELS; i++) test_sequences(i);
    for (int i = 0; i < N_MODELS; i++) test_memory(i, GGML_TYPE_F16);
    test_memory(0, GGML_TYPE_F32);
    test_shift();
    test_refused();
    test_context_refused();
    test_embeddings();
    test_batch_ext();
    return DONE();
}
