/* A model file and the beginning of a text; the model goes on, taking the likeliest token each time.
 *
 *     generate MODEL.gguf [TEXT [N]]
 *
 * Prints the text and up to N (32) tokens behind it; the same text on every machine. Exit code 1 when the model cannot be
 * loaded or there is no memory.
 *
 *     cc generate.c $(pkg-config --cflags --libs llama) */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

static void quiet(enum ggml_log_level level, const char *text, void *user_data) {
    (void) user_data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static void print_token(const struct llama_vocab *vocab, llama_token token) {
    char piece[256];                                /* no token of any vocabulary we know is as long */
    const int32_t n = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
    if (n > 0) fwrite(piece, 1, (size_t) n, stdout);
}

/* Reads the n tokens, then samples and reads one token after the other. */
static int go_on(struct llama_context *ctx, const struct llama_vocab *vocab, llama_token *tokens, int32_t n, int n_more) {
    struct llama_sampler *likeliest = llama_sampler_init_greedy();
    struct llama_batch batch = llama_batch_get_one(tokens, n);
    llama_token token;
    int failed = !likeliest;
    for (int i = 0; !failed && i < n_more; i++) {
        failed = llama_decode(ctx, batch) != 0;
        if (failed) break;
        token = llama_sampler_sample(likeliest, ctx, -1);
        if (llama_vocab_is_eog(vocab, token)) break;
        print_token(vocab, token);
        batch = llama_batch_get_one(&token, 1);
    }
    putchar('\n');
    llama_sampler_free(likeliest);
    return failed;
}

static int generate(struct llama_model *model, const char *text, int n_more) {
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    const int32_t n = -llama_tokenize(vocab, text, (int32_t) strlen(text), NULL, 0, true, false);   /* how many there are */
    llama_token *tokens = n > 0 ? malloc((size_t) n*sizeof *tokens) : NULL;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = (uint32_t) (n + n_more);
    struct llama_context *ctx = tokens ? llama_init_from_model(model, params) : NULL;
    int failed = 1;
    if (ctx && llama_tokenize(vocab, text, (int32_t) strlen(text), tokens, n, true, false) == n) {
        fputs(text, stdout);
        failed = go_on(ctx, vocab, tokens, n, n_more);
    }
    llama_free(ctx);
    free(tokens);
    return failed;
}

int main(int argc, char **argv) {
    const int n = argc > 3 ? atoi(argv[3]) : 32;
    if (argc < 2 || n < 1 || n > 4096) { fprintf(stderr, "usage: generate MODEL.gguf [TEXT [N]]\n"); return 1; }
    llama_log_set(quiet, NULL);
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    const int failed = model ? generate(model, argc > 2 ? argv[2] : "The moon is", n) : 1;
    if (model) llama_model_free(model);
    return failed;
}
