/* Tests tasks with several metrics and tasks that a model judges, from recorded answers to result
 * rows. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/temp_folder.h"
#include "base/text.h"
#include "harness/audit/bundle.h"
#include "harness/eval/eval_run.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

/* ---- a folder with data, recordings and runs ---- */

typedef struct {
    char dir[TEMP_FOLDER];
    char run[80], samples[120], arms[3][140];
} place;

static void place_open(place *p) {
    *p = (place){0};
    temp_folder_open(p->dir, "metrics");
    (void)snprintf(p->run, sizeof p->run, "%s/run", p->dir);
    (void)snprintf(p->samples, sizeof p->samples, "%s/samples.jsonl", p->run);
    (void)snprintf(p->arms[0], sizeof p->arms[0], "a=replay:%s/a.jsonl", p->dir);
    (void)snprintf(p->arms[1], sizeof p->arms[1], "b=replay:%s/b.jsonl", p->dir);
    (void)snprintf(p->arms[2], sizeof p->arms[2], "replay:%s/judge.jsonl,model=j", p->dir);
    term_set_quiet(true);
}

static void place_close(place *p) {
    temp_folder_remove(p->dir);
}

static void put(const place *p, const char *name, const char *text) {
    temp_folder_put(p->dir, "", name, text, strlen(text));
}

typedef struct {
    const char *problem, *text;
    int sample;
} answer;

static void record(const place *p, const char *name, const char *task, const answer *a, size_t n) {
    buf rows = {0};
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(&rows,
                         "{\"task\": \"%s\", \"problem\": \"%s\", \"sample\": %d, \"response\": "
                         "\"%s\", \"finish_reason\": \"stop\", \"completion_tokens\": 9}\n",
                         task, a[i].problem, a[i].sample, a[i].text);
    put(p, name, buf_str(&rows));
    buf_release(&rows);
}

static eval_options options_of(const place *p, const char *suite) {
    return (eval_options){.report = run_report_write,
                          .suite = suite,
                          .data = p->dir,
                          .arms = {.items = {p->arms[0], p->arms[1]}, .n = 2},
                          .out = p->run,
                          .samples = 1,
                          .seed = 1,
                          .temperature = -1};
}

static results *complete(const eval_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (eval_run(o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static void expect(const eval_options *o, snap_status status, const char *message) {
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(eval_run(o, NULL, &r, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    results_free(r);
}

static const js *row_of(const results *r, size_t i) {
    return js_at(results_section(r, "evals"), i);
}

static double arm_number(const js *row, size_t arm, const char *key) {
    return js_get_num(js_at(js_get_array(row, "arms"), arm), key, -1e9);
}

static const js *pair_of(const js *row) {
    return js_at(js_get_array(row, "pairs"), 0);
}

static char *text_of(const char *path) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    return buf_steal(&text);
}

/* The audit finds that the result follows from its samples. */
static void expect_consistent(const place *p, results *r) {
    buf text = {0};
    verify_findings f = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL(fs_read(p->samples, &text, NULL), SNAP_OK);
    verify_document(r, &f);
    CU_ASSERT_EQUAL(verify_samples(r, &text, "samples.jsonl", &f, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(verify_status(&f, &err), SNAP_OK);
    if (err.code != SNAP_OK)
        printf("\n%s\n", err.text);
    verify_release(&f);
    buf_release(&text);
}

/* The audit finds a change of the accuracy of row @i. */
static void expect_found(const place *p, const results *r, size_t i) {
    buf text = {0};
    verify_findings f = {0};
    snap_err err = {0};
    js *arm = js_at(js_get_array(row_of(r, i), "arms"), 0);
    double was = js_get_num(arm, "accuracy_pct", 0);
    CU_ASSERT_EQUAL(fs_read(p->samples, &text, NULL), SNAP_OK);
    CU_ASSERT(js_set_num(arm, "accuracy_pct", was + 0.5));
    CU_ASSERT_EQUAL(verify_samples(r, &text, "samples.jsonl", &f, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(verify_status(&f, &err), SNAP_E_WRONG);
    CU_ASSERT(js_set_num(arm, "accuracy_pct", was));
    verify_release(&f);
    buf_release(&text);
}

/* ---- several metrics ---- */

/* Problems with 1, 2 and 3 instructions: no comma; quotation marks around the answer; a title in
 * << >>. Each answer is checked against all instructions of its problem. */
static const char kPrompts[] =
    "{\"key\": 1, \"prompt\": \"a\", \"instruction_id_list\": [\"punctuation:no_comma\"], "
    "\"kwargs\": "
    "[{}]}\n"
    "{\"key\": 2, \"prompt\": \"b\", \"instruction_id_list\": [\"punctuation:no_comma\", "
    "\"startend:quotation\"], \"kwargs\": [{}, {}]}\n"
    "{\"key\": 3, \"prompt\": \"c\", \"instruction_id_list\": [\"punctuation:no_comma\", "
    "\"startend:quotation\", \"detectable_format:title\"], \"kwargs\": [{}, {}, {}]}\n";

/* Arm a follows 1 of 1, 1 of 2 and 3 of 3 instructions, both strictly and loosely. Arm b follows
 * strictly 0 of 1, 1 of 2 and 1 of 3. Loosely it follows 1 of 1 in the first problem, because loose
 * grading also tries the answer without its first line. */
static void test_metrics(void) {
    static const answer a[] = {{"1", "yes", 0}, {"2", "no quotes", 0}, {"3", "\\\"<<t>> x\\\"", 0}};
    static const answer b[] = {{"1", "Sure, so:\\nyes", 0}, {"2", "no quotes", 0}, {"3", "x", 0}};
    static const char *const names[] = {"ifeval", "ifeval:prompt_loose",
                                        "ifeval:instruction_strict", "ifeval:instruction_loose"};
    static const double of_a[] = {2 / 3.0, 2 / 3.0, 5 / 6.0, 5 / 6.0};
    static const double of_b[] = {0, 1 / 3.0, 2 / 6.0, 3 / 6.0};
    place p;
    place_open(&p);
    put(&p, "ifeval.jsonl", kPrompts);
    record(&p, "a.jsonl", "ifeval", a, 3);
    record(&p, "b.jsonl", "ifeval", b, 3);
    eval_options o = options_of(&p, "ifeval");
    results *r = complete(&o);
    CU_ASSERT_EQUAL_FATAL(js_len(results_section(r, "evals")), 4);
    for (size_t i = 0; i < 4; i++) {
        const js *row = row_of(r, i);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "task"), names[i]);
        CU_ASSERT_DOUBLE_EQUAL(arm_number(row, 0, "accuracy_pct"), 100 * of_a[i], 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(arm_number(row, 1, "accuracy_pct"), 100 * of_b[i], 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(js_get_num(pair_of(row), "delta_pp", 0), 100 * (of_b[i] - of_a[i]),
                               1e-9);
        CU_ASSERT(i == 0 || !js_get(pair_of(row), "p_holm"));
    }
    CU_ASSERT_STRING_EQUAL(js_get_str(row_of(r, 0), "metric"), "prompt_strict");
    /* The ratio's standard error by its formula: sqrt(sum of (w (x - R))^2 * n / (n - 1)) / (sum of
     * w). */
    double ratio = 5 / 6.0, sum = 0;
    const double followed[] = {1, 1, 3};
    for (int i = 0; i < 3; i++)
        sum += pow(followed[i] - ratio * (i + 1), 2);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 2), 0, "se_pct"), 100 * sqrt(sum * 3 / 2) / 6,
                           1e-9);
    const js *odd = js_get_object(pair_of(row_of(r, 2)), "discordant");
    CU_ASSERT(js_get_int(odd, "baseline_only", 0) == 2 && js_get_int(odd, "arm_only", -1) == 0);
    char *samples = text_of(p.samples);
    CU_ASSERT_PTR_NOT_NULL(strstr(samples, "\"scores\":{\"instruction_loose\":1.0,\"instruction_"
                                           "strict\":0.0,\"prompt_loose\":1.0}"));
    free(samples);
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "ifeval:instruction_loose"));
    buf_release(&view);
    expect_consistent(&p, r);
    for (size_t i = 0; i < 4; i++)
        expect_found(&p, r, i);
    results_free(r);
    place_close(&p);
}

/* ---- games ---- */

static const char kQuestions[] =
    "{\"uid\": \"q1\", \"category\": \"hard_prompt\", \"prompt\": \"Why?\"}\n"
    "{\"uid\": \"q2\", \"category\": \"hard_prompt\", \"prompt\": \"How?\"}\n";
static const answer of_a[] = {{"q1", "a1", 0}, {"q2", "a2", 0}};
static const answer of_b[] = {{"q1", "b1", 0}, {"q2", "b2", 0}};

static void arena_open(place *p) {
    place_open(p);
    put(p, "question.jsonl", kQuestions);
    record(p, "a.jsonl", "arena_hard", of_a, 2);
    record(p, "b.jsonl", "arena_hard", of_b, 2);
}

/* Games against the first arm: b clearly wins one question and ties the other. The games of arm 1
 * are samples 2 and 3. */
static void test_games_against_the_first_arm(void) {
    static const answer judge[] = {{"q1", "Better: [[B>>A]]", 2},
                                   {"q1", "[[A>B]]", 3},
                                   {"q2", "[[A=B]]", 2},
                                   {"q2", "<think>[[A>B]]</think>[[B=A]]", 3}};
    place p;
    arena_open(&p);
    record(&p, "judge.jsonl", "arena_hard", judge, 4);
    eval_options o = options_of(&p, "arena_hard");
    expect(&o, SNAP_E_USAGE, "give --judge-model");
    o.judge_model = p.arms[2];
    results *r = complete(&o);
    const js *row = row_of(r, 0);
    CU_ASSERT_EQUAL(js_len(results_section(r, "evals")), 1);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "metric"), "win_rate");
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row, 0, "accuracy_pct"), 50, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row, 1, "accuracy_pct"), 100 * (4 + 1) / 6.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(pair_of(row), "delta_pp", 0), 100 * (5 / 6.0 - 0.5), 1e-9);
    expect_consistent(&p, r);
    expect_found(&p, r, 0);
    results_free(r);
    char *samples = text_of(p.samples);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(samples, "\"judgment\":\"Better: [[B>>A]]\",\"verdict\":\"B>>A\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(samples, "\"judge\":\"j\""));
    free(samples);
    /* These answers have verdicts already. So nothing is sent to this judge model, which could not
     * answer. */
    record(&p, "judge.jsonl", "arena_hard", of_a, 1);
    r = complete(&o);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 0), 1, "accuracy_pct"), 100 * 5 / 6.0, 1e-9);
    results_free(r);
    o.regrade = true;
    o.judge_model = NULL;
    r = complete(&o);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 0), 1, "accuracy_pct"), 100 * 5 / 6.0, 1e-9);
    results_free(r);
    place_close(&p);
}

/* With the baseline of the data set, both arms play. An answer without a verdict of the judge is
 * not scored and is tried again. */
static void test_games_against_the_baseline(void) {
    static const answer judge[] = {{"q1", "[[A>B]]", 0}, {"q1", "[[A>B]]", 1}, {"q1", "[[B>A]]", 2},
                                   {"q1", "[[A>B]]", 3}, {"q2", "[[A>B]]", 0}, {"q2", "[[B>A]]", 1},
                                   {"q2", "[[A=B]]", 2}, {"q2", "no idea", 3}};
    place p;
    char folder[120];
    arena_open(&p);
    (void)snprintf(folder, sizeof folder, "%s/model_answer", p.dir);
    CU_ASSERT_EQUAL_FATAL(fs_mkdirs(folder, NULL), SNAP_OK);
    put(&p, "model_answer/o3-mini-2025-01-31.jsonl",
        "{\"uid\": \"q1\", \"messages\": [{\"content\": {\"answer\": \"r1\"}}]}\n"
        "{\"uid\": \"q2\", \"messages\": [{\"content\": {\"answer\": \"r2\"}}]}\n");
    record(&p, "judge.jsonl", "arena_hard", judge, 8);
    eval_options o = options_of(&p, "arena_hard");
    o.judge_model = p.arms[2];
    results *r = complete(&o);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 0), 0, "accuracy_pct"), 25, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 0), 1, "accuracy_pct"), 100, 1e-9);
    CU_ASSERT_EQUAL(arm_number(row_of(r, 0), 1, "failed"), 1);
    CU_ASSERT_EQUAL(js_get_int(pair_of(row_of(r, 0)), "problems", 0), 1);
    results_free(r);
    answer now[8];
    memcpy(now, judge, sizeof now);
    now[7].text = "[[B>>A]]";
    record(&p, "judge.jsonl", "arena_hard", now, 8);
    r = complete(&o);
    CU_ASSERT_DOUBLE_EQUAL(arm_number(row_of(r, 0), 1, "accuracy_pct"), 100 * 2.5 / 6, 1e-9);
    CU_ASSERT_EQUAL(arm_number(row_of(r, 0), 1, "failed"), 0);
    results_free(r);
    o.judge_model = "elsewhere";
    expect(&o, SNAP_E_USAGE, "--judge-model");
    place_close(&p);
}

CU_TestInfo tests_metrics[] = {
    {"several metrics", test_metrics},
    {"games against the first arm", test_games_against_the_first_arm},
    {"games against the baseline", test_games_against_the_baseline},
    CU_TEST_INFO_NULL,
};
