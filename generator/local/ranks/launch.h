/* launch.h - starts the ranks of one machine: this program again, once for each rank.
 *
 * The launcher opens the listening socket of rank 0 at a free port, so no port has to be guessed.
 * It starts the ranks with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR (127.0.0.1) and MASTER_PORT.
 * Rank 0 has the standard input and output of the launcher. The other ranks have /dev/null instead.
 * All ranks have the launcher's standard error. If the launcher ends, the ranks are killed.
 *
 * A rank that fails does not print its error. It sends it to the launcher with launch_report(),
 * which prints one message for the whole group. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_LAUNCH_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_LAUNCH_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

typedef struct {
    int size;
    double grace_s; /* after a rank has failed, or after *cancel, the ranks have this time to end by
                       themselves. Then they are killed */
    const volatile sig_atomic_t *cancel; /* when it becomes nonzero, the ranks get SIGTERM; or
                                            NULL */
} launch_options;

/**
 * launch_ranks - run a program once for each rank, and wait for all
 *
 * @path: path of the program; PATH is not searched
 * @argv: its name and arguments, NULL-terminated
 *
 * Returns SNAP_OK if all ranks have ended with exit code 0. Otherwise it returns one error for the
 * group. SNAP_E_CANCELLED after *cancel. Otherwise a rank that was ended by a signal
 * (SNAP_E_DEVICE) comes first, and then the report of the rank that ended first. SNAP_E_IO: a rank
 * could not be started, or ended without a report. SNAP_E_USAGE: not 1 to RANKS_MOST ranks.
 * SNAP_E_NET: no socket. SNAP_E_NOMEM.
 */
snap_status launch_ranks(const launch_options *o, const char *path, char *const *argv,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Whether launch_ranks() has started this process. */
bool launch_has_report(void);

/* In a rank that launch_ranks() has started: sends @err to the launcher and returns true. The rank
 * should then end without printing it. Returns false in every other process, or if sending
 * fails. */
bool launch_report(const snap_err *err);

#endif
