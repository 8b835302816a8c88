/* arm_option.h - the arms of an evaluation as the command line names them. */
#ifndef SNAPMLA_HARNESS_EVAL_ARM_OPTION_H
#define SNAPMLA_HARNESS_EVAL_ARM_OPTION_H

#include "base/arena.h"
#include "evals/plan.h"

/**
 * arm_parse - "NAME=GENERATOR[,key=value...]"
 *
 * @flag: what messages call the option it comes from: "--arm"
 *
 * NAME is made of letters, digits, '.', '_' and '-'. GENERATOR is what generator_open() takes,
 * without commas. Keys: model, precision; stream (true, false), retries, timeout and deadline
 * (seconds), rpm and tpm (requests and tokens a minute), in_flight; device, context, cache_mb,
 * threads, template (local); seed, temperature, top_p, max_tokens.
 *
 * @mem: owns the arm's texts
 *
 * SNAP_E_USAGE quoting the part that is wrong. Credentials in a URL are refused: they would be
 * stored with the run.
 */
snap_status arm_parse(const char *flag, const char *text, arena *mem, eval_arm *out,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
