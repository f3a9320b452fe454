#ifndef MACHINE_H
#define MACHINE_H
/* What plain C cannot say about the processor: the spin hint and the feature registers. The one place of the CPU backend
 * that knows compilers apart. */

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#define MACHINE_X86 1
static inline void machine_relax(void) { __asm__ volatile("pause" ::: "memory"); }

struct cpuid { uint32_t a, b, c, d; };
static inline struct cpuid machine_cpuid(uint32_t leaf, uint32_t sub) {
    struct cpuid r;
    __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(sub));
    return r;
}
/* Which register files the operating system saves (XCR0); only where cpuid says OSXSAVE. */
static inline uint64_t machine_xgetbv(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t) high << 32 | low;
}
#elif defined(__aarch64__)
#define MACHINE_ARM64 1
static inline void machine_relax(void) { __asm__ volatile("yield" ::: "memory"); }
#else
static inline void machine_relax(void) { }
#endif

#endif
