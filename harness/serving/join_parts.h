/* join_parts.h - joins the folders of a serving run by several processes (--part I/N) into one. */
#ifndef SNAPMLA_HARNESS_SERVING_JOIN_PARTS_H
#define SNAPMLA_HARNESS_SERVING_JOIN_PARTS_H

#include "harness/serving/serving_run.h"

typedef struct {
    const char *const *parts; /* [n] RUN folders, in any order */
    size_t n;
    const char *out; /* the joined RUN folder; it must not have a run yet */
} join_options;

/* Whether a folder has requests of a serving benchmark, as a part has. */
bool serving_has_requests(const char *folder);

/**
 * serving_join - write the requests of all parts, and a journal in which all blocks are complete
 *
 * @config: the options of the joined run: those of the parts, without `part` and `meet`. The caller
 *          frees it; NULL on failure
 *
 * `bench serving` with these options finds that the joined run is complete and evaluates it again,
 * for example with other targets. SNAP_E_USAGE if a folder is not a part or is given twice, if a
 * part is missing or not complete, if parts differ in the version of the program or in an option
 * other than `out`, `part` and `meet`, if the lengths of their prompts were fitted
 * differently, or if @o->out has a run already; SNAP_E_IO if a process still works on a part;
 * SNAP_E_INPUT; SNAP_E_NOMEM.
 */
snap_status serving_join(const join_options *o, js **config, snap_err *err) SNAP_CHECK_RESULT;

/* Reads from a resolved configuration the options that serving_run_read() and
 * serving_results_make() need, except targets and GPUs. @out borrows texts of @config. SNAP_E_INPUT
 * for a number of arms or blocks that cannot be compared: 0, or above SERVING_ARMS_MAX or
 * SLICES_MOST. */
snap_status serving_options_read(const js *config, serving_options *out,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
