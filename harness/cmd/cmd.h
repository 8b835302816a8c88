/* cmd.h - the commands of the program: one file and one function each. */
#ifndef SNAPMLA_HARNESS_CMD_CMD_H
#define SNAPMLA_HARNESS_CMD_CMD_H

#include "base/err.h"
#include "harness/opt.h"

/* A command writes its result to standard output, everything else to standard error, and returns
 * a status that main() turns into the exit code and the message. */
typedef snap_status (*cmd_fn)(opt_shared *shared, snap_err *err);

typedef struct {
    const opt_command *spec; /* options, help */
    cmd_fn run;              /* called with the options parsed into spec's own values */
    const char *summary;     /* for `snapmla --help` */
} cmd;

extern const cmd cmd_bench, cmd_roofline, cmd_fidelity, cmd_eval, cmd_merge, cmd_grade, cmd_report,
    cmd_fetch, cmd_generate, cmd_synth, cmd_info, cmd_gate, cmd_verify, cmd_pack, cmd_compare,
    cmd_conformance;

/* NULL-terminated table of all commands, in the order of --help. */
extern const cmd *const cmd_table[];

/* Set by SIGINT and SIGTERM; commands that run long look at it between units of work. */
#include <signal.h>
extern volatile sig_atomic_t cmd_cancelled;

#endif
