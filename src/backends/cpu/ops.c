/* The op table of the CPU backend, made of the rows of cpu_ops.def. */

#include "cpu.h"

#define CPU_OP(NAME, tag, sup, scr, who) [GGML_OP_##NAME] = { op_##tag, supports_##sup, scratch_##scr, who },
const struct cpu_op cpu_ops[GGML_OP_COUNT] = {
    [GGML_OP_NONE] = { NULL, supports_any, scratch_none, ONE_THREAD },
#include "cpu_ops.def"
};
#undef CPU_OP

bool supports_any(const struct ggml_tensor *dst) {
    (void) dst;
    return true;
}

size_t scratch_none(const struct ggml_tensor *dst, int n_threads) {
    (void) dst, (void) n_threads;
    return 0;
}

bool cpu_supports(const struct ggml_tensor *dst) {
    if (op_is_view(dst->op)) return true;
    const struct cpu_op *op = &cpu_ops[dst->op];
    return op->run && op->supports(dst);
}
