#ifndef OPT_H
#define OPT_H
/* What the files of ggml-opt.h share. */

#include "arenite.h"
#include "core.h"
#include "ggml-opt.h"

/* opt.c */
uint64_t opt_random(ggml_opt_context_t opt);        /* the next 64 bits of the context's generator */

/* result.c */
struct opt_batch {
    int64_t        n;                               /* points */
    double         loss;
    bool           per_point;                       /* the loss is a mean, not a sum */
    int64_t        n_correct;                       /* -1: no predictions */
    const struct ggml_tensor *pred;                 /* I32 [n] or NULL */
};
/* Room for the predictions of n more points; false, with nothing changed, when out of memory. NULL: true. */
bool result_reserve(ggml_opt_result_t result, int64_t n);
bool result_add(ggml_opt_result_t result, const struct opt_batch *batch);

#endif
