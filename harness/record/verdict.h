/* verdict.h - a row of the section `verdicts`: what a gate decided about a cell or a comparison.
 * Every row has kind, name, verdict and reason. The parts of a row decide which other fields it
 * has. */
#ifndef SNAPMLA_HARNESS_RECORD_VERDICT_H
#define SNAPMLA_HARNESS_RECORD_VERDICT_H

#include "harness/record/field.h"

enum {
    VERDICT_COMPARED = 1 << 0, /* two times of one cell are compared */
    VERDICT_TIMED = 1 << 1,    /* two arms were timed alternately, in several sessions */
    VERDICT_MEAN = 1 << 2,     /* the geometric mean over cells of the ratios of their times */
    VERDICT_ERROR = 1 << 3,    /* two numerical errors are compared */
    VERDICT_QUALITY = 1 << 4,  /* two accuracies are compared */
    VERDICT_CASE = 1 << 5,     /* a self-test: one arm is slowed on purpose, or both are equal */
    VERDICT_SMALLEST = 1 << 6, /* the smallest delay that the gate would detect */
    VERDICT_CHANGE = 1 << 7,   /* a change point in the history of a cell */
    VERDICT_FORECAST = 1 << 8, /* a predicted difference in accuracy is judged */
};

/* The sessions of one cell with equal arms in a self-test, each twice: as it was, and with the arms
 * exchanged. */
typedef struct {
    const char *name;
    double baseline_ns;
    double mean_limit;              /* log-ratio that the mean may reach (gate/tail.h) */
    record_numbers log_ratios;      /* log-ratios of the lower quartiles */
    record_numbers mean_log_ratios; /* log-ratios of the means */
    record_numbers slow_shares;     /* as in verdict_record; empty = too few steps for a p99 */
} noise_record;

typedef struct {
    noise_record *at;
    size_t n;
} noise_list;

typedef struct {
    unsigned parts;
    const char *kind; /* "speed", "geomean", "quality", "fidelity", "environment", "selftest",
                         "change", "serving", "forecast" */
    const char *name; /* name of the cell or comparison */
    /* "ok", "noise", "inconclusive", "missing", "regressed", "invalid", "wrong"; "" = the row
     * decides nothing */
    const char *verdict;
    const char *reason;
    double ratio;   /* current over baseline: of times, or of errors in rows of kind "fidelity" */
    double ci90[2]; /* 90 % interval of the ratio; in rows of kind "quality" and "forecast", of
                       delta_pp */
    double threshold;
    const char *statistic; /* which statistic of the steps' times is compared: "lower quartile",
                              "mean", "p99"; "median" in rows of two result files */
    double p_slower, p_holm, p_within;
    double baseline_ns, current_ns;
    const char *baseline_hash, *current_hash; /* SHA-256 of the kernels' machine code; "" =
                                                 unknown */
    /* the part VERDICT_TIMED */
    const char *baseline, *current; /* names of the arms */
    int64_t sessions;
    double visible;    /* the smallest ratio that would have been reported as a regression */
    double visible_pp; /* for p99: the smallest difference in the share of slow steps (gate/tail.h)
                          that would have been reported, in percentage points */
    record_numbers log_ratios;                              /* one for each session */
    record_numbers slow_shares;                             /* p99: share of slow steps of the
                                                               current arm minus that of the
                                                               baseline, for each session */
    record_numbers baseline_samples_ns, current_samples_ns; /* times of single turns */
    record_texts flags;                                     /* "throttled", "shared" */
    int64_t cells;                                          /* number of cells; VERDICT_MEAN,
                                                               VERDICT_CASE */
    double delta_pp, margin_pp;                             /* VERDICT_QUALITY, VERDICT_FORECAST */
    double p_loss; /* VERDICT_FORECAST: probability that the loss is above the margin */
    /* the part VERDICT_CASE; spike_ms more in every spike_every-th step, slow_pct more in every
     * slow_every-th turn */
    double delay_pct, spike_ms, slow_pct;
    int64_t spike_every, slow_every;
    int64_t runs, alarms, found, simulated;
    double estimate_pct, simulated_alarms, simulated_sessions;
    /* the part VERDICT_SMALLEST */
    double smallest_pct, power, spread_pct, seconds;
    noise_list noise;
    /* the part VERDICT_CHANGE */
    int64_t at; /* index, from 1, of the first run with the new level in the history */
    const char *started, *commit;
    double p;
} verdict_record;

extern const record_type verdict_type;

typedef struct {
    verdict_record *at;
    size_t n;
} verdict_list;

#endif
