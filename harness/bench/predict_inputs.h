/* predict_inputs.h - reads the measurements that predictions are made from: rules of the parts of a
 * step (predict_rules.h), and exchange curves (predict_links.h). */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_INPUTS_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_INPUTS_H

#include "harness/bench/predict_links.h"
#include "harness/bench/predict_rules.h"
#include "harness/record/step.h"

typedef struct {
    measured_step steps[PREDICT_ROWS]; /* steps of one GPU whose parts were timed */
    int n;
    rule_book book;
    predict_links links;
} predict_inputs;

typedef struct {
    const char *measured;       /* result files, separated by commas */
    const char *link, *network; /* names in configs/links.json; link NULL = the measured curves */
    bool all_to_all;            /* as in predict_links */
} predict_sources;

/**
 * predict_inputs_read - read all result files, and fit the rules
 *
 * These rows are used, whichever file they are in:
 *   e2e         decode steps of one GPU with timed parts. The model must be a name in
 *               configs/models
 *   bench       cells of the attention kernel (scope kernel, single steps, cold, one query for each
 *               sequence); for each number of heads and arm, the cell with most cached tokens
 *   exchange    operations inside a graph
 *   ceilings    the bandwidth of reads and the rate of BF16 products, the highest of each
 *
 * SNAP_E_USAGE: no file, or a kind of row that is needed is in none of them. Also the errors of
 * reading files.
 */
snap_status predict_inputs_read(predict_inputs *out, const predict_sources *from,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Calls @fn for each timed decode step in result files that are separated by commas. An error of
 * @fn ends it. */
typedef snap_status (*predict_step_fn)(void *ctx, const step_record *step, const char *file,
                                       snap_err *err);
snap_status predict_each_step(const char *files, predict_step_fn fn, void *ctx,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
