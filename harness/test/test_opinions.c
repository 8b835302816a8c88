/* Tests second opinions of a judge model, from recorded answers to the result, its audit, a second
 * session and a merge. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/term.h"
#include "base/test/temp_folder.h"
#include "base/text.h"
#include "harness/audit/bundle.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/merge.h"
#include "harness/view/eval_text.h"

static char folder[TEMP_FOLDER], task[80], run[80], arms[2][120], judge[120];

static void put(const char *name, const char *text) {
    temp_folder_put(folder, "", name, text, strlen(text));
}

typedef struct {
    const char *problem, *text;
    int sample;
} answer;

static void record(const char *name, const answer *a, size_t n) {
    buf rows = {0};
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(&rows,
                         "{\"task\": \"names\", \"problem\": \"%s\", \"sample\": %d, \"response\": "
                         "\"%s\", \"finish_reason\": \"stop\"}\n",
                         a[i].problem, a[i].sample, a[i].text);
    put(name, buf_str(&rows));
    buf_release(&rows);
}

/* Four problems. By the rules, arm a has one right answer, arm b two. Arm a has two undecided
 * answers, arm b one. */
static const answer of_a[] = {{"p1", "\\\\boxed{4}", 0},
                              {"p2", "\\\\boxed{\\\\text{Ann Lee}}", 0},
                              {"p3", "\\\\boxed{\\\\text{the unit interval}}", 0},
                              {"p4", "\\\\boxed{5}", 0}};
static const answer of_b[] = {{"p1", "\\\\boxed{4}", 0},
                              {"p2", "\\\\boxed{\\\\text{Ann}}", 0},
                              {"p3", "\\\\boxed{\\\\text{the unit interval}}", 0},
                              {"p4", "\\\\boxed{5}", 0}};

static void open_folder(void) {
    temp_folder_open(folder, "opinions");
    (void)snprintf(task, sizeof task, "%s/names.json", folder);
    (void)snprintf(run, sizeof run, "%s/run", folder);
    (void)snprintf(arms[0], sizeof arms[0], "a=replay:%s/a.jsonl", folder);
    (void)snprintf(arms[1], sizeof arms[1], "b=replay:%s/b.jsonl", folder);
    (void)snprintf(judge, sizeof judge, "replay:%s/judge.jsonl,model=j", folder);
    term_set_quiet(true);
    put("names.json", "{\"task\": \"names\", \"data\": \"q.jsonl\", \"id\": \"id\", \"prompt\": "
                      "\"{{q}}\", \"answer\": \"{{a}}\", \"grader\": \"mathematics\"}");
    put("q.jsonl", "{\"id\": \"p1\", \"q\": \"2+2?\", \"a\": \"4\"}\n"
                   "{\"id\": \"p2\", \"q\": \"Who?\", \"a\": \"\\\\text{Ann}\"}\n"
                   "{\"id\": \"p3\", \"q\": \"Where?\", \"a\": \"[0,1]\"}\n"
                   "{\"id\": \"p4\", \"q\": \"2+2?\", \"a\": \"4\"}\n");
    record("a.jsonl", of_a, 4);
    record("b.jsonl", of_b, 4);
}

static void close_folder(void) {
    temp_folder_remove(folder);
}

static eval_options options_of(void) {
    return (eval_options){.suite = task,
                          .arms = {.items = {arms[0], arms[1]}, .n = 2},
                          .out = run,
                          .samples = 1,
                          .seed = 1,
                          .max_lost_pct = -1,
                          .temperature = -1};
}

static results *complete(const eval_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (eval_run(o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static const js *row_of(const results *r) {
    return js_at(results_section(r, "evals"), 0);
}

static const js *opinions_of(const results *r, size_t arm) {
    return js_get_object(js_at(js_get_array(row_of(r), "arms"), arm), "opinions");
}

static void expect_counts(const results *r, size_t arm, int64_t undecided, int64_t asked,
                          int64_t accepted, int64_t refused, double accuracy) {
    const js *o = opinions_of(r, arm);
    CU_ASSERT_EQUAL(js_get_int(o, "undecided", -1), undecided);
    CU_ASSERT_EQUAL(js_get_int(o, "asked", -1), asked);
    CU_ASSERT_EQUAL(js_get_int(o, "accepted", -1), accepted);
    CU_ASSERT_EQUAL(js_get_int(o, "refused", -1), refused);
    CU_ASSERT_EQUAL(js_get_int(o, "none", -1), undecided - accepted - refused);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(o, "accuracy_pct", -1), accuracy, 1e-9);
}

/* The accuracy by the rules, whatever the judge model says. */
static void expect_rules(const results *r) {
    const js *list = js_get_array(row_of(r), "arms");
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(list, 0), "accuracy_pct", -1), 25, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(js_at(list, 1), "accuracy_pct", -1), 50, 1e-9);
    const js *pair = js_at(js_get_array(row_of(r), "pairs"), 0);
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(pair, "delta_pp", -1), 25, 1e-9);
}

/* The number of findings of an audit that contain a text. */
static int audit(const char *dir, const results *r, const char *message) {
    buf text = {0};
    verify_findings f = {0};
    arena mem = {0};
    run_record all;
    char *path = fs_join(dir, "samples.jsonl");
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(verify_samples(r, &text, "samples.jsonl", &f, NULL), SNAP_OK);
    CU_ASSERT_FATAL(run_read(&all, r, &mem, NULL) == SNAP_OK);
    verify_quality(&all, &f);
    CU_ASSERT_FALSE(f.failed);
    arena_release(&mem);
    int found = 0;
    for (size_t i = 0; i < js_len(f.rows); i++)
        found += strstr(js_get_str(js_at(f.rows, i), "what"), message) != NULL;
    verify_release(&f);
    buf_release(&text);
    free(path);
    return found;
}

static void count_lines(const char *dir, const char *word, size_t *n) {
    buf text = {0};
    char *path = fs_join(dir, "samples.jsonl");
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    *n = 0;
    for (const char *at = buf_str(&text); (at = strstr(at, word)); at++)
        ++*n;
    buf_release(&text);
    free(path);
}

/* Without a judge model, undecided answers are only marked. */
static void test_off(void) {
    size_t n;
    open_folder();
    eval_options o = options_of();
    results *r = complete(&o);
    expect_rules(r);
    CU_ASSERT_PTR_NULL(opinions_of(r, 0));
    CU_ASSERT_PTR_NULL(js_get_object(row_of(r), "judge"));
    count_lines(run, "\"undecided\":true", &n);
    CU_ASSERT_EQUAL(n, 3);
    count_lines(run, "\"opinion\"", &n);
    CU_ASSERT_EQUAL(n, 0);
    results_free(r);
    close_folder();
}

/* Opinions are counted and kept, and those that are missing are asked again. */
static void test_opinions(void) {
    static const answer first[] = {{"p2", "YES, the same person", 0}, {"p3", "Hard to say", 0}};
    static const answer second[] = {{"p2", "NO", 0}, {"p3", "\\\\boxed{YES}", 0}, {"p3", "NO", 1}};
    open_folder();
    record("judge.jsonl", first, 2);
    eval_options o = options_of();
    o.judge_model = judge;
    results *r = complete(&o);
    expect_rules(r);
    expect_counts(r, 0, 2, 2, 1, 0, 50);
    expect_counts(r, 1, 1, 1, 0, 0, 50); /* the recording has no reply: a failed request */
    const js *pair = js_get_object(js_at(js_get_array(row_of(r), "pairs"), 0), "opinions");
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(pair, "delta_pp", -1), 0, 1e-9);
    const js *by = js_get_object(row_of(r), "judge");
    CU_ASSERT_STRING_EQUAL(js_get_str(by, "model"), "j");
    CU_ASSERT_STRING_EQUAL(js_get_str(by, "sampling"), "temperature 0, top_p 1, max_tokens 16000");
    CU_ASSERT_STRING_EQUAL(js_get_str(by, "source"), "replay:judge.jsonl");
    CU_ASSERT_EQUAL(audit(run, r, ""), 0);
    buf text = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &text, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), "second opinions"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&text), ", judge model j"));
    buf_release(&text);
    results_free(r);
    /* The same command asks again where there was no opinion. The earlier YES is kept. */
    record("judge.jsonl", second, 3);
    r = complete(&o);
    expect_counts(r, 0, 2, 2, 2, 0, 75);
    expect_counts(r, 1, 1, 1, 0, 1, 50);
    results_free(r);
    /* Another judge is asked about all of them. */
    char other[140];
    (void)snprintf(other, sizeof other, "%s,temperature=1", judge);
    o.judge_model = other;
    r = complete(&o);
    expect_counts(r, 0, 2, 2, 1, 1, 50);
    expect_rules(r);
    CU_ASSERT_EQUAL(audit(run, r, ""), 0);
    results_free(r);
    /* Grading again keeps the opinions and the judge's settings. */
    o.judge_model = NULL;
    o.regrade = true;
    r = complete(&o);
    expect_counts(r, 0, 2, 2, 1, 1, 50);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_get_object(row_of(r), "judge"), "sampling"),
                           "temperature 1, top_p 1, max_tokens 16000");
    js *arm = js_at(js_get_array(row_of(r), "arms"), 0);
    CU_ASSERT_TRUE(js_set_num(js_get_object(arm, "opinions"), "accuracy_pct", 75));
    CU_ASSERT_EQUAL(audit(run, r, "with second opinions of 75.0000"), 1);
    CU_ASSERT_TRUE(js_set_int(js_get_object(arm, "opinions"), "accepted", 2));
    CU_ASSERT_EQUAL(audit(run, r, "contradict each other"), 1);
    CU_ASSERT_EQUAL(audit(run, r, "2 accepted samples, but samples.jsonl has 1"), 1);
    results_free(r);
    close_folder();
}

/* A server that cannot be reached gives no opinions, and the run still has its result. */
static void test_no_server(void) {
    open_folder();
    eval_options o = options_of();
    o.judge_model = "http://127.0.0.1:9/v1,model=j,retries=0,timeout=1";
    results *r = complete(&o);
    expect_rules(r);
    const js *list = opinions_of(r, 0);
    CU_ASSERT_EQUAL(js_get_int(list, "accepted", -1), 0);
    CU_ASSERT_EQUAL(js_get_int(list, "refused", -1), 0);
    CU_ASSERT_EQUAL(js_get_int(list, "none", -1), 2);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_get_object(row_of(r), "judge"), "host"), "127.0.0.1:9");
    CU_ASSERT_EQUAL(audit(run, r, ""), 0);
    results_free(r);
    close_folder();
}

/* A merge joins the opinions of its shards. Shards of different judges are refused. */
static void test_merge(void) {
    static const answer replies[] = {{"p2", "YES", 0}, {"p3", "NO", 0}, {"p3", "YES", 1}};
    char parts[2][80], whole[80];
    open_folder();
    record("judge.jsonl", replies, 3);
    (void)snprintf(whole, sizeof whole, "%s/whole", folder);
    eval_options o = options_of();
    o.judge_model = judge;
    for (int i = 0; i < 2; i++) {
        results *none;
        (void)snprintf(parts[i], sizeof parts[i], "%s/part%d", folder, i + 1);
        o.out = parts[i];
        o.shard = i ? "2/2" : "1/2";
        CU_ASSERT_EQUAL_FATAL(eval_run(&o, NULL, &none, NULL), SNAP_OK);
    }
    merge_options m = {.shards = (const char *[]){parts[0], parts[1]}, .n = 2, .out = whole};
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(merge_shards(&m, NULL, &r, &err), SNAP_OK);
    expect_counts(r, 0, 2, 2, 1, 1, 50);
    expect_counts(r, 1, 1, 1, 1, 0, 75);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_get_object(row_of(r), "judge"), "model"), "j");
    CU_ASSERT_EQUAL(audit(whole, r, ""), 0);
    results_free(r);
    char other[140];
    results *none;
    (void)snprintf(other, sizeof other, "%s,temperature=1", judge);
    o.judge_model = other;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, NULL, &none, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(merge_shards(&m, NULL, &r, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another shard by 'j'"));
    close_folder();
}

CU_TestInfo tests_opinions[] = {
    {"without a judge model, answers are only marked", test_off},
    {"second opinions", test_opinions},
    {"no server of a judge", test_no_server},
    {"merged opinions", test_merge},
    CU_TEST_INFO_NULL,
};
