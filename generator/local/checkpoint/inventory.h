/* inventory.h - the tensors that a model of a given shape needs, by the names of its published
 * checkpoints. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_INVENTORY_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_INVENTORY_H

#include <stdbool.h>

#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/checkpoint/shape.h"

/* Takes one: [rows, cols], or [rows] where cols is 0. */
typedef snap_status (*inventory_fn)(void *ctx, const char *name, int64_t rows, int64_t cols,
                                    snap_err *err);

/* Calls @fn for every tensor of the model, layer by layer; an error of it ends the walk. Tensors that
 * checkpoints hold beside (multi-token prediction, e4m3 scales) are not among them. */
snap_status inventory_each(const model_shape *s, inventory_fn fn, void *ctx,
                           snap_err *err) SNAP_CHECK_RESULT;

/* A tensor of this shape, and its scales where it is e4m3 (else *scale is NULL). SNAP_E_INPUT naming the
 * tensor and, where there is one, its file: missing, another shape or dtype, scales that do not fit. */
snap_status inventory_need(const model_shape *s, const checkpoint *c, const char *name,
                           int64_t rows, int64_t cols, const tensor **w, const tensor **scale,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
