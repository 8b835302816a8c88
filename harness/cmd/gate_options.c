/* gate_options.c - converts the shared options of `snapmla gate` to the structs of gate/. */
#include "base/term.h"
#include "harness/cmd/gate.h"

static const double kTimeout = 600; /* longest wait for an answer of an arm, in seconds */

gate_limits gate_limits_of(const gate_deciding *d) {
    return (gate_limits){.share = d->share_pct / 100,
                         .ns = d->us * 1e3,
                         .alpha = d->alpha_pct / 100,
                         .sessions = (size_t)d->sessions,
                         .looks = (int)d->looks};
}

static void show_progress(void *ctx, size_t done, size_t total, const char *note) {
    term_progress *p = ctx;
    p->total = (int64_t)total;
    term_progress_update(p, (int64_t)done, note);
}

gate_run_options gate_run_options_of(const gate_timing *t, const gate_deciding *d,
                                     const bench_grid *grid) {
    return (gate_run_options){.grid = grid,
                              .limits = gate_limits_of(d),
                              .remote = {.distribution = t->distribution,
                                         .cold = t->cold,
                                         .seed = t->seed,
                                         .timeout_s = kTimeout,
                                         .cancel = &cmd_cancelled},
                              .progress = show_progress};
}
