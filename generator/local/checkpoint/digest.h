/* digest.h - one hash for a checkpoint's folder: which weights, tokenizer and configuration answered.
 *
 *   cd DIR && LC_ALL=C sha256sum FILES... | sha256sum
 *
 * gives the same, FILES being the regular files in it whose names end in .safetensors, .json, .model,
 * .tiktoken, .jinja or .txt, by name. Files in folders below don't count, nor do names that begin with a
 * dot. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_DIGEST_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_DIGEST_H

#include "base/hash.h"

/* Reads every byte, a file a thread: as long as the disk takes. SNAP_E_IO; SNAP_E_INPUT for a folder without
 * such files; SNAP_E_NOMEM. */
snap_status checkpoint_digest(const char *dir, char out[HASH_HEX], snap_err *err) SNAP_CHECK_RESULT;

#endif
