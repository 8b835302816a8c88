/* random_model.h - checkpoints drawn at random, small, but with caches wide enough for the Hopper kernels. */
#ifndef SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H
#define SNAPMLA_GENERATOR_TEST_RANDOM_MODEL_H

/* A config.json: 16 heads without q_lora and softmax routing; 32 heads with it and sigmoids by groups. */
extern const char random_wide_v2[], random_wide_v3[];

/* Writes config.json and model.safetensors into @dir, a folder that exists; tiny_remove() takes them. Fails
 * the test where it can't. */
void random_write(const char *dir, const char *config);

#endif
