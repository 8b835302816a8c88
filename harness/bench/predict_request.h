/* predict_request.h - the options of `bench model --predict`, read and checked. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_REQUEST_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_REQUEST_H

#include "harness/bench/grid.h"
#include "harness/bench/predict.h"

/* Most ranks of a replica: the exchange curves are those inside a node. */
enum { PREDICT_WIDEST = PREDICT_NODE, PREDICT_LAYOUTS = 64 /* most layouts of --layout */ };

typedef struct {
    const predict_options *o; /* borrowed */
    predict_result *out;      /* borrowed; set by the caller */
    model_shape shape;
    char *model; /* name of the configuration without folders */
    kv_format arms[2];
    int n_arms, n_contexts, n_batches, n_layouts, n_gpus;
    int64_t contexts[GRID_AXIS], batches[GRID_AXIS], gpus[GRID_AXIS];
    predict_layout layouts[PREDICT_LAYOUTS];
    bool e4m3;
} predict_request;

/* Reads and checks the options, except for the files that they name. SNAP_E_USAGE: wrong options.
 * SNAP_E_UNSUPPORTED: the model cannot be divided in this way. SNAP_E_NOMEM, and what
 * model_config_open() returns. Release with predict_request_release(), also after a failure. */
snap_status predict_request_read(predict_request *q, const predict_options *o,
                                 snap_err *err) SNAP_CHECK_RESULT;
void predict_request_release(predict_request *q);

/* Reads one layout of the model. Returns the errors of predict_request_read(). */
snap_status predict_request_layout(const predict_request *q, const char *text, predict_layout *l,
                                   snap_err *err) SNAP_CHECK_RESULT;

#endif
