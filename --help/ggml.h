#ifndef GGML_H
#define GGML_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Symbol visibility. A shared build defines GGML_SHARED (and GGML_BUILD while building the library itself). */
#if defined(GGML_SHARED) && defined(_WIN32) && !defined(__MINGW32__)
#    ifdef GGML_BUILD
#        define GGML_API __declspec(dllexport) extern
#    else
#        define GGML_API __declspec(dllimport) extern
#    endif
#elif defined(GGML_SHARED) && defined(__GNUC__)
#    define GGML_API __attribute__((visibility("default"))) extern
#else
#    define GGML_API extern
#endif
#define GGML_BACKEND_API GGML_API

#ifdef __cplusplus
#    define GGML_NORETURN [[noreturn]]
#    define GGML_RESTRICT __restrict
#else
#    define GGML_NORETURN _Noreturn
#    define GGML_RESTRICT restrict
#endif

#if defined(__GNUC__)
#    define GGML_DEPRECATED(func, hint)   func __attribute__((deprecated(hint)))
#    define GGML_ATTRIBUTE_FORMAT(f, a)   __attribute__((format(printf, f, a)))
#else
#    define GGML_DEPRECATED(func, hint)   func
#    define GGML_ATTRIBUTE_FORMAT(f, a)
#endif

#define GGML_UNUSED(x)       ((void) (x))
#define GGML_UNUSED_VARS(...) ((void) sizeof((__VA_ARGS__, 0)))
#define GGML_PAD(x, n)       (((x) + (n) - 1) & ~((n) - 1))

/* Stop with one line that says what is wrong; active in every build. */
#define GGML_ABORT(...)      ggml_abort(__FILE__, __LINE__, __VA_ARGS__)
#define GGML_ASSERT(x)       if (!(x)) GGML_ABORT("GGML_ASSERT(%s) failed", #x)
#ifdef NDEBUG
#    ifdef __GNUC__
#        define GGML_UNREACHABLE() __builtin_unreachable()
#    else
#        define GGML_UNREACHABLE() ((void) 0)
#    endif
#else
#    define GGML_UNREACHABLE() GGML_ABORT("statement should be unreachable")
#endif

/* Constant locals prefix0..prefix3 from an array of a tensor that may be NULL (then zero). */
#define GGML_TENSOR_LOCALS_1(type, prefix, pointer, array) \
    const type prefix##0 = (pointer) ? (type) (pointer)->array[0] : 0; GGML_UNUSED(prefix##0);
#define GGML_TENSOR_LOCALS_2(type, prefix, pointer, array) \
    GGML_TENSOR_LOCALS_1(type, prefix, pointer, array) \
    const type prefix##1 = (pointer) ? (type) (pointer)->array[1] : 0; GGML_UNUSED(prefix##1);
#define GGML_TENSOR_LOCALS_3(type, prefix, pointer, array) \
    GGML_TENSOR_LOCALS_2(type, prefix, pointer, array) \
    const type prefix##2 = (pointer) ? (type) (pointer)->array[2] : 0; GGML_UNUSED(prefix##2);
#define GGML_TENSOR_LOCALS(type, prefix, pointer, array) \
    GGML_TENSOR_LOCALS_3(type, prefix, pointer, array) \
    const type prefix##3 = (pointer) ? (type) (pointer)->array[3] : 0; GGML_UNUSED(prefix##3);
#define GGML_TENSOR_UNARY_OP_LOCALS \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne) GGML_TENSOR_LOCALS(size_t, nb0, src0, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne,  dst,  ne) GGML_TENSOR_LOCALS(size_t, nb,  dst,  nb)
#define GGML_TENSOR_BINARY_OP_LOCALS \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne) GGML_TENSOR_LOCALS(size_t, nb0, src0, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne) GGML_TENSOR_LOCALS(size_t, nb1, src1, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne,  dst,  ne) GGML_TENSOR_LOCALS(size_t, nb,  dst,  nb)
#define GGML_TENSOR_TERNARY_OP_LOCALS \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne) GGML_TENSOR_LOCALS(size_t, nb0, src0, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne) GGML_TENSOR_LOCALS(size_t, nb1, src1, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne2, src2, ne) GGML_TENSOR_LOCALS(size_t, nb2, src2, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne,  dst,  ne) GGML_TENSOR_LOCALS(size_t, nb,  dst,  nb)
#define GGML_TENSOR_BINARY_OP_LOCALS01 \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne) GGML_TENSOR_LOCALS(size_t, nb0, src0, nb) \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne) GGML_TENSOR_LOCALS(size_t, nb1, src1, nb)

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_FILE_MAGIC              1734831468
#define GGML_FILE_VERSION            2
#define GGML_QNT_VERSION             2
#define GGML_QNT_VERSION_FACTOR      1000
#define GGML_MAX_DIMS                4
#define GGML_MAX_PARAMS              2048
#define GGML_MAX_SRC                 10
#define GGML_MAX_N_THREADS           512
#define GGML_MAX_OP_PARAMS           64
#define GGML_MAX_NAME                64
#define GGML_DEFAULT_N_THREADS       4
#define GGML_DEFAULT_GRAPH_SIZE      2048
#define GGML_MEM_ALIGN               16
#define GGML_EXIT_SUCCESS            0
#define GGML_EXIT_ABORTED            1
#define GGML_ROPE_TYPE_NORMAL        0
#define GGML_ROPE_TYPE_NEOX          2
#define GGML_ROPE_TYPE_MROPE         8
#define GGML_ROPE_TYPE_VISION        24
#define GGML_ROPE_TYPE_IMROPE        40
#define GGML_MROPE_SECTIONS          4
#define GGML_N_TASKS_MAX             -1

enum ggml_status {
    GGML_STATUS_ALLOC_FAILED = -2,
    GGML_STATUS_FAILED       = -1,
    GGML_STATUS_SUCCESS      = 0,
    GGML_STATUS_ABORTED      = 1,
};

enum ggml_type {
    GGML_TYPE_F32     = 0,
    GGML_TYPE_F16     = 1,
    GGML_TYPE_Q4_0    = 2,
    GGML_TYPE_Q4_1    = 3,
    GGML_TYPE_Q5_0    = 6,
    GGML_TYPE_Q5_1    = 7,
    GGML_TYPE_Q8_0    = 8,
    GGML_TYPE_Q8_1    = 9,
    GGML_TYPE_Q2_K    = 10,
    GGML_TYPE_Q3_K    = 11,
    GGML_TYPE_Q4_K    = 12,
    GGML_TYPE_Q5_K    = 13,
    GGML_TYPE_Q6_K    = 14,
    GGML_TYPE_Q8_K    = 15,
    GGML_TYPE_IQ2_XXS = 16,
    GGML_TYPE_IQ2_XS  = 17,
    GGML_TYPE_IQ3_XXS = 18,
    GGML_TYPE_IQ1_S   = 19,
    GGML_TYPE_IQ4_NL  = 20,
    GGML_TYPE_IQ3_S   = 21,
    GGML_TYPE_IQ2_S   = 22,
    GGML_TYPE_IQ4_XS  = 23,
    GGML_TYPE_I8      = 24,
    GGML_TYPE_I16     = 25,
    GGML_TYPE_I32     = 26,
    GGML_TYPE_I64     = 27,
    GGML_TYPE_F64     = 28,
    GGML_TYPE_IQ1_M   = 29,
    GGML_TYPE_BF16    = 30,
    GGML_TYPE_TQ1_0   = 34,
    GGML_TYPE_TQ2_0   = 35,
    GGML_TYPE_MXFP4   = 39,
    GGML_TYPE_NVFP4   = 40,
    GGML_TYPE_Q1_0    = 41,
    GGML_TYPE_Q2_0    = 42,
    GGML_TYPE_COUNT   = 43,
};

enum ggml_prec {
    GGML_PREC_UNDEFINED = 0,
    GGML_PREC_DEFAULT   = 0,
    GGML_PREC_F32       = 10,
    GGML_PREC_BF16      = 15,
    GGML_PREC_F16       = 20,
    GGML_PREC_Q8        = 30,
    GGML_PREC_Q4        = 40,
};

enum ggml_op_hint {
    GGML_HINT_NONE             = 0,
    GGML_HINT_SRC0_IS_HADAMARD = 1,
};

enum ggml_ftype {
    GGML_FTYPE_UNKNOWN              = -1,
    GGML_FTYPE_ALL_F32              = 0,
    GGML_FTYPE_MOSTLY_F16           = 1,
    GGML_FTYPE_MOSTLY_Q4_0          = 2,
    GGML_FTYPE_MOSTLY_Q4_1          = 3,
    GGML_FTYPE_MOSTLY_Q4_1_SOME_F16 = 4,
    GGML_FTYPE_MOSTLY_Q8_0          = 7,
    GGML_FTYPE_MOSTLY_Q5_0          = 8,
    GGML_FTYPE_MOSTLY_Q5_1          = 9,
    GGML_FTYPE_MOSTLY_Q2_K          = 10,
    GGML_FTYPE_MOSTLY_Q3_K          = 11,
    GGML_FTYPE_MOSTLY_Q4_K          = 12,
    GGML_FTYPE_MOSTLY_Q5_K          = 13,
    GGML_FTYPE_MOSTLY_Q6_K          = 14,
    GGML_FTYPE_MOSTLY_IQ2_XXS       = 15,
    GGML_FTYPE_MOSTLY_IQ2_XS        = 16,
    GGML_FTYPE_MOSTLY_IQ3_XXS       = 17,
    GGML_FTYPE_MOSTLY_IQ1_S         = 18,
    GGML_FTYPE_MOSTLY_IQ4_NL        = 19,
    GGML_FTYPE_MOSTLY_IQ3_S         = 20,
    GGML_FTYPE_MOSTLY_IQ2_S         = 21,
    GGML_FTYPE_MOSTLY_IQ4_XS        = 22,
    GGML_FTYPE_MOSTLY_IQ1_M         = 23,
    GGML_FTYPE_MOSTLY_BF16          = 24,
    GGML_FTYPE_MOSTLY_MXFP4         = 25,
    GGML_FTYPE_MOSTLY_NVFP4         = 26,
    GGML_FTYPE_MOSTLY_Q1_0          = 27,
    GGML_FTYPE_MOSTLY_Q2_0          = 28,
};

enum ggml_op {
    GGML_OP_NONE                    = 0,
    GGML_OP_DUP                     = 1,
    GGML_OP_ADD                     = 2,
    GGML_OP_ADD_ID                  = 3,
    GGML_OP_ADD1                    = 4,
    GGML_OP_ACC                     = 5,
    GGML_OP_SUB                     = 6,
    GGML_OP_MUL                     = 7,
    GGML_OP_DIV                     = 8,
    GGML_OP_SQR                     = 9,
    GGML_OP_SQRT                    = 10,
    GGML_OP_LOG                     = 11,
    GGML_OP_SIN                     = 12,
    GGML_OP_COS                     = 13,
    GGML_OP_SUM                     = 14,
    GGML_OP_SUM_ROWS                = 15,
    GGML_OP_CUMSUM                  = 16,
    GGML_OP_MEAN                    = 17,
    GGML_OP_ARGMAX                  = 18,
    GGML_OP_COUNT_EQUAL             = 19,
    GGML_OP_REPEAT                  = 20,
    GGML_OP_REPEAT_BACK             = 21,
    GGML_OP_CONCAT                  = 22,
    GGML_OP_SILU_BACK               = 23,
    GGML_OP_NORM                    = 24,
    GGML_OP_RMS_NORM                = 25,
    GGML_OP_RMS_NORM_BACK           = 26,
    GGML_OP_GROUP_NORM              = 27,
    GGML_OP_L2_NORM                 = 28,
    GGML_OP_MUL_MAT                 = 29,
    GGML_OP_MUL_MAT_ID              = 30,
    GGML_OP_OUT_PROD                = 31,
    GGML_OP_SCALE                   = 32,
    GGML_OP_SET                     = 33,
    GGML_OP_CPY                     = 34,
    GGML_OP_CONT                    = 35,
    GGML_OP_RESHAPE                 = 36,
    GGML_OP_VIEW                    = 37,
    GGML_OP_PERMUTE                 = 38,
    GGML_OP_TRANSPOSE               = 39,
    GGML_OP_GET_ROWS                = 40,
    GGML_OP_GET_ROWS_BACK           = 41,
    GGML_OP_SET_ROWS                = 42,
    GGML_OP_DIAG                    = 43,
    GGML_OP_DIAG_MASK_INF           = 44,
    GGML_OP_DIAG_MASK_ZERO          = 45,
    GGML_OP_SOFT_MAX                = 46,
    GGML_OP_SOFT_MAX_BACK           = 47,
    GGML_OP_ROPE                    = 48,
    GGML_OP_ROPE_BACK               = 49,
    GGML_OP_CLAMP                   = 50,
    GGML_OP_CONV_TRANSPOSE_1D       = 51,
    GGML_OP_IM2COL                  = 52,
    GGML_OP_IM2COL_BACK             = 53,
    GGML_OP_IM2COL_3D               = 54,
    GGML_OP_COL2IM_1D               = 55,
    GGML_OP_CONV_2D                 = 56,
    GGML_OP_CONV_3D                 = 57,
    GGML_OP_CONV_2D_DW              = 58,
    GGML_OP_CONV_TRANSPOSE_2D       = 59,
    GGML_OP_POOL_1D                 = 60,
    GGML_OP_POOL_2D                 = 61,
    GGML_OP_POOL_2D_BACK            = 62,
    GGML_OP_UPSCALE                 = 63,
    GGML_OP_PAD                     = 64,
    GGML_OP_PAD_REFLECT_1D          = 65,
    GGML_OP_ROLL                    = 66,
    GGML_OP_ARANGE                  = 67,
    GGML_OP_TIMESTEP_EMBEDDING      = 68,
    GGML_OP_ARGSORT                 = 69,
    GGML_OP_TOP_K                   = 70,
    GGML_OP_LEAKY_RELU              = 71,
    GGML_OP_TRI                     = 72,
    GGML_OP_FILL                    = 73,
    GGML_OP_FLASH_ATTN_EXT          = 74,
    GGML_OP_FLASH_ATTN_BACK         = 75,
    GGML_OP_SSM_CONV                = 76,
    GGML_OP_SSM_SCAN                = 77,
    GGML_OP_WIN_PART                = 78,
    GGML_OP_WIN_UNPART              = 79,
    GGML_OP_GET_REL_POS             = 80,
    GGML_OP_ADD_REL_POS             = 81,
    GGML_OP_RWKV_WKV6               = 82,
    GGML_OP_GATED_LINEAR_ATTN       = 83,
    GGML_OP_RWKV_WKV7               = 84,
    GGML_OP_SOLVE_TRI               = 85,
    GGML_OP_GATED_DELTA_NET         = 86,
    GGML_OP_LIGHTNING_INDEXER       = 87,
    GGML_OP_DSV4_HC_COMB            = 88,
    GGML_OP_DSV4_HC_PRE             = 89,
    GGML_OP_DSV4_HC_POST            = 90,
    GGML_OP_UNARY                   = 91,
    GGML_OP_MAP_CUSTOM1             = 92,
    GGML_OP_MAP_CUSTOM2             = 93,
    GGML_OP_MAP_CUSTOM3             = 94,
    GGML_OP_CUSTOM                  = 95,
    GGML_OP_CROSS_ENTROPY_LOSS      = 96,
    GGML_OP_CROSS_ENTROPY_LOSS_BACK = 97,
    GGML_OP_OPT_STEP_ADAMW          = 98,
    GGML_OP_OPT_STEP_SGD            = 99,
    GGML_OP_GLU                     = 100,
    GGML_OP_COUNT                   = 101,
};

enum ggml_unary_op {
    GGML_UNARY_OP_ABS         = 0,
    GGML_UNARY_OP_SGN         = 1,
    GGML_UNARY_OP_NEG         = 2,
    GGML_UNARY_OP_STEP        = 3,
    GGML_UNARY_OP_TANH        = 4,
    GGML_UNARY_OP_ELU         = 5,
    GGML_UNARY_OP_RELU        = 6,
    GGML_UNARY_OP_SIGMOID     = 7,
    GGML_UNARY_OP_GELU        = 8,
    GGML_UNARY_OP_GELU_QUICK  = 9,
    GGML_UNARY_OP_SILU        = 10,
    GGML_UNARY_OP_HARDSWISH   = 11,
    GGML_UNARY_OP_HARDSIGMOID = 12,
    GGML_UNARY_OP_EXP         = 13,
    GGML_UNARY_OP_EXPM1       = 14,
    GGML_UNARY_OP_SOFTPLUS    = 15,
    GGML_UNARY_OP_GELU_ERF    = 16,
    GGML_UNARY_OP_XIELU       = 17,
    GGML_UNARY_OP_FLOOR       = 18,
    GGML_UNARY_OP_CEIL        = 19,
    GGML_UNARY_OP_ROUND       = 20,
    GGML_UNARY_OP_TRUNC       = 21,
    GGML_UNARY_OP_COUNT       = 22,
};

enum ggml_glu_op {
    GGML_GLU_OP_REGLU        = 0,
    GGML_GLU_OP_GEGLU        = 1,
    GGML_GLU_OP_SWIGLU       = 2,
    GGML_GLU_OP_SWIGLU_OAI   = 3,
    GGML_GLU_OP_GEGLU_ERF    = 4,
    GGML_GLU_OP_GEGLU_QUICK  = 5,
    GGML_GLU_OP_SWIGLU_CLAMP = 6,
    GGML_GLU_OP_COUNT        = 7,
};

enum ggml_object_type {
    GGML_OBJECT_TYPE_TENSOR      = 0,
    GGML_OBJECT_TYPE_GRAPH       = 1,
    GGML_OBJECT_TYPE_WORK_BUFFER = 2,
};

enum ggml_log_level {
    GGML_LOG_LEVEL_NONE  = 0,
    GGML_LOG_LEVEL_DEBUG = 1,
    GGML_LOG_LEVEL_INFO  = 2,
    GGML_LOG_LEVEL_WARN  = 3,
    GGML_LOG_LEVEL_ERROR = 4,
    GGML_LOG_LEVEL_CONT  = 5,
};

enum ggml_tensor_flag {
    GGML_TENSOR_FLAG_INPUT   = 1,
    GGML_TENSOR_FLAG_OUTPUT  = 2,
    GGML_TENSOR_FLAG_PARAM   = 4,
    GGML_TENSOR_FLAG_LOSS    = 8,
    GGML_TENSOR_FLAG_COMPUTE = 16,
};

enum ggml_tri_type {
    GGML_TRI_TYPE_UPPER_DIAG = 0,
    GGML_TRI_TYPE_UPPER      = 1,
    GGML_TRI_TYPE_LOWER_DIAG = 2,
    GGML_TRI_TYPE_LOWER      = 3,
};

enum ggml_op_pool {
    GGML_OP_POOL_MAX   = 0,
    GGML_OP_POOL_AVG   = 1,
    GGML_OP_POOL_COUNT = 2,
};

enum ggml_scale_mode {
    GGML_SCALE_MODE_NEAREST  = 0,
    GGML_SCALE_MODE_BILINEAR = 1,
    GGML_SCALE_MODE_BICUBIC  = 2,
    GGML_SCALE_MODE_COUNT    = 3,
};

enum ggml_scale_flag {
    GGML_SCALE_FLAG_ALIGN_CORNERS = 256,
    GGML_SCALE_FLAG_ANTIALIAS     = 512,
};

enum ggml_sort_order {
    GGML_SORT_ORDER_ASC  = 0,
    GGML_SORT_ORDER_DESC = 1,
};

enum ggml_sched_priority {
    GGML_SCHED_PRIO_LOW      = -1,
    GGML_SCHED_PRIO_NORMAL   = 0,
    GGML_SCHED_PRIO_MEDIUM   = 1,
    GGML_SCHED_PRIO_HIGH     = 2,
    GGML_SCHED_PRIO_REALTIME = 3,
};

struct ggml_object;
struct ggml_context;
struct ggml_cgraph;
struct ggml_threadpool;
struct ggml_backend_buffer;

typedef uint16_t ggml_fp16_t;
typedef struct { uint16_t bits; } ggml_bf16_t;
typedef uint8_t ggml_guid[16];
typedef ggml_guid *ggml_guid_t;
typedef struct ggml_threadpool *ggml_threadpool_t;

struct ggml_init_params {
    size_t mem_size;  /* arena bytes; 0 is raised to GGML_MEM_ALIGN; padded up to it only when the arena is allocated internally */
    void *mem_buffer;  /* caller-owned arena or NULL = allocate (and free) internally; must be GGML_MEM_ALIGN aligned */
    bool no_alloc;  /* true: tensor objects carry no data area, data starts NULL */
};

struct ggml_tensor {
    enum ggml_type type;  /* element/block type */
    struct ggml_backend_buffer *buffer;  /* backend buffer that owns data (NULL until allocated) */
    int64_t ne[GGML_MAX_DIMS];  /* elements per dimension, dim 0 innermost; unused dims are 1 */
    size_t nb[GGML_MAX_DIMS];  /* byte stride per dimension; nb0=type size of one block, nb1=nb0*ne0/blck (+padding) */
    enum ggml_op op;  /* operation that produces this tensor (NONE = leaf) */
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];  /* 16 int32 slots, zero initialised, float values stored by bit pattern */
    int32_t flags;  /* bit set of ggml_tensor_flag */
    struct ggml_tensor *src[GGML_MAX_SRC];  /* operands; NULL = absent; holes allowed */
    struct ggml_tensor *view_src;  /* root storage owner of a view (never itself a view) */
    size_t view_offs;  /* byte offset into view_src data (accumulated) */
    void *data;  /* address of element 0 (backend address) */
    char name[GGML_MAX_NAME];  /* NUL terminated label, truncated to 63 chars */
    void *extra;  /* backend private */
    char padding[8];  /* keeps sizeof a multiple of 16 (x86_64) */
};

static const size_t GGML_TENSOR_SIZE = sizeof(struct ggml_tensor);

typedef void ( *ggml_abort_callback_t)(const char *error_message);
typedef bool ( *ggml_abort_callback)(void *data);
typedef void ( *ggml_custom1_op_t)(struct ggml_tensor *dst , const struct ggml_tensor *a, int ith, int nth, void *userdata);
typedef void ( *ggml_custom2_op_t)(struct ggml_tensor *dst , const struct ggml_tensor *a, const struct ggml_tensor *b, int ith, int nth, void *userdata);
typedef void ( *ggml_custom3_op_t)(struct ggml_tensor *dst , const struct ggml_tensor *a, const struct ggml_tensor *b, const struct ggml_tensor *c, int ith, int nth, void *userdata);
typedef void ( *ggml_custom_op_t)(struct ggml_tensor *dst , int ith, int nth, void *userdata);
typedef void ( *ggml_log_callback)(enum ggml_log_level level, const char *text, void *user_data);
typedef void ( *ggml_to_float_t)(const void * GGML_RESTRICT x, float * GGML_RESTRICT y, int64_t k);
typedef void ( *ggml_from_float_t)(const float * GGML_RESTRICT x, void * GGML_RESTRICT y, int64_t k);

struct ggml_type_traits {
    const char *type_name;
    int64_t blck_size;
    int64_t blck_size_interleave;  /* 0 for every type in the target (legacy) */
    size_t type_size;
    bool is_quantized;
    ggml_to_float_t to_float;  /* dequantise k elements (k multiple of block); NULL for f32, ints, f64, q8_1, q8_K */
    ggml_from_float_t from_float_ref;  /* reference quantiser; NULL where an importance matrix is mandatory (iq2_xxs, iq2_xs, iq1_s, iq1_m) and for q8_K, ints, f32 */
};

struct ggml_threadpool_params {
    bool cpumask[GGML_MAX_N_THREADS];  /* per-core affinity flags; all false = default affinity */
    int n_threads;
    enum ggml_sched_priority prio;
    uint32_t poll;  /* 0..100 busy-wait level (default 50) */
    bool strict_cpu;
    bool paused;
};

/* ---- errors, log ----------------------------------------------------------------------------------------------- */

/* Stop the program: the callback gets the message "file:line: text" (none set: it goes to stderr), then abort() is called in
 * any case. Only a wrong call by the program ends here, never a file, a prompt or a lack of memory. The setter returns the
 * callback that was set before. */
GGML_API ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback);
GGML_NORETURN GGML_API void ggml_abort(const char *file, int line, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);
/* A static text for any value. */
GGML_API const char *ggml_status_to_string(enum ggml_status status);
/* Where log text goes; NULL restores the default, stderr. Every line ends with its own newline; level CONT goes on with the
 * line before. Not to be changed while other threads are inside the library. */
GGML_API void ggml_log_set(ggml_log_callback log_callback, void *user_data);
GGML_API void ggml_log_get(ggml_log_callback *log_callback, void **user_data);

/* ---- what this library is -------------------------------------------------------------------------------------- */

/* Static strings: the version of the interface that is served, and who serves it. */
GGML_API const char *ggml_version(void);
GGML_API const char *ggml_commit(void);
GGML_API bool ggml_guid_matches(ggml_guid_t guid_a, ggml_guid_t guid_b);

/* ---- time, files ----------------------------------------------------------------------------------------------- */

/* A clock that only goes forward. ggml_time_init does nothing and may be left out. */
GGML_API void ggml_time_init(void);
GGML_API int64_t ggml_time_ms(void);
GGML_API int64_t ggml_time_us(void);
/* Processor time of the whole process, in ticks. */
GGML_API int64_t ggml_cycles(void);
GGML_API int64_t ggml_cycles_per_ms(void);
/* As fopen. The caller closes the file. */
GGML_API FILE *ggml_fopen(const char *fname, const char *mode);

/* ---- numbers: F16, BF16 ---------------------------------------------------------------------------------------- */

/* To the nearest, ties to even; out of range becomes an infinity; NaN stays NaN. Back is exact. Rows are n elements. */
GGML_API float ggml_fp16_to_fp32(ggml_fp16_t);
GGML_API ggml_fp16_t ggml_fp32_to_fp16(float);
GGML_API void ggml_fp16_to_fp32_row(const ggml_fp16_t *, float *, int64_t);
GGML_API void ggml_fp32_to_fp16_row(const float *, ggml_fp16_t *, int64_t);
GGML_API float ggml_bf16_to_fp32(ggml_bf16_t);
GGML_API ggml_bf16_t ggml_fp32_to_bf16(float);
GGML_API void ggml_bf16_to_fp32_row(const ggml_bf16_t *, float *, int64_t);
GGML_API void ggml_fp32_to_bf16_row(const float *, ggml_bf16_t *, int64_t);
GGML_API void ggml_fp32_to_bf16_row_ref(const float *, ggml_bf16_t *, int64_t);

/* ---- types ----------------------------------------------------------------------------------------------------- */

/* A type stores `blck_size` elements in `type_size` bytes. For a number that is no type these answer 0, or a text that says
 * so: types may come out of files. ggml_type_sizef is bytes per element; ggml_row_size bytes of ne elements, 0 when they are
 * more than a size_t holds. */
GGML_API int64_t ggml_blck_size(enum ggml_type type);
GGML_API size_t ggml_type_size(enum ggml_type type);
GGML_API double ggml_type_sizef(enum ggml_type type);
GGML_API size_t ggml_row_size(enum ggml_type type, int64_t ne);
GGML_API const char *ggml_type_name(enum ggml_type type);
GGML_API bool ggml_is_quantized(enum ggml_type type);
/* The above, and how to convert rows of whole blocks from and to F32 (NULL where there is no such function, and for F32
 * itself). Static; aborts on a number above the last type. */
GGML_API const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type);
/* The type that most tensors of such a file have; GGML_TYPE_COUNT where there is no single one. */
GGML_API enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype);
/* Whether `nbytes` bytes are whole blocks without NaN or infinity in a value or a scale; one line of log where not. */
GGML_API bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes);

/* ---- names of ops ---------------------------------------------------------------------------------------------- */

/* Static strings. ggml_op_desc names what a tensor computes: for GGML_OP_UNARY and GGML_OP_GLU the function. */
GGML_API const char *ggml_op_name(enum ggml_op op);
GGML_API const char *ggml_op_symbol(enum ggml_op op);
GGML_API const char *ggml_unary_op_name(enum ggml_unary_op op);
GGML_API const char *ggml_glu_op_name(enum ggml_glu_op op);
GGML_API const char *ggml_op_desc(const struct ggml_tensor *t);
/* Which function a node of GGML_OP_UNARY or GGML_OP_GLU computes; aborts on any other node. */
GGML_API enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor);
GGML_API enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor);

/* ---- contexts -------------------------------------------------------------------------------------------------- */

/* A context is one block of memory in which tensors and graphs are laid one after the other; nothing in it is freed singly.
 * NULL after one line of log when there is no memory for it. With a mem_buffer the caller keeps that memory, and it must stay
 * until ggml_free; else the block is aligned to 64 bytes and freed with the context. One thread at a time may build in a
 * context.
 *
 * Where it is full, the call that wanted more logs one line (how much was missing) and returns NULL. A NULL tensor flows
 * through every builder, and a graph that is given one can be built on but not computed: GGML_STATUS_ALLOC_FAILED. */
GGML_API struct ggml_context *ggml_init(struct ggml_init_params params);
/* Forget everything in the context, keep the block. */
GGML_API void ggml_reset(struct ggml_context *ctx);
GGML_API void ggml_free(struct ggml_context *ctx);
/* Bytes in use; the block and its size. What a tensor without data takes of it. */
GGML_API size_t ggml_used_mem(const struct ggml_context *ctx);
GGML_API void *ggml_get_mem_buffer(const struct ggml_context *ctx);
GGML_API size_t ggml_get_mem_size(const struct ggml_context *ctx);
GGML_API size_t ggml_tensor_overhead(void);
/* With no_alloc new tensors get no data: a buffer or an allocator gives it to them later. */
GGML_API bool ggml_get_no_alloc(struct ggml_context *ctx);
GGML_API void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc);
/* Bytes of the largest tensor. */
GGML_API size_t ggml_get_max_tensor_size(const struct ggml_context *ctx);
GGML_API void ggml_print_object(const struct ggml_object *obj);
GGML_API void ggml_print_objects(const struct ggml_context *ctx);

/* ---- new tensors ----------------------------------------------------------------------------------------------- */

/* ne: elements of each of the 1 to 4 dimensions, innermost first; 0 makes an empty tensor. Packed strides, no op, no name,
 * data (behind the struct, aligned to 16 bytes, not zeroed) unless the context says no_alloc. NULL, after one line of log,
 * also for sizes that no memory can hold. */
GGML_API struct ggml_tensor *ggml_new_tensor(struct ggml_context *ctx, enum ggml_type type, int n_dims, const
    int64_t *ne);
GGML_API struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0);
GGML_API struct ggml_tensor *ggml_new_tensor_2d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t
    ne1);
GGML_API struct ggml_tensor *ggml_new_tensor_3d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t
    ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_new_tensor_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t
    ne1, int64_t ne2, int64_t ne3);
/* nbytes of the context's block, aligned to 16. */
GGML_API void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes);
/* A new tensor of the same type and shape, packed, nothing copied. */
GGML_API struct ggml_tensor *ggml_dup_tensor(struct ggml_context *ctx, const struct ggml_tensor *src);
/* The same memory under another name, strides included; no node of a graph. */
GGML_API struct ggml_tensor *ggml_view_tensor(struct ggml_context *ctx, struct ggml_tensor *src);
/* In the order of creation; NULL behind the last. By name: the first whose name is exactly this, or NULL. */
GGML_API struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx);
GGML_API struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx, struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name);

/* ---- tensors: name, flags, data -------------------------------------------------------------------------------- */

/* At most 63 bytes are kept. Both return the tensor; format takes printf's arguments, among them its own name. */
GGML_API const char *ggml_get_name(const struct ggml_tensor *tensor);
GGML_API struct ggml_tensor *ggml_set_name(struct ggml_tensor *tensor, const char *name);
GGML_API struct ggml_tensor *ggml_format_name(struct ggml_tensor *tensor, const char *fmt, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
/* Written by the program before each computation: placed so that nothing else is there when it starts. Not for results. */
GGML_API void ggml_set_input(struct ggml_tensor *tensor);
/* Read by the program afterwards: its memory is not used again within the graph. */
GGML_API void ggml_set_output(struct ggml_tensor *tensor);
/* To be trained; a loss, one F32, to be minimised. */
GGML_API void ggml_set_param(struct ggml_tensor *tensor);
GGML_API void ggml_set_loss(struct ggml_tensor *tensor);
/* The address of element 0, in the memory of its backend; NULL until it has one. The second aborts when not F32. */
GGML_API void *ggml_get_data(const struct ggml_tensor *tensor);
GGML_API float *ggml_get_data_f32(const struct ggml_tensor *tensor);
/* All bytes 0. Returns the tensor. */
GGML_API struct ggml_tensor *ggml_set_zero(struct ggml_tensor *tensor);
/* The four indices of element i in the order of a packed tensor; each may be NULL. */
GGML_API void ggml_unravel_index(const struct ggml_tensor *tensor, int64_t i, int64_t *i0, int64_t *i1, int64_t *i2,
    int64_t *i3);

/* ---- tensors: shape and layout --------------------------------------------------------------------------------- */

GGML_API int64_t ggml_nelements(const struct ggml_tensor *tensor);
GGML_API int64_t ggml_nrows(const struct ggml_tensor *tensor);
/* Bytes from the first to the end of the last element, gaps included; that rounded up to 16; bytes of an element or block. */
GGML_API size_t ggml_nbytes(const struct ggml_tensor *tensor);
GGML_API size_t ggml_nbytes_pad(const struct ggml_tensor *tensor);
GGML_API size_t ggml_element_size(const struct ggml_tensor *tensor);
/* 1 to 4: trailing dimensions of 1 do not count. */
GGML_API int ggml_n_dims(const struct ggml_tensor *tensor);
/* At most this many dimensions are not 1; some dimension is 0; the memory is another tensor's. */
GGML_API bool ggml_is_scalar(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_vector(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_matrix(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_3d(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_empty(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_view(const struct ggml_tensor *tensor);
/* A stride is larger than the next one; the first is larger than the second. */
GGML_API bool ggml_is_permuted(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_transposed(const struct ggml_tensor *tensor);
/* Packed in all dimensions. With _1 dimension 1, with _2 also 2 may have any stride; with _to_n only the first n dimensions
 * are looked at. Strides of dimensions of 1 do not count. */
GGML_API bool ggml_is_contiguous(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_0(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor);
/* No gaps, in any order of dimensions; the elements of a row are packed; channels innermost: strides 2 < 0 < 1. */
GGML_API bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor);
GGML_API bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor);
GGML_API bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
GGML_API bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1);
/* Whether t0, repeated whole times, fills t1. */
GGML_API bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1);

/* operations: how to read them.
 *
 * A builder adds a node to the context: it notes what is to be computed, and computes nothing. Shapes are written [ne0, ne1,
 * ne2, ne3], innermost first, missing dimensions 1. Unless said otherwise the result is a new packed tensor of a's type and
 * shape, F32, F16 and BF16 are computed in F32 and rounded once, and operands may lie in memory in any way (permuted,
 * transposed, windows of larger tensors, empty). Operands must outlive the computation; nothing is copied.
 *
 * The forms with _inplace return a view of a, over which the result is written.
 *
 * Errors: a NULL operand (or a full arena) gives NULL. A call that breaks a rule stated here stops the program with one line
 * that names the call, the rule and the operands (ggml_abort). Indices are data: one outside its tensor makes computing the
 * graph return GGML_STATUS_FAILED, and nothing is written through it. Results never depend on the number of threads. */

/* ---- element-wise, two operands -------------------------------------------------------------------------------- */

/* a op b, with b repeated over a: every dimension of a is a multiple of b's. a may be quantised for add; it is
 * decoded, added to and encoded again. */
GGML_API struct ggml_tensor *ggml_add(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_add_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_sub(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_sub_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_mul(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_mul_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_div(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_div_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* a + b in the given type. a: quantised, F16 or BF16; rows of b are as long as a's. */
GGML_API struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    enum ggml_type type);

/* y[:, u, t] = a[:, u, t] + b[:, ids[u, t]]. a [n, U, T], b [n, E], ids I32 [U, T] in 0 .. E-1. */
GGML_API struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *ids);

/* a + b for a b of one element. */
GGML_API struct ggml_tensor *ggml_add1(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_add1_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);

/* a with b added to, or put over, a region of it: b's element i lies at byte offset + i1*nb1 + i2*nb2 + i3*nb3 of a,
 * elements of a row adjacent. a is contiguous, the region lies inside it, strides and offset are below 2^31. acc:
 * F32. The 1d and 2d forms take the other strides from a. */
GGML_API struct ggml_tensor *ggml_acc(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t nb1, size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_acc_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t nb1, size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_set(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t nb1, size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_set_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t nb1, size_t nb2, size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t offset);
GGML_API struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, size_t nb1, size_t offset);

/* ---- element-wise, one operand --------------------------------------------------------------------------------- */

/* Square, square root, natural logarithm, sine, cosine. */
GGML_API struct ggml_tensor *ggml_sqr(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqr_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqrt(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqrt_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_log(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_log_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sin(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sin_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cos(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cos_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* f(a) for any function of enum ggml_unary_op but XIELU, whose parameters only its own builder sets. The named forms
 * below are the same node. */
GGML_API struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_unary_op op);
GGML_API struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    enum ggml_unary_op op);

/* |x|; sign (NaN: 0); -x; 1 for x > 0 else 0. */
GGML_API struct ggml_tensor *ggml_abs(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_abs_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* tanh x; 1/(1 + e^-x); e^x; e^x - 1; ln(1 + e^x), which is x above 20. */
GGML_API struct ggml_tensor *ggml_tanh(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_tanh_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_exp(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_exp_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* max(x, 0); x > 0 ? x : e^x - 1; x/(1 + e^-x). */
GGML_API struct ggml_tensor *ggml_relu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_relu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715x^3))); x/2*(1 + erf(x/sqrt 2)); x/(1 + e^-1.702x). All in F32, no tables. */
GGML_API struct ggml_tensor *ggml_gelu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* x*clamp((x + 3)/6, 0, 1); clamp((x + 3)/6, 0, 1). */
GGML_API struct ggml_tensor *ggml_hardswish(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_hardsigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

/* To the integer below, above, nearest (halves away from zero), nearer to zero. */
GGML_API struct ggml_tensor *ggml_floor(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_floor_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

/* With p = softplus(alpha_p) and n = beta + softplus(alpha_n): x > 0: p*x^2 + beta*x; else (expm1(min(x, eps)) - x)*n
 * + beta*x. */
GGML_API struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a, float alpha_n, float alpha_p,
    float beta, float eps);

/* x > 0 ? x : negative_slope*x. */
GGML_API struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a, float negative_slope,
    bool inplace);

/* min(max(x, min), max); NaN stays NaN. */
GGML_API struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max);
GGML_API struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float min,
    float max);

/* s*x; s*x + b. */
GGML_API struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s);
GGML_API struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s);
GGML_API struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a, float s, float b);
GGML_API struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float s,
    float b);

/* c everywhere; a gives the type and shape, its values are not read. */
GGML_API struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c);
GGML_API struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float c);

/* The gradient of silu: a*s*(1 + b*(1 - s)) with s = 1/(1 + e^-b). a: gradient of the output, b: input, same shape
 * and type. */
GGML_API struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* ---- gated linear units ---------------------------------------------------------------------------------------- */

/* f(x)*g. One operand: x is the first half of each row and g the second (exchanged for `swapped`), result [ne0/2,
 * ...]. Split: x = a, g = b of the same shape and type. */
GGML_API struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_glu_op op,
    bool swapped);
GGML_API struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    enum ggml_glu_op op);

/* f: relu, gelu, silu, gelu_erf, gelu_quick. */
GGML_API struct ggml_tensor *ggml_reglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_reglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_reglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_swiglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu_split(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf_split(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick_split(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);

/* With x = min(a, limit) and g = b clamped to +-limit: x/(1 + e^(-alpha*x))*(g + 1). */
GGML_API struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    float alpha, float limit);

/* With the same x and g: silu(x)*g. */
GGML_API struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    float limit);

/* ---- sums, choices, order -------------------------------------------------------------------------------------- */

/* The sum of all elements: [1]. Sums are kept in double and rounded once. An empty tensor sums to 0. */
GGML_API struct ggml_tensor *ggml_sum(struct ggml_context *ctx, struct ggml_tensor *a);

/* The sum of each row, [1, ne1, ne2, ne3] of a's type; its mean, F32. */
GGML_API struct ggml_tensor *ggml_sum_rows(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_mean(struct ggml_context *ctx, struct ggml_tensor *a);

/* y[i] = x[0] + ... + x[i] along each row, added in that order in F32. a: F32. */
GGML_API struct ggml_tensor *ggml_cumsum(struct ggml_context *ctx, struct ggml_tensor *a);

/* The place of the largest element of each row of a matrix, I32 [ne1]: the first of several; NaN is passed over (a
 * row of NaN: 0). */
GGML_API struct ggml_tensor *ggml_argmax(struct ggml_context *ctx, struct ggml_tensor *a);

/* How many elements of a equal those of b (I32, same shape): I64 [1]. */
GGML_API struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* The places of a row's elements in order, I32. Equal elements keep their order; NaN comes last in both orders. */
GGML_API struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a,
    enum ggml_sort_order order);

/* The first k places of the descending order, I32 [k, ...]: a node of its own; or the sort and a view of it. The
 * order of the answer is that of ggml_argsort here, but other backends leave it open for ggml_top_k. */
GGML_API struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);
GGML_API struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

/* ---- repetition, concatenation, sequences ---------------------------------------------------------------------- */

/* a repeated to b's or the given shape, of which each dimension is a multiple of a's. Any type. */
GGML_API struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    int64_t ne2, int64_t ne3);

/* The sum of the tiles of a that repeat b's shape, F32. */
GGML_API struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* b behind a along dim; the other dimensions and the types are equal, rows whole blocks. Any type. */
GGML_API struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int dim);

/* start, start + step, ... below stop: F32 [ceil((stop - start)/step)]. stop > start. */
GGML_API struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop, float step);

/* cos(t*f_j), then sin(t*f_j), with f_j = max_period^(-j/half), j < half = dim/2; an odd last element is 0. timesteps
 * F32 [n] -> F32 [dim, n]. */
GGML_API struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx, struct ggml_tensor *timesteps, int dim,
    int max_period);

/* ---- normalisation, along rows; eps >= 0 ----------------------------------------------------------------------- */

/* (x - mean)/sqrt(variance + eps). */
GGML_API struct ggml_tensor *ggml_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* x/sqrt(mean of x^2 + eps), for every finite row. */
GGML_API struct ggml_tensor *ggml_rms_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_rms_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* x/max(sqrt(sum of x^2), eps). */
GGML_API struct ggml_tensor *ggml_l2_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_l2_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

/* As ggml_norm, over groups of ceil(ne2/n_groups) channels (dim 2) and all of dims 0 and 1. */
GGML_API struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups,
    float eps);
GGML_API struct ggml_tensor *ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups,
    float eps);

/* The gradient of rms_norm. a: gradient of the output, b: input. */
GGML_API struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, float eps);

/* ---- matrix products ------------------------------------------------------------------------------------------- */

/* y[i, j] = sum over k of a[k, i]*b[k, j]. a [k, n, A2, A3] of any type, not transposed; b [k, m, B2, B3] F32, B2 a
 * multiple of A2 and B3 of A3: slice p of b meets slice p/(B2/A2) of a. -> F32 [n, m, B2, B3]. Quantised weights meet
 * activations encoded in blocks of 8-bit codes; F32, F16 and BF16 weights are multiplied exactly as they are. */
GGML_API struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* The same with a matrix for each column: y[:, u, t] = as[:, :, ids[u, t]]*b[:, u mod nb, t]. as [k, n, E], b [k, nb,
 * T], ids I32 [U, T] in 0 .. E-1, U a multiple of nb. -> F32 [n, U, T]. */
GGML_API struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as, struct ggml_tensor *b,
    struct ggml_tensor *ids);

/* y[i, j] = sum over t of a[i, t]*b[j, t]. a [m, n, ...], b [p, n, ...] with slices as in ggml_mul_mat. -> F32 [m, p,
 * B2, B3]. */
GGML_API struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* Notes on a product: the precision of its sums and of its second operand (true where the op has a place for it). The
 * CPU computes the same whatever they say. ggml_mul_mat_set_hint: GGML_HINT_SRC0_IS_HADAMARD replaces the product by
 * the normalised fast Walsh-Hadamard transform of b's rows, of a power of two elements. */
GGML_API bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec);
GGML_API bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx);
GGML_API void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec);
GGML_API void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint);

/* X with A*X = B for lower triangular A [n, n, ...], B [k, n, ...], a row of the matrix along ne0; F32. left and
 * lower true, uni false. */
GGML_API struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    bool left, bool lower, bool uni);

/* ---- copies ---------------------------------------------------------------------------------------------------- */

/* A packed copy of a; of the given shape with as many elements. */
GGML_API struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);
GGML_API struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    int64_t ne2);
GGML_API struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    int64_t ne2, int64_t ne3);

/* a's elements in logical order, written into b: equal in number, shapes, layouts and types may differ. The result is
 * a view of b. Between float types and to I32 (truncated; NaN 0, the nearest end of the range outside it) by value;
 * into and out of block types in dense rows; bytes between equal types. */
GGML_API struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* The same into a new tensor of a type. */
GGML_API struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_type type);

/* ---- views: never computed ------------------------------------------------------------------------------------- */

/* The same elements under another shape. a is contiguous, the counts are equal. */
GGML_API struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0);
GGML_API struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
    int64_t ne1);
GGML_API struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
    int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
    int64_t ne1, int64_t ne2, int64_t ne3);

/* A window from byte `offset` of a on, with strides nb1 .. nb3 in bytes. NULL and one line of log if it ends past a's
 * memory. */
GGML_API struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
    size_t offset);
GGML_API struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    int64_t ne2, size_t nb1, size_t nb2, size_t offset);
GGML_API struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1,
    int64_t ne2, int64_t ne3, size_t nb1, size_t nb2, size_t nb3, size_t offset);

/* Dimension d of a becomes dimension axis<d> of the result; dimensions 0 and 1 exchanged. */
GGML_API struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a, int axis0, int axis1,
    int axis2, int axis3);
GGML_API struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a);

/* ---- rows and triangles ---------------------------------------------------------------------------------------- */

/* y[:, i, p, q] = a[:, b[i, p, q], p, q]. a of any type [n, R, A2, A3], b I32 [r, A2, A3] -> F32 (I32 for I32) [n, r,
 * A2, A3]. */
GGML_API struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

/* Its gradient: rows of a [n, r] added to those of a zero tensor of c's shape [n, R] that b [r] names, in order. */
GGML_API struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c);

/* a[:, c[i, p mod C1, q mod C2], p, q] = b[:, i, p, q], encoded in a's type; the result is a view of a [n, R, A2,
 * A3]. b F32 or F16 [n, r, A2, A3], c I64 or I32 [r, C1, C2]. Of several rows with one number the last remains. */
GGML_API struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *c);

/* [n, 1, ...] on the diagonal of [n, n, ...], zeros elsewhere. */
GGML_API struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a);

/* Elements i0 > n_past + i1 become -infinity, or 0. */
GGML_API struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_past);

/* Square matrices with the part kept that `type` names (upper: i0 > i1, lower: i0 < i1, with or without the
 * diagonal). F32. */
GGML_API struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_tri_type type);

/* ---- attention ------------------------------------------------------------------------------------------------- */

/* exp(z - max)/sum along each row with z = scale*a + slope*mask. mask F32 or F16 [ne0, >= ne1, ...], dims 2 and 3 of
 * a are multiples of its; NULL: none. max_bias > 0 (needs a mask): head h (dim 2) has the ALiBi slope m^(h+1); else
 * slope 1. A row whose every z is -infinity gives zeros. */
GGML_API struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *mask, float scale, float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *mask, float scale, float max_bias);

/* sinks F32 [ne2]: one more term exp(sink - max) in each row's sum, for a tensor of ggml_soft_max*. NULL takes them
 * away. */
GGML_API void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

/* scale*b*(a - sum of a*b) along each row. a: gradient of the output, b: output; max_bias 0. */
GGML_API struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, float scale, float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, float scale, float max_bias);

/* softmax(scale*q*k + slope*mask)*v in one node. q [dk, N, H, B] F32, k [dk, KV, Hk, B], v [dv, KV, Hv, B] of any
 * type with rows that can be multiplied, H a multiple of Hk and Hv; mask F16 contiguous [>= KV, >= N, Hm, Bm] or
 * NULL. logit_softcap c > 0: c*tanh(z/c) before the mask. -> F32 [dv, H, N, B]. A masked key contributes nothing
 * whatever its memory holds; a row whose every key is masked gives zeros. */
GGML_API struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q,
    struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *mask, float scale, float max_bias,
    float logit_softcap);

/* Notes on it: precision (CPU: the same for all), an upper bound for unmasked keys (0: none), sinks F32 [H] as above.
 * */
GGML_API void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a, enum ggml_prec prec);
GGML_API enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a);
GGML_API void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max);
GGML_API void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

/* Not defined: always stops. */
GGML_API struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q,
    struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *d, bool masked);

/* Sum over heads of max(q_h*k_j, 0)*weights_h, plus mask. q F32 [d, H, T, B], k [d, 1, KV, B], weights F32 [H, T, 1,
 * B], mask F16 [KV, T, 1, Bm] -> F32 [KV, T, 1, B]. */
GGML_API struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q,
    struct ggml_tensor *k, struct ggml_tensor *weights, struct ggml_tensor *mask);

/* ---- rotary position embedding --------------------------------------------------------------------------------- */

/* Pairs of a's elements turned by an angle that grows with the position. a [D, H, T, B] F32 or F16, b (positions) I32
 * [T]; c F32 [>= n_dims/2] divides the frequencies, or NULL. Pair i turns by
 * pos*freq_scale*freq_base^(-2i/n_dims)/c[i]; computed for each position on its own, so the error does not grow along
 * a row. mode GGML_ROPE_TYPE_*: NORMAL pairs (2i, 2i+1), NEOX (i, i + n_dims/2). n_dims is even and at most D; the
 * rest of a row is copied. ext_factor != 0 blends frequencies by YaRN between beta_fast and beta_slow turns in
 * n_ctx_orig; attn_factor multiplies the result. */
GGML_API struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int n_dims, int mode);
GGML_API struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int n_dims, int mode);
GGML_API struct ggml_tensor *ggml_rope_ext(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,
    float attn_factor, float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig, float freq_base,
    float freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_custom(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int n_dims, int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor, float attn_factor,
    float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int n_dims, int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,
    float attn_factor, float beta_fast, float beta_slow);

/* Positions of several axes, b I32 [4*T] (time, height, width, extra): sections say how many pairs in turn take which
 * axis. MROPE and IMROPE pair as NEOX; VISION turns (i, i + n_dims) with D = 2*n_dims. */
GGML_API struct ggml_tensor *ggml_rope_multi(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *c, int n_dims, int sections[GGML_MROPE_SECTIONS], int mode, int n_ctx_orig, float freq_base,
    float freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_multi_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int sections[GGML_MROPE_SECTIONS], int mode,
    int n_ctx_orig, float freq_base, float freq_scale, float ext_factor, float attn_factor, float beta_fast,
    float beta_slow);

/* The opposite turn. */
GGML_API struct ggml_tensor *ggml_rope_ext_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig, float freq_base,
    float freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_multi_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims, int sections[4], int mode, int n_ctx_orig,
    float freq_base, float freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow);

/* The first n_offs elements of a row are copied, the turned ones follow. Not for VISION. Returns a. */
GGML_API struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs);

/* The pairs between which YaRN blends: dims[0] <= dims[1]. */
GGML_API void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow,
    float dims[2]);

/* ---- convolution. out(n, k) = (n + 2p - d*(k - 1) - 1)/s + 1 with stride s, padding p, gap d ------------------- */

/* The windows as columns. a, the kernel [KW, KH, IC, OC], gives its shape only; b [W, H, IC, N] -> [IC*KH*KW, OW, OH,
 * N] F32 or F16. Not 2-D: a [K, IC, OC], b [L, IC, N] -> [IC*K, OL, N]. */
GGML_API struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D, enum ggml_type dst_type);

/* The gradient of im2col: columns a added back to an F32 tensor of shape ne. b: kernel, for its shape. */
GGML_API struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int64_t *ne, int s0, int s1, int p0, int p1, int d0, int d1, bool is_2D);

/* a [KW, KH, KD, IC*OC], b [W, H, D, IC*N] -> [IC*KD*KH*KW, OW, OH, OD*N]. */
GGML_API struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2, enum ggml_type dst_type);

/* a [K*oc, T], overlapping windows of K added at steps s0: [(T - 1)*s0 + K - 2*p0, oc]. */
GGML_API struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0, int oc, int p0);

/* a [K, IC, OC], b [L, IC, N] -> [OL, OC, N], by columns and a product, so a is of any type. _ph: p = K/2. _dw: a
 * [K, 1, C], each channel on its own. */
GGML_API struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s0, int p0, int d0);
GGML_API struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s, int d);
GGML_API struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s0, int p0, int d0);
GGML_API struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int s0, int d0);

/* a [KW, KH, IC, OC], b [W, H, IC, N] -> [OW, OH, OC, N]. _sk_p0: s = kernel size, p = 0. _s1_ph: s = 1, p = half the
 * kernel. _dw: a [KW, KH, 1, C]. */
GGML_API struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s0, int s1, int p0, int p1, int d0, int d1);
GGML_API struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int s0, int s1, int p0, int p1, int d0, int d1);

/* a [KW, KH, KD, IC*OC], b [W, H, D, IC*N] -> [OW, OH, OD, OC*N]. */
GGML_API struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    int64_t IC, int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2);

/* The same as one node each, without columns in memory; kernel F32, F16 or BF16, data F32. conv_2d_dw_direct keeps data
 * whose channels lie innermost that way. */
GGML_API struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0, int d1);
GGML_API struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int stride0, int stride1, int pad0, int pad1, int dilation0, int dilation1);
GGML_API struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int s0, int s1, int s2, int p0, int p1, int p2, int d0, int d1, int d2, int n_channels,
    int n_batch, int n_channels_out);

/* a [K, OC, IC], b [L, IC, N] -> F32 [(L - 1)*s0 + K, OC, N]; p0 = 0, d0 = 1. */
GGML_API struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int s0, int p0, int d0);

/* a [KW, KH, OC, IC], b [W, H, IC, N] -> F32 [(W - 1)*stride + KW, (H - 1)*stride + KH, OC, N]. */
GGML_API struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, int stride);

/* ---- grids ----------------------------------------------------------------------------------------------------- */

/* Largest (0) or mean (1) of windows of k elements at steps s, F32 or F16 -> F32 [(n + 2p - k)/s + 1, ...]. Elements
 * in the padding do not take part; the mean of pool_1d counts those that do, that of pool_2d always k0*k1. */
GGML_API struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op,
    int k0, int s0, int p0);
GGML_API struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_op_pool op,
    int k0, int k1, int s0, int s1, float p0, float p1);

/* The gradient of pool_2d. a: gradient of the output, af: input. */
GGML_API struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *af, enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0, float p1);

/* F32 resized to a multiple of ne0 and ne1, or to any size; mode: enum ggml_scale_mode, with GGML_SCALE_FLAG_* for
 * ggml_interpolate. */
GGML_API struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a, int scale_factor,
    enum ggml_scale_mode mode);
GGML_API struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx, struct ggml_tensor *a, int ne0, int ne1,
    int ne2, int ne3, enum ggml_scale_mode mode);
GGML_API struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
    int64_t ne1, int64_t ne2, int64_t ne3, uint32_t mode);

/* Zeros, or a's own elements in turn (circular), in front of (lp) and behind (rp) each dimension. F32. */
GGML_API struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1, int p2,
    int p3);
GGML_API struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1,
    int p2, int p3);
GGML_API struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0, int lp1,
    int rp1, int lp2, int rp2, int lp3, int rp3);
GGML_API struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0,
    int lp1, int rp1, int lp2, int rp2, int lp3, int rp3);

/* p0 and p1 elements mirrored at the ends of each row, the end itself not repeated. F32; p < ne0. */
GGML_API struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1);

/* y[i + shift mod ne] = x[i] in all dimensions. |shift| < ne. */
GGML_API struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0, int shift1,
    int shift2, int shift3);

/* [C, W, H] in windows of w*w, padded with zeros: [C, w, w, count]; and back to [C, w0, h0]. F32. */
GGML_API struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w);
GGML_API struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a, int w0, int h0, int w);

/* y[:, j, i] = a[:, n - 1 - j + i] with n = qh = kh, a F16 [C, 2n - 1] -> F16 [C, n, n]. */
GGML_API struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, int qh, int kh);

/* a[kx + K*ky, q] + pw[kx, q] + ph[ky, q]: attention logits with decomposed relative positions. F32. */
GGML_API struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *pw,
    struct ggml_tensor *ph);
GGML_API struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *pw, struct ggml_tensor *ph);

/* ---- recurrences. F32; S head size, H heads, T tokens, n sequences; states follow the outputs in the result ---- */

/* y[i, t, s] = sum over k of sx[t + k, i, s]*c[k, i]. sx [d_conv - 1 + n, d_inner, S], c [d_conv, d_inner] ->
 * [d_inner, n, S]. */
GGML_API struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx, struct ggml_tensor *c);

/* Selective scan (Mamba). s [d_state, dim, h, >= S], x [dim, h, n, S], dt [h, n, S], A [1 or d_state, h], B and C
 * [d_state, g, n, S], ids I32 [S]: which states of s to start from. -> the n(x) outputs, then K states after the
 * last, the last but one, ... token. */
GGML_API struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s, struct ggml_tensor *x,
    struct ggml_tensor *dt, struct ggml_tensor *A, struct ggml_tensor *B, struct ggml_tensor *C,
    struct ggml_tensor *ids, int64_t K);

/* Linear attention: operands [S, H, T], state S*S*H elements for each of its ne1 sequences -> [S*H, T + S*n]. wkv6: y
 * = r*(k v tf + M), M = M td + k v. gated: M = M g + k v, y = scale*q*M. wkv7: M = M w + v k + (M a) b, y = M r. */
GGML_API struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k, struct ggml_tensor *v,
    struct ggml_tensor *r, struct ggml_tensor *tf, struct ggml_tensor *td, struct ggml_tensor *state);
GGML_API struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k,
    struct ggml_tensor *v, struct ggml_tensor *q, struct ggml_tensor *g, struct ggml_tensor *state, float scale);
GGML_API struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r, struct ggml_tensor *w,
    struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *state);

/* q, k [S, Hk, T, B'], v [S, H, T, B], g [1 or S, H, T, B], beta [1, H, T, B], state [S, S, H, B]: M = M exp(g), M +=
 * k (v - M k) beta, y = M q/sqrt S. -> [S*H, T*B + K*S*B]: outputs, then K states, newest first. */
GGML_API struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q,
    struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *g, struct ggml_tensor *beta,
    struct ggml_tensor *state, int64_t K);

/* Hyper-connections of four streams: the mixing matrices [4, 4, T] from mixes [24, T], made doubly stochastic in
 * n_iter rounds. */
GGML_API struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes,
    struct ggml_tensor *scale, struct ggml_tensor *base, float eps, int32_t n_iter);

/* x [n, hc, T]: the sum of streams weighted by weights [hc, T]; or scale*sum of x*sigmoid(gate). -> [n, T]. */
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x,
    struct ggml_tensor *weights);
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x,
    struct ggml_tensor *gate, float scale);

/* y_d = x*post_d + sum over s of residual_s*comb[d, s]; comb NULL: residual_d. x [n, T], residual [n, hc, T] -> [n,
 * hc, T]. */
GGML_API struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x,
    struct ggml_tensor *residual, struct ggml_tensor *post, struct ggml_tensor *comb);

/* ---- the program's own ----------------------------------------------------------------------------------------- */

/* fun(result, operands, ith, nth, userdata) is called by nth threads at once, ith 0 .. nth-1 each on its own share;
 * nth is at most n_tasks (GGML_N_TASKS_MAX: as many as there are). Results are as a, or of the given type and shape
 * with up to 9 args as sources. */
GGML_API struct ggml_tensor *ggml_map_custom1(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun,
    int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom1_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    ggml_custom1_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    ggml_custom2_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, ggml_custom2_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
    struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1,
    int64_t ne2, int64_t ne3, struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks,
    void *userdata);
GGML_API struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);

/* ---- training -------------------------------------------------------------------------------------------------- */

/* -(1/rows)*sum of b*log softmax(a), [1]. a: logits, b: labels as probabilities, same shape. */
GGML_API struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b);

/* (softmax(b) - c)*a/rows. a: gradient of the loss, one element; b: logits, c: labels. */
GGML_API struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *b, struct ggml_tensor *c);

/* One step of AdamW on a parameter a, in place: with params F32 {alpha, beta1, beta2, eps, decay, 1/(1 - beta1^t),
 * 1/(1 - beta2^t)}; m and v, the moments, are written too. Of plain gradient descent, with {alpha, decay}. */
GGML_API struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *grad, struct ggml_tensor *m, struct ggml_tensor *v, struct ggml_tensor *adamw_params);
GGML_API struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a,
    struct ggml_tensor *grad, struct ggml_tensor *sgd_params);

/* ---- graphs ---------------------------------------------------------------------------------------------------- */

/* A list of nodes in the order of computing, sources first, and of leafs (tensors that no op writes and no training changes).
 * `size` is the room for nodes, and as much for leafs. In the context: ggml_graph_overhead tells how much of it, at most. A
 * graph that was given too many nodes or a NULL tensor logs one line and is unusable until it is cleared: computing it
 * returns GGML_STATUS_ALLOC_FAILED, allocating it false. NULL when the context is full. Building takes no memory and no deep
 * stack. */
GGML_API struct ggml_cgraph *ggml_new_graph(struct ggml_context *ctx);
GGML_API struct ggml_cgraph *ggml_new_graph_custom(struct ggml_context *ctx, size_t size, bool grads);
GGML_API size_t ggml_graph_overhead(void);
GGML_API size_t ggml_graph_overhead_custom(size_t size, bool grads);
/* Add a tensor with everything that it is computed from and that is not there yet: depth first, sources in the order of
 * src. Nameless ones are named node_%d and leaf_%d. expand marks all of it for computing (GGML_TENSOR_FLAG_COMPUTE); order
 * adds it without the mark: what is not marked is skipped. */
GGML_API void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
GGML_API void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
/* Add all n tensors, so that the graph has one shape whichever is chosen, and mark what tensors[idx] needs. Returns it. */
GGML_API struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph, struct ggml_tensor **tensors, int
    n_tensors, int idx);
/* Appends the gradients of the graph's losses (their sum) by its parameters; the graph was made with grads. Each is F32, has
 * its parameter's shape, and is found with ggml_graph_get_grad; nodes between parameters and losses have one too. grad_accs,
 * unless NULL, has an F32 tensor, or NULL, for each node of the graph as it is: the node's gradient is added to it by every
 * run, and ggml_graph_get_grad then gives that sum. Losses have an accumulator anyhow, of one element, the factor of the
 * loss: after allocating, once, ggml_graph_reset sets it to 1. All new tensors are made in ctx.
 * Works for every op that has a rule in src/train/gradients.c, over any layout; no gradient flows to indices, positions,
 * masks or shapes. A graph without parameters or losses, an op without a rule on the way, a node that changes its source in
 * place, a full ctx: one line of log, and the graph is unusable. */
GGML_API void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph, struct ggml_tensor
    **grad_accs);
/* A copy in ctx, with room for gradients if the graph has it or force_grads. Into dst, which must be as large. */
GGML_API struct ggml_cgraph *ggml_graph_dup(struct ggml_context *ctx, struct ggml_cgraph *cgraph, bool force_grads);
GGML_API void ggml_graph_cpy(struct ggml_cgraph *src, struct ggml_cgraph *dst);
/* No nodes and no leafs again. */
GGML_API void ggml_graph_clear(struct ggml_cgraph *cgraph);
/* Gradient accumulators and the moments of AdamW 0, accumulators of losses 1. After allocating, before the first backward
 * pass. NULL is allowed; aborts when the graph was made without grads. */
GGML_API void ggml_graph_reset(struct ggml_cgraph *cgraph);
/* The node as it is: neither its sources nor a mark. */
GGML_API void ggml_graph_add_node(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);
/* i < 0 counts from the end; aborts when there is no such node. By name: leafs, then nodes; NULL when there is none. */
GGML_API int ggml_graph_size(struct ggml_cgraph *cgraph);
GGML_API int ggml_graph_n_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor **ggml_graph_nodes(struct ggml_cgraph *cgraph);
GGML_API struct ggml_tensor *ggml_graph_node(struct ggml_cgraph *cgraph, int i);
GGML_API struct ggml_tensor *ggml_graph_get_tensor(const struct ggml_cgraph *cgraph, const char *name);
/* NULL when the graph has none for this node. */
GGML_API struct ggml_tensor *ggml_graph_get_grad(const struct ggml_cgraph *cgraph, const struct ggml_tensor *node);
GGML_API struct ggml_tensor *ggml_graph_get_grad_acc(const struct ggml_cgraph *cgraph, const struct ggml_tensor
    *node);
/* One line of log per tensor. A file for graphviz, the nodes of `cgraph` (or NULL) in green. */
GGML_API void ggml_graph_print(const struct ggml_cgraph *cgraph);
GGML_API void ggml_graph_dump_dot(const struct ggml_cgraph *gb, const struct ggml_cgraph *cgraph, const char
    *filename);

/* ---- quantising ------------------------------------------------------------------------------------------------ */

/* Nothing has to be prepared or released: packing needs no tables. */
GGML_API void ggml_quantize_init(enum ggml_type type);
GGML_API void ggml_quantize_free(void);
/* Whether ggml_quantize_chunk asks for importance data (types of about two bits and below). */
GGML_API bool ggml_quantize_requires_imatrix(enum ggml_type type);
/* Packs `nrows` rows of n_per_row elements, whole blocks, for a file: reads from src + start, where start is a whole number of
 * rows, writes at that row of dst, returns the bytes written. `imatrix` has one weight for each of the n_per_row columns, or is
 * NULL; blocks whose weights are all zero, or no weights (negative, not finite), are packed as without. The bytes are
 * the same on every machine. May be called from several threads. Aborts on a type that cannot be packed. */
GGML_API size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows,
    int64_t n_per_row, const float *imatrix);

/* ---- thread pools: parameters ---------------------------------------------------------------------------------- */

/* n threads, no affinity, normal priority, poll 50, running. match leaves out `paused`. */
GGML_API struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads);
GGML_API void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);
GGML_API bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0, const struct
    ggml_threadpool_params *p1);

#ifdef __cplusplus
}
#endif

#endif
