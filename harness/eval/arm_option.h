/* arm_option.h - parses an arm of an evaluation as given on the command line. */
#ifndef SNAPMLA_HARNESS_EVAL_ARM_OPTION_H
#define SNAPMLA_HARNESS_EVAL_ARM_OPTION_H

#include "base/arena.h"
#include "evals/plan.h"

/**
 * arm_parse - parse "NAME=GENERATOR[,key=value...]"
 *
 * @flag: the option that holds the text, for messages: "--arm"
 * @mem:  owns the arm's texts
 *
 * NAME consists of 1 to 40 letters, digits, '.', '_' and '-'. GENERATOR is an argument of
 * generator_open() without commas. The keys are: model, precision; stream (true, false), retries,
 * timeout and deadline (seconds), rpm and tpm (requests and tokens per minute), in_flight; device,
 * context, cache_mb, threads, template (local); seed, temperature, top_p, max_tokens; key_env,
 * header (arm_secrets.h).
 *
 * SNAP_E_USAGE for a text of another form, and for a server's URL that contains '@': credentials
 * would be stored with the run. Messages do not quote what may be a secret. SNAP_E_NOMEM.
 */
snap_status arm_parse(const char *flag, const char *text, arena *mem, eval_arm *out,
                      snap_err *err) SNAP_CHECK_RESULT;

#endif
