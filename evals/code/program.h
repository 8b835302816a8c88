/* program.h - finds the program in a response. */
#ifndef SNAPMLA_EVALS_CODE_PROGRAM_H
#define SNAPMLA_EVALS_CODE_PROGRAM_H

#include "base/buf.h"
#include "evals/code/tests.h"

/**
 * program_find - the program that a response offers for these tests
 *
 * Chooses the last of the blocks of code in Python (fenced_next()) that fit the tests best
 * (program_fit.h). If none fits, chooses the last block that names Python or no language, or else
 * the last of all. So a block with an example, output, shell commands or further tests does not
 * replace the program. A block that is not closed counts only if @complete is set. If no block fits
 * fully, code between HTML tags (html_code.h) and, if @complete is set, runs of lines of code
 * without a fence are candidates too.
 *
 * @out: the program is appended, without the indentation and the marks of quotations that its lines
 *       share with its fence
 *
 * Returns the rule: "fenced", "open_fence", "tagged" or "unfenced"; NULL if there is no program. If
 * memory is exhausted, @out has failed.
 */
const char *program_find(span text, const code_tests *tests, bool complete, buf *out);

#endif
