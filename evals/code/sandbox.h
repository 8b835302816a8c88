/* sandbox.h - runs one Python program in isolation.
 *
 * The program runs under /usr/bin/python3 in bubblewrap, as an unprivileged user (65534, also if
 * the caller is root). It has user, process, network, IPC and host name spaces of its own, no
 * capabilities, a fixed environment instead of the caller's, and a system call filter
 * (seccomp.h). It can read /usr/bin, /usr/lib, a /proc with its own processes and its own source
 * in /box. It can write to a /tmp in memory, which is limited to 64 MiB and 4096 files. (If a
 * security module allows user name spaces to bubblewrap only, the number of files is not
 * limited.) It has no access to other files, to the network or to other processes. It can start
 * threads but no processes. When it ends, when its time is up, or when the caller ends, the
 * first process of its name space ends, and with it everything the program started.
 *
 * If this is not possible on a machine, sandbox_open() fails with SNAP_E_ENV. There is no way to
 * run a program without the sandbox. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_H
#define SNAPMLA_EVALS_CODE_SANDBOX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "evals/pattern.h"

typedef struct sandbox sandbox;

/* Paths of the two programs; NULL: "/usr/bin/bwrap", "/usr/bin/python3". Borrowed. */
typedef struct {
    const char *bwrap, *python;
} sandbox_options;

/**
 * sandbox_open - check that programs can be isolated on this machine
 *
 * Runs a test program that tries to reach what it must not reach. SNAP_E_ENV says what is missing
 * and what to do. Several threads may use one sandbox.
 */
snap_status sandbox_open(sandbox **out, const sandbox_options *options,
                         snap_err *err) SNAP_CHECK_RESULT;
void sandbox_close(sandbox *s); /* NULL is allowed */

typedef struct {
    double seconds; /* wall-clock limit; time in which the calling process was stopped does not
                       count */
    size_t memory;  /* address-space limit in bytes for the whole program: it cannot start another
                       process */
    size_t stack;   /* stack of the main thread in bytes; also the default for other threads */
    size_t output;  /* bytes of standard output to keep; the rest is discarded */
} sandbox_limits;

/* Called when data has arrived through the channel. May remove complete parts from the front of
 * @channel. Returning false ends the program. */
typedef bool (*sandbox_watch)(void *ctx, buf *channel);

/* Spans are borrowed. */
typedef struct {
    span driver;  /* Python, run as the main program: /box/driver.py */
    span program; /* the program that the driver runs: /box/program.py */
    span input;   /* standard input */
    span request; /* the driver reads it from file descriptor 4 */
    sandbox_limits limits;
    sandbox_watch watch; /* may be NULL */
    void *watch_ctx;
    const volatile sig_atomic_t *cancel; /* a signal handler sets it to stop; may be NULL */
} sandbox_job;

typedef enum {
    SANDBOX_EXITED,  /* exited; `status` is the exit code, or 128 + signal if a signal killed it */
    SANDBOX_TIMEOUT, /* the time limit was reached */
    SANDBOX_STOPPED, /* the watch function returned false */
} sandbox_end;

typedef struct {
    sandbox_end end;
    int status;
    buf output;      /* standard output */
    bool output_cut; /* there was more output than the limit */
    buf errors;      /* the end of standard error */
    buf channel;     /* what the driver wrote to file descriptor 3 */
    double seconds;
} sandbox_result;

/**
 * sandbox_run - run a program to its end
 *
 * @out: release with sandbox_result_release(), also after a failure
 *
 * Whatever the program does is a result, not an error. SNAP_E_ENV if it could not be started,
 * SNAP_E_IO, SNAP_E_NOMEM, SNAP_E_CANCELLED.
 */
snap_status sandbox_run(sandbox *s, const sandbox_job *job, sandbox_result *out,
                        snap_err *err) SNAP_CHECK_RESULT;
void sandbox_result_release(sandbox_result *r);

/* True if the /tmp of a program has a limit on its number of files. It has none if this process may
 * not mount a file system in a user namespace of its own, as under a thread sanitizer. */
bool sandbox_limits_files(const sandbox *s);

#endif
