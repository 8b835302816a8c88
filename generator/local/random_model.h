/* random_model.h - a model of a given shape with random weights, to measure speed without a
 * checkpoint. Its answers mean nothing. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANDOM_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_RANDOM_MODEL_H

#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/checkpoint/shape.h"
#include "generator/local/tokenizer/tokenizer.h"

/* All weights of @shape in BF16: uniform, with the variance 1 / (inputs) for matrices, so that the
 * values stay of the same size from layer to layer; norms are near 1. SNAP_E_NOMEM, and what
 * inventory_each() returns. */
snap_status random_checkpoint(checkpoint **out, const model_shape *shape,
                              snap_err *err) SNAP_CHECK_RESULT;

/* A tokenizer with a text for each of @n ids: one byte each for the first 256, and " tID" for the
 * others. A text is encoded byte by byte. SNAP_E_UNSUPPORTED for an @n below 256; SNAP_E_NOMEM. */
snap_status random_tokenizer(tokenizer **out, int32_t n, snap_err *err) SNAP_CHECK_RESULT;

#endif
