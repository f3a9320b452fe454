#ifndef GGUF_CASES_H
#define GGUF_CASES_H
/* Small GGUF files as table rows, most of them broken in one way, and the bytes of a row in either byte order. */

#include "gguf.h"
#include "check.h"

static inline bool big_endian_here(void) { return *(const uint8_t *) &(const uint16_t) { 1 } == 0; }

struct bytes { uint8_t *p; size_t n, size; bool big; };

static inline void bytes_put(struct bytes *b, const void *p, size_t n) {
    if (b->n + n > b->size) b->p = realloc(b->p, b->size = 2*(b->n + n));
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void bytes_num(struct bytes *b, uint64_t v, int width) {
    for (int i = 0; i < width; i++) bytes_put(b, &(uint8_t) { (uint8_t) (v >> 8*(b->big ? width - 1 - i : i)) }, 1);
}
static inline void bytes_text(struct bytes *b, const char *s, size_t n) { bytes_num(b, n, 8); bytes_put(b, s, n); }
static inline void bytes_pad(struct bytes *b, size_t align) { while (b->n % align) bytes_num(b, 0, 1); }

/* One pair and up to two tensors. Raw values are little endian. A `count` of 0 is the true one; a text with zero bytes carries its length. */
struct gguf_case {
    const char *name;
    const char *says;                   /* part of the error; NULL: the file loads */
    uint32_t    version;                /* 0: 3 */
    int64_t     tensors, pairs;
    struct { const char *key; uint64_t key_n; int32_t type; uint64_t value; const char *raw; size_t raw_n; } kv[2];
    struct { const char *name; size_t name_n; uint32_t n_dims; int64_t ne[5]; int32_t type; uint64_t offset; } t[2];
    uint32_t    align;                  /* of the data section; 0: 32 */
    size_t      data;                   /* bytes of data */
    bool        bare;                   /* ends after the infos, without padding or data */
    bool        metadata_loads;         /* the fault is in the data: with ctx = NULL the file loads */
};

#define RAW(s)      .raw = (s), .raw_n = sizeof(s) - 1
#define T_F32(n)    { "x", 0, 1, { n }, GGML_TYPE_F32, 0 }
#define NAME64      "0123456789012345678901234567890123456789012345678901234567890123"

static const struct gguf_case gguf_cases[] = {
    { "plain",                  NULL, .kv = { { "k", .type = GGUF_TYPE_UINT32, .value = 7 } }, .t = { T_F32(8) }, .data = 32 },
    { "empty",                  NULL, .version = 3 },
    { "version 2",              NULL, .version = 2, .t = { T_F32(8) }, .data = 32 },
    { "version 1",              "version 1, expected 2 or 3", .version = 1 },
    { "version 4",              "version 4, expected 2 or 3", .version = 4 },
    /* alignment */
    { "alignment 0",            "0, expected a power of two", .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 0 } },
                                .t = { T_F32(8) }, .data = 32 },
    { "alignment 3",            "3, expected a power of two", .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 3 } },
                                .t = { T_F32(8) }, .data = 32 },
    { "alignment 24",           "24, expected a power of two", .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 24 } },
                                .t = { T_F32(8) }, .align = 24, .data = 32 },
    { "alignment 2^31",         "data: begins", .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 0x80000000 } },
                                .t = { T_F32(8) }, .data = 32 },
    { "alignment of i32",       "i32, expected u32", .kv = { { "general.alignment", .type = GGUF_TYPE_INT32, .value = 32 } } },
    { "alignment an array",     "array of u32, expected u32", .kv = { { "general.alignment", .type = GGUF_TYPE_ARRAY,
                                RAW("\4\0\0\0" "\1\0\0\0\0\0\0\0" "\40\0\0\0") } } },
    { "alignment 1",            NULL, .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 1 } }, .t = { T_F32(8) },
                                .align = 1, .data = 32 },
    { "alignment 128",          NULL, .kv = { { "general.alignment", .type = GGUF_TYPE_UINT32, .value = 128 } },
                                .t = { T_F32(8), { "y", 0, 1, { 8 }, GGML_TYPE_F32, 128 } }, .align = 128, .data = 160 },
    /* shapes */
    { "a dimension of 0",       NULL, .t = { { "x", 0, 2, { 8, 0 }, GGML_TYPE_F32, 0 } }, .bare = true },
    { "0 before 2^62",          NULL, .t = { { "x", 0, 3, { 0, 1, 1 }, GGML_TYPE_F32, 0 } }, .bare = true },
    { "no dimensions",          NULL, .t = { { "x", 0, 0, { 0 }, GGML_TYPE_F32, 0 } }, .data = 4 },
    { "2^62 elements",          "more than memory can hold", .t = { { "x", 0, 2, { 1ll << 40, 1ll << 22 }, GGML_TYPE_F32, 0 } } },
    { "2^64 elements",          "more than memory can hold", .t = { { "x", 0, 2, { 1ll << 40, 1ll << 24 }, GGML_TYPE_I8, 0 } } },
    { "2^63 - 1 bytes",         "bytes declared", .t = { { "x", 0, 1, { INT64_MAX }, GGML_TYPE_I8, 0 } }, .metadata_loads = true },
    { "2^57*36 bytes",          "bytes declared", .t = { { "x", 0, 1, { 1ll << 62 }, GGML_TYPE_Q8_1, 0 } }, .metadata_loads = true },
    { "two of 2^63 - 1 bytes",  "more than memory can hold", .t = { { "x", 0, 1, { INT64_MAX }, GGML_TYPE_I8, 0 },
                                { "y", 0, 1, { INT64_MAX }, GGML_TYPE_I8, 1ull << 63 } } },
    { "5 dimensions",           "5 dimensions, expected at most 4", .t = { { "x", 0, 5, { 1, 1, 1, 1, 1 }, GGML_TYPE_F32, 0 } }, .data = 4 },
    { "a negative dimension",   "dimension 1 is -1, expected 0 or more", .t = { { "x", 0, 2, { 8, -1 }, GGML_TYPE_F32, 0 } } },
    { "Q4_0 row of 33",         "rows of 33 elements, expected whole blocks of 32", .t = { { "x", 0, 1, { 33 }, GGML_TYPE_Q4_0, 0 } }, .data = 36 },
    /* types */
    { "tensor type 4",          "type 4 is not in use",   .t = { { "x", 0, 1, { 32 }, 4,   0 } }, .data = 32 },
    { "tensor type 38",         "type 38 is not in use",  .t = { { "x", 0, 1, { 32 }, 38,  0 } }, .data = 32 },
    { "tensor type 250",        "type 250 is not in use", .t = { { "x", 0, 1, { 32 }, 250, 0 } }, .data = 32 },
    { "tensor type 2^32 - 1",   "type -1 is not in use",  .t = { { "x", 0, 1, { 32 }, -1,  0 } }, .data = 32 },
    { "value type 99",          "value type 99, expected 0 to 12", .kv = { { "k", .type = 99 } } },
    { "element type 99",        "element type 99, expected 0 to 12", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\x63\0\0\0" "\1\0\0\0\0\0\0\0" "\1") } } },
    { "an array of arrays",     "array of arrays", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\11\0\0\0" "\0\0\0\0\0\0\0\0") } } },
    /* counts and lengths */
    { "-1 pairs",               "-1 pairs", .pairs = -1 },
    { "-1 tensors",             "-1 tensors", .tensors = -1 },
    { "2^60 pairs",             "pairs, expected 0 to what", .pairs = 1ll << 60 },
    { "2^55 tensors",           "tensors, expected 0 to what", .tensors = 1ll << 55 },
    { "one pair too many",      "pairs, expected", .pairs = 2, .kv = { { "k", .type = GGUF_TYPE_UINT8 } }, .bare = true },
    { "key of 2^30 bytes",      "a string of 1073741824 bytes, at most 65535", .kv = { { "abc", .key_n = 1u << 30, RAW("") } } },
    { "key of 2^62 bytes",      "a string of", .kv = { { "abc", .key_n = (uint64_t) 1 << 62, RAW("") } } },
    { "key of 65000 bytes",     "a string of 65000 bytes, ", .kv = { { "abcdefghijkl", .key_n = 65000, RAW("") } } },
    { "string of 2^30 bytes",   "a string of 1073741824 bytes, 3 left", .kv = { { "k", .type = GGUF_TYPE_STRING, RAW("\0\0\0\x40\0\0\0\0" "abc") } }, .bare = true },
    { "2^61 bytes",             "2305843009213693952 elements, at most", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\0\0\0\0" "\0\0\0\0\0\0\0\x20" "abc") } } },
    { "2^30 bytes",             "1073741824 elements of u8 in the", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\0\0\0\0" "\0\0\0\x40\0\0\0\0" "abc") } } },
    { "2^30 strings",           "1073741824 elements of str in the", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\10\0\0\0" "\0\0\0\x40\0\0\0\0" "abc") } } },
    { "2^61 numbers of 8",      "2305843009213693953 elements, at most", .kv = { { "k", .type = GGUF_TYPE_ARRAY, RAW("\14\0\0\0" "\1\0\0\0\0\0\0\x20" "12345678") } } },
    /* names */
    { "the same key twice",     "key k: the name is there twice", .kv = { { "k", .type = GGUF_TYPE_UINT8 }, { "k", .type = GGUF_TYPE_UINT8 } }, .bare = true },
    { "the same tensor twice",  "tensor x: the name is there twice", .t = { T_F32(8), { "x", 0, 1, { 8 }, GGML_TYPE_F32, 32 } }, .data = 64 },
    { "an empty key",           "empty", .kv = { { "", .type = GGUF_TYPE_UINT8 } } },
    { "a key with a zero byte", "zero byte", .kv = { { "a\0b", .key_n = 3, .type = GGUF_TYPE_UINT8 } } },
    { "a name of 64 bytes",     "a string of 64 bytes, at most 63", .t = { { NAME64, 0, 1, { 8 }, GGML_TYPE_F32, 0 } }, .data = 32 },
    { "a name of 63 bytes",     NULL, .t = { { &NAME64[1], 0, 1, { 8 }, GGML_TYPE_F32, 0 } }, .data = 32 },
    { "a name with a zero byte", "zero byte", .t = { { "a\0b", 3, 1, { 8 }, GGML_TYPE_F32, 0 } }, .data = 32 },
    { "an empty name",          NULL, .t = { { "", 0, 1, { 8 }, GGML_TYPE_F32, 0 } }, .data = 32 },
    /* data */
    { "offset 2^40",            "data at offset 1099511627776, expected 0", .t = { { "x", 0, 1, { 8 }, GGML_TYPE_F32, 1ull << 40 } }, .data = 32 },
    { "offset 4",               "data at offset 4, expected 0", .t = { { "x", 0, 1, { 8 }, GGML_TYPE_F32, 4 } }, .data = 36 },
    { "two tensors at 0",       "data at offset 0, expected 32", .t = { T_F32(8), { "y", 0, 1, { 8 }, GGML_TYPE_F32, 0 } }, .data = 32 },
    { "16 of 4096 bytes",       "4096 bytes declared, 16 left", .t = { T_F32(1024) }, .data = 16, .metadata_loads = true },
    { "2^40 bytes",             "1099511627776 bytes declared, 32 left", .t = { { "x", 0, 1, { 1ll << 40 }, GGML_TYPE_I8, 0 } }, .data = 32, .metadata_loads = true },
    { "no data section",        "data: begins", .t = { T_F32(8) }, .bare = true },
    { "no last padding",        NULL, .t = { T_F32(8), { "y", 0, 1, { 3 }, GGML_TYPE_F32, 32 } }, .data = 44 },
    { "bytes after the data",   NULL, .t = { T_F32(8) }, .data = 77 },
};
#define N_GGUF_CASES ((int) (sizeof gguf_cases/sizeof *gguf_cases))

static inline size_t gguf_scalar_size(int32_t type) {
    static const uint8_t sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8 };
    return type >= 0 && type < 13 ? sizes[type] : 0;
}

/* The file of a row. The data are the bytes 0, 1, 2, ... The caller frees p. */
static inline struct bytes gguf_case_bytes(const struct gguf_case *f, bool big) {
    struct bytes b = { .big = big };
    int tensors = 0, pairs = 0;
    while (tensors < 2 && f->t[tensors].name) tensors++;
    while (pairs < 2 && f->kv[pairs].key) pairs++;
    bytes_put(&b, "GGUF", 4);
    bytes_num(&b, f->version ? f->version : 3, 4);
    bytes_num(&b, (uint64_t) (f->tensors ? f->tensors : tensors), 8);
    bytes_num(&b, (uint64_t) (f->pairs ? f->pairs : pairs), 8);
    for (int i = 0; i < pairs; i++) {
        const uint64_t true_n = strlen(f->kv[i].key), n = f->kv[i].key_n ? f->kv[i].key_n : true_n;
        bytes_num(&b, n, 8);
        bytes_put(&b, f->kv[i].key, n < 64 ? n : true_n);
        if (f->kv[i].raw && !f->kv[i].raw_n) continue;
        bytes_num(&b, (uint32_t) f->kv[i].type, 4);
        if (f->kv[i].raw) bytes_put(&b, f->kv[i].raw, f->kv[i].raw_n);
        else              bytes_num(&b, f->kv[i].value, (int) gguf_scalar_size(f->kv[i].type));
    }
    for (int i = 0; i < tensors; i++) {
        bytes_text(&b, f->t[i].name, f->t[i].name_n ? f->t[i].name_n : strlen(f->t[i].name));
        bytes_num(&b, f->t[i].n_dims, 4);
        for (uint32_t j = 0; j < f->t[i].n_dims; j++) bytes_num(&b, (uint64_t) f->t[i].ne[j], 8);
        bytes_num(&b, (uint32_t) f->t[i].type, 4);
        bytes_num(&b, f->t[i].offset, 8);
    }
    if (!f->bare) bytes_pad(&b, f->align ? f->align : 32);
    for (size_t i = 0; i < f->data; i++) bytes_num(&b, (uint8_t) i, 1);
    return b;
}

#endif
