/* slo.h - latency targets of a server (service level objectives), and whether they are met.
 *
 *   --slo ttft_p99=500ms,tpot_p99=50ms,e2e_p95=10s
 *
 * A target is used in two ways. A load point meets ttft_p99=500ms if the data show that at least
 * 99 % of its requests have a TTFT of at most 500 ms. One request meets it if its own TTFT is at
 * most 500 ms; goodput counts the requests that meet every target. For itl the values are gaps: a
 * load point meets itl_p99=80ms if at least 99 % of all gaps are shown to be at most 80 ms, and a
 * request if at least 99 % of its own gaps are. */
#ifndef SNAPMLA_HARNESS_SERVING_SLO_H
#define SNAPMLA_HARNESS_SERVING_SLO_H

#include "base/buf.h"
#include "harness/serving/metrics.h"

enum { SLO_MAX = 8 };

typedef struct {
    serving_time latency;
    double quantile; /* 0.99 for p99 */
    double limit_s;
} slo_target;

typedef struct {
    slo_target at[SLO_MAX];
    size_t n;
} slo_list;

/* Parses a list such as "ttft_p99=500ms,e2e_p95=10s". The latencies are those of metrics.h, the
 * percentile lies above 0 and below 100, the units are us, ms and s. SNAP_E_USAGE, with the part
 * that is wrong and what is allowed. */
snap_status slo_parse(const char *list, slo_list *out, snap_err *err) SNAP_CHECK_RESULT;

/* Appends "ttft_p99", and "500 ms" for the limit. */
void slo_name(const slo_target *t, buf *out);
void slo_limit(const slo_target *t, buf *out);

/* Whether one request meets the target. A failed request does not. A cut one does only for ttft and
 * ttft_due, and only if its first piece came in time. An answered request that has no itl, tpot or
 * normalised latency meets a target for it; one without text meets none for ttft and ttft_due. */
bool slo_met(const slo_target *t, const serving_request *r);
/* Whether the request meets all targets. */
bool slo_all_met(const slo_list *t, const serving_request *r);

typedef enum {
    SLO_OPEN,  /* the values are too few or too close to the limit to decide */
    SLO_MEETS, /* the interval of the share lies at or above the quantile, or slo_test_values()
                  decides so */
    SLO_FAILS, /* the interval lies below the quantile, or slo_test_values() decides so */
} slo_state;
const char *slo_state_name(slo_state s); /* "open", "meets", "fails" */

/* A share of values within the limit, counted in slices of time (slices.h). */
typedef struct {
    double share;  /* NAN without values */
    double lo, hi; /* interval at the level that the caller stated */
    size_t n;      /* values */
    size_t needed; /* values that would be enough for "meets" if none exceeded the limit */
    slo_state state;
    /* The percentile of the target, in seconds: the geometric mean of the percentiles of the
     * slices, with its interval at slo_value_level(). NAN if the share has decided, or if
     * slo_test_values() is not possible. If by_blocks is true, the value is instead the geometric
     * mean of the percentiles of the blocks, with its interval at the level of slo_test(). */
    double value, value_ci[2];
    bool by_blocks;   /* slo_test_blocks() has set the state */
    bool unconfirmed; /* open, and more blocks may decide it: the slices do, or the share has too
                         few values */
} slo_result;

/* The design effect of a share of values that are counted in slices of time: the ratio of its
 * variance between slices to the binomial variance, at least 1. The values of a slice resemble each
 * other, and n of them are worth n / effect independent ones (Kish 1965). @hits, @totals: [slices]
 * values that count, and all values, of each slice. 1 if all values agree. */
double slo_design_effect(const double *hits, const double *totals, size_t slices);

/* The two-sided interval of a share of values that are worth @independent ones: Wilson's, with the
 * quantile of Student's t for slices - 1 degrees of freedom (Korn and Graubard 1998, who take that
 * of Clopper and Pearson). 0 and 1 without values or with less than two slices. */
void slo_share_interval(double share, double independent, size_t slices, double level,
                        double ci[2]);

/* Is the share of the values within the limit at least the target's quantile? Each of the two wrong
 * decisions has a probability of at most (1 - @level) / 2. @effect: least design effect, from the
 * values themselves (sliced_effect(), sliced_cluster_effect()): few values beyond the limit say
 * little about how they vary from slice to slice. */
slo_result slo_test(const slo_target *t, const double *hits, const double *totals, size_t slices,
                    double effect, double level);

/* The level of the intervals of slo_test_values(), for a level of slo_test(). */
double slo_value_level(double level);

/**
 * slo_test_values - decide a target that is open by the percentile of each slice
 *
 * @logs: [slices] logarithm of the percentile of the target in each slice
 * @r:    changed only if it is open: its value, interval and state
 *
 * In a server whose requests advance in the same steps, all requests of a slice are equally fast.
 * The share within the limit is then 0 or 1 in most slices, and 8 such slices do not prove a share
 * of 75 %. But if the percentiles of all slices are close to each other and far from the limit, the
 * target is decided.
 * The interval is that of the mean of the logarithms, by Student's t (batch quantiles: Seila 1982).
 * "Meets" needs its upper end and every slice at or below the limit, "fails" its lower end and
 * every slice above it. The fraction of values that may miss the target (25 % for p75) must be at
 * least two slices. A disturbance that takes whole slices has then probably been seen. So p75 needs
 * 8 slices, p90 needs 20, and p99 is never decided in this way.
 *
 * The level is stricter than that of slo_test(): a wrong decision has a probability of at most
 * (1 - level) / 20, so both tests together have at most 1.1 times that of slo_test() alone.
 */
void slo_test_values(const slo_target *t, const double *logs, size_t slices, double level,
                     slo_result *r);

/**
 * slo_test_blocks - decide a target whose slices are correlated, with whole blocks as units
 *
 * @logs:   [blocks] logarithm of the percentile of the target in each block; 2 blocks or more
 * @slices: the number of slices of slo_test()
 * @r:      result of slo_test() and slo_test_values()
 *
 * A decision stays only if the interval of the mean of @logs agrees with it, at @level
 * (batch_means.h). So a wrong decision has a probability of at most (1 - level) / 2, however the
 * values in a block are correlated. An open target is decided if no slice speaks against it: all
 * values lie on one side of the limit, and slo_test_values() was not possible only because a slice
 * has too few values.
 */
void slo_test_blocks(const slo_target *t, const double *logs, size_t blocks, size_t slices,
                     double level, slo_result *r);

#endif
