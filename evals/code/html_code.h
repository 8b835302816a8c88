/* html_code.h - finds code between HTML tags in a response. */
#ifndef SNAPMLA_EVALS_CODE_HTML_CODE_H
#define SNAPMLA_EVALS_CODE_HTML_CODE_H

#include "base/buf.h"
#include "evals/pattern.h"

/**
 * html_code_next - the next piece of code between <pre> or <code> and its end tag
 *
 * Between <code> only if it has several lines: otherwise it is a word of a sentence.
 *
 * @at:  offset to start from, initially 0; moved past the piece
 * @out: the code is appended, with the characters that its entities stand for
 *
 * Returns false if there is no further piece, or no memory; then @out has failed.
 */
bool html_code_next(span text, size_t *at, buf *out);

#endif
