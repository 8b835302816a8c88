/* program.h - finds the program in a response. */
#ifndef SNAPMLA_EVALS_CODE_PROGRAM_H
#define SNAPMLA_EVALS_CODE_PROGRAM_H

#include "base/buf.h"
#include "evals/code/tests.h"

/**
 * program_find - the program that a response offers for these tests
 *
 * Chooses among the blocks of code in Python or without a language (fenced_next()):
 *   - If the tests call a function, the last block that defines it.
 *   - Otherwise the last block that reads input or prints.
 *   - If no block does, the last block of all.
 * So a block with an example, output, shell commands or further tests does not replace the program.
 * A block that the text ends within counts only if @complete is set. Without any block, the lines
 * of code in the text are taken if they define the function, or read input or print.
 *
 * @out: the program is appended, without the indentation of its fence
 *
 * Returns the rule: "fenced", "open_fence" or "unfenced"; NULL if there is no program. If memory is
 * exhausted, @out has failed.
 */
const char *program_find(span text, const code_tests *tests, bool complete, buf *out);

/* True if the program has "def NAME", "class NAME" or, at the start of a line, "NAME =". */
bool program_defines(span program, span name);

#endif
