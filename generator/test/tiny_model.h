/* tiny_model.h - opens the checkpoints of generator/test/model, which are made from their
 * description (make_fixtures.py there), with the results that transformers computed for them. */
#ifndef SNAPMLA_GENERATOR_TEST_TINY_MODEL_H
#define SNAPMLA_GENERATOR_TEST_TINY_MODEL_H

#include "generator/local/checkpoint/checkpoint.h"
#include "generator/local/model/weights.h"

enum { TINY_TOKENS = 80 };

typedef struct {
    char dir[64]; /* temporary folder with config.json and model.safetensors */
    model_shape shape;
    checkpoint *files;
    model_weights weights;
    int32_t tokens[TINY_TOKENS];
    float *exact;    /* [TINY_TOKENS][vocab] logits in FP32 */
    float *rounded;  /* [TINY_TOKENS][vocab] logits in BF16 */
    int32_t *chosen; /* [TINY_TOKENS][per_token] experts of all layers that the reference in BF16
                        chose */
    int per_token;
} tiny_model;

extern const char *const tiny_names[]; /* NULL-terminated */

/* Writes config.json and model.safetensors of a fixture into @dir, which must exist. If @vocab is
 * not 0 it replaces the fixture's, for a tokenizer that needs more ids. */
void tiny_write(const char *dir, const char *name, int vocab);
void tiny_remove(const char *dir); /* removes those files, tokenizer.json and the folder */

/* Makes a folder in /tmp with such files and the tokenizer of generator/test/tokenizer/bytes, which
 * has TINY_VOCAB ids. Remove it with tiny_remove(). */
enum { TINY_VOCAB = 640 };
void tiny_folder(char dir[64], const char *name);

/* tiny_make() makes a folder for a checkpoint. tiny_read() opens what was written into it, without
 * tokens or reference. Both fail the test on an error. Release with tiny_close(). */
void tiny_make(tiny_model *t);
void tiny_read(tiny_model *t);

/* Opens a fixture. Fails the test on an error. Release with tiny_close(). */
void tiny_open(tiny_model *t, const char *name);

/* Which weights tiny_open_as() gives a fixture. The reference is always that of TINY_PLAIN. */
typedef enum {
    TINY_PLAIN,
    TINY_STRONG_ROPE, /* for "minicpm3", which has no experts: keys of the slowest RoPE pairs reach
                         1e3, as in real models (SnapMLA, arXiv 2602.10718, Fig. 3), and the softmax
                         depends on them */
    TINY_E4M3,        /* projections in F8_E4M3 with one scale per 32 x 32 block */
    TINY_E4M3_AS_F32, /* the numbers of TINY_E4M3 with the scales applied, in F32 */
    TINY_E4M3_AS_BF16 /* the numbers of TINY_E4M3_AS_F32, rounded to BF16 */
} tiny_flavour;
void tiny_open_as(tiny_model *t, const char *name, tiny_flavour flavour);

/* Opens the share of one of @size ranks (generator/local/comm.h). The reference is that of the
 * whole model. */
void tiny_open_share(tiny_model *t, const char *name, int rank, int size);
void tiny_close(tiny_model *t);

/* Replaces @n numbers of a BF16 tensor in dir's model.safetensors, from number @first on, by @x. An
 * open model may still have the old numbers; tiny_reopen() reads the new ones. */
void tiny_spoil(const char *dir, const char *name, int64_t first, int64_t n, float x);
void tiny_reopen(tiny_model *t);

/* Whether there is a CUDA device, for tests that need one. */
bool tiny_on_cuda(void);

#endif
