/* gate_selftest.c - `gate selftest` */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/term.h"
#include "harness/cmd/gate.h"
#include "harness/gate/selftest.h"
#include "harness/gate/verdicts.h"

#define F gate_flags_now

static const double kTimeout = 600;

static void show_progress(void *ctx, size_t done, size_t total, const char *note) {
    term_progress *p = ctx;
    p->total = (int64_t)total;
    term_progress_update(p, (int64_t)done, note);
}

static void fill_table(table *t, const selftest *s) {
    static const char *const heads[] = {"delay %", "runs",       "with alarm",       "cells",
                                        "found",   "measured %", "simulated alarms", "sessions"};
    *t = table_new(heads, 8);
    for (int i = 0; i < SELFTEST_DELAYS; i++) {
        const selftest_delay *d = &s->delays[i];
        table_number(t, d->delay_pct, 0);
        table_number(t, (double)d->runs, 0);
        table_number(t, (double)d->alarms, 0);
        table_number(t, (double)d->cells, 0);
        table_number(t, (double)d->found, 0);
        table_number(t, d->estimate_pct, 2);
        table_number(t, (double)d->simulated.alarms / (double)d->simulated.comparisons, 4);
        table_number(t, d->simulated.sessions, 0);
    }
}

static void put_summary(buf *out, const selftest *s) {
    const selftest_delay *equal = &s->delays[0];
    (void)buf_printf(out,
                     "false alarms: %zu of %zu runs of equal arms, %.4f of %zu simulated ones\n"
                     "largest difference measured where there is none: %.2f %%\n",
                     equal->alarms, equal->runs,
                     (double)equal->simulated.alarms / (double)equal->simulated.comparisons,
                     equal->simulated.comparisons, s->spread_pct);
    if (isnan(s->smallest_pct))
        (void)buf_puts(out, "smallest slow-down of one cell found 19 times of 20: none\n");
    else
        (void)buf_printf(out, "smallest slow-down of one cell found 19 times of 20: %.1f %%\n",
                         s->smallest_pct);
    (void)buf_printf(out, "took %.0f s\n", s->seconds);
}

static snap_status print(results *r, const selftest *s, const opt_shared *shared, snap_err *err) {
    buf text = {0};
    table t = {0};
    snap_status st = SNAP_OK;
    fill_table(&t, s);
    if (shared->json) {
        TRY(js_write(results_document(r), JS_PRETTY, &text, err));
        (void)buf_puts(&text, "\n");
    } else {
        TRY(write_text(&t, term_use_color(STDOUT_FILENO), &text, err));
        put_summary(&text, s);
    }
    TRY(buf_check(&text, "a table", err));
    (void)fputs(buf_str(&text), stdout);
cleanup:
    table_release(&t);
    buf_release(&text);
    return st;
}

/* The program against itself: the delay is the only difference. */
static gate_run_options options_of(const bench_grid *grid) {
    gate_run_options asked = {.grid = grid,
                              .limits = gate_flags_limits(),
                              .remote = {.distribution = F.distribution,
                                         .cold = F.cold,
                                         .seed = F.seed,
                                         .timeout_s = kTimeout,
                                         .cancel = &cmd_cancelled},
                              .progress = show_progress};
    for (int i = 0; i < 2; i++) {
        gate_side *a = &asked.arms[i];
        a->threads = (int)F.device.threads;
        (void)snprintf(a->name, sizeof a->name, "%s", i ? "B" : "A");
        (void)snprintf(a->program, sizeof a->program, "/proc/self/exe");
        (void)snprintf(a->backend, sizeof a->backend, "%s", F.device.backend);
        (void)snprintf(a->isa, sizeof a->isa, "%s", F.device.isa);
    }
    return asked;
}

snap_status gate_cmd_selftest(opt_shared *shared, snap_err *err) {
    bench_grid grid;
    selftest s = {0};
    results *r = NULL;
    js *rows = NULL;
    snap_status st = SNAP_OK;
    TRY(bench_grid_parse(&grid, &F.grid, err));
    TRY(results_new(&r, "gate", shared->resolved, F.seed, err));
    gate_run_options asked = options_of(&grid);
    term_progress progress = term_progress_start("gate selftest", 1);
    asked.ctx = &progress;
    st = selftest_run(&asked, 60 * F.minutes, &s, err);
    term_progress_end(&progress);
    TRY(st);
    TRY(results_set_backend(r, s.about.backend, s.about.device, s.about.kernel,
                            asked.arms[1].threads, err));
    TRY(results_set_plugin(r, asked.arms[1].backend, err));
    rows = selftest_rows(&s, &asked.limits);
    TRY(results_add_all(r, "verdicts", js_copy(rows), err));
    if (F.out)
        TRY(device_save(r, F.out, err));
    TRY(print(r, &s, shared, err));
    st = verdict_status(rows, err);
cleanup:
    selftest_release(&s);
    results_free(r);
    js_free(rows);
    return st;
}
