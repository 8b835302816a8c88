/* program_fit.h - decides how well a piece of Python code fits the tests of a problem. */
#ifndef SNAPMLA_EVALS_CODE_PROGRAM_FIT_H
#define SNAPMLA_EVALS_CODE_PROGRAM_FIT_H

#include "evals/code/tests.h"

/* Comments and strings do not count. Larger is better. */
typedef enum {
    FIT_NONE,
    FIT_WEAK, /* only names the function: a definition without statements, one inside of another
                      function, or "import ... as NAME". If the tests call no function: writes
                      output only */
    FIT_CONTINUES, /* every line is indented, and the tests have a text that the code continues. If
                      the tests call no function: reads input only */
    FIT_FULL,      /* defines the function. If the tests call no function: reads input and writes
                      output */
} program_fit;

/* How well @code fits. @bare is the same code as python_bare() gives it. */
program_fit program_fit_of(span code, span bare, const code_tests *tests);

/* True if the code defines the function, class or variable: "NAME =", or "def NAME" or "class NAME"
 * with a statement in its body, at the smallest indentation of the code. False also if memory is
 * exhausted (a fault). */
bool program_defines(span code, span name);

#endif
