/* Backends from shared objects: what fits is registered, the best of several builds wins, what does not fit is refused with
 * one line of log. The directory is full of them: see tests/plugin/plugin.c. */

#include "check.h"
#include "backend_impl.h"

static int  lines;
static char last[512];
static void listen(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    if (level != GGML_LOG_LEVEL_ERROR) return;
    lines++;
    snprintf(last, sizeof last, "%s", text);
}

static ggml_backend_reg_t load(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/libggml-%s.so", PLUGIN_DIR, name);
    lines = 0;
    return ggml_backend_load(path);
}

int main(void) {
    ggml_log_set(listen, NULL);
    const size_t regs = ggml_backend_reg_count();
    ggml_backend_reg_t reg = load("rpc");
    CHECK(reg && lines == 0 && ggml_backend_reg_by_name("RPC") == reg && ggml_backend_reg_count() == regs + 1, "%s", last);
    ggml_backend_unload(reg);
    CHECK(!ggml_backend_reg_by_name("rpc") && ggml_backend_reg_count() == regs, "unloaded");
    CHECK(!load("metal") && lines == 1 && strstr(last, "version"), "another version: %s", last);
    CHECK(!load("sycl-none") && lines == 1 && strstr(last, "machine"), "of no use here: %s", last);
    CHECK(!load("musa") && lines == 1 && strstr(last, "ggml_backend_init"), "no backend: %s", last);

    lines = 0;
    ggml_backend_load_all_from_path(PLUGIN_DIR);
    CHECK(ggml_backend_reg_by_name("rpc"), "a plain name");
    CHECK(ggml_backend_reg_by_name("sycl good") && !ggml_backend_reg_by_name("sycl poor") && !ggml_backend_reg_by_name("sycl none"),
          "the best of those that can be used");
    CHECK(lines == 2 && !ggml_backend_reg_by_name("metal") && !ggml_backend_reg_by_name("musa"), "%d lines, %s", lines, last);
    CHECK(ggml_backend_reg_by_name("CPU"), "what is built in stays");
    ggml_backend_unload(ggml_backend_reg_by_name("sycl good"));
    ggml_backend_unload(ggml_backend_reg_by_name("rpc"));
    CHECK(ggml_backend_reg_count() == regs, "all gone");
    return DONE();
}
