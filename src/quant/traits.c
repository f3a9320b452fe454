/* What programs are told of a type, from its row in types.def and its functions in quant_types[]; and the interface's
 * conversions of F16 and BF16, each the scalar one of quant.h. */

#include "quant.h"
#include "core.h"

#include <pthread.h>

static struct ggml_type_traits traits[GGML_TYPE_COUNT];

static void traits_fill(void) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const enum ggml_type type = (enum ggml_type) i;
        traits[i] = (struct ggml_type_traits) {
            .type_name = ggml_type_name(type), .blck_size = ggml_blck_size(type), .type_size = ggml_type_size(type),
            .is_quantized = ggml_is_quantized(type), .to_float = quant_types[i].unpack, .from_float_ref = quant_types[i].pack,
        };
    }
    /* formats of activations inside a product: programs are not offered their decoders */
    traits[GGML_TYPE_Q8_1].to_float = traits[GGML_TYPE_Q8_K].to_float = NULL;
    traits[GGML_TYPE_Q8_K].from_float_ref = NULL;
}

const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if ((unsigned) type >= GGML_TYPE_COUNT) GGML_ABORT("ggml_get_type_traits: there is no type %d", (int) type);
    pthread_once(&once, traits_fill);
    return &traits[type];
}

float       ggml_fp16_to_fp32(ggml_fp16_t h) { return f16_to_f32(h); }
ggml_fp16_t ggml_fp32_to_fp16(float f)       { return f32_to_f16(f); }
float       ggml_bf16_to_fp32(ggml_bf16_t h) { return bf16_to_f32(h.bits); }
ggml_bf16_t ggml_fp32_to_bf16(float f)       { return (ggml_bf16_t) { f32_to_bf16(f) }; }

void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n) { unpack_f16(x, y, n); }
void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n) { pack_f16(x, y, n); }
void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n) { unpack_bf16(x, y, n); }
void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n) { pack_bf16(x, y, n); }
void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n) { pack_bf16(x, y, n); }
