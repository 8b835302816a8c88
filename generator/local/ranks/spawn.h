/* spawn.h - starts the further ranks of a split model as processes of this program, and ends them.
 *
 * Such a process has one end of a socket as its standard input. Its standard output is /dev/null.
 * It has the environment and the standard error of this process. It is killed when the thread that
 * has started it ends, so that none is left behind. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_SPAWN_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_SPAWN_H

#include <sys/types.h>

#include "base/err.h"

/**
 * spawn_rank - run this program's file again
 *
 * @argv: its name and arguments, NULL-terminated
 * @fd:   this side of the socket; the caller closes it
 * @pid:  the caller must call spawn_end()
 *
 * SNAP_E_IO, SNAP_E_NOMEM. If the file cannot be run, the socket is closed at once.
 */
snap_status spawn_rank(int rank, char *const *argv, int *fd, pid_t *pid,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Waits until the processes @pid [n] have ended (0 = none), and kills those that still run after
 * @grace_s seconds. */
void spawn_end(pid_t *pid, int n, double grace_s);

#endif
