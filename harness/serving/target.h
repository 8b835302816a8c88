/* target.h - the servers of one arm of a serving benchmark, and how requests are sent to them. */
#ifndef SNAPMLA_HARNESS_SERVING_TARGET_H
#define SNAPMLA_HARNESS_SERVING_TARGET_H

#include "base/arena.h"
#include "evals/plan.h"
#include "generator/http/endpoints.h"
#include "generator/http/secrets.h"
#include "harness/eval/generate.h"

typedef struct {
    const char *name;
    endpoints servers;
    const char *model;    /* NULL = not sent */
    secret_lines secrets; /* header lines that only the servers may receive */
    gen_settings settings;
    gen_sampling sampling; /* the seed is not used; max_tokens is for requests without a wanted
                              length */
    bool stream;
    double silence_s, deadline_s;
} serving_target;

/**
 * serving_target_make - make a target from an arm as `--arm` gives it
 *
 * @sampling:   counts where the arm sets nothing
 * @ignore_eos: also send {"ignore_eos": true}, unless the arm sets this member
 * @opt:        its API key and no_stream apply to all arms
 * @mem:        owns the texts
 * @out:        release with serving_target_release(), also after a failure
 *
 * SNAP_E_USAGE for an arm that is no server, or that has a key without meaning here: retries, rpm,
 * tpm, in_flight, device, context, cache_mb, threads. Errors of gen_settings_check(),
 * endpoints_parse(), arm_secrets_check_one() and arm_secrets_read(). SNAP_E_NOMEM.
 */
snap_status serving_target_make(const eval_arm *arm, const gen_sampling *sampling, bool ignore_eos,
                                const generate_options *opt, arena *mem, serving_target *out,
                                snap_err *err) SNAP_CHECK_RESULT;
void serving_target_release(serving_target *t);

#endif
