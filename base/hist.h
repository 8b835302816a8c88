/* hist.h - a histogram of durations that needs constant memory.
 *
 * Values below 128 ns are exact. Above, each power of two is divided into 64 buckets, so a quantile
 * is within 0.8 % of the exact one. Durations of 2^42 ns (73 minutes) and more count as 2^42 - 1
 * ns. A histogram that is all zero bytes is empty. */
#ifndef SNAPMLA_BASE_HIST_H
#define SNAPMLA_BASE_HIST_H

#include <stdint.h>

enum { HIST_BUCKETS = 37 * 64 };

typedef struct {
    int64_t n, sum_ns, max_ns;
    uint32_t counts[HIST_BUCKETS];
} hist;

void hist_add(hist *h, int64_t ns); /* a negative value counts as 0 */

/* Adds the values of @from to @to. */
void hist_merge(hist *to, const hist *from);

/* The smallest recorded value v such that at least the fraction @q of all values is <= v, within
 * the bucket's precision; -1 if empty. */
int64_t hist_quantile_ns(const hist *h, double q);
int64_t hist_mean_ns(const hist *h); /* sum_ns / n, rounded down; -1 if empty */

#endif
