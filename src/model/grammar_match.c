/* Where in a grammar a text stands: all places at once, so nothing is tried and taken back, and no call of the grammar is a call
 * of ours. A step takes one character and follows what needs none, each place once. Texts of any depth and ambiguity take
 * memory up to the bounds below; what would pass one is not taken. */

#include <stdlib.h>
#include <string.h>

#include "grammar.h"

/* Nesting of 100,000 brackets fits. */
enum { MAX_PLACES = 1 << 18, MAX_FRAMES = 1 << 18, MAX_CALLS = 1 << 19, MAX_SEEN = 1 << 16 };
enum { FIRST_SURROGATE = 0xd800, LAST_SURROGATE = 0xdfff, LAST_CODE = 0x10ffff };

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* Makes room for one more in the list whose pointer lies at `list`. */
static bool room_for(void *list, uint32_t n, uint32_t *room, uint32_t most, size_t size) {
    if (n < *room) return true;
    const uint32_t wanted = *room ? *room*2 : 64;
    void *old;
    memcpy(&old, list, sizeof old);
    void *grown = wanted <= most ? realloc(old, wanted*size) : NULL;
    if (!grown) return false;
    memcpy(list, &grown, sizeof grown);
    *room = wanted;
    return true;
}
#define ROOM(m, list, most) room_for(&(m)->list, (m)->n_##list, &(m)->room_##list, most, sizeof *(m)->list)

/* ---- sets ------------------------------------------------------------------------------------------------------------ */

static uint64_t hash_of(struct place p) {
    const uint64_t h = ((uint64_t) p.node << 32 | p.frame)*0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* The slot of a place of this step, or the free one where it belongs. */
static uint64_t *slot_of(const struct matcher *m, struct place p) {
    const uint32_t mask = 2*m->room_seen - 1;
    for (uint32_t at = (uint32_t) hash_of(p) & mask;; at = (at + 1) & mask) {
        uint64_t *slot = m->slots + at;
        if (*slot >> 32 != m->stamp) return slot;
        const struct place other = m->seen[(uint32_t) *slot];
        if (other.node == p.node && other.frame == p.frame) return slot;
    }
}

static bool more_seen(struct matcher *m) {
    if (m->n_seen < m->room_seen) return true;
    if (!ROOM(m, seen, MAX_SEEN)) return false;
    uint64_t *slots = calloc(2*(size_t) m->room_seen, sizeof *slots);
    if (!slots) { m->room_seen /= 2; return false; }
    free(m->slots);
    m->slots = slots;
    for (uint32_t i = 0; i < m->n_seen; i++) *slot_of(m, m->seen[i]) = (uint64_t) m->stamp << 32 | i;
    return true;
}

static bool add(struct matcher *m, uint32_t node, uint32_t frame) {
    const struct place p = { node, frame };
    if (!more_seen(m)) return false;
    uint64_t *slot = slot_of(m, p);
    if (*slot >> 32 == m->stamp) return true;
    *slot = (uint64_t) m->stamp << 32 | m->n_seen;
    m->seen[m->n_seen++] = p;
    return true;
}

/* Stamps tell what belongs to this step; when they are used up the tables are emptied. */
static void begin_step(struct matcher *m) {
    m->n_seen = 0;
    if (++m->stamp) return;
    memset(m->slots, 0, 2*(size_t) m->room_seen*sizeof *m->slots);
    memset(m->entered, 0, m->grammar->n_rules*sizeof *m->entered);
    m->stamp = 1;
}

/* ---- following what needs no character ------------------------------------------------------------------------------- */

static bool call(struct matcher *m, uint32_t rule, uint32_t next, uint32_t caller) {
    uint64_t *entered = m->entered + rule;
    const bool again = *entered >> 32 == m->stamp;
    if (!again) {
        if (!ROOM(m, frames, MAX_FRAMES)) return false;
        m->frames[m->n_frames] = (struct frame) { 0, false };
        *entered = (uint64_t) m->stamp << 32 | m->n_frames++;
    }
    const uint32_t frame = (uint32_t) *entered;
    if (!ROOM(m, calls, MAX_CALLS)) return false;
    m->calls[m->n_calls] = (struct call) { next, caller, m->frames[frame].calls };
    m->frames[frame].calls = ++m->n_calls;
    if (!again) return add(m, m->grammar->starts[rule], frame);
    return !m->frames[frame].left || add(m, next, caller);      /* it was left before this caller came */
}

static bool leave(struct matcher *m, uint32_t frame, struct level *to) {
    if (frame == 0) to->ends = true;
    m->frames[frame].left = true;
    for (uint32_t c = m->frames[frame].calls; c; c = m->calls[c - 1].next) {
        if (!add(m, m->calls[c - 1].node, m->calls[c - 1].frame)) return false;
    }
    return true;
}

static bool follow(struct matcher *m, struct place p, struct level *to) {
    const struct grammar_node *node = m->grammar->nodes + p.node;
    switch ((enum grammar_op) node->op) {
        case GRAMMAR_CALL:   return call(m, node->at, p.node + 1, p.frame);
        case GRAMMAR_SPLIT:  return add(m, p.node + 1, p.frame) && add(m, node->at, p.frame);
        case GRAMMAR_JUMP:   return add(m, node->at, p.frame);
        case GRAMMAR_RETURN: return leave(m, p.frame, to);
        case GRAMMAR_CHARS:  break;
    }
    if (!ROOM(m, places, MAX_PLACES)) return false;
    m->places[m->n_places++] = p;
    to->n++;
    return true;
}

/* Makes a level of the places seen so far and of all that follow them. */
static bool close_level(struct matcher *m, struct level *to) {
    *to = (struct level) { .first = m->n_places };
    for (uint32_t i = 0; i < m->n_seen; i++) {
        if (!follow(m, m->seen[i], to)) return false;
    }
    to->n_frames = m->n_frames;
    to->n_calls  = m->n_calls;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

static bool takes(const struct grammar *g, uint32_t node, uint32_t low, uint32_t high) {
    if (g->nodes[node].n == 0) return false;    /* there may be no ranges at all */
    const struct code_range *r = g->ranges + g->nodes[node].at;
    uint32_t from = 0, n = g->nodes[node].n;
    while (n > 0) {                             /* the first range that does not end below low */
        const uint32_t half = n/2;
        if (r[from + half].last < low) from += half + 1, n -= half + 1;
        else                           n = half;
    }
    return from < g->nodes[node].n && r[from].first <= high;
}

bool matcher_may(const struct matcher *m, const struct level *from, uint32_t low, uint32_t high) {
    for (uint32_t i = from->first; i < from->first + from->n; i++) {
        if (takes(m->grammar, m->places[i].node, low, high)) return true;
    }
    return false;
}

/* Which of the first 63 places take the character, and in bit 63 whether another one does. */
static uint64_t takers(const struct matcher *m, const struct level *from, uint32_t code) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < from->n; i++) {
        if (takes(m->grammar, m->places[from->first + i].node, code, code)) set |= (uint64_t) 1 << (i < 63 ? i : 63);
    }
    return set;
}

/* The level after `code`, which the places in `set` take, and with the places of `also` unless that is NULL. */
static bool step(struct matcher *m, struct level *from, uint64_t set, uint32_t code, const struct level *also, struct level *to) {
    const struct level *below = also ? also : from;
    from->stepped = 0;
    m->n_places = below->first + below->n;
    m->n_frames = below->n_frames;
    m->n_calls  = below->n_calls;
    begin_step(m);
    for (uint32_t i = 0; i < from->n; i++) {
        const struct place p = m->places[from->first + i];
        if ((i < 63 ? set >> i & 1 : takes(m->grammar, p.node, code, code)) && !add(m, p.node + 1, p.frame)) return false;
    }
    for (uint32_t i = 0; also && i < also->n; i++) {
        const struct place p = m->places[also->first + i];
        if (!add(m, p.node, p.frame)) return false;
    }
    if (!close_level(m, to)) return false;
    to->ends = to->ends || (also && also->ends);
    from->stepped = set;
    return true;
}

/* Characters that the same places take lead to the same level, which often is there already. */
bool matcher_step(struct matcher *m, struct level *from, uint32_t code, struct level *to) {
    const uint64_t set = takers(m, from, code);
    if (!set) return false;
    if (set == from->stepped && !(set >> 63)) return true;
    return step(m, from, set, code, NULL, to);
}

bool matcher_step_beside(struct matcher *m, struct level *from, uint32_t code, const struct level *also, struct level *to) {
    const bool ok = step(m, from, takers(m, from, code), code, also, to);
    from->stepped = 0;
    return ok;
}

/* ---- the base -------------------------------------------------------------------------------------------------------- */

bool matcher_init(struct matcher *m, const struct grammar *g, struct level *base) {
    *m = (struct matcher) { .grammar = g, .entered = calloc(g->n_rules, sizeof *m->entered) };
    bool ok = m->entered && ROOM(m, frames, MAX_FRAMES) && more_seen(m);
    if (ok) {
        begin_step(m);
        m->frames[m->n_frames++] = (struct frame) { 0, false };
        ok = add(m, g->starts[g->root], 0) && close_level(m, base);
    }
    if (!ok) matcher_free(m);
    return ok;
}

static void *copied(const void *list, uint32_t room, size_t size) {
    void *copy = room ? malloc(room*size) : NULL;
    return copy ? memcpy(copy, list, room*size) : NULL;
}

bool matcher_copy(struct matcher *to, const struct matcher *from) {
    *to = *from;
    to->places  = copied(from->places, from->room_places, sizeof *to->places);
    to->frames  = copied(from->frames, from->room_frames, sizeof *to->frames);
    to->calls   = copied(from->calls,  from->room_calls,  sizeof *to->calls);
    to->seen    = copied(from->seen,   from->room_seen,   sizeof *to->seen);
    to->slots   = copied(from->slots,  2*from->room_seen, sizeof *to->slots);
    to->entered = copied(from->entered, from->grammar->n_rules, sizeof *to->entered);
    const bool ok = (to->places || !to->room_places) && to->frames && (to->calls || !to->room_calls) && to->seen && to->slots && to->entered;
    if (!ok) matcher_free(to);
    return ok;
}

void matcher_free(struct matcher *m) {
    free(m->places);
    free(m->seen);
    free(m->frames);
    free(m->calls);
    free(m->slots);
    free(m->entered);
    *m = (struct matcher) { 0 };
}

/* Frames that the level's places lead back to keep their order and move together. calls[].next of a dead frame's calls are
 * never read. Without memory for the lists of what lives, nothing is given back. */
static void compact(struct matcher *m, struct level *level) {
    uint32_t *number = malloc((2*(size_t) level->n_frames + level->n_calls)*sizeof *number);
    if (!number) return;
    uint32_t *stack = number + level->n_frames, *call_number = stack + level->n_frames, n = 0, frames = 0, calls = 0;
    memset(number, 0, level->n_frames*sizeof *number);
    number[0] = 1;
    for (uint32_t i = 0; i < level->n; i++) {
        const uint32_t f = m->places[i].frame;
        if (!number[f]) number[f] = 1, stack[n++] = f;
    }
    memset(call_number, 0, level->n_calls*sizeof *call_number);
    while (n) {
        for (uint32_t c = m->frames[stack[--n]].calls; c; c = m->calls[c - 1].next) {
            const uint32_t f = m->calls[c - 1].frame;
            call_number[c - 1] = 1;
            if (!number[f]) number[f] = 1, stack[n++] = f;
        }
    }
    for (uint32_t c = 0; c < level->n_calls; c++) if (call_number[c]) call_number[c] = ++calls;
    for (uint32_t f = 0; f < level->n_frames; f++) if (number[f]) number[f] = ++frames;
    for (uint32_t c = 0; c < level->n_calls; c++) {
        if (!call_number[c]) continue;
        const struct call old = m->calls[c];
        m->calls[call_number[c] - 1] = (struct call) { old.node, number[old.frame] - 1, old.next ? call_number[old.next - 1] : 0 };
    }
    for (uint32_t f = 0; f < level->n_frames; f++) {
        if (!number[f]) continue;
        const struct frame old = m->frames[f];
        m->frames[number[f] - 1] = (struct frame) { old.calls ? call_number[old.calls - 1] : 0, old.left };
    }
    for (uint32_t i = 0; i < level->n; i++) m->places[i].frame = number[m->places[i].frame] - 1;
    level->n_frames = frames;
    level->n_calls  = calls;
    free(number);
}

void matcher_commit(struct matcher *m, struct level *level) {
    if (level->n) memmove(m->places, m->places + level->first, level->n*sizeof *m->places);
    level->first   = 0;
    level->stepped = 0;
    compact(m, level);
    m->n_places = level->n;
    m->n_frames = level->n_frames;
    m->n_calls  = level->n_calls;
}

/* ---- UTF-8 ----------------------------------------------------------------------------------------------------------- */

struct code_range utf8_range(const struct utf8_part *part) {
    const uint32_t low = part->code << 6*part->left, high = low | ((1u << 6*part->left) - 1);
    return (struct code_range) { low < part->least ? part->least : low, high > LAST_CODE ? LAST_CODE : high };
}

/* RFC 3629. A first byte that no character can begin with leaves an empty range. */
int utf8_push(struct utf8_part *part, unsigned char byte) {
    static const uint32_t least[4] = { 0, 0x80, 0x800, 0x10000 };
    if (part->left == 0) {
        const uint8_t n = byte < 0x80 ? 0 : byte < 0xc0 ? 4 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : byte < 0xf8 ? 3 : 4;
        if (n > 3) return -1;
        *part = (struct utf8_part) { n ? byte & (0x3fu >> n) : byte, least[n], n };
    } else {
        if ((byte & 0xc0) != 0x80) return -1;
        part->code = part->code << 6 | (byte & 0x3fu);
        part->left--;
    }
    const struct code_range r = utf8_range(part);
    if (r.first > r.last || (r.first >= FIRST_SURROGATE && r.last <= LAST_SURROGATE)) return -1;
    return part->left == 0;
}
