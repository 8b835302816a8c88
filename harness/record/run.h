/* run.h - a whole result file as C structs: one list for each section. */
#ifndef SNAPMLA_HARNESS_RECORD_RUN_H
#define SNAPMLA_HARNESS_RECORD_RUN_H

#include "harness/record/ceiling.h"
#include "harness/record/cell.h"
#include "harness/record/eval.h"
#include "harness/record/exchange_record.h"
#include "harness/record/fidelity_record.h"
#include "harness/record/model_record.h"
#include "harness/record/origin.h"
#include "harness/record/prediction.h"
#include "harness/record/results.h"
#include "harness/record/serving.h"
#include "harness/record/step.h"
#include "harness/record/verdict.h"

typedef struct {
    const char *name; /* "snapmla.run" */
    int64_t major, minor;
} run_schema;

typedef struct {
    run_schema schema;
    origin_record provenance;
    origin_list sources; /* in a joined file: the provenance of each file it was joined from; else
                            empty */
    ceiling_list ceilings;
    cell_list bench;
    fidelity_list fidelity;
    model_list model_fidelity;
    step_list e2e;
    exchange_list exchange;
    prediction_list predicted;
    eval_list evals;
    pair_list pooled; /* comparisons over all tasks of a run */
    serving_list serving;
    verdict_list verdicts;
} run_record;

extern const record_type run_type;

/* Reads all rows of a result file. @mem owns the lists; the texts are borrowed from @r.
 * SNAP_E_NOMEM. */
snap_status run_read(run_record *out, const results *r, arena *mem,
                     snap_err *err) SNAP_CHECK_RESULT;

#endif
