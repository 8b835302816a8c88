/* place.h - which rank of a group of processes this process is, as its launcher has set it.
 *
 * A launcher (mpirun, srun, torchrun, or this program with launch_ranks()) starts one process for
 * each GPU and passes the place of each in environment variables: number of the rank, number of
 * ranks, and number of the rank on its machine. Of the following lines, the first one counts whose
 * first or second variable is set, unless the second one is 1: a single process is no group, and
 * may be a shell in which the user starts the program.
 *
 *   RANK, WORLD_SIZE, LOCAL_RANK                torchrun and this program
 *   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK    Open MPI
 *   PMI_RANK, PMI_SIZE, MPI_LOCALRANKID         MPICH and Intel MPI, if the third one is set
 *   SLURM_PROCID, _STEP_NUM_TASKS, _LOCALID     srun, if the second one is set. A batch script has
 *                                               only the other two. SLURM_NTASKS does not count:
 *                                               it may be the number of tasks of the whole job
 *   PMI_RANK, PMI_SIZE                          other launchers with PMI. 'srun --mpi=pmi2' sets
 *                                               these two as well
 *
 * MASTER_ADDR and MASTER_PORT are the host and the port at which rank 0 listens. If torchrun
 * listens at this port itself, it sets TORCHELASTIC_USE_AGENT_STORE=True, and rank 0 takes the next
 * one. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_PLACE_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_PLACE_H

#include <stdbool.h>

#include "base/err.h"

enum { RANKS_MOST = 256 /* in a group */, RANKS_PORT = 29500 /* default of MASTER_PORT */ };

/* The variables that launch_ranks() sets in addition to those above. */
#define RANKS_LISTENER "SNAPMLA_RANK_LISTENER" /* for rank 0: descriptor of its socket */
#define RANKS_REPORT   "SNAPMLA_RANK_REPORT"   /* descriptor for launch_report() */

typedef struct {
    int rank, size;      /* 0 and 0: no launcher has started a group with this process */
    int local_rank;      /* number of the process on its machine; -1 = unknown */
    const char *address; /* host of rank 0, from the environment; NULL = no group */
    int port;
    int listener; /* the socket on which rank 0 already listens; -1 = it has to open one */
} rank_place;

/**
 * rank_place_read - read the place of this process from the environment
 *
 * Without a launcher, returns SNAP_OK, and out->size is 0. SNAP_E_USAGE if a variable is missing or
 * has an impossible value; the message names it.
 */
snap_status rank_place_read(rank_place *out, snap_err *err) SNAP_CHECK_RESULT;

/* How many processes a launcher has started together with this one; may be more than RANKS_MOST.
 * 0 = no launcher, or its variable for this number is not set or is no number above 1. */
int rank_place_size(void);

enum { RANKS_VISIBLE = 512 /* bytes of a list for CUDA_VISIBLE_DEVICES */ };

/**
 * rank_visible_devices - the list for CUDA_VISIBLE_DEVICES that makes one GPU device 0
 *
 * @out:    [RANKS_VISIBLE]
 * @before: the present value of the variable; NULL = not set, so all GPUs are visible
 * @device: number of the GPU among those that are visible now
 *
 * The other GPUs stay visible after it, because peer memory is mapped more reliably between GPUs
 * that a process sees. (CUDA ignores the numbers of GPUs that the machine does not have, if they
 * are at the end.) If @before makes only one GPU visible, the list is that GPU for every @device:
 * the launcher has already chosen it. Returns false if @before has no entry @device, or is too
 * long.
 */
bool rank_visible_devices(char *out, const char *before, int device);

/* Makes the GPU of this rank CUDA device 0 of this process. Call it before anything uses CUDA.
 * @devices [n]: the GPU of each rank of a machine; n = 0: rank i of a machine has GPU i.
 * SNAP_E_USAGE if there is no GPU for this rank. */
snap_status rank_place_choose_device(const rank_place *p, const int *devices, int n,
                                     snap_err *err) SNAP_CHECK_RESULT;

#endif
