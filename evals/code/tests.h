/* tests.h - what a program must do: the tests of a problem, as data sets publish them. */
#ifndef SNAPMLA_EVALS_CODE_TESTS_H
#define SNAPMLA_EVALS_CODE_TESTS_H

#include "base/arena.h"
#include "base/json.h"
#include "evals/pattern.h"

typedef struct {
    span input, output;
} code_test;

/* Three kinds: programs that read standard input and write standard output; functions, where fn_name is
 * set: an input has an argument a line, as JSON, an output is a value as JSON; programs that are right
 * when they come to their end, where `behind` is set: assertions that stand behind the program. */
typedef struct {
    code_test *tests; /* [n] */
    size_t n;
    const char *fn_name;
    const char *before, *behind; /* of assertions; `before` stands before the program */
    const char *entry;           /* a program that does not define it only ends `before` */
    arena mem;
} code_tests;

/**
 * tests_read - the tests of a row
 *
 * @row: {"inputs", "outputs", "fn_name"}; the same as text under "input_output"; or as LiveCodeBench
 *       publishes them: {"public_test_cases", "private_test_cases", "metadata"}, each JSON as text,
 *       the private ones also packed (base64 of zlib of a pickle of the text)
 * @out: release with tests_release(), also after a failure; texts are its own
 *
 * SNAP_E_INPUT naming @where; SNAP_E_NOMEM.
 */
snap_status tests_read(const js *row, code_tests *out, const char *where,
                       snap_err *err) SNAP_CHECK_RESULT;
void tests_release(code_tests *t);

/* Whether the row has tests in one of these forms. */
bool tests_present(const js *row);

/* Unpacks base64 of zlib of a pickle of one text: appended. */
snap_status tests_unpack(span packed, buf *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

#endif
