#ifndef KV_H
#define KV_H
/* The memory of a context: keys and values of past tokens, in cells.
 *
 * A cell holds one token's keys and values in every layer of its cache; its position and the set of sequences that own it
 * stand in `cells`. All sequences share a cache. Layers that see only a sliding window have a cache of their own, smaller
 * unless the program wants it whole, whose cells are taken again once no sequence can see them.
 *
 *   k of a layer: [head size, cell, head]      a head's keys lie one after the other, as attention reads them
 *
 * Cells are handed out in pages: within a page a sequence's positions are in order and aligned, and pages follow each other
 * upwards (around the end in a sliding cache). Attention merges keys in aligned chunks from the start, so a sequence gets
 * the same sums whatever other sequences hold and however its tokens were cut into batches. */

#include "bounds.h"
#include "ggml-backend.h"
#include "llama.h"

enum { KV_FULL, KV_SLIDING, KV_CACHES };

struct llama_model;
struct token_list;

struct kv_cells {
    uint32_t   n;                       /* a multiple of KV_STEP; 0: the cache is not there */
    uint32_t   n_swa;                   /* positions a token sees, itself included; 0: all before it */
    bool       keeps;                   /* what is out of sight stays, so that sequences can be rolled back */
    llama_pos *pos;                     /* [n] -1: empty */
    llama_pos *shift;                   /* [n] added to pos since the keys were rotated */
    uint64_t  *seqs;                    /* [n] a bit per sequence; 0: empty */
    llama_pos  top[MAX_SEQUENCES];      /* highest position of each sequence, -1: none */
    int64_t    last[MAX_SEQUENCES];     /* its cell */
    int64_t    end;                     /* cells from here on are empty */
};

struct kv_taken {                       /* a cell taken for a batch, and what it was before */
    int64_t   cell;
    llama_pos pos, shift;
    uint64_t  seqs;
};

struct kv_cache {
    uint32_t             n;             /* cells that there are, or would be in a model without memory */
    struct kv_cells      cells;
    struct kv_taken     *taken;         /* [n_batch] since memory_begin, in order of the batch */
    int32_t              n_taken;
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    size_t               bytes;         /* of keys and values */
    struct ggml_tensor **k, **v;        /* [n_layer]; NULL for layers of the other cache */
};

struct llama_memory_i {
    struct kv_cache cache[KV_CACHES];
    bool            shifted;            /* some cell has a shift pending */
    uint32_t        n_layer;
};

/* False after one line of log; then memory_release still frees what there is. Zeroed memory is fine to release. */
bool memory_init(struct llama_memory_i *mem, const struct llama_model *model, const struct llama_context_params *params);
void memory_release(struct llama_memory_i *mem);
size_t memory_bytes(const struct llama_memory_i *mem);          /* of keys and values */
size_t memory_other_bytes(const struct llama_memory_i *mem);    /* of the cells */

/* The cache that layer il uses. */
struct kv_cache *memory_cache(struct llama_memory_i *mem, const struct llama_model *model, int il);

/* Taking cells: memory_begin, then memory_place for each part of a batch (tokens first..first+n-1). A placed token's cell in
 * cache c is cache[c].taken[i].cell, i counting the batch's tokens. False: no room, and this part changed nothing.
 * memory_undo gives back everything since memory_begin; cells that held something before get it back unless `written`
 * says that their keys and values were overwritten. */
void memory_begin(struct llama_memory_i *mem);
bool memory_place(struct llama_memory_i *mem, const struct token_list *batch, int32_t first, int32_t n);
void memory_undo(struct llama_memory_i *mem, bool written);

/* Cells that attention has to look at: all occupied ones lie below. A multiple of KV_STEP, at least one step; 0 of a
 * cache that no layer uses. */
int64_t kv_extent(const struct kv_cells *cells);
/* mask[i, j] for cell i < n_kv and token first + j: 0 where the token sees the cell, -inf where not. F16. */
void kv_mask(const struct kv_cells *cells, const struct token_list *batch, int32_t first, int32_t n, int64_t n_kv,
             bool causal, ggml_fp16_t *mask);

/* Takes a cell for the token of sequence s at pos outside any batch; -1: no room. */
int64_t kv_take(struct kv_cells *cells, int s, llama_pos pos);

/* Derived facts, after `pos` and `seqs` were changed from outside. */
void kv_recount(struct kv_cells *cells);
void kv_cell_clear(struct kv_cells *cells, int64_t i);

#endif
