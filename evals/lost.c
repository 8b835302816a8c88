#include "evals/lost.h"

#include <stdio.h>

bool lost_too_many(lost_count a, lost_count b, double max_pct, char *why, size_t cap) {
    int64_t samples = a.samples > b.samples ? a.samples : b.samples;
    lost_count worse = a.scored < b.scored ? a : b;
    int64_t lost = samples - worse.scored;
    bool many = 100 * (double)lost > max_pct * (double)samples;
    (void)snprintf(why, cap, "%s", "");
    if (many)
        (void)snprintf(why, cap, "%.48s lost %lld of %lld samples, more than %g %%", worse.arm,
                       (long long)lost, (long long)samples, max_pct);
    return many;
}
