#ifndef BOUNDS_H
#define BOUNDS_H
/* Limits of the model library, each with its reason. Beyond one lies an error, never a bigger allocation. */

enum {
    MAX_LAYERS      = 1024,     /* per-layer facts are fixed arrays; the deepest published models have a few hundred */
    MAX_SEQUENCES   = 64,       /* a cell of the KV cache holds its sequences as the bits of one word */
    MAX_SPLITS      = 4096,     /* files of one model; the name pattern has five digits */
    MAX_EMBD        = 1 << 20,  /* sizes below keep every product of two of them far inside 64 bits */
    MAX_HEADS       = 1 << 14,
    MAX_HEAD_SIZE   = 1 << 14,
    MAX_FF          = 1 << 24,
    MAX_EXPERTS     = 1 << 12,
    KV_STEP         = 256,      /* attention sees the cache in steps of this many cells, so graphs have few shapes */
    KV_PAGE         = 64,       /* cells handed to a sequence at a time; see kv.c */
    SWA_BATCH       = 512,      /* sliding caches are sized for batches of at least this, so all smaller ones agree */
};

#endif
