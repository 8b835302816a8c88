/* clock.h - time: a monotonic clock to measure with, a wall clock to write down. */
#ifndef SNAPMLA_BASE_CLOCK_H
#define SNAPMLA_BASE_CLOCK_H

#include <stdint.h>

int64_t clock_now_ns(void); /* CLOCK_MONOTONIC, nanoseconds */
void clock_sleep_ns(int64_t ns);

/* Now as "2026-01-31T12:34:56Z" (UTC); @out has room for 21 bytes. The wall clock is read once in a
 * process, the monotonic one from then on: so what is written down stays in order, and the time between
 * is right, when somebody sets the clock. */
void clock_utc(char out[21]);

#endif
