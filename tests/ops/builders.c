/* What builders make: types, shapes, parameters, sources, names; what they pass on (NULL); what they refuse, and how.
 * The numbers are those of the interface. */

#include "ref.h"

#include <sys/wait.h>
#include <unistd.h>

static bool shape_is(const tensor *t, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    return t && t->ne[0] == n0 && t->ne[1] == n1 && t->ne[2] == n2 && t->ne[3] == n3;
}
#define T(type, ...) ggml_new_tensor(ctx, GGML_TYPE_##type, 4, SIZE(__VA_ARGS__))
#define SHAPED(t, ...) do { \
    const tensor *t_ = (t); \
    CHECK(shape_is(t_, __VA_ARGS__), "[%d, %d, %d, %d]", t_ ? (int) t_->ne[0] : -1, t_ ? (int) t_->ne[1] : -1, \
          t_ ? (int) t_->ne[2] : -1, t_ ? (int) t_->ne[3] : -1); \
} while (0)

static struct ggml_context *arena(void) {
    return ggml_init((struct ggml_init_params) { .mem_size = (size_t) 1 << 20, .no_alloc = true });
}

static void test_shapes(void) {
    struct ggml_context *ctx = arena();
    tensor *x = T(F32, 8, 6, 4, 2);
    SHAPED(ggml_mul_mat(ctx, T(Q4_0, 64, 5, 2, 1), T(F32, 64, 7, 4, 3)), 5, 7, 4, 3);
    SHAPED(ggml_mul_mat_id(ctx, T(F16, 8, 5, 9, 1), T(F32, 8, 1, 3, 1), T(I32, 2, 3, 1, 1)), 5, 2, 3, 1);
    SHAPED(ggml_out_prod(ctx, T(F32, 3, 7, 2, 1), T(F32, 5, 7, 4, 1)), 3, 5, 4, 1);
    SHAPED(ggml_sum(ctx, x), 1, 1, 1, 1);
    SHAPED(ggml_sum_rows(ctx, x), 1, 6, 4, 2);
    SHAPED(ggml_argmax(ctx, T(F32, 8, 6, 1, 1)), 6, 1, 1, 1);
    SHAPED(ggml_concat(ctx, x, T(F32, 8, 6, 5, 2), 2), 8, 6, 9, 2);
    SHAPED(ggml_swiglu(ctx, x), 4, 6, 4, 2);
    SHAPED(ggml_swiglu_split(ctx, x, x), 8, 6, 4, 2);
    SHAPED(ggml_get_rows(ctx, T(Q8_0, 32, 10, 3, 2), T(I32, 5, 3, 2, 1)), 32, 5, 3, 2);
    SHAPED(ggml_flash_attn_ext(ctx, T(F32, 64, 5, 8, 2), T(F16, 64, 32, 4, 2), T(F16, 48, 32, 4, 2),
        T(F16, 32, 8, 1, 1), 1, 0, 0), 48, 8, 5, 2);
    SHAPED(ggml_diag(ctx, T(F32, 5, 1, 2, 1)), 5, 5, 2, 1);
    SHAPED(ggml_im2col(ctx, T(F16, 3, 3, 4, 7), T(F32, 10, 9, 4, 2), 1, 2, 1, 1, 1, 1, true, GGML_TYPE_F16), 36, 10,
        5, 2);
    SHAPED(ggml_im2col(ctx, T(F16, 3, 4, 7, 1), T(F32, 10, 4, 2, 1), 2, 0, 1, 0, 1, 0, false, GGML_TYPE_F32), 12, 5,
        2, 1);
    SHAPED(ggml_conv_1d(ctx, T(F16, 3, 4, 7, 1), T(F32, 10, 4, 1, 1), 1, 1, 1), 10, 7, 1, 1);
    SHAPED(ggml_conv_2d(ctx, T(F16, 3, 3, 4, 7), T(F32, 10, 9, 4, 2), 1, 1, 1, 1, 1, 1), 10, 9, 7, 2);
    SHAPED(ggml_conv_2d_dw(ctx, T(F16, 3, 3, 1, 4), T(F32, 10, 9, 4, 2), 1, 1, 1, 1, 1, 1), 10, 9, 4, 2);
    SHAPED(ggml_conv_2d_direct(ctx, T(F32, 3, 3, 4, 7), T(F32, 10, 9, 4, 2), 2, 1, 0, 1, 1, 2), 4, 7, 7, 2);
    SHAPED(ggml_conv_3d(ctx, T(F32, 3, 3, 3, 8), T(F32, 6, 6, 6, 12), 4, 1, 1, 1, 1, 1, 1, 1, 1, 1), 6, 6, 6, 6);
    SHAPED(ggml_conv_3d_direct(ctx, T(F32, 3, 3, 3, 8), T(F32, 6, 6, 6, 12), 1, 1, 1, 0, 0, 0, 1, 1, 1, 4, 3, 2), 4,
        4, 4, 6);
    SHAPED(ggml_conv_transpose_1d(ctx, T(F32, 3, 5, 4, 1), T(F32, 10, 4, 1, 1), 2, 0, 1), 21, 5, 1, 1);
    SHAPED(ggml_conv_transpose_2d_p0(ctx, T(F16, 2, 3, 5, 4), T(F32, 10, 9, 4, 2), 2), 20, 19, 5, 2);
    SHAPED(ggml_col2im_1d(ctx, T(F32, 12, 5, 1, 1), 2, 3, 1), 10, 3, 1, 1);
    SHAPED(ggml_pool_1d(ctx, x, GGML_OP_POOL_MAX, 2, 2, 0), 4, 6, 4, 2);
    SHAPED(ggml_pool_2d(ctx, x, GGML_OP_POOL_AVG, 3, 3, 2, 2, 0.5f, 1.0f), 4, 3, 4, 2);
    SHAPED(ggml_upscale(ctx, x, 2, GGML_SCALE_MODE_NEAREST), 16, 12, 4, 2);
    SHAPED(ggml_pad_ext(ctx, x, 1, 2, 0, 3, 0, 0, 4, 0), 11, 9, 4, 6);
    SHAPED(ggml_pad_reflect_1d(ctx, x, 3, 1), 12, 6, 4, 2);
    SHAPED(ggml_win_part(ctx, T(F32, 5, 7, 9, 1), 4), 5, 4, 4, 6);
    SHAPED(ggml_win_unpart(ctx, T(F32, 5, 4, 4, 6), 7, 9, 4), 5, 7, 9, 1);
    SHAPED(ggml_get_rel_pos(ctx, T(F16, 5, 7, 1, 1), 4, 4), 5, 4, 4, 1);
    SHAPED(ggml_timestep_embedding(ctx, T(F32, 5, 1, 1, 1), 32, 10000), 32, 5, 1, 1);
    SHAPED(ggml_ssm_conv(ctx, T(F32, 9, 6, 2, 1), T(F32, 4, 6, 1, 1)), 6, 6, 2, 1);
    SHAPED(ggml_ssm_scan(ctx, T(F32, 4, 3, 2, 5), T(F32, 3, 2, 6, 2), T(F32, 2, 6, 2, 1), T(F32, 1, 2, 1, 1),
        T(F32, 4, 1, 6, 2), T(F32, 4, 1, 6, 2), T(I32, 2, 1, 1, 1), 2),
           3*2*6*2 + 2*4*3*2*2, 1, 1, 1);
    tensor *k = T(F32, 4, 3, 6, 1);
    SHAPED(ggml_rwkv_wkv6(ctx, k, k, k, T(F32, 4, 3, 1, 1), k, T(F32, 48, 2, 1, 1)), 12, 14, 1, 1);
    SHAPED(ggml_rwkv_wkv7(ctx, k, k, k, k, k, k, T(F32, 48, 2, 1, 1)), 12, 14, 1, 1);
    SHAPED(ggml_gated_linear_attn(ctx, k, k, k, k, T(F32, 48, 2, 1, 1), 1.0f), 12, 14, 1, 1);
    SHAPED(ggml_gated_delta_net(ctx, k, k, T(F32, 4, 6, 6, 1), T(F32, 1, 6, 6, 1), T(F32, 1, 6, 6, 1),
        T(F32, 4, 4, 6, 1), 3), 24, 18, 1, 1);
    SHAPED(ggml_dsv4_hc_comb(ctx, T(F32, 24, 5, 1, 1), T(F32, 3, 1, 1, 1), T(F32, 24, 1, 1, 1), 1e-6f, 3), 4, 4, 5, 1);
    SHAPED(ggml_dsv4_hc_pre(ctx, T(F32, 8, 4, 5, 1), T(F32, 4, 5, 1, 1)), 8, 5, 1, 1);
    SHAPED(ggml_dsv4_hc_post(ctx, T(F32, 8, 5, 1, 1), T(F32, 8, 4, 5, 1), T(F32, 4, 5, 1, 1), NULL), 8, 4, 5, 1);
    SHAPED(ggml_lightning_indexer(ctx, T(F32, 8, 4, 5, 2), T(F32, 8, 1, 16, 2), T(F32, 4, 5, 1, 2),
        T(F16, 16, 5, 1, 1)), 16, 5, 1, 2);
    SHAPED(ggml_cross_entropy_loss(ctx, x, x), 1, 1, 1, 1);
    ggml_free(ctx);
}

/* Words of op_params, floats by their bits. */
static void test_parameters(void) {
    struct ggml_context *ctx = arena();
    tensor *x = T(F32, 8, 6, 4, 2), *pos = T(I32, 4, 1, 1, 1);
    tensor *r = ggml_rope_ext(ctx, x, pos, NULL, 6, GGML_ROPE_TYPE_NEOX, 4096, 1e6f, 0.5f, 1.0f, 2.0f, 32.0f, 4.0f);
    const int32_t want[16] = { 0, 6, 2, 0, 4096, 0x49742400, 0x3f000000, 0x3f800000, 0x40000000, 0x42000000, 0x40800000 };
    CHECK(!memcmp(r->op_params, want, sizeof want), "rope_ext");
    CHECK(r->src[0] == x && r->src[1] == pos && !r->src[2], "rope_ext");
    CHECK(ggml_rope_set_offset(r, 2) == r && r->op_params[15] == 2, "rope_set_offset");
    int sections[4] = { 1, 1, 1, 0 };
    tensor *m = ggml_rope_multi(ctx, x, T(I32, 16, 1, 1, 1), NULL, 8, sections, GGML_ROPE_TYPE_MROPE, 0, 1e4f, 1, 0,
        1, 0, 0);
    CHECK(m->op_params[2] == 8 && m->op_params[11] == 1 && m->op_params[13] == 1 && m->op_params[14] == 0, "rope_multi");
    tensor *s = ggml_soft_max_ext(ctx, x, T(F16, 8, 6, 1, 1), 0.5f, 8.0f);
    CHECK(s->op_params[0] == 0x3f000000 && s->op_params[1] == 0x41000000, "soft_max_ext");
    ggml_soft_max_add_sinks(s, T(F32, 4, 1, 1, 1));
    CHECK(s->src[2] && s->src[2]->ne[0] == 4, "sinks");
    tensor *a = ggml_flash_attn_ext(ctx, T(F32, 64, 5, 8, 1), T(F16, 64, 32, 4, 1), T(F16, 64, 32, 4, 1), NULL, 0.5f,
        0.0f, 30.0f);
    ggml_flash_attn_ext_set_prec(a, GGML_PREC_F32), ggml_flash_attn_ext_set_n_kv_max(a, 17),
        ggml_flash_attn_ext_add_sinks(a, T(F32, 8, 1, 1, 1));
    CHECK(a->op_params[0] == 0x3f000000 && a->op_params[2] == 0x41f00000 && a->op_params[3] == 10 &&
        a->op_params[4] == 17 && a->src[4] &&
          ggml_flash_attn_ext_get_prec(a) == GGML_PREC_F32, "flash_attn_ext");
    tensor *p = ggml_mul_mat(ctx, x, x);
    CHECK(ggml_prec_set_acc(p, GGML_PREC_F32) && p->op_params[0] == 10 && ggml_prec_set_src(p, GGML_PREC_Q8, 1) &&
        p->op_params[3] == 30, "mul_mat");
    CHECK(!ggml_prec_set_src(p, GGML_PREC_Q8, 0) && !ggml_prec_set_acc(x, GGML_PREC_F32), "no place for a precision");
    ggml_mul_mat_set_hint(p, GGML_HINT_SRC0_IS_HADAMARD);
    CHECK(p->op_params[1] == 1, "hint");
    tensor *xi = ggml_xielu(ctx, x, 0.8f, 0.5f, 0.25f, -1e-6f);
    const float n = bits_f32((uint32_t) xi->op_params[1]), q = bits_f32((uint32_t) xi->op_params[2]);
    CHECK(xi->op_params[0] == GGML_UNARY_OP_XIELU && fabsf(n - 1.4211006f) < 1e-6f && fabsf(q - 0.9740770f) < 1e-6f,
        "xielu: %g %g", (double) n, (double) q);
    tensor *v = ggml_view_2d(ctx, x, 4, 2, x->nb[1], 32);
    size_t offset;
    memcpy(&offset, v->op_params, sizeof offset);
    CHECK(offset == 32 && v->view_offs == 32 && v->nb[2] == 2*x->nb[1] && v->nb[3] == v->nb[2], "view_2d");
    float dims[2];
    ggml_rope_yarn_corr_dims(128, 4096, 10000.0f, 32.0f, 1.0f, dims);
    CHECK(dims[0] == 20 && dims[1] == 46, "yarn: %g %g", (double) dims[0], (double) dims[1]);
    tensor *g = ggml_swiglu_oai(ctx, x, x, 1.5f, 7.0f);
    CHECK(g->op_params[0] == GGML_GLU_OP_SWIGLU_OAI && g->op_params[2] == 0x3fc00000 && g->op_params[3] == 0x40e00000,
        "swiglu_oai");
    ggml_free(ctx);
}

static void test_names_and_views(void) {
    struct ggml_context *ctx = arena();
    tensor *x = ggml_set_name(T(F32, 8, 6, 4, 2), "x"), *y = ggml_set_name(T(F16, 8, 6, 4, 2), "y"),
        *u = T(F16, 8, 6, 4, 2);
    CHECK(!strcmp(ggml_cpy(ctx, x, y)->name, "y (copy of x)") && !strcmp(ggml_cpy(ctx, x, u)->name, "x (copy)"), "cpy");
    CHECK(!strcmp(ggml_reshape_2d(ctx, x, 48, 8)->name, "x (reshaped)") &&
        !strcmp(ggml_view_1d(ctx, x, 3, 4)->name, "x (view)"), "views");
    CHECK(!strcmp(ggml_permute(ctx, x, 2, 0, 1, 3)->name, "x (permuted)") &&
        !strcmp(ggml_transpose(ctx, x)->name, "x (transposed)"), "views");
    CHECK(!strcmp(ggml_add_inplace(ctx, x, x)->name, "x (view)") && ggml_add_inplace(ctx, x, x)->view_src == x,
        "in place");
    tensor *p = ggml_permute(ctx, x, 2, 0, 1, 3);       /* source dim d becomes dim axis[d] */
    SHAPED(p, 6, 4, 8, 2);
    CHECK(p->nb[2] == x->nb[0] && p->nb[0] == x->nb[1] && p->nb[1] == x->nb[2] && p->src[0] == x &&
        p->op == GGML_OP_PERMUTE, "permute");
    tensor *c = ggml_cast(ctx, x, GGML_TYPE_F16);
    CHECK(c->op == GGML_OP_CPY && c->src[0] == x && c->src[1] == c && c->type == GGML_TYPE_F16, "cast");
    tensor *v = ggml_view_1d(ctx, ggml_view_1d(ctx, x, 20, 16), 4, 8);
    CHECK(v->view_src == x && v->view_offs == 24, "a view of a view");
    tensor *s = ggml_set_rows(ctx, T(F16, 8, 6, 1, 1), T(F32, 8, 2, 1, 1), T(I64, 2, 1, 1, 1));
    CHECK(s->op == GGML_OP_SET_ROWS && s->view_src == s->src[2] && s->type == GGML_TYPE_F16, "set_rows");
    ggml_free(ctx);
}

/* A view that ends past its parent, by offset, by strides, or by products that do not fit: NULL. */
static void test_views_outside(void) {
    struct ggml_context *ctx = arena();
    tensor *x = T(F32, 8, 1, 1, 1), *m = T(F32, 8, 4, 1, 1);
    CHECK(!ggml_view_1d(ctx, x, 8, 16), "8 elements at byte 16 of 32");
    CHECK(!ggml_view_2d(ctx, m, 8, 4, 64, 0), "rows 64 bytes apart");
    CHECK(!ggml_view_4d(ctx, m, 1, 2, 2, 2, SIZE_MAX/2, SIZE_MAX/2, SIZE_MAX/2, 0), "strides whose sum wraps");
    CHECK(!ggml_view_1d(ctx, m, -1, 0) && !ggml_view_1d(ctx, m, 1, SIZE_MAX), "negative size, huge offset");
    CHECK(ggml_view_2d(ctx, m, 8, 2, 64, 32) && ggml_view_1d(ctx, x, 0, 32), "views that just fit");
    ggml_free(ctx);
}

/* NULL comes out where NULL went in, or where the arena is full. */
static void test_null(void) {
    struct ggml_context *ctx = arena();
    tensor *x = T(F32, 8, 8, 1, 1), *none = NULL;
    tensor *const made[] = {
        ggml_add(ctx, none, x), ggml_add(ctx, x, none), ggml_mul_mat(ctx, x, none), ggml_rope(ctx, x, none, 8, 0),
            ggml_get_rows(ctx, none, x),
        ggml_set_rows(ctx, x, x, none), ggml_rms_norm(ctx, none, 1e-6f), ggml_silu(ctx, none),
            ggml_view_1d(ctx, none, 1, 0), ggml_reshape(ctx, x, none),
        ggml_permute(ctx, none, 0, 1, 2, 3), ggml_cont(ctx, none), ggml_cpy(ctx, none, x),
            ggml_concat(ctx, x, none, 0), ggml_soft_max(ctx, none),
        ggml_flash_attn_ext(ctx, x, none, x, NULL, 1, 0, 0), ggml_conv_2d(ctx, none, x, 1, 1, 0, 0, 1, 1),
            ggml_scale(ctx, none, 2), ggml_xielu(ctx, none, 1, 1, 1, 1),
        ggml_swiglu_split(ctx, x, none), ggml_argsort_top_k(ctx, none, 1), ggml_conv_1d_ph(ctx, none, x, 1, 1),
            ggml_map_custom1(ctx, none, NULL, 1, NULL),
    };
    for (size_t k = 0; k < sizeof made/sizeof *made; k++) CHECK(!made[k], "case %d", (int) k);
    ggml_free(ctx);
    ctx = ggml_init((struct ggml_init_params) { .mem_size = 2*ggml_tensor_overhead(), .no_alloc = true });
    x = T(F32, 8, 1, 1, 1);
    tensor *y = ggml_sqr(ctx, x), *z = ggml_add(ctx, y, x), *w = ggml_conv_1d(ctx, ggml_silu(ctx, z), x, 1, 1, 1);
    CHECK(x && y && !z && !w, "a full arena");
    ggml_free(ctx);
}

/* A wrong call ends the program with one line that names the call, the rule, and the operands. */
static char said[2048];
static void on_abort(const char *text) {
    fputs(text, stdout);
    fflush(stdout);
    _exit(42);
}
static bool refuses(void (*call)(struct ggml_context *)) {
    int ends[2], status = 0;
    if (pipe(ends)) return false;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        ggml_set_abort_callback(on_abort);
        call(arena());
        _exit(0);
    }
    close(ends[1]);
    ssize_t n = 0, got;
    while ((got = read(ends[0], said + n, sizeof said - 1 - (size_t) n)) > 0) n += got;
    said[n] = 0;
    close(ends[0]);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42;
}
static void bad_add    (struct ggml_context *ctx) { ggml_add(ctx, ggml_set_name(T(F32, 8, 6, 1, 1), "left"),
    ggml_set_name(T(F16, 3, 1, 1, 1), "right")); }
static void bad_mul_mat(struct ggml_context *ctx) { ggml_mul_mat(ctx, T(F32, 8, 6, 1, 1), T(F32, 7, 6, 1, 1)); }
static void bad_reshape(struct ggml_context *ctx) { ggml_reshape_1d(ctx, T(F32, 8, 6, 1, 1), 47); }
static void bad_permute(struct ggml_context *ctx) { ggml_permute(ctx, T(F32, 8, 6, 1, 1), 0, 1, 1, 3); }
static void bad_ids    (struct ggml_context *ctx) { ggml_get_rows(ctx, T(F32, 8, 6, 1, 1), T(F32, 7, 1, 1, 1)); }
static void bad_rope   (struct ggml_context *ctx) { ggml_rope(ctx, T(F32, 8, 6, 4, 1), T(I32, 3, 1, 1, 1), 8, 0); }
static void bad_set    (struct ggml_context *ctx) { ggml_set_1d(ctx, T(F32, 8, 1, 1, 1), T(F32, 4, 1, 1, 1), 20); }
static void bad_back   (struct ggml_context *ctx) { tensor *x = T(F32, 8, 1, 1, 1); ggml_flash_attn_back(ctx, x, x, x,
    x, false); }
static void bad_concat (struct ggml_context *ctx) { ggml_concat(ctx, T(F32, 8, 1, 1, 1), T(F32, 7, 1, 1, 1), 1); }
static void bad_mask   (struct ggml_context *ctx) { ggml_flash_attn_ext(ctx, T(F32, 64, 5, 8, 1),
    T(F16, 64, 32, 4, 1), T(F16, 64, 32, 4, 1), T(F16, 31, 5, 1, 1), 1, 0, 0); }

static void test_refusals(void) {
    void (*const bad[])(struct ggml_context *) = {
        bad_mul_mat, bad_reshape, bad_permute, bad_ids, bad_rope, bad_set, bad_back, bad_concat, bad_mask,
    };
    for (size_t k = 0; k < sizeof bad/sizeof *bad; k++) CHECK(refuses(bad[k]), "case %d", (int) k);
    CHECK(refuses(bad_add), "add");
    CHECK(strstr(said, "ggml_add") && strstr(said, "'left' f32 [8, 6, 1, 1]") &&
        strstr(said, "'right' f16 [3, 1, 1, 1]"), "said: %s", said);
}

int main(void) {
    test_shapes();
    test_parameters();
    test_names_and_views();
    test_views_outside();
    test_null();
    test_refusals();
    return DONE();
}
