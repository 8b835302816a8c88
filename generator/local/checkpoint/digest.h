/* digest.h - one hash for a checkpoint's folder, which identifies its weights, tokenizer and
 * configuration.
 *
 *   cd DIR && LC_ALL=C sha256sum FILES... | sha256sum
 *
 * gives the same hash. FILES are the regular files in DIR (and links to such files), sorted by
 * name, whose names end in .safetensors, .json, .model, .tiktoken, .jinja or .txt. Files in
 * subfolders and names that begin with a dot don't count. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_DIGEST_H
#define SNAPMLA_GENERATOR_LOCAL_CHECKPOINT_DIGEST_H

#include "base/hash.h"

/* Reads every byte of these files. There is one thread per core, and each hashes whole files.
 * SNAP_E_IO; SNAP_E_INPUT for a folder without such files; SNAP_E_NOMEM. */
snap_status checkpoint_digest(const char *dir, char out[HASH_HEX], snap_err *err) SNAP_CHECK_RESULT;

#endif
