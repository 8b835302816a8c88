/* serve_metrics.h - counters of a server, written in the text format of Prometheus. Names that
 * begin with "vllm:" are those that vLLM has for such values. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_METRICS_H
#define SNAPMLA_HARNESS_SERVE_SERVE_METRICS_H

#include "harness/serve/serve_replicas.h"

enum { METRIC_BUCKETS = 28 };

/* count[i] is the number of values up to bound i that are above bound i - 1. The count after the
 * last bound is that of the values above all bounds. */
typedef struct {
    int64_t count[METRIC_BUCKETS + 1];
    double sum;
} metric_histogram;

/* Counters since the server began. They start as 0. */
typedef struct {
    int64_t prompt_tokens, generation_tokens;
    int64_t finished[4]; /* choices that ended, by piece_kind; [PIECE_TOKEN]: choices that were
                            dropped because the client left or the time was up */
    int64_t refused;     /* requests refused with 429 or 503, for example when the queue is full */
    metric_histogram first_token; /* seconds from a request's arrival to a choice's first token */
    metric_histogram between;     /* seconds between consecutive tokens of a choice */
    metric_histogram request;     /* seconds from arrival to the end of an answer without error */
} serve_metrics;

/* Adds a value to a histogram with the bounds for requests. */
void metric_add_latency(metric_histogram *h, double seconds);
/* Adds a value to a histogram with the bounds for tokens. */
void metric_add_token_gap(metric_histogram *h, double seconds);

/* @connections: open now. @large: large requests that wait to be read or are being read. @model:
 * the name of the model; it becomes a label. */
void serve_metrics_write(const serve_metrics *m, const serve_totals *load, int connections,
                         int large, const char *model, buf *out);

#endif
