/* fenced.h - finds the blocks of code in a response. */
#ifndef SNAPMLA_EVALS_CODE_FENCED_H
#define SNAPMLA_EVALS_CODE_FENCED_H

#include "evals/extract.h"

/* Finds the text between the last two lines that contain three backticks (rule "fenced"), as
 * LiveCodeBench's runner does; false if there are no two such lines. Lines end with a line feed.
 * The text is borrowed and not trimmed. */
bool fenced_last(span text, extraction *out);

typedef struct {
    span text;     /* between the two fences, borrowed and not trimmed */
    size_t quotes; /* number of ">" before the opening fence (a quotation); each line of the block
                      starts with as many */
    size_t indent; /* bytes before the opening fence on its line, after the quotation's marks; the
                      lines of the block may start with as much white space */
    span language; /* first word after the opening fence; n is 0 if there is none */
    bool closed;   /* false: the text ends, or another block begins, within the block */
} fenced_block;

/**
 * fenced_next - the next block of a response in Markdown
 *
 * @at: offset to start from, initially 0; moved past the block
 *
 * An opening fence is three or more backticks or tildes, after white space, marks of quotations
 * (">") and at most one list marker, and may name a language. A closing fence has the same
 * character at least as often and nothing else. An opening fence with a language also ends a block
 * that is still open, and so does a line that leaves the quotation. Returns false if there is no
 * further block.
 */
bool fenced_next(span text, size_t *at, fenced_block *out);

/* Length of the marks of @quotes nested quotations at the start of a line, each with up to three
 * blanks before and one after it; 0 if there are fewer marks. */
size_t fenced_quotes(span line, size_t quotes);

#endif
