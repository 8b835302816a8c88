/* gate_run.c - `gate run A B`, and how every verb's verdicts leave. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/term.h"
#include "harness/cmd/gate.h"
#include "harness/gate/compare_builds.h"
#include "harness/gate/verdicts.h"
#include "harness/view/verdicts.h"

#define F gate_flags_now

static const double kTimeout = 600; /* seconds that an arm may take for an answer */

gate_limits gate_flags_limits(void) {
    return (gate_limits){.share = F.share_pct / 100,
                         .ns = F.us * 1e3,
                         .alpha = F.alpha_pct / 100,
                         .sessions = (size_t)F.sessions,
                         .looks = (int)F.looks};
}

/* ---- how verdicts leave ---- */

static bool wants_github(void) {
    const char *actions = getenv("GITHUB_ACTIONS");
    if (strcmp(F.annotations, "auto") == 0)
        return actions && strcmp(actions, "true") == 0;
    return strcmp(F.annotations, "github") == 0;
}

/* Appends to the page that GitHub shows of a job; other steps write to it too. */
static snap_status add_job_summary(const buf *text, snap_err *err) {
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    if (!path || !path[0])
        return SNAP_OK;
    FILE *f = fopen(path, "a");
    bool ok = f && fwrite(buf_str(text), 1, text->len, f) == text->len;
    ok = f && fclose(f) == 0 && ok;
    return ok ? SNAP_OK : err_set_errno(err, "cannot write the job's summary '%s'", path);
}

static snap_status annotate(const js *rows, snap_err *err) {
    buf text = {0}, page = {0};
    snap_status st = SNAP_OK;
    verdicts_github(rows, &text);
    verdicts_markdown(rows, "snapmla gate", &page);
    TRY(buf_check(&text, "annotations", err));
    TRY(buf_check(&page, "a summary", err));
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

static snap_status write_files(const js *rows, snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (F.junit) {
        verdicts_junit(rows, &text);
        TRY(write_file(F.junit, &text, err));
    }
    if (F.markdown) {
        verdicts_markdown(rows, "snapmla gate", &text);
        TRY(write_file(F.markdown, &text, err));
    }
    if (F.code_quality) {
        verdicts_gitlab(rows, F.out ? F.out : "snapmla-gate", &text);
        TRY(write_file(F.code_quality, &text, err));
    }
    if (wants_github())
        TRY(annotate(rows, err));
cleanup:
    buf_release(&text);
    return st;
}

static snap_status print(const results *r, const js *rows, const opt_shared *shared,
                         snap_err *err) {
    buf text = {0};
    snap_status st = SNAP_OK;
    if (shared->json) {
        st = js_write(results_document(r), JS_PRETTY, &text, err);
        (void)buf_puts(&text, "\n");
    } else {
        verdicts_text(rows, term_use_color(STDOUT_FILENO), &text);
    }
    if (st == SNAP_OK)
        st = buf_check(&text, "a table", err);
    (void)fputs(buf_str(&text), stdout);
    buf_release(&text);
    return st;
}

snap_status gate_cmd_finish(results *r, const js *rows, const opt_shared *shared, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    if (F.out)
        TRY(device_save(r, F.out, err));
    TRY(print(r, rows, shared, err));
    TRY(write_files(rows, err));
    st = verdict_status(rows, err);
cleanup:
    return st;
}

/* ---- gate run ---- */

static void show_progress(void *ctx, size_t done, size_t total, const char *note) {
    term_progress *p = ctx;
    p->total = (int64_t)total;
    term_progress_update(p, (int64_t)done, note);
}

static snap_status parse_arms(gate_side arms[2], const opt_shared *shared, snap_err *err) {
    for (int i = 0; i < 2; i++) {
        gate_side fallback = {.threads = (int)F.device.threads};
        (void)snprintf(fallback.name, sizeof fallback.name, "%s", i ? "B" : "A");
        (void)snprintf(fallback.backend, sizeof fallback.backend, "%s", F.device.backend);
        (void)snprintf(fallback.isa, sizeof fallback.isa, "%s", F.device.isa);
        snap_status st = gate_side_parse(&arms[i], shared->args[1 + i], &fallback, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* What measured: the current arm. */
static snap_status describe(results *r, const gate_run_options *asked, const gate_measured *m,
                            snap_err *err) {
    const remote_about *now = &m->about[1];
    snap_status st =
        results_set_backend(r, now->backend, now->device, now->kernel, asked->arms[1].threads, err);
    return st == SNAP_OK ? results_set_plugin(r, asked->arms[1].backend, err) : st;
}

snap_status gate_cmd_run(opt_shared *shared, snap_err *err) {
    bench_grid grid;
    gate_run_options asked = {.grid = &grid,
                              .limits = gate_flags_limits(),
                              .remote = {.distribution = F.distribution,
                                         .cold = F.cold,
                                         .seed = F.seed,
                                         .timeout_s = kTimeout,
                                         .cancel = &cmd_cancelled},
                              .progress = show_progress};
    gate_measured m = {0};
    results *r = NULL;
    js *rows = js_new_array();
    snap_status st = SNAP_OK;
    TRY(bench_grid_parse(&grid, &F.grid, err));
    TRY(parse_arms(asked.arms, shared, err));
    TRY(results_new(&r, "gate", shared->resolved, F.seed, err));
    term_progress progress = term_progress_start("gate", 1);
    asked.ctx = &progress;
    st = gate_run(&asked, &m, err);
    term_progress_end(&progress);
    TRY(st);
    TRY(describe(r, &asked, &m, err));
    TRY(gate_run_rows(&asked, &m, rows, err));
    st = gate_cmd_finish(r, rows, shared, err);
cleanup:
    gate_measured_release(&m);
    results_free(r);
    js_free(rows);
    return st;
}
