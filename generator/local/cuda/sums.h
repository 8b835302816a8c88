/* sums.h - the communicator (comm.h) of a model that is divided over several GPUs, one for each
 * rank of a group or of a part of it: sums over the ranks, and the all-gather and the
 * reduce-scatter of EP.
 *
 * Sums are FP32, like the residual stream to which they are added. A short sum goes through peer
 * memory in one kernel (kernels/cuda/exchange/one_shot.h), which also adds it to the residual
 * stream. A longer one goes through NCCL, and so do all sums if the ranks cannot map each other's
 * memory. Without NCCL, a long sum is divided into several short ones. Both paths can be recorded
 * in a CUDA graph. The one-shot kernel adds in the order of the ranks. NCCL may use another order,
 * but gives the same bits to all ranks.
 *
 * The all-gather and the reduce-scatter take the same paths by the bytes of one rank's part. The
 * numbers of a reduce-scatter are FP32, too. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_SUMS_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_SUMS_H

#include "generator/local/comm.h"
#include "generator/local/ranks/ranks.h"

/* The longest message of an all-gather or a reduce-scatter that the one-shot kernel takes, unless
 * one_shot_bytes says otherwise. */
enum { SUMS_ONE_SHOT = 2 << 20 };

/* The longest sum over @size ranks that the one-shot kernel computes, unless one_shot_bytes says
 * otherwise. Each rank reads the numbers of all others, so the more ranks there are, the shorter
 * are the sums from which on NCCL is faster (docs/measuring.md). The limit for four ranks was
 * measured with an older, slower version of the kernel. */
static inline int64_t sums_one_shot(int size) {
    return SUMS_ONE_SHOT / (size > 2 ? size - 1 : 1);
}

typedef struct {
    ranks *group;           /* borrowed, and must outlive the communicator */
    int first, step, size;  /* the ranks that exchange numbers: first, first + step, ..., as many
                               as size. A step of 0 counts as 1 */
    int device;             /* number of this rank's CUDA device */
    int64_t most_bytes;     /* bytes of the longest sum of the model, or of a rank's part of a
                               reduce-scatter: rows * hidden size * 4 */
    int64_t gather_bytes;   /* bytes of a rank's part of the longest all-gather; 0 = the model has
                               sums, and neither all-gathers nor reduce-scatters */
    int64_t one_shot_bytes; /* longest message that is not given to NCCL; -1 = SUMS_ONE_SHOT and
                               sums_one_shot(), 0 = NCCL does all exchanges */
} sums_options;

/* How sums of @bytes are computed. */
typedef enum { SUMS_BY_ONE_SHOT, SUMS_BY_NCCL, SUMS_BY_SEVERAL } sums_path;

/* @most: longest message of the one-shot kernel; 0 = this group cannot use it. @nccl: the group has
 * joined a communicator of NCCL. One of the two must be given. */
static inline sums_path sums_path_of(int64_t bytes, int64_t most, bool nccl) {
    if (bytes <= most)
        return SUMS_BY_ONE_SHOT;
    return nccl ? SUMS_BY_NCCL : SUMS_BY_SEVERAL;
}

/**
 * sums_cuda_open - connect the GPU of this rank with those of the others
 *
 * All ranks of the group call it with the same options, except for `first` and `device`. The caller
 * must be one of the ranks first, first + step, ... that it names. The device is current for the
 * calling thread afterwards. NCCL is loaded only if some exchange needs it.
 *
 * SNAP_E_UNSUPPORTED: this build has no CUDA, or NCCL is needed and missing. SNAP_E_IO: the file in
 * SNAPMLA_NCCL cannot be read. SNAP_E_DEVICE, SNAP_E_NOMEM, and the failure of the group. An error
 * ends the group. Close with sums_cuda_close().
 */
snap_status sums_cuda_open(comm **out, const sums_options *opt, snap_err *err) SNAP_CHECK_RESULT;

/* Closes the communicator. Waits for the other ranks, unless the group has failed. So call
 * ranks_fail() first after an error of this rank. Free the model that uses the communicator before
 * this call. NULL is allowed. */
void sums_cuda_close(comm *c);

/* The longest exchange in bytes that the one-shot kernel does: a sum or, if the communicator
 * gathers, a rank's part of an exchange. 0 = the kernel cannot be used, and *why_not is the reason
 * ("" if the options exclude it). */
int64_t sums_cuda_one_shot(const comm *c, const char **why_not);

/* Version of NCCL, such as 22803; 0 = it is not used. */
int sums_cuda_nccl(const comm *c);

#endif
