/* run_log.h - RUN/log: a log with times, for people. */
#ifndef SNAPMLA_HARNESS_EVAL_RUN_LOG_H
#define SNAPMLA_HARNESS_EVAL_RUN_LOG_H

#include "base/fs.h"

/* Appends "2026-01-31T12:34:56Z text". Several threads may call it at the same time. A line that
 * cannot be written is dropped, because no result depends on it. */
void run_log(fs_log *log, const char *fmt, ...) SNAP_PRINTF(2, 3);

#endif
