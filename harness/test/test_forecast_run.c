/* Tests forecasts of a tiny model on small task files. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/test/tiny_model.h"
#include "harness/eval/forecast_run.h"
#include "harness/record/results.h"

enum { kProblems = 12, kRows = 4 };

static const char kTask[] =
    "{\"task\": \"bytes\", \"data\": \"bytes.jsonl\", \"id\": \"id\", \"prompt\": \"{{q}}\", "
    "\"answer\": \"[a-p]\", \"extract\": {\"name\": \"regex\", \"regex\": \"[a-z]\"}, "
    "\"grader\": \"regex\", \"samples\": 4}";

static void write_file(const char *dir, const char *name, const char *text) {
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, text, strlen(text), NULL), SNAP_OK);
}

/* A folder with a tiny model, a task file and its data. */
static void make_dir(char dir[64], char task[128]) {
    buf b = {0};
    tiny_folder(dir, "v3");
    for (int i = 0; i < kProblems; i++)
        (void)buf_printf(&b, "{\"id\": \"p%d\", \"q\": \"%*dth question\"}\n", i, 1 + i, i);
    write_file(dir, "bytes.jsonl", buf_str(&b));
    write_file(dir, "bytes.json", kTask);
    (void)snprintf(task, 128, "%s/bytes.json", dir);
    buf_release(&b);
}

static void remove_dir(const char *dir) {
    static const char *const names[] = {"bytes.jsonl", "bytes.json"};
    char path[160];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    tiny_remove(dir);
}

typedef struct {
    model_record row[kRows];
    char precision[kRows][32], task[kRows][32];
    int n;
    int64_t answers;
} kept;

/* The texts of a row are valid during the call only. */
static snap_status keep(void *ctx, const model_record *row, snap_err *err) {
    kept *k = ctx;
    (void)err;
    CU_ASSERT_FATAL(k->n < kRows);
    (void)snprintf(k->precision[k->n], sizeof k->precision[0], "%s", row->precision);
    (void)snprintf(k->task[k->n], sizeof k->task[0], "%s", row->task);
    CU_ASSERT_STRING_EQUAL(row->reference, "bf16");
    CU_ASSERT_EQUAL(row->seen_pp.n, row->problems);
    js *written = record_write(&model_type, row);
    CU_ASSERT_STRING_EQUAL(js_get_str(written, "kind"), "forecast");
    js_free(written);
    k->row[k->n++] = *row;
    return SNAP_OK;
}

static void count_answers(void *ctx, int64_t answers) {
    kept *k = ctx;
    k->answers = answers;
}

static forecast_options options_of(const char *dir, const char *task, kept *k) {
    return (forecast_options){.dir = dir,
                              .suite = task,
                              .data = dir,
                              .formats = "bf16,bf16,fp8,int4",
                              .max_tokens = 3,
                              .temperature = -1,
                              .seed = 5,
                              .threads = 1,
                              .emit = keep,
                              .progress = count_answers,
                              .ctx = k};
}

static void test_rows(void) {
    char dir[64], task[128];
    kept k = {0};
    make_dir(dir, task);
    forecast_options o = options_of(dir, task, &k);
    snap_err err = {0};
    CU_ASSERT_EQUAL(forecast_run(&o, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL_FATAL(k.n, 3);
    CU_ASSERT_EQUAL(k.answers, kProblems * 4);
    for (int i = 0; i < 3; i++) {
        const model_record *r = &k.row[i];
        CU_ASSERT_STRING_EQUAL(k.task[i], "bytes");
        CU_ASSERT_EQUAL(r->problems, kProblems);
        CU_ASSERT_EQUAL(r->answers, kProblems * 4);
        CU_ASSERT(r->accuracy_pct > 0 && r->accuracy_pct < 100);
        CU_ASSERT_EQUAL(r->accuracy_pct, k.row[0].accuracy_pct);
        CU_ASSERT(r->temperature == 1 && r->top_p < 1);
        CU_ASSERT(r->se_pp >= r->assumed_se_pp && r->assumed_se_pp >= 0);
    }
    /* row 0 is the first format itself, so nothing changes; the coarser a format, the more
     * changes */
    CU_ASSERT_STRING_EQUAL(k.precision[0], "bf16");
    CU_ASSERT(k.row[0].kl_answer == 0 && k.row[0].diverged_pct == 0);
    CU_ASSERT(k.row[0].delta_pp == 0 && k.row[0].ci95_pp[0] == 0 && k.row[0].ci95_pp[1] == 0);
    CU_ASSERT_STRING_EQUAL(k.precision[1], "fp8");
    CU_ASSERT(k.row[1].kl_answer > 0 && k.row[1].diverged_pct > 0);
    CU_ASSERT(k.row[2].kl_answer > k.row[1].kl_answer);
    CU_ASSERT(k.row[2].diverged_pct > k.row[1].diverged_pct);
    CU_ASSERT(k.row[1].ci95_pp[0] < k.row[1].delta_pp && k.row[1].delta_pp < k.row[1].ci95_pp[1]);
    remove_dir(dir);
}

/* The first format runs on the CPU, and the others use the kernel of the plugin. The plugin's BF16
 * attention rounds differently from that of the CPU, so the results show that it was used. */
static void test_plugin(void) {
    char dir[64], task[128];
    kept cpu = {0}, plugin = {0};
    make_dir(dir, task);
    forecast_options o = options_of(dir, task, &cpu);
    o.formats = "bf16,bf16";
    CU_ASSERT_EQUAL(forecast_run(&o, NULL), SNAP_OK);
    o = options_of(dir, task, &plugin);
    o.formats = "bf16,bf16";
    o.device = "plugin:" PLUGINS "/plugins/attend.so";
    CU_ASSERT_EQUAL(forecast_run(&o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(plugin.n, 1);
    CU_ASSERT_EQUAL(cpu.row[0].kl_answer, 0);
    CU_ASSERT(plugin.row[0].kl_answer > 0 && plugin.row[0].kl_answer < 1e-3);
    /* the answers are those of the CPU */
    CU_ASSERT_EQUAL(plugin.row[0].accuracy_pct, cpu.row[0].accuracy_pct);
    o.formats = "bf16,fp8"; /* attend.so has no FP8 kernel */
    snap_err err = {0};
    CU_ASSERT_NOT_EQUAL(forecast_run(&o, &err), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "fp8"));
    remove_dir(dir);
}

/* Greedy decoding needs one answer to each problem only. */
static void test_greedy(void) {
    char dir[64], task[128];
    kept k = {0};
    make_dir(dir, task);
    forecast_options o = options_of(dir, task, &k);
    o.temperature = 0;
    o.limit = 5;
    CU_ASSERT_EQUAL(forecast_run(&o, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(k.n, 3);
    CU_ASSERT_EQUAL(k.row[2].answers, 5);
    for (int i = 0; i < 3; i++) {
        double changed = k.row[i].diverged_pct * 5 / 100; /* a number of answers */
        CU_ASSERT_DOUBLE_EQUAL(changed, round(changed), 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(k.row[i].unseen_pct, k.row[i].diverged_pct, 1e-9);
        CU_ASSERT_EQUAL(isnan(k.row[i].delta_pp), k.row[i].unseen_pct > 50);
    }
    remove_dir(dir);
}

static void expect_refusal(const forecast_options *o, const char *why) {
    snap_err err = {0};
    CU_ASSERT_EQUAL(forecast_run(o, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void test_refusals(void) {
    char dir[64], task[128];
    kept k = {0};
    volatile sig_atomic_t cancel = 1;
    make_dir(dir, task);
    forecast_options o = options_of(dir, task, &k);
    o.samples = 1;
    expect_refusal(&o, "--samples 2");
    o = options_of(dir, task, &k);
    o.formats = "bf16";
    expect_refusal(&o, "at least two");
    o.formats = "bf16,nonsense";
    expect_refusal(&o, "nonsense");
    o = options_of(dir, "long_turns_own", &k);
    expect_refusal(&o, "the arm's own answers");
    o = options_of(dir, "arena_hard", &k);
    o.data = "evals/test/fixtures";
    CU_ASSERT_NOT_EQUAL(forecast_run(&o, NULL), SNAP_OK);
    o = options_of(dir, task, &k);
    o.cancel = &cancel;
    CU_ASSERT_EQUAL(forecast_run(&o, NULL), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(k.n, 0);
    remove_dir(dir);
}

CU_TestInfo tests_forecast_run[] = {
    {"a row for each format", test_rows},
    {"the kernel of a plugin", test_plugin},
    {"greedy decoding", test_greedy},
    {"what cannot be predicted", test_refusals},
    CU_TEST_INFO_NULL,
};
