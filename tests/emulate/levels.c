/* Adds the emulated AVX-512 kernels to the levels that tests walk over; linked with --wrap of two functions of cpu.h. */

#include "cpu.h"
#include "kernels.h"

bool __real_cpu_level_present(enum cpu_level level);
bool __wrap_cpu_level_present(enum cpu_level level);
const struct cpu_kernels *__real_cpu_kernels_at(enum cpu_level level);
const struct cpu_kernels *__wrap_cpu_kernels_at(enum cpu_level level);

bool __wrap_cpu_level_present(enum cpu_level level) {
    return __real_cpu_level_present(level == CPU_AVX512 ? CPU_AVX2 : level);
}

const struct cpu_kernels *__wrap_cpu_kernels_at(enum cpu_level level) {
    static struct cpu_kernels table;
    if (level != CPU_AVX512 || !__real_cpu_level_present(CPU_AVX2)) return __real_cpu_kernels_at(level);
    table = *__real_cpu_kernels_at(CPU_AVX2);
    float_kernels_emulated(&table.f);
    quant_kernels_emulated(&table.q);
    return &table;
}
