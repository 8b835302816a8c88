/* inventory.h - the tensors that a model of a given shape needs, with the names that published
 * checkpoints use. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_INVENTORY_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_INVENTORY_H

#include <stdbool.h>

#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/checkpoint/shape.h"

/* Receives one tensor: [rows, cols], or [rows] if cols is 0. */
typedef snap_status (*inventory_fn)(void *ctx, const char *name, int64_t rows, int64_t cols,
                                    snap_err *err);

/* Calls @fn for every tensor of the model, layer by layer; an error of @fn ends this. Other tensors
 * that checkpoints contain (multi-token prediction, e4m3 scales) are not included. */
snap_status inventory_each(const model_shape *s, inventory_fn fn, void *ctx,
                           snap_err *err) SNAP_CHECK_RESULT;

/* Finds a tensor of this shape, and its scales if it is e4m3 (else *scale is NULL). SNAP_E_INPUT if
 * the tensor is missing or has another shape, if it is e4m3 and config.json does not state that, or
 * if its scales are missing or do not fit; the message names the tensor and, if it exists, its
 * file. SNAP_E_UNSUPPORTED for a dtype that tensor.h does not read. */
snap_status inventory_need(const model_shape *s, const checkpoint *c, const char *name,
                           int64_t rows, int64_t cols, const tensor **w, const tensor **scale,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
