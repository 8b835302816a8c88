/* predict_work.h - the work of a decode step on one GPU of a layout, and the memory that it needs.
 *
 * These numbers follow from the model's shape alone. predict_rules.h turns the work into a time.
 *
 * A layout is written "DP8/TP1", "DP4/TP2" or "DP8/TP1/EP8" (generator/local/ranks/layout.h).
 * Without EP, each expert is split over the ranks of its replica, as `bench model` does it. With
 * EP, each rank has whole experts, and the rows of a step go to the ranks of their experts and back
 * through an all-to-all that moves each row once to each of these ranks. `bench model` measures
 * DPn/EPn with an all-gather and a reduce-scatter in FP32 instead (generator/local/cuda/README.md).
 * On two GPUs these move about as many bytes to the experts, and twice as many back. On more GPUs
 * they move more. Their buffers hold the rows of all ranks, which are not counted here. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_WORK_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_WORK_H

#include "generator/local/checkpoint/shape.h"
#include "generator/local/model/cache.h"
#include "generator/local/ranks/layout.h"

typedef struct {
    rank_layout ranks;
} predict_layout;

/* SNAP_E_USAGE for a text that is no layout. */
snap_status predict_layout_parse(predict_layout *out, const char *text,
                                 snap_err *err) SNAP_CHECK_RESULT;
void predict_layout_text(const predict_layout *l, char out[32]);

static inline int predict_gpus(const predict_layout *l) {
    return l->ranks.replicas * l->ranks.parts;
}

/* SNAP_E_UNSUPPORTED, naming what cannot be divided. */
snap_status predict_layout_check(const predict_layout *l, const model_shape *s,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* All numbers are those of one step on one rank. */
typedef struct {
    double rows;         /* sequences of the rank's replica */
    int heads;           /* of the rank */
    double blocks;       /* attentions */
    double moe_layers;   /* layers with experts */
    double launches;     /* of kernels in the rest of the step */
    double cached;       /* cached tokens that are read, over all blocks */
    double query_bytes;  /* weights that absorb the queries, W_UK */
    double experts;      /* experts that are read, with the shared ones, over all layers */
    double expert_rows;  /* pairs of a row and one of its experts that the rank computes in a layer,
                            divided by the number of experts of a row */
    double expert_bytes; /* weights of routers and of those experts that are read */
    double expert_flop;
    double expert_moved; /* numbers in the rows that go to experts and come back */
    double rest_bytes;   /* weights of all other products */
    double rest_flop;

    /* numbers that ranks exchange */
    double sums, sum_bytes;       /* all-reduces of FP32 numbers over a replica; bytes of one */
    double moves;                 /* pairs of all-to-alls over all ranks: rows to their experts and
                                     back */
    double out_bytes, back_bytes; /* of one pair: what a rank sends */
    double gathers, gather_bytes; /* all-gathers over a replica after the all-to-alls */
} predict_work;

/* Bytes of one number of a weight matrix: 2 for BF16, a little more than 1 for e4m3 with one FP32
 * scale for each 8 x 128 numbers, as the device stores them (generator/local/cuda/codes.h).
 * Embedding, logits, routers and kv_b stay as they are. */
double predict_number_bytes(bool e4m3);

/* Each replica has @rows sequences of @context cached tokens. @experts: how many routed experts are
 * read in each layer; NAN = the expected number, if all experts are equally likely. */
predict_work predict_work_of(const model_shape *s, const predict_layout *l, bool e4m3, double rows,
                             int64_t context, double experts);

/* Number of experts that are read in a layer if each of @rows rows chooses @chosen of @all at
 * random, and @here of them are on the rank. */
double predict_experts(double here, double all, double chosen, double rows);

typedef struct {
    int64_t weights, buffers, cache; /* bytes */
} predict_memory;

static inline int64_t predict_memory_sum(const predict_memory *m) {
    return m->weights + m->buffers + m->cache;
}

/* What a rank allocates on its GPU for @rows sequences: weights, buffers of a step and pages of the
 * cache, as generator/local/cuda does it. The driver, libraries and the workspace of attention are
 * not included. */
predict_memory predict_memory_of(const model_shape *s, const predict_layout *l, bool e4m3,
                                 kv_format arm, int64_t rows, int64_t context);

/* The largest number of rows, at most @most, for which predict_memory_of() is within @bytes; 0 if
 * none is. */
int64_t predict_largest(const model_shape *s, const predict_layout *l, bool e4m3, kv_format arm,
                        int64_t context, int64_t bytes, int64_t most);

#endif
