/* F16 and BF16 rows, and I32 from floats. Every conversion is the scalar one of quant.h, applied n times. */

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

float       ggml_fp16_to_fp32(ggml_fp16_t h) { return f16_to_f32(h); }
ggml_fp16_t ggml_fp32_to_fp16(float f)       { return f32_to_f16(f); }
float       ggml_bf16_to_fp32(ggml_bf16_t h) { return bf16_to_f32(h.bits); }
ggml_bf16_t ggml_fp32_to_bf16(float f)       { return (ggml_bf16_t) { f32_to_bf16(f) }; }

void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n)     { unpack_f16(x, y, n); }
void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n)     { pack_f16(x, y, n); }
void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n)     { unpack_bf16(x, y, n); }
void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n)     { pack_bf16(x, y, n); }
void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n) { pack_bf16(x, y, n); }
