/* predict_rules.h - the rules that turn the work of a decode step (predict_work.h) into a time.
 *
 * A step has the four parts that `bench model --parts` times on a GPU. The rules:
 *
 *   attention   fixed time for each block
 *               + time for each query (row x head of the rank)
 *               + factor x cached tokens x the attention kernel's time for each cached token at the
 *                 rank's number of heads, from cells of `bench`
 *               + bytes of W_UK / read bandwidth
 *   experts     fixed time for each layer with experts + time for each byte of weights + time for
 *               each floating-point operation
 *   rest        fixed time for each launch + bytes of weights at the experts' time for each byte
 *               + time for each floating-point operation
 *   exchange    exchange curves (predict_links.h); no rule
 *
 *   step        share x the sum of the parts. The share is below 1, because the kernels of
 *               different parts overlap in a step without events.
 *
 * Products of at most 8 rows use other kernels than those of more rows, so each of the two ranges
 * has rules of its own. The coefficients are fitted to measured steps of one GPU: least squares of
 * the relative error, no coefficient negative. The attention rules differ between the arms. */
#ifndef SNAPMLA_HARNESS_BENCH_PREDICT_RULES_H
#define SNAPMLA_HARNESS_BENCH_PREDICT_RULES_H

#include "generator/local/model/runner.h"
#include "harness/bench/predict_work.h"

enum { PREDICT_TERMS = 3, PREDICT_RANGES = 2, PREDICT_ROWS = 512, PREDICT_SLOPES = 32 };

/* The time of the attention kernel for each cached token, by number of heads. */
typedef struct {
    int heads;
    double ns; /* median time / cached tokens, of the measured cell with most cached tokens */
    int64_t tokens;
} kernel_slope;

typedef struct {
    kernel_slope of[2][PREDICT_SLOPES]; /* [BF16, FP8], by ascending number of heads */
    int n[2];
} kernel_slopes;

/* Nanoseconds for each cached token: interpolated between measured numbers of heads. Beyond the
 * smallest and the largest, the time of that number; NAN without any. */
double kernel_slope_at(const kernel_slopes *k, kv_format arm, double heads);

/* A measured decode step of one GPU. */
typedef struct {
    kv_format arm;
    int64_t batch, context;
    double part_ns[STEP_PARTS], step_ns;
    predict_work work;
} measured_step;

typedef struct {
    double of[PREDICT_TERMS];
} predict_terms;

typedef struct {
    predict_terms per; /* 0 = the term is not used */
    int n;             /* number of steps that it was fitted to; 0 = there is no rule */
} rule;

typedef struct {
    rule attention[2], experts, rest; /* attention: [BF16, FP8] */
    double share[2];                  /* step / sum of the parts: [one row, more rows] */
    double error[STEP_PARTS];         /* largest relative error of a rule when the cell that it
                                         predicts is left out of the fit; 0 if that was not
                                         possible */
    double step_error;                /* the same for whole steps */
} rules;

typedef struct {
    rules range[PREDICT_RANGES]; /* at most 8 rows, more */
    kernel_slopes slopes;
    double read_rate; /* bytes/s */
    bool single;      /* one row has a step of its own on one GPU (generator/local/cuda/single.cu),
                         whose parts cannot be timed */
} rule_book;

static inline int predict_range(double rows) {
    return rows > 8;
}

/* Fits all rules to @n steps. book->slopes, read_rate and single must be set. Steps of another
 * range or arm do not matter to a rule. @without: if not NULL, steps of the same batch and context
 * are left out. */
void rules_fit(rule_book *book, const measured_step *steps, int n, const measured_step *without);

/* Like rules_fit(), and computes the errors of leaving out each cell. */
void rules_fit_and_check(rule_book *book, const measured_step *steps, int n);

/* Times of attention, experts and rest in @ns; ns[STEP_EXCHANGE] is not changed. A part without a
 * rule is NAN. */
void rules_apply(const rule_book *book, kv_format arm, const predict_work *w,
                 double ns[STEP_PARTS]);

/* The time of a step with these parts. @split: it is a step of several GPUs with sums. */
double rules_step(const rule_book *book, const predict_work *w, const double ns[STEP_PARTS],
                  bool split);

/**
 * fit_nonnegative - least squares without negative coefficients
 *
 * @x:   [n]; y is about the sum of x.of[t] * out->of[t]
 * @y:   [n], above 0; the relative error is minimised
 * @out: coefficients; 0 for terms that are not used
 *
 * Returns false if n is 0.
 */
bool fit_nonnegative(const predict_terms *x, const double *y, int n, predict_terms *out);

#endif
