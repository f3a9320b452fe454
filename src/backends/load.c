/* Backends from shared objects.
 *
 * A plugin exports ggml_backend_init (its registry) and, if it likes, ggml_backend_score (0: of no use on this machine; the
 * best of several builds wins). One that is built for another version of the interface is refused. What is refused costs one
 * line of log and nothing else. */

#include "backend_impl.h"
#include "core.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

struct plugin {
    struct plugin     *next;
    ggml_backend_reg_t reg;
    void              *handle;
};

static struct plugin  *plugins;
static pthread_mutex_t plugins_lock = PTHREAD_MUTEX_INITIALIZER;

/* POSIX lets a function travel as an object pointer; C wants it copied. */
static bool symbol(void *handle, const char *name, void *function, size_t size) {
    void *p = dlsym(handle, name);
    if (p) memcpy(function, &p, size);
    return p != NULL;
}

/* How well the plugin fits this machine, 0: not at all. One that does not say fits. */
static int score_of(void *handle) {
    ggml_backend_score_t score;
    return symbol(handle, "ggml_backend_score", &score, sizeof score) ? score() : 1;
}

/* The registry of an open plugin, or NULL and why. */
static ggml_backend_reg_t reg_of(void *handle, const char **why) {
    ggml_backend_init_t init;
    *why = "it has no ggml_backend_init";
    if (!symbol(handle, "ggml_backend_init", &init, sizeof init)) return NULL;
    *why = "it cannot be used on this machine";
    if (score_of(handle) == 0) return NULL;
    ggml_backend_reg_t reg = init();
    *why = "its ggml_backend_init failed";
    if (!reg) return NULL;
    *why = "it is built for another version of the interface";
    return reg->api_version == GGML_BACKEND_API_VERSION ? reg : NULL;
}

ggml_backend_reg_t ggml_backend_load(const char *path) {
    const char *why = "out of memory";
    void *handle = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle) {
        const char *error = dlerror();
        LOG_ERROR("backend %s: %s\n", path ? path : "NULL", error ? error : "no path");
        return NULL;
    }
    struct plugin *plugin = malloc(sizeof *plugin);
    ggml_backend_reg_t reg = plugin ? reg_of(handle, &why) : NULL;
    if (!reg) {
        LOG_ERROR("backend %s: refused, %s\n", path, why);
        free(plugin);
        dlclose(handle);
        return NULL;
    }
    ggml_backend_register(reg);
    pthread_mutex_lock(&plugins_lock);
    *plugin = (struct plugin) { .next = plugins, .reg = reg, .handle = handle };
    plugins = plugin;
    pthread_mutex_unlock(&plugins_lock);
    LOG_INFO("backend %s from %s\n", ggml_backend_reg_name(reg), path);
    return reg;
}

void ggml_backend_unload(ggml_backend_reg_t reg) {
    if (!reg || !registry_remove(reg)) {
        LOG_ERROR("backend: it is not registered and cannot be unloaded\n");
        return;
    }
    pthread_mutex_lock(&plugins_lock);
    struct plugin **at = &plugins;
    while (*at && (*at)->reg != reg) at = &(*at)->next;
    struct plugin *plugin = *at;
    if (plugin) *at = plugin->next;
    pthread_mutex_unlock(&plugins_lock);
    if (plugin) dlclose(plugin->handle);
    free(plugin);
}

/* ---- the ones that lie around --------------------------------------------------------------------------------------- */

/* The best of dir/libggml-<name>-*.so and its score; 0 when there is none. */
static int best_in(const char *dir, const char *name, char best[PATH_SIZE]) {
    char prefix[64], path[PATH_SIZE];
    int most = 0;
    DIR *d = opendir(dir);
    const int n = snprintf(prefix, sizeof prefix, "libggml-%s-", name);
    for (const struct dirent *e; d && (e = readdir(d)); ) {
        const size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, prefix, (size_t) n) || length < 3 || strcmp(e->d_name + length - 3, ".so")) continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int) sizeof path) continue;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const int score = handle ? score_of(handle) : 0;
        if (handle) dlclose(handle);
        if (score > most) {
            most = score;
            memcpy(best, path, sizeof path);
        }
    }
    if (d) closedir(d);
    return most;
}

static void load_from(const char *const *dirs, size_t n_dirs, const char *name) {
    char best[PATH_SIZE], path[PATH_SIZE];
    int most = 0;
    for (size_t i = 0; i < n_dirs; i++) {
        const int score = best_in(dirs[i], name, path);
        if (score <= most) continue;
        most = score;
        memcpy(best, path, sizeof path);
    }
    for (size_t i = 0; most == 0 && i < n_dirs; i++) {
        if (snprintf(best, sizeof best, "%s/libggml-%s.so", dirs[i], name) < (int) sizeof best) most = access(best, R_OK) == 0;
    }
    if (most > 0) ggml_backend_load(best);
}

/* The directory of the running program; false when the system does not say. */
static bool program_dir(char dir[PATH_SIZE]) {
    const ssize_t n = readlink("/proc/self/exe", dir, PATH_SIZE - 1);
    if (n <= 0) return false;
    dir[n] = 0;
    char *slash = strrchr(dir, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

void ggml_backend_load_all_from_path(const char *dir_path) {
    static const char *const names[] = {
        "blas", "zendnn", "cann", "cuda", "hip", "metal", "rpc", "sycl", "vulkan", "virtgpu", "opencl", "hexagon", "musa",
        "openvino", "cpu",
    };
    char program[PATH_SIZE];
    const char *dirs[3];
    size_t n = 0;
    if (dir_path) {
        dirs[n++] = dir_path;
    } else {
#ifdef GGML_BACKEND_DIR
        dirs[n++] = GGML_BACKEND_DIR;
#endif
        if (program_dir(program)) dirs[n++] = program;
        dirs[n++] = ".";
    }
    for (size_t i = 0; i < sizeof names/sizeof names[0]; i++) {
        if (!ggml_backend_reg_by_name(names[i])) load_from(dirs, n, names[i]);      /* what is built in needs no file */
    }
    const char *one = getenv("GGML_BACKEND_PATH");
    if (one) ggml_backend_load(one);
}

void ggml_backend_load_all(void) {
    ggml_backend_load_all_from_path(NULL);
}
