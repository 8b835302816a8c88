/* model.h - a model on the device: its buffers, and the chain of kernels of one step. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_MODEL_H

#include "generator/local/cuda/cublaslt.h"
#include "generator/local/cuda/cuda_weights.h"
#include "generator/local/cuda/rows.h"

enum {
    kMostChunks = 64, /* most chunks of prompts in one step */
    kLogitRows = 256, /* rows whose logits are computed at a time; max_decode + 1 if that is more */
    kFewRows = 8,     /* on Hopper, products of at most this many rows go to gemm_few() or, with
                         e4m3 weights, to gemm_few_codes() */
    kGatedRows = 512, /* most rows of a dense product with a gate that cuBLASLt computes */
};

/* What was read from one row of logits (reading.h), in the form that the device writes. */
struct row_reading {
    double sum;
    int kind, token, n;
    float largest;
};

/* Used for steps that read less than all logits of some row. */
struct reading_buffers {
    reading *wanted;
    row_reading *answer;
    token_logit *list; /* [rows][READING_MOST] */
};

/* The inputs of a step, which the host writes. The copy on the device has the same layout. */
struct step_inputs {
    int *chunk_length, *length, *token; /* [kMostChunks], [max_decode], [max_rows], one after the
                                           other in one array */
    int *table;                         /* [max_decode + kMostChunks][table_width] */
};

struct row_range;

struct row_buffers {
    float *x;             /* [max_rows][hidden] the residual stream */
    device::bf16 *packed; /* [max_rows][max(hidden, q_lora)] operand of the next product */
    float *in;            /* [max_rows][columns of block.in] */
    float *q;             /* [max_rows][heads * (nope + rope)] if the model has q_lora */
    device::bf16 *q_packed;
    device::bf16 *q_mla;
    uint8_t *q8;
    device::bf16 *q8_rope;
    float *q8_scale;
    device::bf16 *o_mla, *o;
    float *gated;        /* with cuBLASLt: [kGatedRows][2 intermediate] sums before the gate
                                   is applied */
    device::bf16 *inner; /* [max_rows][intermediate] */
    device::bf16 *message, *gathered; /* with EP: the rows of this rank on their way to the experts,
                                         and those of all ranks, [ranks][rows of the step]; rows of
                                         message_row() numbers (rows.h) */
    device::bf16 *pair_x;             /* [pairs][hidden]; NULL if the experts are e4m3 */
    device::bf16 *expert_inner;       /* [pairs][inner] */
    float *down;                      /* [pairs][hidden] outputs of the experts */
    uint8_t *code;                    /* the operand of a product of e4m3 weights: e4m3 or FP16 */
    float *code_scale;                /* the scales or inverse factors of `code` (codes.h) */
    device::partial_sums partial;     /* of gemm_stream_k() */
    float *part; /* if the model is split, or its experts are divided: [max_rows][hidden] sums of
                    this rank, before they are added up over the ranks (comm.h); if rows are
                    gathered, [ranks * max_rows][hidden] */
    float *own;  /* if rows are gathered and the replica is split: [max_rows][hidden] this rank's
                    part of the outputs of shared experts, and the sums of scatter_sum() */
    float *identity, *scores;
    int *chosen; /* [MoE layers][max_rows][chosen] */
    int *expert, *place;
    float *weight;
    int *first, *active, *count, *pair_row, *ticket, *total;
    device::bf16 *kv, *expanded; /* fetched rows of the cache and expanded keys and values of one
                                    chunk: [context][rank + rope], [context][heads_at_once * (nope +
                                    v)] */
    float *logits;               /* [logit_rows][vocab] */
    unsigned long long *key;     /* [max_rows] best_token()'s key */
    int *want;                   /* [max_rows] rows whose logits are wanted */
    float2 *angle;
    row_range *shared;  /* the memory of round.h */
    uint64_t *exchange; /* the memory of single.h's single_exchange */
};

/* A chunk of a prompt: the rows first .. first + count - 1 of the step. */
struct chunk_piece {
    int first, count;
    int64_t start;
};

/* The shape of a step, as its kernels use it. */
struct step_shape {
    int rows, decode, chunks, wanted;
    bool gathers; /* b.want lists the wanted rows; else all rows are wanted, in order */
    int padding;  /* the last rows, which belong to chunks of padding */
    chunk_piece chunk[kMostChunks];
};

/* To time the exchanges of a step, copies of each exchange follow it. They use the memory below,
 * which holds zeros, so the step has the same results. */
struct repeated_exchanges {
    int copies;         /* number of copies of each exchange; 0 in all other steps */
    float *x, *part;    /* like row_buffers.x and .part */
    device::bf16 *rows; /* like row_buffers.gathered */
};

/* The copies of exchanges are a part of such a step, beside those of step_part. */
constexpr step_part STEP_COPIES = STEP_PARTS;
enum { kTimedParts = STEP_PARTS + 1 };

/* Events between the parts of a step, while a step with events is recorded. */
struct part_marks {
    struct mark {
        cudaEvent_t at;
        step_part part; /* the part of a step to which the work after this event belongs */
    };
    std::vector<mark> list;

    cudaError_t add(step_part part, cudaStream_t stream);
    void release();
};

struct cuda_model {
    mla_backend *be;
    device::stream_of s;
    model_shape shape;
    runner_options opt;
    device::weights w;
    kv_cache *cache;
    const row_format *rounded; /* how the rows of the cache are rounded; NULL: they are not */
    router how;
    rope rotary;
    float softmax_scale, branch;
    int first_expert;     /* the first routed expert of this rank */
    int experts, slots;   /* experts of this rank and choices of a row in the lists of pairs. Shared
                           experts are among them, except with EP */
    bool divides_experts; /* the routed experts are divided over ranks (EP) */
    int shared_inner;     /* with EP: inner width of the shared experts on this rank; else 0 */
    int table_width, moe_layers, heads_at_once, logit_rows;
    mla_plan *decode_plan, *fetch_plan;
    device::cublaslt *library; /* NULL = cuBLASLt is not used */
    step_inputs host, dev;
    row_buffers b;
    std::vector<void *> owned, pinned;
    bool single;              /* decode steps of one row use single_layer() */
    part_marks *marks;        /* NULL = no events are recorded */
    repeated_exchanges again; /* while a step is recorded to time its exchanges */
    float *logits_host;
    unsigned long long *key_host;
    reading_buffers read, read_host; /* [read_rows] */
    int read_rows;
    int *want_host, *chosen_host;
    int64_t launched_ns; /* when the host had started the kernels of the current step */
    int64_t counted;     /* number of steps so far; it decides whose experts are counted */
    std::vector<lab_recording *> recorded; /* [max_decode + 1] recorded steps, by number of
                                              sequences */
};

/* Whether rows of other ranks go to the experts of this rank (EP with several replicas). */
inline bool gathers_rows(const cuda_model *m) {
    return comm_splits(m->opt.experts);
}

/* How many rows the experts of this rank get in a step of @rows rows, and how many pairs at
 * most. */
inline int expert_rows(const cuda_model *m, int rows) {
    return gathers_rows(m) ? rows * m->opt.experts->size : rows;
}
inline int expert_pairs(const cuda_model *m, int rows) {
    const int each = m->slots < m->experts ? m->slots : m->experts;
    return expert_rows(m, rows) * each;
}

/* Whether products of @rows rows go to gemm_many() or cuBLASLt, except those with an odd number of
 * weight rows that cuBLASLt can't compute. */
inline bool takes_many(const cuda_model *m, int rows) {
    return m->s.hopper && rows > kFewRows;
}

/* Computes a product; product.cu chooses the function for its shape. */
cudaError_t product(cuda_model *m, const device::gemm_args &a);

/* Runs all kernels of a step up to the last norm. Afterwards b.packed holds the normalised rows
 * whose logits are wanted: step.wanted of them. */
snap_status forward(cuda_model *m, const step_shape &step, snap_err *err);

/* Writes the logits or the readings of the wanted rows first .. first + count - 1 to @out, if they
 * are requested. The logits of these rows are in b.logits. What is written to @out is complete on
 * return. Without readings the keys are copied to key_host, too; if @out has no logits either, that
 * copy is complete after the next synchronisation. */
snap_status read_logits(cuda_model *m, int first, int count, const cuda_model_results *out,
                        snap_err *err);

/* Records a step of decoded pieces. *@out is NULL after a failure. */
snap_status record_step(cuda_model *m, const step_shape &step, lab_recording **out, snap_err *err);

/* Lays out pieces, and copies the inputs of the step to the device. */
snap_status begin_step(cuda_model *m, const model_piece *pieces, int count, step_shape *step,
                       snap_err *err);

/* If the ranks exchange numbers, waits for the step, which waits for the other ranks. */
snap_status wait_for_ranks(cuda_model *m, snap_err *err);

/* Computes logits and keys of the rows first .. first + count - 1 of b.packed. */
snap_status logits_of(cuda_model *m, int first, int count, snap_err *err);

#endif
