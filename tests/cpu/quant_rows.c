/* Every level packs rows to the bytes and unpacks them to the bits of the reference functions of the types. */

#include "check.h"
#include "cpu.h"
#include "kernels.h"

enum { N = 8*256 };

static float    x[N], want_y[N], got_y[N];
static uint8_t  want[N*4], got[N*4];
static uint64_t seed = 11;

static void compare(const struct quant_kernels *q, int type, const char *what, const char *level) {
    const size_t size = ggml_row_size((enum ggml_type) type, N);
    const bool packs = q->pack[type] != quant_types[type].pack;
    memset(want, 0x5a, sizeof want), memset(got, 0x5a, sizeof got);
    if (packs) {
        quant_types[type].pack(x, want, N);
        q->pack[type](x, got, N);
        CHECK(!memcmp(want, got, sizeof want), "%s, packing %s, %s", level, ggml_type_name((enum ggml_type) type), what);
    }
    for (int round = !packs; round < 2; round++) {                       /* what was packed, then any bytes with finite scales */
        for (size_t i = 0; round && i < size; i++) want[i] = (uint8_t) (rnd_u64(&seed) & 0xbf);
        quant_types[type].unpack(want, want_y, N);
        q->unpack[type](want, got_y, N);
        for (int i = 0; i < N; i++) if (isnan(want_y[i]) && isnan(got_y[i])) got_y[i] = want_y[i];
        CHECK(!memcmp(want_y, got_y, sizeof want_y), "%s, unpacking %s, %s", level, ggml_type_name((enum ggml_type) type), what);
    }
}

static void check_type(const struct quant_kernels *q, int type, const char *level) {
    static const float special[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f,
                                     0x1p-97f, 0x1p97f };
    for (int i = 0; i < N; i++) x[i] = 3*rnd_f32(&seed);
    compare(q, type, "ordinary values", level);
    for (int i = 0; i < N; i++) x[i] = ldexpf(rnd_f32(&seed), i/32*5 - 160);
    compare(q, type, "values of all sizes", level);
    for (int i = 0; i < N; i++) x[i] = (float) (rnd_u64(&seed) % 33)*0.5f - (float) (i/32 % 3)*8.0f;
    compare(q, type, "ties, of signs and of steps", level);
    for (int i = 0; i < N; i++) x[i] = (float) (i % 2 ? 127 : (int) (rnd_u64(&seed) % 254) - 127) + (i % 2 ? 0 : 0.49999997f);
    compare(q, type, "just below ties", level);
    for (int i = 0; i < N; i++) x[i] = i/32 % 2 ? 0.0f : i % 2 ? -0.0f : 0.0f;
    compare(q, type, "zeros", level);
    for (int i = 0; i < N; i++) x[i] = (float) (i/32);
    compare(q, type, "blocks of one value", level);
    for (int i = 0; i < N; i++) x[i] = 1.0f + (i % 32 ? 0.0f : 0x1p-23f);
    compare(q, type, "blocks of nearly one value", level);
    for (int i = 0; i < N; i++) x[i] = i % 3 ? rnd_f32(&seed) : special[rnd_u64(&seed) % (sizeof special/sizeof *special)];
    compare(q, type, "special values", level);
    for (int i = 0; i < N; i++) x[i] = i % 32 == 7 ? special[i/32 % (sizeof special/sizeof *special)] : rnd_f32(&seed);
    compare(q, type, "one special value a block", level);
}

int main(void) {
    for (int level = 0; level < CPU_LEVELS; level++) {
        const struct cpu_kernels *k = cpu_kernels_at((enum cpu_level) level);
        if (!k) continue;
        for (int type = 0; type < GGML_TYPE_COUNT; type++) {
            const bool own = k->q.pack[type] != quant_types[type].pack || k->q.unpack[type] != quant_types[type].unpack;
            if (own) check_type(&k->q, type, cpu_level_name((enum cpu_level) level));
        }
    }
    return DONE();
}
