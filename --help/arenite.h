#ifndef ARENITE_H
#define ARENITE_H
/* What arenite adds to the interfaces of ggml.h and llama.h. Everything here has the prefix arn_. */

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "llama.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- instruction sets of the CPU backend ------------------------------------------------------------------------- */

/* Names of the levels built into this library and usable on this machine, the plainest first: "portable", "avx2", ...
 * NULL past the end. Static strings. */
GGML_API const char *arn_cpu_level_name(int i);

/* Use this level (and what it contains) from the next graph on; NULL: the best one. False: no such level here.
 * All levels give the same bits; this is for tests and measurements. */
GGML_API bool arn_cpu_set_level(const char *name);

/* The level in force. */
GGML_API const char *arn_cpu_get_level(void);

/* Compute several nodes of a graph between two meetings of the threads where their memory allows it, from the next graph on
 * (the default), or each on its own. The bits are the same; this is for tests and measurements. */
GGML_API void arn_cpu_set_fusing(bool on);

/* Threads worth using: the cores that affinity and the container's CPU quota leave to this process, at least 1. */
GGML_API int arn_cpu_default_threads(void);

/* ---- the allocator's plan ---------------------------------------------------------------------------------------- */

/* One tensor of a plan. Positions count nodes of the graph; a leaf lives from -1. */
struct arn_plan_entry {
    const struct ggml_tensor *tensor;
    int    buffer_id;       /* index of the buffer type given to ggml_gallocr_new_n */
    size_t offset;          /* bytes from the start of that buffer */
    size_t size;            /* bytes, padded to the alignment */
    int    first, last;     /* nodes at which it is written first and read last, inclusive */
    bool   in_place;        /* took over the place of a source */
};

/* Called for each tensor that the last reservation placed, in the order of placing; false ends the walk. */
typedef bool (*arn_plan_visit)(const struct arn_plan_entry *entry, void *user_data);
GGML_API void arn_gallocr_visit(ggml_gallocr_t galloc, arn_plan_visit visit, void *user_data);

/* Bytes of the last reservation in buffer `buffer_id`: `peak` is what the plan takes, `lower_bound` the largest sum of
 * tensors that live at one time, below which no plan can get. */
GGML_API void arn_gallocr_quality(ggml_gallocr_t galloc, int buffer_id, size_t *peak, size_t *lower_bound);

/* The allocator inside a scheduler, for the two calls above. Owned by the scheduler. */
GGML_API ggml_gallocr_t arn_sched_gallocr(ggml_backend_sched_t sched);

/* What the CPU backend computes of a graph between two meetings of its threads. */
struct arn_step {
    struct ggml_tensor *const *nodes;   /* [n_nodes] in the order of computing, valid during the visit */
    int  n_nodes;
    int  n_chain, n_products;           /* nodes that make the input of products; products of it; the rest follows on their
                                           parts. n_products 0: a chain of nodes row by row, or one node */
    bool wide;                          /* shared by all threads, else computed by the first alone */
};

/* Visits the steps of a graph whose tensors have memory, in their order; a false from `visit` ends the walk. False, after one
 * line of log, when memory runs out or a node cannot be computed. */
typedef bool (*arn_step_visit)(const struct arn_step *step, void *user_data);
GGML_API bool arn_cpu_visit_steps(const struct ggml_cgraph *graph, int n_threads, arn_step_visit visit, void *user_data);

/* Bytes of scratch that the CPU backend needs to compute this graph with n_threads. */
GGML_API size_t arn_cpu_scratch_size(const struct ggml_cgraph *graph, int n_threads);

/* ---- training ----------------------------------------------------------------------------------------------------- */

/* Whether the last ggml_opt_alloc has placed everything. */
GGML_API bool arn_opt_ready(ggml_opt_context_t opt);
/* As ggml_opt_eval; false, after one line of log, when that fails. */
GGML_API bool arn_opt_eval(ggml_opt_context_t opt, ggml_opt_result_t result);

/* ---- what a context takes (model library) ------------------------------------------------------------------------- */

struct llama_context;

/* Bytes by kind, known before anything is computed. A context that has only been made has touched almost none of them:
 * making one is the way to plan. */
struct arn_memory {
    size_t weights_mapped;              /* used where the file's mapping has them, shared with other processes */
    size_t weights_private;             /* copied, where mapping was declined or impossible */
    size_t metadata;                    /* vocabulary, tables, and the headers of the files in their mapping */
    size_t kv;                          /* keys and values */
    size_t activations;                 /* of the largest batch */
    size_t activations_lower_bound;     /* the largest sum of activations that live at one time */
    size_t scratch;                     /* of the CPU backend, for the largest batch */
    size_t outputs;                     /* logits and embeddings of n_outputs_max tokens; grows if a batch asks for more */
    size_t other;                       /* graph, cells of the cache */
};
GGML_API struct arn_memory arn_context_memory(const struct llama_context *ctx);

/* Visits the plan of the largest batch (n_ubatch tokens on a full cache, one row of logits). False, after one line of log,
 * when memory runs out. The tensors handed out are valid during the visit. */
GGML_API bool arn_context_plan(struct llama_context *ctx, arn_plan_visit visit, void *user_data);

/* Visits the steps in which the CPU computes a batch of n_tokens on a full cache, with n_threads, one row of logits. False, after
 * one line of log, when memory runs out or the batch is larger than n_ubatch. */
GGML_API bool arn_context_steps(struct llama_context *ctx, int32_t n_tokens, int32_t n_threads, arn_step_visit visit,
                                void *user_data);

/* ---- quantising files (model library) ---------------------------------------------------------------------------------- */

/* A tensor that gets another type: as it is, the type that was wanted, and the one it gets, which differs where rows are no
 * whole blocks of the wanted one. */
struct arn_quantized { const struct ggml_tensor *source; enum ggml_type wanted, type; };

struct arn_quantize {                       /* what llama_model_quantize has no parameters for; all may be zero */
    bool strict;                            /* refuse to replace a type */
    bool (*visit)(const struct arn_quantized *tensor, void *user_data);     /* each, before any is written; false: stop */
    llama_progress_callback progress;       /* false: stop */
    void *user_data;
};

/* llama_model_quantize with more to say. False after a line of log; the new file is there whole or not at all. */
GGML_API bool arn_model_quantize(const char *in, const char *out, const struct llama_model_quantize_params *params,
    const struct arn_quantize *more);

/* ---- chat templates (model library) ------------------------------------------------------------------------------ */

/* A conversation to be written by a chat template. Everything is the caller's and is read during the call only. */
struct arn_chat {
    const char                      *tmpl;              /* Jinja source, as the file's tokenizer.chat_template */
    const struct llama_chat_message *messages;          /* [n_messages]; used when messages_json is NULL */
    size_t                           n_messages;
    const char                      *messages_json;     /* or a JSON list of objects, with whatever members the template knows */
    bool                             add_generation_prompt;     /* end with the opening of the assistant's turn */
    const char                      *bos_token, *eos_token;     /* their texts; NULL: empty */
    const char                      *tools_json;        /* a JSON list for the variable `tools`; NULL: none */
    const char                      *extra_json;        /* a JSON object of further variables; NULL: none */
    int64_t                          now;               /* seconds since 1970, UTC, for strftime_now; 0: the clock */
};

/* Write the conversation: at most `size` bytes including a terminator go to buf. Returns the bytes needed without the
 * terminator, so that a result >= size asks for a second call with more room; -1 with one line in `error` when the template or
 * the JSON is wrong, or when it takes more than a bounded number of steps, bytes or levels. Templates reach nothing outside. */
GGML_API int32_t arn_chat_render(const struct arn_chat *chat, char *buf, size_t size, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
