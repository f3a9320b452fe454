#ifndef MODEL_LOG_H
#define MODEL_LOG_H
/* The model library's log: one call is one line, without its newline. Where lines go is set by llama_log_set; at first
 * they go to stderr. A bad file or argument is told by exactly one log_error; what goes on working by log_warn. */

#include "ggml.h"

void log_error(const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);
void log_warn (const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);
void log_info (const char *format, ...) GGML_ATTRIBUTE_FORMAT(1, 2);

#endif
