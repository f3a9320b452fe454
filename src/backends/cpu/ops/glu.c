/* GLU: f(x)*g, where x and g are two tensors or the halves of one row. */

#include "rows.h"

static void gate(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x, const float *g) {
    const int op = param_i32(dst, 0);
    const float alpha = param_f32(dst, 2), limit = param_f32(dst, 3);
    switch (op) {
    case GGML_GLU_OP_SWIGLU_OAI:   t->k->f.swiglu_oai(n, y, x, g, alpha, limit); break;
    case GGML_GLU_OP_SWIGLU_CLAMP: t->k->f.swiglu_clamp(n, y, x, g, limit);      break;
    default:                       t->k->f.glu[op](n, y, x, g);
    }
}

bool supports_glu(const struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0];
    return row_readable(a) && ggml_blck_size(a->type) == 1 && row_writable(dst);
}

void op_glu(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1] ? dst->src[1] : a;
    const int64_t half = a == b ? dst->ne[0] : 0;
    const bool swapped = half && param_i32(dst, 1);
    const int64_t x0 = swapped ? half : 0, g0 = swapped ? 0 : half;
    struct span s;
    while (next_span(t, n_rows(dst), dst->ne[0], &s)) for (int64_t r = s.r0, i1, i2, i3; r < s.r1; r++) {
        row_index(dst, r, &i1, &i2, &i3);
        const void *const row_a = row_at(a, i1, i2, i3), *const row_b = row_at(b, i1, i2, i3);
        void *const row = row_at(dst, i1, i2, i3);
        FOR_PIECES(i, m, s.i0, s.i1) {
            float buf_x[PIECE], buf_g[PIECE], buf[PIECE];
            float *const y = row_place(dst, row, i, buf);
            gate(t, dst, m, y, row_load(t, a, row_a, x0 + i, m, buf_x), row_load(t, b, row_b, g0 + i, m, buf_g));
            row_store(t, dst, row, i, m, y);
        }
    }
}
