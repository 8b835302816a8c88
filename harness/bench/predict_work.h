/* predict_work.h - the work of a decode step on one GPU of a layout, and the memory that it needs.
 *
 * These numbers follow from the model's shape alone. predict_rules.h turns the work into a time.
 *
 * A layout is written "DP8/TP1", "DP4/TP2" or "DP8/TP1/EP8" (generator/local/ranks/layout.h).
 * Without EP, each expert is split over the ranks of its replica. With EP, each rank has whole
 * routed experts, and computes them for the rows of all replicas. A layer with experts then has two
 * exchanges between those ranks that have the same part of each replica: an all-gather of the rows,
 * and a reduce-scatter of the outputs in FP32 (generator/local/comm.h). If replicas are split, the
 * usual sum over the ranks of a replica follows. The shared experts are split over these ranks by
 * their inner width, and computed for the rows of the replica. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_WORK_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_WORK_H

#include "generator/local/checkpoint/shape.h"
#include "generator/local/model/cache.h"
#include "generator/local/ranks/layout.h"

enum { PREDICT_NODE = 8 /* GPUs of one node */ };

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
    bool e4m3;           /* the format of most weights, else BF16 */
    int heads;           /* of the rank */
    double blocks;       /* attentions */
    double moe_layers;   /* layers with experts */
    double launches;     /* launches of kernels in the rest of the step */
    double all_launches; /* launches of kernels in the whole step, without exchanges */
    double cached;       /* cached tokens that are read, over all blocks */
    double query_bytes;  /* weights that absorb the queries, W_UK */
    double experts;      /* experts that are read, with the shared ones, over all layers */
    double expert_rows;  /* rows that go to the experts of the rank: with EP, of all replicas */
    double expert_bytes; /* weights of routers and of those experts that are read */
    double expert_flop;
    double expert_moved;    /* numbers in the pairs of a row and an expert that the rank computes */
    double expert_launches; /* launches of kernels that only ranks have: joining, sorting and shared
                               experts */
    double missing_bytes;   /* the other ranks' parts of those experts whose width is divided */
    double more_experts;    /* with EP: how many more experts the busiest rank reads in all layers
                               (predict_busiest_rank()) */
    double more_bytes;      /* weights of these experts */
    double rest_bytes;      /* weights of all other products */
    double rest_flop;

    /* numbers that ranks exchange */
    double sums, sum_bytes;             /* all-reduces of FP32 numbers over a replica; bytes of
                                           one */
    double gathers;                     /* all-gathers of rows over the replicas, each followed by a
                                           reduce-scatter */
    double gather_bytes, scatter_bytes; /* a rank's part of one: its rows with the chosen experts;
                                           the sums of its rows in FP32 */
    double reach, node_reach;           /* the share of a rank's rows that another rank of a gather
                                           needs, and the share that any rank of another node
                                           needs */
} predict_work;

/* Bytes of one number of a weight matrix: 2 for BF16, a little more than 1 for e4m3 with one FP32
 * scale for each 8 x 128 numbers, as the device stores them (generator/local/cuda/codes.h).
 * Embedding, logits, routers and kv_b stay as they are. */
double predict_number_bytes(bool e4m3);

/* Each replica has @rows sequences of @context cached tokens. @experts: how many routed experts are
 * read in each layer; NAN = the expected number, if all experts are equally likely. */
predict_work predict_work_of(const model_shape *s, const predict_layout *l, bool e4m3, double rows,
                             int64_t context, double experts);

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
