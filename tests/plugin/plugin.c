/* Backends in shared objects for tests/core/plugin.c, one build each:
 *   VERSION       of the interface that the registry claims
 *   SCORE         what ggml_backend_score says; undefined: there is no such function
 *   WITHOUT_INIT  no ggml_backend_init either */

#include "backend_impl.h"

static const char *name(ggml_backend_reg_t reg)      { (void) reg; return PLUGIN; }
static size_t device_count(ggml_backend_reg_t reg)   { (void) reg; return 0; }

#ifdef SCORE
GGML_API int ggml_backend_score(void);
int ggml_backend_score(void) { return SCORE; }
#endif

#ifndef WITHOUT_INIT
GGML_API ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg reg = { .api_version = VERSION, .iface = { .get_name = name, .get_device_count = device_count } };
    return &reg;
}
#else
GGML_API const void *unused(void);
const void *unused(void) { static const void *p[2]; p[0] = (const void *) name(NULL); p[1] = device_count(NULL) ? p : NULL; return p; }
#endif
