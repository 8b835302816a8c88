/* metrics.h - what a serving benchmark measures: the names, definitions and units of its metrics.
 *
 * Latencies belong to one request, in seconds. docs/serving.md has the formulas, and how
 * other programs differ.
 *   ttft         time to the first token: first piece of text - begin of sending
 *   ttft_due     the same from the time when the request was due. In an open loop the difference is
 *                the client's own delay; in a closed loop both are nearly the same.
 *   itl          the times between consecutive pieces. It does not include ttft.
 *   tpot         time per output token: (last piece - first piece) / (completion tokens - 1)
 *   e2e          last byte - begin of sending
 *   normalised   e2e / completion tokens
 * Completion tokens are those that the server counted (usage), never the number of pieces. */
#ifndef SNAPMLA_HARNESS_SERVING_METRICS_H
#define SNAPMLA_HARNESS_SERVING_METRICS_H

#include <stddef.h>

#include "harness/serving/request.h"

typedef enum {
    SERVING_TTFT,
    SERVING_TTFT_DUE,
    SERVING_ITL,
    SERVING_TPOT,
    SERVING_E2E,
    SERVING_NORMALISED,
    SERVING_TIMES,
} serving_time;

/* The statistics of a latency over requests; of itl over all gaps of all requests. */
typedef enum {
    SERVING_MEAN,
    SERVING_P50,
    SERVING_P90,
    SERVING_P95,
    SERVING_P99,
    SERVING_P999,
    SERVING_STATISTICS,
} serving_statistic;

typedef enum {
    SERVING_OFFERED,  /* requests that were due, per second */
    SERVING_REQUESTS, /* answered requests per second */
    SERVING_INPUT,    /* prompt tokens of answered requests per second */
    SERVING_OUTPUT,   /* completion tokens of answered requests per second */
    SERVING_PIECES,   /* pieces of answered requests per second */
    SERVING_GPU,      /* completion tokens per second and GPU */
    SERVING_GOODPUT,  /* answered requests per second that meet every target */
    SERVING_USER,     /* mean over requests of 1 / tpot: tokens per second of one stream */
    SERVING_GOOD,     /* share of the requests that meet every target, 0..1 */
    SERVING_FAILED,   /* share of the requests that failed, 0..1 */
    SERVING_RATES,
} serving_rate;

/* "ttft", "p99", "output_tok_s" */
const char *serving_time_name(serving_time l);
const char *serving_statistic_name(serving_statistic s);
const char *serving_rate_name(serving_rate r);

/* The quantile of a statistic: 0.99 for SERVING_P99; NAN for the mean. */
double serving_quantile_of(serving_statistic s);

/* How many values the percentile needs: 5 / (1 - q). With fewer, fewer than five values are
 * expected above it, and it is refused. 1 for the mean. */
size_t serving_values_needed(serving_statistic s);

/* Whether the request was answered completely: neither failed nor cut, and its end is known. */
bool serving_is_answered(const serving_request *r);

/* The time of the last piece; NAN if there was no piece. */
double serving_last_piece(const serving_request *r);

/* A latency of the request; NAN if it has none: itl has one value for each gap instead, and tpot
 * needs two completion tokens. A failed request has no latency. One that was cut has only ttft and
 * ttft_due, and only if its first piece came. */
double serving_time_of(const serving_request *r, serving_time l);

/* When the request stopped using the server: its end, or the last time that is known of it. A cut
 * request used it until the end of its block: INFINITY. */
double serving_left(const serving_request *r);

/* A metric is a statistic of a latency or a rate. */
enum {
    SERVING_METRICS = SERVING_TIMES * SERVING_STATISTICS + SERVING_RATES,
};
int serving_metric_of(serving_time l, serving_statistic s);
int serving_metric_of_rate(serving_rate r);

/* Whether a larger value is better. */
bool serving_more_is_better(int metric);

/* "ttft_p99", "output_tok_s": for messages and tables. */
void serving_metric_name(int metric, char out[32]);

#endif
