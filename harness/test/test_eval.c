/* Tests the evaluation from options to the RUN folder, with the replay generator. */
#include <CUnit/CUnit.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/term.h"
#include "base/text.h"
#include "base/zip.h"
#include "harness/audit/audit.h"
#include "harness/audit/bundle.h"
#include "harness/eval/arm_option.h"
#include "harness/eval/arm_secrets.h"
#include "harness/eval/eval_run.h"
#include "harness/eval/suite.h"
#include "harness/gate/quality.h"
#include "harness/view/eval_text.h"
#include "harness/view/run_report.h"

enum { PROBLEMS = 9, SAMPLES = 3, ROWS = 2 * PROBLEMS * SAMPLES };

/* ---- a folder with problems and recordings of two arms ---- */

typedef struct {
    char dir[48];
    char data[80], run[80], samples[100], arm_a[120], arm_b[120];
} place;

static void write_text(const char *path, const buf *text) {
    CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, buf_str(text), text->len, NULL), SNAP_OK);
}

/* Arm a is wrong on sample 0 of every third problem. Arm b is also wrong on samples 1 and 2. */
static void record(const char *path, const char *arm, bool worse) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++) {
            bool wrong = i % 3 == 0 && (k == 0 || worse);
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"arm\": \"%s\", \"response\": \"by way %d of %s, \\\\boxed{%d}\", "
                             "\"finish_reason\": \"stop\", \"completion_tokens\": %d}\n",
                             i, k, arm, k, arm, wrong ? 999 : i, 100 + i + (worse ? 10 : 0));
        }
    write_text(path, &rows);
    buf_release(&rows);
}

static void place_open(place *p) {
    *p = (place){.dir = "/tmp/snapmla-eval-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(p->dir));
    (void)snprintf(p->data, sizeof p->data, "%s/problems.jsonl", p->dir);
    (void)snprintf(p->run, sizeof p->run, "%s/run", p->dir);
    (void)snprintf(p->samples, sizeof p->samples, "%s/samples.jsonl", p->run);
    (void)snprintf(p->arm_a, sizeof p->arm_a, "a=replay:%s/a.jsonl", p->dir);
    (void)snprintf(p->arm_b, sizeof p->arm_b, "b=replay:%s/b.jsonl", p->dir);
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"is it %d?\", \"answer\": %d}\n",
                         i, i, i);
    write_text(p->data, &rows);
    buf_release(&rows);
    record(strchr(p->arm_a, ':') + 1, "a", false);
    record(strchr(p->arm_b, ':') + 1, "b", true);
    term_set_quiet(true);
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw) {
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void place_close(place *p) {
    (void)nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the RUN folder, in static memory. */
static const char *in_run(const place *p, const char *name) {
    static char path[120];
    (void)snprintf(path, sizeof path, "%s/%s", p->run, name);
    return path;
}

static eval_options options_of(const place *p) {
    return (eval_options){.report = run_report_write,
                          .suite = "synth_aime",
                          .data = p->data,
                          .arms = {.items = {p->arm_a, p->arm_b}, .n = 2},
                          .out = p->run,
                          .samples = SAMPLES,
                          .seed = 1,
                          .temperature = -1};
}

static snap_status evaluate(const eval_options *o, results **out, snap_err *err) {
    return eval_run(o, NULL, out, err);
}

/* Evaluates, which must succeed. The caller frees the result. */
static results *complete(const eval_options *o) {
    results *r = NULL;
    snap_err err = {0};
    if (evaluate(o, &r, &err) != SNAP_OK)
        printf("\n%s\n", err.text);
    CU_ASSERT_EQUAL(err.code, SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static void expect(const eval_options *o, snap_status status, const char *message) {
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(evaluate(o, &r, &err), status);
    if (!strstr(err.text, message))
        printf("\n%s\n", err.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, message));
    results_free(r);
}

static char *text_of(const char *path) {
    buf text = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read(path, &text, NULL), SNAP_OK);
    return buf_steal(&text);
}

/* ---- results ---- */

static double number(const js *o, const char *key) {
    return js_get_num(o, key, -1e9);
}

/* Computed by hand: 3 of 9 problems lose one sample of three in arm a and all three in arm b. */
static void test_scores(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    results *r = complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *a = js_at(js_get_array(row, "arms"), 0), *b = js_at(js_get_array(row, "arms"), 1);
    const js *pair = js_at(js_get_array(row, "pairs"), 0);
    CU_ASSERT_DOUBLE_EQUAL(number(a, "accuracy_pct"), 100 * (6 + 3 * 2.0 / 3) / 9, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(b, "accuracy_pct"), 100 * 6 / 9.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(pair, "delta_pp"), -100 * 2.0 / 9, 1e-9);
    CU_ASSERT_EQUAL(js_get_int(js_get_object(pair, "discordant"), "baseline_only", -1), 3);
    CU_ASSERT_EQUAL(js_get_int(js_get_object(pair, "discordant"), "arm_only", -1), 0);
    CU_ASSERT_DOUBLE_EQUAL(number(pair, "p_sign_flip"), 0.25, 1e-12); /* 2 of 2^3 sign patterns */
    CU_ASSERT_DOUBLE_EQUAL(number(js_get_object(pair, "length"), "delta_tokens"), 10, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(pair, "margin_pp"), 2, 1e-9);
    CU_ASSERT_EQUAL(js_get_int(a, "identical_samples", -1), 0);
    CU_ASSERT(text_starts(js_get_str(a, "source"), "replay:") &&
              !strchr(js_get_str(a, "source"), '/'));
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "88.89"));
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "-22.22"));
    buf_release(&view);
    results_free(r);
    place_close(&p);
}

/* Continuing a complete run and grading it again need no recordings and change no sample. */
static void test_regrade(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    results_free(complete(&o));
    char *before = text_of(p.samples);
    (void)unlink(strchr(p.arm_a, ':') + 1);
    (void)unlink(strchr(p.arm_b, ':') + 1);
    results_free(complete(&o));
    o = (eval_options){.report = run_report_write, .out = p.run, .regrade = true};
    results *r = complete(&o);
    CU_ASSERT_EQUAL(js_get_int(js_at(results_section(r, "evals"), 0), "problems", 0), PROBLEMS);
    results_free(r);
    char *after = text_of(p.samples);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
    place_close(&p);
}

static js *config_of(const results *r) {
    return js_get_object(js_get_object(results_document(r), "provenance"), "config");
}

/* The configuration of a regraded result is that of the run that made the samples, with the
 * regrade's own data, margin and policy. */
static void test_a_regrade_keeps_the_configuration(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    js *made = js_new_object(), *asked = js_new_object();
    CU_ASSERT(js_set_str(made, "suite", "synth_aime") && js_set_num(made, "temperature", -1) &&
              js_set_bool(made, "regrade", false) && js_set_num(made, "margin", 0));
    CU_ASSERT(js_set_bool(asked, "regrade", true) && js_set_num(asked, "temperature", 0.25));
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, made, &r, NULL), SNAP_OK);
    CU_ASSERT(js_equal(config_of(r), made));
    results_free(r);
    for (int again = 0; again < 2; again++) { /* also a second time */
        o = (eval_options){.report = run_report_write,
                           .out = p.run,
                           .regrade = true,
                           .margin_pp = 5,
                           .math_policy = "strict"};
        CU_ASSERT_EQUAL_FATAL(eval_run(&o, asked, &r, NULL), SNAP_OK);
        const js *c = config_of(r);
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "suite"), "synth_aime");
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "data"), strrchr(p.data, '/') + 1);
        CU_ASSERT_STRING_EQUAL(js_get_str(c, "math-policy"), "strict");
        CU_ASSERT(js_get_bool(c, "regrade", false));
        CU_ASSERT_EQUAL(number(c, "temperature"), -1);
        CU_ASSERT_EQUAL(number(c, "margin"), 5);
        CU_ASSERT_EQUAL(js_get_int(js_get_object(results_document(r), "provenance"), "seed", 0), 1);
        results_free(r);
    }
    js_free(made);
    js_free(asked);
    place_close(&p);
}

/* ---- packed runs ---- */

/* Copies a member into the folder. It must not contain the path of the test's folder. */
static snap_status unpack_one(void *ctx, const char *name, const buf *content, snap_err *err) {
    const place *p = ctx;
    char path[160];
    (void)snprintf(path, sizeof path, "%s/unpacked/%s", p->dir, name);
    if (memmem(buf_str(content), content->len, p->dir, strlen(p->dir))) {
        printf("\n%s names %s\n", name, p->dir);
        CU_FAIL("a folder in a bundle");
    }
    return fs_write_atomic(path, buf_str(content), content->len, err);
}

/* Packs the run and unpacks it elsewhere. */
static void move_by_bundle(place *p) {
    char zip[80], to[80];
    buf bytes = {0};
    (void)snprintf(zip, sizeof zip, "%s/run.zip", p->dir);
    (void)snprintf(to, sizeof to, "%s/unpacked", p->dir);
    CU_ASSERT_EQUAL_FATAL(mkdir(to, 0700), 0);
    CU_ASSERT_EQUAL_FATAL(bundle_pack(p->run, zip, run_report_markdown, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(fs_read(zip, &bytes, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(
        zip_each_member(bytes.data, bytes.len, zip, (zip_limits){64, 1 << 24}, unpack_one, p, NULL),
        SNAP_OK);
    buf_release(&bytes);
}

/* No file of a bundle, including the journal, contains the path of the run's folder. The bundle is
 * still a run that can be graded again, with the data in another place. */
static void test_a_packed_run_names_no_folder(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    js *asked = js_new_object();
    CU_ASSERT(js_set_str(asked, "data", p.data) && js_set_str(asked, "out", p.run));
    results *r = NULL;
    CU_ASSERT_EQUAL_FATAL(eval_run(&o, asked, &r, NULL), SNAP_OK);
    results_free(r);
    move_by_bundle(&p);
    char at[80], data[100];
    (void)snprintf(data, sizeof data, "%s/moved.jsonl", p.dir);
    (void)snprintf(at, sizeof at, "%s/unpacked", p.dir);
    CU_ASSERT_EQUAL(rename(p.data, data), 0);
    o = (eval_options){.report = run_report_write, .out = at, .regrade = true, .data = data};
    r = complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    CU_ASSERT_DOUBLE_EQUAL(number(js_at(js_get_array(row, "arms"), 0), "accuracy_pct"), 800 / 9.0,
                           1e-9);
    results_free(r);
    js_free(asked);
    place_close(&p);
}

/* ---- killed runs ---- */

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
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    results_free(complete(&o));
    char *whole = text_of(p.samples);
    size_t bytes = strlen(whole);
    int killed = 0, in_grading = 0;
    for (int i = 1; i <= 12; i++) {
        char *again, *lines[ROWS + 1];
        (void)nftw(p.run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        bool died = killed_at(&o, (rlim_t)(bytes * (size_t)i / 12 - 7));
        killed += died;
        if (!died)
            continue;
        char *left = text_of(p.samples), *copy[ROWS + 1];
        size_t kept = sorted_lines(left, copy);
        in_grading += kept == ROWS;
        CU_ASSERT(kept <= ROWS);
        free(left);
        results_free(complete(&o));
        again = text_of(p.samples);
        CU_ASSERT_STRING_EQUAL(again, whole); /* the same rows in the same order */
        CU_ASSERT_EQUAL(sorted_lines(again, lines), ROWS);
        for (size_t k = 1; k < ROWS; k++)
            CU_ASSERT_NOT_EQUAL(strcmp(lines[k - 1], lines[k]), 0);
        free(again);
    }
    CU_ASSERT(killed >= 10);
    CU_ASSERT(in_grading >= 1);
    free(whole);
    place_close(&p);
}

static void test_cancelled_runs_go_on(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    static volatile sig_atomic_t cancel;
    cancel = 1;
    o.generate.cancel = &cancel;
    expect(&o, SNAP_E_CANCELLED, "of 54 samples are kept");
    cancel = 0;
    results *r = complete(&o);
    results_free(r);
    place_close(&p);
}

/* ---- refusals ---- */

static void test_another_configuration_is_refused(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p), other = o;
    results_free(complete(&o));
    char *before = text_of(p.samples);
    other.temperature = 0.5;
    expect(&other, SNAP_E_USAGE, "temperature 0.5");
    other = o;
    other.seed = 2;
    expect(&other, SNAP_E_USAGE, "seed 2");
    other = o;
    other.max_tokens = 9;
    expect(&other, SNAP_E_USAGE, "max_tokens 9");
    other = o;
    other.arms.items[1] = "b=replay:elsewhere";
    expect(&other, SNAP_E_USAGE, "arm b, generator was 'replay:");
    other = o;
    other.arms.items[0] = "c=replay:x";
    expect(&other, SNAP_E_USAGE, "no arm c");
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"it is?\", \"answer\": %d}\n", i,
                         i);
    write_text(p.data, &rows);
    buf_release(&rows);
    expect(&o, SNAP_E_USAGE, "dataset_sha256 was");
    char *after = text_of(p.samples);
    CU_ASSERT_STRING_EQUAL(before, after);
    free(before);
    free(after);
    place_close(&p);
}

/* ---- recordings of one run as an arm of another: only for the same questions ---- */

static void write_problems(const place *p, const char *wording, int add) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        (void)buf_printf(&rows, "{\"id\": \"q%d\", \"problem\": \"%s %d?\", \"answer\": %d}\n", i,
                         wording, i, i + add);
    write_text(p->data, &rows);
    buf_release(&rows);
}

/* Runs arms a and b. Returns the options of a second run, whose arms replay the samples of the
 * first run as models a and b. */
static eval_options replayed(place *p) {
    static char a[160], b[160], run[100];
    eval_options o = options_of(p);
    results_free(complete(&o));
    (void)snprintf(a, sizeof a, "a=replay:%s,model=a", p->samples);
    (void)snprintf(b, sizeof b, "b=replay:%s,model=b", p->samples);
    (void)snprintf(run, sizeof run, "%s/again", p->dir);
    o.arms.items[0] = a;
    o.arms.items[1] = b;
    o.out = run;
    return o;
}

static js *pair_of(const results *r) {
    return js_at(js_get_array(js_at(results_section(r, "evals"), 0), "pairs"), 0);
}

static void test_another_prompt_is_refused(void) {
    place p;
    place_open(&p);
    eval_options o = replayed(&p);
    write_problems(&p, "is it not", 0); /* another template or problem gives another prompt */
    expect(&o, SNAP_E_USAGE, "recorded with another prompt: not an answer");
    place_close(&p);
}

static void test_other_sampling_is_refused(void) {
    place p;
    place_open(&p);
    eval_options o = replayed(&p), other = o;
    other.temperature = 0.5;
    expect(&other, SNAP_E_USAGE, "recorded with temperature 1, the request has 0.5");
    place_close(&p);
    place_open(&p);
    o = replayed(&p);
    o.top_p = 0.5;
    expect(&o, SNAP_E_USAGE, "recorded with top_p 0.95, the request has 0.5");
    place_close(&p);
    place_open(&p);
    o = replayed(&p);
    o.max_tokens = 9;
    expect(&o, SNAP_E_USAGE, "recorded with max_tokens 32768, the request has 9");
    place_close(&p);
}

/* Replayed answers are graded with the reference answers of the present data file, not with those
 * of the recording. If the file changes but its prompts do not, a new run grades both arms with the
 * new reference answers and stores the hash of the new file. Continuing a run whose data file has
 * changed is refused. */
static void test_other_data_is_refused_or_shared(void) {
    place p;
    place_open(&p);
    eval_options o = replayed(&p);
    results *r = complete(&o);
    js *first = js_copy(js_at(results_section(r, "evals"), 0));
    results_free(r);
    write_problems(&p, "is it", 1); /* all reference answers differ */
    expect(&o, SNAP_E_USAGE, "dataset_sha256 was");
    eval_options fresh = o;
    char run[100];
    (void)snprintf(run, sizeof run, "%s/fresh", p.dir);
    fresh.out = run;
    r = complete(&fresh);
    const js *row = js_at(results_section(r, "evals"), 0);
    for (size_t a = 0; a < 2; a++)
        CU_ASSERT_EQUAL(number(js_at(js_get_array(row, "arms"), a), "accuracy_pct"), 0);
    CU_ASSERT_STRING_NOT_EQUAL(js_get_str(js_get_object(row, "dataset"), "sha256"),
                               js_get_str(js_get_object(first, "dataset"), "sha256"));
    results_free(r);
    js_free(first);
    place_close(&p);
}

/* Whatever grader graded a recording before, this run's grader grades both arms, and every row says
 * so. */
static void test_one_grader_judges_all_arms(void) {
    static const char *const policies[] = {"strict", "field"};
    static const char *const graders[] = {"math-strict-4", "math-field-4"};
    place p;
    place_open(&p);
    buf rows = {0};
    (void)buf_puts(&rows, "{\"problem\": \"half?\", \"answer\": \"1/2\", \"unique_id\": \"q0\"}\n");
    write_text(p.data, &rows);
    for (int arm = 0; arm < 2; arm++) { /* 2/4: accepted by "field", not by "strict" */
        buf_clear(&rows);
        (void)buf_printf(&rows,
                         "{\"task\": \"math500\", \"problem\": \"q0\", \"sample\": 0, "
                         "\"grader\": \"math-other-9\", \"verdict\": \"%s\", "
                         "\"response\": \"\\\\boxed{2/4}\"}\n",
                         arm ? "correct" : "wrong");
        write_text(strchr(arm ? p.arm_b : p.arm_a, ':') + 1, &rows);
    }
    buf_release(&rows);
    eval_options o = options_of(&p);
    o.suite = "math500";
    o.samples = 1;
    for (int i = 0; i < 2; i++) {
        o.math_policy = policies[i];
        o.regrade = i > 0;
        results *r = complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        CU_ASSERT_STRING_EQUAL(js_get_str(row, "grader"), graders[i]);
        for (size_t a = 0; a < 2; a++)
            CU_ASSERT_EQUAL(number(js_at(js_get_array(row, "arms"), a), "accuracy_pct"),
                            i ? 100 : 0);
        char *text = text_of(p.samples);
        CU_ASSERT_PTR_NULL(strstr(text, "math-other-9"));
        CU_ASSERT_PTR_NULL(strstr(text, graders[1 - i]));
        free(text);
        results_free(r);
    }
    place_close(&p);
}

/* Replayed samples of the same questions are compared, with the same result. */
static void test_the_same_question_is_compared(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    results *r = complete(&o);
    js *pair = js_copy(pair_of(r));
    results_free(r);
    o = replayed(&p);
    r = complete(&o);
    CU_ASSERT(js_equal(pair, pair_of(r)));
    js_free(pair);
    results_free(r);
    place_close(&p);
}

/* After an error in an arm, no sample exists, and the folder can be used for the corrected arm. */
static void test_an_empty_run_can_be_corrected(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p), typo = o;
    typo.arms.items[1] = "b=replay:/nowhere.jsonl";
    expect(&typo, SNAP_E_IO, "arm 'b': ");
    results_free(complete(&o));
    place_close(&p);
}

static void test_a_run_has_one_process(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    results_free(complete(&o));
    char lock[100];
    int fd;
    (void)snprintf(lock, sizeof lock, "%s/journal.lock", p.run);
    CU_ASSERT_EQUAL_FATAL(fs_lock(lock, &fd, NULL), SNAP_OK);
    expect(&o, SNAP_E_IO, "is held by process");
    (void)close(fd);
    results_free(complete(&o));
    place_close(&p);
}

static void test_a_run_can_grow(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    o.samples = 1;
    o.limit = 4;
    results_free(complete(&o));
    o.samples = SAMPLES;
    o.limit = 0;
    results *grown = complete(&o);
    js *row = js_copy(js_at(results_section(grown, "evals"), 0));
    results_free(grown);
    (void)nftw(p.run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    results *at_once = complete(&o);
    CU_ASSERT(js_equal(row, js_at(results_section(at_once, "evals"), 0)));
    results_free(at_once);
    js_free(row);
    place_close(&p);
}

/* Failed samples are rows. They are counted, not scored, and tried again. */
static void test_failures_are_retried(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    char *path = strchr(p.arm_b, ':') + 1, *rows = text_of(path);
    buf half = {0};
    (void)buf_append(&half, rows, (size_t)(strstr(rows, "\"q5\"") - rows));
    while (half.len && half.data[half.len - 1] != '\n')
        half.len--;
    write_text(path, &half);
    buf_release(&half);
    results *r = complete(&o);
    const js *b = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1);
    CU_ASSERT_EQUAL(js_get_int(b, "failed", -1), 4 * SAMPLES);
    CU_ASSERT_EQUAL(js_get_int(b, "scored", -1), 5 * SAMPLES);
    CU_ASSERT_DOUBLE_EQUAL(number(b, "accuracy_pct"), 60, 1e-9); /* problems 0 and 3 of 0..4 */
    results_free(r);
    buf all = {0};
    (void)buf_puts(&all, rows);
    write_text(path, &all);
    buf_release(&all);
    r = complete(&o);
    b = js_at(js_get_array(js_at(results_section(r, "evals"), 0), "arms"), 1);
    CU_ASSERT_EQUAL(js_get_int(b, "failed", -1), 0);
    CU_ASSERT_DOUBLE_EQUAL(number(b, "accuracy_pct"), 100 * 6 / 9.0, 1e-9);
    results_free(r);
    free(rows);
    place_close(&p);
}

/* Arm b answers like arm a, but sample 1 of problem 1 was lost, and all answers were repaired. */
static void record_lost(const char *path) {
    buf rows = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++)
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"response\": \"%d: \\\\boxed{%d}\", \"repaired\": true%s}\n",
                             i, k, k, i % 3 == 0 && k == 0 ? 999 : i,
                             i == 1 && k == 1 ? ", \"error\": \"no answer\"" : "");
    write_text(path, &rows);
    buf_release(&rows);
}

/* The audit of a result: SNAP_OK if it is consistent. */
static snap_status audit(const results *r) {
    verify_findings f = {0};
    verify_document(r, &f);
    snap_status st = verify_status(&f, NULL);
    verify_release(&f);
    return st;
}

static void expect_gate(const results *r, const char *verdict) {
    const gate_quality_options options = {.alpha = 0.05};
    js *rows = js_new_array();
    CU_ASSERT_EQUAL(gate_check_quality(r, r, &options, rows, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(js_get_str(js_at(rows, 0), "verdict"), verdict);
    js_free(rows);
}

static void expect_verdict(const results *r, const char *verdict, const char *withheld) {
    js *pair = pair_of(r);
    const char *why = js_get_str(pair, "withheld");
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "verdict"), verdict);
    CU_ASSERT_STRING_EQUAL(why ? why : "", withheld);
    CU_ASSERT_EQUAL(audit(r), SNAP_OK);
    expect_gate(r, withheld[0] ? "inconclusive" : "ok");
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(strstr(buf_str(&view), "'equivalent' cannot be shown") != NULL, !!withheld[0]);
    buf_release(&view);
}

/* An arm that lost more than --max-lost of its samples is not equivalent. The run, its regrade, the
 * gate and the audit agree. Repaired answers are judged and counted. */
static void test_lost_samples(void) {
    static const char kWhy[] = "b lost 1 of 27 samples, more than 1 %";
    place p;
    place_open(&p);
    record_lost(strchr(p.arm_b, ':') + 1);
    eval_options o = options_of(&p);
    o.margin_pp = 60;
    o.max_lost_pct = -1;
    results *r = complete(&o);
    expect_verdict(r, "not shown", kWhy);
    js *row = js_at(results_section(r, "evals"), 0), *b = js_at(js_get_array(row, "arms"), 1);
    CU_ASSERT(js_get_int(b, "failed", 0) == 1 && js_get_int(b, "repaired", 0) == 26);
    CU_ASSERT_DOUBLE_EQUAL(number(b, "repaired_pct"), 100, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(b, "accuracy_pct"), 100 - 100 / 9.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(pair_of(r), "p_failed"), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(number(pair_of(r), "p_repaired"), 2 / 512.0, 1e-12); /* 9 signs agree */
    CU_ASSERT(js_set_str(pair_of(r), "verdict", "equivalent"));
    CU_ASSERT_EQUAL(audit(r), SNAP_E_WRONG);
    CU_ASSERT(js_set_str(pair_of(r), "verdict", "not shown") &&
              js_set_str(pair_of(r), "withheld", NULL));
    CU_ASSERT_EQUAL(audit(r), SNAP_E_WRONG);
    results_free(r);
    char *page = text_of(in_run(&p, "report.html")), *csv = text_of(in_run(&p, "report.csv"));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, kWhy));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, "repaired"));
    CU_ASSERT_PTR_NOT_NULL(strstr(csv, kWhy));
    free(page);
    free(csv);
    o.max_lost_pct = 5;
    r = complete(&o);
    expect_verdict(r, "equivalent", "");
    results_free(r);
    eval_options again = {
        .report = run_report_write, .out = o.out, .regrade = true, .max_lost_pct = -1};
    r = complete(&again);
    expect_verdict(r, "equivalent", "");
    results_free(r);
    again.max_lost_pct = 0;
    r = complete(&again);
    expect_verdict(r, "not shown", "b lost 1 of 27 samples, more than 0 %");
    results_free(r);
    place_close(&p);
}

/* Two tasks together. The row follows from the rows of the tasks, and the audit computes it. */
static void test_pooled(void) {
    place p;
    place_open(&p);
    static char dir[60], math[100];
    (void)snprintf(dir, sizeof dir, "%s", p.dir);
    char *text = text_of(p.data);
    const char *const names[] = {"synth_aime.jsonl", "synth_math.jsonl"};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(math, sizeof math, "%s/%s", p.dir, names[i]);
        CU_ASSERT_EQUAL(fs_write_atomic(math, text, strlen(text), NULL), SNAP_OK);
    }
    free(text);
    for (int i = 0; i < 2; i++) { /* the same answers for both tasks */
        const char *path = strchr(i ? p.arm_b : p.arm_a, ':') + 1;
        char *rows = text_of(path), *at;
        buf both = {0};
        (void)buf_puts(&both, rows);
        while ((at = strstr(rows, "synth_aime")) != NULL)
            memcpy(at, "synth_math", 10);
        (void)buf_puts(&both, rows);
        write_text(path, &both);
        buf_release(&both);
        free(rows);
    }
    eval_options o = options_of(&p);
    o.suite = "synth_aime,synth_math";
    o.data = dir;
    results *r = complete(&o);
    js *rows = results_section(r, "pooled"), *row = js_at(rows, 0);
    CU_ASSERT_EQUAL_FATAL(js_len(rows), 1);
    CU_ASSERT_EQUAL(js_len(js_get_array(row, "tasks")), 2);
    CU_ASSERT_EQUAL(js_get_int(row, "problems", 0), 2 * PROBLEMS);
    CU_ASSERT_DOUBLE_EQUAL(number(row, "delta_pp"), number(pair_of(r), "delta_pp"), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(number(row, "se_pp"), number(pair_of(r), "se_pp") / sqrt(2), 1e-9);
    CU_ASSERT_EQUAL(audit(r), SNAP_OK);
    buf view = {0};
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "all 2 tasks together: 18 problems"));
    buf_release(&view);
    char *page = text_of(in_run(&p, "report.html")), *md = text_of(in_run(&p, "report.md"));
    CU_ASSERT_PTR_NOT_NULL(strstr(page, "over 2 tasks and 18 problems"));
    CU_ASSERT_PTR_NOT_NULL(strstr(md, "| all 2 tasks |"));
    free(page);
    free(md);
    CU_ASSERT(js_set_num(row, "delta_pp", 0));
    CU_ASSERT_EQUAL(audit(r), SNAP_E_WRONG);
    results_free(r);
    place_close(&p);
}

/* An arm without any scored sample is an error. 64 failed requests in a row end the run early. */
static void test_a_dead_arm_is_an_error(void) {
    place p;
    place_open(&p);
    eval_options o = options_of(&p);
    buf one = {0};
    (void)buf_puts(&one,
                   "{\"task\": \"x\", \"problem\": \"q0\", \"sample\": 0, \"response\": \"\"}\n");
    write_text(strchr(p.arm_b, ':') + 1, &one);
    buf_release(&one);
    results *r = NULL;
    snap_err err = {0};
    CU_ASSERT_EQUAL(evaluate(&o, &r, &err), SNAP_E_NET);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "arm 'b': all 27 samples failed"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(r); /* the result is saved nevertheless */
    const js *row = js_at(results_section(r, "evals"), 0);
    CU_ASSERT_PTR_NULL(js_get(js_at(js_get_array(row, "arms"), 1), "accuracy_pct"));
    results_free(r);
    o.samples = 8; /* 72 requests */
    expect(&o, SNAP_E_NET, "arm 'b': 64 requests in a row failed, the last one: no recording");
    place_close(&p);
}

static void test_arms_of_other_sampling_are_not_compared(void) {
    static const struct {
        const char *key, *refused;
    } cases[] = {{"top_p=0.5", "top_p differs: 0.95 against 0.5"},
                 {"temperature=0.6", "temperature differs: 1 against 0.6"},
                 {"max_tokens=100", "max_tokens differs: 32768 against 100"},
                 {"seed=77", NULL}}; /* other seeds: another sample of the same arm */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        place p;
        place_open(&p);
        eval_options o = options_of(&p);
        char arm[160];
        (void)snprintf(arm, sizeof arm, "%s,%s", p.arm_b, cases[i].key);
        o.arms.items[1] = arm;
        results *r = complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        const js *pair = js_at(js_get_array(row, "pairs"), 0);
        const char *refused = js_get_str(pair, "refused");
        CU_ASSERT((refused != NULL) == (cases[i].refused != NULL));
        CU_ASSERT((js_get_str(pair, "verdict") == NULL) == (cases[i].refused != NULL));
        if (refused && cases[i].refused)
            CU_ASSERT_STRING_EQUAL(refused, cases[i].refused);
        buf view = {0};
        CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
        CU_ASSERT((strstr(buf_str(&view), "not compared") != NULL) == (cases[i].refused != NULL));
        buf_release(&view);
        results_free(r);
        place_close(&p);
    }
}

static void with_control(eval_options *o, const char *kind) {
    o->controls.items[o->controls.n++] = kind;
}

/* Recordings have no other seeds, and names may be in use already. */
static void test_controls_that_cannot_be(void) {
    static const struct {
        const char *kind, *message;
    } bad[] = {{"seeds", "--control seeds: arm 'a' is recorded"},
               {"noise", "--control 'noise' is neither 'seeds' nor"},
               {"damaged", "--control 'damaged' is neither"},
               {"damaged=", "--control damaged: generator '' must be http"},
               {"damaged=replay:f,color=red", "--control damaged: unknown key 'color'"}};
    place p;
    place_open(&p);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        eval_options o = options_of(&p);
        with_control(&o, bad[i].kind);
        expect(&o, SNAP_E_USAGE, bad[i].message);
    }
    eval_options o = options_of(&p);
    o.arms.items[0] = "x=http://127.0.0.1:9/v1";
    o.arms.items[1] = "x.control=http://127.0.0.1:9/v1";
    with_control(&o, "seeds");
    expect(&o, SNAP_E_USAGE, "--control seeds: the name 'x.control' is taken");
    o.arms.items[1] = "y=http://127.0.0.1:9/v1";
    with_control(&o, "seeds");
    expect(&o, SNAP_E_USAGE, "--control seeds: the name 'x.control' is taken");
    place_close(&p);
}

/* A recording of an arm that is wrong on the first @wrong problems, in every sample. */
static void record_damaged(const place *p, int wrong) {
    buf rows = {0}, path = {0};
    for (int i = 0; i < PROBLEMS; i++)
        for (int k = 0; k < SAMPLES; k++)
            (void)buf_printf(&rows,
                             "{\"task\": \"synth_aime\", \"problem\": \"q%d\", \"sample\": %d, "
                             "\"response\": \"hm %d, \\\\boxed{%d}\", \"finish_reason\": "
                             "\"stop\", \"completion_tokens\": 100}\n",
                             i, k, k, i < wrong ? 999 : i);
    (void)buf_printf(&path, "%s/damaged.jsonl", p->dir);
    write_text(buf_str(&path), &rows);
    buf_release(&path);
    buf_release(&rows);
}

/* Damage of 8 or 9 problems of 9 is detected; no damage and one damaged problem are not. The
 * damaged arm does not change the comparison of the others. */
static void test_a_damaged_arm_shows_what_is_seen(void) {
    static const struct {
        int wrong;
        const char *sensitivity;
    } cases[] = {{8, "sees damage"}, {9, "sees damage"}, {0, "blind"}, {1, "blind"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        place p;
        char control[120];
        place_open(&p);
        record_damaged(&p, cases[i].wrong);
        eval_options o = options_of(&p);
        results *alone = complete(&o);
        (void)nftw(p.run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        (void)snprintf(control, sizeof control,
                       "damaged=replay:%s/damaged.jsonl,precision=config-a", p.dir);
        with_control(&o, control);
        results *r = complete(&o);
        const js *row = js_at(results_section(r, "evals"), 0);
        const js *first = js_at(js_get_array(row, "pairs"), 0);
        const js *damaged = js_at(js_get_array(row, "pairs"), 1);
        CU_ASSERT(js_equal(
            first, js_at(js_get_array(js_at(results_section(alone, "evals"), 0), "pairs"), 0)));
        CU_ASSERT_PTR_NULL(js_get(first, "control"));
        CU_ASSERT_PTR_NULL(js_get(first, "sensitivity"));
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "control"), "damaged");
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "sensitivity"), cases[i].sensitivity);
        const js *arm = js_at(js_get_array(row, "arms"), 2);
        CU_ASSERT_STRING_EQUAL(js_get_str(arm, "precision"), "config-a");
        buf view = {0};
        CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "damaged - a (damaged)"));
        CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), cases[i].sensitivity));
        buf_release(&view);
        results_free(r);
        results_free(alone);
        o = (eval_options){.report = run_report_write,
                           .out = p.run,
                           .regrade = true}; /* the control belongs to the run */
        r = complete(&o);
        row = js_at(results_section(r, "evals"), 0);
        damaged = js_at(js_get_array(row, "pairs"), 1);
        CU_ASSERT_STRING_EQUAL(js_get_str(damaged, "sensitivity"), cases[i].sensitivity);
        results_free(r);
        place_close(&p);
    }
}

/* A damaged arm with other sampling is not compared, so it proves nothing. */
static void test_a_damaged_arm_can_be_refused(void) {
    place p;
    char control[120];
    place_open(&p);
    record_damaged(&p, PROBLEMS);
    eval_options o = options_of(&p);
    (void)snprintf(control, sizeof control, "damaged=replay:%s/damaged.jsonl,top_p=0.5", p.dir);
    with_control(&o, control);
    results *r = complete(&o);
    const js *row = js_at(results_section(r, "evals"), 0);
    const js *pair = js_at(js_get_array(row, "pairs"), 1);
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "control"), "damaged");
    CU_ASSERT_PTR_NULL(js_get(pair, "sensitivity"));
    CU_ASSERT_STRING_EQUAL(js_get_str(pair, "refused"), "top_p differs: 0.95 against 0.5");
    results_free(r);
    place_close(&p);
}

/* ---- options ---- */

static void test_arms(void) {
    arena mem = {0};
    eval_arm a;
    CU_ASSERT_EQUAL_FATAL(
        arm_parse("--arm",
                  "fp8=https://host/v1,model=m=1,stream=false,retries=0,timeout=1.5,seed=3,"
                  "in_flight=2,precision=fp8",
                  &mem, &a, NULL),
        SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.name, "fp8");
    CU_ASSERT_STRING_EQUAL(a.spec, "https://host/v1");
    CU_ASSERT_STRING_EQUAL(a.kind, "http");
    CU_ASSERT_STRING_EQUAL(a.model, "m=1");
    CU_ASSERT(a.no_stream && a.max_retries == 0 && a.timeout_s == 1.5 && a.in_flight == 2);
    CU_ASSERT(a.has_seed && a.seed == 3 && a.temperature < 0);
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"x", "is not NAME=GENERATOR"},
        {"=replay:f", "the name must be"},
        {"a b=replay:f", "the name must be"},
        {"x=ftp://h", "'ftp://h' must be http"},
        {"x=replay:f,", "--arm"},
        {"x=replay:f,model", "is not key=value"},
        {"x=replay:f,color=red", "unknown key 'color'"},
        {"x=replay:f,stream=maybe", "'stream' must not be 'maybe'"},
        {"x=replay:f,seed=-1", "'seed' must not be '-1'"},
        {"x=replay:f,top_p=2", "'top_p' must not be '2'"},
        {"x=http://user:pass@host/v1", "must not hold credentials"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(arm_parse("--arm", bad[i].text, &mem, &a, &err), SNAP_E_USAGE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].message));
        CU_ASSERT_PTR_NULL(strstr(err.text, "pass@"));
    }
    arena_release(&mem);
}

/* What may be a secret that was written in the wrong place is never quoted. */
static void test_secrets_of_arms(void) {
    arena mem = {0};
    eval_arm a;
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm",
                                    "x=https://host/v1,key_env=MY_KEY,header=X-Key:OTHER_KEY,"
                                    "header=X-Team:@/etc/team",
                                    &mem, &a, NULL),
                          SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a.key_env, "MY_KEY");
    CU_ASSERT_EQUAL(a.n_headers, 2);
    CU_ASSERT_STRING_EQUAL(a.headers[0], "X-Key:OTHER_KEY");
    CU_ASSERT_STRING_EQUAL(a.headers[1], "X-Team:@/etc/team");
    static const char *const bad[] = {
        "x=https://host/v1,key_env=sk-oops-123",
        "x=https://host/v1,key_env=$oops",
        "x=https://host/v1,header=X-Key:sk-oops-123",
        "x=https://host/v1,header=X-Key:$oops",
        "x=https://host/v1,header=X-Key: Bearer oops",
        "x=https://host/v1,header=X-Key:@",
        "x=https://host/v1,header=sk-oops-123",
        "x=https://host/v1,header=X Y:oops",
        "x=https://host/v1,api_key=oops",
        "x=https://host/v1,retries=0,key=oops",
        "x=https://oops@host/v1",
        "x=https://host/v1,retries=x,header=K:oops",
        "x=https//u:oops@host",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL(arm_parse("--arm", bad[i], &mem, &a, &err), SNAP_E_USAGE);
        CU_ASSERT(text_starts(err.text, "--arm x: "));
        CU_ASSERT_PTR_NULL(strstr(err.text, "oops"));
    }
    arena_release(&mem);
}

/* Which servers may receive the general key. */
static void test_where_keys_may_go(void) {
    static const struct {
        const char *arm;
        bool from_file;
        const char *refused; /* NULL: the general key is sent; "" = nothing is sent */
    } cases[] = {
        {"x=https://gpu.example/v1", false, NULL},
        {"x=http://127.0.0.1:8000/v1|http://[::1]:1/v1", false, NULL},
        {"x=http://localhost:8000/v1*2", false, NULL},
        {"x=http://gpu.example/v1", false, "neither https nor on this machine"},
        {"x=https://a/v1|http://b/v1", false, "neither https nor on this machine"},
        {"x=https://gpu.example/v1", true, "from a configuration file"},
        {"x=http://gpu.example/v1,key_env=none", false, ""},
        {"x=https://gpu.example/v1,key_env=none", true, ""},
        {"x=https://gpu.example/v1,key_env=SNAPMLA_TEST_KEY", true, "refused in a configuration"},
        {"x=https://gpu.example/v1,header=A:@/etc/passwd", true, "refused in a configuration"},
        {"x=https://gpu.example/v1,key_env=SNAPMLA_NOT_SET", false, "not set or empty"},
        {"x=https://gpu.example/v1,header=A:@/nowhere", false, "/nowhere"},
        {"x=https://gpu.example/v1,header=A:@/dev/zero", false, "not a regular file"},
        {"x=replay:f", true, ""},
        {"x=local:d", false, ""},
    };
    const generate_options general = {.api_key = "sk-general", .api_key_from = "SNAPMLA_API_KEY"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena mem = {0};
        eval_arm a;
        generator_options g = {0};
        snap_err err = {0};
        const char *refused = cases[i].refused;
        CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", cases[i].arm, &mem, &a, NULL), SNAP_OK);
        a.from_file = cases[i].from_file;
        snap_status st = arm_secrets_read(&a, &general, &mem, &g, &err);
        CU_ASSERT_EQUAL(st == SNAP_OK, !refused || !refused[0]);
        CU_ASSERT_EQUAL(g.api_key != NULL, !refused);
        CU_ASSERT_EQUAL(g.n_headers, 0);
        if (st != SNAP_OK && !strstr(err.text, refused))
            printf("\n%s: %s\n", cases[i].arm, err.text);
        CU_ASSERT(st == SNAP_OK || strstr(err.text, refused));
        CU_ASSERT(st == SNAP_OK || text_starts(err.text, "arm 'x': "));
        CU_ASSERT_PTR_NULL(strstr(err.text, "sk-general"));
        arena_release(&mem);
    }
}

static void test_secrets_are_read(void) {
    arena mem = {0};
    eval_arm a;
    generator_options g = {0};
    const generate_options general = {.api_key = "sk-general"};
    char file[] = "/tmp/snapmla-secret-XXXXXX", arm[200];
    int fd = mkstemp(file);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, "Bearer in-a-file\r\n", 18) == 18);
    (void)close(fd);
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_TEST_KEY", "in-a-variable", 1), 0);
    (void)snprintf(arm, sizeof arm, "x=http://gpu/v1,key_env=SNAPMLA_TEST_KEY,header=X-Auth:@%s",
                   file);
    CU_ASSERT_EQUAL_FATAL(arm_parse("--arm", arm, &mem, &a, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(arm_secrets_read(&a, &general, &mem, &g, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(g.api_key, "in-a-variable");
    CU_ASSERT_EQUAL_FATAL(g.n_headers, 1);
    CU_ASSERT_STRING_EQUAL(g.headers[0], "X-Auth: Bearer in-a-file");
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(setenv("SNAPMLA_TEST_KEY", "two\r\nX-Y: z", 1), 0);
    CU_ASSERT_EQUAL(arm_secrets_read(&a, &general, &mem, &g, &err), SNAP_E_USAGE);
    CU_ASSERT_STRING_EQUAL(err.text, "arm 'x': key_env: the value is empty or has a character that "
                                     "a header cannot have");
    CU_ASSERT_EQUAL(unsetenv("SNAPMLA_TEST_KEY"), 0);
    CU_ASSERT_EQUAL(unlink(file), 0);
    arena_release(&mem);
}

static void test_suites(void) {
    suite s;
    CU_ASSERT_EQUAL_FATAL(suite_resolve("aime24,synth_aime", &s, NULL), SNAP_OK);
    CU_ASSERT(s.n == 2 && s.tasks[0].samples == 32 && s.tasks[1].samples == 4);
    CU_ASSERT_DOUBLE_EQUAL(s.margin_pp, 2, 0);
    static const struct {
        const char *text, *message;
        snap_status status;
    } files[] = {
        {"{\"tasks\": [{\"task\": \"aime25\", \"samples\": 8}], \"margin_pp\": 3}", "", SNAP_OK},
        {"{\"tasks\": []}", "names no task", SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"nope\"}]}", "unknown task 'nope'", SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"aime24\", \"samples\": 0}]}", "'samples' must be",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\", \"samples\": 1.5}]}", "'samples' must be an integer",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\"}, {\"task\": \"aime24\"}]}", "is given twice",
         SNAP_E_USAGE},
        {"{\"tasks\": [{\"task\": \"aime24\"}], \"color\": 1}", "unknown key 'color'",
         SNAP_E_INPUT},
        {"{\"tasks\": [{\"task\": \"aime24\"}], \"sampling\": {\"top_p\": 0}}", "'top_p' must be",
         SNAP_E_INPUT},
        {"[]", "must be an object", SNAP_E_INPUT},
        {"{", "suite.json:1", SNAP_E_INPUT},
        {"{\"tasks\": [5]}", "", SNAP_E_INPUT},
    };
    char dir[] = "/tmp/snapmla-suite-XXXXXX", path[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/suite.json", dir);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snap_err err = {0};
        CU_ASSERT_EQUAL_FATAL(fs_write_atomic(path, files[i].text, strlen(files[i].text), NULL),
                              SNAP_OK);
        CU_ASSERT_EQUAL(suite_resolve(path, &s, &err), files[i].status);
        if (!strstr(err.text, files[i].message))
            printf("\n%s\n", err.text);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, files[i].message));
    }
    CU_ASSERT_EQUAL(suite_resolve("nope", &s, NULL), SNAP_E_USAGE);
    CU_ASSERT_EQUAL(suite_resolve("", &s, NULL), SNAP_E_USAGE);
    (void)unlink(path);
    (void)rmdir(dir);
}

/* No problem has answers from both arms. */
static void test_nothing_paired_shows_no_number(void) {
    static const char text[] =
        "[{\"task\":\"aime24\",\"problems\":1,\"samples_per_problem\":1,\"grader\":\"aime-2\","
        "\"sampling\":{\"temperature\":1,\"top_p\":0.95},\"arms\":[],"
        "\"pairs\":[{\"arm\":\"b\",\"baseline\":\"a\",\"delta_pp\":null,\"margin_pp\":2,"
        "\"verdict\":\"not shown\"}]}]";
    results *r = NULL;
    buf view = {0};
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "eval", NULL, 0, NULL), SNAP_OK);
    CU_ASSERT(
        js_set_new(results_document(r), "evals", js_parse(text, sizeof text - 1, "rows", NULL)));
    CU_ASSERT_EQUAL(eval_view(r, false, &view, NULL), SNAP_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_str(&view), "not shown"));
    CU_ASSERT_PTR_NULL(strstr(buf_str(&view), "nan"));
    buf_release(&view);
    results_free(r);
}

CU_TestInfo tests_eval[] = {
    {"scores", test_scores},
    {"without pairs no number is shown", test_nothing_paired_shows_no_number},
    {"regrade", test_regrade},
    {"a regrade keeps the configuration", test_a_regrade_keeps_the_configuration},
    {"a packed run names no folder", test_a_packed_run_names_no_folder},
    {"killed runs can be continued", test_killed_runs_go_on},
    {"cancelled runs can be continued", test_cancelled_runs_go_on},
    {"another configuration is refused", test_another_configuration_is_refused},
    {"the same question is compared", test_the_same_question_is_compared},
    {"another prompt is refused", test_another_prompt_is_refused},
    {"other sampling is refused", test_other_sampling_is_refused},
    {"other data is refused or shared", test_other_data_is_refused_or_shared},
    {"one grader judges all arms", test_one_grader_judges_all_arms},
    {"a run without samples can be corrected", test_an_empty_run_can_be_corrected},
    {"a run has one process", test_a_run_has_one_process},
    {"a run can grow", test_a_run_can_grow},
    {"failures are retried", test_failures_are_retried},
    {"an arm without answers is an error", test_a_dead_arm_is_an_error},
    {"impossible controls are refused", test_controls_that_cannot_be},
    {"a damaged arm shows which loss is detected", test_a_damaged_arm_shows_what_is_seen},
    {"a damaged arm can be refused", test_a_damaged_arm_can_be_refused},
    {"arms of other sampling are not compared", test_arms_of_other_sampling_are_not_compared},
    {"secrets of arms", test_secrets_of_arms},
    {"where keys may go", test_where_keys_may_go},
    {"secrets are read", test_secrets_are_read},
    {"arms", test_arms},
    {"suites", test_suites},
    {"lost and repaired samples", test_lost_samples},
    {"several tasks together", test_pooled},
    CU_TEST_INFO_NULL,
};
