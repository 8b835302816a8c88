/* added.h - added tokens: strings that become one token, found before the text is split.
 *
 * There are two sets. One is searched in the original text. The other (`normalized`) is searched in
 * the output of the normaliser. At each position the longest match wins. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_ADDED_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct {
    int32_t id;
    bool single_word;    /* only if no word character is adjacent */
    bool lstrip, rstrip; /* the token also takes the white space before it, after it */
    bool special;
} added_token;

typedef struct {
    struct added_node *nodes; /* a trie; node 0 is the root */
    size_t n_nodes, cap_nodes;
    added_token *tokens;
    size_t n, cap;
    bool starts[256]; /* whether a content starts with this byte */
} added_set;

/* Adds a token with this @content. SNAP_E_INPUT if it is empty; SNAP_E_NOMEM. */
snap_status added_insert(added_set *set, const char *content, size_t n, added_token token,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The first token at or after @from; NULL if there is none. [*start, *end) is its content. */
const added_token *added_find(const added_set *set, const char *s, size_t n, size_t from,
                              size_t *start, size_t *end);

void added_release(added_set *set);

#endif
