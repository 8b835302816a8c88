/* model_predict.h - `bench model --predict` */
#ifndef SNAPMLA_HARNESS_CMD_MODEL_PREDICT_H
#define SNAPMLA_HARNESS_CMD_MODEL_PREDICT_H

#include "harness/bench/predict.h"
#include "harness/opt.h"

/* Predicts as the options say, and prints the rows. */
snap_status model_predict_run(const predict_options *o, opt_shared *shared,
                              snap_err *err) SNAP_CHECK_RESULT;

#endif
