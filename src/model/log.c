/* The log of the model library. Lines are formatted on the stack, so that running out of memory can be told as well; a line
 * longer than the buffer is cut, keeping its newline. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "llama.h"
#include "log.h"

enum { LINE_BYTES = 1024 };

static void to_stderr(enum ggml_log_level level, const char *text, void *user_data) {
    (void) level;
    (void) user_data;
    fputs(text, stderr);
}

static struct { ggml_log_callback callback; void *user_data; } sink = { to_stderr, NULL };

void llama_log_set(ggml_log_callback log_callback, void *user_data) {
    ggml_log_set(log_callback, user_data);      /* one call directs both libraries */
    sink.callback  = log_callback ? log_callback : to_stderr;
    sink.user_data = user_data;
}

void llama_log_get(ggml_log_callback *log_callback, void **user_data) {
    *log_callback = sink.callback;
    *user_data    = sink.user_data;
}

static void line(enum ggml_log_level level, const char *format, va_list args) {
    char text[LINE_BYTES];
    const int n = vsnprintf(text, sizeof text - 1, format, args);
    if (n < 0) return;
    strcat(text, "\n");
    sink.callback(level, text, sink.user_data);
}

#define LINES(level) va_list args; va_start(args, format); line(level, format, args); va_end(args)
void log_error(const char *format, ...) { LINES(GGML_LOG_LEVEL_ERROR); }
void log_warn (const char *format, ...) { LINES(GGML_LOG_LEVEL_WARN);  }
void log_info (const char *format, ...) { LINES(GGML_LOG_LEVEL_INFO);  }
#undef LINES
