/* fenced.h - the program in a response. */
#ifndef SNAPMLA_EVALS_CODE_FENCED_H
#define SNAPMLA_EVALS_CODE_FENCED_H

#include "evals/extract.h"

/* What stands between the last two lines that hold three backticks (rule "fenced"), as in
 * LiveCodeBench's runner; lines by line feeds, borrowed, not trimmed. */
bool fenced_last(span text, extraction *out);

/* The last block that has a beginning and an end (rule "fenced"): an opening line begins with three
 * backticks and may name a language, a closing one holds nothing else. What a response that was cut off
 * begins last is no block. */
bool fenced_block(span text, extraction *out);

#endif
