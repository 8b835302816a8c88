/* Tests the samples on the page: which are shown, their order, their number, and texts that must
 * not be shown. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness/view/samples.h"

static char path[40];

static void write_rows(const buf *rows) {
    (void)snprintf(path, sizeof path, "/tmp/snapmla-page-XXXXXX");
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, buf_str(rows), rows->len, NULL), SNAP_OK);
}

static void add_row(buf *rows, const char *task, const char *arm, int problem, const char *verdict,
                    const char *response) {
    (void)buf_printf(
        rows,
        "{\"task\":\"%s\",\"arm\":\"%s\",\"problem\":\"q%d\",\"sample\":0,\"gold\":\"7\","
        "\"verdict\":\"%s\",\"extracted\":\"8\",\"response\":\"%s\"}\n",
        task, arm, problem, verdict, response);
}

/* The section for these rows. The caller releases it. */
static buf shown(buf *rows, bool confidential) {
    report_samples s = {.name = "run", .confidential = confidential};
    buf out = {0};
    write_rows(rows);
    CU_ASSERT_EQUAL_FATAL(sample_index_open(&s.index, path, NULL), SNAP_OK);
    write_samples(&s, &out);
    CU_ASSERT_FALSE(out.failed);
    sample_index_close(&s.index);
    (void)unlink(path);
    buf_release(rows);
    return out;
}

static const char *place(const buf *page, const char *text) {
    const char *at = strstr(buf_str(page), text);
    if (!at)
        printf("\nno '%s'\n", text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return at;
}

static size_t count(const buf *page, const char *text) {
    size_t n = 0;
    for (const char *at = buf_str(page); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void test_disagreements_first(void) {
    buf rows = {0};
    static const char *const verdicts[][2] = {
        {"correct", "correct"}, {"wrong", "wrong"}, {"correct", "wrong"}, {"unparsed", "correct"}};
    for (int arm = 0; arm < 2; arm++)
        for (int q = 0; q < 4; q++)
            add_row(&rows, "t", arm ? "b" : "a", q, verdicts[q][arm], "text");
    buf page = shown(&rows, false);
    const char *order[] = {place(&page, "<b>q2</b>"), place(&page, "<b>q3</b>"),
                           place(&page, "<b>q1</b>"), place(&page, "<b>q0</b>")};
    for (int i = 1; i < 4; i++)
        CU_ASSERT(order[i - 1] < order[i]);
    (void)place(&page, "class=\"q differs wrong\"");
    (void)place(&page, "class=\"q differs unparsed\"");
    (void)place(&page, "for=\"k-differs\">differs <small>2</small>");
    (void)place(&page, "for=\"k-wrong\">wrong <small>2</small>");
    (void)place(&page, "for=\"k-all\">all <small>4</small>");
    (void)place(&page, "4 of 4 questions.");
    CU_ASSERT_EQUAL(count(&page, "checked=\"checked\""), 1);
    CU_ASSERT_EQUAL(count(&page, "<details>"), count(&page, "</details>"));
    CU_ASSERT_EQUAL(count(&page, "<div"), count(&page, "</div>"));
    CU_ASSERT_EQUAL(count(&page, "<span"), count(&page, "</span>"));
    buf_release(&page);
}

static void test_hostile_texts(void) {
    buf rows = {0};
    add_row(&rows, "t<b>", "a\\\"><script>", 1, "wrong",
            "</pre><script>alert(1)</script>\\u0000\\u001b");
    buf page = shown(&rows, false);
    CU_ASSERT_EQUAL(count(&page, "<script"), 0);
    CU_ASSERT_EQUAL(count(&page, "<b>"), 1); /* only the tag around the problem's id */
    CU_ASSERT_PTR_NULL(strchr(buf_str(&page), 27));
    (void)place(&page, "&lt;script&gt;alert(1)");
    buf_release(&page);
}

/* The authors of GPQA ask not to publish any question. An answer may quote one. */
static void test_confidential_texts(void) {
    for (int asked = 0; asked < 2; asked++) {
        buf rows = {0};
        add_row(&rows, "gpqa_diamond", "a", 1, "wrong", "the question says that");
        add_row(&rows, "aime24", "a", 1, "wrong", "an open answer");
        buf page = shown(&rows, asked);
        CU_ASSERT_EQUAL(count(&page, "the question says that"), (size_t)asked);
        CU_ASSERT_EQUAL(count(&page, "is not published"), (size_t)!asked);
        CU_ASSERT_EQUAL(count(&page, "an open answer"), 1);
        CU_ASSERT_EQUAL(count(&page, "<b>q1</b>"), 2); /* verdicts are shown */
        buf_release(&page);
    }
}

/* The size of the page is limited, and so are the number of questions of a task and the length of
 * an answer. */
static void test_the_page_is_bounded(void) {
    enum { QUESTIONS = 1500, LENGTH = 20000, TASKS = 3 };
    static char text[LENGTH + 1];
    buf rows = {0};
    memset(text, 'x', LENGTH);
    memcpy(text, "begin", 5);
    memcpy(text + LENGTH - 3, "end", 3);
    for (int q = 0; q < QUESTIONS; q++) {
        char task[8];
        (void)snprintf(task, sizeof task, "t%d", q % TASKS);
        add_row(&rows, task, "a", q, q % 2 ? "wrong" : "correct", text);
    }
    buf page = shown(&rows, false);
    CU_ASSERT(page.len < SAMPLES_BYTES + TASKS * 20000);
    CU_ASSERT_EQUAL(count(&page, "<details>"), TASKS * SAMPLES_QUESTIONS);
    CU_ASSERT_EQUAL(count(&page, "240 of 500 questions; 'snapmla eval show' shows all of them."),
                    TASKS);
    CU_ASSERT_EQUAL(count(&page, ">begin"), TASKS * SAMPLES_QUESTIONS);
    CU_ASSERT_EQUAL(count(&page, "end</pre>"), TASKS * SAMPLES_QUESTIONS);
    CU_ASSERT_EQUAL(count(&page, "[… 16000 bytes left out …]"), TASKS * SAMPLES_QUESTIONS);
    buf_release(&page);
}

static void test_nothing(void) {
    buf rows = {0};
    buf page = shown(&rows, false);
    CU_ASSERT_EQUAL(page.len, 0);
    buf_release(&page);
    write_samples(NULL, &page);
    CU_ASSERT_EQUAL(page.len, 0);
    buf_release(&page);
}

CU_TestInfo tests_report_samples[] = {
    {"disagreements first", test_disagreements_first},
    {"hostile texts", test_hostile_texts},
    {"confidential texts", test_confidential_texts},
    {"the page has a limited size", test_the_page_is_bounded},
    {"no samples", test_nothing},
    CU_TEST_INFO_NULL,
};
