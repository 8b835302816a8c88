#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"

static void test_first_error_wins(void) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(err_set(&err, SNAP_E_SHAPE, "batch must be positive, got '%d'", -1),
                    SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(err_set(&err, SNAP_E_IO, "later"), SNAP_E_IO);
    CU_ASSERT_EQUAL(err.code, SNAP_E_SHAPE);
    CU_ASSERT_STRING_EQUAL(err.text, "batch must be positive, got '-1'");
    CU_ASSERT_EQUAL(err_set(NULL, SNAP_E_IO, "nobody listens"), SNAP_E_IO);
}

static void test_errno_is_spelled_out(void) {
    snap_err err = {0};
    errno = ENOSPC;
    CU_ASSERT_EQUAL(err_set_errno(&err, "cannot write '%s'", "x"), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "cannot write 'x': No space left on device");
}

/* For many lengths of message and prefix, the result begins with the prefix and fits into the
 * buffer. */
static void test_prefix_fits_at_every_length(void) {
    char words[700];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    for (int before = 0; before < 700; before += 7)
        for (int after = 0; after < 700; after += 11) {
            snap_err err = {0};
            (void)err_set(&err, SNAP_E_IO, "%.*s", after, words);
            err_prefix(&err, "p%.*s", before, words);
            size_t n = strlen(err.text), want = 1 + (size_t)before + 2 + (size_t)after;
            size_t most = sizeof err.text - 1;
            CU_ASSERT(n <= most);
            CU_ASSERT_EQUAL(err.text[0], 'p');
            if (want < most)
                CU_ASSERT_EQUAL(n, want);
        }
    snap_err none = {0};
    err_prefix(&none, "x");
    CU_ASSERT_STRING_EQUAL(none.text, "");
}

/* A quoted name cannot add a line or an escape sequence to what is printed. */
static void test_quoted_text_is_shown(void) {
    snap_err err = {0};
    (void)err_set(&err, SNAP_E_INPUT, "unknown key '%s'", "a\n::stop-commands::\033[2J");
    err_prefix(&err, "%s", "x\r\xFF");
    CU_ASSERT_STRING_EQUAL(err.text, "x\\r\\xff: unknown key 'a\\n::stop-commands::\\u001b[2J'");
}

static void test_exit_codes(void) {
    CU_ASSERT_EQUAL(err_exit_code(SNAP_OK), 0);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_USAGE), 2);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_INPUT), 3);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_CANCELLED), 3);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_ENV), 6);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_SLOWER), 1);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_OPEN), 4);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_WORSE), 5);
    CU_ASSERT_EQUAL(err_exit_code(SNAP_E_WRONG), 7);
}

CU_TestInfo tests_err[] = {
    {"text that a message quotes is escaped", test_quoted_text_is_shown},
    {"the first error wins", test_first_error_wins},
    {"a failed system call adds its reason to the message", test_errno_is_spelled_out},
    {"a prefix fits at every length", test_prefix_fits_at_every_length},
    {"exit codes", test_exit_codes},
    CU_TEST_INFO_NULL};
