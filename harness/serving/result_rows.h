/* result_rows.h - turns what was measured into rows of the section `serving` of a result file. */
#ifndef SNAPMLA_HARNESS_SERVING_RESULT_ROWS_H
#define SNAPMLA_HARNESS_SERVING_RESULT_ROWS_H

#include "harness/record/serving.h"
#include "harness/serving/headline.h"
#include "harness/serving/measured.h"

/* What is known of an arm besides its requests. */
typedef struct {
    const char *name;                         /* "fp8" */
    const char *endpoint, *model, *precision; /* "" = not stated */
} serving_arm_facts;

typedef struct {
    const serving_measure_options *options;
    const serving_arm_facts *arms; /* [options->arms] */
    const char *workload;          /* "in lognormal:512:0.5, out 128"; "" = not stated */
} serving_rows_context;

/* Appends the rows of one load point to an array: for each arm one of kind load, one of kind
 * latency for each latency that has values, and one of kind target for each target; for each arm
 * after the first, a difference for each metric that both have. @load: requests per second, or
 * users of a closed loop. SNAP_E_NOMEM. */
snap_status serving_rows_of_point(const serving_measured *l, const serving_rows_context *c,
                                  double load, js *rows, snap_err *err) SNAP_CHECK_RESULT;

/* Appends a row of kind series for each block of one arm at one load point. SNAP_E_NOMEM. */
snap_status serving_rows_of_blocks(const serving_request *requests, size_t n, int point, int arm,
                                   const serving_rows_context *c, double load, js *rows,
                                   snap_err *err) SNAP_CHECK_RESULT;

/* The comparison of the answers that were given under the load (headline.h); verdict "": not
 * measured. */
typedef struct {
    const char *verdict;
    double margin_pp, delta_pp, ci95_pp[2];
} serving_quality;

/* Appends a row of kind knee for each arm and, for each arm after the first, a row of kind ratio
 * with the headline. @knees has one entry for each arm. @quality has one, too, but the entry of arm
 * 0 is not used; NULL means that no answers were compared. SNAP_E_NOMEM. */
snap_status serving_rows_of_knees(const knee_step *knees, const serving_quality *quality,
                                  const serving_rows_context *c, js *rows,
                                  snap_err *err) SNAP_CHECK_RESULT;

/* One load point of a run. */
typedef struct {
    bool open;   /* open loop; options->open is ignored */
    double load; /* requests per second, or users of a closed loop; 0: the rate at which requests
                    were due (traces, conversations) */
} serving_point;

/**
 * serving_rows_of_run - all rows that follow from the requests of a run
 *
 * A load point has rows if each arm has a block there in which a request was due. Otherwise it was
 * not measured: the rate is too low for the duration of a block, or the run was interrupted.
 *
 * With targets, the knees follow from all load points of each kind of loop. `verify-run` computes
 * the rows again with this function from requests.jsonl, in which times are rounded: compute them
 * from requests that were read from there. Appends to @rows. SNAP_E_INPUT, SNAP_E_NOMEM.
 */
snap_status serving_rows_of_run(const serving_request *requests, size_t n,
                                const serving_point *points, int n_points,
                                const serving_rows_context *c, const serving_quality *quality,
                                js *rows, snap_err *err) SNAP_CHECK_RESULT;

#endif
