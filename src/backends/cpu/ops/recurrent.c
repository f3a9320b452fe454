/* SSM_CONV SSM_SCAN RWKV_WKV6 RWKV_WKV7 GATED_LINEAR_ATTN GATED_DELTA_NET: a state carried from token to token.
 * Heads (and rows of a state) are independent, so each is one chunk that walks its tokens in order. */

#include "rows.h"

#include <math.h>
#include <string.h>

bool supports_recurrent(const struct ggml_tensor *dst) {
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        if (dst->src[s] && dst->src[s]->type != GGML_TYPE_I32 && !row_direct(dst->src[s])) return false;
    }
    return true;
}
static float *floats(const struct ggml_tensor *t) { return t->data; }

/* ---- state-space models (Gu and Dao 2023, "Mamba"; Dao and Gu 2024, "Mamba-2") --------------------------------------- */

void op_ssm_conv(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *x = dst->src[0], *c = dst->src[1];
    int64_t r0, r1;
    while (next_rows(t, n_rows(dst), dst->ne[0]*c->ne[0], &r0, &r1)) for (int64_t r = r0, i1, i2, i3; r < r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);               /* token i1 of sequence i2 */
        float *const y = row_at(dst, i1, i2, i3);
        for (int64_t i = 0; i < dst->ne[0]; i++) {
            const float *const window = (const float *) row_at(x, i, i2, 0) + i1, *const weights = row_at(c, i, 0, 0);
            float sum = 0.0f;
            for (int64_t k = 0; k < c->ne[0]; k++) sum += window[k]*weights[k];
            y[i] = sum;
        }
    }
}

/* The scan of one row of one head's state: d_state floats, over all tokens of a sequence. */
struct scan {
    const struct ggml_tensor *x, *dt, *A, *B, *C;
    float  *y, *state;                          /* outputs as x, packed; the newest state of this row */
    size_t  snapshot;                           /* floats from a state to the one a token older */
    int64_t d, h, seq, n, K;                    /* row, head, sequence, tokens, states kept */
};

static void scan_row(const struct cpu_task *t, const struct scan *s, float *decay) {
    const int64_t n_state = s->B->ne[0], group = s->h/(s->x->ne[1]/s->B->ne[1]);
    const float *const a = row_at(s->A, s->h, 0, 0);
    for (int64_t i = 0; i < s->n; i++) {
        const float *const b = row_at(s->B, group, i, s->seq), *const c = row_at(s->C, group, i, s->seq);
        float delta = ((const float *) row_at(s->dt, i, s->seq, 0))[s->h];
        t->k->f.unary[GGML_UNARY_OP_SOFTPLUS](1, &delta, &delta);
        const float x = ((const float *) row_at(s->x, s->h, i, s->seq))[s->d]*delta;
        t->k->f.mul1(s->A->ne[0], decay, a, delta);
        t->k->f.unary[GGML_UNARY_OP_EXP](s->A->ne[0], decay, decay);
        if (s->A->ne[0] == 1) t->k->f.mul1(n_state, s->state, s->state, decay[0]);
        else                  t->k->f.mul(n_state, s->state, s->state, decay);
        t->k->f.axpy(n_state, s->state, b, x);
        s->y[s->d + s->x->ne[0]*(s->h + s->x->ne[1]*(i + s->n*s->seq))] = t->k->f.dot_f32(n_state, s->state, c);
        const int64_t age = s->n - 1 - i;
        if (age == 0 || age >= s->K) continue;
        memcpy(s->state + (size_t) age*s->snapshot, s->state, (size_t) n_state*sizeof *s->state);
    }
}

size_t scratch_ssm_scan(const struct ggml_tensor *dst, int n_threads) {
    return row_bytes(dst->src[0])*(size_t) n_threads;
}

void op_ssm_scan(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *s = dst->src[0], *x = dst->src[1], *ids = dst->src[6];
    const int64_t n_state = s->ne[0], dims = s->ne[1], heads = s->ne[2], seqs = x->ne[3];
    float *const states = floats(dst) + ggml_nelements(x);
    float *const decay = (float *) (void *) ((char *) t->scratch + row_bytes(s)*(size_t) t->ith);
    int64_t chunk;
    while (task_chunk(t, heads*seqs, &chunk)) {
        struct scan scan = {
            .x = x, .dt = dst->src[2], .A = dst->src[3], .B = dst->src[4], .C = dst->src[5], .y = floats(dst),
            .snapshot = (size_t) (n_state*dims*heads*seqs), .h = chunk % heads, .seq = chunk/heads, .n = x->ne[2],
            .K = param_i32(dst, 0),
        };
        const int64_t id = index_at(ids, scan.seq, 0, 0);
        if (id < 0 || id >= s->ne[3]) {
            task_fail(t, dst, "state %lld of %lld", (long long) id, (long long) s->ne[3]);
            return;
        }
        for (scan.d = 0; scan.d < dims; scan.d++) {
            scan.state = states + n_state*(scan.d + dims*(scan.h + heads*scan.seq));
            memcpy(scan.state, row_at(s, scan.d, scan.h, id), (size_t) n_state*sizeof *states);
            scan_row(t, &scan, decay);
        }
    }
}

/* ---- linear attention: a state S x S for each head; outputs, then states ---------------------------------------------
 * A chunk is a head of a sequence. Operands are packed [S, H, T], so head h of token i begins at (i*H + h)*S. */

struct head { int64_t S, H, from, to, h; float *state; };       /* tokens from .. to-1 */

typedef void head_kernel(const struct cpu_task *t, struct ggml_tensor *dst, const struct head *head);

static void each_head(const struct cpu_task *t, struct ggml_tensor *dst, const struct ggml_tensor *state,
    head_kernel *f) {
    const struct ggml_tensor *k = dst->src[0];
    const int64_t S = k->ne[0], H = k->ne[1], T = k->ne[2], n_seqs = state->ne[1];
    int64_t chunk;
    while (task_chunk(t, H*n_seqs, &chunk)) {
        const int64_t seq = chunk/H, n = T/n_seqs;
        const struct head head = { S, H, seq*n, (seq + 1)*n, chunk % H, floats(dst) + S*H*T + chunk*S*S };
        memcpy(head.state, floats(state) + chunk*S*S, (size_t) (S*S)*sizeof(float));
        f(t, dst, &head);
    }
}

/* Peng et al. 2024, "Eagle and Finch": y_j = sum over i of r_i*(tf_i*k_i*v_j + M_ij), then M_ij = M_ij*td_i + k_i*v_j. */
static void wkv6_head(const struct cpu_task *t, struct ggml_tensor *dst, const struct head *head) {
    const int64_t S = head->S;
    const float *const bonus = floats(dst->src[3]) + head->h*S;
    for (int64_t i = head->from; i < head->to; i++) {
        const int64_t at = (i*head->H + head->h)*S;
        const float *const k = floats(dst->src[0]) + at, *const v     = floats(dst->src[1]) + at;
        const float *const r = floats(dst->src[2]) + at, *const decay = floats(dst->src[4]) + at;
        float *const y = floats(dst) + at;
        memset(y, 0, (size_t) S*sizeof *y);
        for (int64_t j = 0; j < S; j++) {
            float *const m = head->state + j*S;
            t->k->f.axpy(S, y, m, r[j]);
            t->k->f.axpy(S, y, v, r[j]*bonus[j]*k[j]);
            t->k->f.mul1(S, m, m, decay[j]);
            t->k->f.axpy(S, m, v, k[j]);
        }
    }
}
void op_rwkv_wkv6(const struct cpu_task *t, struct ggml_tensor *dst) { each_head(t, dst, dst->src[5], wkv6_head); }

/* Yang et al. 2023, "Gated linear attention": M_ij = M_ij*g_i + k_i*v_j, then y_j = scale*sum over i of q_i*M_ij. */
static void gated_head(const struct cpu_task *t, struct ggml_tensor *dst, const struct head *head) {
    const int64_t S = head->S;
    const float scale = param_f32(dst, 0);
    for (int64_t i = head->from; i < head->to; i++) {
        const int64_t at = (i*head->H + head->h)*S;
        const float *const k = floats(dst->src[0]) + at, *const v    = floats(dst->src[1]) + at;
        const float *const q = floats(dst->src[2]) + at, *const gate = floats(dst->src[3]) + at;
        float *const y = floats(dst) + at;
        memset(y, 0, (size_t) S*sizeof *y);
        for (int64_t j = 0; j < S; j++) {
            float *const m = head->state + j*S;
            t->k->f.mul1(S, m, m, gate[j]);
            t->k->f.axpy(S, m, v, k[j]);
            t->k->f.axpy(S, y, m, q[j]*scale);
        }
    }
}
void op_gated_linear_attn(const struct cpu_task *t, struct ggml_tensor *dst) {
    each_head(t, dst, dst->src[4], gated_head);
}

/* Peng et al. 2025, "RWKV-7": with row i of M the value's: sa = M a, M = M*w + v k + sa b, y = M r. */
static void wkv7_head(const struct cpu_task *t, struct ggml_tensor *dst, const struct head *head) {
    const int64_t S = head->S;
    for (int64_t i = head->from; i < head->to; i++) {
        const int64_t at = (i*head->H + head->h)*S;
        const float *p[6];
        for (int s = 0; s < 6; s++) p[s] = floats(dst->src[s]) + at;
        const float *const r = p[0], *const w = p[1], *const k = p[2], *const v = p[3], *const a = p[4], *const b = p[5];
        for (int64_t j = 0; j < S; j++) {
            float *const m = head->state + j*S;
            const float sa = t->k->f.dot_f32(S, m, a);
            t->k->f.mul(S, m, m, w);
            t->k->f.axpy(S, m, k, v[j]);
            t->k->f.axpy(S, m, b, sa);
            floats(dst)[at + j] = t->k->f.dot_f32(S, m, r);
        }
    }
}
void op_rwkv_wkv7(const struct cpu_task *t, struct ggml_tensor *dst) { each_head(t, dst, dst->src[6], wkv7_head); }

/* ---- gated delta rule (Yang et al. 2024, "Gated delta networks") ------------------------------------------------------ */

struct delta { const float *q, *k, *v, *g; float beta, scale; int64_t S; bool vector; };

/* One token: row j of the state, S floats over the key index, belongs to value j. `decay` has room for S. */
static void delta_token(const struct cpu_task *t, const struct delta *d, float *state, float *y, float *decay) {
    const int64_t S = d->S;
    t->k->f.unary[GGML_UNARY_OP_EXP](d->vector ? S : 1, decay, d->g);
    for (int64_t j = 0; j < S; j++) {
        float *const m = state + j*S;
        if (d->vector) t->k->f.mul(S, m, m, decay);
        else           t->k->f.mul1(S, m, m, decay[0]);
        const float error = (d->v[j] - t->k->f.dot_f32(S, m, d->k))*d->beta;
        t->k->f.axpy(S, m, d->k, error);
        y[j] = t->k->f.dot_f32(S, m, d->q)*d->scale;
    }
}

/* The state of age 0 is the working copy; a token that leaves an older one to be kept copies it to its place. */
static void delta_head(const struct cpu_task *t, struct ggml_tensor *dst, int64_t h, int64_t b, float *decay) {
    const struct ggml_tensor *q = dst->src[0], *k = dst->src[1], *v = dst->src[2], *g = dst->src[3], *beta = dst->src[4];
    const int64_t S = v->ne[0], H = v->ne[1], T = v->ne[2], B = v->ne[3], K = param_i32(dst, 0);
    float *const out = floats(dst), *const states = out + S*H*T*B, *const state = states + (b*H + h)*S*S;
    const size_t bytes = (size_t) (S*S)*sizeof *state;
    memcpy(state, floats(dst->src[5]) + (b*H + h)*S*S, bytes);
    for (int64_t i = 0; i < T; i++) {
        const int64_t hk = h % q->ne[1], bk = b/(B/q->ne[3]);
        const struct delta d = {
            .q = row_at(q, hk, i, bk), .k = row_at(k, hk, i, bk), .v = row_at(v, h, i, b), .g = row_at(g, h, i, b),
            .beta = *(const float *) row_at(beta, h, i, b), .scale = 1.0f/sqrtf((float) S), .S = S,
            .vector = g->ne[0] == S && S > 1,
        };
        delta_token(t, &d, state, out + ((b*T + i)*H + h)*S, decay);
        const int64_t age = T - 1 - i;
        if (age > 0 && age < K) memcpy(state + age*S*S*H*B, state, bytes);
    }
}

size_t scratch_gated_delta_net(const struct ggml_tensor *dst, int n_threads) {
    return row_bytes(dst->src[2])*(size_t) n_threads;
}

void op_gated_delta_net(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *v = dst->src[2];
    float *const decay = (float *) (void *) ((char *) t->scratch + row_bytes(v)*(size_t) t->ith);
    int64_t chunk;
    while (task_chunk(t, v->ne[1]*v->ne[3], &chunk)) delta_head(t, dst, chunk % v->ne[1], chunk/v->ne[1], decay);
}
