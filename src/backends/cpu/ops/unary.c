/* UNARY, SQR SQRT LOG SIN COS: element-wise functions in F32, rounded once to the type of the result, for operands
 * of any layout, in place where the builder or the planner says so. */

#include "rows.h"

static void unary(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) {
    t->k->f.unary[param_i32(dst, 0)](n, y, x);
}
static void xielu(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) {
    t->k->f.xielu(n, y, x, param_f32(dst, 1), param_f32(dst, 2), param_f32(dst, 3), param_f32(dst, 4));
}
void op_unary(const struct cpu_task *t, struct ggml_tensor *dst) {
    map_pieces(t, dst, param_i32(dst, 0) == GGML_UNARY_OP_XIELU ? xielu : unary);
}

#define MAP(name) \
    static void name##_piece(const struct cpu_task *t, const struct ggml_tensor *dst, int64_t n, float *y, const float *x) { \
        (void) dst; \
        t->k->f.name(n, y, x); \
    } \
    void op_##name(const struct cpu_task *t, struct ggml_tensor *dst) { map_pieces(t, dst, name##_piece); }
MAP(sqr)
MAP(sqrt)
MAP(log)
MAP(sin)
MAP(cos)
