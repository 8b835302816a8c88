/* judge.h - does a program pass its tests? Every program runs in the sandbox; what is expected of it
 * never goes in, so that no program can read the answers (assertions are the exception: they are
 * programs themselves).
 *
 *   JUDGE_REAL  a process a test, the program as its main program, real standard input and output.
 *   JUDGE_LCB   what LiveCodeBench's checker lets a program see, to agree with published figures: one
 *               process, the program as the body of a function, an imitation of standard input.
 *
 * Programs that a real interpreter runs well and LiveCodeBench's checker does not (lcb.py imitates
 * it): those that iterate over standard input, read more than one line of its buffer, open file 0, import
 * stdin from sys and look for the end of a line or of the input, write to the buffer of standard output
 * or through an imported stdout, ask for the working folder, define a class Solution that nobody asked
 * for, keep in a function what `global` wants in the module, or begin with a __future__ import. The other
 * way round: in `lcb` tests share the state of modules and a method's object, in `real` every test begins
 * anew. sys.exit() ends a program well in both, whatever its code. `real` has a stack of 256 MiB, as
 * contests have, `lcb` the usual 8.
 *
 * Where `lcb` knowingly differs from the original: values leave the program as JSON, so that an object
 * whose == always says yes does not pass; decimal numbers are those in ASCII digits; memory is bounded
 * (4 GiB); processes and the network are refused; a program that puts no fence around itself is
 * unparsed, not an empty program. */
#ifndef SNAPMLA_EVALS_CODE_JUDGE_H
#define SNAPMLA_EVALS_CODE_JUDGE_H

#include "evals/code/sandbox.h"
#include "evals/code/tests.h"

typedef enum { JUDGE_REAL, JUDGE_LCB } judge_kind;

/* "real" or "lcb"; NULL is "real". SNAP_E_USAGE for anything else. */
snap_status judge_kind_parse(const char *name, judge_kind *out, snap_err *err) SNAP_CHECK_RESULT;
const char *judge_kind_name(judge_kind k);

/* LiveCodeBench's result codes. */
typedef enum {
    CODE_PASSED = 1,
    CODE_GLOBAL_TIMEOUT = -1, /* all tests together took too long */
    CODE_WRONG_ANSWER = -2,
    CODE_TIMEOUT = -3,
    CODE_ERROR = -4,  /* an exception, also while it was loaded; in `real` a signal too */
    CODE_CRASHED = -5 /* the process ended before its tests did */
} code_outcome;
const char *code_verdict(code_outcome c); /* "pass", "wrong", "timeout", "error" */

typedef struct {
    code_outcome outcome;
    size_t test;      /* the first that was not passed, from 0; meaningless when passed */
    size_t passed;    /* tests; judging stops at the first failure */
    char reason[160]; /* one line, UTF-8 */
    double seconds;   /* of the program, by the clock */
} code_result;

typedef struct code_judge code_judge;

typedef struct {
    judge_kind kind;
    double seconds; /* a test; 0: 6. All together: one second more each, and five */
    sandbox_options sandbox;
    const volatile sig_atomic_t *cancel; /* may be NULL */
} judge_options;

/* SNAP_E_ENV where programs can't be isolated: there is no judging without. */
snap_status judge_open(code_judge **out, const judge_options *options,
                       snap_err *err) SNAP_CHECK_RESULT;
void judge_close(code_judge *j); /* NULL is allowed */

/**
 * judge_program - run a program against its tests, up to the first that it fails
 *
 * Whatever the program does is a result. SNAP_E_ENV when the sandbox fails, SNAP_E_CANCELLED,
 * SNAP_E_NOMEM, SNAP_E_IO. Threads may call it at the same time.
 */
snap_status judge_program(code_judge *j, span program, const code_tests *tests, code_result *out,
                          snap_err *err) SNAP_CHECK_RESULT;

#endif
