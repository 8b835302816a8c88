/* sandbox_parts.h - declarations that the files of the sandbox share. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H
#define SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H

#include <sys/types.h>

#include "base/arena.h"
#include "evals/code/sandbox.h"

/* File descriptors in the sandbox. The driver uses BOX_CHANNEL and BOX_REQUEST. bubblewrap reads
 * and closes BOX_DRIVER, BOX_PROGRAM and BOX_FILTER. BOX_FDS is the number of descriptors,
 * including the three standard ones. */
enum { BOX_CHANNEL = 3, BOX_REQUEST, BOX_DRIVER, BOX_PROGRAM, BOX_FILTER, BOX_FDS };

enum { kBoxArguments = 96, kBoxUser = 65534 };

struct sandbox {
    const char *bwrap, *python;
    bool own_scratch; /* /tmp is mounted by mount_scratch(), which limits its inodes; false: by
                         bubblewrap */
    package_set missing;
    buf filter;
    arena mem;
    const char *args[kBoxArguments]; /* [n_args] the start of the command line, which is the same
                                        for all jobs */
    size_t n_args;
};

/* A running bubblewrap process, its pidfd and this side's ends of its pipes; -1 = none. */
typedef struct {
    pid_t pid;
    int pidfd, output, errors, channel;
} box_process;

/* Fills s->args and s->n_args to suit the file system layout of this machine and s->own_scratch. */
snap_status box_arguments(sandbox *s, snap_err *err) SNAP_CHECK_RESULT;

/* Starts a job. */
snap_status box_start(sandbox *s, const sandbox_job *job, box_process *out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Kills bubblewrap and its process group. Killing only bubblewrap is not enough as long as its
 * child has not set its parent-death signal: that child would then wait for bubblewrap forever. */
void box_kill(const box_process *p);

/* Kills the process if it is still running, waits for it and closes all descriptors of @p. Returns
 * the wait status of the process; -1 if there was no process or its status is unknown. */
int box_end(box_process *p);

#endif
