/* calibrate.h - finds how many tokens a server counts for a prompt. */
#ifndef SNAPMLA_HARNESS_SERVING_CALIBRATE_H
#define SNAPMLA_HARNESS_SERVING_CALIBRATE_H

#include "harness/serving/block.h"

/**
 * calibrate_prompts - send two prompts of different length, and fit the number of tokens
 *
 * @m:       its `around` and `tokens_per_word` are set from the server's usage (prompt_fit())
 * @counted: set to false if the server reports no usage; then @m is not changed
 *
 * Each answer is limited to one token. Errors of block_run(); SNAP_E_NET if a request fails;
 * SNAP_E_INPUT if the counts cannot be right. */
snap_status calibrate_prompts(serving_target *target, http *engine, prompt_maker *m, uint64_t seed,
                              bool *counted, snap_err *err) SNAP_CHECK_RESULT;

#endif
