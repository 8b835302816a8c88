/* err.h - errors as values: a status code, and a message that says what failed and, where that
 * helps, what to do.
 *
 * Most functions that can fail return a snap_status and take a snap_err, which the caller owns and
 * which may be NULL. The first error wins: setting an error that is already set changes nothing. So
 * the message nearest to the cause survives while the callers return. Apart from tests, only
 * harness/ prints these errors and turns them into an exit code. */
#ifndef SNAPMLA_BASE_ERR_H
#define SNAPMLA_BASE_ERR_H

#define SNAP_CHECK_RESULT      __attribute__((warn_unused_result))
#define SNAP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

typedef enum {
    SNAP_OK = 0,
    SNAP_E_USAGE,       /* a flag or a configuration is wrong                      exit 2 */
    SNAP_E_INPUT,       /* a file, a response or other data is malformed           exit 3 */
    SNAP_E_IO,          /* the operating system refused an operation               exit 3 */
    SNAP_E_NET,         /* a network transfer failed for good                      exit 3 */
    SNAP_E_DEVICE,      /* a compute device failed or is absent                    exit 3 */
    SNAP_E_NOMEM,       /* memory, or a limit on its use, is exhausted             exit 3 */
    SNAP_E_SHAPE,       /* an argument violates a function's contract (as in mla.h) exit 3 */
    SNAP_E_UNSUPPORTED, /* this build, machine or version cannot do it             exit 3 */
    SNAP_E_CANCELLED,   /* stopped by a signal                                     exit 3 */
    SNAP_E_WRONG,       /* a result failed its correctness check                   exit 7 */
    SNAP_E_ENV,         /* the environment, e.g. device or sandbox, does not allow it exit 6 */
    SNAP_E_SLOWER,      /* gate: something became slower                            exit 1 */
    SNAP_E_OPEN,        /* gate: the measurements are inconclusive or missing       exit 4 */
    SNAP_E_WORSE,       /* gate: quality or numerical error became worse            exit 5 */
} snap_status;

typedef struct {
    snap_status code;
    char text[600]; /* one line that begins in lower case, without a full stop; cut if it is longer.
                       It may quote text from outside, so err_set() and err_prefix() escape what is
                       not printable (text_show()) */
} snap_err;

/**
 * err_set - record an error unless one is recorded already
 *
 * @err: may be NULL
 *
 * Returns @code, so a caller can write `return err_set(err, SNAP_E_SHAPE, "...");`.
 */
snap_status err_set(snap_err *err, snap_status code, const char *fmt, ...) SNAP_PRINTF(3, 4);

/* Like err_set() for a failed system call: the code is SNAP_E_NOMEM if errno is ENOMEM, otherwise
 * SNAP_E_IO, and ": <strerror(errno)>" follows the message. */
snap_status err_set_errno(snap_err *err, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* Puts "<prefix>: " before a recorded message, for example to name the file. The end of the message
 * is cut if it no longer fits. Does nothing if no error is recorded. */
void err_prefix(snap_err *err, const char *fmt, ...) SNAP_PRINTF(2, 3);

/* The program's exit code for a status (the table in docs/README.md). */
int err_exit_code(snap_status code);

/* Runs a call that returns a snap_status. On failure, jumps to the function's label `cleanup` with
 * the status in the variable `st`. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st != SNAP_OK)                                                                         \
            goto cleanup;                                                                          \
    } while (0)

/* Prints the message and aborts the program. For states that no input can cause. */
#define SNAP_BUG(msg) err_bug(__FILE__, __LINE__, msg)
_Noreturn void err_bug(const char *file, int line, const char *msg);

#endif
