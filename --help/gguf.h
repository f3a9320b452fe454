#ifndef GGUF_H
#define GGUF_H
/* GGUF files: key/value metadata, tensor descriptions and tensor data. A context holds the first two; data stay in the file, in
 * a ggml context (params.ctx), or where the program has them.
 *
 * What comes from outside never aborts: the calls that read return NULL, those that write return false, after one line of
 * log that names the source, the key or tensor, the value found and the value expected. Calls with a wrong argument (an index
 * out of range, a getter of another type, a tensor name that is not there) abort with a message. Strings are UTF-8 by convention.
 * Contexts are not locked: threads may read one together, or one may change it. */

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GGUF_VERSION                 3
#define GGUF_DEFAULT_ALIGNMENT       32
#define GGUF_MAGIC                   "GGUF"
#define GGUF_KEY_GENERAL_ALIGNMENT   "general.alignment"

enum gguf_type {
    GGUF_TYPE_UINT8   = 0,
    GGUF_TYPE_INT8    = 1,
    GGUF_TYPE_UINT16  = 2,
    GGUF_TYPE_INT16   = 3,
    GGUF_TYPE_UINT32  = 4,
    GGUF_TYPE_INT32   = 5,
    GGUF_TYPE_FLOAT32 = 6,
    GGUF_TYPE_BOOL    = 7,
    GGUF_TYPE_STRING  = 8,
    GGUF_TYPE_ARRAY   = 9,
    GGUF_TYPE_UINT64  = 10,
    GGUF_TYPE_INT64   = 11,
    GGUF_TYPE_FLOAT64 = 12,
    GGUF_TYPE_COUNT   = 13,
};

struct gguf_context;

struct gguf_init_params {
    bool no_alloc;  /* true: created ggml tensors get no data */
    struct ggml_context **ctx;  /* optional out: new ggml_context holding one tensor per tensor info */
};

/* Reads len bytes at `offset` into output; a smaller return value is the end of the input. Offsets never decrease. */
typedef size_t ( *gguf_reader_callback_t)(void *userdata, void *output, uint64_t offset, size_t len);

/* ---- opening ------------------------------------------------------------------------------------------------------ */

/* A context of version 3, alignment 32, without keys and tensors. NULL when out of memory. */
GGML_API struct gguf_context *gguf_init_empty(void);

/* Read a file. NULL on error, and then *params.ctx is untouched or NULL. The caller frees the result with gguf_free and
 * *params.ctx, which lives on its own, with ggml_free.
 *
 * params.ctx NULL: metadata only; whether the data are there is not looked at.
 * params.ctx with no_alloc: one tensor for each info, in order, with data NULL. The file holds all data (the padding after the
 * last tensor may be missing): tensor i is the gguf_get_tensor_size bytes at gguf_get_data_offset + gguf_get_tensor_offset.
 * params.ctx without no_alloc: all data are read into the first tensor of *params.ctx, an I8 tensor named "GGUF tensor data
 * binary blob"; the tensors after it point into it.
 *
 * Files are in the byte order of the machine that wrote them. Of one of the other order the metadata can be read and the data
 * loaded, which converts them; with no_alloc tensors it is refused, since its data are no use where they are. Alignments are powers of two. Keys have 1 to
 * 65535 bytes and tensor names up to 63, without zero bytes; a string has up to 2^30 bytes, an array up to 2^30 elements. */
GGML_API struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params);

/* The same from where `file` stands to its end. The position afterwards is undefined; the caller closes it. Offsets that
 * gguf_get_data_offset returns count from the start of the file. NULL for NULL. */
GGML_API struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params);

/* The same from `size` bytes of memory, which are copied. NULL without a message for NULL or no bytes. */
GGML_API struct gguf_context *gguf_init_from_buffer(const void *data, size_t size, struct gguf_init_params params);

/* The same through a callback, called for at most max_chunk_read bytes at a time (0: no limit) and never for bytes beyond
 * max_expected_size, the length of the input. */
GGML_API struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback, void *userdata, size_t
    max_chunk_read, uint64_t max_expected_size, struct gguf_init_params params);

GGML_API void gguf_free(struct gguf_context *ctx);  /* NULL is fine */

/* ---- facts about the file ----------------------------------------------------------------------------------------- */

GGML_API const char *gguf_type_name(enum gguf_type type);                       /* "u8" ... "arr"; NULL for no type */
GGML_API uint32_t gguf_get_version(const struct gguf_context *ctx);
GGML_API size_t gguf_get_alignment(const struct gguf_context *ctx);             /* bytes, of every tensor's data */
GGML_API size_t gguf_get_data_offset(const struct gguf_context *ctx);           /* bytes, of the data section in the file; 0 if not read */

/* ---- keys: counted from 0 in the order of the file ----------------------------------------------------------------- */

GGML_API int64_t gguf_get_n_kv(const struct gguf_context *ctx);
GGML_API int64_t gguf_find_key(const struct gguf_context *ctx, const char *key);        /* -1: not there */
GGML_API const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id);
GGML_API enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id);
GGML_API enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id);      /* of the elements */

/* The value, which has exactly this type: nothing is converted. What the pointers point to belongs to the context and is valid
 * until the key is set or removed. A string with a zero byte inside is seen up to it. */
GGML_API uint8_t gguf_get_val_u8(const struct gguf_context *ctx, int64_t key_id);
GGML_API int8_t gguf_get_val_i8(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint16_t gguf_get_val_u16(const struct gguf_context *ctx, int64_t key_id);
GGML_API int16_t gguf_get_val_i16(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint32_t gguf_get_val_u32(const struct gguf_context *ctx, int64_t key_id);
GGML_API int32_t gguf_get_val_i32(const struct gguf_context *ctx, int64_t key_id);
GGML_API float gguf_get_val_f32(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint64_t gguf_get_val_u64(const struct gguf_context *ctx, int64_t key_id);
GGML_API int64_t gguf_get_val_i64(const struct gguf_context *ctx, int64_t key_id);
GGML_API double gguf_get_val_f64(const struct gguf_context *ctx, int64_t key_id);
GGML_API bool gguf_get_val_bool(const struct gguf_context *ctx, int64_t key_id);
GGML_API const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id);
GGML_API const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id);         /* any number */
GGML_API size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id);                 /* elements; 1 for a scalar */
GGML_API const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id);         /* not of strings; bools are bytes 0 and 1 */
GGML_API const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i);

/* ---- tensors: counted from 0 in the order of the file --------------------------------------------------------------- */

GGML_API int64_t gguf_get_n_tensors(const struct gguf_context *ctx);
GGML_API int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name);    /* -1: not there */
GGML_API size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id);      /* bytes from the start of the data section */
GGML_API const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id);  /* [GGML_MAX_DIMS] */
GGML_API enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id);        /* bytes, without padding */

/* ---- changing ------------------------------------------------------------------------------------------------------- */

/* Returns where the key was, -1 if it was not there. Keys behind it move up. */
GGML_API int64_t gguf_remove_key(struct gguf_context *ctx, const char *key);

/* Set a value, which is copied. An older one of the same key is removed, the new one goes to the end. Keys are not empty.
 * "general.alignment" is a u32 and a power of two, and is in force at once, for tensors that are there too.
 * Out of memory: one line of log, nothing changes, and the context is not written any more. */
GGML_API void gguf_set_val_u8(struct gguf_context *ctx, const char *key, uint8_t val);
GGML_API void gguf_set_val_i8(struct gguf_context *ctx, const char *key, int8_t val);
GGML_API void gguf_set_val_u16(struct gguf_context *ctx, const char *key, uint16_t val);
GGML_API void gguf_set_val_i16(struct gguf_context *ctx, const char *key, int16_t val);
GGML_API void gguf_set_val_u32(struct gguf_context *ctx, const char *key, uint32_t val);
GGML_API void gguf_set_val_i32(struct gguf_context *ctx, const char *key, int32_t val);
GGML_API void gguf_set_val_f32(struct gguf_context *ctx, const char *key, float val);
GGML_API void gguf_set_val_u64(struct gguf_context *ctx, const char *key, uint64_t val);
GGML_API void gguf_set_val_i64(struct gguf_context *ctx, const char *key, int64_t val);
GGML_API void gguf_set_val_f64(struct gguf_context *ctx, const char *key, double val);
GGML_API void gguf_set_val_bool(struct gguf_context *ctx, const char *key, bool val);
GGML_API void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val);

/* n elements of a number type at `data` (NULL for none); n strings. */
GGML_API void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type, const void *data,
    size_t n);
GGML_API void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data, size_t n);

/* Every pair of src, in order, set in ctx. */
GGML_API void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src);

/* Describes a tensor of a new name, type and shape; its data or buffer are noted, not copied, and live until the writing. */
GGML_API void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor);

/* Another type for a tensor, whose rows are whole blocks of it: size and the offsets behind it follow. */
GGML_API void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type);

/* Where the tensor's bytes (gguf_get_tensor_size) lie from now on. */
GGML_API void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data);

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/* Header, keys, infos and padding, then, unless only_meta, each tensor's data and padding, straight to the file and in the
 * machine's byte order. False when it cannot be written, a full disk included: the file is then incomplete. Tensors are
 * contiguous; data come from the tensor's buffer if it has one, else from its data pointer. */
GGML_API bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta);
GGML_API bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta);      /* from where it stands; not closed */

/* The bytes that only_meta writes: their number, and the bytes themselves into memory of that size. */
GGML_API size_t gguf_get_meta_size(const struct gguf_context *ctx);
GGML_API void gguf_get_meta_data(const struct gguf_context *ctx, void *data);

#ifdef __cplusplus
}
#endif

#endif
