/* Training a classifier of handwritten digits, 8 x 8 pixels each: a perceptron with one hidden layer, AdamW, cross entropy. A
 * fifth of the digits is kept for evaluation. Shows a progress bar, ends with the share of right answers, and draws the
 * losses of all epochs (mnist.svg).
 *
 *     mnist [-e EPOCHS] [-o PICTURE.svg] [-a PERCENT] [FILE.csv]
 *
 * FILE has a digit a line: 64 numbers from 0 to 16, and which digit it is (scripts/digits.py fetches one). Without it digits
 * are made: figures of 3 x 5 strokes at four places, with noise. Exit code 1 when fewer than PERCENT are right, 2 when
 * something is missing. The numbers are the same on every machine.
 *
 *     cc mnist.c $(pkg-config --cflags --libs ggml) -lm */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-opt.h"

enum { PIXELS = 64, HIDDEN = 64, DIGITS = 10, BATCH = 64, MAX_EPOCHS = 1000 };

static double uniform(void) {                       /* 0 <= x < 1 (Steele, Lea and Flood 2014, splitmix64) */
    static uint64_t state = 42;
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30)*0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27)*0x94d049bb133111ebu;
    return (double) ((z ^ z >> 31) >> 11)*0x1p-53;
}

/* ---- the data: whole batches ------------------------------------------------------------------------------------------ */

/* Pixels of 0 to 1 in data, a 1 at the digit's place in labels. */
struct digits { ggml_opt_dataset_t set; float *data, *labels; int64_t n; };

static struct digits digits_new(int64_t n) {
    struct digits d = { .n = n/BATCH*BATCH };
    d.set = d.n ? ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, PIXELS, DIGITS, d.n, 1) : NULL;
    d.data   = d.set ? ggml_get_data_f32(ggml_opt_dataset_data(d.set))   : NULL;
    d.labels = d.set ? ggml_get_data_f32(ggml_opt_dataset_labels(d.set)) : NULL;
    return d;
}
static void digits_put(const struct digits *d, int64_t i, const float *pixels, int digit) {
    memcpy(d->data + i*PIXELS, pixels, PIXELS*sizeof *pixels);
    for (int k = 0; k < DIGITS; k++) d->labels[i*DIGITS + k] = k == digit;
}

static struct digits digits_made(int64_t n) {
    static const char *const figures[DIGITS] = {
        "####.##.##.####", ".#.##..#..#.###", "##...#.#.#..###", "##...#.#...###.", "#.##.####..#..#",
        "####..##...###.", ".###..####.####", "###..#.#..#..#.", "####.#####.####", "####.####..###.",
    };
    struct digits d = digits_new(n);
    for (int64_t i = 0; i < d.n; i++) {
        float pixels[PIXELS];
        const int digit = (int) (uniform()*DIGITS), left = 2 + (int) (2.0*uniform()), top = 1 + (int) (2.0*uniform());
        for (int k = 0; k < PIXELS; k++) pixels[k] = (float) (0.4*uniform());
        for (int k = 0; k < 15; k++) if (figures[digit][k] == '#') pixels[8*(top + k/3) + left + k%3] = (float) (0.6 + 0.4*uniform());
        digits_put(&d, i, pixels, digit);
    }
    return d;
}

/* The next number of the line, with the comma or the end behind it; false when there is none from 0 to most. */
static bool next_number(char **at, long most, long *value) {
    char *end;
    *value = strtol(*at, &end, 10);
    const bool ok = end != *at && *value >= 0 && *value <= most;
    *at = end + (*end == ',');
    return ok;
}
static bool line_read(char *line, float *pixels, long *digit) {
    for (int k = 0; k < PIXELS; k++) {
        long v;
        if (!next_number(&line, 16, &v)) return false;
        pixels[k] = (float) v/16.0f;
    }
    return next_number(&line, DIGITS - 1, digit);
}
static struct digits digits_read(const char *path) {
    char line[1024];
    float pixels[PIXELS];
    int64_t n = 0;
    long digit;
    FILE *f = fopen(path, "r");
    if (!f) return (struct digits) { 0 };
    while (fgets(line, sizeof line, f)) n++;
    rewind(f);
    struct digits d = digits_new(n);
    for (int64_t i = 0; i < d.n; i++) {
        if (!fgets(line, sizeof line, f) || !line_read(line, pixels, &digit)) {
            fprintf(stderr, "%s:%d: not %d numbers from 0 to 16 and a digit\n", path, (int) i + 1, PIXELS);
            ggml_opt_dataset_free(d.set);
            d = (struct digits) { 0 };
            break;
        }
        digits_put(&d, i, pixels, (int) digit);
    }
    fclose(f);
    return d;
}

/* ---- the model ---------------------------------------------------------------------------------------------------------- */

/* weights holds what stays, graph describes what is computed; x [64, batch] to y [10, batch]. */
struct model {
    struct ggml_context  *weights, *graph;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor   *x, *y;
};

static struct ggml_tensor *weight(struct model *m, int64_t in, int64_t out) {
    struct ggml_tensor *t = ggml_new_tensor_2d(m->weights, GGML_TYPE_F32, in, out);
    ggml_set_param(t);
    return t;
}
/* Small enough that sums over the inputs are about 1 (Glorot and Bengio 2010). */
static void weight_start(struct ggml_tensor *w) {
    const double most = sqrt(6.0/(double) (w->ne[0] + w->ne[1]));
    for (int64_t i = 0; i < ggml_nelements(w); i++) {
        const float v = w->ne[1] == 1 ? 0.0f : (float) (most*(2.0*uniform() - 1.0));
        ggml_backend_tensor_set(w, &v, (size_t) i*sizeof v, sizeof v);
    }
}

static bool model_new(struct model *m, ggml_backend_t backend) {
    const struct ggml_init_params room = { .mem_size = 16*ggml_tensor_overhead(), .no_alloc = true };
    m->weights = ggml_init(room);
    m->graph   = ggml_init(room);
    if (!m->weights || !m->graph) return false;
    m->x = ggml_new_tensor_2d(m->weights, GGML_TYPE_F32, PIXELS, BATCH);
    struct ggml_tensor *const w1 = weight(m, PIXELS, HIDDEN), *const b1 = weight(m, HIDDEN, 1);
    struct ggml_tensor *const w2 = weight(m, HIDDEN, DIGITS), *const b2 = weight(m, DIGITS, 1);
    m->buffer = ggml_backend_alloc_ctx_tensors(m->weights, backend);
    if (!m->buffer) return false;
    weight_start(w1), weight_start(b1), weight_start(w2), weight_start(b2);
    struct ggml_tensor *hidden = ggml_relu(m->graph, ggml_add(m->graph, ggml_mul_mat(m->graph, w1, m->x), b1));
    m->y = ggml_add(m->graph, ggml_mul_mat(m->graph, w2, hidden), b2);
    return m->y;
}
static void model_free(struct model *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->graph);
    ggml_free(m->weights);
}

/* ---- the picture -------------------------------------------------------------------------------------------------------- */

struct history { int n; double train[MAX_EPOCHS], eval[MAX_EPOCHS]; };

/* Losses as a curve over the epochs, on a scale of powers of ten. */
static void curve(FILE *f, const double *loss, int n, double top, double bottom, const char *colour) {
    fprintf(f, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", colour);
    for (int i = 0; i < n; i++)
        fprintf(f, "%.1f,%.1f ", 60.0 + 520.0*(n > 1 ? (double) i/(n - 1) : 0.0), 20.0 + 280.0*(top - log10(loss[i]))/(top - bottom));
    fputs("\"/>\n", f);
}
static bool picture(const char *path, const struct history *h) {
    double least = 1e300, most = 1e-300;
    for (int i = 0; i < h->n; i++) {
        least = fmin(least, fmin(h->train[i], h->eval[i]));
        most  = fmax(most,  fmax(h->train[i], h->eval[i]));
    }
    const double top = ceil(log10(most)), bottom = fmin(floor(log10(least)), top - 1.0);
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 350\" font-family=\"sans-serif\" font-size=\"12\">\n"
          "<rect width=\"600\" height=\"350\" fill=\"white\"/>\n", f);
    for (double e = bottom; e <= top; e += 1.0) {
        const double y = 20.0 + 280.0*(top - e)/(top - bottom);
        fprintf(f, "<line x1=\"60\" x2=\"580\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"50\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                y, y, y + 4.0, pow(10.0, e));
    }
    curve(f, h->train, h->n, top, bottom, "#1f77b4");
    curve(f, h->eval,  h->n, top, bottom, "#d62728");
    fprintf(f, "<text x=\"320\" y=\"335\" text-anchor=\"middle\">loss over %d epochs: <tspan fill=\"#1f77b4\">training</tspan>, "
               "<tspan fill=\"#d62728\">evaluation</tspan></text>\n</svg>\n", h->n);
    return fclose(f) == 0;
}

/* ---- training ----------------------------------------------------------------------------------------------------------- */

static double train(ggml_opt_context_t opt, const struct digits *d, int epochs, struct history *h) {
    const int64_t split = (int64_t) (0.8*(double) (d->n/BATCH))*BATCH;
    ggml_opt_result_t on_train = ggml_opt_result_init(), on_eval = ggml_opt_result_init();
    double accuracy = 0.0;
    ggml_opt_dataset_shuffle(opt, d->set, -1);
    for (h->n = 0; on_train && on_eval && h->n < epochs; h->n++) {
        ggml_opt_result_reset(on_train);
        ggml_opt_result_reset(on_eval);
        ggml_opt_dataset_shuffle(opt, d->set, split);
        fprintf(stderr, "epoch %d of %d\n", h->n + 1, epochs);
        ggml_opt_epoch(opt, d->set, on_train, on_eval, split, ggml_opt_epoch_callback_progress_bar, ggml_opt_epoch_callback_progress_bar);
        ggml_opt_result_loss(on_train, &h->train[h->n], NULL);
        ggml_opt_result_loss(on_eval,  &h->eval[h->n],  NULL);
        ggml_opt_result_accuracy(on_eval, &accuracy, NULL);
    }
    ggml_opt_result_free(on_train);
    ggml_opt_result_free(on_eval);
    return 100.0*accuracy;
}

static struct ggml_opt_optimizer_params steps(void *userdata) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(userdata);
    p.adamw.alpha = 3e-3f;
    p.adamw.wd    = 1e-2f;
    return p;
}

static int run(ggml_backend_t backend, const struct digits *d, int epochs, const char *svg, double wanted) {
    static struct history history;
    struct model m = { 0 };
    double right = -1.0;
    ggml_backend_sched_t sched = ggml_backend_sched_new(&backend, NULL, 1, GGML_DEFAULT_GRAPH_SIZE, false, true);
    if (sched && model_new(&m, backend)) {
        struct ggml_opt_params params = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
        params.ctx_compute  = m.graph;
        params.inputs       = m.x;
        params.outputs      = m.y;
        params.get_opt_pars = steps;
        ggml_opt_context_t opt = ggml_opt_init(params);
        if (opt) right = train(opt, d, epochs, &history);
        ggml_opt_free(opt);
    }
    model_free(&m);
    ggml_backend_sched_free(sched);
    if (right < 0.0) return 2;
    printf("%.2f %% of %d digits are right\n", right, (int) (d->n - (int64_t) (0.8*(double) (d->n/BATCH))*BATCH));
    if (svg && !picture(svg, &history)) { fprintf(stderr, "%s cannot be written\n", svg); return 2; }
    return right >= wanted ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *file = NULL, *svg = "mnist.svg";
    int epochs = 20;
    double wanted = 0.0;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if      (!strcmp(argv[i], "-e") && more) epochs = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-o") && more) svg    = argv[++i];
        else if (!strcmp(argv[i], "-a") && more) wanted = atof(argv[++i]);
        else if (argv[i][0] != '-' && !file)     file   = argv[i];
        else { fprintf(stderr, "usage: mnist [-e EPOCHS] [-o PICTURE.svg] [-a PERCENT] [FILE.csv]\n"); return 2; }
    }
    if (epochs < 1 || epochs > MAX_EPOCHS) { fprintf(stderr, "1 to %d epochs\n", MAX_EPOCHS); return 2; }
    const struct digits d = file ? digits_read(file) : digits_made(1792);
    ggml_backend_t backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    if (!d.set) fprintf(stderr, "%s: no digits, at least %d are needed\n", file ? file : "memory", BATCH);
    const int status = d.set && d.n >= 2*BATCH && backend ? run(backend, &d, epochs, svg, wanted) : 2;
    ggml_opt_dataset_free(d.set);
    ggml_backend_free(backend);
    return status;
}
