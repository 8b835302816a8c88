/* Tests texts in columns, and eval show: the output for a file of samples. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "harness/eval/columns.h"
#include "harness/view/eval_show.h"

/* ---- columns ---- */

static void expect_columns(const char *const *texts, size_t n, int width, const char *wanted) {
    buf out = {0};
    columns_write(texts, n, width, &out);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), wanted);
    buf_release(&out);
}

static void test_columns(void) {
    const char *two[] = {"a first text that is broken between its words\n\nand ends", "short"};
    expect_columns(two, 2, 67,
                   "a first text that is broken        short\n"
                   "between its words\n"
                   "\n"
                   "and ends\n");
    expect_columns(two, 2, 50,
                   "a first text that is broken between its words\n\nand ends\n\nshort\n");
    const char *word[] = {"0123456789012345678901234567890123456789"};
    expect_columns(word, 1, 32, "01234567890123456789012345678901\n23456789\n");
    const char *wide[] = {"\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57"
                          "\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57"}; /* 18 characters of two columns
                                                                      each */
    expect_columns(wide, 1, 32,
                   "\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22"
                   "\u5b57\u6f22\u5b57\n\u6f22\u5b57\n");
    expect_columns(NULL, 0, 80, "");
}

/* Escape sequences, C1 controls, broken UTF-8 and direction marks must not reach the terminal. */
static void test_hostile_texts(void) {
    const char *texts[] = {"a\033[2Jb\x07\tc\r\nd\xC2\x9B"
                           "e\xFF\xE2\x80\xAE"
                           "f"};
    expect_columns(texts, 1, 80,
                   "a\xEF\xBF\xBD[2Jb\xEF\xBF\xBD    c\n"
                   "d\xEF\xBF\xBD"
                   "e\xEF\xBF\xBD\xEF\xBF\xBD"
                   "f\n");
}

/* ---- eval show ---- */

static char path[40];

#define ROW(arm, problem, sample, rest)                                                            \
    "{\"task\":\"t\",\"arm\":\"" arm "\",\"problem\":\"" problem "\",\"sample\":" #sample          \
    ",\"gold\":\"7\"" rest "}\n"
static const char rows[] =
    ROW("a", "q1", 0, ",\"verdict\":\"correct\",\"extracted\":\"7\",\"response\":\"it is seven\"")
        ROW("a", "q1", 1, ",\"verdict\":\"wrong\",\"extracted\":\"\\u001b[31m8\"")
            ROW("a", "\\u001b[7mq2", 0, ",\"verdict\":\"unparsed\",\"truncated\":true")
                ROW("b", "q1", 0, ",\"verdict\":\"wrong\",\"response\":\"it is eight\"")
                    ROW("b", "q1", 1, ",\"verdict\":\"wrong\"")
                        ROW("b", "\\u001b[7mq2", 0, ",\"failed\":true");

static snap_status collect(void *ctx, const buf *text, snap_err *err) {
    (void)err;
    (void)buf_append(ctx, buf_str(text), text->len);
    return SNAP_OK;
}

static snap_status shown(show_options o, buf *out, snap_err *err) {
    (void)snprintf(path, sizeof path, "/tmp/snapmla-show-XXXXXX");
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(write(fd, rows, sizeof rows - 1), (ssize_t)sizeof rows - 1);
    (void)close(fd);
    o.run = path;
    o.width = 100;
    snap_status st = eval_show(&o, collect, out, err);
    (void)unlink(path);
    return st;
}

static void expect(show_options o, const char *wanted) {
    buf out = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(shown(o, &out, &err), SNAP_OK);
    if (strcmp(buf_str(&out), wanted) != 0)
        printf("\n%s%s", buf_str(&out), err.text);
    CU_ASSERT_STRING_EQUAL(buf_str(&out), wanted);
    buf_release(&out);
}

static void test_table(void) {
    expect((show_options){.sample = -1},
           "task  problem  sample           gold  a                     b\n"
           "t     q1            0  differs     7  correct 7             wrong\n"
           "t     q1            1              7  wrong \xEF\xBF\xBD[31m8          wrong\n"
           "t     \xEF\xBF\xBD[7mq2        0              7  unparsed (truncated)  failed\n"
           "\n3 of 3 questions\n");
    expect((show_options){.sample = -1, .only = "differs,failed", .rows = 1},
           "task  problem  sample           gold  a          b\n"
           "t     q1            0  differs     7  correct 7  wrong\n"
           "\n1 of 3 questions; 1 more match, --rows 0 shows all\n");
    expect((show_options){.sample = 1, .arm = "b", .only = "wrong", .tasks = "t"},
           "task  problem  sample    gold  b\n"
           "t     q1            1       7  wrong\n"
           "\n1 of 3 questions\n");
    expect((show_options){.sample = -1, .arm = "b", .only = "truncated"}, "0 of 3 questions\n");
}

static void test_side_by_side(void) {
    expect((show_options){.problem = "q1"},
           "t q1, sample 0, differs, gold: 7\n\n"
           "a: correct                                         b: wrong\n"
           "extracted: 7                                       time: 0.0 s\n"
           "time: 0.0 s\n"
           "                                                   it is eight\n"
           "it is seven\n");
}

static void test_json(void) {
    buf out = {0};
    CU_ASSERT_EQUAL(shown((show_options){.json = true, .only = "differs"}, &out, NULL), SNAP_OK);
    char *second = strchr(buf_str(&out), '\n');
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    js *o = js_parse(buf_str(&out), (size_t)(second - buf_str(&out)), "row", NULL);
    CU_ASSERT_STRING_EQUAL(js_get_str(o, "response"), "it is seven");
    js_free(o);
    o = js_parse(second + 1, strlen(second + 1), "row", NULL);
    CU_ASSERT_STRING_EQUAL(js_get_str(o, "arm"), "b");
    js_free(o);
    buf_release(&out);
}

static void expect_refused(show_options o, const char *message) {
    buf out = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(shown(o, &out, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    CU_ASSERT_EQUAL(out.len, 0);
    buf_release(&out);
}

static void test_refusals(void) {
    expect_refused((show_options){.only = "wrong,odd"}, "--only 'odd' is unknown: use differs");
    expect_refused((show_options){.arm = "c"}, "no arm 'c' in this run: it has a, b");
    expect_refused((show_options){.tasks = "u"}, "no task 'u' in this run: it has t");
    expect_refused((show_options){.problem = "q9"}, "no problem 'q9' in this run (did you mean");
}

CU_TestInfo tests_show[] = {
    {"texts in columns", test_columns},
    {"hostile texts", test_hostile_texts},
    {"answers as a table", test_table},
    {"answers side by side", test_side_by_side},
    {"answers as JSON", test_json},
    {"bad options are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
