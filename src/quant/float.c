/* F16 and BF16 rows. Every conversion is the scalar one of quant.h, applied n times. */

#include "quant.h"

void unpack_f16(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    const uint16_t *h = x;
    for (int64_t i = 0; i < k; i++) y[i] = f16_to_f32(h[i]);
}

void pack_f16(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint16_t *h = y;
    for (int64_t i = 0; i < k; i++) h[i] = f32_to_f16(x[i]);
}

void unpack_bf16(const void *GGML_RESTRICT x, float *GGML_RESTRICT y, int64_t k) {
    const uint16_t *h = x;
    for (int64_t i = 0; i < k; i++) y[i] = bf16_to_f32(h[i]);
}

void pack_bf16(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t k) {
    uint16_t *h = y;
    for (int64_t i = 0; i < k; i++) h[i] = f32_to_bf16(x[i]);
}
