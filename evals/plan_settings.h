/* plan_settings.h - the settings of a run's requests, and in what the arms' requests differ.
 *
 * A suite sets them for its tasks, and an arm for itself. The arm's value of a setting replaces the
 * suite's. This includes the value false of text completions, of content in parts and of opened
 * reasoning. The bodies are merged, and the arm's members replace those of the suite. If an arm
 * switches off text completions, the suite's template does not count for it. */
#ifndef SNAPMLA_EVALS_PLAN_SETTINGS_H
#define SNAPMLA_EVALS_PLAN_SETTINGS_H

#include "base/arena.h"
#include "evals/plan.h"

/* Fills p->settings for all tasks and arms. @mem owns the texts. SNAP_E_USAGE if an arm's settings
 * cannot be sent, or if a checkpoint that snapmla runs has a setting, such as a body, that it
 * cannot use. SNAP_E_NOMEM. */
snap_status plan_settings_resolve(eval_plan *p, arena *mem, snap_err *err) SNAP_CHECK_RESULT;

/* SNAP_E_USAGE if a part of the list is not a name that p->may_differ can have. */
snap_status plan_may_differ_check(const char *list, snap_err *err) SNAP_CHECK_RESULT;

#endif
