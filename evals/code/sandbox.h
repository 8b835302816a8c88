/* sandbox.h - one Python program in a cage.
 *
 * The program runs under /usr/bin/python3 in bubblewrap as an unprivileged user (65534, also where
 * we are root), in user, process, network, IPC and host name spaces of its own, without
 * capabilities, without our environment, and behind a system call filter (seccomp.h). It sees
 * /usr/bin and /usr/lib read-only, a /proc of its own processes, its own source in /box and a /tmp in
 * memory with a ceiling; no other file of the machine, no network, no process of ours. It can
 * start threads but no process. When it ends, or its time does, or we do, nothing of it
 * remains: all of it dies with the first process of its space.
 *
 * A machine where this can't be had is told so (SNAP_E_ENV): there is no way to run without it. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_H
#define SNAPMLA_EVALS_CODE_SANDBOX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "evals/pattern.h"

typedef struct sandbox sandbox;

/* Where the two programs are; NULL: "/usr/bin/bwrap", "/usr/bin/python3". Borrowed. */
typedef struct {
    const char *bwrap, *python;
} sandbox_options;

/**
 * sandbox_open - make sure that programs can be isolated here
 *
 * Runs a program that looks for what it must not find. SNAP_E_ENV saying what is missing and what to
 * do about it. The sandbox may be used by several threads at once.
 */
snap_status sandbox_open(sandbox **out, const sandbox_options *options,
                         snap_err *err) SNAP_CHECK_RESULT;
void sandbox_close(sandbox *s); /* NULL is allowed */

typedef struct {
    double seconds; /* by the clock; time in which this process itself was stopped does not count */
    size_t memory;  /* bytes of address space; all of it, since there is one process */
    size_t stack;   /* bytes of the main thread's, and the default of the others' */
    size_t output;  /* bytes of standard output that are kept; what goes beyond is dropped */
} sandbox_limits;

/* Called when something has come through the channel; false ends the program. May take complete parts
 * away from the front of @channel. */
typedef bool (*sandbox_watch)(void *ctx, buf *channel);

/* Texts are borrowed. */
typedef struct {
    span driver;  /* Python, run as the main program: /box/driver.py */
    span program; /* what it is to run: /box/program.py */
    span input;   /* standard input */
    span request; /* readable from file descriptor 4 */
    sandbox_limits limits;
    sandbox_watch watch; /* may be NULL */
    void *watch_ctx;
    const volatile sig_atomic_t *cancel; /* set from a signal handler to stop; may be NULL */
} sandbox_job;

typedef enum {
    SANDBOX_EXITED,  /* by itself; `status` is the exit code, 128 + signal if one killed it */
    SANDBOX_TIMEOUT, /* its time was over */
    SANDBOX_STOPPED, /* by the watch */
} sandbox_end;

typedef struct {
    sandbox_end end;
    int status;
    buf output;      /* standard output */
    bool output_cut; /* there was more */
    buf errors;      /* the end of standard error */
    buf channel;     /* what the driver wrote to file descriptor 3 */
    double seconds;
} sandbox_result;

/**
 * sandbox_run - run a program to its end
 *
 * @out: release with sandbox_result_release(), also after a failure
 *
 * Whatever the program does is a result. SNAP_E_ENV where it could not be started, SNAP_E_IO,
 * SNAP_E_NOMEM, SNAP_E_CANCELLED.
 */
snap_status sandbox_run(sandbox *s, const sandbox_job *job, sandbox_result *out,
                        snap_err *err) SNAP_CHECK_RESULT;
void sandbox_result_release(sandbox_result *r);

#endif
