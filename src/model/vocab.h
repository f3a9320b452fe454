#ifndef MODEL_VOCAB_H
#define MODEL_VOCAB_H
/* The vocabulary: token texts, scores and attributes of a GGUF file, and the tokenizers that turn text into ids.
 *
 *   text ──tokenize.c──> special tokens and raw text ──pre.c──> words ──bpe.c / spm.c, by merge.c──> ids ──token.c──> text
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
size_t vocab_bytes(const struct llama_vocab *vocab);     /* that it takes beside the gguf_context */

/* The id of the token with exactly these bytes as its text in the file; LLAMA_TOKEN_NULL: none. */
llama_token vocab_find(const struct llama_vocab *vocab, const char *text, size_t length);

/* The same for n <= VOCAB_BATCH texts at once, which takes a fraction of the time. */
enum { VOCAB_BATCH = 32 };
void vocab_find_batch(const struct llama_vocab *vocab, const char *const *texts, const size_t *lengths, llama_token *ids,
    int n);

/* ---- shared by the files of the tokenizer ------------------------------------------------------------------------ */

/* Special tokens by role: the key that names the id. Rows of vocab.c's table stand in this order. */
enum special {
    SPECIAL_BOS, SPECIAL_EOS, SPECIAL_EOT, SPECIAL_EOM, SPECIAL_UNK, SPECIAL_SEP, SPECIAL_PAD, SPECIAL_MASK,
    SPECIAL_FIM_PRE, SPECIAL_FIM_SUF, SPECIAL_FIM_MID, SPECIAL_FIM_PAD, SPECIAL_FIM_REP, SPECIAL_FIM_SEP,
    SPECIAL_COUNT,
};

#include "hash.h"

struct merge_rule {
    llama_token left, right, merged;
};

/* A token that is looked for in text before anything else: control, unknown and user-defined ones. */
struct marked_token {
    const char *text;           /* in gguf */
    uint32_t    length;         /* bytes, not 0 */
    llama_token id;
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

    struct marked_token       *marked;          /* [n_marked] sorted by text, then id */
    int32_t                    n_marked;
    int32_t                    marked_from[257];    /* those that begin with byte b: marked[marked_from[b] .. [b + 1]) */

    const struct pre          *pre;             /* BPE: how text is cut into words */
    struct merge_rule         *merges;          /* BPE: [n_merges], best first */
    int32_t                    n_merges;
    struct hash_index          ranks;           /* BPE: (left, right) -> index in merges */
    bool                       spans[256];      /* SPM: some token holds this byte with a space mark right behind it */

    struct piece_table * _Atomic pieces;        /* made when first asked for */
};

/* ---- the texts of all tokens (pieces.c) ---------------------------------------------------------------------------- */

struct piece {
    uint32_t    at, length;     /* in bytes; control tokens have texts as well */
    llama_token id;
    uint32_t    common;         /* leading bytes that it shares with the one before */
};

/* The pieces of a vocabulary in order of their bytes, so that a walk over all of them visits each beginning once. */
struct piece_table {
    struct piece *sorted;       /* [n_tokens] */
    uint32_t     *rank;         /* [n_tokens] where an id stands in `sorted` */
    unsigned char *bytes;
    uint32_t      longest;
};

/* The vocabulary's own table, made once; any number of threads may ask. NULL: out of memory. */
const struct piece_table *vocab_pieces(const struct llama_vocab *vocab);
void pieces_free(struct piece_table *table);

enum { ATTR_EOG = 1 << 15 };        /* ends generation; private, above the bits of enum llama_token_attr */

/* Bounds. The longest vocabulary known has some 300,000 tokens; marked tokens are compared with the text at every place
 * where they may begin, so their length bounds the time that a text can take. */
enum { VOCAB_MAX_TOKENS = 1 << 28, VOCAB_MAX_MARKED = 1024 };

/* A token's text as the file has it, ended by NUL. */
const char *vocab_text(const struct llama_vocab *vocab, llama_token id);
float       vocab_score(const struct llama_vocab *vocab, llama_token id);
bool        vocab_has(const struct llama_vocab *vocab, llama_token id);      /* is it an id of this vocabulary? */

/* The byte that a token text "<0x41>" stands for; -1: not of that form. */
int byte_of_token_text(const char *text);

/* Where ids go: written while they fit, counted always. */
struct token_sink {
    llama_token *ids;
    int64_t      capacity, count;
};
static inline void sink_put(struct token_sink *sink, llama_token id) {
    if (sink->count < sink->capacity) sink->ids[sink->count] = id;
    sink->count++;
}

/* ---- byte-level text (bpe.c): every byte is written as one printable character ----------------------------------- */

size_t byte_to_text(unsigned char byte, char text[2]);      /* UTF-8, returns 1 or 2 */
int    byte_of_code(uint32_t code);                         /* -1: no byte is written so */

/* Reads tokenizer.ggml.merges and tokenizer.ggml.pre. False after a line of log. */
bool bpe_load(struct llama_vocab *vocab);

struct merger;
/* The ids of a raw text. False: out of memory. */
bool bpe_tokenize(const struct llama_vocab *vocab, struct merger *merger, const char *text, size_t length,
    struct token_sink *sink);
/* Likewise; `space_prefix`: as if a space stood before it. */
bool spm_tokenize(const struct llama_vocab *vocab, struct merger *merger, const char *text, size_t length,
    bool space_prefix, struct token_sink *sink);

#define SPACE_MARK "\xe2\x96\x81"        /* U+2581, which stands for a space in SPM token texts */
enum { SPACE_MARK_BYTES = 3 };

#endif
