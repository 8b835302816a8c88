/* sanitized.h - kSanitized is 1 if the compiler says that the address or thread sanitizer is on.
 * Tests then run several times slower, so some of them check less.
 *
 * kThreadSanitized is 1 with the thread sanitizer only. It finds memory that two threads access
 * without synchronisation. Other numbers, shapes or formats do not change how threads synchronise,
 * so a test need not repeat its work with all of them. The build with the address sanitizer runs
 * the cases that kThreadSanitized leaves out. */
#ifndef SNAPMLA_BASE_TEST_SANITIZED_H
#define SNAPMLA_BASE_TEST_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { kSanitized = 1 };
#else
enum { kSanitized = 0 };
#endif

#if defined(__SANITIZE_THREAD__)
enum { kThreadSanitized = 1 };
#else
enum { kThreadSanitized = 0 };
#endif

/* The number of runs of a simulation: @n, or a tenth of it under a sanitizer. All runs execute the
 * same code, so a tenth of them finds the same errors of memory and arithmetic. Only the ordinary
 * build compares shares of runs with their limits, because the limits are for @n runs. */
#define SIMULATED_RUNS(n) (kSanitized ? ((n) + 9) / 10 : (n))

#endif
