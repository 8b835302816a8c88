/* steady.h - the part of a block in which the server is in its steady state, and whether it falls
 * behind.
 *
 * A block begins with an idle server and ends when its last requests have left. Neither end shows
 * how the server behaves under the load. Three rules find the window between them.
 *
 *   Beginning. Two series are computed over the block: the mean number of requests in flight and
 *   the number of pieces, both in 200 equal steps. Only the steps up to the last request count. The
 *   rule MSER-5 (White, Cobb and Spratt 2000) finds how much of each series to leave out. It
 *   averages the steps in groups of five. Of all truncations d up to half of the groups, it takes
 *   the one with the least sum (x_i - mean)^2 / (n - d)^2 over the groups after d. The truncation
 *   is used only if the mean before it lies below the mean after it, as it does when a server
 *   starts from idle. If the mean before it is higher, the queue was long by chance, and leaving
 *   out that time would make the latencies look better than they are. The window begins after the
 *   longer of the two truncations. It does not begin before the duration of one request has passed
 *   since the first request, because few requests can end in that time. The duration is the 95th
 *   percentile of e2e, but at most a quarter of the time in which requests are sent.
 *
 *   End. The window ends when the last request is sent, because the load falls from then on.
 *
 *   Cohort. The latencies are those of the requests that are due between the beginning of the
 *   window and the duration of one request before its end, so that they end within the window.
 *   Requests are chosen by when they were due, never by when they ended: leaving out those that end
 *   late would leave out the slow ones.
 *
 * A truncation of half of the steps is the largest possible one. Then there are two cases,
 * depending on how much the mean changes: from the time before the truncation (without the duration
 * of the first request) to the time after it.
 *
 *   more than 1 %   The block has no steady part: `steady` is false, and only the second half of
 *                   the steps remains.
 *   at most 1 %     Nothing is left out. This is often a server whose speed varies slowly. The
 *                   change is kept as `drift`.
 *
 * With fewer than 20 steps, `steady` is false too. */
#ifndef SNAPMLA_HARNESS_SERVING_STEADY_H
#define SNAPMLA_HARNESS_SERVING_STEADY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "harness/serving/request.h"

enum { STEADY_STEPS = 200 };

typedef struct {
    double from, to;  /* seconds since the start of the block; empty if to <= from */
    double cohort_to; /* the requests that are due in [from, cohort_to) give the latencies */
    bool steady;
    double drift; /* the change between the halves of the block, as a share; 0: MSER-5 found none */
} steady_window;

/* The course of one block, in STEADY_STEPS steps of step_s seconds from its start. */
typedef struct {
    double step_s;
    double in_flight[STEADY_STEPS]; /* mean number of requests in flight */
    double pieces_s[STEADY_STEPS];  /* pieces per second */
    double ended_s[STEADY_STEPS];   /* answered requests per second */
    double tokens_s[STEADY_STEPS];  /* completion tokens per second, those of a request spread
                                       evenly from its first to its last piece */
} steady_series;

/* The number of steps to leave out at the beginning of @n steps, by the rule above: a multiple of 5
 * between 0 and half of the steps. */
size_t steady_mser5(const double *x, size_t n);

/* Computes the course of a block of @n >= 1 requests. */
void steady_series_of(const serving_request *r, size_t n, steady_series *out);

/* Finds the window of a block of @n >= 1 requests of one arm. @small_drifts: false: a block
 * without a steady part has no drift, however small the change is. SNAP_E_NOMEM. */
snap_status steady_find(const serving_request *r, size_t n, const steady_series *s,
                        bool small_drifts, steady_window *out, snap_err *err) SNAP_CHECK_RESULT;

/* The growth of the number of requests in flight, without the first tenth of the arrivals' time. */
typedef struct {
    double slope;      /* requests per second */
    double variance;   /* variance of the slope, by least squares over 20 groups of steps, corrected
                          for the correlation of adjacent residuals (an AR(1) model) */
    double freedom;    /* degrees of freedom: effective number of groups - 2, at least 1 */
    double arrivals_s; /* requests that were due, per second */
} steady_growth;

steady_growth steady_growth_of(const serving_request *r, size_t n, const steady_series *s);

/* The growth in all blocks of a load point together. */
typedef struct {
    double slope;   /* mean of the blocks, requests per second; NAN if there are too few steps */
    double share;   /* slope / arrivals per second: the share of the requests that stay behind */
    double p;       /* one-sided p value of "the backlog does not grow" */
    bool saturated; /* p < 1 % and share > 2 % */
} steady_backlog;

steady_backlog steady_backlog_of(const steady_growth *blocks, size_t n);

#endif
