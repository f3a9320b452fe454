/* Reading and writing single elements of tensors in host memory, and conversions of rows (ggml-cpu.h). */

#include "cpu.h"
#include "kernels.h"

#include <string.h>

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

/* How one element of a type is read and written, as a float and as an integer. */
#define ACCESS(tag, ctype, of_float, of_int, to_float, to_int)                                              \
    static float   get_##tag(const void *p)            { const ctype v = *(const ctype *) p; return to_float; }  \
    static int32_t get_int_##tag(const void *p)        { const ctype v = *(const ctype *) p; return to_int; }    \
    static void    put_##tag(void *p, float v)         { *(ctype *) p = of_float; }                              \
    static void    put_int_##tag(void *p, int32_t v)   { *(ctype *) p = of_int; }

#define NUMBER(tag, ctype) ACCESS(tag, ctype, (ctype) v, (ctype) v, (float) v, (int32_t) v)
NUMBER(i8,  int8_t)
NUMBER(i16, int16_t)
NUMBER(i32, int32_t)
NUMBER(i64, int64_t)
NUMBER(f32, float)
NUMBER(f64, double)
ACCESS(f16,  uint16_t, f32_to_f16(v),  f32_to_f16((float) v),  f16_to_f32(v),  (int32_t) f16_to_f32(v))
ACCESS(bf16, uint16_t, f32_to_bf16(v), f32_to_bf16((float) v), bf16_to_f32(v), (int32_t) bf16_to_f32(v))

struct access {
    float   (*get)(const void *p);
    int32_t (*get_int)(const void *p);
    void    (*put)(void *p, float v);
    void    (*put_int)(void *p, int32_t v);
};

#define ROW(NAME, tag) [GGML_TYPE_##NAME] = { get_##tag, get_int_##tag, put_##tag, put_int_##tag }
static const struct access *access_of(const struct ggml_tensor *t) {
    static const struct access table[GGML_TYPE_COUNT] = {
        ROW(I8, i8),   ROW(I16, i16), ROW(I32, i32), ROW(I64, i64),
        ROW(F16, f16), ROW(BF16, bf16), ROW(F32, f32), ROW(F64, f64),
    };
    if (!table[t->type].get) GGML_ABORT("tensor \"%s\": %s has no single elements", t->name, ggml_type_name(t->type));
    return &table[t->type];
}

int32_t ggml_get_i32_1d(const struct ggml_tensor *t, int i)            { return access_of(t)->get_int(flat_element(t, i)); }
void    ggml_set_i32_1d(const struct ggml_tensor *t, int i, int32_t v) { access_of(t)->put_int(flat_element(t, i), v); }
float   ggml_get_f32_1d(const struct ggml_tensor *t, int i)            { return access_of(t)->get(flat_element(t, i)); }
void    ggml_set_f32_1d(const struct ggml_tensor *t, int i, float v)   { access_of(t)->put(flat_element(t, i), v); }

int32_t ggml_get_i32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3) {
    return access_of(t)->get_int(element(t, i0, i1, i2, i3));
}
void ggml_set_i32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3, int32_t v) {
    access_of(t)->put_int(element(t, i0, i1, i2, i3), v);
}
float ggml_get_f32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3) {
    return access_of(t)->get(element(t, i0, i1, i2, i3));
}
void ggml_set_f32_nd(const struct ggml_tensor *t, int i0, int i1, int i2, int i3, float v) {
    access_of(t)->put(element(t, i0, i1, i2, i3), v);
}

/* Every element: `i` and `f` are the same value, written as what the type is. */
static struct ggml_tensor *fill(struct ggml_tensor *t, bool integer, int32_t i, float f) {
    for (int64_t r = 0; t && r < n_rows(t); r++) {
        int64_t i1, i2, i3;
        row_index(t, r, &i1, &i2, &i3);
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
            void *p = element(t, i0, i1, i2, i3);
            if (integer) access_of(t)->put_int(p, i);
            else         access_of(t)->put(p, f);
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
