/* place.h - which rank of a group of processes this process is, as its launcher has set it.
 *
 * A launcher (mpirun, srun, torchrun, or this program with ranks_launch()) starts one process for
 * each GPU and gives each one its place in environment variables. The first pair of this list that
 * is set counts:
 *
 *   RANK, WORLD_SIZE, LOCAL_RANK               torchrun and this program
 *   OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK   Open MPI
 *   PMI_RANK, PMI_SIZE, MPI_LOCALRANKID        MPICH and Intel MPI
 *   SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID  srun. They count only if SLURM_STEP_ID is set as
 *                                              well, because a batch script has them, too
 *
 * MASTER_ADDR and MASTER_PORT say where rank 0 waits for the others. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_PLACE_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_PLACE_H

#include "base/err.h"

enum { RANKS_MOST = 256, RANKS_PORT = 29500 /* without MASTER_PORT, as torchrun */ };

/* The variables that ranks_launch() sets in addition to those above. */
#define RANKS_LISTENER "SNAPMLA_RANK_LISTENER" /* for rank 0: number of the listening socket */
#define RANKS_REPORT   "SNAPMLA_RANK_REPORT"   /* number of the descriptor for launch_report() */

typedef struct {
    int rank, size;      /* 0 and 0: no launcher has started this process */
    int local_rank;      /* number of the process on its machine; -1 = unknown */
    const char *address; /* of rank 0; borrowed from the environment */
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

#endif
