#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/replay/recording.h"
#include "generator/test/drive.h"

static snap_status read_text(recording *r, const char *text, const char *arm, snap_err *err) {
    *err = (snap_err){0};
    return recording_read(r, text, strlen(text), "f.jsonl", arm, err);
}

static void test_rows_are_found_by_key(void) {
    static const char text[] =
        "{\"task\":\"a\",\"problem\":\"1\",\"sample\":0,\"response\":\"x\",\"reasoning\":\"r\","
        "\"finish_reason\":\"length\",\"prompt_tokens\":3,\"completion_tokens\":9,\"arm\":\"b\","
        "\"ttft_ms\":1.5,\"total_ms\":20,\"grader\":\"g\",\"verdict\":\"wrong\"}\n"
        "\n"
        "{\"task\":\"a\",\"problem\":\"1\",\"sample\":1,\"text\":\"nul \\u0000\",\"more\":[1]}\n"
        "{\"task\":\"a\",\"problem\":\"2\",\"sample\":0,\"response\":null,\"error\":\"HTTP 500\"}";
    recording r;
    snap_err err;
    CU_ASSERT_EQUAL_FATAL(read_text(&r, text, NULL, &err), SNAP_OK);
    const recorded *row = recording_find(&r, "a", "1", 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_STRING_EQUAL(row->text, "x");
    CU_ASSERT_STRING_EQUAL(row->reasoning, "r");
    CU_ASSERT_STRING_EQUAL(row->finish_reason, "length");
    CU_ASSERT(row->prompt_tokens == 3 && row->completion_tokens == 9 && row->line == 1);
    CU_ASSERT(row->first_token_ns == 1500000 && row->total_ns == 20000000);
    CU_ASSERT_STRING_EQUAL(row->verdict.grader, "g");
    CU_ASSERT_STRING_EQUAL(row->verdict.verdict, "wrong");
    CU_ASSERT_PTR_NULL(row->verdict.extracted);
    row = recording_find(&r, "a", "1", 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_STRING_EQUAL(row->text, "nul \xEF\xBF\xBD");
    CU_ASSERT_STRING_EQUAL(row->finish_reason, "unknown");
    CU_ASSERT(!row->reasoning && !row->error && row->prompt_tokens == -1 && row->line == 3);
    CU_ASSERT(row->first_token_ns == -1 && row->total_ns == 0);
    row = recording_find(&r, "a", "2", 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    CU_ASSERT_STRING_EQUAL(row->error, "HTTP 500");
    CU_ASSERT_PTR_NULL(recording_find(&r, "a", "2", 1));
    CU_ASSERT_PTR_NULL(recording_find(&r, "1", "a", 0));
    recording_release(&r);
}

/* So many rows that the table grows several times. Keys next to the recorded ones must be
 * absent. */
static void test_many_rows(void) {
    enum { kProblems = 500, kSamples = 12 };
    buf text = {0};
    for (int p = 0; p < kProblems; p++)
        for (int s = 0; s < kSamples; s++)
            (void)buf_printf(&text,
                             "{\"task\":\"t\",\"problem\":\"%d\",\"sample\":%d,"
                             "\"response\":\"%d\"}\n",
                             p, s, p * kSamples + s);
    recording r;
    snap_err err;
    CU_ASSERT_EQUAL_FATAL(read_text(&r, text.data, NULL, &err), SNAP_OK);
    CU_ASSERT_EQUAL(r.count, kProblems * kSamples);
    long wrong = 0;
    for (int p = 0; p < kProblems; p++) {
        char problem[16];
        (void)snprintf(problem, sizeof problem, "%d", p);
        for (int s = 0; s < kSamples; s++) {
            const recorded *row = recording_find(&r, "t", problem, s);
            wrong += !row || strtol(row->text, NULL, 10) != p * kSamples + s;
        }
        wrong += recording_find(&r, "t", problem, kSamples) != NULL;
        wrong += recording_find(&r, "u", problem, 0) != NULL;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    recording_release(&r);
    buf_release(&text);
}

#define ROW(arm, sample, response)                                                                 \
    "{\"task\":\"t\",\"problem\":\"p\",\"sample\":" #sample ",\"arm\":\"" arm                      \
    "\",\"response\":\"" response "\"}\n"

static void test_an_arm_is_chosen(void) {
    static const char two[] = ROW("bf16", 0, "one") ROW("fp8", 0, "two");
    recording r;
    snap_err err;
    CU_ASSERT_EQUAL(read_text(&r, two, NULL, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(
        err.text, "f.jsonl:2: arm 'fp8' after arm 'bf16' on line 1; choose one with model=ARM");
    recording_release(&r);
    CU_ASSERT_EQUAL_FATAL(read_text(&r, two, "fp8", &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(recording_find(&r, "t", "p", 0)->text, "two");
    recording_release(&r);
    CU_ASSERT_EQUAL(read_text(&r, two, "fp4", &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "f.jsonl: no row is of arm 'fp4'; the first is of 'bf16'");
    recording_release(&r);
}

/* Only what the row states about its request is compared. */
static void test_another_request_is_not_answered(void) {
#define ROW_WITH(rest)                                                                             \
    "{\"task\":\"t\",\"problem\":\"p\",\"sample\":0,\"response\":\"4\"" rest "}\n"
    static const struct {
        const char *row, *why;
    } cases[] = {
        {ROW_WITH(""), ""},
        {ROW_WITH(",\"prompt_sha256\":null,\"sampling\":null"), ""},
        {ROW_WITH(",\"prompt_sha256\":\"aa\",\"seed\":99"), ""},
        {ROW_WITH(",\"sampling\":{\"temperature\":0.6,\"top_p\":0.95,\"max_tokens\":64}"), ""},
        {ROW_WITH(",\"sampling\":{\"temperature\":0.6}"), ""},
        {ROW_WITH(",\"prompt_sha256\":\"ab\""), "another prompt"},
        {ROW_WITH(",\"sampling\":{\"temperature\":1}"), "temperature 1, the request has 0.6"},
        {ROW_WITH(",\"sampling\":{\"top_p\":1}"), "top_p 1, the request has 0.95"},
        {ROW_WITH(",\"sampling\":{\"top_k\":5}"), "top_k 5, the request has 0"},
        {ROW_WITH(",\"sampling\":{\"max_tokens\":32}"), "max_tokens 32, the request has 64"},
    };
#undef ROW_WITH
    gen_request req = {.prompt_sha256 = "aa",
                       .sampling = {.temperature = 0.6, .top_p = 0.95, .max_tokens = 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        recording r;
        snap_err err;
        char why[120];
        CU_ASSERT_EQUAL_FATAL(read_text(&r, cases[i].row, NULL, &err), SNAP_OK);
        const recorded *row = recording_find(&r, "t", "p", 0);
        CU_ASSERT_EQUAL(recording_mismatch(row, &req, why, sizeof why), cases[i].why[0] != '\0');
        CU_ASSERT_STRING_EQUAL(why, cases[i].why);
        recording_release(&r);
    }
}

static void test_a_failure_gives_way(void) {
    recording r;
    snap_err err;
    CU_ASSERT_EQUAL_FATAL(
        read_text(&r,
                  "{\"task\":\"t\",\"problem\":\"p\",\"sample\":0,\"error\":\"HTTP 500\"}\n" ROW(
                      "a", 0, "later"),
                  NULL, &err),
        SNAP_OK);
    CU_ASSERT_EQUAL(r.count, 1);
    CU_ASSERT_PTR_NULL(recording_find(&r, "t", "p", 0)->error);
    CU_ASSERT_STRING_EQUAL(recording_find(&r, "t", "p", 0)->text, "later");
    recording_release(&r);
}

static void test_malformed_rows_say_where(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "f.jsonl: no rows"},
        {ROW("a", 0, "x") ROW("a", 0, "y"),
         "f.jsonl:2: task 't', problem 'p', sample 0 is on line 1 already"},
        {"{\"problem\":\"p\"}", "f.jsonl:1: key 'task' (a string) is missing"},
        {"\n{\"task\":\"t\",\"problem\":7}", "f.jsonl:2: key 'problem' must be a string, got "
                                             "integer"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":-1}",
         "f.jsonl:1: key 'sample' must be 0 or more, got -1"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":4294967296}",
         "f.jsonl:1: key 'sample' must be 0 or more, got 4294967296"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":\"0\"}",
         "f.jsonl:1: key 'sample' must be an integer, got string"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":0}",
         "f.jsonl:1: key 'response' (a string) is missing"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":0,\"response\":[]}",
         "f.jsonl:1: key 'response' must be a string, got array"},
        {"{\"task\":\"t\",\"problem\":\"p\",\"sample\":0,\"response\":\"\",\"reasoning\":1}",
         "f.jsonl:1: key 'reasoning' must be a string, got integer"},
        {"[]", "f.jsonl:1: a line must be an object, got array"},
        {"{\"task\":", "f.jsonl:1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        recording r;
        snap_err err;
        CU_ASSERT_EQUAL(read_text(&r, cases[i].text, NULL, &err), SNAP_E_INPUT);
        CU_ASSERT_EQUAL(strncmp(err.text, cases[i].why, strlen(cases[i].why)), 0);
        recording_release(&r);
    }
}

/* Opens a generator over a file with the given text. */
static generator *open_file(const char *text, const generator_options *opt, snap_err *err) {
    char path[] = "/tmp/snapmla-replay-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0 || fs_write_atomic(path, text, strlen(text), err) != SNAP_OK)
        return NULL;
    char spec[64];
    (void)snprintf(spec, sizeof spec, "replay:%s", path);
    generator *g = NULL;
    snap_status st = generator_open(&g, spec, opt, err);
    (void)unlink(path);
    return st == SNAP_OK ? g : NULL;
}

static void test_the_generator_replays(void) {
    generator_options opt = {0};
    drive d = {0};
    generator *g = open_file(ROW("a", 0, "zero") ROW("a", 2, "two"), &opt, &d.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(&d, g, 3), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(d.n_kept, 3);
    CU_ASSERT_STRING_EQUAL(d.kept[0].text, "zero");
    CU_ASSERT_STRING_EQUAL(d.kept[0].finish_reason, "unknown");
    CU_ASSERT(!d.kept[0].failed && d.kept[0].res.attempts == 1);
    CU_ASSERT_TRUE(d.kept[1].failed);
    CU_ASSERT_PTR_NULL(d.kept[1].finish_reason);
    CU_ASSERT_STRING_EQUAL(d.kept[1].error, "no recording of task 't', problem 'p', sample 1");
    CU_ASSERT_STRING_EQUAL(d.kept[2].text, "two");
    drive_release(&d);
    generator_close(g);
}

static void test_the_generator_stops(void) {
    volatile sig_atomic_t cancel = 0;
    generator_options opt = {.cancel = &cancel};
    drive d = {.fail_after = 2};
    generator *g = open_file(ROW("a", 0, "zero"), &opt, &d.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    CU_ASSERT_EQUAL(drive_run(&d, g, 3), SNAP_E_IO);
    CU_ASSERT_EQUAL(d.n_kept, 2);
    drive_release(&d);
    cancel = 1;
    CU_ASSERT_EQUAL(drive_run(&d, g, 3), SNAP_E_CANCELLED);
    CU_ASSERT_EQUAL(d.n_kept, 0);
    drive_release(&d);
    generator_close(g);
}

static void expect_foreign(const char *text, bool foreign) {
    generator_options opt = {0};
    snap_err err = {0};
    generator *g = open_file(text, &opt, &err);
    CU_ASSERT_EQUAL(strstr(err.text, "'snapmla eval import'") != NULL, foreign);
    CU_ASSERT_EQUAL(g == NULL, err.code != SNAP_OK);
    if (g)
        generator_close(g);
}

static void test_logs_of_other_programs(void) {
    expect_foreign("PAR1 and more", true);
    expect_foreign("PK\3\4 and more", true);
    expect_foreign("{\"doc_id\": 1, \"resps\": [[\"x\"]]}\n{", true);
    expect_foreign("{\n \"version\": 2,\n \"eval\": {}}", true);
    expect_foreign("{\"eval\": {}, \"samples\": []}", true);
    expect_foreign("", false);
    expect_foreign("{\n\"a\": 1}", false);
    expect_foreign(ROW("a", 0, "resps eval"), false);
}

static void test_opening_fails_clearly(void) {
    generator_options opt = {0};
    generator *g = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(generator_open(&g, "replay:/nonexistent/x", &opt, &err), SNAP_E_IO);
    CU_ASSERT_STRING_EQUAL(err.text, "cannot open '/nonexistent/x': No such file or directory");
    err = (snap_err){0};
    CU_ASSERT_EQUAL(generator_open(&g, "ftp://x/", &opt, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "generator 'ftp://x/' is unknown: expected http://..., "
                                     "https://..., local:DIR or replay:FILE");
    CU_ASSERT_PTR_NULL(g);
    generator_close(NULL);
}

CU_TestInfo tests_replay[] = {
    {"rows are found by task, problem and sample", test_rows_are_found_by_key},
    {"the table of rows grows", test_many_rows},
    {"one arm of a recording is chosen", test_an_arm_is_chosen},
    {"a request with other settings gets no recorded answer", test_another_request_is_not_answered},
    {"an answer replaces a recorded failure", test_a_failure_gives_way},
    {"malformed rows", test_malformed_rows_say_where},
    {"the generator", test_the_generator_replays},
    {"the generator stops", test_the_generator_stops},
    {"errors of opening a recording name the file", test_opening_fails_clearly},
    {"logs of other programs", test_logs_of_other_programs},
    CU_TEST_INFO_NULL};
