/* sandbox.h - runs one Python program in isolation.
 *
 * The program runs under Python in bubblewrap, as the unprivileged user 65534 of its name space. A
 * caller that is root drops root first. The program has user, process, mount, network, IPC and host
 * name spaces of its own, no capabilities, a fixed environment instead of the caller's, and a
 * system call filter (seccomp.h). It can read system programs and libraries (such as /usr/bin and
 * /usr/lib; sandbox_start.c has the list), a /proc with its own processes, a minimal /dev and its
 * own source in /box. It can write to a /tmp in memory, which is limited to 64 MiB and, where
 * sandbox_limits_files() is true, to 4096 inodes. It has no access to other files of the machine,
 * to the network or to other processes. It can start threads but no processes. When it ends, when
 * its time is up, or when the caller ends, the first process of its name space ends, and with it
 * everything the program started.
 *
 * If programs cannot be isolated on a machine, sandbox_open() fails. There is no way to run a
 * program without the sandbox. */
#ifndef SNAPMLA_EVALS_CODE_SANDBOX_H
#define SNAPMLA_EVALS_CODE_SANDBOX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "evals/code/packages.h"
#include "evals/pattern.h"

typedef struct sandbox sandbox;

/* Paths of bubblewrap and Python. NULL means "/usr/bin/bwrap" and "/usr/bin/python3". Borrowed. */
typedef struct {
    const char *bwrap, *python;
} sandbox_options;

/**
 * sandbox_open - create a sandbox and check that it isolates programs on this machine
 *
 * Runs a test program that tries to reach what it must not reach. SNAP_E_ENV if something is
 * missing or can be reached; the message says what, and what to do. SNAP_E_UNSUPPORTED if
 * libseccomp does not support the machine; SNAP_E_NOMEM; SNAP_E_IO. Several threads may use one
 * sandbox.
 */
snap_status sandbox_open(sandbox **out, const sandbox_options *options,
                         snap_err *err) SNAP_CHECK_RESULT;
void sandbox_close(sandbox *s); /* NULL is allowed */

typedef struct {
    double seconds; /* wall-clock limit; a time of more than 1.1 s in which the calling process was
                       stopped does not count */
    size_t memory;  /* address-space limit in bytes for the whole program: it cannot start another
                       process */
    size_t stack;   /* stack of the main thread in bytes; also the default for other threads */
    size_t output;  /* bytes of standard output to keep; the rest is discarded */
} sandbox_limits;

/* Called when data has arrived through the channel (the program's file descriptor 3). May remove
 * complete parts from the front of @channel. Returning false ends the program. */
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
    const volatile sig_atomic_t *cancel; /* the program is ended when this becomes nonzero, for
                                            example in a signal handler; may be NULL */
} sandbox_job;

typedef enum {
    SANDBOX_EXITED,  /* ended before its time limit; `status` is the exit code, or 128 + signal if a
                        signal killed it */
    SANDBOX_TIMEOUT, /* the time limit was reached */
    SANDBOX_STOPPED, /* the watch function returned false, or the channel's buffer was full */
} sandbox_end;

typedef struct {
    sandbox_end end;
    int status;
    buf output;      /* standard output */
    bool output_cut; /* there was more output than the limit */
    buf errors;      /* the end of standard error */
    buf channel;     /* what was written to file descriptor 3 and not removed by the watch
                        function */
    double seconds;
} sandbox_result;

/**
 * sandbox_run - run a program to its end
 *
 * @out: release with sandbox_result_release(), also after a failure
 *
 * Whatever the program does is a result, not an error. SNAP_E_IO or SNAP_E_NOMEM if no process
 * could be started; SNAP_E_ENV if the kernel cannot supervise the process; SNAP_E_NOMEM if there is
 * no memory for the program's output; SNAP_E_CANCELLED if *job->cancel is set.
 */
snap_status sandbox_run(sandbox *s, const sandbox_job *job, sandbox_result *out,
                        snap_err *err) SNAP_CHECK_RESULT;
void sandbox_result_release(sandbox_result *r);

/* True if the /tmp of a program has a limit on its number of inodes. It has none if sandbox_open()
 * could isolate programs only with bubblewrap's own /tmp, for example because a security module
 * allows user name spaces to bubblewrap only. */
bool sandbox_limits_files(const sandbox *s);

/* The offered packages that are not installed for the sandbox's Python. */
package_set sandbox_missing(const sandbox *s);

#endif
