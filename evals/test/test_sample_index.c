#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "evals/sample_index.h"

static char path[40];

static void write_rows(const char *text) {
    (void)snprintf(path, sizeof path, "/tmp/snapmla-index-XXXXXX");
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

#define ROW(arm, problem, sample, rest)                                                            \
    "{\"task\":\"t\",\"arm\":\"" arm "\",\"problem\":\"" problem "\",\"sample\":" #sample "" rest  \
    "}\n"

static sample_index opened(const char *text) {
    sample_index x;
    snap_err err = {0};
    write_rows(text);
    if (sample_index_open(&x, path, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
    (void)unlink(path);
    return x;
}

/* Rows in the order in which grading writes them: arm by arm. */
static void test_questions(void) {
    sample_index x =
        opened(ROW("a", "q1", 0, ",\"verdict\":\"correct\",\"extracted\":\"7\",\"gold\":\"7\"")
                   ROW("a", "q1", 1, ",\"verdict\":\"wrong\"")
                       ROW("a", "q0", 0, ",\"verdict\":\"unparsed\",\"truncated\":true")
                           ROW("b", "q1", 0, ",\"verdict\":\"wrong\",\"completion_tokens\":5")
                               ROW("b", "q1", 1, ",\"verdict\":\"wrong\"")
                                   ROW("b", "q0", 0, ",\"verdict\":null,\"failed\":true"));
    CU_ASSERT_EQUAL_FATAL(x.n_questions, 3);
    const sample_question *q = x.questions;
    CU_ASSERT(q[0].n == 2 && q[0].differs && q[0].rows[0].arm == 0 && q[0].rows[1].arm == 1);
    CU_ASSERT_STRING_EQUAL(q[0].rows[0].extracted, "7");
    CU_ASSERT_STRING_EQUAL(q[0].rows[0].problem, "q1");
    CU_ASSERT_EQUAL(q[0].rows[1].tokens, 5);
    CU_ASSERT(q[1].n == 2 && !q[1].differs && q[1].rows[0].sample == 1);
    CU_ASSERT_STRING_EQUAL(q[2].rows[0].problem,
                           "q0"); /* in file order, not in alphabetical order */
    CU_ASSERT(!q[2].differs);     /* a failure is not an answer */
    CU_ASSERT(sample_question_is(&q[0], "differs") && sample_question_is(&q[0], "wrong"));
    CU_ASSERT(!sample_question_is(&q[1], "correct") && sample_question_is(&q[2], "failed"));
    CU_ASSERT(sample_question_is(&q[2], "truncated") && sample_question_is(&q[2], "unparsed"));
    js *row = sample_index_read(&x, &q[0].rows[1], NULL);
    CU_ASSERT_EQUAL(js_get_int(row, "completion_tokens", 0), 5);
    js_free(row);
    sample_index_close(&x);
}

/* Rows as a running process leaves them: in any order, with retries and an incomplete last line. */
static void test_rows_that_count(void) {
    sample_index x = opened(ROW("b", "q", 0, ",\"failed\":true") ROW(
        "a", "q", 0, ",\"n\":1") "\n" ROW("a", "q", 0, ",\"n\":2") ROW("b", "q", 0, ",\"n\":3")
                                ROW("b", "q", 0, ",\"failed\":true") "{\"task\":\"t\",\"arm");
    CU_ASSERT_EQUAL_FATAL(x.n_questions, 1);
    const sample_question *q = x.questions;
    CU_ASSERT_EQUAL_FATAL(q->n, 2);
    int64_t wanted[] = {3, 2}; /* b came first in the file */
    for (size_t i = 0; i < q->n; i++) {
        js *row = sample_index_read(&x, &q->rows[i], NULL);
        CU_ASSERT_EQUAL(js_get_int(row, "n", 0), wanted[i]);
        CU_ASSERT_PTR_NULL(q->rows[i].verdict);
        js_free(row);
    }
    sample_index_close(&x);
}

static void test_long_texts_are_cut_whole(void) {
    sample_index x = opened(ROW(
        "a", "q", 0,
        ",\"extracted\":\"0123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678\u00e9 and more\""));
    CU_ASSERT_EQUAL(strlen(x.rows[0].extracted), 79); /* the last character has two bytes and does
                                                         not fit */
    sample_index_close(&x);
}

static void test_many_problems(void) {
    buf text = {0};
    enum { N = 5000 };
    for (int i = 0; i < N; i++)
        (void)buf_printf(&text,
                         "{\"task\":\"%s\",\"arm\":\"a\",\"problem\":\"p%d\",\"sample\":0}\n",
                         i % 2 ? "odd" : "even", i * 7919 % N);
    sample_index x = opened(buf_str(&text));
    CU_ASSERT_EQUAL(x.n_questions, N);
    CU_ASSERT_EQUAL(x.n_tasks, 2);
    for (size_t i = 1; i < x.n_questions; i++)
        CU_ASSERT(x.rows[i - 1].task < x.rows[i].task || x.rows[i - 1].at < x.rows[i].at);
    sample_index_close(&x);
    buf_release(&text);
}

static void expect_refused(const char *text, const char *message) {
    sample_index x;
    snap_err err = {0};
    write_rows(text);
    CU_ASSERT_EQUAL(sample_index_open(&x, path, &err), SNAP_E_INPUT);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    sample_index_close(&x);
    (void)unlink(path);
}

static void test_malformed_rows(void) {
    sample_index x;
    expect_refused(ROW("a", "q", 0, "") "[]\n", ":2: a row must be an object");
    expect_refused("{\"task\":\"t\",\"arm\":\"a\",\"sample\":0}\n", "problem");
    expect_refused("{\"task\":\"t\",\"arm\":7,\"problem\":\"p\",\"sample\":0}\n", "arm");
    expect_refused(ROW("a", "q", -1, ""), "must not be negative");
    expect_refused("{\n", ":1:");
    CU_ASSERT_EQUAL(sample_index_open(&x, "/nowhere/samples.jsonl", NULL), SNAP_E_IO);
    sample_index_close(&x);
    x = opened("");
    CU_ASSERT_EQUAL(x.n_questions, 0);
    sample_index_close(&x);
}

CU_TestInfo tests_sample_index[] = {
    {"rows of one problem are found together", test_questions},
    {"retries replace failed rows", test_rows_that_count},
    {"long texts are cut whole", test_long_texts_are_cut_whole},
    {"5000 problems are indexed", test_many_problems},
    {"malformed rows", test_malformed_rows},
    CU_TEST_INFO_NULL,
};
