/* A list of symbols and a binary heap of candidates. A candidate is stale when one of its two symbols has changed since;
 * symbols only grow, so their lengths tell. */

#include "merge.h"

bool merger_begin(struct merger *m, const char *text, size_t n) {
    if (n > (size_t) 1 << 30) return false;
    if (n > m->capacity) {
        const size_t capacity = n < 64 ? 64 : n;
        struct symbol *symbols = realloc(m->symbols, capacity*sizeof *symbols);
        if (symbols) m->symbols = symbols;
        struct candidate *heap = realloc(m->heap, 2*capacity*sizeof *heap);
        if (heap) m->heap = heap;
        if (!symbols || !heap) return false;
        m->capacity = capacity;
    }
    m->text = text;
    m->n_symbols = m->n_heap = 0;
    return true;
}

bool merger_buffer(struct merger *m, size_t n) {
    if (n <= m->buffer_size) return true;
    char *buffer = realloc(m->buffer, n);
    if (!buffer) return false;
    m->buffer = buffer;
    m->buffer_size = n;
    return true;
}

void merger_free(struct merger *m) {
    free(m->symbols);
    free(m->heap);
    free(m->buffer);
}

static bool before(const struct candidate *a, const struct candidate *b) {
    return a->priority != b->priority ? a->priority < b->priority : a->left < b->left;
}

static void push(struct merger *m, struct candidate c) {
    size_t i = m->n_heap++;
    for (size_t parent; i && before(&c, &m->heap[parent = (i - 1)/2]); i = parent) m->heap[i] = m->heap[parent];
    m->heap[i] = c;
}

static struct candidate pop(struct merger *m) {
    const struct candidate top = m->heap[0], c = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2*i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && before(&m->heap[child + 1], &m->heap[child])) child++;
        if (!before(&m->heap[child], &c)) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = c;
    return top;
}

static void consider(struct merger *m, uint32_t left, merge_rule_of rule) {
    if (left == MERGE_NONE || m->symbols[left].next == MERGE_NONE) return;
    const struct symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    struct candidate c = { .left = left, .length = a->length + b->length };
    if (rule(m, a, b, &c)) push(m, c);
}

void merger_run(struct merger *m, merge_rule_of rule) {
    if (m->n_symbols == 0) return;
    m->symbols[m->n_symbols - 1].next = MERGE_NONE;
    for (uint32_t i = 0; i < m->n_symbols; i++) consider(m, i, rule);
    while (m->n_heap) {
        const struct candidate c = pop(m);
        struct symbol *left = &m->symbols[c.left];
        if (left->length == 0 || left->next == MERGE_NONE) continue;
        struct symbol *right = &m->symbols[left->next];
        if (left->length + right->length != c.length) continue;
        left->length = c.length;
        left->id     = c.id;
        left->next   = right->next;
        right->length = 0;
        if (left->next != MERGE_NONE) m->symbols[left->next].previous = c.left;
        consider(m, left->previous, rule);
        consider(m, c.left, rule);
    }
}

static void emit_bytes(const struct merger *m, const struct symbol *s, struct token_sink *sink) {
    const llama_token unknown = m->vocab->special[SPECIAL_UNK];
    for (uint32_t i = 0; i < s->length; i++) {
        const llama_token id = m->vocab->byte_id[(unsigned char) m->text[s->start + i]];
        if (id >= 0)           sink_put(sink, id);
        else if (unknown >= 0) sink_put(sink, unknown);
    }
}

void merger_emit(const struct merger *m, struct token_sink *sink) {
    for (uint32_t i = m->n_symbols ? 0 : MERGE_NONE; i != MERGE_NONE; i = m->symbols[i].next) {
        if (m->symbols[i].id >= 0) sink_put(sink, m->symbols[i].id);
        else                       emit_bytes(m, &m->symbols[i], sink);
    }
}
