/* serving_results.h - the result file of a serving benchmark: RUN/run.json. */
#ifndef SNAPMLA_HARNESS_SERVING_SERVING_RESULTS_H
#define SNAPMLA_HARNESS_SERVING_SERVING_RESULTS_H

#include "harness/record/results.h"
#include "harness/serving/serving_run.h"
#include "harness/serving/slo.h"

typedef struct {
    slo_list targets;
    double gpus; /* GPUs of a server; 0 = not stated */
} serving_judgement;

/**
 * serving_results_make - compute the rows of a run and write RUN/run.json
 *
 * @config: the resolved options, for the provenance
 * @out:    caller owns it, release with results_free(); NULL on failure
 *
 * The requests are read from RUN/requests.jsonl, as `verify-run` does. SNAP_E_INPUT if nothing was
 * measured; SNAP_E_UNSUPPORTED for more than SERVING_ARMS_MAX arms; errors of request_lines_read(),
 * serving_rows_of_run() and results_save().
 */
snap_status serving_results_make(const serving_options *o, const serving_result *run,
                                 const serving_judgement *judge, const js *config, results **out,
                                 snap_err *err) SNAP_CHECK_RESULT;

#endif
