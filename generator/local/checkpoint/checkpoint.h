/* checkpoint.h - the tensors of a Hugging Face folder: model.safetensors, or several shards listed
 * in model.safetensors.index.json. The files are mapped; the numbers of the tensors are not
 * copied. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_CHECKPOINT_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_CHECKPOINT_H

#include "base/arena.h"
#include "base/err.h"
#include "generator/local/checkpoint/tensor.h"

typedef struct checkpoint checkpoint; /* immutable: threads may share it */

/**
 * checkpoint_open - map the weights in @dir
 *
 * @out: caller owns it, release with checkpoint_close(); NULL on failure
 *
 * SNAP_E_INPUT, naming the file or the tensor, if the index is malformed or lists more than 4096
 * shards, if a shard is not a plain file name in this folder, if a tensor is not in the shard that
 * the index states, or if a tensor is in two shards. SNAP_E_NOMEM; any error of reading the index,
 * and of safetensors_open(). */
snap_status checkpoint_open(checkpoint **out, const char *dir, snap_err *err) SNAP_CHECK_RESULT;
void checkpoint_close(checkpoint *c); /* NULL is allowed */

/* A checkpoint of tensors in memory. Takes over @tensors [n], which malloc() allocated, and *mem,
 * the arena that owns what the tensors point to, also after a failure. SNAP_E_INPUT for two tensors
 * with the same name. */
snap_status checkpoint_of(checkpoint **out, tensor *tensors, size_t n, arena *mem,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Releases the memory of the file pages that have been read so far, so that a process that copies
 * one tensor after another to a device does not hold the whole checkpoint. The tensors stay valid,
 * also for other threads: a page is read again when it is next used. */
void checkpoint_drop_pages(const checkpoint *c);

/* NULL if no tensor has this name. */
const tensor *checkpoint_find(const checkpoint *c, const char *name);

#endif
