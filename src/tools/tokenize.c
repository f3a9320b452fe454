/* tokenize and logits: what the model sees of a text, and what it expects next. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

static cJSON *token_array(const llama_token *tokens, int n) { return cJSON_CreateIntArray(tokens, n); }

/* Its text as the vocabulary has it, and the end of the line. */
static void put_token(const struct session *s, llama_token token) {
    text_put(stdout, llama_vocab_get_text(s->vocab, token), TEXT_MAX);
    putchar('\n');
}

int command_tokenize(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    const char *text = NULL, *file = NULL;
    bool plain = false;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "TEXT",    ARG_TEXT, &text,  "[TEXT]", "the text (default: from stdin)", 0, 0 },
        { "-f",      ARG_TEXT, &file,  "FILE",   "read the text from a file", 0, 0 },
        { "--plain", ARG_FLAG, &plain, NULL,     "treat special tokens as text", 0, 0 },
        { "--verbose", ARG_FLAG, &m.verbose, NULL, "show what the library logs", 0, 0 },
        ARG_JSON(m), ARG_END };
    int status, n;
    if (!args_read("tokenize", "Show the token ids of a text.", args, argc, argv, &status)) return status;
    char *read = text_choose("tokenize", "TEXT", text, file, &status);
    if (!read) return status;
    struct session s;
    if (session_open(&s, &m, false)) {
        llama_token *tokens = session_tokenize(&s, read, !plain, &n);
        if (tokens && m.json) {
            cJSON *o = cJSON_CreateObject();
            cJSON_AddItemToObject(o, "tokens", token_array(tokens, n));
            status = print_json(o);
        } else if (tokens) {
            for (int i = 0; i < n; i++) { printf("%7d  ", tokens[i]); put_token(&s, tokens[i]); }
            status = 0;
        }
        free(tokens);
        session_close(&s);
    }
    free(read);
    return status;
}

struct ranked { float logit; int id; };

static int by_logit(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    return x->logit < y->logit ? 1 : x->logit > y->logit ? -1 : x->id - y->id;
}

static int print_top(const struct session *s, const llama_token *tokens, int n, int top, bool json) {
    const float *logits = llama_get_logits_ith(s->ctx, -1);
    struct ranked *r = malloc((size_t) s->n_vocab*sizeof *r);
    if (!r || !logits) { free(r); return fail("out of memory"); }
    for (int i = 0; i < s->n_vocab; i++) {
        if (isnan(logits[i])) { free(r); return fail("the model's logits are not numbers"); }
        r[i] = (struct ranked) { logits[i], i };
    }
    qsort(r, (size_t) s->n_vocab, sizeof *r, by_logit);
    if (top > s->n_vocab) top = s->n_vocab;
    int status = 0;
    if (json) {
        cJSON *o = cJSON_CreateObject(), *list = cJSON_CreateArray();
        cJSON_AddItemToObject(o, "tokens", token_array(tokens, n));
        for (int i = 0; i < top; i++) {
            cJSON *pair = cJSON_CreateArray();
            cJSON_AddItemToArray(pair, cJSON_CreateNumber(r[i].id));
            cJSON_AddItemToArray(pair, cJSON_CreateNumber(r[i].logit));
            cJSON_AddItemToArray(list, pair);
        }
        cJSON_AddItemToObject(o, "top", list);
        status = print_json(o);
    } else {
        for (int i = 0; i < top; i++) { printf("%7d  %9.4f  ", r[i].id, (double) r[i].logit); put_token(s, r[i].id); }
    }
    free(r);
    return status;
}

/* One row of logits as little-endian F32. */
static bool write_row(FILE *f, const float *row, int n) {
    unsigned char buf[4*256];
    for (int i = 0; i < n; i += 256) {
        const int part = n - i < 256 ? n - i : 256;
        for (int j = 0; j < part; j++) {
            uint32_t u;
            memcpy(&u, row + i + j, 4);
            for (int b = 0; b < 4; b++) buf[4*j + b] = (unsigned char) (u >> 8*b);
        }
        if (fwrite(buf, 4, (size_t) part, f) < (size_t) part) return false;
    }
    return true;
}

static bool decode_all(struct session *s, const llama_token *tokens, int n, FILE *out) {
    for (int done = 0; done < n; ) {
        const int part = n - done < s->n_batch ? n - done : s->n_batch;
        if (!session_decode(s, tokens + done, part, out != NULL)) return false;
        for (int i = 0; out && i < part; i++) {
            if (!write_row(out, llama_get_logits_ith(s->ctx, i), s->n_vocab)) return false;
        }
        done += part;
    }
    return true;
}

int command_logits(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT;
    const char *text = NULL, *file = NULL, *path = NULL;
    int64_t top = 10;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "-p",    ARG_TEXT, &text, "TEXT", "the prompt, raw: the model's own rule for the first token, special tokens parsed", 0, 0 },
        { "-f",    ARG_TEXT, &file, "FILE", "read the prompt from a file (default: from stdin)", 0, 0 },
        { "--top", ARG_INT,  &top,  "K",    "show the K likeliest next tokens (default: 10)", 1, 1 << 24 },
        { "--out", ARG_TEXT, &path, "FILE", "write all logits, little-endian F32, [tokens x vocabulary]", 0, 0 },
        ARG_COMMON(m), ARG_ADAPTERS(m), ARG_JSON(m), ARG_END };
    int status, n = 0;
    if (!args_read("logits", "Show the likeliest next tokens after a prompt.", args, argc, argv, &status)) return status;
    char *read = text_choose("logits", "-p", text, file, &status);
    if (!read) return status;
    struct session s;
    if (session_open(&s, &m, true)) {
        llama_token *tokens = session_tokenize(&s, read, true, &n);
        struct output out = { NULL, NULL, NULL };
        if (tokens && n == 0) fail("the prompt has no tokens");
        else if (tokens && n > s.n_ctx) fail("the prompt has %d tokens, the context only %d (-c sets its size)", n, s.n_ctx);
        else if (tokens && (!path || output_open(&out, path))) {
            bool ok = decode_all(&s, tokens, n, out.file);
            if (path) ok = output_close(&out, ok);
            if (ok) status = print_top(&s, tokens, n, (int) top, m.json);
        }
        free(tokens);
        session_close(&s);
    }
    free(read);
    return status;
}
