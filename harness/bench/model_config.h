/* model_config.h - the shape of a model that an option names. */
#ifndef SNAPMLA_HARNESS_BENCH_MODEL_CONFIG_H
#define SNAPMLA_HARNESS_BENCH_MODEL_CONFIG_H

#include "generator/local/checkpoint/shape.h"

/* Reads the file @name or, if there is none, the shipped configs/models/NAME.json. SNAP_E_IO,
 * SNAP_E_NOMEM, and any error of model_shape_parse(). */
snap_status model_config_open(model_shape *out, const char *name, snap_err *err) SNAP_CHECK_RESULT;

#endif
