/* fenced.h - finds the program in a response. */
#ifndef SNAPMLA_EVALS_CODE_FENCED_H
#define SNAPMLA_EVALS_CODE_FENCED_H

#include "evals/extract.h"

/* The text between the last two lines that contain three backticks (rule "fenced"), as
 * LiveCodeBench's runner does. Lines end with a line feed. The text is borrowed and not trimmed. */
bool fenced_last(span text, extraction *out);

/* The last complete block (rule "fenced"). An opening line begins with three backticks and may name
 * a language. A closing line has only the backticks. A block that is still open at the end of a
 * truncated response does not count. */
bool fenced_block(span text, extraction *out);

#endif
