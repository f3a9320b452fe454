#ifndef CPU_FEATURES_H
#define CPU_FEATURES_H
/* What the processor can do and the operating system lets us use, found once (levels.c). */

#include <stdbool.h>

struct cpu_features {
#define FEATURE(name) bool name;
#include "cpu_features.def"
#undef FEATURE
    bool avx512bw, avx512dq, avx512vl;
};

const struct cpu_features *cpu_features(void);

#endif
