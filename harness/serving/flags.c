#include "harness/serving/flags.h"

#include <math.h>

static const double kMany = 0.01; /* a larger share of cut or failed requests is flagged */

enum {
    QUEUED = 1 << 0,     /* ttft, e2e and the normalised latency, which include the queue */
    STREAMED = 1 << 1,   /* itl and tpot */
    THROUGHPUT = 1 << 2, /* requests and tokens per second */
    GOODPUT = 1 << 3,
    ALL = QUEUED | STREAMED | THROUGHPUT | GOODPUT,
};

static const struct {
    const char *name;
    unsigned prevents; /* verdicts on these metrics */
} kFlags[SERVING_FLAGS] = {{"saturated", QUEUED | GOODPUT},
                           {"unsteady", ALL},
                           {"correlated", ALL},
                           {"client lag", 0},
                           {"failed", QUEUED | STREAMED | THROUGHPUT},
                           {"cut", QUEUED | STREAMED},
                           {"no usage", 0},
                           {"no intervals", ALL}};

const char *serving_flag_name(int i) {
    return kFlags[i].name;
}

unsigned serving_flags_of(const serving_arm *a) {
    bool late = false;
    for (int l = 0; l < SERVING_TIMES; l++)
        late |= a->late[l];
    const bool has[SERVING_FLAGS] = {a->backlog.saturated,
                                     !a->steady,
                                     a->correlated,
                                     late,
                                     (double)a->failed > kMany * (double)a->requests,
                                     (double)a->cut > kMany * (double)a->requests,
                                     isnan(a->completion_tokens),
                                     !a->slices};
    unsigned flags = 0;
    for (int i = 0; i < SERVING_FLAGS; i++)
        flags |= has[i] ? 1U << i : 0;
    return flags;
}

static unsigned group_of(int metric) {
    int rate = metric - serving_metric_of_rate(SERVING_OFFERED);
    serving_time l = (serving_time)(metric / SERVING_STATISTICS);
    if (rate >= 0)
        return rate == SERVING_GOODPUT || rate == SERVING_GOOD ? GOODPUT : THROUGHPUT;
    return l == SERVING_ITL || l == SERVING_TPOT ? STREAMED : QUEUED;
}

const char *serving_flag_against(unsigned flags, int metric) {
    for (int i = 0; i < SERVING_FLAGS; i++)
        if (flags & (1U << i) && kFlags[i].prevents & group_of(metric))
            return kFlags[i].name;
    return "";
}

unsigned serving_doubts_of(const serving_arm *a) {
    return serving_flags_of(a) & ~(a->by_blocks ? (unsigned)SERVING_FLAG_CORRELATED : 0U);
}

const char *serving_flag_against_state(const serving_arm *a) {
    if (a->backlog.saturated)
        return "";
    return a->correlated && !a->state_by_blocks ? "correlated" : !a->steady ? "unsteady" : "";
}
