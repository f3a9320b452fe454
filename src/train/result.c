/* What batches came to: losses as a running mean and sum of squares (Welford 1962), predictions one after the other. */

#include "opt.h"

#include <math.h>
#include <stdlib.h>

struct ggml_opt_result {
    int64_t  n_points, n_batches;
    double   mean, squares;             /* of the batches' losses; squares: sum of (loss - mean)^2 */
    bool     per_point;
    int64_t  n_correct;                 /* -1: not known */
    int32_t *pred;                      /* [capacity], n_pred of them set */
    int64_t  n_pred, capacity;
};

ggml_opt_result_t ggml_opt_result_init(void) { return calloc(1, sizeof(struct ggml_opt_result)); }

void ggml_opt_result_free(ggml_opt_result_t result) {
    if (result) free(result->pred);
    free(result);
}

void ggml_opt_result_reset(ggml_opt_result_t r) {
    if (r) *r = (struct ggml_opt_result) { .pred = r->pred, .capacity = r->capacity };
}

bool result_reserve(ggml_opt_result_t r, int64_t n) {
    if (!r || n <= r->capacity - r->n_pred) return true;
    const int64_t wanted = r->n_pred + n > 2*r->capacity ? r->n_pred + n : 2*r->capacity;
    int32_t *p = (uint64_t) wanted <= SIZE_MAX/sizeof *p ? realloc(r->pred, (size_t) wanted*sizeof *p) : NULL;
    if (!p) {
        LOG_ERROR("training: no memory for the predictions of %lld points\n", (long long) wanted);
        return false;
    }
    r->pred     = p;
    r->capacity = wanted;
    return true;
}

bool result_add(ggml_opt_result_t r, const struct opt_batch *batch) {
    if (batch->pred) {
        if (!result_reserve(r, batch->n)) return false;
        ggml_backend_tensor_get(batch->pred, r->pred + r->n_pred, 0, (size_t) batch->n*sizeof *r->pred);
        r->n_pred += batch->n;
    }
    const double from_mean = batch->loss - r->mean;
    r->n_points += batch->n;
    r->n_batches++;
    r->mean     += from_mean/(double) r->n_batches;
    r->squares  += from_mean*(batch->loss - r->mean);
    r->per_point = batch->per_point;
    r->n_correct = r->n_correct < 0 || batch->n_correct < 0 ? -1 : r->n_correct + batch->n_correct;
    return true;
}

void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata) {
    if (ndata) *ndata = result ? result->n_points : 0;
}

/* The standard error of a mean of n is that of one over sqrt(n), that of a sum sqrt(n) times as large. */
void ggml_opt_result_loss(ggml_opt_result_t r, double *loss, double *unc) {
    const double n = r ? (double) r->n_batches : 0.0;
    const bool mean = !r || r->per_point;
    if (loss) *loss = n == 0.0 ? 0.0 : mean ? r->mean : r->mean*n;
    if (unc)  *unc  = n < 2.0 ? (double) NAN : sqrt(r->squares/(n - 1.0)*(mean ? 1.0/n : n));
}

void ggml_opt_result_pred(ggml_opt_result_t r, int32_t *pred) {
    for (int64_t i = 0; r && pred && i < r->n_pred; i++) pred[i] = r->pred[i];
}

void ggml_opt_result_accuracy(ggml_opt_result_t r, double *accuracy, double *unc) {
    const double n = r ? (double) r->n_points : 0.0;
    const bool known = n > 0.0 && r->n_correct >= 0;
    const double share = known ? (double) r->n_correct/n : (double) NAN;
    if (accuracy) *accuracy = share;
    if (unc)      *unc = known && n >= 2.0 ? sqrt(share*(1.0 - share)/(n - 1.0)) : (double) NAN;
}
