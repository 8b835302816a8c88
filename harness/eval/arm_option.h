/* arm_option.h - parses an arm of an evaluation as given on the command line. */
#ifndef SNAPMLA_HARNESS_EVAL_ARM_OPTION_H
#define SNAPMLA_HARNESS_EVAL_ARM_OPTION_H

#include "base/arena.h"
#include "evals/plan.h"

/**
 * arm_parse - parse "NAME=GENERATOR[,key=value...]"
 *
 * @flag: the option that holds the text, for messages: "--arm"
 * @from_file: the text is from a configuration file or a run's journal. Then body, template and
 *        system must not be @FILE, because the text could send any file to any server. (The @FILE
 *        of a header is refused later, by arm_secrets_check().)
 * @mem:  owns the arm's texts
 *
 * NAME consists of 1 to 40 letters, digits, '.', '_' and '-'. GENERATOR is an argument of
 * generator_open() without commas. The keys are: model, precision; stream (true, false), retries,
 * timeout and deadline (seconds), rpm and tpm (requests and tokens per minute), in_flight; device,
 * layout, context, cache_mb, threads, template (local); seed, temperature, top_p, top_k, min_p,
 * presence_penalty, frequency_penalty, repetition_penalty, max_tokens, max_completion_tokens,
 * thinking_budget; body, system, template, api, content, reasoning, server (arm_request.h);
 * key_env, header (arm_secrets.h). A value ends at the next comma, but a value that begins with a
 * brace, a bracket or a quote is JSON and ends where that does, and a list of CUDA devices
 * ("device=cuda:0,1") ends after its last number.
 *
 * SNAP_E_USAGE for a text of another form, and for a server's URL that contains '@': credentials
 * would be stored with the run. Messages quote neither such a generator nor a value of key_env or
 * header. Also the errors of arm_request_set(), which reads files.
 */
snap_status arm_parse(const char *flag, const char *text, bool from_file, arena *mem, eval_arm *out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* True if the first @n bytes of @name can be the name of an arm. */
bool arm_name_is_valid(const char *name, size_t n);

#endif
