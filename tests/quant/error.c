/* How much packing loses: the error after unpacking, relative to the data, with importance and without, against what ggml 0.25.3
 * loses on the same data. Ours is nowhere larger. With the path of such a library as argument this program prints the table. */

#include "ggml.h"
#include "check.h"

#include <dlfcn.h>

enum { ROW = 512, ROWS = 8, N = ROW*ROWS };

/* sum of weight*(y - x)^2 over sum of weight*x^2; 0: not measured (the type needs importance data) */
struct loss { enum ggml_type type; double plain, weighted; };
static const struct loss losses[] = {
    {  1, 4.2589e-08, 4.1569e-08 },       /* f16 */
    {  2, 6.8960e-03, 5.7377e-03 },       /* q4_0 */
    {  3, 5.8399e-03, 3.9680e-03 },       /* q4_1 */
    {  6, 1.6592e-03, 1.3320e-03 },       /* q5_0 */
    {  7, 1.3441e-03, 9.0057e-04 },       /* q5_1 */
    {  8, 2.6719e-05, 2.6467e-05 },       /* q8_0 */
    { 10, 8.0064e-02, 5.6964e-02 },       /* q2_K */
    { 11, 2.1280e-02, 1.7207e-02 },       /* q3_K */
    { 12, 4.8102e-03, 4.1151e-03 },       /* q4_K */
    { 13, 1.2265e-03, 1.0306e-03 },       /* q5_K */
    { 14, 2.8818e-04, 2.4373e-04 },       /* q6_K */
    { 16, 0.0000e+00, 8.6439e-02 },       /* iq2_xxs */
    { 17, 0.0000e+00, 6.7593e-02 },       /* iq2_xs */
    { 18, 4.5575e-02, 2.3520e-02 },       /* iq3_xxs */
    { 19, 0.0000e+00, 1.9120e-01 },       /* iq1_s */
    { 20, 5.4530e-03, 4.8151e-03 },       /* iq4_nl */
    { 21, 2.5564e-02, 1.3359e-02 },       /* iq3_s */
    { 22, 6.4801e-02, 4.9286e-02 },       /* iq2_s */
    { 23, 5.5435e-03, 4.8788e-03 },       /* iq4_xs */
    { 29, 3.2875e-01, 1.5428e-01 },       /* iq1_m */
    { 30, 2.7847e-06, 2.7137e-06 },       /* bf16 */
    { 34, 6.1826e-01, 6.1849e-01 },       /* tq1_0 */
    { 35, 6.1826e-01, 6.1849e-01 },       /* tq2_0 */
    { 39, 1.2494e-02, 1.2475e-02 },       /* mxfp4 */
    { 40, 9.3487e-03, 9.1241e-03 },       /* nvfp4 */
    { 41, 3.3885e-01, 3.3094e-01 },       /* q1_0 */
    { 42, 4.9525e-01, 4.9855e-01 },       /* q2_0 */
};

struct library {
    size_t (*chunk)(enum ggml_type, const float *, void *, int64_t, int64_t, int64_t, const float *);
    const struct ggml_type_traits *(*traits)(enum ggml_type);
    bool   (*needs_weights)(enum ggml_type);
};

static struct loss measure(const struct library *l, enum ggml_type type) {
    static float   x[N], weights[ROW], y[N];
    static uint8_t packed[N*4];
    uint64_t seed = 7;
    double error[2] = { 0 }, sum[2] = { 0 };
    for (int i = 0; i < N; i++) x[i] = rnd_f32(&seed) + rnd_f32(&seed) + rnd_f32(&seed) + rnd_f32(&seed);
    for (int i = 0; i < ROW; i++) weights[i] = 0.05f + rnd_f32(&seed)*rnd_f32(&seed)*3.0f, weights[i] = fabsf(weights[i]);
    for (int k = l->needs_weights(type); k < 2; k++) {
        l->chunk(type, x, packed, 0, ROWS, ROW, k ? weights : NULL);
        l->traits(type)->to_float(packed, y, N);
        for (int i = 0; i < N; i++) {
            const double w = k ? weights[i % ROW] : 1.0;
            error[k] += w*((double) y[i] - x[i])*((double) y[i] - x[i]);
            sum[k]   += w*x[i]*x[i];
        }
    }
    return (struct loss) { type, sum[0] > 0 ? error[0]/sum[0] : 0, error[1]/sum[1] };
}

static int print_table(const char *path) {
    void *lib = dlopen(path, RTLD_NOW);
    struct library l;
    if (!lib) return 1;
    *(void **) &l.chunk         = dlsym(lib, "ggml_quantize_chunk");
    *(void **) &l.traits        = dlsym(lib, "ggml_get_type_traits");
    *(void **) &l.needs_weights = dlsym(lib, "ggml_quantize_requires_imatrix");
    for (enum ggml_type t = 0; t < GGML_TYPE_COUNT; t++) {
        if (!l.traits(t)->to_float) continue;
        const struct loss m = measure(&l, t);
        printf("    { %2d, %.4e, %.4e },       /* %s */\n", (int) t, m.plain, m.weighted, l.traits(t)->type_name);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return print_table(argv[1]);
    const struct library ours = { ggml_quantize_chunk, ggml_get_type_traits, ggml_quantize_requires_imatrix };
    for (size_t i = 0; i < sizeof losses/sizeof *losses; i++) {
        const struct loss m = measure(&ours, losses[i].type);
        const char *name = ggml_type_name(losses[i].type);
        CHECK(m.plain    <= losses[i].plain*1.0001,    "%s loses %.4e, ggml %.4e",            name, m.plain, losses[i].plain);
        CHECK(m.weighted <= losses[i].weighted*1.0001, "%s with weights loses %.4e, ggml %.4e", name, m.weighted, losses[i].weighted);
    }
    return DONE();
}
