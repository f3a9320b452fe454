/* The CPU backend as a plugin: libggml-arenite.so, a whole library inside one shared object that shows two functions.
 *
 * Any program of this interface loads it, by ggml_backend_load or the environment variable GGML_BACKEND_PATH, and has a device
 * "arenite" of type ACCEL beside its own CPU device: it works on the same memory, so a scheduler may mix the two, and a
 * comparison sets one against the other.
 *
 * Inside, everything is this library's own. Two things are the host's: the handles of buffers, which the host frees, and the
 * log. They are taken from the host's base library if it can be found under its usual names; else ours serve, which is right
 * for hosts that allocate with malloc. A thread pool of the host is not ours to run on: threads are set by number. */

#include "backend_impl.h"
#include "core.h"
#include "ggml-cpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

GGML_API ggml_backend_reg_t ggml_backend_init(void);
GGML_API int ggml_backend_score(void);

static struct {
    ggml_backend_buffer_t (*buffer_init)(ggml_backend_buffer_type_t, struct ggml_backend_buffer_i, void *, size_t);
    void                  (*log)(enum ggml_log_level, const char *, ...);
} host = { ggml_backend_buffer_init, NULL };

static void host_log(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    host.log(level, "%s", text);
}

static void host_find(void) {
    static const char *const names[] = { "libggml-base.so.0", "libggml.so.0", "libggml-base.so", NULL };
    void *init = NULL, *log = NULL;
    for (size_t i = 0; i < sizeof names/sizeof names[0] && !init; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | (names[i] ? RTLD_NOLOAD : 0));     /* NULL: the program itself */
        init = library ? dlsym(library, "ggml_backend_buffer_init") : NULL;
        log  = library ? dlsym(library, "ggml_log_internal") : NULL;
        if (library && !init) dlclose(library);                 /* else it stays: we call into it */
    }
    if (init) memcpy(&host.buffer_init, &init, sizeof init);
    if (log)  memcpy(&host.log, &log, sizeof log);
    if (log)  ggml_log_set(host_log, NULL);
}

/* ---- buffers ------------------------------------------------------------------------------------------------------ */

static struct ggml_backend_device      device;
static struct ggml_backend_buffer_type buft;

/* The buffer under a handle of the host. */
static ggml_backend_buffer_t handed_over(ggml_backend_buffer_t ours) {
    if (!ours) return NULL;
    ggml_backend_buffer_t theirs = host.buffer_init(&buft, ours->iface, ours->context, ours->size);
    if (theirs) free(ours);
    else        ggml_backend_buffer_free(ours);
    return theirs;
}

static const char *buft_name(ggml_backend_buffer_type_t type) { (void) type; return "arenite"; }
static ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t type, size_t size) {
    (void) type;
    ggml_backend_buffer_type_t inner = ggml_backend_cpu_buffer_type();
    return handed_over(inner->iface.alloc_buffer(inner, size));
}

/* ---- device ------------------------------------------------------------------------------------------------------- */

static const char *device_name(ggml_backend_dev_t dev) { (void) dev; return "arenite"; }
static const char *backend_name(ggml_backend_t backend) { (void) backend; return "arenite"; }
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) { (void) dev; return GGML_BACKEND_DEVICE_TYPE_ACCEL; }

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    ggml_backend_dev_get_props(ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0), props);
    props->name = device_name(dev);
    props->type = device_type(dev);
}

static ggml_backend_t device_init(ggml_backend_dev_t dev, const char *params) {
    static ggml_guid guid = { 'a', 'r', 'e', 'n', 'i', 't', 'e', ' ', 'C', 'P', 'U', ' ', 'p', 'l', 'u', 'g' };
    ggml_backend_t backend = ggml_backend_cpu_init();
    (void) params;
    if (!backend) return NULL;
    backend->guid           = &guid;            /* a host that asks for its own CPU backend by guid does not mean this one */
    backend->device         = dev;
    backend->iface.get_name = backend_name;
    return backend;
}

static ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t dev) { (void) dev; return &buft; }
static ggml_backend_buffer_t device_from_ptr(ggml_backend_dev_t dev, void *p, size_t size, size_t max_tensor_size) {
    (void) dev, (void) max_tensor_size;
    return handed_over(ggml_backend_cpu_buffer_from_ptr(p, size));
}

/* ---- registry ----------------------------------------------------------------------------------------------------- */

static const char *reg_name(ggml_backend_reg_t reg) { (void) reg; return "arenite"; }
static size_t reg_device_count(ggml_backend_reg_t reg) { (void) reg; return 1; }
static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void) reg;
    GGML_ASSERT(index == 0);
    return &device;
}
static void *reg_proc(ggml_backend_reg_t reg, const char *name) {
    (void) reg;
    return strstr(name, "threadpool") ? NULL : ggml_backend_reg_get_proc_address(ggml_backend_cpu_reg(), name);
}

ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg reg = {
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = { .get_name = reg_name, .get_device_count = reg_device_count, .get_device = reg_device,
                   .get_proc_address = reg_proc },
    };
    if (device.reg) return &reg;
    host_find();
    buft = *ggml_backend_cpu_buffer_type();
    buft.device             = &device;
    buft.iface.get_name     = buft_name;
    buft.iface.alloc_buffer = buft_alloc;
    device = *ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
    device.reg                        = &reg;
    device.iface.get_name             = device_name;
    device.iface.get_type             = device_type;
    device.iface.get_props            = device_props;
    device.iface.init_backend         = device_init;
    device.iface.get_buffer_type      = device_buft;
    device.iface.buffer_from_host_ptr = device_from_ptr;
    return &reg;
}

/* Every machine that this object loads on can use it: the portable kernels are in it. */
int ggml_backend_score(void) {
    return 1;
}
