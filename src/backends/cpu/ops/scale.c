/* SCALE CLAMP FILL LEAKY_RELU: element-wise functions with parameters, in F32, in place where the builder says so. */

#include "rows.h"

typedef void step(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x);

static void each_piece(const struct cpu_task *t, struct ggml_tensor *dst, step *f) {
    const struct ggml_tensor *a = dst->src[0];
    const bool flat = ggml_is_contiguous(a) && ggml_is_contiguous(dst);
    struct span s;
    while (next_span(t, flat ? 1 : n_rows(dst), flat ? ggml_nelements(dst) : dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        const void *const from = row_number(a, r);
        void *const to = row_number(dst, r);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_a[PIECE], buf[PIECE];
            float *const y = row_place(dst, to, i, buf);
            f(t, dst, m, y, row_load(t, a, from, i, m, buf_a));
            row_store(t, dst, to, i, m, y);
        }
    }
}

static void scale(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) {
    const float s = param_f32(dst, 0), b = param_f32(dst, 1);
    if (b == 0.0f) t->k->f.mul1(n, y, x, s);
    else           t->k->f.scale_bias(n, y, x, s, b);
}
/* NaN stays NaN. */
static void clamp(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) {
    (void) t;
    const float lo = param_f32(dst, 0), hi = param_f32(dst, 1);
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] < lo ? lo : x[i];
        y[i] = v > hi ? hi : v;
    }
}
static void leaky_relu(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) {
    (void) t;
    const float slope = param_f32(dst, 0);
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0.0f ? x[i] : slope*x[i];
}
void op_scale     (const struct cpu_task *t, struct ggml_tensor *dst) { each_piece(t, dst, scale); }
void op_clamp     (const struct cpu_task *t, struct ggml_tensor *dst) { each_piece(t, dst, clamp); }
void op_leaky_relu(const struct cpu_task *t, struct ggml_tensor *dst) { each_piece(t, dst, leaky_relu); }

/* The source is not read: its memory may hold anything. */
void op_fill(const struct cpu_task *t, struct ggml_tensor *dst) {
    float v[PIECE];
    for (int i = 0; i < PIECE; i++) v[i] = param_f32(dst, 0);
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        FOR_PIECES(i, m, s.i0, s.i1) row_store(t, dst, row_number(dst, r), i, m, v);
    }
}
