/* bench_tokenizer.h - `bench --what tokenizer`. */
#ifndef SNAPMLA_HARNESS_CMD_BENCH_TOKENIZER_H
#define SNAPMLA_HARNESS_CMD_BENCH_TOKENIZER_H

#include "harness/cmd/cmd.h"

/* @dir: of a checkpoint; @text: a file, NULL = made up from @seed. Prints. SNAP_E_USAGE without @dir. */
snap_status bench_tokenizer(const char *dir, const char *text, int64_t seed, double seconds,
                            const opt_shared *shared, snap_err *err) SNAP_CHECK_RESULT;

#endif
