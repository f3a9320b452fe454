/* Passes over a data set, the progress bar, and training in one call. */

#include "opt.h"

#include <inttypes.h>
#include <math.h>

static bool pass(ggml_opt_context_t opt, ggml_opt_dataset_t dataset, ggml_opt_result_t result, bool train, int64_t begin,
                 int64_t end, ggml_opt_epoch_callback callback) {
    const int64_t start = ggml_time_us();
    for (int64_t i = begin; i < end; i++) {
        ggml_opt_alloc(opt, train);
        if (!arn_opt_ready(opt)) return false;
        ggml_opt_dataset_get_batch(dataset, ggml_opt_inputs(opt), ggml_opt_labels(opt), i);
        if (!arn_opt_eval(opt, result)) return false;
        if (callback) callback(train, opt, dataset, result, i - begin + 1, end - begin, start);
    }
    return true;
}

static bool epoch(ggml_opt_context_t opt, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train, ggml_opt_result_t result_eval,
                  int64_t split, ggml_opt_epoch_callback callback_train, ggml_opt_epoch_callback callback_eval) {
    const struct ggml_tensor *in = ggml_opt_inputs(opt), *data = ggml_opt_dataset_data(dataset);
    const int64_t n = data->ne[1], batch = in && ggml_opt_static_graphs(opt) ? ggml_nelements(in)/data->ne[0] : 0;
    if (split < 0) split = n;
    if (batch < 1 || batch*data->ne[0] != ggml_nelements(in) || n % batch || split % batch || split > n)
        GGML_ABORT("ggml_opt_epoch: %" PRId64 " points of %" PRId64 " elements, split at %" PRId64 ", do not fit %s", n, data->ne[0],
                   split, batch ? "the batches of a static graph" : "this graph: it is not static");
    return result_reserve(result_train, split) && result_reserve(result_eval, n - split) &&
        pass(opt, dataset, result_train, true, 0, split/batch, callback_train) &&
        pass(opt, dataset, result_eval, false, split/batch, n/batch, callback_eval);
}
void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                    ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                    ggml_opt_epoch_callback callback_eval) {
    if (opt_ctx && dataset) epoch(opt_ctx, dataset, result_train, result_eval, idata_split, callback_train, callback_eval);
}

/* ---- progress -------------------------------------------------------------------------------------------------------------- */

static void print_time(const char *name, double seconds) {
    const long s = (long) seconds;
    fprintf(stderr, " %s %02ld:%02ld:%02ld", name, s/3600, s/60%60, s%60);
}

void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                                          ggml_opt_result_t result, int64_t ibatch, int64_t ibatch_max, int64_t t_start_us) {
    GGML_UNUSED(opt_ctx); GGML_UNUSED(dataset);
    enum { WIDTH = 24 };
    const double gone = (double) (ggml_time_us() - t_start_us)/1e6;
    int64_t n;
    double loss, loss_error, accuracy, accuracy_error;
    ggml_opt_result_ndata(result, &n);
    ggml_opt_result_loss(result, &loss, &loss_error);
    ggml_opt_result_accuracy(result, &accuracy, &accuracy_error);
    fprintf(stderr, "\r%s [", train ? "train" : "eval ");
    for (int i = 1; i <= WIDTH; i++) fputc(i*ibatch_max <= WIDTH*ibatch ? '=' : '.', stderr);
    fprintf(stderr, "] %" PRId64 " points, loss %.5f", n, loss);
    if (!isnan(loss_error)) fprintf(stderr, " +- %.5f", loss_error);
    if (!isnan(accuracy))   fprintf(stderr, ", right %.2f %%", 100.0*accuracy);
    print_time(",", gone);
    print_time("left", gone*(double) (ibatch_max - ibatch)/(double) ibatch);
    fputs(ibatch == ibatch_max ? "\n" : " ", stderr);
}

/* ---- in one call ------------------------------------------------------------------------------------------------------------- */

static void fit(ggml_opt_context_t opt, ggml_opt_dataset_t dataset, ggml_opt_result_t train, ggml_opt_result_t eval, int64_t *number,
                int64_t n_epochs, int64_t n_logical, float val_split, bool silent) {
    const int64_t n = ggml_opt_dataset_ndata(dataset), n_train = (int64_t) ((1.0 - (double) val_split)*(double) (n/n_logical))*n_logical;
    const ggml_opt_epoch_callback show = silent ? NULL : ggml_opt_epoch_callback_progress_bar;
    if (n > n_logical) ggml_opt_dataset_shuffle(opt, dataset, -1);
    for (*number = 1; *number <= n_epochs; ++*number) {
        if (n_train > n_logical) ggml_opt_dataset_shuffle(opt, dataset, n_train);
        ggml_opt_result_reset(train);
        ggml_opt_result_reset(eval);
        if (!silent) fprintf(stderr, "epoch %" PRId64 " of %" PRId64 "\n", *number, n_epochs);
        if (!epoch(opt, dataset, train, eval, n_train, show, show)) return;
    }
}

void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute, struct ggml_tensor *inputs,
                  struct ggml_tensor *outputs, ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
                  enum ggml_opt_optimizer_type optimizer, ggml_opt_get_optimizer_params get_opt_pars, int64_t nepoch,
                  int64_t nbatch_logical, float val_split, bool silent) {
    if (!dataset || !inputs || !outputs) return;
    const int64_t n = ggml_opt_dataset_ndata(dataset), batch = ggml_nelements(inputs)/ggml_opt_dataset_data(dataset)->ne[0];
    if (batch < 1 || nbatch_logical < 1 || n % nbatch_logical || nbatch_logical % batch || nbatch_logical/batch > INT32_MAX ||
        !(val_split >= 0.0f && val_split < 1.0f))
        GGML_ABORT("ggml_opt_fit: %" PRId64 " points in steps of %" PRId64 " and batches of %" PRId64 ", %g for evaluation", n,
                   nbatch_logical, batch, (double) val_split);
    int64_t number = 1;
    struct ggml_opt_params params = ggml_opt_default_params(backend_sched, loss_type);
    params.ctx_compute = ctx_compute, params.inputs = inputs, params.outputs = outputs, params.optimizer = optimizer;
    params.opt_period = (int32_t) (nbatch_logical/batch), params.get_opt_pars = get_opt_pars, params.get_opt_pars_ud = &number;
    ggml_opt_context_t opt = ggml_opt_init(params);
    ggml_opt_result_t train = ggml_opt_result_init(), eval = ggml_opt_result_init();
    if (opt && train && eval) fit(opt, dataset, train, eval, &number, nepoch, nbatch_logical, val_split, silent);
    ggml_opt_result_free(train);
    ggml_opt_result_free(eval);
    ggml_opt_free(opt);
}
