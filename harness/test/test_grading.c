/* Tests the graders in the program: their speed, their policies in results, and that a run writes
 * GPQA's text to disk only on request. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/sanitized.h"
#include "harness/bench/grading.h"
#include "harness/eval/eval_run.h"
#include "harness/view/run_report.h"

/* grading_bench() fails if a verdict on one of the pairs is wrong. Another seed gives the pairs
 * other numbers, but the same forms and lengths, so one is enough for a sanitizer. */
static void test_bench(void) {
    grading_row rows[GRADING_ROWS];
    for (uint64_t seed = 1; seed <= (kSanitized ? 1 : 5); seed++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(grading_bench(seed, 1e-3, rows, &err), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(err.text, "");
        for (int i = 0; i < GRADING_ROWS; i++)
            CU_ASSERT(rows[i].rate > 0 && rows[i].pairs > 0);
    }
}

/* ---- runs ---- */

enum { RECORDS = 4 };

typedef struct {
    char dir[48], data[80], run[80], arm_a[120], arm_b[120];
} place;

static void write_file(const char *path, const buf *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, buf_str(text), text->len, NULL), SNAP_OK);
}

static void place_open(place *p) {
    *p = (place){.dir = "/tmp/snapmla-grading-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(p->dir));
    (void)snprintf(p->run, sizeof p->run, "%s/run", p->dir);
    (void)snprintf(p->arm_a, sizeof p->arm_a, "a=replay:%s/a.jsonl", p->dir);
    (void)snprintf(p->arm_b, sizeof p->arm_b, "b=replay:%s/a.jsonl", p->dir);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void place_close(place *p) {
    (void)nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void record(const char *task, const char *id, const char *response, buf *rows) {
    (void)buf_printf(rows,
                     "{\"task\": \"%s\", \"problem\": \"%s\", \"sample\": 0, \"response\": \"%s\", "
                     "\"finish_reason\": \"stop\"}\n",
                     task, id, response);
}

static void evaluate(const eval_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (eval_run(o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    results_free(r);
}

static eval_options options_of(const place *p, const char *suite) {
    return (eval_options){.report = run_report_write,
                          .suite = suite,
                          .data = p->data,
                          .arms = {.items = {p->arm_a, p->arm_b}, .n = 2},
                          .out = p->run,
                          .samples = 1,
                          .seed = 3,
                          .temperature = -1};
}

/* The names of the files in a RUN folder that contain a word. */
static const char *wanted;
static char found[256];

static int look(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    buf text = {0};
    (void)sb;
    if (flag == FTW_F && fs_read(path, &text, NULL) == SNAP_OK &&
        memmem(buf_str(&text), text.len, wanted, strlen(wanted)))
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s ",
                       path + ftw->base);
    buf_release(&text);
    return 0;
}

static const char *files_with(const place *p, const char *word) {
    wanted = word;
    found[0] = '\0';
    CU_ASSERT_EQUAL(nftw(p->run, look, 16, FTW_PHYS), 0);
    return found;
}

static void test_gpqa_stays_off_the_disk(void) {
    static const char *const words[] = {"xylophone", "zither", "theremin", "Think step by step"};
    place p;
    buf table = {0}, rows = {0};
    place_open(&p);
    (void)snprintf(p.data, sizeof p.data, "%s/gpqa_diamond.csv", p.dir);
    (void)buf_puts(&table, "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,"
                           "Incorrect Answer 3,Record ID\n");
    for (int i = 0; i < RECORDS; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "r%d", i);
        (void)buf_printf(&table, "xylophone,zither,theremin,oboe,fife,%s\n", id);
        record("gpqa_diamond", id, "Answer: B", &rows);
    }
    write_file(p.data, &table);
    write_file(strchr(p.arm_a, ':') + 1, &rows);
    eval_options o = options_of(&p, "gpqa_diamond");
    evaluate(&o);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CU_ASSERT_STRING_EQUAL(files_with(&p, words[i]), "");
    CU_ASSERT_STRING_EQUAL(files_with(&p, "Answer: B"), "samples.jsonl ");
    (void)nftw(p.run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    o.keep_gpqa_text = true;
    evaluate(&o);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CU_ASSERT_STRING_EQUAL(files_with(&p, words[i]), "samples.jsonl ");
    buf_release(&table);
    buf_release(&rows);
    place_close(&p);
}

/* A run is graded again with another policy, which changes verdicts and the grader's name. */
static void test_policies(void) {
    place p;
    buf data = {0}, rows = {0};
    place_open(&p);
    (void)snprintf(p.data, sizeof p.data, "%s/math500.jsonl", p.dir);
    (void)buf_puts(&data, "{\"id\": \"x\", \"problem\": \"half?\", \"answer\": \"1/2\"}\n"
                          "{\"id\": \"y\", \"problem\": \"two?\", \"answer\": \"2\"}\n");
    record("math500", "x", "\\\\boxed{2/4}", &rows);
    record("math500", "y", "\\\\boxed{2}", &rows);
    write_file(p.data, &data);
    write_file(strchr(p.arm_a, ':') + 1, &rows);
    eval_options o = options_of(&p, "math500");
    evaluate(&o);
    CU_ASSERT_STRING_EQUAL(files_with(&p, "\"verdict\":\"wrong\""), "");
    CU_ASSERT_PTR_NOT_NULL(strstr(files_with(&p, "math-truth-6"), "run.json"));
    eval_options again = {
        .report = run_report_write, .out = p.run, .regrade = true, .math_policy = "strict"};
    evaluate(&again);
    CU_ASSERT_STRING_EQUAL(files_with(&p, "\"verdict\":\"wrong\""), "samples.jsonl ");
    CU_ASSERT_PTR_NOT_NULL(strstr(files_with(&p, "math-strict-10"), "run.json"));
    CU_ASSERT_STRING_EQUAL(files_with(&p, "math-truth-6"), "");
    buf_release(&data);
    buf_release(&rows);
    place_close(&p);
}

CU_TestInfo tests_grading[] = {
    {"verdicts of the benchmark of graders", test_bench},
    {"GPQA stays off the disk", test_gpqa_stays_off_the_disk},
    {"a run is graded again with another policy", test_policies},
    CU_TEST_INFO_NULL,
};
