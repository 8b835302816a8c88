#include "harness/serving/metrics.h"

#include <math.h>
#include <stdio.h>

static const double kQuantiles[SERVING_STATISTICS] = {NAN, 0.5, 0.9, 0.95, 0.99, 0.999};
static const size_t kNeeded[SERVING_STATISTICS] = {1, 10, 50, 100, 500, 5000};

const char *serving_time_name(serving_time l) {
    static const char *const names[] = {"ttft", "ttft_due", "itl", "tpot", "e2e", "normalised"};
    return names[l];
}

const char *serving_statistic_name(serving_statistic s) {
    static const char *const names[] = {"mean", "p50", "p90", "p95", "p99", "p99.9"};
    return names[s];
}

const char *serving_rate_name(serving_rate r) {
    static const char *const names[] = {"offered_s",  "requests_s",  "input_tok_s", "output_tok_s",
                                        "pieces_s",   "gpu_tok_s",   "goodput_s",   "user_tok_s",
                                        "good_share", "failed_share"};
    return names[r];
}

double serving_quantile_of(serving_statistic s) {
    return kQuantiles[s];
}

size_t serving_values_needed(serving_statistic s) {
    return kNeeded[s];
}

bool serving_is_answered(const serving_request *r) {
    return !r->failed && !r->cut && r->end_s >= r->sent_s;
}

double serving_last_piece(const serving_request *r) {
    double at = r->pieces > 0 && r->first_s >= 0 ? r->first_s : (double)NAN;
    for (int i = 0; i + 1 < r->pieces && r->gap_s; i++)
        at += (double)r->gap_s[i];
    return at;
}

static double ttft_of(const serving_request *r, double from) {
    return !r->failed && r->first_s >= 0 ? r->first_s - from : (double)NAN;
}

double serving_time_of(const serving_request *r, serving_time l) {
    double e2e = r->end_s - r->sent_s, tokens = (double)r->completion_tokens;
    if (l == SERVING_TTFT)
        return ttft_of(r, r->sent_s);
    if (l == SERVING_TTFT_DUE)
        return ttft_of(r, r->due_s);
    if (!serving_is_answered(r) || l == SERVING_ITL)
        return (double)NAN;
    if (l == SERVING_E2E)
        return e2e;
    if (l == SERVING_TPOT)
        return tokens >= 2 ? (serving_last_piece(r) - r->first_s) / (tokens - 1) : (double)NAN;
    return tokens >= 1 ? e2e / tokens : (double)NAN;
}

double serving_left(const serving_request *r) {
    if (r->cut)
        return (double)INFINITY;
    double piece = serving_last_piece(r);
    return fmax(r->sent_s, fmax(r->end_s, isnan(piece) ? r->sent_s : piece));
}

/* ---- metrics ---- */

int serving_metric_of(serving_time l, serving_statistic s) {
    return (int)l * SERVING_STATISTICS + (int)s;
}

int serving_metric_of_rate(serving_rate r) {
    return SERVING_TIMES * SERVING_STATISTICS + (int)r;
}

bool serving_more_is_better(int metric) {
    return metric >= serving_metric_of_rate(SERVING_OFFERED) &&
           metric != serving_metric_of_rate(SERVING_FAILED);
}

void serving_metric_name(int metric, char out[32]) {
    int rate = metric - serving_metric_of_rate(SERVING_OFFERED);
    if (rate >= 0)
        (void)snprintf(out, 32, "%s", serving_rate_name((serving_rate)rate));
    else
        (void)snprintf(out, 32, "%s_%s",
                       serving_time_name((serving_time)(metric / SERVING_STATISTICS)),
                       serving_statistic_name((serving_statistic)(metric % SERVING_STATISTICS)));
}
