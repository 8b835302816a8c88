/* gate.h - the verbs of `snapmla gate`, a file each, and the options they share. */
#ifndef SNAPMLA_HARNESS_CMD_GATE_H
#define SNAPMLA_HARNESS_CMD_GATE_H

#include "harness/bench/grid.h"
#include "harness/cmd/device.h"
#include "harness/gate/decide.h"

typedef struct {
    const char *baseline, *current, *history; /* check */
    double error_growth_pct;
    bool allow_shared, any_machine;
    bench_grid_text grid; /* run, selftest */
    const char *distribution;
    bool cold;
    int64_t seed;
    double minutes;
    device_options device;
    double share_pct, us, alpha_pct; /* deciding */
    int64_t sessions, looks;
    const char *out, *junit, *markdown, *code_quality, *annotations;
} gate_flags;

extern gate_flags gate_flags_now; /* filled by the command's table of options */

gate_limits gate_flags_limits(void);

snap_status gate_cmd_check(opt_shared *shared, snap_err *err);
snap_status gate_cmd_run(opt_shared *shared, snap_err *err);
snap_status gate_cmd_selftest(opt_shared *shared, snap_err *err);
snap_status gate_cmd_history(opt_shared *shared, snap_err *err);

/* Adds the rows of `verdicts` to @r, saves and prints it, and writes the files that were asked for. @rows
 * stays the caller's. Returns what the verdicts come to (verdict_status), unless writing failed. */
snap_status gate_cmd_finish(results *r, const js *rows, const opt_shared *shared,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
