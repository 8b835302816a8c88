/* launch.h - starts the ranks of one machine: this program again, once for each rank.
 *
 * The launcher opens the socket on which rank 0 will listen, so no port has to be guessed, and
 * starts the ranks with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR (127.0.0.1) and MASTER_PORT.
 * Rank 0 has the standard input and output of the launcher. The other ranks have /dev/null, and all
 * have the launcher's standard error. The ranks end if the launcher does.
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
    double grace_s; /* after a rank has failed, the others have this time to end by themselves.
                       Then they are killed */
    const volatile sig_atomic_t *cancel; /* when it becomes nonzero, the ranks get SIGTERM; or
                                            NULL */
} launch_options;

/**
 * launch_ranks - run a program once for each rank, and wait for all
 *
 * @path: of the program
 * @argv: its arguments with its name, NULL-terminated
 *
 * Returns SNAP_OK if all ranks have ended with exit code 0. Otherwise the error of the group: a
 * rank that was ended by a signal comes first, then the report of the rank that ended first.
 * SNAP_E_IO: a rank could not be started. SNAP_E_NOMEM.
 */
snap_status launch_ranks(const launch_options *o, const char *path, char *const *argv,
                         snap_err *err) SNAP_CHECK_RESULT;

/* In a rank that launch_ranks() has started: hands @err to the launcher and returns true. The rank
 * should then end without printing it. False in every other process. */
bool launch_report(const snap_err *err);

#endif
