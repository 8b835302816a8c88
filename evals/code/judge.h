/* judge.h - runs a program against its tests.
 *
 * Every program runs in the sandbox. The expected outputs never enter the sandbox, so a program
 * cannot read them. Assertions are the exception, because they are programs themselves. So a
 * program that passes its assertions runs once more, with assertions that a right program fails:
 * one of them is changed, or a failing one is added if none can be changed. A program that passes
 * these as well gets the outcome CODE_WRONG_ANSWER. Both kinds of judge treat assertions in this
 * way. Other tests are judged by one of these:
 *
 *   JUDGE_REAL  One process per test. The program runs as a main program with real standard input
 *               and output.
 *   JUDGE_LCB   Imitates LiveCodeBench's checker, to agree with published figures: one process for
 *               all tests. A program that reads standard input becomes the body of a function and
 *               reads an imitated standard input.
 *
 * Some programs that read standard input pass in `real` and fail under LiveCodeBench's checker (and
 * in lcb.py, which imitates the checker). An example is a program that
 *   - iterates over standard input, or reads more than one line of its buffer
 *   - opens file 0
 *   - imports stdin from sys and looks for the end of a line or of the input
 *   - writes to the buffer of standard output, or through an imported stdout
 *   - reads the name of the working folder
 *   - defines a class Solution although the problem does not require one
 *   - has a main part that sets a variable and a function that declares this variable `global`
 *   - begins with a __future__ import
 * Further differences: in `lcb`, tests share the state of modules and the object of a method; in
 * `real`, every test starts fresh. sys.exit() ends a program that reads standard input
 * successfully in both, whatever its code. The stack is 256 MiB in `real`, as in contests, and the
 * usual 8 MiB in `lcb`. (With assertions it is 64 MiB.)
 *
 * `lcb` knowingly differs from the original in these points: values leave the program as JSON, so
 * an object whose == is always true does not pass; decimal numbers must have ASCII digits; memory
 * is limited to 4 GiB; new processes and the network are refused; a response without a fenced block
 * is unparsed and not an empty program. */
#ifndef SNAPMLA_EVALS_CODE_JUDGE_H
#define SNAPMLA_EVALS_CODE_JUDGE_H

#include "evals/code/sandbox.h"
#include "evals/code/tests.h"

typedef enum { JUDGE_REAL, JUDGE_LCB } judge_kind;

/* Parses "real" or "lcb"; NULL means "real". SNAP_E_USAGE for other names. */
snap_status judge_kind_parse(const char *name, judge_kind *out, snap_err *err) SNAP_CHECK_RESULT;

/* LiveCodeBench's result codes. */
typedef enum {
    CODE_PASSED = 1,
    CODE_GLOBAL_TIMEOUT = -1, /* all tests together took too long */
    CODE_WRONG_ANSWER = -2,
    CODE_TIMEOUT = -3,
    CODE_ERROR = -4,  /* an exception, also while loading; an expected value that is not JSON; in
                         `real` also a signal, a nonzero exit status or an absent return value */
    CODE_CRASHED = -5 /* in `lcb` and with assertions: the process ended before its tests did */
} code_outcome;
const char *code_verdict(code_outcome c); /* "pass", "wrong", "timeout", "error" */

typedef struct {
    code_outcome outcome;
    size_t test;      /* the first test that failed, from 0; valid only if one failed */
    size_t passed;    /* number of tests passed; judging stops at the first failure */
    char reason[160]; /* one line, UTF-8 */
    double seconds;   /* wall-clock time of the processes; the run with changed assertions is not
                         counted */
    package_set not_found; /* offered packages that the failing program could not import */
} code_result;

typedef struct code_judge code_judge;

typedef struct {
    judge_kind kind;
    double seconds; /* time limit per test; 0: 6. All tests together: (limit + 1) per test,
                       plus 5 */
    sandbox_options sandbox;
    const volatile sig_atomic_t *cancel; /* may be NULL */
} judge_options;

/* SNAP_E_ENV if this machine cannot isolate programs; there is no judging without isolation. The
 * other errors are those of sandbox_open(). The strings of @options must live as long as the
 * judge. */
snap_status judge_open(code_judge **out, const judge_options *options,
                       snap_err *err) SNAP_CHECK_RESULT;
void judge_close(code_judge *j); /* NULL is allowed */

/**
 * judge_program - run a program against its tests, up to the first failure
 *
 * A failure of the program is a result, not an error. SNAP_E_ENV if the sandbox fails, if the
 * assertions cannot be changed, or if the program fails because it cannot import a package that the
 * judge offers and this machine lacks; SNAP_E_CANCELLED, SNAP_E_NOMEM, SNAP_E_IO. A program that
 * catches the ImportError is judged by what it does then. Thread-safe.
 */
snap_status judge_program(code_judge *j, span program, const code_tests *tests, code_result *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
