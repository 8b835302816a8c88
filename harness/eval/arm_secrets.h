/* arm_secrets.h - the secrets that an arm's servers receive: an API key and further headers.
 *
 * An arm names where a secret is, never the secret itself, so the options of a run can be stored:
 *
 *   key_env=NAME        the API key is the value of this environment variable
 *   key_env=none        the arm's servers receive no key
 *   header=NAME:VAR     the header NAME has the value of the environment variable VAR
 *   header=NAME:@FILE   the header NAME has the content of the file, without line ends at its end
 *
 * An arm without any of these receives the general key, if there is one, but only if its servers
 * were named on the command line or in the environment, and only over https or on this machine. An
 * arm from a configuration file cannot name secrets: the file could send any variable anywhere. */
#ifndef SNAPMLA_HARNESS_EVAL_ARM_SECRETS_H
#define SNAPMLA_HARNESS_EVAL_ARM_SECRETS_H

#include "base/arena.h"
#include "evals/plan.h"
#include "generator/generator.h"
#include "harness/eval/generate.h"

/* Whether the value of key_env or header has the form above. */
bool arm_secret_is_key_env(const char *value);
bool arm_secret_is_header(const char *value);

/**
 * arm_secrets_read - read the secrets of an arm into the options of its generator
 *
 * @opt: has the general key
 * @mem: owns the secrets
 * @out: api_key, headers and n_headers are set
 *
 * Errors name the arm and never quote a secret. SNAP_E_USAGE: the general key must not be sent to
 * one of the arm's servers; a variable is not set; a variable or file is empty or has characters
 * that a header cannot have; an arm with secrets of its own is from a configuration file. SNAP_E_IO
 * if a file cannot be read. Errors of endpoints_parse(). SNAP_E_NOMEM, also for a secret of more
 * than 16 KiB.
 */
snap_status arm_secrets_read(const eval_arm *arm, const generate_options *opt, arena *mem,
                             generator_options *out, snap_err *err) SNAP_CHECK_RESULT;

/* Returns the errors of arm_secrets_read() for all arms of a plan. Call it before anything is
 * stored or sent. Warns if an arm sends its own secrets over http to another machine. */
snap_status arm_secrets_check(const eval_plan *plan, const generate_options *opt,
                              snap_err *err) SNAP_CHECK_RESULT;

/* arm_secrets_check() for one arm. */
snap_status arm_secrets_check_one(const eval_arm *arm, const generate_options *opt,
                                  snap_err *err) SNAP_CHECK_RESULT;

#endif
