/* clock.h - time: a monotonic clock for measurements and the UTC time for records. */
#ifndef SNAPMLA_BASE_CLOCK_H
#define SNAPMLA_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_now_ns(void); /* CLOCK_MONOTONIC, nanoseconds */
void clock_sleep_ns(int64_t ns);

/* Writes the current UTC time as "2026-01-31T12:34:56Z" into @out, which needs 21 bytes. The
 * process reads the wall clock only once and then adds the monotonic time that has passed. So the
 * order of recorded times and the differences between them stay right even if the wall clock is
 * changed. */
void clock_utc(char out[21]);

#endif
