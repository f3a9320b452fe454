/* The binary interface as an object of its own, for abidiff: every function of the tables with an empty body, compiled with
 * debugging information. The types are those of the headers; tests/core/api.c says that the library's own functions are these. */

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "gguf.h"
#include "llama.h"
#include "backend_impl.h"

#include <stdlib.h>

#define FUNCTION(result, name, parameters) result name parameters { abort(); }
#include "api_ggml.def"
#include "api_llama.def"

/* the interface of plugins */
ggml_backend_reg_t ggml_backend_init(void) { abort(); }
