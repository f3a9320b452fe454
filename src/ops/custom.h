#ifndef CUSTOM_H
#define CUSTOM_H
/* What op_params of a MAP_CUSTOM or CUSTOM node hold: the callback, how many tasks it asks for, its user data. */

#include "ggml.h"

#include <string.h>

struct custom_call {
    void (*fun)(void);                  /* the callback, in the type that the op names */
    int    n_tasks;                     /* > 0 or GGML_N_TASKS_MAX */
    void  *userdata;
};
_Static_assert(sizeof(struct custom_call) <= GGML_MAX_OP_PARAMS, "the call fits the op's parameters");

static inline struct custom_call custom_call_of(const struct ggml_tensor *t) {
    struct custom_call c;
    memcpy(&c, t->op_params, sizeof c);
    return c;
}

#endif
