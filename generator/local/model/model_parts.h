/* model_parts.h - what the files of the forward pass share. Private to model/. */
#ifndef SNAPMLA_GENERATOR_LOCAL_MODEL_MODEL_PARTS_H
#define SNAPMLA_GENERATOR_LOCAL_MODEL_MODEL_PARTS_H

#include "base/buf.h"
#include "generator/local/cuda/cuda_model.h"
#include "generator/local/model/remote.h"
#include "generator/local/model/rope.h"
#include "generator/local/model/route.h"

/* A piece of the current step: its rows first .. first + count - 1. */
typedef struct {
    int first, count;
    int64_t position;
    bool padding;
} step_piece;

/* The current step. Pieces that are decoded (one token each) come first. */
typedef struct {
    int rows, decode; /* all rows; how many of them are decoded */
    int pieces;
    step_piece *piece; /* [max_rows] */
    int32_t *token;    /* [max_rows], as is position */
    int64_t *position;
    int32_t *length; /* position + 1; mla.h calls it seqlens */
    int32_t *table;  /* [max_rows][table_width] */
    int table_width;
    float *cosine, *sine; /* [max_rows][pairs] */
    mla_step all, decoding;
} step_state;

/* Buffers of a layer. A size in brackets is that of one row; there are max_rows rows, unless the
 * comment begins with another number. "Packed" means in the type of the products, BF16 or FP32.
 * "Widest" is the largest of hidden, q_lora and heads * v. */
typedef struct {
    float *x;        /* [hidden] the residual stream */
    float *h;        /* [hidden] normalised x, or the result of the attention */
    float *out;      /* [hidden] sum of the feed-forward outputs, without those of a shortcut */
    float *shortcut; /* [hidden] output of a shortcut's experts */
    void *packed;    /* [widest] operand of the next product */
    float *wide;     /* [q_lora] result of q_a */
    float *kv_a;     /* [d_c + d_r] the latent and its RoPE part */
    void *kv;        /* [d_c + d_r] packed: the new rows of the cache */
    float *q;        /* [heads][nope + rope] */
    void *q_packed;
    float *absorbed; /* [max_decode][heads][d_c + d_r] */
    uint16_t *q_mla; /* [max_decode][heads][d_c + d_r] absorbed in bf16 */
    void *q8;        /* [max_decode][heads][d_c] e4m3; this and the next two are used with
                        MLA_FP8 */
    void *q8_rope;   /* [max_decode][heads][d_r] bf16 */
    float *q8_scale; /* [max_decode][heads] */
    uint16_t *o_mla; /* [max_decode][heads][d_c] */
    float *o;        /* [heads][v] */
    float *scores;   /* [experts] */
    int32_t *chosen; /* [experts per token]; -1 in a padding row: no rank computes an expert */
    float *weight;
} step_buffers;

/* The (row, expert) pairs of a step, sorted by expert. The dense and shared feed-forwards also use
 * gate, up, inner and down, with a row of the step in place of a pair. The attention of decoding
 * uses jobs. */
typedef struct {
    int *first;       /* [experts of this rank + 1] first pair of each expert */
    int *row, *place; /* [pairs]: row of a pair; place[row * chosen + i] is the pair of a row's
                         choice i, or PLACE_ZERO or PLACE_ELSEWHERE */
    void *x;          /* [pairs][hidden] packed */
    float *gate, *up; /* [pairs][inner] */
    void *inner;      /* packed */
    float *down;      /* [pairs][hidden] */
    gemm_job *jobs;   /* [2 * experts + heads] */
} expert_buffers;

/* With EP: the rows of all ranks, [size * max_rows]. In a step of n rows, those of rank i begin at
 * row i * n. */
typedef struct {
    void *x; /* [hidden] packed */
    int32_t *chosen;
    float *weight;
    float *sum; /* [hidden] outputs of this rank's experts */
} gathered_buffers;

/* Buffers for the attention of a chunk, which processes the keys block by block. */
typedef struct {
    void *kv;        /* [block][d_c + d_r] fetched, packed */
    float *expanded; /* [block][heads][nope + v] */
    void *expanded_packed;
    float *sum, *max; /* [max_rows][heads] */
    void *scratch;    /* [threads][scratch_bytes] */
    size_t scratch_bytes;
} chunk_buffers;

struct runner {
    const model_weights *w;
    const model_shape *s;
    runner_options opt;
    mla_backend *be;
    mla_plan *append_plan, *decode_plan;
    kv_cache *cache;
    cuda_model *cuda; /* if not NULL, it runs the steps; then the plans, the products and all
                         buffers of this struct are unused */
    parallel *pool;
    gemm *g, *g32; /* g uses the arithmetic of the format; g32 uses FP32 and serves the router */
    rope rope;
    router router;
    float softmax_scale;
    size_t element; /* bytes of one packed number */
    step_state step;
    step_buffers b;
    expert_buffers e;
    gathered_buffers all; /* NULL pointers if no rows are gathered (runner_options.experts) */
    chunk_buffers c;
    int32_t *watch; /* borrowed; runner_watch_experts() */
    watchdog *dog;  /* borrowed; runner_limit_steps() */
    runner_stats stats;
    buf call; /* the last message of calls.h that was sent or received */

    /* Of a remote runner (remote.h), whose `pool` is borrowed. It has no backend, no plans, no
     * cache and no buffers. */
    call_link *link; /* NULL = the runner is not remote */
    size_t page_bytes;

    /* Of remote.h: the last answer that was received or sent; of the rank that answers, the results
     * of its last step */
    buf answer;
    int64_t answer_rows;
    float *answer_logits;       /* [answer_rows][vocab] */
    reading_result *answer_got; /* [answer_rows] */

    runner_block_fn watch_block;
    void *watch_ctx;
    int moe_layers, moe_layer; /* number of MoE layers; the one that runs now */
    arena mem;
};

/* Send a call to the other ranks, on rank 0 of a split model. On other runners they do nothing. */
snap_status calls_send_step(runner *r, const model_piece *pieces, int count,
                            snap_err *err) SNAP_CHECK_RESULT;
snap_status calls_send_copy(runner *r, int32_t from, int32_t to, snap_err *err) SNAP_CHECK_RESULT;
snap_status calls_send_page(runner *r, int32_t page, const void *host,
                            snap_err *err) SNAP_CHECK_RESULT;

snap_status calls_send_word(runner *r, int kind, int32_t word, snap_err *err) SNAP_CHECK_RESULT;

/* Writes a step to r->call, and sends r->call. */
void calls_put_step(runner *r, int kind, const model_piece *pieces, int count);
snap_status calls_send(runner *r, snap_err *err) SNAP_CHECK_RESULT;

/* The numbers of a message that are not read yet. */
typedef struct {
    const int32_t *at;
    size_t left;
} word_reader;

/* Copies a message to r->call. *kind: its first number, 0 if there is none; *rest: those after it.
 * SNAP_E_NOMEM. */
snap_status calls_read(runner *r, const void *bytes, size_t n, int32_t *kind, word_reader *rest,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Takes the pieces of a step, *pieces [*n], which the caller frees, also after an error. They point
 * into the message. SNAP_E_INPUT, SNAP_E_NOMEM. */
snap_status calls_take_step(const runner *r, word_reader *w, model_piece **pieces, int *n,
                            snap_err *err) SNAP_CHECK_RESULT;

/* The error of a message that is malformed. */
snap_status calls_malformed(snap_err *err);

/* Ends the other ranks if a call that was sent to them has failed here. @st: the status of the
 * call. Returns the status of the failure. */
snap_status calls_end(runner *r, snap_status st, snap_err *err);

/* Checks the pieces of a step as runner_step() says. */
snap_status runner_check_pieces(const runner *r, const model_piece *pieces, int count,
                                snap_err *err) SNAP_CHECK_RESULT;

/* Runs a step of a remote runner. */
snap_status remote_step(const runner_batch *b, snap_err *err) SNAP_CHECK_RESULT;

/* Runs a step whose results are not read. On the CPU, it does not compute the logits. */
snap_status runner_step_unread(runner *r, const model_piece *pieces, int count,
                               snap_err *err) SNAP_CHECK_RESULT;

enum { kKeyBlock = 256, kQueryBlock = 32, kFewRows = 8 };

/* Allocates what r->step, r->b, r->e and r->c point to, zeroed, for the largest step. It is freed
 * with the runner. SNAP_E_NOMEM. */
snap_status runner_take_buffers(runner *r, snap_err *err) SNAP_CHECK_RESULT;

/* Calls @fn for the rows 0 .. count - 1. At most kFewRows rows are processed by the calling thread,
 * because each row is little work. The threads of r->pool share a larger number. */
void runner_rows(runner *r, int64_t count, parallel_fn fn, void *ctx);

/* out [n] = x [n] * rsqrt(mean(x^2) + eps) * weight [n] * factor */
void rms_norm(const float *x, const float *weight, int n, double eps, float factor, float *out);

/* Appends the new tokens to the cache of @block. Then r->b.h = W_O times the attention of
 * r->b.packed over that cache. */
snap_status attention_forward(runner *r, int block, snap_err *err) SNAP_CHECK_RESULT;

/* Attention of the pieces that are chunks: r->b.o from r->b.q_packed and the cache of @block. */
snap_status chunks_forward(runner *r, int block, snap_err *err) SNAP_CHECK_RESULT;
size_t chunk_scratch_bytes(const runner *r);

/* out += ffn(r->b.packed); @inner is the width of the hidden layer of @f */
snap_status ffn_forward(runner *r, const ffn_weights *f, int64_t inner, float *out,
                        snap_err *err) SNAP_CHECK_RESULT;

/* out += the output of all experts, shared ones included, for the rows in r->b.packed. The router
 * and the zero-computation experts read the same rows in FP32 from r->b.h. */
snap_status moe_forward(runner *r, const moe_weights *m, float *out,
                        snap_err *err) SNAP_CHECK_RESULT;

#endif
