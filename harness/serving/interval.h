/* interval.h - all metrics of one arm at one load point, and their intervals by a bootstrap over
 * slices of time.
 *
 * Requests that are in the server together share its queue and its batches, so their latencies are
 * correlated, and an interval that takes them for independent is too narrow. The steady window of
 * each block is therefore cut into slices of equal duration. A slice has the latencies of the
 * requests that were due in it, and counts what ended in it. The bootstrap draws slices with
 * replacement (a block bootstrap over time without overlap: Carlstein 1986) and computes each
 * metric again from the drawn slices, percentiles included. A draw takes the slices with the same
 * numbers from all arms. In an open loop these are the same parts of the blocks, so what the arms
 * share there, such as prompts and arrivals, cancels in their differences. The number of slices
 * follows from the data (slices.h). */
#ifndef SNAPMLA_HARNESS_SERVING_INTERVAL_H
#define SNAPMLA_HARNESS_SERVING_INTERVAL_H

#include "harness/serving/sliced_arm.h"

enum { SLICED_DRAWS = 2000 };

/* Computes all metrics with slice i taken weight[i] times; NULL: each once. A metric without values
 * is NAN. Percentiles are not refused here. */
void sliced_metrics(const sliced_arm *arm, const uint16_t *weight, double out[SERVING_METRICS]);

/* Computes all metrics of each block. @out: [blocks][SERVING_METRICS] */
void sliced_block_metrics(const sliced_arm *arm, size_t blocks, double *out);

/* Quantile @q of one latency over all slices; NAN without values. */
double sliced_quantile(const sliced_arm *arm, serving_time l, double q);

/* The design effect (slo.h) of the values of a latency at their median: how many of them are worth
 * one independent value. It is taken at the median because few values lie beyond p99: if those
 * happen to be small, the values also seem to be independent. */
double sliced_effect(const sliced_arm *arm, serving_time l);

/* The design effect of the values above @limit by their clusters: the mean of the squared sizes
 * over the mean size, at least 1. A queue exceeds a high limit in excursions, and the values of one
 * excursion are worth one. A cluster is a sequence of values in the order of the blocks and of the
 * times when their requests were due. It begins with a value above the median and ends before the
 * next value that is not, when the queue has recovered. Its size is its number of values above the
 * limit. The variance of a sum of independent clusters exceeds that of independent values by this
 * factor. */
double sliced_cluster_effect(const sliced_arm *arm, serving_time l, double limit);

/* The logarithm of quantile @q of the values of each unit of @each slices in sequence, out [slices
 * / each]: of each slice, or of each block. False if a unit has fewer than 5 / min(q, 1 - q)
 * values, or if its number of values is not that in @totals [slices]: requests without a value,
 * such as failed ones, have no place in the order. */
bool sliced_log_quantiles(const sliced_arm *arm, serving_time l, const double *totals, double q,
                          size_t each, double *out);

/* The 95 % interval of quantile @q (Woodruff 1952): the interval of the share of values up to the
 * quantile, turned back into values. The design effect is the largest of those at the median, at
 * the quantile and by clusters. The upper end is INFINITY if the values beyond it are worth less
 * than one independent value: the largest values that came say nothing about what did not come.
 * NANs without values or with fewer than two slices. */
void sliced_quantile_interval(const sliced_arm *arm, serving_time l, double q, double ci[2]);

/**
 * sliced_bootstrap - metrics of all arms in @draws draws of slices
 *
 * @arms: [n] with the same number of slices
 * @out:  [n][draws][SERVING_METRICS]
 */
void sliced_bootstrap(const sliced_arm *arms, size_t n, int draws, uint64_t seed, double *out);

/* A percentile interval at @level of @n draws, with the percentiles moved outwards as few slices
 * require: Student's t times sqrt(s / (s - 1)) replaces the normal quantile (Hesterberg 2015).
 * Sorts @x. NANs with fewer than two slices, or if more than one draw in twenty is not finite. */
void sliced_interval(double *x, size_t n, size_t slices, double level, double out[2]);

#endif
