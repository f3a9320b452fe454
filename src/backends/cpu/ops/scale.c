/* SCALE CLAMP FILL LEAKY_RELU: element-wise functions with parameters, in F32, in place where the builder says so. */

#include "rows.h"

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
void op_scale     (const struct cpu_task *t, struct ggml_tensor *dst) { map_pieces(t, dst, scale); }
void op_clamp     (const struct cpu_task *t, struct ggml_tensor *dst) { map_pieces(t, dst, clamp); }
void op_leaky_relu(const struct cpu_task *t, struct ggml_tensor *dst) { map_pieces(t, dst, leaky_relu); }

/* The source is not read: its memory may hold anything. */
void op_fill(const struct cpu_task *t, struct ggml_tensor *dst) {
    float v[PIECE];
    for (int i = 0; i < PIECE; i++) v[i] = param_f32(dst, 0);
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0; r < s.r1; r++) {
        FOR_PIECES(i, m, s.i0, s.i1) row_store(t, dst, row_number(dst, r), i, m, v);
    }
}
