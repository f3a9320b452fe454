/* The operating system behind names (system.h). On Linux waiting is a futex; elsewhere one lock and one condition for all. */

#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE                                 /* affinity, syscall */
#endif
#include "system.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>

void system_wait(atomic_uint *word, unsigned old) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

void system_wake(atomic_uint *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
#else
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  wait_cond = PTHREAD_COND_INITIALIZER;

void system_wait(atomic_uint *word, unsigned old) {
    pthread_mutex_lock(&wait_lock);
    if (atomic_load(word) == old) pthread_cond_wait(&wait_cond, &wait_lock);
    pthread_mutex_unlock(&wait_lock);
}

void system_wake(atomic_uint *word, int n) {
    (void) word, (void) n;
    pthread_mutex_lock(&wait_lock);
    pthread_cond_broadcast(&wait_cond);
    pthread_mutex_unlock(&wait_lock);
}
#endif

long system_process(void) { return (long) getpid(); }

int64_t system_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t) t.tv_sec*1000000000 + t.tv_nsec;
}

/* The first line of a small file, without its newline; false when there is none. */
static bool first_line(const char *path, char *line, int size) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool ok = fgets(line, size, f) != NULL;
    fclose(f);
    if (ok) line[strcspn(line, "\n")] = 0;
    return ok;
}

/* Cores a quota of `quota` microseconds per `period` is worth, rounded up; INT_MAX without a limit. */
static int quota_cores(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return INT_MAX;
    const long long n = (quota - 1)/period + 1;
    return n < INT_MAX ? (int) n : INT_MAX;
}

/* cgroup v2 at one directory: "max 100000" or "200000 100000". */
static int quota_v2(const char *folder, const char *dir) {
    char path[600], line[64];
    long long quota = 0, period = 0;
    snprintf(path, sizeof path, "%s%s/cpu.max", folder, dir);
    if (!first_line(path, line, sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2) return INT_MAX;
    return quota_cores(quota, period);
}

static int quota_v1(const char *folder, const char *mount, const char *dir) {
    char path[600], line[64];
    long long value[2];
    static const char *const names[2] = { "cpu.cfs_quota_us", "cpu.cfs_period_us" };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s%s/%s", folder, mount, dir, names[i]);
        if (!first_line(path, line, sizeof line) || sscanf(line, "%lld", &value[i]) != 1) return INT_MAX;
    }
    return quota_cores(value[0], value[1]);
}

static int min_int(int a, int b) { return a < b ? a : b; }

/* The least quota on the way from `dir` up to the root of the hierarchy; `v1` names the controller's mount or is NULL. */
static int quota_upwards(const char *folder, const char *v1, char *dir) {
    int n = INT_MAX;
    for (;;) {
        n = min_int(n, v1 ? quota_v1(folder, v1, dir) : quota_v2(folder, dir));
        char *slash = strrchr(dir, '/');
        if (!slash) return n;
        *slash = 0;
    }
}

/* Lines of `groups` are "id:controllers:path"; v2 has id 0 and no controllers. Inside a container the path may
 * be that of the host, so the root of what is mounted counts as well. */
int system_quota(const char *groups, const char *folder) {
    char line[512];
    int n = INT_MAX;
    FILE *f = fopen(groups, "r");
    if (!f) return n;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *dir = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!dir) continue;
        *dir++ = 0, controllers++;
        if (!strcmp(dir, "/")) *dir = 0;
        if (!*controllers)                                                      n = min_int(n, quota_upwards(folder, NULL, dir));
        else if (!strcmp(controllers, "cpu"))                                   n = min_int(n, quota_upwards(folder, "cpu", dir));
        else if (strstr(controllers, "cpu,") || strstr(controllers, ",cpu"))    n = min_int(n, quota_upwards(folder, "cpu,cpuacct", dir));
    }
    fclose(f);
    return n;
}

static int affinity(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int) n;
}

int system_cores(void) {
    const int n = min_int(affinity(), system_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
    return n < 1 ? 1 : n;
}

uint64_t system_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t) pages*(uint64_t) size : 0;
}

void system_cpu_name(char *name, size_t size) {
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *value = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
        if (!value) continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(name, size, "%s", value);
        break;
    }
    if (f) fclose(f);
}

static const char *node_folder = "/sys/devices/system/node";

void system_nodes_in(const char *folder) { node_folder = folder; }

static bool node_list(int node, char *line, int size) {
    char path[512];
    snprintf(path, sizeof path, "%s/node%d/cpulist", node_folder, node);
    return first_line(path, line, size);
}

int system_numa_nodes(void) {
    char line[8];
    int n = 0;
    while (node_list(n, line, sizeof line)) n++;
    return n > 1 ? n : 1;
}

int system_numa_node(void) {
#if defined(SYS_getcpu)
    unsigned cpu, node;
    if (!syscall(SYS_getcpu, &cpu, &node, NULL)) return (int) node;
#endif
    return 0;
}

bool system_core_list(const char *text, bool cores[GGML_MAX_N_THREADS]) {
    memset(cores, 0, GGML_MAX_N_THREADS*sizeof *cores);
    for (char *end;; text = end + 1) {
        const unsigned long from = strtoul(text, &end, 10);
        if (end == text) return false;
        unsigned long to = from;
        if (*end == '-') {
            text = end + 1;
            to = strtoul(text, &end, 10);
            if (end == text || to < from) return false;
        }
        for (unsigned long i = from; i <= to && i < GGML_MAX_N_THREADS; i++) cores[i] = true;
        if (!*end) return true;
        if (*end != ',') return false;
    }
}

bool system_node_cores(int node, bool cores[GGML_MAX_N_THREADS]) {
    bool any = false;
#ifdef __linux__
    char line[4096];
    cpu_set_t set;
    if (!node_list(node, line, sizeof line) || !system_core_list(line, cores) || sched_getaffinity(0, sizeof set, &set)) return false;
    for (int i = 0; i < GGML_MAX_N_THREADS && i < CPU_SETSIZE; i++) any |= cores[i] &= CPU_ISSET(i, &set) != 0;
#else
    (void) node, (void) cores;
#endif
    return any;
}

/* sched_setattr(2), which libc does not have; slices of ordinary threads since Linux 6.12, before that without effect. */
int64_t system_slice(int64_t ns) {
#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t slice, deadline, period; } a = { .size = 0 };
    if (ns <= 0 || syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) || a.policy != SCHED_OTHER || !a.slice) return 0;
    const int64_t before = (int64_t) a.slice;
    a.size  = sizeof a;
    a.slice = (uint64_t) ns;
    return before == ns || !syscall(SYS_sched_setattr, 0, &a, 0) ? before : 0;
#else
    (void) ns;
    return 0;
#endif
}

bool system_place(const bool cores[GGML_MAX_N_THREADS], enum ggml_sched_priority priority) {
    bool ok = true;
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < GGML_MAX_N_THREADS && i < CPU_SETSIZE; i++) if (cores[i]) CPU_SET(i, &set);
    if (CPU_COUNT(&set)) ok = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
#else
    (void) cores;
#endif
    if (priority == GGML_SCHED_PRIO_NORMAL) return ok;
    static const int fifo[] = { 0, 40, 80, 90 };                    /* NORMAL, MEDIUM, HIGH, REALTIME */
    struct sched_param param = { .sched_priority = priority > 0 ? fifo[priority] : 0 };
    int policy = SCHED_FIFO;
#ifdef SCHED_BATCH
    if (priority < 0) policy = SCHED_BATCH;
#else
    if (priority < 0) policy = SCHED_OTHER;
#endif
    return pthread_setschedparam(pthread_self(), policy, &param) == 0 && ok;
}
