#ifndef GGML_OPT_H
#define GGML_OPT_H

/* Training: data sets, an optimiser over the graphs of a model, and what a pass over the data came to.
 *
 * The short way: a data set, a graph from `inputs` [width, batch] to `outputs` [classes, batch] whose weights are marked with
 * ggml_set_param, and ggml_opt_fit. Step by step:
 *
 *     ggml_opt_context_t opt = ggml_opt_init(params);             the graph is in params: ggml_opt_epoch runs over a data set,
 *     ggml_opt_epoch(opt, dataset, train, eval, split, 0, 0);     or, batch by batch:
 *     ggml_opt_alloc(opt, true);                                  true: gradients are computed, weights change
 *     ... data into ggml_opt_inputs(opt), labels into ggml_opt_labels(opt) ...
 *     ggml_opt_eval(opt, result);
 *
 * A graph that differs from batch to batch is handed over by ggml_opt_prepare_alloc before each ggml_opt_alloc, and params
 * have no ctx_compute. Between two batches of one static graph nothing is allocated. Results do not depend on threads, and
 * are the same in every run. What fails for lack of memory, or cannot be differentiated, is one line of log and NULL or, in
 * functions that return nothing, no effect; functions take a NULL handle and do nothing. Wrong sizes end the program with a
 * message. A context and what belongs to it are for one thread at a time. */

#include "ggml.h"
#include "ggml-backend.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_opt_dataset *ggml_opt_dataset_t;
typedef struct ggml_opt_context *ggml_opt_context_t;
typedef struct ggml_opt_result *ggml_opt_result_t;

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* ndata points of ne_datapoint elements of type_data, each with ne_label elements of type_label (0: no labels), in host
 * memory, to be filled by the caller through the tensors [ne_datapoint, ndata] and [ne_label, ndata] (NULL without labels).
 * Points are shuffled and copied by shards of ndata_shard neighbours; those behind the last whole shard are in no batch. NULL
 * when out of memory. */
GGML_API ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data, enum ggml_type type_label, int64_t ne_datapoint,
    int64_t ne_label, int64_t ndata, int64_t ndata_shard);
GGML_API void ggml_opt_dataset_free(ggml_opt_dataset_t dataset);
GGML_API int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset);
GGML_API struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset);
/* A new order of the shards of the first idata points (a multiple of the shard), of all when idata < 0, drawn from the
 * context's generator, which always starts the same way. The tensors above keep their order; batches follow the new one. */
GGML_API void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, int64_t idata);
/* Batch number ibatch, as large as data_batch (whole shards, packed, of the data's type), and its labels; labels_batch may be
 * NULL. The second copies to host memory, nb_data_batch bytes of data. */
GGML_API void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch,
    struct ggml_tensor *labels_batch, int64_t ibatch);
GGML_API void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch, size_t nb_data_batch,
    void *labels_batch, int64_t ibatch);

/* ---- parameters --------------------------------------------------------------------------------------------------- */

/* What is minimised. outputs and labels have one shape. */
enum ggml_opt_loss_type {
    GGML_OPT_LOSS_TYPE_MEAN               = 0,      /* the mean of the outputs, no labels */
    GGML_OPT_LOSS_TYPE_SUM                = 1,      /* their sum, no labels */
    GGML_OPT_LOSS_TYPE_CROSS_ENTROPY      = 2,      /* of softmax(outputs) with labels, which are probabilities: mean of the columns */
    GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3,      /* of outputs and labels */
};

/* How far a context goes: losses; gradients, which add up until ggml_opt_reset; steps of the optimiser. */
enum ggml_opt_build_type {
    GGML_OPT_BUILD_TYPE_FORWARD = 10,
    GGML_OPT_BUILD_TYPE_GRAD    = 20,
    GGML_OPT_BUILD_TYPE_OPT     = 30,
};

enum ggml_opt_optimizer_type {
    GGML_OPT_OPTIMIZER_TYPE_ADAMW,                  /* Loshchilov and Hutter 2019 */
    GGML_OPT_OPTIMIZER_TYPE_SGD,                    /* plain gradient descent */
    GGML_OPT_OPTIMIZER_TYPE_COUNT
};

struct ggml_opt_optimizer_params {
    struct {
        float alpha;            /* learning rate */
        float beta1, beta2;     /* decay of the first and the second moment, per step */
        float eps;
        float wd;               /* weight decay: each step takes away alpha*wd of a weight */
    } adamw;
    struct {
        float alpha;            /* learning rate */
        float wd;
    } sgd;
};

/* Called before each step of the optimiser. */
typedef struct ggml_opt_optimizer_params (*ggml_opt_get_optimizer_params)(void *userdata);
/* adamw { 1e-3, 0.9, 0.999, 1e-8, 0 }, sgd { 1e-3, 0 }; and what userdata, a struct ggml_opt_optimizer_params *, holds. */
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata);
GGML_API struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata);

struct ggml_opt_params {
    ggml_backend_sched_t backend_sched;             /* what computes; its graph_size has room for the backward pass */
    struct ggml_context *ctx_compute;               /* static graph: holds all that lies between inputs and outputs; else NULL */
    struct ggml_tensor *inputs;                     /* [width, batch] */
    struct ggml_tensor *outputs;                    /* F32 [n, batch] */
    enum ggml_opt_loss_type loss_type;
    enum ggml_opt_build_type build_type;
    int32_t opt_period;                             /* gradients of so many batches add up to one step */
    ggml_opt_get_optimizer_params get_opt_pars;
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer;
};

/* Steps of AdamW after every batch, with the default parameters; no graph. */
GGML_API struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched, enum ggml_opt_loss_type loss_type);

/* ---- contexts ------------------------------------------------------------------------------------------------------ */

/* NULL after one line of log: out of memory, a weight that is not F32, an op without a gradient. The scheduler, the model and
 * params' graph must outlive the context, which owns all it adds. */
GGML_API ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params);
GGML_API void ggml_opt_free(ggml_opt_context_t opt_ctx);
/* Gradients that have added up are forgotten; with `optimizer` the moments too, and steps count from 1 again. */
GGML_API void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer);
GGML_API bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx);
/* The tensors of the graph; NULL where the loss has none of the kind. Valid, without a static graph, from ggml_opt_alloc to
 * ggml_opt_eval. pred: the index of the largest output, I32 [batch]; ncorrect: how often it is that of the largest label. */
GGML_API struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx);
GGML_API struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx);
/* Where the gradients by a node, usually a weight, add up; NULL: they do not (a static graph with a step after every batch). */
GGML_API struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node);
GGML_API enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx);
GGML_API const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type optimizer);

/* The graph of the next batch, for contexts without a static one: gf has outputs and whatever else is to be computed. */
GGML_API void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute, struct ggml_cgraph *gf,
    struct ggml_tensor *inputs, struct ggml_tensor *outputs);
/* Gives all tensors their memory; then the batch can be written. backward: as far as the build type goes; else the loss only. */
GGML_API void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward);
/* Computes the batch and adds it to result, unless that is NULL. After opt_period batches with gradients the weights change. */
GGML_API void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result);

/* ---- results ------------------------------------------------------------------------------------------------------- */

/* Sums over the batches evaluated with it. Pointers to values that are not wanted may be NULL. */
GGML_API ggml_opt_result_t ggml_opt_result_init(void);
GGML_API void ggml_opt_result_free(ggml_opt_result_t result);
GGML_API void ggml_opt_result_reset(ggml_opt_result_t result);
/* Points evaluated. */
GGML_API void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata);
/* The mean loss of the batches (their sum for GGML_OPT_LOSS_TYPE_SUM) and its standard error; 0 and NaN without batches. */
GGML_API void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc);
/* The predictions in the order of evaluation, ndata of them; nothing where the loss has none. */
GGML_API void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred);
/* The share of right predictions and its standard error; NaN where there are none. */
GGML_API void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc);

/* ---- passes over a data set ----------------------------------------------------------------------------------------- */

/* After each batch: number ibatch of ibatch_max, the first is 1; the loop began at t_start_us (ggml_time_us). */
typedef void (*ggml_opt_epoch_callback)(bool train, ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
    ggml_opt_result_t result, int64_t ibatch, int64_t ibatch_max, int64_t t_start_us);

/* One pass, with a static graph: the first idata_split points (all when negative) with gradients into result_train, the rest
 * without into result_eval. Both counts are multiples of the batch. Results and callbacks may be NULL. Ends early, after a line
 * of log, when a batch cannot be computed. */
GGML_API void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
    ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
    ggml_opt_epoch_callback callback_eval);
/* A callback that keeps one line on stderr: a bar, data, loss, accuracy, time gone and time to come. */
GGML_API void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
    ggml_opt_result_t result, int64_t ibatch, int64_t ibatch_max, int64_t t_start_us);

/* Trains for nepoch passes with a step every nbatch_logical points (a multiple of inputs' batch, a divisor of ndata), keeping
 * the last val_split of the data, 0 <= val_split < 1, for evaluation. Shuffles all data once and the training part before
 * each pass. get_opt_pars gets the number of the epoch, from 1, as const int64_t *. Unless silent each pass shows its progress. */
GGML_API void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute, struct ggml_tensor *inputs,
    struct ggml_tensor *outputs, ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
    enum ggml_opt_optimizer_type optimizer, ggml_opt_get_optimizer_params get_opt_pars, int64_t nepoch, int64_t nbatch_logical,
    float val_split, bool silent);

#ifdef __cplusplus
}
#endif

#endif
