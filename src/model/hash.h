#ifndef MODEL_HASH_H
#define MODEL_HASH_H
/* A hash table over indices that are kept elsewhere: open addressing, a power of two of slots, at most half of them taken.
 *
 *   slot: 0 empty, or  [ upper bits of the hash | index + 1 ]  with the boundary where the table's size has it,
 *
 * so that most wrong slots are told without a look at the entry. Texts come from files, so a run of slots that is longer
 * than any honest hash makes it is an error when filling, and looking up ends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_MAX_PROBES = 1024 };

struct hash_index {
    uint32_t *slots;
    uint32_t  mask;         /* slots - 1 */
};

/* Room for n indices. False: out of memory, or n is above 2^30. */
static inline bool hash_init(struct hash_index *index, size_t n) {
    size_t slots = 16;
    if (n > (size_t) 1 << 30) return false;
    while (slots < 2*n) slots *= 2;
    index->mask  = (uint32_t) (slots - 1);
    index->slots = calloc(slots, sizeof *index->slots);
    return index->slots != NULL;
}

/* Has the line of memory fetched that a look-up of this hash begins with. Filling and searching large tables is mostly
 * waiting for memory; touching some dozen places before looking at the first lets the waits overlap. */
static inline void hash_touch(const struct hash_index *index, uint64_t hash) {
    (void) *(const volatile uint32_t *) &index->slots[(uint32_t) hash & index->mask];
}

struct hash_probe { uint32_t at, tag, n; };

static inline struct hash_probe hash_begin(const struct hash_index *index, uint64_t hash) {
    return (struct hash_probe) { (uint32_t) hash & index->mask, (uint32_t) (hash >> 32) & ~index->mask, 0 };
}

/* The next index whose entry may be the one sought; -1: there is none. */
static inline int64_t hash_next(const struct hash_index *index, struct hash_probe *p) {
    for (uint32_t slot; p->n < HASH_MAX_PROBES && (slot = index->slots[p->at]) != 0; ) {
        p->at = (p->at + 1) & index->mask;
        p->n++;
        if ((slot & ~index->mask) == p->tag) return (int64_t) (slot & index->mask) - 1;
    }
    return -1;
}

/* After hash_next gave -1: puts the index where the search ended. False: too many entries hash alike. */
static inline bool hash_put(struct hash_index *index, struct hash_probe p, size_t i) {
    if (p.n >= HASH_MAX_PROBES) return false;
    index->slots[p.at] = p.tag | (uint32_t) (i + 1);
    return true;
}

static inline uint64_t hash_mix(uint64_t h, uint64_t x) {
    h = (h ^ x)*0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static inline uint64_t hash_bytes(const char *text, size_t n) {
    uint64_t h = n, x;
    for (; n >= 8; text += 8, n -= 8) {
        memcpy(&x, text, 8);
        h = hash_mix(h, x);
    }
    x = 0;
    memcpy(&x, text, n);
    return hash_mix(hash_mix(h, x), h);
}

#endif
