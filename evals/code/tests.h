/* tests.h - reads the tests of a problem from the forms in which data sets publish them. */
#ifndef SNAPMLA_EVALS_CODE_TESTS_H
#define SNAPMLA_EVALS_CODE_TESTS_H

#include "base/arena.h"
#include "base/json.h"
#include "evals/pattern.h"

typedef struct {
    span input, output;
} code_test;

/* Tests of one problem. There are three kinds:
 *   - Programs that read standard input and write standard output.
 *   - Functions, if fn_name is set. An input has one argument per line, as JSON. An output is one
 *     value as JSON.
 *   - Assertions, if `after` is set. They follow the program, which fails if one of them fails. */
typedef struct {
    code_test *tests; /* [n]; for assertions NULL, and n is 1 */
    size_t n;
    const char *fn_name;
    const char *before, *after; /* text before (may be NULL) and after the program, for
                                   assertions */
    const char *entry;          /* a function name; a program that does not define it only completes
                                   `before`. NULL: none */
    arena mem;
} code_tests;

/**
 * tests_read - the tests of a row
 *
 * @row: {"inputs", "outputs", "fn_name"}; or the same as text under "input_output"; or the form of
 *       LiveCodeBench: {"public_test_cases", "private_test_cases", "metadata"}, each JSON as text,
 *       and the private ones possibly packed (base64 of zlib of a pickle of the text)
 * @out: release with tests_release(), also after a failure; it owns its texts
 *
 * SNAP_E_INPUT with @where; SNAP_E_NOMEM.
 */
snap_status tests_read(const js *row, code_tests *out, const char *where,
                       snap_err *err) SNAP_CHECK_RESULT;
void tests_release(code_tests *t);

/* True if the row has the key "inputs", or a text under "input_output" or "public_test_cases". */
bool tests_present(const js *row);

/* Unpacks base64 of zlib of a pickle of one text and appends the text to @out. SNAP_E_INPUT with
 * @where; SNAP_E_NOMEM, also past out->limit. */
snap_status tests_unpack(span packed, buf *out, const char *where, snap_err *err) SNAP_CHECK_RESULT;

#endif
