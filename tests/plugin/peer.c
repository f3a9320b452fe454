/* The peer's own CPU backend as a plugin: it is built into an ordinary shared object, named by PEER_CPU, that lacks the two
 * functions of a plugin. Its own needs (libggml-base.so.0) are the loader's matter. */

#include "backend_impl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

GGML_API ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) {
    const char *path = getenv("PEER_CPU");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *p = library ? dlsym(library, "ggml_backend_cpu_reg") : NULL;
    ggml_backend_reg_t (*reg)(void) = NULL;
    if (p) memcpy(&reg, &p, sizeof reg);
    return reg ? reg() : NULL;
}
