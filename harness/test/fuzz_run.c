/* Reads random bytes as a result file. It is refused with a message, or the three readers of result
 * files from other people can use it. The report is UTF-8. As Markdown and HTML it has no control
 * characters but line ends and tabs, and as CSV its rows have equal numbers of fields. `verify-run`
 * gives findings. `gate check` gives verdicts, finds no slow-down and no larger error in a file
 * that is compared with itself, and writes only lines of its own into the log of a CI job. */
#include <stdint.h>
#include <string.h>

#include "base/csv.h"
#include "base/fs.h"
#include "base/term.h"
#include "base/test/fuzz_file.h"
#include "base/test/fuzz_tree.h"
#include "base/text.h"
#include "harness/audit/audit.h"
#include "harness/gate/files.h"
#include "harness/gate/quality.h"
#include "harness/gate/verdicts.h"
#include "harness/view/findings.h"
#include "harness/view/gate_verdicts.h"
#include "harness/view/pages.h"
#include "harness/view/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char kReference[] = "harness/test/seeds/fuzz_run/run";

/* The run that others are compared with. */
static results *reference(void) {
    static results *kept;
    buf text = {0};
    if (!kept && (fs_read(kReference, &text, NULL) != SNAP_OK ||
                  results_parse(&kept, buf_str(&text), text.len, "seed", NULL) != SNAP_OK))
        __builtin_trap(); /* must run in the root of the repository */
    buf_release(&text);
    return kept;
}

static void check_text(buf *text) {
    if (text->failed || !text_is_utf8(buf_str(text), text->len))
        __builtin_trap();
    for (size_t i = 0; i < text->len; i++)
        if ((unsigned char)buf_str(text)[i] < ' ' && !strchr("\n\r\t", buf_str(text)[i]))
            __builtin_trap();
    buf_clear(text);
}

/* ---- report ---- */

/* In CSV, a name keeps its bytes: a program reads them. All rows have as many fields as the
 * head. */
static snap_status check_width(void *ctx, const csv_field *fields, size_t n, long line,
                               snap_err *err) {
    size_t *width = ctx;
    (void)fields, (void)line, (void)err;
    if (*width && *width != n)
        __builtin_trap();
    *width = n;
    return SNAP_OK;
}

static void check_csv(buf *text) {
    size_t width = 0;
    if (text->failed || !text_is_utf8(buf_str(text), text->len) ||
        csv_each_row(buf_str(text), text->len, "report.csv", check_width, &width, NULL) != SNAP_OK)
        __builtin_trap();
    buf_clear(text);
}

static void report(results *r, bool compare) {
    results *const runs[] = {reference(), r};
    static const char *const names[] = {"reference", "file"};
    report_model *m = NULL;
    snap_err err = {0};
    buf text = {0};
    if (report_model_new(&m, compare ? runs : runs + 1, compare ? names : names + 1,
                         compare ? 2 : 1, &err) != SNAP_OK)
        __builtin_trap();
    const bool refused[2] = {false, false};
    if (compare && report_unlike(m, 1, refused, &text) && !text.len)
        __builtin_trap();
    check_text(&text);
    if (compare && report_compare(m, NULL, NULL, 0, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    report_markdown(m, &text);
    check_text(&text);
    write_page(m, &text);
    check_text(&text);
    write_csv(m, &text);
    check_csv(&text);
    if (report_write(m, fuzz_path("report"), REPORT_TEX | REPORT_SVG, NULL, &err) != SNAP_OK)
        __builtin_trap();
    buf_release(&text);
    report_model_free(m);
}

/* ---- verify-run ---- */

static void verify(const results *r) {
    verify_findings f = {0};
    snap_err err = {0};
    buf text = {0};
    verify_document(r, &f);
    if (verify_status(&f, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    if (f.failed || findings_text(&f, false, &text, NULL) != SNAP_OK)
        __builtin_trap();
    check_text(&text);
    if (findings_json(&f, &text, NULL) != SNAP_OK)
        __builtin_trap();
    check_text(&text);
    buf_release(&text);
    verify_release(&f);
}

/* ---- gate check ---- */

static js *judge(const results *before, const results *now) {
    const gate_file_options files = {
        .limits = GATE_DEFAULTS, .error_growth = 0.1, .allow_shared = true, .any_machine = true};
    const gate_quality_options quality = {.alpha = 0.05, .seed = 1};
    js *rows = js_new_array();
    if (gate_check_speed(before, now, &files, rows, NULL) != SNAP_OK ||
        gate_check_fidelity(before, now, &files, rows, NULL) != SNAP_OK ||
        gate_check_quality(before, now, &quality, rows, NULL) != SNAP_OK)
        __builtin_trap();
    return rows;
}

/* Lines that begin with "::" are commands of GitHub. */
static void check_commands(const buf *text, size_t rows) {
    size_t lines = 0;
    for (const char *at = buf_str(text); *at; at = strchr(at, '\n') + 1, lines++)
        if (!text_starts(at, "::error ") && !text_starts(at, "::warning "))
            __builtin_trap();
    if (lines > rows)
        __builtin_trap();
}

static void show(js *rows) {
    buf text = {0};
    results *r = NULL;
    snap_err err = {0};
    if (results_new(&r, "gate", NULL, 0, NULL) != SNAP_OK ||
        results_add_all(r, "verdicts", js_copy(rows), &err) != SNAP_OK)
        __builtin_trap(); /* also if a row does not fit the schema */
    verdicts_text(rows, false, &text);
    check_text(&text);
    verdicts_markdown(rows, "title", &text);
    check_text(&text);
    verdicts_junit(rows, &text);
    check_text(&text);
    verdicts_gitlab(rows, "file", &text);
    check_text(&text);
    verdicts_github(rows, &text);
    check_commands(&text, js_len(rows));
    check_text(&text);
    if (verdict_status(rows, &err) != SNAP_OK && !err.text[0])
        __builtin_trap();
    results_free(r);
    buf_release(&text);
    js_free(rows);
}

static void gate(const results *r) {
    js *same = judge(r, r);
    if (verdict_count(same, "speed", "regressed") || verdict_count(same, "fidelity", "regressed"))
        __builtin_trap();
    show(same);
    show(judge(reference(), r));
    show(judge(r, reference()));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    results *r = NULL;
    snap_err err = {0};
    term_set_quiet(true);
    if (results_parse(&r, (const char *)data, size, "file", &err) == SNAP_OK) {
        report(r, false);
        report(r, true);
        verify(r);
        gate(r);
    } else if (r || !err.text[0]) {
        __builtin_trap();
    }
    results_free(r);
    return 0;
}
