/* cmd.h - the commands of the program. Each has a file cmd_NAME.c with its options and its run
 * function; that of `verify-run` is cmd_verify.c. */
#ifndef SNAPMLA_HARNESS_CMD_CMD_H
#define SNAPMLA_HARNESS_CMD_CMD_H

#include "base/err.h"
#include "harness/opt.h"

extern const opt_command cmd_bench, cmd_roofline, cmd_fidelity, cmd_eval, cmd_merge, cmd_grade,
    cmd_report, cmd_fetch, cmd_generate, cmd_serve, cmd_synth, cmd_info, cmd_gate, cmd_verify,
    cmd_pack, cmd_compare, cmd_conformance, cmd_formats;

/* Verbs of these commands. The verbs that are not listed here are static. */
extern const opt_command cmd_bench_model, cmd_bench_exchange, cmd_bench_grading,
    cmd_bench_tokenizer, cmd_bench_serving, cmd_gate_run, cmd_gate_selftest, cmd_gate_history,
    cmd_eval_plan, cmd_eval_show, cmd_eval_check_task, cmd_eval_import, cmd_formats_check;

/* Set by SIGINT and SIGTERM. Long-running commands check it between units of work. */
#include <signal.h>
extern volatile sig_atomic_t cmd_cancelled;

#endif
