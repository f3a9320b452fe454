/* Computes a short prompt with a whole model at one level and writes all logits to a file, so that runs of different builds,
 * natively and emulated, can be compared byte for byte (cmake/neon.cmake, cmake/emulate.cmake).
 *
 * usage: whole MODEL LEVEL N OUT [FILE]
 * MODEL "-": a tiny one made here, left behind as FILE; LEVEL "-": the best; exit code 77: no such model */

#include "model/tiny.h"

#include "arenite.h"

static const char *made(void) {
    static struct tiny t;
    t = tiny_new((struct tiny_shape) { .arch = "gemma3", .n_layer = 2, .n_embd = 256, .n_head = 4, .n_head_kv = 2, .n_ff = 512,
                                       .n_swa = 8, .type = GGML_TYPE_F16 });
    tiny_write(&t);
    return t.path;
}

/* Little endian, whatever the machine. */
static void put(const float *x, int n, FILE *f) {
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        for (int k = 0; k < 32; k += 8) putc((int) (bits >> k & 255), f);
    }
}

static int logits(struct llama_context *ctx, int n, FILE *f) {
    llama_token tokens[512];
    int8_t all[512];
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    memset(all, 1, sizeof all);
    for (int i = 0; i < n; i++) tokens[i] = (300 + 977*i) % n_vocab;
    struct llama_batch batch = llama_batch_get_one(tokens, n - 1);      /* a prompt, and one token by itself */
    batch.logits = all;
    if (llama_decode(ctx, batch)) return fprintf(stderr, "the prompt is not computed\n"), 1;
    for (int i = 0; i < n - 1; i++) put(llama_get_logits_ith(ctx, i), n_vocab, f);
    if (llama_decode(ctx, llama_batch_get_one(tokens + n - 1, 1))) return fprintf(stderr, "the token is not computed\n"), 1;
    put(llama_get_logits_ith(ctx, -1), n_vocab, f);
    return ferror(f) != 0;
}

int main(int argc, char **argv) {
    (void) check_count, (void) check_failed;
    if (argc < 5) return 2;
    const int n = atoi(argv[3]);
    const char *path = strcmp(argv[1], "-") ? argv[1] : made();
    if (access(path, R_OK)) return fprintf(stderr, "%s is not there\n", path), 77;
    if (n < 2 || n > 512 || (strcmp(argv[2], "-") && !arn_cpu_set_level(argv[2]))) return fprintf(stderr, "no level %s\n", argv[2]), 1;
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = p.n_batch = p.n_ubatch = 512;
    p.n_threads = p.n_threads_batch = 2;
    struct llama_context *ctx = m ? llama_init_from_model(m, p) : NULL;
    FILE *f = fopen(argv[4], "wb");
    int status = ctx && f ? logits(ctx, n, f) : 1;
    if (f && fclose(f)) status = 1;
    fprintf(stderr, "%s at level %s: %d tokens\n", path, arn_cpu_get_level(), n);
    llama_free(ctx);
    llama_model_free(m);
    if (path != argv[1] && (argc < 6 || rename(path, argv[5]))) unlink(path);
    return status;
}
