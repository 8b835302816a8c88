/* math_rewrite.h - rewrites an answer for MATH_TRUTH before it is split into tokens.
 *
 * The result is plain LaTeX: typed signs become commands (√3 becomes \sqrt{3}), a recurring decimal
 * becomes a fraction, 3.3e7 a product, "6:30 p.m." a time with a unit, and the row space in
 * "\\[4pt]" is dropped. */
#ifndef SNAPMLA_EVALS_MATH_MATH_REWRITE_H
#define SNAPMLA_EVALS_MATH_MATH_REWRITE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * math_rewrite - rewrite an answer
 *
 * @out: room for @cap bytes; not NUL-terminated
 * @len: gets the number of bytes in @out
 *
 * False if the result needs more than @cap bytes.
 */
bool math_rewrite(const char *s, size_t n, char *out, size_t cap, size_t *len);

/* Writes the answer without the words that introduce it: "\text{The answer is } 4" becomes " 4".
 * False if there are no such words, or if @out is too small. */
bool math_drop_introduction(const char *s, size_t n, char *out, size_t cap, size_t *len);

#endif
