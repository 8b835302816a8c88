/* added.h - added tokens: contents that are found in the text before anything else cuts it.
 *
 * Two sets: those sought in the text as given, and those (`normalized`) sought in what the normaliser
 * made of it. At each place the longest wins. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_ADDED_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    int32_t id;
    bool single_word;    /* only where no word character stands beside it */
    bool lstrip, rstrip; /* takes the white space beside it along */
    bool special;
} added_token;

typedef struct {
    struct added_node *nodes; /* a trie; node 0 is the root */
    size_t n_nodes, cap_nodes;
    added_token *tokens;
    size_t n, cap;
    bool starts[256]; /* first bytes */
} added_set;

/* Adds a token under @content (not empty). SNAP_E_INPUT for an empty one; SNAP_E_NOMEM. */
snap_status added_insert(added_set *set, const char *content, size_t n, added_token token,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The first token at or after @from; NULL where there is none. [*start, *end) is its content. */
const added_token *added_find(const added_set *set, const char *s, size_t n, size_t from,
                              size_t *start, size_t *end);

void added_release(added_set *set);

#endif
