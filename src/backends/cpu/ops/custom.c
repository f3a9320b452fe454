/* MAP_CUSTOM1 MAP_CUSTOM2 MAP_CUSTOM3 CUSTOM: the program's own callbacks. A callback is entered by the first n_tasks workers
 * of the run (all of them for GGML_N_TASKS_MAX or if they are fewer), each with its number and theirs. */

#include "cpu.h"
#include "custom.h"

/* Whether this worker calls, and how many do. */
static bool takes_part(const struct cpu_task *t, int n_tasks, int *n) {
    *n = n_tasks == GGML_N_TASKS_MAX || n_tasks > t->nth ? t->nth : n_tasks;
    return t->ith < *n;
}

void op_map_custom1(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct custom_call c = custom_call_of(dst);
    int n;
    if (takes_part(t, c.n_tasks, &n)) ((ggml_custom1_op_t) c.fun)(dst, dst->src[0], t->ith, n, c.userdata);
}
void op_map_custom2(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct custom_call c = custom_call_of(dst);
    int n;
    if (takes_part(t, c.n_tasks, &n)) ((ggml_custom2_op_t) c.fun)(dst, dst->src[0], dst->src[1], t->ith, n, c.userdata);
}
void op_map_custom3(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct custom_call c = custom_call_of(dst);
    int n;
    if (takes_part(t, c.n_tasks, &n)) {
        ((ggml_custom3_op_t) c.fun)(dst, dst->src[0], dst->src[1], dst->src[2], t->ith, n, c.userdata);
    }
}
void op_custom(const struct cpu_task *t, struct ggml_tensor *dst) {
    const struct custom_call c = custom_call_of(dst);
    int n;
    if (takes_part(t, c.n_tasks, &n)) ((ggml_custom_op_t) c.fun)(dst, t->ith, n, c.userdata);
}
