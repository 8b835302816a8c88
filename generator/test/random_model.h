/* random_model.h - checkpoints drawn at random, small, but with caches wide enough for the Hopper kernels. */
#ifndef SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H
#define SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H

#include "generator/test/tiny_model.h"

/* A config.json: 16 heads without q_lora and softmax routing; 32 heads with it and sigmoids by groups. */
extern const char random_wide_v2[], random_wide_v3[];

/* The first with heads a quarter as wide, so that all of W_UK and W_UV is 1 MB. */
extern const char random_narrow_v2[];

/* @config with some numbers changed, "key":old -> "key":new; the caller frees it. Fails the test where one is not
 * there. */
char *random_changed(const char *config, const char *const (*change)[2], int n);

/* A checkpoint of @config in a folder of its own, opened. Each @draw has numbers of its own. Fails the test
 * where it can't. Release with tiny_close(). */
void random_open(tiny_model *t, const char *config, uint64_t draw);

#endif
