/* livecodebench.c - LiveCodeBench's code generation tasks: contest problems with dates, so that a
 * run can be limited to problems that are newer than the model.
 *
 * Files as in livecodebench/code_generation_lite: test.jsonl is the first release, test2.jsonl has
 * what the second one added, and so on to test6.jsonl. A version has the name that the original
 * loader uses: "release_v5" is the first five files, "v5" is only the fifth, "v2_v4" is the second
 * to fourth. Without a version, all of these six files that exist are used. Wording of the prompts:
 * LiveCodeBench (MIT). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/code/code_rows.h"

enum { kReleases = 6, kCheckedBytes = 1 << 20, kDay = 10 };

/* ---- prompts ---- */

static const char kSystem[] =
    "You are an expert Python programmer. You will be given a question (problem specification) and "
    "will generate a correct Python program that matches the specification and passes all tests.";

static const char kWithStarter[] =
    "### Format: You will use the following starter code to write the solution to the problem and "
    "enclose your code within delimiters.\n```python\n";
static const char kWithInput[] =
    "### Format: Read the inputs from stdin solve the problem and write the answer to stdout (do "
    "not directly test on the sample inputs). Enclose your code within delimiters as follows. "
    "Ensure that when the python program runs, it reads the inputs, runs the algorithm and writes "
    "output to STDOUT.\n```python\n";

static snap_status word_prompt(const js *row, task_rows *r, task_row *out, const char *where,
                               snap_err *err) {
    const char *question = row_text(row, (const char *const[]){"question_content", NULL});
    const char *starter = row_text(row, (const char *const[]){"starter_code", NULL});
    buf text = {0};
    if (!question)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'question_content'", where);
    (void)buf_printf(&text, "### Question:\n%s\n\n%s%s", question,
                     starter ? kWithStarter : kWithInput, starter ? starter : "# YOUR CODE HERE");
    (void)buf_puts(&text, "\n```\n\n### Answer: (use the provided format with backticks)\n\n");
    snap_status st = buf_check(&text, where, err);
    if (st == SNAP_OK)
        st = row_keep(r, buf_str(&text), &out->prompt, where, err);
    buf_release(&text);
    out->system = kSystem;
    return st;
}

/* ---- rows ---- */

/* Checks the tests of a row while the data is loaded. If the private tests exceed kCheckedBytes,
 * checks only that the keys are there. */
static snap_status check_tests(const js *row, const char *where, snap_err *err) {
    static const char *const keys[] = {"public_test_cases", "private_test_cases", "metadata"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!js_get_str(row, keys[i]))
            return err_set(err, SNAP_E_INPUT, "%s: '%s' must be text", where, keys[i]);
    (void)js_get_strn(row, "private_test_cases", &n);
    if (n > kCheckedBytes)
        return SNAP_OK;
    code_tests tests;
    snap_status st = tests_read(row, &tests, where, err);
    tests_release(&tests);
    return st;
}

/* True if a contest date is in the window. The first day is included. The last day is included at
 * midnight only: a later time on that day is outside. ISO dates can be compared as text. */
static bool in_window(const char *date, const task_options *o) {
    return (!o->lcb_from || strcmp(date, o->lcb_from) >= 0) &&
           (!o->lcb_to || strncmp(date, o->lcb_to, kDay) < 0 ||
            (strncmp(date, o->lcb_to, kDay) == 0 &&
             strspn(date + kDay, "T0:.") == strlen(date + kDay)));
}

static bool is_day(const char *text) {
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; i < kDay; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

static snap_status read_row(const js *row, task_rows *r, task_row *out, const char *where,
                            snap_err *err) {
    const char *id = row_text(row, (const char *const[]){"question_id", NULL});
    const char *date = js_get_str(row, "contest_date");
    snap_status st;
    if (!id)
        return err_set(err, SNAP_E_INPUT, "%s: needs a text 'question_id'", where);
    if (!date || !is_day(date))
        return err_set(err, SNAP_E_INPUT,
                       "%s: 'contest_date' must be a date such as 2024-08-03T00:00:00", where);
    out->skip = !in_window(date, r->options);
    TRY(check_tests(row, where, err));
    if (out->skip)
        return SNAP_OK;
    TRY(row_keep(r, id, &out->id, where, err));
    TRY(row_keep(r, r->gold, &out->gold, where, err));
    TRY(word_prompt(row, r, out, where, err));
cleanup:
    return st;
}

/* ---- files ---- */

static snap_status check_day(const char *flag, const char *day, snap_err *err) {
    if (!day || (strlen(day) == kDay && is_day(day)))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "%s '%s' is not a date such as 2024-08-31", flag, day);
}

/* The number of a release, for example 3 for "v3"; 0 if the text is not "v1" to "v6". */
static int number_of(const char *text, size_t n) {
    return n == 2 && text[0] == 'v' && text[1] >= '1' && text[1] <= '0' + kReleases ? text[1] - '0'
                                                                                    : 0;
}

/* The first and last release of a version. */
static snap_status parse_version(const char *v, int *first, int *last, snap_err *err) {
    const char *line = strchr(v, '_');
    *first = *last = 0;
    if (strcmp(v, "release_latest") == 0) {
        *first = 1;
        *last = kReleases;
    } else if (text_starts(v, "release_")) {
        *last = number_of(v + 8, strlen(v + 8));
        *first = *last ? 1 : 0;
    } else if (line) {
        *first = number_of(v, (size_t)(line - v));
        *last = number_of(line + 1, strlen(line + 1));
    } else {
        *first = *last = number_of(v, strlen(v));
    }
    if (*first && *last && *first <= *last)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "unknown --lcb-version '%s' (release_v1..release_v%d, release_latest, v1..v%d, "
                   "v1_v3)",
                   v, kReleases, kReleases);
}

/* Path of a release's file in the folder of the file that was found; the caller frees it. */
static char *file_of(const task_rows *r, int release) {
    const char *found = r->set->file, *slash = strrchr(found, '/');
    buf path = {0};
    if (slash)
        (void)buf_append(&path, found, (size_t)(slash - found) + 1);
    if (release == 1)
        (void)buf_puts(&path, "test.jsonl");
    else
        (void)buf_printf(&path, "test%d.jsonl", release);
    char *text = path.failed ? NULL : buf_steal(&path);
    buf_release(&path);
    return text;
}

/* Reads one more file. First adds set->sha256, the digest of the previous file, to the set's list
 * of digests. Then set->sha256 becomes the digest of this file. */
static snap_status read_release(task_rows *r, const char *path, snap_err *err) {
    char before[HASH_HEX];
    (void)snprintf(before, sizeof before, "%s", r->set->sha256);
    snap_status st = before[0] ? task_rows_digest(r, before, err) : SNAP_OK;
    return st == SNAP_OK ? code_rows_read(r, path, r->set->sha256, err) : st;
}

static snap_status read_releases(task_rows *r, int first, int last, bool all, snap_err *err) {
    snap_status st = SNAP_OK;
    for (int i = first; i <= last && st == SNAP_OK; i++) {
        char *path = file_of(r, i);
        if (!path)
            st = err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", r->set->file);
        else if (fs_exists(path))
            st = read_release(r, path, err);
        else if (all)
            st = err_set(err, SNAP_E_IO, "'%s' is missing, and --lcb-version %s needs it", path,
                         r->options->lcb_version);
        free(path);
    }
    return st;
}

static snap_status load(task_rows *r, snap_err *err) {
    const task_options *o = r->options;
    int first = 1, last = kReleases;
    snap_status st;
    TRY(check_day("--lcb-from", o->lcb_from, err));
    TRY(check_day("--lcb-to", o->lcb_to, err));
    if (o->lcb_version)
        TRY(parse_version(o->lcb_version, &first, &last, err));
    if (o->lcb_version && !r->in_folder)
        TRY(err_set(err, SNAP_E_USAGE,
                    "--lcb-version chooses among a folder's files, and --data "
                    "names one file"));
    if (!r->in_folder || !text_ends(r->set->file, "jsonl") ||
        text_ends(r->set->file, "livecodebench.jsonl"))
        return code_rows_load(r, err);
    TRY(read_releases(r, first, last, o->lcb_version != NULL, err));
    if (!r->set->n && (o->lcb_from || o->lcb_to))
        TRY(err_set(err, SNAP_E_USAGE, "LiveCodeBench has no problem in this period (%s to %s)",
                    o->lcb_from ? o->lcb_from : "the first", o->lcb_to ? o->lcb_to : "the last"));
cleanup:
    return st;
}

static snap_status read_tests(const task_spec *t, const js *row, code_tests *out, const char *where,
                              snap_err *err) {
    (void)t;
    return tests_read(row, out, where, err);
}

const task_spec task_livecodebench = {
    .name = "livecodebench",
    .title = "LiveCodeBench",
    .files = {"livecodebench/test.jsonl", "livecodebench/test6.jsonl", "livecodebench/test5.jsonl",
              "code_generation_lite/test.jsonl", "livecodebench.jsonl",
              "livecodebench_sample/test.jsonl"},
    .samples = 4,
    .grader = &grader_code_real,
    .lcb_grader = &grader_code_lcb,
    .read_row = read_row,
    .load = load,
    .read_tests = read_tests};
