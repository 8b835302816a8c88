/* bpe.h - byte-pair encoding: adjacent tokens are merged, the pair with the lowest rank first, of
 * equal ranks the leftmost.
 *
 * Candidate merges are in a heap, whose entries may be outdated. So a piece of n symbols takes
 * O(n log n) time. This bound matters because in text without word boundaries a piece can have any
 * length. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_BPE_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    int32_t made; /* the token that the pair becomes; -1: the slot is empty */
} bpe_merge;

typedef struct {
    bpe_merge *slots; /* hash table with open addressing; n_slots is a power of two */
    size_t n_slots, used;
} bpe;

/* Working memory of one thread. Grows with the longest piece. */
typedef struct {
    uint64_t *heap;
    struct bpe_symbol *symbols;
    size_t cap;
} bpe_work;

/* Makes sure that @merges more merges fit. */
snap_status bpe_reserve(bpe *b, size_t merges, snap_err *err) SNAP_CHECK_RESULT;

/* Adds a merge. If the pair already has a merge, the new one replaces it. bpe_reserve() must have
 * been called. */
void bpe_add(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t made);
void bpe_release(bpe *b);

/* Merges ids[0..*n) in place and sets *n to the remaining number. SNAP_E_NOMEM. */
snap_status bpe_encode(const bpe *b, bpe_work *w, int32_t *ids, size_t *n,
                       snap_err *err) SNAP_CHECK_RESULT;
void bpe_work_release(bpe_work *w);

#endif
