/* Which instruction sets this machine can run, and the kernel table at each of them.
 *
 * A table starts as the portable one; each level it contains lays its own kernels over what is there. All levels give the
 * same bits, so which one is in force is a matter of speed only. HAVE_ISA_<name> says what the build compiled. */

#include "cpu.h"
#include "cpu_features.h"
#include "kernels.h"
#include "machine.h"
#include "arenite.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__linux__) && (defined(MACHINE_ARM64) || defined(__arm__))
#include <sys/auxv.h>
#endif

#ifdef MACHINE_X86
static bool bit(uint32_t word, int i) { return word >> i & 1; }

/* Intel SDM vol. 1 ch. 13-15, vol. 2A "CPUID": a set is usable when the processor has it and the system saves its registers. */
static void detect(struct cpu_features *f) {
    const uint32_t last = machine_cpuid(0, 0).a;
    const struct cpuid one = machine_cpuid(1, 0);
    f->sse3  = bit(one.c, 0);
    f->ssse3 = bit(one.c, 9);
    const uint64_t saved = bit(one.c, 27) ? machine_xgetbv() : 0;
    const bool ymm = (saved & 6) == 6, zmm = ymm && (saved & 0xe0) == 0xe0, tiles = (saved >> 17 & 3) == 3;
    f->avx  = ymm && bit(one.c, 28);
    f->fma  = ymm && bit(one.c, 12);
    f->f16c = ymm && bit(one.c, 29);
    if (last < 7) return;
    const struct cpuid seven = machine_cpuid(7, 0);
    const struct cpuid more  = seven.a >= 1 ? machine_cpuid(7, 1) : (struct cpuid) {0};
    f->avx2        = ymm && bit(seven.b, 5);
    f->bmi2        = bit(seven.b, 8);
    f->avx512      = zmm && bit(seven.b, 16);
    f->avx512dq    = zmm && bit(seven.b, 17);
    f->avx512bw    = zmm && bit(seven.b, 30);
    f->avx512vl    = zmm && bit(seven.b, 31);
    f->avx512_vbmi = zmm && bit(seven.c, 1);
    f->avx512_vnni = zmm && bit(seven.c, 11);
    f->avx512_bf16 = zmm && bit(more.a, 5);
    f->avx_vnni    = ymm && bit(more.a, 4);
    f->amx_int8    = tiles && bit(seven.d, 25);
}
#elif defined(MACHINE_ARM64)
static void detect(struct cpu_features *f) {
    f->neon = f->arm_fma = true;                    /* part of the architecture */
#ifdef __linux__
    const unsigned long a = getauxval(AT_HWCAP), b = getauxval(AT_HWCAP2);
    f->fp16_va     = a >> 10 & 1;                   /* HWCAP_ASIMDHP */
    f->dotprod     = a >> 20 & 1;                   /* HWCAP_ASIMDDP */
    f->sve         = a >> 22 & 1;                   /* HWCAP_SVE */
    f->matmul_int8 = b >> 13 & 1;                   /* HWCAP2_I8MM */
    f->sme         = b >> 23 & 1;                   /* HWCAP2_SME */
    f->sme2        = b >> 37 & 1;                   /* HWCAP2_SME2 */
#endif
}
#else
static void detect(struct cpu_features *f) { (void) f; }
#endif

static struct cpu_features features;

/* What this machine can run, by level; each level names what its kernels are compiled for. */
static void machine_levels(bool p[CPU_LEVELS]) {
    const struct cpu_features *f = &features;
    p[CPU_PORTABLE]    = true;
    p[CPU_AVX2]        = f->avx2 && f->fma && f->f16c && f->bmi2;
    p[CPU_AVX512]      = p[CPU_AVX2] && f->avx512 && f->avx512bw && f->avx512dq && f->avx512vl;
    p[CPU_AVX512_VNNI] = p[CPU_AVX512] && f->avx512_vnni;
    p[CPU_NEON]        = f->neon;
    p[CPU_DOTPROD]     = f->neon && f->dotprod;
}

static void portable_floats(struct float_kernels *k) { *k = float_kernels_portable; }
static void portable_quants(struct quant_kernels *k) {
    *k = quant_kernels_portable;
    for (int i = 0; i < GGML_TYPE_COUNT; i++) k->unpack[i] = quant_types[i].unpack, k->pack[i] = quant_types[i].pack;
}

/* One row a level: `floats` and `quants` lay its kernels over a table. Rows stand in the order of enum cpu_level. */
static const struct level {
    const char *name;                               /* NULL: not built */
    void (*floats)(struct float_kernels *k);
    void (*quants)(struct quant_kernels *k);
} levels[CPU_LEVELS] = {
    [CPU_PORTABLE]    = { "portable", portable_floats, portable_quants },
#ifdef HAVE_ISA_avx2
    [CPU_AVX2]        = { "avx2", float_kernels_avx2, quant_kernels_avx2 },
#endif
#ifdef HAVE_ISA_avx512
    [CPU_AVX512]      = { "avx512", float_kernels_avx512, quant_kernels_avx512 },
#endif
#ifdef HAVE_ISA_vnni
    [CPU_AVX512_VNNI] = { "vnni", float_kernels_vnni, quant_kernels_vnni },
#endif
#ifdef HAVE_ISA_neon
    [CPU_NEON]        = { "neon", float_kernels_neon, quant_kernels_neon },
#endif
#ifdef HAVE_ISA_dotprod
    [CPU_DOTPROD]     = { "dotprod", float_kernels_dotprod, quant_kernels_dotprod },
#endif
};

static struct cpu_kernels tables[CPU_LEVELS];
static bool               usable[CPU_LEVELS];
static _Atomic int        in_force, best;
static atomic_bool        ready;

/* Fills the tables once; whoever comes at the same time waits for the lock. */
static void levels_init(void) {
    if (atomic_load_explicit(&ready, memory_order_acquire)) return;
    ggml_critical_section_start();
    if (!atomic_load_explicit(&ready, memory_order_relaxed)) {
        struct cpu_kernels k;
        bool machine[CPU_LEVELS];
        detect(&features);
        machine_levels(machine);
        for (int i = 0; i < CPU_LEVELS; i++) {
            usable[i] = levels[i].name && machine[i];
            if (!usable[i]) continue;
            levels[i].floats(&k.f);
            levels[i].quants(&k.q);
            tables[i] = k;
            best = in_force = i;
        }
        atomic_store_explicit(&ready, true, memory_order_release);
    }
    ggml_critical_section_end();
}

const char *cpu_level_name(enum cpu_level level) {
    return levels[level].name;
}

bool cpu_level_present(enum cpu_level level) {
    levels_init();
    return usable[level];
}

const struct cpu_kernels *cpu_kernels_at(enum cpu_level level) {
    return cpu_level_present(level) ? &tables[level] : NULL;
}

const struct cpu_kernels *cpu_kernels(void) {
    levels_init();
    return &tables[in_force];
}

const struct cpu_features *cpu_features(void) {
    levels_init();
    return &features;
}

const char *arn_cpu_level_name(int i) {
    for (int level = 0; level < CPU_LEVELS && i >= 0; level++) {
        if (cpu_level_present((enum cpu_level) level) && i-- == 0) return levels[level].name;
    }
    return NULL;
}

bool arn_cpu_set_level(const char *name) {
    levels_init();
    for (int level = 0; level < CPU_LEVELS; level++) {
        if (name ? usable[level] && !strcmp(levels[level].name, name) : level == best) {
            in_force = level;
            return true;
        }
    }
    return false;
}

const char *arn_cpu_get_level(void) {
    levels_init();
    return levels[in_force].name;
}
