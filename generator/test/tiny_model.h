/* tiny_model.h - the checkpoints of generator/test/model, made from their description (make_fixtures.py
 * there), and what transformers computed with them. */
#ifndef SNAPMLA_GENERATOR_TEST_TINY_MODEL_H
#define SNAPMLA_GENERATOR_TEST_TINY_MODEL_H

#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/model/weights.h"

enum { TINY_TOKENS = 80 };

typedef struct {
    char dir[64]; /* temporary: config.json and model.safetensors */
    model_shape shape;
    checkpoint *files;
    model_weights weights;
    int32_t tokens[TINY_TOKENS];
    float *exact;    /* [TINY_TOKENS][vocab] logits in FP32 */
    float *rounded;  /* the same in BF16 */
    int32_t *chosen; /* [TINY_TOKENS][per_token] experts of all layers, in BF16 */
    int per_token;
} tiny_model;

extern const char *const tiny_names[]; /* NULL-terminated */

/* Writes config.json and model.safetensors of a fixture into @dir, a folder that exists. @vocab, where it
 * is not 0, takes the place of the fixture's: for a tokenizer that needs more. */
void tiny_write(const char *dir, const char *name, int vocab);
void tiny_remove(const char *dir); /* those files, tokenizer.json, and the folder */

/* A folder for a checkpoint; and what was written into it, opened, without tokens or reference. Both fail the
 * test where they can't. Release with tiny_close(). */
void tiny_make(tiny_model *t);
void tiny_read(tiny_model *t);

/* A fixture, opened. Fails the test where it can't. Release with tiny_close(). */
void tiny_open(tiny_model *t, const char *name);

/* The same with other weights; the reference is the plain model's. */
typedef enum {
    TINY_PLAIN,
    TINY_STRONG_ROPE, /* of "minicpm3" (no experts, so no choice that flips): keys of the slowest RoPE
                         pairs reach 1e3, as in real models (SnapMLA, arXiv 2602.10718, Fig. 3), and the
                         softmax depends on them */
    TINY_E4M3,        /* projections in F8_E4M3 with a scale for each 32 x 32 */
    TINY_E4M3_AS_F32, /* the same numbers, scales multiplied in */
    TINY_E4M3_AS_BF16 /* and rounded */
} tiny_flavour;
void tiny_open_as(tiny_model *t, const char *name, tiny_flavour flavour);

/* What one of @size ranks has of it (generator/local/comm.h); the reference is the whole model's. */
void tiny_open_share(tiny_model *t, const char *name, int rank, int size);
void tiny_close(tiny_model *t);

/* Is there a device for tests that need one? */
bool tiny_on_cuda(void);

#endif
