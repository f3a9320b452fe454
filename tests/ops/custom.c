/* MAP_CUSTOM1..3 and CUSTOM: who calls, with what, and where the result lies. */

#include "ref.h"

#include <stdatomic.h>

struct calls { atomic_int n; atomic_int wrong; int most; };

static void note(struct calls *c, int ith, int nth) {
    atomic_fetch_add(&c->n, 1);
    if (ith < 0 || ith >= nth || nth > c->most) atomic_fetch_add(&c->wrong, 1);
}
#define SHARE(i, t) for (int64_t i = ith; i < ggml_nelements(t); i += nth)
static float *floats(const tensor *t) { return t->data; }

static void twice(tensor *y, const tensor *a, int ith, int nth, void *user) {
    note(user, ith, nth);
    SHARE(i, y) floats(y)[i] = 2.0f*floats(a)[i];
}
static void sum2(tensor *y, const tensor *a, const tensor *b, int ith, int nth, void *user) {
    note(user, ith, nth);
    SHARE(i, y) floats(y)[i] = floats(a)[i] + floats(b)[i];
}
static void sum3(tensor *y, const tensor *a, const tensor *b, const tensor *c, int ith, int nth, void *user) {
    note(user, ith, nth);
    SHARE(i, y) floats(y)[i] = floats(a)[i] + floats(b)[i] + floats(c)[i];
}
static void from_sources(tensor *y, int ith, int nth, void *user) {
    note(user, ith, nth);
    SHARE(i, y) floats(y)[i] = 3.0f*floats(y->src[0])[i % ggml_nelements(y->src[0])];
}

static double want_twice(const tensor *y, const int64_t *i) { return 2.0*value_at(y->src[0], i); }
static double want_sum(const tensor *y, const int64_t *i) {
    double sum = 0.0;
    for (int s = 0; s < 3; s++) if (y->src[s]) sum += value_at(y->src[s], i);
    return sum;
}
static double want_thrice(const tensor *y, const int64_t *i) { return 3.0*value(y->src[0],
    (i[0] + y->ne[0]*i[1]) % y->src[0]->ne[0], 0, 0, 0); }

int main(void) {
    static const int n_tasks[] = { 1, 2, GGML_N_TASKS_MAX };
    for (int k = 0; k < 3; k++) {
        struct bench b = bench_new();
        tensor *x = operand(&b, GGML_TYPE_F32, SIZE(100, 1, 1, 1), PACKED),
            *y = operand(&b, GGML_TYPE_F32, x->ne, PACKED), *z = operand(&b, GGML_TYPE_F32, x->ne, PACKED);
        struct calls c = { .most = n_tasks[k] == GGML_N_TASKS_MAX ? 2 : n_tasks[k] };
        expect(&b, ggml_map_custom1(b.ctx, x, twice, n_tasks[k], &c), want_twice, 0.0, 0.0, "map_custom1");
        CHECK(atomic_load(&c.wrong) == 0 && atomic_load(&c.n) >= 1 && atomic_load(&c.n) <= c.most, "%d calls",
            atomic_load(&c.n));
        expect(&b, ggml_map_custom2(b.ctx, x, y, sum2, n_tasks[k], &c), want_sum, 1e-7, 1e-7, "map_custom2");
        expect(&b, ggml_map_custom3(b.ctx, x, y, z, sum3, n_tasks[k], &c), want_sum, 1e-6, 1e-6, "map_custom3");
        tensor *args[] = { x, y };
        tensor *own = ggml_custom_4d(b.ctx, GGML_TYPE_F32, 50, 6, 1, 1, args, 2, from_sources, n_tasks[k], &c);
        CHECK(own->src[0] == x && own->src[1] == y && own->ne[1] == 6, "custom_4d");
        expect(&b, own, want_thrice, 1e-7, 0.0, "custom_4d");
        float *before = bytes_of(x);
        tensor *in = ggml_map_custom1_inplace(b.ctx, x, twice, n_tasks[k], &c);
        CHECK(in->view_src == x && compute(&b, in, 2) == GGML_STATUS_SUCCESS && floats(x)[7] == 2.0f*before[7],
            "map_custom1_inplace");
        tensor *inplace = ggml_custom_inplace(b.ctx, y, args, 1, from_sources, n_tasks[k], &c);
        CHECK(inplace->view_src == y && inplace->src[0] == y && inplace->src[1] == x, "custom_inplace");
        free(before);
        bench_free(&b);
    }
    return DONE();
}
