/* serving.h - a row of the section `serving`: servers under load, their differences, and the
 * highest load at which they meet their targets. The kind of a row decides which fields it has:
 *
 *   load        one arm at one load point: counts, rates, saturation, flags
 *   part        what one process of a run by several sent to an arm at a load point, and its lag
 *   latency     one latency of an arm at a load point: mean, percentiles, distribution
 *   target      one target of an arm at a load point: the share within the limit, and its state
 *   difference  one metric of two arms at a load point, compared block by block
 *   series      the course of one block
 *   knee        the interval of the highest load at which an arm meets all targets
 *   ratio       the knees of two arms, and what may be said about them in one sentence
 *
 * Definitions: docs/serving.md. Intervals are 95 % intervals unless the field says
 * otherwise. */
#ifndef SNAPMLA_HARNESS_RECORD_SERVING_H
#define SNAPMLA_HARNESS_RECORD_SERVING_H

#include "harness/record/field.h"

/* The names of the kinds of rows ("load", "part", ...), NULL-terminated. */
extern const char *const serving_kinds[];

enum {
    SERVED_POINT = 1 << 0, /* the row belongs to a load point: all kinds but knee and ratio */
    SERVED_LOAD = 1 << 1,
    SERVED_LATENCY = 1 << 2,
    SERVED_TARGET = 1 << 3,
    SERVED_DIFFERENCE = 1 << 4,
    SERVED_SERIES = 1 << 5,
    SERVED_KNEE = 1 << 6,
    SERVED_RATIO = 1 << 7,
    SERVED_PART = 1 << 8,
};

typedef struct {
    unsigned parts;
    const char *kind, *arm;
    const char *loop;     /* "open": load in requests per second; "closed": concurrency */
    const char *baseline; /* difference, ratio: the arm that it is compared with */
    int64_t point;        /* number of the load point in the run */
    double load;
    /* load */
    const char *endpoint, *model, *precision, *workload; /* "" = not stated */
    int64_t blocks, requests, answered, failed, cut;
    int64_t cohort;           /* requests whose latencies count */
    double block_s, window_s; /* duration of the blocks, and of their steady windows */
    int64_t slices;           /* 0: too few requests for intervals */
    const char *units;        /* load, target, difference: "slices" or "blocks", which intervals and
                                 tests count as one value (measured.h); "" = the file is older */
    double independence_p;    /* p value of "the slices of all arms are independent"
                                 (slice_series.h) */
    bool steady, saturated;
    double drift_pct; /* the largest drift of a block that counts as steady (steady.h) */
    double backlog_s, backlog_pct, backlog_p; /* growth of the requests in flight (steady.h) */
    double prompt_tokens_mean, completion_tokens_mean;
    double gpus; /* GPUs of a server, as the user states */
    double lag_p50_ms, lag_p99_ms, lag_max_ms;
    double offered_s, offered_s_ci95[2];
    double requests_s, requests_s_ci95[2];
    double input_tok_s, input_tok_s_ci95[2];
    double output_tok_s, output_tok_s_ci95[2];
    double pieces_s, pieces_s_ci95[2];
    double gpu_tok_s, gpu_tok_s_ci95[2];
    double goodput_s, goodput_s_ci95[2];
    double user_tok_s, user_tok_s_ci95[2];
    double good_pct, good_pct_ci95[2];
    double failed_pct, failed_pct_ci95[2];
    record_texts flags; /* "saturated", "unsteady", "correlated", "client lag", "failed", "cut", "no
                           usage", "no intervals" */
    int64_t part;       /* in rows of kind part: number of the process, from 1 */
    /* latency */
    const char *metric; /* "ttft"; of a difference "ttft_p99" or "output_tok_s" */
    int64_t values;
    double mean_ms, mean_ms_ci95[2], p50_ms, p50_ms_ci95[2], p90_ms, p90_ms_ci95[2];
    double p95_ms, p95_ms_ci95[2], p99_ms, p99_ms_ci95[2], p999_ms, p999_ms_ci95[2];
    record_numbers needed; /* values that p50, p90, p95, p99 and p99.9 need; 0: there are enough */
    record_numbers least_ms; /* lower ends of the intervals of p50, p90, p95, p99 and p99.9 whose
                                upper end is unknown; 0: there is none. Empty in older files: then
                                both ends of an interval that is missing are unknown */
    record_numbers cdf_ms;   /* quantiles 0, 0.01 ... 1 */
    bool late;               /* the client's lag can change the latency by more than 1 % */
    /* target */
    const char *target;                                     /* "ttft_p99" */
    double limit_ms, share_pct, share_pct_ci[2], level_pct; /* level_pct: of share_pct_ci */
    double percentile_ms, percentile_ms_ci[2]; /* the percentile that the target names; missing: not
                                                  tested, or the share alone decided by slices */
    double percentile_level_pct;               /* of percentile_ms_ci */
    int64_t values_needed; /* values that would be enough for "meets" if none exceeded the limit */
    const char *state;     /* "open", "meets", "fails"; of a load: of all targets together, "" =
                              there is none */
    /* difference: arm / baseline, arm - baseline in the unit of the metric */
    double ratio, ratio_ci95[2], ratio_ci90[2], delta, delta_ci95[2];
    double margin_pct, p, p_holm;
    const char *verdict; /* "equal", "faster", "slower", "inconclusive"; "" = not judged */
    const char *reason;  /* difference, ratio: the flag because of which the verdict can only be
                            inconclusive; "" = none, or the file is older */
    /* series */
    int64_t block;
    double step_s, window[2];
    bool steady_block;
    record_numbers in_flight, course_tok_s, course_requests_s;
    /* knee and ratio */
    double knee_lo, knee_hi; /* missing: not found */
    double ratio_lo, ratio_hi;
    const char *quality, *headline;
} serving_record;

extern const record_type serving_type;

typedef struct {
    serving_record *at;
    size_t n;
} serving_list;

/* A row of kind @kind whose values are missing and whose parts are set. */
serving_record serving_record_new(const char *kind);

bool serving_has_flag(const serving_record *r, const char *flag);

#endif
