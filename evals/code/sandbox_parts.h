/* sandbox_parts.h - declarations that the files of the sandbox share. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H
#define SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H

#include <sys/types.h>

#include "base/arena.h"
#include "evals/code/sandbox.h"

/* File descriptors in the sandbox. The driver uses BOX_CHANNEL and BOX_REQUEST. bubblewrap reads
 * and closes those from BOX_DRIVER on. */
enum { BOX_CHANNEL = 3, BOX_REQUEST, BOX_DRIVER, BOX_PROGRAM, BOX_FILTER, BOX_FDS };

enum { kBoxArguments = 96, kBoxUser = 65534 };

struct sandbox {
    const char *bwrap, *python;
    bool own_scratch; /* /tmp is a file system of our own, with a limit on its files */
    buf filter;
    arena mem;
    const char *args[kBoxArguments]; /* arguments that are the same for all jobs; NULL-terminated */
    size_t n_args;
};

/* A running bubblewrap process and this side's ends of its pipes; -1 = closed. */
typedef struct {
    pid_t pid;
    int pidfd, output, errors, channel;
} box_process;

/* Fills s->args to suit the file system layout of this machine and s->own_scratch. */
snap_status box_arguments(sandbox *s, snap_err *err) SNAP_CHECK_RESULT;

/* Starts a job. */
snap_status box_start(sandbox *s, const sandbox_job *job, box_process *out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Kills the process if it is still running, waits for it and closes all descriptors. Returns its
 * wait status; -1 if unknown. */
int box_end(box_process *p);

#endif
