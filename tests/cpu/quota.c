/* How many cores the CPU quota of a container leaves: control groups of either version, as files that say what the system's would;
 * and of the machine the test runs on. */

#define _GNU_SOURCE

#include "check.h"

#include "arenite.h"
#include "system.h"

#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

enum { FILES = 5 };

/* What the process's list of groups and files below the folder of groups hold, and the cores that leaves. */
static const struct world {
    const char *what, *groups;
    struct { const char *path, *text; } files[FILES];
    int cores;
} worlds[] = {
    { "no limit",                     "0::/\n",     { { "cpu.max", "max 100000\n" } },                               INT_MAX },
    { "no file",                      "0::/\n",     { { NULL, NULL } },                                              INT_MAX },
    { "two cores",                    "0::/a\n",    { { "a/cpu.max", "200000 100000\n" } },                          2 },
    { "a core and a half",            "0::/a\n",    { { "a/cpu.max", "150000 100000\n" } },                          2 },
    { "half a core",                  "0::/a\n",    { { "a/cpu.max", "50000 100000\n" } },                           1 },
    { "another period",               "0::/a\n",    { { "a/cpu.max", "30000 10000\n" } },                            3 },
    { "a limit above",                "0::/a/b\n",  { { "a/cpu.max", "300000 100000\n" }, { "a/b/cpu.max", "max 100000\n" } }, 3 },
    { "the least on the way",         "0::/a/b\n",  { { "a/cpu.max", "300000 100000\n" }, { "a/b/cpu.max", "500000 100000\n" } }, 3 },
    { "a path of the host",           "0::/x/y\n",  { { "cpu.max", "400000 100000\n" } },                            4 },
    { "another's limit",              "0::/a\n",    { { "b/cpu.max", "100000 100000\n" } },                          INT_MAX },
    { "version 1",                    "4:memory:/m\n1:cpu:/a\n", { { "cpu/a/cpu.cfs_quota_us", "250000\n" }, { "cpu/a/cpu.cfs_period_us", "100000\n" } }, 3 },
    { "version 1, no limit",          "1:cpu:/\n",  { { "cpu/cpu.cfs_quota_us", "-1\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } }, INT_MAX },
    { "version 1, two controllers",   "3:cpu,cpuacct:/a\n", { { "cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n" }, { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } }, 1 },
    { "both versions",                "1:cpu:/a\n0::/a\n", { { "cpu/a/cpu.cfs_quota_us", "500000\n" }, { "cpu/a/cpu.cfs_period_us", "100000\n" }, { "a/cpu.max", "400000 100000\n" } }, 4 },
    { "words where numbers belong",   "0::/a\n",    { { "a/cpu.max", "some more\n" } },                              INT_MAX },
    { "an empty file",                "0::/a\n",    { { "a/cpu.max", "" } },                                         INT_MAX },
    { "a period of zero",             "0::/a\n",    { { "a/cpu.max", "100000 0\n" } },                               INT_MAX },
    { "more cores than an int",       "0::/a\n",    { { "a/cpu.max", "9223372036854775807 1\n" } },                  INT_MAX },
    { "a list that is none",          "cpu\n:\n\n", { { "cpu.max", "100000 100000\n" } },                            INT_MAX },
};

static void write_file(const char *folder, const char *path, const char *text) {
    char name[256];
    snprintf(name, sizeof name, "%s/%s", folder, path);
    for (char *slash = name + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') *slash = 0, mkdir(name, 0700);
    FILE *f = fopen(name, "w");
    CHECK(f && fputs(text, f) >= 0 && !fclose(f), "%s", name);
}

/* The file, and the folders on the way that are empty then. */
static void remove_file(const char *folder, const char *path) {
    char name[256];
    snprintf(name, sizeof name, "%s/%s", folder, path);
    for (char *slash; !remove(name) && (slash = strrchr(name, '/')) && slash > name + strlen(folder);) *slash = 0;
}

static void test_world(const struct world *w) {
    char folder[] = "/tmp/arenite_quota_XXXXXX", groups[64];
    CHECK(mkdtemp(folder), "%s", folder);
    snprintf(groups, sizeof groups, "%s/groups", folder);
    write_file(folder, "groups", w->groups);
    for (int i = 0; i < FILES && w->files[i].path; i++) write_file(folder, w->files[i].path, w->files[i].text);
    const int cores = system_quota(groups, folder);
    CHECK(cores == w->cores, "%s: %d, not %d", w->what, cores, w->cores);
    for (int i = FILES; i-- > 0;) if (w->files[i].path) remove_file(folder, w->files[i].path);
    remove_file(folder, "groups");
    CHECK(!remove(folder), "%s", folder);
}

/* The default is never more than affinity and quota allow; reading them anew follows a change. */
static void test_here(void) {
    const int all = arn_cpu_default_threads();
    cpu_set_t set, one;
    CHECK(!sched_getaffinity(0, sizeof set, &set) && all >= 1 && all <= CPU_COUNT(&set), "%d threads by default", all);
    CHECK(all <= system_quota("/proc/self/cgroup", "/sys/fs/cgroup"), "%d threads by default", all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) if (CPU_ISSET(i, &set)) CPU_SET(i, &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one) && system_cores() == 1, "%d cores of one", system_cores());
    CHECK(system_quota("/no/such/file", "/sys/fs/cgroup") == INT_MAX, "a quota of no groups");
}

int main(void) {
    for (size_t i = 0; i < sizeof worlds/sizeof *worlds; i++) test_world(&worlds[i]);
    test_here();
    return DONE();
}
