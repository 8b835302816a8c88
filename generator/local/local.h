/* local.h - opens a checkpoint and makes it ready to generate. It creates the weights, tokenizer,
 * chat template, KV cache and engine, which local_model holds together. */
#ifndef SNAPMLA_GENERATOR_LOCAL_LOCAL_H
#define SNAPMLA_GENERATOR_LOCAL_LOCAL_H

#include "generator/local/chat/chat.h"
#include "generator/local/engine/engine.h"
#include "generator/local/tokenizer/tokenizer.h"

typedef struct {
    const char *precision; /* cache.h: the cache format, and so the attention; NULL = "bf16" */
    int64_t cache_bytes;   /* bytes of the cache over all layers, the same for every arm; 0 = the
                              default, see below */
    int64_t context; /* most tokens per sequence; 0 = LOCAL_CONTEXT or the model's limit if lower */
    int sequences;   /* most sequences at once; 0 = LOCAL_SEQUENCES */
    bool recompute;  /* engine_recompute() */
    int threads;     /* 0 = all cores */
    const char *device;        /* "cpu" (NULL), "cuda"; "opencl", "plugin:PATH": runner.h */
    const char *chat_template; /* a name of chat.h; NULL = the checkpoint's own */
    bool thinking;             /* only used by the template "deepseek-v3.1" */
} local_options;

/* The default cache has LOCAL_CACHE bytes, or an eighth of a CUDA device's memory if that is more.
 * It is never larger than what `sequences` of `context` tokens take in BF16. */
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

/* SNAP_E_USAGE for an unknown precision or template; SNAP_E_NOMEM if not even one page of cache
 * fits; any error of opening the parts. Release with local_close(), also after a failure. */
snap_status local_open(local_model *m, const char *dir, const local_options *opt,
                       snap_err *err) SNAP_CHECK_RESULT;
void local_close(local_model *m);

/* Appends the token ids of the prompt to @ids. The prompt ends where the assistant's answer begins.
 * If the checkpoint has no template, the prompt is the contents of all messages, concatenated. */
snap_status local_prompt(local_model *m, const gen_message *messages, int n, tok_ids *ids,
                         snap_err *err) SNAP_CHECK_RESULT;

#endif
