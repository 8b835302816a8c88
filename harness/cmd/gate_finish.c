/* gate_finish.c - writes the verdicts of `snapmla gate`: result file, table, and files for CI. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/cmd/gate.h"
#include "harness/cmd/print.h"
#include "harness/gate/verdicts.h"
#include "harness/record/device_results.h"
#include "harness/view/gate_verdicts.h"

static bool wants_github(const gate_output *o) {
    const char *actions = getenv("GITHUB_ACTIONS");
    if (strcmp(o->annotations, "auto") == 0)
        return actions && strcmp(actions, "true") == 0;
    return strcmp(o->annotations, "github") == 0;
}

/* Appends to the summary page of a GitHub job. Does nothing if there is no job. */
static snap_status add_job_summary(const buf *text, snap_err *err) {
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    if (!path || !path[0])
        return SNAP_OK;
    /* opening a named pipe that nothing reads would wait for ever */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "a");
    bool ok = f && fwrite(buf_str(text), 1, text->len, f) == text->len;
    ok = f && fclose(f) == 0 && ok;
    return ok ? SNAP_OK : err_set_errno(err, "cannot write the job's summary '%s'", path);
}

static snap_status annotate(const js *rows, snap_err *err) {
    buf text = {0}, page = {0};
    snap_status st = SNAP_OK;
    verdicts_github(rows, &text);
    verdicts_markdown(rows, "snapmla gate", &page);
    TRY(buf_check(&text, "the annotations", err));
    TRY(buf_check(&page, "the summary", err));
    (void)fputs(buf_str(&text), stderr);
    TRY(add_job_summary(&page, err));
cleanup:
    buf_release(&text);
    buf_release(&page);
    return st;
}

static snap_status write_file(const char *path, buf *text, snap_err *err) {
    snap_status st = buf_check(text, path, err);
    if (st == SNAP_OK)
        st = fs_write_atomic(path, buf_str(text), text->len, err);
    buf_clear(text);
    return st;
}

static snap_status write_files(const js *rows, const gate_output *o, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (o->junit) {
        verdicts_junit(rows, &text);
        TRY(write_file(o->junit, &text, err));
    }
    if (o->markdown) {
        verdicts_markdown(rows, "snapmla gate", &text);
        TRY(write_file(o->markdown, &text, err));
    }
    if (o->code_quality) {
        verdicts_gitlab(rows, o->out ? o->out : "snapmla-gate", &text);
        TRY(write_file(o->code_quality, &text, err));
    }
    if (wants_github(o))
        TRY(annotate(rows, err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status print(const results *r, const js *rows, const opt_shared *shared,
                         snap_err *err) {
    buf text = {0};
    if (shared->json)
        return print_json(results_document(r), err);
    verdicts_text(rows, term_use_color(STDOUT_FILENO), &text);
    snap_status st = print_text(&text, "a table", err);
    buf_release(&text);
    return st;
}

snap_status gate_finish(results *r, const js *rows, const gate_output *o, const opt_shared *shared,
                        snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    if (o->out)
        TRY(results_save_run(r, o->out, err));
    TRY(print(r, rows, shared, err));
    TRY(write_files(rows, o, err));
    st = verdict_status(rows, err);
cleanup:
    return st;
}
