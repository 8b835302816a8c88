/* serve_metrics.h - counters of a server, written in the text format of Prometheus. Names that
 * begin with "vllm:" are those of vLLM and have its meaning. */
#ifndef SNAPMLA_HARNESS_SERVE_SERVE_METRICS_H
#define SNAPMLA_HARNESS_SERVE_SERVE_METRICS_H

#include "harness/serve/serve_engine.h"

enum { METRIC_BUCKETS = 28 };

/* Counts of values up to each bound, not cumulated. The last one is of values above all bounds. */
typedef struct {
    int64_t count[METRIC_BUCKETS + 1];
    double sum;
} metric_histogram;

/* All zero: nothing has happened. */
typedef struct {
    int64_t prompt_tokens, generation_tokens;
    int64_t finished[4]; /* choices, by PIECE_STOP, PIECE_LENGTH, PIECE_FAILED; [PIECE_TOKEN]: the
                            client left, or the time was up */
    int64_t refused;     /* requests that found the queue full, or a server that drains */
    metric_histogram first_token; /* seconds from a request's arrival to a choice's first token */
    metric_histogram between;     /* seconds between consecutive tokens of a choice */
    metric_histogram request;     /* seconds from arrival to the end of the answer */
} serve_metrics;

void metric_add_latency(metric_histogram *h, double seconds);   /* bounds of requests */
void metric_add_token_gap(metric_histogram *h, double seconds); /* bounds of single tokens */

/* @connections: open now. @model: the name of the model; it becomes a label. */
void serve_metrics_write(const serve_metrics *m, const serve_load *load, int connections,
                         const char *model, buf *out);

#endif
