#ifndef MODEL_MIXTURE_H
#define MODEL_MIXTURE_H
/* Which type each tensor of a quantised file has: a file type such as Q4_K_M is a mixture, in which the tensors that matter most
 * get more bits. Knows names and numbers of layers only; writing the file is quantize.c's. */

#include <stdbool.h>
#include <stdint.h>

#include "llama.h"

/* What the rules ask about a model. */
struct mixture {
    enum llama_ftype ftype;
    int  n_layer, n_head, n_head_kv, n_expert;  /* 0: unknown */
    bool has_output;                            /* a tensor output.weight of its own */
    bool has_importance;
};

/* The type that most matrices of a file of this type have; GGML_TYPE_COUNT: no such file type. */
enum ggml_type mixture_main_type(enum llama_ftype ftype);

/* Is this a matrix that is quantised at all? Small tensors, routers and convolutions stay as they are. */
bool mixture_takes(const struct ggml_tensor *t);
bool mixture_is_output(const struct mixture *m, const char *name);      /* also an embedding that serves as output */

/* The type that the mixture has for this matrix, whatever the length of its rows. */
enum ggml_type mixture_type(const struct mixture *m, const struct ggml_tensor *t);

/* The type that stands in for one whose blocks do not divide rows of n elements: `type` itself where they do; F16 at last. */
enum ggml_type mixture_fallback(enum ggml_type type, int64_t n);

int mixture_layer(const char *name);            /* N of "blk.N."; -1: outside layers */

#endif
