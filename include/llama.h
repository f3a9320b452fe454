#ifndef LLAMA_H
#define LLAMA_H
/* Language models: loading, a memory of what was read, decoding batches of tokens, tokenizing, sampling.
 *
 *   llama_model_load_from_file    a model: read-only, may be shared by contexts and threads
 *   llama_init_from_model         a context: memory and plan for one thread at a time; everything is allocated here
 *   llama_tokenize                text to token ids
 *   llama_decode                  tokens through the model; then llama_get_logits_ith
 *   llama_sampler_sample          logits to the next token
 *
 * Errors: whatever comes from outside (files, prompts, sizes) is answered by a value, NULL, false or a negative number, after one
 * line of log, and leaves everything as it was. Strings are UTF-8, owned by who made them; what a getter returns belongs to
 * its model or context. */

#include "ggml.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "gguf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LLAMA_API GGML_API

/* How text becomes tokens; SPM and BPE are supported. */
enum llama_vocab_type {
    LLAMA_VOCAB_TYPE_NONE   = 0,
    LLAMA_VOCAB_TYPE_SPM    = 1,
    LLAMA_VOCAB_TYPE_BPE    = 2,
    LLAMA_VOCAB_TYPE_WPM    = 3,
    LLAMA_VOCAB_TYPE_UGM    = 4,
    LLAMA_VOCAB_TYPE_RWKV   = 5,
    LLAMA_VOCAB_TYPE_PLAMO2 = 6,
    LLAMA_VOCAB_TYPE_TEST   = 7,
};

/* Which elements of a head are rotated together: ggml_rope_ext's modes. */
enum llama_rope_type {
    LLAMA_ROPE_TYPE_NONE   = -1,
    LLAMA_ROPE_TYPE_NORM   = 0,
    LLAMA_ROPE_TYPE_NEOX   = 2,
    LLAMA_ROPE_TYPE_MROPE  = 8,
    LLAMA_ROPE_TYPE_IMROPE = 40,
    LLAMA_ROPE_TYPE_VISION = 24,
};

enum llama_token_type {
    LLAMA_TOKEN_TYPE_UNDEFINED    = 0,
    LLAMA_TOKEN_TYPE_NORMAL       = 1,
    LLAMA_TOKEN_TYPE_UNKNOWN      = 2,
    LLAMA_TOKEN_TYPE_CONTROL      = 3,
    LLAMA_TOKEN_TYPE_USER_DEFINED = 4,
    LLAMA_TOKEN_TYPE_UNUSED       = 5,
    LLAMA_TOKEN_TYPE_BYTE         = 6,
};

/* What a token is, as bits. */
enum llama_token_attr {
    LLAMA_TOKEN_ATTR_UNDEFINED    = 0,
    LLAMA_TOKEN_ATTR_UNKNOWN      = 1,
    LLAMA_TOKEN_ATTR_UNUSED       = 2,
    LLAMA_TOKEN_ATTR_NORMAL       = 4,
    LLAMA_TOKEN_ATTR_CONTROL      = 8,
    LLAMA_TOKEN_ATTR_USER_DEFINED = 16,
    LLAMA_TOKEN_ATTR_BYTE         = 32,
    LLAMA_TOKEN_ATTR_NORMALIZED   = 64,
    LLAMA_TOKEN_ATTR_LSTRIP       = 128,
    LLAMA_TOKEN_ATTR_RSTRIP       = 256,
    LLAMA_TOKEN_ATTR_SINGLE_WORD  = 512,
};

/* The prevailing type of a file's weights: general.file_type. Not a ggml_type. */
enum llama_ftype {
    LLAMA_FTYPE_ALL_F32          = 0,
    LLAMA_FTYPE_MOSTLY_F16       = 1,
    LLAMA_FTYPE_MOSTLY_Q4_0      = 2,
    LLAMA_FTYPE_MOSTLY_Q4_1      = 3,
    LLAMA_FTYPE_MOSTLY_Q8_0      = 7,
    LLAMA_FTYPE_MOSTLY_Q5_0      = 8,
    LLAMA_FTYPE_MOSTLY_Q5_1      = 9,
    LLAMA_FTYPE_MOSTLY_Q2_K      = 10,
    LLAMA_FTYPE_MOSTLY_Q3_K_S    = 11,
    LLAMA_FTYPE_MOSTLY_Q3_K_M    = 12,
    LLAMA_FTYPE_MOSTLY_Q3_K_L    = 13,
    LLAMA_FTYPE_MOSTLY_Q4_K_S    = 14,
    LLAMA_FTYPE_MOSTLY_Q4_K_M    = 15,
    LLAMA_FTYPE_MOSTLY_Q5_K_S    = 16,
    LLAMA_FTYPE_MOSTLY_Q5_K_M    = 17,
    LLAMA_FTYPE_MOSTLY_Q6_K      = 18,
    LLAMA_FTYPE_MOSTLY_IQ2_XXS   = 19,
    LLAMA_FTYPE_MOSTLY_IQ2_XS    = 20,
    LLAMA_FTYPE_MOSTLY_Q2_K_S    = 21,
    LLAMA_FTYPE_MOSTLY_IQ3_XS    = 22,
    LLAMA_FTYPE_MOSTLY_IQ3_XXS   = 23,
    LLAMA_FTYPE_MOSTLY_IQ1_S     = 24,
    LLAMA_FTYPE_MOSTLY_IQ4_NL    = 25,
    LLAMA_FTYPE_MOSTLY_IQ3_S     = 26,
    LLAMA_FTYPE_MOSTLY_IQ3_M     = 27,
    LLAMA_FTYPE_MOSTLY_IQ2_S     = 28,
    LLAMA_FTYPE_MOSTLY_IQ2_M     = 29,
    LLAMA_FTYPE_MOSTLY_IQ4_XS    = 30,
    LLAMA_FTYPE_MOSTLY_IQ1_M     = 31,
    LLAMA_FTYPE_MOSTLY_BF16      = 32,
    LLAMA_FTYPE_MOSTLY_TQ1_0     = 36,
    LLAMA_FTYPE_MOSTLY_TQ2_0     = 37,
    LLAMA_FTYPE_MOSTLY_MXFP4_MOE = 38,
    LLAMA_FTYPE_MOSTLY_NVFP4     = 39,
    LLAMA_FTYPE_MOSTLY_Q1_0      = 40,
    LLAMA_FTYPE_MOSTLY_Q2_0      = 41,
    LLAMA_FTYPE_GUESSED          = 1024,
};

enum llama_rope_scaling_type {
    LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED = -1,
    LLAMA_ROPE_SCALING_TYPE_NONE        = 0,
    LLAMA_ROPE_SCALING_TYPE_LINEAR      = 1,
    LLAMA_ROPE_SCALING_TYPE_YARN        = 2,
    LLAMA_ROPE_SCALING_TYPE_LONGROPE    = 3,
    LLAMA_ROPE_SCALING_TYPE_MAX_VALUE   = 3,
};

/* How embeddings of a sequence become one. */
enum llama_pooling_type {
    LLAMA_POOLING_TYPE_UNSPECIFIED = -1,
    LLAMA_POOLING_TYPE_NONE        = 0,
    LLAMA_POOLING_TYPE_MEAN        = 1,
    LLAMA_POOLING_TYPE_CLS         = 2,
    LLAMA_POOLING_TYPE_LAST        = 3,
    LLAMA_POOLING_TYPE_RANK        = 4,
};

enum llama_attention_type {
    LLAMA_ATTENTION_TYPE_UNSPECIFIED = -1,
    LLAMA_ATTENTION_TYPE_CAUSAL      = 0,
    LLAMA_ATTENTION_TYPE_NON_CAUSAL  = 1,
};

enum llama_flash_attn_type {
    LLAMA_FLASH_ATTN_TYPE_AUTO     = -1,
    LLAMA_FLASH_ATTN_TYPE_DISABLED = 0,
    LLAMA_FLASH_ATTN_TYPE_ENABLED  = 1,
};

enum llama_split_mode {
    LLAMA_SPLIT_MODE_NONE   = 0,
    LLAMA_SPLIT_MODE_LAYER  = 1,
    LLAMA_SPLIT_MODE_ROW    = 2,
    LLAMA_SPLIT_MODE_TENSOR = 3,
};

/* How weights get into memory. AUTO and MMAP use them where the file's mapping has them; NONE and DIRECT_IO read a private
 * copy; the MLOCK modes ask the system to keep them resident, and go on with a warning if it refuses. */
enum llama_load_mode {
    LLAMA_LOAD_MODE_AUTO       = -1,
    LLAMA_LOAD_MODE_NONE       = 0,
    LLAMA_LOAD_MODE_MMAP       = 1,
    LLAMA_LOAD_MODE_MLOCK      = 2,
    LLAMA_LOAD_MODE_MMAP_MLOCK = 3,
    LLAMA_LOAD_MODE_DIRECT_IO  = 4,
};

enum llama_lazy_mode {
    LLAMA_LAZY_MODE_OFF  = 0,
    LLAMA_LAZY_MODE_AUTO = 1,
    LLAMA_LAZY_MODE_ON   = 2,
};

enum llama_context_type {
    LLAMA_CONTEXT_TYPE_DEFAULT = 0,
    LLAMA_CONTEXT_TYPE_MTP     = 1,
};

enum llama_model_kv_override_type {
    LLAMA_KV_OVERRIDE_TYPE_INT   = 0,
    LLAMA_KV_OVERRIDE_TYPE_FLOAT = 1,
    LLAMA_KV_OVERRIDE_TYPE_BOOL  = 2,
    LLAMA_KV_OVERRIDE_TYPE_STR   = 3,
};

enum llama_model_meta_key {
    LLAMA_MODEL_META_KEY_SAMPLING_SEQUENCE        = 0,
    LLAMA_MODEL_META_KEY_SAMPLING_TOP_K           = 1,
    LLAMA_MODEL_META_KEY_SAMPLING_TOP_P           = 2,
    LLAMA_MODEL_META_KEY_SAMPLING_MIN_P           = 3,
    LLAMA_MODEL_META_KEY_SAMPLING_XTC_PROBABILITY = 4,
    LLAMA_MODEL_META_KEY_SAMPLING_XTC_THRESHOLD   = 5,
    LLAMA_MODEL_META_KEY_SAMPLING_TEMP            = 6,
    LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_LAST_N  = 7,
    LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_REPEAT  = 8,
    LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT        = 9,
    LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT_TAU    = 10,
    LLAMA_MODEL_META_KEY_SAMPLING_MIROSTAT_ETA    = 11,
};

enum llama_process_type {
    LLAMA_PROCESS_TYPE_ENCODE = 0,
    LLAMA_PROCESS_TYPE_DECODE = 1,
};

#define LLAMA_DEFAULT_SEED 0xFFFFFFFF
#define LLAMA_TOKEN_NULL -1
#define LLAMA_FILE_MAGIC_GGLA 0x67676c61u
#define LLAMA_FILE_MAGIC_GGSN 0x6767736eu
#define LLAMA_FILE_MAGIC_GGSQ 0x67677371u
#define LLAMA_SESSION_MAGIC LLAMA_FILE_MAGIC_GGSN
#define LLAMA_SESSION_VERSION 10
#define LLAMA_STATE_SEQ_MAGIC LLAMA_FILE_MAGIC_GGSQ
#define LLAMA_STATE_SEQ_VERSION 3
#define LLAMA_STATE_SEQ_FLAGS_NONE 0
#define LLAMA_STATE_SEQ_FLAGS_SWA_ONLY 1
#define LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY 1
#define LLAMA_STATE_SEQ_FLAGS_ON_DEVICE 2

struct llama_vocab;
struct llama_model;
struct llama_context;
struct llama_sampler;
struct llama_memory_i;
struct llama_adapter_lora;
struct llama_batch_ext;

typedef struct llama_memory_i *llama_memory_t;
typedef int32_t llama_pos;
typedef int32_t llama_token;
typedef int32_t llama_seq_id;
typedef uint32_t llama_state_seq_flags;
typedef void *llama_sampler_context_t;
/* progress: 0 to 1; false cancels the loading. */
typedef bool ( *llama_progress_callback)(float progress, void *user_data);
/* Fills the data of one tensor of a model. */
typedef void ( *llama_model_set_tensor_data_t)(struct ggml_tensor *tensor, void *userdata);

typedef struct llama_token_data {
    llama_token id;
    float logit;
    float p;
} llama_token_data;

/* Candidates for the next token; samplers shorten, reorder and reweigh them in place. */
typedef struct llama_token_data_array {
    llama_token_data *data;     /* [size], the caller's */
    size_t size;
    int64_t selected;           /* index in data, -1: none yet */
    bool sorted;                /* by falling logit */
} llama_token_data_array;

/* Tokens to decode, of any mix of sequences; arrays of n_tokens. One of token and embd is given. */
typedef struct llama_batch {
    int32_t n_tokens;
    llama_token *token;
    float *embd;                /* [n_embd, n_tokens] in place of tokens */
    llama_pos *pos;             /* NULL: each follows its sequence's last */
    int32_t *n_seq_id;          /* sequences that each token belongs to, at least 1 */
    llama_seq_id **seq_id;      /* their ids; NULL: sequence 0. A token sees the past of the first */
    int8_t *logits;             /* not 0: results are wanted; NULL: of the last token */
} llama_batch;

typedef struct llama_model_tensor_buft_override {
    const char *pattern;
    ggml_backend_buffer_type_t buft;
} llama_model_tensor_buft_override;

/* Start from llama_model_default_params. Fields about devices have no effect while the CPU is the only one. */
typedef struct llama_model_params {
    ggml_backend_dev_t *devices;
    const struct llama_model_tensor_buft_override *tensor_buft_overrides;
    int32_t n_gpu_layers;
    enum llama_split_mode split_mode;
    enum llama_load_mode load_mode;
    enum llama_lazy_mode lazy_mode;
    int32_t main_gpu;
    const float *tensor_split;
    llama_progress_callback progress_callback;                  /* or NULL */
    void *progress_callback_user_data;
    const struct llama_model_kv_override *kv_overrides;         /* ended by an empty key; NULL: none */
    bool vocab_only;                                            /* no weights: for tokenizing */
    bool check_tensors;                                         /* refuse values that are not finite; reads every weight */
    bool use_extra_bufts;                                       /* repacked weights: no effect, none are needed */
    bool no_host;
    bool no_alloc;                                              /* sizes alone: contexts say what they would take, and compute nothing */
    bool load_mtp;
} llama_model_params;

typedef struct llama_sampler_seq_config {
    llama_seq_id seq_id;
    struct llama_sampler *sampler;
} llama_sampler_seq_config;

/* Start from llama_context_default_params. */
typedef struct llama_context_params {
    uint32_t n_ctx;                     /* tokens of memory, over all sequences, rounded up to 256; 0: the model's */
    uint32_t n_batch;                   /* most tokens of one llama_decode */
    uint32_t n_ubatch;                  /* most tokens computed at once: what activations are planned for */
    uint32_t n_seq_max;                 /* sequences, up to llama_max_parallel_sequences() */
    uint32_t n_rs_seq;
    uint32_t n_outputs_max;             /* tokens of a batch with results that room is made for; 0: n_seq_max. It grows */
    uint32_t n_outputs_max_per_seq;
    int32_t n_threads;                  /* for single tokens; 0 and less: arn_cpu_default_threads() */
    int32_t n_threads_batch;            /* for more; 0 and less: n_threads */
    enum llama_context_type ctx_type;
    enum llama_rope_scaling_type rope_scaling_type;     /* UNSPECIFIED: the model's */
    enum llama_pooling_type pooling_type;               /* UNSPECIFIED: what the file names, or none */
    enum llama_attention_type attention_type;           /* UNSPECIFIED: the model's */
    enum llama_flash_attn_type flash_attn_type;         /* attention is always fused */
    float rope_freq_base;               /* 0: the model's, as the following */
    float rope_freq_scale;
    float yarn_ext_factor;              /* negative: the model's, as the following */
    float yarn_attn_factor;
    float yarn_beta_fast;
    float yarn_beta_slow;
    uint32_t yarn_orig_ctx;             /* 0: the model's */
    float defrag_thold;                 /* no effect: cells are taken in pages and do not scatter */
    ggml_backend_sched_eval_callback cb_eval;           /* see ggml_backend_sched_set_eval_callback */
    void *cb_eval_user_data;
    enum ggml_type type_k;              /* of cached keys: a float type, or one of blocks that divide a head */
    enum ggml_type type_v;              /* of cached values */
    ggml_abort_callback abort_callback; /* true stops the batch being decoded */
    void *abort_callback_data;
    bool embeddings;                    /* results include the hidden state that the logits come from */
    bool offload_kqv;
    bool no_perf;
    bool op_offload;
    bool swa_full;                      /* layers with a sliding window keep all tokens, so sequences can be rolled back */
    bool kv_unified;                    /* no effect on memory, which all sequences share; see llama_n_ctx_seq */
    struct llama_sampler_seq_config *samplers;
    size_t n_samplers;
    struct llama_context *ctx_other;
} llama_context_params;

typedef struct llama_model_tensor_override {
    const char *pattern;
    enum ggml_type type;
} llama_model_tensor_override;

typedef struct llama_model_imatrix_data {
    const char *name;
    const float *data;
    size_t size;
} llama_model_imatrix_data;

typedef struct llama_model_quantize_params {
    int32_t nthread;
    enum llama_ftype ftype;
    enum ggml_type output_tensor_type;
    enum ggml_type token_embedding_type;
    bool allow_requantize;
    bool quantize_output_tensor;
    bool only_copy;
    bool pure;
    bool keep_split;
    bool dry_run;
    const struct llama_model_imatrix_data *imatrix;
    const struct llama_model_kv_override *kv_overrides;
    const struct llama_model_tensor_override *tt_overrides;
    const int32_t *prune_layers;
    size_t max_buf_size;
} llama_model_quantize_params;

typedef struct llama_logit_bias {
    llama_token token;
    float bias;
} llama_logit_bias;

typedef struct llama_sampler_chain_params {
    bool no_perf;
} llama_sampler_chain_params;

/* role: "system", "user", "assistant", ... */
typedef struct llama_chat_message {
    const char *role;
    const char *content;
} llama_chat_message;

typedef struct llama_embd {
    const float *data;  /* [n_embd, n_rows] */
    size_t n_rows;
    size_t n_embd;
} llama_embd;

typedef struct llama_sampler_data {
    struct ggml_tensor *logits;
    struct ggml_tensor *probs;
    struct ggml_tensor *sampled;
    struct ggml_tensor *candidates;
} llama_sampler_data;

typedef struct llama_sampler_i {
    const char *( *name)(const struct llama_sampler *smpl);
    void ( *accept)( struct llama_sampler *smpl, llama_token token);
    void ( *apply)( struct llama_sampler *smpl, llama_token_data_array *cur_p);
    void ( *reset)( struct llama_sampler *smpl);
    struct llama_sampler *( *clone)(const struct llama_sampler *smpl);
    void ( *free)( struct llama_sampler *smpl);
    bool ( *backend_init)( struct llama_sampler *smpl, ggml_backend_buffer_type_t buft, uint32_t n_outputs_max_per_seq);
    void ( *backend_accept)( struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf, struct ggml_tensor *selected_token);
    void ( *backend_apply)( struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf, struct llama_sampler_data *data);
    void ( *backend_set_input)(struct llama_sampler *smpl);
    void ( *backend_reset)(struct llama_sampler *smpl);
    void ( *copy_state)(const struct llama_sampler *src, struct llama_sampler *dst);
} llama_sampler_i;

typedef struct llama_sampler {
    struct llama_sampler_i *iface;
    llama_sampler_context_t ctx;
} llama_sampler;

typedef struct llama_perf_context_data {
    double t_start_ms;      /* when counting began */
    double t_load_ms;       /* of the model */
    double t_p_eval_ms;     /* batches of several tokens */
    double t_eval_ms;       /* batches of one */
    int32_t n_p_eval;       /* tokens, at least 1 */
    int32_t n_eval;         /* tokens, at least 1 */
    int32_t n_reused;       /* times a built graph served again */
} llama_perf_context_data;

typedef struct llama_perf_sampler_data {
    double t_sample_ms;
    int32_t n_sample;
} llama_perf_sampler_data;

/* A metadata key with another value, or an added one. The tag is of the kind that the file has. */
struct llama_model_kv_override {
    enum llama_model_kv_override_type tag;
    char key[128];
    union {
        int64_t val_i64;
        double  val_f64;
        bool    val_bool;
        char    val_str[128];
    };
};

/* ---- names and defaults ----------------------------------------------------------------------------------------- */

/* Static strings; "unknown" for other numbers. */
LLAMA_API const char *llama_ftype_name(enum llama_ftype ftype);
LLAMA_API const char *llama_flash_attn_type_name(enum llama_flash_attn_type flash_attn_type);
LLAMA_API const char *llama_load_mode_name(enum llama_load_mode load_mode);
/* AUTO for unknown names. */
LLAMA_API enum llama_load_mode llama_load_mode_from_str(const char *str);

LLAMA_API const char *llama_version(void);

LLAMA_API struct llama_model_params llama_model_default_params(void);
LLAMA_API struct llama_context_params llama_context_default_params(void);
LLAMA_API struct llama_sampler_chain_params llama_sampler_chain_default_params(void);
LLAMA_API struct llama_model_quantize_params llama_model_quantize_default_params(void);

/* Neither is needed; programs call them first and last. */
LLAMA_API void llama_backend_init(void);
LLAMA_API void llama_backend_free(void);

LLAMA_API void llama_numa_init(enum ggml_numa_strategy numa);

/* Compute with the program's pools in place of the context's own; threadpool_batch NULL: the same. The program keeps them. */
LLAMA_API void llama_attach_threadpool(struct llama_context *ctx, ggml_threadpool_t threadpool, ggml_threadpool_t
    threadpool_batch);
LLAMA_API void llama_detach_threadpool(struct llama_context *ctx);

/* ---- models ----------------------------------------------------------------------------------------------------- */

/* A model without a file: shapes and types are those of the tensors in `metadata`, which is copied; their data come from
 * set_tensor_data, called once for each. NULL on failure, as for all that follow. */
LLAMA_API struct llama_model *llama_model_init_from_user(struct gguf_context *metadata, llama_model_set_tensor_data_t
    set_tensor_data, void *set_tensor_data_ud, struct llama_model_params params);

GGML_DEPRECATED(LLAMA_API struct llama_model *llama_load_model_from_file(const char *path_model, struct
    llama_model_params params), "old");

/* Loads a GGUF file. Weights stay in the file's mapping: this takes milliseconds and little memory whatever their size, and the
 * file must not change while the model is in use. The first of split files (`-00001-of-000NN.gguf`) loads all. */
LLAMA_API struct llama_model *llama_model_load_from_file(const char *path_model, struct llama_model_params params);
/* The same from a stream over a whole file; it may be closed afterwards. */
LLAMA_API struct llama_model *llama_model_load_from_file_ptr(FILE *file, struct llama_model_params params);
/* The same from all files of a split model, in order. */
LLAMA_API struct llama_model *llama_model_load_from_splits(const char **paths, size_t n_paths, struct
    llama_model_params params);
/* Writes metadata and weights to one file. Failures are logged. */
LLAMA_API void llama_model_save_to_file(const struct llama_model *model, const char *path_model);

GGML_DEPRECATED(LLAMA_API void llama_free_model(struct llama_model *model), "old");
/* After the contexts made from it. NULL is fine. */
LLAMA_API void llama_model_free(struct llama_model *model);

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/* Plans and allocates everything that decoding needs; arn_context_memory (arenite.h) says how much. NULL on failure. The
 * model outlives the context. */
LLAMA_API struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params);
GGML_DEPRECATED(LLAMA_API struct llama_context *llama_new_context_with_model(struct llama_model *model, struct
    llama_context_params params), "old");
LLAMA_API void llama_free(struct llama_context *ctx);

/* ---- this build ------------------------------------------------------------------------------------------------- */

/* Microseconds since some point in the past. */
LLAMA_API int64_t llama_time_us(void);
LLAMA_API size_t llama_max_devices(void);
LLAMA_API size_t llama_max_parallel_sequences(void);
LLAMA_API size_t llama_max_tensor_buft_overrides(void);
LLAMA_API bool llama_supports_mmap(void);
LLAMA_API bool llama_supports_mlock(void);
LLAMA_API bool llama_supports_gpu_offload(void);
LLAMA_API bool llama_supports_rpc(void);

/* ---- facts about a context: its parameters as they came out ----------------------------------------------------- */

LLAMA_API uint32_t llama_n_ctx(const struct llama_context *ctx);
/* Tokens that each of n_seq_max sequences can count on; all of them with kv_unified. */
LLAMA_API uint32_t llama_n_ctx_seq(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_batch(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_ubatch(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_seq_max(const struct llama_context *ctx);
LLAMA_API uint32_t llama_n_rs_seq(const struct llama_context *ctx);

GGML_DEPRECATED(LLAMA_API int32_t llama_n_ctx_train(const struct llama_model *model), "old");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_embd(const struct llama_model *model), "old");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_layer(const struct llama_model *model), "old");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_head(const struct llama_model *model), "old");
GGML_DEPRECATED(LLAMA_API int32_t llama_n_vocab(const struct llama_vocab *vocab), "old");

LLAMA_API const struct llama_model *llama_get_model(const struct llama_context *ctx);
LLAMA_API llama_memory_t llama_get_memory(const struct llama_context *ctx);
LLAMA_API enum llama_pooling_type llama_pooling_type(const struct llama_context *ctx);

/* ---- facts about a model ---------------------------------------------------------------------------------------- */

LLAMA_API const struct llama_vocab *llama_model_get_vocab(const struct llama_model *model);
LLAMA_API enum llama_rope_type llama_model_rope_type(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_ctx_train(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd_inp(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_embd_out(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_layer(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_layer_nextn(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_head(const struct llama_model *model);
LLAMA_API int32_t llama_model_n_head_kv(const struct llama_model *model);
/* Tokens that layers with a sliding window see; 0: there are none. */
LLAMA_API int32_t llama_model_n_swa(const struct llama_model *model);
LLAMA_API float llama_model_rope_freq_scale_train(const struct llama_model *model);
LLAMA_API uint32_t llama_model_n_cls_out(const struct llama_model *model);
LLAMA_API const char *llama_model_cls_label(const struct llama_model *model, uint32_t i);

/* How text becomes ids: SPM merges characters by score, BPE bytes by rank; NONE: there is only a number of ids. */
LLAMA_API enum llama_vocab_type llama_vocab_type(const struct llama_vocab *vocab);

/* Number of ids: 0 .. n - 1. */
LLAMA_API int32_t llama_vocab_n_tokens(const struct llama_vocab *vocab);

/* Metadata that are not arrays, as text. Each writes up to buf_size bytes with the NUL and returns the whole length, or -1 when
 * there is no such key. */
LLAMA_API int32_t llama_model_meta_val_str(const struct llama_model *model, const char *key, char *buf, size_t
    buf_size);
LLAMA_API int32_t llama_model_meta_count(const struct llama_model *model);
LLAMA_API const char *llama_model_meta_key_str(enum llama_model_meta_key key);
LLAMA_API int32_t llama_model_meta_key_by_index(const struct llama_model *model, int32_t i, char *buf, size_t
    buf_size);
LLAMA_API int32_t llama_model_meta_val_str_by_index(const struct llama_model *model, int32_t i, char *buf, size_t
    buf_size);

/* Architecture, parameters and type in a few words, as snprintf. */
LLAMA_API int32_t llama_model_desc(const struct llama_model *model, char *buf, size_t buf_size);
LLAMA_API enum llama_ftype llama_model_ftype(const struct llama_model *model);
/* Bytes of all tensors; their elements. */
LLAMA_API uint64_t llama_model_size(const struct llama_model *model);
/* The template of that name, the default one for NULL; NULL: the file has none. */
LLAMA_API const char *llama_model_chat_template(const struct llama_model *model, const char *name);
LLAMA_API uint64_t llama_model_n_params(const struct llama_model *model);

LLAMA_API bool llama_model_has_encoder(const struct llama_model *model);
LLAMA_API bool llama_model_has_decoder(const struct llama_model *model);
LLAMA_API llama_token llama_model_decoder_start_token(const struct llama_model *model);
LLAMA_API bool llama_model_is_recurrent(const struct llama_model *model);
LLAMA_API bool llama_model_is_hybrid(const struct llama_model *model);
LLAMA_API bool llama_model_is_diffusion(const struct llama_model *model);

/* ---- other files ------------------------------------------------------------------------------------------------ */

/* Writes fname_inp anew with weights of other types: 0, or not 0 after a line of log, and nothing is written then. Which type
 * a tensor gets is the mixture of params->ftype, unless output_tensor_type, token_embedding_type (GGML_TYPE_COUNT: as the
 * mixture has it) or the first of tt_overrides whose pattern (a regular expression of ECMAScript, docs/differences.md) occurs in its name says
 * otherwise. A type whose blocks do not divide the rows is replaced by a similar one, with a warning at the end; docs/differences.md lists which.
 * `imatrix` and tt_overrides end with a NULL name, kv_overrides with an empty key, prune_layers with -1. Tensors are streamed:
 * memory does not grow with the file (max_buf_size bounds the buffer further, down to a row). NULL: the defaults. */
LLAMA_API uint32_t llama_model_quantize(const char *fname_inp, const char *fname_out, const
    llama_model_quantize_params *params);

/* ---- adapters --------------------------------------------------------------------------------------------------- */

/* A low-rank adapter (LoRA): a GGUF file with general.type "adapter", adapter.type "lora" and the model's architecture, whose
 * pairs of tensors NAME.lora_a [k, rank] and NAME.lora_b [rank, rows] add scale*B*A to the model's weight NAME [k, rows]; experts
 * have one such pair each, as a third dimension. The pair of token_embd.weight is [rank, n_vocab] and [rank, n_embd], and
 * changes what tokens are read as; the one of output.weight changes the logits, also of a model that has one matrix for both.
 * The file is mapped, not read. NULL after a line of log: the file is none, or does not fit the model, which must have weights.
 * The adapter belongs to the model and is freed with it, at the latest. Making and freeing adapters of one model is for one
 * thread at a time, and not while a context on it is made to use others. */
LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init(struct llama_model *model, const char *path_lora);
/* The same from a stream, which the caller keeps. */
LLAMA_API struct llama_adapter_lora *llama_adapter_lora_init_from_file_ptr(struct llama_model *model, FILE *file);
/* The adapter's metadata, as llama_model_meta_* give a model's: printed like snprintf, -1 when there is no such key. */
LLAMA_API int32_t llama_adapter_meta_val_str(const struct llama_adapter_lora *adapter, const char *key, char *buf,
    size_t buf_size);
LLAMA_API int32_t llama_adapter_meta_count(const struct llama_adapter_lora *adapter);
LLAMA_API int32_t llama_adapter_meta_key_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf,
    size_t buf_size);
LLAMA_API int32_t llama_adapter_meta_val_str_by_index(const struct llama_adapter_lora *adapter, int32_t i, char *buf,
    size_t buf_size);
/* Frees it before its model is. Contexts that use it go on with it, until they are given others or are freed. NULL is allowed. */
LLAMA_API void llama_adapter_lora_free(struct llama_adapter_lora *adapter);
/* An activated adapter (aLoRA) names the tokens from which on it is meant to be used; that is left to the program. 0 and NULL:
 * an ordinary one. The list belongs to the adapter. */
LLAMA_API uint64_t llama_adapter_get_alora_n_invocation_tokens(const struct llama_adapter_lora *adapter);
LLAMA_API const llama_token *llama_adapter_get_alora_invocation_tokens(const struct llama_adapter_lora *adapter);

/* The context computes with these adapters from now on, and with no other: n_adapters 0 removes all. B*A counts
 * scales[i]*adapter.lora.alpha/rank times, or scales[i] times where the file has no alpha or 0; with scale 0 an adapter is not
 * used. Their sum is taken, one that is given twice counts once, with its last scale. What is in the memory was computed with
 * the adapters of its time: llama_memory_clear before going on with others, unless that is wanted. Another set of adapters plans
 * the context's graphs anew, beside the old plan for a moment; other scales do not. 0; or -1 after a line of log and nothing
 * changed: an adapter is another model's, a scale is not finite, no memory. */
LLAMA_API int32_t llama_set_adapters_lora(struct llama_context *ctx, struct llama_adapter_lora **adapters, size_t
    n_adapters, float *scales);

/* The context adds a vector of n_embd elements, the model's width, to what each layer from il_start to il_end, both included,
 * returns: data has those of layers 1, 2, ... one after the other, len elements in all, and is copied. Layer 0 gets none, nor do
 * layers that data has none for. Each call replaces the vectors of the last; data NULL removes them. As with adapters, what is in
 * the memory stays as it was computed. 0; or -1 after a line of log and nothing changed: n_embd is another, no memory. */
LLAMA_API int32_t llama_set_adapter_cvec(struct llama_context *ctx, const float *data, size_t len, int32_t n_embd,
    int32_t il_start, int32_t il_end);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* What a context remembers: for each sequence, tokens by position. Ranges are [p0, p1); a negative p0 is 0, a negative p1 the
 * end. Unknown sequences have no tokens. */

/* Forget everything; with `data`, overwrite it too. */
LLAMA_API void llama_memory_clear(llama_memory_t mem, bool data);
/* Forget a range of one sequence, or of all (seq_id negative). False, and nothing changed: what would be left could not be gone on
 * from, because a sliding window has dropped tokens that the next one must see. */
LLAMA_API bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
/* Let seq_id_dst have these tokens too. They are shared, save the last few, which are copied. */
LLAMA_API void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
    llama_pos p1);
/* Forget all sequences but this. */
LLAMA_API void llama_memory_seq_keep(llama_memory_t mem, llama_seq_id seq_id);
/* Move positions by delta, or divide them by d. Keys are rotated accordingly before the next batch. */
LLAMA_API void llama_memory_seq_add(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, llama_pos
    delta);
LLAMA_API void llama_memory_seq_div(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, int d);
/* The first and last position; -1: none. With a sliding window that is not kept whole, the first that all layers have. */
LLAMA_API llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id);
LLAMA_API llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id);
LLAMA_API bool llama_memory_can_shift(llama_memory_t mem);

/* ---- states ----------------------------------------------------------------------------------------------------- */

/* The memory, with the last results, as bytes; for a context of the same model and cache types. get_data returns the bytes
 * written, set_data the bytes read; 0 on failure, and then nothing changed. States are checked, and refused when damaged. */
LLAMA_API size_t llama_state_get_size(struct llama_context *ctx);
LLAMA_API size_t llama_state_get_data(struct llama_context *ctx, uint8_t *dst, size_t size);
LLAMA_API size_t llama_state_set_data(struct llama_context *ctx, const uint8_t *src, size_t size);

/* The same in a file, with a list of tokens that means something to the program. */
LLAMA_API bool llama_state_load_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out,
    size_t n_token_capacity, size_t *n_token_count_out);
LLAMA_API bool llama_state_save_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
    size_t n_token_count);

/* Older names. Those that know no size: dst has room for llama_state_get_size bytes, and src holds a whole state. */
GGML_DEPRECATED(LLAMA_API size_t llama_get_state_size(struct llama_context *ctx), "use llama_state_get_size");
GGML_DEPRECATED(LLAMA_API size_t llama_copy_state_data(struct llama_context *ctx, uint8_t *dst), "use llama_state_get_data");
GGML_DEPRECATED(LLAMA_API size_t llama_set_state_data(struct llama_context *ctx, const uint8_t *src), "use llama_state_set_data");
GGML_DEPRECATED(LLAMA_API bool llama_load_session_file(struct llama_context *ctx, const char *path_session, llama_token
    *tokens_out, size_t n_token_capacity, size_t *n_token_count_out), "use llama_state_load_file");
GGML_DEPRECATED(LLAMA_API bool llama_save_session_file(struct llama_context *ctx, const char *path_session, const llama_token
    *tokens, size_t n_token_count), "use llama_state_save_file");

/* The same for one sequence, which can be taken up as another. */
LLAMA_API size_t llama_state_seq_get_size(struct llama_context *ctx, llama_seq_id seq_id);
LLAMA_API size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id);
LLAMA_API size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id
    dest_seq_id);
LLAMA_API size_t llama_state_seq_save_file(struct llama_context *ctx, const char *filepath, llama_seq_id seq_id, const
    llama_token *tokens, size_t n_token_count);
LLAMA_API size_t llama_state_seq_load_file(struct llama_context *ctx, const char *filepath, llama_seq_id dest_seq_id,
    llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out);

/* flags: LLAMA_STATE_SEQ_FLAGS_SWA_ONLY: only what layers with a sliding window have. */
LLAMA_API size_t llama_state_seq_get_size_ext(struct llama_context *ctx, llama_seq_id seq_id, llama_state_seq_flags
    flags);
LLAMA_API size_t llama_state_seq_get_data_ext(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id
    seq_id, llama_state_seq_flags flags);
LLAMA_API size_t llama_state_seq_set_data_ext(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id
    dest_seq_id, llama_state_seq_flags flags);

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* A batch on the caller's tokens: sequence 0, following its last, results for the last token. */
LLAMA_API struct llama_batch llama_batch_get_one(llama_token *tokens, int32_t n_tokens);
/* Room for n_tokens of up to n_seq_max sequences each; embd > 0: for embeddings of that width. All arrays NULL: no memory. */
LLAMA_API struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max);
LLAMA_API void llama_batch_free(struct llama_batch batch);

/* No model here has an encoder: -1. */
LLAMA_API int32_t llama_encode(struct llama_context *ctx, struct llama_batch batch);
/* Runs a batch and remembers it. Each sequence goes on at its last position + 1.
 *    0  done; results of the previous batch are gone
 *    1  no room in the memory: decode less, or make room
 *    2  stopped by the abort callback
 *   -1  the batch is wrong: a token, sequence, position or size out of range
 *  < -1  no memory, or a device failed
 * Unless 0 is returned, the memory is as before, except that a sliding window may have lost its oldest tokens. */
LLAMA_API int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch);

/* A batch that grows, of up to n_batch tokens. Tokens are known by their index, which add returns; -1: full, or no such sequence. */
LLAMA_API struct llama_batch_ext *llama_batch_ext_init(struct llama_context *ctx);
LLAMA_API void llama_batch_ext_free(struct llama_batch_ext *batch);
LLAMA_API void llama_batch_ext_clear(struct llama_batch_ext *batch);
LLAMA_API int32_t llama_batch_ext_add(struct llama_batch_ext *batch, llama_seq_id seq_id);
LLAMA_API int32_t llama_batch_ext_add_token(struct llama_batch_ext *batch, llama_seq_id seq_id, llama_token id);
LLAMA_API int32_t llama_batch_ext_add_embd(struct llama_batch_ext *batch, llama_seq_id seq_id, struct llama_embd
    embd);
LLAMA_API bool llama_batch_ext_add_seq(struct llama_batch_ext *batch, int32_t idx, llama_seq_id seq_id);
LLAMA_API bool llama_batch_ext_set_embd_token(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
LLAMA_API bool llama_batch_ext_set_embd_state(struct llama_batch_ext *batch, int32_t idx, struct llama_embd embd);
/* Results are wanted of the tokens so marked; without any mark, of the last. */
LLAMA_API bool llama_batch_ext_set_output_embd(struct llama_batch_ext *batch, int32_t idx, bool value);
LLAMA_API bool llama_batch_ext_set_output_logits(struct llama_batch_ext *batch, int32_t idx, bool value);
LLAMA_API bool llama_batch_ext_set_pos(struct llama_batch_ext *batch, int32_t idx, const llama_pos *pos);

/* As llama_decode. */
LLAMA_API int32_t llama_process(struct llama_context *ctx, enum llama_process_type type, struct llama_batch_ext
    *batch);

/* ---- settings --------------------------------------------------------------------------------------------------- */

LLAMA_API void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch);
LLAMA_API int32_t llama_n_threads(struct llama_context *ctx);
LLAMA_API int32_t llama_n_threads_batch(struct llama_context *ctx);

LLAMA_API void llama_set_embeddings(struct llama_context *ctx, bool embeddings);
LLAMA_API void llama_set_causal_attn(struct llama_context *ctx, bool causal_attn);
LLAMA_API bool llama_get_causal_attn(const struct llama_context *ctx);
GGML_DEPRECATED(LLAMA_API void llama_set_warmup(struct llama_context *ctx, bool warmup), "old");
/* Called often, from a computing thread: true stops. */
LLAMA_API void llama_set_abort_callback(struct llama_context *ctx, ggml_abort_callback abort_callback, void
    *abort_callback_data);
/* Wait until results are there. llama_decode does. */
LLAMA_API void llama_synchronize(struct llama_context *ctx);

/* ---- results of the last batch ---------------------------------------------------------------------------------- */

/* [n_vocab, rows]: a row for each token whose results were wanted, in order. Valid until the next batch. NULL: there are none. */
LLAMA_API float *llama_get_logits(struct llama_context *ctx);
/* The row of token i of the batch; negative: counted from the last row. NULL after a line of log: it was not wanted. */
LLAMA_API float *llama_get_logits_ith(struct llama_context *ctx, int32_t i);
/* The same for hidden states, [n_embd, rows], with params.embeddings. */
LLAMA_API float *llama_get_embeddings(struct llama_context *ctx);
LLAMA_API float *llama_get_embeddings_ith(struct llama_context *ctx, int32_t i);
/* [n_embd]: pooled over the sequence's tokens of the batch, with a pooling_type. */
LLAMA_API float *llama_get_embeddings_seq(struct llama_context *ctx, llama_seq_id seq_id);

/* Results of samplers inside the graph. There are none: llama_set_sampler returns false, these NULL and 0. */
LLAMA_API llama_token llama_get_sampled_token_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_sampled_probs_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_probs_count_ith(struct llama_context *ctx, int32_t i);
LLAMA_API float *llama_get_sampled_logits_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_logits_count_ith(struct llama_context *ctx, int32_t i);
LLAMA_API llama_token *llama_get_sampled_candidates_ith(struct llama_context *ctx, int32_t i);
LLAMA_API uint32_t llama_get_sampled_candidates_count_ith(struct llama_context *ctx, int32_t i);

/* ---- vocabularies ----------------------------------------------------------------------------------------------- */

/* Any id may be asked for; one that is not in the vocabulary has text "", score 0 and no attributes. Texts are those of the
 * file (with marks for spaces or bytes; llama_token_to_piece gives them as text) and live as long as the model. */
LLAMA_API const char *llama_vocab_get_text(const struct llama_vocab *vocab, llama_token token);
LLAMA_API float llama_vocab_get_score(const struct llama_vocab *vocab, llama_token token);
LLAMA_API enum llama_token_attr llama_vocab_get_attr(const struct llama_vocab *vocab, llama_token token);

/* Does generation end with it? End of text, of turn and of message, and control tokens known to be such. */
LLAMA_API bool llama_vocab_is_eog(const struct llama_vocab *vocab, llama_token token);
LLAMA_API bool llama_vocab_is_control(const struct llama_vocab *vocab, llama_token token);

/* Tokens by role; LLAMA_TOKEN_NULL: the vocabulary has none. nl is the token of a line feed. */
LLAMA_API llama_token llama_vocab_bos(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_eos(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_eot(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_sep(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_nl(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_pad(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_mask(const struct llama_vocab *vocab);

/* Does the model want these at the ends of a text? False when the token does not exist. */
LLAMA_API bool llama_vocab_get_add_bos(const struct llama_vocab *vocab);
LLAMA_API bool llama_vocab_get_add_eos(const struct llama_vocab *vocab);
LLAMA_API bool llama_vocab_get_add_sep(const struct llama_vocab *vocab);

/* Ids that are never to be chosen: *n_suppress_tokens of them, owned by the model. */
LLAMA_API const llama_token *llama_vocab_get_suppress_tokens(const struct llama_vocab *vocab, int32_t
    *n_suppress_tokens);
LLAMA_API llama_token llama_vocab_fim_pre(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_suf(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_mid(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_pad(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_rep(const struct llama_vocab *vocab);
LLAMA_API llama_token llama_vocab_fim_sep(const struct llama_vocab *vocab);
GGML_DEPRECATED(LLAMA_API const char *llama_token_get_text(const struct llama_vocab *vocab, llama_token token),
    "deprecated");
GGML_DEPRECATED(LLAMA_API float llama_token_get_score(const struct llama_vocab *vocab, llama_token token),
    "deprecated");
GGML_DEPRECATED(LLAMA_API enum llama_token_attr llama_token_get_attr(const struct llama_vocab *vocab, llama_token
    token), "old");
GGML_DEPRECATED(LLAMA_API bool llama_token_is_eog(const struct llama_vocab *vocab, llama_token token), "old");
GGML_DEPRECATED(LLAMA_API bool llama_token_is_control(const struct llama_vocab *vocab, llama_token token),
    "deprecated");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_bos(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_eos(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_eot(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_cls(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_sep(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_nl(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_pad(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API bool llama_add_bos_token(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API bool llama_add_eos_token(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_pre(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_suf(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_mid(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_pad(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_rep(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_token_fim_sep(const struct llama_vocab *vocab), "old");
GGML_DEPRECATED(LLAMA_API llama_token llama_vocab_cls(const struct llama_vocab *vocab), "old");

/* ---- text and ids ----------------------------------------------------------------------------------------------- */

/* Writes the ids of text_len bytes of text, any bytes at all, to tokens. Returns their number; when there are more than
 * n_tokens_max, minus the number needed, with tokens holding the first of them; INT32_MIN when that number does not fit or
 * memory ran out. `add_special`: with the tokens that the model wants at the ends. `parse_special`: control tokens written in
 * the text are read as such; user-defined ones always are. Special tokens are found from left to right, the longest first. */
LLAMA_API int32_t llama_tokenize(const struct llama_vocab *vocab, const char *text, int32_t text_len, llama_token
    *tokens, int32_t n_tokens_max, bool add_special, bool parse_special);

/* Writes the text of one token, which may be a part of a UTF-8 sequence, without a NUL. Returns its bytes; when there are more
 * than length, minus the number needed. Leaves out the first lstrip spaces. Control tokens have text only if `special`. */
LLAMA_API int32_t llama_token_to_piece(const struct llama_vocab *vocab, llama_token token, char *buf, int32_t length,
    int32_t lstrip, bool special);

/* Writes the text of n_tokens ids, without a NUL. Returns its bytes; when there are more than text_len_max, minus the number
 * needed; INT32_MIN when that does not fit. `remove_special`: without the tokens that llama_tokenize adds at the ends.
 * `unparse_special`: with the texts of control tokens. A text that was tokenized comes back byte for byte; but SPM reads
 * U+2581 as a space. */
LLAMA_API int32_t llama_detokenize(const struct llama_vocab *vocab, const llama_token *tokens, int32_t n_tokens, char
    *text, int32_t text_len_max, bool remove_special, bool unparse_special);
LLAMA_API int32_t llama_chat_apply_template(const char *tmpl, const struct llama_chat_message *chat, size_t n_msg,
    bool add_ass, char *buf, int32_t length);
LLAMA_API int32_t llama_chat_builtin_templates(const char **output, size_t len);
LLAMA_API bool llama_set_sampler(struct llama_context *ctx, llama_seq_id seq_id, struct llama_sampler *smpl);

/* ---- samplers --------------------------------------------------------------------------------------------------- */

/* A sampler changes, cuts or chooses among the candidates for the next token. The functions of `iface` may be NULL, but for
 * apply. Candidates may hold any logits: NaN counts as -inf, and of equal ones the smaller id comes first. What allocates
 * returns NULL after a line of log when memory runs out; applying never allocates, but for grammars, whose stacks may grow.
 * The sampler takes over `ctx`, which iface->free has to release; `iface` has to outlive it. */
LLAMA_API struct llama_sampler *llama_sampler_init(struct llama_sampler_i *iface, llama_sampler_context_t ctx);
LLAMA_API const char *llama_sampler_name(const struct llama_sampler *smpl);

/* The token was chosen: samplers with a memory note it. */
LLAMA_API void llama_sampler_accept(struct llama_sampler *smpl, llama_token token);

/* Works on the candidates. A sampler that chooses sets cur_p->selected, an index in cur_p->data; others leave it. */
LLAMA_API void llama_sampler_apply(struct llama_sampler *smpl, llama_token_data_array *cur_p);

/* As new: what was accepted is forgotten, generators start with their seeds. */
LLAMA_API void llama_sampler_reset(struct llama_sampler *smpl);

/* One in the same state, which goes on alike. NULL also for a sampler that has a state and no clone function. */
LLAMA_API struct llama_sampler *llama_sampler_clone(const struct llama_sampler *smpl);

/* Gives dst, made like src, the state of src. */
LLAMA_API void llama_sampler_copy(const struct llama_sampler *src, struct llama_sampler *dst);

/* Also what a chain holds. A sampler that is in a chain is the chain's to free. */
LLAMA_API void llama_sampler_free(struct llama_sampler *smpl);

/* A sampler that applies others in turn, and owns them. It keeps the buffer of candidates that llama_sampler_sample needs. */
LLAMA_API struct llama_sampler *llama_sampler_chain_init(struct llama_sampler_chain_params params);
LLAMA_API void llama_sampler_chain_add(struct llama_sampler *chain, struct llama_sampler *smpl);

/* Number i, still owned by the chain; -1: the chain itself; NULL: none. */
LLAMA_API struct llama_sampler *llama_sampler_chain_get(struct llama_sampler *chain, int32_t i);
LLAMA_API int32_t llama_sampler_chain_n(const struct llama_sampler *chain);

/* Takes number i out; the caller owns it. NULL: none. */
LLAMA_API struct llama_sampler *llama_sampler_chain_remove(struct llama_sampler *chain, int32_t i);

/* Chooses the largest logit. */
LLAMA_API struct llama_sampler *llama_sampler_init_greedy(void);

/* Chooses by probability, softmax of the logits. A seed gives the same sequence everywhere; LLAMA_DEFAULT_SEED asks for
 * another one each time. */
LLAMA_API struct llama_sampler *llama_sampler_init_dist(uint32_t seed);

/* Keeps the k best, in order; k <= 0: all. */
LLAMA_API struct llama_sampler *llama_sampler_init_top_k(int32_t k);

/* Keeps the shortest list of the best with a probability of p together, at least min_keep; p >= 1: all. */
LLAMA_API struct llama_sampler *llama_sampler_init_top_p(float p, size_t min_keep);

/* Keeps those with at least p of the largest probability, at least min_keep; p <= 0: all. */
LLAMA_API struct llama_sampler *llama_sampler_init_min_p(float p, size_t min_keep);

/* Keeps those whose surprise is nearest to the entropy, with more than p together, at least min_keep; p >= 1: all. */
LLAMA_API struct llama_sampler *llama_sampler_init_typical(float p, size_t min_keep);

/* Divides logits by t; t <= 0: the best one alone stays possible. */
LLAMA_API struct llama_sampler *llama_sampler_init_temp(float t);

/* Temperature between t - delta and t + delta, rising with the entropy to the power of exponent; delta <= 0: t. */
LLAMA_API struct llama_sampler *llama_sampler_init_temp_ext(float t, float delta, float exponent);

/* With probability p leaves out all but the least likely of those that have at least t each, if min_keep remain.
 * t > 0.5: never. */
LLAMA_API struct llama_sampler *llama_sampler_init_xtc(float p, float t, size_t min_keep, uint32_t seed);

/* Keeps logits within n standard deviations of the largest; n <= 0: all. */
LLAMA_API struct llama_sampler *llama_sampler_init_top_n_sigma(float n);

/* Both choose, and hold the mean surprise near tau bits, corrected at rate eta; m: how many the first version fits to. */
LLAMA_API struct llama_sampler *llama_sampler_init_mirostat(int32_t n_vocab, uint32_t seed, float tau, float eta,
    int32_t m);
LLAMA_API struct llama_sampler *llama_sampler_init_mirostat_v2(uint32_t seed, float tau, float eta);
/* Lets those tokens pass that go on with a text of a GBNF grammar (docs/how-to.md) whose first rule is grammar_root; ends
 * of generation where the text may end. Accepting moves on; both grow with the depth of the text and the only bounds are far
 * off. Where nothing can go on, a line of log tells it and ends alone pass. An empty grammar lets all pass. NULL after a line of
 * log: the text is no grammar, a rule is missing or begins with itself, it is too large, or memory runs out. */
LLAMA_API struct llama_sampler *llama_sampler_init_grammar(const struct llama_vocab *vocab, const char *grammar_str,
    const char *grammar_root);
/* The same once a trigger has appeared in the accepted text; before, all tokens pass. The grammar's text begins with the trigger
 * word or token, or at what the first group of a pattern (a regular expression of ECMAScript, docs/differences.md) matched, or
 * where the pattern did. */
GGML_DEPRECATED(LLAMA_API struct llama_sampler *llama_sampler_init_grammar_lazy(const struct llama_vocab *vocab, const
    char *grammar_str, const char *grammar_root, const char **trigger_words, size_t num_trigger_words, const
    llama_token *trigger_tokens, size_t num_trigger_tokens), "old");
LLAMA_API struct llama_sampler *llama_sampler_init_grammar_lazy_patterns(const struct llama_vocab *vocab, const char
    *grammar_str, const char *grammar_root, const char **trigger_patterns, size_t num_trigger_patterns, const
    llama_token *trigger_tokens, size_t num_trigger_tokens);

/* A token seen n times among the last penalty_last_n (0: off, -1: 32768) has a positive logit divided by, a
 * negative one multiplied with penalty_repeat, and loses n*penalty_freq + penalty_present. Ids are below n_vocab. */
LLAMA_API struct llama_sampler *llama_sampler_init_penalties(int32_t n_vocab, int32_t penalty_last_n, float
    penalty_repeat, float penalty_freq, float penalty_present);

/* A token that would go on with a repetition of m >= dry_allowed_length tokens loses
 * dry_multiplier*dry_base^(m - dry_allowed_length). A repetition does not reach over a breaker. Multiplier or last_n 0: off. */
LLAMA_API struct llama_sampler *llama_sampler_init_dry(const struct llama_vocab *vocab, float dry_multiplier, float
    dry_base, int32_t dry_allowed_length, int32_t dry_penalty_last_n, const char **seq_breakers, size_t num_breakers);

/* Chooses tokens with probabilities near `target` in the mean, over a time that grows with decay (0 .. 0.99); target < 0: by
 * probability alone. */
LLAMA_API struct llama_sampler *llama_sampler_init_adaptive_p(float target, float decay, uint32_t seed);

/* Adds a bias to the logits of given ids; the list is copied. */
LLAMA_API struct llama_sampler *llama_sampler_init_logit_bias(int32_t n_vocab, int32_t n_logit_bias, const
    llama_logit_bias *logit_bias);

/* For text between a prefix and a suffix: joins tokens that begin alike, keeps clear choices, ends early. Use after a cut. */
LLAMA_API struct llama_sampler *llama_sampler_init_infill(const struct llama_vocab *vocab);

/* The seed in use; LLAMA_DEFAULT_SEED when there is none. Of a chain: that of the last one that has any. */
LLAMA_API uint32_t llama_sampler_get_seed(const struct llama_sampler *smpl);

/* Applies smpl to the logits of output idx (as for llama_get_logits_ith), accepts the token chosen and returns it.
 * LLAMA_TOKEN_NULL after a line of log: there are no such logits, or no sampler chose. */
LLAMA_API llama_token llama_sampler_sample(struct llama_sampler *smpl, struct llama_context *ctx, int32_t idx);

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Whether a weight is to be trained. Asked for each that can be: F32, and neither the embeddings, nor an output that is one with
 * them, nor the factors of rotations. */
typedef bool (*llama_opt_param_filter)(const struct ggml_tensor *tensor, void *userdata);
/* True. */
LLAMA_API bool llama_opt_param_filter_all(const struct ggml_tensor *tensor, void *userdata);

struct llama_opt_params {
    uint32_t n_ctx_train;                           /* the model's from then on; 0: that of the context */
    llama_opt_param_filter param_filter;            /* NULL: all */
    void *param_filter_ud;
    ggml_opt_get_optimizer_params get_opt_pars;     /* before each step; NULL: ggml_opt_get_default_optimizer_params */
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer_type;
};

/* Prepares a context for training its model, or begins again. Gradients are those of n_ubatch tokens at a time, which see
 * what the cache has of tokens before them; a step of the optimiser follows n_batch tokens. n_batch divides n_ctx and
 * n_ctx_train, n_ubatch divides n_batch. The model was loaded into memory of its own (LLAMA_LOAD_MODE_NONE), the cache holds F32,
 * F16 or BF16; other contexts of the model see its weights change. What is missing is one line of log, and then
 * llama_opt_epoch does nothing. */
LLAMA_API void llama_opt_init(struct llama_context *lctx, struct llama_model *model, struct llama_opt_params
    lopt_params);
/* One pass over points of n_ctx tokens with as many labels, the tokens that follow (I32 both, shards of one point): the first
 * idata_split points (all when negative) with steps into result_train, the rest without into result_eval. The loss is the mean
 * cross-entropy; a callback follows every n_ubatch tokens. Results and callbacks may be NULL. The cache is empty afterwards.
 * Ends early, after a line of log, when a token is none of the model's or a batch cannot be computed. */
LLAMA_API void llama_opt_epoch(struct llama_context *lctx, ggml_opt_dataset_t dataset, ggml_opt_result_t
    result_train, ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
    ggml_opt_epoch_callback callback_eval);

/* ---- names of split files --------------------------------------------------------------------------------------- */

/* <prefix>-00002-of-00005.gguf for split_no 1 of 5. The length; 0: it does not fit. */
LLAMA_API int32_t llama_split_path(char *split_path, size_t maxlen, const char *path_prefix, int32_t split_no, int32_t
    split_count);
/* The prefix of such a name. The length; 0: the name is another or does not fit. */
LLAMA_API int32_t llama_split_prefix(char *split_prefix, size_t maxlen, const char *split_path, int32_t split_no,
    int32_t split_count);

/* ---- log and figures -------------------------------------------------------------------------------------------- */

/* Instruction sets and threads in one line. A static buffer. */
LLAMA_API const char *llama_print_system_info(void);
/* Where lines of log go: of this library and of ggml. NULL sets stderr again. Set it before other threads log. */
LLAMA_API void llama_log_get(ggml_log_callback *log_callback, void **user_data);
LLAMA_API void llama_log_set(ggml_log_callback log_callback, void *user_data);
LLAMA_API struct llama_perf_context_data llama_perf_context(const struct llama_context *ctx);
LLAMA_API void llama_perf_context_print(const struct llama_context *ctx);
LLAMA_API void llama_perf_context_reset(struct llama_context *ctx);

/* Time spent in a chain made without no_perf, and tokens accepted by it. */
LLAMA_API struct llama_perf_sampler_data llama_perf_sampler(const struct llama_sampler *chain);
LLAMA_API void llama_perf_sampler_print(const struct llama_sampler *chain);
LLAMA_API void llama_perf_sampler_reset(struct llama_sampler *chain);

#ifdef __cplusplus
}
#endif

#endif
