/* Tests evaluations that are continued after an interruption or a failure, or that grow. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/test/temp_folder.h"
#include "harness/audit/bundle.h"
#include "harness/test/eval_place.h"

/* Runs in a process that is killed, without cleaning up, when one of its files grows beyond @limit
 * bytes. The last write is cut in the middle. */
static bool killed_at(const eval_options *o, rlim_t limit) {
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit r = {limit, limit};
        results *out;
        (void)setrlimit(RLIMIT_FSIZE, &r); /* SIGXFSZ kills */
        snap_status st = eval_run(o, NULL, &out, NULL);
        _exit(st == SNAP_OK ? 0 : 1);
    }
    int status = 0;
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines of a text in place. Returns their number. */
static size_t sorted_lines(char *text, char *lines[ROWS + 1]) {
    size_t n = 0;
    for (char *line = strtok(text, "\n"); line && n <= ROWS; line = strtok(NULL, "\n"))
        lines[n++] = line;
    qsort(lines, n, sizeof *lines, compare_texts);
    return n;
}

static void test_killed_runs_go_on(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    results_free(eval_complete(&o));
    char *whole = eval_text_of(p.samples);
    size_t bytes = strlen(whole);
    int killed = 0, in_grading = 0;
    for (int i = 1; i <= 12; i++) {
        char *again, *lines[ROWS + 1];
        temp_folder_remove(p.run);
        bool died = killed_at(&o, (rlim_t)(bytes * (size_t)i / 12 - 7));
        killed += died;
        if (!died)
            continue;
        char *left = eval_text_of(p.samples), *copy[ROWS + 1];
        size_t kept = sorted_lines(left, copy);
        in_grading += kept == ROWS;
        CU_ASSERT(kept <= ROWS);
        free(left);
        results_free(eval_complete(&o));
        again = eval_text_of(p.samples);
        CU_ASSERT_STRING_EQUAL(again, whole); /* the same rows in the same order */
        CU_ASSERT_EQUAL(sorted_lines(again, lines), ROWS);
        for (size_t k = 1; k < ROWS; k++)
            CU_ASSERT_NOT_EQUAL(strcmp(lines[k - 1], lines[k]), 0);
        free(again);
    }
    CU_ASSERT(killed >= 10);
    CU_ASSERT(in_grading >= 1);
    free(whole);
    eval_place_close(&p);
}

static void test_cancelled_runs_go_on(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    static volatile sig_atomic_t cancel;
    cancel = 1;
    o.generate.cancel = &cancel;
    eval_expect(&o, SNAP_E_CANCELLED, "of 54 samples are kept");
    cancel = 0;
    results *r = eval_complete(&o);
    results_free(r);
    eval_place_close(&p);
}

/* If an arm cannot be opened, no sample exists, and the folder can be used for the corrected
 * arm. */
static void test_an_empty_run_can_be_corrected(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p), typo = o;
    typo.arms.items[1] = "b=replay:/nowhere.jsonl";
    eval_expect(&typo, SNAP_E_IO, "arm 'b': ");
    results_free(eval_complete(&o));
    eval_place_close(&p);
}

static void test_a_run_has_one_process(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    results_free(eval_complete(&o));
    char lock[100];
    int fd;
    (void)snprintf(lock, sizeof lock, "%s/journal.lock", p.run);
    CU_ASSERT_EQUAL_FATAL(fs_lock(lock, &fd, NULL), SNAP_OK);
    eval_expect(&o, SNAP_E_IO, "is held by process");
    (void)close(fd);
    results_free(eval_complete(&o));
    eval_place_close(&p);
}

static void test_a_run_can_grow(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    o.samples = 1;
    o.limit = 4;
    results_free(eval_complete(&o));
    o.samples = SAMPLES;
    o.limit = 0;
    results *grown = eval_complete(&o);
    js *row = js_copy(js_at(results_section(grown, "evals"), 0));
    results_free(grown);
    temp_folder_remove(p.run);
    results *at_once = eval_complete(&o);
    CU_ASSERT(js_equal(row, js_at(results_section(at_once, "evals"), 0)));
    results_free(at_once);
    js_free(row);
    eval_place_close(&p);
}

/* The number of findings of the audit about reasons of failures. */
static size_t reason_findings(const eval_place *p, const results *r) {
    verify_findings f = {0};
    buf samples = {0};
    arena mem = {0};
    run_record run;
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(fs_read(p->samples, &samples, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(run_read(&run, r, &mem, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(verify_samples(r, &samples, "samples.jsonl", &f, NULL), SNAP_OK);
    verify_quality(&run, &f);
    for (size_t i = 0; i < js_len(f.rows); i++)
        n += strstr(js_get_str(js_at(f.rows, i), "what"), "reasons") != NULL;
    verify_release(&f);
    arena_release(&mem);
    buf_release(&samples);
    return n;
}

/* A result states why samples failed, and the audit counts the reasons again. */
static void expect_reasons(const eval_place *p, const results *r, js *arm) {
    js *reasons = js_get_array(arm, "failures"), *first = js_at(reasons, 0);
    CU_ASSERT_EQUAL_FATAL(js_len(reasons), 1); /* the messages differ in numbers only */
    CU_ASSERT_EQUAL(js_get_int(first, "count", -1), 4 * SAMPLES);
    CU_ASSERT_PTR_NOT_NULL(strstr(js_get_str(first, "reason"), "q5"));
    CU_ASSERT_EQUAL(reason_findings(p, r), 0);
    char *was = strdup(js_get_str(first, "reason"));
    CU_ASSERT_TRUE(js_set_int(first, "count", 1));
    CU_ASSERT_EQUAL(reason_findings(p, r), 2);
    CU_ASSERT_TRUE(js_set_int(first, "count", 4 * SAMPLES) &&
                   js_set_str(first, "reason", "the dog ate it"));
    CU_ASSERT_EQUAL(reason_findings(p, r), 1);
    CU_ASSERT_TRUE(js_set_str(first, "reason", was));
    free(was);
}

/* Failed samples are rows. They are counted, not scored, and tried again. */
static void test_failures_are_retried(void) {
    eval_place p;
    eval_place_open(&p);
    eval_options o = eval_options_of(&p);
    char *path = strchr(p.arm_b, ':') + 1, *rows = eval_text_of(path);
    buf half = {0};
    (void)buf_append(&half, rows, (size_t)(strstr(rows, "\"q5\"") - rows));
    while (half.len && half.data[half.len - 1] != '\n')
        half.len--;
    eval_write_text(path, &half);
    buf_release(&half);
    results *r = eval_complete(&o);
    const js *b = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1);
    CU_ASSERT_EQUAL(js_get_int(b, "failed", -1), 4 * SAMPLES);
    expect_reasons(&p, r, js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1));
    CU_ASSERT_EQUAL(js_get_int(b, "scored", -1), 5 * SAMPLES);
    CU_ASSERT_DOUBLE_EQUAL(eval_number(b, "accuracy_pct"), 60, 1e-9); /* problems 0 and 3 of 0..4 */
    results_free(r);
    buf all = {0};
    (void)buf_puts(&all, rows);
    eval_write_text(path, &all);
    buf_release(&all);
    r = eval_complete(&o);
    b = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1);
    CU_ASSERT_EQUAL(js_get_int(b, "failed", -1), 0);
    CU_ASSERT_PTR_NULL(js_get_array(b, "failures"));
    CU_ASSERT_DOUBLE_EQUAL(eval_number(b, "accuracy_pct"), 100 * 6 / 9.0, 1e-9);
    results_free(r);
    free(rows);
    eval_place_close(&p);
}

CU_TestInfo tests_eval_continued[] = {
    {"killed runs can be continued", test_killed_runs_go_on},
    {"cancelled runs can be continued", test_cancelled_runs_go_on},
    {"a run without samples can be corrected", test_an_empty_run_can_be_corrected},
    {"a run has one process", test_a_run_has_one_process},
    {"a run can grow", test_a_run_can_grow},
    {"failures are retried", test_failures_are_retried},
    CU_TEST_INFO_NULL,
};
