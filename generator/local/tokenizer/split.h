/* split.h - the pre-tokenizer: cuts a text into the pieces that byte-pair encoding may not cross.
 *
 * A chain of steps, each cutting every piece of the one before, which it sees as a text of its own (so
 * a look-ahead ends at the piece). The behaviours are those of Hugging Face's tokenizers: what becomes
 * of a match and of the text between two. */
#ifndef SNAPMLA_GENERATOR_LOCAL_TOKENIZER_SPLIT_H
#define SNAPMLA_GENERATOR_LOCAL_TOKENIZER_SPLIT_H

#include "base/buf.h"
#include "generator/local/tokenizer/regex.h"

enum { SPLIT_STEPS = 16 };

typedef enum {
    SPLIT_ISOLATED,   /* match and gap are pieces */
    SPLIT_REMOVED,    /* gaps are pieces */
    SPLIT_CONTIGUOUS, /* adjacent matches are one piece */
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
} split_behavior;

typedef enum {
    SPLIT_CUT,    /* by a regular expression */
    SPLIT_PREFIX, /* puts `replacement` before a piece that does not start with it; with `spaces`,
                     replaces every space by it first */
} split_kind;

typedef struct {
    split_kind kind;
    regex *re; /* SPLIT_CUT; owned */
    split_behavior behavior;
    bool invert; /* the gaps are the matches */
    char replacement[8];
    bool prefix, first_only,
        spaces; /* SPLIT_PREFIX; first_only: in front of a text's first piece */
} split_step;

typedef struct {
    split_step steps[SPLIT_STEPS];
    int n;
} splitter;

/* One thread's memory: the rewritten text of each step. */
typedef struct {
    regex_work *re;
    buf text[SPLIT_STEPS];
} split_work;

/* Takes one piece, never empty; it is valid during the call only. */
typedef snap_status (*split_fn)(void *ctx, const char *s, size_t n, snap_err *err);

/* Cuts well-formed UTF-8 and gives the pieces to @fn in order. @first: the text's first part. What
 * regex_find() can give, out of memory, and the errors of @fn. */
snap_status split_text(const splitter *sp, split_work *w, const char *s, size_t n, bool first,
                       split_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

void splitter_release(splitter *sp);
void split_work_release(split_work *w); /* not its `re`, which is borrowed */

#endif
