/* join_parts.h - joins the folders of a serving run by several processes (--part I/N) into one. */
#ifndef SNAPMLA_HARNESS_SERVING_JOIN_PARTS_H
#define SNAPMLA_HARNESS_SERVING_JOIN_PARTS_H

#include "harness/serving/serving_run.h"

typedef struct {
    const char *const *parts; /* [n] RUN folders, in any order */
    size_t n;
    const char *out; /* the joined RUN folder, without a run */
} join_options;

/* Whether a folder has requests of a serving benchmark, as a part has. */
bool serving_has_requests(const char *folder);

/**
 * serving_join - write the requests of all parts, and a journal in which all blocks are complete
 *
 * @config: the options of the joined run: those of the parts, without `part` and `meet`. The caller
 *          frees it; NULL on failure
 *
 * `bench serving` with these options continues the joined run, so it judges the requests by other
 * targets. SNAP_E_USAGE if a folder is not a part or is given twice, if a part is missing or
 * not complete, if parts differ in an option or in the version of the program, if the lengths of
 * their prompts were fitted differently, or if @o->out has a run already; SNAP_E_IO if a process
 * still works on one of them; SNAP_E_INPUT; SNAP_E_NOMEM.
 */
snap_status serving_join(const join_options *o, js **config, snap_err *err) SNAP_CHECK_RESULT;

/* What the options must say so that a run can be read and judged (serving_run_read(),
 * serving_results_make()), from a resolved configuration, which must stay as long as @out. Targets
 * and GPUs are not set. SNAP_E_INPUT for a configuration that no run has. */
snap_status serving_options_read(const js *config, serving_options *out,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
