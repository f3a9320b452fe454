#ifndef REFERENCE_H
#define REFERENCE_H
/* The llama and gemma3 models once more, in double precision and plain loops from their papers, on the tensors of a tiny
 * model: what the library's logits are held against. One sequence, from position 0. */

#include "tiny.h"

struct reference {
    const struct tiny *t;
    double rope_base, rope_base_local, rope_scale;      /* rope_scale: of positions, 1/factor */
    double attn_softcap, final_softcap;                 /* 0: none */
    int    n, n_swa, pattern;                           /* tokens; window; 0: none */
};

enum { REF_TOKENS = 96, REF_WIDTH = 128 };

static const struct ggml_tensor *ref_w(const struct reference *r, int il, const char *name) {
    char full[64];
    il < 0 ? snprintf(full, sizeof full, "%s.weight", name) : snprintf(full, sizeof full, "blk.%d.%s.weight", il, name);
    return ggml_get_tensor(r->t->ctx, full);
}

static double ref_at(const struct ggml_tensor *w, int64_t i, int64_t j, int64_t k) {
    const int64_t at = i + w->ne[0]*(j + w->ne[1]*k);
    return w->type == GGML_TYPE_F16 ? (double) ggml_fp16_to_fp32(((const ggml_fp16_t *) w->data)[at])
                                    : (double) ((const float *) w->data)[at];
}

static void ref_linear(const struct ggml_tensor *w, int64_t expert, const double *x, double *y) {
    for (int64_t j = 0; j < w->ne[1]; j++) {
        y[j] = 0;
        for (int64_t i = 0; i < w->ne[0]; i++) y[j] += ref_at(w, i, j, expert)*x[i];
    }
}

static void ref_norm(const struct ggml_tensor *w, const double *x, double *y) {
    double sum = 0;
    for (int64_t i = 0; i < w->ne[0]; i++) sum += x[i]*x[i];
    for (int64_t i = 0; i < w->ne[0]; i++) y[i] = x[i]/sqrt(sum/(double) w->ne[0] + 1e-5)*ref_at(w, i, 0, 0);
}

/* Rotates the d elements of one head; neighbours (llama) or halves (gemma3) are pairs. */
static void ref_rope(const struct reference *r, double *x, int d, double base, double pos, bool halves) {
    const struct ggml_tensor *factors = ref_w(r, -1, "rope_freqs");
    for (int i = 0; i < d/2; i++) {
        const double angle = pos*pow(base, -2.0*i/d)/(factors ? ref_at(factors, i, 0, 0) : 1);
        const int a = halves ? i : 2*i, b = halves ? i + d/2 : 2*i + 1;
        const double x0 = x[a], x1 = x[b];
        x[a] = x0*cos(angle) - x1*sin(angle);
        x[b] = x0*sin(angle) + x1*cos(angle);
    }
}

static double ref_softcap(double x, double cap) { return cap > 0 ? cap*tanh(x/cap) : x; }

static void ref_attend(const struct reference *r, bool local, int at, int d, const double *q, double k[][REF_WIDTH],
                       double v[][REF_WIDTH], int offset, double *y) {
    double score[REF_TOKENS], sum = 0, top = -1e300;
    const int from = local && at - r->n_swa + 1 > 0 ? at - r->n_swa + 1 : 0;
    for (int j = from; j <= at; j++) {
        double dot = 0;
        for (int i = 0; i < d; i++) dot += q[i]*k[j][offset + i];
        score[j] = ref_softcap(dot/sqrt(d), r->attn_softcap);
        if (score[j] > top) top = score[j];
    }
    for (int j = from; j <= at; j++) sum += score[j] = exp(score[j] - top);
    for (int i = 0; i < d; i++) {
        y[i] = 0;
        for (int j = from; j <= at; j++) y[i] += score[j]/sum*v[j][offset + i];
    }
}

static void ref_attention(const struct reference *r, int il, double x[][REF_WIDTH], double y[][REF_WIDTH]) {
    static double q[REF_TOKENS][REF_WIDTH], k[REF_TOKENS][REF_WIDTH], v[REF_TOKENS][REF_WIDTH];
    const struct tiny_shape *s = &r->t->shape;
    const int d = s->n_embd/s->n_head;
    const bool gemma = !strcmp(s->arch, "gemma3"), local = r->n_swa && il % r->pattern != r->pattern - 1;
    for (int t = 0; t < r->n; t++) {
        ref_linear(ref_w(r, il, "attn_q"), 0, x[t], q[t]);
        ref_linear(ref_w(r, il, "attn_k"), 0, x[t], k[t]);
        ref_linear(ref_w(r, il, "attn_v"), 0, x[t], v[t]);
        for (int h = 0; h < s->n_head + s->n_head_kv; h++) {
            const bool query = h < s->n_head;
            double *head = query ? q[t] + h*d : k[t] + (h - s->n_head)*d;
            if (gemma) ref_norm(ref_w(r, il, query ? "attn_q_norm" : "attn_k_norm"), head, head);
            ref_rope(r, head, d, local ? r->rope_base_local : r->rope_base, local ? t : t*r->rope_scale, gemma);
        }
    }
    for (int t = 0; t < r->n; t++) {
        double out[REF_WIDTH];
        for (int h = 0; h < s->n_head; h++) {
            ref_attend(r, local, t, d, q[t] + h*d, k, v, h/(s->n_head/s->n_head_kv)*d, out + h*d);
        }
        ref_linear(ref_w(r, il, "attn_output"), 0, out, y[t]);
    }
}

static double ref_act(bool gelu, double x) {
    return gelu ? 0.5*x*(1 + tanh(sqrt(2/3.14159265358979323846)*x*(1 + 0.044715*x*x))) : x/(1 + exp(-x));
}

static void ref_gated(const struct reference *r, int il, const char *suffix, int64_t expert, const double *x,
                      double *y) {
    double gate[REF_WIDTH], up[REF_WIDTH];
    char name[32];
    const struct ggml_tensor *w[3];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "ffn_%s%s", (const char *[]) { "gate", "up", "down" }[i], suffix);
        w[i] = ref_w(r, il, name);
    }
    ref_linear(w[0], expert, x, gate);
    ref_linear(w[1], expert, x, up);
    for (int i = 0; i < r->t->shape.n_ff; i++) gate[i] = ref_act(!strcmp(r->t->shape.arch, "gemma3"), gate[i])*up[i];
    ref_linear(w[2], expert, gate, y);
}

static void ref_experts(const struct reference *r, int il, const double *x, double *y) {
    double p[REF_WIDTH], part[REF_WIDTH], sum = 0;
    const struct tiny_shape *s = &r->t->shape;
    int chosen[16];
    ref_linear(ref_w(r, il, "ffn_gate_inp"), 0, x, p);
    for (int i = 0; i < s->n_expert; i++) p[i] = exp(p[i]);
    for (int u = 0; u < s->n_used; u++) {
        chosen[u] = -1;
        for (int i = 0; i < s->n_expert; i++) {
            bool taken = false;
            for (int j = 0; j < u; j++) taken |= chosen[j] == i;
            if (!taken && (chosen[u] < 0 || p[i] > p[chosen[u]])) chosen[u] = i;
        }
        sum += p[chosen[u]];
    }
    memset(y, 0, sizeof(double)*(size_t) s->n_embd);
    for (int u = 0; u < s->n_used; u++) {
        ref_gated(r, il, "_exps", chosen[u], x, part);
        for (int i = 0; i < s->n_embd; i++) y[i] += p[chosen[u]]/sum*part[i];
    }
}

/* logits[i*n_vocab + v] of every position. */
static void ref_logits(const struct reference *r, const llama_token *tokens, double *logits) {
    static double x[REF_TOKENS][REF_WIDTH], y[REF_TOKENS][REF_WIDTH], z[REF_TOKENS][REF_WIDTH];
    const struct tiny_shape *s = &r->t->shape;
    const bool gemma = !strcmp(s->arch, "gemma3");
    for (int t = 0; t < r->n; t++) {
        for (int i = 0; i < s->n_embd; i++) x[t][i] = ref_at(ref_w(r, -1, "token_embd"), i, tokens[t],
                                                             0)*(gemma ? sqrt(s->n_embd) : 1);
    }
    for (int il = 0; il < s->n_layer; il++) {
        for (int t = 0; t < r->n; t++) ref_norm(ref_w(r, il, "attn_norm"), x[t], y[t]);
        ref_attention(r, il, y, z);
        for (int t = 0; t < r->n; t++) {
            if (gemma) ref_norm(ref_w(r, il, "post_attention_norm"), z[t], z[t]);
            for (int i = 0; i < s->n_embd; i++) x[t][i] += z[t][i];
            ref_norm(ref_w(r, il, "ffn_norm"), x[t], y[t]);
            s->n_expert ? ref_experts(r, il, y[t], z[t]) : ref_gated(r, il, "", 0, y[t], z[t]);
            if (gemma) ref_norm(ref_w(r, il, "post_ffw_norm"), z[t], z[t]);
            for (int i = 0; i < s->n_embd; i++) x[t][i] += z[t][i];
        }
    }
    for (int t = 0; t < r->n; t++) {
        double *out = logits + (size_t) t*TINY_VOCAB;
        ref_norm(ref_w(r, -1, "output_norm"), x[t], y[t]);
        ref_linear(ref_w(r, -1, "token_embd"), 0, y[t], out);
        for (int v = 0; v < TINY_VOCAB; v++) out[v] = ref_softcap(out[v], r->final_softcap);
    }
}

#endif
