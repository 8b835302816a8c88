/* exchange_inside.h - the parts of an exchange on CUDA devices: its struct, the kernels that fill
 * and check buffers, and the memory of the peers. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_EXCHANGE_INSIDE_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_EXCHANGE_INSIDE_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/exchange/one_shot.h"

extern "C" {
#include "generator/local/cuda/exchange.h"
#include "generator/local/ranks/nccl.h"
}

namespace device {

/* The inboxes of the ranks of a part of a group, mapped into this process. */
struct exchange_peers {
    one_shot_group group; /* its rank i is the part's i-th rank */
    uint32_t *host_stop;  /* the host's address of group.stop */
    bool usable;
    char why_not[300];
};

struct cuda_exchange {
    exchange base;
    ranks *group;
    nccl *nccl;
    nccl_comm *comm;
    cudaDeviceProp properties;
    cudaStream_t stream;
    void *send, *recv; /* [most_bytes] */
    int64_t most_bytes;
    uint64_t *seeds;            /* [RANKS_MOST] on the device */
    uint64_t *word, *host_word; /* one result of a kernel, on the device and on the host */
    exchange_peers peers;
    exchange_call call;
    char what[64]; /* the operation, for messages */
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

/* The ranks first, first + step, ... of a group, as many as size. Each rank of the group is in one
 * such part. */
struct exchange_part {
    int first, step, size;
};

/* Joins the communicator of NCCL of a part of a group. All ranks of the group call it. The first
 * rank of the part makes its identifier. Joining has no time limit but that of the group:
 * on_stuck() ends a rank that waits here for ever. */
snap_status exchange_join(const nccl *library, nccl_comm **out, ranks *group, exchange_part part,
                          snap_err *err);

/* Ends work that waits for another rank. The exchange can then only be closed. */
void exchange_stop(cuda_exchange *x);

/**
 * exchange_peers_open - map the inboxes of a part of a group for the one-shot kernels
 *
 * All ranks of the group call it. If the ranks of a part are on several machines, are too many, or
 * cannot map each other's memory, p->usable is false on all ranks of the group, and p->why_not has
 * the reason. That is no error.
 */
snap_status exchange_peers_open(exchange_peers *p, ranks *group, exchange_part part,
                                cudaStream_t stream, snap_err *err);

/* If p->usable is true, it waits until all ranks have called it, unless the group has failed. */
void exchange_peers_close(exchange_peers *p, ranks *group);

/* What must be in the receive buffer of rank @rank. */
struct exchange_expected {
    exchange_operation operation;
    bool bf16, integers;
    int largest, rank, size;
    int additions;         /* how often the sum was added to 0; 0 = it was stored */
    const uint64_t *seeds; /* [size] on the device */
};

cudaError_t exchange_fill(void *to, size_t bytes, bool bf16, bool integers, int largest,
                          uint64_t seed, cudaStream_t stream);

/* Adds the count of wrong numbers to *wrong. */
cudaError_t exchange_compare(const void *got, size_t bytes, const exchange_expected &want,
                             uint64_t *wrong, cudaStream_t stream);

/* Adds a hash to *out that does not depend on the order of the threads. */
cudaError_t exchange_hash(const void *from, size_t bytes, uint64_t *out, cudaStream_t stream);

} // namespace device

#endif
