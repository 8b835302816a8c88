/* one_shot.h - exchanges of short messages between the GPUs of one machine, each in one kernel:
 * sums over the ranks (all-reduce), all-gather, and reduce-scatter. A sum can also normalise the
 * rows to which it is added.
 *
 * Each rank has an inbox in its memory. It writes its numbers into the inbox of every other rank
 * (peer memory, over NVLink or PCIe), waits until those of all ranks have arrived in its own inbox,
 * and adds them up. An all-gather stores them side by side instead. In a reduce-scatter, a rank
 * writes to each inbox the numbers that the owner of the inbox adds up. A message crosses the link
 * once, so the time is about one launch and one trip over the link. NCCL's ranks synchronise more
 * often. Between two H200, a sum of 16 KB takes 2.8 us in a CUDA graph, and 6.7 us through NCCL
 * (docs/measuring.md).
 *
 * There is no flag for a whole message. The inbox consists of words of 64 bits. Each has 32 bits of
 * the numbers and a 32-bit tag, which is the number of the exchange. If the tag of a word has
 * arrived, its numbers have, too, because 64 bits are written at once. The tags double the bytes
 * that are sent, but no memory fence is needed.
 *
 * An inbox has two halves: one for even exchange numbers, one for odd. A rank that writes for
 * exchange e + 2 has received numbers of exchange e + 1 from every rank, so every rank has read
 * those of exchange e. The number of the exchange is counted in device memory, so the kernel can be
 * part of a CUDA graph. Tags repeat after 2^32 - 2 exchanges. A tag would be mistaken only in a
 * word that was last written exactly so many exchanges ago, or a multiple of it.
 *
 * The numbers are added in FP32 in the order of the ranks, and rounded once. So every rank gets the
 * same bits. */
#ifndef SNAPMLA_KERNELS_CUDA_EXCHANGE_ONE_SHOT_H
#define SNAPMLA_KERNELS_CUDA_EXCHANGE_ONE_SHOT_H

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

enum {
    ONE_SHOT_RANKS = 8,       /* at most */
    ONE_SHOT_BYTES = 2 << 20, /* longest message, in bytes */
    ONE_SHOT_STATE = 2        /* words of a rank's state: last exchange, blocks that ended */
};

struct one_shot_group {
    void *inbox[ONE_SHOT_RANKS]; /* [size] of all ranks, as this process maps them; each has
                                    one_shot_inbox_bytes(size) bytes, aligned to 16 bytes */
    uint32_t *state;             /* [ONE_SHOT_STATE] in this rank's device memory */
    const uint32_t *stop;        /* a word that the device can read while the host writes it; when
                                    it is nonzero, waiting kernels end, and their results mean
                                    nothing */
    int most_blocks;             /* the largest number of blocks of one kernel. The device must be
                                    able to run the blocks of all ranks that share it, and of all
                                    launches that overlap, at the same time */
    int rank, size;
};

/* The number of blocks for a rank that does not share its device: one thread for each 16 bytes of
 * the longest message if the device can run as many, and otherwise as many as it can run. */
cudaError_t one_shot_most_blocks(int device, int *out);

size_t one_shot_inbox_bytes(int size);

/* How many bytes one call may exchange. */
static inline bool one_shot_allows(size_t bytes) {
    return bytes > 0 && bytes % 16 == 0 && bytes <= ONE_SHOT_BYTES;
}

/**
 * one_shot_all_reduce - enqueue out [n] = the sum of in [n] over the ranks
 *
 * @in, @out: @bytes bytes of BF16 (@bf16) or FP32 numbers, aligned to 16 bytes; may be equal
 * @bytes:    a multiple of 16, at most ONE_SHOT_BYTES; equal on all ranks
 *
 * Before the first call of any rank, the inboxes and states of all ranks must be zero. All ranks
 * make the same calls in the same order, each on one stream. The kernel waits for the other ranks.
 * The function returns cudaErrorInvalidValue if a size is not allowed.
 */
cudaError_t one_shot_all_reduce(const one_shot_group &g, const void *in, void *out, size_t bytes,
                                bool bf16, cudaStream_t stream);

/**
 * one_shot_add - enqueue x [n] += factor * (the sum of in [n] over the ranks)
 *
 * Like one_shot_all_reduce() with FP32 numbers, but adds the sum to numbers of this rank.
 *
 * @overlap: the kernel may start before the previous kernel on the stream has ended (programmatic
 *           dependent launch). It waits for the end of that kernel before it reads @in. Only for
 *           devices of compute capability 9.0 and above.
 */
cudaError_t one_shot_add(const one_shot_group &g, const float *in, float *x, float factor,
                         size_t bytes, bool overlap, cudaStream_t stream);

/* A norm (RMS) of rows: normed [rows][width] = BF16 of x * factor * weight / sqrt(mean of x^2 +
 * eps). */
struct one_shot_norm {
    const float *weight; /* [width], which no earlier kernel on the stream writes */
    float eps, factor;
    void *normed;
    int rows, width;
};

/* Whether one_shot_add_norm() takes rows of these sizes. */
bool one_shot_allows_norm(const one_shot_group &g, const one_shot_norm &norm);

/**
 * one_shot_add_norm - enqueue one_shot_add() of norm.rows * norm.width numbers, and the norm of x
 *
 * One block exchanges and normalises a whole row. One launch takes less time than two, but if there
 * are few rows, few SMs exchange numbers.
 *
 * Otherwise like one_shot_add(). The sums have the same bits.
 */
cudaError_t one_shot_add_norm(const one_shot_group &g, const float *in, float *x, float factor,
                              const one_shot_norm &norm, bool overlap, cudaStream_t stream);

/**
 * one_shot_gather - enqueue an all-gather: part r of @all = @mine of rank r
 *
 * @mine:   @bytes bytes, aligned to 16 bytes; must not overlap @all
 * @all:    the parts of the ranks, which begin @stride bytes apart (a multiple of 16)
 *
 * Otherwise like one_shot_add().
 */
cudaError_t one_shot_gather(const one_shot_group &g, const void *mine, void *all, size_t bytes,
                            size_t stride, bool overlap, cudaStream_t stream);

/**
 * one_shot_scatter_add - enqueue a reduce-scatter: x += the sum over the ranks of their parts with
 * the number of this rank
 *
 * @parts: FP32; one part of @bytes bytes for each rank, @stride bytes apart (a multiple of 16)
 * @x:     @bytes bytes of FP32 numbers; must not overlap @parts
 *
 * Otherwise like one_shot_add().
 */
cudaError_t one_shot_scatter_add(const one_shot_group &g, const float *parts, float *x,
                                 size_t bytes, size_t stride, bool overlap, cudaStream_t stream);

#endif
