#ifndef MODEL_VOCAB_H
#define MODEL_VOCAB_H
/* The vocabulary: token texts, scores and attributes of a GGUF file, and the tokenizers that turn text into ids.
 *
 *   text ──special.c──> special tokens and raw text ──pre.c──> words ──bpe.c / spm.c, by merge.c──> ids
 *
 * Token texts and scores are used where the gguf_context keeps them; a vocabulary adds a hash table, attributes and the
 * merge rules. Nothing here changes after vocab_new, so any number of threads may use one vocabulary. */

#include <stddef.h>
#include <stdint.h>

#include "llama.h"

/* The vocabulary that the tokenizer.ggml.* keys describe. `gguf` must outlive it. NULL after one line of log that names
 * the key, what was found and what was expected; also when memory runs out. */
struct llama_vocab *vocab_new(const struct gguf_context *gguf);
void vocab_free(struct llama_vocab *vocab);

/* The id of the token with exactly these bytes as its text in the file; LLAMA_TOKEN_NULL: none. */
llama_token vocab_find(const struct llama_vocab *vocab, const char *text, size_t length);

/* ---- shared by the files of the tokenizer ------------------------------------------------------------------------ */

/* Special tokens by role: the key that names the id. Rows of vocab.c's table stand in this order. */
enum special {
    SPECIAL_BOS, SPECIAL_EOS, SPECIAL_EOT, SPECIAL_EOM, SPECIAL_UNK, SPECIAL_SEP, SPECIAL_PAD, SPECIAL_MASK,
    SPECIAL_FIM_PRE, SPECIAL_FIM_SUF, SPECIAL_FIM_MID, SPECIAL_FIM_PAD, SPECIAL_FIM_REP, SPECIAL_FIM_SEP,
    SPECIAL_COUNT,
};

/* Open addressing over a power of two of slots. A slot is 0 (empty) or index + 1 in its low bits (as many as the table's
 * size has) and the upper bits of the hash above them, so that most wrong slots are told without looking at the entry. */
struct hash_index {
    uint32_t *slots;
    uint32_t  mask;
};

struct merge_rule {
    llama_token left, right, merged;
};

struct llama_vocab {
    enum llama_vocab_type      type;
    const struct gguf_context *gguf;            /* the caller's */
    int64_t                    texts_key;       /* where the texts are in it; -1: a vocabulary without texts */
    const unsigned char       *scores;          /* F32 of any alignment, in gguf; NULL: all 0 */
    uint16_t                  *attr;            /* [n_tokens] enum llama_token_attr | ATTR_EOG */
    struct hash_index          ids;             /* text -> id */
    int32_t                    n_tokens;
    size_t                     longest;         /* bytes of the longest text */
    llama_token                byte_id[256];    /* the token of a single byte; LLAMA_TOKEN_NULL: none */

    llama_token                special[SPECIAL_COUNT];      /* LLAMA_TOKEN_NULL: none */
    bool                       add_bos, add_eos, add_sep, add_space_prefix;
    llama_token               *suppress;        /* [n_suppress] */
    int32_t                    n_suppress;

    int32_t                   *marked;          /* [n_marked] tokens found in text before tokenizing, sorted by text */
    int32_t                    n_marked;
    int32_t                    marked_from[257];    /* those that begin with byte b: marked[marked_from[b] .. [b + 1]) */

    const struct pre          *pre;             /* BPE: how text is cut into words */
    struct merge_rule         *merges;          /* BPE: [n_merges], best first */
    int32_t                    n_merges;
    struct hash_index          ranks;           /* BPE: (left, right) -> index in merges */
    bool                       words_apart;     /* SPM: no token holds a space mark behind anything but a space mark */
};

enum { ATTR_EOG = 1 << 15 };        /* ends generation; private, above the bits of enum llama_token_attr */

/* A token's text as the file has it, ended by NUL. */
const char *vocab_text(const struct llama_vocab *vocab, llama_token id);
float       vocab_score(const struct llama_vocab *vocab, llama_token id);

/* Where ids go: written while they fit, counted always. */
struct token_sink {
    llama_token *ids;
    int64_t      capacity, count;
};
static inline void sink_put(struct token_sink *sink, llama_token id) {
    if (sink->count < sink->capacity) sink->ids[sink->count] = id;
    sink->count++;
}

#endif
