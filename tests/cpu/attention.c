/* Every instruction set returns the bits of the portable attention kernels, for every number of rows, length and mask. */

#include "check.h"
#include "cpu.h"
#include "kernels.h"
#include "quant.h"

enum { KEYS = ATTENTION_KEYS, D = 160, ROWS = 16 };

static float    q[ROWS*D], k[KEYS*D], kt[2][KEYS*D], qt[2][ROWS*D], v[KEYS*D], mask[2][KEYS], a[2][ROWS*D], s[2][ROWS][KEYS];
static uint16_t kh[KEYS*D], vh[KEYS*D], mh[KEYS];

static void fill(uint64_t *seed) {
    for (int i = 0; i < ROWS*D; i++) q[i] = rnd_f32(seed);
    for (int i = 0; i < KEYS*D; i++) k[i] = rnd_f32(seed), v[i] = rnd_f32(seed);
    for (int i = 0; i < KEYS*D; i++) kh[i] = f32_to_f16(k[i]), vh[i] = f32_to_f16(v[i]);
    for (int i = 0; i < KEYS; i++) mh[i] = f32_to_f16(rnd_u64(seed) % 3 ? rnd_f32(seed) : -INFINITY);
}

static void check_rows(const struct attention_kernels *p, const struct attention_kernels *x, int64_t d, int rows, uint64_t any, const char *name) {
    const size_t bytes = (size_t) d*sizeof(float);
    const struct attention_kernels *both[] = { p, x };
    for (int form = 0; form < 3; form++) {
        for (int i = 0; i < 2; i++) {
            memset(s[i], 0, sizeof s[i]);
            if (form == 0) both[i]->scores_f32(d, rows, q, k, bytes, any, s[i]);
            if (form == 1) both[i]->scores_f16(d, rows, q, kh, bytes/2, any, s[i]);
            if (form == 2) both[i]->scores_turned(d, rows, qt[0], kt[0], any, s[i]);
        }
        CHECK(!memcmp(s[0], s[1], sizeof s[0]), "scores %d, d = %d, rows = %d, %s", form, (int) d, rows, name);
    }
    for (int i = 0; i < 2; i++) {
        memset(a[i], 0, sizeof a[i]);
        both[i]->weigh_f32(d, rows, (const float (*)[KEYS]) s[i], 3, 61, v, bytes, a[i]);
        both[i]->weigh_f16(d, rows, (const float (*)[KEYS]) s[i], 0, 64, vh, bytes/2, a[i]);
    }
    CHECK(!memcmp(a[0], a[1], sizeof a[0]), "weigh, d = %d, rows = %d, %s", (int) d, rows, name);
}

static void check_length(const struct attention_kernels *p, const struct attention_kernels *x, int64_t d, const char *name) {
    static const uint64_t any[] = { ~(uint64_t) 0, 1, (uint64_t) 1 << 63, 0xffff0000, 0x0f0f0f0f0f0f0f0f };
    for (int n = 1; n <= KEYS; n += 21) {
        p->turn(d, n, k, (size_t) d*sizeof *k, kt[0]);
        x->turn(d, n, k, (size_t) d*sizeof *k, kt[1]);
        CHECK(!memcmp(kt[0], kt[1], sizeof kt[0]), "turn, d = %d, n = %d, %s", (int) d, n, name);
    }
    for (int r = 0; r < ROWS; r++) p->turn_row(d, q + r*d, qt[0] + r*d), x->turn_row(d, q + r*d, qt[1] + r*d);
    CHECK(!memcmp(qt[0], qt[1], sizeof qt[0]), "turn_row, d = %d, %s", (int) d, name);
    for (int rows = 1; rows <= x->rows; rows++) for (int i = 0; i < 5; i++) check_rows(p, x, d, rows, any[i], name);
}

static void check_weights(const struct attention_kernels *p, const struct attention_kernels *x, const char *name) {
    const struct attention_kernels *both[] = { p, x };
    for (int n = 1; n <= KEYS; n++) for (int masked = 0; masked < 2; masked++) for (int cap = 0; cap < 2; cap++) {
        uint64_t live[2];
        float max[2], sum[2];
        for (int i = 0; i < 2; i++) {
            live[i] = both[i]->mask(n, masked ? mh : NULL, mask[i]);
            for (int j = 0; j < KEYS; j++) s[i][0][j] = live[0] >> j & 1 ? 30*k[j] : NAN;       /* memory of masked keys is anything */
            sum[i] = both[i]->weights(s[i][0], mask[i], 0.25f, 0.7f, cap ? 20.0f : 0.0f, &max[i]);
        }
        CHECK(live[0] == live[1] && !memcmp(mask[0], mask[1], sizeof mask[0]), "mask of %d, %s", n, name);
        if (!live[0]) continue;
        CHECK(!memcmp(s[0][0], s[1][0], sizeof s[0][0]) && sum[0] == sum[1] && max[0] == max[1], "weights of %d, %s", n, name);
        double total = 0;
        for (int j = 0; j < KEYS; j++) {
            const double x0 = 30*(double) k[j], y = (cap ? 20*tanh(x0*0.7/20) : x0*0.7) + 0.25*(double) mask[0][j];
            const double want = live[0] >> j & 1 ? exp(y - (double) max[0]) : 0;
            CHECK(fabs((double) s[0][0][j] - want) <= 4e-6*want, "weight %d of %d: %g, not %g", j, n, (double) s[0][0][j], want);
            total += want;
        }
        CHECK(fabs((double) sum[0] - total) <= 4e-6*total, "sum of %d", n);
    }
}

static void check_merge(const struct attention_kernels *p, const struct attention_kernels *x, const char *name) {
    static const float maxima[][2] = { { -INFINITY, 3 }, { 1, 3 }, { 3, 1 }, { 2, 2 }, { 100, -100 } };
    const struct attention_kernels *both[] = { p, x };
    for (int c = 0; c < 5; c++) {
        float max[2], sum[2];
        for (int i = 0; i < 2; i++) {
            max[i] = maxima[c][0], sum[i] = max[i] > -1e30f ? 1.5f : 0.0f;
            memcpy(a[i], v, sizeof a[i]);
            both[i]->merge(D, a[i], &max[i], &sum[i], q, maxima[c][1], 2.5f);
        }
        CHECK(!memcmp(a[0], a[1], sizeof a[0]) && sum[0] == sum[1] && max[0] == max[1], "merge %d, %s", c, name);
        CHECK(max[0] == fmaxf(maxima[c][0], maxima[c][1]), "merge %d: max %g", c, (double) max[0]);
    }
}

int main(void) {
    uint64_t seed = 5;
    fill(&seed);
    const struct attention_kernels *portable = cpu_kernels_at(CPU_PORTABLE)->f.attention;
    for (int level = 0; level < CPU_LEVELS; level++) {
        if (!cpu_level_present((enum cpu_level) level)) continue;
        const char *name = cpu_level_name((enum cpu_level) level);
        const struct attention_kernels *x = cpu_kernels_at((enum cpu_level) level)->f.attention;
        for (int64_t d = 16; d <= D; d += 48) check_length(portable, x, d, name);
        check_weights(portable, x, name);
        check_merge(portable, x, name);
    }
    return DONE();
}
