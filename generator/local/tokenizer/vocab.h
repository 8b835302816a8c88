/* vocab.h - the mapping between a tokenizer's ids and the contents of its tokens, in both
 * directions.
 *
 * Contents are spelled as in tokenizer.json: byte-level tokens in their printable alphabet, to
 * which those of tiktoken.model are converted. An added token may repeat an id of the model or have
 * a new one. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_VOCAB_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
    VOCAB_MAX_ID = 1 << 21
}; /* ids from this on are refused; the memory grows with the greatest id */

typedef struct {
    const char *s; /* NUL-terminated, owned by the vocabulary; NULL: no token has this id */
    uint32_t n;    /* bytes; the content may contain NULs */
    bool special;
} vocab_token;

typedef struct {
    arena mem;
    vocab_token *tokens; /* by id */
    int32_t n, cap;      /* ids below n may be in use */
    int32_t *slots;      /* hash table with open addressing: id + 1, 0 = empty */
    size_t n_slots, used;
} vocab;

/* Adds a token. SNAP_E_INPUT for an id that is out of range or has another content, and for a
 * content that has another id. The same pair may be added twice; the token is special if either
 * was. SNAP_E_NOMEM. */
snap_status vocab_add(vocab *v, int64_t id, const char *s, size_t n, bool special,
                      snap_err *err) SNAP_CHECK_RESULT;

/* The id of a content; -1 if there is none. */
int32_t vocab_find(const vocab *v, const char *s, size_t n);

/* The token of an id; NULL if there is none. */
const vocab_token *vocab_at(const vocab *v, int32_t id);

void vocab_release(vocab *v);

#endif
