/* Cells of the KV cache: pages keep a sequence in order whatever others do, what is out of a window is taken again, a part
 * that does not fit changes nothing, and the llama_memory_* calls do what they say. */

#include "tiny.h"

#include "model.h"

static struct llama_model *model;
static char path[64];

static struct llama_memory_i memory_of(uint32_t n_ctx, uint32_t n_seq, bool swa_full) {
    struct llama_context_params p = llama_context_default_params();
    struct llama_memory_i mem = { 0 };
    p.n_ctx = n_ctx;
    p.n_batch = 512;
    p.n_ubatch = 128;
    p.n_seq_max = n_seq;
    p.swa_full = swa_full;
    CHECK(memory_init(&mem, model, &p), "memory: %s", tiny_log);
    return mem;
}

struct tokens {
    struct token_list list;
    llama_pos pos[512];
    uint64_t  seqs[512];
    int8_t    first[512];
};

/* n tokens of sequence s from position p on; places them and says whether there was room. */
static bool append(struct llama_memory_i *mem, int s, llama_pos p, int n) {
    static struct tokens t;
    t.list = (struct token_list) { .n = n, .pos = t.pos, .seqs = t.seqs, .first_seq = t.first };
    for (int i = 0; i < n; i++) t.pos[i] = p + i, t.seqs[i] = (uint64_t) 1 << s, t.first[i] = (int8_t) s;
    memory_begin(mem);
    return memory_place(mem, &t.list, 0, n);
}

static bool in_order(const struct kv_cells *c, int s) {
    llama_pos last = -1;
    for (int64_t i = 0; i < c->n; i++) {
        if (!(c->seqs[i] >> s & 1)) continue;
        if (c->pos[i] <= last || c->pos[i] % KV_PAGE != i % KV_PAGE) return false;
        last = c->pos[i];
    }
    return true;
}

static void test_pages(void) {
    struct llama_memory_i mem = memory_of(1024, 3, true);
    const struct kv_cells *c = &mem.cache[KV_FULL].cells;
    CHECK(mem.cache[KV_SLIDING].cells.n == 1024 && c->n == 1024, "caches");
    llama_pos at[3] = { 0, 0, 0 };
    uint64_t seed = 7;
    for (int turn = 0; turn < 60; turn++) {
        const int s = (int) (rnd_u64(&seed) % 3), n = 1 + (int) (rnd_u64(&seed) % 20);
        if (at[s] + n > 300) continue;
        CHECK(append(&mem, s, at[s], n), "no room for sequence %d at %d", s, at[s]);
        at[s] += n;
    }
    for (int s = 0; s < 3; s++) {
        CHECK(in_order(c, s), "sequence %d is out of order", s);
        CHECK(llama_memory_seq_pos_max(&mem, s) == at[s] - 1 && llama_memory_seq_pos_min(&mem, s) == 0,
              "ends of %d", s);
    }
    memory_release(&mem);
}

static void test_no_room(void) {
    struct llama_memory_i mem = memory_of(256, 1, true);
    struct kv_cells *c = &mem.cache[KV_FULL].cells;
    CHECK(append(&mem, 0, 0, 250), "250 of 256");
    llama_pos before[256];
    memcpy(before, c->pos, sizeof before);
    CHECK(!append(&mem, 0, 250, 7), "seven into six");
    CHECK(!memcmp(before, c->pos, sizeof before) && c->top[0] == 249, "something changed");
    CHECK(append(&mem, 0, 250, 6), "six into six");
    memory_undo(&mem, false);
    CHECK(!memcmp(before, c->pos, sizeof before) && c->top[0] == 249 && c->last[0] == 249, "undo");
    CHECK(kv_extent(c) == 256, "extent");
    memory_release(&mem);
}

/* A window of 16: after thousands of tokens the cache still has room, and holds the window. */
static void test_window(void) {
    struct llama_memory_i mem = memory_of(2048, 1, false);
    const struct kv_cells *c = &mem.cache[KV_SLIDING].cells;
    CHECK(c->n && c->n < 2048 && c->n_swa == 16, "window cache of %u cells", c->n);
    for (llama_pos p = 0; p < 2000; p += 100) {
        CHECK(append(&mem, 0, p, 100), "no room at %d", p);
        for (llama_pos q = p > 15 ? p - 15 : 0; q < p + 100; q++) {
            int n = 0;
            for (int64_t i = 0; i < c->n; i++) n += c->seqs[i] && c->pos[i] == q;
            if (n != 1) { CHECK(n == 1, "position %d is in %d cells", q, n); break; }
        }
    }
    CHECK(llama_memory_seq_pos_max(&mem, 0) == 1999, "end");
    CHECK(llama_memory_seq_pos_min(&mem, 0) > 0, "beginning is still there");
    CHECK(!llama_memory_seq_rm(&mem, 0, 100, -1), "rolled back to where nothing is left");
    CHECK(llama_memory_seq_pos_max(&mem, 0) == 1999, "and changed it");
    CHECK(llama_memory_seq_rm(&mem, 0, 1990, -1) && llama_memory_seq_pos_max(&mem, 0) == 1989, "rolled back a little");
    CHECK(llama_memory_seq_rm(&mem, 0, -1, -1) && llama_memory_seq_pos_max(&mem, 0) == -1, "all");
    memory_release(&mem);
}

static void test_mask(void) {
    struct llama_memory_i mem = memory_of(512, 2, false);
    append(&mem, 0, 0, 30);
    append(&mem, 1, 0, 30);
    llama_pos pos[1] = { 20 };
    int8_t first[1] = { 1 };
    uint64_t seqs[1] = { 2 };
    struct token_list list = { .n = 1, .pos = pos, .seqs = seqs, .first_seq = first };
    for (int which = 0; which < KV_CACHES; which++) {
        const struct kv_cells *c = &mem.cache[which].cells;
        ggml_fp16_t mask[512];
        int seen = 0, wrong = 0;
        const int64_t n_kv = kv_extent(c);
        kv_mask(c, &list, 0, 1, n_kv, true, mask);
        for (int64_t i = 0; i < n_kv; i++) {
            const bool may = c->seqs[i] == 2 && c->pos[i] <= 20 && (which == KV_FULL || c->pos[i] > 4);
            wrong += mask[i] != (may ? 0 : 0xfc00);
            seen  += mask[i] == 0;
        }
        CHECK(!wrong && seen == (which == KV_FULL ? 21 : 16), "cache %d: %d wrong, %d seen", which, wrong, seen);
        kv_mask(c, &list, 0, 1, n_kv, false, mask);
        seen = 0;
        for (int64_t i = 0; i < n_kv; i++) seen += mask[i] == 0;
        CHECK(seen == (which == KV_FULL ? 30 : 25), "cache %d: %d seen without order", which, seen);
    }
    memory_release(&mem);
}

static int64_t owned(const struct kv_cells *c, int s) {
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) n += c->seqs[i] >> s & 1;
    return n;
}

static void test_calls(void) {
    struct llama_memory_i mem = memory_of(512, 4, true);
    const struct kv_cells *c = &mem.cache[KV_FULL].cells;
    append(&mem, 0, 0, 100);
    llama_memory_seq_cp(&mem, 0, 1, 0, 50);
    CHECK(owned(c, 1) == 50 && llama_memory_seq_pos_max(&mem, 1) == 49, "copy");
    CHECK(append(&mem, 1, 50, 5) && owned(c, 1) == 55, "the copy goes on");
    CHECK(llama_memory_seq_rm(&mem, 0, 10, 20) && owned(c, 0) == 90 && owned(c, 1) == 55, "remove from one");
    llama_memory_seq_add(&mem, 0, 60, -1, -10);
    CHECK(llama_memory_seq_pos_max(&mem, 0) == 89 && mem.shifted, "moved back");
    llama_memory_seq_keep(&mem, 1);
    CHECK(owned(c, 0) == 0 && owned(c, 1) == 55, "keep");
    llama_memory_seq_div(&mem, 1, 0, -1, 5);
    CHECK(llama_memory_seq_pos_max(&mem, 1) == 10, "divided");
    llama_memory_clear(&mem, true);
    CHECK(owned(c, 1) == 0 && llama_memory_seq_pos_max(&mem, 1) == -1 && !mem.shifted, "clear");
    CHECK(!llama_memory_seq_rm(&mem, MAX_SEQUENCES, -1, -1), "an unknown sequence");
    llama_memory_seq_add(&mem, MAX_SEQUENCES, 0, -1, 5);
    CHECK(llama_memory_seq_pos_max(&mem, -1) == -1 && llama_memory_seq_pos_max(&mem, 1000) == -1, "unknown");
    memory_release(&mem);
}

static void test_types(void) {
    static const struct { enum ggml_type k, v; bool ok; } cases[] = {
        { GGML_TYPE_F32, GGML_TYPE_F16, true }, { GGML_TYPE_Q8_0, GGML_TYPE_F16, false },   /* heads of 8 elements */
        { (enum ggml_type) 4, GGML_TYPE_F16, false }, { GGML_TYPE_COUNT, GGML_TYPE_F16, false },
        { GGML_TYPE_F16, (enum ggml_type) 100000, false },
    };
    for (size_t i = 0; i < sizeof cases/sizeof *cases; i++) {
        struct llama_context_params p = llama_context_default_params();
        struct llama_memory_i mem = { 0 };
        p.n_batch = 1;
        p.type_k = cases[i].k;
        p.type_v = cases[i].v;
        tiny_log_clear();
        CHECK(memory_init(&mem, model, &p) == cases[i].ok && tiny_errors == !cases[i].ok, "types %d %d: %s",
              p.type_k, p.type_v, tiny_log);
        memory_release(&mem);
    }
}

int main(void) {
    llama_log_set(tiny_catch, NULL);
    struct tiny t = tiny_new((struct tiny_shape) { "gemma3", 6, 32, 4, 2, 64, 0, 0, 16, GGML_TYPE_F32, false });
    tiny_write(&t);
    snprintf(path, sizeof path, "%s", t.path);
    model = llama_model_load_from_file(path, llama_model_default_params());
    CHECK(model, "%s", tiny_log);
    if (model) {
        test_pages();
        test_no_room();
        test_window();
        test_mask();
        test_calls();
        test_types();
    }
    llama_model_free(model);
    tiny_free(&t);
    return DONE();
}
