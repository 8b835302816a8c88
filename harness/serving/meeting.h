/* meeting.h - where the processes of one serving run wait for each other.
 *
 * A run with --part I/N has N processes, on one host or several. Each block must begin at the same
 * time in all of them, or the server would not get the load of all together. Part 1 listens on a
 * TCP port, and the others connect to it. The connection stays open for the whole run:
 *
 *   part I:  snapmla-part I/N VERSION SETTINGS      part 1:  welcome
 *   part I:  at STEP                                part 1:  go STEP, when all parts are there
 *
 * Each message is one line of text. Part 1 may answer "refused REASON" instead. Nothing else is
 * sent: each part stores its own requests. */
#ifndef SNAPMLA_HARNESS_SERVING_MEETING_H
#define SNAPMLA_HARNESS_SERVING_MEETING_H

#include <signal.h>

#include "base/err.h"
#include "harness/eval/shard.h"

enum { MEETING_PARTS_MAX = 64, MEETING_STEP = 64 };

typedef struct meeting meeting;

typedef struct {
    const char *place; /* "HOST:PORT" of part 1; HOST "[::1]" for an address with colons */
    eval_shard part;
    const char *version, *settings; /* without spaces; the same in all parts */
    double patience_s;              /* how long to wait for the other parts to come */
    const volatile sig_atomic_t *cancel;
} meeting_options;

/**
 * meeting_open - wait until all parts are there
 *
 * @out: the caller owns it and releases it with meeting_close(); NULL on failure
 *
 * SNAP_E_USAGE for a place of another form, for too many parts, or if part 1 refuses this part: it
 * has other settings, another version or number of parts, or its number is taken. SNAP_E_NET if the
 * host cannot be resolved, if a part does not come in time, or if the other end is not part 1 or
 * ends; SNAP_E_IO if part 1 cannot listen or cannot be reached; SNAP_E_CANCELLED; SNAP_E_NOMEM.
 * Part 1 refuses a wrong part and waits for the right one.
 */
snap_status meeting_open(meeting **out, const meeting_options *o, snap_err *err) SNAP_CHECK_RESULT;

/* Ends the connections: the other parts' meeting_wait() then fails. NULL is allowed. */
void meeting_close(meeting *m);

/* Waits until all parts have called this with the same @step (less than MEETING_STEP bytes, no line
 * break). SNAP_E_NET if another part has ended; SNAP_E_USAGE if it is at another step;
 * SNAP_E_CANCELLED. */
snap_status meeting_wait(meeting *m, const char *step, snap_err *err) SNAP_CHECK_RESULT;

#endif
