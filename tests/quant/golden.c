/* Packing and unpacking give the bytes of the reference: hashes of what another implementation of the formats (ggml 0.25.3, its
 * x86-64 build) gives for the same data; an emulator packs the first kinds of it only. A hash of 0 is not compared: packing into a codebook is a search, and error.c says how
 * good ours is. With the path of such a library as argument this program prints the table anew. */

#include "quant.h"
#include "check.h"

#include <dlfcn.h>

enum { ROW = 512, ROWS = 32, N = ROW*ROWS };

/* What the packers are fed: each kind has its own traps. */
static float draw(int kind, int i, uint64_t *s) {
    const float g = rnd_f32(s) + rnd_f32(s) + rnd_f32(s) + rnd_f32(s);
    const uint64_t u = rnd_u64(s);
    switch (kind) {
    case 0:  return g;
    case 1:  return ldexpf(g, (int) (u % 25) - 12);             /* wide */
    case 2:  return (float) ((int) (u % 129) - 64)/8.0f;        /* ties */
    case 3:  return 0.0f;
    case 4:  return u % 20 ? 0.0f : g;                          /* sparse */
    case 5:  return g*1e-17f;                                   /* below what counts as zero */
    case 6:  return g*1e4f;
    case 7:  return fabsf(g);
    case 8:  return -1.5f;
    case 9:  return i/16 % 3 ? g : 0.0f;                        /* groups of zeros */
    case 10: return i/32 % 2 ? g : g*1e-3f;                     /* groups of different size */
    default: return g*1e-7f;
    }
}
enum { KINDS = 12, FIRST = 3 };

struct packed { uint64_t plain, weighted; };
struct golden { enum ggml_type type; struct packed first, all; uint64_t unpacked; };        /* FIRST kinds, KINDS of them */
static const struct golden golden[] = {
    {  1, { 0xaffd10c8d34d6ad0, 0xaffd10c8d34d6ad0 }, { 0x56e3726fda5232f0, 0x56e3726fda5232f0 }, 0x774e59a647a9145e },   /* f16 */
    {  2, { 0x32452e6dd4a041a3, 0x5b4783e3c3867f84 }, { 0x7ddc2bfbd17983b7, 0xf9ff7cb5072524b7 }, 0x702f776db3016c98 },   /* q4_0 */
    {  3, { 0x267e60638e043ca5, 0x1d48028fc77d8ca2 }, { 0x39a0c055d7bccf67, 0x9d37b5c042fb22f0 }, 0x54bb7a8716fdcd29 },   /* q4_1 */
    {  6, { 0x41181d5d46899065, 0xebc6277146a7b121 }, { 0x3f1580309aed1fb8, 0x6b39ed2244c289a9 }, 0xd2fc335afc46fc86 },   /* q5_0 */
    {  7, { 0xb14ad0b0a7ed6d82, 0x33a540d02897d053 }, { 0x74855a8c4fd27a96, 0xdbb69c66e0310c82 }, 0x634b6d785827a8e7 },   /* q5_1 */
    {  8, { 0x8013640fdfdde61e, 0x8013640fdfdde61e }, { 0x542dfc5619b28b90, 0x542dfc5619b28b90 }, 0x2379c7ee8f51a53e },   /* q8_0 */
    { 10, { 0x1c1e9e879f171e07, 0x9784197e0a7a54e3 }, { 0x647a6e3fe060f17a, 0x56573d0c0a43461a }, 0x191fba47f738ec67 },   /* q2_K */
    { 11, { 0x8a56b9f694329b80, 0x502972080d4dfc30 }, { 0x6ba2e7324c7f5ac1, 0xf0bf376f3dac0f16 }, 0x9e568502b19499fc },   /* q3_K */
    { 12, { 0x3b1081581c23bfa9, 0x8ba0fef52f7d5ed1 }, { 0x9d04e24aafe1305e, 0xd6048bc8096e7965 }, 0x02b4a7e237774e1e },   /* q4_K */
    { 13, { 0x794807d96929b443, 0xc4926f44e4fb72a2 }, { 0x806fda0371c9eed0, 0xa5c8311296c92baa }, 0xc9c905cec19523e1 },   /* q5_K */
    { 14, { 0xcfb93592ae4c402e, 0xfa429217b8c637ab }, { 0x774d985a3ca4deb3, 0xcdb68d0cfa215cca }, 0x0f5859e9950d6113 },   /* q6_K */
    { 16, { 0,                  0                  }, { 0,                  0                  }, 0x7059167b49c26c4f },   /* iq2_xxs */
    { 17, { 0,                  0                  }, { 0,                  0                  }, 0x7bef23cc66a171fc },   /* iq2_xs */
    { 18, { 0,                  0                  }, { 0,                  0                  }, 0x03136f010cdf7ed6 },   /* iq3_xxs */
    { 19, { 0,                  0                  }, { 0,                  0                  }, 0x29003d73e151a621 },   /* iq1_s */
    { 21, { 0,                  0                  }, { 0,                  0                  }, 0x43228d6bdcd15d30 },   /* iq3_s */
    { 22, { 0,                  0                  }, { 0,                  0                  }, 0xdc4c1f31763d7c85 },   /* iq2_s */
    { 29, { 0,                  0                  }, { 0,                  0                  }, 0x1bcce19c0c9f6662 },   /* iq1_m */
    { 20, { 0x2cc8e112e6564f1b, 0xc5a7261af464202e }, { 0xb5b27189de50a64f, 0x134b93a0759cee92 }, 0xa47a031178cbd292 },   /* iq4_nl */
    { 23, { 0xbd3b500c5a9f7990, 0xed588350c45b3035 }, { 0xe00d0f78bcf36aec, 0xace83a0513c9072e }, 0x76ed398cc631007b },   /* iq4_xs */
    { 34, { 0xaa9d3f1fc611b7b0, 0xaa9d3f1fc611b7b0 }, { 0x3499e8c853802d09, 0x3499e8c853802d09 }, 0xe969c42e15421e90 },   /* tq1_0 */
    { 35, { 0x4b61b1f94eebbbb7, 0x4b61b1f94eebbbb7 }, { 0xc4a9e12140e40bb6, 0xc4a9e12140e40bb6 }, 0x6ce486453be3f01c },   /* tq2_0 */
    { 39, { 0xab39b373bb0e09e6, 0xab39b373bb0e09e6 }, { 0xe336d20297f52806, 0xe336d20297f52806 }, 0x0af7ad8074c50664 },   /* mxfp4 */
    { 40, { 0xef229ac684b932a1, 0xef229ac684b932a1 }, { 0xf5a800079b2c8f5d, 0xf5a800079b2c8f5d }, 0x0be29d20540427fe },   /* nvfp4 */
    { 41, { 0x341513a4cfc1d753, 0x341513a4cfc1d753 }, { 0xda5168c411ca5392, 0xda5168c411ca5392 }, 0xc14c2ad8ab7cc225 },   /* q1_0 */
    { 42, { 0x58ab7bce95d6850e, 0x58ab7bce95d6850e }, { 0x162f5f78729abf58, 0x162f5f78729abf58 }, 0xebb8de7a3ddf6a0e },   /* q2_0 */
    { 30, { 0x6d8c4699948636b1, 0x6d8c4699948636b1 }, { 0xb1abd0f1425e3b7d, 0xb1abd0f1425e3b7d }, 0x2688d22a61691360 },   /* bf16 */
};

static uint64_t hash(uint64_t h, const void *p, size_t n) {     /* FNV-1a */
    for (const uint8_t *b = p; n > 0; n--, b++) h = (h ^ *b)*0x100000001b3u;
    return h;
}

/* Fields of blocks are little endian in a file; hashes are of that. */
static bool big_endian_here(void) { return *(const uint8_t *) &(const uint16_t) { 1 } == 0; }
static uint64_t hash_blocks(uint64_t h, enum ggml_type type, uint8_t *blocks, size_t bytes) {
    if (big_endian_here()) quant_swap(type, blocks, bytes/ggml_type_size(type));
    return hash(h, blocks, bytes);
}

struct library {
    size_t (*chunk)(enum ggml_type, const float *, void *, int64_t, int64_t, int64_t, const float *);
    const struct ggml_type_traits *(*traits)(enum ggml_type);
    size_t (*row_size)(enum ggml_type, int64_t);
    bool   (*needs_weights)(enum ggml_type);
};

static struct golden measure(const struct library *l, enum ggml_type type, int kinds) {
    static float   x[N], weights[ROW], y[N];
    static uint8_t packed[N*4];
    const size_t bytes = l->row_size(type, N);
    struct golden g = { type, { 0 }, { 0xcbf29ce484222325u, 0xcbf29ce484222325u }, 0xcbf29ce484222325u };
    uint64_t seed = 1;
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == FIRST) g.first = g.all;
        for (int i = 0; i < N; i++) x[i] = draw(kind, i, &seed);
        for (int i = 0; i < ROW; i++) weights[i] = fabsf(rnd_f32(&seed)), weights[i] *= kind % 2 ? weights[i] : 1.0f;
        if (kind >= kinds) continue;
        memset(packed, 0, bytes);
        if (!l->needs_weights(type)) {
            l->chunk(type, x, packed, 0, ROWS, ROW, NULL);
            g.all.plain = hash_blocks(g.all.plain, type, packed, bytes);
        }
        memset(packed, 0, bytes);
        l->chunk(type, x, packed, 0, ROWS, ROW, weights);
        g.all.weighted = hash_blocks(g.all.weighted, type, packed, bytes);
    }
    for (size_t i = 0; i < bytes; i++) packed[i] = (uint8_t) (rnd_u64(&seed) >> 20);
    if (big_endian_here()) quant_swap(type, packed, bytes/ggml_type_size(type));
    l->traits(type)->to_float(packed, y, N);
    for (int i = 0; i < N; i++) {
        const uint32_t u = isnan(y[i]) ? 0 : f32_bits(y[i]);    /* payloads are nobody's promise */
        for (int j = 0; j < 4; j++) g.unpacked = hash(g.unpacked, &(uint8_t) { (uint8_t) (u >> 8*j) }, 1);
    }
    return g;
}

static int print_table(const char *path) {
    void *lib = dlopen(path, RTLD_NOW);
    struct library l;
    if (!lib) return 1;
    *(void **) &l.chunk         = dlsym(lib, "ggml_quantize_chunk");
    *(void **) &l.traits        = dlsym(lib, "ggml_get_type_traits");
    *(void **) &l.row_size      = dlsym(lib, "ggml_row_size");
    *(void **) &l.needs_weights = dlsym(lib, "ggml_quantize_requires_imatrix");
    for (enum ggml_type t = 0; t < GGML_TYPE_COUNT; t++) {
        if (!l.traits(t)->to_float) continue;
        const struct golden g = measure(&l, t, KINDS);
        printf("{ %2d, { 0x%016" PRIx64 ", 0x%016" PRIx64 " }, { 0x%016" PRIx64 ", 0x%016" PRIx64 " }, 0x%016" PRIx64 " },   /* %s */\n",
            (int) t, g.first.plain, g.first.weighted, g.all.plain, g.all.weighted, g.unpacked, l.traits(t)->type_name);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return print_table(argv[1]);
#ifdef EMULATOR
    const int kinds = FIRST;
#else
    const int kinds = KINDS;
#endif
    const struct library ours = { ggml_quantize_chunk, ggml_get_type_traits, ggml_row_size, ggml_quantize_requires_imatrix };
    for (size_t i = 0; i < sizeof golden/sizeof *golden; i++) {
        const struct golden *want = &golden[i];
        const char *name = ggml_type_name(want->type);
        const struct golden g = measure(&ours, want->type, want->all.plain ? kinds : 0);
        const struct packed *p = kinds < KINDS ? &want->first : &want->all;
        CHECK(!p->plain    || g.all.plain    == p->plain,    "%s packed",              name);
        CHECK(!p->weighted || g.all.weighted == p->weighted, "%s packed with weights", name);
        CHECK(g.unpacked == want->unpacked, "%s unpacked", name);
    }
    return DONE();
}
