/* checkpoint.h - the tensors of a Hugging Face folder: model.safetensors, or several shards by
 * model.safetensors.index.json. Nothing is copied: files are mapped. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_CHECKPOINT_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_CHECKPOINT_H

#include "base/err.h"
#include "generator/local/checkpoint/tensor.h"

typedef struct checkpoint checkpoint; /* immutable: threads may share it */

/**
 * checkpoint_open - map the weights in @dir
 *
 * @out: caller owns it, release with checkpoint_close(); NULL on failure
 *
 * SNAP_E_IO; SNAP_E_INPUT, naming file and tensor, for a shard that is no plain file name in @dir, a
 * tensor that the index places where it is not, one in two shards, and what safetensors_open() refuses.
 */
snap_status checkpoint_open(checkpoint **out, const char *dir, snap_err *err) SNAP_CHECK_RESULT;
void checkpoint_close(checkpoint *c); /* NULL is allowed */

/* NULL where there is none of this name. */
const tensor *checkpoint_find(const checkpoint *c, const char *name);

size_t checkpoint_count(const checkpoint *c);
const tensor *checkpoint_at(const checkpoint *c, size_t i); /* by name, in order */

#endif
