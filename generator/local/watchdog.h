/* watchdog.h - ends the program if a step or a copy of a page never ends because its GPU hangs.
 *
 * The thread that waits for a GPU cannot return an error if the GPU hangs. So the thread of a
 * watchdog ends the program. The ranks of a split model watch each other (ranks/ranks.h), but only
 * in what they exchange. The replicas of a layout DPn exchange nothing.
 *
 * The first WATCHDOG_FREE steps have no limit, because they load kernels, which the driver compiles
 * for a GPU that is newer than this program. The time in which the process is stopped (SIGSTOP)
 * does not count. */
#ifndef SNAPMLA_GENERATOR_LOCAL_WATCHDOG_H
#define SNAPMLA_GENERATOR_LOCAL_WATCHDOG_H

#include "base/err.h"

enum { WATCHDOG_FREE = 8 };

typedef struct watchdog watchdog;

/* @name: of the rank or replica, which the message begins with; at most 95 bytes of it are kept.
 * @limit_s: seconds for a step or a copy. @end: is called by the thread of the watchdog, and should
 * end the process. Caller owns *out: watchdog_stop(). SNAP_E_NOMEM, SNAP_E_IO. The other functions
 * do nothing with NULL. */
snap_status watchdog_start(watchdog **out, const char *name, double limit_s,
                           void (*end)(const snap_err *why), snap_err *err) SNAP_CHECK_RESULT;
void watchdog_stop(watchdog *w);

/* Mark the beginning of a step, and of a copy of a page of the cache to or from the host. */
void watchdog_begin_step(watchdog *w);
void watchdog_begin_copy(watchdog *w);
/* Marks the end of either. */
void watchdog_end(watchdog *w);

#endif
