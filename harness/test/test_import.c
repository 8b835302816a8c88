/* Tests the readers of other programs' logs. The files in fixtures/logs were written by these
 * programs (make.py), and the results_*.json there have lm-eval's own accuracies. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/zip.h"
#include "harness/eval/foreign_log.h"
#include "harness/eval/import.h"

#define FOLDER "harness/test/fixtures/logs/"

static foreign_log opened(const char *name) {
    char path[200];
    foreign_log log;
    snap_err err = {0};
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    snap_status st = foreign_log_read(&log, path, &err);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
    return log;
}

/* The share of rows of a filter whose metric is 1. */
static double mean(const foreign_log *log, const char *filter, const char *metric) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < js_len(log->rows); i++) {
        const js *row = js_at(log->rows, i);
        if (!text_equal(js_get_str(row, "filter"), filter))
            continue;
        sum += js_get_num(js_get_object(row, "scores"), metric, 100);
        n++;
    }
    return sum / n;
}

static void expect_lm_eval(const char *date, const char *task, const char *filter,
                           const char *metric) {
    char name[200];
    snap_err err = {0};
    (void)snprintf(name, sizeof name, FOLDER "results_%s.json", date);
    js *results = js_parse_file(name, 1 << 20, &err);
    const js *own = js_get_object(js_get_object(results, "results"), task);
    (void)snprintf(name, sizeof name, "samples_%s_%s.jsonl", task, date);
    foreign_log log = opened(name);
    (void)snprintf(name, sizeof name, "%s,%s", metric, filter);
    CU_ASSERT_DOUBLE_EQUAL(mean(&log, filter, metric), js_get_num(own, name, -1), 1e-12);
    CU_ASSERT_STRING_EQUAL(log.task, task);
    CU_ASSERT_STRING_EQUAL(log.version, js_get_str(results, "lm_eval_version"));
    foreign_log_release(&log);
    js_free(results);
}

static void test_lm_eval(void) {
    expect_lm_eval("2026-01-01T00-00-00.000000", "sums", "strict", "exact_match");
    expect_lm_eval("2026-01-01T00-00-00.000000", "sums", "flexible", "exact_match");
    expect_lm_eval("2026-01-02T00-00-00.000000", "sums", "strict", "exact_match");
    expect_lm_eval("2026-01-03T00-00-00.000000", "colours", "none", "acc");
    foreign_log log = opened("samples_sums_2026-01-01T00-00-00.000000.jsonl");
    const js *row = js_at(log.rows, 4);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "problem"), "4");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "prompt"), "What is the sum of 60 and 6?");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "response"), "We add 60 and 6.\n#### 67");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "extracted"), "67");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "gold"), "66");
    foreign_log_release(&log);
}

/* In each sample of the log with choices, the metric is 1 if and only if the likeliest choice is
 * the right one. */
static void test_choices(void) {
    static const char *const colours[] = {" red", " green", " blue"};
    foreign_log log = opened("samples_colours_2026-01-03T00-00-00.000000.jsonl");
    CU_ASSERT_EQUAL(js_len(log.rows), 6);
    for (size_t i = 0; i < js_len(log.rows); i++) {
        const js *row = js_at(log.rows, i);
        bool right = text_equal(js_get_str(row, "response"), colours[i % 3]);
        CU_ASSERT_EQUAL(js_get_num(js_get_object(row, "scores"), "acc", -1) > 0.5, right);
    }
    foreign_log_release(&log);
}

static void expect_inspect(const foreign_log *log, const char *version) {
    CU_ASSERT_STRING_EQUAL(log->from, "Inspect");
    CU_ASSERT_STRING_EQUAL(log->task, "sums");
    CU_ASSERT_STRING_EQUAL(log->version, version);
    CU_ASSERT_EQUAL_FATAL(js_len(log->rows), 16);
    for (size_t i = 0; i < 16; i++) {
        const js *row = js_at(log->rows, i);
        bool right = text_equal(js_get_str(js_get_object(row, "scores"), "pattern"), "C");
        const char *answer = js_get_str(js_get_object(row, "answers"), "pattern");
        CU_ASSERT_EQUAL(right, text_equal(answer, js_get_str(row, "gold")));
        CU_ASSERT(text_starts(js_get_str(row, "prompt"), "system: Add.\n\nuser: What is the sum"));
        CU_ASSERT(text_ends(js_get_str(row, "response"), answer));
        CU_ASSERT_EQUAL(js_get_int(row, "completion_tokens", -1), 12);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "finish_reason"), "stop");
    }
}

static void test_inspect(void) {
    foreign_log log = opened("bf16.json");
    expect_inspect(&log, "0.3.285");
    foreign_log_release(&log);
}

/* The archive, which Inspect compressed with Zstandard, has the first answers to the first three
 * questions of the log in JSON. */
static void test_packed(void) {
    static const char *const keys[] = {"problem", "prompt", "gold", "response", "finish_reason"};
    foreign_log log = opened("bf16.eval"), all = opened("bf16.json");
    CU_ASSERT_STRING_EQUAL(log.from, "Inspect");
    CU_ASSERT_STRING_EQUAL(log.version, "0.3.285");
    CU_ASSERT_EQUAL(js_len(log.rows), 3);
    for (size_t i = 0; i < js_len(log.rows); i++) {
        const js *row = js_at(log.rows, i), *same = NULL;
        for (size_t k = 0; k < js_len(all.rows) && !same; k++)
            if (js_equal(js_get(js_at(all.rows, k), "problem"), js_get(row, "problem")))
                same = js_at(all.rows, k);
        CU_ASSERT_PTR_NOT_NULL_FATAL(same);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            CU_ASSERT(js_equal(js_get(row, keys[k]), js_get(same, keys[k])));
        CU_ASSERT(js_equal(js_get(row, "scores"), js_get(same, "scores")));
    }
    foreign_log_release(&log);
    foreign_log_release(&all);
}

/* ---- lighteval ---- */

/* The mean of the verdicts is the one that lighteval found. */
static foreign_log opened_lighteval(const char *task, const char *date, const char *metric) {
    char name[200];
    snap_err err = {0};
    (void)snprintf(name, sizeof name, FOLDER "results_%s_%s.json", task, date);
    js *results = js_parse_file(name, 1 << 20, &err);
    (void)snprintf(name, sizeof name, "%s|0", task);
    const js *own = js_get_object(js_get_object(results, "results"), name);
    (void)snprintf(name, sizeof name, "details_%s_%s.parquet", task, date);
    foreign_log log = opened(name);
    CU_ASSERT_DOUBLE_EQUAL(mean(&log, NULL, metric), js_get_num(own, metric, -1), 1e-12);
    CU_ASSERT_STRING_EQUAL(log.from, "lighteval");
    CU_ASSERT_STRING_EQUAL(log.version, "");
    CU_ASSERT_STRING_EQUAL(log.task, task);
    js_free(results);
    return log;
}

static const js *problem_of(const foreign_log *log, const char *id) {
    for (size_t i = 0; i < js_len(log->rows); i++)
        if (text_equal(js_get_str(js_at(log->rows, i), "problem"), id))
            return js_at(log->rows, i);
    return NULL;
}

static void test_lighteval(void) {
    for (int i = 1; i <= 2; i++) {
        char date[40];
        (void)snprintf(date, sizeof date, "2026-01-0%dT00-00-00.000000", i);
        foreign_log log = opened_lighteval("sums", date, "em");
        CU_ASSERT_EQUAL(js_len(log.rows), 8);
        const js *row = problem_of(&log, "6");
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "prompt"), "What is the sum of 15 and 31?");
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "gold"), "46");
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "response"), i == 1 ? "46" : "47");
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "reasoning"), "We add 15 and 31.");
        CU_ASSERT_EQUAL(js_get_int(row, "prompt_tokens", -1), 3);
        CU_ASSERT_EQUAL(js_get_int(row, "completion_tokens", -1), 2);
        foreign_log_release(&log);
    }
    foreign_log log = opened_lighteval("colours", "2026-01-03T00-00-00.000000", "acc");
    CU_ASSERT_EQUAL(js_len(log.rows), 6);
    const js *row = problem_of(&log, "4");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "prompt"),
                           "Choose.\n\nColour 4:\n(0)  red\n(1)  green\n(2)  blue");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "gold"), " green");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "response"), " green");
    foreign_log_release(&log);
}

/* The layout of lighteval 0.8 to 0.10. The second document has two answers. */
static void test_old_lighteval(void) {
    static const char *const problems[] = {"0", "1", "1", "2"};
    foreign_log log = opened("details_sums_2026-01-05T00-00-00.000000.parquet");
    CU_ASSERT_EQUAL_FATAL(js_len(log.rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const js *row = js_at(log.rows, i);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "problem"), problems[i]);
        CU_ASSERT_EQUAL(js_get_int(row, "sample", -1), i == 2);
        CU_ASSERT(js_get_num(js_get_object(row, "scores"), "em", 0) > 0.5);
        CU_ASSERT_EQUAL(js_get_int(row, "prompt_tokens", -1), 4);
    }
    const js *row = js_at(log.rows, 2);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "prompt"), "Q: 10 + 25 =");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "response"), "36");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "gold"), "35\n35.0");
    foreign_log_release(&log);
}

/* ---- small logs ---- */

static void expect_refused(const char *text, snap_status status, const char *message) {
    foreign_log log;
    snap_err err = {0};
    CU_ASSERT_EQUAL(foreign_log_parse(&log, text, strlen(text), "f", &err), status);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    if (!strstr(err.text, message))
        printf("\n%s: %s\n", text, err.text);
    foreign_log_release(&log);
}

#define INSPECT(sample) "{\"eval\":{\"task\":\"t\"},\"samples\":[" sample "]}"

static void test_refused(void) {
    expect_refused("", SNAP_E_INPUT, "f");
    expect_refused("PAR1\001\002", SNAP_E_INPUT, "not a Parquet file");
    expect_refused("PK\003\004", SNAP_E_INPUT, "inspect log convert");
    expect_refused("{\"a\":1}\n", SNAP_E_INPUT, "f:1: not a sample of lm-eval: needs 'resps'");
    expect_refused("{\"resps\":[[\"x\"]]}", SNAP_E_INPUT, "f:1: not a sample of lm-eval: needs a");
    expect_refused("{\"doc_id\":1,\"resps\":[[\"x\"]]}", SNAP_E_INPUT,
                   "has no prompt or no answer");
    expect_refused("{\n\"a\":1}", SNAP_E_INPUT, "neither a log of lm-eval");
    expect_refused("[1,\n2]", SNAP_E_INPUT, "neither a log of lm-eval");
    expect_refused("{\"eval\":{\"task\":\"t\"}}", SNAP_E_INPUT, "f: the log has no samples");
    expect_refused(INSPECT("{}"), SNAP_E_INPUT, "f: not a sample of Inspect");
    expect_refused(INSPECT("{\"id\":1,\"epoch\":0}"), SNAP_E_INPUT, "an 'epoch' from 1");
    expect_refused(INSPECT("{\"id\":1}"), SNAP_E_INPUT, "sample '1', epoch 1 has no prompt");
}

/* A sample that failed, one that was cut off, and one with parts, an attachment and reasoning. */
#define FAILED                                                                                     \
    "{\"id\":\"a\",\"input\":\"?\",\"target\":[\"1\",\"2\"],\"error\":{\"message\":\"boom\"}}"
#define CUT                                                                                        \
    "{\"id\":2,\"epoch\":3,\"input\":\"?\",\"output\":{\"choices\":[{\"message\":{\"content\":"    \
    "\"It is\"},\"stop_reason\":\"max_tokens\"}]}}"
#define PARTS                                                                                      \
    "{\"id\":3,\"input\":\"-\",\"attachments\":{\"k\":\"long\"},\"messages\":[{\"role\":\"user\"," \
    "\"content\":[{\"type\":\"text\",\"text\":\"attachment://k\"},{\"type\":\"image\"}]},{"        \
    "\"role\":\"assistant\",\"content\":\"no prompt\"}],\"output\":{\"time\":1.5,\"choices\":[{"   \
    "\"message\":{\"content\":[{\"type\":\"reasoning\",\"reasoning\":\"hm\"},{\"type\":\"text\","  \
    "\"text\":\"yes\"}]}}]}}"

static void expect_three(const foreign_log *log) {
    const js *a = js_at(log->rows, 0), *b = js_at(log->rows, 1), *c = js_at(log->rows, 2);
    CU_ASSERT_EQUAL_FATAL(js_len(log->rows), 3);
    CU_ASSERT_STRING_EQUAL(js_get_str(a, "error"), "boom");
    CU_ASSERT_STRING_EQUAL(js_get_str(a, "gold"), "1\n2");
    CU_ASSERT_PTR_NULL(js_get(a, "response"));
    CU_ASSERT_STRING_EQUAL(js_get_str(b, "finish_reason"), "length");
    CU_ASSERT_STRING_EQUAL(js_get_str(b, "problem"), "2");
    CU_ASSERT_EQUAL(js_get_int(b, "sample", -1), 2);
    CU_ASSERT_STRING_EQUAL(js_get_str(c, "prompt"), "long");
    CU_ASSERT_STRING_EQUAL(js_get_str(c, "response"), "yes");
    CU_ASSERT_STRING_EQUAL(js_get_str(c, "reasoning"), "hm");
    CU_ASSERT_EQUAL(js_get_num(c, "total_ms", -1), 1500);
}

static void test_samples(void) {
    static const char text[] = INSPECT(FAILED "," CUT "," PARTS);
    static const char head[] = "{\"eval\":{\"task\":\"t\"}}";
    const zip_entry entries[] = {{"samples/a_epoch_1.json", FAILED, sizeof FAILED - 1},
                                 {"samples/2_epoch_3.json", CUT, sizeof CUT - 1},
                                 {"samples/3_epoch_1.json", PARTS, sizeof PARTS - 1},
                                 {"_journal/start.json", "?", 1},
                                 {"header.json", head, sizeof head - 1}};
    foreign_log log;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(foreign_log_parse(&log, text, sizeof text - 1, "f", &err), SNAP_OK);
    expect_three(&log);
    foreign_log_release(&log);
    for (size_t n = 4; n <= 5; n++) { /* without a header, and with it */
        buf zip = {0};
        CU_ASSERT_EQUAL_FATAL(zip_pack(entries, n, &zip, &err), SNAP_OK);
        snap_status st = foreign_log_parse(&log, buf_str(&zip), zip.len, "f", &err);
        CU_ASSERT_EQUAL(st, n == 5 ? SNAP_OK : SNAP_E_INPUT);
        if (n == 5)
            expect_three(&log);
        foreign_log_release(&log);
        buf_release(&zip);
    }
}

/* Repeated answers, a list as the target, and a prompt of two messages. */
static void test_repeats(void) {
    static const char text[] =
        "{\"doc_id\":7,\"target\":[1,2],\"arguments\":{\"gen_args_0\":{\"arg_0\":\"[{\\\"role\\\":"
        "\\\"system\\\",\\\"content\\\":\\\"S\\\"},{\\\"role\\\":\\\"user\\\",\\\"content\\\":"
        "\\\"U\\\"}]\"}},\"resps\":[[\"x\",\"y\"]],\"filtered_resps\":[\"x\"],\"acc\":true}\n";
    foreign_log log;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(foreign_log_parse(&log, text, sizeof text - 1, "f", &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(js_len(log.rows), 2);
    const js *row = js_at(log.rows, 1);
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "prompt"), "system: S\n\nuser: U");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "response"), "y");
    CU_ASSERT_STRING_EQUAL(js_get_str(row, "gold"), "[1,2]");
    CU_ASSERT_EQUAL(js_get_int(row, "sample", -1), 1);
    CU_ASSERT_PTR_NULL(js_get(row, "extracted"));
    foreign_log_release(&log);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

/* Writes a log of Inspect with three problems, in the order of @ids. */
static void write_log(const char *path, const char *const ids[3]) {
    buf text = {0};
    for (int i = 0; i < 3; i++)
        (void)buf_printf(&text, "%s{\"id\":\"%s\",\"input\":\"%s?\",\"target\":\"1\"}",
                         i ? "," : "", ids[i], ids[i]);
    buf log = {0};
    (void)buf_printf(&log, INSPECT("%s"), buf_str(&text));
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, log.data, log.len, NULL), SNAP_OK);
    buf_release(&text);
    buf_release(&log);
}

/* Two logs have the same samples whatever their order. Of these ids, 2 comes before 10 as a number,
 * 10 before 1a and 1a before 2 as texts: an order that mixes the two rules is not transitive. */
static void test_order_of_ids(void) {
    static const char *const ids[] = {"2", "10", "1a"};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    char folder[] = "/tmp/snapmla-import-XXXXXX", a[64], b[64], out[64], named[2][80];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    (void)snprintf(a, sizeof a, "%s/a.json", folder);
    (void)snprintf(b, sizeof b, "%s/b.json", folder);
    (void)snprintf(out, sizeof out, "%s/out", folder);
    (void)snprintf(named[0], sizeof named[0], "a=%s", a);
    (void)snprintf(named[1], sizeof named[1], "b=%s", b);
    const char *const logs[] = {named[0], named[1]};
    import_options o = {.logs = logs, .n = 2, .out = out, .task = "gsm8k"};
    write_log(a, ids);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const int *k = orders[i];
        js *made = NULL;
        snap_err err = {0};
        write_log(b, (const char *const[3]){ids[k[0]], ids[k[1]], ids[k[2]]});
        CU_ASSERT_EQUAL(import_logs(&o, &made, &err), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(err.text, "");
        CU_ASSERT_EQUAL(js_get_int(made, "problems", 0), 3);
        js_free(made);
    }
    CU_ASSERT_EQUAL(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

CU_TestInfo tests_import[] = {
    {"logs of lm-eval", test_lm_eval},
    {"choices by likelihood", test_choices},
    {"logs of Inspect", test_inspect},
    {"archives of Inspect", test_packed},
    {"samples of Inspect", test_samples},
    {"details of lighteval", test_lighteval},
    {"older details of lighteval", test_old_lighteval},
    {"repeated answers", test_repeats},
    {"ids have one order whatever their order in the log", test_order_of_ids},
    {"files that are no logs are refused", test_refused},
    CU_TEST_INFO_NULL,
};
