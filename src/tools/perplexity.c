/* perplexity: how well a model predicts a text, and how far its predictions are from another model's.
 *
 * The text is cut into windows of the context's size, each begun anew with the model's first token; in each window the second
 * half is scored, so that every scored token has at least half a window before it. With a second model the mean over the same
 * positions of KL(other || model) = sum p log(p/q) is given, p the other model's probabilities. Sums are in double. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tool.h"

struct scores { double nll, nll_sq, kl, kl_max; int64_t n, same_top; };

static double log_sum_exp(const float *x, int n, int *top) {
    int best = 0;
    for (int i = 1; i < n; i++) if (x[i] > x[best]) best = i;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double) x[i] - (double) x[best]);
    *top = best;
    return (double) x[best] + log(sum);
}

static void score_row(struct scores *sc, const float *q, const float *p, int n, llama_token next) {
    int top_q, top_p;
    const double lq = log_sum_exp(q, n, &top_q), nll = lq - (double) q[next];
    sc->nll += nll;
    sc->nll_sq += nll*nll;
    sc->n++;
    if (!p) return;
    const double lp = log_sum_exp(p, n, &top_p);
    double kl = 0;
    for (int i = 0; i < n; i++) {
        const double log_p = (double) p[i] - lp;
        kl += exp(log_p)*(log_p - ((double) q[i] - lq));
    }
    sc->kl += kl;
    if (kl > sc->kl_max) sc->kl_max = kl;
    sc->same_top += top_p == top_q;
}

/* One window: decode it in steps on both models, scoring rows from n/2 on. */
static bool score_window(struct session *s, struct session *other, const llama_token *tokens, int n, struct scores *sc) {
    session_rewind(s, 0);
    if (other) session_rewind(other, 0);
    for (int done = 0; done < n; ) {
        const int part = n - done < s->n_batch ? n - done : s->n_batch;
        if (!session_decode(s, tokens + done, part, true)) return false;
        if (other && !session_decode(other, tokens + done, part, true)) return false;
        for (int i = 0; i < part; i++) {
            const int at = done + i;
            if (at < n/2 || at + 1 >= n) continue;
            score_row(sc, llama_get_logits_ith(s->ctx, i), other ? llama_get_logits_ith(other->ctx, i) : NULL, s->n_vocab, tokens[at + 1]);
        }
        done += part;
    }
    return true;
}

static int report(const struct scores *sc, bool against, bool json) {
    const double n = (double) sc->n, mean = sc->nll/n, var = sc->n > 1 ? (sc->nll_sq/n - mean*mean)/(n - 1) : 0;
    const double ppl = exp(mean), error = ppl*sqrt(var > 0 ? var : 0);
    if (json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "tokens", n);
        cJSON_AddNumberToObject(o, "mean_nll", mean);
        cJSON_AddNumberToObject(o, "perplexity", ppl);
        cJSON_AddNumberToObject(o, "stderr", error);
        if (against) {
            cJSON_AddNumberToObject(o, "mean_kl", sc->kl/n);
            cJSON_AddNumberToObject(o, "max_kl", sc->kl_max);
            cJSON_AddNumberToObject(o, "same_top", (double) sc->same_top/n);
        }
        return print_json(o);
    }
    printf("perplexity %.4f +- %.4f over %" PRId64 " tokens (mean negative log-likelihood %.5f)\n", ppl, error, sc->n, mean);
    if (against) printf("KL mean %.6f, largest %.6f; same best token %.2f %%\n", sc->kl/n, sc->kl_max, 100*(double) sc->same_top/n);
    return 0;
}

static int measure(struct session *s, struct session *other, const char *text, bool json) {
    int n;
    llama_token *tokens = session_tokenize(s, text, false, &n);
    if (!tokens) return 1;
    struct scores sc = { 0 };
    const llama_token bos = llama_vocab_get_add_bos(s->vocab) ? llama_vocab_bos(s->vocab) : LLAMA_TOKEN_NULL;
    bool ok = true;
    for (int at = 0; ok && at + 1 < n; at += s->n_ctx) {
        const int part = n - at < s->n_ctx ? n - at : s->n_ctx;
        if (at && part < 4) break;
        const llama_token first = tokens[at];
        if (bos != LLAMA_TOKEN_NULL) tokens[at] = bos;      /* every window begins as a text does */
        ok = score_window(s, other, tokens + at, part, &sc);
        tokens[at] = first;
        progress("perplexity", (double) (at + part)/n);
    }
    progress("perplexity", 1);
    free(tokens);
    if (!ok) return 1;
    if (!sc.n) return fail("too little to score: the text has %d tokens, the context %d; wanted at least 3 in each", n, s->n_ctx);
    if (!isfinite(sc.nll) || (other && !isfinite(sc.kl))) return fail("the logits of the models are not numbers");
    return report(&sc, other != NULL, json);
}

int command_perplexity(int argc, char **argv) {
    struct model_args m = MODEL_ARGS_DEFAULT, m2;
    const char *file = NULL, *against = NULL;
    const struct arg args[] = {
        ARG_MODEL(m),
        { "-f",        ARG_TEXT, &file,    "FILE",   "the text (default: from stdin)", 0, 0 },
        { "--against", ARG_TEXT, &against, "MODEL2", "also the mean KL divergence from this model's predictions", 0, 0 },
        ARG_COMMON(m), ARG_ADAPTERS(m), ARG_JSON(m), ARG_END };
    int status;
    if (!args_read("perplexity", "Measure how well a model predicts a text.", args, argc, argv, &status)) return status;
    char *text = text_of_file(file ? file : "-");
    if (!text) return 1;
    if (!m.n_ctx) m.n_ctx = 512;
    m2 = m;
    m2.model = against;
    m2.lora.n = m2.control.n = 0;
    struct session s, other = { 0 };
    status = 1;
    if (session_open(&s, &m, true)) {
        if (!against || session_open(&other, &m2, true)) {
            if (against && other.n_vocab != s.n_vocab) fail("the vocabularies differ: %d and %d tokens", s.n_vocab, other.n_vocab);
            else status = measure(&s, against ? &other : NULL, text, m.json);
            if (against) session_close(&other);
        }
        session_close(&s);
    }
    free(text);
    return status;
}
