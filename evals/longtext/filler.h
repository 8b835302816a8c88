/* filler.h - natural text without information: varied English sentences that a seed determines.
 *
 * Each sentence fills one of several dozen forms with words. It has no digits, no codes and none of
 * the statements that the tasks of longtext.h ask about. */
#ifndef SNAPMLA_EVALS_LONGTEXT_FILLER_H
#define SNAPMLA_EVALS_LONGTEXT_FILLER_H

#include "base/buf.h"
#include "base/rng.h"

enum { FILLER_RECENT = 6 };

/* Start with zeros and a generator of random numbers. */
typedef struct {
    rng random;
    int recent[FILLER_RECENT]; /* forms of the last sentences, plus one; 0: none */
    int next;
} filler;

/* Appends one sentence without a space at its ends. Its form differs from those of the last
 * FILLER_RECENT sentences. */
void filler_sentence(filler *f, buf *out);

/* Appends a common English noun or adjective. */
void filler_word(rng *r, buf *out);

#endif
