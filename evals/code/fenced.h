/* fenced.h - finds the program in a response. */
#ifndef SNAPMLA_EVALS_CODE_FENCED_H
#define SNAPMLA_EVALS_CODE_FENCED_H

#include "evals/extract.h"

/* Finds the text between the last two lines that contain three backticks (rule "fenced"), as
 * LiveCodeBench's runner does; false if there are no two such lines. Lines end with a line feed.
 * The text is borrowed and not trimmed. */
bool fenced_last(span text, extraction *out);

/* Finds the last complete block (rule "fenced"); false if there is none. An opening line begins
 * with three backticks, has no second group of three and may name a language. A closing line has
 * only three backticks. White space around these lines is ignored. A block that is not closed does
 * not count. The answer is borrowed and not trimmed. */
bool fenced_block(span text, extraction *out);

#endif
