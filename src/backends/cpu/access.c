/* Reading and writing single elements of tensors in host memory, and conversions of rows (ggml-cpu.h). */

#include "cpu.h"
#include "kernels.h"

#include <string.h>

/* Element types as numbers. Integers go through int64 and floats through float, as the interface's two kinds want. */
static void *element(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    GGML_ASSERT(t->data && i0 >= 0 && i0 < t->ne[0] && i1 >= 0 && i1 < t->ne[1] && i2 >= 0 && i2 < t->ne[2] &&
                i3 >= 0 && i3 < t->ne[3]);
    return (char *) row_at(t, i1, i2, i3) + (size_t) i0*t->nb[0];
}

static void *flat_element(const struct ggml_tensor *t, int64_t i) {
    int64_t at[GGML_MAX_DIMS];
    ggml_unravel_index(t, i, &at[0], &at[1], &at[2], &at[3]);
    return element(t, at[0], at[1], at[2], at[3]);
}

static float get(enum ggml_type type, const void *p) {
    switch (type) {
        case GGML_TYPE_I8:   return *(const int8_t  *) p;
        case GGML_TYPE_I16:  return *(const int16_t *) p;
        case GGML_TYPE_I32:  return (float) *(const int32_t *) p;
        case GGML_TYPE_I64:  return (float) *(const int64_t *) p;
        case GGML_TYPE_F64:  return (float) *(const double  *) p;
        case GGML_TYPE_F32:  return *(const float *) p;
        case GGML_TYPE_F16:  return f16_to_f32(*(const uint16_t *) p);
        case GGML_TYPE_BF16: return bf16_to_f32(*(const uint16_t *) p);
        default: GGML_ABORT("elements of type %s cannot be read singly", ggml_type_name(type));
    }
}

static int32_t get_int(enum ggml_type type, const void *p) {
    switch (type) {
        case GGML_TYPE_I32: return *(const int32_t *) p;
        case GGML_TYPE_I64: return (int32_t) *(const int64_t *) p;
        default:            return (int32_t) get(type, p);
    }
}

static void put(enum ggml_type type, void *p, float v) {
    switch (type) {
        case GGML_TYPE_I8:   *(int8_t   *) p = (int8_t)  v; break;
        case GGML_TYPE_I16:  *(int16_t  *) p = (int16_t) v; break;
        case GGML_TYPE_I32:  *(int32_t  *) p = (int32_t) v; break;
        case GGML_TYPE_I64:  *(int64_t  *) p = (int64_t) v; break;
        case GGML_TYPE_F64:  *(double   *) p = v;           break;
        case GGML_TYPE_F32:  *(float    *) p = v;           break;
        case GGML_TYPE_F16:  *(uint16_t *) p = f32_to_f16(v);  break;
        case GGML_TYPE_BF16: *(uint16_t *) p = f32_to_bf16(v); break;
        default: GGML_ABORT("elements of type %s cannot be written singly", ggml_type_name(type));
    }
}

static void put_int(enum ggml_type type, void *p, int32_t v) {
    switch (type) {
        case GGML_TYPE_I32: *(int32_t *) p = v; break;
        case GGML_TYPE_I64: *(int64_t *) p = v; break;
        case GGML_TYPE_I16: *(int16_t *) p = (int16_t) v; break;
        case GGML_TYPE_I8:  *(int8_t  *) p = (int8_t)  v; break;
        default:            put(type, p, (float) v);
    }
}

int32_t ggml_get_i32_1d(const struct ggml_tensor *t, int i)            { return get_int(t->type, flat_element(t, i)); }
void    ggml_set_i32_1d(const struct ggml_tensor *t, int i, int32_t v) { put_int(t->type, flat_element(t, i), v); }
float   ggml_get_f32_1d(const struct ggml_tensor *t, int i)            { return get(t->type, flat_element(t, i)); }
void    ggml_set_f32_1d(const struct ggml_tensor *t, int i, float v)   { put(t->type, flat_element(t, i), v); }

int32_t ggml_get_i32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3) {
    return get_int(t->type, element(t, i0, i1, i2, i3));
}
void ggml_set_i32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3, int32_t v) {
    put_int(t->type, element(t, i0, i1, i2, i3), v);
}
float ggml_get_f32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3) {
    return get(t->type, element(t, i0, i1, i2, i3));
}
void ggml_set_f32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3, float v) {
    put(t->type, element(t, i0, i1, i2, i3), v);
}

/* Every element: `i` and `f` are the same value, written as what the type is. */
static struct ggml_tensor *fill(struct ggml_tensor *t, bool integer, int32_t i, float f) {
    for (int64_t r = 0; t && r < n_rows(t); r++) {
        int64_t i1, i2, i3;
        row_index(t, r, &i1, &i2, &i3);
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
            void *p = element(t, i0, i1, i2, i3);
            if (integer) put_int(t->type, p, i);
            else         put(t->type, p, f);
        }
    }
    return t;
}

struct ggml_tensor *ggml_set_i32(struct ggml_tensor *t, int32_t value) { return fill(t, true, value, 0); }
struct ggml_tensor *ggml_set_f32(struct ggml_tensor *t, float value)   { return fill(t, false, 0, value); }

static struct ggml_tensor *new_scalar(struct ggml_context *ctx, enum ggml_type type) {
    GGML_ASSERT(!ggml_get_no_alloc(ctx));
    return ggml_new_tensor_1d(ctx, type, 1);
}

struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value) {
    return ggml_set_i32(new_scalar(ctx, GGML_TYPE_I32), value);
}
struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value) {
    return ggml_set_f32(new_scalar(ctx, GGML_TYPE_F32), value);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

void ggml_cpu_fp32_to_fp32(const float *x, float *y, int64_t n) {
    if (n > 0) memcpy(y, x, (size_t) n*sizeof *y);
}
void ggml_cpu_fp32_to_i32(const float *x, int32_t *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = (int32_t) x[i];
}
void ggml_cpu_fp32_to_fp16(const float *x, ggml_fp16_t *y, int64_t n)  { cpu_kernels()->f.to_f16(n, y, x); }
void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *x, float *y, int64_t n)  { cpu_kernels()->f.from_f16(n, y, x); }
void ggml_cpu_fp32_to_bf16(const float *x, ggml_bf16_t *y, int64_t n)  { cpu_kernels()->f.to_bf16(n, &y->bits, x); }
void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *x, float *y, int64_t n)  { cpu_kernels()->f.from_bf16(n, y, &x->bits); }
