/* How tensors are divided over the devices of a meta device, and how a division goes through an op.
 *
 * Owns the arithmetic of splits, the shares of views (a question of addresses only, so that one function answers for views,
 * reshapes, permutations and what is written in place), and the table of ops: a row says how the splits of the sources make
 * the split of the result. An op without a row, or with sources that its rule has no answer for, is computed whole on every
 * device; that is always right, so a rule only has to say what it knows. Nothing here touches data. */

#include "meta.h"
#include "core.h"

#include <string.h>

/* ---- splits ------------------------------------------------------------------------------------------------------ */

split split_of(enum ggml_backend_meta_split_axis axis) {
    split s;
    memset(&s, 0, sizeof s);
    s.axis = axis;
    return s;
}

bool split_equal(const split *a, const split *b, int n) {
    if (a->axis != b->axis) return false;
    if (split_partial(a)) return !memcmp(a->ne, b->ne, (size_t) n*sizeof *a->ne);
    return !split_axis(a) || (a->n_segments == b->n_segments &&
        !memcmp(a->nr, b->nr, a->n_segments*sizeof *a->nr) && !memcmp(a->ne, b->ne, a->n_segments*(size_t) n*sizeof *a->ne));
}

int64_t split_share(const split *s, int n, int device) {
    int64_t sum = 0;
    if (split_partial(s)) return s->ne[device];
    if (!split_axis(s))   return 1;
    for (uint32_t i = 0; i < s->n_segments; i++) sum += s->ne[i*(size_t) n + (size_t) device]*s->nr[i];
    return sum;
}

/* One round more, shares per device; a round like the last one counts as its repeat. False when there are too many. */
static bool split_append(split *s, int n, const int64_t *shares) {
    int64_t all = 0;
    for (int j = 0; j < n; j++) all |= shares[j];
    if (all == 0) return true;
    const size_t bytes = (size_t) n*sizeof *shares;
    if (s->n_segments > 0 && !memcmp(s->ne + (s->n_segments - 1)*(size_t) n, shares, bytes)) {
        s->nr[s->n_segments - 1]++;
        return true;
    }
    if (s->n_segments == META_SEGMENTS) return false;
    memcpy(s->ne + s->n_segments*(size_t) n, shares, bytes);
    s->nr[s->n_segments++] = 1;
    return true;
}

/* The same division of an axis that is mul/div as long. False when a share is no whole number then. */
static bool split_scaled(const split *s, int n, int axis, int64_t mul, int64_t div, split *out) {
    split r = *s;
    r.axis = (enum ggml_backend_meta_split_axis) axis;
    for (size_t i = 0; i < s->n_segments*(size_t) n; i++) {
        int64_t product;
        if (!dims_product((int64_t[]) { s->ne[i], mul }, 2, &product) || product%div != 0) return false;
        r.ne[i] = product/div;
    }
    *out = r;
    return true;
}

/* On axis 0 no block of weights is divided. */
bool split_blocks(const struct ggml_tensor *t, const split *s, int n) {
    bool ok = true;
    for (size_t i = 0; split_is(s, GGML_BACKEND_SPLIT_AXIS_0) && ok && i < s->n_segments*(size_t) n; i++) {
        ok = s->ne[i]%ggml_blck_size(t->type) == 0;
    }
    return ok;
}

static bool check_partial(const struct ggml_tensor *t, int n, split *s, const char **why) {
    split r = split_of(GGML_BACKEND_SPLIT_AXIS_PARTIAL);
    bool any = false;
    for (int j = 0; j < n; j++) any = any || s->ne[j] != 0;
    for (int j = 0; j < n; j++) r.ne[j] = !any || s->ne[j] != 0;
    *s = r;
    *why = "only F32 is a sum of summands";
    return t->type == GGML_TYPE_F32;
}

bool split_check(const struct ggml_tensor *t, int n, split *s, const char **why) {
    const int axis = (int) s->axis;
    *why = "no such axis";
    if (split_mirrored(s)) { *s = split_of(s->axis); return true; }
    if (split_partial(s))  return check_partial(t, n, s, why);
    if (!split_axis(s))    return false;
    split r = split_of(s->axis);
    const int64_t grain = axis == 0 ? ggml_blck_size(t->type) : 1, whole = t->ne[axis];
    int64_t left = whole;
    *why = "1 to 16 segments make a division";
    if (s->n_segments == 0 || s->n_segments > META_SEGMENTS) return false;
    for (uint32_t i = 0; i < s->n_segments; i++) {
        const int64_t *ne = s->ne + i*(size_t) n;
        int64_t round = 0;
        *why = "a share is negative, too long, or no whole number of blocks";
        for (int j = 0; j < n; j++) {
            if (ne[j] < 0 || ne[j] > left - round || ne[j]%grain != 0) return false;
            round += ne[j];
        }
        *why = "the shares are more than the axis";
        if (round == 0) continue;
        if (s->nr[i] > left/round) return false;
        left -= round*s->nr[i];
        if (s->nr[i] == 0) continue;
        memcpy(r.ne + r.n_segments*(size_t) n, ne, (size_t) n*sizeof *ne);
        r.nr[r.n_segments++] = s->nr[i];
    }
    *why = "the shares are less than the axis";
    *s = r;
    return left == 0;
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

/* Dimensions and strides with dim 0 counted in blocks of weights. */
struct layout {
    int64_t ne[GGML_MAX_DIMS];
    size_t  nb[GGML_MAX_DIMS];
    int64_t per;                        /* elements of such a block */
};

static struct layout layout_of(const struct ggml_tensor *t) {
    struct layout l = { .per = ggml_blck_size(t->type) };
    memcpy(l.ne, t->ne, sizeof l.ne);
    memcpy(l.nb, t->nb, sizeof l.nb);
    l.ne[0] /= l.per;
    return l;
}

/* Packed elements of one byte. */
static struct layout layout_packed(const int64_t *ne) {
    struct layout l = { .per = 1 };
    size_t size = 1;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        l.ne[i] = ne[i];
        l.nb[i] = size;
        size *= (size_t) ne[i];
    }
    return l;
}

static size_t layout_block(const struct layout *l, int axis) { return l->nb[axis]*(size_t) l->ne[axis]; }

size_t split_block(const struct ggml_tensor *root, int axis) {
    const struct layout l = layout_of(root);
    return layout_block(&l, axis);
}

static struct pieces pieces_in(const struct layout *l, const split *s, int n) {
    return (struct pieces) { .s = s, .unit = l->nb[s->axis], .per = s->axis == 0 ? (size_t) l->per : 1, .n = n };
}

struct pieces pieces_of(const struct ggml_tensor *root, const split *s, int n) {
    const struct layout l = layout_of(root);
    return pieces_in(&l, s, n);
}

bool pieces_next(struct pieces *p, struct piece *piece) {
    if (p->segment == p->s->n_segments) return false;
    const size_t size = (size_t) p->s->ne[p->segment*(size_t) p->n + (size_t) p->device]/p->per*p->unit;
    *piece = (struct piece) { .at = p->at, .size = size, .local = p->local[p->device], .device = p->device };
    p->at += size;
    p->local[p->device] += size;
    if (++p->device < p->n) return true;
    p->device = 0;
    if (++p->repeat < p->s->nr[p->segment]) return true;
    p->repeat = 0;
    p->segment++;
    return true;
}

/* The dim of the view that steps through the split axis last, so that its indices are what is divided; -1: none does, or
 * an index of it has elements that are not side by side within one step. */
static int divided_dim(const struct layout *root, size_t block, const struct layout *view, size_t start) {
    int d = -1;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (view->ne[i] > 1 && view->nb[i] < block && (d < 0 || view->nb[i] > view->nb[d])) d = i;
        if (view->ne[i] > 1 && view->nb[i] >= block && view->nb[i]%block != 0) return -1;
    }
    if (d < 0 || view->nb[d] == 0) return -1;
    size_t width = root->nb[0];
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (i != d && view->ne[i] > 1 && view->nb[i] < block) width += view->nb[i]*(size_t) (view->ne[i] - 1);
    }
    return width <= view->nb[d] && start + view->nb[d]*(size_t) (view->ne[d] - 1) + width <= block ? d : -1;
}

/* The pieces of the root's axis cut the view where one index of its dim ends and the next begins, or it is UNKNOWN. */
static void divide(const struct layout *root, const split *s, const struct layout *view, size_t offset, int n, split *out) {
    *out = split_of(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    const size_t block = layout_block(root, (int) s->axis), start = offset%block;
    const int d = divided_dim(root, block, view, start);
    if (d < 0) return;
    const size_t step = view->nb[d], end = start + step*(size_t) view->ne[d], last = end < block ? end : block;
    split r = split_of((enum ggml_backend_meta_split_axis) d);
    int64_t shares[META_MAX] = {0};
    struct piece piece;
    for (struct pieces p = pieces_in(root, s, n); pieces_next(&p, &piece); ) {
        const size_t from = piece.at > start ? piece.at : start, to = piece.at + piece.size < last ? piece.at + piece.size : last;
        if (to > from) {
            if ((from - start)%step != 0 || ((to - start)%step != 0 && to != last)) return;
            shares[piece.device] = (int64_t) ((to - start + step - 1)/step - (from - start)/step)*(d == 0 ? view->per : 1);
        }
        if (piece.device < n - 1) continue;
        if (!split_append(&r, n, shares)) return;
        memset(shares, 0, sizeof shares);
    }
    *out = r;
}

void split_view(const struct ggml_tensor *root, const split *s, const struct ggml_tensor *view, int n, split *out) {
    if (!split_axis(s) || root == view) { *out = *s; return; }
    *out = split_of(GGML_BACKEND_SPLIT_AXIS_UNKNOWN);
    if (root->type != view->type || ggml_is_empty(root) || ggml_is_empty(view)) return;
    const struct layout l = layout_of(root), v = layout_of(view);
    divide(&l, s, &v, view->view_offs, n, out);
}

/* The split that packed elements of shape `from` have as packed elements of shape `to`. */
static bool reshaped(const int64_t *from, const split *s, const int64_t *to, int n, split *out) {
    if (!split_axis(s) || !memcmp(from, to, GGML_MAX_DIMS*sizeof *from)) { *out = *s; return true; }
    const struct layout l = layout_packed(from), v = layout_packed(to);
    divide(&l, s, &v, 0, n, out);
    return split_axis(out);
}

size_t split_slice(const struct ggml_tensor *root, const split *s, const struct ggml_tensor *view, const split *v, int n,
                   int device, struct ggml_tensor *slice) {
    const size_t offset = root == view ? 0 : view->view_offs;
    if (!split_axis(s)) return offset;
    const size_t block = split_block(root, (int) s->axis), start = offset%block;
    size_t before = 0, own = 0;                 /* bytes of the device in front of the view's first one, and in all */
    struct piece piece;
    for (struct pieces p = pieces_of(root, s, n); pieces_next(&p, &piece); ) {
        if (piece.device != device) continue;
        own += piece.size;
        if (piece.at < start) before += piece.at + piece.size < start ? piece.size : start - piece.at;
    }
    slice->ne[v->axis] = split_share(v, n, device);
    for (int i = 0; i < GGML_MAX_DIMS; i++) if (view->nb[i] >= block) slice->nb[i] = view->nb[i]/block*own;
    return offset/block*own + before;
}

/* ---- rules --------------------------------------------------------------------------------------------------------- */

enum { AXIS_0 = 1, AXIS_1 = 2, AXIS_2 = 4, AXIS_3 = 8, ROWS = AXIS_1 | AXIS_2 | AXIS_3, ANY_AXIS = AXIS_0 | ROWS };
/* f(x + y) = f(x) + f(y): in all its sources, or in the first with the others whole. */
enum linear { NOT_LINEAR, LINEAR, LINEAR_FIRST };
enum { NO_RULE, RULE_ALONG, RULE_GLU, RULE_CONCAT, RULE_SOFT_MAX, RULE_PRODUCT, RULE_ATTENTION, RULE_SET_ROWS, RULE_STORE, RULE_COPY };

struct op_rule {
    uint8_t rule;
    uint8_t axes;               /* those that go through */
    uint8_t whole;              /* this source and those behind it are no operands of the same shape: each is wanted whole */
    uint8_t linear;
};
static struct op_rule rule_of(enum ggml_op op);

static const split *source(const struct step *p, int i) { return &p->have[i]; }

void step_whole(struct step *p) {
    for (int i = 0; i < GGML_MAX_SRC; i++) p->want[i] = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    p->out = split_of(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
}

/* The first split of a source, or of what is written in place, that goes through; NULL: none is divided that way. */
static const split *leading(const struct step *p, unsigned axes, int whole) {
    if (split_axis(&p->place)) return axes >> p->place.axis & 1 ? &p->place : NULL;
    for (int i = 0; i < whole && i < GGML_MAX_SRC; i++) {
        const split *s = source(p, i);
        if (p->node->src[i] && split_axis(s) && axes >> s->axis & 1 && p->node->src[i]->ne[s->axis] == p->node->ne[s->axis]) return s;
    }
    return NULL;
}

/* Every index of the axis on its own: operands as long as the result are divided like it, those of length 1 serve all. */
static bool along(struct step *p, unsigned axes, int whole) {
    const split *s = leading(p, axes, whole);
    if (!s) return false;
    step_whole(p);
    p->out = *s;
    for (int i = 0; i < whole && i < GGML_MAX_SRC && p->node->src[i]; i++) {
        const int64_t ne = p->node->src[i]->ne[s->axis];
        if (ne == p->node->ne[s->axis]) p->want[i] = *s;
        else if (ne != 1) return false;
    }
    return true;
}

static bool rule_along(struct step *p) {
    const struct op_rule r = rule_of(p->node->op);
    return along(p, r.axes, r.whole);
}

/* Rows of one source have both halves: divided alike, each device has matching ones. */
static bool rule_glu(struct step *p) {
    const split *s = source(p, 0);
    if (p->node->src[1] || !split_is(s, GGML_BACKEND_SPLIT_AXIS_0)) return along(p, p->node->src[1] ? ANY_AXIS : ROWS, 2);
    if (s->n_segments != 1 || s->nr[0] != 2) return false;
    step_whole(p);
    p->want[0] = p->out = *s;
    p->out.nr[0] = 1;
    return true;
}

static bool rule_concat(struct step *p) { return along(p, ANY_AXIS & ~(1u << param_i32(p->node, 0)), 2); }

/* Slopes of ALiBi count the heads from the first one; sinks are one for each head. */
static bool rule_soft_max(struct step *p) {
    const bool slopes = param_f32(p->node, 1) != 0.0f;
    if (!along(p, slopes ? AXIS_1 | AXIS_3 : ROWS, 2)) return false;
    if (p->node->src[2] && split_is(&p->out, GGML_BACKEND_SPLIT_AXIS_2)) return split_scaled(&p->out, p->n, 0, 1, 1, &p->want[2]);
    return true;
}

/* Batches of a product: the first operand's may serve several of the second's, side by side. */
static bool product_batches(struct step *p, int axis) {
    const struct ggml_tensor *const *src = (const struct ggml_tensor *const *) p->node->src;
    const int64_t a = src[0]->ne[axis], b = src[1]->ne[axis];
    if ((int) source(p, 1)->axis == axis) p->out = *source(p, 1);
    else if (!split_scaled(source(p, 0), p->n, axis, b, a, &p->out)) return false;
    p->want[1] = p->out;
    return a == 1 || split_scaled(&p->out, p->n, axis, a, b, &p->want[0]);
}

/* Rows of the first operand are elements of the result; its columns are summands of all elements. */
static bool rule_product(struct step *p) {
    const split *a = source(p, 0), *b = source(p, 1);
    const bool experts = p->node->op == GGML_OP_MUL_MAT_ID;
    step_whole(p);
    if (split_is(a, GGML_BACKEND_SPLIT_AXIS_1)) {
        p->want[0] = *a;
        return split_scaled(a, p->n, 0, 1, 1, &p->out);
    }
    if (split_is(a, GGML_BACKEND_SPLIT_AXIS_0)) {
        p->want[0] = p->want[1] = *a;
        p->out = split_of(GGML_BACKEND_SPLIT_AXIS_PARTIAL);
        for (int j = 0; j < p->n; j++) p->out.ne[j] = split_share(a, p->n, j) > 0;
        return split_equal(a, b, p->n) || split_one_round(a);
    }
    if (split_axis(b) && split_mirrored(a) && b->axis == GGML_BACKEND_SPLIT_AXIS_1 && !experts) {
        p->want[1] = p->out = *b;
        return true;
    }
    const int batch = (int) (split_axis(a) ? a->axis : b->axis);
    return !experts && batch >= GGML_BACKEND_SPLIT_AXIS_2 && batch < GGML_MAX_DIMS && product_batches(p, batch);
}

/* By heads: those of K and V serve as many of Q each; the result has them on axis 1, sinks on axis 0. */
static bool rule_attention(struct step *p) {
    struct ggml_tensor *const *src = p->node->src;
    const split *q = source(p, 0);
    const int64_t heads = src[0]->ne[2], heads_kv = src[1]->ne[2];
    if (!split_is(q, GGML_BACKEND_SPLIT_AXIS_2) || param_f32(p->node, 1) != 0.0f || src[2]->ne[2] != heads_kv) return false;
    if (src[3] && src[3]->ne[2] != 1) return false;
    step_whole(p);
    p->want[0] = *q;
    for (int i = 1; i <= 2; i++) if (heads_kv != 1 && !split_scaled(q, p->n, 2, heads_kv, heads, &p->want[i])) return false;
    if (src[4] && !split_scaled(q, p->n, 0, 1, 1, &p->want[4])) return false;
    return split_scaled(q, p->n, 1, 1, 1, &p->out);
}

static bool rule_set_rows(struct step *p) {
    const split *s = source(p, 2);
    const struct ggml_tensor *ids = p->node->src[1];
    if (!split_axis(s) || split_is(s, GGML_BACKEND_SPLIT_AXIS_1)) return false;
    if (s->axis > GGML_BACKEND_SPLIT_AXIS_1 && ids->ne[s->axis - 1] != 1) return false;
    step_whole(p);
    p->want[0] = p->want[2] = p->out = *s;
    return true;
}

/* The elements keep their order, so shapes may differ. */
static bool rule_copy(struct step *p) {
    const split *s = source(p, 0);
    step_whole(p);
    p->want[0] = *s;
    return split_axis(s) && reshaped(p->node->src[0]->ne, s, p->node->ne, p->n, &p->out);
}

/* Into another tensor, or (a cast) into one of its own. */
static bool rule_store(struct step *p) {
    const split *s = source(p, 1);
    const struct ggml_tensor *from = p->node->src[0], *to = p->node->src[1];
    if (to == p->node) return rule_copy(p) && split_blocks(to, &p->out, p->n);
    step_whole(p);
    p->want[1] = p->out = *s;
    return split_axis(s) && reshaped(to->ne, s, from->ne, p->n, &p->want[0]);
}

enum { ALL = GGML_MAX_SRC };

static const struct op_rule rules[GGML_OP_COUNT] = {
    [GGML_OP_DUP]           = { RULE_COPY,      0,               ALL, LINEAR },
    [GGML_OP_CONT]          = { RULE_COPY,      0,               ALL, LINEAR },
    [GGML_OP_CPY]           = { RULE_STORE,     0,               ALL, NOT_LINEAR },
    [GGML_OP_ADD]           = { RULE_ALONG,     ANY_AXIS,        ALL, LINEAR },
    [GGML_OP_SUB]           = { RULE_ALONG,     ANY_AXIS,        ALL, LINEAR },
    [GGML_OP_MUL]           = { RULE_ALONG,     ANY_AXIS,        ALL, LINEAR_FIRST },
    [GGML_OP_DIV]           = { RULE_ALONG,     ANY_AXIS,        ALL, LINEAR_FIRST },
    [GGML_OP_ADD_ID]        = { RULE_ALONG,     AXIS_0,          2,   NOT_LINEAR },
    [GGML_OP_ADD1]          = { RULE_ALONG,     ANY_AXIS,        1,   NOT_LINEAR },
    [GGML_OP_SQR]           = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_SQRT]          = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_LOG]           = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_SIN]           = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_COS]           = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_SCALE]         = { RULE_ALONG,     ANY_AXIS,        ALL, LINEAR },
    [GGML_OP_CLAMP]         = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_UNARY]         = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_LEAKY_RELU]    = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_SILU_BACK]     = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_FILL]          = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_REPEAT]        = { RULE_ALONG,     ANY_AXIS,        ALL, NOT_LINEAR },
    [GGML_OP_CONCAT]        = { RULE_CONCAT,    ANY_AXIS,        2,   NOT_LINEAR },
    [GGML_OP_GLU]           = { RULE_GLU,       ANY_AXIS,        2,   NOT_LINEAR },
    [GGML_OP_OPT_STEP_ADAMW]= { RULE_ALONG,     ANY_AXIS,        4,   NOT_LINEAR },
    [GGML_OP_OPT_STEP_SGD]  = { RULE_ALONG,     ANY_AXIS,        2,   NOT_LINEAR },
    [GGML_OP_SUM_ROWS]      = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_MEAN]          = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_CUMSUM]        = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_NORM]          = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_RMS_NORM]      = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_RMS_NORM_BACK] = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_L2_NORM]       = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_SOFT_MAX]      = { RULE_SOFT_MAX,  ROWS,            2,   NOT_LINEAR },
    [GGML_OP_SOFT_MAX_BACK] = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_ARGSORT]       = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_TOP_K]         = { RULE_ALONG,     ROWS,            ALL, NOT_LINEAR },
    [GGML_OP_DIAG_MASK_INF] = { RULE_ALONG,     AXIS_2 | AXIS_3, ALL, NOT_LINEAR },
    [GGML_OP_DIAG_MASK_ZERO]= { RULE_ALONG,     AXIS_2 | AXIS_3, ALL, NOT_LINEAR },
    [GGML_OP_TRI]           = { RULE_ALONG,     AXIS_2 | AXIS_3, ALL, NOT_LINEAR },
    [GGML_OP_ROPE]          = { RULE_ALONG,     AXIS_1 | AXIS_3, 1,   NOT_LINEAR },     /* axis 2 has the positions */
    [GGML_OP_ROPE_BACK]     = { RULE_ALONG,     AXIS_1 | AXIS_3, 1,   NOT_LINEAR },
    [GGML_OP_GET_ROWS]      = { RULE_ALONG,     AXIS_0,          1,   NOT_LINEAR },
    [GGML_OP_SET_ROWS]      = { RULE_SET_ROWS,  0,               ALL, NOT_LINEAR },
    [GGML_OP_MUL_MAT]       = { RULE_PRODUCT,   0,               ALL, NOT_LINEAR },
    [GGML_OP_MUL_MAT_ID]    = { RULE_PRODUCT,   0,               ALL, NOT_LINEAR },
    [GGML_OP_FLASH_ATTN_EXT]= { RULE_ATTENTION, 0,               ALL, NOT_LINEAR },
};

static bool ( *const apply[])(struct step *step) = {
    [RULE_ALONG]   = rule_along,   [RULE_GLU]       = rule_glu,       [RULE_CONCAT]   = rule_concat,   [RULE_SOFT_MAX] = rule_soft_max,
    [RULE_PRODUCT] = rule_product, [RULE_ATTENTION] = rule_attention, [RULE_SET_ROWS] = rule_set_rows, [RULE_STORE]    = rule_store,
    [RULE_COPY]    = rule_copy,
};

static struct op_rule rule_of(enum ggml_op op) { return rules[op]; }

/* Summands stay summands: what is added up later has the same value, and it is added up once. */
static bool sum_of_summands(struct step *p, enum linear linear) {
    const split *s = source(p, 0);
    if (linear == NOT_LINEAR || !split_partial(s) || p->node->type != GGML_TYPE_F32) return false;
    if (p->node->op == GGML_OP_SCALE && param_f32(p->node, 1) != 0.0f) return false;
    step_whole(p);
    p->want[0] = p->out = *s;
    if (linear == LINEAR && p->node->src[1]) p->want[1] = *s;
    return linear == LINEAR_FIRST || !p->node->src[1] || split_equal(source(p, 1), s, p->n);
}

bool step_divided(struct step *p) {
    const struct op_rule r = rules[p->node->op];
    return r.rule && (sum_of_summands(p, (enum linear) r.linear) || apply[r.rule](p));
}
