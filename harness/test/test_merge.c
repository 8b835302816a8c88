/* Merging the shards of a run must give the same samples and tables as one process. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/eval/merge.h"
#include "harness/eval/merge_arms.h"
#include "harness/eval/shard.h"
#include "harness/view/run_report.h"

enum { PROBLEMS = 11, SAMPLES = 3, SHARDS = 4 };

static char folder[48], arm_a[120], arm_b[120];

/* A path in the folder. Static memory for eight paths at a time. */
static const char *in_folder(const char *name) {
    static char paths[8][120];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, buf *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(in_folder(name), buf_str(text), text->len, NULL),
                          SNAP_OK);
    buf_release(text);
}

/* @wrong: the first of every @wrong answers is wrong. */
static void record(const char *name, int wrong) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS * SAMPLES; i++)
        (void)buf_printf(&rows,
                         "{\"task\":\"synth_aime\",\"problem\":\"q%d\",\"sample\":%d,"
                         "\"response\":\"way %d, \\\\boxed{%d}\",\"finish_reason\":\"stop\","
                         "\"completion_tokens\":%d}\n",
                         i / SAMPLES, i % SAMPLES, i, i % wrong ? i / SAMPLES : 999,
                         90 + i * 7 % 40);
    write_file(name, &rows);
}

static void folder_open(void) {
    buf rows = {0};
    (void)snprintf(folder, sizeof folder, "/tmp/snapmla-merge-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    write_file("problems.jsonl", &rows);
    record("a.jsonl", 5);
    record("b.jsonl", 3);
    (void)snprintf(arm_a, sizeof arm_a, "a=replay:%s", in_folder("a.jsonl"));
    (void)snprintf(arm_b, sizeof arm_b, "b=replay:%s", in_folder("b.jsonl"));
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void folder_close(void) {
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static eval_options options_of(const char *out, const char *shard) {
    return (eval_options){.report = run_report_write,
                          .suite = "synth_aime",
                          .data = in_folder("problems.jsonl"),
                          .arms = {.items = {arm_a, arm_b}, .n = 2},
                          .out = in_folder(out),
                          .shard = shard,
                          .samples = SAMPLES,
                          .seed = 1,
                          .temperature = -1};
}

static void evaluate(const eval_options *o, results **out) {
    snap_err err = {0};
    if (eval_run(o, NULL, out, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(err.code, SNAP_OK);
}

static char shard_names[SHARDS][16];
static const char *shard_paths[SHARDS];

static void make_shards(void) {
    for (int i = 0; i < SHARDS; i++) {
        char part[16];
        results *none = NULL;
        (void)snprintf(part, sizeof part, "%d/%d", i + 1, SHARDS);
        (void)snprintf(shard_names[i], sizeof shard_names[i], "s%d", i + 1);
        eval_options o = options_of(shard_names[i], part);
        evaluate(&o, &none);
        CU_ASSERT_PTR_NULL(none);
        CU_ASSERT_FALSE(fs_exists(in_folder("s1/run.json")));
    }
    static char kept[SHARDS][120];
    for (int i = 0; i < SHARDS; i++) { /* in another order */
        int at = (i * 3 + 2) % SHARDS;
        (void)snprintf(kept[i], sizeof kept[i], "%s", in_folder(shard_names[at]));
        shard_paths[i] = kept[i];
    }
}

static merge_options merging(size_t n, const char *out) {
    return (merge_options){
        .report = run_report_write, .shards = shard_paths, .n = n, .out = in_folder(out)};
}

static results *merged(const merge_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (merge_shards(o, NULL, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static void expect(const merge_options *o, snap_status status, const char *message) {
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(merge_shards(o, NULL, &r, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    CU_ASSERT_PTR_NULL(r);
}

static char *text_of(const char *path) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    return buf_steal(&text);
}

static void expect_same_file(const char *name) {
    char one[40], other[40];
    (void)snprintf(one, sizeof one, "whole/%s", name);
    (void)snprintf(other, sizeof other, "merged/%s", name);
    char *a = text_of(in_folder(one)), *b = text_of(in_folder(other));
    CU_ASSERT_STRING_EQUAL(a, b);
    free(a);
    free(b);
}

/* The Markdown report without the table of sources, which has dates and paths. */
static char *tables_of(const char *name) {
    char *text = text_of(in_folder(name)), *sources = strstr(text, "\n## Sources of the figures");
    CU_ASSERT_PTR_NOT_NULL(sources);
    if (sources)
        *sources = '\0';
    return text;
}

static void test_merged_is_whole(void) {
    results *whole = NULL;
    folder_open();
    eval_options o = options_of("whole", NULL);
    evaluate(&o, &whole);
    make_shards();
    merge_options m = merging(SHARDS, "merged");
    results *r = merged(&m);
    CU_ASSERT(js_equal(results_section(whole, "evals"), results_section(r, "evals")));
    expect_same_file("samples.jsonl");
    expect_same_file("parity.tex");
    char *a = tables_of("whole/report.md"), *b = tables_of("merged/report.md");
    CU_ASSERT_STRING_EQUAL(a, b);
    free(a);
    free(b);
    results_free(r);
    results_free(whole);
    folder_close();
}

/* One more shard is merged each time. The last merge is complete. */
static void test_merge_again(void) {
    folder_open();
    make_shards();
    merge_options m = merging(1, "so-far");
    for (m.n = 1; m.n <= SHARDS; m.n++) {
        m.partial = true;
        results *r = merged(&m);
        const js *row = js_at(results_section(r, "evals"), 0);
        const js *arm = js_at(js_get_array(row, "arms"), 0);
        int64_t samples = js_get_int(arm, "samples", -1);
        if (m.n < SHARDS)
            CU_ASSERT(samples > 0 && samples < PROBLEMS * SAMPLES)
        else
            CU_ASSERT_EQUAL(samples, PROBLEMS * SAMPLES)
        results_free(r);
    }
    folder_close();
}

/* The merged run can be continued by eval. After that, no merge may overwrite it. */
static void test_eval_goes_on(void) {
    folder_open();
    make_shards();
    merge_options m = merging(2, "run");
    m.partial = true;
    results_free(merged(&m));
    results *r = NULL;
    eval_options o = options_of("run", NULL);
    evaluate(&o, &r);
    const js *arm = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1);
    CU_ASSERT_EQUAL(js_get_int(arm, "samples", -1), PROBLEMS * SAMPLES);
    results_free(r);
    expect(&m, SNAP_E_USAGE, "has samples that were generated there");
    folder_close();
}

static void test_refusals(void) {
    folder_open();
    make_shards();
    merge_options m = merging(3, "run");
    expect(&m, SNAP_E_USAGE, "is missing: merge all 4, or give --partial");
    m = merging(2, "run");
    m.out = shard_paths[1];
    expect(&m, SNAP_E_USAGE, "is one of the shards");
    const char *twice[] = {shard_paths[0], shard_paths[0]};
    m = merging(2, "run");
    m.shards = twice;
    expect(&m, SNAP_E_USAGE, "are the same folder");
    char elsewhere[120];
    (void)snprintf(elsewhere, sizeof elsewhere, "%s", in_folder("elsewhere"));
    const char *others[] = {shard_paths[0], elsewhere};
    m.shards = others;
    expect(&m, SNAP_E_USAGE, "has no run");
    results *r = NULL;
    eval_options o = options_of("elsewhere", NULL);
    evaluate(&o, &r);
    results_free(r);
    expect(&m, SNAP_E_USAGE, "made without --shard");
    char again[120];
    (void)snprintf(again, sizeof again, "%s", in_folder("again"));
    o = options_of("again", "3/4");
    evaluate(&o, &r);
    others[0] = in_folder("s3");
    others[1] = again;
    expect(&m, SNAP_E_USAGE, "are both shard 3/4");
    o = options_of("other", "2/4");
    o.seed = 2;
    evaluate(&o, &r);
    others[1] = in_folder("other");
    expect(&m, SNAP_E_USAGE, "belong to different runs");
    CU_ASSERT_FALSE(fs_exists(in_folder("run/samples.jsonl")));
    folder_close();
}

/* Every cell (one sample of one problem by one arm) belongs to exactly one shard, and the shards
 * have nearly equal sizes. */
static void test_shards_partition(void) {
    task_problem problems[PROBLEMS] = {{0}};
    task_set set = {.n = PROBLEMS, .problems = problems};
    for (size_t i = 0; i < PROBLEMS; i++)
        problems[i].conversation = i;
    eval_task task = {.set = set, .samples = SAMPLES};
    eval_plan p = {.tasks = &task, .n_tasks = 1, .n_arms = 2, .shards = SHARDS};
    for (size_t i = 0; i < plan_cells(&p); i++) {
        int asked = 0;
        for (p.shard = 0; p.shard < SHARDS; p.shard++)
            asked += plan_in_shard(&p, plan_cell_at(&p, i));
        CU_ASSERT_EQUAL(asked, 1);
    }
    size_t sum = 0;
    for (p.shard = 0; p.shard < SHARDS; p.shard++) {
        sum += plan_shard_cells(&p);
        CU_ASSERT(plan_shard_cells(&p) >= 14 && plan_shard_cells(&p) <= 18); /* of 66 cells */
    }
    CU_ASSERT_EQUAL(sum, plan_cells(&p));
}

static void test_shard_texts(void) {
    static const char *const bad[] = {"",    "/",    "1",     "0/4",  "5/4",      "-1/4",
                                      "1/0", "1/4x", "1/4/4", " 1/4", "1/999999", "1.5/4"};
    eval_shard s;
    CU_ASSERT_EQUAL(shard_parse("3/4", &s, NULL), SNAP_OK);
    CU_ASSERT(s.index == 3 && s.of == 4);
    CU_ASSERT_EQUAL(shard_parse(NULL, &s, NULL), SNAP_OK);
    CU_ASSERT(s.index == 0 && s.of == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT_EQUAL(shard_parse(bad[i], &s, NULL), SNAP_E_USAGE);
}

static js *list(const char *one, const char *two) {
    js *a = js_new_array();
    CU_ASSERT_FATAL(js_push_new(a, js_new_str(one)) && js_push_new(a, js_new_str(two)));
    return a;
}

static void test_arms_at_several_places(void) {
    js *first = list("a=http://n1/v1,model=m", "b=replay:x"),
       *second = list("a=http://n2/v1|http://n1/v1,model=m", "b=replay:x"),
       *other = list("a=http://n2/v1,model=k", "b=replay:x"),
       *moved = list("a=http://n1/v1,model=m", "b=replay:y"), *all = NULL;
    CU_ASSERT_EQUAL(merge_arms(&all, first, "s1", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(merge_arms(&all, second, "s2", NULL), SNAP_OK);
    CU_ASSERT_EQUAL(merge_arms(&all, first, "s3", NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(js_str(js_at(all, 0)), "a=http://n1/v1|http://n2/v1,model=m");
    CU_ASSERT_STRING_EQUAL(js_str(js_at(all, 1)), "b=replay:x");
    CU_ASSERT_EQUAL(merge_arms(&all, other, "s4", NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(merge_arms(&all, moved, "s5", NULL), SNAP_E_USAGE);
    js_free(all);
    js_free(first);
    js_free(second);
    js_free(other);
    js_free(moved);
}

CU_TestInfo tests_merge[] = {
    {"a merged run equals a whole run", test_merged_is_whole},
    {"more shards can be merged", test_merge_again},
    {"eval continues a merged run", test_eval_goes_on},
    {"bad merges are refused", test_refusals},
    {"shards partition the run", test_shards_partition},
    {"shards as text", test_shard_texts},
    {"arms with several servers", test_arms_at_several_places},
    CU_TEST_INFO_NULL,
};
