/* rank_process.h - what commands on several GPUs share: starting the ranks of one machine, and the
 * end of a rank that has failed. */
#ifndef SNAPMLA_HARNESS_CMD_RANK_PROCESS_H
#define SNAPMLA_HARNESS_CMD_RANK_PROCESS_H

#include "base/buf.h"
#include "base/err.h"
#include "generator/local/ranks/ranks.h"

enum { RANK_DEVICES = 64 /* most GPUs that --devices may list */ };

/* The value of --devices: numbers of GPUs, one for each rank of this machine. */
typedef struct {
    int of[RANK_DEVICES];
    int n; /* 0 = not given */
} rank_devices;

/* Reads the value. @list: NULL = not given. SNAP_E_USAGE if it is not a list of GPUs. */
snap_status rank_devices_read(rank_devices *out, const char *list, snap_err *err) SNAP_CHECK_RESULT;

/* Starts one rank for each device, with the arguments of this process, and waits for all of them.
 * SNAP_E_UNSUPPORTED without CUDA, and the errors of launch_ranks(). */
snap_status rank_processes_run(int size, snap_err *err) SNAP_CHECK_RESULT;

/* Adds the lines for this program to the facts that ranks_join() compares. */
snap_status rank_program_facts(buf *facts, snap_err *err) SNAP_CHECK_RESULT;

/* How a rank joins its group, whether this program or another launcher has started it. If the main
 * thread does not return after a failure, for example because it waits for the GPU for ever, the
 * group's thread ends the process. */
ranks_options rank_join_options(void);

/* Ends this rank, unless its error still has to be printed. If this program has started the ranks,
 * the launcher prints the message of the group. Otherwise each rank that finds a failure of the
 * group prints it at once, and a rank that receives it from rank 0 does not. */
void rank_leave_message(const snap_err *err);

/* The argument with which this program is another rank of a split model (generator/local/split.h).
 * It is not for users. */
#define RANK_FOLLOW "--follow-rank-0"

/* Sets how this program starts the other ranks of a split model. Called by main(). */
void rank_prepare_split(void);

/* Runs another rank of a split model, and ends the process. Rank 0 prints its errors. */
_Noreturn void rank_follow(void);

#endif
