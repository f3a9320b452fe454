/* Per type: how a row of floats becomes the operand of a dot product, and the dot product of two rows. The matrix products of
 * this backend have kernels of their own (kernels/quant_dot.h); what stands here serves programs that ask for the parts.
 *
 * The dot product: both rows are unpacked to F32, element i goes to virtual lane i mod 16, each lane is a chain of fmaf, then
 * lanes 8..15 are added onto 0..7, 4..7 onto 0..3, 2..3 onto 0..1, 1 onto 0. */

#include "cpu.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, PIECE = 256 };               /* PIECE: a multiple of every block and of LANES */

static bool can_unpack(enum ggml_type type) {
    return type == GGML_TYPE_F32 || (type != GGML_TYPE_COUNT && quant_types[type].unpack);
}

static void unpack(enum ggml_type type, const void *x, float *y, int64_t n) {
    if (type == GGML_TYPE_F32) memcpy(y, x, (size_t) n*sizeof *y);
    else                       quant_types[type].unpack(x, y, n);
}

static float dot_rows(enum ggml_type a, enum ggml_type b, int64_t n, const char *x, const char *y) {
    float lane[LANES] = {0}, u[PIECE], v[PIECE];
    GGML_ASSERT(can_unpack(a) && can_unpack(b));
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t m = n - i < PIECE ? n - i : PIECE;
        unpack(a, x + ggml_row_size(a, i), u, m);
        unpack(b, y + ggml_row_size(b, i), v, m);
        for (int64_t j = 0; j < m; j++) lane[j%LANES] = fmaf(u[j], v[j], lane[j%LANES]);
    }
    for (int half = LANES/2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    }
    return lane[0];
}

/* One function a type, because the interface's pointer does not carry the type. */
#define TYPE(id, NAME, tag, weights, bytes, dots)                                                                       \
    static void vec_dot_##tag(int n, float *GGML_RESTRICT s, size_t bs, const void *GGML_RESTRICT x, size_t bx,         \
                              const void *GGML_RESTRICT y, size_t by, int nrc) {                                        \
        (void) bs, (void) bx, (void) by;                                                                                \
        GGML_ASSERT(nrc == 1);                                                                                          \
        *s = dot_rows(GGML_TYPE_##NAME, GGML_TYPE_##dots, n, x, y);                                                     \
    }
#include "types.def"
#undef TYPE

static void copy_floats(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t n) { ggml_cpu_fp32_to_fp32(x, y, n); }
static void to_i32(const float *GGML_RESTRICT x, void *GGML_RESTRICT y, int64_t n)      { ggml_cpu_fp32_to_i32(x, y, n); }

static struct ggml_type_traits_cpu traits[GGML_TYPE_COUNT] = {
#define TYPE(id, NAME, tag, weights, bytes, dots) \
    [GGML_TYPE_##NAME] = { .vec_dot = vec_dot_##tag, .vec_dot_type = GGML_TYPE_##dots, .nrows = 1 },
#include "types.def"
#undef TYPE
};

/* Packers stand in the table of types and are fetched from there; a type that cannot be unpacked has no dot product. */
static void traits_init(void) {
    static bool done;
    ggml_critical_section_start();
    for (int i = 0; i < GGML_TYPE_COUNT && !done; i++) {
        traits[i].from_float = quant_types[i].pack;
        if (!can_unpack((enum ggml_type) i) || !can_unpack(traits[i].vec_dot_type)) traits[i].vec_dot = NULL;
    }
    traits[GGML_TYPE_F32].from_float = copy_floats;
    traits[GGML_TYPE_I32].from_float = to_i32;
    done = true;
    ggml_critical_section_end();
}

const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type) {
    GGML_ASSERT((unsigned) type < GGML_TYPE_COUNT);
    traits_init();
    return &traits[type];
}
