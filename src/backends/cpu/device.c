/* The CPU as a backend: one registry with one device, host buffers, and backends that each own a pool and run memory. */

#include "backend_impl.h"
#include "compute.h"
#include "cpu_features.h"
#include "pool.h"
#include "system.h"

#include <stdlib.h>
#include <string.h>

enum { CPU_ALIGNMENT = 32 };                        /* of tensors in a buffer; buffers begin at multiples of 64 */

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}
static void buffer_free(ggml_backend_buffer_t buffer) {
    ggml_aligned_free(buffer->context, buffer->size);
}
static void buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *t, uint8_t value, size_t offset, size_t size) {
    (void) buffer;
    memset((char *) t->data + offset, value, size);
}
static void buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy((char *) t->data + offset, data, size);
}
static void buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    (void) buffer;
    memcpy(data, (const char *) t->data + offset, size);
}
static bool buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst) {
    const ggml_backend_buffer_t from = src->view_src ? src->view_src->buffer : src->buffer;
    (void) buffer;
    if (!ggml_backend_buffer_is_host(from)) return false;
    memmove(dst->data, src->data, ggml_nbytes(src));
    return true;
}
static void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
}

static const struct ggml_backend_buffer_i owned_buffer = {
    .free_buffer = buffer_free,  .get_base   = buffer_base, .memset_tensor = buffer_memset, .set_tensor = buffer_set,
    .get_tensor  = buffer_get,   .cpy_tensor = buffer_copy, .clear         = buffer_clear,
};
static const struct ggml_backend_buffer_i borrowed_buffer = {
    .free_buffer = NULL,         .get_base   = buffer_base, .memset_tensor = buffer_memset, .set_tensor = buffer_set,
    .get_tensor  = buffer_get,   .cpy_tensor = buffer_copy, .clear         = buffer_clear,
};

static const char *buft_name(ggml_backend_buffer_type_t buft)          { return buft->context; }
static size_t      buft_alignment(ggml_backend_buffer_type_t buft)     { (void) buft; return CPU_ALIGNMENT; }
static bool        buft_is_host(ggml_backend_buffer_type_t buft)       { (void) buft; return true; }

static ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    void *p = ggml_aligned_malloc(size);
    if (!p) {
        LOG_ERROR("%s buffer: out of memory for %zu bytes\n", buft_name(buft), size);
        return NULL;
    }
    ggml_backend_buffer_t buffer = ggml_backend_buffer_init(buft, owned_buffer, p, size);
    if (!buffer) ggml_aligned_free(p, size);
    return buffer;
}

/* The names are const in spirit: the interface's context is not. */
static char name_owned[] = "CPU", name_mapped[] = "CPU_Mapped";

#define CPU_BUFT { .get_name = buft_name, .alloc_buffer = buft_alloc, .get_alignment = buft_alignment, .is_host = buft_is_host }
static struct ggml_backend_buffer_type owned_type  = { .iface = CPU_BUFT, .device = NULL, .context = name_owned };
static struct ggml_backend_buffer_type mapped_type = { .iface = CPU_BUFT, .device = NULL, .context = name_mapped };

ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) {
    return &owned_type;
}

ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *p, size_t size) {
    GGML_ASSERT((uintptr_t) p % CPU_ALIGNMENT == 0 && "the memory of a tensor buffer is 32-aligned");
    return ggml_backend_buffer_init(&mapped_type, borrowed_buffer, p, size);
}

/* ---- backend ---------------------------------------------------------------------------------------------------- */

struct cpu_backend {
    int                     n_threads;
    struct ggml_threadpool *given;                  /* the program's pool, or NULL */
    struct ggml_threadpool *own;                    /* made when the first graph is worth more than one thread */
    struct cpu_memory       memory;
    size_t                  wanted;                 /* memory for the largest graph that was planned */
    double                  elements;               /* in its nodes, times the threads */
    ggml_abort_callback     abort_callback;
    void                   *abort_data;
    bool                    use_ref;
};

static const char *backend_name(ggml_backend_t backend) {
    (void) backend;
    return "CPU";
}

static void backend_free(ggml_backend_t backend) {
    struct cpu_backend *cpu = backend->context;
    pool_free(cpu->own);
    cpu_memory_free(&cpu->memory);
    free(cpu);
    free(backend);
}

/* The pool for the next graph: the program's, else ours, made on first use. NULL: one thread does it. */
static struct ggml_threadpool *backend_pool(struct cpu_backend *cpu) {
    if (cpu->given) return cpu->given;
    if (!cpu->own && pool_threads(cpu->n_threads) > 1) {
        const struct ggml_threadpool_params params = ggml_threadpool_params_default(cpu->n_threads);
        cpu->own = pool_new(&params);
    }
    return cpu->own;
}

static struct cpu_how how_of(struct cpu_backend *cpu) {
    return (struct cpu_how) {
        .n_threads = cpu->n_threads, .pool = backend_pool(cpu), .use_ref = cpu->use_ref,
        .abort_callback = cpu->abort_callback, .abort_data = cpu->abort_data,
    };
}

static enum ggml_status backend_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct cpu_backend *cpu = backend->context;
    const struct cpu_how how = how_of(cpu);
    if (!cpu_memory_grow(&cpu->memory, cpu->wanted, 0)) {
        LOG_ERROR("CPU backend: out of memory for %zu bytes of scratch\n", cpu->wanted);
        return GGML_STATUS_ALLOC_FAILED;
    }
    return cpu_compute(graph, &how, &cpu->memory);
}

/* Called for each graph that a scheduler plans, the largest one before the first run: what that one needs will be allocated
 * then, so that later ones find it. Graphs with no more elements than an earlier one are passed over. */
static void backend_optimize(ggml_backend_t backend, struct ggml_cgraph *graph,
                             struct ggml_backend_graph_optimize_params *params) {
    struct cpu_backend *cpu = backend->context;
    double elements = 0;
    (void) params;
    for (int i = 0; i < graph->n_nodes; i++) elements += (double) ggml_nelements(graph->nodes[i]);
    elements *= cpu->n_threads;
    if (elements <= cpu->elements) return;
    cpu->elements = elements;
    const size_t size = cpu_memory_size(graph, cpu->n_threads);
    if (size > cpu->wanted) cpu->wanted = size;
}

/* A plan is a copy of the graph's list with run memory of its own. */
struct graph_plan {
    struct ggml_cgraph graph;
    struct cpu_memory  memory;
};

static void backend_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t p) {
    struct graph_plan *plan = p;
    (void) backend;
    if (!plan) return;
    cpu_memory_free(&plan->memory);
    free(plan);
}

static ggml_backend_graph_plan_t backend_plan_create(ggml_backend_t backend, const struct ggml_cgraph *graph) {
    const struct cpu_backend *cpu = backend->context;
    struct graph_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->graph = *graph;
    if (!cpu_memory_grow(&plan->memory, cpu_memory_size(graph, cpu->n_threads), 0)) {
        free(plan);
        return NULL;
    }
    return plan;
}

static enum ggml_status backend_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t p) {
    struct graph_plan *plan = p;
    const struct cpu_how how = how_of(backend->context);
    return cpu_compute(&plan->graph, &how, &plan->memory);
}

static const struct ggml_backend_i backend_iface = {
    .get_name           = backend_name,         .free               = backend_free,
    .graph_plan_create  = backend_plan_create,  .graph_plan_free    = backend_plan_free,
    .graph_plan_compute = backend_plan_compute, .graph_compute      = backend_compute,
    .graph_optimize     = backend_optimize,
};

static ggml_guid cpu_guid = {
    0xaa, 0x67, 0xc7, 0x43, 0x96, 0xe6, 0xa3, 0x8a, 0xe3, 0xaf, 0xea, 0x92, 0x36, 0xbc, 0xfc, 0x89,
};

ggml_backend_t ggml_backend_cpu_init(void) {
    ggml_cpu_init();
    struct ggml_backend *backend = malloc(sizeof *backend);
    struct cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!backend || !cpu) {
        free(backend);
        free(cpu);
        return NULL;
    }
    cpu->n_threads = GGML_DEFAULT_N_THREADS;
    *backend = (struct ggml_backend) {
        .guid = &cpu_guid, .iface = backend_iface, .context = cpu,
        .device = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
    };
    return backend;
}

/* By its function, not by its guid: another library's CPU backend, loaded as a plugin, has that too and is no backend of ours. */
bool ggml_backend_is_cpu(ggml_backend_t backend) {
    return backend && backend->iface.graph_compute == backend_compute;
}

static struct cpu_backend *cpu_of(ggml_backend_t backend) {
    GGML_ASSERT(ggml_backend_is_cpu(backend) && "a CPU backend is wanted");
    return backend->context;
}

void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int n_threads) {
    cpu_of(backend)->n_threads = n_threads < 1 ? 1 : n_threads > GGML_MAX_N_THREADS ? GGML_MAX_N_THREADS : n_threads;
}

void ggml_backend_cpu_set_threadpool(ggml_backend_t backend, ggml_threadpool_t pool) {
    struct cpu_backend *cpu = cpu_of(backend);
    if (cpu->given && cpu->given != pool) ggml_threadpool_pause(cpu->given);
    cpu->given = pool;
}

void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct cpu_backend *cpu = cpu_of(backend);
    cpu->abort_callback = callback;
    cpu->abort_data     = data;
}

void ggml_backend_cpu_set_use_ref(ggml_backend_t backend, bool use_ref) {
    cpu_of(backend)->use_ref = use_ref;
}

/* ---- device ----------------------------------------------------------------------------------------------------- */

static const char *device_name(ggml_backend_dev_t dev)        { (void) dev; return "CPU"; }
static const char *device_description(ggml_backend_dev_t dev) { return dev->context; }
static void device_memory(ggml_backend_dev_t dev, size_t *available, size_t *total) {
    const uint64_t bytes = system_memory();
    (void) dev;
    *available = *total = bytes < SIZE_MAX ? (size_t) bytes : SIZE_MAX;
}
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) {
    (void) dev;
    return GGML_BACKEND_DEVICE_TYPE_CPU;
}
static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    props->name        = device_name(dev);
    props->description = device_description(dev);
    props->type        = device_type(dev);
    device_memory(dev, &props->memory_free, &props->memory_total);
    props->caps = (struct ggml_backend_dev_caps) { .buffer_from_host_ptr = true, .mmap_support = true };
}
static ggml_backend_t device_init(ggml_backend_dev_t dev, const char *params) {
    (void) dev, (void) params;
    return ggml_backend_cpu_init();
}
static ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t dev) {
    (void) dev;
    return &owned_type;
}
static ggml_backend_buffer_t device_from_ptr(ggml_backend_dev_t dev, void *p, size_t size, size_t max_tensor_size) {
    (void) dev, (void) max_tensor_size;
    return ggml_backend_cpu_buffer_from_ptr(p, size);
}
static bool device_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
    (void) dev;
    return cpu_supports(op);
}
static bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    (void) dev;
    return ggml_backend_buft_is_host(buft);
}

/* ---- registry --------------------------------------------------------------------------------------------------- */

static const char *reg_name(ggml_backend_reg_t reg)       { (void) reg; return "CPU"; }
static size_t reg_device_count(ggml_backend_reg_t reg)    { (void) reg; return 1; }

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    static char description[128];
    static struct ggml_backend_device device = {
        .iface = {
            .get_name        = device_name,        .get_description      = device_description,
            .get_memory      = device_memory,      .get_type             = device_type,
            .get_props       = device_props,       .init_backend         = device_init,
            .get_buffer_type = device_buft,        .buffer_from_host_ptr = device_from_ptr,
            .supports_op     = device_supports_op, .supports_buft        = device_supports_buft,
        },
        .context = description,
    };
    GGML_ASSERT(index == 0);
    ggml_critical_section_start();
    if (!device.reg) system_cpu_name(description, sizeof description);
    device.reg = reg;
    ggml_critical_section_end();
    return &device;
}

/* No buffer types beside the default one: weights are used as they lie in the file. */
static ggml_backend_buffer_type_t *extra_bufts(ggml_backend_dev_t dev) {
    static ggml_backend_buffer_type_t none[1];
    (void) dev;
    return none;
}

/* What the processor has, by name, closed by a row of NULLs. */
static struct ggml_backend_feature *reg_features(ggml_backend_reg_t reg) {
#define FEATURE(name) + 1
    static struct ggml_backend_feature found[1
#include "cpu_features.def"
    ];
#undef FEATURE
    static char upper[sizeof found/sizeof found[0]][16];
    const struct cpu_features *has = cpu_features();
    int n = 0;
    (void) reg;
    ggml_critical_section_start();
#define FEATURE(name) if (has->name) { \
        for (size_t i = 0; i + 1 < sizeof upper[n] && #name[i]; i++) upper[n][i] = #name[i] >= 'a' ? #name[i] - 32 : #name[i]; \
        found[n] = (struct ggml_backend_feature) { upper[n], "1" }; n++; }
#include "cpu_features.def"
#undef FEATURE
    ggml_critical_section_end();
    return found;
}

/* Extensions that programs look up by name. */
static void *reg_proc(ggml_backend_reg_t reg, const char *name) {
    typedef void (*proc)(void);
    static const struct { const char *name; proc p; } procs[] = {
        { "ggml_backend_set_n_threads",        (proc) ggml_backend_cpu_set_n_threads },
        { "ggml_backend_dev_get_extra_bufts",  (proc) extra_bufts },
        { "ggml_backend_get_features",         (proc) reg_features },
        { "ggml_backend_set_abort_callback",   (proc) ggml_backend_cpu_set_abort_callback },
        { "ggml_backend_cpu_numa_init",        (proc) ggml_numa_init },
        { "ggml_backend_cpu_is_numa",          (proc) ggml_is_numa },
        { "ggml_backend_cpu_set_use_ref",      (proc) ggml_backend_cpu_set_use_ref },
        { "ggml_threadpool_new",               (proc) ggml_threadpool_new },
        { "ggml_threadpool_free",              (proc) ggml_threadpool_free },
        { "ggml_backend_cpu_set_threadpool",   (proc) ggml_backend_cpu_set_threadpool },
    };
    (void) reg;
    for (size_t i = 0; i < sizeof procs/sizeof procs[0]; i++) {
        if (strcmp(procs[i].name, name)) continue;
        void *p;
        memcpy(&p, &procs[i].p, sizeof p);          /* POSIX lets a function pointer travel as void * */
        return p;
    }
    return NULL;
}

ggml_backend_reg_t ggml_backend_cpu_reg(void) {
    static struct ggml_backend_reg reg = {
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = { .get_name = reg_name, .get_device_count = reg_device_count, .get_device = reg_device,
                   .get_proc_address = reg_proc },
    };
    return &reg;
}

/* ---- facts about the processor ----------------------------------------------------------------------------------- */

void ggml_cpu_init(void) {
    cpu_kernels();
}

#define FEATURE(name) int ggml_cpu_has_##name(void) { return cpu_features()->name; }
#include "cpu_features.def"
#undef FEATURE

int ggml_cpu_get_sve_cnt(void)  { return 0; }       /* no kernel uses SVE or RISC-V vectors, so their widths are not asked */
int ggml_cpu_get_rvv_vlen(void) { return 0; }

static enum ggml_numa_strategy numa = GGML_NUMA_STRATEGY_DISABLED;

void ggml_numa_init(enum ggml_numa_strategy strategy) {
    if (numa != GGML_NUMA_STRATEGY_DISABLED) {
        LOG_WARN("NUMA strategy %d is in force already\n", (int) numa);
        return;
    }
    if ((unsigned) strategy >= GGML_NUMA_STRATEGY_COUNT) return;
    if (strategy == GGML_NUMA_STRATEGY_MIRROR) LOG_WARN("NUMA strategy MIRROR: nothing is copied to each node; memory lies where it is first touched\n");
    numa = strategy;
    pool_place(strategy);
}

bool ggml_is_numa(void) {
    return numa != GGML_NUMA_STRATEGY_DISABLED && system_numa_nodes() > 1;
}
