/* What belongs to no model: defaults, names, and what this build and machine can do. */

#include "model.h"

#include "log.h"

#include <stdio.h>
#include <string.h>

const char *llama_version(void) { return ggml_version(); }

void    llama_backend_init(void) { ggml_time_init(); }
void    llama_backend_free(void) { }
void    llama_numa_init(enum ggml_numa_strategy numa) { if (numa != GGML_NUMA_STRATEGY_DISABLED) ggml_numa_init(numa); }
int64_t llama_time_us(void) { return ggml_time_us(); }

size_t llama_max_devices(void)                { return 16; }
size_t llama_max_parallel_sequences(void)     { return MAX_SEQUENCES; }
size_t llama_max_tensor_buft_overrides(void)  { return 0; }
bool   llama_supports_mmap(void)              { return true; }
bool   llama_supports_mlock(void)             { return true; }
bool   llama_supports_gpu_offload(void)       { return false; }
bool   llama_supports_rpc(void)               { return ggml_backend_reg_by_name("RPC") != NULL; }

/* ---- enum names ------------------------------------------------------------------------------------------------ */

const char *llama_flash_attn_type_name(enum llama_flash_attn_type flash_attn_type) {
    switch (flash_attn_type) {
        case LLAMA_FLASH_ATTN_TYPE_AUTO:     return "auto";
        case LLAMA_FLASH_ATTN_TYPE_DISABLED: return "disabled";
        case LLAMA_FLASH_ATTN_TYPE_ENABLED:  return "enabled";
    }
    return "unknown";
}

static const struct { enum llama_load_mode mode; const char *name; } load_modes[] = {
    { LLAMA_LOAD_MODE_AUTO,  "auto"  }, { LLAMA_LOAD_MODE_NONE,       "none"       }, { LLAMA_LOAD_MODE_MMAP,      "mmap" },
    { LLAMA_LOAD_MODE_MLOCK, "mlock" }, { LLAMA_LOAD_MODE_MMAP_MLOCK, "mmap+mlock" }, { LLAMA_LOAD_MODE_DIRECT_IO, "dio"  },
};

const char *llama_load_mode_name(enum llama_load_mode load_mode) {
    for (size_t i = 0; i < sizeof load_modes/sizeof *load_modes; i++) {
        if (load_modes[i].mode == load_mode) return load_modes[i].name;
    }
    return "unknown";
}

enum llama_load_mode llama_load_mode_from_str(const char *str) {
    for (size_t i = 0; str && i < sizeof load_modes/sizeof *load_modes; i++) {
        if (!strcmp(load_modes[i].name, str)) return load_modes[i].mode;
    }
    return LLAMA_LOAD_MODE_AUTO;
}

/* ---- defaults -------------------------------------------------------------------------------------------------- */

struct llama_model_params llama_model_default_params(void) {
    return (struct llama_model_params) {
        .n_gpu_layers = -1, .split_mode = LLAMA_SPLIT_MODE_LAYER, .load_mode = LLAMA_LOAD_MODE_AUTO,
        .use_extra_bufts = true,
    };
}

struct llama_context_params llama_context_default_params(void) {
    const int n_threads = arn_cpu_default_threads();
    return (struct llama_context_params) {
        .n_ctx = 512, .n_batch = 2048, .n_ubatch = 512, .n_seq_max = 1,
        .n_threads = n_threads, .n_threads_batch = n_threads,
        .rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED, .pooling_type = LLAMA_POOLING_TYPE_UNSPECIFIED,
        .attention_type = LLAMA_ATTENTION_TYPE_UNSPECIFIED, .flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO,
        .yarn_ext_factor = -1, .yarn_attn_factor = -1, .yarn_beta_fast = -1, .yarn_beta_slow = -1, .defrag_thold = -1,
        .type_k = GGML_TYPE_F16, .type_v = GGML_TYPE_F16,
        .offload_kqv = true, .no_perf = true, .op_offload = true, .swa_full = true,
    };
}

/* ---- names of split files -------------------------------------------------------------------------------------- */

int32_t llama_split_path(char *split_path, size_t maxlen, const char *path_prefix, int32_t split_no,
                         int32_t split_count) {
    const int n = snprintf(split_path, maxlen, "%s-%05d-of-%05d.gguf", path_prefix, split_no + 1, split_count);
    return n >= 0 && (size_t) n < maxlen ? n : 0;
}

int32_t llama_split_prefix(char *split_prefix, size_t maxlen, const char *split_path, int32_t split_no,
                           int32_t split_count) {
    char suffix[64];
    const size_t tail = (size_t) snprintf(suffix, sizeof suffix, "-%05d-of-%05d.gguf", split_no + 1, split_count);
    const size_t length = strlen(split_path);
    if (length <= tail || strcmp(split_path + length - tail, suffix) || length - tail >= maxlen) return 0;
    memcpy(split_prefix, split_path, length - tail);
    split_prefix[length - tail] = 0;
    return (int32_t) (length - tail);
}

/* ---- about the machine ----------------------------------------------------------------------------------------- */

const char *llama_print_system_info(void) {
    static char text[256];
    size_t used = 0;
    const char *in_force = arn_cpu_get_level();
    used += (size_t) snprintf(text, sizeof text, "CPU :");
    for (int i = 0; arn_cpu_level_name(i) && used < sizeof text; i++) {
        const char *name = arn_cpu_level_name(i);
        const char *mark = !strcmp(name, in_force) ? " (in use)" : "";
        used += (size_t) snprintf(text + used, sizeof text - used, " %s%s", name, mark);
    }
    if (used < sizeof text) snprintf(text + used, sizeof text - used, " | threads : %d", arn_cpu_default_threads());
    return text;
}
