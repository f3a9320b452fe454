/* Data sets: points and their labels in host memory, and the order in which they are handed out.
 *
 * Points keep their place; the order is a list of shard numbers. A batch is a number of whole shards; what is left over at
 * the end of the data is in none. */

#include "opt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ggml_opt_dataset {
    struct ggml_context  *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor   *data, *labels;            /* [ne_datapoint, ndata], [ne_label, ndata] or NULL */
    int64_t               n_shard;                  /* points of a shard */
    int64_t               n_shards;
    int64_t              *order;                    /* [n_shards] */
};

static bool dataset_place(ggml_opt_dataset_t d) {
    const ggml_backend_dev_t host = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    d->buffer = host ? ggml_backend_alloc_ctx_tensors_from_buft(d->ctx, ggml_backend_dev_buffer_type(host)) : NULL;
    return d->buffer;
}

ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data, enum ggml_type type_label, int64_t ne_datapoint,
                                         int64_t ne_label, int64_t ndata, int64_t ndata_shard) {
    if (ne_datapoint < 1 || ne_label < 0 || ndata < 1 || ndata_shard < 1 || ndata_shard > ndata)
        GGML_ABORT("ggml_opt_dataset_init: %" PRId64 " points of %" PRId64 " elements with %" PRId64 " labels in shards of %"
                   PRId64, ndata, ne_datapoint, ne_label, ndata_shard);
    ggml_opt_dataset_t d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->n_shard  = ndata_shard;
    d->n_shards = ndata/ndata_shard;
    d->order    = (uint64_t) d->n_shards <= SIZE_MAX/sizeof *d->order ? malloc((size_t) d->n_shards*sizeof *d->order) : NULL;
    d->ctx      = ggml_init((struct ggml_init_params) { .mem_size = 2*ggml_tensor_overhead(), .no_alloc = true });
    if (d->order && d->ctx) {
        d->data   = ggml_new_tensor_2d(d->ctx, type_data, ne_datapoint, ndata);
        d->labels = ne_label > 0 ? ggml_new_tensor_2d(d->ctx, type_label, ne_label, ndata) : NULL;
        if (d->data && (d->labels || ne_label == 0) && dataset_place(d)) {
            for (int64_t i = 0; i < d->n_shards; i++) d->order[i] = i;
            return d;
        }
    }
    LOG_ERROR("data set: no memory for %" PRId64 " points\n", ndata);
    ggml_opt_dataset_free(d);
    return NULL;
}

void ggml_opt_dataset_free(ggml_opt_dataset_t d) {
    if (!d) return;
    ggml_backend_buffer_free(d->buffer);
    ggml_free(d->ctx);
    free(d->order);
    free(d);
}

int64_t             ggml_opt_dataset_ndata (ggml_opt_dataset_t dataset) { return dataset ? dataset->data->ne[1] : 0; }
struct ggml_tensor *ggml_opt_dataset_data  (ggml_opt_dataset_t dataset) { return dataset ? dataset->data   : NULL; }
struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset) { return dataset ? dataset->labels : NULL; }

/* Every order of the first shards is as likely as any other (Durstenfeld 1964, algorithm 235). */
void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t d, int64_t idata) {
    if (!opt_ctx || !d) return;
    if (idata > d->data->ne[1] || (idata > 0 && idata % d->n_shard))
        GGML_ABORT("ggml_opt_dataset_shuffle: the first %" PRId64 " of %" PRId64 " points are no whole shards of %" PRId64,
                   idata, d->data->ne[1], d->n_shard);
    for (int64_t n = idata < 0 ? d->n_shards : idata/d->n_shard; n > 1; n--) {
        const int64_t i = (int64_t) (opt_random(opt_ctx)%(uint64_t) n), last = d->order[n - 1];
        d->order[n - 1] = d->order[i];
        d->order[i]     = last;
    }
}

/* Bytes of a shard of t, which may be NULL. */
static size_t shard_bytes(const struct ggml_opt_dataset *d, const struct ggml_tensor *t) {
    return t ? t->nb[1]*(size_t) d->n_shard : 0;
}
/* The shard numbers of batch number ibatch, a batch being `bytes` of data. */
static const int64_t *batch_shards(const struct ggml_opt_dataset *d, size_t bytes, int64_t ibatch, const char *call, int64_t *n) {
    const size_t shard = shard_bytes(d, d->data);
    *n = (int64_t) (bytes/shard);
    if (bytes % shard || *n < 1 || *n > d->n_shards || ibatch < 0 || ibatch >= d->n_shards / *n)
        GGML_ABORT("%s: there is no batch %" PRId64 " of %zu bytes among %" PRId64 " shards of %zu", call, ibatch, bytes,
                   d->n_shards, shard);
    return d->order + ibatch * *n;
}
static const char *shard_at(const struct ggml_opt_dataset *d, const struct ggml_tensor *t, int64_t shard) {
    return (const char *) t->data + (size_t) shard*shard_bytes(d, t);
}

void ggml_opt_dataset_get_batch(ggml_opt_dataset_t d, struct ggml_tensor *data_batch, struct ggml_tensor *labels_batch,
                                int64_t ibatch) {
    if (!d || !data_batch) return;
    struct ggml_tensor *const to[2] = { data_batch, labels_batch }, *const from[2] = { d->data, d->labels };
    int64_t n;
    const int64_t *shards = batch_shards(d, ggml_nbytes(data_batch), ibatch, __func__, &n);
    for (int k = 0; k < 2; k++) {
        const size_t bytes = shard_bytes(d, from[k]);
        if (!to[k]) continue;
        if (!from[k] || to[k]->type != from[k]->type || !ggml_is_contiguous(to[k]) || ggml_nbytes(to[k]) != (size_t) n*bytes)
            GGML_ABORT("ggml_opt_dataset_get_batch: %s '%s' with %zu bytes is no batch of %" PRId64 " shards of %zu bytes of %s",
                       ggml_type_name(to[k]->type), to[k]->name, ggml_nbytes(to[k]), n, bytes,
                       from[k] ? ggml_type_name(from[k]->type) : "no labels");
        for (int64_t i = 0; i < n; i++) ggml_backend_tensor_set(to[k], shard_at(d, from[k], shards[i]), (size_t) i*bytes, bytes);
    }
}

void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t d, void *data_batch, size_t nb_data_batch, void *labels_batch,
                                     int64_t ibatch) {
    if (!d || !data_batch) return;
    if (labels_batch && !d->labels) GGML_ABORT("ggml_opt_dataset_get_batch_host: the data set has no labels");
    void *const to[2] = { data_batch, labels_batch };
    const struct ggml_tensor *const from[2] = { d->data, d->labels };
    int64_t n;
    const int64_t *shards = batch_shards(d, nb_data_batch, ibatch, __func__, &n);
    for (int k = 0; k < 2; k++) {
        const size_t bytes = shard_bytes(d, from[k]);
        for (int64_t i = 0; to[k] && i < n; i++) memcpy((char *) to[k] + (size_t) i*bytes, shard_at(d, from[k], shards[i]), bytes);
    }
}
