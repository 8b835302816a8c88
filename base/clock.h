/* clock.h - time: a monotonic clock for measurements and the UTC time for records. */
#ifndef SNAPMLA_BASE_CLOCK_H
#define SNAPMLA_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_now_ns(void); /* CLOCK_MONOTONIC, nanoseconds */
void clock_sleep_ns(int64_t ns);

/* How far CLOCK_REALTIME is ahead of clock_now_ns() now, in nanoseconds. */
int64_t clock_wall_offset_ns(void);

/* Writes the current UTC time as "2026-01-31T12:34:56Z" into @out, which needs 21 bytes. The first
 * call of the process reads the wall clock. Later calls add the monotonic time that has passed
 * since then. So the written times stay in order even if the wall clock is changed. */
void clock_utc(char out[21]);

#endif
