#ifndef SYSTEM_H
#define SYSTEM_H
/* What only the operating system can tell or do: cores, memory, names, waiting for a word in memory to change. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ggml.h"

int      system_cores(void);                        /* cores that affinity and the container's CPU quota leave us, >= 1 */
/* Cores, rounded up, that the CPU quotas of control groups leave, INT_MAX without any: of the groups that a file such as
 * /proc/self/cgroup names, and all above them, under a folder such as /sys/fs/cgroup. */
int      system_quota(const char *groups, const char *folder);
uint64_t system_memory(void);                       /* physical bytes, 0 when unknown */
void     system_cpu_name(char *name, size_t size);  /* "CPU" when unknown */
int      system_numa_nodes(void);                   /* memory nodes, >= 1 */
int      system_numa_node(void);                    /* that of the core the calling thread runs on, 0 when unknown */
long     system_process(void);                      /* a number of the running process */
int64_t  system_now(void);                          /* nanoseconds of a steady clock */

/* Sleeps while *word is `old`; may return early. wake: lets up to n sleepers look at the word again. */
void system_wait(atomic_uint *word, unsigned old);
void system_wake(atomic_uint *word, int n);

/* The calling thread's slice: how long it runs before another that is owed time gets its core; nanoseconds. Short slices are
 * no larger share, but the thread is let in again sooner. Returns what it was; 0: not known, or `ns` is 0, and nothing changed. */
int64_t  system_slice(int64_t ns);

/* For the calling thread: the cores of the mask (none set: leave as is) and a priority; false when refused. */
bool system_place(const bool cores[GGML_MAX_N_THREADS], enum ggml_sched_priority priority);

/* Sets the cores of a list such as "0-3,8,10-11", the system's form, and no others; false when it is none. */
bool system_core_list(const char *text, bool cores[GGML_MAX_N_THREADS]);
/* The cores of a memory node that the calling thread may use; false when there are none. */
bool system_node_cores(int node, bool cores[GGML_MAX_N_THREADS]);
/* Nodes are what this folder says, a tree as the system's: for tests. */
void system_nodes_in(const char *folder);

#endif
