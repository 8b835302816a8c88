/* target.h - the servers of one arm of a serving benchmark, and how they are asked. */
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
    gen_sampling sampling; /* without seed and max_tokens */
    bool stream;
    double silence_s, deadline_s;
} serving_target;

/**
 * serving_target_make - from an arm as `--arm` gives it
 *
 * @sampling:   counts where the arm sets nothing
 * @ignore_eos: also send {"ignore_eos": true}
 * @opt:        has the general API key
 * @mem:        owns the texts
 * @out:        release with serving_target_release(), also after a failure
 *
 * SNAP_E_USAGE for an arm that is no server, or that has a key without meaning here: retries, rpm,
 * tpm, in_flight, device, context, cache_mb, threads. Errors of arm_secrets_read() and
 * gen_settings_check(). SNAP_E_NOMEM.
 */
snap_status serving_target_make(const eval_arm *arm, const gen_sampling *sampling, bool ignore_eos,
                                const generate_options *opt, arena *mem, serving_target *out,
                                snap_err *err) SNAP_CHECK_RESULT;
void serving_target_release(serving_target *t);

#endif
