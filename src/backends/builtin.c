/* The backends of this build, one row each in the order of preference: the only list of them. */

#include "backend_impl.h"
#include "ggml-cpu.h"

static ggml_backend_reg_t (*const builtins[])(void) = {
    ggml_backend_cpu_reg,
};

size_t builtin_count(void) {
    return sizeof builtins/sizeof builtins[0];
}

ggml_backend_reg_t builtin_reg(size_t index) {
    return builtins[index]();
}
