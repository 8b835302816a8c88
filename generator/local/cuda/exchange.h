/* exchange.h - the exchange of numbers between the GPUs of a group, for `snapmla bench exchange`.
 *
 * An exchange has a send and a receive buffer on the GPU of this rank. prepare() selects an
 * operation and a size. Then fill() writes the send buffer, run() performs the operation, check()
 * compares the receive buffer with what must be in it, and time() performs it many times. All ranks
 * make the same calls in the same order.
 *
 * The calls are a table of functions, so that a test can run the benchmark without a GPU.
 *
 * After an error on one rank, call ranks_fail() before close(), which otherwise waits for the other
 * ranks. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_EXCHANGE_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "generator/local/ranks/ranks.h"

typedef enum {
    EXCHANGE_ALL_REDUCE,
    EXCHANGE_ALL_GATHER,
    EXCHANGE_REDUCE_SCATTER,
    EXCHANGE_ALL_TO_ALL,
    EXCHANGE_OPERATIONS,
} exchange_operation;

/* EXCHANGE_ONE_SHOT and EXCHANGE_STEP are kernels over peer memory
 * (kernels/cuda/exchange/one_shot.h). EXCHANGE_STEP calls these kernels as a step of a
 * model does (sums.h). All-reduce and reduce-scatter then add their sum to the FP32 numbers in the
 * receive buffer instead of replacing them. On a device of compute capability 9.0 or above, a
 * kernel may start before the previous one has ended. */
typedef enum {
    EXCHANGE_NCCL,
    EXCHANGE_ONE_SHOT, /* only for all-reduce. The sum replaces what the receive buffer holds */
    EXCHANGE_STEP,     /* all-reduce, all-gather and reduce-scatter of FP32 numbers */
    EXCHANGE_PATHS,
} exchange_path;

/* The numbers that fill() writes. Both are functions of a seed and of the place in the buffer. */
typedef enum {
    EXCHANGE_INTEGERS,  /* integers so small that sums over all ranks are exact in BF16, in any
                           order */
    EXCHANGE_FRACTIONS, /* fractions of different magnitudes, so that sums are rounded */
} exchange_numbers;

typedef struct {
    exchange_operation operation;
    exchange_path path;
    bool bf16;     /* false = FP32 */
    int64_t bytes; /* size of the larger one of the two buffers, as nccl-tests count: a multiple of
                      16 * ranks */
    int graph;     /* operations in one CUDA graph; 0 = launched one by one */
} exchange_call;

typedef struct {
    char device[128];       /* name of the GPU */
    char pci[16];           /* its PCI address */
    int nccl;               /* version of NCCL, such as 22803 */
    int64_t one_shot_bytes; /* longest message over peer memory; 0 = this group cannot use the paths
                               EXCHANGE_ONE_SHOT and EXCHANGE_STEP */
    char why_not[300];      /* why it cannot; "" if it can */
} exchange_info;

typedef struct exchange exchange;

/* Errors of all functions: SNAP_E_DEVICE, SNAP_E_NOMEM, and the failure of the group. prepare()
 * also returns SNAP_E_SHAPE, for more bytes than the buffers hold, and for a call that
 * exchange_allows() excludes. */
typedef struct {
    void (*close)(exchange *x);
    void (*describe)(const exchange *x, exchange_info *out);
    snap_status (*prepare)(exchange *x, const exchange_call *call, snap_err *err);
    /* Writes the send buffer. Fills the receive buffer with NaN, which no operation returns, or
     * with zeros if the operation adds to the receive buffer (exchange_additions()). */
    snap_status (*fill)(exchange *x, exchange_numbers kind, uint64_t seed, snap_err *err);
    /* Launches the operation, or the graph if there is one, once, and waits for its end. */
    snap_status (*run)(exchange *x, snap_err *err);
    /* ns [samples]: the time of one operation on this rank. With a graph, it is that of the graph
     * divided by the number of its operations. The operations follow each other without a pause. */
    snap_status (*time)(exchange *x, int samples, double *ns, snap_err *err);
    /* *wrong = how many numbers of the receive buffer are not those that fill() with the seeds
     * [size] of the ranks and then one run() must give. The expected sums are computed in FP32 in
     * the order of the ranks, and rounded once. If the operation adds to the receive buffer, the
     * sum is added exchange_additions() times, in FP32. */
    snap_status (*check)(exchange *x, exchange_numbers kind, const uint64_t *seeds, int64_t *wrong,
                         snap_err *err);
    /* A hash of the bits in the receive buffer. */
    snap_status (*digest)(exchange *x, uint64_t *out, snap_err *err);
} exchange_ops;

struct exchange {
    const exchange_ops *ops;
};

typedef struct {
    ranks *group;       /* borrowed, and must outlive the exchange */
    int device;         /* number of the GPU; -1 = local_rank, or 0 if only one GPU is visible */
    int local_rank;     /* number of the rank on its machine; -1 = unknown, which counts as 0 */
    int64_t most_bytes; /* size of each buffer in bytes */
} exchange_options;

/**
 * exchange_cuda_open - open the GPU of this rank and connect it with those of the others
 *
 * All ranks call it. SNAP_E_UNSUPPORTED: this build has no CUDA, or there is no NCCL or no GPU.
 * SNAP_E_USAGE: there is no GPU of this number. SNAP_E_IO: the file in SNAPMLA_NCCL cannot be read.
 * Also the errors of the functions above. An error ends the group.
 */
snap_status exchange_cuda_open(exchange **out, const exchange_options *opt,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Whether a group of @size ranks supports this call. @most: one_shot_bytes of the group. On
 * EXCHANGE_STEP, it limits the bytes that a rank sends to each other rank: all bytes in an
 * all-reduce, and else those of one part. */
static inline bool exchange_allows(const exchange_call *c, int size, int64_t most) {
    bool reduce = c->operation == EXCHANGE_ALL_REDUCE;
    if (c->path == EXCHANGE_NCCL)
        return true;
    if (c->path == EXCHANGE_ONE_SHOT)
        return reduce && c->bytes <= most;
    return !c->bf16 && c->operation != EXCHANGE_ALL_TO_ALL &&
           (reduce ? c->bytes : c->bytes / size) <= most;
}

/* How often one run() adds the sum over the ranks to the receive buffer: once for each operation
 * in the graph. 0 = the operation replaces the numbers in the receive buffer. */
static inline int exchange_additions(const exchange_call *c) {
    bool sum = c->operation == EXCHANGE_ALL_REDUCE || c->operation == EXCHANGE_REDUCE_SCATTER;
    if (c->path != EXCHANGE_STEP || !sum)
        return 0;
    return c->graph ? c->graph : 1;
}

/* The largest integer that EXCHANGE_INTEGERS uses for @size ranks. A sum over the ranks is
 * within -256..256, and BF16 represents all integers of this range exactly. */
static inline int exchange_largest(int size) {
    return size <= 32 ? 8 : 256 / size;
}

#endif
