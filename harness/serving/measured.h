/* measured.h - everything that is stated about the arms at one load point of a serving benchmark:
 * their metrics with intervals, whether they meet the targets, whether they are saturated, and the
 * differences between them. It is computed from the requests and the options, so it can be computed
 * again from requests.jsonl. */
#ifndef SNAPMLA_HARNESS_SERVING_MEASURED_H
#define SNAPMLA_HARNESS_SERVING_MEASURED_H

#include "harness/serving/interval.h"

enum { SERVING_ARMS_MAX = 8, SERVING_CDF = 101 };

typedef struct {
    bool open;     /* requests are due at times that do not depend on the server (open loop) */
    int arms;      /* number of arms, 1 .. SERVING_ARMS_MAX */
    double gpus;   /* GPUs of a server; 0 = not stated */
    double margin; /* largest ratio - 1 of two values that count as equal; > 0 */
    double level;  /* level of the tests of targets, for instance 0.99 (slo.h) */
    slo_list targets;
    uint64_t seed;    /* seed of the bootstrap */
    bool states_only; /* leave out intervals and differences, which take most of the time; the
                         states of the targets do not depend on them */
    bool shares_only; /* the state of a target follows only from the share of requests within its
                         limit. Files from before slo_test_values() were computed in this way */
    bool correlated_untested; /* the flag `correlated` follows from one standard error alone. Files
                                 without independence_p were computed in this way */
    bool before_units;        /* the flag `correlated` prevents all verdicts, instead of making the
                                 blocks the units, and no drift is small. Files without `units` were
                                 computed in this way */
} serving_measure_options;
#define SERVING_MEASURE_DEFAULTS                                                                   \
    { .open = true, .arms = 2, .margin = 0.05, .level = 0.99, .seed = 1 }

/* The largest share of a latency that the client's lag may be: 1 %. */
extern const double serving_lag_share;

typedef struct {
    double value;   /* NAN: it does not exist or is refused */
    double ci95[2]; /* NANs: not known. [1] of a percentile is INFINITY if the values above it are
                       worth too few independent ones */
    size_t needs;   /* for a percentile without a value: how many values it needs; else 0 */
} serving_estimate;

typedef struct {
    size_t blocks, requests, answered, failed, cut; /* counts over whole blocks, not only windows */
    size_t cohort;                                  /* requests whose latencies count */
    double window_s;                                /* sum of the windows of all blocks */
    double block_s;                                 /* sum of the durations of all blocks */
    bool steady;                                    /* every block has a steady part */
    double drift; /* the largest drift of a block (steady.h): verdicts and states hold only if they
                     do so for values that differ by it */
    bool correlated;        /* neighbouring slices are correlated: intervals by slices are too
                               narrow */
    bool by_blocks;         /* the intervals and tests also hold with whole blocks as units
                               (batch_means.h) */
    bool state_by_blocks;   /* the targets that decide the state were tested with whole blocks as
                               units */
    double independence_p;  /* p value for all arms together (slice_series.h); NAN: not tested */
    size_t slices;          /* 0: there are no intervals */
    steady_backlog backlog; /* only an open loop can be saturated */
    double prompt_tokens, completion_tokens; /* means of the answered requests; NAN = unknown */
    double lag_p50_s, lag_p99_s, lag_max_s;  /* delay that the client added, over all requests */
    bool late[SERVING_TIMES];                /* the lag can change the latency by more than 1 % */
    double received_lag_p99_s;               /* the part of the lag that is in times of reception */
    double lag_share[SERVING_TIMES];         /* the p99 of the lag over the latency */
    double rate_lag_share;                   /* the p99 of the lag over the median of e2e, for the
                                                rates of a closed loop */
    size_t values[SERVING_TIMES];
    serving_estimate metric[SERVING_METRICS];
    double cdf[SERVING_TIMES][SERVING_CDF]; /* quantiles 0, 0.01 ... 1; NAN without values */
    slo_result target[SLO_MAX];
    slo_state state; /* state for all targets together: meets them all, fails one, or open. A
                        saturated arm fails; without targets it is open */
} serving_arm;

typedef enum {
    SERVING_INCONCLUSIVE,
    SERVING_EQUAL, /* the 90 % interval of the ratio lies within the margin (two one-sided tests) */
    SERVING_FASTER, /* better: the latency is lower or the rate is higher */
    SERVING_SLOWER,
} serving_verdict;
const char *serving_verdict_name(serving_verdict v);

/* One metric of an arm compared with arm 0. */
typedef struct {
    double ratio, ci95[2], ci90[2]; /* arm / baseline; NAN = not known */
    double delta, delta_ci95[2];    /* arm - baseline */
    double p;                       /* two-sided, of "the ratio is 1", or without a ratio of "the
                                       difference is 0"; NAN = not tested */
    double block_p;                 /* like p, but with blocks as units; only with by_blocks */
    double p_holm; /* after Holm's correction over the metrics with a verdict of all arms, but at
                       least block_p */
    bool judged;   /* the metric has a verdict */
    serving_verdict verdict;
    const char *reason; /* the flag because of which the verdict can only be inconclusive (flags.h);
                           "" = none */
} serving_difference;

typedef struct {
    int point, arms;
    serving_arm arm[SERVING_ARMS_MAX];
    /* [0] is not set: arm 0 is the baseline */
    serving_difference difference[SERVING_ARMS_MAX][SERVING_METRICS];
} serving_measured;

/* The metrics whose differences have verdicts: median and p99 of ttft, itl, tpot and e2e, and the
 * rates of requests, output tokens and goodput. */
bool serving_is_judged(int metric);

/* Whether each arm has a request at a load point. Without that it was not measured. */
bool serving_is_measured(const serving_request *requests, size_t n, int point, int arms);

/**
 * serving_measure_point - compute all of one load point
 *
 * @requests: [n] requests, in any order. Those of other points and arms are skipped
 * @out:      caller owns it, free() it; NULL on failure
 *
 * SNAP_E_INPUT: an arm has no request at this point, or all have more than SLICES_MOST blocks.
 * SNAP_E_NOMEM.
 */
snap_status serving_measure_point(const serving_request *requests, size_t n, int point,
                                  const serving_measure_options *o, serving_measured **out,
                                  snap_err *err) SNAP_CHECK_RESULT;

#endif
