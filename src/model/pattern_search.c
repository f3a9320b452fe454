/* Searching: all ways through the program at once, a byte at a time, in the order in which the expression prefers them
 * (Thompson 1968, "Regular expression search algorithm"; Pike's marks for groups as described by Cox 2009, "Regular expression
 * matching: the virtual machine approach"). A way waits before the node that it comes to next: what that node is may depend on
 * the byte that follows, or on there being none. */

#include <stdlib.h>
#include <string.h>

#include "pattern.h"

enum { NO_BYTE = -1 };

/* Ways, best first: the node of each and its marks. */
struct ways { uint16_t *node; size_t *marks, n; };

/* What is left to do while a node's followers are visited: go to a node, or give a mark its value back. */
struct task { uint16_t node; bool restores; size_t value; };

struct search {
    const struct pattern *p;
    struct ways  now, next;             /* of at most n_nodes + 1 and n_nodes ways */
    uint32_t    *visited, visit;        /* [n_nodes]: when a node was seen last */
    struct task *tasks;                 /* [2*n_nodes + 1] */
    size_t      *marks, *found, *ended; /* of the way in hand; of the best match so far; of the last answer */
    size_t       position;
    int          before;                /* the byte before this place */
    bool         has_found;
};

static size_t n_marks(const struct pattern *p) { return 2*p->n_groups; }
static bool   in_set(const struct byte_set *set, int byte) { return set->bits[byte >> 5] >> (byte & 31) & 1; }
static bool   in_word(int byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '_';
}

static bool ways_init(struct ways *w, size_t n, size_t marks) {
    w->node  = malloc(n*sizeof *w->node);
    w->marks = malloc(n*marks*sizeof *w->marks);
    return w->node && w->marks;
}
static void ways_free(struct ways *w) { free(w->node), free(w->marks); }
static void ways_add(struct ways *w, size_t node, const size_t *marks, size_t n) {
    w->node[w->n] = (uint16_t) node;
    memcpy(w->marks + n*w->n++, marks, n*sizeof *marks);
}

struct search *search_new(const struct pattern *p) {
    struct search *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->p = p;
    s->visited = calloc(p->n_nodes, sizeof *s->visited);
    s->tasks   = malloc((2*p->n_nodes + 1)*sizeof *s->tasks);
    s->marks   = malloc(3*n_marks(p)*sizeof *s->marks);
    if (!ways_init(&s->now, p->n_nodes + 1, n_marks(p)) || !ways_init(&s->next, p->n_nodes + 1, n_marks(p)) || !s->visited || !s->tasks || !s->marks) {
        search_free(s);
        return NULL;
    }
    s->found = s->marks + n_marks(p);
    s->ended = s->found + n_marks(p);
    search_reset(s);
    return s;
}

void search_free(struct search *s) {
    if (!s) return;
    ways_free(&s->now), ways_free(&s->next);
    free(s->visited), free(s->tasks), free(s->marks);
    free(s);
}

void search_reset(struct search *s) {
    s->now.n = s->position = 0;
    s->before = NO_BYTE;
    s->has_found = false;
}

void search_copy(struct search *to, const struct search *from) {
    const size_t n = n_marks(from->p);
    memcpy(to->now.node, from->now.node, from->now.n*sizeof *to->now.node);
    memcpy(to->now.marks, from->now.marks, from->now.n*n*sizeof *to->now.marks);
    memcpy(to->found, from->found, n*sizeof *to->found);
    to->now.n     = from->now.n;
    to->position  = from->position;
    to->before    = from->before;
    to->has_found = from->has_found;
}

/* May a way pass this node without a byte? */
static bool holds(const struct search *s, const struct pattern_node *i, int byte) {
    if (i->op == PATTERN_BEGIN) return s->position == 0;
    if (i->op == PATTERN_END)   return byte == NO_BYTE;
    return (in_word(s->before) != in_word(byte)) == (i->arg != 0);
}

/* Follows a way, whose marks are in s->marks, to all nodes before the byte that nothing better has come to, and over the byte into s->next.
 * True: it ends in a match, whose marks are then in s->marks. */
static bool follow(struct search *s, size_t node, int byte) {
    size_t n = 0;
    s->tasks[n++] = (struct task) { (uint16_t) node, false, 0 };
    while (n) {
        const struct task t = s->tasks[--n];
        if (t.restores) { s->marks[t.node] = t.value; continue; }
        if (s->visited[t.node] == s->visit) continue;
        s->visited[t.node] = s->visit;
        const struct pattern_node *i = s->p->nodes + t.node;
        const uint16_t following = (uint16_t) (t.node + 1), away = (uint16_t) (t.node + i->to);
        switch (i->op) {
            case PATTERN_MATCH: return true;
            case PATTERN_BYTE:
                if (byte != NO_BYTE && in_set(s->p->sets + i->arg, byte)) ways_add(&s->next, following, s->marks, n_marks(s->p));
                break;
            case PATTERN_SPLIT:
                s->tasks[n++] = (struct task) { i->arg ? following : away, false, 0 };
                s->tasks[n++] = (struct task) { i->arg ? away : following, false, 0 };
                break;
            case PATTERN_JUMP:
                s->tasks[n++] = (struct task) { away, false, 0 };
                break;
            case PATTERN_SAVE:
                s->tasks[n++] = (struct task) { i->arg, true, s->marks[i->arg] };
                s->tasks[n++] = (struct task) { following, false, 0 };
                s->marks[i->arg] = s->position;
                break;
            default:
                if (holds(s, i, byte)) s->tasks[n++] = (struct task) { following, false, 0 };
        }
    }
    return false;
}

/* All ways over a byte, or to the end of the text. True: one matched; those that are worse than it are dropped. */
static bool step(struct search *s, int byte) {
    const size_t n = n_marks(s->p);
    if (++s->visit == 0) memset(s->visited, 0, s->p->n_nodes*sizeof *s->visited), s->visit = 1;
    s->next.n = 0;
    for (size_t i = 0; i < s->now.n; i++) {
        memcpy(s->marks, s->now.marks + n*i, n*sizeof *s->marks);
        if (follow(s, s->now.node[i], byte)) return true;
    }
    if (s->has_found) return false;                     /* a match that begins later is no better */
    for (size_t i = 0; i < n; i++) s->marks[i] = NO_MARK;
    return follow(s, 0, byte);
}

const size_t *search_feed(struct search *s, const void *bytes, size_t n) {
    const size_t size = n_marks(s->p)*sizeof *s->marks;
    for (size_t i = 0; i < n; i++) {
        const int byte = ((const unsigned char *) bytes)[i];
        if (step(s, byte)) {
            memcpy(s->found, s->marks, size);
            s->has_found = true;
        }
        const struct ways passed = s->now;
        s->now    = s->next;
        s->next   = passed;
        s->before = byte;
        s->position++;
    }
    if (step(s, NO_BYTE)) return memcpy(s->ended, s->marks, size);
    return s->has_found ? memcpy(s->ended, s->found, size) : NULL;
}

int pattern_occurs(const struct pattern *p, const char *text) {
    struct search *s = search_new(p);
    if (!s) return -1;
    const bool found = search_feed(s, text, strlen(text)) != NULL;
    search_free(s);
    return found;
}
