/* sandbox_parts.h - what the files of the sandbox share. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H
#define SNAPMLA_EVALS_CODE_SANDBOX_PARTS_H

#include <sys/types.h>

#include "base/arena.h"
#include "evals/code/sandbox.h"

/* File descriptors in the sandbox. CHANNEL and REQUEST are the driver's, those from DRIVER on are read
 * by bubblewrap and closed. */
enum { BOX_CHANNEL = 3, BOX_REQUEST, BOX_DRIVER, BOX_PROGRAM, BOX_FILTER, BOX_FDS };

enum { kBoxArguments = 96, kBoxUser = 65534 };

struct sandbox {
    const char *bwrap, *python;
    buf filter;
    arena mem;
    const char *args[kBoxArguments]; /* what is the same for all jobs; NULL behind */
    size_t n_args;
};

/* A started bubblewrap and our ends of its pipes; -1 where closed. */
typedef struct {
    pid_t pid;
    int pidfd, output, errors, channel;
} box_process;

/* Fills s->args from what this machine's file system looks like. */
snap_status box_arguments(sandbox *s, snap_err *err) SNAP_CHECK_RESULT;

/* Starts a job. */
snap_status box_start(sandbox *s, const sandbox_job *job, box_process *out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Ends it if it lives, waits for it, closes all. Returns its wait status; -1 if not known. */
int box_end(box_process *p);

#endif
