/* random_model.h - small random checkpoints, with caches wide enough for the Hopper kernels. */
#ifndef SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H
#define SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H

#include "generator/test/tiny_model.h"

/* Two config.json: random_wide_v2 has 16 heads, no q_lora and softmax routing; random_wide_v3 has
 * 32 heads, q_lora and sigmoid routing with groups. */
extern const char random_wide_v2[], random_wide_v3[];

/* random_wide_v2 with a quarter of the widths nope and v of a head, so that W_UK and W_UV together
 * have 1 MiB per layer. */
extern const char random_narrow_v2[];

/* A copy of @config in which some "key":old are replaced by "key":new; the caller frees it. Fails
 * the test if one is not found. */
char *random_changed(const char *config, const char *const (*change)[2], int n);

/* A checkpoint of @config in a temporary folder, opened. Each @draw gives different weights. Fails
 * the test on an error. Release with tiny_close(). */
void random_open(tiny_model *t, const char *config, uint64_t draw);

/* Scales of e4m3 numbers: any numbers, or powers of two, with which BF16 has every e4m3 number. */
typedef enum { RANDOM_SCALES, RANDOM_POWERS } random_scales;

/* Like random_open(), but the projections are e4m3, with one scale for each 128 by 128 numbers. If
 * @written, they are the same numbers, rounded to BF16. */
void random_open_e4m3(tiny_model *t, const char *config, random_scales scales, bool written);

#endif
