/* local.h - a checkpoint opened to generate with: weights, tokenizer, template, cache and engine. */
#ifndef SNAPMLA_GENERATOR_LOCAL_LOCAL_H
#define SNAPMLA_GENERATOR_LOCAL_LOCAL_H

#include "generator/local/chat/chat.h"
#include "generator/local/engine/engine.h"
#include "generator/local/tokenizer/tokenizer.h"

typedef struct {
    const char *precision; /* of the cache, and so the attention arm: cache.h; NULL = "bf16" */
    int64_t cache_bytes;   /* of all layers; 0 = LOCAL_CACHE, or an eighth of a CUDA device's memory
                                  where that is more, or what `sequences` of `context` take in BF16
                                  where that is less: the same bytes for every arm */
    int64_t context;       /* tokens a sequence; 0 = LOCAL_CONTEXT, or the model's where less */
    int sequences;         /* at once; 0 = LOCAL_SEQUENCES */
    bool recompute;        /* engine_recompute() */
    int threads;           /* 0 = all */
    const char *device;    /* "cpu" (NULL), "cuda"; "opencl", "plugin:PATH": runner.h */
    const char *chat_template; /* a name of chat.h; NULL = the checkpoint's own */
    bool thinking;             /* deepseek-v3.1 */
} local_options;

enum { LOCAL_CONTEXT = 32768, LOCAL_SEQUENCES = 32, LOCAL_CHUNK = 256, LOCAL_CUDA_CHUNK = 2048 };
#define LOCAL_CACHE ((int64_t)4 << 30)

typedef struct {
    model_shape shape;
    checkpoint *files;
    model_weights weights;
    tokenizer *tokenizer;
    tok_encoder *encoder;
    chat_style style;
    runner *runner;
    engine *engine;
    int32_t stop_ids[SHAPE_EOS + 1];
    int n_stop_ids;
} local_model;

/* SNAP_E_USAGE for an unknown precision or template; SNAP_E_NOMEM where the cache has no room for one page;
 * what opening the parts can give. Release with local_close(), also after a failure. */
snap_status local_open(local_model *m, const char *dir, const local_options *opt,
                       snap_err *err) SNAP_CHECK_RESULT;
void local_close(local_model *m);

/* The prompt that ends where the assistant is to answer; a template-less checkpoint gets the plain text. */
snap_status local_prompt(local_model *m, const gen_message *messages, int n, tok_ids *ids,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
