#ifndef MODEL_H
#define MODEL_H
/* What the files of the model library share: a loaded model, an architecture as data, a context, a graph being built.
 *
 *   load.c    a file becomes a model: keys.c reads its numbers, weights.c finds its tensors, map.c its bytes
 *   arch/     one file per architecture: its keys, its tensors, its graph put together from blocks.c
 *   adapter.c low-rank adapters of a model; which of them a context uses, and its control vectors
 *   kv.c      the cache of keys and values and which sequence owns which cell
 *   graph.c   builds, reserves and reuses graphs; context.c owns them; decode.c runs batches through them
 *
 * Each loaded model is read-only and may be shared by contexts; a context belongs to one thread at a time. */

#include "arenite.h"
#include "bounds.h"
#include "kv.h"
#include "llama.h"
#include "map.h"

#include <stdatomic.h>

/* ---- a model's numbers ------------------------------------------------------------------------------------------- */

struct hparams {
    uint32_t n_ctx_train, n_embd, n_layer, n_vocab;
    uint32_t n_head[MAX_LAYERS], n_head_kv[MAX_LAYERS], n_ff[MAX_LAYERS];
    uint32_t n_head_k, n_head_v;            /* elements of one head's key and value */
    uint32_t n_rot;                         /* leading elements of a head that are rotated */
    uint32_t n_expert, n_expert_used, n_ff_expert;
    uint32_t n_swa;                         /* tokens a sliding-window layer sees, itself included; 0: no such layer */
    uint32_t swa_pattern;                   /* every swa_pattern-th layer sees everything */
    bool     swa[MAX_LAYERS];
    float    norm_eps;
    float    attn_scale;                    /* of q*k; 0: 1/sqrt(n_head_k) */
    float    attn_softcap, final_softcap;   /* c*tanh(x/c); 0: none */
    float    embd_scale, logit_scale;       /* 0: none */
    float    rope_base, rope_base_swa;
    float    rope_factor, rope_scale_linear, rope_attn_factor;
    float    yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;     /* ext_factor < 0: by scaling type */
    uint32_t rope_scaling;                  /* enum llama_rope_scaling_type */
    uint32_t pooling;                       /* enum llama_pooling_type */
    uint32_t n_ctx_orig;                    /* context before rope scaling; 0: n_ctx_train */
    bool     causal;
};

/* ---- an architecture --------------------------------------------------------------------------------------------- */

enum key_kind {
    KEY_U32,        /* one whole number */
    KEY_F32,
    KEY_BOOL,
    KEY_LAYERS,     /* uint32_t per layer, from one number or an array with one per layer */
    KEY_CHOICE,     /* uint32_t, from one of the names in `choices` */
};

/* One metadata key, "<architecture>.<name>": where it goes, and what is accepted. */
struct key_row {
    const char   *name;             /* NULL ends a table */
    enum key_kind kind;
    size_t        offset;           /* in struct hparams */
    double        min, max;         /* inclusive */
    double        absent;           /* the value when the key is missing */
    bool          required;
    const char *const *choices;     /* KEY_CHOICE: names in order of value, NULL at the end */
};

#define FIELD(name) offsetof(struct hparams, name)

enum tensor_id {
    TOKEN_EMBD, OUTPUT_NORM, OUTPUT, ROPE_FREQS,
    ATTN_NORM, ATTN_Q, ATTN_K, ATTN_V, ATTN_OUT, ATTN_Q_BIAS, ATTN_K_BIAS, ATTN_V_BIAS, ATTN_OUT_BIAS,
    ATTN_Q_NORM, ATTN_K_NORM, ATTN_POST_NORM,
    FFN_NORM, FFN_GATE, FFN_UP, FFN_DOWN, FFN_GATE_BIAS, FFN_UP_BIAS, FFN_DOWN_BIAS, FFN_POST_NORM,
    FFN_ROUTER, FFN_GATE_EXPERTS, FFN_UP_EXPERTS, FFN_DOWN_EXPERTS,
    TENSOR_COUNT
};

enum tensor_dim { DIM_NONE, N_EMBD, N_VOCAB, N_Q, N_K, N_V, N_ATTN, N_HEAD_K, N_FF, N_FF_EXPERT, N_EXPERT, N_ROT_HALF };

/* What a tensor is multiplied as decides which types it may have. */
enum tensor_use { USE_MATRIX, USE_ROWS, USE_VECTOR, USE_EXPERTS, USE_FACTORS };

enum tensor_when { ALWAYS, OPTIONAL, IF_DENSE, IF_EXPERTS };

struct tensor_row {
    enum tensor_id   id;
    const char      *name;          /* with %d: one per layer; NULL ends a table */
    enum tensor_dim  dims[4];
    enum tensor_use  use;
    enum tensor_when when;
    int              or_else;       /* an id used in its place when missing, or 0: none (TOKEN_EMBD: USE_TOKEN_EMBD) */
};
#define USE_TOKEN_EMBD (-1)

struct graph;

struct arch {
    const char              *name;              /* value of general.architecture */
    const struct key_row    *keys;
    const struct tensor_row *tensors;
    enum llama_rope_type     rope;
    void                   (*derive)(struct hparams *h);            /* optional: what follows from the keys */
    struct ggml_tensor    *(*build)(struct graph *g);               /* the logits; NULL without outputs or memory */
};

const struct arch *arch_find(const char *name);     /* NULL: unknown */
extern const struct arch arch_llama, arch_gemma3;

/* ---- a loaded model ---------------------------------------------------------------------------------------------- */

struct layer {
    struct ggml_tensor *t[TENSOR_COUNT];
};

struct part {                                   /* one file of the model */
    struct file            file;                /* open while its mapping is used */
    struct gguf_context   *gguf;
    struct ggml_context   *tensors;
    struct ggml_context   *converted;           /* of a file of the other byte order, until the data have their place */
    ggml_backend_buffer_t  buffer;
};

struct llama_model {
    const struct arch  *arch;
    struct hparams      h;
    struct llama_vocab *vocab;
    struct part        *parts;                  /* [n_parts]; parts[0].gguf has the metadata */
    int                 n_parts;
    struct layer       *layers;                 /* [h.n_layer] */
    struct ggml_tensor *t[TENSOR_COUNT];        /* those outside layers */
    ggml_backend_dev_t  device;
    size_t              bytes_mapped, bytes_private;    /* of weights */
    uint64_t            n_params, n_bytes;              /* of all tensors */
    int64_t             load_us;
    bool                vocab_only;
    bool                no_alloc;               /* sizes count, and what would be large has one byte in its place: nothing computes */
    struct llama_adapter_lora *adapters;        /* a list, freed with the model */
};

struct name_index {                             /* tensors of all parts, by name */
    struct ggml_tensor **sorted;
    size_t               n;
};

/* Each returns false after one line of log. */
bool keys_read(struct llama_model *m);                              /* fills m->arch (given its name's key) and m->h */
bool weights_find(struct llama_model *m, const struct name_index *index);   /* fills m->layers and m->t, types checked */
const char *model_file_name(const struct llama_model *m);
const char *model_lacks(const struct llama_model *m);               /* why nothing can be computed with it; NULL: all is there */
bool weight_type_fits(const struct llama_model *m, struct ggml_tensor *t, enum tensor_use use);
struct llama_model *model_open(const char *path);                   /* its files, and nothing read of them but the headers */
/* One file alone, by its path or as a stream, likewise; model_place then gives its tensors their data, mapped where possible. */
struct llama_model *model_open_one(const char *path, FILE *stream, ggml_backend_dev_t device);
bool model_place(struct llama_model *m);
/* A buffer that the tensors of ctx seem to lie in; NULL: no memory. */
ggml_backend_buffer_t buffer_pretended(struct ggml_context *ctx, ggml_backend_buffer_type_t type);
bool part_read(const struct part *p, int64_t i, size_t at, void *bytes, size_t size);  /* of tensor i's data, from `at` on */
bool override_one(struct gguf_context *g, const char *file, const struct llama_model_kv_override *o);   /* one key, set */

/* ---- adapters ---------------------------------------------------------------------------------------------------- */

struct lora_pair {                              /* both or neither; the weight [k, rows] gains scale*B*A */
    struct ggml_tensor *a, *b;                  /* [k, rank], [rank, rows]; TOKEN_EMBD: [rank, n_vocab], [rank, n_embd] */
};

struct lora_layer {
    struct lora_pair t[TENSOR_COUNT];
};

struct llama_adapter_lora {
    struct llama_model *model;                  /* whose it is, */
    struct llama_adapter_lora *next;            /* in the model's list */
    struct llama_model *files;                  /* the adapter's file: metadata and tensors */
    float               alpha;                  /* 0: the rank does not count */
    size_t              n_pairs;
    struct lora_layer  *layers, whole;          /* [n_layer]; those outside layers */
    llama_token        *invocation;             /* [n_invocation] or NULL */
    uint64_t            n_invocation;
    atomic_int          users;                  /* contexts that compute with it, and 1 until it is freed */
};

struct adapter_use {
    struct llama_adapter_lora *adapter;
    float                      scale;           /* as given, not 0 */
};

const struct lora_pair *adapter_pair(const struct llama_adapter_lora *a, int il, enum tensor_id id);    /* il < 0: outside layers */
float adapter_scale(const struct adapter_use *use, const struct lora_pair *p);      /* what B*A is multiplied with */
void adapter_uses_free(struct adapter_use *uses, size_t n);         /* the array; what nobody has or uses any more goes with it */

/* ---- a graph being built ----------------------------------------------------------------------------------------- */

struct cache_input {                            /* how a graph reaches one cache; no tensors when no layer uses it */
    struct ggml_tensor *slots;                  /* I64 [n_tokens]: the cells to write */
    struct ggml_tensor *mask;                   /* F16 [n_kv, n_tokens]: 0 or -inf */
    int64_t             n_kv;
};

/* What decides the shape of a graph; equal shapes share one built graph. */
struct graph_shape {
    int64_t n_tokens, n_outputs, n_kv[KV_CACHES];
    int64_t first_output;                       /* row of the output buffer */
    bool    from_embd, causal, embeddings;
};

struct graph {
    struct llama_context *lctx;
    const struct llama_model *model;
    struct ggml_context  *ctx;                  /* the arena, emptied for each build */
    struct ggml_cgraph   *gf;
    struct graph_shape    shape;
    bool                  ready;                /* built, placed and good for `shape` */
    bool                  measuring;            /* for its sizes, never computed */
    bool                  training;             /* gradients will be taken: nothing is changed in place */
    struct ggml_tensor   *tokens, *embd, *pos, *outputs;    /* I32 [n_tokens], F32 [n_embd, n_tokens], I32, I32 [n_outputs] */
    struct cache_input    cache[KV_CACHES];
};

/* blocks.c: x is [n_embd, n_tokens] unless said otherwise; NULL flows through. */
struct ggml_tensor *block_input(struct graph *g);                                       /* embedded tokens, scaled */
struct ggml_tensor *block_norm(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *weight);
struct ggml_tensor *block_attention(struct graph *g, int il, struct ggml_tensor *x);    /* last layer: outputs only */
struct ggml_tensor *block_residual(struct graph *g, int il, struct ggml_tensor *x);     /* last layer: outputs only */
struct ggml_tensor *block_ffn(struct graph *g, int il, struct ggml_tensor *x, enum ggml_glu_op act);    /* or experts */
struct ggml_tensor *block_rope(struct graph *g, int il, struct ggml_tensor *x, struct ggml_tensor *pos);  /* [size, heads, n] */
struct ggml_tensor *block_control(struct graph *g, int il, struct ggml_tensor *x);      /* a layer's result, with its control vector */
struct ggml_tensor *block_output(struct graph *g, struct ggml_tensor *x);               /* [n_vocab, n_outputs] */

/* ---- a context ---------------------------------------------------------------------------------------------------- */

struct rope_numbers {                           /* as ggml_rope_ext takes them */
    int   n_ctx_orig;
    float scale, ext_factor, attn_factor, beta_fast, beta_slow;
};

struct control {                                /* vectors that are added to what layers begin .. end - 1 return */
    ggml_backend_buffer_t buffer;               /* NULL: none, then begin and end are 0 */
    float                *data;                 /* [n_embd, n_layer - 1]: those of layers 1, 2, ... */
    int                   begin, end;
};

struct output_rows {                            /* where results of the last batch lie; rows in order of the batch */
    ggml_backend_buffer_t buffer;
    size_t   bytes;                             /* of the buffer */
    float   *logits;                            /* [n_vocab, max] */
    float   *embd;                              /* [n_embd, max] */
    int32_t *row;                               /* [n_batch]: row of each token of the batch, -1: none */
    int32_t  n, max, n_batch;
};

struct token_list {                             /* a checked batch: n tokens, all fields filled */
    int32_t        n;
    const llama_token *token;                   /* or NULL, then embd */
    const float   *embd;
    llama_pos     *pos;
    uint64_t      *seqs;                        /* a bit per sequence */
    int8_t        *first_seq;                   /* whose past the token sees */
    bool          *output;
    int32_t        n_outputs;
};

struct llama_context {
    const struct llama_model   *model;
    struct llama_context_params params;         /* with every default filled in */
    struct rope_numbers         rope;
    ggml_backend_t              backend;
    ggml_backend_sched_t        sched;
    ggml_threadpool_t           pool, pool_batch;   /* the program's, or NULL */
    struct llama_memory_i       memory;
    struct graph                graph;
    struct adapter_use         *adapters;       /* [n_adapters] */
    size_t                      n_adapters;
    struct control              control;
    struct training            *training;       /* NULL: not begun */
    size_t                      activations;    /* of the reserved graph */
    size_t                      scratch;        /* of the backend, for the reserved graph */
    size_t                      lower_bound;    /* of the reserved graph's activations */
    struct token_list           batch;
    struct output_rows          out;
    float                      *seq_embd;       /* [n_embd, MAX_SEQUENCES] pooled embeddings, or NULL */
    uint64_t                    seq_embd_set;   /* which of them the last batch filled */
    struct llama_perf_context_data perf;
    int64_t                     start_us;
};

/* batch.c: checks a batch against the model and the memory and fills ctx->batch; false after one line of log. */
bool batch_check(struct llama_context *ctx, const struct llama_batch *batch);
bool batch_reserve(struct token_list *list, int32_t n);
void batch_release(struct token_list *list);

/* graph.c */
bool graph_init(struct llama_context *ctx);                 /* the arena, the scheduler, the worst case reserved */
void graph_release(struct llama_context *ctx);
bool graph_replan(struct llama_context *ctx);               /* graph_init again; the old plan stays when that fails */
bool graph_reserve(struct llama_context *ctx);              /* leaves the worst case's plan in the scheduler */
bool graph_place(struct llama_context *ctx, int64_t n_tokens);   /* the graph of that many tokens on a full cache, with memory */
bool graph_prepare(struct llama_context *ctx, const struct graph_shape *shape);     /* built or reused, placed */
enum ggml_status graph_run(struct llama_context *ctx, int32_t first);   /* on the batch's tokens from `first` on */
void graph_inputs(struct llama_context *ctx, int32_t first);    /* filled for the batch's tokens from `first` on */
void graph_threads(struct llama_context *ctx, int64_t n_tokens);    /* those that compute a graph of so many */
size_t graph_most_nodes(const struct llama_context *ctx);   /* tensors of a graph, weights apart */
bool graph_build_training(struct llama_context *ctx, const struct graph_shape *shape);  /* has no memory yet; logits end it */
bool graph_shift(struct llama_context *ctx);                /* rotates cached keys by the cells' pending shifts */

/* decode.c */
bool outputs_reserve(struct llama_context *ctx, int32_t n);
void outputs_release(struct output_rows *out);

/* train.c */
void training_free(struct training *t);                     /* NULL: nothing */

#endif
