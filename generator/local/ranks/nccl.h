/* nccl.h - NVIDIA's NCCL, which moves numbers between the GPUs of a group. It is loaded at run
 * time, so the build needs no NCCL, and a machine without it can do everything else.
 *
 * The library is libnccl.so.2, or the file that the environment variable SNAPMLA_NCCL names.
 * Versions 2.13 to 2.x are accepted. nccl.c declares NCCL's functions itself, as NCCL's public
 * header does.
 *
 * All pointers to numbers are device memory, and all work is enqueued on a CUDA stream (void *
 * here, so that C files need no header of CUDA). Counts are numbers of elements. Except for
 * nccl_open(), the only error is SNAP_E_DEVICE, with the message of NCCL. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_NCCL_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_NCCL_H

#include <stddef.h>

#include "base/err.h"

typedef struct nccl nccl;           /* the library */
typedef struct nccl_comm nccl_comm; /* one rank of a communicator (ncclComm_t) */

/* The identifier of a communicator (ncclUniqueId). Rank 0 makes it, and all ranks join with it. */
typedef struct {
    char bytes[128];
} nccl_id;

/* The values are those of ncclDataType_t. */
typedef enum { NCCL_FP32 = 7, NCCL_BF16 = 9 } nccl_type;

/**
 * nccl_open - load the library
 *
 * @out: the caller releases it with nccl_close(); NULL on failure
 *
 * SNAP_E_UNSUPPORTED: there is no library, a function is missing in it, or its version is not
 * accepted; the message says which. SNAP_E_IO: the file in SNAPMLA_NCCL cannot be read.
 * SNAP_E_NOMEM.
 */
snap_status nccl_open(nccl **out, snap_err *err) SNAP_CHECK_RESULT;

/* The library stays loaded, because unloading does not undo what it started in the driver. NULL is
 * allowed. */
void nccl_close(nccl *n);

/* The version of the library as a number: 2.28.3 is 22803. */
int nccl_version(const nccl *n);

snap_status nccl_new_id(const nccl *n, nccl_id *out, snap_err *err) SNAP_CHECK_RESULT;

/* Waits until all ranks have called it. The CUDA device that is current then becomes the rank's. */
snap_status nccl_join(const nccl *n, nccl_comm **out, const nccl_id *id, int rank, int size,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Waits for the enqueued work, and releases the communicator. NULL is allowed. */
void nccl_leave(const nccl *n, nccl_comm *c);

/* Ends enqueued work that waits for another rank, and releases the communicator. NULL is allowed.
 */
void nccl_abort(const nccl *n, nccl_comm *c);

/* Returns an error of work that was enqueued earlier, such as a lost connection. */
snap_status nccl_check(const nccl *n, nccl_comm *c, snap_err *err) SNAP_CHECK_RESULT;

/* recv [count] = the sum of send [count] over the ranks. */
snap_status nccl_all_reduce(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, void *stream,
                            snap_err *err) SNAP_CHECK_RESULT;

/* recv [size][count] = send [count] of each rank. */
snap_status nccl_all_gather(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, void *stream,
                            snap_err *err) SNAP_CHECK_RESULT;

/* recv [count] = the sum over the ranks of part [rank] of send [size][count]. */
snap_status nccl_reduce_scatter(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                                void *recv, size_t count, void *stream,
                                snap_err *err) SNAP_CHECK_RESULT;

/* recv [size][count]: its part r comes from rank r, where it is the part of send [size][count] that
 * has the number of this rank. */
snap_status nccl_all_to_all(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, int size, void *stream,
                            snap_err *err) SNAP_CHECK_RESULT;

#endif
