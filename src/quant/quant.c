/* The table of what each type can do, and the calls of the interface on whole rows: quantise, validate, swap byte order. */

#include "quant.h"
#include "core.h"

#include <string.h>

#define TYPE(id, NAME, tag, weights, bytes, dots) _Static_assert(sizeof(block_##tag) == bytes, #tag " is a file format");
#include "types.def"
#undef TYPE

#define UNPACK(tag)   .unpack = unpack_##tag
#define BOTH(tag)     UNPACK(tag), .pack = pack_##tag
#define WEIGHTED(tag) BOTH(tag), .pack_weighted = pack_weighted_##tag
#define FILES(tag)    UNPACK(tag), .pack_weighted = pack_weighted_##tag, .pack_file = pack_##tag
#define FIELDS(...)   .fields = { __VA_ARGS__ }

const struct quant_type quant_types[GGML_TYPE_COUNT] = {
    [GGML_TYPE_F32]     = {                   FIELDS({ FIELD_F32, 1, 0 }) },
    [GGML_TYPE_F64]     = {                   FIELDS({ FIELD_F64, 1, 0 }) },
    [GGML_TYPE_F16]     = { BOTH(f16),        FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_BF16]    = { BOTH(bf16),       FIELDS({ FIELD_BF16, 1, 0 }) },
    [GGML_TYPE_I16]     = {                   FIELDS({ FIELD_U16, 1, 0 }) },
    [GGML_TYPE_I32]     = {                   FIELDS({ FIELD_U32, 1, 0 }) },
    [GGML_TYPE_I64]     = {                   FIELDS({ FIELD_U64, 1, 0 }) },
    [GGML_TYPE_Q4_0]    = { WEIGHTED(q4_0),   FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_Q4_1]    = { WEIGHTED(q4_1),   FIELDS({ FIELD_F16, 2, 0 }) },
    [GGML_TYPE_Q5_0]    = { WEIGHTED(q5_0),   FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_Q5_1]    = { WEIGHTED(q5_1),   FIELDS({ FIELD_F16, 2, 0 }) },
    [GGML_TYPE_Q8_0]    = { BOTH(q8_0),       FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_Q8_1]    = { BOTH(q8_1),       FIELDS({ FIELD_F16, 2, 0 }) },
    [GGML_TYPE_Q2_K]    = { WEIGHTED(q2_K),   FIELDS({ FIELD_F16, 2, 80 }) },
    [GGML_TYPE_Q3_K]    = { WEIGHTED(q3_K),   FIELDS({ FIELD_F16, 1, 108 }) },
    [GGML_TYPE_Q4_K]    = { WEIGHTED(q4_K),   FIELDS({ FIELD_F16, 2, 0 }) },
    [GGML_TYPE_Q5_K]    = { WEIGHTED(q5_K),   FIELDS({ FIELD_F16, 2, 0 }) },
    [GGML_TYPE_Q6_K]    = { WEIGHTED(q6_K),   FIELDS({ FIELD_F16, 1, 208 }) },
    [GGML_TYPE_Q8_K]    = { BOTH(q8_K),       FIELDS({ FIELD_F32, 1, 0 }, { FIELD_U16, 16, 260 }) },
    [GGML_TYPE_IQ4_NL]  = { WEIGHTED(iq4_nl), FIELDS({ FIELD_F16, 1, 0 }), .pack_file = pack_file_iq4_nl },
    [GGML_TYPE_IQ4_XS]  = { WEIGHTED(iq4_xs), FIELDS({ FIELD_F16, 1, 0 }, { FIELD_U16, 1, 2 }) },
    [GGML_TYPE_IQ2_XXS] = { FILES(iq2_xxs),  FIELDS({ FIELD_F16, 1, 0 }, { FIELD_U16, 32, 2 }) },
    [GGML_TYPE_IQ2_XS]  = { FILES(iq2_xs),   FIELDS({ FIELD_F16, 1, 0 }, { FIELD_U16, 32, 2 }) },
    [GGML_TYPE_IQ2_S]   = { WEIGHTED(iq2_s),    FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_IQ3_XXS] = { WEIGHTED(iq3_xxs),  FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_IQ3_S]   = { WEIGHTED(iq3_s),    FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_IQ1_S]   = { FILES(iq1_s),    FIELDS({ FIELD_F16, 1, 0 }, { FIELD_U16, 8, 34 }) },
    [GGML_TYPE_IQ1_M]   = { FILES(iq1_m),    FIELDS({ FIELD_IQ1_M, 4, 48 }) },
    [GGML_TYPE_TQ1_0]   = { BOTH(tq1_0),      FIELDS({ FIELD_F16, 1, 52 }) },
    [GGML_TYPE_TQ2_0]   = { BOTH(tq2_0),      FIELDS({ FIELD_F16, 1, 64 }) },
    [GGML_TYPE_MXFP4]   = { BOTH(mxfp4),      FIELDS({ FIELD_E8M0, 1, 0 }) },
    [GGML_TYPE_NVFP4]   = { BOTH(nvfp4) },
    [GGML_TYPE_Q1_0]    = { BOTH(q1_0),       FIELDS({ FIELD_F16, 1, 0 }) },
    [GGML_TYPE_Q2_0]    = { BOTH(q2_0),       FIELDS({ FIELD_F16, 1, 0 }) },
};

/* ---- fields: byte order and validity -------------------------------------------------------------------------------- */

static const uint8_t field_width[] = {
    [FIELD_NONE] = 0, [FIELD_U16] = 2, [FIELD_U32] = 4, [FIELD_U64] = 8, [FIELD_F16] = 2, [FIELD_BF16] = 2,
    [FIELD_F32] = 4, [FIELD_F64] = 8, [FIELD_E8M0] = 1, [FIELD_IQ1_M] = 2,
};

void quant_swap(enum ggml_type type, void *blocks, size_t n) {
    const size_t size = ggml_type_size(type);
    for (const struct quant_field *f = quant_types[type].fields; f < quant_types[type].fields + 2; f++) {
        const size_t width = field_width[f->kind];
        for (size_t i = 0; width > 1 && i < n*f->n; i++) {
            uint8_t *p = (uint8_t *) blocks + i/f->n*size + f->at + i%f->n*width;
            for (size_t j = 0; j < width/2; j++) {
                const uint8_t byte = p[j];
                p[j] = p[width - 1 - j];
                p[width - 1 - j] = byte;
            }
        }
    }
}

static bool field_valid(enum field_kind kind, const uint8_t *p, int n) {
    uint64_t u64;
    uint32_t u32;
    uint16_t u16[4];
    for (int i = 0; i < n; i++, p += field_width[kind]) {
        switch (kind) {
        case FIELD_F16:  memcpy(u16, p, 2);  if ((u16[0] & 0x7c00) == 0x7c00) return false; break;
        case FIELD_BF16: memcpy(u16, p, 2);  if ((u16[0] & 0x7f80) == 0x7f80) return false; break;
        case FIELD_F32:  memcpy(&u32, p, 4); if ((u32 & 0x7f800000) == 0x7f800000) return false; break;
        case FIELD_F64:  memcpy(&u64, p, 8); if (u64 << 1 >> 53 == 0x7ff) return false; break;
        case FIELD_E8M0: if (*p == 255) return false; break;
        case FIELD_IQ1_M:                                       /* the bits of a half in the top nibbles of four words */
            memcpy(u16, p, 8);
            return (u16[3] >> 12 << 12 & 0x7000) != 0x7000 || (u16[2] >> 12 & 12) != 12;
        default: break;
        }
    }
    return true;
}

bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes) {
    const size_t size = (unsigned) type < GGML_TYPE_COUNT ? ggml_type_size(type) : 0;
    if (size == 0 || type == GGML_TYPE_Q8_1) {
        LOG_ERROR("validate: type %d holds no data that can be checked\n", (int) type);
        return false;
    }
    if (nbytes % size != 0) {
        LOG_ERROR("validate: %zu bytes are no whole number of %s blocks of %zu bytes\n", nbytes, ggml_type_name(type), size);
        return false;
    }
    const uint8_t *block = data;
    for (size_t i = 0; i < nbytes/size; i++, block += size) {
        const struct quant_field *f = quant_types[type].fields;
        for (int k = 0; k < 2; k++) {
            if (field_valid((enum field_kind) f[k].kind, block + f[k].at, f[k].n)) continue;
            LOG_ERROR("validate: %s block %zu: a scale or value is not finite\n", ggml_type_name(type), i);
            return false;
        }
    }
    return true;
}

/* ---- quantise ------------------------------------------------------------------------------------------------------- */

bool ggml_quantize_requires_imatrix(enum ggml_type type) {
    return type == GGML_TYPE_IQ2_XXS || type == GGML_TYPE_IQ2_XS || type == GGML_TYPE_IQ1_S;
}

/* Importance that says nothing (all zeros, or numbers that are none) is no importance. */
static bool weights_usable(const float *w, int64_t n) {
    float sum = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        if (!(w[i] >= 0.0f)) return false;
        sum += w[i];
    }
    return sum > 0.0f && sum < INFINITY;
}

static void pack_row(enum ggml_type type, const float *x, uint8_t *y, int64_t n, const float *weights) {
    const struct quant_type *t = &quant_types[type];
    const int64_t block = ggml_blck_size(type);
    const size_t size = ggml_type_size(type);
    void (*const plain)(const float *, void *, int64_t) = t->pack_file ? t->pack_file : t->pack;
    if (!weights || !t->pack_weighted) {
        plain(x, y, n);
        return;
    }
    float energy = 0.0f;
    for (int64_t i = 0; i < n; i++) energy += x[i]*x[i];
    energy /= (float) n;
    for (int64_t i = 0; i < n; i += block, y += size) {
        if (weights_usable(weights + i, block)) t->pack_weighted(x + i, y, weights + i, energy);
        else                                    plain(x + i, y, block);
    }
}

size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows, int64_t n_per_row,
                           const float *imatrix) {
    if ((unsigned) type >= GGML_TYPE_COUNT || (type != GGML_TYPE_F32 && !quant_types[type].pack && !quant_types[type].pack_file))
        GGML_ABORT("ggml_quantize_chunk: type %d cannot be packed", (int) type);
    const int64_t block = ggml_blck_size(type);
    if (nrows < 0 || n_per_row <= 0 || n_per_row % block != 0 || start < 0 || start % n_per_row != 0)
        GGML_ABORT("ggml_quantize_chunk: %s: start %lld, %lld rows of %lld elements: rows are whole blocks of %lld, start is "
                   "a whole number of rows", ggml_type_name(type), (long long) start, (long long) nrows, (long long) n_per_row,
                   (long long) block);
    if (!imatrix && ggml_quantize_requires_imatrix(type))
        GGML_ABORT("ggml_quantize_chunk: %s needs importance data", ggml_type_name(type));
    const size_t row = ggml_row_size(type, n_per_row);
    const float *x = src + start;
    uint8_t *y = (uint8_t *) dst + (size_t) (start/n_per_row)*row;
    for (int64_t r = 0; r < nrows; r++, x += n_per_row, y += row) {
        if (type == GGML_TYPE_F32) memcpy(y, x, row);
        else                       pack_row(type, x, y, n_per_row, imatrix);
    }
    return (size_t) nrows*row;
}

void ggml_quantize_init(enum ggml_type type) { (void) type; }          /* the tables are constants */
void ggml_quantize_free(void) { }

/* ---- names that plugins link against ----------------------------------------------------------------------------------- */

#define UNPACK_NAME(tag) \
    GGML_API void dequantize_row_##tag(const block_##tag *x, float *y, int64_t k); \
    void dequantize_row_##tag(const block_##tag *x, float *y, int64_t k) { unpack_##tag(x, y, k); }
#define PACK_NAME(tag) \
    GGML_API void quantize_row_##tag##_ref(const float *x, block_##tag *y, int64_t k); \
    void quantize_row_##tag##_ref(const float *x, block_##tag *y, int64_t k) { pack_##tag(x, y, k); }
#define CHUNK_NAME(tag, NAME) \
    GGML_API size_t quantize_##tag(const float *x, void *y, int64_t rows, int64_t n, const float *imatrix); \
    size_t quantize_##tag(const float *x, void *y, int64_t rows, int64_t n, const float *imatrix) { \
        return ggml_quantize_chunk(GGML_TYPE_##NAME, x, y, 0, rows, n, imatrix); \
    }
#define ALL_NAMES(tag, NAME) UNPACK_NAME(tag) PACK_NAME(tag) CHUNK_NAME(tag, NAME)
ALL_NAMES(q4_0, Q4_0)
ALL_NAMES(q4_1, Q4_1)
ALL_NAMES(q5_0, Q5_0)
ALL_NAMES(q5_1, Q5_1)
ALL_NAMES(q8_0, Q8_0)
ALL_NAMES(q2_K, Q2_K)
ALL_NAMES(q3_K, Q3_K)
ALL_NAMES(q4_K, Q4_K)
ALL_NAMES(q5_K, Q5_K)
ALL_NAMES(q6_K, Q6_K)
ALL_NAMES(iq4_nl, IQ4_NL)
ALL_NAMES(iq2_s, IQ2_S)
ALL_NAMES(iq3_xxs, IQ3_XXS)
ALL_NAMES(iq3_s, IQ3_S)
ALL_NAMES(iq4_xs, IQ4_XS)
ALL_NAMES(tq1_0, TQ1_0)
ALL_NAMES(tq2_0, TQ2_0)
ALL_NAMES(mxfp4, MXFP4)
ALL_NAMES(nvfp4, NVFP4)
ALL_NAMES(q1_0, Q1_0)
ALL_NAMES(q2_0, Q2_0)
UNPACK_NAME(iq2_xxs) CHUNK_NAME(iq2_xxs, IQ2_XXS)
UNPACK_NAME(iq2_xs) CHUNK_NAME(iq2_xs, IQ2_XS)
UNPACK_NAME(iq1_s) CHUNK_NAME(iq1_s, IQ1_S)
UNPACK_NAME(iq1_m) CHUNK_NAME(iq1_m, IQ1_M)
PACK_NAME(q8_1)
UNPACK_NAME(q8_K)
PACK_NAME(q8_K)
