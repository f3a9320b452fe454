/* Every struct and constant that programs, programs' C++ and plugins share with the library has the layout and the value of
 * the interface. All checks are made by the compiler; the program only says how many there are. The same file is compiled as
 * C11, C17 and C++17, the public headers first and each once more alone. */

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "gguf.h"
#include "llama.h"
#include "arenite.h"

#ifdef __cplusplus
#    define ASSERT static_assert
#else
#    define ASSERT _Static_assert
#endif

#if UINTPTR_MAX == UINT64_MAX
#    define STRUCT(s, size)            ASSERT(sizeof(struct s) == size, "size of " #s);
#    define FIELD(s, m, offset, size)  ASSERT(offsetof(struct s, m) == offset && sizeof(((struct s *) 0)->m) == size, #s "." #m);
#else
#    define STRUCT(s, size)
#    define FIELD(s, m, offset, size)
#endif
#define CONSTANT(name, value)          ASSERT((long long) (name) == (long long) (value), #name);
#include "core/abi_ggml.def"
#include "core/abi_llama.def"

#ifndef __cplusplus
#include "backend_impl.h"
#include "check.h"
#include "core.h"
#include "core/abi_plugin.def"
STRUCT(ggml_object, 32)
STRUCT(ggml_cgraph, 96)
#undef STRUCT
#undef FIELD
#undef CONSTANT

#define STRUCT(s, size)            n++;
#define FIELD(s, m, offset, size)  n++;
#define CONSTANT(name, value)      n++;

int main(void) {
    int n = 0;
#include "core/abi_ggml.def"
#include "core/abi_llama.def"
#include "core/abi_plugin.def"
    CHECK(n > 700, "%d facts checked by the compiler", n);
    CHECK(GGML_TENSOR_SIZE == sizeof(struct ggml_tensor), "tensor size");
    return DONE();
}
#endif
