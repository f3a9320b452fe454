/* Adds the emulated AVX-512 kernels to the levels that tests walk over, and puts them in force; linked with --wrap of three
 * functions of cpu.h. WITH_VNNI: with the integer kernels of VNNI on top. */

#include "cpu.h"
#include "kernels.h"

bool __real_cpu_level_present(enum cpu_level level);
bool __wrap_cpu_level_present(enum cpu_level level);
const struct cpu_kernels *__real_cpu_kernels_at(enum cpu_level level);
const struct cpu_kernels *__wrap_cpu_kernels_at(enum cpu_level level);
const struct cpu_kernels *__wrap_cpu_kernels(void);

bool __wrap_cpu_level_present(enum cpu_level level) {
    return __real_cpu_level_present(level == CPU_AVX512 ? CPU_AVX2 : level);
}

/* The table at AVX2 with the emulated kernels laid over it; filled again each time, since programs with threads ask for it
 * before they start them. */
static const struct cpu_kernels *emulated(void) {
    static struct cpu_kernels table;
    table = *__real_cpu_kernels_at(CPU_AVX2);
    float_kernels_emulated(&table.f);
    quant_kernels_emulated(&table.q);
#ifdef WITH_VNNI
    quant_kernels_emulated_vnni(&table.q);
#endif
    return &table;
}

const struct cpu_kernels *__wrap_cpu_kernels_at(enum cpu_level level) {
    return level == CPU_AVX512 && __real_cpu_level_present(CPU_AVX2) ? emulated() : __real_cpu_kernels_at(level);
}

const struct cpu_kernels *__wrap_cpu_kernels(void) { return __wrap_cpu_kernels_at(CPU_AVX512); }
