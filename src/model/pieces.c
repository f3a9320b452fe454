/* The texts of all tokens in order of their bytes: what masking by text walks over. One table for each vocabulary, made when it
 * is first asked for; of two threads that make it at once, the second throws its own away. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "vocab.h"

/* A piece with its first bytes as one number, so that most comparisons are one of numbers. */
struct sorting { uint64_t head; const unsigned char *bytes; struct piece piece; };

static int by_bytes(const void *a, const void *b) {
    const struct sorting *x = a, *y = b;
    if (x->head != y->head) return x->head < y->head ? -1 : 1;
    const uint32_t n = x->piece.length < y->piece.length ? x->piece.length : y->piece.length;
    const int order = memcmp(x->bytes, y->bytes, n);
    if (order) return order;
    if (x->piece.length != y->piece.length) return x->piece.length < y->piece.length ? -1 : 1;
    return x->piece.id < y->piece.id ? -1 : 1;
}

static uint32_t common(const struct sorting *a, const struct sorting *b) {
    const uint32_t n = a->piece.length < b->piece.length ? a->piece.length : b->piece.length;
    uint32_t i = 0;
    while (i < n && a->bytes[i] == b->bytes[i]) i++;
    return i;
}

/* Reads the pieces of all tokens, one after another. */
static bool read_pieces(const struct llama_vocab *v, struct piece_table *t, struct sorting *list) {
    size_t room = 0, used = 0;
    for (llama_token id = 0; id < v->n_tokens; id++) {
        int32_t n = -1;
        while ((n = room - used > INT32_MAX/2 ? -1 : llama_token_to_piece(v, id, (char *) t->bytes + used, (int32_t) (room - used), 0, true)) < 0) {
            const size_t more = (used + (size_t) -(int64_t) n)*2 + 256;
            unsigned char *grown = more <= UINT32_MAX/2 ? realloc(t->bytes, more) : NULL;
            if (!grown) return false;
            t->bytes = grown;
            room = more;
        }
        list[id].piece = (struct piece) { (uint32_t) used, (uint32_t) n, id, 0 };
        used += (size_t) n;
        if ((uint32_t) n > t->longest) t->longest = (uint32_t) n;
    }
    return true;
}

static void sort_pieces(const struct llama_vocab *v, struct piece_table *t, struct sorting *list) {
    for (int32_t i = 0; i < v->n_tokens; i++) {
        list[i].bytes = t->bytes + list[i].piece.at;
        list[i].head  = 0;
        for (uint32_t k = 0; k < 8; k++) list[i].head = list[i].head << 8 | (k < list[i].piece.length ? list[i].bytes[k] : 0);
    }
    qsort(list, (size_t) v->n_tokens, sizeof *list, by_bytes);
    for (int32_t i = 0; i < v->n_tokens; i++) {
        t->sorted[i] = list[i].piece;
        t->sorted[i].common = i ? common(list + i - 1, list + i) : 0;
        t->rank[list[i].piece.id] = (uint32_t) i;
    }
}

static struct piece_table *pieces_new(const struct llama_vocab *v) {
    const size_t n = (size_t) v->n_tokens + 1;
    struct piece_table *t = calloc(1, sizeof *t);
    struct sorting *list = calloc(n, sizeof *list);
    if (t) {
        t->bytes  = malloc(1);
        t->sorted = malloc(n*sizeof *t->sorted);
        t->rank   = malloc(n*sizeof *t->rank);
    }
    const bool ok = t && list && t->bytes && t->sorted && t->rank && read_pieces(v, t, list);
    if (ok) sort_pieces(v, t, list);
    free(list);
    if (ok) return t;
    pieces_free(t);
    return NULL;
}

const struct piece_table *vocab_pieces(const struct llama_vocab *vocab) {
    struct llama_vocab *v = (struct llama_vocab *) (uintptr_t) vocab;
    struct piece_table *there = atomic_load(&v->pieces);
    if (there) return there;
    struct piece_table *made = pieces_new(vocab);
    if (!made || atomic_compare_exchange_strong(&v->pieces, &there, made)) return made;
    pieces_free(made);
    return there;
}

void pieces_free(struct piece_table *table) {
    if (!table) return;
    free(table->sorted);
    free(table->rank);
    free(table->bytes);
    free(table);
}
