#include "generator/local/tokenizer/bpe.h"

#include <stdbool.h>
#include <stdlib.h>

#include "generator/local/tokenizer/mix.h"

/* A symbol and its merge with the right neighbour. Symbols form a list, because merged symbols are
 * removed. */
struct bpe_symbol {
    int32_t id;
    int32_t made;  /* the token that the merge makes */
    uint32_t rank; /* rank of the merge; NO_MERGE = the two can't be merged */
    uint32_t left, right;
};

#define NO_MERGE  UINT32_MAX
#define NO_SYMBOL UINT32_MAX

/* ---- the table ---- */

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static bpe_merge *slot_of(const bpe *b, uint64_t pair) {
    size_t mask = b->n_slots - 1, i = mix_u64(mix_u64(pair)) & mask;
    while (b->slots[i].made >= 0 && b->slots[i].pair != pair)
        i = (i + 1) & mask;
    return &b->slots[i];
}

snap_status bpe_reserve(bpe *b, size_t merges, snap_err *err) {
    bpe old = *b;
    size_t n = 16;
    while (n < 2 * (b->used + merges))
        n *= 2;
    if (n <= b->n_slots)
        return SNAP_OK;
    b->slots = malloc(n * sizeof *b->slots);
    if (!b->slots) {
        *b = old;
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu merges", merges);
    }
    b->n_slots = n;
    for (size_t i = 0; i < n; i++)
        b->slots[i].made = -1;
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.slots[i].made >= 0)
            *slot_of(b, old.slots[i].pair) = old.slots[i];
    free(old.slots);
    return SNAP_OK;
}

void bpe_add(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t made) {
    uint64_t pair = pair_of(left, right);
    bpe_merge *m = slot_of(b, pair);
    b->used += m->made < 0;
    *m = (bpe_merge){.pair = pair, .rank = rank, .made = made};
}

void bpe_release(bpe *b) {
    free(b->slots);
    *b = (bpe){0};
}

/* ---- the heap: rank << 32 | position of the left symbol, smallest first ---- */

static void heap_push(uint64_t *heap, size_t *n, uint64_t x) {
    size_t i = (*n)++;
    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n) {
    uint64_t top = heap[0], last = heap[--*n];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < *n) {
        child += child + 1 < *n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- encoding ---- */

static bool work_reserve(bpe_work *w, size_t n) {
    if (n <= w->cap)
        return true;
    bpe_work_release(w);
    if (n >= NO_SYMBOL / 4)
        return false;
    size_t cap = n < 256 ? 256 : 2 * n;
    /* besides the n - 1 initial candidates, every merge adds at most two */
    w->heap = malloc(3 * cap * sizeof *w->heap);
    w->symbols = malloc(cap * sizeof *w->symbols);
    if (!w->heap || !w->symbols) {
        bpe_work_release(w);
        return false;
    }
    w->cap = cap;
    return true;
}

void bpe_work_release(bpe_work *w) {
    free(w->heap);
    free(w->symbols);
    *w = (bpe_work){0};
}

/* Looks up the merge of @at with its right neighbour and pushes it on the heap. */
static void push_candidate(const bpe *b, struct bpe_symbol *s, uint32_t at, uint64_t *heap,
                           size_t *n_heap) {
    s[at].rank = NO_MERGE;
    if (s[at].right == NO_SYMBOL)
        return;
    const bpe_merge *m = slot_of(b, pair_of(s[at].id, s[s[at].right].id));
    if (m->made < 0)
        return;
    s[at].rank = m->rank;
    s[at].made = m->made;
    heap_push(heap, n_heap, (uint64_t)m->rank << 32 | at);
}

static void merge(struct bpe_symbol *s, uint32_t at) {
    uint32_t gone = s[at].right;
    s[at].id = s[at].made;
    s[at].right = s[gone].right;
    s[gone].rank = NO_MERGE; /* outdates the candidate of the removed symbol */
    if (s[at].right != NO_SYMBOL)
        s[s[at].right].left = at;
}

snap_status bpe_encode(const bpe *b, bpe_work *w, int32_t *ids, size_t *n, snap_err *err) {
    if (*n < 2 || !b->used)
        return SNAP_OK;
    if (!work_reserve(w, *n))
        return err_set(err, SNAP_E_NOMEM, "out of memory for a piece of %zu symbols", *n);
    struct bpe_symbol *s = w->symbols;
    size_t n_heap = 0, out = 0;
    for (uint32_t i = 0; i < *n; i++)
        s[i] = (struct bpe_symbol){.id = ids[i], .left = i - 1, .right = i + 1};
    s[*n - 1].right = NO_SYMBOL;
    for (uint32_t i = 0; i < *n; i++)
        push_candidate(b, s, i, w->heap, &n_heap);
    while (n_heap) {
        uint64_t top = heap_pop(w->heap, &n_heap);
        uint32_t at = (uint32_t)top;
        if (s[at].rank != top >> 32)
            continue;
        merge(s, at);
        push_candidate(b, s, at, w->heap, &n_heap);
        if (s[at].left != NO_SYMBOL)
            push_candidate(b, s, s[at].left, w->heap, &n_heap);
    }
    for (uint32_t i = 0; i != NO_SYMBOL; i = s[i].right)
        ids[out++] = s[i].id;
    *n = out;
    return SNAP_OK;
}
