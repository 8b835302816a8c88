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
    VERDICT_DELAY = 1 << 5,    /* a self-test: one arm is delayed on purpose, or both are equal (0
                                  %) */
    VERDICT_SMALLEST = 1 << 6, /* the smallest delay that the gate would detect */
    VERDICT_CHANGE = 1 << 7,   /* a change point in the history of a cell */
};

/* The log-ratios of one cell in a self-test without a delay. */
typedef struct {
    const char *name;
    double baseline_ns;
    record_numbers log_ratios;
} noise_record;

typedef struct {
    noise_record *at;
    size_t n;
} noise_list;

typedef struct {
    unsigned parts;
    const char *kind; /* "speed", "geomean", "quality", "fidelity", "environment", "selftest",
                         "change" */
    const char *name; /* name of the cell or comparison */
    /* "ok", "noise", "inconclusive", "missing", "regressed", "invalid", "wrong" */
    const char *verdict;
    const char *reason;
    double ratio;   /* current over baseline: of times, or of errors in rows of kind "fidelity" */
    double ci90[2]; /* 90 % interval of the ratio; in rows of kind "quality", of delta_pp */
    double threshold;
    double p_slower, p_holm, p_within;
    double baseline_ns, current_ns;
    const char *baseline_hash, *current_hash; /* SHA-256 of the kernels' machine code; "" =
                                                 unknown */
    /* the part VERDICT_TIMED */
    const char *baseline, *current; /* names of the arms */
    int64_t sessions;
    record_numbers log_ratios;                              /* one for each session */
    record_numbers baseline_samples_ns, current_samples_ns; /* times of single turns */
    record_texts flags;                                     /* "throttled", "shared" */
    int64_t cells;                                          /* number of cells; VERDICT_MEAN,
                                                               VERDICT_DELAY */
    double delta_pp, margin_pp;                             /* VERDICT_QUALITY */
    /* the part VERDICT_DELAY */
    double delay_pct;
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
