/* split.h - the pre-tokenizer: splits a text into pieces. Byte-pair encoding merges only within a
 * piece.
 *
 * It is a chain of steps. Each step splits or rewrites every piece of the previous step as if it
 * were a text of its own (except for `first_only`), so a look-ahead can't see beyond the piece.
 * The behaviours are those of Hugging Face's tokenizers; they say what is done with a match and
 * with the text between two matches (a gap). */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_SPLIT_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_SPLIT_H

#include "base/buf.h"
#include "generator/local/tokenizer/regex.h"

enum { SPLIT_STEPS = 16 };

typedef enum {
    SPLIT_ISOLATED,   /* each match and each gap is a piece */
    SPLIT_REMOVED,    /* only gaps are pieces */
    SPLIT_CONTIGUOUS, /* adjacent matches are one piece */
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
} split_behavior;

typedef enum {
    SPLIT_CUT,    /* splits by a regular expression */
    SPLIT_PREFIX, /* with `spaces`, replaces every space by `replacement`; with `prefix`, puts
                     `replacement` before a piece that does not start with it */
} split_kind;

typedef struct {
    split_kind kind;
    regex *re; /* SPLIT_CUT; owned */
    split_behavior behavior;
    bool invert; /* swaps matches and gaps */
    char replacement[8];
    bool prefix, first_only,
        spaces; /* SPLIT_PREFIX; first_only: `prefix` is for the first piece of a text only */
} split_step;

typedef struct {
    split_step steps[SPLIT_STEPS];
    int n;
} splitter;

/* Working memory of one thread. `text` has a buffer for each step, which holds a rewritten piece or
 * its shadow (unicode_age.h). */
typedef struct {
    regex_work *re;
    buf text[SPLIT_STEPS];
} split_work;

/* Receives one piece, which is never empty and valid during the call only. */
typedef snap_status (*split_fn)(void *ctx, const char *s, size_t n, snap_err *err);

/* Splits well-formed UTF-8 and passes the pieces to @fn in order. @first: @s is the beginning of
 * the text. Returns the errors of regex_find() and of @fn, and SNAP_E_NOMEM. */
snap_status split_text(const splitter *sp, split_work *w, const char *s, size_t n, bool first,
                       split_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

void splitter_release(splitter *sp);
void split_work_release(split_work *w); /* except its `re`, which is borrowed */

#endif
