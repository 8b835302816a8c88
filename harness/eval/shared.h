/* shared.h - arms that use the same server or device at the same time.
 *
 * Such arms can delay each other, so the times of their answers say nothing about either of them.
 * The control with other seeds is generated after the other arms and therefore shares nothing. */
#ifndef SNAPMLA_HARNESS_EVAL_SHARED_H
#define SNAPMLA_HARNESS_EVAL_SHARED_H

#include "evals/plan.h"

/* True if the arm is generated after the others. */
bool shared_runs_later(const eval_arm *arm);

/* The first other arm that runs at the same time as arm @index and shares its server or device.
 * HTTP arms share a server if URLs of both have the same host and port; localhost, 127.0.0.1 and
 * [::1] are one host. Local arms share a device if their `device`, "cpu" by default, is the same
 * text. NULL if there is none. */
const eval_arm *shared_with(const eval_plan *plan, size_t index);

#endif
