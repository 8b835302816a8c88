/* hist.h - a histogram of durations in constant memory.
 *
 * Buckets grow with the value, 64 to a doubling: a quantile is within 0.8 % of the exact one. Values
 * from 0 to 2^42 ns (73 minutes); longer ones count as that long. All zero is empty. */
#ifndef SNAPMLA_BASE_HIST_H
#define SNAPMLA_BASE_HIST_H

#include <stdint.h>

enum { HIST_BUCKETS = 37 * 64 };

typedef struct {
    int64_t n, sum_ns, max_ns;
    uint32_t counts[HIST_BUCKETS];
} hist;

void hist_add(hist *h, int64_t ns); /* negative counts as 0 */

/* The smallest value that at least a share @q of all are not above; -1 when empty. */
int64_t hist_quantile_ns(const hist *h, double q);
int64_t hist_mean_ns(const hist *h); /* exact; -1 when empty */

#endif
