/* local.h - opens a checkpoint and makes it ready to generate. local_model holds all parts: the
 * weights, the tokenizer, the chat template, the runner with its KV cache, and the engine. With a
 * layout DPn it also holds n - 1 further replicas. Code that ignores them uses the first replica
 * only. With a layout TPn its weights and its runner are those of rank 0, and the other ranks are
 * processes (split.h). With DPm/TPn it holds m such replicas. With EP there is one local_model,
 * whose engine has all replicas of the layout (engine.h). */
#ifndef SNAPMLA_GENERATOR_LOCAL_LOCAL_H
#define SNAPMLA_GENERATOR_LOCAL_LOCAL_H

#include "generator/local/chat/chat.h"
#include "generator/local/engine/engine.h"
#include "generator/local/replicas.h"
#include "generator/local/split.h"
#include "generator/local/tokenizer/tokenizer.h"

typedef struct {
    const char *precision; /* a name of kv_format_parse(): the cache format, which also decides
                              the attention arm; NULL = "bf16" */
    int64_t cache_bytes;   /* size limit of the cache of each replica over all layers, in bytes,
                              whatever its format; 0 = the default, which LOCAL_CACHE's comment
                              explains. The pages for padding rows (engine_padding_pages()) do not
                              count */
    int64_t context; /* most tokens per sequence; 0 = LOCAL_CONTEXT or the model's limit if lower */
    int sequences;   /* most sequences that each replica decodes at once; 0 = LOCAL_SEQUENCES */
    int chunk;       /* most tokens of prompts in a step; 0 = LOCAL_CHUNK, or LOCAL_CUDA_CHUNK with
                        "cuda" */
    bool recompute;  /* engine_recompute() */
    int threads; /* threads of all replicas or ranks together, at least 1 for each. 0 = all cores.
                    With "cuda", each replica or rank uses at most RUNNER_HOST_THREADS */
    const char *device;        /* NULL or "cpu", "cuda", "cuda:0,1", "opencl", "plugin:PATH"; see
                                  replicas.h and runner.h */
    const char *layout;        /* such as "DP2" or "TP2"; NULL = "DP1". See replicas.h */
    const char *chat_template; /* a name listed in chat.h; NULL = the checkpoint's own template */
    const model_shape
        *random; /* weights are random, of this shape, and no folder is read; NULL = the
                      checkpoint's weights */
    chat_thinking thinking;
} local_options;

/* By default the cache has LOCAL_CACHE bytes; with device "cuda" it has an eighth of the device's
 * memory if that is more. The default is at most what `sequences` sequences of `context` tokens
 * take in BF16 (in FP32 if the precision is "fp32"). */
enum { LOCAL_CONTEXT = 32768, LOCAL_SEQUENCES = 32, LOCAL_CHUNK = 256, LOCAL_CUDA_CHUNK = 2048 };
#define LOCAL_CACHE ((int64_t)4 << 30)

/* A replica after the first has a runner, an engine and an encoder of its own. It borrows the other
 * parts from the first one. */
typedef struct local_model local_model;
struct local_model {
    model_shape shape; /* of the whole model */
    checkpoint *files;
    model_weights weights;
    tokenizer *tokenizer;
    tok_encoder *encoder;
    chat_style style;
    split *split; /* the other ranks of a split model; NULL if it is not split */
    runner *runner;
    runner **remote; /* [remotes]: the runners of the further replicas of the engine, with EP */
    int remotes;
    engine *engine;
    watchdog *dog; /* the watchdog that local_limit_steps() starts; NULL = none */
    int32_t stop_ids[SHAPE_EOS + 1];
    int n_stop_ids;
    char name[64];     /* name in messages: "replica 1 (cuda:1)"; "" if there is only one */
    bool borrows;      /* this replica is not the first one, and borrows from it */
    local_model *more; /* [replicas - 1]; NULL if there is only one */
    int replicas;      /* in the first replica: the number of replicas, at least 1 */
};

/* SNAP_E_USAGE for an unknown precision, template or device; SNAP_E_INPUT if the tokenizer has more
 * ids than the model; SNAP_E_NOMEM, also if the cache is smaller than one page; any error of
 * opening the parts. Release with local_close(), also after a failure. */
snap_status local_open(local_model *m, const char *dir, const local_options *opt,
                       snap_err *err) SNAP_CHECK_RESULT;
void local_close(local_model *m);

/* Ends the program if a step of this replica, or a copy of a page of its cache to or from the host,
 * takes longer than @limit_s seconds (watchdog.h). In a split model, it limits rank 0. local_open()
 * calls it with LOCAL_STEP_LIMIT if the layout has several GPUs. On the CPU, a step may take
 * minutes. The limit is longer than that of an exchange (ranks_defaults), so that the ranks first
 * find another rank that hangs. SNAP_E_NOMEM, SNAP_E_IO. */
enum { LOCAL_STEP_LIMIT = 25 };
snap_status local_limit_steps(local_model *m, double limit_s, snap_err *err) SNAP_CHECK_RESULT;

/* Replica @i of @m, 0 .. m->replicas - 1; the first is @m itself. */
static inline local_model *local_replica(local_model *m, int i) {
    return i ? &m->more[i - 1] : m;
}

/* The device that runs cache format @i (from 0) of a command that compares the formats of one
 * checkpoint with the first of them. @device: the device that the user named. "cuda" runs all
 * formats. Another device runs all but the first, so that a kernel under test is compared with the
 * program's own BF16 kernel. */
const char *local_device_of(const char *device, int i);

/* Appends the token ids of the prompt to @ids. The prompt is rendered by chat_render() in the
 * model's chat style. With CHAT_NONE the tokenizer adds its special tokens to it, such as begin of
 * sentence. */
snap_status local_prompt(local_model *m, const gen_message *messages, int n, tok_ids *ids,
                         snap_err *err) SNAP_CHECK_RESULT;

/* The error of a sequence that ended for the reason @why; SNAP_OK if that is no failure.
 * SNAP_E_NOMEM if the cache had too few pages; the error of runner_not_finite(). @tokens: number of
 * tokens of the sequence, with its prompt. */
snap_status local_finish_error(const local_model *m, finish_reason why, int64_t tokens,
                               snap_err *err) SNAP_CHECK_RESULT;

#endif
